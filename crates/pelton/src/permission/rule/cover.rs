//! Whether one rule speaks of all that another speaks of: for those who look for rules that never decide anything.

use super::{Need, Rule, Specifier};

impl Rule {
    /// Whether every call that the other speaks of is one that this speaks of, as far as their texts show it.
    pub(crate) fn covers(&self, other: &Self) -> bool {
        if !self.names(other.tool(), Need::Catch) {
            return false;
        }
        match (&self.said.specifier, &other.said.specifier) {
            (Specifier::Any, _) => true,
            (Specifier::Command(one, None), Specifier::Command(two, None))
            | (Specifier::Name(one), Specifier::Name(two)) => one.covers(two),
            (Specifier::Host(one), Specifier::Host(two)) => {
                one == two || other.content().is_some_and(|host| two.is_one() && one.matches(bare_host(host)))
            }
            (Specifier::Path(_), Specifier::Path(_)) => {
                let (one, two) = (self.content().unwrap_or_default(), other.content().unwrap_or_default());
                let below = |folder: &str| two.strip_prefix(folder).is_some_and(|rest| rest.starts_with('/'));
                // Where they begin may be elsewhere.
                self.anchor() == other.anchor()
                    && (one == two || one.strip_suffix("/**").is_some_and(below))
                    && !two.contains("..")
            }
            _ => self == other,
        }
    }

    /// Whether it means one command and no other. Some commands are allowed by such a rule only.
    pub(crate) fn is_exact_command(&self) -> bool {
        matches!(&self.said.specifier, Specifier::Command(pattern, _) if pattern.is_exact())
    }
}

fn bare_host(content: &str) -> &str {
    content.trim().strip_prefix("domain:").unwrap_or(content)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_rule_covers_what_cannot_match_without_it() {
        for (one, two, expected) in [
            ("Bash", "Bash(ls *)", true),
            ("Bash(ls *)", "Bash", false),
            ("Bash(git *)", "Bash(git log *)", true),
            ("Bash(git:*)", "Bash(git log)", true),
            ("Bash(git *)", "Bash(git)", true),
            ("Bash(git*)", "Bash(git *)", true),
            ("Bash(git *)", "Bash(git*)", false),
            ("Bash(git log *)", "Bash(git *)", false),
            ("Bash(* --version)", "Bash(node --version)", true),
            ("Bash(* --version)", "Bash(node *)", false),
            ("Bash(npm * test)", "Bash(npm * test)", true),
            ("Read(src/**)", "Read(src/a.rs)", true),
            ("Read(src/**)", "Read(srcs/a.rs)", false),
            ("Read(src/**)", "Read(src/../.env)", false),
            ("Read(src/**)", "Edit(src/a.rs)", false),
            ("WebFetch(domain:*.x.org)", "WebFetch(domain:a.x.org)", true),
            ("WebFetch(domain:*.x.org)", "WebFetch(domain:x.org)", false),
            ("WebFetch(domain:a.x.org)", "WebFetch(domain:*.x.org)", false),
            ("mcp__a", "mcp__a__b", true),
            ("mcp__*", "mcp__a__b", true),
            ("mcp__a__b", "mcp__a", false),
            ("Task", "Agent(reviewer)", true),
            ("Agent(model:opus)", "Agent(model:opus)", true),
            ("Agent(model:opus)", "Agent(reviewer)", false),
        ] {
            let (one, two): (Rule, Rule) = (one.parse().unwrap(), two.parse().unwrap());
            assert_eq!(one.covers(&two), expected, "{one} {two}");
        }
    }
}
