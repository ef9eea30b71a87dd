//! A damaged or overgrown session file made anew, in another file and under another id. The old one stays as it is.

use std::collections::HashSet;
use std::fs;
use std::io::{self, BufRead, BufReader, Read as _, Write};
use std::os::unix::fs::{DirBuilderExt, OpenOptionsExt};
use std::path::Path;

use pelton_wire::cache::CacheLife;
use serde_json::{Map, Value, json};
use uuid::Uuid;

use super::blobs::Blobs;
use super::read::{LINKS, Loaded, Proven, is_no_message};
use super::window::{read_window, window_start};
use super::withdrawn::withdrawn;
use super::{DIRECTORY_FIELD, PROOF_FIELD, QUESTION_LINE, TOMBSTONE_LINE};
use crate::event::LoopKind;
use crate::history::History;
use crate::limits::TRANSCRIPT_LINE_BYTES_MAX;

/// A tool's own account of its result is kept up to this size when a file is shrunk. The model never reads it.
const ACCOUNT_BYTES_KEPT_MAX: usize = 16 * 1024;

/// What is left out of the new file.
///
/// ```
/// # let dir = tempfile::tempdir()?;
/// # let (from, to) = (dir.path().join("a.jsonl"), dir.path().join("b.jsonl"));
/// # std::fs::write(&from, "{\"type\":\"summary\",\"summary\":\"Jars\"}\n\0\0{\"type\":\"us")?;
/// # let session = uuid::Uuid::from_u128(2);
/// use pelton::transcript::{Mending, mend};
///
/// let wants_it_small = true;
/// let how = if wants_it_small { Mending::Shrink } else { Mending::Repair };
/// assert_eq!(mend(&from, &to, session, how)?.lines_left_out, 1); // what cannot be read goes either way
/// # Ok::<(), std::io::Error>(())
/// ```
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Mending {
    /// What cannot be read, or is there twice.
    Repair,
    /// That, and what nobody needs to go on: what a summary stands for, and large accounts of results that only people would
    /// look at. What the model is sent stays the same.
    Shrink,
}

/// What became of a file.
///
/// ```
/// # let dir = tempfile::tempdir()?;
/// # let (from, to) = (dir.path().join("a.jsonl"), dir.path().join("b.jsonl"));
/// # std::fs::write(&from, "{\"type\":\"summary\",\"summary\":\"Jars\"}\n\0\0{\"type\":\"us")?;
/// # let session = uuid::Uuid::from_u128(2);
/// use pelton::transcript::{Mending, mend};
///
/// let mended = mend(&from, &to, session, Mending::Repair)?;
/// assert_eq!((mended.lines_kept, mended.lines_left_out), (1, 1));
/// assert_eq!(mended.bytes_after, std::fs::metadata(&to)?.len());
/// # Ok::<(), std::io::Error>(())
/// ```
#[derive(Debug, Clone, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct Mended {
    /// Lines that are in the new file.
    pub lines_kept: u64,
    /// Lines that are not.
    pub lines_left_out: u64,
    /// Lines that follow another line than they said, because that one is not there.
    pub lines_joined: u64,
    /// Lines whose words are not those that were written. They are in the new file as they are.
    pub lines_changed: u64,
    /// Lines that a summary stands for, which are not in the new file either.
    pub lines_summed_up: u64,
    /// Accounts of results that were left out.
    pub accounts_left_out: u64,
    /// The size of the old file.
    pub bytes_before: u64,
    /// The size of the new one.
    pub bytes_after: u64,
}

