//! Plays a plan: one session over all its processes, in memory, on a stopped clock.

use std::panic::{AssertUnwindSafe, catch_unwind};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use futures::Stream;
use futures::future::{Either, select};
use jiff::SignedDuration;
use pelton::permission::Mode;
use pelton::transcript;
use pelton::{Engine, Event, Options, Prompt, Resumed, Sessions};
use pelton_model::{Auth, Endpoint, Secret};
use pelton_testkit::{ScriptedModel, SeededWorld};
use serde_json::json;
use tokio::time::{Instant, sleep};
use uuid::Uuid;

use crate::check::{Checker, Heard};
use crate::dice::Dice;
use crate::disk::SimDisk;
use crate::hooks::Host;
use crate::log::{Log, words};
use crate::plan::{At, Death, FINE, Fate, Plan, Submission};
use crate::tools::Deeds;

/// By the stopped clock: whoever waited so long for an answer gives up.
const PATIENCE: Duration = Duration::from_secs(4 * 3600);
/// Polls after which a submission is said to run in circles.
const POLLS_MAX: usize = 200_000;
/// Prompts after which the session must have found its way back to a good answer.
const LAST_PROMPTS_MAX: usize = 40;

/// What came of a seed.
pub struct Played {
    /// What broke, in the order it was noticed.
    pub broken: Vec<String>,
    pub log: Vec<String>,
    pub hash: u64,
}

/// Plays one seed on a runtime of its own. A panic of the engine is one more thing that broke.
pub fn play(seed: u64) -> Played {
    let runtime =
        tokio::runtime::Builder::new_current_thread().enable_time().start_paused(true).build().unwrap();
    let log = runtime.block_on(async { Log::new() });
    let whole = || {
        runtime.block_on(async {
            let plan = Plan::of(seed);
            log.say(format!("{:?}", plan.setup));
            for (n, step) in plan.steps.iter().enumerate() {
                log.say(format!("step {}: {step:?}", n + 1));
            }
            Session::new(plan, log.clone()).play().await
        })
    };
    let broken = catch_unwind(AssertUnwindSafe(whole)).unwrap_or_else(|panic| {
        let words = panic.downcast_ref::<String>().cloned();
        let words = words.or_else(|| panic.downcast_ref::<&str>().map(|text| (*text).to_owned()));
        vec![format!("panicked: {}", words.unwrap_or_default())]
    });
    for line in &broken {
        log.say(format!("BROKEN: {line}"));
    }
    Played { broken, log: log.lines(), hash: log.hash() }
}

struct Session {
    plan: Plan,
    log: Log,
    model: ScriptedModel,
    disk: SimDisk,
    deeds: Deeds,
    host: Host,
    user: Dice,
    checker: Checker,
    /// Processes so far.
    boots: u64,
    world: Arc<SeededWorld>,
}

impl Session {
    fn new(plan: Plan, log: Log) -> Self {
        let disk = SimDisk::new(plan.seed, plan.setup.weather, log.clone());
        Self {
            model: plan.script().start_in_memory().unwrap().expect_illegal(),
            deeds: Deeds::new(disk.clone(), log.clone()),
            host: Host::new(plan.seed, log.clone()),
            user: Dice::of(plan.seed, "jumps"),
            checker: Checker::new(plan.setup.clone()),
            world: Arc::new(SeededWorld::new(plan.seed)),
            boots: 0,
            plan,
            log,
            disk,
        }
    }

    async fn play(&mut self) -> Vec<String> {
        let mut engine = self.boot();
        for (n, submission) in self.plan.submissions.clone().into_iter().enumerate() {
            self.log.say(format!("prompt {n}: {submission:?}"));
            self.submit(&mut engine, &format!("Prompt {n}."), submission).await;
            if let Fate::Dies(_, death) = submission.fate {
                drop(engine);
                engine = self.go_on_after(death);
            }
            if self.checker.is_broken() {
                return self.verdict(&engine);
            }
        }
        // However it went, the session is there and the model is willing.
        self.disk.calm();
        self.host.calm();
        self.find_back(&mut engine).await;
        drop(engine);
        let mut engine = self.go_on_after(Death::OfMachine);
        self.find_back(&mut engine).await;
        self.verdict(&engine)
    }

