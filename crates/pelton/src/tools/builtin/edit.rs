//! Edit: an exact piece of text for another, and not one byte more.

mod matches;
mod nearest;

use std::future::ready;
use std::io::Read as _;
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use futures::future::BoxFuture;
use serde::Deserialize;
use serde_json::{Value, json};
use tokio_util::sync::CancellationToken;

use self::matches::{Miss, Replacement, Searched};
use super::{changing, refused_by};
use crate::limits::{EDIT_SHOWN_LINE_CHARS_MAX, EDIT_SHOWN_LINES_MAX, ORIGINAL_BYTES_MAX, ToolLimits};
use crate::tools::disk::{DiskError, Found, Place, Target};
use crate::tools::file_memory::{FileMemory, Fingerprint, Known, LineChange};
use crate::tools::lenient;
use crate::tools::patch::{CONTEXT_LINES, Hunk, Stretch};
use crate::tools::text::{Encoding, cut};
use crate::tools::tool::{Access, InvalidInput, Output, Safety, Spec, Tool, ToolCx, parse_input};

/// The tool.
pub(super) fn tool() -> Arc<dyn Tool> {
    Arc::new(EditTool)
}

struct EditTool;

const SPEC: Spec<'static> = Spec {
    name: "Edit",
    description: include_str!("edit.md"),
    input_schema: r#"{"type":"object","properties":{"file_path":{"type":"string"},"old_string":{"type":"string"},"new_string":{"type":"string"},"replace_all":{"type":"boolean"}},"required":["file_path","old_string","new_string"]}"#,
};

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Input {
    #[serde(deserialize_with = "lenient::path")]
    file_path: PathBuf,
    old_string: String,
    new_string: String,
    #[serde(default, deserialize_with = "lenient::flag")]
    replace_all: bool,
}

impl Tool for EditTool {
    fn spec(&self) -> Spec<'_> {
        SPEC
    }

    fn safety(&self, _input: &Value) -> Safety {
        Safety::Alone
    }

    fn access(&self, input: &Value, cx: &ToolCx) -> Result<Access, InvalidInput> {
        parse(input).map(|input| Access::Edit(cx.absolute(&input.file_path)))
    }

    fn refusal<'a>(&'a self, input: &Value, cx: &'a ToolCx) -> BoxFuture<'a, Option<Output>> {
        let Ok(input) = parse(input) else { return Box::pin(ready(None)) };
        let target = cx.target(&input.file_path);
        let (files, limits, may_look) = (cx.files.clone(), cx.limits.clone(), cx.may_look);
        let work = move || {
            let path = target.path.as_path();
            let found = match input.old_string.is_empty() {
                _ if is_notebook(path) => Err(notebook(path)),
                true if !may_look => Ok(()),
                true => match Place::find(&target) {
                    Ok(place) => found_to_fill(Ok(&place), path).map(drop),
                    Err(error) => found_to_fill(Err(error), path).map(drop),
                },
                false if is_unread(&target, &files, may_look) => Err(unread(path)),
                false => prepared(&target, &input, &files, &limits).map(drop),
            };
            found.err()
        };
        Box::pin(refused_by(work))
    }

    fn run<'a>(&'a self, input: Value, cx: &'a ToolCx) -> BoxFuture<'a, Output> {
        Box::pin(async move {
            let input = match parse(&input) {
                Ok(input) => input,
                Err(InvalidInput(why)) => return Output::unusable(why),
            };
            let target = cx.target(&input.file_path);
            let (files, limits) = (cx.files.clone(), cx.limits.clone());
            let work = move |cancel: &CancellationToken| {
                edit(&target, &input, &files, &limits, cancel).unwrap_or_else(Output::error)
            };
            changing(cx.cancel.child_token(), work).await
        })
    }
}

fn parse(input: &Value) -> Result<Input, InvalidInput> {
    let input: Input = parse_input(input)?;
    if input.file_path.as_os_str().is_empty() {
        return Err(InvalidInput("`file_path` is empty".to_owned()));
    }
    if input.old_string == input.new_string {
        return Err(InvalidInput(
            "`old_string` and `new_string` are the same: nothing would change".to_owned(),
        ));
    }
    Ok(input)
}

