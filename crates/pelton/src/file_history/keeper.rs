//! The open history of a session: what happened, what the trees look like, and the files it is all kept in.

use std::collections::{BTreeMap, HashSet};
use std::io;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use pelton_model::World;
use uuid::Uuid;

use super::at;
use super::plan::{self, Move, Plan, Rewind, Step};
use super::state::{Change, SavedPath, State};
use super::store::{Line, Store};
use super::tree::{Look, Survey, Tree, is_closed};
use super::{Beside, Conflicts, FileHistoryLimits, HistoryError, Rewound, RewoundFile, RewoundKind, Scope};
use crate::limits::{
    DIFF_BYTES_MAX, FILE_HISTORY_EDITED_BYTES_MAX, FILE_HISTORY_FIRST_LOOK_MAX,
    FILE_HISTORY_UNCOVERED_NAMED_MAX,
};
use crate::places::resolve;
use crate::tools::disk::DiskError;
use crate::tools::patch::Stretch;

/// What commands in the background are called.
const BACKGROUND: &str = "background";

pub(super) struct Keeper {
    store: Store,
    steps: Vec<Step>,
    tree: Tree,
    /// Calls that have begun and not ended.
    open: Vec<OpenCall>,
    roots: Vec<PathBuf>,
    limits: FileHistoryLimits,
    without: Vec<PathBuf>,
    world: Arc<dyn World>,
}

struct OpenCall {
    id: String,
    /// What was at the paths it may change; anything in the trees if absent.
    paths: Option<Vec<(SavedPath, State)>>,
    begun_ns: i64,
}

impl Keeper {
    pub fn open(
        dir: &Path,
        config_dir: &Path,
        limits: FileHistoryLimits,
        world: Arc<dyn World>,
    ) -> io::Result<Self> {
        let (store, lines) = Store::open(dir, limits.total_bytes_max)?;
        let mut keeper = Self {
            store,
            steps: Vec::new(),
            tree: Tree::default(),
            open: Vec::new(),
            roots: Vec::new(),
            limits,
            // Where the session itself is written.
            without: resolve(config_dir).map(|resolved| resolved.path).into_iter().collect(),
            world,
        };
        let mut rewinding = None;
        for line in lines {
            keeper.recall(line, &mut rewinding);
        }
        if let Some(rewind) = rewinding {
            keeper.settle_rewind(rewind)?;
        }
        keeper.settle_calls()?;
        Ok(keeper)
    }

    fn recall(&mut self, line: Line, rewinding: &mut Option<Rewind>) {
        match line {
            Line::Kept { .. } => {}
            Line::Message { id } => self.steps.push(Step::Message(id)),
            Line::Seen { entries } => self.tree.recall(entries),
            Line::Roots { roots } => self.roots = roots.into_iter().map(|root| root.0).collect(),
            Line::Begin { call, paths, at_ns } => {
                self.open.push(OpenCall { id: call, paths, begun_ns: at_ns });
            }
            Line::End { call, changes } => {
                self.open.retain(|open| open.id != call);
                self.steps.extend(changes.into_iter().map(Step::Changed));
            }
            Line::Rewinding { id, undoes, changes } => *rewinding = Some(Rewind { id, undoes, changes }),
            Line::Rewound { id, not } => {
                if let Some(mut rewind) = rewinding.take().filter(|rewind| rewind.id == id) {
                    rewind.changes.retain(|change| !not.contains(&change.path));
                    self.steps.push(Step::Rewound(rewind));
                }
            }
        }
    }

    pub fn messages(&self) -> Vec<Uuid> {
        let messages = self.steps.iter().filter_map(|step| match step {
            Step::Message(id) => Some(*id),
            _ => None,
        });
        messages.collect()
    }

    /// The user said something.
    pub fn mark(&mut self, id: Uuid, beside: Beside) -> io::Result<()> {
        self.end(BACKGROUND)?;
        self.store.write(&[Line::Message { id }])?;
        self.steps.push(Step::Message(id));
        self.watch_background(beside)
    }

    /// A call has ended; others may go on.
    pub fn end_beside(&mut self, call: &str, beside: Beside) -> io::Result<()> {
        self.end(call)?;
        self.watch_background(beside)
    }

