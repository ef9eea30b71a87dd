//! Commands in a box, as the binary runs them.
#![cfg(target_os = "linux")]

use pelton_testkit::{Part, Script, ScriptedModel, text, tool};
use serde_json::{Value, json};

use crate::place::{Commanded, Place, Ran, model, of_type, processes_with, until};

const STREAM: [&str; 3] = ["--output-format", "stream-json", "--verbose"];

/// Starts the program behind it where no namespaces can be made.
const WITHOUT_NAMESPACES: &str =
    "exec unshare -Ur sh -c 'echo 0 > /proc/sys/user/max_user_namespaces && exec \"$@\"' sh";

fn bash(command: &str) -> Part {
    tool("Bash", json!({"command": command})).id("toolu_it")
}

fn outside_of_it(command: &str) -> Part {
    tool("Bash", json!({"command": command, "dangerouslyDisableSandbox": true})).id("toolu_it")
}

fn settings(more: &Value) -> String {
    let mut sandbox = json!({"enabled": true});
    for (key, value) in more.as_object().into_iter().flatten() {
        sandbox[key] = value.clone();
    }
    json!({"sandbox": sandbox}).to_string()
}

/// One call, then an answer.
fn caller(part: Part) -> ScriptedModel {
    model(Script::new().reply([part]).reply([text("done")]))
}

/// What came of the call: whether it failed, and what the model read.
fn said(model: &ScriptedModel) -> (bool, String) {
    let body = model.reply_requests()[1].body.clone();
    let result = body["messages"].as_array().unwrap().last().unwrap()["content"][0].clone();
    let words = match &result["content"] {
        Value::String(words) => words.clone(),
        blocks => blocks[0]["text"].as_str().unwrap().to_owned(),
    };
    (result["is_error"] == true, words)
}

fn run_with(place: &Place, part: Part, more: &Value, words: &[&str]) -> (bool, String) {
    let (model, settings) = (caller(part), settings(more));
    let words = ["do it", "--settings", &settings].into_iter().chain(words.iter().copied());
    place.task(&model, words.chain(STREAM)).run().well();
    said(&model)
}

fn run(place: &Place, command: &str) -> (bool, String) {
    run_with(place, bash(command), &json!({}), &[])
}

/// The same, where no namespaces can be made.
fn run_weakly(place: &Place, command: &str, more: &Value) -> (Ran, ScriptedModel) {
    let (model, settings) = (caller(bash(command)), settings(more));
    let task = place.task(&model, ["do it", "--settings", &settings].into_iter().chain(STREAM));
    let mut weak = place.shell(&format!("{WITHOUT_NAMESPACES} \"$@\""));
    weak.arg("sh").arg(task.get_program()).args(task.get_args());
    for (name, value) in task.get_envs() {
        weak.env(name, value.unwrap_or_default());
    }
    (weak.run(), model)
}

fn notices(ran: &Ran) -> Vec<String> {
    let frames = ran.frames();
    let told = of_type(&frames, "system").into_iter().filter(|frame| frame["subtype"] == "informational");
    told.map(|frame| frame["content"].as_str().unwrap().to_owned()).collect()
}

#[test]
fn commands_in_the_box_need_no_approval_and_reach_nothing_outside() {
    let place = Place::new();
    let outside = place.home().join("outside.txt");
    let command = format!(
        "echo in > inside.txt; echo out > {}; echo tmp > $TMPDIR/x && cat $TMPDIR/x",
        outside.display()
    );
    let (failed, words) = run(&place, &command);
    assert!(!failed, "{words}");
    assert_eq!(place.read("inside.txt"), "in\n");
    assert!(!outside.exists());
    assert!(
        words.contains("tmp")
            && words.contains("[Sandbox: refused writing (outside of the working directories): "),
        "{words}"
    );
    assert!(words.contains(outside.to_str().unwrap()), "{words}");
}

