//! What a session may ask of the program it runs in: a place for state of its own, and a person to answer questions.
//! Tools reach it through their [`ToolCx`](crate::tools::ToolCx).

use std::fmt;
use std::sync::Arc;
use std::time::Duration;

use futures::future::BoxFuture;
use serde_json::Value;
use tokio::sync::Mutex;
use tokio_util::sync::CancellationToken;

use crate::status::{Board, Wait};

/// E7, E8: state of the program around the session, which tools may read and change.
///
/// ```
/// use std::collections::HashMap;
/// use std::sync::{Arc, Mutex, PoisonError};
///
/// use pelton::host::{AppState, Host};
/// use serde_json::{Value, json};
///
/// #[derive(Default)]
/// struct Shelf(Mutex<HashMap<String, Value>>);
///
/// impl AppState for Shelf {
///     fn get(&self, name: &str) -> Option<Value> {
///         self.0.lock().unwrap_or_else(PoisonError::into_inner).get(name).cloned()
///     }
///
///     fn set(&self, name: &str, value: Option<Value>) {
///         let mut shelf = self.0.lock().unwrap_or_else(PoisonError::into_inner);
///         match value {
///             Some(value) => shelf.insert(name.to_owned(), value),
///             None => shelf.remove(name),
///         };
///     }
/// }
///
/// let host = Host::default().with_state(Arc::new(Shelf::default()));
/// let state = host.state().expect("it was given one");
/// state.set("theme", Some(json!("dark")));
/// assert_eq!(state.get("theme"), Some(json!("dark")));
/// ```
pub trait AppState: Send + Sync {
    /// What is there under a name.
    fn get(&self, name: &str) -> Option<Value>;

    /// Puts something there in place of what was; nothing removes it.
    fn set(&self, name: &str, value: Option<Value>);
}

/// E22: answers questions of tools and their servers, most often by asking a person.
///
/// ```
/// use std::sync::Arc;
///
/// use futures::future::BoxFuture;
/// use pelton::host::{Elicitation, Elicited, Elicitor, Host};
/// use serde_json::json;
///
/// /// Says yes to everything.
/// struct Agreeable;
///
/// impl Elicitor for Agreeable {
///     fn elicit<'a>(&'a self, question: &'a Elicitation) -> BoxFuture<'a, Elicited> {
///         println!("{} asks: {}", question.asker, question.message);
///         Box::pin(async { Elicited::Accept(json!({"answer": "yes"})) })
///     }
/// }
///
/// let host = Host::default().with_elicitor(Arc::new(Agreeable));
/// # let _ = host;
/// ```
pub trait Elicitor: Send + Sync {
    /// Answers a question. The future is dropped when the user interrupts.
    fn elicit<'a>(&'a self, question: &'a Elicitation) -> BoxFuture<'a, Elicited>;
}

/// A question of a tool to a person.
///
/// ```
/// use pelton::host::Elicitation;
/// use serde_json::json;
///
/// let schema = json!({"type": "object", "properties": {"colour": {"type": "string"}}});
/// let question = Elicitation::new("toolu_01".into(), "painter", "Which colour?", schema);
/// assert_eq!(format!("{} asks: {}", question.asker, question.message), "painter asks: Which colour?");
/// ```
#[derive(Debug, Clone, PartialEq)]
#[non_exhaustive]
pub struct Elicitation {
    /// The call it is about.
    pub call: Arc<str>,
    /// Who asks: a tool, or the server it belongs to.
    pub asker: String,
    /// The question.
    pub message: String,
    /// The JSON schema of an answer.
    pub schema: Value,
    /// An address that the person is to open: that they have is the answer.
    pub url: Option<String>,
    /// What the asker calls it, if it does.
    pub id: Option<String>,
}

impl Elicitation {
    /// A question about a call; `schema` is that of the answer.
    pub fn new(call: Arc<str>, asker: impl Into<String>, message: impl Into<String>, schema: Value) -> Self {
        Self { call, asker: asker.into(), message: message.into(), schema, url: None, id: None }
    }

    /// Somebody is to open an address.
    ///
    /// ```
    /// use pelton::host::Elicitation;
    ///
    /// let question = Elicitation::visit("toolu_01".into(), "shop", "Pay here, please.", "https://shop.example/pay");
    /// assert_eq!(question.url.as_deref(), Some("https://shop.example/pay"));
    /// ```
    pub fn visit(
        call: Arc<str>,
        asker: impl Into<String>,
        message: impl Into<String>,
        url: impl Into<String>,
    ) -> Self {
        let nothing = serde_json::json!({"type": "object", "properties": {}});
        Self { url: Some(url.into()), ..Self::new(call, asker, message, nothing) }
    }

    /// The question by the name that its asker has for it.
    ///
    /// ```
    /// # use pelton::host::Elicitation;
    /// let question = Elicitation::visit("toolu_01".into(), "shop", "Pay here, please.", "https://shop.example/pay");
    /// assert_eq!(question.named("order-7").to_json()["elicitation_id"], "order-7");
    /// ```
    #[must_use]
    pub fn named(self, id: impl Into<String>) -> Self {
        Self { id: Some(id.into()), ..self }
    }

