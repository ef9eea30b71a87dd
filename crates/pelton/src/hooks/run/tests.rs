use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::path::Path;
use std::sync::Mutex;
use std::sync::atomic::{AtomicUsize, Ordering};

use futures::future::{BoxFuture, join_all};
use pelton_model::RealWorld;
use serde_json::json;
use tokio::time::Instant;
use tokio::time::sleep;

use super::*;
use crate::hooks::callback::CallbackError;
use crate::hooks::config::{CallbackTerms, OnFailure, Source};
use crate::hooks::input::{Base, EventInput, ToolCall};
use crate::hooks::limits::{OUTPUT_BYTES_MAX, PREVIEW_CHARS, TEXT_CHARS_MAX};
use crate::hooks::outcome::{PermissionAnswer, PermissionDecision};

/// A project, and hooks in it.
struct Stage {
    dir: tempfile::TempDir,
    config: HookConfig,
    cx: HookCx,
}

impl Stage {
    fn new() -> Self {
        let dir = tempfile::tempdir().unwrap();
        let env = [("PATH", "/usr/local/bin:/usr/bin:/bin"), ("GREETING", "hello")];
        let env = env.map(|(name, value)| (OsString::from(name), OsString::from(value)));
        let project = dir.path().canonicalize().unwrap();
        let spill = project.join("spill");
        let cx = HookCx::new(project, Arc::from(env), spill, Arc::new(RealWorld::new()));
        Self { dir, config: HookConfig::default(), cx }
    }

    fn path(&self) -> &Path {
        &self.cx.project_dir
    }

    fn file(&self, name: &str) -> PathBuf {
        self.path().join(name)
    }

    fn read(&self, name: &str) -> String {
        fs::read_to_string(self.file(name)).unwrap()
    }

    /// Adds a command with further fields.
    fn with(mut self, event: HookEvent, command: &str, mut fields: Value) -> Self {
        fields["type"] = json!("command");
        fields["command"] = json!(command);
        let settings = json!({event.name(): [{"hooks": [fields]}]});
        assert_eq!(self.config.add_settings(&settings, &Source::Project), []);
        self
    }

    fn hook(self, event: HookEvent, command: &str) -> Self {
        self.with(event, command, json!({}))
    }

    fn callback(
        mut self,
        event: HookEvent,
        terms: CallbackTerms,
        callback: impl HookCallback + 'static,
    ) -> Self {
        self.config.add_callback(event, None, Arc::new(callback), terms).unwrap();
        self
    }

    fn input(&self, event: EventInput) -> HookInput {
        let base = Base {
            session_id: "S".into(),
            transcript_path: "/t.jsonl".into(),
            cwd: self.path().to_owned(),
            effort: Some("high".into()),
            ..Base::default()
        };
        HookInput { base, event }
    }

    fn hooks(&self) -> Hooks {
        Hooks::new(self.config.clone())
    }

    async fn fire(&self, event: EventInput) -> Fired {
        self.hooks().fire(&self.input(event), &self.cx).await
    }
}

fn bash_call() -> EventInput {
    EventInput::PreToolUse {
        call: ToolCall { name: "Bash".into(), input: json!({"command": "ls"}), id: "toolu_1".into() },
    }
}

fn stop() -> EventInput {
    EventInput::Stop { stop_hook_active: false, last_assistant_message: None, background_tasks: Vec::new() }
}

fn session_start() -> EventInput {
    EventInput::SessionStart { source: "startup".into(), model: None }
}

fn outcomes(fired: &Fired) -> Vec<HookOutcome> {
    fired.runs.iter().map(|run| run.outcome).collect()
}

/// Waits until a script has written its process id.
async fn pid_in(file: &Path) -> i32 {
    for _ in 0..1_000 {
        if let Some(pid) = fs::read_to_string(file).ok().and_then(|text| text.trim().parse().ok()) {
            return pid;
        }
        sleep(Duration::from_millis(5)).await;
    }
    panic!("no process id in {}", file.display());
}

/// Running, and not merely waiting to be reaped by a lazy first process.
fn runs(pid: i32) -> bool {
    fs::read_to_string(format!("/proc/{pid}/stat"))
        .is_ok_and(|stat| !stat[stat.rfind(')').unwrap()..].starts_with(") Z"))
}

#[track_caller]
fn assert_gone(pid: i32) {
    assert!(!runs(pid), "process {pid} is still running");
}

