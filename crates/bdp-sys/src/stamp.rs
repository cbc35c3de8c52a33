//! Datagram sockets, UDP and ICMP, whose kernel or device says when a packet left and when one came.
//!
//! Stamps of the kernel are of the clock that shows the time of day; those of a device are of its own, and compare with
//! each other alone (Linux, `Documentation/networking/timestamping.rst`).

use std::io;
use std::net::{SocketAddr, UdpSocket};
use std::os::fd::AsFd;

use socket2::{Domain, Protocol, Socket, Type};

use crate::poll::wait_for;
use crate::socket_option::set_number;
use crate::udp::{drops, enlarge};
use crate::{Result, SysError, control_messages};

/// Bytes that a socket may hold: those of a small packet count as nearly a thousand.
const RECEIVE_BUFFER: usize = 4 << 20;

/// What is asked for. A device stamps only where it was set to (`hwstamp_ctl`): bdp changes no device.
const ASKED: libc::c_uint = libc::SOF_TIMESTAMPING_TX_SOFTWARE
    | libc::SOF_TIMESTAMPING_RX_SOFTWARE
    | libc::SOF_TIMESTAMPING_SOFTWARE
    | libc::SOF_TIMESTAMPING_TX_HARDWARE
    | libc::SOF_TIMESTAMPING_RX_HARDWARE
    | libc::SOF_TIMESTAMPING_RAW_HARDWARE
    | libc::SOF_TIMESTAMPING_OPT_ID
    | libc::SOF_TIMESTAMPING_OPT_TSONLY;

/// When a packet passed.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Stamp {
    /// By the kernel, where it took the packet from the device or gave it to that; nanoseconds since 1970.
    pub kernel_ns: Option<u64>,
    /// By the device, by a clock of its own.
    pub device_ns: Option<u64>,
}

/// A connected socket that never waits.
#[derive(Debug)]
pub struct StampedSocket {
    socket: Socket,
    /// Whether stamps were asked for.
    stamps: bool,
}

/// How an ICMP socket came about.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum IcmpAccess {
    /// `SOCK_DGRAM`: the kernel chooses the identifier and gives only answers to it. Needs no privilege, only a group
    /// within `net.ipv4.ping_group_range`.
    Datagram,
    /// `SOCK_RAW`: every ICMP message that comes. Needs `CAP_NET_RAW`.
    Raw,
}

impl StampedSocket {
    /// Over a connected UDP socket.
    pub fn over(socket: UdpSocket) -> Result<Self> {
        socket.set_nonblocking(true).map_err(|e| SysError::new("set", "O_NONBLOCK", e))?;
        Ok(Self::roomy(socket.into()))
    }

    /// An ICMP socket, connected: of the kind that needs no privilege where that is to be had.
    pub fn icmp(
        to: SocketAddr,
        from: Option<SocketAddr>,
        device: Option<&str>,
        dscp: Option<u8>,
    ) -> Result<(Self, IcmpAccess)> {
        let failed = |e| SysError::new("open ICMP socket to", to.ip().to_string(), e);
        let (domain, protocol) = match to {
            SocketAddr::V4(_) => (Domain::IPV4, Protocol::ICMPV4),
            SocketAddr::V6(_) => (Domain::IPV6, Protocol::ICMPV6),
        };
        let (socket, access) = match Socket::new(domain, Type::DGRAM, Some(protocol)) {
            Ok(socket) => (socket, IcmpAccess::Datagram),
            Err(refused) => match Socket::new(domain, Type::RAW, Some(protocol)) {
                Ok(socket) => (socket, IcmpAccess::Raw),
                Err(_) => return Err(failed(refused)),
            },
        };
        if let Some(dscp) = dscp {
            let octet = u32::from(dscp) << 2;
            match to {
                SocketAddr::V4(_) => socket.set_tos_v4(octet),
                SocketAddr::V6(_) => socket.set_tclass_v6(octet),
            }
            .map_err(failed)?;
        }
        if let Some(device) = device {
            socket.bind_device(Some(device.as_bytes())).map_err(failed)?;
        }
        if let Some(from) = from {
            socket.bind(&from.into()).map_err(|e| SysError::new("bind to", from.ip().to_string(), e))?;
        }
        // Its port means nothing to ICMP, and to a socket of IPv6 it has to be zero.
        let mut to = to;
        to.set_port(0);
        socket.connect(&to.into()).map_err(|e| SysError::new("connect to", to.to_string(), e))?;
        socket.set_nonblocking(true).map_err(failed)?;
        Ok((Self::roomy(socket), access))
    }

