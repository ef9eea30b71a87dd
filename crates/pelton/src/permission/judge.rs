//! The order in which a call is judged: deny rules, ask rules, what is never done unasked, a hook's word, the mode, allow
//! rules and the read-only set, and then a question. The first that matches decides. Pure: paths arrive resolved.

use std::path::{Path, PathBuf};
use std::sync::Arc;

use serde_json::Value;

use super::decision::{Cause, Decision, Part, Verdict};
use super::gate::protected_matches;
use super::mode::Mode;
use super::place::{Base, Here, Kind, Place, is_named_protected, protected};
use super::rule::{CommandPattern, Deed, HOLE, Need, Rule, blanks_folded};
use super::rules::RuleSet;
use super::shell::{MayRun, Open, Step, Survey};

/// What a hook that ran before a call said about it.
///
/// ```
/// use pelton::permission::{Access, HookSays, Judged, Mode, Permissions, RuleSet};
///
/// # let dir = tempfile::tempdir()?;
/// # let cwd = dir.path();
/// let permissions = Permissions::new(RuleSet::default(), Mode::Default, cwd.to_owned(), Vec::new(), None);
/// let (input, access) = (serde_json::json!({"command": "make"}), Access::Shell("make".to_owned()));
/// let call = Judged { tool: "Bash", input: &input, access: &access, cwd, hook: HookSays::Nothing };
/// assert!(!permissions.judge(&call).is_allowed());
/// assert!(permissions.judge(&Judged { hook: HookSays::Vouches, ..call }).is_allowed());
/// # Ok::<(), std::io::Error>(())
/// ```
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum HookSays<'a> {
    /// Nothing.
    #[default]
    Nothing,
    /// It may run. This takes the question's place, but overrides neither rules nor protected paths.
    Vouches,
    /// No hook, but the box: the command is held by the kernel. Like `Vouches`; a rule that asks about the whole tool does
    /// not mean what cannot get out, and protected names are held by the box itself.
    Held,
    /// Somebody must be asked, whatever rules and mode allow; the text says why.
    Asks(&'a str),
}

/// One call to be judged.
#[derive(Debug, Clone, Copy)]
pub(super) struct Request<'a> {
    pub tool: &'a str,
    pub input: &'a Value,
    pub target: Target<'a>,
    pub here: &'a Here,
    /// What a hook said before.
    pub hook: HookSays<'a>,
}

