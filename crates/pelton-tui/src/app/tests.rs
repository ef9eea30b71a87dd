//! Keys, questions and the clock, without a terminal.

use std::sync::Arc;

use crossterm::event::{KeyCode, KeyEvent, KeyModifiers};
use pelton::host::Elicitation;
use serde_json::json;

use super::*;

fn app() -> App {
    App::new(Theme::BARE, 80, 24, false)
}

fn at(ms: u64) -> Duration {
    Duration::from_millis(ms)
}

fn press(app: &mut App, code: KeyCode, now: Duration) -> Vec<Effect> {
    app.key(KeyEvent::new(code, KeyModifiers::NONE), now)
}

fn types(app: &mut App, words: &str, now: Duration) {
    for c in words.chars() {
        assert_eq!(press(app, KeyCode::Char(c), now), []);
    }
}

fn control(app: &mut App, c: char, now: Duration) -> Vec<Effect> {
    app.key(KeyEvent::new(KeyCode::Char(c), KeyModifiers::CONTROL), now)
}

/// A form without fields: Enter answers it.
fn question() -> Asked {
    let schema = json!({"type": "object", "properties": {}});
    Asked::Elicitation(Box::new(Elicitation::new(Arc::from("call"), "server", "Well?", schema)))
}

/// The next question is there, and painted.
fn show(app: &mut App, now: Duration) {
    app.show_next(now);
    app.live(now);
}

#[test]
fn what_was_not_painted_is_not_answered() {
    let mut app = app();
    app.begin(None, at(0));
    app.ask(1, question());
    app.show_next(at(1_000));
    // A window that changes its size, or a terminal that reads nothing, may be painted seconds later.
    assert_eq!(press(&mut app, KeyCode::Enter, at(4_000)), []);
    app.live(at(5_000));
    assert_eq!(press(&mut app, KeyCode::Enter, at(5_100)), []);
    assert!(matches!(press(&mut app, KeyCode::Enter, at(6_000))[..], [Effect::Answer(1, _)]));
}

#[test]
fn what_a_low_window_has_no_room_for_is_read_above() {
    let told = |app: &mut App| {
        app.finished
            .drain(..)
            .map(|line| line.to_string().trim_end().to_owned())
            .collect::<Vec<_>>()
            .join(" ")
    };
    let mut app = App::new(Theme::BARE, 40, 10, false);
    app.begin(None, at(0));
    // A server that has much to say in front of its form.
    let fields: serde_json::Map<_, _> =
        (0..12).map(|at| (format!("f{at}"), json!({"type": "string"}))).collect();
    let words = "what this is about ".repeat(9);
    let form = Elicitation::new("call".into(), "server", words.trim(), json!({"properties": fields}));
    app.ask(2, Asked::Elicitation(Box::new(form)));
    show(&mut app, at(3_000));
    let asked = told(&mut app);
    assert!(asked.contains("server asks:") && asked.matches("about").count() == 9, "{asked}");
    app.taken_back(2);
    let words = Elicitation::new("call".into(), "server", "one two three four", json!({}));
    app.ask(3, Asked::Elicitation(Box::new(words)));
    show(&mut app, at(4_000));
    assert_eq!(told(&mut app), "", "this one has room");
    // Until the window is another one; then it is told once.
    app.resize(10, 4);
    assert_eq!(told(&mut app), "server asks: one two three four");
    app.resize(9, 4);
    assert_eq!(told(&mut app), "");
}

#[test]
fn a_paste_without_words_is_a_picture() {
    let mut app = app();
    assert_eq!(app.paste("", at(1)), [Effect::PastePicture]);
    assert_eq!(app.paste("words", at(2)), []);
    app.ask(1, question());
    show(&mut app, at(3));
    assert_eq!(app.paste("", at(1_000)), [], "a question wants no pictures");
    assert_eq!(app.draft.text(), "words");
}

#[test]
fn whoever_is_in_the_middle_of_a_sentence_answers_nothing() {
    let mut app = app();
    app.begin(None, at(0));
    types(&mut app, "half a sen", at(1_000));
    app.ask(1, question());
    show(&mut app, at(1_100));
    // The sentence goes on: its keys are words, and Enter is no answer.
    types(&mut app, "tence", at(1_200));
    assert_eq!(press(&mut app, KeyCode::Enter, at(1_300)), []);
    assert!(app.is_asking());
    assert_eq!(app.draft.text(), "half a sentence");
    assert!(app.wakes_at(at(1_300)).is_some_and(|wakes| wakes <= at(1_900)), "it is shown when keys count");
    // After a pause it is one.
    let answered = press(&mut app, KeyCode::Enter, at(2_000));
    assert!(matches!(answered[..], [Effect::Answer(1, _)]), "{answered:?}");
    assert_eq!(app.draft.text(), "half a sentence");
}

#[test]
fn a_key_that_is_pressed_twice_answers_nothing_either() {
    let mut app = app();
    app.begin(None, at(0));
    types(&mut app, "and then", at(1_000));
    assert!(matches!(press(&mut app, KeyCode::Enter, at(1_100))[..], [Effect::Queue { .. }]));
    app.ask(1, question());
    show(&mut app, at(1_150));
    assert_eq!(press(&mut app, KeyCode::Enter, at(1_200)), [], "the same key once more");
    assert!(app.is_asking());
    // Ending it all is no answer that could do harm.
    assert_eq!(press(&mut app, KeyCode::Esc, at(1_250)), [Effect::Interrupt]);
    assert!(matches!(press(&mut app, KeyCode::Enter, at(2_000))[..], [Effect::Answer(1, _)]));
    // What was typed long before it is no reason to wait.
    app.ask(2, question());
    show(&mut app, at(9_000));
    assert!(matches!(press(&mut app, KeyCode::Enter, at(9_250))[..], [Effect::Answer(2, _)]));
    // Nor does a key that answers one question answer the next, which nobody can have read.
    app.ask(3, question());
    show(&mut app, at(9_260));
    assert_eq!(press(&mut app, KeyCode::Enter, at(9_300)), []);
    assert_eq!(press(&mut app, KeyCode::Enter, at(9_600)), [], "it waits for a pause since");
    assert!(matches!(press(&mut app, KeyCode::Enter, at(10_300))[..], [Effect::Answer(3, _)]));
}

