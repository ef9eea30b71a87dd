//! Calls in a directory that is really there, in the order rules, checks, hooks and modes are asked.

use std::fs;
use std::path::PathBuf;
use std::sync::Arc;

use serde_json::{Value, json};

use super::super::gate::{Access, Gate, Judged};
use super::super::place::Own;
use super::*;

/// `work`, which is worked in, beside `home` and `out`.
struct Place {
    dir: tempfile::TempDir,
}

#[derive(Clone, Copy)]
struct Case<'a> {
    mode: Mode,
    allow: &'a [&'a str],
    ask: &'a [&'a str],
    deny: &'a [&'a str],
    hook: HookSays<'a>,
}

const NONE: Case<'static> =
    Case { mode: Mode::Default, allow: &[], ask: &[], deny: &[], hook: HookSays::Nothing };

impl Place {
    fn new() -> Self {
        let place = Self { dir: tempfile::tempdir().unwrap() };
        for dir in ["work/src", "work/secret", "work/.git/hooks", "home", "out"] {
            fs::create_dir_all(place.path(dir)).unwrap();
        }
        for file in ["work/a.txt", "work/denied.txt", "work/src/b.rs", "out/c.txt", "home/.bashrc"] {
            fs::write(place.path(file), "x\n").unwrap();
        }
        place
    }

    fn path(&self, path: &str) -> PathBuf {
        fs::canonicalize(self.dir.path()).unwrap().join(path)
    }

    fn gate(&self, case: &Case<'_>, own: &Own) -> Gate {
        let rules = |texts: &[&str]| texts.iter().map(|text| text.parse().expect(text)).collect();
        let set = RuleSet {
            allow: rules(case.allow),
            ask: rules(case.ask),
            deny: rules(case.deny),
            ..RuleSet::default()
        };
        let (roots, home) = ([self.path("work")], Some(self.path("home")));
        Gate::with_own(Arc::new(set), case.mode, &roots, home, own)
    }

    fn decide(&self, case: &Case<'_>, tool: &str, input: &Value, access: &Access) -> Decision {
        let gate = self.gate(case, &Own::default());
        gate.judge(&Judged { tool, input, access, cwd: &self.path("work"), hook: case.hook })
    }

    #[track_caller]
    fn bash(&self, case: &Case<'_>, command: &str, expected: &str) -> Decision {
        let decision = self.decide(case, "Bash", &json!({}), &Access::Shell(command.to_owned()));
        assert_eq!(decision.verdict.name(), expected, "{command}: {decision:#?}");
        decision
    }

    #[track_caller]
    fn edit(&self, case: &Case<'_>, path: &str, expected: &str) -> Decision {
        let decision = self.decide(case, "Edit", &json!({}), &Access::Edit(self.path(path)));
        assert_eq!(decision.verdict.name(), expected, "{path}: {decision:#?}");
        decision
    }

    #[track_caller]
    fn read(&self, case: &Case<'_>, path: &str, expected: &str) -> Decision {
        let decision = self.decide(case, "Read", &json!({}), &Access::Read(self.path(path)));
        assert_eq!(decision.verdict.name(), expected, "{path}: {decision:#?}");
        decision
    }
}

