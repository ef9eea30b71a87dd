//! Long texts beside the transcript: what a picture or a long result holds is kept once, in a file named by its hash, and the
//! line names it. Lines stay short, so that whoever lists or reads sessions by their lines has little to read.
//!
//! A line is made whole again before it is looked at, byte for byte. Files are in `<session>/blobs/`, so that they go when the
//! session is deleted.

use std::borrow::Cow;
use std::fs;
use std::io::{self, BufRead as _, Read as _, Write};
use std::os::unix::fs::{DirBuilderExt, OpenOptionsExt};
use std::path::{Path, PathBuf};

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD as BASE64;
use memchr::memmem;
use serde::Deserialize;
use serde_json::{Value, json};

use crate::limits::{BLOB_BYTES_MIN, TRANSCRIPT_LINE_BYTES_MAX};

/// Stands in a line for a text that is kept elsewhere; the hash follows.
pub(super) const MARK: &str = "pelton-blob:sha256:";
/// The type of lines that hold a part of such a text, for readers who cannot take it whole.
const PART_LINE: &str = "pelton-blob";
/// Letters of a hash.
const HASH_CHARS: usize = 64;
/// What the model reads where a text is lost.
const LOST: &str = "[What was here was kept in a file beside the transcript, and that file is gone.]";

/// What of a line may be kept elsewhere.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum SetAside {
    /// Pictures and documents.
    Media,
    /// Any long text.
    All,
}

/// A line whose long texts stand elsewhere, if it has any. `keep` is given each of them and its name; it says whether it
/// keeps such things at all.
pub(super) fn shortened(
    line: &[u8],
    what: SetAside,
    mut keep: impl FnMut(&str, &[u8]) -> io::Result<bool>,
) -> io::Result<Option<Vec<u8>>> {
    if line.len() < BLOB_BYTES_MIN {
        return Ok(None);
    }
    let mut short = Vec::new();
    let mut names = Vec::new();
    let mut copied = 0;
    for text in long_texts(line, what) {
        let name = name_of(&line[text.clone()]);
        if !keep(&name, &line[text.clone()])? {
            return Ok(None);
        }
        short.extend_from_slice(&line[copied..text.start]);
        short.extend_from_slice(MARK.as_bytes());
        short.extend_from_slice(name.as_bytes());
        copied = text.end;
        names.push(name);
    }
    let Some(end) = line.iter().rposition(|byte| *byte == b'}').filter(|_| !names.is_empty()) else {
        return Ok(None);
    };
    short.extend_from_slice(&line[copied..end]);
    write!(short, ",\"blobs\":{}", json!(names))?;
    short.extend_from_slice(&line[end..]);
    Ok(Some(short))
}

/// The insides of long strings that are values.
fn long_texts(line: &[u8], what: SetAside) -> Vec<std::ops::Range<usize>> {
    let mut found = Vec::new();
    let mut at = 0;
    while let Some(open) = memchr::memchr(b'"', &line[at..]).map(|open| at + open) {
        let Some(close) = string_end(line, open + 1) else { break };
        let inside = open + 1..close;
        let is_wanted = what == SetAside::All || line[..open].ends_with(b"\"data\":");
        if inside.len() >= BLOB_BYTES_MIN && line.get(close + 1) != Some(&b':') && is_wanted {
            found.push(inside);
        }
        at = close + 1;
    }
    found
}

/// Where a string ends that begins here.
fn string_end(line: &[u8], mut at: usize) -> Option<usize> {
    loop {
        at += memchr::memchr2(b'"', b'\\', &line[at..])?;
        match line[at] {
            b'"' => return Some(at),
            _ => at += 2,
        }
        if at >= line.len() {
            return None;
        }
    }
}

/// The name that something is kept under.
pub(super) fn name_of(bytes: &[u8]) -> String {
    let digest = ring::digest::digest(&ring::digest::SHA256, bytes);
    digest.as_ref().iter().map(|byte| format!("{byte:02x}")).collect()
}

