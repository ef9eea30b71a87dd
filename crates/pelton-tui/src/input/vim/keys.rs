//! What was typed, understood: a count, an operation, what it is done to.

use super::VimMode;

/// What a command may be repeated at most; nobody waits for more.
const COUNT_MAX: usize = 9_999;

/// What letters mean together.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum Understood {
    /// More has to come.
    NotYet,
    /// They are no command.
    Nothing,
    Command {
        action: Action,
        count: Option<usize>,
    },
}

/// A command.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Action {
    Go(Motion),
    Do(Op, Target),
    /// Begins to write.
    Write(Side),
    /// Puts what was taken last.
    Put(Side),
    Replace(char),
    SwitchCase,
    Join,
    Undo,
    Redo,
    /// The newest change once more.
    Again,
    /// Looks through earlier prompts.
    Search,
    /// Begins to select.
    Select(VimMode),
}

/// What is done to a part of the text.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Op {
    Delete,
    Change,
    Yank,
    Indent,
    Outdent,
}

/// What it is done to.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Target {
    To(Motion),
    Lines,
    Object(Object),
}

/// Where the caret goes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Motion {
    Left,
    Right,
    Up,
    Down,
    Word {
        big: bool,
    },
    /// The words that a change of words means.
    ChangedWord {
        big: bool,
    },
    WordEnd {
        big: bool,
    },
    WordBack {
        big: bool,
    },
    LineStart,
    FirstLetter,
    LineEnd,
    /// The first line, or that of the count.
    Top,
    /// The last line, or that of the count.
    Bottom,
    Seek(char, Step),
    SeekAgain {
        back: bool,
    },
}

/// How a character is looked for on the line.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Step {
    pub back: bool,
    /// Not onto it, but beside it.
    pub short: bool,
    /// Not for the first time: one that the caret stands beside already is not meant.
    pub again: bool,
}

impl Step {
    /// The same once more, or back again.
    pub fn again(self, turned: bool) -> Self {
        Self { back: self.back != turned, again: true, ..self }
    }
}

/// A thing in the text.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Object {
    pub kind: Kind,
    /// With what stands around it.
    pub around: bool,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Kind {
    Word { big: bool },
    Quoted(char),
    Between(char, char),
}

/// Where something is written.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Side {
    Here,
    Behind,
    LineStart,
    LineEnd,
    LineBelow,
    LineAbove,
}

impl Action {
    /// Whether it changes the text, and so can be done again.
    pub fn edits(self) -> bool {
        match self {
            Self::Do(op, _) => op != Op::Yank,
            Self::Write(_) | Self::Put(_) | Self::Replace(_) | Self::SwitchCase | Self::Join => true,
            Self::Go(_) | Self::Undo | Self::Redo | Self::Again | Self::Search | Self::Select(_) => false,
        }
    }
}

/// The register that what was taken last is in, whatever else it is in.
pub(super) const NEWEST: char = '"';
/// What was copied last, and not cut.
pub(super) const YANKED: char = '0';
/// What is taken there is gone.
pub(super) const NOWHERE: char = '_';

/// The register that letters begin with (`"a`), if they do, and what stands behind it; inside nothing where more has to come or there is no
/// such register.
pub(super) fn register(typed: &str) -> (Option<char>, Option<&str>) {
    let Some(behind) = typed.strip_prefix('"') else { return (None, Some(typed)) };
    let name = behind.chars().next().filter(|name| is_register(*name));
    (name, name.map(|_| &behind[1..]))
}

fn is_register(name: char) -> bool {
    name.is_ascii_alphabetic() || matches!(name, NEWEST | YANKED | NOWHERE)
}

/// What letters mean behind the register that they may begin with.
fn behind_register<T>(typed: &str, not_yet: T, nothing: T, rest: impl FnOnce(&str) -> T) -> T {
    match register(typed) {
        (_, Some(behind)) => rest(behind),
        (_, None) if typed == "\"" => not_yet,
        _ => nothing,
    }
}

pub(super) fn understood(typed: &str) -> Understood {
    behind_register(typed, Understood::NotYet, Understood::Nothing, understood_alone)
}