#[test]
fn what_was_refused_is_named_by_way_of_links_and_where_errors_are_printed_with_the_rest() {
    let place = Place::new();
    let outside = place.home().canonicalize().unwrap();
    std::os::unix::fs::symlink(&outside, place.work().join("link")).unwrap();
    for command in ["echo out > link/x", "(echo out > link/x) 2>&1 | tail -1"] {
        let (_, words) = run(&place, command);
        let named = format!("refused writing (outside of the working directories): {}/x", outside.display());
        assert!(words.contains(&named), "{command}: {words}");
    }
    let (_, words) = run(&place, "(exec 3<>/dev/tcp/192.0.2.1/80) 2>&1");
    assert!(words.contains("[Sandbox: refused network: ") && words.contains("192.0.2.1"), "{words}");
    assert!(!outside.join("x").exists());
}

#[test]
fn a_command_outside_of_the_box_is_a_decision_of_its_own() {
    let place = Place::new();
    let outside = place.home().join("outside.txt");
    let command = format!("echo out > {}", outside.display());
    let (failed, words) = run_with(&place, outside_of_it(&command), &json!({}), &[]);
    assert!(failed && words.contains("approval"), "{words}");
    assert!(!outside.exists());
    let never = json!({"allowUnsandboxedCommands": false});
    run_with(&place, outside_of_it(&command), &never, &["--allowedTools", "Bash"]);
    assert!(!outside.exists(), "the model's wish does not count");
    let (failed, words) = run_with(&place, outside_of_it(&command), &json!({}), &["--allowedTools", "Bash"]);
    assert!(!failed, "{words}");
    assert!(outside.exists());
}

#[test]
fn excluded_commands_run_outside_and_are_judged_like_any_other() {
    let place = Place::new();
    let outside = place.home().join("outside.txt");
    let more = json!({"excludedCommands": ["touch *"]});
    let command = format!("touch {}", outside.display());
    assert!(run_with(&place, bash(&command), &more, &[]).0);
    assert!(!outside.exists());
    assert!(!run_with(&place, bash(&command), &more, &["--allowedTools", "Bash(touch *)"]).0);
    assert!(outside.exists());
}

#[test]
fn rules_and_modes_are_above_the_box() {
    let place = Place::new();
    for words in [&["--disallowedTools", "Bash(touch *)"][..], &["--permission-mode", "plan"]] {
        let (failed, said) = run_with(&place, bash("touch x"), &json!({}), words);
        assert!(failed, "{words:?}: {said}");
    }
    assert!(run_with(&place, bash("touch x"), &json!({"autoAllowBashIfSandboxed": false}), &[]).0);
    assert!(!place.has("x"));
    assert!(!run_with(&place, bash("touch x"), &json!({}), &["--permission-mode", "dontAsk"]).0);
    assert!(place.has("x"));
}

#[test]
fn what_steers_other_programs_stays_as_it_is() {
    let place = Place::new();
    place.put(".git/HEAD", "ref: refs/heads/main");
    place.put(".git/config", "[core]\n");
    place.put(".vscode/tasks.json", "{}");
    // From a file: what a command says it will do to such names is asked about beforehand.
    place.put(
        "job.sh",
        "echo evil > .git/hooks/pre-commit; echo evil >> .git/config; echo evil > .vscode/tasks.json; mkdir .claude; \
         echo evil > .claude/settings.json; echo evil > .mcp.json; echo evil > .envrc; echo fine > .gitignore; echo o > .git/ORIG_HEAD",
    );
    let (_, words) = run(&place, "bash job.sh");
    assert_eq!(
        (place.read(".git/config"), place.read(".vscode/tasks.json")),
        ("[core]\n".into(), "{}".into())
    );
    for name in [".git/hooks", ".claude", ".mcp.json", ".envrc"] {
        assert!(!place.has(name), "{name}");
    }
    assert!(place.has(".gitignore") && place.has(".git/ORIG_HEAD"));
    for name in [".git/hooks/pre-commit", ".git/config", ".vscode/tasks.json", ".mcp.json", ".envrc"] {
        assert!(words.contains(place.work().join(name).to_str().unwrap()), "{name}: {words}");
    }
    assert!(!place.has("undone.envrc"), "it was not even made: {words}");
}

