//! Glob: files by name, newest first.

use std::ffi::OsStr;
use std::os::unix::ffi::OsStrExt;
use std::path::{Component, Path, PathBuf};
use std::sync::Arc;

use futures::future::BoxFuture;
use globset::{GlobBuilder, GlobSet};
use ignore::overrides::Override;
use ignore::types::Types;
use pelton_model::World;
use serde::Deserialize;
use serde_json::{Value, json};
use tokio_util::sync::CancellationToken;

use super::looking;
use crate::limits::ToolLimits;
use crate::tools::disk::Target;
use crate::tools::lenient;
use crate::tools::search::{
    Deadline, Kept, Newest, NewestFirst, Opener, PassesOver, Sieve, Tree, entries, is_still_there, real_root,
    visit,
};
use crate::tools::tool::{Access, InvalidInput, Output, Readable, Safety, Spec, Tool, ToolCx, parse_input};

/// The tool.
pub(super) fn tool() -> Arc<dyn Tool> {
    Arc::new(GlobTool)
}

struct GlobTool;

const SPEC: Spec<'static> = Spec {
    name: "Glob",
    description: include_str!("glob.md"),
    input_schema: r#"{"type":"object","properties":{"pattern":{"type":"string"},"path":{"type":"string"}},"required":["pattern"]}"#,
};

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Input {
    pattern: String,
    #[serde(default, deserialize_with = "lenient::optional_path")]
    path: Option<PathBuf>,
}

/// A pattern and the directory it starts from.
struct Search {
    root: PathBuf,
    /// Of one pattern: a set looks at endings and whole names before it tries an expression.
    matcher: GlobSet,
}

impl Tool for GlobTool {
    fn spec(&self) -> Spec<'_> {
        SPEC
    }

    fn safety(&self, _input: &Value) -> Safety {
        Safety::Shared
    }

    fn access(&self, input: &Value, cx: &ToolCx) -> Result<Access, InvalidInput> {
        parse(input, cx).map(|search| Access::Read(search.root))
    }

    fn run<'a>(&'a self, input: Value, cx: &'a ToolCx) -> BoxFuture<'a, Output> {
        Box::pin(async move {
            let search = match parse(&input, cx) {
                Ok(search) => search,
                Err(InvalidInput(why)) => return Output::unusable(why),
            };
            let (limits, world, readable) = (cx.limits.clone(), cx.world.clone(), cx.readable.clone());
            let judged = cx.judged.clone();
            looking(cx, move |cancel| glob(&search, judged, readable, &limits, world, cancel)).await
        })
    }
}

fn parse(input: &Value, cx: &ToolCx) -> Result<Search, InvalidInput> {
    let Input { pattern, path } = parse_input(input)?;
    let wrong = |why: String| InvalidInput(format!("`pattern`: {why}"));
    let mut root =
        path.filter(|path| !path.as_os_str().is_empty()).map_or(cx.cwd.clone(), |path| cx.absolute(&path));
    let mut pattern = pattern.as_str();
    if Path::new(pattern).is_absolute() {
        // The part without wildcards says where to start.
        let fixed = pattern.find(['*', '?', '[', '{']).unwrap_or(pattern.len());
        let split = pattern[..fixed].rfind('/').map_or(0, |slash| slash + 1);
        root = PathBuf::from(&pattern[..split]);
        pattern = &pattern[split..];
    }
    pattern = pattern.strip_prefix("./").unwrap_or(pattern);
    if pattern.is_empty() {
        return Err(wrong("is empty; `**` matches every file".to_owned()));
    }
    if Path::new(pattern).components().any(|part| part == Component::ParentDir) {
        return Err(wrong("`..` is not allowed in it; say where to start with `path`".to_owned()));
    }
    // As in ignore files: a bare name is meant at any depth.
    let anywhere = if pattern.contains('/') { pattern.to_owned() } else { format!("**/{pattern}") };
    let glob = GlobBuilder::new(&anywhere)
        .literal_separator(true)
        .backslash_escape(true)
        .empty_alternates(true)
        .build()
        .map_err(|error| wrong(error.kind().to_string()))?;
    let matcher = GlobSet::builder().add(glob).build().map_err(|error| wrong(error.kind().to_string()))?;
    Ok(Search { root, matcher })
}

fn glob(
    search: &Search,
    judged: Option<PathBuf>,
    readable: Readable,
    limits: &ToolLimits,
    world: Arc<dyn World>,
    cancel: &CancellationToken,
) -> Output {
    let Search { root: asked, matcher } = search;
    let shown = asked.display();
    let root = &match real_root(&Target { path: asked.clone(), judged }) {
        Ok((root, metadata)) if metadata.is_dir() => root,
        Ok(_) => {
            return Output::error(format!("{shown} is not a directory. To search in one file use Grep."));
        }
        Err(error) => return Output::error(format!("{shown} cannot be searched: {error}.")),
    };
    let deadline = Deadline::new(world, cancel.clone(), limits.search_time_max);
    let kept: Kept<NewestFirst, ()> = Kept::new(limits.glob_paths_max);
    let sieve = Sieve::new(readable, asked.clone(), root.clone());
    let passes_over = PassesOver { ignored: limits.glob_skips_ignored, hidden: limits.glob_skips_hidden };
    let tree = Tree { root, globs: Override::empty(), types: Types::empty(), passes_over };
    let unreadable = visit(tree, &deadline, || {
        let mut opener = Opener::default();
        let (mut newest, sieve) = (Newest::of(&kept), &sieve);
        move |path: &Path| {
            if below(root, path).is_some_and(|below| matcher.is_match(below)) && sieve.passes(path) {
                newest.meet(opener.changed_at(path), path);
            }
        }
    });
    if cancel.is_cancelled() {
        return Output::error(super::INTERRUPTED);
    }
    let (mut kept, found, dropped) = kept.finish();
    // A directory may have become a link while it was walked through.
    kept.retain(|((_, path), ())| is_still_there(path));
    let filenames: Vec<String> = kept.iter().map(|((_, path), ())| path.display().to_string()).collect();
    let truncated = dropped || deadline.passed();
    let mut lines = filenames.clone();
    if found == 0 {
        lines.push("No files found.".to_owned());
    }
    if dropped {
        lines.push(format!(
            "[The newest {} of {found} files. Use a narrower pattern or path for the others.]",
            kept.len()
        ));
    }
    if deadline.passed() {
        lines.push(format!(
            "[Stopped after {} s: the list is incomplete. Use a narrower path.]",
            limits.search_time_max.as_secs_f32(),
        ));
    }
    lines.extend(sieve.note());
    if unreadable > 0 {
        lines.push(format!("[{} could not be read.]", entries(unreadable)));
    }
    let detail = json!({
        "filenames": filenames,
        "numFiles": filenames.len(),
        "totalMatches": found,
        "truncated": truncated,
        "durationMs": u64::try_from(deadline.elapsed().as_millis()).unwrap_or(u64::MAX),
    });
    Output::text(lines.join("\n")).with_detail(detail)
}

/// The path from the root on. What a walk meets begins with its root, letter by letter.
fn below<'p>(root: &Path, path: &'p Path) -> Option<&'p Path> {
    let rest = path.as_os_str().as_bytes().strip_prefix(root.as_os_str().as_bytes())?;
    let rest = rest.strip_prefix(b"/").unwrap_or(rest);
    Some(Path::new(OsStr::from_bytes(rest)))
}

#[cfg(test)]
mod tests;
