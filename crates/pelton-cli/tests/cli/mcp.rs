//! `pelton mcp`: servers of tools, kept and looked at.

use std::os::unix::fs::PermissionsExt;
use std::path::Path;

use pelton_testkit::{Script, Step, text, tool};
use serde_json::{Value, json};

use crate::place::{Commanded, Place, model};

/// A server that is written for the shell, and serves one tool.
const SERVER: &str = r#"
while IFS= read -r line; do
    id=$(printf '%s' "$line" | sed -n 's/^{"jsonrpc":"2.0","id":\([0-9]*\).*/\1/p')
    answer() { printf '{"jsonrpc":"2.0","id":%s,"result":%s}\n' "$id" "$1"; }
    case "$line" in
    *'"method":"initialize"'*) answer '{"protocolVersion":"2025-06-18","capabilities":{"tools":{}},"serverInfo":{"name":"s","version":"1"}}' ;;
    *'"method":"tools/list"'*) answer '{"tools":['"$MORE"'{"name":"echo","inputSchema":{"type":"object"}}]}' ;;
    *'"method":"tools/call"'*) answer '{"content":[{"type":"text","text":"'"$(head -c 4000 /dev/zero | tr '\0' x)"'"}]}' ;;
    esac
done
"#;

fn json_in(file: &Path) -> Value {
    serde_json::from_str(&std::fs::read_to_string(file).unwrap()).unwrap()
}

#[test]
fn servers_are_added_where_they_belong_and_taken_away_and_the_rest_stays() {
    let place = Place::new();
    let state = place.config().join(".claude.json");
    std::fs::write(&state, "{\n    \"theme\": \"dark\",\n    \"projects\": {\"/other\": {\"x\": 1}}\n}\n")
        .unwrap();
    std::fs::set_permissions(&state, std::fs::Permissions::from_mode(0o640)).unwrap();
    let add = |words: &[&str]| {
        place.pelton(["mcp", "add"].iter().chain(words).copied()).run().well();
    };
    add(&["mine", "-e", "KEY=a=b", "--timeout", "5000", "--", "serve", "--flag", "x y"]);
    add(&["-s", "user", "--transport", "http", "far", "https://far.example/mcp", "--header", "X-Key: k: v"]);
    add(&["old", "--transport", "sse", "--scope", "project", "https://old.example/sse"]);
    let json = r#"{"command": "team", "alwaysLoad": true}"#;
    place.pelton(["mcp", "add-json", "-s", "project", "team", json]).run().well();

    let kept = json_in(&state);
    let work = place.work().to_str().unwrap().to_owned();
    assert_eq!(
        kept["projects"][&work]["mcpServers"],
        json!({"mine": {"type": "stdio", "command": "serve", "args": ["--flag", "x y"], "env": {"KEY": "a=b"}, "timeout": 5000}})
    );
    assert_eq!(
        kept["mcpServers"],
        json!({"far": {"type": "http", "url": "https://far.example/mcp", "headers": {"X-Key": "k: v"}}})
    );
    assert_eq!((&kept["theme"], &kept["projects"]["/other"]), (&json!("dark"), &json!({"x": 1})));
    assert_eq!(state.metadata().unwrap().permissions().mode() & 0o777, 0o640, "the mode it had");
    assert!(place.config().join("backups").read_dir().unwrap().count() > 0);
    let shared = json_in(&place.work().join(".mcp.json"));
    assert_eq!(shared["mcpServers"]["old"], json!({"type": "sse", "url": "https://old.example/sse"}));
    assert_eq!(shared["mcpServers"]["team"]["alwaysLoad"], true);

    let listed = place.pelton(["mcp", "list"]).run();
    let lines: Vec<&str> = listed.well().lines().collect();
    assert_eq!(
        lines,
        [
            "mine: serve --flag x y (local)",
            "old: https://old.example/sse (project)",
            "team: team (project)",
            "far: https://far.example/mcp (user)"
        ]
    );
    let got = place.pelton(["mcp", "get", "mine"]).run();
    assert!(got.well().contains("environment: KEY") && !got.out.contains("a=b"), "{}", got.out);

    place.pelton(["mcp", "remove", "mine"]).run().well();
    place.pelton(["mcp", "remove", "-s", "project", "old"]).run().well();
    let kept = json_in(&state);
    assert_eq!(kept["projects"][&work]["mcpServers"], json!({}));
    assert_eq!(kept["projects"]["/other"], json!({"x": 1}));
    assert_eq!(json_in(&place.work().join(".mcp.json"))["mcpServers"].as_object().unwrap().len(), 1);
}

