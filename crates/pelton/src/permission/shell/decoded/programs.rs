//! What programs make of a text that they are handed, where they are known for one thing.

use super::super::arg::Arg;
use super::Output;
use crate::limits::FILLED_WORD_BYTES_MAX;

/// What `echo` says, with its options taken off.
pub(super) fn echoed(words: &[String]) -> Output {
    let is_option = |word: &&String| {
        let letters = word.strip_prefix('-').unwrap_or_default();
        !letters.is_empty() && letters.chars().all(|c| "neE".contains(c))
    };
    let (options, said) = words.split_at(words.iter().take_while(is_option).count());
    // Where a variable holds several words, the first of them may be options, too.
    if said.first().is_some_and(|word| word.starts_with('-') && word.contains(char::is_whitespace)) {
        return Output::Hidden;
    }
    let letters = || options.iter().flat_map(|word| word.chars());
    let end = if letters().any(|letter| letter == 'n') { "" } else { "\n" };
    let text = said.join(" ");
    match letters().rfind(|letter| matches!(letter, 'e' | 'E')) {
        Some('e') => match unescaped(&text, Escapes::OfEcho) {
            Some(Unescaped { text, is_over: true }) => Output::Text(text),
            Some(Unescaped { text, is_over: false }) => Output::Text(text + end),
            None => Output::Hidden,
        },
        _ => Output::Text(text + end),
    }
}

/// What `printf` makes of its format, with every value in its turn.
pub(super) fn printed(words: &[String]) -> Output {
    match words.split_first() {
        Some((format, values)) => formatted(format, values).map_or(Output::Hidden, Output::Text),
        None => Output::Elsewhere,
    }
}

/// The same; `None` if only running it would tell.
fn formatted(format: &str, values: &[String]) -> Option<String> {
    let mut values = values.iter();
    let mut text = String::new();
    // Gives whether all ends there.
    let add = |text: &mut String, written: &str, escapes: Escapes| {
        let said = unescaped(written, escapes)?;
        text.push_str(&said.text);
        Some(said.is_over)
    };
    loop {
        let mut taken = 0;
        let mut pieces = format.split('%');
        if add(&mut text, pieces.next().unwrap_or_default(), Escapes::InFormat)? {
            return Some(text);
        }
        while let Some(piece) = pieces.next() {
            let Some(kind) = piece.chars().next() else {
                // One at the end is none.
                let behind = pieces.next()?;
                text.push('%');
                if add(&mut text, behind, Escapes::InFormat)? {
                    return Some(text);
                }
                continue;
            };
            let value = values.next().map_or("", String::as_str);
            taken += 1;
            match kind {
                's' => text.push_str(value),
                'b' if add(&mut text, value, Escapes::InValue)? => return Some(text),
                'b' => {}
                'c' => text.extend(value.chars().next()),
                'd' | 'i' if is_plain_number(value) => text.push_str(value),
                _ => return None,
            }
            if add(&mut text, &piece[kind.len_utf8()..], Escapes::InFormat)? {
                return Some(text);
            }
        }
        if taken == 0 || values.len() == 0 || text.len() > FILLED_WORD_BYTES_MAX {
            return Some(text);
        }
    }
}

/// Whether a number is printed as it is written: one that begins with a zero is another.
fn is_plain_number(text: &str) -> bool {
    !text.is_empty()
        && text.bytes().all(|byte| byte.is_ascii_digit())
        && (text == "0" || !text.starts_with('0'))
}

/// Whether what a program makes of some lines are the same of what it makes of all of them.
pub(super) fn goes_by_lines(name: &str, rest: &[Arg]) -> bool {
    let ends_lines = |arg: &Arg| {
        let text = arg.prefix();
        text.contains(['\n', '[']) || ["\\n", "\\0", "\\1"].iter().any(|sign| text.contains(sign))
    };
    match name {
        "tr" => !rest.iter().any(ends_lines),
        name => matches!(
            name,
            "cat" | "tee" | "sort" | "uniq" | "head" | "tail" | "grep" | "egrep" | "fgrep" | "rev" | "tac"
        ),
    }
}

