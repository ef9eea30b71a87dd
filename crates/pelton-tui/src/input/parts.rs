//! What stands in a prompt as one sign: long pastes, pictures. The buffer has a character of a private plane for each, so that the caret
//! steps over it, a backspace takes it away and undo brings it back, as with any other.

use std::sync::Arc;

use crate::limits::{DROPPED_BYTES_MAX, PARTS_MAX, PASTE_CHARS_SHOWN_MAX, PASTE_LINES_SHOWN_MAX};

/// The first of the characters that stand for parts.
const FIRST: u32 = 0xF_0000;

/// Something that a sign in the buffer stands for.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Part {
    Paste(Paste),
    Image(Image),
}

/// Text that was pasted, as it goes to the model.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Paste {
    text: Arc<str>,
    /// How much it is, as its label says: counted once.
    measure: String,
}

impl Paste {
    fn of(text: &str) -> Self {
        let measure = match line_ends(text) {
            0 => format!("+{} characters", text.chars().count()),
            1 => "+1 line".to_owned(),
            lines => format!("+{lines} lines"),
        };
        Self { text: Arc::from(text), measure }
    }
}

/// A picture that goes along with a prompt.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Image {
    /// A file that is read when the prompt is sent.
    File(String),
    /// A picture from the clipboard.
    Bytes { media_type: String, data: Arc<[u8]> },
}

/// What the signs of one prompt stand for. A part stays until the prompt is gone, so that undo finds it.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Parts {
    all: Vec<Part>,
}

/// Text and what the signs in it stand for.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Draft {
    pub(super) text: String,
    pub(super) parts: Parts,
}

impl Parts {
    /// The sign for a text, if it is too long to be shown.
    pub(super) fn fold(&mut self, text: &str) -> Option<char> {
        let long = text.len() > PASTE_CHARS_SHOWN_MAX || line_ends(text) >= PASTE_LINES_SHOWN_MAX;
        if long { self.add(Part::Paste(Paste::of(text))) } else { None }
    }

    /// The sign for a part, unless there are too many already.
    pub(super) fn add(&mut self, part: Part) -> Option<char> {
        if self.all.len() >= PARTS_MAX {
            return None;
        }
        let sign = char::from_u32(FIRST + u32::try_from(self.all.len()).ok()?)?;
        self.all.push(part);
        Some(sign)
    }

    /// The sign that is shown so.
    pub(super) fn labelled(&self, label: &str) -> Option<char> {
        let signs = (0..self.all.len()).filter_map(|at| char::from_u32(FIRST + u32::try_from(at).ok()?));
        signs.into_iter().find(|sign| self.label(*sign).as_deref() == Some(label))
    }

    pub(super) fn part(&self, sign: char) -> Option<&Part> {
        self.all.get(index(sign)?)
    }

    /// How a sign is shown: `[Pasted text #1 +312 lines]`, `[Image #1]`.
    pub(super) fn label(&self, sign: char) -> Option<String> {
        let at = index(sign)?;
        let part = self.all.get(at)?;
        let same = |other: &&Part| std::mem::discriminant(*other) == std::mem::discriminant(part);
        let number = self.all[..=at].iter().filter(same).count();
        Some(match part {
            Part::Image(_) => format!("[Image #{number}]"),
            Part::Paste(paste) => format!("[Pasted text #{number} {}]", paste.measure),
        })
    }

    /// A text with something in the place of each sign.
    fn told(&self, text: &str, mut stands_for: impl FnMut(&Part, String) -> String) -> String {
        let mut told = String::with_capacity(text.len());
        for c in text.chars() {
            match (self.part(c), self.label(c)) {
                (Some(part), Some(label)) => told.push_str(&stands_for(part, label)),
                _ => told.push(c),
            }
        }
        told
    }
}

impl Draft {
    /// A text that was written elsewhere: long ones are folded.
    pub fn of(text: &str) -> Self {
        let mut draft = Self::default();
        let text = plain_line_ends(text);
        match draft.parts.fold(&text) {
            Some(sign) => draft.text.push(sign),
            None => draft.text = without_signs(&text),
        }
        draft
    }

    /// The text as it goes to the model, and the pictures in the order in which they stand there.
    pub fn whole(&self) -> (String, Vec<Image>) {
        let mut images = Vec::new();
        let text = self.parts.told(&self.text, |part, label| match part {
            Part::Paste(paste) => paste.text.to_string(),
            Part::Image(image) => {
                images.push(image.clone());
                label
            }
        });
        (text, images)
    }

    /// The text with labels for what is folded.
    pub fn shown(&self) -> String {
        self.parts.told(&self.text, |_, label| label)
    }
}

