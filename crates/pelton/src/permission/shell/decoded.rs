//! Texts that a line passes through other programs before a shell runs them: `echo cm0gLXJmIC8= | base64 -d | sh`. What programs make of
//! a text that stands in the line is worked out where they are known for one thing; otherwise the line hides what it runs.

use pelton_shell::{Command, RedirectionKind, Script, Stage, has_language};

use super::arg::Arg;
use super::launch::base_name;
use crate::limits::FILLED_WORD_BYTES_MAX;

/// What a command writes.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum Output {
    /// This.
    Text(String),
    /// Something that is made of a text in the line, and that only running it would tell.
    Hidden,
    /// Something that does not stand in the line.
    Elsewhere,
}

/// How many programs a text is followed through.
const PROGRAMS_FOLLOWED_MAX: usize = 16;

/// What the stages of a line before a command write for it.
pub(super) fn output_before(command: &Command, script: &Script) -> Output {
    before(command, script, 0)
}

/// What a command writes, wherever it goes.
pub(super) fn output_of(command: &Command, script: &Script) -> Output {
    output(command, script, 0)
}

/// What a line writes, if it is one pipeline.
pub(super) fn output_of_line(line: &str) -> Output {
    let Ok(script) = pelton_shell::read(line) else { return Output::Elsewhere };
    let mut outside = script.commands.iter().filter(|command| !command.place.in_substitution);
    let Some(last) = outside.next_back() else { return Output::Elsewhere };
    let pipeline = last.place.stage.map(|stage| stage.pipeline);
    let is_stage =
        |it: &Command| it.place.in_substitution || it.place.stage.map(|stage| stage.pipeline) == pipeline;
    match script.commands.iter().all(is_stage) {
        true => output(last, &script, 0),
        false => Output::Elsewhere,
    }
}

fn before(command: &Command, script: &Script, depth: usize) -> Output {
    let place = command.place;
    let stage = place.stage.filter(|stage| stage.number > 0).or(place.fed.filter(|_| place.stage.is_none()));
    let Some((stage, number)) = stage.and_then(|stage| Some((stage, stage.number.checked_sub(1)?))) else {
        return Output::Elsewhere;
    };
    let is_stage = |at: Stage| at.pipeline == stage.pipeline && at.number == number;
    let is_it = |other: &&Command| other.place.stage.is_some_and(is_stage);
    if let Some(before) = script.commands.iter().find(is_it) {
        return output(before, script, depth);
    }
    // A group or a loop: what its commands write comes one behind the other.
    let is_last = |command: &&Command| {
        !script.commands.iter().any(|other| {
            let (this, next) = (command.place.stage, other.place.stage);
            this.zip(next)
                .is_some_and(|(this, next)| this.pipeline == next.pipeline && next.number > this.number)
        })
    };
    let at = script.commands.iter().position(|other| other.place.stage == Some(stage)).unwrap_or_default();
    let count = script.commands[..at].iter().rev().take_while(|other| other.place.nested).count();
    let inside = script.commands[at - count..at].iter().filter(|other| !other.words.is_empty());
    let mut texts = Vec::new();
    for command in inside.filter(is_last) {
        match output(command, script, depth) {
            Output::Text(text) => texts.push(text),
            Output::Hidden => return Output::Hidden,
            Output::Elsewhere => {}
        }
    }
    if texts.is_empty() { Output::Elsewhere } else { Output::Text(texts.join("\n")) }
}

/// What a command writes. Pipelines are followed to their beginning.
fn output(command: &Command, script: &Script, depth: usize) -> Output {
    let words: Vec<Arg> = command.words.iter().map(Arg::of).collect();
    let Some((name, rest)) = words.split_first() else { return Output::Elsewhere };
    let Some(name) = name.literal().map(base_name) else { return Output::Elsewhere };
    if depth > PROGRAMS_FOLLOWED_MAX {
        return Output::Elsewhere;
    }
    match name {
        "echo" => said(rest).map_or(Output::Elsewhere, |text| Output::Text(echoed(&text))),
        "printf" => printed(rest),
        _ => match input(command, rest, script, depth) {
            Output::Text(text) => passed_on(name, rest, &text),
            Output::Elsewhere if says_by_itself(command, name, rest) => Output::Hidden,
            other => other,
        },
    }
}

/// Whether a program in another language stands in the line and reads nothing, so that what it says stands there, too.
fn says_by_itself(command: &Command, name: &str, rest: &[Arg]) -> bool {
    let is_option = |arg: &&Arg| arg.prefix().starts_with('-');
    match name {
        "awk" | "gawk" | "mawk" => rest.iter().all(|arg| arg.prefix().contains("BEGIN")) && !rest.is_empty(),
        _ => {
            has_language(command)
                && rest
                    .iter()
                    .take(1)
                    .any(|arg| is_option(&arg) && arg.literal().is_some_and(|it| it.len() == 2))
                && rest.len() == 2
        }
    }
}

