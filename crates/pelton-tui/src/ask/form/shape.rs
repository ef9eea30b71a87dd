//! What a text has to be: the formats that servers may name.

use jiff::Timestamp;
use jiff::civil::Date;
use url::Url;

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Shape {
    Mail,
    Address,
    Day,
    Moment,
}

/// Characters of a day as it is written: other forms of it are not what servers expect.
const DAY_CHARS: usize = 10;

impl Shape {
    /// `None`: whatever it is called, everything may stand there.
    pub fn of(format: &str) -> Option<Self> {
        Some(match format {
            "email" => Self::Mail,
            "uri" => Self::Address,
            "date" => Self::Day,
            "date-time" => Self::Moment,
            _ => return None,
        })
    }

    /// In a few words, behind the title.
    pub fn hint(self) -> &'static str {
        match self {
            Self::Mail => " (a mail address)",
            Self::Address => " (an address with https:// or the like)",
            Self::Day => " (year-month-day)",
            Self::Moment => " (date and time)",
        }
    }

    /// By an example.
    pub fn example(self) -> &'static str {
        match self {
            Self::Mail => "a mail address, as name@example.org",
            Self::Address => "a whole address, as https://example.org",
            Self::Day => "a day, as 2026-01-31",
            Self::Moment => "a moment with its time zone, as 2026-01-31T18:30:00Z",
        }
    }

    /// Whether a text is that.
    pub fn fits(self, text: &str) -> bool {
        match self {
            Self::Mail => text.rsplit_once('@').is_some_and(|(name, host)| {
                let is_whole = |part: &str| !part.is_empty() && !part.contains(char::is_whitespace);
                is_whole(name) && is_whole(host) && !host.starts_with('.') && !host.ends_with('.')
            }),
            Self::Address => Url::parse(text).is_ok(),
            Self::Day => text.len() == DAY_CHARS && text.parse::<Date>().is_ok(),
            Self::Moment => text.parse::<Timestamp>().is_ok(),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_format_takes_what_it_names_and_nothing_else() {
        for (format, good, bad) in [
            (
                "email",
                &["a@b.org", "a.b+c@localhost", "\"a@b\"@c.org"][..],
                &["a", "@b", "a@", "a b@c", "a@.org", "a@b."][..],
            ),
            (
                "uri",
                &["https://a.org/b?c=d#e", "mailto:a@b.org", "urn:x:1"],
                &["a.org", "/a", "https://", "a b"],
            ),
            (
                "date",
                &["2026-02-28", "2024-02-29"],
                &["2026-02-29", "2026-13-01", "28.2.2026", "20260228", "2026-02-28T10:00:00Z"],
            ),
            (
                "date-time",
                &["2026-02-28T10:00:00Z", "2026-02-28T10:00:00.5+01:00"],
                &["2026-02-28", "2026-02-28T10:00:00", "now"],
            ),
        ] {
            let shape = Shape::of(format).unwrap();
            good.iter().for_each(|text| assert!(shape.fits(text), "{format}: {text}"));
            bad.iter().for_each(|text| assert!(!shape.fits(text), "{format}: {text}"));
        }
        assert_eq!(Shape::of("hostname"), None);
    }
}
