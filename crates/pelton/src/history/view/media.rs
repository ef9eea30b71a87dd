//! Leaving out images and documents: what is left out becomes a note in its place, here and not in the log.

use std::collections::HashSet;
use std::sync::Arc;

use super::super::media::{MediaPlace, Medium, find, without};
use super::super::tokens::Weight;
use super::{View, weight};
use crate::limits::{IMAGE_BYTES_MAX, IMAGE_EDGE_PX_MAX};

/// What was left out.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct MediaLeftOut {
    /// Where it was, to be left out again by whoever reads the conversation from disk.
    pub places: Vec<MediaPlace>,
    /// How many bytes it had.
    pub bytes: usize,
}

impl MediaLeftOut {
    /// Adds what was left out besides.
    pub(crate) fn add(&mut self, mut more: Self) {
        self.places.append(&mut more.places);
        self.bytes += more.bytes;
    }
}

/// A medium among all that is sent.
struct Sent<'a> {
    medium: &'a Medium,
    place: &'a MediaPlace,
    /// As the API counts: the message's place among those sent, and the block's in it.
    message: usize,
    block: usize,
}

impl View {
    /// How many images and documents there are.
    pub(crate) fn media_count(&self) -> usize {
        self.sums.media
    }

    /// How many images and pages of documents there are.
    pub(crate) fn page_count(&self) -> usize {
        self.sums.pages
    }

    /// Leaves out media, oldest first, until only so many images and pages are there.
    pub(crate) fn leave_out_pages_beyond(&mut self, pages_kept: usize) -> MediaLeftOut {
        let mut over = self.page_count().saturating_sub(pages_kept);
        self.leave_out_media(|sent| {
            let goes = over > 0;
            over = over.saturating_sub(sent.medium.pages);
            goes
        })
    }

    /// Leaves out media, oldest first, until about so many bytes are freed.
    pub(crate) fn leave_out_oldest_media(&mut self, bytes: usize) -> MediaLeftOut {
        let mut freed = 0;
        self.leave_out_media(|sent| {
            let goes = freed < bytes;
            freed += sent.medium.bytes;
            goes
        })
    }

    /// Leaves out the medium that an error names: the message's place among those sent, the block's in it, and in a
    /// result, if it is said, the place there.
    pub(crate) fn leave_out_media_at(
        &mut self,
        message: usize,
        block: usize,
        inner: Option<usize>,
    ) -> MediaLeftOut {
        self.leave_out_media(|sent| {
            sent.message == message && sent.block == block && (inner.is_none() || sent.medium.inner == inner)
        })
    }

    /// Leaves out the images that are larger than any that enters through our own door, or unreadable. There are
    /// none unless the conversation was written by somebody else.
    pub(crate) fn leave_out_unfit_media(&mut self) -> MediaLeftOut {
        self.leave_out_media(|sent| {
            let large = |bytes: usize| bytes > IMAGE_BYTES_MAX.div_ceil(3) * 4;
            match sent.medium.size {
                Some(size) => size.edge() > IMAGE_EDGE_PX_MAX || sent.medium.base64_bytes.is_some_and(large),
                None => sent.medium.is_image && sent.medium.base64_bytes.is_some(),
            }
        })
    }

    /// Whether there are images at all.
    pub(crate) fn has_images(&self) -> bool {
        self.sums.images > 0
    }

    /// Whether an image is larger than it may be among many others.
    pub(crate) fn has_large_images(&self) -> bool {
        self.sums.large_images > 0
    }

    /// Leaves out the images that are larger than they may be among many others.
    pub(crate) fn leave_out_large_images(&mut self) -> MediaLeftOut {
        self.leave_out_media(|sent| sent.medium.is_large())
    }

    /// Leaves out again what was left out before.
    pub(crate) fn leave_out_media_of(&mut self, places: &[MediaPlace], by: &str) -> MediaLeftOut {
        let places: HashSet<&MediaPlace> = places.iter().collect();
        self.leave_out_media_by(by, |sent| places.contains(sent.place))
    }

    /// About how many tokens they cost.
    pub(crate) fn media_tokens(&self) -> u64 {
        let with_media = self.parts.iter().filter(|part| part.entry.media > 0);
        let of_media = |weight: Weight| Weight { narrow: 0, wide: 0, ..weight };
        self.size.of(with_media.map(|part| of_media(part.entry.weight)).sum())
    }

    /// Where they are, oldest first.
    pub(crate) fn media_places(&self) -> Vec<MediaPlace> {
        let with_media = self.parts.iter().filter(|part| part.entry.media > 0);
        let places = |part: &super::Part| {
            let entry = Arc::clone(&part.entry);
            find(&part.entry.json).into_iter().filter_map(move |medium| medium.place(&entry))
        };
        with_media.flat_map(places).collect()
    }

    /// How many bytes the media have.
    pub(crate) fn media_bytes(&self) -> usize {
        let with_media = self.parts.iter().filter(|part| part.entry.media > 0);
        with_media.flat_map(|part| find(&part.entry.json)).map(|medium| medium.bytes).sum()
    }

    fn leave_out_media(&mut self, chosen: impl FnMut(Sent<'_>) -> bool) -> MediaLeftOut {
        self.leave_out_media_by("images or documents were left out", chosen)
    }

    /// Goes through all media, oldest first, and leaves out those that are chosen.
    fn leave_out_media_by(&mut self, by: &str, mut chosen: impl FnMut(Sent<'_>) -> bool) -> MediaLeftOut {
        let mut left_out = MediaLeftOut::default();
        let (mut message, mut blocks_before, mut side) = (0, 0, None);
        let mut first_changed = None;
        for (index, part) in self.parts.iter_mut().enumerate() {
            let assistant = part.entry.is_assistant();
            if side.is_some_and(|side| side != assistant) {
                (message, blocks_before) = (message + 1, 0);
            }
            side = Some(assistant);
            if part.entry.media > 0 {
                let mut goes = Vec::new();
                let mut places = Vec::new();
                for medium in find(&part.entry.json) {
                    let Some(place) = medium.place(&part.entry) else { continue };
                    let block = blocks_before + medium.block;
                    if chosen(Sent { medium: &medium, place: &place, message, block }) {
                        goes.push(medium);
                        places.push(place);
                    }
                }
                if !goes.is_empty()
                    && let Some(smaller) = without(&part.entry, &goes)
                {
                    left_out.bytes += goes.iter().map(|medium| medium.bytes).sum::<usize>();
                    left_out.places.append(&mut places);
                    part.entry = Arc::new(smaller);
                    first_changed.get_or_insert(index);
                }
            }
            blocks_before += part.entry.block_count();
        }
        if let Some(first_changed) = first_changed {
            // Thinking is bound to everything before it.
            self.touched(first_changed, by);
            self.leave_out_thinking_from(first_changed, by);
            self.size.changed(weight(&self.parts));
        }
        left_out
    }
}
