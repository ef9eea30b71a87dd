//! The hooks there are, as clients show them.

use pelton::hooks::{HookEvent, HookKind, ListedHook, Source};
use serde_json::{Value, json};

use super::requests::Handles;

impl Handles {
    /// What is called and when, which moments there are, and what settings say against it.
    pub(super) fn hooks_listing(&self) -> Value {
        let listed = self.hooks.all();
        let of = |event: HookEvent| listed.iter().filter(move |hook| hook.event == event);
        let about = |event: HookEvent| {
            json!({
                "name": event.name(),
                "summary": event.summary(),
                "supportsMatcher": event.matched_by().is_some(),
            })
        };
        let events = HookEvent::ALL.into_iter().filter(|event| of(*event).next().is_some()).map(|event| {
            let mut row = about(event);
            row["hookCount"] = json!(of(event).count());
            row
        });
        json!({
            "events": events.collect::<Vec<Value>>(),
            "hooks": HookEvent::ALL.into_iter().flat_map(of).map(row).collect::<Vec<Value>>(),
            "eventCatalog": HookEvent::ALL.into_iter().map(about).collect::<Vec<Value>>(),
            "policy": self.hooks_policy(&listed),
        })
    }

    /// What files say against hooks, the administrator's first.
    fn hooks_policy(&self, listed: &[ListedHook]) -> Value {
        let sources = self.home.as_ref().map(|home| home.sources()).unwrap_or_default();
        let says = |source: &Value, key: &str| source["settings"][key] == true;
        let is_managed = |source: &&Value| source["source"] == "policySettings";
        let managed = |key: &str| sources.iter().filter(is_managed).any(|source| says(source, key));
        let plugin_only = sources.iter().filter(is_managed).any(|source| {
            let said = &source["settings"]["strictPluginOnlyCustomization"];
            *said == true || said.as_array().is_some_and(|names| names.iter().any(|name| name == "hooks"))
        });
        json!({
            "disabledByPolicy": managed("disableAllHooks"),
            "managedOnly": managed("allowManagedHooksOnly"),
            "pluginOnly": plugin_only,
            "allDisabled": sources.iter().any(|source| says(source, "disableAllHooks")),
            "policyHookCount": listed.iter().filter(|hook| hook.source == Source::Policy).count(),
        })
    }
}

fn row(hook: &ListedHook) -> Value {
    let (source, label) = match &hook.source {
        Source::Policy => ("policySettings", "Managed settings"),
        Source::User => ("userSettings", "User settings"),
        Source::Project => ("projectSettings", "Project settings"),
        Source::Local => ("localSettings", "Local settings"),
        Source::Flag => ("flagSettings", "Command line"),
        Source::Plugin { .. } => ("pluginHook", "Plugin"),
        _ => ("sessionHook", "Session"),
    };
    let (kind, content) = match hook.kind {
        HookKind::Command => ("command", "Command"),
        HookKind::Http => ("http", "URL"),
        HookKind::Prompt => ("prompt", "Prompt"),
        HookKind::Agent => ("agent", "Prompt"),
        HookKind::ServerTool => ("mcp_tool", "Tool"),
        _ => ("callback", "Callback"),
    };
    let text = revealed(&hook.text);
    let shown = hook.status_message.as_deref().map_or_else(|| text.clone(), revealed);
    let mut row = json!({
        "event": hook.event.name(),
        "matcher": revealed(&hook.matcher),
        "source": source,
        "sourceLabel": label,
        "type": kind,
        "displayText": shown.lines().next().unwrap_or_default(),
        "commandText": text,
        "contentLabel": content,
    });
    let mut put = |name: &str, value: Option<Value>| {
        if let Some(value) = value {
            row[name] = value;
        }
    };
    if let Source::Plugin { root, .. } = &hook.source {
        put("pluginName", root.file_name().map(|name| json!(name.to_string_lossy())));
    }
    put("condition", hook.condition.as_deref().map(|condition| json!(revealed(condition))));
    put("timeout", hook.timeout.map(|time| json!(time.as_secs_f64())));
    put("statusMessage", hook.status_message.as_deref().map(|message| json!(message)));
    put("runsOnce", hook.once.then(|| json!(true)));
    put("runsInBackground", hook.in_background.then(|| json!(true)));
    row
}

/// What does something to whoever shows it can be seen; ends of lines stay.
fn revealed(text: &str) -> String {
    let shown = |c: char| match c {
        '\n' => vec![c],
        c if c.is_control() => c.escape_default().collect(),
        c => vec![c],
    };
    text.chars().flat_map(shown).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_would_move_a_cursor_is_shown() {
        assert_eq!(revealed("a\u{1b}[2Jb\nc\td"), "a\\u{1b}[2Jb\nc\\td");
    }
}
