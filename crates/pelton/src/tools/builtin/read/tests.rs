use std::time::{Duration, Instant};

use serde_json::json;
use tokio_util::sync::CancellationToken;

use super::super::tests::Bench;
use super::pager::Wanted;
use super::{LookedThrough, Scan, scan};
use crate::tools::text::Encoding;

fn numbered(lines: std::ops::RangeInclusive<u64>) -> String {
    lines.map(|n| format!("line {n}\n")).collect()
}

#[tokio::test]
async fn lines_come_with_their_numbers() {
    let bench = Bench::new();
    let path = bench.put("a.txt", "one\n\ttwo\r\n\nfour");
    for file in [path.to_str().unwrap(), "a.txt", "./a.txt"] {
        let answer = bench.read(file).await;
        assert_eq!(answer.ok(), "1\tone\n2\t\ttwo\n3\t\n4\tfour");
        assert_eq!(answer.detail["file"]["totalLines"], 4);
    }
    let answer = bench.run("Read", json!({"file_path": path, "offset": "2", "limit": "2"})).await;
    assert_eq!(answer.ok(), "2\t\ttwo\n3\t");
    let file =
        json!({"filePath": path, "content": "\ttwo\n", "numLines": 2, "startLine": 2, "totalLines": 4});
    assert_eq!(answer.detail, json!({"type": "text", "file": file}));
}

#[tokio::test]
async fn more_than_a_page_is_said_to_be_partial() {
    let bench = Bench::new();
    let path = bench.put("long", numbered(1..=4_500));
    let answer = bench.read(&path).await;
    answer.says(&[
        "\n2000\tline 2000\n",
        "PARTIAL",
        "1 to 2000 of 4500",
        "offset 2001",
        "does not count as read",
    ]);
    assert!(!answer.text.contains("line 2001"));
    bench.edit(&path, "line 5\n", "five\n").await.refused(&["only in part"]);

    let answer = bench.run("Read", json!({"file_path": path, "offset": 2001})).await;
    answer.says(&["PARTIAL", "2001 to 4000 of 4500", "offset 4001"]);
    let answer = bench.run("Read", json!({"file_path": path, "offset": 4001})).await;
    assert!(answer.ok().starts_with("4001\tline 4001\n") && answer.text.ends_with("4500\tline 4500"));

    // Page by page the whole file was read: it may be replaced.
    bench.run("Write", json!({"file_path": path, "content": "short\n"})).await.ok();
    assert_eq!(bench.get("long"), b"short\n");
}

#[tokio::test]
async fn a_wide_file_ends_its_page_early_and_a_wide_range_is_refused() {
    let bench = Bench::new();
    let line = "x".repeat(999);
    let path = bench.put("wide", format!("{line}\n").repeat(1_000));
    bench.read(&path).await.says(&["PARTIAL", "1 to 262 of 1000", "offset 263"]);
    let answer = bench.run("Read", json!({"file_path": path, "limit": 500})).await;
    answer.refused(&["256 KB", "fewer lines", "262"]);
    bench.run("Read", json!({"file_path": path, "limit": 200, "offset": 801})).await.ok();
    let answer = bench.run("Read", json!({"file_path": path, "limit": 5_000, "offset": 801})).await;
    assert_eq!(answer.ok().lines().count(), 200);
}

#[tokio::test]
async fn long_lines_are_cut_with_a_note() {
    let bench = Bench::new();
    let path = bench.put("min.js", format!("{}\nshort\n", "ä".repeat(5_000)));
    let answer = bench.read(&path).await;
    assert!(answer.ok().starts_with(&format!("1\t{} [… cut]\n2\tshort\n", "ä".repeat(2_000))));
    answer.says(&["1 line is cut at 2000 characters"]);
    // What was not seen can be kept by an edit, but not by a replacement.
    bench.run("Write", json!({"file_path": path, "content": "x"})).await.refused(&["only in part"]);
    bench.edit(&path, "short", "long").await.ok();
}

#[tokio::test]
async fn nothing_to_show_is_a_note() {
    let bench = Bench::new();
    let empty = bench.put("empty", "");
    bench.read(&empty).await.says(&["empty"]);
    let file = bench.put("ten", numbered(1..=10));
    let answer = bench.run("Read", json!({"file_path": file, "offset": 11})).await;
    assert!(!answer.error);
    answer.says(&["past the end", "10 lines"]);
    bench.run("Read", json!({"file_path": file, "offset": 0, "limit": 1})).await.says(&["1\tline 1"]);
    bench.run("Read", json!({"file_path": file, "limit": 0})).await.refused(&["limit"]);
}

