//! All that a case produced, with what is needed to repeat it. Its JSON form is specified in `docs/record.md`.

mod rtt;
mod samples;
mod stream;

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

use crate::breach::{Breach, Cause, OtherProgram, causes};
use crate::case::{CaseSpec, Published};
use crate::caveat::WindowShortfall;
use crate::connection::Connection;
use crate::finding::Finding;
use crate::histogram::Histogram;
use crate::host_counters::HostCounters;
use crate::method::{Privilege, WindowMechanism};
use crate::probes::PairProbes;
use crate::stack::Clock;
use crate::traffic::TrafficRecord;
use crate::udp::UdpReport;

pub use crate::probes::ProbeOutcome;
pub use rtt::{Bound, OfAll, OfAnswers, RttPercentiles, RttReport, RttSummary};
pub use samples::{
    CongestionState, EpisodeKind, LOSS_EPISODES_KEPT, LossEpisode, ReceiverSample, SenderSample,
};
pub use stream::{StreamReport, StreamTime};

/// Version of the record's shape; a reader refuses a larger major number.
pub const RECORD_SCHEMA: &str = "bdp.record/1";

/// One case, as it went.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct Record {
    /// Name and version of this document's shape.
    #[cfg_attr(feature = "schema", schemars(extend("const" = RECORD_SCHEMA)))]
    pub schema: String,
    /// Scenario name: the file's stem in lower case, or the path it was given by.
    pub scenario: String,
    /// Title of the scenario.
    pub title: String,
    /// The swept parameters of this case as the scenario wrote them, by dotted path.
    pub params: BTreeMap<String, serde_json::Value>,
    /// Which repetition, from 1.
    pub repetition: u32,
    /// Which attempt at this repetition, from 1; an INVALID attempt is followed by another, up to a limit.
    pub attempt: u32,
    /// Seed of every random stream of the case.
    pub seed: u64,
    /// Whether the emulator kept its promise and the case ran to its end. Only valid records enter statistics.
    pub valid: bool,
    /// Whether it is read as if nobody knew the rates of the case's links, as on a path of others.
    #[serde(skip)]
    pub ceiling_unknown: bool,
    /// How well the emulator kept its promise.
    pub fidelity: Fidelity,
    /// Bytes read by the receiving applications x 8 / time, after omit, all flows together but those in the background; null if the case
    /// failed.
    pub goodput_bps: Option<f64>,
    /// The model's goodput for the window that was on the wire and the idle RTT that was measured.
    pub expected_bps: Option<f64>,
    /// The least goodput that the model allows, where it leaves a range: the ACK of one segment of few may wait.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub expected_least_bps: Option<f64>,
    /// Which model, with its terms: `floor(W/MSS) x MSS / RTT`, `ceiling`, `persist timer`, ...
    pub expected_by: Option<String>,
    /// What the source of the experiment printed.
    pub published_bps: Option<Published>,
    /// The scenario's expectation and whether it was met.
    pub expectation: Option<Expectation>,
    /// Smallest idle round trip of the probe flow.
    pub rtt_idle_ns: Option<u64>,
    /// Round trips between the hosts of the first flow; every flow has its own.
    pub rtt_ns: RttReport,
    /// The window: asked, granted, on the wire (of the first flow; every flow has its own).
    pub window: WindowReport,
    /// Each flow by itself.
    pub flows: Vec<FlowRecord>,
    /// The capture files that were written.
    #[serde(default)]
    pub captures: Vec<CaptureRecord>,
    /// Transfers that came and went beside the flows, in sum, in the order of the scenario.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub traffic: Vec<TrafficRecord>,
    /// Programs of one's own that ran on the hosts (`bdp lab exec`), in place of flows.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub programs: Vec<ProgramRecord>,
    /// The probes of each pair of hosts, one by one; empty of older records.
    #[serde(default)]
    pub probes: Vec<PairProbes>,
    /// What each host at an end of a flow counted during the case; absent of stacks that run in steps, and of older records.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub counters: BTreeMap<String, HostCounters>,
    /// Why the case failed, where it did.
    pub error: Option<String>,
    /// Why it was not run, where something that it needs is not here or does not exist.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub skipped: Option<String>,
    /// Where and when it ran.
    pub environment: Environment,
    /// What was run, complete: all that is needed to write the scenario that repeats it.
    pub case: CaseSpec,
}

impl Record {
    /// Whether the case failed by the virtual clock: mostly what the machine did to its guest, such as a full disk. It is not tried again
    /// in the same start, and the next one that resumes the run does.
    pub fn lost_its_guest(&self) -> bool {
        self.error.is_some() && !self.case.clock.is_real()
    }
}

/// An expectation, written down before the run, and the outcome.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct Expectation {
    /// In words: `goodput within 5% of the model`.
    pub text: String,
    /// Whether it was met; null where the case was not valid.
    pub met: Option<bool>,
}

