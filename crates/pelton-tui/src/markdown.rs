//! Markdown that streams in, as lines for a terminal. What is finished never changes again, so it can be written to the
//! scrollback; the rest is the tail, shown while it grows.
//!
//! Lines are taken one by one, so it does not matter where a piece was cut. Which block a line belongs to is known here, from the
//! line and the block that is open; a block that no later line can change is parsed by itself and laid out.

mod lines; // what a line could be the beginning of
mod tree; // a block, parsed
mod layout; // a block, as lines of the screen
mod table; // rows and columns that fit

#[cfg(test)]
mod tests;

use ratatui_core::text::{Line, Span};

use crate::cells::{without_tabs, wrap_code};
use crate::clean::Cleaner;
use crate::highlight::Highlighter;
use crate::limits::{
    BLOCK_BYTES_MAX, BLOCK_LINES_MAX, CODE_TAB_CELLS, LINK_NAMES_MAX, MARKDOWN_LINE_BYTES_MAX,
};
use crate::theme::{Role, Theme};
use layout::Page;
use lines::{Fence, Html, Marker, Opening};

/// One text in Markdown, from its first piece to its last.
#[derive(Clone)]
pub struct Stream {
    page: Page,
    cleaner: Cleaner,
    /// The line that has not ended yet.
    pending: String,
    open: Open,
    /// Something was finished before: what follows keeps its distance.
    begun: bool,
    /// Addresses that links may name, as they were written.
    link_names: Vec<String>,
}

/// The block that the next line may belong to.
#[derive(Clone)]
enum Open {
    Nothing,
    /// Words, or a table.
    Words(Block),
    Quote(Block),
    Html(Block, Html),
    Item(Item),
    Fenced(Fence, Highlighter),
    /// Code by its indentation, and how many empty lines were seen below it.
    Indented(usize),
}

#[derive(Clone, Default)]
struct Block {
    text: String,
    lines: usize,
    /// Where a table begins that goes on to the end, and where its rows do.
    table: Option<(usize, usize)>,
}

impl Block {
    fn of(line: &str) -> Self {
        let mut block = Self::default();
        block.add(line);
        block
    }

    fn add(&mut self, line: &str) {
        self.text.push_str(line);
        self.text.push('\n');
        self.lines += 1;
        if self.table.is_none() && lines::is_table_rule(line) {
            self.table = self.table_at_end();
        }
    }

    /// The table whose head and rule are the last two lines. Only the parser knows whether they fit each other, and what stands above them.
    fn table_at_end(&self) -> Option<(usize, usize)> {
        let rule = self.text.trim_end_matches('\n').rfind('\n')?;
        let head = self.text[..rule].rfind('\n').map_or(0, |end| end + 1);
        let ends_in_table = |text: &str| matches!(tree::parse(text).last(), Some(tree::Node::Table(_)));
        let is_table = ends_in_table(&self.text[head..]) && (head == 0 || ends_in_table(&self.text));
        is_table.then_some((head, self.text.len()))
    }

    /// Head and rule of the table that it ends in.
    fn table_head(&self) -> Option<&str> {
        self.table.map(|(head, rows)| &self.text[head..rows])
    }

    /// Whether a line that is not marked as part of a quote or an item is one all the same: words go on below words. Only the parser
    /// knows, and it is seldom asked.
    fn takes_in(&self, line: &str) -> bool {
        tree::parse(&format!("{}{line}", self.text)).len() == 1
    }

    fn is_full(&self) -> bool {
        self.lines >= BLOCK_LINES_MAX || self.text.len() >= BLOCK_BYTES_MAX
    }
}

/// An item of a list. Items are finished one by one.
#[derive(Clone)]
struct Item {
    block: Block,
    marker: Marker,
    /// Its number, in a list that has numbers.
    number: u64,
    /// The first of its list.
    first: bool,
    /// An empty line stood before it.
    apart: bool,
    /// The last line was empty.
    after_empty: bool,
}

impl Stream {
    pub fn new(width: usize, theme: Theme) -> Self {
        Self {
            page: Page { width, theme },
            cleaner: Cleaner::default(),
            pending: String::new(),
            open: Open::Nothing,
            begun: false,
            link_names: Vec::new(),
        }
    }

    /// The width from here on; what is finished stays as it is.
    pub fn resize(&mut self, width: usize) {
        self.page.width = width;
    }

