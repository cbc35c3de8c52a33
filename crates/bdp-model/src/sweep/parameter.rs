//! Parameters that a scenario sets and sweeps: notation, unit and range of each.
//!
//! A parameter is identified by the last word of its path: `window` of `flow.window`, `delay` of `link.forward.delay`. Plans,
//! curves, reports and the command line all use this table.

use std::cmp::Ordering;
use std::ops::RangeInclusive;

use crate::flow::socket::{Notation, SocketOption};
use crate::flow::window::WindowBytes;
use crate::sweep::curve::Axis;
use crate::units::{ByteCount, Nanos, Probability, Rate};

/// A parameter.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Parameter {
    /// Its name: the last word of its path, also used on the command line.
    pub name: &'static str,
    /// Notation.
    pub kind: Kind,
    /// Unit of its values; a queue's length has a unit with each value.
    pub unit: Unit,
    /// Smallest and largest value in the base unit. Further limits may follow from other parameters, for example of an MSS from the
    /// MTU.
    pub range: RangeInclusive<u64>,
    /// Axis of the curve that `bdp sweep` draws over it, if any.
    pub axis: Option<Axis>,
}

/// Notation of a parameter.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Kind {
    /// Bytes, for example `64K`.
    Size,
    /// A rate, for example `100M`.
    Rate,
    /// A time, for example `20ms`.
    Time,
    /// A fraction, for example `5%` or 0.05.
    Fraction,
    /// A whole number.
    Count,
    /// Packets, for example 10 or `10p`, or bytes on the wire with a unit, for example `64K`.
    QueueLength,
    /// A word, which has no quantity.
    Word,
}

/// Unit of a value. Values of different units are not comparable.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Unit {
    /// Bytes.
    Bytes,
    /// bit/s.
    BitsPerSecond,
    /// Nanoseconds.
    Nanoseconds,
    /// A fraction of one.
    Share,
    /// Packets.
    Packets,
    /// A plain number.
    Number,
}

/// A value in its base unit.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Quantity {
    /// How much.
    pub value: f64,
    /// Its unit.
    pub unit: Unit,
}

/// Longest delay, nanoseconds: 1 h.
const LONGEST_DELAY: u64 = 3_600_000_000_000;
/// Longest test, nanoseconds: a day.
const LONGEST_TEST: u64 = 24 * LONGEST_DELAY;
/// Longest turn on a shared medium, nanoseconds: 10 s.
const LONGEST_TURN: u64 = 10_000_000_000;
/// Host parameters; others with these names belong to flows and links.
const OF_HOSTS: [&str; 3] = ["receive_buffer", "send_buffer", "initial_window"];
const ANY: RangeInclusive<u64> = 0..=u64::MAX;

