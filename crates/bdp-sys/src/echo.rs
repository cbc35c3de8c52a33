//! A UDP socket that answers from the very address that was asked, on machines with several.

use std::io;
use std::mem::MaybeUninit;
use std::net::{IpAddr, SocketAddr, UdpSocket};
use std::os::fd::{AsFd, AsRawFd, BorrowedFd};
use std::time::Duration;

use socket2::{Domain, Protocol, Socket, Type};

use crate::socket::set_number;
use crate::{Result, SysError};

/// Room for the one control message that is used.
const CONTROL_BYTES: usize = 64;

/// The socket.
#[derive(Debug)]
pub struct EchoSocket {
    socket: UdpSocket,
}

/// Where a datagram came from and which address of ours it was sent to.
#[derive(Clone, Copy)]
pub struct Way {
    name: libc::sockaddr_storage,
    name_length: libc::socklen_t,
    local: Option<Local>,
}

#[derive(Clone, Copy)]
enum Local {
    V4(libc::in_addr),
    V6(libc::in6_pktinfo),
}

impl EchoSocket {
    /// Binds it; both IP versions where the address is that of any, `[::]`. Receives wait for `patience` at most.
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
        socket.bind(&address.into()).map_err(failed)?;
        socket.set_read_timeout(Some(patience)).map_err(failed)?;
        Ok(Self { socket: socket.into() })
    }

    /// Where it is bound.
    pub fn local_address(&self) -> io::Result<SocketAddr> {
        self.socket.local_addr()
    }

    /// The next datagram: its length, at most that of `room`, and its way.
    pub fn receive(&self, room: &mut [u8]) -> io::Result<(usize, Way)> {
        // SAFETY: all-zero is valid for both structures.
        let (mut name, mut message): (libc::sockaddr_storage, libc::msghdr) =
            unsafe { (std::mem::zeroed(), std::mem::zeroed()) };
        let mut part = libc::iovec { iov_base: room.as_mut_ptr().cast(), iov_len: room.len() };
        let mut control = Control::new();
        message.msg_name = (&raw mut name).cast();
        message.msg_namelen = size_of::<libc::sockaddr_storage>() as libc::socklen_t;
        message.msg_iov = &raw mut part;
        message.msg_iovlen = 1;
        message.msg_control = control.0.as_mut_ptr().cast();
        message.msg_controllen = CONTROL_BYTES as _;
        // SAFETY: every pointer of the message is to a live buffer of the length beside it. MSG_TRUNC gives the
        // datagram's own length.
        let got = unsafe { libc::recvmsg(self.socket.as_raw_fd(), &raw mut message, libc::MSG_TRUNC) };
        if got < 0 {
            return Err(io::Error::last_os_error());
        }
        let local = local_of(&message);
        Ok((got as usize, Way { name, name_length: message.msg_namelen, local }))
    }

    /// Sends a datagram back the way another came.
    pub fn answer(&self, bytes: &[u8], way: &Way) -> io::Result<usize> {
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
                // A link-local address needs its device, others go where the route leads.
                if !is_link_local(&info) {
                    info.ipi6_ifindex = 0;
                }
                control.put(&mut message, libc::IPPROTO_IPV6, libc::IPV6_PKTINFO, info);
            }
            None => {}
        }
        // SAFETY: every pointer of the message is to a live buffer of the length beside it.
        let sent = unsafe { libc::sendmsg(self.socket.as_raw_fd(), &raw const message, libc::MSG_NOSIGNAL) };
        if sent < 0 { Err(io::Error::last_os_error()) } else { Ok(sent as usize) }
    }
}

impl AsFd for EchoSocket {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.socket.as_fd()
    }
}

/// Control messages are aligned as their header is.
#[repr(C, align(8))]
struct Control([MaybeUninit<u8>; CONTROL_BYTES]);

impl Control {
    fn new() -> Self {
        Self([MaybeUninit::zeroed(); CONTROL_BYTES])
    }

    /// Puts the one control message of a message.
    fn put<T: Copy>(&mut self, message: &mut libc::msghdr, level: libc::c_int, kind: libc::c_int, value: T) {
        message.msg_control = self.0.as_mut_ptr().cast();
        // SAFETY: the room holds the header and either value, both of fewer than 32 bytes, and is aligned for a header.
        unsafe {
            message.msg_controllen = libc::CMSG_SPACE(size_of::<T>() as u32) as _;
            let header = libc::CMSG_FIRSTHDR(&raw const *message);
            (*header).cmsg_level = level;
            (*header).cmsg_type = kind;
            (*header).cmsg_len = libc::CMSG_LEN(size_of::<T>() as u32) as _;
            libc::CMSG_DATA(header).cast::<T>().write_unaligned(value);
        }
    }
}

fn local_of(message: &libc::msghdr) -> Option<Local> {
    // SAFETY: the kernel has filled the control buffer up to msg_controllen; the macros stay within it, and each value
    // is of the type that its level and kind say.
    unsafe {
        let mut header = libc::CMSG_FIRSTHDR(&raw const *message);
        while !header.is_null() {
            match ((*header).cmsg_level, (*header).cmsg_type) {
                (libc::IPPROTO_IP, libc::IP_PKTINFO) => {
                    let info = libc::CMSG_DATA(header).cast::<libc::in_pktinfo>().read_unaligned();
                    return Some(Local::V4(info.ipi_addr));
                }
                (libc::IPPROTO_IPV6, libc::IPV6_PKTINFO) => {
                    return Some(Local::V6(
                        libc::CMSG_DATA(header).cast::<libc::in6_pktinfo>().read_unaligned(),
                    ));
                }
                _ => header = libc::CMSG_NXTHDR(&raw const *message, header),
            }
        }
    }
    None
}

fn is_link_local(info: &libc::in6_pktinfo) -> bool {
    matches!(IpAddr::from(info.ipi6_addr.s6_addr), IpAddr::V6(a) if a.is_unicast_link_local())
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Asks through `to`, which the echo is bound beyond, and expects the answer from there.
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
        echo.answer(&room[..length], &way).unwrap();
        // A connected socket hears only the address that it asked.
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
    fn a_datagram_longer_than_the_room_tells_its_length() {
        let echo = EchoSocket::bind("127.0.0.1:0".parse().unwrap(), Duration::from_secs(5)).unwrap();
        let asking = UdpSocket::bind("127.0.0.1:0").unwrap();
        asking.send_to(&[7; 100], echo.local_address().unwrap()).unwrap();
        assert_eq!(echo.receive(&mut [0; 40]).unwrap().0, 100);
    }
}
