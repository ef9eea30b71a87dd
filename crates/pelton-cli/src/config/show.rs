//! What counts here, and where it stands.

use std::ffi::OsStr;
use std::fmt::Write;
use std::process::ExitCode;

use pelton::hooks::Source;
use pelton::process::is_withheld;
use pelton::settings::{Layered, Setting, Settings, Watched, Written, effective};
use serde_json::{Value, json};

use super::{at, say};
use crate::args::{RunArgs, ShowConfigArgs};
use crate::fail::Fail;
use crate::resolve::{self, Env, Layer};

/// Characters of a value that are shown in a line.
const SHOWN_CHARS_MAX: usize = 200;

pub(super) fn show(args: &ShowConfigArgs) -> Result<ExitCode, Fail> {
    let env = Env::of_process();
    let layers = resolve::layers_here(&args.run, &env)?;
    let text = match (args.effective, args.json) {
        (false, false) => files_as_text(&layers),
        (false, true) => {
            format!("{}\n", json!({ "files": layers.iter().map(file_as_json).collect::<Vec<_>>() }))
        }
        (true, is_json) => {
            let values = values(&args.run, &env, &layers);
            if is_json { values_as_json(&values) } else { values_as_text(&values) }
        }
    };
    say(&text)?;
    Ok(ExitCode::SUCCESS)
}

fn files_as_text(layers: &[Layer]) -> String {
    if layers.is_empty() {
        return "There are no settings files here.\n".to_owned();
    }
    let mut text = "The strongest last:\n".to_owned();
    for layer in layers {
        let _ = writeln!(text, "  {:8} {}{}", layer_name(&layer.source), layer.name, note(layer));
    }
    text
}

fn note(layer: &Layer) -> String {
    match &layer.text {
        Err(why) => format!(" ({why})"),
        Ok(_) if layer.is_untrusted => {
            " (its directory is not trusted: what it grants itself is not used)".to_owned()
        }
        Ok(_) => String::new(),
    }
}

fn file_as_json(layer: &Layer) -> Value {
    json!({"layer": layer_name(&layer.source), "file": layer.name, "trusted": !layer.is_untrusted,
        "error": layer.text.as_ref().err()})
}

/// Everything that counts: of files, and above them of the command line and the environment.
fn values(args: &RunArgs, env: &Env, layers: &[Layer]) -> Vec<Shown> {
    let bare = resolve::bare(args, env);
    let leaving_out = |layer: &'_ Layer, settings: &mut Settings| {
        layer.leave_out(settings, Watched::Unattended, bare);
    };
    let readers: Vec<_> =
        layers.iter().map(|layer| move |settings: &mut Settings| leaving_out(layer, settings)).collect();
    let readable = layers.iter().zip(&readers).filter_map(|(layer, leave_out)| {
        let text = layer.text.as_deref().ok()?;
        Some(Layered { written: Written { origin: layer.origin(), text }, leave_out })
    });
    let mut shown: Vec<Shown> = effective(&readable.collect::<Vec<_>>()).into_iter().map(Shown::of).collect();
    for (place, value, said_by) in said_above(args, env) {
        // What the administrator says is above flags.
        let managed = |shown: &Shown| {
            shown.place == place && shown.layer == "managed" && shown.not_used.is_none() && !shown.is_item
        };
        let not_used = shown
            .iter()
            .find(|shown| managed(shown))
            .map(|shown| format!("{} comes first", shown.stands_at()));
        let is_item = place.starts_with("permissions.a") || place == "permissions.deny";
        if not_used.is_none() && !is_item {
            for lower in shown.iter_mut().filter(|lower| lower.place == place && lower.not_used.is_none()) {
                lower.not_used = Some(format!("{said_by} comes first"));
            }
        }
        let layer = if said_by.starts_with("--") { "command line" } else { "environment" };
        let (place, file) = (place.to_owned(), said_by.to_owned());
        shown.push(Shown { place, value, layer, file, line: None, is_item, not_used });
    }
    shown.sort_by(|one, other| one.place.cmp(&other.place));
    shown
}

