//! Requests to an agent and its answers, between machines (`docs/protocol.md`) and on a lab host. Each answer carries the number of
//! its request. Answers may arrive in any order, because an agent handles other requests while a long one runs.

use std::collections::BTreeMap;
use std::net::SocketAddr;
use std::ops::Range;

use bdp_model::case::ProbeKind;
use bdp_model::case::traffic::Traffic;
use bdp_model::flow::FlowSpec;
use bdp_model::flow::application::Application;
use bdp_model::flow::connection::Connection;
use bdp_model::flow::method::{EndReason, ReceiveMethod, SendMethod, TriedWay};
use bdp_model::flow::payload::{CpuList, PayloadCheck, Zerocopy};
use bdp_model::flow::socket::{SocketNumbers, in_protocol};
use bdp_model::flow::udp::{Distribution, UdpRequest};
use bdp_model::flow::window::WindowBytes;
use bdp_model::measurement::HostFacts;
use bdp_model::measurement::host_counters::HostCounters;
use bdp_model::probes::{self, ProbeOutcome, ProbePoint, ProbeSeries};
use bdp_model::record::{LossEpisode, ReceiverSample, SenderSample, StreamReport};
use bdp_model::statistics::arrivals::{ArrivalCounts, TransitSummary};
use bdp_model::units::{ByteCount, Nanos};
use serde::{Deserialize, Deserializer, Serialize};

use crate::datagram::DatagramOrder;
use crate::tuning::Sealed;

/// Number of an unsolicited message: the [`Answer::Failed`] with which an agent reports why it ends.
pub const FAREWELL_ID: u64 = 0;

/// A message with its request number.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Numbered<T> {
    /// Request number, repeated in the answer.
    pub id: u64,
    /// The message.
    pub body: T,
}

/// A request to an agent. A client admitted to a session may send the first five, which name no address to connect
/// or send to, no file and no setting of the machine; with the tune token it may also send the sixth. The others, and orders marked
/// "Owner", are reserved for the owner of the host.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Request {
    /// Describe the agent's machine and its counters since the session began. -> [`Answer::Facts`]
    Facts,
    /// Expect the streams of a flow. -> [`Answer::Done`], or [`Answer::Listening`] if the flow has its own port
    Prepare(Box<FlowOrder>),
    /// Start the flow once all its streams are connected. -> [`Answer::Done`]
    Begin {
        /// The flow.
        flow: u32,
    },
    /// Return the result of the flow once it has ended. -> [`Answer::Received`] or [`Answer::Sent`]
    Collect {
        /// The flow.
        flow: u32,
    },
    /// End the flow or the probes with this number now. -> [`Answer::Done`]
    Stop {
        /// Number of the flow or probes.
        flow: u32,
    },
    /// Read or change host settings with the tune token: a [`crate::tuning::TuneRequest`]. -> [`Answer::Tuned`]
    Tune(Sealed),
    /// Owner: answer probes on this address until the agent ends: echo datagrams, accept connections.
    /// -> [`Answer::Listening`]
    Echo {
        /// Address to listen on; port 0 lets the kernel choose.
        address: SocketAddr,
        /// Kind of probes.
        kind: ProbeKind,
    },
    /// Owner: send probes to an echo and measure their round trips. -> [`Answer::Probed`]
    Probe(ProbeOrder),
    /// Owner: answer requests on this address until the agent ends. -> [`Answer::Listening`]
    Respond {
        /// Address to listen on; port 0 lets the kernel choose.
        address: SocketAddr,
        /// Congestion control of the responses.
        congestion: Option<String>,
    },
    /// Owner: let clients send requests, and time the responses. -> [`Answer::Exchanged`]
    Exchange(Box<ExchangeOrder>),
    /// Owner: read sysctls. -> [`Answer::Sysctls`]
    ReadSysctls {
        /// Dotted names.
        names: Vec<String>,
    },
    /// Owner: read the host's counters since the agent started. -> [`Answer::HostCounters`]
    HostCounters,
    /// Owner: read the counters of a network device. -> [`Answer::Counters`]
    ReadCounters {
        /// Device name.
        device: String,
    },
}

