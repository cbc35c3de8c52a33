//! Access control of a server: rules about addresses and counts, without sockets or clocks.

use bdp_model::names;
use std::collections::HashMap;
use std::fmt;
use std::net::{IpAddr, Ipv6Addr};
use std::str::FromStr;

use bdp_model::units::{ByteCount, Rate};
use bdp_wire::session::Refusal;
use ipnet::{IpNet, Ipv6Net};

/// A range of addresses, `192.0.2.0/24` (RFC 4632) or `2001:db8::/32` (RFC 4291); an address alone is a range of one.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Network(IpNet);

impl Network {
    /// Whether the range contains an address; an IPv4-mapped IPv6 address (RFC 4291, section 2.5.5.2) counts as IPv4.
    pub fn contains(&self, address: IpAddr) -> bool {
        self.0.contains(&address.to_canonical())
    }
}

impl FromStr for Network {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let wrong =
            || format!("'{text}' is not an address range: give 192.0.2.0/24, 2001:db8::/32 or one address");
        let (address, prefix) = match text.split_once('/') {
            Some((address, prefix)) => (address, Some(prefix)),
            None => (text, None),
        };
        let given: IpAddr = address.parse().map_err(|_| wrong())?;
        let alone = IpNet::from(given.to_canonical());
        let prefix = match prefix {
            None => alone.max_prefix_len(),
            // The prefix of a mapped address includes the 96 bits before it.
            Some(digits) => {
                let bits: u8 = digits.parse().map_err(|_| wrong())?;
                if given == alone.addr() { Some(bits) } else { bits.checked_sub(96) }.ok_or_else(wrong)?
            }
        };
        let network = IpNet::new(alone.addr(), prefix).map_err(|_| {
            format!("'{text}': a prefix of this IP version has at most {} bits", alone.max_prefix_len())
        })?;
        if network != network.trunc() {
            return Err(format!("'{text}' has bits set after its prefix; use '{}'", network.trunc()));
        }
        Ok(Self(network))
    }
}

impl fmt::Display for Network {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.fmt(f)
    }
}

/// A client's protocol.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Protocol {
    /// bdp's own.
    Bdp,
    /// iperf3's.
    Iperf3,
    /// iperf2's.
    Iperf2,
}

names!(Protocol: Bdp = "bdp", Iperf3 = "iperf3", Iperf2 = "iperf2");

/// What a client must prove before it is served.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Proof {
    /// Nothing: its address suffices.
    Nothing,
    /// Knowledge of the server's token.
    Token,
    /// A user's name and password.
    User,
}

/// Which addresses are allowed, and what they must prove.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct AccessRules {
    /// If not empty, only these and loopback are allowed; iperf clients from them need nothing else.
    pub allow: Vec<Network>,
    /// Never allowed, regardless of other rules; loopback included, if listed.
    pub deny: Vec<Network>,
    /// Whether everybody is allowed without a token.
    pub open: bool,
    /// Whether iperf3 clients must log in as a user, from any address.
    pub users: bool,
}

impl AccessRules {
    /// Returns what a client at this address must prove, or why it is refused.
    pub fn check(&self, peer: IpAddr, protocol: Protocol) -> Result<Proof, Denied> {
        let peer = peer.to_canonical();
        if let Some(&network) = self.deny.iter().find(|network| network.contains(peer)) {
            return Err(Denied::Listed { peer, network });
        }
        let listed = self.allow.iter().any(|network| network.contains(peer));
        if !listed && !self.allow.is_empty() && !peer.is_loopback() {
            return Err(Denied::Unlisted { peer });
        }
        let trusted = self.open || peer.is_loopback();
        match protocol {
            Protocol::Bdp => Ok(if trusted { Proof::Nothing } else { Proof::Token }),
            Protocol::Iperf3 if self.users => Ok(Proof::User),
            Protocol::Iperf3 | Protocol::Iperf2 if trusted || listed => Ok(Proof::Nothing),
            Protocol::Iperf3 | Protocol::Iperf2 => Err(Denied::Unproven { peer, protocol }),
        }
    }

    /// Whether an address is listed as allowed or belongs to this machine: the server may then send to it on the
    /// request of a client that merely claims that address.
    pub fn is_trusted(&self, peer: IpAddr) -> bool {
        let peer = peer.to_canonical();
        peer.is_loopback() || self.allow.iter().any(|network| network.contains(peer))
    }
}

