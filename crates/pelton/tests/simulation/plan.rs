//! From a seed to a whole session: how it is set up, what the model will say and how that goes wrong, and what
//! happens to each submission.

use std::time::Duration;

use pelton::hooks::OnFailure;
use pelton::transcript::Durability;
use pelton_testkit::{
    Chunk, Fault, Fragments, LineEnd, Pace, Part, Script, Step, When, comment, error, event, pause, ping,
    raw_block, redacted_thinking, text, thinking, tool, tool_with_json,
};
use serde_json::{Value, json};

use crate::dice::Dice;
use crate::disk::Weather;

/// What the model says when it has nothing else to say.
pub const FINE: &str = "Fine.";

#[derive(Debug, Clone)]
pub struct Plan {
    pub seed: u64,
    pub setup: Setup,
    pub steps: Vec<Step>,
    pub submissions: Vec<Submission>,
}

/// How the session is set up.
#[derive(Debug, Clone)]
pub struct Setup {
    pub durability: Durability,
    pub weather: Weather,
    pub hooks: Option<OnFailure>,
    pub fallback_models: Vec<String>,
    pub budget_usd: Option<f64>,
    pub turns_max: Option<u32>,
    pub output_tokens_wanted: Option<u64>,
    pub max_output_tokens: Option<u32>,
    pub window_tokens: Option<u64>,
    pub running_max: usize,
    pub schema: bool,
    pub non_streaming_fallback: bool,
}

/// What happens to a submission.
#[derive(Debug, Clone, Copy)]
pub struct Submission {
    pub fate: Fate,
    /// Its reader rests this long after every so many events.
    pub rests: Option<(usize, Duration)>,
}

#[derive(Debug, Clone, Copy)]
pub enum Fate {
    Ends,
    Interrupted(At),
    LetGo(At),
    /// The process dies, or the whole machine; a new one goes on from what is on the disk.
    Dies(At, Death),
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Death {
    OfProcess,
    OfMachine,
}

/// When it happens.
#[derive(Debug, Clone, Copy)]
pub enum At {
    /// After the submission was polled so often: between any two steps of it.
    Polls(usize),
    /// After so long, by the stopped clock.
    Time(Duration),
}

impl Plan {
    pub fn of(seed: u64) -> Self {
        let setup = setup(&mut Dice::of(seed, "setup"));
        let mut dice = Dice::of(seed, "model");
        let count = dice.between(2, 14);
        let steps = (0..count).map(|n| step(&mut dice, n, setup.schema)).collect();
        let mut dice = Dice::of(seed, "user");
        let submissions = (0..dice.between(1, 5)).map(|_| submission(&mut dice)).collect();
        Self { seed, setup, steps, submissions }
    }

