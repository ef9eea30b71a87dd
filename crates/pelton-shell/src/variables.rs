//! Which variables a command sets, which of them steer programs, and which are known to do no harm.

use crate::launch::behind_plain_launchers;
use crate::script::Command;
use crate::word::{Part, Word};

/// Variables that choose what runs, what is loaded, or how the shell reads what follows.
const STEERING: &[&str] = &[
    "AWKPATH",
    "AWKLIBPATH",
    "BASHOPTS",
    "BASH_ALIASES",
    "BASH_CMDS",
    "BASH_COMPAT",
    "BASH_ENV",
    "BASH_LOADABLES_PATH",
    "BASH_XTRACEFD",
    "BROWSER",
    "CC",
    "CDPATH",
    "CFLAGS",
    "CLASSPATH",
    "CPATH",
    "CPPFLAGS",
    "CXX",
    "CXXFLAGS",
    "C_INCLUDE_PATH",
    "CPLUS_INCLUDE_PATH",
    "DEBUGINFOD_URLS",
    "DOCKER_CONFIG",
    "DOCKER_CONTEXT",
    "DOCKER_HOST",
    "DYLD_INSERT_LIBRARIES",
    "EDITOR",
    "ENV",
    "EXECIGNORE",
    "FCEDIT",
    "FIGNORE",
    "FPATH",
    "FUNCNEST",
    "GCONV_PATH",
    "GLOBIGNORE",
    "GOFLAGS",
    "GOPATH",
    "GOROOT",
    "GREP_OPTIONS",
    "HISTFILE",
    "HOME",
    "HOSTALIASES",
    "IFS",
    "INPUTRC",
    "JAVA_HOME",
    "JAVA_TOOL_OPTIONS",
    "JDK_JAVA_OPTIONS",
    "KUBECONFIG",
    "LD",
    "LDFLAGS",
    "LESS",
    "LESSCLOSE",
    "LESSOPEN",
    "LESSKEY",
    "LIBRARY_PATH",
    "LOCALDOMAIN",
    "LOCPATH",
    "LUA_INIT",
    "LUA_PATH",
    "LUA_CPATH",
    "LYNX_CFG",
    "MAIL",
    "MAILPATH",
    "MAILCHECK",
    "MAKE",
    "MAKEFILES",
    "MAKEFLAGS",
    "MALLOC_TRACE",
    "MANOPT",
    "MANPAGER",
    "MANPATH",
    "MAVEN_OPTS",
    "NIX_PATH",
    "NLSPATH",
    "NODE",
    "NODE_OPTIONS",
    "NODE_PATH",
    "NODE_EXTRA_CA_CERTS",
    "OPENSSL_CONF",
    "OPENSSL_ENGINES",
    "OPENSSL_MODULES",
    "PAGER",
    "PATH",
    "PATHEXT",
    "PHPRC",
    "PHP_INI_SCAN_DIR",
    "POSIXLY_CORRECT",
    "PROMPT_COMMAND",
    "PS0",
    "PS1",
    "PS2",
    "PS3",
    "PS4",
    "PSModulePath",
    "PWD",
    "OLDPWD",
    "RES_OPTIONS",
    "RESOLV_HOST_CONF",
    "RSYNC_RSH",
    "RSYNC_CONNECT_PROG",
    "RUBYLIB",
    "RUBYOPT",
    "RUSTC",
    "RUSTC_WRAPPER",
    "RUSTC_WORKSPACE_WRAPPER",
    "RUSTDOC",
    "RUSTDOCFLAGS",
    "RUSTFLAGS",
    "RUSTUP_TOOLCHAIN",
    "SHELL",
    "SHELLOPTS",
    "SSH_ASKPASS",
    "SSH_AUTH_SOCK",
    "SUDO_ASKPASS",
    "SUDO_EDITOR",
    "SUDO_PROMPT",
    "SYSTEMD_EDITOR",
    "SYSTEMD_PAGER",
    "TAR_OPTIONS",
    "TERMCAP",
    "TERMINFO",
    "TERMINFO_DIRS",
    "TEXTDOMAIN",
    "TEXTDOMAINDIR",
    "TMOUT",
    "TMPDIR",
    "TZDIR",
    "UNZIP",
    "VIMINIT",
    "VISUAL",
    "WGETRC",
    "XDG_CONFIG_DIRS",
    "XDG_CONFIG_HOME",
    "XDG_DATA_DIRS",
    "XDG_DATA_HOME",
    "ZDOTDIR",
    "ZIPOPT",
    "_JAVA_OPTIONS",
    "auto_resume",
    "histchars",
];

/// Beginnings of names of such variables.
const STEERING_FAMILIES: &[&str] = &[
    "BASH_",
    "BUN_",
    "BUNDLE_",
    "CARGO_",
    "CMAKE_",
    "COMPOSE_",
    "CURL_",
    "DENO_",
    "DYLD_",
    "ELECTRON_",
    "ERL_",
    "GCC_",
    "GEM_",
    "GIT_",
    "GLIBC_",
    "GRADLE_",
    "LD_",
    "LESS_",
    "MAKE_",
    "NPM_",
    "npm_",
    "PERL5",
    "PERL_",
    "PIP_",
    "PIPENV_",
    "POETRY_",
    "PYTEST_",
    "PYTHON",
    "RUBY",
    "SSH_",
    "SSL_",
    "SVN_",
    "TSX_",
    "UV_",
    "VIRTUAL_ENV",
    "YARN_",
    "yarn_",
];

