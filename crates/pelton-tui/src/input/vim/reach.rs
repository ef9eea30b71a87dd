//! Where motions lead, and what objects cover. Pure: a text, a caret, and an answer.

use std::ops::Range;

use super::keys::{Kind, Motion, Object, Step};
use crate::input::buffer::{Buffer, characters};
use crate::limits::YANKED_BYTES_MAX;

/// Where a motion leads.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Reach {
    pub to: usize,
}

/// A part of the text that something is done to.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum Span {
    Part(Range<usize>),
    /// Whole lines, without the end of the last.
    Lines(Range<usize>),
}

impl Span {
    pub fn range(&self) -> Range<usize> {
        match self {
            Self::Part(range) | Self::Lines(range) => range.clone(),
        }
    }
}

/// Where a motion leads from the caret; `None` if it cannot be made.
pub(super) fn reach(buffer: &Buffer, motion: Motion, count: Option<usize>) -> Option<Reach> {
    let (text, caret) = (buffer.text(), buffer.caret());
    let line = buffer.line(caret);
    let times = count.unwrap_or(1);
    let stepped = |step: &dyn Fn(usize) -> usize| (0..times).fold(caret, |at, _| step(at));
    let to = match motion {
        Motion::Left => stepped(&|at| if at > line.start { buffer.before(at) } else { at }),
        Motion::Right => stepped(&|at| if at < line.end { buffer.after(at) } else { at }),
        Motion::Up => (0..times).try_fold(caret, |at, _| buffer.line(at).start.checked_sub(1))?,
        Motion::Down => (0..times).try_fold(caret, |at, _| {
            let end = buffer.line(at).end;
            (end < text.len()).then_some(end + 1)
        })?,
        Motion::Word { big } => stepped(&|at| next_word(text, at, big)),
        Motion::ChangedWord { big } => {
            // The word that the caret stands in counts as one, also on its last letter.
            let from = (1..times).fold(caret, |at, _| next_word(text, at, big));
            run_end(text, from, big)
        }
        Motion::WordEnd { big } => stepped(&|at| word_end(text, at, big)),
        Motion::WordBack { big } => stepped(&|at| word_back(text, at, big)),
        Motion::LineStart => line.start,
        Motion::FirstLetter => first_letter(buffer, &line),
        Motion::LineEnd => line_down(buffer, caret, times - 1).end,
        Motion::Top => first_letter(buffer, &line_down(buffer, 0, times - 1)),
        Motion::Bottom => {
            let line = match count {
                Some(number) => line_down(buffer, 0, number - 1),
                None => buffer.line(text.len()),
            };
            first_letter(buffer, &line)
        }
        Motion::Seek(letter, step) => {
            sought(&text[line.clone()], caret - line.start, letter, step, times)? + line.start
        }
        // Only whoever remembers knows what is meant: see the editor.
        Motion::SeekAgain { .. } => return None,
    };
    Some(Reach { to })
}

/// What lies between the caret and where a motion leads.
pub(super) fn span(buffer: &Buffer, motion: Motion, reach: Reach) -> Span {
    let (text, caret) = (buffer.text(), buffer.caret());
    let (start, mut end) = (caret.min(reach.to), caret.max(reach.to));
    match motion {
        Motion::Up | Motion::Down | Motion::Top | Motion::Bottom => {
            return Span::Lines(buffer.line(start).start..buffer.line(end).end);
        }
        // These lead onto a character that is meant, too.
        Motion::WordEnd { .. } => end = buffer.after(end),
        Motion::Seek(_, step) if !step.back => end = buffer.after(end),
        Motion::SeekAgain { .. } if reach.to > caret => end = buffer.after(end),
        // The last word of a line ends with it.
        Motion::Word { .. } => {
            let passed = &text[start..end];
            let words = passed.trim_end().len();
            if let Some(line_end) = passed[words..].find('\n') {
                end = start + words + line_end;
            }
        }
        _ => {}
    }
    Span::Part(start..end)
}

