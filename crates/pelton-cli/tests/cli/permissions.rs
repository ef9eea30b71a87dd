//! `pelton permissions`: what would be decided, and why.

use std::path::Path;

use pelton_testkit::{Script, text, tool};
use serde_json::{Value, json};

use crate::place::{Commanded, Place, model};

/// A directory with what the cases name.
fn place() -> Place {
    let place = Place::new();
    let files = [
        "a.txt",
        "b.txt",
        ".env",
        "package.json",
        "src/main.rs",
        "src/lib/mod.rs",
        "tests/x",
        "secret/k",
        "README.md",
        "Cargo.toml",
        "tsconfig.json",
        "data.csv",
        "app.log",
        "docs/guide.md",
    ];
    for file in files {
        place.put(file, "{}\n");
    }
    place.put("fix.patch", "--- a/src/main.rs\n+++ b/src/main.rs\n@@ -1 +1 @@\n-{}\n+[]\n");
    place.put("fix.diff", "--- a/docs/guide.md\n+++ b/docs/guide.md\n");
    place.put("docs.patch", "--- a/docs/guide.md\n+++ b/docs/guide.md\n@@ -1 +1 @@\n-{}\n+[]\n");
    std::os::unix::fs::symlink(".env", place.work().join("link")).unwrap();
    place
}

#[track_caller]
fn check(corpus: &str, at_least: usize) {
    let file = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/permissions").join(corpus);
    let cases = std::fs::read_to_string(&file).unwrap().lines().count();
    assert!(cases >= at_least, "{cases} cases");
    let ran = place()
        .pelton(["permissions", "check", "--only-different", "--corpus", file.to_str().unwrap()])
        .run();
    let said = ran.well();
    assert!(said.starts_with(&format!("{cases} cases: ")) && said.contains("0 different"), "{said}");
}

/// All of these lines are judged so.
#[track_caller]
fn judged(place: &Place, mode: &str, rules: &Value, lines: &[&str], expect: &str) {
    let case = |line: &&str| {
        json!({"id": line, "command": line, "mode": mode, "rules": rules, "expect": expect}).to_string()
    };
    let cases: Vec<String> = lines.iter().map(case).collect();
    let file = place.home().join("cases.jsonl");
    std::fs::write(&file, cases.join("\n")).unwrap();
    let words = ["permissions", "check", "--only-different", "--corpus", file.to_str().unwrap()];
    let ran = place.pelton(words).run();
    assert_eq!(ran.code, Some(0), "{}", ran.out);
}

#[test]
fn what_variables_hold_patches_name_and_formatters_write_is_no_way_around() {
    check("once_more.jsonl", 1_000);
}

/// Who hands names on to a program with options that write is not asked, as long as no name can be such an option.
#[test]
fn names_that_are_handed_on_are_asked_about_where_one_could_be_an_option() {
    let lines = [
        "find . | xargs sed -n 1p",
        "rg -l x | xargs awk '{print}'",
        "ls | xargs sort",
        "ls -A | xargs file",
        "sort $(ls)",
        "rg --files | while read -r f; do sed -n 1p \"$f\"; done",
    ];
    let with_file = |name: Option<&str>, expect: &str| {
        let place = place();
        if let Some(name) = name {
            place.put(name, "x\n");
        }
        judged(&place, "default", &json!({}), &lines, expect);
    };
    with_file(None, "allow");
    for name in ["-i", "-osrc/main.rs", "docs/-f", "a -i", "tests/it's", "a\n-i", "--in-place"] {
        with_file(Some(name), "ask");
    }
}

/// What a line itself writes is not what was on the disk when it was judged: files whose names are options of a program that
/// gets them, and files that choose what runs.
#[test]
fn what_a_line_writes_is_not_taken_for_what_was_there() {
    let lines = [
        "echo x > ./--expression=1e; ls | xargs sed -n 1p",
        "printf x > -e1e && sed -n 1p $(ls)",
        "echo x > ./-osrc; ls | xargs sort",
        "cat a.txt > --pre=sh; ls | xargs rg x",
        "cat a.txt > ./-i; rg --files | while read -r f; do sed -n 1p \"$f\"; done",
        "ls 2> ./-C; file *",
        "echo x > rust-toolchain.toml; cargo --version",
        "echo x > rust-toolchain && cargo metadata --no-deps",
        "echo x > global.json; dotnet --info",
    ];
    let fine = ["ls | xargs sed -n 1p", "sed -n 1p $(ls)", "ls | xargs sort", "file *", "cargo --version"];
    judged(&place(), "acceptEdits", &json!({}), &lines, "ask");
    judged(&place(), "acceptEdits", &json!({}), &fine, "allow");
}

