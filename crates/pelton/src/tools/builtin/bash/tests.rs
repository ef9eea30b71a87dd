use std::ffi::OsString;
use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::time::{Duration, Instant};

use serde_json::json;

use super::super::tests::{Answer, Bench};

async fn bash_in(bench: &Bench, command: &str, timeout_ms: u64) -> Answer {
    bench.run("Bash", json!({"command": command, "timeout": timeout_ms})).await
}

fn pid_in(bench: &Bench, name: &str) -> String {
    let pid = String::from_utf8(bench.get(name)).unwrap().trim().to_owned();
    assert!(pid.parse::<u32>().is_ok(), "{pid:?}");
    pid
}

/// Running, and not merely waiting to be reaped by a lazy first process.
fn runs(pid: &str) -> bool {
    fs::read_to_string(format!("/proc/{pid}/stat"))
        .is_ok_and(|stat| !stat[stat.rfind(')').unwrap()..].starts_with(") Z"))
}

#[track_caller]
fn assert_gone(pid: &str) {
    let started = Instant::now();
    while runs(pid) {
        assert!(started.elapsed() < Duration::from_millis(500), "process {pid} is still running");
        std::thread::sleep(Duration::from_millis(5));
    }
}

#[tokio::test]
async fn what_is_printed_comes_back() {
    let bench = Bench::new();
    let answer = bench.bash("echo out; sleep 0.05; echo err >&2; sleep 0.05; printf 'more\\n\\n'").await;
    assert_eq!(answer.ok(), "out\nerr\nmore");
    assert_eq!(
        answer.detail,
        json!({"stdout": "out\nmore", "stderr": "err", "interrupted": false, "isImage": false, "noOutputExpected": false})
    );
    assert_eq!(bench.bash("cat; echo $?").await.ok(), "0", "nothing can be typed");
    assert_eq!(bench.bash("echo 'a\nb' | while read x; do echo \"<$x>\"; done").await.ok(), "<a>\n<b>");
    assert_eq!(bench.bash("cat <<EOF\nhere\nEOF").await.ok(), "here");
    assert_eq!(bench.bash("echo ${BASH_VERSION:+bash}").await.ok(), "bash");
}

#[tokio::test]
async fn an_empty_answer_says_so() {
    let bench = Bench::new();
    for command in ["true", "echo", "printf ' \\n\\t\\n'", "# nothing"] {
        assert_eq!(bench.bash(command).await.ok(), "[No output.]", "{command}");
    }
    let answer = bench.bash("mkdir x").await;
    assert_eq!(answer.detail["noOutputExpected"], true);
}

#[tokio::test]
async fn a_failure_starts_with_its_exit_code() {
    let bench = Bench::new();
    let answer = bench.bash("echo oops >&2; exit 3").await;
    assert_eq!(answer.refused(&[]), "Exit code 3\noops");
    assert_eq!(bench.bash("false").await.refused(&[]), "Exit code 1\n[No output.]");
    bench.bash("kill -9 $$").await.refused(&["Exit code 137\n", "signal 9"]);
    let answer = bench.bash("echo start; if then").await;
    answer.refused(&["Exit code 2", "line 1", "syntax error"]);
    bench.bash("no-such-program").await.refused(&["Exit code 127", "not found"]);
    assert!(!answer.text.contains("start") || answer.text.contains("syntax"));
}

#[tokio::test]
async fn exit_one_can_be_an_answer() {
    let bench = Bench::new();
    bench.put("a", "x\n");
    bench.put("b", "y\n");
    let answer = bench.bash("grep nothing a").await;
    assert_eq!(answer.ok(), "[No output; exit code 1: no matches.]");
    assert_eq!(answer.detail["returnCodeInterpretation"], "no matches");
    bench.bash("diff a b").await.ok();
    bench.bash("test -f nothing").await.ok();
    bench.bash("cat a | grep nothing").await.ok();
    bench.bash("grep x nothing").await.refused(&["Exit code 2"]);
    bench.bash("grep nothing a; false").await.refused(&["Exit code 1"]);
}