/// What flags and variables say of what settings may say, too.
fn said_above(args: &RunArgs, env: &Env) -> Vec<(&'static str, Value, &'static str)> {
    let mut said: Vec<(&'static str, Value, &'static str)> = Vec::new();
    let mut one = |place, flag: Option<Value>, flag_name, variable: Option<&'static str>| match flag {
        Some(value) => said.push((place, value, flag_name)),
        None => {
            if let Some((name, value)) = variable.and_then(|name| Some((name, env.get(name)?))) {
                said.push((place, value.into(), name));
            }
        }
    };
    one("model", args.model.as_deref().map(Value::from), "--model", Some("ANTHROPIC_MODEL"));
    one("effortLevel", args.effort.as_deref().map(Value::from), "--effort", Some("CLAUDE_CODE_EFFORT_LEVEL"));
    let fallback = (!args.fallback_model.is_empty()).then(|| json!(args.fallback_model));
    one("fallbackModel", fallback, "--fallback-model", None);
    let mode = args.permission_mode.map(|mode| {
        clap::ValueEnum::to_possible_value(&mode)
            .map(|value| value.get_name().to_owned())
            .unwrap_or_default()
            .into()
    });
    one("permissions.defaultMode", mode, "--permission-mode", None);
    if args.dangerously_skip_permissions {
        said.push(("permissions.defaultMode", "bypassPermissions".into(), "--dangerously-skip-permissions"));
    }
    let lists = [
        ("permissions.allow", &args.allowed_tools, "--allowedTools"),
        ("permissions.deny", &args.disallowed_tools, "--disallowedTools"),
    ];
    for (place, rules, flag) in lists {
        said.extend(rules.iter().map(|rule| (place, rule.as_str().into(), flag)));
    }
    let dirs = args.add_dir.iter().map(|dir| dir.display().to_string());
    said.extend(dirs.map(|dir| ("permissions.additionalDirectories", dir.into(), "--add-dir")));
    said
}

/// A value, and where it stands.
struct Shown {
    place: String,
    value: Value,
    layer: &'static str,
    file: String,
    line: Option<u32>,
    is_item: bool,
    not_used: Option<String>,
}

impl Shown {
    fn of(setting: Setting) -> Self {
        let layer = layer_name(&setting.source);
        let Setting { place, value, file, line, is_item, not_used, .. } = setting;
        // What is kept from programs is not shown to whoever looks over a shoulder either.
        let is_secret = place.strip_prefix("env.").is_some_and(|name| is_withheld(OsStr::new(name)));
        let value = if is_secret { Value::from("[redacted]") } else { value };
        Self { place, value, layer, file, line, is_item, not_used }
    }

    fn stands_at(&self) -> String {
        at(&self.file, self.line)
    }
}

fn values_as_text(values: &[Shown]) -> String {
    let line = |shown: &Shown| {
        let mut value = shown.value.to_string();
        if value.chars().count() > SHOWN_CHARS_MAX {
            value = format!("{}…", value.chars().take(SHOWN_CHARS_MAX).collect::<String>());
        }
        format!("{} = {value}  ({}, {})", shown.place, shown.layer, shown.stands_at())
    };
    let (used, not): (Vec<&Shown>, Vec<&Shown>) = values.iter().partition(|shown| shown.not_used.is_none());
    let mut text = match used.is_empty() {
        true => "Nothing is set: everything is as it is by default.\n".to_owned(),
        false => used.iter().map(|shown| format!("{}\n", line(shown))).collect(),
    };
    if !not.is_empty() {
        text.push_str("\nNot used:\n");
    }
    for shown in not {
        let _ = writeln!(text, "  {}: {}", line(shown), shown.not_used.as_deref().unwrap_or_default());
    }
    text
}

fn values_as_json(values: &[Shown]) -> String {
    let values: Vec<Value> = values
        .iter()
        .map(|shown| {
            json!({"key": shown.place, "value": shown.value, "layer": shown.layer, "file": shown.file, "line": shown.line,
                "used": shown.not_used.is_none(), "reason": shown.not_used})
        })
        .collect();
    format!("{}\n", json!({ "settings": values }))
}

fn layer_name(source: &Source) -> &'static str {
    match source {
        Source::Policy => "managed",
        Source::User => "user",
        Source::Project => "project",
        Source::Local => "local",
        _ => "command line",
    }
}
