//! Which skills and commands there are. Blocks.

use std::collections::{BTreeMap, BTreeSet, HashSet};
use std::fs;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use super::skill::Skill;
use crate::limits::{SKILL_BYTES_MAX, SKILL_DIRECTORIES_DEEP_MAX, SKILLS_MAX};
use crate::plugins::Plugin;
use crate::settings::Power;

/// Who sees a skill, whatever its file says.
///
/// ```
/// use pelton::{SkillShown, SkillSources};
///
/// let mut skills = SkillSources::project();
/// skills.shown.insert("deploy".to_owned(), SkillShown::ToUsers); // the model does not start it by itself
/// assert_eq!(SkillShown::from_name("off"), Some(SkillShown::Off));
/// ```
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[non_exhaustive]
pub enum SkillShown {
    /// As its file says.
    On,
    /// The model knows its name, and nothing of what it is for.
    NameOnly,
    /// Users call it, the model does not.
    ToUsers,
    /// Nobody.
    Off,
}

impl SkillShown {
    /// As settings write it.
    pub fn from_name(name: &str) -> Option<Self> {
        Some(match name {
            "on" => Self::On,
            "name-only" => Self::NameOnly,
            "user-invocable-only" => Self::ToUsers,
            "off" => Self::Off,
            _ => return None,
        })
    }
}

/// Where skills and custom commands are looked for. Nothing is read from anywhere else.
///
/// ```
/// use pelton::{Options, SkillSources};
/// use pelton_model::{Auth, Endpoint, Secret};
///
/// let mut options = Options::new("/srv/project", Endpoint::new("http://127.0.0.1:9", Auth::ApiKey(Secret::new("any"))));
/// let mut skills = SkillSources::project();
/// skills.user_dir = Some("/home/ada/.claude".into());
/// options.skills = Some(skills);
/// ```
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct SkillSources {
    /// The directory whose `.claude/skills` and `.claude/commands` hold for everybody on this machine.
    pub managed_dir: Option<PathBuf>,
    /// The user's configuration directory, with `skills/` and `commands/`.
    pub user_dir: Option<PathBuf>,
    /// Whether `.claude/skills` and `.claude/commands` count, from the working directory up to the root of its repository,
    /// in the additional directories, and below where files are touched.
    pub project: bool,
    /// Only those of these names, or whose names end in `:` and one of them; all if absent.
    pub only: Option<Vec<String>>,
    /// Who sees those of these names.
    pub shown: BTreeMap<String, SkillShown>,
    /// Whether commands in the texts of skills are run, where permissions allow them.
    pub run_commands: bool,
    /// Whether hooks are called that skills bring.
    pub hooks: bool,
    /// Which powers of skills and commands count that the project brings, itself or in plugins of its own, by their marks: the
    /// calls they allow themselves, and their hooks. One with others is followed without any. All count if absent.
    pub project_powers: Option<BTreeSet<String>>,
    /// The share of the context window that may be spent on telling what skills there are.
    pub listing_permille: u16,
    /// Characters, in place of that share.
    pub listing_chars_max: Option<usize>,
    /// Characters that are told of one skill.
    pub description_chars_max: usize,
}

impl Default for SkillSources {
    fn default() -> Self {
        Self {
            managed_dir: None,
            user_dir: None,
            project: false,
            only: None,
            shown: BTreeMap::new(),
            run_commands: true,
            hooks: true,
            project_powers: None,
            listing_permille: 10,
            listing_chars_max: None,
            description_chars_max: 1_536,
        }
    }
}

impl SkillSources {
    /// Those of the project.
    pub fn project() -> Self {
        Self { project: true, ..Self::default() }
    }

