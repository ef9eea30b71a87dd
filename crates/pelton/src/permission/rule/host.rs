//! Patterns over names of hosts, compared label by label, and addresses, compared as numbers.

use std::net::IpAddr;

use url::Url;

use super::command::glob;

/// `*.x` is any name below `x`, but not `x`; any other `*` stays within its label; `*` alone is every host.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct HostPattern {
    /// The labels, the last first.
    labels: Vec<String>,
    /// Any number of labels, but one, may stand before them.
    below: bool,
    /// It is an address, however it is written.
    address: Option<IpAddr>,
}

impl HostPattern {
    /// `None` if no host has such a name.
    pub fn new(pattern: &str) -> Option<Self> {
        let pattern = pattern.trim().to_ascii_lowercase();
        if let Some(address) = address(&pattern) {
            return Some(Self { labels: labels(&pattern), below: false, address: Some(address) });
        }
        let (below, rest) = match pattern.strip_prefix("*.") {
            Some(rest) => (true, rest),
            None => (false, pattern.as_str()),
        };
        let labels = labels(rest);
        let sound = |label: &String| !label.is_empty() && !label.contains(['/', ':', '@', ' ']);
        labels.iter().all(sound).then_some(Self { labels, below, address: None })
    }

    /// Whether it is every host.
    pub fn is_any(&self) -> bool {
        !self.below && self.labels == ["*"]
    }

    /// Whether it is one host.
    pub fn is_one(&self) -> bool {
        !self.below && !self.labels.iter().any(|label| label.contains('*'))
    }

    pub fn matches(&self, host: &str) -> bool {
        if self.address.is_some() {
            return self.address == address(host);
        }
        let host = labels(&host.to_ascii_lowercase());
        let fits = match self.below {
            true => host.len() > self.labels.len(),
            false => host.len() == self.labels.len(),
        };
        self.is_any() || (fits && self.labels.iter().zip(&host).all(|(pattern, label)| glob(pattern, label)))
    }
}

fn labels(host: &str) -> Vec<String> {
    host.strip_suffix('.').unwrap_or(host).rsplit('.').map(str::to_owned).collect()
}

/// `::1`, `[::1]`, `10.0.0.1`: one number for all spellings of it.
fn address(host: &str) -> Option<IpAddr> {
    let host = host.trim();
    let bare = host.strip_prefix('[').and_then(|host| host.strip_suffix(']')).unwrap_or(host);
    bare.parse().ok().map(|address: IpAddr| address.to_canonical())
}

/// The host of an address, if it has one: as whoever fetches it will spell it.
pub(in super::super) fn host_of(url: &str) -> Option<String> {
    let spelled = spelled_host(url)?;
    let whole = if url.contains("://") { Url::parse(url) } else { Url::parse(&format!("https://{url}")) };
    let asked = whole.ok().and_then(|url| url.host_str().map(str::to_owned));
    let host = asked.unwrap_or_else(|| spelled.to_owned());
    Some(host.trim_matches(['[', ']']).to_owned())
}

/// The host as it is written.
fn spelled_host(url: &str) -> Option<&str> {
    let rest = match url.split_once("://") {
        Some((scheme, rest)) if scheme.chars().all(|c| c.is_ascii_alphanumeric() || "+-.".contains(c)) => {
            rest
        }
        // Whoever fetches it puts the scheme before it.
        _ => url,
    };
    // A backslash is a slash to those who follow addresses.
    let authority = rest.split(['/', '?', '#', '\\']).next()?;
    let host = authority.rsplit_once('@').map_or(authority, |(_, host)| host);
    let host = match host.strip_prefix('[') {
        Some(address) => address.split(']').next()?,
        None => host.split(':').next()?,
    };
    (!host.is_empty() && !host.contains(char::is_whitespace)).then_some(host)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn hosts_are_compared_label_by_label() {
        for (pattern, host, expected) in [
            ("example.com", "example.com", true),
            ("Example.COM.", "example.com", true),
            ("example.com", "EXAMPLE.com.", true),
            ("example.com", "www.example.com", false),
            ("example.com", "example.com.evil.org", false),
            ("example.com", "badexample.com", false),
            ("*.example.com", "a.b.example.com", true),
            ("*.example.com", "example.com", false),
            ("*.example.com", "badexample.com", false),
            ("api-*.example.com", "api-1.example.com", true),
            ("api-*.example.com", "api-1.x.example.com", false),
            ("a.*.com", "a.b.com", true),
            ("*", "anything.at.all", true),
            ("::1", "[::1]", true),
            ("[::1]", "0:0:0:0:0:0:0:1", true),
            ("[2001:DB8::1]", "2001:db8:0::1", true),
            ("10.0.0.1", "::ffff:10.0.0.1", true),
            ("::1", "::2", false),
            ("*.example.com", "::1", false),
            ("*", "::1", true),
        ] {
            assert_eq!(HostPattern::new(pattern).unwrap().matches(host), expected, "{pattern} {host}");
        }
        assert!(HostPattern::new("a..b").is_none() && HostPattern::new("http://x").is_none());
    }

    #[test]
    fn the_host_is_the_one_that_is_asked() {
        for (url, host) in [
            ("https://example.com/x", Some("example.com")),
            ("https://example.com@evil.org/", Some("evil.org")),
            ("https://evil.org\\@example.com/", Some("evil.org")),
            ("https://example.com:8080?x", Some("example.com")),
            ("http://[::1]:80/", Some("::1")),
            ("example.com/x", Some("example.com")),
            ("https:///x", None),
            ("https://ex%61mple.COM/", Some("example.com")),
            ("http://16843009/", Some("1.1.1.1")),
            ("http://0x7f.1/", Some("127.0.0.1")),
            ("http://[0:0::1]/", Some("::1")),
        ] {
            assert_eq!(host_of(url).as_deref(), host, "{url}");
        }
    }
}
