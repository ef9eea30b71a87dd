//! Questions to the client: sent as lines, answered by lines in any order, taken back when nobody wants the answer any
//! more.

use std::collections::HashMap;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use pelton::fresh_id;
use pelton_model::World;
use serde_json::{Value, json};
use tokio::sync::{mpsc, oneshot};

use super::limits::QUESTIONS_OPEN_MAX;

/// The client, as far as it can be asked. All clones are one.
#[derive(Clone)]
pub(crate) struct Client(Arc<Shared>);

struct Shared {
    open: Mutex<Option<HashMap<String, Waiting>>>,
    asked: AtomicU64,
    lines: mpsc::Sender<Vec<u8>>,
    world: Arc<dyn World>,
}

/// A question that is open.
struct Waiting {
    /// The line it was asked in.
    line: Value,
    /// How many were asked before it.
    number: u64,
    answer: oneshot::Sender<Result<Value, NoAnswer>>,
}

/// Why there is no answer.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum NoAnswer {
    /// The client says that it failed.
    Failed(String),
    /// Nobody is there any more.
    Gone,
    /// Too many questions are open.
    TooMany,
}

impl NoAnswer {
    /// Why, in words.
    pub fn words(&self) -> String {
        match self {
            Self::Failed(words) => words.clone(),
            Self::Gone => "the client has closed its end of the pipe".to_owned(),
            Self::TooMany => format!("{QUESTIONS_OPEN_MAX} questions to the client are open already"),
        }
    }
}

impl Client {
    /// The client, and the lines that are to be written for it.
    pub fn new(world: Arc<dyn World>) -> (Self, mpsc::Receiver<Vec<u8>>) {
        // Each question is a line, and may be taken back by another.
        let (lines, written) = mpsc::channel(2 * QUESTIONS_OPEN_MAX);
        let open = Mutex::new(Some(HashMap::new()));
        (Self(Arc::new(Shared { open, asked: AtomicU64::new(0), lines, world })), written)
    }

    /// Asks. Dropping the future takes the question back.
    pub async fn ask(&self, subtype: &str, fields: Value) -> Result<Value, NoAnswer> {
        let id = fresh_id(self.0.world.as_ref()).to_string();
        let mut request = json!({"subtype": subtype});
        if let (Some(request), Value::Object(fields)) = (request.as_object_mut(), fields) {
            request.extend(fields);
        }
        let line = json!({"type": "control_request", "request_id": id, "request": request});
        let written = as_line(&line);
        let (answer, answered) = oneshot::channel();
        match self.open().as_mut() {
            None => return Err(NoAnswer::Gone),
            Some(open) if open.len() >= QUESTIONS_OPEN_MAX => return Err(NoAnswer::TooMany),
            Some(open) => {
                let number = self.0.asked.fetch_add(1, Ordering::Relaxed);
                open.insert(id.clone(), Waiting { line, number, answer });
            }
        }
        let _asked = Asked { client: self, id };
        if self.0.lines.send(written).await.is_err() {
            return Err(NoAnswer::Gone);
        }
        answered.await.unwrap_or(Err(NoAnswer::Gone))
    }

    /// An answer came. One to a question that was taken back is late, and nobody's.
    pub fn answered(&self, id: &str, answer: Result<Value, String>) {
        let waiting = self.open().as_mut().and_then(|open| open.remove(id));
        if let Some(waiting) = waiting {
            // Whoever asked may have gone in this moment.
            let _ = waiting.answer.send(answer.map_err(NoAnswer::Failed));
        }
    }

    /// Questions of a kind that are not answered yet, as they were asked, oldest first.
    pub fn unanswered(&self, subtype: &str) -> Vec<Value> {
        let open = self.open();
        let mut found: Vec<_> = open.iter().flat_map(HashMap::values).collect();
        found.retain(|waiting| waiting.line["request"]["subtype"] == subtype);
        found.sort_unstable_by_key(|waiting| waiting.number);
        found.into_iter().map(|waiting| waiting.line.clone()).collect()
    }

