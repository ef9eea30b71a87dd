//! Which sessions there are. Of each file only its first and last bytes are read, whatever its size, and of those only the
//! lines that say something: thousands of sessions are listed at once.

use std::borrow::Cow;
use std::fs::{self, File};
use std::os::unix::fs::FileExt;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Mutex, PoisonError};
use std::time::SystemTime;

use jiff::Timestamp;
use memchr::{memchr, memmem, memrchr};
use serde::Deserialize;
use serde_json::value::RawValue;
use uuid::Uuid;

use super::place::{directory_id, project_key};
use crate::limits::{SESSION_FACTS_BYTES_MAX, SESSION_WORDS_CHARS_MAX, SESSIONS_READ_AT_ONCE_MAX};
use crate::spill::first_chars;

/// Bytes read first of a longer file: most begin with all that is looked for there.
const FIRST_BYTES: usize = 8 * 1024;

/// The file of a session, not opened.
///
/// ```
/// # let dir = tempfile::tempdir()?;
/// # let (config, id) = (dir.path(), "00000000-0000-4000-8000-000000000001");
/// # let folder = config.join("projects/-srv-shop");
/// # std::fs::create_dir_all(&folder)?;
/// # let line = r#"{"type":"user","cwd":"/srv/shop","message":{"role":"user","content":"Count the jars"}}"#;
/// # std::fs::write(folder.join(format!("{id}.jsonl")), line)?;
/// use pelton::transcript::session_files;
///
/// let files = session_files(config); // nothing is opened
/// assert_eq!((files[0].id.to_string().as_str(), files[0].project.as_str()), (id, "-srv-shop"));
/// assert_eq!(files[0].facts().first_prompt.as_deref(), Some("Count the jars"));
/// # Ok::<(), std::io::Error>(())
/// ```
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct SessionFile {
    /// The session.
    pub id: Uuid,
    /// Where it is.
    pub file: PathBuf,
    /// The folder it is in, below `projects`.
    pub project: String,
    /// Its size.
    pub bytes: u64,
    /// When something was last added.
    pub modified: SystemTime,
}

/// What the ends of a session's file say about it.
///
/// ```
/// # let dir = tempfile::tempdir()?;
/// # let (config, id) = (dir.path(), "00000000-0000-4000-8000-000000000001");
/// # let folder = config.join("projects/-srv-shop");
/// # std::fs::create_dir_all(&folder)?;
/// # let line = r#"{"type":"user","cwd":"/srv/shop","message":{"role":"user","content":"Count the jars"}}"#;
/// # std::fs::write(folder.join(format!("{id}.jsonl")), line)?;
/// use pelton::transcript::session_files;
///
/// let facts = session_files(config)[0].facts(); // only the ends of the file are read
/// assert_eq!(facts.cwd.as_deref(), Some("/srv/shop".as_ref()));
/// let name = facts.title.or(facts.first_prompt).unwrap_or_default();
/// assert_eq!(name, "Count the jars");
/// # Ok::<(), std::io::Error>(())
/// ```
#[derive(Debug, Clone, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct SessionFacts {
    /// Where it works.
    pub cwd: Option<PathBuf>,
    /// Names that directory itself, wherever it was moved since.
    pub directory: Option<String>,
    /// The branch it worked on last.
    pub git_branch: Option<String>,
    /// When it began.
    pub created: Option<Timestamp>,
    /// What it is called: by its user, or else by a program.
    pub title: Option<String>,
    /// What it is tagged with.
    pub tag: Option<String>,
    /// The colour it is to be shown in.
    pub color: Option<String>,
    /// The first thing that was asked, or the beginning of it.
    pub first_prompt: Option<String>,
    /// The last thing that was asked, if that is near the end.
    pub last_prompt: Option<String>,
    /// It is the record of a sub-agent.
    pub is_sidechain: bool,
    /// What it was last gone on with: `cli` at a terminal, `sdk-…` by a program or without a screen.
    pub entrypoint: Option<String>,
}

