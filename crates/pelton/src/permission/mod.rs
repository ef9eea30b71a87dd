//! What may run. `rules` judges words and is pure; [`Gate`] looks at the disk, so that a symbolic link cannot
//! talk its way out of the working directories. [`Permissions`] is what holds now, and [`Asker`] decides what is left
//! open.

mod rules; // rules, modes and the order they are asked in: pure
pub(crate) mod shell; // which commands only look, and at what: pure
mod gate; // resolves paths, then asks the rules
mod update; // changes of what may run: pure
mod standing; // what the session started with, and what was changed since
mod ask; // questions to whoever sits in front

pub use ask::{Answer, Asker, Question, Questions, suggestions};
pub use gate::{Access, Readable};
pub use rules::{Cause, Mode, Rule, RuleError, RuleSet};
pub use standing::{Permissions, TooMany};
pub use update::{BadUpdate, Behavior, Change, Destination, Update};

pub(crate) use gate::{Found, Gate};
pub(crate) use rules::{HookSays, Verdict};
