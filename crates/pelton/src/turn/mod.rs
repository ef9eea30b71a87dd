//! One submission, from the user's words to a [`Terminal`]. Start at [`run`]; the choices are in [`decide`].

mod run; // the loop
mod decide; // what to do next, and why: pure
mod memory; // what it may do, and what it has done: pure
mod reasons; // why it goes on, and why it ends
pub(crate) mod budget; // the money of a run: pure
pub(crate) mod side; // questions beside the conversation
pub(crate) mod spending; // the same behind a lock, with prices and an account
mod bystander; // questions about the conversation that are no part of it
mod hands; // everything the loop may touch
pub(crate) mod live; // the hands of a real session

pub use bystander::{Bystander, NotAnswered};
pub(crate) use decide::{Blocked, Seen, Tools, ends_at_once};
pub use memory::Limits;
pub use reasons::{Terminal, Transition};
pub(crate) use run::{End, run};
pub use spending::CostWatch;

#[cfg(test)]
mod tests;
