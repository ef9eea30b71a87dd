//! What joins a session that runs: plugins, directories, and agents that files describe. Nothing in front of the requests changes by it; the
//! model is told in words.

use std::path::PathBuf;
use std::sync::{Arc, Mutex, PoisonError};

use super::Engine;
use super::input::tell;
use crate::event::Event;
use crate::hooks::{HookConfig, Hooks, Problem, SessionHooks};
use crate::plugins::Plugin;
use crate::reload::AgentsChange;
use crate::skills::Skills;
use crate::tools::agent::built_in;

/// Lets plugins join a session that runs: a handle, usable also while a submission runs. Their skills, commands and hooks count
/// at once, their agents and programs from the next prompt on. Their servers of tools are for the host to connect to.
///
/// ```
/// # use pelton_model::{Auth, Endpoint};
/// # #[tokio::main(flavor = "current_thread")]
/// # async fn main() -> Result<(), Box<dyn std::error::Error>> {
/// # let dir = tempfile::tempdir()?;
/// # std::fs::create_dir_all(dir.path().join("kit/commands"))?;
/// # std::fs::write(dir.path().join("kit/commands/look.md"), "Look.")?;
/// # let mut options = pelton::Options::new(dir.path(), Endpoint::new("http://127.0.0.1:9", Auth::None));
/// # options.skills = Some(pelton::SkillSources::default());
/// let engine = pelton::Engine::new(options)?;
/// let plugin = pelton::plugins::Plugin::read(&dir.path().join("kit"), "inline", dir.path()).unwrap();
/// engine.joins().add(plugin)?;
/// assert!(engine.menu().look().await.iter().any(|command| command.name == "kit:look"));
/// # Ok(())
/// # }
/// ```
#[derive(Clone)]
pub struct Joins {
    skills: Skills,
    hooks: Arc<Hooks>,
    all: Arc<Mutex<Joined>>,
}

#[derive(Default)]
pub(super) struct Joined {
    /// The names of those that are there.
    names: Vec<String>,
    /// Those that the engine has not taken in yet.
    waiting: Vec<Arc<Plugin>>,
    /// Directories that it has not.
    roots: Vec<RootJoins>,
}

/// A directory that a session works in from now on, with what of it counts beside its files.
///
/// ```
/// # use pelton_model::{Auth, Endpoint};
/// # let dir = tempfile::tempdir()?;
/// # let options = pelton::Options::new(dir.path(), Endpoint::new("http://127.0.0.1:9", Auth::None));
/// # let engine = pelton::Engine::new(options)?;
/// let root = dir.path().join("repositories/one");
/// engine.joins().add_root(pelton::RootJoins { dir: root, instructs: true, brings_skills: true });
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct RootJoins {
    /// Its real path.
    pub dir: PathBuf,
    /// Its memory files are told with the next prompt.
    pub instructs: bool,
    /// Its skills and commands count, too.
    pub brings_skills: bool,
}

/// Another plugin of that name is there, or there are too many.
///
/// ```
/// # use pelton_model::{Auth, Endpoint};
/// # let dir = tempfile::tempdir()?;
/// # std::fs::create_dir_all(dir.path().join("kit"))?;
/// # let read = || pelton::plugins::Plugin::read(&dir.path().join("kit"), "inline", dir.path()).unwrap();
/// # let options = pelton::Options::new(dir.path(), Endpoint::new("http://127.0.0.1:9", Auth::None));
/// let joins = pelton::Engine::new(options)?.joins();
/// joins.add(read())?;
/// let again = joins.add(read()).unwrap_err();
/// assert_eq!(again.to_string(), "a plugin named 'kit' is there already");
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{0}")]
#[non_exhaustive]
pub struct NotJoined(pub String);

/// The most plugins that join one session.
const JOINED_MAX: usize = 100;

