//! TUN devices: IP packets of a network namespace, read and written by a process.

use std::fs::File;
use std::io::{self, IoSlice, IoSliceMut, Read, Write};
use std::os::fd::{AsFd, AsRawFd, BorrowedFd, OwnedFd};
use std::os::unix::fs::OpenOptionsExt;

use crate::{Result, SysError, check};

/// Device file that provides TUN devices.
pub const CONTROL_PATH: &str = "/dev/net/tun";

/// `TUNSETIFF`, from linux/if_tun.h: `_IOW('T', 202, int)`.
const TUNSETIFF: libc::c_ulong = 0x4004_54ca;

/// `TUNGETIFF`, from linux/if_tun.h: `_IOR('T', 210, unsigned int)`.
const TUNGETIFF: libc::c_ulong = 0x8004_54d2;

/// `TUNSETOFFLOAD`, from linux/if_tun.h: `_IOW('T', 208, unsigned int)`.
const TUNSETOFFLOAD: libc::c_ulong = 0x4004_54d0;

/// Offloads that a device leaves to its reader (`TUN_F_*` of linux/if_tun.h): checksums, TCP segmentation with and without ECN.
const TCP_OFFLOADS: libc::c_ulong = 0x01 | 0x02 | 0x04 | 0x08;
/// UDP segmentation for both IP versions, since Linux 6.2.
const UDP_OFFLOADS: libc::c_ulong = 0x20 | 0x40;

/// Format of packets on a device's descriptor.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Framing {
    /// Bare IP packets, each a wire segment with its checksums complete.
    #[default]
    Segments,
    /// IP packets behind a [`VirtioHeader`], which may stand for many wire segments.
    SuperPackets,
}

/// Pending work on a packet: `virtio_net_hdr` of linux/virtio_net.h (virtio 1.2, section 5.1.6) in the machine's byte order.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct VirtioHeader {
    /// `VIRTIO_NET_HDR_F_*`.
    pub flags: u8,
    /// `VIRTIO_NET_HDR_GSO_*`.
    pub gso_type: u8,
    /// Bytes of all headers; a hint.
    pub headers_bytes: u16,
    /// Payload bytes of each wire segment but the last.
    pub gso_size: u16,
    /// Offset where checksumming starts.
    pub checksum_start: u16,
    /// Offset of the checksum from there.
    pub checksum_offset: u16,
}

impl VirtioHeader {
    /// Its length in front of a packet.
    pub const BYTES: usize = 10;
    /// Flag: the checksum must be completed.
    pub const NEEDS_CHECKSUM: u8 = 1;
    /// TCP over IPv4.
    pub const GSO_TCP_V4: u8 = 1;
    /// TCP over IPv6.
    pub const GSO_TCP_V6: u8 = 4;
    /// UDP over either, each segment a datagram.
    pub const GSO_UDP: u8 = 5;
    /// Flag beside a TCP type: the first segment has CWR, the others don't.
    pub const GSO_ECN: u8 = 0x80;

    pub(crate) fn decode(bytes: [u8; Self::BYTES]) -> Self {
        let word = |at: usize| u16::from_ne_bytes([bytes[at], bytes[at + 1]]);
        Self {
            flags: bytes[0],
            gso_type: bytes[1],
            headers_bytes: word(2),
            gso_size: word(4),
            checksum_start: word(6),
            checksum_offset: word(8),
        }
    }

    pub(crate) fn encode(self) -> [u8; Self::BYTES] {
        let mut bytes = [self.flags, self.gso_type, 0, 0, 0, 0, 0, 0, 0, 0];
        let words = [self.headers_bytes, self.gso_size, self.checksum_start, self.checksum_offset];
        for (to, word) in bytes[2..].chunks_exact_mut(2).zip(words) {
            to.copy_from_slice(&word.to_ne_bytes());
        }
        bytes
    }
}

/// A TUN device, read and written without blocking.
#[derive(Debug)]
pub struct Tun {
    file: File,
    framing: Framing,
}

impl Tun {
    /// Creates a device called `name` in the network namespace of the calling process. It ends with its last descriptor.
    pub fn create(name: &str, framing: Framing) -> Result<Self> {
        let file = File::options()
            .read(true)
            .write(true)
            .custom_flags(libc::O_NONBLOCK | libc::O_CLOEXEC)
            .open(CONTROL_PATH)
            .map_err(|e| SysError::new("open", CONTROL_PATH, e))?;
        // SAFETY: ifreq is plain data for which all-zero is valid.
        let mut request: libc::ifreq = unsafe { std::mem::zeroed() };
        if name.len() >= request.ifr_name.len() || name.bytes().any(|b| b == 0 || b == b'/') {
            return Err(SysError::new(
                "name",
                format!("device '{name}'"),
                io::ErrorKind::InvalidInput.into(),
            ));
        }
        for (to, from) in request.ifr_name.iter_mut().zip(name.bytes()) {
            *to = from as libc::c_char;
        }
        let header = if framing == Framing::SuperPackets { libc::IFF_VNET_HDR } else { 0 };
        request.ifr_ifru.ifru_flags = (libc::IFF_TUN | libc::IFF_NO_PI | header) as libc::c_short;
        // SAFETY: TUNSETIFF reads and writes one ifreq, which is live.
        let done = unsafe { libc::ioctl(file.as_raw_fd(), TUNSETIFF as _, &raw mut request) };
        check(done, "create TUN device", name)?;
        if framing == Framing::SuperPackets {
            take_offloads(&file, name)?;
        }
        Ok(Self { file, framing })
    }

