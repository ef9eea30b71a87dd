//! What this server has issued: signatures of thinking blocks, and how a replayed block is recognised.
//!
//! A signature carries what it was made for (model, text, everything before it, the thinking block before it) and a
//! keyed hash over that. So the server needs no memory: a mock that was killed and started again with the same seed
//! still knows its own blocks.
//!
//! What a block is bound to follows the API: everything before it except other thinking blocks, and separately the
//! thinking block right before it. Removing the oldest thinking blocks is therefore fine, a gap in the middle is not.

use crate::base64;
use crate::catalogue;
use crate::prompt::{self, Body, Part, Section};
use serde_json::Value;
use std::collections::BTreeSet;
use std::hash::{DefaultHasher, Hasher};

/// Makes and verifies the signatures of thinking blocks. The same seed verifies the same signatures.
#[derive(Debug, Clone, Default)]
pub struct Issued {
    seed: u64,
    block_types: BTreeSet<String>,
}

impl Issued {
    /// A signer whose key follows from `seed`.
    pub fn new(seed: u64) -> Self {
        Self { seed, block_types: BTreeSet::new() }
    }

    /// Accepts blocks of this type when a client sends them back: the server is about to issue one.
    pub fn allow_block_type(&mut self, kind: &str) {
        self.block_types.insert(kind.to_owned());
    }

    /// The signature of a thinking block that answers `request`, after `blocks_before` of the same reply.
    ///
    /// `thinking` is the text as the client gets it; with `display: omitted` that is the empty text.
    pub fn sign(&self, request: &Value, blocks_before: &[Value], model: &str, thinking: &str) -> String {
        self.seal(Self::birth(request, blocks_before, model, prompt::hash_text(thinking)))
    }

    /// The `data` of a redacted thinking block: a signature like any other, made for `data` as its text.
    pub fn redact(&self, request: &Value, blocks_before: &[Value], model: &str, data: &str) -> String {
        self.seal(Self::birth(request, blocks_before, model, prompt::hash_text(data)))
    }

    pub(crate) fn allows_block_type(&self, kind: &str) -> bool {
        self.block_types.contains(kind)
    }

    /// What a signature was made for, or `None` when this server did not make it.
    pub(crate) fn open(&self, signature: &str) -> Option<Birth> {
        let bytes = base64::decode(signature)?;
        let body = bytes.strip_prefix(PREFIX)?;
        let (fields, tag) = body.split_at_checked(FIELD_BYTES * FIELDS)?;
        if tag != self.tag(fields) {
            return None;
        }
        let mut fields = fields
            .chunks_exact(FIELD_BYTES)
            .map(|field| field.try_into().map(u64::from_be_bytes).unwrap_or_default());
        let mut next = || fields.next().unwrap_or_default();
        Some(Birth {
            model: next(),
            text: next(),
            tools: next(),
            system: next(),
            prefix: next(),
            previous: next(),
            same_turn: next() == 1,
        })
    }

    fn birth(request: &Value, blocks_before: &[Value], model: &str, text: u64) -> Birth {
        let mut parts = prompt::parts(request);
        let asked = parts.len();
        parts.extend(blocks_before.iter().enumerate().map(|(block, value)| Part {
            section: Section::Messages,
            role: "assistant",
            index: usize::MAX,
            block,
            body: Body::Block(value),
        }));
        // Blocks of this reply belong to one turn with an assistant message at the end of the request.
        let turn_start = parts[..asked].iter().rposition(|p| p.role != "assistant").map_or(0, |at| at + 1);
        let previous = parts.iter().rposition(Part::is_thinking);
        Birth {
            model: model_tag(model),
            text,
            tools: prefix_in(&parts, Section::Tools),
            system: prefix_in(&parts, Section::System),
            prefix: prefix(&parts),
            previous: previous.map_or(NOBODY, |at| identity(&parts[at])),
            same_turn: previous.is_some_and(|at| at >= turn_start),
        }
    }

    fn seal(&self, birth: Birth) -> String {
        let Birth { model, text, tools, system, prefix, previous, same_turn } = birth;
        let fields: [u64; FIELDS] = [model, text, tools, system, prefix, previous, u64::from(same_turn)];
        let fields: Vec<u8> = fields.iter().flat_map(|field| field.to_be_bytes()).collect();
        let tag = self.tag(&fields);
        base64::encode(&[PREFIX, &fields, &tag].concat())
    }

    /// A keyed 128-bit hash out of two runs of std's SipHash. It keeps honest clients honest in tests, which is all a
    /// mock needs; its exact value may change with the compiler that builds the mock.
    fn tag(&self, fields: &[u8]) -> [u8; 16] {
        let half = |lane: u64| {
            let mut hasher = DefaultHasher::new();
            hasher.write_u64(self.seed);
            hasher.write_u64(lane);
            hasher.write(fields);
            hasher.finish().to_be_bytes()
        };
        let mut tag = [0; 16];
        tag[..8].copy_from_slice(&half(1));
        tag[8..].copy_from_slice(&half(2));
        tag
    }
}

/// The circumstances a thinking block was made in.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Birth {
    pub(crate) model: u64,
    pub(crate) text: u64,
    /// Hash of the tools.
    pub(crate) tools: u64,
    /// Hash of the system prompt.
    pub(crate) system: u64,
    /// Hash of everything before the block except thinking blocks.
    pub(crate) prefix: u64,
    /// Identity of the thinking block before it, or [`NOBODY`].
    pub(crate) previous: u64,
    /// That block belongs to the same assistant turn.
    pub(crate) same_turn: bool,
}

