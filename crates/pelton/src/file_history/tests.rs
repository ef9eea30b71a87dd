use std::collections::BTreeMap;
use std::fs;
use std::os::unix::fs::{MetadataExt, PermissionsExt, symlink};
use std::time::Duration;

use pelton_model::RealWorld;
use proptest::prelude::*;
use tempfile::TempDir;

use super::*;

mod dirs;

/// A session in a directory of its own.
struct Stage {
    home: TempDir,
    history: FileHistory,
}

impl Stage {
    fn new() -> Self {
        Self::with_limits(FileHistoryLimits::default())
    }

    fn with_limits(limits: FileHistoryLimits) -> Self {
        let home = tempfile::tempdir().unwrap();
        fs::create_dir(home.path().join("work")).unwrap();
        let history = FileHistory::of_session(
            &home.path().join("config"),
            Uuid::nil(),
            limits,
            Arc::new(RealWorld::new()),
        );
        Self { home, history }
    }

    fn work(&self) -> PathBuf {
        fs::canonicalize(self.home.path()).unwrap().join("work")
    }

    fn path(&self, name: &str) -> PathBuf {
        self.work().join(name)
    }

    fn put(&self, name: &str, content: &str) {
        let path = self.path(name);
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        fs::write(path, content).unwrap();
    }

    /// The process is gone, and another one goes on.
    fn restart(&mut self) {
        let Shared { config_dir, limits, world, .. } = &*self.history.0;
        self.history = FileHistory::of_session(config_dir, Uuid::nil(), limits.clone(), world.clone());
    }

    async fn says(&self, n: u128) -> Uuid {
        let id = Uuid::from_u128(n);
        assert_eq!(self.history.mark(id, Beside::Nothing).await, None);
        id
    }

    /// The agent runs a command.
    async fn shell(&self, work: impl FnOnce()) {
        assert_eq!(self.history.begin("shell".to_owned(), Scope::Trees(vec![self.work()])).await, None);
        work();
        assert_eq!(self.history.end("shell".to_owned(), Beside::Nothing).await, None);
    }

    /// The agent uses a file tool.
    async fn edit(&self, name: &str, content: &str) {
        assert_eq!(self.history.begin("edit".to_owned(), Scope::File(self.path(name))).await, None);
        self.put(name, content);
        assert_eq!(self.history.end("edit".to_owned(), Beside::Nothing).await, None);
    }

    /// Everything there is.
    fn all(&self) -> BTreeMap<PathBuf, String> {
        let mut all = BTreeMap::new();
        let mut dirs = vec![self.work()];
        while let Some(dir) = dirs.pop() {
            for entry in fs::read_dir(dir).unwrap() {
                let path = entry.unwrap().path();
                let about = fs::symlink_metadata(&path).unwrap();
                let said = if about.is_dir() {
                    dirs.push(path.clone());
                    format!("dir {:o}", about.mode() & 0o7777)
                } else if about.is_symlink() {
                    format!("-> {}", fs::read_link(&path).unwrap().display())
                } else {
                    format!("{:o} {:?}", about.mode() & 0o7777, fs::read(&path).unwrap())
                };
                all.insert(path, said);
            }
        }
        all
    }
}

fn left(rewound: &Rewound) -> Vec<String> {
    let left = rewound.files.iter().filter_map(|file| {
        let name = file.path.file_name()?.to_str()?;
        Some(format!("{name} {}", file.left.as_ref()?))
    });
    left.collect()
}

