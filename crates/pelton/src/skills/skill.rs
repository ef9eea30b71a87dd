//! One skill, as its file describes it. Pure, and lenient: what cannot be read is as good as absent.

use std::path::{Path, PathBuf};
use std::sync::Arc;

use pelton_model::Effort;

use super::discover::SkillSources;
use crate::context::front_matter::Headed;
use crate::hooks::{HookConfig, Problem, Source};
use crate::permission::{Loan, Rule};
use crate::plugins::Plugin;
use crate::settings::Power;

/// A skill or a custom command.
#[derive(Debug, Clone)]
pub(crate) struct Skill {
    /// What it is called by.
    pub name: String,
    /// What it says itself that it is called.
    pub own_name: Option<String>,
    /// The plugin that brings it.
    pub plugin: Option<Arc<Plugin>>,
    pub file: PathBuf,
    /// The directory with what belongs to it; a command has none.
    pub dir: Option<PathBuf>,
    pub description: String,
    pub when_to_use: Option<String>,
    pub argument_hint: String,
    /// The names of its arguments.
    pub arguments: Vec<String>,
    /// The model may call it.
    pub for_model: bool,
    /// Users may call it.
    pub for_user: bool,
    /// The model is told its name, and not what it is for.
    pub name_only: bool,
    /// What may run without asking while it is followed, and what may not run.
    pub loan: Loan,
    /// The files it is about: the model is told of it when it touches one of them. Without any, from the start.
    pub paths: Vec<String>,
    pub model: Option<String>,
    pub effort: Option<Effort>,
    /// The kind of agent that follows it, if not the one that called.
    pub agent: Option<String>,
    /// That agent is not waited for.
    pub beside: bool,
    /// What is called from the moment it is followed to the end of the session.
    pub hooks: HookConfig,
    /// What is wrong with these.
    pub hook_problems: Vec<Problem>,
    /// What of that would be allowed or run by itself: whoever trusts it has to have seen it.
    pub powers: Vec<Power>,
    pub body: String,
}

impl Skill {
    /// Who put it there.
    pub fn whose(&self, sources: Option<&SkillSources>) -> &'static str {
        let is_in = |dir: Option<&PathBuf>| dir.is_some_and(|dir| self.file.starts_with(dir));
        match sources {
            _ if self.plugin.is_some() => "plugin",
            Some(sources) if is_in(sources.managed_dir.as_ref()) => "managed",
            Some(sources) if is_in(sources.user_dir.as_ref()) => "user",
            _ => "project",
        }
    }

    /// Reads a file. `dir` is given for a skill, not for a command.
    pub fn read(name: &str, file: &Path, dir: Option<&Path>, text: &str) -> Self {
        let headed = Headed::read(text);
        let body = headed.body.trim().to_owned();
        let rules = headed.list("allowed-tools").or_else(|| headed.list("allowed_tools")).unwrap_or_default();
        let denied = headed.list("disallowed-tools").or_else(|| headed.list("disallowed_tools"));
        let denied = denied.unwrap_or_default();
        let allowed = words(rules);
        let mut powers = Vec::new();
        if !allowed.is_empty() {
            powers.push(Power::new(format!("skills.{name}.allowed-tools"), allowed.clone().into()));
        }
        let brought = headed.head.get("hooks").cloned();
        powers.extend(brought.map(|hooks| Power::new(format!("skills.{name}.hooks"), hooks)));
        let mut hooks = HookConfig::default();
        let hook_problems =
            headed.head.get("hooks").map(|brought| hooks.add_settings(brought, &Source::Skill));
        let is_fork = headed.text("context").as_deref() == Some("fork");
        Self {
            name: name.to_owned(),
            own_name: dir.and_then(|_| headed.text("name")),
            plugin: None,
            file: file.to_owned(),
            dir: dir.map(Path::to_path_buf),
            description: headed.text("description").unwrap_or_else(|| first_paragraph(&body)),
            when_to_use: headed.text("when_to_use").or_else(|| headed.text("when-to-use")),
            argument_hint: hint(&headed),
            arguments: headed.list("arguments").map(words).unwrap_or_default(),
            for_model: headed.flag("disable-model-invocation") != Some(true),
            for_user: headed.flag("user-invocable") != Some(false),
            name_only: false,
            loan: Loan { allowed: rules_of(&allowed), denied: rules_of(&words(denied)) },
            // A command is a file without a directory: it is called, not found.
            paths: dir.and_then(|_| headed.list("paths")).map(|paths| unquoted(&paths)).unwrap_or_default(),
            model: headed.text("model").filter(|model| model != "inherit"),
            effort: headed.text("effort").and_then(|effort| effort.parse().ok()),
            agent: is_fork.then(|| headed.text("agent").unwrap_or_else(|| "general-purpose".to_owned())),
            beside: headed.flag("background") == Some(true),
            hooks,
            hook_problems: hook_problems.unwrap_or_default(),
            powers,
            body,
        }
    }

    /// It is followed like any text: it allows nothing and calls nothing. What it denies stays denied.
    pub fn leave_out_powers(&mut self) {
        self.loan.allowed.clear();
        self.hooks = HookConfig::default();
        self.powers.clear();
    }

    /// Whether following it grants or runs nothing, so that nobody need be asked.
    pub fn is_plain(&self) -> bool {
        self.loan.allowed.is_empty()
            && self.agent.is_none()
            && self.hooks.is_empty()
            && !super::expand::has_commands(&self.body)
    }
}

