//! `@path` in a prompt: the file is shown to the model as Read shows it, a directory as a list, and `@server:uri` as the server
//! has it. Nothing is attached that a rule keeps from being read; a word that leads nowhere is left as it is typed. What is
//! there and cannot be attached is told to the model and the user.

use std::path::{Path, PathBuf};

use serde_json::json;

use super::builtin;
use super::resources::Library;
use super::tool::{ResultBlock, ToolCx};
use crate::limits::{DIRECTORY_NAMES_LISTED_MAX, MENTIONS_MAX};
use crate::permission::{Access, Found, Gate, HookSays, Judged, Permissions};

/// What a mention led to.
pub(crate) struct Attached {
    /// The path as the user wrote it.
    pub mention: String,
    pub shown: Vec<ResultBlock>,
}

/// What the mentions of a text led to.
#[derive(Default)]
pub(crate) struct Mentioned {
    pub attached: Vec<Attached>,
    /// What is there and could not be attached, and why, a sentence each.
    pub problems: Vec<String>,
}

/// What became of one.
enum Led {
    To(Vec<ResultBlock>),
    /// There is nothing of that name.
    Nowhere,
    /// There is, and it cannot be shown.
    Nothing(String),
}

/// Everything a text mentions that is there and may be read, each once.
pub(crate) async fn attachments(
    text: &str,
    permissions: &Permissions,
    library: &Library,
    cx: &ToolCx,
) -> Mentioned {
    let (gate, home) = (permissions.gate(), permissions.home());
    let mut found: Vec<(PathBuf, Option<Attached>)> = Vec::new();
    let mut problems = Vec::new();
    for mention in mentions(text) {
        if cx.cancel.is_cancelled() {
            break;
        }
        if found.len() >= MENTIONS_MAX {
            let path = |name| absolute(name, home.as_deref(), cx);
            let is_new = |path: &PathBuf| path.exists() && !found.iter().any(|(known, _)| known == path);
            if spellings(mention).map(path).any(|path| is_new(&path)) {
                problems.push(format!(
                    "Only {MENTIONS_MAX} mentions of a prompt are looked at: @{mention} and those behind it were not attached."
                ));
                break;
            }
            continue;
        }
        let meant: Vec<(&str, (&str, Option<Lines>))> =
            spellings(mention).flat_map(|name| places(name).map(move |place| (name, place))).collect();
        // What is wrong with one spelling does not matter if another is what was meant.
        let mut wrong = None;
        for (name, (file, lines)) in meant {
            let path = absolute(file, home.as_deref(), cx);
            if lines.is_none() && found.iter().any(|(known, _)| *known == path) {
                wrong = None;
                break;
            }
            let led = match attach(&path, lines, &gate, cx).await {
                Led::Nowhere if lines.is_none() => fetch(name, library, cx).await,
                led => led,
            };
            match led {
                Led::To(shown) => {
                    found.push((path, Some(Attached { mention: name.to_owned(), shown })));
                    wrong = None;
                    break;
                }
                Led::Nothing(why) => wrong = Some((path, format!("@{name} was not attached: {why}"))),
                Led::Nowhere => {}
            }
        }
        if let Some((path, problem)) = wrong {
            problems.push(problem);
            found.push((path, None));
        }
    }
    Mentioned { attached: found.into_iter().filter_map(|(_, attached)| attached).collect(), problems }
}

async fn attach(path: &Path, lines: Option<Lines>, gate: &Gate, cx: &ToolCx) -> Led {
    let Ok(about) = tokio::fs::metadata(path).await else { return Led::Nowhere };
    // The user asked for it, so nobody need be asked; what rules deny or want to be asked about stays out.
    let access = Access::Read(path.to_path_buf());
    let found = Found::of(&access);
    let input = json!({"file_path": path});
    let hook = HookSays::Vouches;
    let call = Judged { tool: "Read", input: &input, access: &access, cwd: &cx.cwd, hook };
    if !gate.judge_at(&call, &found).is_allowed() {
        return Led::Nothing("a rule keeps it from being read unasked.".to_owned());
    }
    if about.is_dir() {
        return match list(path, cx).await {
            Ok(list) => Led::To(vec![ResultBlock::Text(list)]),
            Err(error) => Led::Nothing(format!("it cannot be listed: {error}.")),
        };
    }
    let cx = ToolCx { judged: found.real().map(Path::to_path_buf), ..cx.clone() };
    let input = match lines {
        Some((first, last)) => json!({"file_path": path, "offset": first, "limit": last - first + 1}),
        None => input,
    };
    let output = builtin::reader().run(input, &cx).await;
    if output.is_error { Led::Nothing(output.words()) } else { Led::To(output.content) }
}

/// What a server has under a name such as `server:uri`.
async fn fetch(name: &str, library: &Library, cx: &ToolCx) -> Led {
    let Some((server, uri)) = name.split_once(':').filter(|(_, uri)| !uri.is_empty()) else {
        return Led::Nowhere;
    };
    let mut shown = match cx.cancel.run_until_cancelled(library.read(server, uri)).await.flatten() {
        Some(Ok(shown)) => shown,
        Some(Err(why)) => return Led::Nothing(why),
        None => return Led::Nowhere,
    };
    for block in &mut shown {
        if let ResultBlock::Text(text) = block
            && let Some((end, _)) = text.char_indices().nth(cx.limits.result_chars_max)
        {
            text.truncate(end);
            text.push_str("\n(cut here: ReadMcpResourceTool reads all of it)");
        }
    }
    Led::To(shown)
}

