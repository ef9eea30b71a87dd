use std::fs;
use std::os::unix::fs::{PermissionsExt, symlink};
use std::time::{Duration, SystemTime};

use proptest::prelude::*;
use serde_json::json;

use super::super::tests::{Answer, Bench};
use super::*;

async fn replace_all(bench: &Bench, name: &str, old: &str, new: &str) -> Answer {
    let input = json!({"file_path": name, "old_string": old, "new_string": new, "replace_all": "true"});
    bench.run("Edit", input).await
}

#[tokio::test]
async fn the_changed_lines_are_shown() {
    let bench = Bench::new();
    let text: String = (1..=20).map(|n| format!("line {n}\n")).collect();
    let path = bench.put("a", &text);
    bench.read(&path).await.ok();
    let answer = bench.edit(&path, "line 10\n", "ten\nten and a half\n").await;
    let shown =
        "7\tline 7\n8\tline 8\n9\tline 9\n10\tten\n11\tten and a half\n12\tline 11\n13\tline 12\n14\tline 13";
    assert!(answer.ok().ends_with(shown), "{}", answer.text);
    let lines = [
        " line 7",
        " line 8",
        " line 9",
        "-line 10",
        "+ten",
        "+ten and a half",
        " line 11",
        " line 12",
        " line 13",
    ];
    assert_eq!(
        answer.detail,
        json!({
            "filePath": path,
            "oldString": "line 10\n",
            "newString": "ten\nten and a half\n",
            "originalFile": text,
            "structuredPatch": [{"oldStart": 7, "oldLines": 7, "newStart": 7, "newLines": 8, "lines": lines}],
            "userModified": false,
            "replaceAll": false,
        })
    );
    // The next edit needs no new reading, and its numbers are those of the file as it is now.
    bench.edit(&path, "line 20\n", "").await.says(&["20\tline 19"]);
}

#[tokio::test]
async fn the_mark_at_the_beginning_of_a_file_is_not_shown_as_text() {
    let bench = Bench::new();
    let path = bench.put("a", "\u{feff}let total = add(one, two);\ntwo\n");
    bench.read(&path).await.ok();
    let answer = bench.edit(&path, "\ntwo", "\n2").await;
    assert!(answer.ok().ends_with("1\tlet total = add(one, two);\n2\t2"), "{:?}", answer.text);
    let missed = bench.edit(&path, "let total = add(one, three);\n2", "x").await;
    assert!(missed.text.contains("1\tlet total"), "{:?}", missed.text);
    assert!(!missed.text.contains('\u{feff}'), "{:?}", missed.text);
    assert_eq!(bench.get("a"), "\u{feff}let total = add(one, two);\n2\n".as_bytes());
}

#[tokio::test]
async fn every_place_is_replaced_and_far_places_are_far_hunks() {
    let bench = Bench::new();
    let text: String = (1..=40).map(|n| if n % 13 == 0 { "x = 1\n" } else { "-\n" }).collect();
    let path = bench.put("a", &text);
    bench.read(&path).await.ok();
    let answer = replace_all(&bench, "a", "x = 1", "y = 2\ny = 3").await;
    answer.says(&["in 3 places", "13\ty = 2\n14\ty = 3", "27\ty = 2\n28\ty = 3", "41\ty = 2\n42\ty = 3"]);
    let patch = answer.detail["structuredPatch"].as_array().unwrap();
    let starts: Vec<(u64, u64)> = patch
        .iter()
        .map(|hunk| (hunk["oldStart"].as_u64().unwrap(), hunk["newStart"].as_u64().unwrap()))
        .collect();
    assert_eq!(starts, [(10, 10), (23, 24), (36, 38)]);
    assert_eq!(bench.get("a"), text.replace("x = 1", "y = 2\ny = 3").as_bytes());
}

#[tokio::test]
async fn an_empty_old_string_makes_or_fills_a_file() {
    let bench = Bench::new();
    bench.edit("new/file", "", "hello\n").await.says(&["Created"]);
    assert_eq!(bench.get("new/file"), b"hello\n");
    bench.put("empty", "");
    bench.edit("empty", "", "hello\n").await.says(&["Filled"]);
    bench.edit("empty", "", "again\n").await.refused(&["not empty"]);
    assert_eq!(bench.get("empty"), b"hello\n");
    bench.edit("missing", "a", "b").await.refused(&["does not exist"]);
}

