//! The conversation on disk: one JSON object per line, appended and never changed.

mod place; // which file
mod disk; // what it asks of a disk
mod write; // appending, and when it is safe
mod read; // reading it back, whatever happened to it

pub use disk::{Disk, DiskFile, RealDisk};
pub use place::{find_session, newest_session, project_key, session_file};
pub use read::{Loaded, ReadError, read, read_from};
pub use write::{Durability, Facts, Transcript, TranscriptError};
