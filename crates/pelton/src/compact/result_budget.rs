//! C0: which results of one message are too much together. Pure, so that a resumed session decides the same.

/// The results that are replaced by what is shown of them, so that the rest fits: the largest first, of equal ones the
/// first. `chars` are their sizes, `shown_chars` the size of what is left of each. What would hardly become smaller stays.
pub fn too_much(chars: &[usize], chars_max: usize, shown_chars: usize) -> Vec<usize> {
    let mut left: usize = chars.iter().sum();
    let mut largest: Vec<usize> = (0..chars.len()).filter(|index| chars[*index] > 2 * shown_chars).collect();
    largest.sort_by_key(|index| std::cmp::Reverse(chars[*index]));
    let mut replaced = Vec::new();
    for index in largest {
        if left <= chars_max {
            break;
        }
        left -= chars[index] - shown_chars;
        replaced.push(index);
    }
    replaced
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn the_largest_go_first_and_small_ones_stay() {
        assert_eq!(too_much(&[50, 50], 100, 10), [0; 0]);
        assert_eq!(too_much(&[50, 51], 100, 10), [1]);
        assert_eq!(too_much(&[50, 50, 50], 100, 10), [0, 1]);
        assert_eq!(too_much(&[20, 90, 20, 80], 100, 10), [1, 3]);
        assert_eq!(too_much(&[20; 50], 100, 10), [0; 0], "nothing would be gained");
        assert_eq!(too_much(&[], 0, 10), [0; 0]);
    }

    proptest! {
        #[test]
        fn no_more_go_than_must_and_only_larger_ones_than_those_that_stay(
            chars in prop::collection::vec(0usize..500, 0..20),
            chars_max in 0usize..2_000,
            shown in 1usize..50,
        ) {
            let replaced = too_much(&chars, chars_max, shown);
            let after = |replaced: &[usize]| {
                chars.iter().enumerate().map(|(index, chars)| if replaced.contains(&index) { shown } else { *chars }).sum::<usize>()
            };
            let helps = |index: &usize| chars[*index] > 2 * shown;
            prop_assert!(replaced.iter().all(helps));
            let all_that_help: Vec<usize> = (0..chars.len()).filter(helps).collect();
            prop_assert!(after(&replaced) <= chars_max || replaced.len() == all_that_help.len());
            if let Some((_, but_the_last)) = replaced.split_last() {
                prop_assert!(after(but_the_last) > chars_max, "the last one was needed");
            }
            let smallest = replaced.iter().map(|index| chars[*index]).min();
            let stays = |index: &usize| !replaced.contains(index);
            prop_assert!((0..chars.len()).filter(stays).all(|index| smallest.is_none_or(|smallest| chars[index] <= smallest)));
        }
    }
}
