//! `pelton permissions`: what would be decided about calls, and why. Nothing is run.

mod case; // one call to be judged, as JSON says it
mod check; // many of them, with what is expected
mod explain; // one command, as a session would judge it here
mod replay; // what was called before, under other rules
mod show; // decisions, for people and for programs

use std::process::ExitCode;

use crate::args::PermissionsCommand;
use crate::fail::Fail;

pub(crate) fn run(command: &PermissionsCommand) -> Result<ExitCode, Fail> {
    match command {
        PermissionsCommand::Explain(args) => explain::explain(args),
        PermissionsCommand::Check(args) => check::check(args),
        PermissionsCommand::Replay(args) => replay::replay(args),
    }
}
