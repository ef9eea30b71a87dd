//! Loaded in front of the C library by the crash tests (`LD_PRELOAD`): it names every write and sync of a process that
//! matters after a crash, and kills the process at the one it was told, before it, in the middle of it or behind it; or says
//! that the disk is full. What is shipped knows nothing of it.
//!
//! `CRASH_LOG` is the file the names go to; `CRASH_AT` is the name at which the process dies; `CRASH_FULL` is the name from
//! which on the disk is full, until the file `CRASH_ROOM` is there.

use std::cell::Cell;
use std::collections::HashMap;
use std::ffi::{CStr, c_char, c_int, c_void};
use std::fs::{File, OpenOptions};
use std::io::Write;
use std::sync::{Mutex, OnceLock};

type WriteFn = unsafe extern "C" fn(c_int, *const c_void, usize) -> isize;
type SyncFn = unsafe extern "C" fn(c_int) -> c_int;

unsafe extern "C" {
    fn dlsym(handle: *mut c_void, name: *const c_char) -> *mut c_void;
    fn getpid() -> c_int;
    fn kill(pid: c_int, signal: c_int) -> c_int;
    fn __errno_location() -> *mut c_int;
}

const SIGKILL: c_int = 9;
const ENOSPC: c_int = 28;

struct Plan {
    log: Mutex<(File, HashMap<String, u32>)>,
    at: Option<String>,
    full: Option<String>,
    room: Option<String>,
    is_full: Mutex<bool>,
}

/// What is planned for this process. Its children are none of our business: the first one that comes is it.
fn plan() -> Option<&'static Plan> {
    static PLAN: OnceLock<Option<Plan>> = OnceLock::new();
    PLAN.get_or_init(|| {
        let log = std::env::var("CRASH_LOG").ok()?;
        let file = OpenOptions::new().append(true).create_new(true).open(log).ok()?;
        let variable = |name: &str| std::env::var(name).ok();
        Some(Plan {
            log: Mutex::new((file, HashMap::new())),
            at: variable("CRASH_AT"),
            full: variable("CRASH_FULL"),
            room: variable("CRASH_ROOM"),
            is_full: Mutex::new(false),
        })
    })
    .as_ref()
}

thread_local! {
    static INSIDE: Cell<bool> = const { Cell::new(false) };
}

/// Runs what may itself write, without looking at that.
fn unwatched<T>(work: impl FnOnce() -> T) -> Option<T> {
    if INSIDE.try_with(|inside| inside.replace(true)).unwrap_or(true) {
        return None;
    }
    let done = work();
    let _ = INSIDE.try_with(|inside| inside.set(false));
    Some(done)
}

enum Moment {
    Before,
    Torn,
    Behind,
}

impl Plan {
    /// The name of what is about to be done; the same kind of thing is counted.
    fn name(&self, kind: &str) -> String {
        let mut log = self.log.lock().unwrap();
        let count = log.1.entry(kind.to_owned()).or_default();
        *count += 1;
        let name = format!("{kind} {count}");
        let _ = writeln!(log.0, "{name}");
        name
    }

    fn dies(&self, name: &str, moment: &Moment) -> bool {
        let moment = match moment {
            Moment::Before => "before",
            Moment::Torn => "torn",
            Moment::Behind => "behind",
        };
        self.at.as_deref() == Some(&format!("{moment} {name}"))
    }

    fn is_full(&self, name: &str) -> bool {
        let mut is_full = self.is_full.lock().unwrap();
        *is_full |= self.full.as_deref() == Some(name);
        *is_full && !self.room.as_ref().is_some_and(|room| std::path::Path::new(room).exists())
    }
}

fn die() -> ! {
    // SAFETY: no memory is involved.
    unsafe { kill(getpid(), SIGKILL) };
    loop {
        std::hint::spin_loop();
    }
}

/// What a descriptor is, if it matters.
fn target(fd: c_int) -> Option<&'static str> {
    if fd == 1 {
        return Some("told");
    }
    let path = std::fs::read_link(format!("/proc/self/fd/{fd}")).ok()?;
    let name = path.to_string_lossy().into_owned();
    if name.ends_with(".jsonl") {
        return Some("line");
    }
    (name.contains("/projects") || name.ends_with("/config")).then_some("folder")
}

