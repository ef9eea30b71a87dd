//! Everything that goes wrong on a network, made to go wrong.

mod client;

use client::{Answer, ask, decode, post, request, send_until_silent};
use flate2::read::GzDecoder;
use pelton_testkit::{
    Chunk, EarlyEnd, Ending, Fault, LineEnd, Pace, Place, Script, ScriptedModel, Step, error, gate, text,
    tool,
};
use proptest::prelude::*;
use serde_json::json;
use std::io::{ErrorKind, Read};
use std::time::Duration;

const SPEECH: &str = "Grüße aus Zürich 🎈 and beyond";

fn speech() -> Step {
    Step::reply([text(SPEECH), tool("Read", json!({"file_path": "ä"}))])
}

async fn start(step: Step) -> ScriptedModel {
    Script::new().step(step).start().await.unwrap()
}

async fn play(step: Step) -> (Answer, ScriptedModel) {
    let model = start(step).await;
    let answer = post(&model, &ask("hi")).await;
    model.wait_for_answers(1).await;
    (answer, model)
}

/// Plays a step that goes silent, until it is, and hangs up.
async fn play_stalled(step: Step) -> (Answer, ScriptedModel) {
    let model = start(step).await;
    let headers = "x-api-key: k\r\nanthropic-version: 2023-06-01\r\n";
    let bytes = request("POST", "/v1/messages", headers, ask("hi").to_string().as_bytes());
    let answer = send_until_silent(&model.base_url(), &bytes, Duration::from_millis(150)).await;
    (answer, model)
}

fn ending(model: &ScriptedModel) -> Option<Ending> {
    model.requests()[0].reply.ending
}

/// The stream without any fault, to compare with. Ids follow from the request, so they are the same.
async fn whole() -> Vec<u8> {
    play(speech()).await.0.body
}

#[tokio::test]
async fn any_status_comes_with_headers_and_the_apis_error_body() {
    for (status, kind) in [
        (400, "invalid_request_error"),
        (401, "authentication_error"),
        (402, "billing_error"),
        (403, "permission_error"),
        (404, "not_found_error"),
        (409, "conflict_error"),
        (413, "request_too_large"),
        (418, "invalid_request_error"),
        (429, "rate_limit_error"),
        (500, "api_error"),
        (503, "api_error"),
        (504, "timeout_error"),
        (529, "overloaded_error"),
    ] {
        let (answer, model) = play(Step::status(status).header("retry-after", "7")).await;
        assert_eq!((answer.status, answer.header("retry-after")), (status, Some("7")));
        let body = answer.json();
        assert_eq!((&body["type"], &body["error"]["type"]), (&json!("error"), &json!(kind)));
        assert_eq!(body["request_id"], answer.header("request-id").unwrap());
        // A scripted status is the script's doing, not the client's.
        model.assert_clean();
    }
}

#[tokio::test]
async fn a_status_may_have_its_own_words_or_body() {
    let message = "prompt is too long: 208310 tokens > 200000 maximum";
    let (answer, _) = play(Step::status(400).message(message)).await;
    assert_eq!(answer.json()["error"]["message"], message);
    let (answer, _) = play(Step::status(500).error_type("future_error")).await;
    assert_eq!(answer.json()["error"]["type"], "future_error");
    let (answer, _) =
        play(Step::status(502).body("<html>bad gateway</html>").header("content-type", "text/html")).await;
    assert_eq!(
        (answer.body.as_slice(), answer.header("content-type")),
        (&b"<html>bad gateway</html>"[..], Some("text/html"))
    );
    let (answer, _) = play(Step::status(413).body(json!({"a": 1}))).await;
    assert_eq!(answer.json(), json!({"a": 1}));
    let (answer, _) = play(Step::status(200)).await;
    assert_eq!((answer.status, answer.body.len()), (200, 0));
}

#[tokio::test]
async fn an_error_inside_the_stream_ends_it() {
    let (answer, model) = play(Step::reply([text("half"), error("overloaded_error", "")])).await;
    assert_eq!((answer.status, answer.complete), (200, true));
    let data = answer.data();
    assert_eq!(answer.names().last().unwrap(), "error");
    assert_eq!(data.last().unwrap()["error"], json!({"type": "overloaded_error", "message": "Overloaded"}));
    assert!(!answer.names().contains(&"message_stop".to_owned()));
    model.assert_clean();

    let inside = text("one two").fragments(2).after(1, error("api_error", "gone"));
    let (answer, _) = play(Step::reply([inside])).await;
    assert_eq!(answer.joined("text"), "one");
    assert!(!answer.names().contains(&"content_block_stop".to_owned()));
}

