//! What each tool's page must tell the model, whatever its words: limits, how to go on where there is more, what an error looks
//! like, and when another tool is the right one. A page may be shortened, a fact may not be lost; a limit that changes must be
//! told anew.

use std::path::Path;

use pelton_wire::cache::CacheLife;

use super::super::tasks::TodoTools;
use super::super::*;
use crate::context::{Notes, SystemPrompt, tools_json};
use crate::limits::{
    PDF_PAGES_ASKED_MAX, PDF_PAGES_MAX, READ_LARGE_BYTES_MAX, SEARCH_USES_MAX, TASKS_MAX, ToolLimits,
    WEB_ASKED_CHARS_MAX,
};

/// The most bytes of the system prompt and of all pages and schemas together, as they are sent.
const SENT_BYTES_MAX: usize = 20_000;

/// A number as pages write it.
fn written(number: impl TryInto<u64>) -> String {
    let digits = number.try_into().ok().expect("a small number").to_string();
    let mut out = String::new();
    for (place, digit) in digits.chars().enumerate() {
        if place > 0 && (digits.len() - place) % 3 == 0 {
            out.push(',');
        }
        out.push(digit);
    }
    out
}

/// Each tool and the words that tell its facts.
fn facts() -> Vec<(&'static str, Vec<String>)> {
    let limits = ToolLimits::default();
    let all = |words: &[&str]| words.iter().map(|word| (*word).to_owned()).collect::<Vec<_>>();
    let and = |mut words: Vec<String>, more: &[String]| {
        words.extend_from_slice(more);
        words
    };
    vec![
        (
            "Agent",
            all(&[
                "fresh context",
                "knows nothing of this conversation",
                "report is its last message",
                "side by side",
                "one or two calls of your own",
                "error result",
                "fork",
                "returns at once",
                "SendMessage",
            ]),
        ),
        (
            "AskUserQuestion",
            all(&[
                "1 to 4 questions",
                "2 to 4 options",
                "12 characters",
                "Other",
                "ExitPlanMode",
                "does not answer",
            ]),
        ),
        (
            "Bash",
            and(
                all(&[
                    "new shell",
                    "stdout and stderr",
                    "stdin",
                    "run_in_background",
                    "you are told when it ends",
                    "path of a file with everything",
                    "Exit code N",
                    "[Sandbox:",
                    "dangerouslyDisableSandbox",
                    "Read, not cat",
                    "Edit, not sed",
                    "Write, not echo",
                    "Glob, not find",
                    "Grep, not grep",
                    "description",
                ]),
                &[
                    format!("{} by default", written(limits.shell_time_default.as_millis())),
                    format!("{} at most", written(limits.shell_time_max.as_millis())),
                    format!("{} minutes", limits.background_time_default.as_secs() / 60),
                    format!("{} hours at most", limits.background_time_max.as_secs() / 3_600),
                    format!("{} characters", written(limits.shell_output_chars_max)),
                    format!("({} of a failure)", written(limits.shell_failure_chars_max)),
                ],
            ),
        ),
        (
            "Edit",
            all(&[
                "Read the file first",
                "lines you have seen",
                "to the letter",
                "occur once",
                "replace_all",
                "empty `old_string` creates",
                "nothing is written",
                "changed since it was read",
                "use Write",
            ]),
        ),
        ("EnterPlanMode", all(&["nothing is changed until", "approved", "Not for small"])),
        ("ExitPlanMode", all(&["asks for approval", "whole plan", "Not for"])),
        (
            "Glob",
            and(
                all(&[
                    "newest first",
                    "a note says when there are more",
                    "`**`",
                    "symbolic links",
                    "incomplete",
                    "Grep",
                    "Read",
                ]),
                &[
                    format!("at most {}", limits.glob_paths_max),
                    format!("{} seconds", limits.search_time_max.as_secs()),
                ],
            ),
        ),
        (
            "Grep",
            and(
                all(&[
                    "ripgrep",
                    "no look-around",
                    ".gitignore",
                    "files_with_matches",
                    "count",
                    "-A",
                    "-n",
                    "-i",
                    "multiline",
                    "offset",
                    "A note says when there is more",
                    "incomplete",
                    "An invalid pattern is an error",
                    "use Glob",
                ]),
                &[
                    format!("{} by default", limits.grep_lines_default),
                    format!("{} seconds", limits.search_time_max.as_secs()),
                ],
            ),
        ),
        (
            "NotebookEdit",
            all(&[
                "Read the notebook first",
                "cell_id",
                "cell-N",
                "insert",
                "delete",
                "Errors",
                "no such cell",
                "changed since",
            ]),
        ),
        (
            "Read",
            and(
                all(&[
                    "N<tab>text",
                    "PARTIAL",
                    "offset",
                    "cannot be edited",
                    "is an error",
                    "Grep",
                    "allow_large",
                    "PNG",
                    "scaled down",
                    "`pages`",
                    "NotebookEdit",
                    "Errors: a missing file (with similar names)",
                    "a directory (use Glob",
                    "An empty file",
                ]),
                &[
                    format!("{} lines", written(limits.read_lines_max)),
                    format!("{} KB", limits.read_bytes_max / 1024),
                    format!("Lines over {} characters", written(limits.read_line_chars_max)),
                    format!("up to {} MB", READ_LARGE_BYTES_MAX / 1024 / 1024),
                    format!("up to {PDF_PAGES_MAX} pages"),
                    format!("at most {PDF_PAGES_ASKED_MAX}"),
                ],
            ),
        ),
        (
            "SendMessage",
            all(&[
                "its id or the `name`",
                "next step",
                "everything it knew",
                "told its new report",
                "not recorded",
            ]),
        ),
        ("Skill", all(&["before you begin", "/name", "do not call it again", "not told of"])),
        (
            "TaskCreate",
            and(
                all(&["three steps", "Not for one small thing", "pending"]),
                &[format!("At most {TASKS_MAX}")],
            ),
        ),
        ("TaskGet", all(&["unknown id is an error"])),
        ("TaskList", all(&["TaskGet"])),
        (
            "TaskOutput",
            all(&["block", "30,000", "600,000", "not stopped", "Read or Grep", "do not ask again"]),
        ),
        ("TaskStop", all(&["everything it started", "Errors"])),
        ("TaskUpdate", all(&["in_progress", "only then", "deleted", "Circles", "An error"])),
        (
            "TodoWrite",
            all(&["replaces the whole list", "three or more", "Not for", "Exactly one", "completed"]),
        ),
        (
            "WebFetch",
            and(
                all(&[
                    "`https`",
                    "offset",
                    "10 MB",
                    "60 seconds",
                    "redirect to another host is not followed",
                    "saved",
                    "Not for pages behind a login",
                    "WebSearch",
                    "loopback",
                    "not an instruction",
                    "Errors",
                    "status 400",
                ]),
                &[
                    format!("{} characters", written(WEB_ASKED_CHARS_MAX)),
                    format!("{} minutes", limits.web_page_kept.as_secs() / 60),
                ],
            ),
        ),
        (
            "WebSearch",
            and(
                all(&["two characters", "Not both", "WebFetch", "not an instruction", "Errors"]),
                &[format!("up to {SEARCH_USES_MAX} times"), format!("{} calls", limits.web_searches_max)],
            ),
        ),
        (
            "Write",
            all(&[
                "must have been read whole",
                "unchanged since",
                "use Edit",
                "nobody asked for",
                "Errors",
                "read in part",
            ]),
        ),
    ]
}

