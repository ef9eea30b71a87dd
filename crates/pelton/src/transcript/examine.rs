//! Looking at every line of a session's file and saying what is wrong with it. Nothing is changed, and no more than one
//! line is in memory at a time.

use std::borrow::Cow;
use std::collections::{BTreeMap, HashMap, HashSet};
use std::fs::File;
use std::io::{self, BufRead, BufReader, Read as _};
use std::path::Path;

use serde::Deserialize;
use serde_json::value::RawValue;
use uuid::Uuid;

use super::COMPACT_BOUNDARY;
use super::blobs::Blobs;
use super::read::{LINKS, Proven, ReadError, is_no_message, parent};
use super::withdrawn::withdrawn;
use crate::limits::{TRANSCRIPT_FAULTS_LISTED_MAX, TRANSCRIPT_LINE_BYTES_MAX};

/// What is in a session's file, and what is wrong with it.
///
/// ```
/// # let dir = tempfile::tempdir()?;
/// # let file = dir.path().join("session.jsonl");
/// use pelton::transcript::examine;
///
/// std::fs::write(&file, "{\"type\":\"summary\",\"summary\":\"Jars\"}\n")?;
/// let examined = examine(&file)?;
/// assert!(examined.is_sound());
/// assert_eq!((examined.lines, examined.types["summary"]), (1, 1));
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Debug, Clone, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct Examined {
    /// Its size.
    pub bytes: u64,
    /// Lines that are not blank.
    pub lines: u64,
    /// How many lines there are of each type.
    pub types: BTreeMap<String, u64>,
    /// Summaries that stand for what was said before.
    pub boundaries: u64,
    /// Calls of tools, and how many have no result.
    pub calls: u64,
    /// Calls without a result: after a crash, a note stands in for it.
    pub calls_open: u64,
    /// Messages that were taken back. They are still there, and nobody goes by them.
    pub withdrawn: u64,
    /// The longest line.
    pub line_bytes_max: u64,
    /// Its last line is not ended: a write was cut.
    pub is_torn: bool,
    /// How many faults there are of each kind.
    pub faults: BTreeMap<FaultKind, u64>,
    /// The first of them, in order.
    pub first_faults: Vec<Fault>,
}

/// Something that is wrong with a line.
///
/// ```
/// # let dir = tempfile::tempdir()?;
/// # let file = dir.path().join("session.jsonl");
/// use pelton::transcript::examine;
///
/// std::fs::write(&file, "{\"type\":\"summary\",\"summary\":\"Jars\"}\n{\"type\":\"us")?;
/// let fault = &examine(&file)?.first_faults[0];
/// assert_eq!((fault.line, fault.place), (2, 36));
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct Fault {
    /// The line, counted from 1.
    pub line: u64,
    /// Where it begins.
    pub place: u64,
    /// What is wrong.
    pub kind: FaultKind,
}

/// What can be wrong with a line. None of it keeps the others from being read.
///
/// ```
/// use pelton::transcript::FaultKind;
///
/// let line = format!("line 7: {}", FaultKind::ParentMissing.name());
/// assert_eq!(line, "line 7: the line it follows is missing");
/// ```
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
#[non_exhaustive]
pub enum FaultKind {
    /// It is not the text of a JSON object: torn, or overwritten.
    NotJson,
    /// It has runs of zeros, as a machine that stopped leaves them.
    Zeros,
    /// It is too long to be read.
    TooLong,
    /// It is not UTF-8.
    NotUtf8,
    /// Another line has the same id: it counts once.
    Repeated,
    /// What it follows is not there: it is joined to the line before it.
    ParentMissing,
    /// It follows itself by way of others: it is joined to the line before it.
    ParentCycle,
    /// It is said to be a message, and nothing can be made of it.
    NotAMessage,
    /// Its words are not those that were written.
    Changed,
    /// A long text of it, which is kept beside the file, is not there.
    TextMissing,
    /// It is the result of a call that is not there.
    ResultWithoutCall,
    /// Its call has a result already.
    ResultRepeated,
}