/// Writes a session's file anew, under another id. What is there already is not overwritten.
///
/// ```
/// # let dir = tempfile::tempdir()?;
/// # let (from, to) = (dir.path().join("a.jsonl"), dir.path().join("b.jsonl"));
/// # let session = uuid::Uuid::from_u128(2);
/// use pelton::transcript::{Mending, examine, mend};
///
/// std::fs::write(&from, "{\"type\":\"summary\",\"summary\":\"Jars\"}\n\0\0{\"type\":\"us")?;
/// let mended = mend(&from, &to, session, Mending::Repair)?;
/// assert_eq!((mended.lines_kept, mended.lines_left_out), (1, 1));
/// assert!(examine(&to).is_ok_and(|examined| examined.is_sound()));
/// # Ok::<(), std::io::Error>(())
/// ```
pub fn mend(from: &Path, to: &Path, session: Uuid, how: Mending) -> io::Result<Mended> {
    if how == Mending::Repair {
        return made(from, to, session, Leaves::WhatIsDamaged);
    }
    let (needed_from, window) = window_start(from).map_err(io::Error::other)?;
    let mended = made(from, to, session, Leaves::WhatIsNotNeeded { needed_from })?;
    // What is gone on with is the same, or more of it is kept.
    if read_window(to).is_ok_and(|made| sent(&made) == sent(&window)) {
        return Ok(mended);
    }
    fs::remove_file(to)?;
    made(from, to, session, Leaves::WhatIsNotNeeded { needed_from: 0 })
}

/// What the model is sent of a conversation.
fn sent(loaded: &Loaded) -> Vec<u8> {
    let (mut history, _) = History::replay(loaded.entries.clone(), loaded.edits.clone(), HashSet::new());
    history.view_mut().request(CacheLife::default()).to_vec()
}

/// What of a file is not in the new one.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Leaves {
    WhatIsDamaged,
    /// That, what was said before a place, and large accounts.
    WhatIsNotNeeded {
        needed_from: u64,
    },
}

fn made(from: &Path, to: &Path, session: Uuid, leaves: Leaves) -> io::Result<Mended> {
    let lines = BufReader::new(fs::File::open(from)?);
    if let Some(dir) = to.parent() {
        fs::DirBuilder::new().recursive(true).mode(0o700).create(dir)?;
    }
    let new = fs::OpenOptions::new().write(true).create_new(true).mode(0o600).open(to)?;
    let written = withdrawn(from)
        .and_then(|withdrawn| {
            let mender = Mender::new(session, leaves, withdrawn);
            written(lines, &Blobs::beside(from), io::BufWriter::new(new), mender)
        })
        .and_then(|mended| Blobs::beside(from).share(&Blobs::beside(to)).map(|()| mended));
    if written.is_err() {
        // Half of it would be taken for a session.
        let _ = fs::remove_file(to);
    }
    written
}

fn written(
    mut lines: impl BufRead,
    blobs: &Blobs,
    mut new: io::BufWriter<fs::File>,
    mut mender: Mender,
) -> io::Result<Mended> {
    let (mut mended, mut line) = (Mended::default(), Vec::new());
    loop {
        line.clear();
        let limit = TRANSCRIPT_LINE_BYTES_MAX as u64;
        let count = lines.by_ref().take(limit).read_until(b'\n', &mut line)? as u64;
        if count == 0 {
            break;
        }
        let place = mended.bytes_before;
        mended.bytes_before += count;
        let text = line.trim_ascii();
        let start = text.iter().position(|byte| *byte != 0).unwrap_or(text.len());
        let is_blank = text.is_empty();
        match serde_json::from_slice::<Map<String, Value>>(&text[start..]) {
            _ if is_blank => {}
            Ok(_) if str::from_utf8(&text[start..]).is_ok_and(is_no_message) => mended.lines_left_out += 1,
            Ok(said) if mender.is_summed_up(&said, place) => {
                mender.pass(said);
                mended.lines_summed_up += 1;
            }
            Ok(said) => match mender.line(said, &proven(blobs, &text[start..]), &mut mended) {
                Some(kept) => {
                    let mut kept = serde_json::to_vec(&kept)?;
                    kept.push(b'\n');
                    new.write_all(&kept)?;
                    mended.lines_kept += 1;
                    mended.bytes_after += kept.len() as u64;
                }
                None => mended.lines_left_out += 1,
            },
            Err(_) => mended.lines_left_out += 1,
        }
    }
    if mended.lines_left_out > 0 || mended.lines_joined > 0 || mended.lines_changed > 0 {
        // Nothing else in the new file tells that thinking in it may be bound to what is not there any more.
        let note = json!({"type": "system", "subtype": "loop_event", "kind": LoopKind::Repair.name(),
            "reason": "the record was made anew without what was damaged", "turn": 0, "sessionId": mender.session});
        let note = note.to_string() + "\n";
        new.write_all(note.as_bytes())?;
        mended.bytes_after += note.len() as u64;
    }
    new.into_inner().map_err(io::IntoInnerError::into_error)?.sync_all()?;
    Ok(mended)
}

