//! Packet filters in the syntax of tcpdump: `host 10.0.0.1 and tcp port 443`.

use std::net::{IpAddr, Ipv6Addr};

use crate::decode::{Carries, Packet};

/// A filter expression that each packet matches or not.
#[derive(Debug, Clone, PartialEq)]
pub struct Filter(Expression);

#[derive(Debug, Clone, PartialEq)]
enum Expression {
    All,
    Host(Side, IpAddr),
    Net(Side, IpAddr, u8),
    Ports(Side, u16, u16),
    Protocol(Protocol),
    /// Seconds since the first packet of the capture.
    After(f64),
    Before(f64),
    Longer(u32),
    Shorter(u32),
    Not(Box<Expression>),
    And(Box<Expression>, Box<Expression>),
    Or(Box<Expression>, Box<Expression>),
}

#[derive(Debug, Clone, Copy, PartialEq)]
enum Side {
    Either,
    Source,
    Destination,
}

#[derive(Debug, Clone, Copy, PartialEq)]
enum Protocol {
    Tcp,
    Udp,
    Icmp,
    V4,
    V6,
}

/// Why an expression is invalid.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{0}")]
pub struct FilterError(String);

type Result<T> = std::result::Result<T, FilterError>;

/// Deepest nesting of brackets.
const DEEPEST: usize = 64;

impl Filter {
    /// Returns a filter that matches all packets.
    pub const fn all() -> Self {
        Self(Expression::All)
    }

    /// Parses an expression.
    pub fn parse(text: &str) -> Result<Self> {
        let words = words(text);
        if words.is_empty() {
            return Ok(Self::all());
        }
        let mut reader = Reader { words: &words, at: 0, side: Side::Either, protocol: None, kind: None };
        let whole = reader.either(0)?;
        match reader.peek() {
            None => Ok(Self(whole)),
            Some(word) => {
                Err(FilterError(format!("unexpected '{word}'; join conditions with 'and' or 'or'")))
            }
        }
    }

    /// Whether a packet matches, `since_ns` nanoseconds after the first.
    pub fn meets(&self, packet: &Packet, since_ns: u64) -> bool {
        self.0.meets(packet, since_ns)
    }

    /// Whether the filter matches everything.
    pub fn is_all(&self) -> bool {
        self.0 == Expression::All
    }
}

impl Expression {
    fn meets(&self, packet: &Packet, since_ns: u64) -> bool {
        let address = |side: Side, fits: &dyn Fn(IpAddr) -> bool| match side {
            Side::Source => fits(packet.source),
            Side::Destination => fits(packet.destination),
            Side::Either => fits(packet.source) || fits(packet.destination),
        };
        match self {
            Self::All => true,
            Self::Host(side, wanted) => address(*side, &|ip| ip == *wanted),
            Self::Net(side, net, length) => address(*side, &|ip| is_within(ip, *net, *length)),
            Self::Ports(side, from, to) => {
                let (source, destination) = match packet.carries {
                    Carries::Tcp(segment) => (segment.source, segment.destination),
                    Carries::Udp { source, destination, .. } => (source, destination),
                    _ => return false,
                };
                let fits = |port: u16| (*from..=*to).contains(&port);
                match side {
                    Side::Source => fits(source),
                    Side::Destination => fits(destination),
                    Side::Either => fits(source) || fits(destination),
                }
            }
            Self::Protocol(protocol) => match protocol {
                Protocol::Tcp => matches!(packet.carries, Carries::Tcp(_)),
                Protocol::Udp => matches!(packet.carries, Carries::Udp { .. }),
                Protocol::Icmp => matches!(packet.carries, Carries::Icmp { .. }),
                Protocol::V4 => packet.source.is_ipv4(),
                Protocol::V6 => packet.source.is_ipv6(),
            },
            Self::After(seconds) => since_ns as f64 >= seconds * 1e9,
            Self::Before(seconds) => (since_ns as f64) < seconds * 1e9,
            Self::Longer(bytes) => packet.length >= *bytes,
            Self::Shorter(bytes) => packet.length <= *bytes,
            Self::Not(inner) => !inner.meets(packet, since_ns),
            Self::And(a, b) => a.meets(packet, since_ns) && b.meets(packet, since_ns),
            Self::Or(a, b) => a.meets(packet, since_ns) || b.meets(packet, since_ns),
        }
    }
}