/// Requests and responses of one traffic entry of a case.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct ExchangeOrder {
    /// Traffic entry.
    pub traffic: Traffic,
    /// Seed of all random draws, together with `place`.
    pub seed: u64,
    /// Position of the entry in the scenario.
    pub place: u32,
    /// Address of the responder.
    pub to: SocketAddr,
    /// When clients start, from receipt of the order.
    pub start: Nanos,
    /// How long to wait for outstanding responses after the last request.
    pub patience: Nanos,
}

/// Result of an exchange of requests and responses.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Exchanged {
    /// Duration of each completed exchange, from its scheduled start to the last byte read.
    pub took_ns: Vec<u64>,
    /// Number of exchanges that did not complete.
    pub unfinished: u64,
    /// Bytes received in responses.
    pub received_bytes: u64,
}

/// An order to send probes at a steady rate, each to be answered.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct ProbeOrder {
    /// Number by which the probes are stopped; distinct from the numbers of flows.
    pub flow: u32,
    /// Kind of probes.
    pub kind: ProbeKind,
    /// Address of the echo.
    pub to: SocketAddr,
    /// When the first probe is sent, from receipt of the order; keeps concurrent probe flows apart.
    pub offset: Nanos,
    /// Mean interval between probes.
    pub interval: Nanos,
    /// Initial part of each interval in which the probe is due, at a time drawn with the seed.
    pub jitter: Nanos,
    /// Seed of the probe times.
    pub seed: u64,
    /// How long probes are sent; the wait for answers is longer.
    pub duration: Nanos,
    /// How long to wait for answers after the last probe, unless all have arrived; for connections, the timeout of each.
    pub patience: Nanos,
}

/// An order to an agent to carry out a flow.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct FlowOrder {
    /// Number of the flow in the session; never reused.
    pub flow: u32,
    /// Role of the agent.
    pub role: Role,
    /// Source of the flow's streams.
    #[serde(default, skip_serializing_if = "StreamSource::is_session")]
    pub source: StreamSource,
    /// Specification of the flow. Its datagram options are in `datagrams`; the window applies to a receiver, congestion control and byte
    /// limit to a sender.
    #[serde(flatten, with = "Ordered")]
    pub spec: FlowSpec,
    /// CPUs to pin the flow's threads to, in turn.
    pub cpus: Option<CpuList>,
    /// Datagram options; null if the streams are connections.
    pub datagrams: Option<DatagramOrder>,
}

/// A flow order as encoded in the protocol.
#[derive(Serialize, Deserialize)]
#[serde(remote = "FlowSpec")]
struct Ordered {
    streams: u32,
    duration: Nanos,
    omit: Nanos,
    interval: Nanos,
    bytes: Option<ByteCount>,
    #[serde(rename = "length_bytes", deserialize_with = "any_length")]
    length: ByteCount,
    #[serde(rename = "window_bytes")]
    window: Option<WindowBytes>,
    #[serde(rename = "socket_buffer_bytes")]
    socket_buffer: Option<ByteCount>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    mss: Option<u32>,
    congestion: Option<String>,
    nodelay: bool,
    dscp: Option<u8>,
    #[serde(flatten, with = "in_protocol")]
    socket: SocketNumbers,
    #[serde(default)]
    zerocopy: Zerocopy,
    #[serde(default)]
    check_payload: bool,
    pacing_bps: Option<u64>,
    #[serde(skip)]
    udp: Option<UdpRequest>,
    #[serde(default, skip_serializing_if = "Application::is_greedy")]
    application: Application,
}

/// Accepts lengths above any limit: the order is then refused with an answer and the session continues.
fn any_length<'de, D: Deserializer<'de>>(deserializer: D) -> Result<ByteCount, D::Error> {
    u64::deserialize(deserializer).map(ByteCount::bytes)
}

