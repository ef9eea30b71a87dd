//! Texts that a line passes through other programs before a shell runs them: `echo cm0gLXJmIC8= | base64 -d | sh`. What programs make of
//! a text that stands in the line is worked out where they are known for one thing; otherwise the line hides what it runs.

mod programs; // what each of them makes of it

use pelton_shell::{
    Assignment, AssignmentKind, Command, DoubtKind, Part, Redirection, RedirectionKind, Script, Stage,
    has_language,
};

use self::programs::{echoed, goes_by_lines, passed_on, printed};
use super::arg::Arg;
use super::launch::base_name;

/// What a command writes.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum Output {
    /// This.
    Text(String),
    /// Some of these lines, in any order.
    Lines(String),
    /// Something that is made of a text in the line, and that only running it would tell.
    Hidden,
    /// Something that does not stand in the line.
    Elsewhere,
}

impl Output {
    /// What stands in it, or may do so.
    pub fn text(&self) -> Option<&str> {
        match self {
            Self::Text(text) | Self::Lines(text) => Some(text),
            Self::Hidden | Self::Elsewhere => None,
        }
    }
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
            return self.before_function(command, script);
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
        let outputs: Vec<Output> =
            inside.filter(is_last).map(|command| self.output(command, script)).collect();
        one_behind_the_other(&outputs)
    }

    /// What a command in a function reads: what those who call the function are handed.
    fn before_function(&mut self, command: &Command, script: &Script) -> Output {
        if !command.place.in_function {
            return Output::Elsewhere;
        }
        let calls = |other: &&Command| {
            let is_fed = other.place.piped || other.place.fed.is_some() || !other.redirections.is_empty();
            is_fed && !other.place.in_function && other.name().is_some_and(|name| is_function(name, script))
        };
        let Some(call) = script.commands.iter().find(calls) else { return Output::Elsewhere };
        let Some(left) = self.left.checked_sub(1) else { return Output::Hidden };
        self.left = left;
        self.input(call, &[], script)
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
            "echo" => self.said(rest).map_or_else(|unsaid| unsaid, |words| echoed(&words)),
            // As often as somebody wants to read it.
            "yes" => {
                self.said(rest).map_or_else(|unsaid| unsaid, |words| Output::Text(words.join(" ") + "\n"))
            }
            "printf" => match rest {
                // A variable gets it.
                [option, ..] if option.prefix().starts_with("-v") => Output::Elsewhere,
                [option, words @ ..] if option.literal() == Some("--") => self.formatted(words),
                words => self.formatted(words),
            },
            name if is_function(name, script) => self.said_in_functions(script),
            name if self.around.is_some_and(|around| is_function(name, around)) => {
                self.around.map_or(Output::Elsewhere, |around| self.said_in_functions(around))
            }
            _ => match self.input(command, rest, script) {
                Output::Text(text) => passed_on(name, rest, &text),
                Output::Lines(text) if goes_by_lines(name, rest) => match passed_on(name, rest, &text) {
                    Output::Text(text) => Output::Lines(text),
                    other => other,
                },
                Output::Lines(_) => Output::Hidden,
                Output::Elsewhere if says_by_itself(command, name, rest) => Output::Hidden,
                other => other,
            },
        }
    }

    /// What the functions of a line write, one behind the other.
    fn said_in_functions(&mut self, script: &Script) -> Output {
        let is_last = |command: &&Command| {
            let next = |other: &Command| {
                let stages = command.place.stage.zip(other.place.stage);
                stages.is_some_and(|(it, next)| it.pipeline == next.pipeline && next.number > it.number)
            };
            !script.commands.iter().any(next)
        };
        let inside = script
            .commands
            .iter()
            .filter(|it| it.place.in_function && !it.place.in_substitution && !it.words.is_empty());
        let outputs: Vec<Output> =
            inside.filter(is_last).map(|command| self.output(command, script)).collect();
        one_behind_the_other(&outputs)
    }

    /// What `printf` makes of these words.
    fn formatted(&mut self, words: &[Arg]) -> Output {
        self.said(words).map_or_else(|unsaid| unsaid, |words| printed(&words))
    }

    /// What a command reads: a text beside it, what comes before it, or a file that the line writes.
    fn input(&mut self, command: &Command, rest: &[Arg], script: &Script) -> Output {
        let redirections = || command.redirections.iter().flat_map(|it| opened_as(it, script));
        let mut told = redirections().filter(|redirection| {
            matches!(redirection.kind, RedirectionKind::HereString | RedirectionKind::HereDocument { .. })
        });
        if let Some(told) = told.next_back() {
            let said = self.said(&[Arg::of(&told.target)]);
            return said.map_or_else(|unsaid| unsaid, |text| Output::Text(text.concat()));
        }
        let targets: Vec<Arg> =
            redirections().filter(|it| it.kind.reads()).map(|it| Arg::of(&it.target)).collect();
        let mut pipes = rest.iter().chain(&targets).filter(|arg| arg.is_pipe());
        let pipe = pipes.next().and_then(|arg| inside_pipe(&arg.written));
        if let Some(inside) = pipe {
            return self.output_of_line(inside);
        }
        let writes = |other: &&Command, path: &str| {
            other.redirections.iter().any(|it| it.kind.writes() && it.target.literal() == Some(path))
        };
        let read = redirections().filter(|it| it.kind.reads()).filter_map(|it| it.target.literal());
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
                    Output::Lines(_) => return Err(Output::Hidden),
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
        let Some(around) = self.around else { return Err(Output::Elsewhere) };
        let assignments = around.commands.iter().flat_map(|command| {
            let is_straight = !(command.place.conditional || command.place.nested);
            command.assignments.iter().map(move |assignment| (assignment, is_straight))
        });
        let given: Vec<(&Assignment, bool)> = assignments.filter(|(it, _)| it.name == name).collect();
        let printed: Vec<Vec<Arg>> =
            around.commands.iter().filter_map(|command| printed_into(command, name)).collect();
        let is_more =
            |(it, is_straight): &(&Assignment, bool)| it.kind == AssignmentKind::Append && *is_straight;
        match (given.as_slice(), printed.as_slice()) {
            ([], []) => Err(Output::Elsewhere),
            ([], [words]) => match self.formatted(words) {
                Output::Text(text) => Ok(text),
                Output::Lines(_) => Err(Output::Hidden),
                other => Err(other),
            },
            ([(first, _), more @ ..], []) if more.iter().all(is_more) => {
                let mut text = self.filled(&Arg::of(&first.value))?;
                for (more, _) in more {
                    text.push_str(&self.filled(&Arg::of(&more.value))?);
                }
                Ok(text)
            }
            _ => Err(Output::Hidden),
        }
    }
}

