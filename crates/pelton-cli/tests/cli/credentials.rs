//! Who pays: keys, helpers and logins, and what happens when they run out in the middle of a run.

use std::io::{BufRead, BufReader, Read, Write};
use std::net::{SocketAddr, TcpListener, TcpStream};
use std::os::unix::fs::PermissionsExt;
use std::process::Command;
use std::sync::{Arc, Mutex};
use std::time::Duration;

use nix::sys::signal::Signal;
use pelton_testkit::{Script, ScriptedModel, Step, When, text, tool};
use serde_json::{Value, json};

use crate::frames::STREAM;
use crate::place::{Commanded, Place, Ran, model, of_type, processes_with, until};

/// A call, and then the answer: two requests.
fn two_turns() -> Script {
    Script::new().reply([tool("Glob", json!({"pattern": "*"}))]).reply([text("Done.")])
}

/// The same, but the credentials of the first request are not good enough for the second.
fn two_turns_with(refusal: Step) -> Script {
    Script::new().reply([tool("Glob", json!({"pattern": "*"}))]).step(refusal).reply([text("Done.")])
}

fn expired() -> Step {
    Step::status(401).message("invalid x-api-key")
}

/// Prints `key-1`, then `key-2`, and so on.
const COUNTING_HELPER: &str = "echo run >> runs; echo key-$(grep -c run runs)";

fn settings(helper: &str) -> String {
    json!({"apiKeyHelper": helper}).to_string()
}

fn keys(model: &ScriptedModel) -> Vec<String> {
    let key = |header: &str| header.trim_start_matches("Bearer ").to_owned();
    let requests = model.requests();
    let sent = requests.iter().filter_map(|seen| seen.header("x-api-key").or(seen.header("authorization")));
    sent.map(key).collect()
}

trait Unpaid {
    fn asks_unpaid(&mut self, model: &ScriptedModel) -> &mut Self;
}

impl Unpaid for Command {
    /// Points it at a model, without a key.
    fn asks_unpaid(&mut self, model: &ScriptedModel) -> &mut Self {
        self.env("ANTHROPIC_BASE_URL", model.base_url())
    }
}

fn unpaid(place: &Place, model: &ScriptedModel, words: &[&str]) -> Command {
    let words = ["-p", "hi"].into_iter().chain(words.iter().copied());
    let mut command = place.pelton(words.chain(STREAM));
    command.asks_unpaid(model);
    command
}

#[track_caller]
fn source(ran: &Ran) -> Value {
    let frames = ran.frames();
    let init = of_type(&frames, "system").into_iter().find(|frame| frame["subtype"] == "init");
    init.unwrap_or_else(|| panic!("{ran:?}"))["apiKeySource"].clone()
}

impl Place {
    fn login(&self, login: &Value) {
        let file = self.config().join(".credentials.json");
        std::fs::write(&file, json!({"claudeAiOauth": login, "other": {"kept": true}}).to_string()).unwrap();
        std::fs::set_permissions(&file, PermissionsExt::from_mode(0o600)).unwrap();
    }

    fn logged_in(&self) -> Value {
        serde_json::from_slice(&std::fs::read(self.config().join(".credentials.json")).unwrap()).unwrap()
    }
}

/// Good for a long time.
fn far_away() -> u64 {
    4_000_000_000_000
}

/// Exchanges tokens, always with the same answer; ends with the test program.
struct TokenServer {
    address: SocketAddr,
    /// The bodies of what it was asked.
    asked: Arc<Mutex<Vec<String>>>,
}