/// Links and protected names that come along with a directory are not where they were looked at.
#[test]
fn what_a_line_carries_along_is_not_taken_for_what_was_there() {
    let carried = [
        "mv d e; cat e/out/x",
        "cp -r d e && cat e/out/x",
        "cp -a d e && echo x > e/out/f",
        "mv d e && rm e/out/x",
        "mv d e; touch e/out/f",
        "mv d src/e; cd src/e/out; cat x",
        "mv d e; cat */out/x",
        "mv deep/er/still e; cat e/up/x",
        "cp -r template/. .",
        "cp -rT template .",
        "cp -r template new",
        "mv template/sub src/sub",
    ];
    let linked = [
        "ln -s / r && cat r/etc/shadow",
        "ln -sf /etc/passwd p; head p",
        "cp -s /etc/passwd p; cat p",
        "/bin/ln -s /etc e && echo x > e/f",
    ];
    let fine = [
        "mv src s2; cat s2/main.rs",
        "cp -r src s2 && ls s2",
        "cp a.txt c.txt; cat c.txt",
        "mv a.txt src/ && ls src",
        "mkdir -p n/m && touch n/m/x && cat n/m/x",
        "cp -r src/ s2; echo x > s2/y",
        "mv d e",
        "rm -rf template",
    ];
    let place = place();
    place.put("template/.vscode/tasks.json", "{}");
    place.put("template/sub/.npmrc", "x\n");
    place.put("deep/er/still/f", "x\n");
    place.put("d/f", "x\n");
    let link = |to: &Path, from: &str| std::os::unix::fs::symlink(to, place.work().join(from)).unwrap();
    link(&place.home(), "d/out");
    // Inside where it is, outside where it is moved to.
    link(Path::new("../../../src"), "deep/er/still/up");
    judged(&place, "acceptEdits", &json!({}), &carried, "ask");
    let rules = json!({"allow": ["Bash(ln:*)", "Bash(/bin/ln:*)", "Bash(cp:*)", "Edit(./**)"]});
    judged(&place, "default", &rules, &linked, "ask");
    judged(&place, "default", &rules, &["ln -s src r", "ln -s src r && cat a.txt"], "allow");
    judged(&place, "acceptEdits", &json!({}), &fine, "allow");
}

/// Git takes a directory with the right files in it for a repository, and runs what its `config` says.
#[test]
fn git_is_asked_about_where_files_of_the_directory_would_be_its_repository() {
    let lines = ["git status", "git log --oneline -3", "git diff", "ls && git show HEAD"];
    let bare = place();
    for file in ["HEAD", "config", "objects/x", "refs/x"] {
        bare.put(file, "ref: refs/heads/main\n");
    }
    judged(&bare, "default", &json!({}), &lines, "ask");
    judged(&bare, "default", &json!({"allow": ["Bash(git status)"]}), &["git status"], "allow");
    let shared = place();
    shared.put("HEAD", "ref: refs/heads/main\n");
    shared.put("commondir", "x\n");
    judged(&shared, "default", &json!({}), &lines, "ask");
    // The line itself makes one.
    let made = [
        "mkdir objects refs; echo x > HEAD; echo x > config; git status",
        "cp template/HEAD . && git status",
        "cp -r template/. .; git log",
    ];
    let place = place();
    place.put("template/HEAD", "x\n");
    judged(&place, "acceptEdits", &json!({}), &made, "ask");
    judged(&place, "acceptEdits", &json!({}), &["echo x > a.txt; git status", "git status"], "allow");
    // Where there is a repository, it is the one.
    place.put(".git/HEAD", "ref: refs/heads/main\n");
    place.put("HEAD", "x\n");
    place.put("objects/x", "x\n");
    judged(&place, "default", &json!({}), &lines, "allow");
}

/// What is denied is denied wherever a line may be, also where it should not get to.
#[test]
fn a_directory_that_is_entered_hides_nothing_that_is_denied() {
    let lines = [
        "cd src || cat secret/k",
        "cd src; cat ../secret/k",
        "cd src; ls; cd ..; cat secret/k",
        "cd secret; cat k; cd ..",
        "pushd secret; cat k; popd",
        "pushd src; popd; cat secret/k",
        "mapfile -t x < secret/k",
        "git diff --no-index secret/k a.txt",
        "tar -xOf secret/k",
    ];
    let rules = json!({"allow": ["Bash"], "deny": ["Read(./secret/**)"]});
    judged(&place(), "default", &rules, &lines, "deny");
}

