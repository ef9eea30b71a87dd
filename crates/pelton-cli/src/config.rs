//! `pelton config`: what is configured here, where each value stands, and what of it does not do what it seems to say.
//! Nothing of the directory is run.

mod check; // what is wrong
mod show; // what counts

use std::io::Write;
use std::process::ExitCode;

use pelton_serve::plain;

pub(crate) use self::check::{findings, listed, told};

use crate::args::{ConfigCommand, RunArgs};
use crate::fail::Fail;

pub(crate) fn run(command: &ConfigCommand) -> Result<ExitCode, Fail> {
    match command {
        ConfigCommand::Check(args) => {
            no_prompt(&args.run)?;
            check::check(args)
        }
        ConfigCommand::Show(args) => {
            no_prompt(&args.run)?;
            show::show(args)
        }
    }
}

fn no_prompt(args: &RunArgs) -> Result<(), Fail> {
    match &args.prompt {
        Some(word) => Err(Fail::new(format!("nothing is expected here but options: '{word}'"))),
        None => Ok(()),
    }
}

/// `file:line`.
fn at(file: &str, line: Option<u32>) -> String {
    match line {
        Some(line) => format!("{file}:{line}"),
        None => file.to_owned(),
    }
}

/// What files hold is shown as it is, and cannot move the cursor.
fn say(text: &str) -> Result<(), Fail> {
    let mut out = std::io::stdout();
    match out.write_all(plain(text).as_bytes()).and_then(|()| out.flush()) {
        Err(error) if error.kind() != std::io::ErrorKind::BrokenPipe => {
            Err(Fail::new(format!("cannot write to standard output: {error}")))
        }
        _ => Ok(()),
    }
}
