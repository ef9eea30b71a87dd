//! What a line of Markdown could be the beginning of, by itself. CommonMark's rules, as far as they concern where blocks end.

/// What a line would open if it belonged to no open block.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum Opening {
    Empty,
    Words,
    /// Indented so far that it is code.
    Code,
    Heading,
    Rule,
    Quote,
    Fence(Fence),
    Item(Marker),
    Html(Html),
}

/// HTML, by where it ends.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Html {
    /// At an empty line.
    Block,
    /// The same, but words above it go on with it.
    Tag,
    /// At the line that has this.
    Until(&'static str),
}

/// The line that begins a block of code.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Fence {
    mark: char,
    length: usize,
    indent: usize,
    /// The words behind it.
    pub info: String,
}

/// What an item of a list begins with.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Marker {
    /// Other marks begin other lists.
    kind: char,
    pub number: Option<u64>,
    indent: usize,
    /// The column where its words begin: what is indented as far belongs to it.
    pub content: usize,
    /// Nothing stands behind it.
    pub empty: bool,
}

/// Columns from which a line is code.
const CODE_INDENT: usize = 4;

impl Opening {
    pub fn of(line: &str) -> Self {
        let indent = indent(line);
        let rest = line.trim_start();
        if rest.is_empty() {
            return Self::Empty;
        }
        if indent >= CODE_INDENT {
            return Self::Code;
        }
        if is_heading(rest) {
            return Self::Heading;
        }
        if let Some(fence) = Fence::of(rest, indent) {
            return Self::Fence(fence);
        }
        if is_rule(rest) {
            return Self::Rule;
        }
        if rest.starts_with('>') {
            return Self::Quote;
        }
        if let Some(html) = Html::of(rest) {
            return Self::Html(html);
        }
        Marker::of(rest, indent).map_or(Self::Words, Self::Item)
    }

    /// Whether words that stand above are over, though there is no empty line.
    pub fn interrupts_words(&self) -> bool {
        match self {
            Self::Heading | Self::Rule | Self::Quote | Self::Fence(_) => true,
            Self::Item(marker) => !marker.empty && marker.number.is_none_or(|number| number == 1),
            Self::Html(html) => *html != Html::Tag,
            Self::Empty | Self::Words | Self::Code => false,
        }
    }
}

/// Tags that begin a block, whatever stands behind them.
const BLOCK_TAGS: &str = " address article aside base basefont blockquote body caption center col colgroup dd details dialog dir div dl dt \
    fieldset figcaption figure footer form frame frameset h1 h2 h3 h4 h5 h6 head header hr html iframe legend li link main menu menuitem nav noframes ol \
    optgroup option p param search section summary table tbody td tfoot th thead title tr track ul ";

impl Html {
    fn of(rest: &str) -> Option<Self> {
        let inside = rest.strip_prefix('<')?;
        for (begins, end) in [("!--", "-->"), ("?", "?>"), ("![CDATA[", "]]>")] {
            if inside.starts_with(begins) {
                return Some(Self::Until(end));
            }
        }
        if inside.strip_prefix('!').is_some_and(|rest| rest.starts_with(|c: char| c.is_ascii_alphabetic())) {
            return Some(Self::Until(">"));
        }
        let closing = inside.strip_prefix('/');
        let name_on = closing.unwrap_or(inside);
        let length = name_on.bytes().take_while(|byte| byte.is_ascii_alphanumeric() || *byte == b'-').count();
        let (name, behind) = name_on.split_at(length);
        let name = name.to_ascii_lowercase();
        let ends = behind.is_empty() || behind.starts_with([' ', '\t', '>']);
        if !name.starts_with(|c: char| c.is_ascii_alphabetic()) {
            return None;
        }
        let raw =
            [("script", "</script>"), ("pre", "</pre>"), ("style", "</style>"), ("textarea", "</textarea>")];
        if let Some((_, end)) = raw.iter().find(|(tag, _)| *tag == name && closing.is_none() && ends) {
            return Some(Self::Until(end));
        }
        if BLOCK_TAGS.contains(&format!(" {name} ")) && (ends || behind.starts_with("/>")) {
            return Some(Self::Block);
        }
        // Any other tag, if it is all there is on the line.
        let whole = behind.trim_end().strip_suffix('>')?;
        let attributes = whole.strip_suffix('/').unwrap_or(whole);
        let alone = !attributes.contains(['<', '>'])
            && (attributes.is_empty() || attributes.starts_with([' ', '\t']));
        let fine = alone && (closing.is_none() || attributes.trim().is_empty());
        fine.then_some(Self::Tag)
    }

