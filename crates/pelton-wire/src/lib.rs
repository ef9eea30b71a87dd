//! The words that cross a wall: what goes to clients, to disk and to models. No behaviour, no IO.
//!
//! A part of Pelton: it goes along with the engine and makes no promise of its own. Embedders start at the crate `pelton`.

pub mod usage; // what a model call consumed
pub mod stop; // why an answer ended
pub mod content; // content blocks we make ourselves
pub mod message; // the message object of frames and transcripts
pub mod line; // JSON lines around bytes that exist already
pub mod cache; // how long a server keeps what it was sent
pub mod pieces; // bytes in shared pieces