fn understood_alone(typed: &str) -> Understood {
    let (first, rest) = counted(typed);
    let Some(letter) = rest.chars().next() else { return Understood::NotYet };
    let behind = &rest[letter.len_utf8()..];
    let command = |action: Action| Understood::Command { action, count: first };
    let Some(op) = operation(letter) else {
        return match (simple(letter), motion(rest)) {
            (Some(action), _) => command(action),
            (None, Found::One(motion)) => command(Action::Go(motion)),
            (None, Found::NotYet) => Understood::NotYet,
            (None, Found::None) if letter == 'r' => {
                behind.chars().next().map_or(Understood::NotYet, |with| command(Action::Replace(with)))
            }
            (None, Found::None) => Understood::Nothing,
        };
    };
    let (second, rest) = counted(behind);
    // Two counts multiply: three times two words.
    let count = match (first, second) {
        (None, None) => None,
        (one, other) => Some(one.unwrap_or(1).saturating_mul(other.unwrap_or(1)).min(COUNT_MAX)),
    };
    let Some(next) = rest.chars().next() else { return Understood::NotYet };
    if next == letter {
        return Understood::Command { action: Action::Do(op, Target::Lines), count };
    }
    let target = if matches!(next, 'i' | 'a') {
        object(rest).map(Target::Object)
    } else {
        motion(rest).map(Target::To)
    };
    match target {
        Found::One(target) => Understood::Command { action: Action::Do(op, target), count },
        Found::NotYet => Understood::NotYet,
        Found::None => Understood::Nothing,
    }
}

/// The number in front, and what stands behind it. A zero in front of all is no number.
fn counted(typed: &str) -> (Option<usize>, &str) {
    if typed.starts_with('0') {
        return (None, typed);
    }
    let rest = typed.trim_start_matches(|c: char| c.is_ascii_digit());
    let digits = &typed[..typed.len() - rest.len()];
    // Whatever has too many digits is too many.
    ((!digits.is_empty()).then(|| digits.parse().unwrap_or(COUNT_MAX).min(COUNT_MAX)), rest)
}

/// Whether letters that end so wait for a motion: behind a count or an operation, not behind `f`, `g`, `r` or the beginning of an object.
pub(super) fn may_be_followed_by_a_motion(last: char) -> bool {
    last.is_ascii_digit() || operation(last).is_some()
}

fn operation(letter: char) -> Option<Op> {
    Some(match letter {
        'd' => Op::Delete,
        'c' => Op::Change,
        'y' => Op::Yank,
        '>' => Op::Indent,
        '<' => Op::Outdent,
        _ => return None,
    })
}

/// Commands of a letter alone.
fn simple(letter: char) -> Option<Action> {
    let to = |op: Op, motion: Motion| Action::Do(op, Target::To(motion));
    Some(match letter {
        'x' => to(Op::Delete, Motion::Right),
        'X' => to(Op::Delete, Motion::Left),
        's' => to(Op::Change, Motion::Right),
        'D' => to(Op::Delete, Motion::LineEnd),
        'C' => to(Op::Change, Motion::LineEnd),
        'S' => Action::Do(Op::Change, Target::Lines),
        'Y' => Action::Do(Op::Yank, Target::Lines),
        'i' => Action::Write(Side::Here),
        'a' => Action::Write(Side::Behind),
        'I' => Action::Write(Side::LineStart),
        'A' => Action::Write(Side::LineEnd),
        'o' => Action::Write(Side::LineBelow),
        'O' => Action::Write(Side::LineAbove),
        'p' => Action::Put(Side::Behind),
        'P' => Action::Put(Side::Here),
        '~' => Action::SwitchCase,
        'J' => Action::Join,
        'u' => Action::Undo,
        'U' => Action::Redo,
        '.' => Action::Again,
        '/' => Action::Search,
        'v' => Action::Select(VimMode::Visual),
        'V' => Action::Select(VimMode::VisualLine),
        _ => return None,
    })
}

