//! The window: bytes in flight for a rate, the rate of a window, and the goodput that a path and a window must give.

use super::{cubic, mathis, persist};
use crate::units::{ByteCount, Nanos, Rate, format_bps};

/// The bandwidth-delay product, rounded up: the smallest window that keeps `rate` busy over `rtt`.
///
/// `None` where it does not fit in 64 bits.
pub fn bytes_in_flight(rate: Rate, rtt: Nanos) -> Option<ByteCount> {
    const BITS_PER_BYTE_TIMES_NS: u128 = 8_000_000_000;
    let bit_ns = u128::from(rate.as_bps()) * u128::from(rtt.as_ns());
    u64::try_from(bit_ns.div_ceil(BITS_PER_BYTE_TIMES_NS)).ok().map(ByteCount::bytes)
}

/// The rate of one window a round trip, `W x 8 / RTT`, in bit/s; infinite where the round trip takes no time.
pub fn rate_bps(window: ByteCount, rtt: Nanos) -> f64 {
    window.as_bytes() as f64 * 8.0 / rtt.as_secs_f64()
}

/// A path as one direction of TCP data sees it.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Path {
    /// Bit rate of its slowest link; `None` where no link has one.
    pub rate: Option<Rate>,
    /// Bytes that the slowest link adds to each IP packet, see [`super::overhead`].
    pub overhead_bytes: u64,
    /// Payload of a full segment.
    pub mss_bytes: u64,
    /// IP and TCP headers of a full segment.
    pub header_bytes: u64,
    /// Smallest idle round trip.
    pub rtt: Nanos,
    /// Probability that a data segment is lost; 0 where none is.
    pub loss: f64,
    /// What the sender does about loss.
    pub congestion: Congestion,
}

/// Congestion control, as far as there is a model of its rate under loss.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Congestion {
    /// Reno: the model of [`mathis`] for periodic loss.
    Reno,
    /// CUBIC: the model of [`cubic`].
    Cubic,
    /// BBR and every other: loss alone bounds nothing that a model here knows.
    Unmodelled,
}

impl Congestion {
    /// By the name that the kernel has for it.
    pub fn from_name(name: &str) -> Self {
        match name {
            "reno" | "newreno" => Self::Reno,
            "cubic" => Self::Cubic,
            _ => Self::Unmodelled,
        }
    }
}

/// The window of each stream as its sender saw it, and how it came to be.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum WindowOnWire {
    /// The receiver's autotuning, which is to follow the path: no bound.
    Autotuned,
    /// Bytes that the receiver advertised from the SYN on.
    Receiver(u64),
    /// Bytes that a clamp on the path left after the handshake.
    PathClamp(u64),
}

/// What a flow must reach, and why.
#[derive(Debug, Clone, PartialEq)]
pub struct Expectation {
    /// Goodput of all streams, bit/s.
    pub bps: f64,
    /// The term that ruled, in words with its numbers: `window / RTT: 45 x 1448 B / 173 ms`.
    pub by: String,
}

/// The goodput that `streams` flows with this window must reach on this path: the least of
///
/// - ceiling: `rate x MSS / (MSS + headers + overhead)`, shared by all streams;
/// - window: `floor(W / MSS) x MSS x 8 / (RTT + 2 x serialisation of a segment)` for each stream. The sender sends
///   whole segments; the last of a window is behind its own serialisation and the next window's first behind its;
/// - window below one segment: from the SYN on, senders shrink their segments and `W x 8 / RTT` holds; behind a clamp
///   that comes after the handshake, the persist timer rules ([`persist`]);
/// - loss, for each stream, where there is any and a model for the congestion control.
///
/// `None` where nothing bounds the goodput, or the path is no path (an MSS of 0). Zero streams count as one.
pub fn expect_goodput(path: &Path, window: &WindowOnWire, streams: u32) -> Option<Expectation> {
    bounds(path, window, streams).into_iter().min_by(|a, b| a.bps.total_cmp(&b.bps))
}

/// Every term that bounds the goodput of `streams` flows, in the order of [`expect_goodput`].
pub fn bounds(path: &Path, window: &WindowOnWire, streams: u32) -> Vec<Expectation> {
    if path.mss_bytes == 0 {
        return Vec::new();
    }
    let streams = streams.max(1);
    [ceiling(path), window_bound(path, window, streams), loss_bound(path, streams)]
        .into_iter()
        .flatten()
        .filter(|bound| bound.bps.is_finite())
        .collect()
}

/// The link's rate less headers and overhead.
fn ceiling(path: &Path) -> Option<Expectation> {
    let share = path.mss_bytes as f64 / segment_wire_bytes(path) as f64;
    let bps = path.rate?.as_bps() as f64 * share;
    Some(Expectation { bps, by: format!("ceiling: {}", format_bps(bps)) })
}

