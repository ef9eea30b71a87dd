//! Rules, modes and the order they are asked in: deny, ask, protected paths, mode, allow, the read-only set, and
//! then a question. The first that matches decides. Pure: paths arrive resolved.

use std::fmt;
use std::path::{Path, PathBuf};
use std::str::FromStr;

use globset::{GlobBuilder, GlobMatcher};

/// How much runs without asking.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Default)]
pub enum Mode {
    /// Reads inside the working directories.
    #[default]
    Default,
    /// Edits inside the working directories too.
    AcceptEdits,
    /// Reads only; edits are never approved, whatever the allow rules say.
    Plan,
    /// Like `Default`, but what would be asked is denied.
    DontAsk,
    /// Everything that no deny or ask rule catches.
    BypassPermissions,
}

impl Mode {
    /// All of them.
    pub const ALL: [Self; 5] =
        [Self::Default, Self::AcceptEdits, Self::Plan, Self::DontAsk, Self::BypassPermissions];

    /// The mode of that name; `manual` is another name of the default.
    pub fn from_name(name: &str) -> Option<Self> {
        match name {
            "manual" => Some(Self::Default),
            name => Self::ALL.into_iter().find(|mode| mode.name() == name),
        }
    }

    /// The name users and clients write.
    pub fn name(self) -> &'static str {
        match self {
            Self::Default => "default",
            Self::AcceptEdits => "acceptEdits",
            Self::Plan => "plan",
            Self::DontAsk => "dontAsk",
            Self::BypassPermissions => "bypassPermissions",
        }
    }
}

/// One rule as users write it: `Tool` or `Tool(specifier)`.
#[derive(Debug, Clone)]
pub struct Rule {
    tool: String,
    specifier: Specifier,
    text: String,
}

#[derive(Debug, Clone)]
enum Specifier {
    /// Every call of the tool.
    Any,
    /// Shell commands whose text matches.
    Command(CommandPattern),
    /// Files whose path matches.
    Path(PathPattern),
    /// Agents of this kind.
    Agent(String),
}

/// Two names of one tool.
const AGENT_NAMES: [&str; 2] = ["Agent", "Task"];

/// The rule's text cannot be read.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("permission rule '{rule}': {problem}")]
pub struct RuleError {
    /// The rule as written.
    pub rule: String,
    /// What is wrong and what would be right.
    pub problem: String,
}

impl FromStr for Rule {
    type Err = RuleError;

    fn from_str(text: &str) -> Result<Self, RuleError> {
        let fail = |problem: String| RuleError { rule: text.to_owned(), problem };
        let trimmed = text.trim();
        let (tool, specifier) = match trimmed.split_once('(') {
            None => (trimmed, None),
            Some((tool, rest)) => {
                let inside =
                    rest.strip_suffix(')').ok_or_else(|| fail("the closing ')' is missing".into()))?;
                (tool, Some(inside))
            }
        };
        if tool.is_empty() || !tool.chars().all(|c| c.is_ascii_alphanumeric() || "_-*".contains(c)) {
            return Err(fail(
                "write a tool name, such as Bash, or a tool with a specifier, such as Bash(ls *)".into(),
            ));
        }
        let specifier = match (tool, specifier) {
            (_, None | Some("*" | "")) => Specifier::Any,
            ("Bash", Some(pattern)) => Specifier::Command(CommandPattern::new(pattern)),
            ("Read" | "Edit", Some(pattern)) => Specifier::Path(PathPattern::new(pattern).map_err(fail)?),
            ("Agent" | "Task", Some(kind)) => Specifier::Agent(kind.trim().to_owned()),
            (_, Some(_)) => {
                return Err(fail(format!(
                    "{tool} takes no specifier here; path rules are written Read(...) and Edit(...), commands Bash(...)"
                )));
            }
        };
        Ok(Self { tool: tool.to_owned(), specifier, text: trimmed.to_owned() })
    }
}

impl PartialEq for Rule {
    fn eq(&self, other: &Self) -> bool {
        // The rest is made of it.
        self.text == other.text
    }
}

impl Eq for Rule {}