    /// The whole script: the steps, and then only good answers.
    pub fn script(&self) -> Script {
        let structured = tool("StructuredOutput", json!({"answer": FINE}));
        self.steps
            .iter()
            .cloned()
            .fold(Script::new().seed(self.seed), Script::step)
            .step(Step::reply([structured]).when(When::any().has_tool("StructuredOutput")).always())
            .step(Step::reply([thinking("Hm."), text(FINE)]).always())
    }
}

fn setup(dice: &mut Dice) -> Setup {
    let rarely = |dice: &mut Dice, n: usize| if dice.one_in(4) { n } else { 0 };
    let models = ["claude-opus-5-5", "claude-haiku-5-5", "claude-sonnet-5"].map(str::to_owned);
    Setup {
        durability: if dice.one_in(4) { Durability::Fast } else { Durability::Synced },
        weather: Weather {
            full: rarely(dice, 20),
            short: rarely(dice, 5),
            sync_fails: rarely(dice, 6),
            sync_ms_max: dice.pick(&[0, 4, 4, 4]),
        },
        hooks: dice.one_in(3).then(|| dice.pick(&[OnFailure::Usual, OnFailure::Usual, OnFailure::Blocks])),
        fallback_models: models[..dice.pick(&[0, 0, 1, 3])].to_vec(),
        budget_usd: dice.one_in(5).then(|| dice.pick(&[0.0001, 0.002, 0.02, 0.1, 0.5])),
        turns_max: dice.one_in(6).then(|| dice.between(1, 4) as u32),
        output_tokens_wanted: dice.one_in(8).then(|| dice.pick(&[50, 500, 5_000])),
        max_output_tokens: dice.one_in(4).then(|| dice.pick(&[1_024, 4_096, 16_000, 64_000])),
        window_tokens: dice.one_in(3).then(|| dice.pick(&[4_500, 6_000, 8_000, 20_000])),
        running_max: dice.pick(&[1, 2, 10]),
        schema: dice.one_in(6),
        non_streaming_fallback: !dice.one_in(5),
    }
}

fn submission(dice: &mut Dice) -> Submission {
    let at = if dice.one_in(2) {
        let most = dice.pick(&[6, 40, 200]);
        At::Polls(dice.below(most))
    } else {
        At::Time(Duration::from_millis(dice.wait_ms()))
    };
    let death = if dice.one_in(2) { Death::OfProcess } else { Death::OfMachine };
    let fate = match dice.below(6) {
        0 | 1 => Fate::Ends,
        2 => Fate::LetGo(at),
        3 => Fate::Dies(at, death),
        _ => Fate::Interrupted(at),
    };
    let rests = dice.one_in(5).then(|| (dice.between(1, 300), Duration::from_millis(dice.wait_ms())));
    Submission { fate, rests }
}

fn step(dice: &mut Dice, n: usize, schema: bool) -> Step {
    if dice.one_in(4) {
        return refusal(dice);
    }
    let count = dice.pick(&[0, 1, 1, 2, 3, 5, 8]);
    let mut parts: Vec<Part> = (0..count).map(|at| part(dice, &format!("{n}.{at}"))).collect();
    if schema && dice.one_in(2) {
        let output = dice.pick(&[json!({"answer": "given"}), json!({"wrong": true}), json!({})]);
        parts.push(tool("StructuredOutput", output));
    }
    // A pause is one of a tool that the server runs itself, most often.
    let pauses = dice.one_in(12);
    if pauses && !dice.one_in(3) {
        let id = format!("srvtoolu_{n}");
        parts
            .push(raw_block(json!({"type": "server_tool_use", "id": id, "name": "web_search", "input": {}})));
    }
    if dice.one_in(8) {
        let kinds = ["overloaded_error", "api_error", "rate_limit_error", "invalid_request_error"];
        let at = dice.below(parts.len() + 1);
        parts.truncate(at);
        parts.push(error(dice.pick(&kinds), ""));
    }
    let mut step = Step::reply(parts);
    if pauses {
        step = step.stop("pause_turn");
    } else if dice.one_in(4) {
        let reasons = [
            "max_tokens",
            "max_tokens",
            "refusal",
            "end_turn",
            "tool_use",
            "moonrise",
            "model_context_window_exceeded",
        ];
        step = step.stop(dice.pick(&reasons));
    }
    if dice.one_in(4) {
        step = step.usage("output_tokens", dice.pick(&[1, 900, 20_000]));
    }
    if dice.one_in(8) {
        step = step.refuse_non_streaming();
    }
    if dice.one_in(3) {
        step = step.fault(fault(dice));
    }
    travels(dice, step)
}

/// How an answer gets here when nothing is wrong with it.
fn travels(dice: &mut Dice, mut step: Step) -> Step {
    if dice.one_in(2) {
        let chunks = [Chunk::Event, Chunk::Bytes(1), Chunk::Bytes(100), Chunk::Random];
        step = step.pace(Pace {
            chunk: if dice.one_in(3) { dice.pick(&chunks) } else { Chunk::Event },
            delay: Duration::from_millis(dice.pick(&[0, 1, 20, 500])),
            jitter: Duration::from_millis(dice.pick(&[0, 0, 30])),
        });
    }
    if dice.one_in(5) {
        step = step.line_end(dice.pick(&[LineEnd::CrLf, LineEnd::Cr, LineEnd::Mixed]));
    }
    if dice.one_in(8) {
        step = step.bom();
    }
    if dice.one_in(8) {
        step = step.gzip();
    }
    step
}

fn part(dice: &mut Dice, name: &str) -> Part {
    let words = format!("Some words about T{name}.");
    let fragments = if dice.one_in(3) { Fragments::Random } else { Fragments::Natural };
    match dice.below(16) {
        0..=2 => thinking(format!("Thinking of {name}.")).fragments(fragments),
        3 => redacted_thinking(name),
        4..=6 => text(words).fragments(fragments),
        7 => text(words).fragments(3).after(dice.between(0, 3), pause(Duration::from_millis(dice.wait_ms()))),
        8..=10 => tool("Look", deed(dice, name)).fragments(fragments),
        11..=13 => tool("Change", deed(dice, name)).fragments(fragments),
        14 => dice.pick(&[
            tool("Nowhere", json!({})),
            tool("Look", json!({"nothing": "fits"})),
            tool_with_json("Change", r#"{"name": "cut o"#),
            text(" \n"),
        ]),
        _ => dice.pick(&[
            raw_block(json!({"type": "hologram", "of": name})),
            ping(),
            comment("on we go"),
            event("moonrise", json!({"type": "moonrise"})),
            pause(Duration::from_secs(20)),
        ]),
    }
}

fn deed(dice: &mut Dice, name: &str) -> Value {
    let does = ["answer", "answer", "answer", "answer", "fail", "panic", "hang", "wait", "blank", "move"];
    // Rare, because every request after it is huge too.
    let does = if dice.one_in(40) { "huge" } else { dice.pick(&does) };
    json!({"name": name, "ms": dice.wait_ms(), "does": does})
}

fn fault(dice: &mut Dice) -> Fault {
    let events = dice.pick(&[0, 1, 3, 6, 10, 20, 40]);
    let bytes = dice.below(6000);
    match dice.below(12) {
        0 | 1 => Fault::cut_after_events(events),
        2 => Fault::cut_after_bytes(bytes),
        3 | 4 => Fault::reset_after_events(events),
        5 => Fault::reset_after_bytes(bytes),
        6 => Fault::stall_after_events(events),
        7 => Fault::stall_after_bytes(bytes),
        8 => Fault::end_after_events(events),
        9 => Fault::close_before_headers(),
        10 => Fault::empty_stream(),
        _ => Fault::MalformedJsonAtEvent(events + 1),
    }
}

/// An answer that is none.
fn refusal(dice: &mut Dice) -> Step {
    let times = dice.pick(&[1, 1, 2, 3, 4, 12]);
    match dice.below(14) {
        0..=2 => Step::status(529).times(times),
        3 => Step::status(429).times(times).header("retry-after", dice.pick(&["0", "3", "600", "86400"])),
        4 => Step::status(429).header("retry-after", "Thu, 01 Jan 2026 00:01:00 GMT"),
        5 | 6 => Step::status(dice.pick(&[500, 502, 503, 504, 408, 409])).times(times),
        7 => {
            let over = dice.pick(&["201000", "900000"]);
            Step::status(400).message(format!("prompt is too long: {over} tokens > 200000 maximum"))
        }
        8 => Step::status(413),
        9 => Step::status(400).message(
            "input length and `max_tokens` exceed context limit: 190000 + 20000 > 200000, decrease input length \
             or `max_tokens` and try again",
        ),
        10 => Step::status(400).message("tools.0.custom.input_schema: JSON schema is invalid"),
        11 => Step::status(400).message(
            "messages.1.content.0: `thinking` or `redacted_thinking` blocks in the latest assistant message cannot \
             be modified",
        ),
        12 => Step::status(dice.pick(&[401, 403, 404])),
        _ => Step::status(400),
    }
}
