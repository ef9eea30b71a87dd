//! Some pages of a document, as a document of their own: the pages, and whatever they refer to. Pure.

use std::collections::{BTreeMap, HashSet};
use std::ops::RangeInclusive;

use super::objects::Objects;
use super::tokens::{entries, entry, references};
use crate::limits::{PDF_BYTES_MAX, PDF_OBJECTS_MAX};

/// What a page may have from those above it.
const INHERITED: [&[u8]; 4] = [b"Resources", b"MediaBox", b"CropBox", b"Rotate"];

/// A document taken apart.
pub(super) struct Document<'a> {
    objects: Objects<'a>,
    pages: Vec<Page>,
    /// Everything that holds pages together.
    tree: HashSet<u32>,
}

struct Page {
    number: u32,
    inherited: Inherited,
}

/// From whom a page has what it may have from those above it.
type Inherited = [Option<u32>; INHERITED.len()];

impl<'a> Document<'a> {
    /// Fails with why it cannot be taken apart; reads on after the file's name.
    pub fn of(bytes: &'a [u8]) -> Result<Self, String> {
        let objects = Objects::of(bytes);
        if objects.is_encrypted {
            return Err("is an encrypted PDF, whose pages cannot be taken out".to_owned());
        }
        let damaged = || "is a PDF whose pages cannot be found: it is damaged".to_owned();
        let root = objects.root.and_then(|root| objects.get(root)).ok_or_else(damaged)?;
        let top = entry(&root.value, b"Pages").map(references).and_then(|numbers| numbers.first().copied());
        let mut pages = Vec::new();
        let mut tree: HashSet<u32> = objects.root.into_iter().collect();
        // The last is the next: those below a node come in their order.
        let mut next: Vec<(u32, Inherited)> = vec![(top.ok_or_else(damaged)?, Inherited::default())];
        while let Some((number, mut inherited)) = next.pop() {
            let Some(node) = objects.get(number) else { continue };
            if !tree.insert(number) || tree.len() > PDF_OBJECTS_MAX {
                continue;
            }
            let Some(kids) = entry(&node.value, b"Kids").and_then(|kids| objects.resolved(kids)) else {
                pages.push(Page { number, inherited });
                continue;
            };
            for (from, key) in inherited.iter_mut().zip(INHERITED) {
                if entry(&node.value, key).is_some() {
                    *from = Some(number);
                }
            }
            next.extend(references(kids).into_iter().rev().map(|kid| (kid, inherited)));
        }
        if pages.is_empty() { Err(damaged()) } else { Ok(Self { objects, pages, tree }) }
    }

    pub fn pages(&self) -> usize {
        self.pages.len()
    }

    /// A document of these pages alone, counted from 1.
    pub fn part(&self, wanted: &RangeInclusive<usize>) -> Result<Vec<u8>, String> {
        let first_new = self.objects.next_number();
        let (catalogue, top) = (first_new, first_new.saturating_add(1));
        let shown: Vec<&Page> = self
            .pages
            .iter()
            .enumerate()
            .filter(|(at, _)| wanted.contains(&(at + 1)))
            .map(|(_, page)| page)
            .collect();
        let mut written = Writer::default();
        let mut next = Vec::new();
        for page in &shown {
            let Some(object) = self.objects.get(page.number) else { continue };
            let mut dict = format!("<</Type/Page/Parent {top} 0 R").into_bytes();
            let own = entries(&object.value);
            let own = own
                .into_iter()
                .filter(|(key, _)| !matches!(*key, b"Type" | b"Parent" | b"B" | b"StructParents"));
            let own: Vec<(&[u8], &[u8])> = own.collect();
            let inherited = page
                .inherited
                .iter()
                .zip(INHERITED)
                .filter_map(|(from, key)| Some((key, entry(&self.objects.get((*from)?)?.value, key)?)));
            let missing = inherited.filter(|(key, _)| !own.iter().any(|(known, _)| known == key));
            for (key, value) in own.iter().copied().chain(missing) {
                dict.push(b'/');
                dict.extend_from_slice(key);
                dict.push(b' ');
                dict.extend_from_slice(value);
            }
            dict.extend_from_slice(b">>");
            next.extend(references(&dict));
            written.object(page.number, object.generation, &dict, None)?;
        }
        // Whatever they refer to, but not other pages: those are missing then, which is nothing.
        let mut taken: HashSet<u32> = shown.iter().map(|page| page.number).collect();
        while let Some(number) = next.pop() {
            if self.tree.contains(&number) || !taken.insert(number) {
                continue;
            }
            if let Some(object) = self.objects.get(number) {
                next.extend(references(&object.value));
                written.object(number, object.generation, &object.value, object.stream)?;
            }
        }
        let kids: Vec<String> = shown
            .iter()
            .filter_map(|page| {
                Some(format!("{} {} R", page.number, self.objects.get(page.number)?.generation))
            })
            .collect();
        let pages = format!("<</Type/Pages/Count {}/Kids[{}]>>", kids.len(), kids.join(" "));
        written.object(top, 0, pages.as_bytes(), None)?;
        written.object(catalogue, 0, format!("<</Type/Catalog/Pages {top} 0 R>>").as_bytes(), None)?;
        Ok(written.finish(catalogue))
    }
}

/// A document being written.
struct Writer {
    bytes: Vec<u8>,
    /// Where each object begins, and its generation.
    places: BTreeMap<u32, (usize, u64)>,
}

impl Default for Writer {
    fn default() -> Self {
        // The second line says that this is not only text.
        Self { bytes: b"%PDF-1.7\n%\xe2\xe3\xcf\xd3\n".to_vec(), places: BTreeMap::new() }
    }
}

impl Writer {
    fn object(
        &mut self,
        number: u32,
        generation: u64,
        value: &[u8],
        stream: Option<&[u8]>,
    ) -> Result<(), String> {
        let more = value.len() + stream.map_or(0, <[u8]>::len);
        if (self.bytes.len() + more) as u64 > PDF_BYTES_MAX {
            let mb = PDF_BYTES_MAX / 1_000_000;
            return Err(format!("has more than {mb} MB on these pages: ask for fewer"));
        }
        self.places.insert(number, (self.bytes.len(), generation));
        self.bytes.extend_from_slice(format!("{number} {generation} obj\n").as_bytes());
        self.bytes.extend_from_slice(value);
        if let Some(stream) = stream {
            self.bytes.extend_from_slice(b"\nstream\n");
            self.bytes.extend_from_slice(stream);
            self.bytes.extend_from_slice(b"\nendstream");
        }
        self.bytes.extend_from_slice(b"\nendobj\n");
        Ok(())
    }

    fn finish(mut self, root: u32) -> Vec<u8> {
        let at = self.bytes.len();
        let mut table = "xref\n0 1\n0000000000 65535 f \n".to_owned();
        for (number, (place, generation)) in &self.places {
            table += &format!("{number} 1\n{place:010} {generation:05} n \n");
        }
        let size = self.places.keys().max().map_or(1, |last| last.saturating_add(1));
        table += &format!("trailer\n<</Size {size}/Root {root} 0 R>>\nstartxref\n{at}\n%%EOF\n");
        self.bytes.extend_from_slice(table.as_bytes());
        self.bytes
    }
}
