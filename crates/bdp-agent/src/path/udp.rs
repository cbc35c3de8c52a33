//! Probes by UDP: a socket, and so a source port, for each flow. The destination port is constant, so that packets of
//! a flow take the same branches (Paris traceroute: B. Augustin et al., "Avoiding traceroute anomalies with Paris
//! traceroute", IMC 2006).

use std::collections::BTreeMap;
use std::io;
use std::net::SocketAddr;
use std::os::fd::{AsFd, BorrowedFd};

use bdp_model::probes::hops::{ProbeMethod, ProbeProtocol};
use bdp_sys::SysError;
use bdp_sys::hop_socket::HopSocket;
use bdp_sys::poll::Interest;
use bdp_wire::icmp::Quote;

use super::prober::{Outgoing, Prober, ROOM, Reply, SMALL_BYTES, Which, ip_header, number_in, payload};

/// The first port of traceroute, which firewalls know and nothing listens on.
pub(super) const PORT: u16 = 33_434;
/// Bytes of UDP's header.
const HEADER_BYTES: u32 = 8;

/// The sockets.
pub(super) struct UdpProber {
    to: SocketAddr,
    from: Option<SocketAddr>,
    device: Option<String>,
    mark: [u8; 4],
    fallback: bool,
    flows: BTreeMap<u16, (HopSocket, Option<u16>)>,
    message: Vec<u8>,
    room: Vec<u8>,
}

impl UdpProber {
    /// Opens the sockets for an address. `fallback` says whether ICMP was refused.
    pub(super) fn open(
        to: SocketAddr,
        from: Option<SocketAddr>,
        device: Option<&str>,
        fallback: bool,
    ) -> Result<Self, SysError> {
        let mut to = to;
        to.set_port(PORT);
        let mut prober = Self {
            to,
            from,
            device: device.map(str::to_owned),
            mark: bdp_sys::random::bytes()?,
            fallback,
            flows: BTreeMap::new(),
            message: Vec::new(),
            room: vec![0; ROOM],
        };
        prober.flow(0)?;
        Ok(prober)
    }

    fn flow(&mut self, flow: u16) -> Result<&HopSocket, SysError> {
        if !self.flows.contains_key(&flow) {
            let socket = HopSocket::udp(self.to, self.from, self.device.as_deref())?;
            let port = socket.local_address().ok().map(|local| local.port());
            self.flows.insert(flow, (socket, port));
        }
        Ok(&self.flows[&flow].0)
    }
}

impl Prober for UdpProber {
    fn method(&self) -> ProbeMethod {
        ProbeMethod {
            protocol: ProbeProtocol::Udp,
            bytes: ip_header(self.to) + SMALL_BYTES,
            raw: false,
            fallback: self.fallback,
        }
    }

    fn send(&mut self, probe: &Outgoing) -> Result<(), SysError> {
        let mut message = std::mem::take(&mut self.message);
        message.clear();
        payload(&mut message, self.mark, probe.number, probe.bytes - ip_header(self.to) - HEADER_BYTES);
        let to = self.to;
        let sent = self.flow(probe.flow)?.send(&message, probe.hop, probe.octet);
        self.message = message;
        sent.map_err(|source| SysError { operation: "send to", operand: to.to_string(), source })
    }

    fn receive(&mut self, each: &mut dyn FnMut(Reply)) -> io::Result<()> {
        for (&flow, (socket, _)) in &self.flows {
            while let Some(report) = socket.reported(&mut self.room)? {
                let number = number_in(&self.room[..report.received.bytes], self.mark);
                let which = number.map_or(Which::OfFlow(flow), Which::Number);
                Reply::reported(which, &report, self.to.ip()).into_iter().for_each(&mut *each);
            }
            // Something listens there after all, and answers.
            while let Some(received) = socket.receive(&mut self.room)? {
                let number = number_in(&self.room[..received.bytes], self.mark);
                let which = number.map_or(Which::OfFlow(flow), Which::Number);
                each(Reply::arrived(which, self.to.ip(), received.arrived_unix_ns));
            }
        }
        Ok(())
    }

    fn descriptors<'a>(&'a self, into: &mut Vec<(BorrowedFd<'a>, Interest)>) {
        into.extend(self.flows.values().map(|(socket, _)| (socket.as_fd(), Interest::Read)));
    }

    fn number_of(&self, quote: &Quote<'_>) -> Option<Which> {
        let (from, to) = quote.ports()?;
        if quote.protocol != 17 || to != PORT || quote.to != self.to.ip() {
            return None;
        }
        let flow = *self.flows.iter().find(|(_, (_, port))| *port == Some(from))?.0;
        let number = quote.transport.get(HEADER_BYTES as usize..).and_then(|rest| number_in(rest, self.mark));
        Some(number.map_or(Which::OfFlow(flow), Which::Number))
    }
}
