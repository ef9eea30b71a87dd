use super::*;

fn check(command: &str, looks_only: bool) {
    assert_eq!(is_read_only(command), looks_only, "{command}");
}

#[test]
fn ordinary_inspection_only_looks() {
    for command in [
        "ls",
        "ls -la src",
        "cat a.txt",
        "head -n 5 'a b.txt'",
        "grep -rn foo src",
        "rg foo",
        "find . -name x.rs",
        "git status",
        "git log --oneline -5",
        "git diff HEAD",
        "wc -l a",
        "sort a",
        "echo \"hi there\"",
        "pwd",
        "date +%s",
        "diff a b",
        "uniq a",
        "uniq -c -",
        "uniq -f2 a",
        "cat -n a",
        "cat -",
        "cat -- -n",
        "head -5 a",
        "head -n5 -q a b",
        "head --lines=-5 a",
        "tail -n +3 a",
        "tail -20 a",
        "ls --color=auto -1 --sort size",
        "grep -rn -i -E -A3 '--include=*.rs' 'a|b' src",
        "grep --include '*.rs' -r /api/v1 .",
        "grep -e x -e y a",
        "rg -n -i -g '*.rs' -t rust 'a b'",
        "rg --files -g '!x'",
        "rg -A3 -B 2 x src",
        "find . -name '*.rs' -type f -maxdepth 3",
        "find",
        "find a b '(' -name x -o -not -empty ')' -print0",
        "find . -newer a -size +10k -mtime -7",
        "diff -u a b",
        "diff -U5 --no-dereference -r a b",
        "stat a",
        "stat -c %s a",
        "du -sh .",
        "du -d 1 -h",
        "sort -u -k2 a",
        "sort -t: -k2,2n a",
        "cut -d: -f1 a",
        "git --no-pager log -p -3",
        "git log --since=yesterday '--format=%h %s' -- src",
        "git log -S foo --oneline main..dev",
        "git show HEAD~2",
        "git show HEAD^",
        "git show --stat HEAD:a",
        "git diff --cached --name-only",
        "git diff -U10 -w HEAD -- a",
        "git status -sb",
        "git status --porcelain=v2",
        "git branch",
        "git branch -avv",
        "git branch --list 'feature/*'",
        "git branch --show-current",
        "git branch --contains HEAD",
        "git tag -l 'v*'",
        "git remote -v",
        "git stash list",
        "git worktree list",
        "git blame -L 1,5 a",
        "git rev-parse --abbrev-ref HEAD",
        "git ls-files -o --exclude-standard",
        "ls *",
        "cat src/*.rs",
        "sed -n 1p a",
        "awk '{print $1}' a",
        "l\\s",
        "echo \"$x\"",
        "cat a | grep b | head -3",
        "grep -R x .",
        "echo \"$(git rev-parse HEAD)\"",
        "find . -name x | xargs grep y",
        "find . -exec head -1 {} +",
        "while IFS= read -r line; do echo \"$line\"; done < a",
        "ls && pwd; git status || true",
        "cat a 2>/dev/null",
        "grep x a 2>&1 | sort -u",
        "for f in a b c; do wc -l $f; done",
        "for f in *.rs; do head -1 \"$f\"; done",
        "[ -f a ] && cat a",
        "test -d x || echo none",
        "printf '%s\\n' \"$HOME\"",
        "timeout 5 cat a",
        "time ls",
        "command -v cargo",
        "node --version",
        "jq .name package.json",
        "tar tf a.tar",
        "x=1; echo $x",
        "find . -name *.rs",
        "LANG=C sort a",
        "set -euo pipefail; ls",
        "if true; then ls; fi",
        "cat <<'EOF'\nrm -rf x\nEOF",
    ] {
        check(command, true);
    }
}