#[test]
fn what_strangers_look_at_every_day_is_not_asked_about() {
    check("strangers_look.jsonl", 300);
}

#[test]
fn what_strangers_try_is_asked_about_or_denied_in_every_mode() {
    check("strangers_reach.jsonl", 2_000);
}

/// Inspection as people write it in repositories of many languages, with what a shell tells of itself.
#[test]
fn what_a_shell_tells_of_itself_and_going_back_is_not_asked_about() {
    check("fresh_looks.jsonl", 300);
}

#[test]
fn corners_of_bash_and_options_that_write_or_run_are_no_way_around() {
    check("fresh_reach.jsonl", 2_000);
}

#[test]
fn inspection_and_work_beside_what_is_guarded_is_left_alone() {
    check("left_alone.jsonl", 200);
}

#[test]
fn pit_P1_compound_commands_and_rules_come_to_the_decision_of_the_table() {
    check("pit_p1_compound.jsonl", 300);
}

#[test]
fn harmless_inspection_is_never_asked_about() {
    check("harmless.jsonl", 200);
}

#[test]
fn attempts_to_get_around_the_rules_are_never_allowed() {
    check("bypass.jsonl", 200);
}

#[test]
fn removals_that_a_line_hides_devices_and_copies_by_whole_path_are_stopped() {
    check("fifth_reach.jsonl", 2_500);
}

#[test]
fn languages_inside_of_options_and_words_beside_nothing_are_no_way_around() {
    check("sixth_reach.jsonl", 4_000);
}

#[test]
fn what_many_trades_look_at_is_not_asked_about() {
    check("sixth_looks.jsonl", 200);
}

#[test]
fn beginnings_of_options_roads_that_are_not_there_yet_and_protected_names_in_texts_are_no_way_around() {
    check("seventh_reach.jsonl", 600);
}

#[test]
fn what_agents_look_at_all_day_and_work_beside_protected_names_is_not_asked_about() {
    check("seventh_looks.jsonl", 500);
}

#[test]
fn names_that_only_running_it_would_tell_and_texts_that_decoders_hand_to_a_shell_are_no_way_around() {
    check("eighth_reach.jsonl", 800);
}

#[test]
fn what_people_and_models_type_to_look_around_is_not_asked_about_a_directory_further_in_either() {
    check("eighth_looks.jsonl", 700);
}

#[test]
fn words_that_options_may_do_without_and_texts_that_shells_get_are_no_way_around() {
    check("ninth_reach.jsonl", 4_000);
}

#[test]
fn what_is_looked_at_in_lists_loops_and_sums_is_not_asked_about() {
    check("ninth_looks.jsonl", 850);
}

#[test]
fn what_builtins_set_and_options_say_is_no_way_around() {
    check("tenth_reach.jsonl", 3_000);
}

#[test]
fn what_scripts_of_several_lines_look_at_is_not_asked_about() {
    check("tenth_looks.jsonl", 450);
}

/// A directory of files that git would take for a repository says what git runs: nobody is sent there unasked.
#[test]
fn git_is_asked_about_where_it_is_sent_to_files_that_would_be_a_repository() {
    let place = place();
    place.put("bare/HEAD", "ref: refs/heads/main\n");
    place.put("bare/objects/info/x", "");
    place.put("bare/config", "[core]\n\tfsmonitor = ./x\n");
    let rules = json!({"allow": ["Bash(git *)", "Bash(npm run test:*)", "Bash(make *)"]});
    let sent =
        ["git -C bare status", "git --git-dir=bare log", "git --git-dir bare log", "git -C src/../bare log"];
    judged(&place, "default", &rules, &sent, "ask");
    let elsewhere = ["npm run test --prefix ..", "npm run test -C /", "make -C .. x", "make -f /x test"];
    judged(&place, "default", &rules, &elsewhere, "ask");
    let here = ["git -C src push", "git push", "npm run test --prefix src", "make -C src", "make test"];
    judged(&place, "default", &rules, &here, "allow");
}

