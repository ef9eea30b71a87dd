//! Whole calls over the real road.

use super::*;
use crate::{Ask, Auth, Client, Endpoint, Prefix, RealWorld, RetryPolicy, Step};

/// The answer "hello", in the chunked framing of HTTP/1.1.
pub(super) fn hello() -> String {
    let events = [
        r#"{"type":"message_start","message":{"id":"msg_1","model":"m","usage":{}}}"#,
        r#"{"type":"content_block_start","index":0,"content_block":{"type":"text","text":""}}"#,
        r#"{"type":"content_block_delta","index":0,"delta":{"type":"text_delta","text":"hello"}}"#,
        r#"{"type":"content_block_stop","index":0}"#,
        r#"{"type":"message_delta","delta":{"stop_reason":"end_turn"},"usage":{"output_tokens":1}}"#,
        r#"{"type":"message_stop"}"#,
    ];
    let chunk = |text: String| format!("{:x}\r\n{text}\r\n", text.len());
    let chunks: String = events.iter().map(|event| chunk(format!("data: {event}\n\n"))).collect();
    format!("HTTP/1.1 200 OK\r\ntransfer-encoding: chunked\r\n\r\n{chunks}0\r\n\r\n")
}

pub(super) fn client(base_url: String) -> Client {
    let policy = RetryPolicy { base: Duration::from_millis(1), ..RetryPolicy::default() };
    Client::new(Endpoint::new(base_url, Auth::None), Arc::new(plain()), policy, Arc::new(RealWorld::new()))
}

pub(super) async fn ask(client: &Client) -> Vec<Step> {
    let messages = vec![Bytes::from_static(br#"{"role":"user","content":"hi"}"#)];
    client.call(Ask::new("m", 1000, Arc::new(Prefix::default()), messages)).collect().await
}

#[tokio::test]
async fn a_call_leaves_its_connection_to_the_next() {
    let server = Server::start(hello().leak(), false).await;
    let client = client(format!("http://{}", server.address));
    for _ in 0..3 {
        let steps = ask(&client).await;
        assert!(matches!(steps.last(), Some(Step::Finished(reply)) if reply.cut.is_none()), "{steps:?}");
    }
    let connections: Vec<usize> = server.heard().into_iter().map(|(number, _)| number).collect();
    assert_eq!(connections, [0, 0, 0]);
}

#[tokio::test]
async fn a_connection_that_the_server_closed_meanwhile_costs_no_answer() {
    let server = Server::start(hello().leak(), true).await;
    let client = client(format!("http://{}", server.address));
    for _ in 0..5 {
        let steps = ask(&client).await;
        assert!(matches!(steps.last(), Some(Step::Finished(reply)) if reply.cut.is_none()), "{steps:?}");
    }
    let mut connections: Vec<usize> = server.heard().into_iter().map(|(number, _)| number).collect();
    connections.dedup();
    assert_eq!(connections, [0, 1, 2, 3, 4]);
}

#[tokio::test]
async fn after_a_reset_the_call_goes_on_over_a_new_connection() {
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let client = client(format!("http://{}", listener.local_addr().unwrap()));
    let server = tokio::spawn(async move {
        // The first connection serves one call, keeps alive, and breaks under the second call.
        let (mut socket, _) = listener.accept().await.unwrap();
        read_request(&mut socket).await.unwrap();
        socket.write_all(hello().as_bytes()).await.unwrap();
        read_request(&mut socket).await.unwrap();
        socket.set_zero_linger().unwrap();
        drop(socket);
        let (mut socket, _) = listener.accept().await.unwrap();
        read_request(&mut socket).await.unwrap();
        socket.write_all(hello().as_bytes()).await.unwrap();
        socket
    });
    ask(&client).await;
    let steps = ask(&client).await;
    server.await.unwrap();
    let retries: Vec<_> = steps
        .iter()
        .filter_map(|step| match step {
            Step::Retry(notice) => Some(&notice.kind),
            _ => None,
        })
        .collect();
    assert_eq!(retries, [&crate::ErrorKind::Connection(TransportErrorKind::Reset)]);
    assert!(matches!(steps.last(), Some(Step::Finished(_))), "{steps:?}");
}

#[tokio::test]
async fn dropping_a_call_closes_its_connection() {
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let client = client(format!("http://{}", listener.local_addr().unwrap()));
    let server = tokio::spawn(async move {
        let (mut socket, _) = listener.accept().await.unwrap();
        read_request(&mut socket).await.unwrap();
        let head = hello().split_inclusive("\n\n\r\n").next().unwrap().to_owned();
        socket.write_all(head.as_bytes()).await.unwrap();
        socket.read_to_end(&mut Vec::new()).await
    });
    let messages = vec![Bytes::from_static(br#"{"role":"user","content":"hi"}"#)];
    let mut call = client.call(Ask::new("m", 1000, Arc::new(Prefix::default()), messages));
    while !matches!(call.next().await, Some(Step::Started(_))) {}
    drop(call);
    tokio::time::timeout(Duration::from_secs(5), server)
        .await
        .expect("the server sees the end")
        .unwrap()
        .unwrap();
}
