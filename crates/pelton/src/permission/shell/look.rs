//! What a command looks at, if looking is all that it does: its program and every option are in the table.

use pelton_shell::Part;

use super::arg::{Arg, Files};
use super::programs::{self, Operands, Program, Reach, Takes};
use super::{awk, builtins, find, forms, git, numbers, sed, subcommands, versions};

/// What a command that only looks looks at.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(in super::super) struct Look {
    /// The files its words name. The current directory when it starts where it is run.
    pub files: Vec<Files>,
    /// Whose contents it may show.
    pub reach: Reach,
    /// How the names end of those files below directories whose contents it shows, if not all are.
    pub only_ending: Option<String>,
    /// Directories it works in that must be the current one.
    pub works_in: Vec<Files>,
    /// Names that are found may become other words: options, or several, as `xargs` splits them.
    pub splits: bool,
    /// Such an option could do more than look: nothing in the line may make files, whose names would be found, too.
    pub minds_names: bool,
    /// Patterns that would become options, were there files of such names: there must be none.
    pub dashless: Vec<Files>,
    /// Names of files that would choose what is run, in the directory or above it: there must be none.
    pub steered_by: Vec<&'static str>,
}

impl Look {
    /// It looks at nothing.
    pub fn nothing() -> Self {
        Self {
            files: Vec::new(),
            reach: Reach::Named,
            only_ending: None,
            works_in: Vec::new(),
            splits: false,
            minds_names: false,
            dashless: Vec::new(),
            steered_by: Vec::new(),
        }
    }

    pub fn at(files: Vec<Files>) -> Self {
        Self { files, ..Self::nothing() }
    }

    /// Looks also at what another command looks at, and minds what that minds.
    pub fn add(&mut self, other: Self) {
        let Self { files, reach, only_ending, works_in, splits, minds_names, dashless, steered_by } = other;
        self.files.extend(files);
        if self.reach == Reach::Named {
            self.only_ending = only_ending;
        } else if self.only_ending != only_ending {
            self.only_ending = None;
        }
        self.reach = self.reach.max(reach);
        self.works_in.extend(works_in);
        self.splits |= splits;
        self.minds_names |= minds_names;
        self.dashless.extend(dashless);
        self.steered_by.extend(steered_by);
    }

    /// The same, if it also reads files that are found below these.
    pub fn with_found(mut self, below: Vec<Files>) -> Option<Self> {
        // Without files it reads what it is given, and nothing here.
        if self.files == [Files::Named(".".to_owned())] {
            self.files.clear();
        }
        // What it looks at otherwise would be looked through, too.
        (self.files.is_empty() || self.reach == Reach::BelowAndLinked).then_some(())?;
        self.files.extend(below);
        self.only_ending = None;
        self.reach = self.reach.max(Reach::BelowAndLinked);
        Some(self)
    }
}

/// What the command looks at, if looking is all that it does.
pub(super) fn look(args: &[Arg]) -> Option<Look> {
    let (name, rest) = args.split_first()?;
    let name = name.literal()?;
    // Whatever else its words may mean.
    at_work(name, rest).or_else(|| versions::look(name, rest))
}

/// Whether a file is one that whoever runs the line sees anyway, or nobody.
fn is_open_already(path: &str) -> bool {
    matches!(path, "/dev/null" | "/dev/stdout" | "/dev/stderr" | "/dev/tty")
}

/// What it looks at when it does what it is for.
fn at_work(name: &str, rest: &[Arg]) -> Option<Look> {
    match name {
        "find" => find::look(rest),
        "fd" | "fdfind" => find::fd(rest),
        "git" => git::look(rest),
        "sed" => sed::look(rest),
        "awk" | "gawk" | "mawk" => awk::look(rest),
        "printf" => printf(rest),
        "test" => test(rest),
        "[" => test(rest.split_last().filter(|(last, _)| last.literal() == Some("]"))?.1),
        "ps" => forms::ps(rest),
        "tar" => forms::tar(rest),
        // Without a number it never ends.
        "top" if !rest.iter().any(|arg| arg.prefix().starts_with('-') && arg.prefix().contains('n')) => None,
        // What it copies to is there already.
        "tee" if matches!(rest, [one] if one.literal().is_some_and(is_open_already)) => Some(Look::nothing()),
        "bat" | "batcat" => forms::unpaged(name, rest),
        // Other words set how a terminal is.
        "stty" if matches!(rest, [one] if matches!(one.literal(), Some("size" | "speed"))) => {
            Some(Look::nothing())
        }
        name if builtins::is_known(name) => builtins::tells_only(name, rest).then(Look::nothing),
        "crontab" => (rest.len() == 1 && rest[0].literal() == Some("-l")).then(Look::nothing),
        "ldconfig" => (rest.len() == 1 && rest[0].literal() == Some("-p")).then(Look::nothing),
        "sysctl" => forms::kernel(rest),
        "yq" => forms::yq(rest),
        "man" => man(rest),
        "jq" => jq(rest),
        "gzip" | "xz" | "zstd" | "bzip2" | "gunzip" | "unxz" => forms::compressed(rest),
        "unzip" => forms::unzip(rest),
        "getent" => forms::database(rest),
        "ip" => forms::addresses(rest),
        "less" | "more" => forms::pager(rest),
        "lsof" => forms::open_files(rest),
        "command" => match rest {
            [option, names @ ..] if matches!(option.literal(), Some("-v" | "-V")) => {
                names.iter().all(|name| name.literal().is_some()).then(Look::nothing)
            }
            _ => None,
        },
        name => match programs::program(name) {
            Some(program) => understand(program, rest),
            None => subcommands::look(name, rest),
        },
    }
}

