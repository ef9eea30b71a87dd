//! The web: pages, asked for hop by hop at addresses that were judged before, read as Markdown, kept for a while.
//!
//! Start at [`Web::page`].

mod body; // what the bytes of a page are
mod cache; // pages that were read lately
mod entities; // of HTML: pure
mod hops; // from an address to an answer
mod html; // tags and texts: pure
mod markdown; // a page as it is read: pure
mod table; // rows of a page: pure

use std::sync::atomic::{AtomicU32, Ordering};
use std::sync::{Arc, Mutex, PoisonError};

use pelton_model::Transport;
use url::Url;

use self::body::Content;
use self::cache::Cache;
use self::hops::Arrived;
use super::tool::ToolCx;
use crate::permission::Permissions;

/// The road to the web. All clones share what they keep.
#[derive(Clone)]
pub(crate) struct Web {
    transport: Arc<dyn Transport>,
    permissions: Permissions,
    cache: Arc<Mutex<Cache>>,
    /// How often it was searched.
    searches: Arc<AtomicU32>,
}

/// What an address answered.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Page {
    /// Where it was found in the end.
    pub url: String,
    /// The HTTP status.
    pub code: u16,
    /// Bytes that came.
    pub bytes: usize,
    /// What it is.
    pub said: Said,
}

/// What a page is.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Said {
    /// Words.
    Text {
        /// What the page calls itself.
        title: String,
        /// Markdown, or the text as it came.
        text: Arc<str>,
        /// There was more than is read.
        is_cut: bool,
    },
    /// Something for programs.
    Binary {
        /// What the server calls it.
        media_type: String,
        /// The bytes. Fewer than there were if it is cut.
        content: Vec<u8>,
        is_cut: bool,
    },
    /// It is at another host: that is for whoever asked to decide.
    Elsewhere(String),
}

impl Web {
    pub fn new(transport: Arc<dyn Transport>, permissions: Permissions) -> Self {
        Self { transport, permissions, cache: Arc::default(), searches: Arc::default() }
    }

    /// The same road for an agent with rights of its own.
    pub fn with(&self, permissions: Permissions) -> Self {
        Self { permissions, ..self.clone() }
    }

    /// Counts one more search, if there may be one. Fails with how many there may be.
    pub fn count_search(&self, most: u32) -> Result<(), u32> {
        let more = |searches| (searches < most).then_some(searches + 1);
        self.searches.fetch_update(Ordering::Relaxed, Ordering::Relaxed, more).map(drop).map_err(|_| most)
    }

    /// Asks for a page, unless it was read lately. `tool` is whose rules name hosts.
    pub async fn page(&self, tool: &str, url: &Url, cx: &ToolCx) -> Result<Page, String> {
        let mut key = url.clone();
        key.set_fragment(None);
        let now = cx.world.monotonic();
        if let Some(page) = self.cache().find(&key, now, cx.limits.web_page_kept) {
            return Ok(page);
        }
        let page = match self.follow(tool, key.clone(), cx).await? {
            Arrived::Elsewhere { code, to, from } => {
                Page { url: from.into(), code, bytes: 0, said: Said::Elsewhere(to) }
            }
            Arrived::There { url, code, body } => {
                let bytes = body.content.len();
                // A large page takes a while to read.
                let base = url.clone();
                let read = tokio::task::spawn_blocking(move || body::read(body, &base));
                let content = read.await.map_err(|error| format!("the page cannot be read: {error}"))?;
                let said = match content {
                    Content::Text { title, text, is_cut } => Said::Text { title, text: text.into(), is_cut },
                    Content::Binary { media_type, content, is_cut } => {
                        Said::Binary { media_type, content, is_cut }
                    }
                };
                Page { url: url.into(), code, bytes, said }
            }
        };
        if (200..300).contains(&page.code) && matches!(page.said, Said::Text { .. }) {
            self.cache().keep(key, &page, now);
        }
        Ok(page)
    }

    fn cache(&self) -> std::sync::MutexGuard<'_, Cache> {
        self.cache.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// An address as it is asked for: the one form that all its spellings have; or why it cannot be asked.
pub(crate) fn address(text: &str) -> Result<Url, String> {
    let text = text.trim();
    if text.len() > crate::limits::WEB_URL_CHARS_MAX {
        return Err(format!("it has more than {} characters", crate::limits::WEB_URL_CHARS_MAX));
    }
    let url = Url::parse(text)
        .map_err(|error| format!("it is no address ({error}): write all of it, https:// included"))?;
    if !matches!(url.scheme(), "http" | "https") {
        return Err(format!("{}: cannot be fetched, only http and https addresses can", url.scheme()));
    }
    if !url.username().is_empty() || url.password().is_some() {
        return Err("it carries a user name or a password, and those are not sent".to_owned());
    }
    if url.host_str().is_none_or(str::is_empty) {
        return Err("it names no host".to_owned());
    }
    Ok(url)
}

#[cfg(test)]
mod tests;
