//! Pages of the web: a real server on this machine, and names that lead where a test says.

use std::collections::HashMap;
use std::net::{IpAddr, SocketAddr};
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};

use futures::FutureExt;
use futures::future::BoxFuture;
use pelton::history::Kind;
use pelton::permission::Mode;
use pelton::{Engine, Options};
use pelton_model::{
    Get, HttpOptions, HttpTransport, Post, Response, Transport, TransportError, TransportErrorKind,
};
use pelton_testkit::{Script, Step, When, raw_block, text, tool};
use serde_json::{Value, json};
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpListener;

use crate::stage::{Stage, Told, results_in, run};

const SMALL: &str = "claude-haiku-5-5";

/// A server that answers each path with what a test gave it, byte for byte.
struct Site {
    address: SocketAddr,
    asked: Arc<Mutex<Vec<String>>>,
}

impl Site {
    async fn with(pages: &[(&str, Vec<u8>)]) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let address = listener.local_addr().unwrap();
        let asked = Arc::new(Mutex::new(Vec::new()));
        let pages: HashMap<String, Vec<u8>> =
            pages.iter().map(|(path, answer)| ((*path).to_owned(), answer.clone())).collect();
        let (pages, seen) = (Arc::new(pages), Arc::clone(&asked));
        tokio::spawn(async move {
            while let Ok((mut socket, _)) = listener.accept().await {
                let (pages, seen) = (Arc::clone(&pages), Arc::clone(&seen));
                tokio::spawn(async move {
                    let mut head = Vec::new();
                    while !head.windows(4).any(|end| end == b"\r\n\r\n") {
                        let mut piece = [0; 1024];
                        match socket.read(&mut piece).await {
                            Ok(0) | Err(_) => return,
                            Ok(n) => head.extend_from_slice(&piece[..n]),
                        }
                    }
                    let head = String::from_utf8_lossy(&head).into_owned();
                    let path = head.split(' ').nth(1).unwrap_or_default().to_owned();
                    seen.lock().unwrap().push(head);
                    let missing = answer("404 Not Found", "text/html", "<p>There is <b>no</b> such page.");
                    let _ = socket.write_all(pages.get(&path).unwrap_or(&missing)).await;
                    if path == "/slow" {
                        tokio::time::sleep(Duration::from_secs(600)).await;
                    }
                });
            }
        });
        Self { address, asked }
    }

    fn url(&self, path: &str) -> String {
        format!("http://{}{path}", self.address)
    }

    fn asked(&self) -> Vec<String> {
        let paths = |head: &String| head.split(' ').nth(1).unwrap_or_default().to_owned();
        self.asked.lock().unwrap().iter().map(paths).collect()
    }
}

fn answer(status: &str, media_type: &str, body: impl AsRef<[u8]>) -> Vec<u8> {
    let body = body.as_ref();
    let mut all = format!(
        "HTTP/1.1 {status}\r\ncontent-type: {media_type}\r\ncontent-length: {}\r\nconnection: close\r\n\r\n",
        body.len()
    )
    .into_bytes();
    all.extend_from_slice(body);
    all
}

fn moved(to: &str) -> Vec<u8> {
    format!("HTTP/1.1 302 Found\r\nlocation: {to}\r\ncontent-length: 0\r\nconnection: close\r\n\r\n")
        .into_bytes()
}

fn fetch(url: &str) -> Step {
    Step::reply([tool("WebFetch", json!({"url": url, "prompt": "What does it say?"})).id("toolu_1")])
}

fn small(answer: &str) -> Step {
    Step::reply([text(answer)]).when(When::any().model(SMALL)).always()
}

/// A session that may ask this machine.
fn may_ask_here(options: &mut Options) {
    options.rules.allow.push("WebFetch(domain:127.0.0.1)".parse().unwrap());
    options.mode = Mode::Default;
}

