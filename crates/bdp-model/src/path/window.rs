//! Windows: bytes in flight for a rate, the rate of a window, and the goodput expected of a path and a window.

use super::loss::SegmentLoss;
use super::{cubic, delayed_ack, mathis, persist};
use crate::units::{ByteCount, Nanos, Rate, format_bps};

/// The bandwidth-delay product, rounded up: the smallest window that keeps `rate` busy over `rtt`.
///
/// `None` if it does not fit in 64 bits.
pub fn bytes_in_flight(rate: Rate, rtt: Nanos) -> Option<ByteCount> {
    const BITS_PER_BYTE_TIMES_NS: u128 = 8_000_000_000;
    let bit_ns = u128::from(rate.as_bps()) * u128::from(rtt.as_ns());
    u64::try_from(bit_ns.div_ceil(BITS_PER_BYTE_TIMES_NS)).ok().map(ByteCount::bytes)
}

/// The rate of one window per round trip, `W x 8 / RTT`, in bit/s; infinite if the round trip is zero.
pub fn rate_bps(window: ByteCount, rtt: Nanos) -> f64 {
    window.as_bytes() as f64 * 8.0 / rtt.as_secs_f64()
}

/// A path as one direction of TCP data sees it.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Path {
    /// Bit rate of its slowest link; `None` if no link has one.
    pub rate: Option<Rate>,
    /// Bytes that the slowest link adds to each IP packet, see [`super::overhead`].
    pub overhead_bytes: u64,
    /// Payload of a full segment.
    pub mss_bytes: u64,
    /// IP and TCP headers of a full segment.
    pub header_bytes: u64,
    /// Smallest idle round trip.
    pub rtt: Nanos,
    /// Loss pattern of the data segments.
    pub loss: SegmentLoss,
    /// The sender's congestion control.
    pub congestion: Congestion,
    /// Duration of sending; `None` if unlimited.
    pub sends_for: Option<Nanos>,
}

/// Highest loss at which BBR is expected to reach the path's rate: Cardwell et al., "BBR: Congestion-Based Congestion Control", ACM Queue
/// 14(5), 2016, figure 8, where it does so up to 5 % and more.
pub const BBR_LOSS_MAX: f64 = 0.01;

/// Fewest round trips between losses for which the models of Reno and CUBIC are valid. Each loss takes a round trip or two of recovery,
/// which they ignore: at this distance, a simulation of each ACK is within 12 % of them (`tests/loss_models.rs`).
pub const ROUND_TRIPS_BETWEEN_LOSSES: f64 = 20.0;

/// Fewest losses of a flow for which the models of Reno and CUBIC, which are means over many losses, are valid. With fewer, chance and
/// the slow start before the first loss decide the rate.
pub const FEWEST_LOSSES: f64 = 5.0;

/// Congestion controls, by their model of the rate with loss.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Congestion {
    /// Reno: the model of [`mathis`].
    Reno,
    /// CUBIC: the model of [`cubic`].
    Cubic,
    /// BBR, which does not treat loss as congestion: no bound up to [`BBR_LOSS_MAX`].
    Bbr,
    /// Any other: there is no model of its reaction to loss.
    Unmodelled,
}

impl Congestion {
    /// Returns the congestion control with this name in the kernel.
    pub fn from_name(name: &str) -> Self {
        match name {
            "reno" | "newreno" => Self::Reno,
            "cubic" => Self::Cubic,
            "bbr" => Self::Bbr,
            _ => Self::Unmodelled,
        }
    }
}

/// The window of each stream as seen by its sender, and its origin.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum WindowOnWire {
    /// The receiver's autotuning, which follows the path: no bound.
    Autotuned,
    /// Bytes advertised by the receiver from the SYN on.
    Receiver(u64),
    /// Bytes that a clamp on the path allows after the handshake.
    PathClamp(u64),
}

/// A range whose lower end is closer to the upper end is printed as one number.
const WORTH_A_RANGE: f64 = 0.95;

/// The expected goodput of a flow, and its reason.
#[derive(Debug, Clone, PartialEq)]
pub struct Expectation {
    /// Goodput of all streams, bit/s.
    pub bps: f64,
    /// Lowest expected goodput if the model gives a range, see [`delayed_ack`]; otherwise the same as `bps`.
    pub least_bps: f64,
    /// The binding term in words with its numbers: `window / RTT: 45 x 1448 B / 173 ms`.
    pub by: String,
}