impl TokenServer {
    fn start(status: u16, answer: &Value) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let address = listener.local_addr().unwrap();
        let asked = Arc::<Mutex<Vec<String>>>::default();
        let (heard, answer) = (Arc::clone(&asked), answer.to_string());
        std::thread::spawn(move || {
            for socket in listener.incoming().flatten() {
                Self::serve(socket, status, &answer, &heard);
            }
        });
        Self { address, asked }
    }

    fn serve(mut socket: TcpStream, status: u16, answer: &str, heard: &Mutex<Vec<String>>) {
        let mut reader = BufReader::new(socket.try_clone().unwrap());
        let mut length = 0;
        loop {
            let mut line = String::new();
            if reader.read_line(&mut line).unwrap_or(0) == 0 || line == "\r\n" {
                break;
            }
            if let Some(value) = line.to_ascii_lowercase().strip_prefix("content-length:") {
                length = value.trim().parse().unwrap();
            }
        }
        let mut body = vec![0; length];
        reader.read_exact(&mut body).unwrap();
        heard.lock().unwrap().push(String::from_utf8(body).unwrap());
        let head = format!(
            "HTTP/1.1 {status} X\r\ncontent-type: application/json\r\ncontent-length: {}\r\nconnection: close\r\n\r\n",
            answer.len()
        );
        socket.write_all((head + answer).as_bytes()).unwrap();
    }

    fn url(&self) -> String {
        format!("http://{}/token", self.address)
    }

    fn asked(&self) -> Vec<String> {
        self.asked.lock().unwrap().clone()
    }
}

#[test]
fn the_first_that_is_there_pays_and_clients_are_told_who() {
    let (place, helper) = (Place::new(), settings("echo from-helper"));
    place.login(&json!({"accessToken": "from-file", "expiresAt": far_away()}));
    let all = [
        ("CLAUDE_CODE_OAUTH_TOKEN", "from-login"),
        ("ANTHROPIC_AUTH_TOKEN", "from-token"),
        ("ANTHROPIC_API_KEY", "from-key"),
    ];
    let check = |helper: Option<&str>, set: &[(&str, &str)], paid: &str, told: &str| {
        let model = model(Script::new().reply([text("Hello.")]));
        let words: Vec<&str> = helper.map(|helper| ["--settings", helper]).into_iter().flatten().collect();
        let ran = unpaid(&place, &model, &words).envs(set.iter().copied()).run();
        ran.well();
        assert_eq!(keys(&model), [paid], "{told}");
        assert_eq!(source(&ran), told, "{paid}");
        let login = model.requests()[0].header("anthropic-beta").is_some_and(|betas| betas.contains("oauth"));
        assert_eq!(login, matches!(paid, "from-file" | "from-login"), "{paid}");
    };
    check(None, &[], "from-file", "none");
    check(None, &all[..1], "from-login", "none");
    check(Some(&helper), &all[..1], "from-helper", "apiKeyHelper");
    check(Some(&helper), &all[..2], "from-token", "none");
    check(Some(&helper), &all, "from-key", "ANTHROPIC_API_KEY");
}

#[test]
fn loop_R4_a_key_that_expires_in_the_middle_is_printed_anew_and_the_run_completes() {
    let (place, model) = (Place::new(), model(two_turns_with(expired())));
    let ran = unpaid(&place, &model, &["--settings", &settings(COUNTING_HELPER)]).run();
    ran.well();
    assert_eq!(ran.result()["result"], "Done.");
    assert_eq!(keys(&model), ["key-1", "key-1", "key-2"]);
    assert_eq!(place.read("runs"), "run\nrun\n");
    model.assert_played_out();
}

#[test]
fn loop_R4_a_login_that_is_refused_is_renewed_and_kept() {
    let (place, model) = (Place::new(), model(two_turns_with(expired())));
    let server =
        TokenServer::start(200, &json!({"access_token": "new", "refresh_token": "next", "expires_in": 3600}));
    place.login(&json!({"accessToken": "old", "refreshToken": "once+only", "expiresAt": far_away()}));
    let mut task = unpaid(&place, &model, &[]);
    task.env("PELTON_OAUTH_TOKEN_URL", server.url()).env("PELTON_OAUTH_CLIENT_ID", "me").run().well();
    assert_eq!(keys(&model), ["old", "old", "new"]);
    assert_eq!(server.asked(), ["grant_type=refresh_token&refresh_token=once%2Bonly&client_id=me"]);
    let kept = place.logged_in();
    assert_eq!(kept["claudeAiOauth"]["accessToken"], "new");
    assert_eq!(kept["claudeAiOauth"]["refreshToken"], "next");
    assert_eq!(kept["other"], json!({"kept": true}), "what is not ours stays");
    let mode = place.config().join(".credentials.json").metadata().unwrap().permissions().mode();
    assert_eq!(mode & 0o777, 0o600);
    model.assert_played_out();
}

