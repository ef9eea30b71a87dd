//! Every choice as a table; every run by walking all of them; the graph of the loop, drawn from the code.

mod memory; // what is remembered after each choice
mod worlds; // the loop in worlds that answer at random

use std::collections::{BTreeSet, HashSet};
use std::fmt::Write as _;
use std::sync::LazyLock;

use expect_test::{expect, expect_file};

use super::End;
use super::decide::*;
use super::memory::{Gauges, Limits, Memory};
use super::reasons::{Terminal, Transition};

const TOO_LONG: Reply = Reply::Withheld(Withheld::PromptTooLong { can_shrink: true });
const FILLED: Reply = Reply::Withheld(Withheld::WindowFilled { can_shrink: true });
const FILLED_FOR_GOOD: Reply = Reply::Withheld(Withheld::WindowFilled { can_shrink: false });
const HOPELESS: Reply = Reply::Withheld(Withheld::PromptTooLong { can_shrink: false });
const MEDIA: Reply = Reply::Withheld(Withheld::MediaTooLarge);
const CUT: Reply = Reply::Withheld(Withheld::OutputTruncated { cap_can_rise: false });
const CUT_LOW: Reply = Reply::Withheld(Withheld::OutputTruncated { cap_can_rise: true });

const BROKEN: Reply = Reply::Withheld(Withheld::StreamCut { complete: Complete::Text, rest: Rest::Same });
const BROKEN_LAST: Reply = broken_for_good(Complete::Text, Failure::Unreachable);
const BROKEN_ELSEWHERE: Reply =
    Reply::Withheld(Withheld::StreamCut { complete: Complete::Text, rest: Rest::Next });
const BROKEN_CALLS: Reply =
    Reply::Withheld(Withheld::StreamCut { complete: Complete::Calls, rest: Rest::Same });
const BROKEN_CALLS_LAST: Reply = broken_for_good(Complete::Calls, Failure::Api);
const BROKEN_CALLS_ELSEWHERE: Reply =
    Reply::Withheld(Withheld::StreamCut { complete: Complete::Calls, rest: Rest::Next });
const BROKEN_LOOKS: Reply =
    Reply::Withheld(Withheld::StreamCut { complete: Complete::Looks, rest: Rest::Same });
const BROKEN_LOOKS_LAST: Reply = broken_for_good(Complete::Looks, Failure::Api);
const BROKEN_LOOKS_ELSEWHERE: Reply =
    Reply::Withheld(Withheld::StreamCut { complete: Complete::Looks, rest: Rest::Next });
const PAUSED: Reply = Reply::Paused { said_something: true, unstructured: false };
const PAUSED_SILENT: Reply = Reply::Paused { said_something: false, unstructured: false };
const PAUSED_UNSTRUCTURED: Reply = Reply::Paused { said_something: true, unstructured: true };

const fn broken_for_good(complete: Complete, failure: Failure) -> Reply {
    Reply::Withheld(Withheld::StreamCut { complete, rest: Rest::Nobody(failure) })
}

const REPLIES: [Reply; 43] = [
    Reply::ToolUse,
    Reply::EndTurn,
    Reply::Unstructured,
    PAUSED,
    PAUSED_SILENT,
    PAUSED_UNSTRUCTURED,
    Reply::Empty,
    Reply::Refused,
    BROKEN,
    BROKEN_LAST,
    BROKEN_ELSEWHERE,
    BROKEN_CALLS,
    BROKEN_CALLS_LAST,
    BROKEN_CALLS_ELSEWHERE,
    BROKEN_LOOKS,
    BROKEN_LOOKS_LAST,
    BROKEN_LOOKS_ELSEWHERE,
    TOO_LONG,
    HOPELESS,
    FILLED,
    FILLED_FOR_GOOD,
    MEDIA,
    CUT,
    CUT_LOW,
    Reply::ToolUseCut,
    Reply::Repairable { rung: Rung::Thinking, otherwise: Failure::Api },
    Reply::Repairable { rung: Rung::Image, otherwise: Failure::Media },
    Reply::Repairable { rung: Rung::Media, otherwise: Failure::Media },
    Reply::Repairable { rung: Rung::Tool, otherwise: Failure::Api },
    Reply::Repairable { rung: Rung::Beta, otherwise: Failure::Api },
    Reply::Repairable { rung: Rung::Block, otherwise: Failure::Api },
    Reply::Repairable { rung: Rung::EveryBlock, otherwise: Failure::Api },
    Reply::Repairable { rung: Rung::EveryTool, otherwise: Failure::Api },
    Reply::Fallback,
    Reply::NoStream,
    Reply::Failed(Failure::Api),
    Reply::Failed(Failure::Media),
    Reply::Failed(Failure::Unreachable),
    Reply::Failed(Failure::Unrecorded),
    Reply::OverBudget(Bought::Nothing),
    Reply::OverBudget(Bought::Part),
    Reply::OverBudget(Bought::Answer),
    Reply::Aborted,
];
const TOOLS: [Tools; 9] = [
    Tools::Done,
    Tools::Repeating,
    Tools::Unusable,
    Tools::Structured,
    Tools::Misstructured,
    Tools::HookStopped,
    Tools::Deferred,
    Tools::Aborted,
    Tools::Unrecorded,
];
const VERDICTS: [Verdict; 5] =
    [Verdict::Pass, Verdict::Block, Verdict::Prevent, Verdict::Aborted, Verdict::Unrecorded];
