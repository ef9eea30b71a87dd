//! A client that sees everything: status, headers, each chunk, how the connection ended.
#![allow(dead_code, reason = "each test program uses its own part")]

use pelton_testkit::ScriptedModel;
use serde_json::{Value, json};
use std::io;
use std::time::Duration;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpStream;

pub const MODEL: &str = "claude-sonnet-5-5";

/// A legal request for a stream.
pub fn ask(text: &str) -> Value {
    ask_with(&json!([{"role": "user", "content": text}]))
}

pub fn ask_with(messages: &Value) -> Value {
    json!({"model": MODEL, "max_tokens": 1000, "stream": true, "messages": messages})
}

/// The answer to one request, as far as it came.
#[derive(Debug, Clone)]
pub struct Answer {
    pub status: u16,
    pub headers: Vec<(String, String)>,
    pub body: Vec<u8>,
    /// The chunks of a chunked body.
    pub chunks: Vec<Vec<u8>>,
    /// Whether HTTP saw the end of the body.
    pub complete: bool,
    /// How reading ended, when not with the end of the connection.
    pub broke: Option<io::ErrorKind>,
    /// Whether a single byte came at all.
    pub answered: bool,
}

impl Answer {
    pub fn header(&self, name: &str) -> Option<&str> {
        self.headers.iter().find(|(key, _)| key == name).map(|(_, value)| value.as_str())
    }

    pub fn json(&self) -> Value {
        serde_json::from_slice(&self.body).unwrap()
    }

    pub fn events(&self) -> Vec<(String, String)> {
        decode(&self.body)
    }

    pub fn names(&self) -> Vec<String> {
        self.events().into_iter().map(|(name, _)| name).collect()
    }

    /// The data of all events, parsed.
    pub fn data(&self) -> Vec<Value> {
        self.events().into_iter().map(|(_, data)| serde_json::from_str(&data).unwrap()).collect()
    }

    /// All deltas of a type, their texts joined.
    pub fn joined(&self, field: &str) -> String {
        self.data().iter().filter_map(|data| data["delta"][field].as_str()).collect()
    }

    /// The message put together from the stream.
    pub fn blocks(&self) -> Vec<Value> {
        let mut blocks: Vec<Value> = Vec::new();
        let mut inputs: Vec<String> = Vec::new();
        for data in self.data() {
            let index = data["index"].as_u64().unwrap_or_default() as usize;
            let delta = &data["delta"];
            match data["type"].as_str().unwrap() {
                "content_block_start" => {
                    assert_eq!(index, blocks.len());
                    blocks.push(data["content_block"].clone());
                    inputs.push(String::new());
                }
                "content_block_delta" => match delta["type"].as_str().unwrap() {
                    "text_delta" => append(&mut blocks[index]["text"], &delta["text"]),
                    "thinking_delta" => append(&mut blocks[index]["thinking"], &delta["thinking"]),
                    "signature_delta" => blocks[index]["signature"] = delta["signature"].clone(),
                    "input_json_delta" => inputs[index].push_str(delta["partial_json"].as_str().unwrap()),
                    other => panic!("delta {other}"),
                },
                "content_block_stop" if !inputs[index].is_empty() => {
                    blocks[index]["input"] = serde_json::from_str(&inputs[index]).unwrap();
                }
                _ => {}
            }
        }
        blocks
    }
}

fn append(target: &mut Value, piece: &Value) {
    *target = json!(format!("{}{}", target.as_str().unwrap(), piece.as_str().unwrap()));
}

/// Posts a request for a reply and reads to the end.
pub async fn post(model: &ScriptedModel, body: &Value) -> Answer {
    post_to(&model.base_url(), "/v1/messages", body).await
}

pub async fn post_to(base_url: &str, path: &str, body: &Value) -> Answer {
    let headers = "x-api-key: sk-test\r\nanthropic-version: 2023-06-01\r\n";
    send(base_url, &request("POST", path, headers, body.to_string().as_bytes())).await
}

pub async fn get(base_url: &str, path: &str) -> Answer {
    let headers = "x-api-key: sk-test\r\nanthropic-version: 2023-06-01\r\n";
    send(base_url, &request("GET", path, headers, b"")).await
}

pub fn request(method: &str, path: &str, headers: &str, body: &[u8]) -> Vec<u8> {
    let mut bytes = format!(
        "{method} {path} HTTP/1.1\r\nhost: x\r\nconnection: close\r\n{headers}content-length: {}\r\n\r\n",
        body.len()
    )
    .into_bytes();
    bytes.extend_from_slice(body);
    bytes
}

