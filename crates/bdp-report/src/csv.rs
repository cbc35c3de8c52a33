//! Comma-separated values (RFC 4180): one row for each attempt and flow. The columns are described in `docs/report.md`.

use std::collections::{BTreeMap, BTreeSet};

use bdp_model::case::Published;
use bdp_model::case::traffic::TrafficRecord;
use bdp_model::facts::segments::Segments;
use bdp_model::finding::Finding;
use bdp_model::flow::udp::{SearchEnd, UdpReport};
use bdp_model::measurement::Measurement;
use bdp_model::measurement::labels::Labels;
use bdp_model::record::{Record, RttSummary};
use serde_json::Value;

use crate::finding::confidence;
use crate::summary::{Ending, ending, in_order};
use bdp_model::plain::plain;

const HEADER: [&str; 40] = [
    "scenario",
    "params",
    "repetition",
    "attempt",
    "seed",
    "ended",
    "reason",
    "from",
    "to",
    "streams",
    "goodput_bps",
    "case_goodput_bps",
    "expected_bps",
    "published_low_bps",
    "published_high_bps",
    "expectation_met",
    "received_bytes",
    "duration_ns",
    "omit_ns",
    "retransmits",
    "congestion_control",
    "mss_bytes",
    "window_asked_bytes",
    "window_socket_buffer_bytes",
    "window_on_the_wire_bytes",
    "window_on_the_wire_max_bytes",
    "rtt_idle_min_ns",
    "rtt_idle_p50_ns",
    "rtt_idle_p95_ns",
    "rtt_idle_p99_ns",
    "rtt_loaded_min_ns",
    "rtt_loaded_p50_ns",
    "rtt_loaded_p95_ns",
    "rtt_loaded_p99_ns",
    "sender_cpu",
    "receiver_cpu",
    "lateness_mean_ns",
    "lateness_p99_ns",
    "started_unix_ms",
    "took_ms",
];

const MEASURED: [&str; 33] = [
    "label",
    "near",
    "far",
    "params",
    "repetition",
    "direction",
    "error",
    "streams",
    "goodput_bps",
    "goodput_p5_bps",
    "goodput_p50_bps",
    "goodput_p95_bps",
    "ceiling_bps",
    "limit",
    "confidence",
    "bytes",
    "duration_ns",
    "omit_ns",
    "retransmits",
    "congestion_control",
    "mss_bytes",
    "window_asked_bytes",
    "window_socket_buffer_bytes",
    "window_on_the_wire_bytes",
    "rtt_idle_min_ns",
    "rtt_idle_p50_ns",
    "rtt_idle_p95_ns",
    "rtt_idle_p99_ns",
    "rtt_loaded_min_ns",
    "rtt_loaded_p50_ns",
    "rtt_loaded_p95_ns",
    "rtt_loaded_p99_ns",
    "started_unix_ms",
];

/// Columns on datagrams; empty for TCP.
const DATAGRAMS: [&str; 18] = [
    "asked_bps",
    "sent_bps",
    "datagram_bytes",
    "datagrams_sent",
    "datagrams_left_out",
    "datagrams_received",
    "datagrams_lost",
    "loss_ratio",
    "dropped_by_receiver",
    "duplicated",
    "reordered",
    "jitter_ns",
    "delay_variation_p50_ns",
    "delay_variation_p95_ns",
    "delay_variation_p99_ns",
    "one_way_delay_p50_ns",
    "one_way_delay_error_ns",
    "search",
];

/// Further columns on a flow of the lab.
const FOUND: [&str; 3] = ["retransmit_ratio", "limit", "confidence"];

/// Prefixes for the columns of parameters and labels, which follow all others; they keep the names distinct.
const PARAM: &str = "param.";
const LABEL: &str = "label.";

