//! Reading what models write when they mean a number or a yes: `"10"`, `10.0`, `"true"`.

use std::fmt;
use std::path::PathBuf;

use serde::Deserialize;
use serde::de::{Deserializer, Error, Visitor};

/// A count: a whole number, not negative, also as text. `null` is no count.
pub fn count<'de, D: Deserializer<'de>>(from: D) -> Result<Option<u64>, D::Error> {
    from.deserialize_any(Count)
}

/// A yes or no, also as text. `null` is no.
pub fn flag<'de, D: Deserializer<'de>>(from: D) -> Result<bool, D::Error> {
    from.deserialize_any(Flag).map(|flag| flag.unwrap_or(false))
}

/// A yes or no that may be left out. `null` is left out.
pub fn optional_flag<'de, D: Deserializer<'de>>(from: D) -> Result<Option<bool>, D::Error> {
    from.deserialize_any(Flag)
}

/// A path. One that begins with `~` is refused: a shell would expand it, nothing here does, and a directory of that name would be a
/// trap for whoever tidies up.
pub fn path<'de, D: Deserializer<'de>>(from: D) -> Result<PathBuf, D::Error> {
    usable(PathBuf::deserialize(from)?)
}

/// A path that may be left out.
pub fn optional_path<'de, D: Deserializer<'de>>(from: D) -> Result<Option<PathBuf>, D::Error> {
    Option::<PathBuf>::deserialize(from)?.map(usable).transpose()
}

fn usable<E: Error>(path: PathBuf) -> Result<PathBuf, E> {
    if path.starts_with("~") {
        return Err(E::custom(
            "`~` is not expanded here: write the path in full, or `./~` for a file of that name",
        ));
    }
    Ok(path)
}

struct Count;

impl Visitor<'_> for Count {
    type Value = Option<u64>;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("a whole number, 0 or more")
    }

    fn visit_unit<E: Error>(self) -> Result<Self::Value, E> {
        Ok(None)
    }

    fn visit_u64<E: Error>(self, value: u64) -> Result<Self::Value, E> {
        Ok(Some(value))
    }

    fn visit_i64<E: Error>(self, value: i64) -> Result<Self::Value, E> {
        u64::try_from(value)
            .map(Some)
            .map_err(|_| E::invalid_value(serde::de::Unexpected::Signed(value), &self))
    }

    fn visit_f64<E: Error>(self, value: f64) -> Result<Self::Value, E> {
        // Beyond 2^53 a float no longer says which whole number is meant.
        if value.fract() == 0.0 && (0.0..=9_007_199_254_740_992.0).contains(&value) {
            Ok(Some(value as u64))
        } else {
            Err(E::invalid_value(serde::de::Unexpected::Float(value), &self))
        }
    }

    fn visit_str<E: Error>(self, value: &str) -> Result<Self::Value, E> {
        value.trim().parse().map(Some).map_err(|_| E::invalid_value(serde::de::Unexpected::Str(value), &self))
    }
}

struct Flag;

impl Visitor<'_> for Flag {
    type Value = Option<bool>;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("true or false")
    }

    fn visit_unit<E: Error>(self) -> Result<Self::Value, E> {
        Ok(None)
    }

    fn visit_bool<E: Error>(self, value: bool) -> Result<Self::Value, E> {
        Ok(Some(value))
    }

    fn visit_str<E: Error>(self, value: &str) -> Result<Self::Value, E> {
        match value.trim().to_ascii_lowercase().as_str() {
            "true" => Ok(Some(true)),
            "false" => Ok(Some(false)),
            _ => Err(E::invalid_value(serde::de::Unexpected::Str(value), &self)),
        }
    }
}

#[cfg(test)]
mod tests {
    use serde::Deserialize;
    use serde_json::{Value, json};

    use crate::tools::tool::parse_input;

    #[derive(Debug, PartialEq, Deserialize)]
    #[serde(deny_unknown_fields)]
    struct Input {
        #[serde(default, deserialize_with = "super::count")]
        n: Option<u64>,
        #[serde(default, deserialize_with = "super::flag")]
        yes: bool,
        #[serde(default, deserialize_with = "super::optional_flag")]
        maybe: Option<bool>,
    }

    fn read(value: &Value) -> Result<Input, String> {
        parse_input(value).map_err(|error| error.0)
    }

    #[test]
    fn numbers_and_flags_come_in_many_clothes() {
        for n in [json!(10), json!("10"), json!(10.0), json!(" 10 ")] {
            assert_eq!(read(&json!({"n": n})).unwrap().n, Some(10));
        }
        for yes in [json!(true), json!("true"), json!("True")] {
            let input = read(&json!({"yes": yes, "maybe": yes})).unwrap();
            assert_eq!((input.yes, input.maybe), (true, Some(true)));
        }
        let nothing = Input { n: None, yes: false, maybe: None };
        assert_eq!(read(&json!({})).unwrap(), nothing);
        assert_eq!(read(&json!({"n": null, "yes": null, "maybe": null})).unwrap(), nothing);
        assert_eq!(read(&json!({"yes": "false", "maybe": false})).unwrap().maybe, Some(false));
    }

    #[test]
    fn what_is_wrong_is_named() {
        for (input, words) in [
            (json!({"n": "ten"}), ["`n`", "whole number"]),
            (json!({"n": -1}), ["`n`", "0 or more"]),
            (json!({"n": 1.5}), ["`n`", "whole number"]),
            (json!({"yes": 1}), ["`yes`", "true or false"]),
            (json!({"m": 1}), ["unknown field `m`", "`n`"]),
        ] {
            let error = read(&input).unwrap_err();
            assert!(words.iter().all(|word| error.contains(word)), "{input}: {error}");
        }
    }
}
