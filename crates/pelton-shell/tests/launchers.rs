//! What runs behind other programs.

use pelton_shell::{Command, Further, Word, behind_plain_launchers, further_commands, read};

fn shown(words: &[Word]) -> String {
    words.iter().map(Word::text).collect::<Vec<_>>().join(" ")
}

fn first(text: &str) -> Command {
    read(text).unwrap_or_else(|unclear| panic!("{text:?}: {unclear}")).commands.remove(0)
}

fn further(text: &str) -> (Vec<String>, bool) {
    let Further { commands, unknown, .. } = further_commands(&first(text));
    (commands.iter().map(|command| shown(&command.words)).collect(), unknown)
}

#[test]
fn plain_launchers_are_taken_off() {
    for (text, behind) in [
        ("timeout 5 rm x", "rm x"),
        ("timeout -s KILL -k 3 --foreground 5m rm x", "rm x"),
        ("timeout --signal=KILL 5 rm x", "rm x"),
        ("nice rm x", "rm x"),
        ("nice -n 5 rm x", "rm x"),
        ("nice -10 nohup stdbuf -oL -e 0 rm x", "rm x"),
        ("command rm x", "rm x"),
        ("command -p builtin rm x", "rm x"),
        ("xargs rm x", "rm x"),
        ("noglob rm *", "rm *"),
        // Not taken off: options that do more, nothing behind, other launchers.
        ("command -v rm", "command -v rm"),
        ("xargs -n 1 rm", "xargs -n 1 rm"),
        ("timeout --unknown 5 rm", "timeout --unknown 5 rm"),
        ("timeout $x rm", "timeout $x rm"),
        ("nohup", "nohup"),
        ("nohup $x rm", "nohup $x rm"),
        ("sudo rm x", "sudo rm x"),
        ("env rm x", "env rm x"),
        ("/usr/bin/timeout 5 rm", "/usr/bin/timeout 5 rm"),
    ] {
        assert_eq!(shown(behind_plain_launchers(&first(text).words).words), behind, "{text}");
    }
    assert!(behind_plain_launchers(&first("nice xargs cat").words).more_arguments);
    assert!(!behind_plain_launchers(&first("nice cat").words).more_arguments);
}

#[test]
fn launchers_are_seen_through() {
    for text in [
        "env rm x",
        "env -i A=1 B=2 rm x",
        "env -u HOME -C / rm x",
        "/usr/bin/env -- rm x",
        "sudo rm x",
        "sudo -u root -E rm x",
        "sudo --user=root A=1 rm x",
        "doas -u root rm x",
        "watch -n 1 rm x",
        "watch 'rm x'",
        "ionice -c 3 rm x",
        "setsid -w rm x",
        "flock /tmp/l rm x",
        "flock -w 3 /tmp/l -c 'rm x'",
        "chrt -f 10 rm x",
        "taskset -c 0 rm x",
        "taskset 0x3 rm x",
        "exec rm x",
        "exec -a name rm x",
        "unshare -r rm x",
        "chroot / rm x",
        "su -c 'rm x'",
        "su - root -c 'rm x'",
        "nsenter -t 1 -m rm x",
        "strace -f -o log rm x",
        "ltrace rm x",
        "parallel rm x ::: a b",
        "script -c 'rm x' log",
        "script -q log rm x",
        "ssh host rm x",
        "systemd-run --user rm x",
        "busybox rm x",
        "xargs -0 -n 1 rm x",
        "xargs -I{} rm x",
        "nice -n 1 rm x",
        "eval rm x",
        "eval 'rm' 'x'",
        "eval 'rm x'",
        "sh -c 'rm x'",
        "bash -lc 'rm x'",
        "bash -o pipefail -c 'rm x' a b",
        "/bin/bash --norc -ec 'rm x'",
        "trap 'rm x' EXIT",
        "trap -- 'rm x' 1 2",
        "find . -exec rm x \\;",
        "find . -ok rm x +",
        "git bisect run rm x",
        "git rebase -x 'rm x' main",
        "git rebase --exec='rm x' main",
        "git submodule foreach rm x",
        "bash <<'E'\nrm x\nE",
        "bash -s <<< 'rm x'",
        "bundle exec rm x",
        "uv run --with a rm x",
        "docker exec -it c rm x",
        "env -S 'rm x'",
        "/usr/bin/time -o log rm x",
        "runuser -u root -- rm x",
        "pkexec rm x",
        "fd -x rm x",
    ] {
        let (commands, unknown) = further(text);
        assert_eq!((commands, unknown), (vec!["rm x".to_owned()], false), "{text}");
    }
}

