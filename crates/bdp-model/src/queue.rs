//! Queues that manage themselves: active queue management (RFC 7567), by their options as `tc` names them.
//!
//! How many packets may wait is the direction's `limit`, as it is of drop-tail.
//!
//! Each queue declares its parameters once, by [`Queue::parameters`]: the key of a scenario, which is tc's word, what it may be, and the kernel's
//! attribute for it. Scenarios, imported lines of `tc` and the kernel's own queues are read and made from that.

use std::ops::RangeInclusive;

use serde::{Deserialize, Serialize};

use crate::units::{ByteCount, Nanos, Probability};

/// The queue of a direction that is not drop-tail.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(tag = "kind", rename_all = "snake_case")]
pub enum Queue {
    /// Controlled delay (RFC 8289).
    Codel(Codel),
    /// A queue with CoDel for each flow (RFC 8290).
    FqCodel(FqCodel),
    /// Proportional integral controller, enhanced (RFC 8033).
    Pie(Pie),
    /// Random early detection (Floyd and Jacobson, 1993; RFC 2309).
    Red(Red),
    /// Like CAKE: tins, hosts and flows, COBALT in each flow.
    Cake(Cake),
    /// A low-latency queue beside a classic one (RFC 9332).
    #[serde(rename = "dualpi2")]
    DualPi2(DualPi2),
}

/// A parameter of a queue.
#[derive(Debug)]
pub struct QueueParameter<'a> {
    /// What scenarios and `tc` call it.
    pub key: &'static str,
    /// Its place, and what it may be.
    pub value: QueueValue<'a>,
    /// The kernel's attribute (`TCA_*` of linux/pkt_sched.h), if it has one of its own.
    pub attribute: Option<u16>,
}

/// The value of a parameter, in its place.
#[derive(Debug)]
pub enum QueueValue<'a> {
    /// A time of at least so much; the kernel takes microseconds.
    Time(&'a mut Nanos, Nanos),
    /// A time, or none.
    OptionalTime(&'a mut Option<Nanos>),
    /// A whole number.
    Count(&'a mut u32, RangeInclusive<u64>),
    /// The same, which the kernel takes as a byte.
    SmallCount(&'a mut u32, RangeInclusive<u64>),
    /// IP bytes.
    Bytes(&'a mut u32, RangeInclusive<u64>),
    /// A switch.
    Flag(&'a mut bool),
    /// The same, which the kernel takes as a byte.
    SmallFlag(&'a mut bool),
    /// A fraction.
    Fraction(&'a mut Probability),
    /// One of several words.
    Choice(&'a mut dyn QueueChoice),
}

/// A parameter that is one of several words.
pub trait QueueChoice: std::fmt::Debug {
    /// The words, and what the kernel has for each.
    fn words(&self) -> &'static [(&'static str, u32)];
    /// Which of them it is.
    fn index(&self) -> usize;
    /// Makes it another.
    fn choose(&mut self, index: usize);
}

/// The queue's limit.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "snake_case")]
pub enum QueueLimit {
    /// In packets.
    Packets(u64),
    /// In wire bytes (IP packet and overhead), so that the longest queueing time is limit x 8 / rate.
    Bytes(ByteCount),
    /// None.
    Unlimited,
}

/// How full a queue is at a moment.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct QueueReading {
    /// Packets that wait, without the one on the wire.
    pub packets: u64,
    /// Their wire bytes.
    pub bytes: u64,
    /// How long the packet on the wire had waited for it; zero where the wire is free.
    pub delay_ns: u64,
}

/// How full a queue was over time, each member a list of readings at the interval, the first at time zero.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct QueueSamples {
    /// From one reading to the next: what was asked for, doubled as often as it takes to stay below 8,192 readings.
    pub interval_ns: u64,
    /// Packets that wait, without the one on the wire.
    pub packets: Vec<u64>,
    /// Their wire bytes.
    pub bytes: Vec<u64>,
    /// How long the packet on the wire had waited for it; zero where the wire is free.
    pub delay_ns: Vec<u64>,
}

impl QueueSamples {
    /// Those of readings.
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
    /// The sojourn time that is acceptable.
    #[serde(rename = "target_ns", with = "crate::units::nanoseconds")]
    #[cfg_attr(feature = "schema", schemars(with = "u64"))]
    pub target: Nanos,
    /// For how long it may be exceeded: the longest usual round trip.
    #[serde(rename = "interval_ns", with = "crate::units::nanoseconds")]
    #[cfg_attr(feature = "schema", schemars(with = "u64"))]
    pub interval: Nanos,
    /// Whether an ECN-capable packet is marked instead of dropped.
    pub ecn: bool,
    /// ECN-capable packets are marked whose sojourn time is above it, at once.
    #[serde(default, rename = "ce_threshold_ns", with = "crate::units::nanoseconds::option")]
    #[cfg_attr(feature = "schema", schemars(with = "Option<u64>"))]
    pub ce_threshold: Option<Nanos>,
}

/// FQ-CoDel: deficit round robin among flows, those that are new first, with CoDel in each.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct FqCodel {
    /// Of each flow's queue.
    pub codel: Codel,
    /// Queues into which flows are hashed.
    pub flows: u32,
    /// IP bytes that a flow may send in its turn.
    pub quantum_bytes: u32,
}

/// PIE: drops or marks on arrival, with a probability that follows the queueing delay.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct Pie {
    /// The delay that is aimed at.
    #[serde(rename = "target_ns", with = "crate::units::nanoseconds")]
    #[cfg_attr(feature = "schema", schemars(with = "u64"))]
    pub target: Nanos,
    /// From one update of the probability to the next.
    #[serde(rename = "tupdate_ns", with = "crate::units::nanoseconds")]
    #[cfg_attr(feature = "schema", schemars(with = "u64"))]
    pub tupdate: Nanos,
    /// Gain of the delay's distance from the target, sixteenths of 1/s.
    pub alpha: u32,
    /// Gain of the delay's change, sixteenths of 1/s.
    pub beta: u32,
    /// Whether an ECN-capable packet is marked instead of dropped, up to a probability of 10 %.
    pub ecn: bool,
}

/// RED: drops or marks on arrival, by the average length of the queue.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct Red {
    /// Average length from which on packets are dropped, IP bytes.
    pub min_bytes: u32,
    /// From which on all are.
    pub max_bytes: u32,
    /// Length of an average packet.
    pub avpkt_bytes: u32,
    /// Packets that may come at once: the weight of the average follows from it.
    pub burst: u32,
    /// Share of packets dropped shortly below the upper threshold.
    pub probability: Probability,
    /// Whether an ECN-capable packet is marked instead of dropped.
    pub ecn: bool,
    /// Whether above the upper threshold it is dropped all the same.
    pub harddrop: bool,
}

/// CAKE-like: the direction's rate is its shaper.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct Cake {
    /// Tins by DSCP.
    pub diffserv: Tins,
    /// What has an equal share.
    pub isolation: Isolation,
    /// The usual round trip: COBALT's interval; its target is a twentieth.
    #[serde(rename = "rtt_ns", with = "crate::units::nanoseconds")]
    #[cfg_attr(feature = "schema", schemars(with = "u64"))]
    pub rtt: Nanos,
}

