//! Paths, and those of them that fit what was typed, the best first. A key more looks only at what fitted before it; paths that came since are
//! looked at by themselves.

use std::num::NonZero;
use std::ops::Range;
use std::sync::Arc;

use nucleo_matcher::pattern::{AtomKind, CaseMatching, Normalization, Pattern};
use nucleo_matcher::{Config, Matcher, Utf32Str};

use crate::limits::{COMPLETION_THREADS_MAX, PATHS_RANKED_MAX};

/// Paths that came together. They never change.
#[derive(Debug, Default)]
pub struct Batch {
    text: String,
    /// Where each ends in the text.
    ends: Vec<u32>,
    /// Which characters each has, so that most need not be looked at.
    masks: Vec<u64>,
    /// How many folders each is in, so that this need not be counted with every key.
    depths: Vec<u8>,
}

impl Batch {
    pub fn add(&mut self, path: &str) {
        self.text.push_str(path);
        self.ends.push(u32::try_from(self.text.len()).unwrap_or(u32::MAX));
        self.masks.push(mask(path));
        self.depths.push(u8::try_from(depth(path)).unwrap_or(u8::MAX));
    }

    pub fn len(&self) -> usize {
        self.ends.len()
    }

    pub fn is_empty(&self) -> bool {
        self.ends.is_empty()
    }

    fn path(&self, at: usize) -> &str {
        let start = at.checked_sub(1).map_or(0, |before| self.ends[before] as usize);
        &self.text[start..self.ends[at] as usize]
    }
}

/// A path that fits.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Found {
    pub path: String,
    /// Which of its characters fit what was typed.
    pub fits: Vec<u32>,
}

/// A search that goes on from key to key.
#[derive(Debug, Default)]
pub struct Search {
    batches: Vec<Arc<Batch>>,
    /// The number of each batch's first path.
    firsts: Vec<u32>,
    paths: u32,
    typed: String,
    /// Everything that fits, in the order of the paths.
    fitting: Vec<Fit>,
}

/// How well a path fits: the higher the better.
type Score = u32;

/// A path that fits, by its number. The better is the greater; among equals it is the one that was found first. In one number, because there can
/// be as many as there are paths.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
struct Fit(u64);

impl Fit {
    fn of(path: u32, score: Score) -> Self {
        Self(u64::from(score) << 32 | u64::from(u32::MAX - path))
    }

    fn path(self) -> u32 {
        u32::MAX - (self.0 & u64::from(u32::MAX)) as u32
    }

    fn score(self) -> Score {
        (self.0 >> 32) as Score
    }
}

impl Search {
    /// Paths that were found since.
    pub fn add(&mut self, batch: Arc<Batch>) {
        let first = self.paths;
        self.firsts.push(first);
        self.paths = first.saturating_add(u32::try_from(batch.len()).unwrap_or(u32::MAX));
        self.batches.push(batch);
        let needle = Needle::of(&self.typed);
        let fitting = self.look(&needle, &Where::Paths(first..self.paths));
        self.fitting.extend(fitting);
    }

    pub fn batches(&self) -> usize {
        self.batches.len()
    }

    /// The best of what fits.
    pub fn typed(&mut self, typed: &str, best: usize) -> Vec<Found> {
        if typed != self.typed {
            let needle = Needle::of(typed);
            // What does not fit the beginning does not fit the whole.
            let narrows = typed.starts_with(&self.typed) && needle.narrows(&Needle::of(&self.typed));
            self.fitting = if narrows {
                let before = std::mem::take(&mut self.fitting);
                self.look(&needle, &Where::Among(&before))
            } else {
                self.look(&needle, &Where::Paths(0..self.paths))
            };
            typed.clone_into(&mut self.typed);
        }
        self.best(best)
    }

    fn best(&self, best: usize) -> Vec<Found> {
        let mut ranked = self.fitting.clone();
        if let Some(worst) = ranked.len().checked_sub(PATHS_RANKED_MAX).filter(|worst| *worst > 0) {
            ranked.select_nth_unstable(worst);
            ranked.drain(..worst);
        }
        let needle = Needle::of(&self.typed);
        let mut matcher = Matcher::new(Config::DEFAULT.match_paths());
        let mut ranked: Vec<(Score, &str)> = ranked
            .into_iter()
            .map(|fit| {
                let path = self.path(fit.path());
                let score = needle.closely(path, &mut matcher).unwrap_or(fit.score());
                // A name that fits by itself is what people mean most often.
                (score + needle.name_bonus(path, &mut matcher), path)
            })
            .collect();
        ranked.sort_by(|(one, a), (other, b)| {
            other.cmp(one).then(depth(a).cmp(&depth(b))).then(a.len().cmp(&b.len())).then(a.cmp(b))
        });
        ranked.truncate(best);
        ranked.into_iter().map(|(_, path)| needle.found(path, &mut matcher)).collect()
    }