    /// The next piece: the lines that are finished with it.
    pub fn push(&mut self, piece: &str) -> Vec<Line<'static>> {
        let clean = self.cleaner.push(piece);
        let mut finished = Vec::new();
        for part in clean.split_inclusive('\n') {
            self.pending.push_str(part);
            self.split_long(&mut finished);
            if self.pending.ends_with('\n') {
                let line = std::mem::take(&mut self.pending);
                self.line(line.trim_end_matches('\n'), &mut finished);
            }
        }
        finished
    }

    /// What is not finished yet, as it looks so far.
    pub fn tail(&self) -> Vec<Line<'static>> {
        let mut ahead = self.clone();
        if !matches!(ahead.open, Open::Fenced(..) | Open::Indented(_)) {
            let open = lines::unclosed(&ahead.pending);
            ahead.pending.push_str(open);
        }
        ahead.finish()
    }

    /// The end: whatever is left is finished. Then the next text may begin.
    pub fn finish(&mut self) -> Vec<Line<'static>> {
        let mut finished = Vec::new();
        let last = std::mem::take(&mut self.pending);
        if !last.is_empty() {
            self.line(&last, &mut finished);
        }
        self.close(&mut finished);
        self.cleaner = Cleaner::default();
        finished
    }

    /// A line that is too long goes on as the next. Where it is cut is up to its beginning alone, not to how it came.
    fn split_long(&mut self, finished: &mut Vec<Line<'static>>) {
        while self.pending.trim_end_matches('\n').len() > MARKDOWN_LINE_BYTES_MAX {
            let end = self.pending.floor_char_boundary(MARKDOWN_LINE_BYTES_MAX);
            let space = self.pending[..end].rfind(' ').filter(|at| *at > end / 2);
            let rest = self.pending.split_off(space.map_or(end, |at| at + 1));
            let line = std::mem::replace(&mut self.pending, rest);
            self.line(line.trim_end_matches(' '), finished);
        }
    }

    /// A line, whole.
    fn line(&mut self, line: &str, finished: &mut Vec<Line<'static>>) {
        let opening = Opening::of(line);
        match &mut self.open {
            Open::Fenced(fence, _) if fence.is_closed_by(line) => return self.close(finished),
            Open::Fenced(fence, code) => {
                let text = without_tabs(line, CODE_TAB_CELLS);
                let spans = code.line(fence.inside(&text));
                finished.extend(wrap_code(&spans, self.page.width));
                return;
            }
            Open::Indented(empty) => match opening {
                Opening::Empty => {
                    *empty += 1;
                    return;
                }
                Opening::Code => {
                    let empty = std::mem::take(empty);
                    finished.extend(std::iter::repeat_n(Line::default(), empty));
                    finished.extend(self.page.indented(line));
                    return;
                }
                _ => self.open = Open::Nothing,
            },
            Open::Words(block) => {
                let ends = match opening {
                    Opening::Empty => true,
                    // A row is no paragraph: any other block ends a table, and nothing below it makes a heading of it.
                    // What is indented so far is code only if it would be another block without that.
                    _ if block.table.is_some() => !match opening {
                        Opening::Code => matches!(Opening::of(line.trim_start()), Opening::Words),
                        _ => matches!(opening, Opening::Words),
                    },
                    // Words above such a line are a heading.
                    _ if lines::is_underline(line) => {
                        block.add(line);
                        return self.close(finished);
                    }
                    _ => opening.interrupts_words(),
                };
                if !ends {
                    block.add(line);
                    if block.is_full() {
                        self.close_full(finished);
                    }
                    return;
                }
                self.close(finished);
            }
            Open::Quote(block) => {
                let goes_on = match opening {
                    Opening::Quote => true,
                    Opening::Empty => false,
                    _ => block.takes_in(line),
                };
                if goes_on && !block.is_full() {
                    return block.add(line);
                }
                self.close(finished);
            }
            Open::Html(block, html) => {
                if !matches!(opening, Opening::Empty) || matches!(html, Html::Until(_)) {
                    block.add(line);
                }
                if html.is_closed_by(line) || block.is_full() {
                    self.close(finished);
                }
                return;
            }
            Open::Item(item) => {
                // An item that begins with two empty lines has nothing inside.
                let nothing = item.marker.empty
                    && item.after_empty
                    && item.block.text.lines().skip(1).all(str::is_empty);
                let inside = !nothing && lines::indent(line) >= item.marker.content;
                let is_item = matches!(opening, Opening::Item(_));
                let lazy = || !item.after_empty && !is_item && item.block.takes_in(line);
                match opening {
                    Opening::Empty => {
                        item.after_empty = true;
                        return item.block.add("");
                    }
                    _ if !item.block.is_full() && (inside || lazy()) => {
                        item.after_empty = false;
                        return item.block.add(line);
                    }
                    Opening::Item(marker) if marker.same_list(&item.marker) => {
                        let next = Item {
                            block: Block::of(line),
                            marker,
                            number: item.number.saturating_add(1),
                            first: false,
                            apart: item.after_empty,
                            after_empty: false,
                        };
                        self.close(finished);
                        self.open = Open::Item(next);
                        return;
                    }
                    _ => self.close(finished),
                }
            }
            Open::Nothing => {}
        }
        self.begin(line, opening, finished);
    }

    /// A line that belongs to no open block.
    fn begin(&mut self, line: &str, opening: Opening, finished: &mut Vec<Line<'static>>) {
        match opening {
            Opening::Empty => {}
            Opening::Heading | Opening::Rule => self.block(line, finished),
            Opening::Fence(fence) => {
                self.keep_distance(finished);
                finished.push(self.page.fence(&fence.info));
                let code = Highlighter::of_language(&fence.info, self.page.theme);
                self.open = Open::Fenced(fence, code);
            }
            Opening::Code => {
                self.keep_distance(finished);
                finished.extend(self.page.indented(line));
                self.open = Open::Indented(0);
            }
            Opening::Quote => self.open = Open::Quote(Block::of(line)),
            Opening::Item(marker) => {
                self.open = Open::Item(Item {
                    block: Block::of(line),
                    marker,
                    number: marker.number.unwrap_or_default(),
                    first: true,
                    apart: true,
                    after_empty: false,
                });
            }
            Opening::Html(html) if html.is_closed_by(line) => self.block(line, finished),
            Opening::Html(html) => self.open = Open::Html(Block::of(line), html),
            Opening::Words => self.open = Open::Words(Block::of(line)),
        }
    }

    /// No later line belongs to the open block.
    fn close(&mut self, finished: &mut Vec<Line<'static>>) {
        match std::mem::replace(&mut self.open, Open::Nothing) {
            Open::Nothing | Open::Indented(_) => {}
            Open::Fenced(..) => finished.push(self.page.fence("")),
            Open::Words(block) | Open::Quote(block) | Open::Html(block, _) => {
                self.block(&block.text, finished);
            }
            Open::Item(item) => {
                if item.first || item.apart {
                    self.keep_distance(finished);
                }
                let number = item.marker.number.map(|_| item.number);
                let nodes = tree::parse(&self.with_names(&item.block.text));
                finished.extend(self.page.item(&nodes, number));
            }
        }
    }

    /// The open block has grown too long to wait for its end. A table goes on with its head.
    fn close_full(&mut self, finished: &mut Vec<Line<'static>>) {
        let head = match &self.open {
            Open::Words(block) => block.table_head().map(str::to_owned),
            _ => None,
        };
        self.close(finished);
        if let Some(head) = head {
            let mut block = Block::default();
            head.lines().for_each(|line| block.add(line));
            self.open = Open::Words(block);
        }
    }

    /// A block by itself.
    fn block(&mut self, text: &str, finished: &mut Vec<Line<'static>>) {
        let mut laid_out = Vec::new();
        // The names of addresses are no words of the text, but somebody may want to see where they lead.
        for name in lines::link_names(text) {
            let style = self.page.theme.style(Role::Address);
            laid_out.extend(self.page.words(&[Span::styled(name.trim().to_owned(), style)]));
            if self.link_names.len() < LINK_NAMES_MAX {
                self.link_names.push(name.to_owned());
            }
        }
        laid_out.extend(self.page.blocks(&tree::parse(&self.with_names(text))));
        if !laid_out.is_empty() {
            self.keep_distance(finished);
            finished.extend(laid_out);
        }
    }

    /// The text with the addresses that its links may name.
    fn with_names(&self, text: &str) -> String {
        if self.link_names.is_empty() {
            return text.to_owned();
        }
        format!("{text}\n\n{}\n", self.link_names.join("\n"))
    }

    fn keep_distance(&mut self, finished: &mut Vec<Line<'static>>) {
        if std::mem::replace(&mut self.begun, true) {
            finished.push(Line::default());
        }
    }
}

/// A whole text at once.
pub fn lines(text: &str, width: usize, theme: Theme) -> Vec<Line<'static>> {
    let mut stream = Stream::new(width, theme);
    let mut all = stream.push(text);
    all.extend(stream.finish());
    all
}
