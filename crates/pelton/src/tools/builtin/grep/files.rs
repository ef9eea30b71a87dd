//! Searching the files that a walk meets, one after the other.

use std::fs::{File, Metadata};
use std::io::{self, Cursor, Read};
use std::path::Path;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{SystemTime, UNIX_EPOCH};

use grep_searcher::{BinaryDetection, Searcher, SearcherBuilder, Sink};

use super::{Mode, Search};
use crate::limits::{GREP_BUFFER_BYTES_MAX, GREP_HEAD_BYTES};
use crate::tools::search::{Deadline, Opener};
use crate::tools::text::Encoding;

/// What searching files takes.
#[derive(Clone, Copy)]
pub(super) struct FileSearch<'a> {
    pub search: &'a Search,
    pub deadline: &'a Deadline,
    pub unread: &'a AtomicU64,
}

impl<'a> FileSearch<'a> {
    /// One for each thread.
    pub fn reader(self) -> FileReader<'a> {
        let Search { mode, lines, multiline, .. } = self.search;
        let shows_lines = *mode == Mode::Content;
        let searcher = SearcherBuilder::new()
            .line_number(shows_lines && lines.numbers)
            .multi_line(*multiline)
            .before_context(if shows_lines { lines.before } else { 0 })
            .after_context(if shows_lines { lines.after } else { 0 })
            .binary_detection(BinaryDetection::quit(0))
            .heap_limit(Some(GREP_BUFFER_BYTES_MAX))
            .build();
        FileReader { files: self, searcher, opener: Opener::default(), head: vec![0; GREP_HEAD_BYTES] }
    }
}

/// Searches one file after the other.
pub(super) struct FileReader<'a> {
    files: FileSearch<'a>,
    searcher: Searcher,
    opener: Opener,
    /// The beginning of a file: all of it, for most.
    head: Vec<u8>,
}

impl FileReader<'_> {
    /// When the file was changed, if what the sink got counts: the file is text and was read to where the sink wanted.
    pub fn run<S: Sink<Error = io::Error> + Judged>(
        &mut self,
        path: &Path,
        sink: &mut S,
    ) -> Option<SystemTime> {
        let FileSearch { search, deadline, unread } = self.files;
        if !search.sieve.passes(path) {
            return None;
        }
        match self.try_run(path, sink) {
            Ok(changed) => changed.filter(|_| !sink.is_binary()),
            Err(_) if deadline.reached() => None,
            Err(_) => {
                unread.fetch_add(1, Ordering::Relaxed);
                None
            }
        }
    }

    fn try_run<S: Sink<Error = io::Error>>(
        &mut self,
        path: &Path,
        sink: &mut S,
    ) -> io::Result<Option<SystemTime>> {
        let Some((mut file, metadata)) = self.opener.open(path)? else { return Ok(None) };
        let (length, is_all) = read_head(&mut file, &metadata, &mut self.head)?;
        let head = &self.head[..length];
        // Told from its beginning, so that nothing is searched of a film of five gigabytes.
        if Encoding::sniff(head).is_none() {
            return Ok(None);
        }
        let FileSearch { search, deadline, .. } = self.files;
        if is_all {
            self.searcher.search_slice(&search.matcher, head, sink)?;
        } else {
            let reader = Watched { inner: Cursor::new(head).chain(file), deadline };
            self.searcher.search_reader(&search.matcher, reader, sink)?;
        }
        Ok(Some(metadata.modified().unwrap_or(UNIX_EPOCH)))
    }
}

/// Reads the beginning of a file: how many bytes, and whether that is all of it.
fn read_head(file: &mut File, metadata: &Metadata, head: &mut [u8]) -> io::Result<(usize, bool)> {
    let mut length = 0;
    while length < head.len() {
        match file.read(&mut head[length..]) {
            Ok(0) => return Ok((length, true)),
            Ok(more) => length += more,
            Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
            Err(error) => return Err(error),
        }
        // Nothing is asked for that is not there. What the kernel makes up has no length, and is read to its end.
        if length as u64 == metadata.len() {
            return Ok((length, true));
        }
    }
    Ok((length, false))
}

/// A sink that knows whether the file turned out not to be text.
pub(super) trait Judged {
    fn is_binary(&self) -> bool;
}

/// A reader that fails when the time is over, so that one large file does not outlast it.
struct Watched<'a, R> {
    inner: R,
    deadline: &'a Deadline,
}

impl<R: Read> Read for Watched<'_, R> {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        if self.deadline.reached() {
            return Err(io::ErrorKind::TimedOut.into());
        }
        self.inner.read(buffer)
    }
}
