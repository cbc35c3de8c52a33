//! Bytes that a flow has moved so far, for others to look at while it runs.

use std::sync::Mutex;
use std::sync::atomic::{AtomicU64, Ordering};

use bdp_sys::tcp_info::TcpInfo;

use crate::lock::lock;

/// What a receiver knows of one stream of datagrams so far.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, serde::Serialize, serde::Deserialize)]
pub struct ArrivalReading {
    /// Datagrams sent, by the highest number that came.
    pub sent: u64,
    /// Different ones that came.
    pub received: u64,
    /// Interarrival jitter (RFC 3550).
    pub jitter_ns: u64,
}

/// A count that one thread sets and others read.
#[derive(Debug, Default)]
pub struct Meter {
    bytes: AtomicU64,
    last_byte_ns: AtomicU64,
    datagram_bytes: AtomicU64,
    written: AtomicU64,
    streams: Mutex<Vec<u64>>,
    infos: Mutex<Vec<TcpInfo>>,
    arrivals: Mutex<Vec<ArrivalReading>>,
}

impl Meter {
    /// Shows `bytes` from now on.
    pub fn set(&self, bytes: u64) {
        self.bytes.store(bytes, Ordering::Relaxed);
    }

    /// What was shown last.
    pub fn bytes(&self) -> u64 {
        self.bytes.load(Ordering::Relaxed)
    }

    /// Shows how many bytes the kernel has taken of a sender, more often than what was acknowledged.
    pub fn set_written(&self, bytes: u64) {
        self.written.store(bytes, Ordering::Relaxed);
    }

    /// Bytes by which a flow has got on, as far as is known: those that are shown, or those that a sender has written.
    pub fn moved(&self) -> u64 {
        self.bytes().max(self.written.load(Ordering::Relaxed))
    }

    /// Shows the payload of the datagrams that are sent.
    pub fn set_datagram_bytes(&self, bytes: u64) {
        self.datagram_bytes.store(bytes, Ordering::Relaxed);
    }

    /// Payload of the datagrams that are sent; 0 where none are.
    pub fn datagram_bytes(&self) -> u64 {
        self.datagram_bytes.load(Ordering::Relaxed)
    }

    /// Tells, when a flow has ended, when the last of its bytes was read, by the monotonic clock.
    pub fn set_last_byte(&self, at_ns: u64) {
        self.last_byte_ns.store(at_ns, Ordering::Relaxed);
    }

    /// When the last byte was read, by the monotonic clock; 0 where none was, this end sends, or the flow still runs.
    pub fn last_byte_ns(&self) -> u64 {
        self.last_byte_ns.load(Ordering::Relaxed)
    }

    /// Shows the bytes of each stream from now on, in order: they are set as often as their sum.
    pub fn set_streams(&self, bytes: impl IntoIterator<Item = u64>) {
        let mut streams = lock(&self.streams);
        streams.clear();
        streams.extend(bytes);
    }

    /// Shows from now on what the kernel reports of each stream that is sent, in order.
    pub fn set_infos(&self, infos: Vec<TcpInfo>) {
        *lock(&self.infos) = infos;
    }

    /// What was shown last of each stream that is sent; empty where this end receives.
    pub fn infos(&self) -> Vec<TcpInfo> {
        lock(&self.infos).clone()
    }

    /// Shows from now on what came of each stream of datagrams, in order.
    pub fn set_arrivals(&self, arrivals: Vec<ArrivalReading>) {
        *lock(&self.arrivals) = arrivals;
    }

    /// What was shown last of each stream of datagrams that is received; empty of TCP, and where this end sends.
    pub fn arrivals(&self) -> Vec<ArrivalReading> {
        lock(&self.arrivals).clone()
    }

    /// What was shown last of each stream; empty where that is unknown.
    pub fn streams(&self) -> Vec<u64> {
        lock(&self.streams).clone()
    }
}
