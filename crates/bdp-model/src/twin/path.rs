//! A twin: hosts, both directions of the path, the transfer, and how each was determined.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

use super::way::TwinWay;
use crate::flow::payload::Zerocopy;
use crate::measurement::ends::{Direction, End};
use crate::units::Nanos;

/// A measured path as emulated by the lab, for one direction of data or both at once.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct Twin {
    /// The direction that is compared; the first one if both run at once.
    pub direction: Direction,
    /// Whether data flows in both directions at the same time.
    pub both_directions: bool,
    /// The measuring host.
    pub near: TwinHost,
    /// The serving host.
    pub far: TwinHost,
    /// Whether the path uses IP version 6.
    pub ipv6: bool,
    /// MTU of the path, bytes.
    pub mtu: u32,
    /// The path from near to far.
    pub to: TwinWay,
    /// The path from far to near.
    pub from: TwinWay,
    /// The transfer.
    pub flow: TwinFlow,
    /// The transfer in the other direction, if both ran at the same time.
    pub other_flow: Option<TwinFlow>,
    /// Name of both hosts' kernel in the lab; null for the default one.
    pub stack: Option<String>,
    /// What was learned about the path, and how.
    pub learned: Vec<Learned>,
    /// What remained unknown.
    pub unseen: Vec<Unseen>,
}

/// A host of a twin.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct TwinHost {
    /// Host name.
    pub name: String,
    /// Output of `uname -r`; empty if unknown.
    pub kernel: String,
    /// Sysctls that a host of the lab can be given.
    pub sysctls: BTreeMap<String, String>,
    /// Share of the receive buffer usable as window on its kernel / on the twin's kernel; the twin's buffers are scaled by it.
    /// Null if the shares are equal or unknown.
    #[serde(default)]
    pub window_factor: Option<f64>,
}

/// The transfer in one direction.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct TwinFlow {
    /// Congestion control of the sender.
    pub congestion: String,
    /// Parallel connections.
    pub streams: u32,
    /// Requested receive window on the wire, bytes; null if autotuned.
    pub window_bytes: Option<u64>,
    /// Requested maximum segment size, bytes; null if none was requested.
    pub mss: Option<u32>,
    /// Whether `TCP_NODELAY` is set.
    pub nodelay: bool,
    /// How the sender passes data to the kernel, which decides how much a send buffer holds.
    pub zerocopy: Zerocopy,
    /// How long it sends, including the omitted part, nanoseconds.
    pub duration_ns: u64,
    /// Time omitted at the start, nanoseconds.
    pub omit_ns: u64,
    /// Bytes after which it ends; null if time ends it.
    pub bytes: Option<u64>,
    /// Rate at which the sending program wrote to each stream or was limited to, bit/s.
    pub writer_bps: Option<u64>,
    /// Rate at which the receiving program read each stream, bit/s.
    pub reader_bps: Option<u64>,
}

/// A parameter of the path and how it was determined.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct Learned {
    /// The direction; null for the path or both directions.
    pub way: Option<Direction>,
    /// The parameter.
    pub what: Parameter,
    /// How it was determined.
    pub how: Source,
}

/// A parameter of the path; its value is given under `to` or `from` of the twin.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "snake_case")]
pub enum Parameter {
    /// Propagation delay.
    Delay,
    /// Variation of the delay.
    Jitter,
    /// Rate of the bottleneck.
    Rate,
    /// Changes of the rate over time.
    RateSteps,
    /// Length of the queue at the bottleneck.
    Queue,
    /// Management of that queue.
    Discipline,
    /// Losses that occur at any load.
    Loss,
    /// A policer.
    Policer,
    /// Periods in which nothing was delivered.
    Outage,
    /// Packets delivered out of order.
    Reordering,
    /// A middlebox that strips window scaling.
    WindowScaling,
}

