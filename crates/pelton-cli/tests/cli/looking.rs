//! What runs unasked because it only looks, run for real: nothing is there afterwards that was not there before.
//!
//! Programs with languages of their own (`sed`, `awk`), options that write, and words of the shell are thrown together at random; whatever of
//! it would run unasked is run in a directory of its own. The normal run takes some thousand lines, the same each time; this takes
//! as many as you like, other ones each time:
//!
//! ```console
//! $ PELTON_LOOK_CASES=50000 cargo test -p pelton-cli --test cli -- looking
//! ```

use std::collections::BTreeMap;
use std::time::UNIX_EPOCH;

use serde_json::{Value, json};

use crate::place::{Commanded, Place};

/// Numbers that look like chance.
struct Chance(u64);

impl Chance {
    fn new(usual: u64) -> Self {
        let now = || UNIX_EPOCH.elapsed().unwrap().as_nanos() as u64 | 1;
        Self(if wanted().is_some() { now() } else { usual })
    }

    fn below(&mut self, limit: usize) -> usize {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        (self.0 % limit as u64) as usize
    }

    fn pick<'w>(&mut self, words: &[&'w str]) -> &'w str {
        words[self.below(words.len())]
    }

    /// Some of these, one behind the other.
    fn soup(&mut self, words: &[&str], between: &[&str], most: usize) -> String {
        let count = 1 + self.below(most);
        let between = self.pick(between);
        (0..count).map(|_| self.pick(words)).collect::<Vec<_>>().join(between)
    }
}

fn wanted() -> Option<usize> {
    std::env::var("PELTON_LOOK_CASES").ok()?.parse().ok()
}

/// Makes lines, has them judged, and runs those that need nobody's leave.
#[track_caller]
fn run_what_is_allowed(usual: usize, at_least: usize, seed: u64, make: impl Fn(&mut Chance) -> String) {
    let place = Place::new();
    place.put("in.txt", "a\nb\ntouch mark\n");
    place.put("more.txt", "1 2\n");
    place.put("dir/x", "x\n");
    let mut chance = Chance::new(seed);
    let lines: Vec<String> = (0..wanted().unwrap_or(usual)).map(|_| make(&mut chance)).collect();
    let cases: Vec<String> = lines
        .iter()
        .enumerate()
        .map(|(at, line)| json!({"id": at.to_string(), "command": line}).to_string())
        .collect();
    let corpus = place.home().join("cases.jsonl");
    std::fs::write(&corpus, cases.join("\n")).unwrap();
    let judged = place.pelton(["permissions", "check", "--json", "--corpus", corpus.to_str().unwrap()]).run();
    let before = contents(&place);
    let mut ran = 0;
    for judged in judged.out.lines().filter_map(|line| serde_json::from_str::<Value>(line).ok()) {
        if judged["decision"] != "allow" {
            continue;
        }
        let line = &lines[judged["id"].as_str().unwrap().parse::<usize>().unwrap()];
        // Some never end.
        let mut command = std::process::Command::new("timeout");
        command
            .args(["-s", "KILL", "0.3", "bash", "-c", line])
            .env_clear()
            .env("PATH", std::env::var_os("PATH").unwrap())
            .env("HOME", place.home())
            .current_dir(place.work())
            .stdin(std::process::Stdio::null())
            .stdout(std::process::Stdio::null())
            .stderr(std::process::Stdio::null());
        command.status().unwrap();
        ran += 1;
        let after = contents(&place);
        assert!(after == before, "it was to run unasked, and changed something: {line:?}\n{after:?}");
    }
    assert!(ran >= at_least, "only {ran} lines were run");
}

/// The files of the working directory, and what is in them.
fn contents(place: &Place) -> BTreeMap<String, Vec<u8>> {
    let mut found = BTreeMap::new();
    let mut left = vec![place.work()];
    while let Some(dir) = left.pop() {
        for entry in std::fs::read_dir(dir).unwrap() {
            let path = entry.unwrap().path();
            if path.is_dir() {
                left.push(path.clone());
            }
            let content = std::fs::read(&path).unwrap_or_default();
            found.insert(path.to_string_lossy().into_owned(), content);
        }
    }
    found
}

