//! What all files together come to: each value, where it stands, and why it does not count if it does not. Pure.
//!
//! Nothing here knows what keys mean: a value counts if reading it alone changes the settings, and is given up before
//! trust if taking out the grants changes them back.

use serde_json::{Map, Value, json};

use super::lines::Lines;
use super::lint::{Written, unheeded};
use super::{Origin, Settings, read, relaxed};
use crate::hooks::Source;
use crate::permission::{Behavior, Mode};

/// Objects whose entries are one value each.
const WHOLE: [&str; 2] = ["modelPricing", "extraKnownMarketplaces"];
/// Lists that are one value.
const ONE_LIST: &str = "fallbackModel";
/// What nobody above switches on again once it is switched off.
const STAYS_OFF: &str = "disableSkillShellExecution";

/// A file that counts, and what is taken out of it because nobody trusts where it comes from.
///
/// ```
/// use pelton::hooks::Source;
/// use pelton::settings::{Layered, Origin, Written, effective};
///
/// let origin = Origin { source: &Source::User, file: "user.json", anchor: None };
/// let file = Layered { written: Written { origin, text: "{\"model\": \"opus\"}" }, leave_out: &|_| {} };
/// assert_eq!(effective(&[file])[0].value, "opus");
/// ```
#[derive(Clone, Copy)]
pub struct Layered<'a> {
    /// The file.
    pub written: Written<'a>,
    /// Takes out what it may not say.
    pub leave_out: &'a dyn Fn(&mut Settings),
}

/// One value of one file.
///
/// ```
/// use pelton::hooks::Source;
/// use pelton::settings::{Layered, Origin, Written, effective};
///
/// let origin = Origin { source: &Source::User, file: "user.json", anchor: None };
/// let text = "{\n  \"env\": {\"PORT\": \"80\"}\n}";
/// let settings = effective(&[Layered { written: Written { origin, text }, leave_out: &|_| {} }]);
/// assert_eq!((settings[0].place.as_str(), settings[0].line), ("env.PORT", Some(2)));
/// ```
#[derive(Debug, Clone, PartialEq)]
#[non_exhaustive]
pub struct Setting {
    /// Where in the settings: `permissions.allow`, `env.PORT`.
    pub place: String,
    /// The value; of lists one item.
    pub value: Value,
    /// Whose word it is.
    pub source: Source,
    /// The file, as messages call it.
    pub file: String,
    /// The line in it, from 1.
    pub line: Option<u32>,
    /// It is one of a list, to which every file adds.
    pub is_item: bool,
    /// Why it does not count; `None` if it does.
    pub not_used: Option<String>,
}

