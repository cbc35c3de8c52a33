//! What tcptrace prints of each TCP connection of a capture: its long output, with the figures of round trips and of outstanding data
//! (`tcptrace -lrW`). docs/tcptrace.md has what each field means, and where its figures are others than tcptrace's.

mod direction;
mod fields;
mod outstanding;
mod sequence;
#[cfg(test)]
mod tests;
mod text;
mod times;

use std::collections::HashMap;
use std::net::SocketAddr;

use crate::decode::{self, Carries, Packet, Segment};
use crate::flows::Frame;
use direction::Direction;

pub use fields::Field;

/// The connections of a capture, as tcptrace sees them.
#[derive(Debug, Default)]
pub struct TcpTrace {
    numbers: HashMap<[SocketAddr; 2], usize>,
    connections: Vec<Connection>,
    most: Option<usize>,
    file: Option<String>,
    packets: u64,
    tcp_packets: u64,
    left_out: u64,
    began_us: Option<u64>,
    now_us: u64,
}

/// A connection: of its two ends, the first is the one that sent first.
#[derive(Debug, Clone)]
pub struct Connection {
    ends: [SocketAddr; 2],
    from_us: u64,
    to_us: u64,
    /// The letters of its ends, by number.
    letters: [u64; 2],
    directions: [Direction; 2],
}

impl TcpTrace {
    /// One that follows no more connections than this.
    pub fn of_at_most(connections: usize) -> Self {
        Self { most: Some(connections), ..Self::default() }
    }

    /// The same with the name of the capture, which stands in the text.
    pub fn named(self, file: impl Into<String>) -> Self {
        Self { file: Some(file.into()), ..self }
    }

    /// A frame of the capture.
    pub fn frame(&mut self, frame: &Frame<'_>) {
        self.packets += 1;
        if let Some(at_ns) = frame.at_ns {
            // Packets that were captured by several processors may be a little out of order: nothing takes less than no time.
            self.now_us = at_ns / 1_000;
            self.began_us.get_or_insert(self.now_us);
        }
        let Ok(packet) = decode::packet(frame.link_type, frame.data, frame.length) else { return };
        if let Carries::Tcp(segment) = packet.carries {
            self.segment(&packet, &segment);
        }
    }

    fn segment(&mut self, packet: &Packet, segment: &Segment) {
        let from = SocketAddr::new(packet.source, segment.source);
        let to = SocketAddr::new(packet.destination, segment.destination);
        let key = if from <= to { [from, to] } else { [to, from] };
        let known = self.numbers.get(&key).copied().filter(|&number| {
            let connection = &self.connections[number];
            !connection.is_another(connection.side_of(from), segment)
        });
        let number = match known {
            Some(number) => number,
            None if self.most.is_some_and(|most| self.connections.len() >= most) => {
                self.left_out += 1;
                return;
            }
            None => {
                let number = self.connections.len();
                let letters = [2 * number as u64, 2 * number as u64 + 1];
                self.connections.push(Connection::new([from, to], letters, self.now_us));
                self.numbers.insert(key, number);
                number
            }
        };
        self.tcp_packets += 1;
        let connection = &mut self.connections[number];
        connection.segment(self.now_us, connection.side_of(from), packet, segment);
    }

    /// The connections in the order in which they began.
    pub fn connections(mut self) -> Vec<Connection> {
        self.finish();
        self.connections
    }

    /// All that tcptrace's long output says of the capture.
    pub fn text(mut self) -> String {
        self.finish();
        text::of(&self)
    }

    /// What is still open is idle until the capture ends.
    fn finish(&mut self) {
        let now_us = self.now_us;
        for connection in self.connections.iter_mut().filter(|connection| !connection.is_closed()) {
            connection.directions.iter_mut().for_each(|direction| direction.idle_until(now_us));
        }
    }
}

impl Connection {
    fn new(ends: [SocketAddr; 2], letters: [u64; 2], now_us: u64) -> Self {
        Self { ends, from_us: now_us, to_us: now_us, letters, directions: Default::default() }
    }

    /// Addresses and ports.
    pub fn ends(&self) -> [SocketAddr; 2] {
        self.ends
    }

    fn side_of(&self, from: SocketAddr) -> usize {
        usize::from(self.ends[0] != from)
    }

    /// Whether this SYN begins another connection between the same ports.
    fn is_another(&self, side: usize, segment: &Segment) -> bool {
        let own = &self.directions[side];
        segment.flags.syn() && !segment.flags.ack() && own.packets > 0 && own.syn_number != Some(segment.seq)
    }

    fn segment(&mut self, now_us: u64, side: usize, packet: &Packet, segment: &Segment) {
        self.to_us = now_us;
        let [a, b] = &mut self.directions;
        let (own, other) = if side == 0 { (a, b) } else { (b, a) };
        own.segment(now_us, other, packet, segment);
    }

    fn is_reset(&self) -> bool {
        self.directions.iter().any(|direction| direction.resets > 0)
    }

    fn count(&self, has: impl Fn(&Direction) -> bool) -> usize {
        self.directions.iter().filter(|direction| has(direction)).count()
    }

    fn is_closed(&self) -> bool {
        self.is_reset() || self.count(|direction| direction.fins > 0) == 2
    }

    /// From the first packet to the last, microseconds.
    fn elapsed_us(&self) -> u64 {
        self.to_us.saturating_sub(self.from_us)
    }
}