fn is_within(address: IpAddr, net: IpAddr, length: u8) -> bool {
    match (address, net) {
        (IpAddr::V4(a), IpAddr::V4(b)) => {
            let mask = u32::MAX.checked_shl(32 - u32::from(length)).unwrap_or(0);
            a.to_bits() & mask == b.to_bits() & mask
        }
        (IpAddr::V6(a), IpAddr::V6(b)) => {
            let mask = u128::MAX.checked_shl(128 - u32::from(length)).unwrap_or(0);
            a.to_bits() & mask == b.to_bits() & mask
        }
        _ => false,
    }
}

fn words(text: &str) -> Vec<String> {
    let spaced = text
        .replace('(', " ( ")
        .replace(')', " ) ")
        .replace('!', " not ")
        .replace("&&", " and ")
        .replace("||", " or ");
    spaced.split_whitespace().map(str::to_owned).collect()
}

struct Reader<'a> {
    words: &'a [String],
    at: usize,
    /// Qualifiers of the condition before, repeated by a value without its own: `port 80 or 443`.
    side: Side,
    protocol: Option<Protocol>,
    kind: Option<Kind>,
}

#[derive(Debug, Clone, Copy, PartialEq)]
enum Kind {
    Host,
    Net,
    Port,
}

impl Reader<'_> {
    fn peek(&self) -> Option<&str> {
        self.words.get(self.at).map(String::as_str)
    }

    fn takes(&mut self, wanted: &str) -> bool {
        let is_there = self.peek() == Some(wanted);
        self.at += usize::from(is_there);
        is_there
    }

    fn word(&mut self, what: &str) -> Result<String> {
        let word = self.words.get(self.at).cloned();
        self.at += 1;
        word.ok_or_else(|| FilterError(format!("{what} expected at the end")))
    }

    fn either(&mut self, depth: usize) -> Result<Expression> {
        let mut whole = self.both(depth)?;
        while self.takes("or") {
            whole = Expression::Or(Box::new(whole), Box::new(self.both(depth)?));
        }
        Ok(whole)
    }

    fn both(&mut self, depth: usize) -> Result<Expression> {
        let mut whole = self.one(depth)?;
        while self.takes("and") {
            whole = Expression::And(Box::new(whole), Box::new(self.one(depth)?));
        }
        Ok(whole)
    }

    fn one(&mut self, depth: usize) -> Result<Expression> {
        if depth > DEEPEST {
            return Err(FilterError(format!("more than {DEEPEST} nested parentheses and 'not's")));
        }
        if self.takes("not") {
            return Ok(Expression::Not(Box::new(self.one(depth + 1)?)));
        }
        if self.takes("(") {
            let inner = self.either(depth + 1)?;
            if !self.takes(")") {
                return Err(FilterError("a parenthesis is not closed".to_owned()));
            }
            return Ok(inner);
        }
        self.condition()
    }

    fn condition(&mut self) -> Result<Expression> {
        let word = self.word("a condition such as 'host 10.0.0.1' or 'port 443'")?;
        match word.as_str() {
            "after" | "before" => {
                let value = self.word("a time such as 2.5s")?;
                let seconds = seconds(&value)?;
                return Ok(if word == "after" {
                    Expression::After(seconds)
                } else {
                    Expression::Before(seconds)
                });
            }
            "greater" | "less" => {
                let value = self.word("a length in bytes")?;
                let bytes =
                    value.parse().map_err(|_| FilterError(format!("'{value}' is not a length in bytes")))?;
                return Ok(if word == "greater" {
                    Expression::Longer(bytes)
                } else {
                    Expression::Shorter(bytes)
                });
            }
            _ => {}
        }
        self.at -= 1;
        let protocol = self.protocol();
        let side = match () {
            () if self.takes("src") => Some(Side::Source),
            () if self.takes("dst") => Some(Side::Destination),
            () => None,
        };
        let kind = match self.peek() {
            Some("host") => Some(Kind::Host),
            Some("net") => Some(Kind::Net),
            Some("port" | "portrange") => Some(Kind::Port),
            _ => None,
        };
        self.at += usize::from(kind.is_some());
        let is_bare = side.is_none() && kind.is_none();
        if let (Some(protocol), true) = (protocol, is_bare) {
            self.kind = None;
            return Ok(Expression::Protocol(protocol));
        }
        // A bare value has the kind of the one before; after 'src' and 'dst' it is a host.
        let (side, kind, protocol) = match (side, kind, self.kind) {
            (None, None, Some(before)) => (self.side, before, self.protocol),
            (side, kind, _) => {
                let value = self.peek().unwrap_or_default();
                let known = kind.or_else(|| side.is_some().then_some(Kind::Host));
                let Some(kind) = known else {
                    return Err(FilterError(format!(
                        "'{value}' is not a condition; use 'host', 'net', 'port', 'tcp', 'udp', 'icmp', 'ip', 'ip6', 'src', 'dst', 'after', 'before', 'greater' or 'less'"
                    )));
                };
                (side.unwrap_or(Side::Either), kind, protocol)
            }
        };
        (self.side, self.kind, self.protocol) = (side, Some(kind), protocol);
        let value = self.word("a host, a net or a port")?;
        let condition = of_kind(kind, side, &value)?;
        Ok(match protocol {
            Some(protocol) => Expression::And(Box::new(Expression::Protocol(protocol)), Box::new(condition)),
            None => condition,
        })
    }

    fn protocol(&mut self) -> Option<Protocol> {
        let protocol = match self.peek()? {
            "tcp" => Protocol::Tcp,
            "udp" => Protocol::Udp,
            "icmp" | "icmp6" => Protocol::Icmp,
            "ip" => Protocol::V4,
            "ip6" => Protocol::V6,
            _ => return None,
        };
        self.at += 1;
        Some(protocol)
    }
}

