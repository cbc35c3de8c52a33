//! Text output of `bdp ping`: the request, the figures, the histogram, and notes.

mod csv;
mod histogram;

use bdp_model::probes::ping::{Distribution, Fate, Ping, PingMethod, PingMode, PingRequest, Sample, Tally};
use bdp_model::statistics::nearest_rank;
use bdp_model::units::Nanos;

use crate::caveat;
use crate::grid::{Align, Cell, Column, render, tame, wrap};
use crate::number::{percent, three_digits};
use crate::style::{Style, Tint};

pub use csv::csv_of_ping;

/// Round trips below this are printed in microseconds.
const FINE_BELOW_NS: u64 = 10_000_000;

/// Fewest round trips for a histogram; with fewer, most rows would be empty.
const LEAST_DRAWN: u64 = 10;

/// Returns the report of a ping, in several lines.
pub fn ping_text(ping: &Ping, style: &Style) -> String {
    let mut text = wrap("", Tint::None, &heading(ping), style);
    text.push('\n');
    if let Some(rtt) = &ping.rtt_ns {
        text.push_str(&figures(ping, rtt, style));
        text.push('\n');
    }
    text.push_str(&wrap("probes   ", Tint::Faint, &tally(&ping.probes), style));
    if let Some(jitter) = ping.jitter_ns {
        let jitter = format!("{}, mean difference between one round trip and the next", Nanos(jitter));
        text.push_str(&wrap("jitter   ", Tint::Faint, &jitter, style));
    }
    text.push_str(&wrap("method   ", Tint::Faint, &method_words(&ping.method), style));
    for caveat in &ping.caveats {
        text.push_str(&wrap("NOTE     ", Tint::Doubtful, &caveat::text(caveat), style));
    }
    if ping.histogram.iter().map(|bucket| bucket.count).sum::<u64>() >= LEAST_DRAWN {
        text.push('\n');
        text.push_str(&histogram::draw(&ping.histogram, style));
    }
    text
}

/// Returns, in a sentence, how a round trip was made and between which events it was timed.
pub(crate) fn method_words(method: &PingMethod) -> String {
    match method {
        PingMethod::Handshakes => {
            "TCP handshakes, from the call that connects to its answer, each reset as soon as it stands"
                .to_owned()
        }
        PingMethod::Icmp { payload_bytes, raw } => {
            let socket = match raw {
                false => "a datagram socket, which needs no privilege",
                true => "a raw socket, which needs CAP_NET_RAW",
            };
            format!("ICMP echo requests with {payload_bytes} B of payload, by {socket}")
        }
        PingMethod::Datagrams => "datagrams that bdp serve sends back with its times".to_owned(),
        PingMethod::Messages => {
            "messages on one connection that bdp serve sends back with its times".to_owned()
        }
    }
}

/// Returns the line of one probe, as printed by ping: `ams1:443: seq=1 time=24.2 ms`.
pub fn probe_line(request: &PingRequest, sample: &Sample) -> String {
    let host = tame(&request.host);
    let target = match request.mode {
        PingMode::Icmp => host,
        _ if host.contains(':') => format!("[{host}]:{}", request.port),
        _ => format!("{host}:{}", request.port),
    };
    let outcome = match sample.outcome {
        Fate::Answered(ns) => format!("time={} ms", three_digits(ns as f64 / 1e6)),
        Fate::Lost => format!("no answer within {}", request.patience),
        other => other.name().to_owned(),
    };
    // Numbered from 1, as in ping.
    format!("{target}: seq={} {outcome}\n", sample.number + 1)
}

/// `TCP connect to ams1 198.51.100.20:443, 10 probes 200 ms apart`.
fn heading(ping: &Ping) -> String {
    let PingRequest { mode, count, duration, interval, warm_up, payload, host, .. } = &ping.request;
    let host = tame(host);
    let name =
        if ping.address.contains(host.trim_matches(['[', ']'])) { String::new() } else { format!("{host} ") };
    let mut text = format!("{} to {name}{}, ", mode.name(), ping.address);
    text.push_str(&match (count, duration) {
        (Some(1), _) => "1 probe".to_owned(),
        (Some(count), _) => format!("{count} probes"),
        (None, Some(duration)) => format!("probes for {duration}"),
        (None, None) => "probes".to_owned(),
    });
    match *interval {
        Nanos::ZERO => text.push_str(" as fast as answers come"),
        interval => text.push_str(&format!(" {interval} apart")),
    }
    if let Some(payload) = payload {
        text.push_str(&format!(", {} B each", payload.as_bytes()));
    }
    if *warm_up > 0 {
        text.push_str(&format!(", after {warm_up} to warm up"));
    }
    text
}