/// A line as several of at most about so many bytes: what is long in it comes first, in parts, and the line itself names it. Nothing if
/// the line has nothing long in it. Whoever goes on with a record of such lines finds everything in it.
///
/// ```
/// let line = format!(r#"{{"type":"user","text":"{}"}}"#, "x".repeat(200_000));
/// let lines = pelton::transcript::in_parts(line.as_bytes(), 80_000).ok_or("it has a long text")?;
/// assert!(lines.len() > 3 && lines.iter().all(|line| line.len() < 90_000));
/// # Ok::<(), &str>(())
/// ```
pub fn in_parts(line: &[u8], bytes_max: usize) -> Option<Vec<Vec<u8>>> {
    let mut lines = Vec::new();
    // What a part holds is four thirds as long in letters that nobody writes differently.
    let part_bytes = (bytes_max / 4 * 3).max(1);
    let keep = |name: &str, bytes: &[u8]| {
        let parts = bytes.chunks(part_bytes);
        let count = parts.len();
        for (part, bytes) in parts.enumerate() {
            let data = BASE64.encode(bytes);
            let line = json!({"type": PART_LINE, "name": name, "part": part, "parts": count, "data": data});
            lines.push(line.to_string().into_bytes());
        }
        Ok(true)
    };
    let short = shortened(line, SetAside::All, keep).ok().flatten()?;
    lines.push(short);
    Some(lines)
}

/// What the lines of a file hold in parts under a name.
fn put_together(session_file: &Path, name: &str) -> Option<Vec<u8>> {
    #[derive(Deserialize)]
    struct Part<'a> {
        r#type: &'a str,
        name: &'a str,
        part: usize,
        data: &'a str,
    }
    let (mut file, mut line) = (io::BufReader::new(fs::File::open(session_file).ok()?), Vec::new());
    let (mut whole, mut next) = (Vec::new(), 0);
    loop {
        line.clear();
        if file.by_ref().take(TRANSCRIPT_LINE_BYTES_MAX as u64).read_until(b'\n', &mut line).ok()? == 0 {
            return None;
        }
        let is_it = memmem::find(&line, PART_LINE.as_bytes()).is_some();
        let Ok(part) = serde_json::from_slice::<Part<'_>>(if is_it { &line } else { b"" }) else { continue };
        if (part.r#type, part.name) != (PART_LINE, name) {
            continue;
        }
        // A record that was written twice has it twice.
        if part.part == 0 {
            (whole, next) = (Vec::new(), 0);
        }
        if part.part == next && whole.len() <= TRANSCRIPT_LINE_BYTES_MAX {
            whole.extend(BASE64.decode(part.data).ok()?);
            next += 1;
        }
        if name_of(&whole) == name {
            return Some(whole);
        }
    }
}

/// The lines of a session's file as they were said: what is kept beside it is back in its place. A line that is too long to be
/// one is passed over.
///
/// ```
/// # let dir = tempfile::tempdir()?;
/// # let file = dir.path().join("session.jsonl");
/// std::fs::write(&file, "{\"type\":\"summary\"}\n{\"type\":\"tag\"}")?;
/// let lines: Vec<Vec<u8>> = pelton::transcript::whole_lines(&file)?.collect::<Result<_, _>>()?;
/// assert_eq!(lines, [b"{\"type\":\"summary\"}".to_vec(), b"{\"type\":\"tag\"}".to_vec()]);
/// # Ok::<(), std::io::Error>(())
/// ```
pub fn whole_lines(session_file: &Path) -> io::Result<impl Iterator<Item = io::Result<Vec<u8>>> + use<>> {
    let blobs = Blobs::beside(session_file);
    let whole = move |line: Vec<u8>| blobs.whole(line.trim_ascii_end()).0.into_owned();
    Ok(lines_as_they_are(session_file)?.map(move |line| line.map(&whole)))
}

/// The lines of a session's file, without what is kept beside it. A line that is too long to be one is passed over.
pub(super) fn lines_as_they_are(
    session_file: &Path,
) -> io::Result<impl Iterator<Item = io::Result<Vec<u8>>> + use<>> {
    let mut file = io::BufReader::new(fs::File::open(session_file)?);
    let mut is_rest = false;
    Ok(std::iter::from_fn(move || {
        loop {
            let mut line = Vec::new();
            match file.by_ref().take(TRANSCRIPT_LINE_BYTES_MAX as u64).read_until(b'\n', &mut line) {
                Ok(0) => return None,
                Ok(_) => {}
                Err(error) => return Some(Err(error)),
            }
            let is_long = line.len() == TRANSCRIPT_LINE_BYTES_MAX && !line.ends_with(b"\n");
            if std::mem::replace(&mut is_rest, is_long) || is_long {
                continue;
            }
            return Some(Ok(line));
        }
    }))
}

/// The files beside one transcript.
#[derive(Debug, Clone)]
pub(super) struct Blobs {
    dir: PathBuf,
    /// The record itself, which may hold them in parts.
    session_file: PathBuf,
    /// The folder of the project: a session that another program forked has its files with the one it came from.
    project: Option<PathBuf>,
}