/// Role of an end in a flow.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Role {
    /// Reads data.
    Receive,
    /// Writes data.
    Send,
}

impl FlowOrder {
    /// Returns the order for the end in this role.
    pub fn of(flow: u32, role: Role, source: StreamSource, spec: &FlowSpec) -> Self {
        let datagrams = spec.udp.as_ref().map(DatagramOrder::of);
        let spec = FlowSpec { udp: None, ..spec.clone() };
        let spec = match role {
            Role::Receive => FlowSpec { congestion: None, bytes: None, ..spec },
            Role::Send => FlowSpec { window: None, ..spec },
        };
        Self { flow, role, source, spec, cpus: None, datagrams }
    }
}

/// Source of a flow's streams.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum StreamSource {
    /// From the session's client, each with a [`crate::session::Ticket`] or opened as described in [`crate::datagram`].
    #[default]
    Session,
    /// Owner: from connections to a port of the flow's own; each datagram stream has its own port, from this one upwards.
    Listen {
        /// Address to listen on; port 0 lets the kernel choose.
        address: SocketAddr,
        /// How long to wait for the streams.
        patience: Nanos,
        /// Fixed receive buffer, set through the namespace's `tcp_rmem` and without autotuning.
        tcp_rmem_bytes: Option<u64>,
    },
    /// Owner: connects to an agent that listens.
    Connect {
        /// Address of the receiver.
        to: SocketAddr,
        /// Delay before connecting, from the start of the flow.
        start: Nanos,
        /// Timeout of each connect, and how long past the duration the receiver may take to end the flow.
        patience: Nanos,
    },
}

impl StreamSource {
    /// Whether any client of a session may order this source.
    pub fn is_session(&self) -> bool {
        *self == Self::Session
    }
}

/// An answer from an agent.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Answer {
    /// The request succeeded.
    Done,
    /// Facts about the agent's machine.
    Facts(Box<HostFacts>),
    /// Result of a tuning request: a [`crate::tuning::TuneAnswer`].
    Tuned(Sealed),
    /// The agent is listening on this port.
    Listening {
        /// The port.
        port: u16,
    },
    /// Result of probing.
    Probed(Probed),
    /// Result of the requests and responses.
    Exchanged(Exchanged),
    /// Result of the flow at the receiver.
    Received(Received),
    /// Result of the flow at the sender.
    Sent(Sent),
    /// Values of the sysctls that could be read, by name.
    Sysctls(BTreeMap<String, String>),
    /// Host counters since the agent started.
    HostCounters(Box<HostCounters>),
    /// Counters of a network device.
    Counters {
        /// Packets received by the stack from the device.
        rx_packets: u64,
        /// Packets read from the device.
        tx_packets: u64,
        /// Received packets dropped by the device.
        rx_dropped: u64,
        /// Sent packets dropped by the device.
        tx_dropped: u64,
    },
    /// The request failed.
    Failed {
        /// Operation, operand and system error.
        error: String,
    },
}

/// Result of a probe flow.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Probed {
    /// Probes in order of sending.
    pub probes: Vec<ProbeSample>,
    /// When the wait for answers ended, by the host's monotonic clock.
    pub awaited_until_ns: u64,
}

/// One probe of a probe flow.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct ProbeSample {
    /// Scheduled time of sending, by the host's monotonic clock.
    pub due_at_ns: u64,
    /// Actual time of sending, by the host's monotonic clock.
    pub sent_at_ns: u64,
    /// Round-trip time; null if no answer arrived.
    pub rtt_ns: Option<u64>,
    /// One-way delay to the echo, if both ends have the same clock.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub there_ns: Option<u64>,
    /// Number of probes received by the echo when it answered, modulo 256, if it counts them.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub echoed: Option<u8>,
    /// Whether the probe was refused or could not be sent, so that no answer is possible.
    pub failed: bool,
}

impl Probed {
    /// Returns the number of probes sent.
    pub fn sent(&self) -> u64 {
        self.probes.len() as u64
    }