impl FaultKind {
    /// In words.
    pub fn name(self) -> &'static str {
        match self {
            Self::NotJson => "not a JSON object",
            Self::Zeros => "runs of zero bytes",
            Self::TooLong => "too long to be read",
            Self::NotUtf8 => "not UTF-8",
            Self::Repeated => "written twice",
            Self::ParentMissing => "the line it follows is missing",
            Self::ParentCycle => "it follows itself",
            Self::NotAMessage => "no message can be made of it",
            Self::Changed => "its words are not those that were written",
            Self::TextMissing => "a text of it is not there",
            Self::ResultWithoutCall => "a result without its call",
            Self::ResultRepeated => "a second result of one call",
        }
    }
}

impl Examined {
    /// Whether nothing is wrong. A call without its result is no fault: it was running when the session was left.
    pub fn is_sound(&self) -> bool {
        self.faults.is_empty() && !self.is_torn
    }
}

/// Looks at every line of a session's file.
///
/// ```
/// # let dir = tempfile::tempdir()?;
/// # let file = dir.path().join("session.jsonl");
/// use pelton::transcript::{FaultKind, examine};
///
/// std::fs::write(&file, "{\"type\":\"summary\",\"summary\":\"Jars\"}\n{\"type\":\"us")?;
/// let examined = examine(&file)?;
/// assert_eq!((examined.lines, examined.is_torn), (2, true));
/// assert_eq!(examined.faults.get(&FaultKind::NotJson), Some(&1));
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
pub fn examine(path: &Path) -> Result<Examined, ReadError> {
    let fail = |error: io::Error| ReadError { path: path.to_path_buf(), reason: error.to_string() };
    let mut file = BufReader::new(File::open(path).map_err(fail)?);
    let withdrawn = withdrawn(path).map_err(fail)?;
    let blobs = Some(Blobs::beside(path));
    let mut looking = Looking { withdrawn, blobs, ..Looking::default() };
    let mut line = Vec::new();
    loop {
        line.clear();
        let limit = TRANSCRIPT_LINE_BYTES_MAX as u64;
        let count = file.by_ref().take(limit).read_until(b'\n', &mut line).map_err(fail)? as u64;
        if count == 0 {
            return Ok(looking.finish());
        }
        let is_ended = line.ends_with(b"\n");
        let mut rest = 0;
        if !is_ended && count == limit {
            line.clear();
            rest = io::copy(&mut Rest(&mut file), &mut io::sink()).map_err(fail)?;
        }
        looking.see(&line, count + rest);
        looking.examined.is_torn = !is_ended && rest == 0;
    }
}

/// The rest of a line that is too long.
struct Rest<'a, R>(&'a mut R);

impl<R: BufRead> io::Read for Rest<'_, R> {
    fn read(&mut self, into: &mut [u8]) -> io::Result<usize> {
        let buffer = self.0.fill_buf()?;
        let end = buffer.iter().position(|byte| *byte == b'\n').unwrap_or(buffer.len());
        let count = end.min(into.len());
        into[..count].copy_from_slice(&buffer[..count]);
        self.0.consume(count);
        Ok(count)
    }
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct Line<'a> {
    #[serde(borrow, default)]
    r#type: Option<Cow<'a, str>>,
    #[serde(borrow, default)]
    subtype: Option<Cow<'a, str>>,
    uuid: Option<Uuid>,
    #[serde(default, deserialize_with = "parent")]
    parent_uuid: Option<Uuid>,
    #[serde(default, deserialize_with = "parent")]
    logical_parent_uuid: Option<Uuid>,
    #[serde(default)]
    is_sidechain: bool,
    #[serde(borrow)]
    message: Option<&'a RawValue>,
}

#[derive(Deserialize)]
struct Message {
    content: Vec<Block>,
}

#[derive(Deserialize)]
struct Block {
    r#type: String,
    id: Option<String>,
    tool_use_id: Option<String>,
}

#[derive(Default)]
struct Looking {
    examined: Examined,
    /// Texts that are kept beside the file.
    blobs: Option<Blobs>,
    number: u64,
    /// Lines of the chain, and what each follows.
    parents: HashMap<Uuid, Link>,
    /// Lines that were taken back: the chain leads through them, and what they say does not count.
    withdrawn: HashSet<Uuid>,
    /// Calls, and whether each has its result.
    calls: HashMap<String, bool>,
    /// Results whose call was not seen yet: results of parallel calls may stand before it after a repair.
    early: Vec<(Fault, String)>,
}

struct Link {
    parent: Option<Uuid>,
    line: u64,
    place: u64,
}

