//! What a command tried and could not do. The kernel tells the command and nobody else, so this reads what the command
//! complained of: lines of its errors that name a path the box does not let it have. A command that keeps silent about it
//! cannot be seen; what was found on the disk afterwards can, and is told for certain.

use std::path::{Path, PathBuf};

use pelton_sandbox::limits::VIOLATIONS_MAX;
use pelton_sandbox::plan::{How, Place};
use pelton_sandbox::protected;
use pelton_sandbox::{Change, Plan, Tampering};

use super::Sandbox;

/// What programs say when they may not.
const REFUSALS: &[&str] = &[
    "Read-only file system",
    "Permission denied",
    "Operation not permitted",
    "No such device or address",
    "Is a directory",
    "Device or resource busy",
    "Invalid cross-device link",
    "read-only file system",
    "permission denied",
    "EROFS",
    "EACCES",
    "EPERM",
];
/// What they say when there is no network.
const NO_NETWORK: &[&str] = &[
    "Temporary failure in name resolution",
    "Could not resolve host",
    "Name or service not known",
    "Network is unreachable",
    "getaddrinfo",
    "EAI_AGAIN",
    "socket: Operation not permitted",
    "/dev/tcp/",
    "/dev/udp/",
    "Couldn't connect to server",
    "Failed to connect",
];

/// What was seen of a command that has ended.
pub(crate) struct Seen<'a> {
    pub command: &'a str,
    /// Its errors.
    pub stderr: &'a str,
    /// What else it printed: its errors, too, where it sends them there.
    pub stdout: &'a str,
    pub cwd: &'a Path,
    pub plan: &'a Plan,
    pub tampering: &'a [Tampering],
    /// Hosts it asked the proxy for and was refused, and why: this is certain.
    pub hosts: &'a [String],
}

impl Sandbox {
    /// What the model is told about it, in a few lines; nothing if nothing was seen.
    pub fn report(&self, seen: &Seen<'_>) -> Vec<String> {
        let mut lines: Vec<String> = seen.tampering.iter().map(told).collect();
        let told = |host: &&String| !self.ignores(seen.command, host.split(' ').next().unwrap_or_default());
        let hosts = seen.hosts.iter().filter(told).take(VIOLATIONS_MAX);
        let mut named: Vec<String> = hosts.map(|host| format!("network: {host}")).collect();
        let joined = if joins_errors(seen.command) { seen.stdout } else { "" };
        for line in seen.stderr.lines().chain(joined.lines()) {
            let refused = REFUSALS.iter().any(|words| line.contains(words));
            let offline = NO_NETWORK.iter().any(|words| line.contains(words));
            let violation = if offline {
                Some(format!("network: {}", line.trim()))
            } else if refused {
                paths_in(line, seen.cwd)
                    .into_iter()
                    .find_map(|path| why(seen.plan, &path).or_else(|| why(seen.plan, &led_to(&path)?)))
                    .map(|(path, what)| format!("{what}: {}", path.display()))
                    .or_else(|| {
                        is_about_sockets(line, &[seen.stderr, seen.command])
                            .then(|| format!("network: {}", line.trim()))
                    })
            } else {
                None
            };
            let Some(violation) = violation.filter(|violation| !named.contains(violation)) else { continue };
            let subject = violation.split_once(": ").map_or(violation.as_str(), |(_, subject)| subject);
            if !self.ignores(seen.command, subject) && named.len() < VIOLATIONS_MAX {
                named.push(violation);
            }
        }
        if !named.is_empty() {
            lines.push(format!("[Sandbox: refused {}]", named.join("; ")));
            if self.options.allow_unsandboxed {
                lines.push(
                    "[If the task needs this, ask for it with `dangerouslyDisableSandbox`; it has to be approved.]".to_owned(),
                );
            }
        }
        lines
    }
}

