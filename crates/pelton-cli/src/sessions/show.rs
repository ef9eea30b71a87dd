//! One session: what it is about, and what was said in it.

use std::fmt::Write as _;
use std::process::ExitCode;

use pelton::transcript::{Listed, holder};
use pelton_serve::plain;

use super::said::{Branches, Part, call_line, messages_of};
use super::{Shelf, list, moment, name_of, say, size};
use crate::args::ShowArgs;
use crate::fail::{Fail, tell};

pub(super) fn run(args: &ShowArgs, shelf: &Shelf) -> Result<ExitCode, Fail> {
    let one = listed(shelf, args.session)?;
    if args.json {
        return say(&format!("{}\n", list::facts(&one)));
    }
    let (file, facts) = (&one.file, &one.facts);
    let mut text = format!("{}\n", name_of(&one));
    let mut fact = |name: &str, value: Option<String>| {
        if let Some(value) = value {
            let _ = writeln!(text, "  {name:<10} {}", plain(&value));
        }
    };
    fact("session", Some(file.id.to_string()));
    fact("directory", facts.cwd.as_ref().map(|cwd| cwd.display().to_string()));
    fact("branch", facts.git_branch.clone());
    fact("began", facts.created.map(|at| format!("{at:.0}")));
    fact("last used", Some(moment(file.modified)));
    fact("size", Some(size(file.bytes)));
    fact("tag", facts.tag.clone());
    fact("colour", facts.color.clone());
    fact("open in", holder(&file.file).map(|holder| holder.to_string()));
    fact("file", Some(file.file.display().to_string()));
    say(&text)?;
    let branches = Branches::wanted(args.all);
    let (messages, left) = messages_of(&file.file, branches).map_err(|error| unreadable(&one, &error))?;
    for said in messages {
        let said = said.map_err(|error| unreadable(&one, &error))?;
        let mut text = String::new();
        for part in said.parts() {
            match part {
                Part::Text(words) if !said.is_meta && !words.trim().is_empty() => {
                    let mark = if said.role == "user" { ">" } else { "•" };
                    let _ = writeln!(text, "\n{mark} {}", plain(words.trim()).replace('\n', "\n  "));
                }
                Part::Call { name, input } => _ = writeln!(text, "  ├─ {}", call_line(&name, &input)),
                Part::Result { text: words, is_error: true } => {
                    let _ =
                        writeln!(text, "  │  failed: {}", plain(&words).lines().next().unwrap_or_default());
                }
                Part::Media(kind) if !said.is_meta => _ = writeln!(text, "  [{kind}]"),
                _ => {}
            }
        }
        say(&text)?;
    }
    tell_of_branches(left.get());
    Ok(ExitCode::SUCCESS)
}

/// Says that there is more.
pub(super) fn tell_of_branches(left: usize) {
    if left > 0 {
        let messages = if left == 1 { "message stands" } else { "messages stand" };
        tell(&format!("{left} {messages} on branches that were left; --all shows them, too."));
    }
}

/// A session by its id.
pub(super) fn listed(shelf: &Shelf, id: uuid::Uuid) -> Result<Listed, Fail> {
    let file = shelf.find(id)?;
    let found = pelton::transcript::listed(&file);
    found.ok_or_else(|| Fail::new(format!("{} cannot be read", file.display())))
}

pub(super) fn unreadable(one: &Listed, error: &std::io::Error) -> Fail {
    Fail::new(format!("cannot read {}: {error}", one.file.file.display()))
}
