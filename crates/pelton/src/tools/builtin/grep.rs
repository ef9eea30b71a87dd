//! Grep: lines by content, with ripgrep's own engine and syntax.

mod files; // one file after the other
mod rows; // what was found in one of them

use std::cmp::Reverse;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use futures::future::BoxFuture;
use grep_regex::{RegexMatcher, RegexMatcherBuilder};
use ignore::overrides::{Override, OverrideBuilder};
use ignore::types::{Types, TypesBuilder};
use pelton_model::World;
use serde::Deserialize;
use serde_json::{Value, json};
use tokio_util::sync::CancellationToken;

use self::files::FileSearch;
use self::rows::{Rows, Tally};
use super::looking;
use crate::limits::{GREP_REGEX_BYTES_MAX, GREP_ROWS_MAX, ToolLimits};
use crate::places::resolve;
use crate::tools::lenient;
use crate::tools::search::{Deadline, Kept, NewestFirst, PassesOver, Sieve, Tree, entries, real_root, visit};
use crate::tools::tool::{Access, InvalidInput, Output, Safety, Spec, Tool, ToolCx, parse_input};

/// The tool.
pub(super) fn tool() -> Arc<dyn Tool> {
    Arc::new(GrepTool)
}

struct GrepTool;

const SPEC: Spec<'static> = Spec {
    name: "Grep",
    description: include_str!("grep.md"),
    input_schema: r#"{"type":"object","properties":{"pattern":{"type":"string"},"path":{"type":"string"},"glob":{"type":"string"},"type":{"type":"string"},"output_mode":{"type":"string","enum":["content","files_with_matches","count"]},"-A":{"type":"integer"},"-B":{"type":"integer"},"-C":{"type":"integer"},"context":{"type":"integer","description":"same as -C"},"-n":{"type":"boolean"},"-i":{"type":"boolean"},"-o":{"type":"boolean"},"multiline":{"type":"boolean"},"head_limit":{"type":"integer"},"offset":{"type":"integer"}},"required":["pattern"]}"#,
};

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Input {
    pattern: String,
    #[serde(default, deserialize_with = "lenient::optional_path")]
    path: Option<PathBuf>,
    #[serde(default)]
    glob: Option<String>,
    #[serde(default, rename = "type")]
    kind: Option<String>,
    #[serde(default)]
    output_mode: Option<Mode>,
    #[serde(default, rename = "-A", deserialize_with = "lenient::count")]
    after: Option<u64>,
    #[serde(default, rename = "-B", deserialize_with = "lenient::count")]
    before: Option<u64>,
    #[serde(default, rename = "-C", deserialize_with = "lenient::count")]
    around: Option<u64>,
    #[serde(default, deserialize_with = "lenient::count")]
    context: Option<u64>,
    #[serde(default, rename = "-n", deserialize_with = "lenient::optional_flag")]
    line_numbers: Option<bool>,
    #[serde(default, rename = "-i", deserialize_with = "lenient::flag")]
    ignore_case: bool,
    #[serde(default, rename = "-o", deserialize_with = "lenient::flag")]
    only_matching: bool,
    #[serde(default, deserialize_with = "lenient::flag")]
    multiline: bool,
    #[serde(default, deserialize_with = "lenient::count")]
    head_limit: Option<u64>,
    #[serde(default, deserialize_with = "lenient::count")]
    offset: Option<u64>,
}

#[derive(Clone, Copy, PartialEq, Eq, Default, Deserialize)]
#[serde(rename_all = "snake_case")]
enum Mode {
    Content,
    #[default]
    FilesWithMatches,
    Count,
}

/// What was asked for, understood.
struct Search {
    /// Where to search, without links.
    root: PathBuf,
    /// The root is a file.
    one_file: bool,
    sieve: Sieve,
    cwd: PathBuf,
    matcher: RegexMatcher,
    globs: Override,
    types: Types,
    mode: Mode,
    lines: rows::Wanted,
    multiline: bool,
    /// Rows of the answer to leave out.
    offset: usize,
    /// Rows of the answer.
    limit: usize,
}

