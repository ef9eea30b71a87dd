//! One submission, from the user's words to a [`Terminal`]. Start at [`run`]; the choices are in [`decide`].

pub(crate) mod budget; // the money of a run: pure
mod decide; // what to do next, and why: pure
mod hands; // everything the loop may touch
pub(crate) mod live;
mod run; // the loop // the hands of a real session

pub use decide::{
    Blocked, Failure, Gauges, Limits, Memory, Next, Reply, Rung, Seen, Terminal, Tools, Transition, Verdict,
    Withheld, decide,
};
pub use hands::{Fit, Hands};
pub use run::run;

#[cfg(test)]
mod tests;