    /// Whether it ends with this line.
    pub fn is_closed_by(self, line: &str) -> bool {
        match self {
            Self::Block | Self::Tag => line.trim().is_empty(),
            Self::Until(end) => line.to_ascii_lowercase().contains(end),
        }
    }
}

impl Fence {
    fn of(rest: &str, indent: usize) -> Option<Self> {
        let mark = rest.chars().next().filter(|mark| matches!(mark, '`' | '~'))?;
        let length = rest.chars().take_while(|c| *c == mark).count();
        let info = rest[length..].trim();
        let words = mark == '`' && info.contains('`');
        (length >= 3 && !words).then(|| Self { mark, length, indent, info: info.to_owned() })
    }

    pub fn is_closed_by(&self, line: &str) -> bool {
        let rest = line.trim();
        indent(line) < CODE_INDENT
            && rest.chars().count() >= self.length
            && rest.chars().all(|c| c == self.mark)
    }

    /// A line of the code, without the indentation that the fence has as well.
    pub fn inside<'a>(&self, line: &'a str) -> &'a str {
        let spaces = line.bytes().take(self.indent).take_while(|byte| *byte == b' ').count();
        &line[spaces..]
    }
}

impl Marker {
    fn of(rest: &str, indent: usize) -> Option<Self> {
        let digits = rest.bytes().take_while(u8::is_ascii_digit).count();
        let (kind, number) = match rest[digits..].chars().next()? {
            kind @ ('-' | '+' | '*') if digits == 0 => (kind, None),
            kind @ ('.' | ')') if (1..=9).contains(&digits) => (kind, rest[..digits].parse().ok()),
            _ => return None,
        };
        let after = &rest[digits + 1..];
        let words = after.trim_start();
        let spaces = self::indent(after);
        if !words.is_empty() && spaces == 0 {
            return None;
        }
        // Five columns or more begin code inside the item, one column behind the mark.
        let gap = if words.is_empty() || spaces > CODE_INDENT { 1 } else { spaces };
        let content = indent + digits + 1 + gap;
        Some(Self { kind, number, indent, content, empty: words.is_empty() })
    }

    pub fn same_list(&self, before: &Self) -> bool {
        self.kind == before.kind && self.indent < before.content
    }
}

/// Columns of blank space that a line begins with.
pub(super) fn indent(line: &str) -> usize {
    let mut columns = 0;
    for byte in line.bytes() {
        match byte {
            b' ' => columns += 1,
            b'\t' => columns += CODE_INDENT - columns % CODE_INDENT,
            _ => break,
        }
    }
    columns
}

fn is_heading(rest: &str) -> bool {
    let marks = rest.bytes().take_while(|byte| *byte == b'#').count();
    let after = &rest[marks..];
    (1..=6).contains(&marks) && (after.is_empty() || after.starts_with([' ', '\t']))
}

fn is_rule(rest: &str) -> bool {
    let mut marks = rest.chars().filter(|c| !matches!(c, ' ' | '\t'));
    let Some(mark) = marks.next().filter(|mark| matches!(mark, '-' | '*' | '_')) else { return false };
    let mut count = 1;
    marks.all(|c| {
        count += 1;
        c == mark
    }) && count >= 3
}

/// A line that makes words above it a heading.
pub(super) fn is_underline(line: &str) -> bool {
    let rest = line.trim();
    let all = |mark: char| !rest.is_empty() && rest.chars().all(|c| c == mark);
    indent(line) < CODE_INDENT && (all('=') || all('-'))
}

/// The line between the head of a table and its rows.
pub(super) fn is_table_rule(line: &str) -> bool {
    line.contains('|')
        && line.contains('-')
        && line.chars().all(|c| matches!(c, '|' | '-' | ':' | ' ' | '\t'))
}

/// The lines at the beginning of a block that name addresses for links: `[name]: address`.
pub(super) fn link_names(text: &str) -> Vec<&str> {
    let names = |line: &&str| {
        let name = line.trim_start().strip_prefix('[').and_then(|rest| rest.split_once("]:"));
        name.is_some_and(|(name, address)| {
            !name.is_empty()
                && !name.starts_with('^')
                && !address.trim().is_empty()
                && !name.contains(['[', ']'])
        })
    };
    text.lines().take_while(names).collect()
}

/// What would close what a line leaves open, so that a line which still grows does not change its looks with every mark.
pub(super) fn unclosed(line: &str) -> &'static str {
    let code = line.matches('`').count() % 2 == 1;
    if code {
        return if line.ends_with('`') { "" } else { "`" };
    }
    let words = line.trim_start().trim_start_matches("* ");
    let strong = words.matches("**").count() % 2 == 1;
    let open = words.ends_with(['*', ' ']);
    if strong && !open { "**" } else { "" }
}
