//! A long session, as its file has it.

use serde_json::{Value, json};
use uuid::Uuid;

use crate::place::Place;

/// Records a session of so many messages in the working directory; its id.
pub fn record(place: &Place, messages: u128) -> String {
    let session = Uuid::from_u128(77);
    let project: String = place
        .work()
        .to_str()
        .unwrap()
        .chars()
        .map(|c| if c.is_ascii_alphanumeric() { c } else { '-' })
        .collect();
    let folder = place.config().join("projects").join(project);
    std::fs::create_dir_all(&folder).unwrap();
    let mut lines = String::new();
    for number in 0..messages {
        let (kind, message) = match number % 2 {
            0 => (
                "user",
                json!({"role": "user", "content": [{"type": "text", "text": format!("question {number}")}]}),
            ),
            _ => (
                "assistant",
                json!({"role": "assistant", "id": format!("msg_{number}"), "type": "message", "model": "claude-sonnet-5",
                "content": [{"type": "text", "text": format!("Answer {number} has *some* words and `code` in it.")}]}),
            ),
        };
        let parent =
            number.checked_sub(1).map_or(Value::Null, |before| json!(Uuid::from_u128(1_000 + before)));
        let line = json!({"type": kind, "uuid": Uuid::from_u128(1_000 + number), "parentUuid": parent, "sessionId": session,
            "cwd": place.work(), "timestamp": "2026-01-01T00:00:00.000Z", "isSidechain": false, "userType": "external",
            "entrypoint": "cli", "version": "2.1.325", "message": message});
        lines += &format!("{line}\n");
    }
    std::fs::write(folder.join(format!("{session}.jsonl")), lines).unwrap();
    session.to_string()
}