#[tokio::test]
async fn pit_T1_background_children_and_deaf_commands_are_not_waited_for() {
    let bench = Bench::new();
    let started = Instant::now();
    let answer = bench.bash("sleep 300 & echo $! > pid; echo ok").await;
    assert!(started.elapsed() < Duration::from_secs(1), "{:?}", started.elapsed());
    assert!(answer.ok().starts_with("ok\n"));
    answer.says(&["background were stopped"]);
    assert_gone(&pid_in(&bench, "pid"));

    let started = Instant::now();
    let answer = bash_in(&bench, "trap '' TERM; echo $$ > pid; echo before; sleep 60; sleep 60", 2_000).await;
    let took = started.elapsed();
    assert!(took >= Duration::from_secs(2) && took <= Duration::from_secs(4), "{took:?}");
    answer.refused(&["Timed out after 2000 ms", "killed", "before"]);
    assert_eq!(
        (&answer.detail["interrupted"], &answer.detail["timedOutAfterMs"]),
        (&json!(true), &json!(2_000))
    );
    assert_gone(&pid_in(&bench, "pid"));
}

#[tokio::test]
async fn nothing_survives_a_timeout() {
    let bench = Bench::new();
    // A grandchild in its own session, deaf to TERM, below a launcher that ends at once.
    let command =
        "sh -c \"setsid sh -c 'trap \\\"\\\" TERM; echo \\$\\$ > pid; sleep 300; sleep 300' &\"; sleep 300";
    let started = Instant::now();
    bash_in(&bench, command, 300).await.refused(&["Timed out after 300 ms"]);
    assert!(started.elapsed() < Duration::from_secs(3));
    assert_gone(&pid_in(&bench, "pid"));
}

#[tokio::test]
async fn a_command_that_ends_on_term_is_not_waited_for_longer() {
    let bench = Bench::new();
    let started = Instant::now();
    let answer = bash_in(&bench, "trap 'echo tidied; exit 0' TERM; echo before; sleep 60 & wait", 200).await;
    answer.refused(&["Timed out", "before\ntidied"]);
    assert!(started.elapsed() < Duration::from_secs(1), "{:?}", started.elapsed());
}

#[tokio::test]
async fn an_interrupt_kills_at_once_and_keeps_what_was_printed() {
    let bench = Bench::new();
    let cancel = bench.cx.cancel.clone();
    let command = "trap '' TERM; echo $$ > pid; echo before; sleep 60; sleep 60";
    let interrupted = async {
        while !bench.path("pid").exists() {
            tokio::time::sleep(Duration::from_millis(10)).await;
        }
        tokio::time::sleep(Duration::from_millis(50)).await;
        cancel.cancel();
        Instant::now()
    };
    let (answer, at) = tokio::join!(bench.bash(command), interrupted);
    let took = at.elapsed();
    answer.refused(&["Interrupted", "before"]);
    assert_eq!(answer.detail["interrupted"], true);
    assert_gone(&pid_in(&bench, "pid"));
    // A little over the promised 100 ms, for machines that are busy.
    assert!(took < Duration::from_millis(400), "{took:?}");
    bench.bash("touch started").await.refused(&["Interrupted"]);
    assert!(!bench.path("started").exists(), "nothing is started after an interrupt");
}

#[tokio::test]
async fn dropping_the_call_kills_the_command() {
    let bench = Bench::new();
    let command = "trap '' TERM; (setsid sleep 300 & echo $! > inner); echo $$ > pid; sleep 300; sleep 300";
    let call = bench.bash(command);
    let dropped = tokio::time::timeout(Duration::from_millis(500), call).await;
    assert!(dropped.is_err());
    assert_gone(&pid_in(&bench, "pid"));
    assert_gone(&pid_in(&bench, "inner"));
}

