//! Code in colours. Grammars are looked at when the first code is shown, and never before.
//!
//! What a grammar says of a word becomes a [`Role`]; which colour that is, the theme knows.

use std::sync::OnceLock;

use ratatui_core::text::Span;
use syntect::parsing::{ParseState, Scope, ScopeStack, SyntaxReference, SyntaxSet};

use crate::limits::{CODE_LINE_BYTES_MAX, CODE_LINES_COLOURED_MAX};
use crate::theme::{Depth, Role, Theme};

/// One piece of code, line by line.
#[derive(Clone)]
pub struct Highlighter {
    /// `None` where there is no grammar, or no use for one.
    grammar: Option<Grammar>,
    lines: usize,
    theme: Theme,
}

#[derive(Clone)]
struct Grammar {
    state: ParseState,
    stack: ScopeStack,
}

impl Highlighter {
    /// Code in the language that the words behind the fence name: `rust`, `py`, `rust,ignore`, `js {1-3}`.
    pub fn of_language(info: &str, theme: Theme) -> Self {
        Self::of(theme, |set| language(set, info))
    }

    /// Code of a file, known by its name.
    pub fn of_path(path: &str, theme: Theme) -> Self {
        Self::of(theme, |set| {
            let name = path.rsplit('/').next().unwrap_or(path);
            let ending = name.rsplit_once('.').map_or(name, |(_, ending)| ending);
            // Some are known by their whole name: Makefile, Dockerfile.
            set.find_syntax_by_extension(name).or_else(|| set.find_syntax_by_extension(ending))
        })
    }

    /// Nothing but the words.
    pub fn plain(theme: Theme) -> Self {
        Self { grammar: None, lines: 0, theme }
    }

    fn of(theme: Theme, find: impl FnOnce(&'static SyntaxSet) -> Option<&'static SyntaxReference>) -> Self {
        // Without colours there is nothing to be told by them.
        let syntax = if theme.depth() <= Depth::Mono { None } else { find(grammars()) };
        let grammar =
            syntax.map(|syntax| Grammar { state: ParseState::new(syntax), stack: ScopeStack::new() });
        Self { grammar, lines: 0, theme }
    }

    /// The next line, without its end. The order counts: a comment may have begun above.
    pub fn line(&mut self, line: &str) -> Vec<Span<'static>> {
        self.lines += 1;
        if line.len() > CODE_LINE_BYTES_MAX || self.lines > CODE_LINES_COLOURED_MAX {
            // What a line would have opened is not known any more: the rest would be wrong.
            self.grammar = None;
        }
        match self.coloured(line) {
            Some(spans) => spans,
            None => {
                self.grammar = None;
                vec![Span::styled(line.to_owned(), self.theme.style(Role::Text))]
            }
        }
    }

    fn coloured(&mut self, line: &str) -> Option<Vec<Span<'static>>> {
        let Grammar { state, stack } = self.grammar.as_mut()?;
        let mut spans: Vec<Span<'static>> = Vec::new();
        let mut put = |text: &str, role: Role| {
            let style = self.theme.style(role);
            match spans.last_mut() {
                _ if text.is_empty() => {}
                Some(last) if last.style == style => last.content.to_mut().push_str(text),
                _ => spans.push(Span::styled(text.to_owned(), style)),
            }
        };
        let mut from = 0;
        // Grammars go by line ends. A pattern that takes too long is an error, and no reason to wait.
        for (at, change) in state.parse_line(&format!("{line}\n"), grammars()).ok()? {
            let at = at.min(line.len());
            put(line.get(from..at)?, role(stack));
            from = at;
            stack.apply(&change).ok()?;
        }
        put(line.get(from..)?, role(stack));
        Some(spans)
    }
}

/// Looks at the grammars now rather than when they are needed. It takes some milliseconds, so it is not done at start.
pub fn load() {
    grammars();
}

fn grammars() -> &'static SyntaxSet {
    static GRAMMARS: OnceLock<SyntaxSet> = OnceLock::new();
    GRAMMARS.get_or_init(two_face::syntax::extra_newlines)
}

fn language<'a>(set: &'a SyntaxSet, info: &str) -> Option<&'a SyntaxReference> {
    let name = info.trim().trim_start_matches("language-").split([',', ' ', '{', ':', '\t', ';']).next()?;
    let name = name.trim_start_matches('.').to_ascii_lowercase();
    let name = match &*name {
        "" | "text" | "plain" | "plaintext" | "txt" | "output" | "none" => return None,
        "shell" | "console" | "shellsession" | "sh-session" | "zsh" | "terminal" => "bash",
        "golang" => "go",
        "node" | "mjs" | "cjs" | "jsx" => "js",
        "c++" => "cpp",
        "c#" => "cs",
        "f#" => "fs",
        "docker" => "dockerfile",
        "jsonc" | "json5" | "jsonl" | "ndjson" => "json",
        "python3" => "py",
        "rb" => "ruby",
        "patch" => "diff",
        "proto" => "protobuf",
        "ps" | "pwsh" => "powershell",
        "tf" | "hcl" => "terraform",
        other => other,
    };
    set.find_syntax_by_token(name)
}

