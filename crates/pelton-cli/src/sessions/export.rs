//! A session as a document.

use std::fs::OpenOptions;
use std::io::{self, BufWriter, Write};
use std::os::unix::fs::OpenOptionsExt;
use std::process::ExitCode;

use pelton::transcript::Listed;
use serde_json::json;

use super::said::{Branches, Part, Said, call_line, messages_of};
use super::show::{listed, tell_of_branches, unreadable};
use super::{Shelf, name_of};
use crate::args::{ExportArgs, ExportFormat};
use crate::fail::Fail;

const PAGE_HEAD: &str = include_str!("export.html");

pub(super) fn run(args: &ExportArgs, shelf: &Shelf) -> Result<ExitCode, Fail> {
    let one = listed(shelf, args.session)?;
    let branches = Branches::wanted(args.all);
    let (said, left) = messages_of(&one.file.file, branches).map_err(|error| unreadable(&one, &error))?;
    let written = match &args.output {
        Some(path) => {
            let file = OpenOptions::new().write(true).create_new(true).mode(0o600).open(path);
            let file =
                file.map_err(|error| Fail::new(format!("cannot write {}: {error}", path.display())))?;
            let written = write(args.format, &one, said, &mut BufWriter::new(file));
            if written.is_err() {
                // Half of a document would be taken for all of it.
                let _ = std::fs::remove_file(path);
            }
            written
        }
        None => write(args.format, &one, said, &mut BufWriter::new(io::stdout().lock())),
    };
    match written {
        Ok(()) => {
            tell_of_branches(left.get());
            Ok(ExitCode::SUCCESS)
        }
        // The reader has seen enough.
        Err(error) if error.kind() == io::ErrorKind::BrokenPipe => Ok(ExitCode::SUCCESS),
        Err(error) => Err(Fail::new(format!("the session cannot be exported: {error}"))),
    }
}

fn write(
    format: ExportFormat,
    one: &Listed,
    said: impl Iterator<Item = io::Result<Said>>,
    out: &mut dyn Write,
) -> io::Result<()> {
    match format {
        ExportFormat::Markdown => markdown(one, said, out)?,
        ExportFormat::Json => array(said, out)?,
        ExportFormat::Html => page(one, said, out)?,
    }
    out.flush()
}

fn array(said: impl Iterator<Item = io::Result<Said>>, out: &mut dyn Write) -> io::Result<()> {
    out.write_all(b"[")?;
    for (index, said) in said.enumerate() {
        let said = said?;
        let message = json!({"role": said.role, "uuid": said.id, "timestamp": said.at, "is_meta": said.is_meta, "content": said.content});
        write!(out, "{}\n{message}", if index == 0 { "" } else { "," })?;
    }
    out.write_all(b"\n]\n")
}

fn markdown(
    one: &Listed,
    said: impl Iterator<Item = io::Result<Said>>,
    out: &mut dyn Write,
) -> io::Result<()> {
    writeln!(out, "# {}\n\nSession {}", name_of(one), one.file.id)?;
    if let Some(cwd) = &one.facts.cwd {
        writeln!(out, "in {}", cwd.display())?;
    }
    let mut speaker = None;
    for said in said {
        let said = said?;
        for part in said.parts() {
            let heading = match &part {
                Part::Text(_) | Part::Media(_) if said.is_meta => continue,
                Part::Thinking(text) | Part::Text(text) if text.trim().is_empty() => continue,
                Part::Text(_) | Part::Media(_) if said.role == "user" => "User",
                _ => "Assistant",
            };
            if speaker.replace(heading) != Some(heading) {
                writeln!(out, "\n## {heading}")?;
            }
            match part {
                Part::Text(text) => writeln!(out, "\n{}", text.trim_end())?,
                Part::Thinking(text) => {
                    writeln!(out, "\n> {}", text.trim().replace('\n', "\n> "))?;
                }
                Part::Call { name, input } => {
                    writeln!(
                        out,
                        "\n**{}**\n\n{}",
                        call_line(&name, &input),
                        fenced(&format!("{input:#}"), "json")
                    )?;
                }
                Part::Result { text, is_error } => {
                    let what = if is_error { "Error" } else { "Result" };
                    writeln!(out, "\n{what}:\n\n{}", fenced(text.trim_end(), ""))?;
                }
                Part::Media(kind) => writeln!(out, "\n*({kind})*")?,
            }
        }
    }
    Ok(())
}

/// A block of code that nothing in it can end.
fn fenced(text: &str, language: &str) -> String {
    let longest = text.split(|c| c != '`').map(str::len).max().unwrap_or(0);
    let fence = "`".repeat(longest.max(2) + 1);
    format!("{fence}{language}\n{text}\n{fence}")
}

fn page(one: &Listed, said: impl Iterator<Item = io::Result<Said>>, out: &mut dyn Write) -> io::Result<()> {
    let name = escaped(&name_of(one));
    write!(out, "{}", PAGE_HEAD.replace("{title}", &name))?;
    writeln!(out, "<h1>{name}</h1>\n<p class=\"about\">Session {}</p>", one.file.id)?;
    for said in said {
        let said = said?;
        for part in said.parts() {
            match part {
                Part::Text(_) | Part::Media(_) if said.is_meta => {}
                Part::Text(text) => {
                    let role = if said.role == "user" { "user" } else { "assistant" };
                    writeln!(out, "<section class=\"{role}\"><pre>{}</pre></section>", escaped(text.trim()))?;
                }
                Part::Thinking(text) if text.trim().is_empty() => {}
                Part::Thinking(text) => details(out, "Thinking", &text)?,
                Part::Call { name, input } => details(out, &call_line(&name, &input), &format!("{input:#}"))?,
                Part::Result { text, is_error } => {
                    details(out, if is_error { "Error" } else { "Result" }, &text)?;
                }
                Part::Media(kind) => writeln!(out, "<p>({})</p>", escaped(&kind))?,
            }
        }
    }
    writeln!(out, "</body></html>")
}

fn details(out: &mut dyn Write, summary: &str, text: &str) -> io::Result<()> {
    let (summary, text) = (escaped(summary), escaped(text));
    writeln!(out, "<details><summary>{summary}</summary><pre>{text}</pre></details>")
}

/// Text that cannot become anything else in a page.
fn escaped(text: &str) -> String {
    let mut escaped = String::with_capacity(text.len());
    for c in text.chars() {
        match c {
            '<' => escaped.push_str("&lt;"),
            '>' => escaped.push_str("&gt;"),
            '&' => escaped.push_str("&amp;"),
            '"' => escaped.push_str("&quot;"),
            '\'' => escaped.push_str("&#39;"),
            c if c.is_control() && !matches!(c, '\n' | '\t') => escaped.push('\u{fffd}'),
            c => escaped.push(c),
        }
    }
    escaped
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn nothing_ends_a_block_or_a_page_from_inside() {
        assert_eq!(fenced("a\n```\nb", ""), "````\na\n```\nb\n````");
        assert_eq!(fenced("x", "json"), "```json\nx\n```");
        assert_eq!(escaped("<script>\u{1b}\"&'"), "&lt;script&gt;\u{fffd}&quot;&amp;&#39;");
    }
}
