//! Words that are about to be shown: hooks are told of them, and may have others shown in their place. What is recorded, and
//! what the model knows, stays as it was said.

use std::collections::VecDeque;
use std::path::PathBuf;
use std::sync::Arc;

use futures::FutureExt;
use futures::future::{BoxFuture, pending, ready};

use super::Live;
use crate::event::{Display, Event};
use crate::fresh_id;
use crate::hooks::{Fired, HookEvent, SessionHooks, Shown};
use crate::tools::bench::HookWords;

/// What parts words that something else stands between.
const BREAK: &str = "\n\n";

/// An answer whose words hooks are told of.
pub(crate) struct Telling {
    hooks: SessionHooks,
    cwd: PathBuf,
    turn: String,
    message: String,
    /// Each line as it is complete; otherwise the whole answer at its end.
    by_line: bool,
    /// How often hooks were told.
    times: u32,
    /// Words that came and were not told; something else than words stands between each of them and the next.
    untold: VecDeque<Words>,
    /// Words of the newest block came.
    has_come: bool,
    running: Option<Running>,
}

/// A block of words, or what is left of it. Blocks of words that follow each other are one: a server parts a sentence where it names
/// its source.
#[derive(Default)]
struct Words {
    text: String,
    /// Part of it was told.
    has_begun: bool,
    /// Nothing more comes of it: something else has begun.
    is_over: bool,
    /// So many bytes of it are of blocks at their ends, and recorded.
    whole_bytes: usize,
}

/// Words that hooks look at.
struct Running {
    said: Arc<str>,
    ends_block: bool,
    hooks: BoxFuture<'static, Option<Fired>>,
}

/// What hooks made of words.
pub(super) struct Heard {
    said: Arc<str>,
    /// Nothing more comes of their block.
    ends_block: bool,
    fired: Option<Fired>,
}

/// What is shown of an answer that nobody waits for any more.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Shows {
    /// All that was said.
    All,
    /// The blocks that are at their ends.
    WholeBlocks,
}

impl Live<'_> {
    /// An answer begins. Those of agents are not shown as they come.
    pub(super) async fn begin_display(&mut self) {
        self.display = None;
        let hooks = &self.bench.hooks;
        if hooks.base.agent_id.is_some() || !hooks.listens(HookEvent::MessageDisplay) {
            return;
        }
        let id = || fresh_id(&*self.world).to_string();
        self.display = Some(Box::new(Telling {
            hooks: hooks.clone(),
            cwd: self.bench.cwd_now(),
            turn: hooks.base.prompt_id.clone().unwrap_or_else(id),
            message: id(),
            by_line: self.options.displays_by_line,
            times: 0,
            untold: VecDeque::new(),
            has_come: false,
            running: None,
        }));
        self.events.send(Event::Display(Display::Asked)).await;
    }

    /// What hooks made of words is shown.
    pub(super) async fn displayed(&mut self, Heard { said, ends_block, fired }: Heard) {
        let other = |fired: &Fired| fired.verdict.extras.get("displayContent")?.as_str().map(Arc::from);
        let shown = fired.as_ref().and_then(other).unwrap_or_else(|| Arc::clone(&said));
        // They cannot end anything, and have nothing else to say here.
        let runs = fired.map(|fired| fired.runs).unwrap_or_default();
        self.tell_hooks(HookWords { runs, ..HookWords::default() }).await;
        self.show(said, shown, ends_block).await;
        if let Some(telling) = &mut self.display {
            telling.tell_next();
        }
    }

    async fn show(&mut self, said: Arc<str>, shown: Arc<str>, ends_block: bool) {
        if !(said.is_empty() && shown.is_empty()) {
            self.events.send(Event::Display(Display::Words { said, shown })).await;
        }
        if ends_block {
            self.events.send(Event::Display(Display::Break)).await;
        }
    }

    /// The answer is complete: hooks are told of what is left of it. Its calls go on meanwhile.
    pub(super) async fn finish_display(&mut self) {
        self.hear_display().await;
        let Some(telling) = &mut self.display else { return };
        if telling.tell_rest() {
            self.hear_display().await;
        }
        self.display = None;
    }

    /// Waits for what hooks say of words they were told.
    async fn hear_display(&mut self) {
        while self.display.as_ref().is_some_and(|telling| telling.running.is_some()) {
            tokio::select! {
                biased;
                () = self.cancel.cancelled() => self.show_untold(Shows::All).await,
                () = self.executor.advance() => {}
                heard = heard(&mut self.display) => self.displayed(heard).await,
            }
        }
    }

    /// Nobody waits for hooks any more: what they have not answered is shown as it was said, because it counts as said.
    pub(super) async fn show_untold(&mut self, what: Shows) {
        let Some(mut telling) = self.display.take() else { return };
        if let Some(Running { said, ends_block, .. }) = telling.running.take() {
            self.show(Arc::clone(&said), said, ends_block).await;
        }
        for mut words in telling.untold {
            if what == Shows::WholeBlocks {
                words.text.truncate(words.whole_bytes);
            }
            if words.has_begun || !words.text.trim().is_empty() {
                let said: Arc<str> = words.text.into();
                self.show(Arc::clone(&said), said, true).await;
            }
        }
    }
}

