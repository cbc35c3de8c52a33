//! Sockets for probes that expire on the path, each with its own hop limit.
//!
//! A router's answer is read from the error queue of the socket that sent the probe (`IP_RECVERR`,
//! `IPV6_RECVERR`; ip(7)), which needs no privilege. The queue gives the responder, the type and code of its ICMP
//! message, and the quoted bytes after the probe's transport header. It does not give the quoted IP header: that
//! takes a raw socket, [`QuoteSocket`].

use std::io::{self, ErrorKind};
use std::net::{IpAddr, SocketAddr};
use std::os::fd::{AsFd, BorrowedFd};
use std::time::Duration;

use socket2::{Domain, Protocol, Socket, Type};

use crate::control_messages::{self, ControlMessage};
use crate::socket::scoped;
use crate::socket_option::set_number;
use crate::stamp::IcmpAccess;
use crate::{Result, SysError, tcp_info};

/// Calls that may fail in a row because of errors reported for earlier probes.
const REPORTS: u32 = 4;

/// A message read from a socket's queue.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Received {
    /// Bytes written to the caller's buffer.
    pub bytes: usize,
    /// The sender, if the socket receives from several.
    pub from: Option<IpAddr>,
    /// When the kernel received it, nanoseconds since 1970.
    pub arrived_unix_ns: Option<u64>,
    /// Hop limit that the packet had left on arrival.
    pub hops_left: Option<u8>,
}

/// An error of a probe that a router, the destination or this machine's kernel reported.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct ReportedError {
    /// What the message quotes of the probe, and its arrival time.
    pub received: Received,
    /// Who reported it; `None` if it was this machine's kernel, or is unknown.
    pub offender: Option<IpAddr>,
    /// Whether it arrived by ICMP; else this machine's kernel detected it.
    pub by_icmp: bool,
    /// Type of the ICMP message.
    pub kind: u8,
    /// Code of the ICMP message.
    pub code: u8,
    /// MTU, with "fragmentation needed" and "packet too big".
    pub info: u32,
}

/// A connected, nonblocking UDP or ICMP socket. Its packets are never fragmented, and the kernel's known path MTU
/// does not limit them (`IP_PMTUDISC_PROBE`).
#[derive(Debug)]
pub struct HopSocket {
    socket: Socket,
    is_v6: bool,
}

impl HopSocket {
    /// Creates a UDP socket, from a local address if given.
    pub fn udp(to: SocketAddr, from: Option<SocketAddr>, device: Option<&str>) -> Result<Self> {
        let socket = Socket::new(Domain::for_address(to), Type::DGRAM, Some(Protocol::UDP))
            .map_err(|e| SysError::new("make UDP socket for", to.to_string(), e))?;
        Self::connect(socket, to, from, device)
    }

    /// Creates an ICMP echo socket, of the unprivileged kind if available.
    pub fn icmp(
        to: SocketAddr,
        from: Option<SocketAddr>,
        device: Option<&str>,
    ) -> Result<(Self, IcmpAccess)> {
        let protocol = if to.is_ipv4() { Protocol::ICMPV4 } else { Protocol::ICMPV6 };
        let open = |kind| Socket::new(Domain::for_address(to), kind, Some(protocol));
        let (socket, access) = match open(Type::DGRAM) {
            Ok(socket) => (socket, IcmpAccess::Datagram),
            Err(refused) => match open(Type::RAW) {
                Ok(socket) => (socket, IcmpAccess::Raw),
                Err(_) => return Err(SysError::new("open ICMP socket to", to.ip().to_string(), refused)),
            },
        };
        // ICMP ignores the port, and on an IPv6 socket it has to be zero.
        let mut to = to;
        to.set_port(0);
        let from = from.map(|from| SocketAddr::new(from.ip(), 0));
        Ok((Self::connect(socket, to, from, device)?, access))
    }

