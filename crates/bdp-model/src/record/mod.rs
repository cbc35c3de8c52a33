//! Everything that a case produced, and what is needed to repeat it. `docs/record.md` specifies the JSON form.

pub mod breach;
mod rtt;
mod samples;
mod stream;
mod transfer;
pub mod wall;

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

use crate::case::stack::Clock;
use crate::case::traffic::TrafficRecord;
use crate::case::{CaseSpec, Published};
use crate::flow::method::Privilege;
use crate::measurement::host_counters::HostCounters;
use crate::probes::PairProbes;
use crate::statistics::histogram::Histogram;
use breach::{Breach, Cause, OtherProgram, causes};

use crate::names;

pub use crate::probes::ProbeOutcome;
pub use rtt::{Bound, OfAll, OfAnswers, RttPercentiles, RttReport, RttSummary};
pub use samples::{
    CongestionState, EpisodeKind, LOSS_EPISODES_KEPT, LossEpisode, ReceiverSample, SenderSample,
};
pub use stream::{StreamReport, StreamTime};
pub use transfer::{Transfer, WindowReport};
pub(crate) use transfer::{holds_transfer, written_in_order};

/// Schema version; a reader refuses a larger major number.
pub const RECORD_SCHEMA: &str = "bdp.record/1";

/// The record of one case.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct Record {
    /// Schema name and version.
    #[cfg_attr(feature = "schema", schemars(extend("const" = RECORD_SCHEMA)))]
    pub schema: String,
    /// Scenario name: the file's stem in lower case, or the path it was given by.
    pub scenario: String,
    /// Title of the scenario.
    pub title: String,
    /// Swept parameters of this case as written in the scenario, by dotted path.
    pub params: BTreeMap<String, serde_json::Value>,
    /// Number of the repetition, from 1.
    pub repetition: u32,
    /// Number of the attempt at this repetition, from 1; an INVALID attempt is repeated up to a limit.
    pub attempt: u32,
    /// Seed of every random stream of the case.
    pub seed: u64,
    /// Whether the emulator stayed within its bounds and the case ran to its end. Only valid records enter statistics.
    pub valid: bool,
    /// Whether the diagnosis ignores the known rates of the case's links, as on an unknown path.
    #[serde(skip)]
    pub ceiling_unknown: bool,
    /// How accurately the emulator ran the case.
    pub fidelity: Fidelity,
    /// Bytes read by the receiving applications x 8 / time, after omit: the sum of all flows except background flows; null if the case
    /// failed.
    pub goodput_bps: Option<f64>,
    /// Goodput that the model predicts for the measured window on the wire and the measured idle RTT.
    pub expected_bps: Option<f64>,
    /// Lower bound of the model's goodput, if it is a range: the ACK of a single segment may be delayed.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub expected_least_bps: Option<f64>,
    /// The model and its terms: `floor(W/MSS) x MSS / RTT`, `ceiling`, `persist timer`, ...
    pub expected_by: Option<String>,
    /// The figure that the experiment's source published.
    pub published_bps: Option<Published>,
    /// The scenario's expectation and whether it was met.
    pub expectation: Option<Expectation>,
    /// Smallest idle round trip of the probes.
    pub rtt_idle_ns: Option<u64>,
    /// Round trips between the hosts of the first flow; each flow also has its own.
    pub rtt_ns: RttReport,
    /// The window of the first flow: requested, granted and on the wire; each flow also has its own.
    pub window: WindowReport,
    /// The flows.
    pub flows: Vec<FlowRecord>,
    /// Capture files written.
    #[serde(default)]
    pub captures: Vec<CaptureRecord>,
    /// Totals of the short transfers that ran beside the flows, in the scenario's order.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub traffic: Vec<TrafficRecord>,
    /// User programs that ran on the hosts (`bdp lab exec`) instead of flows.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub programs: Vec<ProgramRecord>,
    /// Individual probes of each pair of hosts; empty in older records.
    #[serde(default)]
    pub probes: Vec<PairProbes>,
    /// Counters of each end host during the case; absent for stacks that run in steps and in older records.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub counters: BTreeMap<String, HostCounters>,
    /// Why the case failed; null if it did not.
    pub error: Option<String>,
    /// Why the case was not run: something it needs is missing or does not exist.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub skipped: Option<String>,
    /// Where and when it ran.
    pub environment: Environment,
    /// The complete specification of the case, enough to write a scenario that repeats it.
    pub case: CaseSpec,
}

