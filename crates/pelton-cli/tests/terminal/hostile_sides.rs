//! What comes from outside, from every side it can come from: status lines, hooks, servers, questions, plans, lists, names of models,
//! sessions, files and commands, and what the API says when it refuses.

use std::fmt::Write as _;
use std::process::Command;

use pelton_testkit::{Script, ScriptedModel, Step, When, text, tool};
use serde_json::{Value, json};

use crate::hostile::foreign;
use crate::place::{Commanded, Place, model};
use crate::seat::Seat;

/// Sequences that terminals act on, and characters that nobody sees. Those without an end stand last in each group: whatever
/// follows them may be taken for a part of them.
const GROUPS: [&[&str]; 6] = [
    &[
        "\u{1b}]8;;https://evil.example\u{7}link\u{1b}]8;;\u{7}",
        "\u{1b}]8;id=1;file:///etc/passwd\u{1b}\\link\u{1b}]8;;\u{1b}\\",
        "\u{1b}]52;c;cm0gLXJmIC8=\u{7}",
        "\u{1b}]52;p;?\u{1b}\\",
        "\u{1b}]0;owned\u{7}",
        "\u{1b}]2;owned\u{1b}\\",
        "\u{1b}]l;owned\u{9c}",
        "\u{1b}[21t\u{1b}[20t",
        "\u{202e}txt.exe\u{202c}",
        "\u{1b}]0;never ends",
    ],
    &[
        "\u{1b}P+q544e\u{1b}\\",
        "\u{1b}P$q\"p\u{1b}\\",
        "\u{1b}P1;1;1q#0;2;0;0;0~~\u{1b}\\",
        "\u{1b}Ptmux;\u{1b}\u{1b}]52;c;eA==\u{7}\u{1b}\\",
        "\u{1b}_Gf=100,a=T;AAAA\u{1b}\\",
        "\u{1b}^private\u{1b}\\",
        "\u{1b}Xstart of string\u{1b}\\",
        "\u{1b}k title of screen\u{1b}\\",
        "\u{2066}isolated\u{2069}",
        "\u{1b}Pnever ends",
    ],
    &[
        "\u{9b}2J",
        "\u{9b}31m",
        "\u{9d}0;owned\u{9c}",
        "\u{90}+q\u{9c}",
        "\u{9f}G\u{9c}",
        "\u{85}next line",
        "\u{84}\u{8d}\u{88}",
        "\u{8e}\u{8f}",
        "\u{200b}\u{200c}\u{200d}\u{2060}\u{feff}",
        "\u{9e}never ends",
    ],
    &[
        "\u{1b}[2J\u{1b}[3J\u{1b}[H",
        "\u{1b}[99A\u{1b}[99D",
        "\u{1b}[1;1Howned",
        "\u{1b}[s\u{1b}[u\u{1b}7\u{1b}8",
        "\u{1b}[5;10r\u{1b}[?6h",
        "\u{1b}[?1049h\u{1b}[?47h",
        "\u{1b}[?1000h\u{1b}[?1006h",
        "\u{1b}M\u{1b}D\u{1b}E",
        "\u{e0001}\u{e0072}\u{e006d}\u{e007f}",
        "\u{1b}[38;2;1",
    ],
    &[
        "\u{1b}[6n\u{1b}[5n\u{1b}[c\u{1b}[>c\u{1b}[=c",
        "\u{1b}[?25l\u{1b}[?2004h\u{1b}[?2026h",
        "\u{1b}[4h\u{1b}[20h\u{1b}[?7l",
        "\u{1b}c",
        "\u{1b}[!p\u{1b}[62;1\"p",
        "\u{1b}(0lqk\u{1b}(B",
        "\u{e}\u{f}",
        "\u{1b}%G\u{1b}%@",
        "\u{61c}\u{200e}\u{200f}",
        "\u{1b}[",
    ],
    &[
        "\u{8}\u{8}\u{8}rm",
        "safe\rrm -rf",
        "\u{7}\u{7}\u{7}",
        "\u{b}\u{c}",
        "\u{7f}\u{7f}",
        "\u{0}\u{1}\u{2}\u{3}",
        "\u{1b}[?5h\u{1b}[5m\u{1b}[8mhidden",
        "\u{1b}]1337;File=inline=1:AAAA\u{7}\u{1b}]777;notify;a;b\u{7}\u{1b}]9;9\u{7}",
        "\u{1b}]4;1;?\u{7}\u{1b}]10;?\u{7}\u{1b}]11;#ff0000\u{7}\u{1b}]104\u{7}",
        "\u{1b}",
    ],
];

/// What a side says in one of the sessions: over all of them, everything.
fn said(session: usize, side: usize) -> String {
    let mut said = format!("side{side}");
    for sequence in GROUPS[(session + side) % GROUPS.len()] {
        let _ = write!(said, " {sequence} and");
    }
    said
}