const BLOCKS: [Blocked; 6] = [
    Blocked::ContextFull,
    Blocked::Refilled,
    Blocked::Budget,
    Blocked::Aborted,
    Blocked::Unrecorded,
    Blocked::ToolGone,
];
const COMPACTIONS: [Compaction; 4] =
    [Compaction::Smaller, Compaction::NoSmaller, Compaction::Aborted, Compaction::Unrecorded];

/// Where in the loop something is seen.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
enum Phase {
    Ask,
    Tools,
    Discard,
    Drain,
    Compact,
    StopHooks,
}

impl Phase {
    const ALL: [Self; 6] =
        [Self::Ask, Self::Tools, Self::Discard, Self::Drain, Self::Compact, Self::StopHooks];

    /// Everything that can be seen there.
    fn sights(self) -> Vec<Seen> {
        match self {
            Self::Ask => {
                let blocked = BLOCKS.into_iter().map(Seen::Blocked);
                blocked.chain(REPLIES.into_iter().map(Seen::Reply)).collect()
            }
            Self::Tools => TOOLS.into_iter().map(Seen::Tools).collect(),
            Self::Discard => [true, false].into_iter().map(|recorded| Seen::Discarded { recorded }).collect(),
            Self::Drain => [true, false].into_iter().map(|freed| Seen::Drained { freed }).collect(),
            Self::Compact => COMPACTIONS.into_iter().map(Seen::Compacted).collect(),
            Self::StopHooks => VERDICTS.into_iter().map(Seen::StopHooks).collect(),
        }
    }

    /// Where a move leads; `None` if the submission is over.
    fn after(next: Next) -> Option<Self> {
        match next {
            Next::FinishTools => Some(Self::Tools),
            Next::DiscardAnswer => Some(Self::Discard),
            Next::DrainCollapse => Some(Self::Drain),
            Next::ReactiveCompact => Some(Self::Compact),
            Next::RunStopHooks => Some(Self::StopHooks),
            Next::Continue(_) => Some(Self::Ask),
            Next::Stop(_) => None,
        }
    }
}

/// What follows when the same is seen again and again, starting fresh: `T5 T5 T5 → ModelError`.
fn again_and_again(limits: &Limits, reply: Reply, below: &[Seen]) -> String {
    let mut memory = Memory::default();
    let mut path = Vec::new();
    let mut below = below.iter().copied().cycle();
    let mut seen = Seen::Reply(reply);
    loop {
        let gauges = Gauges::default();
        let next = decide(&memory, limits, gauges, seen);
        memory.note(gauges, seen, next);
        match next {
            Next::Stop(terminal) => return format!("{} → {terminal:?}", path.join(" ")),
            Next::Continue(transition) => {
                path.push(transition.name().to_owned());
                seen = Seen::Reply(reply);
            }
            _ => seen = below.next().expect("what is seen in between"),
        }
        assert!(path.len() < 100, "no end: {path:?}");
    }
}

fn check(limits: &Limits, reply: Reply, below: &[Seen], expected: &str) {
    assert_eq!(again_and_again(limits, reply, below), expected, "{reply:?} again and again");
}

