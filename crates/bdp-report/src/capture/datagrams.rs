//! What the headers of a flow's datagrams show, in words and figures.

use bdp_model::capture::{
    CapturedDatagrams, CapturedEcho, CapturedQuic, CapturedRtt, CapturedSpin, CapturedStream,
    ClockRateSource, ExplainedFlow, FlowEnd, QuicHandshake, SpinState,
};
use bdp_model::units::Nanos;

use crate::finding::{rate, time};
use crate::number::percent;

/// Totals of the streams in a flow's main direction: numbers lost and expected, and the largest jitter.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(super) struct Main {
    pub lost: u64,
    pub expected: u64,
    pub jitter_ns: Option<f64>,
}

/// Whether the datagrams of a flow reveal anything.
pub(crate) fn are_known(found: &ExplainedFlow) -> bool {
    let ways = &found.flow.directions;
    let says = |way: &CapturedDatagrams| !way.streams.is_empty() || way.echo.is_some();
    found.flow.quic.is_some() || ways.iter().filter_map(|way| way.datagrams.as_deref()).any(says)
}

/// Whether the main direction has streams with numbered datagrams.
pub(crate) fn has_streams(found: &ExplainedFlow) -> bool {
    main(found).is_some()
}

/// Returns the totals of the main direction, if it has streams.
pub(super) fn main(found: &ExplainedFlow) -> Option<Main> {
    let streams = &found.flow.directions[found.main_direction()].datagrams.as_deref()?.streams;
    let sum = |of: fn(&CapturedStream) -> u64| streams.iter().map(of).sum();
    let jitter_ns = streams.iter().filter_map(|stream| stream.jitter_ns).reduce(f64::max);
    (!streams.is_empty()).then(|| Main { lost: sum(|s| s.lost), expected: sum(|s| s.expected), jitter_ns })
}

/// Returns the smallest round trip: from echoes sent here, from a spin bit end to end, or from the first answer in a QUIC handshake.
pub(super) fn rtt_min_ns(found: &ExplainedFlow) -> Option<u64> {
    let ways = found.flow.directions.iter().filter_map(|way| way.datagrams.as_deref());
    let echoes = ways.filter_map(|way| way.echo?.rtt);
    let spins = found.flow.quic.iter().flat_map(|quic| quic.spin.rtt).flatten();
    let least = echoes.chain(spins).map(|rtt| rtt.min.as_ns()).min();
    least.or_else(|| found.flow.quic.as_ref()?.first_answer_ns)
}

/// Returns the protocol of a UDP flow, as far as known.
pub(super) fn protocol(found: &ExplainedFlow) -> &'static str {
    if found.flow.quic.is_some() {
        return "quic";
    }
    let ways = found.flow.directions.iter().filter_map(|way| way.datagrams.as_deref());
    let mut streams = ways.flat_map(|way| &way.streams);
    streams.next().map_or("udp", |stream| stream.protocol.name())
}

/// Returns a line for each subject with something to report.
pub(crate) fn lines(found: &ExplainedFlow) -> Vec<(&'static str, String)> {
    let mut lines = Vec::new();
    if let Some(quic) = &found.flow.quic {
        lines.extend([("QUIC", connection(quic)), ("spin bit", spin(&quic.spin))]);
    }
    let main = found.main_direction();
    for way in [main, 1 - main] {
        let Some(datagrams) = found.flow.directions[way].datagrams.as_deref() else { continue };
        let lead = if way == main { "stream" } else { "back" };
        lines.extend(datagrams.streams.iter().map(|one| (lead, stream(one))));
        if datagrams.more_streams {
            lines.push((lead, "further streams were not followed".to_owned()));
        }
        lines.extend(datagrams.echo.as_ref().map(|one| ("echo", echo(one))));
        if datagrams.headers_cut > 0 {
            let words = format!(
                "too little was kept of {} datagrams to look at their headers: what they are is unknown",
                datagrams.headers_cut
            );
            lines.push(("cut", words));
        }
    }
    lines
}

