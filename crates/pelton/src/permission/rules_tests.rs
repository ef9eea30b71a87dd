use super::*;

struct Case<'a> {
    mode: Mode,
    allow: &'a [&'a str],
    ask: &'a [&'a str],
    deny: &'a [&'a str],
}

const NONE: Case<'static> = Case { mode: Mode::Default, allow: &[], ask: &[], deny: &[] };

fn rules(texts: &[&str]) -> Vec<Rule> {
    texts.iter().map(|text| text.parse().expect(text)).collect()
}

fn here() -> Here {
    let one = |path: &str| vec![path.into()];
    Here { start: one("/w"), cwd: one("/w"), home: one("/home/u"), roots: one("/w"), own: one("/own") }
}

fn judge(case: &Case<'_>, tool: &str, target: Target<'_>) -> Verdict {
    let set = RuleSet { allow: rules(case.allow), ask: rules(case.ask), deny: rules(case.deny) };
    let here = here();
    set.judge(case.mode, &Request { tool, target, here: &here, hook: HookSays::Nothing })
}

fn word(verdict: &Verdict) -> &'static str {
    match verdict {
        Verdict::Allow => "allow",
        Verdict::Deny(_) => "deny",
        Verdict::Ask { .. } => "ask",
    }
}

fn bash(case: &Case<'_>, command: &str, expected: &str) {
    let looks_only = super::super::shell::is_read_only(command);
    let verdict = judge(case, "Bash", Target::Shell { command, looks_only, names: &[] });
    assert_eq!(word(&verdict), expected, "Bash {command}: {verdict:?}");
}

fn at(given: &str, real: &str) -> Place {
    Place { given: given.into(), real: real.into() }
}

fn edit(case: &Case<'_>, path: &str, expected: &str) {
    let verdict = judge(case, "Edit", Target::Edit(&at(path, path)));
    assert_eq!(word(&verdict), expected, "Edit {path}: {verdict:?}");
}

fn read(case: &Case<'_>, path: &str, expected: &str) {
    let verdict = judge(case, "Read", Target::Read(&at(path, path)));
    assert_eq!(word(&verdict), expected, "Read {path}: {verdict:?}");
}

#[test]
fn modes_decide_what_no_rule_names() {
    bash(&NONE, "ls -l", "allow");
    bash(&NONE, "make", "ask");
    read(&NONE, "/w/a", "allow");
    read(&NONE, "/etc/passwd", "ask");
    read(&NONE, "/own/result.txt", "allow");
    edit(&Case { mode: Mode::AcceptEdits, ..NONE }, "/own/result.txt", "ask");
    read(&Case { deny: &["Read(//own/**)"], ..NONE }, "/own/result.txt", "deny");
    edit(&NONE, "/w/a", "ask");
    let accept = Case { mode: Mode::AcceptEdits, ..NONE };
    edit(&accept, "/w/a", "allow");
    edit(&accept, "/w2/a", "ask");
    edit(&accept, "/w/.git/hooks/pre-commit", "ask");
    edit(&accept, "/w/sub/.GIT/config", "ask");
    edit(&accept, "/w/.bashrc", "ask");
    bash(&accept, "make", "ask");
    let plan = Case { mode: Mode::Plan, allow: &["Edit", "Bash"], ..NONE };
    edit(&plan, "/w/a", "deny");
    bash(&plan, "make", "deny");
    bash(&plan, "ls", "allow");
    let quiet = Case { mode: Mode::DontAsk, ..NONE };
    bash(&quiet, "make", "deny");
    bash(&quiet, "ls", "allow");
    let bypass = Case { mode: Mode::BypassPermissions, deny: &["Bash(curl *)"], ask: &["Edit(/a)"], ..NONE };
    bash(&bypass, "make", "allow");
    bash(&bypass, "curl x", "deny");
    edit(&bypass, "/w/a", "ask");
    edit(&bypass, "/etc/x", "allow");
}