impl Record {
    /// Whether the case failed under the virtual clock, mostly because of the host machine (for example a full disk). It is not retried
    /// in this invocation; the next one that resumes the run retries it.
    pub fn lost_its_guest(&self) -> bool {
        self.error.is_some() && !self.case.clock.is_real()
    }
}

/// An expectation, stated before the run, and its outcome.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct Expectation {
    /// The expectation in words: `goodput within 5% of the model`.
    pub text: String,
    /// Whether it was met; null if the case was not valid.
    pub met: Option<bool>,
}

/// Results of one flow.
#[derive(Debug, Clone, Default, PartialEq, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct FlowRecord {
    /// Name of the sending host.
    pub from: String,
    /// Name of the receiving host.
    pub to: String,
    /// When its first byte was read, from the time that flows could start; its planned start if no byte arrived.
    pub start_ns: u64,
    /// Bytes read by the receiver, omit included.
    pub received_bytes: u64,
    /// What both ends reported.
    #[serde(flatten)]
    pub transfer: Transfer,
}

holds_transfer!(FlowRecord);
written_in_order! { FlowRecord:
    from, to, start_ns, rtt_ns, goodput_bps, received_bytes, duration_ns, omit_ns, stream_goodput_bps, retransmits,
    congestion_control, mss_bytes, window, sender_cpu, receiver_cpu, received, sent, loss_episodes unless is_empty,
    streams unless is_empty, udp, needless_retransmits, send_buffer_bytes, sender_thread_cpu, receiver_thread_cpu,
    sender_window_scaling, receiver_window_scaling, connection unless is_none, findings
}

/// A program that ran on a host.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct ProgramRecord {
    /// Host that it ran on.
    pub host: String,
    /// The program and its arguments.
    pub command: Vec<String>,
    /// Whether it was a service for the other programs, stopped when they had ended.
    pub service: bool,
    /// Start, from the start of the case's first program.
    pub started_ns: u64,
    /// Run time.
    pub duration_ns: u64,
    /// Exit status as in a shell: 128 plus the signal number if a signal ended it.
    pub exit_code: u8,
    /// Why it ended.
    pub end: ProgramEnd,
}

/// Why a program ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "snake_case")]
pub enum ProgramEnd {
    /// It exited by itself, or by a signal from outside bdp.
    Exited,
    /// The run stopped it because the programs that it served had ended.
    Stopped,
    /// It exceeded its time limit.
    TimeLimit,
    /// It exceeded its output limit.
    OutputLimit,
}

names!(
    ProgramEnd: Exited = "exited", Stopped = "stopped", TimeLimit = "time limit",
        OutputLimit = "output limit"
);

/// A capture file of one end of a link.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct CaptureRecord {
    /// Path of the file, relative if the folder was given so.
    pub path: String,
    /// The host at this end of the link.
    pub host: String,
    /// Index of the link in the case, from 0.
    pub link: u64,
    /// Packets in the file: sent into the link by the host or delivered to it.
    pub packets: u64,
    /// Packets that passed this end but are missing from the file, because writing was too slow or failed.
    pub not_captured: u64,
    /// Why writing failed; null if it did not.
    pub error: Option<String>,
}

