//! What may run in a session, as it stands now: what it started with, and what was changed since.

use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, PoisonError};

use super::decision::{Cause, Decision};
use super::gate::{Access, Gate, Judged};
use super::keep::{Keeper, Kept};
use super::mode::Mode;
use super::place::Own;
use super::rule::{Need, Rule};
use super::rules::RuleSet;
use super::source::{Layer, RuleSource};
use super::update::{Behavior, Change, Destination, Update};
use crate::limits::{DIRECTORIES_ADDED_MAX, RULES_ADDED_MAX};

/// What may run in a session. All clones are one; a change holds from the next judgement on.
///
/// ```
/// # use futures::StreamExt;
/// # use pelton_model::{Auth, Endpoint, Secret};
/// # use pelton_testkit::{Script, text, tool};
/// # #[tokio::main(flavor = "current_thread")]
/// # async fn main() -> Result<(), Box<dyn std::error::Error>> {
/// # let dir = tempfile::tempdir()?;
/// # let model = Script::new().start().await?;
/// # let endpoint = Endpoint::new(model.base_url(), Auth::ApiKey(Secret::new("any")));
/// use pelton::permission::{Change, Mode, Update};
/// use pelton::{Engine, Options};
///
/// let engine = Engine::new(Options::new(dir.path(), endpoint))?;
/// let permissions = engine.permissions(); // a handle: change it at any time, also while a submission runs
/// permissions.apply(&Update::session(Change::SetMode(Mode::Plan)))?;
/// assert_eq!(permissions.mode(), Mode::Plan);
/// # Ok(())
/// # }
/// ```
#[derive(Debug, Clone)]
pub struct Permissions(Arc<Mutex<Standing>>);

#[derive(Debug)]
struct Standing {
    /// What the session started with.
    rules: RuleSet,
    /// The directory it started in, and its other ones.
    start: PathBuf,
    directories: Vec<PathBuf>,
    /// Those it started with.
    begun_with: Vec<PathBuf>,
    home: Option<PathBuf>,
    /// Directories of the session itself.
    own: Own,
    mode: Mode,
    /// What updates brought, in the order they came.
    added: Vec<(Destination, Behavior, Rule)>,
    /// What holds for the submission that runs now.
    lent: Loan,
    /// Who keeps changes beyond the session.
    kept: Kept,
    /// All of it together.
    gate: Arc<Gate>,
}

/// A change that was not made, because there are too many already.
///
/// ```
/// use pelton::permission::{Behavior, Change, Mode, Permissions, RuleSet, Update};
///
/// let permissions = Permissions::new(RuleSet::default(), Mode::Default, "/".into(), Vec::new(), None);
/// let rules = (0..2_000).map(|n| format!("Bash(make {n})").parse()).collect::<Result<_, _>>()?;
/// let refused = permissions.apply(&Update::session(Change::AddRules(Behavior::Allow, rules)));
/// assert!(refused.is_err_and(|error| error.to_string().contains("at most 1000 rules")));
/// # Ok::<(), pelton::permission::RuleError>(())
/// ```
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("not changed: a session takes at most {most} {what} on top of those it started with")]
pub struct TooMany {
    most: usize,
    what: &'static str,
}

impl Permissions {
    /// `start` is the directory the session starts in; `directories` are further ones.
    pub fn new(
        rules: RuleSet,
        mode: Mode,
        start: PathBuf,
        directories: Vec<PathBuf>,
        home: Option<PathBuf>,
    ) -> Self {
        let gate = Arc::new(Gate::new(Arc::default(), mode, &[], None));
        let mut standing = Standing {
            rules,
            start,
            begun_with: directories.clone(),
            directories,
            home,
            own: Own::default(),
            mode,
            added: Vec::new(),
            lent: Loan::default(),
            kept: Kept::default(),
            gate,
        };
        standing.build();
        Self(Arc::new(Mutex::new(standing)))
    }

    /// How much runs without asking.
    pub fn mode(&self) -> Mode {
        self.with(|standing| standing.mode)
    }

    /// All rules that hold now.
    pub fn rules(&self) -> RuleSet {
        self.with(|standing| standing.all_rules())
    }

