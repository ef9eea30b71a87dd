//! Plain text: on a terminal the answer streams and the tools are shown as they run; in a pipe only the last
//! answer is written, so that it can be used.

use std::sync::Arc;
use std::time::Duration;

use pelton::Terminal;
use pelton::event::{Display, Event, Outcome};
use pelton::history::Kind;
use pelton_model::{DeltaKind, Notice, World};

use crate::plain::{Plain, plain};
use crate::print::{Pieces, PrintOptions};
use crate::progress::{Progress, seconds};

/// Parts that an answer comes in: it may be cut a few times, and gone on with.
const ANSWER_PARTS_MAX: usize = 16;

pub(crate) struct Text {
    streams: bool,
    shows_progress: bool,
    progress: Progress,
    /// The answer as it streams, made safe.
    answer: Plain,
    /// Text was streamed since the last line end.
    mid_line: bool,
    /// Something of the newest answer was streamed: the result need not be written again.
    streamed: bool,
    /// A part of the newest answer is complete: it stays, unless it is taken back.
    stays: bool,
    /// Hooks say what is shown of the newest answer.
    hooks_say: bool,
    /// What was said in this submission, and what is shown in its place.
    replaced: Vec<(Arc<str>, Arc<str>)>,
}

impl Text {
    pub fn new(options: &PrintOptions, world: Arc<dyn World>) -> Self {
        Self {
            streams: options.out_is_terminal,
            shows_progress: options.shows_progress,
            progress: Progress::new(options.colour, world),
            answer: Plain::default(),
            mid_line: false,
            streamed: false,
            stays: false,
            hooks_say: false,
            replaced: Vec::new(),
        }
    }

    pub fn of(&mut self, event: &Event) -> Pieces {
        let mut pieces = Pieces::default();
        match event {
            Event::Started(_) => {
                (self.streamed, self.stays, self.hooks_say) = (false, false, false);
            }
            Event::Display(Display::Asked) => self.hooks_say = true,
            Event::Display(Display::Words { shown, .. }) if self.streams => {
                self.answer = Plain::default();
                let shown = self.answer.of(shown);
                self.mid_line = !shown.ends_with('\n') && (self.mid_line || !shown.is_empty());
                // That nothing is shown is for them to say, too.
                self.streamed = true;
                pieces.to_out = shown.into_bytes();
            }
            Event::Display(Display::Words { said, shown }) => {
                // Only parts of the last answer are looked for.
                let too_many = (self.replaced.len() + 1).saturating_sub(ANSWER_PARTS_MAX);
                self.replaced.drain(..too_many);
                self.replaced.push((Arc::clone(said), Arc::clone(shown)));
            }
            Event::Display(Display::Break) if self.streams && std::mem::take(&mut self.mid_line) => {
                pieces.to_out.push(b'\n');
            }
            Event::Delta(delta) if self.streams && !self.hooks_say => match &delta.kind {
                DeltaKind::BlockStart(_) => self.answer = Plain::default(),
                DeltaKind::Text(text) => {
                    let text = self.answer.of(text);
                    self.mid_line = !text.ends_with('\n') && (self.mid_line || !text.is_empty());
                    self.streamed |= !text.is_empty();
                    pieces.to_out = text.into_bytes();
                }
                _ => {}
            },
            // What is said behind a call begins anew, also where nobody is shown the call.
            Event::ToolStarted(_) if self.streams && std::mem::take(&mut self.mid_line) => {
                pieces.to_out.push(b'\n');
            }
            Event::Message(entry) if matches!(entry.kind, Kind::Assistant { .. }) => self.stays = true,
            Event::Tombstone(_) => {
                self.stays = false;
                if self.starts_again() {
                    self.note("! the answer above does not count; it starts again\n".to_owned(), &mut pieces);
                }
            }
            Event::ModelFallback { from, to, .. } => {
                let again = if self.starts_again() { "; the answer starts again" } else { "" };
                let (from, to) = (plain(from), plain(to));
                self.note(
                    format!("! {from} does not answer: asking {to} from here on{again}\n"),
                    &mut pieces,
                );
            }
            Event::Retry(notice) => self.retry(notice, &mut pieces),
            Event::Waiting { left } => {
                self.note(format!("… asking again in {}\n", seconds(*left)), &mut pieces);
            }
            Event::Stalled { silent_for } => {
                self.note(format!("… nothing from the model for {}\n", seconds(*silent_for)), &mut pieces);
            }
            Event::Cut { reason } => {
                self.note(format!("! the answer was cut: {}\n", plain(reason)), &mut pieces);
            }
            Event::Informational { content, .. } => {
                self.note(format!("! {}\n", plain(content)), &mut pieces);
            }
            Event::Result(outcome) => self.result(outcome, &mut pieces),
            _ => {}
        }
        if self.shows_progress {
            let line = self.progress.of(event);
            self.note(line, &mut pieces);
        }
        pieces
    }