/// How accurately the emulator ran a case.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct Fidelity {
    /// Whether all bounds were kept.
    pub valid: bool,
    /// Bounds that were broken; `bdp-report` words them.
    pub broken: Vec<Breach>,
    /// Causes of the breaches, as far as known, those easiest to fix first; worded by `bdp-report`. Null
    /// if nothing was broken.
    #[serde(default, deserialize_with = "causes")]
    pub cause: Vec<Cause>,
    /// How late packets left the emulator: all links and directions.
    pub release_lateness_ns: Lateness,
    /// Smallest idle round trip that the links are configured for.
    pub rtt_idle_configured_ns: Option<u64>,
    /// Smallest idle round trip measured.
    pub rtt_idle_measured_ns: Option<u64>,
    /// Each direction of each link.
    pub directions: Vec<DirectionFidelity>,
    /// Probes of each pair of hosts with flows between them.
    #[serde(default)]
    pub loops: Vec<LoopFidelity>,
    /// Estimated harm to each flow.
    #[serde(default)]
    pub flows: Vec<FlowFidelity>,
    /// Processor use of each host while the flows ran.
    #[serde(default)]
    pub hosts: Vec<HostFidelity>,
    /// Other programs that used the processors while the flows ran, those with the most CPU time first.
    #[serde(default)]
    pub others: Vec<OtherProgram>,
    /// Fraction of all of the machine's processors that was busy during the case.
    pub host_cpu_busy: f64,
    /// Fraction of processor time stolen by the hypervisor.
    pub host_cpu_steal: f64,
}

/// Probes between two hosts, each compared with the time that the links gave it.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct LoopFidelity {
    /// The two hosts: `near and far`.
    pub between: String,
    /// Configured round trip of an idle probe.
    pub configured_ns: u64,
    /// Probes before the flows.
    pub idle: Option<Excess>,
    /// Probes while the flows were counted.
    pub loaded: Option<Excess>,
}

/// Round trip time beyond the links' delay, serialisation and queueing of the same probes, nanoseconds.
#[derive(Debug, Clone, Copy, Default, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct Excess {
    /// Probes that were answered and seen on every link of their path.
    pub probes: u64,
    /// Mean round trip that the links gave them.
    pub emulated_mean_ns: u64,
    /// Mean excess over it.
    pub mean_ns: u64,
    /// Median excess.
    pub p50_ns: u64,
    /// 95th percentile of the excess.
    pub p95_ns: u64,
    /// Mean delay of sending: a host short of processor time sends late, a cost to flows that no round trip shows.
    pub sent_late_ns: u64,
    /// Estimated share of a flow's goodput lost to the excess, if round trips determine its goodput: the mean of each probe's excess,
    /// less what hosts usually add, over its whole round trip.
    pub harm: f64,
    /// Part of the mean excess caused by late releases by the driver.
    pub late_ns: u64,
    /// Part of the mean excess spent in the probing host, and unread in its device.
    pub near_ns: u64,
    /// Part of the mean excess spent in the answering host, and unread in its device.
    pub far_ns: u64,
    /// Part of the mean excess spent in routers, and unread in their devices.
    pub routers_ns: u64,
}

/// Estimated cost of the emulation's faults to a flow.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct FlowFidelity {
    /// `near->far`.
    pub name: String,
    /// Share of the time during which the busiest link of its data was busy; null if no link has a rate.
    pub busy: Option<f64>,
    /// Estimated share of its goodput lost to the faults: the larger of the next two, limited to the spare capacity of its busiest
    /// link.
    pub harm: f64,
    /// Estimate from the probes between its hosts; null if none was answered.
    pub harm_by_probes: Option<f64>,
    /// Estimate from how long its packets lay unread and how late they were released.
    pub harm_by_packets: f64,
    /// Datagrams sent / datagrams requested; null for TCP.
    pub sent_of_asked: Option<f64>,
}

