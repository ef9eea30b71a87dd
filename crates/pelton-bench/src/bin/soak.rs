//! One long session: many turns, much output of commands, summaries, sub-agents. What the process weighs is noted all along:
//! it must stay small, and flat.
//!
//! ```text
//! soak [TURNS]     10,000 unless said; each prints 205 KB, every fiftieth is an agent
//! ```

use std::fs;
use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Instant;

use bytes::Bytes;
use futures::future::BoxFuture;
use futures::{FutureExt, StreamExt, stream};
use memchr::memmem;
use pelton::event::{ContextEvent, Event};
use pelton::transcript::Durability;
use pelton::{Engine, Options, Prompt, Sessions};
use pelton_bench::events;
use pelton_model::{Auth, Endpoint, Post, Response, Secret, Transport, TransportError};
use serde_json::json;

type Failed = Box<dyn std::error::Error>;

const TURNS: usize = 10_000;
const OUTPUT_BYTES: usize = 205_000;
/// Every so many turns an agent is sent out.
const AGENT_EVERY: usize = 50;
/// Turns of one submission.
const TURNS_TOGETHER: usize = 100;
/// Every so many submissions the conversation is summed up by hand: folds alone would keep it small enough.
const SUMMARY_EVERY: usize = 2;
/// The window is small, so that it fills often.
const WINDOW_TOKENS: u64 = 100_000;
const BYTES_PER_TOKEN: u64 = 4;
/// The least number of summaries for ten thousand turns.
const SUMMARIES_MIN: usize = 50;
const RESIDENT_MB_MAX: f64 = 150.0;
/// How much more the last tenth may weigh than the second.
const GROWTH_MAX: f64 = 1.2;
/// Requests without tools that do not come from the session are told by this model's name.
const AGENTS_MODEL: &str = "haiku";

fn main() -> Result<(), Failed> {
    let words: Vec<String> = std::env::args().skip(1).collect();
    let turns = match &words[..] {
        [] => TURNS,
        [turns] => turns.parse().map_err(|_| "usage: soak [TURNS]")?,
        _ => return Err("usage: soak [TURNS]".into()),
    };
    let dir = tempfile::tempdir()?;
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build()?;
    runtime.block_on(soak(dir.path(), turns))
}

async fn soak(dir: &Path, turns: usize) -> Result<(), Failed> {
    let model = Arc::new(Model::default());
    let mut options =
        Options::new(dir, Endpoint::new("http://127.0.0.1:9", Auth::ApiKey(Secret::new("any"))));
    options.transport = Arc::clone(&model) as Arc<dyn Transport>;
    options.sessions = Some(Sessions { config_dir: dir.join("config"), durability: Durability::default() });
    options.window_tokens = Some(WINDOW_TOKENS);
    for tool in ["Bash", "Agent"] {
        options.rules.allow.push(tool.parse()?);
    }
    let mut engine = Engine::new(options)?;
    let began = Instant::now();
    let (mut summaries, mut agents, mut weights) = (0, 0, Vec::new());
    for submission in 1.. {
        if model.turns.load(Ordering::Relaxed) >= turns {
            break;
        }
        let is_summary = submission % SUMMARY_EVERY == 0;
        let words = if is_summary { "/compact" } else { "Go on." };
        let mut events = engine.submit(Prompt::text(words)?);
        while let Some(event) = events.next().await {
            match event {
                Event::Context(ContextEvent::Boundary(boundary)) if boundary.summary.is_some() => {
                    summaries += 1;
                }
                Event::ToolStarted(started) if &*started.tool == "Agent" => agents += 1,
                Event::Result(outcome) if outcome.is_error => return Err(outcome.text.clone().into()),
                _ => {}
            }
        }
        weights.push(resident_mb()?);
        if is_summary {
            continue;
        }
        let done = model.turns.load(Ordering::Relaxed);
        if done % (10 * TURNS_TOGETHER) < TURNS_TOGETHER {
            let seconds = began.elapsed().as_secs();
            let weight = weights.last().copied().unwrap_or_default();
            println!("{done} turns, {summaries} summaries, {agents} agents, {weight:.1} MB, {seconds} s");
        }
    }
    let tenth = weights.len().div_ceil(10);
    let most = weights.iter().copied().fold(0.0, f64::max);
    let mean = |some: &[f64]| some.iter().sum::<f64>() / some.len().max(1) as f64;
    let early = mean(&weights[tenth.min(weights.len() - 1)..(2 * tenth).clamp(1, weights.len())]);
    let late = mean(&weights[weights.len() - tenth..]);
    let asked = model.turns.load(Ordering::Relaxed);
    let output_mb = (asked - agents) as f64 * OUTPUT_BYTES as f64 / 1e6;
    println!(
        "{asked} turns, {output_mb:.0} MB of output, {summaries} summaries, {agents} agents, {} other requests: {most:.1} MB at the most, {early:.1} early, {late:.1} late",
        model.others.load(Ordering::Relaxed)
    );
    if most > RESIDENT_MB_MAX {
        return Err(format!("more than {RESIDENT_MB_MAX} MB").into());
    }
    if late > early * GROWTH_MAX {
        return Err("it grows".into());
    }
    if summaries < asked * SUMMARIES_MIN / TURNS {
        return Err("too few summaries: it was not what it is meant to be".into());
    }
    Ok(())
}

