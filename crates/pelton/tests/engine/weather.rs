//! All of it at random: answers of every kind, broken in every way, stopped at any moment, by an interrupt, by
//! letting go, or by the death of the process. Whatever happened, the next request is legal and nothing has run
//! twice. A seed that fails is named, and says everything there is to know.

use std::collections::HashSet;

use futures::StreamExt;
use pelton::hooks::Source;
use pelton::transcript::Durability;
use pelton::{Engine, Event, Sessions};
use pelton_testkit::{
    Fault, Part, Script, Step, error, event, ping, raw_block, redacted_thinking, text, thinking, tool,
    tool_with_json,
};
use serde_json::{Value, json};

use crate::probe::Notes;
use crate::stage::{Stage, lines, prompt, rest, resume_from, run};

/// More than enough for [`STOPS`].
const SEEDS_MAX: u64 = 400;
/// At least so many submissions are stopped somewhere in the middle: after their first event, before their result.
const STOPS: usize = 500;
const ANSWERS: usize = 8;
const STOP_REASONS: [&str; 8] = [
    "max_tokens",
    "end_turn",
    "tool_use",
    "refusal",
    "moonrise",
    "pause_turn",
    "pause_turn",
    "model_context_window_exceeded",
];
const SUBMISSIONS: usize = 5;

/// Seeded chance.
struct Dice(u64);

