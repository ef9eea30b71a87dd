//! Files that cannot be read, directories that cannot be written, disks that are full, and things that are no files: every
//! tool says so in words the model can use, nothing hangs, and nothing is left half-written.

use std::ffi::OsStr;
use std::fs;
use std::os::unix::ffi::OsStrExt;
use std::os::unix::fs::{PermissionsExt, chown, symlink};
use std::path::Path;
use std::process::Command;
use std::time::Duration;

use pelton_testkit::{Script, ScriptedModel, Step, pause, text, tool};
use serde_json::{Value, json};

use crate::place::{Commanded, Place, Ran, model, of_type};

const NOBODY: u32 = 65534;

fn is_root() -> bool {
    nix::unistd::geteuid().is_root()
}

/// The same command behind another one: with its words, surroundings and directory.
fn behind(place: &Place, launcher: &[&str], task: &Command) -> Command {
    let mut command = place.shell("");
    let mut outer = Command::new(launcher[0]);
    outer.args(&launcher[1..]).arg(task.get_program()).args(task.get_args()).env_clear();
    outer.envs(task.get_envs().filter_map(|(name, value)| Some((name, value?))));
    outer.current_dir(place.work());
    outer
        .stdin(std::process::Stdio::null())
        .stdout(std::process::Stdio::piped())
        .stderr(std::process::Stdio::piped());
    std::mem::swap(&mut command, &mut outer);
    command
}

/// The task as a user for whom rights mean something.
fn as_nobody(place: &Place, task: &Command) -> Command {
    if !is_root() {
        return behind(place, &["env"], task);
    }
    for dir in [place.home(), place.config(), place.work(), place.temp()] {
        chown(&dir, Some(NOBODY), Some(NOBODY)).unwrap();
    }
    fs::set_permissions(place.work().parent().unwrap(), fs::Permissions::from_mode(0o755)).unwrap();
    behind(place, &["setpriv", "--reuid=65534", "--regid=65534", "--clear-groups", "--"], task)
}

/// Whether the program can be started by somebody else: the directory it was built in may not be theirs to enter.
fn nobody_can_start() -> bool {
    let program = env!("CARGO_BIN_EXE_pelton");
    !is_root()
        || Command::new("setpriv")
            .args(["--reuid=65534", "--regid=65534", "--clear-groups", "--", program, "--version"])
            .output()
            .is_ok_and(|said| said.status.success())
}

