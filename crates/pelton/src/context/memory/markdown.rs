//! What of a memory file the model reads, and what the file imports. Pure.

use std::ops::Range;

/// The text without the comments that stand as blocks of their own: those that begin a line. In code they are code.
pub fn without_comments(text: &str) -> String {
    let mut kept = String::with_capacity(text.len());
    let mut from = 0;
    let code = code(text);
    let mut line_start = 0;
    while line_start < text.len() {
        let line_end = line_end(text, line_start);
        let line = &text[line_start..line_end];
        let indent = line.len() - line.trim_start_matches(' ').len();
        let begins = line_start + indent;
        if indent <= 3 && text[begins..].starts_with("<!--") && !is_inside(&code, begins)
            // An unfinished comment is taken for text: half a file must not vanish.
            && let Some(length) = text[begins + 4..].find("-->")
        {
            let mut end = begins + 4 + length + 3;
            kept.push_str(&text[from..line_start]);
            // Where nothing else stands on its last line, that line goes too.
            let rest_end = self::line_end(text, end);
            if text[end..rest_end].trim().is_empty() {
                end = rest_end;
            }
            from = end;
            line_start = if end == rest_end { end } else { rest_end };
            continue;
        }
        line_start = line_end;
    }
    kept.push_str(&text[from..]);
    kept
}

/// The paths behind `@` at the beginning of a word, outside of code, as they are written.
pub fn imports(text: &str) -> Vec<String> {
    let code = code(text);
    let mut found = Vec::new();
    for (at, _) in text.match_indices('@') {
        let begins_word =
            text[..at].chars().next_back().is_none_or(|c| c.is_whitespace() || matches!(c, '(' | '['));
        if !begins_word || is_inside(&code, at) {
            continue;
        }
        let path = path_at(&text[at + 1..]);
        if !path.is_empty() && !found.contains(&path) {
            found.push(path);
        }
    }
    found
}

/// A path up to the next blank; a blank behind a backslash belongs to it.
fn path_at(rest: &str) -> String {
    let mut path = String::new();
    let mut chars = rest.chars().peekable();
    while let Some(c) = chars.next() {
        match c {
            '\\' if chars.peek() == Some(&' ') => path.extend(chars.next()),
            c if c.is_whitespace() => break,
            '`' => break,
            c => path.push(c),
        }
    }
    path
}

/// The path as it is written, then without the punctuation behind it that may be the sentence's.
pub fn spellings(path: &str) -> impl Iterator<Item = &str> {
    let path = path.split_once('#').map_or(path, |(file, _)| file);
    std::iter::successors(Some(path), |path| {
        path.strip_suffix(['.', ',', ';', ':', '!', '?', ')', ']', '"', '\'', '*', '_', '>'])
    })
    .take_while(|path| !path.is_empty())
}

/// The stretches of a text that are code: fences, and spans between backticks.
fn code(text: &str) -> Vec<Range<usize>> {
    let mut stretches = Vec::new();
    let mut line_start = 0;
    let mut paragraph = 0;
    while line_start < text.len() {
        let end = line_end(text, line_start);
        let line = text[line_start..end].trim_end();
        let fence = fence(line);
        if fence.is_some() || line.trim().is_empty() {
            spans(text, paragraph..line_start, &mut stretches);
            paragraph = end;
        }
        let Some((mark, width)) = fence else {
            line_start = end;
            continue;
        };
        let mut close = end;
        while close < text.len() {
            let next = line_end(text, close);
            let line = text[close..next].trim();
            close = next;
            if line.len() >= width && line.chars().all(|c| c == mark) {
                break;
            }
        }
        stretches.push(line_start..close);
        (line_start, paragraph) = (close, close);
    }
    spans(text, paragraph.min(text.len())..text.len(), &mut stretches);
    stretches.sort_by_key(|stretch| stretch.start);
    stretches
}

/// What opens a fence: which character, and how often. Inside lists and quotes it stands further right.
fn fence(line: &str) -> Option<(char, usize)> {
    let line = line.trim_start_matches([' ', '\t', '>']);
    let mark = line.chars().next().filter(|mark| matches!(mark, '`' | '~'))?;
    let width = line.chars().take_while(|c| *c == mark).count();
    // Words behind backticks hold no backtick: that is a span, not a fence.
    (width >= 3 && !(mark == '`' && line[width..].contains('`'))).then_some((mark, width))
}