/// Columns on the transfers of a traffic entry; empty for a flow.
const TRAFFIC: [&str; 9] = [
    "traffic",
    "transfers",
    "unfinished",
    "late",
    "completion_mean_ns",
    "completion_p50_ns",
    "completion_p95_ns",
    "completion_p99_ns",
    "completion_max_ns",
];

fn traffic(entry: Option<&TrafficRecord>) -> [String; TRAFFIC.len()] {
    let at = |percent: usize| count(entry.and_then(|t| t.completion_ns.get(percent).copied()));
    [
        word(entry.map(|t| t.name.as_str()).unwrap_or_default()),
        count(entry.map(|t| t.transfers)),
        count(entry.map(|t| t.unfinished)),
        count(entry.and_then(|t| t.late)),
        count(entry.and_then(|t| t.completion_mean_ns)),
        at(50),
        at(95),
        at(99),
        at(100),
    ]
}

/// The loss is known for TCP too.
fn datagrams(udp: Option<&UdpReport>, loss_ratio: Option<f64>) -> [String; DATAGRAMS.len()] {
    let variation = udp.and_then(|u| u.delay_variation_ns);
    let one_way = udp.and_then(|u| u.one_way_delay_ns);
    let search = match udp.and_then(|u| u.search) {
        Some(SearchEnd::Held) => "held",
        Some(SearchEnd::NotHeld) => "not_held",
        Some(SearchEnd::LossAtAnyRate) => "loss_at_any_rate",
        Some(SearchEnd::CutShort) => "cut_short",
        None => "",
    };
    [
        number(udp.and_then(|u| u.asked_bps)),
        number(udp.map(|u| u.sent_bps)),
        count(udp.map(|u| u.datagram_bytes)),
        count(udp.map(|u| u.sent)),
        count(udp.map(|u| u.left_out)),
        count(udp.map(|u| u.received)),
        count(udp.map(|u| u.lost)),
        number(loss_ratio),
        count(udp.and_then(|u| u.dropped_by_receiver)),
        count(udp.and_then(|u| u.duplicated)),
        count(udp.and_then(|u| u.reordered)),
        count(udp.and_then(|u| u.jitter_ns)),
        count(variation.map(|d| d.p50)),
        count(variation.and_then(|d| d.p95)),
        count(variation.and_then(|d| d.p99)),
        one_way.map(|d| d.p50.to_string()).unwrap_or_default(),
        count(one_way.map(|d| d.clock_error)),
        search.to_owned(),
    ]
}

/// Returns header and rows of measurements and their varied parameters: one row per direction, or one for a measurement that failed
/// before any direction ran.
pub fn csv_of_measurements(measurements: &[(&BTreeMap<String, Value>, &Measurement)]) -> String {
    let varied: BTreeSet<String> =
        measurements.iter().flat_map(|(params, _)| params.keys().cloned()).collect();
    let labelled = measurements.iter().flat_map(|(_, m)| m.labels.iter());
    let labels: BTreeSet<String> = labelled.map(|(name, _)| name.to_owned()).collect();
    let own = headings(&labels, &varied);
    let fixed = MEASURED.into_iter().chain(DATAGRAMS).chain(["retransmit_ratio"]).map(str::to_owned);
    let mut text = row(fixed.chain(own));
    for (params, measurement) in measurements {
        let own: Vec<String> = own_fields(&measurement.labels, &labels, params, &varied).collect();
        for index in 0..measurement.directions.len().max(1) {
            let direction = measurement.directions.get(index);
            let udp = direction.and_then(|d| d.udp.as_ref());
            let ratio = direction.and_then(|d| Segments::of(d, d.bytes)).map(Segments::retransmit_ratio);
            let fields = measured(params, measurement, index)
                .into_iter()
                .chain(datagrams(udp, direction.and_then(|d| d.loss_ratio(d.bytes))))
                .chain([number(ratio)]);
            text.push_str(&row(fields.chain(own.iter().cloned())));
        }
    }
    text
}

