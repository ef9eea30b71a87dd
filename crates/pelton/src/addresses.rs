//! Which addresses are everybody's: all but those that lead to this machine, to its neighbours, to the services a cloud keeps for its
//! machines, or to nobody. Pure.

use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};

/// Where a cloud answers the machines in it, at an address that looks like anybody's.
const CLOUD_SERVICES: [Ipv4Addr; 1] = [Ipv4Addr::new(168, 63, 129, 16)];

/// Whether an address is part of the open internet.
pub(crate) fn is_public(address: IpAddr) -> bool {
    match address {
        IpAddr::V4(address) => is_public_4(address),
        IpAddr::V6(address) => is_public_6(address),
    }
}

fn is_public_4(address: Ipv4Addr) -> bool {
    let [a, b, c, _] = address.octets();
    let shared = a == 100 && (64..128).contains(&b);
    let reserved = a == 0
        || a >= 240
        || (a == 192 && b == 0 && c == 0)
        || (a == 192 && b == 88 && c == 99)
        || (a == 198 && (b == 18 || b == 19));
    !(address.is_loopback()
        || address.is_private()
        || address.is_link_local()
        || address.is_multicast()
        || address.is_broadcast()
        || address.is_documentation()
        || shared
        || reserved
        || CLOUD_SERVICES.contains(&address))
}

fn is_public_6(address: Ipv6Addr) -> bool {
    let words = address.segments();
    // Addresses of the other kind in disguise count as what they are.
    let inner = address.to_ipv4_mapped().or(match words {
        [0x64, 0xff9b, 0, 0, 0, 0, high, low] | [0x2002, high, low, ..] => {
            Some(Ipv4Addr::from((u32::from(high) << 16) | u32::from(low)))
        }
        _ => None,
    });
    if let Some(inner) = inner {
        return is_public_4(inner);
    }
    // What is given out to everybody is below one prefix; all else is local, reserved, or for groups.
    let is_global = words[0] & 0xe000 == 0x2000;
    let for_protocols = words[0] == 0x2001 && words[1] < 0x200;
    let for_examples = (words[0] == 0x2001 && words[1] == 0xdb8) || words[0] & 0xfff0 == 0x3ff0;
    is_global && !for_protocols && !for_examples
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_addresses_of_the_open_internet_are_public() {
        for address in [
            "0.0.0.0",
            "0.1.2.3",
            "10.255.0.1",
            "100.64.0.1",
            "100.100.100.200",
            "127.0.0.1",
            "127.255.255.254",
            "168.63.129.16",
            "169.254.169.254",
            "172.16.0.1",
            "172.31.255.255",
            "192.0.0.192",
            "192.0.2.1",
            "192.88.99.1",
            "192.168.0.1",
            "198.18.0.1",
            "198.51.100.7",
            "203.0.113.9",
            "224.0.0.1",
            "239.255.255.250",
            "240.0.0.1",
            "255.255.255.255",
            "::",
            "::1",
            "::7f00:1",
            "::ffff:10.0.0.1",
            "::ffff:169.254.169.254",
            "64:ff9b::a00:1",
            "64:ff9b:1::1",
            "100::1",
            "2001::1",
            "2001:db8::1",
            "2002:a00:1::1",
            "3fff::1",
            "5f00::1",
            "fc00::1",
            "fd00:ec2::254",
            "fe80::1",
            "fec0::1",
            "ff02::1",
        ] {
            assert!(!is_public(address.parse().unwrap()), "{address}");
        }
        for address in [
            "1.1.1.1",
            "8.8.8.8",
            "100.63.255.255",
            "100.128.0.1",
            "172.15.0.1",
            "172.32.0.1",
            "192.167.1.1",
            "198.20.0.1",
            "2606:4700::1111",
            "2001:4860:4860::8888",
            "::ffff:1.1.1.1",
            "64:ff9b::808:808",
        ] {
            assert!(is_public(address.parse().unwrap()), "{address}");
        }
    }
}
