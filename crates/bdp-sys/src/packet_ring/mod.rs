//! Captures the packets of a network interface from a ring of memory shared with the kernel (`AF_PACKET`; packet(7)).
//!
//! The kernel fills a block and hands it over when it is full, or 50 ms after its first packet; a packet costs no
//! system call. If every block waits to be read, packets are dropped and counted.

mod block;
mod memory;

use std::io;
use std::os::fd::{AsFd, AsRawFd, OwnedFd};

use libc::{c_int, sock_filter};
use rustix::event::PollFlags;
use rustix::net::netdevice::name_to_index;
use rustix::net::{AddressFamily, SocketFlags, SocketType, socket_with};

use crate::poll::wait_for;
use crate::socket_option::{get_number, set_number};
use crate::{Result, SysError, check, device};
pub use block::RingPacket;
use block::{COOKED_BYTES, Framing};
use memory::Shared;

/// Bytes of the ring; halved, down to 4 MiB, if the system has less.
pub const RING_BYTES: usize = 32 << 20;
const LEAST_BYTES: usize = 4 * BLOCK_BYTES;
/// Bytes of a block, which holds the largest packet that is kept.
const BLOCK_BYTES: usize = 1 << 20;
/// Time after which a partly filled block is handed over, ms.
const HELD_MS: u32 = 50;
/// Largest snap length, bytes.
pub const LONGEST_SNAP: u32 = 256 << 10;

/// Interface to capture on.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Interface {
    /// Interface index; 0 for all.
    index: u32,
    framing: Framing,
}

impl Interface {
    /// All interfaces of the network namespace.
    pub const ANY: Self = Self { index: 0, framing: Framing::Cooked };

    /// Returns the interface of this name.
    pub fn named(name: &str) -> Result<Self> {
        let failed = |e: io::Error| SysError::new("find interface", name, e);
        let socket = rustix::net::socket(AddressFamily::INET, SocketType::DGRAM, None);
        let socket = socket.map_err(|e| failed(e.into()))?;
        let index = name_to_index(&socket, name).map_err(|e| failed(e.into()))?;
        let framing = match device::hardware_type(&socket, name) {
            Some(libc::ARPHRD_ETHER | libc::ARPHRD_LOOPBACK) => Framing::Ethernet,
            _ => Framing::Cooked,
        };
        Ok(Self { index, framing })
    }
}

/// A running capture.
#[derive(Debug)]
pub struct PacketRing {
    // Dropped before the socket, whose end frees the kernel's side of it.
    memory: Shared,
    socket: OwnedFd,
    framing: Framing,
    snap: u32,
    /// Index of the block that is handed over next.
    next: usize,
    blocks: usize,
    dropped: u64,
}

impl PacketRing {
    /// Starts to capture, keeping the first `snap` bytes of each packet. Loopback's packets are captured once, as
    /// they are received. Needs `CAP_NET_RAW`.
    pub fn open(interface: Interface, snap: u32) -> Result<Self> {
        let kind = match interface.framing {
            Framing::Ethernet => SocketType::RAW,
            Framing::Cooked => SocketType::DGRAM,
        };
        // Without a protocol nothing arrives before everything is set.
        let socket = socket_with(AddressFamily::PACKET, kind, SocketFlags::CLOEXEC, None)
            .map_err(|e| SysError::new("open", "packet socket", e.into()))?;
        let set = |option, value, name| set_number(&socket, libc::SOL_PACKET, option, value, name);
        set(libc::PACKET_VERSION, libc::tpacket_versions::TPACKET_V3 as c_int, "PACKET_VERSION")?;
        set(libc::PACKET_RESERVE, COOKED_BYTES as c_int, "PACKET_RESERVE")?;
        attach(&socket, &once_and_cut(snap.min(LONGEST_SNAP)))?;
        let bytes = make_ring(&socket)?;
        let memory = Shared::of(&socket, bytes)?;
        bind(&socket, interface.index)?;
        let ring = Self {
            memory,
            socket,
            framing: interface.framing,
            snap: snap.min(LONGEST_SNAP),
            next: 0,
            blocks: bytes / BLOCK_BYTES,
            dropped: 0,
        };
        // An interface that is down can be bound too.
        ring.check()?;
        Ok(ring)
    }

