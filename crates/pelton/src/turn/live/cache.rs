//! What became of the server's cache with each request, and, where it was lost, what changed. A request is compared with
//! the one before by hashes of its parts: nothing is kept of what was sent.

use std::hash::{DefaultHasher, Hash as _, Hasher as _};
use std::time::Duration;

use bytes::Bytes;
use pelton_model::Ask;
use pelton_wire::usage::Usage;

use crate::event::CacheReport;
use crate::limits::CACHE_KEPT;

/// Compares each request of a conversation with the one before.
#[derive(Debug, Default)]
pub(crate) struct CacheAudit {
    last: Option<Sent>,
    /// Tokens that the server has in its cache for this conversation, as it said itself.
    held: u64,
    /// How the newest request differs from the one before in what was there already.
    difference: Option<String>,
}

/// A place in the bytes of the messages, and the hash of all before it.
type Spot = (u64, u64);

/// A request, as the cache sees it.
#[derive(Debug)]
struct Sent {
    model: String,
    tools: u64,
    system: u64,
    /// Thinking, effort and speed.
    manner: String,
    /// Where each message begins, and the hash of all before it.
    begins: Vec<Spot>,
    /// The same for the end: messages are added to there.
    end: Spot,
    at: Duration,
}

impl CacheAudit {
    /// A request is sent.
    pub fn sent(&mut self, ask: &Ask, now: Duration) {
        let end_before = self.last.as_ref().map(|last| last.end.0);
        let (begins, end, at_end_before) = outline(&ask.messages, end_before);
        let sent = Sent {
            model: ask.model.clone(),
            tools: hash(&ask.prefix.tools),
            system: hash(&ask.prefix.system),
            manner: format!("{:?} {:?} {:?}", ask.thinking, ask.effort, ask.speed),
            begins,
            end,
            at: now,
        };
        self.difference = self.last.as_ref().and_then(|last| difference(last, &sent, at_end_before));
        self.last = Some(sent);
    }

    /// It was answered.
    pub fn answered(&mut self, usage: &Usage) -> CacheReport {
        let (read, written) = (usage.cache_read_input_tokens, usage.cache_creation_input_tokens);
        let missed = self.held.saturating_sub(read);
        self.held = read + written;
        let reason = (missed > 0).then(|| {
            let unexplained =
                || "nothing of what was sent before: the server does not have it any more".to_owned();
            self.difference.take().unwrap_or_else(unexplained)
        });
        CacheReport { read, written, missed, reason }
    }
}

/// The first part in which a request differs from the one before, in what was there already.
fn difference(last: &Sent, now: &Sent, at_end_before: Option<u64>) -> Option<String> {
    if last.model != now.model {
        return Some(format!("model: {} instead of {}", now.model, last.model));
    }
    if last.tools != now.tools {
        return Some("tools: others are offered".to_owned());
    }
    if last.system != now.system {
        return Some("system: the system prompt is another".to_owned());
    }
    if last.manner != now.manner {
        return Some(format!("thinking, effort or speed: {} instead of {}", now.manner, last.manner));
    }
    let same = last.begins.iter().zip(&now.begins).take_while(|(last, now)| last == now).count();
    if same < last.begins.len() {
        return Some(format!("messages[{}]: it was changed after it was sent", same.saturating_sub(1)));
    }
    if at_end_before != Some(last.end.1) {
        return Some(format!("messages[{}]: it was changed after it was sent", same.saturating_sub(1)));
    }
    let waited = now.at.saturating_sub(last.at);
    (waited > CACHE_KEPT)
        .then(|| format!("time: {} s have passed, and the server keeps it no longer", waited.as_secs()))
}

