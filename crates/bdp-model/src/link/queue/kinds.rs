//! The kinds of queues and their parameters, with the defaults of Linux.

use std::ops::RangeInclusive;

use super::parameter::{
    QueueChoice, QueueKind, QueueParameter, QueueValue, choices, first_line, kinds, parameters,
};
use super::reading::QueueLimit;
use crate::units::{ByteCount, Nanos, Probability};

// A new kind comes last: the selftest numbers its trains, and so their seeds, in this order.
kinds! {
    /// Active queue management of a direction.
    Queue {
        /// Controlled delay (RFC 8289).
        Codel = "codel" { limit_attribute: Some(2) }
        /// A queue with CoDel for each flow (RFC 8290).
        FqCodel = "fq_codel" {
            limit: QueueLimit::Packets(10_240), limit_attribute: Some(2), memory: Some((9, u32::MAX)),
        }
        /// Proportional Integral controller Enhanced (RFC 8033).
        Pie = "pie" { on_arrival: true, draws: true, in_jiffies: true, limit_attribute: Some(2) }
        /// Random Early Detection (Floyd and Jacobson, 1993; RFC 2309).
        Red = "red" { on_arrival: true, draws: true, limit: QueueLimit::Bytes(ByteCount::bytes(400_000)) }
        /// CAKE-like: tins, hosts and flows, COBALT in each flow.
        Cake = "cake" { shapes: true, own_words: true, limit: QueueLimit::Bytes(ByteCount::bytes(4 << 20)) }
        /// Dual-queue coupled AQM: a low-latency queue beside a classic one (RFC 9332).
        DualPi2 = "dualpi2" {
            limit: QueueLimit::Packets(10_000), draws: true, limit_attribute: Some(1), memory: Some((2, 1 << 30)),
            own_words: true, since: Some("linux-7.2"),
        }
        /// A queue with PIE for each flow, as in Linux.
        FqPie = "fq_pie" {
            on_arrival: true, limit: QueueLimit::Packets(10_240), draws: true, in_jiffies: true,
            limit_attribute: Some(1), memory: Some((8, 1 << 30)),
        }
    }
}

/// Shortest supported update interval.
const LEAST_PERIOD: Nanos = Nanos::millis(1);
const LEAST_TIME: Nanos = Nanos::micros(1);
const QUANTUM: RangeInclusive<u64> = 256..=1 << 20;
const RED_BYTES: RangeInclusive<u64> = 64..=1 << 20;

parameters! {
    /// CoDel: drops or marks at dequeue while the sojourn time stays above the target for an interval.
    Codel {
        /// Acceptable sojourn time.
        #[serde(rename = "target_ns", with = "crate::units::nanoseconds")]
        #[cfg_attr(feature = "schema", schemars(with = "u64"))]
        target: Nanos = Nanos::millis(5) => "target", Time(LEAST_TIME), 1;
        /// How long the target may be exceeded: the longest usual round trip.
        #[serde(rename = "interval_ns", with = "crate::units::nanoseconds")]
        #[cfg_attr(feature = "schema", schemars(with = "u64"))]
        interval: Nanos = Nanos::millis(100) => "interval", Time(LEAST_TIME), 3;
        /// Whether ECN-capable packets are marked instead of dropped.
        ecn: bool = false => "ecn", Flag, 4;
        /// Sojourn time above which ECN-capable packets are marked at once.
        #[serde(default, rename = "ce_threshold_ns", with = "crate::units::nanoseconds::option")]
        #[cfg_attr(feature = "schema", schemars(with = "Option<u64>"))]
        ce_threshold: Option<Nanos> = None => "ce_threshold", OptionalTime, 5;
    }
}

parameters! {
    /// FQ-CoDel: deficit round robin among flows, new ones first, with CoDel in each.
    FqCodel (
        /// CoDel settings of each flow's queue.
        codel: Codel = Codel { ecn: true, ..Codel::default() }, [1, 3, 4, 7]
    ) {
        /// Number of queues that flows are hashed into.
        flows: u32 = 1024 => "flows", Count(1..=65_536), 5;
        /// IP bytes that a flow may send per round.
        quantum_bytes: u32 = 1514 => "quantum", Bytes(QUANTUM), 6;
    }
}

parameters! {
    /// PIE: drops or marks on arrival, with a probability that follows the queueing delay.
    Pie {
        /// Target delay.
        #[serde(rename = "target_ns", with = "crate::units::nanoseconds")]
        #[cfg_attr(feature = "schema", schemars(with = "u64"))]
        target: Nanos = Nanos::millis(15) => "target", Time(LEAST_TIME), 1;
        /// Update interval of the probability.
        #[serde(rename = "tupdate_ns", with = "crate::units::nanoseconds")]
        #[cfg_attr(feature = "schema", schemars(with = "u64"))]
        tupdate: Nanos = Nanos::millis(15) => "tupdate", Time(LEAST_PERIOD), 3;
        /// Gain of the delay's distance from the target, sixteenths of 1/s.
        alpha: u32 = 2 => "alpha", Count(0..=32), 4;
        /// Gain of the delay's change, sixteenths of 1/s.
        beta: u32 = 20 => "beta", Count(0..=32), 5;
        /// Whether ECN-capable packets are marked instead of dropped, up to a probability of 10 %.
        ecn: bool = false => "ecn", Flag, 6;
    }
}

