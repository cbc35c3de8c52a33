//! What a link is to do to packets: the configuration that a scenario states and the emulator obeys.

use serde::{Deserialize, Serialize};

use crate::over_time::{DelayOverTime, Outage, RateOverTime, Timeline};
use crate::queue::Queue;
pub use crate::queue::QueueLimit;
use crate::units::{ByteCount, Nanos, Offset, Probability, Rate};

/// A link between two hosts: two one-way directions.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct LinkConfig {
    /// From the first host named to the second.
    pub forward: DirectionConfig,
    /// From the second host to the first.
    pub reverse: DirectionConfig,
    /// Largest IP packet, in bytes, that either device takes.
    pub mtu: u32,
    /// Whether the directions have a wire each or share one.
    #[serde(default)]
    pub medium: Medium,
    /// Whether super-packets cross the link whole.
    #[serde(default)]
    pub delivery: Delivery,
}

/// What carries the two directions.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "snake_case")]
pub enum Medium {
    /// A wire for each direction.
    #[default]
    FullDuplex,
    /// One wire for both, as a radio channel is: one end sends at a time.
    HalfDuplex(Turns),
}

/// How the two ends of a half-duplex medium take turns.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct Turns {
    /// Silence whenever the sending end changes: the radio's turnaround and its "distance" setting.
    #[serde(rename = "guard_ns", alias = "guard", with = "crate::units::nanoseconds")]
    #[cfg_attr(feature = "schema", schemars(with = "u64"))]
    pub guard: Nanos,
    /// How long one end may go on sending while the other has something to send. A packet that was begun is
    /// finished.
    #[serde(rename = "turn_ns", alias = "turn", with = "crate::units::nanoseconds")]
    #[cfg_attr(feature = "schema", schemars(with = "u64"))]
    pub turn: Nanos,
}

/// How packets cross the driver.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "snake_case")]
pub enum Delivery {
    /// Super-packets on links whose slower direction has a rate above 1 Gbit/s; segments one by one on all others,
    /// those without a rate too.
    #[default]
    Auto,
    /// Each wire segment by itself, from the sending device on.
    Segment,
    /// Super-packets stay whole where every segment of theirs meets the same fate.
    Super,
}

impl LinkConfig {
    /// Whether the devices at its ends send and take super-packets.
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

/// One direction of a link. A packet meets, in this order: rewrite, drop by size, loss, corruption, duplication, policer,
/// queue with its ECN mark, serialisation, propagation with jitter and reordering.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct DirectionConfig {
    /// Bit rate on the wire; `None` is a link without serialisation time. Where it changes, that before time zero.
    pub rate: Option<Rate>,
    /// How it changes, where it does.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub rate_over_time: Option<RateOverTime>,
    /// Bytes on the wire beside each IP packet: 38 for Ethernet with preamble, header, checksum and gap.
    pub overhead_bytes: u32,
    /// One-way propagation delay. Where it changes, that at time zero.
    #[serde(rename = "delay_ns", alias = "delay", with = "crate::units::nanoseconds")]
    #[cfg_attr(feature = "schema", schemars(with = "u64"))]
    pub delay: Nanos,
    /// How it changes, where it does.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub delay_over_time: Option<DelayOverTime>,
    /// When nothing is delivered.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub outages: Vec<Outage>,
    /// Packets lost before the queue.
    pub loss: Loss,
    /// What may wait for the wire, the packet being serialised included.
    pub limit: QueueLimit,
    /// How the queue manages itself; `None` is drop-tail.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub queue: Option<Queue>,
    /// How often the record notes how full the queue is, from time zero on; `None` never.
    #[serde(
        default,
        rename = "queue_samples_ns",
        with = "crate::units::nanoseconds::option",
        skip_serializing_if = "Option::is_none"
    )]
    #[cfg_attr(feature = "schema", schemars(with = "Option<u64>"))]
    pub queue_samples: Option<Nanos>,
    /// What a middlebox does to TCP headers.
    pub rewrite: HeaderRewrite,
    /// IP packets longer than this vanish without a word, as in a hop that black-holes what exceeds its MTU.
    pub drop_above: Option<u32>,
    /// Packets of which one bit behind the IP header is inverted; the checksum stays as it was.
    #[serde(default)]
    pub corrupt: Probability,
    /// Packets that are sent twice, the copy right behind the original.
    #[serde(default)]
    pub duplicate: Probability,
    /// Drops what exceeds a rate, without queueing it.
    pub policer: Option<Policer>,
    /// Packets that find at least so much waiting are marked Congestion Experienced, if they are ECN-capable.
    pub ecn_threshold: Option<QueueLimit>,
    /// What varies in the propagation delay.
    pub jitter: Option<Jitter>,
    /// Packets that are held back so that later ones overtake them.
    pub reorder: Option<Reorder>,
}

/// A token bucket: IP bytes above `rate`, beyond a burst, are dropped.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct Policer {
    /// Rate at which the bucket fills, bits of IP packets.
    pub rate: Rate,
    /// Its depth.
    pub burst: ByteCount,
}

