//! Requests as they come over the wire, whole, in pieces, and wrong.

use super::*;
use flate2::Compression;
use flate2::write::GzEncoder;
use proptest::prelude::*;
use std::io::Write;

/// Feeds bytes in pieces of a size and reads one request; also what was answered meanwhile and what is left over.
async fn read(bytes: &[u8], piece: usize) -> (Result<Request, ReadError>, Vec<u8>, Vec<u8>) {
    let (mut client, mut server) = tokio::io::duplex(64);
    let sent = bytes.to_vec();
    let sending = tokio::spawn(async move {
        for chunk in sent.chunks(piece) {
            if client.write_all(chunk).await.is_err() {
                return;
            }
        }
    });
    let (mut said, mut buffer) = (Vec::new(), BytesMut::new());
    let result = read_request(&mut server, &mut said, &mut buffer).await;
    drop(server);
    sending.await.unwrap();
    (result, said, buffer.to_vec())
}

async fn read_ok(bytes: &[u8]) -> Request {
    read(bytes, 1000).await.0.unwrap()
}

async fn read_bad(bytes: &[u8]) -> BadRequest {
    match read(bytes, 1000).await.0 {
        Err(ReadError::Bad(bad)) => bad,
        Err(ReadError::Refused(refused)) => refused.bad,
        other => panic!("{other:?}"),
    }
}

fn gzip(bytes: &[u8]) -> Vec<u8> {
    let mut encoder = GzEncoder::new(Vec::new(), Compression::fast());
    encoder.write_all(bytes).unwrap();
    encoder.finish().unwrap()
}

#[tokio::test]
async fn a_request_is_read_whole_and_the_next_one_kept() {
    let bytes = b"POST /v1/messages?beta=true HTTP/1.1\r\nHost: x\r\ncontent-length: 5\r\n\r\nhelloGET /";
    for piece in 1..40 {
        let (request, _, rest) = read(bytes, piece).await;
        let request = request.unwrap();
        assert_eq!((request.method.as_str(), request.path.as_str()), ("POST", "/v1/messages"));
        assert_eq!((request.query.as_str(), &request.body[..]), ("beta=true", &b"hello"[..]));
        assert!(request.keep_alive);
        assert!(b"GET /".starts_with(&rest[..]));
    }
}

#[tokio::test]
async fn chunked_bodies_with_extensions_and_trailers_are_read() {
    let bytes = b"POST / HTTP/1.1\r\nTransfer-Encoding: chunked\r\n\r\n5;x=1\r\nhello\r\nA\r\n, world!!!\r\n0\r\nt: 1\r\n\r\n";
    for piece in 1..30 {
        assert_eq!(&read(bytes, piece).await.0.unwrap().body[..], b"hello, world!!!");
    }
}

#[tokio::test]
async fn gzip_bodies_are_decompressed() {
    let packed = gzip(b"{\"a\":1}");
    let mut bytes =
        format!("POST / HTTP/1.1\r\ncontent-encoding: gzip\r\ncontent-length: {}\r\n\r\n", packed.len())
            .into_bytes();
    bytes.extend_from_slice(&packed);
    assert_eq!(&read_ok(&bytes).await.body[..], b"{\"a\":1}");
}

#[tokio::test]
async fn a_bomb_is_too_large_and_broken_gzip_is_refused() {
    let bomb = gzip(&vec![0; BODY_BYTES_MAX + 1]);
    let head =
        |length| format!("POST / HTTP/1.1\r\ncontent-encoding: gzip\r\ncontent-length: {length}\r\n\r\n");
    let mut bytes = head(bomb.len()).into_bytes();
    bytes.extend_from_slice(&bomb);
    assert_eq!(read_bad(&bytes).await.status, 413);
    assert_eq!(read_bad(format!("{}nope", head(4)).as_bytes()).await.status, 400);
}

#[tokio::test]
async fn an_unknown_encoding_is_refused_with_its_code() {
    let bad = read_bad(b"POST / HTTP/1.1\r\ncontent-encoding: br\r\ncontent-length: 1\r\n\r\nx").await;
    assert_eq!((bad.status, bad.code), (400, Some("request_body_encoding_unsupported")));
}

