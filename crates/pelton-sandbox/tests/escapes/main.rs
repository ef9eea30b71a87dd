//! Attempts to get out of the box. Each is first made without one, and has to succeed there, or it does not count; then in
//! every form of box this machine can build, where it must not. As root all of it runs a second time as nobody.
//!
//! This program is also what the attempts are made with: the helper, and raw system calls.

#[cfg(target_os = "linux")]
mod attempts; // what is tried
#[cfg(target_os = "linux")]
mod place; // where: something to work in, and something to harm
#[cfg(target_os = "linux")]
mod raw; // system calls that no shell makes

/// At least so many attempts must count, for each user and form.
#[cfg(target_os = "linux")]
const COUNTED_MIN: usize = 60;

#[cfg(not(target_os = "linux"))]
fn main() {}

#[cfg(target_os = "linux")]
fn main() -> std::process::ExitCode {
    let mut words = std::env::args_os().skip(1);
    let first = words.next().unwrap_or_default();
    match first.to_str() {
        Some("__sandbox") => {
            let failure = pelton_sandbox::helper(words);
            eprintln!("{failure}");
            pelton_sandbox::FAILED_CODE.into()
        }
        Some("__raw") => raw::run(words),
        Some("__as-nobody") => suite::run("nobody", words.next().as_ref()),
        Some("--list") => std::process::ExitCode::SUCCESS,
        _ => {
            let filter = std::env::args_os().skip(1).find(|word| !word.to_string_lossy().starts_with('-'));
            suite::everybody(filter)
        }
    }
}

#[cfg(target_os = "linux")]
mod suite {
    use std::ffi::OsString;
    use std::os::unix::fs::PermissionsExt;
    use std::os::unix::process::CommandExt;
    use std::path::PathBuf;
    use std::process::{Command, ExitCode};

    use pelton_sandbox::{Ability, Form, Helper, find_bubblewrap, probe};

    use super::COUNTED_MIN;
    use super::attempts::{ATTEMPTS, Attempt, Weakly};
    use super::place::{Outcome, Place};

    /// The number of an unprivileged user, who owns nothing.
    const NOBODY: u32 = 65534;
    /// How many attempts are made at a time.
    const AT_ONCE: usize = 8;

    pub fn everybody(filter: Option<OsString>) -> ExitCode {
        let is_root = nix::unistd::geteuid().is_root();
        let mut code = run(if is_root { "root" } else { "user" }, filter.as_ref());
        if is_root {
            // Where this was built, nobody may look.
            let dir = tempfile::tempdir().expect("a directory");
            std::fs::set_permissions(dir.path(), PermissionsExt::from_mode(0o755)).expect("its permissions");
            let copy = dir.path().join("escapes");
            std::fs::copy(std::env::current_exe().expect("this program"), &copy).expect("a copy");
            let status = Command::new(&copy)
                .arg("__as-nobody")
                .args(filter)
                .current_dir("/")
                .env("HOME", "/nonexistent")
                .env("TMPDIR", "/tmp")
                .uid(NOBODY)
                .gid(NOBODY)
                .status()
                .expect("the same as nobody");
            if !status.success() {
                code = ExitCode::FAILURE;
            }
        }
        code
    }

    pub fn run(who: &str, filter: Option<&OsString>) -> ExitCode {
        let helper = Helper {
            program: std::env::current_exe().expect("this program"),
            args: vec!["__sandbox".into()],
        };
        let mut forms: Vec<Form> = Vec::new();
        let Ability { form, complaints } = probe(&helper, None, false);
        // Where namespaces are refused the weaker form is all there is; the strong one is named as missing, and that fails.
        let missing: Vec<String> = complaints;
        forms.extend(form.clone());
        if form != Some(Form::LandlockOnly) {
            forms.push(Form::LandlockOnly);
        }
        match bubblewrap() {
            Some(bubblewrap) => forms.insert(0, Form::Bubblewrap(bubblewrap)),
            None => println!("NOT RUN {who}: the form with bubblewrap, which is not installed here"),
        }
        let mut failures: Vec<String> =
            missing.iter().map(|why| format!("{who}: a form does not work here: {why}")).collect();
        let wanted = |attempt: &&Attempt| {
            filter.is_none_or(|filter| attempt.name.contains(&*filter.to_string_lossy()))
        };
        let wanted: Vec<&Attempt> = ATTEMPTS.iter().filter(wanted).collect();
        let mut counted = Vec::new();
        for (attempt, outcome) in all(&wanted, None, &helper) {
            if outcome.succeeded {
                counted.push(attempt);
            } else {
                println!("not counted, {who}: {} does not succeed outside either", attempt.name);
            }
        }
        for form in &forms {
            let mut held = 0;
            let mut weak = Vec::new();
            for (attempt, outcome) in all(&counted, Some(form), &helper) {
                match (outcome.succeeded, form.is_weak(), attempt.weakly) {
                    (false, true, Weakly::Undone) if outcome.tampering.is_empty() => {
                        failures.push(format!("{who}, {form}: {} was undone and not reported", attempt.name));
                    }
                    (false, ..) if !outcome.started => {
                        failures
                            .push(format!("{who}, {form}: {} never started: {}", attempt.name, outcome.said));
                    }
                    (false, ..) => held += 1,
                    (true, true, Weakly::Not(why)) => weak.push(format!("{} ({why})", attempt.name)),
                    (true, ..) => failures.push(format!("{who}, {form}: ESCAPED: {}", attempt.name)),
                }
            }
            println!("{who}, {form}: {held} of {} attempts held", counted.len());
            if !weak.is_empty() {
                println!("{who}, {form}: not held, by design: {}", weak.join(", "));
            }
        }
        if filter.is_none() && counted.len() < COUNTED_MIN {
            failures
                .push(format!("{who}: only {} attempts count, at least {COUNTED_MIN} must", counted.len()));
        }
        failures.iter().for_each(|failure| println!("FAILED {failure}"));
        if failures.is_empty() { ExitCode::SUCCESS } else { ExitCode::FAILURE }
    }

    /// Makes attempts, several at a time, each in a place of its own.
    fn all<'a>(
        attempts: &[&'a Attempt],
        form: Option<&Form>,
        helper: &Helper,
    ) -> Vec<(&'a Attempt, Outcome)> {
        let share = attempts.len().div_ceil(AT_ONCE).max(1);
        std::thread::scope(|scope| {
            let parts: Vec<_> = attempts
                .chunks(share)
                .map(|part| {
                    scope.spawn(move || {
                        let made = part
                            .iter()
                            .map(|attempt| (*attempt, Place::new(attempt).attempt(attempt, form, helper)));
                        made.collect::<Vec<_>>()
                    })
                })
                .collect();
            parts.into_iter().flat_map(|part| part.join().expect("no panic")).collect()
        })
    }

    fn bubblewrap() -> Option<PathBuf> {
        find_bubblewrap(&std::env::var_os("PATH")?, &[])
    }
}