#[tokio::test]
async fn the_directory_follows_within_the_roots() {
    let mut bench = Bench::new();
    let sub = bench.path("sub dir/it's");
    fs::create_dir_all(&sub).unwrap();
    assert_eq!(bench.bash("cd 'sub dir' && cd \"it's\"").await.new_cwd, Some(sub.clone()));
    assert_eq!(bench.bash("cd 'sub dir'; exit 4").await.new_cwd, Some(bench.path("sub dir")));
    assert_eq!(bench.bash("(cd 'sub dir')").await.new_cwd, None);
    assert_eq!(bench.bash("cd .").await.new_cwd, None);
    assert_eq!(bench.bash("cd 'sub dir'; sleep 300 &").await.new_cwd, Some(bench.path("sub dir")));
    let outside = bench.bash("cd / && pwd").await;
    assert_eq!(outside.new_cwd, None);
    assert!(outside.ok().starts_with("/\n"));
    outside.says(&["The working directory is again", "outside"]);
    // Not by spelling: `work2` does not lie in `work`.
    let beside = bench.cx.cwd.with_file_name("work2");
    fs::create_dir(&beside).unwrap();
    assert_eq!(bench.bash(&format!("cd {}", beside.display())).await.new_cwd, None);

    bench.cx.cwd = sub.clone();
    assert_eq!(bench.bash("pwd").await.ok(), sub.to_str().unwrap());
    fs::remove_dir(&sub).unwrap();
    let lost = bench.bash("pwd").await;
    lost.refused(&["does not exist any more"]);
    assert_eq!(lost.new_cwd, Some(bench.cx.roots[0].clone()));
}

#[tokio::test]
async fn a_script_may_use_descriptors_traps_and_exec_as_it_likes() {
    let bench = Bench::new();
    assert_eq!(bench.bash("exec 9>lock; echo x >&9; exec 3>&1; echo y >&3; cat lock").await.ok(), "y\nx");
    assert_eq!(bench.bash("trap 'echo bye' EXIT; echo hi").await.ok(), "hi\nbye");
    assert_eq!(bench.bash("cd /; exec echo replaced").await.ok(), "replaced");
    assert_eq!(bench.bash("exec >/dev/null; echo lost; cd /").await.new_cwd, None);
}

#[tokio::test]
async fn secrets_stay_with_the_engine() {
    let mut bench = Bench::new();
    let variable = |name: &str| (OsString::from(name), OsString::from("secret"));
    let names =
        ["ANTHROPIC_API_KEY", "ANTHROPIC_AUTH_TOKEN", "CLAUDE_CODE_OAUTH_TOKEN", "OTEL_EXPORTER", "KEPT"];
    bench.cx.env = bench.cx.env.iter().cloned().chain(names.map(variable)).collect();
    let answer = bench.bash("env").await;
    let secrets: Vec<&str> = answer.ok().lines().filter(|line| line.ends_with("=secret")).collect();
    assert_eq!(secrets, ["KEPT=secret"]);
    answer.says(&["CLAUDECODE=1"]);
    assert!(!answer.text.contains("CARGO"), "nothing of this process's own environment");
}

#[tokio::test]
async fn without_bash_sh_is_used() {
    let mut bench = Bench::new();
    let bin = bench.path("bin");
    fs::create_dir(&bin).unwrap();
    std::os::unix::fs::symlink("/bin/sh", bin.join("sh")).unwrap();
    fs::create_dir(bin.join("bash")).unwrap();
    bench.cx.env = [(OsString::from("PATH"), OsString::from(format!("relative:{}", bin.display())))].into();
    let answer = bench.bash("echo $0; cd bin").await;
    assert_eq!(answer.ok(), bin.join("sh").to_str().unwrap());
    assert_eq!(answer.new_cwd, Some(bin));
}

