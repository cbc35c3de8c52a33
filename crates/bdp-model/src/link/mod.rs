//! Configuration of a link, as stated by a scenario and applied by the emulator.

pub mod checksum;
pub mod netem;
pub mod over_time;
pub mod queue;
pub mod radio;
pub mod trace;

use serde::{Deserialize, Serialize};

use crate::units::{ByteCount, Nanos, Offset, Probability, Rate};
use over_time::{DelayOverTime, Outage, RateOverTime, Timeline};
use queue::Queue;
pub use queue::QueueLimit;

/// A link between two hosts: two one-way directions.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct LinkConfig {
    /// From the first host named to the second.
    pub forward: DirectionConfig,
    /// From the second host to the first.
    pub reverse: DirectionConfig,
    /// Largest IP packet of both devices, bytes.
    pub mtu: u32,
    /// Whether the directions have separate wires or share one.
    #[serde(default)]
    pub medium: Medium,
    /// Whether super-packets cross the link unsplit.
    #[serde(default)]
    pub delivery: Delivery,
}

/// Medium of the two directions.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "snake_case")]
pub enum Medium {
    /// A separate wire for each direction.
    #[default]
    FullDuplex,
    /// One shared wire, like a radio channel: one end sends at a time.
    HalfDuplex(Turns),
}

/// How the two ends of a half-duplex medium alternate.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct Turns {
    /// Silence whenever the sending end changes: a radio's turnaround time and its "distance" setting.
    #[serde(rename = "guard_ns", alias = "guard", with = "crate::units::nanoseconds")]
    #[cfg_attr(feature = "schema", schemars(with = "u64"))]
    pub guard: Nanos,
    /// How long one end may keep sending while the other has something to send. A packet in progress is
    /// finished.
    #[serde(rename = "turn_ns", alias = "turn", with = "crate::units::nanoseconds")]
    #[cfg_attr(feature = "schema", schemars(with = "u64"))]
    pub turn: Nanos,
}

/// How packets pass through the driver.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "snake_case")]
pub enum Delivery {
    /// Super-packets on links whose slower direction has a rate above 1 Gbit/s; single segments on all others,
    /// including those without a rate.
    #[default]
    Auto,
    /// Wire segments one by one, from the sending device on.
    Segment,
    /// Super-packets stay whole if all their segments are treated alike.
    Super,
}

impl LinkConfig {
    /// Whether the devices at its ends exchange super-packets.
    pub fn carries_super_packets(&self) -> bool {
        let slower = [&self.forward, &self.reverse].into_iter().filter_map(DirectionConfig::fastest).min();
        match self.delivery {
            Delivery::Segment => false,
            Delivery::Super => true,
            Delivery::Auto => slower.is_some_and(|rate| rate > FASTEST_BY_SEGMENT),
        }
    }
}

impl Default for LinkConfig {
    fn default() -> Self {
        Self {
            forward: DirectionConfig::default(),
            reverse: DirectionConfig::default(),
            mtu: 1500,
            medium: Medium::default(),
            delivery: Delivery::default(),
        }
    }
}