/// What a call touches, resolved.
#[derive(Debug, Clone, Copy)]
pub(super) enum Target<'a> {
    Read(&'a Place),
    Edit(&'a Place),
    /// A line, with what its commands touch.
    Shell(&'a str, &'a Survey, &'a [Touched]),
    /// A line that cannot be read, and why.
    Unclear(&'a str, &'a str),
    /// An agent of this kind is started.
    Agent(&'a str),
    /// A person is waited for; what for.
    Person(&'a str),
    /// A skill is used.
    Skill(&'a str),
    /// A host is asked; `None` if the address has none.
    Host(Option<&'a str>),
    /// Nothing but the conversation.
    Nothing,
    /// Nobody knows what.
    Anything,
}

/// What one command of a line touches.
#[derive(Debug, Clone, Default)]
pub(super) struct Touched {
    /// What it looks at, if looking is all it does, and it can all be followed.
    pub looks_at: Option<Vec<Place>>,
    /// It may show contents that a rule guards, or that links lead to.
    pub shows_unnamed: bool,
    /// Such contents were found where it looks.
    pub shows_guarded: bool,
    /// A word of it leads to where nobody can follow.
    pub is_evasive: bool,
    /// What it reads and changes, as far as the program is known.
    pub reads: Vec<Place>,
    pub edits: Vec<Place>,
    /// All that it changes could be followed.
    pub all_edits_known: bool,
    /// What its redirections read and change.
    pub input: Vec<Place>,
    pub output: Vec<Place>,
    /// What its words may name.
    pub may_name: Vec<Place>,
    /// What texts in other languages may name.
    pub may_hold: Vec<Place>,
    /// Those of them that steer other programs.
    pub may_steer: Vec<Place>,
    /// Files that its options may name for it to write.
    pub may_write: Vec<Place>,
    /// The line makes more links before it than anybody follows: what it changes may be anything.
    pub may_change_anything: bool,
    /// The directory it goes to.
    pub goes_to: Option<Place>,
    /// It puts a directory elsewhere with protected names in it.
    pub carries_protected: bool,
    /// A removal nobody recovers from.
    pub critical: Option<String>,
    /// What the repository has git run, which would look otherwise.
    pub run_by_git: Option<String>,
    /// It depends on a directory that was changed to on the way.
    pub elsewhere: Option<&'static str>,
}

impl Touched {
    /// What it looks at is read, but looking is not all that it does.
    pub fn does_more_than_look(&mut self) {
        self.reads.extend(self.looks_at.take().into_iter().flatten());
    }

    /// Adds what it would read if it were run elsewhere.
    pub fn may_read(&mut self, elsewhere: Self) {
        let Self { looks_at, reads, input, may_name, is_evasive, .. } = elsewhere;
        self.reads.extend(looks_at.into_iter().flatten().chain(reads).chain(input).chain(may_name));
        self.is_evasive |= is_evasive;
    }
}

impl RuleSet {
    pub(super) fn judge(&self, mode: Mode, request: &Request<'_>) -> Decision {
        let decision = match request.target {
            Target::Shell(line, survey, touched) => self.judge_line(mode, request, line, survey, touched),
            _ => self.judge_call(mode, request),
        };
        answered(mode, decision)
    }

    fn judge_call(&self, mode: Mode, request: &Request<'_>) -> Decision {
        if let Some(rule) = self.deny.iter().find(|rule| catches(rule, request)) {
            return Decision::by(Verdict::Deny, rule);
        }
        if let Some(rule) = self.ask.iter().find(|rule| catches(rule, request)) {
            return Decision::by(Verdict::Ask, rule);
        }
        if let Target::Unclear(_, why) = &request.target
            && self.restricting().any(|rule| rule.is_about_files() || rule.command(request.tool).is_some())
        {
            let why = format!("It cannot be told whether a rule forbids this: {why}.");
            return Decision::question(why, Cause::Unclear);
        }
        if let HookSays::Asks(why) = request.hook {
            return Decision::question(why, Cause::Hook);
        }
        if let Target::Person(what_for) = request.target {
            return Decision::question(what_for, Cause::Person);
        }
        if let Target::Unclear(line, why) = &request.target
            && may_remove(line)
        {
            let why = format!("It cannot be told what this removes: {why}.");
            return Decision::question(why, Cause::Critical((*line).to_owned()));
        }
        let mode_allows = |why: &str| Decision::new(Verdict::Allow, why, Cause::Unapproved);
        if mode == Mode::BypassPermissions {
            return mode_allows("The mode bypassPermissions allows it.");
        }
        if let Target::Edit(place) = request.target
            && let Some(name) = protected(place)
            && (mode == Mode::Plan || !request.here.is_note(place))
        {
            return is_protected(&name, place);
        }
        if let Target::Unclear(line, why) = &request.target
            && request.hook != HookSays::Held
            && mentions_protected(line)
        {
            let why = format!("It cannot be told whether this changes a protected name: {why}.");
            return Decision::question(why, Cause::Unclear);
        }
        if matches!(request.hook, HookSays::Vouches | HookSays::Held) {
            return Decision::new(Verdict::Allow, "A hook allows it.", Cause::Hook);
        }
        let here = request.here;
        let looks = |why: &str| Decision::new(Verdict::Allow, why, Cause::ReadOnly);
        let is_special = |place: &Place| matches!(place.kind, Kind::Linked | Kind::Special);
        match request.target {
            Target::Read(place) if here.may_be_read(place) && !is_special(place) => {
                return looks("It is in a working directory.");
            }
            // What an agent does is judged when it does it.
            Target::Agent(_) | Target::Nothing => return looks("It changes nothing by itself."),
            Target::Edit(place) if mode != Mode::Plan && here.is_note(place) => {
                return Decision::new(
                    Verdict::Allow,
                    "It is one of the model's own notes.",
                    Cause::Unapproved,
                );
            }
            Target::Edit(place)
                if mode == Mode::AcceptEdits && here.contains(place) && !is_special(place) =>
            {
                return mode_allows("The mode acceptEdits allows it.");
            }
            _ => {}
        }
        if mode == Mode::Plan && !matches!(request.target, Target::Read(_)) {
            return Decision::question(PLANNING, Cause::Unapproved);
        }
        if let Some(rule) = self.allow.iter().find(|rule| vouches(rule, request)) {
            return Decision::by(Verdict::Allow, rule);
        }
        let (why, cause) = match &request.target {
            Target::Read(place) | Target::Edit(place) if here.contains(place) && is_special(place) => {
                let what = match place.kind {
                    Kind::Linked => "has other names too",
                    _ => "is no ordinary file",
                };
                (format!("{} {what}.", place.given.display()), Cause::Special(place.given.clone()))
            }
            Target::Read(place) => (
                format!("{} is outside the working directories.", place.given.display()),
                Cause::Outside(place.given.clone()),
            ),
            Target::Edit(place) => {
                (format!("Changing {} needs approval.", place.given.display()), outside(here, place))
            }
            Target::Unclear(_, why) => (format!("This command needs approval: {why}."), Cause::Unclear),
            Target::Host(Some(host)) => (format!("Asking {host} needs approval."), Cause::Unapproved),
            Target::Host(None) => ("This address names no host.".to_owned(), Cause::Unclear),
            Target::Skill(name) => (format!("Using the skill {name} needs approval."), Cause::Unapproved),
            _ => (format!("{} needs approval.", request.tool), Cause::Unapproved),
        };
        Decision::question(why, cause)
    }

    /// Every command of a line must be allowed; any of them can deny or ask.
    fn judge_line(
        &self,
        mode: Mode,
        request: &Request<'_>,
        line: &str,
        survey: &Survey,
        touched: &[Touched],
    ) -> Decision {
        let folded = blanks_folded(line);
        // Quotes do not hide a command from a rule about the whole line.
        let unquoted = folded.replace(['\'', '"', '\\'], "");
        let caught = |rules: &[Rule], verdict| {
            let catches = |rule: &&Rule| {
                rule.covers_call(request.tool, request.input, Need::Catch)
                    || rule.command(request.tool).is_some_and(|pattern| {
                        let is_there = || pattern.is_in(&folded) || pattern.is_in(&unquoted);
                        (pattern.is_compound() && is_there()) || pattern.matches(&folded)
                    })
            };
            rules.iter().find(catches).map(|rule| Decision::by(verdict, rule))
        };
        let is_held = request.hook == HookSays::Held;
        let asked = caught(&self.ask, Verdict::Ask)
            .filter(|asked| !(is_held && asked.rule.as_ref().is_some_and(Rule::is_bare)));
        let whole = caught(&self.deny, Verdict::Deny).or(asked);
        let mut parts: Vec<Part> = Vec::new();
        for (step, touched) in survey.steps.iter().zip(touched) {
            let decision = self.judge_step(mode, request, step, touched);
            let as_edit = self.as_edit(mode, request, step, touched, &decision);
            parts.push(Part { as_edit, ..decision.as_part(&step.text) });
        }
        for doubt in &survey.doubts {
            let decision = self.judge_doubt(mode, request, doubt);
            parts.push(decision.as_part(&doubt.text));
        }
        // Of several that ask, the one is told that nobody recovers from.
        let weight = |part: &Part| (part.verdict, matches!(part.cause, Cause::Critical(_)));
        let worst = parts.iter().map(weight).max();
        let part = parts.iter().position(|part| Some(weight(part)) == worst);
        let mut decision = match (part.map(|at| &parts[at]), whole) {
            (Some(part), Some(whole)) if whole.verdict < part.verdict => decided_by(part),
            (_, Some(whole)) => whole,
            (Some(part), None) => decided_by(part),
            (None, None) => Decision::new(Verdict::Allow, "It does nothing.", Cause::ReadOnly),
        };
        // A rule that asks has asked before the hook.
        let rule_asks = decision.verdict == Verdict::Ask && matches!(decision.cause, Cause::Rule(_));
        if let HookSays::Asks(why) = request.hook
            && decision.verdict != Verdict::Deny
            && !rule_asks
        {
            decision = Decision::question(why, Cause::Hook);
        }
        decision.part = part;
        decision.parts = parts.into_iter().map(|part| answered_part(mode, part)).collect();
        decision
    }

    /// One command of a line, as if it stood alone.
    fn judge_step(&self, mode: Mode, request: &Request<'_>, step: &Step, touched: &Touched) -> Decision {
        let here = request.here;
        let caught = |rules: &[Rule], verdict| {
            let catches = |rule: &&Rule| catches_step(rule, request, step, touched);
            rules.iter().find(catches).map(|rule| Decision::by(verdict, rule))
        };
        match caught(&self.deny, Verdict::Deny) {
            Some(denied) if step.is_worked_out() => {
                let why = "As far as that can be worked out, a rule forbids what a shell gets from the line.";
                return Decision { rule: denied.rule, ..Decision::question(why, Cause::Unclear) };
            }
            Some(denied) => return denied,
            None => {}
        }
        if let Some(asked) = caught(&self.ask, Verdict::Ask) {
            return asked;
        }
        let with_holes = || step.seen.iter().filter(|seen| seen.contains(HOLE));
        let could = |pattern: &CommandPattern| with_holes().any(|seen| pattern.could_match(seen));
        let patterns = || self.restricting().filter_map(|rule| Some((rule, rule.command(request.tool)?)));
        if let Some((rule, _)) = patterns().find(|(_, pattern)| could(pattern)) {
            let why = format!("Only running it would tell whether the rule '{rule}' forbids it.");
            return Decision { rule: Some(rule.clone()), ..Decision::question(why, Cause::Unclear) };
        }
        let is_mentioned =
            |pattern: &CommandPattern| step.may_run.iter().any(|words| pattern.is_mentioned(words));
        if let Some((rule, _)) = patterns().find(|(_, pattern)| is_mentioned(pattern)) {
            let why = format!("It may run what the rule '{rule}' forbids.");
            return Decision { rule: Some(rule.clone()), ..Decision::question(why, Cause::Unclear) };
        }
        let held = touched.may_hold.iter().map(|place| (place, true));
        for (place, may_be_read) in held.chain(touched.may_write.iter().map(|place| (place, false))) {
            let guards = |deed| self.guards_from(deed, place, here);
            let read = may_be_read.then(|| guards(Deed::Read)).flatten();
            if let Some(rule) = read.or_else(|| guards(Deed::Edit)) {
                let why = format!("It may touch {}, which the rule '{rule}' guards.", place.given.display());
                return Decision { rule: Some(rule.clone()), ..Decision::question(why, Cause::Unclear) };
            }
        }
        if touched.is_evasive {
            return Decision::question(
                "It cannot be told whether a rule guards a file that it names.",
                Cause::Unclear,
            );
        }
        // The box keeps what is guarded from being read.
        let is_read = self.guards_reading() && request.hook != HookSays::Held;
        let changed = || step.untold_target.as_ref().filter(|_| self.restricting().any(Rule::is_about_files));
        if let Some(word) = step.untold.as_ref().filter(|_| is_read).or_else(changed) {
            let why = format!("Only running it would tell whether {word} names a file that a rule guards.");
            return Decision::question(why, Cause::Unclear);
        }
        if let Some(what) = &touched.critical {
            let why = format!("It would remove {what}, and nobody recovers from that.");
            return Decision::question(why, Cause::Critical(what.clone()));
        }
        if let Some(text) = &step.hides {
            let why =
                format!("It hides what it runs: only running it would tell what a shell gets from {text}.");
            return Decision::question(why, Cause::Critical(text.clone()));
        }
        if touched.shows_guarded && request.hook != HookSays::Held {
            return Decision::question(SHOWS_GUARDED, Cause::Unapproved);
        }
        let mode_allows = |why: &str| Decision::new(Verdict::Allow, why, Cause::Unapproved);
        if mode == Mode::BypassPermissions {
            return mode_allows("The mode bypassPermissions allows it.");
        }
        let changed = || touched.edits.iter().chain(&touched.output);
        if request.hook == HookSays::Held {
            return Decision::new(Verdict::Allow, HELD, Cause::Hook);
        }
        if let Some((place, name)) = changed().find_map(|place| Some((place, protected(place)?))) {
            return is_protected(&name, place);
        }
        let may_change = || touched.may_write.iter().chain(&touched.may_steer);
        if let Some((place, name)) = may_change().find_map(|place| Some((place, protected(place)?))) {
            return is_protected(&name, place);
        }
        if touched.may_change_anything {
            return Decision::question(TOO_MANY_LINKS, Cause::Unclear);
        }
        if step.is_worked_out() {
            return Decision::new(Verdict::Allow, "Whoever runs it is judged beside it.", Cause::ReadOnly);
        }
        if request.hook == HookSays::Vouches {
            return Decision::new(Verdict::Allow, "A hook allows it.", Cause::Hook);
        }
        let readable = |place: &Place| {
            here.may_be_read(place)
                || is_common_knowledge(place)
                || self.vouching_for(Deed::Read, place, here).is_some()
        };
        let writable = |place: &Place| match mode {
            Mode::Plan => false,
            Mode::AcceptEdits if here.contains(place) => true,
            _ => self.vouching_for(Deed::Edit, place, here).is_some(),
        };
        let strays = touched.goes_to.as_ref().filter(|place| !here.contains(place));
        let unread = touched.input.iter().find(|place| !readable(place));
        let unwritten = touched.output.iter().find(|place| !writable(place));
        let flows = step.redirected_somewhere.is_none()
            && unread.is_none()
            && unwritten.is_none()
            && touched.elsewhere.is_none()
            && strays.is_none();
        let unseen = touched.looks_at.iter().flatten().find(|place| !readable(place));
        let looks = touched.looks_at.is_some() && unseen.is_none() && !touched.shows_unnamed;
        if looks && flows {
            // What it says goes to a file: who allows that allows the line.
            let written = touched.output.first();
            return match written.and_then(|place| self.vouching_for(Deed::Edit, place, here)) {
                Some(rule) => Decision::by(Verdict::Allow, rule),
                None if written.is_some() => mode_allows("The mode acceptEdits allows it."),
                None => Decision::new(Verdict::Allow, "Looking is all it does.", Cause::ReadOnly),
            };
        }
        if mode == Mode::Plan {
            return Decision::question(PLANNING, Cause::Unapproved);
        }
        let stays = || touched.edits.iter().chain(&touched.reads).all(|place| here.contains(place));
        let is_edit = step.is_plain_edit && touched.all_edits_known && !touched.carries_protected;
        if mode == Mode::AcceptEdits && is_edit && flows && stays() {
            return mode_allows("The mode acceptEdits allows it.");
        }
        let is_bare = |rule: &&Rule| rule.covers_call(request.tool, request.input, Need::Vouch);
        let narrow =
            |rule: &&Rule| rule.command(request.tool).is_some_and(|pattern| vouches_for(pattern, step));
        // What is handed to it may be what a rule guards.
        let is_guarded = step.gets_more && self.guards_reading();
        let is_certain = flows && step.doubt.is_none() && !is_guarded;
        let allowed = self.allow.iter().find(is_bare);
        let allowed = allowed.or_else(|| self.allow.iter().filter(|_| is_certain).find(narrow));
        if let Some(rule) = allowed {
            return Decision::by(Verdict::Allow, rule);
        }
        let file = |place: &Place| place.given.display().to_string();
        let beyond = |place: &Place| Cause::Outside(place.given.clone());
        let (why, cause) = if let Some(why) = &step.redirected_somewhere {
            (format!("This command needs approval: {why}."), Cause::Unclear)
        } else if let Some(place) = unwritten {
            let cause = match here.contains(place) {
                true => Cause::Redirected(place.given.clone()),
                false => beyond(place),
            };
            (format!("Changing {} needs approval.", file(place)), cause)
        } else if let Some(why) = touched.elsewhere {
            (format!("This command needs approval: {why}."), Cause::Unclear)
        } else if let Some(place) = strays.or(unread).or(unseen) {
            (format!("{} is outside the working directories.", file(place)), beyond(place))
        } else if let Some(why) = &step.doubt {
            (format!("This command needs approval: {why}."), Cause::Unclear)
        } else if touched.carries_protected {
            (CARRIES_PROTECTED.to_owned(), Cause::Unapproved)
        } else if touched.looks_at.is_some() && touched.shows_unnamed {
            (SHOWS_GUARDED.to_owned(), Cause::Unapproved)
        } else if let Some(named) = &touched.run_by_git {
            let why = "This command needs approval: the repository has git run something of its own";
            (format!("{why} ({named})."), Cause::Unapproved)
        } else {
            ("This command needs approval.".to_owned(), Cause::Unapproved)
        };
        Decision::question(why, cause)
    }

    /// The directories with which a command that is asked about would be an edit like any other; none if they do not help.
    fn as_edit(
        &self,
        mode: Mode,
        request: &Request<'_>,
        step: &Step,
        touched: &Touched,
        decision: &Decision,
    ) -> Option<Vec<PathBuf>> {
        let mut changed = touched.edits.iter().chain(&touched.output).peekable();
        let may_help = matches!(decision.cause, Cause::Unapproved | Cause::Outside(_) | Cause::Redirected(_));
        if decision.verdict != Verdict::Ask || mode == Mode::Plan || !may_help || changed.peek().is_none() {
            return None;
        }
        let mut base = Base::clone(&request.here.base);
        let mut directories: Vec<PathBuf> = Vec::new();
        for place in changed.filter(|place| !request.here.contains(place)) {
            let directory = place.given.parent().filter(|directory| directory.parent().is_some())?;
            if !directories.iter().any(|known| known == directory) {
                directories.push(directory.to_path_buf());
            }
            base.roots.push(directory.to_path_buf());
            base.roots.extend(place.real.parent().map(Path::to_path_buf));
        }
        let here = Here { base: Arc::new(base), cwd: Arc::clone(&request.here.cwd) };
        let imagined = Request { here: &here, ..*request };
        self.judge_step(Mode::AcceptEdits, &imagined, step, touched).is_allowed().then_some(directories)
    }

    /// Something in a line that only a rule about everything can vouch for.
    fn judge_doubt(&self, mode: Mode, request: &Request<'_>, doubt: &Open) -> Decision {
        let may_mean = |pattern: &CommandPattern| match &doubt.may_run {
            MayRun::Nothing => false,
            MayRun::Mentioned(words) => pattern.is_mentioned(words),
            MayRun::Anything => true,
        };
        let mut patterns = self.restricting().filter_map(|rule| Some((rule, rule.command(request.tool)?)));
        if let Some((rule, _)) = patterns.find(|(_, pattern)| may_mean(pattern)) {
            let why = format!("Only running it would tell whether the rule '{rule}' forbids it.");
            return Decision { rule: Some(rule.clone()), ..Decision::question(why, Cause::Unclear) };
        }
        let why = doubt.why;
        if mode == Mode::BypassPermissions {
            return Decision::new(Verdict::Allow, "The mode bypassPermissions allows it.", Cause::Unapproved);
        }
        if matches!(request.hook, HookSays::Vouches | HookSays::Held) {
            return Decision::new(Verdict::Allow, "A hook allows it.", Cause::Hook);
        }
        let is_bare = |rule: &&Rule| rule.covers_call(request.tool, request.input, Need::Vouch);
        match self.allow.iter().filter(|_| mode != Mode::Plan).find(is_bare) {
            Some(rule) => Decision::by(Verdict::Allow, rule),
            None => Decision::question(format!("This command needs approval: {why}."), Cause::Unclear),
        }
    }
}

const SHOWS_GUARDED: &str =
    "This command needs approval: it may show files that a rule guards, or that links lead to.";
const CARRIES_PROTECTED: &str = "This command needs approval: in what it puts elsewhere are names that are protected, or too many to look at.";
const TOO_MANY_LINKS: &str = "This command needs approval: the line makes more links than can be followed, and names that are protected may lie behind them.";
const HELD: &str = "The sandbox holds it.";
const PLANNING: &str = "Plan mode: nothing is changed before the plan is approved.";

/// Nobody is asked in some modes.
fn answered(mode: Mode, mut decision: Decision) -> Decision {
    if mode == Mode::DontAsk && decision.verdict == Verdict::Ask {
        decision.verdict = Verdict::Deny;
        decision.reason.push_str(NOBODY_IS_ASKED);
    }
    decision
}

fn answered_part(mode: Mode, mut part: Part) -> Part {
    if mode == Mode::DontAsk && part.verdict == Verdict::Ask {
        part.verdict = Verdict::Deny;
        part.reason.push_str(NOBODY_IS_ASKED);
    }
    part
}

const NOBODY_IS_ASKED: &str = " Nobody is asked in dontAsk mode.";

fn decided_by(part: &Part) -> Decision {
    Decision {
        rule: part.rule.clone(),
        ..Decision::new(part.verdict, part.reason.clone(), part.cause.clone())
    }
}

fn is_protected(name: &str, place: &Place) -> Decision {
    let why = format!("{name} is protected and is never changed without approval.");
    Decision::question(why, Cause::Protected(place.given.clone()))
}

fn outside(here: &Here, place: &Place) -> Cause {
    match here.contains(place) {
        true => Cause::Unapproved,
        false => Cause::Outside(place.given.clone()),
    }
}

/// Whether a rule that restricts speaks of this call.
fn catches(rule: &Rule, request: &Request<'_>) -> bool {
    let (tool, here) = (request.tool, request.here);
    rule.covers_call(tool, request.input, Need::Catch)
        || match &request.target {
            Target::Read(place) => rule.covers_file(Deed::Read, place, here, Need::Catch),
            Target::Edit(place) => rule.covers_file(Deed::Edit, place, here, Need::Catch),
            Target::Unclear(line, _) => {
                rule.command(tool).is_some_and(|pattern| pattern.is_in(&blanks_folded(line)))
            }
            Target::Agent(name) | Target::Skill(name) => rule.covers_name(tool, name, Need::Catch),
            Target::Host(host) => host.is_some_and(|host| rule.covers_host(tool, host)),
            Target::Shell(..) | Target::Person(_) | Target::Nothing | Target::Anything => false,
        }
}

/// Whether a rule that allows speaks of this call.
fn vouches(rule: &Rule, request: &Request<'_>) -> bool {
    let (tool, here) = (request.tool, request.here);
    rule.covers_call(tool, request.input, Need::Vouch)
        || match &request.target {
            Target::Read(place) => rule.covers_file(Deed::Read, place, here, Need::Vouch),
            Target::Edit(place) => rule.covers_file(Deed::Edit, place, here, Need::Vouch),
            Target::Agent(name) | Target::Skill(name) => rule.covers_name(tool, name, Need::Vouch),
            Target::Host(host) => host.is_some_and(|host| rule.covers_host(tool, host)),
            Target::Shell(..)
            | Target::Unclear(..)
            | Target::Person(_)
            | Target::Nothing
            | Target::Anything => false,
        }
}

/// Whether a rule that restricts speaks of this command: by what it says, or by the files it touches.
fn catches_step(rule: &Rule, request: &Request<'_>, step: &Step, touched: &Touched) -> bool {
    if let Some(pattern) = rule.command(request.tool) {
        return step.seen.iter().any(|seen| pattern.matches(seen));
    }
    if !rule.is_about_files() {
        return false;
    }
    let catches = |deed, place: &Place| rule.covers_file(deed, place, request.here, Need::Catch);
    let read = touched
        .looks_at
        .iter()
        .flatten()
        .chain(&touched.reads)
        .chain(&touched.input)
        .chain(&touched.may_name);
    let changed = touched.edits.iter().chain(&touched.output);
    let somewhere = |name: &String| {
        let path = Path::new("/").join(PLACE_UNKNOWN).join(name);
        catches(Deed::Read, &Place { given: path.clone(), real: path, kind: Kind::Plain })
    };
    read.into_iter().any(|place| catches(Deed::Read, place))
        || changed.into_iter().any(|place| catches(Deed::Edit, place))
        || step.last_names.iter().any(somewhere)
}

/// What the machine is and how it fares: commands may show it, since others tell the same (`uname`, `lscpu`, `free`, `uptime`).
fn is_common_knowledge(place: &Place) -> bool {
    const KNOWN: &[&str] = &[
        "/etc/os-release",
        "/usr/lib/os-release",
        "/etc/lsb-release",
        "/etc/debian_version",
        "/etc/alpine-release",
        "/etc/redhat-release",
        "/etc/timezone",
        "/proc/cpuinfo",
        "/proc/loadavg",
        "/proc/meminfo",
        "/proc/uptime",
        "/proc/version",
    ];
    let is_known = |path: &Path| KNOWN.iter().any(|known| path == Path::new(known));
    is_known(&place.given) && (is_known(&place.real) || place.real.starts_with("/usr/lib"))
}

/// A directory that no rule names.
const PLACE_UNKNOWN: &str = "\u{0}";

/// Whether an allow rule that names commands means this one.
fn vouches_for(pattern: &CommandPattern, step: &Step) -> bool {
    if step.plain.is_empty() || pattern.is_compound() && !pattern.is_exact() {
        return false;
    }
    let is_exact = pattern.is_exact();
    // With words from elsewhere it is not the command that an exact rule names.
    let plain = match step.gets_more {
        true => format!("{} {HOLE}", step.plain),
        false => step.plain.clone(),
    };
    (pattern.matches(&plain) && (is_exact || !step.launches))
        || (is_exact && step.exact.iter().any(|exact| pattern.matches(exact)))
}

/// Whether a line that cannot be read may take something away.
fn may_remove(line: &str) -> bool {
    line.split(|c: char| !c.is_ascii_alphanumeric()).any(|word| matches!(word, "rm" | "rmdir" | "delete"))
}

/// Whether a line that cannot be read names something protected. The name of a protected directory counts, too: nobody can tell who
/// only leaves it out.
fn mentions_protected(line: &str) -> bool {
    let unquoted = line.replace(['\'', '"', '\\'], "");
    let divides = |c: char| c.is_whitespace() || "`()[]{};,:=<>|&$".contains(c);
    unquoted.split(divides).any(|word| is_named_protected(Path::new(word)))
        || patterns_in(&unquoted).any(|pattern| !protected_matches(&pattern).is_empty())
}

/// Patterns in a line that cannot be read, with a star for everything that the shell would put something else for. What matches any
/// name is in every second program that a line writes.
fn patterns_in(line: &str) -> impl Iterator<Item = String> + '_ {
    let divides = |c: char| c.is_whitespace() || "`();=:<>|&".contains(c);
    let is_pattern = |word: &&str| word.contains(['*', '?', '[', '{', '$']);
    let names_something = |segment: &str| segment.contains(char::is_alphanumeric);
    line.split(divides).filter(is_pattern).map(move |word| {
        let loose = loosened(word);
        loose.split('/').filter(|segment| names_something(segment)).collect::<Vec<_>>().join("/")
    })
}

/// A word with a star in the place of braces and variables.
fn loosened(word: &str) -> String {
    let mut text = String::new();
    let mut rest = word;
    while let Some(at) = rest.find(['{', '$']) {
        text.push_str(&rest[..at]);
        text.push('*');
        let behind = rest[at..].trim_start_matches('$');
        rest = match behind.strip_prefix('{') {
            Some(inside) => inside.split_once('}').map_or("", |(_, rest)| rest),
            None => behind.trim_start_matches(|c: char| c.is_ascii_alphanumeric() || c == '_'),
        };
    }
    text.push_str(rest);
    text
}

#[cfg(test)]
#[path = "judge_tests.rs"]
mod tests;
