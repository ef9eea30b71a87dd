//! What goes wrong outside: one line that names the cause and a way out, the right exit code, and a session that can
//! be gone on with.

use std::fs::{File, Permissions};
use std::io::{BufRead, BufReader};
use std::net::TcpListener;
use std::os::unix::fs::PermissionsExt;
use std::os::unix::process::CommandExt;
use std::path::Path;
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

use pelton_testkit::{Script, ScriptedModel, Step, text, tool};
use serde_json::{Value, json};

use crate::place::{Commanded, Place, Ran, model, of_type, until};

fn hello() -> ScriptedModel {
    model(Script::new().step(Step::reply([text("hello")]).always()))
}

/// The prompt is on disk, and the line names the session it is in.
#[track_caller]
fn is_recorded(place: &Place, ran: &Ran, prompt: &str) {
    let file = place.transcripts().pop().expect("a transcript");
    assert!(std::fs::read_to_string(&file).unwrap().contains(prompt));
    let id = file.file_stem().unwrap().to_str().unwrap();
    assert!(ran.err.contains(&format!("(go on with --resume {id})")), "{}", ran.err);
}

/// A command with a key and this address, which asks only twice.
fn at(place: &Place, base_url: &str, words: &[&str]) -> Command {
    let mut command = place.pelton(["-p", "hi"].into_iter().chain(words.iter().copied()));
    command
        .env("ANTHROPIC_BASE_URL", base_url)
        .env("ANTHROPIC_API_KEY", "sk-test")
        .env("CLAUDE_CODE_MAX_RETRIES", "1");
    command
}

#[test]
fn an_address_that_is_none_is_refused_before_anything_is_sent() {
    let place = Place::new();
    for url in [
        "nonsense",
        "ftp://example.com",
        "http://",
        "https:///v1",
        "http://:80",
        "file:///etc/passwd",
        "http://?",
    ] {
        let ran = at(&place, url, &[]).run();
        ran.failed(1, &["ANTHROPIC_BASE_URL", url, "http or https"]);
        assert!(ran.out.is_empty());
    }
    assert!(place.transcripts().is_empty());
    // A client that reads JSON is told as well.
    let ran = at(&place, "nonsense", &["--output-format", "json"]).run();
    assert!(ran.result()["errors"][0].as_str().unwrap().contains("nonsense"));
}

#[test]
fn an_address_that_no_url_can_have_is_told() {
    let place = Place::new();
    for url in ["http://bad host", "http://127.0.0.1:99999", "http://[::1"] {
        let ran = at(&place, url, &[]).run();
        assert_eq!(ran.code, Some(1), "{ran:?}");
        assert!(ran.took < Duration::from_secs(3), "{url}: {:?}", ran.took);
        ran.failed(1, &["ANTHROPIC_BASE_URL"]);
    }
}

/// A port nobody listens on.
fn closed_port() -> u16 {
    TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap().port()
}

/// The notices about retries, and the line behind them.
#[track_caller]
fn after_retries(ran: &Ran) -> String {
    let (notices, rest): (Vec<&str>, Vec<&str>) = ran.err.lines().partition(|line| line.starts_with("! "));
    assert!(notices.iter().all(|line| line.contains("asking again in")), "{notices:?}");
    assert_eq!(rest.len(), 1, "{}", ran.err);
    rest[0].to_owned()
}

#[test]
fn a_refused_connection_is_told_with_its_address() {
    let place = Place::new();
    let url = format!("http://127.0.0.1:{}", closed_port());
    let ran = at(&place, &url, &[]).run();
    assert_eq!((ran.code, ran.out.as_str()), (Some(1), ""));
    let line = after_retries(&ran);
    for words in ["error: ", &url, "ANTHROPIC_BASE_URL", "reachable"] {
        assert!(line.contains(words), "{words}: {line}");
    }
    is_recorded(&place, &ran, "hi");
}

