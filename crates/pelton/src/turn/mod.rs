//! One submission, from the user's words to a [`Terminal`]. Start at [`run`]; the choices are in [`decide`].

mod run; // the loop
mod decide; // what to do next, and why: pure
mod hands; // everything the loop may touch
pub(crate) mod live; // the hands of a real session

pub use decide::{Failure, Limits, Memory, Next, Reply, Seen, Terminal, Transition, decide};
pub use hands::Hands;
pub use run::run;

#[cfg(test)]
mod tests;
