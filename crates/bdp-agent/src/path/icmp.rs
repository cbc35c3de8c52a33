//! Probes by ICMP echo (RFC 792, RFC 4443). All belong to one flow: routers do not look at the fields that could
//! vary.

use std::io;
use std::net::SocketAddr;
use std::os::fd::{AsFd, BorrowedFd};

use bdp_model::link::checksum;
use bdp_model::probes::hops::{ProbeMethod, ProbeProtocol};
use bdp_sys::SysError;
use bdp_sys::hop_socket::HopSocket;
use bdp_sys::poll::Interest;
use bdp_sys::stamp::IcmpAccess;
use bdp_wire::icmp::Quote;

use super::prober::{Outgoing, Prober, ROOM, Reply, SMALL_BYTES, Which, ip_header, number_in, payload};

/// Bytes of type, code, checksum, identifier and sequence number.
const HEADER_BYTES: usize = 8;
/// Types of an echo and of its reply, by version.
const ECHO: [u8; 2] = [8, 128];
const REPLY: [u8; 2] = [0, 129];

/// The socket.
pub(super) struct IcmpProber {
    to: SocketAddr,
    socket: HopSocket,
    access: IcmpAccess,
    mark: [u8; 4],
    message: Vec<u8>,
    room: Vec<u8>,
}

impl IcmpProber {
    /// Opens the socket for an address.
    pub(super) fn open(
        to: SocketAddr,
        from: Option<SocketAddr>,
        device: Option<&str>,
    ) -> Result<Self, SysError> {
        let (socket, access) = HopSocket::icmp(to, from, device)?;
        let mark = bdp_sys::random::bytes()?;
        Ok(Self { to, socket, access, mark, message: Vec::new(), room: vec![0; ROOM] })
    }

    fn version(&self) -> usize {
        usize::from(self.to.is_ipv6())
    }

    /// The number of the probe that a packet answers; `None` of any other packet.
    fn read_reply(&self, packet: &[u8]) -> Option<u32> {
        let header = match (self.access, self.to) {
            (IcmpAccess::Raw, SocketAddr::V4(_)) => usize::from(packet.first()? & 0xf) * 4,
            _ => 0,
        };
        let message = packet.get(header..)?;
        let is_reply = *message.first()? == REPLY[self.version()];
        is_reply.then(|| number_in(message.get(HEADER_BYTES..)?, self.mark)).flatten()
    }

    /// Returns which probe a quoted message belongs to, its header first.
    fn read_quote(&self, message: &[u8]) -> Option<Which> {
        let is_echo = *message.first()? == ECHO[self.version()];
        let sequence = message.get(6..8)?.first_chunk::<2>()?;
        let number = message.get(HEADER_BYTES..).and_then(|rest| number_in(rest, self.mark));
        // A raw socket also receives others' echoes; their number is unknown or the mark is another's.
        let is_ours = number.is_some() || self.access == IcmpAccess::Datagram || self.is_marked(message);
        (is_echo && is_ours)
            .then(|| number.map_or(Which::Ending(u16::from_be_bytes(*sequence)), Which::Number))
    }

    /// Whether its identifier is ours, if we choose it.
    fn is_marked(&self, message: &[u8]) -> bool {
        message.get(4..6) == Some(&self.mark[..2])
    }
}

impl Prober for IcmpProber {
    fn method(&self) -> ProbeMethod {
        ProbeMethod {
            protocol: ProbeProtocol::Icmp,
            bytes: ip_header(self.to) + SMALL_BYTES,
            raw: self.access == IcmpAccess::Raw,
            fallback: false,
        }
    }

    fn send(&mut self, probe: &Outgoing) -> Result<(), SysError> {
        self.message.clear();
        self.message.extend([ECHO[self.version()], 0, 0, 0]);
        self.message.extend(&self.mark[..2]);
        self.message.extend((probe.number as u16).to_be_bytes());
        let bytes = probe.bytes - ip_header(self.to) - HEADER_BYTES as u32;
        let mut message = std::mem::take(&mut self.message);
        let mut rest = Vec::with_capacity(bytes as usize);
        payload(&mut rest, self.mark, probe.number, bytes);
        message.extend(rest);
        if self.to.is_ipv4() {
            // For ICMPv6 the kernel computes it, as it covers the addresses.
            let sum = checksum::of(&message);
            message[2..4].copy_from_slice(&sum.to_be_bytes());
        }
        let sent = self.socket.send(&message, probe.hop, probe.octet);
        self.message = message;
        let operand = self.to.ip().to_string();
        sent.map_err(|source| SysError { operation: "send to", operand, source })
    }

    fn receive(&mut self, each: &mut dyn FnMut(Reply)) -> io::Result<()> {
        while let Some(report) = self.socket.reported(&mut self.room)? {
            let which = self.read_quote(&self.room[..report.received.bytes]);
            which
                .and_then(|which| Reply::reported(which, &report, self.to.ip()))
                .into_iter()
                .for_each(&mut *each);
        }
        while let Some(received) = self.socket.receive(&mut self.room)? {
            let Some(number) = self.read_reply(&self.room[..received.bytes]) else { continue };
            each(Reply::arrived(Which::Number(number), self.to.ip(), received.arrived_unix_ns));
        }
        Ok(())
    }

    fn descriptors<'a>(&'a self, into: &mut Vec<(BorrowedFd<'a>, Interest)>) {
        into.push((self.socket.as_fd(), Interest::Read));
    }

    fn number_of(&self, quote: &Quote<'_>) -> Option<Which> {
        let is_icmp = matches!(quote.protocol, 1 | 58);
        // Whose echo it is that says nothing of our mark, a raw socket does not know.
        let number = quote.transport.get(HEADER_BYTES..).and_then(|rest| number_in(rest, self.mark))?;
        (is_icmp && quote.to == self.to.ip()).then_some(Which::Number(number))
    }

    fn has_flows(&self) -> bool {
        false
    }
}