impl Expectation {
    /// An expectation without a range.
    pub fn exactly(bps: f64, by: String) -> Self {
        Self { bps, least_bps: bps, by }
    }

    /// The lower end, if the range is wide enough to mention.
    pub fn range_from_bps(&self) -> Option<f64> {
        (self.least_bps < self.bps * WORTH_A_RANGE).then_some(self.least_bps)
    }

    /// Combines two bounds: the smaller one, or the first if they are equal.
    pub fn and(self, other: Self) -> Self {
        let least_bps = self.least_bps.min(other.least_bps);
        let ruling = if other.bps < self.bps { other } else { self };
        Self { least_bps, ..ruling }
    }
}

/// The goodput expected of `streams` flows with this window on this path: the smallest of
///
/// - ceiling: `rate x MSS / (MSS + headers + overhead)`, shared by all streams;
/// - window: `floor(W / MSS) x MSS x 8 / (RTT + 2 x serialisation of a segment)` for each stream. The sender sends
///   whole segments; a window's last segment waits for its own serialisation and the next window's first for its own. The ACK of one
///   segment may be delayed ([`delayed_ack`]), which gives a range;
/// - window below one segment: if advertised from the SYN on, senders shrink their segments and `W x 8 / RTT` applies; with a clamp
///   after the handshake, the persist timer decides ([`persist`]);
/// - loss, for each stream, if there is any.
///
/// `None` if nothing bounds the goodput, if there is loss without a model of its cost, or if the path is invalid
/// (an MSS of 0). Zero streams count as one.
pub fn expect_goodput(path: &Path, window: &WindowOnWire, streams: u32) -> Option<Expectation> {
    if path.mss_bytes == 0 || !loss_is_modelled(path, window, streams) {
        return None;
    }
    let streams = streams.max(1);
    let by_loss = match loss_bound(path, streams) {
        LossBound::At { bound, .. } => Some(bound),
        LossBound::None | LossBound::Unknown => None,
    };
    bounds_without_loss(path, window, streams).chain(by_loss).reduce(Expectation::and)
}

/// What bounds a flow's goodput.
#[derive(Debug, Clone, Copy, PartialEq, Eq, serde::Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Bound {
    /// The rate of the slowest link.
    Rate,
    /// The window.
    Window,
    /// Loss.
    Loss,
}

/// Each bound on the goodput of [`expect_goodput`], in that order.
pub fn bounds(path: &Path, window: &WindowOnWire, streams: u32) -> Vec<(Bound, Expectation)> {
    if path.mss_bytes == 0 {
        return Vec::new();
    }
    let streams = streams.max(1);
    let by_loss = match loss_bound(path, streams) {
        LossBound::At { bound, .. } => Some(bound),
        LossBound::None | LossBound::Unknown => None,
    };
    let all = [
        (Bound::Rate, ceiling(path)),
        (Bound::Window, window_bound(path, window, streams)),
        (Bound::Loss, by_loss),
    ];
    let finite = |(bound, expected): (Bound, Option<Expectation>)| {
        expected.filter(|expected| expected.bps.is_finite()).map(|expected| (bound, expected))
    };
    all.into_iter().filter_map(finite).collect()
}

/// Whether the cost of loss is known for this path, window and number of streams; if not, no bound gives the goodput.
pub fn loss_is_modelled(path: &Path, window: &WindowOnWire, streams: u32) -> bool {
    let streams = streams.max(1);
    match loss_bound(path, streams) {
        LossBound::None => true,
        LossBound::Unknown => false,
        LossBound::At { bound, holds } => {
            holds || bounds_without_loss(path, window, streams).any(|other| other.bps <= bound.bps)
        }
    }
}

/// The bounds on the goodput other than loss.
fn bounds_without_loss(
    path: &Path,
    window: &WindowOnWire,
    streams: u32,
) -> impl Iterator<Item = Expectation> {
    let bounds = [ceiling(path), window_bound(path, window, streams)];
    bounds.into_iter().flatten().filter(|bound| bound.bps.is_finite())
}