/// Goes through the arguments as the usual option parsers do. `None` as soon as one is not in the table.
pub(super) fn understand(program: &Program, args: &[Arg]) -> Option<Look> {
    if program.operands == Operands::Anything {
        return args.iter().all(Arg::is_data).then(|| named_by_patterns(args)).flatten();
    }
    let mut operands: Vec<&Arg> = Vec::new();
    let mut files = Vec::new();
    let mut dashless = Vec::new();
    let mut seen: Vec<String> = Vec::new();
    let mut reach = program.reach;
    let mut args = args.iter();
    while let Some(arg) = args.next() {
        let Some(text) = arg.literal() else {
            // A pattern may become an option, if there is a file of such a name.
            // Whatever the text behind `--author=` is, it stays a part of that word.
            if let Some((name, _)) = arg.prefix().strip_prefix("--").and_then(|long| long.split_once('=')) {
                let takes_text = |option: &programs::Opt| matches!(option.takes, Takes::Word | Takes::Maybe);
                let option = program.long(name).filter(takes_text)?;
                (arg.names_surely() || arg.is_one_word()).then_some(())?;
                reach = reach.max(option.reach);
                seen.push(format!("--{name}"));
                continue;
            }
            // A program of which no option matters, and that opens no files, may get any text.
            if program.harmless && program.operands == Operands::Words && arg.is_data() {
                files.extend(named_by_patterns(std::slice::from_ref(arg))?.files);
                continue;
            }
            if program.operands == Operands::Numbers && arg.is_count() {
                operands.push(arg);
                continue;
            }
            arg.names_surely().then_some(())?;
            (!arg.prefix().starts_with('-')).then_some(())?;
            if arg.may_be_option() && !program.harmless {
                dashless.push(match program.fine_without_dashes {
                    true => arg.files()?,
                    false => arg.matches_some()?,
                });
            }
            operands.push(arg);
            continue;
        };
        // Not everywhere is an option one behind a file: there it would be the file to write.
        if program.operands == Operands::OnePath && !operands.is_empty() && text.starts_with('-') {
            return None;
        }
        if text == "--" {
            operands.extend(args.by_ref());
        } else if program.operands == Operands::Numbers && is_number(text) {
            operands.push(arg);
        } else if let Some(long) = text.strip_prefix("--") {
            let (name, glued) = match long.split_once('=') {
                Some((name, value)) => (name, Some(value)),
                None => (long, None),
            };
            let option = program.long(name)?;
            let value = match (option.takes, glued) {
                (Takes::Nothing, Some(_)) => return None,
                (Takes::Nothing | Takes::Maybe, None) => None,
                (_, Some(value)) => Some(Arg::certain(value)),
                (takes, None) => Some(separate(takes, name, args.next()?)?),
            };
            if let Some(value) = value {
                accept(option.takes, &value, &mut files)?;
            }
            match option.takes {
                Takes::Two => is_value(args.next()?).then_some(())?,
                Takes::NameAndPath => files.push(args.next()?.files()?),
                _ => {}
            }
            reach = reach.max(option.reach);
            seen.push(format!("--{name}"));
        } else if let Some(cluster) = text.strip_prefix('-').filter(|cluster| !cluster.is_empty()) {
            let mut letters = cluster.chars();
            while let Some(letter) = letters.next() {
                let option = program.short(letter)?;
                reach = reach.max(option.reach);
                seen.push(format!("-{letter}"));
                match option.takes {
                    Takes::Nothing => continue,
                    Takes::Maybe => break,
                    takes => {
                        let glued = letters.as_str();
                        let value = match glued.is_empty() {
                            true => separate(takes, letter.encode_utf8(&mut [0; 4]), args.next()?)?,
                            false => Arg::certain(glued),
                        };
                        accept(takes, &value, &mut files)?;
                        break;
                    }
                }
            }
        } else {
            // A lone dash too: it stands for the standard input and takes an operand's place.
            operands.push(arg);
        }
    }
    let is_seen = |options: &[&str]| seen.iter().any(|seen| options.contains(&seen.as_str()));
    let literal = |operand: &&Arg| operand.literal().is_some();
    let mut paths: &[&Arg] = &operands;
    match program.operands {
        Operands::Anything => {}
        Operands::None => operands.is_empty().then_some(())?,
        Operands::Words => {
            operands.iter().all(|operand| operand.is_sure()).then_some(())?;
            let operands: Vec<Arg> = operands.iter().map(|operand| (*operand).clone()).collect();
            files.extend(named_by_patterns(&operands)?.files);
            paths = &[];
        }
        Operands::Numbers => {
            let is_fine = |operand: &&Arg| operand.is_count() || operand.literal().is_some_and(is_number);
            operands.iter().all(is_fine).then_some(())?;
            paths = &[];
        }
        Operands::Formats => {
            operands
                .iter()
                .all(|operand| operand.literal().is_some_and(|text| text.starts_with('+')))
                .then_some(())?;
            paths = &[];
        }
        Operands::Paths => {}
        Operands::OneWord => {
            (operands.len() <= 1 && operands.iter().all(literal)).then_some(())?;
            paths = &[];
        }
        // A second one would be written.
        Operands::OnePath => (operands.len() <= 1 && operands.iter().all(literal)).then_some(())?,
        Operands::PatternThenPaths { unless } => {
            let patterns = usize::from(!is_seen(unless) && !operands.is_empty());
            // A pattern that is not quoted becomes files.
            let quoted = operands.first().is_none_or(literal);
            paths = if quoted { &operands[patterns..] } else { &operands };
        }
        // Without such an option an operand is something to be made.
        Operands::PatternsWith(listing) => {
            (operands.is_empty() || is_seen(listing)).then_some(())?;
            operands.iter().all(|operand| operand.is_sure()).then_some(())?;
            paths = &[];
        }
    }
    for path in paths {
        // To some programs this names a file with more options in it.
        let is_revision =
            |text: &str| text == "@" || ["@{", "@~", "@^", "@.."].iter().any(|begin| text.starts_with(begin));
        (!path.prefix().starts_with('@') || path.literal().is_some_and(is_revision)).then_some(())?;
        // What comes through a pipe is made by commands that are judged by themselves.
        if !path.is_pipe() {
            files.push(path.files()?);
        }
    }
    if program.operands.default_here() && files.is_empty() && paths.is_empty() {
        files.push(Files::Named(".".to_owned()));
    }
    if reach == Reach::Below && is_seen(&["-R", "--dereference-recursive"]) {
        reach = Reach::BelowAndLinked;
    }
    if reach == Reach::BelowAndLinked && is_seen(&["--no-dereference"]) {
        reach = Reach::Below;
    }
    Some(Look { files, reach, dashless, ..Look::nothing() })
}