#[test]
fn each_reason_to_go_on_has_its_bound() {
    let limits = &Limits {
        turns_max: Some(3),
        fallbacks_max: 2,
        pauses_max: 2,
        stop_hook_blocks_max: 2,
        ..Limits::default()
    };
    let freed = [Seen::Drained { freed: true }];
    let stuck = [Seen::Drained { freed: false }, Seen::Compacted(Compaction::Smaller)];
    let hopeless = [Seen::Drained { freed: false }, Seen::Compacted(Compaction::NoSmaller)];
    let thinking = Reply::Repairable { rung: Rung::Thinking, otherwise: Failure::Api };
    let beta = Reply::Repairable { rung: Rung::Beta, otherwise: Failure::Api };
    let image = Reply::Repairable { rung: Rung::Image, otherwise: Failure::Media };
    let one_block = Reply::Repairable { rung: Rung::Block, otherwise: Failure::Api };
    let every_block = Reply::Repairable { rung: Rung::EveryBlock, otherwise: Failure::Api };
    let every_tool = Reply::Repairable { rung: Rung::EveryTool, otherwise: Failure::Api };
    // T1, X4
    check(limits, Reply::ToolUse, &[Seen::Tools(Tools::Done)], "next_turn next_turn → MaxTurns");
    // T2 at most once in a row, then T3 once, then X5
    let ladder = [freed[0], Seen::Compacted(Compaction::Smaller)];
    check(limits, TOO_LONG, &ladder, "collapse_drain_retry reactive_compact_retry → PromptTooLong");
    check(limits, TOO_LONG, &stuck, "reactive_compact_retry → PromptTooLong");
    check(limits, TOO_LONG, &hopeless, " → PromptTooLong");
    check(limits, HOPELESS, &[], " → PromptTooLong");
    check(limits, FILLED, &ladder, "collapse_drain_retry reactive_compact_retry → PromptTooLong");
    check(limits, FILLED, &stuck, "reactive_compact_retry → PromptTooLong");
    // T3, X6
    check(limits, MEDIA, &[Seen::Compacted(Compaction::Smaller)], "reactive_compact_retry → ImageError");
    check(limits, MEDIA, &[Seen::Compacted(Compaction::NoSmaller)], " → ImageError");
    // T4, T5, X7
    let recovered = "max_output_tokens_recovery max_output_tokens_recovery max_output_tokens_recovery";
    let many = &Limits { turns_max: None, ..limits.clone() };
    check(many, CUT, &[], &format!("{recovered} → ModelError"));
    check(many, FILLED_FOR_GOOD, &[], &format!("{recovered} → ModelError"));
    check(many, CUT_LOW, &[], &format!("max_output_tokens_escalate {recovered} → ModelError"));
    check(many, Reply::ToolUseCut, &[Seen::Tools(Tools::Done)], &format!("{recovered} → ModelError"));
    check(many, Reply::ToolUseCut, &[Seen::Tools(Tools::Repeating)], &format!("{recovered} → ModelError"));
    check(many, Reply::ToolUseCut, &[Seen::Tools(Tools::HookStopped)], " → HookStopped");
    // M4, X7: a broken stream has a bound of its own, beside that of the retries.
    let twice = &Limits { stream_cuts_max: 2, ..limits.clone() };
    check(twice, BROKEN, &[], "stream_cut_retry stream_cut_retry → ModelError");
    check(limits, BROKEN_LAST, &[], " → ModelUnreachable");
    check(limits, BROKEN_ELSEWHERE, &[], "fallback_retry fallback_retry → ModelError");
    let done = [Seen::Tools(Tools::Done)];
    check(limits, BROKEN_CALLS, &done, "next_turn next_turn → MaxTurns");
    check(limits, BROKEN_CALLS_LAST, &done, " → ModelError");
    check(limits, BROKEN_CALLS_ELSEWHERE, &done, "fallback_retry fallback_retry → ModelError");
    // F2, P8: calls that only looked are made, unless another model begins anew.
    check(limits, BROKEN_LOOKS, &done, "next_turn next_turn → MaxTurns");
    check(limits, BROKEN_LOOKS_LAST, &done, " → ModelError");
    let discarded =
        [Seen::Discarded { recorded: true }, Seen::Discarded { recorded: true }, Seen::Tools(Tools::Done)];
    check(limits, BROKEN_LOOKS_ELSEWHERE, &discarded, "fallback_retry fallback_retry → ModelError");
    check(limits, BROKEN_LOOKS_ELSEWHERE, &[Seen::Discarded { recorded: false }], " → Unrecorded");
    // T6, X9
    let block = [Seen::StopHooks(Verdict::Block)];
    check(many, Reply::EndTurn, &block, "stop_hook_blocking stop_hook_blocking → CompletedOverHooks");
    check(limits, Reply::EndTurn, &[Seen::StopHooks(Verdict::Prevent)], " → StopHookPrevented");
    check(limits, Reply::EndTurn, &[Seen::StopHooks(Verdict::Pass)], " → Completed");
    // T8, X7
    check(limits, Reply::Fallback, &[], "fallback_retry fallback_retry → ModelError");
    // M6, T8: an answer in one piece has a bound of its own, beside that of the models.
    let pieces = &Limits { in_one_piece_max: 3, ..limits.clone() };
    check(pieces, Reply::NoStream, &[], "fallback_retry fallback_retry fallback_retry → ModelError");
    // T9, T10, T11
    check(many, PAUSED, &[Seen::StopHooks(Verdict::Pass)], "pause_turn pause_turn → Completed");
    check(many, PAUSED, &[Seen::StopHooks(Verdict::Prevent)], "pause_turn pause_turn → StopHookPrevented");
    check(many, PAUSED_SILENT, &[], "pause_turn pause_turn → NoAnswer");
    check(limits, Reply::Empty, &[], "empty_reply_nudge → NoAnswer");
    check(limits, thinking, &[], "request_repair → ModelError");
    check(limits, beta, &[], "request_repair → ModelError");
    check(limits, one_block, &[], "request_repair → ModelError");
    check(limits, every_block, &[], "request_repair → ModelError");
    check(limits, every_tool, &[], "request_repair → ModelError");
    check(limits, image, &[Seen::Compacted(Compaction::NoSmaller)], "request_repair → ImageError");
    check(
        limits,
        image,
        &[Seen::Compacted(Compaction::Smaller)],
        "request_repair reactive_compact_retry → ImageError",
    );
    // X2, X3, X7, X8, X10
    check(limits, Reply::Aborted, &[], " → AbortedStreaming");
    check(limits, Reply::ToolUse, &[Seen::Tools(Tools::Aborted)], " → AbortedToolExecution");
    check(limits, Reply::ToolUse, &[Seen::Tools(Tools::HookStopped)], " → HookStopped");
    check(limits, Reply::ToolUse, &[Seen::Tools(Tools::Deferred)], " → ToolDeferred");
    check(limits, Reply::Failed(Failure::Api), &[], " → ModelError");
    check(limits, Reply::Failed(Failure::Unreachable), &[], " → ModelUnreachable");
    // Budgets and structured output
    check(limits, Reply::OverBudget(Bought::Answer), &[], " → BudgetExhausted");
    check(limits, Reply::ToolUse, &[Seen::Tools(Tools::Structured)], " → Completed");
    let five = ["structured_output_retry"; 5].join(" ");
    check(&Limits::default(), Reply::Unstructured, &[], &format!("{five} → StructuredOutputRetries"));
    let wrong = [Seen::Tools(Tools::Misstructured)];
    check(&Limits::default(), Reply::ToolUse, &wrong, &format!("{five} → StructuredOutputRetries"));
    let unusable = [Seen::Tools(Tools::Unusable)];
    check(&Limits::default(), Reply::ToolUse, &unusable, "next_turn next_turn → MalformedToolUse");
    let repeating = [Seen::Tools(Tools::Repeating)];
    let stopping = Limits { stop_on_repetition: true, ..Limits::default() };
    check(&stopping, Reply::ToolUse, &repeating, " → Repetitive");
    let bounded = Limits { turns_max: Some(3), ..Limits::default() };
    check(&bounded, Reply::ToolUse, &repeating, "next_turn next_turn → MaxTurns");
    let blocked = decide(&Memory::default(), limits, Gauges::default(), Seen::Blocked(Blocked::ContextFull));
    assert_eq!(blocked, Next::Stop(Terminal::BlockingLimit));
}