/// In single quotes, whatever it is.
fn quoted(text: &str) -> String {
    format!("'{}'", text.replace('\'', "'\\''"))
}

#[test]
fn scripts_of_sed_that_are_allowed_change_nothing() {
    const WHOLE: &[&str] = &[
        "p",
        "1p",
        "$!d",
        "s/a/b/",
        "s/a/b/g;p",
        "/a/d",
        "y/a/b/",
        ":a",
        "ba",
        "b",
        "t x",
        "Tx",
        "a foo",
        "i\\\nfoo",
        "c\\",
        "{p}",
        "1{p;q}",
        "=",
        "n",
        "#x",
        "e touch mark",
        "w mark",
        "1w mark",
        "s/a/b/w mark",
        "s/.*/touch mark/e",
        "W mark",
        "/a/e touch mark",
        "$!N",
        "0~2p",
        "1,2p",
        "\\|a|p",
        "s|a|b|",
        "/[]/]/p",
        "s/[/]/x/",
    ];
    const BITS: &[&str] = &[
        ":a",
        "b",
        "t",
        "T",
        "a",
        "i",
        "c",
        "{",
        "}",
        "p",
        "s/a/",
        "/",
        "[",
        "]",
        "\\",
        "\\\\",
        "\n",
        " ",
        "\t",
        ";",
        "e touch mark",
        "w mark",
        "!",
        "1",
        "$",
        ",",
        "#",
        "g",
        "I",
        "M",
        "y/a/b/",
        "x",
        "e",
        "w",
        "s",
        "^",
        "&",
        "~",
        "+",
    ];
    run_what_is_allowed(1_200, 60, 0x5ed5, |chance| {
        let script = match chance.below(3) {
            0 => chance.soup(WHOLE, &["\n", ";", " ", "", "\\\n", "\\\\\n"], 4),
            1 => chance.soup(BITS, &[""], 9),
            _ => format!("{}{}{}", chance.pick(WHOLE), chance.soup(BITS, &[""], 3), chance.pick(WHOLE)),
        };
        let options = chance.pick(&["", "-n ", "-E ", "-s ", "-z ", "--posix "]);
        format!("sed {options}{} in.txt", quoted(&script))
    });
}

#[test]
fn programs_of_awk_that_are_allowed_change_nothing() {
    const BITS: &[&str] = &[
        "{",
        "}",
        "print",
        "print ",
        "printf ",
        "\"a\"",
        "\"",
        "/",
        "/a/",
        "/\"/",
        "> \"mark\"",
        ">\"mark\"",
        " > ",
        "\"mark\"",
        "system(\"touch mark\")",
        "system",
        "(",
        ")",
        "\"touch mark\"",
        " | ",
        "getline",
        "<",
        ",",
        ",\n",
        "\n",
        "\\\n",
        ";",
        "if(1)",
        "else ",
        "#",
        "#\"\n",
        "BEGIN",
        "END",
        "$1",
        " x ",
        "=",
        "1",
        "length",
        " in ",
        "++",
        "[",
        "]",
        "/[]/]",
        "^",
        "&&",
        "||",
        "?",
        ":",
        "0x",
        "f",
        "return ",
        "function f(x)",
        "while(0)",
        "for(;;)",
        "next",
        "exit",
        "delete ",
        "~",
        "!",
        "$",
        "\\\"",
        "\\/",
    ];
    const WHOLE: &[&str] = &[
        "{print}",
        "{print $1}",
        "BEGIN{print 1}",
        "/a/{n++}",
        "END{print n}",
        "{print > \"mark\"}",
        "{print \"a\",\n\"b\" > \"mark\"}",
        "{print /\"/ > \"mark\" #\"\n}",
        "{if(1)/\"/;print > \"mark\" #\"\n}",
        "{system(\"touch mark\")}",
        "$1 > 1",
        "{x = \"}\"}",
        "function f(a) {return a / 2}",
        "{print (1 > 2)}",
        "#\"",
        "\n",
    ];
    run_what_is_allowed(1_200, 40, 0xa3c1, |chance| {
        let program = match chance.below(3) {
            0 => format!("{{{}}}", chance.soup(BITS, &[""], 8)),
            1 => chance.soup(WHOLE, &["\n", " ", ""], 4),
            _ => format!("BEGIN{{{} {}}}", chance.soup(BITS, &[" "], 6), chance.pick(BITS)),
        };
        format!("awk {} in.txt", quoted(&program))
    });
}

