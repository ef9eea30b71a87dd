//! What may run. [`Rule`] and `judge` weigh words and are pure; `Gate` looks at the disk, so that a symbolic link cannot
//! talk its way out of the working directories. [`Permissions`] is what holds now, and [`Asker`] decides what is left
//! open.

mod mode; // how much runs without asking
mod source; // where a rule was written
mod rule; // one rule: pure
mod rules; // all of them
mod place; // paths as they are judged: pure
pub(crate) mod shell; // what a command line would do: pure
mod decision; // what became of a call, and why
mod judge; // the order in which things are asked: pure
mod gate; // resolves paths, then judges
mod update; // changes of what may run: pure
mod keep; // changes that outlast the session
mod standing; // what the session started with, and what was changed since
mod suggest; // what would let a call and its like run
mod ask; // questions to whoever sits in front

pub use ask::{Answer, Asker, Question, Questions};
pub use decision::{Cause, Decision, Part, Verdict};
pub use gate::{Access, Judged, Readable};
pub use judge::HookSays;
pub use keep::Keeper;
pub use mode::Mode;
pub use rule::{Rule, RuleError};
pub use rules::RuleSet;
pub use source::{Layer, RuleSource};
pub(crate) use standing::Loan;
pub use standing::{Permissions, TooMany};
pub use suggest::suggestions;
pub use update::{BadUpdate, Behavior, Change, Destination, Update};

pub(crate) use gate::{Found, Gate};
pub(crate) use rule::{glob, known_tools};