fn proven(blobs: &Blobs, line: &[u8]) -> Proven {
    Proven::of(&String::from_utf8_lossy(&blobs.whole(line).0))
}

struct Mender {
    session: Uuid,
    leaves: Leaves,
    /// Lines that were taken back. They stay, and so does the line that says so.
    withdrawn: HashSet<Uuid>,
    /// Lines that are in the new file.
    seen: HashSet<String>,
    /// The newest of them that others can follow.
    last: Option<String>,
    /// Calls that have no result yet.
    calls: HashSet<String>,
    /// What a line that is left out says of the directory: the next one says it instead.
    directory: Option<Value>,
}

impl Mender {
    fn new(session: Uuid, leaves: Leaves, withdrawn: HashSet<Uuid>) -> Self {
        let (seen, calls) = (HashSet::new(), HashSet::new());
        Self { session, leaves, withdrawn, seen, last: None, calls, directory: None }
    }

    /// Whether a line is part of what was said before all that is needed. Titles, tags and prompts that wait are not.
    fn is_summed_up(&self, said: &Map<String, Value>, place: u64) -> bool {
        let Leaves::WhatIsNotNeeded { needed_from } = self.leaves else { return false };
        let kind = said.get("type").and_then(Value::as_str).unwrap_or_default();
        place < needed_from && (LINKS.contains(&kind) || kind == TOMBSTONE_LINE || kind == QUESTION_LINE)
    }

    fn pass(&mut self, mut said: Map<String, Value>) {
        self.directory = said.remove(DIRECTORY_FIELD).or(self.directory.take());
    }

    fn line(
        &mut self,
        mut said: Map<String, Value>,
        proven: &Proven,
        mended: &mut Mended,
    ) -> Option<Map<String, Value>> {
        if said.contains_key("sessionId") {
            said.insert("sessionId".to_owned(), self.session.to_string().into());
        }
        let kind = said.get("type").and_then(Value::as_str).unwrap_or_default();
        let Some(id) = said.get("uuid").and_then(Value::as_str).map(str::to_owned) else { return Some(said) };
        if !LINKS.contains(&kind) {
            return Some(said);
        }
        if self.seen.contains(&id) || !(self.is_withdrawn(&id) || self.pair(&mut said)) {
            return None;
        }
        for field in ["parentUuid", "logicalParentUuid"] {
            let parent = said.get(field).and_then(Value::as_str);
            let is_lost = parent.is_some_and(|parent| !self.seen.contains(parent));
            if is_lost || (!proven.place && field == "parentUuid") {
                said.insert(field.to_owned(), self.last.clone().into());
                mended.lines_joined += 1;
                // It was about another place.
                said.remove(PROOF_FIELD);
            }
        }
        if !proven.words {
            mended.lines_changed += 1;
            said.remove(PROOF_FIELD);
        }
        let account = said.get("toolUseResult").map_or(0, |account| account.to_string().len());
        if self.leaves != Leaves::WhatIsDamaged && account > ACCOUNT_BYTES_KEPT_MAX {
            said.remove("toolUseResult");
            mended.accounts_left_out += 1;
        }
        if let Some(directory) = self.directory.take() {
            said.entry(DIRECTORY_FIELD).or_insert(directory);
        }
        self.seen.insert(id.clone());
        if said.get("isSidechain").and_then(Value::as_bool) != Some(true) {
            self.last = Some(id);
        }
        Some(said)
    }

    fn is_withdrawn(&self, id: &str) -> bool {
        id.parse().is_ok_and(|id: Uuid| self.withdrawn.contains(&id))
    }

