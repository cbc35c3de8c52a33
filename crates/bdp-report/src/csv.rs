//! Comma-separated values (RFC 4180): one row for each attempt and flow. The columns are described in `docs/report.md`.

use std::collections::{BTreeMap, BTreeSet};

use bdp_model::case::Published;
use bdp_model::case::traffic::TrafficRecord;
use bdp_model::facts::segments::Segments;
use bdp_model::finding::Finding;
use bdp_model::flow::udp::{OneWayDelay, SearchEnd, UdpReport};
use bdp_model::measurement::labels::Labels;
use bdp_model::measurement::{DirectionResult, Measurement};
use bdp_model::record::{Record, RttSummary, Transfer, WindowReport};
use serde_json::Value;

use crate::finding::confidence;
use crate::summary::{Ending, ending, in_order};
use bdp_model::plain::plain;

/// What a row is about; what does not apply is `None` or empty.
#[derive(Clone, Copy, Default)]
struct Row<'a> {
    record: Option<&'a Record>,
    measurement: Option<&'a Measurement>,
    direction: Option<&'a DirectionResult>,
    params: Option<&'a BTreeMap<String, Value>>,
    from: &'a str,
    to: &'a str,
    streams: Option<u32>,
    bytes: Option<u64>,
    transfer: Option<&'a Transfer>,
    entry: Option<&'a TrafficRecord>,
    /// Congestion control, asked for or read back.
    congestion: &'a str,
    rtt_idle: Option<RttSummary>,
    rtt_loaded: Option<RttSummary>,
}

impl<'a> Row<'a> {
    /// Returns the row of a direction; of the measurement alone if it failed before any direction ran.
    fn of_measurement(params: &'a BTreeMap<String, Value>, m: &'a Measurement, index: usize) -> Self {
        let direction = m.directions.get(index);
        let row = Self {
            measurement: Some(m),
            direction,
            params: Some(params),
            streams: Some(m.request.spec.streams),
            bytes: direction.map(|d| d.bytes),
            ..Self::default()
        };
        let row = row.with(direction.map(|d| &d.transfer));
        Self { rtt_idle: row.rtt_idle.or(m.rtt_idle_ns), ..row }
    }

    /// Returns the row of an attempt alone.
    fn of_record(record: &'a Record) -> Self {
        let (rtt_idle, rtt_loaded) = (record.rtt_ns.idle, record.rtt_ns.loaded);
        Self { record: Some(record), params: Some(&record.params), rtt_idle, rtt_loaded, ..Self::default() }
    }

    /// Returns the row of a flow; of the attempt if it ended before the flow finished.
    fn of_flow(record: &'a Record, index: usize) -> Self {
        let mut row = Self::of_record(record);
        if let Some(asked) = record.case.flows.get(index) {
            (row.from, row.to, row.streams) = (&asked.from, &asked.to, Some(asked.spec.streams));
        }
        let Some(flow) = record.flows.get(index) else { return row };
        Self { from: &flow.from, to: &flow.to, bytes: Some(flow.received_bytes), ..row }
            .with(Some(&flow.transfer))
    }

    fn of_traffic(record: &'a Record, index: usize, entry: &'a TrafficRecord) -> Self {
        let mut row =
            Self { entry: Some(entry), bytes: Some(entry.received_bytes), ..Self::of_record(record) };
        if let Some(asked) = record.case.traffic.get(index) {
            (row.from, row.to) = (&asked.from, &asked.to);
            row.congestion = asked.congestion.as_deref().unwrap_or_default();
        }
        row
    }

    fn with(self, transfer: Option<&'a Transfer>) -> Self {
        let Some(of) = transfer else { return self };
        let (rtt_idle, rtt_loaded) = (of.rtt_ns.idle, of.rtt_ns.loaded);
        Self { transfer, congestion: &of.congestion_control, rtt_idle, rtt_loaded, ..self }
    }

    fn window(&self) -> Option<&'a WindowReport> {
        self.transfer.map(|transfer| &transfer.window)
    }

    fn udp(&self) -> Option<&'a UdpReport> {
        self.transfer?.udp.as_ref()
    }

    fn one_way(&self) -> Option<OneWayDelay> {
        self.udp()?.one_way_delay_ns
    }

    fn finding(&self) -> Option<&'a Finding> {
        self.transfer?.findings.first()
    }

    /// Returns the percentile of the completion times.
    fn completion(&self, percent: usize) -> Field {
        text(self.entry?.completion_ns.get(percent)?)
    }

    /// Returns a figure of the emulator; unknown if the attempt failed.
    fn lateness(&self, of: fn(&Record) -> u64) -> Field {
        text(of(self.record.filter(|record| record.error.is_none())?))
    }

    fn published(&self) -> Option<[f64; 2]> {
        Some(match self.record?.published_bps? {
            Published::Number(n) => [n, n],
            Published::Range(range) => range,
        })
    }
}

