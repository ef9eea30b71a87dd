//! A real task without a key: the loop, the tools and the recording are the real ones, only the model is played
//! from a script. Nothing outside this file knows that it is a demo.

mod script; // what the model says

use std::path::{Path, PathBuf};
use std::process::{ExitCode, Stdio};
use std::sync::Arc;
use std::time::Duration;

use pelton::permission::{Mode, RuleSet};
use pelton::{Options, Outcome, Prompt};
use pelton_model::{Auth, Endpoint, HttpOptions, HttpTransport, Secret};
use pelton_testkit::{ServeOptions, serve};

use crate::args::{DemoArgs, OutputFormat, RunArgs};
use crate::fail::{Fail, tell};
use crate::headless::{self, Asker, Started};
use crate::resolve::{self, Env};
use crate::signals::Signals;

/// The sample repository: path and content of each file.
const SAMPLE: &[(&str, &str)] = &[
    ("README.md", include_str!("../demo/sample/README.md")),
    ("src/almanac.sh", include_str!("../demo/sample/src/almanac.sh")),
    ("src/days.sh", include_str!("../demo/sample/src/days.sh")),
    ("src/leap.sh", include_str!("../demo/sample/src/leap.sh")),
    ("tests/run.sh", include_str!("../demo/sample/tests/run.sh")),
];

const TASK: &str =
    "The tests of this repository fail (sh tests/run.sh). Find the bug, fix it, and run the tests.";

/// The only command the demo needs; everything else would be asked for, and nobody is there to ask.
const TEST_COMMAND: &str = "sh tests/run.sh";

/// What is set for real models says nothing to a scripted one, and may keep it from its script: another model's name,
/// fewer turns or retries.
const SETTINGS: [&str; 3] = ["ANTHROPIC_", "CLAUDE_CODE_", "MAX_THINKING_TOKENS"];

/// How many folders of a sample may lie in each other.
const FOLDERS_DEEP_MAX: usize = 16;

/// How long the sample's tests may take when the demo checks the work.
const CHECK_WAIT: Duration = Duration::from_secs(30);

/// `pelton demo`.
pub(crate) async fn run(args: &DemoArgs, said: &RunArgs) -> Result<ExitCode, Fail> {
    let env = Env::of_process();
    let folder = Folder::unpack(args.sample.as_deref())?;
    let done = Box::pin(work(args, said, &env, folder.path())).await;
    folder.close(args.keep)?;
    done
}

async fn work(args: &DemoArgs, said: &RunArgs, env: &Env, folder: &Path) -> Result<ExitCode, Fail> {
    if passes(folder).await? {
        return Err(Fail::new("the sample's tests pass already: there is nothing to fix"));
    }
    let mut print = headless::shown(args.output_format, false, false, env);
    let people_watch = args.output_format == OutputFormat::Text;
    // What the tools do is the point of a demo, also when standard error is a file.
    print.shows_progress = people_watch;

    // The server must outlive the run.
    let (mut options, payer, _model) = match &args.model {
        Some(model) => {
            let (mut options, payer, _) = resolve::options(said, env)?;
            options.model.clone_from(model);
            (options, Some(payer), None)
        }
        None => {
            let script = script::of(args.fault);
            let model = serve(script, ServeOptions::default())
                .await
                .map_err(|error| Fail::new(format!("cannot start the scripted model: {error}")))?;
            let endpoint = Endpoint::new(model.base_url(), Auth::ApiKey(Secret::new("demo")));
            let mut options = resolve::options_for(said, &env.without(&SETTINGS), endpoint)?;
            // The scripted model is next door, whatever proxy leads out of the house.
            options.transport = Arc::new(HttpTransport::new(HttpOptions::default()));
            (options, None, Some(model))
        }
    };
    at_home(&mut options, folder)?;
    if people_watch {
        tell(&format!("Task: {TASK}"));
        tell(&format!("In:   {}", folder.display()));
    }
    let prompt = Prompt::text(TASK).map_err(|error| Fail::new(error.to_string()))?;
    let started = Started::new(options, payer)?;
    let ran = Box::pin(headless::submit(started, prompt, &print, Signals::listen()?)).await?;
    let code = ran.exit(Asker::Demo)?;
    if ran.ending.is_some() {
        return Ok(code);
    }
    let fixed = passes(folder).await?;
    if let (true, Some(outcome)) = (people_watch, &ran.outcome) {
        summary(outcome, fixed, ran.transcript.as_deref());
    }
    if fixed { Ok(code) } else { Err(Fail::new("the task was not done: the sample's tests still fail")) }
}