    /// Returns the outcome of each probe that counts in a time range of the host's monotonic clock; an answer may take up to `patience`.
    pub fn outcomes(&self, within: &Range<u64>, patience: Nanos) -> impl Iterator<Item = ProbeOutcome> {
        let these = self.probes.iter().filter(|probe| within.contains(&probe.counts_from_ns()));
        these.map(move |probe| probe.outcome(self.awaited_until_ns, patience))
    }

    /// Returns all probes as a series, with times from `since_ns` on the host's monotonic clock.
    pub fn series(&self, since_ns: u64, patience: Nanos) -> ProbeSeries {
        let since = |at_ns: u64| at_ns.wrapping_sub(since_ns) as i64;
        let point = |probe: &ProbeSample| {
            let outcome = probe.outcome(self.awaited_until_ns, patience);
            let there_ns = probe.there_ns.and_then(|ns| i64::try_from(ns).ok());
            let back_ns = there_ns.zip(probe.rtt_ns).map(|(there, rtt)| rtt as i64 - there);
            let plain = ProbePoint::plain(since(probe.due_at_ns), since(probe.sent_at_ns), outcome);
            ProbePoint { there_ns, back_ns, echoed: probe.echoed, ..plain }
        };
        ProbeSeries { counted_ns: None, points: self.probes.iter().map(point).collect() }
    }

    /// Returns the round-trip times of the answered probes, in order of sending.
    pub fn round_trips_ns(&self) -> impl Iterator<Item = u64> {
        self.probes.iter().filter_map(|probe| probe.rtt_ns)
    }
}

impl ProbeSample {
    /// Returns a sample for a probe just sent, without an answer yet.
    pub const fn sent(due_at_ns: u64, sent_at_ns: u64) -> Self {
        Self { due_at_ns, sent_at_ns, rtt_ns: None, there_ns: None, echoed: None, failed: false }
    }

    /// Time from which the probe counts: its scheduled time, if it was sent late.
    pub const fn counts_from_ns(&self) -> u64 {
        probes::counts_from(self.due_at_ns, self.sent_at_ns)
    }

    /// Returns the outcome of the probe, awaited until a moment; an answer may take up to `patience`.
    pub fn outcome(&self, awaited_until_ns: u64, patience: Nanos) -> ProbeOutcome {
        if self.failed {
            return ProbeOutcome::Unsent;
        }
        let from_ns = self.counts_from_ns();
        let late_ns = self.sent_at_ns.saturating_sub(from_ns);
        let rtt_ns = self.rtt_ns.map(|rtt_ns| rtt_ns.saturating_add(late_ns));
        ProbeOutcome::of(rtt_ns, from_ns, awaited_until_ns, patience.as_ns().saturating_add(late_ns))
    }
}

/// Result of a flow at the receiver.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
pub struct Received {
    /// When the first byte was read, by the host's monotonic clock; null if none was.
    pub first_byte_at_ns: Option<u64>,
    /// Bytes read, including the omitted start.
    pub bytes: u64,
    /// Time from the first byte to the last sample.
    pub duration_ns: u64,
    /// Start of counting, at the first sample after the omitted time, and the bytes read by then.
    pub counted_from: Mark,
    /// Bytes read per stream between `counted_from` and the end.
    pub stream_bytes: Vec<u64>,
    /// Samples over time.
    pub samples: Vec<ReceiverSample>,
    /// `SO_RCVBUF` of the first stream.
    pub receive_buffer_bytes: Option<u64>,
    /// CPU time of the process divided by elapsed time.
    pub cpu: f64,
    /// CPU time of the flow's busiest thread divided by elapsed time; null from older ends.
    pub thread_cpu: Option<f64>,
    /// Whether the first stream uses window scaling, according to this end's kernel; null from older ends.
    pub window_scaling: Option<bool>,
    /// TCP options in use on the first stream, according to this end's kernel; absent from older ends.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub connection: Option<Connection>,
    /// Method by which bytes were read.
    #[serde(default)]
    pub method: ReceiveMethod,
    /// Number of reading threads.
    pub threads: Option<u32>,
    /// Result of checking every byte against [`crate::pattern`]; null if no check was requested.
    pub check: Option<PayloadCheck>,
    /// Reason why the flow ended.
    pub ended: EndReason,
    /// Path MTU of the first stream, as known to this end's kernel.
    pub path_mtu: Option<u32>,
    /// Datagram statistics; null for a flow of connections.
    pub datagrams: Option<DatagramsReceived>,
}

