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

/// Longer scripts that people write: all of them can be read, whatever is uncertain in them.
#[test]
fn ordinary_scripts_can_be_read() {
    for text in [
        "for f in $(git ls-files '*.rs'); do wc -l \"$f\"; done | sort -n | tail -5",
        "while IFS= read -r line; do echo \"$line\"; done < file.txt",
        "find . -type f -print0 | while IFS= read -r -d '' f; do echo \"${f##*/}\"; done",
        "i=0; while [ $i -lt 3 ]; do echo $i; i=$((i+1)); done",
        "for i in {1..5}; do curl -s \"http://localhost:$PORT/$i\" || break; done",
        "if ! command -v jq >/dev/null 2>&1; then echo \"no jq\" >&2; exit 1; fi",
        "python3 - <<'EOF'\nimport sys\nprint(\"it's $x `y`\")\nEOF",
        "cat > a.yml <<EOF\nname: ${NAME:-default}\npath: $(pwd)\nEOF",
        "diff <(sort a) <(sort b)",
        "arr=(a b c); echo \"${arr[@]}\" \"${#arr[@]}\" \"${arr[0]}\"",
        "arr+=(\"$x\"); printf '%s\\n' \"${arr[@]}\"",
        "[[ \"$v\" =~ ^([0-9]+)\\.([0-9]+)$ ]] && echo \"${BASH_REMATCH[1]}\"",
        "case \"$1\" in start|up) make up ;; stop) make down ;; *) echo usage; exit 1 ;; esac",
        "set -euo pipefail; cd \"$(dirname \"$0\")\" && npm ci && npm test",
        "git log --since='2 weeks ago' --pretty=format:'%h %an %s' | grep -v Merge | head",
        "docker run --rm -v \"$PWD\":/app -w /app node:20 sh -c 'npm ci && npm test'",
        "kill -9 $(lsof -t -i:3000) 2>/dev/null || true",
        "(cd web && npm run build) && (cd api && cargo build)",
        "export FOO=bar; echo ${FOO^^} ${FOO//a/b} ${FOO%r} ${FOO#b} ${FOO:0:2}",
        "sed -i 's/foo\\(bar\\)/\\1/g' f && awk -F: '{ print $1 \",\" $2 }' /etc/passwd",
        "awk \"{print \\$1}\" f | xargs -I{} echo {}",
        "gh pr create --title \"Fix\" --body \"$(cat <<'EOF'\n## Summary\n- it's `done` ($5)\n\nEOF\n)\"",
        "test -f .env && export $(grep -v '^#' .env | xargs)",
        "trap 'rm -f \"$tmp\"' EXIT; tmp=$(mktemp); echo a > \"$tmp\"",
        "f() { local x=$1; echo \"$x\"; }; f a",
        "echo \"$((RANDOM % 10))\" $((1 << 3)) $(( (2 + 3) * 4 ))",
        "nohup ./server > log.txt 2>&1 & echo $!",
        "sleep 5 & pid=$!; wait $pid",
        "timeout 10 bash -c 'until curl -s localhost; do sleep 1; done'",
        "echo `date` `hostname`",
        "ls -la | awk '{print $9}' | grep -E '^(a|b)' # comment",
        "cargo test 2>&1 | tee log; exit ${PIPESTATUS[0]}",
        "find . -name '*.ts' -not -path './node_modules/*' | xargs grep -l 'TODO' | head -20",
        "curl -X POST -H 'Content-Type: application/json' -d '{\"a\": \"b c\"}' http://localhost/x",
        "curl -d \"{\\\"a\\\": \\\"$x\\\"}\" http://localhost",
        "if [ -z \"${CI:-}\" ]; then echo local; else echo ci; fi",
        "select x in a b; do break; done; until false; do break; done",
        "echo a\\ b 'c d' \"e f\" $'g\\th'; printf '%b' 'a\\n'",
        "tar czf - dir | ssh host 'tar xzf - -C /tmp'",
        "mkdir -p a/b/{c,d}/e && touch a/b/c/{1..3}.txt && ls a/**/*.txt",
        "PGPASSWORD=x psql -h localhost -c \"SELECT * FROM t WHERE a = 'b';\"",
        "node -e \"console.log(JSON.stringify({a: [1,2]}))\"",
        "python -c \"import json; print(json.dumps({'a': 1}))\"",
        "for d in */; do (cd \"$d\" && git pull); done",
        "git diff --name-only HEAD~1..HEAD -- ':!*.lock' | cat",
        "[ -d x ] || { mkdir x; touch x/y; }",
        "while true; do date; sleep 1; done",
        "for ((i = 0; i < 10; i++)); do echo $i; done",
        "(( count++ )) || true; ((x > 3)) && echo big",
        "echo ${x:-default value} ${x:-\"quoted}\"} ${x:+set} ${x:?must be set}",
        "read -rp 'Name: ' name <<< \"a\"; mapfile -t lines < <(ls)",
        "exec 3>&1; echo a >&3; exec 3>&-",
        "make -j\"$(nproc)\" CC=clang 2> >(grep -v warning >&2)",
        "eval \"$(ssh-agent -s)\"; source ~/.bashrc",
        "cmd <<-EOF\n\tindented\n\tEOF\necho done",
        "cat <<A; cat <<'B'\n$(date)\nA\n$(date)\nB",
        "time (sleep 1; sleep 2)",
        "! grep -q foo bar && echo absent",
        "echo \"${arr[*]:1:2}\" \"${!arr[@]}\" \"${!prefix*}\" \"${x@Q}\"",
    ] {
        if let Err(unclear) = read(text) {
            panic!("{text:?}: {unclear}");
        }
    }
}
