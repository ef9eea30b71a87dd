use std::fs;
use std::os::unix::fs::symlink;
use std::path::Path;
use std::time::{Duration, Instant, SystemTime};

use serde_json::{Value, json};

use super::super::tests::{Answer, Bench};

async fn glob(bench: &Bench, pattern: &str) -> Answer {
    bench.run("Glob", json!({"pattern": pattern})).await
}

/// The paths of an answer, relative to the session's directory.
fn found(bench: &Bench, answer: &Answer) -> Vec<String> {
    answer.ok();
    let names: Vec<String> = serde_json::from_value(answer.detail["filenames"].clone()).unwrap();
    let below = |name: &String| Path::new(name).strip_prefix(&bench.cx.cwd).unwrap().display().to_string();
    assert!(names.iter().all(|name| answer.text.contains(name.as_str())));
    names.iter().map(below).collect()
}

fn sorted(mut names: Vec<String>) -> Vec<String> {
    names.sort();
    names
}

fn touch(bench: &Bench, name: &str, age_s: u64) {
    let path = bench.put(name, "");
    let time = SystemTime::now() - Duration::from_secs(age_s);
    fs::File::options().write(true).open(path).unwrap().set_modified(time).unwrap();
}

#[tokio::test]
async fn patterns_mean_what_the_page_says() {
    let bench = Bench::new();
    for name in ["a.rs", "src/b.rs", "src/deep/c.rs", "src/d.txt", ".hidden/e.rs", "src/[x].md"] {
        bench.put(name, "");
    }
    for (pattern, expected) in [
        ("*.rs", &[".hidden/e.rs", "a.rs", "src/b.rs", "src/deep/c.rs"][..]),
        ("**/*.rs", &[".hidden/e.rs", "a.rs", "src/b.rs", "src/deep/c.rs"]),
        ("./a.rs", &["a.rs"]),
        ("src/*.rs", &["src/b.rs"]),
        ("src/**/*.rs", &["src/b.rs", "src/deep/c.rs"]),
        ("src/**", &["src/[x].md", "src/b.rs", "src/d.txt", "src/deep/c.rs"]),
        ("src/{b,d}.*", &["src/b.rs", "src/d.txt"]),
        ("?.rs", &[".hidden/e.rs", "a.rs", "src/b.rs", "src/deep/c.rs"]),
        ("[ab].rs", &["a.rs", "src/b.rs"]),
        ("src/\\[x\\].md", &["src/[x].md"]),
    ] {
        assert_eq!(sorted(found(&bench, &glob(&bench, pattern).await)), expected, "{pattern}");
    }
    let absolute = format!("{}/src/**/c.rs", bench.cx.cwd.display());
    assert_eq!(found(&bench, &glob(&bench, &absolute).await), ["src/deep/c.rs"]);
    let answer = bench.run("Glob", json!({"pattern": "*.rs", "path": "src/deep"})).await;
    assert_eq!(found(&bench, &answer), ["src/deep/c.rs"]);
    let none = glob(&bench, "*.zig").await;
    assert_eq!(none.ok(), "No files found.");
    assert_eq!((&none.detail["numFiles"], &none.detail["truncated"]), (&json!(0), &json!(false)));
}

#[tokio::test]
async fn newest_come_first_and_only_so_many() {
    let bench = Bench::with_limits(|limits| limits.glob_paths_max = 3);
    for (name, age) in [("e", 50), ("a", 10), ("d", 40), ("b", 20), ("c", 30)] {
        touch(&bench, name, age);
    }
    let answer = glob(&bench, "*").await;
    assert_eq!(found(&bench, &answer), ["a", "b", "c"]);
    answer.says(&["newest 3 of 5"]);
    assert_eq!((&answer.detail["numFiles"], &answer.detail["truncated"]), (&json!(3), &json!(true)));
    assert!(answer.detail["durationMs"].is_u64());
}

#[tokio::test]
async fn ignored_files_are_found_unless_they_are_not_wanted_and_stores_never() {
    let mut bench = Bench::new();
    for name in
        [".gitignore", "kept.log", "b.log", "target/x", ".git/config", "sub/.git/HEAD", "sub/c.log", ".env"]
    {
        bench.put(name, if name == ".gitignore" { "*.log\n!kept.log\n/target\n" } else { "" });
    }
    assert_eq!(
        sorted(found(&bench, &glob(&bench, "**").await)),
        [".env", ".gitignore", "b.log", "kept.log", "sub/c.log", "target/x"]
    );
    std::sync::Arc::make_mut(&mut bench.cx.limits).glob_skips_ignored = true;
    assert_eq!(sorted(found(&bench, &glob(&bench, "**").await)), [".env", ".gitignore", "kept.log"]);
    std::sync::Arc::make_mut(&mut bench.cx.limits).glob_skips_hidden = true;
    assert_eq!(found(&bench, &glob(&bench, "**").await), ["kept.log"]);
}

#[tokio::test]
async fn the_search_never_leaves_its_root_nor_waits() {
    let bench = Bench::new();
    let outside = bench.home.path().join("outside");
    fs::create_dir(&outside).unwrap();
    fs::write(outside.join("secret.txt"), "").unwrap();
    bench.put("in.txt", "");
    bench.put("real/x.txt", "");
    symlink(&outside, bench.path("out")).unwrap();
    symlink(&bench.cx.cwd, bench.path("loop")).unwrap();
    symlink("real", bench.path("link")).unwrap();
    nix::unistd::mkfifo(&bench.path("fifo.txt"), nix::sys::stat::Mode::S_IRWXU).unwrap();
    let started = Instant::now();
    assert_eq!(sorted(found(&bench, &glob(&bench, "*.txt").await)), ["in.txt", "real/x.txt"]);
    // A link that is asked for by name is followed: whether it may be is decided elsewhere.
    let answer = bench.run("Glob", json!({"pattern": "*", "path": "link"})).await;
    assert_eq!(found(&bench, &answer), ["real/x.txt"]);
    bench.run("Glob", json!({"pattern": "*", "path": "fifo.txt"})).await.refused(&["not a directory"]);
    bench.run("Glob", json!({"pattern": "*", "path": "nowhere"})).await.refused(&["cannot be searched"]);
    assert!(started.elapsed() < Duration::from_secs(2));
}

#[tokio::test]
async fn out_of_time_is_said() {
    let bench = Bench::with_limits(|limits| limits.search_time_max = Duration::ZERO);
    bench.put("a", "");
    let answer = glob(&bench, "*").await;
    answer.says(&["incomplete"]);
    assert_eq!(answer.detail["truncated"], Value::Bool(true));
    bench.cx.cancel.cancel();
    glob(&bench, "*").await.refused(&["Interrupted"]);
}

#[tokio::test]
async fn many_files_are_found_quickly() {
    let bench = Bench::new();
    for dir in 0..20 {
        fs::create_dir(bench.path(&dir.to_string())).unwrap();
        for file in 0..250 {
            fs::File::create(bench.path(&format!("{dir}/{file}.txt"))).unwrap();
        }
    }
    let started = Instant::now();
    let answer = glob(&bench, "**/*.txt").await;
    answer.says(&["newest 100 of 5000"]);
    assert!(started.elapsed() < Duration::from_secs(2), "{:?}", started.elapsed());
}
