use std::fs;
use std::os::unix::fs::symlink;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant, SystemTime};

use serde_json::{Value, json};

use super::super::tests::{Answer, Bench};

async fn grep(bench: &Bench, mut input: Value) -> Answer {
    if input.get("output_mode").is_none() {
        input["output_mode"] = json!("content");
    }
    bench.run("Grep", input).await
}

fn library() -> Bench {
    let bench = Bench::new();
    bench.put("src/a.rs", "fn one() {}\n// two\nfn three() {}\n\nfn four() {}\n");
    bench.put("src/b.py", "def one():\n    pass\n");
    bench.put("docs/c.md", "One fn\n");
    bench
}

#[tokio::test]
async fn content_is_printed_as_ripgrep_does() {
    let bench = library();
    for (input, expected) in [
        (json!({"pattern": "fn one"}), "src/a.rs:1:fn one() {}"),
        (json!({"pattern": "one"}), "src/a.rs:1:fn one() {}\nsrc/b.py:1:def one():"),
        (
            json!({"pattern": "one", "-i": "true"}),
            "docs/c.md:1:One fn\nsrc/a.rs:1:fn one() {}\nsrc/b.py:1:def one():",
        ),
        (json!({"pattern": "one", "-n": false, "glob": "*.py"}), "src/b.py:def one():"),
        (json!({"pattern": "one", "path": "src/b.py"}), "1:def one():"),
        (json!({"pattern": "one", "type": "rust"}), "src/a.rs:1:fn one() {}"),
        (json!({"pattern": "one", "glob": "*.{py,md}"}), "src/b.py:1:def one():"),
        (json!({"pattern": "one|One", "glob": "*.md, *.py"}), "docs/c.md:1:One fn\nsrc/b.py:1:def one():"),
        (json!({"pattern": "one", "glob": "!*.rs"}), "src/b.py:1:def one():"),
        (json!({"pattern": "fn t\\w+", "-o": true}), "src/a.rs:3:fn three"),
        (json!({"pattern": "e", "-o": true, "path": "src/a.rs"}), "1:e\n3:e\n3:e"),
        (json!({"pattern": "two", "-A": 1}), "src/a.rs:2:// two\nsrc/a.rs-3-fn three() {}"),
        (json!({"pattern": "two", "-B": "1"}), "src/a.rs-1-fn one() {}\nsrc/a.rs:2:// two"),
        (json!({"pattern": "two", "-C": 1, "path": "src/a.rs"}), "1-fn one() {}\n2:// two\n3-fn three() {}"),
        (
            json!({"pattern": "two", "context": 1, "path": "src/a.rs"}),
            "1-fn one() {}\n2:// two\n3-fn three() {}",
        ),
        (
            json!({"pattern": "one|four", "-A": 1, "path": "src/a.rs"}),
            "1:fn one() {}\n2-// two\n--\n5:fn four() {}",
        ),
        (
            json!({"pattern": "one", "-A": 1}),
            "src/a.rs:1:fn one() {}\nsrc/a.rs-2-// two\n--\nsrc/b.py:1:def one():\nsrc/b.py-2-    pass",
        ),
        (json!({"pattern": "two.fn", "multiline": true, "path": "src/a.rs"}), "2:// two\n3:fn three() {}"),
        (json!({"pattern": "two.fn", "multiline": true, "-o": true, "path": "src/a.rs"}), "2:two\n3:fn"),
        (json!({"pattern": "two.fn"}), "No matches found."),
        (
            json!({"pattern": "^fn .*\\}$", "path": "src/a.rs", "head_limit": 1}),
            "1:fn one() {}\n[Rows 1 to 1; there are more lines. Go on with offset 1, or narrow the search.]",
        ),
        (json!({"pattern": "^fn", "path": "src/a.rs", "head_limit": "1", "offset": "2"}), "5:fn four() {}"),
        (json!({"pattern": "^fn", "path": "src/a.rs", "offset": 9}), "Nothing after the first 3 rows."),
    ] {
        let answer = grep(&bench, input.clone()).await;
        assert_eq!(answer.ok(), expected, "{input}");
    }
}

