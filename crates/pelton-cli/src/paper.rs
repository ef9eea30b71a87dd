//! Completions and the manual page, made from the definition of the command line.

use std::io::Write;
use std::process::ExitCode;

use crate::args;
use crate::fail::Fail;

pub(crate) fn completions(shell: clap_complete::Shell) -> Result<ExitCode, Fail> {
    let mut script = Vec::new();
    clap_complete::generate(shell, &mut args::definition(), "pelton", &mut script);
    write(&script)
}

pub(crate) fn man() -> Result<ExitCode, Fail> {
    let mut page = Vec::new();
    clap_mangen::Man::new(args::definition())
        .render(&mut page)
        .map_err(|error| Fail::new(format!("cannot make the manual page: {error}")))?;
    write(&page)
}

fn write(bytes: &[u8]) -> Result<ExitCode, Fail> {
    match std::io::stdout().write_all(bytes) {
        Ok(()) => Ok(ExitCode::SUCCESS),
        // The reader has seen enough.
        Err(error) if error.kind() == std::io::ErrorKind::BrokenPipe => Ok(ExitCode::SUCCESS),
        Err(error) => Err(Fail::new(format!("cannot write to standard output: {error}"))),
    }
}