#[test]
fn modes_decide_what_no_rule_names() {
    let place = Place::new();
    place.bash(&NONE, "ls -l", "allow");
    place.bash(&NONE, "make", "ask");
    place.read(&NONE, "work/a.txt", "allow");
    place.read(&NONE, "out/c.txt", "ask");
    place.edit(&NONE, "work/a.txt", "ask");
    let accept = Case { mode: Mode::AcceptEdits, ..NONE };
    place.edit(&accept, "work/a.txt", "allow");
    place.edit(&accept, "work2/a", "ask");
    place.edit(&accept, "work/.git/hooks/pre-commit", "ask");
    place.edit(&accept, "work/sub/.GIT/config", "ask");
    place.edit(&accept, "work/.bashrc", "ask");
    place.bash(&accept, "make", "ask");
    let plan = Case { mode: Mode::Plan, allow: &["Edit", "Bash"], ..NONE };
    place.edit(&plan, "work/a.txt", "ask");
    place.bash(&plan, "make", "ask");
    place.bash(&plan, "echo x > a.txt", "ask");
    place.bash(&plan, "ls", "allow");
    let quiet = Case { mode: Mode::DontAsk, allow: &["Bash(make)"], ..NONE };
    place.bash(&quiet, "make", "allow");
    place.bash(&quiet, "make all", "deny");
    place.bash(&quiet, "ls", "allow");
    let bypass =
        Case { mode: Mode::BypassPermissions, deny: &["Bash(curl *)"], ask: &["Edit(/a.txt)"], ..NONE };
    place.bash(&bypass, "make", "allow");
    place.bash(&bypass, "make && curl x", "deny");
    place.edit(&bypass, "work/a.txt", "ask");
    place.bash(&bypass, "echo x > a.txt", "ask");
    place.edit(&bypass, "out/x", "allow");
    place.edit(&bypass, "work/.git/config", "allow");
}

#[test]
fn accepted_edits_are_those_of_a_few_programs_inside() {
    let place = Place::new();
    let accept = Case { mode: Mode::AcceptEdits, ..NONE };
    for command in [
        "touch b.txt",
        "mkdir -p x/y && touch x/y/z",
        "cp a.txt b.txt",
        "mv a.txt src/",
        "rm -rf src",
        "rmdir secret",
        "sed -i 's/x/y/' a.txt",
        "echo x > new.txt",
        "cat a.txt >> new.txt; ls",
        "rm *.txt",
    ] {
        place.bash(&accept, command, "allow");
        place.bash(&NONE, command, "ask");
    }
    for command in [
        "touch ../out/b",
        "cp a.txt ../out/",
        "cp ../out/c.txt .",
        "mv a.txt .git/x",
        "cp a.txt .git/hooks/pre-commit",
        "cp ../home/.bashrc .",
        "rm -rf .git",
        "sed -i 's/x/y/e' a.txt",
        "sed -i 's/x/y/w ../out/f' a.txt",
        "touch $x",
        "touch ~/x",
        "echo x > ../out/f",
        "echo x > .git/config",
        "echo x > $f",
        "cd src && echo x > f",
        "chmod +x a.txt",
        "ln -s a.txt b",
        "tee x",
        "FOO=1 touch x",
        "touch x &",
        "find . -name x -delete",
        "rm -rf *",
        "rm -rf .",
    ] {
        place.bash(&accept, command, "ask");
    }
}

