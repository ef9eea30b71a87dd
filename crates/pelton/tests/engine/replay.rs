//! What was said is sent again as it was: byte for byte, to the same model and to another, from memory and from disk.

use pelton::Event;
use pelton_testkit::{Part, Script, Step, When, event, text, thinking, tool, tool_with_json};
use serde_json::{Value, json};

use crate::probe::{Note, Notes};
use crate::stage::{
    Stage, blocks, entry_of, holds, is_start_of, prompt, pulling, rest, results_in, resume_from, run,
    text_of, unmarked, until,
};

const FIRST: &str = "claude-sonnet-5-5";
const OTHER: &str = "claude-opus-5-5";

/// The blocks that the assistant brings in a request, without cache marks.
fn said(request: &Value) -> Vec<Value> {
    blocks(request, "assistant").into_iter().map(unmarked).collect()
}

fn is_thinking(block: &&Value) -> bool {
    block["type"] == "thinking"
}

#[tokio::test]
async fn pit_L2_thinking_among_many_calls_is_replayed_as_received_after_a_restart() {
    let mut parts: Vec<Part> = Vec::new();
    for n in 0..27 {
        if n % 9 == 0 {
            parts.push(thinking(format!("Thought {n}: \u{1F914} \"quoted\" \\ and so on.")));
        }
        let slow = if n == 26 { 60_000 } else { 0 };
        parts.push(tool("Look", json!({"name": format!("c{n}"), "ms": slow})).id(format!("toolu_{n}")));
    }
    let refusal = "messages.1.content.0: `thinking` or `redacted_thinking` blocks in the latest assistant message \
                   cannot be modified. These blocks must remain as they were in the original response.";
    let script = Script::new()
        .reply(parts)
        .reply([text("Going on.")])
        .step(Step::status(400).message(refusal))
        .reply([text("Without them, then.")]);
    let stage = Stage::new(script).await;
    let calls = Notes::default();
    let mut engine = stage.engine_with(|options| {
        options.tool_calls_running_max = 27;
        options.tools.extend(calls.tools());
    });
    let file = engine.transcript_file().unwrap();
    let interrupter = engine.interrupter();

    let mut events = Box::pin(engine.submit(prompt("Go.")));
    let mut told = until(&mut events, |event| is_start_of(event, "toolu_26")).await;
    let ended = Note::Ended("c25".to_owned());
    told.extend(pulling(&mut events, holds(|| calls.has(&ended))).await.0);
    interrupter.interrupt();
    told.extend(rest(&mut events).await);
    drop(events);
    drop(engine);
    let received: Vec<Value> = told
        .iter()
        .filter_map(entry_of)
        .filter(|entry| entry.is_assistant())
        .flat_map(|entry| serde_json::from_slice::<Vec<Value>>(&entry.json).unwrap())
        .collect();
    assert_eq!(received.len(), 30);

    let mut engine = stage.engine_with(|options| {
        options.tools.extend(calls.tools());
        resume_from(options, &file);
    });
    run(&mut engine, "Go on.").await.assert_completed();
    assert_eq!(said(&stage.request(2)), received, "as received");
    let results = results_in(&stage.request(2));
    assert_eq!(results.len(), 27);
    assert_eq!(results.iter().filter(|(_, is_error, _)| *is_error).count(), 1, "the one that was cancelled");

    // A server that takes them for changed all the same is asked once more without them.
    let told = run(&mut engine, "And on.").await;
    assert_eq!(told.assert_completed().text, "Without them, then.");
    assert_eq!(told.transitions(), ["request_repair"]);
    let notices = told
        .0
        .iter()
        .filter(|event| matches!(event, Event::Loop(loop_event) if loop_event.kind.name() == "repair"));
    assert_eq!(notices.count(), 1);
    assert_eq!(blocks(&stage.request(4), "assistant").iter().filter(|block| is_thinking(block)).count(), 0);
    assert_eq!(results_in(&stage.request(4)).len(), 27, "the calls stay");
    stage.assert_all_played();
}

#[tokio::test]
async fn pit_L2_thinking_that_belongs_to_other_tools_is_left_out_of_a_resumed_session() {
    let schema = json!({"type": "object", "properties": {"n": {"type": "integer"}}, "required": ["n"]});
    let think = |answer: Part| Step::reply([thinking("Hm."), answer]);
    let script = Script::new()
        .step(think(text("One.")))
        .step(think(text("Two.")))
        .step(think(tool("StructuredOutput", json!({"n": 3}))))
        .step(think(text("Four.")));
    let stage = Stage::new(script).await;
    let mut file: Option<std::path::PathBuf> = None;
    let mut kept = Vec::new();
    for with_schema in [false, false, true, false] {
        let mut engine = stage.engine_with(|options| {
            options.json_schema = with_schema.then(|| schema.clone());
            if let Some(file) = &file {
                resume_from(options, file);
            }
        });
        file = engine.transcript_file();
        let told = run(&mut engine, "Go.").await;
        told.assert_completed();
        assert!(told.transitions().iter().all(|transition| *transition != "request_repair"));
        let sent = stage.request(stage.request_count());
        kept.push(blocks(&sent, "assistant").iter().filter(|block| is_thinking(block)).count());
    }
    // The same tools keep it; others cost what was thought before, but no request in vain.
    assert_eq!(kept, [0, 1, 0, 0]);
    assert_eq!(stage.request_count(), 4);
    stage.assert_all_played();
}