/// What was killed without being waited for takes a moment to go.
async fn soon_gone(pid: i32) {
    for _ in 0..100 {
        if !runs(pid) {
            return;
        }
        sleep(Duration::from_millis(5)).await;
    }
    panic!("process {pid} is still running");
}

#[tokio::test]
async fn without_listeners_nothing_happens() {
    let stage = Stage::new().hook(HookEvent::Stop, "touch ran");
    assert!(stage.hooks().listens(HookEvent::Stop) && !stage.hooks().listens(HookEvent::PreToolUse));
    assert_eq!(stage.fire(bash_call()).await, Fired::default());
    assert!(!stage.file("ran").exists());
}

#[tokio::test]
async fn the_event_is_on_standard_input() {
    let stage = Stage::new()
        .hook(HookEvent::PreToolUse, "cat > shell.json; cat /dev/null # with a comment")
        .with(HookEvent::PreToolUse, "tee", json!({"args": ["${CLAUDE_PROJECT_DIR}/a $(b) 'c'.json"]}))
        .with(HookEvent::PreToolUse, "[[ 1 == 1 ]] && cat > bash.json", json!({"shell": "bash"}));
    let input = stage.input(bash_call());
    let fired = stage.hooks().fire(&input, &stage.cx).await;
    assert_eq!(outcomes(&fired), [HookOutcome::Success; 3], "{fired:?}");
    let expected = format!("{}\n", input.to_json());
    assert_eq!(stage.read("shell.json"), expected);
    assert_eq!(stage.read("a $(b) 'c'.json"), expected);
    assert_eq!(stage.read("bash.json"), expected);
    assert_eq!(fired.runs[1].stdout, expected);
}

#[tokio::test]
async fn large_input_arrives_whole_and_need_not_be_read() {
    let prompt = "x".repeat(3_000_000);
    let stage = Stage::new()
        .hook(HookEvent::UserPromptSubmit, "wc -c")
        .hook(HookEvent::UserPromptSubmit, "echo unread")
        .hook(HookEvent::UserPromptSubmit, "exec <&-; echo closed");
    let input = stage.input(EventInput::UserPromptSubmit { prompt });
    let fired = stage.hooks().fire(&input, &stage.cx).await;
    let bytes = input.to_json().to_string().len() + 1;
    assert_eq!(fired.verdict.contexts, [bytes.to_string(), "unread".into(), "closed".into()]);
}

#[tokio::test]
async fn the_environment_is_what_was_given_and_no_secret() {
    let mut stage =
        Stage::new().hook(HookEvent::SessionStart, "env > at_start").hook(HookEvent::Stop, "env > at_stop");
    let plugin = Source::Plugin { root: "/plugin".into(), data: "/data".into(), options: Default::default() };
    let settings = json!({"Stop": [{"hooks": [{"type": "command", "command": "env > of_plugin"}]}]});
    stage.config.add_settings(&settings, &plugin);
    let mut env = stage.cx.env.to_vec();
    for name in ["ANTHROPIC_API_KEY", "OTEL_EXPORTER", "CLAUDE_PLUGIN_ROOT", "CLAUDE_ENV_FILE"] {
        env.push((name.into(), "stale".into()));
    }
    stage.cx.env = Arc::from(env);
    stage.cx.env_file = Some("/variables".into());
    stage.fire(session_start()).await;
    stage.fire(stop()).await;

    let project = format!("CLAUDE_PROJECT_DIR={}", stage.path().display());
    let common =
        ["GREETING=hello", "CLAUDECODE=1", "CLAUDE_CODE_SESSION_ID=S", "CLAUDE_EFFORT=high", &project];
    for (file, own) in [
        ("at_start", &["CLAUDE_ENV_FILE=/variables"][..]),
        ("at_stop", &[]),
        ("of_plugin", &["CLAUDE_PLUGIN_ROOT=/plugin", "CLAUDE_PLUGIN_DATA=/data"]),
    ] {
        let env = stage.read(file);
        for expected in common.iter().chain(own) {
            assert!(env.lines().any(|line| line == *expected), "{file}: {expected} is missing:\n{env}");
        }
        assert!(!env.contains("stale"), "{file}:\n{env}");
        // Nothing of the process that runs the tests.
        assert!(!env.contains("CARGO"), "{file}:\n{env}");
    }
}

