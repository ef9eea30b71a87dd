//! Reads memory files. Blocks: whoever calls it does so where that disturbs nobody.

use std::collections::HashSet;
use std::ffi::OsStr;
use std::fs::{self, File};
use std::io::{ErrorKind, Read as _};
use std::path::{Path, PathBuf};

use super::super::front_matter::Headed;
use super::markdown::{imports, spellings, without_comments};
use super::patterns::Patterns;
use super::sources::{AgentsMd, MemorySources, OutsideImport};
use super::{MayRead, Place};
use crate::ignored::is_ignored;
use crate::instructed::Instructed;
use crate::limits::{
    MEMORY_FILE_BYTES_MAX, MEMORY_FILES_MAX, MEMORY_IMPORT_HOPS_MAX, MEMORY_IMPORTS_MAX,
    NOTES_INDEX_BYTES_MAX, NOTES_INDEX_LINES_MAX, RULE_DIRECTORIES_DEEP_MAX,
};
use crate::spill::Shown;

/// Whose words a file holds.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Whose {
    Managed,
    User,
    Project,
    Local,
    Own,
}

/// A memory file, as the model reads it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct MemoryFile {
    pub path: PathBuf,
    pub whose: Whose,
    pub text: String,
    pub imported_by: Option<PathBuf>,
}

/// Why files are told.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Because {
    /// The session begins.
    Start,
    /// What was told of them went when the context was made smaller.
    Compaction,
    /// A file was read.
    Read(PathBuf),
}

/// A rule that counts once a file is read that it is about.
#[derive(Debug, Clone)]
pub struct WaitingRule {
    pub file: MemoryFile,
    pub about: Patterns,
    /// The same as it is written.
    pub globs: Vec<String>,
}

/// What is known of the memory of a session.
#[derive(Debug, Clone, Default)]
pub struct Known {
    /// Where the files that were read really are: each counts once.
    pub read: HashSet<PathBuf>,
    pub waiting: Vec<WaitingRule>,
    /// Directories below the working directory that were looked at.
    pub looked_at: HashSet<PathBuf>,
    /// The project has a `CLAUDE.md`.
    has_claude_md: bool,
    bytes: usize,
    /// What has to be said about files that were left out.
    pub notices: Vec<String>,
    /// What was left out because nobody has approved it.
    pub outside: Vec<OutsideImport>,
    /// The files that were told and that nobody has heard of yet.
    pub instructed: Vec<Instructed>,
}

/// Reads files, one after the other.
pub struct Gatherer<'a> {
    pub sources: &'a MemorySources,
    pub place: &'a Place,
    pub may_read: &'a MayRead,
    /// What all of it may have.
    pub bytes_max: usize,
    pub known: &'a mut Known,
    pub found: Vec<MemoryFile>,
    pub because: Because,
}

