//! Memory files: what a project, its user and the organisation want the model to know from the start, and what it is told
//! about a part of the project once it reads files there. [`Memory`] remembers what was told; finding is in [`gather`],
//! reading is pure in [`markdown`] and [`patterns`].

mod sources; // which files count, and where they are
mod gather; // finding and reading them
mod markdown; // comments, imports, code
mod patterns; // the files a rule is about

use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use globset::{GlobBuilder, GlobSet, GlobSetBuilder};

use super::attachment::{Attachment, AttachmentKind};
use super::prompt::reminder;
use crate::instructed::Instructed;
use gather::{Because, Gatherer, Known, MemoryFile, Whose};

pub(crate) use patterns::Patterns;
pub use sources::{AgentsMd, MemorySources, OutsideImport};

/// Whether rules let a file of the project be shown: the path as it is called, and where it leads.
pub(crate) type MayRead = dyn Fn(&Path, &Path) -> bool + Send + Sync;

/// The memory of one conversation. Handles share it.
#[derive(Clone)]
pub(crate) struct Memory(Option<Arc<Shared>>);

struct Shared {
    sources: MemorySources,
    place: Place,
    may_read: Box<MayRead>,
    /// What all of it may have.
    bytes_max: usize,
    known: Mutex<Known>,
}

/// What the model was told of a memory file.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Heard {
    pub file: PathBuf,
    /// In these words; `None` if nobody knows any more, empty if that it is gone.
    pub words: Option<String>,
}

impl Heard {
    /// Whether anything that was told of it may still hold.
    fn holds(&self) -> bool {
        self.words.as_ref().is_none_or(|words| !words.is_empty())
    }

    /// Who imported it, if somebody did.
    fn importer(&self) -> Option<&Path> {
        let heading = self.words.as_ref()?.trim_start().lines().next()?;
        let (_, importer) = heading.strip_suffix("):")?.rsplit_once(IMPORTED_BY)?;
        Some(Path::new(importer))
    }
}

/// What stands between the kind of a file and the one that imports it.
const IMPORTED_BY: &str = ", imported by ";

/// Where a session works, links resolved.
pub(crate) struct Place {
    pub cwd: PathBuf,
    pub additional_dirs: Vec<PathBuf>,
    pub home: Option<PathBuf>,
    excludes: GlobSet,
}

impl Memory {
    /// Nothing is read yet. Without sources there is no memory; of what is more than `bytes_max` a part is told.
    pub fn new(
        sources: Option<MemorySources>,
        cwd: &Path,
        additional_dirs: &[PathBuf],
        home: Option<&Path>,
        bytes_max: usize,
        may_read: impl Fn(&Path, &Path) -> bool + Send + Sync + 'static,
    ) -> Self {
        Self(sources.map(|sources| {
            let real = |path: &Path| path.canonicalize().unwrap_or_else(|_| path.to_owned());
            let place = Place {
                cwd: real(cwd),
                additional_dirs: additional_dirs.iter().map(|dir| real(dir)).collect(),
                home: home.map(Path::to_path_buf),
                excludes: excludes(&sources.excludes),
            };
            let known = Mutex::default();
            Arc::new(Shared { sources, place, may_read: Box::new(may_read), bytes_max, known })
        }))
    }

    /// Reads everything that counts from the start; what was told before is forgotten. `None` if there is nothing to tell.
    pub async fn load(&self) -> Option<Attachment> {
        self.read_all(Because::Start).await
    }

    async fn read_all(&self, because: Because) -> Option<Attachment> {
        let shared = Arc::clone(self.0.as_ref()?);
        // What cannot be read off the loop's path is not worth the loop.
        tokio::task::spawn_blocking(move || {
            *shared.known() = Known::default();
            let found = shared.gather(because, |gatherer| gatherer.gather_start());
            attachment(AttachmentKind::Instructions, &found)
        })
        .await
        .ok()?
    }

    /// The same after a compaction or a clearing: the files are read anew, and what was told because of files that were
    /// read is forgotten until it is needed again.
    pub async fn reread(&self) -> Option<Attachment> {
        self.read_all(Because::Compaction).await
    }

    /// What a conversation that goes on has heard already: these files count as told. The files themselves are read to
    /// know which rules wait; what they say is told again only where it is not what was told.
    pub async fn recall(&self, told: Vec<Heard>) -> Option<Attachment> {
        let shared = Arc::clone(self.0.as_ref()?);
        // What cannot be read off the loop's path is not worth the loop.
        let recalled = tokio::task::spawn_blocking(move || {
            let (now, not_imported) = shared.read_again(&told);
            changed(&told, &now, &not_imported)
        });
        recalled.await.ok()?
    }

