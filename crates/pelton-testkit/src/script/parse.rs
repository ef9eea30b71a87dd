//! YAML or JSON to a value in which nothing was said twice.

use serde::de::{self, Deserialize, DeserializeSeed, Deserializer, MapAccess, SeqAccess, Visitor};
use serde_json::{Map, Value};
use std::fmt;

use super::ScriptError;

/// JSON is tried first only because its numbers and strings are then taken exactly; YAML has the last word.
pub(super) fn parse(text: &str) -> Result<Value, ScriptError> {
    let said = serde_json::from_str::<Said>(text).or_else(|json| {
        // YAML would take long to come to the same end.
        if json.to_string().starts_with("recursion limit") {
            return Err(json.to_string());
        }
        yaml_serde::from_str::<Said>(text).map_err(|yaml| yaml.to_string())
    });
    said.map(|Said(value)| value).map_err(|error| {
        if error.contains(TWICE) {
            return ScriptError::new("script", "", error, "keep one of them");
        }
        let way_out = "check the indentation, and put texts with `: `, `#` or `{` in quotes";
        ScriptError::new("script", "", format!("not YAML or JSON: {error}"), way_out)
    })
}

/// How a mistake is called that is no mistake of YAML or JSON.
const TWICE: &str = "stands twice";

/// A value read so that a field which stands twice is an error and not a surprise.
struct Said(Value);

impl<'de> Deserialize<'de> for Said {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        Reader.deserialize(deserializer).map(Said)
    }
}

struct Reader;

impl<'de> DeserializeSeed<'de> for Reader {
    type Value = Value;

    fn deserialize<D: Deserializer<'de>>(self, deserializer: D) -> Result<Value, D::Error> {
        deserializer.deserialize_any(self)
    }
}

impl<'de> Visitor<'de> for Reader {
    type Value = Value;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("any value")
    }

    fn visit_bool<E: de::Error>(self, value: bool) -> Result<Value, E> {
        Ok(value.into())
    }

    fn visit_i64<E: de::Error>(self, value: i64) -> Result<Value, E> {
        Ok(value.into())
    }

    fn visit_u64<E: de::Error>(self, value: u64) -> Result<Value, E> {
        Ok(value.into())
    }

    fn visit_f64<E: de::Error>(self, value: f64) -> Result<Value, E> {
        Ok(value.into())
    }

    fn visit_str<E: de::Error>(self, value: &str) -> Result<Value, E> {
        Ok(value.into())
    }

    fn visit_string<E: de::Error>(self, value: String) -> Result<Value, E> {
        Ok(value.into())
    }

    fn visit_unit<E: de::Error>(self) -> Result<Value, E> {
        Ok(Value::Null)
    }

    fn visit_none<E: de::Error>(self) -> Result<Value, E> {
        Ok(Value::Null)
    }

    fn visit_some<D: Deserializer<'de>>(self, deserializer: D) -> Result<Value, D::Error> {
        self.deserialize(deserializer)
    }

    fn visit_seq<A: SeqAccess<'de>>(self, mut items: A) -> Result<Value, A::Error> {
        let mut list = Vec::new();
        while let Some(item) = items.next_element_seed(Reader)? {
            list.push(item);
        }
        Ok(list.into())
    }

    fn visit_map<A: MapAccess<'de>>(self, mut members: A) -> Result<Value, A::Error> {
        let mut map = Map::new();
        while let Some(Key(key)) = members.next_key()? {
            let value = members.next_value_seed(Reader)?;
            if map.contains_key(&key) {
                return Err(de::Error::custom(format!("the field `{key}` {TWICE}")));
            }
            map.insert(key, value);
        }
        Ok(map.into())
    }
}

/// A key; YAML may write numbers and booleans without quotes.
struct Key(String);

impl<'de> Deserialize<'de> for Key {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        match Reader.deserialize(deserializer)? {
            Value::String(key) => Ok(Key(key)),
            Value::Number(number) => Ok(Key(number.to_string())),
            Value::Bool(flag) => Ok(Key(flag.to_string())),
            Value::Null => Ok(Key("null".to_owned())),
            Value::Array(_) | Value::Object(_) => Err(de::Error::custom("a field's name is one word")),
        }
    }
}
