//! Whether a call may run: what exactly, why it is asked, and what "always" would mean.

use std::collections::HashSet;
use std::path::Path;
use std::sync::Arc;

use pelton::permission::{
    Access, Answer, Behavior, Cause, Change, Destination, Mode, Part, Question, Update, Verdict,
};
use ratatui_core::text::{Line, Span};
use serde_json::Value;

use super::Told;
use super::choice::{self, Choice, Picked};
use crate::clean;
use crate::diff::{self, Layout};
use crate::feed::{changed, wrapped};
use crate::markdown;
use crate::theme::{Role, Theme};

/// The name of the tool by which the model leaves plan mode.
const EXIT_PLAN: &str = "ExitPlanMode";

/// What Esc means here.
const ESCAPE: &str = "Esc: no, and stop";

/// A call that somebody decides about.
pub(crate) struct Permission {
    question: Question,
    pub choice: Choice,
    meanings: Vec<Meaning>,
    /// Whoever is asked has changed the plan.
    is_edited: bool,
}

/// What an answer means.
#[derive(Clone)]
enum Meaning {
    Once,
    Always(Vec<Update>),
    Refuse,
}

impl Permission {
    pub fn of(question: Question) -> Self {
        let is_plan = &*question.tool == EXIT_PLAN;
        let (mut answers, mut meanings) = (Vec::new(), Vec::new());
        let mut put = |answer: choice::Answer, meaning: Meaning| {
            answers.push(answer);
            meanings.push(meaning);
        };
        if is_plan {
            let mode = |mode: Mode| Meaning::Always(vec![Update::session(Change::SetMode(mode))]);
            put(choice::Answer::new('y', "Yes, and ask before each edit"), mode(Mode::Default));
            put(choice::Answer::new('a', "Yes, and edit files without asking"), mode(Mode::AcceptEdits));
            put(
                choice::Answer::new('n', "No, go on planning: say what to change").with_words(),
                Meaning::Refuse,
            );
            let choice = Choice::new("Go on with this plan?", answers).with_key("Ctrl-G edits it");
            let choice = choice.with_escape(ESCAPE);
            return Self { question, choice, meanings, is_edited: false };
        }
        put(choice::Answer::new('y', "Yes, this once"), Meaning::Once);
        if !question.suggestions.is_empty() {
            let scope = question.suggestions.iter().map(scope).collect::<Vec<_>>().join("; ");
            let label = format!("Yes, and always: {scope}");
            put(choice::Answer::new('a', label), Meaning::Always(question.suggestions.clone()));
        }
        put(
            choice::Answer::new('n', "No: say what to do instead, or just Enter").with_words(),
            Meaning::Refuse,
        );
        let choice = Choice::new(title(&question), answers).with_escape(ESCAPE);
        Self { question, choice, meanings, is_edited: false }
    }

    /// The call that waits for it.
    pub fn call(&self) -> &Arc<str> {
        &self.question.call
    }

    /// The plan it is about.
    pub fn plan(&self) -> Option<&str> {
        (&*self.question.tool == EXIT_PLAN).then(|| self.question.input["plan"].as_str().unwrap_or_default())
    }

    /// The same question about another plan.
    pub fn set_plan(&mut self, plan: &str) {
        self.is_edited |= self.plan().is_some_and(|before| before != plan);
        self.question.input["plan"] = plan.into();
    }

    /// What was picked, as the engine understands it.
    pub fn answer(&self, picked: &Picked) -> Answer {
        let refused = |words: &str, interrupt| Answer::Deny {
            message: match words.trim() {
                "" => "The user does not want this to run.".to_owned(),
                words => format!("The user does not want this to run, and says: {words}"),
            },
            interrupt,
        };
        match picked {
            // Without a word about what to do instead there is nothing to go on with.
            Picked::Nothing => refused("", true),
            Picked::Answers(at, words) => match at.first().and_then(|at| self.meanings.get(*at)) {
                Some(Meaning::Once) => Answer::allow(),
                Some(Meaning::Always(updates)) => {
                    let updated_input = self.is_edited.then(|| self.question.input.clone());
                    Answer::Allow { updated_input, updates: updates.clone() }
                }
                Some(Meaning::Refuse) | None => refused(words, words.trim().is_empty()),
            },
        }
    }