    /// Whether answers are shown as they come.
    pub fn streams(&self) -> bool {
        self.streams
    }

    pub fn announces_in(&self) -> Option<Duration> {
        self.progress.announces_in().filter(|_| self.shows_progress)
    }

    pub fn announce(&mut self) -> Pieces {
        let mut pieces = Pieces::default();
        let lines = self.progress.announce();
        self.note(lines, &mut pieces);
        pieces
    }

    /// Whether words were shown that count no more, so that the next ones are not their rest.
    fn starts_again(&mut self) -> bool {
        let begun = self.streams && self.streamed && !self.stays;
        self.streamed &= !begun;
        begun
    }

    fn retry(&mut self, notice: &Notice, pieces: &mut Pieces) {
        // Asked again at once, in another form, with nothing shown: there is nothing to wait for and nothing to take
        // back. If that fails too, its own words follow.
        if notice.wait.is_zero() && !notice.withdrawn {
            return;
        }
        let again = if notice.withdrawn && self.streams { "; the answer starts again" } else { "" };
        let wait = seconds(notice.wait);
        let message = plain(&notice.message);
        let (attempt, max) = (notice.attempt, notice.retries_max);
        self.note(format!("! {message}: asking again in {wait} ({attempt} of {max}){again}\n"), pieces);
    }

    fn result(&mut self, outcome: &Arc<Outcome>, pieces: &mut Pieces) {
        // What went wrong is not an answer: the program tells it on standard error.
        let completed = matches!(outcome.terminal, Terminal::Completed | Terminal::CompletedOverHooks);
        let answered = completed && (outcome.asked || !outcome.is_error);
        if answered && !(self.streams && self.streamed) {
            // On a terminal what came before was streamed, if it was anything.
            let text = if self.streams {
                plain(&outcome.text)
            } else {
                self.as_shown(&format!("{}{}", outcome.text_before, outcome.text))
            };
            pieces.to_out = text.into_bytes();
            self.mid_line = !pieces.to_out.is_empty() && !pieces.to_out.ends_with(b"\n");
        }
        if std::mem::take(&mut self.mid_line) {
            pieces.to_out.push(b'\n');
        }
    }

    /// An answer as hooks have it shown. It may have come in several parts, of which the last stands at its end.
    fn as_shown(&mut self, answer: &str) -> String {
        let (mut left, mut shown) = (answer, String::new());
        for (said, instead) in std::mem::take(&mut self.replaced).iter().rev() {
            let whole = left.strip_suffix(&**said).or_else(|| left.trim_end().strip_suffix(&**said));
            let Some(before) = whole.or_else(|| before_parts(left, said)) else { break };
            let between = left[before.len()..].strip_prefix(&**said).unwrap_or_default();
            shown.insert_str(0, &format!("{instead}{between}"));
            left = before;
        }
        shown.insert_str(0, left);
        shown
    }

    /// A line on standard error starts on a line of its own, also when both streams end in one terminal.
    fn note(&mut self, line: String, pieces: &mut Pieces) {
        if line.is_empty() {
            return;
        }
        if std::mem::take(&mut self.mid_line) && self.streams {
            pieces.to_out.push(b'\n');
        }
        pieces.to_err.extend(line.into_bytes());
    }
}

/// What stands in front of words that end a text, where blanks may part them otherwise than there: between two blocks of an answer.
fn before_parts<'a>(text: &'a str, said: &str) -> Option<&'a str> {
    let parts = said.split_terminator('\n').rev().map(str::trim_end);
    parts.filter(|part| !part.is_empty()).try_fold(text, |left, part| left.trim_end().strip_suffix(part))
}