/// A server whose tool asks the user back, in words and a form of this kind.
fn server(place: &Place, asks: &Value) -> Value {
    place.put("asks.json", &format!("{asks}\n"));
    let script = r#"while IFS= read -r line; do
    id=$(printf '%s' "$line" | sed -n 's/^{"jsonrpc":"2.0","id":\([0-9]*\).*/\1/p')
    answer() { printf '{"jsonrpc":"2.0","id":%s,"result":%s}\n' "$id" "$1"; }
    case "$line" in
    *'"method":"initialize"'*) answer '{"protocolVersion":"2025-06-18","capabilities":{"tools":{}},"serverInfo":{"name":"odd","version":"1"}}' ;;
    *'"method":"tools/list"'*) answer '{"tools":[{"name":"ask","inputSchema":{"type":"object"}}]}' ;;
    *'"method":"tools/call"'*) call=$id; cat asks.json; IFS= read -r answered; id=$call; answer '{"content":[{"type":"text","text":"heard"}]}' ;;
    esac
done
"#;
    let script = place.put("server.sh", script);
    json!({"mcpServers": {"odd": {"command": "sh", "args": [script]}}})
}

/// What the model does in one of the sessions.
fn scripted(session: usize) -> ScriptedModel {
    let from = |side| said(session, side);
    let question = json!({"question": from(3), "header": from(4), "multiSelect": false,
        "options": [{"label": from(5), "description": from(6)}, {"label": "b", "description": "c"}]});
    let todos = json!({"todos": [{"content": from(7), "status": "in_progress", "activeForm": from(8)}]});
    let agent = json!({"subagent_type": "general-purpose", "description": from(9), "prompt": "look"});
    let bash = json!({"command": format!("echo '{}' > out", from(10).replace(['\'', '\0'], "")), "description": from(11)});
    let beside = json!({"command": "sleep 600", "description": from(12), "run_in_background": true});
    let write = json!({"file_path": "made.txt", "content": from(13)});
    model(
        Script::new()
            .step(Step::reply([text("Looked.")]).when(When::any().system("working for another agent")))
            .reply([tool("ExitPlanMode", json!({"plan": from(14)}))])
            .reply([tool("AskUserQuestion", json!({"questions": [question]}))])
            .reply([tool("TodoWrite", todos), tool("Agent", agent), tool("mcp__odd__ask", json!({}))])
            .reply([tool("Bash", bash)])
            .reply([tool("Write", write)])
            .reply([tool("Bash", beside), tool(format!("Odd{}", from(15)), json!({"x": from(16)}))])
            .step(Step::status(529).message(from(17)).header("retry-after", "0"))
            .step(
                Step::reply([text("No.")])
                    .stop("refusal")
                    .stop_details(json!({"type": "refusal", "explanation": from(18)})),
            )
            .step(Step::status(400).message(from(19)))
            .step(Step::reply([text("It is over.")]).always()),
    )
}