/// A field; an unknown one is empty.
type Field = Option<String>;

/// A column: its name, and how its field is read.
type Column = (&'static str, fn(&Row<'_>) -> Field);

/// Columns of `bdp lab`, `bdp sweep` and `bdp report` on records.
const RECORD: [&[Column]; 9] =
    [ATTEMPT, TRANSFER, WINDOW_MAX, RTT, EMULATION, DATAGRAMS, TRAFFIC, RETRANSMIT_RATIO, FOUND];

/// Columns of measurements.
const MEASURED: [&[Column]; 8] = [ENDS, FOUND, BYTES, TRANSFER, RTT, STARTED, DATAGRAMS, RETRANSMIT_RATIO];

const ATTEMPT: &[Column] = &[
    ("scenario", |r| word(&r.record?.scenario)),
    PARAMS,
    ("repetition", |r| text(r.record?.repetition)),
    ("attempt", |r| text(r.record?.attempt)),
    ("seed", |r| text(r.record?.seed)),
    ("ended", |r| {
        text(match ending(r.record?) {
            Ending::Valid => "valid",
            Ending::Invalid => "INVALID",
            Ending::Failed => "FAILED",
            Ending::Skipped => "SKIPPED",
        })
    }),
    ("reason", |r| match r.record?.error.as_ref().or(r.record?.skipped.as_ref()) {
        Some(error) => word(error),
        None => word(&crate::breach::why_invalid(&r.record?.fidelity)),
    }),
    ("from", |r| word(r.from)),
    ("to", |r| word(r.to)),
    STREAMS,
    GOODPUT,
    ("case_goodput_bps", |r| number(r.record?.goodput_bps?)),
    ("expected_bps", |r| number(r.record?.expected_bps?)),
    ("published_low_bps", |r| number(r.published()?[0])),
    ("published_high_bps", |r| number(r.published()?[1])),
    ("expectation_met", |r| text(r.record?.expectation.as_ref()?.met?)),
    ("received_bytes", |r| text(r.bytes?)),
];

const ENDS: &[Column] = &[
    ("label", |r| word(r.measurement?.label.as_deref()?)),
    ("near", |r| word(&r.measurement?.near.name)),
    ("far", |r| match r.measurement? {
        m if m.far.name.is_empty() => word(&m.request.host),
        m => word(&m.far.name),
    }),
    PARAMS,
    ("repetition", |r| text(r.measurement?.repetition)),
    ("direction", |r| text(r.direction?.direction.name())),
    ("error", |r| word(r.measurement?.error.as_deref()?)),
    STREAMS,
    GOODPUT,
    ("goodput_p5_bps", |r| number(r.direction?.spread?.p5?)),
    ("goodput_p50_bps", |r| number(r.direction?.spread?.p50)),
    ("goodput_p95_bps", |r| number(r.direction?.spread?.p95?)),
    ("ceiling_bps", |r| number(r.measurement?.ceiling.as_ref()?.goodput_bps)),
];

const PARAMS: Column = ("params", |r| word(&assignments(r.params?)));
const STREAMS: Column = ("streams", |r| text(r.streams?));
const GOODPUT: Column = ("goodput_bps", |r| number(r.transfer?.goodput_bps));
const BYTES: &[Column] = &[("bytes", |r| text(r.bytes?))];
const STARTED: &[Column] = &[("started_unix_ms", |r| text(r.measurement?.started_unix_ms))];
const WINDOW_MAX: &[Column] =
    &[("window_on_the_wire_max_bytes", |r| text(r.window()?.on_the_wire_max_bytes?))];

const TRANSFER: &[Column] = &[
    ("duration_ns", |r| text(r.transfer?.duration_ns)),
    ("omit_ns", |r| text(r.transfer?.omit_ns)),
    ("retransmits", |r| match r.entry {
        Some(entry) => text(entry.retransmits?),
        None => text(r.transfer?.retransmits?),
    }),
    ("congestion_control", |r| word(r.congestion)),
    ("mss_bytes", |r| text(r.transfer?.mss_bytes?)),
    ("window_asked_bytes", |r| text(r.window()?.asked_bytes?)),
    ("window_socket_buffer_bytes", |r| text(r.window()?.socket_buffer_bytes?)),
    ("window_on_the_wire_bytes", |r| text(r.window()?.on_the_wire_bytes?)),
];

