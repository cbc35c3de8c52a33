//! Active queue management (RFC 7567), with the option names of `tc`.
//!
//! The queue length is limited by the direction's `limit`, as for drop-tail.
//!
//! Each queue declares its parameters once, in [`Queue::parameters`]: the key of a scenario, which is tc's, its range, and the kernel's
//! attribute. Scenarios, imported `tc` commands and the kernel's own queues are read and made from these declarations.

use std::ops::RangeInclusive;

use serde::{Deserialize, Serialize};

use crate::units::{ByteCount, Nanos, Probability};

/// Active queue management of a direction.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(tag = "kind", rename_all = "snake_case")]
pub enum Queue {
    /// Controlled delay (RFC 8289).
    Codel(Codel),
    /// A queue with CoDel for each flow (RFC 8290).
    FqCodel(FqCodel),
    /// Proportional Integral controller Enhanced (RFC 8033).
    Pie(Pie),
    /// Random Early Detection (Floyd and Jacobson, 1993; RFC 2309).
    Red(Red),
    /// CAKE-like: tins, hosts and flows, COBALT in each flow.
    Cake(Cake),
    /// Dual-queue coupled AQM: a low-latency queue beside a classic one (RFC 9332).
    #[serde(rename = "dualpi2")]
    DualPi2(DualPi2),
}

/// A parameter of a queue.
#[derive(Debug)]
pub struct QueueParameter<'a> {
    /// Its name in scenarios and `tc`.
    pub key: &'static str,
    /// A reference to its value, and the allowed values.
    pub value: QueueValue<'a>,
    /// The kernel's attribute (`TCA_*` of linux/pkt_sched.h), if it has one of its own.
    pub attribute: Option<u16>,
}

