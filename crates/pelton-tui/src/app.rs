//! What the terminal shows and what keys mean: a value that is told what happens and says what is to be done. It waits for
//! nothing, writes nothing and asks nobody; the [session](crate::session) does that.

mod beside; // questions beside the conversation
mod frame; // what is shown
mod keys; // what keys mean
mod rewind; // going back

#[cfg(test)]
mod tests;

use std::collections::VecDeque;
use std::time::Duration;

use pelton::Event;
use pelton::permission::Mode;
use ratatui_core::text::{Line, Span};
use uuid::Uuid;

use crate::ask::{Answered, Asked, AskedId, Dialog};
use crate::commands::Own;
use crate::draft::Draft;
use crate::feed::Feed;
use crate::input::Submission;
use crate::status::Status;
use crate::theme::{Role, Theme};

use beside::Beside;
pub(crate) use rewind::{Past, Undo};

/// How often it is seen whether more files were found.
const FILES_LOOKED_AT_EVERY: Duration = Duration::from_millis(60);
/// Cells of what stands on the left of a table, at most.
const TABLE_LEFT_CELLS_MAX: usize = 28;
/// How long a hint about a key stays.
const HINT_TIME: Duration = Duration::from_secs(2);

/// Something to be done.
#[derive(Debug, PartialEq)]
pub(crate) enum Effect {
    /// The model is asked.
    Submit(Submission),
    /// Words wait for the running submission, or for its end.
    Queue { said: Submission, when: When },
    /// Words that wait are wanted back.
    Unqueue(Uuid),
    /// The running submission is to end.
    Interrupt,
    /// Nobody waits any more for the answer to a question beside the conversation.
    GiveUpBeside(u64),
    /// A question of the engine's is answered.
    Answer(AskedId, Answered),
    /// How much runs without asking.
    SetMode(Mode),
    /// A command that the terminal itself answers.
    Command(Own, String),
    /// A command line of the user's own.
    Shell(String),
    /// What runs is put into the background.
    PutAside,
    /// The program stops until the shell goes on with it.
    Suspend,
    /// A picture that is in the clipboard goes along.
    PastePicture,
    /// The words go to an editor of the user's.
    Edit,
    /// The plan that is asked about goes there.
    EditPlan(AskedId, String),
    /// What is live is painted anew.
    Repaint,
    /// Prompts to go back to are wanted.
    ListPast,
    /// What going back would do to files is wanted.
    PreviewRewind(Uuid),
    /// The conversation, files or both go back.
    Rewind(Undo),
    /// Another session is gone on with.
    Resume(Uuid),
    /// The session ends.
    Leave,
}

/// When words that wait are read.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum When {
    /// At the next turn of the running submission.
    Next,
    /// When it is over.
    Later,
}

/// Words that wait.
#[derive(Debug)]
struct Waiting {
    /// Known as soon as they are kept.
    id: Option<Uuid>,
    said: Submission,
    when: When,
    /// It stands in the conversation already.
    is_told: bool,
}

pub(crate) struct App {
    theme: Theme,
    columns: usize,
    rows: usize,
    pub feed: Feed,
    pub draft: Draft,
    pub status: Status,
    /// Lines on their way into the conversation.
    finished: Vec<Line<'static>>,
    /// The last one that went there was empty.
    ends_apart: bool,
    dialog: Option<Dialog>,
    /// What the dialog is about went into the conversation, because it is too long to be live.
    body_told: bool,
    /// So does what its question asks.
    words_told: bool,
    /// Questions behind the one that is shown.
    asked: VecDeque<(AskedId, Asked)>,
    waiting: Vec<Waiting>,
    /// Questions beside the conversation that nobody has answered.
    beside: Vec<Beside>,
    /// When the running submission began.
    working_since: Option<Duration>,
    /// How long those before it took.
    pub worked: Duration,
    interrupted: bool,
    hint: Option<(&'static str, Duration)>,
    /// When the last key of the words was typed.
    last_key: Duration,
    /// What time it was last, and when somebody last did something about a question.
    ticked_at: Duration,
    touched_at: Duration,
    /// How long the model's questions wait for somebody who does nothing.
    pub question_time: Option<Duration>,
    /// When one was typed while something ran.
    last_key_at_work: Option<Duration>,
    last_escape: Option<Duration>,
    last_stop: Option<Duration>,
    /// Somebody wants to leave: if what runs ends before this, they do.
    leaves_until: Option<Duration>,
    may_bypass: bool,
    /// There is no live area: what is asked and what waits is told line by line.
    pub is_plain: bool,
    /// Prompts that can be gone back to, while one is chosen.
    past: Vec<Past>,
    chosen: Option<Past>,
    /// Files would change with it.
    has_files: bool,
    /// What can be given to a command, while one is chosen.
    given: Vec<String>,
    /// Sessions that can be gone on with, while one is chosen.
    sessions: Vec<Uuid>,
}

impl App {
    pub fn new(theme: Theme, columns: usize, rows: usize, may_bypass: bool) -> Self {
        Self {
            theme,
            columns,
            rows,
            feed: Feed::new(theme, columns),
            draft: Draft::default(),
            status: Status::default(),
            finished: Vec::new(),
            ends_apart: false,
            dialog: None,
            body_told: false,
            words_told: false,
            asked: VecDeque::new(),
            waiting: Vec::new(),
            beside: Vec::new(),
            working_since: None,
            worked: Duration::ZERO,
            interrupted: false,
            hint: None,
            last_key: Duration::ZERO,
            ticked_at: Duration::ZERO,
            touched_at: Duration::ZERO,
            question_time: None,
            last_key_at_work: None,
            last_escape: None,
            last_stop: None,
            leaves_until: None,
            may_bypass,
            is_plain: false,
            past: Vec::new(),
            chosen: None,
            has_files: false,
            given: Vec::new(),
            sessions: Vec::new(),
        }
    }