#[test]
fn several_and_nested_ones_are_all_found() {
    let commands = |text| further(text).0;
    assert_eq!(
        commands("sudo nice sh -c 'a; b $(c)'"),
        ["nice sh -c 'a; b $(c)'", "sh -c 'a; b $(c)'", "a", "b $(c)", "c"]
    );
    assert_eq!(commands("find . -name x -exec a {} \\; -execdir b +"), ["a {}", "b"]);
    assert_eq!(commands("git -C /x --no-pager status -s"), ["git status -s"]);
    assert_eq!(commands("git -C /x bisect run a"), ["git bisect run a", "a"]);
    assert_eq!(
        commands("xargs env A=1 sh -c 'a \"$0\"'"),
        ["env A=1 sh -c 'a \"$0\"'", "sh -c 'a \"$0\"'", "a \"$0\""]
    );
    assert_eq!(commands("mapfile -C 'rm x' -c 1 a"), ["rm x \"$index\" \"$line\""]);
    assert_eq!(commands("sudo bash <<'E'\na\nE"), ["bash", "a"]);
}

#[test]
fn what_stands_behind_a_word_that_may_become_nothing_is_seen() {
    let commands = |text| further(text).0;
    assert_eq!(commands("$x eval a"), ["eval a", "a"]);
    assert_eq!(commands("$(x) $y sh -c 'a b'"), ["$y sh -c 'a b'", "sh -c 'a b'", "a b"]);
    assert_eq!(commands("\"$@\" a"), ["a"]);
    assert_eq!(commands("env $x a"), ["$x a", "a"]);
    // It stays a word.
    assert_eq!(commands("\"$x\" a"), [""; 0]);
    assert_eq!(commands("x$y a"), [""; 0]);
}

#[test]
fn what_options_run_or_have_read_is_not_what_a_program_is_known_for() {
    let hidden = |text: &str| further_commands(&first(text)).hidden;
    for text in [
        "git x/y",
        "git -C a ../b",
        "git difftool -t ../x",
        "git difftool -yt../x",
        "git mergetool --tool=a/b",
        "git svn fetch --authors-prog=./x",
        "cargo test --config a.toml",
        "npm run test --script-shell=./x",
        "npm test --node-options='-r ./x'",
        "ssh -F f host",
        "curl -K f",
        "wget -e a=b u",
        "kubectl get pods --kubeconfig f",
        "sqlite3 d '.once |./x'",
        "sqlite3 d \"select load_extension('x')\"",
    ] {
        assert!(hidden(text), "{text}");
    }
    for text in [
        "git difftool -t vimdiff",
        "git difftool --tool-help",
        "git log -- a/b",
        "cargo test --workspace",
        "npm run test",
        "ssh host",
        "curl -k u",
        "sqlite3 d 'select 1 | 2'",
        "kubectl get pods",
    ] {
        assert!(!hidden(text), "{text}");
    }
}

#[test]
fn what_is_not_literal_is_said() {
    for text in [
        "$x",
        "$(x) y",
        "eval $x",
        "eval \"rm $x\"",
        "sh -c $x",
        "bash $x",
        "bash",
        "sh -s",
        "source /dev/stdin",
        ". <(x)",
        "source $x",
        "sudo $x",
        "env $x rm",
        "xargs sh -c",
        "xargs bash",
        "xargs -I{} {}",
        "xargs -n1 sh",
        "trap \"$x\" EXIT",
        "find . $x",
        "find . -exec {} \\;",
        "git -c core.pager=x log",
        "git -c alias.a=!x a",
        "git --exec-path=/x status",
        "git $x",
        "parallel",
        "watch $x",
        "sh -c 'a ('",
        "timeout $x",
        "sudo --strange rm",
        "git --config-env=core.pager=X log",
        "bash <(x)",
        "bash < x",
        "git filter-branch",
        "bash <<E\n$x\nE",
        "bash --rcfile x",
        "mapfile -C \"$x\" a",
        "{a,$x} b",
        "sudo -u $x rm",
        "git -C $x status",
        "env -C $(x) rm",
    ] {
        assert!(further(text).1, "{text}");
    }
}

