//! Which models may be asked, and how, as settings say it.

use std::collections::BTreeMap;

use pelton_model::{CacheLife, Effort};

/// Which models may be asked, and how.
///
/// ```
/// use pelton::hooks::Source;
/// use pelton::settings::{Origin, read};
///
/// # let origin = Origin { source: &Source::User, file: "settings.json", anchor: None };
/// let (settings, _) = read(r#"{"availableModels": ["sonnet"], "alwaysThinkingEnabled": false}"#, origin)?;
/// assert_eq!(settings.models.available.as_deref(), Some(&["sonnet".to_owned()][..]));
/// assert_eq!(settings.models.thinks, Some(false));
/// # Ok::<(), pelton::settings::BrokenSettings>(())
/// ```
#[derive(Debug, Clone, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct ModelSettings {
    /// `availableModels`: the only ones that may be chosen. The default may be asked whatever it says, unless that is forbidden.
    pub available: Option<Vec<String>>,
    /// `enforceAvailableModels`: the default is no exception.
    pub enforced: Option<bool>,
    /// `deniedModels`: ones that are never asked.
    pub denied: Vec<String>,
    /// `modelOverrides`: what the server calls models that are known by another id.
    pub ids: BTreeMap<String, String>,
    /// `promptCacheTtl`: how long the server keeps what it was sent.
    pub cache: Option<CacheLife>,
    /// `subagentPromptCacheTtl`: the same of what sub-agents send.
    pub agents_cache: Option<CacheLife>,
    /// `maxEffortLevel`: nobody lets them try harder.
    pub effort_max: Option<Effort>,
    /// `alwaysThinkingEnabled`: whether they think before they answer.
    pub thinks: Option<bool>,
    /// `showThinkingSummaries`: whether something is shown of that.
    pub shows_thinking: Option<bool>,
}

impl ModelSettings {
    pub(super) fn over(self, mut lower: Self) -> Self {
        lower.denied.extend(self.denied);
        lower.ids.extend(self.ids);
        let available = match (lower.available, self.available) {
            (Some(mut models), Some(more)) => {
                models.extend(more);
                Some(models)
            }
            (one, other) => one.or(other),
        };
        Self {
            available,
            // Whoever forbids something has a reason: nobody allows it again.
            enforced: lower.enforced.filter(|enforced| *enforced).or(self.enforced).or(lower.enforced),
            denied: lower.denied,
            ids: lower.ids,
            cache: self.cache.or(lower.cache),
            agents_cache: self.agents_cache.or(lower.agents_cache),
            effort_max: match (self.effort_max, lower.effort_max) {
                (Some(one), Some(other)) => Some(one.min(other)),
                (one, other) => one.or(other),
            },
            thinks: self.thinks.or(lower.thinks),
            shows_thinking: self.shows_thinking.or(lower.shows_thinking),
        }
    }
}
