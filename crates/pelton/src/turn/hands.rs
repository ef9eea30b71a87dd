//! Everything the loop may touch. The real one is `live`; tests bring worlds of their own.

use super::decide::{Limits, Reply, Seen, Transition};

/// What the loop does; [`decide`](super::decide()) says when.
pub trait Hands: Send {
    /// The bounds of this submission.
    fn limits(&self) -> &Limits;

    /// Asks the model. Tools start while it answers.
    fn ask(&mut self) -> impl Future<Output = Reply> + Send;

    /// Waits for the tools of the answer and records their results in call order.
    fn finish_tools(&mut self) -> impl Future<Output = Seen> + Send;

    /// Makes the next trip ready, and tells why there is one.
    fn prepare(&mut self, transition: Transition) -> impl Future<Output = ()> + Send;
}
