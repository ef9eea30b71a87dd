//! `awk`: which programs only print to where they are told to by default.

use super::arg::{Arg, Files};
use super::look::{Look, is_value};

/// What it looks at, if looking is all that it does.
pub(super) fn look(args: &[Arg]) -> Option<Look> {
    let mut operands = Vec::new();
    let mut args = args.iter();
    while let Some(arg) = args.next() {
        let Some(text) = arg.literal() else {
            (arg.is_sure() && !arg.may_be_option()).then_some(())?;
            operands.push(arg);
            continue;
        };
        match text {
            "--" => operands.extend(args.by_ref()),
            "-F" | "--field-separator" => is_value(args.next()?).then_some(())?,
            // The name is known, the value is data.
            "-v" | "--assign" => {
                let assigned = args.next()?;
                (is_value(assigned) && assigned.prefix().contains('=')).then_some(())?;
            }
            text if text.starts_with("--field-separator=") || text.starts_with("--assign=") => {}
            text if text.starts_with("-F") || text.starts_with("-v") => {}
            // Behind the program words are files, whatever they look like; before it nothing else is known.
            text if text.starts_with('-') && text != "-" => return None,
            _ => {
                operands.push(arg);
                operands.extend(args.by_ref());
            }
        }
    }
    let (program, files) = operands.split_first()?;
    if !only_prints(program.literal()?) {
        return None;
    }
    let mut seen = Vec::new();
    for file in files {
        (file.is_sure()).then_some(())?;
        // `name=value` sets a variable.
        if !file.literal().is_some_and(|text| text.contains('=') && !text.contains('/')) {
            seen.push(file.files()?);
        }
    }
    if seen.iter().any(|file| matches!(file, Files::Matching(_)))
        && files.iter().any(|file| file.may_be_option())
    {
        return None;
    }
    Some(Look { files: seen, ..Look::nothing() })
}

/// Whether a program neither runs nor writes nor reads anything but its input.
fn only_prints(program: &str) -> bool {
    let mut chars = program.chars().peekable();
    // What stands since the last statement began, without texts and expressions.
    let mut statement = String::new();
    // The last character that is no blank.
    let mut before = '\n';
    while let Some(c) = chars.next() {
        match c {
            '"' => {
                loop {
                    match chars.next() {
                        None | Some('\n') => return false,
                        Some('\\') => _ = chars.next(),
                        Some('"') => break,
                        Some(_) => {}
                    }
                }
                statement.push('"');
            }
            // Nothing can be divided here.
            '/' if "\n({;,!~&|}".contains(before) => {
                let mut in_bracket = false;
                loop {
                    match chars.next() {
                        None | Some('\n') => return false,
                        Some('\\') => _ = chars.next(),
                        Some('/') if in_bracket => return false,
                        Some('/') => break,
                        Some('[') => in_bracket = true,
                        Some(']') => in_bracket = false,
                        Some(_) => {}
                    }
                }
                statement.push('/');
            }
            '#' => {
                while chars.next_if(|c| *c != '\n').is_some() {}
                continue;
            }
            '@' | '`' => return false,
            '|' if chars.peek() == Some(&'|') => {
                chars.next();
                statement.push_str("||");
            }
            '|' => return false,
            '>' if statement.contains("print") => return false,
            '<' if statement.contains("getline") => return false,
            '{' | '}' | ';' | '\n' => statement.clear(),
            c => statement.push(c),
        }
        if !c.is_whitespace() || c == '\n' {
            before = c;
        }
        if ["system", "getline", "ENVIRON", "PROCINFO", "ARGV", "ARGC"]
            .iter()
            .any(|word| statement.ends_with(word))
        {
            return false;
        }
    }
    true
}

#[cfg(test)]
mod tests {
    use super::only_prints;

    #[test]
    fn programs_that_run_write_or_read_are_told_from_those_that_print() {
        for program in [
            "{print $1}",
            "NR==5",
            "/foo|bar/ {print $2}",
            "$3 > 100 {print $1}",
            "{s+=$1} END {print s}",
            "{if ($1 > 5) print $2}",
            "BEGIN{FS=\":\"} {print $1, $NF}",
            "!seen[$0]++",
            "{printf \"%s\\n\", $1}",
            "length > 80",
            "NR>1 && NR<5",
            "{print \"a | b > c\"}",
            "/a/ || /b/",
            "{gsub(/a|b/, \"x\"); print}",
            "{print $1/2}",
        ] {
            assert!(only_prints(program), "{program}");
        }
        for program in [
            "BEGIN{system(\"id\")}",
            "{print > \"x\"}",
            "{print $1 >> \"x\"}",
            "{print | \"sh\"}",
            "{\"id\" | getline x}",
            "BEGIN{while((getline l < \"/etc/passwd\")>0) print l}",
            "@load \"x\"",
            "{f=\"sys\"; @f()}",
            "{printf(\"x\") > \"y\"}",
            "BEGIN{print ENVIRON[\"X\"]}",
            "{print $1 / 2 | \"sh\" / 3}",
            "{print \"unclosed",
            "/unclosed",
            "BEGIN { ARGV[1]=\"/etc/passwd\"; ARGC=2 }",
        ] {
            assert!(!only_prints(program), "{program}");
        }
    }
}
