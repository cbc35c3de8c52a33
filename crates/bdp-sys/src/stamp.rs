//! Datagram sockets, UDP and ICMP, with kernel or device timestamps of sent and received packets.
//!
//! Kernel timestamps use the wall clock; those of a device use its own clock, and compare only with each other
//! (Linux, `Documentation/networking/timestamping.rst`).

use std::io;
use std::net::{SocketAddr, UdpSocket};
use std::os::fd::AsFd;

use socket2::{Domain, Protocol, Socket, Type};

use crate::poll::wait_for;
use crate::socket_option::set_number;
use crate::udp::{drops, enlarge};
use crate::{Result, SysError, control_messages};

/// Receive buffer of a socket: a small packet counts as nearly a thousand bytes.
const RECEIVE_BUFFER: usize = 4 << 20;

/// Requested timestamps. A device stamps only if it was set to (`hwstamp_ctl`): bdp changes no device.
const ASKED: libc::c_uint = libc::SOF_TIMESTAMPING_TX_SOFTWARE
    | libc::SOF_TIMESTAMPING_RX_SOFTWARE
    | libc::SOF_TIMESTAMPING_SOFTWARE
    | libc::SOF_TIMESTAMPING_TX_HARDWARE
    | libc::SOF_TIMESTAMPING_RX_HARDWARE
    | libc::SOF_TIMESTAMPING_RAW_HARDWARE
    | libc::SOF_TIMESTAMPING_OPT_ID
    | libc::SOF_TIMESTAMPING_OPT_TSONLY;

/// Timestamps of a packet.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Stamp {
    /// By the kernel, when it took the packet from the device or passed it on; nanoseconds since 1970.
    pub kernel_ns: Option<u64>,
    /// By the device's own clock.
    pub device_ns: Option<u64>,
}

/// A connected, nonblocking socket.
#[derive(Debug)]
pub struct StampedSocket {
    socket: Socket,
    /// Whether timestamps were requested.
    stamps: bool,
}

/// How an ICMP socket was obtained.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum IcmpAccess {
    /// `SOCK_DGRAM`: the kernel chooses the identifier and delivers only answers to it. Needs no privilege, only a
    /// group within `net.ipv4.ping_group_range`.
    Datagram,
    /// `SOCK_RAW`: receives every ICMP message. Needs `CAP_NET_RAW`.
    Raw,
}

impl StampedSocket {
    /// Wraps a connected UDP socket.
    pub fn over(socket: UdpSocket) -> Result<Self> {
        socket.set_nonblocking(true).map_err(|e| SysError::new("set", "O_NONBLOCK", e))?;
        Ok(Self::roomy(socket.into()))
    }

    /// Opens a connected ICMP socket, of the unprivileged kind if available.
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
        // ICMP ignores the port, and on an IPv6 socket it has to be zero.
        let mut to = to;
        to.set_port(0);
        socket.connect(&to.into()).map_err(|e| SysError::new("connect to", to.to_string(), e))?;
        socket.set_nonblocking(true).map_err(failed)?;
        Ok((Self::roomy(socket), access))
    }

    /// Enlarges the receive buffer, for packets that arrive while its thread does not run.
    fn roomy(socket: Socket) -> Self {
        // If refused, the buffer is smaller.
        let _ = enlarge(&socket, RECEIVE_BUFFER, libc::SO_RCVBUFFORCE, libc::SO_RCVBUF, "SO_RCVBUF");
        Self { socket, stamps: false }
    }

    /// Packets dropped because the socket was full, if the kernel reports it.
    pub fn drops(&self) -> Option<u32> {
        drops(&self.socket)
    }

    /// Requests timestamps of every packet from now on; the next packet sent has number 0.
    pub fn ask_stamps(&mut self) -> Result<()> {
        let flags = ASKED as libc::c_int;
        self.stamps = true;
        set_number(&self.socket, libc::SOL_SOCKET, libc::SO_TIMESTAMPING, flags, "SO_TIMESTAMPING")
    }

    /// Sends a packet.
    pub fn send(&self, bytes: &[u8]) -> io::Result<()> {
        self.socket.send(bytes).map(drop)
    }

    /// Receives a packet with its timestamp, at most the length of `room`. `WouldBlock` if none has arrived.
    pub fn receive(&self, room: &mut [u8]) -> io::Result<(usize, Stamp)> {
        let (length, stamp, _) = self.take(room, 0)?;
        Ok((length, stamp))
    }

    /// Returns the timestamp of a sent packet, and the packet's number; `None` if there is none yet, or none was requested.
    pub fn sent_stamp(&self) -> Option<(u32, Stamp)> {
        if !self.stamps {
            return None;
        }
        let (_, stamp, number) = self.take(&mut [], libc::MSG_ERRQUEUE).ok()?;
        number.map(|number| (number, stamp))
    }

    /// Waits until a packet has arrived or the time has passed.
    pub fn wait(&self, wait_ns: u64) {
        // If the wait fails, the caller simply tries again.
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

/// Zero means no timestamp.
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
        // The kernel starts to stamp shortly after the request, and stamps less until then.
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
