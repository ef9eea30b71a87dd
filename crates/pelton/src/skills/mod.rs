//! Skills and custom commands: texts that a user calls by `/name` and the model by the Skill tool. The model knows their
//! names and what they are for; the text itself comes when it is called for.
//!
//! [`discover`] finds them, [`skill`] reads one, [`expand`] makes of its text what the model reads.

mod skill; // one skill, as its file describes it
mod discover; // which there are
mod expand; // arguments, and commands whose output is part of the text
mod listing; // what the model is told of them
mod tool; // how the model calls one
mod agents; // sub-agents that files describe, found in the same places

use std::collections::HashSet;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use pelton_model::Effort;

use crate::context::attachment::Attachment;
use crate::context::memory::Patterns;
use crate::ignored::is_ignored;
use crate::limits::{SKILL_TOLD_AGAIN_CHARS_MAX, SKILLS_KEPT_MAX, SKILLS_TOLD_AGAIN_CHARS_MAX};
use crate::permission::Loan;
use crate::plugins::Plugin;
use crate::spill::first_chars;
use crate::tools::Tool;

pub use agents::{agent_files_in, agents_in};
pub use discover::{SkillShown, SkillSources};
pub(crate) use discover::{names_of_plugin, powers_of_plugin};
pub(crate) use expand::{Expander, expand};
pub(crate) use skill::Skill;
pub(crate) use tool::{NAME, SkillSession, SkillTool};

/// The tool for a session without skills: an engine puts one for its own in its place, or none.
pub(crate) fn tool() -> Arc<dyn Tool> {
    Arc::new(SkillTool::new(Skills::default(), None))
}

/// The skills of a session. All clones are one.
#[derive(Clone, Default)]
pub(crate) struct Skills(Option<Arc<Shared>>);

struct Shared {
    sources: SkillSources,
    plugins: Mutex<Vec<Arc<Plugin>>>,
    cwd: PathBuf,
    additional_dirs: Mutex<Vec<PathBuf>>,
    state: Mutex<State>,
}

#[derive(Default)]
struct State {
    /// In the order in which they count: of two with one name the first.
    skills: Vec<Arc<Skill>>,
    /// Those found below the working directory, where a file was touched.
    nested: Vec<Arc<Skill>>,
    looked_at: HashSet<PathBuf>,
    /// Those found so in earlier submissions. They are not stated any more, but the model may know of them and call them.
    found_before: Vec<Arc<Skill>>,
    /// Files of skills that are about a file the model touched.
    touched: HashSet<PathBuf>,
    /// Files of skills that the model knows of.
    told: HashSet<PathBuf>,
    /// What the model called for and has not read yet.
    called: Vec<Called>,
    /// The texts it has read, the newest last.
    read: Vec<Read>,
}

/// The text of a skill that the model has read.
struct Read {
    file: PathBuf,
    text: String,
    /// It is still among what the model is sent.
    is_seen: bool,
}

/// A skill that the model called for.
#[derive(Debug, Clone)]
pub(crate) struct Called {
    pub file: PathBuf,
    pub text: String,
    /// What may run without asking until the next prompt, and what may not.
    pub loan: Loan,
    /// Who is asked until the next prompt.
    pub model: Option<String>,
    /// How hard it tries until then.
    pub effort: Option<Effort>,
}

impl Skills {
    /// Nothing is looked for yet. Without sources there are none.
    pub fn new(
        sources: Option<SkillSources>,
        plugins: &[Arc<Plugin>],
        cwd: &Path,
        additional_dirs: &[PathBuf],
    ) -> Self {
        Self(sources.map(|sources| {
            let real = |path: &Path| path.canonicalize().unwrap_or_else(|_| path.to_owned());
            Arc::new(Shared {
                sources,
                plugins: Mutex::new(plugins.to_vec()),
                cwd: real(cwd),
                additional_dirs: Mutex::new(additional_dirs.iter().map(|dir| real(dir)).collect()),
                state: Mutex::default(),
            })
        }))
    }