/// Whether it is certain without reading a file that this session has not. Where a look at it would need a question, nothing is found out
/// about one that was not read, not even whether it is there.
fn is_unread(target: &Target, files: &FileMemory, may_look: bool) -> bool {
    let place = Place::find(target);
    match &place {
        Ok(place) if files.remembers(place.path()) => false,
        _ if !may_look => true,
        // Whoever prepares the edit says what is wrong with a place that cannot be opened.
        Ok(place) => place.open().is_ok_and(|(_, found)| !files.may_be_copy(found.metadata.size())),
        Err(_) => false,
    }
}

fn unread(path: &Path) -> String {
    not_written(path, "has not been read in this session. Read it first")
}

/// An edit that can be made as things are now.
struct Prepared {
    place: Place,
    found: Found,
    original: Vec<u8>,
    encoding: Encoding,
    replacements: Vec<Replacement>,
    /// The file is not what was read.
    changed_since: bool,
}

/// Finds what would be changed, and changes nothing. The error side says why it cannot be.
fn prepared(
    target: &Target,
    input: &Input,
    files: &FileMemory,
    limits: &ToolLimits,
) -> Result<Prepared, String> {
    let path = target.path.as_path();
    let shown = path.display();
    let refused = |error: DiskError| refused(path, error);
    let place = Place::find(target).map_err(refused)?;
    let (mut file, found) = place.open().map_err(refused)?;
    if found.metadata.size() > limits.edit_bytes_max {
        return Err(format!("{shown} is larger than {} bytes: too large to edit.", limits.edit_bytes_max));
    }
    let mut original = Vec::new();
    file.read_to_end(&mut original).map_err(|error| refused(error.into()))?;
    let encoding = Encoding::of(&original)
        .ok_or_else(|| format!("{shown} is a binary file: Edit changes text only."))?;

    let content = Fingerprint::of(&original);
    let known = files.recall(place.path(), content);
    let changed_since = match known {
        Known::Whole { .. } | Known::Lines(_) => false,
        Known::Changed { was_whole: true } => true,
        Known::Changed { was_whole: false } => {
            return Err(not_written(path, "changed since a part of it was read. Read it again first"));
        }
        Known::FirstPage => {
            return Err(not_written(
                path,
                "was read only in part. Read the lines to change, with an offset, first",
            ));
        }
        Known::Never => return Err(unread(path)),
    };

    let searched = Searched::new(&original, encoding);
    let replacements =
        searched.replacements(&input.old_string, &input.new_string, input.replace_all).map_err(|miss| {
            let mut why = explain(&miss, input, &original, encoding);
            if changed_since {
                why.push_str("\nThe file changed since it was read: read it again.");
            }
            format!("{shown} was not changed: {why}")
        })?;
    if changed_since && replacements.len() > 1 {
        return Err(not_written(
            path,
            "changed since it was read, and the text is there several times. Read it again first",
        ));
    }
    if let Known::Lines(pages) = &known {
        let unseen = replacements.iter().find(|replacement| {
            let lines = &replacement.matched_lines;
            !pages.iter().any(|page| page.start <= lines.start && lines.end <= page.end)
        });
        if let Some(unseen) = unseen {
            return Err(not_written(
                path,
                &format!(
                    "was read only in part, without line {}. Read that first",
                    unseen.matched_lines.start
                ),
            ));
        }
    }
    if !place.is_writable() {
        return Err(not_written(path, "is read-only"));
    }
    Ok(Prepared { place, found, original, encoding, replacements, changed_since })
}

/// Both sides are answers; the error side says why the file is as it was.
fn edit(
    target: &Target,
    input: &Input,
    files: &FileMemory,
    limits: &ToolLimits,
    cancel: &CancellationToken,
) -> Result<Output, String> {
    let path = target.path.as_path();
    let shown = path.display();
    if is_notebook(path) {
        return Err(notebook(path));
    }
    if input.old_string.is_empty() {
        return fill(target, input, files, cancel);
    }
    let Prepared { place, found, original, encoding, replacements, changed_since } =
        prepared(target, input, files, limits)?;
    let new = matches::splice(&original, &replacements);
    place.replace(&new, Some(&found), cancel).map_err(|error| refused(path, error))?;
    if !changed_since {
        let changes: Vec<LineChange> = replacements.iter().map(|replacement| replacement.lines).collect();
        files.note_edit(place.path(), Fingerprint::of(&original), Fingerprint::of(&new), &changes);
    }

    let hunks = hunks(&original, &new, &replacements, encoding);
    let mut text = match replacements.len() {
        1 => format!("Edited {shown}:\n"),
        places => format!("Edited {shown} in {places} places:\n"),
    };
    text.push_str(&numbered(&hunks));
    if changed_since {
        text.push_str(
            "\n[The file had changed since it was read; the text was still there exactly once. Read it again before \
             further edits.]",
        );
    }
    if found.metadata.nlink() > 1 {
        text.push_str("\n[The file had other hard links: those keep the old content.]");
    }
    Ok(Output::text(text).with_detail(detail(path, input, &original, encoding, &hunks)))
}