/// One call of each answer, then an end.
fn calls(calls: impl IntoIterator<Item = (&'static str, Value)>) -> ScriptedModel {
    let script =
        calls.into_iter().fold(Script::new(), |script, (name, input)| script.reply([tool(name, input)]));
    model(script.reply([text("Done.")]))
}

/// What the calls brought: whether it is an error, and its words.
fn results(model: &ScriptedModel) -> Vec<(bool, String)> {
    let requests = model.requests();
    let messages = requests.last().unwrap().body["messages"].as_array().unwrap().clone();
    let blocks = messages.iter().filter_map(|message| message["content"].as_array()).flatten();
    let results = blocks.filter(|block| block["type"] == "tool_result");
    results
        .map(|block| {
            let words = match &block["content"] {
                Value::String(words) => words.clone(),
                other => {
                    let texts = other.as_array().unwrap().iter().filter_map(|part| part["text"].as_str());
                    texts.collect::<Vec<_>>().join("\n")
                }
            };
            (block["is_error"] == true, words)
        })
        .collect()
}

fn mode(path: &Path, mode: u32) {
    fs::set_permissions(path, fs::Permissions::from_mode(mode)).unwrap();
}

fn names_in(dir: &Path) -> Vec<String> {
    let mut names: Vec<String> = fs::read_dir(dir)
        .unwrap()
        .map(|entry| entry.unwrap().file_name().to_string_lossy().into_owned())
        .collect();
    names.sort();
    names
}

const ALL_TOOLS: &str = "Bash(*),Read,Edit,Write,NotebookEdit,Grep,Glob";

#[test]
fn what_a_user_may_not_read_or_write_every_tool_says_in_words() {
    if !nobody_can_start() {
        eprintln!("not run: another user cannot start the program that was built here");
        return;
    }
    let place = Place::new();
    let secret = place.put("secret.txt", "needle\n");
    let notebook =
        place.put("n.ipynb", "{\"cells\": [], \"metadata\": {}, \"nbformat\": 4, \"nbformat_minor\": 5}");
    let kept = place.put("closed/kept.txt", "old\n");
    place.put("open.txt", "needle\n");
    let locked =
        place.put("locked/deep/inner.txt", "needle\n").parent().unwrap().parent().unwrap().to_path_buf();
    mode(&locked, 0o000);
    mode(&secret, 0o000);
    mode(&notebook, 0o000);
    mode(&kept, 0o644);
    mode(kept.parent().unwrap(), 0o555);
    let model = calls([
        ("Read", json!({"file_path": secret})),
        ("Edit", json!({"file_path": secret, "old_string": "needle", "new_string": "x"})),
        ("Write", json!({"file_path": secret, "content": "x"})),
        ("NotebookEdit", json!({"notebook_path": notebook, "new_source": "x", "edit_mode": "insert"})),
        ("Write", json!({"file_path": place.work().join("closed/new.txt"), "content": "x"})),
        ("Read", json!({"file_path": kept})),
        ("Edit", json!({"file_path": kept, "old_string": "old", "new_string": "new"})),
        ("Bash", json!({"command": "cat secret.txt; echo x > closed/y"})),
        ("Grep", json!({"pattern": "needle"})),
        ("Glob", json!({"pattern": "**/*.txt"})),
        ("Grep", json!({"pattern": "needle", "path": locked})),
        ("Glob", json!({"pattern": "*", "path": locked})),
        ("Read", json!({"file_path": locked.join("deep/inner.txt")})),
        ("Write", json!({"file_path": locked.join("deep/new.txt"), "content": "x"})),
    ]);
    let task = place.task(&model, ["go", "--permission-mode", "acceptEdits", "--allowedTools", ALL_TOOLS]);
    let ran = as_nobody(&place, &task).run();
    assert_eq!(ran.code, Some(0), "{ran:?}");
    let results = results(&model);
    let expected = [true, true, true, true, true, false, true, true, false, false, true, true, true, true];
    let found: Vec<bool> = results.iter().map(|(is_error, _)| *is_error).collect();
    assert_eq!(found, expected, "{results:#?}");
    for (at, words) in
        [(0, "permission denied"), (4, "permission denied"), (6, "read-only"), (7, "permission denied")]
    {
        assert!(results[at].1.to_lowercase().contains(words), "{at}: {}", results[at].1);
    }
    assert!(results[8].1.contains("open.txt") && results[9].1.contains("secret.txt"), "{results:#?}");
    assert_eq!(fs::read_to_string(&kept).unwrap(), "old\n");
    assert_eq!(names_in(kept.parent().unwrap()), ["kept.txt"], "nothing lies about");
    mode(&secret, 0o600);
    assert_eq!(fs::read_to_string(&secret).unwrap(), "needle\n");
    for (at, words) in [
        (10, "cannot be searched: Permission denied"),
        (11, "cannot be searched: Permission denied"),
        (12, "Permission denied"),
        (13, "Permission denied"),
    ] {
        assert!(results[at].1.contains(words), "{at}: {}", results[at].1);
    }
    mode(kept.parent().unwrap(), 0o755);
    mode(&locked, 0o755);
    assert_eq!(names_in(&locked.join("deep")), ["inner.txt"]);
}

#[test]
fn on_a_disk_that_may_not_be_written_files_are_read_and_nothing_else() {
    let place = Place::new();
    let kept = place.put("kept.txt", "old\n");
    let model = calls([
        ("Read", json!({"file_path": kept})),
        ("Edit", json!({"file_path": kept, "old_string": "old", "new_string": "new"})),
        ("Write", json!({"file_path": place.work().join("new/new.txt"), "content": "x"})),
        ("Bash", json!({"command": "echo x > new; echo said"})),
        ("Grep", json!({"pattern": "old"})),
    ]);
    let task = place.task(&model, ["go", "--permission-mode", "acceptEdits", "--allowedTools", ALL_TOOLS]);
    let work = place.work();
    let closed = format!(
        "mount --bind '{0}' '{0}' && mount -o remount,bind,ro '{0}' && cd '{0}' && exec \"$@\"",
        work.display()
    );
    let Some(mut task) = with_mounts(&place, &closed, &task) else { return };
    let ran = task.run();
    assert_eq!(ran.code, Some(0), "{ran:?}");
    let results = results(&model);
    for at in [1, 2] {
        let (is_error, words) = &results[at];
        assert!(*is_error && words.to_lowercase().contains("read-only"), "{at}: {words}");
    }
    assert!(results[3].1.contains("Read-only file system") && results[3].1.contains("said"), "{results:#?}");
    assert!(results[0].1.contains("old") && results[4].1.contains("kept.txt"), "{results:#?}");
    assert_eq!(names_in(&work), ["kept.txt"]);
}

#[test]
fn files_that_change_while_they_are_read_are_answers_too() {
    let place = Place::new();
    let moving = place.put("moving.txt", "1\n");
    place.put(
        "job.sh",
        "while :; do seq 1 60000 > moving.txt; : > moving.txt; rm -f moving.txt; mkdir -p d && rmdir d; done",
    );
    let mut all = vec![("Bash", json!({"command": "sh job.sh", "run_in_background": true}))];
    for _ in 0..12 {
        all.push(("Read", json!({"file_path": moving})));
        all.push(("Read", json!({"file_path": moving, "offset": 30_000, "limit": 5})));
        all.push(("Grep", json!({"pattern": "59999$", "output_mode": "content"})));
        all.push(("Edit", json!({"file_path": moving, "old_string": "59999\n", "new_string": "x\n"})));
        all.push(("Glob", json!({"pattern": "**/*"})));
    }
    let count = all.len();
    let model = calls(all);
    let task = ["go", "--permission-mode", "acceptEdits", "--allowedTools", ALL_TOOLS];
    let ran: Ran = place.task(&model, task).run();
    assert_eq!(ran.code, Some(0), "{ran:?}");
    assert!(ran.took < Duration::from_secs(60), "{:?}", ran.took);
    let results = results(&model);
    assert_eq!(results.len(), count);
    assert!(results.iter().all(|(_, words)| !words.trim().is_empty()), "{results:#?}");
    let left: Vec<String> = names_in(&place.work())
        .into_iter()
        .filter(|name| !["d", "job.sh", "moving.txt"].contains(&&**name))
        .collect();
    assert_eq!(left, [""; 0], "nothing half-written lies about");
}

/// The task where a directory is a disk of this many kilobytes. `None` if nobody here may mount one.
fn on_small_disk(place: &Place, dir: &Path, kilobytes: u32, task: &Command) -> Option<Command> {
    let script = format!(
        "cp -a \"{0}\" \"{0}.before\" && mount -t tmpfs -o size={kilobytes}k tmpfs \"{0}\" && cp -a \"{0}.before/.\" \"{0}\" && \
         cd \"$PWD\" && \"$@\"; code=$?; rm -rf \"{0}.after\"; cp -a \"{0}\" \"{0}.after\"; exit $code",
        dir.display()
    );
    with_mounts(place, &script, task)
}

/// The task behind a script that mounts something and then starts `"$@"`. `None` if nobody here may mount.
fn with_mounts(place: &Place, script: &str, task: &Command) -> Option<Command> {
    let unshare: &[&str] = if is_root() { &["unshare", "-m"] } else { &["unshare", "-Urm"] };
    let can =
        Command::new(unshare[0]).args(&unshare[1..]).args(["mount", "-t", "tmpfs", "tmpfs", "/mnt"]).output();
    if !can.is_ok_and(|said| said.status.success()) {
        eprintln!("not run: no disk can be mounted here");
        return None;
    }
    let launcher: Vec<&str> = unshare.iter().copied().chain(["sh", "-c", script, "sh"]).collect();
    Some(behind(place, &launcher, task))
}

#[test]
fn on_a_full_disk_files_stay_as_they_were() {
    let place = Place::new();
    let kept = place.put("kept.txt", "old\n");
    let cells = "{\"cells\": [], \"metadata\": {}, \"nbformat\": 4, \"nbformat_minor\": 5}";
    let notebook = place.put("n.ipynb", cells);
    let large = "0123456789abcdef\n".repeat(5_000);
    let insert =
        json!({"notebook_path": notebook, "new_source": large, "edit_mode": "insert", "cell_type": "code"});
    let model = calls([
        ("Read", json!({"file_path": kept})),
        ("Edit", json!({"file_path": kept, "old_string": "old", "new_string": large})),
        ("Write", json!({"file_path": place.work().join("new.txt"), "content": large})),
        ("Bash", json!({"command": "head -c 1000000 /dev/zero > filled; echo said"})),
        ("Write", json!({"file_path": place.work().join("late.txt"), "content": large})),
        ("Read", json!({"file_path": kept})),
        ("Read", json!({"file_path": notebook})),
        ("NotebookEdit", insert),
    ]);
    let task = place.task(&model, ["go", "--permission-mode", "acceptEdits", "--allowedTools", ALL_TOOLS]);
    let Some(mut task) = on_small_disk(&place, &place.work(), 64, &task) else { return };
    let ran = task.run();
    assert_eq!(ran.code, Some(0), "{ran:?}");
    let results = results(&model);
    for at in [1, 2, 4, 7] {
        let (is_error, words) = &results[at];
        assert!(*is_error && words.contains("No space left"), "{at}: {words}");
    }
    assert!(results[3].1.contains("said") && results[5].1.contains("old"), "{results:#?}");
    let after = place.work().with_extension("after");
    assert_eq!(fs::read_to_string(after.join("kept.txt")).unwrap(), "old\n");
    assert_eq!(fs::read_to_string(after.join("n.ipynb")).unwrap(), cells);
    assert_eq!(names_in(&after), ["filled", "kept.txt", "n.ipynb"], "nothing lies about");
}

#[test]
fn a_record_that_cannot_grow_stops_the_run_before_the_next_call() {
    let place = Place::new();
    let long = "x".repeat(300_000);
    let model = calls([
        ("Bash", json!({"command": format!("echo one > one; : {long}")})),
        ("Bash", json!({"command": "echo two > two"})),
    ]);
    let task = place.task(&model, ["go", "--allowedTools", ALL_TOOLS]);
    let Some(mut task) = on_small_disk(&place, &place.config(), 200, &task) else { return };
    let ran = task.run();
    assert_ne!(ran.code, Some(0), "{ran:?}");
    assert!(!place.has("two") && !place.has("one"), "what cannot be recorded is not done");
    assert!(format!("{}{}", ran.out, ran.err).contains("No space left"), "{ran:?}");
}

#[test]
fn prompts_that_cannot_be_recorded_are_not_tried_again_for_ever() {
    let place = Place::new();
    let answer = [pause(Duration::from_millis(500)), text("word ".repeat(30_000))];
    let model = model(Script::new().step(Step::reply(answer).always()));
    let client = ["--input-format", "stream-json", "--output-format", "stream-json", "--verbose"];
    let mut task = place.pelton(client);
    task.asks(&model);
    let Some(mut task) = on_small_disk(&place, &place.config(), 64, &task) else { return };
    // Two of them wait while the answer to the first fills the disk.
    let line = |words: &str| {
        let message = json!({"role": "user", "content": words});
        format!("{}\n", json!({"type": "user", "priority": "later", "message": message}))
    };
    let ran = task.run_with_input(&["one", "two", "three"].map(line).concat());
    assert_eq!((ran.code, model.requests().len()), (Some(1), 1), "{ran:?}");
    let results = of_type(&ran.frames(), "result").len();
    assert!((1..=2).contains(&results), "{results} results for three prompts");
    assert!(ran.err.contains("No space left"), "{ran:?}");
}

#[test]
fn output_that_finds_no_room_is_cut_and_the_run_goes_on() {
    let place = Place::new();
    let model =
        calls([("Bash", json!({"command": "seq 1 200000"})), ("Bash", json!({"command": "echo two > two"}))]);
    let task = place.task(&model, ["go", "--allowedTools", ALL_TOOLS]);
    let Some(mut task) = on_small_disk(&place, &place.config(), 400, &task) else { return };
    let ran = task.run();
    assert_eq!(ran.code, Some(0), "{ran:?}");
    let results = results(&model);
    assert!(results[0].1.len() < 100_000 && results[0].1.contains("\n2\n"), "{}", results[0].1.len());
    assert!(place.has("two"), "{ran:?}");
}

fn odd_files(place: &Place) -> Vec<Value> {
    let work = place.work();
    nix::unistd::mkfifo(&work.join("fifo"), nix::sys::stat::Mode::S_IRWXU).unwrap();
    symlink("loop2", work.join("loop1")).unwrap();
    symlink("loop1", work.join("loop2")).unwrap();
    symlink("nowhere", work.join("dangling")).unwrap();
    let sparse = fs::File::create(work.join("sparse")).unwrap();
    sparse.set_len(5 * 1024 * 1024 * 1024).unwrap();
    fs::create_dir(work.join("dir")).unwrap();
    let _listener = std::os::unix::net::UnixListener::bind(work.join("socket")).unwrap();
    fs::write(work.join(OsStr::from_bytes(b"bad\xff.txt")), "needle\n").unwrap();
    fs::write(work.join("plain.txt"), "needle\n").unwrap();
    let inside = [
        "fifo",
        "loop1",
        "dangling",
        "sparse",
        "dir",
        "socket",
        "bad\u{fffd}.txt",
        "plain.txt/below",
        "",
        "a\0b",
    ];
    let mut paths: Vec<Value> = inside.iter().map(|name| json!(work.join(name))).collect();
    for path in
        ["/dev/zero", "/dev/tty", "/dev/null", "/proc/self/mem", "/proc/kmsg", "/dev/full", "\u{202e}"]
    {
        paths.push(json!(path));
    }
    paths.push(json!(format!("/{}", "x/".repeat(3000))));
    paths.push(json!("y".repeat(300)));
    paths
}

#[test]
fn what_is_no_ordinary_file_is_told_by_every_tool_and_nothing_waits_for_it() {
    odd_files_are_told(&Place::new(), |_, mut task| task.env("IS_SANDBOX", "1").run());
}

#[test]
fn what_is_no_ordinary_file_is_told_to_a_user_without_privileges_too() {
    if !nobody_can_start() {
        eprintln!("not run: another user cannot start the program that was built here");
        return;
    }
    odd_files_are_told(&Place::new(), |place, task| as_nobody(place, &task).run());
}

fn odd_files_are_told(place: &Place, run: impl FnOnce(&Place, Command) -> Ran) {
    let mut all: Vec<(&'static str, Value)> = Vec::new();
    for path in odd_files(place) {
        all.push(("Read", json!({"file_path": path})));
        all.push(("Edit", json!({"file_path": path, "old_string": "a", "new_string": "b"})));
        all.push(("NotebookEdit", json!({"notebook_path": path, "new_source": "x", "edit_mode": "insert"})));
        all.push(("Grep", json!({"pattern": "needle", "path": path})));
        all.push(("Glob", json!({"pattern": "*", "path": path})));
        if !path.as_str().is_some_and(|path| path.starts_with("/dev") || path.starts_with("/proc")) {
            all.push(("Write", json!({"file_path": path, "content": "x"})));
        }
    }
    all.push(("Grep", json!({"pattern": "needle"})));
    let count = all.len();
    let model = calls(all);
    let words = ["go", "--dangerously-skip-permissions"];
    let ran = run(place, place.task(&model, words));
    assert_eq!(ran.code, Some(0), "{ran:?}");
    assert!(ran.took < Duration::from_secs(60), "{:?}", ran.took);
    let results = results(&model);
    assert_eq!(results.len(), count);
    assert!(results.iter().all(|(_, words)| !words.is_empty() && words.len() < 100_000));
    let (is_error, found) = results.last().unwrap();
    assert!(!is_error && found.contains("plain.txt"), "{found}");
    assert!(fs::symlink_metadata(place.work().join("loop1")).unwrap().is_symlink(), "links stay links");
    assert!(std::os::unix::fs::FileTypeExt::is_fifo(
        &fs::symlink_metadata(place.work().join("fifo")).unwrap().file_type()
    ));
}

#[test]
fn odd_contents_and_views_into_the_kernel_are_told() {
    let place = Place::new();
    let one_line = place.put("one-line.txt", &"y".repeat(30_000_000));
    let bytes = place.put("bytes.txt", "");
    fs::write(&bytes, (0..=255u8).cycle().take(100_000).collect::<Vec<_>>()).unwrap();
    let mixed = place.put("mixed.txt", "");
    fs::write(&mixed, b"one\r\ntwo\nthree \xff\xfe\r\n").unwrap();
    let edit = |path: &Path| ("Edit", json!({"file_path": path, "old_string": "two", "new_string": "2"}));
    let read = |path: &Path| ("Read", json!({"file_path": path}));
    let model = calls([
        read(&one_line),
        edit(&one_line),
        read(&bytes),
        edit(&bytes),
        read(&mixed),
        edit(&mixed),
        read(Path::new("/proc/cpuinfo")),
        read(Path::new("/proc/self/fd/0")),
        ("Grep", json!({"pattern": "x", "path": "/proc/self/fd/0"})),
    ]);
    let ran = place.task(&model, ["go", "--dangerously-skip-permissions"]).env("IS_SANDBOX", "1").run();
    assert_eq!(ran.code, Some(0), "{ran:?}");
    let results = results(&model);
    let found: Vec<bool> = results.iter().map(|(is_error, _)| *is_error).collect();
    assert_eq!(found, [false, true, true, true, false, false, true, true, true], "{results:#?}");
    assert!(results.iter().all(|(_, words)| !words.is_empty() && words.len() < 100_000));
    for (at, words) in
        [(1, "is not in it"), (2, "binary"), (6, "view into the kernel"), (7, "cannot be followed")]
    {
        assert!(results[at].1.contains(words), "{at}: {}", results[at].1);
    }
    assert_eq!(fs::read(&mixed).unwrap(), b"one\r\n2\nthree \xff\xfe\r\n", "not a byte more");
}

/// Inputs that no tool can use, and what has to be said of each.
#[test]
fn inputs_of_the_wrong_kind_are_told_field_by_field_and_nothing_is_made() {
    let agent = |field: &str, value: Value| {
        let mut input = json!({"description": "look", "prompt": "Look."});
        input[field] = value;
        ("Agent", input)
    };
    let table: Vec<((&'static str, Value), &str)> = vec![
        (("Nope", json!({})), "Nope"),
        (("Read", json!({})), "`file_path`"),
        (("Read", json!({"file_path": 5})), "`file_path`"),
        (("Read", json!({"file_path": "a\u{0}b"})), "NUL"),
        (("Read", json!({"file_path": "~/notes.txt"})), "`~` is not expanded"),
        (("Write", json!({"file_path": "~/notes.txt", "content": "x"})), "`~` is not expanded"),
        (("Write", json!({"file_path": "~", "content": "x"})), "`~` is not expanded"),
        (("Write", json!({"file_path": "made", "content": 5})), "`content`"),
        (("Write", json!({"file_path": "made", "content": "x", "mode": 1})), "`mode`"),
        (("Edit", json!({"file_path": "~/x", "old_string": "", "new_string": "x"})), "`~` is not expanded"),
        (("Edit", json!({"file_path": "a", "old_string": "b"})), "`new_string`"),
        (("Glob", json!({"pattern": "*", "path": "~"})), "`~` is not expanded"),
        (("Grep", json!({"pattern": "x", "path": "~/x"})), "`~` is not expanded"),
        (("Grep", json!({"pattern": "x", "-A": -1})), "`-A`"),
        (("NotebookEdit", json!({"notebook_path": "~/a.ipynb", "new_source": "x"})), "`~` is not expanded"),
        (("Bash", json!({"command": "touch made", "timeout": "soon"})), "`timeout`"),
        (("Bash", json!({"command": "touch made", "run_in_background": "maybe"})), "`run_in_background`"),
        (("TaskOutput", json!({"task_id": 5})), "`task_id`"),
        (("TaskStop", json!({"task_id": "none"})), "none"),
        (("WebFetch", json!({"url": 5, "prompt": "x"})), "`url`"),
        (("Skill", json!({"skill": 5})), "`skill`"),
        (agent("run_in_background", json!("maybe")), "`run_in_background`"),
        (agent("run_in_background", json!({})), "`run_in_background`"),
        (agent("name", json!(5)), "`name`"),
        (agent("isolation", json!(7)), "`isolation`"),
        (agent("isolation", json!("moon")), "`isolation`"),
        (agent("effort", json!("gigantic")), "`effort`"),
    ];
    let place = Place::new();
    // Between them a call that can be made: too many in a row that cannot end the run.
    let between = || ("Glob", json!({"pattern": "*"}));
    let model = calls(table.iter().flat_map(|(call, _)| [call.clone(), between()]));
    let ran = place.task(&model, ["go", "--permission-mode", "acceptEdits", "--allowedTools", "Bash"]).run();
    assert_eq!(ran.code, Some(0), "{ran:?}");
    let results = results(&model);
    assert_eq!(results.len(), 2 * table.len());
    for (((tool, input), words), (is_error, said)) in table.iter().zip(results.iter().step_by(2)) {
        assert!(*is_error && said.contains(words), "{tool} {input}: {said}");
    }
    assert_eq!(names_in(&place.work()), Vec::<String>::new());
}

#[test]
fn commands_get_no_keys_of_clouds_where_that_is_wanted_and_do_not_find_them_elsewhere() {
    const KEY: &str = "wJalrXUtnFEMI-K7MDENG-bPxRfiCY";
    let command = json!({"command": "env | grep -c KEY=; env | grep ^AWS_; tr '\\0' '\\n' < /proc/$PPID/environ | grep -c wJalr"});
    let told = |scrub: &str| {
        let place = Place::new();
        let model = calls([("Bash", command.clone())]);
        let mut task = place.task(&model, ["go", "--allowedTools", "Bash"]);
        task.env("AWS_SECRET_ACCESS_KEY", KEY)
            .env("AWS_REGION", "eu-west-1")
            .env("OTHER_KEY", "0123456789abcdefghijklmn");
        task.env("CLAUDE_CODE_SUBPROCESS_ENV_SCRUB", scrub);
        let ran = if nobody_can_start() { as_nobody(&place, &task).run() } else { task.run() };
        assert_eq!(ran.code, Some(0), "{ran:?}");
        let record: String =
            place.transcripts().iter().map(|file| std::fs::read_to_string(file).unwrap()).collect();
        assert!(!record.contains(KEY), "records are rid of it either way");
        results(&model).remove(0).1
    };
    let open = told("0");
    assert!(
        open.contains(&format!("AWS_SECRET_ACCESS_KEY={KEY}")) && open.contains("AWS_REGION=eu-west-1"),
        "{open}"
    );
    let closed = told("1");
    assert!(closed.starts_with("1\n") || closed.contains("\n1\n"), "keys of others stay: {closed}");
    assert!(!closed.contains("AWS_SECRET") && closed.contains("AWS_REGION=eu-west-1"), "{closed}");
    // Root reads everything.
    if nobody_can_start() || !is_root() {
        assert!(closed.contains("Permission denied"), "{closed}");
    }
}

#[test]
fn a_command_gets_no_more_memory_than_it_may_have() {
    let place = Place::new();
    // A variable of 400 MB.
    let large = json!({"command": "x=$(head -c 400000000 /dev/zero | tr '\\0' x); echo ${#x}"});
    let small = json!({"command": "echo small; ulimit -d"});
    let model = calls([("Bash", large), ("Bash", small)]);
    let mut task = place.task(&model, ["go", "--allowedTools", "Bash"]);
    let ran = task.env("CLAUDE_CODE_TOOL_MEMORY_LIMIT", "100MB").run();
    assert_eq!(ran.code, Some(0), "{ran:?}");
    let results = results(&model);
    assert!(results[0].0 && results[0].1.contains("cannot allocate"), "{results:?}");
    assert_eq!(results[1].1, "small\n102400");
    for (wrong, words) in [("much", "is no size"), ("1KB", "too little"), ("-1", "is no size")] {
        let model = calls([]);
        let ran = place.task(&model, ["go"]).env("CLAUDE_CODE_TOOL_MEMORY_LIMIT", wrong).run();
        ran.failed(1, &["CLAUDE_CODE_TOOL_MEMORY_LIMIT", words]);
    }
}

#[test]
fn directories_that_a_command_closed_are_opened_again_by_a_rewind() {
    if !nobody_can_start() {
        eprintln!("not run: another user cannot start the program that was built here");
        return;
    }
    let place = Place::new();
    for name in ["shut/in.txt", "shut/deep/in.txt", "fixed/in.txt"] {
        let file = place.put(name, "one\n");
        for path in file.ancestors().take_while(|path| *path != place.work()) {
            if is_root() {
                chown(path, Some(NOBODY), Some(NOBODY)).unwrap();
            }
        }
    }
    mode(&place.work().join("fixed"), 0o555);
    let model = calls([
        ("Bash", json!({"command": "echo two > shut/in.txt"})),
        ("Bash", json!({"command": "chmod 000 shut"})),
        (
            "Bash",
            json!({"command": "chmod 755 fixed; echo two > fixed/in.txt; echo new > fixed/new.txt; chmod 500 fixed"}),
        ),
        ("Bash", json!({"command": "mkdir made; echo new > made/new.txt; chmod 555 made"})),
    ]);
    as_nobody(&place, &place.task(&model, ["Go.", "--allowedTools", ALL_TOOLS])).run().well();
    let session = place.transcripts()[0].file_stem().unwrap().to_str().unwrap().to_owned();
    let modes = || {
        ["shut", "fixed"]
            .map(|name| fs::metadata(place.work().join(name)).unwrap().permissions().mode() & 0o777)
    };
    assert_eq!(modes(), [0o000, 0o500]);
    let rewind = |words: &[&str]| {
        let words = ["rewind", &session].into_iter().chain(words.iter().copied());
        as_nobody(&place, &place.pelton(words)).run().well().to_owned()
    };
    let preview = rewind(&["--dry-run"]);
    for name in [
        "shut +0 -0",
        "shut/in.txt +1 -1",
        "fixed +0 -0",
        "fixed/in.txt +1 -1",
        "fixed/new.txt +0 -1",
        "made/new.txt +0 -1",
    ] {
        assert!(preview.contains(&format!("{}/{name}", place.work().display())), "{name}: {preview}");
    }
    assert!(preview.contains("shut (cannot be looked into)"), "{preview}");
    assert_eq!(modes(), [0o000, 0o500], "a preview changes nothing");
    rewind(&[]);
    assert_eq!(modes(), [0o755, 0o555]);
    assert_eq!(
        [place.read("shut/in.txt"), place.read("shut/deep/in.txt"), place.read("fixed/in.txt")],
        ["one\n"; 3]
    );
    assert!(!place.has("made") && !place.has("fixed/new.txt"));
    rewind(&["--undo"]);
    assert_eq!(modes(), [0o000, 0o500]);
    assert!(place.has("made/new.txt"));
}