    /// S1: another submission begins. What was found below in an earlier one is to be found again.
    pub fn begin(&self) {
        if let Some(shared) = &self.0 {
            let mut state = shared.state();
            let found = std::mem::take(&mut state.nested);
            state.found_before.retain(|before| !found.iter().any(|skill| skill.file == before.file));
            state.found_before.extend(found);
            state.looked_at.clear();
        }
    }

    /// What a plugin brings is found from the next look on.
    pub fn join(&self, plugin: Arc<Plugin>) {
        if let Some(shared) = &self.0 {
            shared.plugins.lock().unwrap_or_else(PoisonError::into_inner).push(plugin);
        }
    }

    /// What a directory brings that is one of the session's from now on, is found from the next look on.
    pub fn join_dir(&self, dir: PathBuf) {
        if let Some(shared) = &self.0 {
            shared.additional_dirs.lock().unwrap_or_else(PoisonError::into_inner).push(dir);
        }
    }

    /// Looks for skills, anew at every submission: some may have come.
    pub async fn discover(&self) {
        let Some(shared) = self.0.clone() else { return };
        let looking = tokio::task::spawn_blocking(move || {
            let plugins = shared.plugins.lock().unwrap_or_else(PoisonError::into_inner).clone();
            let dirs = shared.additional_dirs.lock().unwrap_or_else(PoisonError::into_inner).clone();
            let skills = discover::all(&shared.sources, &plugins, &shared.cwd, &dirs);
            let wanted = skills.into_iter().filter_map(|skill| shared.sources.wanted(skill));
            shared.state().skills = wanted.map(Arc::new).collect();
        });
        // What could not be looked at stays as it was.
        let _ = looking.await;
    }

    /// Looks for skills in the directories that files (their real paths) are in, below the working directory.
    pub async fn touched(&self, files: &[PathBuf]) {
        let Some(shared) = self.0.clone() else { return };
        if files.is_empty() {
            return;
        }
        let new = shared.not_looked_at(files);
        if new.is_empty() {
            return shared.note_touched(files);
        }
        let looking = tokio::task::spawn_blocking(move || {
            for dir in new.into_iter().filter(|dir| !is_ignored(dir, &shared.cwd)) {
                let found = discover::nested(&dir, &shared.cwd);
                let mut state = shared.state();
                for mut skill in found.into_iter().filter_map(|skill| shared.sources.wanted(skill)) {
                    if let Some(before) = state.found_before.iter().find(|known| known.file == skill.file) {
                        // The model knows it by this name.
                        skill.name.clone_from(&before.name);
                    } else if state.known().any(|known| known.name == skill.name) {
                        skill.name = discover::qualified(&dir, &shared.cwd, &skill.name);
                    }
                    state.nested.push(Arc::new(skill));
                }
            }
        });
        let _ = looking.await;
        if let Some(shared) = &self.0 {
            shared.note_touched(files);
        }
    }

    /// What the model has to be told of skills it does not know of: all at the start, and those that came since. `chars_max`
    /// bounds what is said of them; their names are told in any case.
    pub fn news(&self, chars_max: usize) -> Option<Attachment> {
        let shared = self.0.as_ref()?;
        let mut state = shared.state();
        let is_first = state.told.is_empty();
        let is_about = |skill: &Skill| skill.paths.is_empty() || state.touched.contains(&skill.file);
        let unknown =
            |skill: &&Arc<Skill>| skill.for_model && is_about(skill) && !state.told.contains(&skill.file);
        // Of one name the first is called, and no other.
        let mut names = HashSet::new();
        let callable = state.all().filter(|skill| names.insert(skill.name.as_str()));
        let new: Vec<Arc<Skill>> = callable.filter(unknown).cloned().collect();
        let news = listing::news(&new, is_first, chars_max, shared.sources.description_chars_max)?;
        state.told.extend(new.iter().map(|skill| skill.file.clone()));
        Some(news)
    }

