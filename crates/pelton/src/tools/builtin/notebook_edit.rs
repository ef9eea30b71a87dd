//! NotebookEdit: one cell of a notebook, and not one byte more.

use std::future::ready;
use std::io::Read as _;
use std::path::PathBuf;
use std::sync::Arc;

use futures::future::BoxFuture;
use serde::Deserialize;
use serde_json::{Value, json};
use tokio_util::sync::CancellationToken;

use super::{changing, refused_by};
use crate::limits::{NOTEBOOK_BYTES_MAX, ORIGINAL_BYTES_MAX};
use crate::tools::disk::{DiskError, Found, Place, Target};
use crate::tools::file_memory::{FileMemory, Fingerprint, Known};
use crate::tools::lenient;
use crate::tools::notebook::{Change, Notebook};
use crate::tools::tool::{Access, InvalidInput, Output, Safety, Spec, Tool, ToolCx, parse_input};

/// The tool.
pub(super) fn tool() -> Arc<dyn Tool> {
    Arc::new(NotebookEditTool)
}

struct NotebookEditTool;

const SPEC: Spec<'static> = Spec {
    name: "NotebookEdit",
    description: include_str!("notebook_edit.md"),
    input_schema: r#"{"type":"object","properties":{"notebook_path":{"type":"string"},"new_source":{"type":"string"},"cell_id":{"type":"string"},"cell_type":{"type":"string","enum":["code","markdown"]},"edit_mode":{"type":"string","enum":["replace","insert","delete"]}},"required":["notebook_path","new_source"]}"#,
};

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Input {
    #[serde(deserialize_with = "lenient::path")]
    notebook_path: PathBuf,
    #[serde(default)]
    new_source: Option<String>,
    #[serde(default)]
    cell_id: Option<String>,
    #[serde(default)]
    cell_type: Option<CellType>,
    #[serde(default)]
    edit_mode: Option<Mode>,
}

impl Input {
    fn mode(&self) -> Mode {
        self.edit_mode.unwrap_or_default()
    }
}

#[derive(Deserialize, Clone, Copy)]
#[serde(rename_all = "snake_case")]
enum CellType {
    Code,
    Markdown,
}

impl CellType {
    fn name(self) -> &'static str {
        match self {
            Self::Code => "code",
            Self::Markdown => "markdown",
        }
    }
}

#[derive(Deserialize, Clone, Copy, Default, PartialEq, Eq)]
#[serde(rename_all = "snake_case")]
enum Mode {
    #[default]
    Replace,
    Insert,
    Delete,
}

impl Tool for NotebookEditTool {
    fn spec(&self) -> Spec<'_> {
        SPEC
    }

    fn safety(&self, _input: &Value) -> Safety {
        Safety::Alone
    }

    fn access(&self, input: &Value, cx: &ToolCx) -> Result<Access, InvalidInput> {
        parse(input).map(|input| Access::Edit(cx.absolute(&input.notebook_path)))
    }

    fn refusal<'a>(&'a self, input: &Value, cx: &'a ToolCx) -> BoxFuture<'a, Option<Output>> {
        let input = match parse(input).and_then(complete) {
            Ok(input) => input,
            Err(InvalidInput(why)) => return Box::pin(ready(Some(Output::unusable(why)))),
        };
        let target = cx.target(&input.notebook_path);
        let (files, may_look) = (cx.files.clone(), cx.may_look);
        let work = move || {
            // Where a look at it would need a question, nothing is found out about one that was not read.
            let is_known = may_look || Place::find(&target).is_ok_and(|place| files.remembers(place.path()));
            if !is_known {
                return Some(not_written(&target, UNREAD));
            }
            read(&target, &input, &files).err()
        };
        Box::pin(refused_by(work))
    }

    fn run<'a>(&'a self, input: Value, cx: &'a ToolCx) -> BoxFuture<'a, Output> {
        Box::pin(async move {
            let input = match parse(&input).and_then(complete) {
                Ok(input) => input,
                Err(InvalidInput(why)) => return Output::unusable(why),
            };
            let target = cx.target(&input.notebook_path);
            let files = cx.files.clone();
            let fresh_id = format!("{:08x}", cx.world.random() >> 32);
            let work = move |cancel: &CancellationToken| {
                edit(&target, &input, &fresh_id, &files, cancel).unwrap_or_else(Output::error)
            };
            changing(cx.cancel.child_token(), work).await
        })
    }
}

