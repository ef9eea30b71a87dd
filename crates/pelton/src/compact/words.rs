//! What models are asked about a conversation. Our own words; the targets in them are no hard limits.

/// What the small model is told that folds a stretch of a conversation.
pub(crate) const FOLD: &str = include_str!("fold.md");

const SUMMARY: &str = include_str!("summary.md");

/// What the model is asked behind the conversation it is to sum up. `wishes` are the user's.
pub(crate) fn summary_request(wishes: Option<&str>) -> String {
    match wishes.map(str::trim).filter(|wishes| !wishes.is_empty()) {
        Some(wishes) => {
            format!("{}\n\nWhat the user wants you to look after above all: {wishes}", SUMMARY.trim_end())
        }
        None => SUMMARY.trim_end().to_owned(),
    }
}