#[tokio::test]
async fn a_missing_file_is_answered_with_similar_names() {
    let bench = Bench::new();
    bench.put("src/config.rs", "");
    bench.put("src/other.md", "");
    let text = bench.read("src/confg.rs").await;
    text.refused(&["does not exist", "src/config.rs"]);
    assert!(!text.text.contains("other.md"));
    bench.read("nowhere/at/all").await.refused(&["does not exist"]);
    std::os::unix::fs::symlink("gone.rs", bench.path("src/link.rs")).unwrap();
    let text = bench.read("src/link.rs").await;
    text.refused(&["src/link.rs is a link to gone.rs, which does not exist."]);
    assert!(!text.text.contains("Similar"));
}

#[tokio::test]
async fn what_is_no_text_is_refused_and_named() {
    let bench = Bench::new();
    bench.read(&bench.cx.cwd).await.refused(&["directory", "Glob"]);
    let png = bench.put("a.png", b"\x89PNG\r\n\x1a\n\0\0\0\rIHDR");
    bench.read(&png).await.refused(&["a.png is a PNG image that cannot be opened", "damaged"]);
    let pdf = bench.put("a.pdf", b"%PDF-1.7\n1 0 obj");
    bench.read(&pdf).await.refused(&["a PDF", "cut off"]);
    let binary = bench.put("a.out", b"\x7fELF\x02\x01\0\0");
    bench.read(&binary).await.refused(&["binary"]);
    let fifo = bench.path("fifo");
    nix::unistd::mkfifo(&fifo, nix::sys::stat::Mode::S_IRWXU).unwrap();
    let started = Instant::now();
    bench.read(&fifo).await.refused(&["FIFO"]);
    bench.read("/dev/zero").await.refused(&["device"]);
    assert!(started.elapsed() < Duration::from_secs(1), "opening does not wait");
}

#[tokio::test]
async fn other_encodings_are_shown_and_named() {
    let bench = Bench::new();
    let latin = bench.put("latin1", b"caf\xE9\nplain\n");
    bench.read(&latin).await.says(&["1\tcafé\n2\tplain", "[Encoding: windows-1252"]);
    let broken = bench.put("broken", b"x \xFF\nplain\n");
    bench.read(&broken).await.says(&["1\tx \u{FFFD}\n2\tplain", "Not valid UTF-8"]);
    let marked = bench.put("marked", "\u{FEFF}first\n");
    assert_eq!(bench.read(&marked).await.ok(), "1\tfirst");
    for (name, mark, encoding) in
        [("le", b"\xFF\xFE", Encoding::Utf16Le), ("be", b"\xFE\xFF", Encoding::Utf16Be)]
    {
        let text = encoding.encode("grüße 漢\r\n𝄞 end\n").unwrap();
        let path = bench.put(name, [&mark[..], &text].concat());
        bench.read(&path).await.says(&["1\tgrüße 漢\n2\t𝄞 end", encoding.name()]);
    }
}

#[tokio::test]
async fn a_huge_file_is_paged_in_little_memory() {
    let bench = Bench::new();
    let path = bench.path("huge");
    // Mostly holes, which read as zeros: put text at the front so that it counts as text.
    let file = std::fs::File::create(&path).unwrap();
    let text = numbered(1..=2_000);
    std::os::unix::fs::FileExt::write_all_at(&file, text.as_bytes(), 0).unwrap();
    file.set_len(50 * 1024 * 1024).unwrap();
    let answer = bench.run("Read", json!({"file_path": path, "offset": 10, "limit": 2})).await;
    assert_eq!(answer.ok(), "10\tline 10\n11\tline 11");
    assert_eq!(answer.detail["file"]["totalLines"], 2_001);
    let last = bench.run("Read", json!({"file_path": path, "offset": 2_001})).await;
    last.says(&["[… cut]"]);
}

#[tokio::test]
async fn an_interrupt_is_answered_at_once() {
    let bench = Bench::new();
    let path = bench.put("a", "x\n");
    bench.cx.cancel.cancel();
    bench.read(&path).await.refused(&["Interrupted"]);
}