/// No small model: pages come as they are.
fn plainly(options: &mut Options) {
    may_ask_here(options);
    options.small_model = String::new();
}

/// Fetches one address, and gives the result: whether it is an error, what the model reads, and the structured twin.
async fn fetched(url: &str, change: impl FnOnce(&mut Options)) -> (bool, String, Value) {
    let stage = Stage::new(Script::new().step(fetch(url)).reply([text("Done.")])).await;
    let told = run(&mut stage.engine_with(change), "Go.").await;
    told.assert_completed();
    let (_, is_error, said) = results_in(&stage.request(2)).remove(0);
    (is_error, said, detail(&told))
}

fn detail(told: &Told) -> Value {
    let entries = told.entries();
    let result = entries.iter().rev().find(|entry| matches!(entry.kind, Kind::ToolResult { .. })).unwrap();
    result.detail.as_ref().map(|detail| serde_json::from_slice(detail).unwrap()).unwrap_or_default()
}

#[tokio::test]
async fn loop_R1_a_question_about_a_page_that_is_asked_again_is_told_like_any_other() {
    let site = Site::with(&[("/tea", answer("200 OK", "text/plain", "Green tea."))]).await;
    let refused = Step::status(529).times(2).when(When::any().model(SMALL));
    let script = Script::new()
        .step(refused)
        .step(small("80 degrees."))
        .step(fetch(&site.url("/tea")))
        .reply([text("Done.")]);
    let stage = Stage::new(script).await;
    let told = run(&mut stage.engine_with(may_ask_here), "Go.").await;
    let outcome = told.assert_completed();
    assert_eq!((told.retries().len(), told.loop_reasons("retry").len(), outcome.retries), (2, 2, 2));
    assert!(told.retries().iter().all(|notice| !notice.withdrawn), "nothing of it was shown");
    let (_, is_error, said) = results_in(&stage.request(stage.request_count())).remove(0);
    assert!(!is_error && said.contains("80 degrees."), "{said}");
    let retry = told.position(|event| matches!(event, pelton::Event::Retry(_)));
    assert!(
        retry < told.position(|event| crate::stage::is_result_of(event, "toolu_1")),
        "while it is waited for"
    );
}

#[tokio::test]
async fn a_page_is_read_by_the_small_model_and_paid_from_the_same_purse() {
    let page = "<title>Tea</title><h1>Tea</h1><p>Water at <b>80</b> degrees. <a href='/more'>More</a>";
    let site = Site::with(&[("/tea", answer("200 OK", "text/html; charset=utf-8", page))]).await;
    let script =
        Script::new().step(small("80 degrees.")).step(fetch(&site.url("/tea#how"))).reply([text("Done.")]);
    let stage = Stage::new(script).await;
    let told = run(&mut stage.engine_with(may_ask_here), "Go.").await;
    let outcome = told.assert_completed();
    let request = stage.model.reply_requests().into_iter().find(|seen| seen.body["model"] == SMALL).unwrap();
    let asked = request.body["messages"].to_string();
    let url = site.url("/tea");
    assert!(asked.contains("# Tea") && asked.contains("Water at **80** degrees."), "{asked}");
    assert!(asked.contains(&site.url("/more")) && asked.contains("What does it say?"), "{asked}");
    let last = stage.model.reply_requests().last().unwrap().body.clone();
    assert_eq!(results_in(&last), [("toolu_1".to_owned(), false, "80 degrees.".to_owned())]);
    let detail = detail(&told);
    assert_eq!((&detail["code"], &detail["codeText"]), (&json!(200), &json!("OK")));
    assert_eq!((&detail["result"], &detail["url"]), (&json!("80 degrees."), &json!(url)));
    assert_eq!(detail["bytes"], json!(page.len()));
    assert!(detail["durationMs"].is_u64());
    assert!(outcome.by_model[SMALL].cost_usd.unwrap() > 0.0);
    let head = site.asked.lock().unwrap()[0].to_lowercase();
    assert!(head.contains("user-agent: claude-user (pelton/"), "{head}");
    assert!(!head.contains("x-api-key") && !head.contains("authorization"), "{head}");
    stage.assert_all_played();
}

