//! Which addresses a request may reach. Without permission only public ones: a workflow must not be a way
//! into the network that its host happens to stand in. Names are checked after they are resolved, on the
//! very addresses that are then connected to, so that a name cannot mean one thing here and another there.

use std::fmt;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};

use reqwest::Url;

/// Why an address is not reached.
#[derive(Clone, Debug, Eq, PartialEq)]
pub(crate) enum Refused {
    Scheme { scheme: String },
    Address { host: String, address: IpAddr, why: &'static str },
}

impl fmt::Display for Refused {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Refused::Scheme { scheme } => {
                write!(f, "http_request speaks http and https, not {scheme}")
            }
            Refused::Address { host, address, why } => write!(
                f,
                "http_request may not reach {host}: {address} is {why}; `allow_private: true` on the action, or \
                 the host in the setting `allow_hosts`, permits it"
            ),
        }
    }
}

impl std::error::Error for Refused {}

/// Whether this address may be asked, as far as it can be told before its name is resolved.
pub(crate) fn check(url: &Url, permitted: bool) -> Result<(), Refused> {
    if !matches!(url.scheme(), "http" | "https") {
        return Err(Refused::Scheme { scheme: url.scheme().to_owned() });
    }
    let host = url.host_str().unwrap_or_default();
    match host.trim_matches(['[', ']']).parse::<IpAddr>() {
        Ok(address) if !permitted => check_address(host, address),
        _ => Ok(()),
    }
}

pub(super) fn check_address(host: &str, address: IpAddr) -> Result<(), Refused> {
    match not_public(address) {
        None => Ok(()),
        Some(why) => Err(Refused::Address { host: host.to_owned(), address, why }),
    }
}

/// Whether the settings name this host, with this port or without one.
pub(crate) fn is_listed(url: &Url, allowed: &[String]) -> bool {
    let Some(host) = url.host_str() else { return false };
    let bare = host.trim_matches(['[', ']']);
    let port = url.port_or_known_default().unwrap_or_default();
    let forms = [host.to_owned(), bare.to_owned(), format!("{host}:{port}")];
    allowed.iter().any(|entry| forms.iter().any(|form| form.eq_ignore_ascii_case(entry.trim())))
}

/// What an address is, if it is not one of the public internet.
fn not_public(address: IpAddr) -> Option<&'static str> {
    match address {
        IpAddr::V4(address) => not_public_v4(address),
        IpAddr::V6(address) => not_public_v6(address),
    }
}

fn not_public_v4(address: Ipv4Addr) -> Option<&'static str> {
    let [a, b, c, _] = address.octets();
    Some(match (a, b, c) {
        (0, ..) => "unspecified",
        (127, ..) => "this machine",
        (10, ..) | (192, 168, _) => "private",
        (172, 16..=31, _) => "private",
        (169, 254, _) => "link-local, where clouds keep their credentials",
        (100, 64..=127, _) => "shared by a provider",
        (192, 0, 0) | (192, 88, 99) | (198, 18..=19, _) => "reserved",
        (192, 0, 2) | (198, 51, 100) | (203, 0, 113) => "for documentation",
        (224..=239, ..) => "multicast",
        (240.., ..) => "reserved",
        _ => return None,
    })
}

