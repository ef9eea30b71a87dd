use std::fs;
use std::path::PathBuf;

use tokio::io::AsyncReadExt;

use super::*;

const SHELL: &str = "/bin/sh";

fn start(script: &str) -> ProcessTree {
    let env = [(OsString::from("PATH"), OsString::from("/usr/local/bin:/usr/bin:/bin"))];
    let args = [OsStr::new("-c"), OsStr::new(script)];
    let launch = Launch {
        program: Path::new(SHELL),
        args: &args,
        cwd: Path::new("/"),
        env: &env,
        keep: None,
        printed: Printed::Read,
    };
    ProcessTree::start(&launch).unwrap()
}

/// Waits until the script has written its process id to `file`.
async fn pid_in(file: &Path) -> Pid {
    for _ in 0..500 {
        if let Some(pid) = fs::read_to_string(file).ok().and_then(|text| text.trim().parse().ok()) {
            return Pid::from_raw(pid);
        }
        sleep(Duration::from_millis(10)).await;
    }
    panic!("no process id in {}", file.display());
}

/// Running, and not merely waiting to be reaped by a lazy first process.
fn runs(pid: Pid) -> bool {
    fs::read_to_string(format!("/proc/{pid}/stat"))
        .is_ok_and(|stat| !stat[stat.rfind(')').unwrap()..].starts_with(") Z"))
}

async fn assert_gone(pid: Pid) {
    for _ in 0..100 {
        if !runs(pid) {
            return;
        }
        sleep(Duration::from_millis(5)).await;
    }
    panic!("process {pid} is still running");
}

fn file_in(dir: &tempfile::TempDir) -> PathBuf {
    dir.path().join("pid")
}

#[tokio::test]
async fn a_program_that_ends_by_itself_leaves_nothing_to_stop() {
    let mut tree = start("echo hello; exit 3");
    let (mut out, _) = tree.take_output().unwrap();
    assert_eq!(tree.wait().await.unwrap().code(), Some(3));
    let mut text = String::new();
    out.read_to_string(&mut text).await.unwrap();
    assert_eq!(text, "hello\n");
    let ended = tree.end(Duration::ZERO, Duration::ZERO).await.unwrap();
    assert!(!ended.asked);
    assert_eq!(ended.status.code(), Some(3));
}

#[tokio::test]
async fn whatever_hides_is_found() {
    // In the background; deaf to TERM; in a process group, in a session, and without an environment of its own.
    for script in [
        "sleep 300 & echo $! > FILE",
        "(trap '' TERM; sleep 300; sleep 300) & echo $! > FILE",
        "set -m; sleep 300 & echo $! > FILE",
        "setsid sh -c 'echo $$ > FILE; exec sleep 300' & sleep 0.1",
        "env -i /bin/sh -c 'echo $$ > FILE; exec /bin/sleep 300' & sleep 0.1",
    ] {
        let dir = tempfile::tempdir().unwrap();
        let file = file_in(&dir);
        let mut tree = start(&script.replace("FILE", file.to_str().unwrap()));
        tree.wait().await.unwrap();
        let pid = pid_in(&file).await;
        assert!(runs(pid), "{script}");
        let started = std::time::Instant::now();
        assert!(tree.end(Duration::ZERO, Duration::from_millis(200)).await.unwrap().asked, "{script}");
        assert_gone(pid).await;
        assert!(started.elapsed() < Duration::from_secs(1), "{script}");
    }
}

#[tokio::test]
async fn what_wants_to_tidy_up_may() {
    let dir = tempfile::tempdir().unwrap();
    let (file, tidy) = (file_in(&dir), dir.path().join("tidy"));
    let script =
        "trap 'sleep 0.2; echo done > TIDY; exit 7' TERM; echo $$ > FILE; while :; do sleep 0.02; done";
    let script = script.replace("FILE", file.to_str().unwrap()).replace("TIDY", tidy.to_str().unwrap());
    let mut tree = start(&script);
    pid_in(&file).await;
    let ended = tree.end(Duration::ZERO, Duration::from_secs(5)).await.unwrap();
    assert_eq!((ended.asked, ended.status.code()), (true, Some(7)));
    assert_eq!(fs::read_to_string(tidy).unwrap(), "done\n");
}

#[tokio::test]
async fn dropping_kills_everything_at_once() {
    let dir = tempfile::tempdir().unwrap();
    let (inner, outer) = (dir.path().join("inner"), dir.path().join("outer"));
    let script = "trap '' TERM; setsid sh -c 'echo $$ > INNER; exec sleep 300' & echo $$ > OUTER; sleep 300; sleep 300";
    let script = script.replace("INNER", inner.to_str().unwrap()).replace("OUTER", outer.to_str().unwrap());
    let tree = start(&script);
    let pids = [pid_in(&inner).await, pid_in(&outer).await];
    drop(tree);
    for pid in pids {
        assert_gone(pid).await;
    }
}

