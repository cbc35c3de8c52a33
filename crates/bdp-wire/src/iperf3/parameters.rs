//! Parameters of a client's test.

use serde_json::{Map, Value, json};

use super::limits::LONGEST_DATAGRAM;
use super::members::Members;
use super::{Iperf3Error, LONGEST_SECONDS, MOST_STREAMS};

/// Longest write over TCP, bytes.
const LONGEST_WRITE: u64 = 1 << 20;
/// Longest omit, seconds.
const LONGEST_OMIT: u64 = 600;
/// Largest socket buffer, bytes.
const LARGEST_BUFFER: u64 = 512 << 20;
/// Largest segment, bytes.
const LARGEST_SEGMENT: u64 = 65_495;
/// Highest rate, bit/s; higher rates are requested as unlimited.
const HIGHEST_RATE: u64 = 100_000_000_000_000;
/// Length of a write if the client does not state it, bytes.
const WRITE_BYTES: u64 = 128 << 10;
const DATAGRAM_BYTES: u64 = 1_460;

/// Transport protocol.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Protocol {
    /// TCP.
    #[default]
    Tcp,
    /// UDP.
    Udp,
}

/// Direction of data.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Directions {
    /// From the client to the server.
    #[default]
    Forward,
    /// From the server to the client.
    Reverse,
    /// Both directions; the client sends the first half of the streams.
    Both,
}

/// A test requested by a client.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct Parameters {
    /// Transport protocol.
    pub protocol: Protocol,
    /// Direction of data.
    pub direction: Directions,
    /// Streams per direction.
    pub parallel: u32,
    /// Duration without omit, seconds; 0 if bytes or only the client end the test.
    pub seconds: u64,
    /// Seconds at the start that are not counted.
    pub omit_seconds: u64,
    /// Bytes after which the test ends, all streams together; 0 for no limit.
    pub bytes: u64,
    /// Writes after which the test ends, all streams together; 0 for no limit.
    pub blocks: u64,
    /// Length of a write or of a datagram's payload, bytes.
    pub length_bytes: u64,
    /// Rate of each stream, bit/s; 0 for unlimited.
    pub rate_bps: u64,
    /// Kernel pacing rate of each stream, bit/s; 0 for none.
    pub kernel_rate_bps: u64,
    /// Consecutive writes without a pause.
    pub burst: u64,
    /// `SO_SNDBUF` and `SO_RCVBUF`.
    pub window_bytes: Option<u64>,
    /// `TCP_MAXSEG`.
    pub mss: Option<u32>,
    /// Type of service, the whole octet.
    pub tos: u8,
    /// `TCP_NODELAY`.
    pub nodelay: bool,
    /// `TCP_CONGESTION` of the sender.
    pub congestion: Option<String>,
    /// Whether datagrams have 64-bit sequence numbers.
    pub wide_counters: bool,
    /// Whether datagrams must not be fragmented.
    pub dont_fragment: bool,
    /// Whether the client wants the server's output.
    pub server_output: bool,
    /// Authentication token: base64 of text that only the server can decrypt.
    pub auth_token: Option<String>,
    /// Title given by the user.
    pub title: Option<String>,
    /// Release of the client.
    pub client_version: Option<String>,
}

impl Parameters {
    /// Returns a test over a protocol with iperf3's defaults, but without a duration.
    pub fn over(protocol: Protocol) -> Self {
        Self {
            protocol,
            parallel: 1,
            length_bytes: match protocol {
                Protocol::Tcp => WRITE_BYTES,
                Protocol::Udp => DATAGRAM_BYTES,
            },
            ..Self::default()
        }
    }

    /// Returns the requested rate of each stream, whether enforced by program or kernel.
    pub fn asked_rate_bps(&self) -> Option<u64> {
        [self.rate_bps, self.kernel_rate_bps].into_iter().filter(|&rate| rate > 0).min()
    }

