//! Servers of tools that take their time. Whether something waits is seen by what has happened so far, not by a clock: a
//! server here says nothing before the test lets it.

use std::path::Path;

use pelton_testkit::{Script, text, tool};
use serde_json::{Value, json};

use crate::place::{Commanded, Place, model, until, wait};
use crate::talk::Talk;

/// Says nothing until the file $GATE is there; then it serves one tool.
const SERVER: &str = r#"
touch "$GATE.began"
while [ ! -e "$GATE" ]; do sleep 0.02; done
while IFS= read -r line; do
    id=$(printf '%s' "$line" | sed -n 's/^{"jsonrpc":"2.0","id":\([0-9]*\).*/\1/p')
    answer() { printf '{"jsonrpc":"2.0","id":%s,"result":%s}\n' "$id" "$1"; }
    case "$line" in
    *'"method":"initialize"'*) answer '{"protocolVersion":"2025-06-18","capabilities":{"tools":{}},"serverInfo":{"name":"s","version":"1"}}' ;;
    *'"method":"tools/list"'*) answer '{"tools":[{"name":"echo","inputSchema":{"type":"object"}}]}' ;;
    *'"method":"tools/call"'*) answer '{"content":[{"type":"text","text":"served"}]}' ;;
    esac
done
"#;

fn server(file: &Path, gate: &Path) -> Value {
    json!({"command": "sh", "args": [file], "env": {"GATE": gate}})
}

fn status(init: &Value, name: &str) -> String {
    let servers = init["mcp_servers"].as_array().unwrap();
    let server = servers.iter().find(|server| server["name"] == name).unwrap();
    server["status"].as_str().unwrap().to_owned()
}

fn tools(body: &Value) -> Vec<&str> {
    body["tools"].as_array().unwrap().iter().map(|tool| tool["name"].as_str().unwrap()).collect()
}

#[test]
fn pit_X1_what_there_is_is_stated_while_servers_are_on_their_way_and_late_ones_change_nothing_in_front() {
    let place = Place::new();
    let file = place.put("server.sh", SERVER);
    let (open, slow, never) = (place.put("open", ""), place.temp().join("slow"), place.temp().join("never"));
    // What the user has set up once and for all: nobody waits for it.
    let state = json!({"mcpServers": {"ok": server(&file, &open), "slow": server(&file, &slow), "hole": server(&file, &never)}});
    std::fs::write(place.config().join(".claude.json"), state.to_string()).unwrap();
    let model = model(
        Script::new()
            .reply([text("So far.")])
            .reply([tool("CallTool", json!({"name": "mcp__slow__echo", "input": {}}))])
            .reply([text("Done.")]),
    );
    let mut talk = Talk::start(&place, &model, &["--allowedTools", "mcp__slow"]);
    talk.prompt("hi");
    let init = talk.system("init");
    for name in ["slow", "hole"] {
        assert_eq!(status(&init, name), "pending", "{init}");
    }
    assert_eq!(talk.result()["result"], "So far.", "and nobody waits for them later");

    std::fs::write(&slow, "").unwrap();
    until("the slow one is there", || {
        let told = talk.asked(&json!({"subtype": "mcp_status"}))["response"]["mcpServers"].clone();
        let of = |name: &str| told.as_array().unwrap().iter().find(|server| server["name"] == name).cloned();
        of("slow").unwrap()["status"] == "connected" && of("ok").unwrap()["status"] == "connected"
    });
    talk.prompt("and now");
    let init = talk.system("init");
    assert_eq!((status(&init, "slow").as_str(), status(&init, "hole").as_str()), ("connected", "pending"));
    assert!(init["tools"].as_array().unwrap().contains(&json!("mcp__slow__echo")), "{init}");
    assert_eq!(talk.result()["result"], "Done.");
    let requests = model.requests();
    assert!(requests[2].body["messages"].to_string().contains("served"));
    for later in &requests[1..] {
        assert_eq!(later.body["system"], requests[0].body["system"]);
        assert_eq!(later.body["tools"], requests[0].body["tools"]);
    }
}

#[test]
fn pit_X1_servers_that_are_named_for_a_run_are_waited_for_by_the_first_request_alone() {
    let place = Place::new();
    let file = place.put("server.sh", SERVER);
    let gate = place.temp().join("gate");
    let config = json!({"mcpServers": {"named": server(&file, &gate)}}).to_string();
    for way in ["stream", "print"] {
        let _ = std::fs::remove_file(&gate);
        let model = model(Script::new().reply([text("Done.")]));
        if way == "stream" {
            let mut talk = Talk::start(&place, &model, &["--mcp-config", &config]);
            talk.prompt("hi");
            assert_eq!(status(&talk.system("init"), "named"), "pending");
            // It has been told to wait, and it is heard while it does.
            talk.asked(&json!({"subtype": "mcp_status"}));
            assert!(model.requests().is_empty());
            std::fs::write(&gate, "").unwrap();
            talk.result();
            talk.end().well();
        } else {
            let words = ["go", "--output-format", "stream-json", "--verbose", "--mcp-config", &config];
            let running = place.task(&model, words).start();
            until("it is started", || place.temp().join("gate.began").exists());
            std::fs::write(&gate, "").unwrap();
            assert_eq!(running.end().code, Some(0));
        }
        let _ = std::fs::remove_file(place.temp().join("gate.began"));
        assert!(tools(&model.requests()[0].body).contains(&"mcp__named__echo"), "{way}");
    }
}

#[test]
fn nobody_waits_who_does_not_want_to() {
    let place = Place::new();
    let file = place.put("server.sh", SERVER);
    let config = json!({"mcpServers": {"named": server(&file, &place.temp().join("never"))}}).to_string();
    let model = model(Script::new().reply([text("Done.")]));
    let mut talk = Talk::with(&place, &model, &["--mcp-config", &config], |command| {
        command.env("MCP_CONNECTION_NONBLOCKING", "true");
    });
    talk.prompt("hi");
    assert_eq!(talk.result()["result"], "Done.");
    assert!(!tools(&model.requests()[0].body).contains(&"mcp__named__echo"));
}

#[test]
fn pit_K2_a_wait_for_servers_is_interrupted_and_the_next_prompt_waits_again() {
    let place = Place::new();
    let file = place.put("server.sh", SERVER);
    let gate = place.temp().join("gate");
    let config = json!({"mcpServers": {"named": server(&file, &gate)}}).to_string();
    let model = model(Script::new().reply([text("Done.")]));
    let mut talk = Talk::start(&place, &model, &["--mcp-config", &config]);
    talk.prompt("hi");
    talk.system("init");
    let answer = talk.asked(&json!({"subtype": "interrupt"}));
    assert_eq!(answer["subtype"], "success");
    let result = talk.result();
    assert_eq!((&result["subtype"], &result["is_error"]), (&json!("error_during_execution"), &json!(true)));
    talk.prompt("again");
    talk.system("init");
    assert!(model.requests().is_empty());
    std::fs::write(&gate, "").unwrap();
    assert_eq!(talk.result()["result"], "Done.");
    wait(model.wait_for_requests(1));
    let requests = model.requests();
    assert_eq!(requests.len(), 1);
    assert!(tools(&requests[0].body).contains(&"mcp__named__echo"));
    let said = requests[0].body["messages"].to_string();
    assert!(said.contains("Request interrupted by user") && said.contains("again"), "{said}");
}
