//! S2: what is found out about the place before the first prompt, side by side. On a later day it is not found out anew:
//! what the model was told then is part of the conversation.

use std::future::Future;

use super::Engine;
use crate::context::attachment::{Attachment, AttachmentKind};
use crate::context::memory::Memory;
use crate::context::{GitState, Notes, git_state};
use crate::options::Options;
use crate::permission::Permissions;

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
        let was_told = self.session.attachments().any(|told| told.r#type == AttachmentKind::Instructions);
        let told: Vec<_> = self.session.attachments().flat_map(|told| told.files).collect();
        let wants_git = self.options.git_state && self.session.history.entries().is_empty();
        let cwd = self.options.cwd.clone();
        async move {
            let git = async {
                let looking = wants_git.then(|| tokio::task::spawn_blocking(move || git_state(&cwd)));
                // A look that fails is as good as no repository.
                match looking {
                    Some(looking) => looking.await.ok().flatten(),
                    None => None,
                }
            };
            let instructions = async {
                match memory {
                    None => None,
                    Some(memory) if was_told => {
                        memory.recall(told).await;
                        None
                    }
                    Some(memory) => memory.load().await,
                }
            };
            let (git, instructions) = tokio::join!(git, instructions);
            Gathered { instructions, git }
        }
    }
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
    Memory::new(
        options.memory.clone(),
        &options.cwd,
        &options.additional_dirs,
        options.home.as_deref(),
        move |given, real| permissions.gate().readable(&cwd).allows(given, real),
    )
}