/// A reference to a parameter's value, with the allowed values.
#[derive(Debug)]
pub enum QueueValue<'a> {
    /// A time with a minimum; the kernel takes microseconds.
    Time(&'a mut Nanos, Nanos),
    /// An optional time.
    OptionalTime(&'a mut Option<Nanos>),
    /// A whole number.
    Count(&'a mut u32, RangeInclusive<u64>),
    /// A whole number that the kernel takes as a byte.
    SmallCount(&'a mut u32, RangeInclusive<u64>),
    /// IP bytes.
    Bytes(&'a mut u32, RangeInclusive<u64>),
    /// A switch.
    Flag(&'a mut bool),
    /// A switch that the kernel takes as a byte.
    SmallFlag(&'a mut bool),
    /// A fraction.
    Fraction(&'a mut Probability),
    /// One of several words.
    Choice(&'a mut dyn QueueChoice),
}

/// A parameter that is one of several words.
pub trait QueueChoice: std::fmt::Debug {
    /// Returns the words, each with the kernel's value.
    fn words(&self) -> &'static [(&'static str, u32)];
    /// Returns the index of the current word.
    fn index(&self) -> usize;
    /// Sets the word with this index.
    fn choose(&mut self, index: usize);
}

/// Limit of a queue.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "snake_case")]
pub enum QueueLimit {
    /// In packets.
    Packets(u64),
    /// In wire bytes (IP packet and overhead), so that the longest queueing time is limit x 8 / rate.
    Bytes(ByteCount),
    /// No limit.
    Unlimited,
}

/// State of a queue at a moment.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct QueueReading {
    /// Packets waiting, without the one on the wire.
    pub packets: u64,
    /// Bytes on the wire of the waiting packets.
    pub bytes: u64,
    /// How long the packet on the wire had waited; zero if the wire is free.
    pub delay_ns: u64,
}

/// State of a queue over time; each member is a list of samples at the interval, the first at time zero.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct QueueSamples {
    /// Sampling interval: the requested one, doubled until there are fewer than 8,192 samples.
    pub interval_ns: u64,
    /// Packets waiting, without the one on the wire.
    pub packets: Vec<u64>,
    /// Bytes on the wire of the waiting packets.
    pub bytes: Vec<u64>,
    /// How long the packet on the wire had waited; zero if the wire is free.
    pub delay_ns: Vec<u64>,
}

impl QueueSamples {
    /// Collects samples at an interval.
    pub fn new(interval: Nanos, readings: &[QueueReading]) -> Self {
        Self {
            interval_ns: interval.as_ns(),
            packets: readings.iter().map(|reading| reading.packets).collect(),
            bytes: readings.iter().map(|reading| reading.bytes).collect(),
            delay_ns: readings.iter().map(|reading| reading.delay_ns).collect(),
        }
    }
}

/// CoDel: drops or marks at dequeue while the sojourn time stays above the target for an interval.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct Codel {
    /// Acceptable sojourn time.
    #[serde(rename = "target_ns", with = "crate::units::nanoseconds")]
    #[cfg_attr(feature = "schema", schemars(with = "u64"))]
    pub target: Nanos,
    /// How long the target may be exceeded: the longest usual round trip.
    #[serde(rename = "interval_ns", with = "crate::units::nanoseconds")]
    #[cfg_attr(feature = "schema", schemars(with = "u64"))]
    pub interval: Nanos,
    /// Whether ECN-capable packets are marked instead of dropped.
    pub ecn: bool,
    /// Sojourn time above which ECN-capable packets are marked at once.
    #[serde(default, rename = "ce_threshold_ns", with = "crate::units::nanoseconds::option")]
    #[cfg_attr(feature = "schema", schemars(with = "Option<u64>"))]
    pub ce_threshold: Option<Nanos>,
}

/// FQ-CoDel: deficit round robin among flows, new ones first, with CoDel in each.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct FqCodel {
    /// CoDel settings of each flow's queue.
    pub codel: Codel,
    /// Number of queues that flows are hashed into.
    pub flows: u32,
    /// IP bytes that a flow may send per round.
    pub quantum_bytes: u32,
}

/// PIE: drops or marks on arrival, with a probability that follows the queueing delay.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct Pie {
    /// Target delay.
    #[serde(rename = "target_ns", with = "crate::units::nanoseconds")]
    #[cfg_attr(feature = "schema", schemars(with = "u64"))]
    pub target: Nanos,
    /// Update interval of the probability.
    #[serde(rename = "tupdate_ns", with = "crate::units::nanoseconds")]
    #[cfg_attr(feature = "schema", schemars(with = "u64"))]
    pub tupdate: Nanos,
    /// Gain of the delay's distance from the target, sixteenths of 1/s.
    pub alpha: u32,
    /// Gain of the delay's change, sixteenths of 1/s.
    pub beta: u32,
    /// Whether ECN-capable packets are marked instead of dropped, up to a probability of 10 %.
    pub ecn: bool,
}

/// RED: drops or marks on arrival, by the average queue length.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct Red {
    /// Average length above which packets may be dropped, IP bytes.
    pub min_bytes: u32,
    /// Average length above which all packets are dropped, IP bytes.
    pub max_bytes: u32,
    /// Average packet size.
    pub avpkt_bytes: u32,
    /// Packets that may arrive in a burst; determines the weight of the average.
    pub burst: u32,
    /// Drop probability just below the upper threshold.
    pub probability: Probability,
    /// Whether ECN-capable packets are marked instead of dropped.
    pub ecn: bool,
    /// Whether they are dropped nevertheless above the upper threshold.
    pub harddrop: bool,
}

/// CAKE-like: the direction's rate is its shaper.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct Cake {
    /// Tins by DSCP.
    pub diffserv: Tins,
    /// Entities with equal shares.
    pub isolation: Isolation,
    /// Usual round trip, COBALT's interval; its target is a twentieth of it.
    #[serde(rename = "rtt_ns", with = "crate::units::nanoseconds")]
    #[cfg_attr(feature = "schema", schemars(with = "u64"))]
    pub rtt: Nanos,
}

