//! A twin: hosts, both ways, the transfer, and how each was learned.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

use super::way::TwinWay;
use crate::ends::{Direction, End};
use crate::payload::Zerocopy;
use crate::units::Nanos;

/// A measured path as the lab emulates it, for one direction of data or for both at once.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct Twin {
    /// The direction that is compared; of two at once, the first.
    pub direction: Direction,
    /// Whether data runs both ways at the same time.
    pub both_directions: bool,
    /// The machine that measured.
    pub near: TwinHost,
    /// The machine that served.
    pub far: TwinHost,
    /// IP version 6.
    pub ipv6: bool,
    /// Largest IP packet of the path, bytes.
    pub mtu: u32,
    /// The way from near to far.
    pub to: TwinWay,
    /// The way from far to near.
    pub from: TwinWay,
    /// The transfer.
    pub flow: TwinFlow,
    /// The transfer the other way, where both ran at the same time.
    pub other_flow: Option<TwinFlow>,
    /// The kernel of both hosts by its name in the lab; null the default one.
    pub stack: Option<String>,
    /// What was learned of the path and how.
    pub learned: Vec<Learned>,
    /// What of the path was not seen.
    pub unseen: Vec<Unseen>,
}

/// A host of a twin.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct TwinHost {
    /// Its host name.
    pub name: String,
    /// `uname -r`; empty where that is not known.
    pub kernel: String,
    /// Its sysctls, of those that a host of the lab can be given.
    pub sysctls: BTreeMap<String, String>,
    /// Part of a receive buffer that is window on its kernel / the same on the twin's, by which the twin's buffers are larger; null where they are alike,
    /// or nothing is known.
    #[serde(default)]
    pub window_factor: Option<f64>,
}

/// The transfer of a direction.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct TwinFlow {
    /// Congestion control of the sender.
    pub congestion: String,
    /// Parallel connections.
    pub streams: u32,
    /// Window asked for on the wire, bytes; null autotuned.
    pub window_bytes: Option<u64>,
    /// Payload of a full segment where that was asked for.
    pub mss: Option<u32>,
    /// `TCP_NODELAY`.
    pub nodelay: bool,
    /// How the sender gives bytes to the kernel, which decides what a send buffer holds.
    pub zerocopy: Zerocopy,
    /// How long it sends, omit included.
    pub duration_ns: u64,
    /// The beginning that does not count.
    pub omit_ns: u64,
    /// Bytes after which it ends.
    pub bytes: Option<u64>,
    /// Rate at which the sending program wrote, or was held to, each stream, bit/s.
    pub writer_bps: Option<u64>,
    /// Rate at which the receiving program read each stream, bit/s.
    pub reader_bps: Option<u64>,
}

/// Something that was learned of the path.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct Learned {
    /// Of which way; null of the path or of both.
    pub way: Option<Direction>,
    /// What.
    pub what: Parameter,
    /// How.
    pub how: Source,
}

/// A parameter of the path; its value is in the way.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "snake_case")]
pub enum Parameter {
    /// Propagation delay.
    Delay,
    /// Its variation.
    Jitter,
    /// Rate of the bottleneck.
    Rate,
    /// How that changes in time.
    RateSteps,
    /// Depth of the queue before it.
    Queue,
    /// What manages that queue.
    Discipline,
    /// Losses that come at any load.
    Loss,
    /// A policer.
    Policer,
    /// Times in which nothing was delivered.
    Outage,
    /// Segments that overtake others.
    Reordering,
    /// A middlebox that strips window scaling.
    WindowScaling,
}

/// How a parameter was learned.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "snake_case")]
pub enum Source {
    /// Probes before the load.
    IdleProbes,
    /// Half of the round trip: clocks do not tell the two ways apart.
    HalfRoundTrip,
    /// Delivery while a queue stood.
    DeliveryBehindQueue,
    /// The highest rate of delivery, at which losses came.
    DeliveryAtLosses,
    /// Delivery over the whole transfer.
    Delivery,
    /// Probes under load.
    ProbesUnderLoad,
    /// The sender's smoothed round trip just before losses.
    RttBeforeLosses,
    /// The sender's smoothed round trip under load.
    RttUnderLoad,
    /// Retransmitted segments.
    Retransmits,
    /// Losses one by one, as the sender's kernel reports them.
    LossEpisodes,
    /// Segments that slow start sent before its first loss.
    SlowStart,
    /// What the sender's kernel counts.
    KernelCounters,
    /// The handshake.
    Handshake,
    /// `--rate`.
    Asked,
    /// Another run of the same path.
    AlsoRun,
    /// How long the flow's own bursts waited for each other.
    OwnBursts,
    /// Speed of the NIC.
    Nic,
    /// The transfer of the other direction.
    OtherDirection,
    /// Nothing showed it: assumed.
    Assumed,
}

/// Something of the path that was not seen.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(tag = "what", rename_all = "snake_case")]
pub enum Unseen {
    /// The rate: something else limits the transfer.
    Rate {
        /// Which way.
        way: Direction,
        /// It is at least so much, bit/s on the wire.
        at_least_bps: f64,
        /// What it may be, by how long the flow's own bursts waited for each other; null where they did not.
        perhaps_bps: Option<f64>,
    },
    /// The depth of the queue: nothing was lost to it.
    QueueDepth {
        /// Which way.
        way: Direction,
        /// It holds at least so many packets.
        at_least_packets: u64,
    },
    /// Everything about a way that carried acknowledgements alone.
    WayBack {
        /// Which way.
        way: Direction,
    },
    /// How the round trip divides into its two ways.
    Asymmetry,
    /// Traffic of others, which is in the rate.
    CrossTraffic {
        /// Which way.
        way: Direction,
    },
    /// The kernel of a host: the twin runs another one.
    Kernel {
        /// Of which host.
        end: End,
        /// Its release.
        measured: String,
        /// What the twin runs.
        twin: String,
    },
    /// Settings of a host, which tells none.
    Settings {
        /// Of which host.
        end: End,
    },
    /// Jitter faster than the probes.
    FastJitter,
    /// A datagram test has no twin of its flow.
    Datagrams,
}

impl Twin {
    /// The way that data of a direction takes.
    pub const fn way(&self, direction: Direction) -> &TwinWay {
        match direction {
            Direction::To => &self.to,
            Direction::From => &self.from,
        }
    }

    /// The same, to be changed.
    pub const fn way_mut(&mut self, direction: Direction) -> &mut TwinWay {
        match direction {
            Direction::To => &mut self.to,
            Direction::From => &mut self.from,
        }
    }

    /// The host of an end, to be changed.
    pub const fn host_mut(&mut self, end: End) -> &mut TwinHost {
        match end {
            End::Near => &mut self.near,
            End::Far => &mut self.far,
        }
    }

    /// A host.
    pub const fn host(&self, end: End) -> &TwinHost {
        match end {
            End::Near => &self.near,
            End::Far => &self.far,
        }
    }

    /// Bytes that a full segment has on the wire.
    pub fn wire_bytes(&self) -> u64 {
        u64::from(self.mtu) + u64::from(crate::link::ETHERNET_OVERHEAD_BYTES)
    }

    /// Propagation both ways.
    pub fn round_trip(&self) -> Nanos {
        Nanos(self.to.delay_ns + self.from.delay_ns)
    }
}
