//! Texts that a line passes through other programs before a shell runs them: `echo cm0gLXJmIC8= | base64 -d | sh`. What programs make of
//! a text that stands in the line is worked out where they are known for one thing; otherwise the line hides what it runs.

use pelton_shell::{Command, Part, RedirectionKind, Script, Stage, has_language};

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

/// How many commands are looked at to know what one of them gets. Groups hand a text on several times, and one group may stand behind
/// the other.
const COMMANDS_FOLLOWED_MAX: usize = 64;

/// Goes from command to command, so far and no further.
struct Following<'s> {
    left: usize,
    /// Where variables get their values.
    around: Option<&'s Script>,
}

impl<'s> Following<'s> {
    fn among(script: &'s Script) -> Self {
        Self { left: COMMANDS_FOLLOWED_MAX, around: Some(script) }
    }
}

/// What the stages of a line before a command write for it.
pub(super) fn output_before(command: &Command, script: &Script) -> Output {
    Following::among(script).before(command, script)
}

/// What a command reads: a text beside it, or what others write for it.
pub(super) fn input_of(command: &Command, script: &Script) -> Output {
    let words: Vec<Arg> = command.words.iter().skip(1).map(Arg::of).collect();
    Following::among(script).input(command, &words, script)
}

/// What a command writes, wherever it goes.
pub(super) fn output_of(command: &Command, script: &Script) -> Output {
    Following::among(script).output(command, script)
}

/// What words become, with a blank between them.
pub(super) fn words_become(words: &[Arg], script: &Script) -> Output {
    let said = Following::among(script).said(words);
    said.map_or_else(|unsaid| unsaid, |words| Output::Text(words.join(" ")))
}

/// What a line writes, if it is one pipeline.
pub(super) fn output_of_line(line: &str) -> Output {
    Following { left: COMMANDS_FOLLOWED_MAX, around: None }.output_of_line(line)
}

/// The same of a line that stands in another, which sets its variables.
pub(super) fn output_inside(line: &str, script: &Script) -> Output {
    Following::among(script).output_of_line(line)
}