impl Parameter {
    /// All parameters with a quantity, and congestion control. Those that `bdp sweep` varies come first, in the order in which they
    /// are used for curves.
    pub const ALL: [Self; 53] = {
        use Kind::{Count, Fraction, QueueLength, Rate, Size, Time, Word};
        use Unit::{Bytes, Number};
        [
            Self {
                axis: Some(Axis::WindowOnTheWire),
                ..new("window", Size, Bytes, 1..=WindowBytes::MAX as u64)
            },
            Self { axis: Some(Axis::Streams), ..new("streams", Count, Number, 1..=10_000) },
            Self { axis: Some(Axis::Length), ..new("length", Size, Bytes, 1..=64 << 20) },
            // Range of TCP_MAXSEG: TCP_MIN_MSS to MAX_TCP_WINDOW (include/net/tcp.h of Linux).
            Self { axis: Some(Axis::Mss), ..new("mss", Count, Bytes, 88..=32_767) },
            Self { axis: Some(Axis::Congestion), ..new("congestion", Word, Number, ANY) },
            new("bytes", Size, Bytes, 1..=1 << 60),
            // At least a datagram's number, time and identity; at most what the length field of IPv4 allows (RFC 768, RFC 791).
            new("datagram", Size, Bytes, 32..=65_507),
            new("burst", Size, Bytes, ANY),
            new("rate", Rate, Unit::BitsPerSecond, ANY),
            new("delay", Time, Unit::Nanoseconds, 0..=LONGEST_DELAY),
            new("jitter", Time, Unit::Nanoseconds, 0..=LONGEST_DELAY),
            new("uniform", Time, Unit::Nanoseconds, 0..=LONGEST_DELAY),
            new("normal", Time, Unit::Nanoseconds, 0..=LONGEST_DELAY),
            new("by", Time, Unit::Nanoseconds, 0..=LONGEST_DELAY),
            new("idle", Time, Unit::Nanoseconds, 0..=LONGEST_DELAY),
            new("start", Time, Unit::Nanoseconds, 0..=LONGEST_TEST),
            new("gap", Time, Unit::Nanoseconds, 0..=LONGEST_TEST),
            new("duration", Time, Unit::Nanoseconds, 0..=LONGEST_TEST),
            new("omit", Time, Unit::Nanoseconds, 0..=LONGEST_TEST),
            new("interval", Time, Unit::Nanoseconds, 10_000_000..=LONGEST_DELAY),
            new("guard", Time, Unit::Nanoseconds, 0..=LONGEST_TURN),
            new("turn", Time, Unit::Nanoseconds, 0..=LONGEST_TURN),
            new("loss", Fraction, Unit::Share, 0..=1),
            new("to_bad", Fraction, Unit::Share, 0..=1),
            new("to_good", Fraction, Unit::Share, 0..=1),
            new("loss_bad", Fraction, Unit::Share, 0..=1),
            new("loss_good", Fraction, Unit::Share, 0..=1),
            new("probability", Fraction, Unit::Share, 0..=1),
            new("duplicate", Fraction, Unit::Share, 0..=1),
            new("corrupt", Fraction, Unit::Share, 0..=1),
            new("target", Time, Unit::Nanoseconds, 1_000..=LONGEST_DELAY),
            new("ce_threshold", Time, Unit::Nanoseconds, 1_000..=LONGEST_DELAY),
            new("queue_samples", Time, Unit::Nanoseconds, 100_000..=LONGEST_DELAY),
            new("tupdate", Time, Unit::Nanoseconds, 1_000..=LONGEST_DELAY),
            new("step_thresh", Time, Unit::Nanoseconds, 1_000..=LONGEST_DELAY),
            new("min", Size, Bytes, 64..=1 << 20),
            new("max", Size, Bytes, 64..=1 << 20),
            new("avpkt", Size, Bytes, 64..=1 << 20),
            new("flows", Count, Number, 1..=65_536),
            new("quantum", Size, Bytes, 256..=1 << 20),
            new("kind", Word, Number, ANY),
            new("limit", QueueLength, Unit::Packets, 1..=u64::MAX),
            new("ecn_threshold", QueueLength, Unit::Packets, 1..=u64::MAX),
            new("mtu", Count, Bytes, 68..=65_535),
            new("overhead", Count, Bytes, 0..=1_000),
            new("drop_above", Count, Bytes, 1..=65_535),
            new("capture_snap", Count, Bytes, 64..=65_535),
            new("every", Count, Unit::Packets, 2..=1 << 62),
            new("window_field_max", Count, Number, 1..=65_535),
            new("window_scale", Count, Number, 0..=14),
            // A host parameter. Less than SOCK_MIN_RCVBUF (include/net/sock.h of Linux in its early form) holds no segment.
            new("receive_buffer", Size, Bytes, 2_304..=1 << 30),
            new("send_buffer", Size, Bytes, 2_304..=1 << 30),
            new("initial_window", Count, Unit::Packets, 1..=1_000),
        ]
    };

    /// Returns the parameter at a scenario's path, or of a measurement by its name. A sysctl counts as a number if it is one; unknown
    /// names are words.
    pub fn at(path: &str) -> Self {
        let last = path.rsplit('.').next().unwrap_or(path);
        let of_host = path.starts_with("hosts.");
        let known = |p: &Self| p.name == last && of_host == OF_HOSTS.contains(&last);
        match Self::ALL.into_iter().find(known) {
            Some(known) => known,
            None if of_host && path.contains(".sysctls.") => new("sysctl", Kind::Count, Unit::Number, ANY),
            None => {
                let option = SocketOption::all().iter().find(|option| !of_host && option.member == last);
                option.map_or(new("", Kind::Word, Unit::Number, ANY), Self::of_socket)
            }
        }
    }

    fn of_socket(option: &'static SocketOption) -> Self {
        let (kind, unit) = match option.notation {
            Notation::Size => (Kind::Size, Unit::Bytes),
            Notation::Number => (Kind::Count, Unit::Number),
        };
        new(option.member, kind, unit, 0..=option.most)
    }

    /// Returns the parameters that `bdp sweep` varies, each with its axis.
    pub fn swept() -> impl Iterator<Item = (Self, Axis)> {
        Self::ALL.into_iter().filter_map(|parameter| {
            let axis = parameter.axis?;
            Some((parameter, axis))
        })
    }

    /// Returns the parameter of an axis.
    pub fn of_axis(axis: Axis) -> Self {
        let axis = if axis == Axis::WindowAsked { Axis::WindowOnTheWire } else { axis };
        Self::ALL.into_iter().find(|p| p.axis == Some(axis)).unwrap_or_else(|| Self::at(""))
    }

