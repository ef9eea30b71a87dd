//! On which line of the file a mistake stands.
//!
//! The YAML reader tells no places of values it could read, so they are looked for again in the text. That is possible
//! because nothing in a block sequence but its items begins at the sequence's own indentation. Where the file is
//! written otherwise, in JSON or in braces, there is no line and the step's number has to do.

/// The line, counted from 1, of a field in a place as [`super::ScriptError`] names them.
pub(super) fn locate(text: &str, place: &str, field: &str) -> Option<usize> {
    let lines: Vec<&str> = text.lines().collect();
    let leaf = field.rsplit('.').next().unwrap_or_default();
    let Some(step) = step_number(place) else {
        let top = field.split('.').next().unwrap_or_default();
        return Some(lines.iter().position(|line| indent(line) == 0 && holds_field(line, top))? + 1);
    };
    let starts = step_starts(&lines);
    let start = *starts.get(step.checked_sub(1)?)?;
    let end = starts.get(step).copied().unwrap_or(lines.len());
    // A name that stands twice in a step may be either.
    let mut named = (start..end).filter(|&at| holds_field(lines[at], leaf));
    let at = match (named.next(), named.next()) {
        (Some(only), None) => only,
        _ => start,
    };
    Some(at + 1)
}

/// The N of `step N, …`.
fn step_number(place: &str) -> Option<usize> {
    let digits = place.strip_prefix("step ")?.split(',').next()?;
    digits.parse().ok()
}

/// The first lines of the items below `steps:`.
fn step_starts(lines: &[&str]) -> Vec<usize> {
    let Some(top) = lines.iter().position(|line| line.starts_with("steps:")) else { return Vec::new() };
    let mut starts = Vec::new();
    let mut depth = None;
    for (at, line) in lines.iter().enumerate().skip(top + 1).filter(|(_, line)| !is_blank(line)) {
        let depth = *depth.get_or_insert(indent(line));
        let is_item = line[indent(line)..]
            .strip_prefix('-')
            .is_some_and(|rest| rest.is_empty() || rest.starts_with(' '));
        if indent(line) == depth && is_item {
            starts.push(at);
        } else if indent(line) <= depth {
            break;
        }
    }
    starts
}

fn is_blank(line: &str) -> bool {
    let text = line.trim_start();
    text.is_empty() || text.starts_with('#')
}

fn indent(line: &str) -> usize {
    line.len() - line.trim_start_matches(' ').len()
}

/// Whether `name:` stands in a line as a key, bare or in quotes.
fn holds_field(line: &str, name: &str) -> bool {
    !name.is_empty()
        && line.match_indices(name).any(|(at, _)| {
            let before = line[..at].chars().next_back();
            let after = line[at + name.len()..].trim_start_matches(['"', '\'']).trim_start();
            before.is_none_or(|char| matches!(char, ' ' | '{' | '"' | '\'' | ',')) && after.starts_with(':')
        })
}

#[cfg(test)]
mod tests {
    use super::locate;

    const TEXT: &str = "\
# a comment
seed: 1
steps:
  # another
  - reply:
      - text: |
          - not an item
          steps:
      - txt: one
    stop: x
  -
    status: 5
    'headers': {a: b}
  - {reply: [{text: a}, {text: b}]}
vars: {steps: 1}
";

    #[test]
    fn fields_are_found_where_they_stand() {
        for (place, field, line) in [
            ("step 1, reply item 2", "txt", Some(9)),
            ("step 1", "stop", Some(10)),
            ("step 2", "status", Some(12)),
            ("step 2", "headers.a", Some(13)),
            ("step 3, reply item 2", "text", Some(14)),
            ("step 1", "nowhere", Some(5)),
            ("step 2", "", Some(11)),
            ("step 4", "reply", None),
            ("script", "seed", Some(2)),
            ("script", "vars", Some(15)),
            ("script", "vars.steps", Some(15)),
            ("script", "", None),
        ] {
            assert_eq!(locate(TEXT, place, field), line, "{place} {field}");
        }
    }

    #[test]
    fn other_ways_to_write_have_no_lines() {
        for text in [
            "",
            "{\"steps\": [{\"reply\": 1}]}",
            "steps: [{reply: 1}]",
            "steps:",
            "steps:\n- reply: ä\nsteps:",
        ] {
            let _ = locate(text, "step 1", "reply");
            assert_eq!(locate(text, "step 2", "reply"), None, "{text}");
        }
    }
}
