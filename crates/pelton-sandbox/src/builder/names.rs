//! Protected names that are not there, and may not be made. Nothing can be mounted where nothing is, and something empty in
//! such a place would be a configuration to programs that read it in passing; so the kernel asks here, through a seccomp
//! listener, before it makes a name. The first process inside answers.
//!
//! A program that changes its words between the question and the call gets its way: what it made is found afterwards and undone,
//! as where there is no listener ([`watch`](crate::Prepared::finish)). So is what a program makes that shows its memory to nobody.

use std::ffi::OsStr;
use std::fs::{self, File, Metadata};
use std::io;
use std::os::fd::{AsRawFd, FromRawFd, OwnedFd, RawFd};
use std::os::unix::ffi::OsStrExt;
use std::os::unix::fs::{FileExt, MetadataExt};
use std::path::{Path, PathBuf};
use std::thread;

use nix::errno::Errno;
use nix::libc::{self, c_int, c_long, c_ulong};
use seccompiler::sock_filter;

use super::{Failure, failed};
use crate::limits::{LINKS_FOLLOWED_MAX, PATH_BYTES_MAX};
use crate::nested::is_worked_in;
use crate::orders::Orders;
use crate::plan::Names;

/// Whoever is asked before a name is made.
pub(super) struct Listener {
    questions: OwnedFd,
    places: Vec<(Directory, Names)>,
    /// Directories in and below which no protected name may be made.
    deep: Vec<PathBuf>,
}

/// Asks to be asked, for this process and all it starts. Nobody, where there is nothing to hold or the kernel does not ask.
pub(super) fn listen(orders: &Orders) -> Option<Listener> {
    // The numbers of processes would be those of others.
    if orders.places.is_empty() && orders.deep.is_empty() || orders.old_proc {
        return None;
    }
    let place = |dir: &Path| fs::metadata(dir).ok().map(|about| Directory::of(&about));
    let places = orders.places.iter().filter_map(|known| Some((place(&known.dir)?, known.names)));
    let places: Vec<_> = places.collect();
    let program = program();
    // Whoever is being asked about is not woken by signals, where the kernel knows how: it would only ask again.
    let flags = [libc::SECCOMP_FILTER_FLAG_WAIT_KILLABLE_RECV, 0];
    flags.into_iter().find_map(|patient| install(&program, patient)).map(|questions| Listener {
        questions,
        places,
        deep: orders.deep.clone(),
    })
}

impl Listener {
    /// What has to stay open.
    pub fn key(&self) -> &OwnedFd {
        &self.questions
    }

    /// Answers from now on, beside everything else, for as long as this process lives.
    pub fn serve(self) -> Result<(), Failure> {
        let serve = move || while !matches!(self.answer_one(), Err(Errno::EBADF | Errno::EINVAL)) {};
        thread::Builder::new().spawn(serve).map(drop).map_err(failed("nobody can watch over names"))
    }

    fn answer_one(&self) -> Result<(), Errno> {
        // SAFETY: a record of plain numbers, for which the kernel wants zeros.
        let mut question: libc::seccomp_notif = unsafe { std::mem::zeroed() };
        self.ask(RECEIVE, (&raw mut question).cast())?;
        let may_be_made = !self.is_refused(&question);
        let mut answer = libc::seccomp_notif_resp {
            id: question.id,
            val: 0,
            error: if may_be_made { 0 } else { -libc::EROFS },
            // One bit.
            flags: if may_be_made { libc::SECCOMP_USER_NOTIF_FLAG_CONTINUE as u32 } else { 0 },
        };
        // Whoever asked may be gone by now.
        match self.ask(SEND, (&raw mut answer).cast()) {
            Err(Errno::ENOENT) => Ok(()),
            other => other,
        }
    }

    /// `record` must be of the kind that the request names.
    fn ask(&self, request: libc::Ioctl, record: *mut libc::c_void) -> Result<(), Errno> {
        // SAFETY: the descriptor is open, and the record is as large as the request says.
        let done = unsafe { libc::ioctl(self.questions.as_raw_fd(), request, record) };
        Errno::result(done).map(drop)
    }

    /// Whether the call would make a protected name.
    fn is_refused(&self, question: &libc::seccomp_notif) -> bool {
        let Ok(asker) = Asker::new(question) else { return false };
        let Some(mut path) = asker.path() else { return false };
        for _ in 0..LINKS_FOLLOWED_MAX {
            let may_be_protected = path.file_name().is_some_and(is_ever_protected);
            if !may_be_protected && !asker.follows() {
                return false;
            }
            let (Some(name), Some(dir)) = (path.file_name(), path.parent()) else { return false };
            let Some(found) = asker.find(dir).map(|dir| dir.join(name)) else { return false };
            if may_be_protected && self.is_protected(&found) {
                return found.symlink_metadata().is_err();
            }
            // A link to a name that is not there makes that name.
            let Some(target) = asker.follows().then(|| fs::read_link(&found).ok()).flatten() else {
                return false;
            };
            path = found.parent().unwrap_or(&found).join(target);
        }
        false
    }

