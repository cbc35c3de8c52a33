//! The other end as typed: `ams1`, `ams1:5201`, `[2001:db8::1]:5201`, `2001:db8::1`.

use bdp_model::case::Family;

use crate::exit;

/// Parses a host and its port, if given; the error says what is wrong.
pub fn parse(text: &str) -> Result<(String, Option<u16>), String> {
    let (host, port) = match text.strip_prefix('[') {
        Some(rest) => {
            let (host, after) = rest
                .split_once(']')
                .ok_or_else(|| format!("'{text}' lacks the closing bracket of the address"))?;
            match after.strip_prefix(':') {
                Some(port) => (host, Some(port)),
                None if after.is_empty() => (host, None),
                None => return Err(format!("'{text}': expected :PORT or nothing after the bracket")),
            }
        }
        // An IPv6 address has several colons, none of which begins a port without brackets.
        None if text.matches(':').count() > 1 => (text, None),
        None => match text.split_once(':') {
            Some((host, port)) => (host, Some(port)),
            None => (text, None),
        },
    };
    if host.is_empty() {
        return Err(format!("'{text}' contains no host"));
    }
    let port = match port {
        None => None,
        Some(port) => match port.parse::<u16>() {
            Ok(port) if port > 0 => Some(port),
            _ => return Err(format!("'{port}' is not a port, 1 to 65535")),
        },
    };
    Ok((host.to_owned(), port))
}

/// Parses a host and port, with the port of an option, which must not contradict it.
pub fn with_port(text: &str, given: Option<u16>) -> anyhow::Result<(String, Option<u16>)> {
    let (host, port) = parse(text).map_err(exit::usage)?;
    match (port, given) {
        (Some(one), Some(other)) if one != other => {
            Err(exit::usage(format!("two ports were given, {one} and {other}; omit one")))
        }
        _ => Ok((host, port.or(given))),
    }
}

/// The IP version selected by `-4` and `-6`.
pub fn family(only_4: bool, only_6: bool) -> Option<Family> {
    match (only_4, only_6) {
        (true, _) => Some(Family::Ipv4),
        (_, true) => Some(Family::Ipv6),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn hosts_with_and_without_ports() {
        for (text, host, port) in [
            ("ams1", "ams1", None),
            ("ams1:80", "ams1", Some(80)),
            ("192.0.2.7:5201", "192.0.2.7", Some(5201)),
            ("::1", "::1", None),
            ("2001:db8::1:5201", "2001:db8::1:5201", None),
            ("[::1]", "::1", None),
            ("[fe80::1%eth0]:5201", "fe80::1%eth0", Some(5201)),
        ] {
            assert_eq!(parse(text), Ok((host.to_owned(), port)), "{text}");
        }
        for wrong in ["", ":80", "[]:80", "[::1", "[::1]80", "ams1:", "ams1:0", "ams1:65536", "ams1:http"] {
            assert!(parse(wrong).is_err(), "{wrong}");
        }
    }
}
