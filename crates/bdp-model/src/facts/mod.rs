//! What is known of one transfer, however it was learned: what the rules of `bdp-explain` read.
//!
//! A direction of a measurement and a flow of the lab fill the same [`Facts`]; what neither knows stays `None`. What follows
//! from the samples, as how full a window was, are methods.

mod attribution;
mod conversation;
mod derived;
mod emulated;
mod losses;
mod programs;
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

use crate::connection::Connection;
use crate::experiment::Experiment;
use crate::flow::FlowSpec;
use crate::measurement::{Ceiling, Direction, DirectionResult, HostFacts, IntervalSpread, Measurement};
use crate::one_way::{EachWay, EachWayReport};
use crate::probes::{LostEachWay, ProbeSeries};
use crate::record::{LossEpisode, ReceiverSample, RttReport, SenderSample, WindowReport};
use crate::udp::{OneWayDelay, UdpReport};

/// Who asked for a transfer, and so in which words it is changed.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Source {
    /// A measurement between two machines, by its options.
    Measured,
    /// A scenario of the lab, by its keys.
    Emulated,
    /// Another program, watched from one end: what it asked for is not known, nor are any figures of the other end.
    Watched,
    /// A connection of a capture: what its ends' kernels and programs did is inferred from its packets.
    Captured,
}

/// One end of a transfer.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct End {
    /// How a sentence calls it.
    pub name: String,
    /// The machine.
    pub host: HostFacts,
    /// CPU time of its process / wall clock.
    pub cpu: f64,
    /// The same of the busiest of its threads.
    pub thread_cpu: Option<f64>,
    /// Threads that sent or received.
    pub threads: Option<u32>,
    /// Whether its kernel uses window scaling on the first connection (RFC 7323).
    pub window_scaling: Option<bool>,
    /// How it gave bytes to its kernel, or took them; empty where that is not known.
    pub method: String,
    /// Of an end that is watched, what is known of its socket.
    pub socket: Option<SocketFacts>,
}

/// One-way delay of the data, from its sender to its receiver.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct OneWay {
    /// Before the load.
    pub idle: Option<OneWayDelay>,
    /// Under it.
    pub loaded: Option<OneWayDelay>,
    /// The way of the acknowledgements before the load.
    pub back_idle: Option<OneWayDelay>,
    /// The same under load.
    pub back_loaded: Option<OneWayDelay>,
}

impl OneWay {
    /// Of delays between the near and the far end, for data of this direction.
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

/// Probes that were lost beside a transfer.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct ProbesLost {
    /// Probes that left, and whose answer is no longer possible or has come.
    pub known: u64,
    /// Lost on the data's own way.
    pub own_way: u64,
    /// Lost on the way of the acknowledgements.
    pub way_back: u64,
    /// Lost on either.
    pub unknown: u64,
}

impl ProbesLost {
    /// Of probes between the near and the far end, for data of this direction.
    pub fn of(probes: &ProbeSeries, data: Direction) -> Option<Self> {
        let LostEachWay { known, there, back, unknown } = probes.lost_each_way()?;
        let (own_way, way_back) = match data {
            Direction::To => (there, back),
            Direction::From => (back, there),
        };
        Some(Self { known, own_way, way_back, unknown })
    }
}

/// All that is known of one transfer.
#[derive(Debug, Clone, PartialEq)]
pub struct Facts {
    /// Who asked for it.
    pub source: Source,
    /// What was asked for.
    pub asked: FlowSpec,
    /// The end that sends.
    pub sender: End,
    /// The end that receives.
    pub receiver: End,
    /// Bytes read by the receiver x 8 / time, after omit.
    pub goodput_bps: f64,
    /// Bytes read by the receiver, omit included.
    pub bytes: u64,
    /// From the first byte read to the last sample.
    pub duration_ns: u64,
    /// Of that, the beginning that was left out of the goodput.
    pub omit_ns: u64,
    /// Goodput of the intervals after omit.
    pub spread: Option<IntervalSpread>,
    /// Goodput after omit of each stream, in order of connection.
    pub stream_goodput_bps: Vec<f64>,
    /// The window of the first stream.
    pub window: WindowReport,
    /// Round trips of probes beside it, before the load and under it.
    pub rtt: RttReport,
    /// One-way delays of the same probes; `None` where no times of the other end are known.
    pub one_way: Option<OneWay>,
    /// Those probes one by one, since the flow's first byte; `None` where none were sent, and of older runs.
    pub probes: Option<ProbeSeries>,
    /// Of them those that were lost on the data's own way, and on that of the acknowledgements; `None` where the far end counts none.
    pub probes_lost: Option<ProbesLost>,
    /// Retransmitted segments, all streams.
    pub retransmits: Option<u64>,
    /// Of them such as the receiver had already (DSACK, RFC 2883).
    pub needless_retransmits: Option<u64>,
    /// Congestion control as read back from the sending socket.
    pub congestion_control: String,
    /// Payload bytes of a full segment.
    pub mss_bytes: Option<u64>,
    /// What the first connection uses: SACK, timestamps, ECN, window shifts.
    pub connection: Option<Connection>,
    /// `SO_SNDBUF` of the first stream at the sender.
    pub send_buffer_bytes: Option<u64>,
    /// Rate that each stream was held to, bit/s.
    pub paced_bps: Option<u64>,
    /// Readings at the receiver.
    pub received: Vec<ReceiverSample>,
    /// Readings at the sender.
    pub sent: Vec<SenderSample>,
    /// Congestion events of the first stream at the sender.
    pub loss_episodes: Vec<LossEpisode>,
    /// Short flows after it with one thing changed.
    pub experiments: Vec<Experiment>,
    /// Of datagrams, what became of them.
    pub udp: Option<UdpReport>,
    /// Of a capture, whose turn it was when, and for what each moment was waited.
    pub conversation: Option<Conversation>,
    /// The most that the path can carry.
    pub ceiling: Option<Ceiling>,
    /// Whether data ran the other way at the same time.
    pub both_directions: bool,
    /// Whether a program on the way ends TCP's connections, so that its figures are not the path's.
    pub through_tunnel: bool,
}

