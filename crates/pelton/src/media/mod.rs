//! Pictures that fit. Every image that enters a conversation comes in through here and is brought down to what any
//! request may carry, because it stays: a picture that is fine alone is refused once twenty others are beside it.
//!
//! The numbers are in [`limits`](crate::limits). What an image says about itself is read by [`look`]; [`fit`] is the way in.

pub(crate) mod look; // format and size from the first bytes: pure
pub(crate) mod pages; // how many a document has: pure
mod shrink; // opening, scaling and writing one: slow, and asks nobody
mod door; // the way in: beside the runtime, a few at a time

pub(crate) use door::{Entering, enter, fit_file};
pub(crate) use look::Format;
pub(crate) use shrink::Unfit;