    /// Commands in the background are one call that is open as long as there are any.
    fn watch_background(&mut self, beside: Beside) -> io::Result<()> {
        if beside == Beside::Nothing
            || self.roots.is_empty()
            || self.open.iter().any(|open| open.id == BACKGROUND)
        {
            return Ok(());
        }
        let begun_ns = self.now_ns();
        self.store.write(&[Line::Begin { call: BACKGROUND.to_owned(), paths: None, at_ns: begun_ns }])?;
        self.open.push(OpenCall { id: BACKGROUND.to_owned(), paths: None, begun_ns });
        Ok(())
    }

    pub fn begin(&mut self, call: &str, scope: Scope) -> io::Result<()> {
        self.end(BACKGROUND)?;
        let begun_ns = self.now_ns();
        let mut lines = Vec::new();
        let paths = match scope {
            Scope::File(path) => {
                let mut paths = Vec::new();
                // The directories that are made with it.
                for dir in path.ancestors().skip(1).take_while(|dir| at::mark(dir).is_none()) {
                    paths.push((dir.into(), State::Absent));
                }
                paths.reverse();
                let state = self.see(&path, FILE_HISTORY_EDITED_BYTES_MAX)?;
                paths.push((SavedPath(path), state));
                Some(paths)
            }
            Scope::Trees(roots) => {
                if roots != self.roots {
                    lines.push(Line::Roots {
                        roots: roots.iter().map(|root| root.as_path().into()).collect(),
                    });
                    self.roots = roots;
                }
                // What is other than it was is the work of others.
                if !self.tree.is_as_seen(&self.roots) {
                    let Look { news, .. } = self.look(begun_ns)?;
                    if !news.is_empty() {
                        lines.push(Line::Seen { entries: news });
                    }
                }
                None
            }
        };
        lines.push(Line::Begin { call: call.to_owned(), paths: paths.clone(), at_ns: begun_ns });
        self.store.write(&lines)?;
        self.open.push(OpenCall { id: call.to_owned(), paths, begun_ns });
        Ok(())
    }

    fn end(&mut self, call: &str) -> io::Result<()> {
        let Some(at) = self.open.iter().position(|open| open.id == call) else { return Ok(()) };
        let OpenCall { paths, begun_ns, .. } = self.open.remove(at);
        let (changes, news) = match paths {
            Some(paths) => {
                let mut changes = Vec::new();
                let mut news = Vec::new();
                for (path, before) in paths {
                    let after = self.see(path.as_path(), FILE_HISTORY_EDITED_BYTES_MAX)?;
                    if after != before {
                        news.extend(self.tree.note(path.as_path(), &after));
                        changes.push(Change { path, before, after });
                    }
                }
                (changes, news)
            }
            None => {
                let Look { changes, news } = self.look(begun_ns)?;
                (changes, news)
            }
        };
        let mut lines = Vec::new();
        if !news.is_empty() {
            lines.push(Line::Seen { entries: news });
        }
        lines.push(Line::End { call: call.to_owned(), changes: changes.clone() });
        self.store.write(&lines)?;
        self.steps.extend(changes.into_iter().map(Step::Changed));
        Ok(())
    }

    pub fn preview(&mut self, to: Uuid) -> Result<Rewound, HistoryError> {
        self.settle_calls()?;
        let plan = self.plan_to(to)?;
        self.told(&plan, Conflicts::Leave, &stays(&plan, Conflicts::Leave))
    }

    pub fn preview_undo(&mut self) -> Result<Rewound, HistoryError> {
        self.settle_calls()?;
        let (_, plan) = self.plan_undo()?;
        self.told(&plan, Conflicts::Leave, &stays(&plan, Conflicts::Leave))
    }

    pub fn rewind(&mut self, to: Uuid, conflicts: Conflicts) -> Result<Rewound, HistoryError> {
        self.settle_calls()?;
        let plan = self.plan_to(to)?;
        self.go(&plan, None, conflicts)
    }

    pub fn undo(&mut self, conflicts: Conflicts) -> Result<Rewound, HistoryError> {
        self.settle_calls()?;
        let (id, plan) = self.plan_undo()?;
        self.go(&plan, Some(id), conflicts)
    }

