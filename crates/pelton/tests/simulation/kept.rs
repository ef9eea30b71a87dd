//! Seeds that once failed, each with what it found.
