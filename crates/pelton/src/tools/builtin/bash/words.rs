//! What little has to be known about a command's words to read its answer.

/// What exit code 1 says when it is an answer and not a failure: the last program of the command decides.
pub(super) fn meaning_of_exit_one(command: &str) -> Option<&'static str> {
    let last = last_command(command);
    let mut words = last.split_whitespace().skip_while(|word| is_assignment(word));
    let program = words.next()?;
    match program.rsplit('/').next()? {
        "grep" | "egrep" | "fgrep" | "rg" => Some("no matches"),
        "find" => Some("some directories could not be read"),
        "diff" | "cmp" => Some("the files differ"),
        "test" | "[" | "[[" => Some("the condition is false"),
        "git" => match words.find(|word| !word.starts_with('-'))? {
            "diff" => Some("there are differences"),
            "grep" => Some("no matches"),
            _ => None,
        },
        _ => None,
    }
}

/// Whether a command prints nothing when all is well.
pub(super) fn is_silent(command: &str) -> bool {
    let mut words = last_command(command).split_whitespace().skip_while(|word| is_assignment(word));
    let program = words.next().and_then(|word| word.rsplit('/').next());
    matches!(
        program,
        Some(
            "mkdir"
                | "rmdir"
                | "mv"
                | "cp"
                | "rm"
                | "touch"
                | "ln"
                | "chmod"
                | "chown"
                | "cd"
                | "export"
                | "unset"
                | "true"
                | ":"
        )
    )
}

/// The last command of a line of them, as far as quotes are plain: after the last `|`, `&&`, `||`, `;` or line end.
fn last_command(command: &str) -> &str {
    let command = command.trim_end_matches(|c: char| c.is_whitespace() || c == ';');
    let mut quote = None;
    let mut start = 0;
    let mut chars = command.char_indices();
    while let Some((at, c)) = chars.next() {
        match (quote, c) {
            (None, '\'' | '"') => quote = Some(c),
            (Some(open), c) if c == open => quote = None,
            (None | Some('"'), '\\') => {
                chars.next();
            }
            (None, '|' | '&' | ';' | '\n') => start = at + c.len_utf8(),
            _ => {}
        }
    }
    command[start..].trim_start_matches(|c: char| c.is_whitespace() || matches!(c, '!' | '(' | '{'))
}

fn is_assignment(word: &str) -> bool {
    word.split_once('=').is_some_and(|(name, _)| {
        !name.is_empty() && name.bytes().all(|byte| byte.is_ascii_alphanumeric() || byte == b'_')
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn exit_one_is_an_answer_of_the_programs_that_mean_it() {
        for command in [
            "grep x y",
            "cat a | grep -q 'a | b'",
            "cd x && rg foo",
            "LC_ALL=C /usr/bin/diff a b",
            "[ -f x ]",
            "test -f x;\n",
            "git diff --quiet",
            "git -P grep foo",
            "find . -name 'x;y'",
        ] {
            assert!(meaning_of_exit_one(command).is_some(), "{command}");
        }
        for command in
            ["false", "grep x y; false", "cargo test", "git commit", "echo 'a; grep b'", "echo grep", ""]
        {
            assert!(meaning_of_exit_one(command).is_none(), "{command}");
        }
    }

    #[test]
    fn silent_programs_are_known() {
        assert!(is_silent("cd /tmp && mkdir -p x"));
        assert!(is_silent("mv a b"));
        assert!(!is_silent("ls"));
        assert!(!is_silent("mkdir x; ls"));
    }
}