#[test]
fn ordinary_commands_run_nothing_else() {
    for text in [
        "ls -l",
        "git status",
        "git commit -m 'sudo rm'",
        "find . -name '*.rs'",
        "find \"$d\" ~/x -type f",
        "command -v rm",
        "env",
        "sudo",
        "trap - EXIT",
        "trap '' INT",
        "source venv/bin/activate",
        ". ./x",
        "bash script.sh a",
        "sh ./x",
        "echo eval rm",
        "git -h",
        "grep -exec rm",
        "nice",
        "git -c user.name=x",
        "type rm",
        "taskset -p 1",
        "docker ps",
        "uv pip list",
    ] {
        assert_eq!(further(text), (Vec::new(), false), "{text}");
    }
}

#[test]
fn variables_of_launchers_are_told() {
    let further = further_commands(&first("env PATH=/x LD_PRELOAD=$y rm"));
    let names: Vec<_> = further.commands[0].assignments.iter().map(|it| it.name.as_str()).collect();
    assert_eq!(names, ["PATH", "LD_PRELOAD"]);
}

#[test]
fn launchers_without_end_are_bounded() {
    let many = "sudo ".repeat(1_500) + "rm";
    assert!(further(&many).1);
    let many = format!("eval '{}'", "a;".repeat(3_000));
    assert!(further(&many).1);
}

#[test]
fn texts_of_other_languages_are_looked_through() {
    for text in [
        "python3 -c \"import os; os.system('rm x')\"",
        "python3.12 -Ic \"import subprocess; subprocess.run(['rm', 'x'])\"",
        "perl -e 'system \"rm\", \"x\"'",
        "ruby -e '`rm x`'",
        "node -e 'require(\"child_process\").execSync(\"rm x\")'",
        "python3 <<'E'\nimport os\nos.system('rm x')\nE",
        "awk 'BEGIN { system(\"rm x\") }'",
        "awk '{ print | \"rm x\" }' f",
        "sed '1e rm x' f",
        "vim -c '!rm x' f",
        "gdb -ex 'shell rm x'",
        "sqlite3 f '.shell rm x'",
        "psql -c '\\! rm x'",
        "git -c alias.y='!rm x' y",
        "git -c core.pager='rm x' log",
        "git config core.editor 'rm x'",
        "ssh -o ProxyCommand='rm x' host",
        "tar cf f g --checkpoint-action 'exec=rm x'",
        "PAGER='rm x' man ls",
        "docker run --entrypoint 'rm x' image",
    ] {
        let (commands, _) = further(text);
        assert!(commands.iter().any(|command| command == "rm x"), "{text}: {commands:?}");
    }
    for text in [
        "python3 -c 'print(1)'",
        "node -e 'console.log(require(\"./package.json\").version)'",
        "perl -ne 'print if /rm/' f",
        "awk '$1 == \"a\" || $2 > 3 { print $1 }' f",
        "sed -e 's/a/b/' -e '/e/d' f",
        "sqlite3 f 'select 1'",
        "vim +10 f",
        "git config user.name x",
        "ssh -o StrictHostKeyChecking=no host ls",
        "python3 script.py rm x",
    ] {
        assert!(!further(text).1 && !further_commands(&first(text)).hidden, "{text}");
    }
    // Others write the program.
    assert!(further_commands(&read("cat f | python3").unwrap().commands[1]).unknown);
    assert!(!further_commands(&read("cat f | python3 -m json.tool").unwrap().commands[1]).unknown);
}

#[test]
fn what_rides_on_an_option_is_hidden_unless_it_is_usual() {
    for text in
        ["rsync -e ssh a h:b", "tar -I zstd -cf a b", "sort --compress-program=gzip f", "PAGER=cat git log"]
    {
        assert!(!further_commands(&first(text)).hidden, "{text}");
    }
    for text in [
        "rsync -e ./x a h:b",
        "tar -I ./x -cf a b",
        "sort --compress-program=./x f",
        "git -c core.pager=./x log",
    ] {
        assert!(further_commands(&first(text)).hidden, "{text}");
    }
}

#[test]
fn git_runs_what_stands_behind_for_each_repo_and_in_addresses() {
    for (text, command) in [
        ("git for-each-repo --config=x -- -c alias.z='!rm x' z", "git -c alias.z='!rm x' z"),
        ("git for-each-repo --config x --keep-going push", "git push"),
        ("git archive --remote='ext::rm x' HEAD", "rm x"),
        ("git fetch 'ext::rm x'", "rm x"),
    ] {
        let (commands, _) = further(text);
        assert!(commands.iter().any(|it| it == command), "{text}: {commands:?}");
    }
}
