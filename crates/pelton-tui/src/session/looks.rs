//! How everything looks and is typed: commands that change a setting, here and in its file.

use pelton::hooks::Source;
use pelton::permission::Destination;
use pelton::settings::{Around, Origin, Weight, Written, lint};
use serde_json::{Value, json};

use super::Session;
use crate::clean;
use crate::commands::Own;
use crate::theme::{Role, Wanted};

/// What files of settings call it.
const THEME: &str = "theme";
const EDITOR_MODE: &str = "editorMode";
const OUTPUT_STYLE: &str = "outputStyle";

impl Session<'_> {
    /// Shows everything in other colours from now on, also in other sessions.
    pub(super) fn theme(&mut self, name: &str) {
        if name.is_empty() {
            let names = Wanted::NAMES.iter().map(|name| ((*name).to_owned(), String::new())).collect();
            return self.app.ask_argument(Own::Theme, "Which colours?", names);
        }
        if Wanted::named(name).is_none() {
            let names = Wanted::NAMES.join(", ");
            return self.app.say(&format!("there is no theme '{name}' (one of {names})"), Role::Error);
        }
        self.set(Destination::UserSettings, THEME, &json!(name), "from now on");
    }

    /// Switches the other way to edit on or off, also in other sessions.
    pub(super) fn vim_mode(&mut self) {
        if self.app.is_plain {
            let words = "here whole lines are read, and there are no keys: /config editorMode=vim sets it for other sessions";
            return self.app.say(words, Role::Error);
        }
        let mode = if self.app.draft.vim_mode().is_some() { "normal" } else { "vim" };
        let when = match mode {
            "vim" => "from now on: Esc makes letters commands, i writes again",
            _ => "from now on",
        };
        self.set(Destination::UserSettings, EDITOR_MODE, &json!(mode), when);
    }

    /// How the model answers in this project. What it is told stands in front of the whole conversation, so this is for the next one.
    pub(super) fn output_style(&mut self, name: &str) {
        let styles = self.home.as_ref().map(|home| home.styles()).unwrap_or_default();
        if name.is_empty() {
            let now = self.init.as_ref().map_or("default", |init| init.output_style.as_str());
            let beside = |style: &String| if style == now { "now".to_owned() } else { String::new() };
            let styles = styles.into_iter().map(|style| (style.clone(), beside(&style))).collect();
            return self.app.ask_argument(Own::OutputStyle, "Which way to answer?", styles);
        }
        let Some(style) = styles.iter().find(|style| style.eq_ignore_ascii_case(name)) else {
            let names = styles.join(", ");
            return self.app.say(&format!("there is no style '{name}' (one of {names})"), Role::Error);
        };
        self.set(
            Destination::LocalSettings,
            OUTPUT_STYLE,
            &json!(style),
            "in sessions that begin here from now on",
        );
    }

    /// What settings come to, or one of them changed: `key=value`, with dots where one is inside another.
    pub(super) fn config(&mut self, arguments: &str) {
        if arguments.is_empty() {
            return self.ask_program(vec![["config", "show", "--effective"].map(str::to_owned).to_vec()]);
        }
        let Some((key, value)) = arguments.split_once('=').filter(|(key, _)| !key.trim().is_empty()) else {
            return self.app.say("/config KEY=VALUE changes one of your own settings", Role::Error);
        };
        let (key, value) = (key.trim(), value.trim());
        // What is no JSON is a text.
        let value = serde_json::from_str(value).unwrap_or_else(|_| json!(value));
        let when = match key {
            THEME => "from now on",
            EDITOR_MODE if !self.app.is_plain => "from now on",
            _ => "in your settings; what is read at the beginning of a session counts in the next one",
        };
        self.set(Destination::UserSettings, key, &value, when);
    }

    /// Writes a setting and says so, unless it means nothing there; what can be changed at once is.
    fn set(&mut self, to: Destination, key: &str, value: &Value, when: &str) {
        let Some(home) = self.home.clone() else {
            return self.app.say("there are no settings files in this session", Role::Error);
        };
        let wrong = wrong_with(key, value);
        if !wrong.is_empty() {
            return wrong.iter().for_each(|why| self.app.say(why, Role::Error));
        }
        if let Err(why) = home.write(to, key, value) {
            return self.app.say(&format!("{key} was not changed: {why}"), Role::Error);
        }
        let told = {
            let value = value.as_str().map_or_else(|| value.to_string(), str::to_owned);
            format!("{} is {}", clean::line(key), clean::line(&value))
        };
        if let Some((who, instead)) = overruled(&home.sources(), to, key, value) {
            let instead = clean::line(&instead.as_str().map_or_else(|| instead.to_string(), str::to_owned));
            let words = format!("{told} in your settings, but it does not count here: {who} says {instead}");
            return self.app.say(&words, Role::Warning);
        }
        match (key, value.as_str()) {
            (THEME, Some(name)) => {
                if let Some(wanted) = Wanted::named(name) {
                    self.app.dress(self.app.theme().wanting(wanted));
                }
            }
            (EDITOR_MODE, Some(mode)) if !self.app.is_plain => self.app.draft.use_vim(mode == "vim"),
            _ => {}
        }
        self.app.say(&format!("{told} {when}"), Role::Faint);
    }
}

