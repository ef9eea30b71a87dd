//! Ending a submission from outside.

use std::sync::{Arc, Mutex, PoisonError};

use tokio_util::sync::CancellationToken;

/// Ends the running submission of an engine, from anywhere. Without one it does nothing.
#[derive(Debug, Clone)]
pub struct Interrupter {
    /// Ends everything, for good.
    host: CancellationToken,
    running: Arc<Mutex<CancellationToken>>,
}

impl Interrupter {
    /// Ends the running submission. It still answers open calls and gives its result.
    pub fn interrupt(&self) {
        self.running.lock().unwrap_or_else(PoisonError::into_inner).cancel();
    }

    pub(crate) fn new(host: CancellationToken) -> Self {
        Self { running: Arc::new(Mutex::new(host.child_token())), host }
    }

    pub(crate) fn fresh(&self) -> CancellationToken {
        let token = self.host.child_token();
        *self.running.lock().unwrap_or_else(PoisonError::into_inner) = token.clone();
        token
    }
}