#[tokio::test]
async fn pit_S6_what_the_agent_did_is_undone_exactly_and_that_is_undone_too() {
    let mut stage = Stage::new();
    stage.put("kept.txt", "one\ntwo\n");
    stage.put("deleted.txt", "gone\n");
    stage.put("old/a.txt", "a\n");
    stage.put("old/deep/b.txt", "b\n");
    stage.put("script", "#!/bin/sh\n");
    stage.put("users.txt", "mine\n");
    stage.put("link-target", "");
    symlink("kept.txt", stage.path("link")).unwrap();
    let before = stage.all();

    let first = stage.says(1).await;
    stage.edit("kept.txt", "one\n2\n").await;
    stage.edit("new/dir/file.txt", "made\n").await;
    stage
        .shell(|| {
            fs::remove_file(stage.path("deleted.txt")).unwrap();
            fs::rename(stage.path("old"), stage.path("renamed")).unwrap();
            fs::set_permissions(stage.path("script"), fs::Permissions::from_mode(0o755)).unwrap();
            fs::remove_file(stage.path("link")).unwrap();
            symlink("link-target", stage.path("link")).unwrap();
            stage.put("made/by/command", "x\n");
        })
        .await;
    let middle = stage.all();
    stage.restart();

    // The user works on other files.
    stage.put("users.txt", "mine, and more\n");
    stage.put("users-new.txt", "new\n");
    stage.put("made/by/user", "theirs\n");
    let second = stage.says(2).await;
    stage
        .shell(|| {
            stage.put("kept.txt", "one\n2\n3\n");
            fs::remove_dir_all(stage.path("renamed")).unwrap();
            stage.put("renamed", "a file now\n");
        })
        .await;
    let after = stage.all();
    assert_eq!(stage.history.messages().unwrap(), [first, second]);

    let with_users = |mut files: BTreeMap<PathBuf, String>| {
        let theirs = ["users.txt", "users-new.txt", "made", "made/by", "made/by/user"];
        files.extend(theirs.iter().map(|name| (stage.path(name), after[&stage.path(name)].clone())));
        files
    };
    let preview = stage.history.preview(first).unwrap();
    let kept = preview.files.iter().find(|file| file.path == stage.path("kept.txt")).unwrap();
    assert_eq!((kept.kind, kept.insertions, kept.deletions), (RewoundKind::Restored, 1, 2));
    assert_eq!(stage.all(), after, "a preview changes nothing");

    let rewound = stage.history.rewind(second, Conflicts::Leave).unwrap();
    assert_eq!(left(&rewound), [""; 0]);
    assert_eq!(stage.all(), with_users(middle));
    stage.history.undo(Conflicts::Leave).unwrap();
    assert_eq!(stage.all(), after);
    stage.history.rewind(first, Conflicts::Leave).unwrap();
    assert_eq!(stage.all(), with_users(before.clone()));
    stage.history.undo(Conflicts::Leave).unwrap();
    assert_eq!(stage.all(), after);
    assert!(matches!(stage.history.undo(Conflicts::Leave), Err(HistoryError::NothingToUndo)));

    // And once more, by another process.
    let mut again = Stage { home: stage.home, history: stage.history };
    again.restart();
    again.history.rewind(first, Conflicts::Leave).unwrap();
    assert_eq!(again.all().get(&again.path("old/deep/b.txt")), before.get(&again.path("old/deep/b.txt")));
}

#[tokio::test]
async fn what_others_changed_is_left_alone_unless_they_want_it() {
    let stage = Stage::new();
    for name in ["since", "between", "only"] {
        stage.put(name, "0\n");
    }
    let message = stage.says(1).await;
    stage.edit("since", "agent\n").await;
    stage.edit("between", "agent\n").await;
    stage.shell(|| stage.put("only", "agent\n")).await;
    stage.put("since", "user\n");
    stage.put("between", "user\n");
    stage.edit("between", "agent again\n").await;

    let rewound = stage.history.rewind(message, Conflicts::Leave).unwrap();
    let words =
        ["between was changed by somebody else in between", "since was changed by somebody else afterwards"];
    assert_eq!(left(&rewound), words);
    let content = |name: &str| fs::read_to_string(stage.path(name)).unwrap();
    assert_eq!([content("since"), content("between"), content("only")], ["user\n", "agent again\n", "0\n"]);

    stage.history.rewind(message, Conflicts::Overwrite).unwrap();
    assert_eq!([content("since"), content("between"), content("only")], ["0\n", "0\n", "0\n"]);
    stage.history.undo(Conflicts::Leave).unwrap();
    assert_eq!([content("since"), content("between"), content("only")], ["user\n", "agent again\n", "0\n"]);
    assert!(matches!(
        stage.history.rewind(Uuid::from_u128(9), Conflicts::Leave),
        Err(HistoryError::NoSuchMessage)
    ));
}

