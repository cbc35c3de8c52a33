//! A UDP socket that answers from the address that was asked, on machines with several, and with the DSCP of the
//! request, so that the answer is treated like the flow beside it.

use std::io;
use std::mem::MaybeUninit;
use std::net::{IpAddr, SocketAddr, UdpSocket};
use std::os::fd::{AsFd, AsRawFd, BorrowedFd};
use std::time::Duration;

use socket2::{Domain, Protocol, Socket, Type};

use crate::socket_option::set_number;
use crate::udp::enlarge;
use crate::{Result, SysError, control_messages};

/// Room for the three control messages that are used, of 40, 24 and 32 bytes.
const CONTROL_BYTES: usize = 128;
/// DSCP bits of the octet; the others are ECN (RFC 3168), which an application must not set.
const CODE_POINT: u8 = 0xfc;

/// A UDP socket that answers from the address that was asked.
#[derive(Debug)]
pub struct EchoSocket {
    socket: UdpSocket,
}

/// Sender of a datagram and the local address that it was sent to.
#[derive(Clone, Copy)]
pub struct ReturnPath {
    name: libc::sockaddr_storage,
    name_length: libc::socklen_t,
    local: Option<Local>,
    octet: Option<Octet>,
    arrived_ns: Option<u64>,
}

#[derive(Clone, Copy)]
enum Local {
    V4(libc::in_addr),
    V6(libc::in6_pktinfo),
}

/// Type of service or traffic class, by the packet's IP version; an IPv6 socket may see either.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Octet {
    V4(u8),
    V6(u8),
}

impl EchoSocket {
    /// Binds the socket; to both IP versions if the address is `[::]`. Receives wait for at most `patience`.
    pub fn bind(address: SocketAddr, patience: Duration) -> Result<Self> {
        let failed = |e| SysError::new("bind UDP socket to", address.to_string(), e);
        let socket =
            Socket::new(Domain::for_address(address), Type::DGRAM, Some(Protocol::UDP)).map_err(failed)?;
        if address.is_ipv6() {
            socket.set_only_v6(!address.ip().is_unspecified()).map_err(failed)?;
            set_number(&socket, libc::IPPROTO_IPV6, libc::IPV6_RECVPKTINFO, 1, "IPV6_RECVPKTINFO")?;
        } else {
            set_number(&socket, libc::IPPROTO_IP, libc::IP_PKTINFO, 1, "IP_PKTINFO")?;
        }
        // If the kernel does not report it, answers have no DSCP.
        let _ = set_number(&socket, libc::IPPROTO_IP, libc::IP_RECVTOS, 1, "IP_RECVTOS");
        let _ = set_number(&socket, libc::IPPROTO_IPV6, libc::IPV6_RECVTCLASS, 1, "IPV6_RECVTCLASS");
        // Datagram flows have sockets of their own on the same port.
        socket.set_reuse_port(true).map_err(failed)?;
        socket.bind(&address.into()).map_err(failed)?;
        socket.set_read_timeout(Some(patience)).map_err(failed)?;
        Ok(Self { socket: socket.into() })
    }

    /// Requests a receive buffer of this size, beyond `net.core.rmem_max` if allowed; the system may grant less.
    pub fn enlarge_receive_buffer(&self, bytes: usize) -> Result<()> {
        enlarge(&self.socket, bytes, libc::SO_RCVBUFFORCE, libc::SO_RCVBUF, "SO_RCVBUF")
    }

    /// Local address of the socket.
    pub fn local_address(&self) -> io::Result<SocketAddr> {
        self.socket.local_addr()
    }

    /// Makes the kernel timestamp arrivals from now on.
    pub fn stamp_arrivals(&self) -> Result<()> {
        set_number(&self.socket, libc::SOL_SOCKET, libc::SO_TIMESTAMPNS, 1, "SO_TIMESTAMPNS")
    }

    /// Waits for the next datagram; returns its full length, of which `room` has the beginning, and its return path.
    pub fn receive(&self, room: &mut [u8]) -> io::Result<(usize, ReturnPath)> {
        self.take(room, 0)
    }

    /// Returns a datagram that has arrived; `WouldBlock` if there is none.
    pub fn receive_now(&self, room: &mut [u8]) -> io::Result<(usize, ReturnPath)> {
        self.take(room, libc::MSG_DONTWAIT)
    }

