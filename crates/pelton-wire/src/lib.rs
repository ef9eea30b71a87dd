//! The words that cross a wall: what goes to clients, to disk and to models. No behaviour, no IO.

pub mod content; // content blocks we make ourselves
pub mod line; // JSON lines around bytes that exist already
pub mod message; // the message object of frames and transcripts
pub mod stop; // why an answer ended
pub mod usage; // what a model call consumed
