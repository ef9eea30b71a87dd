//! All rules of a session together.

use super::place::{Here, Place};
use super::rule::{Deed, Need, Rule};
use super::update::Behavior;

/// All rules of a session.
///
/// ```
/// use pelton::permission::{Mode, RuleSet};
///
/// let mut rules = RuleSet::default();
/// rules.allow.push("Bash(cargo test:*)".parse()?);
/// rules.deny.push("Read(**/.env)".parse()?);
/// assert_eq!(Mode::from_name("acceptEdits"), Some(Mode::AcceptEdits));
/// # Ok::<(), pelton::permission::RuleError>(())
/// ```
#[derive(Debug, Clone, Default)]
pub struct RuleSet {
    /// What runs without asking.
    pub allow: Vec<Rule>,
    /// What is always asked for.
    pub ask: Vec<Rule>,
    /// What never runs.
    pub deny: Vec<Rule>,
    /// The administrator lets no rule of anybody else allow anything, during the session either.
    pub managed_only: bool,
    /// Nobody switches permissions off.
    pub never_bypass: bool,
}

impl RuleSet {
    /// Whether a bare deny rule takes the tool away altogether.
    pub fn removes(&self, tool: &str) -> bool {
        self.deny.iter().any(|rule| rule.is_bare() && rule.names(tool, Need::Catch))
    }

    /// What is wrong with rules that do not do what they seem to say.
    pub fn warnings(&self) -> Vec<String> {
        let kinds =
            [(&self.deny, Behavior::Deny), (&self.ask, Behavior::Ask), (&self.allow, Behavior::Allow)];
        let warnings = kinds.into_iter().flat_map(|(rules, behavior)| {
            rules.iter().filter_map(move |rule| {
                let warning = rule.warning(behavior)?;
                Some(match &rule.source().file {
                    Some(_) => format!("{warning} ({})", rule.source()),
                    None => warning,
                })
            })
        });
        let mut told: Vec<String> = Vec::new();
        for warning in warnings {
            if !told.contains(&warning) {
                told.push(warning);
            }
        }
        told
    }

    /// The rules of one kind.
    pub fn of(&self, behavior: Behavior) -> &[Rule] {
        match behavior {
            Behavior::Allow => &self.allow,
            Behavior::Ask => &self.ask,
            Behavior::Deny => &self.deny,
        }
    }

    /// The rules of one kind.
    pub fn of_mut(&mut self, behavior: Behavior) -> &mut Vec<Rule> {
        match behavior {
            Behavior::Allow => &mut self.allow,
            Behavior::Ask => &mut self.ask,
            Behavior::Deny => &mut self.deny,
        }
    }

    /// Adds all rules of another set.
    pub fn extend(&mut self, more: Self) {
        self.allow.extend(more.allow);
        self.ask.extend(more.ask);
        self.deny.extend(more.deny);
        self.managed_only |= more.managed_only;
        self.never_bypass |= more.never_bypass;
    }

    /// The rules that restrict.
    pub(super) fn restricting(&self) -> impl Iterator<Item = &Rule> {
        self.deny.iter().chain(&self.ask)
    }

    /// Whether there are files that may not be read without more ado.
    pub(super) fn guards_reading(&self) -> bool {
        self.restricting().any(Rule::guards_reading)
    }

    /// Whether this is such a file.
    pub(super) fn guards(&self, place: &Place, here: &Here) -> bool {
        self.guards_from(Deed::Read, place, here).is_some()
    }

    /// The rule that guards a file from being read or changed.
    pub(super) fn guards_from(&self, deed: Deed, place: &Place, here: &Here) -> Option<&Rule> {
        self.restricting()
            .find(|rule| rule.is_about_files() && rule.covers_file(deed, place, here, Need::Catch))
    }

    /// The rule that lets a file be read or changed.
    pub(super) fn vouching_for(&self, deed: Deed, place: &Place, here: &Here) -> Option<&Rule> {
        self.allow.iter().find(|rule| rule.covers_file(deed, place, here, Need::Vouch))
    }
}