    /// Everything looks like this from now on; what stands in the conversation stays as it is.
    pub fn dress(&mut self, theme: Theme) {
        self.theme = theme;
        self.feed.dress(theme);
    }

    pub fn theme(&self) -> &Theme {
        &self.theme
    }

    pub fn columns(&self) -> usize {
        self.columns
    }

    pub fn resize(&mut self, columns: usize, rows: usize) {
        (self.columns, self.rows) = (columns, rows);
        self.feed.resize(columns);
        if !self.is_plain {
            // There may be no room any more for what is asked.
            self.tell_body();
            self.tell_question();
        }
    }

    /// Lines that are finished since they were last asked for.
    pub fn take_finished(&mut self) -> Vec<Line<'static>> {
        self.ends_apart = self.ends_apart();
        std::mem::take(&mut self.finished)
    }

    fn ends_apart(&self) -> bool {
        self.finished.last().map_or(self.ends_apart, |line| line.width() == 0)
    }

    /// The user's words, apart from what stands above them.
    pub fn put_prompt(&mut self, words: &str) {
        let mut lines = self.feed.prompt(words);
        if self.ends_apart() && lines.first().is_some_and(|line| line.width() == 0) {
            lines.remove(0);
        }
        self.finished.extend(lines);
    }

    /// A command that the terminal itself answers. Where there are no keys it stands there already.
    pub fn put_command(&mut self, words: &str) {
        if !self.is_plain {
            self.put_prompt(words);
        }
    }

    /// Words of the program's own.
    pub fn say(&mut self, words: &str, role: Role) {
        let style = self.theme.style(role);
        let words = crate::clean::words(words);
        for line in words.lines() {
            let rows = crate::feed::wrapped(line, self.columns);
            self.finished.extend(rows.into_iter().map(|row| Line::styled(row, style)));
        }
    }

    /// Words and what is said of each, beside them or, where there is no room, below.
    pub fn say_table(&mut self, rows: Vec<(String, String)>) {
        let beside = (self.columns / 3).clamp(8, TABLE_LEFT_CELLS_MAX);
        for (left, right) in rows {
            let left = crate::clean::line(&left);
            let width = Line::raw(left.as_str()).width();
            let accent = self.theme.style(Role::Accent);
            let mut fits = width < beside;
            if !fits {
                self.finished.push(Line::styled(left.clone(), accent));
            }
            for row in
                crate::feed::wrapped(&crate::clean::line(&right), self.columns.saturating_sub(beside + 1))
            {
                let left = if std::mem::take(&mut fits) { left.as_str() } else { "" };
                let gap = " ".repeat(beside.saturating_sub(Line::raw(left).width()));
                let spans = [Span::styled(left.to_owned(), accent), Span::raw(gap), Span::raw(row)];
                self.finished.push(Line::from_iter(spans));
            }
        }
    }

    /// The same, with looks of their own.
    pub fn put(&mut self, lines: Vec<Line<'static>>) {
        self.finished.extend(lines);
    }