#[test]
fn whatever_may_write_run_or_hide_is_unknown() {
    for command in [
        "",
        " ",
        "rm -rf x",
        "ls; rm x",
        "ls && rm x",
        "ls | sh",
        "cat a > b",
        "cat $(id)",
        "cat `id`",
        "ls $HOME",
        "find . -delete",
        "find . -exec rm {} +",
        "find . -fprintf x y",
        "sort -o x a",
        "sort --output=x a",
        "sort --out=x a",
        "sort -no x",
        "rg --pre sh x",
        "rg -z x",
        "git -c a=b log",
        "git diff --output=x",
        "git diff --ext-diff",
        "git push",
        "git branch new",
        "PATH=. ls",
        "uniq a b",
        "date -s now",
        "date 01010000",
        "echo 'unclosed",
        "ls\nrm x",
        "ls & rm x",
        "FOO_BAR=1",
        "git log --out=x",
        "env ls",
        "sudo ls",
        "xargs rm",
        "tee x",
        "cat a > b",
        "cat $x",
        "cat a &",
        "cd x",
        "sort *",
        "find . -name *",
        "sed -i s/a/b/ x",
        "sed -n 'w x' a",
        "sed s/a/b/e a",
        "sed -f x a",
        "awk 'BEGIN{system(\"id\")}'",
        "awk -f x a",
        "echo $(touch x)",
        "echo $(id)",
        "echo ${x@P}",
        "echo ${!x}",
        "printf -v PATH x",
        "printf '%n' x",
        "test -v 'a[$(id)]'",
        "f() { ls; }; f",
        "export PATH=.",
        "IFS=x",
        "LD_PRELOAD=x ls",
        "ls > $x",
        "xargs cat",
        "time -o x ls",
        "timeout 5 rm x",
        "bash -c ls",
        "eval ls",
        "source x",
        ". x",
        "exec ls",
        "hostname x",
        "tree -o x",
        "xxd -r a",
        "xxd a b",
        "file -m x a",
        "jq -f x a",
        "fd -x rm",
        "bat --pager=x a",
        "strings @x",
        "git grep -O x",
        "git config a.b c",
        "git config --unset a.b",
        "git cat-file --textconv x",
        "curl x",
        "ps auxe",
        "tar xf a",
        "tar tf a --to-command=x",
        "set -o posix",
        "git show -Oorder",
        "uniq - victim",
        "uniq -- - victim",
        "uniq -c a b",
        "tail -f a",
        "tail -5f a",
        "tail --follow a",
        "ls -L",
        "ls -lRL .",
        "ls --dereference",
        "ls --unheard-of",
        "ls --alm",
        "ls --all=yes",
        "cat a=~/b",
        "cat a:~/b",
        "grep -f../outside/f -r .",
        "grep -rf x .",
        "grep --file=x y",
        "grep --exclude-from=x y z",
        "grep -d recurse x .",
        "grep -A /etc/passwd x",
        "grep -e",
        "rg -L x",
        "rg --follow x",
        "rg -nL x",
        "rg -f x",
        "rg --ignore-file x y",
        "rg --pre=sh x",
        "find -L .",
        "find -H .",
        "find . -follow",
        "find . -name",
        "find . -maxdepth x",
        "find . -type f x",
        "find . -files0-from x",
        "find . -execdir rm '{}' +",
        "du -X x",
        "du --exclude-from=x",
        "du -L",
        "du --files0-from=x",
        "wc --files0-from=x",
        "sort --files0-from=x",
        "sort -T x a",
        "sort --random-source=x a",
        "sort -uox a",
        "diff -l a b",
        "diff -X x a b",
        "diff --from-file=x a",
        "file -f x",
        "date -f x",
        "git --git-dir=x log",
        "git diff --no-index --output=c a b",
        "git branch new --color",
        "git branch -D x",
        "git branch --list -d x",
        "git branch -f a b",
        "git tag v1",
        "git tag -d v1",
        "git remote add a b",
        "git remote show a",
        "git stash",
        "git stash pop",
        "git worktree add x",
        "git log --show-signature",
        "git blame --contents x a",
        "git ls-files -X x",
        "git",
        "git --no-pager",
        "git --no-pager push",
        "/bin/ls",
    ] {
        check(command, false);
    }
}

fn looked(command: &str) -> Look {
    let survey = survey(command).expect(command);
    survey
        .steps
        .into_iter()
        .filter(|step| !step.text.is_empty())
        .find_map(|step| step.look.filter(|look| !look.files.is_empty() || !command.contains("for ")))
        .expect(command)
}

#[test]
fn words_that_may_name_files_are_told_from_others() {
    let paths = |command: &str| {
        let files = looked(command).files;
        files
            .into_iter()
            .map(|file| match file {
                Files::Named(path) => path,
                Files::InHome(path) => format!("~/{path}"),
                Files::Matching(pattern) => format!("<{pattern}>"),
                Files::InRepository { rest, .. } => format!("<top>/{rest}"),
            })
            .collect::<Vec<_>>()
    };
    for (command, expected) in [
        ("ls", &["."][..]),
        ("ls -la src", &["src"]),
        ("cat a - b", &["a", "-", "b"]),
        ("cat -- -n", &["-n"]),
        ("echo /etc/passwd", &[]),
        ("head -n 5 a", &["a"]),
        ("grep -A 3 /x a b", &["a", "b"]),
        ("grep a -e /x b", &["a", "b"]),
        ("grep -e/x a", &["a"]),
        ("grep -rn /x", &["."]),
        ("grep --regexp=/x a", &["a"]),
        ("rg x", &["."]),
        ("rg -g '*.rs' x a", &["a"]),
        ("rg --files /x", &["/x"]),
        ("find /x -name a", &["/x"]),
        ("find . -newer /x", &[".", "/x"]),
        ("sort -k 2 a", &["a"]),
        ("uniq -", &["-"]),
        ("git show HEAD:a/b", &["HEAD:a/b", "a/b"]),
        ("git log", &["."]),
        ("cat src/*.rs", &["<src/*.rs>"]),
        ("cat ~/x", &["~/x"]),
        ("for f in a b; do cat \"$f\"; done", &["a"]),
        ("git branch --list /x", &[]),
        ("git log -n 3 -- /x", &["/x"]),
    ] {
        assert_eq!(paths(command), expected, "{command}");
    }
    let survey = survey("x -fa --b=c d=e -g f HEAD:h").unwrap();
    let parts: Vec<&Files> = survey.steps[0].may_name.iter().collect();
    let named = |text: &str| Files::Named(text.to_owned());
    for part in ["a", "c", "d=e", "e", "f", "h"] {
        assert!(parts.contains(&&named(part)), "{part}: {parts:?}");
    }
}

