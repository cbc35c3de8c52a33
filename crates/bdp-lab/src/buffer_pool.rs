//! Buffers that packets are read into. A large packet keeps its buffer, which comes back later; a small one is copied.

/// Largest IP packet.
const LARGEST_PACKET: usize = 65_535;
/// Packets longer than this keep the buffer that they were read into: copying them would cost more than clearing the rest of it when it comes back.
const COPIED: usize = 16 << 10;
/// Buffers kept for reuse, 32 MiB.
const SPARE: usize = 512;

/// A pool of buffers.
#[derive(Debug)]
pub(crate) struct BufferPool {
    next: Vec<u8>,
    spare: Vec<Vec<u8>>,
}

impl BufferPool {
    pub(crate) fn new() -> Self {
        Self { next: vec![0; LARGEST_PACKET], spare: Vec::new() }
    }

    /// Buffer for the next read, with room for the largest packet.
    pub(crate) fn room(&mut self) -> &mut [u8] {
        &mut self.next
    }

    /// Takes the packet of this length that was read.
    pub(crate) fn take(&mut self, length: usize) -> Vec<u8> {
        if length <= COPIED {
            return self.next[..length].to_vec();
        }
        let fresh = self.spare.pop().unwrap_or_else(|| vec![0; LARGEST_PACKET]);
        let mut packet = std::mem::replace(&mut self.next, fresh);
        packet.truncate(length);
        packet
    }

    /// Gives the buffer of a packet back to the pool.
    pub(crate) fn give_back(&mut self, mut buffer: Vec<u8>) {
        if buffer.capacity() >= LARGEST_PACKET && self.spare.len() < SPARE {
            buffer.resize(LARGEST_PACKET, 0);
            self.spare.push(buffer);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_packet_holds_what_was_read_and_its_buffer_is_used_again() {
        let mut rooms = BufferPool::new();
        for length in [40, COPIED, COPIED + 1, LARGEST_PACKET] {
            rooms.room()[..length].fill(length as u8);
            let packet = rooms.take(length);
            assert_eq!(packet, vec![length as u8; length]);
            assert_eq!(rooms.room().len(), LARGEST_PACKET);
            rooms.give_back(packet);
        }
        assert_eq!(rooms.spare.len(), 1);
        rooms.give_back(vec![0; 1500]);
        assert_eq!(rooms.spare.len(), 1);
        assert!(rooms.spare.iter().all(|buffer| buffer.len() == LARGEST_PACKET));
    }
}