    /// What a conversation that goes on has heard of already.
    pub fn recall(&self, told: impl IntoIterator<Item = PathBuf>, read: Vec<(PathBuf, String)>) {
        if let Some(shared) = &self.0 {
            let mut state = shared.state();
            state.told.extend(told);
            let is_known = |(file, text): &(PathBuf, String)| {
                state.read.iter().any(|read| read.file == *file && read.text == *text)
            };
            let unknown = read.into_iter().filter(|read| !is_known(read));
            let unknown: Vec<Read> = unknown.map(|(file, text)| Read { file, text, is_seen: true }).collect();
            state.read.splice(..0, unknown);
        }
    }

    /// What the model is sent has changed: it knows of these skills, and has the texts that are told there. Gives the newest
    /// text of each skill that it had and has no more.
    pub fn sees(&self, told: Vec<PathBuf>, is_told: impl Fn(&str) -> bool) -> Vec<(PathBuf, String)> {
        let Some(shared) = &self.0 else { return Vec::new() };
        let mut guard = shared.state();
        let state = &mut *guard;
        state.told = told.into_iter().collect();
        let mut gone: Vec<(PathBuf, String)> = Vec::new();
        for read in &mut state.read {
            let is_coming = state.called.iter().any(|called| called.text == read.text);
            let is_seen = is_coming || is_told(&read.text);
            let was_seen = std::mem::replace(&mut read.is_seen, is_seen);
            gone.retain(|(file, _)| *file != read.file);
            if was_seen && !is_seen {
                gone.push((
                    read.file.clone(),
                    first_chars(&read.text, SKILL_TOLD_AGAIN_CHARS_MAX).to_owned(),
                ));
            }
        }
        gone
    }

    /// The model has read the text of a skill, with a prompt of the user's or because it was told again.
    pub fn was_read(&self, file: &Path, text: &str) {
        if let Some(shared) = &self.0 {
            shared.state().note_read(file, text);
        }
    }

    /// Whether it has, and still has it, however the skill was called.
    pub fn has_read(&self, file: &Path, text: &str) -> bool {
        let is_it = |read: &Read| read.is_seen && read.file == file && read.text.ends_with(text);
        self.0.as_ref().is_some_and(|shared| shared.state().read.iter().any(is_it))
    }

    /// Another conversation begins, which has heard of nothing.
    pub fn forget(&self) {
        if let Some(shared) = &self.0 {
            let mut state = shared.state();
            *state = State { skills: std::mem::take(&mut state.skills), ..State::default() };
        }
    }

    /// The skill of this name.
    pub fn get(&self, name: &str) -> Option<Arc<Skill>> {
        let name = name.trim().trim_start_matches('/');
        let state = self.0.as_ref()?.state();
        state.known().find(|skill| skill.name == name).cloned()
    }

    /// Those that these files describe, also such as are found only once a file near them is touched.
    pub async fn in_files(&self, files: &[PathBuf]) -> Vec<Arc<Skill>> {
        let Some(shared) = &self.0 else { return Vec::new() };
        let is_one = |skill: &&Arc<Skill>| files.contains(&skill.file);
        let found = |state: &State| state.all().filter(is_one).cloned().collect::<Vec<_>>();
        let known = found(&shared.state());
        // `dir/.claude/skills/name/SKILL.md` is found with a file in `dir`.
        let missing = files.iter().filter(|file| !known.iter().any(|skill| skill.file == **file));
        let near: Vec<PathBuf> =
            missing.filter_map(|file| Some(file.ancestors().nth(4)?.join(".claude"))).collect();
        if near.is_empty() {
            return known;
        }
        self.touched(&near).await;
        found(&shared.state())
    }

    /// All of them, by precedence, each name once.
    pub fn all(&self) -> Vec<Arc<Skill>> {
        let Some(shared) = &self.0 else { return Vec::new() };
        let state = shared.state();
        let mut names = HashSet::new();
        state.all().filter(|skill| names.insert(skill.name.clone())).cloned().collect()
    }

    /// Whether there can be any.
    pub fn is_on(&self) -> bool {
        self.0.is_some()
    }

    /// Whether commands in their texts are run.
    pub fn runs_commands(&self) -> bool {
        self.0.as_ref().is_some_and(|shared| shared.sources.run_commands)
    }