/// What a command reads: a text beside it, what comes before it, or a file that the line writes.
fn input(command: &Command, rest: &[Arg], script: &Script, depth: usize) -> Output {
    let told = command.redirections.iter().rev().find(|redirection| {
        matches!(redirection.kind, RedirectionKind::HereString | RedirectionKind::HereDocument { .. })
    });
    if let Some(told) = told {
        let word = Arg::of(&told.target);
        return word.literal().map_or(Output::Elsewhere, |text| Output::Text(text.to_owned()));
    }
    let pipe = rest.iter().find(|arg| arg.is_pipe()).and_then(|arg| inside_pipe(&arg.written));
    if let Some(inside) = pipe {
        return output_of_line(inside);
    }
    let writes = |other: &&Command, path: &str| {
        other.redirections.iter().any(|it| it.kind.writes() && it.target.literal() == Some(path))
    };
    let read = command.redirections.iter().filter(|it| it.kind.reads()).filter_map(|it| it.target.literal());
    let mut named = read.chain(rest.iter().filter_map(Arg::literal));
    let made = named.find_map(|path| script.commands.iter().find(|other| writes(other, path)));
    match made {
        Some(made) => output(made, script, depth + 1),
        None => before(command, script, depth + 1),
    }
}

/// What stands in `<(…)`.
pub(super) fn inside_pipe(written: &str) -> Option<&str> {
    written.strip_prefix("<(").and_then(|text| text.strip_suffix(')'))
}

fn said(words: &[Arg]) -> Option<String> {
    let words: Option<Vec<String>> = words.iter().map(Arg::seen_from_here).collect();
    words.map(|words| words.join(" "))
}

/// What `echo` says, with its options taken off.
fn echoed(text: &str) -> String {
    let (escapes, text) = match text.split_once(' ') {
        Some((options, rest))
            if options.strip_prefix('-').is_some_and(|it| it.chars().all(|c| "neE".contains(c))) =>
        {
            (options.contains('e'), rest)
        }
        _ => (false, text),
    };
    if escapes { unescaped(text, Octal::ThreeBehindZero) } else { text.to_owned() }
}

/// What `printf` makes of its format, with every value in its turn.
fn printed(words: &[Arg]) -> Output {
    let words: Option<Vec<String>> =
        words.iter().filter(|word| word.literal() != Some("--")).map(Arg::seen_from_here).collect();
    let Some((format, values)) = words.as_deref().and_then(<[String]>::split_first) else {
        return Output::Elsewhere;
    };
    let mut values = values.iter();
    let mut text = String::new();
    loop {
        let mut taken = 0;
        let mut pieces = format.split('%');
        text.push_str(&unescaped(pieces.next().unwrap_or_default(), Octal::Three));
        while let Some(piece) = pieces.next() {
            let Some(kind) = piece.chars().next() else {
                text.push('%');
                text.push_str(&unescaped(pieces.next().unwrap_or_default(), Octal::Three));
                continue;
            };
            let value = values.next().map_or("", String::as_str);
            taken += 1;
            match kind {
                's' => text.push_str(value),
                'b' => text.push_str(&unescaped(value, Octal::ThreeBehindZero)),
                'c' => text.extend(value.chars().next()),
                'd' | 'i' if value.bytes().all(|byte| byte.is_ascii_digit()) => text.push_str(value),
                _ => return Output::Hidden,
            }
            text.push_str(&unescaped(&piece[kind.len_utf8()..], Octal::Three));
        }
        if taken == 0 || values.len() == 0 || text.len() > FILLED_WORD_BYTES_MAX {
            return Output::Text(text);
        }
    }
}