fn told(tampering: &Tampering) -> String {
    let path = tampering.path.display();
    let what = match tampering.what {
        Change::Created => format!("{path} was made by the command, and the name is protected"),
        Change::Changed => format!("{path} was changed by the command, and it is protected"),
        Change::Removed => format!("{path} was removed by the command, and it is protected"),
    };
    match (&tampering.undone, &tampering.aside) {
        (Ok(()), Some(aside)) => {
            format!("[Sandbox: {what}. It was undone; what was there is {} now.]", aside.display())
        }
        (Ok(()), None) => format!("[Sandbox: {what}. It was undone.]"),
        (Err(error), _) => format!("[Sandbox: {what}. IT COULD NOT BE UNDONE: {error}.]"),
    }
}

/// Whether errors are printed where everything else is: `2>&1`, `|&`, `&>`.
fn joins_errors(command: &str) -> bool {
    ["2>&1", "2>& 1", "|&", "&>"].iter().any(|words| command.contains(words))
}

/// Whether a refusal that names no path is one of a socket, by what else was said: Python names the file it comes from, others the
/// call, and some nothing but what they were told to run.
fn is_about_sockets(line: &str, texts: &[&str]) -> bool {
    let is_refused = ["Operation not permitted", "EPERM"].iter().any(|words| line.contains(words));
    is_refused && (line.contains("connect") || texts.iter().any(|text| text.contains("socket")))
}

/// Where a path leads by way of links, if that is elsewhere.
fn led_to(path: &Path) -> Option<PathBuf> {
    let real = crate::places::resolve(path).ok()?.path;
    (real != path).then_some(real)
}

/// What the box has against a path.
fn why(plan: &Plan, path: &Path) -> Option<(PathBuf, &'static str)> {
    let mut around = plan.mounts.iter().filter(|mount| path.starts_with(&mount.path));
    let is_name = |place: &Place| {
        path.parent() == Some(&place.dir) && path.file_name().is_some_and(|name| place.names.hold(name))
    };
    let inmost = around.next_back();
    let what = match inmost.map(|mount| mount.how) {
        Some(How::Writable) if plan.places.iter().any(is_name) => "writing (protected)",
        Some(How::Writable) if inmost.is_some_and(|mount| is_kept_away(path, &mount.path)) => {
            "writing (protected)"
        }
        Some(How::Writable) => return None,
        Some(How::ReadOnly) => "writing (protected)",
        Some(How::Hidden(_)) => "reading",
        None => "writing (outside of the working directories)",
    };
    Some((path.to_path_buf(), what))
}

/// Whether a path leads through a protected name that is not there, in a directory which the command itself may have made.
fn is_kept_away(path: &Path, root: &Path) -> bool {
    path.ancestors().take_while(|path| *path != root).any(|path| {
        path.file_name().is_some_and(|name| protected::find(name).is_some())
            && path.symlink_metadata().is_err()
    })
}

/// Words of a line that could be paths, as absolute ones.
fn paths_in(line: &str, cwd: &Path) -> Vec<PathBuf> {
    // A shell says first who complains, and where: `/bin/bash: line 1: `, `/bin/sh: 1: `.
    let is_number = |word: &str| !word.is_empty() && word.bytes().all(|byte| byte.is_ascii_digit());
    let behind_line = line.split_once(": line ").and_then(|(_, rest)| rest.split_once(": "));
    let behind_number = || {
        let (_, rest) = line.split_once("sh: ")?;
        rest.split_once(": ").filter(|(number, _)| is_number(number))
    };
    let line = behind_line.or_else(behind_number).map_or(line, |(_, rest)| rest);
    let between = |c: char| c.is_whitespace() || "'\"`‘’“”(),;=<>".contains(c);
    let words =
        line.split(between).map(|word| word.trim_end_matches([':', '.'])).filter(|word| !word.is_empty());
    let is_path = |word: &&str| {
        // What stands before a colon is most often the program that complains: it counts only if nothing else does.
        word.contains('/')
            || word.starts_with('.')
            || protected::find(word.as_ref()).is_some()
            || cwd.join(word).symlink_metadata().is_ok()
    };
    let mut found: Vec<PathBuf> = words.filter(is_path).map(|word| normal(&cwd.join(word))).collect();
    // The program itself comes first in its line, and what it could not have last.
    found.reverse();
    found
}