/// Whether a program leaves out lines or puts them in another order, and changes none.
fn chooses_lines(name: &str, words: &[&str]) -> bool {
    let letters = match name {
        "head" | "tail" => "nqv0123456789",
        "grep" | "egrep" | "fgrep" => "viEFGPwxqehsam0123456789",
        "sort" => "urnfbdVghMsk0123456789,.t",
        "uniq" => "uid",
        _ => return false,
    };
    const LONG: &[&str] = &[
        "--invert-match",
        "--ignore-case",
        "--fixed-strings",
        "--extended-regexp",
        "--line-regexp",
        "--word-regexp",
        "--color=never",
        "--reverse",
        "--unique",
    ];
    words.iter().filter(|word| word.starts_with('-')).all(|word| match word.strip_prefix("--") {
        Some(_) => LONG.contains(word) || word.starts_with("--lines="),
        None => word[1..].chars().all(|letter| letters.contains(letter)),
    })
}

/// Some of the lines of a text. Of one that has only one, that is all it may be.
fn some_lines(text: &str) -> Output {
    match text.trim_end_matches('\n').contains('\n') {
        true => Output::Lines(text.to_owned()),
        false => Output::Text(text.to_owned()),
    }
}

/// What a program makes of a text.
pub(super) fn passed_on(name: &str, rest: &[Arg], text: &str) -> Output {
    let words: Option<Vec<&str>> = rest.iter().filter(|arg| !arg.is_pipe()).map(Arg::literal).collect();
    let Some(words) = words else { return Output::Hidden };
    let flag = |letter: char| {
        words.iter().any(|word| word.starts_with('-') && !word.starts_with("--") && word.contains(letter))
    };
    let has = |names: &[&str]| words.iter().any(|word| names.contains(word));
    let are = |options: &[&str]| words.iter().all(|word| options.contains(word) || !word.starts_with('-'));
    let bytes = match (name, words.as_slice()) {
        ("cat", _) if are(&["-", "-u", "-s"]) => return Output::Text(text.to_owned()),
        ("tee", _) => return Output::Text(text.to_owned()),
        (_, words) if chooses_lines(name, words) => return some_lines(text),
        // The last line goes before the one before it, also where nothing ends it.
        ("tac", _) if are(&[]) => Some(text.split_inclusive('\n').rev().collect::<String>().into_bytes()),
        ("rev", []) => {
            let lines = text.lines().map(|line| line.chars().rev().collect::<String>());
            Some(lines.collect::<Vec<_>>().join("\n").into_bytes())
        }
        ("base64", _) if flag('d') || flag('D') || has(&["--decode"]) => base64(text),
        ("openssl", ["base64", ..] | ["enc", ..]) if has(&["-d"]) && (has(&["-base64", "-a", "base64"])) => {
            let is_plain =
                words.iter().all(|word| matches!(*word, "base64" | "enc" | "-d" | "-a" | "-A" | "-base64"));
            is_plain.then(|| base64(text)).flatten()
        }
        ("xxd", _) if flag('r') && flag('p') && are(&["-r", "-p", "-rp", "-pr", "-ps"]) => hex(text),
        ("tr", [from, to]) if !from.starts_with('-') => replaced(text, from, to),
        ("tr", ["-d", from]) => {
            set_of(from).map(|set| text.chars().filter(|c| !set.contains(c)).collect::<String>().into_bytes())
        }
        _ => None,
    };
    let told = bytes
        .filter(|bytes| bytes.len() <= FILLED_WORD_BYTES_MAX)
        .map(|bytes| String::from_utf8_lossy(&bytes).into_owned());
    told.map_or(Output::Hidden, Output::Text)
}

fn base64(text: &str) -> Option<Vec<u8>> {
    const LETTERS: &[u8; 64] = b"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
    let mut bytes = Vec::new();
    let (mut bits, mut count) = (0u32, 0u32);
    for byte in text.bytes().filter(|byte| !byte.is_ascii_whitespace()) {
        // Behind the end of one text another may begin.
        if byte == b'=' {
            (bits, count) = (0, 0);
            continue;
        }
        let value = LETTERS.iter().position(|letter| *letter == byte)?;
        bits = (bits << 6) | u32::try_from(value).ok()?;
        count += 6;
        if count >= 8 {
            count -= 8;
            bytes.push(u8::try_from((bits >> count) & 0xff).ok()?);
        }
    }
    Some(bytes)
}

fn hex(text: &str) -> Option<Vec<u8>> {
    let digits: Vec<char> = text.chars().filter(|c| !c.is_whitespace()).collect();
    let pairs = digits.chunks_exact(2).map(|pair| {
        let pair: String = pair.iter().collect();
        pair.bytes().all(|byte| byte.is_ascii_hexdigit()).then_some(())?;
        u8::from_str_radix(&pair, 16).ok()
    });
    pairs.collect()
}

