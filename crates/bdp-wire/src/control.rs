//! What an agent is asked and answers, on a machine (`docs/protocol.md`) and on a host of the lab. Every request has a number; its
//! answer carries the same one, and answers may come in any order, because long work goes on while others are asked.

use std::collections::BTreeMap;
use std::net::SocketAddr;
use std::ops::Range;

use bdp_model::application::Application;
use bdp_model::arrivals::{ArrivalCounts, TransitSummary};
use bdp_model::connection::Connection;
use bdp_model::flow::FlowSpec;
use bdp_model::host_counters::HostCounters;
use bdp_model::measurement::HostFacts;
use bdp_model::method::{EndReason, ReceiveMethod, SendMethod, TriedWay};
use bdp_model::payload::{CpuList, PayloadCheck, Zerocopy};
use bdp_model::probes::{self, ProbeOutcome, ProbePoint, ProbeSeries};
use bdp_model::record::{LossEpisode, ReceiverSample, SenderSample, StreamReport};
use bdp_model::scenario::ProbeKind;
use bdp_model::traffic::Traffic;
use bdp_model::udp::{Distribution, UdpRequest};
use bdp_model::units::{ByteCount, Nanos};
use bdp_model::window::WindowBytes;
use serde::{Deserialize, Deserializer, Serialize};

use crate::datagram::DatagramOrder;
use crate::tuning::Sealed;

/// The number of what no request has asked for, a [`Answer::Failed`] by which an agent says why it ends.
pub const FAREWELL_ID: u64 = 0;

/// A request with its number.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Numbered<T> {
    /// The same in request and answer.
    pub id: u64,
    /// The message.
    pub body: T,
}

/// What an agent can be asked. A client that was admitted to a session may send the first five, which name no address to connect
/// or send to, no file and no setting of the machine; one that knows the tune token, the sixth. The rest, and the orders that say so, are
/// for the owner of the host alone.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Request {
    /// What the agent's machine is, and what it did since the session began. -> [`Answer::Facts`]
    Facts,
    /// Expect a flow's streams. -> [`Answer::Done`], or [`Answer::Listening`] where they come to a port of the flow's own
    Prepare(Box<FlowOrder>),
    /// Begin the flow once its streams have come. -> [`Answer::Done`]
    Begin {
        /// The flow.
        flow: u32,
    },
    /// The flow's outcome, when it has ended. -> [`Answer::Received`] or [`Answer::Sent`]
    Collect {
        /// The flow.
        flow: u32,
    },
    /// End the flow, or the probes of this number, now. -> [`Answer::Done`]
    Stop {
        /// The flow.
        flow: u32,
    },
    /// What a client that knows the tune token asks of the host's settings, a [`crate::tuning::TuneRequest`]. -> [`Answer::Tuned`]
    Tune(Sealed),
    /// Owner: answer probes on this address until the agent ends: datagrams with themselves, connections by taking them.
    /// -> [`Answer::Listening`]
    Echo {
        /// Where; port 0 lets the kernel choose.
        address: SocketAddr,
        /// What the probes are made of.
        kind: ProbeKind,
    },
    /// Owner: send probes to an echo and time them. -> [`Answer::Probed`]
    Probe(ProbeOrder),
    /// Owner: answer requests on this address until the agent ends. -> [`Answer::Listening`]
    Respond {
        /// Where; port 0 lets the kernel choose.
        address: SocketAddr,
        /// Congestion control of the answers.
        congestion: Option<String>,
    },
    /// Owner: have clients send requests, and time the answers. -> [`Answer::Exchanged`]
    Exchange(Box<ExchangeOrder>),
    /// Owner: read sysctls. -> [`Answer::Sysctls`]
    ReadSysctls {
        /// Dotted names.
        names: Vec<String>,
    },
    /// Owner: read what the host counted since the agent began. -> [`Answer::HostCounters`]
    HostCounters,
    /// Owner: read the counters of a device. -> [`Answer::Counters`]
    ReadCounters {
        /// Its name.
        device: String,
    },
}

/// Requests and responses of one entry of a case's traffic.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct ExchangeOrder {
    /// The entry.
    pub traffic: Traffic,
    /// The seed and the entry's place in the scenario, by which all is drawn.
    pub seed: u64,
    /// See `seed`.
    pub place: u32,
    /// Who answers.
    pub to: SocketAddr,
    /// When clients begin, since the order came.
    pub start: Nanos,
    /// How long answers are awaited when no more is asked.
    pub patience: Nanos,
}

/// What came of them.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Exchanged {
    /// Of each that ended, from when it was to begin until its last byte was read.
    pub took_ns: Vec<u64>,
    /// Such as did not end.
    pub unfinished: u64,
    /// Bytes of the answers.
    pub received_bytes: u64,
}

