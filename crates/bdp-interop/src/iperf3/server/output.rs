//! The server output that a client can request: what this end sent and received, second by second and in total.

use std::fmt::Write;

use bdp_model::units::{ByteCount, format_bps};

use crate::iperf3::outcome::{End, Outcome};

/// Interval of lines.
const LINE_NS: u64 = 1_000_000_000;
/// How much shorter an interval may be and still count as whole: samples are taken when their thread runs.
const SLACK_NS: u64 = 50_000_000;

/// Returns the lines.
pub(super) fn text(outcomes: &[Outcome]) -> String {
    let mut text = format!("bdp serve {}\n", env!("CARGO_PKG_VERSION"));
    for outcome in outcomes {
        describe(&mut text, outcome);
    }
    text
}

fn describe(text: &mut String, outcome: &Outcome) {
    let (what, readings): (_, Vec<(u64, u64)>) = match &outcome.end {
        End::Received(received) => {
            ("received", received.samples.iter().map(|s| (s.at_ns, s.bytes)).collect())
        }
        End::Sent(sent) => {
            ("sent", sent.samples.iter().filter_map(|s| Some((s.at_ns, s.acked_bytes?))).collect())
        }
    };
    for ((from_ns, before), (to_ns, bytes)) in intervals(&readings) {
        line(text, what, (from_ns, to_ns), bytes.saturating_sub(before));
    }
    let counted = outcome.counted.as_ns();
    let bytes = outcome.streams.iter().map(|stream| stream.bytes).sum();
    line(text, what, (0, counted), bytes);
    // The total line continues with what only it has.
    text.pop();
    text.push_str(" in all");
    let retransmits: u64 = outcome.streams.iter().filter_map(|stream| stream.retransmits).sum();
    if outcome.streams.iter().any(|stream| stream.retransmits.is_some()) {
        let _ = write!(text, ", {retransmits} retransmits");
    }
    let tallies = || outcome.streams.iter().map(|stream| stream.tally);
    let datagrams: u64 = tallies().map(|tally| tally.datagrams - tally.omitted).sum();
    if datagrams > 0 {
        let missing: u64 = tallies().map(|tally| tally.missing.saturating_sub(tally.omitted_missing)).sum();
        let jitter_ns = tallies().map(|tally| tally.jitter_ns).fold(0.0, f64::max);
        match outcome.end {
            End::Sent(_) => drop(write!(text, ", {datagrams} datagrams")),
            End::Received(_) => drop(write!(
                text,
                ", {missing} of {datagrams} datagrams missing, jitter {:.3} ms",
                jitter_ns / 1e6
            )),
        }
    }
    text.push('\n');
}

/// Readings about a second apart, and the last.
fn intervals(readings: &[(u64, u64)]) -> Vec<((u64, u64), (u64, u64))> {
    let mut intervals = Vec::new();
    let mut from = (0, 0);
    for (index, &reading) in readings.iter().enumerate() {
        let long = reading.0.saturating_sub(from.0);
        let is_last = index + 1 == readings.len();
        if long + SLACK_NS >= LINE_NS || is_last && long > SLACK_NS {
            intervals.push((from, reading));
            from = reading;
        }
    }
    intervals
}

fn line(text: &mut String, what: &str, (from_ns, to_ns): (u64, u64), bytes: u64) {
    let seconds = |ns: u64| ns as f64 / 1e9;
    let bps = bytes as f64 * 8.0 / seconds(to_ns.saturating_sub(from_ns).max(1));
    let _ = writeln!(
        text,
        "{what} {:.2} to {:.2} s: {}, {}",
        seconds(from_ns),
        seconds(to_ns),
        ByteCount::bytes(bytes),
        format_bps(bps)
    );
}

#[cfg(test)]
mod tests {
    use bdp_model::record::ReceiverSample;
    use bdp_model::units::Nanos;
    use bdp_wire::control::Received;

    use super::*;
    use crate::iperf3::outcome::StreamCount;
    use bdp_flow::datagram::StreamTally;

    #[test]
    fn a_second_is_a_line_and_all_is_the_last() {
        let at = |ms: u64, bytes| ReceiverSample { at_ns: ms * 1_000_000, bytes, ..Default::default() };
        let samples = vec![at(0, 0), at(500, 500), at(1_001, 1_000), at(1_999, 3_000), at(2_500, 4_000)];
        let tally = StreamTally { datagrams: 43, missing: 3, jitter_ns: 12_500.0, ..Default::default() };
        let outcome = Outcome {
            streams: vec![StreamCount { bytes: 4_000, retransmits: None, tally }],
            counted: Nanos::millis(2_500),
            congestion: None,
            end: End::Received(Received { samples, ..Default::default() }),
        };
        let lines = text(&[outcome]);
        let lines: Vec<&str> = lines.lines().skip(1).collect();
        assert_eq!(lines.len(), 4, "{lines:?}");
        assert!(lines[0].starts_with("received 0.00 to 1.00 s: "), "{lines:?}");
        assert!(lines[2].starts_with("received 2.00 to 2.50 s: "), "{lines:?}");
        assert!(lines[3].ends_with("in all, 3 of 43 datagrams missing, jitter 0.013 ms"), "{lines:?}");
    }
}