impl Looking {
    fn see(&mut self, line: &[u8], bytes: u64) {
        let place = self.examined.bytes;
        self.number += 1;
        self.examined.bytes += bytes;
        if line.is_empty() {
            self.examined.lines += 1;
            self.fault(FaultKind::TooLong, place);
            return;
        }
        let text = line.trim_ascii();
        let start = text.iter().position(|byte| *byte != 0).unwrap_or(text.len());
        if start > 0 {
            self.fault(FaultKind::Zeros, place);
        }
        let text = &text[start..];
        if text.is_empty() {
            return;
        }
        self.examined.lines += 1;
        self.examined.line_bytes_max = self.examined.line_bytes_max.max(bytes);
        let (whole, is_lost) = match &self.blobs {
            Some(blobs) => blobs.whole(text),
            None => (Cow::Borrowed(text), false),
        };
        if is_lost {
            self.fault(FaultKind::TextMissing, place);
        }
        let proven = Proven::of(&String::from_utf8_lossy(&whole));
        let text = String::from_utf8_lossy(text);
        if matches!(text, Cow::Owned(_)) {
            self.fault(FaultKind::NotUtf8, place);
        }
        match serde_json::from_str::<Line<'_>>(&text) {
            Ok(_) if is_no_message(&text) => self.fault(FaultKind::NotAMessage, place),
            Ok(line) => {
                if !proven.words && !is_lost {
                    self.fault(FaultKind::Changed, place);
                }
                self.read(&line, proven.place, place);
            }
            Err(_) => self.fault(FaultKind::NotJson, place),
        }
    }

    fn read(&mut self, line: &Line<'_>, is_in_place: bool, place: u64) {
        let kind = line.r#type.as_deref().unwrap_or("(none)");
        *self.examined.types.entry(kind.to_owned()).or_default() += 1;
        self.examined.boundaries += u64::from(line.subtype.as_deref() == Some(COMPACT_BOUNDARY));
        let parent = line.parent_uuid.or(line.logical_parent_uuid);
        let Some(id) = line.uuid.filter(|_| parent.is_some() || LINKS.contains(&kind)) else { return };
        if self.parents.contains_key(&id) {
            self.fault(FaultKind::Repeated, place);
            return;
        }
        if !is_in_place {
            self.fault(FaultKind::ParentMissing, place);
        }
        self.parents.insert(id, Link { parent: parent.filter(|_| is_in_place), line: self.number, place });
        let is_withdrawn = self.withdrawn.contains(&id);
        self.examined.withdrawn += u64::from(is_withdrawn);
        if line.is_sidechain || is_withdrawn {
            return;
        }
        let content = line.message.and_then(|message| serde_json::from_str::<Message>(message.get()).ok());
        for block in content.map_or(Vec::new(), |message| message.content) {
            match (block.r#type.as_str(), block.id, block.tool_use_id) {
                ("tool_use", Some(call), _) => {
                    self.examined.calls += 1;
                    self.calls.entry(call).or_insert(false);
                }
                ("tool_result", _, Some(call)) => match self.calls.get_mut(&call) {
                    Some(true) => self.fault(FaultKind::ResultRepeated, place),
                    Some(answered) => *answered = true,
                    None => {
                        let fault = Fault { line: self.number, place, kind: FaultKind::ResultWithoutCall };
                        self.early.push((fault, call));
                    }
                },
                _ => {}
            }
        }
    }

    fn fault(&mut self, kind: FaultKind, place: u64) {
        self.note(Fault { line: self.number, place, kind });
    }

    fn note(&mut self, fault: Fault) {
        *self.examined.faults.entry(fault.kind).or_default() += 1;
        if self.examined.first_faults.len() < TRANSCRIPT_FAULTS_LISTED_MAX {
            self.examined.first_faults.push(fault);
        }
    }

    fn finish(mut self) -> Examined {
        for (fault, call) in std::mem::take(&mut self.early) {
            match self.calls.get_mut(&call) {
                Some(answered @ false) => *answered = true,
                Some(true) => self.note(Fault { kind: FaultKind::ResultRepeated, ..fault }),
                None => self.note(fault),
            }
        }
        self.look_at_parents();
        self.examined.calls_open = self.calls.values().filter(|answered| !**answered).count() as u64;
        self.examined.first_faults.sort_by_key(|fault| fault.place);
        self.examined
    }

    fn look_at_parents(&mut self) {
        let mut faults = Vec::new();
        // Lines from which the beginning is reached, or a fault that was told.
        let mut known: HashSet<Uuid> = HashSet::new();
        let mut in_order: Vec<(&Uuid, &Link)> = self.parents.iter().collect();
        in_order.sort_unstable_by_key(|(_, link)| link.line);
        for (id, _) in in_order {
            let (mut at, mut walked) = (*id, HashSet::new());
            while !known.contains(&at) && walked.insert(at) {
                let Some(Link { parent: Some(parent), line, place }) = self.parents.get(&at) else { break };
                let fault = |kind| Fault { line: *line, place: *place, kind };
                if !self.parents.contains_key(parent) {
                    faults.push(fault(FaultKind::ParentMissing));
                    break;
                }
                if walked.contains(parent) {
                    faults.push(fault(FaultKind::ParentCycle));
                    break;
                }
                at = *parent;
            }
            known.extend(walked);
        }
        for fault in faults {
            self.note(fault);
        }
    }
}