/// What the receiver allows, all streams together.
fn window_bound(path: &Path, window: &WindowOnWire, streams: u32) -> Option<Expectation> {
    let (bytes, clamped) = match *window {
        WindowOnWire::Autotuned => return None,
        WindowOnWire::Receiver(bytes) => (bytes, false),
        WindowOnWire::PathClamp(bytes) => (bytes, true),
    };
    let rtt = path.rtt;
    let segments = bytes / path.mss_bytes;
    let each = match (segments, clamped) {
        (0, true) => Expectation {
            bps: persist::rate_bps(bytes, path.mss_bytes, rtt),
            by: format!("persist timer: {bytes} B each {} + 2 x {rtt}, and rests", persist::TIMER),
        },
        (0, false) => Expectation {
            bps: rate_bps(ByteCount::bytes(bytes), rtt),
            by: format!("window / RTT: {bytes} B in small segments / {rtt}"),
        },
        _ => whole_segments(path, segments),
    };
    Some(times(streams, each))
}

/// A window of whole segments, one stream.
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
        by: format!("window / RTT: {segments} x {mss} B / {over}"),
    }
}

/// What loss allows, all streams together.
fn loss_bound(path: &Path, streams: u32) -> Option<Expectation> {
    if path.loss.is_nan() || path.loss <= 0.0 {
        return None;
    }
    let (model, bps) = match path.congestion {
        Congestion::Reno => {
            ("Mathis, C = 1.22", mathis::rate_bps(path.mss_bytes, path.rtt, path.loss, mathis::C_PERIODIC))
        }
        Congestion::Cubic => ("CUBIC, RFC 9438", cubic::rate_bps(path.mss_bytes, path.rtt, path.loss)),
        Congestion::Unmodelled => return None,
    };
    let by = format!("loss: {model}, p = {}, {} B / {}", short(path.loss), path.mss_bytes, path.rtt);
    Some(times(streams, Expectation { bps, by }))
}

/// Up to four significant digits: a probability of several links is a product, and no number of few digits.
fn short(probability: f64) -> String {
    let decimals = (3.0 - probability.log10().floor()).clamp(0.0, 300.0) as usize;
    let digits = format!("{probability:.decimals$}");
    if digits.contains('.') { digits.trim_end_matches('0').trim_end_matches('.').to_owned() } else { digits }
}

/// So many streams, each with its own bound.
fn times(streams: u32, each: Expectation) -> Expectation {
    if streams == 1 {
        return each;
    }
    let by = match each.by.split_once(": ") {
        Some((term, numbers)) => format!("{term}: {streams} x {numbers}"),
        None => each.by,
    };
    Expectation { bps: each.bps * f64::from(streams), by }
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
            loss: 0.0,
            congestion: Congestion::Reno,
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
    fn loss_bounds_where_there_is_a_model() {
        let clean = path(Rate::mbps(1000), Nanos::millis(100));
        let lossy = |congestion| Path { mss_bytes: 1460, header_bytes: 40, loss: 1e-4, congestion, ..clean };
        let by = "loss: Mathis, C = 1.22, p = 0.0001, 1460 B / 100 ms";
        expect(&lossy(Congestion::Reno), WindowOnWire::Autotuned, 1, "14.31", by);
        let by = "loss: CUBIC, RFC 9438, p = 0.0001, 1460 B / 100 ms";
        expect(&lossy(Congestion::Cubic), WindowOnWire::Autotuned, 1, "21.89", by);
        let by = "loss: 4 x CUBIC, RFC 9438, p = 0.0001, 1460 B / 100 ms";
        expect(&lossy(Congestion::Cubic), WindowOnWire::Autotuned, 4, "87.55", by);
        let bbr = lossy(Congestion::from_name("bbr"));
        expect(&bbr, WindowOnWire::Autotuned, 1, "949.28", "ceiling: 949.3 Mbit/s");
        // A window smaller than what loss allows still rules.
        let by = "window / RTT: 2 x 1460 B / (100 ms + 2 x 12.3 us)";
        expect(&lossy(Congestion::Reno), WindowOnWire::Receiver(2920), 1, "0.2335", by);
    }

    #[test]
    fn where_nothing_bounds_nothing_is_expected() {
        let open = Path { rate: None, ..path(Rate::mbps(1), Nanos::millis(1)) };
        assert_eq!(expect_goodput(&open, &WindowOnWire::Autotuned, 1), None);
        let instant = Path { rtt: Nanos::ZERO, ..open };
        assert_eq!(expect_goodput(&instant, &WindowOnWire::Receiver(65_536), 1), None);
        let nothing = Path { mss_bytes: 0, ..open };
        assert_eq!(expect_goodput(&nothing, &WindowOnWire::Receiver(65_536), 1), None);
        let nan = Path { loss: f64::NAN, ..open };
        assert_eq!(expect_goodput(&nan, &WindowOnWire::Autotuned, 1), None);
    }
}