/// Returns the column names of labels, then of parameters.
fn headings(labels: &BTreeSet<String>, varied: &BTreeSet<String>) -> impl Iterator<Item = String> {
    let labels: Vec<String> = labels.iter().map(|name| format!("{LABEL}{name}")).collect();
    let varied: Vec<String> = varied.iter().map(|path| format!("{PARAM}{}", plain(path))).collect();
    labels.into_iter().chain(varied)
}

/// Returns the fields of these columns; empty if a row lacks the label or parameter.
fn own_fields<'a>(
    own: &'a Labels,
    labels: &'a BTreeSet<String>,
    params: &'a BTreeMap<String, Value>,
    varied: &'a BTreeSet<String>,
) -> impl Iterator<Item = String> + 'a {
    let label = |name: &'a String| word(own.get(name).unwrap_or_default());
    let param = |path: &'a String| params.get(path).map(|value| word(&text_of(value))).unwrap_or_default();
    labels.iter().map(label).chain(varied.iter().map(param))
}

/// Returns a value as typed.
fn text_of(value: &Value) -> String {
    value.as_str().map_or_else(|| value.to_string(), str::to_owned)
}

/// Returns the limit of a flow and its confidence.
fn found(finding: Option<&Finding>) -> [String; 2] {
    [
        finding.map_or("", |f| f.limit.name()).to_owned(),
        finding.map_or("", |f| confidence(f.confidence)).to_owned(),
    ]
}

fn measured(params: &BTreeMap<String, Value>, m: &Measurement, index: usize) -> [String; MEASURED.len()] {
    let d = m.directions.get(index);
    let spread = d.and_then(|d| d.spread);
    let [limit, confidence] = found(d.and_then(|d| d.findings.first()));
    let [idle_min, idle_p50, idle_p95, idle_p99] = quantiles(d.and_then(|d| d.rtt_ns.idle).or(m.rtt_idle_ns));
    let [loaded_min, loaded_p50, loaded_p95, loaded_p99] = quantiles(d.and_then(|d| d.rtt_ns.loaded));
    [
        word(m.label.as_deref().unwrap_or_default()),
        word(&m.near.name),
        word(if m.far.name.is_empty() { &m.request.host } else { &m.far.name }),
        word(&assignments(params)),
        m.repetition.to_string(),
        d.map(|d| d.direction.name().to_owned()).unwrap_or_default(),
        word(m.error.as_deref().unwrap_or_default()),
        m.request.spec.streams.to_string(),
        number(d.map(|d| d.goodput_bps)),
        number(spread.and_then(|s| s.p5)),
        number(spread.map(|s| s.p50)),
        number(spread.and_then(|s| s.p95)),
        number(m.ceiling.as_ref().map(|c| c.goodput_bps)),
        limit,
        confidence,
        count(d.map(|d| d.bytes)),
        count(d.map(|d| d.duration_ns)),
        count(d.map(|d| d.omit_ns)),
        count(d.and_then(|d| d.retransmits)),
        word(d.map(|d| d.congestion_control.as_str()).unwrap_or_default()),
        count(d.and_then(|d| d.mss_bytes)),
        count(d.and_then(|d| d.window.asked_bytes)),
        count(d.and_then(|d| d.window.socket_buffer_bytes)),
        count(d.and_then(|d| d.window.on_the_wire_bytes)),
        idle_min,
        idle_p50,
        idle_p95,
        idle_p99,
        loaded_min,
        loaded_p50,
        loaded_p95,
        loaded_p99,
        m.started_unix_ms.to_string(),
    ]
}

/// Returns `path=value` pairs separated by spaces.
fn assignments(params: &BTreeMap<String, Value>) -> String {
    let each = params.iter().map(|(path, value)| format!("{path}={}", text_of(value)));
    each.collect::<Vec<_>>().join(" ")
}

