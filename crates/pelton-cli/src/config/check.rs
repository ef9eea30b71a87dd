//! What does not do what it seems to say.

use std::fmt::Write;
use std::fs::{self, File};
use std::io::Read;
use std::os::unix::fs::PermissionsExt;
use std::path::Path;
use std::process::ExitCode;

use pelton::settings::{Around, Finding, FindingKind, Looked, Weight, Written, lint};
use pelton::tools::builtin;
use serde_json::{Value, json};

use super::{at, say};
use crate::args::{ConfigArgs, RunArgs};
use crate::fail::Fail;
use crate::resolve::{self, Env};

/// The most bytes of a script that is looked into.
const SCRIPT_BYTES_MAX: u64 = 256 * 1024;

pub(super) fn check(args: &ConfigArgs) -> Result<ExitCode, Fail> {
    let findings = findings(&args.run, &Env::of_process())?;
    let is_wrong = findings.iter().any(|found| found.weight > Weight::Note);
    say(&if args.json { as_json(&findings) } else { told(&findings) })?;
    Ok(if is_wrong { ExitCode::FAILURE } else { ExitCode::SUCCESS })
}

/// All that is wrong with what is configured here.
pub(crate) fn findings(args: &RunArgs, env: &Env) -> Result<Vec<Finding>, Fail> {
    let configured = resolve::configured(args, env)?;
    let mut around = Around::nothing(&configured.cwd, &look);
    around.tools = builtin::all().iter().map(|tool| tool.spec().name.to_owned()).collect();
    around.servers = configured.servers;
    around.agents = configured.agents;
    around.home = env.path("HOME");
    around.path = env.path("PATH").map(|path| std::env::split_paths(&path).collect()).unwrap_or_default();
    let mut findings = Vec::new();
    let mut written = Vec::new();
    for layer in &configured.layers {
        match &layer.text {
            Ok(text) => written.push(Written { origin: layer.origin(), text }),
            Err(why) => {
                let why = format!("{why}: nothing of this file counts");
                findings.push(Finding::new(FindingKind::Broken, Weight::Error, &layer.name, None, why));
            }
        }
    }
    findings.extend(lint(&written, &around));
    findings.extend(configured.unusable);
    Ok(findings)
}

/// In lines.
pub(crate) fn told(findings: &[Finding]) -> String {
    let mut text = String::new();
    for found in findings {
        let (weight, kind) = (found.weight.name(), found.kind.name());
        let _ = writeln!(text, "{}: {weight}: {} [{kind}]", at(&found.file, found.line), found.text);
    }
    let count = |weight| findings.iter().filter(|found| found.weight == weight).count();
    let counted = [(Weight::Error, "error"), (Weight::Warning, "warning"), (Weight::Note, "note")]
        .into_iter()
        .filter(|(weight, _)| count(*weight) > 0)
        .map(|(weight, name)| {
            format!("{} {name}{}", count(weight), if count(weight) == 1 { "" } else { "s" })
        });
    let counted: Vec<String> = counted.collect();
    match counted.is_empty() {
        true => text.push_str("Nothing is wrong.\n"),
        false => text.push_str(&format!("{}\n", counted.join(", "))),
    }
    text
}

fn as_json(findings: &[Finding]) -> String {
    format!("{}\n", json!({ "findings": listed(findings) }))
}

/// For programs.
pub(crate) fn listed(findings: &[Finding]) -> Vec<Value> {
    findings
        .iter()
        .map(|found| {
            json!({"kind": found.kind.name(), "severity": found.weight.name(), "file": found.file, "line": found.line,
                "message": found.text})
        })
        .collect()
}

/// What a file is like, as far as a hook is concerned. Nothing is run.
fn look(path: &Path) -> Option<Looked> {
    let about = fs::metadata(path).ok().filter(fs::Metadata::is_file)?;
    let mut bytes = Vec::new();
    let read = File::open(path).and_then(|file| file.take(SCRIPT_BYTES_MAX + 1).read_to_end(&mut bytes));
    let text = match read.is_ok() && bytes.len() as u64 <= SCRIPT_BYTES_MAX {
        true => String::from_utf8(bytes).ok(),
        false => None,
    };
    Some(Looked { runs: about.permissions().mode() & 0o111 != 0, text })
}