impl Telling {
    /// Another block of the answer begins.
    pub fn began(&mut self, block_type: &str) {
        self.has_come = false;
        if block_type == "text" {
            return;
        }
        if let Some(last) = self.untold.back_mut() {
            last.is_over = true;
            if !last.has_begun && last.text.trim().is_empty() {
                // Blank text is no part of the conversation.
                self.untold.pop_back();
            }
        }
        self.tell_next();
    }

    /// More of the answer came.
    pub fn came(&mut self, words: &str) {
        self.has_come = true;
        if self.untold.back().is_none_or(|last| last.is_over) {
            self.untold.push_back(Words::default());
        }
        if let Some(last) = self.untold.back_mut() {
            last.text.push_str(words);
        }
        self.tell_next();
    }

    /// A block of words is at its end: these, in case they did not come one by one.
    pub fn completed(&mut self, words: &str) {
        if !self.has_come {
            self.came(words);
        }
        if let Some(last) = self.untold.back_mut() {
            last.whole_bytes = last.text.len();
        }
    }

    /// Tells of the lines that are complete, once those before them are answered. A blank beginning may be all there is.
    fn tell_next(&mut self) {
        if !self.by_line || self.running.is_some() {
            return;
        }
        let Some(first) = self.untold.front_mut() else { return };
        if first.is_over {
            let words = std::mem::take(&mut first.text);
            self.untold.pop_front();
            return self.tell(words, Told::BlockEnd);
        }
        let Some(end) = first.text.rfind('\n') else { return };
        if !first.has_begun && first.text.trim().is_empty() {
            return;
        }
        first.has_begun = true;
        first.whole_bytes = first.whole_bytes.saturating_sub(end + 1);
        let rest = first.text.split_off(end + 1);
        let lines = std::mem::replace(&mut first.text, rest);
        self.tell(lines, Told::Lines);
    }

    /// Tells of all that is left. Whether there is anything to tell.
    fn tell_rest(&mut self) -> bool {
        let mut rest = String::new();
        for words in std::mem::take(&mut self.untold) {
            if !rest.is_empty() {
                rest.push_str(BREAK);
            }
            rest.push_str(&words.text);
        }
        let is_any = self.times > 0 || !rest.trim().is_empty();
        if is_any {
            self.tell(rest, Told::Rest);
        }
        is_any
    }

    fn tell(&mut self, words: String, what: Told) {
        let said: Arc<str> = words.into();
        let ends_block = what != Told::Lines;
        if said.is_empty() && what == Told::BlockEnd {
            let hooks = ready(None).boxed();
            self.running = Some(Running { said, ends_block, hooks });
            return;
        }
        let (hooks, cwd, words) = (self.hooks.clone(), self.cwd.clone(), Arc::clone(&said));
        let (turn, message, index) = (self.turn.clone(), self.message.clone(), self.times);
        self.times += 1;
        let tell = async move {
            let is_last = what == Told::Rest;
            let shown = Shown { turn: &turn, message: &message, index, is_last, words: &words };
            hooks.displays(&shown, &cwd).await
        };
        self.running = Some(Running { said, ends_block, hooks: tell.boxed() });
    }
}

/// What words are of their answer.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Told {
    /// Lines, behind which more may come of their block.
    Lines,
    /// What was left of a block.
    BlockEnd,
    /// What was left of the answer.
    Rest,
}

/// What hooks say of the newest words; waits for ever while they are told nothing.
pub(super) async fn heard(display: &mut Option<Box<Telling>>) -> Heard {
    let Some(telling) = display else { return pending().await };
    let Some(running) = &mut telling.running else { return pending().await };
    let fired = (&mut running.hooks).await;
    let (said, ends_block) = (Arc::clone(&running.said), running.ends_block);
    telling.running = None;
    Heard { said, ends_block, fired }
}