/// Reads the file, edits it, and gives its bytes after that.
async fn edited(content: &[u8], old: &str, new: &str) -> Result<Vec<u8>, String> {
    let bench = Bench::new();
    let path = bench.put("file", content);
    bench.read(&path).await.ok();
    let answer = bench.edit(&path, old, new).await;
    if answer.error {
        assert_eq!(bench.get("file"), content, "a refused edit changes nothing");
        return Err(answer.text);
    }
    Ok(bench.get("file"))
}

#[tokio::test]
async fn pit_T3_only_the_edited_bytes_differ_and_a_miss_shows_the_nearest_lines() {
    // Line ends × tabs × byte order mark × final newline, all of them.
    for ends in [["\n", "\n", "\n"], ["\r\n", "\r\n", "\r\n"], ["\r\n", "\n", "\r\n"], ["\n", "\r\n", "\n"]] {
        for indent in ["", "\t", "\t  ", "    "] {
            for mark in ["", "\u{FEFF}"] {
                for last in ["", ends[2]] {
                    let [a, b, _] = ends;
                    let file =
                        |two: &str| format!("{mark}{indent}one{a}{indent}two{two}{b}{indent}three{last}");
                    // In one line, over a line end, adding lines, and taking the start and the end of the file.
                    let cases = [
                        ("two".to_owned(), "2".to_owned(), file("").replace("two", "2")),
                        (
                            format!("one\n{indent}two\n{indent}thr"),
                            format!("one\n{indent}2\n{indent}thr"),
                            file("").replace("two", "2"),
                        ),
                        ("two".to_owned(), "two\nmore".to_owned(), file(&format!("{b}more"))),
                        (
                            format!("{indent}one\n"),
                            String::new(),
                            file("").replace(&format!("{indent}one{a}"), ""),
                        ),
                        ("three".to_owned(), String::new(), file("").replace("three", "")),
                    ];
                    for (old, new, expected) in cases {
                        let after = edited(file("").as_bytes(), &old, &new).await.unwrap();
                        assert_eq!(
                            String::from_utf8(after).unwrap(),
                            expected,
                            "{:?}: {old:?} -> {new:?}",
                            file("")
                        );
                    }
                    let miss = edited(file("").as_bytes(), "twoo", "2").await.unwrap_err();
                    assert!(miss.contains(&format!("2\t{indent}two")), "{miss}");
                }
            }
        }
    }
    let text: String = (1..=50).map(|n| format!("\tlet value_{n} = compute({n});\n")).collect();
    let miss = edited(text.as_bytes(), "    let value_31 = compute(31);\n", "").await.unwrap_err();
    assert!(
        miss.contains("only in white space") && miss.contains("31\t\tlet value_31 = compute(31);"),
        "{miss}"
    );
    let miss = edited(text.as_bytes(), "let valu_31 = compute(31)", "").await.unwrap_err();
    assert!(miss.contains("most like it") && miss.contains("31\t\tlet value_31 = compute(31);"), "{miss}");
    let miss = edited(text.as_bytes(), "31\t\tlet value_31 = compute(31);", "").await.unwrap_err();
    assert!(miss.contains("Leave out the line numbers"), "{miss}");
    let miss = edited(text.as_bytes(), "§§§§", "").await.unwrap_err();
    assert!(!miss.contains("value_"), "nothing is like it: {miss}");
}

