//! The limit: a client that sends the bytes, reads the stream, does what a call says and sends again. No agent is in it: no
//! settings, no permissions, no record, no history beyond the bytes themselves.
//!
//!     bare ADDRESS PADDING_BYTES [--print] [--sessions N]
//!
//! `PADDING_BYTES` stand for a system prompt and tools. With `--print` every event is written to standard output as it comes.

use std::fmt::Write as _;
use std::fs;
use std::io::{self, BufRead, BufReader, Read, Write};
use std::net::TcpStream;
use std::process::Command;
use std::time::Duration;

use memchr::memmem;
use serde_json::{Value, json};

type Failed = Box<dyn std::error::Error>;

fn main() -> Result<(), Failed> {
    let words: Vec<String> = std::env::args().skip(1).collect();
    let [address, padding, flags @ ..] = &words[..] else {
        return Err("usage: bare ADDRESS PADDING_BYTES [--print] [--sessions N]".into());
    };
    let said = Said::new(padding.parse()?);
    match flags {
        [] => converse(address, said, false),
        [print] if print == "--print" => converse(address, said, true),
        [sessions, many] if sessions == "--sessions" => crowd(address, &said, many.parse()?),
        _ => Err("unknown words behind the padding".into()),
    }
}

/// The body of the next request, kept open at its end.
#[derive(Clone)]
struct Said {
    body: String,
}

const BODY_END: &str = "]}";

impl Said {
    fn new(padding: usize) -> Self {
        let system = "x".repeat(padding);
        let body = format!(
            r#"{{"model":"claude-sonnet-5-5","max_tokens":1000,"stream":true,"system":"{system}","messages":[{{"role":"user","content":"Go."}}"#
        );
        Self { body }
    }

    fn add(&mut self, call: &Call, result: &str) {
        let (input, result) = (&call.input, json!(result));
        // Writing to a string does not fail.
        let _ = write!(
            self.body,
            r#",{{"role":"assistant","content":[{{"type":"tool_use","id":"{id}","name":"{name}","input":{input}}}]}},{{"role":"user","content":[{{"type":"tool_result","tool_use_id":"{id}","content":{result}}}]}}"#,
            id = call.id,
            name = call.name,
        );
    }

    fn head(&self, address: &str) -> String {
        let length = self.body.len() + BODY_END.len();
        format!(
            "POST /v1/messages HTTP/1.1\r\nhost: {address}\r\nx-api-key: any\r\ncontent-type: application/json\r\ncontent-length: {length}\r\n\r\n"
        )
    }
}

#[derive(Default)]
struct Call {
    id: String,
    name: String,
    input: String,
}

impl Call {
    /// Does it, and tells what came of it.
    fn done(&self) -> String {
        let input: Value = serde_json::from_str(&self.input).unwrap_or_default();
        let text = if let Some(path) = input["file_path"].as_str() {
            fs::read(path).unwrap_or_default()
        } else if let Some(command) = input["command"].as_str() {
            Command::new("bash").args(["-c", command]).output().map(|ran| ran.stdout).unwrap_or_default()
        } else {
            Vec::new()
        };
        let shown = &text[..text.len().min(RESULT_BYTES_MAX)];
        String::from_utf8_lossy(shown).into_owned()
    }
}

/// What is kept of a result, as an agent would.
const RESULT_BYTES_MAX: usize = 30_000;

/// What of a stream matters.
#[derive(Default)]
struct Answer {
    open: Option<Call>,
    done: Vec<(Call, String)>,
}

