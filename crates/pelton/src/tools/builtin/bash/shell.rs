//! The shell: finding it, starting it, and learning where it ended up.

use std::borrow::Cow;
use std::ffi::{OsStr, OsString};
use std::fs::File;
use std::io::{self, PipeReader, Read};
use std::os::fd::{AsRawFd, FromRawFd, OwnedFd, RawFd};
use std::os::unix::ffi::{OsStrExt, OsStringExt};
use std::os::unix::fs::PermissionsExt;
use std::os::unix::process::ExitStatusExt;
use std::path::{Path, PathBuf};
use std::process::ExitStatus;

use nix::fcntl::{FcntlArg, OFlag, fcntl};

use super::boxed::Held;
use crate::permission::shell::is_read_only;
use crate::secrets::for_programs;
use crate::tools::process::{Launch, Printed, ProcessTree};
use crate::tools::tool::ToolCx;

/// Descriptors below this belong to scripts: `exec 9>lock` is a common sight.
const DIRECTORY_DESCRIPTOR_MIN: i32 = 200;
/// The longest path a system reports.
const DIRECTORY_BYTES_MAX: u64 = 16 * 1024;

/// The program that runs commands.
pub(super) struct Shell {
    program: PathBuf,
    /// What every command is handed to.
    prefix: Option<OsString>,
}

/// Names the shell.
const SHELL_VARIABLE: &str = "CLAUDE_CODE_SHELL";
/// Names a program that gets every command to run.
const PREFIX_VARIABLE: &str = "CLAUDE_CODE_SHELL_PREFIX";

/// Where the shell says in which directory it ended.
pub(super) struct Directory {
    pipe: PipeReader,
}

impl Shell {
    /// The one that the environment names if it is bash, which is what commands are understood as; bash from the `PATH`;
    /// else sh.
    pub fn find(env: &[(OsString, OsString)]) -> Self {
        let of = |wanted: &str| env.iter().rev().find(|(name, _)| name == wanted).map(|(_, value)| value);
        let prefix = of(PREFIX_VARIABLE).filter(|prefix| !prefix.is_empty()).cloned();
        let named = of(SHELL_VARIABLE).map(Path::new);
        let is_bash = |file: &&Path| file.file_name() == Some(OsStr::new("bash")) && file.is_absolute();
        if let Some(program) = named.filter(is_bash).filter(|file| is_program(file)) {
            return Self { program: program.to_path_buf(), prefix };
        }
        let path = of("PATH").map_or(&b""[..], |path| path.as_bytes());
        let dirs = || path.split(|byte| *byte == b':').map(|dir| Path::new(OsStr::from_bytes(dir)));
        let find = |name| {
            dirs().filter(|dir| dir.is_absolute()).map(|dir| dir.join(name)).find(|file| is_program(file))
        };
        let program = find("bash").or_else(|| find("sh")).unwrap_or_else(|| PathBuf::from("/bin/sh"));
        Self { program, prefix }
    }

    /// The command as it is run: handed to the user's own program as one word, if there is one.
    fn line<'c>(&self, command: &'c str) -> Cow<'c, str> {
        match self.prefix.as_deref().and_then(OsStr::to_str) {
            None => Cow::Borrowed(command),
            Some(prefix) => Cow::Owned(format!("{prefix} '{}'", command.replace('\'', r"'\''"))),
        }
    }

    /// Its file.
    pub fn program(&self) -> &Path {
        &self.program
    }

    /// Starts a command. There is no saying where it ended if it only looks: that is where it began.
    pub fn start(
        &self,
        command: &str,
        cx: &ToolCx,
        held: Option<&Held>,
    ) -> io::Result<(ProcessTree, Option<Directory>)> {
        if is_read_only(command) && self.prefix.is_none() && !has_more_to_say(cx) {
            // Without anything behind it, the shell becomes the program: one process fewer for each such command.
            let args = [OsStr::new("-c"), OsStr::new(command)];
            let boxed = self.boxed(&args, cx, held, &[]);
            let args = boxed.args();
            return Ok((watched(ProcessTree::start(&boxed.launch(&args, cx))?, cx), None));
        }
        let (reader, writer) = io::pipe()?;
        // Non-blocking: background processes inherit the other end, so this one may never see its end.
        fcntl(&reader, FcntlArg::F_SETFL(OFlag::O_NONBLOCK))?;
        let writer = out_of_the_way(writer.into());
        let number = writer.as_raw_fd();
        // On the same line as the command, so that error messages count its lines right. The exit status stays that of
        // the command; one that sets its own EXIT trap or replaces the shell just does not move the session.
        let command = self.line(command);
        let script =
            format!("trap '{{ pwd -P >/dev/fd/{number}; }} 2>/dev/null' EXIT; {}{command}", before(cx));
        let args = [OsStr::new("-c"), OsStr::new(&script)];
        let boxed = self.boxed(&args, cx, held, &[number]);
        let args = boxed.args();
        let tree = ProcessTree::start(&Launch { keep: Some(&writer), ..boxed.launch(&args, cx) })?;
        Ok((watched(tree, cx), Some(Directory { pipe: reader })))
    }

    /// Starts a command that prints into a file. Where it ends up is nobody's business. Its box goes when it has gone.
    pub fn start_into(
        &self,
        file: &File,
        command: &str,
        cx: &ToolCx,
        held: Option<Held>,
    ) -> io::Result<ProcessTree> {
        let command = self.line(command);
        let script = format!("{}{command}", before(cx));
        let args = [OsStr::new("-c"), OsStr::new(&script)];
        let boxed = self.boxed(&args, cx, held.as_ref(), &[]);
        let args = boxed.args();
        let launch = Launch { printed: Printed::Into(file), ..boxed.launch(&args, cx) };
        let mut tree = watched(ProcessTree::start(&launch)?, cx);
        if let Some(held) = held {
            tree.outlive_with(held);
        }
        Ok(tree)
    }

    /// What is started so that the shell runs, in the box if there is one.
    fn boxed(&self, args: &[&OsStr], cx: &ToolCx, held: Option<&Held>, keep: &[RawFd]) -> Started {
        let mut env = environment(cx);
        let (program, args) = match held {
            None => (self.program.clone(), args.iter().map(|arg| (*arg).to_owned()).collect()),
            Some(held) => held.command(&self.program, args, &mut env, keep),
        };
        Started { program, args, env }
    }
}