/// What letters mean while something is selected.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum Selected {
    NotYet,
    Nothing,
    Command { selecting: Selecting, count: Option<usize> },
}

/// A command while something is selected.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Selecting {
    /// The end that the caret is at goes elsewhere.
    Go(Motion),
    /// This is selected instead.
    Object(Object),
    /// The caret goes to the other end.
    OtherEnd,
    /// Characters or lines; the same once more leaves.
    Mode(VimMode),
    Do(OnSelected),
}

/// What is done to what is selected.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum OnSelected {
    Op(Op),
    /// To its lines as a whole.
    Whole(Op),
    Replace(char),
    Case(Case),
    Join,
    Put(Side),
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Case {
    Lower,
    Upper,
    Other,
}

impl Case {
    /// A letter in this case.
    pub fn of(self, letter: char) -> Vec<char> {
        match self {
            Self::Lower => letter.to_lowercase().collect(),
            Self::Upper => letter.to_uppercase().collect(),
            Self::Other if letter.is_lowercase() => letter.to_uppercase().collect(),
            Self::Other => letter.to_lowercase().collect(),
        }
    }
}

impl OnSelected {
    /// Whether it changes the text, and so can be done again.
    pub fn edits(self) -> bool {
        !matches!(self, Self::Op(Op::Yank) | Self::Whole(Op::Yank))
    }
}

pub(super) fn on_selected(typed: &str) -> Selected {
    behind_register(typed, Selected::NotYet, Selected::Nothing, |typed| {
        let (count, rest) = counted(typed);
        let Some(letter) = rest.chars().next() else { return Selected::NotYet };
        let found = match letter {
            'i' | 'a' => object(rest).map(Selecting::Object),
            'r' => rest
                .chars()
                .nth(1)
                .map_or(Found::NotYet, |with| Found::One(Selecting::Do(OnSelected::Replace(with)))),
            letter => match done_to_selected(letter) {
                Some(what) => Found::One(what),
                None => motion(rest).map(Selecting::Go),
            },
        };
        match found {
            Found::One(selecting) => Selected::Command { selecting, count },
            Found::NotYet => Selected::NotYet,
            Found::None => Selected::Nothing,
        }
    })
}

/// Commands of a letter alone.
fn done_to_selected(letter: char) -> Option<Selecting> {
    let done = match letter {
        'o' | 'O' => return Some(Selecting::OtherEnd),
        'v' => return Some(Selecting::Mode(VimMode::Visual)),
        'V' => return Some(Selecting::Mode(VimMode::VisualLine)),
        'x' => OnSelected::Op(Op::Delete),
        's' => OnSelected::Op(Op::Change),
        'X' | 'D' => OnSelected::Whole(Op::Delete),
        'S' | 'C' | 'R' => OnSelected::Whole(Op::Change),
        'Y' => OnSelected::Whole(Op::Yank),
        '~' => OnSelected::Case(Case::Other),
        'u' => OnSelected::Case(Case::Lower),
        'U' => OnSelected::Case(Case::Upper),
        'J' => OnSelected::Join,
        'p' => OnSelected::Put(Side::Behind),
        'P' => OnSelected::Put(Side::Here),
        letter => OnSelected::Op(operation(letter)?),
    };
    Some(Selecting::Do(done))
}

/// What was found at the beginning of letters.
enum Found<T> {
    One(T),
    NotYet,
    None,
}

impl<T> Found<T> {
    fn map<U>(self, into: impl FnOnce(T) -> U) -> Found<U> {
        match self {
            Self::One(one) => Found::One(into(one)),
            Self::NotYet => Found::NotYet,
            Self::None => Found::None,
        }
    }
}