impl Tool for GrepTool {
    fn spec(&self) -> Spec<'_> {
        SPEC
    }

    fn safety(&self, _input: &Value) -> Safety {
        Safety::Shared
    }

    fn access(&self, input: &Value, cx: &ToolCx) -> Result<Access, InvalidInput> {
        let input: Input = parse_input(input)?;
        Ok(Access::Read(root(&input, cx)))
    }

    fn run<'a>(&'a self, input: Value, cx: &'a ToolCx) -> BoxFuture<'a, Output> {
        Box::pin(async move {
            let input: Input = match parse_input(&input) {
                Ok(input) => input,
                Err(InvalidInput(why)) => return Output::unusable(why),
            };
            let search = match understand(&input, cx) {
                Ok(search) => search,
                Err(why) => return Output::error(why),
            };
            let (limits, world) = (cx.limits.clone(), cx.world.clone());
            looking(cx, move |cancel| grep(search, &limits, world, cancel)).await
        })
    }
}

fn root(input: &Input, cx: &ToolCx) -> PathBuf {
    match &input.path {
        Some(path) if !path.as_os_str().is_empty() => cx.absolute(path),
        _ => cx.cwd.clone(),
    }
}

fn understand(input: &Input, cx: &ToolCx) -> Result<Search, String> {
    let asked = root(input, cx);
    let shown = asked.display();
    let (root, metadata) =
        real_root(&cx.target(&asked)).map_err(|error| format!("{shown} cannot be searched: {error}."))?;
    if !metadata.is_dir() && !metadata.is_file() {
        return Err(format!("{shown} is neither a file nor a directory."));
    }
    let mut builder = RegexMatcherBuilder::new();
    builder
        .case_insensitive(input.ignore_case)
        .multi_line(true)
        .dot_matches_new_line(input.multiline)
        .size_limit(GREP_REGEX_BYTES_MAX);
    if !input.multiline {
        builder.line_terminator(Some(b'\n'));
    }
    let matcher =
        builder.build(&input.pattern).map_err(|error| format!("The pattern cannot be used: {error}"))?;

    let mut globs = OverrideBuilder::new(&root);
    for glob in input.glob.iter().flat_map(|globs| split_globs(globs)) {
        globs.add(glob).map_err(|error| format!("`glob` cannot be used: {error}"))?;
    }
    let globs = globs.build().map_err(|error| format!("`glob` cannot be used: {error}"))?;
    let mut types = TypesBuilder::new();
    if let Some(kind) = input.kind.as_deref().filter(|kind| !kind.is_empty()) {
        types.add_defaults().select(kind);
    }
    let types =
        types.build().map_err(|error| format!("`type` cannot be used: {error}. Use `glob` instead"))?;

    let context = |own: Option<u64>| {
        let lines = own.or(input.around).or(input.context).unwrap_or(0);
        usize::try_from(lines).unwrap_or(GREP_ROWS_MAX).min(GREP_ROWS_MAX)
    };
    let limit = match input.head_limit {
        None => cx.limits.grep_lines_default,
        Some(0) => GREP_ROWS_MAX,
        Some(limit) => usize::try_from(limit).unwrap_or(GREP_ROWS_MAX).min(GREP_ROWS_MAX),
    };
    let offset = usize::try_from(input.offset.unwrap_or(0))
        .ok()
        .filter(|offset| *offset <= GREP_ROWS_MAX)
        .ok_or_else(|| format!("`offset` is at most {GREP_ROWS_MAX}: narrow the search instead."))?;
    Ok(Search {
        one_file: metadata.is_file(),
        sieve: Sieve::new(cx.readable.clone(), asked, root.clone()),
        root,
        // Spelled like what is found, so that names become short.
        cwd: resolve(&cx.cwd).map_or_else(|_| cx.cwd.clone(), |cwd| cwd.path),
        matcher,
        globs,
        types,
        mode: input.output_mode.unwrap_or_default(),
        lines: rows::Wanted {
            // What surrounds a match is not part of it.
            before: if input.only_matching { 0 } else { context(input.before) },
            after: if input.only_matching { 0 } else { context(input.after) },
            numbers: input.line_numbers.unwrap_or(true),
            only_matching: input.only_matching,
            chars_max: cx.limits.grep_line_chars_max,
            // One row more tells that there is more.
            rows_max: offset + limit + 1,
        },
        multiline: input.multiline,
        offset,
        limit,
    })
}