    fn connect(
        socket: Socket,
        to: SocketAddr,
        from: Option<SocketAddr>,
        device: Option<&str>,
    ) -> Result<Self> {
        prepare(&socket, to, device)?;
        let (level, option, name) = match to {
            SocketAddr::V4(_) => (libc::IPPROTO_IP, libc::IP_MTU_DISCOVER, "IP_MTU_DISCOVER"),
            SocketAddr::V6(_) => (libc::IPPROTO_IPV6, libc::IPV6_MTU_DISCOVER, "IPV6_MTU_DISCOVER"),
        };
        // The number is the same for both IP versions.
        set_number(&socket, level, option, libc::IP_PMTUDISC_PROBE, name)?;
        if let Some(from) = from.map(|from| scoped(from, to)) {
            socket.bind(&from.into()).map_err(|e| SysError::new("bind to", from.to_string(), e))?;
        }
        socket.connect(&to.into()).map_err(|e| SysError::new("connect to", to.to_string(), e))?;
        Ok(Self { socket, is_v6: to.is_ipv6() })
    }

    /// The local address, which the kernel may have chosen.
    pub fn local_address(&self) -> io::Result<SocketAddr> {
        let local = self.socket.local_addr()?;
        local.as_socket().ok_or_else(|| ErrorKind::InvalidData.into())
    }

    /// Sends a packet with this hop limit, and this type of service or traffic class.
    pub fn send(&self, bytes: &[u8], hops: u8, octet: u8) -> io::Result<()> {
        set_header(&self.socket, self.is_v6, hops, octet)?;
        for _ in 0..REPORTS {
            match self.socket.send(bytes) {
                // Either an earlier probe's error, reported once and in the queue too, or this one can't be sent.
                Err(e) if is_reported(&e) => {}
                other => return other.map(drop),
            }
        }
        self.socket.send(bytes).map(drop)
    }

    /// Reads a packet from the other end; `None` if none has arrived.
    pub fn receive(&self, room: &mut [u8]) -> io::Result<Option<Received>> {
        match take(&self.socket, room, 0) {
            Ok((received, _)) => Ok(Some(received)),
            Err(e) if is_reported(&e) => Ok(None),
            Err(e) => nothing(e),
        }
    }

    /// Reads the next error reported for a probe; `None` if there is none.
    pub fn reported(&self, room: &mut [u8]) -> io::Result<Option<ReportedError>> {
        reported(&self.socket, room)
    }
}

impl AsFd for HopSocket {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.socket.as_fd()
    }
}

/// Longest IP packet in bytes that the device towards `to` sends, whatever the kernel knows of the path.
pub fn device_mtu(to: SocketAddr, from: Option<SocketAddr>, device: Option<&str>) -> Result<u32> {
    let socket = HopSocket::udp(to, from, device)?;
    let header = if to.is_ipv4() { 28 } else { 48 };
    // Longer than any packet: refused before it leaves, and the report gives the MTU.
    let longest = vec![0; 65_535 - header + if to.is_ipv4() { 0 } else { 40 }];
    let refused = socket.send(&longest, 1, 0);
    let report =
        socket.reported(&mut [0; 16]).ok().flatten().filter(|report| !report.by_icmp && report.info > 0);
    match (report, refused) {
        (Some(report), _) => Ok(report.info),
        // A device whose MTU is the longest packet, such as loopback, would have sent it.
        _ => Ok((longest.len() + header) as u32),
    }
}

/// A SYN with its own hop limit. Dropping it resets the connection, so nothing is left.
#[derive(Debug)]
pub struct SynProbe {
    socket: Socket,
    /// Immediate result of `connect`.
    at_once: Option<io::ErrorKind>,
}

/// Outcome of a SYN.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum SynOutcome {
    /// Nothing yet.
    Pending,
    /// The destination accepted the connection; the round trip by the kernel's clock, if reported.
    Accepted(Option<u64>),
    /// The destination refused it.
    Refused,
    /// An error was reported. Linux names the reporter since 5.8; before, it is an error of kind 0 without an offender.
    Reported(ReportedError),
}

