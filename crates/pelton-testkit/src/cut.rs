//! Where texts are cut into deltas.

use crate::dice::Dice;
use crate::script::part::Fragments;

/// A natural fragment ends at the first word boundary from here on, in characters.
const NATURAL_CHARS: usize = 16;
/// A natural fragment never gets longer, in characters: base64 and Chinese have no word boundaries.
const NATURAL_CHARS_MAX: usize = 32;
/// Longest random fragment, in characters.
const RANDOM_CHARS_MAX: usize = 12;

/// Cuts a text. The pieces together are the text; none is empty.
pub(crate) fn cut<'a>(text: &'a str, fragments: &Fragments, dice: &mut Dice) -> Vec<&'a str> {
    match fragments {
        Fragments::Natural => natural(text),
        Fragments::Count(count) => {
            let chars = text.chars().count();
            let places = (1..*count).map(|piece| piece * chars / count);
            at_places(text, places)
        }
        Fragments::At(places) => at_places(text, places.iter().copied()),
        Fragments::Random => {
            let mut place = 0;
            let chars = text.chars().count();
            let places = std::iter::from_fn(|| {
                place += dice.roll(RANDOM_CHARS_MAX);
                (place < chars).then_some(place)
            });
            at_places(text, places)
        }
    }
}

/// Cuts before the given characters, in rising order. A place again, or beyond the end, cuts nothing.
fn at_places(text: &str, places: impl Iterator<Item = usize>) -> Vec<&str> {
    let bounds: Vec<usize> = text.char_indices().map(|(byte, _)| byte).collect();
    let mut pieces = Vec::new();
    let mut start = 0;
    for byte in places.map_while(|place| bounds.get(place).copied()) {
        if byte > start {
            pieces.push(&text[start..byte]);
            start = byte;
        }
    }
    if start < text.len() {
        pieces.push(&text[start..]);
    }
    pieces
}

fn natural(text: &str) -> Vec<&str> {
    let mut pieces = Vec::new();
    let mut start = 0;
    let mut chars = 0;
    let mut after_space = false;
    for (byte, char) in text.char_indices() {
        // The space goes with the word before it.
        let boundary = chars >= NATURAL_CHARS && after_space && !char.is_whitespace();
        if boundary || chars >= NATURAL_CHARS_MAX {
            pieces.push(&text[start..byte]);
            start = byte;
            chars = 0;
        }
        chars += 1;
        after_space = char.is_whitespace();
    }
    if start < text.len() {
        pieces.push(&text[start..]);
    }
    pieces
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn check(text: &str, fragments: &Fragments, expected: &[&str]) {
        assert_eq!(cut(text, fragments, &mut Dice::new(7, b"")), expected);
    }

    #[test]
    fn natural_fragments_end_at_words() {
        check(
            "The quick brown fox jumps over the lazy dog",
            &Fragments::Natural,
            &["The quick brown ", "fox jumps over the ", "lazy dog"],
        );
    }

    #[test]
    fn natural_fragments_of_text_without_words_are_bounded() {
        let pieces = "字".repeat(70);
        let cuts = cut(&pieces, &Fragments::Natural, &mut Dice::new(0, b""));
        assert_eq!(cuts.iter().map(|piece| piece.chars().count()).collect::<Vec<_>>(), [32, 32, 6]);
    }

    #[test]
    fn given_places_are_characters_not_bytes() {
        check("äöüß", &Fragments::At(vec![1, 3]), &["ä", "öü", "ß"]);
    }

    #[test]
    fn places_twice_or_beyond_the_end_cut_nothing() {
        check("abc", &Fragments::At(vec![0, 1, 1, 9]), &["a", "bc"]);
    }

    #[test]
    fn a_count_gives_equal_pieces_and_no_empty_ones() {
        check("abcdef", &Fragments::Count(3), &["ab", "cd", "ef"]);
        check("ab", &Fragments::Count(5), &["a", "b"]);
        check("", &Fragments::Count(5), &[]);
    }

    proptest! {
        #[test]
        fn pieces_are_the_text(
            text in "\\PC{0,80}",
            count in 1_usize..9,
            mut places in proptest::collection::vec(0_usize..90, 0..6),
            seed: u64,
        ) {
            places.sort_unstable();
            for fragments in
                [Fragments::Natural, Fragments::Count(count), Fragments::At(places), Fragments::Random]
            {
                let pieces = cut(&text, &fragments, &mut Dice::new(seed, b""));
                prop_assert_eq!(pieces.concat(), text.clone());
                prop_assert!(pieces.iter().all(|piece| !piece.is_empty()));
            }
        }
    }
}