#[tokio::test]
async fn files_and_counts() {
    let bench = library();
    let old = SystemTime::now() - Duration::from_secs(60);
    fs::File::options().write(true).open(bench.path("src/a.rs")).unwrap().set_modified(old).unwrap();
    let answer = bench.run("Grep", json!({"pattern": "one"})).await;
    assert_eq!(answer.ok(), "src/b.py\nsrc/a.rs", "newest first");
    let detail = json!({"mode": "files_with_matches", "filenames": ["src/b.py", "src/a.rs"], "numFiles": 2});
    assert_eq!(answer.detail, detail);
    let answer = bench.run("Grep", json!({"pattern": "one", "head_limit": 1})).await;
    answer.says(&["src/b.py\n", "2 files match", "offset 1"]);
    let answer = bench.run("Grep", json!({"pattern": "nothing"})).await;
    assert_eq!(answer.ok(), "No files found.");

    let answer = grep(&bench, json!({"pattern": "fn", "output_mode": "count"})).await;
    assert_eq!(answer.ok(), "docs/c.md:1\nsrc/a.rs:3\n[4 matching lines in 2 files]");
    let content = "docs/c.md:1\nsrc/a.rs:3";
    let detail =
        json!({"mode": "count", "filenames": [], "numFiles": 2, "content": content, "numMatches": 4});
    assert_eq!(answer.detail, detail);

    let answer = grep(&bench, json!({"pattern": "fn three"})).await;
    let detail = json!({"mode": "content", "filenames": [], "numFiles": 1, "content": "src/a.rs:3:fn three() {}", "numLines": 1});
    assert_eq!(answer.detail, detail);
}

#[tokio::test]
async fn what_cannot_be_understood_says_why() {
    let bench = library();
    grep(&bench, json!({"pattern": "a("})).await.refused(&["pattern cannot be used", "unclosed group"]);
    grep(&bench, json!({"pattern": "(?=a)"})).await.refused(&["look-around"]);
    grep(&bench, json!({"pattern": "x{1000}{1000}{1000}"})).await.refused(&["size limit"]);
    grep(&bench, json!({"pattern": "a", "type": "klingon"})).await.refused(&["klingon", "glob"]);
    grep(&bench, json!({"pattern": "a", "glob": "a{"})).await.refused(&["glob"]);
    grep(&bench, json!({"pattern": "a", "path": "nowhere"})).await.refused(&["cannot be searched"]);
    grep(&bench, json!({"pattern": "a", "offset": 1_000_000})).await.refused(&["offset"]);
}

#[tokio::test]
async fn paths_outside_of_the_directory_are_absolute() {
    let bench = library();
    let outside = fs::canonicalize(bench.home.path()).unwrap().join("outside");
    fs::create_dir(&outside).unwrap();
    fs::write(outside.join("x"), "needle\n").unwrap();
    let answer = grep(&bench, json!({"pattern": "needle", "path": outside})).await;
    assert_eq!(answer.ok(), format!("{}/x:1:needle", outside.display()));
}

#[tokio::test]
async fn what_is_not_searched() {
    let bench = Bench::new();
    bench.put(".gitignore", "*.log\n");
    bench.put("a.log", "needle");
    bench.put(".git/x", "needle");
    bench.put("binary", b"needle\n\0\nneedle\n");
    bench.put("late", [&b"needle\n"[..], &vec![b'x'; 100_000], b"\0"].concat());
    bench.put(".hidden", "needle\n");
    bench.put("latin1", b"n\xE9edle needle\n");
    let utf16: Vec<u8> = "\u{FEFF}needle 漢\n".encode_utf16().flat_map(u16::to_le_bytes).collect();
    bench.put("utf16", utf16);
    let outside = bench.home.path().join("outside");
    fs::write(&outside, "needle").unwrap();
    symlink(&outside, bench.path("link")).unwrap();
    symlink(".", bench.path("loop")).unwrap();
    nix::unistd::mkfifo(&bench.path("fifo"), nix::sys::stat::Mode::S_IRWXU).unwrap();
    let started = Instant::now();
    let answer = grep(&bench, json!({"pattern": "needle"})).await;
    assert_eq!(answer.ok(), ".hidden:1:needle\nlatin1:1:n\u{FFFD}edle needle\nutf16:1:needle 漢");
    // By name, an ignored file and a link are searched; a FIFO never.
    assert_eq!(grep(&bench, json!({"pattern": "needle", "path": "a.log"})).await.ok(), "1:needle");
    assert_eq!(grep(&bench, json!({"pattern": "needle", "path": "link"})).await.ok(), "1:needle");
    grep(&bench, json!({"pattern": "needle", "path": "fifo"})).await.refused(&["neither"]);
    assert!(started.elapsed() < Duration::from_secs(2));
}