fn not_public_v6(address: Ipv6Addr) -> Option<&'static str> {
    let segments = address.segments();
    let embedded = |high: u16, low: u16| {
        let [a, b] = high.to_be_bytes();
        let [c, d] = low.to_be_bytes();
        not_public_v4(Ipv4Addr::new(a, b, c, d))
    };
    match segments {
        [0, 0, 0, 0, 0, 0, 0, 0] => Some("unspecified"),
        [0, 0, 0, 0, 0, 0, 0, 1] => Some("this machine"),
        // An IPv4 address in one of its other clothes is what it is.
        [0, 0, 0, 0, 0, 0xffff, high, low] | [0, 0, 0, 0, 0xffff, 0, high, low] => embedded(high, low),
        [0x64, 0xff9b, 0, 0, 0, 0, high, low] | [0x2002, high, low, ..] => embedded(high, low),
        [0, 0, 0, 0, 0, 0, ..] | [0x64, 0xff9b, ..] | [0x100, 0, 0, 0, ..] => Some("reserved"),
        [0x2001, 0..=0x1ff, ..] => Some("reserved"),
        [0x2001, 0xdb8, ..] | [0x3fff, 0..=0xfff, ..] => Some("for documentation"),
        [0xfc00..=0xfdff, ..] => Some("private"),
        [0xfe80..=0xfeff, ..] => Some("link-local"),
        [0xff00..=0xffff, ..] => Some("multicast"),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_public_addresses_are_public() {
        let refused = [
            "0.0.0.0",
            "0.1.2.3",
            "10.0.0.1",
            "100.64.0.1",
            "100.127.255.255",
            "127.0.0.1",
            "127.9.9.9",
            "169.254.169.254",
            "172.16.0.1",
            "172.31.255.255",
            "192.0.0.1",
            "192.0.2.1",
            "192.168.1.1",
            "198.18.0.1",
            "198.19.255.255",
            "198.51.100.7",
            "203.0.113.7",
            "224.0.0.1",
            "239.255.255.255",
            "240.0.0.1",
            "255.255.255.255",
            "::",
            "::1",
            "::7f00:1",
            "::ffff:127.0.0.1",
            "::ffff:10.0.0.1",
            "::ffff:169.254.169.254",
            "::ffff:0:127.0.0.1",
            "64:ff9b::7f00:1",
            "64:ff9b:1::1",
            "100::1",
            "2002:7f00:1::",
            "2002:a9fe:a9fe::1",
            "2001::1",
            "2001:db8::1",
            "fc00::1",
            "fd12:3456::1",
            "fe80::1",
            "fec0::1",
            "ff02::1",
        ];
        for text in refused {
            assert!(not_public(text.parse().unwrap()).is_some(), "{text}");
        }
        let public = [
            "1.1.1.1",
            "8.8.8.8",
            "100.63.255.255",
            "100.128.0.1",
            "172.15.0.1",
            "172.32.0.1",
            "192.0.1.1",
            "198.17.0.1",
            "198.20.0.1",
            "223.255.255.255",
            "2606:4700:4700::1111",
            "::ffff:8.8.8.8",
            "64:ff9b::808:808",
            "2002:808:808::1",
            "2a00:1450::1",
        ];
        for text in public {
            assert_eq!(not_public(text.parse().unwrap()), None, "{text}");
        }
    }

    #[test]
    fn an_address_is_seen_through_however_it_is_written() {
        let urls = [
            "http://127.0.0.1/",
            "http://127.1/",
            "http://2130706433/",
            "http://0x7f000001/",
            "http://0177.0.0.1/",
            "http://[::1]/",
            "http://[::ffff:7f00:1]/",
            "http://user@10.0.0.1:80/",
            "http://169.254.169.254/x",
            "http://１２７.0.0.1/",
        ];
        for text in urls {
            assert!(check(&Url::parse(text).unwrap(), false).is_err(), "{text}");
            assert_eq!(check(&Url::parse(text).unwrap(), true), Ok(()), "{text}");
        }
        for text in ["ftp://example.org/", "file:///etc/passwd", "gopher://example.org/"] {
            assert!(check(&Url::parse(text).unwrap(), true).is_err(), "{text}");
        }
        assert_eq!(check(&Url::parse("https://example.org/").unwrap(), false), Ok(()));
    }

    #[test]
    fn listed_hosts_match_by_name_and_port() {
        let listed = |url: &str, entry: &str| is_listed(&Url::parse(url).unwrap(), &[entry.to_owned()]);
        assert!(listed("http://Db.local:5000/x", "db.local"));
        assert!(listed("http://db.local:5000/x", "db.local:5000"));
        assert!(!listed("http://db.local:5001/x", "db.local:5000"));
        assert!(listed("http://db.local/", "db.local:80"));
        assert!(listed("http://[::1]:80/", "::1") && listed("http://[::1]:8080/", "[::1]:8080"));
        assert!(!listed("http://db.local.evil.example/", "db.local"));
    }
}
