//! Data that is missing for an answer, or for a more certain one.

use serde::{Deserialize, Serialize};

use super::named::named;

named! {
    /// The data that is missing.
    pub enum Lack {
        /// The sender's `TCP_INFO`.
        TcpInfo = "tcp_info",
        /// The windows and segments in flight in `TCP_INFO`.
        TcpInfoWindows = "tcp_info_windows",
        /// A longer test: `samples` are too few.
        LongerMeasurement = "longer_measurement",
        /// A longer test: too few samples remain after the omitted time.
        LongerAfterOmit = "longer_after_omit",
        /// The segment size of `host`.
        SegmentSize = "segment_size",
        /// The idle round trip.
        IdleRoundTrip = "idle_round_trip",
        /// The round trip under load.
        LoadedRoundTrip = "loaded_round_trip",
        /// The direction in which a queue stands.
        QueueDirection = "queue_direction",
        /// The speed of the NICs.
        NicSpeed = "nic_speed",
        /// What keeps the window below what `tcp_rmem` allows.
        WindowBound = "window_bound",
        /// The kernel's count of the time that the send buffer limited.
        SendBufferCount = "send_buffer_count",
        /// The receiving socket's count of dropped datagrams.
        SocketDrops = "socket_drops",
        /// A direct connection, which no program on the path terminates.
        DirectConnection = "direct_connection",
        /// The measurements of the sending `host`.
        SenderFigures = "sender_figures",
        /// A probe to `host` in parallel with the connection.
        ProbeBeside = "probe_beside",
    }
}

/// Data that is missing.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct Missing {
    /// The data.
    pub what: Lack,
    /// The host that it is missing from.
    pub host: Option<String>,
    /// The number of samples there are.
    pub samples: Option<u64>,
}

impl Missing {
    /// Creates it without operands; methods add them.
    pub const fn new(what: Lack) -> Self {
        Self { what, host: None, samples: None }
    }

    /// Sets the host.
    #[must_use]
    pub fn host(mut self, name: &str) -> Self {
        self.host = Some(name.to_owned());
        self
    }

    /// Sets the number of samples there are.
    #[must_use]
    pub const fn samples(mut self, samples: u64) -> Self {
        self.samples = Some(samples);
        self
    }
}
