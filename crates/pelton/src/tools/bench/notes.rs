//! The index of the model's own notes: whoever makes it too long is told, because only its beginning is shown later.

use std::fs::File;
use std::io::Read as _;
use std::path::{Path, PathBuf};

use super::super::tool::Output;
use crate::limits::{NOTES_INDEX_BYTES_MAX, NOTES_INDEX_LINES_MAX};

/// The output of a call that has changed a file, as it was if the file is not the index or the index is short enough.
/// What was written stays written: the error asks for less of it.
pub(super) async fn checked(output: Output, changed: &Path, notes_dir: &Path) -> Output {
    let (changed, index) = (changed.to_owned(), notes_dir.join("MEMORY.md"));
    let looking = tokio::task::spawn_blocking(move || is_too_long(&changed, index));
    if output.is_error || !looking.await.unwrap_or(false) {
        return output;
    }
    let words = format!(
        "{}\nThis was written, but the index of your notes is longer than {NOTES_INDEX_LINES_MAX} lines or \
         {NOTES_INDEX_BYTES_MAX} bytes, and what is beyond is not shown in later sessions. Shorten it: one line for each \
         note, the rest in files beside it.",
        output.words()
    );
    Output { is_error: true, ..output.with_words(words) }
}

fn is_too_long(changed: &Path, index: PathBuf) -> bool {
    if changed.file_name() != index.file_name() || index.canonicalize().ok().as_deref() != Some(changed) {
        return false;
    }
    let mut text = Vec::new();
    // One byte more says enough.
    let read = File::open(index).and_then(|file| {
        let bytes_max = NOTES_INDEX_BYTES_MAX as u64 + 1;
        file.take(bytes_max).read_to_end(&mut text)
    });
    let lines = text.split_inclusive(|byte| *byte == b'\n').count();
    read.is_ok() && (text.len() > NOTES_INDEX_BYTES_MAX || lines > NOTES_INDEX_LINES_MAX)
}
