//! Commands that are mostly right: made along bash's grammar, with everything that words can be written as.
//!
//! A command is made from a row of numbers, each of which decides something; when the row is at its end, the simplest is chosen. A shorter row
//! and smaller numbers make a simpler command, which is how a counterexample shrinks.

/// How deep substitutions and compound commands stand in each other.
const DEPTH: usize = 3;

/// A script with everything in it.
pub fn script(choices: &[u8]) -> String {
    Maker { choices: choices.iter() }.list(DEPTH)
}

/// Lines of simple commands, for what their words become.
pub fn simple_commands(choices: &[u8]) -> String {
    let mut maker = Maker { choices: choices.iter() };
    let mut text = maker.simple(1);
    while maker.chance(60) {
        text.push('\n');
        text.push_str(&maker.simple(1));
    }
    text
}

const PLAIN: &[&str] = &[
    "a", "b1", "c-d", "e.f", "x#y", "=", "a=b", "-n", "--o=v", "^", "%", "@", ":", ",", "]", "[", "{", "}",
    "{}", "{p}", "!", "é", "a,b", "..", "+", "[[", "]]", "if", "then", "fi", "do", "done", "in", "esac",
    "time", "1", "0x1", "\\\n",
];

const QUOTED: &[&str] = &[
    "'s q'",
    "\"d q\"",
    "\"a\\\"b\"",
    "\"\\$x\"",
    "\"\\a\"",
    "\"\\\\\"",
    "\"\\`\"",
    "\\ ",
    "\\'",
    "\\\"",
    "\\\\",
    "\\$",
    "\\`",
    "\\;",
    "\\#",
    "\\~",
    "\\*",
    "\\{",
    "''",
    "\"\"",
    "'\"'",
    "\"'\"",
    "'a\nb'",
    "\"a\nb\"",
    "\"a\\\nb\"",
    "'a\\\nb'",
    "'#'",
    "\"#\"",
    "';'",
    "'$(n9)'",
    "\"\\$(n9)\"",
    "'`n9`'",
    "\"a&&b\"",
    "'<<E'",
    "\"${x}\"",
    "\"$\"",
    "\"$ \"",
    "\"!\"",
    "'!'",
    "\"*\"",
    "\"{a,b}\"",
    "'('",
    "\")\"",
    "\"\\\n\"",
    "\"'$x'\"",
    "\"[\"",
    "\"~\"",
];

const ANSI: &[&str] = &[
    "$'a\\tb'",
    "$'\\x41\\101\\u0042'",
    "$'\\''",
    "$'\\\\'",
    "$'\\n'",
    "$'\\q'",
    "$'\\e\\a\\b\\f\\v\\r'",
    "$'\\1012'",
    "$'\\x4g'",
    "$'\\xc3\\xa9'",
    "$'\\U00000041'",
    "$'\\cA'",
    "$'\\0x'",
    "$'\\400'",
    "$'\\x'",
    "$'\\u'",
    "$'\\\"\\?'",
    "$'\n'",
    "$'\\\n'",
    "$'$x`'",
    "$\"t\"",
    "$\"t $x\"",
    "$'\\xff'",
    "$'\\u00e9'",
    "$'\\x{41}'",
    "$'\\xyz'",
];

const EXPANDED: &[&str] = &[
    "$x",
    "\"$x\"",
    "${x}",
    "${x:-d}",
    "\"${x:-d e}\"",
    "${x:-'d e'}",
    "${#x}",
    "$#",
    "$?",
    "$0",
    "$-",
    "$((1+2))",
    "\"$((3 * (2)))\"",
    "$[1]",
    "${x:-\"q}\"}",
    "${x:-\\}}",
    "$",
    "$ ",
    "~",
    "~/z",
    "a:~",
    "*",
    "?",
    "[z]",
    "[!a-c]*",
    "a[b",
    "${x%%*}",
    "${x#\"a\"}",
    "${x/a/b}",
    "${x:1:2}",
    "${x^^}",
    "${x@Q}",
    "\"$@\"",
    "$*",
    "$1a",
    "$x_y",
    "${x:-{a,b}}",
    "${x:-a b}",
];

const BRACES: &[&str] = &[
    "{p,q}",
    "{1..3}",
    "p{q,r}s",
    "{p,q}{r,s}",
    "{p,{q,r}}",
    "{,a}",
    "{a,}",
    "{,}",
    "{a,b",
    "a,b}",
    "{a..c}",
    "{3..1}",
    "{01..03}",
    "{1..3..2}",
    "{p,'q r'}",
    "{p,\"q,r\"}",
    "{p\\,q}",
    "{p,q}}",
    "{{p,q}",
    "{{p,q}}",
    "{p}{q,r}",
    "{-1..1}",
    "{1..2}x{a,b}",
    "{a,b}*",
    "\\{a,b}",
    "{a,b\\}",
    "{a,$x}",
    "{1,2}..",
    "{1..}",
    "{..2}",
    "{a,b}~",
    "{~,a}",
    "${x}{a,b}",
    "{a,''}",
    "{'',\"\"}",
    "{a,b,c}{1..2}",
    "{*,a}",
    "{\"{a,b}\",c}",
];