    fn verdict(&mut self, engine: &Engine) -> Vec<String> {
        self.log.say(format!("session {} is over", engine.session_id()));
        let dir = std::env::var_os("PELTON_SEED_REQUESTS").map(PathBuf::from);
        for seen in self.model.requests() {
            if let Some(dir) = &dir {
                std::fs::write(dir.join(format!("{}.json", seen.number)), &seen.raw).unwrap();
            }
            self.log.say(format!(
                "request {} at {:?}: step {:?}, {:?}, {:?}, {} events, {} bytes asked",
                seen.number,
                seen.arrived,
                seen.step,
                seen.reply.status,
                seen.reply.ending,
                seen.reply.events.len(),
                seen.raw.len(),
            ));
        }
        self.checker.at_the_end(&self.deeds)
    }

    /// Prompts until the model says that all is well.
    async fn find_back(&mut self, engine: &mut Engine) {
        let ends = Submission { fate: Fate::Ends, rests: None };
        for n in 0..LAST_PROMPTS_MAX {
            self.log.say(format!("last prompt {n}"));
            let outcome = self.submit(engine, &format!("And now? ({n})"), ends).await;
            if self.checker.is_broken() {
                return;
            }
            let Some(outcome) = outcome else { continue };
            let fine = outcome.text.contains(FINE) && self.model.summary().steps_left.is_empty();
            if fine || self.checker.may_end_so(&outcome) {
                return;
            }
        }
        self.checker.broken("the session did not find back to a good answer");
    }

    /// Submits a prompt and lets its fate happen. Gives the result, if there was one.
    async fn submit(
        &mut self,
        engine: &mut Engine,
        prompt: &str,
        submission: Submission,
    ) -> Option<Arc<pelton::Outcome>> {
        let interrupter = engine.interrupter();
        let mut heard = Heard { requests_before: self.model.requests().len(), ..Heard::default() };
        let failures_before = self.disk.failures();
        {
            let mut events = std::pin::pin!(engine.submit(Prompt::text(prompt).unwrap()));
            let at = match submission.fate {
                Fate::Ends => At::Time(PATIENCE),
                Fate::Interrupted(at) | Fate::LetGo(at) | Fate::Dies(at, _) => at,
            };
            heard.ended = self.pull(events.as_mut(), at, submission.rests, &mut heard).await;
            if !heard.ended && matches!(submission.fate, Fate::Interrupted(_) | Fate::Ends) {
                self.log.say("the user interrupts");
                let asked = Instant::now();
                interrupter.interrupt();
                heard.interrupted_at = Some(heard.events.len());
                heard.ended = self.pull(events.as_mut(), At::Time(PATIENCE), None, &mut heard).await;
                if !heard.ended {
                    self.checker.broken("a submission did not end after an interrupt");
                }
                heard.end_took = asked.elapsed();
            } else if !heard.ended {
                self.log.say("the stream is dropped");
            }
        }
        heard.disk_failed = self.disk.failures() > failures_before;
        self.checker.nothing_runs(&self.deeds, &self.host, &self.model);
        let file = engine.transcript_file().unwrap();
        let bytes = self.disk.bytes(&file).unwrap_or_default();
        self.checker.submission(&heard, &self.model, &bytes);
        heard.outcome()
    }

    /// Pulls events until the stream ends or the moment has come. Tells whether it ended.
    async fn pull(
        &mut self,
        mut events: std::pin::Pin<&mut (impl Stream<Item = Event> + Send)>,
        at: At,
        rests: Option<(usize, Duration)>,
        heard: &mut Heard,
    ) -> bool {
        let (polls_max, time) = match at {
            At::Polls(polls) => (polls, PATIENCE),
            At::Time(time) => (POLLS_MAX, time),
        };
        let mut polls = 0;
        let mut moment = std::pin::pin!(sleep(time));
        loop {
            let world = &self.world;
            let user = &mut self.user;
            let next = std::future::poll_fn(|cx| {
                if polls >= polls_max {
                    return std::task::Poll::Ready(None);
                }
                polls += 1;
                if user.one_in(100) {
                    let minutes = user.below(20_000) as i64 - 10_000;
                    world.jump(SignedDuration::from_mins(minutes));
                }
                match events.as_mut().poll_next(cx) {
                    std::task::Poll::Pending if polls >= polls_max => std::task::Poll::Ready(None),
                    other => other.map(Some),
                }
            });
            let event = match select(next, moment.as_mut()).await {
                Either::Left((Some(Some(event)), _)) => event,
                Either::Left((Some(None), _)) => return true,
                Either::Left((None, _)) => {
                    if polls >= POLLS_MAX {
                        self.checker.broken("a submission runs in circles");
                    }
                    return false;
                }
                Either::Right(_) => return false,
            };
            self.log.say(words(&event));
            heard.events.push(event);
            if let Some((every, rest)) = rests
                && heard.events.len().is_multiple_of(every)
            {
                sleep(rest).await;
            }
        }
    }