impl fmt::Display for Rule {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.text)
    }
}

impl Rule {
    /// Whether it names the whole tool.
    pub fn is_bare(&self) -> bool {
        matches!(self.specifier, Specifier::Any)
    }

    /// The tool it speaks of.
    pub fn tool(&self) -> &str {
        &self.tool
    }

    /// Which calls of the tool it speaks of, as written; all if absent.
    pub fn content(&self) -> Option<&str> {
        self.text.split_once('(')?.1.strip_suffix(')')
    }

    fn names(&self, tool: &str) -> bool {
        let is_agent = |name: &str| AGENT_NAMES.contains(&name);
        self.tool == "*" || self.tool == tool || (is_agent(&self.tool) && is_agent(tool))
    }

    fn matches(&self, request: &Request<'_>, need: Need) -> bool {
        match &self.specifier {
            Specifier::Any => self.tool == "*" || self.governs(request),
            Specifier::Command(pattern) => match request.target {
                Target::Shell { command, .. } => self.tool == request.tool && pattern.matches(command, need),
                Target::Read(_) | Target::Edit(_) | Target::Agent(_) | Target::Nothing => false,
            },
            Specifier::Agent(kind) => matches!(request.target, Target::Agent(started) if started == kind),
            Specifier::Path(pattern) => match request.target {
                Target::Read(place) => self.governs(request) && pattern.matches(place, request.here, need),
                // A file that must not be read must not be written either.
                Target::Edit(place) => {
                    (self.tool == "Edit" || need == Need::Either)
                        && pattern.matches(place, request.here, need)
                }
                // What a command names it may read. No rule about files vouches for a command.
                Target::Shell { names, .. } => {
                    self.guards_reading()
                        && need == Need::Either
                        && names.iter().any(|place| pattern.matches(place, request.here, need))
                }
                Target::Agent(_) | Target::Nothing => false,
            },
        }
    }

    /// Whether it speaks of reading some files.
    fn guards_reading(&self) -> bool {
        self.tool == "Read" && matches!(self.specifier, Specifier::Path(_))
    }

    /// `Read` speaks for every tool that reads, `Edit` for every tool that writes.
    fn governs(&self, request: &Request<'_>) -> bool {
        self.tool == request.tool
            || match request.target {
                Target::Read(_) => self.tool == "Read",
                Target::Edit(_) => self.tool == "Edit",
                Target::Agent(_) => AGENT_NAMES.contains(&self.tool.as_str()),
                Target::Shell { .. } | Target::Nothing => false,
            }
    }
}

/// Allowing needs the path as given and its target to match; denying needs one of them.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Need {
    Both,
    Either,
}

#[derive(Debug, Clone)]
struct CommandPattern {
    /// The literal pieces between stars.
    pieces: Vec<String>,
    /// The pattern ended in ` *` or `:*`: the prefix alone also matches.
    prefix_alone: Option<String>,
}

impl CommandPattern {
    fn new(pattern: &str) -> Self {
        let pattern = blanks_folded(pattern);
        let prefix = pattern.strip_suffix(":*").or_else(|| pattern.strip_suffix(" *")).map(str::to_owned);
        let glob = match &prefix {
            Some(prefix) => format!("{prefix} *"),
            None => pattern,
        };
        Self { pieces: glob.split('*').map(str::to_owned).collect(), prefix_alone: prefix }
    }

    fn matches(&self, command: &str, need: Need) -> bool {
        // A pattern can only vouch for a command we can read word by word: anything a shell would expand, chain
        // or redirect could hide behind the star. Denying needs no such care.
        if need == Need::Both && self.pieces.len() > 1 && super::shell::plain_words(command).is_none() {
            return false;
        }
        let command = blanks_folded(command);
        if self.prefix_alone.as_deref() == Some(command.as_str()) {
            return true;
        }
        let (first, rest) = match self.pieces.split_first() {
            Some((first, [])) => return *first == command,
            Some((first, rest)) => (first, rest),
            None => return false,
        };
        let Some(mut left) = command.strip_prefix(first.as_str()) else { return false };
        let Some((last, middle)) = rest.split_last() else { return false };
        for piece in middle {
            match left.find(piece.as_str()) {
                Some(at) => left = &left[at + piece.len()..],
                None => return false,
            }
        }
        left.ends_with(last.as_str())
    }
}

