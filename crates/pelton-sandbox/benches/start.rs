//! What a box costs: the time from before a command to after it, in each form and without one.
//!
//!     cargo bench -p pelton-sandbox

#[cfg(not(target_os = "linux"))]
fn main() {}

#[cfg(target_os = "linux")]
fn main() {
    use std::ffi::OsStr;
    use std::path::Path;
    use std::process::{Command, Stdio};
    use std::time::Instant;

    use pelton_sandbox::{Ability, Form, Helper, Policy, Prepared, probe};

    /// Commands in each form.
    const ROUNDS: usize = 200;

    let mut words = std::env::args_os().skip(1);
    if words.next().is_some_and(|word| word == "__sandbox") {
        let failure = pelton_sandbox::helper(words);
        eprintln!("{failure}");
        std::process::exit(pelton_sandbox::FAILED_CODE.into());
    }
    let helper =
        Helper { program: std::env::current_exe().expect("this program"), args: vec!["__sandbox".into()] };
    let asked = Instant::now();
    let Ability { form, .. } = probe(&helper, None, false);
    println!("finding out what the machine can do, once: {:.1} ms", asked.elapsed().as_secs_f64() * 1e3);
    let dir = tempfile::tempdir().expect("a directory");
    let work = dir.path().canonicalize().expect("a real path");
    std::fs::create_dir_all(work.join(".git/hooks")).expect("a repository");
    for name in ["HEAD", "config"] {
        std::fs::write(work.join(".git").join(name), "").expect("a file");
    }
    let policy = Policy { writable: vec![work.clone()], ..Policy::default() };
    let program = Path::new("/bin/true");
    let mut forms: Vec<Option<Form>> = vec![None, Some(Form::LandlockOnly)];
    forms.extend(form.filter(|form| !form.is_weak()).map(Some));
    for form in forms {
        let mut times: Vec<f64> = (0..ROUNDS)
            .map(|_| {
                let started = Instant::now();
                let prepared = form.as_ref().map(|form| Prepared::new(form, &policy, &work).expect("a box"));
                let (file, args) = match &prepared {
                    None => (program.to_path_buf(), Vec::new()),
                    Some(prepared) => {
                        prepared.command(&helper, program, &[] as &[&OsStr], &mut Vec::new(), &[])
                    }
                };
                let status = Command::new(file).args(args).current_dir(&work).stdout(Stdio::null()).status();
                assert!(status.expect("a command").success());
                prepared.map(Prepared::finish);
                started.elapsed().as_secs_f64() * 1e3
            })
            .collect();
        times.sort_by(f64::total_cmp);
        let name = form.map_or("no box".to_owned(), |form| form.to_string());
        println!(
            "{name}: {:.1} ms (half of {ROUNDS} commands), {:.1} ms (99 of 100)",
            times[ROUNDS / 2],
            times[ROUNDS * 99 / 100]
        );
    }
}
