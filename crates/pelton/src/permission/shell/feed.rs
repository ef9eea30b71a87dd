//! Names that one command finds and another looks at: `find … | xargs grep x`, `find … -exec grep x {} +`.
//!
//! Nobody knows the names before they are found, but where they come from: they are below directories that the finding
//! command names. All that is there is looked through when the line is judged.

use std::collections::BTreeMap;

use pelton_shell::{Part, Redirection, RedirectionKind};

use super::arg::{Arg, Files};
use super::look::{self, Look, understand};
use super::programs::{self, Program, Reach};
use super::{find, git, names_of};

/// The names that a command writes.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Feed {
    /// What they are below.
    pub below: Vec<Files>,
    /// They end with a NUL, so that nothing in them means anything.
    pub with_nul: bool,
    /// Nothing keeps them from beginning with a dash.
    pub may_be_option: bool,
    /// There are files of these names, all of which can be looked at beforehand.
    pub on_disk: bool,
    /// They are names of commits: digits, and never a file.
    pub are_commits: bool,
    /// How all of them end, if that is known.
    pub ending: Option<String>,
}

impl Feed {
    fn below(below: Vec<Files>) -> Self {
        Self { below, with_nul: false, may_be_option: false, on_disk: true, are_commits: false, ending: None }
    }

    fn of_commits() -> Self {
        Self { on_disk: false, are_commits: true, ..Self::below(Vec::new()) }
    }

    /// The names of both, if they are files.
    fn add(&mut self, more: &Self) -> Option<()> {
        (!more.are_commits).then_some(())?;
        if self.below.is_empty() {
            self.ending.clone_from(&more.ending);
        } else if self.ending != more.ending {
            self.ending = None;
        }
        self.below.extend(more.below.iter().cloned());
        self.on_disk &= more.on_disk;
        Some(())
    }
}

/// What the stages of a pipeline hand on, if that is nothing but names of files.
pub(super) fn feed(stages: &[Vec<Arg>]) -> Option<Feed> {
    let (first, filters) = stages.split_first()?;
    if let Some(at) = filters.iter().position(|filter| leaves_first_word(filter))
        && lists_commits_first(first)
    {
        let others = filters[..at].iter().chain(&filters[at + 1..]);
        return others.map(Vec::as_slice).all(passes_lines).then(Feed::of_commits);
    }
    let feed = names(first)?;
    filters.iter().all(|filter| passes_lines(filter)).then_some(feed)
}

/// What a command looks at whose words are the names that others write: `wc -l $(git ls-files)`.
pub(super) fn substituted(args: &[Arg]) -> Option<Look> {
    let mut words = Vec::with_capacity(args.len());
    let mut feed = Feed::below(Vec::new());
    for arg in args {
        match arg.parts() {
            [Part::Substitution { inside, quoted: false }] => {
                feed.add(&names_of(inside)?)?;
                words.extend(std::iter::repeat_n(Arg::certain(NAME), 2));
            }
            _ => words.push(arg.clone()),
        }
    }
    (!feed.below.is_empty()).then_some(())?;
    given(&words, &feed, true)
}

/// What a command looks at whose words are variables that hold such names: `while read f; do wc -l "$f"; done`.
pub(super) fn named(args: &[Arg], found: &BTreeMap<String, Feed>) -> Option<Look> {
    let mut words = Vec::with_capacity(args.len());
    let mut feed = Feed::below(Vec::new());
    let is_git = args.first().and_then(Arg::literal) == Some("git");
    let is_commit = |name: &String| is_git && found.get(name).is_some_and(|feed| feed.are_commits);
    for arg in args {
        match arg.parts() {
            [Part::Parameter { name, plain: true, .. }] if is_commit(name) => {
                words.push(Arg::certain(COMMIT));
            }
            [Part::Parameter { name, plain: true, quoted }] if found.contains_key(name) => {
                feed.add(&found[name])?;
                // Outside of quotes it may become several, and patterns in it find others beside it.
                words.extend(std::iter::repeat_n(Arg::certain(NAME), if *quoted { 1 } else { 2 }));
            }
            _ => words.push(arg.clone()),
        }
    }
    let has_commits = words != args && feed.below.is_empty();
    if has_commits {
        return look::look(&words);
    }
    (!feed.below.is_empty()).then_some(())?;
    given(&words, &feed, true)
}

