//! What the tools and the decisions about them cost, against the programs people would use by hand.
//!
//!     scripts/bench hands
//!     cargo bench -p pelton --bench hands -- decisions undoing      only these
//!
//! Everything is measured in one run, side by side, so that the ratios hold on a busy machine, too. `rg` is found on the
//! path or in the place that `RG` names; without it the searches are measured alone, and do not pass. The last lines say of each
//! figure that has a limit whether it is within it.

use std::fs::File;
use std::hint::black_box;
use std::io::{BufWriter, Write};
use std::path::{Path, PathBuf};
use std::process::{Command, ExitCode, Stdio};
use std::sync::Arc;
use std::time::{Duration, Instant};

use futures::StreamExt;
use pelton::file_history::FileHistoryLimits;
use pelton::permission::{HookSays, Judged, Mode, Permissions, RuleSet};
use pelton::tools::{Tool, ToolCx, access_of, builtin};
use pelton::{Engine, Options, Prompt, Sessions, transcript};
use pelton_model::{Auth, Endpoint, Secret};
use pelton_testkit::{Script, text};
use serde_json::{Value, json};

/// Of each search, the median counts.
const SEARCHES: usize = 15;
/// Each decision is made in batches, and the median batch counts.
const DECISION_BATCHES: usize = 40;
const DECISIONS: u32 = 50;
/// The tree that is searched.
const DIRECTORIES: usize = 1_000;
const FILES_EACH: usize = 50;
/// The tree that commands work in while what they change is kept.
const KEPT_FILES: usize = 50_000;
const KEPT_COMMANDS: u32 = 12;
const BIG_FILE_BYTES: usize = 100 * 1024 * 1024;
const PRINTED_BYTES: usize = 200 * 1024 * 1024;

/// What the specification allows.
const SEARCH_RATIO_MAX: f64 = 1.3;
const WINDOW_MB_MAX: f64 = 16.0;
const PRINTED_MB_MAX: f64 = 16.0;
const KEPT_MS_MAX: f64 = 150.0;
/// Nothing, as far as a clock can tell on a machine that does something else, too.
const LOOKED_MS_MAX: f64 = 5.0;
const DECISION_US_MAX: f64 = 50.0;

fn main() -> ExitCode {
    let dir = tempfile::tempdir().expect("a directory");
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().expect("a runtime");
    let mut verdict = Verdict::default();
    let named: Vec<String> = std::env::args().skip(1).filter(|arg| !arg.starts_with('-')).collect();
    let wanted = |part: &str| named.is_empty() || named.iter().any(|name| name == part);
    if wanted("decisions") {
        decisions(dir.path(), &mut verdict);
    }
    runtime.block_on(async {
        if wanted("printing") {
            printing(dir.path(), &mut verdict).await;
        }
        if wanted("reading") {
            reading(dir.path(), &mut verdict).await;
        }
        if wanted("searches") {
            let tree = dir.path().join("tree");
            plant(&tree);
            searches("a tree of 50,000 files", &tree, &planted_cases(), &mut verdict).await;
            let workspace =
                Path::new(env!("CARGO_MANIFEST_DIR")).join("../..").canonicalize().expect("a workspace");
            searches("this workspace", &workspace, &workspace_cases(), &mut verdict).await;
        }
        if wanted("undoing") {
            undoing(dir.path(), &mut verdict).await;
        }
    });
    verdict.told()
}

/// What of the figures that have a limit is within it.
#[derive(Default)]
struct Verdict {
    lines: Vec<String>,
    failed: bool,
}

impl Verdict {
    fn at_most(&mut self, what: &str, figure: f64, max: f64, unit: &str) {
        let holds = figure <= max;
        let mark = if holds { "pass  " } else { "BEYOND" };
        self.lines.push(format!("{mark}  {what}: {figure:.2} {unit} (at most {max})"));
        self.failed |= !holds;
    }

    /// A figure that could not be had is none that holds.
    fn unseen(&mut self, what: &str) {
        self.lines.push(format!("UNSEEN  {what}"));
        self.failed = true;
    }

    fn told(self) -> ExitCode {
        println!("what is within its limit:");
        self.lines.iter().for_each(|line| println!("{line}"));
        if self.failed { ExitCode::FAILURE } else { ExitCode::SUCCESS }
    }
}