/// Tins of CAKE.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "snake_case")]
pub enum Tins {
    /// One tin.
    Besteffort,
    /// Bulk, best effort, voice.
    Diffserv3,
    /// Bulk, best effort, video, voice.
    Diffserv4,
}

/// Entities with equal shares in a tin of CAKE.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "kebab-case")]
pub enum Isolation {
    /// Flows.
    Flows,
    /// Sending and receiving hosts, and the flows of each host.
    TripleIsolate,
}

/// DualPI2: a classic and a low-latency queue, coupled.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct DualPi2 {
    /// Target delay of the classic queue.
    #[serde(rename = "target_ns", with = "crate::units::nanoseconds")]
    #[cfg_attr(feature = "schema", schemars(with = "u64"))]
    pub target: Nanos,
    /// Update interval of the probability.
    #[serde(rename = "tupdate_ns", with = "crate::units::nanoseconds")]
    #[cfg_attr(feature = "schema", schemars(with = "u64"))]
    pub tupdate: Nanos,
    /// Gain of the delay's distance from the target, 256ths of 1/s.
    pub alpha: u32,
    /// Gain of the delay's change, 256ths of 1/s.
    pub beta: u32,
    /// Coupling: the low-latency queue's probability is the base probability times this, the classic queue's is its square.
    pub coupling_factor: u32,
    /// Waiting time above which packets of the low-latency queue are marked.
    #[serde(rename = "step_thresh_ns", with = "crate::units::nanoseconds")]
    #[cfg_attr(feature = "schema", schemars(with = "u64"))]
    pub step_thresh: Nanos,
    /// Whether the low-latency queue drops packets on overload, too.
    pub drop_on_overload: bool,
    /// Guaranteed share of the wire for the classic queue, percent.
    pub c_protection_percent: u32,
}

impl Red {
    /// Returns log2 of the inverse weight of a new length in the average, derived from the burst as in `tc`; `None` if the burst is too
    /// small for the lower threshold.
    pub fn weight_log(&self) -> Option<u8> {
        let wanted =
            f64::from(self.burst) + 1.0 - f64::from(self.min_bytes) / f64::from(self.avpkt_bytes.max(1));
        if wanted < 1.0 {
            return None;
        }
        let mut weight = 0.5;
        for log in 1..32 {
            let kept = (0..self.burst).fold(1.0, |kept, _| kept * (1.0 - weight));
            if wanted <= (1.0 - kept) / weight {
                return Some(log);
            }
            weight /= 2.0;
        }
        None
    }

    /// Returns the weight.
    pub fn weight(&self) -> f64 {
        1.0 / f64::from(1u32 << self.weight_log().unwrap_or(9).min(31))
    }
}

impl Queue {
    /// Names of the kinds in scenarios.
    pub const KINDS: [&str; 6] = ["codel", "fq_codel", "pie", "red", "cake", "dualpi2"];

    /// Returns the queue of this kind with the defaults of Linux.
    pub fn of_kind(kind: &str) -> Option<Self> {
        match kind {
            "codel" => Some(Self::Codel(Codel::default())),
            "fq_codel" | "fq-codel" => Some(Self::FqCodel(FqCodel::default())),
            "pie" => Some(Self::Pie(Pie::default())),
            "red" => Some(Self::Red(Red::default())),
            "cake" => Some(Self::Cake(Cake::default())),
            "dualpi2" => Some(Self::DualPi2(DualPi2::default())),
            _ => None,
        }
    }

