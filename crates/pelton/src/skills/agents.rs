//! Sub-agents that files describe: a head with what they are for and may use, and below it what they are told.

use std::collections::HashSet;
use std::fs;
use std::path::{Path, PathBuf};

use crate::context::front_matter::Headed;
use crate::limits::{SKILL_BYTES_MAX, SKILL_DIRECTORIES_DEEP_MAX, SKILLS_MAX};
use crate::permission::Mode;
use crate::tools::agent::FORK;
use crate::tools::{AgentDefinition, Isolation, MemoryScope};

/// The agents that these Markdown files, and those in these directories and below them, describe. Of two with one name the first counts.
/// A file that describes none is passed over.
///
/// ```
/// let dir = tempfile::tempdir()?;
/// std::fs::write(dir.path().join("r.md"), "---\nname: reviewer\ndescription: Reviews.\ntools: Read, Grep\n---\nYou review.")?;
/// let agents = pelton::agents_in(&[dir.path().to_owned()]);
/// assert_eq!((agents[0].name.as_str(), agents[0].prompt.as_str()), ("reviewer", "You review."));
/// assert!(agents[0].has("Grep") && !agents[0].has("Bash"));
/// # Ok::<(), std::io::Error>(())
/// ```
pub fn agents_in(dirs: &[PathBuf]) -> Vec<AgentDefinition> {
    let mut names = HashSet::new();
    let agents = agent_files_in(dirs).into_iter().filter_map(|(_, agent)| agent);
    agents.filter(|agent| names.insert(agent.name.clone())).collect()
}

/// The files that are looked at, and the agent each describes, if it does.
///
/// See [`agents_in`].
pub fn agent_files_in(dirs: &[PathBuf]) -> Vec<(PathBuf, Option<AgentDefinition>)> {
    let mut files = Vec::new();
    let mut entered = HashSet::new();
    for dir in dirs {
        markdown_in(dir, SKILL_DIRECTORIES_DEEP_MAX, &mut entered, &mut files);
    }
    let described = files.into_iter().filter_map(|file| {
        let bytes = fs::read(&file).ok()?;
        let agent = read(&String::from_utf8_lossy(&bytes).replace("\r\n", "\n"));
        Some((file, agent))
    });
    described.collect()
}

fn markdown_in(dir: &Path, deep: usize, entered: &mut HashSet<PathBuf>, files: &mut Vec<PathBuf>) {
    let Ok(real) = dir.canonicalize() else { return };
    if deep == 0 || !entered.insert(real) {
        return;
    }
    if dir.is_file() {
        return files.extend(is_markdown(dir).then(|| dir.to_owned()));
    }
    let Ok(entries) = fs::read_dir(dir) else { return };
    let mut paths: Vec<PathBuf> = entries.flatten().map(|entry| entry.path()).take(SKILLS_MAX).collect();
    paths.sort();
    for path in paths {
        let Ok(about) = fs::metadata(&path) else { continue };
        if about.is_dir() {
            markdown_in(&path, deep - 1, entered, files);
        } else if files.len() < SKILLS_MAX && is_markdown(&path) {
            files.push(path);
        }
    }
}

fn is_markdown(path: &Path) -> bool {
    path.extension().is_some_and(|end| end == "md")
        && fs::metadata(path).is_ok_and(|about| about.is_file() && about.len() <= SKILL_BYTES_MAX)
}

/// The agent a text describes; `None` if it has no usable name, or nobody could know what it is for.
fn read(text: &str) -> Option<AgentDefinition> {
    let headed = Headed::read(text);
    let name = headed.text("name")?;
    if name.contains(':') || name.starts_with('-') || name == FORK {
        return None;
    }
    let mut agent = AgentDefinition::new(name, headed.text("description")?, headed.body.trim());
    agent.tools = headed.list("tools").filter(|tools| !tools.iter().any(|tool| tool == "*"));
    agent.disallowed_tools = headed.list("disallowedTools").unwrap_or_default();
    agent.model = headed.text("model").filter(|model| model != "inherit");
    agent.permission_mode = headed.text("permissionMode").and_then(|mode| Mode::from_name(&mode));
    agent.max_turns = headed.text("maxTurns").and_then(|turns| turns.parse().ok()).filter(|turns| *turns > 0);
    agent.skills = headed.list("skills").unwrap_or_default();
    agent.hooks = headed.head.get("hooks").filter(|hooks| !hooks.is_null()).cloned();
    agent.mcp_servers = headed.head.get("mcpServers").map(AgentDefinition::servers_in).unwrap_or_default();
    agent.background = headed.flag("background").unwrap_or(false);
    agent.effort = headed.text("effort").and_then(|effort| effort.parse().ok());
    agent.memory = headed.text("memory").and_then(|scope| MemoryScope::from_name(&scope));
    agent.isolation = headed.text("isolation").and_then(|place| Isolation::from_name(&place));
    agent.color = headed.text("color");
    agent.initial_prompt = headed.text("initialPrompt");
    agent.omit_memory_files = headed.flag("omitClaudeMd").unwrap_or(false);
    Some(agent)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn files_without_a_usable_name_or_purpose_are_passed_over() {
        let check = |head: &str, expected: Option<&str>| {
            let agent = read(&format!("---\n{head}\n---\nBody"));
            assert_eq!(agent.map(|agent| agent.name).as_deref(), expected, "{head}");
        };
        check("name: a\ndescription: b", Some("a"));
        check("name: a\ndescription: Use when: always", Some("a"));
        check("name: a", None);
        check("description: b", None);
        check("name: a:b\ndescription: c", None);
        check("name: -a\ndescription: c", None);
        check("name: fork\ndescription: c", None);
        assert!(read("\u{feff}---\nname: a\ndescription: b\n---\n").is_some());
        assert!(read("no head").is_none());
    }

    #[test]
    fn the_first_of_a_name_counts_and_circles_end() {
        let dir = tempfile::tempdir().unwrap();
        let write = |name: &str, text: &str| {
            let path = dir.path().join(name);
            fs::create_dir_all(path.parent().unwrap()).unwrap();
            fs::write(path, text).unwrap();
        };
        write("near/deep/x.md", "---\nname: one\ndescription: near\nmaxTurns: 3\ntools: '*'\n---\n");
        write("far/y.md", "---\nname: one\ndescription: far\n---\n");
        write("far/z.md", "---\nname: two\ndescription: far\ndisallowedTools: [Bash, Write]\n---\n");
        std::os::unix::fs::symlink(dir.path(), dir.path().join("far/circle")).unwrap();
        let agents = agents_in(&[dir.path().join("near"), dir.path().join("far"), dir.path().join("none")]);
        let told: Vec<(&str, &str)> =
            agents.iter().map(|agent| (agent.name.as_str(), agent.description.as_str())).collect();
        assert_eq!(told, [("one", "near"), ("two", "far")]);
        assert_eq!((agents[0].max_turns, &agents[0].tools), (Some(3), &None));
        assert!(!agents[1].has("Bash") && agents[1].has("Read"));
    }
}