    /// Parses a client's parameters and checks the type and range of each member.
    pub fn parse(value: &Value) -> Result<Self, Iperf3Error> {
        let members = Members::of(value, "parameters")?;
        let protocol = match (members.flag("tcp")?, members.flag("udp")?, members.flag("sctp")?) {
            (_, false, false) => Protocol::Tcp,
            (false, true, false) => Protocol::Udp,
            (_, _, true) => return Err(Iperf3Error::Sctp),
            (true, true, _) => return Err(Iperf3Error::Meaning("it requests both TCP and UDP")),
        };
        let direction = match (members.flag("reverse")?, members.flag("bidirectional")?) {
            (_, true) => Directions::Both,
            (true, false) => Directions::Reverse,
            (false, false) => Directions::Forward,
        };
        let plain = Self::over(protocol);
        let longest = if protocol == Protocol::Udp { LONGEST_DATAGRAM } else { LONGEST_WRITE };
        let length_bytes = match members.number("len", 0, longest)?.unwrap_or(0) {
            0 => plain.length_bytes,
            length => length,
        };
        let wide_counters = members.flag("udp_counters_64bit")?;
        let least = super::datagram::header_bytes(wide_counters) as u64;
        if protocol == Protocol::Udp && length_bytes < least {
            let found = length_bytes.to_string();
            return Err(Iperf3Error::Range { member: "len", found, least, most: longest });
        }
        let asked = |number: Option<u64>| number.filter(|&n| n > 0);
        let parameters = Self {
            direction,
            parallel: members.number("parallel", 1, u64::from(MOST_STREAMS))?.unwrap_or(1) as u32,
            seconds: members.number("time", 0, LONGEST_SECONDS)?.unwrap_or(0),
            omit_seconds: members.number("omit", 0, LONGEST_OMIT)?.unwrap_or(0),
            bytes: members.number("num", 0, u64::MAX)?.unwrap_or(0),
            blocks: members.number("blockcount", 0, u64::MAX)?.unwrap_or(0),
            length_bytes,
            rate_bps: members.number("bandwidth", 0, HIGHEST_RATE)?.unwrap_or(0),
            kernel_rate_bps: members.number("fqrate", 0, HIGHEST_RATE)?.unwrap_or(0),
            burst: members.number("burst", 0, 1_000)?.unwrap_or(0),
            window_bytes: asked(members.number("window", 0, LARGEST_BUFFER)?),
            mss: asked(members.number("MSS", 0, LARGEST_SEGMENT)?).map(|n| n as u32),
            tos: members.number("TOS", 0, 255)?.unwrap_or(0) as u8,
            nodelay: members.flag("nodelay")?,
            // Linux names have at most 16 bytes, the terminating zero included.
            congestion: members.text("congestion", 15)?.filter(|name| !name.is_empty()),
            wide_counters,
            dont_fragment: members.flag("dont_fragment")?,
            server_output: members.flag("get_server_output")?,
            auth_token: members.text("authtoken", 4096)?,
            title: members.text("title", super::LONGEST_PARAMETERS)?,
            client_version: members.text("client_version", 100)?,
            ..plain
        };
        Ok(parameters)
    }