fn parse(input: &Value) -> Result<Input, InvalidInput> {
    let input: Input = parse_input(input)?;
    let wrong = |why: &str| Err(InvalidInput(why.to_owned()));
    if input.notebook_path.as_os_str().is_empty() {
        return wrong("`notebook_path` is empty");
    }
    if input.notebook_path.extension().is_none_or(|extension| !extension.eq_ignore_ascii_case("ipynb")) {
        return wrong("`notebook_path` must end in .ipynb; use Edit for other files");
    }
    Ok(input)
}

/// Whether everything is there that this kind of edit needs.
fn complete(input: Input) -> Result<Input, InvalidInput> {
    let wrong = |why: &str| Err(InvalidInput(why.to_owned()));
    match input.mode() {
        Mode::Delete => {}
        _ if input.new_source.is_none() => return wrong("`new_source` is missing"),
        Mode::Insert if input.cell_type.is_none() => {
            return wrong("`cell_type` is missing: an inserted cell needs one, code or markdown");
        }
        Mode::Insert | Mode::Replace => {}
    }
    if input.mode() != Mode::Insert && input.cell_id.is_none() {
        return wrong("`cell_id` is missing: Read shows the ids of cells");
    }
    Ok(input)
}

const UNREAD: &str = "has not been read in this session. Read it first";

/// A notebook as it was found.
struct Opened {
    place: Place,
    found: Found,
    text: String,
}

/// Finds the notebook and the cell, and changes nothing. The error side says why it cannot be changed.
fn read(target: &Target, input: &Input, files: &FileMemory) -> Result<Opened, String> {
    let shown = target.path.display();
    let refused = |error: DiskError| format!("{shown} {error}.");
    let not_written = |why: &str| not_written(target, why);
    let place = Place::find(target).map_err(refused)?;
    let (file, found) = place.open().map_err(refused)?;
    if found.metadata.len() > NOTEBOOK_BYTES_MAX {
        return Err(not_written(&format!("is larger than {} MB", NOTEBOOK_BYTES_MAX / 1_000_000)));
    }
    let mut original = Vec::new();
    file.take(NOTEBOOK_BYTES_MAX).read_to_end(&mut original).map_err(|error| refused(error.into()))?;
    let content = Fingerprint::of(&original);
    let text = String::from_utf8(original).map_err(|_| not_written("is not UTF-8, so it is no notebook"))?;
    let known = files.recall(place.path(), content);
    // Nothing is told of a notebook that was not read.
    if known == Known::Never {
        return Err(not_written(UNREAD));
    }
    let notebook = Notebook::read(&text[mark_of(&text)..])
        .map_err(|why| not_written(&format!("is no notebook: {why}")))?;
    let named = named(&notebook, input).map_err(|why| not_written(&why))?;
    match known {
        Known::Whole { .. } => {}
        Known::Lines(pages)
            if named.is_none_or(|cell| pages.iter().any(|page| page.contains(&(cell as u64 + 1)))) => {}
        Known::Lines(_) | Known::FirstPage => {
            return Err(not_written(
                "was read only in part, without that cell. Read it, with an offset, first",
            ));
        }
        Known::Changed { .. } | Known::Never => {
            return Err(not_written("changed since it was read. Read it again first"));
        }
    }
    if !place.is_writable() {
        return Err(not_written("is read-only"));
    }
    Ok(Opened { place, found, text })
}