fn normal(path: &Path) -> PathBuf {
    crate::places::normalised(path)
}

#[cfg(test)]
mod tests {
    use pelton_sandbox::plan::{Hides, Mount, Names};

    use super::*;

    fn seen(line: &str) -> Option<String> {
        let mount = |path: &str, how| Mount { path: path.into(), how };
        let plan = Plan {
            mounts: vec![
                mount("/w", How::Writable),
                mount("/secret", How::Hidden(Hides::Directory)),
                mount("/w/.git/config", How::ReadOnly),
            ],
            places: vec![Place { dir: "/w".into(), names: Names::Project }],
            ..Plan::default()
        };
        paths_in(line, Path::new("/w"))
            .iter()
            .find_map(|path| why(&plan, path))
            .map(|(path, what)| format!("{what}: {}", path.display()))
    }

    #[test]
    fn lines_of_common_programs_name_what_was_refused() {
        for (line, expected) in [
            (
                "/bin/bash: line 1: /etc/x: Read-only file system",
                "writing (outside of the working directories): /etc/x",
            ),
            (
                "touch: cannot touch '/opt/a b': Read-only file system",
                "writing (outside of the working directories): /opt/a",
            ),
            (
                "cp: cannot create regular file '../x': Permission denied",
                "writing (outside of the working directories): /x",
            ),
            (
                "/bin/sh: 1: cannot create /etc/x: Permission denied",
                "writing (outside of the working directories): /etc/x",
            ),
            ("cat: /secret/key: Permission denied", "reading: /secret/key"),
            (
                "error: could not lock config file .git/config: Read-only file system",
                "writing (protected): /w/.git/config",
            ),
            (
                "/bin/bash: line 1: lefthook.yml: Read-only file system",
                "writing (protected): /w/lefthook.yml",
            ),
            (
                "mkdir: cannot create directory ‘new/deep/.vscode’: Read-only file system",
                "writing (protected): /w/new/deep/.vscode",
            ),
            ("/w/q/.git: Read-only file system", "writing (protected): /w/q/.git"),
            (
                "Error: EROFS: read-only file system, open '/usr/x'",
                "writing (outside of the working directories): /usr/x",
            ),
        ] {
            assert_eq!(seen(line).as_deref(), Some(expected), "{line}");
        }
        let (dir, elsewhere) = (tempfile::tempdir().unwrap(), tempfile::tempdir().unwrap());
        std::os::unix::fs::symlink(elsewhere.path(), dir.path().join("link")).unwrap();
        let real = elsewhere.path().canonicalize().unwrap().join("x");
        assert_eq!(
            led_to(&dir.path().canonicalize().unwrap().join("link/x")),
            Some(real),
            "links are followed"
        );
        assert!(
            joins_errors("make 2>&1 | tail") && joins_errors("make |& tail") && !joins_errors("make 2>x")
        );
        let python = "Traceback\n  File \"/usr/lib/python3.11/socket.py\", line 232\nPermissionError: [Errno 1] Operation not permitted";
        assert!(is_about_sockets(python.lines().last().unwrap(), &[python]));
        assert!(is_about_sockets("Error: connect EPERM 127.0.0.1:80", &[]));
        assert!(!is_about_sockets("chown: x: Operation not permitted", &["chown 0 x"]));
        for line in [
            "/bin/sh: 1: touch: Permission denied",
            "/usr/bin/bash: line 1: kill: (7) - Operation not permitted",
            "cat: sub/x: Permission denied",
            "make: *** [all] Error 1",
            "",
        ] {
            assert_eq!(seen(line), None, "{line}");
        }
    }
}
