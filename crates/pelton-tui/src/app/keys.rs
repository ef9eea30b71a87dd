//! What keys mean.

use std::time::Duration;

use crossterm::event::{KeyCode, KeyEvent, KeyModifiers};
use pelton::permission::Mode;

use super::{App, Effect, Waiting, When};
use crate::ask::{Dialog, Outcome, Own, Told};
use crate::commands;
use crate::draft::{Pressed, said};
use crate::input::Submission;
use crate::theme::Role;

/// Two presses within this time are one of two.
const TWICE_WITHIN: Duration = Duration::from_millis(800);
/// The same for leaving, which somebody has to read about first.
const LEAVE_WITHIN: Duration = Duration::from_secs(2);

impl App {
    /// A key was pressed.
    pub fn key(&mut self, key: KeyEvent, now: Duration) -> Vec<Effect> {
        let control = key.modifiers.contains(KeyModifiers::CONTROL);
        let before = self.last_stop.take();
        match key.code {
            KeyCode::Char('c') if control => return self.stop(before, now),
            KeyCode::Char('d') if control && self.draft.is_empty() && self.dialog.is_none() => {
                return self.end_of_input(before, now);
            }
            KeyCode::Char('z') if control => return vec![Effect::Suspend],
            KeyCode::Char('l') if control => return vec![Effect::Repaint],
            KeyCode::Char('o') if control => {
                self.unfold(now);
                return Vec::new();
            }
            _ => {}
        }
        if let Some(dialog) = &mut self.dialog {
            self.touched_at = now;
            if dialog.is_armed(now) && !dialog.begins_sentence(key) {
                if let (KeyCode::Char('g'), true, Some((id, plan))) = (key.code, control, dialog.plan()) {
                    return vec![Effect::EditPlan(id, plan)];
                }
                return match dialog.key(key) {
                    Some(outcome) => self.answered(outcome, now),
                    None => {
                        if dialog.is_new() {
                            self.words_told = false;
                            self.tell_question();
                        }
                        Vec::new()
                    }
                };
            }
            // Somebody is in the middle of a sentence: their keys are words, and no answers.
            dialog.put_off(now);
            match key.code {
                KeyCode::Enter => return Vec::new(),
                // Whoever wants it to end means that, whatever is asked.
                KeyCode::Esc if self.draft.escape() || !self.is_working() => return Vec::new(),
                KeyCode::Esc => return self.interrupt(),
                _ => {}
            }
            self.last_key = now;
            self.draft.key(key);
            return Vec::new();
        }
        self.last_key = now;
        if self.is_working() {
            self.last_key_at_work = Some(now);
        }
        match key.code {
            KeyCode::Esc => return self.escape(now),
            KeyCode::BackTab => return vec![Effect::SetMode(self.next_mode())],
            KeyCode::Char('b') if control && self.is_working() => return vec![Effect::PutAside],
            KeyCode::Char('g') if control => return vec![Effect::Edit],
            KeyCode::Char('v') if control => return vec![Effect::PastePicture],
            KeyCode::Tab if self.is_working() && !self.draft.is_empty() && !self.draft.is_choosing() => {
                let said = self.draft.submit();
                return self.queue(said, When::Later);
            }
            KeyCode::Up if self.draft.is_empty() && !self.waiting.is_empty() => {
                return self.take_back_waiting();
            }
            _ => {}
        }
        match self.draft.key(key) {
            Pressed::Edited => Vec::new(),
            Pressed::Submit(said) if self.is_working() => self.queue(said, When::Next),
            Pressed::Submit(said) => meant(said).into_iter().collect(),
        }
    }

    /// A whole line was typed, where there are no keys.
    pub fn line(&mut self, line: &str, now: Duration) -> Vec<Effect> {
        let Some(dialog) = &mut self.dialog else {
            return if self.is_working() {
                self.queue(said(line), When::Next)
            } else {
                meant(said(line)).into_iter().collect()
            };
        };
        self.touched_at = self.ticked_at;
        match dialog.line(line) {
            Some(outcome) => self.answered(outcome, now),
            None => {
                let lines = dialog.told(&self.theme, self.columns);
                self.finished.extend(lines);
                Vec::new()
            }
        }
    }

    /// Words were pasted.
    pub fn paste(&mut self, text: &str, now: Duration) -> Vec<Effect> {
        (self.last_key, self.touched_at) = (now, now);
        match &mut self.dialog {
            Some(dialog) if dialog.is_armed(now) => dialog.paste(text),
            // A terminal that is told to paste a picture knows no words for it, and pastes none.
            None if text.is_empty() => return vec![Effect::PastePicture],
            _ => self.draft.paste(text),
        }
        Vec::new()
    }

    /// Words while a submission runs: they wait, and it is shown that they do.
    fn queue(&mut self, said: Submission, when: When) -> Vec<Effect> {
        let said = match meant(said) {
            Some(Effect::Submit(said)) => said,
            Some(other) => {
                match &other {
                    Effect::Command(own, _) if own.works_any_time() => {}
                    Effect::Command(own, _) => {
                        self.say(&format!("(/{} waits until this is done)", own.name()), Role::Faint);
                    }
                    _ => self.say("(your command waits until this is done)", Role::Faint),
                }
                return vec![other];
            }
            None => return Vec::new(),
        };
        // A command of the engine's is no words for the model: it is its own turn.
        let when = if said.is_command() { When::Later } else { when };
        self.waiting.push(Waiting { id: None, said: said.clone(), when, is_told: false });
        vec![Effect::Queue { said, when }]
    }

