//! UDP many datagrams at a time: `sendmmsg` with `UDP_SEGMENT` (GSO), `recvmmsg` with `UDP_GRO`, drops of the
//! receiving socket (`SO_RXQ_OVFL`), arrival times (`SO_TIMESTAMPNS`). Features that the kernel lacks are
//! detected by its answer, done without, and reported.

use std::io;
use std::net::{SocketAddr, UdpSocket};
use std::os::fd::{AsFd, AsRawFd};
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Condvar, Mutex, PoisonError};
use std::time::Duration;

use socket2::{Domain, Protocol, Socket, Type};

use crate::control_messages::{self, ControlMessage};
use crate::socket::{scoped, set_dscp};
use crate::socket_option::{get_number, set_named, set_number};
use crate::{Result, SysError};

/// Most datagrams that the kernel cuts from one buffer (`UDP_MAX_SEGMENTS`; 128 since Linux 6.9).
pub const MOST_SEGMENTS: usize = 64;
/// Most payload of one buffer: what fits the length field of IPv4.
const MOST_BYTES: usize = 65_535 - 20 - 8;
/// Buffers of one `recvmmsg`.
const SLOTS: usize = 16;
/// Room for the longest train that GRO makes.
const SLOT_BYTES: usize = 65_536;
/// Room for three control messages: of 24, 24 and 32 bytes.
const CONTROL_BYTES: usize = 128;
/// Index of the drops in `SO_MEMINFO`.
const MEMINFO_DROPS: usize = 8;

/// Options of a UDP socket.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct UdpOptions {
    /// `SO_RCVBUF`, beyond `net.core.rmem_max` if allowed.
    pub receive_buffer: Option<usize>,
    /// `SO_SNDBUF`, beyond `net.core.wmem_max` if allowed.
    pub send_buffer: Option<usize>,
    /// DSCP, 0..=63.
    pub dscp: Option<u8>,
    /// Further ones, by the kernel's names in [`crate::socket_option`].
    pub numbers: Vec<(&'static str, i32)>,
    /// Device to send through.
    pub device: Option<String>,
    /// Whether packets may not be fragmented, neither here nor on the path.
    pub dont_fragment: bool,
    /// Whether it shares its port with another socket of the same user (`SO_REUSEPORT`).
    pub share_port: bool,
}

/// Opens a socket that receives only from `to`.
pub fn connect(from: Option<SocketAddr>, to: SocketAddr, options: &UdpOptions) -> Result<UdpSocket> {
    let failed = |e| SysError::new("connect UDP socket to", to.to_string(), e);
    let socket = open(to, options)?;
    if let Some(from) = from.map(|from| scoped(from, to)) {
        socket.bind(&from.into()).map_err(|e| SysError::new("bind to", from.to_string(), e))?;
    }
    socket.connect(&to.into()).map_err(failed)?;
    Ok(socket.into())
}

/// Opens a socket that receives from everybody who sends to `address`.
pub fn bind(address: SocketAddr, options: &UdpOptions) -> Result<UdpSocket> {
    let socket = open(address, options)?;
    socket.bind(&address.into()).map_err(|e| SysError::new("bind to", address.to_string(), e))?;
    Ok(socket.into())
}

/// Opens a socket of an address's family, with its options.
fn open(family_of: SocketAddr, options: &UdpOptions) -> Result<Socket> {
    let failed = |e| SysError::new("make UDP socket for", family_of.to_string(), e);
    let socket =
        Socket::new(Domain::for_address(family_of), Type::DGRAM, Some(Protocol::UDP)).map_err(failed)?;
    if let Some(dscp) = options.dscp {
        set_dscp(&socket, dscp).map_err(failed)?;
    }
    set_named(&socket, &options.numbers)?;
    if let Some(device) = &options.device {
        let set = socket.bind_device(Some(device.as_bytes()));
        set.map_err(|e| SysError::new("set", format!("SO_BINDTODEVICE to {device}"), e))?;
    }
    if options.share_port {
        socket.set_reuse_port(true).map_err(failed)?;
    }
    if let Some(bytes) = options.receive_buffer {
        enlarge(&socket, bytes, libc::SO_RCVBUFFORCE, libc::SO_RCVBUF, "SO_RCVBUF")?;
    }
    if let Some(bytes) = options.send_buffer {
        enlarge(&socket, bytes, libc::SO_SNDBUFFORCE, libc::SO_SNDBUF, "SO_SNDBUF")?;
    }
    let (level, option, name) = match family_of {
        SocketAddr::V4(_) => (libc::IPPROTO_IP, libc::IP_MTU_DISCOVER, "IP_MTU_DISCOVER"),
        SocketAddr::V6(_) => (libc::IPPROTO_IPV6, libc::IPV6_MTU_DISCOVER, "IPV6_MTU_DISCOVER"),
    };
    // The numbers are the same for both IP versions. The default, IP_PMTUDISC_WANT, lets no router fragment and
    // fails with EMSGSIZE once one reports it.
    let discovery = if options.dont_fragment { libc::IP_PMTUDISC_DO } else { libc::IP_PMTUDISC_DONT };
    set_number(&socket, level, option, discovery, name)?;
    Ok(socket)
}

