//! What benches share.

pub mod events;
pub mod long_transcript;
