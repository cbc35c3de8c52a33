//! Goodput as a curve over the swept parameter, and what follows from it: the knee, the range to choose for throughput and
//! for latency, the equivalent delivery delay, the memory needed by one sufficient window and by parallel streams.
//!
//! The rules are those of `docs/sweep.md`; their constants are defined only here.

use serde::{Deserialize, Serialize};

use crate::case::Family;
use crate::finding::threshold::AT_CEILING;
use crate::names;
use crate::path::overhead::{Transport, header_bytes};
use crate::statistics::comparison::Values;
use crate::statistics::median;
use crate::units::Nanos;

/// Fewest points for a knee.
pub const LEAST_POINTS: usize = 4;
/// The knee is the smallest measured value whose goodput is at least this share of the curve's plateau.
pub const KNEE_SHARE: f64 = 0.95;
/// From the smallest value with this share of the plateau, larger values gain nothing.
pub const FULL_SHARE: f64 = 0.99;
/// Points beyond the knee with at least this share of the plateau belong to it; lower ones have fallen back.
const PLATEAU_SHARE: f64 = 0.9;
/// A curve must rise before the knee: a point below this share of an earlier one contradicts that.
pub const RISING_SHARE: f64 = 0.8;
/// Beyond the knee, a point below this share with higher ones after it is more than chance.
const DIP_SHARE: f64 = 0.5;
/// Fewest points of a plateau for an estimate of its noise.
const LEAST_PLATEAU: usize = 3;
/// Confidence of the knee's interval.
pub const KNEE_CONFIDENCE: f64 = 0.9;
/// Student's t exceeded with 5 %, for 2 degrees of freedom and more; 1.645 in the limit.
const STUDENT_95: [f64; 9] = [2.920, 2.353, 2.132, 2.015, 1.943, 1.895, 1.860, 1.833, 1.812];
/// "A few packets" are this many full segments: fast retransmit needs three duplicates, delayed
/// acknowledgements two segments (RFC 5681, sections 3.2 and 4.2).
pub const FEW_SEGMENTS: u64 = 4;
/// Share of the idle round trip by which the loaded one may exceed it.
pub const LATENCY_SHARE: f64 = 0.1;
/// Minimum of that allowance: probe delay on a busy host.
pub const LATENCY_LEAST: Nanos = Nanos::micros(100);
/// An equivalent delay below this share of the idle round trip is not resolved.
pub const DELAY_RESOLUTION: f64 = 0.05;

/// Axis of a curve.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "snake_case")]
pub enum Axis {
    /// Window on the wire, bytes.
    WindowOnTheWire,
    /// Window requested, bytes, if that on the wire is not known for every point.
    WindowAsked,
    /// Parallel connections.
    Streams,
    /// Bytes per write.
    Length,
    /// Maximum segment size, bytes.
    Mss,
    /// Congestion control; its points have no order, so there is no knee.
    Congestion,
}

names!(
    Axis: WindowOnTheWire = "window on the wire", WindowAsked = "window asked", Streams = "streams",
        Length = "write length", Mss = "MSS", Congestion = "congestion control"
);

impl Axis {
    /// Whether it is one of the two windows.
    pub const fn is_window(self) -> bool {
        matches!(self, Self::WindowOnTheWire | Self::WindowAsked)
    }

    /// Whether its values are sizes in bytes.
    pub const fn is_size(self) -> bool {
        !matches!(self, Self::Streams | Self::Congestion)
    }
}

/// One curve.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct Curve {
    /// Name within the sweep: scenario and other parameters, or the direction.
    pub name: String,
    /// Path of the curve: curves over the same path differ only in window, streams and the like.
    pub path: String,
    /// Axis of the curve.
    pub axis: Axis,
    /// Bit rate of the path, if known: configured in a lab, the slower device otherwise.
    pub rate_bps: Option<u64>,
    /// Points with a goodput, in ascending order of [`Point::x`].
    pub points: Vec<Point>,
    /// Points without a valid run.
    #[serde(default)]
    pub unmeasured: Vec<Unmeasured>,
}

