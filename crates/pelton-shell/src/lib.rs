//! What a bash command says, before it runs.
//!
//! [`read`] takes a command line apart into the simple commands that bash would run, wherever they stand in it, with their words as
//! bash would pass them. It is strict: what it does not know for certain is [`Unclear`] as a whole, a [`Doubt`] about a part, or a
//! [`Word`] that is not literal; never a guess. No IO, no environment: a pure function of the text.
//!
//! ```
//! let script = pelton_shell::read(r#"cd 'my dir' && git commit -m "$(date)""#).unwrap();
//! let names: Vec<_> = script.commands.iter().map(|command| command.name()).collect();
//! assert_eq!(names, [Some("cd"), Some("git"), Some("date")]);
//! assert_eq!(script.commands[0].words[1].literal(), Some("my dir"));
//! assert!(script.commands[1].words[3].doubts().substitution);
//! ```
//!
//! A part of Pelton: it goes along with the engine and makes no promise of its own. Embedders start at the crate `pelton`.

mod limits; // every number that bounds the reading
mod script; // the result: commands, redirections, doubts
mod word; // one word: what is certain about it
mod parse; // bash's grammar
mod expand; // from the pieces of a word to the words it becomes: braces, tildes, patterns
mod launch; // programs that run other programs: what runs behind them
mod variables; // which variables a command sets, and which of them steer programs

pub use launch::{
    Behind, Further, behind_plain_launchers, further_commands, has_language, is_seen_through, reads_scripts,
};
pub use limits::{BRACE_WORDS_MAX, COMMAND_MAX_CHARS, NESTING_MAX};
pub use parse::read;
pub use script::{
    Assignment, AssignmentKind, Body, Command, Doubt, DoubtKind, Place, Redirection, RedirectionKind, Script,
    Stage, Unclear,
};
pub use variables::{is_harmless, steers, variables_set};
pub use word::{Part, Word, WordDoubts};