/// Sends bytes and reads what comes until the connection ends, for at most ten seconds.
pub async fn send(base_url: &str, bytes: &[u8]) -> Answer {
    let mut stream = connect(base_url).await;
    stream.write_all(bytes).await.unwrap();
    let mut raw = Vec::new();
    let mut broke = None;
    let reading = async {
        let mut scratch = [0; 4096];
        loop {
            match stream.read(&mut scratch).await {
                Ok(0) => break,
                Ok(count) => raw.extend_from_slice(&scratch[..count]),
                Err(error) => {
                    broke = Some(error.kind());
                    break;
                }
            }
        }
    };
    tokio::time::timeout(Duration::from_secs(10), reading).await.expect("the connection never ended");
    parse(&raw, broke)
}

/// Sends bytes and reads until nothing has come for a while, then hangs up.
pub async fn send_until_silent(base_url: &str, bytes: &[u8], silence: Duration) -> Answer {
    let mut stream = connect(base_url).await;
    stream.write_all(bytes).await.unwrap();
    let mut raw = Vec::new();
    let mut scratch = [0; 4096];
    while let Ok(read) = tokio::time::timeout(silence, stream.read(&mut scratch)).await {
        match read.unwrap() {
            0 => panic!("the connection ended instead of stalling"),
            count => raw.extend_from_slice(&scratch[..count]),
        }
    }
    parse(&raw, None)
}

pub async fn connect(base_url: &str) -> TcpStream {
    TcpStream::connect(base_url.strip_prefix("http://").unwrap()).await.unwrap()
}

/// Takes apart what came.
pub fn parse(raw: &[u8], broke: Option<io::ErrorKind>) -> Answer {
    let mut answer = Answer {
        status: 0,
        headers: Vec::new(),
        body: Vec::new(),
        chunks: Vec::new(),
        complete: false,
        broke,
        answered: !raw.is_empty(),
    };
    let Some(end) = raw.windows(4).position(|window| window == b"\r\n\r\n") else { return answer };
    let head = std::str::from_utf8(&raw[..end]).unwrap();
    let mut lines = head.split("\r\n");
    answer.status = lines.next().unwrap().split(' ').nth(1).unwrap().parse().unwrap();
    answer.headers =
        lines.map(|line| line.split_once(": ").map(|(a, b)| (a.to_owned(), b.to_owned())).unwrap()).collect();
    let body = &raw[end + 4..];
    if answer.header("transfer-encoding") == Some("chunked") {
        let mut rest = body;
        while let Some(at) = rest.windows(2).position(|window| window == b"\r\n") {
            let size = usize::from_str_radix(std::str::from_utf8(&rest[..at]).unwrap(), 16).unwrap();
            rest = &rest[at + 2..];
            if size == 0 {
                answer.complete = rest == b"\r\n";
                break;
            }
            answer.chunks.push(rest[..size.min(rest.len())].to_vec());
            if rest.len() < size + 2 {
                break;
            }
            rest = &rest[size + 2..];
        }
        answer.body = answer.chunks.concat();
    } else {
        answer.body = body.to_vec();
        let length = answer.header("content-length").map(|length| length.parse::<usize>().unwrap());
        answer.complete = length.is_none_or(|length| body.len() == length);
    }
    answer
}

/// Reads an event stream by its definition: names and data of finished events.
pub fn decode(stream: &[u8]) -> Vec<(String, String)> {
    let readable = std::str::from_utf8(stream).map_or_else(|error| error.valid_up_to(), str::len);
    let text = std::str::from_utf8(&stream[..readable]).unwrap();
    let text = text.strip_prefix('\u{feff}').unwrap_or(text).replace("\r\n", "\n").replace('\r', "\n");
    let (mut events, mut name, mut data) = (Vec::new(), String::new(), None);
    for line in text.split_inclusive('\n') {
        let Some(line) = line.strip_suffix('\n') else { break };
        if let Some(value) = line.strip_prefix("event: ") {
            name = value.to_owned();
        } else if let Some(value) = line.strip_prefix("data: ") {
            data = Some(value.to_owned());
        } else if line.is_empty()
            && let Some(data) = data.take()
        {
            events.push((std::mem::take(&mut name), data));
        }
    }
    events
}
