//! Commands that show one file: what they showed counts as read, so that it can be edited.

use std::io::Read as _;
use std::path::{Path, PathBuf};

use pelton_shell::{Place as Standing, Word};

use crate::limits::SHELL_SEEN_BYTES_MAX;
use crate::tools::disk::{Place, Target, is_quick};
use crate::tools::file_memory::{FileMemory, Fingerprint, Reading};
use crate::tools::tool::ToolCx;

/// Notes the file that a command has shown, if it is such a command.
pub(super) async fn note(command: &str, cx: &ToolCx) {
    let Some(file) = file_shown(command) else { return };
    let (path, files) = (cx.absolute(&file), cx.files.clone());
    // A file that cannot be looked at is one that was not read.
    if is_quick(&path) {
        remember(&path, &files);
    } else {
        let _ = tokio::task::spawn_blocking(move || remember(&path, &files)).await;
    }
}

fn remember(path: &Path, files: &FileMemory) -> Option<()> {
    let place = Place::find(&Target { path: path.to_path_buf(), judged: None }).ok()?;
    let (file, _) = place.open().ok()?;
    let mut content = Vec::new();
    file.take(SHELL_SEEN_BYTES_MAX + 1).read_to_end(&mut content).ok()?;
    if content.len() as u64 > SHELL_SEEN_BYTES_MAX || content.contains(&0) {
        return None;
    }
    let ends = memchr::memchr_iter(b'\n', &content).count() as u64;
    let lines_total = ends + u64::from(content.last().is_some_and(|last| *last != b'\n'));
    let reading = Reading {
        content: Fingerprint::of(&content),
        lines: 1..lines_total + 1,
        lines_total,
        lines_cut: false,
        range_asked: true,
    };
    files.note_read(place.path(), reading);
    Some(())
}

/// The one file that a command shows, if that is all it does.
fn file_shown(command: &str) -> Option<PathBuf> {
    let script = pelton_shell::read(command).ok()?;
    let [command] = &script.commands[..] else { return None };
    let is_plain = script.doubts.is_empty()
        && command.assignments.is_empty()
        && command.redirections.is_empty()
        && is_by_itself(&command.place);
    let words: Vec<&str> = command.words.iter().map(Word::literal).collect::<Option<_>>()?;
    let (program, args) = words.split_first().filter(|_| is_plain)?;
    let (flags, valued) = match *program {
        "cat" => ("nbsAevtETu", ""),
        "head" | "tail" => ("qvz", "nc"),
        "sed" => ("nErsu", "e"),
        "grep" | "egrep" | "fgrep" => ("nivwxHhosEFPGa", "ABCme"),
        "rg" => ("nivwxHINosFPSa", "ABCme"),
        _ => return None,
    };
    let read = Options::read(args, flags, valued)?;
    let has = |letter: char| read.seen.contains(&letter);
    // The first word may be what is looked for, or what is done.
    let before = match *program {
        "sed" if !has('n') => return None,
        "sed" | "grep" | "egrep" | "fgrep" | "rg" => usize::from(!has('e')),
        _ => 0,
    };
    match read.operands.get(before..)? {
        [file] if *file != "-" => Some(PathBuf::from(file)),
        _ => None,
    }
}

/// Whether a command is all there is. Alone it is a pipeline of one.
fn is_by_itself(place: &Standing) -> bool {
    let inside = place.in_substitution || place.in_process || place.in_function || place.in_subshell;
    !(inside || place.piped || place.in_background || place.conditional)
}

/// The words behind a program.
struct Options<'a> {
    seen: Vec<char>,
    operands: Vec<&'a str>,
}

impl<'a> Options<'a> {
    /// `None` if there is an option nobody here knows.
    fn read(args: &[&'a str], flags: &str, valued: &str) -> Option<Self> {
        let (mut seen, mut operands) = (Vec::new(), Vec::new());
        let mut args = args.iter();
        while let Some(arg) = args.next() {
            match arg.strip_prefix('-') {
                None | Some("") => operands.push(*arg),
                Some("-") => operands.extend(args.by_ref()),
                Some(long) if long.starts_with('-') => return None,
                Some(count) if count.chars().all(|c| c.is_ascii_digit()) => {}
                Some(letters) => {
                    for (at, letter) in letters.char_indices() {
                        seen.push(letter);
                        if valued.contains(letter) {
                            if at + letter.len_utf8() == letters.len() {
                                args.next()?;
                            }
                            break;
                        }
                        if !flags.contains(letter) {
                            return None;
                        }
                    }
                }
            }
        }
        Some(Self { seen, operands })
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;
    use crate::tools::builtin::tests::Bench;

    #[test]
    fn commands_that_show_one_file_are_known() {
        for (command, file) in [
            ("cat a.rs", "a.rs"),
            ("cat -n 'my file'", "my file"),
            ("head -n 20 a", "a"),
            ("head -20 a", "a"),
            ("tail -n5 a", "a"),
            ("sed -n '1,5p' a", "a"),
            ("sed -ne 1p a", "a"),
            ("grep -n foo a", "a"),
            ("grep -A 3 -e foo -- a", "a"),
            ("rg foo a", "a"),
        ] {
            assert_eq!(file_shown(command), Some(PathBuf::from(file)), "{command}");
        }
        for command in [
            "cat a b",
            "cat a | head",
            "cat a > b",
            "cat < a",
            "cat",
            "cat -",
            "cat $x",
            "cat *.rs",
            "(cat a)",
            "cat a &",
            "cat a; rm a",
            "X=1 cat a",
            "sed 1p a",
            "sed -i s/a/b/ a",
            "grep -l foo a",
            "grep -c foo a",
            "grep -r foo a",
            "tail -f a",
            "head --bytes 3 a",
            "less a",
            "xxd a",
        ] {
            assert_eq!(file_shown(command), None, "{command}");
        }
    }

    #[tokio::test]
    async fn a_file_that_was_shown_can_be_edited() {
        let bench = Bench::new();
        for (nth, (command, may)) in [
            ("cat FILE", true),
            ("grep -n two FILE", true),
            ("sed -n 2p FILE", true),
            ("wc -l FILE", false),
            ("cat FILE | tail -n 1", false),
            ("grep nothing FILE", false),
        ]
        .into_iter()
        .enumerate()
        {
            let file = format!("{nth}.txt");
            bench.put(&file, "one\ntwo\n");
            bench.bash(&command.replace("FILE", &file)).await;
            let edit = json!({"file_path": bench.path(&file), "old_string": "two", "new_string": "2"});
            assert_eq!(bench.run("Edit", edit).await.error, !may, "{command}");
        }
    }
}