    /// Uses a descriptor that another process made with [`Tun::create`] and the same framing.
    pub fn from_descriptor(descriptor: OwnedFd, framing: Framing) -> Self {
        Self { file: File::from(descriptor), framing }
    }

    /// Whether it is a device, and not a socket in place of one.
    pub(crate) fn is_device(&self) -> bool {
        // SAFETY: an ifreq is plain data, for which zeros are valid.
        let mut request: libc::ifreq = unsafe { std::mem::zeroed() };
        // SAFETY: TUNGETIFF writes one ifreq, which is live.
        unsafe { libc::ioctl(self.file.as_raw_fd(), TUNGETIFF as _, &raw mut request) == 0 }
    }

    /// Format of its packets.
    pub fn framing(&self) -> Framing {
        self.framing
    }

    /// Turns it into its descriptor.
    pub fn into_descriptor(self) -> OwnedFd {
        self.file.into()
    }

    /// Reads one packet that the kernel sent into the front of `room`, which must hold the largest IP packet; returns
    /// its length, and the pending work on it. `None` if there is none now.
    pub fn receive(&self, room: &mut [u8]) -> io::Result<Option<(usize, VirtioHeader)>> {
        let mut header = [0; VirtioHeader::BYTES];
        let read = match self.framing {
            Framing::Segments => (&self.file).read(room),
            Framing::SuperPackets => (&self.file)
                .read_vectored(&mut [IoSliceMut::new(&mut header), IoSliceMut::new(room)])
                .map(|length| length.saturating_sub(VirtioHeader::BYTES)),
        };
        match read {
            Ok(length) => Ok(Some((length, VirtioHeader::decode(header)))),
            Err(e) if e.kind() == io::ErrorKind::WouldBlock => Ok(None),
            Err(e) => Err(e),
        }
    }

    /// Passes one packet to the kernel's receive path; `header` matters only with super-packets. `false` if the device refused it.
    pub fn send(&self, packet: &[u8], header: VirtioHeader) -> io::Result<bool> {
        let written = match self.framing {
            Framing::Segments => (&self.file).write(packet),
            Framing::SuperPackets => {
                (&self.file).write_vectored(&[IoSlice::new(&header.encode()), IoSlice::new(packet)])
            }
        };
        match written {
            Ok(_) => Ok(true),
            Err(e) if matches!(e.kind(), io::ErrorKind::WouldBlock) => Ok(false),
            Err(e) if e.raw_os_error() == Some(libc::ENOBUFS) || e.raw_os_error() == Some(libc::ENOMEM) => {
                Ok(false)
            }
            Err(e) => Err(e),
        }
    }
}

/// Requests every offload that this kernel has; those for TCP are required.
fn take_offloads(file: &File, name: &str) -> Result<()> {
    let take = |offloads: libc::c_ulong| {
        // SAFETY: TUNSETOFFLOAD takes its flags by value.
        unsafe { libc::ioctl(file.as_raw_fd(), TUNSETOFFLOAD as _, offloads) }
    };
    if take(TCP_OFFLOADS | UDP_OFFLOADS) == 0 {
        return Ok(());
    }
    check(take(TCP_OFFLOADS), "take offloads of TUN device", name).map(drop)
}

impl AsFd for Tun {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.file.as_fd()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_virtio_header_is_ten_bytes_in_the_order_of_the_kernel() {
        let header = VirtioHeader {
            flags: VirtioHeader::NEEDS_CHECKSUM,
            gso_type: VirtioHeader::GSO_TCP_V6 | VirtioHeader::GSO_ECN,
            headers_bytes: 0x0102,
            gso_size: 0x0304,
            checksum_start: 0x0506,
            checksum_offset: 0x0708,
        };
        let mut bytes = vec![1, 0x84];
        for word in [0x0102u16, 0x0304, 0x0506, 0x0708] {
            bytes.extend_from_slice(&word.to_ne_bytes());
        }
        assert_eq!(header.encode().as_slice(), bytes);
        assert_eq!(VirtioHeader::decode(header.encode()), header);
    }
}