#[test]
fn every_command_of_a_line_must_be_allowed_and_any_can_deny() {
    let place = Place::new();
    let case =
        Case { allow: &["Bash(git diff *)", "Bash(npm run test:*)", "Bash(make)", "Bash(cargo*)"], ..NONE };
    for (command, expected) in [
        ("git diff", "allow"),
        ("npm run test", "allow"),
        ("npm run test unit", "allow"),
        ("npm run tests", "ask"),
        ("make  ", "allow"),
        ("make all", "ask"),
        ("cargo-deny check", "allow"),
        ("npm run test && make", "allow"),
        ("npm run test; rm -rf x", "ask"),
        ("npm run test | tail -5", "allow"),
        ("npm run test $(rm x)", "ask"),
        ("npm run test $X", "ask"),
        ("npm run test > ../out/x", "ask"),
        ("npm run test > /dev/null 2>&1", "allow"),
        ("npm run test\nrm x", "ask"),
        ("npm run test &", "ask"),
        ("NODE_ENV=test npm run test", "allow"),
        ("FOO=1 npm run test", "ask"),
        ("PATH=. npm run test", "ask"),
        ("timeout 60 npm run test", "allow"),
        ("sudo npm run test", "ask"),
        ("cd src && make", "allow"),
        ("cd ../out && make", "ask"),
        // It is the same repository there; behind a command that is more than looking it need not be.
        ("cd src && git diff", "allow"),
        ("make && cd src && git status", "ask"),
    ] {
        place.bash(&case, command, expected);
    }
    let deny = Case { mode: Mode::BypassPermissions, deny: &["Bash(rm *)"], ..NONE };
    for command in [
        "rm -rf x; ls",
        "'rm' x",
        "r\\m x",
        "$'rm' x",
        "/bin/rm x",
        "sudo -u root rm x",
        "env A=1 rm x",
        "A=1 rm x",
        "timeout 5 nice rm x",
        "ls | xargs -n1 rm",
        "find . -exec rm {} +",
        "bash -c 'rm x'",
        "sh -xc \"ls; rm x\"",
        "eval rm x",
        "eval 'rm x'",
        "trap 'rm x' EXIT",
        "echo $(rm x)",
        "f() { rm x; }; f",
        "if true; then rm x; fi",
        "watch rm x",
        "command rm x",
        "exec rm x",
        "bash <<< 'rm x'",
        "rm",
    ] {
        place.bash(&deny, command, "deny");
    }
    for command in ["$X y", "sh -c \"$X\"", "eval $X", "echo rm x | sh", "r$X y"] {
        place.bash(&deny, command, "ask");
    }
    for command in ["echo rm", "grep rm a.txt", "ls $X", "sudo grep rm a.txt", "git rm x"] {
        place.bash(&deny, command, "allow");
    }
}

#[test]
fn deny_beats_ask_beats_allow_and_says_which_part_it_was() {
    let place = Place::new();
    let case =
        Case { allow: &["Bash"], ask: &["Bash(git push*)"], deny: &["Bash(git push --force*)"], ..NONE };
    place.bash(&case, "git commit -m x", "allow");
    place.bash(&case, "git -C . push origin", "ask");
    let denied = place.bash(&case, "ls && git -c a=b push --force; git push", "deny");
    assert_eq!(denied.rule.map(|rule| rule.to_string()).as_deref(), Some("Bash(git push --force*)"));
    assert_eq!(denied.part, Some(1));
    let parts: Vec<_> = denied.parts.iter().map(|part| (part.text.as_str(), part.verdict.name())).collect();
    assert_eq!(parts, [("ls", "allow"), ("git -c a=b push --force", "deny"), ("git push", "ask")]);
}

#[test]
fn rules_about_files_bind_commands() {
    let place = Place::new();
    let case = Case { allow: &["Bash"], deny: &["Read(denied.txt)", "Edit(/src/**)"], ..NONE };
    for command in [
        "cat denied.txt",
        "cat < denied.txt",
        "cat ./src/../denied.txt",
        "grep x denied.txt",
        "head -1 *.txt",
        "sed -n 1p denied.txt",
        "base64 denied.txt",
        "dd if=denied.txt",
        "cp denied.txt b",
        "cat \"$PWD/denied.txt\"",
        "cat $X/denied.txt",
        "python x.py --file=denied.txt",
        "git show HEAD:denied.txt",
        "echo x > denied.txt",
        "echo x > src/b.rs",
        "tee src/new",
        "cp a.txt src",
        "mv src/b.rs .",
        "rm src/b.rs",
        "rm -rf src",
        "sed -i s/x/y/ src/b.rs",
        "touch src/n",
        "truncate -s0 src/b.rs",
        "dd of=src/b.rs",
        "install a.txt src/b.rs",
        "ln -s a.txt src/l",
        "bash -c 'echo x > src/b.rs'",
        "cd src && rm b.rs",
    ] {
        place.bash(&case, command, "deny");
    }
    for command in ["cat a.txt", "cat src/b.rs", "echo denied", "ls"] {
        place.bash(&case, command, "allow");
    }
    let reads = Case { allow: &["Read(//**)"], ..NONE };
    place.bash(&reads, &format!("cat {}", place.path("out/c.txt").display()), "allow");
    place.bash(&reads, &format!("x {}", place.path("out/c.txt").display()), "ask");
}