/// Datagram statistics at the receiver, over all streams.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
pub struct DatagramsReceived {
    /// Counts by sequence number.
    pub counts: ArrivalCounts,
    /// Missing datagrams that were dropped because the socket buffer was full; null if the kernel does not report it.
    pub dropped: Option<u64>,
    /// Details if a stream ended without an end mark; null if all had one, and from older ends.
    pub open_end: Option<OpenEnd>,
    /// Jitter by RFC 3550, the largest of all streams.
    pub jitter_ns: Option<u64>,
    /// Transit times: receiver clock at arrival minus sender clock at departure.
    pub transits: Option<TransitSummary>,
    /// Whether arrival times are kernel timestamps.
    pub stamped: bool,
}

/// State of a datagram flow that ended without end marks, over all streams. With the sender's count it yields how many datagrams
/// were dropped at the end.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct OpenEnd {
    /// Datagrams known to have been sent: by end marks, or by the highest number received.
    pub numbered: u64,
    /// Upper bound on datagrams dropped after the last one received because the socket buffer was full.
    pub dropped_at_most: u64,
}

/// Datagram statistics at the sender, over all streams.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
pub struct DatagramsSent {
    /// Payload bytes per datagram.
    pub payload_bytes: u64,
    /// Datagrams passed to the kernel.
    pub sent: u64,
    /// Datagrams skipped because their time had passed.
    pub left_out: u64,
    /// Duration of sending.
    pub duration_ns: u64,
    /// Time between consecutive send calls.
    pub gaps: Option<Distribution>,
    /// Most datagrams sent in one call.
    pub burst_max: u64,
}

impl Received {
    /// Returns the counted time; zero if the flow ended within the omitted time.
    pub fn counted_ns(&self) -> u64 {
        self.duration_ns.saturating_sub(self.counted_from.at_ns)
    }

    /// Returns the counted time range, by the receiver's monotonic clock; `None` if no byte arrived.
    pub fn counted_within(&self) -> Option<Range<u64>> {
        let first = self.first_byte_at_ns?;
        let end = first.saturating_add(self.duration_ns);
        Some(first.saturating_add(self.counted_from.at_ns).min(end)..end)
    }

    /// Returns the bytes received in the counted time; none if all arrived with the first sample.
    pub fn counted_bytes(&self) -> u64 {
        self.bytes.saturating_sub(self.counted_from.bytes)
    }

    /// Returns the goodput over the counted time, all streams together, bit/s.
    pub fn goodput_bps(&self) -> f64 {
        self.rate_bps(self.counted_bytes())
    }

    /// Returns the goodput of each stream over the counted time, bit/s.
    pub fn stream_goodput_bps(&self) -> Vec<f64> {
        self.stream_bytes.iter().map(|&bytes| self.rate_bps(bytes)).collect()
    }

    fn rate_bps(&self, bytes: u64) -> f64 {
        match self.counted_ns() {
            0 => 0.0,
            counted => bytes as f64 * 8e9 / counted as f64,
        }
    }
}

impl Sent {
    /// Returns the windows that the sender saw after the omitted time.
    pub fn windows_seen(&self, omit: Nanos) -> Vec<f64> {
        let counted = self.samples.iter().filter(|s| s.at_ns >= omit.as_ns());
        counted.filter_map(|s| s.snd_wnd_bytes).filter(|&w| w > 0).map(|w| w as f64).collect()
    }
}

/// A point in time of a flow.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Mark {
    /// Time since the first byte.
    pub at_ns: u64,
    /// Bytes up to then.
    pub bytes: u64,
}