impl Facts {
    /// Of one direction of a measurement; `None` where that was not measured.
    pub fn measured(measurement: &Measurement, way: Direction) -> Option<Self> {
        let d = measurement.directions.iter().find(|d| d.direction == way)?;
        let (near_name, far_name) = names(measurement);
        let (near, far) = ((near_name, &measurement.near), (far_name, &measurement.far));
        let (sender, receiver) = match way {
            Direction::To => (near, far),
            Direction::From => (far, near),
        };
        let request = &measurement.request;
        Some(Self {
            source: Source::Measured,
            asked: request.spec.clone(),
            sender: sending_end(sender, d),
            receiver: receiving_end(receiver, d),
            goodput_bps: d.goodput_bps,
            bytes: d.bytes,
            duration_ns: d.duration_ns,
            omit_ns: d.omit_ns,
            spread: d.spread,
            stream_goodput_bps: d.stream_goodput_bps.clone(),
            window: d.window.clone(),
            rtt: RttReport { idle: d.rtt_ns.idle.or(measurement.rtt_idle_ns), ..d.rtt_ns.clone() },
            one_way: d.each_way_ns.map(|ways| OneWay::of(ways, way)),
            probes: d.probes.clone(),
            probes_lost: d.probes.as_ref().and_then(|probes| ProbesLost::of(probes, way)),
            retransmits: d.retransmits,
            needless_retransmits: d.needless_retransmits,
            congestion_control: d.congestion_control.clone(),
            mss_bytes: d.mss_bytes,
            connection: d.connection,
            send_buffer_bytes: d.send_buffer_bytes,
            paced_bps: d.pacing.as_ref().map(|pacing| pacing.rate_bps).or(request.spec.pacing_bps),
            received: d.received.clone(),
            sent: d.sent.clone(),
            loss_episodes: d.loss_episodes.clone(),
            experiments: measurement.experiments.iter().filter(|e| e.direction == way).cloned().collect(),
            udp: d.udp.clone(),
            conversation: None,
            ceiling: measurement.ceiling.clone(),
            both_directions: request.bidirectional && measurement.directions.len() > 1,
            through_tunnel: request.ssh.as_ref().is_some_and(|ssh| ssh.through),
        })
    }
}

fn sending_end((name, host): (String, &HostFacts), d: &DirectionResult) -> End {
    End {
        name,
        host: host.clone(),
        cpu: d.sender_cpu,
        thread_cpu: d.sender_thread_cpu,
        threads: d.sender_threads,
        window_scaling: d.sender_window_scaling,
        method: d.send_method.to_string(),
        socket: None,
    }
}

fn receiving_end((name, host): (String, &HostFacts), d: &DirectionResult) -> End {
    End {
        name,
        host: host.clone(),
        cpu: d.receiver_cpu,
        thread_cpu: d.receiver_thread_cpu,
        threads: d.receiver_threads,
        window_scaling: d.receiver_window_scaling,
        method: d.receive_method.to_string(),
        socket: None,
    }
}

/// Names that tell the two ends apart, near and far.
fn names(measurement: &Measurement) -> (String, String) {
    let (near, far) = (measurement.near.name.trim(), measurement.far.name.trim());
    if near == far || near.is_empty() || far.is_empty() {
        ("the near end".to_owned(), "the far end".to_owned())
    } else {
        (near.to_owned(), far.to_owned())
    }
}