#[tokio::test]
async fn pit_T4_bytes_outside_the_edit_stay_and_what_cannot_be_written_is_refused() {
    let sjis_hyou = b"\x95\x5C"; // 表: its second byte is a backslash.
    let sjis = |text| encoding_rs::SHIFT_JIS.encode(text).0.into_owned();
    // What the file is in, what it holds, and "grün" in its bytes if it has any for that.
    let older = [
        ("cp1252", b"caf\xE9 \x93quoted\x94 \x80 5\nname = old\nna\xEFve\n".to_vec(), Some(&b"gr\xFCn"[..])),
        ("Latin-1", b"caf\xE9\nname = old\n\xFC\xF6\xE4".to_vec(), Some(b"gr\xFCn")),
        ("SJIS", sjis("表示テスト\nname = old\n日本語の表\r\n"), None),
        (
            "SJIS, short",
            [sjis_hyou, &b" \x83\x65\x83\x58\x83\x67\nname = old\n"[..], sjis_hyou].concat(),
            None,
        ),
        ("invalid UTF-8", b"ok\nname = old\n\xFF\xC3(\xF0\x9F\n".to_vec(), None),
    ];
    for (name, content, green) in older {
        let at = content.windows(3).position(|bytes| bytes == b"old").unwrap();
        let with = |new: &[u8]| [&content[..at], new, &content[at + 3..]].concat();
        let after = edited(&content, "name = old", "name = new").await.unwrap();
        assert_eq!(after, with(b"new"), "{name}");
        let refused = edited(&content, "name = old", "name = 😀").await.unwrap_err();
        assert!(refused.contains("new_string"), "{name}: {refused}");
        match (edited(&content, "name = old", "name = grün").await, green) {
            (Ok(after), Some(green)) => assert_eq!(after, with(green), "{name}"),
            (Err(refused), None) => assert!(refused.contains("new_string"), "{name}: {refused}"),
            (other, _) => panic!("{name}: {other:?}"),
        }
    }
    // What is shown can be said, and a byte inside a character is no match.
    let content = sjis("表示テスト\n表\\ 日本語のテキスト\n");
    assert_eq!(edited(&content, "表\\", "表/").await.unwrap(), sjis("表示テスト\n表/ 日本語のテキスト\n"));
    assert_eq!(edited(&content, "\\", "図").await.unwrap(), sjis("表示テスト\n表図 日本語のテキスト\n"));
    let refused = edited(&[&b"a "[..], sjis_hyou, b"\n"].concat(), "\\", "/").await.unwrap_err();
    assert!(refused.contains("inside a character"), "{refused}");

    for (mark, encoding) in [(b"\xFF\xFE", Encoding::Utf16Le), (b"\xFE\xFF", Encoding::Utf16Be)] {
        let file = |text: &str| [&mark[..], &encoding.encode(text).unwrap()].concat();
        // U+0A0D and U+0D0A have the bytes of line ends, but are none.
        let before = "Größe ਍ഊ\r\nname = old\r\n𝄞 Ende";
        let after = edited(&file(before), "name = old\n", "name = neu 漢\nzwei\n").await.unwrap();
        assert_eq!(after, file(&before.replace("name = old\r\n", "name = neu 漢\r\nzwei\r\n")));
        // A lone half of a pair is damage, and stays.
        let mut damaged = file("name = old\n");
        damaged.extend_from_slice(&if encoding == Encoding::Utf16Le { [0x00, 0xD8] } else { [0xD8, 0x00] });
        damaged.push(b'!');
        let after = edited(&damaged, "old", "new").await.unwrap();
        assert_eq!(after[..file("name = new\n").len()], file("name = new\n"));
        assert_eq!(after[file("name = new\n").len()..], damaged[file("name = old\n").len()..]);
    }
    // UTF-8 with a little damage is still UTF-8.
    let content = ["grün äöü ß\n".as_bytes(), b"\xFF\n"].concat();
    let after = edited(&content, "grün", "blaugrün").await.unwrap();
    assert_eq!(after, ["blaugrün äöü ß\n".as_bytes(), b"\xFF\n"].concat());
}