impl SessionFacts {
    /// Whether nobody sat in front of it when it was last gone on with.
    pub fn is_unattended(&self) -> bool {
        self.entrypoint.as_deref().is_some_and(is_program)
    }
}

/// Whether a line was written for a program, or where nobody sat in front, by what it says of its front end.
pub(crate) fn is_program(entrypoint: &str) -> bool {
    entrypoint.starts_with("sdk")
}

/// A session as it is listed.
///
/// ```
/// # let dir = tempfile::tempdir()?;
/// # let (config, id) = (dir.path(), "00000000-0000-4000-8000-000000000001");
/// # let folder = config.join("projects/-srv-shop");
/// # std::fs::create_dir_all(&folder)?;
/// # let line = r#"{"type":"user","cwd":"/srv/shop","message":{"role":"user","content":"Count the jars"}}"#;
/// # std::fs::write(folder.join(format!("{id}.jsonl")), line)?;
/// use pelton::transcript::{Listed, list_sessions};
///
/// let lines = list_sessions(config).into_iter().map(|Listed { file, facts, .. }| {
///     format!("{} {}", file.id, facts.first_prompt.unwrap_or_default())
/// });
/// assert_eq!(lines.collect::<Vec<_>>(), [format!("{id} Count the jars")]);
/// # Ok::<(), std::io::Error>(())
/// ```
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct Listed {
    /// Its file.
    pub file: SessionFile,
    /// What that says about it.
    pub facts: SessionFacts,
}

/// The sessions of all projects, newest first.
///
/// ```
/// # let dir = tempfile::tempdir()?;
/// # let (config, id) = (dir.path(), "00000000-0000-4000-8000-000000000001");
/// let folder = config.join("projects/-srv-shop");
/// std::fs::create_dir_all(&folder)?;
/// let line = r#"{"type":"user","cwd":"/srv/shop","message":{"role":"user","content":"Count the jars"}}"#;
/// std::fs::write(folder.join(format!("{id}.jsonl")), line)?;
///
/// let listed = pelton::transcript::list_sessions(config);
/// assert_eq!(listed[0].file.id.to_string(), id);
/// assert_eq!(listed[0].facts.first_prompt.as_deref(), Some("Count the jars"));
/// # Ok::<(), std::io::Error>(())
/// ```
pub fn list_sessions(config_dir: &Path) -> Vec<Listed> {
    with_facts(&session_files(config_dir))
}

/// What files say about their sessions, in their order.
///
/// See [`list_sessions`].
pub fn with_facts(files: &[SessionFile]) -> Vec<Listed> {
    let (next, listed) = (AtomicUsize::new(0), Mutex::new(Vec::with_capacity(files.len())));
    // Most of it is waiting for the disk, one file at a time.
    let work = || {
        let (mut read, mut room) = (Vec::new(), Vec::new());
        while let Some((at, file)) =
            Some(next.fetch_add(1, Ordering::Relaxed)).and_then(|at| Some((at, files.get(at)?)))
        {
            read.push((at, Listed { facts: file.facts_in(&mut room), file: file.clone() }));
        }
        listed.lock().unwrap_or_else(PoisonError::into_inner).extend(read);
    };
    std::thread::scope(|scope| {
        for _ in 1..SESSIONS_READ_AT_ONCE_MAX.min(files.len()) {
            scope.spawn(work);
        }
        work();
    });
    let mut listed = listed.into_inner().unwrap_or_else(PoisonError::into_inner);
    listed.sort_unstable_by_key(|(at, _)| *at);
    listed.into_iter().map(|(_, listed)| listed).collect()
}

/// The files of the sessions of all projects, newest first. None is opened.
///
/// See [`list_sessions`].
pub fn session_files(config_dir: &Path) -> Vec<SessionFile> {
    let projects = fs::read_dir(config_dir.join("projects")).into_iter().flatten().flatten();
    newest_first(projects.flat_map(|folder| files_in(&folder.path())).collect())
}