#[test]
fn a_name_that_cannot_be_resolved_is_told() {
    let place = Place::new();
    let ran = at(&place, "http://no-such-host.invalid", &[]).run();
    assert_eq!(ran.code, Some(1), "{ran:?}");
    let line = after_retries(&ran);
    assert!(line.contains("no-such-host.invalid") && line.contains("ANTHROPIC_BASE_URL"), "{line}");
    is_recorded(&place, &ran, "hi");
}

#[test]
fn without_a_key_there_is_a_way_to_try() {
    let place = Place::new();
    let ran = place.pelton(["-p", "hi"]).run();
    ran.failed(1, &["no API key", "ANTHROPIC_API_KEY", "ANTHROPIC_AUTH_TOKEN", "pelton demo"]);
    assert!(ran.out.is_empty());
    let ran = place
        .pelton(["-p", "hi", "--output-format", "stream-json", "--verbose"])
        .env("ANTHROPIC_API_KEY", "")
        .run();
    ran.failed(1, &["no API key"]);
    assert_eq!(ran.result()["subtype"], "error_during_execution");
}

#[test]
fn a_wrong_key_is_told_once_and_not_tried_again() {
    let place = Place::new();
    let model = model(Script::new().step(Step::status(401).message("invalid x-api-key")));
    let ran = place.task(&model, ["hi"]).run();
    ran.failed(1, &["401", "invalid x-api-key", "check ANTHROPIC_API_KEY"]);
    assert_eq!((model.requests().len(), ran.out.as_str()), (1, ""));
    is_recorded(&place, &ran, "hi");
    // The key itself is nowhere.
    assert!(!ran.err.contains("sk-test"));
    assert!(!std::fs::read_to_string(&place.transcripts()[0]).unwrap().contains("sk-test"));
}

#[test]
fn an_unknown_model_is_told_with_the_option_that_names_it() {
    let (place, model) = (Place::new(), model(Script::new().model("claude-sonnet-4-5")).expect_illegal());
    let ran = place.task(&model, ["hi", "--model", "claude-nonesuch-9"]).run();
    ran.failed(1, &["404", "claude-nonesuch-9", "--model", &model.base_url()]);
    is_recorded(&place, &ran, "hi");
}

#[test]
fn an_address_that_leads_beside_the_api_is_told() {
    let (place, model) = (Place::new(), hello().expect_illegal());
    let ran = at(&place, &format!("{}/v1", model.base_url()), &[]).run();
    let line = ran.failed(1, &["404", "ANTHROPIC_BASE_URL", "without /v1"]);
    assert!(!line.contains("--model"), "{line}");
    // One that does not speak https.
    let ran = at(&place, &model.base_url().replace("http://", "https://"), &[]).run();
    let line = ran.failed(1, &["no secure connection", "ANTHROPIC_BASE_URL", "https, and not http"]);
    assert!(!line.contains("NODE_EXTRA_CA_CERTS"), "{line}");
}

#[test]
fn a_prompt_that_is_too_long_is_not_told_to_be_gone_on_with() {
    let place = Place::new();
    let too_long = "prompt is too long: 250000 tokens > 200000 maximum";
    let model = model(Script::new().step(Step::status(400).message(too_long).always()));
    let ran = place.task(&model, ["hi"]).run();
    let line = ran.failed(1, &[too_long, "start a new session"]);
    assert!(!line.contains("--resume"), "{line}");
}

#[test]
fn a_directory_that_is_gone_is_told() {
    let (place, model) = (Place::new(), hello());
    let mut command = place.shell("mkdir gone && cd gone && rmdir ../gone && exec \"$PELTON\" -p hi");
    command.asks(&model).run().failed(1, &["cannot read the working directory", "change to one that exists"]);
    for dir in ["missing", "a-file"] {
        place.put("a-file", "");
        let ran = place.task(&model, ["hi", "--add-dir", dir]).run();
        ran.failed(1, &["cannot work in", dir, "check that it exists"]);
    }
    assert!(model.requests().is_empty() && place.transcripts().is_empty());
}