fn figures(ping: &Ping, rtt: &Distribution, style: &Style) -> String {
    let fine = rtt.p50 < FINE_BELOW_NS;
    let (unit, factor) = if fine { ("us", 1e3) } else { ("ms", 1e6) };
    let mut rows = vec![("round trip", *rtt)];
    let shares = ping.shares.as_ref();
    rows.extend(ping.from_due_ns.map(|d| ("from due", d)));
    rows.extend(ping.lateness_ns.map(|d| ("sent late", d)));
    rows.extend(shares.and_then(|s| s.near_ns).map(|d| ("near stack", d)));
    rows.extend(shares.and_then(|s| s.far_ns).map(|d| ("far end", d)));
    rows.extend(shares.and_then(|s| s.path_ns).map(|d| ("path", d)));
    // With few probes the percentile does not exist. A percentile among lost probes exceeds the timeout.
    let printed = |ns: u64| three_digits(ns as f64 / factor);
    let at = |percent: f64, pick: fn(&Distribution) -> Option<u64>| -> Vec<Cell> {
        let cell = |(row, (_, d)): (usize, &(&str, Distribution))| match pick(d).map(|ns| (row, ns)) {
            None => Cell::plain("-"),
            Some((0, _)) if is_among_lost(&ping.probes, percent) => {
                Cell::plain(format!(">{}", printed(ping.request.patience.as_ns())))
            }
            Some((_, ns)) => Cell::plain(printed(ns)),
        };
        rows.iter().enumerate().map(cell).collect()
    };
    let of = |pick: fn(&Distribution) -> u64| -> Vec<Cell> {
        rows.iter().map(|(_, d)| Cell::plain(three_digits(pick(d) as f64 / factor))).collect()
    };
    let names = rows
        .iter()
        .enumerate()
        .map(|(i, (name, _))| Cell::tinted(*name, if i == 0 { Tint::Strong } else { Tint::None }));
    let columns = [
        Column::new(["", unit], Align::Left, names.collect()),
        Column::new(["", "min"], Align::Point, of(|d| d.min)),
        Column::new(["", "p50"], Align::Point, at(50.0, |d| Some(d.p50))),
        Column::new(["", "p90"], Align::Point, at(90.0, |d| d.p90)),
        Column::new(["", "p95"], Align::Point, at(95.0, |d| d.p95)),
        Column::new(["", "p99"], Align::Point, at(99.0, |d| d.p99)),
        Column::new(["", "p99.9"], Align::Point, at(99.9, |d| d.p999)),
        Column::new(["", "max"], Align::Point, of(|d| d.max)),
        Column::new(["", "mean"], Align::Point, of(|d| d.mean)),
    ];
    // The first line of the heading is empty.
    render(&columns, &[], style).trim_start_matches([' ', '\n']).to_owned()
}

/// Whether a percentile over all probes sent falls among the lost ones.
fn is_among_lost(tally: &Tally, percent: f64) -> bool {
    let all = tally.received + tally.lost;
    tally.lost > 0 && nearest_rank(all, percent) > tally.received
}

/// `10 sent, 9 answered, 1 lost (10 %)`.
fn tally(tally: &Tally) -> String {
    let Tally {
        sent,
        received,
        lost,
        refused,
        unreachable,
        duplicates,
        retransmitted,
        left_out,
        dropped_by_receiver,
    } = *tally;
    let mut text = format!(
        "{sent} sent, {received} answered, {lost} lost ({})",
        percent(if sent == 0 { 0.0 } else { lost as f64 / sent as f64 })
    );
    for (count, what) in [
        (dropped_by_receiver.unwrap_or(0), "of them dropped by this machine"),
        (refused, "refused"),
        (unreachable, "unreachable"),
        (duplicates, "answered again"),
        (retransmitted, "with their SYN retransmitted"),
        (left_out, "turns skipped"),
    ] {
        if count > 0 {
            text.push_str(&format!(", {count} {what}"));
        }
    }
    text
}