    /// With room for what comes while its thread does not run.
    fn roomy(socket: Socket) -> Self {
        // Where it is not granted there is less.
        let _ = enlarge(&socket, RECEIVE_BUFFER, libc::SO_RCVBUFFORCE, libc::SO_RCVBUF, "SO_RCVBUF");
        Self { socket, stamps: false }
    }

    /// How many packets the socket had no room for; where the kernel reports it.
    pub fn drops(&self) -> Option<u32> {
        drops(&self.socket)
    }

    /// Asks for stamps of every packet from now on; what is sent next has number 0.
    pub fn ask_stamps(&mut self) -> Result<()> {
        let flags = ASKED as libc::c_int;
        self.stamps = true;
        set_number(&self.socket, libc::SOL_SOCKET, libc::SO_TIMESTAMPING, flags, "SO_TIMESTAMPING")
    }

    /// Sends a packet.
    pub fn send(&self, bytes: &[u8]) -> io::Result<()> {
        self.socket.send(bytes).map(drop)
    }

    /// Takes a packet that has come, with its stamp; its length is at most that of `room`. `WouldBlock` where none has.
    pub fn receive(&self, room: &mut [u8]) -> io::Result<(usize, Stamp)> {
        let (length, stamp, _) = self.take(room, 0)?;
        Ok((length, stamp))
    }

    /// Takes the stamp of a packet that has left, and the packet's number; `None` where there is none yet, or none was asked for.
    pub fn sent_stamp(&self) -> Option<(u32, Stamp)> {
        if !self.stamps {
            return None;
        }
        let (_, stamp, number) = self.take(&mut [], libc::MSG_ERRQUEUE).ok()?;
        number.map(|number| (number, stamp))
    }

    /// Waits until a packet has come or the time has passed.
    pub fn wait(&self, wait_ns: u64) {
        // What can't be waited for is asked for again by the caller.
        let _ = wait_for(self.socket.as_fd(), rustix::event::PollFlags::IN, wait_ns);
    }

    fn take(&self, room: &mut [u8], flags: libc::c_int) -> io::Result<(usize, Stamp, Option<u32>)> {
        let (bytes, beside) = control_messages::receive(&self.socket, room, flags | libc::MSG_DONTWAIT)?;
        let (mut stamp, mut number) = (Stamp::default(), None);
        beside.each(|message| match (message.level, message.kind) {
            (libc::SOL_SOCKET, libc::SO_TIMESTAMPING) => {
                if let Some([kernel, _, device]) = message.read::<[libc::timespec; 3]>() {
                    stamp = Stamp { kernel_ns: nanoseconds(kernel), device_ns: nanoseconds(device) };
                }
            }
            (libc::IPPROTO_IP, libc::IP_RECVERR) | (libc::IPPROTO_IPV6, libc::IPV6_RECVERR) => {
                let error = message.read::<libc::sock_extended_err>();
                let error = error.filter(|error| error.ee_origin == libc::SO_EE_ORIGIN_TIMESTAMPING);
                number = error.map(|error| error.ee_data).or(number);
            }
            _ => {}
        });
        Ok((bytes, stamp, number))
    }
}

/// Zero where there is no stamp.
fn nanoseconds(time: libc::timespec) -> Option<u64> {
    Some(control_messages::nanoseconds(time)).filter(|&ns| ns > 0)
}

#[cfg(test)]
mod tests {
    use std::time::{Duration, Instant};

    use super::*;

    #[test]
    fn a_datagram_over_loopback_is_stamped_when_it_leaves_and_when_it_comes() {
        let far = UdpSocket::bind("127.0.0.1:0").unwrap();
        let near = UdpSocket::bind("127.0.0.1:0").unwrap();
        near.connect(far.local_addr().unwrap()).unwrap();
        let near_address = near.local_addr().unwrap();
        let mut socket = StampedSocket::over(near).unwrap();
        socket.ask_stamps().unwrap();
        let until = Instant::now() + Duration::from_secs(5);
        let (mut sent, mut left, mut arrived) = (0, None, None);
        // The kernel begins to stamp shortly after it is asked, and until then stamps less.
        while (left.is_none() || arrived.is_none()) && Instant::now() < until {
            socket.send(b"there").unwrap();
            far.send_to(b"back", near_address).unwrap();
            sent += 1;
            socket.wait(1_000_000);
            while let Some((number, stamp)) = socket.sent_stamp() {
                assert!(number < sent, "{number} of {sent}");
                left = left.or(stamp.kernel_ns);
            }
            while let Ok((length, stamp)) = socket.receive(&mut [0; 16]) {
                assert_eq!(length, 4);
                arrived = stamp.kernel_ns.or(arrived);
            }
        }
        let (left, arrived) = (left.unwrap(), arrived.unwrap());
        assert!(left.abs_diff(arrived) < 10_000_000_000, "{left} {arrived}");
    }
}