#[tokio::test]
async fn what_is_not_covered_is_named_and_never_removed() {
    let limits = FileHistoryLimits { file_bytes_max: 100, total_bytes_max: 2_000, kept_for: None };
    let stage = Stage::with_limits(limits);
    stage.put(".gitignore", "ignored/\n");
    stage.put("ignored/file", "x");
    stage.put(".git/HEAD", "x");
    stage.put("large", &"x".repeat(101));
    let message = stage.says(1).await;
    tokio::time::sleep(Duration::from_millis(50)).await;
    stage
        .shell(|| {
            stage.put("large", &"y".repeat(102));
            stage.put("new-large", &"z".repeat(5_000));
            stage.put("small", "s");
            // From here on it is seen, but it was there before.
            stage.put(".gitignore", "");
        })
        .await;
    let rewound = stage.history.rewind(message, Conflicts::Leave).unwrap();
    let named = |name: &str| {
        let found = rewound.uncovered.iter().find(|(path, _)| *path == stage.path(name));
        found.map(|(_, why)| why.as_str()).unwrap_or_default()
    };
    assert!(named("large").contains("changed, but too large"), "{rewound:?}");
    let times = rewound.uncovered.iter().filter(|(path, _)| *path == stage.path("large")).count();
    assert_eq!(times, 1, "{rewound:?}");
    assert_eq!(named(".git"), "the store of version control");
    assert_eq!(fs::read(stage.path("large")).unwrap().len(), 102, "it cannot be brought back");
    assert_eq!(fs::read(stage.path("ignored/file")).unwrap(), b"x", "it was there before");
    assert!(!stage.path("small").exists());
    assert_eq!(fs::read(stage.path(".gitignore")).unwrap(), b"ignored/\n");
}

#[tokio::test]
async fn what_runs_in_the_background_is_the_agents_as_long_as_it_runs() {
    let stage = Stage::new();
    stage.put("a", "0");
    stage.put("b", "0");
    let first = stage.says(1).await;
    stage.history.begin("shell".to_owned(), Scope::Trees(vec![stage.work()])).await;
    stage.history.end("shell".to_owned(), Beside::Commands).await;
    stage.put("a", "by the command");
    let second = Uuid::from_u128(2);
    stage.history.mark(second, Beside::Commands).await;
    stage.put("b", "by the command");
    stage.shell(|| {}).await;
    // It has ended: this is somebody else's.
    stage.put("c", "by the user");
    stage.shell(|| {}).await;
    let content = |name: &str| fs::read_to_string(stage.path(name)).unwrap();
    stage.history.rewind(second, Conflicts::Leave).unwrap();
    assert_eq!([content("a"), content("b"), content("c")], ["by the command", "0", "by the user"]);
    stage.history.rewind(first, Conflicts::Leave).unwrap();
    assert_eq!([content("a"), content("b"), content("c")], ["0", "0", "by the user"]);
}

#[tokio::test]
async fn a_history_that_cannot_be_written_is_told_once() {
    let stage = Stage::new();
    fs::write(stage.home.path().join("config"), "a file where a folder should be").unwrap();
    let told = stage.history.mark(Uuid::from_u128(1), Beside::Nothing).await.unwrap();
    assert!(told.contains("cannot be kept"), "{told}");
    stage.edit("a", "x").await;
    assert!(matches!(stage.history.messages(), Err(HistoryError::None)));
}

#[tokio::test]
async fn it_is_the_users_alone_and_one_process_writes() {
    let stage = Stage::new();
    stage.says(1).await;
    let dir = &stage.history.0.dir;
    assert_eq!(fs::metadata(dir).unwrap().mode() & 0o777, 0o700);
    for name in ["journal.jsonl", "contents"] {
        assert_eq!(fs::metadata(dir.join(name)).unwrap().mode() & 0o777, 0o600);
    }
    let Shared { config_dir, limits, world, .. } = &*stage.history.0;
    let other = FileHistory::of_session(config_dir, Uuid::nil(), limits.clone(), world.clone());
    assert!(matches!(other.messages(), Err(HistoryError::Busy)));
}