#[tokio::test]
async fn a_client_that_waits_for_leave_gets_it() {
    let (request, said, _) =
        read(b"POST / HTTP/1.1\r\nexpect: 100-continue\r\ncontent-length: 2\r\n\r\nok", 1000).await;
    assert_eq!(&request.unwrap().body[..], b"ok");
    assert_eq!(said, b"HTTP/1.1 100 Continue\r\n\r\n");
}

#[tokio::test]
async fn limits_and_contradictions_are_answered() {
    for (head, status) in [
        ("content-length: 67108865".to_owned(), 413),
        ("content-length: 1\r\ncontent-length: 2".to_owned(), 400),
        ("content-length: 1\r\ntransfer-encoding: chunked".to_owned(), 400),
        ("content-length: much".to_owned(), 400),
        ("transfer-encoding: zip".to_owned(), 400),
        (format!("x: {}", "y".repeat(HEAD_BYTES_MAX)), 431),
        ("x: y\r\n".repeat(HEADERS_MAX + 1), 431),
    ] {
        let shown: String = head.chars().take(30).collect();
        assert_eq!(
            read_bad(format!("POST / HTTP/1.1\r\n{head}\r\n\r\n").as_bytes()).await.status,
            status,
            "{shown}"
        );
    }
    assert_eq!(read_bad(b"GET / HTTP/2.0\r\n\r\n").await.status, 400);
    assert_eq!(read_bad(b"\x16\x03\x01\x00\r\n\r\n").await.status, 400);
    let chunks = "POST / HTTP/1.1\r\ntransfer-encoding: chunked\r\n\r\n";
    assert_eq!(read_bad(format!("{chunks}4000001\r\n").as_bytes()).await.status, 413);
    assert_eq!(read_bad(format!("{chunks}zz\r\n").as_bytes()).await.status, 400);
    assert_eq!(read_bad(format!("{chunks}1\r\nab\r\n0\r\n\r\n").as_bytes()).await.status, 400);
    let trailers = "t: 1\r\n".repeat(HEADERS_MAX + 1);
    assert_eq!(read_bad(format!("{chunks}0\r\n{trailers}\r\n").as_bytes()).await.status, 431);
}

#[tokio::test]
async fn what_cannot_be_taken_is_still_known_as_a_request() {
    let bytes = b"POST /v1/messages?x=1 HTTP/1.1\r\ncontent-length: 67108865\r\n\r\n";
    let Err(ReadError::Refused(refused)) = read(bytes, 1000).await.0 else { panic!("not refused") };
    assert_eq!((refused.request.path.as_str(), refused.request.query.as_str()), ("/v1/messages", "x=1"));
    assert_eq!(refused.bad.status, 413);
}

#[tokio::test]
async fn a_connection_that_ends_early_is_no_request() {
    for bytes in [&b""[..], b"POST / HT", b"POST / HTTP/1.1\r\ncontent-length: 9\r\n\r\nabc"] {
        assert!(matches!(read(bytes, 1000).await.0, Err(ReadError::Gone)));
    }
}

#[tokio::test]
async fn close_is_heard() {
    assert!(!read_ok(b"GET / HTTP/1.1\r\nConnection: Close\r\n\r\n").await.keep_alive);
    assert!(!read_ok(b"GET / HTTP/1.1\r\nConnection: TE, close\r\n\r\n").await.keep_alive);
    let old = read_ok(b"GET / HTTP/1.0\r\n\r\n").await;
    assert_eq!((old.keep_alive, old.takes_chunks), (false, false));
}

proptest! {
    #[test]
    fn no_bytes_make_the_reader_panic(bytes in proptest::collection::vec(any::<u8>(), 0..300), piece in 1_usize..50) {
        let runtime = tokio::runtime::Builder::new_current_thread().build().unwrap();
        let mut request = b"POST / HTTP/1.1\r\ntransfer-encoding: chunked\r\n\r\n".to_vec();
        let _ = runtime.block_on(read(&bytes, piece));
        request.extend_from_slice(&bytes);
        let _ = runtime.block_on(read(&request, piece));
    }
}