/// A point whose runs were all INVALID or FAILED.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct Unmeasured {
    /// Requested value, as text.
    pub asked: String,
    /// Requested value on the axis; for a window, the requested size.
    pub x: f64,
    /// Number of runs, none of them valid.
    pub runs: usize,
}

/// A point of a curve.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct Point {
    /// Requested value, as text.
    pub asked: String,
    /// Position on the axis, above 0.
    pub x: f64,
    /// Goodput of the valid runs, bit/s.
    pub goodput_bps: Values,
    /// Number of runs that are not valid.
    pub not_counted: usize,
    /// Goodput of the model, bit/s.
    pub expected_bps: Option<f64>,
    /// Parallel connections.
    pub streams: u32,
    /// Payload bytes of a full segment.
    pub mss_bytes: Option<u64>,
    /// Window requested, each stream.
    pub window_asked_bytes: Option<u64>,
    /// `SO_RCVBUF` of the receiver, each stream.
    pub socket_buffer_bytes: Option<u64>,
    /// Window on the wire, each stream.
    pub on_the_wire_bytes: Option<u64>,
    /// Smallest idle round trip.
    pub rtt_idle_ns: Option<u64>,
    /// 95th percentile of the idle round trips.
    pub rtt_idle_p95_ns: Option<u64>,
    /// 95th percentile of the loaded round trips.
    pub rtt_loaded_p95_ns: Option<u64>,
    /// Segments retransmitted.
    pub retransmits: Option<u64>,
}

/// An equivalent packet delivery delay.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "snake_case")]
pub enum DeliveryDelay {
    /// The delay in nanoseconds.
    Ns(u64),
    /// Below [`DELAY_RESOLUTION`] of the idle round trip: indistinguishable from none.
    BelowResolution,
}

impl Point {
    /// Returns the delay that, added to the idle round trip, explains the goodput by the window: 8W / goodput - idle RTT, W the
    /// windows on the wire of all streams. `None` if one of the three is unknown, or if no window was requested:
    /// an autotuned window runs ahead of the goodput and explains nothing.
    pub fn delivery_delay(&self) -> Option<DeliveryDelay> {
        self.window_asked_bytes?;
        let window = self.on_the_wire_bytes? as f64 * f64::from(self.streams.max(1));
        delivery_delay(window, self.goodput_bps.p50, self.rtt_idle_ns?)
    }

    /// Returns the socket buffers of all streams, bytes.
    pub fn memory_bytes(&self) -> Option<u64> {
        self.socket_buffer_bytes?.checked_mul(u64::from(self.streams.max(1)))
    }

    /// Whether the loaded round trip stays near the idle one; `None` if one of them is unknown.
    fn is_quick(&self) -> Option<bool> {
        let idle = self.rtt_idle_p95_ns.or(self.rtt_idle_ns)?;
        let slack =
            (self.rtt_idle_ns.unwrap_or(idle) as f64 * LATENCY_SHARE).max(LATENCY_LEAST.as_ns() as f64);
        Some(self.rtt_loaded_p95_ns? as f64 <= idle as f64 + slack)
    }

    /// Whether the window holds a few packets.
    fn holds_a_few(&self) -> bool {
        let window = self.on_the_wire_bytes.or(self.window_asked_bytes);
        window.zip(self.mss_bytes).is_some_and(|(w, mss)| w >= FEW_SEGMENTS * mss)
    }
}

/// Returns 8W / goodput - idle RTT, W in bytes; `None` if nothing arrived.
pub fn delivery_delay(window_bytes: f64, goodput_bps: f64, rtt_idle_ns: u64) -> Option<DeliveryDelay> {
    if goodput_bps <= 0.0 || !goodput_bps.is_finite() {
        return None;
    }
    let rtt = rtt_idle_ns as f64;
    let delay = 8.0 * window_bytes / goodput_bps * 1e9 - rtt;
    Some(if delay < DELAY_RESOLUTION * rtt {
        DeliveryDelay::BelowResolution
    } else {
        DeliveryDelay::Ns(delay as u64)
    })
}