/// Probes at a steady rate, each answered.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct ProbeOrder {
    /// Their number, by which they are stopped; flows have others.
    pub flow: u32,
    /// What they are made of.
    pub kind: ProbeKind,
    /// The echo.
    pub to: SocketAddr,
    /// When the first is sent, since the order came: probe flows side by side keep out of each other's way.
    pub offset: Nanos,
    /// From one probe to the next, on average.
    pub interval: Nanos,
    /// Part of each interval, from its start, in which its probe is due at a moment that the seed draws.
    pub jitter: Nanos,
    /// What draws those moments.
    pub seed: u64,
    /// For how long probes are sent; answers are awaited longer.
    pub duration: Nanos,
    /// How long after the last probe answers are awaited, unless all have come; of connections, how long each may take.
    pub patience: Nanos,
}

/// A flow as an agent is to carry it out.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct FlowOrder {
    /// Its number within the session; each is used once.
    pub flow: u32,
    /// What the agent does.
    pub role: Role,
    /// Where its streams come from.
    #[serde(default, skip_serializing_if = "StreamSource::is_session")]
    pub source: StreamSource,
    /// The flow. What it says of datagrams is in `datagrams`; the window is a receiver's, and the congestion control and the bytes to
    /// end after are a sender's.
    #[serde(flatten, with = "Ordered")]
    pub spec: FlowSpec,
    /// Processors that the flow's threads are kept to, in turn.
    pub cpus: Option<CpuList>,
    /// Its streams are of datagrams, as these are ordered; null where they are connections.
    pub datagrams: Option<DatagramOrder>,
}

/// A flow as the protocol writes it.
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
    #[serde(default, rename = "unsent_limit_bytes", skip_serializing_if = "Option::is_none")]
    unsent_limit: Option<ByteCount>,
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

/// Past any size too: such an order is refused by an answer, and the session goes on.
fn any_length<'de, D: Deserializer<'de>>(deserializer: D) -> Result<ByteCount, D::Error> {
    u64::deserialize(deserializer).map(ByteCount::bytes)
}

/// What an end does in a flow.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Role {
    /// Reads.
    Receive,
    /// Writes.
    Send,
}

impl FlowOrder {
    /// What the end in this role has to know of a flow.
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

/// Where an agent gets the streams of a flow from.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum StreamSource {
    /// From the session's client, each with a [`crate::session::Ticket`] or opened as [`crate::datagram`] says.
    #[default]
    Session,
    /// Owner: from those that connect to a port of the flow's own; streams of datagrams have one each, this one and those behind it.
    Listen {
        /// Where; port 0 lets the kernel choose.
        address: SocketAddr,
        /// How long the streams are awaited.
        patience: Nanos,
        /// Fixes the receive buffer through the namespace's `tcp_rmem`, autotuning off.
        tcp_rmem_bytes: Option<u64>,
    },
    /// Owner: connects to an agent that listens.
    Connect {
        /// The receiver.
        to: SocketAddr,
        /// When, since the flow was begun.
        start: Nanos,
        /// Deadline of each connect, and how long past the duration the receiver may take to end the flow.
        patience: Nanos,
    },
}

impl StreamSource {
    /// Whether any client of a session may order it.
    pub fn is_session(&self) -> bool {
        *self == Self::Session
    }
}

/// What an agent answers.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Answer {
    /// Done.
    Done,
    /// Of the agent's machine.
    Facts(Box<HostFacts>),
    /// What came of a request for tuning, a [`crate::tuning::TuneAnswer`].
    Tuned(Sealed),
    /// Ready on this port.
    Listening {
        /// The port.
        port: u16,
    },
    /// The probes' outcome.
    Probed(Probed),
    /// What came of requests.
    Exchanged(Exchanged),
    /// What was received.
    Received(Received),
    /// What was sent.
    Sent(Sent),
    /// Values of the sysctls that could be read.
    Sysctls(BTreeMap<String, String>),
    /// Of the host, since the agent began.
    HostCounters(Box<HostCounters>),
    /// Counters of the device.
    Counters {
        /// Packets that the stack received from it.
        rx_packets: u64,
        /// Packets that were read from it.
        tx_packets: u64,
        /// Packets that it received and dropped.
        rx_dropped: u64,
        /// Packets that the stack sent and it dropped.
        tx_dropped: u64,
    },
    /// It could not be done.
    Failed {
        /// The operation, its operand and the system's answer.
        error: String,
    },
}

