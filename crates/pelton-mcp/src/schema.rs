//! Input schemas as the model's API takes them. Servers write all sorts of things; one bad schema in a request and
//! none of its tools can be called.

use serde_json::{Map, Value, json};

/// A schema that can be sent, and what had to be said in words instead; or what is wrong with it.
pub(crate) fn mend(written: Option<&Value>) -> Result<(Value, Option<String>), String> {
    let mut schema = match written {
        None | Some(Value::Null) => Map::new(),
        Some(Value::Object(schema)) => schema.clone(),
        Some(_) => return Err("its input schema is no object".to_owned()),
    };
    // The dialect is the API's, whatever the server calls it.
    schema.remove("$schema");
    let said = flatten(&mut schema)?;
    match schema.get("type") {
        None => _ = schema.insert("type".to_owned(), json!("object")),
        Some(Value::String(kind)) if kind == "object" => {}
        Some(other) => return Err(format!("its input schema is of type {other}, not of \"object\"")),
    }
    match schema.get("properties") {
        None => _ = schema.insert("properties".to_owned(), json!({})),
        Some(Value::Object(properties)) => {
            if let Some(bad) = properties.keys().find(|name| !is_property(name)) {
                return Err(format!(
                    "its input has a property of the name {bad:?}, which the API does not take"
                ));
            }
        }
        Some(_) => return Err("`properties` of its input schema is no object".to_owned()),
    }
    let schema = Value::Object(schema);
    match jsonschema::meta::validate(&schema) {
        Ok(()) => Ok((schema, said)),
        Err(error) => Err(format!("its input schema is none: {error} (at {})", error.instance_path())),
    }
}

/// What the API takes for the name of a property.
fn is_property(name: &str) -> bool {
    let plain = |c: char| c.is_ascii_alphanumeric() || matches!(c, '_' | '.' | '-');
    (1..=64).contains(&name.len()) && name.chars().all(plain)
}

/// The API takes no alternatives at the root: their properties are joined, and how they belong together is said.
fn flatten(schema: &mut Map<String, Value>) -> Result<Option<String>, String> {
    let mut said = Vec::new();
    for (word, all_hold) in [("allOf", true), ("anyOf", false), ("oneOf", false)] {
        let Some(branches) = schema.remove(word) else { continue };
        let Value::Array(branches) = branches else {
            return Err(format!("`{word}` of its input schema is no list"));
        };
        for branch in &branches {
            let properties = branch.get("properties").and_then(Value::as_object);
            let joined = schema.entry("properties").or_insert_with(|| json!({}));
            let Some(joined) = joined.as_object_mut() else {
                return Err("`properties` of its input schema is no object".to_owned());
            };
            for (name, property) in properties.into_iter().flatten() {
                joined.entry(name.clone()).or_insert_with(|| property.clone());
            }
            let required = branch.get("required").and_then(Value::as_array);
            if let (true, Some(required)) = (all_hold, required) {
                let all = schema.entry("required").or_insert_with(|| json!([]));
                if let Some(all) = all.as_array_mut() {
                    let more: Vec<Value> =
                        required.iter().filter(|name| !all.contains(name)).cloned().collect();
                    all.extend(more);
                }
            }
        }
        if !all_hold {
            said.push(alternatives(word, &branches));
        }
    }
    Ok((!said.is_empty()).then(|| said.join(" ")))
}

fn alternatives(word: &str, branches: &[Value]) -> String {
    let sets = branches.iter().map(|branch| {
        let names = |field: &str| -> Vec<String> {
            let found = branch.get(field);
            let listed = found.and_then(Value::as_array).into_iter().flatten().filter_map(Value::as_str);
            let keyed = found.and_then(Value::as_object).into_iter().flatten().map(|(name, _)| name.as_str());
            listed.chain(keyed).map(str::to_owned).collect()
        };
        let required = names("required");
        let shown = if required.is_empty() { names("properties") } else { required };
        format!("({})", shown.join(", "))
    });
    let how = if word == "oneOf" { "exactly one" } else { "at least one" };
    format!(
        "The input must have {how} of these sets of properties: {}.",
        sets.collect::<Vec<_>>().join(" or ")
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_schema_that_is_good_stays_as_it_is() {
        let good = json!({"type": "object", "properties": {"a": {"type": "string"}}, "required": ["a"]});
        assert_eq!(mend(Some(&good)), Ok((good.clone(), None)));
        assert_eq!(mend(None), Ok((json!({"type": "object", "properties": {}}), None)));
    }

    #[test]
    fn alternatives_at_the_root_are_joined_and_said() {
        let (schema, said) = mend(Some(&json!({
            "type": "object", "properties": {"x": {"type": "number"}},
            "oneOf": [{"properties": {"id": {"type": "string"}}, "required": ["id"]}, {"properties": {"name": {"type": "string"}}}],
            "allOf": [{"properties": {"y": {}}, "required": ["y"]}]})))
        .unwrap();
        assert_eq!(
            schema,
            json!({"type": "object", "properties": {"x": {"type": "number"}, "y": {}, "id": {"type": "string"}, "name": {"type": "string"}}, "required": ["y"]})
        );
        assert_eq!(
            said.as_deref(),
            Some("The input must have exactly one of these sets of properties: (id) or (name).")
        );
    }

    #[test]
    fn faulty_schemas_are_told_apart_from_good_ones() {
        for bad in [
            json!("text"),
            json!([]),
            json!({"type": "string"}),
            json!({"type": ["object", "null"]}),
            json!({"properties": []}),
            json!({"properties": {"has space": {}}}),
            json!({"properties": {"": {}}}),
            json!({"properties": {"a": {"type": "strnig"}}}),
            json!({"properties": {"a": 3}}),
            json!({"required": "a"}),
            json!({"oneOf": {}}),
        ] {
            let why = mend(Some(&bad)).expect_err(&bad.to_string());
            assert!(why.contains("its input"), "{why}");
        }
    }
}