/// The link's rate without headers and overhead.
fn ceiling(path: &Path) -> Option<Expectation> {
    let share = path.mss_bytes as f64 / segment_wire_bytes(path) as f64;
    let bps = path.rate?.as_bps() as f64 * share;
    Some(Expectation::exactly(bps, format!("ceiling: {}", format_bps(bps))))
}

/// The bound of the window, all streams together.
fn window_bound(path: &Path, window: &WindowOnWire, streams: u32) -> Option<Expectation> {
    let (bytes, clamped) = match *window {
        WindowOnWire::Autotuned => return None,
        WindowOnWire::Receiver(bytes) => (bytes, false),
        WindowOnWire::PathClamp(bytes) => (bytes, true),
    };
    let rtt = path.rtt;
    let segments = bytes.checked_div(path.mss_bytes)?;
    let each = match (segments, clamped) {
        (0, true) => Expectation::exactly(
            persist::rate_bps(bytes, path.mss_bytes, rtt),
            format!("persist timer: {bytes} B each {} + 2 x {rtt}, and rests", persist::TIMER),
        ),
        (0, false) => Expectation::exactly(
            rate_bps(ByteCount::bytes(bytes), rtt),
            format!("window / RTT: {bytes} B in small segments / {rtt}"),
        ),
        _ => whole_segments(path, segments),
    };
    Some(times(streams, each))
}

/// The bound of a window of whole segments, one stream.
fn whole_segments(path: &Path, segments: u64) -> Expectation {
    let mss = path.mss_bytes;
    let serialisation = path.rate.map_or(Nanos::ZERO, |rate| rate.serialisation(segment_wire_bytes(path)));
    let turn = path.rtt + serialisation + serialisation;
    let over = if serialisation == Nanos::ZERO {
        path.rtt.to_string()
    } else {
        format!("({} + 2 x {serialisation})", path.rtt)
    };
    Expectation {
        bps: super::rate_of_segments_bps(segments as f64, mss, turn),
        least_bps: delayed_ack::least_bps(segments, mss, turn),
        by: format!("window / RTT: {segments} x {mss} B / {over}"),
    }
}

/// The bound set by loss.
enum LossBound {
    /// No bound.
    None,
    /// A bound, and whether the flow sends for long enough that it is valid.
    At { bound: Expectation, holds: bool },
    /// There is loss, and no model of its cost.
    Unknown,
}

/// The bound set by loss, all streams together.
fn loss_bound(path: &Path, streams: u32) -> LossBound {
    let loss = if streams > 1 { path.loss.shared() } else { path.loss };
    let (p, independent) = match loss {
        SegmentLoss::None => return LossBound::None,
        SegmentLoss::Independent(p) => (p, true),
        SegmentLoss::Periodic(p) => (p, false),
        SegmentLoss::Unmodelled => return LossBound::Unknown,
    };
    let (model, window) = match (path.congestion, independent) {
        (Congestion::Reno, true) => ("Mathis, C = 1.31", mathis::window_segments(p, mathis::C_INDEPENDENT)),
        (Congestion::Reno, false) => ("Mathis, C = 1.22", mathis::window_segments(p, mathis::C_PERIODIC)),
        (Congestion::Cubic, true) => {
            ("CUBIC, independent loss", cubic::independent_window_segments(path.rtt, p))
        }
        (Congestion::Cubic, false) => ("CUBIC, RFC 9438", cubic::window_segments(path.rtt, p)),
        (Congestion::Bbr, _) if p <= BBR_LOSS_MAX => return LossBound::None,
        (Congestion::Bbr | Congestion::Unmodelled, _) => return LossBound::Unknown,
    };
    if p.is_nan() || p * window * ROUND_TRIPS_BETWEEN_LOSSES > 1.0 {
        return LossBound::Unknown;
    }
    let bps = super::rate_of_segments_bps(window, path.mss_bytes, path.rtt);
    if bps.is_infinite() {
        return LossBound::None;
    }
    let losses = |time: Nanos| p * window * (time.as_secs_f64() / path.rtt.as_secs_f64());
    let holds = path.sends_for.is_none_or(|time| losses(time) >= FEWEST_LOSSES);
    let by = format!("loss: {model}, p = {}, {} B / {}", short(p), path.mss_bytes, path.rtt);
    LossBound::At { bound: times(streams, Expectation::exactly(bps, by)), holds }
}