const REDIRECTIONS: &[&str] = &[
    ">o1",
    "2>&1",
    ">>o2",
    "&>o3",
    "&>>o3",
    ">|o4",
    "3>&1",
    "2>&-",
    ">&2",
    "1>&2-",
    "<>o5",
    "> o6",
    "2> 'o 7'",
    "{v}>o8",
    "12>o9",
    ">&o10",
    "<&0",
    ">o\\\n11",
    "</dev/null",
];

const BLANKS: &[&str] = &[" ", "  ", "\t", " \\\n ", "\\\n \\\n"];

const ASSIGNED: &[&str] = &["x=", "y=", "x+=", "z[0]=", "_1=", "x\\\n=", "z[1+1]="];

/// How a delimiter is written, and what it is.
const DELIMITERS: &[(&str, &str)] = &[
    ("E", "E"),
    ("'E'", "E"),
    ("\"E\"", "E"),
    ("\\E", "E"),
    ("E'O'F", "EOF"),
    ("'E F'", "E F"),
    ("E1", "E1"),
    ("-", "-"),
];

const BODIES: &[&str] = &[
    "",
    "a\n",
    "$x\n",
    "a b\nc\n",
    "\\$x\n",
    "\\\\\n",
    "a\\\nb\n",
    "'\n",
    "\"\n",
    "`n8`\n",
    "$(n8)\n",
    "$(n8 'a b')\n",
    "\\`n8\\`\n",
    "\tE\n",
    " E\n",
    "EE\n",
    "E \n",
    "# a\n",
    "<<X\n",
    "${x:-$(n8)}\n",
    "$((1+1))\n",
    ")\n",
    "(\n",
    "\\\nE\n",
    "\"$(n8 \"a\")\"\n",
    "$\n",
    "{a,b} *\n",
];

const TAILS: &[&str] =
    &["", " | n7", " && n7 a", "; n7", " n6", " # c", " >o1", " | n7 | n6", " \\\n n6", " 'a\nb'"];

const SEPARATORS: &[&str] = &[
    "; ",
    "\n",
    " ;\n",
    "\n\n",
    " # it's a `comment' $(n9\n",
    " && ",
    " &&\n",
    ";\\\n",
    " | ",
    " |\n",
    " || ",
    "\n#c\n",
    " |& ",
];

struct Maker<'c> {
    choices: std::slice::Iter<'c, u8>,
}