/// However much of it got to the disk, it opens, and going back never makes anything of what it does not know.
#[tokio::test]
async fn pit_S6_a_history_cut_anywhere_still_goes_back() {
    let mut stage = Stage::new();
    stage.put("file", "0\n");
    stage.put("other", "0\n");
    let message = stage.says(1).await;
    stage.edit("file", "1\n").await;
    stage.shell(|| stage.put("other", "1\n")).await;
    let dir = stage.history.0.dir.clone();
    let journal = fs::read(dir.join("journal.jsonl")).unwrap();
    for cut in (0..journal.len()).step_by(7).chain([journal.len()]) {
        stage.put("file", "1\n");
        stage.put("other", "1\n");
        stage.history = Stage::new().history;
        fs::write(dir.join("journal.jsonl"), &journal[..cut]).unwrap();
        let config_dir = stage.home.path().join("config");
        let world = Arc::new(RealWorld::new());
        stage.history =
            FileHistory::of_session(&config_dir, Uuid::nil(), FileHistoryLimits::default(), world);
        match stage.history.rewind(message, Conflicts::Leave) {
            Ok(_) | Err(HistoryError::NoSuchMessage) => {}
            Err(error) => panic!("cut at {cut}: {error}"),
        }
        for name in ["file", "other"] {
            let content = fs::read_to_string(stage.path(name)).unwrap();
            assert!(["0\n", "1\n"].contains(&content.as_str()), "cut at {cut}: {name} is {content:?}");
        }
        let whole = [("file", "0\n"), ("other", "0\n")];
        if cut == journal.len() {
            assert!(
                whole.iter().all(|(name, content)| fs::read_to_string(stage.path(name)).unwrap() == *content)
            );
        }
    }
}

#[derive(Debug, Clone)]
enum Deed {
    Write(usize, u8),
    Remove(usize),
    Rename(usize, usize),
    /// Another mode for the directory of a name.
    Mode(usize, u32),
    Say,
}

fn deed() -> impl Strategy<Value = Deed> {
    prop_oneof![
        4 => (0..NAMES.len(), any::<u8>()).prop_map(|(name, content)| Deed::Write(name, content)),
        2 => (0..NAMES.len()).prop_map(Deed::Remove),
        1 => (0..NAMES.len(), 0..NAMES.len()).prop_map(|(from, to)| Deed::Rename(from, to)),
        1 => (0..NAMES.len(), prop::sample::select(vec![0o755, 0o700, 0o2775, 0o1777]))
            .prop_map(|(name, mode)| Deed::Mode(name, mode)),
        1 => Just(Deed::Say),
    ]
}

const NAMES: [&str; 6] = ["a", "b", "d/a", "d/e/b", "f/a", "g"];

fn do_it(stage: &Stage, deed: &Deed) {
    // What does not work does nothing: a directory in the way, or nothing there.
    match deed {
        Deed::Write(name, content) => {
            let path = stage.path(NAMES[*name]);
            let _ = fs::create_dir_all(path.parent().unwrap()).and_then(|()| fs::write(path, [*content]));
        }
        Deed::Remove(name) => {
            let path = stage.path(NAMES[*name]);
            let _ = fs::remove_file(path);
        }
        Deed::Rename(from, to) => {
            let _ = fs::rename(stage.path(NAMES[*from]), stage.path(NAMES[*to]));
        }
        Deed::Mode(name, mode) => {
            let path = stage.path(NAMES[*name]);
            let dir = path.parent().unwrap();
            let _ = fs::set_permissions(dir, fs::Permissions::from_mode(*mode));
        }
        Deed::Say => {}
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(24))]

    /// Whatever commands and file tools did, every message can be gone back to, and back again.
    #[test]
    fn every_message_is_a_way_back(deeds in prop::collection::vec((deed(), any::<bool>()), 1..14)) {
        let runtime = tokio::runtime::Builder::new_current_thread().build().unwrap();
        runtime.block_on(async {
            let stage = Stage::new();
            stage.put("a", "first");
            let mut said = vec![(stage.says(1).await, stage.all())];
            for (n, (deed, by_command)) in deeds.iter().enumerate() {
                match deed {
                    Deed::Say => said.push((stage.says(n as u128 + 2).await, stage.all())),
                    Deed::Write(name, _) if !by_command => {
                        let path = stage.path(NAMES[*name]);
                        stage.history.begin("edit".to_owned(), Scope::File(path)).await;
                        do_it(&stage, deed);
                        stage.history.end("edit".to_owned(), Beside::Nothing).await;
                    }
                    _ => stage.shell(|| do_it(&stage, deed)).await,
                }
            }
            let last = stage.all();
            for (message, files) in said.iter().rev() {
                stage.history.rewind(*message, Conflicts::Leave).unwrap();
                assert_eq!(&stage.all(), files, "{deeds:?}");
                stage.history.undo(Conflicts::Leave).unwrap();
                assert_eq!(stage.all(), last, "{deeds:?}");
            }
        });
    }
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Who {
    User,
    Command,
    Tool,
}

