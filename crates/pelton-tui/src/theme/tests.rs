use super::*;

fn surroundings<'a>(term: &'a str, colorterm: &'a str, no_color: &'a str) -> Surroundings<'a> {
    Surroundings { term: Some(term), colorterm: Some(colorterm), no_color: Some(no_color), colorfgbg: None }
}

#[test]
fn a_terminal_is_known_by_what_is_said_of_it() {
    for (term, colorterm, no_color, depth) in [
        ("", "", "", Depth::Bare),
        ("dumb", "truecolor", "", Depth::Bare),
        ("dumb", "", "1", Depth::Bare),
        ("xterm-256color", "truecolor", "1", Depth::Mono),
        ("xterm-256color", "truecolor", "", Depth::True),
        ("xterm-256color", "24bit", "", Depth::True),
        ("xterm-256color", "TrueColor", "", Depth::True),
        ("xterm-256color", "yes", "", Depth::TwoFiftySix),
        ("tmux-256color", "", "", Depth::TwoFiftySix),
        ("screen", "", "", Depth::Sixteen),
        ("xterm", "", "", Depth::Sixteen),
        ("linux", "", "", Depth::Sixteen),
        ("vt100", "", "", Depth::Mono),
        ("xterm-mono", "", "", Depth::Mono),
        ("xterm-direct", "", "", Depth::True),
        ("alacritty", "", "", Depth::True),
    ] {
        assert_eq!(surroundings(term, colorterm, no_color).depth(), depth, "{term} {colorterm} {no_color}");
    }
    assert_eq!(Surroundings::default().depth(), Depth::Bare);
}

#[test]
fn the_background_is_what_the_terminal_says_unless_the_user_does() {
    for (said, ground) in [
        (None, Ground::Dark),
        (Some("15;0"), Ground::Dark),
        (Some("0;15"), Ground::Light),
        (Some("0;default;15"), Ground::Light),
        (Some("0;7"), Ground::Light),
        (Some("7;8"), Ground::Dark),
        (Some("default"), Ground::Dark),
        (Some("0;999"), Ground::Dark),
        (Some(""), Ground::Dark),
    ] {
        let surroundings = Surroundings { colorfgbg: said, ..Surroundings::default() };
        assert_eq!(surroundings.ground(), ground, "{said:?}");
        let theme = Theme::new(surroundings, Wanted::named("light").unwrap());
        assert_eq!(theme.ground(), Ground::Light);
    }
}

#[test]
fn every_name_means_something_and_no_other_does() {
    for name in Wanted::NAMES {
        assert!(Wanted::named(name).is_some(), "{name}");
    }
    assert_eq!(Wanted::named("auto"), Some(Wanted::default()));
    let wanted = Wanted::named("light-ansi").unwrap();
    assert_eq!((wanted.ground, wanted.sixteen, wanted.daltonized), (Some(Ground::Light), true, false));
    for other in ["", "Dark", "auto-ansi", "dark-", "solarized"] {
        assert_eq!(Wanted::named(other), None, "{other}");
    }
}

const ROLES: &[Role] = &[
    Role::Text,
    Role::Faint,
    Role::Strong,
    Role::Emphasis,
    Role::Struck,
    Role::Prompt,
    Role::Accent,
    Role::Selected,
    Role::Success,
    Role::Warning,
    Role::Error,
    Role::Heading,
    Role::Link,
    Role::Address,
    Role::Code,
    Role::Quote,
    Role::Mark,
    Role::ModePlan,
    Role::ModeEdits,
    Role::ModeBypass,
    Role::Added,
    Role::Removed,
    Role::AddedWords,
    Role::RemovedWords,
    Role::LineNumber,
    Role::Hunk,
    Role::Keyword,
    Role::Name,
    Role::Type,
    Role::Number,
    Role::Quoted,
    Role::Comment,
];

#[test]
fn no_terminal_is_sent_more_than_it_has() {
    for role in ROLES {
        assert_eq!(Theme::BARE.style(*role), Style::new(), "{role:?}");
        let mono = Theme::new(surroundings("xterm", "", "1"), Wanted::default()).style(*role);
        assert_eq!((mono.fg, mono.bg), (None, None), "{role:?}");
        let few = Theme::new(surroundings("xterm", "", ""), Wanted::default()).style(*role);
        assert!(!matches!(few.fg, Some(Color::Rgb(..) | Color::Indexed(_))), "{role:?}");
        assert_eq!(few.bg, None, "{role:?}");
        let many = Theme::new(surroundings("xterm-256color", "", ""), Wanted::default()).style(*role);
        assert!(matches!(many.fg, None | Some(Color::Indexed(16..))), "{role:?}");
        let ansi =
            Theme::new(surroundings("xterm-256color", "truecolor", ""), Wanted::named("dark-ansi").unwrap());
        assert_eq!(ansi.style(*role), few, "{role:?}");
    }
}

/// Contrast of true colours against black and white: readable on what they are meant for.
#[test]
fn words_can_be_read_on_their_ground() {
    let luminance = |color: Color| {
        let Color::Rgb(red, green, blue) = color else { panic!("{color:?} is no true colour") };
        let linear = |value: u8| {
            let value = f64::from(value) / 255.0;
            if value <= 0.04045 { value / 12.92 } else { ((value + 0.055) / 1.055).powf(2.4) }
        };
        0.2126 * linear(red) + 0.7152 * linear(green) + 0.0722 * linear(blue)
    };
    for name in ["dark", "light", "dark-daltonized", "light-daltonized"] {
        let theme = Theme::new(surroundings("xterm", "truecolor", ""), Wanted::named(name).unwrap());
        let ground = if theme.ground() == Ground::Dark { 0.0 } else { 1.0 };
        for role in ROLES {
            let style = theme.style(*role);
            let Some(fg) = style.fg else { continue };
            let bg = style.bg.map_or(ground, luminance);
            let (light, dark) = (luminance(fg).max(bg), luminance(fg).min(bg));
            let contrast = (light + 0.05) / (dark + 0.05);
            assert!(contrast >= 4.0, "{name} {role:?}: {contrast:.1}");
        }
    }
}

#[test]
fn another_wish_is_met_by_the_same_terminal() {
    let wishes: Vec<Wanted> = Wanted::NAMES.iter().filter_map(|name| Wanted::named(name)).collect();
    for (term, colorterm, no_color) in [
        ("xterm", None, None),
        ("xterm", Some("truecolor"), None),
        ("xterm", Some("truecolor"), Some("1")),
        ("dumb", None, None),
    ] {
        let around = Surroundings { term: Some(term), colorterm, no_color, colorfgbg: Some("0;15") };
        for (one, other) in wishes.iter().flat_map(|one| wishes.iter().map(move |other| (*one, *other))) {
            assert_eq!(Theme::new(around, one).wanting(other), Theme::new(around, other));
        }
    }
    assert_eq!(Theme::BARE.wanting(Wanted::default()), Theme::BARE);
}