async fn list(path: &Path, cx: &ToolCx) -> std::io::Result<String> {
    let mut entries = tokio::fs::read_dir(path).await?;
    let mut names = Vec::new();
    let mut more = false;
    while let Ok(Some(entry)) = entries.next_entry().await {
        let (given, is_dir) = (entry.path(), entry.file_type().await.is_ok_and(|kind| kind.is_dir()));
        let real = tokio::fs::canonicalize(&given).await.unwrap_or_else(|_| given.clone());
        if !cx.readable.allows(&given, &real) {
            continue;
        }
        if names.len() == DIRECTORY_NAMES_LISTED_MAX {
            more = true;
            break;
        }
        let slash = if is_dir { "/" } else { "" };
        names.push(format!("{}{slash}", entry.file_name().to_string_lossy()));
    }
    names.sort();
    if names.is_empty() {
        return Ok("(an empty directory)".to_owned());
    }
    let end = if more { "\n(and more: Glob lists the rest)" } else { "" };
    Ok(names.join("\n") + end)
}

/// What stands behind an `@` at the beginning of a word: up to the next blank, or all between quotes.
fn mentions(text: &str) -> impl Iterator<Item = &str> {
    text.match_indices('@').filter_map(|(at, _)| {
        let before = text[..at].chars().next_back();
        if before.is_some_and(|c| !c.is_whitespace() && !matches!(c, '(' | '[' | '"' | '\'' | '`')) {
            return None;
        }
        let rest = &text[at + 1..];
        let mention = match rest.strip_prefix('"') {
            Some(quoted) => quoted.split_once('"').map(|(inside, _)| inside),
            None => rest.split(char::is_whitespace).next(),
        };
        mention.filter(|mention| !mention.is_empty())
    })
}

/// The lines of a file that are meant, counted from 1, both included.
type Lines = (u64, u64);

/// What a name may mean: a file of that name, or some lines of one: `name#L3`, `name#L3-9`, `name#L3-L9`.
fn places(name: &str) -> impl Iterator<Item = (&str, Option<Lines>)> {
    let lines = name.rsplit_once("#L").and_then(|(file, lines)| {
        let (first, last) = lines.split_once('-').unwrap_or((lines, lines));
        let (first, last) = (first.parse().ok()?, last.trim_start_matches('L').parse().ok()?);
        (0 < first && first <= last && !file.is_empty()).then_some((file, Some((first, last))))
    });
    std::iter::once((name, None)).chain(lines)
}

/// The mention, then without the punctuation behind it that may be the sentence's.
fn spellings(mention: &str) -> impl Iterator<Item = &str> {
    std::iter::successors(Some(mention), |name| {
        let shorter = name.strip_suffix(['.', ',', ';', ':', '!', '?', ')', ']', '"', '\'', '`'])?;
        (!shorter.is_empty()).then_some(shorter)
    })
}

fn absolute(name: &str, home: Option<&Path>, cx: &ToolCx) -> PathBuf {
    match (name.strip_prefix("~/"), home) {
        (Some(rest), Some(home)) => home.join(rest),
        _ => cx.absolute(Path::new(name)),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn mentions_begin_words_and_end_at_blanks_or_quotes() {
        let check = |text: &str, expected: &[&str]| {
            assert_eq!(mentions(text).collect::<Vec<_>>(), expected, "{text:?}");
        };
        check("look at @src/a.rs and @b", &["src/a.rs", "b"]);
        check("@a", &["a"]);
        check("write to me@example.org", &[]);
        check("(see @a.rs), `@b.rs`", &["a.rs),", "b.rs`"]);
        check("@\"with blanks.txt\" and @\"never closed", &["with blanks.txt"]);
        check("@ nothing @", &[]);
        check("zwei\n@größe.txt", &["größe.txt"]);
    }

    #[test]
    fn a_mention_may_mean_some_lines() {
        let check = |name: &str, expected: &[(&str, Option<Lines>)]| {
            assert_eq!(places(name).collect::<Vec<_>>(), expected, "{name}");
        };
        check("a.rs", &[("a.rs", None)]);
        check("a.rs#L3", &[("a.rs#L3", None), ("a.rs", Some((3, 3)))]);
        check("a.rs#L3-9", &[("a.rs#L3-9", None), ("a.rs", Some((3, 9)))]);
        check("a.rs#L3-L9", &[("a.rs#L3-L9", None), ("a.rs", Some((3, 9)))]);
        check("a.rs#L0", &[("a.rs#L0", None)]);
        check("a.rs#L9-3", &[("a.rs#L9-3", None)]);
        check("#L3", &[("#L3", None)]);
        check("a.rs#Lx", &[("a.rs#Lx", None)]);
    }

    #[test]
    fn punctuation_behind_a_mention_may_be_the_sentences() {
        assert_eq!(spellings("a.rs),").collect::<Vec<_>>(), ["a.rs),", "a.rs)", "a.rs"]);
        assert_eq!(spellings("...").collect::<Vec<_>>(), ["...", "..", "."]);
    }
}
