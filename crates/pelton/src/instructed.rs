//! Instruction files, as those who watch the session hear of them.

use std::path::PathBuf;

/// An instruction file that the model is told.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub(crate) struct Instructed {
    /// The file.
    pub file: PathBuf,
    /// Whose it is, in the words hooks know.
    pub whose: &'static str,
    /// Why it is told.
    pub reason: &'static str,
    /// What a rule says which files it is about.
    pub globs: Vec<String>,
    /// The file that was read, where that is why.
    pub trigger: Option<PathBuf>,
    /// The file that imports it.
    pub parent: Option<PathBuf>,
}