#[test]
fn loop_R5_a_revoked_token_is_renewed_by_force() {
    let revoked = Step::status(403)
        .error_type("permission_error")
        .message("OAuth token has been revoked. Please log in again.");
    let (place, model) = (Place::new(), model(two_turns_with(revoked)));
    let server = TokenServer::start(200, &json!({"access_token": "new", "expires_in": 3600}));
    place.login(&json!({"accessToken": "old", "refreshToken": "r", "expiresAt": far_away()}));
    let mut task = unpaid(&place, &model, &[]);
    let ran = task.env("PELTON_OAUTH_TOKEN_URL", server.url()).env("PELTON_OAUTH_FORM", "json").run();
    ran.well();
    assert_eq!(ran.result()["result"], "Done.");
    assert_eq!(keys(&model), ["old", "old", "new"]);
    let asked: Value = serde_json::from_str(&server.asked()[0]).unwrap();
    assert_eq!(asked, json!({"grant_type": "refresh_token", "refresh_token": "r"}));
    assert_eq!(place.logged_in()["claudeAiOauth"]["refreshToken"], "r", "the old one stays good");
    model.assert_played_out();
}

#[test]
fn a_login_that_has_run_out_is_renewed_before_it_is_used() {
    let (place, model) = (Place::new(), model(two_turns()));
    place.login(&json!({"accessToken": "old", "refreshToken": "r", "expiresAt": 1000}));
    let server = TokenServer::start(200, &json!({"access_token": "new", "expires_in": 3600}));
    unpaid(&place, &model, &[]).env("PELTON_OAUTH_TOKEN_URL", server.url()).run().well();
    assert_eq!(keys(&model), ["new", "new"]);
    assert_eq!(server.asked().len(), 1);
}

#[test]
fn loop_R11_what_cannot_be_renewed_is_told_with_a_way_out() {
    let refused = || model(Script::new().step(expired().always()));
    let text = |place: &Place, model: &ScriptedModel, words: &[&str]| {
        let mut command = place.pelton(["-p", "hi"].into_iter().chain(words.iter().copied()));
        command.asks_unpaid(model);
        command
    };
    let told = ["401 authentication_error: invalid x-api-key", "(request req_"];

    let (place, model) = (Place::new(), refused());
    let ran = text(&place, &model, &[]).env("ANTHROPIC_API_KEY", "k").run();
    ran.failed(1, &[told[0], told[1], "check ANTHROPIC_API_KEY"]);
    assert_eq!(model.requests().len(), 1, "the same key is not tried again");

    // A helper that has nothing else to say.
    let (place, model) = (Place::new(), refused());
    let ran = text(&place, &model, &["--settings", &settings("echo run >> runs; echo same")]).run();
    ran.failed(1, &[told[0], "check what apiKeyHelper prints", "echo same"]);
    assert_eq!((keys(&model).len(), place.read("runs").lines().count()), (1, 2));

    // A login that cannot be renewed, or not any more.
    let (place, model) = (Place::new(), refused());
    place.login(&json!({"accessToken": "old", "expiresAt": far_away()}));
    text(&place, &model, &[]).run().failed(1, &[told[0], "log in again", ".credentials.json"]);
    let server = TokenServer::start(400, &json!({"error": "invalid_grant"}));
    place.login(&json!({"accessToken": "old", "refreshToken": "used", "expiresAt": far_away()}));
    let ran = text(&place, &model, &[]).env("PELTON_OAUTH_TOKEN_URL", server.url()).run();
    let line = ran.failed(1, &[told[0], "invalid_grant", "log in again"]);
    assert!(!line.contains("used"), "{line}");
    assert_eq!(place.logged_in()["claudeAiOauth"]["refreshToken"], "used");

    // And clients read the same in the result.
    let ran = unpaid(&place, &model, &[]).env("ANTHROPIC_AUTH_TOKEN", "t").run();
    assert_eq!((ran.code, &ran.result()["api_error_status"]), (Some(1), &json!(401)));
    assert!(ran.err.contains("check ANTHROPIC_AUTH_TOKEN"), "{ran:?}");
}

