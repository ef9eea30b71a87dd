//! Every builtin with arguments that bash may evaluate: names with subscripts, numbers, text.

use crate::bash::Bash;
use crate::verdict::{Demand, check};

/// All of bash's builtins but those that end or stop the shell.
const BUILTINS: &[&str] = &[
    ":",
    "[",
    "alias",
    "bg",
    "bind",
    "break",
    "builtin",
    "caller",
    "cd",
    "command",
    "compgen",
    "complete",
    "compopt",
    "continue",
    "declare",
    "dirs",
    "disown",
    "echo",
    "enable",
    "eval",
    "exec",
    "exit",
    "export",
    "false",
    "fc",
    "fg",
    "getopts",
    "hash",
    "help",
    "history",
    "jobs",
    "kill",
    "let",
    "local",
    "mapfile",
    "popd",
    "printf",
    "pushd",
    "pwd",
    "read",
    "readarray",
    "readonly",
    "return",
    "set",
    "shift",
    "shopt",
    "source",
    "test",
    "times",
    "trap",
    "true",
    "type",
    "typeset",
    "ulimit",
    "umask",
    "unalias",
    "unset",
    "wait",
];

/// Builtins that evaluate some of their arguments, as far as anybody knows. The long run takes the options of all.
const EVALUATING: &[&str] =
    &["[", "declare", "getopts", "jobs", "mapfile", "printf", "read", "unset", "wait"];

const LETTERS: &str = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ";

/// Variables that have a meaning for bash, some of them numbers.
const VARIABLES: &[&str] = &[
    "RANDOM",
    "SRANDOM",
    "SECONDS",
    "LINENO",
    "OPTIND",
    "OPTERR",
    "HISTCMD",
    "BASHPID",
    "EPOCHSECONDS",
    "TMOUT",
    "FUNCNEST",
    "MAILCHECK",
    "HISTSIZE",
    "HISTFILESIZE",
    "COMP_CWORD",
    "DIRSTACK",
    "GROUPS",
    "BASH_SUBSHELL",
    "BASH_ARGV0",
    "COLUMNS",
    "LINES",
    "IFS",
    "BASH_COMPAT",
    "CHILD_MAX",
    "IGNOREEOF",
    "PS1",
    "PS4",
    "COMPREPLY",
    "FIGNORE",
    "GLOBIGNORE",
    "LANG",
    "TZ",
    "TEXTDOMAIN",
    "BASH_XTRACEFD",
    "_",
    "BASH_COMMAND",
    "REPLY",
    "PATH",
];

fn commands(everything: bool) -> Vec<String> {
    let mut commands = Vec::new();
    for builtin in BUILTINS {
        let mut arguments: Vec<String> = [
            "T",
            "x T",
            "T=1",
            "'a[$(n1)]=1'",
            "1 -eq T",
            "T -eq 1",
            "-- T",
            "'$(n1)'",
            "x '$(n1)'",
            "T ]",
            "1 -eq T ]",
            "-v T ]",
            "a=$'\\n'T",
            "+T",
            "-T",
            "%T",
            "'a[$(n1)]+=1'",
            "b T=1",
            "'(a[$(n1)])'",
            "'x=a[$(n1)]'",
            "n1 EXIT",
            "T EXIT",
        ]
        .map(str::to_owned)
        .to_vec();
        if everything || EVALUATING.contains(builtin) {
            for letter in LETTERS.chars() {
                arguments.push(format!("-{letter} T"));
                if everything {
                    arguments.extend([
                        format!("-{letter}T"),
                        format!("-{letter} T x"),
                        format!("-{letter} x T"),
                        format!("-{letter} '$(n1)'"),
                        format!("-{letter} 'x=a[$(n1)]'"),
                    ]);
                }
            }
        }
        commands.extend(arguments.into_iter().map(|arguments| format!("{builtin} {arguments} <<<'q w'")));
    }
    for variable in VARIABLES {
        let forms = [
            "V=T; :",
            "V=T n2",
            "V+=T",
            "export V=T",
            "read V <<<T",
            "for V in T; do :; done",
            "printf -v V T",
            ": ${V:=T}",
            "x=T; n2 ${V:x}",
        ];
        commands.extend(forms.map(|form| form.replace('V', variable)));
    }
    commands
        .into_iter()
        .map(|command| command.replace('T', "'a[$(n1)]'").replace("'a[$(n1)]'EX'a[$(n1)]'", "T"))
        .collect()
}

#[test]
fn builtins_evaluate_nothing_unseen() {
    let bash = Bash::find();
    for command in commands(std::env::var_os("PELTON_SHELL_CASES").is_some()) {
        if let Err(disagreement) = check(&bash, &command, Demand::NothingUnseenRuns) {
            panic!("{disagreement}");
        }
    }
}