/// The task's own directory and permissions.
fn at_home(options: &mut Options, folder: &Path) -> Result<(), Fail> {
    options.cwd = folder.to_path_buf();
    options.additional_dirs.clear();
    options.mode = Mode::AcceptEdits;
    let rule = format!("Bash({TEST_COMMAND})");
    let rule = rule.parse().map_err(|error| Fail::new(format!("{error}")))?;
    options.rules = RuleSet { allow: vec![rule], ..RuleSet::default() };
    Ok(())
}

/// Whether the sample's tests pass, judged by running them and not by what anybody said.
async fn passes(folder: &Path) -> Result<bool, Fail> {
    let mut words = TEST_COMMAND.split(' ');
    let mut command = tokio::process::Command::new(words.next().unwrap_or("sh"));
    command.args(words).current_dir(folder).kill_on_drop(true);
    command.stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::null());
    let status = tokio::time::timeout(CHECK_WAIT, command.status()).await;
    match status {
        Ok(Ok(status)) => Ok(status.success()),
        Ok(Err(error)) => {
            Err(Fail::new(format!("cannot run the sample's tests: {error} (the demo needs 'sh')")))
        }
        Err(_) => Err(Fail::new("the sample's tests do not end")),
    }
}

fn summary(outcome: &Outcome, fixed: bool, transcript: Option<&Path>) {
    let usage = &outcome.usage;
    tell("");
    tell(&format!(
        "{} · {} tokens in ({} from cache) · {} out · ${:.4}",
        if fixed { "Done: the tests pass" } else { "Not done: the tests fail" },
        usage.prompt_tokens(),
        usage.cache_read_input_tokens,
        usage.output_tokens,
        outcome.cost_usd,
    ));
    if let Some(path) = transcript {
        tell(&format!("Transcript: {}", path.display()));
    }
}

/// The unpacked sample. Removed when it goes out of scope, unless it is kept.
struct Folder {
    dir: tempfile::TempDir,
    path: PathBuf,
}

impl Folder {
    /// The built-in sample, or a copy of another one.
    fn unpack(sample: Option<&Path>) -> Result<Self, Fail> {
        let fail = |error: std::io::Error| Fail::new(format!("cannot unpack the sample repository: {error}"));
        let dir = tempfile::Builder::new().prefix("pelton-demo-").tempdir().map_err(fail)?;
        // Some systems keep temporary files behind a link.
        let path = dir.path().canonicalize().map_err(fail)?;
        match sample {
            Some(sample) => copy(sample, &path, FOLDERS_DEEP_MAX).map_err(|error| {
                Fail::new(format!("cannot copy the sample {}: {error}", sample.display()))
            })?,
            None => {
                for (name, content) in SAMPLE {
                    let file = path.join(name);
                    if let Some(parent) = file.parent() {
                        std::fs::create_dir_all(parent).map_err(fail)?;
                    }
                    std::fs::write(file, content).map_err(fail)?;
                }
            }
        }
        Ok(Self { dir, path })
    }

    fn path(&self) -> &Path {
        &self.path
    }

    fn close(self, keep: bool) -> Result<(), Fail> {
        if keep {
            tell(&format!("Kept: {}", self.dir.keep().display()));
            return Ok(());
        }
        self.dir.close().map_err(|error| Fail::new(format!("cannot remove the sample's folder: {error}")))
    }
}

/// Copies files and folders; links and other things are left out.
fn copy(from: &Path, to: &Path, deep_max: usize) -> std::io::Result<()> {
    for entry in std::fs::read_dir(from)? {
        let entry = entry?;
        let (kind, to) = (entry.file_type()?, to.join(entry.file_name()));
        if kind.is_dir() {
            let deep_max = deep_max
                .checked_sub(1)
                .ok_or_else(|| std::io::Error::other("too many folders in each other"))?;
            std::fs::create_dir(&to)?;
            copy(&entry.path(), &to, deep_max)?;
        } else if kind.is_file() {
            std::fs::copy(entry.path(), to)?;
        }
    }
    Ok(())
}
