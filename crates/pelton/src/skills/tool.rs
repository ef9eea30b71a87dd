//! How the model calls a skill.

use std::sync::Arc;

use futures::FutureExt;
use futures::future::BoxFuture;
use serde::Deserialize;
use serde_json::{Value, json};

use super::expand::{Expander, expand};
use super::{Called, Skill, Skills};
use crate::hooks::Hooks;
use crate::permission::Permissions;
use crate::tools::agent::{self, NotStarted, Order};
use crate::tools::{Access, InvalidInput, Output, Safety, Spec, Tool, ToolCx, builtin, parse_input};

/// The tool's name, as the model calls it.
pub(crate) const NAME: &str = "Skill";

const INPUT: &str = r#"{"type":"object","properties":{"skill":{"type":"string"},"args":{"type":"string"}},"required":["skill"]}"#;

/// The tool.
pub(crate) struct SkillTool {
    skills: Skills,
    /// The session they belong to.
    session: Option<SkillSession>,
}

/// What skills need of the session that calls them.
pub(crate) struct SkillSession {
    pub id: String,
    /// What commands in skills are judged by.
    pub permissions: Permissions,
    /// Who is called from then on.
    pub hooks: Arc<Hooks>,
}

#[derive(Deserialize)]
struct Input {
    skill: String,
    args: Option<String>,
}

impl SkillTool {
    pub fn new(skills: Skills, session: Option<SkillSession>) -> Self {
        Self { skills, session }
    }

    async fn call(&self, input: &Input, cx: &ToolCx) -> Result<Output, String> {
        let skill = self.skills.get(&input.skill).ok_or_else(|| self.unknown(&input.skill))?;
        if !skill.for_model {
            return Err(format!(
                "Only the user calls {0}: ask them to type /{0} if it is needed.",
                skill.name
            ));
        }
        let SkillSession { id: session_id, permissions, hooks } =
            self.session.as_ref().ok_or_else(|| "There are no skills here.".to_owned())?;
        // Somebody allowed the call, and with it what the skill needs.
        permissions.lend_more(&skill.loan);
        let expander = Expander {
            arguments: input.args.as_deref().unwrap_or_default(),
            session_id,
            effort: "",
            project_dir: &cx.roots.first().map(|root| root.display().to_string()).unwrap_or_default(),
            shell: self.skills.runs_commands().then(|| (permissions, builtin::shell())),
        };
        let text = expand(&skill, &expander, cx)
            .await
            .map_err(|why| format!("The skill {} cannot be followed: {why}.", skill.name))?;
        if self.skills.bring_hooks() {
            hooks.add_skill(&skill.name, &skill.hooks);
        }
        match &skill.agent {
            Some(agent) => fork(&skill, agent, text, cx).await,
            None => Ok(self.tell(&skill, &text)),
        }
    }

    fn tell(&self, skill: &Skill, text: &str) -> Output {
        let text = format!("<command-name>{}</command-name>\n{text}", skill.name);
        let called = Called {
            file: skill.file.clone(),
            text,
            loan: skill.loan.clone(),
            model: skill.model.clone(),
            effort: skill.effort,
        };
        let mut words = match self.skills.call(called) {
            true => format!("The skill {} follows. Do what it says.", skill.name),
            false => format!("You have the text of the skill {} already: follow it.", skill.name),
        };
        for problem in &skill.hook_problems {
            words += &format!("\nA hook of this skill is not as it should be, tell the user: {problem}.");
        }
        Output::text(words).with_detail(json!({"success": true, "commandName": skill.name}))
    }

    fn unknown(&self, name: &str) -> String {
        let all = self.skills.all();
        let names: Vec<&str> =
            all.iter().filter(|skill| skill.for_model).map(|skill| skill.name.as_str()).collect();
        match names.is_empty() {
            true => format!("There is no skill '{name}', nor any other."),
            false => format!("There is no skill '{name}'; there are: {}", names.join(", ")),
        }
    }
}

async fn fork(skill: &Skill, agent: &str, prompt: String, cx: &ToolCx) -> Result<Output, String> {
    let agents = cx.agents.as_ref().ok_or_else(|| "Agents cannot be started here.".to_owned())?;
    let order = Order {
        description: format!("the skill {}", skill.name),
        prompt: prompt.clone(),
        agent_type: agent.to_owned(),
        model: skill.model.clone(),
        effort: skill.effort,
        isolation: None,
        name: None,
        beside: Some(skill.beside),
    };
    let description = order.description.clone();
    match Arc::clone(agents).run(order, cx).await {
        Ok(ran) => Ok(agent::answer(&ran, &prompt, &description)),
        Err(NotStarted(why)) => Err(why),
    }
}

impl Tool for SkillTool {
    fn spec(&self) -> Spec<'_> {
        Spec { name: NAME, description: include_str!("tool.md"), input_schema: INPUT }
    }

    fn safety(&self, input: &Value) -> Safety {
        let skill = parse_input::<Input>(input).ok().and_then(|input| self.skills.get(&input.skill));
        match skill {
            Some(skill) if !skill.is_plain() => Safety::Alone,
            // What it tells comes behind the results, and is remembered as told: no answer that loads one can be taken back.
            _ => Safety::Beside,
        }
    }

    fn access(&self, input: &Value, _: &ToolCx) -> Result<Access, InvalidInput> {
        let input: Input = parse_input(input)?;
        Ok(Access::Skill(input.skill.trim().trim_start_matches('/').to_owned()))
    }

    /// A text that grants nothing and runs nothing is a file like any other.
    fn is_held(&self, input: &Value, _: &ToolCx) -> bool {
        let skill = parse_input::<Input>(input).ok().and_then(|input| self.skills.get(&input.skill));
        skill.is_none_or(|skill: Arc<Skill>| skill.is_plain())
    }

    fn run<'a>(&'a self, input: Value, cx: &'a ToolCx) -> BoxFuture<'a, Output> {
        async move {
            match parse_input::<Input>(&input) {
                Ok(input) => self.call(&input, cx).await.unwrap_or_else(Output::error),
                Err(InvalidInput(why)) => Output::unusable(why),
            }
        }
        .boxed()
    }
}