    /// Parses a value in its base unit; `None` if it is a word ("auto", "none") or not such a quantity.
    pub fn read(&self, text: &str) -> Option<Quantity> {
        self.kind.read(text).map(|q| match self.kind {
            Kind::QueueLength => q,
            _ => Quantity { unit: self.unit, ..q },
        })
    }
}

impl Quantity {
    /// Whether both are the same quantity apart from rounding.
    pub fn is_about(self, other: Self) -> bool {
        let (a, b) = (self.value, other.value);
        self.unit == other.unit && (a - b).abs() <= 1e-9 * a.abs().max(b.abs())
    }
}

impl Kind {
    fn read(self, text: &str) -> Option<Quantity> {
        let text = text.trim();
        let count = |text: &str| text.parse::<i64>().ok().map(|n| n as f64);
        let bytes = |text: &str| text.parse::<ByteCount>().ok().map(|q| q.as_bytes() as f64);
        let (value, unit) = match self {
            Self::Size => (bytes(text)?, Unit::Bytes),
            Self::Rate => (text.parse::<Rate>().ok()?.as_bps() as f64, Unit::BitsPerSecond),
            Self::Time => (text.parse::<Nanos>().ok()?.as_ns() as f64, Unit::Nanoseconds),
            Self::Fraction => (text.parse::<Probability>().ok()?.fraction(), Unit::Share),
            Self::Count => (count(text)?, Unit::Number),
            Self::QueueLength => match count(text.strip_suffix('p').unwrap_or(text).trim()) {
                Some(packets) => (packets, Unit::Packets),
                None => (bytes(text)?, Unit::Bytes),
            },
            Self::Word => return None,
        };
        value.is_finite().then_some(Quantity { value, unit })
    }
}

/// Quantities of different units are unordered.
impl PartialOrd for Quantity {
    fn partial_cmp(&self, other: &Self) -> Option<Ordering> {
        (self.unit == other.unit).then(|| self.value.partial_cmp(&other.value))?
    }
}

const fn new(name: &'static str, kind: Kind, unit: Unit, range: RangeInclusive<u64>) -> Parameter {
    Parameter { name, kind, unit, range, axis: None }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_last_word_of_a_path_names_the_parameter() {
        for (path, kind, unit) in [
            ("window", Kind::Size, Unit::Bytes),
            ("flow.0.window", Kind::Size, Unit::Bytes),
            ("link.forward.delay", Kind::Time, Unit::Nanoseconds),
            ("link.reorder.probability", Kind::Fraction, Unit::Share),
            ("link.limit", Kind::QueueLength, Unit::Packets),
            ("link.mtu", Kind::Count, Unit::Bytes),
            ("hosts.far.sysctls.net.ipv4.tcp_sack", Kind::Count, Unit::Number),
            ("hosts.far.window", Kind::Word, Unit::Number),
            ("hosts.far.receive_buffer", Kind::Size, Unit::Bytes),
            ("hosts.far.initial_window", Kind::Count, Unit::Packets),
            ("hosts.far.sack", Kind::Word, Unit::Number),
            ("stack", Kind::Word, Unit::Number),
            ("flow.congestion", Kind::Word, Unit::Number),
            ("flow.direction", Kind::Word, Unit::Number),
            ("flow.unsent_limit", Kind::Size, Unit::Bytes),
            ("flow.priority", Kind::Count, Unit::Number),
            ("hosts.far.priority", Kind::Word, Unit::Number),
        ] {
            let parameter = Parameter::at(path);
            assert_eq!((parameter.kind, parameter.unit), (kind, unit), "{path}");
        }
    }

    #[test]
    fn no_name_stands_twice() {
        for (i, parameter) in Parameter::ALL.iter().enumerate() {
            assert!(!Parameter::ALL[..i].iter().any(|p| p.name == parameter.name), "{}", parameter.name);
        }
    }

    #[test]
    fn a_queue_is_as_long_as_its_packets_or_its_bytes() {
        let limit = Parameter::at("link.limit");
        for (text, expected) in [
            ("10", Some((10.0, Unit::Packets))),
            ("10p", Some((10.0, Unit::Packets))),
            (" 10 p ", Some((10.0, Unit::Packets))),
            ("64K", Some((65_536.0, Unit::Bytes))),
            ("1500B", Some((1_500.0, Unit::Bytes))),
            ("none", None),
        ] {
            assert_eq!(limit.read(text).map(|q| (q.value, q.unit)), expected, "{text}");
        }
    }
}