fn motion(typed: &str) -> Found<Motion> {
    let mut letters = typed.chars();
    let Some(letter) = letters.next() else { return Found::NotYet };
    let next = letters.next();
    let seek = |back: bool, short: bool| match next {
        Some(sought) => Found::One(Motion::Seek(sought, Step { back, short, again: false })),
        None => Found::NotYet,
    };
    Found::One(match letter {
        'h' => Motion::Left,
        'l' | ' ' => Motion::Right,
        'k' => Motion::Up,
        'j' => Motion::Down,
        'w' | 'W' => Motion::Word { big: letter == 'W' },
        'e' | 'E' => Motion::WordEnd { big: letter == 'E' },
        'b' | 'B' => Motion::WordBack { big: letter == 'B' },
        '0' => Motion::LineStart,
        '^' | '_' => Motion::FirstLetter,
        '$' => Motion::LineEnd,
        'G' => Motion::Bottom,
        'g' => match next {
            Some('g') => Motion::Top,
            Some(_) => return Found::None,
            None => return Found::NotYet,
        },
        'f' => return seek(false, false),
        't' => return seek(false, true),
        'F' => return seek(true, false),
        'T' => return seek(true, true),
        ';' => Motion::SeekAgain { back: false },
        ',' => Motion::SeekAgain { back: true },
        _ => return Found::None,
    })
}

fn object(typed: &str) -> Found<Object> {
    let mut letters = typed.chars();
    let around = letters.next() == Some('a');
    let kind = match letters.next() {
        None => return Found::NotYet,
        Some('w') => Kind::Word { big: false },
        Some('W') => Kind::Word { big: true },
        Some(quote @ ('"' | '\'' | '`')) => Kind::Quoted(quote),
        Some('(' | ')' | 'b') => Kind::Between('(', ')'),
        Some('[' | ']') => Kind::Between('[', ']'),
        Some('{' | '}' | 'B') => Kind::Between('{', '}'),
        Some('<' | '>') => Kind::Between('<', '>'),
        Some(_) => return Found::None,
    };
    Found::One(Object { kind, around })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn letters_are_understood_as_soon_as_they_mean_something() {
        let is = |action, count| Understood::Command { action, count };
        let word = Target::To(Motion::Word { big: false });
        let step = |back, short| Step { back, short, again: false };
        for (typed, expected) in [
            ("", Understood::NotYet),
            ("3", Understood::NotYet),
            ("0", is(Action::Go(Motion::LineStart), None)),
            ("10l", is(Action::Go(Motion::Right), Some(10))),
            ("d", Understood::NotYet),
            ("dw", is(Action::Do(Op::Delete, word), None)),
            ("2d3w", is(Action::Do(Op::Delete, word), Some(6))),
            ("dd", is(Action::Do(Op::Delete, Target::Lines), None)),
            ("d0", is(Action::Do(Op::Delete, Target::To(Motion::LineStart)), None)),
            ("di", Understood::NotYet),
            (
                "ciw",
                is(
                    Action::Do(
                        Op::Change,
                        Target::Object(Object { kind: Kind::Word { big: false }, around: false }),
                    ),
                    None,
                ),
            ),
            (
                "ya)",
                is(
                    Action::Do(
                        Op::Yank,
                        Target::Object(Object { kind: Kind::Between('(', ')'), around: true }),
                    ),
                    None,
                ),
            ),
            ("f", Understood::NotYet),
            ("dtx", is(Action::Do(Op::Delete, Target::To(Motion::Seek('x', step(false, true)))), None)),
            ("Fé", is(Action::Go(Motion::Seek('é', step(true, false))), None)),
            ("g", Understood::NotYet),
            ("gg", is(Action::Go(Motion::Top), None)),
            ("gx", Understood::Nothing),
            ("dq", Understood::Nothing),
            ("q", Understood::Nothing),
            ("\"", Understood::NotYet),
            ("\"a", Understood::NotYet),
            ("\"ap", is(Action::Put(Side::Behind), None)),
            ("\"_d", Understood::NotYet),
            ("\"é", Understood::Nothing),
            ("V", is(Action::Select(VimMode::VisualLine), None)),
            ("r", Understood::NotYet),
            ("rx", is(Action::Replace('x'), None)),
            (
                "99999999999999999999999x",
                is(Action::Do(Op::Delete, Target::To(Motion::Right)), Some(COUNT_MAX)),
            ),
        ] {
            assert_eq!(understood(typed), expected, "{typed:?}");
        }
    }
}