/// Runs of blanks and tabs count as one blank.
fn blanks_folded(text: &str) -> String {
    text.split([' ', '\t']).filter(|word| !word.is_empty()).collect::<Vec<_>>().join(" ")
}

#[derive(Debug, Clone)]
struct PathPattern {
    anchor: Anchor,
    glob: GlobMatcher,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Anchor {
    /// `//x`: the root of the file system.
    Root,
    /// `~/x`: the user's home.
    Home,
    /// `/x`: the directory the session started in.
    Start,
    /// `x/y`, `./x`: the current directory.
    Here,
    /// `x`: any depth.
    Anywhere,
}

impl PathPattern {
    fn new(pattern: &str) -> Result<Self, String> {
        let (anchor, rest) = if let Some(rest) = pattern.strip_prefix("//") {
            (Anchor::Root, rest)
        } else if let Some(rest) = pattern.strip_prefix("~/") {
            (Anchor::Home, rest)
        } else if let Some(rest) = pattern.strip_prefix('/') {
            (Anchor::Start, rest)
        } else if let Some(rest) = pattern.strip_prefix("./") {
            (Anchor::Here, rest)
        } else if pattern.trim_end_matches('/').contains('/') {
            (Anchor::Here, pattern)
        } else {
            (Anchor::Anywhere, pattern)
        };
        // As in .gitignore, a directory speaks for everything below it.
        let rest = rest.trim_end_matches('/');
        let glob = format!("{{{rest},{rest}/**}}");
        let glob = GlobBuilder::new(&glob).literal_separator(true).build();
        Ok(Self { anchor, glob: glob.map_err(|error| error.to_string())?.compile_matcher() })
    }

    fn matches(&self, place: &Place, here: &Here, need: Need) -> bool {
        let given = self.matches_path(&place.given, here);
        let real = self.matches_path(&place.real, here);
        match need {
            Need::Both => given && real,
            Need::Either => given || real,
        }
    }

    fn matches_path(&self, path: &Path, here: &Here) -> bool {
        let below = |root: &Path| path.strip_prefix(root).is_ok_and(|rest| self.glob.is_match(rest));
        let below_one = |roots: &[PathBuf]| roots.iter().any(|root| below(root));
        match self.anchor {
            Anchor::Root => below(Path::new("/")),
            Anchor::Home => below_one(&here.home),
            Anchor::Start => below_one(&here.start),
            Anchor::Here => below_one(&here.cwd),
            Anchor::Anywhere => {
                path.ancestors().filter_map(Path::file_name).any(|name| self.glob.is_match(name))
            }
        }
    }
}

/// A path as given and where it really leads.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Place {
    pub given: PathBuf,
    pub real: PathBuf,
}

/// What relative words mean. Each directory is there in all its spellings: as it was given, and resolved.
#[derive(Debug, Clone)]
pub(super) struct Here {
    pub start: Vec<PathBuf>,
    pub cwd: Vec<PathBuf>,
    pub home: Vec<PathBuf>,
    /// The working directories.
    pub roots: Vec<PathBuf>,
    /// Directories of the session itself: what it has put there it may read.
    pub own: Vec<PathBuf>,
}

impl Here {
    /// Whether a path stays in the working directories, both by its letters and by where it leads.
    pub(super) fn contains(&self, place: &Place) -> bool {
        below(&self.roots, place)
    }

    /// Whether a file may be read because it is in a working directory, or in one of the session itself.
    pub(super) fn may_be_read(&self, place: &Place) -> bool {
        self.contains(place) || below(&self.own, place)
    }
}

fn below(roots: &[PathBuf], place: &Place) -> bool {
    let inside = |path: &Path| roots.iter().any(|root| path.starts_with(root));
    inside(&place.given) && inside(&place.real)
}