/// Globs are separated by white space, or by commas outside of braces.
fn split_globs(globs: &str) -> impl Iterator<Item = &str> {
    let mut depth = 0usize;
    globs
        .split(move |c: char| {
            match c {
                '{' => depth += 1,
                '}' => depth = depth.saturating_sub(1),
                _ => {}
            }
            c.is_whitespace() || (c == ',' && depth == 0)
        })
        .filter(|glob| !glob.is_empty())
}

fn grep(
    mut search: Search,
    limits: &ToolLimits,
    world: Arc<dyn World>,
    cancel: &CancellationToken,
) -> Output {
    let deadline = Deadline::new(world, cancel.clone(), limits.search_time_max);
    let unread = AtomicU64::new(0);
    let tree = Tree {
        root: &search.root,
        globs: std::mem::replace(&mut search.globs, Override::empty()),
        types: std::mem::replace(&mut search.types, Types::empty()),
        passes_over: PassesOver { ignored: true, hidden: false },
    };
    let files = FileSearch { search: &search, deadline: &deadline, unread: &unread };
    let limit = search.offset + search.limit + 1;
    let mut answer = match search.mode {
        Mode::FilesWithMatches => {
            let kept: Kept<NewestFirst, ()> = Kept::new(limit);
            let unreadable = visit(tree, &deadline, || {
                let mut reader = files.reader();
                let kept = &kept;
                move |path: &Path| {
                    let mut first = Tally::up_to(1);
                    if let Some(changed) = reader.run(path, &mut first).filter(|_| first.lines > 0) {
                        kept.offer((Reverse(changed), path.to_path_buf()), (), 1);
                    }
                }
            });
            unread.fetch_add(unreadable, Ordering::Relaxed);
            let (kept, found, _) = kept.finish();
            let paths: Vec<PathBuf> = kept.into_iter().map(|((_, path), ())| path).collect();
            Answer::of_files(&search, limits, &paths, found)
        }
        Mode::Count => {
            let kept: Kept<PathBuf, u64> = Kept::new(limit);
            let matches = AtomicU64::new(0);
            let unreadable = visit(tree, &deadline, || {
                let mut reader = files.reader();
                let (kept, matches) = (&kept, &matches);
                move |path: &Path| {
                    let mut counted = Tally::up_to(u64::MAX);
                    if reader.run(path, &mut counted).is_some() && counted.lines > 0 {
                        matches.fetch_add(counted.lines, Ordering::Relaxed);
                        kept.offer(path.to_path_buf(), counted.lines, 1);
                    }
                }
            });
            unread.fetch_add(unreadable, Ordering::Relaxed);
            let (kept, found, _) = kept.finish();
            Answer::of_counts(&search, limits, &kept, found, matches.into_inner())
        }
        Mode::Content => {
            let kept: Kept<PathBuf, Vec<rows::Row>> = Kept::new(limit);
            let unreadable = visit(tree, &deadline, || {
                let mut reader = files.reader();
                let (kept, search) = (&kept, &search);
                move |path: &Path| {
                    if kept.is_beyond(&path.to_path_buf()) {
                        return;
                    }
                    let mut rows = Rows::new(&search.matcher, search.lines);
                    if reader.run(path, &mut rows).is_some() && !rows.rows.is_empty() {
                        let weight = rows.rows.len();
                        kept.offer(path.to_path_buf(), rows.rows, weight);
                    }
                }
            });
            unread.fetch_add(unreadable, Ordering::Relaxed);
            let (kept, _, _) = kept.finish();
            Answer::of_content(&search, limits, &kept)
        }
    };
    if cancel.is_cancelled() {
        return Output::error(super::INTERRUPTED);
    }
    if deadline.passed() {
        answer.note(&format!(
            "[Stopped after {} s: the results are incomplete. Use a narrower path or glob.]",
            limits.search_time_max.as_secs_f32(),
        ));
    }
    if let Some(note) = search.sieve.note() {
        answer.note(&note);
    }
    let unread = unread.into_inner();
    if unread > 0 {
        answer.note(&format!("[{} could not be searched.]", entries(unread)));
    }
    Output::text(answer.text).with_detail(answer.detail)
}