fn of_kind(kind: Kind, side: Side, value: &str) -> Result<Expression> {
    match kind {
        Kind::Host => {
            let address = value.trim_matches(['[', ']']).parse().map_err(|_| {
                FilterError(format!("'{value}' is not an address; names are not resolved for captures"))
            })?;
            Ok(Expression::Host(side, address))
        }
        Kind::Net => net(side, value),
        Kind::Port => {
            let wrong =
                || FilterError(format!("'{value}' is not a port such as 443 or a range such as 8000-8100"));
            let (from, to) = value.split_once('-').unwrap_or((value, value));
            let (from, to): (u16, u16) =
                (from.parse().map_err(|_| wrong())?, to.parse().map_err(|_| wrong())?);
            if from > to {
                return Err(wrong());
            }
            Ok(Expression::Ports(side, from, to))
        }
    }
}

/// Parses `10.0.0.0/8`, and `10.1` as `10.1.0.0/16`, as tcpdump does.
fn net(side: Side, value: &str) -> Result<Expression> {
    let wrong = || FilterError(format!("'{value}' is not a network such as 10.0.0.0/8"));
    let (address, length) = match value.split_once('/') {
        Some((address, length)) => (address, Some(length.parse::<u8>().map_err(|_| wrong())?)),
        None => (value, None),
    };
    if let Ok(address) = address.parse::<Ipv6Addr>() {
        let length = length.unwrap_or(128);
        return if length <= 128 { Ok(Expression::Net(side, address.into(), length)) } else { Err(wrong()) };
    }
    let parts: Vec<u8> =
        address.split('.').map(str::parse).collect::<std::result::Result<_, _>>().map_err(|_| wrong())?;
    if parts.is_empty() || parts.len() > 4 {
        return Err(wrong());
    }
    let length = length.unwrap_or(8 * parts.len() as u8);
    let octets: [u8; 4] = std::array::from_fn(|i| parts.get(i).copied().unwrap_or(0));
    if length <= 32 { Ok(Expression::Net(side, IpAddr::from(octets), length)) } else { Err(wrong()) }
}

