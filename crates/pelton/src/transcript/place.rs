//! Which file a session lives in: `<config>/projects/<key of the directory>/<session id>.jsonl`, where the
//! official SDKs look for it.

use std::collections::BTreeMap;
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};
use std::time::UNIX_EPOCH;

use uuid::Uuid;

use super::list::{SessionFile, session_files};

/// Longer keys are cut and told apart by a hash: file names have a limit.
const KEY_CHARS_MAX: usize = 200;

/// The file of a session.
///
/// ```
/// use std::path::Path;
///
/// use pelton::transcript::{find_session, newest_session, project_key, session_file};
///
/// let (config, cwd) = (Path::new("/home/me/.claude"), Path::new("/srv/project"));
/// let session = "00000000-0000-4000-8000-000000000001".parse()?;
/// let file = session_file(config, cwd, session);
/// assert!(file.starts_with("/home/me/.claude/projects/-srv-project"));
/// assert_eq!(project_key(cwd), "-srv-project");
/// assert!(find_session(config, cwd, session).is_none() && newest_session(config, cwd).is_none());
/// # Ok::<(), uuid::Error>(())
/// ```
pub fn session_file(config_dir: &Path, cwd: &Path, session: Uuid) -> PathBuf {
    config_dir.join("projects").join(project_key(cwd)).join(format!("{session}.jsonl"))
}

/// The file of a session by its id: in this directory's folder, or else in the one folder that has it.
///
/// See [`session_file`].
pub fn find_session(config_dir: &Path, cwd: &Path, session: Uuid) -> Option<PathBuf> {
    let here = session_file(config_dir, cwd, session);
    if here.is_file() {
        return Some(here);
    }
    let folders = std::fs::read_dir(config_dir.join("projects")).ok()?;
    let name = format!("{session}.jsonl");
    let mut found = folders.flatten().map(|folder| folder.path().join(&name)).filter(|file| file.is_file());
    let first = found.next()?;
    // Two files of one name are two conversations: guessing would go on with the wrong one.
    found.next().is_none().then_some(first)
}

/// The newest session of a directory, under whatever name that was when the session was recorded.
///
/// See [`session_file`].
pub fn newest_session(config_dir: &Path, cwd: &Path) -> Option<PathBuf> {
    newest_session_where(config_dir, cwd, |_| true)
}

/// The same among those that somebody sat in front of: what ran without anybody is nothing they would go on with.
///
/// See [`session_file`].
pub fn newest_attended_session(config_dir: &Path, cwd: &Path) -> Option<PathBuf> {
    newest_session_where(config_dir, cwd, |session| !session.facts().is_unattended())
}

/// The sessions of a directory, newest first, under whatever name that was when they were recorded.
///
/// See [`session_file`].
pub fn sessions_of(config_dir: &Path, cwd: &Path) -> Vec<SessionFile> {
    let (key, directory) = (project_key(cwd), directory_id(cwd));
    let mut files = session_files(config_dir);
    // Of a directory with another name the newest session and the oldest tell whether it came here: there may be thousands.
    let mut ends: BTreeMap<String, (usize, usize)> = BTreeMap::new();
    for (at, file) in files.iter().enumerate().filter(|(_, file)| file.project != key) {
        ends.entry(file.project.clone()).or_insert((at, at)).1 = at;
    }
    let came_here = |file: &SessionFile| directory.as_ref().is_some_and(|directory| file.is_of(directory));
    ends.retain(|_, (newest, oldest)| came_here(&files[*newest]) || came_here(&files[*oldest]));
    files.retain(|file| file.project == key || ends.contains_key(&file.project) && came_here(file));
    files
}

fn newest_session_where(
    config_dir: &Path,
    cwd: &Path,
    is_meant: impl Fn(&SessionFile) -> bool,
) -> Option<PathBuf> {
    let (key, directory) = (project_key(cwd), directory_id(cwd));
    let is_here = |project: &str| project == key;
    // It was moved here. If its old name is there again, that is another one.
    let came_here =
        |session: &SessionFile| directory.as_ref().is_some_and(|directory| session.is_of(directory));
    let mut newest_first = session_files(config_dir).into_iter();
    let found =
        newest_first.find(|session| (is_here(&session.project) || came_here(session)) && is_meant(session));
    found.map(|session| session.file)
}

/// Names a directory wherever it is moved: which one it is on its disk, and when it was made, because numbers are used
/// again. `None` where the disk does not tell.
pub(crate) fn directory_id(dir: &Path) -> Option<String> {
    let meta = dir.metadata().ok()?;
    let made = meta.created().ok()?.duration_since(UNIX_EPOCH).ok()?;
    Some(format!("{:x}-{}.{:09}", meta.ino(), made.as_secs(), made.subsec_nanos()))
}

/// The name of a directory's folder: every character outside `[A-Za-z0-9]` becomes a dash.
///
/// See [`session_file`].
pub fn project_key(cwd: &Path) -> String {
    let path = cwd.to_string_lossy();
    let key: String = path.chars().map(|c| if c.is_ascii_alphanumeric() { c } else { '-' }).collect();
    if key.len() <= KEY_CHARS_MAX {
        return key;
    }
    format!("{}-{}", &key[..KEY_CHARS_MAX], base36(hash(&path)))
}

/// The 32-bit string hash the SDKs use: `hash * 31 + code unit`, as a signed number, made positive.
fn hash(text: &str) -> u32 {
    text.encode_utf16()
        .fold(0i32, |hash, unit| hash.wrapping_mul(31).wrapping_add(i32::from(unit)))
        .unsigned_abs()
}

fn base36(mut number: u32) -> String {
    const DIGITS: &[u8; 36] = b"0123456789abcdefghijklmnopqrstuvwxyz";
    let mut digits = Vec::new();
    loop {
        digits.push(DIGITS[(number % 36) as usize] as char);
        number /= 36;
        if number == 0 {
            return digits.into_iter().rev().collect();
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn keys_keep_letters_and_digits() {
        assert_eq!(project_key(Path::new("/w/My proj_1.x")), "-w-My-proj-1-x");
        assert_eq!(project_key(Path::new("/é")), "--");
    }

    #[test]
    fn long_keys_are_cut_and_hashed() {
        let long = format!("/{}", "a".repeat(300));
        let key = project_key(Path::new(&long));
        assert!(key.starts_with(&format!("-{}-", "a".repeat(199))), "{key}");
        assert_ne!(key, project_key(Path::new(&format!("{long}b"))));
    }
}