/// What a line is about.
fn subject(bytes: &[u8]) -> &'static str {
    const SUBJECTS: [(&str, &str); 14] = [
        ("\"type\":\"result\"", "outcome"),
        ("\"subtype\":\"init\"", "init"),
        ("\"subtype\":\"compact_boundary\"", "boundary"),
        ("\"type\":\"tool_result\"", "result"),
        ("\"type\":\"tool_use\"", "call"),
        ("\"type\":\"thinking\"", "thinking"),
        ("\"type\":\"permission-question\"", "question"),
        ("\"type\":\"queue-operation\"", "queue"),
        ("\"type\":\"tombstone\"", "tombstone"),
        ("\"type\":\"system\"", "note"),
        ("\"isMeta\":true", "surroundings"),
        ("\"role\":\"assistant\"", "answer"),
        ("\"role\":\"user\"", "prompt"),
        ("\"type\":\"control", "control"),
    ];
    let text = String::from_utf8_lossy(&bytes[..bytes.len().min(64 * 1024)]);
    SUBJECTS.iter().find(|(mark, _)| text.contains(mark)).map_or("other", |(_, subject)| subject)
}

/// The function of that name behind this library.
fn next(name: &CStr) -> *mut c_void {
    // SAFETY: the name is a string that ends in zero, and -1 means the next library.
    unsafe { dlsym(-1isize as *mut c_void, name.as_ptr()) }
}

/// # Safety
/// As of `write(2)`.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn write(fd: c_int, bytes: *const c_void, count: usize) -> isize {
    static REAL: OnceLock<usize> = OnceLock::new();
    let real = *REAL.get_or_init(|| next(c"write") as usize);
    // SAFETY: the C library has this function with these arguments.
    let real: WriteFn = unsafe { std::mem::transmute(real) };
    let named = unwatched(|| {
        let plan = plan()?;
        let target = target(fd).filter(|target| *target != "folder")?;
        // SAFETY: the caller says that so many bytes are there.
        let read = unsafe { std::slice::from_raw_parts(bytes.cast::<u8>(), count) };
        Some((plan, plan.name(&format!("{target} {}", subject(read)))))
    });
    let Some((plan, name)) = named.flatten() else {
        // SAFETY: as the caller says.
        return unsafe { real(fd, bytes, count) };
    };
    if plan.dies(&name, &Moment::Before) {
        die();
    }
    let torn = plan.dies(&name, &Moment::Torn);
    if unwatched(|| name.starts_with("line") && plan.is_full(&name)).unwrap_or_default() {
        // SAFETY: errno is always there.
        unsafe { *__errno_location() = ENOSPC };
        return -1;
    }
    // SAFETY: as the caller says, or half of it.
    let written = unsafe { real(fd, bytes, if torn { count / 2 } else { count }) };
    if torn || plan.dies(&name, &Moment::Behind) {
        die();
    }
    written
}

/// The beginning of a piece, and how many bytes it has.
#[repr(C)]
pub struct Piece {
    bytes: *const c_void,
    count: usize,
}

/// How lines are written that nobody waits for: a write like any other.
///
/// # Safety
/// As of `pwritev2(2)`, with one piece.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn pwritev2(fd: c_int, pieces: *const Piece, _: c_int, _: i64, _: c_int) -> isize {
    // SAFETY: as the caller says.
    unsafe { write(fd, (*pieces).bytes, (*pieces).count) }
}

/// # Safety
/// As of the function it stands before.
unsafe fn sync(fd: c_int, function: &CStr) -> c_int {
    // SAFETY: the C library has this function with this argument.
    let real: SyncFn = unsafe { std::mem::transmute(next(function) as usize) };
    let named = unwatched(|| {
        let plan = plan()?;
        Some((plan, plan.name(&format!("sync of {}", target(fd)?))))
    });
    let Some((plan, name)) = named.flatten() else {
        // SAFETY: as the caller says.
        return unsafe { real(fd) };
    };
    if plan.dies(&name, &Moment::Before) {
        die();
    }
    // SAFETY: as the caller says.
    let done = unsafe { real(fd) };
    if plan.dies(&name, &Moment::Behind) {
        die();
    }
    done
}

/// # Safety
/// As of `fdatasync(2)`.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn fdatasync(fd: c_int) -> c_int {
    // SAFETY: as the caller says.
    unsafe { sync(fd, c"fdatasync") }
}

/// # Safety
/// As of `fsync(2)`.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn fsync(fd: c_int) -> c_int {
    // SAFETY: as the caller says.
    unsafe { sync(fd, c"fsync") }
}