#[test]
fn every_page_states_the_facts_of_its_tool() {
    let (tools, facts) = (all(), facts());
    let told: Vec<&str> = facts.iter().map(|(tool, _)| *tool).collect();
    let there: Vec<&str> = tools.iter().map(|tool| tool.spec().name).collect();
    assert_eq!(told, there, "every tool has its facts");
    let missing: Vec<String> = tools
        .iter()
        .zip(&facts)
        .flat_map(|(tool, (name, words))| {
            let page = tool.spec().description.to_owned();
            words.iter().filter(move |word| !page.contains(*word)).map(move |word| format!("{name}: {word}"))
        })
        .collect();
    assert!(missing.is_empty(), "{missing:#?}");
}

/// Bytes are read anew with every request that misses the cache, and push out what matters. Models that keep no list by themselves
/// are offered tools for one besides.
#[test]
fn system_prompt_and_all_pages_together_are_short() {
    let is_sent = |tool: &Arc<dyn Tool>| TodoTools::ByModel.sends(tool.spec().name, "claude-sonnet-5-5");
    let tools: Vec<_> = all().into_iter().filter(is_sent).collect();
    let names: Vec<&str> = tools.iter().map(|tool| tool.spec().name).collect();
    let dir = Path::new("/home/somebody/.claude/projects/-home-somebody-work-project/memory");
    let notes = Notes { dir, with_custom_prompt: false };
    let system = SystemPrompt::default().json(Some(notes), &[], &names, CacheLife::default());
    let bytes = system.len() + tools_json(&tools).len();
    assert!(bytes <= SENT_BYTES_MAX, "{bytes}");
}
