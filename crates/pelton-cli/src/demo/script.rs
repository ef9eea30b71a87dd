//! What the model says in the demo. Every step but the first answers to the result it got: a sample with another
//! bug is not fixed, and the script says so.

use std::time::Duration;

use pelton_testkit::{Fault as Wire, Pace, Part, Script, Step, When, text, tool};
use serde_json::json;

use crate::args::Fault;

/// The line with the bug, as the search and the file show it.
const BUG: &str = "[ $(($1 % 4)) -eq 0 ] && [ $(($1 % 100)) -ne 0 ]";
const FIX: &str = "[ $(($1 % 400)) -eq 0 ] || { [ $(($1 % 4)) -eq 0 ] && [ $(($1 % 100)) -ne 0 ]; }";

/// The script, with a fault on the way if asked for.
pub(super) fn of(fault: Option<Fault>) -> Script {
    let faults = match fault {
        None => Vec::new(),
        Some(Fault::Overload) => {
            let overloaded = || Step::status(529).header("retry-after-ms", "300");
            vec![overloaded(), overloaded()]
        }
        Some(Fault::Cut) => vec![
            Step::reply(look()).fault(Wire::cut_after_events(6)),
            Step::reply(fix()).when(saw(BUG)).fault(Wire::reset_after_events(8)),
        ],
    };
    let steps = [
        Step::reply(look()),
        Step::reply(read()).when(When::any().last_tool_result(r"(?m)^(\S*leap\.sh):\d+:\s*is_leap\(\)")),
        Step::reply(fix()).when(saw(BUG)),
        Step::reply(test()).when(saw(FIX)),
        Step::reply(done()).when(When::any().last_tool_result(r"(\d+) passed, 0 failed")),
        Step::reply(lost()).always(),
    ];
    faults.into_iter().chain(steps).fold(Script::new(), |script, step| script.step(step.pace(pace())))
}

fn look() -> Vec<Part> {
    vec![
        text("The failing checks are about leap years. I will find where that is decided.\n"),
        tool("Grep", json!({"pattern": "is_leap", "path": "src", "output_mode": "content"})),
    ]
}

fn read() -> Vec<Part> {
    vec![text("Defined in one place; reading it.\n"), tool("Read", json!({"file_path": "${match.1}"}))]
}

fn fix() -> Vec<Part> {
    vec![
        text("Years divisible by 100 are all refused, but those divisible by 400 are leap years.\n"),
        tool("Edit", json!({"file_path": "src/leap.sh", "old_string": BUG, "new_string": FIX})),
    ]
}

fn test() -> Vec<Part> {
    vec![
        text("Now the tests.\n"),
        tool("Bash", json!({"command": super::TEST_COMMAND, "description": "Run the tests"})),
    ]
}

fn done() -> Vec<Part> {
    vec![text(
        "Fixed: `is_leap` in `src/leap.sh` left out the 400-year rule, so 2000 counted as a common year. All \
         ${match.1} checks pass.",
    )]
}

fn lost() -> Vec<Part> {
    vec![text(
        "This is not the bug I know how to fix: the last result was not what I expected. I changed nothing more.",
    )]
}

fn saw(words: &str) -> When {
    When::any().last_tool_result(escaped(words))
}

/// A pattern that matches these words and nothing else.
fn escaped(words: &str) -> String {
    words
        .chars()
        .flat_map(|c| if c.is_alphanumeric() || c == ' ' { vec![c] } else { vec!['\\', c] })
        .collect()
}

/// About as fast as a real model.
fn pace() -> Pace {
    Pace::chunk_bytes(120).delay(Duration::from_millis(6))
}