#[test]
fn without_a_sentence_a_question_is_answered_as_soon_as_it_can_be_read() {
    let mut app = app();
    app.ask(7, question());
    app.ask(8, question());
    show(&mut app, at(10));
    assert!(matches!(press(&mut app, KeyCode::Enter, at(210))[..], [Effect::Answer(7, _)]));
    assert!(app.has_unshown(), "the next one waits until it is shown");
    show(&mut app, at(212));
    app.taken_back(8);
    assert!(!app.is_asking() && !app.has_unshown());
}

#[test]
fn words_while_it_works_wait_and_can_be_taken_back() {
    let mut app = app();
    app.begin(None, at(0));
    types(&mut app, "next", at(1));
    let queued = press(&mut app, KeyCode::Enter, at(2));
    let [Effect::Queue { said, when: When::Next }] = &queued[..] else { panic!("{queued:?}") };
    types(&mut app, "later", at(3));
    assert!(matches!(press(&mut app, KeyCode::Tab, at(4))[..], [Effect::Queue { when: When::Later, .. }]));
    let id = Uuid::from_u128(5);
    app.queued(said, id);
    // The newest that is kept comes back; the other is still on its way.
    assert_eq!(press(&mut app, KeyCode::Up, at(5)), [Effect::Unqueue(id)]);
    assert_eq!(app.draft.text(), "next");
}

#[test]
fn control_c_ends_what_runs_then_what_is_written_then_the_session() {
    let mut app = app();
    app.begin(None, at(0));
    assert_eq!(control(&mut app, 'c', at(1)), [Effect::Interrupt]);
    app.end(at(2));
    types(&mut app, "words", at(5_000));
    assert_eq!(control(&mut app, 'c', at(5_001)), []);
    assert!(app.draft.is_empty());
    // The second of two that belong together; words in between part them.
    types(&mut app, "x", at(5_002));
    press(&mut app, KeyCode::Backspace, at(5_003));
    assert_eq!(control(&mut app, 'c', at(5_004)), []);
    assert_eq!(control(&mut app, 'c', at(6_000)), [Effect::Leave]);
}

#[test]
fn control_d_leaves_and_while_something_runs_only_when_it_ends_soon() {
    let mut app = app();
    types(&mut app, "x", at(0));
    assert_eq!(control(&mut app, 'd', at(1)), [], "there are words");
    press(&mut app, KeyCode::Backspace, at(2));
    assert_eq!(control(&mut app, 'd', at(3)), [Effect::Leave]);
    app.begin(None, at(10));
    assert_eq!(control(&mut app, 'd', at(11)), []);
    assert!(app.end(at(500)), "it was only waited for");
    app.begin(None, at(9_600));
    assert_eq!(control(&mut app, 'd', at(9_700)), []);
    assert!(!app.end(at(60_000)), "by then nobody means it");
}

#[test]
fn escape_interrupts_and_twice_goes_back() {
    let mut app = app();
    app.begin(None, at(0));
    assert_eq!(press(&mut app, KeyCode::Esc, at(1)), [Effect::Interrupt]);
    app.end(at(2));
    assert_eq!(press(&mut app, KeyCode::Esc, at(100)), []);
    assert_eq!(press(&mut app, KeyCode::Esc, at(300)), [Effect::ListPast]);
    assert_eq!(press(&mut app, KeyCode::Esc, at(5_000)), []);
    assert_eq!(press(&mut app, KeyCode::Esc, at(9_000)), [], "those are two single ones");
}

#[test]
fn what_is_live_fits_the_screen_and_the_caret_is_in_it() {
    for rows in [3, 5, 10, 24] {
        let mut app = App::new(Theme::BARE, 40, rows, false);
        app.begin(Some("go"), at(0));
        app.draft.set(&"line\n".repeat(30));
        for _ in 0..9 {
            app.waiting.push(Waiting {
                id: None,
                said: crate::draft::said("waits"),
                when: When::Next,
                is_told: false,
            });
        }
        let live = app.live(at(10));
        assert!(live.lines.len() <= rows, "{} of {rows}", live.lines.len());
        assert!(live.caret.is_some_and(|caret| caret.row < live.lines.len()), "{:?}", live.caret);
    }
}

#[test]
fn the_status_line_tells_how_long_the_model_has_worked_in_all() {
    let mut app = app();
    let last = |app: &mut App, now| app.live(now).lines.last().map(Line::to_string).unwrap_or_default();
    assert!(!last(&mut app, at(9_000)).contains(" s"), "nothing has happened yet");
    app.begin(None, at(10_000));
    assert!(last(&mut app, at(15_000)).ends_with(" · 5 s"));
    app.end(at(20_000));
    // Time in which nobody works does not count.
    assert!(last(&mut app, at(500_000)).ends_with(" · 10 s"));
    app.begin(None, at(500_000));
    app.end(at(555_000));
    assert!(last(&mut app, at(600_000)).ends_with(" · 1 min 5 s"));
}