#[test]
fn contents_that_no_word_names_are_known_of() {
    let reach = |command: &str| looked(command).reach;
    for (command, expected) in [
        ("cat a", Reach::Named),
        ("grep x a", Reach::Named),
        ("grep -nr x a", Reach::Below),
        ("grep --recursive x a", Reach::Below),
        ("rg x", Reach::Below),
        ("diff a b", Reach::BelowAndLinked),
        ("diff --no-dereference a b", Reach::Below),
        ("find .", Reach::Named),
        ("git status", Reach::Named),
        ("git status -v", Reach::Unnamed),
        ("git log --oneline", Reach::Named),
        ("git log -p", Reach::Unnamed),
        ("git log -U3", Reach::Unnamed),
        ("git log -L1,5:a", Reach::Unnamed),
        ("git show", Reach::Unnamed),
        ("git diff", Reach::Unnamed),
    ] {
        assert_eq!(reach(command), expected, "{command}");
    }
}

#[test]
fn variables_made_of_each_other_are_not_followed_without_end() {
    let names: Vec<String> = ('a'..='z').map(String::from).collect();
    let doubled: String =
        names.windows(2).map(|pair| format!("{0}=\"x${1}${1}\"; ", pair[0], pair[1])).collect();
    let all: String = names.iter().map(|name| format!("${name}")).collect();
    for last in ["z=y", "read z", "z=${q:-y}"] {
        check(&format!("{last}; {doubled}rm {all}"), false);
        check(&format!("{doubled}{last}; cat {all} > out"), false);
    }
}

/// Texts that hold each other several times are as many as their number to the power of their depth.
#[test]
fn texts_that_shells_get_are_judged_only_up_to_a_number_over_the_whole_line() {
    let nested = |times: usize, said: &str| {
        (0..3).fold(format!("echo {said}"), |inside, depth| {
            let name = ["d", "c", "b"][depth];
            let quoted = inside.replace('\'', "'\\''");
            let runs = format!("eval \"${name}\"; eval :; ").repeat(times);
            format!("{name}='{quoted}'; {runs}")
        })
    };
    let left = |line: &str| {
        let script = pelton_shell::read(line).unwrap();
        let mut budget = Budget::new();
        let mut survey = Survey::default();
        let is_whole = survey.add(&script, &[], &mut budget);
        (is_whole, survey, budget)
    };
    let (is_whole, survey, budget) = left(&nested(2, "hi"));
    assert!(is_whole && survey.steps.iter().all(|step| step.hides.is_none()));
    assert!(budget.texts > 0 && survey.steps.iter().any(|step| step.within.len() == 3));
    for times in [8, 20] {
        let line = nested(times, "hi");
        assert!(line.len() < 4_000, "{}", line.len());
        let (_, survey, _) = left(&line);
        // So many commands are looked at for all of them together, and what is left of them hides what it runs.
        assert!(survey.steps.len() <= COMMANDS_JUDGED_MAX, "{}", survey.steps.len());
        let texts: std::collections::BTreeSet<usize> =
            survey.steps.iter().flat_map(|step| &step.within).map(|within| within.number).collect();
        assert!(texts.len() <= TEXTS_JUDGED_MAX, "{}", texts.len());
        assert!(survey.steps.iter().any(|step| step.hides.is_some()));
    }
    // Long ones are fewer.
    let long = format!("x='echo {}'; {}", "y ".repeat(3_000), "eval \"$x\"; ".repeat(20));
    let (_, survey, budget) = left(&long);
    assert!(budget.texts > TEXTS_JUDGED_MAX - 20 && survey.steps.iter().any(|step| step.hides.is_some()));
    // And so deep.
    let deep = (0..6)
        .fold("ls".to_owned(), |inside, _| format!("echo \"{}\" | sh", inside.replace(['\\', '"'], "")));
    assert!(survey_of(&deep).steps.iter().all(|step| step.within.len() <= TEXTS_IN_TEXTS_MAX));
}

fn survey_of(line: &str) -> Survey {
    survey(line).unwrap()
}