/// A value that was set before and is evaluated later: whoever evaluates it is doubted.
#[test]
fn values_are_evaluated_by_nobody_unseen() {
    let bash = Bash::find();
    for evaluation in [
        "n2 $((x))",
        "n2 $[x]",
        "n2 ${y:x}",
        "n2 ${y:0:x}",
        "n2 ${y[x]}",
        "n2 ${#y[x]}",
        "n2 \"${y[x]}\"",
        "n2 ${!x}",
        "n2 ${x@P}",
        "n2 \"${x@P}\"",
        "n2 ${x@E}",
        "n2 ${x@A}",
        "n2 ${x@a}",
        "n2 ${x@Q}",
        "n2 ${x@K}",
        "n2 ${!x@}",
        "n2 ${!x*}",
        "n2 ${y[@]:x}",
        "n2 ${@:x}",
        "n2 ${*:0:x}",
        "n2 ${x^^}",
        "n2 ${y/x/x}",
        "n2 ${x:-x}",
        "[[ x -eq 0 ]]",
        "[[ $x -eq 0 ]]",
        "[[ -v x ]]",
        "[[ -v $x ]]",
        "[[ -v y[x] ]]",
        "[[ $x ]]",
        "[[ $x == x ]]",
        "[[ $x =~ x ]]",
        "[[ -R x ]]",
        "[[ -n $x ]]",
        "[[ -f $x ]]",
        "[[ -t $x ]]",
        "[[ -o $x ]]",
        "[ -v x ]",
        "[ -v $x ]",
        "[ -v \"$x\" ]",
        "[ $x -eq 0 ]",
        "[ -n $x ]",
        "[ -t $x ]",
        "[ $x ]",
        "test -v $x",
        "test $x",
        "(( x ))",
        "(( $x ))",
        "(( 0 ? x : 0 ))",
        "for ((x;0;)); do :; done",
        "for ((;x;)); do break; done",
        "let x",
        "let $x",
        "let y=x",
        "y[x]=1",
        "y[$x]=1",
        "y=([x]=1)",
        "y=([$x]=1)",
        "y=($x)",
        "declare -i y=x",
        "declare -i y; y=x",
        "declare y=$x",
        "declare $x",
        "declare $x=1",
        "export $x",
        "readonly $x=1",
        "local $x",
        "typeset $x",
        "read $x",
        "read y <<<$x",
        "mapfile $x <<<a",
        "unset $x",
        "unset y[x]",
        "printf -v $x a",
        "printf $x",
        "printf %d $x",
        "printf '%d' \"$x\"",
        "printf '%*d' $x 1",
        "exit $x",
        "return $x",
        "shift $x",
        "break $x",
        "ulimit $x",
        "umask $x",
        "kill $x",
        "wait $x",
        "wait -p $x 1",
        "getopts a $x",
        "getopts $x y",
        "cd $x",
        "pushd +$x",
        "dirs +$x",
        "hash $x",
        "type $x",
        "trap $x",
        "trap n2 $x",
        "exec {x}>f",
        "n2 {x}>f",
        "exec {y[x]}>f",
        "n2 >&$x",
        "n2 <&$x",
        "n2 >$x",
        "n2 <<<$x",
        "n2 <<E\n$x\nE",
        "n2 $x",
        "n2 \"$x\"",
        "n2 {$x,a}",
        "n2 ~$x",
        "case $x in x) n2;; esac",
        "case x in $x) n2;; esac",
        "for y in $x; do n2 $y; done",
        "select y in $x; do n2; done",
        "eval $x",
        "eval n2 $x",
        "$x",
        "n2 `n3 $x`",
        "IFS=$x",
        "PS4=$x; set -x; n2",
        "RANDOM=$x",
        "SECONDS=$x",
        "OPTIND=$x",
        "LINENO=$x",
        "BASH_ENV=$x n2",
        "declare -n r=x; n2 $r",
        "declare -n r; r=$x; n2 $r",
        "declare -a y=($x)",
        "declare -A y; y[$x]=1",
        "declare -A y=([$x]=1)",
        "declare -u y=$x; n2 $y",
        "y+=$x",
        "y+=($x)",
        "history $x",
        "fc $x",
        "bind $x",
        "complete -W $x n2",
        "compgen -W $x",
        "compgen -W \"$x\"",
        "alias y=$x",
        "enable $x",
        "shopt $x",
        "set $x",
        "set -- $x; n2 $1",
        "caller $x",
        "jobs $x",
        "disown $x",
        "help $x",
        "command $x",
        "builtin $x",
    ] {
        for value in ["a[$(n1)]", "$(n1)", "`n1`", "n1"] {
            let command = format!("x='{value}'; {evaluation}");
            if let Err(disagreement) = check(&bash, &command, Demand::NothingUnseenRuns) {
                panic!("{disagreement}");
            }
        }
    }
}