    /// What the skills and commands of a project allow themselves and would have called, as they are now. Those below a directory
    /// are found with the files there, and have no power that anybody could have seen.
    ///
    /// ```
    /// # let dir = tempfile::tempdir()?;
    /// # std::fs::create_dir_all(dir.path().join(".claude/commands"))?;
    /// # std::fs::write(dir.path().join(".claude/commands/check.md"), "---\nallowed-tools: Bash(make *)\n---\nCheck it.")?;
    /// use pelton::SkillSources;
    ///
    /// let powers = SkillSources::powers_of_project(dir.path());
    /// assert_eq!(powers[0].told(), "skills.check.allowed-tools: [\"Bash(make *)\"]");
    /// # Ok::<(), std::io::Error>(())
    /// ```
    pub fn powers_of_project(cwd: &Path) -> Vec<Power> {
        let project = Self { project: true, ..Self::default() };
        all(&project, &[], cwd, &[]).into_iter().flat_map(|skill| skill.powers).collect()
    }

    /// A skill as it is wanted, if it is.
    pub(super) fn wanted(&self, mut skill: Skill) -> Option<Skill> {
        if let Some(counted) = &self.project_powers {
            let is_new = skill.powers.iter().any(|power| !counted.contains(&power.mark));
            let came_along = match &skill.plugin {
                Some(plugin) => plugin.is_of_project,
                None => skill.whose(Some(self)) == "project",
            };
            if is_new && came_along {
                skill.leave_out_powers();
            }
        }
        match self.shown.get(&skill.name).copied().unwrap_or(SkillShown::On) {
            SkillShown::Off => return None,
            SkillShown::On => {}
            SkillShown::NameOnly => skill.name_only = true,
            SkillShown::ToUsers => (skill.for_model, skill.for_user) = (false, true),
        }
        self.wants(&skill).then_some(skill)
    }

    /// Whether a skill is among those that are named. Commands are their user's, and always are.
    fn wants(&self, skill: &Skill) -> bool {
        let Some(only) = &self.only else { return true };
        let is_it = |name: &String| {
            skill
                .name
                .strip_suffix(name.as_str())
                .is_some_and(|front| front.is_empty() || front.ends_with(':'))
        };
        skill.dir.is_none() || only.iter().any(is_it)
    }
}

/// All that are there from the start. Of two with one name the first counts: managed before the user's before the
/// project's, the nearest first, and a skill before a command. Those of plugins have the plugin's name in theirs.
pub fn all(
    sources: &SkillSources,
    plugins: &[Arc<Plugin>],
    cwd: &Path,
    additional_dirs: &[PathBuf],
) -> Vec<Skill> {
    let mut homes: Vec<PathBuf> = Vec::new();
    homes.extend(sources.managed_dir.as_ref().map(|dir| dir.join(".claude")));
    homes.extend(sources.user_dir.clone());
    if sources.project {
        let top = cwd.ancestors().find(|dir| dir.join(".git").exists()).unwrap_or(cwd);
        homes.extend(cwd.ancestors().take_while(|dir| dir.starts_with(top)).map(|dir| dir.join(".claude")));
        homes.extend(additional_dirs.iter().map(|dir| dir.join(".claude")));
    }
    let mut found = Finding::default();
    homes.iter().for_each(|home| found.skills(&home.join("skills")));
    homes.iter().for_each(|home| found.commands(&home.join("commands"), SKILL_DIRECTORIES_DEEP_MAX));
    plugins.iter().for_each(|plugin| found.of_plugin(plugin));
    found.skills
}

/// What a plugin's are called.
pub fn names_of_plugin(plugin: &Arc<Plugin>) -> Vec<String> {
    of_plugin(plugin).into_iter().map(|skill| skill.name).collect()
}

/// What a plugin's allow themselves and would have called.
pub fn powers_of_plugin(plugin: &Arc<Plugin>) -> Vec<Power> {
    of_plugin(plugin).into_iter().flat_map(|skill| skill.powers).collect()
}

fn of_plugin(plugin: &Arc<Plugin>) -> Vec<Skill> {
    let mut found = Finding::default();
    found.of_plugin(plugin);
    found.skills
}

/// Those of a directory below.
pub fn nested(dir: &Path, cwd: &Path) -> Vec<Skill> {
    debug_assert!(dir.starts_with(cwd));
    let mut found = Finding::default();
    found.skills(&dir.join(".claude/skills"));
    found.commands(&dir.join(".claude/commands"), SKILL_DIRECTORIES_DEEP_MAX);
    found.skills
}