#[tokio::test]
async fn a_cut_after_bytes_closes_the_connection_there() {
    let whole = whole().await;
    for count in [0, 1, 100, whole.len() - 1, whole.len()] {
        let (answer, model) = play(speech().fault(Fault::cut_after_bytes(count))).await;
        assert_eq!((answer.status, answer.body.as_slice()), (200, &whole[..count]));
        assert_eq!((answer.complete, answer.broke), (false, None));
        assert_eq!(ending(&model), Some(Ending::Cut));
        assert_eq!(model.requests()[0].reply.bytes, count);
    }
}

#[tokio::test]
async fn a_cut_after_events_closes_the_connection_there() {
    let all = decode(&whole().await);
    for count in 0..=all.len() {
        let (answer, model) = play(speech().fault(Fault::cut_after_events(count))).await;
        assert_eq!((answer.events(), answer.complete), (all[..count].to_vec(), false));
        assert_eq!(model.requests()[0].reply.events.len(), count);
    }
}

#[tokio::test]
async fn an_early_end_looks_proper_to_http() {
    let (answer, model) = play(speech().fault(Fault::end_after_events(3))).await;
    assert_eq!((answer.events().len(), answer.complete), (3, true));
    assert_eq!(ending(&model), Some(Ending::EndedEarly));
    let (answer, model) = play(speech().fault(Fault::empty_stream())).await;
    assert_eq!((answer.status, answer.body.len(), answer.complete), (200, 0, true));
    assert_eq!(ending(&model), Some(Ending::EndedEarly));
    let (_, model) = play(speech().fault(Fault::end_after_events(1000))).await;
    assert_eq!(ending(&model), Some(Ending::Complete), "nothing was left out");
}

#[tokio::test]
async fn a_stall_holds_the_connection_until_the_client_leaves() {
    let (answer, model) = play_stalled(speech().fault(Fault::stall_after_events(2))).await;
    assert_eq!((answer.status, answer.names().join(" ")), (200, "message_start ping".to_owned()));
    assert_eq!(ending(&model), Some(Ending::Stalled));
    let (answer, _) = play_stalled(speech().fault(Fault::stall_after_bytes(10))).await;
    assert_eq!(answer.body.len(), 10);
    let (answer, _) = play_stalled(speech().fault(Fault::headers_then_stall())).await;
    assert_eq!((answer.status, answer.body.len()), (200, 0));
    let (answer, model) =
        play_stalled(speech().fault(Fault::Ends(EarlyEnd::Stall, Place::BeforeHeaders))).await;
    assert!(!answer.answered);
    // The client is gone by now, and that is seen.
    for _ in 0..100 {
        if model.requests()[0].hung_up {
            return;
        }
        tokio::time::sleep(Duration::from_millis(10)).await;
    }
    panic!("nobody saw the client leave");
}

#[tokio::test]
async fn a_reset_is_a_real_one() {
    let whole = whole().await;
    let (answer, model) = play(speech().fault(Fault::reset_after_bytes(100))).await;
    assert_eq!((answer.broke, answer.body.as_slice()), (Some(ErrorKind::ConnectionReset), &whole[..100]));
    assert_eq!(ending(&model), Some(Ending::Reset));
    let (answer, _) = play(speech().fault(Fault::reset_after_events(2))).await;
    assert_eq!((answer.broke, answer.events().len()), (Some(ErrorKind::ConnectionReset), 2));
    let (answer, _) = play(speech().fault(Fault::Ends(EarlyEnd::Reset, Place::BeforeHeaders))).await;
    assert_eq!((answer.broke, answer.answered), (Some(ErrorKind::ConnectionReset), false));
}

#[tokio::test]
async fn a_close_before_the_headers_answers_nothing() {
    let (answer, model) = play(speech().fault(Fault::close_before_headers())).await;
    assert_eq!((answer.answered, answer.broke), (false, None));
    let seen = &model.requests()[0];
    assert_eq!((seen.reply.status, seen.step), (None, Some(1)));
}

#[tokio::test]
async fn malformed_json_comes_where_it_should() {
    let (answer, _) = play(speech().fault(Fault::MalformedJsonAtEvent(4))).await;
    let events = answer.events();
    for (index, (_, data)) in events.iter().enumerate() {
        assert_eq!(
            serde_json::from_str::<serde_json::Value>(data).is_err(),
            index == 3,
            "event {}",
            index + 1
        );
    }
    assert!(answer.complete);
}

