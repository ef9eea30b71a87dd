//! What was called before, judged by other rules and compared with those that hold now.

use std::collections::BTreeMap;
use std::fs::{self, File};
use std::io::{BufRead, BufReader, Write};
use std::path::{Path, PathBuf};
use std::process::ExitCode;

use pelton::permission::{Decision, HookSays, Judged, Permissions, Verdict};
use pelton::tools::access_of;
use pelton::transcript::{find_session, newest_session, project_key};
use serde_json::{Value, json};

use super::case::rules_of;
use super::show;
use crate::args::ReplayArgs;
use crate::fail::{Fail, tell};
use crate::resolve::{self, Env, config_dir};

/// The most bytes of a file of rules.
const RULES_BYTES_MAX: u64 = 2 * 1024 * 1024;
/// Longer lines of a transcript are passed over: they hold no calls.
const LINE_BYTES_MAX: usize = 64 * 1024 * 1024;

/// How many calls became what, now and under the rules that are proposed.
#[derive(Default)]
struct Count {
    calls: usize,
    now: BTreeMap<&'static str, usize>,
    then: BTreeMap<&'static str, usize>,
    different: usize,
    passed_over: usize,
}

pub(super) fn replay(args: &ReplayArgs) -> Result<ExitCode, Fail> {
    let env = Env::of_process();
    let (now, cwd) = resolve::rights(&args.run, &env)?;
    let config = config_dir(&env);
    let text = rules_text(&args.rules)?;
    let (mut proposed, warnings) = rules_of(&text, config.as_deref())
        .map_err(|error| Fail::new(format!("--rules {}: {error}", args.rules)))?;
    for warning in warnings {
        tell(&format!("warning: {warning}"));
    }
    if args.add {
        proposed.extend(now.rules());
    }
    let roots = now.roots();
    let home = env.path("HOME");
    let directories = roots.iter().skip(1).cloned().collect();
    let then = Permissions::new(proposed, now.mode(), cwd.clone(), directories, home);
    let mut count = Count::default();
    let mut out = std::io::stdout().lock();
    for file in sessions(args, config.as_deref(), &cwd)? {
        let open = File::open(&file).map_err(|error| Fail::new(format!("{}: {error}", file.display())))?;
        for line in BufReader::new(open).split(b'\n') {
            let line = line.map_err(|error| Fail::new(format!("{}: {error}", file.display())))?;
            for call in calls(&line, &mut count) {
                let here = call.cwd.as_deref().unwrap_or(&cwd);
                let (Some(before), Some(after)) = (judge(&now, &call, here), judge(&then, &call, here))
                else {
                    count.passed_over += 1;
                    continue;
                };
                count.calls += 1;
                *count.now.entry(before.verdict.name()).or_default() += 1;
                *count.then.entry(after.verdict.name()).or_default() += 1;
                let differs = before.verdict != after.verdict;
                count.different += usize::from(differs);
                if differs || args.every {
                    // That nobody reads any more is no reason to complain.
                    let _ = writeln!(out, "{}", told(args, &call, &before, &after));
                }
            }
        }
    }
    let kinds = |counts: &BTreeMap<&str, usize>| {
        let kinds = [Verdict::Allow, Verdict::Ask, Verdict::Deny];
        kinds.map(|kind| format!("{} {}", counts.get(kind.name()).unwrap_or(&0), kind.name())).join(", ")
    };
    let summary = format!(
        "{} calls. Now: {}. With these rules: {}. {} become something else, {} could not be judged.",
        count.calls,
        kinds(&count.now),
        kinds(&count.then),
        count.different,
        count.passed_over
    );
    drop(out);
    if args.json {
        tell(&summary);
    } else {
        let _ = writeln!(std::io::stdout(), "{summary}");
    }
    Ok(ExitCode::SUCCESS)
}

/// A call that was made.
struct Call {
    tool: String,
    input: Value,
    cwd: Option<PathBuf>,
}

