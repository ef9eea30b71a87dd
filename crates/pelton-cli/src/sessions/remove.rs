//! Taking sessions away, with all that belongs to them. Without a `--yes` it is only said.

use std::collections::HashMap;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::ExitCode;
use std::time::{Duration, SystemTime};

use pelton::transcript::{Listed, holder};

use super::show::listed;
use super::{Shelf, cut, name_of, say, size};
use crate::args::{DeleteArgs, PruneArgs};
use crate::fail::{Fail, tell};

const DAY: Duration = Duration::from_secs(24 * 60 * 60);
const NAME_CHARS_MAX: usize = 60;

pub(super) fn delete(args: &DeleteArgs, shelf: &Shelf) -> Result<ExitCode, Fail> {
    // All of them are looked for before the first is touched.
    let wanted: Vec<Listed> = args.sessions.iter().map(|id| listed(shelf, *id)).collect::<Result<_, _>>()?;
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
        if let Some(holder) = holder(&one.file.file) {
            tell(&format!("{id} is open ({holder}) and stays"));
            is_done = false;
            continue;
        }
        if !is_meant {
            say(&format!("would take away {id}  {}  {name}\n", size(one.file.bytes)))?;
            continue;
        }
        let gone = belongings(one, &shelf.config_dir).iter().try_for_each(|path| take_away(path));
        match gone {
            Ok(()) => _ = say(&format!("took away {id}  {name}\n"))?,
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

/// What belongs to a session; its record comes last, so that what could not be taken away is found again.
fn belongings(one: &Listed, config_dir: &Path) -> [PathBuf; 3] {
    let file = &one.file.file;
    [config_dir.join("file-history").join(one.file.id.to_string()), file.with_extension(""), file.clone()]
}

fn take_away(path: &Path) -> std::io::Result<()> {
    let gone = match fs::symlink_metadata(path) {
        Ok(meta) if meta.is_dir() => fs::remove_dir_all(path),
        Ok(_) => fs::remove_file(path),
        Err(error) => Err(error),
    };
    gone.or_else(|error| if error.kind() == std::io::ErrorKind::NotFound { Ok(()) } else { Err(error) })
}
