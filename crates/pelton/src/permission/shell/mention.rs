//! Programs of which nothing is known: their words may be commands, which prohibitions should know of.
//!
//! Nobody can list every program that runs others (`tini -- rm x`, `heroku run rm x`, `concurrently 'rm x'`). What is known are
//! programs whose words are data; for all others, a rule that restricts asks if what it speaks of stands in their words.

use pelton_shell::{Command, RedirectionKind, is_seen_through};

use super::arg::Arg;
use super::launch::base_name;
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

/// Programs whose `run` means something that is written elsewhere, and whose `--` ends their own options.
const RUN_SCRIPTS: &[&str] = &[
    "npm", "yarn", "pnpm", "bun", "cargo", "go", "gradle", "gradlew", "mvn", "dotnet", "make", "git", "gh",
    "swift", "poetry", "uv",
];

/// The words of a command that may be commands, with nothing but blanks between them; none if its words are data.
pub(super) fn mentioned(command: &Command, args: &[Arg]) -> Option<String> {
    let (name, rest) = args.split_first()?;
    let name = base_name(name.literal()?);
    // What it is told line by line may be commands, too.
    let told: Vec<Arg> = command
        .redirections
        .iter()
        .filter(|redirection| {
            matches!(redirection.kind, RedirectionKind::HereString | RedirectionKind::HereDocument { .. })
        })
        .map(|redirection| Arg::of(&redirection.target))
        .collect();
    if rest.is_empty() && told.is_empty() || takes_data(name, rest) || is_seen_through(command) {
        return None;
    }
    let divides = |c: char| c.is_whitespace() || "'\"`()[]{};,=:!|&<>$\\".contains(c);
    let mut words = String::new();
    for arg in rest.iter().chain(&told) {
        let text = arg.with_holes();
        // `/usr/bin/rm` is `rm`.
        for word in text.split(divides) {
            words.push(' ');
            words.push_str(if word.contains("bin/") { base_name(word) } else { word });
        }
    }
    Some(blanks_folded(&words)).filter(|words| !words.is_empty())
}

fn takes_data(name: &str, rest: &[Arg]) -> bool {
    let is_known = TAKE_DATA.contains(&name)
        || programs::program(name).is_some()
        || super::deeds::is_known(name)
        || matches!(name, "find" | "printf" | "test" | "[" | "ps" | "tar" | "unzip");
    let runs = |arg: &Arg| {
        arg.literal().is_some_and(|word| {
            let option = word.split_once('=').map_or(word, |(option, _)| option);
            // A script by its path is no name of a service.
            let is_path = name == "service" && word.contains('/');
            is_path
                || RUNNING_WORDS.contains(&option)
                || (matches!(word, "run" | "--") && !RUN_SCRIPTS.contains(&name))
        })
    };
    is_known && !rest.iter().any(runs)
}