/// The calls of one line of a transcript. What cannot be read is passed over.
fn calls(line: &[u8], count: &mut Count) -> Vec<Call> {
    if line.len() > LINE_BYTES_MAX || !contains(line, b"tool_use") {
        return Vec::new();
    }
    let Ok(said) = serde_json::from_slice::<Value>(line) else {
        count.passed_over += 1;
        return Vec::new();
    };
    if said["type"] != "assistant" {
        return Vec::new();
    }
    let cwd = said["cwd"].as_str().map(PathBuf::from);
    let blocks = said["message"]["content"].as_array().map(Vec::as_slice).unwrap_or_default();
    let calls = blocks.iter().filter(|block| block["type"] == "tool_use");
    calls
        .filter_map(|block| {
            let tool = block["name"].as_str()?.to_owned();
            Some(Call { tool, input: block["input"].clone(), cwd: cwd.clone() })
        })
        .collect()
}

fn contains(line: &[u8], words: &[u8]) -> bool {
    line.windows(words.len()).any(|window| window == words)
}

fn judge(permissions: &Permissions, call: &Call, cwd: &Path) -> Option<Decision> {
    let access = access_of(&call.tool, &call.input, cwd).ok()?;
    let judged =
        Judged { tool: &call.tool, input: &call.input, access: &access, cwd, hook: HookSays::Nothing };
    Some(permissions.judge(&judged))
}

fn told(args: &ReplayArgs, call: &Call, before: &Decision, after: &Decision) -> String {
    if args.json {
        let now = Value::Object(show::json(before));
        let then = Value::Object(show::json(after));
        return json!({"tool": call.tool, "input": call.input, "now": now, "then": then}).to_string();
    }
    let what = call.input["command"].as_str().or_else(|| call.input["file_path"].as_str());
    let what = what.map_or_else(|| call.input.to_string(), str::to_owned).replace('\n', " ");
    let line = format!(
        "{} -> {}\t{} {what}\t{}",
        before.verdict.name(),
        after.verdict.name(),
        call.tool,
        after.reason
    );
    pelton_serve::plain(&line).to_string()
}

/// The files of the sessions that are meant.
fn sessions(args: &ReplayArgs, config: Option<&Path>, cwd: &Path) -> Result<Vec<PathBuf>, Fail> {
    let Some(config) = config else {
        return Err(Fail::new("nobody knows where sessions are kept: set HOME or CLAUDE_CONFIG_DIR"));
    };
    if args.all {
        let folder = config.join("projects").join(project_key(cwd));
        let entries =
            fs::read_dir(&folder).map_err(|_| Fail::new("there are no sessions of this directory"))?;
        let mut files: Vec<PathBuf> = entries.flatten().map(|entry| entry.path()).collect();
        files.retain(|file| file.extension().is_some_and(|end| end == "jsonl"));
        files.sort();
        return Ok(files);
    }
    let found = match &args.run.prompt {
        None => newest_session(config, cwd),
        Some(said) if Path::new(said).is_file() => Some(PathBuf::from(said)),
        Some(said) => {
            let id = said
                .parse()
                .map_err(|_| Fail::new(format!("'{said}' is neither a session's id nor a file")))?;
            find_session(config, cwd, id)
        }
    };
    let missing =
        || Fail::new("there is no such session of this directory: name one, or a file, or use --all");
    found.map(|file| vec![file]).ok_or_else(missing)
}

/// Rules from a file, or as they are.
fn rules_text(said: &str) -> Result<String, Fail> {
    if said.trim_start().starts_with(['{', '[']) {
        return Ok(said.to_owned());
    }
    let unreadable = |error: std::io::Error| Fail::new(format!("--rules {said}: {error}"));
    let about = fs::metadata(said).map_err(unreadable)?;
    if about.len() > RULES_BYTES_MAX {
        return Err(Fail::new(format!("--rules {said}: is larger than 2 MiB")));
    }
    fs::read_to_string(said).map_err(unreadable)
}
