//! Words that are about to be shown: hooks are told of them, and may have others shown in their place. What is recorded, and
//! what the model knows, stays as it was said.

use std::path::PathBuf;
use std::sync::Arc;

use futures::FutureExt;
use futures::future::{BoxFuture, pending};

use super::Live;
use crate::event::{Display, Event};
use crate::fresh_id;
use crate::hooks::{Fired, HookEvent, SessionHooks, Shown};
use crate::tools::bench::HookWords;

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
    /// Words that came and were not told.
    untold: String,
    running: Option<BoxFuture<'static, Heard>>,
}

/// What hooks made of words.
pub(super) struct Heard {
    said: Arc<str>,
    fired: Option<Fired>,
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
            untold: String::new(),
            running: None,
        }));
        self.events.send(Event::Display(Display::Asked)).await;
    }

    /// What hooks made of words is shown.
    pub(super) async fn displayed(&mut self, Heard { said, fired }: Heard) {
        let other = |fired: &Fired| fired.verdict.extras.get("displayContent")?.as_str().map(Arc::from);
        let shown = fired.as_ref().and_then(other).unwrap_or_else(|| Arc::clone(&said));
        // They cannot end anything, and have nothing else to say here.
        let runs = fired.map(|fired| fired.runs).unwrap_or_default();
        self.tell_hooks(HookWords { runs, ..HookWords::default() }).await;
        self.events.send(Event::Display(Display::Words { said, shown })).await;
        if let Some(telling) = &mut self.display {
            telling.tell_lines();
        }
    }

    /// The answer is complete: hooks are told of what is left of it. Its calls go on meanwhile.
    pub(super) async fn finish_display(&mut self) {
        self.hear_display().await;
        let words = self.last.words().unwrap_or_default();
        let Some(telling) = &mut self.display else { return };
        let rest = match telling.times {
            0 if words.is_empty() => return self.display = None,
            0 => words,
            _ => std::mem::take(&mut telling.untold),
        };
        telling.tell(rest, true);
        self.hear_display().await;
        self.display = None;
    }

    /// Waits for what hooks say of words they were told.
    async fn hear_display(&mut self) {
        while self.display.as_ref().is_some_and(|telling| telling.running.is_some()) {
            tokio::select! {
                biased;
                () = self.cancel.cancelled() => self.display = None,
                () = self.executor.advance() => {}
                heard = heard(&mut self.display) => self.displayed(heard).await,
            }
        }
    }
}

impl Telling {
    /// More of the answer came.
    pub fn came(&mut self, words: &str) {
        if self.by_line {
            self.untold.push_str(words);
            self.tell_lines();
        }
    }

    /// Tells of the lines that are complete, once those before them are answered. A blank beginning may be all there is.
    fn tell_lines(&mut self) {
        let Some(end) = self.untold.rfind('\n').filter(|_| self.running.is_none()) else { return };
        if self.times == 0 && self.untold.trim().is_empty() {
            return;
        }
        let rest = self.untold.split_off(end + 1);
        let lines = std::mem::replace(&mut self.untold, rest);
        self.tell(lines, false);
    }

    fn tell(&mut self, words: String, is_last: bool) {
        let (hooks, cwd) = (self.hooks.clone(), self.cwd.clone());
        let (turn, message, index) = (self.turn.clone(), self.message.clone(), self.times);
        self.times += 1;
        let tell = async move {
            let shown = Shown { turn: &turn, message: &message, index, is_last, words: &words };
            let fired = hooks.displays(&shown, &cwd).await;
            Heard { said: words.into(), fired }
        };
        self.running = Some(tell.boxed());
    }
}

/// What hooks say of the newest words; waits for ever while they are told nothing.
pub(super) async fn heard(display: &mut Option<Box<Telling>>) -> Heard {
    let Some(telling) = display else { return pending().await };
    let Some(running) = &mut telling.running else { return pending().await };
    let heard = running.await;
    telling.running = None;
    heard
}
