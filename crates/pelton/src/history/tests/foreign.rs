//! Blocks of kinds that a server does not know are left out, with what cannot be without them.

use super::super::foreign::BLOCK_LEFT_OUT;
use super::*;

fn other(block: &Value) -> Arc<Entry> {
    assistant(Piece::Other, &json!([block]))
}

fn search(id: &str) -> [Arc<Entry>; 2] {
    [
        other(&json!({"type": "server_tool_use", "id": id, "name": "web_search", "input": {}})),
        other(&json!({"type": "web_search_tool_result", "tool_use_id": id, "content": []})),
    ]
}

fn without(said: &[Arc<Entry>], kinds: &[&str]) -> Option<View> {
    let mut view = view_of(said);
    let kinds = kinds.iter().map(|kind| (*kind).to_owned()).collect();
    view.apply(&Edit::Blocks { kinds }, None, "repair").then_some(view)
}

#[test]
fn loop_T11_the_other_half_goes_with_a_refused_block_and_the_thinking_behind_it() {
    let [asks, finds] = search("srvtoolu_1");
    let said = [
        prompt("beans?"),
        thinks(),
        says("Looking."),
        asks,
        finds,
        thinks(),
        says("Found."),
        prompt("sure?"),
        thinks(),
        says("Sure."),
    ];
    // Whichever half is refused, both go; only what was thought before them stays.
    for refused in ["server_tool_use", "web_search_tool_result"] {
        let mut view = without(&said, &[refused]).expect("there is one");
        let kinds: Vec<String> = sent(&mut view)
            .iter()
            .flat_map(|message| message["content"].as_array().unwrap().clone())
            .map(|block| block["type"].as_str().unwrap().to_owned())
            .collect();
        assert_eq!(kinds, ["text", "thinking", "text", "text", "text", "text"], "{refused}");
        assert_eq!(legal(&sent(&mut view)), Ok(()));
    }
    assert!(without(&said, &["future"]).is_none(), "there is none of it");
}

#[test]
fn loop_T11_a_block_is_found_by_its_place_among_all_that_were_sent() {
    let [asks, finds] = search("srvtoolu_1");
    let drawn = json!([{"type": "text", "text": "Look:"}, {"type": "hologram"}]);
    let result = json!([{"type": "tool_result", "tool_use_id": "a", "content": drawn}]);
    let shown = entry(Kind::ToolResult { call: "a".into(), is_error: false }, &result);
    let said = [prompt("beans?"), says("Looking."), asks, finds, calls("a"), shown.clone(), prompt("and?")];
    let view = view_of(&said);
    let kind = |message, block, inner| view.kind_at(message, block, inner);
    assert_eq!(kind(1, 1, None).as_deref(), Some("server_tool_use"));
    assert_eq!(kind(1, 2, None).as_deref(), Some("web_search_tool_result"));
    // What is needed is not named, wherever it stands.
    for (message, block) in [(0, 0), (1, 0), (1, 3), (2, 0), (2, 1), (1, 9), (9, 0)] {
        assert_eq!(kind(message, block, None), None, "messages.{message}.content.{block}");
    }
    assert_eq!((kind(2, 0, Some(1)).as_deref(), kind(2, 0, Some(0))), (Some("hologram"), None));
    // In a result a note takes its place.
    let mut view = without(&said, &["hologram"]).expect("there is one");
    let inside = sent(&mut view)[2]["content"][0]["content"].clone();
    assert_eq!(
        (inside[0]["text"].as_str(), inside[1]["text"].as_str()),
        (Some("Look:"), Some(BLOCK_LEFT_OUT))
    );
}
