//! Programs of which nothing is known: their words may be commands, which prohibitions should know of.
//!
//! Nobody can list every program that runs others (`tini -- rm x`, `heroku run rm x`, `concurrently 'rm x'`). What is known are
//! programs whose words are data; for all others, a rule that restricts asks if what it speaks of stands in their words.

use pelton_shell::{Command, Part, Script, is_seen_through, steers};

use super::arg::Arg;
use super::launch::base_name;
use super::passed::texts_told;
use super::programs;
use crate::permission::rule::blanks_folded;

/// Programs whose words are names, messages and settings, not commands; but see [`RUNNING_WORDS`].
const TAKE_DATA: &[&str] = &[
    "alias",
    "apk",
    "apt",
    "apt-get",
    "aws",
    "az",
    "black",
    "brew",
    "bun",
    "bundle",
    "cargo",
    "cd",
    "clang-format",
    "cmake",
    "composer",
    "conda",
    "ctest",
    "curl",
    "declare",
    "dig",
    "dnf",
    "docker",
    "docker-compose",
    "dotnet",
    "dpkg",
    "eslint",
    "export",
    "flake8",
    "flatpak",
    "gem",
    "gh",
    "git",
    "glab",
    "go",
    "gofmt",
    "gradle",
    "gradlew",
    "helm",
    "hg",
    "host",
    "http",
    "isort",
    "java",
    "javac",
    "jest",
    "journalctl",
    "kill",
    "killall",
    "kubectl",
    "local",
    "logger",
    "make",
    "mamba",
    "man",
    "mix",
    "mocha",
    "mvn",
    "mypy",
    "nerdctl",
    "ninja",
    "nmap",
    "npm",
    "npx",
    "nslookup",
    "oc",
    "openssl",
    "pacman",
    "ping",
    "pip",
    "pip3",
    "pipx",
    "pkill",
    "pnpm",
    "podman",
    "poetry",
    "popd",
    "prettier",
    "pushd",
    "pytest",
    "read",
    "readonly",
    "return",
    "rpm",
    "ruff",
    "rustc",
    "rustfmt",
    "rustup",
    "service",
    "set",
    "snap",
    "ssh-keygen",
    "svn",
    "swift",
    "systemctl",
    "terraform",
    "tox",
    "tsc",
    "typeset",
    "unset",
    "uv",
    "vitest",
    "wait",
    "wget",
    "yarn",
    "yum",
    "zip",
];

/// Words with which programs that take data run some of it.
const RUNNING_WORDS: &[&str] =
    &["exec", "shell", "explore", "watch", "dlx", "--eval", "--exec", "--pipe", "--pager", "--editor"];

/// The same of single programs.
const RUNNING_WORDS_OF: &[(&str, &[&str])] = &[
    ("aws", &["ssm"]),
    ("cargo", &["--config"]),
    ("bun", &["run"]),
    ("cmake", &["-E"]),
    ("deno", &["task"]),
    ("gh", &["alias", "extension", "codespace"]),
    ("glab", &["alias"]),
    ("mvn", &["exec:exec"]),
    ("npm", &["script-shell", "--script-shell"]),
    ("swift", &["-e"]),
    ("rustc", &["-C", "--codegen"]),
];

/// Programs whose `run` means something that is written elsewhere, and whose `--` ends their own options.
const RUN_SCRIPTS: &[&str] = &[
    "npm", "yarn", "pnpm", "bun", "cargo", "go", "gradle", "gradlew", "mvn", "dotnet", "make", "git", "gh",
    "swift", "poetry", "uv",
];

/// Programs that are known for the files they write, and run others besides.
const RUN_PARTS: &[&str] =
    &["gcc", "g++", "cc", "c++", "clang", "clang++", "ld", "as", "pandoc", "ffmpeg", "convert", "magick"];