    fn is_protected(&self, path: &Path) -> bool {
        let (Some(name), Some(dir)) = (path.file_name(), path.parent()) else { return false };
        let Ok(known) = fs::metadata(dir).map(|about| Directory::of(&about)) else { return false };
        self.places.iter().any(|(place, names)| *place == known && names.hold(name))
            || Names::Project.hold(name) && self.is_deep(dir)
    }

    fn is_deep(&self, dir: &Path) -> bool {
        let Ok(real) = fs::canonicalize(dir) else { return false };
        self.deep.iter().any(|top| real.strip_prefix(top).is_ok_and(is_worked_in))
    }
}

/// Whether a name is protected in any place.
fn is_ever_protected(name: &OsStr) -> bool {
    [Names::Project, Names::Repository].iter().any(|names| names.hold(name))
}

/// A directory, whatever it is called.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct Directory {
    device: u64,
    inode: u64,
}

impl Directory {
    fn of(about: &Metadata) -> Self {
        Self { device: about.dev(), inode: about.ino() }
    }
}

/// Who wants to make a name, and which.
struct Asker {
    /// In `/proc`.
    home: PathBuf,
    memory: File,
    call: &'static Maker,
    args: [u64; 6],
}

impl Asker {
    fn new(question: &libc::seccomp_notif) -> io::Result<Self> {
        let number = c_long::from(question.data.nr);
        let call = MAKERS.iter().find(|maker| maker.number == number).ok_or(io::ErrorKind::Unsupported)?;
        let home = PathBuf::from(format!("/proc/{}", question.pid));
        let memory = File::open(home.join("mem"))?;
        Ok(Self { home, memory, call, args: question.data.args })
    }

    /// The name, as a path that can be used here. None for a call that makes nothing.
    fn path(&self) -> Option<PathBuf> {
        if let Flags::Behind(arg) = self.call.flags {
            let mut flags = [0; 8];
            self.memory.read_exact_at(&mut flags, self.args[arg]).ok()?;
            if u64::from_ne_bytes(flags) & CREATES == 0 {
                return None;
            }
        }
        let mut bytes = vec![0; PATH_BYTES_MAX];
        let length = self.memory.read_at(&mut bytes, self.args[self.call.path]).ok()?;
        let end = bytes[..length].iter().position(|byte| *byte == 0)?;
        let said = Path::new(OsStr::from_bytes(&bytes[..end]));
        // Where relative paths start. The number is of 32 bits, with a sign.
        let base = match self.call.dir.map(|arg| self.args[arg] as u32 as RawFd) {
            None | Some(libc::AT_FDCWD) => self.home.join("cwd"),
            Some(number) => self.home.join(format!("fd/{number}")),
        };
        Some(base.join(said))
    }

    fn follows(&self) -> bool {
        !matches!(self.call.flags, Flags::None)
    }

    /// A directory as this process would name it: links on the way are followed, and `/proc/self` is whoever asks.
    fn find(&self, dir: &Path) -> Option<PathBuf> {
        let mut found = PathBuf::from("/");
        let mut ahead: Vec<PathBuf> = parts(dir);
        let mut links = 0;
        while let Some(part) = ahead.pop() {
            if part.has_root() {
                found = PathBuf::from("/");
                continue;
            }
            let next = found.join(&part);
            if next == Path::new("/proc/self") || next == Path::new("/proc/thread-self") {
                found.clone_from(&self.home);
                continue;
            }
            // What processes have open, the kernel itself follows: it may have no name.
            let link = if next.starts_with(&self.home) { None } else { fs::read_link(&next).ok() };
            match link {
                Some(_) if links == LINKS_FOLLOWED_MAX => return None,
                Some(target) => {
                    links += 1;
                    ahead.extend(parts(&target));
                }
                None => found = next,
            }
        }
        Some(found)
    }
}

/// The parts of a path, the last one first.
fn parts(path: &Path) -> Vec<PathBuf> {
    path.components().rev().map(|part| PathBuf::from(part.as_os_str())).collect()
}

/// A call that makes a name.
struct Maker {
    number: c_long,
    /// Which word of it names the directory that relative paths start from; the working directory, if none.
    dir: Option<usize>,
    /// Which word points to the path.
    path: usize,
    flags: Flags,
}