/// Tins of CAKE.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "snake_case")]
pub enum Tins {
    /// One.
    Besteffort,
    /// Bulk, best effort, voice.
    Diffserv3,
    /// Bulk, best effort, video, voice.
    Diffserv4,
}

/// What has an equal share in a tin of CAKE.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "kebab-case")]
pub enum Isolation {
    /// Flows.
    Flows,
    /// Hosts, those that send and those that receive, and then their flows.
    TripleIsolate,
}

/// DualPI2: a classic queue and one for low latency, coupled.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct DualPi2 {
    /// The delay of the classic queue that is aimed at.
    #[serde(rename = "target_ns", with = "crate::units::nanoseconds")]
    #[cfg_attr(feature = "schema", schemars(with = "u64"))]
    pub target: Nanos,
    /// From one update of the probability to the next.
    #[serde(rename = "tupdate_ns", with = "crate::units::nanoseconds")]
    #[cfg_attr(feature = "schema", schemars(with = "u64"))]
    pub tupdate: Nanos,
    /// Gain of the delay's distance from the target, 256ths of 1/s.
    pub alpha: u32,
    /// Gain of the delay's change, 256ths of 1/s.
    pub beta: u32,
    /// The low-latency queue's probability is the base probability times this, the classic queue's its square.
    pub coupling_factor: u32,
    /// Packets of the low-latency queue that waited longer are marked.
    #[serde(rename = "step_thresh_ns", with = "crate::units::nanoseconds")]
    #[cfg_attr(feature = "schema", schemars(with = "u64"))]
    pub step_thresh: Nanos,
    /// Whether the low-latency queue is dropped from on overload, too.
    pub drop_on_overload: bool,
    /// Share of the wire that the classic queue has for sure, percent.
    pub c_protection_percent: u32,
}

impl Red {
    /// log2 of the inverse of a new length's weight in the average, as `tc` derives it from the burst; `None` where the burst is too
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

    /// The weight.
    pub fn weight(&self) -> f64 {
        1.0 / f64::from(1u32 << self.weight_log().unwrap_or(9).min(31))
    }
}

impl Queue {
    /// Kinds as scenarios name them.
    pub const KINDS: [&str; 6] = ["codel", "fq_codel", "pie", "red", "cake", "dualpi2"];

    /// The queue of this kind with its defaults, which are those of Linux.
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

    /// Its name.
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

    /// What may wait where nothing else is said: Linux's defaults. Bytes are IP bytes.
    pub const fn default_limit(&self) -> QueueLimit {
        match self {
            Self::Codel(_) | Self::Pie(_) => QueueLimit::Packets(1000),
            Self::FqCodel(_) => QueueLimit::Packets(10_240),
            Self::DualPi2(_) => QueueLimit::Packets(10_000),
            Self::Red(_) => QueueLimit::Bytes(ByteCount::bytes(400_000)),
            Self::Cake(_) => QueueLimit::Bytes(ByteCount::bytes(4 << 20)),
        }
    }

    /// Its parameters, in the order in which the kernel takes them.
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

    /// Whether its limit may be in bytes.
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

/// Shorter periods are not served.
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
    /// `attributes` are those of the discipline that it is part of.
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
    /// The kernel takes them in a structure, as tc(8) derives it.
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