impl Answer {
    fn take(&mut self, data: &[u8]) {
        if memmem::find(data, br#""type":"content_block_delta""#).is_some() {
            if let Some(call) = &mut self.open {
                let event: Value = serde_json::from_slice(data).unwrap_or_default();
                call.input += event["delta"]["partial_json"].as_str().unwrap_or_default();
            }
        } else if memmem::find(data, br#""type":"content_block_start""#).is_some() {
            let event: Value = serde_json::from_slice(data).unwrap_or_default();
            let block = &event["content_block"];
            if block["type"] == "tool_use" {
                let word = |name: &str| block[name].as_str().unwrap_or_default().to_owned();
                self.open = Some(Call { id: word("id"), name: word("name"), input: String::new() });
            }
        } else if memmem::find(data, br#""type":"content_block_stop""#).is_some()
            && let Some(call) = self.open.take()
        {
            let result = call.done();
            self.done.push((call, result));
        }
    }
}

fn converse(address: &str, mut said: Said, prints: bool) -> Result<(), Failed> {
    let stream = TcpStream::connect(address)?;
    stream.set_nodelay(true)?;
    let mut reader = BufReader::with_capacity(64 * 1024, stream.try_clone()?);
    let mut writer = stream;
    let mut out = io::stdout().lock();
    let mut held = Vec::new();
    loop {
        writer.write_all(said.head(address).as_bytes())?;
        writer.write_all(said.body.as_bytes())?;
        writer.write_all(BODY_END.as_bytes())?;
        let mut line = Vec::new();
        while line != b"\r\n" {
            line.clear();
            if reader.read_until(b'\n', &mut line)? == 0 {
                return Err("the model hung up".into());
            }
        }
        let mut answer = Answer::default();
        loop {
            line.clear();
            reader.read_until(b'\n', &mut line)?;
            let size = usize::from_str_radix(std::str::from_utf8(&line)?.trim(), 16)?;
            let from = held.len();
            held.resize(from + size + 2, 0);
            reader.read_exact(&mut held[from..])?;
            held.truncate(from + size);
            if size == 0 {
                break;
            }
            let mut place = 0;
            while let Some(end) = memchr::memchr(b'\n', &held[place..]) {
                if let Some(data) = held[place..place + end].strip_prefix(b"data: ") {
                    answer.take(data);
                    if prints {
                        out.write_all(br#"{"type":"stream_event","event":"#)?;
                        out.write_all(data)?;
                        out.write_all(b"}\n")?;
                    }
                }
                place += end + 1;
            }
            held.drain(..place);
            out.flush()?;
        }
        if answer.done.is_empty() {
            return Ok(());
        }
        for (call, result) in &answer.done {
            said.add(call, result);
        }
    }
}

/// Many of the same at once, each with a connection of its own.
fn crowd(address: &str, said: &Said, sessions: usize) -> Result<(), Failed> {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build()?;
    runtime.block_on(async {
        let mut all = tokio::task::JoinSet::new();
        for _ in 0..sessions {
            all.spawn(member(address.to_owned(), said.clone()));
        }
        let mut failed = 0;
        while let Some(ended) = all.join_next().await {
            failed += usize::from(!matches!(ended, Ok(Ok(()))));
        }
        println!("{}", json!({"failed": failed, "rested": "all are done"}));
        if failed == 0 { Ok(()) } else { Err("some sessions failed".into()) }
    })
}

async fn member(address: String, mut said: Said) -> io::Result<()> {
    use tokio::io::{AsyncBufReadExt, AsyncReadExt, AsyncWriteExt};
    // Ten thousand at the same moment are more than a listener's queue holds.
    let mut tries = 0;
    let stream = loop {
        match tokio::net::TcpStream::connect(&address).await {
            Ok(stream) => break stream,
            Err(error) if tries == 5 => return Err(error),
            Err(_) => tries += 1,
        }
        tokio::time::sleep(Duration::from_millis(100)).await;
    };
    let mut stream = tokio::io::BufReader::new(stream);
    loop {
        let request = said.head(&address) + &said.body + BODY_END;
        stream.write_all(request.as_bytes()).await?;
        let mut line = Vec::new();
        while line != b"\r\n" {
            line.clear();
            if stream.read_until(b'\n', &mut line).await? == 0 {
                return Err(io::ErrorKind::UnexpectedEof.into());
            }
        }
        let mut answer = Answer::default();
        loop {
            line.clear();
            stream.read_until(b'\n', &mut line).await?;
            let size = usize::from_str_radix(String::from_utf8_lossy(&line).trim(), 16).unwrap_or_default();
            let mut chunk = vec![0; size + 2];
            stream.read_exact(&mut chunk).await?;
            if size == 0 {
                break;
            }
            chunk[..size]
                .split(|byte| *byte == b'\n')
                .filter_map(|line| line.strip_prefix(b"data: "))
                .for_each(|data| answer.take(data));
        }
        if answer.done.is_empty() {
            return Ok(());
        }
        for (call, result) in &answer.done {
            said.add(call, result);
        }
    }
}