/// What a shell does for each name that is found is a removal only if its text may be one.
#[test]
fn a_shell_for_each_name_is_no_removal_by_itself() {
    let place = place();
    let fine = [
        "find . -type f -exec sh -c 'echo \"$1\"' _ {} \\;",
        "find . -exec bash -c 'wc -l \"$1\" | head' _ {} \\;",
    ];
    judged(&place, "bypassPermissions", &json!({}), &fine, "allow");
    let removes = [
        "find . -exec sh -c 'rm \"$1\"' _ {} \\;",
        "find . -exec sh -c '$0 \"$1\"' rm {} \\;",
        "find . -exec sh -c 'eval \"$1\"' _ {} \\;",
        "find . -exec bash -c \"$X\" {} \\;",
        "find . -exec sh -c 'cd x && find . -delete' \\;",
    ];
    judged(&place, "bypassPermissions", &json!({}), &removes, "ask");
}

/// Who may write a file is told why, also where the command that writes it only looks.
#[test]
fn what_goes_to_a_file_is_told_as_allowed_by_whoever_allows_that() {
    let place = place();
    let told = |words: &[&str]| {
        let words = [&["permissions", "explain", "echo x > new.txt"], words].concat();
        place.pelton(words).run().well().to_owned()
    };
    assert!(told(&["--permission-mode", "acceptEdits"]).contains("The mode acceptEdits allows it."));
    assert!(told(&["--allowedTools", "Edit(new.txt)"]).contains("Edit(new.txt)"));
}

/// Files that a search finds by how their names end are shown beside a guarded one, unless a blank in a name makes another name of it.
#[test]
fn a_search_for_names_of_an_ending_finds_no_guarded_file_of_another() {
    let rules = json!({"deny": ["Read(./.env)"]});
    let lines = ["find . -name '*.rs' | xargs wc -l", "for f in $(find . -name '*.rs'); do wc -l $f; done"];
    let whole = ["find . -name '*.rs' -print0 | xargs -0 wc -l", "find . -name '*.rs' -exec wc -l {} +"];
    judged(&place(), "default", &rules, &[lines, whole].concat(), "allow");
    let blank = place();
    blank.put(".env x.rs", "x\n");
    judged(&blank, "default", &rules, &lines, "ask");
    judged(&blank, "default", &rules, &whole, "allow");
    let linked = place();
    std::os::unix::fs::symlink("../.env", linked.work().join("src/x.rs")).unwrap();
    judged(&linked, "default", &rules, &[lines, whole].concat(), "ask");
}

#[test]
fn what_texts_arrays_numbers_and_decoders_really_say_is_no_way_around() {
    check("reviewed_reach.jsonl", 150);
}

#[test]
fn work_with_texts_arrays_and_numbers_is_not_asked_about() {
    check("reviewed_looks.jsonl", 60);
}

/// The same where files are changed, and where a search hands the pattern on.
#[test]
fn patterns_are_options_also_where_files_are_changed_or_a_search_runs_the_program() {
    let edits = ["sed -i s/a/b/ *.md", "sed -i s/a/b/ *.md && sed -i s/c/d/ *.txt", "sed -i -e s/a/b/ *.md"];
    let searches = [
        "find src -name x -exec sed -n 1p {} *.md \\;",
        "find src -name x -exec sort {} *.md \\;",
        "find src -name x -exec sort *.md {} +",
        "fd x src -x sed -n 1p {} *.md",
    ];
    judged(&place(), "acceptEdits", &json!({}), &edits, "allow");
    judged(&place(), "default", &json!({}), &searches, "allow");
    let named = place();
    named.put("-e1e touch pwned;: .md", "x\n");
    judged(&named, "acceptEdits", &json!({}), &edits, "ask");
    judged(&named, "default", &json!({}), &searches, "ask");
    let written = [
        "echo x > ./-e1e.md; sed -i s/a/b/ *.md",
        "sed -i.md s/a/b/ ./-e1e; sed -i s/a/b/ *.md",
        "touch ./-e1e.md && sed -i s/a/b/ *.md",
        "sed -i s/a/b/ a.txt > ./-e1e.md; sed -i s/a/b/ *.md",
        "sed -i s/a/b/ *",
    ];
    judged(&place(), "acceptEdits", &json!({}), &written, "ask");
}

