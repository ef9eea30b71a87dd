//! Taking sessions away, with all that belongs to them. Without a `--yes` it is only said.

use std::collections::{HashMap, HashSet};
use std::io::ErrorKind;
use std::process::ExitCode;
use std::time::{Duration, SystemTime};

use pelton::transcript::{Listed, holder, remove_session};

use super::show::listed;
use super::{Shelf, cut, name_of, say, size};
use crate::args::{DeleteArgs, PruneArgs};
use crate::fail::{Fail, tell};

const DAY: Duration = Duration::from_secs(24 * 60 * 60);
const NAME_CHARS_MAX: usize = 60;

pub(super) fn delete(args: &DeleteArgs, shelf: &Shelf) -> Result<ExitCode, Fail> {
    // Named twice, it is meant once.
    let mut sessions = args.sessions.clone();
    let mut named = HashSet::new();
    sessions.retain(|id| named.insert(*id));
    // All of them are looked for before the first is touched.
    let wanted: Vec<Listed> = sessions.iter().map(|id| listed(shelf, *id)).collect::<Result<_, _>>()?;
    remove(&wanted, shelf, args.yes)
}

pub(super) fn prune(args: &PruneArgs, shelf: &Shelf) -> Result<ExitCode, Fail> {
    let age = DAY.checked_mul(u32::try_from(args.older_than).unwrap_or(u32::MAX)).unwrap_or(Duration::MAX);
    let before = SystemTime::now().checked_sub(age).unwrap_or(SystemTime::UNIX_EPOCH);
    let mut kept: HashMap<String, usize> = HashMap::new();
    let mut old = shelf.listed(args.all);
    // Newest first, so the first of each directory are those to keep.
    old.retain(|one| {
        let kept = kept.entry(one.file.project.clone()).or_default();
        *kept += 1;
        *kept > args.keep && one.file.modified < before
    });
    if old.is_empty() {
        return say("There is nothing that old.\n");
    }
    remove(&old, shelf, args.yes)
}

fn remove(sessions: &[Listed], shelf: &Shelf, is_meant: bool) -> Result<ExitCode, Fail> {
    let mut is_done = true;
    for one in sessions {
        let (id, name) = (one.file.id, cut(&name_of(one), NAME_CHARS_MAX));
        let holder = holder(&one.file.file);
        let open = || {
            format!(
                "{id} is open{} and stays",
                holder.as_ref().map(|by| format!(" ({by})")).unwrap_or_default()
            )
        };
        if holder.is_some() {
            tell(&open());
            is_done = false;
            continue;
        }
        if !is_meant {
            say(&format!("would take away {id}  {}  {name}\n", size(one.file.bytes)))?;
            continue;
        }
        match remove_session(&shelf.config_dir, &one.file) {
            Ok(()) => _ = say(&format!("took away {id}  {name}\n"))?,
            Err(error) if error.kind() == ErrorKind::WouldBlock => {
                tell(&open());
                is_done = false;
            }
            Err(error) => {
                tell(&format!("{id} could not be taken away: {error}"));
                is_done = false;
            }
        }
    }
    if !is_meant {
        say("Nothing was changed. With --yes they are taken away.\n")?;
    }
    Ok(if is_done { ExitCode::SUCCESS } else { ExitCode::FAILURE })
}