fn refused(path: &Path, error: DiskError) -> String {
    let shown = path.display();
    match error {
        DiskError::Missing => {
            format!("{shown} does not exist. To create it leave `old_string` empty, or use Write.")
        }
        error => format!("{shown} {error}."),
    }
}

fn is_notebook(path: &Path) -> bool {
    path.extension().is_some_and(|extension| extension.eq_ignore_ascii_case("ipynb"))
}

fn notebook(path: &Path) -> String {
    format!("{} is a notebook: change its cells with NotebookEdit.", path.display())
}

/// The empty file that an Edit without an old text fills; none if it makes the file. The error side says why it does neither.
fn found_to_fill(place: Result<&Place, DiskError>, path: &Path) -> Result<Option<Found>, String> {
    match place.and_then(Place::open) {
        Ok((_, found)) if found.metadata.size() == 0 => Ok(Some(found)),
        Ok(_) => {
            let why = "is not empty, and an empty `old_string` only fills an empty or new file. Say what to replace";
            Err(not_written(path, why))
        }
        Err(DiskError::Missing) => Ok(None),
        Err(error) => Err(refused(path, error)),
    }
}

/// An Edit that puts text where there is none: a new file, or an empty one.
fn fill(
    target: &Target,
    input: &Input,
    files: &FileMemory,
    cancel: &CancellationToken,
) -> Result<Output, String> {
    let path = target.path.as_path();
    let place = Place::find_or_make(target).map_err(|error| refused(path, error))?;
    let found = found_to_fill(Ok(&place), path)?;
    let new = input.new_string.as_bytes();
    place.replace(new, found.as_ref(), cancel).map_err(|error| refused(path, error))?;
    files.note_written(place.path(), Fingerprint::of(new), input.new_string.lines().count() as u64);
    let hunks = Stretch::whole("", &input.new_string).hunks();
    let verb = if found.is_some() { "Filled" } else { "Created" };
    let text = format!("{verb} {}.", path.display());
    Ok(Output::text(text).with_detail(detail(path, input, b"", Encoding::Utf8, &hunks)))
}

fn not_written(path: &Path, why: &str) -> String {
    format!("{} {why}. Nothing was written.", path.display())
}

fn detail(path: &Path, input: &Input, original: &[u8], encoding: Encoding, hunks: &[Hunk]) -> Value {
    json!({
        "filePath": path,
        "oldString": input.old_string,
        "newString": input.new_string,
        "originalFile": (original.len() <= ORIGINAL_BYTES_MAX).then(|| encoding.decode(original)),
        "structuredPatch": hunks,
        "userModified": false,
        "replaceAll": input.replace_all,
    })
}

/// Why nothing was replaced, and what would help.
fn explain(miss: &Miss, input: &Input, original: &[u8], encoding: Encoding) -> String {
    match miss {
        Miss::Absent => {
            let mut why = "`old_string` is not in it.".to_owned();
            if has_line_numbers(&input.old_string) {
                why.push_str(" Leave out the line numbers and tabs that Read puts before the text.");
            }
            match nearest::lines(&input.old_string, &encoding.decode(original)) {
                Some(near) if near.only_whitespace_differs => {
                    why.push_str(" These lines differ from it only in white space:\n");
                    why.push_str(&near.numbered());
                }
                Some(near) => {
                    why.push_str(" The lines most like it:\n");
                    why.push_str(&near.numbered());
                }
                None => {}
            }
            why
        }
        Miss::Ambiguous { lines, more } => {
            let lines: Vec<String> = lines.iter().map(u64::to_string).collect();
            format!(
                "`old_string` is in it {}{} times (lines {}{}). Add surrounding lines until it is unique, or set \
                 `replace_all`.",
                if *more { "more than " } else { "" },
                lines.len(),
                lines.join(", "),
                if *more { ", …" } else { "" },
            )
        }
        Miss::Overlapping { line } => {
            format!(
                "`old_string` overlaps itself in line {line}, so it is not clear which text is meant. Use a longer one."
            )
        }
        Miss::TooMany { max } => format!("`old_string` is in it more than {max} times."),
        Miss::Unrepresentable { field } => match encoding {
            Encoding::Older(older) => format!(
                "its encoding is {}, which has no bytes for some characters of `{field}`. Use others, or convert the file \
                 in Bash (`iconv`).",
                older.name()
            ),
            _ => format!(
                "it is not UTF-8, and `{field}` has characters beyond ASCII whose bytes in this file nobody can know. Use \
                 ASCII text, or convert the file in Bash (`iconv`)."
            ),
        },
        Miss::HalfCharacter { line } => format!(
            "it is not UTF-8, and in line {line} the match may begin inside a character. Begin `old_string` further \
             on."
        ),
    }
}

