//! Which sessions there are.

use std::fmt::Write as _;
use std::process::ExitCode;

use pelton::transcript::{Listed, holder};
use serde_json::{Value, json};

use super::{Shelf, cut, moment, name_of, say, size};
use crate::args::ListArgs;
use crate::fail::Fail;

const NAME_CHARS_MAX: usize = 60;

pub(super) fn run(args: &ListArgs, shelf: &Shelf) -> Result<ExitCode, Fail> {
    let listed = shelf.listed(args.all);
    let shown = &listed[..listed.len().min(args.limit)];
    if args.json {
        let all: Vec<Value> = shown.iter().map(facts).collect();
        return say(&format!("{}\n", json!(all)));
    }
    let mut text = String::new();
    for one in shown {
        let held = holder(&one.file.file).map(|_| " · open").unwrap_or_default();
        let place = match (args.all, &one.facts.cwd) {
            (true, Some(cwd)) => format!(" · {}", pelton_serve::plain(&cwd.to_string_lossy())),
            _ => String::new(),
        };
        let name = cut(&name_of(one), NAME_CHARS_MAX);
        // Writing to a text cannot fail.
        let _ = writeln!(
            text,
            "{}  {}  {:>8}  {name}{place}{held}",
            one.file.id,
            moment(one.file.modified),
            size(one.file.bytes)
        );
    }
    if listed.is_empty() {
        let others = if args.all { "" } else { " in this directory; --all lists those of others" };
        let _ = writeln!(text, "There are no sessions{others}.");
    }
    if listed.len() > shown.len() {
        let _ = writeln!(text, "({} more; --limit shows them)", listed.len() - shown.len());
    }
    say(&text)
}

/// A session, for programs.
pub(super) fn facts(one: &Listed) -> Value {
    let facts = &one.facts;
    json!({
        "session_id": one.file.id,
        "file": one.file.file,
        "cwd": facts.cwd,
        "git_branch": facts.git_branch,
        "created": facts.created.map(|at| at.to_string()),
        "modified": moment(one.file.modified),
        "bytes": one.file.bytes,
        "title": facts.title,
        "tag": facts.tag,
        "color": facts.color,
        "first_prompt": facts.first_prompt,
        "last_prompt": facts.last_prompt,
        "holder_pid": holder(&one.file.file).map(|holder| holder.pid),
    })
}
