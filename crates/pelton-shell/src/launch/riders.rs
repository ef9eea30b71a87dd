//! Options and variables of ordinary programs whose value is a program or a command: it rides along with what the program is known
//! for.

use crate::script::Command;
use crate::word::Word;

use super::{Further, shell};

/// Programs, and their options whose value is run.
const OPTIONS: &[(&[&str], &[&str])] = &[
    (
        &["tar", "gtar", "bsdtar"],
        &[
            "-F",
            "-I",
            "--checkpoint-action",
            "--info-script",
            "--new-volume-script",
            "--rmt-command",
            "--rsh-command",
            "--to-command",
            "--use-compress-program",
        ],
    ),
    (&["rsync"], &["-e", "--rsh", "--rsync-path"]),
    (&["man"], &["-P", "--pager", "-H", "--html"]),
    (&["zip"], &["-TT", "--unzip-command"]),
    (&["sort", "gsort"], &["--compress-program"]),
    (&["split", "gsplit", "csplit"], &["--filter"]),
    (&["rg"], &["--pre", "--hostname-bin"]),
    (&["ack", "ag", "bat", "batcat", "delta", "journalctl"], &["--pager"]),
    (&["fzf", "sk"], &["--preview", "--execute", "--bind", "--reload"]),
    (&["nc", "ncat", "netcat"], &["-e", "-c", "--exec", "--sh-exec", "--lua-exec"]),
    (&["scp", "sftp"], &["-S", "-D"]),
    (&["tcpdump"], &["-z", "--postrotate-command"]),
    (&["wget"], &["--use-askpass"]),
    (
        &["aria2c"],
        &[
            "--on-download-complete",
            "--on-download-start",
            "--on-download-error",
            "--on-bt-download-complete",
        ],
    ),
    (&["hyperfine"], &["-p", "--prepare", "-s", "--setup", "-c", "--cleanup", "-S", "--shell"]),
    (&["dpkg", "apt", "apt-get"], &["--pre-invoke", "--post-invoke"]),
    (&["logrotate"], &["-m", "--mail"]),
    (&["start-stop-daemon"], &["-x", "--exec", "-a", "--startas"]),
    (&["gcloud"], &["--command"]),
    (&["fly", "flyctl"], &["-C", "--command"]),
    (&["vagrant"], &["-c", "--command"]),
    (&["ansible"], &["-a", "--args"]),
    (&["xterm", "alacritty", "konsole", "urxvt", "rxvt", "st", "foot"], &["-e"]),
    (&["docker", "podman", "nerdctl", "docker-compose"], &["--entrypoint", "--health-cmd"]),
    (&["su", "runuser"], &["-s", "--shell"]),
    (&["nano"], &["-s", "--speller"]),
    (&["go"], &["-exec", "-toolexec", "-vettool"]),
    (&["ctest"], &["--test-command"]),
    (&["rpm", "rpmbuild"], &["-E", "--eval"]),
    (&["valgrind", "strace"], &["--log-socket-cmd"]),
    (&["npm", "npx", "pnpm", "pnpx"], &["--script-shell", "--shell"]),
];

/// Programs, and their options whose value says what else they run or load: settings, files with settings, libraries.
const SETTINGS: &[(&[&str], &[&str])] = &[
    (&["cargo"], &["--config"]),
    (&["npm", "npx", "pnpm", "pnpx"], &["--node-options", "--userconfig", "--globalconfig"]),
    (&["ssh", "scp", "sftp"], &["-F"]),
    (&["ssh"], &["-I"]),
    (&["curl"], &["-K", "--config", "--engine"]),
    (&["wget"], &["-e", "--execute", "--config"]),
    (&["kubectl", "oc", "helm"], &["--kubeconfig"]),
];

/// What a program of databases reads from a command, writes to one, or loads: `.once |command`.
const SQL_RUNS: &[&str] = &[".load", "load_extension"];

/// Beginnings of what stands before the command in such a value: `exec=rm x`, `enter:execute(rm x)`.
const BEFORE_COMMANDS: &[&str] = &["exec=", "!", "|", "%("];