/// What is below where the file was found that a command reads its input from: `wc -l < "$f"`.
pub(super) fn input_found<'f>(
    redirection: &Redirection,
    target: &Arg,
    found: &'f BTreeMap<String, Feed>,
) -> Option<&'f [Files]> {
    (redirection.kind == RedirectionKind::Read).then_some(())?;
    let [Part::Parameter { name, plain: true, quoted: true }] = target.parts() else { return None };
    let feed = found.get(name).filter(|feed| !feed.are_commits)?;
    Some(&feed.below)
}

/// What `xargs` looks at, given what it is fed; `None` if nobody knows that.
pub(super) fn xargs(args: &[Arg], feed: Option<&Feed>) -> Option<Look> {
    let mut replaced: Option<&str> = None;
    let mut with_nul = false;
    let mut list: Option<Files> = None;
    let mut args = args;
    while let [option, rest @ ..] = args
        && option.prefix().starts_with('-')
    {
        args = rest;
        match option.literal()? {
            "-0" | "--null" => with_nul = true,
            "-r" | "--no-run-if-empty" | "-t" | "--verbose" | "-x" | "--exit" => {}
            "-0r" | "-r0" => with_nul = true,
            "-n" | "-L" | "-P" | "-s" | "--max-args" | "--max-lines" | "--max-procs" => {
                let (number, rest) = args.split_first()?;
                look::is_number(number.literal()?).then_some(())?;
                args = rest;
            }
            // Between lines.
            "-d" | "--delimiter" => {
                let (delimiter, rest) = args.split_first()?;
                matches!(delimiter.literal()?, "\\n" | "\n").then_some(())?;
                args = rest;
            }
            "-d\\n" | "--delimiter=\\n" => {}
            "-a" | "--arg-file" => {
                let (file, rest) = args.split_first()?;
                list = Some(file.files()?);
                args = rest;
            }
            "-I" => {
                let (sign, rest) = args.split_first()?;
                replaced = Some(sign.literal().filter(|sign| !sign.is_empty())?);
                args = rest;
            }
            option => match option.split_at_checked(2)? {
                ("-n" | "-L" | "-P", number) => look::is_number(number).then_some(())?,
                ("-I", sign) if !sign.is_empty() => replaced = Some(sign),
                _ => return None,
            },
        }
    }
    // A list in a file may name anything, whatever is fed.
    let feed = feed.filter(|_| list.is_none());
    let shown = || Look::at(list.iter().cloned().collect());
    // Without a program the words are shown.
    let Some(name) = args.first() else { return Some(shown()) };
    if matches!(name.literal()?, "echo") {
        return args.iter().all(Arg::is_data).then(shown);
    }
    let mut words = match replaced {
        Some(sign) => with_names(args, sign)?,
        None => appended(args),
    };
    if feed.is_some_and(|feed| feed.are_commits) && name.literal()? == "git" {
        words.iter_mut().filter(|word| is_name(word)).for_each(|word| *word = Arg::certain(COMMIT));
        return look::look(&words).filter(|look| !look.files.iter().any(holds_name));
    }
    // Who opens none of them may get any words, if none of them is an option that matters.
    if is_harmless(&words) {
        let mut look = look::look(&words)?;
        if !look.files.iter().any(holds_name) {
            look.files.extend(list);
            return Some(look);
        }
    }
    let feed = feed.filter(|feed| !feed.are_commits)?;
    // Words that are split may become options, whatever they begin with.
    given(&words, feed, feed.may_be_option || !(with_nul && feed.with_nul))
}

/// What a command of `find -exec` looks at. `many` when it gets several names at once.
pub(super) fn executed(words: &[Arg], many: bool, below: &[Files], ending: Option<String>) -> Option<Look> {
    let mut words = with_names(words, "{}")?;
    if many {
        // At least two: for some programs a second file is one to write.
        let last = words.last().filter(|word| is_name(word))?.clone();
        words.push(last);
    }
    given(&words, &Feed { ending, ..Feed::below(below.to_vec()) }, false)
}

/// What a command of `fd -x` looks at, or of `fd -X`, which hands it many names at once. Older ones put nothing in front of a name.
pub(super) fn handed(words: &[Arg], many: bool, below: &[Files]) -> Option<Look> {
    let is_marked = |word: &Arg| word.literal().is_none_or(|text| text.contains('{'));
    let mut named = match words.iter().any(is_marked) {
        true => with_names(words, "{}")?,
        false => words.iter().cloned().chain([Arg::certain(NAME)]).collect(),
    };
    if many {
        let last = named.last().filter(|word| is_name(word))?.clone();
        named.push(last);
    }
    (!named.iter().any(|word| word.literal().is_some_and(|text| text.contains('{')))).then_some(())?;
    given(&named, &Feed::below(below.to_vec()), true)
}

