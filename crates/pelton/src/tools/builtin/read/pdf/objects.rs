//! The objects of a PDF, found by looking for them: a damaged table of contents does no harm. Pure.

use std::borrow::Cow;
use std::collections::HashMap;
use std::io::Read as _;

use flate2::read::ZlibDecoder;
use memchr::memmem;

use super::tokens::{count, entry, is_blank, reference, value_end};
use crate::limits::{PDF_OBJECTS_MAX, PDF_UNPACKED_BYTES_MAX};

/// How often the end of a value is looked for in vain.
const FRUITLESS_LOOKS_MAX: usize = 4;

const STREAM_END: &[u8] = b"endstream";

/// One object.
#[derive(Debug, Clone)]
pub(super) struct Object<'a> {
    pub generation: u64,
    /// Its value, as it is written.
    pub value: Cow<'a, [u8]>,
    /// What stands in its stream.
    pub stream: Option<&'a [u8]>,
}

/// All objects of a document.
#[derive(Debug, Default)]
pub(super) struct Objects<'a> {
    found: HashMap<u32, Object<'a>>,
    /// The object everything begins with.
    pub root: Option<u32>,
    pub is_encrypted: bool,
    unpacked: u64,
}

impl<'a> Objects<'a> {
    /// Of two with one number the later counts: that is how documents are changed.
    pub fn of(bytes: &'a [u8]) -> Self {
        let mut objects = Self::default();
        let mut at = 0;
        // Looking for ends that are not there takes a look at everything, so that is not done often.
        let mut patience = FRUITLESS_LOOKS_MAX;
        let last_stream_end = memmem::rfind(bytes, STREAM_END).unwrap_or_default();
        while let Some(found) = memmem::find(&bytes[at..], b"obj") {
            let word = at + found;
            at = word + 3;
            if objects.found.len() >= PDF_OBJECTS_MAX || patience == 0 {
                break;
            }
            let Some((number, generation)) = heading(&bytes[..word]) else { continue };
            let Some(end) = value_end(bytes, at) else {
                patience -= 1;
                continue;
            };
            let value = bytes[at..end].trim_ascii();
            let stream = if end < last_stream_end { stream_at(bytes, end, value) } else { None };
            at = stream.map_or(end, |(_, behind)| behind);
            objects.add(
                number,
                Object { generation, value: Cow::Borrowed(value), stream: stream.map(|(data, _)| data) },
            );
        }
        for found in memmem::find_iter(bytes, b"trailer") {
            let at = found + b"trailer".len();
            match value_end(bytes, at) {
                Some(end) => objects.note_trailer(&bytes[at..end]),
                None if patience == 0 => break,
                None => patience -= 1,
            }
        }
        objects
    }

    pub fn get(&self, number: u32) -> Option<&Object<'a>> {
        self.found.get(&number)
    }

    /// A number that no object has, nor any after it.
    pub fn next_number(&self) -> u32 {
        self.found.keys().max().map_or(1, |last| last.saturating_add(1))
    }

    /// A value, or the object it refers to.
    pub fn resolved<'b>(&'b self, value: &'b [u8]) -> Option<&'b [u8]> {
        match reference(value) {
            Some(number) if !value.starts_with(b"<<") && !value.starts_with(b"[") => {
                self.get(number).map(|object| object.value.as_ref())
            }
            _ => Some(value),
        }
    }

    fn add(&mut self, number: u32, object: Object<'a>) {
        match entry(&object.value, b"Type") {
            Some(b"/XRef") => {
                let value = object.value.clone();
                self.note_trailer(&value);
            }
            // One that cannot be read brings nothing.
            Some(b"/ObjStm") => drop(self.unpack(&object)),
            _ => {
                self.found.insert(number, object);
            }
        }
    }

    fn note_trailer(&mut self, dict: &[u8]) {
        self.root = entry(dict, b"Root").and_then(reference).or(self.root);
        self.is_encrypted |= entry(dict, b"Encrypt").is_some();
    }

    /// Objects may be packed together in a stream.
    fn unpack(&mut self, packed: &Object<'a>) -> Option<()> {
        let (data, dict) = (packed.stream?, packed.value.as_ref());
        let room = PDF_UNPACKED_BYTES_MAX.saturating_sub(self.unpacked);
        let mut unpacked = Vec::new();
        match entry(dict, b"Filter") {
            None => unpacked.extend_from_slice(data),
            // What is damaged half way through still has its first half.
            Some(filter) if filter.ends_with(b"/FlateDecode") || filter.starts_with(b"[") => {
                let _ = ZlibDecoder::new(data).take(room).read_to_end(&mut unpacked);
            }
            Some(_) => return None,
        }
        self.unpacked += unpacked.len() as u64;
        let first = usize::try_from(count(entry(dict, b"First")?)?).ok()?;
        let head = unpacked.get(..first)?;
        let numbers: Vec<u64> = head
            .split(|byte| is_blank(*byte))
            .filter_map(|word| std::str::from_utf8(word).ok()?.parse().ok())
            .collect();
        for pair in numbers.chunks_exact(2) {
            let (number, at) =
                (u32::try_from(pair[0]).ok()?, first.checked_add(usize::try_from(pair[1]).ok()?)?);
            if at > unpacked.len() || self.found.len() >= PDF_OBJECTS_MAX {
                continue;
            }
            if let Some(end) = value_end(&unpacked, at) {
                let value = Cow::Owned(unpacked[at..end].trim_ascii().to_vec());
                self.found.insert(number, Object { generation: 0, value, stream: None });
            }
        }
        Some(())
    }
}

/// The two numbers before the word that begins an object.
fn heading(before: &[u8]) -> Option<(u32, u64)> {
    let number = |text: &'_ [u8]| -> Option<(u64, usize)> {
        let text = text.trim_ascii_end();
        let digits = text.iter().rev().take_while(|byte| byte.is_ascii_digit()).count();
        let digits_at = text.len() - digits;
        Some((std::str::from_utf8(&text[digits_at..]).ok()?.parse().ok()?, digits_at))
    };
    let (generation, at) = number(before)?;
    // There is a blank between the two.
    let (object, _) =
        before[..at].last().filter(|byte| is_blank(**byte)).and_then(|_| number(&before[..at]))?;
    Some((u32::try_from(object).ok()?, generation))
}

/// The stream behind a value, and where it ends.
fn stream_at<'a>(bytes: &'a [u8], at: usize, dict: &[u8]) -> Option<(&'a [u8], usize)> {
    let blanks = bytes[at..].iter().take_while(|byte| is_blank(**byte)).count();
    let rest = bytes[at + blanks..].strip_prefix(b"stream")?;
    let rest = rest.strip_prefix(b"\r\n").or_else(|| rest.strip_prefix(b"\n")).unwrap_or(rest);
    let start = bytes.len() - rest.len();
    let said = entry(dict, b"Length").filter(|length| reference(length).is_none()).and_then(count);
    if let Some(data) = said.and_then(|length| rest.get(..usize::try_from(length).ok()?))
        && rest[data.len()..].trim_ascii_start().starts_with(STREAM_END)
    {
        let behind = start + data.len() + memmem::find(&rest[data.len()..], STREAM_END)? + STREAM_END.len();
        return Some((data, behind));
    }
    let end = memmem::find(rest, STREAM_END)?;
    let data = &rest[..end];
    let data = data.strip_suffix(b"\r\n").or_else(|| data.strip_suffix(b"\n")).unwrap_or(data);
    Some((data, start + end + STREAM_END.len()))
}