#[tokio::test]
async fn a_page_is_kept_for_a_while_and_shown_in_parts_where_there_is_no_small_model() {
    let long = "word ".repeat(30_000);
    let site = Site::with(&[("/long", answer("200 OK", "text/plain", &long))]).await;
    let url = site.url("/long");
    let go_on = tool("WebFetch", json!({"url": url, "prompt": "p", "offset": 120_000})).id("toolu_2");
    let past = tool("WebFetch", json!({"url": url, "prompt": "p", "offset": 150_000})).id("toolu_3");
    let script = Script::new().step(fetch(&url)).reply([go_on]).reply([past]).reply([text("Done.")]);
    let stage = Stage::new(script).await;
    run(&mut stage.engine_with(plainly), "Go.").await.assert_completed();
    let results = results_in(&stage.request(4));
    assert!(
        results[0].2.ends_with("[Characters 0 to 50000 of 150000: go on with `offset` 50000.]"),
        "{}",
        &results[0].2[49_900..]
    );
    assert!(results[1].2.contains("word") && !results[1].2.contains("go on with"));
    assert!(results[2].2.contains("nothing at offset 150000"));
    assert_eq!(site.asked(), ["/long"], "the other two came from memory");
}

#[tokio::test]
async fn a_small_model_that_fails_leaves_the_page_itself() {
    let site = Site::with(&[("/", answer("200 OK", "text/html", "<p>All there is."))]).await;
    let refuses = Step::status(400).when(When::any().model(SMALL)).always();
    let stage =
        Stage::new(Script::new().step(refuses).step(fetch(&site.url("/"))).reply([text("Done.")])).await;
    run(&mut stage.engine_with(may_ask_here), "Go.").await.assert_completed();
    let last = stage.model.reply_requests().last().unwrap().body.clone();
    let (_, is_error, said) = results_in(&last).remove(0);
    assert!(!is_error && said.contains("All there is.") && said.contains("was not answered"), "{said}");
}

#[tokio::test]
async fn redirects_are_followed_on_the_same_host_only_and_not_for_ever() {
    let site = Site::with(&[
        ("/a", moved("/b?x=1")),
        ("/b?x=1", moved("c")),
        ("/c", answer("200 OK", "text/html", "<p>Arrived.")),
        ("/round", moved("/round")),
        ("/away", moved("http://localhost:1/secret")),
        ("/file", moved("file:///etc/passwd")),
        ("/user", moved("//me:pw@127.0.0.1/")),
    ])
    .await;
    let (is_error, said, detail) = fetched(&site.url("/a"), plainly).await;
    assert!(!is_error && said.contains("Arrived.") && said.contains(&site.url("/c")), "{said}");
    assert_eq!(detail["url"], site.url("/c"));
    let (is_error, said, _) = fetched(&site.url("/round"), plainly).await;
    assert!(is_error && said.contains("more than 10 times"), "{said}");
    assert_eq!(site.asked().iter().filter(|path| *path == "/round").count(), 11);
    for (path, to) in
        [("/away", "http://localhost:1/secret"), ("/file", "file:///etc/passwd"), ("/user", "127.0.0.1")]
    {
        let (is_error, said, detail) = fetched(&site.url(path), plainly).await;
        assert!(!is_error && said.contains(to) && said.contains("another host"), "{said}");
        assert_eq!(detail["code"], 302);
    }
}

