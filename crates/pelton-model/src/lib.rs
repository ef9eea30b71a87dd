//! Asking a model.

mod world;

pub use world::{RealWorld, World};