impl Joins {
    pub(super) fn of(skills: Skills, hooks: Arc<Hooks>, plugins: &[Arc<Plugin>]) -> Self {
        let names = plugins.iter().map(|plugin| plugin.name.clone()).collect();
        Self { skills, hooks, all: Arc::new(Mutex::new(Joined { names, ..Joined::default() })) }
    }

    /// Lets a plugin join, and tells what is wrong with its hooks.
    ///
    /// # Errors
    ///
    /// If one of its name is there already, or too many have joined.
    pub fn add(&self, plugin: Plugin) -> Result<Vec<Problem>, NotJoined> {
        let mut all = self.all.lock().unwrap_or_else(PoisonError::into_inner);
        if all.names.contains(&plugin.name) {
            return Err(NotJoined(format!("a plugin named '{}' is there already", plugin.name)));
        }
        if all.names.len() >= JOINED_MAX {
            return Err(NotJoined(format!("there are {JOINED_MAX} plugins already")));
        }
        let mut brought = HookConfig::default();
        let source = plugin.as_source();
        let problems = plugin.hooks.iter().flat_map(|hooks| brought.add_settings(hooks, &source)).collect();
        self.hooks.join(brought);
        let plugin = Arc::new(plugin);
        self.skills.join(Arc::clone(&plugin));
        all.names.push(plugin.name.clone());
        all.waiting.push(plugin);
        Ok(problems)
    }

    /// Lets a directory join. That files in it may be worked on is for [`Permissions`](crate::permission::Permissions) to say; hooks
    /// hear of it with the next prompt.
    pub fn add_root(&self, root: RootJoins) {
        if root.brings_skills {
            self.skills.join_dir(root.dir.clone());
        }
        self.all.lock().unwrap_or_else(PoisonError::into_inner).roots.push(root);
    }

    fn take_roots(&self) -> Vec<RootJoins> {
        std::mem::take(&mut self.all.lock().unwrap_or_else(PoisonError::into_inner).roots)
    }

    fn take(&self) -> Vec<Arc<Plugin>> {
        std::mem::take(&mut self.all.lock().unwrap_or_else(PoisonError::into_inner).waiting)
    }
}

impl Engine {
    /// Lets plugins join. See [`Joins`].
    pub fn joins(&self) -> Joins {
        self.joins.clone()
    }

    /// Takes in what has joined since the last submission.
    pub(super) fn take_in_what_joined(&mut self) {
        let mut is_new = false;
        for plugin in self.joins.take() {
            is_new |= !plugin.agents().is_empty();
            self.options.take_plugin(plugin);
        }
        let watch = self.options.settings_watch.clone().filter(|_| self.kin.agent.is_none());
        if let Some(change) = watch.and_then(|watch| watch.agents()) {
            is_new |= self.change_agents(change);
        }
        if is_new {
            self.offer.change_agents(&self.options.startable());
        }
    }

    /// Tells hooks of the directories that have joined. What they have to say to the model waits for the prompt.
    pub(super) async fn take_in_roots(&mut self, hooks: &SessionHooks, told: &mut Vec<Event>) {
        for root in self.joins.take_roots() {
            if let Some(fired) = hooks.directory_added(&root.dir, "register_repo_root", &self.cwd()).await {
                tell(fired, told);
            }
            self.to_tell.roots.extend(root.instructs.then_some(root.dir));
        }
    }

    /// Whether anything is different.
    fn change_agents(&mut self, change: AgentsChange) -> bool {
        let before = self.options.agents.clone();
        let AgentsChange { gone, now } = change;
        let agents = &mut self.options.agents;
        agents.retain(|agent| !gone.contains(&agent.name) && now.iter().all(|now| now.name != agent.name));
        // One that is always there was only out of sight.
        let is_missing = |name: &String| gone.contains(name) && now.iter().all(|agent| agent.name != *name);
        let shadowed = built_in().into_iter().filter(|agent| is_missing(&agent.name));
        agents.extend(shadowed);
        agents.extend(now);
        *agents != before
    }
}
