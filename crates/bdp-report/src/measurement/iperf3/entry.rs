//! Building blocks of the document's entries.

use bdp_model::flow::udp::UdpReport;
use bdp_model::measurement::{Direction, Measurement};
use serde_json::{Map, Value, json};

/// Socket number of the first stream, as iperf3 often has it; the others follow.
const FIRST_SOCKET: usize = 5;

/// Position of each stream in the document: those sent by the near end come first.
pub(super) struct Streams {
    pub(super) per_direction: usize,
}

impl Streams {
    pub(super) fn of(m: &Measurement) -> Self {
        Self { per_direction: m.request.spec.streams as usize }
    }

    pub(super) fn socket(&self, m: &Measurement, way: Direction, stream: usize) -> usize {
        let after = m.directions.len() > 1 && way == Direction::From;
        FIRST_SOCKET + stream + if after { self.per_direction } else { 0 }
    }
}

/// Returns seconds as iperf3 prints them: an integer if whole.
pub(super) fn seconds(ns: u64) -> Value {
    if ns.is_multiple_of(1_000_000_000) { json!(ns / 1_000_000_000) } else { json!(ns as f64 / 1e9) }
}

/// Returns the members at the start of every entry: start, duration, amount.
pub(super) fn amount(from_ns: u64, to_ns: u64, bytes: f64) -> Map<String, Value> {
    let ns = to_ns.saturating_sub(from_ns);
    let mut entry = Map::new();
    entry.insert("start".to_owned(), seconds(from_ns));
    entry.insert("end".to_owned(), seconds(to_ns));
    entry.insert("seconds".to_owned(), seconds(ns));
    entry.insert("bytes".to_owned(), json!(bytes.round() as u64));
    entry.insert("bits_per_second".to_owned(), json!(if ns > 0 { bytes * 8e9 / ns as f64 } else { 0.0 }));
    entry
}

pub(super) fn with(mut entry: Map<String, Value>, more: &[(&str, Value)]) -> Map<String, Value> {
    entry.extend(more.iter().map(|(member, value)| ((*member).to_owned(), value.clone())));
    entry
}

pub(super) fn on_socket(socket: usize, entry: Map<String, Value>) -> Value {
    let mut all = Map::from_iter([("socket".to_owned(), json!(socket))]);
    all.extend(entry);
    Value::Object(all)
}

pub(super) fn packets(bytes: f64, udp: &UdpReport) -> u64 {
    (bytes / udp.datagram_bytes.max(1) as f64).round() as u64
}

/// Returns `sum`, or `sum_bidir_reverse` for the second direction of a bidirectional test.
pub(super) fn named(sum: &str, index: usize) -> String {
    if index == 0 { sum.to_owned() } else { format!("{sum}_bidir_reverse") }
}
