//! Ending a submission from outside.

use std::sync::{Arc, Mutex, PoisonError};

use tokio_util::sync::CancellationToken;

/// Ends the running submission of an engine, from anywhere. Without one it does nothing.
#[derive(Debug, Clone, Default)]
pub struct Interrupter(Arc<Mutex<CancellationToken>>);

impl Interrupter {
    /// Ends the running submission. It still answers open calls and gives its result.
    pub fn interrupt(&self) {
        self.0.lock().unwrap_or_else(PoisonError::into_inner).cancel();
    }

    pub(super) fn fresh(&self) -> CancellationToken {
        let token = CancellationToken::new();
        *self.0.lock().unwrap_or_else(PoisonError::into_inner) = token.clone();
        token
    }
}
