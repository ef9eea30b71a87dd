//! Landlock: which files may be written and read, whom signals and sockets reach. Where there are no mounts it holds
//! alone, so what is hidden is left out of what may be read, name by name.

use std::path::{Path, PathBuf};

use landlock::{
    ABI, Access, AccessFs, AccessNet, BitFlags, CompatLevel, Compatible, PathBeneath, PathFd, PathFdError,
    Ruleset, RulesetAttr, RulesetCreated, RulesetCreatedAttr, RulesetStatus, Scope,
};

use super::{Failure, failed};
use crate::orders::{Orders, Stage};
use crate::plan::How;
use crate::policy::{Disk, Look};

/// What is asked for; a kernel that knows less gives what it knows.
const WANTED: ABI = ABI::V7;

/// Devices that hold nothing.
const DEVICES: &[&str] = &["null", "zero", "full", "random", "urandom", "tty", "ptmx"];
/// Directories of devices that belong to the processes that use them.
const DEVICE_DIRS: &[&str] = &["pts", "shm"];

/// Holds this process and all it starts to the orders.
pub(super) fn enforce(orders: &Orders) -> Result<(), Failure> {
    let cannot = || failed("Landlock cannot be set up");
    let mut ruleset = Ruleset::default()
        .set_compatibility(CompatLevel::BestEffort)
        .handle_access(AccessFs::from_all(WANTED))
        .map_err(cannot())?
        .scope(Scope::from_all(WANTED))
        .map_err(cannot())?;
    if orders.network == crate::policy::Network::Off || orders.stage == Stage::LandlockOnly {
        ruleset = ruleset.handle_access(AccessNet::from_all(WANTED)).map_err(cannot())?;
    }
    let mut ruleset = ruleset.create().map_err(cannot())?;
    let read = AccessFs::ReadFile | AccessFs::Execute;
    match orders.stage {
        Stage::Namespaces | Stage::AroundBubblewrap | Stage::InBubblewrap => {
            ruleset = allow(ruleset, Path::new("/"), read | AccessFs::ReadDir)?;
        }
        Stage::LandlockOnly => {
            // Names may be seen, what is behind them may not.
            ruleset = allow(ruleset, Path::new("/"), AccessFs::ReadDir.into())?;
            for path in readable(orders, &Disk) {
                ruleset = allow(ruleset, &path, read)?;
            }
        }
    }
    for device in DEVICES {
        ruleset =
            allow(ruleset, &Path::new("/dev").join(device), read | AccessFs::WriteFile | AccessFs::IoctlDev)?;
    }
    let everything = AccessFs::from_all(WANTED);
    for dir in DEVICE_DIRS {
        // Without namespaces the shared memory is everybody's.
        if orders.stage != Stage::LandlockOnly || *dir == "pts" {
            ruleset = allow(ruleset, &Path::new("/dev").join(dir), everything)?;
        }
    }
    if orders.open_disk {
        ruleset = allow(ruleset, Path::new("/"), everything)?;
    }
    let devices = AccessFs::IoctlDev | AccessFs::MakeChar | AccessFs::MakeBlock;
    for mount in orders.mounts.iter().filter(|mount| mount.how == How::Writable) {
        ruleset = allow(ruleset, &mount.path, everything & !devices)?;
    }
    let status = ruleset.restrict_self().map_err(failed("Landlock cannot be enforced"))?;
    if status.ruleset == RulesetStatus::NotEnforced {
        return Err(Failure::new("the kernel does not enforce Landlock"));
    }
    Ok(())
}

/// What is not there needs no permission.
fn allow(
    ruleset: RulesetCreated,
    path: &Path,
    access: BitFlags<AccessFs>,
) -> Result<RulesetCreated, Failure> {
    let descriptor = match PathFd::new(path) {
        Ok(descriptor) => descriptor,
        Err(PathFdError::OpenCall { .. }) => return Ok(ruleset),
        Err(error) => return Err(failed("a path cannot be opened")(error)),
    };
    let access = if path.is_dir() { access } else { access & AccessFs::from_file(WANTED) };
    ruleset.add_rule(PathBeneath::new(descriptor, access)).map_err(failed("Landlock refuses a rule"))
}

/// The fewest paths that together hold everything but what is hidden: beside each hidden path its neighbours, and those
/// of the directories above it.
fn readable(orders: &Orders, look: &impl Look) -> Vec<PathBuf> {
    let hidden = orders.mounts.iter().filter(|mount| matches!(mount.how, How::Hidden(_)));
    // Whole disks are below `/dev`.
    let mut hidden: Vec<&Path> = hidden.map(|mount| mount.path.as_path()).collect();
    hidden.push(Path::new("/dev"));
    let mut readable = Vec::new();
    // What is shown inside of something hidden.
    for mount in orders.mounts.iter().filter(|mount| !matches!(mount.how, How::Hidden(_))) {
        let around = hidden.iter().filter(|hidden| mount.path.starts_with(hidden));
        if around.clone().next().is_some() {
            beside(&mount.path, &hidden, look, &mut readable);
        }
    }
    beside(Path::new("/"), &hidden, look, &mut readable);
    readable
}

fn beside(path: &Path, hidden: &[&Path], look: &impl Look, readable: &mut Vec<PathBuf>) {
    if hidden.contains(&path) {
        return;
    }
    if !hidden.iter().any(|hidden| hidden.starts_with(path)) {
        readable.push(path.to_path_buf());
        return;
    }
    for name in look.names(path) {
        beside(&path.join(name), hidden, look, readable);
    }
}
