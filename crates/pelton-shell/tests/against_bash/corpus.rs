//! Commands that somebody thought of.

pub const NASTY: &[&str] = &["n1 a"];
