//! What is known of the transfer of data in one direction, whatever document it is part of.

use serde::{Deserialize, Serialize};

use super::rtt::RttReport;
use super::samples::{LossEpisode, ReceiverSample, SenderSample};
use super::stream::StreamReport;
use crate::finding::Finding;
use crate::finding::caveat::WindowShortfall;
use crate::flow::connection::Connection;
use crate::flow::method::WindowMechanism;
use crate::flow::udp::UdpReport;

/// Results of a transfer in one direction: of a measurement, of a flow of the lab, of a connection that was watched or
/// captured. Each document that holds one writes its members among its own.
#[derive(Debug, Clone, Default, PartialEq, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct Transfer {
    /// Bytes read by the receiver x 8 / time, after omit.
    pub goodput_bps: f64,
    /// From the first byte read to the last sample.
    pub duration_ns: u64,
    /// Part of the duration skipped at the beginning and excluded from the goodput.
    pub omit_ns: u64,
    /// Goodput after omit of each stream, in order of connection.
    pub stream_goodput_bps: Vec<f64>,
    /// The window of the first stream: requested, granted and on the wire.
    pub window: WindowReport,
    /// Round trips of probes between the hosts, before the load and under it.
    pub rtt_ns: RttReport,
    /// Segments retransmitted, all streams; null if the sender's kernel does not report it.
    pub retransmits: Option<u64>,
    /// Segments that the receiver already had, as it reported to the sender (DSACK, RFC 2883), all streams: retransmitted
    /// without being lost, on a path that reorders. Null if the sender's kernel does not report it.
    pub needless_retransmits: Option<u64>,
    /// Congestion control, read back from the sending socket.
    pub congestion_control: String,
    /// Payload bytes of a full segment.
    pub mss_bytes: Option<u64>,
    /// `SO_SNDBUF` of the first stream at the sender.
    pub send_buffer_bytes: Option<u64>,
    /// CPU time of the sending process / wall clock.
    pub sender_cpu: f64,
    /// CPU time of the receiving process / wall clock.
    pub receiver_cpu: f64,
    /// CPU time of the busiest sending thread / wall clock; null if the sender does not report it.
    pub sender_thread_cpu: Option<f64>,
    /// CPU time of the busiest receiving thread / wall clock; null if the receiver does not report it.
    pub receiver_thread_cpu: Option<f64>,
    /// Whether the first connection uses window scaling (RFC 7323), according to the sender's kernel; null if not reported.
    pub sender_window_scaling: Option<bool>,
    /// Whether the first connection uses window scaling (RFC 7323), according to the receiver's kernel; null if not reported.
    pub receiver_window_scaling: Option<bool>,
    /// Options of the first connection, according to the sender's kernel or else the receiver's; absent if neither reports them.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub connection: Option<Connection>,
    /// Samples at the receiver.
    pub received: Vec<ReceiverSample>,
    /// Samples at the sender; of the first stream unless a member is a sum.
    pub sent: Vec<SenderSample>,
    /// Congestion events of the first stream at the sender: losses and marks, each with the last state before it.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub loss_episodes: Vec<LossEpisode>,
    /// Kernel counters of each of several streams at the sender, in order of connection.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub streams: Vec<StreamReport>,
    /// What limits the transfer, with evidence; empty if the record of a flow is not valid.
    #[serde(default, deserialize_with = "crate::finding::read")]
    pub findings: Vec<Finding>,
    /// Datagram statistics of a UDP flow; null for TCP. For UDP the members about TCP are null, empty or 0.
    pub udp: Option<UdpReport>,
}

/// Gives a type with a member `transfer` the members of it.
macro_rules! holds_transfer {
    ($type:ty) => {
        impl std::ops::Deref for $type {
            type Target = $crate::record::Transfer;

            fn deref(&self) -> &Self::Target {
                &self.transfer
            }
        }

        impl std::ops::DerefMut for $type {
            fn deref_mut(&mut self) -> &mut Self::Target {
                &mut self.transfer
            }
        }
    };
}

/// Serialises a type that holds a transfer: the members of both in the order of the document, which `flatten` cannot keep.
macro_rules! written_in_order {
    ($type:ty: $($name:ident $(unless $absent:ident)?),*) => {
        impl serde::Serialize for $type {
            fn serialize<S: serde::Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
                use serde::ser::SerializeMap;
                let mut members = serializer.serialize_map(None)?;
                $($(if !self.$name.$absent())? {
                    members.serialize_entry(stringify!($name), &self.$name)?;
                })*
                members.end()
            }
        }
    };
}

pub(crate) use {holds_transfer, written_in_order};

/// The three numbers called "window".
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct WindowReport {
    /// Requested by the scenario; null if left to the kernel's autotuning.
    pub asked_bytes: Option<u64>,
    /// `SO_RCVBUF` of the receiver, as the kernel reports it.
    pub socket_buffer_bytes: Option<u64>,
    /// Receive window as the sender saw it (`tcpi_snd_wnd`, or the clamp on the path), median after omit.
    pub on_the_wire_bytes: Option<u64>,
    /// Largest receive window that the sender saw after omit.
    pub on_the_wire_max_bytes: Option<u64>,
    /// How the window was set.
    pub method: WindowMechanism,
    /// Whether the window on the wire held as many whole segments as requested; null if none was requested.
    pub reached: Option<bool>,
    /// Why the requested window was not reached.
    pub note: Option<WindowShortfall>,
}