fn seconds(value: &str) -> Result<f64> {
    let wrong =
        || FilterError(format!("'{value}' is not a time since the first packet such as 2.5s or 300ms"));
    let (number, unit) = match value.find(|c: char| c.is_ascii_alphabetic()) {
        Some(at) => value.split_at(at),
        None => (value, "s"),
    };
    let factor = match unit {
        "us" => 1e-6,
        "ms" => 1e-3,
        "s" => 1.0,
        "m" | "min" => 60.0,
        "h" => 3600.0,
        _ => return Err(wrong()),
    };
    let number: f64 = number.parse().map_err(|_| wrong())?;
    if number.is_finite() && number >= 0.0 { Ok(number * factor) } else { Err(wrong()) }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::decode::Span;

    fn udp(source: &str, destination: &str) -> Packet {
        let address = |text: &str| text.parse::<std::net::SocketAddr>().unwrap();
        let (a, b) = (address(source), address(destination));
        Packet {
            source: a.ip(),
            destination: b.ip(),
            length: 100,
            identification: None,
            ecn: 0,
            dscp: 0,
            hop_limit: 64,
            tunnels: 0,
            carries: Carries::Udp {
                source: a.port(),
                destination: b.port(),
                payload: 72,
                kept: Span::default(),
            },
        }
    }

    #[test]
    fn expressions_say_which_packets_they_mean() {
        let packet = udp("10.1.2.3:5000", "192.0.2.7:443");
        for (text, expected) in [
            ("", true),
            ("udp", true),
            ("tcp", false),
            ("host 10.1.2.3", true),
            ("src host 192.0.2.7", false),
            ("dst 192.0.2.7", true),
            ("src 10.1.2.3 and dst port 443", true),
            ("port 80 or 443", true),
            ("udp port 80 or 443", true),
            ("tcp port 80 or 443", false),
            ("portrange 4000-5000", true),
            ("net 10.1", true),
            ("net 10.0.0.0/8 and not net 192.0.2.0/24", false),
            ("not (tcp or icmp)", true),
            ("!(udp) || port 5000", true),
            ("after 1s && before 2000ms", true),
            ("after 2s", false),
            ("greater 100 and less 100", true),
            ("ip6", false),
            ("ip host 10.1.2.3", true),
            ("tcp or udp and port 1", false),
        ] {
            let filter = Filter::parse(text).unwrap_or_else(|error| panic!("{text}: {error}"));
            assert_eq!(filter.meets(&packet, 1_500_000_000), expected, "{text}");
        }
        let six = udp("[2001:db8::1]:1", "[2001:db8:1::2]:2");
        assert!(Filter::parse("net 2001:db8::/32 and host 2001:db8::1").unwrap().meets(&six, 0));
    }

    #[test]
    fn what_is_no_expression_is_told_in_a_line() {
        for (text, expected) in [
            ("host", "expected at the end"),
            ("host example.org", "is not an address"),
            ("port 99999", "is not a port"),
            ("port 9-1", "is not a port"),
            ("net 10.0.0.0/33", "is not a network"),
            ("(tcp", "is not closed"),
            ("tcp udp", "unexpected"),
            ("frobnicate", "is not a condition"),
            ("after yesterday", "is not a time"),
            (&"(".repeat(1000), "nested parentheses"),
            ("not", "expected at the end"),
        ] {
            let error = Filter::parse(text).expect_err(text).to_string();
            assert!(error.contains(expected) && !error.contains('\n'), "{text}: {error}");
        }
    }
}
