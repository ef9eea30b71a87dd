//! Cuts a stream of UTF-8 bytes into lines and keeps one page of them, whatever the size of the stream.

use memchr::memchr_iter;

use crate::tools::text::cut;

/// Which lines are wanted, and how much of them.
#[derive(Debug, Clone, Copy)]
pub(super) struct Wanted {
    /// The first line, counted from 1.
    pub start: u64,
    /// How many lines.
    pub lines_max: u64,
    /// How many bytes of them.
    pub bytes_max: usize,
    /// How many characters of one line.
    pub line_chars_max: usize,
}

/// The lines that were kept.
#[derive(Debug)]
pub(super) struct Page {
    /// The number of the first line.
    pub first: u64,
    /// The number of the line after the last.
    pub next: u64,
    /// Without their ends.
    pub lines: Vec<String>,
    /// Lines of the whole stream.
    pub total: u64,
    /// `total` is all of them: the stream was read to its end.
    pub counted: bool,
    /// Not even all that was wanted was looked for.
    pub given_up: bool,
    /// Lines that were too long.
    pub lines_cut: u64,
    /// The wanted lines did not fit into the bytes.
    pub over_bytes: bool,
    /// A kept line held bytes that are no characters.
    pub lossy: bool,
}

impl Page {
    /// The lines with their numbers.
    pub fn numbered(&self) -> String {
        let mut text = String::with_capacity(self.lines.iter().map(|line| line.len() + 8).sum());
        for (number, line) in (self.first..).zip(&self.lines) {
            if number > self.first {
                text.push('\n');
            }
            text.push_str(&number.to_string());
            text.push('\t');
            text.push_str(line);
        }
        text
    }

    /// The lines alone.
    pub fn content(&self) -> String {
        self.lines.join("\n")
    }
}

pub(super) struct Pager {
    wanted: Wanted,
    /// The number of the line that is coming in.
    number: u64,
    /// The line that is coming in, as far as it is kept.
    line: Vec<u8>,
    /// All of its bytes.
    line_bytes: u64,
    page: Page,
    /// Bytes of the lines in the page, as they are shown.
    page_bytes: usize,
}

impl Pager {
    pub fn new(wanted: Wanted) -> Self {
        let page = Page {
            first: wanted.start,
            next: wanted.start,
            lines: Vec::new(),
            total: 0,
            counted: true,
            given_up: false,
            lines_cut: 0,
            over_bytes: false,
            lossy: false,
        };
        Self { wanted, number: 1, line: Vec::new(), line_bytes: 0, page, page_bytes: 0 }
    }

    /// Takes the next bytes.
    pub fn feed(&mut self, bytes: &[u8]) {
        let mut start = 0;
        for end in memchr_iter(b'\n', bytes) {
            self.take(&bytes[start..end]);
            self.end_line();
            start = end + 1;
        }
        self.take(&bytes[start..]);
    }

    /// Whether later lines can change nothing but the count.
    pub fn is_full(&self) -> bool {
        self.page.over_bytes || self.number.saturating_sub(self.wanted.start) >= self.wanted.lines_max
    }

    /// Whether the first wanted line has come, or is coming.
    pub fn has_begun(&self) -> bool {
        self.number >= self.wanted.start
    }

    pub fn finish(mut self) -> Page {
        if self.line_bytes > 0 {
            self.end_line();
        }
        self.page.total = self.number - 1;
        self.page
    }

    fn is_wanted(&self) -> bool {
        self.number >= self.wanted.start && !self.is_full()
    }

    fn take(&mut self, bytes: &[u8]) {
        self.line_bytes += bytes.len() as u64;
        if self.is_wanted() {
            // A character has at most four bytes, a line end one more before it.
            let room = (self.wanted.line_chars_max * 4 + 1).saturating_sub(self.line.len());
            self.line.extend_from_slice(&bytes[..bytes.len().min(room)]);
        }
    }

    fn end_line(&mut self) {
        if self.is_wanted() {
            self.keep_line();
        }
        self.number += 1;
        self.line.clear();
        self.line_bytes = 0;
    }

    fn keep_line(&mut self) {
        let whole = self.line.len() as u64 == self.line_bytes;
        let bytes = if whole { self.line.strip_suffix(b"\r").unwrap_or(&self.line) } else { &self.line };
        let text = String::from_utf8_lossy(bytes);
        // Bytes that were not kept may end the text in the middle of a character: that one is beyond the cut anyway.
        let (shown, more) = cut(&text, self.wanted.line_chars_max);
        let cut_here = more > 0 || !whole;
        let line = if cut_here { format!("{shown} [… cut]") } else { shown.to_owned() };
        let bytes_after = self.page_bytes + line.len() + 1;
        if bytes_after > self.wanted.bytes_max && !self.page.lines.is_empty() {
            self.page.over_bytes = true;
            return;
        }
        self.page.lossy |=
            std::str::from_utf8(bytes).is_err_and(|error| whole || error.error_len().is_some());
        self.page_bytes = bytes_after;
        self.page.lines_cut += u64::from(cut_here);
        self.page.lines.push(line);
        self.page.next = self.number + 1;
    }
}