fn not_written(target: &Target, why: &str) -> String {
    format!("{} {why}. Nothing was written.", target.path.display())
}

/// How many bytes of a file mark how it is written.
fn mark_of(text: &str) -> usize {
    if text.starts_with('\u{FEFF}') { '\u{FEFF}'.len_utf8() } else { 0 }
}

/// The cell that is meant, if one is named.
fn named(notebook: &Notebook<'_>, input: &Input) -> Result<Option<usize>, String> {
    let Some(id) = &input.cell_id else { return Ok(None) };
    notebook.find(id).map(Some).ok_or_else(|| {
        let ids: Vec<&str> = notebook.cells.iter().take(20).map(|cell| cell.id.as_str()).collect();
        format!("has no cell '{id}'. Its cells: {}", ids.join(", "))
    })
}

/// Both sides are answers; the error side says why the notebook is as it was.
fn edit(
    target: &Target,
    input: &Input,
    fresh_id: &str,
    files: &FileMemory,
    cancel: &CancellationToken,
) -> Result<Output, String> {
    let shown = target.path.display();
    let refused = |error: DiskError| format!("{shown} {error}.");
    let not_written = |why: &str| format!("{shown} {why}. Nothing was written.");
    let Opened { place, found, text } = read(target, input, files)?;
    let mark = mark_of(&text);
    let notebook =
        Notebook::read(&text[mark..]).map_err(|why| not_written(&format!("is no notebook: {why}")))?;
    let named = named(&notebook, input).map_err(|why| not_written(&why))?;
    let source = input.new_source.as_deref().unwrap_or_default();
    let kind = input.cell_type.map(CellType::name);
    let change = match (input.mode(), named) {
        (Mode::Insert, behind) => {
            Change::Insert { behind, source, kind: kind.unwrap_or("code"), id: fresh_id }
        }
        (Mode::Replace, Some(cell)) => Change::Replace { cell, source, kind },
        (Mode::Delete, Some(cell)) => Change::Delete { cell },
        (Mode::Replace | Mode::Delete, None) => return Err(not_written("needs a `cell_id`")),
    };
    let new = format!("{}{}", &text[..mark], notebook.with(&change));
    place.replace(new.as_bytes(), Some(&found), cancel).map_err(refused)?;

    let after =
        Notebook::read(&new[mark..]).map_err(|why| format!("{shown} is no notebook any more: {why}."))?;
    files.note_written(place.path(), Fingerprint::of(new.as_bytes()), after.cells.len() as u64);
    let (said, at) = match (input.mode(), named) {
        (Mode::Insert, behind) => ("Inserted", behind.map_or(0, |behind| behind + 1)),
        (Mode::Replace, cell) => ("Replaced", cell.unwrap_or(0)),
        (Mode::Delete, cell) => ("Deleted", cell.unwrap_or(0)),
    };
    let cell = match input.mode() {
        Mode::Delete => &notebook.cells[at],
        _ => &after.cells[at],
    };
    let id = &cell.id;
    let answer = match input.mode() {
        Mode::Delete => format!("{said} cell {id} of {shown}."),
        _ => format!("{said} cell {id} of {shown}:\n{source}"),
    };
    let mode = match input.mode() {
        Mode::Replace => "replace",
        Mode::Insert => "insert",
        Mode::Delete => "delete",
    };
    // Two of them are in one line.
    let whole =
        |text: &str| if text.len() <= ORIGINAL_BYTES_MAX / 2 { text.to_owned() } else { String::new() };
    let detail = json!({
        "new_source": source,
        "cell_id": id,
        "cell_type": cell.kind,
        "language": after.language(),
        "edit_mode": mode,
        "notebook_path": target.path,
        "original_file": whole(&text),
        "updated_file": whole(&new),
    });
    Ok(Output::text(answer).with_detail(detail))
}

#[cfg(test)]
mod tests;