/// Limits of concurrent use, for all protocols together.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct PlaceLimits {
    /// Sessions of all clients.
    pub sessions: u32,
    /// Sessions of one address.
    pub sessions_per_address: u32,
    /// Streams of one address, in all its sessions together.
    pub streams_per_address: u32,
    /// Memory of all flows: samples, streams and their buffers.
    pub memory_bytes: u64,
    /// How long a session may keep its place from waiting clients, whatever it does; strangers must also keep their
    /// flows moving. No limit if all clients are trusted.
    pub turn_ns: Option<u64>,
}

impl Default for PlaceLimits {
    /// No bound.
    fn default() -> Self {
        Self {
            sessions: u32::MAX,
            sessions_per_address: u32::MAX,
            streams_per_address: u32::MAX,
            memory_bytes: u64::MAX,
            turn_ns: None,
        }
    }
}

/// The used part of a server's places.
#[derive(Debug, Default)]
pub struct Occupancy {
    sessions: u32,
    of: HashMap<IpAddr, Held>,
}

/// The use of one address.
#[derive(Debug, Default, Clone, Copy)]
struct Held {
    sessions: u32,
    streams: u32,
}

impl Occupancy {
    /// Returns the number of current sessions.
    pub fn sessions(&self) -> u32 {
        self.sessions
    }

    /// Returns the number of current sessions of this address.
    pub fn sessions_of(&self, peer: IpAddr) -> u32 {
        self.of.get(&origin(peer)).map_or(0, |held| held.sessions)
    }

    /// Checks that there is a place for a session.
    pub fn check(&self, peer: IpAddr, limits: &PlaceLimits) -> Result<(), Denied> {
        if self.sessions >= limits.sessions {
            return Err(Denied::Full { sessions: limits.sessions });
        }
        if self.sessions_of(peer) >= limits.sessions_per_address {
            return Err(Denied::AddressFull { peer, sessions: limits.sessions_per_address });
        }
        Ok(())
    }

    /// Takes a place for a session, if there is one.
    pub fn enter(&mut self, peer: IpAddr, limits: &PlaceLimits) -> Result<(), Denied> {
        self.check(peer, limits)?;
        self.sessions += 1;
        self.of.entry(origin(peer)).or_default().sessions += 1;
        Ok(())
    }

    /// Releases the place.
    pub fn leave(&mut self, peer: IpAddr) {
        self.sessions = self.sessions.saturating_sub(1);
        if let Some(held) = self.of.get_mut(&origin(peer)) {
            held.sessions = held.sessions.saturating_sub(1);
        }
        self.tidy(peer);
    }

    /// Takes places for streams, all or none.
    pub fn take_streams(&mut self, peer: IpAddr, streams: u32, limits: &PlaceLimits) -> Result<(), Denied> {
        let held = self.of.entry(origin(peer)).or_default();
        let sum = held.streams.saturating_add(streams);
        let fits = sum <= limits.streams_per_address;
        if fits {
            held.streams = sum;
        }
        self.tidy(peer);
        if fits { Ok(()) } else { Err(Denied::Streams { peer, streams: limits.streams_per_address }) }
    }

    /// Releases the places.
    pub fn give_streams(&mut self, peer: IpAddr, streams: u32) {
        if let Some(held) = self.of.get_mut(&origin(peer)) {
            held.streams = held.streams.saturating_sub(streams);
        }
        self.tidy(peer);
    }

    /// Forgets an address that has nothing left.
    fn tidy(&mut self, peer: IpAddr) {
        if self.of.get(&origin(peer)).is_some_and(|held| held.sessions == 0 && held.streams == 0) {
            self.of.remove(&origin(peer));
        }
    }
}

/// Returns what counts as one address: for IPv6 the upper 64 bits, since clients choose the rest themselves (RFC
/// 4291, section 2.5.4).
pub fn origin(peer: IpAddr) -> IpAddr {
    match peer.to_canonical() {
        IpAddr::V6(v6) if !v6.is_loopback() => Ipv6Net::new_assert(v6, 64).trunc().addr().into(),
        IpAddr::V6(_) => Ipv6Addr::LOCALHOST.into(),
        v4 => v4,
    }
}