#[tokio::test]
async fn commands_start_where_the_session_is_or_in_the_project() {
    let stage = Stage::new().hook(HookEvent::SessionStart, "pwd -P");
    let inner = stage.file("inner");
    fs::create_dir(&inner).unwrap();
    let mut input = stage.input(session_start());
    input.base.cwd.clone_from(&inner);
    let there = stage.hooks().fire(&input, &stage.cx).await.verdict.contexts;
    assert_eq!(there, [inner.display().to_string()]);
    fs::remove_dir(&inner).unwrap();
    let gone = stage.hooks().fire(&input, &stage.cx).await.verdict.contexts;
    assert_eq!(gone, [stage.path().display().to_string()]);
}

#[tokio::test]
async fn a_run_tells_how_it_went() {
    let stage = Stage::new().hook(HookEvent::PreToolUse, "echo out; echo err >&2; exit 2");
    let fired = stage.fire(bash_call()).await;
    let run = &fired.runs[0];
    assert_eq!(
        (run.name.as_str(), run.event, run.kind),
        ("PreToolUse:Bash", HookEvent::PreToolUse, HookKind::Command)
    );
    assert_eq!((run.outcome, run.exit_code), (HookOutcome::Blocked, Some(2)));
    assert_eq!((run.stdout.as_str(), run.stderr.as_str()), ("out\n", "err\n"));
    assert!(!run.id.is_empty() && run.duration > Duration::ZERO);
    let label = "echo out; echo err >&2; exit 2";
    assert_eq!(run.label, label);
    let reason = Some(format!("[{label}]: err\n"));
    assert_eq!(
        fired.verdict.permission,
        Some(PermissionAnswer { decision: PermissionDecision::Deny, reason })
    );
}

#[tokio::test]
async fn what_cannot_start_blocks_nothing() {
    let stage = Stage::new()
        .hook(HookEvent::Stop, "/no/such/hook")
        .with(HookEvent::Stop, "no-such-hook", json!({"args": []}))
        .with(HookEvent::Stop, "/", json!({"args": []}))
        .hook(HookEvent::Stop, "kill -9 $$");
    let fired = stage.fire(stop()).await;
    assert_eq!(outcomes(&fired), [HookOutcome::Failed; 4]);
    let codes: Vec<_> = fired.runs.iter().map(|run| run.exit_code).collect();
    assert_eq!(codes, [Some(127), Some(127), Some(126), None]);
    assert_eq!((fired.verdict.block, fired.verdict.stop), (None, None));
    assert_eq!(fired.verdict.messages.len(), 4);
}

#[tokio::test]
async fn a_shell_that_is_not_there_is_told() {
    let mut stage = Stage::new().with(HookEvent::Stop, "true", json!({"shell": "bash"}));
    stage.cx.env = Arc::from([(OsString::from("PATH"), OsString::from("/nowhere"))]);
    let fired = stage.fire(stop()).await;
    assert_eq!(outcomes(&fired), [HookOutcome::Failed]);
    assert!(fired.verdict.messages[0].contains("could not be started"), "{:?}", fired.verdict.messages);
}

/// Each hook waits for the others, so that one after the other they would never end.
#[tokio::test]
async fn loop_H4_hooks_run_side_by_side_and_one_that_blocks_is_enough() {
    let meet = "touch $N; until [ -e 1 ] && [ -e 2 ] && [ -e 3 ]; do sleep 0.01; done";
    let script = |n: &str, then: &str| format!("{}; {then}", meet.replace("$N", n));
    let stage = Stage::new()
        .with(HookEvent::Stop, &script("1", "sleep 0.2"), json!({"timeout": 20}))
        .with(HookEvent::Stop, &script("2", "echo not yet >&2; exit 2"), json!({"timeout": 20}))
        .with(HookEvent::Stop, &script("3", "exit 1"), json!({"timeout": 20}));
    let fired = stage.fire(stop()).await;
    assert_eq!(outcomes(&fired), [HookOutcome::Success, HookOutcome::Blocked, HookOutcome::Failed]);
    let block = fired.verdict.block.unwrap();
    assert!(block.ends_with("]: not yet\n"), "{block}");
}