fn newest_first(mut files: Vec<SessionFile>) -> Vec<SessionFile> {
    files.sort_unstable_by(|a, b| b.modified.cmp(&a.modified).then_with(|| a.file.cmp(&b.file)));
    files
}

/// The sessions of one project's folder, in no order.
pub(super) fn files_in(folder: &Path) -> Vec<SessionFile> {
    let entries = fs::read_dir(folder).into_iter().flatten().flatten();
    entries.filter_map(|entry| SessionFile::at(entry.path())).collect()
}

/// The session that a file is of; `None` if it is of none.
///
/// See [`list_sessions`].
pub fn listed(file: &Path) -> Option<Listed> {
    let file = SessionFile::at(file.to_path_buf())?;
    Some(Listed { facts: file.facts(), file })
}

impl SessionFile {
    fn at(file: PathBuf) -> Option<Self> {
        let id = file.file_name()?.to_str()?.strip_suffix(".jsonl")?.parse().ok()?;
        let project = file.parent()?.file_name().unwrap_or_default().to_string_lossy().into_owned();
        let meta = fs::metadata(&file).ok().filter(fs::Metadata::is_file)?;
        Some(Self { id, project, bytes: meta.len(), modified: meta.modified().ok()?, file })
    }

    /// What its ends say about it. A file that cannot be read says nothing.
    pub fn facts(&self) -> SessionFacts {
        self.facts_in(&mut Vec::new())
    }

    /// The same, read into room that is used again for the next file.
    fn facts_in(&self, room: &mut Vec<u8>) -> SessionFacts {
        let mut facts = SessionFacts::default();
        let Ok(file) = File::open(&self.file) else { return facts };
        let from = self.bytes.saturating_sub(SESSION_FACTS_BYTES_MAX as u64);
        if from > 0 {
            facts.begin(&file, room);
        }
        let end = read_at(&file, from, SESSION_FACTS_BYTES_MAX, room);
        if from == 0 {
            facts.read_beginning(end);
        }
        // Where it does not begin with a line, it begins inside of one.
        let whole = match from {
            0 => end,
            _ => memchr(b'\n', end).map_or(&[][..], |at| &end[at + 1..]),
        };
        facts.read_end(whole);
        facts
    }

    /// Whether it worked in this directory, by [`directory_id`]: its beginning says so, and its end does not say that it went elsewhere.
    pub(super) fn is_of(&self, directory: &str) -> bool {
        let Ok(file) = File::open(&self.file) else { return false };
        let mut facts = SessionFacts::default();
        facts.begin(&file, &mut Vec::new());
        facts.directory.as_deref() == Some(directory) && self.works_elsewhere(&file, directory) != Some(true)
    }