    /// Returns the parameters as sent by a client.
    pub fn to_json(&self) -> Value {
        let mut all = Map::new();
        let mut put = |member: &str, value: Value| drop(all.insert(member.to_owned(), value));
        put(if self.protocol == Protocol::Udp { "udp" } else { "tcp" }, json!(true));
        put("omit", json!(self.omit_seconds));
        put("time", json!(self.seconds));
        put("num", json!(self.bytes));
        put("blockcount", json!(self.blocks));
        if let Some(mss) = self.mss {
            put("MSS", json!(mss));
        }
        put("parallel", json!(self.parallel));
        match self.direction {
            Directions::Forward => {}
            Directions::Reverse => put("reverse", json!(true)),
            Directions::Both => put("bidirectional", json!(true)),
        }
        if let Some(window) = self.window_bytes {
            put("window", json!(window));
        }
        put("len", json!(self.length_bytes));
        put("pacing_timer", json!(1000));
        for (member, number) in [
            ("bandwidth", self.rate_bps),
            ("fqrate", self.kernel_rate_bps),
            ("burst", self.burst),
            ("TOS", u64::from(self.tos)),
        ] {
            if number > 0 {
                put(member, json!(number));
            }
        }
        if self.protocol == Protocol::Udp {
            // Since 3.21 a server keeps the previous client's GSO settings unless this one overrides them.
            for (member, value) in [
                ("gso", 0),
                ("gso_dg_size", 0),
                ("gso_bf_size", LONGEST_DATAGRAM),
                ("gro", 0),
                ("gro_bf_size", LONGEST_DATAGRAM),
            ] {
                put(member, json!(value));
            }
        }
        if self.nodelay {
            put("nodelay", json!(true));
        }
        for (member, flag) in [
            ("udp_counters_64bit", self.wide_counters),
            ("dont_fragment", self.dont_fragment),
            ("get_server_output", self.server_output),
        ] {
            if flag {
                put(member, json!(1));
            }
        }
        for (member, text) in [
            ("title", &self.title),
            ("congestion", &self.congestion),
            ("authtoken", &self.auth_token),
            ("client_version", &self.client_version),
        ] {
            if let Some(text) = text {
                put(member, json!(text));
            }
        }
        Value::Object(all)
    }

    /// Whether only the client ends the test.
    pub fn is_endless(&self) -> bool {
        self.seconds == 0 && self.volume_bytes().is_none()
    }

    /// Number of streams in both directions together.
    pub fn streams(&self) -> u32 {
        if self.direction == Directions::Both { 2 * self.parallel } else { self.parallel }
    }

    /// Returns the bytes per direction that end the test, all streams together, from `num` or `blockcount`.
    pub fn volume_bytes(&self) -> Option<u64> {
        match (self.bytes, self.blocks) {
            (0, 0) => None,
            (0, blocks) => Some(blocks.saturating_mul(self.length_bytes)),
            (bytes, _) => Some(bytes),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn parse(text: &str) -> Result<Parameters, Iperf3Error> {
        Parameters::parse(&serde_json::from_str(text).unwrap())
    }

    #[test]
    fn what_a_release_sends_is_read() {
        let p = parse(
            r#"{"tcp":true,"omit":1,"time":0,"num":10485760,"blockcount":0,"MSS":1000,"nodelay":true,"parallel":1,
            "bidirectional":true,"window":65536,"len":131072,"bandwidth":1e+16,"fqrate":1000000000,
            "pacing_timer":1000,"burst":10,"TOS":32,"title":"hi","extra_data":"xx","congestion":"cubic",
            "get_server_output":1,"zerocopy":1,"client_version":"3.12"}"#,
        );
        assert!(matches!(p, Err(Iperf3Error::Range { member: "bandwidth", .. })), "{p:?}");
        let p = parse(
            r#"{"udp":true,"omit":0,"time":10,"num":0,"blockcount":0,"parallel":3,"reverse":true,"len":1200,
            "bandwidth":5e+06,"udp_counters_64bit":1,"client_version":"3.12"}"#,
        )
        .unwrap();
        assert_eq!((p.protocol, p.direction, p.streams()), (Protocol::Udp, Directions::Reverse, 3));
        assert_eq!((p.rate_bps, p.length_bytes, p.wide_counters), (5_000_000, 1_200, true));
    }

    #[test]
    fn what_is_sent_comes_back() {
        for protocol in [Protocol::Tcp, Protocol::Udp] {
            let p = Parameters {
                direction: Directions::Both,
                parallel: 7,
                bytes: 1 << 40,
                omit_seconds: 2,
                rate_bps: 1_000_000,
                kernel_rate_bps: 3,
                burst: 9,
                window_bytes: Some(65_536),
                mss: Some(1_000),
                tos: 0xb8,
                nodelay: true,
                congestion: Some("reno".to_owned()),
                wide_counters: true,
                dont_fragment: true,
                server_output: true,
                auth_token: Some("YQ==".to_owned()),
                title: Some("a title".to_owned()),
                client_version: Some("3.12".to_owned()),
                ..Parameters::over(protocol)
            };
            assert_eq!(Parameters::parse(&p.to_json()), Ok(p));
        }
    }