    /// Nobody answers any more: everything that waits fails, and so does everything to come.
    pub fn is_gone(&self) {
        let open = self.open().take();
        for waiting in open.into_iter().flat_map(HashMap::into_values) {
            let _ = waiting.answer.send(Err(NoAnswer::Gone));
        }
    }

    fn open(&self) -> MutexGuard<'_, Option<HashMap<String, Waiting>>> {
        self.0.open.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// A question that is open until this is dropped.
struct Asked<'a> {
    client: &'a Client,
    id: String,
}

impl Drop for Asked<'_> {
    fn drop(&mut self) {
        let unanswered = self.client.open().as_mut().and_then(|open| open.remove(&self.id));
        if unanswered.is_some() {
            let line = json!({"type": "control_cancel_request", "request_id": self.id});
            // There is room for one for each question; a client that is told too late answers in vain.
            let _ = self.client.0.lines.try_send(as_line(&line));
        }
    }
}

/// A JSON object as a whole line.
pub(crate) fn as_line(json: &Value) -> Vec<u8> {
    let mut line = json.to_string().into_bytes();
    line.push(b'\n');
    line
}

#[cfg(test)]
mod tests {
    use futures::FutureExt;
    use pelton_model::RealWorld;

    use super::*;

    fn id_of(line: &[u8]) -> (String, Value) {
        let line: Value = serde_json::from_slice(line).unwrap();
        (line["request_id"].as_str().unwrap().to_owned(), line)
    }

    #[tokio::test]
    async fn answers_come_in_any_order_and_late_ones_are_nobodys() {
        let (client, mut lines) = Client::new(Arc::new(RealWorld::new()));
        let one = client.ask("mcp_message", json!({"n": 1}));
        let two = client.ask("mcp_message", json!({"n": 2}));
        tokio::pin!(one, two);
        assert!(one.as_mut().now_or_never().is_none() && two.as_mut().now_or_never().is_none());
        let (first, line) = id_of(&lines.recv().await.unwrap());
        assert_eq!((&line["type"], &line["request"]["n"]), (&json!("control_request"), &json!(1)));
        let (second, _) = id_of(&lines.recv().await.unwrap());
        client.answered(&second, Ok(json!("two")));
        client.answered(&second, Ok(json!("again")));
        client.answered("unknown", Ok(json!("?")));
        client.answered(&first, Err("no".to_owned()));
        assert_eq!((one.await, two.await), (Err(NoAnswer::Failed("no".to_owned())), Ok(json!("two"))));
    }

    #[tokio::test]
    async fn a_question_nobody_wants_answered_is_taken_back() {
        let (client, mut lines) = Client::new(Arc::new(RealWorld::new()));
        assert!(client.ask("hook_callback", json!({})).now_or_never().is_none());
        let (asked, _) = id_of(&lines.recv().await.unwrap());
        let (cancelled, line) = id_of(&lines.recv().await.unwrap());
        assert_eq!((cancelled, &line["type"]), (asked, &json!("control_cancel_request")));
    }

    #[tokio::test]
    async fn without_a_client_everything_fails_at_once() {
        let (client, _lines) = Client::new(Arc::new(RealWorld::new()));
        let waiting = client.ask("can_use_tool", json!({}));
        tokio::pin!(waiting);
        assert!(waiting.as_mut().now_or_never().is_none());
        client.is_gone();
        assert_eq!(waiting.await, Err(NoAnswer::Gone));
        assert_eq!(client.ask("can_use_tool", json!({})).await, Err(NoAnswer::Gone));
    }

    #[tokio::test]
    async fn there_is_an_end_to_questions() {
        let (client, _lines) = Client::new(Arc::new(RealWorld::new()));
        let mut open: Vec<_> =
            (0..QUESTIONS_OPEN_MAX).map(|_| Box::pin(client.ask("x", json!({})))).collect();
        assert!(open.iter_mut().all(|question| question.now_or_never().is_none()));
        assert_eq!(client.ask("x", json!({})).await, Err(NoAnswer::TooMany));
    }
}
