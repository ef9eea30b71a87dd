//! Where an attempt is made: a directory to work in, one beside it that is nobody's business, and people outside who can
//! be reached, signalled and robbed.

use std::ffi::{OsStr, OsString};
use std::fs::{self, File};
use std::io::Read;
use std::net::{TcpListener, UdpSocket};
use std::os::fd::AsRawFd;
use std::os::linux::net::SocketAddrExt;
use std::os::unix::fs::PermissionsExt;
use std::os::unix::net::{SocketAddr, UnixDatagram, UnixListener};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::time::Duration;

use pelton_sandbox::{Form, Helper, Network, Policy, Prepared, Tampering};

use super::attempts::{Attempt, Sign, Way};

pub struct Place {
    dir: tempfile::TempDir,
    victim: Child,
    tcp: TcpListener,
    udp: UdpSocket,
    abstract_name: String,
    /// Sockets somebody listens on.
    _listening: (UnixListener, UnixDatagram, UnixListener),
    /// Something open that is not the command's.
    leaked: File,
}

pub struct Outcome {
    pub succeeded: bool,
    /// The command was started at all.
    pub started: bool,
    pub said: String,
    pub tampering: Vec<Tampering>,
}

impl Place {
    pub fn new(attempt: &Attempt) -> Self {
        let dir = tempfile::tempdir().expect("a directory");
        let at = |name: &str| dir.path().join(name);
        for name in [
            "work/src",
            "work/.git/hooks",
            "work/.git/objects",
            "work/.vscode",
            "work/sub/.git/hooks",
            "out/dir",
            "secrets",
            "tmp",
            "home",
        ] {
            fs::create_dir_all(at(name)).expect(name);
        }
        for (name, text) in [
            ("work/src/main.c", "int main;"),
            ("work/.git/HEAD", "ref: refs/heads/main"),
            ("work/.git/config", "[core]\n"),
            ("work/.vscode/tasks.json", "{}"),
            ("work/.npmrc", "old"),
            ("work/sub/.git/HEAD", "ref: refs/heads/main"),
            ("work/sub/.git/config", "[core]\n"),
            ("out/victim", "old"),
            ("secrets/key", "hush"),
            ("secret-file", "hush"),
        ] {
            fs::write(at(name), text).expect(name);
        }
        // As root the copy belongs to somebody else, and would act for them.
        let suid = at("out/suid");
        fs::copy("/usr/bin/id", &suid).expect("a program");
        if nix::unistd::geteuid().is_root() {
            std::os::unix::fs::chown(&suid, Some(65534), Some(65534)).expect("another owner");
        }
        fs::set_permissions(&suid, PermissionsExt::from_mode(0o4755)).expect("the bit");
        for (from, name) in attempt.before {
            fs::rename(at(from), at(name)).expect("a change beforehand");
        }
        let open = File::options().write(true).open(at("out/victim")).expect("the victim's file");
        let victim = Command::new("/bin/sleep")
            .arg("60")
            .env("TOKEN", "hush-in-the-environment")
            .current_dir(at("out"))
            .stdout(open)
            .spawn()
            .expect("a victim");
        let abstract_name = format!("pelton-{}", victim.id());
        let abstract_address = SocketAddr::from_abstract_name(&abstract_name).expect("a name");
        let listening = (
            UnixListener::bind(at("out/docker.sock")).expect("a socket"),
            UnixDatagram::bind(at("out/log.sock")).expect("a socket"),
            UnixListener::bind_addr(&abstract_address).expect("a socket"),
        );
        listening.1.set_nonblocking(true).expect("no waiting");
        let udp = UdpSocket::bind("127.0.0.1:0").expect("a port");
        udp.set_read_timeout(Some(Duration::from_millis(200))).expect("little waiting");
        let leaked = File::options().write(true).open(at("out/victim")).expect("a file");
        // SAFETY: clears the flags of a descriptor that is open.
        unsafe { nix::libc::fcntl(leaked.as_raw_fd(), nix::libc::F_SETFD, 0) };
        let tcp = TcpListener::bind("127.0.0.1:0").expect("a port");
        Self { victim, tcp, udp, abstract_name, _listening: listening, leaked, dir }
    }

    pub fn path(&self, name: &str) -> PathBuf {
        self.dir.path().canonicalize().expect("a real path").join(name)
    }

