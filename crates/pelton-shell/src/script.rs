//! What a command line says once it has been taken apart.

use crate::word::Word;

/// A command line taken apart.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct Script {
    /// Every simple command in it, wherever it stands: in lists, pipelines, groups, loops, functions, substitutions, here-documents,
    /// arithmetic, subscripts. In the order they are written.
    pub commands: Vec<Command>,
    /// What only a rule about everything can vouch for. What is uncertain about the words of a command is said by the
    /// [words](Word::doubts), not here.
    pub doubts: Vec<Doubt>,
    /// Files that a `[[ ]]` asks about: whether they are there, and what kind they are.
    pub asked_about: Vec<Word>,
}

/// One simple command.
///
/// Some stand for a part of a compound command and have no words: its redirections (`{ …; } >file`), and the variable of a
/// `for` or `select` loop, given as an assignment.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct Command {
    /// As written, without the separators around it and without the text of here-documents.
    pub text: String,
    /// What stands before the command word.
    pub assignments: Vec<Assignment>,
    /// The command word and its arguments. Empty when there are only assignments or redirections.
    pub words: Vec<Word>,
    /// Where its input comes from and its output goes.
    pub redirections: Vec<Redirection>,
    /// Where it stands.
    pub place: Place,
    /// For the variable of a `for` loop: which commands are the loop's body, counted from this one.
    pub body: Option<Body>,
}

impl Command {
    /// The command word, when it is certain.
    pub fn name(&self) -> Option<&str> {
        self.words.first()?.literal()
    }
}

/// Where in the list of commands the body of a loop is, counted from the command that gives its variable a value.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct Body {
    /// The first of them.
    pub from: usize,
    /// The first that is not one of them any more.
    pub to: usize,
}

/// A variable that gets a value.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct Assignment {
    /// The variable.
    pub name: String,
    /// How it gets it.
    pub kind: AssignmentKind,
    /// The value; for arrays all that stands between the parentheses, never literal.
    pub value: Word,
    /// What an array is filled with, each element without its subscript.
    pub elements: Vec<Word>,
}

/// How a variable gets its value.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum AssignmentKind {
    /// `name=value`
    Plain,
    /// `name+=value`
    Append,
    /// `name[subscript]=value`, `name[subscript]+=value`
    Element,
    /// `name=(…)`, `name+=(…)`
    Array,
    /// `for name in value …`, once for each of the words; one with a word that is not literal when there are none written.
    Loop,
}

/// `2>file` and the like.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct Redirection {
    /// What is in front of the operator: a number, or `{name}`.
    pub descriptor: Option<String>,
    /// What the operator does.
    pub kind: RedirectionKind,
    /// The file, the descriptor, or the text.
    pub target: Word,
}

/// What a redirection does.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum RedirectionKind {
    /// `<file`
    Read,
    /// `>file`
    Write,
    /// `>>file`
    Append,
    /// `>|file`
    Clobber,
    /// `<>file`
    ReadWrite,
    /// `&>file`, `>&file`
    WriteBoth,
    /// `&>>file`
    AppendBoth,
    /// `2>&1`, `<&3`, `3>&1-`
    Duplicate,
    /// `2>&-`
    Close,
    /// `<<<text`
    HereString,
    /// `<<END`; the target is the text, literal when the delimiter is quoted or nothing in it is expanded.
    HereDocument {
        /// Whether the delimiter is quoted, so that the text is data.
        quoted: bool,
    },
    /// A form that does not say what it will do, such as `>&$x`.
    Unknown,
}

impl RedirectionKind {
    /// Whether the target is a file that is written to.
    pub fn writes(self) -> bool {
        matches!(
            self,
            Self::Write
                | Self::Append
                | Self::Clobber
                | Self::ReadWrite
                | Self::WriteBoth
                | Self::AppendBoth
                | Self::Unknown
        )
    }

    /// Whether the target is a file that is read.
    pub fn reads(self) -> bool {
        matches!(self, Self::Read | Self::ReadWrite | Self::Unknown)
    }
}

/// Where a command stands.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct Place {
    /// In a command or process substitution.
    pub in_substitution: bool,
    /// In a process substitution: it runs beside the others.
    pub in_process: bool,
    /// In a pipeline, not as the first: it reads what another command writes.
    pub piped: bool,
    /// Which stage of which pipeline it is by itself, if what a stage writes is all that the next one reads.
    pub stage: Option<Stage>,
    /// The stage that its compound command is: what those before it write is what it reads, unless something else is nearer.
    pub fed: Option<Stage>,
    /// Which list of `&&` it stands in, if it runs only when everything before it in that list has succeeded.
    pub chain: Option<usize>,
    /// In something that `&` or `coproc` sends to the background.
    pub in_background: bool,
    /// In the body of a function: it runs when the function is called.
    pub in_function: bool,
    /// In parentheses.
    pub in_subshell: bool,
    /// In a compound command.
    pub nested: bool,
    /// In a loop, or in a branch that may not be taken.
    pub conditional: bool,
}

/// A simple command's own place in a pipeline.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct Stage {
    /// The pipeline; each of a script has a number of its own.
    pub pipeline: usize,
    /// Counted from 0.
    pub number: usize,
}

/// Something that only a rule about everything can vouch for.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct Doubt {
    /// What it is.
    pub kind: DoubtKind,
    /// As written.
    pub text: String,
}

/// Why only a rule about everything can vouch for it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum DoubtKind {
    /// `command &`
    Background,
    /// A function: a name means something else from now on.
    FunctionDefinition,
    /// `coproc`
    Coprocess,
    /// Arithmetic with anything in it but numbers: names and subscripts can run commands.
    Arithmetic,
    /// A subscript that is evaluated.
    Subscript,
    /// An array that is filled.
    Array,
    /// A substitution outside the words of a command: in `case`, `[[ ]]`, a loop's list.
    Substitution,
    /// A parameter that does more than give a value: it names another one, is read as a prompt, or gets a value.
    Parameter,
    /// An argument that a builtin evaluates as arithmetic or as a name with a subscript.
    EvaluatedArgument,
    /// A builtin that changes how the shell reads what follows: `shopt`, `alias`, `set` with most options.
    ShellOptions,
    /// `$"…"`: text that is looked up in a catalogue of translations.
    Translation,
    /// A character that cannot be seen, or is seen in another place than it stands.
    Invisible,
    /// A redirection to or from a descriptor that is not written: named by a variable, or to be found in one.
    Descriptor,
    /// A redirection that bash turns into a connection: `/dev/tcp/…`.
    Network,
}

/// Why nothing can be said about a command.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum Unclear {
    /// It is longer than [`COMMAND_MAX_CHARS`](crate::COMMAND_MAX_CHARS).
    #[error("the command is too long to be analysed")]
    TooLong,
    /// It holds a control character other than tab, newline and carriage return.
    #[error("the command holds the control character U+{0:04X}")]
    ControlCharacter(u32),
    /// Its parts stand in each other too deeply.
    #[error("the command is nested too deeply to be analysed")]
    TooDeep,
    /// Something is not closed.
    #[error("the command ends before {0}")]
    Unfinished(&'static str),
    /// Not bash, or bash that this analyser does not know for certain.
    #[error("the command has {0}, which cannot be analysed")]
    Syntax(&'static str),
}