/// One direction of a link. Each packet passes, in this order: rewrite, drop by size, loss, corruption, duplication, policer,
/// queue with its ECN mark, serialisation, propagation with jitter and reordering.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct DirectionConfig {
    /// Bit rate on the wire; `None` for a link without serialisation time. If it changes, the rate before time zero.
    pub rate: Option<Rate>,
    /// How the rate changes, if it does.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub rate_over_time: Option<RateOverTime>,
    /// Bytes on the wire in addition to each IP packet: 38 for Ethernet with preamble, header, checksum and gap.
    pub overhead_bytes: u32,
    /// One-way propagation delay. If it changes, the delay at time zero.
    #[serde(rename = "delay_ns", alias = "delay", with = "crate::units::nanoseconds")]
    #[cfg_attr(feature = "schema", schemars(with = "u64"))]
    pub delay: Nanos,
    /// How the delay changes, if it does.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub delay_over_time: Option<DelayOverTime>,
    /// Times when nothing is delivered.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub outages: Vec<Outage>,
    /// Loss before the queue.
    pub loss: Loss,
    /// Queue limit, the packet being serialised included.
    pub limit: QueueLimit,
    /// Active queue management; `None` for drop-tail.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub queue: Option<Queue>,
    /// Interval at which the record samples the queue, from time zero on; `None` for never.
    #[serde(
        default,
        rename = "queue_samples_ns",
        with = "crate::units::nanoseconds::option",
        skip_serializing_if = "Option::is_none"
    )]
    #[cfg_attr(feature = "schema", schemars(with = "Option<u64>"))]
    pub queue_samples: Option<Nanos>,
    /// Changes that a middlebox makes to TCP headers.
    pub rewrite: HeaderRewrite,
    /// IP packets longer than this are silently dropped, as by a hop that is an MTU black hole.
    pub drop_above: Option<u32>,
    /// Share of packets with one bit inverted after the IP header; the checksum is not updated.
    #[serde(default)]
    pub corrupt: Probability,
    /// Share of packets sent twice, the copy right after the original.
    #[serde(default)]
    pub duplicate: Probability,
    /// Policer: drops traffic above a rate without queueing it.
    pub policer: Option<Policer>,
    /// ECN-capable packets that find at least this much queued are marked Congestion Experienced.
    pub ecn_threshold: Option<QueueLimit>,
    /// Variation of the propagation delay.
    pub jitter: Option<Jitter>,
    /// Packets delayed so that later ones overtake them.
    pub reorder: Option<Reorder>,
}

/// A token bucket: IP bytes above `rate`, beyond a burst, are dropped.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct Policer {
    /// Rate at which the bucket fills, bit/s of IP packets.
    pub rate: Rate,
    /// Bucket depth.
    pub burst: ByteCount,
}

/// Variation of the propagation delay, drawn per packet and added to the delay; the sum is never below zero.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct Jitter {
    /// Distribution of the variation.
    pub distribution: JitterDistribution,
    /// Whether packets may overtake each other. If not, a packet leaves no sooner than the one before it.
    pub reorder: bool,
    /// If set, all packets that leave the wire together share one value that varies over time: after this time its correlation
    /// has fallen to 1/e (an Ornstein-Uhlenbeck process; normal distributions only).
    #[serde(
        rename = "correlation_time_ns",
        with = "crate::units::nanoseconds::option",
        default,
        skip_serializing_if = "Option::is_none"
    )]
    #[cfg_attr(feature = "schema", schemars(with = "Option<u64>"))]
    pub correlation_time: Option<Nanos>,
}

/// A distribution of delays.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "snake_case")]
pub enum JitterDistribution {
    /// Uniform from `-spread` to `+spread` around the delay.
    Uniform {
        /// Half the width.
        #[serde(rename = "spread_ns", alias = "spread", with = "crate::units::nanoseconds")]
        #[cfg_attr(feature = "schema", schemars(with = "u64"))]
        spread: Nanos,
    },
    /// Normal around the delay.
    Normal {
        /// Standard deviation.
        #[serde(rename = "deviation_ns", alias = "deviation", with = "crate::units::nanoseconds")]
        #[cfg_attr(feature = "schema", schemars(with = "u64"))]
        deviation: Nanos,
    },
    /// Measured values, added to the delay: equidistant quantiles with interpolation.
    #[serde(rename = "table_ns", alias = "table", with = "crate::units::nanoseconds::offsets")]
    #[cfg_attr(feature = "schema", schemars(with = "Vec<i64>"))]
    Table(Vec<Offset>),
}

/// Reordering: a packet is delayed and later ones overtake it.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct Reorder {
    /// Share of packets delayed.
    pub probability: Probability,
    /// Additional delay.
    #[serde(rename = "by_ns", alias = "by", with = "crate::units::nanoseconds")]
    #[cfg_attr(feature = "schema", schemars(with = "u64"))]
    pub by: Nanos,
}

/// Highest rate at which [`Delivery::Auto`] delivers single segments.
const FASTEST_BY_SEGMENT: Rate = Rate::bps(1_000_000_000);

/// Bytes on the wire that Ethernet adds to an IP packet: preamble 8, header 14, checksum 4, gap 12.
pub const ETHERNET_OVERHEAD_BYTES: u32 = 38;

