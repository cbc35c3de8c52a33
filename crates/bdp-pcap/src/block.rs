//! Numbers of the format: block types, option codes, flags. Section numbers refer to draft-ietf-opsawg-pcapng-03.

/// Section Header Block, section 4.1; the same in both byte orders.
pub(crate) const SECTION_HEADER: u32 = 0x0a0d_0d0a;
/// Interface Description Block, section 4.2.
pub(crate) const INTERFACE_DESCRIPTION: u32 = 1;
/// Packet Block, appendix A: the predecessor of the Enhanced Packet Block.
pub(crate) const OBSOLETE_PACKET: u32 = 2;
/// Simple Packet Block, section 4.4.
pub(crate) const SIMPLE_PACKET: u32 = 3;
/// Interface Statistics Block, section 4.5.
pub(crate) const INTERFACE_STATISTICS: u32 = 5;
/// Enhanced Packet Block, section 4.3.
pub(crate) const ENHANCED_PACKET: u32 = 6;

/// Determines the byte order of a section.
pub(crate) const BYTE_ORDER_MAGIC: u32 = 0x1a2b_3c4d;
/// Version of the format.
pub(crate) const VERSION: (u16, u16) = (1, 0);
/// Length of a section whose length is unknown until its end.
pub(crate) const LENGTH_UNKNOWN: u64 = u64::MAX;

/// Link type of packets that begin with an IPv4 or IPv6 header: <https://www.tcpdump.org/linktypes.html>.
pub const LINKTYPE_RAW: u16 = 101;

/// Bytes around a block's body: type, length, and length again.
pub(crate) const BLOCK_OVERHEAD: usize = 12;

/// Option codes; a number's meaning depends on the block, section 3.5.
pub(crate) mod option {
    pub(crate) const END: u16 = 0;
    pub(crate) const COMMENT: u16 = 1;
    pub(crate) const SHB_HARDWARE: u16 = 2;
    pub(crate) const SHB_OS: u16 = 3;
    pub(crate) const SHB_USERAPPL: u16 = 4;
    pub(crate) const IF_NAME: u16 = 2;
    pub(crate) const IF_DESCRIPTION: u16 = 3;
    pub(crate) const IF_TSRESOL: u16 = 9;
    pub(crate) const IF_TSOFFSET: u16 = 14;
    pub(crate) const EPB_FLAGS: u16 = 2;
    pub(crate) const ISB_STARTTIME: u16 = 2;
    pub(crate) const ISB_ENDTIME: u16 = 3;
    pub(crate) const ISB_IFRECV: u16 = 4;
    pub(crate) const ISB_IFDROP: u16 = 5;
}

/// Direction of a packet at the interface, as seen from its host.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Direction {
    /// Received by the host.
    Inbound,
    /// Sent by the host.
    Outbound,
}

impl Direction {
    /// Returns the two lowest bits of `epb_flags`, section 4.3.1.
    pub(crate) const fn flags(self) -> u32 {
        match self {
            Self::Inbound => 1,
            Self::Outbound => 2,
        }
    }

    pub(crate) const fn of(flags: u32) -> Option<Self> {
        match flags & 3 {
            1 => Some(Self::Inbound),
            2 => Some(Self::Outbound),
            _ => None,
        }
    }
}

/// Returns the padding to whole 32-bit words.
pub(crate) const fn padding(length: usize) -> usize {
    length.wrapping_neg() % 4
}