/// Spans of code in a paragraph: from a run of backticks to the next run of the same length.
fn spans(text: &str, paragraph: Range<usize>, stretches: &mut Vec<Range<usize>>) {
    let end = paragraph.end;
    let mut at = paragraph.start;
    while let Some(start) = text[at..end].find('`').map(|found| at + found) {
        let width = run(text, start, end);
        let mut close = start + width;
        let closing = loop {
            let Some(next) = text[close..end].find('`').map(|found| close + found) else { break None };
            let other = run(text, next, end);
            close = next + other;
            if other == width {
                break Some(close);
            }
        };
        at = match closing {
            Some(close) => {
                stretches.push(start..close);
                close
            }
            None => start + width,
        };
    }
}

fn run(text: &str, start: usize, end: usize) -> usize {
    text.as_bytes()[start..end].iter().take_while(|byte| **byte == b'`').count()
}

fn is_inside(stretches: &[Range<usize>], at: usize) -> bool {
    let next = stretches.partition_point(|stretch| stretch.start <= at);
    next.checked_sub(1).is_some_and(|last| stretches[last].contains(&at))
}

/// Where the line that begins here ends, its line end included.
fn line_end(text: &str, start: usize) -> usize {
    text[start..].find('\n').map_or(text.len(), |at| start + at + 1)
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn comments_that_are_blocks_go_and_those_in_code_or_text_stay() {
        let check = |text: &str, expected: &str| assert_eq!(without_comments(text), expected, "{text:?}");
        check("a\n<!-- b -->\nc\n", "a\nc\n");
        check("a\n  <!-- b\n\nb -->\nc", "a\nc");
        check("<!-- b --> c\n", " c\n");
        check("a <!-- inline --> c", "a <!-- inline --> c");
        check("```\n<!-- code -->\n```\n", "```\n<!-- code -->\n```\n");
        check("    <!-- indented -->\n", "    <!-- indented -->\n");
        check("<!-- never closed\na", "<!-- never closed\na");
        check("<!-- a --><!-- b -->\nc", "<!-- b -->\nc");
        check("<!---->\nä", "ä");
    }

    #[test]
    fn imports_begin_words_outside_of_code() {
        let check = |text: &str, expected: &[&str]| assert_eq!(imports(text), expected, "{text:?}");
        check("@a.md and @./b/c.md\n- @~/d.md", &["a.md", "./b/c.md", "~/d.md"]);
        check("me@example.org `@code.md` ``@`x`.md``", &[]);
        check("```\n@fenced.md\n```\n@after.md", &["after.md"]);
        check("~~~sh\n@a\n```\n@b\n~~~\n@c", &["c"]);
        check("- list\n    ```\n    @a\n    ```\n  @b", &["b"]);
        check("an open ` backtick\n\n@a `", &["a"]);
        check("an open ` backtick @a\n@b ` c", &[]);
        check("@with\\ blank.md", &["with blank.md"]);
        check("@a @a", &["a"]);
        check("(@a.md)", &["a.md)"]);
        check("@", &[]);
        check("```\n@never closed", &[]);
        check("größe @ä.md", &["ä.md"]);
    }

    #[test]
    fn a_sentence_may_end_behind_an_import() {
        assert_eq!(spellings("a.md).").collect::<Vec<_>>(), ["a.md).", "a.md)", "a.md"]);
        assert_eq!(spellings("a.md#part").collect::<Vec<_>>(), ["a.md"]);
    }

    /// Pieces that matter to the reading, put together at random.
    fn soup() -> impl Strategy<Value = String> {
        let piece = prop_oneof![
            Just("```\n"),
            Just("`"),
            Just("``"),
            Just("~~~\n"),
            Just("\n"),
            Just("\n\n"),
            Just("<!--"),
            Just("-->"),
            Just(" @a.md "),
            Just("@"),
            Just("ä"),
            Just("    "),
            Just("- "),
            Just("> "),
            Just("x"),
            Just("\r\n"),
        ];
        prop::collection::vec(piece, 0..40).prop_map(|pieces| pieces.concat())
    }

    proptest! {
        #[test]
        fn any_text_is_read(text in soup()) {
            let kept = without_comments(&text);
            prop_assert!(kept.len() <= text.len());
            if !text.contains("<!--") {
                prop_assert_eq!(&kept, &text);
            }
            for import in imports(&kept) {
                prop_assert!(!import.is_empty() && !import.contains(char::is_whitespace));
            }
        }

        #[test]
        fn nothing_in_a_fence_is_imported_or_taken_out(text in soup()) {
            let inside = text.replace("```", "").replace('`', "");
            let fenced = format!("````\n{inside}\n````\n");
            prop_assert_eq!(imports(&fenced), Vec::<String>::new());
            prop_assert_eq!(without_comments(&fenced), fenced);
        }
    }
}