fn who() -> impl Strategy<Value = Who> {
    prop::sample::select(vec![Who::User, Who::Command, Who::Tool])
}

/// What the agent did to a name.
#[derive(Debug, Clone, Default)]
struct OfAgent {
    /// What it found there each time.
    found: Vec<Option<Vec<u8>>>,
    /// What it left there the last time.
    left: Option<Vec<u8>>,
}

/// The names, and what is there under each.
fn named(stage: &Stage) -> Vec<Option<Vec<u8>>> {
    NAMES.iter().map(|name| fs::read(stage.path(name)).ok()).collect()
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(48))]

    /// However the user's work and the agent's are mixed: what only the agent touched is as it was, what the user made last is
    /// never lost, and what was undone can be had back.
    #[test]
    fn pit_S6_whoever_did_what_the_users_files_stay_the_users(
        deeds in prop::collection::vec((deed(), who()), 1..14),
    ) {
        let runtime = tokio::runtime::Builder::new_current_thread().build().unwrap();
        runtime.block_on(async {
            let stage = Stage::new();
            stage.put("a", "first");
            stage.put("d/a", "second");
            let start = stage.says(1).await;
            let before = named(&stage);
            // By name, what the user left there the last time they touched it.
            let mut users: Vec<Option<Option<Vec<u8>>>> = vec![None; NAMES.len()];
            let mut agents: Vec<OfAgent> = vec![OfAgent::default(); NAMES.len()];
            for (deed, who) in &deeds {
                let then = named(&stage);
                match (who, deed) {
                    (_, Deed::Say) => {}
                    (Who::User, _) => {
                        do_it(&stage, deed);
                        for (at, now) in named(&stage).into_iter().enumerate() {
                            if now != then[at] {
                                users[at] = Some(now);
                            }
                        }
                    }
                    (Who::Tool, Deed::Write(name, _)) => {
                        let path = stage.path(NAMES[*name]);
                        stage.history.begin("edit".to_owned(), Scope::File(path)).await;
                        do_it(&stage, deed);
                        stage.history.end("edit".to_owned(), Beside::Nothing).await;
                    }
                    (Who::Command | Who::Tool, _) => stage.shell(|| do_it(&stage, deed)).await,
                }
                if *who != Who::User {
                    for (at, now) in named(&stage).into_iter().enumerate().filter(|(at, now)| *now != then[*at]) {
                        agents[at].found.push(then[at].clone());
                        agents[at].left = now;
                    }
                }
            }
            let (last, last_named) = (stage.all(), named(&stage));
            let preview = stage.history.preview(start).unwrap();
            assert_eq!(stage.all(), last, "a preview changes nothing: {deeds:?}");
            let rewound = stage.history.rewind(start, Conflicts::Leave).unwrap();
            assert_eq!(left(&preview), left(&rewound), "{deeds:?}");
            for (at, now) in named(&stage).into_iter().enumerate() {
                let name = NAMES[at];
                match &users[at] {
                    None => assert_eq!(now, before[at], "{name} was the agent's alone: {deeds:?}"),
                    Some(users) => {
                        // What the user brought back to what the agent had left is the agent's again.
                        let OfAgent { found, left } = &agents[at];
                        let is_agents = *left == last_named[at] && found.contains(&now);
                        assert!(
                            now == last_named[at] || now == *users || is_agents,
                            "{name} is neither as it was left nor as the user made it: {deeds:?}"
                        );
                    }
                }
            }
            stage.history.undo(Conflicts::Leave).unwrap();
            assert_eq!(stage.all(), last, "{deeds:?}");
        });
    }
}