const RTT: &[Column] = &[
    ("rtt_idle_min_ns", |r| text(r.rtt_idle?.min)),
    ("rtt_idle_p50_ns", |r| text(r.rtt_idle?.p50)),
    ("rtt_idle_p95_ns", |r| text(r.rtt_idle?.p95?)),
    ("rtt_idle_p99_ns", |r| text(r.rtt_idle?.p99?)),
    ("rtt_loaded_min_ns", |r| text(r.rtt_loaded?.min)),
    ("rtt_loaded_p50_ns", |r| text(r.rtt_loaded?.p50)),
    ("rtt_loaded_p95_ns", |r| text(r.rtt_loaded?.p95?)),
    ("rtt_loaded_p99_ns", |r| text(r.rtt_loaded?.p99?)),
];

const EMULATION: &[Column] = &[
    ("sender_cpu", |r| number(r.transfer?.sender_cpu)),
    ("receiver_cpu", |r| number(r.transfer?.receiver_cpu)),
    ("lateness_mean_ns", |r| r.lateness(|record| record.fidelity.release_lateness_ns.mean)),
    ("lateness_p99_ns", |r| r.lateness(|record| record.fidelity.release_lateness_ns.p99)),
    ("started_unix_ms", |r| text(r.record?.environment.started_unix_ms)),
    ("took_ms", |r| text(r.record?.environment.took_ms)),
];

/// Columns on datagrams; empty for TCP, except the loss.
const DATAGRAMS: &[Column] = &[
    ("asked_bps", |r| number(r.udp()?.asked_bps?)),
    ("sent_bps", |r| number(r.udp()?.sent_bps)),
    ("datagram_bytes", |r| text(r.udp()?.datagram_bytes)),
    ("datagrams_sent", |r| text(r.udp()?.sent)),
    ("datagrams_left_out", |r| text(r.udp()?.left_out)),
    ("datagrams_received", |r| text(r.udp()?.received)),
    ("datagrams_lost", |r| text(r.udp()?.lost)),
    ("loss_ratio", |r| number(r.transfer?.loss_ratio(r.bytes?)?)),
    ("dropped_by_receiver", |r| text(r.udp()?.dropped_by_receiver?)),
    ("duplicated", |r| text(r.udp()?.duplicated?)),
    ("reordered", |r| text(r.udp()?.reordered?)),
    ("jitter_ns", |r| text(r.udp()?.jitter_ns?)),
    ("delay_variation_p50_ns", |r| text(r.udp()?.delay_variation_ns?.p50)),
    ("delay_variation_p95_ns", |r| text(r.udp()?.delay_variation_ns?.p95?)),
    ("delay_variation_p99_ns", |r| text(r.udp()?.delay_variation_ns?.p99?)),
    ("one_way_delay_p50_ns", |r| text(r.one_way()?.p50)),
    ("one_way_delay_error_ns", |r| text(r.one_way()?.clock_error)),
    ("search", |r| {
        text(match r.udp()?.search? {
            SearchEnd::Held => "held",
            SearchEnd::NotHeld => "not_held",
            SearchEnd::LossAtAnyRate => "loss_at_any_rate",
            SearchEnd::CutShort => "cut_short",
        })
    }),
];

/// Columns on the transfers of a traffic entry; empty for a flow.
const TRAFFIC: &[Column] = &[
    ("traffic", |r| word(&r.entry?.name)),
    ("transfers", |r| text(r.entry?.transfers)),
    ("unfinished", |r| text(r.entry?.unfinished)),
    ("late", |r| text(r.entry?.late?)),
    ("completion_mean_ns", |r| text(r.entry?.completion_mean_ns?)),
    ("completion_p50_ns", |r| r.completion(50)),
    ("completion_p95_ns", |r| r.completion(95)),
    ("completion_p99_ns", |r| r.completion(99)),
    ("completion_max_ns", |r| r.completion(100)),
];

const FOUND: &[Column] = &[
    ("limit", |r| text(r.finding()?.limit.name())),
    ("confidence", |r| text(confidence(r.finding()?.confidence))),
];