#[tokio::test]
async fn long_output_is_head_and_tail_and_a_file() {
    let bench = Bench::new();
    for (exit, error) in [(0, false), (1, true)] {
        let answer =
            bench.bash(&format!("for i in $(seq 20000); do echo \"zeile ä $i\"; done; exit {exit}")).await;
        assert_eq!(answer.error, error);
        let head = if error { "Exit code 1\nzeile ä 1\n" } else { "zeile ä 1\n" };
        assert!(
            answer.text.starts_with(head) && answer.text.ends_with("zeile ä 20000"),
            "{}",
            &answer.text[..100]
        );
        answer.says(&["bytes omitted", "Read"]);
        let chars = answer.text.chars().count();
        let shown = if error { 10_000 } else { 30_000 };
        assert!((shown..shown + 600).contains(&chars), "{chars}");
        let kept = answer.detail["persistedOutputPath"].as_str().unwrap();
        let all: String = (1..=20_000).map(|n| format!("zeile ä {n}\n")).collect();
        assert_eq!(fs::read_to_string(kept).unwrap(), all);
        assert_eq!(answer.detail["persistedOutputSize"], all.len());
        assert_eq!(fs::metadata(kept).unwrap().permissions().mode() & 0o777, 0o600);
        answer.says(&[kept]);
        bench
            .run("Read", json!({"file_path": kept, "offset": 10_000, "limit": 1}))
            .await
            .says(&["zeile ä 10000"]);
    }
    // Over the characters, but not over the buffers.
    let answer = bench.bash("head -c 40000 /dev/zero | tr '\\0' x").await;
    let kept = answer.detail["persistedOutputPath"].as_str().unwrap();
    assert_eq!(fs::read(kept).unwrap(), vec![b'x'; 40_000]);
    answer.says(&["10000 bytes omitted"]);
}

#[tokio::test]
async fn output_that_cannot_be_kept_is_said_so() {
    let mut bench = Bench::new();
    bench.cx.spill_dir = bench.put("file", "").join("below");
    let answer = bench.bash("seq 100000").await;
    assert!(answer.ok().starts_with("1\n"));
    answer.says(&["bytes omitted", "\n100000\n", "could not be kept"]);
}

#[tokio::test]
async fn too_much_output_ends_the_command() {
    let bench = Bench::with_limits(|limits| limits.shell_spill_bytes_max = 1_000_000);
    let started = Instant::now();
    let answer = bench.bash("yes").await;
    answer.refused(&["printed more than 1000000 bytes"]);
    assert!(started.elapsed() < Duration::from_secs(3));
    let size = fs::metadata(answer.detail["persistedOutputPath"].as_str().unwrap()).unwrap().len();
    assert!((900_000..1_200_000).contains(&size), "{size}");
}

#[tokio::test]
async fn a_background_chatterbox_does_not_hold_the_answer() {
    let bench = Bench::new();
    let started = Instant::now();
    let answer = bench.bash("(while :; do echo noise; done) & echo $! > pid; echo done").await;
    assert!(started.elapsed() < Duration::from_secs(2), "{:?}", started.elapsed());
    answer.ok();
    assert_gone(&pid_in(&bench, "pid"));
}

#[tokio::test]
async fn what_is_printed_late_by_a_helper_is_still_read() {
    let bench = Bench::new();
    // Bash does not wait for a process substitution.
    assert_eq!(bench.bash("echo one > >(sleep 0.05; cat)").await.ok(), "one");
}

#[tokio::test]
async fn progress_is_the_newest_lines_and_not_all_of_many() {
    let bench = Bench::new();
    bench.bash("for i in $(seq 20); do seq -f 'line '$i'%02g' 60; sleep 0.02; done").await.ok();
    let reports = bench.reports.lock().unwrap().clone();
    // Some ten looks, a few lines each.
    assert!((2..=300).contains(&reports.len()), "{reports:?}");
    assert!(reports.iter().all(|line| line.starts_with("line ")));
    assert!(reports.is_sorted_by_key(|line| line[5..].parse::<u32>().unwrap()));
}

#[tokio::test]
async fn odd_commands_are_refused_or_run() {
    let bench = Bench::new();
    bench.bash("echo a\0b").await.refused(&["zero byte"]);
    bench.bash(&"x".repeat(200_000)).await.refused(&["128 KB"]);
    let long = format!("true {}; echo end", "x".repeat(130_000));
    assert_eq!(bench.bash(&long).await.ok(), "end");
    bench.run("Bash", json!({"command": "true", "timeout": 0})).await.refused(&["timeout"]);
    let answer =
        bench.run("Bash", json!({"command": "echo x", "timeout": "99999999", "description": "d"})).await;
    assert_eq!(answer.ok(), "x");
    // Bytes that are no characters.
    assert_eq!(bench.bash("printf 'a\\377b'").await.ok(), "a\u{FFFD}b");
}

