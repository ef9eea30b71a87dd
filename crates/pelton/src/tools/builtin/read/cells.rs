//! A notebook as it is shown: its cells with their ids, and what running them brought.

use std::path::Path;

use serde_json::json;

use crate::limits::{NOTEBOOK_IMAGES_MAX, NOTEBOOK_OUTPUT_CHARS_MAX, ToolLimits};
use crate::tools::notebook::{self, Notebook};
use crate::tools::text::cut;
use crate::tools::tool::{Output, ResultBlock};

/// The cells that are shown.
pub(super) struct Shown {
    pub output: Output,
    /// Counted from 1, end exclusive.
    pub first: u64,
    pub next: u64,
    pub total: u64,
}

/// Shows a notebook from the cell `first` on, at most `cells_max` of them and no more than one Read returns.
pub(super) fn show(
    path: &Path,
    text: &str,
    first: u64,
    cells_max: Option<u64>,
    limits: &ToolLimits,
) -> Result<Shown, String> {
    let notebook = Notebook::read(text)?;
    let total = notebook.cells.len() as u64;
    let mut words = String::new();
    let mut images = Vec::new();
    let mut detail = Vec::new();
    let mut next = first;
    let start = usize::try_from(first - 1).unwrap_or(usize::MAX);
    for cell in notebook
        .cells
        .iter()
        .skip(start)
        .take(usize::try_from(cells_max.unwrap_or(u64::MAX)).unwrap_or(usize::MAX))
    {
        let (shown, pictures) = one(cell, NOTEBOOK_IMAGES_MAX.saturating_sub(images.len()));
        if words.len() + shown.len() > limits.read_bytes_max && next > first {
            break;
        }
        words.push_str(&shown);
        images.extend(pictures);
        detail.push(json!({
            "cellType": cell.kind,
            "cell_id": cell.id,
            "source": cell.source,
            "execution_count": cell.execution_count,
        }));
        next += 1;
    }
    let mut note = |text: String| {
        words.push_str(&text);
    };
    let shown = path.display();
    if total == 0 {
        note(format!("[{shown} is a notebook without cells.]"));
    } else if next == first {
        note(format!("[Offset {first} is past the end: {shown} has {total} cells.]"));
    } else if next <= total && cells_max.is_none() {
        note(format!(
            "[PARTIAL: cells {first} to {} of {total}. Go on with offset {next} (it counts cells); until all is read, \
             {shown} does not count as read.]",
            next - 1
        ));
    }
    let mut output = Output::text(words.trim_end().to_owned());
    output.content.extend(images);
    let detail = json!({"type": "notebook", "file": {"filePath": path, "cells": detail}});
    Ok(Shown { output: output.with_detail(detail), first, next, total })
}

fn one(cell: &notebook::Cell<'_>, images_max: usize) -> (String, Vec<ResultBlock>) {
    let mut words = format!("<cell id=\"{}\" type=\"{}\">\n{}", cell.id, cell.kind, cell.source);
    if !words.ends_with('\n') {
        words.push('\n');
    }
    let mut said = String::new();
    let mut images = Vec::new();
    for output in &cell.outputs {
        if let Some(text) = &output.text {
            said.push_str(&text.joined());
        }
        let data = output.data.iter().flatten();
        let mut has_picture = false;
        for (kind, raw) in data.clone() {
            let Some(media_type) =
                ["image/png", "image/jpeg", "image/gif", "image/webp"].iter().find(|known| *known == kind)
            else {
                continue;
            };
            let base64: Option<notebook::Text<'_>> = serde_json::from_str(raw.get()).ok();
            if let Some(base64) = base64.filter(|_| images.len() < images_max) {
                let base64: String = base64.joined().split_whitespace().collect();
                images.push(ResultBlock::Image { media_type, base64 });
                has_picture = true;
            }
        }
        if has_picture {
            said.push_str("[an image, shown below]\n");
        } else if let Some(raw) = output.data.as_ref().and_then(|data| data.get("text/plain"))
            && let Ok(text) = serde_json::from_str::<notebook::Text<'_>>(raw.get())
        {
            said.push_str(&text.joined());
        }
        if let Some(name) = &output.ename {
            said.push_str(&format!("{name}: {}\n", output.evalue.as_deref().unwrap_or_default()));
            said.push_str(&without_colours(&output.traceback.as_deref().unwrap_or_default().join("\n")));
        }
        if !said.ends_with('\n') {
            said.push('\n');
        }
    }
    if !said.trim().is_empty() {
        let (shown, more) = cut(&said, NOTEBOOK_OUTPUT_CHARS_MAX);
        words.push_str("<output>\n");
        words.push_str(shown.trim_end());
        if more > 0 {
            words.push_str(&format!("\n[… {more} more characters]"));
        }
        words.push_str("\n</output>\n");
    }
    words.push_str("</cell>\n");
    (words, images)
}

/// Without the escapes that colour a traceback.
fn without_colours(text: &str) -> String {
    let mut plain = String::new();
    let mut rest = text;
    while let Some(at) = rest.find("\u{1b}[") {
        plain.push_str(&rest[..at]);
        let escape = &rest[at + 2..];
        let end = escape.find(|c: char| c.is_ascii_alphabetic()).map_or(escape.len(), |end| end + 1);
        rest = &escape[end..];
    }
    plain + rest
}

/// Whether a path is that of a notebook.
pub(super) fn is_one(path: &Path) -> bool {
    path.extension().is_some_and(|extension| extension.eq_ignore_ascii_case("ipynb"))
}
