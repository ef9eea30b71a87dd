//! Completions and the manual page, made from the definition of the command line.

use std::io::Write;
use std::process::ExitCode;

use clap_mangen::Man;
use clap_mangen::roff::{Roff, roman};

use crate::args;
use crate::fail::Fail;

pub(crate) fn completions(shell: clap_complete::Shell) -> Result<ExitCode, Fail> {
    let mut script = Vec::new();
    clap_complete::generate(shell, &mut args::definition(), "pelton", &mut script);
    write(&script)
}

/// One page for everything: people look for `pelton`, and an option of a command is found by searching the page.
pub(crate) fn man() -> Result<ExitCode, Fail> {
    let page = page().map_err(|error| Fail::new(format!("cannot make the manual page: {error}")))?;
    write(&page)
}

fn page() -> std::io::Result<Vec<u8>> {
    let mut definition = args::definition().disable_help_subcommand(true);
    definition.build();
    let man = Man::new(definition.clone());
    let mut page = Vec::new();
    man.render_title(&mut page)?;
    man.render_name_section(&mut page)?;
    man.render_synopsis_section(&mut page)?;
    man.render_description_section(&mut page)?;
    man.render_options_section(&mut page)?;
    for command in definition.get_subcommands() {
        render_command(command, &mut page)?;
    }
    let more = definition.get_after_help().map(ToString::to_string).unwrap_or_default();
    for part in more.split("\n\n") {
        render_as_it_stands(part, &mut page)?;
    }
    man.render_version_section(&mut page)?;
    Ok(page)
}

/// A command's own page, one level deeper.
fn render_command(command: &clap::Command, page: &mut Vec<u8>) -> std::io::Result<()> {
    let name = command.get_bin_name().unwrap_or(command.get_name());
    Roff::new().control("SH", [name.to_uppercase().as_str()]).to_writer(page)?;
    let man = Man::new(command.clone());
    let mut own = Vec::new();
    man.render_description_section(&mut own)?;
    man.render_synopsis_section(&mut own)?;
    man.render_options_section(&mut own)?;
    for line in String::from_utf8_lossy(&own).lines() {
        match line.strip_prefix(".SH ") {
            // The first paragraph needs no heading.
            Some("DESCRIPTION") => {}
            Some(heading) => writeln!(page, ".SS {heading}")?,
            None => writeln!(page, "{line}")?,
        }
    }
    Ok(())
}

/// A heading and lines that are tables or examples: they are not filled.
fn render_as_it_stands(part: &str, page: &mut Vec<u8>) -> std::io::Result<()> {
    let Some((heading, lines)) = part.split_once(":\n") else { return Ok(()) };
    let mut roff = Roff::new();
    roff.control("SH", [heading.to_uppercase().as_str()]).control("nf", []);
    for line in lines.lines() {
        roff.text([roman(line)]);
    }
    roff.control("fi", []).to_writer(page)
}

fn write(bytes: &[u8]) -> Result<ExitCode, Fail> {
    match std::io::stdout().write_all(bytes) {
        Ok(()) => Ok(ExitCode::SUCCESS),
        // The reader has seen enough.
        Err(error) if error.kind() == std::io::ErrorKind::BrokenPipe => Ok(ExitCode::SUCCESS),
        Err(error) => Err(Fail::new(format!("cannot write to standard output: {error}"))),
    }
}
