//! Writes a capture: a section, its interfaces, packets, and final statistics.

use std::io::{self, Write};

use bdp_model::units::Nanos;

use crate::block::{self, BLOCK_OVERHEAD, Direction, option, padding};

/// Description of a section; empty text is omitted.
#[derive(Debug, Clone, Copy, Default)]
pub struct Section<'a> {
    /// Hardware of the machine.
    pub hardware: &'a str,
    /// Operating system.
    pub os: &'a str,
    /// Program that writes the section.
    pub application: &'a str,
    /// What was captured and why.
    pub comment: &'a str,
}

/// A captured interface.
#[derive(Debug, Clone, Copy)]
pub struct Interface<'a> {
    /// Name on the host.
    pub name: &'a str,
    /// Where the interface leads; empty text is omitted.
    pub description: &'a str,
    /// Link type of its packets, such as [`LINKTYPE_RAW`](crate::LINKTYPE_RAW).
    pub link_type: u16,
    /// Most bytes captured per packet.
    pub snap_length: u32,
}

/// A packet.
#[derive(Debug, Clone, Copy)]
pub struct Packet<'a> {
    /// Interface number, from [`Writer::interface`].
    pub interface: u32,
    /// Time since 1970.
    pub at: Nanos,
    /// Direction.
    pub direction: Direction,
    /// Original length, before truncation to the snap length, bytes.
    pub length: u32,
    /// Captured bytes, up to the snap length.
    pub data: &'a [u8],
    /// What happened to the packet; empty text is omitted.
    pub comment: &'a str,
}

/// Statistics of an interface.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Statistics {
    /// Interface number, from [`Writer::interface`].
    pub interface: u32,
    /// Start of the capture, since 1970.
    pub started: Nanos,
    /// End of the capture, since 1970.
    pub ended: Nanos,
    /// Packets that passed, captured or not.
    pub received: u64,
    /// Packets that passed but were not captured.
    pub dropped: u64,
}

/// Writes one section, little-endian, with a single call of `write_all` per block.
#[derive(Debug)]
pub struct Writer<W> {
    out: W,
    interfaces: u32,
    /// Buffer of the current block.
    room: Vec<u8>,
}

impl<W: Write> Writer<W> {
    /// Starts a section.
    pub fn new(out: W, section: &Section<'_>) -> io::Result<Self> {
        let mut writer = Self { out, interfaces: 0, room: Vec::new() };
        writer.begin(block::SECTION_HEADER);
        writer.room.extend(block::BYTE_ORDER_MAGIC.to_le_bytes());
        writer.room.extend(block::VERSION.0.to_le_bytes());
        writer.room.extend(block::VERSION.1.to_le_bytes());
        writer.room.extend(block::LENGTH_UNKNOWN.to_le_bytes());
        writer.text(option::COMMENT, section.comment);
        writer.text(option::SHB_HARDWARE, section.hardware);
        writer.text(option::SHB_OS, section.os);
        writer.text(option::SHB_USERAPPL, section.application);
        writer.end()?;
        Ok(writer)
    }

    /// Describes an interface with nanosecond timestamps and returns its number.
    pub fn interface(&mut self, interface: &Interface<'_>) -> io::Result<u32> {
        /// Timestamp unit: 10^-9 s.
        const NANOSECONDS: u8 = 9;
        self.begin(block::INTERFACE_DESCRIPTION);
        self.room.extend(interface.link_type.to_le_bytes());
        self.room.extend([0; 2]);
        self.room.extend(interface.snap_length.to_le_bytes());
        self.text(option::IF_NAME, interface.name);
        self.text(option::IF_DESCRIPTION, interface.description);
        self.option(option::IF_TSRESOL, &[NANOSECONDS]);
        self.end()?;
        let number = self.interfaces;
        self.interfaces += 1;
        Ok(number)
    }

    /// Adds a packet.
    pub fn packet(&mut self, packet: &Packet<'_>) -> io::Result<()> {
        let kept = u32::try_from(packet.data.len())
            .map_err(|_| io::Error::new(io::ErrorKind::InvalidInput, "a packet of more than 4 GiB"))?;
        self.begin(block::ENHANCED_PACKET);
        self.room.extend(packet.interface.to_le_bytes());
        self.stamp(packet.at);
        self.room.extend(kept.to_le_bytes());
        self.room.extend(packet.length.to_le_bytes());
        self.padded(packet.data);
        self.text(option::COMMENT, packet.comment);
        self.option(option::EPB_FLAGS, &packet.direction.flags().to_le_bytes());
        self.end()
    }

    /// Adds the statistics of an interface.
    pub fn statistics(&mut self, statistics: &Statistics) -> io::Result<()> {
        self.begin(block::INTERFACE_STATISTICS);
        self.room.extend(statistics.interface.to_le_bytes());
        self.stamp(statistics.ended);
        for (code, at) in
            [(option::ISB_STARTTIME, statistics.started), (option::ISB_ENDTIME, statistics.ended)]
        {
            self.room.extend(code.to_le_bytes());
            self.room.extend(8u16.to_le_bytes());
            self.stamp(at);
        }
        self.option(option::ISB_IFRECV, &statistics.received.to_le_bytes());
        self.option(option::ISB_IFDROP, &statistics.dropped.to_le_bytes());
        self.end()
    }

    /// Returns a reference to the underlying writer.
    pub fn get_ref(&self) -> &W {
        &self.out
    }

    /// Returns a mutable reference to the underlying writer, for example to take data gathered in memory.
    pub fn get_mut(&mut self) -> &mut W {
        &mut self.out
    }

    /// Returns the underlying writer.
    pub fn into_inner(self) -> W {
        self.out
    }

    fn begin(&mut self, kind: u32) {
        self.room.clear();
        self.room.extend(kind.to_le_bytes());
        // Placeholder for the length, which is known at the end.
        self.room.extend([0; 4]);
    }

    fn end(&mut self) -> io::Result<()> {
        self.room.extend(option::END.to_le_bytes());
        self.room.extend(0u16.to_le_bytes());
        let length = u32::try_from(self.room.len() + 4)
            .map_err(|_| io::Error::new(io::ErrorKind::InvalidInput, "a block of more than 4 GiB"))?;
        debug_assert!(length as usize >= BLOCK_OVERHEAD && length.is_multiple_of(4));
        self.room[4..8].copy_from_slice(&length.to_le_bytes());
        self.room.extend(length.to_le_bytes());
        self.out.write_all(&self.room)
    }

    /// Appends a timestamp of two words, the higher one first in either byte order.
    fn stamp(&mut self, at: Nanos) {
        self.room.extend(((at.as_ns() >> 32) as u32).to_le_bytes());
        self.room.extend((at.as_ns() as u32).to_le_bytes());
    }

    fn padded(&mut self, bytes: &[u8]) {
        self.room.extend_from_slice(bytes);
        self.room.extend(std::iter::repeat_n(0, padding(bytes.len())));
    }

    fn option(&mut self, code: u16, value: &[u8]) {
        debug_assert!(value.len() <= usize::from(u16::MAX));
        self.room.extend(code.to_le_bytes());
        self.room.extend((value.len() as u16).to_le_bytes());
        self.padded(value);
    }

    /// Appends a text option, truncated to a 16-bit length.
    fn text(&mut self, code: u16, text: &str) {
        if !text.is_empty() {
            let longest = text.len().min(usize::from(u16::MAX));
            let end = (0..=longest).rev().find(|&i| text.is_char_boundary(i)).unwrap_or_default();
            self.option(code, &text.as_bytes()[..end]);
        }
    }
}
