//! The `pelton` command: what was said on the command line becomes `Options`; signals and exit codes are handled
//! here, everything else elsewhere.

mod args; // what was said
mod resolve; // what it means
mod headless; // one prompt, without a screen
mod stdin; // a prompt from a pipe
mod signals; // interrupt, terminate, hang up
mod mock; // the scripted model as a server
mod demo; // a real task, without a key
mod paper; // completions and the manual page
mod fail; // one line of cause, and a way out

use std::process::ExitCode;

use args::{Args, Command};
use fail::Fail;

fn main() -> ExitCode {
    let args = match args::parse(std::env::args_os()) {
        Ok(args) => args,
        Err(code) => return code,
    };
    match run(args) {
        Ok(code) => code,
        Err(fail) => fail.report(),
    }
}

fn run(args: Args) -> Result<ExitCode, Fail> {
    match args.command {
        Some(Command::Completions { shell }) => paper::completions(shell),
        Some(Command::Man) => paper::man(),
        Some(Command::Mock(mock)) => runtime()?.block_on(mock::serve(&mock)),
        Some(Command::Demo(demo)) => runtime()?.block_on(demo::run(&demo, &args.run)),
        None => runtime()?.block_on(headless::run(&args.run)),
    }
}

/// One thread is enough for one conversation: waiting is asynchronous, and file work has threads of its own.
fn runtime() -> Result<tokio::runtime::Runtime, Fail> {
    tokio::runtime::Builder::new_current_thread()
        .enable_all()
        .build()
        .map_err(|error| Fail::new(format!("cannot start: {error}")))
}