fn resident_mb() -> Result<f64, Failed> {
    let status = fs::read_to_string("/proc/self/status")?;
    let line = status.lines().find_map(|line| line.strip_prefix("VmRSS:")).ok_or("no VmRSS")?;
    Ok(line.trim().trim_end_matches(" kB").parse::<f64>()? / 1e3)
}

/// Calls for a command, or now and then for an agent; whatever else is asked is answered in a word.
#[derive(Default)]
struct Model {
    turns: AtomicUsize,
    others: AtomicUsize,
}

impl Model {
    fn answer(&self, body: &[u8]) -> String {
        let head = &body[..body.len().min(200)];
        let is_agents = memmem::find(head, AGENTS_MODEL.as_bytes()).is_some();
        let is_summary = memmem::find(&body[body.len().saturating_sub(8_000)..], b"call no tools").is_some();
        let opening = events::opening_of(body.len() as u64 / BYTES_PER_TOKEN);
        if is_agents || is_summary || memmem::find(body, br#""name":"Bash""#).is_none() {
            self.others.fetch_add(1, Ordering::Relaxed);
            return opening + &events::text_block("All is as it was.") + &events::closing("end_turn");
        }
        let turn = self.turns.fetch_add(1, Ordering::Relaxed);
        let call =
            |tool: &str, input| events::call_block(0, turn, tool, &input) + &events::closing("tool_use");
        opening
            + &match turn % TURNS_TOGETHER {
                last if last == TURNS_TOGETHER - 1 => {
                    events::text_block("Done for now.") + &events::closing("end_turn")
                }
                some if some % AGENT_EVERY == 0 => {
                    let prompt = format!("Look at part {turn}.");
                    call(
                        "Agent",
                        json!({"description": "look", "prompt": prompt, "subagent_type": "general-purpose", "model": AGENTS_MODEL}),
                    )
                }
                _ => {
                    let command =
                        format!("echo {turn}; head -c {OUTPUT_BYTES} /dev/zero | tr '\\0' x | fold -w 99");
                    call("Bash", json!({"command": command}))
                }
            }
    }
}

impl Transport for Model {
    fn post(&self, post: Post) -> BoxFuture<'static, Result<Response, TransportError>> {
        let answer = Bytes::from(self.answer(&post.body.to_vec()));
        let mut headers = http::HeaderMap::new();
        headers.insert("content-type", http::HeaderValue::from_static("text/event-stream"));
        async move { Ok(Response { status: 200, headers, body: stream::iter([Ok(answer)]).boxed() }) }.boxed()
    }
}
