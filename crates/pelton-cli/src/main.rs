//! The `pelton` command: what was said on the command line becomes `Options`; signals and exit codes are handled
//! here, everything else elsewhere.

mod args; // what was said
mod resolve; // what it means

mod interactive; // a session at a terminal
mod headless; // one prompt, without a screen
mod parked; // a process that waits for the session it will serve
mod piped; // a whole session, driven by another program
mod debug; // the log of a session, for whoever looks for a fault
mod signals; // interrupt, terminate, hang up
mod stdin; // a prompt from a pipe

mod trust; // what a directory would add, and whether it may
mod context; // what fills the context of a session
mod sessions; // past sessions
mod doctor; // what is wrong with one
mod rewind; // files as they were
mod demo; // a real task, without a key
mod mock; // the scripted model as a server
mod mcp; // servers of tools, and this program as one
mod plugin; // plugins, installed and looked at
mod auth; // who pays
mod project; // what is kept of a project, taken away
mod permissions; // what would be decided, and why
mod config; // what is configured, and what is wrong with it
mod paper; // completions and the manual page

mod written; // files of settings and state that are changed
mod shortcut; // to standard output, without waiting
mod closed; // whether anybody could read what is written
mod fail; // one line of cause, and a way out

use std::process::ExitCode;

use args::{Args, Command, McpCommand};
use fail::Fail;

/// The first word for the helper of the sandbox. Nobody types it.
const HELPER_WORD: &str = "__sandbox";

fn main() -> ExitCode {
    // The helper is this program, too: before anything else, and on the only thread.
    #[cfg(target_os = "linux")]
    if std::env::args_os().nth(1).is_some_and(|word| word == HELPER_WORD) {
        let failure = pelton_sandbox::helper(std::env::args_os().skip(2));
        eprintln!("{failure}");
        return pelton_sandbox::FAILED_CODE.into();
    }
    signals::hold();
    if closed::stdout_was_closed() {
        // Before anything is asked or spent.
        return Fail::new("standard output is closed: open it, or send it to a file or to /dev/null")
            .report();
    }
    let args = match args::parse(std::env::args_os()) {
        Ok(args) => args,
        Err(code) => {
            if code != ExitCode::SUCCESS && args::are_of_a_client(std::env::args_os()) {
                piped::let_client_speak();
            }
            return code;
        }
    };
    match run(args) {
        Ok(code) => code,
        Err(fail) => fail.report(),
    }
}

fn run(args: Args) -> Result<ExitCode, Fail> {
    if !matches!(
        args.command,
        None | Some(Command::Mock(_) | Command::Demo(_) | Command::Mcp(McpCommand::Serve(_)))
    ) {
        signals::release();
    }
    match args.command {
        Some(Command::Completions { shell }) => paper::completions(shell),
        Some(Command::Man) => paper::man(),
        Some(Command::Trust(trust)) => trust::run(&trust),
        Some(Command::Rewind(rewind)) => rewind::run(&rewind),
        Some(Command::Context(context)) => context::run(&context, &args.run),
        Some(Command::Sessions(command)) => sessions::run(&command),
        Some(Command::Doctor(doctor)) => doctor::run(&doctor, &args.run),
        Some(Command::Permissions(command)) => permissions::run(&command),
        Some(Command::Config(command)) => config::run(&command),
        Some(Command::Mcp(command)) => mcp::run(&command, &args.run),
        Some(Command::Plugin(command)) => plugin::run(&command, &args.run),
        Some(Command::Project(command)) => project::run(&command),
        Some(Command::Auth(command)) => auth::run(&command, &args.run),
        Some(Command::Mock(mock)) => finish(mock::serve(&mock)),
        Some(Command::Demo(demo)) => finish(demo::run(&demo, &args.run)),
        None => match rewind::asked_for(&args.run)? {
            Some(rewind) => {
                signals::release();
                rewind::run(&rewind)
            }
            None => finish(headless::run(&args.run)),
        },
    }
}

/// One thread is enough for one conversation: waiting is asynchronous, and file work has threads of its own.
fn finish(work: impl Future<Output = Result<ExitCode, Fail>>) -> Result<ExitCode, Fail> {
    let runtime = tokio::runtime::Builder::new_current_thread()
        .enable_all()
        .build()
        .map_err(|error| Fail::new(format!("cannot start: {error}")))?;
    let done = runtime.block_on(work);
    // A search that still runs on a thread of its own is not waited for: its result has no reader any more.
    runtime.shutdown_background();
    done
}