impl Gatherer<'_> {
    /// Everything that counts from the start, the nearest last.
    pub fn gather_start(&mut self) {
        let sources = self.sources;
        if let Some(dir) = &sources.managed_dir {
            self.file(&dir.join("CLAUDE.md"), Whose::Managed);
        }
        if let Some(text) = &sources.managed_text {
            let path = sources.managed_dir.clone().unwrap_or_default().join("managed-settings.json");
            self.add(MemoryFile { path, whose: Whose::Managed, text: text.clone(), imported_by: None }, 0);
        }
        if let Some(dir) = &sources.user_dir {
            self.file(&dir.join("CLAUDE.md"), Whose::User);
            self.rules(&dir.join("rules"), Whose::User, &self.place.cwd.clone());
        }
        let mut chain: Vec<PathBuf> = self.place.cwd.ancestors().map(Path::to_path_buf).collect();
        chain.reverse();
        if sources.additional_dirs {
            chain.extend(self.place.additional_dirs.iter().cloned());
        }
        self.known.has_claude_md = chain.iter().any(|dir| self.has_claude_md(dir));
        for dir in &chain {
            self.directory(dir);
        }
        if let Some(dir) = &sources.notes_dir {
            self.notes(&dir.join("MEMORY.md"));
        }
    }

    /// What a file that was read brings: memory of the directories it is in, and rules about it. `file` is its real path.
    pub fn about(&mut self, file: &Path) {
        for dir in self.place.below(file) {
            if self.known.looked_at.insert(dir.clone()) && !is_ignored(&dir, &self.place.cwd) {
                self.directory(&dir);
            }
        }
        let waiting = std::mem::take(&mut self.known.waiting);
        for rule in waiting {
            if rule.about.matches(file) {
                self.instructed(&rule.file, rule.globs);
                self.add(rule.file, 0);
            } else {
                self.known.waiting.push(rule);
            }
        }
    }

    /// What a directory brings that the session works in.
    pub fn root(&mut self, dir: &Path) {
        self.known.looked_at.insert(dir.to_path_buf());
        self.directory(dir);
    }

    /// A rule about a file that was read.
    pub fn rule(&mut self, file: MemoryFile) {
        self.add(file, 0);
    }

    /// A file of the project that counted because of another that was read there. What only an import brought comes with
    /// whoever imports it, or not at all.
    pub fn nested(&mut self, file: &Path) {
        if !file.starts_with(&self.place.cwd) {
            return;
        }
        match file.file_name().and_then(OsStr::to_str) {
            _ if is_rule(file) => {
                if let Some((rule, _)) = self.rule_in(file, Whose::Project) {
                    self.add(rule, 0);
                }
            }
            Some("CLAUDE.local.md") => self.file(file, Whose::Local),
            Some("CLAUDE.md" | "AGENTS.md") => self.file(file, Whose::Project),
            _ => {}
        }
    }

    /// The files of one directory of the project.
    fn directory(&mut self, dir: &Path) {
        if self.sources.project {
            for file in self.claude_mds(dir) {
                self.file(&file, Whose::Project);
            }
            let agents = match self.sources.agents_md {
                AgentsMd::Both => true,
                AgentsMd::Never => false,
                AgentsMd::WithoutClaudeMd => !self.known.has_claude_md && !self.has_claude_md(dir),
            };
            if agents {
                self.file(&dir.join("AGENTS.md"), Whose::Project);
            }
            if self.is_of_project(&dir.join(".claude")) {
                self.rules(&dir.join(".claude/rules"), Whose::Project, dir);
            }
        }
        if self.sources.local {
            self.file(&dir.join("CLAUDE.local.md"), Whose::Local);
        }
    }

    /// Whether a directory has words of the project's own.
    fn has_claude_md(&self, dir: &Path) -> bool {
        self.claude_mds(dir).iter().any(|file| file.is_file() && !self.is_excluded(file))
    }

    /// The files of the project's own words in a directory.
    fn claude_mds(&self, dir: &Path) -> Vec<PathBuf> {
        let folder = dir.join(".claude");
        let mut files = vec![dir.join("CLAUDE.md")];
        files.extend(self.is_of_project(&folder).then(|| folder.join("CLAUDE.md")));
        files
    }

    /// Whether a folder is the project's: in the home directory it may be the user's.
    fn is_of_project(&self, folder: &Path) -> bool {
        let others = self.sources.user_dir.iter().chain(&self.sources.not_of_projects);
        let Ok(real) = folder.canonicalize() else { return true };
        others.filter_map(|other| other.canonicalize().ok()).all(|other| other != real)
    }

    fn file(&mut self, path: &Path, whose: Whose) {
        if let Some(text) = self.text_of(path, whose) {
            let text = text.trim_start_matches('\u{feff}').to_owned();
            self.add(MemoryFile { path: path.to_owned(), whose, text, imported_by: None }, 0);
        }
    }

    /// Rules of a directory and those in it. The ones that are about certain files wait for them.
    fn rules(&mut self, dir: &Path, whose: Whose, base: &Path) {
        let mut files = Vec::new();
        rule_files(dir, RULE_DIRECTORIES_DEEP_MAX, &mut HashSet::new(), &mut files);
        for path in files {
            let Some((file, globs)) = self.rule_in(&path, whose) else { continue };
            if globs.is_empty() {
                self.add(file, 0);
            } else {
                let about = Patterns::new(base, globs.iter().map(String::as_str));
                self.known.waiting.push(WaitingRule { file, about, globs });
            }
        }
    }

    /// The rule in a file that was not read yet, and the files that it is about; none if it is about all.
    fn rule_in(&mut self, path: &Path, whose: Whose) -> Option<(MemoryFile, Vec<String>)> {
        let text = self.text_of(path, whose)?;
        let headed = Headed::read(&text);
        let text = headed.body.to_owned();
        let file = MemoryFile { path: path.to_owned(), whose, text, imported_by: None };
        Some((file, headed.list("paths").unwrap_or_default()))
    }

    /// The beginning of the index of the model's own notes.
    fn notes(&mut self, path: &Path) {
        let Some(text) = self.text_of(path, Whose::Own) else { return };
        let mut kept = String::new();
        let mut is_cut = false;
        for (at, line) in text.lines().enumerate() {
            let room = NOTES_INDEX_BYTES_MAX.saturating_sub(kept.len());
            if at == NOTES_INDEX_LINES_MAX || room == 0 {
                is_cut = true;
                break;
            }
            kept.push_str(&line[..line.floor_char_boundary(room)]);
            kept.push('\n');
            if line.len() > room {
                is_cut = true;
                break;
            }
        }
        if is_cut {
            kept.push_str("(The index goes on; only its beginning is shown. Keep it short.)\n");
        }
        if !kept.trim().is_empty() {
            self.found.push(MemoryFile {
                path: path.to_owned(),
                whose: Whose::Own,
                text: kept,
                imported_by: None,
            });
        }
    }

    /// A file, and behind it what it imports.
    fn add(&mut self, mut file: MemoryFile, hops: usize) {
        file.text = without_comments(&file.text).trim().to_owned();
        let room = self.bytes_max.saturating_sub(self.known.bytes);
        if self.found.len() >= MEMORY_FILES_MAX || (room == 0 && !file.text.is_empty()) {
            self.notice(format!("{} was left out: there is too much memory already", file.path.display()));
            return;
        }
        if file.text.len() > room {
            self.notice(format!(
                "{} is told in part: all memory files together may have {} bytes in this context window",
                file.path.display(),
                self.bytes_max
            ));
            let chars = file.text.chars().count() * room / file.text.len();
            file.text = Shown::of(&file.text, chars).with_note(Some(&file.path));
        }
        self.known.bytes += file.text.len();
        let wanted = imports(&file.text);
        let (path, whose) = (file.path.clone(), file.whose);
        if !file.text.is_empty() {
            self.instructed(&file, Vec::new());
            self.found.push(file);
        }
        // What a link leads to is imported as that file means it.
        let dir = path.canonicalize().unwrap_or_else(|_| path.clone()).parent().map(Path::to_path_buf);
        let Some(dir) = dir else { return };
        for (nth, import) in wanted.into_iter().enumerate() {
            if nth == MEMORY_IMPORTS_MAX {
                self.notice(format!(
                    "{} imports more than {MEMORY_IMPORTS_MAX} files: the others were left out",
                    path.display()
                ));
                break;
            }
            let Some(target) =
                spellings(&import).map(|name| self.absolute(name, &dir)).find(|file| file.is_file())
            else {
                continue;
            };
            if target.canonicalize().is_ok_and(|real| self.known.read.contains(&real)) {
                continue;
            }
            if hops == MEMORY_IMPORT_HOPS_MAX {
                self.notice(format!(
                    "{} imports {}, at the end of more than {MEMORY_IMPORT_HOPS_MAX} imports in a row: it was left out",
                    path.display(),
                    target.display()
                ));
                continue;
            }
            if self.is_outside(&target, whose) {
                self.notice(format!(
                    "{} imports {}, which is outside of the working directory and was not approved: it was left out \
                     (`pelton trust` approves it)",
                    path.display(),
                    target.display()
                ));
                self.known.outside.push(OutsideImport { file: target, imported_by: path.clone() });
                continue;
            }
            if let Some(text) = self.text_of(&target, whose) {
                self.add(MemoryFile { path: target, whose, text, imported_by: Some(path.clone()) }, hops + 1);
            }
        }
    }

    /// Notes that a file is told, and why; once.
    fn instructed(&mut self, file: &MemoryFile, globs: Vec<String>) {
        if self.known.instructed.iter().any(|told| told.file == file.path) {
            return;
        }
        let whose = match file.whose {
            Whose::Managed => "Managed",
            Whose::User => "User",
            Whose::Project => "Project",
            Whose::Local => "Local",
            // Its own notes instruct nobody.
            Whose::Own => return,
        };
        let (reason, trigger) = match &self.because {
            _ if file.imported_by.is_some() => ("include", None),
            Because::Start => ("session_start", None),
            Because::Compaction => ("compact", None),
            Because::Read(read) if globs.is_empty() => ("nested_traversal", Some(read.clone())),
            Because::Read(read) => ("path_glob_match", Some(read.clone())),
        };
        let (file, parent) = (file.path.clone(), file.imported_by.clone());
        self.known.instructed.push(Instructed { file, whose, reason, globs, trigger, parent });
    }

    fn absolute(&self, name: &str, dir: &Path) -> PathBuf {
        let path = match (name.strip_prefix("~/"), &self.place.home) {
            (Some(rest), Some(home)) => home.join(rest),
            _ => dir.join(name),
        };
        crate::places::normalised(&path)
    }

    /// Whether a file of the project may not import this without somebody's approval.
    fn is_outside(&self, target: &Path, whose: Whose) -> bool {
        let guarded = matches!(whose, Whose::Project | Whose::Local) && !self.sources.outside_imports;
        let real = target.canonicalize().unwrap_or_else(|_| target.to_owned());
        guarded && !self.place.roots().any(|root| real.starts_with(root))
    }

    /// The text of a file that counts and was not read yet.
    fn text_of(&mut self, path: &Path, whose: Whose) -> Option<String> {
        // Only files are read: a pipe would be waited for.
        let about = fs::metadata(path).ok().filter(fs::Metadata::is_file)?;
        let real = path.canonicalize().ok()?;
        let is_guarded = matches!(whose, Whose::Project | Whose::Local);
        if self.known.read.contains(&real)
            || (whose != Whose::Managed && (self.is_excluded(path) || self.is_excluded(&real)))
            || (is_guarded && !(self.may_read)(path, &real))
        {
            return None;
        }
        if about.len() > MEMORY_FILE_BYTES_MAX {
            let most = MEMORY_FILE_BYTES_MAX / 1024 / 1024;
            self.notice(format!("{} was left out: it is larger than {most} MiB", path.display()));
            return None;
        }
        let mut bytes = Vec::new();
        let read =
            File::open(&real).and_then(|file| file.take(MEMORY_FILE_BYTES_MAX).read_to_end(&mut bytes));
        if let Err(error) = read {
            if error.kind() != ErrorKind::NotFound {
                self.notice(format!("{} cannot be read: {error}", path.display()));
            }
            return None;
        }
        self.known.read.insert(real);
        if bytes.contains(&0) {
            self.notice(format!("{} was left out: it is no text", path.display()));
            return None;
        }
        Some(String::from_utf8_lossy(&bytes).replace("\r\n", "\n"))
    }

    fn is_excluded(&self, path: &Path) -> bool {
        self.place.excludes.is_match(path)
    }

    fn notice(&mut self, text: String) {
        if self.known.notices.len() < MEMORY_FILES_MAX && !self.known.notices.contains(&text) {
            self.known.notices.push(text);
        }
    }
}

/// Whether a file lies where rules are kept.
fn is_rule(file: &Path) -> bool {
    file.ancestors().any(|dir| dir.ends_with(".claude/rules"))
}

/// Markdown files in a directory and below, in the order of their names. Links are followed; a circle ends.
fn rule_files(dir: &Path, deep: usize, entered: &mut HashSet<PathBuf>, files: &mut Vec<PathBuf>) {
    let Ok(real) = dir.canonicalize() else { return };
    if deep == 0 || !entered.insert(real) {
        return;
    }
    let Ok(entries) = fs::read_dir(dir) else { return };
    let mut paths: Vec<PathBuf> =
        entries.flatten().map(|entry| entry.path()).take(MEMORY_FILES_MAX).collect();
    paths.sort();
    for path in paths {
        if path.is_dir() {
            rule_files(&path, deep - 1, entered, files);
        } else if path.extension().is_some_and(|end| end == "md") && files.len() < MEMORY_FILES_MAX {
            files.push(path);
        }
    }
}
