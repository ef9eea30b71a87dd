//! Who writes to a session. The lock on the file keeps everybody else out and goes with the process, however it ends; the
//! claim beside it says whose it is, so that whoever is kept out can be told. A claim of a process that is gone counts for
//! nothing: it names the boot, the process and when that one was started, so that neither a restart of the machine nor
//! another process of the same number makes it look alive.

use std::ffi::OsStr;
use std::fs;
use std::io::{self, Write};
use std::os::unix::fs::{DirBuilderExt, OpenOptionsExt};
use std::path::{Path, PathBuf};

use jiff::Timestamp;
use serde::{Deserialize, Serialize};

/// The claim, in the session's folder.
const CLAIM_FILE: &str = "lease.json";

/// Whoever writes to a session.
///
/// ```
/// # use pelton_model::{Auth, Endpoint, Secret};
/// # let dir = tempfile::tempdir()?;
/// # let endpoint = Endpoint::new("http://127.0.0.1:9", Auth::ApiKey(Secret::new("any")));
/// # let mut options = pelton::Options::new(dir.path(), endpoint);
/// # options.sessions = Some(pelton::Sessions { config_dir: dir.path().join("config"), durability: Default::default() });
/// # let engine = pelton::Engine::new(options)?;
/// # engine.title().set("Jars")?;
/// # let file = engine.transcript_file().ok_or("it is recorded")?;
/// use pelton::transcript::holder;
///
/// let holder = holder(&file).ok_or("the engine of this process writes to it")?;
/// assert_eq!(holder.pid, std::process::id());
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct Holder {
    /// The process.
    pub pid: u32,
    /// Since when.
    pub since: Option<Timestamp>,
}

impl std::fmt::Display for Holder {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "pid {}", self.pid)?;
        self.since.map_or(Ok(()), |since| write!(f, ", since {since:.0}"))
    }
}

/// Somebody else writes to it: what an error of the kind `WouldBlock` carries.
#[derive(Debug, thiserror::Error)]
#[error("somebody else writes to it")]
pub(super) struct Held(pub Option<Holder>);

impl Held {
    pub fn by(holder: Option<Holder>) -> io::Error {
        io::Error::new(io::ErrorKind::WouldBlock, Self(holder))
    }
}

/// A claim of ours. Dropping it takes it back.
#[derive(Debug)]
pub(super) struct Lease {
    claim: Option<PathBuf>,
}

impl Lease {
    /// Claims a session file that this process has locked. An error names another process that claims it, too.
    ///
    /// A claim that cannot be written, say on a full disk, is done without: the lock is what keeps others out.
    pub fn take(session_file: &Path) -> io::Result<Self> {
        let Some(path) = claim_of(session_file) else { return Ok(Self { claim: None }) };
        let others = Claim::read(&path).filter(|claim| !claim.is_ours());
        if others.is_some_and(|claim| claim.is_alive()) {
            return Err(Held::by(holder(session_file)));
        }
        let claim = Claim::of(std::process::id()).and_then(|claim| claim.write(&path).ok()).map(|()| path);
        Ok(Self { claim })
    }
}

impl Drop for Lease {
    fn drop(&mut self) {
        if let Some(path) = &self.claim {
            // What is left of it counts for nothing once we are gone; the folder goes if nothing else is in it.
            let _ = fs::remove_file(path);
            let _ = path.parent().map(fs::remove_dir);
        }
    }
}

/// Whoever writes to this session file, by what it says itself. Nobody, if that process is gone.
///
/// ```
/// let nobody = pelton::transcript::holder(std::path::Path::new("/no/such/session.jsonl"));
/// assert!(nobody.is_none());
/// ```
pub fn holder(session_file: &Path) -> Option<Holder> {
    let path = claim_of(session_file)?;
    let claim = Claim::read(&path).filter(Claim::is_alive)?;
    let since = fs::metadata(&path).and_then(|meta| meta.modified()).ok();
    Some(Holder { pid: claim.pid, since: since.and_then(|since| since.try_into().ok()) })
}

/// Where a session file is claimed. Records of sub-agents are held with the session they belong to.
fn claim_of(session_file: &Path) -> Option<PathBuf> {
    let folder = session_file.parent()?;
    (folder.file_name() != Some(OsStr::new("subagents")))
        .then(|| session_file.with_extension("").join(CLAIM_FILE))
}

#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
struct Claim {
    pid: u32,
    /// The boot it was made in.
    boot_id: String,
    /// When that process was started, in ticks since the boot.
    process_start: u64,
    /// What its number counts in: elsewhere, the same number is another process.
    pid_space: String,
}

impl Claim {
    /// What a running process would claim; `None` if it is not running, or this system does not tell.
    fn of(pid: u32) -> Option<Self> {
        let pid_space = fs::read_link("/proc/self/ns/pid").ok()?.to_string_lossy().into_owned();
        let boot_id = fs::read_to_string("/proc/sys/kernel/random/boot_id").ok()?.trim().to_owned();
        Some(Self { pid, boot_id, process_start: started(pid)?, pid_space })
    }

    fn is_ours(&self) -> bool {
        self.pid == std::process::id()
    }