impl Dice {
    fn next(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut mixed = self.0;
        mixed = (mixed ^ (mixed >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        mixed ^ (mixed >> 31)
    }

    fn below(&mut self, end: usize) -> usize {
        usize::try_from(self.next() % end as u64).unwrap()
    }

    fn one_in(&mut self, n: usize) -> bool {
        self.below(n) == 0
    }
}

/// What happens to a submission.
#[derive(Debug, Clone, Copy)]
enum Fate {
    Ends,
    Interrupted,
    LetGo,
    Killed,
}

fn fate(dice: &mut Dice) -> Fate {
    [Fate::Ends, Fate::Interrupted, Fate::LetGo, Fate::Killed][dice.below(4)]
}

fn part(dice: &mut Dice, name: &str) -> Part {
    let ms = dice.below(4);
    match dice.below(12) {
        0 | 1 => thinking(format!("Thinking of {name}.")),
        2 => redacted_thinking(name),
        3 | 4 => text(format!("A few words about {name}.")),
        5 | 6 => tool("Look", json!({"name": name, "ms": ms})),
        7 | 8 => tool("Change", json!({"name": name, "ms": ms})),
        9 => [tool("Look", json!({"name": name, "does": "panic"})), tool("Nowhere", json!({}))]
            [dice.below(2)]
        .clone(),
        10 => tool_with_json("Look", [r#"{"name": "cut o"#, ""][dice.below(2)]),
        _ => [
            raw_block(json!({"type": "hologram", "of": name})),
            ping(),
            event("moonrise", json!({"type": "moonrise"})),
        ][dice.below(3)]
        .clone(),
    }
}

fn answer(dice: &mut Dice, n: usize) -> Step {
    if n > 0 && dice.one_in(8) {
        // Three in a row, and another model is asked if there is one.
        let times = [1, 3, 4][dice.below(3)];
        return Step::status([529, 529, 500, 503, 400][dice.below(5)]).times(times);
    }
    let count = dice.below(7);
    let mut parts: Vec<Part> = (0..count).map(|at| part(dice, &format!("{n}.{at}"))).collect();
    if n == 0 {
        // Whatever else a session has, it has these: thinking, and calls that run side by side.
        parts.insert(0, thinking("Thinking of all of it."));
        parts.extend(["left", "right"].map(|name| tool("Look", json!({"name": name, "ms": 3}))));
    }
    if dice.one_in(8) {
        parts.push(error("overloaded_error", ""));
    }
    let mut step = Step::reply(parts);
    if dice.one_in(6) {
        step = step.stop(STOP_REASONS[dice.below(STOP_REASONS.len())]);
    }
    if dice.one_in(3) {
        let at = dice.below(30);
        step = step.fault(match dice.below(4) {
            0 => Fault::cut_after_events(at),
            1 => Fault::end_after_events(at),
            2 => Fault::reset_after_events(at),
            _ => Fault::close_before_headers(),
        });
    }
    step
}

/// One session; tells how many of its submissions were stopped.
async fn storm(seed: u64) -> usize {
    let dice = &mut Dice(seed);
    let script = (0..ANSWERS).map(|n| answer(dice, n)).fold(Script::new().seed(seed), Script::step);
    let stage = Stage::new(script.step(Step::reply([thinking("Hm."), text("Fine.")]).always())).await;
    let notes = Notes::default();
    let durability = if dice.one_in(2) { Durability::Synced } else { Durability::Fast };
    // Blocks now and then, and has something to say about some calls.
    let stop = "test -e blocked && rm blocked || { touch blocked; echo 'go on' >&2; exit 2; }";
    let looked =
        r#"echo '{"hookSpecificOutput":{"hookEventName":"PostToolUse","additionalContext":"well"}}'"#;
    let hooks = json!({
        "Stop": [{"hooks": [{"type": "command", "command": stop}]}],
        "PostToolUse": [{"matcher": "Look", "hooks": [{"type": "command", "command": looked}]}],
    });
    let fallbacks = ["claude-opus-5-5", "claude-haiku-5-5"].map(str::to_owned)[..dice.below(3)].to_vec();
    let open = |resumed: bool| {
        stage.engine_with(|options| {
            options.tools.extend(notes.tools());
            options.fallback_models.clone_from(&fallbacks);
            assert!(options.hooks.add_settings(&hooks, &Source::User).is_empty());
            options.session_id = Some(uuid::Uuid::from_u128(u128::from(seed)));
            options.sessions = Some(Sessions { config_dir: stage.config_dir(), durability });
            let file = Engine::new(options.clone()).unwrap().transcript_file().unwrap();
            if resumed && file.exists() {
                resume_from(options, &file);
            }
        })
    };
    let mut engine = open(false);
    let mut fates = Vec::new();
    let mut stops = 0;
    for n in 0..SUBMISSIONS {
        let (fate, after) = (fate(dice), 1 + dice.below(20));
        fates.push((fate, after));
        let interrupter = engine.interrupter();
        let mut events = engine.submit(prompt(&format!("Prompt {n}.")));
        if !matches!(fate, Fate::Ends) {
            let mut pulled = 0;
            let mut is_over = false;
            while pulled < after && !is_over {
                is_over = matches!(events.next().await, None | Some(Event::Result(_)));
                pulled += 1;
            }
            stops += usize::from(!is_over);
        }
        match fate {
            Fate::Ends => _ = rest(&mut events).await,
            Fate::Interrupted => {
                interrupter.interrupt();
                rest(&mut events).await;
            }
            Fate::LetGo => {}
            Fate::Killed => {
                drop(events);
                drop(engine);
                engine = open(true);
            }
        }
    }
    // However it went, the session is there and the model is willing.
    let case = format!("seed {seed}, {fates:?}");
    let problem = stage.model.summary().first_problem();
    assert!(problem.is_none(), "{case}: {problem:?}");
    for words in ["And now?", "Really?", "Sure?"] {
        while !run(&mut engine, words).await.outcome().text.contains("Fine.") {
            let problem = stage.model.summary().first_problem();
            assert!(problem.is_none(), "{case}: {problem:?}");
        }
    }
    let file = engine.transcript_file().unwrap();
    drop(engine);
    let mut engine = open(true);
    let told = run(&mut engine, "Once more?").await;
    assert_eq!(
        told.outcome().text,
        "Fine.",
        "{case}: {:?} {:?}",
        told.outcome(),
        stage.model.summary().first_problem()
    );

    let begun = notes.begun();
    assert_eq!(
        begun.len(),
        begun.iter().collect::<HashSet<_>>().len(),
        "{case}: something ran twice: {begun:?}"
    );
    let mut parent = Value::Null;
    for line in lines(&file) {
        // A summary begins a chain of its own.
        let expected = if line["subtype"] == "compact_boundary" { &Value::Null } else { &parent };
        assert_eq!(line["parentUuid"], *expected, "{case}");
        parent = line["uuid"].clone();
    }
    stops
}

#[tokio::test]
async fn loop_P9_pit_L1_whatever_happened_the_next_request_is_legal_and_nothing_runs_twice() {
    let mut stops = 0;
    for seed in 0..SEEDS_MAX {
        stops += storm(seed).await;
        if stops >= STOPS {
            return;
        }
    }
    panic!("only {stops} were stopped");
}