#[tokio::test]
async fn rows_are_bounded_and_pages_join_without_gaps() {
    let bench = Bench::new();
    for n in 0..40 {
        bench.put(
            &format!("d{}/f{n:02}", n % 7),
            (0..40).map(|line| format!("hit {n} {line}\n")).collect::<String>(),
        );
    }
    let all = grep(&bench, json!({"pattern": "hit", "head_limit": 0})).await;
    let all: Vec<&str> = all.ok().lines().collect();
    assert_eq!(all.len(), 1_600);
    let mut paged: Vec<String> = Vec::new();
    loop {
        let answer = grep(&bench, json!({"pattern": "hit", "offset": paged.len()})).await;
        let rows = answer.ok().lines().filter(|line| line.contains(":hit ")).map(str::to_owned);
        paged.extend(rows);
        if !answer.text.contains("Go on with offset") {
            break;
        }
        answer.says(&[&format!("offset {}", paged.len())]);
    }
    assert_eq!(paged, all);
    bench.put("wide", "x".repeat(10_000));
    grep(&bench, json!({"pattern": "x+", "path": "wide"})).await.says(&["8000 more characters"]);
    let bench = Bench::with_limits(|limits| limits.result_chars_max = 100);
    bench.put("a", "0123456789\n".repeat(50));
    let answer = grep(&bench, json!({"pattern": "0", "path": "a", "head_limit": 0})).await;
    answer.says(&["Rows 1 to 7;", "offset 7"]);
}

#[tokio::test]
async fn out_of_time_is_said() {
    let bench = Bench::with_limits(|limits| limits.search_time_max = Duration::ZERO);
    bench.put("a", "needle");
    grep(&bench, json!({"pattern": "needle"})).await.says(&["incomplete"]);
    bench.cx.cancel.cancel();
    grep(&bench, json!({"pattern": "needle"})).await.refused(&["Interrupted"]);
}

#[tokio::test]
async fn one_large_file_does_not_outlast_the_time() {
    let bench = Bench::with_limits(|limits| limits.search_time_max = Duration::from_millis(50));
    let path = bench.put("large", "x\n".repeat(5_000));
    // Text at the front, then gigabytes of holes: as one line without an end.
    fs::File::options().write(true).open(&path).unwrap().set_len(8 * 1024 * 1024 * 1024).unwrap();
    let started = Instant::now();
    grep(&bench, json!({"pattern": "needle"})).await.ok();
    assert!(started.elapsed() < Duration::from_secs(2), "{:?}", started.elapsed());
}

/// Somebody makes a link of a directory while it is searched, again and again: nothing outside is ever shown.
#[test]
fn a_directory_that_becomes_a_link_on_the_way_is_not_followed() {
    let bench = Bench::new();
    bench.put("d/deep/a", "needle inside\n");
    let outside = tempfile::tempdir().unwrap();
    fs::create_dir(outside.path().join("deep")).unwrap();
    fs::write(outside.path().join("deep/a"), "needle secret\n").unwrap();
    let (dir, aside, link) = (bench.path("d"), bench.path("aside"), bench.path("link"));
    symlink(outside.path(), &link).unwrap();
    let over = AtomicBool::new(false);
    let said: Vec<String> = std::thread::scope(|scope| {
        scope.spawn(|| {
            while !over.load(Ordering::Relaxed) {
                for (from, to) in [(&dir, &aside), (&link, &dir), (&dir, &link), (&aside, &dir)] {
                    fs::rename(from, to).unwrap();
                }
            }
        });
        let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
        let all =
            (0..300).map(|_| runtime.block_on(grep(&bench, json!({"pattern": "needle"}))).text).collect();
        over.store(true, Ordering::Relaxed);
        all
    });
    assert_eq!(said.iter().find(|said| said.contains("secret")), None);
    assert!(said.iter().any(|said| said.contains("inside")), "the file is found when it is there");
}
