//! What of a directory counts before somebody has said that it is trusted. One table, for runs that somebody watches and for
//! those that nobody does.

/// Something a repository brings along. See [`untrusted`].
///
/// ```
/// use pelton::settings::{Brought, Treatment, Watched, untrusted};
///
/// // What a repository brings along restricts at once, and grants nothing before somebody trusts it.
/// assert_eq!(untrusted(Brought::Restrictions, Watched::Interactive), Treatment::Used);
/// assert_ne!(untrusted(Brought::Grants, Watched::Interactive), Treatment::Used);
/// ```
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum Brought {
    /// Deny and ask rules: they only restrict.
    Restrictions,
    /// Allow rules, further directories, wider modes: what a repository would grant itself.
    Grants,
    /// Hooks, variables and helper programs of settings.
    Programs,
    /// Hooks, servers and header helpers in the definition of a sub-agent.
    AgentExtras,
    /// Servers of tools.
    Servers,
}

/// Whether somebody watches. See [`untrusted`].
///
/// ```
/// use std::io::IsTerminal;
///
/// use pelton::settings::{Brought, Treatment, Watched, untrusted};
///
/// let watched = if std::io::stdin().is_terminal() { Watched::Interactive } else { Watched::Unattended };
/// assert_eq!(untrusted(Brought::Restrictions, watched), Treatment::Used); // whoever watches
/// ```
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Watched {
    /// A person who can be asked.
    Interactive,
    /// Nobody: a print run, or a program.
    Unattended,
}

/// What becomes of it. See [`untrusted`].
///
/// ```
/// use pelton::settings::{Brought, Treatment, Watched, untrusted};
///
/// let wants_a_warning = untrusted(Brought::Grants, Watched::Unattended) == Treatment::LeftWithWarning;
/// assert!(wants_a_warning);
/// ```
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum Treatment {
    /// It counts.
    Used,
    /// It does not count.
    Left,
    /// It does not count, and one warning says so.
    LeftWithWarning,
    /// Each one is asked about, and the answer holds as long as it is not changed.
    AskedOneByOne,
}

/// What becomes of something that came with a directory nobody has trusted.
///
/// ```
/// use pelton::settings::{Brought, Treatment, Watched, untrusted};
///
/// assert_eq!(untrusted(Brought::Restrictions, Watched::Unattended), Treatment::Used);
/// assert_eq!(untrusted(Brought::Grants, Watched::Unattended), Treatment::LeftWithWarning);
/// ```
pub fn untrusted(brought: Brought, watched: Watched) -> Treatment {
    match (brought, watched) {
        (Brought::Restrictions, _) => Treatment::Used,
        (Brought::Grants, Watched::Interactive) => Treatment::Left,
        (Brought::Grants, Watched::Unattended) => Treatment::LeftWithWarning,
        (Brought::Programs, Watched::Interactive) => Treatment::Left,
        // Setups in use depend on it; it is switched off with the project's settings as a whole.
        (Brought::Programs, Watched::Unattended) => Treatment::Used,
        (Brought::AgentExtras, _) => Treatment::Left,
        (Brought::Servers, Watched::Interactive) => Treatment::AskedOneByOne,
        (Brought::Servers, Watched::Unattended) => Treatment::Used,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn before_trust_a_directory_restricts_and_grants_nothing() {
        for watched in [Watched::Interactive, Watched::Unattended] {
            assert_eq!(untrusted(Brought::Restrictions, watched), Treatment::Used);
            assert_ne!(untrusted(Brought::Grants, watched), Treatment::Used);
            assert_eq!(untrusted(Brought::AgentExtras, watched), Treatment::Left);
        }
        for brought in [Brought::Grants, Brought::Programs, Brought::AgentExtras, Brought::Servers] {
            assert_ne!(
                untrusted(brought, Watched::Interactive),
                Treatment::Used,
                "{brought:?} before anybody was asked"
            );
        }
    }
}
