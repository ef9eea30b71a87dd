//! Plan mode, in and out. The model may go in by itself, which only takes permissions away; out it comes when a person
//! has approved its plan.

use std::path::PathBuf;
use std::sync::{Arc, Mutex, PoisonError};

use futures::future::BoxFuture;
use serde::Deserialize;
use serde_json::{Value, json};

use crate::permission::{Change, Mode, Permissions, Update};
use crate::spill;
use crate::tools::tool::{Access, InvalidInput, Output, Safety, Spec, Tool, ToolCx, parse_input};

/// The names of the two tools.
pub(crate) const ENTER: &str = "EnterPlanMode";
pub(crate) const EXIT: &str = "ExitPlanMode";

/// What the model is told when plan mode begins: what holds in it, what to do, and how to leave it.
const PAGE: &str = include_str!("plan.md");

/// The same; a host may have words of its own for what to do.
pub(crate) fn rules(work: Option<&str>) -> String {
    let mut parts: Vec<&str> = PAGE.trim().split("\n\n").collect();
    if let (Some(own), Some(part)) = (work, parts.get_mut(1)) {
        *part = own.trim();
    }
    parts.join("\n\n")
}

/// The tools, which need to know whose permissions they change before they can run.
pub(super) fn tools() -> [Arc<dyn Tool>; 2] {
    both(None, None, None)
}

/// The same two for a session, which keeps its plans in that directory.
pub(crate) fn of(
    permissions: &Permissions,
    work: Option<&str>,
    plans: Option<PathBuf>,
) -> [Arc<dyn Tool>; 2] {
    both(Some(permissions), work, plans)
}

fn both(permissions: Option<&Permissions>, work: Option<&str>, plans: Option<PathBuf>) -> [Arc<dyn Tool>; 2] {
    let (permissions, before) = (permissions.cloned(), Mutex::new(Mode::Default));
    let mode =
        Arc::new(PlanMode { permissions, before, leaving: Mutex::default(), rules: rules(work), plans });
    [Arc::new(Enter(Arc::clone(&mode))), Arc::new(Exit(mode))]
}

struct PlanMode {
    permissions: Option<Permissions>,
    /// What to go back to.
    before: Mutex<Mode>,
    /// The call that asks to leave: whoever approves it may change the mode with the same words.
    leaving: Mutex<Option<Arc<str>>>,
    /// What the model is told when it begins.
    rules: String,
    /// Where plans are kept; beside the session's other files, if nobody says.
    plans: Option<PathBuf>,
}

struct Enter(Arc<PlanMode>);
struct Exit(Arc<PlanMode>);

impl PlanMode {
    fn enter(&self) -> Output {
        let Some(permissions) = &self.permissions else { return nowhere() };
        let now = permissions.mode();
        if now == Mode::Plan {
            return Output::error("Plan mode is on already.");
        }
        *self.before.lock().unwrap_or_else(PoisonError::into_inner) = now;
        match permissions.apply(&Update::session(Change::SetMode(Mode::Plan))) {
            Ok(()) => Output::text(self.rules.clone()).with_detail(json!({"message": "Plan mode is on."})),
            Err(error) => Output::error(error.to_string()),
        }
    }

    async fn exit(&self, plan: Option<String>, cx: &ToolCx) -> Output {
        let Some(permissions) = &self.permissions else { return nowhere() };
        // Whoever approved may have chosen the mode to go on in.
        if permissions.mode() == Mode::Plan {
            let before = *self.before.lock().unwrap_or_else(PoisonError::into_inner);
            if let Err(error) = permissions.apply(&Update::session(Change::SetMode(before))) {
                return Output::error(error.to_string());
            }
        }
        let Some(plan) = plan.filter(|plan| !plan.trim().is_empty()) else {
            return Output::text("Plan mode is over: the user agrees. You may begin.")
                .with_detail(json!({"plan": null, "isAgent": false}));
        };
        let kept = self.keep(&plan, cx).await;
        let text = format!("The user has approved your plan. You may begin.\n\n## Approved plan\n{plan}");
        Output::text(text).with_detail(json!({"plan": plan, "isAgent": false, "filePath": kept}))
    }
}