    /// A new process goes on with what the old one left on the disk.
    fn go_on_after(&mut self, death: Death) -> Engine {
        self.log.say(format!("the end {death:?}"));
        if death == Death::OfMachine {
            self.disk.power_cut();
        }
        let file = self.file();
        let bytes = self.disk.bytes(&file).unwrap_or_default();
        self.checker.died(death, &bytes, &self.deeds);
        self.boot()
    }

    fn boot(&mut self) -> Engine {
        self.boots += 1;
        let mut options = self.options();
        let file = self.file();
        let mut spent = 0.0;
        if let Some(bytes) = self.disk.bytes(&file).filter(|bytes| !bytes.is_empty()) {
            let conversation = transcript::read_from(&bytes[..]).unwrap();
            spent = conversation.spent.values().filter_map(|used| used.cost_usd).sum();
            options.resume = Some(Resumed { file: file.clone(), conversation });
        }
        let synced = self.plan.setup.durability == transcript::Durability::Synced;
        self.deeds.boot(synced.then_some(file));
        self.checker.boot(self.model.requests().len(), spent);
        self.world = Arc::new(SeededWorld::new(self.plan.seed ^ (self.boots << 40)));
        options.world = self.world.clone();
        Engine::new(options).unwrap()
    }

    fn options(&self) -> Options {
        let setup = &self.plan.setup;
        let endpoint = Endpoint::new(self.model.base_url(), Auth::ApiKey(Secret::new("test")));
        // A directory that is everywhere; nothing is done there.
        let mut options = Options::new("/", endpoint);
        options.mode = Mode::BypassPermissions;
        options.transport = Arc::new(self.model.transport());
        options.disk = Arc::new(self.disk.clone());
        options.sessions =
            Some(Sessions { config_dir: PathBuf::from(CONFIG_DIR), durability: setup.durability });
        options.session_id = Some(session_id(self.plan.seed));
        options.tools = self.deeds.tools().to_vec();
        options.fallback_models.clone_from(&setup.fallback_models);
        options.max_budget_usd = setup.budget_usd;
        options.limits.turns_max = setup.turns_max;
        options.limits.output_tokens_wanted = setup.output_tokens_wanted;
        options.max_output_tokens = setup.max_output_tokens;
        options.window_tokens = setup.window_tokens;
        // Who is asked beside the conversation answers in no order: the script would not know whom.
        options.compact.folds = false;
        options.tool_calls_running_max = setup.running_max;
        options.retry.non_streaming_fallback = setup.non_streaming_fallback;
        if setup.schema {
            options.json_schema = Some(json!({
                "type": "object", "properties": {"answer": {"type": "string"}}, "required": ["answer"],
                "additionalProperties": false,
            }));
        }
        if let Some(on_failure) = setup.hooks {
            options.hooks = self.host.config(on_failure);
        }
        options
    }

    fn file(&self) -> PathBuf {
        transcript::session_file(Path::new(CONFIG_DIR), Path::new("/"), session_id(self.plan.seed))
    }
}

/// Where the simulated disk keeps transcripts. What else is written goes to the real one, under the build's folder.
const CONFIG_DIR: &str = concat!(env!("CARGO_TARGET_TMPDIR"), "/simulation");

fn session_id(seed: u64) -> Uuid {
    Uuid::from_u128(u128::from(seed))
}
