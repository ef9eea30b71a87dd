//! What tools and hooks get to know, as it stands when they are called.

use std::os::unix::fs::DirBuilderExt as _;
use std::path::PathBuf;
use std::sync::Arc;

use serde_json::json;
use tokio_util::sync::CancellationToken;

use super::Engine;
use super::kin::Kin;
use crate::hooks::{Base, HookCx, HookEvent, HooksListed, HooksLive, SessionHooks};
use crate::options::Options;
use crate::permission::{HookSays, Judged};
use crate::session::Session;
use crate::tools::{Progress, ToolCx, ToolServer, access_of, served_name};

/// What belongs to the session and stands beside its record.
pub(super) struct BesideRecord {
    /// Output too large for an answer.
    pub spill_dir: PathBuf,
    /// Variables that hooks write down, and later commands find.
    pub env_file: PathBuf,
}

impl BesideRecord {
    pub fn of(kin: &Kin, session: &Session, options: &Options) -> Self {
        let name = |name: &str| options.temp_dir.join(format!("pelton-{}{name}", session.id));
        match session_file(kin, session) {
            Some(file) => {
                let folder = file.with_extension("");
                Self { spill_dir: folder.join("tool-results"), env_file: folder.join("session-env.sh") }
            }
            None => Self { spill_dir: name(""), env_file: name("-env.sh") },
        }
    }
}

impl Engine {
    /// What tools get to know, as it stands now.
    pub(super) fn tool_cx(&self, cancel: CancellationToken) -> ToolCx {
        let options = &self.options;
        ToolCx {
            call_id: Arc::from(""),
            cwd: self.cwd(),
            judged: None,
            may_look: true,
            roots: self.kin.permissions.roots().into(),
            readable: self.kin.permissions.gate().readable(&self.cwd()),
            env: options.env.clone().into(),
            env_file: self.beside.env_file.clone(),
            files: Arc::clone(&options.files),
            spill_dir: self.beside.spill_dir.clone(),
            secrets: options.secrets.clone(),
            limits: Arc::new(options.tool_limits.clone()),
            world: Arc::clone(&options.world),
            cancel,
            progress: Progress::ignored(),
            host: options.host.clone().seen_on(self.board.clone()).within(options.questions_time),
            todos: self.todos.clone(),
            tasks: self.tasks.clone(),
            background: self.background.clone(),
            sandbox: self.kin.sandbox.clone(),
            door: None,
            agents: None,
            web: Some(self.kin.web.with(self.kin.permissions.clone())),
            aside: None,
        }
    }

    /// The hooks of the session, and what they are told at any moment.
    pub(super) fn session_hooks(&self, cancel: &CancellationToken) -> SessionHooks {
        let options = &self.options;
        let mut cx = HookCx::new(
            options.project().to_owned(),
            options.env.clone().into(),
            self.beside.spill_dir.clone(),
            Arc::clone(&options.world),
        );
        (cx.cancel, cx.secrets) = (cancel.clone(), options.secrets.clone());
        cx.reach = self.reach(cancel);
        cx.env_file = Some(self.beside.env_file.clone());
        let permissions = self.kin.permissions.clone();
        cx.condition = Some(Arc::new(move |rule, tool, input, cwd| {
            access_of(tool, input, cwd).map_or(true, |access| {
                let call = Judged { tool, input, access: &access, cwd, hook: HookSays::Nothing };
                permissions.speak_of(rule, &call)
            })
        }));
        let servers = self.offer.list().clone();
        cx.served_by = Some(Arc::new(move |tool| {
            let all = servers.all();
            let serves = |server: &&Arc<dyn ToolServer>| tool.starts_with(&served_name(server.name(), ""));
            // One name may begin with another.
            let server = all.iter().filter(serves).max_by_key(|server| server.name().len())?;
            Some(json!({"name": server.name(), "source": server.source()}))
        }));
        let agent = self.kin.agent.as_ref();
        let base = Base {
            session_id: self.session.id.to_string(),
            transcript_path: self.session_file().unwrap_or_default(),
            cwd: self.cwd(),
            prompt_id: self.prompt_id.map(|id| id.to_string()),
            permission_mode: Some(self.kin.permissions.mode().name().to_owned()),
            effort: self.question.effort.map(|effort| effort.to_string()),
            agent_id: agent.map(|agent| agent.facts.id.clone()),
            agent_type: match agent {
                Some(agent) => Some(agent.facts.agent_type.clone()),
                None => options.works_as.clone(),
            },
        };
        SessionHooks {
            hooks: Arc::clone(&self.kin.hooks),
            cx,
            base,
            agent_transcript: agent.and_then(|agent| agent.file()),
            board: self.board.clone(),
        }
    }

    /// News of hooks that still run, of sub-agents, too.
    pub fn hooks_live(&self) -> HooksLive {
        self.kin.hooks.live()
    }

    /// The hooks there are. See [`ListedHook`](crate::hooks::ListedHook).
    pub fn hooks_listed(&self) -> HooksListed {
        HooksListed(Arc::clone(&self.kin.hooks))
    }

    /// The record of the main thread, if there is one.
    pub(super) fn session_file(&self) -> Option<PathBuf> {
        session_file(&self.kin, &self.session)
    }

    /// Makes the place of the file of variables, if there are hooks that may write it.
    pub(super) fn make_room_for_variables(&self) {
        let may_write = HookEvent::ALL
            .into_iter()
            .any(|event| event.has_environment_file() && self.kin.hooks.listens(event));
        if let (true, Some(dir)) = (may_write, self.beside.env_file.parent()) {
            // A hook that cannot write there says so itself.
            let _ = std::fs::DirBuilder::new().recursive(true).mode(0o700).create(dir);
        }
    }
}

fn session_file(kin: &Kin, session: &Session) -> Option<PathBuf> {
    match &kin.agent {
        Some(agent) => agent.session_file.clone(),
        None => session.file(),
    }
}