/// A name of a commit.
const COMMIT: &str = "0000000";

/// A name that is not known yet. No command can be written with it: it holds a control character.
const NAME: &str = "./\u{1}";

fn is_name(arg: &Arg) -> bool {
    arg.literal() == Some(NAME)
}

/// The words with names in the place of a sign. Where it is a part of a word, only programs that look at no files may have it.
fn with_names(words: &[Arg], sign: &str) -> Option<Vec<Arg>> {
    let mut only_shown = true;
    let mut named = Vec::with_capacity(words.len());
    for word in words {
        match word.literal() {
            Some(text) if text == sign => named.push(Arg::certain(NAME)),
            Some(text) if text.contains(sign) => {
                only_shown = false;
                named.push(Arg::certain(&text.replace(sign, NAME)));
            }
            // A word that is not known could hold the sign.
            None if !word.is_sure() => return None,
            _ => named.push(word.clone()),
        }
    }
    let shows = named.first().and_then(Arg::literal).is_some_and(|name| matches!(name, "echo" | "printf"));
    (only_shown || shows).then_some(named)
}

fn appended(words: &[Arg]) -> Vec<Arg> {
    let names = std::iter::repeat_n(Arg::certain(NAME), 2);
    words.iter().cloned().chain(names).collect()
}

/// What a command looks at that gets names. `splits` if they may be options, or several words.
fn given(words: &[Arg], feed: &Feed, splits: bool) -> Option<Look> {
    let mut look = look::look(words)?;
    // Behind `--` nothing is an option.
    let end = words.iter().position(|word| word.literal() == Some("--")).unwrap_or(words.len());
    let minds_names = splits && !is_harmless(words) && words[..end].iter().any(is_name);
    (!minds_names || feed.on_disk && minds_only_options(words)).then_some(())?;
    look.minds_names |= minds_names;
    look.works_in.is_empty().then_some(())?;
    let named = look.files.len();
    look.files.retain(|files| !matches!(files, Files::Named(path) if path == NAME));
    if look.files.len() < named {
        look.files.extend(feed.below.iter().cloned());
        look.only_ending = feed.ending.clone().filter(|_| look.reach == Reach::Named);
        look.reach = look.reach.max(Reach::BelowAndLinked);
        look.splits |= splits;
    }
    // A part of a word: nobody knows which file that is.
    (!look.files.iter().any(holds_name)).then_some(look)
}

fn holds_name(files: &Files) -> bool {
    matches!(files, Files::Named(path) if path.contains('\u{1}'))
}

/// Whether names can make a program do more than look only where they are options: what it is told to do is known.
fn minds_only_options(words: &[Arg]) -> bool {
    let Some(program) = words.first().and_then(Arg::literal) else { return false };
    // What an option before the first operand takes, and whether one says what is to be done.
    let (takes_one, tells): (&[&str], &[&str]) = match program {
        "file" | "sort" | "rg" => return true,
        "sed" => (&["-e"], &["-e", "-ne"]),
        "awk" | "gawk" | "mawk" => (&["-F", "-v"], &[]),
        "jq" => (&[], &[]),
        _ => return false,
    };
    let mut words = words[1..].iter();
    while let Some(word) = words.next() {
        match word.literal() {
            // Long ones may take any number of words.
            Some(text) if text.starts_with("--") => return false,
            Some(text) if tells.contains(&text) => return words.next().is_some_and(|word| !is_name(word)),
            Some(text) if takes_one.contains(&text) => _ = words.next(),
            Some(text) if text.starts_with('-') => {}
            _ => return !is_name(word),
        }
    }
    false
}

/// Whether no word that a program gets can make it do more than look.
fn is_harmless(words: &[Arg]) -> bool {
    let program = words.first().and_then(Arg::literal).and_then(programs::program);
    program.is_some_and(|program| program.harmless || program.operands == programs::Operands::Anything)
}