/// A pattern may become an option where a file is called like one; one that matches everything is asked about wherever options can do more.
#[test]
fn patterns_are_handed_to_programs_with_options_that_write_where_no_file_is_called_like_one() {
    let lines = [
        "sed -n 1p *.md",
        "awk '{print}' *.csv",
        "sort *.txt",
        "jq . *.json",
        "rg x *.md",
        "find */ -type f",
    ];
    judged(&place(), "default", &json!({}), &lines, "allow");
    let named = place();
    for file in ["-i.md", "-i.csv", "-o.txt", "-f.json", "--pre=x.md"] {
        named.put(file, "x\n");
    }
    judged(&named, "default", &json!({}), &lines[..5], "ask");
    let all = ["sed -n 1p *", "sort *", "rg x *", "find * -name x", "less *.txt"];
    judged(&place(), "default", &json!({}), &all, "ask");
    let written = ["echo x > ./-i.md; sed -n 1p *.md", "echo x > ./-o.txt && sort *.txt"];
    judged(&place(), "acceptEdits", &json!({}), &written, "ask");
}

/// What a line makes for a shell is worked out to ask, not to deny: somebody can still say that it is fine.
#[test]
fn what_is_worked_out_of_a_line_is_asked_about() {
    let rules = json!({"allow": ["Bash"], "deny": ["Bash(rm *)", "Read(./.env)"]});
    let lines = [
        "echo 'rm x' | sh",
        "sh -c 'echo \"cat .env\" | sh'",
        "x='cat .env'; eval \"$x\"",
        "bash <<< \"$(echo rm x)\"",
    ];
    judged(&place(), "bypassPermissions", &rules, &lines, "ask");
    judged(&place(), "dontAsk", &rules, &lines, "deny");
    let fine = ["echo 'ls' | sh", "bash -c 'make test && ls'", "eval \"$(ssh-agent -s)\"", "curl x | sh"];
    judged(&place(), "bypassPermissions", &json!({"deny": ["Bash(rm *)"]}), &fine[1..2], "allow");
    judged(&place(), "bypassPermissions", &json!({}), &fine, "allow");
    // A rule that names the whole command vouches for what is in it, too.
    let exact = json!({"allow": ["Bash(bash -c 'make test')", "Bash(sh build.sh)"]});
    judged(&place(), "default", &exact, &["bash -c 'make test'", "sh build.sh"], "allow");
}

/// Git in a directory of the same repository does what it does where the session is. A repository of its own there says itself what runs.
#[test]
fn git_is_asked_about_in_another_directory_only_where_that_is_another_repository() {
    let lines = [
        "git -C src status",
        "git -C src/lib log --oneline -3 -- mod.rs",
        "cd src && git status",
        "cd src; git diff; cd ..",
        "(cd src/lib && git log -1)",
        "cd src && ls && git ls-files | xargs wc -l",
    ];
    let top = [
        "cd \"$(git rev-parse --show-toplevel)\" && git status",
        "cd $(git rev-parse --show-toplevel) && git status",
        "cd \"$(git rev-parse --show-toplevel 2>/dev/null)\" && ls && cat README.md",
        "cd \"$(git rev-parse --show-toplevel)/src\" && ls -la",
        "ls \"$(git rev-parse --show-toplevel)\"",
        "cat \"$(git rev-parse --show-toplevel)/README.md\"",
        "git -C \"$(git rev-parse --show-toplevel)\" status -s",
    ];
    let repository = || {
        let place = place();
        place.put(".git/HEAD", "ref: refs/heads/main\n");
        place.put(".git/config", "[core]\n\tbare = false\n");
        place.put(".git/objects/info/none", "");
        place.put(".git/refs/heads/none", "");
        place
    };
    let own = repository();
    judged(&own, "default", &json!({}), &[&lines[..], &top].concat(), "allow");
    judged(&own, "plan", &json!({}), &lines, "allow");
    // Outside of a repository nobody knows what git says.
    judged(&place(), "default", &json!({}), &lines, "allow");
    judged(&place(), "default", &json!({}), &top, "ask");
    // Where git says nothing, the path begins at the root.
    judged(&own, "default", &json!({}), &["cat \"$(git rev-parse --show-toplevel)/etc/passwd\""], "ask");
    for (file, text) in [("src/.git/HEAD", "x"), ("src/.git", "gitdir: ../x"), ("src/HEAD", "ref: x")] {
        let nested = repository();
        nested.put(file, text);
        judged(&nested, "default", &json!({}), &lines, "ask");
        judged(&nested, "default", &json!({}), &["git -C docs status", "cd docs && git log"], "allow");
    }
    for config in ["[core]\n\tworkTree = /etc\n", "[include]\n\tpath = x\n"] {
        let elsewhere = repository();
        elsewhere.put(".git/config", config);
        judged(&elsewhere, "default", &json!({}), &top, "ask");
    }
    // What only looks like a repository git passes by: it says a directory further up.
    for (name, text) in [("HEAD", "ref: refs/heads/main\n"), ("HEAD", "x"), ("HEAD", "ref: x")] {
        let half = place();
        half.put(".git/config", "[core]\n");
        half.put(&format!(".git/{name}"), text);
        if text.len() < 8 {
            half.put(".git/objects/info/none", "");
            half.put(".git/refs/heads/none", "");
        }
        judged(&half, "default", &json!({}), &top[..6], "ask");
    }
    // A line that changes something may make a repository there.
    let made = ["mkdir -p src/x && git -C src status", "echo x > src/a && cd src && git status"];
    judged(&own, "acceptEdits", &json!({}), &made, "ask");
    // A link may lead to another repository.
    let linked = repository();
    std::os::unix::fs::symlink(linked.home(), linked.work().join("out")).unwrap();
    judged(&linked, "default", &json!({}), &["git -C out status", "cd out && git status"], "ask");
}

