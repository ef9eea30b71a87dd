//! A scripted model server: real HTTP and server-sent events on loopback, as strict as the real API.
//!
//! Write down what the model says ([`script`]), start it, point a client at [`ScriptedModel::base_url`], look at
//! what came in ([`Seen`]). Requests the real API would refuse are refused in its words ([`strict`]), token counts
//! and cache hits are reported as it does, and everything that goes wrong on a network can
//! be made to go wrong ([`script::travel`]).
//!
//! ```
//! use pelton_testkit::{Script, Step, text, tool};
//! use serde_json::json;
//!
//! # #[tokio::main(flavor = "current_thread")]
//! # async fn main() -> Result<(), Box<dyn std::error::Error>> {
//! let model = Script::new()
//!     .step(Step::status(529).header("retry-after", "0"))
//!     .reply([text("Let me look."), tool("Read", json!({"file_path": "a.txt"}))])
//!     .reply([text("It says hello.")])
//!     .start()
//!     .await?;
//! assert!(model.base_url().starts_with("http://127.0.0.1:"));
//! // … run the program under test against it …
//! model.assert_clean();
//! # Ok(())
//! # }
//! ```
//!
//! The same as a program: [`serve`], which is `pelton mock SCRIPT`.
//!
//! The same without a network, for tests on a stopped clock: [`Script::start_in_memory`] and
//! [`ScriptedModel::transport`], with a [`SeededWorld`] for time and chance.

pub mod script; // what the model does, request by request
pub mod strict; // what the API refuses

mod base64;
mod cache; // prompt-cache accounting
mod catalogue; // the models and what each accepts
mod cut; // texts into deltas
mod dice; // seeded chance
mod http; // HTTP/1.1, breakable on purpose
mod image;
mod issued; // signatures of thinking blocks
mod memory; // the server without a network
mod messages; // the Messages dialect
mod pdf;
mod play; // events into timed bytes
mod prompt;
mod record; // requests and replies as JSON lines
mod serve; // the scripted model as a program
mod server; // the server and a test's handle to it
mod tokens; // deterministic token estimates
mod world; // time and chance from a seed

pub use http::{BODY_BYTES_MAX, HEAD_BYTES_MAX, HEADERS_MAX};
pub use memory::MemoryTransport;
pub use play::Ending;
pub use record::REDACTED;
pub use script::part::{
    Fragments, Part, comment, error, event, gate, pause, ping, raw_block, raw_block_with_deltas,
    redacted_thinking, text, thinking, tool, tool_with_json,
};
pub use script::travel::{Chunk, EarlyEnd, Fault, LineEnd, Pace, Place};
pub use script::when::When;
pub use script::{Script, ScriptError, Step};
pub use serve::{Notice, ServeOptions, Serving, serve};
pub use server::seen::{Illegal, Seen, Sent, SentEvent, Unexpected};
pub use server::state::{FAILURES_KEPT_MAX, REQUEST_BYTES_KEPT_MAX, REQUESTS_KEPT_MAX};
pub use server::summary::Summary;
pub use server::{CONNECTIONS_MAX, CONTROL_PATH, ScriptedModel, StartError, WAIT_SECONDS_MAX};
pub use world::SeededWorld;