/// Returns header and rows, each with a line end; an empty field means unknown. The flows of an attempt are followed by its traffic entries.
/// An attempt that ended before any flow finished has one row of its own. `labels` are those of the run.
pub fn csv(records: &[Record], labels: &Labels) -> String {
    let varied: BTreeSet<String> = records.iter().flat_map(|record| record.params.keys().cloned()).collect();
    let named: BTreeSet<String> = labels.iter().map(|(name, _)| name.to_owned()).collect();
    let fixed = HEADER.into_iter().chain(DATAGRAMS).chain(TRAFFIC).chain(FOUND).map(str::to_owned);
    let mut text = row(fixed.chain(headings(&named, &varied)));
    for record in in_order(records) {
        let own: Vec<String> = own_fields(labels, &named, &record.params, &varied).collect();
        let flows = if record.traffic.is_empty() { record.flows.len().max(1) } else { record.flows.len() };
        for index in 0..flows {
            let flow = record.flows.get(index);
            let udp = flow.and_then(|flow| flow.udp.as_ref());
            let ratio =
                flow.and_then(|flow| Segments::of(flow, flow.received_bytes)).map(Segments::retransmit_ratio);
            let known = fields(record, index)
                .into_iter()
                .chain(datagrams(udp, flow.and_then(|flow| flow.loss_ratio(flow.received_bytes))))
                .chain(traffic(None))
                .chain([number(ratio)])
                .chain(found(flow.and_then(|flow| flow.findings.first())));
            text.push_str(&row(known.chain(own.iter().cloned())));
        }
        for (index, entry) in record.traffic.iter().enumerate() {
            let known = of_traffic(record, index, entry);
            let known = known.into_iter().chain(datagrams(None, None)).chain(traffic(Some(entry)));
            let unknown = FOUND.map(|_| String::new());
            text.push_str(&row(known.chain(unknown).chain(own.iter().cloned())));
        }
    }
    text
}

/// Returns the fields of the attempt, and those fields of a traffic entry that flows have too.
fn of_traffic(record: &Record, index: usize, entry: &TrafficRecord) -> [String; HEADER.len()] {
    let asked = record.case.traffic.get(index);
    let mut fields = fields(record, usize::MAX);
    for (name, field) in HEADER.into_iter().zip(&mut fields) {
        match name {
            "from" => *field = word(asked.map(|t| t.from.as_str()).unwrap_or_default()),
            "to" => *field = word(asked.map(|t| t.to.as_str()).unwrap_or_default()),
            "received_bytes" => *field = entry.received_bytes.to_string(),
            "retransmits" => *field = count(entry.retransmits),
            "congestion_control" => {
                *field = word(asked.and_then(|t| t.congestion.as_deref()).unwrap_or_default());
            }
            _ => {}
        }
    }
    fields
}