/// So many lines from the one that the caret stands in.
pub(super) fn lines(buffer: &Buffer, caret: usize, count: usize) -> Span {
    Span::Lines(buffer.line(caret).start..line_down(buffer, caret, count - 1).end)
}

/// Lines with the end that goes with them: the one behind, or at the end of the text the one before.
pub(super) fn with_line_end(buffer: &Buffer, lines: &Range<usize>) -> Range<usize> {
    match lines.end < buffer.text().len() {
        true => lines.start..lines.end + 1,
        false => lines.start.saturating_sub(1)..lines.end,
    }
}

/// The line so many below, or the last.
pub(super) fn line_down(buffer: &Buffer, at: usize, down: usize) -> Range<usize> {
    let mut line = buffer.line(at);
    for _ in 0..down {
        if line.end == buffer.text().len() {
            break;
        }
        line = buffer.line(line.end + 1);
    }
    line
}

/// Where the first letter of a line stands.
pub(super) fn first_letter(buffer: &Buffer, line: &Range<usize>) -> usize {
    let words = &buffer.text()[line.clone()];
    line.start + (words.len() - words.trim_start_matches([' ', '\t']).len())
}

/// Whether the caret stands on blank space.
pub(super) fn is_blank(buffer: &Buffer) -> bool {
    buffer.text()[buffer.caret()..].chars().next().is_none_or(char::is_whitespace)
}

/// A text so many times, as long as that is not beyond reason.
pub(super) fn repeated(text: &str, times: usize) -> String {
    text.repeat(times.min(YANKED_BYTES_MAX / text.len().max(1)).max(1))
}

#[derive(PartialEq, Eq, Clone, Copy)]
enum Class {
    Blank,
    Word,
    Sign,
}

fn class(letter: char, big: bool) -> Class {
    match letter {
        letter if letter.is_whitespace() => Class::Blank,
        letter if big || letter.is_alphanumeric() || letter == '_' => Class::Word,
        _ => Class::Sign,
    }
}

/// The kind of a character as people see it: marks that join a letter change nothing of it.
fn kind_of(character: &str, big: bool) -> Class {
    character.chars().next().map_or(Class::Blank, |letter| class(letter, big))
}

/// The end of the run of characters of one kind that begins here.
fn run_end(text: &str, at: usize, big: bool) -> usize {
    let mut behind = characters(&text[at..]);
    let Some((_, first)) = behind.next() else { return at };
    let kind = kind_of(first, big);
    behind.find(|(_, other)| kind_of(other, big) != kind).map_or(text.len(), |(length, _)| at + length)
}

/// Where the run of characters of this kind begins that ends here.
fn run_start(text: &str, at: usize, kind: Class, big: bool) -> usize {
    let run = characters(&text[..at]).rev().take_while(|(_, other)| kind_of(other, big) == kind);
    run.last().map_or(at, |(start, _)| start)
}

/// Where what is not blank begins, here or behind.
fn blank_end(text: &str, at: usize) -> usize {
    let found = characters(&text[at..]).find(|(_, other)| kind_of(other, false) != Class::Blank);
    found.map_or(text.len(), |(length, _)| at + length)
}

fn next_word(text: &str, at: usize, big: bool) -> usize {
    let begins_blank = text[at..].starts_with(char::is_whitespace);
    blank_end(text, if begins_blank { at } else { run_end(text, at, big) })
}

fn word_end(text: &str, at: usize, big: bool) -> usize {
    let Some((_, here)) = characters(&text[at..]).next() else { return at };
    let from = blank_end(text, at + here.len());
    let word = &text[from..run_end(text, from, big)];
    characters(word).next_back().map_or(at, |(last, _)| from + last)
}

fn word_back(text: &str, at: usize, big: bool) -> usize {
    let end = run_start(text, at, Class::Blank, big);
    let last = characters(&text[..end]).next_back();
    last.map_or(0, |(_, last)| run_start(text, end, kind_of(last, big), big))
}

