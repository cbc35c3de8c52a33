//! One flow of a capture in detail.

use bdp_model::capture::{CapturedData, CapturedTcp, Ended, ExplainedFlow, MultipathSubflow, Offer, Vantage};
use bdp_model::measurement::Direction;
use bdp_model::units::Nanos;

use super::datagrams::lines as datagram_lines;
use super::words::ends;
use crate::finding::{rate, size, time};
use crate::grid::wrap;
use crate::measurement::arrow;
use crate::measurement::conclusion::findings_lines;
use crate::number::percent;
use crate::style::{Style, Tint};
use crate::time_spent;

/// Returns everything known about the flow.
pub(super) fn text(number: usize, found: &ExplainedFlow, style: &Style) -> String {
    let main = found.main_direction();
    let mut text = wrap("", Tint::Strong, &title(number, found), style);
    for (lead, words) in lines(found) {
        text.push_str(&wrap(&format!("{lead:<11}"), Tint::Faint, &words, style));
    }
    let arrow = arrow(Direction::To, style);
    text.push_str(&findings_lines(arrow, &found.findings[main], "", style));
    text.push_str(&time_spent::line(arrow, found.facts[main].as_deref(), style));
    text
}

/// `flow 1: 198.18.0.1:48946 -> 198.18.0.2:35193, 41.2 MiB in 7 s, 49.3 Mbit/s`.
pub(crate) fn title(number: usize, found: &ExplainedFlow) -> String {
    let flow = &found.flow;
    let way = &flow.directions[found.main_direction()];
    let mut title = format!("flow {number}: {}, {}", ends(found), size(way.payload_bytes as f64));
    title.push_str(&format!(" in {}", time(Nanos(flow.to_ns - flow.from_ns))));
    if let Some(bps) = way.goodput_bps.filter(|bps| bps.is_finite()) {
        title.push_str(&format!(", {}", rate(bps)));
    }
    title
}

/// Returns the observations, a line for each subject with something to report.
pub(crate) fn lines(found: &ExplainedFlow) -> Vec<(&'static str, String)> {
    let mut lines = Vec::new();
    if let Some(tcp) = &found.flow.tcp {
        lines.extend([("handshake", handshake(tcp)), ("captured", captured(tcp))]);
        lines.extend(tcp.multipath_subflow.map(|subflow| ("multipath", multipath(subflow).to_owned())));
    }
    if let Some(data) = &found.flow.directions[found.main_direction()].tcp {
        lines.extend([
            ("RTT", round_trips(data)),
            ("windows", windows(data)),
            ("losses", losses(data)),
            ("order", order(data)),
            ("receiver", receiver(data)),
        ]);
    }
    lines.extend(datagram_lines(found));
    lines.retain(|(_, words)| !words.is_empty());
    lines
}

fn handshake(tcp: &CapturedTcp) -> String {
    let CapturedTcp { offers: [a, b], handshake_rtt_ns, ended, .. } = tcp;
    let ending = match ended {
        Ended::Open => "still open at the end",
        Ended::HalfClosed => "closed by one end",
        Ended::Closed => "closed by both ends",
        Ended::Reset => "reset",
    };
    let (Some(a), Some(b)) = (a, b) else {
        return format!("not captured whole: windows have no scale and options are not known; {ending}");
    };
    let pair = |of: &dyn Fn(&Offer) -> String| {
        let (a, b) = (of(a), of(b));
        if a == b { a } else { format!("{a} and {b}") }
    };
    let option = |name: &str, of: fn(&Offer) -> bool| match (of(a), of(b)) {
        (true, true) => name.to_owned(),
        (false, false) => format!("no {name}"),
        (true, false) => format!("{name} refused by the other end"),
        (false, true) => format!("{name} not asked for"),
    };
    let took = handshake_rtt_ns.map_or_else(String::new, |ns| format!("{}; ", time(Nanos(ns))));
    format!(
        "{took}MSS {}, window scale {}, first windows {} and {}; {}, {}, {}; {ending}",
        pair(&|offer| offer.mss.map_or_else(|| "none".to_owned(), |mss| mss.to_string())),
        pair(&|offer| offer.window_scale.map_or_else(|| "none".to_owned(), |shift| shift.to_string())),
        size(f64::from(a.window)),
        size(f64::from(b.window)),
        option("SACK", |offer| offer.sack),
        option("timestamps", |offer| offer.timestamps),
        option("ECN", |offer| offer.ecn),
    )
}

fn captured(tcp: &CapturedTcp) -> String {
    let [a, b] = tcp.to_ends_ns;
    let far = |ns: Option<u64>| ns.map_or_else(|| "unknown".to_owned(), |ns| time(Nanos(ns)));
    let place = match tcp.vantage {
        Some(Vantage::NearA) => "at or near the end that began",
        Some(Vantage::NearB) => "at or near the end that answered",
        Some(Vantage::Between) => "on the way between the two",
        None => "nobody knows where",
    };
    let mut words = format!("{place}: {} to the end that began and back, {} to the other", far(a), far(b));
    if tcp.one_way {
        words.push_str("; only one way was captured, so that nothing is said of acknowledgements");
    }
    if tcp.super_packets {
        words.push_str("; some packets are several segments that a network card cuts or joins: their times are not those on the wire");
    }
    words
}

