//! What stands in front of every request: made once in a session, whatever processes it goes through, and again only where it
//! must be.

use std::sync::Arc;

use pelton_model::Prefix;

use super::{Engine, gather};
use crate::context::tools_json;
use crate::event::LoopKind;
use crate::tools::offer::FrontBefore;

impl Engine {
    /// Takes in what servers serve now. What stands in front of the messages is as an earlier process sent it, or made anew; it
    /// changes afterwards only where servers brought something that has no other place.
    pub(super) fn renew_prefix(&mut self) {
        if self.question.prefix.system.is_empty()
            && let Some(prefix) = self.prefix_before()
        {
            self.question.prefix = prefix;
        }
        let rules = &self.options.rules;
        let changed = self.offer.renew(|name| rules.removes(name));
        let first = self.question.prefix.system.is_empty();
        if !first && changed.is_none() {
            return;
        }
        let prefix = if first {
            self.fresh_prefix()
        } else {
            // Thinking is bound to what stands before it.
            self.session.history.view_mut().leave_out_thinking("other tools");
            self.session.note(LoopKind::Prefix, &changed.unwrap_or_default(), 0);
            let system = self.question.prefix.system.clone();
            Prefix { system, tools: tools_json(self.offer.tools()) }
        };
        if first && let Some(what) = self.cache.differs_from_resumed(&prefix) {
            let left_out = self.session.history.view_mut().leave_out_thinking(what);
            // A session that begins has no thinking that could be bound to another front.
            if left_out > 0 || self.cache.prefix().is_some() {
                self.session.note(
                    LoopKind::Prefix,
                    &format!("{what} than before the session was resumed"),
                    0,
                );
            }
        }
        self.question.prefix = Arc::new(prefix);
    }

    /// The same for whoever only looks: nothing is settled by it.
    pub(super) fn prefix_so_far(&self) -> Arc<Prefix> {
        if !self.question.prefix.system.is_empty() {
            return Arc::clone(&self.question.prefix);
        }
        let notes = gather::notes(&self.options);
        let system = self.options.system_prompt.json(notes, &[], &self.tool_names(), self.question.cache);
        Arc::new(Prefix { system, tools: tools_json(self.offer.tools()) })
    }

    /// The names of the tools that are sent.
    pub(super) fn tool_names(&self) -> Vec<&str> {
        self.offer.tools().iter().map(|tool| tool.spec().name).collect()
    }

    fn fresh_prefix(&mut self) -> Prefix {
        let instructions = self.offer.instructions();
        let notes = gather::notes(&self.options);
        let system =
            self.options.system_prompt.json(notes, &instructions, &self.tool_names(), self.question.cache);
        Prefix { system, tools: tools_json(self.offer.tools()) }
    }

    /// What an earlier process of this session sent, byte for byte, if that is still what is wanted: servers may have gone,
    /// come or changed since, which the model is told behind it; what people chose counts at once.
    fn prefix_before(&mut self) -> Option<Arc<Prefix>> {
        let kept = self.options.resume.as_mut()?.conversation.prefix.take()?;
        let before = FrontBefore::read(&kept)?;
        let notes = gather::notes(&self.options);
        let wanted = self.options.system_prompt.texts(notes, &[], &before.tool_names());
        if !before.was_kept(self.question.cache) {
            return None;
        }
        // In another directory the notes are elsewhere. That is told behind what was sent, which the server still has.
        let moved = match before.own_words().eq(wanted.iter().map(String::as_str)) {
            true => None,
            false => {
                let names = before.tool_names();
                Some(self.options.system_prompt.moved_notes(before.own_words(), notes?, &names)?)
            }
        };
        let (rules, agents) = (&self.options.rules, &self.options.startable());
        let told = self.session.kept.served.clone();
        let goes_on = self.offer.go_on_with(&before, told, agents, |name| rules.removes(name));
        let view = self.session.history.view();
        self.to_tell.contexts.extend(moved.filter(|words| goes_on && !view.tells(words)));
        goes_on.then_some(kept)
    }
}
