//! Bytes that may end too early.

/// Why there is no packet in a frame.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Unread {
    /// A link layer that bdp does not know, by its number in captures.
    LinkType(u16),
    /// No IP: ARP and the like, by the Ethernet type.
    NotIp(u16),
    /// No IP, by the service access point of IEEE 802.2: spanning tree and the like.
    Llc(u8),
    /// A frame that manages or controls the link and carries no data: beacons, acknowledgements of 802.11, tokens.
    Control,
    /// What it carries is encrypted.
    Encrypted,
    /// The capturing device says that it was received with errors.
    Damaged,
    /// A fragment of a frame, and not the first.
    Fragment,
    /// What was kept ends within a header.
    Cut,
    /// A header contradicts itself.
    Malformed,
}

/// Bytes that are read from their beginning, and that may end too early.
#[derive(Debug, Clone, Copy)]
pub(super) struct Bytes<'a> {
    pub(super) rest: &'a [u8],
    /// How long the rest was before it was cut.
    pub(super) length: u32,
    /// Where in the frame the rest begins.
    pub(super) at: usize,
    /// Tunnels around it.
    pub(super) tunnels: u8,
}

/// What the rest begins with.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Next {
    /// A link layer, by its number in captures.
    Link(u16),
    /// An Ethernet frame.
    Ethernet,
    /// What follows this Ethernet type.
    Type(u16),
    /// The header of IEEE 802.2.
    Llc,
    /// PPP, with address and control in front or without.
    Ppp,
    /// Labels of MPLS.
    Mpls,
    /// An IP packet of either version.
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

    /// Of a header that says how long it is, what follows the part that was read.
    pub(super) fn skip_to(&mut self, length: usize, read: usize) -> Result<(), Unread> {
        self.take(length.checked_sub(read).ok_or(Unread::Malformed)?)?;
        Ok(())
    }

    /// The same in a tunnel.
    pub(super) fn within_tunnel(self) -> Self {
        Self { tunnels: self.tunnels.saturating_add(1), ..self }
    }
}
