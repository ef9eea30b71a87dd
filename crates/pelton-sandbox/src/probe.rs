//! What this machine can do: each form is tried once, on a command that does nothing.

use std::ffi::OsStr;
use std::io::Read;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::thread;

use crate::limits::{COMPLAINT_BYTES_MAX, PROBE_TIME_MAX};
use crate::orders::Stage;
use crate::sandbox::{Form, Helper, command};
use crate::{orders::Orders, plan::Plan};

/// What a machine can do.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Ability {
    /// The strongest form that works.
    pub form: Option<Form>,
    /// Why the stronger ones do not, in a sentence each.
    pub complaints: Vec<String>,
}

/// Tries the forms, the strongest first. `bubblewrap` is its program, if it was found. With `old_proc` a box is taken that shows
/// the processes outside, if there is no other with namespaces.
pub fn probe(helper: &Helper, bubblewrap: Option<PathBuf>, old_proc: bool) -> Ability {
    let own = |old_proc| Form::Namespaces { old_proc };
    let forms = bubblewrap
        .map(Form::Bubblewrap)
        .into_iter()
        .chain([own(false)])
        .chain(old_proc.then(|| own(true)))
        .chain([Form::LandlockOnly]);
    let mut complaints = Vec::new();
    for form in forms {
        match works(helper, &form) {
            Ok(()) => return Ability { form: Some(form), complaints },
            Err(why) => complaints.push(format!("{form}: {why}")),
        }
    }
    Ability { form: None, complaints }
}

/// Whether a form works here.
fn works(helper: &Helper, form: &Form) -> Result<(), String> {
    let orders = Orders::new(Stage::Namespaces, &Plan::default(), Path::new("/"), Path::new("/bin/sh"), &[]);
    let (args, code) = ([OsStr::new("-c"), OsStr::new("exit 7")].map(ToOwned::to_owned).to_vec(), 7);
    let (program, words) = command(form, helper, Orders { args, ..orders });
    let mut child = Command::new(&program)
        .args(words)
        .env_clear()
        .current_dir("/")
        .stdin(Stdio::null())
        .stdout(Stdio::null())
        .stderr(Stdio::piped())
        .spawn()
        .map_err(|error| format!("{} cannot be started: {error}", program.display()))?;
    // A program that is not what it should be may never end.
    let mut waited = std::time::Duration::ZERO;
    let step = std::time::Duration::from_millis(1);
    let status = loop {
        match child.try_wait() {
            Ok(Some(status)) => break status,
            Ok(None) if waited < PROBE_TIME_MAX => {
                thread::sleep(step);
                waited += step;
            }
            Ok(None) | Err(_) => {
                let _ = child.kill();
                let _ = child.wait();
                return Err("it does not end".to_owned());
            }
        }
    };
    if status.code() == Some(code) {
        return Ok(());
    }
    let mut complaint = vec![0; COMPLAINT_BYTES_MAX];
    let length = child.stderr.take().and_then(|mut pipe| pipe.read(&mut complaint).ok()).unwrap_or(0);
    let complaint = String::from_utf8_lossy(&complaint[..length]);
    let line = complaint.lines().last().unwrap_or_default();
    let line = line.strip_prefix(crate::FAILED_WORDS).unwrap_or(line);
    Err(if line.is_empty() { format!("it ended with {status}") } else { line.to_owned() })
}
