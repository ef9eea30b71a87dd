//! A block of Markdown, parsed: what it is made of, without any looks yet.

use pulldown_cmark::{Alignment, CodeBlockKind, Event, Options, Parser, Tag, TagEnd};

use crate::clean::Cleaner;
use crate::limits::NESTING_MAX;
use crate::theme::Role;

/// A piece of words that look alike.
#[derive(Debug, Clone)]
pub(super) struct Piece {
    pub text: String,
    /// From the outermost to the innermost.
    pub roles: Vec<Role>,
}

pub(super) type Words = Vec<Piece>;

#[derive(Debug, Clone)]
pub(super) enum Node {
    Words(Words),
    Heading(u8, Words),
    Rule,
    Quote(Vec<Node>),
    /// `info`: the words behind its fence, if it has one.
    Code {
        info: Option<String>,
        text: String,
    },
    List {
        start: Option<u64>,
        items: Vec<Item>,
    },
    Table(Table),
}

#[derive(Debug, Clone, Default)]
pub(super) struct Item {
    /// Whether it is done, if it is something to do.
    pub task: Option<bool>,
    pub blocks: Vec<Node>,
    /// Its words are a paragraph: it keeps its distance from its neighbours.
    pub loose: bool,
}

#[derive(Debug, Clone, Default)]
pub(super) struct Table {
    pub alignments: Vec<Alignment>,
    pub head: Vec<Words>,
    pub rows: Vec<Vec<Words>>,
}

pub(super) fn parse(text: &str) -> Vec<Node> {
    let options = Options::ENABLE_TABLES | Options::ENABLE_STRIKETHROUGH | Options::ENABLE_TASKLISTS;
    let mut builder = Builder::default();
    for event in Parser::new_ext(text, options) {
        builder.take(event);
    }
    builder.end()
}

/// A container that is being filled.
enum Container {
    Quote(Vec<Node>),
    List(Option<u64>, Vec<Item>),
    Item(Item),
}

#[derive(Default)]
struct Builder {
    done: Vec<Node>,
    open: Vec<Container>,
    /// Containers that are open and too deep to be shown: what is in them stands in the last that is.
    too_deep: usize,
    words: Words,
    roles: Vec<Role>,
    /// Where the links that are open lead, and where their words begin.
    links: Vec<(String, usize)>,
    code: Option<(Option<String>, String)>,
    table: Option<Table>,
    row: Vec<Words>,
}

impl Builder {
    fn take(&mut self, event: Event<'_>) {
        match event {
            Event::Start(tag) => self.start(tag),
            Event::End(tag) => self.finish(tag),
            Event::Text(text) => match &mut self.code {
                // In code no entity stands for anything.
                Some((_, code)) => code.push_str(&text),
                None => self.say(&text),
            },
            Event::Code(text) | Event::InlineMath(text) | Event::DisplayMath(text) => {
                self.roles.push(Role::Code);
                self.say(&text);
                self.roles.pop();
            }
            Event::Html(text) | Event::InlineHtml(text) => {
                let breaks = text.trim_start_matches('<').trim_end_matches(['>', '/', ' ']);
                if breaks.eq_ignore_ascii_case("br") { self.say("\n") } else { self.say(&text) }
            }
            Event::SoftBreak | Event::HardBreak => self.say("\n"),
            Event::Rule => {
                self.end_words();
                self.put(Node::Rule);
            }
            Event::TaskListMarker(done) => {
                if let Some(Container::Item(item)) = self.open.last_mut() {
                    item.task = Some(done);
                }
            }
            Event::FootnoteReference(name) => self.say(&format!("[^{name}]")),
        }
    }

    fn start(&mut self, tag: Tag<'_>) {
        // The words of a tight item end where another block begins inside of it.
        if begins_block(&tag) {
            self.end_words();
        }
        match tag {
            Tag::Paragraph => {
                if let Some(Container::Item(item)) = self.open.last_mut() {
                    item.loose = true;
                }
            }
            Tag::BlockQuote(_) => self.open(Container::Quote(Vec::new())),
            Tag::List(start) => self.open(Container::List(start, Vec::new())),
            Tag::Item => self.open(Container::Item(Item::default())),
            Tag::CodeBlock(kind) => {
                let info = match kind {
                    CodeBlockKind::Fenced(info) => Some(clean(&info)),
                    CodeBlockKind::Indented => None,
                };
                self.code = Some((info, String::new()));
            }
            Tag::Table(alignments) => self.table = Some(Table { alignments, ..Table::default() }),
            Tag::Emphasis => self.roles.push(Role::Emphasis),
            Tag::Strong => self.roles.push(Role::Strong),
            Tag::Strikethrough => self.roles.push(Role::Struck),
            Tag::Link { dest_url, .. } => {
                self.links.push((clean(&dest_url), self.words.len()));
                self.roles.push(Role::Link);
            }
            Tag::Image { dest_url, .. } => {
                self.links.push((clean(&dest_url), self.words.len()));
                self.roles.push(Role::Link);
                self.say("image: ");
            }
            _ => {}
        }
    }

