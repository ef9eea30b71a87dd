//! Read: the text of a file, a page at a time, or the picture in it.

mod cells;
mod pager;
mod pdf;
mod picture;

use std::borrow::Cow;
use std::fs::File;
use std::io::{Read as _, Seek as _};
use std::path::{Path, PathBuf};
use std::sync::Arc;

use futures::future::BoxFuture;
use serde::Deserialize;
use serde_json::{Value, json};
use tokio_util::sync::CancellationToken;

use self::pager::{Page, Pager, Wanted};
use super::looking_at;
use crate::limits::{
    NOTEBOOK_BYTES_MAX, PDF_SOURCE_BYTES_MAX, READ_LARGE_BYTES_MAX, READ_PAGE_SCAN_BYTES_MAX,
    READ_SCAN_BYTES_MAX, ToolLimits,
};
use crate::media::Format;
use crate::tools::disk::{DiskError, Place, Target, neighbours};
use crate::tools::file_memory::{FileMemory, Fingerprint, Fingerprinter, JustRead, Reading};
use crate::tools::lenient;
use crate::tools::text::{Decoder, Encoding, SHOWN_BY_BYTES};
use crate::tools::tool::{Access, InvalidInput, Output, Safety, Spec, Tool, ToolCx, parse_input};

/// The tool.
pub(super) fn tool() -> Arc<dyn Tool> {
    Arc::new(ReadTool)
}

struct ReadTool;

/// Bytes of a file that are in memory at once.
const PIECE_BYTES: usize = 64 * 1024;
/// Most files that are read have no more: room for that is made at once.
const USUAL_BYTES: usize = 8 * 1024;

const SPEC: Spec<'static> = Spec {
    name: "Read",
    description: include_str!("read.md"),
    input_schema: r#"{"type":"object","properties":{"file_path":{"type":"string"},"offset":{"type":"integer","minimum":1},"limit":{"type":"integer","minimum":1},"pages":{"type":"string"},"allow_large":{"type":"boolean"}},"required":["file_path"]}"#,
};

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Input {
    #[serde(deserialize_with = "lenient::path")]
    file_path: PathBuf,
    #[serde(default, deserialize_with = "lenient::count")]
    offset: Option<u64>,
    #[serde(default, deserialize_with = "lenient::count")]
    limit: Option<u64>,
    /// Of a document.
    #[serde(default)]
    pages: Option<String>,
    #[serde(default, deserialize_with = "lenient::flag")]
    allow_large: bool,
}

impl Tool for ReadTool {
    fn spec(&self) -> Spec<'_> {
        SPEC
    }

    fn safety(&self, _input: &Value) -> Safety {
        Safety::Shared
    }

    fn access(&self, input: &Value, cx: &ToolCx) -> Result<Access, InvalidInput> {
        parse(input).map(|input| Access::Read(cx.absolute(&input.file_path)))
    }

    fn foreseeable(&self, input: &Value, cx: &ToolCx) -> Option<Value> {
        let input = parse(input).ok()?;
        // Without what makes no difference: `./` and doubled slashes.
        let path: PathBuf = cx.absolute(&input.file_path).components().collect();
        Some(json!([path, input.offset, input.limit, input.pages, input.allow_large]))
    }

    fn result_chars_max(&self, _limits: &ToolLimits) -> usize {
        // It is a page of a file already, and has limits of its own.
        usize::MAX
    }

    fn run<'a>(&'a self, input: Value, cx: &'a ToolCx) -> BoxFuture<'a, Output> {
        Box::pin(async move {
            let input = match parse(&input) {
                Ok(input) => input,
                Err(InvalidInput(why)) => return Output::unusable(why),
            };
            let target = cx.target(&input.file_path);
            let path = target.path.clone();
            let (files, limits) = (cx.files.clone(), cx.limits.clone());
            let file = target.judged.clone().unwrap_or_else(|| path.clone());
            let reading = move |cancel: &CancellationToken| read(&target, &input, &files, &limits, cancel);
            match looking_at(cx, &file, reading).await {
                Ok(Ok(Content::Text(output))) | Err(output) => output,
                Ok(Ok(Content::Image(bytes))) => picture::show(&path, bytes, &cx.cancel).await,
                Ok(Err(why)) => Output::error(why),
            }
        })
    }
}