    /// Whether the process that made it still runs. Where its number means nothing, the lock alone counts.
    fn is_alive(&self) -> bool {
        Self::of(self.pid).is_some_and(|now| now == *self)
    }

    fn read(path: &Path) -> Option<Self> {
        serde_json::from_slice(&fs::read(path).ok()?).ok()
    }

    fn write(&self, path: &Path) -> io::Result<()> {
        if let Some(folder) = path.parent() {
            fs::DirBuilder::new().recursive(true).mode(0o700).create(folder)?;
        }
        // Whoever reads it while it is written finds no claim, and the lock.
        let mut options = fs::OpenOptions::new();
        let mut file = options.write(true).create(true).truncate(true).mode(0o600).open(path)?;
        file.write_all(&serde_json::to_vec(self)?)
    }
}

/// When a process was started. `None` for one that is gone, or only waits to be buried.
fn started(pid: u32) -> Option<u64> {
    let stat = fs::read_to_string(format!("/proc/{pid}/stat")).ok()?;
    // The name of the program stands in brackets and may hold anything.
    let mut fields = stat.rsplit_once(')')?.1.split_ascii_whitespace();
    let state = fields.next()?;
    if matches!(state, "Z" | "X") {
        return None;
    }
    // Field 22 of the line, counted from the state, which is field 3.
    fields.nth(18)?.parse().ok()
}

#[cfg(all(test, target_os = "linux"))]
mod tests {
    use super::*;

    fn claimed(claim: &Claim) -> (tempfile::TempDir, PathBuf) {
        let dir = tempfile::tempdir().unwrap();
        let file = dir.path().join("session.jsonl");
        claim.write(&claim_of(&file).unwrap()).unwrap();
        (dir, file)
    }

    /// A process that runs until this is dropped.
    struct Sleeper(std::process::Child);

    impl Sleeper {
        fn start() -> Self {
            Self(std::process::Command::new("sleep").arg("600").spawn().unwrap())
        }
    }

    impl Drop for Sleeper {
        fn drop(&mut self) {
            self.0.kill().unwrap();
            self.0.wait().unwrap();
        }
    }

    #[test]
    fn a_live_process_keeps_its_claim_and_is_named() {
        let sleeper = Sleeper::start();
        let (_dir, file) = claimed(&Claim::of(sleeper.0.id()).unwrap());
        let error = Lease::take(&file).unwrap_err();
        assert_eq!(error.kind(), io::ErrorKind::WouldBlock);
        let held = error.into_inner().unwrap().downcast::<Held>().unwrap();
        assert_eq!(held.0.unwrap().pid, sleeper.0.id());
        assert!(holder(&file).unwrap().to_string().contains(", since 2"));
    }

    #[test]
    fn pit_S3_claims_of_the_dead_are_taken_over() {
        let mut sleeper = Sleeper::start();
        let alive = Claim::of(sleeper.0.id()).unwrap();
        let stale = [
            // The machine was started again since.
            Claim { boot_id: "00000000-0000-4000-8000-000000000000".to_owned(), ..alive.clone() },
            // The number belongs to another process now.
            Claim { process_start: alive.process_start - 1, ..alive.clone() },
            // It is a number of another container.
            Claim { pid_space: "pid:[1]".to_owned(), ..alive.clone() },
            Claim { pid: u32::MAX, ..alive.clone() },
        ];
        for claim in stale {
            let (_dir, file) = claimed(&claim);
            assert_eq!(holder(&file), None, "{claim:?}");
            let lease = Lease::take(&file).unwrap();
            assert_eq!(holder(&file).map(|holder| holder.pid), Some(std::process::id()), "{claim:?}");
            drop(lease);
        }
        // Dead, but nobody has asked how it ended yet.
        sleeper.0.kill().unwrap();
        let gone = || started(sleeper.0.id()).is_none();
        while !gone() {
            std::thread::sleep(std::time::Duration::from_millis(1));
        }
        let (_dir, file) = claimed(&alive);
        assert!(Lease::take(&file).is_ok());
    }

    #[test]
    fn a_claim_leaves_nothing_behind() {
        let dir = tempfile::tempdir().unwrap();
        let file = dir.path().join("session.jsonl");
        let lease = Lease::take(&file).unwrap();
        assert!(dir.path().join("session").join(CLAIM_FILE).is_file());
        drop(lease);
        assert_eq!(fs::read_dir(dir.path()).unwrap().count(), 0);
        // What cannot be read hinders nobody, and what cannot be written neither.
        for broken in ["", "{", "[]", "\u{0}"] {
            fs::create_dir_all(dir.path().join("session")).unwrap();
            fs::write(claim_of(&file).unwrap(), broken).unwrap();
            assert!(Lease::take(&file).is_ok(), "{broken:?}");
        }
        fs::write(dir.path().join("session"), "in the way").unwrap();
        assert!(Lease::take(&file).is_ok());
    }

    #[test]
    fn records_of_agents_go_with_their_session() {
        assert_eq!(claim_of(Path::new("/p/s/subagents/agent-1.jsonl")), None);
        assert_eq!(claim_of(Path::new("/p/s.jsonl")), Some(PathBuf::from("/p/s/lease.json")));
    }
}