/// Why a client is refused, in one line with a way out.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum Denied {
    /// Its address is denied.
    #[error("{peer} is denied here (--deny {network})")]
    Listed {
        /// The client's address.
        peer: IpAddr,
        /// The entry that denies it.
        network: Network,
    },
    /// There is a list of allowed addresses, and the client is not on it.
    #[error("{peer} is not an allowed address; start 'bdp serve' there with --allow {peer}")]
    Unlisted {
        /// The client's address.
        peer: IpAddr,
    },
    /// Its protocol can't show a token, and its address is not enough.
    #[error(
        "{} clients have no token and are served only from loopback; start 'bdp serve' there with --allow {}{}",
        protocol.name(),
        peer.to_canonical(),
        if *protocol == Protocol::Iperf3 { ", or with --iperf3-users for logins" } else { "" }
    )]
    Unproven {
        /// The client's address.
        peer: IpAddr,
        /// The client's protocol.
        protocol: Protocol,
    },
    /// Every place is taken.
    #[error("busy with {sessions} sessions, its maximum; try again later")]
    Full {
        /// Number of places.
        sessions: u32,
    },
    /// This address has its share.
    #[error(
        "{} already has {sessions} sessions, the maximum per address (--max-sessions-per-address)",
        peer.to_canonical()
    )]
    AddressFull {
        /// The client's address.
        peer: IpAddr,
        /// Number of sessions that it may have.
        sessions: u32,
    },
    /// This address has its share of streams.
    #[error(
        "at most {streams} parallel streams per address, and {} requests more (--max-streams-per-address)",
        peer.to_canonical()
    )]
    Streams {
        /// The client's address.
        peer: IpAddr,
        /// Number of streams that it may have.
        streams: u32,
    },
    /// An iperf2 test in both directions has its share of streams.
    #[error(
        "an iperf2 test may have at most {streams} parallel streams, and {} requests more (--max-streams)",
        peer.to_canonical()
    )]
    TestStreams {
        /// The client's address.
        peer: IpAddr,
        /// Number of streams that it may have.
        streams: u32,
    },
    /// Its flow needs memory that it does not get.
    #[error(
        "the flow needs {} on the server for samples and streams, and a session of {} may use {}; use a \
         longer interval or fewer streams, or start 'bdp serve' there with a larger --max-memory",
        ByteCount::bytes(*bytes), peer.to_canonical(), ByteCount::bytes(*most)
    )]
    Memory {
        /// The client's address.
        peer: IpAddr,
        /// Bytes that it needs.
        bytes: u64,
        /// The most that one session may have.
        most: u64,
    },
    /// The client announces a send rate above the limit.
    #[error("{} sends at {asked}, more than the maximum of {granted} (--max-rate)", peer.to_canonical())]
    Rate {
        /// The client's address.
        peer: IpAddr,
        /// The announced rate of all its streams together.
        asked: Rate,
        /// The highest rate granted.
        granted: Rate,
    },
}

