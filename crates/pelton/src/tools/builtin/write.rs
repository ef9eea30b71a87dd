//! Write: a whole file, new or replaced.

use std::future::ready;
use std::io::Read as _;
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use futures::future::BoxFuture;
use serde::Deserialize;
use serde_json::{Value, json};
use tokio_util::sync::CancellationToken;

use super::{changing, refused_by};
use crate::limits::{ORIGINAL_BYTES_MAX, ToolLimits};
use crate::tools::disk::{DiskError, Found, Place, Target};
use crate::tools::file_memory::{FileMemory, Fingerprint, Known};
use crate::tools::lenient;
use crate::tools::patch::Stretch;
use crate::tools::text::Encoding;
use crate::tools::tool::{Access, InvalidInput, Output, Safety, Spec, Tool, ToolCx, parse_input};

/// The tool.
pub(super) fn tool() -> Arc<dyn Tool> {
    Arc::new(WriteTool)
}

struct WriteTool;

const SPEC: Spec<'static> = Spec {
    name: "Write",
    description: include_str!("write.md"),
    input_schema: r#"{"type":"object","properties":{"file_path":{"type":"string"},"content":{"type":"string"}},"required":["file_path","content"]}"#,
};

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Input {
    #[serde(deserialize_with = "lenient::path")]
    file_path: PathBuf,
    content: String,
}