/// Outcome of a probe flow.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Probed {
    /// In order of sending.
    pub probes: Vec<ProbeSample>,
    /// When the wait for answers ended, by the monotonic clock of the host.
    pub awaited_until_ns: u64,
}

/// One probe of a probe flow.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct ProbeSample {
    /// When it was meant to be sent, by the monotonic clock of the host.
    pub due_at_ns: u64,
    /// When it was sent, by the monotonic clock of the host.
    pub sent_at_ns: u64,
    /// Its round trip; null where no answer came.
    pub rtt_ns: Option<u64>,
    /// Of it, the way there, where the echo has the same clock.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub there_ns: Option<u64>,
    /// How many probes had come to the echo when it answered, modulo 256, where it counts them.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub echoed: Option<u8>,
    /// Whether it was refused or could not be sent, so that no answer can come.
    pub failed: bool,
}

impl Probed {
    /// Probes sent.
    pub fn sent(&self) -> u64 {
        self.probes.len() as u64
    }

    /// What became of the probes that count within a time, by the monotonic clock of the host; an answer is possible for so long.
    pub fn outcomes(&self, within: &Range<u64>, patience: Nanos) -> impl Iterator<Item = ProbeOutcome> {
        let these = self.probes.iter().filter(|probe| within.contains(&probe.counts_from_ns()));
        these.map(move |probe| probe.outcome(self.awaited_until_ns, patience))
    }

    /// All probes, since a moment of that clock.
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

    /// Round trips of those that were answered, in order of sending.
    pub fn round_trips_ns(&self) -> impl Iterator<Item = u64> {
        self.probes.iter().filter_map(|probe| probe.rtt_ns)
    }
}

impl ProbeSample {
    /// Of a probe that has just been sent.
    pub const fn sent(due_at_ns: u64, sent_at_ns: u64) -> Self {
        Self { due_at_ns, sent_at_ns, rtt_ns: None, there_ns: None, echoed: None, failed: false }
    }

    /// From when it counts: from when it was due, where it was sent late.
    pub const fn counts_from_ns(&self) -> u64 {
        probes::counts_from(self.due_at_ns, self.sent_at_ns)
    }

    fn outcome(&self, awaited_until_ns: u64, patience: Nanos) -> ProbeOutcome {
        if self.failed {
            return ProbeOutcome::Unsent;
        }
        let from_ns = self.counts_from_ns();
        let late_ns = self.sent_at_ns.saturating_sub(from_ns);
        let rtt_ns = self.rtt_ns.map(|rtt_ns| rtt_ns.saturating_add(late_ns));
        ProbeOutcome::of(rtt_ns, from_ns, awaited_until_ns, patience.as_ns().saturating_add(late_ns))
    }
}

/// Outcome of a flow at the receiver.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
pub struct Received {
    /// When the first byte was read, by the monotonic clock of the host; null where none was.
    pub first_byte_at_ns: Option<u64>,
    /// Bytes read, omit included.
    pub bytes: u64,
    /// From the first byte to the last sample.
    pub duration_ns: u64,
    /// When counting began (the first sample past omit) and what had been read then.
    pub counted_from: Mark,
    /// Bytes read of each stream between `counted_from` and the end.
    pub stream_bytes: Vec<u64>,
    /// Readings.
    pub samples: Vec<ReceiverSample>,
    /// `SO_RCVBUF` of the first stream.
    pub receive_buffer_bytes: Option<u64>,
    /// Processor time of the process / wall clock.
    pub cpu: f64,
    /// The same of the busiest of this flow's threads; null from older ends.
    pub thread_cpu: Option<f64>,
    /// Whether the first stream uses window scaling, as this end's kernel has it; null from older ends.
    pub window_scaling: Option<bool>,
    /// What the first stream uses, as this end's kernel has it; absent from older ends.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub connection: Option<Connection>,
    /// How bytes were read.
    #[serde(default)]
    pub method: ReceiveMethod,
    /// Threads that read.
    pub threads: Option<u32>,
    /// What came of holding every byte against [`crate::pattern`]; null where that was not asked for.
    pub check: Option<PayloadCheck>,
    /// Why the flow ended.
    pub ended: EndReason,
    /// MTU of the first stream's path as this end's kernel knows it.
    pub path_mtu: Option<u32>,
    /// Of a flow of datagrams, what became of them.
    pub datagrams: Option<DatagramsReceived>,
}