/// Where a curve stops rising; indices refer to its points.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "snake_case")]
pub enum Knee {
    /// At this point.
    At(usize),
    /// The smallest measured value is large enough.
    Below,
    /// Only the largest measured value reaches the share, and the path carries more: a larger one may give more.
    Above,
}

/// Two points where goodput falls although the curve must rise or stay: it was determined by something other than the swept parameter.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Fall {
    /// Index of the higher point.
    pub from: usize,
    /// Index of the lower point, further along the axis.
    pub to: usize,
}

/// The level that a curve reaches and holds.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct Plateau {
    /// Median of its points' goodput, bit/s.
    pub bps: f64,
    /// Number of its points.
    pub points: usize,
    /// Noise: chance deviation of a point from the level, bit/s, exceeded with 5 % on each side; null with fewer than three points.
    pub noise_bps: Option<f64>,
}

/// Interval of the knee: above one value and not above another.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct KneeInterval {
    /// Value of the point before the first that may be the knee; null if that is the smallest of the sweep.
    pub above: Option<f64>,
    /// Value of the first point that is beyond doubt given the noise; null if there is none.
    pub up_to: Option<f64>,
}

/// A range of the axis to choose from, by indices of points, both ends inclusive.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct Range {
    /// Index of the first point.
    pub from: usize,
    /// Index of the last point.
    pub to: usize,
}

impl Curve {
    /// Creates a curve with its points in ascending order; points without an order keep theirs.
    pub fn new(
        name: String,
        path: String,
        axis: Axis,
        rate_bps: Option<u64>,
        mut points: Vec<Point>,
    ) -> Self {
        if axis != Axis::Congestion {
            points.sort_by(|a, b| a.x.total_cmp(&b.x));
        }
        Self { name, path, axis, rate_bps, points, unmeasured: Vec::new() }
    }

    /// Adds the points without a valid run.
    pub fn with_unmeasured(self, unmeasured: Vec<Unmeasured>) -> Self {
        Self { unmeasured, ..self }
    }

    /// Returns points without a valid run beyond the largest point: the curve may continue there.
    pub fn unmeasured_beyond(&self) -> impl Iterator<Item = &Unmeasured> {
        let largest = self.points.iter().map(|p| self.asked(p)).fold(0.0, f64::max);
        self.unmeasured.iter().filter(move |one| self.axis != Axis::Congestion && one.x > largest)
    }

    /// Returns points without a valid run between the previous point and this one: a knee here may lie there.
    pub fn unmeasured_below(&self, index: usize) -> impl Iterator<Item = &Unmeasured> {
        let asked = |index: usize| self.points.get(index).map(|p| self.asked(p));
        let (from, to) = (index.checked_sub(1).and_then(asked).unwrap_or(0.0), asked(index).unwrap_or(0.0));
        self.unmeasured.iter().filter(move |one| one.x > from && one.x < to)
    }

    /// Returns a point's position by the requested value.
    fn asked(&self, point: &Point) -> f64 {
        match self.axis {
            Axis::WindowOnTheWire => point.window_asked_bytes.map_or(point.x, |asked| asked as f64),
            _ => point.x,
        }
    }

    /// Returns the part of the rate available to goodput of TCP over IPv4, the link's own overhead not counted; `None` if the rate is unknown.
    fn ceiling_bps(&self) -> Option<f64> {
        let mss = self.points.iter().filter_map(|p| p.mss_bytes).max()?;
        let packet = mss + header_bytes(Family::Ipv4, Transport::TcpTimestamps);
        Some(self.rate_bps? as f64 * mss as f64 / packet as f64)
    }

    /// Whether a point reaches all that its path can carry, so that larger values gain nothing.
    pub fn is_full(&self, index: usize) -> bool {
        let goodput = self.points.get(index).map(|p| p.goodput_bps.p50);
        goodput.zip(self.ceiling_bps()).is_some_and(|(goodput, ceiling)| goodput >= AT_CEILING * ceiling)
    }

    /// Returns the best median goodput, bit/s; 0 without points.
    pub fn best_bps(&self) -> f64 {
        self.points.iter().map(|p| p.goodput_bps.p50).fold(0.0, f64::max)
    }