/// From the words of a call to the decision, with as many rules as a busy project has.
fn decisions(cwd: &Path, verdict: &mut Verdict) {
    let mut rules = RuleSet::default();
    let tools =
        ["cargo build", "cargo test", "npm run", "make", "go test", "pytest", "git push", "docker ps"];
    for (index, tool) in tools.iter().cycle().take(40).enumerate() {
        let rule = format!("Bash({tool} a{index}:*)").parse().expect("a rule");
        match index % 4 {
            0 => rules.deny.push(rule),
            1 => rules.ask.push(rule),
            _ => rules.allow.push(rule),
        }
    }
    rules.deny.push("Read(./secrets/**)".parse().expect("a rule"));
    let permissions = Permissions::new(rules, Mode::Default, cwd.to_path_buf(), Vec::new(), None);
    println!("a decision, 41 rules (half of the batches took less; least in brackets):");
    let commands = [
        "git status",
        "ls -la src",
        "git log --oneline -20 | head -5",
        "cat Cargo.toml | grep -n version",
        "cd src && cargo test --workspace 2>&1 | tail -n 20",
        "find . -name '*.rs' -newer Cargo.toml | xargs wc -l | sort -n",
        "rm -rf target/tmp && mkdir -p out && cp a b",
        "git commit -m \"$(cat <<'EOF'\nWhy\n\nBecause.\nEOF\n)\"",
    ];
    for command in commands {
        let input = json!({"command": command});
        let mut batches: Vec<Duration> = (0..DECISION_BATCHES)
            .map(|_| {
                let started = Instant::now();
                for _ in 0..DECISIONS {
                    let access = access_of("Bash", &input, cwd).expect("a command");
                    let call =
                        Judged { tool: "Bash", input: &input, access: &access, cwd, hook: HookSays::Nothing };
                    black_box(permissions.judge(&call));
                }
                started.elapsed() / DECISIONS
            })
            .collect();
        let half = median(&mut batches).as_secs_f64() * 1e6;
        let least = batches[0].as_secs_f64() * 1e6;
        let first = command.lines().next().unwrap_or_default();
        println!("{half:>9.1} µs ({least:.1})  {first}");
        verdict.at_most(&format!("a decision about {first}"), half, DECISION_US_MAX, "µs");
    }
}

/// Fifty thousand files of the kind that projects consist of.
fn plant(tree: &Path) {
    std::fs::create_dir_all(tree.join(".git")).expect("a directory");
    std::fs::write(tree.join(".gitignore"), "ignored/\n*.log\n").expect("a file");
    for directory in 0..DIRECTORIES {
        let place = tree.join(format!("part{}/room{directory}", directory % 20));
        std::fs::create_dir_all(&place).expect("a directory");
        for file in 0..FILES_EACH {
            let name = match file % 10 {
                0..6 => format!("file{file}.rs"),
                6..9 => format!("file{file}.md"),
                _ => format!("file{file}.log"),
            };
            let mut text = String::new();
            for line in 0..(20 + (directory * 7 + file * 13) % 200) {
                text.push_str(&format!(
                    "    let value_{line} = compute({directory}, {file}); // line {line}\n"
                ));
            }
            if file == 7 {
                text.push_str("// the needle is here\n");
            }
            std::fs::write(place.join(name), text).expect("a file");
        }
    }
}

/// What is searched for: in words, the tool, what it is told, and what rg is told.
type Case = (&'static str, &'static str, Value, &'static [&'static str]);

fn planted_cases() -> Vec<Case> {
    vec![
        ("rare word, files", "Grep", json!({"pattern": "needle"}), &["-l", "needle"]),
        (
            "rare word, lines",
            "Grep",
            json!({"pattern": "needle", "output_mode": "content"}),
            &["-n", "needle"],
        ),
        (
            "regex, counted",
            "Grep",
            json!({"pattern": "value_1[0-9]+ = compute\\(3", "output_mode": "count"}),
            &["-c", "value_1[0-9]+ = compute\\(3"],
        ),
        ("nothing found", "Grep", json!({"pattern": "nowhere_to_be_seen"}), &["-l", "nowhere_to_be_seen"]),
        ("names", "Glob", json!({"pattern": "**/*.md"}), &["--files", "--no-ignore", "-g", "**/*.md"]),
    ]
}