/// What words show that are only text: names, where patterns find them. What a pattern behind a variable finds, nobody knows.
fn named_by_patterns(args: &[Arg]) -> Option<Look> {
    let is_pattern = |arg: &&Arg| arg.parts().iter().any(|part| matches!(part, Part::Glob(_)));
    let found: Option<Vec<Files>> = args.iter().filter(is_pattern).map(Arg::pattern_before_doubt).collect();
    found.map(Look::at)
}

/// The value of an option that is a word of its own. One that looks like an option is none wherever an option may go without: `journalctl
/// -n --rotate`. Nobody means that otherwise, but for patterns.
fn separate(takes: Takes, option: &str, value: &Arg) -> Option<Arg> {
    // Changes are looked for by what they are about (`git log -S '->next'`), which is no option with a value.
    let is_about =
        || matches!(option, "S" | "G" | "I") && value.literal().is_some_and(|text| !text.contains('='));
    let is_pattern = matches!(option, "e" | "regexp" | "author" | "grep") || is_about();
    let behind = value.prefix().strip_prefix('-').filter(|_| takes != Takes::Number && !is_pattern);
    // `-` alone is a sign, and `-80` a range of columns.
    let may_be_option = behind.is_some_and(|rest| {
        (value.literal().is_none() || !rest.is_empty()) && !rest.starts_with(|c: char| c.is_ascii_digit())
    });
    (!may_be_option).then(|| value.clone())
}