#[test]
fn pit_P4_removals_nobody_recovers_from_are_asked_about_even_in_bypass() {
    let place = Place::new();
    let bypass = Case { mode: Mode::BypassPermissions, ..NONE };
    let out = place.path("work").display().to_string();
    for command in [
        "rm -rf \"$UNSET\"/*",
        "rm -rf $UNSET/*",
        "rm -rf \"$UNSET\"/",
        "rm -rf ${UNSET}*",
        "rm -rf \"${X:?}\"/*",
        "rm -rf $X/usr",
        "find / -delete",
        "find / -name x -delete",
        "find ~ -delete",
        "find . -delete",
        "find -delete",
        "find . -type f -exec rm {} +",
        "rm -rf /",
        "rm -rf /*",
        "rm -rf /usr",
        "rm -rf /usr/",
        "rm -rf ~",
        "rm -rf ~/",
        "rm -rf ~/*",
        "rm -rf \"$HOME\"",
        "rm -rf $HOME/*",
        "rm -rf .",
        "rm -rf ./",
        "rm -rf ..",
        "rm -rf ../..",
        "rm -rf *",
        "rm -rf ./*",
        "rm -rf $(pwd)",
        "rm -rf \"$PWD\"",
        "cd / && rm -rf *",
        "cd ~ && rm -rf ./*",
        "cd src && rm -rf ..",
        "sudo rm -rf /",
        "env A=1 rm -rf /",
        "bash -c 'rm -rf /'",
        "echo $(rm -rf ~)",
        "cat <(rm -rf /)",
        "ls `rm -rf ~`",
        "rmdir /",
        "xargs rm -rf / < a.txt",
        "rm -rf -- /",
        "r''m -rf /",
        "/bin/rm -rf /",
        &format!("rm -rf {out}"),
    ] {
        place.bash(&bypass, command, "ask");
        place.bash(&Case { mode: Mode::DontAsk, ..bypass }, command, "deny");
        place.bash(&Case { allow: &["Bash"], ..NONE }, command, "ask");
        place.bash(&Case { hook: HookSays::Vouches, ..NONE }, command, "ask");
    }
    for command in [
        "rm -rf src",
        "rm -rf ./src/*",
        "rm *.txt",
        "git clean -fdx",
        "find . -name '*.pyc' -delete",
        "rm -rf /opt/thing/build",
        "rm -rf \"$X\"",
        "rm -rf \"$X/build\"",
        "echo 'rm -rf /'",
    ] {
        place.bash(&bypass, command, "allow");
    }
}

#[test]
fn a_hook_that_vouches_takes_the_place_of_the_question_only() {
    let place = Place::new();
    let hook = HookSays::Vouches;
    let case = Case { ask: &["Bash(git push*)"], deny: &["Bash(curl *)"], hook, ..NONE };
    place.bash(&case, "make", "allow");
    place.bash(&case, "make $X &", "allow");
    place.bash(&case, "git push", "ask");
    place.bash(&case, "curl x", "deny");
    place.bash(&case, "echo x > .git/config", "ask");
    place.edit(&Case { mode: Mode::AcceptEdits, ..case }, "work/.git/config", "ask");
}

#[test]
fn a_hook_that_asks_makes_a_question_of_what_is_allowed_but_not_of_what_is_denied() {
    let place = Place::new();
    let case =
        Case { deny: &["Bash(curl *)"], allow: &["Bash"], hook: HookSays::Asks("Is it late?"), ..NONE };
    let bypass = Case { mode: Mode::BypassPermissions, ..case };
    assert_eq!(place.bash(&case, "make", "ask").reason, "Is it late?");
    assert_eq!(place.bash(&bypass, "ls", "ask").cause, Cause::Hook);
    place.bash(&bypass, "curl x", "deny");
    place.bash(&Case { mode: Mode::DontAsk, ..case }, "make", "deny");
}