/// There may be more hooks than places: the first place that is free is taken, whoever still sits in the others.
#[tokio::test]
async fn a_hook_that_hangs_keeps_no_other_from_its_place() {
    let mut stage = Stage::new().with(HookEvent::Stop, "sleep 30", json!({"timeout": 3}));
    let others = RUNNING_MAX * 2;
    for at in 0..others {
        stage = stage.hook(
            HookEvent::Stop,
            &format!("date +%s%N > ended-{at}; echo '{{\"systemMessage\": \"{at}\"}}'"),
        );
    }
    let began = Instant::now();
    let fired = stage.fire(stop()).await;
    assert!(began.elapsed() < Duration::from_secs(5), "{:?}", began.elapsed());
    assert_eq!(fired.runs[0].outcome, HookOutcome::TimedOut);
    let messages: Vec<String> = (0..others).map(|at| at.to_string()).collect();
    assert_eq!(fired.verdict.messages[1..], messages, "they are heard in the order of the configuration");
    let written = |name: String| fs::metadata(stage.file(&name)).unwrap().modified().unwrap();
    let (first, last) = (written("ended-0".to_owned()), written(format!("ended-{}", others - 1)));
    let apart = last.duration_since(first).unwrap_or_default();
    assert!(apart < Duration::from_millis(2_500), "the last waited for the one that hangs: {apart:?}");
}

#[tokio::test]
async fn answers_keep_the_order_of_the_configuration() {
    let context = |text: &str| {
        json!({"hookSpecificOutput": {"hookEventName": "PreToolUse", "additionalContext": text,
            "permissionDecision": "allow", "updatedInput": {"from": text}}})
    };
    let stage = Stage::new()
        .hook(HookEvent::PreToolUse, &format!("sleep 0.2; echo '{}'", context("slow")))
        .hook(HookEvent::PreToolUse, &format!("echo '{}'", context("fast")));
    let fired = stage.fire(bash_call()).await;
    assert_eq!(fired.verdict.contexts, ["slow", "fast"]);
    assert_eq!(fired.verdict.updated_input, Some(json!({"from": "fast"})));
    assert!(fired.runs[0].duration > fired.runs[1].duration);
}

#[tokio::test]
async fn each_command_runs_exactly_once() {
    let mut stage = Stage::new();
    for source in [Source::User, Source::Project, Source::Local] {
        let hook =
            json!([{"matcher": "Bash|Edit", "hooks": [{"type": "command", "command": "echo x >> count"}]}]);
        stage.config.add_settings(&json!({"PreToolUse": hook, "PostToolUse": hook}), &source);
    }
    for runs in 1..=3 {
        assert_eq!(stage.fire(bash_call()).await.runs.len(), 1);
        assert_eq!(stage.read("count").lines().count(), runs);
    }
}

#[tokio::test]
async fn more_hooks_than_run_side_by_side_all_run() {
    let mut stage = Stage::new();
    for n in 0..RUNNING_MAX + 3 {
        stage = stage.hook(HookEvent::SessionStart, &format!("echo {n}"));
    }
    let fired = stage.fire(session_start()).await;
    let expected: Vec<String> = (0..RUNNING_MAX + 3).map(|n| n.to_string()).collect();
    assert_eq!(fired.verdict.contexts, expected);
}

/// Scripts that would hold up a session for minutes. `PID` is a file for the id of a process that must not survive.
const HANGING: &[&str] = &[
    // Does not read its input and does not end.
    "echo $$ > PID; exec sleep 300",
    // Deaf to TERM.
    "trap '' TERM; echo $$ > PID; while :; do sleep 1; done",
    // Stopped.
    "echo $$ > PID; kill -STOP $$; sleep 300",
    // In a session of its own, deaf to TERM, holding the pipes.
    "setsid sh -c 'trap \"\" TERM; echo $$ > PID; while :; do sleep 1; done' & wait",
    // Prints without end, and is deaf to TERM.
    "echo $$ > PID; trap '' TERM; yes; yes; yes",
];

#[tokio::test]
async fn pit_H2_a_hook_that_hangs_is_ended_with_its_group_soon_after_its_timeout() {
    let check = async |script: &str| {
        let stage = Stage::new().with(HookEvent::Stop, script, json!({"timeout": 0.5}));
        let started = Instant::now();
        let fired = stage.fire(stop()).await;
        let took = started.elapsed();
        assert!(
            took >= Duration::from_millis(500) && took < Duration::from_millis(2_500),
            "{script}: {took:?}"
        );
        assert_eq!(outcomes(&fired), [HookOutcome::TimedOut], "{script}");
        assert_eq!((fired.runs[0].stdout.as_str(), fired.verdict.block), ("", None), "{script}");
        assert!(fired.verdict.messages[0].contains("did not end within 0.5 seconds"), "{script}");
        assert_gone(pid_in(&stage.file("PID")).await);
    };
    join_all(HANGING.iter().map(|script| check(script))).await;
}