impl Blobs {
    pub fn beside(session_file: &Path) -> Self {
        // Records of sub-agents are part of their session.
        let of_agent = session_file.parent().filter(|folder| folder.ends_with("subagents"));
        let session = match of_agent.and_then(Path::parent) {
            Some(session) => session.to_path_buf(),
            None => session_file.with_extension(""),
        };
        let session_file = session_file.to_path_buf();
        Self { dir: session.join("blobs"), session_file, project: session.parent().map(Path::to_path_buf) }
    }

    /// Keeps a text, once. The answer is its file if that is new, and has to be synced.
    pub fn keep(&self, name: &str, bytes: &[u8]) -> io::Result<Option<fs::File>> {
        let path = self.dir.join(name);
        if fs::metadata(&path).is_ok_and(|there| there.len() == bytes.len() as u64) {
            return Ok(None);
        }
        fs::DirBuilder::new().recursive(true).mode(0o700).create(&self.dir)?;
        // Whoever reads it finds all of it or nothing, and two that keep the same do no harm to each other.
        let unfinished = self.dir.join(format!(".{name}.{}", std::process::id()));
        let mut options = fs::OpenOptions::new();
        let mut file = options.write(true).create(true).truncate(true).mode(0o600).open(&unfinished)?;
        if let Err(error) = file.write_all(bytes).and_then(|()| fs::rename(&unfinished, &path)) {
            // Half of it only takes room.
            let _ = fs::remove_file(&unfinished);
            return Err(error);
        }
        Ok(Some(file))
    }

    /// The folder they are in.
    pub fn dir(&self) -> &Path {
        &self.dir
    }

    /// Gives all of them to another session, too.
    pub fn share(&self, other: &Self) -> io::Result<()> {
        let Ok(files) = fs::read_dir(&self.dir) else { return Ok(()) };
        fs::DirBuilder::new().recursive(true).mode(0o700).create(&other.dir)?;
        for file in files.flatten().filter(|file| is_name(&file.file_name().to_string_lossy())) {
            let to = other.dir.join(file.file_name());
            // They never change, so that one file will do for both; other disks need a copy.
            if fs::hard_link(file.path(), &to).is_err() && !to.exists() {
                fs::copy(file.path(), &to)?;
            }
        }
        Ok(())
    }

    /// A line as it was before its long texts were kept elsewhere. Tells whether one of them is lost.
    pub fn whole<'a>(&self, line: &'a [u8]) -> (Cow<'a, [u8]>, bool) {
        #[derive(Deserialize)]
        struct Names {
            blobs: Vec<String>,
        }
        if memmem::find(line, MARK.as_bytes()).is_none() || memmem::find(line, b"\"blobs\":[").is_none() {
            return (Cow::Borrowed(line), false);
        }
        let Ok(Names { blobs }) = serde_json::from_slice(line) else { return (Cow::Borrowed(line), false) };
        let (mut whole, mut lost) = (line.to_vec(), Vec::new());
        for name in blobs.iter().filter(|name| is_name(name)) {
            let mark = format!("{MARK}{name}");
            let Some(at) = memmem::find(&whole, format!("\"{mark}\"").as_bytes()).map(|at| at + 1) else {
                continue;
            };
            match self.read(name).filter(|bytes| whole.len() + bytes.len() <= TRANSCRIPT_LINE_BYTES_MAX) {
                Some(bytes) => _ = whole.splice(at..at + mark.len(), bytes),
                None => lost.push(mark),
            }
        }
        if lost.is_empty() {
            return (Cow::Owned(whole), false);
        }
        let without = serde_json::from_slice(&whole).map(|mut line| {
            leave_out(&mut line, &lost);
            line.to_string().into_bytes()
        });
        (Cow::Owned(without.unwrap_or(whole)), true)
    }

    /// What is kept under a name in this folder alone, for what can be done without.
    pub fn read_here(&self, name: &str) -> Option<Vec<u8>> {
        is_name(name).then(|| read_as(&self.dir.join(name), name))?
    }

    /// What is kept under a name, if it is what it was.
    fn read(&self, name: &str) -> Option<Vec<u8>> {
        read_as(&self.dir.join(name), name)
            .or_else(|| {
                let sessions = fs::read_dir(self.project.as_ref()?).ok()?.flatten();
                let mut paths = sessions.map(|session| session.path().join("blobs").join(name));
                paths.find_map(|path| read_as(&path, name))
            })
            .or_else(|| put_together(&self.session_file, name))
    }
}