    fn path(&self, number: u32) -> &str {
        let at = self.firsts.partition_point(|first| *first <= number).saturating_sub(1);
        self.batches[at].path((number - self.firsts[at]) as usize)
    }

    /// Those that fit. Many are looked through by several threads at once.
    fn look(&self, needle: &Needle, among: &Where<'_>) -> Vec<Fit> {
        const ALONE_MAX: usize = 20_000;
        let threads =
            std::thread::available_parallelism().map_or(1, NonZero::get).min(COMPLETION_THREADS_MAX);
        if among.len() <= ALONE_MAX || threads == 1 {
            return self.look_alone(needle, among);
        }
        let part = among.len().div_ceil(threads);
        std::thread::scope(|scope| {
            let parts: Vec<_> = (0..threads).map(|at| among.part(at * part..(at + 1) * part)).collect();
            let running: Vec<_> =
                parts.into_iter().map(|part| scope.spawn(move || self.look_alone(needle, &part))).collect();
            running.into_iter().flat_map(|thread| thread.join().unwrap_or_default()).collect()
        })
    }

    fn look_alone(&self, needle: &Needle, among: &Where<'_>) -> Vec<Fit> {
        let mut matcher = Matcher::new(Config::DEFAULT.match_paths());
        let mut chars = Vec::new();
        let mut fitting = Vec::new();
        // Numbers go up, so the batch is the same or a later one.
        let mut batch = 0;
        among.each(|number| {
            while self.firsts.get(batch + 1).is_some_and(|first| *first <= number) {
                batch += 1;
            }
            let (paths, at) = (&self.batches[batch], (number - self.firsts[batch]) as usize);
            if needle.mask & !paths.masks[at] != 0 {
                return;
            }
            if let Some(score) = needle.score(paths.path(at), paths.depths[at], &mut matcher, &mut chars) {
                fitting.push(Fit::of(number, score));
            }
        });
        fitting
    }
}

/// What is looked through.
#[derive(Debug, Clone)]
enum Where<'a> {
    Paths(Range<u32>),
    Among(&'a [Fit]),
}

impl<'a> Where<'a> {
    fn len(&self) -> usize {
        match self {
            Self::Paths(range) => range.len(),
            Self::Among(fits) => fits.len(),
        }
    }

    fn part(&self, range: Range<usize>) -> Where<'a> {
        let (start, end) = (range.start.min(self.len()), range.end.min(self.len()));
        match self {
            // No longer than the range itself, whose ends fit.
            Self::Paths(all) => Where::Paths(all.start + start as u32..all.start + end as u32),
            Self::Among(fits) => Where::Among(&fits[start..end]),
        }
    }

    fn each(&self, look: impl FnMut(u32)) {
        match self {
            Self::Paths(range) => range.clone().for_each(look),
            Self::Among(fits) => fits.iter().map(|fit| fit.path()).for_each(look),
        }
    }
}

/// What was typed, made ready.
struct Needle {
    typed: String,
    mask: u64,
    pattern: Pattern,
    /// Its words and whether their case counts, if all of them are ASCII.
    words: Option<Vec<(String, bool)>>,
    /// The one character, if that is all: nearly everything fits, and where it stands is all there is to say.
    single: Option<u8>,
}

impl Needle {
    fn of(typed: &str) -> Self {
        let solid: String = typed.chars().filter(|c| !c.is_whitespace()).collect();
        let single = match solid.as_bytes() {
            [byte] if byte.is_ascii_lowercase() || byte.is_ascii_digit() => Some(*byte),
            _ => None,
        };
        Self {
            typed: typed.to_owned(),
            // Letters with accents fit those without, so they say nothing about what a path has.
            mask: solid
                .chars()
                .filter(char::is_ascii)
                .map(|c| mask(c.encode_utf8(&mut [0; 4])))
                .fold(0, |all, one| all | one),
            pattern: Pattern::new(typed, CaseMatching::Smart, Normalization::Smart, AtomKind::Fuzzy),
            words: (typed.is_ascii() && !typed.contains('\\')).then(|| {
                let exact = |word: &str| word.bytes().any(|byte| byte.is_ascii_uppercase());
                typed.split_whitespace().map(|word| (word.to_owned(), exact(word))).collect()
            }),
            single,
        }
    }

