//! What of a settings file grants or runs something, entry by entry: whoever trusts a directory trusts these as they are, and a
//! changed one is asked about again. Pure.

use std::collections::BTreeSet;

use serde_json::{Value, json};

use super::effective::atoms;
use super::{BrokenSettings, Origin, Problem, Settings, fingerprint, read, relaxed};

/// An entry of a file that grants or runs something.
///
/// ```
/// use pelton::hooks::Source;
/// use pelton::settings::{Origin, powers};
///
/// let origin = Origin { source: &Source::Project, file: "settings.json", anchor: None };
/// let text = r#"{"permissions": {"allow": ["Bash(make)"], "deny": ["WebFetch"]}}"#;
/// let found = powers(text, origin);
/// assert_eq!(found.len(), 1, "what restricts is no power");
/// assert_eq!(found[0].told(), "permissions.allow: \"Bash(make)\"");
/// ```
#[derive(Debug, Clone, PartialEq)]
#[non_exhaustive]
pub struct Power {
    /// Where in the settings.
    pub place: String,
    /// The entry; of lists one item.
    pub value: Value,
    /// A number for all of it: what an approval is bound to.
    pub mark: String,
}

impl Power {
    /// What something else than a settings file brings: an agent's hooks, or its servers.
    pub fn new(place: String, value: Value) -> Self {
        Self { mark: fingerprint(&json!([place, value])), place, value }
    }

    /// It, in words.
    pub fn told(&self) -> String {
        format!("{}: {}", self.place, self.value)
    }
}

/// The entries of a file that grant or run something.
///
/// See [`Power`].
pub fn powers(text: &str, origin: Origin<'_>) -> Vec<Power> {
    found(text, origin).into_iter().filter_map(|(power, _)| power).collect()
}

/// Reads a file without those entries that grant or run something and are not among the approved. What was left out.
///
/// ```
/// use pelton::hooks::Source;
/// use pelton::settings::{Origin, powers, read_approved};
///
/// let origin = Origin { source: &Source::Project, file: "settings.json", anchor: None };
/// let seen = r#"{"permissions": {"allow": ["Bash(make)"]}}"#;
/// let approved = powers(seen, origin).into_iter().map(|power| power.mark).collect();
/// let now = r#"{"permissions": {"allow": ["Bash(make)", "Bash(curl *)"], "deny": ["WebFetch"]}}"#;
/// let (settings, _, left_out) = read_approved(now, origin, &approved)?;
/// assert_eq!((settings.rules.allow.len(), settings.rules.deny.len()), (1, 1));
/// assert_eq!(left_out[0].value, "Bash(curl *)");
/// # Ok::<(), pelton::settings::BrokenSettings>(())
/// ```
pub fn read_approved(
    text: &str,
    origin: Origin<'_>,
    approved: &BTreeSet<String>,
) -> Result<(Settings, Vec<Problem>, Vec<Power>), BrokenSettings> {
    let (whole, problems) = read(text, origin)?;
    let found = found(text, origin);
    let is_new = |power: &Power| !approved.contains(&power.mark);
    if !found.iter().any(|(power, _)| power.as_ref().is_some_and(is_new)) {
        return Ok((whole, problems, Vec::new()));
    }
    // Entry by entry: what is left is what the file would say without the others.
    let (mut settings, mut left_out) = (Settings::default(), Vec::new());
    for (power, alone) in found {
        match power.filter(is_new) {
            Some(power) => left_out.push(power),
            None => settings = read(&alone.to_string(), origin)?.0.over(settings),
        }
    }
    settings.restrictions_unknown = whole.restrictions_unknown;
    Ok((settings, problems, left_out))
}

