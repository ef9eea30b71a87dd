//! Every number that bounds something.

use std::time::Duration;

/// The most names looked at in one directory.
pub const DIRECTORY_ENTRIES_MAX: usize = 100_000;
/// How deep below a writable directory protected names are looked for.
pub const NESTED_DEPTH_MAX: usize = 4;
/// How many names are looked at for that, in all directories together.
pub const NESTED_ENTRIES_MAX: usize = 20_000;
/// How many protected names are found at most.
pub const NESTED_FOUND_MAX: usize = 200;
/// The most mounts of a plan: what is beyond is an error, not left out.
pub const MOUNTS_MAX: usize = 2_000;

/// The most bytes of a protected file that are kept to be put back.
pub const KEPT_FILE_BYTES_MAX: u64 = 1024 * 1024;
/// The same for all of them together.
pub const KEPT_BYTES_MAX: u64 = 16 * 1024 * 1024;
/// The most files below protected directories that are remembered.
pub const KEPT_ENTRIES_MAX: usize = 4_000;
/// How many names are tried for something that is moved out of the way.
pub const ASIDE_NAMES_MAX: usize = 1_000;

/// The longest path that is read from a process that wants to make a name: the kernel takes no longer one.
pub const PATH_BYTES_MAX: usize = 4096;
/// How many links are followed to the name that would be made; the kernel follows no more.
pub const LINKS_FOLLOWED_MAX: usize = 40;

/// Where the bridge listens inside the box.
pub const BRIDGE_PORT: u16 = 3128;
/// Connections over the bridge at one time.
pub const BRIDGE_CONNECTIONS_MAX: usize = 64;
/// Bytes moved over the bridge at once.
pub const BRIDGE_CHUNK_BYTES: usize = 64 * 1024;

/// Memory for shared memory inside the box.
pub const SHARED_MEMORY_BYTES_MAX: u64 = 1024 * 1024 * 1024;

/// How long it may take to find out what the machine can do, for each form.
pub const PROBE_TIME_MAX: Duration = Duration::from_secs(5);
/// The most bytes of a complaint that are kept.
pub const COMPLAINT_BYTES_MAX: usize = 4096;

/// How many violations are named.
pub const VIOLATIONS_MAX: usize = 10;