    /// Whether hooks are called that they bring.
    pub fn bring_hooks(&self) -> bool {
        self.0.as_ref().is_some_and(|shared| shared.sources.hooks)
    }

    /// The model called for a skill: its text comes with what is told before the next question. Tells whether it is new:
    /// the same text is not told twice.
    pub fn call(&self, called: Called) -> bool {
        let Some(shared) = &self.0 else { return false };
        let mut state = shared.state();
        let is_new = !state.read.iter().any(|read| read.is_seen && read.text == called.text);
        if is_new {
            state.note_read(&called.file, &called.text);
        }
        if is_new || !called.loan.is_empty() || called.model.is_some() || called.effort.is_some() {
            state.called.push(Called { text: if is_new { called.text } else { String::new() }, ..called });
        }
        is_new
    }

    /// What the model called for since the last question.
    pub fn take_called(&self) -> Vec<Called> {
        self.0.as_ref().map(|shared| std::mem::take(&mut shared.state().called)).unwrap_or_default()
    }

    /// What is told again where all that was told goes: the newest text of each skill, as far as there is room.
    pub fn told_again(&self) -> Vec<(PathBuf, String)> {
        let Some(shared) = &self.0 else { return Vec::new() };
        let state = shared.state();
        let mut kept: Vec<(PathBuf, String)> = Vec::new();
        let mut room = SKILLS_TOLD_AGAIN_CHARS_MAX;
        for Read { file, text, .. } in state.read.iter().rev() {
            let cut = first_chars(text, SKILL_TOLD_AGAIN_CHARS_MAX);
            let length = cut.chars().count();
            if length <= room && !kept.iter().any(|(known, _)| known == file) {
                room -= length;
                kept.push((file.clone(), cut.to_owned()));
            }
        }
        kept.reverse();
        kept
    }
}

impl Shared {
    /// The directories of files, below the working directory, that nobody has looked at.
    fn not_looked_at(&self, files: &[PathBuf]) -> Vec<PathBuf> {
        let mut state = self.state();
        let below = files.iter().filter(|file| file.starts_with(&self.cwd) && self.sources.project);
        let dirs = below.flat_map(|file| file.ancestors().skip(1).take_while(|dir| *dir != self.cwd));
        dirs.map(Path::to_path_buf).filter(|dir| state.looked_at.insert(dir.clone())).collect()
    }

    /// Which skills are about these files. Their patterns are relative to the directory that their own is in.
    fn note_touched(&self, files: &[PathBuf]) {
        let mut state = self.state();
        let is_about = |skill: &&Arc<Skill>| {
            let above = skill.dir.as_deref().and_then(|dir| dir.ancestors().nth(3));
            // Those of the user hold for every project.
            let base = above.filter(|base| base.starts_with(&self.cwd)).unwrap_or(&self.cwd);
            let patterns = Patterns::new(base, skill.paths.iter().map(String::as_str));
            files.iter().any(|file| patterns.matches(file))
        };
        let waiting = |skill: &&Arc<Skill>| !skill.paths.is_empty() && !state.touched.contains(&skill.file);
        let about: Vec<PathBuf> =
            state.all().filter(waiting).filter(is_about).map(|skill| skill.file.clone()).collect();
        state.touched.extend(about);
    }

    fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl State {
    fn note_read(&mut self, file: &Path, text: &str) {
        self.read.retain(|read| read.file != file || read.text != text);
        self.read.push(Read { file: file.to_path_buf(), text: text.to_owned(), is_seen: true });
        let too_many = self.read.len().saturating_sub(SKILLS_KEPT_MAX);
        self.read.drain(..too_many);
    }

    fn all(&self) -> impl Iterator<Item = &Arc<Skill>> {
        self.skills.iter().chain(&self.nested)
    }

    /// The same, and those that were found in earlier submissions.
    fn known(&self) -> impl Iterator<Item = &Arc<Skill>> {
        self.all().chain(&self.found_before)
    }
}

#[cfg(test)]
mod tests;