#[test]
fn a_helper_that_gives_no_key_is_quoted_and_nobody_is_asked() {
    let (place, model) = (Place::new(), model(two_turns()));
    let helper = settings("echo 'the vault is locked' >&2; exit 3");
    let mut command = place.pelton(["-p", "hi", "--settings", &helper]);
    let ran = command.asks_unpaid(&model).run();
    ran.failed(1, &["the key helper gave no key", "exit status: 3", "the vault is locked", "apiKeyHelper"]);
    assert_eq!(model.requests().len(), 0);
}

#[test]
fn a_key_is_kept_for_as_long_as_it_is_said_to_last() {
    let runs = |ttl: Option<&str>| {
        let (place, model) = (Place::new(), model(two_turns()));
        let mut task = unpaid(&place, &model, &["--settings", &settings(COUNTING_HELPER)]);
        task.envs(ttl.map(|ttl| ("CLAUDE_CODE_API_KEY_HELPER_TTL_MS", ttl))).run().well();
        keys(&model)
    };
    assert_eq!(runs(None), ["key-1", "key-1"]);
    assert_eq!(runs(Some("0")), ["key-1", "key-2"]);
}

#[test]
fn an_interrupt_ends_a_helper_that_hangs() {
    let (place, model) = (Place::new(), model(two_turns()));
    let marked = "sleep 271.8281";
    let helper = settings(&format!("touch begun; trap '' TERM INT; {marked} & wait; {marked}"));
    let mut command = place.pelton(["-p", "hi", "--settings", &helper]);
    let running = command.asks_unpaid(&model).start();
    until("the helper runs", || place.has("begun") && !processes_with(marked).is_empty());
    running.signal(Signal::SIGINT);
    let ran = running.end();
    assert_eq!(ran.code, Some(130), "{ran:?}");
    assert!(ran.took < Duration::from_secs(10), "{ran:?}");
    until("nothing of it is left", || processes_with(marked).iter().all(|line| line.contains("pelton")));
    assert_eq!(model.requests().len(), 0);
}

#[test]
fn a_helper_of_a_project_is_used_but_its_variables_send_no_key_elsewhere() {
    let (place, elsewhere) = (Place::new(), model(Script::new()));
    let project =
        json!({"apiKeyHelper": "echo from-project", "env": {"ANTHROPIC_BASE_URL": elsewhere.base_url()}});
    place.put(".claude/settings.json", &project.to_string());
    let model = model(Script::new().step(Step::reply([text("Hello.")]).when(When::any())));
    let ran = unpaid(&place, &model, &[]).run();
    assert_eq!(ran.code, Some(0), "{ran:?}");
    assert_eq!(keys(&model), ["from-project"]);
    assert!(ran.err.contains("env.ANTHROPIC_BASE_URL"), "{ran:?}");
    assert_eq!(elsewhere.requests().len(), 0);
}

