//! An answer while it is given: what goes out next, and when, whichever way it travels.

use super::answer::Planned;
use super::state::Shared;
use crate::http::{Framing, Request};
use crate::play::{Ending, Piece};
use bytes::Bytes;
use std::sync::Arc;

/// Statuses whose answers have no body, whatever a script says.
pub(crate) const NO_BODY: [u16; 2] = [204, 304];

/// One answer on its way. Whoever carries it asks for pieces and says when one was delivered and how it all ended.
#[derive(Debug)]
pub(crate) struct Performing {
    shared: Arc<Shared>,
    planned: Planned,
    /// The next piece.
    at: usize,
}

impl Performing {
    pub(crate) fn new(shared: Arc<Shared>, planned: Planned) -> Self {
        Self { shared, planned, at: 0 }
    }

    pub(crate) fn status(&self) -> u16 {
        self.planned.status
    }

    pub(crate) fn headers(&self) -> &[(String, String)] {
        &self.planned.headers
    }

    /// How the end of the body is told to this client.
    pub(crate) fn framing(&self, request: &Request) -> Framing {
        match self.planned.framing {
            _ if NO_BODY.contains(&self.planned.status) => Framing::NoBody,
            Framing::Chunked if !request.takes_chunks => Framing::UntilClose,
            framing => framing,
        }
    }

    /// How the answer ends once there are no more pieces.
    pub(crate) fn ending(&self) -> Ending {
        self.planned.performance.ending
    }

    /// Waits until status and headers are due. Tells whether there are any.
    pub(crate) async fn begin(&mut self) -> bool {
        if !self.planned.performance.headers {
            return false;
        }
        // Gates and waits before a body of known length hold back the headers too: the model has not answered yet.
        if !self.planned.is_stream {
            self.rest().await;
        }
        true
    }

    /// The next bytes of the body, when they are due; `None` at the end.
    pub(crate) async fn next(&mut self) -> Option<Bytes> {
        let bytes = self.rest().await?;
        self.at += 1;
        Some(bytes)
    }

    /// The bytes handed out last have arrived.
    pub(crate) fn delivered(&mut self) {
        let Planned { number, performance, cached, .. } = &mut self.planned;
        let Some(Piece::Write { bytes, events_done }) =
            self.at.checked_sub(1).map(|last| &performance.pieces[last])
        else {
            return;
        };
        let sent = &performance.events[..(*events_done).min(performance.events.len())];
        self.shared.change(|state| {
            if let Some(entries) = cached.take() {
                state.cache.commit(entries, self.shared.started.elapsed());
            }
            state.progress(*number, bytes.len(), sent);
        });
    }

    /// It is over, one way or another.
    pub(crate) fn finish(&self, ending: Ending) {
        self.shared.finish(self.planned.number, ending, ending == Ending::ClientLeft);
    }

    /// The client left an answer that had gone silent.
    pub(crate) fn hung_up(&self) {
        self.shared.change(|state| {
            if let Some(seen) = state.seen_mut(self.planned.number) {
                seen.hung_up = true;
            }
        });
    }

    /// Sits out waits and gates until bytes are due.
    async fn rest(&mut self) -> Option<Bytes> {
        loop {
            match self.planned.performance.pieces.get(self.at)? {
                Piece::Wait(wait) => tokio::time::sleep(*wait).await,
                Piece::Gate(name) => self.shared.pass_gate(self.planned.number, name).await,
                Piece::Write { bytes, .. } => return Some(bytes.clone()),
            }
            self.at += 1;
        }
    }
}