#[test]
fn loop_T11_what_was_refused_by_name_is_refused_once_more_with_all_of_its_kind() {
    for (named, all) in [(Rung::Block, Rung::EveryBlock), (Rung::Tool, Rung::EveryTool)] {
        let (limits, gauges, mut memory) = (Limits::default(), Gauges::default(), Memory::default());
        let expected = [
            (named, Next::Continue(Transition::RequestRepair)),
            (all, Next::Continue(Transition::RequestRepair)),
            (named, Next::Stop(Terminal::ModelError)),
            (all, Next::Stop(Terminal::ModelError)),
        ];
        for (rung, expected) in expected {
            let seen = Seen::Reply(Reply::Repairable { rung, otherwise: Failure::Api });
            let next = decide(&memory, &limits, gauges, seen);
            assert_eq!(next, expected, "{rung:?} after {memory:?}");
            memory.note(gauges, seen, next);
        }
    }
}

#[test]
fn loop_T6_tool_use_does_not_reset_the_count_of_blocks() {
    let limits = Limits::default();
    let mut memory = Memory::default();
    let mut step = |seen| {
        let next = decide(&memory, &limits, Gauges::default(), seen);
        memory.note(Gauges::default(), seen, next);
        next
    };
    for _ in 0..8 {
        step(Seen::Reply(Reply::EndTurn));
        assert_eq!(step(Seen::StopHooks(Verdict::Block)), Next::Continue(Transition::StopHookBlocking));
        step(Seen::Reply(Reply::ToolUse));
        step(Seen::Tools(Tools::Done));
    }
    step(Seen::Reply(Reply::EndTurn));
    assert_eq!(step(Seen::StopHooks(Verdict::Block)), Next::Stop(Terminal::CompletedOverHooks));
}