#[tokio::test]
async fn files_are_saved_and_errors_are_told() {
    let pdf = b"%PDF-1.4\n\0\x01\x02binary";
    let site = Site::with(&[
        ("/a.pdf", answer("200 OK", "application/pdf", pdf)),
        ("/empty", answer("200 OK", "text/html", "")),
    ])
    .await;
    let stage = Stage::new(Script::new().step(fetch(&site.url("/a.pdf"))).reply([text("Done.")])).await;
    run(&mut stage.engine_with(plainly), "Go.").await.assert_completed();
    let (_, is_error, said) = results_in(&stage.request(2)).remove(0);
    let path = said.split("saved as ").nth(1).unwrap().split(": Read").next().unwrap();
    assert!(!is_error && path.ends_with(".pdf"), "{said}");
    assert_eq!(std::fs::read(path).unwrap(), pdf);
    let (is_error, said, detail) = fetched(&site.url("/none"), plainly).await;
    assert!(
        is_error && said.contains("404 Not Found") && said.contains("There is **no** such page."),
        "{said}"
    );
    assert!(
        detail.as_str().is_some_and(|told| told.starts_with("Error: ") && told.contains("404 Not Found"))
    );
    let (is_error, said, _) = fetched(&site.url("/empty"), plainly).await;
    assert!(!is_error && said.contains("no words"), "{said}");
    let (is_error, said, _) = fetched("http://127.0.0.1:1/", plainly).await;
    assert!(is_error && said.contains("nobody accepts connections"), "{said}");
}

#[tokio::test]
async fn a_page_without_end_is_cut_and_one_that_never_comes_can_be_interrupted() {
    let huge = answer("200 OK", "text/plain", "x".repeat(11 * 1024 * 1024));
    let site = Site::with(&[
        ("/huge", huge),
        ("/slow", b"HTTP/1.1 200 OK\r\ncontent-length: 10\r\n\r\nab".to_vec()),
    ])
    .await;
    let url = site.url("/huge");
    let last_part =
        tool("WebFetch", json!({"url": url, "prompt": "p", "offset": 10 * 1024 * 1024 - 10})).id("toolu_1");
    let stage = Stage::new(Script::new().reply([last_part]).reply([text("Done.")])).await;
    run(&mut stage.engine_with(plainly), "Go.").await.assert_completed();
    let said = results_in(&stage.request(2)).remove(0).2;
    assert!(said.contains("longer than what is read"), "{said}");

    let stage = Stage::new(Script::new().step(fetch(&site.url("/slow"))).reply([text("Done.")])).await;
    let mut engine: Engine = stage.engine_with(plainly);
    let interrupter = engine.interrupter();
    let began = Instant::now();
    let asked = Arc::clone(&site.asked);
    tokio::spawn(async move {
        while !asked.lock().unwrap().iter().any(|head| head.contains("/slow")) {
            tokio::time::sleep(Duration::from_millis(5)).await;
        }
        interrupter.interrupt();
    });
    let told = run(&mut engine, "Go.").await;
    assert!(told.outcome().is_error || told.outcome().terminal != pelton::Terminal::Completed);
    assert!(began.elapsed() < Duration::from_secs(10));
}

/// A network in which names lead where a test says, and every connection ends at one server.
struct Names {
    real: HttpTransport,
    names: HashMap<&'static str, Vec<IpAddr>>,
    asked: Mutex<Vec<Get>>,
    server: SocketAddr,
}

impl Transport for Names {
    fn post(&self, post: Post) -> BoxFuture<'static, Result<Response, TransportError>> {
        self.real.post(post)
    }

    fn get(&self, mut get: Get) -> BoxFuture<'static, Result<Response, TransportError>> {
        self.asked.lock().unwrap().push(get.clone());
        // As if that server stood at the address that was pinned.
        get.pinned = vec![self.server];
        let (_, rest) = get.url.split_once("://").unwrap();
        let (host, path) = rest.split_once('/').unwrap();
        let host = host.split(':').next().unwrap();
        get.url = format!("http://{host}:{}/{path}", self.server.port());
        self.real.get(get)
    }

    fn addresses(&self, host: &str) -> BoxFuture<'static, Result<Vec<IpAddr>, TransportError>> {
        let found = self.names.get(host.trim_end_matches('.')).cloned();
        async move { found.ok_or_else(|| TransportError::new(TransportErrorKind::Dns, "no such name")) }
            .boxed()
    }
}

