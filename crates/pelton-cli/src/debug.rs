//! `--debug`, `--debug-file` and `--debug-to-stderr`: where the log of a session goes, and how large it can become.

use std::fs::{self, File, OpenOptions};
use std::io::{self, Write};
use std::os::unix::fs::{DirBuilderExt, OpenOptionsExt};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::SystemTime;

use pelton_model::{RealWorld, World};
use pelton_serve::DebugLog;
use pelton_tui::Logs;
use uuid::Uuid;

use crate::args::RunArgs;
use crate::resolve::{Env, config_dir};

/// The most bytes of a log. When it has more, it is put aside, in the place of what was put aside before, and begins anew.
const FILE_BYTES_MAX: u64 = 8 * 1024 * 1024;
/// Logs of earlier sessions that are kept, the newest, what was put aside included.
const FILES_KEPT_MAX: usize = 20;
/// Logs of sessions, and what was put aside of them.
const KINDS: [&str; 2] = ["txt", "old"];

/// The log of this run, if one is wanted.
pub(crate) fn log(args: &RunArgs, env: &Env, world: &Arc<dyn World>) -> Option<DebugLog> {
    let client = &args.client;
    let is_wanted = client.debug.is_some() || client.debug_file.is_some() || client.debug_to_stderr;
    is_wanted.then(|| begun(args, env, world))
}

/// The same, whether one was wanted or not.
fn begun(args: &RunArgs, env: &Env, world: &Arc<dyn World>) -> DebugLog {
    let (filter, args, env) = (args.client.debug.clone().unwrap_or_default(), args.clone(), env.clone());
    let to_stderr = args.client.debug_to_stderr && args.client.debug_file.is_none() && !args.is_attended();
    let log = DebugLog::new(&filter, Arc::clone(world), move |session| {
        if to_stderr {
            return Ok(Box::new(io::stderr()));
        }
        let file = place(&args, &env, session).ok_or(io::ErrorKind::NotFound)?;
        if let Some(dir) = file.parent().filter(|_| args.client.debug_file.is_none()) {
            fs::DirBuilder::new().recursive(true).mode(0o700).create(dir)?;
            sweep(dir);
        }
        Ok(Box::new(Capped::open(file, FILE_BYTES_MAX)?))
    });
    let about = format!("pelton {}, process {}", env!("CARGO_PKG_VERSION"), std::process::id());
    log.note("start", &about);
    log
}

/// The file of a session's log.
fn place(args: &RunArgs, env: &Env, session: Option<Uuid>) -> Option<PathBuf> {
    let own = || Some(config_dir(env)?.join("debug").join(format!("{}.txt", session?)));
    args.client.debug_file.clone().or_else(own)
}

/// A log for whoever wants one while the session runs.
pub(crate) struct Wanted {
    pub args: RunArgs,
    pub env: Env,
}

impl Logs for Wanted {
    fn begin(&self) -> DebugLog {
        begun(&self.args, &self.env, &(Arc::new(RealWorld::new()) as Arc<dyn World>))
    }

    fn file(&self, session: Uuid) -> Option<PathBuf> {
        place(&self.args, &self.env, Some(session))
    }
}

/// Makes room for one more log.
fn sweep(dir: &Path) {
    let Ok(entries) = fs::read_dir(dir) else { return };
    let is_log =
        |file: &PathBuf| file.extension().is_some_and(|kind| KINDS.iter().any(|known| kind == *known));
    let logs = entries.flatten().map(|entry| entry.path()).filter(is_log);
    let mut logs: Vec<(SystemTime, PathBuf)> =
        logs.filter_map(|file| Some((fs::symlink_metadata(&file).ok()?.modified().ok()?, file))).collect();
    logs.sort();
    for (_, file) in logs.iter().rev().skip(FILES_KEPT_MAX - 1) {
        // Somebody else may have been faster.
        let _ = fs::remove_file(file);
    }
}

/// A file that does not grow without end.
struct Capped {
    path: PathBuf,
    file: File,
    bytes: u64,
    /// What it may have. What is no file, such as a terminal, does not grow.
    bytes_max: Option<u64>,
}

impl Capped {
    fn open(path: PathBuf, bytes_max: u64) -> io::Result<Self> {
        let file = OpenOptions::new().append(true).create(true).mode(0o600).open(&path)?;
        let about = file.metadata()?;
        let bytes_max = about.is_file().then_some(bytes_max);
        Ok(Self { path, file, bytes: about.len(), bytes_max })
    }

    fn begin_anew(&mut self) -> io::Result<()> {
        let mut aside = self.path.clone().into_os_string();
        aside.push(".old");
        fs::rename(&self.path, aside)?;
        self.file = OpenOptions::new().append(true).create(true).mode(0o600).open(&self.path)?;
        self.bytes = 0;
        Ok(())
    }
}

impl Write for Capped {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        let more = bytes.len() as u64;
        if self.bytes_max.is_some_and(|most| self.bytes > 0 && self.bytes + more > most) {
            self.begin_anew()?;
        }
        // Whole lines: several processes may write to a file that the user named.
        self.file.write_all(bytes)?;
        self.bytes += more;
        Ok(bytes.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        self.file.flush()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_log_stays_below_its_cap_and_its_newest_lines_are_there() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("log.txt");
        let mut log = Capped::open(path.clone(), 1_000).unwrap();
        for nth in 0..10_000 {
            writeln!(log, "line {nth}").unwrap();
        }
        drop(log);
        // Whoever opens it again goes on below the same cap.
        let mut log = Capped::open(path.clone(), 1_000).unwrap();
        writeln!(log, "the last").unwrap();
        let sizes: Vec<u64> =
            fs::read_dir(&dir).unwrap().map(|entry| entry.unwrap().metadata().unwrap().len()).collect();
        assert!(sizes.len() == 2 && sizes.iter().all(|bytes| *bytes <= 1_000), "{sizes:?}");
        let (old, new) = (dir.path().join("log.txt.old"), fs::read_to_string(&path).unwrap());
        let kept = fs::read_to_string(old).unwrap() + &new;
        assert!(kept.ends_with("line 9999\nthe last\n"), "{new}");
    }

    #[test]
    fn of_many_logs_the_newest_are_kept_and_nothing_else_is_touched() {
        let dir = tempfile::tempdir().unwrap();
        let at = |nth: u64| SystemTime::UNIX_EPOCH + std::time::Duration::from_secs(1_000_000 + nth);
        for nth in 0..50 {
            let kind = if nth % 3 == 0 { "txt.old" } else { "txt" };
            let file = File::create(dir.path().join(format!("{nth}.{kind}"))).unwrap();
            file.set_modified(at(nth)).unwrap();
        }
        fs::write(dir.path().join("notes.md"), "mine").unwrap();
        sweep(dir.path());
        let mut names: Vec<String> = fs::read_dir(dir.path())
            .unwrap()
            .map(|entry| entry.unwrap().file_name().into_string().unwrap())
            .collect();
        assert!(names.contains(&"notes.md".to_owned()));
        names.retain(|name| name != "notes.md");
        assert_eq!(names.len(), FILES_KEPT_MAX - 1, "one more fits");
        let numbers = names.iter().map(|name| name.split('.').next().unwrap().parse::<u64>().unwrap());
        assert!(numbers.min().unwrap() >= 50 - FILES_KEPT_MAX as u64);
    }
}
