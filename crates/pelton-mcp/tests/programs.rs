//! Servers that are programs: real processes, spoken to through their standard streams.

use std::ffi::OsString;
use std::fs;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};

use futures::future::BoxFuture;
use pelton::host::{Elicitation, Elicited, Elicitor, Host};
use pelton::tools::{Output, Progress, Report, ServerState, ToolServer};
use pelton_mcp::{Caller, Scope, Server, Surroundings, connect_all, read_servers};
use serde_json::{Value, json};

/// A server written for the shell. It keeps every line that it reads, and a line for every time that it was started.
const SERVER: &str = r#"
echo started >> starts
echo "hello from the server" >&2
say() { printf '%s\n' "$1"; }
tools='{"name":"echo","description":"Says it.","inputSchema":{"type":"object","properties":{"text":{"type":"string"}}},"annotations":{"readOnlyHint":true}}'
while IFS= read -r line; do
    printf '%s\n' "$line" >> heard
    id=$(printf '%s' "$line" | sed -n 's/^{"jsonrpc":"2.0","id":\([0-9]*\).*/\1/p')
    token=$(printf '%s' "$line" | sed -n 's/.*"progressToken":\([0-9]*\).*/\1/p')
    answer() {
        if [ -n "$CHATTY" ]; then
            say 'Server ready.'
            say ''
            say '{"jsonrpc":"2.0","id":4711,"result":{}}'
            say '{"jsonrpc":"2.0","id":"nobody","error":{"code":-32600,"message":"nobody asked"}}'
            say '{"jsonrpc":"2.0","method":"notifications/of/the/future","params":{"x":1}}'
        fi
        say '{"jsonrpc":"2.0","id":'"$id"',"result":'"$1"'}'
    }
    text() { answer '{"content":[{"type":"text","text":"'"$1"'"}]}'; }
    case "$line" in
    *'"method":"initialize"'*)
        answer '{"protocolVersion":"2025-06-18","capabilities":{"tools":{"listChanged":true}},"serverInfo":{"name":"shell","version":"1"},"instructions":"Be brief."}' ;;
    *'"method":"tools/list"'*)
        answer '{"tools":['"$FAULTY$tools"']}'
        [ -z "$STOP_READING" ] || exec sleep 300 ;;
    *'"name":"echo"'*) text "key=$KEY path=${PATH:+kept}${ANTHROPIC_API_KEY:+and more} in=${PWD##*/}" ;;
    *'"name":"fail"'*) answer '{"content":[{"type":"text","text":"no such thing"}],"isError":true}' ;;
    *'"name":"odd"'*) say '{"jsonrpc":"2.0","id":'"$id"',"error":{"code":-32602,"message":"odd is not for you"}}' ;;
    *'"name":"die"'*) exit 3 ;;
    *'"name":"silent"'*) ;;
    *'"name":"steady"'*)
        for step in 1 2 3 4; do
            sleep 0.3
            say '{"jsonrpc":"2.0","method":"notifications/progress","params":{"progressToken":'"$token"',"progress":'$step',"total":4,"message":"step '$step'"}}'
        done
        text "steadily" ;;
    *'"name":"grow"'*)
        tools="$tools"',{"name":"new","inputSchema":{"type":"object"}}'
        say '{"jsonrpc":"2.0","method":"notifications/tools/list_changed"}'
        text "grown" ;;
    *'"name":"ask"'*)
        asking=$id
        say '{"jsonrpc":"2.0","id":900,"method":"elicitation/create","params":{"mode":"form","message":"Which?","requestedSchema":{"type":"object","properties":{"colour":{"type":"string"}}}}}' ;;
    *'"name":"visit"'*)
        asking=$id
        say '{"jsonrpc":"2.0","id":900,"method":"elicitation/create","params":{"mode":"url","message":"Pay, please","url":"https://shop.example/pay","elicitationId":"e1"}}' ;;
    *'"id":900'*) id=$asking; text "$(printf '%s' "$line" | sed 's/.*"result"://; s/"/\\"/g')" ;;
    *'"method":"ping"'*) answer '{}' ;;
    esac
done
"#;

struct Place {
    dir: tempfile::TempDir,
}

impl Place {
    fn new() -> Self {
        let dir = tempfile::tempdir().unwrap();
        fs::write(dir.path().join("server.sh"), SERVER).unwrap();
        Self { dir }
    }

    fn path(&self, name: &str) -> PathBuf {
        self.dir.path().join(name)
    }