    /// Whether what fits this fits the shorter one, too. A capital makes it particular about capitals, and words after a space are
    /// looked for anywhere: both only take away.
    fn narrows(&self, shorter: &Self) -> bool {
        // A backslash changes what a space after it means.
        !shorter.typed.ends_with('\\')
    }

    fn score(&self, path: &str, depth: u8, matcher: &mut Matcher, chars: &mut Vec<char>) -> Option<Score> {
        let near = u32::from(u8::MAX - depth);
        if self.typed.is_empty() {
            // Nothing typed: what is near comes first.
            return Some(near);
        }
        let (Some(words), true) = (&self.words, path.is_ascii()) else {
            return self.pattern.score(Utf32Str::new(path, chars), matcher);
        };
        if let Some(single) = self.single {
            return single_score(path.as_bytes(), single).map(|score| score + near);
        }
        // Where the letters could fit in several ways the last is taken; of the best it is looked at more closely later.
        let fits = words.iter().try_fold(0, |sum, (word, exact)| {
            Some(sum + rough_score(path.as_bytes(), word.as_bytes(), *exact)?)
        });
        fits.map(|score| score + near / 8)
    }

    /// How well it fits in the best of all ways.
    fn closely(&self, path: &str, matcher: &mut Matcher) -> Option<Score> {
        if self.typed.is_empty() || self.single.is_some() {
            return None;
        }
        self.pattern.score(Utf32Str::new(path, &mut Vec::new()), matcher)
    }

    fn name_bonus(&self, path: &str, matcher: &mut Matcher) -> Score {
        if self.typed.is_empty() || self.single.is_some() || self.typed.contains('/') {
            return 0;
        }
        let name = name(path).trim_end_matches('/');
        let mut chars = Vec::new();
        let fits = self.pattern.score(Utf32Str::new(name, &mut chars), matcher);
        // The name itself, its beginning, or somewhere in it.
        let stem = name.rsplit_once('.').map_or(name, |(stem, _)| stem);
        let same = |text: &str| text.eq_ignore_ascii_case(&self.typed);
        fits.map_or(0, |score| {
            score / 2
                + if same(name) {
                    60
                } else if same(stem) {
                    40
                } else {
                    10
                }
        })
    }

    fn found(&self, path: &str, matcher: &mut Matcher) -> Found {
        let mut fits = Vec::new();
        let mut chars = Vec::new();
        self.pattern.indices(Utf32Str::new(path, &mut chars), matcher, &mut fits);
        fits.sort_unstable();
        fits.dedup();
        Found { path: path.to_owned(), fits }
    }
}

/// How well a word fits, roughly: each of its letters, from the last one back, where it stands last. There are as many paths to
/// look at as there are files, so this is all that is done for each.
fn rough_score(path: &[u8], word: &[u8], exact: bool) -> Option<Score> {
    const FITS: Score = 16;
    const BEGINS: Score = 12;
    const FOLLOWS: Score = 10;
    let mut letters = word.iter().rev();
    let mut wanted = *letters.next()?;
    let (mut score, mut before) = (0, usize::MAX);
    for at in (0..path.len()).rev() {
        let byte = path[at];
        if byte != wanted && (exact || byte.to_ascii_lowercase() != wanted) {
            continue;
        }
        let begins = at == 0 || !path[at - 1].is_ascii_alphanumeric();
        score += FITS + if begins { BEGINS } else { 0 } + if before == at + 1 { FOLLOWS } else { 0 };
        before = at;
        match letters.next() {
            Some(letter) => wanted = *letter,
            None => return Some(score),
        }
    }
    None
}

/// How well one character fits: the name begins with it, a word does, or it is somewhere.
fn single_score(path: &[u8], single: u8) -> Option<Score> {
    let mut score = None;
    let mut before = b'/';
    for (at, byte) in path.iter().copied().enumerate() {
        let begins = if before == b'/' {
            2_000
        } else if before.is_ascii_alphanumeric() {
            0
        } else {
            1_000
        };
        if byte == b'/' && at + 1 < path.len() {
            // Only the last part is the name.
            score = score.map(|score: Score| score.min(1_500));
        } else if byte.to_ascii_lowercase() == single {
            score = score.max(Some(1_000 + begins));
        }
        before = byte;
    }
    score
}

/// The last part of a path; of a folder with its slash.
fn name(path: &str) -> &str {
    let whole = path.strip_suffix('/').unwrap_or(path);
    whole.rfind('/').map_or(path, |slash| &path[slash + 1..])
}