#[test]
fn nothing_foreign_reaches_the_terminal_from_whatever_side() {
    assert!(GROUPS.iter().map(|group| group.len()).sum::<usize>() >= 50);
    for session in 0..GROUPS.len() {
        let place = Place::new();
        let from = |side| said(session, side);
        for (file, side) in [("status", 0), ("hook", 1), ("files", 2)] {
            std::fs::write(place.temp().join(file), from(side)).unwrap();
        }
        let temp = place.temp();
        let hook = json!({"systemMessage": from(1)}).to_string();
        std::fs::write(place.temp().join("hook"), hook).unwrap();
        let cat = |file: &str| format!("cat {}", temp.join(file).display());
        let settings = json!({
            "respondToBashCommands": false,
            "statusLine": {"type": "command", "command": cat("status")},
            "fileSuggestion": {"type": "command", "command": cat("files")},
            "hooks": {"UserPromptSubmit": [{"hooks": [{"type": "command", "command": cat("hook")}]}]},
        });
        std::fs::write(place.config().join("settings.json"), settings.to_string()).unwrap();
        std::fs::create_dir_all(place.config().join("commands")).unwrap();
        let about: String =
            from(20).chars().filter(|c| !c.is_control() || *c == '\u{1b}' || *c > '\u{7f}').collect();
        let command = format!("---\ndescription: |\n  {about}\nargument-hint: {}\n---\nOdd.\n", "odd");
        std::fs::write(place.config().join("commands/oddity.md"), command).unwrap();
        let form = json!({"type": "object", "properties": {"a": {"type": "string", "title": from(21), "description": from(22)},
            "b": {"type": "string", "enum": ["x", from(23)]}}});
        let asks = json!({"jsonrpc": "2.0", "id": "e1", "method": "elicitation/create",
            "params": {"message": from(24), "requestedSchema": form}});
        let servers = server(&place, &asks).to_string();
        let model = scripted(session);
        let words =
            ["--permission-mode", "plan", "--mcp-config", &servers, "--allowedTools", "mcp__odd", "--", "go"];
        let mut seat = Seat::at(&place, &model, words);
        seat.sees("Go on with this plan?");
        seat.types("y");
        seat.sees("3. Something else");
        seat.types("1");
        seat.sees("Ctrl-D declines");
        seat.types("\u{1b}");
        seat.sees("Run this command?");
        seat.types("y");
        seat.sees("Change made.txt?");
        seat.types("y");
        seat.sees("declined to answer");
        seat.rests();
        seat.types("again\r");
        seat.until("it is refused", |seat| seat.rows().iter().any(|row| row.contains("400")));
        seat.rests();
        for command in ["/todos", "/bashes", "/hooks", "/config", "/context"] {
            seat.types(&format!("{command}\r"));
            seat.until(command, |seat| seat.rows().contains(&format!("> {command}")));
        }
        seat.types("/rewind\r");
        seat.sees("Go back to before");
        seat.types("\u{1b}");
        seat.sees_no_more("Go back to before");
        let commands = ["/theme ", "/output-style ", "/config ", "/config env.X=", "/diff ", "/copy "];
        for pasted in ["/rename ", "!echo ", "/effort ", "/model "].into_iter().chain(commands) {
            seat.types(pasted);
            seat.types(&format!("\u{1b}[200~{}\u{1b}[201~", from(25).replace("\u{1b}[201~", "")));
            seat.types("\r");
            seat.rests();
            seat.types("\u{15}");
        }
        seat.types("@f");
        seat.sees("› side2");
        seat.types("\t\u{15}\u{15}/odd");
        seat.sees("› /oddity");
        seat.types("\u{15}/exit\r");
        assert_eq!(seat.ends(), Some(0));
        assert_eq!(foreign(&seat.bytes()), Vec::<String>::new(), "session {session}");
        // Nor what turns words around, or is said where nobody sees it.
        let shown = String::from_utf8(seat.bytes()).unwrap();
        let hides = |c: &char| matches!(c, '\u{202a}'..='\u{202e}' | '\u{2066}'..='\u{2069}' | '\u{e0000}'..='\u{e007f}');
        assert_eq!(shown.chars().find(hides), None, "session {session}");
        // The list of sessions, by what they are called; and one by one where there are no keys.
        let mut seat = Seat::at(&place, &model, ["--resume"]);
        seat.sees("Go on with");
        seat.types("\r");
        seat.sees("asks before changes");
        seat.types("\u{4}");
        assert_eq!(seat.ends(), Some(0));
        assert_eq!(foreign(&seat.bytes()), Vec::<String>::new(), "session {session}, gone on with");
        let model_named = format!("odd{}", from(26).replace('\0', ""));
        let mut command = place.pelton(["--plain", "--model", &model_named, "--continue", "more"]);
        command.asks(&model).env("TERM", "xterm").env("LANG", "C.UTF-8");
        let mut seat = Seat::with(command, 80, 24);
        seat.rests();
        seat.types("\u{4}");
        seat.ends();
        assert_eq!(foreign(&seat.bytes()), Vec::<String>::new(), "session {session}, line by line");
    }
}

#[test]
fn what_git_tells_of_names_and_lines_is_text() {
    for (at, group) in GROUPS.iter().enumerate() {
        let place = Place::new();
        let git = |words: &[&str]| {
            let who = ["-c", "user.name=x", "-c", "user.email=x@y"];
            let done = Command::new("git").args(who).args(words).current_dir(place.work()).output().unwrap();
            assert!(done.status.success(), "{done:?}");
        };
        git(&["init", "-q"]);
        let name = |sequence: &str| sequence.replace(['/', '\0'], "");
        for (nth, sequence) in group.iter().enumerate() {
            place.put(&format!("known{nth} {} end", name(sequence)), "one\n");
        }
        git(&["add", "."]);
        git(&["commit", "-q", "-m", "x"]);
        for (nth, sequence) in group.iter().enumerate() {
            place.put(
                &format!("known{nth} {} end", name(sequence)),
                &format!("{}\n", sequence.replace('\0', "")),
            );
            place.put(&format!("new{nth} {} end", name(sequence)), "");
        }
        let model = model(Script::new());
        for words in [&[][..], &["--plain"]] {
            let mut command = place.pelton(words.iter().copied());
            command.asks(&model).env("TERM", "xterm").env("LANG", "C.UTF-8");
            let mut seat = Seat::with(command, 250, 60);
            seat.sees("> ");
            seat.types("/diff\r");
            seat.until("all is told", |seat| {
                seat.rows().iter().filter(|row| row.contains("known to git")).count() == 10
            });
            // Names stand there as they are, what is not seen of them written out.
            let rows = seat.rows();
            assert!(rows.iter().any(|row| row.starts_with("known0 ") && row.ends_with("+1 −1")), "{rows:#?}");
            seat.types("/exit\r");
            assert_eq!(seat.ends(), Some(0));
            assert_eq!(foreign(&seat.bytes()), Vec::<String>::new(), "group {at} {words:?}");
        }
    }
}
