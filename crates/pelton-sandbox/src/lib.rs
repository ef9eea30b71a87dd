//! A box for shell commands on Linux: what may be written, read and reached, held by the kernel and not by anybody's word.
//!
//! A [`Policy`] says what is wanted. [`probe()`] finds out, once, which [`Form`] of box this machine can build. For each
//! command [`Prepared::new`] makes a [`Plan`] of the policy and the disk, [`Prepared::command`] gives the words to start, and
//! [`Prepared::finish`] looks after what could not be held. Between them the [`helper()`] builds the box, in a process of its
//! own that becomes the command.
//!
//! Two things are never the case: a command that runs in a box with a side missing, and an engine that was itself confined.
//!
//! A part of Pelton: it goes along with the engine and makes no promise of its own. Embedders start at the crate `pelton`.

pub mod policy; // what is wanted, and what is there
pub mod protected; // names that steer other programs
pub mod plan; // what is done about it: pure
mod nested; // protected names further down
mod orders; // a plan as words for the helper, and back: pure
mod sandbox; // one command's box, from before to after
mod bubblewrap; // the same plan for somebody else's program
mod ghosts; // what stands where nothing is
mod watch; // what no mount can hold: before and after
mod probe; // what this machine can do
#[cfg(target_os = "linux")]
mod builder; // the helper, which builds the box
pub mod limits; // every number that bounds something

pub use bubblewrap::find as find_bubblewrap;
#[cfg(target_os = "linux")]
pub use builder::{Failure, helper};
pub use plan::Plan;
pub use policy::{Disk, Network, Policy};
pub use probe::{Ability, probe};
pub use sandbox::{FAILED_CODE, FAILED_WORDS, Form, Helper, Prepared};
pub use watch::{Change, Tampering};