    /// Returns the plateau: the median of the points from the knee on that did not fall back, where the knee is the point that reaches
    /// [`KNEE_SHARE`] of it. Found by iteration from the best point, which of many noisy points is only the luckiest. With too
    /// few points, or without an order among them, the best.
    pub fn plateau(&self) -> Plateau {
        let best = Plateau { bps: self.best_bps(), points: 1, noise_bps: None };
        if self.axis == Axis::Congestion || self.points.len() < LEAST_POINTS {
            return best;
        }
        let mut level = best.bps;
        let mut members = Vec::new();
        // Each iteration's members follow from the level; more iterations than points only cycle.
        for _ in 0..=self.points.len() {
            let from = self.first_of(KNEE_SHARE * level).unwrap_or(0);
            members = self.points[from..].iter().map(|p| p.goodput_bps.p50).collect::<Vec<_>>();
            members.retain(|&bps| bps >= PLATEAU_SHARE * level);
            let Some(middle) = median(&mut members).filter(|&middle| middle != level) else { break };
            level = middle;
        }
        let noise_bps = (members.len() >= LEAST_PLATEAU).then(|| {
            let n = members.len() as f64;
            let mean = members.iter().sum::<f64>() / n;
            let deviation = (members.iter().map(|bps| (bps - mean).powi(2)).sum::<f64>() / (n - 1.0)).sqrt();
            let student = STUDENT_95.get(members.len() - LEAST_PLATEAU).copied().unwrap_or(1.812);
            // The noise of a point plus that of the level.
            student * deviation * (1.0 + 1.0 / n).sqrt()
        });
        Plateau { bps: level, points: members.len(), noise_bps }
    }

    /// Returns the interval of the knee, given the scatter of the plateau's points: 90 %, 5 % on each side. Assumes that all points are
    /// as noisy as those. `None` if they are too few.
    pub fn knee_interval(&self) -> Option<KneeInterval> {
        self.knee()?;
        let plateau = self.plateau();
        let noise = plateau.noise_bps?;
        let first = self.first_of(KNEE_SHARE * plateau.bps - noise)?;
        Some(KneeInterval {
            above: first.checked_sub(1).map(|before| self.points[before].x),
            up_to: self.first_of(KNEE_SHARE * plateau.bps + noise).map(|at| self.points[at].x),
        })
    }

    /// Returns where the curve falls although it must rise: below the knee a larger window, or more streams, never carry less. Beyond the knee
    /// it may fall back, but not recover. The smallest window is never the best. `None` if it does not fall, or with too few points.
    pub fn fall(&self) -> Option<Fall> {
        if self.axis == Axis::Congestion || self.points.len() < LEAST_POINTS {
            return None;
        }
        let goodput = |index: usize| self.points[index].goodput_bps.p50;
        let best = |upto: usize| (0..upto).max_by(|&a, &b| goodput(a).total_cmp(&goodput(b)));
        let last = self.points.len() - 1;
        let knee = self.first_with(KNEE_SHARE).unwrap_or(last);
        let below = (1..=knee).find_map(|to| {
            let from = best(to).filter(|&from| goodput(to) < RISING_SHARE * goodput(from))?;
            Some(Fall { from, to })
        });
        let beyond = || {
            (knee + 1..last).find_map(|to| {
                let comes_back = (to + 1..=last).any(|later| goodput(to) < DIP_SHARE * goodput(later));
                (comes_back && goodput(to) < DIP_SHARE * goodput(knee)).then_some(Fall { from: knee, to })
            })
        };
        let only = || {
            let falls = (1..=last).all(|to| goodput(to) < RISING_SHARE * goodput(0));
            (self.axis.is_window() && falls).then_some(Fall { from: 0, to: 1 })
        };
        below.or_else(beyond).or_else(only)
    }

    /// Returns the first point whose goodput is at least [`KNEE_SHARE`] of the [plateau](Self::plateau); `None` if there are too few
    /// points, no order among them, or if the curve [falls](Self::fall) although it must rise. The largest point can be the knee if it
    /// [fills](Self::is_full) the path.
    pub fn knee(&self) -> Option<Knee> {
        if self.axis == Axis::Congestion || self.points.len() < LEAST_POINTS || self.fall().is_some() {
            return None;
        }
        Some(match self.first_with(KNEE_SHARE) {
            Some(0) => Knee::Below,
            Some(index) if index + 1 < self.points.len() || self.is_full(index) => Knee::At(index),
            _ => Knee::Above,
        })
    }

