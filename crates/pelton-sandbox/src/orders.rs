//! What the helper is told, as words on its command line, and read back there. Pure.

use std::ffi::{OsStr, OsString};
use std::os::fd::RawFd;
use std::os::unix::ffi::{OsStrExt, OsStringExt};
use std::path::{Path, PathBuf};

use crate::plan::{Hides, How, Mount, Names, Place, Plan};
use crate::policy::Network;

/// Everything the helper has to know about one command.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Orders {
    /// What has to be done.
    pub stage: Stage,
    /// Where the command starts.
    pub cwd: PathBuf,
    /// What differs from the rest of the disk.
    pub mounts: Vec<Mount>,
    /// The whole disk may be written.
    pub open_disk: bool,
    /// Directories in which no protected name may be made.
    pub places: Vec<Place>,
    /// Directories in and below which none may be made.
    pub deep: Vec<PathBuf>,
    /// What can be reached.
    pub network: Network,
    /// Whether sockets on the file system may be used.
    pub unix_sockets: bool,
    /// Where a new `/proc` is refused, the old one has to do.
    pub old_proc: bool,
    /// Variables that the helper itself must not be started with.
    pub env: Vec<(OsString, OsString)>,
    /// Descriptors the command gets besides the first three.
    pub keep: Vec<RawFd>,
    /// Where the first process inside bubblewrap tells how the command has ended: a descriptor.
    pub report: Option<RawFd>,
    /// The command's program.
    pub program: PathBuf,
    /// What it is told.
    pub args: Vec<OsString>,
}

/// What the helper does.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Stage {
    /// Namespaces, mounts, Landlock, seccomp.
    Namespaces,
    /// Starts bubblewrap and waits for what is told from inside. Its program and words are those of the orders.
    AroundBubblewrap,
    /// The same as `Namespaces` from Landlock on: the rest was done by bubblewrap.
    InBubblewrap,
    /// Landlock and seccomp alone.
    LandlockOnly,
}

/// The words cannot be read.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct BadOrders(pub String);

impl Orders {
    /// What a plan means for the helper.
    pub fn new(stage: Stage, plan: &Plan, cwd: &Path, program: &Path, args: &[&OsStr]) -> Self {
        Self {
            stage,
            cwd: cwd.to_path_buf(),
            mounts: plan.mounts.clone(),
            open_disk: plan.open_disk,
            places: plan.places.clone(),
            deep: plan.deep.clone(),
            network: plan.network.clone(),
            unix_sockets: plan.unix_sockets,
            old_proc: false,
            env: Vec::new(),
            keep: Vec::new(),
            report: None,
            program: program.to_path_buf(),
            args: args.iter().map(|arg| (*arg).to_owned()).collect(),
        }
    }

    /// As words.
    pub fn to_args(&self) -> Vec<OsString> {
        let stage = match self.stage {
            Stage::Namespaces => "namespaces",
            Stage::AroundBubblewrap => "around-bubblewrap",
            Stage::InBubblewrap => "in-bubblewrap",
            Stage::LandlockOnly => "landlock",
        };
        let mut words: Vec<OsString> = vec![stage.into(), "--cwd".into(), self.cwd.clone().into()];
        for Mount { path, how } in &self.mounts {
            let flag = match how {
                How::Writable => "--write",
                How::ReadOnly => "--read",
                How::Hidden(Hides::Directory) => "--hide-dir",
                How::Hidden(Hides::File) => "--hide-file",
            };
            words.extend([flag.into(), path.clone().into()]);
        }
        if self.open_disk {
            words.push("--open-disk".into());
        }
        for Place { dir, names } in &self.places {
            let flag = match names {
                Names::Project => "--project",
                Names::Repository => "--repository",
            };
            words.extend([flag.into(), dir.clone().into()]);
        }
        for dir in &self.deep {
            words.extend(["--below".into(), dir.clone().into()]);
        }
        match &self.network {
            Network::Off => {}
            Network::Loopback => words.push("--loopback".into()),
            Network::Bridge(socket) => words.extend(["--bridge".into(), socket.clone().into()]),
        }
        if self.unix_sockets {
            words.push("--unix-sockets".into());
        }
        if self.old_proc {
            words.push("--old-proc".into());
        }
        for (name, value) in &self.env {
            let mut both = name.clone();
            both.push("=");
            both.push(value);
            words.extend(["--env".into(), both]);
        }
        for number in &self.keep {
            words.extend(["--keep".into(), number.to_string().into()]);
        }
        if let Some(number) = self.report {
            words.extend(["--report".into(), number.to_string().into()]);
        }
        words.extend(["--".into(), self.program.clone().into()]);
        words.extend(self.args.iter().cloned());
        words
    }

