//! Pages that were read lately: a few, for a while. Pure.

use std::collections::VecDeque;
use std::time::Duration;

use url::Url;

use super::{Page, Said};
use crate::limits::{WEB_KEPT_BYTES_MAX, WEB_PAGES_KEPT_MAX};

/// Pages by the address they were asked for, the oldest first.
#[derive(Debug, Default)]
pub(super) struct Cache(VecDeque<(Url, Duration, Page)>);

impl Cache {
    /// The page, if it was read less than `kept` ago.
    pub fn find(&mut self, url: &Url, now: Duration, kept: Duration) -> Option<Page> {
        self.0.retain(|(_, read_at, _)| now.saturating_sub(*read_at) < kept);
        self.0.iter().find(|(known, _, _)| known == url).map(|(_, _, page)| page.clone())
    }

    /// Keeps a page. The oldest make room for it.
    pub fn keep(&mut self, url: Url, page: &Page, now: Duration) {
        self.0.retain(|(known, _, _)| *known != url);
        self.0.push_back((url, now, page.clone()));
        while self.0.len() > WEB_PAGES_KEPT_MAX || self.bytes() > WEB_KEPT_BYTES_MAX {
            self.0.pop_front();
        }
    }

    fn bytes(&self) -> usize {
        let bytes = |page: &Page| match &page.said {
            Said::Text { text, .. } => text.len(),
            Said::Binary { content, .. } => content.len(),
            Said::Elsewhere(_) => 0,
        };
        self.0.iter().map(|(_, _, page)| bytes(page)).sum()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn pages_are_kept_for_a_while_and_not_without_end() {
        let url = |n: usize| Url::parse(&format!("https://e.org/{n}")).unwrap();
        let page = |text: String| Page {
            url: "u".to_owned(),
            code: 200,
            bytes: 1,
            said: Said::Text { title: String::new(), text: text.into(), is_cut: false },
        };
        let (mut cache, kept) = (Cache::default(), Duration::from_secs(900));
        let at = Duration::from_secs;
        cache.keep(url(1), &page("one".to_owned()), at(10));
        assert_eq!(cache.find(&url(1), at(909), kept), Some(page("one".to_owned())));
        assert_eq!(cache.find(&url(2), at(20), kept), None);
        assert_eq!(cache.find(&url(1), at(910), kept), None, "too old");
        assert_eq!(
            cache.find(&url(1), at(11), Duration::ZERO),
            None,
            "nothing is kept where nothing should be"
        );
        for n in 0..200 {
            cache.keep(url(n), &page("x".to_owned()), at(20));
        }
        assert_eq!(cache.0.len(), WEB_PAGES_KEPT_MAX);
        cache.keep(url(1000), &page("x".repeat(WEB_KEPT_BYTES_MAX)), at(21));
        assert_eq!(cache.0.len(), 1);
        cache.keep(url(1001), &page("x".repeat(WEB_KEPT_BYTES_MAX + 1)), at(21));
        assert!(cache.0.is_empty(), "too large to be kept");
    }
}