/// Who says something else about a key with more weight than the file it was written to, and what. `sources` are what all files say, the
/// weakest first.
fn overruled(sources: &[Value], to: Destination, key: &str, value: &Value) -> Option<(&'static str, Value)> {
    /// The weakest first, with words for them.
    const LAYERS: [(&str, &str); 5] = [
        ("userSettings", "your own settings"),
        ("projectSettings", "the project (.claude/settings.json)"),
        ("localSettings", "your settings for this project (.claude/settings.local.json)"),
        ("flagSettings", "--settings"),
        ("policySettings", "the administrator of this machine"),
    ];
    let place = |name: &str| LAYERS.iter().position(|(layer, _)| *layer == name);
    let written = place(match to {
        Destination::LocalSettings => "localSettings",
        _ => "userSettings",
    })?;
    let path = format!("/{}", key.replace('.', "/"));
    let says = |source: &Value| {
        let layer = place(source["source"].as_str()?).filter(|layer| *layer > written)?;
        Some((LAYERS[layer].1, source["settings"].pointer(&path)?.clone()))
    };
    sources.iter().rev().find_map(says).filter(|(_, said)| said != value)
}

/// Why a setting would not do what it seems to say.
fn wrong_with(key: &str, value: &Value) -> Vec<String> {
    // Written whole, it would take away what stands there already.
    let whole = match value {
        Value::Object(_) => Some(
            "a group is not written whole: name what is inside of it, as in /config permissions.defaultMode=plan",
        ),
        Value::Array(_) => Some(
            "a list is not written whole, for what stands in it would be gone: /config tells which file it is in",
        ),
        Value::Null => {
            Some("nothing is no value: what is taken away is taken out of its file, which /config tells")
        }
        _ => None,
    };
    if let Some(why) = whole {
        return vec![format!("{key}: {why}")];
    }
    let file = key.rsplit('.').fold(value.clone(), |inner, key| json!({key: inner}));
    if key == THEME && value.as_str().and_then(Wanted::named).is_none() {
        return vec![format!("there is no such theme (one of {})", Wanted::NAMES.join(", "))];
    }
    let origin = Origin { source: &Source::User, file: "/config", anchor: None };
    let text = file.to_string();
    let findings = lint(&[Written { origin, text: &text }], &Around::nothing("/", &|_| None));
    findings.into_iter().filter(|found| found.weight > Weight::Note).map(|found| found.text).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_written_counts_unless_somebody_with_more_weight_says_otherwise() {
        let says = |source: &str, settings: Value| json!({"source": source, "settings": settings});
        let theme = |name: &str| json!({"theme": name});
        let (user, local) = (Destination::UserSettings, Destination::LocalSettings);
        for (sources, to, expected) in [
            (vec![says("userSettings", theme("dark"))], user, None),
            (vec![says("projectSettings", theme("dark"))], user, Some("dark")),
            (vec![says("projectSettings", theme("light"))], user, None),
            (vec![says("projectSettings", theme("dark"))], local, None),
            (vec![says("policySettings", theme("dark"))], local, Some("dark")),
            // The strongest is named.
            (
                vec![says("localSettings", theme("dark")), says("flagSettings", theme("ansi"))],
                user,
                Some("ansi"),
            ),
            (vec![says("projectSettings", theme("dark")), says("flagSettings", theme("light"))], user, None),
            (vec![says("localSettings", json!({"model": "opus"}))], user, None),
        ] {
            let found = overruled(&sources, to, "theme", &json!("light"));
            let found = found.map(|(_, said)| said);
            assert_eq!(found, expected.map(|name| json!(name)), "{sources:?}");
        }
        let inside = [says("projectSettings", json!({"permissions": {"defaultMode": "plan"}}))];
        assert!(overruled(&inside, user, "permissions.defaultMode", &json!("default")).is_some());
    }

    #[test]
    fn settings_that_mean_nothing_are_not_written() {
        for (key, value) in [
            ("theme", json!("dark")),
            ("editorMode", json!("vim")),
            ("permissions.defaultMode", json!("plan")),
            ("model", json!("opus")),
            ("env.LANG", json!("C")),
        ] {
            assert_eq!(wrong_with(key, &value), Vec::<String>::new(), "{key}");
        }
        for (key, value) in [
            ("theme", json!("pink")),
            ("theme", json!(3)),
            ("editorMode", json!("ed")),
            ("modle", json!("opus")),
            ("permissions.defaultMode", json!("sometimes")),
            ("permissions", json!("none")),
            // These would mean something, and would throw away what stands there.
            ("permissions", json!({"defaultMode": "plan"})),
            ("env", json!({"LANG": "C"})),
            ("permissions.deny", json!(["Read(.env)"])),
            ("permissions.deny", json!(null)),
            ("model", json!(null)),
        ] {
            assert_ne!(wrong_with(key, &value), Vec::<String>::new(), "{key}");
        }
    }
}