fn depth(path: &str) -> usize {
    path.trim_end_matches('/').bytes().filter(|byte| *byte == b'/').count()
}

/// A bit for each character a text has, whatever its case. Any letter may be what another with an accent is taken for.
fn mask(text: &str) -> u64 {
    let bit = |byte: u8| match byte {
        b'a'..=b'z' => u64::from(byte - b'a'),
        b'A'..=b'Z' => u64::from(byte - b'A'),
        b'0'..=b'9' => u64::from(26 + byte - b'0'),
        b'/' => 36,
        b'.' => 37,
        b'_' => 38,
        b'-' => 39,
        _ => 40,
    };
    if text.is_ascii() { text.bytes().fold(0, |mask, byte| mask | 1 << bit(byte)) } else { u64::MAX }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn search(paths: &[&str]) -> Search {
        let mut search = Search::default();
        for some in paths.chunks(3) {
            let mut batch = Batch::default();
            some.iter().for_each(|path| batch.add(path));
            search.add(Arc::new(batch));
        }
        search
    }

    fn best(search: &mut Search, typed: &str) -> Vec<String> {
        search.typed(typed, 5).into_iter().map(|found| found.path).collect()
    }

    const PATHS: &[&str] = &[
        "src/",
        "src/main.rs",
        "src/lib.rs",
        "src/domain/mail.rs",
        "src/domain/",
        "README.md",
        "docs/maintaining.md",
        "tests/main_test.rs",
        "Cargo.toml",
        "target-notes.txt",
        "src/café.rs",
    ];

    #[test]
    fn the_best_come_first() {
        for (typed, first) in [
            ("main", "src/main.rs"),
            ("main.rs", "src/main.rs"),
            ("lib", "src/lib.rs"),
            ("sml", "src/domain/mail.rs"),
            ("readme", "README.md"),
            ("README", "README.md"),
            ("doc", "docs/maintaining.md"),
            ("src/d", "src/domain/"),
            ("cafe", "src/café.rs"),
            ("café", "src/café.rs"),
            ("toml", "Cargo.toml"),
            ("c", "Cargo.toml"),
            ("", "src/"),
            ("t/main", "tests/main_test.rs"),
        ] {
            let mut search = search(PATHS);
            let found = best(&mut search, typed);
            assert_eq!(found.first().map(String::as_str), Some(first), "{typed}: {found:?}");
        }
        for nothing in ["xyzzy", "mainz", "Readme"] {
            assert_eq!(best(&mut search(PATHS), nothing), Vec::<String>::new(), "{nothing}");
        }
    }

    #[test]
    fn what_fits_is_marked() {
        let found = search(PATHS).typed("mars", 1).remove(0);
        assert_eq!(found.path, "src/main.rs");
        let marked: String =
            found.fits.iter().map(|at| found.path.chars().nth(*at as usize).unwrap()).collect();
        assert_eq!(marked, "mars");
    }

    #[test]
    fn what_comes_later_is_found_too() {
        let mut search = search(PATHS);
        assert_eq!(best(&mut search, "late"), Vec::<String>::new());
        let mut batch = Batch::default();
        batch.add("src/late.rs");
        search.add(Arc::new(batch));
        assert_eq!(best(&mut search, "late"), ["src/late.rs"]);
    }

    proptest! {
        /// Key by key, with paths that come meanwhile, or all at once: the same is found.
        #[test]
        fn going_on_finds_what_starting_anew_does(paths in prop::collection::vec("[a-cA-C/._é ]{1,12}", 0..60), typed in "[a-cA-C/ é\\\\]{0,5}", later in any::<prop::sample::Index>()) {
            let paths: Vec<&str> = paths.iter().map(String::as_str).collect();
            let (now, then) = paths.split_at(later.index(paths.len() + 1));
            let mut step_by_step = search(now);
            for (at, c) in typed.char_indices() {
                step_by_step.typed(&typed[..at + c.len_utf8()], 100);
                if at == 0 {
                    for path in then {
                        let mut batch = Batch::default();
                        batch.add(path);
                        step_by_step.add(Arc::new(batch));
                    }
                }
            }
            if typed.is_empty() {
                for path in then {
                    let mut batch = Batch::default();
                    batch.add(path);
                    step_by_step.add(Arc::new(batch));
                }
            }
            let at_once = search(&paths).typed(&typed, 100);
            prop_assert_eq!(step_by_step.typed(&typed, 100), at_once);
        }
    }
}