    /// Makes the attempt, in a box or without.
    pub fn attempt(mut self, attempt: &Attempt, form: Option<&Form>, helper: &Helper) -> Outcome {
        let work = self.path("work");
        let mut env = self.environment(helper);
        env.extend(attempt.env.iter().map(|(name, value)| {
            (name.into(), value.replace("$OUT", &self.path("out").to_string_lossy()).into())
        }));
        let script: OsString = match attempt.way {
            Way::Shell(script) => script.into(),
            Way::Raw(name) => format!("exec \"$TOOL\" __raw {name}").into(),
        };
        let args = [OsStr::new("-c"), &script];
        let bash = Path::new("/bin/bash");
        let before = self.signs(attempt);
        let (prepared, program, words) = match form {
            None => (None, bash.to_path_buf(), args.map(ToOwned::to_owned).to_vec()),
            Some(form) => {
                let prepared = Prepared::new(form, &self.policy(attempt, &work), &work).expect("a box");
                let (program, words) = prepared.command(helper, bash, &args, &mut env, &[]);
                (Some(prepared), program, words)
            }
        };
        let mut child = Command::new(program)
            .args(words)
            .env_clear()
            .envs(env)
            .current_dir(&work)
            .stdin(Stdio::null())
            .stdout(Stdio::piped())
            .stderr(Stdio::piped())
            .spawn()
            .expect("bash");
        let status = child.wait().expect("its end");
        let mut said = String::new();
        for pipe in [
            child.stdout.take().map(|pipe| Box::new(pipe) as Box<dyn Read>),
            child.stderr.take().map(|pipe| Box::new(pipe) as Box<dyn Read>),
        ] {
            let _ = pipe.expect("a pipe").take(4096).read_to_string(&mut said);
        }
        let tampering = prepared.map(Prepared::finish).unwrap_or_default();
        let succeeded = match attempt.sign {
            Sign::ExitsZero => status.success(),
            _ => self.signs(attempt) != before,
        };
        let started = status.code() != Some(i32::from(pelton_sandbox::FAILED_CODE));
        Outcome { succeeded, started, said, tampering }
    }

    fn policy(&self, attempt: &Attempt, work: &Path) -> Policy {
        Policy {
            writable: vec![work.to_path_buf(), self.path("tmp")],
            // With and without a slash at the end.
            deny_read: vec![
                PathBuf::from(format!("{}/", self.path("secrets").display())),
                self.path("secret-file"),
            ],
            worked_in: vec![work.to_path_buf()],
            home: Some(self.path("home")),
            network: if attempt.loopback { Network::Loopback } else { Network::Off },
            unix_sockets: attempt.unix_sockets,
            ..Policy::default()
        }
    }

    fn environment(&self, helper: &Helper) -> Vec<(OsString, OsString)> {
        let port = self.tcp.local_addr().expect("an address").port().to_string();
        let udp = self.udp.local_addr().expect("an address").port().to_string();
        let texts = [
            ("PATH", "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin".to_owned()),
            ("VICTIM", self.victim.id().to_string()),
            ("DRIVER", std::process::id().to_string()),
            ("PORT", port),
            ("UDP_PORT", udp),
            ("ABSTRACT", self.abstract_name.clone()),
            ("LEAKED", self.leaked.as_raw_fd().to_string()),
        ];
        let paths = [
            ("OUT", self.path("out")),
            ("WORK", self.path("work")),
            ("ROOT", self.path("")),
            ("SECRETS", self.path("secrets")),
            ("SECRET_FILE", self.path("secret-file")),
            ("TMPDIR", self.path("tmp")),
            ("TOOL", helper.program.clone()),
        ];
        let texts = texts.map(|(name, value)| (name.into(), value.into()));
        texts.into_iter().chain(paths.map(|(name, path)| (name.into(), path.into()))).collect()
    }

    /// Whatever shows that an attempt has succeeded.
    fn signs(&mut self, attempt: &Attempt) -> Vec<String> {
        match attempt.sign {
            Sign::ExitsZero => Vec::new(),
            Sign::Outside => tree(&self.path("out"), true),
            Sign::Inside(name) => tree(&self.path("work").join(name), false),
            Sign::VictimEnds => {
                // A signal takes a moment.
                std::thread::sleep(Duration::from_millis(50));
                vec![format!("{:?}", self.victim.try_wait().expect("the victim"))]
            }
            Sign::Letter => vec![format!("{:?}", self._listening.1.recv(&mut [0; 8]).is_ok())],
            Sign::Packet => vec![format!("{:?}", self.udp.recv(&mut [0; 8]).is_ok())],
        }
    }
}

impl Drop for Place {
    fn drop(&mut self) {
        let _ = self.victim.kill();
        let _ = self.victim.wait();
    }
}

/// Everything below a path that an attempt could have changed, as text.
fn tree(path: &Path, with_times: bool) -> Vec<String> {
    use std::os::unix::fs::MetadataExt;
    let Ok(about) = fs::symlink_metadata(path) else { return vec!["nothing".to_owned()] };
    let mut found = vec![format!(
        "{} {:o} {}:{} {} {:?} {:?}",
        path.display(),
        about.mode(),
        about.uid(),
        about.gid(),
        if about.is_dir() || !with_times { 0 } else { about.mtime() },
        if about.is_file() { fs::read(path).unwrap_or_default().len() } else { 0 },
        if about.is_file() && about.len() < 4096 {
            fs::read_to_string(path).unwrap_or_default()
        } else {
            String::new()
        },
    )];
    if about.is_symlink() {
        found.push(format!("{:?}", fs::read_link(path)));
    }
    found.push(format!("{:?}", super::raw::attribute(path)));
    if about.is_dir() {
        let mut inner: Vec<PathBuf> =
            fs::read_dir(path).into_iter().flatten().filter_map(|entry| Some(entry.ok()?.path())).collect();
        inner.sort();
        found.extend(inner.iter().flat_map(|inner| tree(inner, with_times)));
    }
    found
}