    /// A submission begins. These are the words, unless they waited and are told when they are read.
    pub fn begin(&mut self, words: Option<&str>, now: Duration) {
        self.feed.fold();
        self.working_since = Some(now);
        self.interrupted = false;
        // Where there are no keys the words stand there already.
        if let Some(words) = words.filter(|_| !self.is_plain) {
            self.put_prompt(words);
        }
    }

    /// It is over. Whether somebody wanted to leave and only waited for that.
    pub fn end(&mut self, now: Duration) -> bool {
        if let Some(since) = self.working_since.take() {
            self.worked += now.saturating_sub(since);
        }
        self.leaves_until.take().is_some_and(|until| now <= until)
    }

    /// The user has said that what runs is to end.
    pub fn is_interrupted(&self) -> bool {
        self.interrupted
    }

    pub fn is_working(&self) -> bool {
        self.working_since.is_some()
    }

    /// Something happened in the engine.
    pub fn event(&mut self, event: &Event, now: Duration) {
        if let Event::PromptsConsumed(ids) = event {
            self.consumed(ids);
        }
        self.finished.extend(self.feed.of(event, now));
    }

    /// Words that waited were read: they are part of the conversation now.
    fn consumed(&mut self, ids: &[Uuid]) {
        let is_read = |waiting: &Waiting| waiting.id.is_some_and(|id| ids.contains(&id));
        let (read, waiting) = std::mem::take(&mut self.waiting).into_iter().partition(is_read);
        self.waiting = waiting;
        let read: Vec<Waiting> = read;
        for Waiting { said, .. } in read.into_iter().filter(|waiting| !waiting.is_told) {
            self.put_prompt(&said.shown);
        }
    }

    /// What waits is read now. A command is its own turn, and stands before what it tells.
    pub fn begin_waiting(&mut self) {
        // Words for the next step are read before it.
        if self.waiting.iter().any(|waiting| waiting.when == When::Next) {
            return;
        }
        let first = self.waiting.iter_mut().find(|waiting| waiting.id.is_some());
        let Some(waiting) = first.filter(|waiting| waiting.said.is_command()) else { return };
        waiting.is_told = true;
        let words = waiting.said.shown.clone();
        self.put_prompt(&words);
    }

    /// Words that wait are kept, by this name.
    pub fn queued(&mut self, said: &Submission, id: Uuid) {
        if self.is_plain {
            self.say("(noted: it is read at the next step)", Role::Faint);
        }
        if let Some(waiting) =
            self.waiting.iter_mut().find(|waiting| waiting.id.is_none() && waiting.said == *said)
        {
            waiting.id = Some(id);
        }
    }

    /// They could not be kept.
    pub fn not_queued(&mut self, said: &Submission, why: &str) {
        self.waiting.retain(|waiting| waiting.id.is_some() || waiting.said != *said);
        self.draft.put_back(said);
        self.say(&format!("not taken: {why}"), Role::Error);
    }

    /// The engine asks something. It is shown by [`show_next`](Self::show_next).
    pub fn ask(&mut self, id: AskedId, asked: Asked) {
        self.asked.push_back((id, asked));
    }

    /// Whether a question waits to be shown.
    pub fn has_unshown(&self) -> bool {
        !self.asked.is_empty() && !self.is_asking()
    }

    /// Nobody wants the answer any more.
    pub fn taken_back(&mut self, id: AskedId) {
        self.asked.retain(|(asked, _)| *asked != id);
        if self.dialog.as_ref().is_some_and(|dialog| dialog.id() == Some(id)) {
            self.dialog = None;
        }
    }

    /// The plan that is asked about is another one now: it is told once more.
    pub fn plan_edited(&mut self, id: AskedId, plan: &str) {
        let Some(dialog) = self.dialog.as_mut().filter(|dialog| dialog.id() == Some(id)) else { return };
        dialog.set_plan(plan);
        let body = dialog.body(&self.theme, self.columns);
        self.finished.extend(body);
    }

    /// What was folded since the last prompt is told whole.
    fn unfold(&mut self, now: Duration) {
        match self.feed.unfold() {
            Some(lines) => {
                if !self.ends_apart() {
                    self.put(vec![Line::default()]);
                }
                self.put(lines);
            }
            None => self.hint("nothing is folded that was not shown", now),
        }
    }

    /// Whether something is asked, by the engine or by the terminal itself.
    pub fn has_dialog(&self) -> bool {
        self.dialog.is_some()
    }

    /// Whether a question of the engine's is shown.
    pub fn is_asking(&self) -> bool {
        self.dialog.as_ref().is_some_and(|dialog| dialog.id().is_some())
    }

