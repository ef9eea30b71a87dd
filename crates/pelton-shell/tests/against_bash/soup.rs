//! Commands that are mostly wrong: tokens in any order, and right ones with a piece cut out or put in.

const TOKENS: &[&str] = &[
    "n1",
    "n2",
    "n3",
    "a",
    " ",
    " ",
    " ",
    " ",
    "\t",
    "\n",
    "\n",
    "\\",
    "\\\n",
    "'",
    "'",
    "\"",
    "\"",
    "`",
    "$",
    "$(",
    "${",
    "${x",
    "$((",
    "$[",
    "$'",
    "$\"",
    "(",
    ")",
    "{",
    "}",
    "((",
    "))",
    "[[ ",
    " ]]",
    "[",
    "]",
    ";",
    ";;",
    "&",
    "&&",
    "|",
    "||",
    "|&",
    "<",
    ">",
    "<<",
    "<<E",
    "<<-E",
    "<<'E'",
    "<<<",
    "\nE\n",
    "E",
    "<(",
    ">(",
    ">&",
    "<&",
    "&>",
    ">|",
    "<>",
    "2",
    "-",
    "#",
    " #",
    "!",
    "! ",
    "=",
    "x=",
    "x+=",
    "x[",
    "]=",
    "x=(",
    "*",
    "?",
    "~",
    ",",
    "..",
    "{a,b}",
    "{ ",
    "; }",
    "if ",
    "; then ",
    "; fi",
    " else ",
    " elif ",
    "while ",
    "; do ",
    "; done",
    "for v in ",
    "for ((",
    "case ",
    " in ",
    "esac",
    "time ",
    ":-",
    "@P}",
    "!x}",
    "\"$(",
    ")\"",
    "'a'",
    "\"b\"",
    "$x",
    "1+1",
    "%",
    "/",
    "^",
    "+",
    "@",
    "\u{a0}",
    "é",
    "\r",
    "eval ",
    "EOF",
    "\\'",
    "\\\"",
    "\\`",
    "\\$",
    "coproc ",
    "select v in ",
    "until ",
    "-p ",
    "-- ",
    "=~ ",
    "== ",
];

/// Tokens in any order.
pub fn tokens(choices: &[u8]) -> String {
    choices.iter().take(14).map(|choice| TOKENS[usize::from(*choice) % TOKENS.len()]).collect()
}

/// Places where tokens may stand; `@` is where.
const FRAMES: &[&str] = &[
    "n1 @ n2",
    "n1 \"@\" n2",
    "n1 ${x:-@} n2",
    "n1 \"${x:-@}\" n2",
    "n1 <<E\n@\nE\nn2",
    "n1 <<-E\n\t@\n\tE\nn2",
    "n1 <<'E'\n@\nE\nn2",
    "n1 $(@) n2",
    "n1 \"$(@)\" n2",
    "n1 `@` n2",
    "n1 \"`@`\" n2",
    "n1 $'@' n2",
    "x=@ n1",
    "case @ in a) n1;; esac",
    "case a in @) n1;; esac",
    "[[ @ ]]; n1",
    "[[ a == @ ]]; n1",
    "[[ a =~ @ ]]; n1",
    "n1 >@ n2",
    "n1 <<<@ n2",
    "for i in @; do n1; done",
    "x=(@); n1",
    "x[@]=1 n1",
    "n1 $((@)) n2",
    "n1 ${x@} n2",
    "n1 <<@\nE\nn2",
    "n1 <(@) n2",
    "n1 {@,a} n2",
    "eval '@'",
    "{ @; }; n1",
    "(@); n1",
    "if @; then n1; fi",
    "n1 @ # c\nn2",
    "n1 $(n2 <<E\n@\nE\n)",
    "@ n1",
];

/// Tokens in any order, at a place that is right.
pub fn framed(choices: &[u8]) -> String {
    let [frame, choices @ ..] = choices else { return String::new() };
    let tokens: String =
        choices.iter().take(7).map(|choice| TOKENS[usize::from(*choice) % TOKENS.len()]).collect();
    FRAMES[usize::from(*frame) % FRAMES.len()].replacen('@', &tokens, 1)
}

/// A right command with a piece cut out or a token put in.
pub fn damaged(choices: &[u8]) -> String {
    let [place, length, token, choices @ ..] = choices else { return String::new() };
    let mut letters: Vec<char> = crate::grammar::script(choices).chars().collect();
    let from = usize::from(*place) % letters.len();
    if *length < 128 {
        let to = (from + 1 + usize::from(*length % 5)).min(letters.len());
        letters.drain(from..to);
    } else {
        letters.splice(from..from, TOKENS[usize::from(*token) % TOKENS.len()].chars());
    }
    letters.into_iter().collect()
}

/// Whether it certainly ends, although the recorder always succeeds.
pub fn is_finite(text: &str) -> bool {
    !text.contains("while") && !text.contains("until") && !text.contains("for ((") && !text.contains("((")
}