/// Where a letter stands on a line, the so manieth from the caret.
fn sought(line: &str, caret: usize, letter: char, step: Step, times: usize) -> Option<usize> {
    // Beside one that stands right there is where the caret is already.
    let skips = step.short && step.again;
    if step.back {
        let near = skips && line[..caret].ends_with(letter);
        let before = if near { caret - letter.len_utf8() } else { caret };
        let at = line[..before].rmatch_indices(letter).nth(times - 1)?.0;
        let behind = characters(&line[at..]).next().map_or(0, |(_, sought)| sought.len());
        return Some(if step.short { at + behind } else { at });
    }
    let here = line[caret..].chars().next()?.len_utf8();
    let near = skips && line[caret + here..].starts_with(letter);
    let from = caret + here + if near { letter.len_utf8() } else { 0 };
    let at = from + line[from..].match_indices(letter).nth(times - 1)?.0;
    match step.short {
        true => characters(&line[..at]).next_back().map(|(before, _)| before),
        false => Some(at),
    }
}

/// What an object covers, if the caret is in one.
pub(super) fn object(buffer: &Buffer, object: Object) -> Option<Range<usize>> {
    let (text, caret) = (buffer.text(), buffer.caret());
    match object.kind {
        Kind::Word { big } => {
            let line = buffer.line(caret);
            word_around(&text[line.clone()], caret - line.start, big, object.around)
                .map(|word| word.start + line.start..word.end + line.start)
        }
        Kind::Quoted(quote) => {
            let line = buffer.line(caret);
            let words = &text[line.clone()];
            let (start, end) = quoted(words, caret - line.start, quote)?;
            let range = match object.around {
                true => with_space(words, start, end + quote.len_utf8(), false),
                false => start + quote.len_utf8()..end,
            };
            Some(range.start + line.start..range.end + line.start)
        }
        Kind::Between(open, close) => {
            let (start, end) = between(text, caret, open, close)?;
            Some(if object.around { start..end + close.len_utf8() } else { start + open.len_utf8()..end })
        }
    }
}

fn word_around(line: &str, caret: usize, big: bool, around: bool) -> Option<Range<usize>> {
    let kind = class(line[caret..].chars().next()?, big);
    let (start, end) = (run_start(line, caret, kind, big), run_end(line, caret, big));
    if !around {
        return Some(start..end);
    }
    if kind == Class::Blank {
        return Some(start..run_end(line, end, big));
    }
    Some(with_space(line, start, end, big))
}

/// A part of a line with the space behind it, or else the space before.
fn with_space(line: &str, start: usize, end: usize, big: bool) -> Range<usize> {
    match blank_end(line, end) {
        behind if behind == end => run_start(line, start, Class::Blank, big)..end,
        behind => start..behind,
    }
}

/// The quotes around the caret on a line, or the first pair behind it.
fn quoted(line: &str, caret: usize, quote: char) -> Option<(usize, usize)> {
    let escaped = |at: usize| line[..at].bytes().rev().take_while(|byte| *byte == b'\\').count() % 2 == 1;
    let mut quotes = line.match_indices(quote).map(|(at, _)| at).filter(|at| !escaped(*at));
    while let (Some(start), Some(end)) = (quotes.next(), quotes.next()) {
        if caret <= end {
            return Some((start, end));
        }
    }
    None
}

/// The nearest pair of brackets around the caret.
fn between(text: &str, caret: usize, open: char, close: char) -> Option<(usize, usize)> {
    let start = match text[caret..].starts_with(open) {
        true => caret,
        false => unanswered(text[..caret].char_indices().rev(), open, close)?,
    };
    let inside = start + open.len_utf8();
    let end = unanswered(text[inside..].char_indices(), close, open)?;
    Some((start, inside + end))
}

/// Where the first bracket of this kind stands that is not the other end of one met on the way.
fn unanswered(mut letters: impl Iterator<Item = (usize, char)>, sought: char, other: char) -> Option<usize> {
    let mut depth = 0_usize;
    letters.find_map(|(at, letter)| {
        if letter == other {
            depth += 1;
        } else if letter == sought {
            match depth.checked_sub(1) {
                Some(less) => depth = less,
                None => return Some(at),
            }
        }
        None
    })
}