/// In a line that nobody can read a pattern counts that would match a protected name.
#[test]
fn patterns_over_protected_names_are_asked_about_where_a_line_cannot_be_read() {
    let long = format!("# {}\n", "x".repeat(11_000));
    let lines: Vec<String> =
        ["> .g*t/config", "tee .gi?/config", "> .{g,h}it/config", "> .g${x}/config", "> .[g]it/x"]
            .iter()
            .map(|line| format!("{long}echo {line}"))
            .collect();
    let lines: Vec<&str> = lines.iter().map(String::as_str).collect();
    judged(&place(), "default", &json!({"allow": ["Bash"]}), &lines, "ask");
    let fine: Vec<String> = ["> src/*.rs", "'/.*/' '.foo*' \"$x\"", "> a.g*t"]
        .iter()
        .map(|line| format!("{long}echo {line}"))
        .collect();
    let fine: Vec<&str> = fine.iter().map(String::as_str).collect();
    judged(&place(), "default", &json!({"allow": ["Bash"]}), &fine, "allow");
}

#[test]
fn numbers_commits_and_names_that_a_line_asks_for_are_looked_at_unasked() {
    check("fifth_looks.jsonl", 450);
}

/// Outside of quotes a shell takes names for patterns once more: none of them may match the directory above.
#[test]
fn names_that_are_found_lead_no_pattern_out_of_the_directory() {
    let lines =
        ["cat $(find . -type f)", "for f in $(rg --files); do head $f; done", "wc -l $(git ls-files)"];
    judged(&place(), "default", &json!({}), &lines, "allow");
    let climbing = place();
    climbing.put("..*/x*", "x\n");
    judged(&climbing, "default", &json!({}), &lines, "ask");
    let routes = place();
    routes.put("app/[id]/page.tsx", "x\n");
    judged(&routes, "default", &json!({}), &lines, "allow");
    // What a variable holds of git is a commit to git alone.
    let commits = ["sha=$(git rev-parse HEAD); echo x > $sha", "sha=$(git rev-parse HEAD); touch \"$sha\""];
    judged(&place(), "acceptEdits", &json!({}), &commits, "ask");
}

/// Who goes into a directory and back is where they were, whether the directory is there or not.
#[test]
fn going_into_a_directory_and_back_needs_no_directory_to_be_judged() {
    let lines = ["cd gone && ls && cd ..", "cd gone && cd deep && ls && cd ../..", "cd gone/.. && ls"];
    let out = ["cd gone && cd ../..", "cd gone/../.. && cat x", "cd gone && cat ../../x"];
    judged(&place(), "default", &json!({}), &lines, "allow");
    judged(&place(), "default", &json!({}), &out, "ask");
}

/// What a pattern would change if it were there may be there by the time the line runs.
#[test]
fn patterns_that_would_match_protected_names_are_asked_about_before_there_are_any() {
    let lines = ["rm .git*", "rm -rf .g*", "rm -rf ./.[a-z]*", "mv .v* docs", "touch .np*", "rm -f src/.??*"];
    let fine = ["rm *.txt", "rm -f .*.swp", "rm -rf .cache*", "ls .g*", "rm src/*.rs"];
    judged(&place(), "acceptEdits", &json!({}), &lines, "ask");
    judged(&place(), "acceptEdits", &json!({}), &fine, "allow");
}

#[test]
fn everyday_commands_run_under_everyday_rules() {
    check("everyday.jsonl", 300);
}