/// How long a command waits for its history in a large tree. A measurement: `cargo test --release -- --ignored --nocapture`.
#[tokio::test]
#[ignore = "makes fifty thousand files"]
async fn fifty_thousand_files() {
    let stage = Stage::new();
    for n in 0..50_000 {
        stage.put(&format!("d{}/e{}/f{n}", n % 50, n % 1_000), &format!("file {n}\n"));
    }
    stage.says(1).await;
    for round in 0..5 {
        tokio::time::sleep(Duration::from_millis(300)).await;
        let started = std::time::Instant::now();
        stage.shell(|| stage.put("d1/e1/f1", &round.to_string())).await;
        println!("round {round}: {:?}", started.elapsed());
    }
}

#[tokio::test]
async fn what_others_do_between_commands_is_theirs_wherever_it_happens() {
    // After a few commands the trees are listened to, and not looked at again unless something was heard.
    type Deed = fn(&Stage);
    let others: [(&str, Deed); 8] = [
        ("content", |stage| stage.put("a/one", "theirs\n")),
        ("a new file", |stage| stage.put("a/new", "theirs\n")),
        ("a new directory", |stage| stage.put("a/deep/er/new", "theirs\n")),
        ("a file gone", |stage| fs::remove_file(stage.path("a/one")).unwrap()),
        ("another mode", |stage| {
            fs::set_permissions(stage.path("a/one"), fs::Permissions::from_mode(0o600)).unwrap();
        }),
        ("renamed", |stage| fs::rename(stage.path("a/one"), stage.path("b/moved")).unwrap()),
        ("a directory gone and there again", |stage| {
            fs::remove_dir_all(stage.path("a")).unwrap();
            stage.put("a/one", "theirs\n");
        }),
        ("put in its place", |stage| {
            stage.put("b/tmp", "theirs\n");
            fs::rename(stage.path("b/tmp"), stage.path("a/one")).unwrap();
        }),
    ];
    for (what, others) in others {
        let stage = Stage::new();
        stage.put("a/one", "one\n");
        stage.put("b/two", "two\n");
        stage.says(1).await;
        for n in 0..3 {
            stage.shell(|| stage.put("b/two", &format!("{n}\n"))).await;
        }
        others(&stage);
        let theirs = stage.all();
        let id = stage.says(2).await;
        stage.shell(|| stage.put("b/two", "agent\n")).await;
        // In a directory that others have made, too.
        stage.shell(|| stage.put("a/agent", "agent\n")).await;
        stage.history.rewind(id, Conflicts::Leave).unwrap();
        assert_eq!(stage.all(), theirs, "{what}");
    }
}

#[tokio::test]
async fn what_stays_is_said_before_as_it_is_said_afterwards() {
    let stage = Stage::new();
    stage.put("kept.txt", "one\n");
    let start = stage.says(1).await;
    let (pipe, made) = (stage.path("new/pipe"), stage.path("new/made.txt"));
    stage
        .shell(|| {
            stage.put("new/made.txt", "made\n");
            nix::unistd::mkfifo(&pipe, nix::sys::stat::Mode::S_IRWXU).unwrap();
        })
        .await;
    let preview = stage.history.preview(start).unwrap();
    assert_eq!(left(&preview), ["pipe stays: not a regular file"]);
    let rewound = stage.history.rewind(start, Conflicts::Leave).unwrap();
    assert_eq!(left(&rewound), left(&preview));
    assert!(pipe.exists() && !made.exists());
}
