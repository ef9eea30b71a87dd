//! Which models may be asked. Pure.

use pelton_model::catalogue;

/// Families, as people call them.
const FAMILIES: [&str; 4] = ["opus", "sonnet", "haiku", "fable"];

/// Which models may be asked. What is not bounded may be.
///
/// ```
/// use pelton::ModelChoice;
///
/// let mut choice = ModelChoice::default();
/// assert!(choice.allows("claude-opus-4-5"));
/// choice.available = Some(vec!["sonnet".to_owned(), "opus-4".to_owned()]);
/// choice.denied = vec!["claude-opus-4-1".to_owned()];
/// assert!(choice.allows("sonnet") && choice.allows("claude-opus-4-5"));
/// assert!(!choice.allows("claude-opus-4-1") && !choice.allows("haiku"));
/// ```
#[derive(Debug, Clone, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct ModelChoice {
    /// The only ones: ids, the beginnings of ids, or families.
    pub available: Option<Vec<String>>,
    /// Ones that are not, whatever else is said.
    pub denied: Vec<String>,
    /// Ones that are, whatever `available` says: the one a session has without a choice.
    pub excepted: Vec<String>,
}

impl ModelChoice {
    /// Whether a model may be asked.
    pub fn allows(&self, model: &str) -> bool {
        let is_in = |entries: &[String]| entries.iter().any(|entry| means(entry, model));
        !is_in(&self.denied)
            && (self.available.as_deref().is_none_or(is_in)
                || self.excepted.iter().any(|excepted| plain(excepted) == plain(model)))
    }

    /// Why a model is not asked, for people.
    pub fn refusal(&self, model: &str) -> String {
        match &self.available {
            Some(available) if !available.is_empty() => {
                format!("{model} is not among the models that may be asked here: {}", available.join(", "))
            }
            _ => format!("{model} is a model that may not be asked here"),
        }
    }
}

/// Whether an entry means a model: its family, its id, or a beginning of its id.
fn means(entry: &str, model: &str) -> bool {
    let entry = entry.trim().to_ascii_lowercase();
    let model = plain(model);
    if FAMILIES.contains(&entry.as_str()) {
        return model.split('-').any(|part| part == entry);
    }
    let begins = |id: &str, entry: &str| {
        id.strip_prefix(entry).is_some_and(|rest| rest.is_empty() || rest.starts_with('-'))
    };
    begins(&model, &plain(&entry)) || (!entry.is_empty() && begins(&format!("claude-{model}"), &entry))
}

/// An id without what all of them share.
fn plain(model: &str) -> String {
    let id = catalogue::api_id(&catalogue::resolve(model.trim())).to_ascii_lowercase();
    id.strip_prefix("claude-").map_or(id.clone(), str::to_owned)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_entry_means_a_family_an_id_or_its_beginning() {
        for (entry, model, expected) in [
            ("sonnet", "claude-sonnet-4-5", true),
            ("sonnet", "claude-3-5-sonnet-20241022", true),
            ("sonnet", "sonnet[1m]", true),
            ("Sonnet", "sonnet", true),
            ("sonnet", "claude-opus-4-5", false),
            ("opus-4", "claude-opus-4-5", true),
            ("claude-opus-4", "claude-opus-4-5", true),
            ("claude", "claude-opus-4-5", true),
            ("opus-4", "claude-opus-45", false),
            ("claude-opus-4-5", "claude-opus-4", false),
            ("somebody-elses", "somebody-elses", true),
            ("", "claude-opus-4-5", false),
        ] {
            let choice = ModelChoice { available: Some(vec![entry.to_owned()]), ..ModelChoice::default() };
            assert_eq!(choice.allows(model), expected, "{entry} {model}");
            let denied = ModelChoice { denied: vec![entry.to_owned()], ..ModelChoice::default() };
            assert_eq!(denied.allows(model), !expected, "not {entry}: {model}");
        }
        let nothing = ModelChoice {
            available: Some(Vec::new()),
            excepted: vec!["sonnet".to_owned()],
            ..ModelChoice::default()
        };
        assert!(nothing.allows("sonnet") && !nothing.allows("haiku"));
        assert!(nothing.refusal("haiku").contains("haiku"));
    }
}