    #[test]
    fn a_test_of_datagrams_undoes_the_offloads_of_the_client_before() {
        let sent = Parameters::over(Protocol::Udp).to_json();
        assert_eq!((&sent["gso"], &sent["gro"]), (&json!(0), &json!(0)), "{sent}");
        assert_eq!((&sent["gso_dg_size"], &sent["gso_bf_size"]), (&json!(0), &json!(65_507)), "{sent}");
        assert_eq!(Parameters::over(Protocol::Tcp).to_json().get("gso"), None);
    }

    #[test]
    fn wrong_types_and_numbers_are_named() {
        for (text, part) in [
            (r#"[1]"#, "'parameters' is a list"),
            (r#"{"time":10,"parallel":999}"#, "'parallel' is 999, expected 1 to 128"),
            (r#"{"time":10,"parallel":0}"#, "1 to 128"),
            (r#"{"time":10,"parallel":-1}"#, "'parallel' is -1"),
            (r#"{"time":10,"parallel":1.5}"#, "1.5"),
            (r#"{"time":"10"}"#, "'time' is a text, expected a number"),
            (r#"{"time":10,"len":{}}"#, "'len' is an object"),
            (r#"{"time":10,"tcp":"yes"}"#, "'tcp' is a text"),
            (r#"{"time":10,"congestion":7}"#, "'congestion' is a number, expected a text"),
            (r#"{"time":10,"congestion":"a name that is too long"}"#, "of 23 bytes"),
            (r#"{"time":10,"authtoken":[]}"#, "'authtoken' is a list"),
            (r#"{"time":10,"len":1048577}"#, "'len'"),
            (r#"{"time":10,"udp":true,"len":11}"#, "'len' is 11, expected 12"),
            (r#"{"time":10,"udp":true,"tcp":true}"#, "both TCP and UDP"),
            (r#"{"time":86401}"#, "86400"),
            (r#"{"time":1e300}"#, "'time'"),
            (r#"{"time":1,"sctp":true}"#, "SCTP"),
            (r#"{"time":1,"TOS":256}"#, "'TOS'"),
            (r#"{"time":1,"burst":1001}"#, "'burst'"),
        ] {
            let error = parse(text).unwrap_err().to_string();
            assert!(error.contains(part), "{text}: {error}");
        }
        for (text, code) in [
            (r#"{"time":1,"parallel":999}"#, 6),
            (r#"{"time":86401}"#, 5),
            (r#"{"time":1,"burst":1001}"#, 15),
            (r#"{"time":1,"len":1048577}"#, 7),
            (r#"{"time":1,"udp":true,"len":65508}"#, 20),
            (r#"{"time":1,"num":{}}"#, 114),
        ] {
            assert_eq!(parse(text).unwrap_err().failure().code, code, "{text}");
        }
    }

    #[test]
    fn blocks_are_bytes_by_their_length() {
        let p = parse(r#"{"blockcount":5,"len":1000}"#).unwrap();
        assert_eq!(p.volume_bytes(), Some(5_000));
        assert_eq!(
            parse(r#"{"blockcount":18446744073709551615,"len":1000}"#).unwrap().volume_bytes(),
            Some(u64::MAX)
        );
        assert_eq!(parse(r#"{"time":1}"#).unwrap().volume_bytes(), None);
        let endless = |text| parse(text).unwrap().is_endless();
        assert!(endless(r#"{"time":0,"num":0,"blockcount":0}"#));
        assert!(!endless(r#"{"time":1}"#) && !endless(r#"{"num":1}"#) && !endless(r#"{"blockcount":1}"#));
    }
}
