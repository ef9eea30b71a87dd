//! Version and beta headers.

use super::{Judge, Rule, Verdict};

/// The version that no longer knows sampling parameters.
pub(super) const VERSION_2026_10: &str = "2026-10-21";
const VERSIONS: [&str; 2] = ["2023-06-01", VERSION_2026_10];

pub(super) fn check(judge: &Judge<'_>) -> Verdict {
    let version = judge.context.version;
    if !VERSIONS.contains(&version) {
        judge.refuse(Rule::Shape, format!("anthropic-version: \"{version}\" is not a valid version"))?;
    }
    let unknown: Vec<String> =
        judge.betas().filter(|beta| !BETAS.contains(beta)).map(|beta| format!("`{beta}`")).collect();
    if !unknown.is_empty() {
        let values = unknown.join(", ");
        let message = format!(
            "Unexpected value(s) {values} for the `anthropic-beta` header. Please consult our documentation at \
             platform.claude.com/docs or try again without the header."
        );
        judge.refuse(Rule::Betas, message)?;
    }
    Ok(())
}

/// Beta names the first-party API accepts, whether or not they still change anything.
const BETAS: &[&str] = &[
    "advanced-tool-use-2025-11-20",
    "advisor-tool-2026-03-01",
    "cache-diagnosis-2026-04-07",
    "claude-code-20250219",
    "code-execution-2025-05-22",
    "code-execution-2025-08-25",
    "compact-2026-01-12",
    "compact-2026-09-04",
    "computer-use-2024-10-22",
    "computer-use-2025-01-24",
    "computer-use-2025-11-24",
    "context-1m-2025-08-07",
    "context-management-2025-06-27",
    "dev-full-thinking-2025-05-14",
    "effort-2025-11-24",
    "extended-cache-ttl-2025-04-11",
    "fallback-credit-2026-06-01",
    "fallback-credit-2026-07-01",
    "fast-mode-2026-02-01",
    "files-api-2025-04-14",
    "fine-grained-tool-streaming-2025-05-14",
    "inline-tools-2026-09-15",
    "interleaved-thinking-2025-05-14",
    "mcp-client-2025-04-04",
    "mcp-client-2025-11-20",
    "mcp-client-2026-09-15",
    "message-batches-2024-09-24",
    "message-threads-2026-08-12",
    "mid-conversation-output-config-2026-07-01",
    "mid-conversation-system-2026-04-07",
    "mid-conversation-system-clear-at-2026-08-21",
    "mid-conversation-tool-changes-2026-07-01",
    "model-context-window-exceeded-2025-08-26",
    "oauth-2025-04-20",
    "output-128k-2025-02-19",
    "output-300k-2026-03-24",
    "pdfs-2024-09-25",
    "per-turn-control-2026-07-01",
    "prompt-caching-2024-07-31",
    "prompt-caching-scope-2026-01-05",
    "redact-thinking-2026-02-12",
    "server-side-fallback-2026-06-01",
    "server-side-fallback-2026-07-01",
    "skills-2025-10-02",
    "structured-outputs-2025-11-13",
    "structured-outputs-2025-12-15",
    "task-budgets-2026-03-13",
    "thinking-binding-controls-2026-08-01",
    "thinking-display-updates-2026-08-18",
    "thinking-token-count-2026-05-13",
    "token-counting-2024-11-01",
    "token-efficient-tools-2025-02-19",
    "tool-search-tool-2025-10-19",
    "user-profiles-2026-03-24",
    "web-fetch-2025-09-10",
    "web-search-2025-03-05",
];
