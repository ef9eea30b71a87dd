//! What a marketplace says of a plugin, put together with what the plugin says of itself. Pure.

use serde_json::{Map, Value};

use super::PluginProblem;

/// What both may name.
const PARTS: [&str; 7] =
    ["skills", "commands", "agents", "hooks", "mcpServers", "outputStyles", "lspServers"];
/// What the entry says where the plugin does not.
const FACTS: [&str; 3] = ["name", "version", "userConfig"];

/// The manifest with what the entry adds, and whether that is all there is: the entry says so by `"strict": false`.
pub(super) fn with_entry(
    mut manifest: Map<String, Value>,
    entry: &Map<String, Value>,
) -> Result<(Map<String, Value>, bool), PluginProblem> {
    let is_whole = entry.get("strict") == Some(&Value::Bool(false));
    for fact in FACTS {
        if let (None, Some(value)) = (manifest.get(fact), entry.get(fact)) {
            manifest.insert(fact.to_owned(), value.clone());
        }
    }
    for part in PARTS {
        let Some(added) = entry.get(part).filter(|value| !value.is_null()) else { continue };
        let all = match manifest.remove(part).filter(|value| !value.is_null()) {
            Some(_) if is_whole => {
                let message = format!(
                    "both plugin.json and the marketplace, which says `strict: false`, name `{part}`"
                );
                return Err(PluginProblem::manifest(message));
            }
            Some(own) => Value::Array(listed(own).chain(listed(added.clone())).collect()),
            None => added.clone(),
        };
        manifest.insert(part.to_owned(), all);
    }
    Ok((manifest, is_whole))
}

fn listed(value: Value) -> impl Iterator<Item = Value> {
    match value {
        Value::Array(all) => all,
        one => vec![one],
    }
    .into_iter()
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn an_entry_names_and_adds_and_may_be_all_there_is() {
        let object = |value: Value| value.as_object().unwrap().clone();
        for (manifest, entry, expected) in [
            (json!({}), json!({}), Some((json!({}), false))),
            (
                json!({}),
                json!({"name": "n", "version": "1", "source": "./x"}),
                Some((json!({"name": "n", "version": "1"}), false)),
            ),
            (json!({"name": "own"}), json!({"name": "n"}), Some((json!({"name": "own"}), false))),
            (
                json!({"skills": "./a"}),
                json!({"skills": ["./b"], "hooks": {"Stop": []}}),
                Some((json!({"skills": ["./a", "./b"], "hooks": {"Stop": []}}), false)),
            ),
            (
                json!({"name": "n"}),
                json!({"strict": false, "skills": ["./b"]}),
                Some((json!({"name": "n", "skills": ["./b"]}), true)),
            ),
            (json!({"skills": "./a"}), json!({"strict": false, "skills": ["./b"]}), None),
        ] {
            let got = with_entry(object(manifest.clone()), &object(entry.clone())).ok();
            assert_eq!(got, expected.map(|(all, is_whole)| (object(all), is_whole)), "{manifest} {entry}");
        }
    }
}
