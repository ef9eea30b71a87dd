//! One question, until it is answered or given up.

use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll};

use futures::Stream;

use crate::ask::Ask;
use crate::client::Road;
use crate::error::{ErrorKind, ModelError};
use crate::step::Step;
use crate::stream::stream;

/// A running call: a stream of [`Step`]s. Pulled; dropping it cancels.
#[must_use = "a call does nothing unless it is polled"]
pub struct Call {
    steps: Pin<Box<dyn Stream<Item = Step> + Send>>,
}

impl Call {
    pub(crate) fn new(_road: Arc<Road>, _ask: Ask) -> Self {
        let steps = stream(1, |steps| async move {
            steps
                .send(Step::Failed(ModelError::new(
                    ErrorKind::Other,
                    "the way to the server is not laid yet",
                )))
                .await;
        });
        Self { steps: Box::pin(steps) }
    }
}

impl Stream for Call {
    type Item = Step;

    fn poll_next(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Option<Step>> {
        self.steps.as_mut().poll_next(cx)
    }
}