/// Stands for "no thinking block came before".
pub(crate) const NOBODY: u64 = 0;

/// The hash of everything in `parts` that later thinking blocks are bound to. Blank text is not: no client can send
/// it back.
pub(crate) fn prefix(parts: &[Part<'_>]) -> u64 {
    parts
        .iter()
        .filter(|part| !part.is_thinking() && !part.is_blank())
        .fold(NOBODY, |hash, part| prompt::chain(hash, part.hash()))
}

/// The same for one section of the prompt.
pub(crate) fn prefix_in(parts: &[Part<'_>], section: Section) -> u64 {
    let start = parts.partition_point(|part| part.section < section);
    let end = parts.partition_point(|part| part.section <= section);
    prefix(&parts[start..end])
}

/// Which thinking block this is: its signature, or its data when it is redacted.
pub(crate) fn identity(part: &Part<'_>) -> u64 {
    prompt::hash_text(part.str_field("signature").or_else(|| part.str_field("data")).unwrap_or_default())
}

/// Dated ids of one model sign alike.
pub(crate) fn model_tag(model: &str) -> u64 {
    prompt::hash_text(catalogue::model(model).map_or(model, |facts| facts.id))
}

/// Signatures of the real API start with these bytes too; nothing depends on it.
const PREFIX: &[u8] = &[0x12, 0xa4, 0x01];
const FIELD_BYTES: usize = 8;
/// The members of a [`Birth`].
const FIELDS: usize = 7;

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    fn request(text: &str) -> Value {
        json!({"model": "claude-opus-5-5", "messages": [{"role": "user", "content": text}]})
    }

    #[test]
    fn a_restarted_server_with_the_same_seed_knows_its_signatures() {
        let signature = Issued::new(7).sign(&request("hi"), &[], "claude-opus-5-5", "hm");
        assert!(signature.starts_with("EqQB"), "{signature}");
        assert_eq!(signature, Issued::new(7).sign(&request("hi"), &[], "claude-opus-5-5", "hm"));
        let birth = Issued::new(7).open(&signature).unwrap();
        assert_eq!(birth.text, prompt::hash_text("hm"));
        assert_eq!(birth.previous, NOBODY);
        assert_eq!(Issued::new(8).open(&signature), None);
    }

    #[test]
    fn every_circumstance_shows_in_the_signature() {
        let issued = Issued::default();
        let sign = |ask: &str, model: &str, text: &str| issued.sign(&request(ask), &[], model, text);
        let base = sign("hi", "claude-opus-5-5", "hm");
        assert_ne!(base, sign("ho", "claude-opus-5-5", "hm"));
        assert_ne!(base, sign("hi", "claude-sonnet-5-5", "hm"));
        assert_ne!(base, sign("hi", "claude-opus-5-5", "ha"));
        assert_ne!(
            base,
            issued.sign(&request("hi"), &[json!({"type": "text", "text": "x"})], "claude-opus-5-5", "hm")
        );
        assert_eq!(base, sign("hi", "claude-opus-5-5-20260915", "hm"), "dated ids are the same model");
    }

    #[test]
    fn blank_text_before_a_block_need_not_come_back() {
        let issued = Issued::default();
        let blank = json!({"type": "text", "text": " \n"});
        let bare = issued.sign(&request("hi"), &[], "claude-opus-5-5", "hm");
        assert_eq!(bare, issued.sign(&request("hi"), &[blank], "claude-opus-5-5", "hm"));
    }

    #[test]
    fn damaged_signatures_are_nobodys() {
        let issued = Issued::default();
        let good = issued.sign(&request("hi"), &[], "claude-opus-5-5", "hm");
        assert!(issued.open(&good).is_some());
        for at in 0..good.len() {
            let mut bad = good.clone().into_bytes();
            bad[at] = if bad[at] == b'A' { b'B' } else { b'A' };
            let bad = String::from_utf8(bad).unwrap();
            assert_eq!(issued.open(&bad), None, "byte {at}");
        }
        for bad in ["", "EqQB", "not base64!", &good[4..]] {
            assert_eq!(issued.open(bad), None, "{bad}");
        }
    }

    #[test]
    fn the_thinking_block_before_is_remembered() {
        let issued = Issued::default();
        let first = issued.sign(&request("hi"), &[], "claude-opus-5-5", "one");
        let block = json!({"type": "thinking", "thinking": "one", "signature": first});
        let second = issued.sign(&request("hi"), std::slice::from_ref(&block), "claude-opus-5-5", "two");
        let birth = issued.open(&second).unwrap();
        assert_eq!(birth.previous, prompt::hash_text(&first));
        assert!(birth.same_turn);
        let mut next = request("hi");
        next["messages"].as_array_mut().unwrap().extend([
            json!({"role": "assistant", "content": [block, {"type": "text", "text": "ok"}]}),
            json!({"role": "user", "content": "more"}),
        ]);
        let birth = issued.open(&issued.sign(&next, &[], "claude-opus-5-5", "three")).unwrap();
        assert_eq!(birth.previous, prompt::hash_text(&first));
        assert!(!birth.same_turn);
    }
}
