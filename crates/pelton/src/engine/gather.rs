//! S2: what is found out about the place before the first prompt, side by side. On a later day it is not found out anew:
//! what the model was told then is part of the conversation.

use std::future::Future;
use std::path::PathBuf;
use std::sync::Arc;

use pelton_model::Effort;
use tokio_util::sync::CancellationToken;
use uuid::Uuid;

use super::Engine;
use super::kin::Kin;
use crate::command::{CommandError, Expansion};
use crate::context::attachment::Attachment;
use crate::context::memory::Memory;
use crate::context::{Checkout, GitState, Notes, git_state};
use crate::limits::{MEMORY_BYTES_MAX, MEMORY_BYTES_PER_WINDOW_TOKEN};
use crate::options::Options;
use crate::permission::Permissions;
use crate::skills::{self, Expander, Skill, SkillSession, SkillTool, Skills, expand};
use crate::tools::{Tool, builtin};
use crate::turn::live::{CacheAudit, Known};

/// What was found.
#[derive(Default)]
pub(super) struct Gathered {
    /// The memory files, if they have to be told.
    pub instructions: Option<Attachment>,
    /// The state of the repository, if that is wanted and has to be told.
    pub git: Option<GitState>,
}

impl Engine {
    /// Finds out what is not known yet. Nothing of the engine is held while that takes place.
    pub(super) fn gather(&self) -> impl Future<Output = Gathered> + use<> {
        let memory = (!self.has_gathered).then(|| self.memory.clone());
        // What is not sent any more, the model does not know.
        let view = self.session.history.view();
        let known = memory.as_ref().map(|_| Known::of(view));
        let wants_git = self.options.git_state && self.session.history.entries().is_empty();
        let cwd = self.options.cwd.clone();
        let skills = self.skills.clone();
        if let Some(known) = &known {
            skills.recall([], self.session.kept.skills.clone());
            skills.sees(known.listed.clone(), |text| view.tells(text));
        }
        async move {
            // A thread is not started to find nothing.
            let repository = if wants_git { Checkout::around(&cwd) } else { None };
            let git = async {
                let looking =
                    repository.map(|checkout| tokio::task::spawn_blocking(move || git_state(&checkout)));
                // A look that fails is as good as no repository.
                match looking {
                    Some(looking) => looking.await.ok().flatten(),
                    None => None,
                }
            };
            // Few files each, so one thread for both: another costs more than they take.
            let files = async {
                let instructions = match memory.zip(known) {
                    None => None,
                    Some((memory, known)) if known.instructed => memory.recall(known.heard).await,
                    Some((memory, _)) => memory.load().await,
                };
                skills.discover().await;
                instructions
            };
            let (git, instructions) = tokio::join!(git, files);
            Gathered { instructions, git }
        }
    }

    /// A session goes on in another process: hooks of the skills that were called in it hold until its end.
    pub(super) async fn bring_back_skill_hooks(&self) {
        let files: Vec<PathBuf> = self.session.kept.skills.iter().map(|(file, _)| file.clone()).collect();
        if files.is_empty() || !self.skills.bring_hooks() {
            return;
        }
        for skill in self.skills.in_files(&files).await {
            self.kin.hooks.add_skill(&skill.name, &skill.hooks);
        }
    }

    /// Characters that may be spent on telling what skills there are.
    pub(super) fn listing_chars_max(&self) -> usize {
        const CHARS_PER_TOKEN: u64 = 4;
        let Some(skills) = &self.options.skills else { return 0 };
        let window = self.options.room(&self.options.model).window_tokens;
        let share =
            window.saturating_mul(CHARS_PER_TOKEN).saturating_mul(u64::from(skills.listing_permille)) / 1_000;
        skills.listing_chars_max.unwrap_or(usize::try_from(share).unwrap_or(usize::MAX))
    }