/// Text for the model and its structured twin.
struct Answer {
    text: String,
    detail: Value,
}

impl Answer {
    fn of_files(search: &Search, limits: &ToolLimits, paths: &[PathBuf], found: u64) -> Self {
        let names: Vec<String> = paths.iter().map(|path| search.name(path)).collect();
        let window = Window::new(&names, search, limits);
        let mut answer = Self {
            text: window.text("No files found."),
            detail: json!({"mode": "files_with_matches", "filenames": window.rows, "numFiles": window.rows.len()}),
        };
        answer.note_more(&window, &format!("{found} files match"));
        answer
    }

    fn of_counts(
        search: &Search,
        limits: &ToolLimits,
        counts: &[(PathBuf, u64)],
        files: u64,
        matches: u64,
    ) -> Self {
        let rows: Vec<String> =
            counts.iter().map(|(path, lines)| format!("{}:{lines}", search.name(path))).collect();
        let window = Window::new(&rows, search, limits);
        let content = window.rows.join("\n");
        let mut answer = Self {
            text: window.text("No matches found."),
            detail: json!({
                "mode": "count",
                "filenames": [],
                "numFiles": files,
                "content": content,
                "numMatches": matches,
            }),
        };
        if matches > 0 {
            answer.note(&format!("[{matches} matching lines in {files} files]"));
        }
        answer.note_more(&window, &format!("{files} files match"));
        answer
    }

    fn of_content(search: &Search, limits: &ToolLimits, files: &[(PathBuf, Vec<rows::Row>)]) -> Self {
        let gaps = search.lines.before > 0 || search.lines.after > 0;
        let mut rows = Vec::new();
        for (path, found) in files {
            if gaps && !rows.is_empty() {
                rows.push("--".to_owned());
            }
            // One file needs no name before each of its lines.
            let name = (!search.one_file).then(|| search.name(path));
            rows.extend(found.iter().map(|row| row.text(name.as_deref(), search.lines.numbers)));
        }
        let window = Window::new(&rows, search, limits);
        let content = window.rows.join("\n");
        let mut answer = Self {
            text: window.text("No matches found."),
            detail: json!({
                "mode": "content",
                "filenames": [],
                "numFiles": files.len(),
                "content": content,
                "numLines": window.rows.len(),
            }),
        };
        answer.note_more(&window, "there are more lines");
        answer
    }

    fn note(&mut self, words: &str) {
        self.text.push('\n');
        self.text.push_str(words);
    }

    fn note_more(&mut self, window: &Window<'_>, what: &str) {
        if window.more {
            let (first, last) = (window.offset + 1, window.offset + window.rows.len());
            self.note(&format!(
                "[Rows {first} to {last}; {what}. Go on with offset {last}, or narrow the search.]"
            ));
        }
    }
}

/// The rows that go to the model.
struct Window<'a> {
    rows: &'a [String],
    offset: usize,
    /// Rows come before these.
    skipped: bool,
    /// Rows come after these.
    more: bool,
}

impl<'a> Window<'a> {
    fn new(rows: &'a [String], search: &Search, limits: &ToolLimits) -> Self {
        let offset = search.offset.min(rows.len());
        let wanted = &rows[offset..];
        let mut chars = 0;
        let fitting = wanted
            .iter()
            .take(search.limit)
            .take_while(|row| {
                chars += row.chars().count() + 1;
                chars <= limits.result_chars_max
            })
            .count();
        Self { rows: &wanted[..fitting], offset, skipped: offset > 0, more: fitting < wanted.len() }
    }

    fn text(&self, none: &str) -> String {
        match (self.rows.is_empty(), self.skipped) {
            (false, _) => self.rows.join("\n"),
            (true, false) => none.to_owned(),
            (true, true) => format!("Nothing after the first {} rows.", self.offset),
        }
    }
}

impl Search {
    /// A path as the model sees it: relative when it is below the working directory, which saves words.
    fn name(&self, path: &Path) -> String {
        path.strip_prefix(&self.cwd).unwrap_or(path).display().to_string()
    }
}

#[cfg(test)]
mod tests;
