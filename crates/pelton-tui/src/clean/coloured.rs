//! A line of a program that the user has chosen, with the colours it gives its words and nothing else of its own.

use ratatui_core::style::{Color, Modifier, Style};
use ratatui_core::text::Span;

/// The words of a line in their colours. Everything that is no colour is gone, as everywhere.
pub fn coloured(line: &str) -> Vec<Span<'static>> {
    let mut spans = Vec::new();
    let mut style = Style::default();
    let mut rest = line;
    loop {
        let at = rest.find("\u{1b}[").unwrap_or(rest.len());
        // The rest of a sequence of another kind goes with it.
        let (words, behind) = match rest.get(at + 2..) {
            Some(inside) => match inside.find(|c: char| !c.is_ascii_digit() && !";:".contains(c)) {
                Some(end) if inside[end..].starts_with('m') => {
                    let words = &rest[..at];
                    put(&mut spans, words, style);
                    style = styled(style, &inside[..end]);
                    rest = &inside[end + 1..];
                    continue;
                }
                _ => (&rest[..at + 2], inside),
            },
            None => (rest, ""),
        };
        if behind.is_empty() {
            put(&mut spans, words, style);
            return spans;
        }
        // Another sequence: up to the next colour it is cleaned as a whole.
        let next = next_colour(behind).unwrap_or(behind.len());
        put(&mut spans, &rest[..at + 2 + next], style);
        rest = &behind[next..];
        if rest.is_empty() {
            return spans;
        }
    }
}

/// Where the next sequence begins that is a colour.
fn next_colour(text: &str) -> Option<usize> {
    text.match_indices("\u{1b}[").map(|(at, _)| at).find(|at| {
        let inside = &text[at + 2..];
        inside.trim_start_matches(|c: char| c.is_ascii_digit() || ";:".contains(c)).starts_with('m')
    })
}

fn put(spans: &mut Vec<Span<'static>>, words: &str, style: Style) {
    let words = super::text(words).replace('\n', " ");
    if !words.is_empty() {
        spans.push(Span::styled(words, style));
    }
}

/// A style changed by the numbers of a sequence.
fn styled(mut style: Style, codes: &str) -> Style {
    let mut codes = codes.split([';', ':']).map(|code| code.parse::<u8>().unwrap_or_default());
    while let Some(code) = codes.next() {
        style = match code {
            0 => Style::default(),
            1 => style.add_modifier(Modifier::BOLD),
            2 => style.add_modifier(Modifier::DIM),
            3 => style.add_modifier(Modifier::ITALIC),
            4 => style.add_modifier(Modifier::UNDERLINED),
            7 => style.add_modifier(Modifier::REVERSED),
            9 => style.add_modifier(Modifier::CROSSED_OUT),
            22..=29 => Style { add_modifier: Modifier::empty(), ..style },
            30..=37 => style.fg(Color::Indexed(code - 30)),
            38 => colour(&mut codes).map_or(style, |colour| style.fg(colour)),
            39 => Style { fg: None, ..style },
            40..=47 => style.bg(Color::Indexed(code - 40)),
            48 => colour(&mut codes).map_or(style, |colour| style.bg(colour)),
            49 => Style { bg: None, ..style },
            90..=97 => style.fg(Color::Indexed(code - 90 + 8)),
            100..=107 => style.bg(Color::Indexed(code - 100 + 8)),
            _ => style,
        };
    }
    style
}

fn colour(codes: &mut impl Iterator<Item = u8>) -> Option<Color> {
    match codes.next()? {
        5 => codes.next().map(Color::Indexed),
        2 => Some(Color::Rgb(codes.next()?, codes.next()?, codes.next()?)),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn told(line: &str) -> Vec<(String, Style)> {
        coloured(line).into_iter().map(|span| (span.content.into_owned(), span.style)).collect()
    }

    #[test]
    fn colours_stay_and_everything_else_goes() {
        let plain = Style::default();
        let red = plain.fg(Color::Indexed(1));
        assert_eq!(
            told("a \u{1b}[31mb\u{1b}[0m c"),
            [("a ".into(), plain), ("b".into(), red), (" c".into(), plain)]
        );
        assert_eq!(
            told("\u{1b}[1;38;2;1;2;3mx"),
            [("x".into(), plain.add_modifier(Modifier::BOLD).fg(Color::Rgb(1, 2, 3)))]
        );
        assert_eq!(
            told("\u{1b}[48;5;7mx\u{1b}[49my"),
            [("x".into(), plain.bg(Color::Indexed(7))), ("y".into(), plain)]
        );
        assert_eq!(told("a\u{1b}[2Jb\u{1b}[31mc"), [("ab".into(), plain), ("c".into(), red)]);
        assert_eq!(told("\u{1b}]8;;http://a\u{7}link\u{1b}]8;;\u{7}"), [("link".into(), plain)]);
        for nothing in ["", "\u{1b}[", "\u{1b}[31", "\u{1b}[31m", "\u{1b}]0;x"] {
            assert_eq!(told(nothing), [], "{nothing:?}");
        }
    }

    proptest! {
        #[test]
        fn no_line_brings_a_control_character_along(line in "(\u{1b}|\\[|[0-9;:m]|[a-z]|\u{9b}|\u{7}|\\])*") {
            for span in coloured(&line) {
                prop_assert!(!span.content.chars().any(char::is_control), "{:?}", span.content);
            }
        }
    }
}