#[test]
fn a_directory_that_may_not_be_read_is_told() {
    let (place, model) = (Place::new(), hello());
    let open_to_all =
        |path: &Path, mode| std::fs::set_permissions(path, Permissions::from_mode(mode)).unwrap();
    open_to_all(place.work().parent().unwrap(), 0o755);
    // It may be entered, but not looked at.
    open_to_all(&place.work(), 0o311);
    let mut command = place.task(&model, ["hi"]);
    if nix::unistd::geteuid().is_root() {
        // Root may look at everything.
        command.uid(65534);
    }
    match command.spawn() {
        Ok(mut child) => _ = child.kill().and_then(|()| child.wait()),
        // The program under test lies where only its owner may go.
        Err(error) if error.kind() == std::io::ErrorKind::PermissionDenied => return,
        Err(error) => panic!("{error}"),
    }
    command.run().failed(1, &["cannot work in", "Permission denied", "may be read"]);
    open_to_all(&place.work(), 0o755);
    assert!(model.requests().is_empty());
}

#[test]
fn a_session_that_cannot_be_recorded_is_not_begun() {
    let (place, model) = (Place::new(), hello());
    place.put("not-a-folder", "");
    let config = place.work().join("not-a-folder");
    let ran = place.task(&model, ["hi"]).env("CLAUDE_CONFIG_DIR", config).run();
    let line = ran.failed(1, &["cannot open the session file", "not-a-folder", "--no-session-persistence"]);
    assert!(!line.contains("--resume"), "{line}");
    assert!(model.requests().is_empty());
}

/// Reads one line and goes away while a command runs and nothing is there to be written; or never reads at all.
#[test]
fn a_reader_that_goes_away_ends_the_run() {
    check_reader_gone(&["--output-format", "stream-json", "--verbose"], true);
    check_reader_gone(&["--output-format", "text"], false);
}

#[track_caller]
fn check_reader_gone(format: &[&str], reads_a_line: bool) {
    let place = Place::new();
    let call = tool("Bash", json!({"command": "touch began; sleep 60", "description": "Wait"}));
    let model = model(Script::new().reply([text("Working."), call]));
    let words = ["work", "--allowedTools", "Bash(*)"].into_iter().chain(format.iter().copied());
    let mut command = place.task(&model, words);
    let mut child = command
        .stdout(Stdio::piped())
        .stderr(File::create(place.work().join("err")).unwrap())
        .spawn()
        .unwrap();
    let mut lines = BufReader::new(child.stdout.take().unwrap());
    if reads_a_line {
        lines.read_line(&mut String::new()).unwrap();
    }
    until("the command runs", || place.has("began"));
    drop(lines);
    let began = Instant::now();
    until("it ends", || child.try_wait().unwrap().is_some());
    assert!(began.elapsed() < Duration::from_secs(5), "{:?}", began.elapsed());
    let ran = Ran {
        code: child.wait().unwrap().code(),
        signal: None,
        out: String::new(),
        err: place.read("err"),
        took: began.elapsed(),
    };
    ran.failed(141, &["standard output was closed", "the run was stopped"]);
    is_recorded(&place, &ran, "work");
}

#[test]
fn a_pipe_cut_by_head_is_told_and_the_answer_kept() {
    let (place, model) = (Place::new(), model(Script::new().reply([text("x".repeat(200_000))])));
    let mut command = place.shell("{ \"$PELTON\" -p talk; echo \"code $?\" >&2; } | head -c 1");
    let ran = command.asks(&model).run();
    let (line, code) = ran.err.trim_end().split_once('\n').unwrap();
    assert_eq!((ran.out.as_str(), code), ("x", "code 141"));
    assert!(line.starts_with("error: standard output was closed before the answer was written"), "{line}");
    let recorded = place.transcript();
    assert!(recorded.iter().any(|line| line["type"] == "assistant"));
}

#[test]
fn an_output_without_room_is_told() {
    let place = Place::new();
    for format in ["text", "json"] {
        let model = hello();
        let mut command = place.task(&model, ["hi", "--output-format", format]);
        let ran = command.stdout(File::options().write(true).open("/dev/full").unwrap()).run();
        ran.failed(1, &["cannot write to standard output", "No space left on device"]);
        is_recorded(&place, &ran, "hi");
    }
}