#[test]
fn a_key_is_not_written_down_whoever_says_it() {
    const KEY: &str = "sk-test-0123456789-abcdefghij";
    let place = Place::new();
    place.put(".env", &format!("ANTHROPIC_API_KEY={KEY}\n"));
    let hook = json!({"type": "command", "command": "cat >> heard.json"});
    let hooks =
        json!({"hooks": {"PostToolUse": [{"hooks": [hook]}], "UserPromptSubmit": [{"hooks": [hook]}]}});
    let calls = [
        tool("Read", json!({"file_path": place.work().join(".env")})),
        tool("Bash", json!({"command": "env; cat .env"})),
    ];
    let model = model(Script::new().reply(calls).reply([text(format!("The key is {KEY}."))]));
    let asked = format!("is {KEY} right?");
    let words = [asked.as_str(), "--settings", &hooks.to_string(), "--allowedTools", "Bash"];
    let ran = place.task(&model, words).env("ANTHROPIC_API_KEY", KEY).run();
    assert_eq!(ran.code, Some(0), "{ran:?}");
    // What was read can be used: the model is told, and so is whoever asked.
    assert!(model.requests()[1].body.to_string().contains(KEY) && ran.out.contains(KEY));
    assert!(model.requests()[1].body.to_string().matches(KEY).count() < 6, "commands do not inherit it");
    assert!(place.has("heard.json") && !place.read("heard.json").contains(KEY), "hooks");
    let mut folders = vec![place.config().to_path_buf()];
    let mut redacted = 0;
    while let Some(folder) = folders.pop() {
        for entry in std::fs::read_dir(folder).unwrap().flatten() {
            let path = entry.path();
            if path.is_dir() {
                folders.push(path);
            } else if path.extension().is_some_and(|kind| kind == "jsonl") {
                let text = std::fs::read_to_string(&path).unwrap();
                assert!(!text.contains(KEY), "{}", path.display());
                redacted += text.matches("[redacted]").count();
                assert_eq!(path.metadata().unwrap().permissions().mode() & 0o777, 0o600);
            }
        }
    }
    assert!(redacted >= 3, "the prompt, the results, the answer: {redacted}");
}

/// Every file below a directory whose content holds these words.
fn files_with(dir: &std::path::Path, words: &str) -> Vec<std::path::PathBuf> {
    let mut found = Vec::new();
    for entry in std::fs::read_dir(dir).into_iter().flatten().flatten() {
        let path = entry.path();
        if path.is_dir() {
            found.extend(files_with(&path, words));
        } else if std::fs::read(&path).is_ok_and(|bytes| String::from_utf8_lossy(&bytes).contains(words)) {
            found.push(path);
        }
    }
    found
}

#[test]
fn a_key_that_a_helper_hands_out_is_written_down_nowhere() {
    const KEY: &str = "helper-key-0123456789abcdef";
    let place = Place::new();
    place.put("say.sh", "echo $1-key-0123456789abcdef");
    let place_ref = &place;
    let run = |part, shown: &str| {
        let model = model(
            Script::new()
                .reply([part])
                .reply([tool("Bash", json!({"command": "sleep 0.5"}))])
                .reply([text("Done.")]),
        );
        let ran = unpaid(
            place_ref,
            &model,
            &["--settings", &settings("sh say.sh helper"), "--allowedTools", "Bash"],
        )
        .run();
        ran.well();
        assert_eq!(keys(&model)[0], KEY);
        let requests = model.reply_requests();
        assert!(
            requests[1].body.to_string().contains(shown),
            "the model reads what was printed: {}",
            requests[1].body
        );
    };
    // In a line of the record; in a text beside it; in a file of long output, at its beginning and in its middle; and in
    // the file that a command in the background writes by itself.
    run(tool("Bash", json!({"command": "sh say.sh helper"})), KEY);
    run(tool("Bash", json!({"command": "sh say.sh helper; head -c 25000 /dev/zero | tr '\\0' x"})), KEY);
    run(
        tool("Bash", json!({"command": "sh say.sh helper; seq 1 40000; sh say.sh helper; seq 1 40000"})),
        KEY,
    );
    run(
        tool("Bash", json!({"command": "sh say.sh helper; seq 1 10", "run_in_background": true})),
        "in the background",
    );
    assert!(files_with(&place.config(), KEY).is_empty(), "{:?}", files_with(&place.config(), KEY));
    assert!(!files_with(&place.config(), "[redacted]").is_empty(), "it was there to be left out");
    assert!(!files_with(&place.config(), "****").is_empty(), "and in files of long output");
}
