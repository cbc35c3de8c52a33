//! Bytes that may end too early.

/// Why there is no packet in a frame.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Unread {
    /// A link layer that bdp does not know, by its number in captures.
    LinkType(u16),
    /// No IP: ARP and the like, by the Ethernet type.
    NotIp(u16),
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

    pub(super) fn u16(&mut self) -> Result<u16, Unread> {
        self.array().map(u16::from_be_bytes)
    }

    pub(super) fn u32(&mut self) -> Result<u32, Unread> {
        self.array().map(u32::from_be_bytes)
    }
}
