//! What bytes mean to servers of one family: how a request is written, how events and errors are read. Pure.

pub(crate) mod messages;