    fn surroundings(&self) -> Surroundings {
        let mut surroundings = Surroundings::new(self.dir.path());
        let path = std::env::var_os("PATH").unwrap_or_default();
        // Keys of whoever pays are there, and no business of a server's.
        let key = (OsString::from("ANTHROPIC_API_KEY"), OsString::from("sk-mine"));
        surroundings.env = vec![(OsString::from("PATH"), path), key].into();
        surroundings.connect_time = Duration::from_secs(20);
        surroundings
    }

    /// The server of an entry.
    fn server(&self, entry: &Value, surroundings: Surroundings) -> Arc<Server> {
        let mut read = read_servers(&json!({"it": entry}), Scope::Dynamic, |name| {
            (name == "SECRET").then(|| "hunter2".to_owned())
        });
        Server::new(read.servers.remove(0), surroundings)
    }

    fn shell(&self) -> Value {
        json!({"command": "sh", "args": ["server.sh"], "env": {"KEY": "${SECRET}"}})
    }

    /// The lines of a file that the server writes.
    fn lines(&self, name: &str) -> Vec<String> {
        let text = fs::read_to_string(self.path(name)).unwrap_or_default();
        text.lines().map(str::to_owned).collect()
    }
}

async fn call(server: &Arc<Server>, tool: &str) -> Result<Output, String> {
    server.call(tool, json!({"text": "x"}), &Caller::alone("toolu_1")).await
}

fn names(server: &Server) -> Vec<String> {
    server.tools().iter().map(|tool| tool.spec().name.to_owned()).collect()
}

/// Waits for something that happens elsewhere.
async fn until(what: &str, is: impl Fn() -> bool) {
    let start = Instant::now();
    while !is() {
        assert!(start.elapsed() < Duration::from_secs(20), "{what} did not happen");
        tokio::time::sleep(Duration::from_millis(10)).await;
    }
}

#[tokio::test]
async fn a_program_serves_what_it_says() {
    let place = Place::new();
    let server = place.server(&place.shell(), place.surroundings());
    assert_eq!((server.state(), names(&server)), (ServerState::Pending, vec![]));
    connect_all(vec![Arc::clone(&server)]).await;
    assert_eq!(server.state(), ServerState::Connected, "{}", server.status());
    assert_eq!(names(&server), ["echo"]);
    assert_eq!(server.instructions().as_deref(), Some("Be brief."));
    let status = server.status();
    assert_eq!(status["serverInfo"]["name"], "shell");
    assert_eq!(status["tools"][0]["annotations"]["readOnly"], true);
    // What is shown is what was written: the secret stays where it is.
    assert!(!status.to_string().contains("hunter2") && status.to_string().contains("${SECRET}"));

    let folder = place.dir.path().file_name().unwrap().to_str().unwrap().to_owned();
    // pit_X6: its variables are added, and nothing of the others is lost.
    assert_eq!(call(&server, "echo").await.unwrap().words(), format!("key=hunter2 path=kept in={folder}"));
    let failed = call(&server, "fail").await.unwrap();
    assert_eq!((failed.words().as_str(), failed.is_error), ("no such thing", true));
    assert_eq!(call(&server, "odd").await, Err("odd is not for you".to_owned()));
    let heard = place.lines("heard");
    assert!(heard.iter().any(|line| line.contains("\"claudecode/toolUseId\":\"toolu_1\"")), "{heard:#?}");
}

#[tokio::test]
async fn a_server_that_says_more_than_it_was_asked_is_not_lost() {
    let place = Place::new();
    let mut chatty = place.shell();
    chatty["env"]["CHATTY"] = json!("yes");
    let server = place.server(&chatty, place.surroundings());
    server.connect().await;
    assert_eq!(server.state(), ServerState::Connected, "{}", server.status());
    assert_eq!(names(&server), ["echo"]);
    for _ in 0..3 {
        assert!(call(&server, "echo").await.unwrap().words().starts_with("key="));
    }
    assert_eq!(place.lines("starts").len(), 1);
}

#[tokio::test]
async fn pit_X2_a_server_that_ended_is_started_once_for_all_who_call_and_no_call_is_made_twice() {
    let place = Place::new();
    let server = place.server(&place.shell(), place.surroundings());
    server.connect().await;
    let lost = call(&server, "die").await.unwrap_err();
    assert!(lost.contains("whether the call was carried out is not known"), "{lost}");
    assert_eq!(names(&server), ["echo"], "its tools stay known");
    let calls = (0..5).map(|_| call(&server, "echo"));
    for answer in futures::future::join_all(calls).await {
        assert!(answer.unwrap().words().starts_with("key="));
    }
    assert_eq!(place.lines("starts").len(), 2, "the first, and one more for all five");
    let died = place.lines("heard").iter().filter(|line| line.contains("\"name\":\"die\"")).count();
    assert_eq!(died, 1);
}