/// What became of datagrams at the receiver, all streams together.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
pub struct DatagramsReceived {
    /// By their numbers.
    pub counts: ArrivalCounts,
    /// Of those missing, such as were dropped because the socket was full; null where the kernel does not report it.
    pub dropped: Option<u64>,
    /// Where a stream had no mark of its end; null where all had, and from older ends.
    pub open_end: Option<OpenEnd>,
    /// RFC 3550, the largest of the streams.
    pub jitter_ns: Option<u64>,
    /// This end's clock at arrival less the sender's at departure.
    pub transits: Option<TransitSummary>,
    /// Whether times of arrival are the kernel's.
    pub stamped: bool,
}

/// How a flow of datagrams ended of whose end no mark came, all streams together. With what the sender says it sent it shows how many
/// were dropped at the end.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct OpenEnd {
    /// Datagrams that are known to have been sent: by the marks, or by the highest number that came.
    pub numbered: u64,
    /// Those dropped, because the socket was full, after the last that came, at most.
    pub dropped_at_most: u64,
}

/// What a sender did of datagrams, all streams together.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
pub struct DatagramsSent {
    /// Payload of each.
    pub payload_bytes: u64,
    /// Given to the kernel.
    pub sent: u64,
    /// Too late to be sent at their time, and left out.
    pub left_out: u64,
    /// How long it sent.
    pub duration_ns: u64,
    /// From one call to the next.
    pub gaps: Option<Distribution>,
    /// Most of one call.
    pub burst_max: u64,
}

impl Received {
    /// How long it was counted; zero where the flow ended within its omit.
    pub fn counted_ns(&self) -> u64 {
        self.duration_ns.saturating_sub(self.counted_from.at_ns)
    }

    /// When it was counted, by the monotonic clock of the receiving host; `None` where no byte came.
    pub fn counted_within(&self) -> Option<Range<u64>> {
        let first = self.first_byte_at_ns?;
        let end = first.saturating_add(self.duration_ns);
        Some(first.saturating_add(self.counted_from.at_ns).min(end)..end)
    }

    /// Bytes that came while it was counted; none where all came with the first reading.
    pub fn counted_bytes(&self) -> u64 {
        self.bytes.saturating_sub(self.counted_from.bytes)
    }

    /// Bit/s while it was counted, of all streams together.
    pub fn goodput_bps(&self) -> f64 {
        self.rate_bps(self.counted_bytes())
    }

    /// The same of each stream.
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
    /// The windows that the sender saw after so long.
    pub fn windows_seen(&self, omit: Nanos) -> Vec<f64> {
        let counted = self.samples.iter().filter(|s| s.at_ns >= omit.as_ns());
        counted.filter_map(|s| s.snd_wnd_bytes).filter(|&w| w > 0).map(|w| w as f64).collect()
    }
}

/// A moment of a flow.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Mark {
    /// Since the first byte.
    pub at_ns: u64,
    /// Bytes so far.
    pub bytes: u64,
}

/// Outcome of a flow at the sender.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
pub struct Sent {
    /// Bytes accepted by the kernel.
    pub bytes: u64,
    /// Congestion control as read back.
    pub congestion: String,
    /// Payload bytes of a full segment.
    pub mss: Option<u64>,
    /// Readings.
    pub samples: Vec<SenderSample>,
    /// Congestion events of the first stream; none from older ends.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub loss_episodes: Vec<LossEpisode>,
    /// Of several streams, what the kernel counted of each; none from older ends.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub streams: Vec<StreamReport>,
    /// Segments sent again, all streams.
    pub retransmits: Option<u64>,
    /// Segments that the receiver had already, as it reported to the sender (DSACK, RFC 2883), all streams.
    pub needless_retransmits: Option<u64>,
    /// Processor time of the process / wall clock.
    pub cpu: f64,
    /// The same of the busiest of this flow's threads; null from older ends.
    pub thread_cpu: Option<f64>,
    /// Whether the first stream uses window scaling, as this end's kernel has it; null from older ends.
    pub window_scaling: Option<bool>,
    /// What the first stream uses, as this end's kernel has it; absent from older ends.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub connection: Option<Connection>,
    /// How bytes were given to the kernel.
    #[serde(default)]
    pub method: SendMethod,
    /// Ways that were tried before one was kept; none where there was one, or the path was slower than all.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub tried: Vec<TriedWay>,
    /// Threads that sent.
    pub threads: Option<u32>,
    /// Whether the bytes were those of [`crate::pattern`].
    #[serde(default)]
    pub patterned: bool,
    /// Rate that each connection was held to, bit/s.
    pub pacing_bps: Option<u64>,
    /// `SO_SNDBUF` of the first stream, at the end.
    pub send_buffer_bytes: Option<u64>,
    /// MTU of the first stream's path as this end's kernel knows it.
    pub path_mtu: Option<u32>,
    /// Of a flow of datagrams, what was done of them.
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