const RETRANSMIT_RATIO: &[Column] =
    &[("retransmit_ratio", |r| number(Segments::of(r.transfer?, r.bytes?)?.retransmit_ratio()))];

/// Prefixes for the columns of parameters and labels, which follow all others; they keep the names distinct.
const PARAM: &str = "param.";
const LABEL: &str = "label.";

/// Returns header and rows of measurements and their varied parameters: one row per direction, or one for a measurement that failed
/// before any direction ran.
pub fn csv_of_measurements(measurements: &[(&BTreeMap<String, Value>, &Measurement)]) -> String {
    let rows = measurements.iter().flat_map(|&(params, m)| {
        (0..m.directions.len().max(1)).map(move |index| (Row::of_measurement(params, m, index), &m.labels))
    });
    let labels = measurements.iter().flat_map(|(_, m)| m.labels.iter());
    table(&MEASURED, labels, &rows.collect::<Vec<_>>())
}

/// Returns header and rows, each with a line end; an empty field means unknown. The flows of an attempt are followed by its traffic entries.
/// An attempt that ended before any flow finished has one row of its own. `labels` are those of the run.
pub fn csv(records: &[Record], labels: &Labels) -> String {
    let rows = in_order(records).into_iter().flat_map(|record| {
        let flows = record.flows.len().max(usize::from(record.traffic.is_empty()));
        let flows = (0..flows).map(move |index| Row::of_flow(record, index));
        let traffic = record.traffic.iter().enumerate();
        flows.chain(traffic.map(move |(index, entry)| Row::of_traffic(record, index, entry)))
    });
    table(&RECORD, labels.iter(), &rows.map(|row| (row, labels)).collect::<Vec<_>>())
}

/// Returns the columns as a header, and a line for each row, followed by the row's labels and parameters; these are empty if a row
/// lacks them.
fn table<'a>(
    columns: &[&[Column]],
    labels: impl Iterator<Item = (&'a str, &'a str)>,
    rows: &[(Row<'a>, &Labels)],
) -> String {
    let columns = || columns.iter().copied().flatten();
    let labels: BTreeSet<&str> = labels.map(|(name, _)| name).collect();
    let varied: BTreeSet<&String> =
        rows.iter().filter_map(|(row, _)| row.params).flat_map(BTreeMap::keys).collect();
    let names = columns().map(|(name, _)| (*name).to_owned());
    let labelled = labels.iter().map(|name| format!("{LABEL}{name}"));
    let header = names.chain(labelled).chain(varied.iter().map(|path| format!("{PARAM}{}", plain(path))));
    let mut text = line(header);
    for (row, own) in rows {
        let known = columns().map(|(_, field)| field(row));
        let labelled = labels.iter().map(|name| word(own.get(name)?));
        let params = varied.iter().map(|&path| word(&text_of(row.params?.get(path)?)));
        text.push_str(&line(known.chain(labelled).chain(params).map(Option::unwrap_or_default)));
    }
    text
}

/// Returns a value as typed.
fn text_of(value: &Value) -> String {
    value.as_str().map_or_else(|| value.to_string(), str::to_owned)
}

/// Returns `path=value` pairs separated by spaces.
fn assignments(params: &BTreeMap<String, Value>) -> String {
    let each = params.iter().map(|(path, value)| format!("{path}={}", text_of(value)));
    each.collect::<Vec<_>>().join(" ")
}

/// Returns the shortest text that parses as the same number.
fn number(value: f64) -> Field {
    value.is_finite().then(|| value.to_string())
}

fn text(value: impl ToString) -> Field {
    Some(value.to_string())
}

/// Returns text as a field. A spreadsheet would execute a field that begins with one of these characters as a formula:
/// a leading apostrophe keeps it text (OWASP, "CSV Injection").
fn word(text: &str) -> Field {
    let tame = plain(text);
    Some(if tame.starts_with(['=', '+', '-', '@']) { format!("'{tame}") } else { tame })
}

fn line(fields: impl IntoIterator<Item = String>) -> String {
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
            line(["a,b", "say \"x\"", "plain"].map(str::to_owned)),
            "\"a,b\",\"say \"\"x\"\"\",plain\r\n"
        );
    }

    #[test]
    fn no_field_is_a_formula() {
        assert_eq!(word("=HYPERLINK(1)").as_deref(), Some("'=HYPERLINK(1)"));
        assert_eq!(word("@x\ny").as_deref(), Some("'@x y"));
        assert_eq!(word("near").as_deref(), Some("near"));
    }
}