fn workspace_cases() -> Vec<Case> {
    vec![
        ("word, files", "Grep", json!({"pattern": "Deserialize"}), &["-l", "Deserialize"]),
        (
            "regex, lines of Rust",
            "Grep",
            json!({"pattern": "fn [a-z_]+\\(&self\\)", "type": "rust", "output_mode": "content", "head_limit": 0}),
            &["-n", "-trust", "fn [a-z_]+\\(&self\\)"],
        ),
        (
            "any case, counted",
            "Grep",
            json!({"pattern": "sandbox", "-i": true, "output_mode": "count", "head_limit": 0}),
            &["-c", "-i", "sandbox"],
        ),
        ("names", "Glob", json!({"pattern": "**/*.rs"}), &["--files", "--no-ignore", "-g", "**/*.rs"]),
    ]
}

async fn searches(where_: &str, tree: &Path, cases: &[Case], verdict: &mut Verdict) {
    let rg = rg();
    println!("searches of {where_} (half of {SEARCHES} took less; rg is a process of its own):");
    for (what, name, input, args) in cases {
        let tool = tool(name);
        let cx = ToolCx::outside(tree);
        let (mut ours, mut theirs) = (Vec::new(), Vec::new());
        for _ in 0..SEARCHES {
            // In turn, so that both meet the same weather.
            let started = Instant::now();
            black_box(tool.run(input.clone(), &cx).await);
            ours.push(started.elapsed());
            if let Some(rg) = &rg {
                let started = Instant::now();
                let status =
                    Command::new(rg).arg("--hidden").args(*args).arg(tree).stdout(Stdio::null()).status();
                assert!(status.is_ok(), "{} does not run", rg.display());
                theirs.push(started.elapsed());
            }
        }
        let ours = median(&mut ours).as_secs_f64() * 1e3;
        match theirs.is_empty() {
            true => {
                println!("{ours:>9.1} ms  {what} (no rg to compare with)");
                verdict.unseen(&format!("{where_}, {what}: no rg to compare with"));
            }
            false => {
                let theirs = median(&mut theirs).as_secs_f64() * 1e3;
                println!("{ours:>9.1} ms  {what}; rg {theirs:.1} ms: {:.2} times", ours / theirs);
                verdict.at_most(&format!("{where_}, {what}"), ours / theirs, SEARCH_RATIO_MAX, "times rg");
            }
        }
    }
}

/// A command that prints more than anybody reads, in one line and in many.
async fn printing(dir: &Path, verdict: &mut Verdict) {
    let tool = tool("Bash");
    let mut cx = ToolCx::outside(dir);
    cx.env = std::env::vars_os().collect();
    println!("a command that prints 200 MB:");
    for (what, command) in [
        ("one line", format!("head -c {PRINTED_BYTES} /dev/zero | tr '\\0' x")),
        ("many lines, and fails", format!("yes a line of many | head -c {PRINTED_BYTES}; exit 1")),
    ] {
        let before = forget_peak();
        let started = Instant::now();
        black_box(tool.run(json!({"command": command}), &cx).await);
        let more = megabytes(peak_memory().saturating_sub(before));
        println!(
            "{:>9.1} ms  {what}; {more:.1} MB more memory at most",
            started.elapsed().as_secs_f64() * 1e3
        );
        verdict.at_most(&format!("200 MB printed, {what}"), more, PRINTED_MB_MAX, "MB");
    }
}

/// A window in the middle of a file that is not loaded whole.
async fn reading(dir: &Path, verdict: &mut Verdict) {
    let file = dir.join("big.txt");
    let line = "a line of a log that nobody will ever read to its end, because there are too many\n";
    let lines = BIG_FILE_BYTES / line.len();
    let mut big = BufWriter::new(File::create(&file).expect("a file"));
    for _ in 0..lines {
        big.write_all(line.as_bytes()).expect("a line");
    }
    drop(big);
    let tool = tool("Read");
    let cx = ToolCx::outside(dir);
    let input = json!({"file_path": file, "offset": lines / 2, "limit": 100});
    let before = forget_peak();
    let mut times: Vec<Duration> = Vec::new();
    for _ in 0..5 {
        let started = Instant::now();
        black_box(tool.run(input.clone(), &cx).await);
        times.push(started.elapsed());
    }
    let more = megabytes(peak_memory().saturating_sub(before));
    let time = median(&mut times).as_secs_f64() * 1e3;
    println!("a window in the middle of 100 MB: {time:.1} ms, {more:.1} MB more memory at most");
    verdict.at_most("a window in the middle of 100 MB", more, WINDOW_MB_MAX, "MB");
}