#[tokio::test]
async fn pit_H2_an_orphan_on_the_pipes_is_not_waited_for() {
    for orphan in [
        "sleep 300 & echo $! > PID",
        "(trap '' TERM; sleep 300; sleep 300) & echo $! > PID",
        "setsid sh -c 'echo $$ > PID; exec sleep 300' & while ! [ -s PID ]; do sleep 0.01; done",
        "yes >&2 & echo $! > PID",
    ] {
        let stage =
            Stage::new().hook(HookEvent::Stop, &format!("{orphan}; echo '{{\"systemMessage\":\"done\"}}'"));
        let started = Instant::now();
        let fired = stage.fire(stop()).await;
        assert!(started.elapsed() < Duration::from_secs(2), "{orphan}: {:?}", started.elapsed());
        assert_eq!(outcomes(&fired), [HookOutcome::Success], "{orphan}");
        assert_eq!(fired.runs[0].exit_code, Some(0), "{orphan}");
        assert_eq!(fired.verdict.messages, ["done"], "{orphan}");
        assert_gone(pid_in(&stage.file("PID")).await);
    }
}

#[tokio::test]
async fn a_hook_that_hangs_holds_up_nobody_elses_answer() {
    let stage = Stage::new()
        .with(HookEvent::PreToolUse, "sleep 300", json!({"timeout": 0.3}))
        .hook(HookEvent::PreToolUse, "echo no >&2; exit 2");
    let fired = stage.fire(bash_call()).await;
    assert_eq!(outcomes(&fired), [HookOutcome::TimedOut, HookOutcome::Blocked]);
    assert_eq!(fired.verdict.permission.unwrap().decision, PermissionDecision::Deny);
}

#[tokio::test]
async fn hooks_at_the_end_share_little_time() {
    let stage = Stage::new().hook(HookEvent::SessionEnd, "sleep 300").with(
        HookEvent::SessionEnd,
        "sleep 301",
        json!({"timeout": 0.1}),
    );
    let started = Instant::now();
    let fired = stage.fire(EventInput::SessionEnd { reason: "other".into() }).await;
    assert_eq!(outcomes(&fired), [HookOutcome::TimedOut; 2]);
    let took = started.elapsed();
    assert!(took >= Duration::from_millis(1_500) && took < Duration::from_millis(3_500), "{took:?}");
}

#[tokio::test]
async fn an_interrupt_ends_everything_at_once() {
    let stage = Stage::new()
        .hook(HookEvent::Stop, "trap '' TERM; echo $$ > one; while :; do sleep 1; done")
        .with(
            HookEvent::Stop,
            "trap '' TERM; echo $$ > two; while :; do sleep 1; done",
            json!({"timeout": 0.2}),
        )
        .callback(HookEvent::Stop, CallbackTerms::default(), Forever);
    let (hooks, input) = (stage.hooks(), stage.input(stop()));
    let interrupt = async {
        let pids = (pid_in(&stage.file("one")).await, pid_in(&stage.file("two")).await);
        // The second one is out of time and being ended gently when the user interrupts.
        sleep(Duration::from_millis(400)).await;
        stage.cx.cancel.cancel();
        (pids, Instant::now())
    };
    let (fired, ((one, two), interrupted)) = tokio::join!(hooks.fire(&input, &stage.cx), interrupt);
    let took = interrupted.elapsed();
    // A tenth of a second is the promise, and kept by an idle machine; a busy one gets more, but less than gentleness
    // would take.
    assert!(took < Duration::from_millis(500), "{took:?}");
    assert_eq!(outcomes(&fired), [HookOutcome::Cancelled, HookOutcome::TimedOut, HookOutcome::Cancelled]);
    assert_gone(one);
    assert_gone(two);
    // After it nothing is started.
    let again = hooks.fire(&input, &stage.cx).await;
    assert_eq!(outcomes(&again), [HookOutcome::Cancelled; 3]);
}

#[tokio::test]
async fn dropping_the_call_ends_its_hooks() {
    let stage = Stage::new().hook(HookEvent::Stop, "trap '' TERM; echo $$ > PID; while :; do sleep 1; done");
    let (hooks, input) = (stage.hooks(), stage.input(stop()));
    let pid = tokio::select! {
        _ = hooks.fire(&input, &stage.cx) => panic!("it never ends"),
        pid = async { pid_in(&stage.file("PID")).await } => pid,
    };
    for _ in 0..100 {
        if !runs(pid) {
            return;
        }
        sleep(Duration::from_millis(5)).await;
    }
    panic!("process {pid} is still running");
}