/// Requests a buffer beyond the system's limit, or within it if that is not allowed.
pub(crate) fn enlarge(
    socket: &impl AsFd,
    bytes: usize,
    force: libc::c_int,
    ask: libc::c_int,
    name: &'static str,
) -> Result<()> {
    let bytes = libc::c_int::try_from(bytes).unwrap_or(libc::c_int::MAX);
    set_number(socket, libc::SOL_SOCKET, force, bytes, name)
        .or_else(|_| set_number(socket, libc::SOL_SOCKET, ask, bytes, name))
}

/// Path MTU to the peer of a connected socket, as its kernel knows it.
pub fn path_mtu(socket: &UdpSocket) -> Option<u32> {
    let number = if socket.peer_addr().ok()?.is_ipv4() {
        get_number(socket, libc::IPPROTO_IP, libc::IP_MTU, "IP_MTU")
    } else {
        get_number(socket, libc::IPPROTO_IPV6, libc::IPV6_MTU, "IPV6_MTU")
    };
    number.ok().and_then(|mtu| u32::try_from(mtu).ok())
}

/// Whether a send failed because an outgoing queue was full (`ENOBUFS`).
pub fn is_out_of_room(error: &io::Error) -> bool {
    error.raw_os_error() == Some(libc::ENOBUFS)
}

/// Whether a datagram was longer than its socket allows (`EMSGSIZE`).
pub fn is_too_long(error: &io::Error) -> bool {
    error.raw_os_error() == Some(libc::EMSGSIZE)
}

/// Sends trains of equal datagrams over a connected socket.
#[derive(Debug)]
pub struct TrainSender {
    socket: UdpSocket,
    datagram_bytes: usize,
    segmented: bool,
}

impl TrainSender {
    /// Creates it for datagrams of this size; a send waits for at most `patience`.
    pub fn new(socket: UdpSocket, datagram_bytes: usize, patience: Duration) -> Result<Self> {
        let failed = |e| SysError::new("set", "SO_SNDTIMEO", e);
        socket.set_write_timeout(Some(patience)).map_err(failed)?;
        // A kernel before 4.18 lacks this option.
        let known = get_number(&socket, libc::IPPROTO_UDP, libc::UDP_SEGMENT, "UDP_SEGMENT").is_ok();
        Ok(Self { socket, datagram_bytes, segmented: known && datagram_bytes * 2 <= MOST_BYTES })
    }

    /// Datagrams per buffer; 1 if the kernel does not cut buffers.
    pub fn per_buffer(&self) -> usize {
        if self.segmented { (MOST_BYTES / self.datagram_bytes).clamp(1, MOST_SEGMENTS) } else { 1 }
    }

    /// The socket.
    pub fn socket(&self) -> &UdpSocket {
        &self.socket
    }

    /// Sends the content of `train`, datagram after datagram, by one call; returns how many the kernel accepted.
    pub fn send(&mut self, train: &[u8]) -> io::Result<usize> {
        loop {
            match self.try_send(train) {
                // The device or route (for example IPsec) can't have buffers cut, or the datagrams exceed the path's MTU: one by one from now on.
                Err(e)
                    if self.segmented
                        && train.len() > self.datagram_bytes
                        && matches!(
                            e.raw_os_error(),
                            Some(libc::EIO | libc::EINVAL | libc::EMSGSIZE | libc::EOPNOTSUPP)
                        ) =>
                {
                    self.segmented = false;
                }
                other => return other,
            }
        }
    }