/// A name that tells two skills apart: with the directory in front.
pub fn qualified(dir: &Path, cwd: &Path, name: &str) -> String {
    format!("{}:{name}", dir.strip_prefix(cwd).unwrap_or(dir).display())
}

#[derive(Default)]
struct Finding {
    skills: Vec<Skill>,
    /// Where things really are: each counts once, and a circle of links ends.
    seen: HashSet<PathBuf>,
}

impl Finding {
    fn skills(&mut self, dir: &Path) {
        names_in(dir).iter().for_each(|dir| self.skill(dir));
    }

    fn skill(&mut self, dir: &Path) {
        let file = dir.join("SKILL.md");
        if let (Some(name), Some(text)) = (name_of(dir), self.text_of(&file)) {
            self.skills.push(Skill::read(&name, &file, Some(dir), &text));
        }
    }

    fn of_plugin(&mut self, plugin: &Arc<Plugin>) {
        let before = self.skills.len();
        for dir in &plugin.skills {
            match dir.join("SKILL.md").is_file() {
                true => self.skill(dir),
                false => self.skills(dir),
            }
        }
        for path in &plugin.commands {
            match path.is_dir() {
                true => self.commands(path, SKILL_DIRECTORIES_DEEP_MAX),
                false => self.command(path),
            }
        }
        for skill in &mut self.skills[before..] {
            // Here a skill is called what it says, not what its directory is called.
            let own = skill.own_name.take().filter(|name| is_typed(name));
            // A plugin that is one skill lies in a folder that may be called by its version.
            let is_whole = skill.dir.as_ref() == Some(&plugin.root);
            let usual = if is_whole { &plugin.name } else { &skill.name };
            skill.name = format!("{}:{}", plugin.name, own.as_ref().unwrap_or(usual));
            skill.plugin = Some(Arc::clone(plugin));
            // Two plugins may have skills of one name: what was seen of the one is not the other's.
            for power in &mut skill.powers {
                *power = plugin.power(&power.place, &power.value);
            }
        }
    }

    fn commands(&mut self, dir: &Path, deep: usize) {
        let Ok(real) = dir.canonicalize() else { return };
        if deep == 0 || !self.seen.insert(real) {
            return;
        }
        for path in names_in(dir) {
            if path.is_dir() {
                self.commands(&path, deep - 1);
            } else {
                self.command(&path);
            }
        }
    }

    fn command(&mut self, path: &Path) {
        if path.extension().is_some_and(|end| end == "md")
            && let (Some(name), Some(text)) = (name_of(&path.with_extension("")), self.text_of(path))
        {
            self.skills.push(Skill::read(&name, path, None, &text));
        }
    }

    fn text_of(&mut self, file: &Path) -> Option<String> {
        let about = fs::metadata(file).ok()?;
        let real = file.canonicalize().ok()?;
        let fits = about.is_file() && about.len() <= SKILL_BYTES_MAX && self.skills.len() < SKILLS_MAX;
        if !fits || !self.seen.insert(real) {
            return None;
        }
        let bytes = fs::read(file).ok().filter(|bytes| !bytes.contains(&0))?;
        Some(String::from_utf8_lossy(&bytes).replace("\r\n", "\n"))
    }
}

/// What is in a directory, in the order of names.
fn names_in(dir: &Path) -> Vec<PathBuf> {
    let Ok(entries) = fs::read_dir(dir) else { return Vec::new() };
    let mut paths: Vec<PathBuf> = entries.flatten().map(|entry| entry.path()).take(SKILLS_MAX).collect();
    paths.sort();
    paths
}

/// A name that can be typed.
fn name_of(path: &Path) -> Option<String> {
    let name = path.file_name()?.to_str()?;
    (is_typed(name) && name != "synced").then(|| name.to_owned())
}

fn is_typed(name: &str) -> bool {
    !name.is_empty() && !name.starts_with('.') && !name.contains(char::is_whitespace)
}