    fn plan_to(&self, to: Uuid) -> Result<Plan, HistoryError> {
        plan::back_to(&self.steps, to, |path| self.state_now(path)).ok_or(HistoryError::NoSuchMessage)
    }

    fn plan_undo(&self) -> Result<(Uuid, Plan), HistoryError> {
        plan::undo(&self.steps, |path| self.state_now(path)).ok_or(HistoryError::NothingToUndo)
    }

    /// Makes the moves of a plan. What is planned is on disk before, so that a rewind that is cut off is known.
    fn go(
        &mut self,
        plan: &Plan,
        undoes: Option<Uuid>,
        conflicts: Conflicts,
    ) -> Result<Rewound, HistoryError> {
        let mut left = stays(plan, conflicts);
        let mut wanted: Vec<&Move> = in_order(plan, conflicts);
        wanted.retain(|step| !left.iter().any(|(path, _)| *path == step.path));
        // Directories are let in before what is in them is looked at.
        let opened: Vec<&Move> = wanted.iter().copied().filter(|step| open_up(step)).collect();
        let mut moves = Vec::new();
        for wanted in wanted {
            // What goes is kept first: otherwise there would be no way back from here.
            let now = self.see(&wanted.path, FILE_HISTORY_EDITED_BYTES_MAX)?;
            match now {
                State::Unkept { why, .. } => {
                    left.push((wanted.path.clone(), format!("stays: {}", why.words())));
                }
                now if now != wanted.now && !opened.iter().any(|step| step.path == wanted.path) => {
                    left.push((wanted.path.clone(), "is being changed right now".to_owned()));
                }
                _ => moves.push(wanted),
            }
        }
        let told = self.told(plan, conflicts, &left)?;
        let id = crate::session::fresh_id(self.world.as_ref());
        let change = |step: &&Move| Change {
            path: step.path.as_path().into(),
            before: step.now.clone(),
            after: step.target.clone(),
        };
        let changes: Vec<Change> = moves.iter().map(change).collect();
        self.store.write(&[Line::Rewinding { id, undoes, changes: changes.clone() }])?;
        self.store.sync()?;
        for step in &moves {
            match at::put(&step.path, &step.now, &step.target, |hash| self.store.content(hash)) {
                Ok(()) => {}
                // Somebody else has something in there.
                Err(DiskError::Io(error)) if error.kind() == io::ErrorKind::DirectoryNotEmpty => {
                    left.push((step.path.clone(), "is not empty".to_owned()));
                }
                Err(error) => left.push((step.path.clone(), error.to_string())),
            }
        }
        close(&moves, &opened, &mut left);
        let told = if left.is_empty() { told } else { Self::with_left(told, &left) };
        self.finish_rewind(Rewind { id, undoes, changes }, &left)?;
        Ok(told)
    }

    fn finish_rewind(&mut self, mut rewind: Rewind, left: &[(PathBuf, String)]) -> io::Result<()> {
        let not: Vec<SavedPath> = left.iter().map(|(path, _)| path.as_path().into()).collect();
        rewind.changes.retain(|change| !not.contains(&change.path));
        let mut news = Vec::new();
        for change in &rewind.changes {
            news.extend(self.tree.note(change.path.as_path(), &change.after));
        }
        let mut lines = vec![Line::Rewound { id: rewind.id, not }];
        if !news.is_empty() {
            lines.push(Line::Seen { entries: news });
        }
        self.store.write(&lines)?;
        self.steps.push(Step::Rewound(rewind));
        Ok(())
    }

    /// A rewind that was cut off: what was done of it counts.
    fn settle_rewind(&mut self, rewind: Rewind) -> io::Result<()> {
        let is_undone = |change: &&Change| self.state_now(change.path.as_path()) != change.after;
        let undone = rewind.changes.iter().filter(is_undone);
        let left: Vec<(PathBuf, String)> =
            undone.map(|change| (change.path.0.clone(), String::new())).collect();
        self.finish_rewind(rewind, &left)
    }

    /// Calls that were cut off: what is other than at their beginning counts as theirs.
    fn settle_calls(&mut self) -> io::Result<()> {
        while let Some(open) = self.open.first() {
            let id = open.id.clone();
            self.end(&id)?;
        }
        Ok(())
    }