/// Every value of these files, the weakest file first, and whether it counts.
///
/// ```
/// use pelton::hooks::Source;
/// use pelton::settings::{Layered, Origin, Written, effective};
///
/// let file = |source, file, text| Layered {
///     written: Written { origin: Origin { source, file, anchor: None }, text },
///     leave_out: &|_| {},
/// };
/// let settings = effective(&[
///     file(&Source::User, "user.json", "{\n\"model\": \"opus\", \"permissions\": {\"deny\": [\"WebFetch\"]}}"),
///     file(&Source::Project, "project.json", "{\"model\": \"haiku\", \"permissions\": {\"deny\": [\"Bash(rm *)\"]}}"),
/// ]);
/// let told: Vec<String> = settings
///     .iter()
///     .filter(|setting| setting.not_used.is_none())
///     .map(|setting| format!("{} {} {}:{}", setting.place, setting.value, setting.file, setting.line.unwrap()))
///     .collect();
/// assert_eq!(told, [
///     "model \"haiku\" project.json:1",
///     "permissions.deny \"WebFetch\" user.json:2",
///     "permissions.deny \"Bash(rm *)\" project.json:1",
/// ]);
/// ```
pub fn effective(files: &[Layered<'_>]) -> Vec<Setting> {
    let (mut settings, mut all) = (Vec::new(), Settings::default());
    for file in files {
        let Ok((mut said, _)) = read(file.written.text, file.written.origin) else { continue };
        (file.leave_out)(&mut said);
        all = said.over(all);
        settings.extend(of_file(file));
    }
    settings.sort_by(|one: &Setting, other| one.place.cmp(&other.place));
    overrule(&mut settings);
    all.obey();
    obey(&mut settings, &all);
    settings
}

/// What one file says, as far as it says anything.
fn of_file(file: &Layered<'_>) -> Vec<Setting> {
    let Origin { source, file: name, .. } = file.written.origin;
    let whole: Value = serde_json::from_str(&relaxed::strict(file.written.text)).unwrap_or_default();
    let lines = Lines::of(file.written.text);
    let nothing = format!("{:?}", Settings::default());
    let shape = |settings: &Settings| format!("{settings:?}");
    let mut found = Vec::new();
    for atom in atoms(&whole) {
        let alone = atom.alone.to_string();
        let Ok((mut said, problems)) = read(&alone, file.written.origin) else { continue };
        let before = shape(&said);
        if before == nothing {
            continue;
        }
        (file.leave_out)(&mut said);
        let given_up = shape(&said) != before;
        let why = given_up.then(|| "it comes with a directory that is not trusted".to_owned());
        found.push(Setting {
            line: lines.of_place(&atom.stands_at),
            place: atom.place,
            value: atom.value,
            source: source.clone(),
            file: name.to_owned(),
            is_item: atom.is_item,
            not_used: problems
                .first()
                .map(|problem| problem.text.clone())
                .or_else(|| unheeded(&atom.alone, source))
                .or(why),
        });
    }
    found
}

/// Of one value the strongest counts.
fn overrule(settings: &mut [Setting]) {
    for at in 0..settings.len() {
        if settings[at].is_item || settings[at].not_used.is_some() {
            continue;
        }
        let stays = settings[at].place == STAYS_OFF && settings[at].value == true;
        let later = (at + 1..settings.len()).take_while(|later| settings[*later].place == settings[at].place);
        let stronger: Vec<usize> = later.filter(|later| settings[*later].not_used.is_none()).collect();
        let why = |by: &Setting| match by.line {
            Some(line) => format!("{}:{line} comes first", by.file),
            None => format!("{} comes first", by.file),
        };
        if stays {
            let told = why(&settings[at]);
            stronger.into_iter().for_each(|later| settings[later].not_used = Some(told.clone()));
        } else if let Some(last) = stronger.last() {
            settings[at].not_used = Some(why(&settings[*last]));
        }
    }
}

/// What the administrator does not let others say, and what a switch turns off.
fn obey(settings: &mut [Setting], all: &Settings) {
    for setting in settings.iter_mut().filter(|setting| setting.not_used.is_none()) {
        let counts = if setting.place == "permissions.allow" {
            all.rules.of(Behavior::Allow).iter().any(|rule| {
                rule.source().file.as_deref() == Some(setting.file.as_str())
                    && setting.value == rule.to_string()
            })
        } else if setting.place == "availableModels" {
            let available = all.models.available.as_deref().unwrap_or_default();
            available.iter().any(|model| setting.value == *model)
        } else if let Some(event) = setting.place.strip_prefix("hooks.") {
            let said = ["command", "url", "prompt", "tool"].map(|key| setting.value[key].as_str());
            all.hooks.commands().any(|(at, called)| at == event && said.contains(&Some(called)))
        } else {
            setting.place != "permissions.defaultMode"
                || setting.value != Mode::BypassPermissions.name()
                || all.mode == Some(Mode::BypassPermissions)
        };
        if !counts {
            setting.not_used = Some("managed settings, or a switch of these, do not let it count".to_owned());
        }
    }
}

/// One value, alone.
pub(super) struct Atom {
    pub place: String,
    /// The same with the places in lists.
    stands_at: String,
    pub value: Value,
    is_item: bool,
    /// Settings that say this and nothing else.
    pub alone: Value,
}

pub(super) fn atoms(whole: &Value) -> Vec<Atom> {
    let mut found = Vec::new();
    for (key, value) in whole.as_object().into_iter().flatten() {
        match key.as_str() {
            "hooks" => hooks(value, &mut found),
            _ => split(&[key.as_str()], value, &mut found),
        }
    }
    found
}

fn split(keys: &[&str], value: &Value, found: &mut Vec<Atom>) {
    let place = keys.join(".");
    let is_whole = keys.len() == 2 && WHOLE.contains(&keys[0]);
    let mut add = |stands_at: String, shown: &Value, said: Value| {
        let (place, value, is_item) = (place.clone(), shown.clone(), stands_at.ends_with(']'));
        found.push(Atom { place, stands_at, value, is_item, alone: nested(keys, said) });
    };
    match value {
        Value::Object(members) if !is_whole => {
            for (key, value) in members {
                split(&[keys, &[key.as_str()]].concat(), value, found);
            }
        }
        Value::Array(items) if place != ONE_LIST => {
            for (at, item) in items.iter().enumerate() {
                add(format!("{place}[{at}]"), item, json!([item]));
            }
        }
        value => add(place.clone(), value, value.clone()),
    }
}

/// Each hook with its matcher.
fn hooks(value: &Value, found: &mut Vec<Atom>) {
    for (event, groups) in value.as_object().into_iter().flatten() {
        for (at, group) in groups.as_array().into_iter().flatten().enumerate() {
            for (nth, hook) in group["hooks"].as_array().into_iter().flatten().enumerate() {
                let mut shown = hook.clone();
                let matcher = group["matcher"].as_str().filter(|matcher| !matcher.is_empty());
                if let (Some(shown), Some(matcher)) = (shown.as_object_mut(), matcher) {
                    shown.insert("matcher".to_owned(), matcher.into());
                }
                let alone = json!([{"matcher": matcher.unwrap_or_default(), "hooks": [hook]}]);
                found.push(Atom {
                    place: format!("hooks.{event}"),
                    stands_at: format!("hooks.{event}[{at}].hooks[{nth}]"),
                    value: shown,
                    is_item: true,
                    alone: nested(&["hooks", event], alone),
                });
            }
        }
    }
}

fn nested(keys: &[&str], value: Value) -> Value {
    keys.iter().rev().fold(value, |inner, key| Value::Object(Map::from_iter([((*key).to_owned(), inner)])))
}