    /// Returns its name.
    pub const fn name(&self) -> &'static str {
        match self {
            Self::Codel(_) => "codel",
            Self::FqCodel(_) => "fq_codel",
            Self::Pie(_) => "pie",
            Self::Red(_) => "red",
            Self::Cake(_) => "cake",
            Self::DualPi2(_) => "dualpi2",
        }
    }

    /// Returns the default limit, that of Linux. Bytes are IP bytes.
    pub const fn default_limit(&self) -> QueueLimit {
        match self {
            Self::Codel(_) | Self::Pie(_) => QueueLimit::Packets(1000),
            Self::FqCodel(_) => QueueLimit::Packets(10_240),
            Self::DualPi2(_) => QueueLimit::Packets(10_000),
            Self::Red(_) => QueueLimit::Bytes(ByteCount::bytes(400_000)),
            Self::Cake(_) => QueueLimit::Bytes(ByteCount::bytes(4 << 20)),
        }
    }

    /// Returns its parameters in the kernel's order.
    pub fn parameters(&mut self) -> Vec<QueueParameter<'_>> {
        match self {
            Self::Codel(codel) => codel.parameters([1, 3, 4, 5]),
            Self::FqCodel(FqCodel { codel, flows, quantum_bytes }) => {
                let mut all = codel.parameters([1, 3, 4, 7]);
                all.push(parameter("flows", QueueValue::Count(flows, 1..=65_536)).attribute(5));
                all.push(parameter("quantum", QueueValue::Bytes(quantum_bytes, 256..=1 << 20)).attribute(6));
                all
            }
            Self::Pie(pie) => pie.parameters(),
            Self::Red(red) => red.parameters(),
            Self::Cake(cake) => cake.parameters(),
            Self::DualPi2(dual) => dual.parameters(),
        }
    }

    /// Whether its limit can be in bytes.
    pub const fn takes_bytes(&self) -> bool {
        matches!(self, Self::Red(_) | Self::Cake(_))
    }
}

impl Default for Codel {
    fn default() -> Self {
        Self { target: Nanos::millis(5), interval: Nanos::millis(100), ecn: false, ce_threshold: None }
    }
}

impl Default for FqCodel {
    fn default() -> Self {
        Self { codel: Codel { ecn: true, ..Codel::default() }, flows: 1024, quantum_bytes: 1514 }
    }
}

impl Default for Pie {
    fn default() -> Self {
        Self { target: Nanos::millis(15), tupdate: Nanos::millis(15), alpha: 2, beta: 20, ecn: false }
    }
}

impl Default for Red {
    /// The example of tc-red(8).
    fn default() -> Self {
        Self {
            min_bytes: 30_000,
            max_bytes: 90_000,
            avpkt_bytes: 1000,
            burst: 55,
            probability: Probability::new(0.02).unwrap_or_default(),
            ecn: false,
            harddrop: false,
        }
    }
}

impl Default for Cake {
    fn default() -> Self {
        Self { diffserv: Tins::Diffserv3, isolation: Isolation::TripleIsolate, rtt: Nanos::millis(100) }
    }
}

impl Default for DualPi2 {
    fn default() -> Self {
        Self {
            target: Nanos::millis(15),
            tupdate: Nanos::millis(16),
            alpha: 41,
            beta: 819,
            coupling_factor: 2,
            step_thresh: Nanos::millis(1),
            drop_on_overload: true,
            c_protection_percent: 10,
        }
    }
}

/// Shortest supported update interval.
const LEAST_PERIOD: Nanos = Nanos::millis(1);
const LEAST_TIME: Nanos = Nanos::micros(1);

fn parameter<'a>(key: &'static str, value: QueueValue<'a>) -> QueueParameter<'a> {
    QueueParameter { key, value, attribute: None }
}

impl QueueParameter<'_> {
    fn attribute(mut self, number: u16) -> Self {
        self.attribute = Some(number);
        self
    }
}

impl Codel {
    /// `attributes` are those of the enclosing discipline.
    fn parameters(&mut self, attributes: [u16; 4]) -> Vec<QueueParameter<'_>> {
        let Self { target, interval, ecn, ce_threshold } = self;
        let all = [
            parameter("target", QueueValue::Time(target, LEAST_TIME)),
            parameter("interval", QueueValue::Time(interval, LEAST_TIME)),
            parameter("ecn", QueueValue::Flag(ecn)),
            parameter("ce_threshold", QueueValue::OptionalTime(ce_threshold)),
        ];
        all.into_iter().zip(attributes).map(|(parameter, number)| parameter.attribute(number)).collect()
    }
}