    fn take(&self, room: &mut [u8], flags: libc::c_int) -> io::Result<(usize, ReturnPath)> {
        // MSG_TRUNC gives the datagram's own length.
        let (bytes, beside) = control_messages::receive(&self.socket, room, libc::MSG_TRUNC | flags)?;
        let (mut local, mut octet, mut arrived_ns) = (None, None, None);
        beside.each(|message| match (message.level, message.kind) {
            (libc::IPPROTO_IP, libc::IP_PKTINFO) => {
                local = message.read::<libc::in_pktinfo>().map(|info| Local::V4(info.ipi_addr));
            }
            (libc::IPPROTO_IPV6, libc::IPV6_PKTINFO) => local = message.read().map(Local::V6),
            (libc::IPPROTO_IP, libc::IP_TOS) => octet = message.read().map(Octet::V4),
            (libc::IPPROTO_IPV6, libc::IPV6_TCLASS) => {
                octet = message.read::<libc::c_int>().map(|octet| Octet::V6(octet as u8));
            }
            (libc::SOL_SOCKET, libc::SO_TIMESTAMPNS) => arrived_ns = message.read_time_ns(),
            _ => {}
        });
        let (name, name_length) = (beside.name, beside.name_length);
        Ok((bytes, ReturnPath { name, name_length, local, octet, arrived_ns }))
    }

    /// Sends a datagram back along the path of another.
    pub fn answer(&self, bytes: &[u8], way: &ReturnPath) -> io::Result<usize> {
        // SAFETY: all-zero is valid.
        let mut message: libc::msghdr = unsafe { std::mem::zeroed() };
        let mut part = libc::iovec { iov_base: bytes.as_ptr().cast_mut().cast(), iov_len: bytes.len() };
        let mut name = way.name;
        let mut control = Control::new();
        message.msg_name = (&raw mut name).cast();
        message.msg_namelen = way.name_length;
        message.msg_iov = &raw mut part;
        message.msg_iovlen = 1;
        match way.local {
            Some(Local::V4(address)) => {
                // SAFETY: all-zero is valid.
                let mut info: libc::in_pktinfo = unsafe { std::mem::zeroed() };
                info.ipi_spec_dst = address;
                control.put(&mut message, libc::IPPROTO_IP, libc::IP_PKTINFO, info);
            }
            Some(Local::V6(mut info)) => {
                // A link-local address needs its device; others follow the route.
                if !is_link_local(&info) {
                    info.ipi6_ifindex = 0;
                }
                control.put(&mut message, libc::IPPROTO_IPV6, libc::IPV6_PKTINFO, info);
            }
            None => {}
        }
        match way.octet.filter(|octet| octet.code_point() != 0) {
            Some(octet @ Octet::V4(_)) => {
                control.put(
                    &mut message,
                    libc::IPPROTO_IP,
                    libc::IP_TOS,
                    libc::c_int::from(octet.code_point()),
                );
            }
            Some(octet @ Octet::V6(_)) => {
                let class = libc::c_int::from(octet.code_point());
                control.put(&mut message, libc::IPPROTO_IPV6, libc::IPV6_TCLASS, class);
            }
            None => {}
        }
        // SAFETY: every pointer of the message is to a live buffer of the length beside it.
        let sent = unsafe { libc::sendmsg(self.socket.as_raw_fd(), &raw const message, libc::MSG_NOSIGNAL) };
        if sent < 0 { Err(io::Error::last_os_error()) } else { Ok(sent as usize) }
    }
}

impl ReturnPath {
    /// The sender; an IPv4 address as such, on any socket.
    pub fn peer(&self) -> Option<SocketAddr> {
        // SAFETY: the kernel has filled the name up to its length.
        let ((), peer) = unsafe {
            socket2::SockAddr::try_init(|storage, length| {
                storage.cast::<libc::sockaddr_storage>().write(self.name);
                *length = self.name_length;
                Ok(())
            })
        }
        .ok()?;
        let peer = peer.as_socket()?;
        match peer.ip().to_canonical() {
            IpAddr::V4(v4) => Some((v4, peer.port()).into()),
            IpAddr::V6(_) => Some(peer),
        }
    }

    /// The local address that it was sent to, with this port.
    pub fn local(&self, port: u16) -> Option<SocketAddr> {
        match self.local? {
            Local::V4(address) => Some((std::net::Ipv4Addr::from(u32::from_be(address.s_addr)), port).into()),
            Local::V6(info) => {
                let address = std::net::Ipv6Addr::from(info.ipi6_addr.s6_addr);
                match IpAddr::V6(address).to_canonical() {
                    IpAddr::V4(v4) => Some((v4, port).into()),
                    IpAddr::V6(v6) => {
                        // The device matters only for link-local addresses.
                        let scope = if is_link_local(&info) { info.ipi6_ifindex } else { 0 };
                        Some(std::net::SocketAddrV6::new(v6, port, 0, scope).into())
                    }
                }
            }
        }
    }
}

impl AsFd for EchoSocket {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.socket.as_fd()
    }
}

impl ReturnPath {
    /// When the kernel received the datagram, nanoseconds since 1970; `None` if timestamps were not enabled.
    pub fn arrived_unix_ns(&self) -> Option<u64> {
        self.arrived_ns
    }
}

/// Buffer aligned as the header of a control message.
#[repr(C, align(8))]
struct Control([MaybeUninit<u8>; CONTROL_BYTES]);

impl Control {
    fn new() -> Self {
        Self([MaybeUninit::zeroed(); CONTROL_BYTES])
    }