/// Variables that bash keeps as numbers: what is assigned to them is evaluated, and a subscript in it may run a command.
const NUMBERS: &[&str] = &[
    "BASHPID",
    "EPOCHREALTIME",
    "EPOCHSECONDS",
    "EUID",
    "HISTCMD",
    "LINENO",
    "OPTIND",
    "PPID",
    "RANDOM",
    "SECONDS",
    "SRANDOM",
    "UID",
];

/// Variables that change how output looks or how much is said, and nothing that runs.
const HARMLESS: &[&str] = &[
    "CI",
    "CLICOLOR",
    "CLICOLOR_FORCE",
    "COLORTERM",
    "COLUMNS",
    "DEBIAN_FRONTEND",
    "FORCE_COLOR",
    "GOARCH",
    "GOOS",
    "LANG",
    "LANGUAGE",
    "LINES",
    "LS_COLORS",
    "NODE_DISABLE_COLORS",
    "NODE_ENV",
    "NO_COLOR",
    "NO_UPDATE_NOTIFIER",
    "PYTHONDONTWRITEBYTECODE",
    "PYTHONUNBUFFERED",
    "PYTHONHASHSEED",
    "RAILS_ENV",
    "RACK_ENV",
    "RUST_BACKTRACE",
    "RUST_LIB_BACKTRACE",
    "RUST_LOG",
    "TERM",
    "TZ",
    "CARGO_TERM_COLOR",
    "CARGO_INCREMENTAL",
    "PYTEST_DISABLE_PLUGIN_AUTOLOAD",
];
const HARMLESS_FAMILIES: &[&str] = &["LC_"];

/// Whether a variable steers programs: what runs, what is loaded, how the shell reads.
///
/// ```
/// assert!(pelton_shell::steers("LD_PRELOAD"));
/// assert!(!pelton_shell::steers("NODE_ENV"));
/// ```
pub fn steers(name: &str) -> bool {
    let listed = STEERING.contains(&name) || STEERING_FAMILIES.iter().any(|family| name.starts_with(family));
    // Proxies decide whom programs talk to.
    (listed && !HARMLESS.contains(&name))
        || NUMBERS.contains(&name)
        || name.to_ascii_lowercase().ends_with("_proxy")
}

/// Whether a variable is known to do no harm, so that a rule about the command behind it still holds. Most variables are neither
/// this nor [steering](steers): nobody knows what they do.
///
/// ```
/// assert!(pelton_shell::is_harmless("LC_ALL"));
/// assert!(!pelton_shell::is_harmless("FOO"));
/// ```
pub fn is_harmless(name: &str) -> bool {
    HARMLESS.contains(&name) || HARMLESS_FAMILIES.iter().any(|family| name.starts_with(family))
}

/// The variables that a command sets: by assignments before it, as the variable of a loop, as a builtin that declares or reads into variables,
/// or with `${name:=…}`. Names that are not literal are [doubts](crate::DoubtKind::EvaluatedArgument) of the script.
///
/// ```
/// let script = pelton_shell::read("A=1 export PATH=/x B").unwrap();
/// assert_eq!(pelton_shell::variables_set(&script.commands[0]), ["A", "PATH", "B"]);
/// ```
pub fn variables_set(command: &Command) -> Vec<String> {
    let mut names: Vec<String> =
        command.assignments.iter().map(|assignment| assignment.name.clone()).collect();
    let words = behind_plain_launchers(&command.words).words;
    if let Some((name, arguments)) = words.split_first() {
        names.extend(set_by_builtin(name.literal().unwrap_or_default(), arguments));
    }
    let values = command.assignments.iter().map(|assignment| &assignment.value);
    let targets = command.redirections.iter().map(|redirection| &redirection.target);
    for part in command.words.iter().chain(values).chain(targets).flat_map(Word::parts) {
        if let Part::Parameter { name, plain: false, .. } = part {
            names.push(name.clone());
        }
    }
    names
}

fn set_by_builtin(builtin: &str, arguments: &[Word]) -> Vec<String> {
    let after = |options: &[&str]| {
        let at = arguments.iter().position(|word| word.literal().is_some_and(|text| options.contains(&text)));
        at.and_then(|at| arguments.get(at + 1))
            .map(|word| word.literal_prefix().to_owned())
            .into_iter()
            .collect()
    };
    let named = || {
        let words = arguments.iter().map(Word::literal_prefix).filter(|text| !text.starts_with(['-', '+']));
        words.map(|text| text.split(['=', '+', '[']).next().unwrap_or_default().to_owned()).collect()
    };
    match builtin {
        "declare" | "typeset" | "local" | "export" | "readonly" | "read" | "mapfile" | "readarray"
        | "unset" | "getopts" | "let" => named(),
        "printf" => after(&["-v"]),
        "wait" => after(&["-p"]),
        _ => Vec::new(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn no_variable_is_both() {
        for name in HARMLESS.iter().chain(STEERING) {
            assert!(!(steers(name) && is_harmless(name)), "{name}");
        }
    }

    #[test]
    fn families_count() {
        for name in [
            "GIT_SSH_COMMAND",
            "PYTHONPATH",
            "PERL5LIB",
            "BASH_FUNC_ls%%",
            "https_proxy",
            "npm_config_x",
            "DYLD_X",
        ] {
            assert!(steers(name), "{name}");
        }
        for name in ["FOO", "X", "DEBUG", "lang"] {
            assert!(!steers(name) && !is_harmless(name), "{name}");
        }
    }
}
