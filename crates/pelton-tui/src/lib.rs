//! The terminal: a conversation in the terminal's own scrollback, with a small live area below it. It translates
//! events into lines and keys into words for the engine, and decides nothing.
//!
//! A part of Pelton: it goes along with the engine and makes no promise of its own. Embedders start at the crate `pelton`.

pub mod theme; // what everything looks like: roles, and what a terminal can show of them