/// The words of a command that may be commands, with nothing but blanks between them; none if its words are data.
pub(super) fn mentioned(command: &Command, args: &[Arg], script: &Script) -> Option<String> {
    let (name, rest) = args.split_first()?;
    let name = base_name(name.literal()?);
    if matches!(name, "make" | "gmake") {
        return set_for_make(command, rest, script);
    }
    // What it is told line by line may be commands, too.
    if is_seen_through(command) {
        return None;
    }
    let mut words = String::new();
    if !takes_data(name, rest) {
        let texts = rest.iter().filter(|arg| !arg.is_pipe()).map(Arg::with_holes);
        for text in texts.chain(texts_told(command, script)) {
            add_words(&text, &mut words);
            // `-c'rm x'`: the text may be glued to its option.
            if let Some(glued) = text.strip_prefix('-').filter(|text| text.contains(' ')) {
                add_words(glued.get(1..).unwrap_or_default(), &mut words);
            }
        }
    }
    // `gh alias set x '!rm -rf y'`: to most programs that have such names a text behind this sign is one for a shell.
    for text in rest.iter().map(Arg::with_holes).filter(|text| text.starts_with('!')) {
        add_words(&text, &mut words);
    }
    // What other commands write for it stands in the word that names the pipe. Who only looks at it does nothing else with it.
    if programs::program(name).is_none() {
        for arg in rest.iter().filter(|arg| arg.is_pipe()) {
            add_words(&arg.written, &mut words);
        }
    }
    Some(blanks_folded(&words)).filter(|words| !words.is_empty())
}

/// What a variable may make other programs run, if it is one that programs go by or holds more than a word.
pub(super) fn steering(name: &str, value: &Arg) -> Option<String> {
    let text = if value.parts().contains(&Part::Pipe) { value.written.clone() } else { value.with_holes() };
    let names_command = steers(name)
        || matches!(name, "CC" | "CXX" | "LD" | "AR" | "AS" | "CPP" | "PS0" | "PS1" | "PS2" | "PS4")
        || ["_WRAPPER", "_RUNNER", "_LINKER", "_COMMAND", "_CMD", "_OPTIONS", "_OPTS", "FLAGS"]
            .iter()
            .any(|end| name.ends_with(end));
    if !names_command && !text.contains(char::is_whitespace) {
        return None;
    }
    commands_mentioned(&text)
}

/// What the variables of a makefile are set to, and makefiles that stand in the line: they become parts of its commands.
fn set_for_make(command: &Command, args: &[Arg], script: &Script) -> Option<String> {
    let mut words = String::new();
    let values = args.iter().map(Arg::with_holes).filter_map(|word| {
        word.split_once('=').filter(|(name, _)| !name.starts_with('-')).map(|(_, value)| value.to_owned())
    });
    // A makefile that other commands write.
    let written = args.iter().filter(|arg| arg.is_pipe()).map(|arg| arg.written.clone());
    for text in values.chain(texts_told(command, script)).chain(written) {
        add_words(&text, &mut words);
    }
    Some(blanks_folded(&words)).filter(|words| !words.is_empty())
}

/// The words of a text that may hold commands.
pub(super) fn commands_mentioned(text: &str) -> Option<String> {
    let mut words = String::new();
    add_words(text, &mut words);
    Some(blanks_folded(&words)).filter(|words| !words.is_empty())
}

fn add_words(text: &str, words: &mut String) {
    let divides = |c: char| c.is_whitespace() || "'\"`()[]{};,=:!|&<>$\\".contains(c);
    // `\n` and `\t` of `printf` divide, too.
    let text = text.replace("\\n", " ").replace("\\t", " ");
    for word in text.split(divides) {
        words.push(' ');
        // `/usr/bin/rm` is `rm`.
        words.push_str(if word.contains("bin/") { base_name(word) } else { word });
    }
}

/// Whether nothing is known of a program, so that whatever it is given may be commands.
pub(super) fn is_unknown(command: &Command, args: &[Arg]) -> bool {
    let Some((name, rest)) = args.split_first() else { return false };
    name.literal().is_some_and(|name| !takes_data(base_name(name), rest)) && !is_seen_through(command)
}

fn takes_data(name: &str, rest: &[Arg]) -> bool {
    let is_known = TAKE_DATA.contains(&name)
        || programs::program(name).is_some()
        || super::deeds::is_known(name) && !RUN_PARTS.contains(&name)
        || matches!(name, "find" | "printf" | "test" | "[" | "ps" | "tar" | "unzip");
    let runs = |arg: &Arg| {
        arg.literal().is_some_and(|word| {
            let option = word.split_once('=').map_or(word, |(option, _)| option);
            // A script by its path is no name of a service.
            let is_path = name == "service" && word.contains('/');
            is_path
                || RUNNING_WORDS.contains(&option)
                || RUNNING_WORDS_OF.iter().any(|(of, words)| *of == name && words.contains(&option))
                || (matches!(word, "run" | "--") && !RUN_SCRIPTS.contains(&name))
        })
    };
    is_known && !rest.iter().any(runs)
}