    fn look(&mut self, begun_ns: i64) -> io::Result<Look> {
        let started = self.world.monotonic();
        let world = Arc::clone(&self.world);
        let is_late = move || world.monotonic().saturating_sub(started) > FILE_HISTORY_FIRST_LOOK_MAX;
        let survey = Survey {
            roots: &self.roots,
            without: &self.without,
            file_bytes_max: self.limits.file_bytes_max,
            now_ns: self.now_ns(),
            begun_ns,
            is_late: &is_late,
        };
        self.tree.look(&survey, &mut self.store)
    }

    fn see(&mut self, path: &Path, bytes_max: u64) -> io::Result<State> {
        Ok(at::see(path, bytes_max, |hash, content| self.store.keep(hash, content))?.state)
    }

    /// What is at a path now, without keeping it; behind a directory that lets nobody in, what was there when it was last seen.
    fn state_now(&self, path: &Path) -> State {
        if at::is_hidden(path) {
            return self.tree.state(path);
        }
        at::see(path, FILE_HISTORY_EDITED_BYTES_MAX, |_, _| Ok(true)).map_or(State::Absent, |seen| seen.state)
    }

    fn now_ns(&self) -> i64 {
        i64::try_from(self.world.now().as_nanosecond()).unwrap_or(i64::MAX)
    }

    /// The plan in the words of those who asked for it.
    fn told(
        &self,
        plan: &Plan,
        conflicts: Conflicts,
        left: &[(PathBuf, String)],
    ) -> Result<Rewound, HistoryError> {
        let mut told = Rewound::default();
        for step in &plan.moves {
            let is_file = |state: &State| *state != State::Absent && !state.is_dir();
            // Directories come and go with what is in them; told are those that get another mode, or stay.
            let is_told_dir = (step.now.is_dir() && step.target.is_dir())
                || left.iter().any(|(path, _)| *path == step.path);
            if !is_file(&step.now) && !is_file(&step.target) && !is_told_dir {
                continue;
            }
            let kind = match (is_file(&step.now), is_file(&step.target)) {
                (false, false) if step.target == State::Absent => RewoundKind::Removed,
                (false, false) if step.now.is_dir() => RewoundKind::Restored,
                (false, _) => RewoundKind::Recreated,
                (true, false) => RewoundKind::Removed,
                (true, true) => RewoundKind::Restored,
            };
            let (old, new) = (self.text(&step.path, &step.now), self.text(&step.path, &step.target));
            let hunks = Stretch::whole(&old, &new).hunks();
            let count = |sign| {
                hunks.iter().flat_map(|hunk| &hunk.lines).filter(|line| line.starts_with(sign)).count() as u64
            };
            let conflict = step.conflict.filter(|_| conflicts == Conflicts::Leave);
            told.files.push(RewoundFile {
                path: step.path.clone(),
                kind,
                insertions: count('+'),
                deletions: count('-'),
                left: conflict.map(|conflict| conflict.words().to_owned()),
            });
        }
        let mut uncovered: Vec<(PathBuf, String)> = plan
            .lost
            .iter()
            .map(|(path, why)| (path.clone(), format!("changed, but {}", why.words())))
            .collect();
        // What has changed is named by that, and not once more.
        let lost: HashSet<&PathBuf> = plan.lost.iter().map(|(path, _)| path).collect();
        uncovered.extend(self.uncovered().into_iter().filter(|(path, _)| !lost.contains(path)));
        told.uncovered_more = uncovered.len().saturating_sub(FILE_HISTORY_UNCOVERED_NAMED_MAX);
        uncovered.truncate(FILE_HISTORY_UNCOVERED_NAMED_MAX);
        told.uncovered = uncovered;
        Ok(Self::with_left(told, left))
    }

    fn with_left(mut told: Rewound, left: &[(PathBuf, String)]) -> Rewound {
        for file in &mut told.files {
            if let Some((_, why)) = left.iter().find(|(path, _)| *path == file.path) {
                file.left = Some(why.clone());
            }
        }
        told
    }