fn parse(input: &Value) -> Result<Input, InvalidInput> {
    let mut input: Input = parse_input(input)?;
    // Models write an empty text where they mean nothing.
    input.pages = input.pages.filter(|pages| !pages.trim().is_empty());
    if input.file_path.as_os_str().is_empty() {
        return Err(InvalidInput("`file_path` is empty".to_owned()));
    }
    if input.limit == Some(0) {
        return Err(InvalidInput("`limit` must be 1 or more".to_owned()));
    }
    if let Some(pages) = &input.pages {
        pdf::Pages::read(pages).map_err(InvalidInput)?;
    }
    Ok(input)
}

/// What a file holds that can be shown.
enum Content {
    /// Text: the answer itself.
    Text(Output),
    /// The bytes of an image.
    Image(Vec<u8>),
}

/// The error side says why nothing is shown.
fn read(
    target: &Target,
    input: &Input,
    files: &FileMemory,
    limits: &ToolLimits,
    cancel: &CancellationToken,
) -> Result<Content, String> {
    let path = target.path.as_path();
    let shown = path.display();
    let refused = |error: DiskError| refusal(path, &error);
    let place = Place::find(target).map_err(refused)?;
    let (mut file, found) = place.open().map_err(refused)?;
    // Models count from zero now and then; the first line is meant.
    let start = input.offset.unwrap_or(1).max(1);
    if cells::is_one(path) && found.metadata.len() <= NOTEBOOK_BYTES_MAX {
        let mut bytes = Vec::new();
        (&mut file)
            .take(NOTEBOOK_BYTES_MAX)
            .read_to_end(&mut bytes)
            .map_err(|error| refused(error.into()))?;
        let text = std::str::from_utf8(&bytes).map(|text| text.strip_prefix('\u{FEFF}').unwrap_or(text));
        // What only has the name of a notebook is shown as the text it is.
        if let Ok(Ok(shown)) = text.map(|text| cells::show(path, text, start, input.limit, limits)) {
            let reading = Reading {
                content: Fingerprint::of(&bytes),
                lines: shown.first..shown.next,
                lines_total: shown.total,
                lines_cut: false,
                range_asked: input.limit.is_some() || input.offset.is_some(),
            };
            files.note_read(place.path(), reading);
            return Ok(Content::Text(shown.output));
        }
        file.rewind().map_err(|error| refused(error.into()))?;
    }
    let bytes_max = if input.allow_large {
        READ_LARGE_BYTES_MAX.max(limits.read_bytes_max)
    } else {
        limits.read_bytes_max
    };
    let wanted = Wanted {
        start,
        lines_max: input.limit.unwrap_or(if input.allow_large {
            u64::MAX
        } else {
            limits.read_lines_max as u64
        }),
        bytes_max,
        line_chars_max: limits.read_line_chars_max,
    };
    let (page, content, encoding, whole) = match scan(&mut file, wanted, LOOKED_THROUGH, cancel)
        .map_err(refused)?
    {
        Scan::Pdf => {
            let mut bytes = Vec::new();
            file.rewind().map_err(|error| refused(error.into()))?;
            file.take(PDF_SOURCE_BYTES_MAX + 1)
                .read_to_end(&mut bytes)
                .map_err(|error| refused(error.into()))?;
            let pages = input.pages.as_deref().and_then(|pages| pdf::Pages::read(pages).ok());
            return pdf::show(path, &bytes, pages.as_ref())
                .map(Content::Text)
                .map_err(|why| format!("{shown} {why}."));
        }
        _ if input.pages.is_some() => {
            return Err(format!(
                "{shown} is no PDF document: `pages` is for those alone. Use `offset` and `limit`."
            ));
        }
        Scan::Text { page, content, encoding, whole } => (page, content, encoding, whole),
        Scan::Image => {
            let bytes = found.metadata.len();
            return picture::load(&mut file, bytes, cancel)
                .map(Content::Image)
                .map_err(|why| format!("{shown} {why}."));
        }
        Scan::Binary => {
            return Err(format!(
                "{shown} is a binary file. Read shows text and images; `file`, `xxd` or `strings` in Bash can say more."
            ));
        }
    };
    if input.limit.is_some() && page.over_bytes {
        return Err(format!(
            "{shown}: lines {start} to {} hold more than {} KB, the most one Read returns. Ask for fewer lines: about \
             {} of them fit. Grep finds a place in a large file.",
            start.saturating_add(wanted.lines_max).saturating_sub(1).min(page.total),
            bytes_max / 1024,
            page.next - page.first,
        ));
    }
    if let Some(content) = content {
        let reading = Reading {
            content,
            lines: page.first..page.next,
            lines_total: page.total,
            lines_cut: page.lines_cut > 0,
            range_asked: input.limit.is_some() || input.offset.is_some(),
        };
        files.note_read(place.path(), reading);
        if let Some(bytes) = whole {
            files.hand_over(JustRead { path: place.path().into(), about: found.metadata, content, bytes });
        }
    }

    let mut text = page.numbered();
    let mut note = |words: String| {
        if !text.is_empty() {
            text.push('\n');
        }
        text.push_str(&words);
    };
    if page.total == 0 {
        note(format!("[{shown} exists but is empty.]"));
    } else if page.lines.is_empty() {
        note(format!("[Offset {start} is past the end: {shown} has {} lines.]", page.total));
    } else if page.given_up {
        note(format!(
            "[PARTIAL: the last line here goes on and on, and was not looked at to its end, so that nobody knows what follows it. \
             `head -c` and `tail -c` in Bash show other parts of {shown}.]",
        ));
    } else if input.limit.is_none() && (page.next <= page.total || !page.counted) {
        note(format!(
            "[PARTIAL: lines {} to {} of {}{}. A Read returns at most {} lines and {} KB. Go on with offset {}; until \
             all is read, {shown} does not count as read.]",
            page.first,
            page.next - 1,
            if page.counted { "" } else { "more than " },
            page.total,
            limits.read_lines_max,
            limits.read_bytes_max / 1024,
            page.next,
        ));
    }
    if page.lines_cut > 0 {
        let lines = if page.lines_cut == 1 { "line is" } else { "lines are" };
        note(format!("[{} {lines} cut at {} characters.]", page.lines_cut, limits.read_line_chars_max));
    }
    if page.lossy {
        note("[Not valid UTF-8: bytes that are no characters are shown as \u{FFFD}. Edit keeps them as they are.]".to_owned());
    }
    if !matches!(encoding, Encoding::Utf8 | Encoding::AsciiAndUnknown) {
        note(format!("[Encoding: {}; Edit keeps it.]", encoding.name()));
    }
    let cut_by_cap =
        input.limit.is_none() && (page.next <= page.total || !page.counted) && !page.lines.is_empty();
    let mut detail = json!({
        "type": "text",
        "file": {
            "filePath": path,
            "content": page.content(),
            "numLines": page.lines.len(),
            "startLine": page.first,
            "totalLines": page.total,
        },
    });
    if cut_by_cap {
        detail["file"]["truncatedByTokenCap"] = true.into();
    }
    Ok(Content::Text(Output::text(text).with_detail(detail)))
}

