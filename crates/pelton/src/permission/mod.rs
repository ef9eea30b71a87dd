//! What may run. `rules` judges words and is pure; [`Gate`] looks at the disk, so that a symbolic link cannot
//! talk its way out of the working directories.

mod rules; // rules, modes and the order they are asked in: pure
pub mod shell; // which commands only look, and at what: pure
mod gate; // resolves paths, then asks the rules

pub use gate::{Access, Gate, Readable};
pub use rules::{Mode, Rule, RuleError, RuleSet, Verdict};