#[test]
fn a_question_says_what_makes_it_one() {
    let place = Place::new();
    let case = Case { ask: &["Bash(git push*)"], ..NONE };
    assert_eq!(place.bash(&case, "git push x", "ask").cause, Cause::Rule("Bash(git push*)".into()));
    assert_eq!(place.bash(&case, "make", "ask").cause, Cause::Unapproved);
    assert_eq!(place.bash(&case, "make $X", "ask").cause, Cause::Unclear);
    assert_eq!(place.edit(&case, "work/a.txt", "ask").cause, Cause::Unapproved);
    assert_eq!(place.edit(&case, "out/a", "ask").cause, Cause::Outside(place.path("out/a")));
    assert_eq!(place.edit(&case, "work/.git/x", "ask").cause, Cause::Protected(place.path("work/.git/x")));
    assert_eq!(place.read(&case, "out/c.txt", "ask").cause, Cause::Outside(place.path("out/c.txt")));
}

#[test]
fn other_tools_are_known_by_host_name_and_field() {
    let place = Place::new();
    let case = Case {
        allow: &["WebFetch(domain:*.example.com)", "Skill(pdf)", "mcp__a__*"],
        deny: &["WebFetch(domain:evil.example.com)", "Agent(model:opus)", "mcp__b"],
        ..NONE
    };
    let check = |tool: &str, input: Value, access: Access, expected: &str| {
        let decision = place.decide(&case, tool, &input, &access);
        assert_eq!(decision.verdict.name(), expected, "{tool} {access:?}: {decision:?}");
    };
    check("WebFetch", json!({}), Access::Url("https://a.example.com/x".into()), "allow");
    check("WebFetch", json!({}), Access::Url("https://EVIL.example.com./x".into()), "deny");
    check("WebFetch", json!({}), Access::Url("https://example.com/x".into()), "ask");
    check("Skill", json!({}), Access::Skill("pdf".into()), "allow");
    check("Skill", json!({}), Access::Skill("doc".into()), "ask");
    check("Task", json!({"model": "opus"}), Access::Agent("x".into()), "deny");
    check("Task", json!({"model": "haiku"}), Access::Agent("x".into()), "allow");
    check("mcp__a__x", json!({}), Access::Anything, "allow");
    check("mcp__b__x", json!({}), Access::Nothing, "deny");
    check("mcp__c__x", json!({}), Access::Anything, "ask");
    check("AskUserQuestion", json!({}), Access::Person("Which one?".into()), "ask");
}

#[test]
fn lines_that_cannot_be_read_are_asked_about() {
    let place = Place::new();
    let bare = Case { allow: &["Bash"], ..NONE };
    place.bash(&NONE, "echo 'unclosed", "ask");
    place.bash(&bare, "echo 'unclosed", "allow");
    place.bash(&bare, "rm -rf / 'unclosed", "ask");
    place.bash(&Case { deny: &["Bash(rm *)"], ..bare }, "echo 'unclosed", "ask");
    place.bash(&Case { deny: &["Bash(rm *)"], ..bare }, "rm x 'unclosed", "deny");
    place.bash(&NONE, &format!("echo {}", "x".repeat(10_001)), "ask");
}

#[test]
fn a_commit_message_in_a_quoted_document_is_text() {
    let place = Place::new();
    let case = Case { allow: &["Bash(git commit *)"], ..NONE };
    place.bash(&case, "git commit -m \"$(cat <<'EOF'\nFix: rm -rf $X `id`\n\nMore.\nEOF\n)\"", "allow");
    place.bash(&case, "git commit -m \"$(cat <<EOF\n$(id)\nEOF\n)\"", "ask");
}