/// The three numbers called "window".
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct WindowReport {
    /// What the scenario asked for; null where the kernel's autotuning was left to itself.
    pub asked_bytes: Option<u64>,
    /// `SO_RCVBUF` of the receiver, as the kernel reports it.
    pub socket_buffer_bytes: Option<u64>,
    /// Receive window as the sender saw it (`tcpi_snd_wnd`, or the clamp on the path), median after omit.
    pub on_the_wire_bytes: Option<u64>,
    /// The largest that the sender saw after omit.
    pub on_the_wire_max_bytes: Option<u64>,
    /// How it was set.
    pub method: WindowMechanism,
    /// Whether as many whole segments were on the wire as were asked for; null where none was asked.
    pub reached: Option<bool>,
    /// Why it was not reached.
    pub note: Option<WindowShortfall>,
}

/// One flow's outcome.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct FlowRecord {
    /// Name of the sending host.
    pub from: String,
    /// Name of the receiving host.
    pub to: String,
    /// When its first byte was read, since the flows could start; when it was to start, where none came.
    pub start_ns: u64,
    /// Round trips between its hosts, probed beside it.
    pub rtt_ns: RttReport,
    /// Goodput after omit, bit/s.
    pub goodput_bps: f64,
    /// Bytes read by the receiver, omit included.
    pub received_bytes: u64,
    /// From the first byte read to the last sample, nanoseconds.
    pub duration_ns: u64,
    /// Of that, the beginning that was left out of the goodput.
    pub omit_ns: u64,
    /// Goodput after omit of each stream, bit/s, in order of connection.
    pub stream_goodput_bps: Vec<f64>,
    /// Segments that the sender sent again, all streams; null where the kernel does not tell.
    pub retransmits: Option<u64>,
    /// Congestion control in use at the sender, as read back from the socket.
    pub congestion_control: String,
    /// Sender's maximum segment size (payload bytes of a full segment).
    pub mss_bytes: Option<u64>,
    /// The window of the first stream.
    pub window: WindowReport,
    /// CPU time of the sending agent / wall clock.
    pub sender_cpu: f64,
    /// CPU time of the receiving agent / wall clock.
    pub receiver_cpu: f64,
    /// Readings at the receiver, about every 100 ms.
    pub received: Vec<ReceiverSample>,
    /// Readings at the sender, about every 100 ms; of the first stream where it is not a sum.
    pub sent: Vec<SenderSample>,
    /// Congestion events of the first stream at the sender: losses and marks, each with what was known just before it.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub loss_episodes: Vec<LossEpisode>,
    /// Of several streams, what the sender's kernel counted of each, in order of connection.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub streams: Vec<StreamReport>,
    /// Of a flow of datagrams, what became of them; null of TCP.
    pub udp: Option<UdpReport>,
    /// Segments that the receiver had already (DSACK, RFC 2883), all streams; null where the kernel does not tell.
    pub needless_retransmits: Option<u64>,
    /// `SO_SNDBUF` of the first stream at the sender.
    pub send_buffer_bytes: Option<u64>,
    /// CPU time of the busiest sending thread / wall clock.
    pub sender_thread_cpu: Option<f64>,
    /// CPU time of the busiest receiving thread / wall clock.
    pub receiver_thread_cpu: Option<f64>,
    /// Whether the first connection uses window scaling (RFC 7323) as the sender's kernel has it.
    pub sender_window_scaling: Option<bool>,
    /// The same as the receiver's kernel has it.
    pub receiver_window_scaling: Option<bool>,
    /// What the first connection uses, as the sender's kernel has it, or else the receiver's; absent where neither says.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub connection: Option<Connection>,
    /// What limits it, and how that is known; empty where the record is not valid, and of older ones.
    #[serde(default, deserialize_with = "crate::finding::read")]
    pub findings: Vec<Finding>,
}

/// A program that ran on a host.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct ProgramRecord {
    /// The host.
    pub host: String,
    /// The program and its arguments.
    pub command: Vec<String>,
    /// Whether it served the others, and was ended when those had.
    pub service: bool,
    /// Since the first of the case's programs started.
    pub started_ns: u64,
    /// From its start to its end.
    pub duration_ns: u64,
    /// As a shell has it: 128 and the number of the signal where one ended it.
    pub exit_code: u8,
    /// Why it ended.
    pub end: ProgramEnd,
}

/// Why a program ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "snake_case")]
pub enum ProgramEnd {
    /// By itself, or by a signal of others.
    Exited,
    /// The run ended it, because the programs that it served had ended.
    Stopped,
    /// It ran for longer than it might.
    TimeLimit,
    /// It wrote more than is kept.
    OutputLimit,
}

