//! ICMP echo requests (RFC 792, RFC 4443).

use std::io::{self, ErrorKind};
use std::net::SocketAddr;

use bdp_model::link::checksum;
use bdp_model::probes::ping::{PingMethod, PingRequest};
use bdp_sys::random;
use bdp_sys::stamp::{IcmpAccess, StampedSocket};

use super::exchange::{Arrival, Carrier, Took};
use bdp_flow::error::FlowError;
use bdp_flow::session::error::SessionError;

/// Bytes of type, code, checksum, identifier and sequence number.
const HEADER_BYTES: usize = 8;
/// The payload begins with a mark for our own answers, and the number of the probe.
const LEAST_PAYLOAD: usize = 16;
/// As `ping` has it.
const PAYLOAD: usize = 56;
/// The longest IPv4 header (RFC 791), which raw sockets return with the packet.
const LONGEST_HEADER: usize = 60;

/// The socket and the request that it sends.
pub(super) struct Icmp {
    socket: StampedSocket,
    access: IcmpAccess,
    is_v6: bool,
    cookie: [u8; 8],
    message: Vec<u8>,
    room: Vec<u8>,
}

impl Icmp {
    /// Opens the socket.
    pub(super) fn open(
        request: &PingRequest,
        to: SocketAddr,
        from: Option<SocketAddr>,
    ) -> Result<Self, SessionError> {
        let payload = request.payload.map_or(PAYLOAD, |p| p.as_bytes() as usize);
        if payload < LEAST_PAYLOAD {
            return Err(SessionError::Request(format!(
                "an ICMP payload must have at least {LEAST_PAYLOAD} bytes: it contains the number of the probe"
            )));
        }
        let opened = StampedSocket::icmp(to, from, request.bind_device.as_deref(), request.dscp);
        let (mut socket, access) = opened.map_err(|error| match error.source.kind() {
            ErrorKind::PermissionDenied => SessionError::Near(FlowError::Refused(format!(
                "{error}; run as root, or permit your group: sysctl -w 'net.ipv4.ping_group_range=0 \
                 2147483647'; without --icmp bdp uses TCP connects"
            ))),
            _ => error.into(),
        })?;
        if request.stamps {
            socket.ask_stamps()?;
        }
        let mut icmp = Self {
            socket,
            access,
            is_v6: to.is_ipv6(),
            cookie: random::bytes()?,
            message: vec![0; HEADER_BYTES + payload],
            room: vec![0; LONGEST_HEADER + HEADER_BYTES + payload],
        };
        icmp.message[0] = if icmp.is_v6 { 128 } else { 8 };
        let identifier = icmp.cookie[..2].to_owned();
        icmp.message[4..6].copy_from_slice(&identifier);
        icmp.message[8..16].copy_from_slice(&icmp.cookie);
        Ok(icmp)
    }

    /// Returns the method, in a sentence.
    pub(super) fn method(&self) -> PingMethod {
        let payload_bytes = (self.message.len() - HEADER_BYTES) as u64;
        PingMethod::Icmp { payload_bytes, raw: matches!(self.access, IcmpAccess::Raw) }
    }

    /// The number of the probe that a packet answers; `None` of any other packet.
    fn read(&self, packet: &[u8]) -> Option<u64> {
        let header = match (self.access, self.is_v6) {
            (IcmpAccess::Raw, false) => usize::from(packet.first()? & 0xf) * 4,
            _ => 0,
        };
        let message = packet.get(header..)?;
        let wanted = if self.is_v6 { 129 } else { 0 };
        let is_ours = *message.first()? == wanted && *message.get(8..16)? == self.cookie;
        is_ours.then(|| message.get(16..24)?.try_into().ok().map(u64::from_be_bytes)).flatten()
    }
}

impl Carrier for Icmp {
    fn send(&mut self, number: u64) -> io::Result<()> {
        self.message[6..8].copy_from_slice(&(number as u16).to_be_bytes());
        self.message[16..24].copy_from_slice(&number.to_be_bytes());
        if !self.is_v6 {
            // For ICMPv6 the kernel computes it, as it covers the addresses.
            self.message[2..4].fill(0);
            let sum = checksum::of(&self.message);
            self.message[2..4].copy_from_slice(&sum.to_be_bytes());
        }
        self.socket.send(&self.message)
    }

    fn receive(&mut self) -> io::Result<Took> {
        match self.socket.receive(&mut self.room) {
            Ok((length, stamp)) => Ok(match self.read(&self.room[..length]) {
                Some(number) => Took::Answer(Arrival { number, stamp, far: None }),
                None => Took::Other,
            }),
            Err(e) if matches!(e.kind(), ErrorKind::WouldBlock | ErrorKind::Interrupted) => Ok(Took::Nothing),
            Err(e) => Err(e),
        }
    }

    fn stamped(&self) -> Option<&StampedSocket> {
        Some(&self.socket)
    }
}