/// Settings of `ssh` that name a command.
const SSH_SETTINGS: &[&str] =
    &["proxycommand", "localcommand", "knownhostscommand", "remotecommand", "proxyusefdpass", "match"];

/// Settings of `ssh` that name a library to load.
const SSH_LIBRARIES: &[&str] = &["pkcs11provider", "securitykeyprovider", "xauthlocation", "include"];

/// Variables that name a command.
const VARIABLES: &[&str] = &[
    "BAT_PAGER",
    "BROWSER",
    "CVS_RSH",
    "EDITOR",
    "FCEDIT",
    "GIT_ASKPASS",
    "GIT_EDITOR",
    "GIT_EXTERNAL_DIFF",
    "GIT_PAGER",
    "GIT_PROXY_COMMAND",
    "GIT_SEQUENCE_EDITOR",
    "GIT_SSH",
    "GIT_SSH_COMMAND",
    "LESSCLOSE",
    "LESSOPEN",
    "MANPAGER",
    "PAGER",
    "PROMPT_COMMAND",
    "RSYNC_CONNECT_PROG",
    "RSYNC_RSH",
    "SHELL",
    "SSH_ASKPASS",
    "SUDO_ASKPASS",
    "SYSTEMD_PAGER",
    "VISUAL",
];

/// Programs that nobody minds as the value of such an option.
const USUAL: &[&str] = &[
    "ssh", "cat", "less", "more", "true", "gzip", "pigz", "zstd", "zstdmt", "xz", "bzip2", "pbzip2", "lz4",
    "lzma", "lzop",
];

/// What the options of this program run.
pub(super) fn options(command: &Command, name: &str, arguments: &[Word]) -> Further {
    let mut further = Further::default();
    for (_, options) in OPTIONS.iter().filter(|(names, _)| names.contains(&name)) {
        for value in values(arguments, options) {
            further.add(ridden(command, &value));
        }
    }
    for (_, options) in SETTINGS.iter().filter(|(names, _)| names.contains(&name)) {
        if !values(arguments, options).is_empty() {
            further.add(Further { hidden: true, ..Further::default() });
        }
    }
    match name {
        "sqlite3" | "duckdb" => {
            for text in arguments.iter().filter_map(Word::literal) {
                let text = text.trim_start();
                if let Some((_, piped)) = text.split_once('|').filter(|_| text.starts_with('.')) {
                    further.add(ridden(command, &Word::of_literal(piped.trim_end_matches(['\'', '"']))));
                }
                if SQL_RUNS.iter().any(|run| text.contains(run)) {
                    further.add(Further { hidden: true, ..Further::default() });
                }
            }
        }
        "ssh" | "scp" | "sftp" | "mosh" | "autossh" => {
            for value in values(arguments, &["-o"]) {
                further.add(setting(command, &value));
            }
        }
        // `EXEC:command` and `SYSTEM:command` are addresses.
        "socat" => {
            for word in arguments {
                let Some(address) = word.literal() else { continue };
                let kind = address.split(':').next().unwrap_or_default().to_ascii_lowercase();
                if matches!(kind.as_str(), "exec" | "system" | "shell") {
                    further.add(ridden(
                        command,
                        &Word::of_literal(address[kind.len()..].trim_start_matches(':')),
                    ));
                }
            }
        }
        // Variables of a makefile become parts of its commands, and text that is read as one.
        "make" | "gmake" => {
            for value in values(arguments, &["--eval", "-E"]) {
                further.unknown = true;
                further.add(ridden(command, &value));
            }
            for word in arguments {
                if word.literal_prefix().starts_with("SHELL=")
                    || word.literal_prefix().starts_with(".SHELLFLAGS=")
                {
                    further.unknown = true;
                    further.hidden = true;
                    if let Some((_, value)) = word.literal().and_then(|text| text.split_once('=')) {
                        further.add(ridden(command, &Word::of_literal(value)));
                    }
                }
            }
        }
        // `Pre-Invoke` and the like are settings.
        "apt" | "apt-get" => {
            for value in values(arguments, &["-o", "--option"]) {
                if let Some((name, text)) = value.literal().and_then(|text| text.split_once('='))
                    && name.to_ascii_lowercase().contains("invoke")
                {
                    further.add(ridden(command, &Word::of_literal(text)));
                }
            }
        }
        _ => {}
    }
    further
}