#[tokio::test]
async fn a_command_whose_time_is_up_goes_on_beside_where_that_is_wanted() {
    let bench = Bench::with_limits(|limits| limits.shell_goes_on_beside = true);
    let command = "echo before; sleep 0.6; echo after; echo late >&2";
    let answer = bench.run("Bash", json!({"command": command, "timeout": 200})).await;
    assert!(
        !answer.error && answer.text.contains("goes on in the background") && answer.text.ends_with("before"),
        "{}",
        answer.text
    );
    assert_eq!(answer.detail["timedOutAfterMs"], 200);
    let id = answer.detail["backgroundTaskId"].as_str().unwrap();
    let end = bench.cx.background.wait(id, Duration::from_secs(10)).await;
    assert_eq!(end, Some(crate::tools::BackgroundEnd::Exited(0)));
    let (task, _) = bench.cx.background.find(id).unwrap();
    let mut lines: Vec<String> =
        fs::read_to_string(&task.output).unwrap().lines().map(str::to_owned).collect();
    // Two pipes have no order between them.
    lines[1..].sort();
    assert_eq!(lines, ["before", "after", "late"]);
}

#[tokio::test]
async fn of_a_failure_less_is_shown_and_all_is_kept() {
    let bench = Bench::new();
    let answer = bench.bash("seq 1 4000; exit 3").await;
    assert!(answer.error && answer.text.starts_with("Exit code 3\n1\n2\n") && answer.text.ends_with("4000"));
    assert!(
        answer.text.chars().count() < 11_000 && answer.text.contains("bytes omitted"),
        "{}",
        answer.text.len()
    );
    let kept = fs::read_to_string(answer.detail["persistedOutputPath"].as_str().unwrap()).unwrap();
    assert_eq!(kept.lines().count(), 4000);
    assert!(bench.bash("seq 1 4000").await.ok().contains("\n2000\n"), "a success is shown whole");
}

#[tokio::test]
async fn the_environment_may_name_another_bash_and_a_program_that_gets_every_command() {
    let mut bench = Bench::new();
    let told = bench.put("told.sh", "#!/bin/sh\nprintf 'told: %s\\n' \"$1\"\nexec bash -c \"$1\"\n");
    fs::set_permissions(&told, fs::Permissions::from_mode(0o755)).unwrap();
    let own = bench.path("own");
    fs::create_dir(&own).unwrap();
    let bash = own.join("bash");
    fs::write(&bash, "#!/bin/sh\necho own\nexec /bin/bash \"$@\"\n").unwrap();
    fs::set_permissions(&bash, fs::Permissions::from_mode(0o755)).unwrap();
    let plain = bench.cx.env.to_vec();
    let with = |name: &str, path: &std::path::Path| {
        plain.iter().cloned().chain([(OsString::from(name), path.as_os_str().to_owned())]).collect()
    };
    bench.cx.env = with("CLAUDE_CODE_SHELL_PREFIX", &told);
    assert_eq!(bench.bash("echo \"it's\" $((1+1))").await.ok(), "told: echo \"it's\" $((1+1))\nit's 2");
    bench.cx.env = with("CLAUDE_CODE_SHELL", &bash);
    assert_eq!(bench.bash("echo here").await.ok(), "own\nhere");
    // What is no bash would read commands in another way than they are judged.
    bench.cx.env = with("CLAUDE_CODE_SHELL", &told);
    assert_eq!(bench.bash("echo ${BASH_VERSION:+bash}").await.ok(), "bash");
}

#[tokio::test]
async fn commands_may_be_kept_from_moving_and_from_the_background() {
    let bench = Bench::with_limits(|limits| (limits.shell_stays, limits.background_off) = (true, true));
    bench.put("sub/x", "");
    let answer = bench.bash("cd sub; pwd").await;
    assert_eq!((answer.ok(), answer.new_cwd.as_ref()), (bench.path("sub").to_str().unwrap(), None));
    let answer = bench.run("Bash", json!({"command": "touch y", "run_in_background": true})).await;
    assert!(answer.error && answer.text.contains("switched off"), "{answer:?}");
    assert!(!bench.path("y").exists());
}