#[test]
fn command_patterns_have_word_borders_and_vouch_only_for_plain_words() {
    let case =
        Case { allow: &["Bash(git diff *)", "Bash(npm run test:*)", "Bash(make)", "Bash(cargo*)"], ..NONE };
    for (command, expected) in [
        ("git diff", "allow"),
        ("git diff --stat", "allow"),
        ("git difftool x", "ask"),
        ("npm run test", "allow"),
        ("npm run test unit", "allow"),
        ("npm run tests", "ask"),
        ("make", "allow"),
        ("make  ", "allow"),
        ("make all", "ask"),
        ("cargo-deny check", "allow"),
        ("npm run test; rm -rf x", "ask"),
        ("npm run test $(rm x)", "ask"),
        ("npm run test > /etc/x", "ask"),
        ("npm run test\nrm x", "ask"),
    ] {
        bash(&case, command, expected);
    }
    let deny = Case { mode: Mode::BypassPermissions, deny: &["Bash(rm *)"], ..NONE };
    bash(&deny, "rm -rf x; ls", "deny");
}

#[test]
fn a_hook_that_vouches_takes_the_place_of_the_question_only() {
    let set = RuleSet { ask: rules(&["Bash(git push*)"]), deny: rules(&["Bash(curl *)"]), allow: Vec::new() };
    let judged = |command: &str| {
        let target = Target::Shell { command, looks_only: false, names: &[] };
        let verdict = set
            .judge(Mode::Default, &Request { tool: "Bash", target, here: &here(), hook: HookSays::Vouches });
        word(&verdict)
    };
    assert_eq!([judged("make"), judged("git push"), judged("curl x")], ["allow", "ask", "deny"]);
    let place = at("/w/.git/config", "/w/.git/config");
    let protected =
        Request { tool: "Edit", target: Target::Edit(&place), here: &here(), hook: HookSays::Vouches };
    assert_eq!(word(&set.judge(Mode::AcceptEdits, &protected)), "ask");
}

#[test]
fn deny_beats_ask_beats_allow() {
    let case =
        Case { allow: &["Bash"], ask: &["Bash(git push*)"], deny: &["Bash(git push --force*)"], ..NONE };
    bash(&case, "git commit -m x", "allow");
    bash(&case, "git push origin", "ask");
    bash(&case, "git push --force", "deny");
}

#[test]
fn path_rules_are_anchored_as_written() {
    let case = Case {
        mode: Mode::AcceptEdits,
        deny: &["Edit(/secret/**)", "Edit(*.pem)", "Read(//etc/**)", "Edit(~/x)"],
        ..NONE
    };
    edit(&case, "/w/secret/a", "deny");
    edit(&case, "/w/sub/secret/a", "allow");
    edit(&case, "/w/deep/key.pem", "deny");
    edit(&case, "/etc/hosts", "deny");
    edit(&case, "/home/u/x", "deny");
    read(&case, "/etc/hosts", "deny");
    let allow = Case { allow: &["Edit(src/**)", "Read(//opt/**)"], ..NONE };
    edit(&allow, "/w/src/a/b.rs", "allow");
    edit(&allow, "/w/other.rs", "ask");
    read(&allow, "/opt/x", "allow");
    let linked = judge(&allow, "Edit", Target::Edit(&at("/w/src/link", "/etc/hosts")));
    assert_eq!(word(&linked), "ask", "allow needs the link and its target");
    let denied = Case { mode: Mode::AcceptEdits, deny: &["Read(/secret)"], ..NONE };
    let linked = judge(&denied, "Read", Target::Read(&at("/w/link", "/w/secret/k")));
    assert_eq!(word(&linked), "deny", "deny needs one of them");
    edit(&denied, "/w/secret/k", "deny");
}