/// Runs a submission whose every trip ends, with so many tokens written by each.
fn continued(wanted: u64, brought: &[u64]) -> usize {
    let limits = Limits { output_tokens_wanted: Some(wanted), ..Limits::default() };
    let mut memory = Memory::default();
    let mut gauges = Gauges::default();
    for (trip, tokens) in brought.iter().enumerate() {
        gauges.output_tokens += tokens;
        for seen in [Seen::Reply(Reply::EndTurn), Seen::StopHooks(Verdict::Pass)] {
            let next = decide(&memory, &limits, gauges, seen);
            memory.note(gauges, seen, next);
            if let Next::Stop(terminal) = next {
                assert_eq!(terminal, Terminal::Completed);
                return trip;
            }
        }
    }
    panic!("still going on after {} trips", brought.len());
}

#[test]
fn loop_B4_more_is_asked_for_until_there_is_enough_or_no_more_to_come() {
    assert_eq!(continued(1_000, &[899, 1]), 1, "90 % is enough");
    assert_eq!(continued(1_000, &[900]), 0);
    assert_eq!(continued(10_000, &[0, 100, 100, 100, 100]), 3, "three small ones in a row end it");
    assert_eq!(
        continued(10_000, &[0, 100, 100, 600, 100, 100, 499]),
        6,
        "a large one starts the count again"
    );
    assert_eq!(continued(10_000, &[500; 40]), 17);
}

/// How far a submission is: grows with every trip, and has a bound.
fn progress(memory: &Memory) -> u64 {
    lasting(memory).iter().sum()
}

/// Counters that nothing may reset within a submission.
fn lasting(memory: &Memory) -> [u64; 14] {
    [
        memory.turns.into(),
        memory.drains.into(),
        memory.compacted.into(),
        memory.escalated.into(),
        memory.output_recoveries.into(),
        memory.stream_cuts.into(),
        memory.in_one_piece.into(),
        memory.stop_hook_blocks.into(),
        memory.budget_continuations.into(),
        memory.fallbacks.into(),
        memory.pauses.into(),
        memory.nudged.into(),
        memory.repairs.into(),
        memory.structured_retries.into(),
    ]
}

/// What became of errors that were held back, kept apart from what the loop itself remembers.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Default)]
struct HeldBack {
    /// The newest, as long as nothing has answered.
    open: Option<Withheld>,
}

impl HeldBack {
    fn saw(&mut self, seen: Seen) {
        match seen {
            Seen::Reply(Reply::Withheld(withheld)) => self.open = Some(withheld),
            Seen::Reply(Reply::OverBudget(Bought::Part)) => {
                self.open = Some(Withheld::OutputTruncated { cap_can_rise: false });
            }
            // The last is said at once, but it is about the same.
            Seen::Reply(
                Reply::Repairable { otherwise: Failure::Media, .. } | Reply::Failed(Failure::Media),
            ) => self.open = Some(Withheld::MediaTooLarge),
            Seen::Reply(
                Reply::ToolUse
                | Reply::ToolUseCut
                | Reply::EndTurn
                | Reply::Unstructured
                | Reply::Paused { .. }
                | Reply::Empty
                | Reply::Refused
                | Reply::OverBudget(Bought::Answer),
            ) => self.open = None,
            _ => {}
        }
    }

    /// What somebody reads at the end is what was not recovered from, and that once.
    fn check_end(self, end: End) {
        use Terminal::{BlockingLimit, ImageError, ModelError, ModelUnreachable, PromptTooLong, RapidRefill};
        let End { terminal, unsaid } = end;
        // A broken stream is told when it breaks. It is an error only if the run ends because of it.
        let cut = matches!(self.open, Some(Withheld::StreamCut { .. }));
        match self.open {
            None => {
                assert_eq!(unsaid, None, "{terminal:?}: an error is shown that was recovered from");
                assert!(!matches!(terminal, PromptTooLong | ImageError), "{terminal:?} without an error");
            }
            Some(_) if cut => assert_eq!(unsaid, None, "{terminal:?}: it was told before"),
            Some(open) => {
                assert!(!terminal.is_well(), "{terminal:?}: {open:?} is neither recovered from nor shown");
                let by_the_end = matches!(
                    terminal,
                    PromptTooLong | ImageError | ModelError | ModelUnreachable | BlockingLimit | RapidRefill
                ) || terminal == Terminal::ToolDeferredUnavailable;
                let shown = usize::from(by_the_end) + usize::from(unsaid.is_some());
                assert_eq!(shown, 1, "{open:?} at {terminal:?}");
                assert!(unsaid.is_none() || unsaid == Some(open), "{unsaid:?} is not {open:?}");
            }
        }
    }
}