    fn try_send(&self, train: &[u8]) -> io::Result<usize> {
        let step = self.datagram_bytes * self.per_buffer();
        let buffers = train.chunks(step).take(MOST_SEGMENTS);
        let mut parts: Vec<libc::iovec> = buffers
            .map(|b| libc::iovec { iov_base: b.as_ptr().cast_mut().cast(), iov_len: b.len() })
            .collect();
        let mut control = Control::default();
        control.put(libc::IPPROTO_UDP, libc::UDP_SEGMENT, self.datagram_bytes as u16);
        let mut messages: Vec<libc::mmsghdr> = Vec::with_capacity(parts.len());
        for part in &mut parts {
            // SAFETY: all-zero is valid.
            let mut message: libc::mmsghdr = unsafe { std::mem::zeroed() };
            message.msg_hdr.msg_iov = part;
            message.msg_hdr.msg_iovlen = 1;
            if self.segmented && part.iov_len > self.datagram_bytes {
                message.msg_hdr.msg_control = control.bytes.as_mut_ptr().cast();
                message.msg_hdr.msg_controllen = control.length as _;
            }
            messages.push(message);
        }
        // SAFETY: the messages point to parts and a control message that live through the call; the parts point into
        // `train`, which the kernel only reads.
        let sent = unsafe {
            libc::sendmmsg(
                self.socket.as_raw_fd(),
                messages.as_mut_ptr(),
                messages.len() as libc::c_uint,
                libc::MSG_NOSIGNAL,
            )
        };
        if sent < 0 {
            return Err(io::Error::last_os_error());
        }
        let bytes: usize = parts.iter().take(sent as usize).map(|part| part.iov_len).sum();
        Ok(bytes.div_ceil(self.datagram_bytes))
    }
}

/// Buffers for trains of datagrams, each of [`SLOTS`] slots: a receiver holds one only while it reads, so that
/// memory does not grow with the open streams.
struct BufferPool {
    free: Mutex<Vec<Vec<u8>>>,
    given_back: Condvar,
    made: AtomicUsize,
}

static BUFFERS: BufferPool =
    BufferPool { free: Mutex::new(Vec::new()), given_back: Condvar::new(), made: AtomicUsize::new(0) };

/// Maximum number of buffers.
const MOST_BUFFERS: usize = 8;

impl BufferPool {
    /// Takes a buffer, or makes one if allowed; waits for one otherwise.
    fn take(&'static self) -> PooledBuffer {
        let mut free = self.free.lock().unwrap_or_else(PoisonError::into_inner);
        loop {
            if let Some(bytes) = free.pop() {
                return PooledBuffer(bytes);
            }
            if self.made.load(Ordering::Relaxed) < MOST_BUFFERS {
                self.made.fetch_add(1, Ordering::Relaxed);
                return PooledBuffer(vec![0; SLOTS * SLOT_BYTES]);
            }
            free = self.given_back.wait(free).unwrap_or_else(PoisonError::into_inner);
        }
    }
}

/// One of [`BUFFERS`], returned when dropped.
struct PooledBuffer(Vec<u8>);

impl Drop for PooledBuffer {
    fn drop(&mut self) {
        let bytes = std::mem::take(&mut self.0);
        BUFFERS.free.lock().unwrap_or_else(PoisonError::into_inner).push(bytes);
        BUFFERS.given_back.notify_one();
    }
}

/// Reads trains of datagrams from a socket.
pub struct TrainReceiver {
    socket: UdpSocket,
    patience: Duration,
    controls: Vec<Control>,
    coalesced: bool,
    stamped: bool,
}

/// Datagrams received together: all of one size but the last, which may be shorter.
#[derive(Debug, Clone, Copy)]
pub struct Train<'a> {
    /// Bytes of the datagrams, one after the other.
    pub bytes: &'a [u8],
    /// Bytes per datagram.
    pub datagram_bytes: usize,
    /// When the kernel received them, since 1970, if it reports that.
    pub arrived_unix_ns: Option<u64>,
    /// Datagrams dropped by then because the socket was full.
    pub drops: Option<u32>,
}

impl TrainReceiver {
    /// Creates it for a socket; a read waits for at most `patience`.
    pub fn new(socket: UdpSocket, patience: Duration) -> Result<Self> {
        let coalesced = set_number(&socket, libc::IPPROTO_UDP, libc::UDP_GRO, 1, "UDP_GRO").is_ok();
        let stamped =
            set_number(&socket, libc::SOL_SOCKET, libc::SO_TIMESTAMPNS, 1, "SO_TIMESTAMPNS").is_ok();
        // If the kernel does not report it, drops are unknown.
        let _ = set_number(&socket, libc::SOL_SOCKET, libc::SO_RXQ_OVFL, 1, "SO_RXQ_OVFL");
        Ok(Self {
            socket,
            patience,
            controls: (0..SLOTS).map(|_| Control::default()).collect(),
            coalesced,
            stamped,
        })
    }