enum Scan {
    Text {
        page: Page,
        /// The whole file, when it was looked at as a whole.
        content: Option<Fingerprint>,
        encoding: Encoding,
        /// All of its bytes, if they are few.
        whole: Option<Vec<u8>>,
    },
    Image,
    Pdf,
    Binary,
}

/// How many bytes of a file are looked through at most.
#[derive(Clone, Copy)]
struct LookedThrough {
    /// For the number of its lines, and to recognise it.
    all: u64,
    /// Beyond that, from the first wanted line on.
    page: u64,
}

const LOOKED_THROUGH: LookedThrough =
    LookedThrough { all: READ_SCAN_BYTES_MAX, page: READ_PAGE_SCAN_BYTES_MAX };

/// Goes through the file once, in pieces: for the page, the number of lines and the fingerprint.
fn scan(
    file: &mut File,
    wanted: Wanted,
    looked_through: LookedThrough,
    cancel: &CancellationToken,
) -> Result<Scan, DiskError> {
    // The beginning decides what kind of file this is, so it is there before it is looked at.
    let mut piece = Vec::with_capacity(USUAL_BYTES);
    (&mut *file).take(SHOWN_BY_BYTES as u64).read_to_end(&mut piece)?;
    let mut filled = piece.len();
    let is_whole = filled < SHOWN_BY_BYTES;
    // By content: a name says what somebody meant it to be.
    if Format::of(&piece[..filled]).is_some() {
        return Ok(Scan::Image);
    }
    if piece[..filled].starts_with(PDF_MARK) {
        return Ok(Scan::Pdf);
    }
    let Some(encoding) = Encoding::of_head(&piece[..filled]) else { return Ok(Scan::Binary) };

    let mut pager = Pager::new(wanted);
    let mut fingerprinter = Fingerprinter::default();
    let mut decoder = Decoder::new(encoding);
    let mut decoded = Vec::new();
    let mut mark = encoding.mark_bytes(&piece[..filled]);
    let (mut scanned, mut before_page) = (0, 0);
    while filled > 0 {
        if cancel.is_cancelled() {
            return Err(DiskError::Interrupted);
        }
        fingerprinter.add(&piece[..filled]);
        decoded.clear();
        decoder.feed(&piece[mark..filled], &mut decoded);
        pager.feed(&decoded);
        mark = 0;
        scanned += filled as u64;
        before_page = if pager.has_begun() { before_page } else { scanned };
        let given_up = !pager.is_full() && scanned - before_page >= looked_through.page;
        if scanned >= looked_through.all && (pager.is_full() || given_up) {
            let page = Page { counted: false, given_up, ..pager.finish() };
            return Ok(Scan::Text { page, content: None, encoding, whole: None });
        }
        if is_whole {
            break;
        }
        piece.resize(PIECE_BYTES, 0);
        filled = file.read(&mut piece)?;
    }
    decoded.clear();
    decoder.finish(&mut decoded);
    pager.feed(&decoded);
    // Copied: there was room for more.
    let whole = is_whole.then(|| piece.as_slice().to_vec());
    Ok(Scan::Text { page: pager.finish(), content: Some(fingerprinter.finish()), encoding, whole })
}