    /// What files that were read (their real paths) bring that was not told yet: memory of the directories they are in,
    /// and rules about them.
    pub async fn touched(&self, files: Vec<PathBuf>) -> Vec<Attachment> {
        let Some(shared) = self.0.as_ref().filter(|shared| files.iter().any(|file| shared.may_bring(file)))
        else {
            return Vec::new();
        };
        let shared = Arc::clone(shared);
        let gathered = tokio::task::spawn_blocking(move || {
            let told = files.iter().filter_map(|file| {
                let found = shared.gather(Because::Read(file.clone()), |gatherer| gatherer.about(file));
                attachment(AttachmentKind::NestedInstructions, &found)
            });
            told.collect()
        });
        gathered.await.unwrap_or_default()
    }

    /// What directories (their real paths) bring that the session works in from now on, as far as it was not told yet.
    pub async fn of_roots(&self, dirs: Vec<PathBuf>) -> Option<Attachment> {
        let shared = Arc::clone(self.0.as_ref().filter(|_| !dirs.is_empty())?);
        let gathered = tokio::task::spawn_blocking(move || {
            let found =
                shared.gather(Because::Start, |gatherer| dirs.iter().for_each(|dir| gatherer.root(dir)));
            attachment(AttachmentKind::NestedInstructions, &found)
        });
        gathered.await.ok()?
    }

    /// The files that were told since the last look, and why.
    pub fn take_instructed(&self) -> Vec<Instructed> {
        self.0.as_ref().map(|shared| std::mem::take(&mut shared.known().instructed)).unwrap_or_default()
    }

    /// What has to be said about files that were left out, once.
    pub fn take_notices(&self) -> Vec<String> {
        self.0.as_ref().map(|shared| std::mem::take(&mut shared.known().notices)).unwrap_or_default()
    }
}