impl Pie {
    fn parameters(&mut self) -> Vec<QueueParameter<'_>> {
        let Self { target, tupdate, alpha, beta, ecn } = self;
        vec![
            parameter("target", QueueValue::Time(target, LEAST_TIME)).attribute(1),
            parameter("tupdate", QueueValue::Time(tupdate, LEAST_PERIOD)).attribute(3),
            parameter("alpha", QueueValue::Count(alpha, 0..=32)).attribute(4),
            parameter("beta", QueueValue::Count(beta, 0..=32)).attribute(5),
            parameter("ecn", QueueValue::Flag(ecn)).attribute(6),
        ]
    }
}

impl Red {
    /// The kernel takes them as a structure, derived as in tc(8).
    fn parameters(&mut self) -> Vec<QueueParameter<'_>> {
        const BYTES: RangeInclusive<u64> = 64..=1 << 20;
        let Self { min_bytes, max_bytes, avpkt_bytes, burst, probability, ecn, harddrop } = self;
        vec![
            parameter("min", QueueValue::Bytes(min_bytes, BYTES)),
            parameter("max", QueueValue::Bytes(max_bytes, BYTES)),
            parameter("avpkt", QueueValue::Bytes(avpkt_bytes, BYTES)),
            parameter("burst", QueueValue::Count(burst, 1..=10_000)),
            parameter("probability", QueueValue::Fraction(probability)),
            parameter("ecn", QueueValue::Flag(ecn)),
            parameter("harddrop", QueueValue::Flag(harddrop)),
        ]
    }
}

impl Cake {
    fn parameters(&mut self) -> Vec<QueueParameter<'_>> {
        let Self { diffserv, isolation, rtt } = self;
        vec![
            parameter("diffserv", QueueValue::Choice(diffserv)).attribute(3),
            parameter("isolation", QueueValue::Choice(isolation)).attribute(5),
            parameter("rtt", QueueValue::Time(rtt, LEAST_TIME)).attribute(7),
        ]
    }
}

impl DualPi2 {
    fn parameters(&mut self) -> Vec<QueueParameter<'_>> {
        let Self {
            target,
            tupdate,
            alpha,
            beta,
            coupling_factor,
            step_thresh,
            drop_on_overload,
            c_protection_percent,
        } = self;
        vec![
            parameter("target", QueueValue::Time(target, LEAST_TIME)).attribute(3),
            parameter("tupdate", QueueValue::Time(tupdate, LEAST_PERIOD)).attribute(4),
            parameter("alpha", QueueValue::Count(alpha, 1..=65_535)).attribute(5),
            parameter("beta", QueueValue::Count(beta, 1..=65_535)).attribute(6),
            parameter("step_thresh", QueueValue::Time(step_thresh, LEAST_TIME)).attribute(8),
            parameter("coupling_factor", QueueValue::SmallCount(coupling_factor, 1..=255)).attribute(10),
            parameter("drop_on_overload", QueueValue::SmallFlag(drop_on_overload)).attribute(11),
            parameter("c_protection", QueueValue::SmallCount(c_protection_percent, 0..=100)).attribute(13),
        ]
    }
}

impl QueueChoice for Tins {
    fn words(&self) -> &'static [(&'static str, u32)] {
        &[("besteffort", 3), ("diffserv3", 0), ("diffserv4", 1)]
    }

    fn index(&self) -> usize {
        *self as usize
    }

    fn choose(&mut self, index: usize) {
        *self = [Self::Besteffort, Self::Diffserv3, Self::Diffserv4][index];
    }
}

impl QueueChoice for Isolation {
    fn words(&self) -> &'static [(&'static str, u32)] {
        &[("flows", 4), ("triple-isolate", 7)]
    }

    fn index(&self) -> usize {
        *self as usize
    }

    fn choose(&mut self, index: usize) {
        *self = [Self::Flows, Self::TripleIsolate][index];
    }
}
