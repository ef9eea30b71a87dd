//! `awk`: which programs only print to where they are told to by default.

use super::arg::{Arg, Files};
use super::look::{Look, is_value};
use super::sed::behind_class;

/// What it looks at, if looking is all that it does.
pub(super) fn look(args: &[Arg]) -> Option<Look> {
    let mut operands = Vec::new();
    let mut args = args.iter();
    while let Some(arg) = args.next() {
        let Some(text) = arg.literal() else {
            (arg.is_sure() && !arg.prefix().starts_with('-')).then_some(())?;
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
    let open = files.iter().filter(|file| file.may_be_option());
    let dashless: Option<Vec<Files>> = open.map(|file| file.matches_some()).collect();
    Some(Look { files: seen, dashless: dashless?, ..Look::nothing() })
}

/// Whether a program neither runs nor writes nor reads anything but its input. What two kinds of awk may read in two ways is
/// taken to do more.
fn only_prints(program: &str) -> bool {
    let mut reader =
        Reader { left: program, before: Before::Operator, depth: 0, asked: Vec::new(), prints: None };
    while !reader.left.is_empty() {
        if reader.token().is_none() {
            return false;
        }
    }
    true
}

/// What stands before a slash, and says what it is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Before {
    /// Something that can be divided.
    Operand,
    /// Nothing can be divided: an expression begins.
    Operator,
    /// Nobody knows.
    Unsure,
}

struct Reader<'a> {
    left: &'a str,
    before: Before,
    /// Parentheses that are open.
    depth: usize,
    /// Of these, the ones behind `if` and the like: what follows them begins anew.
    asked: Vec<usize>,
    /// How many were open at the `print` whose statement goes on: there, `>` is not "greater".
    prints: Option<usize>,
}

impl Reader<'_> {
    /// Passes one token. `None` if it may do more than print.
    fn token(&mut self) -> Option<()> {
        let c = self.next()?;
        self.before = match c {
            ' ' | '\t' => return Some(()),
            '#' => {
                self.left = self.left.find('\n').map_or("", |end| &self.left[end..]);
                return Some(());
            }
            // Behind an operator a statement goes on in the next line.
            '\n' if self.before == Before::Operator && self.prints.is_some() => Before::Operator,
            '\n' | '{' | '}' => self.ends(),
            ';' if self.depth == 0 => self.ends(),
            '"' => self.text()?,
            '/' => match self.before {
                Before::Operator => self.expression()?,
                Before::Operand => Before::Operator,
                Before::Unsure => return None,
            },
            '(' => {
                self.depth += 1;
                Before::Operator
            }
            ')' => {
                let asked = self.asked.pop_if(|depth| *depth + 1 == self.depth);
                self.depth = self.depth.checked_sub(1)?;
                if asked.is_some() { Before::Unsure } else { Before::Operand }
            }
            ']' => Before::Operand,
            '>' if self.prints.is_some_and(|depth| self.depth <= depth) => return None,
            '+' | '-' if self.left.starts_with(c) => {
                self.next();
                Before::Unsure
            }
            '|' | '&' => {
                (self.next()? == c).then_some(())?;
                Before::Operator
            }
            '0'..='9' | '.' => Before::Operand,
            'A'..='Z' | 'a'..='z' | '_' => {
                let more = self.left.find(|c: char| !c.is_ascii_alphanumeric() && c != '_');
                let (rest, left) = self.left.split_at(more.unwrap_or(self.left.len()));
                self.left = left;
                self.word(&format!("{c}{rest}"))?
            }
            ';' | '[' | ',' | '+' | '-' | '*' | '%' | '^' | '!' | '~' | '<' | '>' | '=' | '?' | ':' | '$' => {
                Before::Operator
            }
            _ => return None,
        };
        Some(())
    }

    /// A statement ends, and another begins.
    fn ends(&mut self) -> Before {
        self.prints = None;
        Before::Operator
    }

    fn word(&mut self, word: &str) -> Option<Before> {
        // Digits may stand right before a word: only its end is sure.
        const REACHING: &[&str] =
            &["system", "getline", "ENVIRON", "PROCINFO", "ARGV", "ARGC", "SYMTAB", "FUNCTAB", "extension"];
        (!REACHING.iter().any(|name| word.ends_with(name))).then_some(())?;
        if word != "sprintf" && (word.ends_with("print") || word.ends_with("printf")) {
            self.prints = Some(self.depth);
            return Some(Before::Operator);
        }
        Some(match word {
            "if" | "while" | "for" | "switch" => {
                self.asked.push(self.depth);
                Before::Operator
            }
            "in" | "return" | "else" | "do" | "delete" | "exit" => Before::Operator,
            // Some of them may be an operand, or none; some are names like any other to some of those who read them.
            "length" | "next" | "nextfile" | "break" | "continue" | "BEGIN" | "END" | "BEGINFILE"
            | "ENDFILE" | "case" | "default" | "function" | "func" => Before::Unsure,
            _ => Before::Operand,
        })
    }

    fn text(&mut self) -> Option<Before> {
        loop {
            match self.next()? {
                '"' => return Some(Before::Operand),
                '\n' => return None,
                '\\' => self.escaped()?,
                _ => {}
            }
        }
    }

    /// What stands between slashes. One in brackets may be meant as it is, or not.
    fn expression(&mut self) -> Option<Before> {
        let mut in_bracket = false;
        loop {
            match self.next()? {
                '/' => return (!in_bracket).then_some(Before::Operand),
                '\n' => return None,
                '\\' => self.escaped()?,
                '[' if !in_bracket => {
                    in_bracket = true;
                    // Right behind it a closing one stands for itself.
                    self.left = self.left.strip_prefix('^').unwrap_or(self.left);
                    self.left = self.left.strip_prefix(']').unwrap_or(self.left);
                }
                '[' if self.left.starts_with([':', '.', '=']) => self.left = behind_class(self.left)?,
                ']' => in_bracket = false,
                _ => {}
            }
        }
    }

    fn escaped(&mut self) -> Option<()> {
        self.next().filter(|c| *c != '\n').map(|_| ())
    }

    fn next(&mut self) -> Option<char> {
        let c = self.left.chars().next()?;
        self.left = &self.left[c.len_utf8()..];
        Some(c)
    }
}