/// Where messages begin and end, with the hashes of what is before, and the hash at one more place.
fn outline(pieces: &[Bytes], place: Option<u64>) -> (Vec<Spot>, Spot, Option<u64>) {
    let mut hasher = DefaultHasher::new();
    let (mut at, mut begins, mut at_place) = (0_u64, Vec::new(), None);
    // The last piece closes what will go on in the next request.
    let open = pieces.split_last().map_or(pieces, |(_, open)| open);
    for piece in open.iter().filter(|piece| !piece.starts_with(br#","cache_control""#)) {
        if piece.ends_with(br#""content":["#) {
            begins.push((at, hasher.finish()));
        }
        let length = piece.len() as u64;
        match place.filter(|place| (at..at + length).contains(place)) {
            Some(place) => {
                // It lies inside of the addresses of this process.
                let (before, behind) = piece.split_at((place - at) as usize);
                hasher.write(before);
                at_place = Some(hasher.finish());
                hasher.write(behind);
            }
            None => hasher.write(piece),
        }
        at += length;
    }
    let end = (at, hasher.finish());
    (begins, end, if place == Some(at) { Some(end.1) } else { at_place })
}

fn hash(bytes: &[u8]) -> u64 {
    let mut hasher = DefaultHasher::new();
    bytes.hash(&mut hasher);
    hasher.finish()
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use pelton_model::Prefix;

    use super::*;

    const USER: &[u8] = br#"{"role":"user","content":["#;
    const ANSWER: &[u8] = br#"]},{"role":"assistant","content":["#;
    const NEXT: &[u8] = br#"]},{"role":"user","content":["#;
    const MARK: &[u8] = br#","cache_control":{"type":"ephemeral"}"#;

    fn ask(pieces: &[&'static [u8]]) -> Ask {
        let prefix = Arc::new(Prefix { system: Bytes::from_static(b"s"), tools: Bytes::from_static(b"t") });
        let end: &[u8] = b"]}";
        let pieces = pieces.iter().copied().chain([end]).map(Bytes::from_static);
        Ask::new("m", 10, prefix, pieces.collect())
    }

    fn usage(read: u64, written: u64) -> Usage {
        Usage { cache_read_input_tokens: read, cache_creation_input_tokens: written, ..Usage::default() }
    }

    /// What is said of a second request that reads nothing from the cache.
    fn check(second: &Ask, after: Duration) -> String {
        let mut audit = CacheAudit::default();
        audit.sent(&ask(&[USER, b"{a", MARK, b"}"]), Duration::ZERO);
        assert_eq!(
            audit.answered(&usage(0, 100)),
            CacheReport { read: 0, written: 100, missed: 0, reason: None }
        );
        audit.sent(second, after);
        let report = audit.answered(&usage(0, 120));
        assert_eq!(report.missed, 100);
        report.reason.unwrap()
    }

    #[test]
    fn the_first_part_that_differs_is_named() {
        let grown: &[&[u8]] = &[USER, b"{a}", ANSWER, b"{b}", NEXT, b"{c", MARK, b"}"];
        let now = Duration::from_secs(1);
        assert!(check(&ask(grown), now).starts_with("nothing of what was sent"));
        assert!(check(&ask(&[USER, b"{a}", b",", b"{b}"]), now).starts_with("nothing of what was sent"));
        assert!(check(&ask(grown), Duration::from_secs(301)).starts_with("time: 301 s"));
        assert!(check(&ask(&[USER, b"{x}", ANSWER, b"{b}", NEXT, b"{c}"]), now).starts_with("messages[0]"));
        assert!(check(&ask(&[USER, b"{}"]), now).starts_with("messages[0]"));
        let other = |change: &dyn Fn(&mut Ask)| {
            let mut ask = ask(grown);
            change(&mut ask);
            check(&ask, now)
        };
        assert!(other(&|ask| ask.model = "n".to_owned()).starts_with("model: n"));
        let prefix = |system, tools| Arc::new(Prefix { system, tools });
        let (old, new) = (|text| Bytes::from_static(text), Bytes::from_static(b"x"));
        assert!(other(&|ask| ask.prefix = prefix(old(b"s"), new.clone())).starts_with("tools"));
        assert!(other(&|ask| ask.prefix = prefix(new.clone(), old(b"t"))).starts_with("system"));
        assert!(other(&|ask| ask.speed = pelton_model::Speed::Fast).starts_with("thinking, effort or speed"));
    }

    #[test]
    fn what_is_read_is_not_missed() {
        let mut audit = CacheAudit::default();
        audit.sent(&ask(&[USER, b"{a}"]), Duration::ZERO);
        audit.answered(&usage(0, 100));
        audit.sent(&ask(&[USER, b"{a}", ANSWER, b"{b}", NEXT, b"{c}"]), Duration::ZERO);
        assert_eq!(
            audit.answered(&usage(100, 20)),
            CacheReport { read: 100, written: 20, missed: 0, reason: None }
        );
    }
}