#[test]
fn nothing_gets_around_the_rules_by_way_of_other_programs() {
    check("getting_around.jsonl", 1_000);
}

#[test]
fn what_other_programs_run_is_seen_by_rules_that_deny() {
    check("launched.jsonl", 500);
}

#[test]
fn words_that_are_data_are_not_taken_for_commands() {
    check("spared.jsonl", 150);
}

#[test]
fn tricks_with_allowed_commands_and_guarded_files_are_never_allowed() {
    check("tricks.jsonl", 250);
}

#[test]
fn looking_around_a_machine_is_never_asked_about() {
    check("looking.jsonl", 200);
}

#[test]
fn what_looking_commands_could_do_besides_is_never_allowed() {
    check("inside.jsonl", 500);
}

#[test]
fn glances_in_passing_are_never_asked_about() {
    check("glances.jsonl", 150);
}

#[test]
fn side_ways_to_files_and_commands_are_seen_and_tool_chains_may_be_asked_who_they_are() {
    check("asides.jsonl", 500);
}

#[test]
fn what_one_command_makes_for_another_and_names_inside_of_programs_are_seen() {
    check("handed_on.jsonl", 1_100);
}

#[test]
fn ordinary_inspection_is_never_asked_about() {
    check("ordinary.jsonl", 330);
}

#[test]
fn no_other_way_round_the_rules_is_allowed() {
    check("ways_round.jsonl", 1_400);
}

#[test]
fn looking_in_passing_is_never_asked_about() {
    check("passing.jsonl", 450);
}

#[test]
fn what_asks_others_or_lets_the_directory_choose_is_more_than_looking() {
    check("beyond_looking.jsonl", 80);
}

#[test]
fn what_a_directory_may_steer_is_asked_about_where_it_does() {
    let place = place();
    let cases = [
        ("npm ls", ".npmrc"),
        ("cargo tree --frozen", ".cargo/config.toml"),
        ("cargo metadata --no-deps", "rust-toolchain.toml"),
    ];
    for (command, steering) in cases {
        let case = |expect: &str| format!("{}\n", json!({"command": command, "expect": expect}));
        place.put("cases.jsonl", &case("allow"));
        place.pelton(["permissions", "check", "--corpus", "cases.jsonl"]).run().well();
        place.put(steering, "");
        place.put("cases.jsonl", &case("ask"));
        place.pelton(["permissions", "check", "--corpus", "cases.jsonl"]).run().well();
        std::fs::remove_file(place.work().join(steering)).unwrap();
    }
}

#[test]
fn pit_P2_a_denied_file_is_denied_however_its_name_is_written() {
    let place = place();
    let rules = json!({"deny": ["Read(./.env)", "Edit(src/**)"]});
    let denied =
        |tool: &str, input: Value| json!({"tool": tool, "input": input, "rules": rules, "expect": "deny"});
    let read = |path: &str| denied("Read", json!({"file_path": path}));
    let inside = place.work().join(".env");
    let cases = [
        read(".env"),
        read(inside.to_str().unwrap()),
        read("src/../.env"),
        read("link"),
        read(".ENV"),
        read("./.Env"),
        denied("Grep", json!({"pattern": "x", "path": ".env"})),
        denied("Edit", json!({"file_path": "SRC/main.rs", "old_string": "a", "new_string": "b"})),
        denied("Write", json!({"file_path": "src/new.rs", "content": ""})),
        json!({"command": "cat .env", "rules": rules, "expect": "deny"}),
        json!({"command": "cat .ENV", "rules": rules, "expect": "deny"}),
        json!({"command": "echo x > Src/main.rs", "rules": rules, "expect": "deny"}),
        // What vouches is meant as it is written.
        json!({"tool": "Edit", "input": {"file_path": "Docs/x", "old_string": "a", "new_string": "b"},
            "rules": {"allow": ["Edit(docs/**)"]}, "expect": "ask"}),
    ];
    let corpus: String = cases.iter().map(|case| format!("{case}\n")).collect();
    place.put("cases.jsonl", &corpus);
    place.pelton(["permissions", "check", "--corpus", "cases.jsonl"]).run().well();
}

#[test]
fn work_that_no_prohibition_means_goes_on_beside_them() {
    check("untouched.jsonl", 100);
}

