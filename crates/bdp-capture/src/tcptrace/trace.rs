//! The connections of a capture, by their packets.

use std::collections::HashMap;
use std::net::SocketAddr;

use super::connection::Connection;
use crate::decode::{self, Carries, Packet, Segment};
use crate::flows::Frame;

/// The connections of a capture, as tcptrace sees them.
#[derive(Debug, Default)]
pub struct TcpTrace {
    pub(super) numbers: HashMap<[SocketAddr; 2], usize>,
    pub(super) connections: Vec<Connection>,
    pub(super) most: Option<usize>,
    pub(super) file: Option<String>,
    pub(super) packets: u64,
    pub(super) tcp_packets: u64,
    pub(super) left_out: u64,
    pub(super) began_us: Option<u64>,
    pub(super) now_us: u64,
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

    /// What is still open is idle until the capture ends.
    pub(super) fn finish(&mut self) {
        let now_us = self.now_us;
        for connection in self.connections.iter_mut().filter(|connection| !connection.is_closed()) {
            connection.directions.iter_mut().for_each(|direction| direction.idle_until(now_us));
        }
    }
}