    /// Whether the kernel delivers several datagrams at a time.
    pub fn is_coalesced(&self) -> bool {
        self.coalesced
    }

    /// Whether the kernel reports arrival times.
    pub fn is_stamped(&self) -> bool {
        self.stamped
    }

    /// The socket.
    pub fn socket(&self) -> &UdpSocket {
        &self.socket
    }

    /// Waits for a train, and passes on all that are available. `WouldBlock` if none arrived in time.
    pub fn receive(&mut self, each: impl FnMut(Train<'_>)) -> io::Result<()> {
        let patience_ns = u64::try_from(self.patience.as_nanos()).unwrap_or(u64::MAX);
        if !crate::poll::wait_readable(self.socket.as_fd(), patience_ns)? {
            return Err(io::ErrorKind::WouldBlock.into());
        }
        let mut room = BUFFERS.take();
        self.receive_into(&mut room.0, each)
    }

    /// Reads the available trains into a buffer.
    fn receive_into(&mut self, room: &mut [u8], mut each: impl FnMut(Train<'_>)) -> io::Result<()> {
        // SAFETY: all-zero is valid for both structures.
        let (mut parts, mut messages): ([libc::iovec; SLOTS], [libc::mmsghdr; SLOTS]) =
            unsafe { (std::mem::zeroed(), std::mem::zeroed()) };
        let slots = room.chunks_exact_mut(SLOT_BYTES).zip(&mut self.controls);
        for ((part, message), (slot, control)) in parts.iter_mut().zip(&mut messages).zip(slots) {
            *part = libc::iovec { iov_base: slot.as_mut_ptr().cast(), iov_len: slot.len() };
            message.msg_hdr.msg_iov = part;
            message.msg_hdr.msg_iovlen = 1;
            message.msg_hdr.msg_control = control.bytes.as_mut_ptr().cast();
            message.msg_hdr.msg_controllen = CONTROL_BYTES as _;
        }
        // SAFETY: each message points to a part and a control buffer of its own, which live through the call, with their
        // lengths; the parts point to disjoint slots of `room`.
        let got = unsafe {
            libc::recvmmsg(
                self.socket.as_raw_fd(),
                messages.as_mut_ptr(),
                SLOTS as libc::c_uint,
                (libc::MSG_WAITFORONE | libc::MSG_DONTWAIT) as _,
                std::ptr::null_mut(),
            )
        };
        if got < 0 {
            return Err(io::Error::last_os_error());
        }
        for (message, slot) in messages.iter().take(got as usize).zip(room.chunks_exact(SLOT_BYTES)) {
            let bytes = &slot[..(message.msg_len as usize).min(SLOT_BYTES)];
            let reported = Reported::read(&message.msg_hdr);
            each(Train {
                bytes,
                datagram_bytes: reported.segment.filter(|&s| s > 0).unwrap_or(bytes.len().max(1)),
                arrived_unix_ns: reported.arrived_unix_ns,
                drops: reported.drops,
            });
        }
        Ok(())
    }

    /// Datagrams dropped because the socket was full, if the kernel reports it.
    pub fn drops(&self) -> Option<u32> {
        drops(&self.socket)
    }
}

/// Datagrams that a socket dropped because it was full (`SO_MEMINFO`), if the kernel reports it.
pub(crate) fn drops(socket: &impl AsRawFd) -> Option<u32> {
    let mut room = [0u32; 16];
    let mut length = size_of_val(&room) as libc::socklen_t;
    // SAFETY: the kernel writes at most `length` bytes into a live array and stores how many.
    let done = unsafe {
        libc::getsockopt(
            socket.as_raw_fd(),
            libc::SOL_SOCKET,
            libc::SO_MEMINFO,
            room.as_mut_ptr().cast(),
            &raw mut length,
        )
    };
    (done == 0 && length as usize > MEMINFO_DROPS * size_of::<u32>()).then(|| room[MEMINFO_DROPS])
}

/// Control message values of a train.
#[derive(Default)]
struct Reported {
    segment: Option<usize>,
    arrived_unix_ns: Option<u64>,
    drops: Option<u32>,
}

impl Reported {
    fn read(message: &libc::msghdr) -> Self {
        let mut reported = Self::default();
        let take = |message: ControlMessage<'_>| match (message.level, message.kind) {
            (libc::IPPROTO_UDP, libc::UDP_GRO) => {
                let bytes = message.read::<libc::c_int>();
                reported.segment = bytes.and_then(|bytes| usize::try_from(bytes).ok());
            }
            (libc::SOL_SOCKET, libc::SCM_TIMESTAMPNS) => reported.arrived_unix_ns = message.read_time_ns(),
            (libc::SOL_SOCKET, libc::SO_RXQ_OVFL) => reported.drops = message.read(),
            _ => {}
        };
        // SAFETY: the kernel has filled the control buffer up to msg_controllen.
        unsafe { control_messages::each(message, take) };
        reported
    }
}

/// Room for control messages, aligned as their header.
#[derive(Debug)]
#[repr(C, align(8))]
struct Control {
    bytes: [u8; CONTROL_BYTES],
    length: usize,
}

impl Default for Control {
    fn default() -> Self {
        Self { bytes: [0; CONTROL_BYTES], length: 0 }
    }
}

impl Control {
    /// Writes the one message that it holds.
    fn put(&mut self, level: libc::c_int, kind: libc::c_int, value: u16) {
        // SAFETY: the room is aligned as a header and holds one with its value, 24 bytes at most.
        unsafe {
            let header = self.bytes.as_mut_ptr().cast::<libc::cmsghdr>();
            (*header).cmsg_level = level;
            (*header).cmsg_type = kind;
            (*header).cmsg_len = libc::CMSG_LEN(size_of::<u16>() as u32) as _;
            libc::CMSG_DATA(header).cast::<u16>().write_unaligned(value);
            self.length = libc::CMSG_SPACE(size_of::<u16>() as u32) as usize;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const WAIT: Duration = Duration::from_secs(5);

    /// A sender and a receiver over loopback.
    fn pair(datagram: usize, receive_buffer: Option<usize>) -> (TrainSender, TrainReceiver) {
        let options = UdpOptions { receive_buffer, ..Default::default() };
        let bound = UdpSocket::bind("127.0.0.1:0").unwrap();
        let sending = connect(None, bound.local_addr().unwrap(), &UdpOptions::default()).unwrap();
        let from = bound.local_addr().unwrap();
        drop(bound);
        let receiving = connect(Some(from), sending.local_addr().unwrap(), &options).unwrap();
        let sender = TrainSender::new(sending, datagram, WAIT).unwrap();
        (sender, TrainReceiver::new(receiving, WAIT).unwrap())
    }

    #[test]
    fn trains_arrive_whole_whatever_carries_them() {
        for segmented in [true, false] {
            let (mut sender, mut receiver) = pair(100, Some(1 << 20));
            sender.segmented &= segmented;
            let train: Vec<u8> = (0..150u8).flat_map(|i| [i; 100]).collect();
            // One call sends as much as fits its messages, and reports how much that was.
            let mut sent = 0;
            while sent < 150 {
                sent += sender.send(&train[sent * 100..]).unwrap();
            }
            let mut seen = Vec::new();
            while seen.len() < 150 {
                receiver
                    .receive(|train| {
                        for datagram in train.bytes.chunks(train.datagram_bytes) {
                            assert!(datagram.len() == 100 && datagram.iter().all(|&b| b == datagram[0]));
                            seen.push(datagram[0]);
                        }
                        assert!(train.arrived_unix_ns.is_some_and(|at| at > 1 << 60) || !receiver_stamps());
                    })
                    .unwrap();
            }
            assert_eq!(seen, (0..150).collect::<Vec<u8>>());
            assert_eq!(receiver.drops(), Some(0));
        }
    }

    /// Every Linux since 2.6.22.
    fn receiver_stamps() -> bool {
        cfg!(target_os = "linux")
    }

    #[test]
    fn a_full_socket_counts_what_it_drops() {
        let (mut sender, mut receiver) = pair(1000, Some(4096));
        sender.segmented = false;
        for _ in 0..100 {
            sender.send(&[7; 1000]).unwrap();
        }
        let mut seen = 0;
        receiver.receive(|train| seen += train.bytes.len() / 1000).unwrap();
        let dropped = receiver.drops().unwrap();
        assert!(dropped > 0);
        // Later datagrams report the earlier drops.
        sender.send(&[7; 1000]).unwrap();
        let mut seen = None;
        while seen.is_none() {
            receiver.receive(|train| seen = train.drops.filter(|&d| d > 0).or(seen)).unwrap();
        }
        assert_eq!(seen, Some(dropped));
    }

    #[test]
    fn a_connected_socket_knows_its_path() {
        let (sender, _receiver) = pair(64, None);
        let mtu = path_mtu(sender.socket()).unwrap();
        assert!(mtu >= 1280, "{mtu}");
        crate::socket::pace(sender.socket(), 8_000_000).unwrap();
    }
}