impl Default for DirectionConfig {
    fn default() -> Self {
        Self {
            rate: None,
            rate_over_time: None,
            overhead_bytes: ETHERNET_OVERHEAD_BYTES,
            delay: Nanos::ZERO,
            delay_over_time: None,
            outages: Vec::new(),
            loss: Loss::None,
            limit: QueueLimit::Packets(1000),
            queue: None,
            queue_samples: None,
            rewrite: HeaderRewrite::default(),
            drop_above: None,
            corrupt: Probability::default(),
            duplicate: Probability::default(),
            policer: None,
            ecn_threshold: None,
            jitter: None,
            reorder: None,
        }
    }
}

impl DirectionConfig {
    /// Returns the largest rate that it ever has; `None` if it has none.
    pub fn fastest(&self) -> Option<Rate> {
        self.rate_over_time.as_ref().map(RateOverTime::most).or(self.rate)
    }

    /// Whether anything other than random draws depends on the time, so that rate, delay and loss are not constant for a flow.
    pub fn changes(&self) -> bool {
        self.rate_over_time.is_some()
            || self.delay_over_time.is_some()
            || !self.outages.is_empty()
            || self.loss.is_over_time()
            || self.jitter.as_ref().is_some_and(|jitter| jitter.correlation_time.is_some())
    }
}

/// Packet loss. Random draws depend on the packet's index in its direction, never on the time.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "snake_case")]
pub enum Loss {
    /// No loss.
    #[default]
    None,
    /// Each packet independently, with this probability.
    Independent(Probability),
    /// The last packet of every `n`: those with index n-1, 2n-1, ... counted from zero.
    Periodic(u64),
    /// Two states with these transition probabilities before each packet, starting in the good one (Gilbert-Elliott).
    GilbertElliott {
        /// Probability of going from good to bad.
        to_bad: Probability,
        /// Probability of going from bad to good.
        to_good: Probability,
        /// Loss in the good state.
        loss_good: Probability,
        /// Loss in the bad state.
        loss_bad: Probability,
    },
    /// The packets with these indices, counted from zero, ascending.
    List(Vec<u64>),
    /// Each packet independently, with a probability that changes.
    OverTime(Timeline<Probability>),
    /// Two states with exponentially distributed durations, starting in the good one (Gilbert-Elliott in
    /// continuous time).
    States {
        /// Mean time in the good state.
        #[serde(rename = "good_for_ns", with = "crate::units::nanoseconds")]
        #[cfg_attr(feature = "schema", schemars(with = "u64"))]
        good_for: Nanos,
        /// Mean time in the bad state.
        #[serde(rename = "bad_for_ns", with = "crate::units::nanoseconds")]
        #[cfg_attr(feature = "schema", schemars(with = "u64"))]
        bad_for: Nanos,
        /// Loss in the good state.
        loss_good: Probability,
        /// Loss in the bad state.
        loss_bad: Probability,
    },
}

impl Jitter {
    /// Returns the least and the median of what it adds to the delay, nanoseconds.
    pub fn least_and_median_ns(&self) -> (i64, i64) {
        let to_ns = |time: Nanos| i64::try_from(time.as_ns()).unwrap_or(i64::MAX);
        match &self.distribution {
            JitterDistribution::Uniform { spread } => (-to_ns(*spread), 0),
            // More than eight and a quarter deviations are never drawn.
            JitterDistribution::Normal { deviation } => (-to_ns(*deviation).saturating_mul(33) / 4, 0),
            JitterDistribution::Table(offsets) => {
                let mut sorted: Vec<i64> = offsets.iter().map(|offset| offset.as_ns()).collect();
                sorted.sort_unstable();
                let middle = |place: usize| sorted.get(place).copied().unwrap_or(0);
                let (low, high) = (middle(sorted.len().saturating_sub(1) / 2), middle(sorted.len() / 2));
                (middle(0), low / 2 + high / 2)
            }
        }
    }
}