impl Names {
    fn of(names: &[(&'static str, &[&str])], site: &Site) -> Arc<Self> {
        let names = names.iter().map(|(name, addresses)| {
            (*name, addresses.iter().map(|address| address.parse().unwrap()).collect())
        });
        Arc::new(Self {
            real: HttpTransport::new(HttpOptions::default()),
            names: names.collect(),
            asked: Mutex::default(),
            server: site.address,
        })
    }
}

#[tokio::test]
async fn names_that_lead_inside_are_refused_unless_a_rule_names_them() {
    let site = Site::with(&[("/", answer("200 OK", "text/html", "<p>Inside."))]).await;
    let names = Names::of(
        &[
            ("rebound.example.com", &["93.184.215.14", "127.0.0.1"]),
            ("meta.example.com", &["169.254.169.254"]),
            ("six.example.com", &["::ffff:10.0.0.1"]),
            ("nat.example.com", &["64:ff9b::7f00:1"]),
            ("wiki", &["93.184.215.14"]),
            ("printer.local", &["93.184.215.14"]),
            ("private.example.com", &["10.1.2.3"]),
            ("public.example.com", &["93.184.215.14", "2606:2800:21f::1"]),
        ],
        &site,
    );
    let road = |options: &mut Options, rule: &str| {
        options.small_model = String::new();
        options.rules.allow.push(rule.parse().unwrap());
        options.transport = Arc::clone(&names) as Arc<dyn Transport>;
    };
    for url in [
        "http://127.0.0.1/",
        "http://2130706433/",
        "http://[::1]/",
        "http://[::ffff:127.0.0.1]/",
        "http://0/",
        "http://169.254.169.254/latest/meta-data/",
        "http://rebound.example.com/",
        "http://meta.example.com/",
        "https://six.example.com/",
        "https://nat.example.com/",
        "https://wiki/",
        "https://printer.local/",
        "https://private.example.com/",
        "https://PRIVATE.example.com./",
    ] {
        for rule in ["WebFetch", "WebFetch(domain:*.example.com)"] {
            let (is_error, said, _) = fetched(url, |options| road(options, rule)).await;
            assert!(is_error && said.contains("WebFetch(domain:"), "{url} {rule}: {said}");
        }
    }
    assert!(names.asked.lock().unwrap().is_empty(), "nobody was asked");
    // Named, it is asked as it was given, at the address that was judged.
    let (is_error, said, _) = fetched("http://private.example.com/", |options| {
        road(options, "WebFetch(domain:private.example.com)");
    })
    .await;
    assert!(!is_error && said.contains("Inside."), "{said}");
    let asked = names.asked.lock().unwrap().pop().unwrap();
    assert_eq!(asked.url, "http://private.example.com/");
    assert_eq!(asked.pinned, ["10.1.2.3:80".parse().unwrap()]);
    // Whatever is outside is asked over TLS, at all the addresses it was found to have.
    let (is_error, said, detail) =
        fetched("http://public.example.com/", |options| road(options, "WebFetch")).await;
    assert!(!is_error && said.contains("Inside."), "{said}");
    let asked = names.asked.lock().unwrap().pop().unwrap();
    assert_eq!(
        (asked.url.as_str(), &detail["url"]),
        ("https://public.example.com/", &json!("https://public.example.com/"))
    );
    assert_eq!(
        asked.pinned,
        ["93.184.215.14:443".parse().unwrap(), "[2606:2800:21f::1]:443".parse().unwrap()]
    );
    let (is_error, said, _) =
        fetched("https://nowhere.example.com/", |options| road(options, "WebFetch")).await;
    assert!(is_error && said.contains("no such name"), "{said}");
}

#[tokio::test]
async fn every_hop_is_judged_anew() {
    // The same name, but it leads inside by the time of the second hop.
    struct Turning(Arc<Names>, Mutex<u32>);
    impl Transport for Turning {
        fn post(&self, post: Post) -> BoxFuture<'static, Result<Response, TransportError>> {
            self.0.post(post)
        }
        fn get(&self, get: Get) -> BoxFuture<'static, Result<Response, TransportError>> {
            self.0.get(get)
        }
        fn addresses(&self, _: &str) -> BoxFuture<'static, Result<Vec<IpAddr>, TransportError>> {
            let mut times = self.1.lock().unwrap();
            *times += 1;
            let address: IpAddr = if *times == 1 { "93.184.215.14" } else { "127.0.0.1" }.parse().unwrap();
            async move { Ok(vec![address]) }.boxed()
        }
    }
    let site =
        Site::with(&[("/", moved("/two")), ("/two", answer("200 OK", "text/html", "<p>Inside."))]).await;
    let names = Names::of(&[], &site);
    let turning = Arc::new(Turning(Arc::clone(&names), Mutex::default()));
    let (is_error, said, _) = fetched("https://turning.example.com/", |options| {
        options.small_model = String::new();
        options.transport = turning;
    })
    .await;
    assert!(is_error && said.contains("leads to 127.0.0.1"), "{said}");
    assert_eq!(site.asked(), ["/"]);
}

