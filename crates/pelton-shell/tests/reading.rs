//! Single commands and what is read from them.

use pelton_shell::{AssignmentKind, Command, DoubtKind, Part, RedirectionKind, Script, Word, read};

fn script(text: &str) -> Script {
    read(text).unwrap_or_else(|unclear| panic!("{text:?}: {unclear}"))
}

/// The words of every command; a word that is not literal is shown as written in guillemets.
fn argvs(text: &str) -> Vec<Vec<String>> {
    let shown = |word: &Word| word.literal().map_or_else(|| format!("«{}»", word.text()), str::to_owned);
    script(text).commands.iter().map(|command| command.words.iter().map(shown).collect()).collect()
}

fn only(text: &str) -> Command {
    let mut commands = script(text).commands;
    assert_eq!(commands.len(), 1, "{text:?}");
    commands.remove(0)
}

fn doubts(text: &str) -> Vec<DoubtKind> {
    script(text).doubts.iter().map(|doubt| doubt.kind).collect()
}

#[test]
fn quotes_and_escapes_are_removed() {
    assert_eq!(argvs(r#"'r'm r\m "rm" $'rm' $'\x72m' """#), [["rm", "rm", "rm", "rm", "rm", ""]]);
    assert_eq!(argvs(r#"a "b\$c\d" 'e\f' g\ h"#), [["a", r"b$c\d", r"e\f", "g h"]]);
    assert_eq!(argvs("a\\\nb c \\\n d"), [["ab", "c", "d"]]);
}

#[test]
fn separators_separate() {
    let expected = [["a"], ["b"], ["c"], ["d"], ["e"], ["f"], ["g"]];
    assert_eq!(argvs("a && b || c; d | e |& f\ng"), expected);
    assert_eq!(argvs("a & b"), [["a"], ["b"]]);
    assert_eq!(doubts("a & b"), [DoubtKind::Background]);
}

#[test]
fn compound_commands_are_looked_into() {
    for text in [
        "if a; then b; elif c; then d; else e; fi",
        "while a; do b; done; until c; do d; done; e",
        "{ a; b; }; (c; d); ! e",
        "a $(b $(c)) `d \\`e\\``",
        "a <(b) >(c) \"$(d)\" ${x:-$(e)}",
        "case $(a) in b|$(b)) c;; (d) d;& *) e;; esac",
        "f() { a; }; function g { b; }; function h() ( c ); d; e",
        "a; [[ $(b) == $(c) && -n `d` ]]; (( $(e) ))",
        "a <<X; b\n$(c) `d`\nX\ne",
        "x[$(a)]=$(b); y=(c $(c) [$(d)]=$(e))",
        "coproc a; coproc N { b; }; time c; time -p d; e",
        "select x in $(a); do b; done; for ((i=$(c);;)) { d; }; e",
    ] {
        let script = script(text);
        let names: Vec<_> = script.commands.iter().filter_map(Command::name).collect();
        assert_eq!(names, ["a", "b", "c", "d", "e"], "{text}");
    }
}

#[test]
fn quoted_here_documents_are_data() {
    let command = only("cat <<'E' >out\n$(rm) `rm`\nE\n");
    assert_eq!(command.redirections[0].kind, RedirectionKind::HereDocument { quoted: true });
    assert_eq!(command.redirections[0].target.literal(), Some("$(rm) `rm`\n"));
    assert_eq!(command.redirections[1].kind, RedirectionKind::Write);
    assert_eq!(command.redirections[1].target.literal(), Some("out"));
}

#[test]
fn a_message_from_a_quoted_here_document_is_literal() {
    let message = "git commit -m \"$(cat <<'EOF'\nFix $x and `y`\n\nIt's (done).\nEOF\n)\"";
    let script = script(message);
    assert_eq!(script.commands[0].words[3].literal(), Some("Fix $x and `y`\n\nIt's (done)."));
    assert!(script.doubts.is_empty());
}

#[test]
fn braces_become_words_when_they_are_certain() {
    assert_eq!(argvs("cp f{,.bak}"), [["cp", "f", "f.bak"]]);
    assert_eq!(argvs("a {b,c}{1..2} {} x{y}"), [["a", "b1", "b2", "c1", "c2", "{}", "x{y}"]]);
    assert_eq!(argvs("a '{b,c}' {$x,y}"), [["a", "{b,c}", "«{$x,y}»"]]);
}

#[test]
fn patterns_and_tildes_are_not_literal() {
    let command = only("ls *.rs 'a*'[b-c]\\* ~/x a=~ [ ]");
    assert_eq!(command.words[1].pattern(), Some("*.rs"));
    assert_eq!(command.words[2].pattern(), Some("a\\*[b-c]\\*"));
    assert_eq!(command.words[3].parts(), [Part::Tilde("~".into()), Part::Literal("/x".into())]);
    assert!(command.words[4].doubts().tilde);
    assert_eq!(command.words[5].literal(), Some("["));
}

#[test]
fn the_fixed_beginning_of_a_word_is_known() {
    let command = only("a --output=$X \"$HOME\"/x b$1");
    let prefixes: Vec<_> = command.words.iter().map(Word::literal_prefix).collect();
    assert_eq!(prefixes, ["a", "--output=", "", "b"]);
}

#[test]
fn assignments_stand_before_the_command_word_only() {
    let command = only("A=1 B+='2 3' >x C[0]=4 d E=5");
    let assigned: Vec<_> = command.assignments.iter().map(|it| (it.name.as_str(), it.kind)).collect();
    let expected =
        [("A", AssignmentKind::Plain), ("B", AssignmentKind::Append), ("C", AssignmentKind::Element)];
    assert_eq!(assigned, expected);
    assert_eq!(command.words.len(), 2);
    assert_eq!(command.assignments[1].value.literal(), Some("2 3"));
}

#[test]
fn reserved_words_are_words_elsewhere() {
    assert_eq!(argvs("echo if then { } fi done"), [["echo", "if", "then", "{", "}", "fi", "done"]]);
    assert_eq!(argvs("'if' x; a=1 while"), [vec!["if", "x"], vec!["while"]]);
    assert_eq!(argvs("i\\\nf a; then b; fi"), [["a"], ["b"]]);
}

#[test]
fn redirections_are_told_apart() {
    use RedirectionKind::*;
    let command = only("a <1 >2 2>>3 >|4 <>5 &>6 >&7x &>>8 2>&1 3>&1- 4<&- <<<9 >&$x");
    let kinds: Vec<_> = command.redirections.iter().map(|it| it.kind).collect();
    let expected = [
        Read, Write, Append, Clobber, ReadWrite, WriteBoth, Unknown, AppendBoth, Duplicate, Duplicate, Close,
        HereString, Unknown,
    ];
    assert_eq!(kinds, expected);
    assert_eq!(command.redirections[2].descriptor.as_deref(), Some("2"));
}

#[test]
fn redirections_of_a_compound_command_are_a_command_without_words() {
    let script = script("{ a; b; } >x 2>&1");
    assert_eq!(script.commands.len(), 3);
    assert!(script.commands[0].words.is_empty());
    assert_eq!(script.commands[0].redirections.len(), 2);
}

#[test]
fn the_variable_of_a_loop_is_an_assignment() {
    let script = script("for PATH in /x /y; do a; done");
    assert_eq!(script.commands[0].assignments.len(), 2);
    assert_eq!(script.commands[0].assignments[0].name, "PATH");
    assert_eq!(script.commands[0].assignments[0].kind, AssignmentKind::Loop);
}

#[test]
fn what_is_not_closed_or_not_known_is_unclear() {
    for text in [
        "'",
        "\"",
        "`",
        "$(",
        "${",
        "$((",
        "((",
        "(",
        "{ a",
        "if a; then",
        "a &&",
        "a |",
        "a <<E",
        "a <<E\nb",
        "a >",
        "$(cat <<E)\nE",
        "a )",
        "a ;; b",
        "; a",
        "a & & b",
        "a(b)",
        "[[ a",
        "case a in b",
        "\u{1}",
        "a \u{7f}",
        "a \\",
        "shopt -s extglob\necho @(a|b)",
        "$((a);(b))",
        "a=(b) c(d)",
        "echo a=(b)",
        "for 1 in a; do b; done",
    ] {
        assert!(read(text).is_err(), "{text:?}");
    }
}

#[test]
fn invisible_characters_are_ordinary_but_doubted() {
    assert_eq!(argvs("rm\u{a0}x y\r"), [["rm\u{a0}x", "y\r"]]);
    assert_eq!(doubts("rm\u{a0}x\u{200b}"), [DoubtKind::Invisible]);
}

#[test]
fn comments_are_data() {
    assert_eq!(argvs("a b # c; rm\nd #"), [vec!["a", "b"], vec!["d"]]);
    assert_eq!(argvs("a b#c"), [["a", "b#c"]]);
    assert_eq!(argvs("a $(b # )\n)"), [vec!["a", "«$(b # )\n)»"], vec!["b"]]);
}

#[test]
fn arguments_that_bash_evaluates_are_doubted() {
    for text in [
        "let 'a[$(x)]'",
        "let a=1",
        "declare -i a=b",
        "declare 'a[$(x)]=1'",
        "declare -n r=a",
        "export \"$x\"",
        "printf -v 'a[$(x)]' b",
        "printf -v \"$x\" b",
        "printf \"$f\" \"$x\"",
        "read 'a[$(x)]'",
        "read \"$x\"",
        "mapfile 'a[$(x)]'",
        "unset 'a[$(x)]'",
        "test -v 'a[$(x)]'",
        "[ -v 'a[$(x)]' ]",
        "[ -v \"$x\" ]",
        "getopts a 'b[$(x)]'",
        "wait -p 'a[$(x)]' 1",
        "builtin read 'a[$(x)]'",
        "command printf -v 'a[$(x)]' b",
        "compgen -W '$(x)'",
        "[ \"$o\" 'a[$(x)]' ]",
        "readonly 'a[$(x)]=1'",
        "local -i a=b",
        "typeset -ri a=b",
        "test \"$o\" \"$x\"",
    ] {
        assert_eq!(doubts(text), [DoubtKind::EvaluatedArgument], "{text}");
    }
    for text in [
        "shopt -s extglob",
        "alias a=b",
        "set -k",
        "set -o posix",
        "set +B",
        "set -f",
        "hash -p /x ls",
        "enable -f x y",
        "set $x",
        "bind -x a",
    ] {
        assert_eq!(doubts(text), [DoubtKind::ShellOptions], "{text}");
    }
    for text in [
        "(( a ))",
        "(( $a ))",
        "[[ a -eq 1 ]]",
        "[[ 'a[$(x)]' -eq 0 ]]",
        "[[ 1 -lt $x ]]",
        "echo $((a))",
        "echo $[a]",
        "for ((i=0;i<3;i++)); do :; done",
    ] {
        assert_eq!(doubts(text).first(), Some(&DoubtKind::Arithmetic), "{text}");
    }
    for text in ["[[ -v a[$x] ]]", "[[ -v 'a[$(x)]' ]]", "a[b]=1", "a[$x]=1", "a=([b]=1)"] {
        assert_eq!(doubts(text).first(), Some(&DoubtKind::Subscript), "{text}");
    }
}

#[test]
fn ordinary_arguments_of_builtins_are_not_doubted() {
    for text in [
        "printf '%s %s\\n' \"$a\" \"$b\"",
        "[ \"$a\" = \"$b\" ]",
        "[ -n \"$a\" ]",
        "test -f x",
        "read -r line",
        "export A=1 B=\"$x\"",
        "declare -x A=1",
        "local a b=c",
        "set -euo pipefail",
        "set -x",
        "set -- \"$a\"",
        "unset a",
        "[[ $a == b* && -f $c ]]",
        "[[ 1 -lt 2 ]]",
        "(( 1 + 2 ))",
        "printf -v a b",
        "[ $a -lt 3 ]",
        "[ -z \"$a\" ] && [ -d \"$b\" ]",
        "hash -r",
        "readonly A=1",
        "echo $((1+2))",
        "export -n A",
    ] {
        assert_eq!(doubts(text), [], "{text}");
    }
}

#[test]
fn variables_that_are_set_are_told() {
    let set = |text: &str| pelton_shell::variables_set(&script(text).commands[0]);
    assert_eq!(set("A=1 B+=2 x"), ["A", "B"]);
    assert_eq!(set("read -r PATH IFS"), ["PATH", "IFS"]);
    assert_eq!(set("printf -v PATH x"), ["PATH"]);
    assert_eq!(set("command export PATH=x"), ["PATH"]);
    assert_eq!(set("echo ${PATH:=x}"), ["PATH"]);
    assert_eq!(set("for PATH in x; do y; done"), ["PATH"]);
}

/// Bash expands the word behind `>&` twice when it is no descriptor: quotes do not protect it.
#[test]
fn found_a_quoted_target_behind_a_duplication_is_expanded_again() {
    assert!(read("a >& '$(rm)'").is_err());
    assert!(read("a >&'`rm`'").is_err());
    assert!(read("a <& '$(rm)'").is_err());
    assert_eq!(only("a >& 'b'").redirections[0].kind, RedirectionKind::WriteBoth);
}

/// Bash writes the commands of a substitution anew, and behind a here-document it forgets the `;` between the commands that follow.
#[test]
fn found_here_documents_beside_other_commands_in_a_substitution_are_unclear() {
    assert!(read("x=$(a <<E\nE\nb c; d)").is_err());
    assert!(read("x=$(case a in b) c <<E\nE\nesac; d)").is_err());
    assert!(read("x=$(a <<E\nE\n)").is_ok());
}

/// When bash looks for braces it does not see that they stand in backquotes in double quotes behind an escape.
#[test]
fn found_escapes_in_backquotes_in_double_quotes_are_unclear() {
    assert!(read(r#"a "`b \\"; c {p,q}`""#).is_err());
    assert!(read(r#"a "`b`""#).is_ok());
}

/// Bash keeps some variables as numbers, and evaluates what is assigned to them.
#[test]
fn found_assignments_to_numbers_of_bash_are_told_as_steering() {
    for text in ["RANDOM='a[$(x)]'", "BASHPID+=a", "for OPTIND in x; do y; done", "read SECONDS"] {
        let set = pelton_shell::variables_set(&script(text).commands[0]);
        assert!(set.iter().any(|name| pelton_shell::steers(name)), "{text}");
    }
}

/// Bash names a coprocess in the text it makes of a substitution, and then runs the name.
#[test]
fn found_a_coprocess_in_a_substitution_is_unclear() {
    assert!(read("a $(coproc b)").is_err());
}

/// A subscript in `${…}` is evaluated although it is quoted.
#[test]
fn found_a_quoted_subscript_in_a_parameter_is_evaluated() {
    assert_eq!(doubts("a ${b['$(c)']}"), [DoubtKind::Subscript]);
    assert_eq!(doubts("a ${b:'$(c)'}"), [DoubtKind::Arithmetic]);
    assert_eq!(doubts("a ${b[0]} ${b[@]} ${b:1:2} ${b#x}"), []);
}

#[test]
fn connections_are_doubted() {
    assert_eq!(doubts("exec 3<>/dev/tcp/host/80"), [DoubtKind::Network]);
    assert_eq!(doubts("cat </dev/udp/$h/53"), [DoubtKind::Network]);
}

#[test]
fn commands_in_a_here_document_stand_where_their_reader_stands() {
    let script = script("a || b <<E\n$(c)\nE");
    assert!(script.commands[2].place.conditional && script.commands[2].place.in_substitution);
}

#[test]
fn what_runs_only_after_success_is_told() {
    let chains = |text: &str| -> Vec<Option<usize>> {
        read(text).unwrap().commands.iter().map(|command| command.place.chain).collect()
    };
    assert_eq!(chains("cd a && ls | wc"), [Some(0); 3]);
    assert_eq!(chains("cd a && b || c && d"), [Some(0), Some(0), None, None]);
    assert_eq!(chains("! cd a && b"), [None, Some(0)]);
    assert_eq!(chains("cd a && b; c && d"), [Some(0), Some(0), Some(1), Some(1)]);
    assert_eq!(chains("cd a && { cd b; } && c"), [Some(0), Some(1), Some(0)]);
}

#[test]
fn numbers_are_no_names() {
    for (text, certain) in
        [("0x1f + 2", true), ("07*3", true), ("0xfg", false), ("16#ff", false), ("1a", false)]
    {
        let script = read(&format!("(( {text} ))")).unwrap();
        assert_eq!(script.doubts.is_empty(), certain, "{text}");
    }
}

#[test]
fn found_a_backslash_in_an_array_in_a_substitution_is_unclear() {
    for command in [
        "n0 $(z=(\\;) n1 \\\n n2)",
        "n0 $(z+=(\\;) n3 | n4)",
        "n0 \"$(declare -a z=([0]=\\|))\"",
        "n0 <(z=('a'\\''b'); n1)",
    ] {
        assert!(pelton_shell::read(command).is_err(), "{command}");
    }
    for command in ["z=(\\;); n1", "n0 $(z=(';' a \";\"); n1)"] {
        assert!(pelton_shell::read(command).is_ok(), "{command}");
    }
}

#[test]
fn arrays_are_filled_with_the_words_of_all_their_lines_without_comments_and_subscripts() {
    for (command, elements) in [
        ("a=(x y)", vec!["x", "y"]),
        ("a=(\n  x # one\n  y # two\n)", vec!["x", "y"]),
        ("a+=(x\nif\ny=z)", vec!["x", "if", "y=z"]),
        ("a=([0]=x [k]='y z' [2]=)", vec!["x", "y z", ""]),
        ("a=({x,y}.rs)", vec!["x.rs", "y.rs"]),
        ("a=()", vec![]),
    ] {
        let script = read(command).unwrap();
        let found = &script.commands[0].assignments[0].elements;
        let found: Vec<&str> = found.iter().map(|word| word.literal().unwrap()).collect();
        assert_eq!(found, elements, "{command}");
    }
    let script = read("a=(x\n\"$(y)\")").unwrap();
    let elements = &script.commands[0].assignments[0].elements;
    assert_eq!(elements.iter().map(|word| word.literal()).collect::<Vec<_>>(), [Some("x"), None]);
}