impl Loss {
    /// Returns how many of the first `packets` are lost, on average over seeds.
    pub fn expected(&self, packets: u64) -> f64 {
        let n = packets as f64;
        match self {
            Self::List(indices) => indices.iter().filter(|index| **index < packets).count() as f64,
            Self::Periodic(period @ 1..) => (packets / period) as f64,
            &Self::GilbertElliott { loss_good, loss_bad, .. } => {
                // It starts in the good state; the effect decays by `memory` per packet.
                let (bad, memory) = self.bad_state();
                let head_start = if memory < 1.0 {
                    bad * memory * (1.0 - memory.powf(n)) / (1.0 - memory)
                } else {
                    bad * n
                };
                self.probability() * n - (loss_bad.fraction() - loss_good.fraction()) * head_start
            }
            _ => self.probability() * n,
        }
    }

    /// Returns the standard deviation of that number; zero if nothing is random.
    ///
    /// Losses of Gilbert-Elliott are correlated between neighbours: twice the covariance, summed over all distances, is added to the
    /// binomial variance (in the limit of many packets).
    pub fn deviation(&self, packets: u64) -> f64 {
        let n = packets as f64;
        let binomial = |p: f64| p * (1.0 - p);
        match self {
            Self::None | Self::Periodic(_) | Self::List(_) => 0.0,
            // By time: how many packets are affected is unknown here.
            Self::OverTime(_) | Self::States { .. } => n,
            Self::Independent(p) => (n * binomial(p.fraction())).sqrt(),
            &Self::GilbertElliott { loss_good, loss_bad, .. } => {
                let (bad, memory) = self.bad_state();
                let apart = loss_bad.fraction() - loss_good.fraction();
                // The sum over distances ends with the packets: a state that is never left is one draw for all.
                let distances = if memory < 1.0 { (memory / (1.0 - memory)).min(n) } else { n };
                let covariance = apart * apart * binomial(bad) * distances;
                (n * (binomial(self.probability()) + 2.0 * covariance).max(0.0)).sqrt()
            }
        }
    }

    /// Returns the share of packets that find the bad state, and the correlation of the state from one packet to the next.
    fn bad_state(&self) -> (f64, f64) {
        if let Self::States { good_for, bad_for, .. } = self {
            let both = (good_for.as_ns() + bad_for.as_ns()).max(1) as f64;
            return (bad_for.as_ns() as f64 / both, 0.0);
        }
        let Self::GilbertElliott { to_bad, to_good, .. } = self else { return (0.0, 0.0) };
        let (to_bad, to_good) = (to_bad.fraction(), to_good.fraction());
        let both = to_bad + to_good;
        (if both == 0.0 { 0.0 } else { to_bad / both }, 1.0 - both)
    }

    /// Whether it depends on the time at which a packet arrives.
    pub fn is_over_time(&self) -> bool {
        matches!(self, Self::OverTime(_) | Self::States { .. })
    }

    /// Returns the long-term share of packets lost; zero for a list.
    pub fn probability(&self) -> f64 {
        match self {
            Self::None | Self::Periodic(0) | Self::List(_) => 0.0,
            Self::Independent(p) => p.fraction(),
            Self::Periodic(n) => 1.0 / *n as f64,
            // The probability at time zero.
            Self::OverTime(timeline) => timeline.at(Nanos::ZERO).map_or(0.0, Probability::fraction),
            Self::GilbertElliott { loss_good, loss_bad, .. } | Self::States { loss_good, loss_bad, .. } => {
                let (bad, _) = self.bad_state();
                bad * loss_bad.fraction() + (1.0 - bad) * loss_good.fraction()
            }
        }
    }
}

/// A middlebox that changes TCP headers.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct HeaderRewrite {
    /// Upper bound of the raw window field of every segment without SYN. Its unit is 2^scale bytes.
    pub window_field_max: Option<u16>,
    /// Change to the window scale option in SYN segments.
    pub window_scale: Option<WindowScaleRewrite>,
}

impl HeaderRewrite {
    /// Whether packets pass unchanged.
    pub fn is_none(&self) -> bool {
        *self == Self::default()
    }
}

/// Change that a middlebox makes to the window scale option.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "snake_case")]
pub enum WindowScaleRewrite {
    /// Overwritten with NOPs, so neither side scales.
    Strip,
    /// The shift count is replaced.
    Set(u8),
}