    /// The newest words that wait are to be written again.
    fn take_back_waiting(&mut self) -> Vec<Effect> {
        let Some(at) = self.waiting.iter().rposition(|waiting| waiting.id.is_some()) else {
            return Vec::new();
        };
        let Waiting { id, said, .. } = self.waiting.remove(at);
        self.draft.put_back(&said);
        id.map(Effect::Unqueue).into_iter().collect()
    }

    fn escape(&mut self, now: Duration) -> Vec<Effect> {
        if self.draft.escape() {
            return Vec::new();
        }
        // What was asked last is given up first.
        if let Some(given_up) = self.give_up_beside() {
            return vec![given_up];
        }
        if self.is_working() {
            self.last_escape = None;
            return self.interrupt();
        }
        let twice =
            self.last_escape.replace(now).is_some_and(|before| now.saturating_sub(before) < TWICE_WITHIN);
        if !twice {
            self.hint(if self.draft.is_empty() { "Esc again to go back" } else { "Esc again to clear" }, now);
            return Vec::new();
        }
        self.last_escape = None;
        self.hint = None;
        if self.draft.is_empty() {
            return vec![Effect::ListPast];
        }
        self.draft.clear();
        Vec::new()
    }

    fn interrupt(&mut self) -> Vec<Effect> {
        self.interrupted = true;
        vec![Effect::Interrupt]
    }

    /// Ctrl-C: ends what runs, then what is written, then the session.
    fn stop(&mut self, before: Option<Duration>, now: Duration) -> Vec<Effect> {
        let twice = before.is_some_and(|before| now.saturating_sub(before) < LEAVE_WITHIN);
        self.last_stop = Some(now);
        if twice && (!self.is_working() || self.interrupted) {
            return vec![Effect::Leave];
        }
        if self.is_working() {
            return self.interrupt();
        }
        if self.dialog.as_ref().is_some_and(|dialog| dialog.id().is_none()) {
            self.dialog = None;
        } else if !self.draft.is_empty() {
            self.draft.clear();
            // Whoever clears does not leave yet.
            self.last_stop = None;
        } else {
            self.hint("Ctrl-C again to leave", now);
        }
        Vec::new()
    }

    fn end_of_input(&mut self, before: Option<Duration>, now: Duration) -> Vec<Effect> {
        let twice = before.is_some_and(|before| now.saturating_sub(before) < LEAVE_WITHIN);
        if !self.is_working() || twice {
            return vec![Effect::Leave];
        }
        self.last_stop = Some(now);
        self.leaves_until = Some(now + LEAVE_WITHIN);
        self.hint("something runs: Ctrl-D again to leave all the same", now);
        Vec::new()
    }

    fn next_mode(&self) -> Mode {
        match self.status.mode {
            Mode::Default => Mode::AcceptEdits,
            Mode::AcceptEdits => Mode::Plan,
            Mode::Plan if self.may_bypass => Mode::BypassPermissions,
            _ => Mode::Default,
        }
    }

    pub(super) fn answered(&mut self, outcome: Outcome, now: Duration) -> Vec<Effect> {
        let dialog = self.dialog.take();
        if let Some(call) = dialog.as_ref().and_then(Dialog::call) {
            self.feed.runs_from(call, now);
        }
        match outcome {
            Outcome::Answered(id, answer, told) => {
                match told {
                    Told::Nothing => {}
                    Told::Not { call, word, words, what } => {
                        // A call of an agent's has no line of its own.
                        if !self.feed.ends_as(&call, word, &words) {
                            self.say(&format!("{word}: {what}"), Role::Faint);
                        }
                    }
                    Told::Below(call, lines) => self.feed.below(&call, lines),
                }
                vec![Effect::Answer(id, answer)]
            }
            Outcome::Found(own, at) => self.found(own, at),
        }
    }

    fn found(&mut self, own: Own, at: Option<usize>) -> Vec<Effect> {
        match own {
            Own::Session => {
                let sessions = std::mem::take(&mut self.sessions);
                at.and_then(|at| sessions.get(at).copied()).map(Effect::Resume).into_iter().collect()
            }
            Own::Argument(command) => {
                let given = std::mem::take(&mut self.given);
                let chosen = at.and_then(|at| given.into_iter().nth(at));
                chosen.map(|chosen| Effect::Command(command, chosen)).into_iter().collect()
            }
            Own::Prompt => self.chose_prompt(at),
            Own::Rewind => self.chose_undo(at),
        }
    }
}

/// Words that are sent while nothing runs.
fn meant(said: Submission) -> Option<Effect> {
    let words = said.text.trim();
    match words.strip_prefix('!').map(str::trim) {
        Some("") => None,
        Some(command) => Some(Effect::Shell(command.to_owned())),
        None if words.is_empty() && said.images.is_empty() => None,
        None => Some(match commands::called(words) {
            Some((own, arguments)) => Effect::Command(own, arguments.to_owned()),
            None => Effect::Submit(said),
        }),
    }
}