    /// Shows the next question. To be called when everything was read that was typed before: whoever could not see it
    /// cannot mean it. A list of the terminal's own gives way, for the engine waits.
    pub fn show_next(&mut self, now: Duration) {
        if self.is_asking() {
            return;
        }
        if let Some((id, asked)) = self.asked.pop_front() {
            // Words that were just sent may be followed by others, or by the same key once more.
            let typed = if self.draft.is_empty() { self.last_key_at_work } else { Some(self.last_key) };
            self.touched_at = now;
            self.open(Dialog::of(id, asked, now, typed));
        }
    }

    fn open(&mut self, dialog: Dialog) {
        self.dialog = Some(dialog);
        (self.body_told, self.words_told) = (false, false);
        self.tell_body();
        match self.dialog.as_ref().filter(|_| self.is_plain) {
            Some(dialog) => self.finished.extend(dialog.told(&self.theme, self.columns)),
            None => self.tell_question(),
        }
    }

    /// Everything that is decided about is seen whole, if not beside the question then above.
    fn tell_body(&mut self) {
        let Some(dialog) = self.dialog.as_ref().filter(|_| !self.body_told) else { return };
        let body = dialog.body(&self.theme, self.columns);
        let lines = dialog.live(&self.theme, self.columns).lines;
        let fits = body.len() + lines.len() + frame::ROWS_BESIDE_DIALOG <= self.rows;
        // A plan is part of the conversation: it is still there when it is carried out.
        if self.is_plain || dialog.is_plan() || !fits {
            self.body_told = true;
            let is_apart = self.ends_apart();
            self.finished.extend(body.into_iter().skip_while(|line| is_apart && line.width() == 0));
        }
    }

    /// So is what is asked.
    fn tell_question(&mut self) {
        let Some(dialog) = self.dialog.as_ref().filter(|_| !self.words_told) else { return };
        let words = dialog.words(&self.theme, self.columns);
        // Of whatever does not fit the first row stays.
        if words.len() > 1 && dialog.live(&self.theme, self.columns).lines.len() > self.rows {
            self.words_told = true;
            self.finished.extend(words);
        }
    }

    fn hint(&mut self, words: &'static str, now: Duration) {
        if self.is_plain {
            self.say(words, Role::Warning);
        }
        self.hint = Some((words, now + HINT_TIME));
    }

    /// When something changes although nothing happens.
    pub fn wakes_at(&self, now: Duration) -> Option<Duration> {
        let expiry = self.expires_at();
        if self.is_plain {
            // Whoever is asked knows what it is about.
            let told = self.feed.announces_at().filter(|_| self.dialog.is_none()).map(|at| at.max(now));
            return expiry.filter(|at| *at > now).into_iter().chain(told).min();
        }
        let hint = self.hint.map(|(_, until)| until);
        let armed = self.dialog.as_ref().map(Dialog::armed_at);
        let beside = self.beside_since();
        let second = self.working_since.or(beside).map(|since| {
            let elapsed = now.saturating_sub(since);
            since + Duration::from_secs(elapsed.as_secs() + 1)
        });
        // Files that can be mentioned are found one after the other.
        let files = self.draft.waits_for_files().then(|| now + FILES_LOOKED_AT_EVERY);
        [hint, armed, second, files, expiry].into_iter().flatten().filter(|at| *at > now).min()
    }

    /// When nobody is waited for any more, if a question of the model's is open.
    fn expires_at(&self) -> Option<Duration> {
        let is_open = self.dialog.as_ref().is_some_and(Dialog::is_of_model);
        self.question_time.filter(|_| is_open).map(|time| self.touched_at + time)
    }

    /// A question that nobody does anything about is answered with what there is.
    pub fn expired(&mut self, now: Duration) -> Vec<Effect> {
        if self.expires_at().is_none_or(|at| at > now) {
            return Vec::new();
        }
        let outcome = self.dialog.as_mut().and_then(Dialog::given_up);
        outcome.map(|outcome| self.answered(outcome, now)).unwrap_or_default()
    }

    /// Time has passed.
    pub fn tick(&mut self, now: Duration) {
        self.ticked_at = now;
        if self.draft.waits_for_files() {
            self.draft.look();
        }
        if self.is_plain && self.dialog.is_none() {
            let lines = self.feed.announce(now);
            self.finished.extend(lines);
        }
        if self.hint.is_some_and(|(_, until)| until <= now) {
            self.hint = None;
        }
    }
}