#[test]
fn what_cannot_be_meant_is_told_and_nothing_is_written() {
    let place = Place::new();
    place.put(".mcp.json", "{ broken");
    let check = |words: &[&str], told: &str| {
        let ran = place.pelton(["mcp"].iter().chain(words).copied()).run();
        assert!(ran.code == Some(1) && ran.err.contains(told), "{words:?}: {ran:?}");
        assert_eq!(ran.err.trim().lines().count(), 1, "{words:?}: {}", ran.err);
    };
    check(&["add", "bad name", "--", "x"], "other characters than letters");
    check(&["add", "workspace", "--", "x"], "a name that is taken");
    check(&["add", "s", "https://x.example"], "is an address: say --transport http");
    check(&["add", "s", "-H", "A: b", "--", "x"], "--header is for servers at an address");
    check(&["add", "s", "-e", "=x", "--", "x"], "is not of the form --env KEY=VALUE");
    check(&["add", "-t", "http", "s", "ftp://x"], "no http address");
    check(&["add", "-t", "http", "s", "http://x", "more"], "takes one address");
    check(&["add", "--timeout", "5", "s", "--", "x"], "at least 1000 milliseconds");
    check(&["add", "-s", "project", "s", "--", "x"], "is not JSON, so it is left as it is");
    check(&["add-json", "s", "{"], "the entry is not JSON");
    check(&["add-json", "s", r#"{"type":"sdk","name":"s"}"#], "inside a program");
    assert_eq!(place.read(".mcp.json"), "{ broken");
    assert!(!place.config().join(".claude.json").exists());

    place.put(".mcp.json", r#"{"mcpServers": {"s": {"command": "shared"}}}"#);
    place.pelton(["mcp", "add", "s", "--", "mine"]).run().well();
    check(&["add", "s", "--", "again"], "there is a server 's' already");
    check(&["remove", "s"], "in several scopes: say --scope local or project");
    check(&["remove", "-s", "user", "s"], "no MCP server 's' in user scope");
    check(&["get", "nobody"], "there is no MCP server 'nobody' here");
    check(&["test", "nobody"], "there is no MCP server 'nobody' here");
}

#[test]
fn servers_are_tried_and_those_of_a_directory_only_when_they_are_meant() {
    let place = Place::new();
    let file = place.put("server.sh", SERVER);
    place.pelton(["mcp", "add", "good", "--", "sh", file.to_str().unwrap()]).run().well();
    let tried = place.pelton(["mcp", "test"]).run();
    assert_eq!(tried.well().trim(), "good: connected, tools: echo");
    place.pelton(["mcp", "add", "bad", "--", "no-such-program-at-all"]).run().well();
    let tried = place.pelton(["mcp", "test"]).run();
    assert!(
        tried.code == Some(1) && tried.out.contains("bad: failed: 'no-such-program-at-all'"),
        "{tried:?}"
    );
    assert!(tried.out.contains("good: connected"), "{tried:?}");

    place.put(
        ".mcp.json",
        &json!({"mcpServers": {"brought": {"command": "touch", "args": ["ran"]}}}).to_string(),
    );
    let tried = place.pelton(["mcp", "test"]).run();
    assert!(tried.out.contains("brought: not tried") && !place.has("ran"), "{tried:?}");
    place.pelton(["mcp", "list"]).run().well();
    assert!(!place.has("ran"), "to be listed, nobody is started");
    let tried = place.pelton(["mcp", "test", "brought"]).run();
    assert!(tried.code == Some(1) && place.has("ran"), "{tried:?}");
}

#[test]
fn without_servers_the_way_to_them_is_told() {
    let place = Place::new();
    assert!(place.pelton(["mcp", "list"]).run().well().contains("pelton mcp add"));
    let help = place.pelton(["mcp", "add", "--help"]).run();
    for part in
        ["--scope", "--transport", "--header", "--env", "npx -y @modelcontextprotocol/server-filesystem"]
    {
        assert!(help.well().contains(part), "{part}");
    }
}

#[test]
fn pit_X4_faulty_tools_are_named_and_spare_the_others_and_one_that_is_refused_is_left_out() {
    let place = Place::new();
    let file = place.put("server.sh", SERVER);
    let faulty: Vec<String> =
        (0..10).map(|nth| format!(r#"{{"name":"bad{nth}","inputSchema":{{"type":"string"}}}},"#)).collect();
    let more = faulty.concat() + r#"{"name":"refused","inputSchema":{"type":"object","pattern":"("}},"#;
    let entry = json!({"command": "sh", "args": [file], "env": {"MORE": more}});
    place.pelton(["mcp", "add-json", "shop", &entry.to_string()]).run().well();
    let tried = place.pelton(["mcp", "test"]).run();
    for part in ["bad0 is left out", "bad9 is left out", "echo"] {
        assert!(tried.well().contains(part), "{part}: {}", tried.out);
    }
    let names = |body: &Value| -> Vec<String> {
        let tools = body["tools"].as_array().unwrap().iter();
        tools.map(|tool| tool["name"].as_str().unwrap().to_owned()).collect()
    };
    let config = json!({"mcpServers": {"shop": entry}}).to_string();
    let probe = model(Script::new().reply([text("Done.")]));
    place.task(&probe, ["go", "--mcp-config", &config]).run().well();
    let sent = names(&probe.requests()[0].body);
    assert!(
        sent.contains(&"mcp__shop__echo".to_owned()) && !sent.iter().any(|name| name.contains("bad")),
        "{sent:?}"
    );
    let at = sent.iter().position(|name| name == "mcp__shop__refused").unwrap();
    let refusal = format!("tools.{at}.custom.input_schema: JSON schema is invalid");
    let strict = model(
        Script::new()
            .step(Step::status(400).message(refusal))
            .reply([tool("mcp__shop__echo", json!({}))])
            .reply([text("Done.")]),
    );
    let words = ["go", "--allowedTools", "mcp__shop", "--mcp-config", &config];
    place.task(&strict, words).run().well();
    let requests = strict.requests();
    assert_eq!(requests.len(), 3);
    let expected: Vec<String> = sent.iter().filter(|name| *name != "mcp__shop__refused").cloned().collect();
    assert_eq!(names(&requests[1].body), expected, "without the one that was refused, and nothing else");
    assert!(requests[2].body["messages"].to_string().contains("xxxx"));
}

#[test]
fn an_answer_of_a_server_is_as_long_as_was_said() {
    let place = Place::new();
    let file = place.put("server.sh", SERVER);
    let asked = |tokens: &str| {
        let script = Script::new().reply([tool("mcp__shop__echo", json!({}))]).reply([text("Done.")]);
        let model = model(script);
        let config = json!({"mcpServers": {"shop": {"command": "sh", "args": [file]}}}).to_string();
        let words = ["go", "--allowedTools", "mcp__shop", "--mcp-config", &config];
        place.task(&model, words).env("MAX_MCP_OUTPUT_TOKENS", tokens).run().well();
        model.requests()[1].body["messages"].to_string()
    };
    let whole = "x".repeat(4000);
    assert!(asked("1000").contains(&whole));
    let cut = asked("500");
    assert!(!cut.contains(&whole) && cut.contains("tool-results"), "{cut}");
}

#[test]
fn a_tool_that_wants_a_person_never_runs_without_one() {
    let place = Place::new();
    let marked = r#""name":"echo","_meta":{"anthropic/requiresUserInteraction":true}"#;
    let file = place.put("server.sh", &SERVER.replace(r#""name":"echo""#, marked));
    let config = json!({"mcpServers": {"shop": {"command": "sh", "args": [file]}}}).to_string();
    for mode in ["default", "bypassPermissions", "dontAsk"] {
        let script = Script::new().reply([tool("mcp__shop__echo", json!({}))]).reply([text("Done.")]);
        let model = model(script);
        let words = ["go", "--allowedTools", "mcp__shop", "--permission-mode", mode, "--mcp-config", &config];
        place.task(&model, words).env("IS_SANDBOX", "1").run().well();
        let told = model.requests()[1].body["messages"].to_string();
        assert!(told.contains("needs somebody to agree") && !told.contains("xxxx"), "{mode}: {told}");
    }
}

#[test]
fn servers_of_the_administrator_are_there_whatever_else_is_called_so() {
    let place = Place::new();
    place.put("server.sh", SERVER);
    place.put("other.sh", &SERVER.replace("\"echo\"", "\"other\""));
    // Those are waited for.
    let server = |file: &str| json!({"command": "sh", "args": [place.work().join(file)], "alwaysLoad": true});
    place.put(".mcp.json", &json!({"mcpServers": {"theirs": server("other.sh")}}).to_string());
    let managed = json!({"managedMcpServers": {"theirs": server("server.sh")}}).to_string();
    let offered = |words: &[&str]| {
        let model = model(Script::new().reply([text("Done.")]));
        let words = std::iter::once("hi").chain(words.iter().copied());
        let ran = place.task(&model, words).run();
        assert_eq!(ran.code, Some(0), "{ran:?}");
        let is_told = ran.err.contains("`managedMcpServers` is for managed settings");
        (model.requests()[0].body["tools"].to_string(), is_told)
    };
    let (tools, is_told) = offered(&["--managed-settings", &managed]);
    assert!(tools.contains("mcp__theirs__echo") && !tools.contains("mcp__theirs__other"), "{tools}");
    assert!(!is_told);
    // Nobody else brings servers by that key, and whoever tries is told.
    let (tools, is_told) = offered(&["--settings", &managed, "--strict-mcp-config"]);
    assert!(!tools.contains("mcp__theirs") && is_told, "{tools}");
}

/// Why a server is not there is told in words about the world, whatever way leads to it.
#[test]
fn a_server_that_nobody_listens_for_is_told_without_names_of_our_parts() {
    let place = Place::new();
    // Nobody listens on a port that was given back.
    let port = std::net::TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap().port();
    for (transport, name) in [("http", "new"), ("sse", "old")] {
        let address = format!("http://127.0.0.1:{port}/");
        place.pelton(["mcp", "add", "--transport", transport, name, &address]).run().well();
        let ran = place.pelton(["mcp", "test", name]).run();
        assert_eq!(ran.code, Some(1));
        assert!(ran.out.contains("refused"), "{}", ran.out);
        assert!(!ran.out.contains("rmcp") && !ran.out.contains("::"), "{}", ran.out);
    }
}

/// How much servers that are programs are told of the environment, and how many of them are met at a time, is for the user to say.
#[test]
fn servers_are_told_of_the_environment_what_the_user_wants_and_met_as_many_at_a_time() {
    let place = Place::new();
    let tells = |name: &str| json!({"command": "sh", "args": ["-c", format!("env > {name}.env; sleep 0.4")], "env": {"OWN": "mine"}});
    let run = |set: &[(&str, &str)]| {
        let servers = json!({"mcpServers": {"a": tells("a"), "b": tells("b"), "c": tells("c")}}).to_string();
        let model = model(Script::new().reply([text("Done.")]));
        let mut command = place.task(&model, ["hi", "--strict-mcp-config", "--mcp-config", &servers]);
        let ran = command.env("COLOUR", "blue").envs(set.iter().copied()).run();
        assert_eq!(ran.code, Some(0), "{ran:?}");
        ran.took
    };
    let side_by_side = run(&[]);
    let told = place.read("a.env");
    assert!(told.contains("COLOUR=blue") && told.contains("OWN=mine") && !told.contains("sk-test"), "{told}");
    let in_turn = run(&[("MCP_SERVER_CONNECTION_BATCH_SIZE", "1"), ("CLAUDE_CODE_MCP_ALLOWLIST_ENV", "1")]);
    let told = place.read("a.env");
    assert!(!told.contains("COLOUR") && told.contains("OWN=mine") && told.contains("PATH="), "{told}");
    let longer = in_turn.saturating_sub(side_by_side);
    assert!(longer > std::time::Duration::from_millis(400), "{in_turn:?} after {side_by_side:?}");
}

/// Reads a request to an address, and gives what was asked and the id of it.
fn asked_of(visitor: &mut std::net::TcpStream) -> Option<Value> {
    use std::io::{BufRead, BufReader, Read};
    let mut lines = BufReader::new(visitor);
    let (mut line, mut length) = (String::new(), 0);
    while lines.read_line(&mut line).ok()? > 2 {
        if let Some(said) = line.to_ascii_lowercase().strip_prefix("content-length:") {
            length = said.trim().parse().ok()?;
        }
        line.clear();
    }
    let mut body = vec![0; length];
    lines.read_exact(&mut body).ok()?;
    serde_json::from_slice(&body).ok()
}

/// A server at an address that never ends its answer is not listened to for ever.
#[test]
fn an_answer_without_end_is_cut_off_and_the_session_goes_on() {
    use std::io::Write;
    let listener = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
    let url = format!("http://{}/mcp", listener.local_addr().unwrap());
    std::thread::spawn(move || {
        for mut visitor in listener.incoming().flatten() {
            std::thread::spawn(move || {
                let asked = asked_of(&mut visitor).unwrap_or_default();
                let answer = |visitor: &mut std::net::TcpStream, status: &str, body: &str| {
                    let length = body.len();
                    let head = format!(
                        "HTTP/1.1 {status}\r\ncontent-type: application/json\r\ncontent-length: {length}\r\nconnection: close\r\n\r\n"
                    );
                    _ = visitor.write_all(format!("{head}{body}").as_bytes());
                };
                let result = |result: Value| {
                    json!({"jsonrpc": "2.0", "id": asked["id"], "result": result}).to_string()
                };
                match asked["method"].as_str() {
                    Some("initialize") => {
                        let hello = json!({"protocolVersion": "2025-06-18", "capabilities": {"tools": {}}, "serverInfo": {"name": "s", "version": "1"}});
                        answer(&mut visitor, "200 OK", &result(hello));
                    }
                    Some("tools/list") => {
                        answer(
                            &mut visitor,
                            "200 OK",
                            &result(json!({"tools": [{"name": "talk", "inputSchema": {"type": "object"}}]})),
                        );
                    }
                    Some("tools/call") => {
                        let head = "HTTP/1.1 200 OK\r\ncontent-type: application/json\r\nconnection: close\r\n\r\n{\"jsonrpc\":\"2.0\",\"result\":\"";
                        _ = visitor.write_all(head.as_bytes());
                        while visitor.write_all(&[b'x'; 65536]).is_ok() {}
                    }
                    Some(_) => answer(&mut visitor, "202 Accepted", ""),
                    None => answer(&mut visitor, "405 Method Not Allowed", ""),
                }
            });
        }
    });
    let place = Place::new();
    let servers = json!({"mcpServers": {"s": {"type": "http", "url": url, "timeout": 20_000}}}).to_string();
    let model = model(Script::new().reply([tool("mcp__s__talk", json!({}))]).reply([text("Done.")]));
    let words = ["go", "--mcp-config", &servers, "--allowedTools", "mcp__s"];
    let ran = place.task(&model, words).env("ENABLE_TOOL_SEARCH", "false").run();
    assert_eq!(ran.out, "Done.\n", "{ran:?}");
    let told = model.requests()[1].body["messages"].to_string();
    assert!(told.contains("its answer is longer than"), "{told}");
}