#[tokio::test]
async fn pit_X6_a_program_that_does_not_serve_is_named_with_its_last_words() {
    let place = Place::new();
    let broken = json!({"command": "sh", "args": ["-c", "echo the key ${SECRET:-none} is wrong; echo no database >&2; exit 4"]});
    let server = place.server(&broken, place.surroundings());
    server.connect().await;
    assert_eq!(server.state(), ServerState::Failed);
    let error = server.status()["error"].as_str().unwrap().to_owned();
    assert!(error.contains("`sh -c echo the key ${SECRET:-none}"), "{error}");
    assert!(error.contains("it said: no database") && !error.contains("hunter2"), "{error}");
    let refused = call(&server, "echo").await.unwrap_err();
    assert!(refused.contains("cannot be reached"), "{refused}");

    let absent = place.server(&json!({"command": "no-such-program-anywhere"}), place.surroundings());
    absent.connect().await;
    let error = absent.status()["error"].as_str().unwrap().to_owned();
    assert!(error.contains("'no-such-program-anywhere' could not be started"), "{error}");
}

#[tokio::test]
async fn a_program_that_never_answers_is_given_up_in_its_time() {
    let place = Place::new();
    let mut surroundings = place.surroundings();
    surroundings.connect_time = Duration::from_millis(300);
    let server = place
        .server(&json!({"command": "sh", "args": ["-c", "echo $$ > pid; exec sleep 300"]}), surroundings);
    let start = Instant::now();
    server.connect().await;
    assert!(start.elapsed() < Duration::from_secs(5));
    assert_eq!(server.state(), ServerState::Failed);
    let pid = fs::read_to_string(place.path("pid")).unwrap();
    let process = Path::new("/proc").join(pid.trim());
    until("the end of the program", || !is_running(&process)).await;
}

/// Whether a process is there, and no mere entry that waits to be collected.
fn is_running(process: &Path) -> bool {
    let stat = fs::read_to_string(process.join("stat")).unwrap_or_default();
    stat.rsplit_once(") ").is_some_and(|(_, rest)| !rest.starts_with('Z'))
}

#[tokio::test]
async fn pit_X3_a_silent_call_ends_at_its_limit_and_is_taken_back_and_progress_extends_it() {
    let place = Place::new();
    let mut surroundings = place.surroundings();
    surroundings.silence = Some(Duration::from_millis(700));
    let server = place.server(&place.shell(), surroundings);
    server.connect().await;
    let late = call(&server, "silent").await.unwrap_err();
    assert!(late.contains("did not answer within 0.7 s"), "{late}");
    until("the cancellation", || {
        place.lines("heard").iter().any(|line| line.contains("notifications/cancelled"))
    })
    .await;
    // Four steps of 0.3 s each are more than 0.7 s, and no silence is longer than that.
    let told = Arc::new(Mutex::new(Vec::new()));
    let mut caller = Caller::alone("toolu_2");
    let heard = Arc::clone(&told);
    caller.progress = Progress::new(move |call, report| {
        let Report::OutputLine(line) = report else { return };
        heard.lock().unwrap().push(format!("{call} {line}"));
    });
    let answer = server.call("steady", json!({}), &caller).await.unwrap();
    assert_eq!(answer.words(), "steadily");
    assert_eq!(
        *told.lock().unwrap(),
        ["toolu_2 step 1", "toolu_2 step 2", "toolu_2 step 3", "toolu_2 step 4"]
    );
    // A server that is given more time for its calls may be silent as long.
    let mut patient = place.shell();
    patient["timeout"] = json!(2000);
    let mut surroundings = place.surroundings();
    surroundings.silence = Some(Duration::from_millis(300));
    let server = place.server(&patient, surroundings);
    server.connect().await;
    let start = Instant::now();
    assert!(call(&server, "silent").await.is_err());
    assert!(start.elapsed() >= Duration::from_secs(2));
}

#[tokio::test]
async fn a_server_that_stops_reading_delays_nobody_beyond_the_limits() {
    let place = Place::new();
    let mut stuck = place.shell();
    stuck["env"]["STOP_READING"] = json!("yes");
    let mut surroundings = place.surroundings();
    surroundings.silence = Some(Duration::from_millis(300));
    let server = place.server(&stuck, surroundings);
    server.connect().await;
    assert_eq!(server.state(), ServerState::Connected, "{}", server.status());
    let start = Instant::now();
    // More than a pipe holds.
    let input = json!({"text": "x".repeat(4 * 1024 * 1024)});
    let late = server.call("echo", input, &Caller::alone("toolu_3")).await;
    server.close().await;
    assert!(late.is_err() && start.elapsed() < Duration::from_secs(8), "{late:?} {:?}", start.elapsed());
}