    /// Takes out results that belong to no call, or whose call has one. Tells whether anything is left of the line.
    fn pair(&mut self, said: &mut Map<String, Value>) -> bool {
        let content = said.get_mut("message").and_then(|message| message.get_mut("content"));
        let Some(blocks) = content.and_then(Value::as_array_mut) else { return true };
        let was_empty = blocks.is_empty();
        blocks.retain(|block| {
            let text = |field: &str| block.get(field).and_then(Value::as_str);
            match (text("type"), text("id"), text("tool_use_id")) {
                (Some("tool_use"), Some(call), _) => _ = self.calls.insert(call.to_owned()),
                (Some("tool_result"), _, Some(call)) => return self.calls.remove(call),
                _ => {}
            }
            true
        });
        was_empty || !blocks.is_empty()
    }
}

#[cfg(test)]
mod tests {
    use super::super::examine;
    use super::*;

    fn line(kind: &str, id: u128, parent: Option<u128>, content: &Value) -> String {
        let id_of = |id: u128| Uuid::from_u128(id).to_string();
        json!({"type": kind, "uuid": id_of(id), "parentUuid": parent.map(id_of), "sessionId": id_of(99),
            "message": {"role": kind, "content": content}, "toolUseResult": "x".repeat(20_000)})
        .to_string()
            + "\n"
    }

    #[test]
    fn what_cannot_be_used_is_left_out_and_what_follows_is_joined() {
        let dir = tempfile::tempdir().unwrap();
        let (from, to) = (dir.path().join("a.jsonl"), dir.path().join("b.jsonl"));
        let call = json!([{"type": "tool_use", "id": "c1", "name": "Bash", "input": {}}]);
        let result = |call: &str| json!([{"type": "tool_result", "tool_use_id": call, "content": "ok"}]);
        let damaged = [
            line("user", 1, None, &json!("hi")),
            line("user", 1, None, &json!("hi")),
            "{\"type\":\"assistant\",\"uuid\":\"00000000-0000-0000-0000-00000000\n".to_owned(),
            "\0\0\0".to_owned() + &line("assistant", 3, Some(2), &call),
            line("user", 4, Some(3), &result("c1")),
            line("user", 5, Some(4), &result("c1")),
            line("user", 6, Some(5), &result("nobody's")),
            line("assistant", 7, Some(8), &json!([{"type": "text", "text": "done"}])),
            line("user", 8, Some(7), &json!("more")),
            "{\"type\":\"custom-title\",\"customTitle\":\"Jars\"}\n\n".to_owned(),
            line("user", 9, Some(8), &json!("torn"))[..40].to_owned(),
        ];
        fs::write(&from, damaged.concat()).unwrap();
        let before = fs::read(&from).unwrap();
        assert!(!examine(&from).unwrap().is_sound());
        let mended = mend(&from, &to, Uuid::from_u128(50), Mending::Repair).unwrap();
        assert_eq!((mended.lines_kept, mended.lines_left_out, mended.lines_joined), (6, 5, 2));
        let examined = examine(&to).unwrap();
        assert!(examined.is_sound() && examined.calls_open == 0, "{examined:?}");
        let text = fs::read_to_string(&to).unwrap();
        assert_eq!(text.matches(&Uuid::from_u128(50).to_string()).count(), 6);
        assert!(super::super::read(&to).unwrap().reshaped, "thinking may be bound to what is gone");
        assert!(!text.contains(&Uuid::from_u128(99).to_string()) && text.contains("Jars"));
        assert_eq!(fs::read(&from).unwrap(), before, "the old one is as it was");
        assert!(mend(&from, &to, Uuid::from_u128(50), Mending::Repair).is_err(), "nothing is overwritten");

        let unread = dir.path().join("unread.jsonl");
        assert!(mend(dir.path(), &unread, Uuid::from_u128(52), Mending::Repair).is_err());
        assert!(!unread.exists(), "half of a session is none");

        let small = dir.path().join("c.jsonl");
        let shrunk = mend(&from, &small, Uuid::from_u128(51), Mending::Shrink).unwrap();
        assert_eq!(shrunk.accounts_left_out, 5);
        assert!(shrunk.bytes_after < 3_000 && fs::metadata(&small).unwrap().len() == shrunk.bytes_after);
    }

