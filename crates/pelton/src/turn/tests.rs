//! Every choice, as a table; every run, by walking all of them.

use std::collections::HashSet;

use expect_test::{Expect, expect};

use super::decide::Tools;
use super::*;

const ALL_SEEN: [Seen; 16] = [
    Seen::Reply(Reply::ToolUse),
    Seen::Reply(Reply::EndTurn),
    Seen::Reply(Reply::Truncated),
    Seen::Reply(Reply::Paused),
    Seen::Reply(Reply::Empty),
    Seen::Reply(Reply::Refused),
    Seen::Reply(Reply::Aborted),
    Seen::Reply(Reply::Failed(Failure::PromptTooLong)),
    Seen::Reply(Reply::Failed(Failure::MediaTooLarge)),
    Seen::Reply(Reply::Failed(Failure::Api)),
    Seen::Reply(Reply::Failed(Failure::Unreachable)),
    Seen::Reply(Reply::Failed(Failure::Unrecorded)),
    Seen::Tools(Tools::Done { all_unusable: false }),
    Seen::Tools(Tools::Done { all_unusable: true }),
    Seen::Tools(Tools::Aborted),
    Seen::Tools(Tools::Unrecorded),
];

fn check(memory: Memory, limits: &Limits, expected: &Expect) {
    let table: Vec<String> = ALL_SEEN
        .iter()
        .map(|seen| format!("{:36} → {:?}", format!("{seen:?}"), decide(&memory, limits, *seen)))
        .collect();
    expected.assert_eq(&(table.join("\n") + "\n"));
}

#[test]
fn the_first_choice_of_a_submission() {
    check(
        Memory::default(),
        &Limits::default(),
        &expect![[r#"
            Reply(ToolUse)                       → FinishTools
            Reply(EndTurn)                       → Stop(Completed)
            Reply(Truncated)                     → Continue(MaxOutputTokensRecovery)
            Reply(Paused)                        → Continue(PauseTurn)
            Reply(Empty)                         → Continue(EmptyReplyNudge)
            Reply(Refused)                       → Stop(Completed)
            Reply(Aborted)                       → Stop(AbortedStreaming)
            Reply(Failed(PromptTooLong))         → Stop(PromptTooLong)
            Reply(Failed(MediaTooLarge))         → Stop(ImageError)
            Reply(Failed(Api))                   → Stop(ModelError)
            Reply(Failed(Unreachable))           → Stop(ModelUnreachable)
            Reply(Failed(Unrecorded))            → Stop(Unrecorded)
            Tools(Done { all_unusable: false })  → Continue(NextTurn)
            Tools(Done { all_unusable: true })   → Continue(NextTurn)
            Tools(Aborted)                       → Stop(AbortedToolExecution)
            Tools(Unrecorded)                    → Stop(Unrecorded)
        "#]],
    );
}

#[test]
fn every_bound_reached() {
    let memory = Memory {
        turns: 4,
        output_recoveries: 3,
        pauses: 10,
        nudged: true,
        unusable_in_a_row: 2,
        last: Some(Transition::NextTurn),
    };
    let limits = Limits { turns_max: Some(5), ..Limits::default() };
    check(
        memory,
        &limits,
        &expect![[r#"
        Reply(ToolUse)                       → FinishTools
        Reply(EndTurn)                       → Stop(Completed)
        Reply(Truncated)                     → Stop(ModelError)
        Reply(Paused)                        → Stop(Completed)
        Reply(Empty)                         → Stop(Completed)
        Reply(Refused)                       → Stop(Completed)
        Reply(Aborted)                       → Stop(AbortedStreaming)
        Reply(Failed(PromptTooLong))         → Stop(PromptTooLong)
        Reply(Failed(MediaTooLarge))         → Stop(ImageError)
        Reply(Failed(Api))                   → Stop(ModelError)
        Reply(Failed(Unreachable))           → Stop(ModelUnreachable)
        Reply(Failed(Unrecorded))            → Stop(Unrecorded)
        Tools(Done { all_unusable: false })  → Stop(MaxTurns)
        Tools(Done { all_unusable: true })   → Stop(MalformedToolUse)
        Tools(Aborted)                       → Stop(AbortedToolExecution)
        Tools(Unrecorded)                    → Stop(Unrecorded)
    "#]],
    );
}

/// Walks every run there is under small bounds: from each state, everything that can be seen there.
#[test]
fn every_run_ends_and_every_bound_holds() {
    let limits =
        Limits { turns_max: Some(4), output_recoveries_max: 2, pauses_max: 2, unusable_in_a_row_max: 2 };
    let mut visited = HashSet::new();
    let mut walk = vec![(Memory::default(), false, 0u32)];
    let mut ends = HashSet::new();
    while let Some((memory, after_tool_use, steps)) = walk.pop() {
        // A bound on the whole: turns, recoveries, pauses and the nudge, each seen once per trip, twice with tools.
        assert!(steps <= 2 * (4 + 2 + 2 + 1 + 1), "a run that does not end: {memory:?}");
        assert!(memory.turns <= 4 && memory.output_recoveries <= 2 && memory.pauses <= 2);
        for seen in ALL_SEEN {
            if after_tool_use != matches!(seen, Seen::Tools(_)) {
                continue;
            }
            let next = decide(&memory, &limits, seen);
            let mut after = memory;
            after.note(seen, next);
            match next {
                Next::Stop(terminal) => _ = ends.insert(terminal),
                Next::FinishTools => walk.push((after, true, steps + 1)),
                Next::Continue(_) => {
                    let key = (
                        after.turns,
                        after.output_recoveries,
                        after.pauses,
                        after.nudged,
                        after.unusable_in_a_row,
                    );
                    if visited.insert((key, steps + 1)) {
                        walk.push((after, false, steps + 1));
                    }
                }
            }
        }
    }
    assert_eq!(ends.len(), 10, "every ending is reachable: {ends:?}");
}

/// A world that answers from a list and notes what was done with it.
struct Scripted {
    limits: Limits,
    replies: Vec<Reply>,
    tools: Vec<Tools>,
    done: Vec<String>,
}

impl Hands for Scripted {
    fn limits(&self) -> &Limits {
        &self.limits
    }

    async fn ask(&mut self) -> Reply {
        self.done.push("ask".into());
        self.replies.remove(0)
    }

    async fn finish_tools(&mut self) -> Seen {
        self.done.push("tools".into());
        Seen::Tools(self.tools.remove(0))
    }

    async fn prepare(&mut self, transition: Transition) {
        self.done.push(transition.name().into());
    }
}

#[tokio::test]
async fn the_loop_does_what_was_decided_in_order() {
    let ran = Tools::Done { all_unusable: false };
    let mut world = Scripted {
        limits: Limits::default(),
        replies: vec![Reply::ToolUse, Reply::Truncated, Reply::EndTurn],
        tools: vec![ran],
        done: Vec::new(),
    };
    assert_eq!(run(&mut world).await, Terminal::Completed);
    assert_eq!(world.done, ["ask", "tools", "next_turn", "ask", "max_output_tokens_recovery", "ask"]);
}
