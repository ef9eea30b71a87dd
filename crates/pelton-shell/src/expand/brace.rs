//! Brace expansion, where it is certain: braces that match, with commas, whole numbers or letters in all of them, and nothing but
//! characters around.

use crate::limits::{BRACE_CHARS_MAX, BRACE_WORDS_MAX, NESTING_MAX};

use super::Piece;

/// Whether these pieces could be expanded: an open brace, and a comma or two dots.
pub(super) fn may_expand(pieces: &[Piece]) -> bool {
    let bare = |found: &dyn Fn(&str) -> bool| {
        pieces.iter().any(|piece| matches!(piece, Piece::Bare(text) if found(text)))
    };
    // Two dots may be written in two pieces, but then one of them is quoted and means nothing.
    bare(&|text| text.contains('{'))
        && bare(&|text| text.contains(',') || text.contains(".."))
        && !matches!(pieces, [Piece::Bare(text)] if stays_as_it_is(text))
}

/// Whether all braces match, none in another, with neither a comma nor two dots in them: `@{u}..HEAD@{1}`.
fn stays_as_it_is(text: &str) -> bool {
    let mut rest = text;
    while let Some((before, behind)) = rest.split_once('{') {
        let Some((inside, after)) = behind.split_once('}') else { return false };
        if before.contains('}') || inside.contains(['{', ',', '$']) || inside.contains("..") {
            return false;
        }
        rest = after;
    }
    !rest.contains('}')
}

/// The words they become, or nothing if that is not certain.
pub(super) fn expand(pieces: &[Piece]) -> Option<Vec<Vec<Piece>>> {
    let mut letters = Vec::new();
    for piece in pieces {
        match piece {
            // A tilde may come to stand at the beginning of a word.
            Piece::Bare(text) if !text.contains('~') => {
                letters.extend(text.chars().map(|c| Letter { c, quoted: false }));
            }
            Piece::Quoted(text) if !text.is_empty() => {
                letters.extend(text.chars().map(|c| Letter { c, quoted: true }));
            }
            _ => return None,
        }
    }
    let mut reader = Reader { letters: &letters, at: 0 };
    let sequence = reader.sequence(0)?;
    if reader.at != letters.len() {
        return None;
    }
    let expanded = combine(&sequence)?;
    Some(expanded.into_iter().map(|word| pieces_of(&word)).collect())
}

#[derive(Clone, Copy, PartialEq, Eq)]
struct Letter {
    c: char,
    quoted: bool,
}

impl Letter {
    fn is(self, c: char) -> bool {
        self.c == c && !self.quoted
    }
}

/// What stands side by side.
type Sequence = Vec<Item>;

enum Item {
    Letter(Letter),
    /// The alternatives in a pair of braces.
    Choice(Vec<Sequence>),
}

struct Reader<'l> {
    letters: &'l [Letter],
    at: usize,
}

impl Reader<'_> {
    /// Up to the end or, inside braces, up to a comma or the closing brace.
    fn sequence(&mut self, depth: usize) -> Option<Sequence> {
        if depth > NESTING_MAX {
            return None;
        }
        let mut items = Vec::new();
        while let Some(letter) = self.letters.get(self.at).copied() {
            if depth > 0 && (letter.is(',') || letter.is('}')) {
                break;
            }
            self.at += 1;
            if letter.is('}') {
                return None;
            }
            items.push(if letter.is('{') { self.choice(depth)? } else { Item::Letter(letter) });
        }
        Some(items)
    }

    /// After an open brace, up to the closing one.
    fn choice(&mut self, depth: usize) -> Option<Item> {
        let mut alternatives = Vec::new();
        loop {
            alternatives.push(self.sequence(depth + 1)?);
            let end = self.letters.get(self.at)?;
            self.at += 1;
            if end.is('}') {
                break;
            }
        }
        match alternatives.as_slice() {
            // Braces without a comma are kept, and what is in them may be expanded all the same: leave that alone.
            [only] => Some(Item::Choice(numbers(only)?)),
            _ => Some(Item::Choice(alternatives)),
        }
    }
}

/// `1..3`
fn numbers(sequence: &Sequence) -> Option<Vec<Sequence>> {
    let mut text = String::new();
    for item in sequence {
        match item {
            Item::Letter(letter) if !letter.quoted => text.push(letter.c),
            _ => return None,
        }
    }
    let (first, last) = text.split_once("..")?;
    if let (Some(first), Some(last)) = (letter(first), letter(last)) {
        // Between capitals and small letters stand signs, and what becomes of those is not certain.
        (first.is_ascii_lowercase() == last.is_ascii_lowercase()).then_some(())?;
        let spell = |c: u8| vec![Item::Letter(Letter { c: char::from(c), quoted: false })];
        return Some(match first <= last {
            true => (first..=last).map(spell).collect(),
            false => (last..=first).rev().map(spell).collect(),
        });
    }
    let (first, last) = (number(first)?, number(last)?);
    if first.abs_diff(last) >= BRACE_WORDS_MAX as u64 {
        return None;
    }
    let spell =
        |value: i64| value.to_string().chars().map(|c| Item::Letter(Letter { c, quoted: false })).collect();
    Some(if first <= last {
        (first..=last).map(spell).collect()
    } else {
        (last..=first).rev().map(spell).collect()
    })
}

/// One letter of those that every shell has.
fn letter(text: &str) -> Option<u8> {
    matches!(text.as_bytes(), [one] if one.is_ascii_alphabetic()).then(|| text.as_bytes()[0])
}

/// A whole number without a sign or leading zeros, which would change its spelling.
fn number(text: &str) -> Option<i64> {
    let plain = text == "0" || (!text.starts_with('0') && text.len() <= 9);
    (plain && !text.is_empty() && text.bytes().all(|byte| byte.is_ascii_digit()))
        .then(|| text.parse().ok())?
}

/// All combinations; the rightmost braces change fastest.
fn combine(sequence: &Sequence) -> Option<Vec<Vec<Letter>>> {
    let mut words: Vec<Vec<Letter>> = vec![Vec::new()];
    for item in sequence {
        match item {
            Item::Letter(letter) => words.iter_mut().for_each(|word| word.push(*letter)),
            Item::Choice(alternatives) => {
                let mut endings = Vec::new();
                for alternative in alternatives {
                    endings.extend(combine(alternative)?);
                }
                if words.len() * endings.len() > BRACE_WORDS_MAX {
                    return None;
                }
                words = words
                    .iter()
                    .flat_map(|word| endings.iter().map(|ending| [&word[..], ending].concat()))
                    .collect();
            }
        }
        if words.iter().map(Vec::len).sum::<usize>() > BRACE_CHARS_MAX {
            return None;
        }
    }
    Some(words)
}

fn pieces_of(word: &[Letter]) -> Vec<Piece> {
    word.chunk_by(|a, b| a.quoted == b.quoted)
        .map(|run| {
            let text = run.iter().map(|letter| letter.c).collect();
            if run[0].quoted { Piece::Quoted(text) } else { Piece::Bare(text) }
        })
        .collect()
}
