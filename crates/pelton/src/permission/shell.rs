//! Which commands only look. Conservative: a command is understood only when it is plain words, and it only looks
//! when its program and every option are in the table. Everything else is unknown, and unknown is asked for.

/// The words of a command made of nothing but words: no expansion, chaining, redirection, globbing or escapes.
/// Quotes are understood. `None` means a shell could make something else of it.
pub fn plain_words(command: &str) -> Option<Vec<String>> {
    let mut words: Vec<String> = Vec::new();
    let mut word: Option<String> = None;
    let mut chars = command.chars();
    while let Some(c) = chars.next() {
        match c {
            ' ' | '\t' => words.extend(word.take()),
            '\'' => {
                let word = word.get_or_insert_default();
                loop {
                    match chars.next()? {
                        '\'' => break,
                        c => word.push(c),
                    }
                }
            }
            '"' => {
                let word = word.get_or_insert_default();
                loop {
                    match chars.next()? {
                        '"' => break,
                        '$' | '`' | '\\' | '!' => return None,
                        c => word.push(c),
                    }
                }
            }
            '$' | '`' | '\\' | ';' | '&' | '|' | '<' | '>' | '(' | ')' | '{' | '}' | '#' | '!' | '*'
            | '?' | '[' | ']' | '~' | '^' => return None,
            c if c.is_control() => return None,
            c => word.get_or_insert_default().push(c),
        }
    }
    words.extend(word);
    // `NAME=value program` runs the program in a changed environment.
    match words.first() {
        Some(first) if !first.is_empty() && !first.contains('=') => Some(words),
        _ => None,
    }
}

/// Whether a command certainly changes nothing.
pub fn is_read_only(command: &str) -> bool {
    plain_words(command).is_some_and(|words| words_only_look(&words))
}

pub(super) fn words_only_look(words: &[String]) -> bool {
    let Some((program, args)) = words.split_first() else { return false };
    let args: Vec<&str> = args.iter().map(String::as_str).collect();
    match program.as_str() {
        // Programs none of whose options write, run or connect.
        "ls" | "pwd" | "cat" | "head" | "tail" | "wc" | "stat" | "echo" | "true" | "false" | "whoami"
        | "basename" | "dirname" | "realpath" | "readlink" | "cut" | "tr" | "nl" | "tac" | "diff" | "cmp"
        | "du" | "which" | "grep" | "egrep" | "fgrep" | "uname" | "id" => true,
        "sort" => {
            !has_option(&args, 'o', "output")
                && !has_long(&args, &["--compress-program", "--files0-from"])
                && !has_option(&args, 'T', "temporary-directory")
        }
        "uniq" => args.iter().filter(|arg| !arg.starts_with('-')).count() <= 1,
        "date" => args.iter().all(|arg| arg.starts_with('+') || matches!(*arg, "-u" | "--utc" | "-R" | "-I")),
        "rg" => {
            !has_long(&args, &["--pre", "--hostname-bin", "--search-zip"])
                && !has_option(&args, 'z', "search-zip")
        }
        "find" => !args.iter().any(|arg| {
            ["-exec", "-ok", "-delete", "-fprint", "-fls"].iter().any(|writes| arg.starts_with(writes))
        }),
        "git" => git_only_looks(&args),
        _ => false,
    }
}

fn git_only_looks(args: &[&str]) -> bool {
    // Options before the sub-command can run programs (`-c`, `--exec-path`): none is accepted.
    let Some((command, args)) = args.split_first() else { return false };
    let looks = matches!(
        *command,
        "status" | "log" | "diff" | "show" | "rev-parse" | "ls-files" | "blame" | "shortlog"
    );
    looks
        && !has_long(args, &["--output", "--ext-diff", "--textconv", "--exec", "--contents"])
        && !args.iter().any(|arg| arg.starts_with("-O"))
}

/// Whether one of the options is there, abbreviated (`--out`), with a value (`--output=x`) or plain.
fn has_long(args: &[&str], options: &[&str]) -> bool {
    args.iter().any(|arg| {
        let name = arg.split('=').next().unwrap_or(arg);
        name.len() > 2 && name.starts_with("--") && options.iter().any(|option| option.starts_with(name))
    })
}

/// Whether a short option is there, alone or in a cluster, or its long form.
fn has_option(args: &[&str], short: char, long: &str) -> bool {
    let clustered = |arg: &&str| arg.starts_with('-') && !arg.starts_with("--") && arg.contains(short);
    args.iter().any(clustered) || has_long(args, &[&format!("--{long}")])
}

/// The arguments that may name files: everything that is not an option, and the values of options.
pub(super) fn possible_paths(words: &[String]) -> impl Iterator<Item = &str> {
    words.iter().skip(1).filter_map(|word| match word.strip_prefix('-') {
        None => Some(word.as_str()),
        Some(option) => option.split_once('=').map(|(_, value)| value),
    })
}

#[cfg(test)]
mod tests {
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
            "cat ~/.ssh/id_rsa",
            "ls *",
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
            "echo \"$x\"",
            "echo 'unclosed",
            "ls\nrm x",
            "ls & rm x",
            "FOO=1",
            "l\\s",
            "git log --out=x",
            "env ls",
            "sudo ls",
            "xargs rm",
            "awk 1 a",
            "sed -n 1p a",
            "tee x",
            "git show -Oorder",
        ] {
            check(command, false);
        }
    }
}
