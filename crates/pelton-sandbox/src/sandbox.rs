//! A box for commands: prepared, started through the helper, and looked after when the command has ended.

use std::ffi::{OsStr, OsString};
use std::fmt;
use std::io;
use std::os::fd::RawFd;
use std::os::unix::ffi::OsStrExt;
use std::path::{Path, PathBuf};

use crate::bubblewrap;
use crate::ghosts::Ghosts;
use crate::limits::MOUNTS_MAX;
use crate::orders::{Orders, Stage};
use crate::plan::Plan;
use crate::policy::{Disk, Network, Policy};
use crate::watch::{Before, Depth, Tampering};

/// The exit code of a helper that could not build the box. The command did not run.
pub const FAILED_CODE: u8 = 125;
/// How its last line begins then.
pub const FAILED_WORDS: &str = "pelton-sandbox: ";

/// How a box is built.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub enum Form {
    /// By bubblewrap, then Landlock and seccomp.
    Bubblewrap(PathBuf),
    /// By namespaces of our own, then Landlock and seccomp.
    Namespaces {
        /// Processes outside can be seen: the machine refuses a new `/proc`.
        old_proc: bool,
    },
    /// By Landlock and seccomp alone. Protected names inside of what may be written are not held, but looked after.
    LandlockOnly,
}

impl Form {
    /// Whether it holds all that is promised, or a part is only looked after.
    pub fn is_weak(&self) -> bool {
        matches!(self, Self::LandlockOnly)
    }
}

impl fmt::Display for Form {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Bubblewrap(_) => "bubblewrap",
            Self::Namespaces { old_proc: false } => "namespaces",
            Self::Namespaces { old_proc: true } => "namespaces with the old /proc",
            Self::LandlockOnly => "Landlock alone",
        })
    }
}

/// The program that calls [`helper()`](crate::helper()) first of all.
///
/// ```
/// use pelton_sandbox::Helper;
///
/// // A program whose `main` hands the words behind `__sandbox` to the crate's `helper` first of all.
/// let helper = Helper { program: "/usr/bin/pelton".into(), args: vec!["__sandbox".into()] };
/// assert_eq!(helper.args, ["__sandbox"]);
/// ```
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Helper {
    /// Its file.
    pub program: PathBuf,
    /// The words that lead it there.
    pub args: Vec<OsString>,
}

/// A box for one command, ready to be filled.
#[derive(Debug)]
pub struct Prepared {
    plan: Plan,
    cwd: PathBuf,
    form: Form,
    /// Until it was compared.
    before: Option<Before>,
    _ghosts: Ghosts,
}

impl Prepared {
    /// Looks at the disk and puts in place what the box needs there. Takes a few file operations.
    pub fn new(form: &Form, policy: &Policy, cwd: &Path) -> io::Result<Self> {
        let mut plan = Plan::new(policy, cwd, &Disk)
            .map_err(|_| io::Error::other(format!("the sandbox would need more than {MOUNTS_MAX} mounts")))?;
        if form.is_weak() {
            // Without a network of its own there is nothing between one host and another.
            plan.network = Network::Off;
            plan.ghosts.clear();
        }
        let depth = if form.is_weak() { Depth::Contents } else { Depth::Names };
        let before = Some(Before::look(&plan, depth));
        let ghosts = Ghosts::raise(&plan.ghosts)?;
        Ok(Self { plan, cwd: cwd.to_path_buf(), form: form.clone(), before, _ghosts: ghosts })
    }

    /// What has to be started so that a program runs in the box. `env` is the environment of that: variables that would
    /// steer the helper itself are taken out of it and come back inside. Of the descriptors behind the first three only
    /// those in `keep` get there.
    pub fn command(
        &self,
        helper: &Helper,
        program: &Path,
        args: &[&OsStr],
        env: &mut Vec<(OsString, OsString)>,
        keep: &[RawFd],
    ) -> (PathBuf, Vec<OsString>) {
        let mut orders = Orders::new(Stage::Namespaces, &self.plan, &self.cwd, program, args);
        orders.env = env.extract_if(.., |(name, _)| steers_programs(name)).collect();
        orders.keep = keep.to_vec();
        command(&self.form, helper, orders)
    }

    /// What was planned.
    pub fn plan(&self) -> &Plan {
        &self.plan
    }

    /// When nothing of the command runs any more: finds protected names that it has changed all the same, and undoes that.
    pub fn finish(mut self) -> Vec<Tampering> {
        self.before.take().map(|before| before.undo()).unwrap_or_default()
    }
}

impl Drop for Prepared {
    fn drop(&mut self) {
        // Somebody lost interest in the command. What it did is undone all the same.
        if let Some(before) = self.before.take() {
            before.undo();
        }
    }
}

/// The words that start orders in a form.
pub(crate) fn command(form: &Form, helper: &Helper, mut orders: Orders) -> (PathBuf, Vec<OsString>) {
    let by_helper = |orders: &Orders| {
        let words = helper.args.iter().cloned().chain(orders.to_args());
        words.collect::<Vec<OsString>>()
    };
    match form {
        Form::Bubblewrap(program) => {
            orders.stage = Stage::InBubblewrap;
            // Not one that the command has.
            orders.report = (3..).find(|number| !orders.keep.contains(number));
            let mut words = bubblewrap::words(&orders);
            words.push(helper.program.clone().into());
            words.extend(by_helper(&orders));
            let mut around =
                Orders::new(Stage::AroundBubblewrap, &Plan::default(), Path::new("/"), program, &[]);
            around.args = words;
            around.keep.clone_from(&orders.keep);
            around.report = orders.report;
            (helper.program.clone(), by_helper(&around))
        }
        Form::Namespaces { old_proc } => {
            orders.stage = Stage::Namespaces;
            orders.old_proc = *old_proc;
            (helper.program.clone(), by_helper(&orders))
        }
        Form::LandlockOnly => {
            orders.stage = Stage::LandlockOnly;
            (helper.program.clone(), by_helper(&orders))
        }
    }
}

/// Whether a variable changes what a program does before its first line.
fn steers_programs(name: &OsStr) -> bool {
    let name = name.as_bytes();
    name.starts_with(b"LD_") || name.starts_with(b"GLIBC_") || name.starts_with(b"MALLOC_")
}
