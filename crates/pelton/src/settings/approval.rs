//! What somebody said yes to when they approved a server: its definition, to the last word.

use ring::digest::{SHA256, digest};
use serde_json::Value;

/// Whether a server of a directory was approved. See [`approval`].
///
/// ```
/// use pelton::settings::{Approval, approval, fingerprint};
/// use serde_json::json;
///
/// let server = json!({"command": "serve"});
/// let changed = json!({"command": "serve", "args": ["--everything"]});
/// assert_eq!(approval(&server, Some(&fingerprint(&server))), Approval::Given);
/// assert_eq!(approval(&changed, Some(&fingerprint(&server))), Approval::Changed);
/// ```
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum Approval {
    /// As it is now.
    Given,
    /// As it was before: it has to be asked about again.
    Changed,
    /// Never.
    Missing,
}

/// Whether the definition of a server is the one that was approved. `approved` is the [`fingerprint`] that was kept then.
///
/// ```
/// use pelton::settings::{Approval, approval, fingerprint};
/// use serde_json::json;
///
/// let server = json!({"command": "serve", "args": ["--port", "1"]});
/// let approved = fingerprint(&server);
/// assert_eq!(approval(&json!({"args": ["--port", "1"], "command": "serve"}), Some(&approved)), Approval::Given);
/// assert_eq!(approval(&json!({"command": "serve", "args": ["--port", "2"]}), Some(&approved)), Approval::Changed);
/// assert_eq!(approval(&server, None), Approval::Missing);
/// ```
pub fn approval(definition: &Value, approved: Option<&str>) -> Approval {
    match approved {
        None => Approval::Missing,
        Some(approved) if approved == fingerprint(definition) => Approval::Given,
        Some(_) => Approval::Changed,
    }
}

/// A number for the whole definition of a server: command, arguments, variables, address, and whatever else it says. The
/// order of its keys makes no difference.
///
/// See [`approval`].
pub fn fingerprint(definition: &Value) -> String {
    let mut text = String::new();
    write(definition, &mut text);
    digest(&SHA256, text.as_bytes()).as_ref().iter().map(|byte| format!("{byte:02x}")).collect()
}

/// The same text for the same value, whatever the order of its keys. As deep as the parser lets values be.
fn write(value: &Value, text: &mut String) {
    match value {
        Value::Object(fields) => {
            let mut fields: Vec<_> = fields.iter().collect();
            fields.sort_by_key(|(name, _)| *name);
            text.push('{');
            for (name, value) in fields {
                text.push_str(&Value::from(name.as_str()).to_string());
                text.push(':');
                write(value, text);
                text.push(',');
            }
            text.push('}');
        }
        Value::Array(values) => {
            text.push('[');
            for value in values {
                write(value, text);
                text.push(',');
            }
            text.push(']');
        }
        other => text.push_str(&other.to_string()),
    }
}
