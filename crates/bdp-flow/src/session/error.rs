//! Why a session failed, each in one line with a way out.

use std::net::SocketAddr;

use bdp_model::measurement::Measurement;
use bdp_model::units::Nanos;
use bdp_wire::session::Refusal;

use crate::error::FlowError;

/// The result of a session.
pub type Result<T, E = SessionError> = std::result::Result<T, E>;

/// Why a measurement could not be made.
#[derive(Debug, thiserror::Error)]
pub enum SessionError {
    /// The request is impossible for any server.
    #[error("{0}")]
    Request(String),
    /// The name resolves to no address.
    #[error("resolve host '{host}': {cause}; check the name, or give an address")]
    NoSuchHost {
        /// The host as given.
        host: String,
        /// The resolver's answer.
        cause: String,
    },
    /// The host refused the connection: nothing listens on the port.
    #[error(
        "connect to {address}: connection refused, nothing listens on the port; start 'bdp serve' there{}",
        brackets(*address)
    )]
    Refused {
        /// The server's address.
        address: SocketAddr,
    },
    /// The connection attempt was not answered.
    #[error(
        "connect to {address}: no answer within {deadline}; check that the host is up and that firewalls allow TCP port {port}{hint}",
        port = address.port(),
        hint = brackets(*address)
    )]
    NoAnswer {
        /// The server's address.
        address: SocketAddr,
        /// How long it waited.
        deadline: Nanos,
    },
    /// There is no route to the address.
    #[error(
        "connect to {address}: no route ({cause}); {}",
        way_to(*address)
    )]
    NoRoute {
        /// The server's address.
        address: SocketAddr,
        /// The system's answer.
        cause: String,
    },
    /// Datagrams do not arrive, or their replies do not.
    #[error(
        "open UDP streams to {address}: no reply within {waited}; check that firewalls allow UDP port \
         {port}, that it is forwarded, and whether the server's log shows a refusal; or measure by TCP, \
         without -u",
        port = address.port()
    )]
    NoDatagrams {
        /// The server's address.
        address: SocketAddr,
        /// How long it waited.
        waited: Nanos,
    },
    /// The server was asked to send datagrams, and none arrived.
    #[error(
        "receive UDP from {address}: no datagram arrived within {waited}; check that firewalls allow UDP \
         port {port} in both directions; 'bdp serve' sends UDP to other machines only with \
         --iperf2-udp-reverse and --allow; or measure by TCP, without -u",
        port = address.port()
    )]
    NoReverse {
        /// The server's address.
        address: SocketAddr,
        /// How long it waited.
        waited: Nanos,
    },
    /// Datagrams of this size do not get through.
    #[error(
        "{address}: no datagram of {asked} B (-l) arrived: the path has an MTU of {mtu} and silently \
         drops larger packets; omit -l, or use at most -l {fits}"
    )]
    TooLong {
        /// The server's address.
        address: SocketAddr,
        /// The requested payload.
        asked: u32,
        /// The path MTU found.
        mtu: u32,
        /// The payload that fits into it.
        fits: u32,
    },
    /// Fragmented datagrams do not get through, while whole packets do.
    #[error(
        "{address}: no datagram of {asked} B (-l) arrived: the path has an MTU of {mtu}, and fragments \
         are dropped on the path or by the receiving host, while packets of {mtu} B arrive; use at most \
         -l {fits}"
    )]
    FragmentsLost {
        /// The server's address.
        address: SocketAddr,
        /// The requested payload.
        asked: u32,
        /// The path MTU as known to the local kernel.
        mtu: u32,
        /// The payload that fits into it.
        fits: u32,
    },
    /// The server answers but does not speak bdp.
    #[error("{address} does not speak bdp's protocol: {what}; check that 'bdp serve' uses this port")]
    NotBdp {
        /// The server's address.
        address: SocketAddr,
        /// What it sent instead.
        what: String,
    },
    /// The server uses another version of the protocol.
    #[error(
        "{address} uses version {theirs} of bdp's protocol, this bdp uses {ours}; install the same version of bdp at both ends"
    )]
    Version {
        /// The server's address.
        address: SocketAddr,
        /// The server's version.
        theirs: u8,
        /// This program's version.
        ours: u8,
    },
    /// The server refused the session or a request.
    #[error("{address} refused: {refusal}")]
    Denied {
        /// The server's address.
        address: SocketAddr,
        /// The reason.
        refusal: Refusal,
    },
    /// A token was given, and the server did not prove that it knows it.
    #[error("{address}: {}", unproven(*has_none))]
    Unproven {
        /// The server's address.
        address: SocketAddr,
        /// Whether the server reports that it has no token.
        has_none: bool,
    },
    /// The server's owner does not allow remote changes of its settings.
    #[error(
        "{address} does not allow remote changes of its settings; start 'bdp serve --allow-tune' there, or run the output of 'bdp tune export' there"
    )]
    TuningNotAllowed {
        /// The server's address.
        address: SocketAddr,
    },
    /// The server is too old for remote tuning.
    #[error(
        "{address} runs a version of bdp without remote tuning; install this version there and start 'bdp serve --allow-tune', or run the output of 'bdp tune export' there"
    )]
    TuningUnknown {
        /// The server's address.
        address: SocketAddr,
    },
    /// The server requires a login.
    #[error("{address} refused this client: {way_out}")]
    Login {
        /// The server's address.
        address: SocketAddr,
        /// What to check.
        way_out: String,
    },
    /// The server failed to carry out a request.
    #[error("{address} reported an error: {error}")]
    Far {
        /// The server's address.
        address: SocketAddr,
        /// The server's message.
        error: String,
    },
    /// The connection to the server was lost.
    #[error(
        "lost the connection to {address} during {doing}: the server ended or the path failed; run it again"
    )]
    Lost {
        /// The server's address.
        address: SocketAddr,
        /// What was in progress.
        doing: &'static str,
    },
    /// The server stopped answering.
    #[error(
        "{address} is connected but silent during {doing}; check that it runs bdp (iperf3 uses the same port) and that the machine responds"
    )]
    Silent {
        /// The server's address.
        address: SocketAddr,
        /// What was in progress.
        doing: &'static str,
    },
    /// A flow stalled: no more data was transferred.
    #[error(
        "{address} is connected, but no data was transferred for {within} during a flow: the server or \
         its machine has stopped, or the path is down; run it again"
    )]
    Stalled {
        /// The server's address.
        address: SocketAddr,
        /// For how long.
        within: Nanos,
    },
    /// The local end failed.
    #[error(transparent)]
    Near(#[from] FlowError),
    /// A web server did not deliver the requested file.
    #[error("download {url}: {what}")]
    Download {
        /// The URL.
        url: String,
        /// The reason, and a way out.
        what: String,
    },
    /// The measurement was interrupted after part of it was complete; that part is kept.
    #[error("{cause}")]
    Broken {
        /// The cause.
        cause: Box<SessionError>,
        /// The partial measurement, with the cause as its error.
        measurement: Box<Measurement>,
    },
    /// The cancel flag was raised.
    #[error("cancelled")]
    Cancelled,
}

