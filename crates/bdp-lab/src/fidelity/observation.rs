//! What fidelity is judged by.

use bdp_model::histogram::Histogram;
use bdp_model::record::{DirectionFidelity, Excess};
use bdp_model::units::Nanos;

use super::allowance::Allowance;
use crate::watch::Watched;

/// What was seen during a case.
#[derive(Debug, Clone, Default)]
pub struct Observation {
    /// Lateness of every release on every link.
    pub lateness: Histogram,
    /// Each direction of each link, the forward one first.
    pub directions: Vec<DirectionFidelity>,
    /// Each pair of hosts that flows run between, that of the first flow first.
    pub loops: Vec<Loop>,
    /// Each flow.
    pub flows: Vec<FlowSeen>,
    /// Who had the processors.
    pub watched: Watched,
    /// Busy and stolen fractions of the machine's processors.
    pub host_cpu: (f64, f64),
    /// How many processors the machine has.
    pub cpus: u32,
    /// Whether the clock stood still while anything ran, so that nothing can be late.
    pub still: bool,
    /// Whether other cases ran beside this one.
    pub shared: bool,
    /// Whether a driver that was not to sleep did, because others wanted its processor.
    pub slept: bool,
    /// Why a driver gave a link up.
    pub faults: Vec<String>,
}

/// The way from one host to another and back.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Loop {
    /// Its ends, for messages: `h1 and h2`.
    pub ends: String,
    /// Links on the longer of the two paths.
    pub links: usize,
    /// The round trip that the links were configured for, a probe's serialisation included.
    pub rtt_configured: Nanos,
    /// The least that jitter can make of it; the same where there is none.
    pub rtt_least: Nanos,
    /// Whether jitter varies it, so that only what probes take beyond their links can be judged.
    pub jitter: bool,
    /// Smallest and median idle round trip; `None` where no probe was answered.
    pub rtt_idle: Option<(Nanos, Nanos)>,
    /// Whether idle probes were to be sent.
    pub probed_idle: bool,
    /// What idle probes took beyond their links.
    pub idle: Option<Excess>,
    /// What probes took beyond their links while the flows were counted.
    pub loaded: Option<Excess>,
}

/// A flow, as far as the emulation is concerned.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct FlowSeen {
    /// `near->far`.
    pub name: String,
    /// Which loop it runs on.
    pub on_loop: usize,
    /// The directions that its data and its acknowledgements cross, as indexes of [`Observation::directions`].
    pub way: Vec<usize>,
    /// Share of its counted time during which the busiest link of its data was busy.
    pub busy: Option<f64>,
    /// Segments that it sent in each round trip, on average.
    pub segments: f64,
    /// Of a flow of datagrams; `None` of TCP.
    pub datagrams: Option<DatagramsSeen>,
}

/// A flow of datagrams.
#[derive(Debug, Clone, Copy, Default, PartialEq)]
pub struct DatagramsSeen {
    /// What its sender sent of what was asked, 0..=1.
    pub sent_of_asked: f64,
    /// One datagram as a fraction of those that the flow was asked to send.
    pub one: f64,
    /// How late packets were around the beginning and the end of what was counted, as a fraction of it: what came too late for one
    /// end or too late for the other.
    pub edges: f64,
}

impl Loop {
    /// What hosts and wake-ups usually take of its round trip.
    pub fn allowance(&self) -> Allowance {
        Allowance::of(self.links, self.rtt_configured)
    }
}