    #[test]
    fn what_a_summary_stands_for_is_left_behind_and_the_same_is_sent() {
        let dir = tempfile::tempdir().unwrap();
        let (from, to) = (dir.path().join("a.jsonl"), dir.path().join("b.jsonl"));
        let id = |number: u128| Uuid::from_u128(number).to_string();
        let mut first: Value = serde_json::from_str(&line("user", 1, None, &json!("hi"))).unwrap();
        first[DIRECTORY_FIELD] = json!("d-1");
        let replace = json!({"op": "replace", "from": id(1), "to": id(2), "by": {"entry": id(11)}});
        let boundary = json!({"type": "system", "subtype": "compact_boundary", "uuid": id(10), "parentUuid": null, "sessionId": id(99),
            "logicalParentUuid": id(4), "editId": id(10), "edit": replace, "kept": {"from": id(3)}});
        let summary = json!({"type": "user", "uuid": id(11), "parentUuid": id(10), "isCompactSummary": true,
            "message": {"role": "user", "content": "We greeted each other."}});
        let text = |text: &str| json!([{"type": "text", "text": text}]);
        let lines = [
            format!("{first}\n"),
            "{\"type\":\"custom-title\",\"customTitle\":\"Jars\"}\n".to_owned(),
            line("assistant", 2, Some(1), &text("hello")),
            line("user", 3, Some(2), &json!("count them")),
            line("assistant", 4, Some(3), &text("four")),
            format!("{boundary}\n{summary}\n"),
            line("user", 12, Some(11), &json!("again")),
        ];
        fs::write(&from, lines.concat()).unwrap();
        let before = sent(&read_window(&from).unwrap());
        let in_words = String::from_utf8(before.clone()).unwrap();
        assert!(
            in_words.contains("We greeted") && in_words.contains("four") && !in_words.contains("hello"),
            "{in_words}"
        );
        let mended = mend(&from, &to, Uuid::from_u128(50), Mending::Shrink).unwrap();
        assert_eq!(
            (mended.lines_summed_up, mended.lines_kept, mended.lines_left_out),
            (2, 6, 0),
            "{mended:?}"
        );
        assert_eq!(sent(&read_window(&to).unwrap()), before);
        let text = fs::read_to_string(&to).unwrap();
        assert!(!text.contains("hello") && text.contains("Jars") && text.contains("d-1"), "{text}");
        assert!(examine(&to).unwrap().is_sound());
    }

    #[test]
    fn what_was_taken_back_stays_so() {
        let dir = tempfile::tempdir().unwrap();
        let from = dir.path().join("a.jsonl");
        let id = |number: u128| Uuid::from_u128(number).to_string();
        let call = |call: &str| json!([{"type": "tool_use", "id": call, "name": "Glob", "input": {}}]);
        let result = |call: &str| json!([{"type": "tool_result", "tool_use_id": call, "content": "ok"}]);
        let lines = [
            line("user", 1, None, &json!("hi")),
            line("assistant", 2, Some(1), &call("c1")),
            line("assistant", 3, Some(2), &call("c2")),
            json!({"type": "tombstone", "uuids": [id(2), id(3)], "sessionId": id(99)}).to_string() + "\n",
            // The next model may give its call the same name.
            line("assistant", 4, Some(3), &call("c2")),
            line("user", 5, Some(4), &result("c2")),
            line("user", 6, Some(5), &result("c1")),
            line("user", 7, Some(6), &json!("go on")),
        ];
        fs::write(&from, lines.concat()).unwrap();
        let examined = examine(&from).unwrap();
        assert_eq!((examined.withdrawn, examined.calls, examined.calls_open), (2, 1, 0), "{examined:?}");
        assert_eq!(
            examined.first_faults.len(),
            1,
            "the result of the call that was taken back: {examined:?}"
        );
        let before = sent(&read_window(&from).unwrap());
        for (number, how) in [(50, Mending::Repair), (51, Mending::Shrink)] {
            let to = dir.path().join(format!("{number}.jsonl"));
            let mended = mend(&from, &to, Uuid::from_u128(number), how).unwrap();
            assert_eq!((mended.lines_kept, mended.lines_left_out), (7, 1), "{mended:?}");
            assert_eq!(sent(&read_window(&to).unwrap()), before);
            let examined = examine(&to).unwrap();
            assert!(examined.is_sound() && examined.withdrawn == 2, "{examined:?}");
        }
    }
}