/// A program with its words and its surroundings.
struct Started {
    program: PathBuf,
    args: Vec<OsString>,
    env: Vec<(OsString, OsString)>,
}

impl Started {
    fn args(&self) -> Vec<&OsStr> {
        self.args.iter().map(OsString::as_os_str).collect()
    }

    fn launch<'a>(&'a self, args: &'a [&'a OsStr], cx: &'a ToolCx) -> Launch<'a> {
        Launch {
            program: &self.program,
            args,
            cwd: &cx.cwd,
            env: &self.env,
            keep: None,
            printed: Printed::Read,
        }
    }
}

impl Directory {
    /// The directory, once the shell has exited. What it wrote is in the pipe then, or never will be.
    pub fn read(mut self) -> Option<PathBuf> {
        let mut bytes = Vec::new();
        // Ends with an error when some background process still has the pipe: what came before that is ours.
        let _ = (&mut self.pipe).take(DIRECTORY_BYTES_MAX).read_to_end(&mut bytes);
        let path = bytes.strip_suffix(b"\n")?;
        let path = PathBuf::from(OsString::from_vec(path.to_vec()));
        path.is_absolute().then_some(path)
    }
}

/// The signal that ended the shell itself.
pub(super) fn signal_of(status: ExitStatus) -> Option<i32> {
    status.signal()
}

fn watched(tree: ProcessTree, cx: &ToolCx) -> ProcessTree {
    cx.background.watched(&tree);
    tree
}

/// Whether the shell does or knows anything that the command does not say: then nobody can say where it ends.
fn has_more_to_say(cx: &ToolCx) -> bool {
    let changes_words =
        |name: &OsString| name == "BASH_ENV" || name == "ENV" || name.as_bytes().starts_with(b"BASH_FUNC_");
    !before(cx).is_empty() || cx.env.iter().any(|(name, _)| changes_words(name))
}

/// What is said before every command, on its line: how much memory its processes get, and what hooks want said.
fn before(cx: &ToolCx) -> String {
    let mut said = String::new();
    if let Some(bytes) = cx.limits.shell_memory_bytes_max {
        // In units of 1,024. A limit that is lower already stays.
        said.push_str(&format!("ulimit -d {} 2>/dev/null; ", bytes.div_ceil(1024)));
    }
    let has_file = cx.env_file.metadata().is_ok_and(|about| about.is_file() && about.len() > 0);
    if let Some(file) = cx.env_file.to_str().filter(|_| has_file) {
        said.push_str(&format!(". '{}'; ", file.replace('\'', r"'\''")));
    }
    said
}

fn environment(cx: &ToolCx) -> Vec<(OsString, OsString)> {
    let own = [
        (OsString::from("CLAUDECODE"), OsString::from("1")),
        // Nobody is there to leave an editor or a pager.
        (OsString::from("GIT_EDITOR"), OsString::from("true")),
        (OsString::from("PWD"), cx.cwd.clone().into_os_string()),
    ];
    // Where somebody was before is no business of the command: `cd -` goes to where it has been itself.
    for_programs(&cx.env).filter(|(name, _)| name != "OLDPWD").cloned().chain(own).collect()
}

/// The same pipe under a number scripts do not use; under its own where there is no such number.
fn out_of_the_way(descriptor: OwnedFd) -> OwnedFd {
    match fcntl(&descriptor, FcntlArg::F_DUPFD_CLOEXEC(DIRECTORY_DESCRIPTOR_MIN)) {
        // SAFETY: the call above just made this descriptor, and nobody else has it.
        Ok(number) => unsafe { OwnedFd::from_raw_fd(number) },
        Err(_) => descriptor,
    }
}

fn is_program(file: &Path) -> bool {
    file.metadata().is_ok_and(|metadata| metadata.is_file() && metadata.permissions().mode() & 0o111 != 0)
}