    fn finish(&mut self, tag: TagEnd) {
        match tag {
            TagEnd::Paragraph | TagEnd::HtmlBlock => self.end_words(),
            TagEnd::Heading(level) => {
                let words = std::mem::take(&mut self.words);
                self.put(Node::Heading(level as u8, words));
            }
            TagEnd::BlockQuote(_) | TagEnd::List(_) | TagEnd::Item => {
                self.end_words();
                self.close();
            }
            TagEnd::CodeBlock => {
                if let Some((info, text)) = self.code.take() {
                    self.put(Node::Code { info, text });
                }
            }
            TagEnd::TableCell => self.row.push(std::mem::take(&mut self.words)),
            TagEnd::TableHead => {
                let row = std::mem::take(&mut self.row);
                if let Some(table) = &mut self.table {
                    table.head = row;
                }
            }
            TagEnd::TableRow => {
                let row = std::mem::take(&mut self.row);
                if let Some(table) = &mut self.table {
                    table.rows.push(row);
                }
            }
            TagEnd::Table => {
                if let Some(table) = self.table.take() {
                    self.put(Node::Table(table));
                }
            }
            TagEnd::Emphasis | TagEnd::Strong | TagEnd::Strikethrough => {
                self.roles.pop();
            }
            TagEnd::Link | TagEnd::Image => {
                self.roles.pop();
                self.end_link();
            }
            _ => {}
        }
    }

    /// Behind the words of a link stands where it leads, unless that is what they say.
    fn end_link(&mut self) {
        let Some((address, from)) = self.links.pop() else { return };
        let said: String =
            self.words.get(from..).unwrap_or_default().iter().map(|piece| &*piece.text).collect();
        let bare = address.trim_start_matches("mailto:");
        if !address.is_empty() && said != address && said != bare {
            self.roles.push(Role::Address);
            self.say(&format!(" ({address})"));
            self.roles.pop();
        }
    }

    fn say(&mut self, text: &str) {
        let text = clean(text);
        match self.words.last_mut() {
            _ if text.is_empty() => {}
            // A link's words are told from those before it by where they begin.
            Some(last) if last.roles == self.roles && self.links.is_empty() => last.text.push_str(&text),
            _ => self.words.push(Piece { text, roles: self.roles.clone() }),
        }
    }

    /// Words that no mark said the end of: those of a tight item.
    fn end_words(&mut self) {
        let mut words = std::mem::take(&mut self.words);
        // Lines of HTML come with their ends.
        if let Some(last) = words.last_mut() {
            last.text.truncate(last.text.trim_end_matches('\n').len());
        }
        words.retain(|piece| !piece.text.is_empty());
        if !words.is_empty() {
            self.put(Node::Words(words));
        }
    }

    fn open(&mut self, container: Container) {
        // Items belong to their list, and both are shown or neither.
        let deep = self.open.len() >= 2 * NESTING_MAX && !matches!(container, Container::Item(_));
        if self.too_deep > 0 || deep { self.too_deep += 1 } else { self.open.push(container) }
    }

    fn close(&mut self) {
        if self.too_deep > 0 {
            self.too_deep -= 1;
            return;
        }
        match self.open.pop() {
            Some(Container::Quote(nodes)) => self.put(Node::Quote(nodes)),
            Some(Container::List(start, items)) => self.put(Node::List { start, items }),
            Some(Container::Item(item)) => match self.open.last_mut() {
                Some(Container::List(_, items)) => items.push(item),
                _ => self.done.extend(item.blocks),
            },
            None => {}
        }
    }

    fn put(&mut self, node: Node) {
        match self.open.last_mut() {
            Some(Container::Quote(nodes)) => nodes.push(node),
            Some(Container::Item(item)) => item.blocks.push(node),
            Some(Container::List(_, items)) => items.push(Item { blocks: vec![node], ..Item::default() }),
            None => self.done.push(node),
        }
    }

    fn end(mut self) -> Vec<Node> {
        self.end_words();
        while !self.open.is_empty() {
            self.close();
        }
        self.done
    }
}

fn begins_block(tag: &Tag<'_>) -> bool {
    matches!(
        tag,
        Tag::Paragraph
            | Tag::Heading { .. }
            | Tag::BlockQuote(_)
            | Tag::List(_)
            | Tag::CodeBlock(_)
            | Tag::Table(_)
            | Tag::HtmlBlock
    )
}

/// An entity can be any character, also one that was not to come in: `&#27;`.
fn clean(text: &str) -> String {
    Cleaner::default().push(text)
}
