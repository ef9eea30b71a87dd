//! Only answers that somebody waits for come through. During the handshake rmcp takes any other one for the end of it, and
//! a server that once answers too much would be lost to the session.

use std::collections::VecDeque;

use rmcp::model::{
    CancelledNotification, ClientJsonRpcMessage, ClientNotification, JsonRpcMessage, RequestId,
    ServerJsonRpcMessage,
};
use rmcp::service::RoleClient;
use rmcp::transport::Transport;

use crate::limits::OPEN_REQUESTS_MAX;

/// A way to a server without the answers that nobody asked for.
pub(super) struct Asked<T> {
    way: T,
    open: Open,
}

/// What is asked and not answered, by id as it is written (some servers make a text of a number), the oldest first. A server
/// that leaves requests without an answer for as long as a session lasts does not fill it: the oldest is given up for the
/// newest, and its answer would come too late for anybody.
#[derive(Default)]
struct Open(VecDeque<String>);

impl Open {
    fn add(&mut self, id: &RequestId) {
        if self.0.len() == OPEN_REQUESTS_MAX {
            self.0.pop_front();
        }
        self.0.push_back(id.to_string());
    }

    /// Whether it was open until now.
    fn close(&mut self, id: &RequestId) -> bool {
        let id = id.to_string();
        // What is answered is mostly among the newest.
        let at = self.0.iter().rposition(|open| *open == id);
        at.and_then(|at| self.0.remove(at)).is_some()
    }
}

impl<T> Asked<T> {
    pub fn over(way: T) -> Self {
        Self { way, open: Open::default() }
    }

    fn note(&mut self, message: &ClientJsonRpcMessage) {
        match message {
            JsonRpcMessage::Request(request) => {
                self.open.add(&request.id);
            }
            JsonRpcMessage::Notification(notice) => {
                if let ClientNotification::CancelledNotification(CancelledNotification { params, .. }) =
                    &notice.notification
                    && let Some(id) = &params.request_id
                {
                    self.open.close(id);
                }
            }
            _ => {}
        }
    }

    fn is_wanted(&mut self, message: &ServerJsonRpcMessage) -> bool {
        let mut is_open = |id: &RequestId| self.open.close(id);
        match message {
            JsonRpcMessage::Response(response) => is_open(&response.id),
            // Without an id it may mean any of them.
            JsonRpcMessage::Error(error) => error.id.as_ref().is_none_or(is_open),
            _ => true,
        }
    }
}

impl<T: Transport<RoleClient>> Transport<RoleClient> for Asked<T> {
    type Error = T::Error;

    fn name() -> std::borrow::Cow<'static, str> {
        T::name()
    }

    fn send(
        &mut self,
        message: ClientJsonRpcMessage,
    ) -> impl Future<Output = Result<(), Self::Error>> + Send + 'static {
        self.note(&message);
        self.way.send(message)
    }

    async fn receive(&mut self) -> Option<ServerJsonRpcMessage> {
        loop {
            let message = self.way.receive().await?;
            if self.is_wanted(&message) {
                return Some(message);
            }
        }
    }

    async fn close(&mut self) -> Result<(), Self::Error> {
        self.way.close().await
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// What is asked and never answered does not pile up, and hides no answer to what is asked later.
    #[test]
    fn what_is_never_answered_makes_room_for_what_is_asked_later() {
        let number = |number: usize| RequestId::Number(number as i64);
        let mut open = Open::default();
        let asked = OPEN_REQUESTS_MAX * 3;
        for id in 0..asked {
            open.add(&number(id));
            assert!(open.0.len() <= OPEN_REQUESTS_MAX);
            if id % 2 == 1 {
                assert!(open.close(&number(id)), "{id} was just asked");
                assert!(!open.close(&number(id)), "{id} is answered once");
            }
        }
        let kept: Vec<bool> = (0..asked).step_by(2).map(|id| open.close(&number(id))).collect();
        let given_up = kept.iter().take_while(|kept| !**kept).count();
        assert!(kept[given_up..].iter().all(|kept| *kept), "the oldest are given up, and no other");
        assert!(given_up > 0 && kept.len() - given_up >= OPEN_REQUESTS_MAX / 2);
    }
}