    /// Whether it is of this directory. Names of folders leave out what tells `a-b` from `a/b`, so that one may hold sessions of several
    /// directories. `None` if it does not say.
    ///
    /// ```
    /// # let dir = tempfile::tempdir()?;
    /// # let (config, id) = (dir.path(), "00000000-0000-4000-8000-000000000001");
    /// # let folder = config.join("projects/-srv-shop-old");
    /// # std::fs::create_dir_all(&folder)?;
    /// # let line = r#"{"type":"user","cwd":"/srv/shop/old","message":{"role":"user","content":"Count the jars"}}"#;
    /// # std::fs::write(folder.join(format!("{id}.jsonl")), line)?;
    /// use std::path::Path;
    ///
    /// use pelton::transcript::session_files;
    ///
    /// let session = &session_files(config)[0];
    /// assert_eq!(session.project, "-srv-shop-old");
    /// assert_eq!(session.works_in(Path::new("/srv/shop/old")), Some(true));
    /// assert_eq!(session.works_in(Path::new("/srv/shop-old")), Some(false));
    /// # Ok::<(), std::io::Error>(())
    /// ```
    pub fn works_in(&self, dir: &Path) -> Option<bool> {
        let file = File::open(&self.file).ok()?;
        let (mut facts, mut room) = (SessionFacts::default(), Vec::new());
        facts.begin(&file, &mut room);
        let from = self.bytes.saturating_sub(SESSION_FACTS_BYTES_MAX as u64);
        let end = read_at(&file, from, SESSION_FACTS_BYTES_MAX, &mut room);
        // A record is where its session works: commands in between may have gone elsewhere, and a session that moved began elsewhere.
        let is_here = |cwd: &PathBuf| project_key(cwd) == self.project;
        let last = newest(end, "\"cwd\":", |line| line.cwd.filter(is_here));
        let home = last.or_else(|| facts.cwd.clone().filter(is_here));
        let real = |path: &Path| path.canonicalize().ok();
        if home.as_deref().is_some_and(|home| home == dir || real(home).is_some() && real(home) == real(dir))
        {
            return Some(true);
        }
        // It may have had another name.
        let id = directory_id(dir);
        let was_here = id.is_some() && facts.directory == id;
        match home {
            Some(home) => Some(was_here && directory_id(&home).is_none()),
            None if was_here => Some(true),
            None => facts.cwd.map(|_| false),
        }
    }

    /// Whether its end says that it works in another directory, if that is there still.
    fn works_elsewhere(&self, file: &File, directory: &str) -> Option<bool> {
        let mut room = Vec::new();
        let from = self.bytes.saturating_sub(SESSION_FACTS_BYTES_MAX as u64);
        let end = read_at(file, from, SESSION_FACTS_BYTES_MAX, &mut room);
        let cwd = newest(end, "\"cwd\":", |line| line.cwd)?;
        Some(directory_id(&cwd)? != directory)
    }
}

fn read_at<'a>(file: &File, place: u64, bytes: usize, room: &'a mut Vec<u8>) -> &'a [u8] {
    room.resize(room.len().max(bytes), 0);
    let mut filled = 0;
    while let Ok(count @ 1..) = file.read_at(&mut room[filled..bytes], place + filled as u64) {
        filled += count;
    }
    &room[..filled]
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct Line<'a> {
    #[serde(borrow, default)]
    r#type: Option<Cow<'a, str>>,
    cwd: Option<PathBuf>,
    directory_id: Option<String>,
    git_branch: Option<String>,
    timestamp: Option<Cow<'a, str>>,
    custom_title: Option<String>,
    ai_title: Option<String>,
    summary: Option<String>,
    tag: Option<String>,
    agent_color: Option<String>,
    last_prompt: Option<String>,
    #[serde(default)]
    is_sidechain: bool,
    #[serde(default)]
    is_meta: bool,
    #[serde(default)]
    is_compact_summary: bool,
    entrypoint: Option<String>,
    #[serde(borrow)]
    message: Option<Message<'a>>,
}

#[derive(Deserialize)]
struct Message<'a> {
    #[serde(borrow)]
    content: Option<&'a RawValue>,
}

#[derive(Deserialize)]
struct Words {
    text: Option<String>,
}

impl Line<'_> {
    /// What a person asked in it.
    fn prompt(&self) -> Option<String> {
        if self.r#type.as_deref() != Some("user") || self.is_meta || self.is_compact_summary {
            return None;
        }
        let content = self.message.as_ref()?.content?.get();
        let text = match serde_json::from_str::<String>(content) {
            Ok(text) => text,
            Err(_) => {
                let blocks: Vec<Words> = serde_json::from_str(content).ok()?;
                blocks.into_iter().find_map(|block| block.text)?
            }
        };
        let text = text.trim();
        (!text.is_empty()).then(|| first_chars(text, SESSION_WORDS_CHARS_MAX).to_owned())
    }
}

