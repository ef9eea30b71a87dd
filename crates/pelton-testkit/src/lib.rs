//! A scripted model server: real HTTP and server-sent events on loopback, as strict as the real API.

pub mod cache;
pub mod catalogue;
pub mod issued;
pub mod strict;
pub mod tokens;