    /// The working directories, the one the session started in first.
    pub fn roots(&self) -> Vec<PathBuf> {
        self.with(|standing| standing.roots())
    }

    /// The user's home, if it is known.
    pub(crate) fn home(&self) -> Option<PathBuf> {
        self.with(|standing| standing.home.clone())
    }

    /// Whether a call may run by what holds now, and why. Nothing is run.
    pub fn judge(&self, call: &Judged<'_>) -> Decision {
        self.gate().judge(call)
    }

    /// Whether a rule, as settings write it, speaks of a call: of the tool itself, not of what else it might touch. What nobody can tell
    /// counts as yes.
    pub(crate) fn speak_of(&self, rule: &str, call: &Judged<'_>) -> bool {
        let Ok(mut rule) = rule.parse::<Rule>() else { return true };
        if rule.is_bare() {
            return rule.names(call.tool, Need::Catch);
        }
        let governing = match call.access {
            Access::Edit(_) => "Edit",
            Access::Read(_) => "Read",
            _ => "",
        };
        let is_by_field = rule.content().is_some_and(|content| content.contains(':'));
        if rule.tool() == call.tool && rule.tool() != governing && !governing.is_empty() && !is_by_field {
            // Permissions know files by two names of tools; here every tool goes by its own.
            match format!("{governing}({})", rule.content().unwrap_or("*")).parse() {
                Ok(same) => rule = same,
                Err(_) => return true,
            }
        } else if rule.is_about_files() && rule.tool() != governing {
            // A command may touch files, too, but is not the tool that was named.
            return false;
        }
        let mut rules = RuleSet::default();
        rules.deny.push(rule);
        // Nothing else stands in the way, so whatever is not let through is what the rule is about, or may be.
        let gate = Gate::new(Arc::new(rules), Mode::BypassPermissions, &self.roots(), self.home());
        let decision = gate.judge(call);
        decision.rule.is_some() || decision.cause == Cause::Unclear
    }

    /// The changes that were made for the session alone, and stand: with them another session of the same directory begins where this one
    /// is.
    ///
    /// ```
    /// use pelton::permission::{Behavior, Change, Mode, Permissions, RuleSet, Update};
    ///
    /// let of = || Permissions::new(RuleSet::default(), Mode::Default, "/".into(), Vec::new(), None);
    /// let (one, other) = (of(), of());
    /// one.apply(&Update::session(Change::AddRules(Behavior::Allow, vec!["Bash(make:*)".parse()?])))?;
    /// one.apply(&Update::session(Change::AddDirectories(vec!["/srv".into()])))?;
    /// for change in one.changes_of_session() {
    ///     other.apply(&change)?;
    /// }
    /// assert_eq!((one.rules().allow, one.roots()), (other.rules().allow, other.roots()));
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    pub fn changes_of_session(&self) -> Vec<Update> {
        self.with(|standing| standing.changes_of_session())
    }

    /// Judges by what holds now.
    pub fn gate(&self) -> Arc<Gate> {
        self.with(|standing| Arc::clone(&standing.gate))
    }

    /// Whether a rule lets this very host be asked: by its whole name, without a star.
    pub(crate) fn name_host(&self, tool: &str, host: &str) -> bool {
        self.with(|standing| standing.all_rules().allow.iter().any(|rule| rule.is_for_host(tool, host)))
    }

    /// Lets a directory be read in which the session keeps what is too long to be told.
    pub(crate) fn let_read(&self, dir: &Path) {
        self.with(|standing| {
            if !standing.own.kept.iter().any(|own| own == dir) {
                standing.own.kept.push(dir.to_path_buf());
                standing.build();
            }
        });
    }

    /// Lets notes be kept in a directory, which is there for nothing else.
    pub(crate) fn let_note(&self, dir: &Path) {
        self.with(|standing| {
            if !standing.own.notes.iter().any(|own| own == dir) {
                standing.own.notes.push(dir.to_path_buf());
                standing.build();
            }
        });
    }

