//! What is read from a request, without a server.

use super::*;
use bytes::Bytes;

fn request(body: &Value) -> Request {
    let headers =
        vec![("Anthropic-Beta".to_owned(), "a".to_owned()), ("anthropic-beta".to_owned(), "b,c".to_owned())];
    Request::new("POST", "/v1/messages", headers, Bytes::from(body.to_string())).unwrap()
}

fn facts_of(messages: &Value) -> Facts {
    let body = json!({
        "model": "m", "stream": true, "system": [{"type": "text", "text": "one"}, {"type": "text", "text": "two"}],
        "tools": [{"name": "Read"}, {"type": "web_search_20250305", "name": "web_search"}], "messages": messages,
    });
    facts(&request(&body), &body)
}

#[test]
fn only_what_came_since_the_model_spoke_counts() {
    let facts = facts_of(&json!([
        {"role": "user", "content": "old text"},
        {"role": "assistant", "content": [
            {"type": "tool_use", "id": "a", "name": "Read", "input": {}},
            {"type": "tool_use", "id": "b", "name": "Bash", "input": {}},
        ]},
        {"role": "user", "content": [
            {"type": "tool_result", "tool_use_id": "b", "content": [{"type": "text", "text": "from b"}, {"type": "image"}]},
            {"type": "tool_result", "tool_use_id": "a", "content": "from a"},
            {"type": "tool_result", "tool_use_id": "stranger"},
            {"type": "text", "text": "new text"},
        ]},
        {"role": "system", "content": "not the user"},
        {"role": "user", "content": "and more"},
    ]));
    let result = |name: &str, text: &str| (name.to_owned(), text.to_owned());
    assert_eq!(facts.results, [result("Bash", "from b"), result("Read", "from a"), result("", "")]);
    assert_eq!(facts.user_text, "new text\nand more");
    assert_eq!((facts.system.as_str(), facts.tools.join(" ")), ("one\ntwo", "Read web_search".to_owned()));
    assert!(facts.stream && facts.asks_for_reply);
}

#[test]
fn odd_bodies_give_empty_facts() {
    for body in [json!(null), json!([]), json!({"messages": 3}), json!({"messages": [null, {"content": 4}]})]
    {
        let facts = facts(&request(&body), &body);
        assert_eq!((facts.results.len(), facts.user_text.as_str(), facts.stream), (0, "", false));
    }
}

#[test]
fn beta_headers_are_joined() {
    assert_eq!(betas(&request(&json!({}))), "a,b,c");
}

#[test]
fn statuses_and_error_types_go_both_ways() {
    for (status, kind, _) in ERRORS {
        assert_eq!((kind_of_status(*status), status_of_kind(kind)), (*kind, *status));
    }
    assert_eq!((kind_of_status(418), kind_of_status(599)), ("invalid_request_error", "api_error"));
    assert_eq!(status_of_kind("invented_error"), 500);
}

#[test]
fn routes_are_told_apart() {
    for (method, path, expected) in [
        ("POST", "/v1/messages", Route::Reply),
        ("POST", "/v1/messages/count_tokens", Route::CountTokens),
        ("GET", "/v1/models", Route::Models),
        ("GET", "/v1/models/x", Route::Model("x".to_owned())),
        ("GET", "/v1/models/", Route::Unknown),
        ("HEAD", "/", Route::Root),
        ("GET", "/v1/messages", Route::Unknown),
    ] {
        assert_eq!(route(method, path), expected, "{method} {path}");
    }
}