    /// The question as hooks and clients read it.
    ///
    /// ```
    /// # use pelton::host::Elicitation;
    /// let question = Elicitation::visit("toolu_01".into(), "shop", "Pay here, please.", "https://shop.example/pay");
    /// assert_eq!(question.to_json()["mode"], "url");
    /// ```
    pub fn to_json(&self) -> Value {
        let mut fields = serde_json::json!({"mcp_server_name": self.asker, "message": self.message});
        match &self.url {
            Some(url) => {
                fields["mode"] = "url".into();
                fields["url"] = url.as_str().into();
            }
            None => {
                fields["mode"] = "form".into();
                fields["requested_schema"] = self.schema.clone();
            }
        }
        if let Some(id) = &self.id {
            fields["elicitation_id"] = id.as_str().into();
        }
        fields
    }
}

/// An answer to an [`Elicitation`].
///
/// ```
/// use pelton::host::Elicited;
///
/// /// What a tool makes of the answer.
/// fn colour(answer: &Elicited) -> Result<&str, &'static str> {
///     match answer {
///         Elicited::Accept(value) => value["colour"].as_str().ok_or("that is no colour"),
///         Elicited::Decline => Ok("white"),
///         Elicited::Cancel => Err("nobody answered"),
///     }
/// }
/// assert_eq!(colour(&Elicited::Decline), Ok("white"));
/// ```
#[derive(Debug, Clone, PartialEq)]
pub enum Elicited {
    /// The answer. That it fits the schema is for the asker to check: people mistype.
    Accept(Value),
    /// The person does not want to say.
    Decline,
    /// There is no answer: the question was dismissed, or the user interrupted.
    Cancel,
}

impl Elicited {
    /// What hooks call it.
    pub(crate) fn action(&self) -> &'static str {
        match self {
            Self::Accept(_) => "accept",
            Self::Decline => "decline",
            Self::Cancel => "cancel",
        }
    }
}

/// The program around a session, as far as it takes part.
///
/// ```
/// use pelton::host::{Elicitation, Elicited, Host};
/// use tokio_util::sync::CancellationToken;
///
/// # #[tokio::main(flavor = "current_thread")]
/// # async fn main() {
/// let host = Host::default(); // `Options::host` is where it goes
/// let question = Elicitation::new("toolu_01".into(), "painter", "Which colour?", serde_json::json!({}));
/// let answer = host.elicit(&question, &CancellationToken::new()).await;
/// assert_eq!(answer, Elicited::Decline); // there is nobody to ask
/// # }
/// ```
#[derive(Clone, Default)]
pub struct Host {
    state: Option<Arc<dyn AppState>>,
    elicitor: Option<Arc<dyn Elicitor>>,
    /// A person answers one question at a time.
    floor: Arc<Mutex<()>>,
    board: Option<Board>,
    /// How long an answer is waited for.
    time: Option<Duration>,
}

impl Host {
    /// Lets tools read and change state of the program's.
    #[must_use]
    pub fn with_state(mut self, state: Arc<dyn AppState>) -> Self {
        self.state = Some(state);
        self
    }

    /// Answers questions of tools.
    #[must_use]
    pub fn with_elicitor(mut self, elicitor: Arc<dyn Elicitor>) -> Self {
        self.elicitor = Some(elicitor);
        self
    }

    /// Who answers questions, if anybody does.
    pub(crate) fn elicitor(&self) -> Option<Arc<dyn Elicitor>> {
        self.elicitor.clone()
    }

    /// The program's state, if it shares any.
    pub fn state(&self) -> Option<&dyn AppState> {
        self.state.as_deref()
    }

    /// Asks a person something, behind those who asked before. Without anybody to ask, the answer is
    /// [`Elicited::Decline`]; when `cancel` is set, it is [`Elicited::Cancel`] at once.
    pub async fn elicit(&self, question: &Elicitation, cancel: &CancellationToken) -> Elicited {
        let Some(elicitor) = &self.elicitor else { return Elicited::Decline };
        let _wait = self.board.as_ref().map(|board| {
            let call = Arc::clone(&question.call);
            board.wait(Wait::Elicitation { call })
        });
        let asked = async {
            let _floor = self.floor.lock().await;
            match self.time {
                None => elicitor.elicit(question).await,
                Some(time) => {
                    let answer = tokio::time::timeout(time, elicitor.elicit(question)).await;
                    answer.unwrap_or(Elicited::Cancel)
                }
            }
        };
        tokio::select! {
            biased;
            () = cancel.cancelled() => Elicited::Cancel,
            answer = asked => answer,
        }
    }

    /// Whoever does not answer in this time does not want to.
    pub(crate) fn within(mut self, time: Option<Duration>) -> Self {
        self.time = time;
        self
    }

    /// Waits for answers are seen on the board.
    pub(crate) fn seen_on(mut self, board: Board) -> Self {
        self.board = Some(board);
        self
    }
}

impl fmt::Debug for Host {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Host")
            .field("state", &self.state.is_some())
            .field("elicitor", &self.elicitor.is_some())
            .finish_non_exhaustive()
    }
}