/// Every entry of a file: its power if it has one, and settings that say it alone.
fn found(text: &str, origin: Origin<'_>) -> Vec<(Option<Power>, Value)> {
    let whole: Value = serde_json::from_str(&relaxed::strict(text)).unwrap_or_default();
    let judged = |atom: super::effective::Atom| {
        let said = read(&atom.alone.to_string(), origin).ok();
        let has_power = said.is_some_and(|(mut said, _)| {
            let before = format!("{said:?}");
            said.give_up_grants();
            said.give_up_programs();
            format!("{said:?}") != before
        });
        let power = has_power.then(|| Power {
            mark: fingerprint(&json!([atom.place, atom.alone])),
            place: atom.place,
            value: atom.value,
        });
        (power, atom.alone)
    };
    atoms(&whole).into_iter().map(judged).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::hooks::Source;

    const ORIGIN: Origin<'static> = Origin { source: &Source::Project, file: "s", anchor: None };

    fn marks(text: &str) -> BTreeSet<String> {
        powers(text, ORIGIN).into_iter().map(|power| power.mark).collect()
    }

    #[test]
    fn everything_that_grants_or_runs_is_a_power_and_what_restricts_or_describes_is_none() {
        let hook = r#"{"hooks": {"Stop": [{"hooks": [{"type": "command", "command": "true"}]}]}}"#;
        for (text, count) in [
            (r#"{"permissions": {"allow": ["A", "B"]}}"#, 2),
            (r#"{"permissions": {"additionalDirectories": [".."]}}"#, 1),
            (r#"{"permissions": {"defaultMode": "acceptEdits"}}"#, 1),
            (r#"{"permissions": {"defaultMode": "plan"}}"#, 0),
            (r#"{"permissions": {"deny": ["A"], "ask": ["B"]}}"#, 0),
            (r#"{"apiKeyHelper": "key"}"#, 1),
            (r#"{"env": {"A": "b", "C": "d"}}"#, 2),
            (hook, 1),
            (r#"{"enabledPlugins": {"a@b": true}}"#, 1),
            (r#"{"enableAllProjectMcpServers": true}"#, 1),
            (r#"{"enabledMcpjsonServers": ["a"]}"#, 1),
            (r#"{"disabledMcpjsonServers": ["a"]}"#, 0),
            (r#"{"statusLine": {"type": "command", "command": "date"}}"#, 1),
            (r#"{"model": "opus", "language": "Danish"}"#, 0),
            ("{", 0),
            ("", 0),
        ] {
            assert_eq!(marks(text).len(), count, "{text}");
        }
    }

    #[test]
    fn one_changed_entry_is_left_out_and_the_others_count() {
        let text = |command: &str, port: &str, matcher: &str| {
            json!({"env": {"PORT": port, "LANG": "C"}, "model": "haiku",
                "permissions": {"allow": ["Bash(make)"], "deny": ["Bash(rm *)"]},
                "hooks": {"PreToolUse": [{"matcher": matcher, "hooks": [
                    {"type": "command", "command": command}, {"type": "command", "command": "same"}]}]}})
            .to_string()
        };
        let approved = marks(&text("one", "1", "Bash"));
        let counts = |text: &str| {
            let (settings, _, left) = read_approved(text, ORIGIN, &approved).unwrap();
            let hooks: Vec<String> = settings.hooks.commands().map(|(_, what)| what.to_owned()).collect();
            assert_eq!(settings.model.as_deref(), Some("haiku"));
            assert_eq!((settings.rules.allow.len(), settings.rules.deny.len()), (1, 1));
            (hooks, settings.env.len(), left.len())
        };
        let hooks = |names: &[&str]| names.iter().map(|name| (*name).to_owned()).collect::<Vec<_>>();
        assert_eq!(counts(&text("one", "1", "Bash")), (hooks(&["one", "same"]), 2, 0));
        assert_eq!(counts(&text("two", "1", "Bash")), (hooks(&["same"]), 2, 1));
        assert_eq!(counts(&text("one", "2", "Bash")), (hooks(&["one", "same"]), 1, 1));
        // The same program at another moment is another entry.
        assert_eq!(counts(&text("one", "1", "*")), (hooks(&[]), 2, 2));
        let (nothing, _, left) = read_approved(&text("one", "1", "Bash"), ORIGIN, &BTreeSet::new()).unwrap();
        assert!(nothing.hooks.is_empty() && nothing.env.is_empty() && nothing.rules.allow.is_empty());
        assert_eq!((nothing.rules.deny.len(), left.len()), (1, 5));
    }
}