#[tokio::test]
async fn output_is_kept_up_to_a_bound() {
    let much = 3 * OUTPUT_BYTES_MAX;
    let stage = Stage::new()
        .hook(HookEvent::Stop, &format!("head -c {much} /dev/zero; head -c {much} /dev/zero >&2; exit 1"));
    let fired = stage.fire(stop()).await;
    let run = &fired.runs[0];
    assert_eq!((run.outcome, run.exit_code), (HookOutcome::Failed, Some(1)));
    assert_eq!((run.stdout.len(), run.stderr.len()), (OUTPUT_BYTES_MAX, OUTPUT_BYTES_MAX));
}

#[tokio::test]
async fn long_texts_go_to_a_file() {
    let chars = TEXT_CHARS_MAX + 1;
    let stage = Stage::new()
        .hook(HookEvent::SessionStart, &format!("printf 'ä%.0s' $(seq {chars})"))
        .hook(HookEvent::SessionStart, &format!("printf 'o%.0s' $(seq {TEXT_CHARS_MAX})"));
    let fired = stage.fire(session_start()).await;
    let [long, short] = &fired.verdict.contexts[..] else { panic!("{:?}", fired.verdict) };
    assert_eq!(*short, "o".repeat(TEXT_CHARS_MAX));
    let file = stage.file("spill").join(format!("hook-{}-0.txt", fired.runs[0].id));
    let note = format!("\n[… {chars} characters in all. All of it is in {}.]", file.display());
    assert_eq!(*long, "ä".repeat(PREVIEW_CHARS) + &note);
    assert_eq!(fs::read_to_string(&file).unwrap(), "ä".repeat(chars));
    assert_eq!(fs::metadata(&file).unwrap().permissions().mode() & 0o777, 0o600);
}

#[tokio::test]
async fn starts_and_ends_are_told_as_they_happen() {
    let news = Arc::new(Mutex::new(Vec::new()));
    let mut stage = Stage::new()
        .with(HookEvent::PreToolUse, "true", json!({"statusMessage": "Looking"}))
        .callback(HookEvent::PreToolUse, CallbackTerms::default(), Answers(json!({})));
    let told = Arc::clone(&news);
    stage.cx.watch = HookWatch::new(move |news| {
        told.lock().unwrap().push(match news {
            HookNews::Started { id, name, kind, status_message, .. } => {
                (id.to_owned(), format!("{name} {kind:?} {}", status_message.unwrap_or("-")))
            }
            HookNews::Ended(run) => (run.id.clone(), format!("{:?}", run.outcome)),
        });
    });
    let fired = stage.fire(bash_call()).await;
    let news = news.lock().unwrap();
    for (run, started) in
        fired.runs.iter().zip(["PreToolUse:Bash Command Looking", "PreToolUse:Bash Callback -"])
    {
        let of_run: Vec<&str> =
            news.iter().filter(|(id, _)| *id == run.id).map(|(_, what)| what.as_str()).collect();
        assert_eq!(of_run, [started, "Success"]);
    }
    assert_eq!(news.len(), 4);
}

#[tokio::test]
async fn a_condition_decides_whether_a_hook_runs() {
    let mut stage = Stage::new().with(HookEvent::PreToolUse, "echo yes", json!({"if": "Bash(ls)"})).with(
        HookEvent::PreToolUse,
        "echo no",
        json!({"if": "Bash(rm)"}),
    );
    assert_eq!(stage.fire(bash_call()).await.runs.len(), 2, "nobody can tell");
    stage.cx.condition = Some(Arc::new(|rule, tool, _, _| rule == format!("{tool}(ls)")));
    let fired = stage.fire(bash_call()).await;
    assert_eq!(fired.runs.len(), 1);
    assert_eq!(fired.runs[0].label, "echo yes");
}

/// Answers always the same.
struct Answers(Value);

impl HookCallback for Answers {
    fn call<'a>(&'a self, call: HookCall<'a>) -> BoxFuture<'a, Result<Value, CallbackError>> {
        async move {
            assert_eq!(call.input["hook_event_name"], "PreToolUse");
            assert_eq!(call.tool_use_id, Some("toolu_1"));
            Ok(self.0.clone())
        }
        .boxed()
    }
}

/// Never answers.
struct Forever;

impl HookCallback for Forever {
    fn call<'a>(&'a self, _: HookCall<'a>) -> BoxFuture<'a, Result<Value, CallbackError>> {
        std::future::pending().boxed()
    }
}