/// What `tr` makes of a text.
fn replaced(text: &str, from: &str, to: &str) -> Option<Vec<u8>> {
    let (from, to) = (set_of(from)?, set_of(to)?);
    let last = *to.last()?;
    let other = |c: char| match from.iter().rposition(|known| *known == c) {
        Some(at) => to.get(at).copied().unwrap_or(last),
        None => c,
    };
    Some(text.chars().map(other).collect::<String>().into_bytes())
}

/// The characters that stand for themselves or in ranges; `None` for sets with names, and for letters of which `tr` sees the bytes.
fn set_of(written: &str) -> Option<Vec<char>> {
    let is_named = written.contains("[:") || written.contains("[=") || written.contains('*');
    (written.is_ascii() && !is_named).then_some(())?;
    // What stands behind a backslash is no sign of a range.
    let mut text: Vec<(char, bool)> = Vec::new();
    let mut rest = written.chars().peekable();
    while let Some(c) = rest.next() {
        if c != '\\' {
            text.push((c, false));
            continue;
        }
        let c = match rest.next()? {
            'n' => '\n',
            't' => '\t',
            'r' => '\r',
            'a' | 'b' | 'f' | 'v' => return None,
            digit @ '0'..='7' => {
                let mut code = digit.to_digit(8)?;
                for _ in 0..2 {
                    let Some(more) = rest.peek().and_then(|c| c.to_digit(8)) else { break };
                    code = code * 8 + more;
                    rest.next();
                }
                char::from_u32(code).filter(char::is_ascii)?
            }
            c => c,
        };
        text.push((c, true));
    }
    let mut set = Vec::new();
    let mut at = 0;
    while let Some(&(first, _)) = text.get(at) {
        match (text.get(at + 1), text.get(at + 2)) {
            (Some(('-', false)), Some(&(last, _))) => {
                (first <= last).then_some(())?;
                set.extend(first..=last);
                at += 3;
            }
            _ => {
                set.push(first);
                at += 1;
            }
        }
    }
    Some(set)
}

/// Where signs behind backslashes stand: some mean something only in a format, others only in what `echo -e` and `%b` are given.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Escapes {
    InFormat,
    InValue,
    OfEcho,
}

/// A text with the characters that the signs in it stand for.
struct Unescaped {
    text: String,
    /// With `\c` all ends, whatever stands behind it.
    is_over: bool,
}

/// A text with `\n`, `\x72` and `\162` as the characters that they stand for; `None` where shells make different things of it.
fn unescaped(text: &str, escapes: Escapes) -> Option<Unescaped> {
    let mut said = String::new();
    let mut rest = text;
    while let Some((before, behind)) = rest.split_once('\\') {
        said.push_str(before);
        let digits = |from: usize, radix: u32, most: usize| {
            behind[from..].chars().take(most).take_while(|c| c.is_digit(radix)).count()
        };
        let sign = behind.chars().next()?;
        let (code, length) = match sign {
            'n' => (u32::from(b'\n'), 1),
            't' => (u32::from(b'\t'), 1),
            'r' => (u32::from(b'\r'), 1),
            '\\' => (u32::from(b'\\'), 1),
            'a' => (7, 1),
            'b' => (8, 1),
            'e' | 'E' => (27, 1),
            'f' => (12, 1),
            'v' => (11, 1),
            '"' | '\'' | '?' if escapes == Escapes::InFormat => (u32::from(sign), 1),
            'c' if escapes != Escapes::InFormat => return Some(Unescaped { text: said, is_over: true }),
            'x' | 'u' | 'U' => {
                let most = if sign == 'x' {
                    2
                } else if sign == 'u' {
                    4
                } else {
                    8
                };
                let count = digits(1, 16, most);
                (u32::from_str_radix(&behind[1..=count], 16).ok()?, 1 + count)
            }
            '0' if escapes != Escapes::InFormat => {
                let count = digits(0, 8, 4);
                (u32::from_str_radix(&behind[..count], 8).ok()?, count)
            }
            '0'..='7' if escapes != Escapes::OfEcho => {
                let count = digits(0, 8, 3);
                (u32::from_str_radix(&behind[..count], 8).ok()?, count)
            }
            _ => return None,
        };
        // Beyond these it depends on the language.
        said.push(char::from_u32(code).filter(char::is_ascii)?);
        rest = &behind[length..];
    }
    said.push_str(rest);
    Some(Unescaped { text: said, is_over: false })
}