#[tokio::test]
async fn a_kept_descriptor_reaches_the_program_and_no_other_does() {
    let (mut reader, writer) = std::io::pipe().unwrap();
    let writer = OwnedFd::from(writer);
    let number = writer.as_raw_fd();
    let script = format!("echo hi > /dev/fd/{number}; ls /proc/self/fd | wc -l");
    let args = [OsStr::new("-c"), OsStr::new(&script)];
    let env = [(OsString::from("PATH"), OsString::from("/usr/bin:/bin"))];
    let launch = Launch {
        program: Path::new(SHELL),
        args: &args,
        cwd: Path::new("/"),
        env: &env,
        keep: Some(&writer),
        printed: Printed::Read,
    };
    let mut tree = ProcessTree::start(&launch).unwrap();
    drop(writer);
    let (mut out, _) = tree.take_output().unwrap();
    tree.wait().await.unwrap();
    let mut text = String::new();
    std::io::Read::read_to_string(&mut reader, &mut text).unwrap();
    assert_eq!(text, "hi\n");
    let mut open = String::new();
    out.read_to_string(&mut open).await.unwrap();
    // In, out, err, the one that was kept, and the directory that `ls` reads.
    assert_eq!(open.trim(), "5");
    tree.end(Duration::ZERO, Duration::ZERO).await.unwrap();
}

/// Plays the engine when this variable has a script, in a second process of this very test.
const ENGINE: &str = "PELTON_TEST_ENGINE_SCRIPT";

#[cfg(target_os = "linux")]
#[tokio::test]
async fn an_engine_that_is_killed_takes_everything_with_it() {
    if let Some(script) = std::env::var_os(ENGINE) {
        let _tree = start(script.to_str().unwrap());
        sleep(Duration::from_secs(60)).await;
        return;
    }
    for script in [
        "echo $$ > FILE; exec sleep 300",
        "sh -c 'echo $$ > FILE; exec sleep 300'; true",
        "setsid sh -c \"trap '' TERM HUP; echo \\$\\$ > FILE; while :; do sleep 300; done\" & wait",
    ] {
        let dir = tempfile::tempdir().unwrap();
        let file = file_in(&dir);
        let mut engine = std::process::Command::new(std::env::current_exe().unwrap())
            .args(["--exact", "tools::process::tests::an_engine_that_is_killed_takes_everything_with_it"])
            .env(ENGINE, script.replace("FILE", file.to_str().unwrap()))
            .stdout(Stdio::null())
            .spawn()
            .unwrap();
        let pid = pid_in(&file).await;
        assert!(runs(pid), "{script}");
        engine.kill().unwrap();
        engine.wait().unwrap();
        assert_gone(pid).await;
    }
}

#[cfg(target_os = "linux")]
#[tokio::test]
async fn trees_that_end_together_are_looked_for_once_and_none_is_left() {
    // Other tests end trees, too, and each end asks for a look of its own: somewhere in so many tries nobody was in between.
    let shared = (0..1_000).any(|_| {
        let (one, other) = (moment(), moment());
        std::sync::Arc::ptr_eq(&census::since(one), &census::since(other))
    });
    assert!(shared, "what was signalled before a look is found by it");
    let before = census::since(moment());
    assert!(
        !std::sync::Arc::ptr_eq(&before, &census::since(moment())),
        "but not what was signalled behind it"
    );

    let dir = tempfile::tempdir().unwrap();
    let mut trees = Vec::new();
    let mut pids = Vec::new();
    for n in 0..8 {
        let file = dir.path().join(n.to_string());
        // Half of them have left their group, and all of them are deaf.
        let leave = if n % 2 == 0 { "setsid " } else { "" };
        let deaf = format!("trap '' TERM; echo $$ > {0}.tmp; mv {0}.tmp {0}; sleep 60", file.display());
        trees.push(start(&format!("{leave}sh -c \"{}\" & wait", deaf.replace('$', "\\$"))));
        pids.push(pid_in(&file).await);
    }
    let ends = trees.iter_mut().map(|tree| tree.end(Duration::ZERO, Duration::from_millis(10)));
    for ended in futures::future::join_all(ends).await {
        assert!(ended.unwrap().asked);
    }
    for pid in pids {
        assert_gone(pid).await;
    }
}

/// Numbers are given while they are gone through: each look at the newest finds the next of these.
fn those_found(newest: &[i32], look: impl Fn(i32) -> Option<i32>) -> Option<Vec<i32>> {
    let looks = std::cell::Cell::new(0);
    let newest_number = || {
        let at = looks.replace(looks.get() + 1);
        Some(newest[at.min(newest.len() - 1)])
    };
    linux::of_numbers(10, newest_number, look)
}

#[test]
fn whoever_is_started_during_the_look_is_found_and_nobody_twice() {
    // 12 started 13 and 14 when it had been looked at, and is gone; 11 has ended before.
    let found = those_found(&[12, 14, 15, 15], |number| (number != 11).then_some(number));
    assert_eq!(found, Some(vec![10, 12, 13, 14, 15]));
    // Nothing new: one round is enough.
    assert_eq!(those_found(&[11], Some), Some(vec![10, 11]));
    // The row began anew, at once or during the look; or it is long, or never ends.
    assert_eq!(those_found(&[9], Some), None);
    assert_eq!(those_found(&[12, 3], Some), None);
    assert_eq!(those_found(&[10_000], Some), None);
    let ever_more: Vec<i32> = (10..2_000).collect();
    assert_eq!(those_found(&ever_more, Some), None);
}