/// A head that is no YAML keeps the quotes that people put around patterns.
fn unquoted(patterns: &[String]) -> Vec<String> {
    patterns.iter().map(|pattern| pattern.trim_matches(['"', '\'']).to_owned()).collect()
}

fn rules_of(words: &[String]) -> Vec<Rule> {
    words.iter().filter_map(|rule| rule.parse().ok()).collect()
}

/// A hint such as `[file]` is a list in YAML.
fn hint(headed: &Headed<'_>) -> String {
    let list = || headed.list("argument-hint").map(|words| format!("[{}]", words.join(", ")));
    headed.text("argument-hint").or_else(list).unwrap_or_default()
}

/// Parts that are separated by blanks outside of parentheses.
fn words(parts: Vec<String>) -> Vec<String> {
    let mut words = Vec::new();
    for part in parts {
        let mut word = String::new();
        let mut depth = 0_usize;
        for c in part.chars() {
            match c {
                '(' => depth += 1,
                ')' => depth = depth.saturating_sub(1),
                _ => {}
            }
            if c.is_whitespace() && depth == 0 {
                words.push(std::mem::take(&mut word));
            } else {
                word.push(c);
            }
        }
        words.push(word);
    }
    words.retain(|word| !word.is_empty());
    words
}

fn first_paragraph(body: &str) -> String {
    let lines = body.lines().map(|line| line.trim_start_matches('#').trim());
    let paragraph: Vec<&str> =
        lines.skip_while(|line| line.is_empty()).take_while(|line| !line.is_empty()).collect();
    paragraph.join(" ")
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read(text: &str) -> Skill {
        Skill::read("x", Path::new("/x/SKILL.md"), Some(Path::new("/x")), text)
    }

    #[test]
    fn everything_is_optional() {
        let plain = read("# A title\nof two lines\n\nAnd more.");
        assert_eq!(plain.description, "A title of two lines");
        assert!(plain.for_model && plain.for_user && plain.is_plain());
        let broken = read("---\n: [\n---\nThe body.");
        assert_eq!((broken.description.as_str(), broken.body.as_str()), ("The body.", "The body."));
    }

    #[test]
    fn fields_are_read_as_people_write_them() {
        let skill = read(
            "---\ndescription: Use when: always\nwhen_to_use: at night\nargument-hint: [file] [line]\narguments: file line\n\
             allowed-tools: Bash(git add:*), Read Grep Bash(git log --oneline)\ndisable-model-invocation: yes\n\
             user-invocable: 'off'\ncontext: fork\nagent: Explore\nmodel: haiku\neffort: low\n\
             disallowed-tools: Bash(git push:*) Write\npaths: [\"src/**/*.rs\", \"*.md\"]\n\
             hooks:\n  Stop:\n    - hooks:\n        - type: command\n          command: make test\n          once: true\n---\nBody",
        );
        assert_eq!(skill.description, "Use when: always");
        assert_eq!(skill.arguments, ["file", "line"]);
        let denied: Vec<String> = skill.loan.denied.iter().map(ToString::to_string).collect();
        assert_eq!(
            (denied.join(" "), skill.paths.join(" ")),
            ("Bash(git push:*) Write".to_owned(), "src/**/*.rs *.md".to_owned())
        );
        let rules: Vec<String> = skill.loan.allowed.iter().map(ToString::to_string).collect();
        assert_eq!(rules, ["Bash(git add:*)", "Read", "Grep", "Bash(git log --oneline)"]);
        assert_eq!(skill.hooks.commands().collect::<Vec<_>>(), [("Stop", "make test")]);
        assert!(skill.hooks.entries().all(|entry| entry.once) && skill.hook_problems.is_empty());
        assert!(!skill.for_model && !skill.for_user && !skill.is_plain());
        assert_eq!((skill.agent.as_deref(), skill.model.as_deref()), (Some("Explore"), Some("haiku")));
    }
}