    /// What commands could change without a way back.
    fn uncovered(&self) -> Vec<(PathBuf, String)> {
        let mut uncovered: Vec<(PathBuf, String)> = self
            .tree
            .given_up()
            .map(|root| (root.to_path_buf(), "has too much in it to be kept".to_owned()))
            .collect();
        uncovered.extend(self.tree.unkept().map(|(path, why)| (path, why.words().to_owned())));
        for dir in self.tree.dirs() {
            if is_closed(dir) {
                uncovered.push((dir.to_path_buf(), "cannot be looked into".to_owned()));
            }
            let Ok(entries) = std::fs::read_dir(dir) else { continue };
            let unknown = entries
                .filter_map(Result::ok)
                .map(|entry| entry.path())
                .filter(|path| !self.tree.knows(path));
            uncovered.extend(unknown.map(|path| {
                let own = path.file_name().is_some_and(crate::tools::search::is_store);
                (path, if own { "the store of version control" } else { "ignored or new" }.to_owned())
            }));
        }
        uncovered
    }

    /// The lines of a file, for counting.
    fn text(&self, path: &Path, state: &State) -> String {
        let State::File { hash, bytes, .. } = state else { return String::new() };
        if *bytes > DIFF_BYTES_MAX {
            return String::new();
        }
        let content = self.store.content(*hash).or_else(|_| std::fs::read(path)).unwrap_or_default();
        String::from_utf8_lossy(&content).into_owned()
    }
}

/// What would stay, because there would be no way back from taking it away.
fn stays(plan: &Plan, conflicts: Conflicts) -> Vec<(PathBuf, String)> {
    let left = in_order(plan, conflicts).into_iter().filter_map(|wanted| match &wanted.now {
        State::Unkept { why, .. } => Some((wanted.path.clone(), format!("stays: {}", why.words()))),
        State::Dir { .. } if !wanted.target.is_dir() && is_closed(&wanted.path) => {
            Some((wanted.path.clone(), "stays: cannot be looked into".to_owned()))
        }
        _ => None,
    });
    left.collect()
}

/// What the owner may do with a directory in which things are to be changed.
const OPEN_MODE: u32 = 0o700;

/// Lets us into a directory in which something is to be done. Says whether it had to be.
fn open_up(step: &Move) -> bool {
    let State::Dir { mode } = step.now else { return false };
    // Whose it is not will say no again, where it matters.
    mode & OPEN_MODE != OPEN_MODE && at::set_mode(&step.path, mode | OPEN_MODE).is_ok()
}

/// Everything is in its place: directories get the mode they should have, inside before outside.
fn close(moves: &[&Move], opened: &[&Move], left: &mut Vec<(PathBuf, String)>) {
    let mut modes: BTreeMap<&Path, u32> = BTreeMap::new();
    for step in opened {
        if let State::Dir { mode } = step.now {
            modes.insert(&step.path, mode);
        }
    }
    for step in moves {
        if let State::Dir { mode } = step.target
            && !left.iter().any(|(path, _)| *path == step.path)
        {
            modes.insert(&step.path, mode);
        }
    }
    for (path, mode) in modes.into_iter().rev() {
        match at::set_mode(path, mode) {
            // It was taken away, as it should.
            Ok(()) | Err(DiskError::Missing | DiskError::Moved) => {}
            Err(error) => left.push((path.to_path_buf(), error.to_string())),
        }
    }
}

/// The moves that are made, so that each finds its place: what goes before what comes, and inside before outside.
fn in_order(plan: &Plan, conflicts: Conflicts) -> Vec<&Move> {
    let made = plan.moves.iter().filter(|step| step.conflict.is_none() || conflicts == Conflicts::Overwrite);
    let mut moves: Vec<&Move> = made.collect();
    let rank = |step: &Move| match (&step.now, &step.target) {
        (State::Dir { .. }, State::Absent) => 1,
        (_, State::Absent) => 0,
        (_, State::Dir { .. }) => 2,
        _ => 3,
    };
    moves.sort_by(|a, b| {
        let by_path = a.path.cmp(&b.path);
        rank(a).cmp(&rank(b)).then(if rank(a) <= 1 { by_path.reverse() } else { by_path })
    });
    moves
}