#[tokio::test]
async fn a_call_that_nobody_waits_for_is_taken_back() {
    let place = Place::new();
    let server = place.server(&place.shell(), place.surroundings());
    server.connect().await;
    let given_up = tokio::time::timeout(Duration::from_millis(200), call(&server, "silent")).await;
    assert!(given_up.is_err());
    until("the cancellation", || {
        place.lines("heard").iter().any(|line| line.contains("notifications/cancelled"))
    })
    .await;
    assert!(call(&server, "echo").await.is_ok());
}

#[tokio::test]
async fn a_list_that_changed_is_read_again() {
    let place = Place::new();
    let server = place.server(&place.shell(), place.surroundings());
    server.connect().await;
    call(&server, "grow").await.unwrap();
    until("the new list", || names(&server) == ["echo", "new"]).await;
}

#[tokio::test]
async fn a_tool_that_is_badly_described_is_named_and_spares_the_others() {
    let place = Place::new();
    let mut entry = place.shell();
    let faulty = r#"{"name":"bad1","inputSchema":3},{"name":"bad2"},{"name":"bad3","inputSchema":{"type":"string"}},{"name":5},"#;
    entry["env"]["FAULTY"] = json!(faulty);
    let server = place.server(&entry, place.surroundings());
    server.connect().await;
    assert_eq!(server.state(), ServerState::Connected, "{}", server.status());
    // Without a schema there is nothing wrong: it takes no input.
    assert_eq!(names(&server), ["bad2", "echo"]);
    let error = server.status()["error"].as_str().unwrap().to_owned();
    assert!(error.contains("bad1 is left out") && error.contains("bad3 is left out"), "{error}");
    assert!(call(&server, "echo").await.is_ok());
}

struct Red(Mutex<Vec<String>>);

impl Elicitor for Red {
    fn elicit<'a>(&'a self, question: &'a Elicitation) -> BoxFuture<'a, Elicited> {
        let url = question.url.as_deref().map(|url| format!(" at {url}")).unwrap_or_default();
        let id = question.id.as_deref().map(|id| format!(" ({id})")).unwrap_or_default();
        let said = format!("{} {} {}{url}{id}", question.asker, question.call, question.message);
        self.0.lock().unwrap().push(said);
        Box::pin(async { Elicited::Accept(json!({"colour": "red"})) })
    }
}

#[tokio::test]
async fn a_question_of_a_server_goes_to_the_one_who_called() {
    let place = Place::new();
    let server = place.server(&place.shell(), place.surroundings());
    server.connect().await;
    let person = Arc::new(Red(Mutex::default()));
    let mut caller = Caller::alone("toolu_3");
    caller.host = Host::default().with_elicitor(Arc::clone(&person) as Arc<dyn Elicitor>);
    let answer = server.call("ask", json!({}), &caller).await.unwrap().words();
    assert!(answer.contains(r#""action":"accept""#) && answer.contains(r#""colour":"red""#), "{answer}");
    // An address comes by itself, and that somebody has been there is all there is to say.
    let answer = server.call("visit", json!({}), &caller).await.unwrap().words();
    assert!(answer.contains(r#""action":"accept""#), "{answer}");
    assert_eq!(
        *person.0.lock().unwrap(),
        ["it toolu_3 Which?", "it toolu_3 Pay, please at https://shop.example/pay (e1)"]
    );
    let heard = fs::read_to_string(place.path("heard")).unwrap();
    assert!(
        heard.contains(r#""elicitation":{"form":{},"url":{}}"#),
        "it was told that both can be asked: {heard}"
    );
    let alone = call(&server, "ask").await.unwrap().words();
    assert!(alone.contains("decline"), "{alone}");
}

#[tokio::test]
async fn nothing_is_left_of_a_server_that_is_closed() {
    let place = Place::new();
    let stubborn = "trap '' TERM; sleep 300 & echo $! > child; . ./server.sh";
    let server = place.server(&json!({"command": "sh", "args": ["-c", stubborn]}), place.surroundings());
    server.connect().await;
    assert_eq!(server.state(), ServerState::Connected, "{}", server.status());
    let child = fs::read_to_string(place.path("child")).unwrap();
    let process = Path::new("/proc").join(child.trim());
    assert!(is_running(&process));
    server.close().await;
    until("the end of what it started", || !is_running(&process)).await;
}