/// The same in one form of box: the one with bubblewrap, or the one with namespaces of our own.
fn run_in(form: Form, place: &Place, part: Part) -> (bool, String) {
    let (model, settings) = (caller(part), settings(&json!({})));
    let mut task = place.task(&model, ["do it", "--settings", &settings].into_iter().chain(STREAM));
    if form == Form::Namespaces {
        task.env("PATH", path_without_bubblewrap(place));
    }
    task.run().well();
    said(&model)
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Form {
    Bubblewrap,
    Namespaces,
}

/// Those that this machine can build.
fn forms() -> Vec<Form> {
    let has_bubblewrap = std::process::Command::new("bwrap").arg("--version").output().is_ok();
    let forms = [Form::Bubblewrap, Form::Namespaces].into_iter();
    forms.filter(|form| *form == Form::Namespaces || has_bubblewrap).collect()
}

/// Every program of the system but one.
fn path_without_bubblewrap(place: &Place) -> std::path::PathBuf {
    let programs = place.home().join("programs");
    if std::fs::create_dir(&programs).is_ok() {
        for entry in ["/usr/bin", "/bin"].iter().flat_map(|dir| std::fs::read_dir(dir).unwrap()).flatten() {
            if entry.file_name() != "bwrap" {
                // Where both are one directory, the name is there already.
                let _ = std::os::unix::fs::symlink(entry.path(), programs.join(entry.file_name()));
            }
        }
    }
    programs
}

#[test]
fn commands_end_as_they_do_without_a_box() {
    let place = Place::new();
    place.put("sub/x", "");
    for (command, expected) in [
        ("exit 3", "Exit code 3"),
        ("kill -KILL $$", "[Killed by signal 9.]"),
        ("kill -TERM $$", "[Killed by signal 15.]"),
        ("sleep 31.25 & echo started", "[Processes it left running in the background were stopped.]"),
        ("(sleep 0.1; echo late) & wait", "late"),
        ("setsid sleep 31.25 & echo $$", "were stopped"),
        ("trap 'echo tidied' TERM; kill $$; echo on", "tidied"),
        ("ps ax | wc -l", ""),
        ("cat < /dev/null; echo x | tee /dev/stderr >/dev/null", "x"),
    ] {
        for form in forms() {
            let (_, words) = run_in(form, &place, bash(command));
            assert!(words.contains(expected), "{form:?}, {command}: {words}");
        }
    }
    assert_eq!(processes_with("sleep 31.25"), [""; 0]);
    let script = Script::new().reply([bash("cd sub")]).reply([bash("pwd")]).reply([text("done")]);
    let model = model(script);
    let settings = settings(&json!({}));
    place.task(&model, ["do it", "--settings", &settings].into_iter().chain(STREAM)).run().well();
    let body = model.reply_requests()[2].body.to_string();
    assert!(body.contains(place.work().join("sub").to_str().unwrap()), "{body}");
}

#[test]
fn time_runs_out_inside_too_and_nothing_is_left() {
    let place = Place::new();
    let part = tool("Bash", json!({"command": "trap '' TERM; sleep 4711.5 & sleep 4711.5", "timeout": 300}))
        .id("toolu_it");
    let (failed, words) = run_with(&place, part, &json!({}), &[]);
    assert!(failed && words.contains("Timed out after 300 ms"), "{words}");
    assert_eq!(processes_with("sleep 4711.5"), [""; 0]);
    for form in forms() {
        let command = "trap 'echo tidied; exit' TERM; while :; do sleep 0.05; done";
        let part = tool("Bash", json!({"command": command, "timeout": 500})).id("toolu_it");
        let (_, words) = run_in(form, &place, part);
        assert!(words.contains("tidied"), "{form:?}: it is asked before it is killed: {words}");
    }
}

#[test]
fn pit_M3_nothing_in_the_box_outlives_a_killed_engine() {
    let place = Place::new();
    let model = caller(bash("trap '' TERM; setsid sleep 4712.5 & sleep 4712.5"));
    let settings = settings(&json!({}));
    let running = place.task(&model, ["do it", "--settings", &settings].into_iter().chain(STREAM)).start();
    until("it sleeps", || processes_with("sleep 4712.5").len() >= 2);
    running.signal(nix::sys::signal::Signal::SIGKILL);
    until("it is gone", || processes_with("sleep 4712.5").is_empty());
}

#[test]
fn nobody_can_be_reached_and_denied_files_cannot_be_read() {
    let place = Place::new();
    place.put("keep/secret", "hush");
    let listener = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
    let port = listener.local_addr().unwrap().port();
    let command =
        format!("exec 3<>/dev/tcp/127.0.0.1/{port} && echo reached; cat keep/secret; echo [$TOKEN]");
    let more = json!({"filesystem": {"denyRead": ["keep/"]}, "credentials": {"envVars": ["TOKEN"]}});
    let (model, settings) = (caller(bash(&command)), settings(&more));
    let mut task = place.task(&model, ["do it", "--settings", &settings].into_iter().chain(STREAM));
    task.env("TOKEN", "hush").run().well();
    let (_, words) = said(&model);
    assert!(!words.contains("reached") && !words.contains("hush"), "{words}");
    assert!(words.contains("[]") && words.contains("[Sandbox: refused network: "), "{words}");
}

#[test]
fn a_box_without_its_disk_holds_the_network_alone_and_vouches_for_nothing() {
    let place = Place::new();
    let outside = place.home().join("outside.txt");
    let listener = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
    let port = listener.local_addr().unwrap().port();
    let command =
        format!("echo out > {}; (exec 3<>/dev/tcp/127.0.0.1/{port}) && echo reached", outside.display());
    let more = json!({"filesystem": {"disabled": true}});
    let (failed, words) = run_with(&place, bash(&command), &more, &[]);
    assert!(failed && words.contains("approval"), "{words}");
    assert!(!outside.exists());
    let (_, words) = run_with(&place, bash(&command), &more, &["--allowedTools", "Bash"]);
    assert!(outside.exists() && !words.contains("reached"), "{words}");
    assert!(words.contains("[Sandbox: refused network: "), "{words}");
}

#[test]
fn pit_P8_without_a_box_there_is_one_notice_and_the_ordinary_questions_or_no_start() {
    // A program whose file is gone cannot be started again.
    let start = |more: &Value| {
        let place = Place::new();
        let script =
            Script::new().reply([bash("touch one")]).reply([bash("touch two")]).reply([text("done")]);
        let (model, settings) = (model(script), settings(more));
        let task = place.task(&model, ["do it", "--settings", &settings].into_iter().chain(STREAM));
        let mut gone = place.shell("cp \"$1\" p && exec 9<p && rm p && shift && exec /proc/self/fd/9 \"$@\"");
        gone.arg("sh").arg(task.get_program()).args(task.get_args());
        for (name, value) in task.get_envs() {
            gone.env(name, value.unwrap_or_default());
        }
        (gone.run(), place)
    };
    let (ran, place) = start(&json!({}));
    ran.well();
    let notices = notices(&ran);
    assert_eq!(notices.len(), 1, "{notices:?}");
    assert!(notices[0].contains("not available"), "{notices:?}");
    assert_eq!(ran.result()["permission_denials"].as_array().unwrap().len(), 2, "as if there were no box");
    assert!(!place.has("one") && !place.has("two"));
    let (ran, _place) = start(&json!({"failIfUnavailable": true}));
    ran.failed(1, &["the sandbox is required and not available here"]);
}

#[test]
fn without_namespaces_it_says_so_and_undoes_what_it_cannot_hold() {
    let place = Place::new();
    place.put(".npmrc", "old");
    place.put("job.sh", "echo evil > .npmrc; echo evil > .mcp.json; echo fine > fine; echo x > ../outside");
    let (ran, model) = run_weakly(&place, "bash job.sh", &json!({}));
    ran.well();
    assert!(notices(&ran).iter().any(|notice| notice.contains("weaker form")), "{:?}", notices(&ran));
    let (_, words) = said(&model);
    assert_eq!((place.read(".npmrc"), place.read("fine")), ("old".into(), "fine\n".into()));
    assert!(!place.has(".mcp.json") && !place.has("../outside"));
    for expected in [".npmrc was changed", ".mcp.json was made", "It was undone"] {
        assert!(words.contains(expected), "{words}");
    }
}

#[test]
fn a_directory_nobody_trusts_does_not_put_itself_in_a_box() {
    let place = Place::new();
    place.put(".claude/settings.json", &settings(&json!({})));
    let model = caller(bash("touch x"));
    let ran = place.task(&model, ["do it"].into_iter().chain(STREAM)).run();
    assert!(ran.err.contains("what it grants itself is not used: sandbox"), "{}", ran.err);
    assert!(said(&model).0, "the box would have been its approval");
    assert!(!place.has("x"));
}

#[test]
fn commands_in_the_background_are_held_too() {
    let place = Place::new();
    let outside = place.home().join("outside.txt");
    let command = format!("touch inside; touch {}; touch .envrc", outside.display());
    place.put("job.sh", &command);
    let beside = tool("Bash", json!({"command": "bash job.sh", "run_in_background": true}));
    let wait = bash("until test -e inside; do sleep 0.05; done; sleep 0.2");
    let model = model(Script::new().reply([beside]).reply([wait]).reply([text("done")]));
    let settings = settings(&json!({}));
    place.task(&model, ["do it", "--settings", &settings].into_iter().chain(STREAM)).run().well();
    assert!(place.has("inside") && !outside.exists());
    assert!(!place.has(".envrc"), "what it made is undone with its box");
}

#[test]
fn hosts_on_the_list_are_reached_through_the_proxy_and_no_others() {
    let place = Place::new();
    let server = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
    let port = server.local_addr().unwrap().port();
    std::thread::spawn(move || {
        use std::io::{Read, Write};
        for mut stream in server.incoming().flatten() {
            let _ = stream.read(&mut [0; 1024]);
            let _ = stream.write_all(b"HTTP/1.1 200 OK\r\nConnection: close\r\n\r\nhello from outside");
        }
    });
    let ask = |host: &str| {
        format!(
            "exec 3<>/dev/tcp/127.0.0.1/3128; printf 'GET http://{host}:{port}/ HTTP/1.1\\r\\nHost: x\\r\\n\\r\\n' >&3; cat <&3; "
        )
    };
    let command = ask("127.0.0.1")
        + &ask("evil.example")
        + &ask("169.254.169.254")
        + &format!("(exec 3<>/dev/tcp/127.0.0.1/{port}) && echo DIRECT; echo $HTTPS_PROXY");
    let more = json!({"network": {"allowedDomains": ["127.0.0.1", "*.example.org"]}});
    let (_, words) = run_with(&place, bash(&command), &more, &[]);
    assert!(words.contains("hello from outside"), "{words}");
    assert!(!words.contains("DIRECT"), "{words}");
    assert!(words.contains("http://127.0.0.1:3128"), "{words}");
    assert!(
        words.contains("[Sandbox: refused network: evil.example (it is not among the allowed domains)"),
        "{words}"
    );
    assert!(words.contains("169.254.169.254 (it is not"), "{words}");
}

#[test]
fn a_command_in_the_box_whose_time_is_up_goes_on_beside() {
    let place = Place::new();
    let slow = "sleep 1; echo late > late.txt; echo x > .mcp.json; echo end";
    let call = tool("Bash", json!({"command": slow, "timeout": 300})).id("toolu_it");
    let wait = tool("Bash", json!({"command": "sleep 3"}));
    let model = model(Script::new().reply([call]).reply([wait]).reply([text("done")]));
    let mut settings: Value = serde_json::from_str(&settings(&json!({}))).unwrap();
    settings["loop"] = json!({"backgroundOnTimeout": true});
    let settings = settings.to_string();
    place.task(&model, ["do it", "--settings", &settings]).run().well();
    let (failed, words) = said(&model);
    assert!(!failed && words.contains("it goes on in the background"), "{words}");
    assert_eq!(place.read("late.txt"), "late\n");
    assert!(!place.has(".mcp.json"), "its box held it to its end");
}