/// Every state there is under small bounds, from each everything that can be seen there.
struct Walk {
    states: usize,
    edges: BTreeSet<(Phase, String)>,
    terminals: HashSet<Terminal>,
    transitions: HashSet<Transition>,
    /// Ends with an error that was held back until then.
    shown: usize,
    /// Ends without one, though there was one on the way.
    recovered: usize,
}

fn walk(limits: &Limits, trips_max: u64, output_steps: &[u64]) -> Walk {
    let mut walk = Walk {
        states: 0,
        edges: BTreeSet::new(),
        terminals: HashSet::new(),
        transitions: HashSet::new(),
        shown: 0,
        recovered: 0,
    };
    let mut visited = HashSet::new();
    let mut open = vec![(Memory::default(), Phase::Ask, Gauges::default(), HeldBack::default())];
    while let Some((memory, phase, gauges, held)) = open.pop() {
        walk.states += 1;
        for seen in phase.sights() {
            for brought in if phase == Phase::Ask { output_steps } else { &[0] } {
                let gauges = Gauges { output_tokens: gauges.output_tokens + brought };
                let next = decide(&memory, limits, gauges, seen);
                let mut after = memory;
                after.note(gauges, seen, next);
                let mut held = held;
                held.saw(seen);
                let kept =
                    lasting(&after).iter().zip(lasting(&memory)).all(|(after, before)| *after >= before);
                assert!(kept, "a counter was reset: {memory:?} {seen:?}");
                match next {
                    Next::Stop(terminal) => {
                        walk.terminals.insert(terminal);
                        walk.edges.insert((phase, format!("{terminal:?}")));
                        held.check_end(End { terminal, unsaid: after.left_unsaid(terminal) });
                        let had_one = after.drains > 0 || after.compacted || after.escalated;
                        walk.shown += usize::from(held.open.is_some());
                        walk.recovered += usize::from(held.open.is_none() && had_one);
                    }
                    Next::Continue(transition) => {
                        walk.transitions.insert(transition);
                        walk.edges.insert((phase, format!("Ask: {}", transition.name())));
                        assert!(progress(&after) > progress(&memory) || transition_is_free(transition));
                        assert!(progress(&after) <= trips_max, "no end: {after:?}");
                    }
                    _ => _ = walk.edges.insert((phase, format!("{next:?}"))),
                }
                if let Some(phase) = Phase::after(next) {
                    // Why it last went on is told, never asked for.
                    let mut after = Memory { last: None, ..after };
                    if phase == Phase::Ask {
                        after.withheld = after.withheld.map(in_short);
                        held.open = held.open.map(in_short);
                    }
                    let state = (after, phase, gauges, held);
                    if visited.insert(state) {
                        open.push(state);
                    }
                }
            }
        }
    }
    walk
}

/// What of an error still matters once another question is asked: what it was about.
fn in_short(withheld: Withheld) -> Withheld {
    match withheld {
        Withheld::PromptTooLong { .. } => Withheld::PromptTooLong { can_shrink: true },
        Withheld::WindowFilled { .. } => Withheld::WindowFilled { can_shrink: true },
        Withheld::MediaTooLarge => withheld,
        Withheld::OutputTruncated { .. } => Withheld::OutputTruncated { cap_can_rise: false },
        Withheld::StreamCut { .. } => Withheld::StreamCut { complete: Complete::Text, rest: Rest::Same },
    }
}

/// Whether its bound was counted before it was chosen: compacting is, and that it was tried.
fn transition_is_free(transition: Transition) -> bool {
    transition == Transition::ReactiveCompactRetry
}

fn small() -> Limits {
    Limits {
        turns_max: Some(3),
        drains_max: 1,
        output_recoveries_max: 1,
        stream_cuts_max: 1,
        in_one_piece_max: 1,
        stop_hook_blocks_max: 1,
        output_tokens_wanted: Some(1),
        fallbacks_max: 1,
        pauses_max: 1,
        repairs_max: 1,
        structured_retries_max: 1,
        unusable_in_a_row_max: 2,
        stop_on_repetition: true,
    }
}