impl ProgramEnd {
    /// In words.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Exited => "exited",
            Self::Stopped => "stopped",
            Self::TimeLimit => "time limit",
            Self::OutputLimit => "output limit",
        }
    }
}

/// A capture file of one end of a link.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct CaptureRecord {
    /// Where it is, as the folder was named.
    pub path: String,
    /// The host at this end of the link.
    pub host: String,
    /// Index of the link in the case, from 0.
    pub link: u64,
    /// Packets in the file: those that the host sent into the link and those that were delivered to it.
    pub packets: u64,
    /// Packets that passed this end and are not in the file, because writing did not keep up or failed.
    pub not_captured: u64,
    /// Why writing failed, where it did.
    pub error: Option<String>,
}

/// How well the emulator kept its promise during a case.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct Fidelity {
    /// Within all bounds.
    pub valid: bool,
    /// Each bound that was broken; `bdp-report` writes them in words.
    pub broken: Vec<Breach>,
    /// Who or what broke them, as far as that was seen, in the order of what one can do about it; likewise in words, null
    /// where nothing was broken.
    #[serde(default, deserialize_with = "causes")]
    pub cause: Vec<Cause>,
    /// How late packets left the emulator, all links and directions.
    pub release_lateness_ns: Lateness,
    /// Smallest idle round trip against the configured one.
    pub rtt_idle_configured_ns: Option<u64>,
    /// What was measured.
    pub rtt_idle_measured_ns: Option<u64>,
    /// Each link and direction.
    pub directions: Vec<DirectionFidelity>,
    /// Each pair of hosts that flows run between.
    #[serde(default)]
    pub loops: Vec<LoopFidelity>,
    /// Each flow.
    #[serde(default)]
    pub flows: Vec<FlowFidelity>,
    /// Each host, while the flows ran.
    #[serde(default)]
    pub hosts: Vec<HostFidelity>,
    /// Programs that are no part of bdp and used the processors while the flows ran, the greediest first.
    #[serde(default)]
    pub others: Vec<OtherProgram>,
    /// The host's processors during the case: busy fraction of all of them, 0..=1.
    pub host_cpu_busy: f64,
    /// Fraction stolen by the hypervisor.
    pub host_cpu_steal: f64,
}

/// Probes between two hosts, each held against what the links made of it.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct LoopFidelity {
    /// `near and far`.
    pub between: String,
    /// Round trip of an idle probe that the links are configured for.
    pub configured_ns: u64,
    /// Before the flows.
    pub idle: Option<Excess>,
    /// While the flows were counted.
    pub loaded: Option<Excess>,
}

/// What round trips took beyond the delay, serialisation and queueing that the links made of the same probes, in nanoseconds.
#[derive(Debug, Clone, Copy, Default, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct Excess {
    /// Probes that were answered and seen on every link of their way.
    pub probes: u64,
    /// Mean of what the links made of them.
    pub emulated_mean_ns: u64,
    /// Mean of what they took beyond.
    pub mean_ns: u64,
    /// Median of it.
    pub p50_ns: u64,
    /// Its 95th percentile.
    pub p95_ns: u64,
    /// Mean of how late probes were sent: a host without a processor sends late, and what a flow loses then no round trip shows.
    pub sent_late_ns: u64,
    /// Part of a flow's goodput that such round trips cost, 0..=1, where round trips rule it: the mean of what each probe took beyond the
    /// links and beyond what hosts usually take, over all that it took.
    pub harm: f64,
    /// Part of the mean: released late by the driver.
    pub late_ns: u64,
    /// Part of the mean: in the host that sends the probes, and unread in its device.
    pub near_ns: u64,
    /// Part of the mean: in the host that answers, and unread in its device.
    pub far_ns: u64,
    /// Part of the mean: in routers, and unread in their devices.
    pub routers_ns: u64,
}

/// What the emulation's faults may have cost a flow.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct FlowFidelity {
    /// `near->far`.
    pub name: String,
    /// Share of the time during which the busiest link of its data was busy; null where no link has a rate.
    pub busy: Option<f64>,
    /// Estimate of the part of its goodput that the faults cost, 0..=1: the larger of the next two, and no more than its busiest
    /// link has room for.
    pub harm: f64,
    /// By the probes between its hosts; null where none was answered.
    pub harm_by_probes: Option<f64>,
    /// By how long its packets lay unread and how late they were released.
    pub harm_by_packets: f64,
    /// Of datagrams, what its sender sent of what was asked, 0..=1; null of TCP.
    pub sent_of_asked: Option<f64>,
}

/// What a host's threads had of the processors, as fractions of the time.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct HostFidelity {
    /// Its name.
    pub name: String,
    /// All of its threads together; 1 is one processor.
    pub running: f64,
    /// The busiest one.
    pub busiest_thread: f64,
    /// The thread that waited longest for a processor that others had.
    pub waiting: f64,
}

