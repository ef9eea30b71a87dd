//! What prompts may call by `/name`.

use std::sync::Arc;

use super::{Engine, house, reshape};
use crate::command::{Command, CommandSpec};
use crate::event::CommandInfo;
use crate::skills::Skills;
use crate::tools::server::ServerList;

/// What prompts may call by `/name`: a handle, usable also while a submission runs.
///
/// ```
/// # use pelton_model::{Auth, Endpoint, Secret};
/// # #[tokio::main(flavor = "current_thread")]
/// # async fn main() -> Result<(), Box<dyn std::error::Error>> {
/// # let dir = tempfile::tempdir()?;
/// # let endpoint = Endpoint::new("http://127.0.0.1:9", Auth::ApiKey(Secret::new("any")));
/// use pelton::{Engine, Options};
///
/// let menu = Engine::new(Options::new(dir.path(), endpoint))?.menu();
/// assert!(menu.look().await.iter().any(|command| command.name == "compact"));
/// assert!(menu.look_for_skills().await.is_empty());
/// # Ok(())
/// # }
/// ```
#[derive(Clone)]
pub struct Menu {
    brought: Vec<Arc<dyn Command>>,
    skills: Skills,
    servers: ServerList,
    with_texts: bool,
}

impl Menu {
    /// All of it. Skills are looked for anew.
    pub async fn look(&self) -> Vec<CommandInfo> {
        self.skills.discover().await;
        self.all()
    }

    /// The skills among them, looked for anew.
    pub async fn look_for_skills(&self) -> Vec<CommandInfo> {
        self.skills.discover().await;
        self.skills().collect()
    }

    /// All of it, as far as skills were looked for.
    pub(super) fn all(&self) -> Vec<CommandInfo> {
        let brought = self.brought.iter().map(told);
        let served = self.servers.all().into_iter().flat_map(|server| server.commands());
        let served: Vec<CommandInfo> = served.map(|served| told(&served)).collect();
        brought
            .chain(self.skills())
            .chain(reshape::commands())
            .chain(house::commands(self.with_texts))
            .chain(served)
            .collect()
    }

    /// The skills that users may call.
    fn skills(&self) -> impl Iterator<Item = CommandInfo> + use<> {
        let all = self.skills.all().into_iter();
        all.filter(|skill| skill.for_user).map(|skill| CommandInfo {
            name: skill.name.clone(),
            description: skill.description.clone(),
            argument_hint: skill.argument_hint.clone(),
        })
    }
}

fn told(command: &Arc<dyn Command>) -> CommandInfo {
    let CommandSpec { name, description, argument_hint } = command.spec();
    CommandInfo {
        name: name.to_owned(),
        description: description.to_owned(),
        argument_hint: argument_hint.to_owned(),
    }
}

impl Engine {
    /// What prompts may call by `/name`, skills included.
    ///
    /// See [`Menu`], which can be looked at while a submission runs, too.
    pub async fn commands(&self) -> Vec<CommandInfo> {
        self.menu().look().await
    }

    /// A handle to what prompts may call by `/name`.
    pub fn menu(&self) -> Menu {
        Menu {
            brought: self.options.commands.clone(),
            skills: self.skills.clone(),
            servers: self.offer.list().clone(),
            with_texts: self.options.bundled_skills,
        }
    }
}
