//! A connection of this process, read and explained as the sockets of other programs are.

use std::net::TcpStream;

use bdp_model::facts::{Facts, Role, SocketFacts};
use bdp_model::measurement::HostFacts;
use bdp_model::watch::ConnectionState;
use bdp_sys::tcp_info::TcpInfo;
use bdp_sys::{diag, socket};

use super::facts::{self, Known};
use super::history::{History, Reading};

/// Goodput / rate limit above which the limit is what holds a connection back.
pub const AT_LIMIT: f64 = 0.9;
/// Memory of a kept reading.
pub const READING_BYTES: usize = size_of::<Reading>();

/// A connection with its readings.
#[derive(Default)]
pub struct OwnConnection {
    history: History,
    congestion: String,
    buffers: Option<(u32, u32)>,
}

impl OwnConnection {
    /// Takes a reading at this moment, and keeps it if at most `most` may be kept; returns its figures, and how many
    /// received bytes are not yet read. `None` of a connection that was reset: its figures are gone, and the earlier
    /// ones stand.
    pub fn read(&mut self, socket: &TcpStream, at_ns: u64, most: Option<usize>) -> Option<(TcpInfo, u32)> {
        let reading = Reading::of_own(socket, at_ns).ok()?;
        if reading.state == ConnectionState::Closed {
            return None;
        }
        let figures = (reading.info(), reading.unread);
        let Some(most) = most else { return Some(figures) };
        if self.congestion.is_empty() {
            self.congestion = socket::congestion(socket).unwrap_or_default();
        }
        let memory = diag::memory_of(socket);
        self.buffers = memory.map(|memory| (memory.send_buffer, memory.receive_buffer)).or(self.buffers);
        self.history.push_within(reading, most);
        Some(figures)
    }

    /// Number of readings that are kept.
    pub fn held(&self) -> usize {
        self.history.held()
    }

    /// The congestion control of this end.
    pub fn congestion(&self) -> &str {
        &self.congestion
    }

    /// The facts of the last `span_ns`, with the names of this end and the other; `None` if it moved nothing, or was
    /// read too seldom.
    pub fn facts(&self, here: &str, there: &str, host: &HostFacts, span_ns: u64) -> Option<Facts> {
        let known = Known {
            here,
            there: there.to_owned(),
            congestion: &self.congestion,
            send_buffer: self.buffers.map(|buffers| buffers.0),
            receive_buffer: self.buffers.map(|buffers| buffers.1),
            own: Role::Server,
            limit_counts_from: AT_LIMIT,
            // This process sets the size of neither buffer.
            socket: SocketFacts {
                send_buffer_asked: Some(false),
                receive_buffer_asked: Some(false),
                ..SocketFacts::default()
            },
            host: Some(host),
        };
        facts::facts(&self.history, &known, span_ns)
    }
}
