//! Assigns the packets of a capture to connections.

use std::collections::HashMap;
use std::net::SocketAddr;

use super::connection::Connection;
use crate::decode::{self, Carries, Packet, Segment};
use crate::flows::Frame;

/// Connections of a capture, as reported by tcptrace.
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
    /// Returns a trace that follows at most `connections` connections.
    pub fn of_at_most(connections: usize) -> Self {
        Self { most: Some(connections), ..Self::default() }
    }

    /// Sets the name of the capture for the text.
    pub fn named(self, file: impl Into<String>) -> Self {
        Self { file: Some(file.into()), ..self }
    }

    /// Adds a frame of the capture.
    pub fn frame(&mut self, frame: &Frame<'_>) {
        self.packets += 1;
        if let Some(at_ns) = frame.at_ns {
            // Packets captured by several CPUs may be slightly out of order: no time may be negative.
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

    /// Returns the connections in order of their start.
    pub fn connections(mut self) -> Vec<Connection> {
        self.finish();
        self.connections
    }

    /// Counts open connections as idle until the capture ends.
    pub(super) fn finish(&mut self) {
        let now_us = self.now_us;
        for connection in self.connections.iter_mut().filter(|connection| !connection.is_closed()) {
            connection.directions.iter_mut().for_each(|direction| direction.idle_until(now_us));
        }
    }
}