/// Processor use of a host's threads, as fractions of the time.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct HostFidelity {
    /// Host name.
    pub name: String,
    /// Running time of all its threads together; 1 is one processor.
    pub running: f64,
    /// Running time of the busiest thread.
    pub busiest_thread: f64,
    /// Longest time that one thread waited for a processor.
    pub waiting: f64,
}

/// Distribution of how late packets were released or read, nanoseconds.
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
    /// Summarises a histogram of nanoseconds.
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

/// One direction of a link: what was configured and what was achieved.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct DirectionFidelity {
    /// `near->far`.
    pub name: String,
    /// Packets that entered the emulator.
    pub packets_in: u64,
    /// IP bytes that entered the emulator.
    pub bytes_in: u64,
    /// Packets delivered.
    pub packets_out: u64,
    /// IP bytes delivered.
    pub bytes_out: u64,
    /// Packets dropped, by cause: `size`, `loss`, `policer`, `queue`, `device_in`, `device_out`, `not_ours`.
    pub dropped: BTreeMap<String, u64>,
    /// Copies made by duplication.
    #[serde(default)]
    pub duplicated: u64,
    /// Packets with an inverted bit.
    #[serde(default)]
    pub corrupted: u64,
    /// Packets marked Congestion Experienced.
    #[serde(default)]
    pub marked: u64,
    /// Packets held back so that later ones overtook them.
    #[serde(default)]
    pub held_back: u64,
    /// Packets still in the emulator at the end.
    pub queued: u64,
    /// Whether in + duplicated = out + dropped + queued.
    pub conserved: bool,
    /// Configured bit rate on the wire.
    pub rate_configured_bps: Option<u64>,
    /// Wire rate by actual releases over the longest period, at least a tenth of a second, in which the link was never idle;
    /// null if there was none.
    pub rate_achieved_bps: Option<f64>,
    /// Configured loss probability; for a list and for loss with memory, the expected share of this number of packets.
    pub loss_configured: f64,
    /// Deviation from it that chance alone explains.
    #[serde(default)]
    pub loss_tolerance: f64,
    /// Packets lost by the loss model / packets in.
    pub loss_achieved: f64,
    /// Longest time from a packet's arrival to the end of its serialisation.
    pub queueing_max_ns: u64,
    /// How late packets left.
    #[serde(default)]
    pub release_lateness_ns: Lateness,
    /// How long packets may have waited unread in the sending device while the driver did not run.
    #[serde(default)]
    pub unread_ns: Lateness,
    /// Queue length over time, if requested.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub queue_samples: Option<crate::link::queue::QueueSamples>,
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
    /// Whether it ran as root or in a user namespace.
    pub privilege: Privilege,
    /// Sysctls of each host that affect TCP, read back.
    pub sysctls: BTreeMap<String, BTreeMap<String, String>>,
    /// The clock of the case.
    #[serde(default)]
    pub clock: Clock,
    /// Guest kernel that the hosts ran, for example `linux-6.1`, or the first host's stack that is not a kernel; `None` for this machine's
    /// kernel. A kernel's release is in `kernel`.
    #[serde(default)]
    pub stack: Option<String>,
    /// Names and versions of stacks that are not kernels, by host.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub stacks: BTreeMap<String, String>,
    /// The guest of a case under the virtual clock.
    #[serde(default)]
    pub guest: Option<GuestReport>,
}

/// The guest that ran a case under the virtual clock.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct GuestReport {
    /// Time on the guest's clock from its start to the end of the case.
    pub emulated_ns: u64,
    /// System calls of all its processes while the flows ran; null if unknown.
    pub system_calls: Option<u64>,
    /// Full-size data segments, or datagrams, that the flows sent in that time, retransmissions included; null if unknown.
    pub segments: Option<u64>,
    /// Real time taken, which differs between runs of the same case.
    pub wall: GuestWall,
}

/// Real time that a guest took.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct GuestWall {
    /// From the start of its process until it was ready.
    pub boot_ns: u64,
    /// From the start of its process to its end, as far as known.
    pub total_ns: u64,
}
