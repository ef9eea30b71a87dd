//! A skill that an agent follows, called by a user: the agent's report is the answer, and nobody asks the model of the
//! main thread. It is told both with the next prompt.

use std::sync::Arc;

use pelton_model::stream::Sender;
use tokio_util::sync::CancellationToken;

use super::Engine;
use super::input::{Answered, Choices};
use super::outcome::Ending;
use crate::account::Tally;
use crate::event::{AgentEnd, Event};
use crate::fresh_id;
use crate::skills::Skill;
use crate::spill::Shown;
use crate::tools::ToolCx;
use crate::tools::agent::{self, Agents, NotStarted, Order, Ran};
use crate::transcript::TranscriptError;
use crate::turn::Terminal;
use crate::turn::live::INTERRUPTED_IN_TOOLS;

/// What the messages of the agent name as the call that started it, in front of the skill's name: there is none. Each has an id
/// of its own behind it, because several may follow one skill in the background.
const CALL: &str = "forked-command-";

impl Engine {
    /// Lets an agent follow the skill of a prompt that is recorded.
    pub(super) async fn follow_in_agent(
        &mut self,
        order: Order,
        choices: Choices,
        events: &Sender<Event>,
        cancel: &CancellationToken,
        tally: &mut Tally,
    ) -> Result<Ending, TranscriptError> {
        let _lent = self.kin.permissions.lend(choices.loan);
        let own = cancel.child_token();
        let children = self.children(cancel, &own, CancellationToken::new(), events);
        let own_id = fresh_id(self.options.world.as_ref()).simple().to_string();
        let call_id = format!("{CALL}{}-{own_id}", order.description.trim_start_matches('/')).into();
        let cx = ToolCx { call_id, ..self.tool_cx(own) };
        let (prompt, description) = (order.prompt.clone(), order.description.clone());
        let ran = (children as Arc<dyn Agents>).run(order, &cx).await;
        if cancel.is_cancelled()
            && !matches!(&ran, Ok(Ran::Delivered(done)) if done.end == AgentEnd::Completed)
        {
            let note = self.session.record_prompt(INTERRUPTED_IN_TOOLS, true)?;
            events.send(Event::Message(note)).await;
            tally.user_messages += 1;
            return Ok(Ending::BeforeLoop(Terminal::AbortedToolExecution));
        }
        let (text, is_error) = match ran {
            Ok(Ran::Delivered(delivered)) => {
                let output = agent::output(&delivered, &prompt);
                (output.words(), output.is_error)
            }
            Ok(Ran::Beside(launched)) => {
                let id = launched.agent_id;
                (
                    format!(
                        "{description} is followed in the background by the agent {id}: its report comes when it ends."
                    ),
                    false,
                )
            }
            Err(NotStarted(why)) => (why, true),
        };
        let shown = Shown::of(&text, self.options.tool_limits.agent_report_chars_max).with_note(None);
        let told = format!("<local-command-stdout>\n{shown}\n</local-command-stdout>");
        self.session.record_prompt(&told, true)?;
        events.send(self.synthetic(text.clone())).await;
        Ok(Ending::Local(Answered { text, is_error }))
    }
}

/// The task of the agent that follows a skill, whose text this is.
pub(super) fn order(skill: &Skill, agent: &str, text: &str) -> Order {
    let mut order = Order::of(agent, text, skill.model.clone());
    order.description = format!("/{}", skill.name);
    (order.effort, order.beside) = (skill.effort, Some(skill.beside));
    order
}