    /// Link type of the frames in captures: Ethernet, or `LINUX_SLL2` for other interfaces and for all together.
    pub fn link_type(&self) -> u16 {
        match self.framing {
            Framing::Ethernet => 1,
            Framing::Cooked => 276,
        }
    }

    /// Largest captured length of a frame, including a header or tag put before it.
    pub fn longest(&self) -> u32 {
        self.snap + COOKED_BYTES as u32
    }

    /// Bytes of memory that hold packets.
    pub fn ring_bytes(&self) -> usize {
        self.blocks * BLOCK_BYTES
    }

    /// Waits until packets have arrived or the time has passed; returns whether [`take`](Self::take) has some. Fails if the interface went down.
    pub fn wait(&self, wait_ns: u64) -> Result<bool> {
        if !self.memory.is_handed_over(self.at()) {
            wait_for(self.socket.as_fd(), PollFlags::IN, wait_ns)
                .map_err(|e| SysError::new("wait for", "packets", e))?;
        }
        let has = self.memory.is_handed_over(self.at());
        if !has {
            self.check()?;
        }
        Ok(has)
    }

    /// Passes on the packets of a block and returns it to the kernel; `false` if there was none.
    pub fn take(&mut self, each: &mut dyn FnMut(&RingPacket<'_>)) -> bool {
        let (at, framing) = (self.at(), self.framing);
        let taken = self.memory.take(at, BLOCK_BYTES, |block| block::packets(block, framing, each));
        if taken {
            self.next = (self.next + 1) % self.blocks;
        }
        taken
    }

    /// Stops capturing. Earlier packets can still be taken.
    pub fn stop(&self) -> Result<()> {
        attach(&self.socket, &NOTHING)
    }

    /// Whether the block that the kernel fills has packets, which it will hand over.
    pub fn has_more(&self) -> bool {
        self.memory.has_packets(self.at())
    }

    /// Packets dropped so far for lack of room.
    pub fn dropped(&mut self) -> Result<u64> {
        // SAFETY: plain data for which all-zero is valid.
        let mut counted: libc::tpacket_stats_v3 = unsafe { std::mem::zeroed() };
        let mut length = size_of_val(&counted) as libc::socklen_t;
        // SAFETY: the kernel writes at most `length` bytes into a live structure of that size.
        let done = unsafe {
            libc::getsockopt(
                self.socket.as_raw_fd(),
                libc::SOL_PACKET,
                libc::PACKET_STATISTICS,
                (&raw mut counted).cast(),
                &raw mut length,
            )
        };
        check(done, "read", "PACKET_STATISTICS")?;
        // The kernel resets its counter on each read.
        self.dropped += u64::from(counted.tp_drops);
        Ok(self.dropped)
    }

    /// Offset of the next block in the ring.
    fn at(&self) -> usize {
        self.next * BLOCK_BYTES
    }

    /// Returns an error of the socket since the last check.
    fn check(&self) -> Result<()> {
        match get_number(&self.socket, libc::SOL_SOCKET, libc::SO_ERROR, "SO_ERROR")? {
            0 => Ok(()),
            error => Err(SysError::new("capture", "packets", io::Error::from_raw_os_error(error))),
        }
    }
}

/// Requests the ring; returns its size in bytes.
fn make_ring(socket: &OwnedFd) -> Result<usize> {
    /// Required by the kernel's checks alone in this version.
    const FRAME_BYTES: usize = 2048;
    let mut bytes = RING_BYTES;
    loop {
        let asked = libc::tpacket_req3 {
            tp_block_size: BLOCK_BYTES as u32,
            tp_block_nr: (bytes / BLOCK_BYTES) as u32,
            tp_frame_size: FRAME_BYTES as u32,
            tp_frame_nr: (bytes / FRAME_BYTES) as u32,
            tp_retire_blk_tov: HELD_MS,
            tp_sizeof_priv: 0,
            tp_feature_req_word: 0,
        };
        match set_structure(socket, libc::SOL_PACKET, libc::PACKET_RX_RING, &asked, "PACKET_RX_RING") {
            Ok(()) => return Ok(bytes),
            Err(e) if e.source.raw_os_error() == Some(libc::ENOMEM) && bytes > LEAST_BYTES => bytes /= 2,
            Err(e) => return Err(e),
        }
    }
}

fn bind(socket: &OwnedFd, index: u32) -> Result<()> {
    // SAFETY: plain data for which all-zero is valid.
    let mut address: libc::sockaddr_ll = unsafe { std::mem::zeroed() };
    address.sll_family = libc::AF_PACKET as u16;
    address.sll_protocol = (libc::ETH_P_ALL as u16).to_be();
    address.sll_ifindex = index as c_int;
    // SAFETY: the address is live, of the family that it says, and its size is given.
    let done = unsafe {
        libc::bind(socket.as_raw_fd(), (&raw const address).cast(), size_of_val(&address) as libc::socklen_t)
    };
    check(done, "bind", "packet socket").map(drop)
}

/// An instruction of classic BPF: code, jumps if true and if false, operand (Linux, `Documentation/networking/filter.rst`).
const fn instruction(code: u32, jt: u8, jf: u8, k: u32) -> sock_filter {
    sock_filter { code: code as u16, jt, jf, k }
}

/// A filter that rejects every packet.
const NOTHING: [sock_filter; 1] = [instruction(libc::BPF_RET, 0, 0, 0)];

/// A filter that keeps the first bytes of each packet. Loopback shows a packet when sent and when received: the first is skipped.
fn once_and_cut(snap: u32) -> [sock_filter; 6] {
    const LOAD: u32 = libc::BPF_LD | libc::BPF_W | libc::BPF_ABS;
    const IS: u32 = libc::BPF_JMP | libc::BPF_JEQ | libc::BPF_K;
    let about = |what: c_int| (libc::SKF_AD_OFF + what) as u32;
    [
        instruction(LOAD, 0, 0, about(libc::SKF_AD_HATYPE)),
        instruction(IS, 0, 2, u32::from(libc::ARPHRD_LOOPBACK)),
        instruction(LOAD, 0, 0, about(libc::SKF_AD_PKTTYPE)),
        instruction(IS, 1, 0, u32::from(libc::PACKET_OUTGOING)),
        instruction(libc::BPF_RET, 0, 0, snap),
        instruction(libc::BPF_RET, 0, 0, 0),
    ]
}

/// Attaches a filter, replacing the one before.
fn attach(socket: &OwnedFd, filter: &[sock_filter]) -> Result<()> {
    let program = libc::sock_fprog { len: filter.len() as u16, filter: filter.as_ptr().cast_mut() };
    set_structure(socket, libc::SOL_SOCKET, libc::SO_ATTACH_FILTER, &program, "SO_ATTACH_FILTER")
}

/// Sets an option to a kernel structure, which the kernel only reads.
fn set_structure<T>(
    socket: &OwnedFd,
    level: c_int,
    option: c_int,
    value: &T,
    name: &'static str,
) -> Result<()> {
    // SAFETY: the kernel reads a live structure whose size is given, and what that points to, which lives as long.
    let done = unsafe {
        libc::setsockopt(
            socket.as_raw_fd(),
            level,
            option,
            std::ptr::from_ref(value).cast(),
            size_of::<T>() as libc::socklen_t,
        )
    };
    check(done, "set", name).map(drop)
}
