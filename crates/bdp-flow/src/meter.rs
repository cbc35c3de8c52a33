//! Bytes that a flow has moved so far, for other threads to read while it runs.

use std::sync::Mutex;
use std::sync::atomic::{AtomicU64, Ordering};

use bdp_sys::tcp_info::TcpInfo;

use crate::lock::lock;

/// A receiver's counts of one stream of datagrams so far.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, serde::Serialize, serde::Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct ArrivalReading {
    /// Datagrams sent, by the highest sequence number received.
    pub sent: u64,
    /// Datagrams received, without duplicates.
    pub received: u64,
    /// Interarrival jitter (RFC 3550).
    pub jitter_ns: u64,
}

/// A counter that one thread sets and others read.
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
    /// Sets the bytes moved.
    pub fn set(&self, bytes: u64) {
        self.bytes.store(bytes, Ordering::Relaxed);
    }

    /// Returns the bytes last set.
    pub fn bytes(&self) -> u64 {
        self.bytes.load(Ordering::Relaxed)
    }

    /// Sets the bytes that the kernel has accepted from a sender; updated more often than the acknowledged bytes.
    pub fn set_written(&self, bytes: u64) {
        self.written.store(bytes, Ordering::Relaxed);
    }

    /// Returns the flow's progress in bytes, as far as known: the bytes set, or the bytes written by a sender.
    pub fn moved(&self) -> u64 {
        self.bytes().max(self.written.load(Ordering::Relaxed))
    }

    /// Sets the payload size of sent datagrams.
    pub fn set_datagram_bytes(&self, bytes: u64) {
        self.datagram_bytes.store(bytes, Ordering::Relaxed);
    }

    /// Returns the payload size of sent datagrams; 0 if none are sent.
    pub fn datagram_bytes(&self) -> u64 {
        self.datagram_bytes.load(Ordering::Relaxed)
    }

    /// Sets when the last byte was read, by the monotonic clock, once a flow has ended.
    pub fn set_last_byte(&self, at_ns: u64) {
        self.last_byte_ns.store(at_ns, Ordering::Relaxed);
    }

    /// Returns when the last byte was read, by the monotonic clock; 0 if none was, if this end sends, or if the flow
    /// still runs.
    pub fn last_byte_ns(&self) -> u64 {
        self.last_byte_ns.load(Ordering::Relaxed)
    }

    /// Sets the bytes of each stream, in order; updated as often as their sum.
    pub fn set_streams(&self, bytes: impl IntoIterator<Item = u64>) {
        let mut streams = lock(&self.streams);
        streams.clear();
        streams.extend(bytes);
    }

    /// Sets the kernel's report of each sent stream, in order.
    pub fn set_infos(&self, infos: Vec<TcpInfo>) {
        *lock(&self.infos) = infos;
    }

    /// Returns the kernel's latest report of each sent stream; empty if this end receives.
    pub fn infos(&self) -> Vec<TcpInfo> {
        lock(&self.infos).clone()
    }

    /// Sets the arrivals of each stream of datagrams, in order.
    pub fn set_arrivals(&self, arrivals: Vec<ArrivalReading>) {
        *lock(&self.arrivals) = arrivals;
    }

    /// Returns the latest arrivals of each received stream of datagrams; empty for TCP and if this end sends.
    pub fn arrivals(&self) -> Vec<ArrivalReading> {
        lock(&self.arrivals).clone()
    }

    /// Returns the latest bytes of each stream; empty if unknown.
    pub fn streams(&self) -> Vec<u64> {
        lock(&self.streams).clone()
    }
}
