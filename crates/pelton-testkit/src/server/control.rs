//! Paths for whoever runs the server from another process: open a gate, read the summary. They are no part of the
//! played API and are not counted as requests.

use super::state::Shared;
use super::summary::Summary;
use crate::http::Request;
use serde_json::json;

/// Where the control paths begin.
pub const CONTROL_PATH: &str = "/_script/";

/// Status and body, if the request is for us.
pub(super) fn answer(shared: &Shared, request: &Request) -> Option<(u16, String)> {
    let rest = request.path.strip_prefix(CONTROL_PATH)?;
    let (status, body) = match (request.method.as_str(), rest.split_once('/')) {
        ("POST", Some(("gates", name))) if !name.is_empty() => {
            shared.open_gate(name);
            (200, json!({"opened": name}))
        }
        ("GET", None) if rest == "summary" => (200, Summary::of(shared).to_json()),
        _ => (404, json!({"error": "try POST /_script/gates/NAME or GET /_script/summary"})),
    };
    Some((status, format!("{body}\n")))
}