/// What a call touches, resolved.
#[derive(Debug, Clone, Copy)]
pub(super) enum Target<'a> {
    Read(&'a Place),
    Edit(&'a Place),
    /// `names` are the files its words may name; left out when no rule asks for them.
    Shell {
        command: &'a str,
        looks_only: bool,
        names: &'a [Place],
    },
    /// An agent of this kind is started.
    Agent(&'a str),
    /// Nothing but the conversation.
    Nothing,
}

/// One call to be judged.
#[derive(Debug, Clone, Copy)]
pub(super) struct Request<'a> {
    pub tool: &'a str,
    pub target: Target<'a>,
    pub here: &'a Here,
    /// What a hook said before.
    pub hook: HookSays<'a>,
}

/// What a hook that ran before a call said about it.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum HookSays<'a> {
    /// Nothing.
    #[default]
    Nothing,
    /// It may run. This takes the question's place, but overrides neither rules nor protected paths.
    Vouches,
    /// Somebody must be asked, whatever rules and mode allow; the text says why.
    Asks(&'a str),
}

/// All rules of a session.
#[derive(Debug, Clone, Default)]
pub struct RuleSet {
    /// What runs without asking.
    pub allow: Vec<Rule>,
    /// What is always asked for.
    pub ask: Vec<Rule>,
    /// What never runs.
    pub deny: Vec<Rule>,
}

/// What became of a call.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Verdict {
    /// It may run.
    Allow,
    /// It must not run; the text is for the model.
    Deny(String),
    /// Somebody has to be asked.
    Ask {
        /// Why, in a sentence.
        why: String,
        /// Why, for programs.
        cause: Cause,
    },
}

/// What makes a call one to be asked about.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub enum Cause {
    /// A rule wants it; its text.
    Rule(String),
    /// The path steers other programs.
    Protected(PathBuf),
    /// The path is outside the working directories.
    Outside(PathBuf),
    /// No rule and no mode allows it.
    Unapproved,
    /// A hook wants it.
    Hook,
    /// It is a question to a person.
    Person,
    /// The very same call has brought the very same again and again.
    Repetition,
}

impl Cause {
    /// The name in the protocol (`decision_reason_type`).
    pub fn name(&self) -> &'static str {
        match self {
            Self::Rule(_) => "rule",
            Self::Protected(_) => "safetyCheck",
            Self::Outside(_) => "workingDir",
            Self::Unapproved => "mode",
            Self::Hook => "hook",
            Self::Person | Self::Repetition => "other",
        }
    }
}

impl RuleSet {
    /// Whether a bare deny rule takes the tool away altogether.
    pub fn removes(&self, tool: &str) -> bool {
        self.deny.iter().any(|rule| rule.is_bare() && rule.names(tool))
    }

    /// Whether there are files that may not be read without more ado.
    pub(super) fn guards_reading(&self) -> bool {
        self.deny.iter().chain(&self.ask).any(Rule::guards_reading)
    }

    /// Whether this is such a file.
    pub(super) fn guards(&self, place: &Place, here: &Here) -> bool {
        let request = Request { tool: "Read", target: Target::Read(place), here, hook: HookSays::Nothing };
        self.deny
            .iter()
            .chain(&self.ask)
            .any(|rule| rule.guards_reading() && rule.matches(&request, Need::Either))
    }