/// Commands of every kind: looking, allowed, unknown, asked about, denied, doubtful, critical.
const COMMANDS: &[&str] = &[
    "ls -la",
    "cat a.txt",
    "grep -n x a.txt",
    "cat ../out/c.txt",
    "make",
    "make all",
    "npm test unit",
    "rm a.txt",
    "sudo rm a.txt",
    "git push origin",
    "git status",
    "echo $X",
    "echo $(ls)",
    "touch b.txt",
    "echo x > b.txt",
    "cp a.txt .git/x",
    "cd src",
    "cd ../out",
    "rm -rf $X/*",
    "FOO=1 make",
    "bash -c 'rm a.txt'",
    "find . -name x -exec rm {} +",
    "$X y",
    "sed -n 1p denied.txt",
    "for f in a.txt b.txt; do cat $f; done",
];
const ALLOWING: &[&str] =
    &["Bash", "Bash(make *)", "Bash(npm test *)", "Bash(rm *)", "Bash(* a.txt)", "Edit", "Read(//**)"];
const RESTRICTING: &[&str] = &[
    "Bash(rm *)",
    "Bash(git push *)",
    "Bash(ls *)",
    "Bash(make)",
    "Read(a.txt)",
    "Read(denied.txt)",
    "Edit(*.txt)",
    "Bash(* x)",
    "Bash",
    "mcp__*",
    "Bash(make | cat *)",
];
const SEPARATORS: &[&str] = &["; ", " && ", " || ", " | ", "\n"];

mod properties {
    use proptest::prelude::*;
    use proptest::sample::{select, subsequence};

    use super::*;

    fn modes() -> impl Strategy<Value = Mode> {
        select(&Mode::ALL[..])
    }

    fn verdict(place: &super::Place, case: &Case<'_>, line: &str) -> Verdict {
        place.decide(case, "Bash", &json!({}), &Access::Shell(line.to_owned())).verdict
    }

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(192))]

        #[test]
        fn more_restrictions_or_commands_never_allow_more(
            mode in modes(),
            allow in subsequence(ALLOWING, 0..=3),
            deny in subsequence(RESTRICTING, 0..=3),
            more in select(RESTRICTING),
            commands in proptest::collection::vec(select(COMMANDS), 1..4),
            added in select(COMMANDS),
            separator in select(SEPARATORS),
            in_front in any::<bool>(),
        ) {
            let place = super::Place::new();
            let line = commands.join(separator);
            let case = Case { mode, allow: &allow, ask: &[], deny: &deny, hook: HookSays::Nothing };
            let before = verdict(&place, &case, &line);

            let mut denied = deny.clone();
            denied.push(more);
            let stricter = Case { deny: &denied, ..case };
            prop_assert!(verdict(&place, &stricter, &line) >= before, "{line} with {more}");
            let asking = Case { ask: &[more], ..case };
            prop_assert!(verdict(&place, &asking, &line) >= before, "{line}, asked about {more}");

            let longer = match in_front {
                true => format!("{added}{separator}{line}"),
                false => format!("{line}{separator}{added}"),
            };
            // Behind `cd src &&` the others look for files elsewhere, where perhaps nothing is guarded; behind `cd src ||` nothing runs if
            // that can be entered.
            let moves = in_front && added.starts_with("cd ") && separator.trim() != "|";
            if before != Verdict::Allow && !moves {
                prop_assert_ne!(verdict(&place, &case, &longer), Verdict::Allow, "{}", longer);
            }
        }

        #[test]
        fn quotes_never_allow_more(
            mode in modes(),
            allow in subsequence(ALLOWING, 0..=3),
            deny in subsequence(RESTRICTING, 0..=3),
            command in select(&["ls -la", "cat a.txt", "make all", "rm a.txt", "git push origin", "npm test unit", "touch b.txt", "sudo rm a.txt", "make | cat a.txt"][..]),
            at in 0usize..4,
            quote in select(&["'", "\"", "\\"][..]),
        ) {
            let place = super::Place::new();
            let words: Vec<&str> = command.split(' ').collect();
            let at = at % words.len();
            prop_assume!(words[at] != "|");
            let quoted: Vec<String> = words
                .iter()
                .enumerate()
                .map(|(n, word)| match (n == at, quote) {
                    (false, _) => (*word).to_owned(),
                    (true, "\\") => format!("\\{word}"),
                    (true, quote) => format!("{quote}{word}{quote}"),
                })
                .collect();
            let case = Case { mode, allow: &allow, ask: &[], deny: &deny, hook: HookSays::Nothing };
            let (plain, quoted) = (command.to_owned(), quoted.join(" "));
            prop_assert!(verdict(&place, &case, &quoted) >= verdict(&place, &case, &plain), "{plain} as {quoted}");
        }
    }
}