/// The walk of all runs with small bounds. Their sum bounds every run: 2 turns and what they are spent on, and 1 each of
/// drains, compactions, escalations, broken streams, answers in one piece, fallbacks and repairs.
static ALL_RUNS: LazyLock<Walk> = LazyLock::new(|| walk(&small(), 11, &[0]));

#[test]
fn every_run_ends_every_bound_holds_and_nothing_resets_it() {
    assert!(ALL_RUNS.states > 10_000, "{} states", ALL_RUNS.states);
    assert_eq!(
        ALL_RUNS.terminals.len(),
        Terminal::ALL.len(),
        "every ending is reachable: {:?}",
        ALL_RUNS.terminals
    );
    assert_eq!(
        ALL_RUNS.transitions.len(),
        Transition::ALL.len(),
        "so is every reason: {:?}",
        ALL_RUNS.transitions
    );
}

#[test]
fn loop_W1_loop_W2_loop_W3_an_error_is_shown_once_if_it_stays_and_never_if_it_does_not() {
    // The walk looks at the end of every run; this many had something to look at.
    assert!(ALL_RUNS.shown > 1_000, "{}", ALL_RUNS.shown);
    assert!(ALL_RUNS.recovered > 1_000, "{}", ALL_RUNS.recovered);
}

#[test]
fn loop_B2_loop_X4_whatever_would_be_asked_the_last_answer_is_the_last() {
    let last = Limits { turns_max: Some(1), output_tokens_wanted: Some(1_000), ..Limits::default() };
    let blocks = [Seen::StopHooks(Verdict::Block)];
    let passes = [Seen::StopHooks(Verdict::Pass)];
    let anew: [(Reply, &[Seen]); 8] = [
        (Reply::ToolUse, &[Seen::Tools(Tools::Done)]),
        (Reply::EndTurn, &blocks),
        (Reply::EndTurn, &passes),
        (CUT, &[]),
        (PAUSED, &[]),
        (Reply::Empty, &[]),
        (Reply::Unstructured, &[]),
        (BROKEN_CALLS_ELSEWHERE, &[Seen::Tools(Tools::Done)]),
    ];
    for (reply, below) in anew {
        let last = Limits { fallbacks_max: 1, ..last.clone() };
        check(&last, reply, below, " → MaxTurns");
        // One more, and one more is asked.
        let two = Limits { turns_max: Some(2), ..last };
        let path = again_and_again(&two, reply, below);
        assert_eq!(path.split(' ').count(), 3, "{reply:?}: {path}");
    }
    // The same once more because it failed is no answer more.
    let failing: [(Reply, &[Seen], &str); 8] = [
        (TOO_LONG, &[Seen::Drained { freed: true }, Seen::Compacted(Compaction::Smaller)], "PromptTooLong"),
        (MEDIA, &[Seen::Compacted(Compaction::Smaller)], "ImageError"),
        (Reply::Repairable { rung: Rung::Beta, otherwise: Failure::Api }, &[], "ModelError"),
        (Reply::Fallback, &[], "ModelError"),
        (Reply::NoStream, &[], "ModelError"),
        (BROKEN_ELSEWHERE, &[], "ModelError"),
        (
            BROKEN_LOOKS_ELSEWHERE,
            &[Seen::Discarded { recorded: true }, Seen::Tools(Tools::Done)],
            "ModelError",
        ),
        (BROKEN, &[], "ModelError"),
    ];
    for (reply, below, end) in failing {
        let last = Limits { fallbacks_max: 1, stream_cuts_max: 1, in_one_piece_max: 1, ..last.clone() };
        let path = again_and_again(&last, reply, below);
        assert!(path.ends_with(end) && !path.starts_with(' '), "{reply:?}: {path}");
    }
    let raised = again_and_again(&last, CUT_LOW, &[]);
    assert_eq!(raised, "max_output_tokens_escalate → MaxTurns");
}

#[test]
fn what_may_be_lost_is_no_success() {
    for terminal in Terminal::ALL {
        assert_eq!(ends_at_once(Seen::Settled { terminal, kept: true }), Some(terminal));
        let lost = if terminal.is_well() { Terminal::Unrecorded } else { terminal };
        assert_eq!(ends_at_once(Seen::Settled { terminal, kept: false }), Some(lost));
    }
    let well: Vec<_> = Terminal::ALL.into_iter().filter(|terminal| terminal.is_well()).collect();
    use Terminal::*;
    assert_eq!(well, [Completed, CompletedOverHooks, StopHookPrevented, HookStopped, ToolDeferred]);
    let said: Vec<_> = Terminal::ALL.into_iter().filter(|terminal| terminal.is_said()).collect();
    assert_eq!(
        said,
        [
            PromptTooLong,
            ImageError,
            ModelError,
            ModelUnreachable,
            MalformedToolUse,
            Repetitive,
            BlockingLimit,
            RapidRefill,
            ToolDeferredUnavailable
        ]
    );
}

