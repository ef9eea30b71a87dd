//! What hooks that are addresses on the web must keep to, wherever they come from.

/// Which addresses hooks may be, and which variables they may be told in headers. What nobody bounds is not bounded; an
/// empty list allows nothing.
///
/// ```
/// use pelton::hooks::HttpHookTerms;
///
/// let mut terms = HttpHookTerms::default();
/// assert!(terms.allow("https://anywhere.example/"));
/// terms.urls = Some(vec!["https://*.hooks.example/*".to_owned()]);
/// assert!(terms.allow("https://ci.hooks.example/told?by=pelton"));
/// assert!(!terms.allow("https://elsewhere.example/.hooks.example/"));
/// ```
#[derive(Debug, Clone, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct HttpHookTerms {
    /// Addresses, with stars for what may differ. A star in front of the path stays within the name of the machine.
    pub urls: Option<Vec<String>>,
    /// Names of variables.
    pub variables: Option<Vec<String>>,
}

impl HttpHookTerms {
    /// Whether a hook may be at this address.
    pub fn allow(&self, url: &str) -> bool {
        self.urls.as_ref().is_none_or(|patterns| patterns.iter().any(|pattern| matches(pattern, url)))
    }

    /// Those of a hook's variables that it may have.
    pub(super) fn known(&self, wanted: &[String]) -> Vec<String> {
        let may = |name: &&String| self.variables.as_ref().is_none_or(|names| names.contains(name));
        wanted.iter().filter(may).cloned().collect()
    }

    /// Both together: lists add up.
    pub(crate) fn over(self, lower: Self) -> Self {
        let sum = |one: Option<Vec<String>>, other: Option<Vec<String>>| match (one, other) {
            (Some(mut all), Some(more)) => {
                all.extend(more);
                Some(all)
            }
            (one, other) => one.or(other),
        };
        Self { urls: sum(lower.urls, self.urls), variables: sum(lower.variables, self.variables) }
    }
}

/// Scheme and machine are compared by themselves: nothing behind them can pass for them.
fn matches(pattern: &str, url: &str) -> bool {
    let ((pattern_place, pattern_path), (place, path)) = (split(pattern), split(url));
    // A pattern without a path means all of a machine.
    let path_fits = pattern_path.is_empty() || fits(pattern_path.as_bytes(), path.as_bytes());
    !place.contains('@')
        && path_fits
        && fits(pattern_place.to_ascii_lowercase().as_bytes(), place.to_ascii_lowercase().as_bytes())
}

/// `https://machine:port`, and the rest.
fn split(url: &str) -> (&str, &str) {
    let from = url.find("://").map_or(0, |at| at + 3);
    let end = url[from..].find(['/', '?', '#', '\\']).map_or(url.len(), |at| from + at);
    url.split_at(end)
}

fn fits(pattern: &[u8], text: &[u8]) -> bool {
    let (mut at, mut seen) = (0, 0);
    // The last star, and how far it reached: more stars need no more memory.
    let mut star: Option<(usize, usize)> = None;
    while seen < text.len() {
        if pattern.get(at) == Some(&b'*') {
            star = Some((at, seen));
            at += 1;
        } else if pattern.get(at) == Some(&text[seen]) {
            (at, seen) = (at + 1, seen + 1);
        } else if let Some((stood, reached)) = star {
            (at, seen) = (stood + 1, reached + 1);
            star = Some((stood, reached + 1));
        } else {
            return false;
        }
    }
    pattern[at..].iter().all(|left| *left == b'*')
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn nothing_passes_for_another_machine() {
        for (pattern, url, expected) in [
            ("https://a.example/*", "https://a.example/x/y?z", true),
            ("https://a.example", "https://A.example/x", true),
            ("https://a.example/told", "https://a.example/told", true),
            ("https://a.example/told", "https://a.example/told/more", false),
            ("https://*.example/*", "https://b.a.example/", true),
            ("*", "https://b.example/x", true),
            ("http://127.0.0.1:*/*", "http://127.0.0.1:8080/x", true),
            ("https://a.example/*", "http://a.example/", false),
            ("https://a.example*", "https://a.example.evil/", true), // whoever writes it means it
            ("https://a.example/*", "https://a.example.evil/", false),
            ("https://a.example/*", "https://a.example@evil/", false),
            ("https://*.example/*", "https://evil/.example/", false),
            ("https://*.example/*", "https://evil?.example/", false),
            ("https://*.example/*", "https://evil#.example/", false),
            ("https://*.example/*", "https://evil\\.example/", false),
            ("*", "https://user:word@b.example/x", false),
        ] {
            assert_eq!(matches(pattern, url), expected, "{pattern} {url}");
        }
        let none = HttpHookTerms { urls: Some(Vec::new()), variables: Some(vec!["A".to_owned()]) };
        assert!(!none.allow("https://a.example/"));
        assert_eq!(none.known(&["A".to_owned(), "B".to_owned()]), ["A"]);
    }
}
