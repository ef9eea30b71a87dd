//! Programs that run whatever their words say: no rule with a star vouches for them.

use super::arg::Arg;

const LAUNCHERS: &[&str] = &[
    "env",
    "sudo",
    "doas",
    "watch",
    "ionice",
    "setsid",
    "flock",
    "chrt",
    "taskset",
    "xargs",
    "parallel",
    "unshare",
    "nsenter",
    "chroot",
    "setarch",
    "strace",
    "ltrace",
    "script",
    "su",
    "runuser",
    "setpriv",
    "systemd-run",
    "busybox",
    "toybox",
    "unbuffer",
    "pkexec",
    "gosu",
    "su-exec",
    "exec",
    "entr",
    "numactl",
    "prlimit",
    "bwrap",
    "firejail",
    "timeout",
    "time",
    "nice",
    "nohup",
    "stdbuf",
    "command",
    "builtin",
    "noglob",
];

const SHELLS: &[&str] = &["sh", "bash", "dash", "zsh", "ksh", "mksh", "ash", "rbash"];

/// Whether a program runs the texts that it is told.
pub(super) fn is_shell(name: &str) -> bool {
    SHELLS.contains(&name)
}

/// The name of a program without its directory.
pub(super) fn base_name(word: &str) -> &str {
    word.rsplit('/').next().unwrap_or(word)
}

/// Whether this command runs whatever its words say.
pub(super) fn launches(args: &[Arg]) -> bool {
    let Some(name) = args.first().and_then(Arg::literal).map(base_name) else { return false };
    let takes = |options: &[&str]| {
        args[1..].iter().any(|arg| options.iter().any(|option| arg.prefix().starts_with(option)))
    };
    match name {
        "find" => takes(&["-exec", "-ok", "-delete", "-fprint", "-fls"]),
        "fd" | "fdfind" => takes(&["-x", "-X", "--exec"]),
        name if SHELLS.contains(&name) => args[1..].iter().any(|arg| {
            let text = arg.prefix();
            text.starts_with('-') && !text.starts_with("--") && text.contains('c')
        }),
        name => LAUNCHERS.contains(&name),
    }
}
