//! Where tasks are done: a small directory, and a repository with everything in it that a session looks at.

use std::fs;
use std::io;
use std::path::{Path, PathBuf};
use std::process::Command;

use serde_json::json;

/// Files that calls read: none is read twice, for a file that is known already is another matter.
pub(crate) const SMALL_FILES: usize = 2_010;
/// Files of the small repository.
const TINY_FILES: usize = 10;
/// Files of the large repository.
const REPOSITORY_FILES: usize = 2_000;
const LONG_OUTPUT_BYTES: usize = 10_000_000;

/// A project and the home of who works there.
pub(crate) struct Place {
    pub project: PathBuf,
    pub home: PathBuf,
}

impl Place {
    /// A small repository, as somebody begins with.
    pub fn tiny(dir: &Path) -> io::Result<Self> {
        let place = Self::new(dir, "tiny")?;
        for file in 0..TINY_FILES {
            fs::write(place.small_file(file), format!("This is file {file}.\n"))?;
        }
        place.commit()?;
        Ok(place)
    }

    /// A directory with files for the calls of the other rows.
    pub fn small(dir: &Path) -> io::Result<Self> {
        let place = Self::new(dir, "small")?;
        for file in 0..SMALL_FILES {
            fs::write(place.small_file(file), format!("This is file {file}.\nIt has two lines.\n"))?;
        }
        let line = "0123456789 abcdefghij klmnopqrst uvwxyz ABCDEFGHIJ\n";
        fs::write(place.long_output(), line.repeat(LONG_OUTPUT_BYTES / line.len()))?;
        Ok(place)
    }

    /// A git repository of 2,000 files with CLAUDE.md, settings and two skills, some of it changed since the last commit.
    pub fn repository(dir: &Path) -> io::Result<Self> {
        let place = Self::new(dir, "repository")?;
        let project = &place.project;
        for file in 0..REPOSITORY_FILES {
            let module = project.join(format!("src/module_{:02}", file / 50));
            fs::create_dir_all(&module)?;
            let text = format!("pub fn function_{file}() -> usize {{\n    {file}\n}}\n").repeat(20);
            fs::write(module.join(format!("part_{file}.rs")), text)?;
        }
        fs::write(project.join("CLAUDE.md"), "# Rules\n\n- Run the tests before you commit.\n".repeat(20))?;
        for (skill, what) in [("release", "Makes a release."), ("review", "Reviews a change.")] {
            let folder = project.join(".claude/skills").join(skill);
            fs::create_dir_all(&folder)?;
            let text = format!("---\nname: {skill}\ndescription: {what}\n---\n\n1. Look.\n2. Do it.\n");
            fs::write(folder.join("SKILL.md"), text)?;
        }
        let settings =
            json!({"permissions": {"allow": ["Bash(cargo test:*)"], "deny": ["Read(./secrets/**)"]}});
        fs::write(project.join(".claude/settings.json"), settings.to_string())?;
        place.commit()?;
        fs::write(project.join("src/module_00/part_1.rs"), "pub fn changed() {}\n")?;
        fs::write(project.join("notes.txt"), "to be added\n")?;
        Ok(place)
    }

    /// Makes a repository of it, with everything in its first commit.
    fn commit(&self) -> io::Result<()> {
        let commands: [&[&str]; 3] =
            [&["init", "--quiet"], &["add", "."], &["commit", "--quiet", "--message", "Begin"]];
        for words in commands {
            let ran = Command::new("git")
                .args(["-c", "user.name=Ada", "-c", "user.email=ada@example.com"])
                .args(words)
                .current_dir(&self.project)
                .output()?;
            if !ran.status.success() {
                return Err(io::Error::other(format!("git {words:?} failed")));
            }
        }
        Ok(())
    }

    fn new(dir: &Path, name: &str) -> io::Result<Self> {
        let place = Self { project: dir.join(name), home: dir.join(format!("{name}-home")) };
        fs::create_dir_all(&place.project)?;
        fs::create_dir_all(place.home.join("config"))?;
        Ok(place)
    }

    /// Tells those that read their provider from a file where the model is.
    pub fn name_model(&self, address: &str) -> io::Result<()> {
        let model = json!({"id": "claude-sonnet-5-5", "name": "bench", "reasoning": false, "input": ["text"],
            "cost": {"input": 0, "output": 0, "cacheRead": 0, "cacheWrite": 0}, "contextWindow": 1_000_000, "maxTokens": 8_000});
        let provider = json!({"baseUrl": format!("http://{address}"), "apiKey": "any", "api": "anthropic-messages", "models": [model]});
        fs::create_dir_all(self.home.join("pi"))?;
        fs::write(self.home.join("pi/models.json"), json!({"providers": {"bench": provider}}).to_string())
    }

    pub fn small_file(&self, number: usize) -> PathBuf {
        self.project.join(format!("file_{number:04}.txt"))
    }

    pub fn long_output(&self) -> PathBuf {
        self.project.join("long.txt")
    }
}
