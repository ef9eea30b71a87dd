//! What the loop of a submission, and what runs beside it, works with.

use std::sync::{Arc, Mutex};

use pelton_model::stream::Sender;
use pelton_model::{Ask, catalogue};
use tokio::sync::mpsc;
use tokio_util::sync::CancellationToken;

use super::children::{Children, Judges};
use super::{Engine, elicited, gather};
use crate::event::Event;
use crate::hooks::HookAgents;
use crate::options::Options;
use crate::tools::agent::{self, Agents};
use crate::tools::ahead::Ahead;
use crate::tools::bench::Bench;
use crate::tools::{Progress, Report, ToolCx};
use crate::turn::side::SideSender;

impl Engine {
    /// The question without its messages, for the model of one submission.
    pub(super) fn question_for(&self, model: Option<String>) -> Ask {
        let mut question = self.question.clone();
        if let Some(model) = model {
            question.max_tokens = self.options.max_tokens(&model);
            question.model = model;
        }
        question.cache = self.options.cache_for(&question.model);
        question
    }

    /// Whether a budget can be kept with this model.
    pub(super) fn can_pay(&self, model: &str) -> bool {
        !self.kin.spending.is_capped() || self.kin.spending.knows(model)
    }

    /// The small model, if there is one and it can be paid.
    pub(super) fn small_model(&self) -> Option<String> {
        let named = Some(&self.options.small_model).filter(|model| !model.is_empty());
        named.map(|model| catalogue::resolve(model)).filter(|model| self.can_pay(model))
    }

    pub(super) fn bench(
        &self,
        submission: &CancellationToken,
        reports: mpsc::Sender<(Arc<str>, Report)>,
        beside: SideSender,
        events: &Sender<Event>,
    ) -> Bench {
        let cancel = submission.child_token();
        let refused = CancellationToken::new();
        let children = self.children(submission, &cancel, refused.clone(), events);
        let tools = self.offer.tools();
        let agents = tools.iter().any(|tool| agent::is_one(tool.as_ref()));
        let agents = agents.then(|| Arc::clone(&children) as Arc<dyn Agents>);
        self.kin.permissions.let_read(&self.beside.spill_dir);
        let notes_dir = gather::notes(&self.options).map(|notes| notes.dir.to_path_buf());
        if let Some(dir) = &notes_dir {
            self.kin.permissions.let_note(dir);
        }
        // A full queue loses reports, never results.
        let progress = Progress::new(move |call, report| _ = reports.try_send((Arc::from(call), report)));
        let aside = self.aside(beside);
        let mut cx =
            ToolCx { progress, agents, aside: Some(Arc::clone(&aside)), ..self.tool_cx(cancel.clone()) };
        let mut hooks = self.session_hooks(&cancel);
        hooks.cx.reach.aside = Some(aside);
        hooks.cx.reach.agents = Some(Arc::new(Judges { children, cancel: cancel.clone() }));
        cx.host = elicited::heard_by_hooks(cx.host, &hooks, events);
        Bench {
            tools: self.offer.callable(),
            shelf: self.offer.shelf().clone(),
            aliases: self.options.tool_aliases.clone(),
            permissions: self.kin.permissions.clone(),
            questions: self.options.questions.clone().map(|asked| asked.within(self.options.questions_time)),
            submission: submission.clone(),
            refused,
            repetition: Mutex::default(),
            notes_dir,
            may_defer: self.options.may_defer,
            ahead: self.options.speculation.clone().map(Ahead::new),
            hooks,
            cwd: Arc::clone(&self.cwd),
            transcript: self.session.record.transcript(),
            file_history: self.kin.file_history.clone(),
            cx,
        }
    }

    /// Agents that look around for hooks before a submission has begun.
    pub(super) fn judges(&self, cancel: &CancellationToken, events: &Sender<Event>) -> Arc<dyn HookAgents> {
        let children = self.children(cancel, cancel, CancellationToken::new(), events);
        Arc::new(Judges { children, cancel: cancel.clone() })
    }

    /// Who starts the agents of a submission.
    pub(super) fn children(
        &self,
        submission: &CancellationToken,
        cancel: &CancellationToken,
        refused: CancellationToken,
        events: &Sender<Event>,
    ) -> Arc<Children> {
        Arc::new(Children {
            options: Options { tools: self.offer.to_hand_on(), ..self.options.clone() },
            kin: self.kin.clone(),
            hooks: self.session_hooks(cancel),
            session_id: self.session.id,
            session_file: self.session_file(),
            question: self.question.clone(),
            events: events.clone(),
            roster: self.roster.clone(),
            submission: submission.clone(),
            refused,
            kept: Mutex::default(),
        })
    }
}