#[tokio::test]
async fn pit_T5_content_decides_and_doubt_refuses() {
    // Touched, by another name, moved, renamed in case: the bytes are known.
    let bench = Bench::new();
    let path = bench.put("file", "one\ntwo\nthree\n");
    symlink("file", bench.path("link")).unwrap();
    bench.read(&path).await.ok();
    let later = SystemTime::now() + Duration::from_secs(100);
    fs::File::options().write(true).open(&path).unwrap().set_modified(later).unwrap();
    bench.edit("file", "one", "1").await.says(&["1\t1\n2\ttwo"]);
    bench.edit("link", "two", "2").await.says(&["2\t2\n3\tthree"]);
    assert!(fs::symlink_metadata(bench.path("link")).unwrap().is_symlink());
    fs::rename(&path, bench.path("File")).unwrap();
    bench.edit("File", "three", "3").await.says(&["3\t3"]);
    bench.edit("File", "3", "III").await.ok();
    assert_eq!(bench.get("File"), b"1\n2\nIII\n");

    // Stale, ambiguous, overlapping: refused, and not a byte is different.
    let refused = |content: &'static str,
                   now: &'static str,
                   old: &'static str,
                   all: bool,
                   words: &'static [&'static str]| async move {
        let bench = Bench::new();
        bench.put("a", content);
        bench.read("a").await.ok();
        bench.put("a", now);
        let answer =
            if all { replace_all(&bench, "a", old, "new").await } else { bench.edit("a", old, "new").await };
        answer.refused(words);
        assert_eq!(bench.get("a"), now.as_bytes());
    };
    refused("one\ntwo\n", "one\nzwei\n", "two", false, &["not in it", "changed since it was read"]).await;
    refused("x\ny\nx\n", "x\ny\nx\n", "x\n", false, &["2 times", "lines 1, 3", "replace_all"]).await;
    refused("x\ny\n", "x\ny\nx\n", "x\n", false, &["2 times", "changed since it was read"]).await;
    refused("x\ny\n", "x\ny\nx\n", "x\n", true, &["changed since", "several times"]).await;
    refused("aaa\n", "aaa\n", "aa", false, &["2 times"]).await;
    refused("aaa\n", "aaa\n", "aa", true, &["overlaps itself in line 1"]).await;
    refused("a\r\nb a\nb", "a\r\nb a\nb", "a\nb", false, &["2 times"]).await;

    // Changed elsewhere, but the match is as clear as before: done, and said.
    let bench = Bench::new();
    bench.put("a", "one\ntwo\n");
    bench.read("a").await.ok();
    bench.put("a", "zero\none\ntwo\n");
    bench.edit("a", "two", "2").await.says(&["had changed since it was read", "3\t2"]);
    assert_eq!(bench.get("a"), b"zero\none\n2\n");
}

#[tokio::test]
async fn only_what_was_seen_is_edited() {
    let bench = Bench::new();
    let text: String = (1..=100).map(|n| format!("line {n}.\n")).collect();
    bench.put("a", &text);
    bench.edit("a", "line 5.", "x").await.refused(&["has not been read"]);
    bench.run("Read", json!({"file_path": "a", "offset": 50, "limit": 10})).await.ok();
    bench.edit("a", "line 5.", "x").await.refused(&["only in part", "line 5"]);
    bench.edit("a", "line 59.\nline 60.", "x").await.refused(&["only in part"]);
    bench.edit("a", "line 52.", "fifty-two\nand more").await.ok();
    bench.edit("a", "line 59.\n", "").await.ok();
    bench.edit("a", "line 60.\n", "").await.refused(&["only in part"]);
    bench.put("a", &text);
    bench.edit("a", "line 55.", "x").await.refused(&["changed since a part of it was read"]);
}

#[tokio::test]
async fn mode_stays_and_special_files_are_refused() {
    let bench = Bench::new();
    let path = bench.put("script", "#!/bin/sh\necho a\n");
    fs::set_permissions(&path, fs::Permissions::from_mode(0o750)).unwrap();
    bench.read(&path).await.ok();
    bench.edit(&path, "echo a", "echo b").await.ok();
    assert_eq!(fs::metadata(&path).unwrap().permissions().mode() & 0o7777, 0o750);
    nix::unistd::mkfifo(&bench.path("fifo"), nix::sys::stat::Mode::S_IRWXU).unwrap();
    bench.edit("fifo", "a", "b").await.refused(&["FIFO"]);
    bench.edit(".", "a", "b").await.refused(&["directory"]);
    bench.put("binary", b"\0\0abc");
    bench.edit("binary", "abc", "x").await.refused(&["binary"]);
}

#[tokio::test]
async fn a_file_over_the_limit_is_refused() {
    let bench = Bench::with_limits(|limits| limits.edit_bytes_max = 10);
    bench.put("a", "0123456789 and more");
    bench.edit("a", "0", "1").await.refused(&["larger than 10 bytes"]);
    bench.run("Write", json!({"file_path": "a", "content": "x"})).await.refused(&["larger than 10 bytes"]);
}