/// A text with a sign in the place of each label of a picture that one is known for.
pub(super) fn with_pictures(text: &str, mut sign: impl FnMut(&str) -> Option<char>) -> String {
    const BEGINS: &str = "[Image #";
    let (mut told, mut rest) = (String::with_capacity(text.len()), text);
    while let Some(at) = rest.find(BEGINS) {
        let digits = rest[at + BEGINS.len()..].bytes().take_while(u8::is_ascii_digit).count();
        let end = at + BEGINS.len() + digits;
        let is_label = digits > 0 && rest[end..].starts_with(']');
        let label = &rest[at..end + usize::from(is_label)];
        told.push_str(&rest[..at]);
        match is_label.then(|| sign(label)).flatten() {
            Some(sign) => told.push(sign),
            None => told.push_str(label),
        }
        rest = &rest[at + label.len()..];
    }
    told.push_str(rest);
    told
}

fn index(sign: char) -> Option<usize> {
    let at = usize::try_from(u32::from(sign).checked_sub(FIRST)?).ok()?;
    (at < PARTS_MAX).then_some(at)
}

fn line_ends(text: &str) -> usize {
    text.bytes().filter(|byte| *byte == b'\n').count()
}

/// Terminals send a return for each line end that is pasted.
pub(super) fn plain_line_ends(text: &str) -> String {
    if text.contains('\r') { text.replace("\r\n", "\n").replace('\r', "\n") } else { text.to_owned() }
}

/// Text from outside cannot bring signs of ours along.
pub(super) fn without_signs(text: &str) -> String {
    if text.is_ascii() {
        return text.to_owned();
    }
    text.chars().map(|c| if index(c).is_some() { char::REPLACEMENT_CHARACTER } else { c }).collect()
}

/// The path of a picture, if that is all that was pasted: terminals paste the path of a file that is dropped on them, in quotes,
/// with backslashes, or as an address. Whether it is there is for others to see.
pub fn image_path(pasted: &str) -> Option<String> {
    const ENDINGS: [&str; 5] = [".png", ".jpg", ".jpeg", ".gif", ".webp"];
    let pasted = pasted.trim();
    let quoted = |mark: char| pasted.strip_prefix(mark).and_then(|rest| rest.strip_suffix(mark));
    let path = match (quoted('\''), quoted('"'), pasted.strip_prefix("file://")) {
        (Some(path), ..) | (_, Some(path), _) => path.to_owned(),
        (_, _, Some(address)) => unescaped_address(address)?,
        _ => unescaped(pasted)?,
    };
    let lower = path.to_ascii_lowercase();
    let one_line = !path.contains(['\n', '\r']);
    (one_line && ENDINGS.iter().any(|ending| lower.ends_with(ending) && lower.len() > ending.len()))
        .then_some(path)
}

/// The same of several that are dropped together: a line each, or one behind the other as in a shell.
pub fn image_paths(pasted: &str) -> Option<Vec<String>> {
    if pasted.len() > DROPPED_BYTES_MAX {
        return None;
    }
    match pasted.trim().lines().count() {
        0 | 1 => shell_words(pasted).into_iter().map(image_path).collect(),
        _ => pasted.lines().filter(|line| !line.trim().is_empty()).map(image_path).collect(),
    }
}

/// The words of a line, with their quotes and backslashes.
fn shell_words(line: &str) -> Vec<&str> {
    let (mut words, mut from) = (Vec::new(), None);
    let (mut quote, mut is_escaped) = (None, false);
    for (at, c) in line.char_indices() {
        let is_gap = c.is_whitespace() && quote.is_none() && !is_escaped;
        match (is_gap, from) {
            (true, Some(start)) => {
                words.extend(line.get(start..at));
                from = None;
            }
            (false, None) => from = Some(at),
            _ => {}
        }
        match (is_escaped, quote, c) {
            (false, Some(open), c) if c == open => quote = None,
            (false, None, '\'' | '"') => quote = Some(c),
            _ => {}
        }
        is_escaped = !is_escaped && c == '\\';
    }
    words.extend(from.and_then(|start| line.get(start..)));
    words
}

/// A path as it is typed in a shell; none if there is an unescaped space in it, so that a sentence is no path.
fn unescaped(pasted: &str) -> Option<String> {
    let mut path = String::with_capacity(pasted.len());
    let mut chars = pasted.chars();
    while let Some(c) = chars.next() {
        match c {
            '\\' => path.push(chars.next()?),
            // A path from its root may have spaces, as some terminals paste it.
            ' ' if !pasted.starts_with('/') => return None,
            c => path.push(c),
        }
    }
    Some(path)
}

/// A path of an address: `%20` is a space.
fn unescaped_address(address: &str) -> Option<String> {
    let path = address.strip_prefix("localhost").unwrap_or(address);
    let mut bytes = Vec::with_capacity(path.len());
    let mut rest = path.bytes();
    while let Some(byte) = rest.next() {
        if byte == b'%' {
            let digits = [rest.next()?, rest.next()?];
            bytes.push(u8::from_str_radix(std::str::from_utf8(&digits).ok()?, 16).ok()?);
        } else {
            bytes.push(byte);
        }
    }
    String::from_utf8(bytes).ok()
}