    /// Returns the range for throughput: from the knee to where nothing more is gained. `None` if the curve still rises at its end.
    pub fn for_throughput(&self) -> Option<Range> {
        match self.knee()? {
            Knee::Above => None,
            Knee::Below | Knee::At(_) => {
                let (from, to) = (self.first_with(KNEE_SHARE)?, self.first_with(FULL_SHARE)?);
                Some(Range { from, to: to.max(from) })
            }
        }
    }

    /// Returns the range for latency, for a curve over windows: from the smallest window that holds a few packets to the largest up to
    /// which the loaded round trip stays near the idle one. `None` if no window does both, or a round trip is unknown.
    pub fn for_latency(&self) -> Option<Range> {
        if !self.axis.is_window() {
            return None;
        }
        let from = self.points.iter().position(Point::holds_a_few)?;
        let quick = self.points[from..].iter().take_while(|p| p.is_quick() == Some(true)).count();
        (quick > 0).then(|| Range { from, to: from + quick - 1 })
    }

    /// Returns rate x idle round trip in bytes, the window that the path needs, with both factors: the known rate, or else
    /// the best goodput.
    pub fn product(&self) -> Option<Product> {
        let rtt = Nanos(self.points.iter().filter_map(|p| p.rtt_idle_ns).min()?);
        let rate_bps = self.rate_bps.map_or_else(|| self.best_bps(), |rate| rate as f64);
        Some(Product { bytes: rate_bps * rtt.as_secs_f64() / 8.0, rate_bps, rtt })
    }

    /// Returns where more points are most useful: the geometric mean of the knee and the point before it, unless they are already closer
    /// than `closest` (a ratio above 1). Rounded to whole units.
    pub fn bend(&self, closest: f64) -> Option<f64> {
        let Knee::At(at) = self.knee()? else { return None };
        let (before, at) = (self.points.get(at.checked_sub(1)?)?.x, self.points[at].x);
        let middle = (before * at).sqrt().round();
        (at / before > closest && middle > before && middle < at).then_some(middle)
    }

    /// Whether larger values have no valid run although the points below them leave room.
    pub fn may_go_on(&self) -> bool {
        let reached = (0..self.points.len()).any(|index| self.is_full(index));
        !reached
            && !matches!(self.knee(), Some(Knee::At(_) | Knee::Below))
            && self.unmeasured_beyond().next().is_some()
    }

    fn first_with(&self, share: f64) -> Option<usize> {
        self.first_of(share * self.plateau().bps)
    }

    fn first_of(&self, bps: f64) -> Option<usize> {
        self.points.iter().position(|p| p.goodput_bps.p50 >= bps)
    }
}

/// The product of rate and idle round trip.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct Product {
    /// In bytes.
    pub bytes: f64,
    /// The rate, bit/s.
    pub rate_bps: f64,
    /// The idle round trip.
    pub rtt: Nanos,
}

/// Memory of one sufficient window, and of parallel streams with the same goodput.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct Memory {
    /// Memory of one stream.
    pub one: Need,
    /// Memory of several streams.
    pub parallel: Need,
}

/// Windows, and the socket buffers that they need.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct Need {
    /// Number of connections.
    pub streams: u32,
    /// Window on the wire of each connection.
    pub window_bytes: u64,
    /// Socket buffers of all connections at the receiver; null if the kernel did not report them.
    pub buffer_bytes: Option<u64>,
    /// Whether this was measured, not calculated.
    pub measured: bool,
}

impl Memory {
    /// Returns the memory for each path that has curves, by its name; see [`Memory::of`].
    pub fn by_path(curves: &[Curve]) -> Vec<(String, Self)> {
        let mut paths: Vec<&str> = Vec::new();
        for curve in curves {
            if !paths.contains(&curve.path.as_str()) {
                paths.push(&curve.path);
            }
        }
        let of = |path: &str| -> Vec<Curve> { curves.iter().filter(|c| c.path == path).cloned().collect() };
        paths.into_iter().filter_map(|path| Some((path.to_owned(), Self::of(&of(path))?))).collect()
    }

