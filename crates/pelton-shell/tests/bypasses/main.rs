//! Ways to hide a command from whoever reads it. In every one of them it must be seen, or the whole must be doubted.

mod hidden; // the ways to hide

use hidden::{DOUBTED, SEEN};
use pelton_shell::{further_commands, read, steers, variables_set};

/// What the analyser can say about a hidden `rm`.
#[derive(Debug, PartialEq, Eq, PartialOrd, Ord)]
enum Noticed {
    /// Nothing at all: a hole.
    No,
    /// That not everything is certain.
    Doubted,
    /// The command itself.
    Listed,
}

fn noticed(text: &str) -> Noticed {
    let Ok(script) = read(text) else { return Noticed::Doubted };
    let mut commands = script.commands.clone();
    let mut doubted = !script.doubts.is_empty();
    for command in &script.commands {
        let further = further_commands(command);
        doubted |= further.unknown;
        commands.extend(further.commands);
    }
    if commands.iter().any(|command| command.name().is_some_and(|name| name == "rm" || name.ends_with("/rm")))
    {
        return Noticed::Listed;
    }
    for command in &commands {
        let values = command.assignments.iter().map(|assignment| &assignment.value);
        let targets = command.redirections.iter().map(|redirection| &redirection.target);
        doubted |= command.words.iter().chain(values).chain(targets).any(|word| !word.doubts().is_empty());
        doubted |= variables_set(command).iter().any(|name| steers(name));
    }
    if doubted { Noticed::Doubted } else { Noticed::No }
}

#[test]
fn hidden_commands_are_listed() {
    let missed: Vec<_> = SEEN.iter().filter(|text| noticed(text) < Noticed::Listed).collect();
    assert!(missed.is_empty(), "{missed:#?}");
}

#[test]
fn what_cannot_be_known_is_doubted() {
    let missed: Vec<_> = DOUBTED.iter().filter(|text| noticed(text) < Noticed::Doubted).collect();
    assert!(missed.is_empty(), "{missed:#?}");
}

#[test]
fn there_are_many_of_them() {
    assert!(SEEN.len() >= 200 && DOUBTED.len() >= 200, "{} and {}", SEEN.len(), DOUBTED.len());
}

/// Commands that people run every day: nothing about them is doubted.
#[test]
fn ordinary_commands_are_certain() {
    for text in [
        "ls -la",
        "cat a.txt | head -n 5",
        "git status && git diff --stat",
        "cargo test -p pelton-shell 2>&1 | tail -n 20",
        "grep -rn 'fn main' src",
        "find . -name '*.rs' -type f",
        "mkdir -p a/{b,c}",
        "npm run build > build.log 2>&1",
        "echo \"it's done\"",
        "git log --oneline -n 5",
        "git show HEAD~1",
        "git stash pop stash@{0}",
        "make -j4",
        "python3 -c 'print(1)'",
        "sed -n '1,5p' f",
        "awk '{print $1}' f",
        "cd src && ls",
        "if [ -f a ]; then cat a; fi",
        "ls *.md > /dev/null || true",
        "git commit -m \"$(cat <<'EOF'\nFix it\n\nIt's \"quoted\" $here\nEOF\n)\"",
        "cat > f <<'EOF'\n$(data) `data`\nEOF",
        "test -d a || mkdir a",
        "curl -s https://example.com/a?b=c",
        "! grep -q a f",
        "(cd a && make)",
        "tar xzf a.tgz -C b",
        "jq '.a | .b' f.json",
        "rg 'a|b' --glob '!x'",
        "set -e; make",
        "printf '%s\\n' a b",
        "docker ps --format '{{.Names}}'",
        "for f in a b; do echo done; done",
        "[[ -f a && ! -d b ]] && echo yes",
        "true; false",
        "a=1; b='x y'",
        "git rev-parse --abbrev-ref HEAD@{upstream}",
        "find . -name x -exec grep -l a {} +",
        "time make",
        "echo a # comment",
        "xargs -0 rm -f < list",
    ] {
        let script = read(text).unwrap_or_else(|unclear| panic!("{text:?}: {unclear}"));
        assert_eq!(script.doubts, [], "{text:?}");
        for command in &script.commands {
            assert!(!further_commands(command).unknown, "{text:?}");
            for word in &command.words {
                assert!(word.pattern().is_some(), "{text:?}: {word:?}");
            }
        }
    }
}