fn multipath(subflow: MultipathSubflow) -> &'static str {
    match subflow {
        MultipathSubflow::Initial => {
            "multipath TCP subflow, the initial one: one subflow is not the whole transfer"
        }
        MultipathSubflow::Additional => {
            "multipath TCP subflow, an additional one: one subflow is not the whole transfer"
        }
        MultipathSubflow::Unknown => "multipath TCP subflow: one subflow is not the whole transfer",
    }
}

fn round_trips(data: &CapturedData) -> String {
    let Some(rtt) = data.rtt_to_receiver else { return "unknown".to_owned() };
    let own = data.rtt_min_ns.unwrap_or(0).saturating_sub(rtt.min.as_ns());
    let add = |ns: Nanos| time(Nanos(ns.as_ns() + own));
    format!(
        "{} at least, {} median, {} at the 95th percentile, {} at most ({} samples)",
        add(rtt.min),
        add(rtt.p50),
        add(rtt.p95),
        add(rtt.max),
        rtt.samples
    )
}

fn windows(data: &CapturedData) -> String {
    let mut words = format!(
        "{} in flight at most, {} before the first acknowledgement",
        size(data.in_flight_most_bytes as f64),
        size(data.initial_flight_bytes as f64)
    );
    if let Some((least, most)) = data.window_least_bytes.zip(data.window_most_bytes) {
        words.push_str(&format!("; receive window {} to {}", size(least as f64), size(most as f64)));
    }
    if let Some(waits) = data.window_waits {
        words.push_str(&format!(
            ", full after {} segments: the sender then waited {} (median of {})",
            data.window_full,
            time(waits.p50),
            waits.samples
        ));
    }
    if let Some(stalls) = data.window_stalls {
        words.push_str(&format!(
            "; of these waits {} took half a round trip or more, {} (median): the sender was idle",
            stalls.samples,
            time(stalls.p50)
        ));
    }
    words
}

fn losses(data: &CapturedData) -> String {
    let again = &data.retransmissions;
    if again.segments == 0 {
        return format!("none in {} segments", data.segments);
    }
    let share = again.segments as f64 / data.segments.max(1) as f64;
    let mut words = format!("{} segments retransmitted ({})", again.segments, percent(share));
    let kinds = [
        (again.fast, "by fast retransmit"),
        (again.timeout, "after a timeout"),
        (again.tail_loss_probe, "as tail loss probe"),
        (again.unclear, "for no reason that shows"),
    ];
    let kinds: Vec<String> =
        kinds.iter().filter(|(n, _)| *n > 0).map(|(n, what)| format!("{n} {what}")).collect();
    words.push_str(&format!(": {}", kinds.join(", ")));
    if again.needless_reported > 0 {
        words.push_str(&format!("; {} of them needless, as the receiver reports", again.needless_reported));
    }
    if data.lost_before_here > 0 {
        words.push_str(&format!("; {} were lost before they came here", data.lost_before_here));
    }
    words.push_str(&format!("; {} congestion events", data.episodes));
    if let Some((guess, kept)) = data.congestion_control.and_then(|guess| Some((guess, guess.kept?))) {
        words.push_str(&format!(
            "; the sender keeps {} of its window after a loss, as {} does",
            percent(kept),
            guess.like.name()
        ));
    }
    words
}

fn order(data: &CapturedData) -> String {
    let mut all = Vec::new();
    if data.reordered > 0 {
        all.push(format!("{} segments overtaken, by {} at most", data.reordered, data.reordered_most));
    }
    if data.duplicates > 0 {
        all.push(format!("{} packets are in the capture twice", data.duplicates));
    }
    if data.duplicated_by_network > 0 {
        all.push(format!("{} segments reached the receiver twice", data.duplicated_by_network));
    }
    if data.missing_bytes > 0 {
        all.push(format!("{} acknowledged and not in the capture", size(data.missing_bytes as f64)));
    }
    if data.marked > 0 || data.echoes > 0 {
        all.push(format!(
            "{} packets with a congestion mark, {} acknowledgements that echo one",
            data.marked, data.echoes
        ));
    }
    all.join("; ")
}

fn receiver(data: &CapturedData) -> String {
    let mut all = Vec::new();
    if data.zero_windows > 0 {
        let closed = time(Nanos(data.zero_window_ns));
        all.push(format!(
            "window closed in {} packets, for {closed} in all, {} probes",
            data.zero_windows, data.probes
        ));
    }
    if data.keep_alives > 0 {
        all.push(format!("{} keep-alives", data.keep_alives));
    }
    if data.duplicate_acks > 0 {
        all.push(format!("{} duplicate acknowledgements", data.duplicate_acks));
    }
    all.join("; ")
}