    /// Compares all curves over one path: the least memory of one stream, and the least of several, that give [`KNEE_SHARE`] of the
    /// highest plateau. What was not measured is calculated: one window of rate x RTT; or as many streams of the smallest
    /// requested window that holds a few packets as add up to the sufficient one. `None` if the windows are
    /// unknown, or the highest curve may rise further.
    pub fn of(curves: &[Curve]) -> Option<Self> {
        let highest = curves.iter().max_by(|a, b| a.plateau().bps.total_cmp(&b.plateau().bps))?;
        if highest.knee() == Some(Knee::Above) || highest.may_go_on() || highest.fall().is_some() {
            return None;
        }
        let best = highest.plateau().bps;
        let all = || curves.iter().flat_map(|c| &c.points).filter(|p| p.on_the_wire_bytes.is_some());
        let fitting = || all().filter(|p| best > 0.0 && p.goodput_bps.p50 >= KNEE_SHARE * best);
        let least = |several: bool| {
            fitting()
                .filter(|p| (p.streams > 1) == several)
                .filter_map(Need::measured)
                .min_by_key(|n| (n.buffer_bytes.unwrap_or(u64::MAX), n.window_bytes * u64::from(n.streams)))
        };
        // Bytes of socket buffer per byte of window.
        let ratio =
            |p: &Point| Some(p.socket_buffer_bytes? as f64 / p.on_the_wire_bytes.filter(|&w| w > 0)? as f64);
        let one = || {
            // Only a curve over streams shows what a single sufficient window would do.
            let window = curves.iter().filter(|c| c.axis == Axis::Streams).find_map(Curve::product)?.bytes;
            let near = all().min_by_key(|p| p.on_the_wire_bytes.unwrap_or(0).abs_diff(window as u64))?;
            let buffer_bytes = ratio(near).map(|r| (r * window) as u64);
            Some(Need { streams: 1, window_bytes: window as u64, buffer_bytes, measured: false })
        };
        let parallel = |one: Need| {
            let small = all()
                .filter(|p| p.streams <= 1 && p.window_asked_bytes.is_some() && p.holds_a_few())
                .min_by(|a, b| a.x.total_cmp(&b.x))?;
            let window = small.on_the_wire_bytes?;
            let streams = u32::try_from(one.window_bytes.div_ceil(window.max(1))).ok().filter(|&n| n > 1)?;
            let buffer_bytes = small.socket_buffer_bytes.map(|b| b * u64::from(streams));
            Some(Need { streams, window_bytes: window, buffer_bytes, measured: false })
        };
        let one = least(false).or_else(one)?;
        Some(Self { one, parallel: least(true).or_else(|| parallel(one))? })
    }
}

impl Need {
    fn measured(point: &Point) -> Option<Self> {
        Some(Self {
            streams: point.streams.max(1),
            window_bytes: point.on_the_wire_bytes?,
            buffer_bytes: point.memory_bytes(),
            measured: true,
        })
    }
}

/// Returns `points` values from `from` to `to`, both above 0 and included, evenly spaced by their logarithm and rounded to whole
/// numbers, without duplicates.
pub fn log_spaced(from: u64, to: u64, points: usize) -> Vec<u64> {
    let (first, ratio) = (from as f64, to as f64 / from.max(1) as f64);
    let mut values: Vec<u64> = (0..points)
        .map(|i| match i {
            0 => from,
            i if i + 1 == points => to,
            i => (first * ratio.powf(i as f64 / (points - 1) as f64)).round() as u64,
        })
        .collect();
    values.dedup();
    values
}

/// Returns the default number of points of a range: one for each doubling, 5 to 17.
pub fn usual_points(from: u64, to: u64) -> usize {
    let doublings = (to.max(1) as f64 / from.max(1) as f64).log2().abs();
    (doublings.ceil() as usize + 1).clamp(5, 17)
}