fn parsed(line: &[u8]) -> Option<Line<'_>> {
    serde_json::from_slice(line).ok()
}

/// The lines that hold some bytes, the last one first. The others are not looked at.
fn lines_with<'a>(bytes: &'a [u8], mark: &str) -> impl Iterator<Item = &'a [u8]> {
    // Forwards many bytes are looked at together, backwards one by one.
    let places: Vec<usize> = memmem::find_iter(bytes, mark).collect();
    let mut before = bytes.len();
    places.into_iter().rev().filter_map(move |place| {
        // A line that holds it twice is one line.
        let is_new = place < before;
        let start = memrchr(b'\n', &bytes[..place]).map_or(0, |end| end + 1);
        let end = memchr(b'\n', &bytes[place..]).map_or(bytes.len(), |end| place + end);
        before = before.min(start);
        is_new.then(|| &bytes[start..end])
    })
}

/// What the last line says that says anything about it.
fn newest<T>(bytes: &[u8], mark: &str, said: impl Fn(Line<'_>) -> Option<T>) -> Option<T> {
    lines_with(bytes, mark).find_map(|line| said(parsed(line)?))
}

impl SessionFacts {
    /// Reads as much of the beginning of a file as it takes to meet its first prompt.
    fn begin(&mut self, file: &File, room: &mut Vec<u8>) {
        for bytes in [FIRST_BYTES, SESSION_FACTS_BYTES_MAX] {
            let read = read_at(file, 0, bytes, room);
            self.read_beginning(read);
            if self.first_prompt.is_some() || read.len() < bytes {
                return;
            }
        }
    }

    fn read_beginning(&mut self, bytes: &[u8]) {
        for line in bytes.split_inclusive(|byte| *byte == b'\n').filter_map(parsed) {
            self.is_sidechain |= line.is_sidechain;
            self.first_prompt = line.prompt();
            self.cwd = self.cwd.take().or(line.cwd);
            self.directory = self.directory.take().or(line.directory_id);
            self.created = self.created.or_else(|| line.timestamp?.parse().ok());
            self.title = line.custom_title.or(self.title.take());
            self.tag = line.tag.or(self.tag.take());
            self.color = line.agent_color.or(self.color.take());
            if self.first_prompt.is_some() {
                return;
            }
        }
    }

    /// Reads the end of a file: what was said last counts.
    fn read_end(&mut self, bytes: &[u8]) {
        let custom = newest(bytes, "\"customTitle\":", |line| line.custom_title);
        let given = || newest(bytes, "\"aiTitle\":", |line| line.ai_title);
        let summary = || newest(bytes, "\"summary\":", |line| line.summary);
        let named = custom.or(self.title.take()).or_else(given).or_else(summary);
        self.title = named.filter(|title| !title.is_empty());
        let tag = newest(bytes, "\"tag\":", |line| line.tag);
        self.tag = tag.or(self.tag.take()).filter(|tag| !tag.is_empty());
        let color = newest(bytes, "\"agentColor\":", |line| line.agent_color);
        self.color = color.or(self.color.take()).filter(|color| !color.is_empty());
        self.git_branch =
            newest(bytes, "\"gitBranch\":", |line| line.git_branch.filter(|name| !name.is_empty()));
        if self.cwd.is_none() {
            self.cwd = newest(bytes, "\"cwd\":", |line| line.cwd);
        }
        self.last_prompt = last_prompt(bytes);
        self.entrypoint = newest(bytes, "\"entrypoint\":", |line| line.entrypoint);
    }
}

/// The last prompt, by the line it is in or by a note of it, whichever stands last.
fn last_prompt(bytes: &[u8]) -> Option<String> {
    // Results of tools are users' lines, too, and most of what a file holds.
    let is_result = |line: &[u8]| memmem::find(line, b"\"type\":\"tool_result\"").is_some();
    let asked = lines_with(bytes, "\"type\":\"user\"").filter(|line| !is_result(line)).filter_map(|line| {
        let words = parsed(line)?.prompt()?;
        Some((line.as_ptr(), words))
    });
    let noted = lines_with(bytes, "\"lastPrompt\":").filter_map(|line| {
        let words = parsed(line)?.last_prompt?;
        Some((line.as_ptr(), words))
    });
    asked.take(1).chain(noted.take(1)).max_by_key(|(place, _)| *place).map(|(_, words)| words)
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn put(config: &Path, project: &str, number: u128, lines: &[String]) -> PathBuf {
        let folder = config.join("projects").join(project);
        fs::create_dir_all(&folder).unwrap();
        let file = folder.join(format!("{}.jsonl", Uuid::from_u128(number)));
        fs::write(&file, lines.concat()).unwrap();
        file
    }

    fn prompt(text: &str) -> String {
        let message = json!({"role": "user", "content": [{"type": "text", "text": text}]});
        json!({"type": "user", "cwd": "/srv/shop", "gitBranch": "main", "timestamp": "2026-01-02T03:04:05.678Z", "message": message})
            .to_string()
            + "\n"
    }

    fn meta(bytes: usize) -> String {
        json!({"type": "user", "isMeta": true, "cwd": "/srv/shop", "message": {"role": "user", "content": "x".repeat(bytes)}})
            .to_string()
            + "\n"
    }

    #[test]
    fn the_ends_of_a_file_say_what_it_is_about() {
        let dir = tempfile::tempdir().unwrap();
        let title = |title: &str| json!({"type": "custom-title", "customTitle": title}).to_string() + "\n";
        let lines =
            [meta(20_000), prompt("first"), meta(1_000_000), title("old"), prompt("last"), title("new")];
        put(dir.path(), "-srv-shop", 1, &lines);
        let [listed] = &list_sessions(dir.path())[..] else { panic!() };
        let facts = &listed.facts;
        assert_eq!(facts.first_prompt.as_deref(), Some("first"));
        assert_eq!(facts.last_prompt.as_deref(), Some("last"));
        assert_eq!(facts.title.as_deref(), Some("new"));
        assert_eq!(facts.cwd.as_deref(), Some(Path::new("/srv/shop")));
        assert_eq!(facts.git_branch.as_deref(), Some("main"));
        assert_eq!(facts.created.unwrap().to_string(), "2026-01-02T03:04:05.678Z");
        assert_eq!(listed.file.project, "-srv-shop");
    }

    #[test]
    fn whatever_else_is_there_is_no_session() {
        let dir = tempfile::tempdir().unwrap();
        assert!(list_sessions(dir.path()).is_empty());
        let file = put(dir.path(), "-p", 1, &["\0\0{\"type\":\n\u{fffd}".to_owned()]);
        fs::write(file.with_file_name("notes.jsonl"), "{}").unwrap();
        fs::create_dir(file.with_extension("")).unwrap();
        fs::create_dir(file.with_file_name(format!("{}.jsonl", Uuid::from_u128(2)))).unwrap();
        fs::write(dir.path().join("projects/file"), "").unwrap();
        let listed = list_sessions(dir.path());
        assert_eq!(listed.len(), 1);
        assert_eq!(listed[0].facts, SessionFacts::default());
    }

    #[test]
    fn the_newest_is_first() {
        let dir = tempfile::tempdir().unwrap();
        for number in 0..100 {
            let file = put(dir.path(), &format!("-p{}", number % 7), number, &[prompt("hi")]);
            let time = SystemTime::UNIX_EPOCH + std::time::Duration::from_secs(number as u64 * 37 % 100);
            File::options().append(true).open(file).unwrap().set_modified(time).unwrap();
        }
        let listed = list_sessions(dir.path());
        assert_eq!(listed.len(), 100);
        assert!(listed.is_sorted_by_key(|listed| std::cmp::Reverse(listed.file.modified)));
    }
}
