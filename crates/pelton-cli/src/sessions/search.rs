//! Words that were said in sessions.

use std::process::ExitCode;

use pelton_serve::plain;
use serde_json::json;

use super::said::{Part, call_line, messages};
use super::{Shelf, name_of, say};
use crate::args::SearchArgs;
use crate::fail::{Fail, tell};

/// Characters shown on either side of what was found.
const AROUND_CHARS: usize = 60;

pub(super) fn run(args: &SearchArgs, shelf: &Shelf) -> Result<ExitCode, Fail> {
    let wanted = args.words.to_lowercase();
    if wanted.trim().is_empty() {
        return Err(Fail::new("nothing to search for: say some words"));
    }
    let mut places = 0;
    for one in shelf.listed(args.all) {
        let mut is_named = false;
        let said = match messages(&one.file.file) {
            Ok(said) => said,
            Err(error) => {
                tell(&format!("warning: {}: {error}", one.file.file.display()));
                continue;
            }
        };
        for said in said.map_while(Result::ok) {
            for (who, text) in said.parts().into_iter().filter_map(|part| match part {
                Part::Text(text) if !said.is_meta => Some((said.role.as_str(), text)),
                Part::Call { name, input } if args.tools => {
                    Some(("call", format!("{} {input}", call_line(&name, &input))))
                }
                Part::Result { text, .. } if args.tools => Some(("result", text)),
                _ => None,
            }) {
                let Some(around) = around(&text, &wanted) else { continue };
                if places == args.limit {
                    tell(&format!("There are more than {places} places; --limit shows more."));
                    return Ok(ExitCode::SUCCESS);
                }
                places += 1;
                if args.json {
                    let found = json!({"session_id": one.file.id, "message": said.id, "at": said.at, "who": who, "text": around});
                    say(&format!("{found}\n"))?;
                    continue;
                }
                if !std::mem::replace(&mut is_named, true) {
                    say(&format!("{}  {}\n", one.file.id, name_of(&one)))?;
                }
                say(&format!("  {who}: {around}\n"))?;
            }
        }
    }
    if places == 0 {
        tell("Nobody said that.");
        return Ok(ExitCode::FAILURE);
    }
    Ok(ExitCode::SUCCESS)
}

/// Where the words stand, with what stands around them, in one line.
fn around(text: &str, wanted: &str) -> Option<String> {
    // A capital may have another length, so that places are counted in the same text that is searched.
    let lower = text.to_lowercase();
    let at = lower.find(wanted)?;
    let is_same = lower.len() == text.len() && text.is_char_boundary(at);
    let shown = if is_same { text } else { &lower };
    let before: Vec<char> = shown[..at].chars().rev().take(AROUND_CHARS).collect();
    let before: String = before.into_iter().rev().collect();
    let after: String = shown[at..].chars().take(wanted.chars().count() + AROUND_CHARS).collect();
    let (front, back) =
        (if before.len() < at { "…" } else { "" }, if after.len() < shown.len() - at { "…" } else { "" });
    let line: Vec<String> = format!("{front}{before}{after}{back}").split_whitespace().map(plain).collect();
    Some(line.join(" "))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn words_are_shown_with_what_stands_around_them() {
        assert_eq!(around("one TWO three", "two").as_deref(), Some("one TWO three"));
        assert_eq!(around("nothing", "two"), None);
        let long = format!("{}needle{}", "a".repeat(500), "b".repeat(500));
        let shown = around(&long, "needle").unwrap();
        assert!(shown.starts_with("…a") && shown.ends_with("b…") && shown.chars().count() < 200, "{shown}");
        // Letters whose other case has another length.
        for text in ["İstanbul needle", "ẞ needle", "needle İ"] {
            assert!(around(text, "needle").unwrap().contains("needle"));
        }
    }
}