/// What commands write one behind the other.
fn one_behind_the_other(outputs: &[Output]) -> Output {
    if outputs.contains(&Output::Hidden) {
        return Output::Hidden;
    }
    let text: String = outputs.iter().filter_map(Output::text).collect();
    match outputs.iter().any(|output| matches!(output, Output::Lines(_))) {
        _ if text.is_empty() => Output::Elsewhere,
        true => Output::Lines(text),
        false => Output::Text(text),
    }
}

/// Whether a line gives a name the meaning of commands of its own.
fn is_function(name: &str, script: &Script) -> bool {
    script.doubts.iter().any(|doubt| doubt.kind == DoubtKind::FunctionDefinition && doubt.text == name)
}

/// Where a redirection leads: of a copy of a descriptor (`<&3`), what the line opens as that.
fn opened_as<'s>(redirection: &'s Redirection, script: &'s Script) -> Vec<&'s Redirection> {
    let copied = redirection.target.literal().filter(|_| redirection.kind == RedirectionKind::Duplicate);
    let is_input = matches!(redirection.descriptor.as_deref(), None | Some("0"));
    let Some(copied) = copied.filter(|_| is_input) else { return vec![redirection] };
    let all = script.commands.iter().flat_map(|command| &command.redirections);
    all.filter(|it| it.descriptor.as_deref() == Some(copied) && it.kind != RedirectionKind::Duplicate)
        .collect()
}

/// The format and the values of a `printf -v` that gives this variable its value.
fn printed_into(command: &Command, name: &str) -> Option<Vec<Arg>> {
    let words: Vec<Arg> = command.words.iter().map(Arg::of).collect();
    let behind = match words.as_slice() {
        [printf, option, variable, rest @ ..]
            if option.literal() == Some("-v") && variable.literal() == Some(name) =>
        {
            (printf.literal() == Some("printf")).then_some(rest)?
        }
        [printf, glued, rest @ ..]
            if glued.literal().and_then(|text| text.strip_prefix("-v")) == Some(name) =>
        {
            (printf.literal() == Some("printf")).then_some(rest)?
        }
        _ => return None,
    };
    Some(behind.iter().filter(|word| word.literal() != Some("--")).cloned().collect())
}