fn has_line_numbers(text: &str) -> bool {
    text.lines().all(|line| {
        let rest = line.trim_start_matches(|c: char| c.is_ascii_digit());
        rest.len() < line.len() && rest.starts_with('\t')
    })
}

/// The changed stretches with their context. Only these are compared, whatever the size of the file.
fn hunks(old: &[u8], new: &[u8], replacements: &[Replacement], encoding: Encoding) -> Vec<Hunk> {
    let mut hunks = Vec::new();
    let mut rest = replacements;
    // How far the new version is ahead of the old, in bytes and in lines, before the current stretch.
    let (mut bytes_ahead, mut lines_ahead) = (0isize, 0i64);
    while let Some(first) = rest.first() {
        let window_start = matches::lines_back(old, first.range.start, CONTEXT_LINES, encoding);
        let mut window_end = first.range.start;
        let (mut bytes_grown, mut lines_grown) = (0isize, 0i64);
        let mut taken = 0;
        for replacement in rest {
            // What lies within reach of each other's context is one stretch.
            if taken > 0
                && matches::lines_back(old, replacement.range.start, CONTEXT_LINES, encoding) > window_end
            {
                break;
            }
            window_end = matches::lines_on(old, replacement.range.end, CONTEXT_LINES + 1, encoding);
            bytes_grown += replacement.bytes.len() as isize - replacement.range.len() as isize;
            lines_grown += replacement.lines.added as i64 - replacement.lines.removed as i64;
            taken += 1;
        }
        let new_window_start = window_start.saturating_add_signed(bytes_ahead);
        let new_window_end = window_end.saturating_add_signed(bytes_ahead + bytes_grown);
        let old_start =
            first.lines.first - matches::line_ends(&old[window_start..first.range.start], encoding);
        let stretch = Stretch {
            old: &encoding.decode(&old[window_start..window_end]),
            new: &encoding.decode(&new[new_window_start..new_window_end]),
            old_start,
            new_start: old_start.saturating_add_signed(lines_ahead),
        };
        hunks.extend(stretch.hunks());
        bytes_ahead += bytes_grown;
        lines_ahead += lines_grown;
        rest = &rest[taken..];
    }
    hunks
}

/// The new lines of the hunks, with their numbers.
fn numbered(hunks: &[Hunk]) -> String {
    let mut shown = Vec::new();
    for (n, hunk) in hunks.iter().enumerate() {
        if n > 0 {
            shown.push("…".to_owned());
        }
        let new = hunk.lines.iter().filter(|line| line.starts_with([' ', '+']));
        shown.extend((hunk.new_start..).zip(new).map(|(number, line)| {
            // The mark at the beginning of a file is no part of its text: Read does not show it either.
            let line = line[1..].strip_prefix('\u{feff}').filter(|_| number == 1).unwrap_or(&line[1..]);
            let (text, more) = cut(line, EDIT_SHOWN_LINE_CHARS_MAX);
            format!("{number}\t{text}{}", if more > 0 { " [… cut]" } else { "" })
        }));
    }
    let more = shown.len().saturating_sub(EDIT_SHOWN_LINES_MAX);
    shown.truncate(EDIT_SHOWN_LINES_MAX);
    if more > 0 {
        shown.push(format!("[… {more} more lines]"));
    }
    shown.join("\n")
}

#[cfg(test)]
mod tests;