/// Where a call says that it makes something.
#[derive(Clone, Copy)]
enum Flags {
    /// It always does, and follows no link.
    None,
    /// It always does, and follows links.
    Always,
    /// In this word.
    In(usize),
    /// Behind this word.
    Behind(usize),
}

const CREATES: u64 = libc::O_CREAT as u64;

const fn maker(number: c_long, dir: Option<usize>, path: usize, flags: Flags) -> Maker {
    Maker { number, dir, path, flags }
}

const MAKERS: &[Maker] = &[
    maker(libc::SYS_openat, Some(0), 1, Flags::In(2)),
    maker(libc::SYS_openat2, Some(0), 1, Flags::Behind(2)),
    maker(libc::SYS_mkdirat, Some(0), 1, Flags::None),
    maker(libc::SYS_mknodat, Some(0), 1, Flags::None),
    maker(libc::SYS_linkat, Some(2), 3, Flags::None),
    maker(libc::SYS_symlinkat, Some(1), 2, Flags::None),
    #[cfg(not(target_arch = "riscv64"))]
    maker(libc::SYS_renameat, Some(2), 3, Flags::None),
    maker(libc::SYS_renameat2, Some(2), 3, Flags::None),
    #[cfg(target_arch = "x86_64")]
    maker(libc::SYS_open, None, 0, Flags::In(1)),
    #[cfg(target_arch = "x86_64")]
    maker(libc::SYS_creat, None, 0, Flags::Always),
    #[cfg(target_arch = "x86_64")]
    maker(libc::SYS_mkdir, None, 0, Flags::None),
    #[cfg(target_arch = "x86_64")]
    maker(libc::SYS_mknod, None, 0, Flags::None),
    #[cfg(target_arch = "x86_64")]
    maker(libc::SYS_link, None, 1, Flags::None),
    #[cfg(target_arch = "x86_64")]
    maker(libc::SYS_symlink, None, 1, Flags::None),
    #[cfg(target_arch = "x86_64")]
    maker(libc::SYS_rename, None, 1, Flags::None),
];

const RECEIVE: libc::Ioctl = libc::_IOWR::<libc::seccomp_notif>(b'!' as u32, 0);
const SEND: libc::Ioctl = libc::_IOWR::<libc::seccomp_notif_resp>(b'!' as u32, 1);

/// The kernel asks about every call that makes a name, and about no other. That calls come with numbers of this processor is
/// seen to by the other filters.
fn program() -> Vec<sock_filter> {
    const LOAD: u16 = 0x20; // BPF_LD | BPF_W | BPF_ABS
    const JUMP_IF_EQUAL: u16 = 0x15; // BPF_JMP | BPF_JEQ | BPF_K
    const JUMP_IF_BITS: u16 = 0x45; // BPF_JMP | BPF_JSET | BPF_K
    const RETURN: u16 = 0x06; // BPF_RET | BPF_K
    const ARGS_AT: u32 = 16;
    let statement = |code, jt, jf, k| sock_filter { code, jt, jf, k };
    let ask = || statement(RETURN, 0, 0, libc::SECCOMP_RET_USER_NOTIF);
    let allow = || statement(RETURN, 0, 0, libc::SECCOMP_RET_ALLOW);
    let mut program = vec![statement(LOAD, 0, 0, 0)];
    for maker in MAKERS {
        let number = u32::try_from(maker.number).unwrap_or(u32::MAX);
        match maker.flags {
            Flags::In(arg) => program.extend([
                // Another call: over the next four.
                statement(JUMP_IF_EQUAL, 0, 4, number),
                // The lower half of the word comes first on the processors we know. `arg` is below six.
                statement(LOAD, 0, 0, ARGS_AT + 8 * arg as u32),
                statement(JUMP_IF_BITS, 0, 1, libc::O_CREAT.cast_unsigned()),
                ask(),
                allow(),
            ]),
            _ => program.extend([statement(JUMP_IF_EQUAL, 0, 1, number), ask()]),
        }
    }
    program.push(allow());
    program
}

fn install(program: &[sock_filter], patient: c_ulong) -> Option<OwnedFd> {
    let program = libc::sock_fprog {
        len: u16::try_from(program.len()).ok()?,
        // The same record under another name; the kernel only reads it.
        filter: program.as_ptr().cast_mut().cast(),
    };
    let flags = libc::SECCOMP_FILTER_FLAG_NEW_LISTENER | patient;
    // SAFETY: the record and the statements it points to live until the call has ended.
    let number =
        unsafe { libc::syscall(libc::SYS_seccomp, libc::SECCOMP_SET_MODE_FILTER, flags, &raw const program) };
    let number = c_int::try_from(number).ok().filter(|number| *number >= 0)?;
    // SAFETY: the kernel just made this descriptor, and nobody else has it.
    Some(unsafe { OwnedFd::from_raw_fd(number) })
}