fn accept(takes: Takes, value: &Arg, files: &mut Vec<Files>) -> Option<()> {
    match takes {
        Takes::Nothing | Takes::Maybe => {}
        // What is calculated is a number, whatever it is; how is judged by itself.
        Takes::Number if value.parts() == [Part::Arithmetic] => {}
        Takes::Number => match value.literal() {
            Some(text) => is_number(text).then_some(())?,
            // Whatever it is, it stays where a number is expected.
            None => is_value(value).then_some(())?,
        },
        // A pattern or a variable that is not quoted may become several words.
        Takes::Word | Takes::Two | Takes::NameAndPath => is_value(value).then_some(())?,
        Takes::Path => files.push(value.files()?),
    }
    Some(())
}

/// One word, that no command says: what others say is taken only as a part of a word that begins with its option.
pub(super) fn is_value(word: &Arg) -> bool {
    word.is_one_word() && !word.has_commands()
}

/// Digits with a sign before and a unit behind them.
pub(super) fn is_number(value: &str) -> bool {
    let digits = value.strip_prefix(['+', '-']).unwrap_or(value);
    let unit = digits.trim_start_matches(|c: char| c.is_ascii_digit() || c == '.');
    unit.len() < digits.len() && unit.chars().all(|c| c.is_ascii_alphabetic())
}

/// The format decides whether a variable is set.
fn printf(args: &[Arg]) -> Option<Look> {
    let args = match args.first()?.literal() {
        Some("--") => &args[1..],
        _ => args,
    };
    let (format, values) = args.split_first()?;
    let format = format.literal()?;
    let mut conversions = format.split('%').skip(1).map(|behind| {
        behind.trim_start_matches(|c: char| c.is_ascii_digit() || "-+ #.*hlLqjzt'".contains(c))
    });
    let is_safe = !format.starts_with('-') && conversions.all(|behind| !behind.starts_with('n'));
    (is_safe && values.iter().all(Arg::is_data)).then(|| named_by_patterns(values)).flatten()
}

/// Questions about texts, numbers and whether files are there. One about variables may run commands.
fn test(args: &[Arg]) -> Option<Look> {
    // Only what is known to stand behind or beside an operator can become none.
    let is_operand = |at: usize| {
        let before = at.checked_sub(1).and_then(|before| args[before].literal());
        let after = args.get(at + 1).and_then(Arg::literal);
        before.is_some_and(|text| is_unary(text) || is_binary(text)) || after.is_some_and(is_binary)
    };
    let is_fine = |(at, arg): (usize, &Arg)| match arg.literal() {
        Some("-v" | "-R") => false,
        Some(_) => true,
        None => {
            let one_word = arg.is_one_word()
                || arg.is_count()
                || arg.has_plain_stand_in()
                || is_counted(arg)
                || matches!(arg.files(), Some(Files::InHome(_)));
            one_word && (args.len() == 1 || is_operand(at))
        }
    };
    args.iter().enumerate().all(is_fine).then(Look::nothing)
}

/// Whether all of a word is one number that a command prints: outside of quotes it stays one word, too.
fn is_counted(arg: &Arg) -> bool {
    matches!(arg.parts(), [Part::Substitution { inside, .. }] if numbers::counts(inside))
}

fn is_unary(text: &str) -> bool {
    matches!(text.strip_prefix('-').map(str::as_bytes), Some([letter]) if b"bcdefghknprstuwxzGLNOS".contains(letter))
}

fn is_binary(text: &str) -> bool {
    matches!(
        text,
        "=" | "==" | "!=" | "<" | ">" | "-eq" | "-ne" | "-lt" | "-le" | "-gt" | "-ge" | "-nt" | "-ot" | "-ef"
    )
}

/// Pages by their names; a path would be a text to be set by other programs.
fn man(args: &[Arg]) -> Option<Look> {
    let is_page = |arg: &Arg| {
        arg.literal().is_some_and(|text| {
            matches!(text, "-k" | "-f" | "-w") || !text.starts_with('-') && !text.contains('/')
        })
    };
    args.iter().all(is_page).then(Look::nothing)
}

/// Its programs can take in other files.
fn jq(args: &[Arg]) -> Option<Look> {
    let look = understand(programs::program("jq")?, args)?;
    let takes_in = |arg: &Arg| {
        let text = arg.literal().unwrap_or_default();
        text.split(|c: char| !c.is_ascii_alphanumeric() && c != '_')
            .any(|word| matches!(word, "import" | "include" | "modulemeta" | "get_search_list"))
    };
    (!args.iter().any(takes_in)).then_some(look)
}