impl Tool for WriteTool {
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
            let found = match Place::find(&target) {
                // Of what was not read, and would not be without a question, nothing is said beforehand.
                found if !may_look && !found.as_ref().is_ok_and(|place| files.remembers(place.path())) => {
                    return None;
                }
                Ok(place) => there(Ok(&place), path, &input.content, &files, &limits),
                Err(error) => there(Err(error), path, &input.content, &files, &limits),
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
                write(&target, &input.content, &files, &limits, cancel).unwrap_or_else(Output::error)
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
    Ok(input)
}

/// What a Write finds where it is to write.
enum There {
    Nothing,
    /// The content is there already.
    Same(Vec<u8>),
    /// Something else.
    Other(Box<Other>),
}

/// A file, and the bytes that are to take the place of what is in it.
struct Other {
    found: Found,
    original: Vec<u8>,
    encoding: Encoding,
    bytes: Vec<u8>,
}

/// Looks at what is there, and changes nothing. The error side says why it cannot be replaced.
fn there(
    place: Result<&Place, DiskError>,
    path: &Path,
    content: &str,
    files: &FileMemory,
    limits: &ToolLimits,
) -> Result<There, String> {
    let shown = path.display();
    let refused = |error: DiskError| refused(path, &error);
    let opened = place.and_then(|place| place.open().map(|opened| (place, opened)));
    let (place, (mut file, found)) = match opened {
        Ok(opened) => opened,
        Err(DiskError::Missing) => return Ok(There::Nothing),
        Err(error) => return Err(refused(error)),
    };
    if found.metadata.size() > limits.edit_bytes_max {
        return Err(format!("{shown} is larger than {} bytes: too large to replace.", limits.edit_bytes_max));
    }
    let unread = || {
        format!("{shown} exists and has not been read in this session. Read it first. Nothing was written.")
    };
    let size = found.metadata.size();
    let may_be_known = files.remembers(place.path()) || files.may_be_copy(size);
    if size > 0 && size != content.len() as u64 && !may_be_known {
        return Err(unread());
    }
    let mut original = Vec::new();
    file.read_to_end(&mut original).map_err(|error| refused(error.into()))?;
    if original == content.as_bytes() {
        return Ok(There::Same(original));
    }
    let why_not = match files.recall(place.path(), Fingerprint::of(&original)) {
        // Nothing can be lost of an empty file.
        _ if original.is_empty() => None,
        Known::Whole { lines_cut: false } => None,
        Known::Whole { lines_cut: true } => {
            Some("has lines that Read showed only in part, so replacing it could lose them. Use Edit")
        }
        Known::Changed { .. } => Some("changed since it was read. Read it again first"),
        Known::Lines(_) | Known::FirstPage => Some("was read only in part. Read the rest first, or use Edit"),
        Known::Never => return Err(unread()),
    };
    if let Some(why_not) = why_not {
        return Err(format!("{shown} {why_not}. Nothing was written."));
    }
    if !place.is_writable() {
        return Err(format!("{shown} is read-only. Nothing was written."));
    }
    let encoding = Encoding::of(&original).unwrap_or(Encoding::AsciiAndUnknown);
    let mark = &original[..encoding.mark_bytes(&original)];
    let unmarked = content.strip_prefix('\u{FEFF}').unwrap_or(content);
    let bytes = match encoding.encode(unmarked) {
        Ok(bytes) => [mark, &bytes].concat(),
        // There is nothing left of what nobody could read.
        Err(_) if encoding == Encoding::AsciiAndUnknown => content.as_bytes().to_vec(),
        Err(_) => {
            return Err(format!(
                "{shown} is in {}, which has no bytes for some of the new characters. Use others, or convert it first in \
                 Bash (`iconv`). Nothing was written.",
                encoding.name()
            ));
        }
    };
    Ok(There::Other(Box::new(Other { found, original, encoding, bytes })))
}

fn refused(path: &Path, error: &DiskError) -> String {
    format!("{} {error}.", path.display())
}

/// Both sides are answers; the error side says why nothing was written.
fn write(
    target: &Target,
    content: &str,
    files: &FileMemory,
    limits: &ToolLimits,
    cancel: &CancellationToken,
) -> Result<Output, String> {
    let path = target.path.as_path();
    let shown = path.display();
    let refused = |error: DiskError| refused(path, &error);
    let place = Place::find_or_make(target).map_err(refused)?;
    let Other { found, original, encoding, bytes } = match there(Ok(&place), path, content, files, limits)? {
        There::Nothing => {
            place.replace(content.as_bytes(), None, cancel).map_err(refused)?;
            remember(files, &place, content);
            let detail = json!({
                "type": "create",
                "filePath": path,
                "content": content,
                "structuredPatch": [],
                "originalFile": null,
            });
            return Ok(Output::text(format!("Created {shown}.")).with_detail(detail));
        }
        There::Same(original) => {
            remember(files, &place, content);
            let detail = detail_of_update(path, content, &original, content);
            return Ok(Output::text(format!("{shown} already has this content; nothing was changed."))
                .with_detail(detail));
        }
        There::Other(other) => *other,
    };
    let mark = &original[..encoding.mark_bytes(&original)];
    place.replace(&bytes, Some(&found), cancel).map_err(refused)?;
    files.note_written(place.path(), Fingerprint::of(&bytes), content.lines().count() as u64);

    let mut text = format!("Replaced the content of {shown}.");
    match encoding {
        Encoding::Utf8 if original.windows(2).any(|pair| pair == b"\r\n") && !content.contains("\r\n") => {
            text.push_str(" Its lines ended in CRLF; they end in LF now.");
        }
        Encoding::Utf8 if !mark.is_empty() => text.push_str(" It kept its byte order mark."),
        Encoding::Utf8 => {}
        Encoding::AsciiAndUnknown => text.push_str(" It was not UTF-8; it is now."),
        kept => text.push_str(&format!(" It stays in {}.", kept.name())),
    }
    if found.metadata.nlink() > 1 {
        text.push_str(" It had other hard links: those keep the old content.");
    }
    let old = encoding.decode(&original);
    Ok(Output::text(text).with_detail(detail_of_update(path, content, &original, &old)))
}

fn remember(files: &FileMemory, place: &Place, content: &str) {
    files.note_written(place.path(), Fingerprint::of(content.as_bytes()), content.lines().count() as u64);
}

fn detail_of_update(path: &Path, content: &str, original: &[u8], original_text: &str) -> Value {
    json!({
        "type": "update",
        "filePath": path,
        "content": content,
        "structuredPatch": Stretch::whole(original_text, content).hunks(),
        "originalFile": (original.len() <= ORIGINAL_BYTES_MAX).then_some(original_text),
    })
}

#[cfg(test)]
mod tests;
