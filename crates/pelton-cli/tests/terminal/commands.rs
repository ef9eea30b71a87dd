//! Slash commands: each answers, the terminal's own and those of others.

use std::os::unix::fs::PermissionsExt;

use pelton_testkit::{Script, Step, text, tool};
use serde_json::json;

use crate::place::{Place, model};
use crate::seat::Seat;

fn always(words: &str) -> pelton_testkit::ScriptedModel {
    model(Script::new().step(Step::reply([text(words)]).always()))
}

/// Calls a command; what it says stands on the screen afterwards.
#[track_caller]
fn says(seat: &mut Seat, command: &str, words: &[&str]) {
    seat.types(&format!("{command}\r"));
    // The command stands in the conversation, as a prompt would, and what it says below it.
    let stands = |seat: &Seat| seat.rows().iter().rposition(|row| *row == format!("> {command}"));
    seat.until(&format!("{command} stands there"), |seat| stands(seat).is_some());
    for words in words {
        seat.until(&format!("{command} says {words:?}"), |seat| {
            seat.rows()[stands(seat).unwrap()..].iter().any(|row| row.contains(words))
        });
    }
    seat.rests();
}

#[test]
fn every_command_that_tells_something_tells_it() {
    let place = Place::new();
    std::fs::write(place.config().join("CLAUDE.md"), "Be brief.\n").unwrap();
    place.put(".claude/agents/looker.md", "---\nname: looker\ndescription: Looks\n---\nLook.\n");
    std::fs::create_dir_all(place.config().join("skills/ship")).unwrap();
    std::fs::write(
        place.config().join("skills/ship/SKILL.md"),
        "---\nname: ship\ndescription: Ships it\n---\nShip.\n",
    )
    .unwrap();
    let settings = json!({"model": "claude-sonnet-5", "permissions": {"deny": ["Bash(rm:*)"]},
        "hooks": {"Stop": [{"hooks": [{"type": "command", "command": "true hooked"}]}]}});
    std::fs::write(place.config().join("settings.json"), settings.to_string()).unwrap();
    let todos = json!({"todos": [
        {"content": "wash", "status": "completed", "activeForm": "washing"},
        {"content": "dry", "status": "in_progress", "activeForm": "drying"}]});
    let model = model(
        Script::new().reply([tool("TodoWrite", todos)]).step(Step::reply([text("All well.")]).always()),
    );
    let mut seat = Seat::at(&place, &model, ["hello"]);
    seat.sees("All well.");
    seat.rests();
    says(&mut seat, "/cost", &["in all", "claude-sonnet-5:", "read from the cache"]);
    says(&mut seat, "/status", &["mode default", "works in", "session ", "recorded in"]);
    says(&mut seat, "/permissions", &["mode: default", "deny: Bash(rm:*)", "works in"]);
    says(&mut seat, "/mcp", &["there are no servers of tools"]);
    says(&mut seat, "/agents", &["general-purpose", "looker                    Looks"]);
    says(&mut seat, "/skills", &["ship                      Ships it"]);
    says(&mut seat, "/hooks", &["true hooked"]);
    says(&mut seat, "/config", &["settings.json"]);
    says(&mut seat, "/memory", &["CLAUDE.md · ", "tokens"]);
    says(&mut seat, "/todos", &["[x] wash", "[>] dry"]);
    says(&mut seat, "/bashes", &["nothing runs in the background"]);
    says(&mut seat, "/doctor", &["What is configured:", "Nothing is wrong with it."]);
    says(&mut seat, "/context", &["System prompt", "What could be freed"]);
    // A list to choose from; what is typed narrows it down. Whoever chooses nothing leaves nothing behind.
    seat.types("/theme\r");
    seat.sees("Which colours?");
    seat.types("\u{1b}");
    seat.sees_no_more("Which colours?");
    assert!(!seat.rows().contains(&"> /theme".to_owned()), "{:#?}", seat.rows());
    seat.types("/model\r");
    seat.sees("Ask which model?");
    seat.sees("❯  now  claude-sonnet-5");
    seat.types("opus-4-5");
    seat.sees("1 of ");
    seat.types("\r");
    seat.sees("claude-opus-4-5 is asked from now on");
    says(&mut seat, "/model haiku", &["claude-haiku", "is asked from now on"]);
    says(&mut seat, "/effort", &["effort is the model's own"]);
    says(&mut seat, "/effort high", &["effort is high from now on"]);
    says(&mut seat, "/effort most", &["low, medium, high, xhigh or max"]);
    says(&mut seat, "/rename Washing day", &["this session is called Washing day now"]);
    let asked = model.requests().len();
    says(&mut seat, "/help", &["/security-review"]);
    assert_eq!(model.requests().len(), asked, "none of them asked the model");
    // Each command once, keys before them.
    let rows = seat.rows();
    let from = rows.iter().rposition(|row| row == "> /help").unwrap();
    let named = |name: &str| rows[from..].iter().filter(|row| row.split(' ').next() == Some(name)).count();
    for name in ["/help", "/agents", "/compact", "/context", "/init", "/ship", "Shift+Tab"] {
        assert_eq!(named(name), 1, "{name}: {:#?}", &rows[from..]);
    }
    seat.types("next\r");
    seat.until("the other model is asked", |_| {
        model.requests().last().unwrap().body["model"].as_str().unwrap().starts_with("claude-haiku")
    });
    seat.rests();
    seat.types("/exit\r");
    assert_eq!(seat.ends(), Some(0));
}

