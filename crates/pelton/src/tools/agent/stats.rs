//! What an agent did with its tools, in figures.

use serde::Serialize;
use serde_json::Value;

/// How many calls of which kind an agent made, and how many lines they changed.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase")]
#[non_exhaustive]
pub struct ToolStats {
    read_count: u32,
    search_count: u32,
    bash_count: u32,
    edit_file_count: u32,
    lines_added: u64,
    lines_removed: u64,
    other_tool_count: u32,
}

impl ToolStats {
    /// A call of this tool is answered, with this account of it.
    pub(crate) fn add(&mut self, tool: &str, account: Option<&[u8]>) {
        match tool {
            "Read" => self.read_count += 1,
            "Glob" | "Grep" => self.search_count += 1,
            "Bash" => self.bash_count += 1,
            "Edit" | "Write" | "NotebookEdit" => {
                self.edit_file_count += 1;
                let (added, removed) = account.map(changed_lines).unwrap_or_default();
                self.lines_added += added;
                self.lines_removed += removed;
            }
            _ => self.other_tool_count += 1,
        }
    }
}

/// How many lines an edit added and took away, by its own account.
///
/// ```
/// use pelton::tools::changed_lines;
///
/// let account = br#"{"structuredPatch":[{"lines":[" fn main() {","-    a();","+    b();","+    c();"," }"]}]}"#;
/// assert_eq!(changed_lines(account), (2, 1));
/// assert_eq!(changed_lines(br#"{"type":"create","content":"one\ntwo\n"}"#), (2, 0));
/// ```
pub fn changed_lines(account: &[u8]) -> (u64, u64) {
    let Ok(account) = serde_json::from_slice::<Value>(account) else { return (0, 0) };
    // Of a new file there is nothing to differ from.
    if account["type"] == "create" {
        return (account["content"].as_str().unwrap_or_default().lines().count() as u64, 0);
    }
    let hunks = account["structuredPatch"].as_array().into_iter().flatten();
    let lines = hunks.filter_map(|hunk| hunk["lines"].as_array()).flatten().filter_map(Value::as_str);
    lines.fold((0, 0), |(added, removed), line| {
        (added + u64::from(line.starts_with('+')), removed + u64::from(line.starts_with('-')))
    })
}