/// Result of a flow at the sender.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
pub struct Sent {
    /// Bytes accepted by the kernel.
    pub bytes: u64,
    /// Congestion control in use, as read back.
    pub congestion: String,
    /// Payload bytes of a full segment.
    pub mss: Option<u64>,
    /// Samples over time.
    pub samples: Vec<SenderSample>,
    /// Congestion events of the first stream; empty from older ends.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub loss_episodes: Vec<LossEpisode>,
    /// Kernel counters of each stream if there are several; empty from older ends.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub streams: Vec<StreamReport>,
    /// Retransmitted segments, all streams.
    pub retransmits: Option<u64>,
    /// Retransmitted segments that the receiver already had, by its reports to the sender (DSACK, RFC 2883), all streams.
    pub needless_retransmits: Option<u64>,
    /// CPU time of the process divided by elapsed time.
    pub cpu: f64,
    /// CPU time of the flow's busiest thread divided by elapsed time; null from older ends.
    pub thread_cpu: Option<f64>,
    /// Whether the first stream uses window scaling, according to this end's kernel; null from older ends.
    pub window_scaling: Option<bool>,
    /// TCP options in use on the first stream, according to this end's kernel; absent from older ends.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub connection: Option<Connection>,
    /// Method by which bytes were passed to the kernel.
    #[serde(default)]
    pub method: SendMethod,
    /// Send methods tried before one was chosen; empty if there was only one, or the path was slower than all.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub tried: Vec<TriedWay>,
    /// Number of sending threads.
    pub threads: Option<u32>,
    /// Whether the payload was the pattern of [`crate::pattern`].
    #[serde(default)]
    pub patterned: bool,
    /// Pacing rate of each connection, bit/s.
    pub pacing_bps: Option<u64>,
    /// `SO_SNDBUF` of the first stream at the end.
    pub send_buffer_bytes: Option<u64>,
    /// Path MTU of the first stream, as known to this end's kernel.
    pub path_mtu: Option<u32>,
    /// Datagram statistics; null for a flow of connections.
    pub datagrams: Option<DatagramsSent>,
}

#[cfg(test)]
mod tests {
    use super::*;

    const ORDER: &str = r#"{"flow":7,"role":"receive","streams":2,"duration":"1000000000ns","omit":"0ns","interval":"100000000ns",
        "bytes":null,"length_bytes":131072,"window_bytes":65536,"socket_buffer_bytes":null,"congestion":null,"nodelay":false,
        "dscp":null,"zerocopy":"auto","check_payload":false,"pacing_bps":null,"cpus":null,"datagrams":null}"#;

    #[test]
    fn an_order_has_the_members_of_the_protocol_by_the_role_of_its_end() {
        let spec = FlowSpec {
            streams: 2,
            duration: Nanos::secs(1),
            bytes: Some(ByteCount::kib(1)),
            window: WindowBytes::new(65_536),
            congestion: Some("reno".to_owned()),
            ..FlowSpec::default()
        };
        let order = |role| FlowOrder::of(7, role, StreamSource::Session, &spec);
        let json = |order: &FlowOrder| serde_json::to_value(order).unwrap();
        assert_eq!(json(&order(Role::Receive)), serde_json::from_str::<serde_json::Value>(ORDER).unwrap());
        assert_eq!(serde_json::from_str::<FlowOrder>(ORDER).unwrap(), order(Role::Receive));
        let sender = json(&order(Role::Send));
        assert_eq!((&sender["bytes"], &sender["congestion"]), (&1024.into(), &"reno".into()));
        assert!(sender["window_bytes"].is_null(), "{sender}");
    }

    #[test]
    fn a_window_that_no_kernel_can_hold_is_refused() {
        for window in ["0", "1073741825", "4294967296"] {
            let order = ORDER.replace("65536", window);
            let error = serde_json::from_str::<FlowOrder>(&order).unwrap_err().to_string();
            assert!(error.contains("1 to 1073725440 bytes"), "{error}");
        }
    }
}