#[test]
fn before_anything_was_said_commands_tell_what_there_is() {
    let (place, model) = (Place::new(), always("Well."));
    let mut seat = Seat::at(&place, &model, []);
    seat.sees("asks before changes");
    says(&mut seat, "/doctor", &["What is configured:"]);
    says(&mut seat, "/context", &["System prompt"]);
    says(&mut seat, "/cost", &["nothing was spent yet"]);
    assert!(!seat.rows().join("\n").contains("No conversation found"), "{:#?}", seat.rows());
}

#[test]
fn commands_change_the_conversation_and_tell_so() {
    let place = Place::new();
    // Long enough that a summary is shorter.
    let words = "words and words ".repeat(500);
    let answers = (1..=4).map(|number| Step::reply([text(format!("{words}\n\nAnswer {number}."))]));
    let script = answers.fold(Script::new(), Script::step);
    let model = model(
        script
            .step(Step::reply([text("<summary>They counted.</summary>")]).times(1))
            .step(Step::reply([text("Later.")]).always()),
    );
    let mut seat = Seat::at(&place, &model, ["one"]);
    seat.sees("Answer 1.");
    seat.rests();
    for (number, words) in ["two", "three", "four"].into_iter().enumerate() {
        seat.types(&format!("{words}\r"));
        seat.sees(&format!("Answer {}.", number + 2));
        seat.rests();
    }
    says(&mut seat, "/compact", &["the conversation was summed up: "]);
    says(&mut seat, "/uncompact", &["> /uncompact"]);
    seat.types("go on\r");
    seat.sees("Later.");
    let last = model.requests().last().unwrap().body["messages"].to_string();
    assert!(last.contains("Answer 2.") && !last.contains("They counted."), "the summary is undone: {last}");
    seat.rests();
    says(&mut seat, "/export talk.md", &["the conversation goes to talk.md"]);
    seat.until("the file is there", |_| place.has("talk.md") && place.read("talk.md").contains("Answer 3."));
    says(&mut seat, "/clear", &["This is another conversation. The last one is kept as"]);
    seat.types("anew\r");
    seat.until("the past is gone", |_| {
        let last = model.requests().last().unwrap().body["messages"].to_string();
        last.contains("anew") && !last.contains("Answer 1.")
    });
    seat.rests();
    // The one before can be gone on with.
    seat.types("/resume\r");
    seat.sees("Go on with");
    seat.sees("one");
    seat.types("\r");
    seat.sees("Answer 4.");
    seat.types("back\r");
    seat.until("the past is there again", |_| {
        model.requests().last().unwrap().body["messages"].to_string().contains("Answer 1.")
    });
}

#[test]
fn init_and_plan_ask_the_model() {
    let place = Place::new();
    let model = always("Read.");
    let mut seat = Seat::at(&place, &model, []);
    seat.sees("> ");
    seat.types("/init\r");
    seat.sees("> /init");
    seat.sees("Read.");
    seat.rests();
    assert!(model.requests().last().unwrap().body.to_string().contains("Write a file CLAUDE.md in the root"));
    seat.types("/plan mend it\r");
    seat.sees("> /plan mend it");
    seat.sees("plans only");
    seat.until("it is asked", |_| model.requests().len() == 2);
    let asked = model.requests().last().unwrap().body["messages"].to_string();
    assert!(asked.contains("\"mend it\"") && !asked.contains("/plan mend it"), "{asked}");
}

#[test]
fn rewind_lists_what_was_typed() {
    let place = Place::new();
    let model = always("Well.");
    let mut seat = Seat::at(&place, &model, ["first thing"]);
    seat.sees("Well.");
    seat.rests();
    seat.types("!echo by hand\r");
    seat.sees("by hand");
    seat.rests();
    seat.types("/rewind\r");
    seat.sees("Go back to before");
    seat.sees("!echo by hand");
    assert!(
        seat.screen().contains("first thing") && !seat.screen().contains("bash-input"),
        "{}",
        seat.screen()
    );
    // It narrows down to what is typed.
    seat.types("first");
    seat.sees("1 of 2");
    seat.types("\r");
    seat.sees("What goes back?");
    seat.sees("no file was changed since");
    seat.types("n");
    seat.sees_no_more("What goes back?");
}

