//! Bash, with nothing to run but a recorder and `cat`.

use std::fs;
use std::os::unix::fs::{MetadataExt, PermissionsExt};
use std::os::unix::process::CommandExt;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

use nix::sys::signal::{Signal, killpg};
use nix::unistd::Pid;

/// Longer than any of these commands needs, on a busy machine, if it does not loop.
const PATIENCE: Duration = Duration::from_secs(5);

/// What bash calls when it does not find a command: it writes down how many words there are, and the words. Each process has a file of its own,
/// because bash writes line by line and pipelines run side by side.
const RECORDER: &str = "() { printf '%s\\0' \"$#\" \"$@\" >>\"$PELTON_RECORD/$BASHPID\"; }";

pub struct Bash {
    program: PathBuf,
    home: tempfile::TempDir,
}

/// What commands are run as where the tests are run by root: among them is `>/a`, and nothing may be left behind where that leads.
const NOBODY: u32 = 65534;

fn open_to_all(dir: &Path) {
    fs::set_permissions(dir, fs::Permissions::from_mode(0o777)).expect("a directory of our own");
}

/// What a command did.
pub struct Ran {
    /// The words of every command that was run, in no order.
    pub argvs: Vec<Vec<String>>,
    pub stderr: String,
}

impl Bash {
    /// Bash must be there: a test that passes without it proves nothing.
    pub fn find() -> Self {
        let program = ["/bin/bash", "/usr/bin/bash", "/usr/local/bin/bash", "/opt/homebrew/bin/bash"]
            .into_iter()
            .map(PathBuf::from)
            .find(|path| path.exists())
            .expect("these tests compare with bash, and there is none on this machine");
        let home = tempfile::tempdir().expect("a directory for bash");
        open_to_all(home.path());
        // The one program there is: it shows what a here-document becomes, and changes nothing.
        fs::create_dir(home.path().join("bin")).expect("a directory for programs");
        std::os::unix::fs::symlink("/bin/cat", home.path().join("bin/cat")).expect("a link to cat");
        Self { program, home }
    }

    pub fn run(&self, command: &str) -> Ran {
        let place = tempfile::tempdir_in(self.home.path()).expect("a directory for one command");
        let (work, record) = (place.path().join("work"), place.path().join("record"));
        fs::create_dir(&work).expect("an empty directory");
        fs::create_dir(&record).expect("a directory for records");
        [place.path(), &work, &record].into_iter().for_each(open_to_all);
        let errors = place.path().join("errors");
        let mut bash = Command::new(&self.program);
        // Whoever made the directory runs the tests.
        if fs::metadata(place.path()).expect("a directory of our own").uid() == 0 {
            bash.uid(NOBODY).gid(NOBODY);
        }
        let mut child = bash
            .args(["--norc", "--noprofile", "-c", command])
            .current_dir(&work)
            .env_clear()
            .env("PATH", self.home.path().join("bin"))
            .env("HOME", &work)
            .env("LC_ALL", "C.UTF-8")
            .env("FUNCNEST", "10")
            .env("PELTON_RECORD", &record)
            .env("BASH_FUNC_command_not_found_handle%%", RECORDER)
            // What it leaves in the background may loop without end: it is ended with it.
            .process_group(0)
            .stdin(Stdio::null())
            .stdout(Stdio::null())
            .stderr(fs::File::create(&errors).expect("a file for errors"))
            .spawn()
            .expect("bash can be started");
        let group = Pid::from_raw(i32::try_from(child.id()).expect("a process has a small number"));
        let started = Instant::now();
        while child.try_wait().expect("bash can be waited for").is_none() {
            if started.elapsed() > PATIENCE {
                // A loop without end. What it ran so far counts.
                child.kill().expect("bash can be ended");
            }
            std::thread::sleep(Duration::from_micros(300));
        }
        // There is none any more where nothing was left.
        let _ = killpg(group, Signal::SIGKILL);
        let records = fs::read_dir(&record).expect("the records can be listed");
        let records = records.map(|entry| fs::read(entry.expect("a record").path()).expect("a record"));
        let stderr = String::from_utf8_lossy(&fs::read(&errors).unwrap_or_default()).into_owned();
        Ran { argvs: records.flat_map(|record| argvs(&record)).collect(), stderr }
    }
}

fn argvs(recorded: &[u8]) -> Vec<Vec<String>> {
    let text = String::from_utf8_lossy(recorded);
    let mut words = text.split_terminator('\0');
    let mut argvs = Vec::new();
    while let Some(count) = words.next() {
        // A background command may have been cut off while it wrote.
        let Ok(count) = count.parse() else { break };
        argvs.push(words.by_ref().take(count).map(str::to_owned).collect());
    }
    argvs
}