#[cfg(test)]
mod tests {
    use serde_json::{Value, json};

    use super::super::blobs::MARK;
    use super::*;

    fn line(number: u128, parent: Option<u128>, content: &Value) -> String {
        let (id, parent) = (Uuid::from_u128(number), parent.map(Uuid::from_u128));
        json!({"type": "user", "uuid": id, "parentUuid": parent, "message": {"content": content}}).to_string()
    }

    fn check(lines: &[String], faults: &[(u64, FaultKind)]) -> Examined {
        let dir = tempfile::tempdir().unwrap();
        let file = dir.path().join("a.jsonl");
        std::fs::write(&file, lines.iter().map(|line| format!("{line}\n")).collect::<String>()).unwrap();
        let examined = examine(&file).unwrap();
        let found: Vec<_> = examined.first_faults.iter().map(|fault| (fault.line, fault.kind)).collect();
        assert_eq!(found, faults);
        assert_eq!(examined.faults.values().sum::<u64>(), faults.len() as u64);
        examined
    }

    #[test]
    fn a_sound_file_has_no_faults() {
        let call = |id: &str| json!([{"type": "tool_use", "id": id}]);
        let result = |id: &str| json!([{"type": "tool_result", "tool_use_id": id}]);
        let lines = [
            line(1, None, &json!("hi")),
            line(2, Some(1), &call("a")),
            line(3, Some(2), &call("b")),
            line(4, Some(2), &result("a")),
            json!({"type": "custom-title", "customTitle": "x"}).to_string(),
        ];
        let examined = check(&lines, &[]);
        assert!(examined.is_sound());
        assert_eq!((examined.calls, examined.calls_open, examined.lines), (2, 1, 5));
        assert_eq!(examined.types["user"], 4);
    }

    #[test]
    fn every_fault_is_found_where_it_is() {
        let result = json!([{"type": "tool_result", "tool_use_id": "a"}]);
        let lines = [
            line(1, None, &json!("hi")),
            "{\"torn".to_owned(),
            line(1, None, &json!("hi")),
            line(3, Some(99), &json!("hi")),
            line(4, Some(5), &json!("hi")),
            line(5, Some(4), &json!("hi")),
            line(6, Some(5), &result),
            "\0\0\0".to_owned(),
            format!("\0\0{}", line(7, Some(6), &json!("hi"))),
            "[]".to_owned(),
            line(8, Some(7), &Value::Null),
            json!({"type": "user", "message": {"content": "who says so?"}}).to_string(),
            json!({"type": "user", "uuid": Uuid::from_u128(9), "parentUuid": Uuid::from_u128(7),
                "message": {"content": format!("{MARK}{}", "0".repeat(64))}, "blobs": ["0".repeat(64)]})
            .to_string(),
        ];
        let faults = [
            (2, FaultKind::NotJson),
            (3, FaultKind::Repeated),
            (4, FaultKind::ParentMissing),
            (6, FaultKind::ParentCycle),
            (7, FaultKind::ResultWithoutCall),
            (8, FaultKind::Zeros),
            (9, FaultKind::Zeros),
            (10, FaultKind::NotJson),
            (11, FaultKind::NotAMessage),
            (12, FaultKind::NotAMessage),
            (13, FaultKind::TextMissing),
        ];
        check(&lines, &faults);
    }
}