#[tokio::test]
async fn hosts_need_permission_by_the_name_that_is_really_asked() {
    for (url, allowed) in [
        ("http://127.0.0.1:1/", true),
        ("http://2130706433:1/", true),
        ("http://localhost:1/", false),
        ("https://127.0.0.1.example.com/", false),
    ] {
        let (is_error, said, _) = fetched(url, |options| {
            plainly(options);
            options.questions = None;
        })
        .await;
        assert!(is_error);
        assert_eq!(said.contains("nobody accepts connections"), allowed, "{url}: {said}");
        assert_eq!(said.contains("needs approval"), !allowed, "{url}: {said}");
    }
}

fn search(input: Value) -> Step {
    Step::reply([tool("WebSearch", input).id("toolu_1")])
}

/// What a server answers that has searched.
fn searched() -> Step {
    let hits = json!([
        {"type": "web_search_result", "title": "Tea at  home", "url": "https://tea.example/", "encrypted_content": "x", "page_age": null},
        {"type": "web_search_result", "title": "More tea", "url": "https://more.example/tea", "encrypted_content": "y"},
    ]);
    Step::reply([
        raw_block(json!({"type": "server_tool_use", "id": "srvtoolu_1", "name": "web_search", "input": {"query": "tea"}})),
        raw_block(json!({"type": "web_search_tool_result", "tool_use_id": "srvtoolu_1", "content": hits})),
        text("Tea is made at 80 degrees."),
    ])
    .usage("server_tool_use", json!({"web_search_requests": 3, "web_fetch_requests": 0}))
    .when(When::any().system("search the web for another program"))
}

#[tokio::test]
async fn a_search_runs_at_the_server_and_its_price_is_counted() {
    let ask = search(json!({"query": "tea", "allowed_domains": ["tea.example"]}));
    let stage = Stage::new(Script::new().step(searched()).step(ask).reply([text("Done.")])).await;
    let told = run(&mut stage.engine(), "Go.").await;
    let outcome = told.assert_completed();
    let requests = stage.model.reply_requests();
    assert_eq!(
        requests[1].body["tools"],
        json!([{"type": "web_search_20250305", "name": "web_search", "max_uses": 8, "allowed_domains": ["tea.example"]}])
    );
    let (_, is_error, said) = results_in(&requests[2].body).remove(0);
    assert!(!is_error);
    assert_eq!(
        said,
        "- Tea at home: https://tea.example/\n- More tea: https://more.example/tea\n\nTea is made at 80 degrees."
    );
    let detail = detail(&told);
    assert_eq!(
        detail["results"][0]["content"][1],
        json!({"title": "More tea", "url": "https://more.example/tea"})
    );
    assert_eq!(
        (&detail["query"], &detail["results"][1]),
        (&json!("tea"), &json!("Tea is made at 80 degrees."))
    );
    let model = &outcome.by_model["claude-sonnet-5-5"];
    assert_eq!(model.usage.server_tool_use.web_search_requests, 3);
    assert!(model.cost_usd.unwrap() > 0.03);
    stage.assert_all_played();
}