    pub(super) fn judge(&self, mode: Mode, request: &Request<'_>) -> Verdict {
        if let Some(rule) = self.deny.iter().find(|rule| rule.matches(request, Need::Either)) {
            return Verdict::Deny(format!("Denied by the permission rule '{rule}'."));
        }
        if let Some(rule) = self.ask.iter().find(|rule| rule.matches(request, Need::Either)) {
            let why = format!("The permission rule '{rule}' asks for approval.");
            return question(mode, why, Cause::Rule(rule.to_string()));
        }
        if let HookSays::Asks(why) = request.hook {
            return question(mode, why.to_owned(), Cause::Hook);
        }
        if mode == Mode::BypassPermissions {
            return Verdict::Allow;
        }
        if let Target::Edit(place) = request.target
            && let Some(name) = protected(place)
        {
            let why = format!("{name} is protected and is never changed without approval.");
            return question(mode, why, Cause::Protected(place.given.clone()));
        }
        if request.hook == HookSays::Vouches {
            return Verdict::Allow;
        }
        let reading = match request.target {
            Target::Read(place) => request.here.may_be_read(place),
            Target::Shell { looks_only, .. } => looks_only,
            // What an agent does is judged when it does it.
            Target::Agent(_) | Target::Nothing => true,
            Target::Edit(_) => false,
        };
        if reading {
            return Verdict::Allow;
        }
        let reads = matches!(request.target, Target::Read(_));
        if mode == Mode::Plan && !reads {
            return Verdict::Deny("Plan mode: nothing may be changed before the plan is approved.".into());
        }
        if mode == Mode::AcceptEdits
            && matches!(request.target, Target::Edit(place) if request.here.contains(place))
        {
            return Verdict::Allow;
        }
        if self.allow.iter().any(|rule| rule.matches(request, Need::Both)) {
            return Verdict::Allow;
        }
        let outside = |place: &Place| match request.here.contains(place) {
            true => Cause::Unapproved,
            false => Cause::Outside(place.given.clone()),
        };
        let (why, cause) = match request.target {
            Target::Read(place) => {
                (format!("{} is outside the working directories.", place.given.display()), outside(place))
            }
            Target::Edit(place) => {
                (format!("Changing {} needs approval.", place.given.display()), outside(place))
            }
            Target::Shell { .. } | Target::Agent(_) | Target::Nothing => {
                ("This command needs approval.".to_owned(), Cause::Unapproved)
            }
        };
        question(mode, why, cause)
    }
}

pub(super) fn question(mode: Mode, why: String, cause: Cause) -> Verdict {
    match mode {
        Mode::DontAsk => Verdict::Deny(format!("{why} Nobody is asked in dontAsk mode.")),
        _ => Verdict::Ask { why, cause },
    }
}

/// Directories and files that steer other programs: changing them is as good as running a command.
const PROTECTED_DIRS: &[&str] =
    &[".git", ".vscode", ".idea", ".husky", ".cargo", ".devcontainer", ".yarn", ".mvn", ".claude"];
const PROTECTED_FILES: &[&str] = &[
    ".gitconfig",
    ".gitmodules",
    ".bashrc",
    ".bash_profile",
    ".bash_login",
    ".bash_aliases",
    ".bash_logout",
    ".zshrc",
    ".zprofile",
    ".zshenv",
    ".zlogin",
    ".zlogout",
    ".profile",
    ".envrc",
    ".npmrc",
    ".yarnrc",
    ".yarnrc.yml",
    ".pnp.cjs",
    ".pnp.loader.mjs",
    ".pnpmfile.cjs",
    "bunfig.toml",
    ".bunfig.toml",
    ".bazelrc",
    ".bazelversion",
    ".bazeliskrc",
    ".pre-commit-config.yaml",
    "lefthook.yml",
    "lefthook.yaml",
    ".lefthook.yml",
    ".lefthook.yaml",
    "gradle-wrapper.properties",
    "maven-wrapper.properties",
    ".devcontainer.json",
    ".ripgreprc",
    "pyrightconfig.json",
    ".mcp.json",
    ".claude.json",
];

/// The protected name a path goes through, if any. Case does not count: some file systems ignore it.
fn protected(place: &Place) -> Option<String> {
    [&place.given, &place.real].into_iter().find_map(|path| {
        let names: Vec<String> =
            path.components().map(|part| part.as_os_str().to_string_lossy().to_lowercase()).collect();
        let dir = names.iter().find(|name| PROTECTED_DIRS.contains(&name.as_str())).cloned();
        let git_config = names.windows(2).any(|pair| pair[0] == ".config" && pair[1] == "git");
        let file = names.last().filter(|name| PROTECTED_FILES.contains(&name.as_str())).cloned();
        dir.or(file).or(git_config.then(|| ".config/git".to_owned()))
    })
}

#[cfg(test)]
#[path = "rules_tests.rs"]
mod tests;