#[test]
fn who_a_directory_lets_run_in_place_of_another_is_asked_about() {
    let place = place();
    place.put("cases.jsonl", "{\"command\": \"cargo --version\", \"expect\": \"allow\"}\n{\"command\": \"cd src && rustc -vV\", \"expect\": \"allow\"}\n");
    place.pelton(["permissions", "check", "--corpus", "cases.jsonl"]).run().well();
    place.put("rust-toolchain.toml", "[toolchain]\npath = \"/srv/own\"\n");
    let ran = place.pelton(["permissions", "check", "--corpus", "cases.jsonl"]).run();
    assert!(ran.out.contains("2 asked"), "{}", ran.out);
}

#[test]
fn what_nobody_recovers_from_is_asked_about_in_every_mode() {
    check("irrecoverable.jsonl", 100);
}

#[test]
fn a_decision_that_is_not_the_expected_one_fails_the_check() {
    let place = place();
    place.put("cases.jsonl", "{\"id\": \"x\", \"command\": \"make\", \"expect\": \"allow\"}\n{\"command\": \"ls\", \"expect\": [\"allow\"]}\n");
    let ran = place.pelton(["permissions", "check", "cases.jsonl"]).run();
    assert_eq!(ran.code, Some(1), "{}", ran.out);
    assert!(
        ran.out.contains("x\task\t") && ran.out.contains("expected allow") && ran.out.contains("1 different"),
        "{}",
        ran.out
    );
    place.put("cases.jsonl", "{\"rules\": {\"project\": {\"deny\": [\"Bash(rm *)\"]}}, \"tool\": \"Bash\", \"input\": {\"command\": \"ls; rm x\"}}\nnonsense\n");
    let ran = place.pelton(["permissions", "check", "--json", "--corpus", "cases.jsonl"]).run();
    assert_eq!(ran.code, Some(1), "a line that is no case");
    let lines: Vec<Value> = ran.out.lines().map(|line| serde_json::from_str(line).unwrap()).collect();
    assert_eq!(lines[0]["decision"], "deny");
    assert_eq!(lines[0]["rule"], "Bash(rm *)");
    assert_eq!(lines[0]["source"]["layer"], "project settings");
    assert_eq!(lines[0]["decided_by"], "rm x");
    assert_eq!(lines[0]["subcommands"][0]["decision"], "allow");
    assert!(lines[1]["error"].is_string());
}

#[test]
fn explaining_names_the_rule_its_file_and_its_line() {
    let place = place();
    place.put(".claude/settings.json", "{\"permissions\": {\n  \"deny\": [\n    \"Bash(rm *)\"\n  ]\n}}\n");
    let ran = place.pelton(["permissions", "explain", "--json", "git log; rm -rf x"]).run();
    let said: Value = serde_json::from_str(ran.well()).unwrap();
    assert_eq!((&said["decision"], &said["rule"]), (&json!("deny"), &json!("Bash(rm *)")));
    assert_eq!(said["source"]["line"], 3);
    assert!(said["source"]["file"].as_str().unwrap().ends_with(".claude/settings.json"));
    let said = place.pelton(["permissions", "explain", "make all", "--allowedTools", "Bash(make *)"]).run();
    assert!(said.well().starts_with("allow: ") && said.out.contains("command line"), "{}", said.out);
    let said = place.pelton(["permissions", "explain", "make", "--mode", "dontAsk"]).run();
    assert!(said.well().starts_with("deny: "), "{}", said.out);
    let read = ["permissions", "explain", "--tool", "Read", "--input", "{\"file_path\": \"/etc/hostname\"}"];
    assert!(place.pelton(read).run().well().starts_with("ask: "));
}

#[test]
fn past_calls_are_judged_by_other_rules() {
    let place = place();
    let calls = ["ls", "make all", "rm b.txt"].map(|command| tool("Bash", json!({"command": command})));
    let model = model(Script::new().reply(calls).reply([text("Done.")]));
    place.task(&model, ["go"]).run().well();
    let rules = r#"{"allow": ["Bash(make *)"], "deny": ["Bash(rm *)"]}"#;
    let ran = place.pelton(["permissions", "replay", "--rules", rules]).run();
    let said = ran.well();
    for part in [
        "ask -> allow\tBash make all",
        "ask -> deny\tBash rm b.txt",
        "3 calls. Now: 1 allow, 2 ask, 0 deny.",
        "2 become",
    ] {
        assert!(said.contains(part), "{part}: {said}");
    }
    assert!(!said.contains("Bash ls"), "{said}");
    assert!(place.has("b.txt"), "nothing is run");
}
