//! Observations that fidelity is judged by.

use bdp_model::record::{DirectionFidelity, Excess};
use bdp_model::statistics::histogram::Histogram;
use bdp_model::units::Nanos;

use super::allowance::Allowance;
use crate::watch::Watched;

/// Observations of a case.
#[derive(Debug, Clone, Default)]
pub struct Observation {
    /// Lateness of every release on every link.
    pub lateness: Histogram,
    /// Each direction of each link, the forward one first.
    pub directions: Vec<DirectionFidelity>,
    /// Each pair of hosts with flows, that of the first flow first.
    pub loops: Vec<Loop>,
    /// All flows.
    pub flows: Vec<FlowSeen>,
    /// Use of the processors.
    pub watched: Watched,
    /// Busy and stolen fractions of the machine's processors.
    pub host_cpu: (f64, f64),
    /// Number of the machine's processors.
    pub cpus: u32,
    /// Whether the clock stood still while anything ran, so that nothing can be late.
    pub still: bool,
    /// Whether other cases ran at the same time.
    pub shared: bool,
    /// Whether a driver that must not sleep slept, because others wanted its processor.
    pub slept: bool,
    /// Reasons why a driver gave up a link.
    pub faults: Vec<String>,
}

/// The path from one host to another and back.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Loop {
    /// Its ends, for messages: `h1 and h2`.
    pub ends: String,
    /// Links on the longer of the two paths.
    pub links: usize,
    /// Round trip configured by the links, including a probe's serialisation.
    pub rtt_configured: Nanos,
    /// Smallest round trip with jitter; `rtt_configured` without.
    pub rtt_least: Nanos,
    /// Whether jitter varies it, so that only probes' time beyond their links can be judged.
    pub jitter: bool,
    /// Smallest and median idle round trip; `None` if no probe was answered.
    pub rtt_idle: Option<(Nanos, Nanos)>,
    /// Whether idle probes were to be sent.
    pub probed_idle: bool,
    /// Time of idle probes beyond their links.
    pub idle: Option<Excess>,
    /// Time of probes beyond their links while the flows were counted.
    pub loaded: Option<Excess>,
}

/// A flow, as far as the emulation is concerned.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct FlowSeen {
    /// `near->far`.
    pub name: String,
    /// Index of its loop.
    pub on_loop: usize,
    /// Directions that its data and its acknowledgements cross, as indexes of [`Observation::directions`].
    pub way: Vec<usize>,
    /// Share of its counted time during which the busiest link of its data was busy.
    pub busy: Option<f64>,
    /// Segments sent per round trip, on average.
    pub segments: f64,
    /// Figures of a datagram flow; `None` for TCP.
    pub datagrams: Option<DatagramsSeen>,
}

/// A datagram flow.
#[derive(Debug, Clone, Copy, Default, PartialEq)]
pub struct DatagramsSeen {
    /// Share of the requested datagrams that its sender sent, 0..=1.
    pub sent_of_asked: f64,
    /// One datagram as a fraction of those requested of the flow.
    pub one: f64,
    /// Lateness of packets around the start and the end of the counted time, as a fraction of it: packets too late for either end.
    pub edges: f64,
}

impl Loop {
    /// The usual host overhead of its round trip.
    pub fn allowance(&self) -> Allowance {
        Allowance::of(self.links, self.rtt_configured)
    }
}