/// Has no answer: with a panic before or after it was awaited, or with an error.
struct Breaks(&'static str);

impl HookCallback for Breaks {
    fn call<'a>(&'a self, _: HookCall<'a>) -> BoxFuture<'a, Result<Value, CallbackError>> {
        if self.0 == "at once" {
            panic!("a test's own panic");
        }
        async {
            if self.0 == "later" {
                panic!("a test's own panic");
            }
            Err(CallbackError("the line is dead".into()))
        }
        .boxed()
    }

    fn label(&self) -> &str {
        "guard"
    }
}

#[tokio::test]
async fn a_callback_answers_like_a_command() {
    let deny = json!({"hookSpecificOutput": {"hookEventName": "PreToolUse", "permissionDecision": "deny",
        "permissionDecisionReason": "no"}});
    let stage = Stage::new()
        .callback(HookEvent::PreToolUse, CallbackTerms::default(), Answers(deny))
        .callback(HookEvent::PreToolUse, CallbackTerms::default(), Answers(json!({"async": true})));
    let fired = stage.fire(bash_call()).await;
    assert_eq!(outcomes(&fired), [HookOutcome::Blocked, HookOutcome::Success]);
    assert_eq!(fired.runs[0].kind, HookKind::Callback);
    let reason = Some("no".to_owned());
    assert_eq!(
        fired.verdict.permission,
        Some(PermissionAnswer { decision: PermissionDecision::Deny, reason })
    );
}

#[tokio::test]
async fn a_callback_that_breaks_blocks_only_if_it_should() {
    for how in ["at once", "later", "error"] {
        let strict = CallbackTerms { on_failure: OnFailure::Blocks, ..CallbackTerms::default() };
        let usual = Stage::new().callback(HookEvent::PreToolUse, CallbackTerms::default(), Breaks(how));
        let strict = Stage::new().callback(HookEvent::PreToolUse, strict, Breaks(how));
        let (usual, strict) = (usual.fire(bash_call()).await, strict.fire(bash_call()).await);
        assert_eq!(
            (outcomes(&usual), outcomes(&strict)),
            (vec![HookOutcome::Failed], vec![HookOutcome::Failed])
        );
        assert_eq!(usual.verdict.permission, None, "{how}");
        assert_eq!(strict.verdict.permission.unwrap().decision, PermissionDecision::Deny, "{how}");
        let what = if how == "error" { "failed: the line is dead" } else { "panicked" };
        assert_eq!(usual.verdict.messages, [format!("PreToolUse:Bash hook [guard] {what}.")]);
    }
}

#[tokio::test(start_paused = true)]
async fn a_silent_callback_is_no_permission() {
    let stage = Stage::new()
        .callback(HookEvent::PreToolUse, CallbackTerms::default(), Forever)
        .callback(HookEvent::UserPromptSubmit, CallbackTerms::default(), Forever)
        .callback(
            HookEvent::Stop,
            CallbackTerms { timeout: Some(Duration::from_secs(5)), ..CallbackTerms::default() },
            Forever,
        );
    let started = Instant::now();
    let fired = stage.fire(bash_call()).await;
    assert_eq!(started.elapsed().as_secs(), 60);
    assert_eq!(outcomes(&fired), [HookOutcome::TimedOut]);
    assert_eq!(fired.verdict.permission.unwrap().decision, PermissionDecision::Deny);
    let fired = stage.fire(EventInput::UserPromptSubmit { prompt: "hi".into() }).await;
    assert!(fired.verdict.block.is_some());
    let started = Instant::now();
    let fired = stage.fire(stop()).await;
    assert_eq!(started.elapsed().as_secs(), 5);
    assert_eq!((outcomes(&fired), fired.verdict.block), (vec![HookOutcome::TimedOut], None));
}

/// Waits until something arrived from the background.
async fn arrived(hooks: &Hooks) -> Vec<Arrived> {
    for _ in 0..1_000 {
        let arrived = hooks.take_arrived();
        if !arrived.is_empty() {
            return arrived;
        }
        sleep(Duration::from_millis(5)).await;
    }
    panic!("nothing arrived");
}

const LATER: &str = r#"while ! [ -e go ]; do sleep 0.01; done
echo '{"systemMessage":"hi","decision":"block","reason":"too late","hookSpecificOutput":{"additionalContext":"note"}}'"#;

#[tokio::test]
async fn nobody_waits_for_a_hook_in_the_background() {
    let says_so = format!("echo '{{\"async\":true}}'; {LATER}");
    for stage in [
        Stage::new().with(HookEvent::Stop, LATER, json!({"async": true})),
        Stage::new().with(HookEvent::Stop, LATER, json!({"asyncRewake": true})),
        Stage::new().hook(HookEvent::Stop, &says_so),
    ] {
        let hooks = stage.hooks();
        let fired = hooks.fire(&stage.input(stop()), &stage.cx).await;
        assert_eq!(outcomes(&fired), [HookOutcome::Background]);
        assert_eq!(fired.verdict, Verdict::default());
        assert_eq!(hooks.take_arrived(), []);
        // The user's interrupt is not meant for it.
        stage.cx.cancel.cancel();
        fs::write(stage.file("go"), "").unwrap();
        let arrived = arrived(&hooks).await;
        assert_eq!(arrived.len(), 1);
        assert_eq!(
            (arrived[0].run.id.as_str(), arrived[0].run.exit_code),
            (fired.runs[0].id.as_str(), Some(0))
        );
        assert_eq!(arrived[0].context.as_deref(), Some("note"));
        assert_eq!(arrived[0].messages, ["hi"]);
        let wakes = matches!(&stage.config.entries().next().unwrap().hook,
            Hook::Command(command) if command.waiting == Waiting::NeverButWakes);
        assert_eq!(arrived[0].wakes.as_deref(), wakes.then_some("too late"));
        assert_eq!(hooks.take_arrived(), []);
    }
}

#[tokio::test]
async fn a_hook_that_goes_into_the_background_names_its_time() {
    let script = "echo '{\"async\":true,\"asyncTimeout\":100}'; echo $$ > PID; exec sleep 300";
    let stage = Stage::new().hook(HookEvent::Stop, script);
    let hooks = stage.hooks();
    assert_eq!(outcomes(&hooks.fire(&stage.input(stop()), &stage.cx).await), [HookOutcome::Background]);
    assert_eq!(arrived(&hooks).await[0].run.outcome, HookOutcome::TimedOut);
    assert_gone(pid_in(&stage.file("PID")).await);
}

#[tokio::test]
async fn the_background_ends_with_the_session() {
    let script = "trap '' TERM; echo $$ > PID; while :; do sleep 1; done";
    let stage = || Stage::new().with(HookEvent::Stop, script, json!({"async": true}));
    let started = async |stage: &Stage| {
        let hooks = stage.hooks();
        hooks.fire(&stage.input(stop()), &stage.cx).await;
        (pid_in(&stage.file("PID")).await, hooks)
    };
    let asked = stage();
    let (pid, hooks) = started(&asked).await;
    hooks.end_background().await;
    soon_gone(pid).await;
    let dropped = stage();
    let (pid, hooks) = started(&dropped).await;
    drop(hooks);
    soon_gone(pid).await;
}

#[tokio::test]
async fn the_background_is_only_so_large() {
    let stage = Stage::new().with(HookEvent::Stop, "true", json!({"async": true}));
    let (hooks, input) = (stage.hooks(), stage.input(stop()));
    for _ in 0..BACKGROUND_MAX {
        assert_eq!(outcomes(&hooks.fire(&input, &stage.cx).await), [HookOutcome::Background]);
    }
    let refused = hooks.fire(&input, &stage.cx).await;
    assert_eq!(outcomes(&refused), [HookOutcome::Failed]);
    assert!(refused.verdict.messages[0].contains("was not run"), "{:?}", refused.verdict.messages);
    let mut count = 0;
    while count < BACKGROUND_MAX {
        count += arrived(&hooks).await.len();
    }
    assert_eq!(outcomes(&hooks.fire(&input, &stage.cx).await), [HookOutcome::Background]);
}

#[tokio::test]
async fn hooks_can_be_called_from_any_task() {
    let stage = Stage::new().hook(HookEvent::SessionStart, "echo hi");
    let (hooks, input, cx) = (Arc::new(stage.hooks()), stage.input(session_start()), stage.cx.clone());
    let calls = Arc::new(AtomicUsize::new(0));
    let tasks: Vec<_> = (0..4)
        .map(|_| {
            let (hooks, input, cx, calls) =
                (Arc::clone(&hooks), input.clone(), cx.clone(), Arc::clone(&calls));
            tokio::spawn(async move {
                let fired = hooks.fire(&input, &cx).await;
                calls.fetch_add(fired.verdict.contexts.len(), Ordering::Relaxed);
            })
        })
        .collect();
    for task in tasks {
        task.await.unwrap();
    }
    assert_eq!(calls.load(Ordering::Relaxed), 4);
    drop(stage.dir);
}