/// `rtp 0xdeadbeef, payload type 96: 3 of 200 lost (1.5 %); ...`.
fn stream(one: &CapturedStream) -> String {
    let mut words = one.protocol.name().to_owned();
    if let Some(ssrc) = one.ssrc {
        words.push_str(&format!(" {ssrc:#010x}"));
    }
    if !one.payload_types.is_empty() {
        let types: Vec<String> = one.payload_types.iter().map(u8::to_string).collect();
        words.push_str(&format!(", payload type {}", types.join(" and ")));
    }
    if let Some(bps) = one.rate_bps {
        words.push_str(&format!(", {}", rate(bps)));
    }
    let share = one.lost as f64 / one.expected.max(1) as f64;
    words.push_str(&format!(": {} of {} datagrams lost ({})", one.lost, one.expected, percent(share)));
    let counts = [
        (one.reordered, "reordered"),
        (one.duplicates, "duplicates"),
        (one.stale, "that fit no number"),
        (one.restarts, "times the numbers began anew"),
    ];
    for (count, what) in counts.iter().filter(|(count, _)| *count > 0) {
        words.push_str(&format!(", {count} {what}"));
    }
    match (one.jitter_ns, one.jitter_mean_ns, one.jitter_max_ns) {
        (Some(last), Some(mean), Some(most)) => {
            let [last, mean, most] = [last, mean, most].map(|ns| time(Nanos(ns as u64)));
            words.push_str(&format!("; jitter {last} at the end, {mean} on average, {most} at most"));
        }
        _ => words.push_str("; jitter unknown"),
    }
    if let Some(rate) = one.clock_rate_hz {
        let how = match one.clock_rate_from {
            Some(ClockRateSource::PayloadType) => "by its payload type",
            _ => "as its timestamps run",
        };
        words.push_str(&format!(" (clock of {rate} Hz {how})"));
    } else if one.ssrc.is_some() {
        words.push_str(" (the rate of its clock is unknown)");
    }
    words
}

fn echo(one: &CapturedEcho) -> String {
    let mut words = format!("{} of {} requests answered", one.answered, one.sent);
    for (count, what) in [(one.duplicates, "answered twice"), (one.unasked, "answers to none that was seen")]
    {
        if count > 0 {
            words.push_str(&format!(", {count} {what}"));
        }
    }
    if let Some(rtt) = &one.rtt {
        words.push_str(&format!("; RTT {}", round_trips(rtt)));
    }
    words
}

fn round_trips(rtt: &CapturedRtt) -> String {
    format!(
        "{} at least, {} median, {} at the 95th percentile ({} samples)",
        time(rtt.min),
        time(rtt.p50),
        time(rtt.p95),
        rtt.samples
    )
}

fn connection(quic: &CapturedQuic) -> String {
    let version = match quic.version {
        1 => "version 1".to_owned(),
        0x6b33_43cf => "version 2".to_owned(),
        draft if draft >> 8 == 0x00ff_0000 => format!("draft {}", draft & 0xff),
        other => format!("version {other:#010x}"),
    };
    let mut words = version;
    if quic.client == FlowEnd::B {
        words.push_str(", the second end is the client");
    }
    for (is_seen, what) in [
        (quic.retry, "Retry"),
        (quic.version_negotiation, "Version Negotiation"),
        (quic.zero_rtt > 0, "0-RTT"),
    ] {
        if is_seen {
            words.push_str(&format!(", {what}"));
        }
    }
    if let Some(ns) = quic.first_answer_ns {
        words.push_str(&format!("; first answer {} after the client's first Initial", time(Nanos(ns))));
    }
    match (quic.handshake, quic.handshake_ns) {
        (QuicHandshake::Known, Some(ns)) => {
            words.push_str(&format!("; handshake {} to the client's first 1-RTT packet", time(Nanos(ns))));
        }
        (QuicHandshake::BeginningMissing, _) => words.push_str("; its beginning was not captured"),
        (QuicHandshake::Cut, _) => {
            words.push_str("; handshake time unknown: too little of its packets was kept")
        }
        _ => words.push_str("; the handshake did not come to an end here"),
    }
    words
}

fn spin(spin: &CapturedSpin) -> String {
    match spin.state {
        SpinState::Constant => "does not spin: an end has it disabled, and the RTT is unknown".to_owned(),
        SpinState::Erratic => {
            "changes at random, as where an end has it disabled: the RTT is unknown".to_owned()
        }
        SpinState::TooFew => "too few packets: the RTT is unknown".to_owned(),
        SpinState::OneWay => "only one way was captured: the RTT is unknown".to_owned(),
        SpinState::Spins => {
            let [a, b] = &spin.rtt;
            let most = if b.map_or(0, |rtt| rtt.samples) > a.map_or(0, |rtt| rtt.samples) { b } else { a };
            let mut words = most
                .as_ref()
                .map_or_else(|| "RTT unknown".to_owned(), |rtt| format!("RTT {}", round_trips(rtt)));
            if let [Some(a), Some(b)] = &spin.to_ends {
                let (a, b) = (time(a.min), time(b.min));
                words.push_str(&format!(
                    "; at least {a} from here to the end that began and back, {b} to the other"
                ));
            }
            if spin.out_of_turn > 0 {
                words.push_str(&format!("; {} packets out of turn", spin.out_of_turn));
            }
            words
        }
    }
}