#[test]
fn a_broken_answer_with_calls_is_settled_by_them_first() {
    let after = |reply, tools| again_and_again(&Limits::default(), reply, &[Seen::Tools(tools)]);
    for reply in [BROKEN_CALLS, BROKEN_CALLS_LAST, BROKEN_CALLS_ELSEWHERE, BROKEN_LOOKS, BROKEN_LOOKS_LAST] {
        assert_eq!(after(reply, Tools::Structured), " → Completed");
        assert_eq!(after(reply, Tools::HookStopped), " → HookStopped");
        assert_eq!(after(reply, Tools::Deferred), " → ToolDeferred");
        assert_eq!(after(reply, Tools::Aborted), " → AbortedToolExecution");
        assert_eq!(after(reply, Tools::Unrecorded), " → Unrecorded");
    }
    let five = ["structured_output_retry"; 5].join(" ");
    assert_eq!(after(BROKEN_CALLS, Tools::Misstructured), format!("{five} → StructuredOutputRetries"));
    for tools in [Tools::Done, Tools::Unusable, Tools::Repeating, Tools::Misstructured] {
        assert_eq!(after(BROKEN_CALLS_LAST, tools), " → ModelError");
    }
}

#[test]
fn every_run_with_an_output_target_ends() {
    let limits = Limits {
        output_tokens_wanted: Some(1_000),
        turns_max: Some(6),
        drains_max: 0,
        output_recoveries_max: 0,
        stop_hook_blocks_max: 1,
        fallbacks_max: 0,
        pauses_max: 0,
        repairs_max: 0,
        structured_retries_max: 0,
        stream_cuts_max: 0,
        in_one_piece_max: 0,
        ..small()
    };
    // 5 turns and what they are spent on, and 1 each of compactions and escalations.
    let walk = walk(&limits, 12, &[0, 400, 600]);
    assert!(walk.transitions.contains(&Transition::TokenBudgetContinuation));
}

#[test]
fn the_graph_in_the_docs_is_drawn_from_the_code() {
    let mut page = String::from(
        "# The loop\n\nDrawn from `crates/pelton/src/turn/decide.rs` by its own test: every move that some run can make. \
         Rebuild with\n`UPDATE_EXPECT=1 cargo test -p pelton --lib the_graph`.\n\n```mermaid\nflowchart TD\n",
    );
    for phase in Phase::ALL {
        let label = match phase {
            Phase::Ask => "ask the model",
            Phase::Tools => "finish the tools",
            Phase::Discard => "discard the answer",
            Phase::Drain => "commit staged folds",
            Phase::Compact => "compact the context",
            Phase::StopHooks => "ask the stop hooks",
        };
        let _ = writeln!(page, "    {phase:?}[{label}]");
    }
    for (phase, to) in &ALL_RUNS.edges {
        let edge = match to.as_str() {
            "FinishTools" => "--> Tools".to_owned(),
            "DiscardAnswer" => "--> Discard".to_owned(),
            "DrainCollapse" => "--> Drain".to_owned(),
            "ReactiveCompact" => "--> Compact".to_owned(),
            "RunStopHooks" => "--> StopHooks".to_owned(),
            other => match other.strip_prefix("Ask: ") {
                Some(transition) => format!("-- {transition} --> Ask"),
                None => format!("--> {other}([{other}])"),
            },
        };
        let _ = writeln!(page, "    {phase:?} {edge}");
    }
    page.push_str("```\n");
    expect_file!["../../../../docs/loop.md"].assert_eq(&page);
}

#[test]
fn names_are_those_of_the_wire() {
    let names: Vec<&str> = Terminal::ALL.iter().map(|terminal| terminal.name()).collect();
    expect!["completed completed model_error aborted_streaming aborted_tools max_turns prompt_too_long image_error api_error model_error malformed_tool_use_exhausted model_error blocking_limit rapid_refill_breaker stop_hook_prevented hook_stopped tool_deferred tool_deferred_unavailable budget_exhausted structured_output_retry_exhausted turn_setup_failed"]
    .assert_eq(&names.join(" "));
}