#[cfg(test)]
mod tests {
    use bdp_model::finding::caveat::Caveat;
    use bdp_model::probes::ping::{Bucket, PING_SCHEMA};
    use bdp_model::statistics::histogram::Histogram;

    use super::*;

    pub(super) fn example() -> Ping {
        let mut histogram = Histogram::new();
        for n in 0..1000u64 {
            histogram.record(24_000_000 + n * n * 3);
        }
        let rtt = Distribution::of(&histogram);
        Ping {
            schema: PING_SCHEMA.to_owned(),
            bdp: "0.1.0".to_owned(),
            request: PingRequest {
                host: "ams1".to_owned(),
                port: 443,
                family: None,
                mode: PingMode::Connect,
                count: Some(1001),
                duration: None,
                interval: Nanos::millis(200),
                warm_up: 1,
                payload: None,
                patience: Nanos::secs(3),
                stamps: true,
                bind_address: None,
                bind_device: None,
                dscp: None,
            },
            address: "198.51.100.20:443".to_owned(),
            method: PingMethod::Handshakes,
            started_unix_ms: 0,
            took_ms: 200_000,
            probes: Tally { sent: 1001, received: 1000, lost: 1, ..Tally::default() },
            rtt_ns: rtt,
            from_due_ns: rtt,
            jitter_ns: Some(120_000),
            lateness_ns: None,
            shares: None,
            histogram: Bucket::of(&histogram),
            caveats: vec![Caveat::Text("one thing to know".to_owned())],
            samples: vec![
                Sample { number: 0, due_ns: 0, sent_ns: 700, outcome: Fate::Answered(24_000_000) },
                Sample { number: 1, due_ns: 200_000_000, sent_ns: 200_000_100, outcome: Fate::Lost },
            ],
        }
    }

    #[test]
    fn a_ping_in_text() {
        insta::assert_snapshot!(ping_text(&example(), &Style::plain()));
    }

    #[test]
    fn a_probe_has_a_line_as_of_ping() {
        let request = example().request;
        let line = |number, outcome| probe_line(&request, &Sample { number, due_ns: 0, sent_ns: 0, outcome });
        assert_eq!(line(0, Fate::Answered(24_200_000)), "ams1:443: seq=1 time=24.2 ms\n");
        assert_eq!(line(1, Fate::Lost), "ams1:443: seq=2 no answer within 3 s\n");
        assert_eq!(line(2, Fate::Refused), "ams1:443: seq=3 refused\n");
        let v6 = PingRequest { host: "::1".to_owned(), ..request.clone() };
        let sample = Sample { number: 0, due_ns: 0, sent_ns: 0, outcome: Fate::Unreachable };
        assert_eq!(probe_line(&v6, &sample), "[::1]:443: seq=1 unreachable\n");
        let icmp = PingRequest { mode: PingMode::Icmp, ..request };
        assert_eq!(probe_line(&icmp, &sample), "ams1: seq=1 unreachable\n");
    }

    #[test]
    fn a_percentile_among_lost_probes_is_above_what_they_were_waited_for() {
        let lossy =
            Ping { probes: Tally { sent: 1070, received: 1000, lost: 70, ..Tally::default() }, ..example() };
        let text = ping_text(&lossy, &Style::plain());
        let row = text.lines().find(|line| line.starts_with("round trip")).unwrap();
        // The 95th percentile of 1070 is the 1017th, but there are only a thousand answers.
        assert_eq!(row.matches(">3000").count(), 3, "{text}");
        assert!(!text.lines().any(|line| line.starts_with("from due") && line.contains('>')), "{text}");
        assert!(is_among_lost(&lossy.probes, 95.0) && !is_among_lost(&lossy.probes, 90.0));
    }

    #[test]
    fn where_nothing_came_back_the_tally_says_so() {
        let silent = Ping {
            probes: Tally { sent: 3, lost: 3, ..Tally::default() },
            rtt_ns: None,
            from_due_ns: None,
            jitter_ns: None,
            histogram: Vec::new(),
            ..example()
        };
        let text = ping_text(&silent, &Style::plain());
        assert!(text.contains("3 sent, 0 answered, 3 lost (100 %)") && !text.contains("p50"), "{text}");
    }
}
