//! The terminal: a conversation in the terminal's own scrollback, with a small live area below it. It translates
//! events into lines and keys into words for the engine, and decides nothing.
//!
//! A part of Pelton: it goes along with the engine and makes no promise of its own. Embedders start at the crate `pelton`.

mod session; // a session at a terminal: here things are done
mod app; // what is shown, and what keys mean
mod ask; // questions to the person in front
mod commands; // slash commands of the terminal's own
mod draft; // the words that are being written
mod feed; // the conversation as lines
mod status; // the line about the session

mod terminal; // the terminal itself
mod paint; // what is on it: lines that are finished, and the live ones
mod row; // a line as bytes

pub mod theme; // what everything looks like: roles, and what a terminal can show of them

pub mod clean; // what others said, made into text that a terminal shows and nothing else
pub mod cells; // text measured and laid out in cells
pub mod highlight; // code in colours
pub mod markdown; // what the model says, as lines that are finished one by one

pub mod diff; // what changed in a file

pub mod input; // the prompt as it is written
pub mod complete; // files and commands that fit what was typed

pub mod limits; // every number that bounds something

pub use paint::OnNarrowing;
pub use session::{
    Left, Logs, Opening, Outside, Standing, StatusCommand, choose, confirm, run, sessions_of, stop_here,
};
pub use terminal::Terminal;