impl PlanMode {
    /// Keeps a plan where its user finds it. Without a file the plan is still in the call.
    async fn keep(&self, plan: &str, cx: &ToolCx) -> Option<PathBuf> {
        let dir = self.plans.as_deref().unwrap_or(&cx.spill_dir);
        let id = format!("plan-{}", cx.call_id);
        spill::keep_as(dir, &cx.secrets, &id, "md", plan.as_bytes().to_vec()).await.ok()
    }
}

fn nowhere() -> Output {
    Output::error("There is no session whose mode could be changed.")
}

const ENTER_SPEC: Spec<'static> = Spec {
    name: ENTER,
    description: "Begins plan mode: you only look around, and nothing is changed until the user has approved a plan. For work with \
                  several possible ways, many files, or unclear wishes. Not for small tasks or mere questions.",
    input_schema: r#"{"type":"object","properties":{}}"#,
};

const EXIT_SPEC: Spec<'static> = Spec {
    name: EXIT,
    description: "Shows the user your plan and asks for approval; if they agree, plan mode ends and you may begin. Call it when the \
                  plan is complete, with the whole plan as Markdown in `plan`. Not for tasks that only look something up.",
    input_schema: r#"{"type":"object","properties":{"plan":{"type":"string"}},"required":["plan"],"additionalProperties":true}"#,
};

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct EnterInput {}

#[derive(Deserialize)]
struct ExitInput {
    /// Absent in old prompts, whose plan is in the conversation.
    #[serde(default)]
    plan: Option<String>,
}

impl Tool for Enter {
    fn spec(&self) -> Spec<'_> {
        ENTER_SPEC
    }

    fn safety(&self, _: &Value) -> Safety {
        Safety::Alone
    }

    fn access(&self, input: &Value, _: &ToolCx) -> Result<Access, InvalidInput> {
        parse_input::<EnterInput>(input).map(|_| Access::Nothing)
    }

    fn run<'a>(&'a self, _: Value, _: &'a ToolCx) -> BoxFuture<'a, Output> {
        Box::pin(async move { self.0.enter() })
    }
}

impl Tool for Exit {
    fn spec(&self) -> Spec<'_> {
        EXIT_SPEC
    }

    fn safety(&self, _: &Value) -> Safety {
        Safety::Alone
    }

    fn access(&self, input: &Value, cx: &ToolCx) -> Result<Access, InvalidInput> {
        parse_input::<ExitInput>(input)?;
        let mut leaving = self.0.leaving.lock().unwrap_or_else(PoisonError::into_inner);
        if self.0.permissions.as_ref().is_none_or(|permissions| permissions.mode() == Mode::Plan) {
            *leaving = Some(Arc::clone(&cx.call_id));
        } else if leaving.as_ref() != Some(&cx.call_id) {
            return Err(InvalidInput("plan mode is not on, so there is nothing to leave".to_owned()));
        }
        Ok(Access::Person("Go on with this plan?".to_owned()))
    }

    fn completed<'a>(&'a self, mut input: Value, cx: &'a ToolCx) -> BoxFuture<'a, Value> {
        Box::pin(async move {
            let plan = parse_input::<ExitInput>(&input).ok().and_then(|input| input.plan);
            if let Some(plan) = plan.filter(|plan| !plan.trim().is_empty())
                && let Some(kept) = self.0.keep(&plan, cx).await
            {
                input["planFilePath"] = json!(kept);
            }
            input
        })
    }

    fn run<'a>(&'a self, input: Value, cx: &'a ToolCx) -> BoxFuture<'a, Output> {
        Box::pin(async move {
            match parse_input::<ExitInput>(&input) {
                Ok(input) => self.0.exit(input.plan, cx).await,
                Err(InvalidInput(why)) => Output::unusable(why),
            }
        })
    }
}