    /// The settings are not what they were when the session started: these rules and further directories hold instead. What was
    /// changed during the session stays.
    pub(crate) fn start_over_with(&self, rules: RuleSet, directories: Vec<PathBuf>) {
        self.with(|standing| {
            standing.rules = rules;
            let before = std::mem::replace(&mut standing.begun_with, directories);
            let begun_with = &standing.begun_with;
            standing.directories.retain(|dir| !before.contains(dir) || begun_with.contains(dir));
            let come = begun_with.iter().filter(|dir| !before.contains(dir)).cloned();
            let come: Vec<PathBuf> = come.filter(|dir| !standing.directories.contains(dir)).collect();
            standing.directories.extend(come);
            standing.build();
        });
    }

    /// Makes a change, for the rest of the session.
    pub fn apply(&self, update: &Update) -> Result<(), TooMany> {
        self.with(|standing| standing.apply(update))
    }

    /// Has changes kept beyond the session, by this one.
    pub(crate) fn kept_by(self, keeper: Option<Arc<dyn Keeper>>) -> Self {
        self.with(|standing| standing.kept = Kept(keeper));
        self
    }

    /// Makes a change, and has it kept if it is meant to outlast the session. Says what is wrong.
    pub(crate) fn apply_and_keep(&self, update: &Update) -> Vec<String> {
        if let Err(error) = self.apply(update) {
            return vec![error.to_string()];
        }
        // Not under the lock: writing a file takes its time.
        let kept = self.with(|standing| standing.kept.clone());
        let not_kept = |error| format!("allowed for this session, but not kept: {error}");
        kept.keep(update).err().map(not_kept).into_iter().collect()
    }

    /// Who keeps changes beyond the session.
    pub(crate) fn keeper(&self) -> Option<Arc<dyn Keeper>> {
        self.with(|standing| standing.kept.0.clone())
    }

    /// Lets calls run that these rules match, and others not, until what is returned is dropped.
    pub(crate) fn lend(&self, loan: Loan) -> Lent {
        self.set_lent(loan);
        Lent(self.clone())
    }

    /// The same for more calls, until what [`lend`](Self::lend) returned is dropped.
    pub(crate) fn lend_more(&self, loan: &Loan) {
        let mut all = self.with(|standing| standing.lent.clone());
        let more = |known: &mut Vec<Rule>, rules: &[Rule]| {
            let new: Vec<Rule> = rules.iter().filter(|rule| !known.contains(rule)).cloned().collect();
            known.extend(new);
        };
        more(&mut all.allowed, &loan.allowed);
        more(&mut all.denied, &loan.denied);
        self.set_lent(all);
    }

    fn set_lent(&self, loan: Loan) {
        self.with(|standing| {
            if standing.lent != loan {
                standing.lent = loan;
                standing.build();
            }
        });
    }

    fn with<T>(&self, use_it: impl FnOnce(&mut Standing) -> T) -> T {
        use_it(&mut self.0.lock().unwrap_or_else(PoisonError::into_inner))
    }
}

/// Rules for one submission.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(crate) struct Loan {
    /// What may run without asking.
    pub allowed: Vec<Rule>,
    /// What may not run.
    pub denied: Vec<Rule>,
}

impl Loan {
    pub fn is_empty(&self) -> bool {
        self.allowed.is_empty() && self.denied.is_empty()
    }
}

/// Permissions for a while: until it is dropped.
#[derive(Debug)]
pub(crate) struct Lent(Permissions);

impl Drop for Lent {
    fn drop(&mut self) {
        self.0.set_lent(Loan::default());
    }
}

impl Standing {
    fn apply(&mut self, update: &Update) -> Result<(), TooMany> {
        let to = update.destination;
        match &update.change {
            Change::AddRules(behavior, rules) => self.add(to, *behavior, rules)?,
            Change::ReplaceRules(behavior, rules) => {
                self.added.retain(|(at, what, _)| (*at, *what) != (to, *behavior));
                self.forget(to, *behavior, |_| true);
                self.add(to, *behavior, rules)?;
            }
            Change::RemoveRules(behavior, rules) => {
                self.added
                    .retain(|(at, what, rule)| (*at, *what) != (to, *behavior) || !rules.contains(rule));
                self.forget(to, *behavior, |rule| rules.contains(rule));
            }
            Change::SetMode(Mode::BypassPermissions) if self.rules.never_bypass => {}
            Change::SetMode(mode) => self.mode = *mode,
            Change::AddDirectories(directories) => {
                let absolute = directories.iter().map(|directory| self.start.join(directory));
                let mut wanted = self.directories.clone();
                for directory in absolute {
                    if directory != self.start && !wanted.contains(&directory) {
                        wanted.push(directory);
                    }
                }
                bounded(wanted.len(), DIRECTORIES_ADDED_MAX, "directories")?;
                self.directories = wanted;
            }
            Change::RemoveDirectories(directories) => {
                let gone =
                    |here: &Path| directories.iter().any(|directory| self.start.join(directory) == here);
                let kept = self.directories.iter().filter(|directory| !gone(directory));
                self.directories = kept.cloned().collect();
            }
        }
        self.build();
        Ok(())
    }

