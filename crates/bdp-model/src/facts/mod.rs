//! The facts of one transfer from any source: the input of the rules in `bdp-explain`.
//!
//! A direction of a measurement and a flow of the lab fill the same [`Facts`]; what is unknown is `None`. Values derived
//! from the samples, such as how full a window was, are methods.

mod attribution;
mod conversation;
mod derived;
mod emulated;
mod losses;
mod programs;
pub mod ramp_up;
pub mod segments;
mod socket;
mod steps;
mod time;
mod window_use;

pub use conversation::{Conversation, Oversized, Refusal, Role, is_round_amount};
pub use derived::{Queue, WindowBound};
pub use losses::{Gap, LossPicture, SettledLosses};
pub use socket::{Quota, SocketFacts};
pub use steps::Step;
pub use time::{Stretch, TimeSpent, TimeState, Waits};
pub use window_use::WindowUse;

use crate::flow::FlowSpec;
use crate::flow::udp::OneWayDelay;
use crate::measurement::experiment::Experiment;
use crate::measurement::{Ceiling, Direction, HostFacts, IntervalSpread, Measurement};
use crate::probes::one_way::{EachWay, EachWayReport};
use crate::probes::{LostEachWay, ProbeSeries};
use crate::record::{Transfer, holds_transfer};

/// The source of a transfer, which determines how it is reconfigured.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub enum Source {
    /// A measurement between two hosts, with its options.
    #[default]
    Measured,
    /// A lab scenario, with its keys.
    Emulated,
    /// Another program's connection, watched from one end: its request and the other end's figures are unknown.
    Watched,
    /// A connection in a capture: what the kernels and programs of its ends did is inferred from its packets.
    Captured,
}

/// One end of a transfer.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct End {
    /// Its name in a sentence.
    pub name: String,
    /// The host.
    pub host: HostFacts,
    /// CPU time of its process / wall clock.
    pub cpu: f64,
    /// CPU time of its busiest thread / wall clock.
    pub thread_cpu: Option<f64>,
    /// Number of threads that sent or received.
    pub threads: Option<u32>,
    /// Whether its kernel uses window scaling on the first connection (RFC 7323).
    pub window_scaling: Option<bool>,
    /// How it passes data to and from its kernel; empty if unknown.
    pub method: String,
    /// The socket of a watched end.
    pub socket: Option<SocketFacts>,
}

impl End {
    /// Adds what the sender of a transfer reported of itself.
    fn sending(self, transfer: &Transfer) -> Self {
        Self {
            cpu: transfer.sender_cpu,
            thread_cpu: transfer.sender_thread_cpu,
            window_scaling: transfer.sender_window_scaling,
            ..self
        }
    }

    /// Adds what the receiver of a transfer reported of itself.
    fn receiving(self, transfer: &Transfer) -> Self {
        Self {
            cpu: transfer.receiver_cpu,
            thread_cpu: transfer.receiver_thread_cpu,
            window_scaling: transfer.receiver_window_scaling,
            ..self
        }
    }
}

/// One-way delay of the data, from its sender to its receiver.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct OneWay {
    /// Idle delay.
    pub idle: Option<OneWayDelay>,
    /// Delay under load.
    pub loaded: Option<OneWayDelay>,
    /// Idle delay of the reverse path.
    pub back_idle: Option<OneWayDelay>,
    /// Delay of the reverse path under load.
    pub back_loaded: Option<OneWayDelay>,
}

impl OneWay {
    /// Converts delays between the near and the far end, for data in this direction.
    pub fn of(ways: EachWayReport, data: Direction) -> Self {
        let own = |ways: EachWay| match data {
            Direction::To => (ways.there, ways.back),
            Direction::From => (ways.back, ways.there),
        };
        let (idle, loaded) = (ways.idle.map(own), ways.loaded.map(own));
        Self {
            idle: idle.map(|w| w.0),
            loaded: loaded.map(|w| w.0),
            back_idle: idle.map(|w| w.1),
            back_loaded: loaded.map(|w| w.1),
        }
    }
}

/// Probes lost during a transfer.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct ProbesLost {
    /// Probes sent whose fate is known.
    pub known: u64,
    /// Lost in the data's own direction.
    pub own_way: u64,
    /// Lost on the reverse path.
    pub way_back: u64,
    /// Lost in an unknown direction.
    pub unknown: u64,
}