/// What a file holds, if that is what its name says.
fn read_as(path: &Path, name: &str) -> Option<Vec<u8>> {
    let is_small = fs::metadata(path).is_ok_and(|meta| meta.len() <= TRANSCRIPT_LINE_BYTES_MAX as u64);
    let bytes = fs::read(path).ok().filter(|_| is_small)?;
    (name_of(&bytes) == name).then_some(bytes)
}

fn is_name(name: &str) -> bool {
    name.len() == HASH_CHARS && name.bytes().all(|byte| matches!(byte, b'0'..=b'9' | b'a'..=b'f'))
}

/// Puts a note where something is lost: in place of a text, or of the whole picture.
fn leave_out(value: &mut Value, lost: &[String]) {
    let is_lost = |value: &Value| value.as_str().is_some_and(|text| lost.iter().any(|mark| mark == text));
    if is_lost(&value["source"]["data"]) {
        *value = json!({"type": "text", "text": LOST});
    }
    if is_lost(value) {
        *value = json!(LOST);
    }
    match value {
        Value::Array(items) => items.iter_mut().for_each(|item| leave_out(item, lost)),
        Value::Object(fields) => fields.values_mut().for_each(|field| leave_out(field, lost)),
        _ => {}
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn stored(line: &str, what: SetAside) -> (tempfile::TempDir, PathBuf, Vec<u8>) {
        let dir = tempfile::tempdir().unwrap();
        let file = dir.path().join("session.jsonl");
        let blobs = Blobs::beside(&file);
        let keep = |name: &str, bytes: &[u8]| blobs.keep(name, bytes).map(|_| true);
        let short = shortened(line.as_bytes(), what, keep).unwrap();
        (dir, file, short.unwrap_or_else(|| line.as_bytes().to_vec()))
    }

    /// The line without the field that names what was kept.
    fn without_names(line: &[u8]) -> Value {
        let mut line: Value = serde_json::from_slice(line).unwrap();
        line.as_object_mut().unwrap().remove("blobs");
        line
    }

    fn long(letter: char) -> String {
        format!("{}\"\\\n\u{e9}", letter.to_string().repeat(BLOB_BYTES_MIN))
    }

    #[test]
    fn a_line_comes_back_as_it_was() {
        let picture =
            json!({"type": "image", "source": {"type": "base64", "data": "A".repeat(BLOB_BYTES_MIN)}});
        let line = json!({"message": {"content": [{"type": "text", "text": long('x')}, picture, picture]}, "other": long('y')});
        for (what, kept) in [(SetAside::All, 3), (SetAside::Media, 1)] {
            let (_dir, file, short) = stored(&line.to_string(), what);
            assert_eq!(
                fs::read_dir(Blobs::beside(&file).dir()).unwrap().count(),
                kept,
                "the same is kept once"
            );
            assert!(short.len() < line.to_string().len());
            let (whole, lost) = Blobs::beside(&file).whole(&short);
            assert!(!lost);
            assert_eq!(without_names(&whole), line, "{what:?}");
            fs::write(&file, [b"{}\n", &short[..], b"\n{\"torn"].concat()).unwrap();
            let lines: Vec<Vec<u8>> = whole_lines(&file).unwrap().map(Result::unwrap).collect();
            assert_eq!((&lines[0][..], &lines[2][..]), (&b"{}"[..], &b"{\"torn"[..]));
            assert_eq!(without_names(&lines[1]), line, "{what:?}");
        }
    }

    #[test]
    fn bytes_stay_the_same_bytes() {
        let text = format!(r#"{{"b":"{}\u00e9\/","a": [1 ,2]}}"#, "x".repeat(BLOB_BYTES_MIN));
        let (_dir, file, short) = stored(&text, SetAside::All);
        let whole = String::from_utf8(Blobs::beside(&file).whole(&short).0.into_owned()).unwrap();
        assert!(whole.starts_with(text.strip_suffix('}').unwrap()), "{}", &whole[whole.len() - 200..]);
    }

    #[test]
    fn a_line_in_parts_comes_back_whole_in_whatever_order_of_others() {
        let picture =
            json!({"type": "image", "source": {"type": "base64", "data": "A".repeat(3 * BLOB_BYTES_MIN)}});
        let line =
            json!({"message": {"content": [{"type": "text", "text": long('x')}, picture]}}).to_string();
        let lines = in_parts(line.as_bytes(), BLOB_BYTES_MIN).unwrap();
        assert!(lines.len() > 5 && lines.iter().all(|line| line.len() < 2 * BLOB_BYTES_MIN));
        let dir = tempfile::tempdir().unwrap();
        let file = dir.path().join("session.jsonl");
        // Whoever kept it may have written it in other words, and have begun twice.
        let anew = |line: &Vec<u8>| serde_json::from_slice::<Value>(line).unwrap().to_string() + "\n";
        let kept: String = lines[..2].iter().chain(&lines).map(anew).collect();
        fs::write(&file, format!("{{\"type\":\"mode\"}}\n{kept}")).unwrap();
        let (whole, lost) = Blobs::beside(&file).whole(lines.last().unwrap());
        assert!(!lost);
        assert_eq!(without_names(&whole), serde_json::from_str::<Value>(&line).unwrap());
        // Without one of the parts it is lost, and that is said.
        let torn: String = lines.iter().skip(1).map(anew).collect();
        fs::write(&file, torn).unwrap();
        assert!(Blobs::beside(&file).whole(lines.last().unwrap()).1);
        assert_eq!(in_parts(br#"{"a":"short"}"#, BLOB_BYTES_MIN), None);
    }

    #[test]
    fn short_lines_and_keys_stay_where_they_are() {
        for line in [json!({"a": "b"}), json!({long('k'): 1}), json!({"a": long('x').split_at(100).0})] {
            let keep = |_: &str, _: &[u8]| panic!("nothing is long");
            assert_eq!(shortened(line.to_string().as_bytes(), SetAside::All, keep).unwrap(), None);
        }
        let nobody =
            shortened(json!({"a": long('x')}).to_string().as_bytes(), SetAside::All, |_, _| Ok(false));
        assert_eq!(nobody.unwrap(), None);
    }

    #[test]
    fn what_is_lost_or_damaged_is_said_and_the_rest_is_kept() {
        let picture =
            json!({"type": "image", "source": {"type": "base64", "data": "A".repeat(BLOB_BYTES_MIN)}});
        let line = json!({"content": [picture, {"text": long('x')}]});
        let (_dir, file, short) = stored(&line.to_string(), SetAside::All);
        let mut names: Vec<PathBuf> =
            fs::read_dir(Blobs::beside(&file).dir()).unwrap().map(|file| file.unwrap().path()).collect();
        names.sort_by_key(|path| fs::read(path).unwrap());
        fs::write(&names[0], "A".repeat(BLOB_BYTES_MIN - 1) + "B").unwrap();
        let (whole, lost) = Blobs::beside(&file).whole(&short);
        assert!(lost);
        let whole = without_names(&whole);
        assert_eq!(whole["content"][0], json!({"type": "text", "text": LOST}));
        assert_eq!(whole["content"][1], line["content"][1]);
        fs::remove_dir_all(Blobs::beside(&file).dir()).unwrap();
        let whole = without_names(&Blobs::beside(&file).whole(&short).0);
        assert_eq!(whole["content"][1]["text"], LOST);
    }

    #[test]
    fn words_that_look_like_a_reference_are_words() {
        let text = format!("{MARK}{}", "0".repeat(HASH_CHARS));
        for line in [json!({"text": text}), json!({"text": text, "blobs": ["../../etc/passwd", "0"]})] {
            let line = line.to_string();
            let (whole, lost) = Blobs::beside(Path::new("/no/such/session.jsonl")).whole(line.as_bytes());
            assert_eq!((&*whole, lost), (line.as_bytes(), false));
        }
    }

    #[test]
    fn a_fork_has_them_too() {
        let line = json!({"a": long('x')}).to_string();
        let (dir, file, short) = stored(&line, SetAside::All);
        // Ours gets them; one by another program finds them with its origin.
        let (ours, theirs) = (dir.path().join("ours.jsonl"), dir.path().join("theirs.jsonl"));
        Blobs::beside(&file).share(&Blobs::beside(&ours)).unwrap();
        assert_eq!(without_names(&Blobs::beside(&theirs).whole(&short).0).to_string(), line);
        fs::remove_dir_all(Blobs::beside(&file).dir()).unwrap();
        assert_eq!(without_names(&Blobs::beside(&ours).whole(&short).0).to_string(), line);
        assert_eq!(Blobs::beside(Path::new("/p/s/subagents/agent-1.jsonl")).dir(), Path::new("/p/s/blobs"));
    }
}