    /// Appends a control message to the message.
    fn put<T: Copy>(&mut self, message: &mut libc::msghdr, level: libc::c_int, kind: libc::c_int, value: T) {
        message.msg_control = self.0.as_mut_ptr().cast();
        let taken: usize = message.msg_controllen as _;
        // SAFETY: it only calculates.
        let space = unsafe { libc::CMSG_SPACE(size_of::<T>() as u32) } as usize;
        assert!(taken + space <= CONTROL_BYTES, "room for {CONTROL_BYTES} bytes of control messages");
        message.msg_controllen = (taken + space) as _;
        // SAFETY: the room holds what is taken, the header and the value, as was just seen; what is taken is a multiple of
        // the header's alignment, by CMSG_SPACE.
        unsafe {
            let header = self.0.as_mut_ptr().cast::<u8>().add(taken).cast::<libc::cmsghdr>();
            (*header).cmsg_level = level;
            (*header).cmsg_type = kind;
            (*header).cmsg_len = libc::CMSG_LEN(size_of::<T>() as u32) as _;
            libc::CMSG_DATA(header).cast::<T>().write_unaligned(value);
        }
    }
}

impl Octet {
    fn code_point(self) -> u8 {
        let (Self::V4(octet) | Self::V6(octet)) = self;
        octet & CODE_POINT
    }
}

fn is_link_local(info: &libc::in6_pktinfo) -> bool {
    matches!(IpAddr::from(info.ipi6_addr.s6_addr), IpAddr::V6(a) if a.is_unicast_link_local())
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Sends a request to `to` on an echo socket bound to `bound`, and expects the answer from `to`.
    fn answers_from(bound: &str, to: &str) {
        let echo = EchoSocket::bind(bound.parse().unwrap(), Duration::from_secs(5)).unwrap();
        let port = echo.local_address().unwrap().port();
        let any = if to.contains(':') { "[::]:0" } else { "0.0.0.0:0" };
        let asking = UdpSocket::bind(any).unwrap();
        asking.connect((to, port)).unwrap();
        asking.set_read_timeout(Some(Duration::from_secs(5))).unwrap();
        asking.send(b"where from?").unwrap();
        let mut room = [0; 64];
        let (length, way) = echo.receive(&mut room).unwrap();
        assert_eq!(way.peer().unwrap().port(), asking.local_addr().unwrap().port());
        assert_eq!(way.local(7).unwrap(), (to.parse::<IpAddr>().unwrap(), 7).into());
        echo.answer(&room[..length], &way).unwrap();
        // A connected socket receives only from the address that it asked.
        let mut answer = [0; 64];
        let got = asking.recv(&mut answer).unwrap();
        assert_eq!(&answer[..got], b"where from?");
    }

    #[test]
    fn the_answer_comes_from_the_address_that_was_asked() {
        answers_from("0.0.0.0:0", "127.0.0.1");
        answers_from("0.0.0.0:0", "127.9.9.9");
        answers_from("[::]:0", "127.9.9.9");
        answers_from("[::]:0", "::1");
    }

    #[test]
    fn the_answer_has_the_code_point_that_was_asked_with() {
        for (bound, from, to) in [
            ("0.0.0.0:0", "127.0.0.1:0", "127.0.0.1"),
            ("[::]:0", "127.0.0.1:0", "127.0.0.1"),
            ("[::]:0", "[::1]:0", "::1"),
        ] {
            let echo = EchoSocket::bind(bound.parse().unwrap(), Duration::from_secs(5)).unwrap();
            let asking = EchoSocket::bind(from.parse().unwrap(), Duration::from_secs(5)).unwrap();
            let reference = socket2::SockRef::from(&asking.socket);
            // Expedited forwarding, and a bit of ECN.
            match from.starts_with('[') {
                true => reference.set_tclass_v6(0xb9).unwrap(),
                false => reference.set_tos_v4(0xb9).unwrap(),
            }
            asking.socket.send_to(b"how?", (to, echo.local_address().unwrap().port())).unwrap();
            let mut room = [0; 64];
            let (length, way) = echo.receive(&mut room).unwrap();
            echo.answer(&room[..length], &way).unwrap();
            let (_, back) = asking.receive(&mut room).unwrap();
            let found = back.octet.map(|octet| match octet {
                Octet::V4(octet) | Octet::V6(octet) => octet,
            });
            assert_eq!(found, Some(0xb8), "{bound} {from}");
        }
    }

    #[test]
    fn a_datagram_longer_than_the_room_tells_its_length() {
        let echo = EchoSocket::bind("127.0.0.1:0".parse().unwrap(), Duration::from_secs(5)).unwrap();
        let asking = UdpSocket::bind("127.0.0.1:0").unwrap();
        asking.send_to(&[7; 100], echo.local_address().unwrap()).unwrap();
        assert_eq!(echo.receive(&mut [0; 40]).unwrap().0, 100);
    }
}
