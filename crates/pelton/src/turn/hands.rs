//! Everything the loop may touch. The real one is `live`; tests bring worlds of their own.

use super::decide::{Blocked, Compaction, Reply, Tools, Verdict};
use super::memory::{Gauges, Limits};
use super::reasons::Transition;

/// What the loop does; [`decide`](super::decide()) says when.
pub trait Hands: Send {
    /// The bounds of this submission.
    fn limits(&self) -> &Limits;

    /// The figures choices depend on.
    fn gauges(&self) -> Gauges;

    /// Makes what will be sent fit.
    fn fit(&mut self) -> impl Future<Output = Fit> + Send;

    /// Asks the model. Tools start while it answers.
    fn ask(&mut self) -> impl Future<Output = Reply> + Send;

    /// Waits for the tools of the answer and records their results in call order.
    fn finish_tools(&mut self) -> impl Future<Output = Tools> + Send;

    /// Forgets the answer: nobody meets it or what its calls found again. Tells whether that is on record.
    fn discard_answer(&mut self) -> impl Future<Output = bool> + Send;

    /// Commits the staged folds of the context; tells whether it became smaller.
    fn drain_collapse(&mut self) -> impl Future<Output = bool> + Send;

    /// Compacts the context because the API refused it.
    fn reactive_compact(&mut self) -> impl Future<Output = Compaction> + Send;

    /// Asks the stop hooks.
    fn stop_hooks(&mut self) -> impl Future<Output = Verdict> + Send;

    /// Makes the next trip ready, and tells why there is one.
    fn prepare(&mut self, transition: Transition) -> impl Future<Output = ()> + Send;
}

/// Whether the model can be asked.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Fit {
    /// It can.
    Ready,
    /// It must not.
    Blocked(Blocked),
}
