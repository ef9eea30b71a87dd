//! Many processes, one login whose refresh token is good for one exchange.

use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::sync::Arc;
use std::sync::atomic::{AtomicU32, Ordering};

use bytes::Bytes;
use futures::StreamExt;
use pelton_model::credentials::{Keeper, OauthFile, OauthOptions, TokenForm};
use pelton_model::{
    Ask, Auth, Client, Endpoint, HttpOptions, HttpTransport, Prefix, RealWorld, RetryPolicy, Step,
};
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::{TcpListener, TcpStream};

const PROCESSES: u32 = 20;
const LOGIN: &str = "PELTON_TEST_LOGIN";
const SERVER: &str = "PELTON_TEST_SERVER";

/// One of the processes: a whole call, with nothing in common with the others but the file.
#[tokio::test]
#[ignore = "started by the tests below"]
async fn one_process() {
    let (path, server) = (std::env::var(LOGIN).unwrap(), std::env::var(SERVER).unwrap());
    let world = Arc::new(RealWorld::new());
    let transport = Arc::new(HttpTransport::new(HttpOptions::default()));
    let options = OauthOptions {
        path: path.into(),
        token_url: format!("{server}/token"),
        client_id: None,
        form: TokenForm::Form,
        user_agent: "pelton".to_owned(),
    };
    let keeper = Keeper::new(OauthFile::new(options, transport.clone(), world.clone()), world.clone());
    let mut endpoint = Endpoint::new(server, Auth::None);
    endpoint.credentials = Some(Arc::new(keeper));
    let client = Client::new(endpoint, transport, RetryPolicy::default(), world);
    let messages = vec![Bytes::from_static(br#"{"role":"user","content":"hi"}"#)];
    let steps: Vec<Step> =
        client.call(Ask::new("m", 1000, Arc::new(Prefix::default()), messages)).collect().await;
    assert!(matches!(steps.last(), Some(Step::Finished(_))), "{steps:?}");
}

/// What the server was asked for.
#[derive(Default)]
struct Counts {
    exchanges: AtomicU32,
    refused_exchanges: AtomicU32,
    answers: AtomicU32,
}

async fn serve(mut socket: TcpStream, counts: Arc<Counts>) {
    let mut request = Vec::new();
    loop {
        let text = String::from_utf8_lossy(&request).into_owned();
        let head = text.split_once("\r\n\r\n");
        let length = |head: &str| {
            let length = head.lines().find_map(|line| line.strip_prefix("content-length: "));
            length.map_or(0, |length| length.parse::<usize>().unwrap())
        };
        if let Some((head, _)) = head.filter(|(head, body)| body.len() >= length(head)) {
            let (status, body) = if head.starts_with("POST /token ") {
                exchange(&text, &counts).await
            } else if head.contains("\r\nauthorization: Bearer a2\r\n") {
                counts.answers.fetch_add(1, Ordering::Relaxed);
                (
                    200,
                    r#"{"type":"message","id":"msg_1","model":"m","content":[{"type":"text","text":"hello"}],"stop_reason":"end_turn","usage":{}}"#,
                )
            } else {
                (401, r#"{"type":"error","error":{"type":"authentication_error","message":"who?"}}"#)
            };
            let length = body.len();
            let answer = format!("HTTP/1.1 {status} X\r\ncontent-length: {length}\r\n\r\n{body}");
            socket.write_all(answer.as_bytes()).await.unwrap();
            request.clear();
        }
        if socket.read_buf(&mut request).await.unwrap_or(0) == 0 {
            return;
        }
    }
}

async fn exchange(request: &str, counts: &Counts) -> (u16, &'static str) {
    let first = counts.exchanges.fetch_add(1, Ordering::Relaxed) == 0;
    // Long enough for everybody to come and find it under way.
    tokio::time::sleep(std::time::Duration::from_millis(300)).await;
    if first && request.contains("refresh_token=r1") {
        return (200, r#"{"access_token":"a2","refresh_token":"r2","expires_in":3600}"#);
    }
    counts.refused_exchanges.fetch_add(1, Ordering::Relaxed);
    (400, r#"{"error":"invalid_grant"}"#)
}

fn start_process(login: &Path, server: &str) -> Child {
    Command::new(std::env::current_exe().unwrap())
        .args(["--exact", "one_process", "--ignored"])
        .env(LOGIN, login)
        .env(SERVER, server)
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .unwrap()
}

async fn check(expires_at_ms: u64) {
    let folder = tempfile::tempdir().unwrap();
    let login = folder.path().join("login.json");
    let text = format!(
        r#"{{"claudeAiOauth":{{"accessToken":"a1","refreshToken":"r1","expiresAt":{expires_at_ms},"scopes":[]}}}}"#
    );
    std::fs::write(&login, text).unwrap();
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let server = format!("http://{}", listener.local_addr().unwrap());
    let counts = Arc::<Counts>::default();
    let counting = Arc::clone(&counts);
    let task = tokio::spawn(async move {
        while let Ok((socket, _)) = listener.accept().await {
            tokio::spawn(serve(socket, Arc::clone(&counting)));
        }
    });
    let processes: Vec<Child> = (0..PROCESSES).map(|_| start_process(&login, &server)).collect();
    for process in processes {
        let output = tokio::task::spawn_blocking(|| process.wait_with_output().unwrap()).await.unwrap();
        assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stdout));
        // A filter that matches no test would be a success as well.
        assert!(String::from_utf8_lossy(&output.stdout).contains("1 passed"));
    }
    task.abort();
    let count = |count: &AtomicU32| count.load(Ordering::Relaxed);
    assert_eq!((count(&counts.exchanges), count(&counts.refused_exchanges)), (1, 0));
    assert_eq!(count(&counts.answers), PROCESSES, "no turn failed, and none was made twice");
    let stored = std::fs::read_to_string(&login).unwrap();
    assert!(stored.contains(r#""refreshToken":"r2""#), "{stored}");
}

#[tokio::test]
async fn pit_L17_twenty_processes_renew_a_token_that_ran_out_once() {
    check(0).await;
}

#[tokio::test]
async fn pit_L17_twenty_processes_renew_a_token_that_is_refused_once() {
    // It looks good for centuries, but the server knows better.
    check(9_999_999_999_999).await;
}