#[tokio::test]
async fn characters_are_cut_in_half_across_chunks() {
    let (answer, _) = play(speech().pace(Pace::chunk_bytes(1))).await;
    assert!(answer.chunks.iter().all(|chunk| chunk.len() == 1));
    assert!(answer.chunks.iter().any(|chunk| std::str::from_utf8(chunk).is_err()));
    assert_eq!(answer.body, whole().await);
    assert_eq!(answer.joined("text"), SPEECH);
}

#[tokio::test]
async fn every_line_end_carries_the_same_events() {
    let plain = whole().await;
    for (line_end, mark) in [
        (LineEnd::CrLf, "\r\n\r\n"),
        (LineEnd::Cr, "\r\r"),
        (LineEnd::Lf, "\n\n"),
        (LineEnd::Mixed, "\r\n\r"),
    ] {
        let (answer, _) = play(speech().line_end(line_end).bom()).await;
        assert_eq!(answer.events(), decode(&plain), "{line_end:?}");
        let text = String::from_utf8(answer.body).unwrap();
        assert!(text.starts_with('\u{feff}') && text.contains(mark), "{line_end:?}");
    }
}

#[tokio::test]
async fn gzip_streams_and_bodies_are_gzip() {
    let (answer, _) = play(speech().gzip()).await;
    assert_eq!(answer.header("content-encoding"), Some("gzip"));
    let mut plain = Vec::new();
    GzDecoder::new(&answer.body[..]).read_to_end(&mut plain).unwrap();
    assert_eq!(plain, whole().await);

    let (answer, _) = play(Step::status(529).gzip()).await;
    let mut plain = Vec::new();
    GzDecoder::new(&answer.body[..]).read_to_end(&mut plain).unwrap();
    assert!(String::from_utf8(plain).unwrap().contains("overloaded_error"));
}

#[tokio::test]
async fn bodies_without_a_stream_break_too() {
    let mut plain = ask("hi");
    plain["stream"] = json!(false);
    let model = start(speech().times(2).fault(Fault::cut_after_bytes(20))).await;
    let answer = post(&model, &plain).await;
    assert_eq!((answer.body.len(), answer.complete), (20, false));
    let (answer, _) = play(Step::status(500).fault(Fault::cut_after_bytes(5))).await;
    assert_eq!((answer.status, answer.body.len(), answer.complete), (500, 5, false));
}

#[tokio::test]
async fn a_client_that_leaves_is_seen_leaving() {
    let model = start(Step::reply([text("a"), gate("never")])).await;
    let headers = "x-api-key: k\r\nanthropic-version: 2023-06-01\r\n";
    let bytes = request("POST", "/v1/messages", headers, ask("hi").to_string().as_bytes());
    send_until_silent(&model.base_url(), &bytes, Duration::from_millis(50)).await;
    model.wait_for_answers(1).await;
    let seen = &model.requests()[0];
    assert_eq!((seen.reply.ending, seen.hung_up), (Some(Ending::ClientLeft), true));
}

#[tokio::test]
async fn after_a_fault_the_next_request_is_served() {
    let model = Script::new()
        .step(speech().fault(Fault::reset_after_bytes(9)))
        .reply([text("ok")])
        .start()
        .await
        .unwrap();
    post(&model, &ask("hi")).await;
    assert_eq!(post(&model, &ask("hi")).await.joined("text"), "ok");
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(24))]

    #[test]
    fn any_reply_at_any_pace_decodes_to_the_same(
        said in "\\PC{1,60}",
        size in 1_usize..80,
        random: bool,
        gzip: bool,
        seed: u64,
    ) {
        let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
        let (plain, paced) = runtime.block_on(async {
            let reply = || Step::reply([text(said.clone()), tool("T", json!({"said": said.clone()}))]);
            let chunk = if random { Chunk::Random } else { Chunk::Bytes(size) };
            let mut step = reply().pace(Pace { chunk, ..Pace::default() });
            if gzip {
                step = step.gzip();
            }
            let plain = Script::new().seed(seed).step(reply()).start().await.unwrap();
            let paced = Script::new().seed(seed).step(step).start().await.unwrap();
            (post(&plain, &ask("hi")).await, post(&paced, &ask("hi")).await)
        });
        let mut bytes = paced.body.clone();
        if gzip {
            bytes.clear();
            GzDecoder::new(&paced.body[..]).read_to_end(&mut bytes).unwrap();
        }
        prop_assert_eq!(&bytes, &plain.body);
        let blocks = plain.blocks();
        prop_assert_eq!(blocks[0]["text"].as_str(), Some(said.as_str()));
        prop_assert_eq!(blocks[1]["input"]["said"].as_str(), Some(said.as_str()));
    }
}