#[test]
fn what_runs_in_the_background_is_told_and_ended() {
    let place = Place::new();
    let sleeps =
        tool("Bash", json!({"command": "sleep 300", "description": "Sleep long", "run_in_background": true}));
    let model = model(Script::new().reply([sleeps]).step(Step::reply([text("It runs.")]).always()));
    let mut seat = Seat::at(&place, &model, ["--allowedTools", "Bash", "--", "go"]);
    seat.sees("It runs.");
    // The row may be cut behind it.
    seat.sees(" · 1 in the b");
    seat.rests();
    says(&mut seat, "/bashes", &["Sleep long", "/bashes stop ID ends one"]);
    let rows = seat.rows();
    let row = rows.iter().rfind(|row| row.contains(" · ") && row.contains("output in")).unwrap();
    let id = row.split(" · ").next().unwrap().to_owned();
    seat.types(&format!("/bashes stop {id}\r"));
    seat.sees_no_more(" · 1 in the b");
}

#[test]
fn commands_of_the_user_skills_and_prompts_of_servers_are_called_by_their_names() {
    let place = Place::new();
    std::fs::create_dir_all(place.config().join("commands")).unwrap();
    std::fs::write(
        place.config().join("commands/shout.md"),
        "---\ndescription: Shouts\n---\nShout $ARGUMENTS!\n",
    )
    .unwrap();
    let skill = place.config().join("skills/wash");
    std::fs::create_dir_all(&skill).unwrap();
    std::fs::write(skill.join("SKILL.md"), "---\nname: wash\ndescription: Washes\n---\nWash with soap.\n")
        .unwrap();
    let server = place.put("server.sh", PROMPTING);
    std::fs::set_permissions(&server, std::fs::Permissions::from_mode(0o755)).unwrap();
    let servers = json!({"mcpServers": {"poet": {"command": "sh", "args": [server]}}}).to_string();
    let model = always("Heard.");
    let mut seat = Seat::at(&place, &model, ["--mcp-config", &servers]);
    seat.sees("> ");
    for (typed, told) in [
        ("/shout it", "Shout it!"),
        ("/wash", "Wash with soap."),
        ("/mcp__poet__rhyme moon", "A rhyme on moon, please."),
    ] {
        let before = model.requests().len();
        seat.types(&format!("{typed}\r"));
        seat.until(&format!("{typed} is asked"), |_| model.requests().len() > before);
        let asked = model.requests().last().unwrap().body["messages"].to_string();
        assert!(asked.contains(told), "{typed}: {asked}");
        seat.sees("Heard.");
        seat.rests();
    }
    // They are offered, too, and so is the state of the server told.
    seat.types("/rhy");
    seat.sees("› /mcp__poet__rhyme");
    seat.types("\u{15}");
    says(&mut seat, "/mcp", &["poet · connected"]);
}

/// Serves one prompt, and a tool that asks the user back.
pub const PROMPTING: &str = r#"
while IFS= read -r line; do
    id=$(printf '%s' "$line" | sed -n 's/^{"jsonrpc":"2.0","id":\([0-9]*\).*/\1/p')
    answer() { printf '{"jsonrpc":"2.0","id":%s,"result":%s}\n' "$id" "$1"; }
    case "$line" in
    *'"method":"initialize"'*) answer '{"protocolVersion":"2025-06-18","capabilities":{"tools":{},"prompts":{}},"serverInfo":{"name":"poet","version":"1"}}' ;;
    *'"method":"tools/list"'*) answer '{"tools":[{"name":"ask","inputSchema":{"type":"object"}}]}' ;;
    *'"method":"prompts/list"'*) answer '{"prompts":[{"name":"rhyme","description":"Rhymes","arguments":[{"name":"word","required":true}]}]}' ;;
    *'"method":"prompts/get"'*) answer '{"messages":[{"role":"user","content":{"type":"text","text":"A rhyme on moon, please."}}]}' ;;
    *'"method":"tools/call"'*)
        call=$id
        printf '%s\n' '{"jsonrpc":"2.0","id":"e1","method":"elicitation/create","params":{"message":"Which metre?","requestedSchema":{"type":"object","required":["feet"],"properties":{"feet":{"type":"integer","title":"Feet"},"kind":{"type":"string","enum":["iamb","trochee"]}}}}}'
        IFS= read -r answered
        told=$(printf '%s' "$answered" | sed 's/["\\]/'"'"'/g')
        id=$call
        answer "{\"content\":[{\"type\":\"text\",\"text\":\"$told\"}]}" ;;
    esac
done
"#;
