//! A parsed block as lines of the screen.

use ratatui_core::style::{Modifier, Style};
use ratatui_core::text::{Line, Span};

use super::table;
use super::tree::{Item, Node, Words};
use crate::cells::{WIDTH_MIN, cut, width, width_of, without_tabs, wrap, wrap_code};
use crate::highlight::Highlighter;
use crate::limits::CODE_TAB_CELLS;
use crate::theme::{Depth, Role, Theme};

/// Cells of a line that parts things: it need not cross a wide screen.
const RULE_CELLS_MAX: usize = 48;

/// What lines are laid out for.
#[derive(Debug, Clone, Copy)]
pub(super) struct Page {
    pub width: usize,
    pub theme: Theme,
}

impl Page {
    /// Blocks below each other, apart.
    pub fn blocks(&self, nodes: &[Node]) -> Vec<Line<'static>> {
        self.fitting(self.apart(nodes, 0))
    }

    /// One item of a list that is parsed by itself; what stands below it without being part of it follows.
    pub fn item(&self, nodes: &[Node], number: Option<u64>) -> Vec<Line<'static>> {
        let mut lines = Vec::new();
        for (at, node) in nodes.iter().enumerate() {
            if at > 0 {
                lines.push(Line::default());
            }
            match node {
                Node::List { items, .. } if at == 0 => lines.extend(self.list(number, items, 0)),
                node => lines.extend(self.node(node, 0)),
            }
        }
        self.fitting(lines)
    }

    /// Words of one look or several.
    pub fn words(&self, spans: &[Span<'static>]) -> Vec<Line<'static>> {
        wrap(spans, self.width)
    }

    /// The line above or below code: with it code can be told from words where there are no colours, and copied as it is.
    pub fn fence(&self, info: &str) -> Line<'static> {
        Line::styled(cut(&format!("```{info}"), self.width.max(WIDTH_MIN)), self.theme.style(Role::Faint))
    }

    /// A line of code that is told by its indentation.
    pub fn indented(&self, line: &str) -> Vec<Line<'static>> {
        let text = without_tabs(line, CODE_TAB_CELLS);
        wrap_code(&[Span::styled(text, self.theme.style(Role::Code))], self.width)
    }

    fn narrower(&self, by: usize) -> Self {
        Self { width: self.width.saturating_sub(by).max(WIDTH_MIN), ..*self }
    }

    fn bare(&self) -> bool {
        self.theme.depth() == Depth::Bare
    }

    /// No line is wider than the screen, however deep it stood.
    fn fitting(&self, lines: Vec<Line<'static>>) -> Vec<Line<'static>> {
        let cells = self.width.max(WIDTH_MIN);
        let fit = |line: Line<'static>| {
            if width_of(&line.spans) <= cells { vec![line] } else { wrap_code(&styled(line), cells) }
        };
        lines.into_iter().flat_map(fit).collect()
    }

    fn apart(&self, nodes: &[Node], depth: usize) -> Vec<Line<'static>> {
        let mut lines = Vec::new();
        for node in nodes {
            if !lines.is_empty() {
                lines.push(Line::default());
            }
            lines.extend(self.node(node, depth));
        }
        lines
    }

    fn node(&self, node: &Node, depth: usize) -> Vec<Line<'static>> {
        match node {
            Node::Words(words) => wrap(&self.spans(words, Style::new()), self.width),
            Node::Heading(level, words) => self.heading(*level, words),
            Node::Rule => {
                let line = if self.bare() { "-" } else { "─" }.repeat(self.width.min(RULE_CELLS_MAX));
                vec![Line::styled(line, self.theme.style(Role::Mark))]
            }
            Node::Quote(nodes) => {
                let bar = Span::styled(if self.bare() { "> " } else { "▎ " }, self.theme.style(Role::Mark));
                let quoted = self.narrower(2).apart(nodes, depth);
                let style = self.theme.style(Role::Quote);
                let behind = |line: Line<'static>| {
                    let words =
                        styled(line).into_iter().map(|span| Span { style: style.patch(span.style), ..span });
                    Line::from(std::iter::once(bar.clone()).chain(words).collect::<Vec<_>>())
                };
                quoted.into_iter().map(behind).collect()
            }
            Node::Code { info: Some(info), text } => {
                let mut code = Highlighter::of_language(info, self.theme);
                let mut lines = vec![self.fence(info)];
                for line in text.trim_end_matches('\n').split('\n') {
                    let spans = code.line(&without_tabs(line, CODE_TAB_CELLS));
                    lines.extend(wrap_code(&spans, self.width));
                }
                lines.push(self.fence(""));
                lines
            }
            Node::Code { info: None, text } => text
                .trim_end_matches('\n')
                .split('\n')
                .flat_map(|line| self.indented(&format!("    {line}")))
                .collect(),
            Node::List { start, items } => self.list(*start, items, depth),
            Node::Table(table) => table::lay_out(self, table),
        }
    }

    fn heading(&self, level: u8, words: &Words) -> Vec<Line<'static>> {
        let mut style = self.theme.style(Role::Heading);
        if level == 1 && !self.bare() {
            style = style.add_modifier(Modifier::UNDERLINED);
        }
        let mut spans = self.spans(words, style);
        if self.bare() {
            spans.insert(0, Span::raw(format!("{} ", "#".repeat(usize::from(level)))));
        }
        wrap(&spans, self.width)
    }

    fn list(&self, start: Option<u64>, items: &[Item], depth: usize) -> Vec<Line<'static>> {
        let last = start.map(|start| start.saturating_add(items.len() as u64).saturating_sub(1));
        let digits = last.map_or(0, |last| last.to_string().len());
        let mut lines: Vec<Line<'static>> = Vec::new();
        let mut number = start;
        for item in items {
            if item.loose && !lines.is_empty() {
                lines.push(Line::default());
            }
            let mark = match (number, item.task) {
                (Some(number), _) => format!("{number:>digits$}. "),
                (None, Some(done)) => self.task(done).to_owned(),
                (None, None) => self.bullet(depth).to_owned(),
            };
            lines.extend(self.one(&mark, item, depth));
            number = number.map(|number| number.saturating_add(1));
        }
        lines
    }

    fn one(&self, mark: &str, item: &Item, depth: usize) -> Vec<Line<'static>> {
        let cells = width(mark);
        let page = self.narrower(cells);
        let mut inside = Vec::new();
        for (at, node) in item.blocks.iter().enumerate() {
            if at > 0 && item.loose {
                inside.push(Line::default());
            }
            inside.extend(page.node(node, depth + 1));
        }
        if inside.is_empty() {
            inside.push(Line::default());
        }
        let style = self.theme.style(Role::Mark);
        let behind = |(at, line): (usize, Line<'static>)| {
            let before = match at {
                0 => Span::styled(mark.to_owned(), style),
                // Nothing hangs behind an empty line.
                _ if line.spans.is_empty() => return line,
                _ => Span::raw(" ".repeat(cells)),
            };
            Line::from(std::iter::once(before).chain(styled(line)).collect::<Vec<_>>())
        };
        inside.into_iter().enumerate().map(behind).collect()
    }

    fn bullet(&self, depth: usize) -> &'static str {
        match depth {
            _ if self.bare() => "- ",
            0 => "• ",
            1 => "◦ ",
            _ => "▪ ",
        }
    }

    fn task(&self, done: bool) -> &'static str {
        match (self.bare(), done) {
            (true, true) => "[x] ",
            (true, false) => "[ ] ",
            (false, true) => "☑ ",
            (false, false) => "☐ ",
        }
    }

    /// Words with their looks; where there are none, with the marks that stand for them.
    pub(super) fn spans(&self, words: &Words, base: Style) -> Vec<Span<'static>> {
        let mut spans = Vec::new();
        for piece in words {
            let look = |style: Style, role: &Role| style.patch(self.theme.style(*role));
            let style = piece.roles.iter().fold(base, look);
            let mark = piece.roles.last().map_or("", |role| self.mark(*role));
            let text = without_tabs(&piece.text, CODE_TAB_CELLS);
            spans.push(Span::styled(format!("{mark}{text}{mark}"), style));
        }
        spans
    }

    fn mark(&self, role: Role) -> &'static str {
        match (role, self.theme.depth()) {
            (Role::Code, Depth::Bare | Depth::Mono) => "`",
            (Role::Strong, Depth::Bare) => "**",
            (Role::Emphasis, Depth::Bare) => "*",
            (Role::Struck, Depth::Bare) => "~~",
            _ => "",
        }
    }
}

/// The spans of a line, each with the look that the line gives it.
fn styled(line: Line<'static>) -> Vec<Span<'static>> {
    let style = line.style;
    line.spans.into_iter().map(|span| Span { style: style.patch(span.style), ..span }).collect()
}