    fn add(&mut self, to: Destination, behavior: Behavior, rules: &[Rule]) -> Result<(), TooMany> {
        let known = |rule: &Rule| {
            self.added.iter().any(|(at, what, known)| (*at, *what) == (to, behavior) && known == rule)
        };
        let mut new: Vec<_> = rules.iter().filter(|rule| !known(rule)).cloned().collect();
        new.dedup();
        bounded(self.added.len() + new.len(), RULES_ADDED_MAX, "rules")?;
        let source = RuleSource::layer(layer(to));
        self.added.extend(new.into_iter().map(|rule| (to, behavior, rule.with_source(source.clone()))));
        Ok(())
    }

    /// Takes back rules that the session started with, where they stand in a file that the change is made in, too.
    fn forget(&mut self, to: Destination, behavior: Behavior, which: impl Fn(&Rule) -> bool) {
        if to != Destination::Session {
            self.rules.of_mut(behavior).retain(|rule| rule.source().layer != layer(to) || !which(rule));
        }
    }

    fn changes_of_session(&self) -> Vec<Update> {
        let mut changes = Vec::new();
        for behavior in [Behavior::Allow, Behavior::Ask, Behavior::Deny] {
            let of_session =
                self.added.iter().filter(|(to, what, _)| (*to, *what) == (Destination::Session, behavior));
            let rules: Vec<Rule> = of_session.map(|(.., rule)| rule.clone()).collect();
            if !rules.is_empty() {
                changes.push(Update::session(Change::AddRules(behavior, rules)));
            }
        }
        let only = |these: &[PathBuf], others: &[PathBuf]| -> Vec<PathBuf> {
            these.iter().filter(|dir| !others.contains(dir)).cloned().collect()
        };
        let (come, gone) =
            (only(&self.directories, &self.begun_with), only(&self.begun_with, &self.directories));
        changes.extend((!come.is_empty()).then(|| Update::session(Change::AddDirectories(come))));
        changes.extend((!gone.is_empty()).then(|| Update::session(Change::RemoveDirectories(gone))));
        changes
    }

    fn build(&mut self) {
        let rules = Arc::new(self.all_rules());
        let gate = Gate::with_own(rules, self.mode, &self.roots(), self.home.clone(), &self.own);
        self.gate = Arc::new(gate);
    }

    fn all_rules(&self) -> RuleSet {
        let mut rules = self.rules.clone();
        for (_, behavior, rule) in &self.added {
            rules.of_mut(*behavior).push(rule.clone());
        }
        rules.allow.extend(self.lent.allowed.iter().cloned());
        rules.deny.extend(self.lent.denied.iter().cloned());
        if rules.managed_only {
            rules.allow.retain(|rule| rule.source().layer == Layer::Managed);
        }
        rules
    }

    fn roots(&self) -> Vec<PathBuf> {
        std::iter::once(&self.start).chain(&self.directories).cloned().collect()
    }
}

/// Whose word a change is that was made during the session.
fn layer(destination: Destination) -> Layer {
    match destination {
        Destination::Session => Layer::Session,
        Destination::LocalSettings => Layer::Local,
        Destination::ProjectSettings => Layer::Project,
        Destination::UserSettings => Layer::User,
        Destination::CliArg => Layer::CommandLine,
    }
}

fn bounded(count: usize, most: usize, what: &'static str) -> Result<(), TooMany> {
    if count > most { Err(TooMany { most, what }) } else { Ok(()) }
}

#[cfg(test)]
mod tests {
    use super::super::{HookSays, Judged};
    use super::*;