impl ProbesLost {
    /// Counts the lost probes between the near and the far end, for data in this direction.
    pub fn of(probes: &ProbeSeries, data: Direction) -> Option<Self> {
        let LostEachWay { known, there, back, unknown } = probes.lost_each_way()?;
        let (own_way, way_back) = match data {
            Direction::To => (there, back),
            Direction::From => (back, there),
        };
        Some(Self { known, own_way, way_back, unknown })
    }
}

/// The facts of one transfer.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Facts {
    /// The source of the transfer.
    pub source: Source,
    /// What was requested.
    pub asked: FlowSpec,
    /// The sending end.
    pub sender: End,
    /// The receiving end.
    pub receiver: End,
    /// Bytes read by the receiver, omit included.
    pub bytes: u64,
    /// Its results.
    pub transfer: Transfer,
    /// Distribution of the goodput of the intervals after omit.
    pub spread: Option<IntervalSpread>,
    /// One-way delays of its probes; `None` if the other end's times are unknown.
    pub one_way: Option<OneWay>,
    /// The individual probes, timed since the flow's first byte; `None` if none were sent, and for older runs.
    pub probes: Option<ProbeSeries>,
    /// Lost probes by direction; `None` if the far end does not count them.
    pub probes_lost: Option<ProbesLost>,
    /// Rate limit of each stream, bit/s.
    pub paced_bps: Option<u64>,
    /// Short experiments after the transfer, each with one change.
    pub experiments: Vec<Experiment>,
    /// The conversation seen in a capture: turns and waits.
    pub conversation: Option<Conversation>,
    /// The most that the path can carry.
    pub ceiling: Option<Ceiling>,
    /// Whether data ran the other way at the same time.
    pub both_directions: bool,
    /// Whether a program on the path terminates TCP connections, so that the figures are not the path's.
    pub through_tunnel: bool,
}

holds_transfer!(Facts);

impl Facts {
    /// Returns the facts of one direction of a measurement; `None` if it was not measured.
    pub fn measured(measurement: &Measurement, way: Direction) -> Option<Self> {
        let d = measurement.directions.iter().find(|d| d.direction == way)?;
        let (near_name, far_name) = names(measurement);
        let (near, far) = ((near_name, &measurement.near), (far_name, &measurement.far));
        let (sender, receiver) = match way {
            Direction::To => (near, far),
            Direction::From => (far, near),
        };
        let request = &measurement.request;
        let mut transfer = d.transfer.clone();
        transfer.rtt_ns.idle = transfer.rtt_ns.idle.or(measurement.rtt_idle_ns);
        let end = |(name, host): (String, &HostFacts)| End { name, host: host.clone(), ..End::default() };
        Some(Self {
            source: Source::Measured,
            asked: request.spec.clone(),
            sender: End {
                threads: d.sender_threads,
                method: d.send_method.to_string(),
                ..end(sender).sending(d)
            },
            receiver: End {
                threads: d.receiver_threads,
                method: d.receive_method.to_string(),
                ..end(receiver).receiving(d)
            },
            bytes: d.bytes,
            transfer,
            spread: d.spread,
            one_way: d.each_way_ns.map(|ways| OneWay::of(ways, way)),
            probes: d.probes.clone(),
            probes_lost: d.probes.as_ref().and_then(|probes| ProbesLost::of(probes, way)),
            paced_bps: d.pacing.as_ref().map(|pacing| pacing.rate_bps).or(request.spec.pacing_bps),
            experiments: measurement.experiments.iter().filter(|e| e.direction == way).cloned().collect(),
            conversation: None,
            ceiling: measurement.ceiling.clone(),
            both_directions: request.bidirectional && measurement.directions.len() > 1,
            through_tunnel: request.ssh.as_ref().is_some_and(|ssh| ssh.through),
        })
    }
}

/// Names that distinguish the two ends, near and far.
fn names(measurement: &Measurement) -> (String, String) {
    let (near, far) = (measurement.near.name.trim(), measurement.far.name.trim());
    if near == far || near.is_empty() || far.is_empty() {
        ("the near end".to_owned(), "the far end".to_owned())
    } else {
        (near.to_owned(), far.to_owned())
    }
}