#[tokio::test]
async fn pit_L3_a_history_moves_to_another_model_and_back_and_every_request_is_accepted() {
    let by = |model: &str, words: &str| {
        [
            Step::reply([thinking("Hm."), tool("Glob", json!({"pattern": "*"}))])
                .when(When::any().model(model)),
            Step::reply([thinking("Well."), text(words)]).when(When::any().model(model)),
        ]
    };
    let steps = [by(FIRST, "One."), by(OTHER, "Two."), by(FIRST, "Three.")].into_iter().flatten();
    let stage = Stage::new(steps.fold(Script::new(), Script::step)).await;
    let mut engine = stage.engine_with(|options| options.model = FIRST.to_owned());
    let file = engine.transcript_file().unwrap();
    assert_eq!(run(&mut engine, "Go.").await.assert_completed().text, "One.");
    drop(engine);
    for (model, words) in [(OTHER, "Two."), (FIRST, "Three.")] {
        let mut engine = stage.engine_with(|options| {
            options.model = model.to_owned();
            resume_from(options, &file);
        });
        let told = run(&mut engine, "Go on.").await;
        assert_eq!(told.assert_completed().text, words);
        assert_eq!(told.transitions(), ["next_turn"], "no request was refused");
    }
    // What was said stays; only the thinking of the other model does not.
    let last = stage.request(6);
    let words: Vec<&str> =
        blocks(&last, "assistant").iter().filter_map(|block| block["text"].as_str()).collect();
    assert_eq!((words, results_in(&last).len()), (vec!["One.", "Two."], 3));
    stage.assert_all_played();
}

#[tokio::test]
async fn pit_L4_halves_of_characters_in_a_stream_become_replacement_characters() {
    // Not through the builder: these are no texts that Rust could hold.
    let delta = |json: &str| {
        let data = format!(
            r#"{{"type":"content_block_delta","index":0,"delta":{{"type":"text_delta","text":"{json}"}}}}"#
        );
        event("content_block_delta", data)
    };
    let begin =
        json!({"type": "content_block_start", "index": 0, "content_block": {"type": "text", "text": ""}});
    let end = json!({"type": "content_block_stop", "index": 0});
    let script = Script::new()
        .reply([
            event("content_block_start", begin),
            delta(r"half \ud83d"),
            delta(r"\ude00 whole \ud83d\ude00"),
            event("content_block_stop", end),
        ])
        .reply([tool_with_json("Bash", r#"{"command": "echo 'cut \ude00 here'"}"#)])
        .reply([text("Done.")]);
    let stage = Stage::new(script).await;
    let mut engine = stage.engine();

    let told = run(&mut engine, "Go.").await;
    let words = &told.assert_completed().text;
    assert!(words.starts_with("half ") && words.ends_with(" whole \u{1F600}"), "{words}");
    assert_eq!(run(&mut engine, "Go on.").await.assert_completed().text, "Done.");

    for request in stage.model.reply_requests() {
        // A strict reader accepts every byte that was sent.
        let sent: Value = serde_json::from_slice(&request.raw).unwrap();
        assert_eq!(sent["messages"], request.body["messages"]);
    }
    let results = results_in(&stage.request(3));
    assert!(results[0].2.contains("cut \u{FFFD} here"), "{results:?}");
    stage.assert_all_played();
}

#[tokio::test]
async fn pit_L4_halves_of_characters_on_disk_cost_nothing_but_themselves() {
    let stage = Stage::new(Script::new().reply([text("The word is EMOJI.")]).reply([text("Yes.")])).await;
    let mut engine = stage.engine();
    let file = engine.transcript_file().unwrap();
    run(&mut engine, "Say ESCAPED and BYTES.").await.assert_completed();
    drop(engine);
    let mut lines = std::fs::read(&file).unwrap();
    for (word, damage) in
        [("EMOJI", &br"x \ud83d"[..]), ("ESCAPED", br"\ude00\ud83d y"), ("BYTES", b"\xf0\x9f\x98 z")]
    {
        let at = lines.windows(word.len()).position(|window| window == word.as_bytes()).unwrap();
        lines.splice(at..at + word.len(), damage.iter().copied());
    }
    std::fs::write(&file, &lines).unwrap();

    let mut engine = stage.resume(&file);
    run(&mut engine, "Sure?").await.assert_completed();

    let sent = stage.request(2);
    assert_eq!(text_of(&json!(said(&sent))), "The word is x \u{FFFD}.");
    let asked = blocks(&sent, "user").into_iter().map(|block| text_of(&json!([block]))).collect::<String>();
    assert!(asked.contains("Say \u{FFFD}\u{FFFD} y and \u{FFFD} z."), "{asked}");
    stage.assert_all_played();
}

#[tokio::test]
async fn pit_L4_output_cut_at_every_byte_of_a_character_stays_text() {
    let cuts = 0..8;
    let mut script = Script::new();
    for n in cuts.clone() {
        // The limit falls on another byte of the characters each time.
        let command =
            format!("printf 'x%.0s' $(seq {}); for i in $(seq 300); do printf '\u{1F600}'; done", n + 1);
        script = script.reply([tool("Bash", json!({"command": command}))]);
    }
    let stage = Stage::new(script.reply([text("Done.")])).await;
    let mut engine = stage.engine_with(|options| options.tool_limits.shell_output_chars_max = 200);

    run(&mut engine, "Go.").await.assert_completed();

    let last = stage.model.reply_requests().pop().unwrap();
    let results = results_in(&last.body);
    assert_eq!(results.len(), cuts.len());
    for (_, is_error, words) in results {
        assert!(!is_error && words.contains('\u{1F600}') && !words.contains('\u{FFFD}'), "{words}");
    }
    stage.assert_all_played();
}