impl SynProbe {
    /// Sends it from a local address and port, which no other SYN to the same destination may use at the same time.
    pub fn send(to: SocketAddr, from: SocketAddr, device: Option<&str>, hops: u8, octet: u8) -> Result<Self> {
        let failed = |e| SysError::new("connect to", to.to_string(), e);
        let socket =
            Socket::new(Domain::for_address(to), Type::STREAM, Some(Protocol::TCP)).map_err(failed)?;
        prepare(&socket, to, device)?;
        set_header(&socket, to.is_ipv6(), hops, octet).map_err(failed)?;
        if to.is_ipv6() {
            // Otherwise each has its own flow label, and so may take another path. A kernel before 3.17 sets none.
            let (level, option) = (libc::IPPROTO_IPV6, libc::IPV6_AUTOFLOWLABEL);
            let _ = set_number(&socket, level, option, 0, "IPV6_AUTOFLOWLABEL");
        }
        socket.set_reuse_address(true).map_err(failed)?;
        socket.set_linger(Some(Duration::ZERO)).map_err(failed)?;
        let from = scoped(from, to);
        socket.bind(&from.into()).map_err(|e| SysError::new("bind to", from.to_string(), e))?;
        let at_once = match socket.connect(&to.into()) {
            Ok(()) => None,
            Err(e) if e.raw_os_error() == Some(libc::EINPROGRESS) => None,
            Err(e) if e.kind() == ErrorKind::ConnectionRefused => Some(e.kind()),
            Err(e) => return Err(failed(e)),
        };
        Ok(Self { socket, at_once })
    }

    /// Returns the outcome so far; quoted bytes are written to `room`.
    pub fn outcome(&self, room: &mut [u8]) -> io::Result<SynOutcome> {
        if let Some(report) = reported(&self.socket, room)? {
            return Ok(SynOutcome::Reported(report));
        }
        if self.at_once.is_some() {
            return Ok(SynOutcome::Refused);
        }
        match self.socket.take_error()? {
            Some(e) if e.kind() == ErrorKind::ConnectionRefused => Ok(SynOutcome::Refused),
            Some(_) => Ok(SynOutcome::Reported(ReportedError { by_icmp: true, ..ReportedError::default() })),
            None if self.socket.peer_addr().is_ok() => {
                let rtt = tcp_info::read(&self.socket).ok().and_then(|info| info.rtt_ns);
                Ok(SynOutcome::Accepted(rtt))
            }
            None => Ok(SynOutcome::Pending),
        }
    }
}

impl AsFd for SynProbe {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.socket.as_fd()
    }
}

/// Reads every ICMP message that arrives at this machine, for the IP headers quoted in them. Needs `CAP_NET_RAW`.
#[derive(Debug)]
pub struct QuoteSocket {
    socket: Socket,
}

impl QuoteSocket {
    /// Opens it for the IP version of an address.
    pub fn open(like: IpAddr) -> Result<Self> {
        let (domain, protocol) = match like {
            IpAddr::V4(_) => (Domain::IPV4, Protocol::ICMPV4),
            IpAddr::V6(_) => (Domain::IPV6, Protocol::ICMPV6),
        };
        let failed = |e| SysError::new("open", "raw ICMP socket", e);
        let socket = Socket::new(domain, Type::RAW, Some(protocol)).map_err(failed)?;
        socket.set_nonblocking(true).map_err(failed)?;
        Ok(Self { socket })
    }

    /// The next message, with its IP header for IPv4; `None` if none has arrived.
    pub fn receive(&self, room: &mut [u8]) -> io::Result<Option<Received>> {
        match take(&self.socket, room, 0) {
            Ok((received, _)) => Ok(Some(received)),
            Err(e) => nothing(e),
        }
    }
}