/// What a program makes of a text.
fn passed_on(name: &str, rest: &[Arg], text: &str) -> Output {
    let words: Option<Vec<&str>> = rest.iter().filter(|arg| !arg.is_pipe()).map(Arg::literal).collect();
    let Some(words) = words else { return Output::Hidden };
    let flag = |letter: char| {
        words.iter().any(|word| word.starts_with('-') && !word.starts_with("--") && word.contains(letter))
    };
    let has = |names: &[&str]| words.iter().any(|word| names.contains(word));
    let bytes = match (name, words.as_slice()) {
        // They keep what is in the lines, or leave some out.
        ("cat" | "tee" | "sort" | "uniq" | "head" | "tail" | "grep" | "nl", _) => {
            return Output::Text(text.to_owned());
        }
        ("tac", _) => Some(text.lines().rev().collect::<Vec<_>>().join("\n").into_bytes()),
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
        ("xxd", _) if flag('r') && flag('p') => hex(text),
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
    for byte in text.bytes().filter(|byte| !byte.is_ascii_whitespace() && *byte != b'=') {
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

/// The characters that stand for themselves or in ranges; `None` for sets with names.
fn set_of(written: &str) -> Option<Vec<char>> {
    let text: Vec<char> = unescaped(written, Octal::Three).chars().collect();
    (!written.contains("[:") && !written.contains("[=") && !written.contains('*')).then_some(())?;
    let mut set = Vec::new();
    let mut at = 0;
    while let Some(&first) = text.get(at) {
        match (text.get(at + 1), text.get(at + 2)) {
            (Some('-'), Some(&last)) if last >= first => {
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

/// How many digits an octal number has that begins with a zero: behind that `echo` and `%b` take three more.
#[derive(Clone, Copy)]
enum Octal {
    Three,
    ThreeBehindZero,
}

/// A text with `\n`, `\x72` and `\162` as the characters that they stand for.
fn unescaped(text: &str, octal: Octal) -> String {
    let mut bytes: Vec<u8> = Vec::new();
    let mut rest = text;
    while let Some(at) = rest.find('\\') {
        bytes.extend_from_slice(&rest.as_bytes()[..at]);
        let behind = &rest[at + 1..];
        let digits = |from: usize, radix: u32, most: usize| {
            behind[from..].chars().take(most).take_while(|c| c.is_digit(radix)).count()
        };
        let (byte, length) = match behind.chars().next() {
            Some('n') => (Some(b'\n'), 1),
            Some('t') => (Some(b'\t'), 1),
            Some('\\') => (Some(b'\\'), 1),
            Some('x') => {
                let count = digits(1, 16, 2);
                (u8::from_str_radix(&behind[1..=count], 16).ok(), 1 + count)
            }
            Some('0'..='7') => {
                let most = match octal {
                    Octal::ThreeBehindZero if behind.starts_with('0') => 4,
                    _ => 3,
                };
                let count = digits(0, 8, most);
                (u16::from_str_radix(&behind[..count], 8).ok().map(|code| (code & 0xff) as u8), count)
            }
            _ => (None, 0),
        };
        match byte {
            Some(byte) => {
                bytes.push(byte);
                rest = &behind[length..];
            }
            None => {
                bytes.push(b'\\');
                rest = behind;
            }
        }
    }
    bytes.extend_from_slice(rest.as_bytes());
    String::from_utf8_lossy(&bytes).into_owned()
}

#[cfg(test)]
mod tests {
    use super::{Output, output_of_line};

    #[test]
    fn what_programs_make_of_a_text_is_worked_out_as_they_do() {
        let lines = [
            ("echo cm0gLXJmIC8= | base64 -d", "rm -rf /"),
            ("base64 --decode <<< cm0gLXJmIC8=", "rm -rf /"),
            ("echo cm0gLXJmIC8= | openssl base64 -d", "rm -rf /"),
            ("echo cm0gLXJmIC8= | openssl enc -d -base64 -A", "rm -rf /"),
            ("echo 726d202d7266202f | xxd -r -p", "rm -rf /"),
            ("echo '/ fr- mr' | rev", "rm -rf /"),
            ("echo 'sn -sg /' | tr n-zg m-yf", "rm -rf /"),
            ("echo 'rXm -rXf /' | tr -d X", "rm -rf /"),
            ("printf '\\x72\\155 -rf /'", "rm -rf /"),
            ("printf '%s %s' rm '-rf /'", "rm -rf /"),
            ("printf '%b' '\\162m -rf /'", "rm -rf /"),
            ("echo -e '\\x72m -rf /'", "rm -rf /"),
            ("echo L2ZyLSBtcg== | base64 -d | cat | rev", "rm -rf/"),
        ];
        for (line, text) in lines {
            assert_eq!(output_of_line(line), Output::Text(text.to_owned()), "{line}");
        }
    }

    #[test]
    fn what_only_running_it_would_tell_is_hidden_or_elsewhere() {
        let hidden = ["echo H4sI | gunzip", "echo x | openssl enc -d -aes256 -k y", "echo x | sed s/x/y/"];
        for line in hidden {
            assert_eq!(output_of_line(line), Output::Hidden, "{line}");
        }
        for line in ["curl http://x", "cat file | base64 -d", "ls | sed s/x/y/", "gunzip -c x.gz"] {
            assert_eq!(output_of_line(line), Output::Elsewhere, "{line}");
        }
    }

    /// Whatever stands in a text, what bash and the programs say of it is what is worked out.
    #[test]
    fn texts_come_out_as_the_programs_on_this_machine_say() {
        let lines = [
            "printf '\\x41\\102\\0103\\n\\\\z'",
            "printf '%s-' a b c",
            "printf '%s:%d;' x 1 y 2",
            "printf 'a%%b\\tc'",
            "echo abcxyz | tr a-c x-z",
            "echo hello | tr lo 01",
            "echo hello | tr abc-lo X",
            "printf 'one\\ntwo\\n' | tac",
            "printf 'one\\ntwo\\n' | rev",
            "echo aGVsbG8gd29ybGQ | base64 -d 2>/dev/null",
        ];
        for line in lines {
            let ran = std::process::Command::new("bash").args(["-c", line]).output().unwrap();
            let said = String::from_utf8_lossy(&ran.stdout).trim_end_matches('\n').to_owned();
            let Output::Text(text) = output_of_line(line) else { panic!("{line}") };
            assert_eq!(text.trim_end_matches('\n'), said, "{line}");
        }
    }
}
