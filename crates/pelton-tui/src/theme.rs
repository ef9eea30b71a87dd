//! What everything looks like: one table of roles, and what a terminal can show of it.
//!
//! Nothing is told by colour alone: diffs have their signs, errors their words. So a terminal without colours loses
//! nothing but looks.

use ratatui_core::style::{Color, Modifier, Style};

mod palette; // colours made to fit a terminal that has few
mod table; // what each role looks like

#[cfg(test)]
mod tests;

/// What a piece of text is, so far as it has a look of its own.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Role {
    /// Ordinary words.
    Text,
    /// What matters less: hints, measures, branches of the tree.
    Faint,
    /// What matters more.
    Strong,
    /// Emphasis in what is said.
    Emphasis,
    /// Words that were struck out.
    Struck,
    /// The user's own words.
    Prompt,
    /// What can be chosen, and what the program calls attention to.
    Accent,
    /// What is chosen now.
    Selected,
    /// It went well.
    Success,
    /// Something to know.
    Warning,
    /// It went wrong.
    Error,
    Heading,
    Link,
    /// The address behind a link's words.
    Address,
    /// Code among words.
    Code,
    Quote,
    /// Marks of lists, and lines that part things.
    Mark,
    /// A mode in which the model only plans.
    ModePlan,
    /// A mode in which edits are not asked about.
    ModeEdits,
    /// A mode in which nothing is asked about.
    ModeBypass,
    Added,
    Removed,
    /// The very words that were added to a line.
    AddedWords,
    /// The very words that were taken from it.
    RemovedWords,
    LineNumber,
    /// Where in a file a part of a diff stands.
    Hunk,
    Keyword,
    Name,
    Type,
    Number,
    Quoted,
    Comment,
}

/// How many colours a terminal has.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum Depth {
    /// No sequence of any kind means anything to it.
    Bare,
    /// Bold and underlined, but no colour.
    Mono,
    Sixteen,
    TwoFiftySix,
    True,
}

/// What the terminal's background is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Ground {
    Dark,
    Light,
}

/// What the user said of looks, by the names that the setting `theme` knows.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Wanted {
    /// Unless it is to be found out.
    pub ground: Option<Ground>,
    /// Sixteen colours at most: those that the user gave the terminal.
    pub sixteen: bool,
    /// Without telling red from green.
    pub daltonized: bool,
}

impl Wanted {
    /// The names, as they are shown to whoever gave another.
    pub const NAMES: &'static [&'static str] =
        &["auto", "dark", "light", "dark-ansi", "light-ansi", "dark-daltonized", "light-daltonized"];

    /// What a name means; `None` if it is none of [`NAMES`](Self::NAMES).
    pub fn named(name: &str) -> Option<Self> {
        if !Self::NAMES.contains(&name) {
            return None;
        }
        let (ground, how) = name.split_once('-').unwrap_or((name, ""));
        let ground = match ground {
            "dark" => Some(Ground::Dark),
            "light" => Some(Ground::Light),
            _ => None,
        };
        Some(Self { ground, sixteen: how == "ansi", daltonized: how == "daltonized" })
    }
}

/// What the environment says of the terminal. Read at the edge, and passed in.
#[derive(Debug, Clone, Copy, Default)]
pub struct Surroundings<'a> {
    /// `TERM`.
    pub term: Option<&'a str>,
    /// `COLORTERM`.
    pub colorterm: Option<&'a str>,
    /// `NO_COLOR`: any value but an empty one.
    pub no_color: Option<&'a str>,
    /// `COLORFGBG`: foreground and background as numbers of the sixteen colours.
    pub colorfgbg: Option<&'a str>,
}

impl Surroundings<'_> {
    /// How many colours the terminal is said to have.
    pub fn depth(&self) -> Depth {
        let term = self.term.unwrap_or_default();
        if term.is_empty() || term == "dumb" {
            return Depth::Bare;
        }
        if self.no_color.is_some_and(|value| !value.is_empty()) {
            return Depth::Mono;
        }
        let colorterm = self.colorterm.unwrap_or_default().to_ascii_lowercase();
        if matches!(&*colorterm, "truecolor" | "24bit") || term.ends_with("-direct") {
            return Depth::True;
        }
        match term {
            "linux" | "ansi" | "cygwin" => Depth::Sixteen,
            // These are older than colours.
            "vt52" | "vt100" | "vt102" | "vt220" => Depth::Mono,
            _ if term.ends_with("-mono") || term.ends_with("-m") => Depth::Mono,
            _ if term.contains("256") => Depth::TwoFiftySix,
            // True colours, without the word for it in their names.
            "xterm-kitty" | "xterm-ghostty" | "alacritty" | "foot" | "wezterm" => Depth::True,
            _ => Depth::Sixteen,
        }
    }

    /// What the background is said to be; dark if nothing is.
    pub fn ground(&self) -> Ground {
        let background = self.colorfgbg.and_then(|said| said.rsplit(';').next()).map(str::trim);
        match background.and_then(|number| number.parse::<u8>().ok()) {
            Some(7 | 9..=15) => Ground::Light,
            _ => Ground::Dark,
        }
    }
}

/// How each role is shown on one terminal.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Theme {
    depth: Depth,
    ground: Ground,
    daltonized: bool,
    /// What the terminal can show, and what its background is said to be.
    terminal: (Depth, Ground),
}

impl Theme {
    /// What the user wants, so far as the terminal can show it.
    pub fn new(surroundings: Surroundings<'_>, wanted: Wanted) -> Self {
        Self::of(surroundings.depth(), surroundings.ground(), wanted)
    }

    /// The same terminal, when the user wants something else.
    pub fn wanting(&self, wanted: Wanted) -> Self {
        Self::of(self.terminal.0, self.terminal.1, wanted)
    }

    fn of(most: Depth, said: Ground, wanted: Wanted) -> Self {
        let depth = if wanted.sixteen { most.min(Depth::Sixteen) } else { most };
        let ground = wanted.ground.unwrap_or(said);
        Self { depth, ground, daltonized: wanted.daltonized, terminal: (most, said) }
    }

    /// No colours, and nothing in their place.
    pub const BARE: Self = Self {
        depth: Depth::Bare,
        ground: Ground::Dark,
        daltonized: false,
        terminal: (Depth::Bare, Ground::Dark),
    };

    pub fn depth(&self) -> Depth {
        self.depth
    }

    pub fn ground(&self) -> Ground {
        self.ground
    }

    /// The look of a role.
    pub fn style(&self, role: Role) -> Style {
        let look = table::look(role, self.daltonized);
        let modifier = match self.depth {
            Depth::Bare => Modifier::empty(),
            Depth::Mono => look.modifier | look.without_colour,
            _ => look.modifier,
        };
        let mut style = Style::new().add_modifier(modifier);
        style.fg = look.foreground.and_then(|shades| self.color(shades));
        style.bg = look.background.and_then(|shades| self.color(shades));
        style
    }

    fn color(&self, shades: table::Shades) -> Option<Color> {
        let shade = match self.ground {
            Ground::Dark => shades.on_dark,
            Ground::Light => shades.on_light,
        };
        match self.depth {
            Depth::Bare | Depth::Mono => None,
            Depth::Sixteen => shade.sixteen,
            Depth::TwoFiftySix => Some(Color::Indexed(palette::nearest(shade.rgb))),
            Depth::True => Some(Color::Rgb(shade.rgb.0, shade.rgb.1, shade.rgb.2)),
        }
    }
}
