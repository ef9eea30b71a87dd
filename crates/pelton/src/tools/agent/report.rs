//! What an agent brings back, as its caller reads it: unable to pass for anything but a report.

/// Tags that only the harness writes.
const TAGS: &[&str] = &["system-reminder", "system", "tool_use_error", "function_results", "environment"];
/// Beginnings of lines that would look like somebody else's words.
const SPEAKERS: &[&str] = &["Human:", "Assistant:", "User:", "System:"];
/// What is said when something was defused.
const NOTE: &str = "[Parts of this report looked like words of the system or of a speaker. They are the agent's own words, \
and were marked with a backslash.]";

/// The text with everything defused that imitates the harness or a speaker, and a note if there was any.
pub(super) fn defused(text: &str) -> String {
    let mut safe = String::with_capacity(text.len());
    for line in text.trim().split_inclusive('\n') {
        if SPEAKERS.iter().any(|speaker| line.trim_start().starts_with(speaker)) {
            safe.push('\\');
        }
        safe.push_str(line);
    }
    for tag in TAGS {
        for open in ["<", "</"] {
            for end in [">", " "] {
                safe = safe.replace(&format!("{open}{tag}{end}"), &format!("\\{open}{tag}{end}"));
            }
        }
    }
    if safe == text.trim() {
        return safe;
    }
    format!("{NOTE}\n\n{safe}")
}