    /// What is told of an answer: that it runs is seen.
    pub fn told(&self, answer: &Answer, picked: &Picked) -> Told {
        let Answer::Deny { .. } = answer else { return Told::Nothing };
        let words = match picked {
            Picked::Answers(_, words) => words.trim().to_owned(),
            Picked::Nothing => String::new(),
        };
        Told::Not { call: Arc::clone(self.call()), word: "refused", words, what: what(&self.question) }
    }

    /// What it is about, whole.
    pub fn body(&self, theme: &Theme, columns: usize) -> Vec<Line<'static>> {
        let question = &self.question;
        let mut lines = Vec::new();
        if let Some(agent) = &question.agent_id {
            lines.push(Line::styled(
                format!("A sub-agent ({}) asks:", clean::line(agent)),
                theme.style(Role::Faint),
            ));
        }
        if let Some(plan) = self.plan() {
            lines.push(Line::default());
            lines.extend(markdown::lines(plan, columns, *theme));
            lines.push(Line::default());
            return lines;
        }
        match &question.access {
            Access::Shell(command) => lines.extend(command_lines(theme, command, columns)),
            Access::Edit(path) => lines.extend(edit_lines(theme, path, question, columns)),
            _ => lines.extend(input_lines(theme, &question.input, columns)),
        }
        if question.parts.len() > 1 {
            lines.extend(part_lines(theme, question, columns));
        }
        // That it was not approved yet is the question itself.
        if question.cause != Cause::Unapproved {
            for row in wrapped(&clean::line(&question.why), columns.saturating_sub(2)) {
                lines.push(Line::from(vec![Span::raw("  "), Span::styled(row, theme.style(Role::Faint))]));
            }
        }
        lines
    }
}

fn title(question: &Question) -> String {
    match &question.access {
        Access::Shell(_) => "Run this command?".to_owned(),
        Access::Edit(_) => format!("Change {}?", what(question)),
        Access::Read(_) => format!("Read {}?", what(question)),
        Access::Agent(_) => format!("Start the agent {}?", what(question)),
        Access::Url(_) => format!("Ask for {}?", what(question)),
        _ => format!("Use {}?", what(question)),
    }
}

fn what(question: &Question) -> String {
    match &question.access {
        Access::Read(path) | Access::Edit(path) => {
            clean::revealed_line(&path.strip_prefix(&question.cwd).unwrap_or(path).to_string_lossy())
        }
        Access::Shell(command) => clean::revealed_line(command),
        Access::Agent(text) | Access::Skill(text) | Access::Url(text) => clean::revealed_line(text),
        _ => clean::revealed_line(&question.tool),
    }
}

/// What an update would change, and where that is kept.
fn scope(update: &Update) -> String {
    let place = match update.destination {
        Destination::Session => "for this session",
        Destination::LocalSettings => "kept for you in this project",
        Destination::ProjectSettings => "kept for everyone in this project",
        Destination::UserSettings => "kept for you everywhere",
        _ => "for this run",
    };
    let change = match &update.change {
        Change::AddRules(Behavior::Allow, rules) => {
            rules.iter().map(ToString::to_string).collect::<Vec<_>>().join(", ")
        }
        _ => changed(update),
    };
    format!("{change} ({place})")
}

/// The whole command, with what cannot be seen made visible.
fn command_lines(theme: &Theme, command: &str, columns: usize) -> Vec<Line<'static>> {
    let mut lines = Vec::new();
    for line in clean::revealed(command).lines() {
        for row in wrapped(line, columns.saturating_sub(2)) {
            lines.push(Line::from(vec![Span::raw("  "), Span::styled(row, theme.style(Role::Code))]));
        }
    }
    lines
}