impl From<Denied> for Refusal {
    fn from(denied: Denied) -> Self {
        match denied {
            Denied::Full { sessions } => Self::Busy { sessions },
            other => Self::Other { text: other.to_string() },
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn ip(text: &str) -> IpAddr {
        text.parse().unwrap()
    }

    fn networks(texts: &[&str]) -> Vec<Network> {
        texts.iter().map(|text| text.parse().unwrap()).collect()
    }

    #[test]
    fn networks_hold_their_addresses_and_no_others() {
        for (network, inside, outside) in [
            ("192.0.2.0/24", "192.0.2.255", "192.0.3.0"),
            ("192.0.2.7", "192.0.2.7", "192.0.2.6"),
            ("0.0.0.0/0", "203.0.113.9", "2001:db8::1"),
            ("10.0.0.0/8", "::ffff:10.1.2.3", "11.0.0.0"),
            ("::ffff:10.0.0.0/104", "10.200.0.1", "11.0.0.0"),
            ("2001:db8::/32", "2001:db8:ffff::1", "2001:db9::"),
            ("::/0", "fe80::1", "127.0.0.1"),
            ("128.0.0.0/1", "255.255.255.255", "127.255.255.255"),
        ] {
            let parsed: Network = network.parse().unwrap();
            assert!(parsed.contains(ip(inside)), "{network} holds {inside}");
            assert!(!parsed.contains(ip(outside)), "{network} does not hold {outside}");
            assert_eq!(parsed.to_string().parse(), Ok(parsed));
        }
        for wrong in [
            "",
            "/8",
            "192.0.2.0/33",
            "::/129",
            "192.0.2.1/24",
            "ams1",
            "10.0.0.0/",
            "10.0.0.0/-1",
            "::ffff:10.0.0.0/8",
        ] {
            assert!(wrong.parse::<Network>().is_err(), "{wrong}");
        }
        let refused = "192.0.2.1/24".parse::<Network>().unwrap_err();
        assert!(refused.contains("'192.0.2.0/24'"), "{refused}");
    }

    #[test]
    fn strangers_show_the_token_and_foreign_protocols_stay_on_loopback() {
        let rules = AccessRules::default();
        for here in ["127.0.0.1", "127.9.9.9", "::1", "::ffff:127.0.0.1"] {
            for protocol in [Protocol::Bdp, Protocol::Iperf3, Protocol::Iperf2] {
                assert_eq!(rules.check(ip(here), protocol), Ok(Proof::Nothing), "{here} {protocol:?}");
            }
        }
        assert_eq!(rules.check(ip("192.0.2.7"), Protocol::Bdp), Ok(Proof::Token));
        for protocol in [Protocol::Iperf3, Protocol::Iperf2] {
            let denied = rules.check(ip("192.0.2.7"), protocol).unwrap_err();
            assert!(denied.to_string().contains("--allow 192.0.2.7"), "{denied}");
        }
        let open = AccessRules { open: true, ..Default::default() };
        for protocol in [Protocol::Bdp, Protocol::Iperf3, Protocol::Iperf2] {
            assert_eq!(open.check(ip("192.0.2.7"), protocol), Ok(Proof::Nothing));
        }
    }

    #[test]
    fn a_list_lets_in_its_own_alone_and_denial_wins() {
        let rules = AccessRules {
            allow: networks(&["192.0.2.0/24", "2001:db8::/32"]),
            deny: networks(&["192.0.2.66", "127.0.0.9"]),
            ..Default::default()
        };
        assert_eq!(rules.check(ip("192.0.2.7"), Protocol::Bdp), Ok(Proof::Token));
        assert_eq!(rules.check(ip("192.0.2.7"), Protocol::Iperf2), Ok(Proof::Nothing));
        assert_eq!(rules.check(ip("2001:db8::9"), Protocol::Iperf3), Ok(Proof::Nothing));
        assert_eq!(rules.check(ip("127.0.0.1"), Protocol::Iperf3), Ok(Proof::Nothing));
        for (outside, part) in [
            ("198.51.100.1", "not an allowed"),
            ("192.0.2.66", "--deny 192.0.2.66/32"),
            ("127.0.0.9", "denied"),
        ] {
            let open = AccessRules { open: true, ..rules.clone() };
            for rules in [&rules, &open] {
                let denied = rules.check(ip(outside), Protocol::Bdp).unwrap_err().to_string();
                assert!(denied.contains(part), "{denied}");
            }
        }
    }

    #[test]
    fn a_list_of_users_binds_iperf3_everywhere_and_nobody_else() {
        let rules = AccessRules { users: true, ..Default::default() };
        for peer in ["127.0.0.1", "192.0.2.7"] {
            assert_eq!(rules.check(ip(peer), Protocol::Iperf3), Ok(Proof::User));
        }
        assert!(rules.check(ip("192.0.2.7"), Protocol::Iperf2).is_err());
    }

    #[test]
    fn places_are_taken_given_back_and_forgotten() {
        let limits = PlaceLimits {
            sessions: 3,
            sessions_per_address: 2,
            streams_per_address: 10,
            ..Default::default()
        };
        let mut taken = Occupancy::default();
        let (one, other) = (ip("192.0.2.1"), ip("192.0.2.2"));
        taken.enter(one, &limits).unwrap();
        taken.enter(ip("::ffff:192.0.2.1"), &limits).unwrap();
        assert_eq!(taken.enter(one, &limits), Err(Denied::AddressFull { peer: one, sessions: 2 }));
        taken.enter(other, &limits).unwrap();
        assert_eq!(taken.enter(ip("::1"), &limits), Err(Denied::Full { sessions: 3 }));
        taken.leave(one);
        taken.enter(one, &limits).unwrap();

        taken.take_streams(one, 10, &limits).unwrap();
        assert_eq!(taken.take_streams(one, 1, &limits), Err(Denied::Streams { peer: one, streams: 10 }));
        assert!(taken.take_streams(other, u32::MAX, &limits).is_err());
        taken.give_streams(one, 4);
        taken.take_streams(one, 4, &limits).unwrap();

        taken.give_streams(one, 10);
        for peer in [one, one, other] {
            taken.leave(peer);
        }
        assert_eq!((taken.sessions(), taken.of.len()), (0, 0));
    }

    #[test]
    fn the_addresses_that_one_host_of_ipv6_may_choose_from_are_one() {
        let limits = PlaceLimits {
            sessions: 9,
            sessions_per_address: 1,
            streams_per_address: 1,
            ..Default::default()
        };
        let mut taken = Occupancy::default();
        taken.enter(ip("2001:db8::1"), &limits).unwrap();
        assert!(taken.enter(ip("2001:db8::ffff:1"), &limits).is_err());
        taken.enter(ip("2001:db8:0:1::1"), &limits).unwrap();
    }
}