#[tokio::test]
async fn a_large_file_is_read_whole_when_that_is_wanted() {
    let bench = Bench::new();
    let path = bench.put("large", numbered(1..=30_000));
    let page = bench.read(&path).await;
    page.says(&["PARTIAL: lines 1 to 2000"]);
    assert_eq!(page.detail["file"]["truncatedByTokenCap"], true);
    let whole = bench.run("Read", json!({"file_path": path, "allow_large": true})).await;
    assert!(whole.ok().ends_with("30000\tline 30000"));
    bench.edit(&path, "line 29999", "edited").await.ok();
}

/// What a file system can put in one's way: each is an answer, none waits, and nothing is written by halves.
#[cfg(target_os = "linux")]
#[tokio::test]
async fn pit_T6_odd_files_are_answers() {
    let bench = Bench::new();
    let started = Instant::now();
    std::os::unix::fs::symlink("loop", bench.path("loop")).unwrap();
    std::os::unix::fs::symlink(".", bench.path("here")).unwrap();
    bench.read("loop").await.refused(&["loop"]);
    bench.put("file", "x\n");
    bench.read("here/here/here/file").await.says(&["1\tx"]);
    bench.read("file/below").await.refused(&["file/below"]);
    for path in ["/proc/self/mem", "/proc/kmsg", "/proc/self/environ", "/dev/tty", "/dev/full", "/dev/null"] {
        bench.read(path).await.refused(&[path]);
    }
    bench.read("n".repeat(300)).await.refused(&["nnn"]);
    bench.read("a\0b").await.refused(&[]);
    let sparse = std::fs::File::create(bench.path("sparse")).unwrap();
    sparse.set_len(5 * 1024 * 1024 * 1024).unwrap();
    bench.read("sparse").await.refused(&["binary"]);
    bench.edit("sparse", "a", "b").await.refused(&["too large"]);
    assert!(started.elapsed() < Duration::from_secs(5), "{:?}", started.elapsed());
}

/// A line without an end is not looked for to the end of the world, wherever in the file it begins.
#[test]
fn a_line_that_goes_on_and_on_ends_the_page() {
    let bench = Bench::new();
    let path = bench.path("endless");
    let text = numbered(1..=2_000);
    std::fs::write(&path, &text).unwrap();
    let mut file = std::fs::OpenOptions::new().read(true).append(true).open(&path).unwrap();
    file.set_len(200 * 1024 * 1024).unwrap();
    let scanned = |file: &mut std::fs::File, start: u64, lines_max: u64| {
        std::io::Seek::rewind(file).unwrap();
        let wanted = Wanted { start, lines_max, bytes_max: 100_000, line_chars_max: 100 };
        let looked_through = LookedThrough { all: 1 << 20, page: 1 << 20 };
        match scan(file, wanted, looked_through, &CancellationToken::new()).unwrap() {
            Scan::Text { page, content, .. } => {
                (page, content, std::io::Seek::stream_position(file).unwrap())
            }
            _ => panic!("it is text"),
        }
    };
    for (start, lines) in [(1, 2_001), (1_999, 3), (2_001, 1)] {
        let (page, content, at) = scanned(&mut file, start, 5_000);
        assert!(page.given_up && !page.counted && content.is_none() && at < 4 << 20, "{start}: {at}");
        assert_eq!(page.lines.len(), lines);
    }
    let (page, _, at) = scanned(&mut file, 1, 10);
    assert!(!page.given_up && !page.counted && page.lines.len() == 10 && at < 4 << 20);
}

/// The middle of a large file, in the memory of a page.
#[tokio::test]
async fn the_middle_of_a_large_file_is_read_in_little_memory() {
    let bench = Bench::new();
    let path = bench.path("large");
    let line = "x".repeat(99) + "\n";
    let mut file = std::io::BufWriter::new(std::fs::File::create(&path).unwrap());
    for _ in 0..1_000_000 {
        std::io::Write::write_all(&mut file, line.as_bytes()).unwrap();
    }
    drop(file);
    let before = peak_kb();
    let answer = bench.run("Read", json!({"file_path": path, "offset": 500_000, "limit": 3})).await;
    answer.says(&["500000\txxx", "500002\txxx"]);
    assert_eq!(answer.detail["file"]["totalLines"], 1_000_000);
    assert!(peak_kb().saturating_sub(before) < 64 * 1024, "{} KB before, {} KB after", before, peak_kb());
}

/// The most memory this process has had.
fn peak_kb() -> u64 {
    let status = std::fs::read_to_string("/proc/self/status").unwrap_or_default();
    let line = status.lines().find_map(|line| line.strip_prefix("VmHWM:"));
    line.and_then(|line| line.split_whitespace().next()?.parse().ok()).unwrap_or(0)
}