#[test]
fn the_box_takes_the_place_of_questions_about_the_whole_tool_and_about_names_it_holds() {
    let place = Place::new();
    let held = Case { hook: HookSays::Held, ..NONE };
    for command in ["make", "echo x > .git/config", "cat $(which x)", "rm a.txt", "f() { make; }; f"] {
        place.bash(&held, command, "allow");
        place.bash(&Case { ask: &["Bash"], ..held }, command, "allow");
        place.bash(&Case { ask: &["Bash(*)"], ..held }, command, "allow");
        place.bash(&Case { deny: &["Bash"], ..held }, command, "deny");
    }
    place.bash(&Case { ask: &["Bash(make *)"], ..held }, "ls; make all", "ask");
    place.bash(&Case { ask: &["Bash", "Bash(make *)"], ..held }, "make all", "ask");
    place.bash(&Case { deny: &["Bash(make *)"], ..held }, "make all", "deny");
    place.bash(&Case { deny: &["Read(denied.txt)"], ..held }, "cat denied.txt", "deny");
    place.bash(&held, "rm -rf /", "ask");
    place.bash(&held, "rm -rf ~", "ask");
}

#[test]
fn notes_are_written_unasked_and_nothing_else_is() {
    let place = Place::new();
    let notes = place.path("home/.claude/projects/p/memory");
    fs::create_dir_all(notes.join("deep")).unwrap();
    fs::create_dir_all(place.path("home/.claude/commands")).unwrap();
    fs::write(place.path("out/c.md"), "x").unwrap();
    std::os::unix::fs::symlink(place.path("out/c.md"), notes.join("link.md")).unwrap();
    std::os::unix::fs::symlink(place.path("home/.claude/commands"), notes.join("linked")).unwrap();
    fs::hard_link(place.path("out/c.md"), notes.join("twice.md")).unwrap();
    let own = Own { notes: vec![notes.clone()], ..Own::default() };
    let check = |case: &Case<'_>, access: Access, expected: &str| {
        let (input, cwd) = (json!({}), place.path("work"));
        let judged = Judged { tool: "Write", input: &input, access: &access, cwd: &cwd, hook: case.hook };
        let decision = place.gate(case, &own).judge(&judged);
        assert_eq!(decision.verdict.name(), expected, "{access:?}: {decision:#?}");
    };
    let edit = |path: &str| Access::Edit(notes.join(path));
    for mode in [Mode::Default, Mode::AcceptEdits, Mode::DontAsk] {
        let case = Case { mode, ..NONE };
        let asked = if mode == Mode::DontAsk { "deny" } else { "ask" };
        check(&case, edit("MEMORY.md"), "allow");
        check(&case, edit("deep/tea.md"), "allow");
        check(&case, Access::Read(notes.join("deep/tea.md")), "allow");
        for no_note in [
            "run.sh",
            "link.md",
            "linked/x.md",
            "twice.md",
            "../../../CLAUDE.md",
            "../other.md",
            ".git/x.md",
            ".claude/commands/x.md",
        ] {
            check(&case, edit(no_note), asked);
        }
    }
    check(&Case { mode: Mode::Plan, ..NONE }, edit("MEMORY.md"), "ask");
    check(&Case { deny: &["Edit(~/.claude/**)"], ..NONE }, edit("MEMORY.md"), "deny");
    check(&Case { ask: &["Write"], ..NONE }, edit("MEMORY.md"), "ask");
    let line = Access::Shell(format!("echo x > {}/MEMORY.md", notes.display()));
    check(&NONE, line, "ask");
}