impl AsFd for QuoteSocket {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.socket.as_fd()
    }
}

/// Sets the options that all probes need.
fn prepare(socket: &Socket, to: SocketAddr, device: Option<&str>) -> Result<()> {
    let failed = |e| SysError::new("prepare socket for", to.to_string(), e);
    socket.set_nonblocking(true).map_err(failed)?;
    if let Some(device) = device {
        let set = socket.bind_device(Some(device.as_bytes()));
        set.map_err(|e| SysError::new("set", format!("SO_BINDTODEVICE to {device}"), e))?;
    }
    match to {
        SocketAddr::V4(_) => {
            set_number(socket, libc::IPPROTO_IP, libc::IP_RECVERR, 1, "IP_RECVERR")?;
            set_number(socket, libc::IPPROTO_IP, libc::IP_RECVTTL, 1, "IP_RECVTTL")?;
        }
        SocketAddr::V6(_) => {
            set_number(socket, libc::IPPROTO_IPV6, libc::IPV6_RECVERR, 1, "IPV6_RECVERR")?;
            set_number(socket, libc::IPPROTO_IPV6, libc::IPV6_RECVHOPLIMIT, 1, "IPV6_RECVHOPLIMIT")?;
        }
    }
    set_number(socket, libc::SOL_SOCKET, libc::SO_TIMESTAMPNS, 1, "SO_TIMESTAMPNS")
}

fn set_header(socket: &Socket, is_v6: bool, hops: u8, octet: u8) -> io::Result<()> {
    if is_v6 {
        socket.set_unicast_hops_v6(u32::from(hops))?;
        socket.set_tclass_v6(u32::from(octet))
    } else {
        socket.set_ttl_v4(u32::from(hops))?;
        socket.set_tos_v4(u32::from(octet))
    }
}

/// Whether a call failed because of an ICMP error for an earlier packet.
fn is_reported(error: &io::Error) -> bool {
    matches!(
        error.raw_os_error(),
        Some(
            libc::EMSGSIZE
                | libc::EHOSTUNREACH
                | libc::ENETUNREACH
                | libc::ECONNREFUSED
                | libc::EHOSTDOWN
                | libc::ENOPROTOOPT
                | libc::EPROTO
                | libc::EACCES
                | libc::EOPNOTSUPP
        )
    )
}

fn nothing<T>(error: io::Error) -> io::Result<Option<T>> {
    match error.kind() {
        ErrorKind::WouldBlock | ErrorKind::Interrupted => Ok(None),
        _ => Err(error),
    }
}

fn reported(socket: &Socket, room: &mut [u8]) -> io::Result<Option<ReportedError>> {
    match take(socket, room, libc::MSG_ERRQUEUE) {
        Ok((received, error)) => Ok(Some(ReportedError { received, ..error.unwrap_or_default() })),
        Err(e) => nothing(e),
    }
}

/// Reads one message, with its control messages.
fn take(
    socket: &Socket,
    room: &mut [u8],
    flags: libc::c_int,
) -> io::Result<(Received, Option<ReportedError>)> {
    let (bytes, beside) = control_messages::receive(socket, room, flags | libc::MSG_DONTWAIT)?;
    let mut received = Received { bytes: bytes.min(room.len()), ..Received::default() };
    if beside.name_length > 0 {
        received.from = address(&beside.name);
    }
    let mut report = None;
    beside.each(|message| match (message.level, message.kind) {
        (libc::SOL_SOCKET, libc::SCM_TIMESTAMPNS) => received.arrived_unix_ns = message.read_time_ns(),
        (libc::IPPROTO_IP, libc::IP_TTL) | (libc::IPPROTO_IPV6, libc::IPV6_HOPLIMIT) => {
            received.hops_left = message.read::<libc::c_int>().and_then(|hops| u8::try_from(hops).ok());
        }
        (libc::IPPROTO_IP, libc::IP_RECVERR) | (libc::IPPROTO_IPV6, libc::IPV6_RECVERR) => {
            report = extended_error(message);
        }
        _ => {}
    });
    Ok((received, report))
}