/// The names that a command writes, if it writes nothing else.
fn names(args: &[Arg]) -> Option<Feed> {
    let (name, rest) = args.split_first()?;
    match name.literal()? {
        "find" => {
            let look = find::look(rest)?;
            let (starts, expression) = find::split(rest);
            let has = |test: &str| expression.iter().any(|word| word.literal() == Some(test));
            // Formats of its own, and what commands it runs show, are no names.
            if ["-printf", "-ls", "-exec"].into_iter().any(has) || has("-print") && has("-print0") {
                return None;
            }
            let below = if starts.is_empty() { look.files } else { start_files(starts)? };
            let ending = find::ending_wanted(expression);
            Some(Feed { with_nul: has("-print0"), ending, ..Feed::below(below) })
        }
        "git" => {
            // A name in the index is below the current directory, and on the disk unless somebody took it away. Names in
            // other revisions need not be.
            let look = git::look(rest)?;
            let texts = || rest[1..].iter().map(Arg::prefix);
            if matches!(rest.first()?.literal()?, "log" | "rev-list") {
                return lists_commits(rest).then(Feed::of_commits);
            }
            let has_names = match rest.first()?.literal()? {
                "ls-files" => texts().all(|text| !text.starts_with('-') || LS_FILES.contains(&text)),
                "diff" => {
                    texts().all(|text| DIFF.contains(&text) || text.starts_with("--diff-filter="))
                        && texts().any(|text| text == "--name-only")
                }
                "grep" => {
                    texts().all(|text| !text.starts_with('-') || GREP.contains(&text))
                        && texts().any(|text| text.contains('l') && text.starts_with('-'))
                }
                _ => false,
            };
            has_names.then_some(())?;
            let with_nul = rest.iter().any(|arg| arg.literal() == Some("-z"));
            let below = below_or_here(look.files);
            Some(Feed { with_nul, may_be_option: true, on_disk: false, ..Feed::below(below) })
        }
        "ls" => {
            let options = rest.iter().filter_map(Arg::literal).filter(|text| text.starts_with('-'));
            let mut letters = options.flat_map(|text| text.chars().skip(1));
            letters.all(|letter| "1aAdrtSU".contains(letter)).then_some(())?;
            let look = understand(programs::program("ls")?, rest)?;
            // Names in another directory are taken for names in this one.
            let mut below = below_or_here(look.files);
            below.push(Files::Named(".".to_owned()));
            Some(Feed { may_be_option: true, ..Feed::below(below) })
        }
        "grep" | "egrep" | "fgrep" => {
            found_by(programs::program("grep")?, rest, "lrRiEFPwLsIZve", &["-l", "-L"], "-Z")
        }
        "rg" => found_by(programs::program("rg")?, rest, "liFSwtg0eP", &["-l", "--files"], "-0"),
        "fd" | "fdfind" => {
            let look = understand(programs::program("fd")?, rest)?;
            let options = || rest.iter().filter_map(Arg::literal).filter(|text| text.starts_with('-'));
            options()
                .all(|text| {
                    matches!(text, "-e" | "-t" | "-H" | "-I" | "-0" | "-g" | "--extension" | "--type")
                })
                .then_some(())?;
            let with_nul = options().any(|text| text == "-0");
            Some(Feed { with_nul, may_be_option: true, ..Feed::below(below_or_here(look.files)) })
        }
        "echo" => said(rest),
        // One in a line.
        "printf" if rest.first()?.literal()? == "%s\\n" => said(&rest[1..]),
        "printf" if rest.first()?.literal()? == "%s\\0" => {
            said(&rest[1..]).map(|feed| Feed { with_nul: true, ..feed })
        }
        _ => None,
    }
}

/// Whether an option of `git log` chooses commits, and changes nothing about what is written of them.
fn chooses_commits(text: &str) -> bool {
    const OPTIONS: &[&str] =
        &["--", "--all", "--branches", "--no-merges", "--merges", "--reverse", "--first-parent", "-n"];
    const VALUES: &[&str] = &["--since=", "--until=", "--author=", "--grep=", "--max-count=", "--skip="];
    !text.starts_with('-')
        || OPTIONS.contains(&text)
        || VALUES.iter().any(|name| text.starts_with(name))
        || text[1..].bytes().all(|byte| byte.is_ascii_digit())
}

/// Whether each line that a command writes begins with the name of a commit and a blank.
fn lists_commits_first(args: &[Arg]) -> bool {
    let [git, log, rest @ ..] = args else { return false };
    let is_log = git.literal() == Some("git") && log.literal() == Some("log");
    is_log
        && git::look(&args[1..]).is_some()
        && rest.iter().any(|arg| arg.literal() == Some("--oneline"))
        && rest.iter().all(|arg| arg.literal() == Some("--oneline") || chooses_commits(arg.prefix()))
}

/// Whether all that a command leaves of a line is its first word.
fn leaves_first_word(args: &[Arg]) -> bool {
    let words: Option<Vec<&str>> = args.iter().map(Arg::literal).collect();
    match words.as_deref() {
        Some(["cut", "-d ", "-f1"] | ["cut", "-d", " ", "-f1"] | ["cut", "-f1", "-d "]) => true,
        Some(["cut", "-d ", "-f", "1"] | ["cut", "-d", " ", "-f", "1"]) => true,
        Some(["awk", program]) => program.split_whitespace().collect::<String>() == "{print$1}",
        _ => false,
    }
}