impl Maker<'_> {
    fn number(&mut self, below: usize) -> usize {
        usize::from(self.choices.next().copied().unwrap_or(0)) % below
    }

    fn chance(&mut self, percent: usize) -> bool {
        self.number(100) > 100 - percent
    }

    fn pick<T: Copy>(&mut self, from: &[T]) -> T {
        let at = self.number(from.len());
        from[at]
    }

    /// A command name in one of many spellings. All are `n` and a digit in the end.
    fn name(&mut self) -> String {
        let digit = self.number(10);
        match self.number(15) {
            1 => format!("'n{digit}'"),
            2 => format!("\"n{digit}\""),
            3 => format!("\\n{digit}"),
            4 => format!("$'n{digit}'"),
            5 => format!("n\"\"{digit}"),
            6 => format!("n\\\n{digit}"),
            _ => format!("n{digit}"),
        }
    }

    /// A piece of a word that needs nothing else.
    fn atom(&mut self) -> &'static str {
        match self.number(18) {
            0..=5 => self.pick(PLAIN),
            6..=10 => self.pick(QUOTED),
            11..=12 => self.pick(ANSI),
            13..=15 => self.pick(EXPANDED),
            _ => self.pick(BRACES),
        }
    }

    /// A word, perhaps with commands in it.
    fn word(&mut self, depth: usize) -> String {
        let mut word = self.atom().to_owned();
        while self.chance(40) {
            word.push_str(self.atom());
        }
        if depth == 0 || !self.chance(15) {
            return word;
        }
        let list = self.list(depth - 1);
        let escaped = list.replace('\\', "\\\\").replace('`', "\\`").replace('$', "\\$");
        match self.number(10) {
            0 => format!("{word}$({list})"),
            1 => format!("\"$({list})\"{word}"),
            2 => format!("<({list})"),
            3 => format!("${{x:-$({list})}}"),
            4 => format!("\"${{x:-$({list})}}\""),
            5 => format!("`{escaped}`"),
            6 => format!("\"`{escaped}`\""),
            7 => format!("$( {list}\n)"),
            8 => format!("$( ({list}) )"),
            _ => format!("$(({list}))"),
        }
    }

    fn redirection(&mut self, depth: usize) -> String {
        if self.chance(20) { format!("<<<{}", self.word(depth)) } else { self.pick(REDIRECTIONS).to_owned() }
    }

    fn assignment(&mut self, depth: usize) -> String {
        if self.chance(20) {
            let (first, second) = (self.word(depth), self.word(depth));
            return match self.number(3) {
                0 => format!("z=({first} {second})"),
                1 => format!("z=([1]={first} [0]={second})"),
                _ => format!("z+=({first})"),
            };
        }
        let name = self.pick(ASSIGNED);
        format!("{name}{}", self.word(depth))
    }

    fn simple(&mut self, depth: usize) -> String {
        let mut text = String::new();
        if self.chance(15) {
            text = self.assignment(depth) + " ";
        }
        text.push_str(&self.name());
        while self.chance(60) {
            text.push_str(self.pick(BLANKS));
            text.push_str(&self.word(depth));
        }
        if self.chance(15) {
            text.push(' ');
            text.push_str(&self.redirection(depth));
        }
        text
    }

    /// A command with a here-document: it ends its line.
    fn with_document(&mut self, depth: usize) -> String {
        let simple = self.simple(depth);
        let (dash, tab) = if self.chance(30) { ("-", "\t") } else { ("", "") };
        let (written, plain) = self.pick(DELIMITERS);
        let mut body = String::new();
        while self.chance(60) {
            body.push_str(self.pick(BODIES));
        }
        let tail = self.pick(TAILS);
        format!("{simple} <<{dash}{written}{tail}\n{body}{tab}{plain}\n")
    }

    fn command(&mut self, depth: usize) -> String {
        match self.number(10) {
            0..=5 => {
                let mut text = self.simple(depth);
                while self.chance(25) {
                    text.push_str(" | ");
                    text.push_str(&self.simple(depth));
                }
                text
            }
            6..=7 => self.with_document(depth),
            _ if depth == 0 => self.simple(depth),
            _ => self.compound(depth - 1),
        }
    }

    fn compound(&mut self, depth: usize) -> String {
        let list = self.list(depth);
        match self.number(21) {
            0 => format!("{{ {list}\n}}"),
            1 => format!("({list})"),
            2 => format!("( {list}\n) >o1"),
            3 => format!("! {{ {list}\n}}"),
            4 => format!("time {{ {list}\n}}"),
            5 => format!("if {list}\nthen {}\nfi", self.list(depth)),
            6 => format!("if {list}\nthen {}\nelse {}\nfi", self.list(depth), self.list(depth)),
            // The recorder succeeds: the body never runs.
            7 => format!("until n2\ndo {list}\ndone"),
            8 => format!("for v in {} {}; do {list}\ndone", self.word(depth), self.word(depth)),
            9 => format!("case {} in {}) {list}\n;; *) n5;; esac", self.word(depth), self.word(depth)),
            10 => {
                let word = self.word(depth);
                format!("case {word} in (q) n4;;& {word}|z) {list}\nesac")
            }
            11 => format!("[[ {} == {} ]]; {list}", self.word(depth), self.word(depth)),
            12 => format!("[[ -n {} && ! {} =~ (a|b )c ]]\n{list}", self.word(depth), self.word(depth)),
            13 => format!("(( 1 + $({list}) 2 ))"),
            14 => format!("for ((i = 0; i < 2; i++)); do {list}\ndone"),
            15 => format!("for ((;;)) {{ {list}\nbreak; }}"),
            16 => format!("select v in {} b; do {list}\nbreak; done <<< 1", self.word(depth)),
            17 => format!("while (( 0 )); do {list}\ndone; n3 \"${{z[@]}}\" \"${{#z[@]}}\""),
            18 => format!("case {} in q) n5;& *) {list}\n;; esac", self.word(depth)),
            19 => format!("if (( 1 < 2 )) && [[ 2 -gt 1 ]]; then {list}\nfi <<< {}", self.word(depth)),
            _ => format!("while {list}\ndo n3; break; done"),
        }
    }

    fn list(&mut self, depth: usize) -> String {
        let mut text = self.command(depth);
        while self.chance(40) {
            // After a here-document the line is over already.
            let separator = if text.ends_with('\n') { "" } else { self.pick(SEPARATORS) };
            text.push_str(separator);
            text.push_str(&self.command(depth));
        }
        text
    }
}
