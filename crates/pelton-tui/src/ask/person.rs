//! Questions of the model to its user, one after the other.

use std::sync::Arc;

use pelton::permission::{Answer, Question};
use ratatui_core::text::Line;
use serde_json::{Map, Value};

use super::Told;
use super::choice::{self, Choice, Picked};
use crate::clean;
use crate::paint::{Caret, Live};
use crate::theme::{Role, Theme};

/// The name of the tool that asks them.
pub(crate) const TOOL: &str = "AskUserQuestion";

/// What the model reads where nobody answered.
const NOBODY: &str = "(nobody answered: the user may be away)";

/// What the model wants to know.
pub(crate) struct Person {
    call: Arc<str>,
    input: Value,
    asked: Vec<Choice>,
    labels: Vec<Vec<String>>,
    at: usize,
    answers: Map<String, Value>,
}

impl Person {
    /// `None` if there is nothing in it that could be asked.
    pub fn of(question: &Question) -> Option<Self> {
        let questions = question.input["questions"].as_array()?;
        let (mut asked, mut labels) = (Vec::new(), Vec::new());
        for question in questions {
            let options = question["options"].as_array().into_iter().flatten();
            let (mut answers, mut named) = (Vec::new(), Vec::new());
            for option in options {
                let label = option["label"].as_str().unwrap_or_default().to_owned();
                answers.push(
                    choice::Answer::new(None, label.clone())
                        .with_more(option["description"].as_str().unwrap_or_default()),
                );
                named.push(label);
            }
            answers.push(choice::Answer::new(None, "Something else").with_words());
            let words = question["question"].as_str().unwrap_or_default();
            asked.push(match question["multiSelect"].as_bool() {
                Some(true) => Choice::of_several(words, answers),
                _ => Choice::new(words, answers),
            });
            labels.push(named);
        }
        let (call, input) = (Arc::clone(&question.call), question.input.clone());
        (!asked.is_empty()).then_some(Self { call, input, asked, labels, at: 0, answers: Map::new() })
    }

    /// The call that asks.
    pub fn call(&self) -> &Arc<str> {
        &self.call
    }

    pub fn choice(&mut self) -> Option<&mut Choice> {
        self.asked.get_mut(self.at)
    }

    /// One was answered: the answer to all of them, if it was the last.
    pub fn take(&mut self, picked: &Picked) -> Option<Answer> {
        let Picked::Answers(at, words) = picked else {
            return Some(Answer::deny("The user did not answer."));
        };
        let labels = self.labels.get(self.at)?;
        let mut given: Vec<String> = at.iter().filter_map(|at| labels.get(*at).cloned()).collect();
        if !words.trim().is_empty() {
            given.push(words.trim().to_owned());
        }
        let question = self.asked.get(self.at)?.question.clone();
        self.answers.insert(question, given.join(", ").into());
        self.at += 1;
        if self.at < self.asked.len() {
            return None;
        }
        Some(self.answer())
    }

    /// Nobody is waited for any more: the answers so far, and for the rest that there are none.
    pub fn given_up(&mut self) -> Answer {
        if self.answers.is_empty() {
            return Answer::deny(
                "Nobody answered in time: the user may be away. Go on with what you think is best, say what you assumed, and ask again \
                 later if it matters.",
            );
        }
        for choice in self.asked.iter().skip(self.at) {
            self.answers.insert(choice.question.clone(), NOBODY.into());
        }
        self.answer()
    }

    fn answer(&mut self) -> Answer {
        let mut input = self.input.clone();
        input["answers"] = Value::Object(std::mem::take(&mut self.answers));
        Answer::Allow { updated_input: Some(input), updates: Vec::new() }
    }

    /// What was answered, a line for each question; or why nothing was.
    pub fn told(&self, answer: &Answer, why_not: &str) -> Told {
        let call = Arc::clone(&self.call);
        let Answer::Allow { updated_input: Some(input), .. } = answer else {
            let what = self.asked.first().map(|asked| clean::line(&asked.question)).unwrap_or_default();
            return Told::Not { call, word: "not answered", words: why_not.to_owned(), what };
        };
        let line = |(question, answer): (&String, &Value)| {
            format!("{} {}", clean::line(question), clean::line(answer.as_str().unwrap_or_default()))
        };
        let lines = input["answers"].as_object().into_iter().flatten().map(line);
        Told::Below(call, lines.collect())
    }

    /// What is asked now.
    pub fn words(&self, theme: &Theme, columns: usize) -> Vec<Line<'static>> {
        let asked = self.asked.get(self.at).map(|choice| choice.question(theme, columns));
        self.place(theme).into_iter().chain(asked.unwrap_or_default()).collect()
    }

    pub fn live(&self, theme: &Theme, columns: usize) -> Live {
        let asked = self.asked.get(self.at).map(|choice| choice.live(theme, columns)).unwrap_or_default();
        let mut lines: Vec<Line<'static>> = self.place(theme).into_iter().collect();
        let caret = asked.caret.map(|caret| Caret { row: caret.row + lines.len(), ..caret });
        lines.extend(asked.lines);
        Live { lines, caret }
    }

    /// The same where there are no keys.
    pub fn told_lines(&self, theme: &Theme, columns: usize) -> Vec<Line<'static>> {
        let lines = self.asked.get(self.at).map(|choice| choice.told(theme, columns));
        self.place(theme).into_iter().chain(lines.unwrap_or_default()).collect()
    }

    /// Which of several it is.
    fn place(&self, theme: &Theme) -> Option<Line<'static>> {
        let place = format!("Question {} of {}", self.at + 1, self.asked.len());
        (self.asked.len() > 1).then(|| Line::styled(place, theme.style(Role::Faint)))
    }
}