/// Whether a `git log` or `git rev-list` writes nothing but names of commits, one in a line.
fn lists_commits(args: &[Arg]) -> bool {
    let mut is_bare = args[0].literal() == Some("rev-list");
    for arg in &args[1..] {
        match arg.literal() {
            Some(
                "--format=%H" | "--format=%h" | "--pretty=%H" | "--pretty=%h" | "--pretty=format:%H"
                | "--pretty=format:%h",
            ) if !is_bare => {
                is_bare = true;
            }
            // With a format `rev-list` writes more.
            _ if !chooses_commits(arg.prefix()) => return false,
            _ => {}
        }
    }
    is_bare
}

/// Options of `git ls-files`, `git grep` and `git diff` with which names are all that is written.
const LS_FILES: &[&str] = &[
    "-z",
    "-m",
    "-o",
    "-c",
    "-d",
    "--",
    "--others",
    "--exclude-standard",
    "--modified",
    "--cached",
    "--deleted",
];
const GREP: &[&str] =
    &["-l", "-il", "-li", "-lE", "-lF", "-lw", "-lie", "-le", "-e", "-i", "-E", "-F", "-w", "--"];
const DIFF: &[&str] = &["-z", "--name-only", "--cached", "--staged", "--relative"];

/// `grep -l` and the like: with one of the `listing` options, and no others than these letters, it writes names alone.
fn found_by(program: &Program, args: &[Arg], letters: &str, listing: &[&str], nul: &str) -> Option<Feed> {
    let look = understand(program, args)?;
    let options: Vec<&str> =
        args.iter().filter_map(Arg::literal).filter(|text| text.starts_with('-')).collect();
    let has = |wanted: &str| {
        options
            .iter()
            .any(|text| *text == wanted || !text.starts_with("--") && text[1..].contains(&wanted[1..]))
    };
    let is_known = |text: &&str| match text.strip_prefix("--") {
        Some(long) => {
            let name = long.split('=').next().unwrap_or(long);
            matches!(
                name,
                "" | "files"
                    | "include"
                    | "exclude"
                    | "exclude-dir"
                    | "glob"
                    | "type"
                    | "hidden"
                    | "ignore-case"
            )
        }
        None => text.chars().skip(1).all(|letter| letters.contains(letter)),
    };
    (options.iter().all(is_known) && listing.iter().any(|option| has(option))).then_some(())?;
    Some(Feed { with_nul: has(nul), may_be_option: true, ..Feed::below(below_or_here(look.files)) })
}

/// Names that are written out.
fn said(args: &[Arg]) -> Option<Feed> {
    let is_plain = |c: char| c.is_ascii_alphanumeric() || "._-/".contains(c);
    let file = |arg: &Arg| {
        let text = arg.literal()?;
        (!text.starts_with('-') && text.chars().all(is_plain)).then(|| Files::Named(text.to_owned()))
    };
    let below: Option<Vec<Files>> = args.iter().map(file).collect();
    below.map(Feed::below)
}

fn start_files(starts: &[Arg]) -> Option<Vec<Files>> {
    starts.iter().map(Arg::files).collect()
}

fn below_or_here(files: Vec<Files>) -> Vec<Files> {
    match files.is_empty() {
        true => vec![Files::Named(".".to_owned())],
        false => files,
    }
}

/// Whether a command leaves lines out or puts them in another order, and changes none.
fn passes_lines(args: &[Arg]) -> bool {
    let Some((name, rest)) = args.split_first() else { return false };
    let Some(name) = name.literal() else { return false };
    let letters = match name {
        "grep" | "egrep" | "fgrep" => "vEFiPwxe",
        "head" | "tail" => "n0123456789",
        "sort" => "ufrnVsdz",
        "uniq" => "udi",
        "tac" | "cat" => "",
        _ => return false,
    };
    let mut words = rest.iter();
    let mut operands = 0;
    while let Some(word) = words.next() {
        let Some(text) = word.literal() else { return false };
        match text.strip_prefix('-').filter(|options| !options.is_empty()) {
            Some(options) if options.chars().all(|letter| letters.contains(letter)) => {
                if options.ends_with('e') || options == "n" && matches!(name, "head" | "tail") {
                    words.next();
                    operands += usize::from(options.ends_with('e'));
                }
            }
            Some(_) => return false,
            None => operands += 1,
        }
    }
    // The pattern is the only word that is no option: a file would be read instead.
    operands == usize::from(name.ends_with("grep"))
}