/// What every PDF begins with.
const PDF_MARK: &[u8] = b"%PDF-";

/// What a file says, if its words are what Read shows of it: not those of a picture, a document or a program.
pub(crate) fn words_of(content: &[u8]) -> Option<Cow<'_, str>> {
    if Format::of(content).is_some() || content.starts_with(PDF_MARK) {
        return None;
    }
    let encoding = Encoding::of(content)?;
    Some(encoding.decode(&content[encoding.mark_bytes(content)..]))
}

fn refusal(path: &Path, error: &DiskError) -> String {
    let shown = path.display();
    match error {
        DiskError::Missing => {
            if let Ok(target) = std::fs::read_link(path) {
                return format!("{shown} is a link to {}, which does not exist.", target.display());
            }
            let near: Vec<String> = neighbours(path).iter().map(|path| path.display().to_string()).collect();
            if near.is_empty() {
                format!("{shown} does not exist.")
            } else {
                format!("{shown} does not exist. Similar names: {}", near.join(", "))
            }
        }
        DiskError::Directory => format!("{shown} is a directory. List it with Glob, or `ls` in Bash."),
        DiskError::Interrupted => super::INTERRUPTED.to_owned(),
        error => format!("{shown} {error}."),
    }
}

#[cfg(test)]
mod tests;