/// Prints up to four significant digits: the probability of several links is a product with many digits.
fn short(probability: f64) -> String {
    let decimals = (3.0 - probability.log10().floor()).clamp(0.0, 300.0) as usize;
    let digits = format!("{probability:.decimals$}");
    if digits.contains('.') { digits.trim_end_matches('0').trim_end_matches('.').to_owned() } else { digits }
}

/// The bound of several streams with the same bound each.
fn times(streams: u32, each: Expectation) -> Expectation {
    if streams == 1 {
        return each;
    }
    let by = match each.by.split_once(": ") {
        Some((term, numbers)) => format!("{term}: {streams} x {numbers}"),
        None => each.by,
    };
    let all = |bps: f64| bps * f64::from(streams);
    Expectation { bps: all(each.bps), least_bps: all(each.least_bps), by }
}

/// Bytes of a full segment on the slowest link.
fn segment_wire_bytes(path: &Path) -> u64 {
    path.mss_bytes.saturating_add(path.header_bytes).saturating_add(path.overhead_bytes)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::path::vectors::{assert_mbps, assert_prints};

    #[test]
    fn probabilities_print_without_the_noise_of_their_product() {
        let of_two_links = 1.0 - (1.0 - 0.000_5) * (1.0 - 0.0);
        assert_eq!(short(of_two_links), "0.0005");
        for (p, text) in
            [(0.01, "0.01"), (1.0 - 0.99 * 0.98, "0.0298"), (1e-7, "0.0000001"), (1.0, "1"), (0.5, "0.5")]
        {
            assert_eq!(short(p), text);
        }
    }

    /// Ethernet, IPv4, timestamps.
    fn path(rate: Rate, rtt: Nanos) -> Path {
        Path {
            rate: Some(rate),
            overhead_bytes: 38,
            mss_bytes: 1448,
            header_bytes: 52,
            rtt,
            loss: SegmentLoss::None,
            congestion: Congestion::Reno,
            sends_for: None,
        }
    }

    #[track_caller]
    fn expect(path: &Path, window: WindowOnWire, streams: u32, mbps: &str, by: &str) {
        let expectation = expect_goodput(path, &window, streams).unwrap();
        assert_eq!(expectation.by, by);
        assert_mbps(expectation.bps, mbps);
    }

    #[test]
    fn published_products_come_out() {
        let bytes = |rate, rtt| bytes_in_flight(rate, rtt).unwrap().as_bytes();
        assert_eq!(bytes(Rate::mbps(1000), Nanos::micros(2550)), 318_750);
        assert_eq!(bytes(Rate::mbps(100), Nanos::micros(2450)), 30_625);
        // 100 Mbit/s taken as 100 x 1024^2.
        let mib = bytes(Rate::bps(100 * 1024 * 1024), Nanos::millis(173)) as f64 / 1_048_576.0;
        assert_prints(mib, "2.1625");
        assert_eq!(bytes_in_flight(Rate::bps(u64::MAX), Nanos(u64::MAX)), None);
        assert_eq!(bytes(Rate::bps(1), Nanos(1)), 1);
    }

    #[test]
    fn published_rates_of_windows_come_out() {
        let rate = |bytes, rtt| rate_bps(ByteCount::bytes(bytes), rtt);
        assert_mbps(rate(64 * 1024, Nanos::millis(173)), "3.031");
        assert_mbps(rate(128 * 1024, Nanos::millis(173)), "6.061");
        assert_mbps(rate(64_240, Nanos::millis(51)), "10.08");
        assert_mbps(rate(64_240, Nanos::micros(940)), "547");
        assert_mbps(rate(30_000, Nanos::millis(41)), "5.854");
        assert_mbps(rate(30_720, Nanos::millis(41)), "5.99");
    }

    #[test]
    fn a_small_window_rules_by_whole_segments() {
        let far = path(Rate::mbps(100), Nanos::millis(173));
        let w64 = WindowOnWire::Receiver(65_536);
        expect(&far, w64, 1, "3.0089", "window / RTT: 45 x 1448 B / (173 ms + 2 x 123 us)");
        let by = "window / RTT: 10 x 90 x 1448 B / (173 ms + 2 x 123 us)";
        expect(&far, WindowOnWire::Receiver(131_072), 10, "60.18", by);
        let unlimited = Path { rate: None, ..far };
        expect(&unlimited, w64, 1, "3.0132", "window / RTT: 45 x 1448 B / 173 ms");
    }

    #[test]
    fn the_acknowledgement_of_one_segment_may_wait() {
        let near = Path { rate: None, ..path(Rate::mbps(1000), Nanos::millis(2)) };
        let of = |window, streams| {
            let e = expect_goodput(&near, &WindowOnWire::Receiver(window), streams).unwrap();
            (e.least_bps / e.bps * 1e4).round() / 1e4
        };
        // Two of three go in each round trip, 21 of 22; several streams each have theirs.
        assert_eq!([of(3 * 1448, 1), of(22 * 1448, 1), of(3 * 1448, 4)], [0.6667, 0.9545, 0.6667]);
        // Below a segment and at the ceiling there is no range.
        assert_eq!(of(576, 1), 1.0);
        let full =
            expect_goodput(&path(Rate::mbps(10), Nanos::millis(2)), &WindowOnWire::Receiver(1 << 20), 1);
        assert_eq!(full.as_ref().map(|e| e.least_bps), full.map(|e| e.bps));
    }

    /// One byte more than 21 segments adds nothing; one byte less costs a whole segment.
    #[test]
    fn a_fraction_of_a_segment_does_not_count() {
        let path = path(Rate::mbps(1000), Nanos::millis(41));
        let bps = |w| expect_goodput(&path, &WindowOnWire::Receiver(w), 1).unwrap().bps;
        let full = 21 * 1448;
        assert_eq!(bps(full), bps(full + 1));
        assert!((bps(full - 1) / bps(full) - 20.0 / 21.0).abs() < 1e-12);
    }

    #[test]
    fn the_ceiling_bounds_all_streams_together() {
        let near = path(Rate::mbps(1000), Nanos::micros(2550));
        for streams in [1, 10, 1000] {
            expect(&near, WindowOnWire::Autotuned, streams, "941.48", "ceiling: 941.5 Mbit/s");
        }
        expect(&near, WindowOnWire::Receiver(1 << 20), 1, "941.48", "ceiling: 941.5 Mbit/s");
        let w56 = WindowOnWire::Receiver(56_000);
        expect(&near, w56, 1, "171.0", "window / RTT: 38 x 1448 B / (2.55 ms + 2 x 12.3 us)");
        expect(&near, w56, 10, "941.48", "ceiling: 941.5 Mbit/s");
    }

    #[test]
    fn below_one_segment_it_matters_who_made_the_window_small() {
        let path = path(Rate::mbps(1000), Nanos::millis(40));
        expect(
            &path,
            WindowOnWire::Receiver(576),
            1,
            "0.115",
            "window / RTT: 576 B in small segments / 40 ms",
        );
        expect(
            &path,
            WindowOnWire::PathClamp(576),
            1,
            "0.0161",
            "persist timer: 576 B each 200 ms + 2 x 40 ms, and rests",
        );
        expect(
            &path,
            WindowOnWire::PathClamp(1448),
            1,
            "0.289",
            "window / RTT: 1 x 1448 B / (40 ms + 2 x 12.3 us)",
        );
    }

    #[test]
    fn loss_bounds_by_its_pattern() {
        let clean = path(Rate::mbps(1000), Nanos::millis(100));
        let lossy = |congestion, loss| Path { mss_bytes: 1460, header_bytes: 40, loss, congestion, ..clean };
        let (random, periodic) = (SegmentLoss::Independent(1e-4), SegmentLoss::Periodic(1e-4));
        let auto = WindowOnWire::Autotuned;
        let by = "loss: Mathis, C = 1.31, p = 0.0001, 1460 B / 100 ms";
        expect(&lossy(Congestion::Reno, random), auto, 1, "15.30", by);
        let by = "loss: Mathis, C = 1.22, p = 0.0001, 1460 B / 100 ms";
        expect(&lossy(Congestion::Reno, periodic), auto, 1, "14.31", by);
        let by = "loss: CUBIC, RFC 9438, p = 0.0001, 1460 B / 100 ms";
        expect(&lossy(Congestion::Cubic, periodic), auto, 1, "21.89", by);
        let by = "loss: 4 x CUBIC, independent loss, p = 0.0001, 1460 B / 100 ms";
        expect(&lossy(Congestion::Cubic, random), auto, 4, "98.87", by);
        let bbr = lossy(Congestion::from_name("bbr"), random);
        expect(&bbr, auto, 1, "949.28", "ceiling: 949.3 Mbit/s");
        // A window smaller than what loss allows still binds.
        let by = "window / RTT: 2 x 1460 B / (100 ms + 2 x 12.3 us)";
        expect(&lossy(Congestion::Reno, random), WindowOnWire::Receiver(2920), 1, "0.2335", by);
    }

    /// Not even a ceiling or a window: each is a bound, and what loss costs below it is not known.
    #[test]
    fn loss_without_a_model_leaves_nothing_to_expect() {
        let clean = path(Rate::mbps(1000), Nanos::millis(100));
        let of = |congestion, loss, streams| {
            expect_goodput(&Path { loss, congestion, ..clean }, &WindowOnWire::Receiver(30_000), streams)
        };
        for congestion in [Congestion::Reno, Congestion::Cubic, Congestion::Bbr, Congestion::Unmodelled] {
            assert_eq!(of(congestion, SegmentLoss::Unmodelled, 1), None);
            assert!(of(congestion, SegmentLoss::None, 1).is_some());
            // Of 100 segments one: 8 round trips between losses.
            assert_eq!(of(congestion, SegmentLoss::Independent(0.02), 1), None);
        }
        assert_eq!(of(Congestion::from_name("vegas"), SegmentLoss::Independent(1e-6), 1), None);
        assert!(of(Congestion::Reno, SegmentLoss::Independent(1e-3), 2).is_some());
        // Every thousandth of all packets is not every thousandth of each stream's.
        assert!(of(Congestion::Reno, SegmentLoss::Periodic(1e-3), 1).is_some());
        assert_eq!(of(Congestion::Reno, SegmentLoss::Periodic(1e-3), 2), None);
    }

    #[test]
    fn a_handful_of_losses_has_no_mean() {
        // Reno at one in a million sends 13,100 segments a second: one is lost in 76 s.
        let lossy =
            Path { loss: SegmentLoss::Independent(1e-6), ..path(Rate::mbps(10_000), Nanos::millis(100)) };
        let of = |secs| {
            expect_goodput(&Path { sends_for: Some(Nanos::secs(secs)), ..lossy }, &WindowOnWire::Autotuned, 1)
        };
        assert_eq!(of(10), None);
        assert_eq!(of(380), None);
        assert_eq!(of(390), expect_goodput(&lossy, &WindowOnWire::Autotuned, 1));
        // If a window or the rate binds, loss does not.
        let few = Path { sends_for: Some(Nanos::secs(10)), ..lossy };
        let window = WindowOnWire::Receiver(1_000_000);
        assert_eq!(expect_goodput(&few, &window, 1), expect_goodput(&lossy, &window, 1));
        assert!(loss_is_modelled(&few, &window, 1) && !loss_is_modelled(&few, &WindowOnWire::Autotuned, 1));
    }

    #[test]
    fn where_nothing_bounds_nothing_is_expected() {
        let open = Path { rate: None, ..path(Rate::mbps(1), Nanos::millis(1)) };
        assert_eq!(expect_goodput(&open, &WindowOnWire::Autotuned, 1), None);
        let instant = Path { rtt: Nanos::ZERO, ..open };
        assert_eq!(expect_goodput(&instant, &WindowOnWire::Receiver(65_536), 1), None);
        let nothing = Path { mss_bytes: 0, ..open };
        assert_eq!(expect_goodput(&nothing, &WindowOnWire::Receiver(65_536), 1), None);
        let nan = Path { loss: SegmentLoss::Independent(f64::NAN), ..open };
        assert_eq!(expect_goodput(&nan, &WindowOnWire::Autotuned, 1), None);
    }
}