#[test]
fn options_that_are_allowed_write_nothing() {
    const PROGRAMS: &[(&str, &[&str])] = &[
        (
            "sort",
            &[
                "-o",
                "-oout",
                "-uo",
                "--output=out",
                "--outp=out",
                "-u",
                "-k1",
                "-r",
                "-T.",
                "--compress-program=./x",
                "--files0-from=in.txt",
                "-S1",
            ],
        ),
        ("uniq", &["-c", "-", "out", "-u", "--", "-f1", "-dc", "--group"]),
        (
            "find",
            &[
                ".", "-name", "x", "-fprint", "-fprint0", "-fls", "-fprintf", "out", "%p", "-exec", "touch",
                "{}", ";", "+", "-delete", "-o", "-print", "-ok", "-type", "f", "(", ")", "cat", "-execdir",
                "tee",
            ],
        ),
        ("shuf", &["-o", "-oout", "--output=out", "-n1", "-e", "a"]),
        ("tee", &["/dev/null", "out", "-a", "--"]),
        ("xxd", &["-r", "-p", "out", "-l1", "-", "-rp"]),
        (
            "tar",
            &[
                "-tf",
                "tf",
                "-xf",
                "xOf",
                "-cf",
                "out",
                "-O",
                "-x",
                "-c",
                "--to-command=touch mark",
                "--checkpoint=1",
                "--checkpoint-action=exec=touch mark",
                "-I",
                "touch",
            ],
        ),
        ("gzip", &["-c", "-k", "-l", "-d", "-dc", "-t", "-f", "--stdout", "--keep"]),
        ("split", &["-l1", "--filter=touch mark", "--version", "-n2"]),
        ("dd", &["if=in.txt", "of=out", "count=1", "status=none"]),
        ("date", &["-r", "+%s", "-u", "-d", "now"]),
        ("tree", &["-o", "out", "-L", "1", "-H.", "-R"]),
        ("file", &["-C", "-m", "-b", "-f", "-z"]),
        ("diff", &["-u", "-r", "dir", "--output=out", "-q"]),
        (
            "git",
            &[
                "init",
                "status",
                "--git-dir=out",
                "-C",
                "dir",
                "log",
                "config",
                "a.b",
                "c",
                "--file",
                "out",
                "diff",
                "--output=out",
                "--no-index",
                "more.txt",
                "-c",
                "alias.x=!touch mark",
                "x",
                "bundle",
                "hash-object",
                "-w",
                "help",
                "grep",
                "-Otouch",
                "archive",
                "-o",
            ],
        ),
        ("jq", &[".", "-n", "-f", "--rawfile", "x", "-r", "input"]),
        ("awk", &["-f", "-v", "x=1", "{print > x}", "1", "--", "-F", ","]),
        ("sed", &["-i", "-n", "p", "-e", "w out", "-f", "--in-place", "-s", "-ni", "-Ei", "--"]),
        ("env", &["-i", "touch", "mark", "X=1", "-S", "touch mark", "-u", "X", "-0"]),
        ("xargs", &["touch", "-n1", "-I{}", "{}", "cat", "-a", "tee", "sh", "-c"]),
        ("printf", &["-v", "x", "%s", "a", "%n", "--"]),
        ("test", &["-f", "-n", "x", ">", "out", "-v", "="]),
        (
            "find dir -type f -exec",
            &["cat", "touch", "mark", "{}", ";", "+", "-exec", "sh", "-c", "sort", "-o"],
        ),
    ];
    run_what_is_allowed(1_500, 60, 0x0970, |chance| {
        let (program, words) = PROGRAMS[chance.below(PROGRAMS.len())];
        let words: Vec<&str> = words.iter().copied().chain(["in.txt", "in.txt"]).collect();
        let count = 1 + chance.below(6);
        let words: Vec<String> = (0..count).map(|_| quoted(chance.pick(&words))).collect();
        format!("{program} {}", words.join(" "))
    });
}