/// What a grammar calls things, and what that is here; the more particular comes first.
const SCOPES: &[(&str, Role)] = &[
    ("comment", Role::Comment),
    ("constant.character.escape", Role::Number),
    ("string", Role::Quoted),
    ("constant.other.placeholder", Role::Number),
    ("constant.numeric", Role::Number),
    ("constant", Role::Number),
    ("keyword.operator", Role::Text),
    ("keyword", Role::Keyword),
    ("storage", Role::Keyword),
    ("entity.name.function", Role::Name),
    ("variable.function", Role::Name),
    ("support.function", Role::Name),
    ("support.macro", Role::Name),
    ("entity.name.tag", Role::Keyword),
    ("entity.other.attribute-name", Role::Type),
    ("entity.name.section", Role::Heading),
    ("entity.name", Role::Type),
    ("entity.other.inherited-class", Role::Type),
    ("support.type.property-name", Role::Name),
    ("support", Role::Type),
    ("variable.language", Role::Keyword),
    ("markup.heading", Role::Heading),
    ("markup.inserted", Role::Added),
    ("markup.deleted", Role::Removed),
    ("meta.diff.range", Role::Hunk),
    ("markup.bold", Role::Strong),
    ("markup.italic", Role::Emphasis),
    ("markup.raw", Role::Code),
];

/// The role of what stands in all these scopes, the innermost that has one.
fn role(stack: &ScopeStack) -> Role {
    static ROLES: OnceLock<Vec<(Scope, Role)>> = OnceLock::new();
    let roles = ROLES.get_or_init(|| {
        let read = |(name, role): &(&str, Role)| Scope::new(name).ok().map(|scope| (scope, *role));
        SCOPES.iter().filter_map(read).collect()
    });
    let known = |scope: &Scope| roles.iter().find(|(prefix, _)| prefix.is_prefix_of(*scope));
    stack.as_slice().iter().rev().find_map(known).map_or(Role::Text, |(_, role)| *role)
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;
    use crate::theme::{Surroundings, Wanted};

    fn theme() -> Theme {
        let surroundings =
            Surroundings { term: Some("xterm"), colorterm: Some("truecolor"), ..Default::default() };
        Theme::new(surroundings, Wanted::default())
    }

    fn look(spans: &[Span<'_>], word: &str) -> Option<ratatui_core::style::Style> {
        spans.iter().find(|span| span.content.contains(word)).map(|span| span.style)
    }

    #[test]
    fn words_of_many_languages_have_their_colours() {
        for (language, line, word, role) in [
            ("rust", "fn main() { let x = 1; }", "fn", Role::Keyword),
            ("rs", "fn main() {}", "main", Role::Name),
            ("rust,ignore", "// said", "said", Role::Comment),
            ("python", "x = 'words'", "words", Role::Quoted),
            ("py", "def f(): return 42", "42", Role::Number),
            ("ts", "const x: number = 1", "const", Role::Keyword),
            ("tsx", "// said", "said", Role::Comment),
            ("javascript", "function f() {}", "function", Role::Keyword),
            ("go", "func main() {}", "func", Role::Keyword),
            ("golang", "// said", "said", Role::Comment),
            ("c++", "// said", "said", Role::Comment),
            ("java", "class A {}", "class", Role::Keyword),
            ("json", "{\"a\": 12}", "12", Role::Number),
            ("toml", "a = \"words\"", "words", Role::Quoted),
            ("yaml", "# said", "said", Role::Comment),
            ("bash", "# said", "said", Role::Comment),
            ("console", "# said", "said", Role::Comment),
            ("sql", "SELECT 1", "SELECT", Role::Keyword),
            ("html", "<!-- said -->", "said", Role::Comment),
            ("css", "/* said */", "said", Role::Comment),
            ("dockerfile", "# said", "said", Role::Comment),
            ("diff", "+ more", "more", Role::Added),
            ("kotlin", "// said", "said", Role::Comment),
            ("swift", "// said", "said", Role::Comment),
            ("Rust {1-3}", "// said", "said", Role::Comment),
        ] {
            let spans = Highlighter::of_language(language, theme()).line(line);
            assert_eq!(look(&spans, word), Some(theme().style(role)), "{language}: {spans:?}");
        }
    }

    #[test]
    fn files_are_known_by_their_names() {
        for (path, line) in
            [("src/main.rs", "// said"), ("a/b.py", "# said"), ("Makefile", "# said"), ("x.toml", "# said")]
        {
            let spans = Highlighter::of_path(path, theme()).line(line);
            assert_eq!(look(&spans, "said"), Some(theme().style(Role::Comment)), "{path}");
        }
        let spans = Highlighter::of_path("unknown.zzz", theme()).line("# said");
        assert_eq!(look(&spans, "said"), Some(theme().style(Role::Text)));
    }

    #[test]
    fn what_began_above_goes_on() {
        let mut code = Highlighter::of_language("rust", theme());
        code.line("/* begins");
        assert_eq!(look(&code.line("goes on"), "goes"), Some(theme().style(Role::Comment)));
        assert_eq!(look(&code.line("*/ fn"), "fn"), Some(theme().style(Role::Keyword)));
    }

    #[test]
    fn what_would_take_long_is_plain() {
        let plain = Some(theme().style(Role::Text));
        let mut code = Highlighter::of_language("rust", theme());
        let long = format!("// {}", "x".repeat(CODE_LINE_BYTES_MAX));
        assert_eq!(look(&code.line(&long), "xx"), plain);
        assert_eq!(look(&code.line("// said"), "said"), plain);
        for unknown in ["", "text", "no such language", "\u{202e}"] {
            assert_eq!(
                look(&Highlighter::of_language(unknown, theme()).line("// said"), "said"),
                plain,
                "{unknown}"
            );
        }
        assert_eq!(Highlighter::of_language("rust", Theme::BARE).line("fn f()"), [Span::raw("fn f()")]);
    }

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(64))]
        #[test]
        fn no_word_is_lost(lines in prop::collection::vec("[ -~é日]{0,40}", 0..8), language in prop::sample::select(vec!["rust", "python", "ts", "html", "yaml", "bash", "markdown", "diff"])) {
            let mut code = Highlighter::of_language(language, theme());
            for line in lines {
                let shown: String = code.line(&line).iter().map(|span| span.content.to_string()).collect();
                prop_assert_eq!(shown, line);
            }
        }
    }
}