/// Nobody could ever read the answer, so nothing is asked; what leads nowhere on purpose is another matter.
#[test]
fn an_output_closed_from_the_start_is_told_before_anything_is_asked() {
    let (place, model) = (Place::new(), hello());
    for words in ["-p hi", "-p hi --output-format stream-json --verbose", "demo", "man", "--help"] {
        let ran = place.shell(&format!("exec \"$PELTON\" {words} >&-")).asks(&model).run();
        ran.failed(1, &["standard output is closed", "/dev/null"]);
    }
    assert!(model.requests().is_empty() && place.transcripts().is_empty());
    for nowhere in ["> /dev/null", "1<> /dev/null"] {
        place.shell(&format!("exec \"$PELTON\" -p hi {nowhere}")).asks(&model).run().well();
    }
    assert_eq!(model.requests().len(), 2);
}

/// Nothing the program opens itself takes the place of a stream that was closed.
#[test]
fn another_stream_closed_from_the_start_takes_nothing_down() {
    let (place, model) = (Place::new(), hello());
    let mut command = place.shell("exec \"$PELTON\" -p hi 2>&-");
    assert_eq!(command.asks(&model).run().well(), "hello\n");
    let lines = place.transcript();
    assert_eq!(of_type(&lines, "assistant").len(), 1);
    assert!(lines.iter().all(|line| line["sessionId"].is_string()), "nothing foreign in the transcript");
    let closed_input = place.shell("exec \"$PELTON\" -p hi <&-").asks(&model).run();
    assert_eq!(closed_input.well(), "hello\n");
}

#[test]
fn a_setting_that_is_no_number_is_told() {
    let (place, model) = (Place::new(), hello());
    let ran = place.task(&model, ["hi"]).env("CLAUDE_CODE_MAX_RETRIES", "many").run();
    ran.failed(1, &["CLAUDE_CODE_MAX_RETRIES", "'many'", "unset it"]);
    let ran = place.task(&model, ["hi"]).env("NODE_EXTRA_CA_CERTS", "/missing.pem").run();
    ran.failed(1, &["NODE_EXTRA_CA_CERTS", "/missing.pem"]);
    let ran = place.task(&model, ["hi"]).env("CLAUDE_CODE_EXTRA_BODY", "[1]").run();
    ran.failed(1, &["CLAUDE_CODE_EXTRA_BODY", "not a JSON object"]);
    let ran = place.task(&model, ["hi"]).env("ANTHROPIC_CUSTOM_HEADERS", "no colon").run();
    ran.failed(1, &["ANTHROPIC_CUSTOM_HEADERS", "no colon"]);
}

#[test]
fn hostile_words_of_a_server_stay_one_harmless_line() {
    let place = Place::new();
    let model =
        model(Script::new().step(Step::status(400).message("a\u{1b}]0;title\u{7}b\nc\u{1b}[2Jd\u{202e}")));
    let ran = place.task(&model, ["hi"]).run();
    let line = ran.failed(1, &["400"]);
    assert!(!line.contains('\u{1b}') && !line.contains('\u{7}') && !line.contains('\u{202e}'), "{line:?}");
}

#[test]
fn a_broken_answer_is_asked_for_again_and_said_so() {
    let place = Place::new();
    let cut = Step::reply([text("Half of it")]).fault(pelton_testkit::Fault::cut_after_events(4));
    let model = model(Script::new().step(cut).reply([text("All of it.")]));
    let ran = place.task(&model, ["hi"]).run();
    assert_eq!((ran.code, ran.out.as_str()), (Some(0), "All of it.\n"));
    assert_eq!(ran.err.lines().count(), 1, "{}", ran.err);
    assert!(ran.err.starts_with("! ") && ran.err.contains("asking again in"), "{}", ran.err);
    let lines: Vec<Value> = place.transcript();
    assert_eq!(of_type(&lines, "assistant").len(), 1);
}