#[tokio::test]
async fn searches_are_bounded_and_need_approval_and_one_kind_of_domain() {
    let twice = Step::reply([
        tool("WebSearch", json!({"query": "a", "allowed_domains": ["x.org"]})).id("toolu_0"),
        tool(
            "WebSearch",
            json!({"query": "tea", "allowed_domains": ["x.org"], "blocked_domains": ["y.org"]}),
        )
        .id("toolu_1"),
        tool("WebSearch", json!({"query": "tea", "blocked_domains": []})).id("toolu_2"),
    ]);
    let again = search(json!({"query": "more tea"}));
    let stage =
        Stage::new(Script::new().step(searched()).step(twice).step(again).reply([text("Done.")])).await;
    let mut engine = stage.engine_with(|options| options.tool_limits.web_searches_max = 1);
    run(&mut engine, "Go.").await.assert_completed();
    let last = stage.model.reply_requests().last().unwrap().body.clone();
    let results = results_in(&last);
    assert!(results[0].1 && results[0].2.contains("two characters"), "{results:?}");
    assert!(results[1].1 && results[1].2.contains("cannot be used together"), "{results:?}");
    assert!(!results[2].1, "{results:?}");
    assert!(results[3].1 && results[3].2.contains("as often as it may"), "{results:?}");

    let script = Script::new().step(search(json!({"query": "tea"}))).reply([text("Done.")]);
    let stage = Stage::new(script).await;
    run(&mut stage.engine_with(|options| options.mode = Mode::Default), "Go.").await.assert_completed();
    let (_, is_error, said) = results_in(&stage.request(2)).remove(0);
    assert!(is_error && said.contains("WebSearch needs approval"), "{said}");

    let stage = Stage::new(Script::new().reply([text("Done.")])).await;
    run(&mut stage.engine_with(|options| options.tool_limits.web_searches_max = 0), "Go.")
        .await
        .assert_completed();
    let tools = stage.request(1)["tools"].as_array().unwrap().clone();
    assert!(
        tools.iter().all(|tool| tool["name"] != "WebSearch")
            && tools.iter().any(|tool| tool["name"] == "WebFetch")
    );
}

#[tokio::test]
async fn a_server_that_cannot_search_says_so() {
    let failed = Step::reply([
        raw_block(
            json!({"type": "server_tool_use", "id": "srvtoolu_1", "name": "web_search", "input": {"query": "tea"}}),
        ),
        raw_block(json!({"type": "web_search_tool_result", "tool_use_id": "srvtoolu_1",
            "content": {"type": "web_search_tool_result_error", "error_code": "unavailable"}})),
    ]);
    for (server, said) in
        [(failed, "unavailable"), (Step::status(400).message("tools.0: not here"), "not searched")]
    {
        let server = server.when(When::any().system("search the web for another program"));
        let script = Script::new().step(server).step(search(json!({"query": "tea"}))).reply([text("Done.")]);
        let stage = Stage::new(script).await;
        run(&mut stage.engine(), "Go.").await.assert_completed();
        let last = stage.model.reply_requests().last().unwrap().body.clone();
        let (_, is_error, told) = results_in(&last).remove(0);
        assert!(is_error && told.contains(said), "{told}");
    }
}
