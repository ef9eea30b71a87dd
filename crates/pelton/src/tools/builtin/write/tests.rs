use std::fs;
use std::os::unix::fs::{PermissionsExt, symlink};

use serde_json::json;

use super::super::tests::{Answer, Bench};

async fn write(bench: &Bench, name: &str, content: &str) -> Answer {
    bench.run("Write", json!({"file_path": name, "content": content})).await
}

#[tokio::test]
async fn a_new_file_and_its_directories_are_made() {
    let bench = Bench::new();
    let answer = write(&bench, "a/b/c.txt", "one\r\ntwo").await;
    answer.says(&["Created"]);
    assert_eq!(bench.get("a/b/c.txt"), b"one\r\ntwo");
    let path = bench.path("a/b/c.txt");
    let detail = json!({"type": "create", "filePath": "a/b/c.txt", "content": "one\r\ntwo", "structuredPatch": [], "originalFile": null});
    let mut expected = detail;
    expected["filePath"] = json!(path);
    assert_eq!(answer.detail, expected);
    // What was written is known.
    write(&bench, "a/b/c.txt", "three\n").await.ok();
    bench.edit(&path, "three", "four").await.ok();
    assert_eq!(bench.get("a/b/c.txt"), b"four\n");
}

#[tokio::test]
async fn a_file_must_be_known_before_it_is_replaced() {
    let bench = Bench::new();
    let path = bench.put("a", "old\n");
    write(&bench, "a", "new\n").await.refused(&["has not been read", "Nothing was written"]);
    write(&bench, "a", "old\n").await.says(&["already has this content"]);
    fs::write(&path, "theirs\n").unwrap();
    write(&bench, "a", "new\n").await.refused(&["changed since"]);
    assert_eq!(bench.get("a"), b"theirs\n");
    bench.run("Read", json!({"file_path": "a", "limit": 1})).await.ok();
    let answer = write(&bench, "a", "new\n").await;
    answer.ok();
    assert_eq!(bench.get("a"), b"new\n");
    assert_eq!(answer.detail["type"], "update");
    assert_eq!(answer.detail["originalFile"], "theirs\n");
    assert_eq!(answer.detail["structuredPatch"][0]["lines"], json!(["-theirs", "+new"]));
    bench.put("empty", "");
    write(&bench, "empty", "x").await.ok();
}

#[tokio::test]
async fn a_part_is_not_enough() {
    let bench = Bench::new();
    bench.put("a", "1\n2\n3\n");
    bench.run("Read", json!({"file_path": "a", "limit": 2})).await.ok();
    write(&bench, "a", "new\n").await.refused(&["only in part"]);
    bench.run("Read", json!({"file_path": "a", "offset": 3})).await.ok();
    write(&bench, "a", "new\n").await.ok();
}

#[tokio::test]
async fn mode_and_links_stay() {
    let bench = Bench::new();
    let path = bench.put("real", "old");
    fs::set_permissions(&path, fs::Permissions::from_mode(0o4755)).unwrap();
    symlink("real", bench.path("link")).unwrap();
    fs::hard_link(&path, bench.path("twin")).unwrap();
    bench.read("link").await.ok();
    write(&bench, "link", "new").await.says(&["hard links"]);
    assert_eq!(bench.get("real"), b"new");
    assert_eq!(bench.get("twin"), b"old");
    assert!(fs::symlink_metadata(bench.path("link")).unwrap().is_symlink());
    assert_eq!(fs::metadata(&path).unwrap().permissions().mode() & 0o7777, 0o4755);
    let names = fs::read_dir(&bench.cx.cwd).unwrap().count();
    assert_eq!(names, 3, "no temporary file is left");
}

#[tokio::test]
async fn what_changes_besides_the_text_is_said() {
    let bench = Bench::new();
    for (content, words) in [
        (&b"a\r\nb\r\n"[..], "CRLF"),
        (b"x \xFF\n", "not UTF-8; it is now"),
        (b"\xFF\xFEa\0", "stays in UTF-16LE"),
    ] {
        let path = bench.put("a", content);
        bench.read(&path).await.ok();
        write(&bench, "a", "a\nb\n").await.says(&[words]);
    }
    assert_eq!(bench.get("a"), b"\xFF\xFEa\0\n\0b\0\n\0");
    for (content, new, bytes) in [
        (&b"caf\xE9\n"[..], "th\u{E9} gr\u{FC}n\n", Some(&b"th\xE9 gr\xFCn\n"[..])),
        (b"caf\xE9\n", "漢\n", None),
        (b"\xEF\xBB\xBFa\n", "b\n", Some(b"\xEF\xBB\xBFb\n")),
        (b"\xEF\xBB\xBFa\n", "\u{FEFF}b\n", Some(b"\xEF\xBB\xBFb\n")),
    ] {
        let path = bench.put("b", content);
        bench.read(&path).await.ok();
        let answer = write(&bench, "b", new).await;
        match bytes {
            Some(_) => _ = answer.ok(),
            None => _ = answer.refused(&["windows-1252", "Nothing was written"]),
        }
        assert_eq!(bench.get("b"), bytes.unwrap_or(content));
    }
}

#[tokio::test]
async fn what_cannot_be_a_file_is_refused() {
    let bench = Bench::new();
    bench.put("file", "x");
    bench.put("dir/x", "x");
    write(&bench, "dir", "x").await.refused(&["is a directory"]);
    write(&bench, "file/below", "x").await.refused(&["cannot be used"]);
    write(&bench, "no/../x", "x").await.refused(&["does not exist"]);
    nix::unistd::mkfifo(&bench.path("fifo"), nix::sys::stat::Mode::S_IRWXU).unwrap();
    write(&bench, "fifo", "x").await.refused(&["FIFO"]);
}

#[tokio::test]
async fn an_interrupted_write_changes_nothing() {
    let bench = Bench::new();
    bench.cx.cancel.cancel();
    write(&bench, "a", "x").await.refused(&["interrupted"]);
    assert!(!bench.path("a").exists());
}
