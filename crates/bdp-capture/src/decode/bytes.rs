//! Reader for bytes that may be truncated.

/// Why a frame has no readable packet.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Unread {
    /// Unknown link type, as numbered in captures.
    LinkType(u16),
    /// Not IP: ARP and others, by Ethernet type.
    NotIp(u16),
    /// Not IP: spanning tree and others, by the service access point of IEEE 802.2.
    Llc(u8),
    /// A control or management frame without data: beacons, acknowledgements of 802.11, tokens.
    Control,
    /// Its content is encrypted.
    Encrypted,
    /// The capturing device received it with errors.
    Damaged,
    /// A fragment of a frame other than the first.
    Fragment,
    /// The captured bytes end within a header.
    Cut,
    /// A header is inconsistent.
    Malformed,
}

/// Bytes read from the start, which may be truncated.
#[derive(Debug, Clone, Copy)]
pub(super) struct Bytes<'a> {
    pub(super) rest: &'a [u8],
    /// Original length of the rest, before truncation.
    pub(super) length: u32,
    /// Offset of the rest in the frame.
    pub(super) at: usize,
    /// Number of enclosing tunnels.
    pub(super) tunnels: u8,
}

/// Type of the next header.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Next {
    /// Link layer, as numbered in captures.
    Link(u16),
    /// An Ethernet frame.
    Ethernet,
    /// Payload of this Ethernet type.
    Type(u16),
    /// The header of IEEE 802.2.
    Llc,
    /// PPP, with or without address and control.
    Ppp,
    /// MPLS labels.
    Mpls,
    /// IPv4 or IPv6.
    Ip,
}

impl<'a> Bytes<'a> {
    pub(super) fn take(&mut self, n: usize) -> Result<&'a [u8], Unread> {
        let (taken, rest) = self.rest.split_at_checked(n).ok_or(Unread::Cut)?;
        self.rest = rest;
        self.at += n;
        self.length = self.length.saturating_sub(n as u32);
        Ok(taken)
    }

    pub(super) fn array<const N: usize>(&mut self) -> Result<[u8; N], Unread> {
        let taken = self.take(N)?;
        Ok(std::array::from_fn(|i| taken[i]))
    }

    pub(super) fn u8(&mut self) -> Result<u8, Unread> {
        self.array().map(|[byte]| byte)
    }

    pub(super) fn u16(&mut self) -> Result<u16, Unread> {
        self.array().map(u16::from_be_bytes)
    }

    pub(super) fn u32(&mut self) -> Result<u32, Unread> {
        self.array().map(u32::from_be_bytes)
    }

    /// Skips the rest of a header of this length, of which `read` bytes have been read.
    pub(super) fn skip_to(&mut self, length: usize, read: usize) -> Result<(), Unread> {
        self.take(length.checked_sub(read).ok_or(Unread::Malformed)?)?;
        Ok(())
    }

    /// Returns the rest as the content of a tunnel.
    pub(super) fn within_tunnel(self) -> Self {
        Self { tunnels: self.tunnels.saturating_add(1), ..self }
    }
}