impl SessionError {
    /// Returns the error for a host without an address.
    pub fn no_address(host: &str) -> Self {
        Self::NoSuchHost { host: host.to_owned(), cause: "it has no address".to_owned() }
    }

    /// Returns the error for a flow with this server that failed.
    pub fn of_flow(error: FlowError, address: SocketAddr) -> Self {
        match error {
            FlowError::Stalled { within } => Self::Stalled { address, within },
            other => Self::Near(other),
        }
    }

    /// Returns the error with its partial measurement changed, if there is one.
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

/// Returns the message for a server that knows no token.
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

/// Returns advice for a missing route.
fn way_to(address: SocketAddr) -> String {
    match address {
        // RFC 4007, section 6: a link-local address identifies a machine only together with its zone.
        SocketAddr::V6(v6) if v6.ip().is_unicast_link_local() && v6.scope_id() == 0 => {
            format!("a link-local address needs a zone, the name of the network device: {}%eth0", v6.ip())
        }
        _ => format!("check the address and this machine's routes and firewall{}", brackets(address)),
    }
}

/// Returns what an address without brackets may have meant: its last group read as a port.
fn brackets(address: SocketAddr) -> String {
    let SocketAddr::V6(v6) = address else { return String::new() };
    let text = v6.ip().to_string();
    let Some((host, port)) = text.rsplit_once(':') else { return String::new() };
    // A group of fewer digits is rarely a port; the rest must still be an address.
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
