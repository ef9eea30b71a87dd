//! How long a server keeps what it was sent.

/// How long a server keeps what stands in front of a cache mark, so that it need not be read again.
///
/// ```
/// use pelton_wire::cache::CacheLife;
///
/// assert_eq!(CacheLife::from_name("1h"), Some(CacheLife::OneHour));
/// assert_eq!(CacheLife::default().mark(), Some(r#"{"type":"ephemeral"}"#));
/// ```
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub enum CacheLife {
    /// Nothing is kept: there are no marks.
    Nothing,
    /// Five minutes after it was last used.
    #[default]
    FiveMinutes,
    /// An hour, for a higher price of writing.
    OneHour,
}

impl CacheLife {
    /// The one that settings call so.
    pub fn from_name(name: &str) -> Option<Self> {
        match name {
            "5m" => Some(Self::FiveMinutes),
            "1h" => Some(Self::OneHour),
            _ => None,
        }
    }

    /// What hooks are told, where anything is kept.
    pub fn name(self) -> Option<&'static str> {
        match self {
            Self::Nothing => None,
            Self::FiveMinutes => Some("5m"),
            Self::OneHour => Some("1h"),
        }
    }

    /// The value of `cache_control` in a request. Servers take five minutes where nothing is said.
    pub fn mark(self) -> Option<&'static str> {
        match self {
            Self::Nothing => None,
            Self::FiveMinutes => Some(r#"{"type":"ephemeral"}"#),
            Self::OneHour => Some(r#"{"type":"ephemeral","ttl":"1h"}"#),
        }
    }
}
