//! How many instructions the hot paths take, counted by callgrind: the same on a busy machine as on a quiet one.
//!
//! ```text
//! counts check FILE     fails where a path takes more than 5 % more than FILE says
//! counts write FILE     writes down what they take now
//! counts run PATH       runs one path; what is counted happens inside `measured_part`
//! ```

mod compare; // what was written down, and what is now
mod paths; // what is counted

use std::process::{Command, ExitCode};

use compare::{Counts, Verdict};

type Failed = Box<dyn std::error::Error>;

fn main() -> ExitCode {
    match run() {
        Ok(code) => code,
        Err(error) => {
            eprintln!("{error}");
            ExitCode::FAILURE
        }
    }
}

fn run() -> Result<ExitCode, Failed> {
    let words: Vec<String> = std::env::args().skip(1).collect();
    let words: Vec<&str> = words.iter().map(String::as_str).collect();
    match words[..] {
        ["run", path] => paths::run(path).map(|()| ExitCode::SUCCESS),
        ["write", file] => {
            std::fs::write(file, counted()?.text())?;
            Ok(ExitCode::SUCCESS)
        }
        ["check", file] => {
            let recorded = Counts::read(&std::fs::read_to_string(file)?)?;
            let verdict = Verdict::of(&recorded, &counted()?);
            print!("{verdict}");
            Ok(if verdict.holds() { ExitCode::SUCCESS } else { ExitCode::FAILURE })
        }
        _ => Err("usage: counts (check FILE | write FILE | run PATH)".into()),
    }
}

/// What makes instructions of our words, beside our words.
fn tools() -> Result<String, Failed> {
    let said = |program: &str, word: &str| -> Result<String, Failed> {
        let ran = Command::new(program).arg(word).output()?;
        Ok(String::from_utf8(ran.stdout)?.trim().to_owned())
    };
    // Where there is no such library, there is no such program.
    let library = said("getconf", "GNU_LIBC_VERSION").unwrap_or_default();
    Ok(format!("{}, {library}, {}", said("rustc", "--version")?, std::env::consts::ARCH))
}

fn counted() -> Result<Counts, Failed> {
    let tools = tools()?;
    let me = std::env::current_exe()?;
    let mut paths = Vec::new();
    for path in paths::PATHS {
        let ran = Command::new("valgrind")
            .args(["--tool=callgrind", "--callgrind-out-file=/dev/null", "--toggle-collect=*measured_part*"])
            .arg(&me)
            .args(["run", path.name])
            .output()?;
        let said = String::from_utf8_lossy(&ran.stderr);
        let collected = said.lines().find_map(|line| line.split_once("Collected : "));
        let instructions: Option<u64> = collected.and_then(|(_, count)| count.trim().parse().ok());
        let instructions = instructions.filter(|count| *count > 0 && ran.status.success());
        let instructions =
            instructions.ok_or_else(|| format!("{}: nothing was counted: {said}", path.name))?;
        paths.push((path.name.to_owned(), instructions / path.times));
    }
    Ok(Counts { tools, paths })
}