/// An extended error, followed by the address of its reporter.
fn extended_error(message: ControlMessage<'_>) -> Option<ReportedError> {
    let error: libc::sock_extended_err = message.read()?;
    let by_icmp = matches!(error.ee_origin, libc::SO_EE_ORIGIN_ICMP | libc::SO_EE_ORIGIN_ICMP6);
    let offender = message.read_behind::<libc::sock_extended_err, libc::sockaddr_storage>();
    Some(ReportedError {
        received: Received::default(),
        offender: if by_icmp { address(&offender) } else { None },
        by_icmp,
        kind: error.ee_type,
        code: error.ee_code,
        info: error.ee_info,
    })
}

/// The IP address in a name; an IPv4 address as such, on any socket.
fn address(name: &libc::sockaddr_storage) -> Option<IpAddr> {
    // SAFETY: the storage is a live one of full length, and its family says which kind of address it holds.
    let ((), name) = unsafe {
        socket2::SockAddr::try_init(|storage, length| {
            storage.cast::<libc::sockaddr_storage>().write(*name);
            *length = size_of::<libc::sockaddr_storage>() as libc::socklen_t;
            Ok(())
        })
    }
    .ok()?;
    Some(name.as_socket()?.ip().to_canonical())
}

#[cfg(test)]
mod tests {
    use std::net::{TcpListener, UdpSocket};

    use super::*;
    use crate::poll::wait_readable;

    const WAIT_NS: u64 = 5_000_000_000;
    const PORT_UNREACHABLE: (u8, u8) = (3, 3);

    #[test]
    fn a_closed_port_is_reported_by_who_closed_it_with_what_was_sent() {
        let closed = UdpSocket::bind("127.0.0.1:0").unwrap().local_addr().unwrap();
        let socket = HopSocket::udp(closed, None, None).unwrap();
        for number in 0..3u8 {
            socket.send(&[number; 12], 64, 0).unwrap();
            assert!(wait_readable(socket.as_fd(), WAIT_NS).unwrap());
            let mut room = [0; 64];
            let report = socket.reported(&mut room).unwrap().unwrap();
            assert_eq!((report.kind, report.code), PORT_UNREACHABLE);
            assert!(report.by_icmp && report.offender == Some(closed.ip()), "{report:?}");
            assert_eq!(room[..report.received.bytes], [number; 12]);
            assert!(report.received.arrived_unix_ns.is_some_and(|at| at > 1 << 60));
            assert_eq!(socket.reported(&mut room).unwrap(), None);
        }
    }

    #[test]
    fn a_probe_longer_than_the_device_carries_is_this_machines_error_with_its_mtu() {
        let there = UdpSocket::bind("127.0.0.1:0").unwrap();
        let socket = HopSocket::udp(there.local_addr().unwrap(), None, None).unwrap();
        let refused = socket.send(&[0; 65_520], 64, 0).unwrap_err();
        assert_eq!(refused.raw_os_error(), Some(libc::EMSGSIZE));
    }

    #[test]
    fn a_syn_is_accepted_or_refused() {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let to = listener.local_addr().unwrap();
        let outcome = |to| {
            let syn = SynProbe::send(to, "127.0.0.1:0".parse().unwrap(), None, 64, 0).unwrap();
            crate::poll::wait_for(syn.as_fd(), rustix::event::PollFlags::OUT, WAIT_NS).unwrap();
            syn.outcome(&mut [0; 64]).unwrap()
        };
        assert!(matches!(outcome(to), SynOutcome::Accepted(Some(_))));
        drop(listener);
        assert_eq!(outcome(to), SynOutcome::Refused);
    }
}
