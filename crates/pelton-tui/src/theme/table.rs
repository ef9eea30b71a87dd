//! What each role looks like. A row has the colour on a dark and on a light background, as true colour and as one
//! of the sixteen, and what makes up for it where there are no colours.

use ratatui_core::style::{Color, Modifier};

use super::Role;
use super::palette::Rgb;

#[derive(Clone, Copy)]
pub(super) struct Look {
    pub foreground: Option<Shades>,
    pub background: Option<Shades>,
    pub modifier: Modifier,
    /// Besides, where there are no colours.
    pub without_colour: Modifier,
}

#[derive(Clone, Copy)]
pub(super) struct Shades {
    pub on_dark: Shade,
    pub on_light: Shade,
}

#[derive(Clone, Copy)]
pub(super) struct Shade {
    pub rgb: Rgb,
    /// None where one of the user's own colours could make the text unreadable.
    pub sixteen: Option<Color>,
}

const PLAIN: Look = Look {
    foreground: None,
    background: None,
    modifier: Modifier::empty(),
    without_colour: Modifier::empty(),
};

const fn shade(rgb: u32, sixteen: Option<Color>) -> Shade {
    let [_, red, green, blue] = rgb.to_be_bytes();
    Shade { rgb: (red, green, blue), sixteen }
}

/// A colour on dark and on light ground, and what it is among the sixteen.
const fn colour(dark: u32, on_dark: Color, light: u32, on_light: Color) -> Look {
    let shades = Shades { on_dark: shade(dark, Some(on_dark)), on_light: shade(light, Some(on_light)) };
    Look { foreground: Some(shades), ..PLAIN }
}

/// Behind the words; not among the sixteen, where it would drown them.
const fn behind(look: Look, dark: u32, light: u32) -> Look {
    Look { background: Some(Shades { on_dark: shade(dark, None), on_light: shade(light, None) }), ..look }
}

const fn with(look: Look, modifier: Modifier) -> Look {
    Look { modifier, ..look }
}

const fn or(look: Look, without_colour: Modifier) -> Look {
    Look { without_colour, ..look }
}

const GREEN: Look = colour(0x7EC97E, Color::Green, 0x1A7F37, Color::Green);
const RED: Look = colour(0xF0807A, Color::Red, 0xB42318, Color::Red);
const YELLOW: Look = colour(0xE2B86B, Color::Yellow, 0x8A5A00, Color::Yellow);
const BLUE: Look = colour(0x7AB0F5, Color::LightBlue, 0x0B57C2, Color::Blue);
const CYAN: Look = colour(0x6CC7CF, Color::Cyan, 0x0B6E78, Color::Cyan);
const VIOLET: Look = colour(0xC39BEF, Color::Magenta, 0x7A34BF, Color::Magenta);
const ORANGE: Look = colour(0xF0A35E, Color::Yellow, 0xA04A00, Color::Yellow);
const GREY: Look = colour(0x8C929B, Color::DarkGray, 0x6B7280, Color::DarkGray);

pub(super) fn look(role: Role, daltonized: bool) -> Look {
    // Blue and orange are told apart by nearly everybody.
    let (added, removed) = if daltonized { (BLUE, ORANGE) } else { (GREEN, RED) };
    let (added_behind, removed_behind) = if daltonized {
        ((0x1F3F66, 0xCFE2FF), (0x5A3512, 0xFFDDBD))
    } else {
        ((0x1F4D2B, 0xC4F0CE), (0x5C2426, 0xFFD2CF))
    };
    match role {
        Role::Text => PLAIN,
        Role::Faint => or(GREY, Modifier::DIM),
        Role::Strong => with(PLAIN, Modifier::BOLD),
        Role::Emphasis => with(PLAIN, Modifier::ITALIC),
        Role::Struck => with(PLAIN, Modifier::CROSSED_OUT),
        Role::Prompt => or(CYAN, Modifier::BOLD),
        Role::Accent => or(BLUE, Modifier::BOLD),
        Role::Selected => or(with(BLUE, Modifier::BOLD), Modifier::REVERSED),
        Role::Success => added,
        Role::Warning => or(YELLOW, Modifier::BOLD),
        Role::Error => or(removed, Modifier::BOLD),
        Role::Heading => with(BLUE, Modifier::BOLD),
        Role::Link => with(BLUE, Modifier::UNDERLINED),
        Role::Address => or(GREY, Modifier::DIM),
        Role::Code => CYAN,
        Role::Quote => with(GREY, Modifier::ITALIC),
        Role::Mark => or(GREY, Modifier::DIM),
        Role::ModePlan => or(CYAN, Modifier::BOLD),
        Role::ModeEdits => or(VIOLET, Modifier::BOLD),
        Role::ModeBypass => or(with(RED, Modifier::BOLD), Modifier::REVERSED),
        Role::Added => added,
        Role::Removed => removed,
        // Sixteen colours have no quiet backgrounds: there, as without any, the words are underlined.
        Role::AddedWords => {
            or(with(behind(added, added_behind.0, added_behind.1), Modifier::BOLD), Modifier::UNDERLINED)
        }
        Role::RemovedWords => or(
            with(behind(removed, removed_behind.0, removed_behind.1), Modifier::BOLD),
            Modifier::UNDERLINED,
        ),
        Role::LineNumber => or(GREY, Modifier::DIM),
        Role::Hunk => or(CYAN, Modifier::DIM),
        Role::Keyword => VIOLET,
        Role::Name => BLUE,
        Role::Type => CYAN,
        Role::Number => ORANGE,
        Role::Quoted => GREEN,
        Role::Comment => with(GREY, Modifier::ITALIC),
    }
}