impl Following<'_> {
    fn output_of_line(&mut self, line: &str) -> Output {
        let Ok(script) = pelton_shell::read(line) else { return Output::Elsewhere };
        let mut outside = script.commands.iter().filter(|command| !command.place.in_substitution);
        let Some(last) = outside.next_back() else { return Output::Elsewhere };
        let pipeline = last.place.stage.map(|stage| stage.pipeline);
        let is_stage =
            |it: &Command| it.place.in_substitution || it.place.stage.map(|stage| stage.pipeline) == pipeline;
        match script.commands.iter().all(is_stage) {
            true => self.output(last, &script),
            false => Output::Elsewhere,
        }
    }

    fn before(&mut self, command: &Command, script: &Script) -> Output {
        let place = command.place;
        let stage = place.stage.filter(|stage| stage.number > 0).or(place.fed);
        let Some((stage, number)) = stage.and_then(|stage| Some((stage, stage.number.checked_sub(1)?)))
        else {
            return Output::Elsewhere;
        };
        let is_stage = |at: Stage| at.pipeline == stage.pipeline && at.number == number;
        let is_it = |other: &&Command| other.place.stage.is_some_and(is_stage);
        if let Some(before) = script.commands.iter().find(is_it) {
            return self.output(before, script);
        }
        // A group or a loop: what its commands write comes one behind the other.
        let is_last = |command: &&Command| {
            !script.commands.iter().any(|other| {
                let (this, next) = (command.place.stage, other.place.stage);
                this.zip(next)
                    .is_some_and(|(this, next)| this.pipeline == next.pipeline && next.number > this.number)
            })
        };
        let at =
            script.commands.iter().position(|other| other.place.stage == Some(stage)).unwrap_or_default();
        let count = script.commands[..at].iter().rev().take_while(|other| other.place.nested).count();
        let inside = script.commands[at - count..at].iter().filter(|other| !other.words.is_empty());
        let mut texts = Vec::new();
        for command in inside.filter(is_last) {
            match self.output(command, script) {
                Output::Text(text) => texts.push(text),
                Output::Hidden => return Output::Hidden,
                Output::Elsewhere => {}
            }
        }
        if texts.is_empty() { Output::Elsewhere } else { Output::Text(texts.join("\n")) }
    }

    /// What a command writes. Pipelines are followed to their beginning.
    fn output(&mut self, command: &Command, script: &Script) -> Output {
        let words: Vec<Arg> = command.words.iter().map(Arg::of).collect();
        let Some((name, rest)) = words.split_first() else { return Output::Elsewhere };
        let Some(name) = name.literal().map(base_name) else { return Output::Elsewhere };
        // Who makes it so long hides what comes out.
        let Some(left) = self.left.checked_sub(1) else { return Output::Hidden };
        self.left = left;
        match name {
            "echo" => match self.said(rest) {
                Ok(words) => Output::Text(echoed(&words.join(" "))),
                Err(unsaid) => unsaid,
            },
            "printf" => {
                let words: Vec<Arg> =
                    rest.iter().filter(|word| word.literal() != Some("--")).cloned().collect();
                self.said(&words).map_or_else(|unsaid| unsaid, |words| printed(&words))
            }
            _ => match self.input(command, rest, script) {
                Output::Text(text) => passed_on(name, rest, &text),
                Output::Elsewhere if says_by_itself(command, name, rest) => Output::Hidden,
                other => other,
            },
        }
    }

    /// What a command reads: a text beside it, what comes before it, or a file that the line writes.
    fn input(&mut self, command: &Command, rest: &[Arg], script: &Script) -> Output {
        let told = command.redirections.iter().rev().find(|redirection| {
            matches!(redirection.kind, RedirectionKind::HereString | RedirectionKind::HereDocument { .. })
        });
        if let Some(told) = told {
            let said = self.said(&[Arg::of(&told.target)]);
            return said.map_or_else(|unsaid| unsaid, |text| Output::Text(text.concat()));
        }
        let targets: Vec<Arg> =
            command.redirections.iter().filter(|it| it.kind.reads()).map(|it| Arg::of(&it.target)).collect();
        let mut pipes = rest.iter().chain(&targets).filter(|arg| arg.is_pipe());
        let pipe = pipes.next().and_then(|arg| inside_pipe(&arg.written));
        if let Some(inside) = pipe {
            return self.output_of_line(inside);
        }
        let writes = |other: &&Command, path: &str| {
            other.redirections.iter().any(|it| it.kind.writes() && it.target.literal() == Some(path))
        };
        let read =
            command.redirections.iter().filter(|it| it.kind.reads()).filter_map(|it| it.target.literal());
        let mut named = read.chain(rest.iter().filter_map(Arg::literal));
        let made = named.find_map(|path| script.commands.iter().find(|other| writes(other, path)));
        match made {
            Some(made) => self.output(made, script),
            None => self.before(command, script),
        }
    }

    /// What words say where the line itself gives their variables one value; otherwise what becomes of the whole.
    fn said(&mut self, words: &[Arg]) -> Result<Vec<String>, Output> {
        words.iter().map(|word| word.seen_from_here().map_or_else(|| self.filled(word), Ok)).collect()
    }

    fn filled(&mut self, word: &Arg) -> Result<String, Output> {
        let mut text = String::new();
        for part in word.parts() {
            match part {
                Part::Literal(literal) => text.push_str(literal),
                Part::Parameter { name, .. } => text.push_str(&self.value(name)?),
                Part::Substitution { inside, .. } => match self.output_of_line(inside) {
                    Output::Text(said) => text.push_str(said.trim_end_matches('\n')),
                    other => return Err(other),
                },
                _ => return Err(Output::Elsewhere),
            }
        }
        Ok(text)
    }

    /// The value that the line gives a variable. Which of several it is, only running it would tell.
    fn value(&mut self, name: &str) -> Result<String, Output> {
        // One may be made of the other, and that of the first.
        self.left = self.left.checked_sub(1).ok_or(Output::Hidden)?;
        let commands = self.around.iter().flat_map(|script| &script.commands);
        let mut given = commands.flat_map(|command| &command.assignments).filter(|it| it.name == name);
        let first = given.next().ok_or(Output::Elsewhere)?;
        match given.next() {
            None => self.filled(&Arg::of(&first.value)),
            Some(_) => Err(Output::Hidden),
        }
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

/// What stands in `<(…)`.
pub(super) fn inside_pipe(written: &str) -> Option<&str> {
    written.strip_prefix("<(").and_then(|text| text.strip_suffix(')'))
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

/// What `printf` says, if all of its words are certain.
pub(super) fn printf_says(words: &[Arg]) -> Option<String> {
    let words: Option<Vec<String>> = words.iter().map(|word| word.literal().map(str::to_owned)).collect();
    match printed(&words?) {
        Output::Text(text) => Some(text),
        Output::Hidden | Output::Elsewhere => None,
    }
}

/// What `printf` makes of its format, with every value in its turn.
fn printed(words: &[String]) -> Output {
    let Some((format, values)) = words.split_first() else { return Output::Elsewhere };
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

/// The characters that stand for themselves or in ranges; `None` for sets with names, and for letters of which `tr` sees the bytes.
fn set_of(written: &str) -> Option<Vec<char>> {
    let text = unescaped(written, Octal::Three);
    let is_named = written.contains("[:") || written.contains("[=") || written.contains('*');
    (text.is_ascii() && !is_named).then_some(())?;
    let text: Vec<char> = text.chars().collect();
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
            Some(sign @ ('u' | 'U')) => {
                let count = digits(1, 16, if sign == 'u' { 4 } else { 8 });
                let letter = u32::from_str_radix(&behind[1..=count], 16).ok().and_then(char::from_u32);
                (letter.filter(char::is_ascii).map(|letter| letter as u8), 1 + count)
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
    use super::{Output, output_before, output_of_line};

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

    fn before_last(line: &str) -> Output {
        let script = pelton_shell::read(line).unwrap();
        output_before(script.commands.last().unwrap(), &script)
    }

    /// Each group hands on three times what it gets: whoever followed all of it would be at it for years.
    #[test]
    fn what_groups_double_is_followed_only_so_far() {
        let groups = "{ cat; cat; cat; } | ".repeat(200);
        assert_eq!(before_last(&format!("echo x | {groups}sh")), Output::Hidden);
        assert_eq!(before_last("echo x | { cat; cat; } | rev | sh"), Output::Text("x\nx".to_owned()));
    }

    /// Variables are what the line gives them; one that is made of itself ends somewhere.
    #[test]
    fn what_a_line_gives_its_variables_is_what_they_say() {
        let text = |text: &str| Output::Text(text.to_owned());
        assert_eq!(before_last("a=cm0g; b=LXJmIC8=; echo $a$b | base64 -d | sh"), text("rm -rf /"));
        assert_eq!(before_last("x=$(echo rm); echo \"$x y\" | sh"), text("rm y"));
        assert_eq!(before_last("x=1; x=2; echo $x | sh"), Output::Hidden);
        assert_eq!(before_last("x=$y; y=$x; echo $x | sh"), Output::Hidden);
        assert_eq!(before_last("x=$(curl z); echo $x | sh"), Output::Elsewhere);
        assert_eq!(before_last("echo $HOSTNAME | sh"), Output::Elsewhere);
    }

    /// `tr` goes by bytes; ranges of characters would have thousands of them each.
    #[test]
    fn sets_of_tr_beyond_ascii_are_not_worked_out() {
        let all = "é-\u{9fff}".repeat(1_500);
        assert_eq!(output_of_line(&format!("echo x | tr -d '{all}'")), Output::Hidden);
        assert_eq!(output_of_line("echo x | tr é x"), Output::Hidden);
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
            "printf '\\u0041\\U00000042'",
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
