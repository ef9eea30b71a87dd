//! The loop of one submission: what it needs is put together here, and what is left of it is put back.

use std::collections::HashSet;
use std::sync::Arc;
use std::time::Duration;

use pelton_model::stream::Sender;
use pelton_model::{Ask, catalogue};
use tokio::sync::mpsc;
use tokio_util::sync::CancellationToken;

use super::Engine;
use super::input::Choices;
use super::models::is_another;
use crate::account::Tally;
use crate::event::Event;
use crate::limits::{BESIDE_QUEUED_MAX, REPORTS_QUEUED_MAX};
use crate::tools::executor::Executor;
use crate::tools::schedule::Terms;
use crate::turn::live::{Attempts, Dialled, Foresight, LastReply, Live, Noticed, Shaping, Summaries};
use crate::turn::{End, run};

impl Engine {
    /// Asks the model and runs its tools until there is a reason to stop.
    pub(super) async fn turns(
        &mut self,
        events: &Sender<Event>,
        cancel: &CancellationToken,
        started_at: Duration,
        choices: Choices,
        tally: &mut Tally,
        last: &mut LastReply,
    ) -> End {
        // An agent does what it does within the submission of its parent, whose loan it is.
        let _lent = self.kin.agent.is_none().then(|| self.kin.permissions.lend(choices.loan));
        let mut live = self.live(choices.model, events, cancel, started_at);
        live.question.effort = choices.effort.or(live.question.effort);
        live.tally = std::mem::take(tally);
        let end = run(&mut live).await;
        live.end(end.terminal).await;
        *tally = std::mem::take(&mut live.tally);
        *last = std::mem::take(&mut live.last);
        let question = live.question.clone();
        self.keep_of(question);
        end
    }

    /// The hands of one submission.
    pub(super) fn live(
        &mut self,
        model: Option<String>,
        events: &Sender<Event>,
        cancel: &CancellationToken,
        started_at: Duration,
    ) -> Live<'_> {
        let question = self.question_for(model);
        // A stand-in of an earlier submission, or a session of another model: what it thought is refused here.
        let view = self.session.history.view_mut();
        if view.thinkers().any(|model| is_another(model, &question.model)) {
            view.leave_out_thinking("another model");
        }
        view.set_overhead(question.prefix.system.len() + question.prefix.tools.len());
        view.set_counting(catalogue::counts_more(&question.model), catalogue::looks_closely(&question.model));
        let small = self.small_model();
        let summariser = small.clone().filter(|_| self.options.tool_use_summaries);
        let folder = small.filter(|_| self.options.compact.folds);
        let (reports_in, reports) = mpsc::channel(REPORTS_QUEUED_MAX);
        let (beside_in, beside) = mpsc::channel(BESIDE_QUEUED_MAX);
        let bench = Arc::new(self.bench(cancel, reports_in, beside_in.clone(), events));
        let terms =
            Terms { running_max: self.options.tool_calls_running_max, siblings: self.options.siblings };
        let listing_chars_max = self.listing_chars_max();
        let noticed = Noticed {
            memory: self.memory.clone(),
            skills: self.skills.clone(),
            listing_chars_max,
            files: &mut self.file_news,
            settings_looked_at: None,
        };
        let dialled = Dialled {
            dials: self.panel.dials.clone(),
            seen: self.panel.seen,
            model: self.options.model.clone(),
        };
        Live {
            session: &mut self.session,
            client: &self.kin.client,
            tools: self.offer.tools().to_vec(),
            offer: &mut self.offer,
            prefix: &mut self.question.prefix,
            structured: self.structured.clone(),
            room: self.options.room(&question.model),
            fallbacks: self.options.fallback_models.clone(),
            options: &self.options,
            question,
            gauge: self.gauge.clone(),
            bystander: self.bystander.clone(),
            spending: Arc::clone(&self.kin.spending),
            foresight: Foresight::default(),
            turn: 0,
            stop_feedback: None,
            left_out_by_name: HashSet::new(),
            stop_hook_active: false,
            attempts: Attempts::default(),
            paid: None,
            summaries: Summaries::by(summariser),
            shaping: Shaping::with_folder(folder),
            display: None,
            board: self.board.clone(),
            queue: self.queue.clone(),
            cache: &mut self.cache,
            noticed,
            dialled,
            executor: Executor::new(Arc::clone(&bench), terms),
            bench,
            _watch: self.background.keep_watch(),
            terms,
            reports,
            beside,
            beside_in,
            events: events.clone(),
            cancel: cancel.clone(),
            world: Arc::clone(&self.options.world),
            started_at,
            tally: Tally::default(),
            last: LastReply::default(),
        }
    }

    /// What was folded away stays so, and so do what is left of the task and what the server will not have.
    pub(super) fn keep_of(&mut self, question: Ask) {
        let Ask { task_budget, refused_betas, .. } = question;
        (self.question.task_budget, self.question.refused_betas) = (task_budget, refused_betas);
    }
}