/// Whether a program in another language stands in the line and reads nothing, so that what it says stands there, too.
fn says_by_itself(command: &Command, name: &str, rest: &[Arg]) -> bool {
    let is_option = |arg: &&Arg| arg.prefix().starts_with('-');
    match name {
        "jq" | "gojq" | "jaq" | "yq" => rest.iter().filter(is_option).any(|arg| {
            arg.prefix() == "--null-input" || !arg.prefix().starts_with("--") && arg.prefix().contains('n')
        }),
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

/// What `printf` says, if all of its words are certain.
pub(super) fn printf_says(words: &[Arg]) -> Option<String> {
    let words: Option<Vec<String>> = words.iter().map(|word| word.literal().map(str::to_owned)).collect();
    match printed(&words?) {
        Output::Text(text) => Some(text),
        Output::Lines(_) | Output::Hidden | Output::Elsewhere => None,
    }
}

#[cfg(test)]
mod tests {
    use super::{Output, input_of, output_before, output_of_line};

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
            assert_eq!(said(output_of_line(line)), text, "{line}");
        }
    }

    /// A text without the end of its last line.
    fn said(output: Output) -> String {
        let Output::Text(text) = output else { panic!("{output:?}") };
        text.trim_end_matches('\n').to_owned()
    }

    #[test]
    fn what_only_running_it_would_tell_is_hidden_or_elsewhere() {
        let hidden = [
            "echo H4sI | gunzip",
            "echo x | openssl enc -d -aes256 -k y",
            "echo x | sed s/x/y/",
            "echo -e 'a\\qb'",
            "echo -e '\\162'",
            "printf 'a\\qb'",
            "printf 'a\\%s' x",
            "printf '%q' x",
            "printf '%d' 010",
            "echo -e 'caf\\xe9'",
            "echo abc | head -c 2",
            "echo abc | grep -o b",
            "echo abc | grep -c b",
            "echo abc | cat -n",
            "echo abc | nl",
            "echo abc | uniq -c",
            "printf 'YQ==\\nYg==\\n' | tail -n 1 | base64 -d",
            "printf 'a\\nb\\n' | head -n 1 | tr '\\n' x",
            "echo abc | xxd -r -p -l 1",
            "jq -nr '\"rm -rf /\"'",
        ];
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
        // What ends without a new line goes on with what is said next.
        assert_eq!(said(before_last("{ printf r; printf m; } | sh")), "rm");
    }

    /// Variables are what the line gives them; one that is made of itself ends somewhere.
    #[test]
    fn what_a_line_gives_its_variables_is_what_they_say() {
        let text = |line: &str| said(before_last(line));
        assert_eq!(text("a=cm0g; b=LXJmIC8=; echo $a$b | base64 -d | sh"), "rm -rf /");
        assert_eq!(text("x=$(echo rm); echo \"$x y\" | sh"), "rm y");
        assert_eq!(text("x=r; x+=m; x+=' y'; echo $x | sh"), "rm y");
        assert_eq!(text("printf -v x 'r%s y' m; echo $x | sh"), "rm y");
        assert_eq!(text("f() { echo ym | rev; }; f | sh"), "my");
        let script = pelton_shell::read("exec 3< <(echo ym | rev); sh <&3").unwrap();
        assert_eq!(said(input_of(script.commands.last().unwrap(), &script)), "my");
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
            "echo aGU=bGxv | base64 -d",
            "printf 'one\\ntwo' | tac",
            "printf 'r\\\"\\\"m\\?'",
            "printf 'a\\tb\\ac\\e\\\\d\\x7e'",
            "echo -e 'a b\\cde'",
            "printf '%b-%s' 'x\\cy' z",
            "printf '%b' '\\162\\0155'",
            "echo -n -e '\\x72m'",
            "echo -E -e '\\x72m'",
            "echo -e -E '\\x72m'",
            "echo -ne 'a\\0101b'",
            "echo 'xm -r' | tr '\\-x' '-r'",
            "echo 'xym' | tr '\\170y' 'rq'",
            "printf -- '%s-%s' -- b",
        ];
        for line in lines {
            let ran = std::process::Command::new("bash").args(["-c", line]).output().unwrap();
            let said = String::from_utf8_lossy(&ran.stdout).trim_end_matches('\n').to_owned();
            let Output::Text(text) = output_of_line(line) else { panic!("{line}") };
            assert_eq!(text.trim_end_matches('\n'), said, "{line}");
        }
    }
}
