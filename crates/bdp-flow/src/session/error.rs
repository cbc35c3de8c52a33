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
    #[error("find host '{host}': {cause}; check the name, or give its address")]
    NoSuchHost {
        /// As given.
        host: String,
        /// The resolver's answer.
        cause: String,
    },
    /// The host refused the connection: nothing listens there.
    #[error(
        "connect to {address}: refused, the host is there and nothing listens on the port; start 'bdp serve' on it{}",
        brackets(*address)
    )]
    Refused {
        /// Where.
        address: SocketAddr,
    },
    /// Nothing came back.
    #[error(
        "connect to {address}: no answer within {deadline}; is the host up, and does a firewall let TCP port {port} through?{hint}",
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
        "open UDP streams with {address}: no datagram came back within {waited}; does a firewall let UDP port {port} through, is \
         it forwarded, and does the log there show a refusal? Without -u the same is measured by TCP",
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
        "{address} was asked for datagrams, and none came within {waited}; does a firewall let UDP port {port} through both ways? A \
         'bdp serve' there sends them to other machines with --iperf2-udp-reverse and --allow alone. Without -u the same is measured \
         by TCP",
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
        "{address}: no flow of datagrams of {asked} B (-l) came through, as the path holds an MTU of {mtu} and drops what is longer \
         without a word; leave -l out, or ask for -l {fits} at most"
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
        "{address}: no flow of datagrams of {asked} B (-l) came through: the path holds an MTU of {mtu}, so that they go as fragments, and these are \
         dropped on the way or by the receiving host, while packets of {mtu} B come through; ask for -l {fits} at most"
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
    #[error("{address} does not speak bdp's protocol: {what}; is it another program's port?")]
    NotBdp {
        /// Where.
        address: SocketAddr,
        /// What came instead.
        what: String,
    },
    /// The peer speaks another version.
    #[error(
        "{address} speaks version {theirs} of bdp's protocol, this bdp speaks {ours}; install the same bdp at both ends"
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
        "{address} does not let its settings be changed from afar; its owner allows it by 'bdp serve --allow-tune', or runs there what 'bdp tune export' writes"
    )]
    TuningNotAllowed {
        /// Where.
        address: SocketAddr,
    },
    /// The peer is too old to change settings from other machines.
    #[error(
        "{address} runs a bdp that can't change settings from afar; install this version there and start 'bdp serve --allow-tune', or run there what 'bdp tune export' writes"
    )]
    TuningUnknown {
        /// Where.
        address: SocketAddr,
    },
    /// The peer serves those alone that log in.
    #[error("{address} did not let this client in: {way_out}")]
    Login {
        /// Where.
        address: SocketAddr,
        /// What to look at.
        way_out: String,
    },
    /// The peer could not do what it was asked.
    #[error("{address} could not: {error}")]
    Far {
        /// Where.
        address: SocketAddr,
        /// Its words.
        error: String,
    },
    /// The peer went away.
    #[error("{address} went away while {doing} (did it end, or the path break?); run it again")]
    Lost {
        /// Where.
        address: SocketAddr,
        /// What was going on.
        doing: &'static str,
    },
    /// The peer fell silent.
    #[error(
        "{address} is connected and says nothing while {doing}; is it bdp (iperf3 has the same port), and is the machine alive?"
    )]
    Silent {
        /// Where.
        address: SocketAddr,
        /// What was going on.
        doing: &'static str,
    },
    /// Nothing moves any more.
    #[error(
        "{address} is connected, and nothing moved for {within} while a flow ran: was it or its machine stopped, or is the path \
         down? Run it again"
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
    #[error("cancelled before its end")]
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
            "this server has no token, so it can't prove that it is the one whose token was given; to measure with it all the same, \
             leave out --token, --token-file and BDP_TOKEN"
        }
        false => {
            "it did not prove that it knows the token: it is another server than the one that printed it, or something in between \
             pretends to be it"
        }
    }
}

/// What helps where there is no route.
fn way_to(address: SocketAddr) -> String {
    match address {
        // RFC 4007, section 6: a link-local address means a machine only together with its zone.
        SocketAddr::V6(v6) if v6.ip().is_unicast_link_local() && v6.scope_id() == 0 => {
            format!("a link-local address needs its zone, the device that leads there: {}%eth0", v6.ip())
        }
        _ => format!("check the address, and this machine's routes and firewall{}", brackets(address)),
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
            assert!(text.ends_with("start 'bdp serve' on it"), "{text}");
        }
    }

    #[test]
    fn link_local_address_without_zone_asks_for_one() {
        let no_route = |text| SessionError::NoRoute { address: at(text), cause: "x".to_owned() }.to_string();
        assert!(no_route("[fe80::1]:5201").ends_with("that leads there: fe80::1%eth0"));
        for other in ["[fe80::1%3]:5201", "192.0.2.1:5201"] {
            assert!(no_route(other).ends_with("routes and firewall"), "{other}");
        }
    }
}