impl Shared {
    fn gather(&self, because: Because, how: impl FnOnce(&mut Gatherer<'_>)) -> Vec<MemoryFile> {
        let mut known = self.known();
        let mut gatherer = Gatherer {
            sources: &self.sources,
            place: &self.place,
            may_read: &*self.may_read,
            bytes_max: self.bytes_max,
            known: &mut known,
            found: Vec::new(),
            because,
        };
        how(&mut gatherer);
        gatherer.found
    }

    /// Forgets what was told but for these files. Gives what they say by now, and those that count from the start; then which of
    /// them were imported and are no more.
    fn read_again(&self, told: &[Heard]) -> (Vec<MemoryFile>, Vec<PathBuf>) {
        *self.known() = Known::default();
        let mut now = self.gather(Because::Start, |gatherer| gatherer.gather_start());
        let is_told = |path: &Path| told.iter().any(|heard| heard.file == path);
        let rules = std::mem::take(&mut self.known().waiting);
        let (rules, waiting): (Vec<_>, Vec<_>) = rules.into_iter().partition(|rule| is_told(&rule.file.path));
        self.known().waiting = waiting;
        now.extend(self.gather(Because::Start, |gatherer| {
            rules.into_iter().for_each(|rule| gatherer.rule(rule.file));
            // Those of directories below, which came with files there.
            let nested = told.iter().filter(|heard| heard.holds() && heard.importer().is_none());
            nested.for_each(|heard| gatherer.nested(&heard.file));
        }));
        let mut known = self.known();
        let not_imported = not_imported(told, &now, &known);
        let hold = told.iter().filter(|heard| heard.holds() && !not_imported.contains(&heard.file));
        known.read.extend(hold.filter_map(|heard| heard.file.canonicalize().ok()));
        known.notices.clear();
        // The model has heard of them in an earlier process.
        known.instructed.clear();
        (now, not_imported)
    }

    /// Whether a file can bring anything, without looking at the disk.
    fn may_bring(&self, file: &Path) -> bool {
        let known = self.known();
        self.place.below(file).iter().any(|dir| !known.looked_at.contains(dir))
            || known.waiting.iter().any(|rule| rule.about.matches(file))
    }

    fn known(&self) -> MutexGuard<'_, Known> {
        self.known.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Place {
    /// The working directories.
    pub fn roots(&self) -> impl Iterator<Item = &PathBuf> {
        std::iter::once(&self.cwd).chain(&self.additional_dirs)
    }

    /// The directories from below the working directory down to a file.
    pub fn below(&self, file: &Path) -> Vec<PathBuf> {
        if !file.starts_with(&self.cwd) {
            return Vec::new();
        }
        let above = file.ancestors().skip(1);
        let mut dirs: Vec<PathBuf> =
            above.take_while(|dir| *dir != self.cwd).map(Path::to_path_buf).collect();
        dirs.reverse();
        dirs
    }
}

/// A pattern that is none excludes nothing.
fn excludes(patterns: &[String]) -> GlobSet {
    let mut set = GlobSetBuilder::new();
    for pattern in patterns {
        if let Ok(glob) = GlobBuilder::new(pattern).literal_separator(true).build() {
            set.add(glob);
        }
    }
    set.build().unwrap_or_else(|_| GlobSet::empty())
}

fn attachment(kind: AttachmentKind, found: &[MemoryFile]) -> Option<Attachment> {
    if found.is_empty() {
        return None;
    }
    let files = found.iter().map(|file| file.path.clone()).collect();
    Some(Attachment { kind, files, tools: Vec::new(), text: text(kind, found) })
}

/// The files that were told because another imported them, which is still read and does so no more, or is gone.
fn not_imported(told: &[Heard], now: &[MemoryFile], known: &Known) -> Vec<PathBuf> {
    let is_read = |path: &Path| path.canonicalize().is_ok_and(|real| known.read.contains(&real));
    let mut without: Vec<PathBuf> = Vec::new();
    // Importers are told before what they import.
    for heard in told {
        let Some(importer) = heard.importer() else { continue };
        let is_known = now.iter().any(|file| file.path == importer)
            || without.iter().any(|path| path == importer)
            || !importer.exists();
        if is_known && !is_read(&heard.file) {
            without.push(heard.file.clone());
        }
    }
    without
}

/// What is told of files that do not say any more what was told of them, or that came or went since.
fn changed(told: &[Heard], now: &[MemoryFile], not_imported: &[PathBuf]) -> Option<Attachment> {
    let heard = |path: &Path| told.iter().find(|heard| heard.file == path);
    let is_news = |file: &&MemoryFile| match heard(&file.path) {
        None => true,
        Some(heard) => heard.words.as_ref().is_some_and(|words| words.trim() != section(file).trim()),
    };
    let is_gone = |heard: &&Heard| {
        heard.words.as_ref().is_some_and(|words| !words.is_empty())
            && !now.iter().any(|file| file.path == heard.file)
            && (!heard.file.exists() || not_imported.contains(&heard.file))
    };
    let how = |path: &Path| if path.exists() { "is not imported any more" } else { "is gone" };
    let news: Vec<MemoryFile> = now.iter().filter(is_news).cloned().collect();
    let gone: Vec<PathBuf> = told.iter().filter(is_gone).map(|heard| heard.file.clone()).collect();
    if news.is_empty() && gone.is_empty() {
        return None;
    }
    let mut words = vec![
        "Instruction files have changed since you were told what they say. From here on this holds instead:"
            .to_owned(),
    ];
    let no_more = |path: &PathBuf| format!("{} {}; what it said holds no more.", path.display(), how(path));
    words.extend(gone.iter().map(no_more));
    words.extend(news.iter().map(section));
    let files = news.into_iter().map(|file| file.path).chain(gone).collect();
    Some(Attachment::reminder(AttachmentKind::NestedInstructions, files, &words))
}

/// What was told of each of these files in words that [`Memory`] has made.
pub(crate) fn told_in<'a>(words: &'a str, files: &[PathBuf]) -> Vec<(PathBuf, &'a str)> {
    let heading = |path: &PathBuf| words.find(&format!("Contents of {} (", path.display()));
    let mut begins: Vec<(usize, &PathBuf)> =
        files.iter().filter_map(|path| Some((heading(path)?, path))).collect();
    begins.sort_unstable_by_key(|(at, _)| *at);
    let ends = begins.iter().skip(1).map(|(at, _)| *at).chain([words.len()]);
    let told = begins.iter().zip(ends);
    told.map(|((at, path), end)| {
        let text = &words[*at..end];
        // What a summary tells behind them is none of theirs.
        let end = text.find("</system-reminder>").unwrap_or(text.len());
        ((*path).clone(), &text[..end])
    })
    .collect()
}

fn text(kind: AttachmentKind, found: &[MemoryFile]) -> String {
    let lead = match kind {
        AttachmentKind::NestedInstructions => {
            "You have read a file that these instructions are about. They hold like those you had at the start."
        }
        _ => {
            "These are instructions for you, from files that the project, its user or the organisation keep. Follow them; \
             they come before your own habits. Where two disagree, the one further down is nearer to the work and holds. \
             Leave aside what has nothing to do with the task."
        }
    };
    let mut words = vec![lead.to_owned()];
    words.extend(found.iter().map(section));
    reminder(&words)
}

/// A file, as the model reads it.
fn section(file: &MemoryFile) -> String {
    let importer = match &file.imported_by {
        Some(importer) => format!("{IMPORTED_BY}{}", importer.display()),
        None => String::new(),
    };
    // Nothing in a file ends the reminder it stands in.
    let text = file.text.replace("</system-reminder>", "<\\/system-reminder>");
    format!("\nContents of {} ({}{importer}):\n\n{text}", file.path.display(), whose(file.whose))
}

fn whose(whose: Whose) -> &'static str {
    match whose {
        Whose::Managed => "managed instructions: set by the organisation, for everybody",
        Whose::User => "user instructions: the user's own, for all projects",
        Whose::Project => "project instructions: kept with the project, for everybody who works on it",
        Whose::Local => "local instructions: the user's own, for this project",
        Whose::Own => "auto memory: your own notes from earlier sessions",
    }
}

#[cfg(test)]
mod tests;