#[test]
fn lines_of_the_shell_that_are_allowed_change_nothing() {
    const BITS: &[&str] = &[
        "ls",
        "echo",
        "cat in.txt",
        "in.txt",
        "true",
        "$(",
        "`",
        ")",
        "touch mark",
        ";",
        "&&",
        "||",
        "|",
        "\n",
        "\"",
        "'",
        "{",
        "}",
        "((",
        "))",
        "[[",
        "]]",
        "<<E",
        "\nE\n",
        "${x:-",
        "x=",
        "$x",
        "<(",
        ">(",
        "> mark",
        ">",
        "mark",
        "\\",
        "#",
        "case x in",
        "x)",
        ";;",
        "esac",
        "if",
        "then",
        "fi",
        "for i in 1;",
        "do",
        "done",
        "while read l;",
        "a[$(touch mark)]",
        "'a[$(touch mark)]'",
        "$((",
        "x",
        "eval",
        "${x@P}",
        "'$(touch mark)'",
        "<<<",
        "-eq 1",
        "let",
        "declare",
        "printf -v x %s",
        "read x",
        "< in.txt",
        "xargs",
        "2>/dev/null",
        "&",
        "!",
        "(",
        "f()",
        "test -v",
        "[",
        "]",
        "$'touch'",
        "{touch,mark}",
        "touch",
        "sort",
        "-o",
        "out",
        "sed p",
        "find .",
        "head -1",
        "wc -l",
        "x=touch",
        "IFS=k",
        "set --",
        "$1",
        "\"$@\"",
        "unset",
        "trap 'touch mark' EXIT",
        "exec",
        "coproc",
        "time",
        "command",
        "alias ls=touch",
        "PS4='$(touch mark)'",
        "set -x",
        "set -e",
    ];
    const WHOLE: &[&str] = &[
        "ls",
        "cat in.txt",
        "x=1",
        "x=-oout",
        "x='a[$(touch mark)]'",
        "echo $x",
        "sort $x in.txt",
        "echo $((x))",
        "[[ $x -eq 1 ]]",
        "for f in *; do cat \"$f\"; done",
        "while read l; do echo $l; done < in.txt",
        "cat in.txt | while read l; do $l; done",
        "echo ${x:=touch}",
        "$x mark",
        "find . -type f | xargs cat",
        "find . | xargs -I{} sort {} -o {}",
        "cat $(ls)",
        "cat <(ls)",
        "echo \"$(wc -l < in.txt)\"",
        "if ls; then cat in.txt; fi",
        "case $x in 1) ls;; esac",
        "x=touch",
        "ls() { touch mark; }",
        "for i in 1 2; do echo $i; done",
        "read x < in.txt",
        "n=$(wc -l < in.txt); echo $((n + 1))",
        "printf '%s\\n' $x",
        "cd dir",
        "cat ../in.txt",
        "> mark",
        "ls > mark",
        "x=$(tail -1 in.txt)",
        "eval \"$x\"",
        "set -- touch mark",
        "\"$@\"",
        "a=(touch mark)",
        "\"${a[@]}\"",
        "mapfile -t a < in.txt",
        "${a[2]}",
    ];
    run_what_is_allowed(1_200, 60, 0xba54, |chance| match chance.below(2) {
        0 => chance.soup(BITS, &[" "], 7),
        _ => chance.soup(WHOLE, &["; ", " && ", "\n", " | "], 4),
    });
}
