//! Why a session failed, each in one line with the way out.

use std::net::SocketAddr;

use bdp_model::measurement::Measurement;
use bdp_model::units::Nanos;
use bdp_wire::session::Refusal;

use crate::error::FlowError;

/// What a session comes to.
pub type Result<T, E = SessionError> = std::result::Result<T, E>;

/// Why a measurement could not be made.
#[derive(Debug, thiserror::Error)]
pub enum SessionError {
    /// What was asked for can't be done by anybody.
    #[error("{0}")]
    Request(String),
    /// The name leads to no address.
    #[error("resolve host '{host}': {cause}; check the name, or give an address")]
    NoSuchHost {
        /// As given.
        host: String,
        /// The resolver's answer.
        cause: String,
    },
    /// The host refused the connection: nothing listens there.
    #[error(
        "connect to {address}: connection refused, nothing listens on the port; start 'bdp serve' there{}",
        brackets(*address)
    )]
    Refused {
        /// Where.
        address: SocketAddr,
    },
    /// Nothing came back.
    #[error(
        "connect to {address}: no answer within {deadline}; check that the host is up and that firewalls allow TCP port {port}{hint}",
        port = address.port(),
        hint = brackets(*address)
    )]
    NoAnswer {
        /// Where.
        address: SocketAddr,
        /// How long was waited.
        deadline: Nanos,
    },
    /// There is no way to it.
    #[error(
        "connect to {address}: no route ({cause}); {}",
        way_to(*address)
    )]
    NoRoute {
        /// Where.
        address: SocketAddr,
        /// The system's answer.
        cause: String,
    },
    /// Datagrams don't get there, or not back.
    #[error(
        "open UDP streams to {address}: no reply within {waited}; check that firewalls allow UDP port \
         {port}, that it is forwarded, and whether the server's log shows a refusal; or measure by TCP, \
         without -u",
        port = address.port()
    )]
    NoDatagrams {
        /// Where.
        address: SocketAddr,
        /// How long was waited.
        waited: Nanos,
    },
    /// The server was asked for datagrams, and none came.
    #[error(
        "receive UDP from {address}: no datagram arrived within {waited}; check that firewalls allow UDP \
         port {port} in both directions; 'bdp serve' sends UDP to other machines only with \
         --iperf2-udp-reverse and --allow; or measure by TCP, without -u",
        port = address.port()
    )]
    NoReverse {
        /// Where.
        address: SocketAddr,
        /// How long was waited.
        waited: Nanos,
    },
    /// No flow of such datagrams comes through.
    #[error(
        "{address}: no datagram of {asked} B (-l) arrived: the path has an MTU of {mtu} and silently \
         drops larger packets; omit -l, or use at most -l {fits}"
    )]
    TooLong {
        /// Where.
        address: SocketAddr,
        /// Payload that was asked for.
        asked: u32,
        /// Path MTU that was found.
        mtu: u32,
        /// Payload that it holds.
        fits: u32,
    },
    /// Nothing of datagrams came through that go as fragments, while whole packets do.
    #[error(
        "{address}: no datagram of {asked} B (-l) arrived: the path has an MTU of {mtu}, and fragments \
         are dropped on the path or by the receiving host, while packets of {mtu} B arrive; use at most \
         -l {fits}"
    )]
    FragmentsLost {
        /// Where.
        address: SocketAddr,
        /// Payload that was asked for.
        asked: u32,
        /// Path MTU as the near kernel knows it.
        mtu: u32,
        /// Payload that it holds.
        fits: u32,
    },
    /// The peer is there and does not speak bdp.
    #[error("{address} does not speak bdp's protocol: {what}; check that 'bdp serve' uses this port")]
    NotBdp {
        /// Where.
        address: SocketAddr,
        /// What came instead.
        what: String,
    },
    /// The peer speaks another version.
    #[error(
        "{address} uses version {theirs} of bdp's protocol, this bdp uses {ours}; install the same version of bdp at both ends"
    )]
    Version {
        /// Where.
        address: SocketAddr,
        /// Its version.
        theirs: u8,
        /// This one's.
        ours: u8,
    },
    /// The peer refused the session or what it was asked.
    #[error("{address} refused: {refusal}")]
    Denied {
        /// Where.
        address: SocketAddr,
        /// Why.
        refusal: Refusal,
    },
    /// A token was given, and the peer did not show that it knows it.
    #[error("{address}: {}", unproven(*has_none))]
    Unproven {
        /// Where.
        address: SocketAddr,
        /// Whether it says itself that it has none.
        has_none: bool,
    },
    /// Its owner does not let its settings be changed from other machines.
    #[error(
        "{address} does not allow remote changes of its settings; start 'bdp serve --allow-tune' there, or run the output of 'bdp tune export' there"
    )]
    TuningNotAllowed {
        /// Where.
        address: SocketAddr,
    },
    /// The peer is too old to change settings from other machines.
    #[error(
        "{address} runs a version of bdp without remote tuning; install this version there and start 'bdp serve --allow-tune', or run the output of 'bdp tune export' there"
    )]
    TuningUnknown {
        /// Where.
        address: SocketAddr,
    },
    /// The peer serves those alone that log in.
    #[error("{address} refused this client: {way_out}")]
    Login {
        /// Where.
        address: SocketAddr,
        /// What to look at.
        way_out: String,
    },
    /// The peer could not do what it was asked.
    #[error("{address} reported an error: {error}")]
    Far {
        /// Where.
        address: SocketAddr,
        /// Its words.
        error: String,
    },
    /// The peer went away.
    #[error(
        "lost the connection to {address} during {doing}: the server ended or the path failed; run it again"
    )]
    Lost {
        /// Where.
        address: SocketAddr,
        /// What was going on.
        doing: &'static str,
    },
    /// The peer fell silent.
    #[error(
        "{address} is connected but silent during {doing}; check that it runs bdp (iperf3 uses the same port) and that the machine responds"
    )]
    Silent {
        /// Where.
        address: SocketAddr,
        /// What was going on.
        doing: &'static str,
    },
    /// Nothing moves any more.
    #[error(
        "{address} is connected, but no data was transferred for {within} during a flow: the server or \
         its machine has stopped, or the path is down; run it again"
    )]
    Stalled {
        /// Where.
        address: SocketAddr,
        /// For how long.
        within: Nanos,
    },
    /// This end could not do its part.
    #[error(transparent)]
    Near(#[from] FlowError),
    /// A server of the web does not give what was asked for.
    #[error("download {url}: {what}")]
    Download {
        /// What.
        url: String,
        /// Why, and the way out.
        what: String,
    },
    /// It broke off after something had been measured, which is kept.
    #[error("{cause}")]
    Broken {
        /// Why.
        cause: Box<SessionError>,
        /// What was measured until then, with the reason as its error.
        measurement: Box<Measurement>,
    },
    /// The cancel flag was raised.
    #[error("cancelled")]
    Cancelled,
}

