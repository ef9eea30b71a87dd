//! Whoever answers a question has seen all that it is about.

use pelton_testkit::{Script, text, tool};
use serde_json::json;

use crate::place::{Place, model};
use crate::seat::Seat;

#[test]
fn what_a_question_asks_about_is_all_seen() {
    let place = Place::new();
    let hidden = "echo \u{1b}[8mrm\u{1b}[0m a\u{202e}b \u{200b}> x\rls";
    let model =
        model(Script::new().reply([tool("Bash", json!({"command": hidden}))]).reply([text("Then not.")]));
    let seat = Seat::at(&place, &model, ["go"]);
    seat.sees("Run this command?");
    let screen = seat.screen();
    for written_out in ["‹U+001B›[8mrm‹U+001B›[0m", "a‹U+202E›b", "‹U+200B›> x", "‹U+000D›ls"]
    {
        assert!(screen.contains(written_out), "{written_out}:\n{screen}");
    }
    assert!(!place.has("x"));
}
