//! A transfer request, independent of who makes it and what runs it.

pub mod application;
pub mod connection;
pub mod method;
pub mod payload;
pub mod socket;
pub mod udp;
pub mod window;

use serde::{Deserialize, Serialize};

use crate::units::{ByteCount, Nanos};
use application::Application;
use payload::Zerocopy;
use socket::SocketNumbers;
use udp::UdpRequest;
use window::WindowBytes;

/// Default bytes per write, as in iperf3.
pub const USUAL_LENGTH: ByteCount = ByteCount::kib(128);

/// One workload between two hosts: bulk TCP, or datagrams at a rate. Its own JSON form is that of a measurement request.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct FlowSpec {
    /// Parallel connections, or datagram senders.
    pub streams: u32,
    /// How long to send, omit included.
    #[serde(rename = "duration_ns", alias = "duration", with = "crate::units::nanoseconds")]
    #[cfg_attr(feature = "schema", schemars(with = "u64"))]
    pub duration: Nanos,
    /// Stop after this many bytes in total, if sooner.
    pub bytes: Option<ByteCount>,
    /// Initial part that is not counted.
    #[serde(rename = "omit_ns", alias = "omit", with = "crate::units::nanoseconds")]
    #[cfg_attr(feature = "schema", schemars(with = "u64"))]
    pub omit: Nanos,
    /// Sampling interval.
    #[serde(rename = "interval_ns", alias = "interval", with = "crate::units::nanoseconds")]
    #[cfg_attr(feature = "schema", schemars(with = "u64"))]
    pub interval: Nanos,
    /// Bytes per write.
    pub length: ByteCount,
    /// Requested window on the wire of each stream; `None` leaves it to autotuning.
    pub window: Option<WindowBytes>,
    /// `SO_SNDBUF` and `SO_RCVBUF` at both ends.
    pub socket_buffer: Option<ByteCount>,
    /// `TCP_MAXSEG`.
    pub mss: Option<u32>,
    /// Congestion control of the sender; `None` for the host's default.
    pub congestion: Option<String>,
    /// `TCP_NODELAY`.
    pub nodelay: bool,
    /// Differentiated services code point, 0 to 63.
    pub dscp: Option<u8>,
    /// Socket options that are one number.
    #[serde(flatten)]
    pub socket: SocketNumbers,
    /// How the sender passes its bytes to the kernel.
    #[serde(default)]
    pub zerocopy: Zerocopy,
    /// Whether a known pattern is sent and the receiver verifies every byte.
    #[serde(default)]
    pub check_payload: bool,
    /// Pacing rate of connections: payload of each stream, bit/s; for datagrams see `udp`.
    pub pacing_bps: Option<u64>,
    /// Datagrams instead of connections.
    pub udp: Option<UdpRequest>,
    /// Behaviour of the programs at both ends if they do not run as fast as they can; flows of the lab only.
    #[serde(default, skip_serializing_if = "Application::is_greedy")]
    pub application: Application,
}

/// One connection for ten seconds, sampled every 100 ms; everything else is left to the kernel.
impl Default for FlowSpec {
    fn default() -> Self {
        Self {
            streams: 1,
            duration: Nanos::secs(10),
            bytes: None,
            omit: Nanos::ZERO,
            interval: Nanos::millis(100),
            length: USUAL_LENGTH,
            window: None,
            socket_buffer: None,
            mss: None,
            congestion: None,
            nodelay: false,
            dscp: None,
            socket: SocketNumbers::default(),
            zerocopy: Zerocopy::Auto,
            check_payload: false,
            pacing_bps: None,
            udp: None,
            application: Application::default(),
        }
    }
}

impl FlowSpec {
    /// Returns the requested payload rate of datagrams, all streams together, bit/s; `None` for TCP, or if no rate is requested.
    pub fn offered_bps(&self) -> Option<f64> {
        Some(self.udp.as_ref()?.rate_bps? as f64 * f64::from(self.streams))
    }
}
