//! Probes by TCP: SYNs to the port of the host, each on its own socket.
//!
//! A SYN belongs to the flow of the connection that it would make, passes firewalls that allow that port, and is
//! answered by the destination however it limits ICMP. Since 5.8, Linux reports a router's error with the router's
//! address. Segments of an established connection would do less: for these Linux keeps the error alone, without an
//! address (net/ipv4/tcp_ipv4.c, `tcp_v4_err`), and retransmissions interfere. The price: a flow can have one SYN in
//! flight at a time, as its ports are taken.

use std::collections::BTreeMap;
use std::io;
use std::net::{IpAddr, SocketAddr};
use std::os::fd::{AsFd, BorrowedFd};

use bdp_flow::session::dial::any_address;
use bdp_model::probes::hops::{ProbeMethod, ProbeProtocol};
use bdp_sys::SysError;
use bdp_sys::hop_socket::{SynOutcome, SynProbe};
use bdp_sys::poll::Interest;
use bdp_wire::icmp::Quote;

use super::prober::{Outgoing, Prober, ROOM, Reply, Which, ip_header};

/// Bytes of Linux's SYN behind the IP header: with MSS, SACK, timestamps and window scaling.
const SYN_BYTES: u32 = 40;
/// Ports of flows, below the kernel's ephemeral ports.
const PORTS: std::ops::Range<u16> = 24_000..32_000;

/// The sockets.
pub(super) struct TcpProber {
    to: SocketAddr,
    from: IpAddr,
    device: Option<String>,
    first_port: u16,
    under_way: BTreeMap<u16, (u32, SynProbe)>,
    room: Vec<u8>,
}

impl TcpProber {
    /// Creates a prober for an address and port.
    pub(super) fn open(
        to: SocketAddr,
        from: Option<SocketAddr>,
        device: Option<&str>,
    ) -> Result<Self, SysError> {
        let draw = u16::from_be_bytes(bdp_sys::random::bytes()?);
        Ok(Self {
            to,
            from: from.map_or(any_address(to), |from| from.ip()),
            device: device.map(str::to_owned),
            first_port: PORTS.start + draw % (PORTS.end - PORTS.start),
            under_way: BTreeMap::new(),
            room: vec![0; ROOM],
        })
    }

    fn port(&self, flow: u16) -> u16 {
        PORTS.start + (self.first_port - PORTS.start + flow) % (PORTS.end - PORTS.start)
    }
}

impl Prober for TcpProber {
    fn method(&self) -> ProbeMethod {
        ProbeMethod {
            protocol: ProbeProtocol::Tcp,
            bytes: ip_header(self.to) + SYN_BYTES,
            raw: false,
            fallback: false,
        }
    }

    fn send(&mut self, probe: &Outgoing) -> Result<(), SysError> {
        let from = SocketAddr::new(self.from, self.port(probe.flow));
        let syn = SynProbe::send(self.to, from, self.device.as_deref(), probe.hop, probe.octet)?;
        self.under_way.insert(probe.flow, (probe.number, syn));
        Ok(())
    }

    fn is_busy(&self, flow: u16) -> bool {
        self.under_way.contains_key(&flow)
    }

    fn is_one_at_a_time(&self) -> bool {
        true
    }

    fn give_up(&mut self, number: u32) {
        self.under_way.retain(|_, (other, _)| *other != number);
    }

    fn receive(&mut self, each: &mut dyn FnMut(Reply)) -> io::Result<()> {
        let mut ended = Vec::new();
        for (&flow, (number, syn)) in &self.under_way {
            let (which, there) = (Which::Number(*number), self.to.ip());
            let reply = match syn.outcome(&mut self.room)? {
                SynOutcome::Pending => continue,
                SynOutcome::Accepted(rtt_ns) => Some(Reply { rtt_ns, ..Reply::arrived(which, there, None) }),
                SynOutcome::Refused => Some(Reply::arrived(which, there, None)),
                SynOutcome::Reported(report) => Reply::reported(which, &report, there),
            };
            reply.into_iter().for_each(&mut *each);
            ended.push(flow);
        }
        self.under_way.retain(|flow, _| !ended.contains(flow));
        Ok(())
    }

    fn descriptors<'a>(&'a self, into: &mut Vec<(BorrowedFd<'a>, Interest)>) {
        into.extend(self.under_way.values().map(|(_, syn)| (syn.as_fd(), Interest::Write)));
    }

    fn number_of(&self, quote: &Quote<'_>) -> Option<Which> {
        let (from, to) = quote.ports()?;
        if quote.protocol != 6 || to != self.to.port() || quote.to != self.to.ip() {
            return None;
        }
        let offset =
            from.checked_sub(PORTS.start)? + (PORTS.end - PORTS.start) - (self.first_port - PORTS.start);
        Some(Which::OfFlow(offset % (PORTS.end - PORTS.start)))
    }

    fn has_sizes(&self) -> bool {
        false
    }
}
