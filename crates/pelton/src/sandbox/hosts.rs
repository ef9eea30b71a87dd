//! Which hosts commands may reach: names compared label by label, and addresses that are nobody's business. Pure.

use std::net::IpAddr;

use crate::addresses::is_public;

/// Hosts by their names. `*.x` stands for everything below `x` and not for `x`; any other `*` stays within one label; a `*` alone is
/// every host.
#[derive(Debug, Clone, Default)]
pub(crate) struct Hosts {
    pub allowed: Vec<String>,
    pub denied: Vec<String>,
}

impl Hosts {
    /// Whether a host may be reached, as far as its name says.
    pub fn allow(&self, host: &str) -> bool {
        !self.deny(host) && self.allowed.iter().any(|pattern| matches(pattern, host))
    }

    /// Whether a host may not be reached, whoever is asked.
    pub fn deny(&self, host: &str) -> bool {
        self.denied.iter().any(|pattern| matches(pattern, host))
    }

    /// Whether an address may be reached that a name stands for. Those that lead to this machine, to its neighbours and to the
    /// services of clouds have to be named themselves.
    pub fn allow_address(&self, host: &str, address: IpAddr) -> bool {
        let same = |pattern: &String| {
            let pattern = plain(pattern);
            is_address(&pattern, address) || pattern == "localhost" && plain(host) == "localhost"
        };
        let denied = self.denied.iter().any(|pattern| is_address(&plain(pattern), address));
        !denied && (is_public(address) || self.allowed.iter().any(same))
    }
}

fn matches(pattern: &str, host: &str) -> bool {
    let (pattern, host) = (plain(pattern), plain(host));
    if pattern == "*" || pattern == host {
        return true;
    }
    // An address is not made of labels, and has many spellings.
    if let Ok(address) = host.parse() {
        return is_address(&pattern, address);
    }
    if host.is_empty() {
        return false;
    }
    let labels = |name: &str| name.split('.').map(str::to_owned).collect::<Vec<_>>();
    let (mut wanted, mut given) = (labels(&pattern), labels(&host));
    if wanted.first().is_some_and(|label| label == "*") {
        wanted.remove(0);
        // At least one label is below.
        if given.len() <= wanted.len() {
            return false;
        }
        given.drain(..given.len() - wanted.len());
    }
    wanted.len() == given.len()
        && wanted.iter().zip(&given).all(|(wanted, given)| label_matches(wanted, given))
}

fn label_matches(pattern: &str, label: &str) -> bool {
    let mut pieces = pattern.split('*');
    let Some(mut left) = pieces.next().and_then(|first| label.strip_prefix(first)) else { return false };
    let mut pieces: Vec<&str> = pieces.collect();
    let Some(last) = pieces.pop() else { return left.is_empty() };
    for piece in pieces {
        match left.find(piece) {
            Some(at) => left = &left[at + piece.len()..],
            None => return false,
        }
    }
    left.ends_with(last)
}

/// Whether a text is that address, however it is written.
fn is_address(text: &str, address: IpAddr) -> bool {
    text.parse().is_ok_and(|named: IpAddr| named.to_canonical() == address.to_canonical())
}

/// In small letters, without the dot that ends a whole name and without the brackets of an address.
fn plain(name: &str) -> String {
    let name = name.trim().trim_start_matches('[').trim_end_matches(']');
    name.strip_suffix('.').unwrap_or(name).to_ascii_lowercase()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_are_compared_label_by_label() {
        for (pattern, host) in [
            ("example.com", "EXAMPLE.com."),
            ("*.example.com", "a.example.com"),
            ("*.example.com", "a.b.example.com"),
            ("api-*.example.com", "api-1.example.com"),
            ("a*c.x", "abbc.x"),
            ("*", "anything.at.all"),
            ("10.0.0.1", "10.0.0.1"),
            ("::1", "[::1]"),
            ("[0:0::1]", "::1"),
            ("2001:DB8::1", "[2001:db8:0:0::1]"),
            ("::ffff:10.0.0.1", "10.0.0.1"),
        ] {
            assert!(matches(pattern, host), "{pattern} {host}");
        }
        for (pattern, host) in [
            ("example.com", "example.com.evil.org"),
            ("example.com", "notexample.com"),
            ("example.com", "a.example.com"),
            ("*.example.com", "example.com"),
            ("*.example.com", "evilexample.com"),
            ("api-*.example.com", "api-1.evil.example.com"),
            ("*.0.0.1", "10.0.0.1"),
            ("*.com", "com"),
            ("", "x"),
            ("x", ""),
        ] {
            assert!(!matches(pattern, host), "{pattern} {host}");
        }
    }

    #[test]
    fn addresses_that_are_nobodys_business_have_to_be_named() {
        let hosts = |allowed: &[&str], denied: &[&str]| Hosts {
            allowed: allowed.iter().map(ToString::to_string).collect(),
            denied: denied.iter().map(ToString::to_string).collect(),
        };
        let all = hosts(&["*"], &[]);
        for address in [
            "127.0.0.1",
            "10.1.2.3",
            "172.16.0.1",
            "192.168.1.1",
            "169.254.169.254",
            "100.64.0.1",
            "0.0.0.0",
            "255.255.255.255",
            "224.0.0.1",
            "::1",
            "::",
            "fe80::1",
            "fd00::1",
            "::ffff:127.0.0.1",
            "64:ff9b::7f00:1",
            "2002:7f00:1::",
            "ff02::1",
        ] {
            assert!(!all.allow_address("x", address.parse().unwrap()), "{address}");
        }
        for address in ["1.1.1.1", "2606:4700::1111", "172.32.0.1", "::ffff:1.1.1.1"] {
            assert!(all.allow_address("x", address.parse().unwrap()), "{address}");
        }
        let some = hosts(&["localhost", "10.0.0.7"], &["1.1.1.1", "*.evil.org"]);
        assert!(some.allow_address("localhost", "127.0.0.1".parse().unwrap()));
        assert!(!some.allow_address("x.org", "127.0.0.1".parse().unwrap()), "another name for it is not it");
        assert!(some.allow_address("10.0.0.7", "10.0.0.7".parse().unwrap()));
        assert!(!some.allow_address("x", "1.1.1.1".parse().unwrap()));
        assert!(!hosts(&["*"], &["*.evil.org"]).allow("a.evil.org"), "a denial wins");
    }
}