/// Each command of a line, and what the rules say of it. One that comes again is the same.
fn part_lines(theme: &Theme, question: &Question, columns: usize) -> Vec<Line<'static>> {
    let mut seen = HashSet::new();
    let parts: Vec<&Part> =
        question.parts.iter().filter(|part| seen.insert((&part.text, part.verdict))).collect();
    let last = parts.len().saturating_sub(1);
    let part = |(at, part): (usize, &&Part)| {
        let mark = if at == last { "  └─ " } else { "  ├─ " };
        let (word, role) = match part.verdict {
            Verdict::Allow => ("allowed", Role::Success),
            Verdict::Ask => ("asks", Role::Warning),
            Verdict::Deny => ("denied", Role::Error),
        };
        let rows = wrapped(&clean::revealed_line(&part.text), columns.saturating_sub(16));
        let rows = rows.into_iter().enumerate().map(move |(nth, row)| {
            let mark = if nth == 0 { mark } else { "  │    " };
            let mut spans = vec![Span::styled(mark, theme.style(Role::Faint)), Span::raw(row)];
            if nth == 0 {
                spans.push(Span::styled(format!("  {word}"), theme.style(role)));
            }
            Line::from(spans)
        });
        let mut lines: Vec<Line<'static>> = rows.collect();
        // What is said of the whole stands below; and that it was not approved yet is the question itself.
        let says_more = part.verdict != Verdict::Allow && part.cause != Cause::Unapproved;
        if says_more && part.reason != question.why {
            let bar = if at == last { "       " } else { "  │    " };
            let rows = wrapped(&clean::revealed_line(&part.reason), columns.saturating_sub(8));
            lines.extend(rows.into_iter().map(|row| {
                let faint = theme.style(Role::Faint);
                Line::from(vec![Span::styled(bar, faint), Span::styled(row, faint)])
            }));
        }
        lines
    };
    parts.iter().enumerate().flat_map(part).collect()
}

fn edit_lines(theme: &Theme, path: &Path, question: &Question, columns: usize) -> Vec<Line<'static>> {
    let input = &question.input;
    let diff = match (input["old_string"].as_str(), input["new_string"].as_str(), input["content"].as_str()) {
        (Some(old), Some(new), _) => {
            let all = input["replace_all"].as_bool().unwrap_or_default();
            match read_bounded(path).as_deref().and_then(|file| edited(file, old, new, all)) {
                Some((before, after)) => diff::hunks(&before, &after),
                None => diff::hunks(old, new),
            }
        }
        (_, _, Some(content)) => {
            // What is there now is looked at to show the difference; a file that cannot be read is shown as new.
            let old = read_bounded(path).unwrap_or_default();
            diff::hunks(&old, content)
        }
        _ => return input_lines(theme, input, columns),
    };
    // Whoever decides sees all of it.
    let layout = Layout { width: columns.saturating_sub(2), theme: *theme, rows_max: usize::MAX };
    let inside = |mut line: Line<'static>| {
        line.spans.insert(0, Span::raw("  "));
        line
    };
    diff::lines(&diff, &layout).into_iter().map(inside).collect()
}

/// A file before and after an edit, so that the lines around it and their numbers are seen; `None` if it cannot be made there.
fn edited(file: &str, old: &str, new: &str, all: bool) -> Option<(String, String)> {
    // Edits are made in lines as the model knows them.
    let file = file.replace("\r\n", "\n");
    let places = file.matches(old).count();
    let after = match places {
        _ if old.is_empty() => return None,
        1 => file.replacen(old, new, 1),
        2.. if all => file.replace(old, new),
        _ => return None,
    };
    Some((file, after))
}

/// A file that is small enough to be compared on a screen.
fn read_bounded(path: &Path) -> Option<String> {
    const BYTES_MAX: u64 = 1024 * 1024;
    std::fs::metadata(path).ok().filter(|meta| meta.is_file() && meta.len() <= BYTES_MAX)?;
    std::fs::read_to_string(path).ok()
}

/// Any other input, field by field and whole.
fn input_lines(theme: &Theme, input: &Value, columns: usize) -> Vec<Line<'static>> {
    let Some(fields) = input.as_object() else { return Vec::new() };
    let mut lines = Vec::new();
    for (name, value) in fields {
        let text = value.as_str().map_or_else(|| value.to_string(), str::to_owned);
        let text = format!("{}: {}", clean::revealed_line(name), clean::revealed(&text));
        for row in text.lines().flat_map(|line| wrapped(line, columns.saturating_sub(2))) {
            lines.push(Line::from(vec![Span::raw("  "), Span::styled(row, theme.style(Role::Code))]));
        }
    }
    lines
}