/// How late packets were released, or read.
#[derive(Debug, Clone, Copy, Default, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct Lateness {
    /// Packets counted.
    pub count: u64,
    /// Mean.
    pub mean: u64,
    /// Median.
    pub p50: u64,
    /// 99th percentile.
    pub p99: u64,
    /// Largest.
    pub max: u64,
}

impl Lateness {
    /// Of a histogram of nanoseconds.
    pub fn of(histogram: &Histogram) -> Self {
        Self {
            count: histogram.count(),
            mean: histogram.mean(),
            p50: histogram.percentile(50.0),
            p99: histogram.percentile(99.0),
            max: histogram.max(),
        }
    }
}

/// One direction of a link: what was configured and what came of it.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct DirectionFidelity {
    /// `near->far`.
    pub name: String,
    /// Packets that entered the emulator.
    pub packets_in: u64,
    /// IP bytes that entered.
    pub bytes_in: u64,
    /// Packets delivered.
    pub packets_out: u64,
    /// IP bytes delivered.
    pub bytes_out: u64,
    /// Packets dropped by each cause: `size`, `loss`, `policer`, `queue`, `device_in`, `device_out`, `not_ours`.
    pub dropped: BTreeMap<String, u64>,
    /// Copies that duplication made.
    #[serde(default)]
    pub duplicated: u64,
    /// Packets of which a bit was inverted.
    #[serde(default)]
    pub corrupted: u64,
    /// Packets marked Congestion Experienced.
    #[serde(default)]
    pub marked: u64,
    /// Packets held back so that later ones overtook them.
    #[serde(default)]
    pub held_back: u64,
    /// Packets still inside at the end.
    pub queued: u64,
    /// In + duplicated = out + dropped + queued.
    pub conserved: bool,
    /// Configured bit rate on the wire.
    pub rate_configured_bps: Option<u64>,
    /// Wire rate by actual releases over the longest stretch, a tenth of a second at least, in which the link was never idle;
    /// null where there was none.
    pub rate_achieved_bps: Option<f64>,
    /// Configured loss probability; of a list, and of losses with memory, the share of so many packets that it means.
    pub loss_configured: f64,
    /// How far the share lost may be from it by chance.
    #[serde(default)]
    pub loss_tolerance: f64,
    /// Lost by the loss model / packets in.
    pub loss_achieved: f64,
    /// Longest time from a packet's arrival to the end of its serialisation.
    pub queueing_max_ns: u64,
    /// How late packets left.
    #[serde(default)]
    pub release_lateness_ns: Lateness,
    /// How long packets may have waited unread in the sending device while the driver was away.
    #[serde(default)]
    pub unread_ns: Lateness,
    /// How full the queue was over time, where that was asked for.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub queue_samples: Option<crate::queue::QueueSamples>,
}

/// Where and when a case ran.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct Environment {
    /// bdp's version.
    #[cfg_attr(feature = "schema", schemars(length(min = 1)))]
    pub bdp: String,
    /// `uname -r`.
    pub kernel: String,
    /// Machine architecture.
    pub arch: String,
    /// Online processors.
    #[cfg_attr(feature = "schema", schemars(range(min = 1)))]
    pub cpus: u32,
    /// Start, milliseconds since 1970.
    pub started_unix_ms: u64,
    /// Whole case, milliseconds.
    pub took_ms: u64,
    /// Whether the case ran as root or in a user namespace.
    pub privilege: Privilege,
    /// Sysctls in force on each host that matter to TCP, as read back.
    pub sysctls: BTreeMap<String, BTreeMap<String, String>>,
    /// The clock by which it ran.
    #[serde(default)]
    pub clock: Clock,
    /// Name of the guest kernel that its hosts ran, such as `linux-6.1`, or of the first host's stack that is none; `None` this machine's
    /// kernel. A kernel's release is `kernel`.
    #[serde(default)]
    pub stack: Option<String>,
    /// Names and versions of stacks that are no kernels, by host.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub stacks: BTreeMap<String, String>,
    /// Of the virtual clock, the guest that it ran in.
    #[serde(default)]
    pub guest: Option<GuestReport>,
}

/// The guest that a case of the virtual clock ran in.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct GuestReport {
    /// How far the guest's clock went, from its start to the end of the case.
    pub emulated_ns: u64,
    /// System calls of all of its processes while the flows ran.
    pub system_calls: Option<u64>,
    /// Segments of data that the flows sent meanwhile, retransmissions included, each as large as they come.
    pub segments: Option<u64>,
    /// By the machine's clock: another run of the same case has other figures here.
    pub wall: GuestWall,
}

/// What a guest took of this machine's time.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct GuestWall {
    /// From the start of its process until it was ready for work.
    pub boot_ns: u64,
    /// From the start of its process to its end, as far as it is known.
    pub total_ns: u64,
}