/// Variation of the propagation delay, drawn per packet and added to the delay; the sum is never below zero.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct Jitter {
    /// How it is distributed.
    pub distribution: JitterDistribution,
    /// Whether a packet may overtake another. Where not, a packet leaves no sooner than the one before it.
    pub reorder: bool,
    /// Where it is one value for all packets that leave the wire together, which changes in time: after so long, its correlation
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
    /// Evenly from `-spread` to `+spread` about the delay.
    Uniform {
        /// Half the width.
        #[serde(rename = "spread_ns", alias = "spread", with = "crate::units::nanoseconds")]
        #[cfg_attr(feature = "schema", schemars(with = "u64"))]
        spread: Nanos,
    },
    /// Normal about the delay.
    Normal {
        /// Standard deviation.
        #[serde(rename = "deviation_ns", alias = "deviation", with = "crate::units::nanoseconds")]
        #[cfg_attr(feature = "schema", schemars(with = "u64"))]
        deviation: Nanos,
    },
    /// From measured values, added to the delay: quantiles at equal distances, interpolated between.
    #[serde(rename = "table_ns", alias = "table", with = "crate::units::nanoseconds::offsets")]
    #[cfg_attr(feature = "schema", schemars(with = "Vec<i64>"))]
    Table(Vec<Offset>),
}

/// Reordering: a packet is held back, later ones overtake it.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct Reorder {
    /// How many packets.
    pub probability: Probability,
    /// For how long beyond the delay.
    #[serde(rename = "by_ns", alias = "by", with = "crate::units::nanoseconds")]
    #[cfg_attr(feature = "schema", schemars(with = "u64"))]
    pub by: Nanos,
}

/// Fastest rate at which [`Delivery::Auto`] delivers segments one by one.
const FASTEST_BY_SEGMENT: Rate = Rate::bps(1_000_000_000);

/// Wire bytes that Ethernet adds to an IP packet: preamble 8, header 14, checksum 4, gap 12.
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
    /// The largest rate that it ever has; `None` where it has none.
    pub fn fastest(&self) -> Option<Rate> {
        self.rate_over_time.as_ref().map(RateOverTime::most).or(self.rate)
    }

    /// Whether anything but what is drawn depends on the time, so that no one rate, delay and loss hold for a whole flow.
    pub fn changes(&self) -> bool {
        self.rate_over_time.is_some()
            || self.delay_over_time.is_some()
            || !self.outages.is_empty()
            || self.loss.is_over_time()
            || self.jitter.as_ref().is_some_and(|jitter| jitter.correlation_time.is_some())
    }
}

/// How packets are lost. Drawn by the packet's index in its direction, never by time.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "snake_case")]
pub enum Loss {
    /// None.
    #[default]
    None,
    /// Each packet alone, with this probability.
    Independent(Probability),
    /// The last packet of every `n`: those with index n-1, 2n-1, ... counted from zero.
    Periodic(u64),
    /// Two states, left with these probabilities before each packet; it begins in the good one (Gilbert-Elliott).
    GilbertElliott {
        /// From good to bad.
        to_bad: Probability,
        /// From bad to good.
        to_good: Probability,
        /// Loss in the good state.
        loss_good: Probability,
        /// Loss in the bad state.
        loss_bad: Probability,
    },
    /// The packets with these indices, counted from zero, ascending.
    List(Vec<u64>),
    /// Each packet alone, with a probability that changes.
    OverTime(Timeline<Probability>),
    /// Two states, each left after a time that is exponentially distributed; it begins in the good one (Gilbert-Elliott in
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
    /// What it adds to the delay at the least and in the median, nanoseconds.
    pub fn least_and_median_ns(&self) -> (i64, i64) {
        let to_ns = |time: Nanos| i64::try_from(time.as_ns()).unwrap_or(i64::MAX);
        match &self.distribution {
            JitterDistribution::Uniform { spread } => (-to_ns(*spread), 0),
            // Eight and a quarter deviations are never drawn.
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
    /// How many of the first `packets` are lost, on average over seeds.
    pub fn expected(&self, packets: u64) -> f64 {
        let n = packets as f64;
        match self {
            Self::List(indices) => indices.iter().filter(|index| **index < packets).count() as f64,
            Self::Periodic(period @ 1..) => (packets / period) as f64,
            &Self::GilbertElliott { loss_good, loss_bad, .. } => {
                // It begins in the good state, which is forgotten by `memory` a packet.
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

    /// The standard deviation of that number; zero where nothing is drawn.
    ///
    /// Losses of Gilbert-Elliott are alike in neighbours: to a binomial's variance comes twice the covariance, summed
    /// over all distances (in the limit of many packets).
    pub fn deviation(&self, packets: u64) -> f64 {
        let n = packets as f64;
        let binomial = |p: f64| p * (1.0 - p);
        match self {
            Self::None | Self::Periodic(_) | Self::List(_) => 0.0,
            // By time: how many packets meet what is not known here.
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

    /// The share of packets that find the bad state, and how much of a state is left a packet later.
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

    /// Whether it depends on the time at which a packet comes.
    pub fn is_over_time(&self) -> bool {
        matches!(self, Self::OverTime(_) | Self::States { .. })
    }

    /// Fraction of packets lost in the long run; none of a list.
    pub fn probability(&self) -> f64 {
        match self {
            Self::None | Self::Periodic(0) | Self::List(_) => 0.0,
            Self::Independent(p) => p.fraction(),
            Self::Periodic(n) => 1.0 / *n as f64,
            // That of time zero.
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
    /// Upper bound for the raw window field of every segment without SYN. The field's unit is 2^scale bytes.
    pub window_field_max: Option<u16>,
    /// What becomes of the window scale option in SYN segments.
    pub window_scale: Option<WindowScaleRewrite>,
}

impl HeaderRewrite {
    /// Whether packets pass unchanged.
    pub fn is_none(&self) -> bool {
        *self == Self::default()
    }
}

/// What a middlebox does to the window scale option.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "snake_case")]
pub enum WindowScaleRewrite {
    /// Overwritten with NOPs, so neither side scales.
    Strip,
    /// The shift count is replaced.
    Set(u8),
}