impl SessionError {
    /// A host for which there is nowhere to go.
    pub fn no_address(host: &str) -> Self {
        Self::NoSuchHost { host: host.to_owned(), cause: "it has no address".to_owned() }
    }

    /// What became of a flow with this peer.
    pub fn of_flow(error: FlowError, address: SocketAddr) -> Self {
        match error {
            FlowError::Stalled { within } => Self::Stalled { address, within },
            other => Self::Near(other),
        }
    }

    /// The same with what was measured changed, where there is any.
    pub fn with_measurement(self, change: impl FnOnce(Measurement) -> Measurement) -> Self {
        match self {
            Self::Broken { cause, measurement } => {
                Self::Broken { cause, measurement: Box::new(change(*measurement)) }
            }
            other => other,
        }
    }

    /// Whether the request was wrong, rather than the environment.
    pub fn is_request(&self) -> bool {
        matches!(self, Self::Request(_))
    }
}

impl From<bdp_sys::SysError> for SessionError {
    fn from(error: bdp_sys::SysError) -> Self {
        Self::Near(error.into())
    }
}

/// What a server proves that knows no token: nothing.
fn unproven(has_none: bool) -> &'static str {
    match has_none {
        true => {
            "this server has no token, so bdp can't verify that it is the expected server; to measure \
             anyway, omit --token, --token-file and BDP_TOKEN"
        }
        false => {
            "it did not prove that it knows the token: it is not the server that printed the token, or a \
             middlebox impersonates it"
        }
    }
}

/// What helps where there is no route.
fn way_to(address: SocketAddr) -> String {
    match address {
        // RFC 4007, section 6: a link-local address means a machine only together with its zone.
        SocketAddr::V6(v6) if v6.ip().is_unicast_link_local() && v6.scope_id() == 0 => {
            format!("a link-local address needs a zone, the name of the network device: {}%eth0", v6.ip())
        }
        _ => format!("check the address and this machine's routes and firewall{}", brackets(address)),
    }
}

/// What an address without brackets may have been meant to be: its last group, read as a port.
fn brackets(address: SocketAddr) -> String {
    let SocketAddr::V6(v6) = address else { return String::new() };
    let text = v6.ip().to_string();
    let Some((host, port)) = text.rsplit_once(':') else { return String::new() };
    // A group of fewer digits is rarely a port; what is left must be an address still.
    let is_port = port.len() == 4 && port.bytes().all(|digit| digit.is_ascii_digit());
    if is_port && host.parse::<std::net::Ipv6Addr>().is_ok() {
        format!(" (if {port} is the port: [{host}]:{port})")
    } else {
        String::new()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn at(text: &str) -> SocketAddr {
        text.parse().unwrap()
    }

    #[test]
    fn an_address_that_may_hold_a_port_is_shown_in_brackets() {
        let no_answer =
            |text| SessionError::NoAnswer { address: at(text), deadline: Nanos::secs(3) }.to_string();
        let meant = no_answer("[2001:db8::1:5999]:5201");
        assert!(meant.ends_with(" (if 5999 is the port: [2001:db8::1]:5999)"), "{meant}");
        let no_route =
            SessionError::NoRoute { address: at("[::1:5999]:5201"), cause: "x".to_owned() }.to_string();
        assert!(no_route.ends_with("firewall (if 5999 is the port: [::1]:5999)"), "{no_route}");
        for plain in [
            "192.0.2.1:5201",
            "[::1]:5201",
            "[2001:db8::1234]:5201",
            "[2001:db8::1:abcd]:5201",
            "[2001:db8:1:2:3:4:5:5999]:5201",
        ] {
            let text = SessionError::Refused { address: at(plain) }.to_string();
            assert!(text.ends_with("start 'bdp serve' there"), "{text}");
        }
    }

    #[test]
    fn link_local_address_without_zone_asks_for_one() {
        let no_route = |text| SessionError::NoRoute { address: at(text), cause: "x".to_owned() }.to_string();
        assert!(no_route("[fe80::1]:5201").ends_with("the name of the network device: fe80::1%eth0"));
        for other in ["[fe80::1%3]:5201", "192.0.2.1:5201"] {
            assert!(no_route(other).ends_with("routes and firewall"), "{other}");
        }
    }
}