    fn permissions(allow: &[&str]) -> Permissions {
        let rules = RuleSet { allow: rules(allow), ..RuleSet::default() };
        Permissions::new(rules, Mode::Default, "/".into(), Vec::new(), None)
    }

    fn rules(texts: &[&str]) -> Vec<Rule> {
        texts.iter().map(|text| text.parse().expect(text)).collect()
    }

    fn may(permissions: &Permissions, command: &str) -> &'static str {
        judged(permissions, "Bash", &Access::Shell(command.to_owned()), Path::new("/"))
    }

    #[test]
    fn a_rule_speaks_of_the_tool_it_names_and_in_doubt_it_does() {
        let none = permissions(&[]);
        let shell = |line: &str| ("Bash", Access::Shell(line.to_owned()));
        let edit = |tool: &'static str, path: &str| (tool, Access::Edit(path.into()));
        for (rule, (tool, access), expected) in [
            ("Bash(rm *)", shell("git status"), false),
            ("Bash(rm *)", shell("rm -r x"), true),
            ("Bash(rm *)", shell("ls && rm x"), true),
            ("Bash(rm *)", shell("A=1 sudo rm x"), true),
            ("Bash(rm *)", shell("echo 'rm x'"), false),
            ("Bash(rm *)", shell("rm -rf /"), true),
            ("Bash(git *)", shell("rm -rf /"), false),
            ("Bash(git *)", shell("$cmd push"), true), // nobody can tell
            ("Bash(git push *)", shell("git -C /x push a"), true),
            ("Bash", shell("anything"), true),
            ("Read", shell("cat x"), false),
            ("Read", edit("Edit", "/a/b.ts"), false),
            ("Write", edit("Write", "/a/b.ts"), true),
            ("Read(*.env)", shell("cat x.env"), false),
            ("Edit(*.ts)", edit("Edit", "/a/b.ts"), true),
            ("Edit(*.ts)", edit("Write", "/a/b.ts"), true),
            ("Write(*.ts)", edit("Write", "/a/b.ts"), true),
            ("Write(*.ts)", edit("Edit", "/a/b.ts"), false),
            ("Edit(*.ts)", edit("Edit", "/a/b.rs"), false),
            ("Read(*.ts)", edit("Edit", "/a/b.ts"), false),
            ("Read(*.ts)", ("Read", Access::Read("/a/b.ts".into())), true),
            ("WebFetch(domain:a.example)", ("WebFetch", Access::Url("https://a.example/x".to_owned())), true),
            (
                "WebFetch(domain:a.example)",
                ("WebFetch", Access::Url("https://b.example/x".to_owned())),
                false,
            ),
            ("mcp__s", ("mcp__s__t", Access::Anything), true),
            ("mcp__s__*", ("mcp__s2__t", Access::Anything), false),
            ("Agent(Explore)", ("Agent", Access::Agent("Explore".to_owned())), true),
            ("Agent(Explore)", ("Agent", Access::Agent("Plan".to_owned())), false),
            ("not a rule (", shell("ls"), true),
        ] {
            let (input, cwd) = (serde_json::Value::Null, Path::new("/"));
            let call = Judged { tool, input: &input, access: &access, cwd, hook: HookSays::Nothing };
            assert_eq!(none.speak_of(rule, &call), expected, "{rule} {tool} {access:?}");
        }
    }

    fn judged(permissions: &Permissions, tool: &str, access: &Access, cwd: &Path) -> &'static str {
        let call = Judged { tool, input: &serde_json::Value::Null, access, cwd, hook: HookSays::Nothing };
        permissions.gate().judge(&call).verdict.name()
    }

    fn change(permissions: &Permissions, change: Change) {
        permissions.apply(&Update::session(change)).unwrap();
    }

    #[test]
    fn rules_come_and_go_by_their_destination_and_what_was_there_stays() {
        let permissions = permissions(&["Bash(make)"]);
        change(&permissions, Change::AddRules(Behavior::Allow, rules(&["Bash(one)", "Bash(two)"])));
        let local = Change::AddRules(Behavior::Allow, rules(&["Bash(one)", "Bash(three)"]));
        permissions.apply(&Update { change: local, destination: Destination::LocalSettings }).unwrap();
        assert_eq!(["make", "one", "two", "three"].map(|command| may(&permissions, command)), ["allow"; 4]);
        change(&permissions, Change::RemoveRules(Behavior::Allow, rules(&["Bash(one)", "Bash(make)"])));
        assert_eq!(may(&permissions, "one"), "allow", "the other destination has it too");
        assert_eq!(may(&permissions, "make"), "allow", "it was there from the start");
        change(&permissions, Change::ReplaceRules(Behavior::Allow, rules(&["Bash(four)"])));
        let now = ["make", "one", "two", "three", "four"].map(|command| may(&permissions, command));
        assert_eq!(now, ["allow", "allow", "ask", "allow", "allow"]);
        change(&permissions, Change::AddRules(Behavior::Deny, rules(&["Bash(make)"])));
        assert_eq!(may(&permissions, "make"), "deny");
    }

    #[test]
    fn what_is_taken_out_of_a_file_held_from_the_start_and_holds_no_more() {
        let of =
            |layer: Layer, text: &str| text.parse::<Rule>().unwrap().with_source(RuleSource::layer(layer));
        let mut begun_with = RuleSet::default();
        begun_with.allow.extend([of(Layer::Local, "Bash(make)"), of(Layer::Local, "Bash(one)")]);
        begun_with.allow.extend([of(Layer::User, "Bash(two)"), of(Layer::Managed, "Bash(three)")]);
        begun_with.deny.push(of(Layer::Local, "Bash(four)"));
        let permissions = Permissions::new(begun_with, Mode::Default, "/".into(), Vec::new(), None);
        let all = || ["make", "one", "two", "three", "four"].map(|command| may(&permissions, command));
        let local = |change| {
            permissions.apply(&Update { change, destination: Destination::LocalSettings }).unwrap();
        };
        local(Change::RemoveRules(Behavior::Allow, rules(&["Bash(make)", "Bash(two)", "Bash(three)"])));
        assert_eq!(all(), ["ask", "allow", "allow", "allow", "deny"], "those of other files stay");
        local(Change::ReplaceRules(Behavior::Allow, rules(&["Bash(make)"])));
        assert_eq!(all(), ["allow", "ask", "allow", "allow", "deny"]);
        local(Change::RemoveRules(Behavior::Deny, rules(&["Bash(four)"])));
        assert_eq!(all(), ["allow", "ask", "allow", "allow", "ask"]);
    }

    #[test]
    fn modes_and_directories_change_what_clones_judge() {
        let dir = tempfile::tempdir().unwrap();
        let path = std::fs::canonicalize(dir.path()).unwrap();
        let (start, other) = (path.join("start"), path.join("other"));
        std::fs::create_dir(&start).unwrap();
        std::fs::create_dir(&other).unwrap();
        let all = Permissions::new(RuleSet::default(), Mode::Default, start.clone(), Vec::new(), None);
        let clone = all.clone();
        let edit = |file: PathBuf| judged(&clone, "Edit", &Access::Edit(file), &start) == "allow";
        assert!(!edit(start.join("a")));
        change(&all, Change::SetMode(Mode::AcceptEdits));
        assert!(edit(start.join("a")) && !edit(other.join("a")));
        change(&all, Change::AddDirectories(vec!["../other".into(), other.clone()]));
        assert!(edit(other.join("a")));
        change(&all, Change::RemoveDirectories(vec!["../other".into(), other.clone(), start.clone()]));
        assert!(edit(start.join("a")) && !edit(other.join("a")));
        assert_eq!(clone.roots(), [start]);
    }

    #[test]
    fn there_is_an_end_to_adding() {
        let permissions = permissions(&[]);
        let many: Vec<String> = (0..=RULES_ADDED_MAX).map(|n| format!("Bash(a{n})")).collect();
        let many: Vec<&str> = many.iter().map(String::as_str).collect();
        let add = |texts: &[&str]| {
            permissions.apply(&Update::session(Change::AddRules(Behavior::Allow, rules(texts))))
        };
        assert!(add(&many).is_err());
        assert_eq!(may(&permissions, "a0"), "ask", "all or nothing");
        add(&many[1..]).unwrap();
        add(&many[1..2]).expect("known already");
        assert!(add(&many[..1]).unwrap_err().to_string().contains("rules"));
    }
}