/// What the variables before a command make other programs run.
pub(super) fn variables(command: &Command) -> Further {
    let mut further = Further::default();
    let named = |name: &str| VARIABLES.contains(&name);
    for assignment in command.assignments.iter().filter(|assignment| named(&assignment.name)) {
        further.add(ridden(command, &assignment.value));
    }
    if matches!(command.name(), Some("export" | "declare" | "typeset" | "readonly")) {
        for word in &command.words[1..] {
            if let Some((name, value)) = word.literal().and_then(|text| text.split_once('='))
                && named(name)
            {
                further.add(ridden(command, &Word::of_literal(value)));
            }
        }
    }
    further
}

/// The values of options: the next word, or what is glued to the option.
pub(super) fn values(arguments: &[Word], options: &[&str]) -> Vec<Word> {
    let mut values = Vec::new();
    for (at, word) in arguments.iter().enumerate() {
        let text = word.literal_prefix();
        if !text.starts_with(['-', '+']) {
            continue;
        }
        for option in options {
            let Some(glued) = text.strip_prefix(option).or_else(|| abbreviated(text, option)) else {
                continue;
            };
            match word.literal() {
                Some(_) if glued.is_empty() && *option != "+" => {
                    values.extend(arguments.get(at + 1).cloned());
                }
                // A letter has its value glued to it, a name has it behind a sign.
                Some(_) if option.len() > 2 && *option != "-TT" => {
                    values.extend(glued.strip_prefix('=').map(Word::of_literal));
                }
                Some(_) => values.push(Word::of_literal(glued)),
                // Nobody knows what is glued to it.
                None if glued.starts_with('=') || option.len() <= 2 => values.push(word.clone()),
                None => {}
            }
        }
    }
    values
}

/// What stands behind the beginning of a long option, which is as good as all of it.
fn abbreviated<'t>(text: &'t str, option: &str) -> Option<&'t str> {
    /// Shorter ones mean too many.
    const LENGTH_MIN: usize = 5;
    let end = text.find('=').unwrap_or(text.len());
    let is_beginning = option.starts_with("--") && end >= LENGTH_MIN && option.starts_with(&text[..end]);
    is_beginning.then(|| &text[end..])
}

/// A command that rides along.
pub(super) fn ridden(command: &Command, value: &Word) -> Further {
    let mut further = match value.literal() {
        Some(text) => {
            let text = text.trim();
            let behind = BEFORE_COMMANDS.iter().find_map(|before| text.strip_prefix(before)).unwrap_or(text);
            // `key:execute(command)` of finders.
            let behind = match behind.split_once('(') {
                Some((before, inside))
                    if before.ends_with("execute")
                        || before.contains("execute-")
                        || before.ends_with("reload") =>
                {
                    inside.strip_suffix(')').unwrap_or(inside)
                }
                _ => behind,
            };
            shell::text(command, &Word::of_literal(behind))
        }
        None => Further::unknown(),
    };
    let is_usual = |inner: &Command| inner.name().is_some_and(|name| USUAL.contains(&super::program(name)));
    further.hidden = further.unknown || !further.commands.iter().all(is_usual);
    further
}

/// `Name=value` or `Name value`, as `ssh` takes them.
fn setting(command: &Command, value: &Word) -> Further {
    let Some(text) = value.literal() else { return Further { hidden: true, ..Further::unknown() } };
    let text = text.trim();
    let at = text.find(['=', ' ', '\t']).unwrap_or(text.len());
    let (name, value) = text.split_at(at);
    let name = name.to_ascii_lowercase();
    if SSH_LIBRARIES.contains(&name.as_str()) {
        return Further { hidden: true, ..Further::unknown() };
    }
    if !SSH_SETTINGS.contains(&name.as_str()) {
        return Further::default();
    }
    let value = value.trim_start_matches([' ', '\t', '=']);
    let value = value.strip_prefix('"').and_then(|value| value.strip_suffix('"')).unwrap_or(value);
    ridden(command, &Word::of_literal(value))
}
