//! Pelton: an agent engine.

pub mod limits;
pub mod tools;
