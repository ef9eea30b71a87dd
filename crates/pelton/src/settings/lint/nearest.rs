//! What was probably meant by a word that nobody knows.

/// The nearest of some words, if one is near: at most a third of the letters differ. Capitals hardly count.
pub(super) fn nearest<'a>(word: &str, words: impl IntoIterator<Item = &'a str>) -> Option<&'a str> {
    let lower = word.to_lowercase();
    let near = words.into_iter().map(|known| (distance(&lower, &known.to_lowercase()), known));
    let (steps, known) = near.min_by_key(|(steps, _)| *steps)?;
    (steps * 3 <= word.chars().count().max(3)).then_some(known)
}

/// ` (did you mean `x`?)`, or nothing.
pub(super) fn suggestion<'a>(word: &str, words: impl IntoIterator<Item = &'a str>) -> String {
    nearest(word, words).map(|known| format!(" (did you mean `{known}`?)")).unwrap_or_default()
}

/// How many letters are to be put in, taken out, changed or swapped with their neighbour. Words are short: longer ones are far.
fn distance(one: &str, two: &str) -> usize {
    const LETTERS_MAX: usize = 128;
    let (one, two): (Vec<char>, Vec<char>) = (one.chars().collect(), two.chars().collect());
    if one.len().max(two.len()) > LETTERS_MAX {
        return usize::MAX / 4;
    }
    let mut rows = vec![vec![0; two.len() + 1]; one.len() + 1];
    for i in 0..=one.len() {
        for j in 0..=two.len() {
            rows[i][j] = match (i, j) {
                (0, other) | (other, 0) => other,
                _ => {
                    let changed = rows[i - 1][j - 1] + usize::from(one[i - 1] != two[j - 1]);
                    let least = changed.min(rows[i - 1][j] + 1).min(rows[i][j - 1] + 1);
                    let swapped = i > 1 && j > 1 && one[i - 1] == two[j - 2] && one[i - 2] == two[j - 1];
                    if swapped { least.min(rows[i - 2][j - 2] + 1) } else { least }
                }
            };
        }
    }
    rows[one.len()][two.len()]
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_slip_is_recognised_and_another_word_is_not() {
        let words = ["model", "permissions", "hooks", "Bash", "Grep"];
        for (word, expected) in [
            ("modle", Some("model")),
            ("permission", Some("permissions")),
            ("Permissions", Some("permissions")),
            ("bash", Some("Bash")),
            ("Greb", Some("Grep")),
            ("colour", None),
            ("", None),
        ] {
            assert_eq!(nearest(word, words), expected, "{word}");
        }
        assert_eq!(nearest(&"x".repeat(10_000), words), None);
    }
}