    /// From words.
    pub fn from_args(words: impl IntoIterator<Item = OsString>) -> Result<Self, BadOrders> {
        let mut words = words.into_iter();
        let mut next = |what: &str| words.next().ok_or_else(|| BadOrders(format!("{what} is missing")));
        let stage = match next("the stage")?.to_str() {
            Some("namespaces") => Stage::Namespaces,
            Some("around-bubblewrap") => Stage::AroundBubblewrap,
            Some("in-bubblewrap") => Stage::InBubblewrap,
            Some("landlock") => Stage::LandlockOnly,
            _ => return Err(BadOrders("there is no such stage".to_owned())),
        };
        let mut orders = Self::new(stage, &Plan::default(), Path::new("/"), Path::new(""), &[]);
        loop {
            let word = next("the program")?;
            let Some(flag) = word.to_str() else {
                return Err(BadOrders("a word is not readable".to_owned()));
            };
            let mut mount = |how, path: OsString| orders.mounts.push(Mount { path: path.into(), how });
            match flag {
                "--" => break,
                "--cwd" => orders.cwd = next(flag)?.into(),
                "--write" => mount(How::Writable, next(flag)?),
                "--read" => mount(How::ReadOnly, next(flag)?),
                "--hide-dir" => mount(How::Hidden(Hides::Directory), next(flag)?),
                "--hide-file" => mount(How::Hidden(Hides::File), next(flag)?),
                "--open-disk" => orders.open_disk = true,
                "--project" => orders.places.push(Place { dir: next(flag)?.into(), names: Names::Project }),
                "--repository" => {
                    orders.places.push(Place { dir: next(flag)?.into(), names: Names::Repository });
                }
                "--below" => orders.deep.push(next(flag)?.into()),
                "--loopback" => orders.network = Network::Loopback,
                "--bridge" => orders.network = Network::Bridge(next(flag)?.into()),
                "--unix-sockets" => orders.unix_sockets = true,
                "--old-proc" => orders.old_proc = true,
                "--env" => {
                    let both = next(flag)?.into_vec();
                    let at = both.iter().position(|byte| *byte == b'=');
                    let at = at.ok_or_else(|| BadOrders("--env has no `=`".to_owned()))?;
                    let part = |bytes: &[u8]| OsStr::from_bytes(bytes).to_owned();
                    orders.env.push((part(&both[..at]), part(&both[at + 1..])));
                }
                "--keep" => orders.keep.push(descriptor(flag, &next(flag)?)?),
                "--report" => orders.report = Some(descriptor(flag, &next(flag)?)?),
                other => return Err(BadOrders(format!("{other} is not known"))),
            }
        }
        orders.program = next("the program")?.into();
        orders.args = words.collect();
        Ok(orders)
    }
}

fn descriptor(flag: &str, word: &OsStr) -> Result<RawFd, BadOrders> {
    let number = word.to_str().and_then(|number| number.parse().ok()).filter(|number| *number > 2);
    number.ok_or_else(|| BadOrders(format!("{flag} names no descriptor")))
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn word() -> impl Strategy<Value = OsString> {
        prop::collection::vec(1..=255u8, 1..20).prop_map(OsString::from_vec)
    }

    fn mount() -> impl Strategy<Value = Mount> {
        let how = prop::sample::select(vec![
            How::Writable,
            How::ReadOnly,
            How::Hidden(Hides::Directory),
            How::Hidden(Hides::File),
        ]);
        (word(), how).prop_map(|(path, how)| Mount { path: path.into(), how })
    }

    proptest! {
        #[test]
        fn what_is_said_is_what_is_read(
            mounts in prop::collection::vec(mount(), 0..6),
            args in prop::collection::vec(word(), 0..4),
            dirs in prop::collection::vec(word(), 0..3),
            values in prop::collection::vec(word(), 0..3),
            (program, cwd, socket) in (word(), word(), word()),
            (unix_sockets, old_proc, bridged) in any::<(bool, bool, bool)>(),
        ) {
            let orders = Orders {
                stage: Stage::Namespaces,
                cwd: cwd.into(),
                mounts,
                open_disk: old_proc != bridged,
                deep: dirs.iter().map(PathBuf::from).collect(),
                places: dirs
                    .into_iter()
                    .enumerate()
                    .map(|(at, dir)| Place {
                        dir: dir.into(),
                        names: if at == 0 { Names::Project } else { Names::Repository },
                    })
                    .collect(),
                network: if bridged { Network::Bridge(socket.into()) } else { Network::Loopback },
                unix_sockets,
                old_proc,
                env: values.into_iter().map(|value| (OsString::from("LD_X"), value)).collect(),
                keep: vec![200, 7],
                report: bridged.then_some(3),
                program: program.into(),
                args,
            };
            prop_assert_eq!(Orders::from_args(orders.to_args()), Ok(orders));
        }
    }

    #[test]
    fn words_that_say_nothing_are_refused() {
        for words in [
            &[][..],
            &["x"],
            &["landlock"],
            &["landlock", "--cwd"],
            &["landlock", "--no", "--", "a"],
            &["landlock", "--env", "a", "--", "b"],
            &["landlock", "--keep", "2", "--", "b"],
            &["in-bubblewrap", "--report", "x", "--", "b"],
        ] {
            assert!(Orders::from_args(words.iter().map(OsString::from)).is_err(), "{words:?}");
        }
    }
}