    /// What becomes of a prompt that calls a skill.
    pub(super) async fn expand_skill(
        &self,
        skill: &Skill,
        arguments: &str,
        cancel: &CancellationToken,
    ) -> Result<Expansion, CommandError> {
        let permissions = &self.kin.permissions;
        // The user called it, and with it what it needs.
        let _lent = permissions.lend(skill.loan.clone());
        let expander = Expander {
            arguments,
            session_id: &self.session.id.to_string(),
            effort: self.options.effort.map(Effort::as_str).unwrap_or_default(),
            project_dir: &self.options.project().display().to_string(),
            shell: self.skills.runs_commands().then(|| (permissions, builtin::shell())),
        };
        let cx = self.tool_cx(cancel.child_token());
        let text = expand(skill, &expander, &cx).await.map_err(CommandError)?;
        if self.skills.bring_hooks() {
            self.kin.hooks.add_skill(&skill.name, &skill.hooks);
        }
        // The same text is told once. That the words are there is not enough: somebody else may have said them, or the list of
        // what skills there are.
        let is_there = skill.agent.is_none()
            && self.skills.has_read(&skill.file, &text)
            && self.session.history.view().tells(&text);
        if skill.agent.is_none() {
            self.skills.was_read(&skill.file, &text);
        }
        let mut expansion = Expansion::prompt(match is_there {
            true => format!("{CALLED_AGAIN}: follow it once more."),
            false => text,
        });
        expansion.allowed_tools.clone_from(&skill.loan.allowed);
        expansion.disallowed_tools.clone_from(&skill.loan.denied);
        expansion.model.clone_from(&skill.model);
        expansion.effort = skill.effort;
        Ok(expansion)
    }
}

/// What the model reads where a text would be told that it has already.
pub(super) const CALLED_AGAIN: &str =
    "You have the text of this skill already, from above in this conversation";

/// Puts a tool for these skills in the place of the one for none; without skills there is no tool.
pub(super) fn bind_skills(tools: &mut Vec<Arc<dyn Tool>>, skills: &Skills, kin: &Kin, session: Uuid) {
    if !skills.is_on() {
        tools.retain(|tool| tool.spec().name != skills::NAME);
    }
    if let Some(tool) = tools.iter_mut().find(|tool| tool.spec().name == skills::NAME) {
        let session = SkillSession {
            id: session.to_string(),
            permissions: kin.permissions.clone(),
            hooks: Arc::clone(&kin.hooks),
        };
        *tool = Arc::new(SkillTool::new(skills.clone(), Some(session)));
    }
}

/// What an earlier process knew of the server's cache.
pub(super) fn cache_of(options: &Options) -> CacheAudit {
    let resumed = options.resume.as_ref().map(|resumed| &resumed.conversation);
    resumed.map_or_else(CacheAudit::default, |told| CacheAudit::recall(&told.requests, told.requested_at))
}

/// Where the model keeps notes, if it does.
pub(super) fn notes(options: &Options) -> Option<Notes<'_>> {
    let memory = options.memory.as_ref()?;
    Some(Notes { dir: memory.notes_dir.as_deref()?, with_custom_prompt: memory.notes_with_custom_prompt })
}

/// The memory of a session that was told this. Rules about reading hold for files of the project, whatever they are read
/// for.
pub(super) fn memory(options: &Options, permissions: &Permissions) -> Memory {
    let (permissions, cwd) = (permissions.clone(), options.cwd.clone());
    let share = options.room(&options.model).window_tokens.saturating_mul(MEMORY_BYTES_PER_WINDOW_TOKEN);
    let bytes_max = usize::try_from(share).unwrap_or(usize::MAX).min(MEMORY_BYTES_MAX);
    Memory::new(
        options.memory.clone(),
        &options.cwd,
        &options.additional_dirs,
        options.home.as_deref(),
        bytes_max,
        move |given, real| permissions.gate().readable(&cwd).allows(given, real),
    )
}