parameters! {
    /// FQ-PIE: deficit round robin among flows, new ones first, with PIE in each.
    FqPie (
        /// PIE settings of each flow's queue.
        pie: Pie = Pie::default(), [3, 4, 5, 6, 10]
    ) {
        /// Number of queues that flows are hashed into.
        flows: u32 = 1024 => "flows", Count(1..=65_536), 2;
        /// IP bytes that a flow may send per round.
        quantum_bytes: u32 = 1514 => "quantum", Bytes(QUANTUM), 7;
        /// Probability up to which `ecn` marks, instead of 10 %, percent.
        ecn_prob_percent: u32 = 10 => "ecn_prob", Count(0..=100), 9;
        /// Whether the probability for packets shorter than 1500 bytes is proportional to their length.
        bytemode: bool = false => "bytemode", Flag, 11;
    }
}

parameters! {
    /// RED: drops or marks on arrival, by the average queue length.
    // The defaults are the example of tc-red(8); the kernel takes a structure, derived as in tc(8).
    Red {
        /// Average length above which packets may be dropped, IP bytes.
        min_bytes: u32 = 30_000 => "min", Bytes(RED_BYTES);
        /// Average length above which all packets are dropped, IP bytes.
        max_bytes: u32 = 90_000 => "max", Bytes(RED_BYTES);
        /// Average packet size.
        avpkt_bytes: u32 = 1000 => "avpkt", Bytes(RED_BYTES);
        /// Packets that may arrive in a burst; determines the weight of the average.
        burst: u32 = 55 => "burst", Count(1..=10_000);
        /// Drop probability just below the upper threshold.
        probability: Probability = Probability::new(0.02).unwrap_or_default() => "probability", Fraction;
        /// Whether ECN-capable packets are marked instead of dropped.
        ecn: bool = false => "ecn", Flag;
        /// Whether they are dropped nevertheless above the upper threshold.
        harddrop: bool = false => "harddrop", Flag;
    }
}

parameters! {
    /// CAKE-like: the direction's rate is its shaper.
    Cake {
        /// Tins by DSCP.
        diffserv: Tins = Tins::Diffserv3 => "diffserv", Choice, 3;
        /// Entities with equal shares.
        isolation: Isolation = Isolation::TripleIsolate => "isolation", Choice, 5;
        /// Usual round trip, COBALT's interval; its target is a twentieth of it.
        #[serde(rename = "rtt_ns", with = "crate::units::nanoseconds")]
        #[cfg_attr(feature = "schema", schemars(with = "u64"))]
        rtt: Nanos = Nanos::millis(100) => "rtt", Time(LEAST_TIME), 7;
    }
}

parameters! {
    /// DualPI2: a classic and a low-latency queue, coupled.
    DualPi2 {
        /// Target delay of the classic queue.
        #[serde(rename = "target_ns", with = "crate::units::nanoseconds")]
        #[cfg_attr(feature = "schema", schemars(with = "u64"))]
        target: Nanos = Nanos::millis(15) => "target", Time(LEAST_TIME), 3;
        /// Update interval of the probability.
        #[serde(rename = "tupdate_ns", with = "crate::units::nanoseconds")]
        #[cfg_attr(feature = "schema", schemars(with = "u64"))]
        tupdate: Nanos = Nanos::millis(16) => "tupdate", Time(LEAST_PERIOD), 4;
        /// Gain of the delay's distance from the target, 256ths of 1/s.
        alpha: u32 = 41 => "alpha", Count(1..=65_535), 5;
        /// Gain of the delay's change, 256ths of 1/s.
        beta: u32 = 819 => "beta", Count(1..=65_535), 6;
        /// Coupling: the low-latency queue's probability is the base probability times this, the classic queue's is its square.
        coupling_factor: u32 = 2 => "coupling_factor", SmallCount(1..=255), 10;
        /// Waiting time above which packets of the low-latency queue are marked.
        #[serde(rename = "step_thresh_ns", with = "crate::units::nanoseconds")]
        #[cfg_attr(feature = "schema", schemars(with = "u64"))]
        step_thresh: Nanos = Nanos::millis(1) => "step_thresh", Time(LEAST_TIME), 8;
        /// Whether the low-latency queue drops packets on overload, too.
        drop_on_overload: bool = true => "drop_on_overload", SmallFlag, 11;
        /// Guaranteed share of the wire for the classic queue, percent.
        c_protection_percent: u32 = 10 => "c_protection", SmallCount(0..=100), 13;
    }
}

choices! {
    /// Tins of CAKE.
    Tins {
        /// One tin.
        Besteffort = "besteffort", 3;
        /// Bulk, best effort, voice.
        Diffserv3 = "diffserv3", 0;
        /// Bulk, best effort, video, voice.
        Diffserv4 = "diffserv4", 1;
    }
}

choices! {
    /// Entities with equal shares in a tin of CAKE.
    Isolation {
        /// Flows.
        Flows = "flows", 4;
        /// Sending and receiving hosts, and the flows of each host.
        TripleIsolate = "triple-isolate", 7;
    }
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
    /// Returns the queue of this kind with the defaults of Linux.
    pub fn of_kind(kind: &str) -> Option<Self> {
        Self::all().into_iter().find(|queue| queue.name() == kind.replace('-', "_"))
    }

    /// Returns its name.
    pub fn name(&self) -> &'static str {
        self.kind().name
    }

    /// Returns the parameter with this key.
    pub fn parameter(&mut self, key: &str) -> Option<QueueParameter<'_>> {
        self.parameters().into_iter().find(|parameter| parameter.key == key)
    }
}