fn fields(record: &Record, index: usize) -> [String; HEADER.len()] {
    let flow = record.flows.get(index);
    let spec = record.case.flows.get(index);
    let window = flow.map(|f| &f.window);
    let [published_low, published_high] = match record.published_bps {
        None => [None, None],
        Some(Published::Number(n)) => [Some(n), Some(n)],
        Some(Published::Range([low, high])) => [Some(low), Some(high)],
    };
    let reason = match record.error.as_ref().or(record.skipped.as_ref()) {
        Some(error) => error.clone(),
        None => crate::breach::why_invalid(&record.fidelity),
    };
    let rtt = flow.map_or(&record.rtt_ns, |flow| &flow.rtt_ns);
    let [idle, loaded] = [rtt.idle, rtt.loaded].map(quantiles);
    let [idle_min, idle_p50, idle_p95, idle_p99] = idle;
    let [loaded_min, loaded_p50, loaded_p95, loaded_p99] = loaded;
    [
        word(&record.scenario),
        word(&assignments(&record.params)),
        record.repetition.to_string(),
        record.attempt.to_string(),
        record.seed.to_string(),
        match ending(record) {
            Ending::Valid => "valid",
            Ending::Invalid => "INVALID",
            Ending::Failed => "FAILED",
            Ending::Skipped => "SKIPPED",
        }
        .to_owned(),
        word(&reason),
        word(flow.map(|f| f.from.as_str()).or(spec.map(|s| s.from.as_str())).unwrap_or_default()),
        word(flow.map(|f| f.to.as_str()).or(spec.map(|s| s.to.as_str())).unwrap_or_default()),
        spec.map(|s| s.spec.streams.to_string()).unwrap_or_default(),
        number(flow.map(|f| f.goodput_bps)),
        number(record.goodput_bps),
        number(record.expected_bps),
        number(published_low),
        number(published_high),
        record.expectation.as_ref().and_then(|e| e.met).map(|met| met.to_string()).unwrap_or_default(),
        count(flow.map(|f| f.received_bytes)),
        count(flow.map(|f| f.duration_ns)),
        count(flow.map(|f| f.omit_ns)),
        count(flow.and_then(|f| f.retransmits)),
        word(flow.map(|f| f.congestion_control.as_str()).unwrap_or_default()),
        count(flow.and_then(|f| f.mss_bytes)),
        count(window.and_then(|w| w.asked_bytes)),
        count(window.and_then(|w| w.socket_buffer_bytes)),
        count(window.and_then(|w| w.on_the_wire_bytes)),
        count(window.and_then(|w| w.on_the_wire_max_bytes)),
        idle_min,
        idle_p50,
        idle_p95,
        idle_p99,
        loaded_min,
        loaded_p50,
        loaded_p95,
        loaded_p99,
        number(flow.map(|f| f.sender_cpu)),
        number(flow.map(|f| f.receiver_cpu)),
        count(Some(record.fidelity.release_lateness_ns.mean).filter(|_| record.error.is_none())),
        count(Some(record.fidelity.release_lateness_ns.p99).filter(|_| record.error.is_none())),
        record.environment.started_unix_ms.to_string(),
        record.environment.took_ms.to_string(),
    ]
}

fn quantiles(summary: Option<RttSummary>) -> [String; 4] {
    match summary {
        Some(s) => [Some(s.min), Some(s.p50), s.p95, s.p99].map(count),
        None => Default::default(),
    }
}

/// Returns the shortest text that parses as the same number.
fn number(value: Option<f64>) -> String {
    value.filter(|v| v.is_finite()).map(|v| v.to_string()).unwrap_or_default()
}

fn count(value: Option<u64>) -> String {
    value.map(|v| v.to_string()).unwrap_or_default()
}

/// Returns text as a field. A spreadsheet would execute a field that begins with one of these characters as a formula:
/// a leading apostrophe keeps it text (OWASP, "CSV Injection").
fn word(text: &str) -> String {
    let tame = plain(text);
    if tame.starts_with(['=', '+', '-', '@']) { format!("'{tame}") } else { tame }
}

fn row(fields: impl IntoIterator<Item = String>) -> String {
    let mut line = csv::WriterBuilder::new().terminator(csv::Terminator::CRLF).from_writer(Vec::new());
    // Writing to memory does not fail, and the fields are valid UTF-8.
    let written = line.write_record(fields.into_iter().map(String::into_bytes));
    written.ok().and_then(|()| String::from_utf8(line.into_inner().ok()?).ok()).unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn fields_that_hold_separators_are_quoted() {
        assert_eq!(
            row(["a,b", "say \"x\"", "plain"].map(str::to_owned)),
            "\"a,b\",\"say \"\"x\"\"\",plain\r\n"
        );
    }

    #[test]
    fn no_field_is_a_formula() {
        assert_eq!(word("=HYPERLINK(1)"), "'=HYPERLINK(1)");
        assert_eq!(word("@x\ny"), "'@x y");
        assert_eq!(word("near"), "near");
    }
}