/// A line of a made-up file: some text and its end.
fn any_line() -> impl Strategy<Value = (String, &'static str)> {
    ("[ab\t äß漢]{0,6}", prop_oneof![Just("\n"), Just("\r\n")])
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 2_000, ..ProptestConfig::default() })]

    /// Whatever the line ends, the model's view of the file (with `\n` everywhere) changes exactly as it asked, and
    /// every line end outside of what differs stays what it was.
    #[test]
    fn an_edit_changes_the_shown_text_and_no_other_byte(
        mark in prop_oneof![Just(""), Just("\u{FEFF}")],
        lines in proptest::collection::vec(any_line(), 1..8),
        last_ends in any::<bool>(),
        from in any::<prop::sample::Index>(),
        length in 1usize..20,
        new in "[ab\t ä\n]{0,8}",
    ) {
        let mut file: String = mark.to_owned();
        for (n, (text, end)) in lines.iter().enumerate() {
            file.push_str(text);
            if last_ends || n + 1 < lines.len() {
                file.push_str(end);
            }
        }
        let shown = file.strip_prefix('\u{FEFF}').unwrap_or(&file).replace("\r\n", "\n");
        let chars: Vec<char> = shown.chars().collect();
        prop_assume!(!chars.is_empty());
        let start = from.index(chars.len());
        let old: String = chars[start..].iter().take(length).collect();
        prop_assume!(old != new);
        let places = (0..shown.len()).filter(|at| shown.get(*at..).is_some_and(|rest| rest.starts_with(&old))).count();

        let result = Searched::new(file.as_bytes(), Encoding::Utf8).replacements(&old, &new, false);
        if places != 1 {
            let ambiguous = matches!(result, Err(Miss::Ambiguous { .. }));
            prop_assert!(ambiguous);
            return Ok(());
        }
        let replacements = result.unwrap();
        let after = String::from_utf8(matches::splice(file.as_bytes(), &replacements)).unwrap();
        let shown_after = after.strip_prefix('\u{FEFF}').unwrap_or(&after).replace("\r\n", "\n");
        prop_assert_eq!(&shown_after, &shown.replacen(&old, &new, 1));
        prop_assert_eq!(after.starts_with('\u{FEFF}'), file.starts_with('\u{FEFF}'));

        // Bytes before and after the part that differs are the file's own.
        let [Replacement { range, bytes, .. }] = &replacements[..] else { panic!("one place") };
        prop_assert_eq!(&after.as_bytes()[..range.start], &file.as_bytes()[..range.start]);
        prop_assert_eq!(&after.as_bytes()[range.start + bytes.len()..], &file.as_bytes()[range.end..]);
        // And that part is no larger than what was asked to differ.
        let common = old.bytes().zip(new.bytes()).take_while(|(a, b)| a == b).count();
        let asked = old.len() - common;
        let returns = old.matches('\n').count();
        prop_assert!(range.len() <= asked + returns, "{:?} for {:?} -> {:?}", range, old, new);

        // A file with one kind of line end keeps to it.
        if !file.replace("\r\n", "").contains('\n') && file.contains("\r\n") {
            prop_assert!(!after.replace("\r\n", "").contains('\n'), "{:?}", after);
        }
        if !file.contains('\r') {
            prop_assert!(!after.contains('\r'));
        }
    }

    /// The lines an edit reports are the lines it changes.
    #[test]
    fn hunks_apply_to_the_old_lines_and_give_the_new(
        lines in proptest::collection::vec("[abc]{0,2}", 1..40),
        old in "[abc]{1,2}",
        new in "[abc\n]{0,4}",
    ) {
        let file = lines.join("\n");
        prop_assume!(old != new);
        let Ok(replacements) = Searched::new(file.as_bytes(), Encoding::Utf8).replacements(&old, &new, true) else {
            return Ok(());
        };
        let after = matches::splice(file.as_bytes(), &replacements);
        let hunks = hunks(file.as_bytes(), &after, &replacements, Encoding::Utf8);
        let mut rebuilt: Vec<String> = Vec::new();
        let old_lines: Vec<&str> = file.split('\n').collect();
        let mut at = 0;
        for hunk in &hunks {
            let start = hunk.old_start as usize - 1;
            rebuilt.extend(old_lines[at..start].iter().map(|line| (*line).to_owned()));
            prop_assert_eq!(rebuilt.len() as u64 + 1, hunk.new_start);
            at = start;
            for line in hunk.lines.iter().filter(|line| !line.starts_with('\\')) {
                let (sign, text) = line.split_at(1);
                if sign != "+" {
                    prop_assert_eq!(old_lines[at], text);
                    at += 1;
                }
                if sign != "-" {
                    rebuilt.push(text.to_owned());
                }
            }
        }
        rebuilt.extend(old_lines[at.min(old_lines.len())..].iter().map(|line| (*line).to_owned()));
        let after = String::from_utf8(after).unwrap();
        let rebuilt = rebuilt.join("\n");
        prop_assert_eq!(rebuilt.trim_end_matches('\n'), after.trim_end_matches('\n'));
    }
}