#[test]
fn rules_about_reading_bind_commands_by_the_files_they_name() {
    let judged = |case: &Case<'_>, names: &[Place]| {
        word(&judge(case, "Bash", Target::Shell { command: "cat x", looks_only: true, names }))
    };
    let case = Case { deny: &["Read(denied.txt)"], ask: &["Read(asked.txt)"], ..NONE };
    let (fine, denied, asked) = (at("/w/a", "/w/a"), at("/w/d", "/w/denied.txt"), at("/w/asked.txt", "/w/x"));
    assert_eq!(judged(&case, std::slice::from_ref(&fine)), "allow");
    assert_eq!(judged(&case, &[fine.clone(), denied.clone()]), "deny");
    assert_eq!(judged(&case, &[fine.clone(), asked.clone()]), "ask");
    assert_eq!(judged(&case, &[asked, denied.clone()]), "deny");
    let everything = Case { mode: Mode::BypassPermissions, deny: &["Read(denied.txt)"], ..NONE };
    assert_eq!(judged(&everything, std::slice::from_ref(&denied)), "deny");
    let edits = Case { deny: &["Edit(denied.txt)"], ..NONE };
    assert_eq!(judged(&edits, &[denied]), "allow", "looking is no edit");
    let allow = Case { allow: &["Read(//etc/**)"], ..NONE };
    let verdict = judge(
        &allow,
        "Bash",
        Target::Shell { command: "x", looks_only: false, names: &[at("/etc/a", "/etc/a")] },
    );
    assert_eq!(word(&verdict), "ask", "a rule about files vouches for no command");
}

#[test]
fn bad_rules_are_named_with_a_way_out() {
    for (text, part) in
        [("Bash(ls", "closing ')'"), ("", "tool name"), ("Write(x)", "Edit(...)"), ("Ba sh", "tool name")]
    {
        let error = text.parse::<Rule>().expect_err(text).to_string();
        assert!(error.contains(part), "{error}");
    }
}

#[test]
fn a_bare_deny_takes_the_tool_away() {
    let set = RuleSet { deny: rules(&["Bash(*)", "Edit(/x)"]), ..RuleSet::default() };
    assert!(set.removes("Bash"));
    assert!(!set.removes("Edit"));
}

#[test]
fn a_hook_that_asks_makes_a_question_of_what_is_allowed_but_not_of_what_is_denied() {
    let set = RuleSet { deny: rules(&["Bash(curl *)"]), allow: rules(&["Bash"]), ask: Vec::new() };
    let judged = |mode, command: &str| {
        let target = Target::Shell { command, looks_only: true, names: &[] };
        let hook = HookSays::Asks("Is it late?");
        set.judge(mode, &Request { tool: "Bash", target, here: &here(), hook })
    };
    let asked = Verdict::Ask { why: "Is it late?".into(), cause: Cause::Hook };
    assert_eq!(judged(Mode::Default, "make"), asked);
    assert_eq!(judged(Mode::BypassPermissions, "ls"), asked);
    assert_eq!(word(&judged(Mode::BypassPermissions, "curl x")), "deny");
    assert_eq!(word(&judged(Mode::DontAsk, "make")), "deny");
}

#[test]
fn a_question_says_what_makes_it_one() {
    let case = Case { ask: &["Bash(git push*)"], ..NONE };
    let cause = |tool: &str, target: Target<'_>| match judge(&case, tool, target) {
        Verdict::Ask { cause, .. } => cause,
        other => panic!("{other:?}"),
    };
    let shell = |command: &str| cause("Bash", Target::Shell { command, looks_only: false, names: &[] });
    let edit = |given: &str| cause("Edit", Target::Edit(&at(given, given)));
    assert_eq!(shell("git push x"), Cause::Rule("Bash(git push*)".into()));
    assert_eq!(shell("make"), Cause::Unapproved);
    assert_eq!(edit("/w/a"), Cause::Unapproved);
    assert_eq!(edit("/x/a"), Cause::Outside("/x/a".into()));
    assert_eq!(edit("/w/.git/hooks/x"), Cause::Protected("/w/.git/hooks/x".into()));
    assert_eq!(cause("Read", Target::Read(&at("/w/l", "/x/a"))), Cause::Outside("/w/l".into()));
}