/// How a parameter was determined.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "snake_case")]
pub enum Source {
    /// Probes before the load.
    IdleProbes,
    /// Half of the round trip, as the clocks cannot separate the two directions.
    HalfRoundTrip,
    /// Delivery rate during a standing queue.
    DeliveryBehindQueue,
    /// The highest delivery rate at which losses occurred.
    DeliveryAtLosses,
    /// Delivery rate over the whole transfer.
    Delivery,
    /// Probes under load.
    ProbesUnderLoad,
    /// The sender's smoothed round trip just before losses.
    RttBeforeLosses,
    /// The sender's smoothed round trip under load.
    RttUnderLoad,
    /// Retransmitted segments.
    Retransmits,
    /// Individual losses reported by the sender's kernel.
    LossEpisodes,
    /// Segments sent in slow start before its first loss.
    SlowStart,
    /// Counters of the sender's kernel.
    KernelCounters,
    /// The handshake.
    Handshake,
    /// The `--rate` option.
    Asked,
    /// Another run of the same path.
    AlsoRun,
    /// Queueing delay between packets of the flow's own bursts.
    OwnBursts,
    /// Speed of the NIC.
    Nic,
    /// The transfer in the other direction.
    OtherDirection,
    /// Assumed, without evidence.
    Assumed,
}

/// A property of the path that could not be observed.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(tag = "what", rename_all = "snake_case")]
pub enum Unseen {
    /// The rate, as something else limits the transfer.
    Rate {
        /// The direction.
        way: Direction,
        /// Lower bound, bit/s on the wire.
        at_least_bps: f64,
        /// Estimate from the queueing delay within the flow's own bursts, bit/s on the wire; null if they did not queue.
        perhaps_bps: Option<f64>,
    },
    /// The length of the queue, as it never overflowed.
    QueueDepth {
        /// The direction.
        way: Direction,
        /// Lower bound, packets.
        at_least_packets: u64,
    },
    /// Everything about a direction that carried only acknowledgements.
    WayBack {
        /// The direction.
        way: Direction,
    },
    /// How the round trip divides into its two directions.
    Asymmetry,
    /// Cross traffic, which is included in the rate.
    CrossTraffic {
        /// The direction.
        way: Direction,
    },
    /// The kernel of a host, as the twin runs another one.
    Kernel {
        /// The host.
        end: End,
        /// Its kernel release.
        measured: String,
        /// The twin's kernel release.
        twin: String,
    },
    /// Settings of a host that reports none.
    Settings {
        /// The host.
        end: End,
    },
    /// Jitter faster than the probes.
    FastJitter,
    /// A datagram test, whose flow has no twin.
    Datagrams,
}

impl Twin {
    /// Returns the path taken by data of a direction.
    pub const fn way(&self, direction: Direction) -> &TwinWay {
        match direction {
            Direction::To => &self.to,
            Direction::From => &self.from,
        }
    }

    /// Returns the path taken by data of a direction, mutably.
    pub const fn way_mut(&mut self, direction: Direction) -> &mut TwinWay {
        match direction {
            Direction::To => &mut self.to,
            Direction::From => &mut self.from,
        }
    }

    /// Returns the host of an end, mutably.
    pub const fn host_mut(&mut self, end: End) -> &mut TwinHost {
        match end {
            End::Near => &mut self.near,
            End::Far => &mut self.far,
        }
    }

    /// Returns the host of an end.
    pub const fn host(&self, end: End) -> &TwinHost {
        match end {
            End::Near => &self.near,
            End::Far => &self.far,
        }
    }

    /// Returns the size of a full segment on the wire, bytes.
    pub fn wire_bytes(&self) -> u64 {
        u64::from(self.mtu) + u64::from(crate::link::ETHERNET_OVERHEAD_BYTES)
    }

    /// Returns the propagation delay of both directions together.
    pub fn round_trip(&self) -> Nanos {
        Nanos(self.to.delay_ns + self.from.delay_ns)
    }
}