/// What it adds to a command that its changes can be undone, in a large tree; and to one that only looks.
async fn undoing(dir: &Path, verdict: &mut Verdict) {
    let tree = dir.join("kept");
    for n in 0..KEPT_FILES {
        let place = tree.join(format!("d{}/e{}", n % 50, n % 1_000));
        if n < 1_000 {
            std::fs::create_dir_all(&place).expect("a directory");
        }
        std::fs::write(place.join(format!("f{n}")), format!("file {n}\n")).expect("a file");
    }
    println!("a turn with a command among {KEPT_FILES} files, on average over {KEPT_COMMANDS}:");
    for (what, command, max) in
        [("writes", "echo $RANDOM > d1/e1/f1", KEPT_MS_MAX), ("only looks", "cat d1/e1/f1", LOOKED_MS_MAX)]
    {
        let with = turn_with(&tree, dir, command, true).await.as_secs_f64() * 1e3;
        let without = turn_with(&tree, dir, command, false).await.as_secs_f64() * 1e3;
        println!(
            "{with:>9.1} ms  {what}; {without:.1} ms when nothing is kept: {:.1} ms more",
            with - without
        );
        verdict.at_most(&format!("undoing, a command that {what}"), with - without, max, "ms");
    }
}

/// How long a turn with this command takes.
async fn turn_with(tree: &Path, dir: &Path, command: &str, kept: bool) -> Duration {
    let call = || [pelton_testkit::tool("Bash", json!({"command": command}))];
    let mut script = Script::new().reply(call()).reply([text("Begun.")]);
    for _ in 0..KEPT_COMMANDS {
        script = script.reply(call());
    }
    let model = script.reply([text("Done.")]).start().await.expect("a scripted model");
    let mut options = Options::new(tree, Endpoint::new(model.base_url(), Auth::ApiKey(Secret::new("any"))));
    options.mode = Mode::BypassPermissions;
    options.sessions =
        Some(Sessions { config_dir: dir.join("config"), durability: transcript::Durability::Fast });
    options.file_history = kept.then(FileHistoryLimits::default);
    let mut engine = Engine::new(options).expect("an engine");
    // The first one is looked at whole, whatever was there before.
    engine.submit(Prompt::text("go").expect("a prompt")).for_each(async |_| {}).await;
    let started = Instant::now();
    engine.submit(Prompt::text("go on").expect("a prompt")).for_each(async |_| {}).await;
    started.elapsed() / KEPT_COMMANDS
}

fn tool(name: &str) -> Arc<dyn Tool> {
    builtin::all().into_iter().find(|tool| tool.spec().name == name).expect("a built-in tool")
}

fn rg() -> Option<PathBuf> {
    let rg = std::env::var_os("RG").map_or_else(|| PathBuf::from("rg"), PathBuf::from);
    Command::new(&rg).arg("--version").stdout(Stdio::null()).status().ok().map(|_| rg)
}

/// The most memory this process has had since its peak was last forgotten, in kB.
fn peak_memory() -> u64 {
    memory("VmHWM:")
}

/// From here on the peak counts anew. How much memory is in use now, in kB.
fn forget_peak() -> u64 {
    std::fs::write("/proc/self/clear_refs", "5").expect("a peak that can be forgotten");
    memory("VmRSS:")
}

fn memory(name: &str) -> u64 {
    let status = std::fs::read_to_string("/proc/self/status").unwrap_or_default();
    let figure = status.lines().find_map(|line| line.strip_prefix(name));
    figure.and_then(|figure| figure.trim().trim_end_matches(" kB").parse().ok()).unwrap_or(0)
}

fn megabytes(kilobytes: u64) -> f64 {
    kilobytes as f64 / 1024.0
}

fn median(times: &mut [Duration]) -> Duration {
    times.sort();
    times[times.len() / 2]
}
