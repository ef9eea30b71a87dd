//! A release of a plugin: an annotated tag of git, `NAME--vVERSION`, once everything agrees on the version.

use std::path::Path;
use std::process::{Command, ExitCode};

use pelton::plugins::Plugin;
use serde_json::{Map, Value};

use super::look::root_of;
use super::say;
use crate::args::TagArgs;
use crate::fail::Fail;
use crate::resolve::{LIST, json_in};

pub(super) fn run(said: &TagArgs) -> Result<ExitCode, Fail> {
    let root = root_of(&said.path)?;
    let plugin = Plugin::read_listed(&root, "tagged", &root.join("data"), &Map::new())
        .map_err(|problem| Fail::new(format!("{}: {}", root.display(), problem.message)))?;
    let name = &plugin.name;
    let version = plugin
        .version
        .as_deref()
        .ok_or_else(|| Fail::new(format!("the plugin {name} has no `version` in its plugin.json")))?;
    agreed_with_list(&root, name, version)?;
    let tag = format!("{name}--v{version}");
    git(&root, &["check-ref-format", &format!("refs/tags/{tag}")])
        .map_err(|_| Fail::new(format!("'{tag}' cannot be the name of a tag: look at the version")))?;
    if !said.force {
        let changed = git(&root, &["status", "--porcelain", "--", "."])?;
        if !changed.is_empty() {
            return Err(Fail::new(format!(
                "{} has changes that are not committed: commit them, or say --force\n{}",
                root.display(),
                changed.trim_end()
            )));
        }
        if !git(&root, &["tag", "--list", &tag])?.is_empty() {
            return Err(Fail::new(format!(
                "the tag {tag} is there already: raise the version, or say --force"
            )));
        }
    }
    if said.dry_run {
        let pushed = if said.push { format!(" and pushed to {}", said.remote) } else { String::new() };
        return say(&format!("{tag} would be made{pushed}"));
    }
    let message = said.message.as_deref().unwrap_or("%s").replace("%s", version);
    let mut words = vec!["tag", "--annotate", "--message", &message, &tag];
    words.extend(said.force.then_some("--force"));
    git(&root, &words)?;
    if !said.push {
        return say(&format!("Made the tag {tag}"));
    }
    let name = format!("refs/tags/{tag}");
    let mut words = vec!["push", "--quiet", &said.remote, &name];
    words.extend(said.force.then_some("--force"));
    git(&root, &words)?;
    say(&format!("Made the tag {tag}, and pushed it to {}", said.remote))
}

/// A marketplace around the plugin may say its version, too: both must say the same.
fn agreed_with_list(root: &Path, name: &str, version: &str) -> Result<(), Fail> {
    for folder in root.ancestors() {
        let file = folder.join(LIST);
        let Some(list) = json_in(&file) else { continue };
        let base = list["metadata"]["pluginRoot"].as_str().unwrap_or_default();
        let is_here = |entry: &&Value| {
            let source = entry["source"].as_str().map(|source| folder.join(base).join(source));
            source.and_then(|source| source.canonicalize().ok()).is_some_and(|place| place == root)
        };
        let Some(entry) = list["plugins"].as_array().into_iter().flatten().find(is_here) else { continue };
        for (what, said, meant) in
            [("name", entry["name"].as_str(), name), ("version", entry["version"].as_str(), version)]
        {
            if let Some(said) = said.filter(|said| *said != meant) {
                return Err(Fail::new(format!(
                    "{} says the {what} '{said}', and the plugin's own plugin.json '{meant}': make them the same",
                    file.display()
                )));
            }
        }
    }
    Ok(())
}

/// What git prints. The plugin is the user's own, so git is theirs, too.
fn git(root: &Path, words: &[&str]) -> Result<String, Fail> {
    let ran = Command::new("git").arg("-C").arg(root).args(words).output();
    let ran = ran.map_err(|error| Fail::new(format!("git cannot be run: {error}")))?;
    if !ran.status.success() {
        let why = String::from_utf8_lossy(&ran.stderr);
        return Err(Fail::new(format!("git {}: {}", words[0], why.trim())));
    }
    Ok(String::from_utf8_lossy(&ran.stdout).into_owned())
}