#[cfg(test)]
mod tests {
    use super::only_prints;

    #[test]
    fn programs_that_run_write_or_read_are_told_from_those_that_print() {
        for program in [
            "/^[[:space:]]*$/ {print NR}",
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
            "{print ($1 > 5 ? \"a\" : \"b\")}",
            "{if ($1 > 5 && $2 < 3) {print; next}}",
            "function f(a) {return a / 2} {print f($1) / 3}",
            "{n[$1]++}\nEND {\n  for (k in n)\n    print k, n[k]  # each\n}",
            "{print substr($0, 1, length($0) - 1)}",
            "NR == FNR {a[$1]; next} $1 in a",
            "{x = x \",\" $1} END {print x}",
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
            "BEGIN{print \"a\",\n\"b\" > \"x\"}",
            "BEGIN{print \"a\" ||\n1 > \"x\"}",
            "BEGIN{print \"a\", # more\n\"b\" > \"x\"}",
            "BEGIN{print \"a\" \\\n> \"x\"}",
            "BEGIN{getl\\\nine < \"x\"}",
            "{print /\"/ > \"x\" #\"\n}",
            "{if (1) /\"/; print > \"x\" #\"\n}",
            "{return /\"/; print > \"x\" #\"\n}",
            "{length /\"/; print > \"x\" #\"\n}",
            "{i++ /\"/; print > \"x\" #\"\n}",
            "/[]/]\"/ {print > \"x\"} /\"/",
            "/[^]/]\"/ {print > \"x\"} /\"/",
            "/[[:alpha:]/]//system(\"id\")/1{print \"x\"}",
            "/[[.a.]/]//system(\"id\")/1{print \"x\"}",
            "BEGIN{x = case /system(\"id\")/ 1}",
            "{0xfsystem(\"id\")}",
            "{1system(\"id\")}",
            "{print (1)(2) > \"x\"}",
            "{print(1) > \"x\"}",
            "BEGIN{SYMTAB[\"x\"]}",
            "{awk::system(\"id\")}",
            "BEGIN { ARGV[1]=\"/etc/passwd\"; ARGC=2 }",
        ] {
            assert!(!only_prints(program), "{program}");
        }
    }
}
