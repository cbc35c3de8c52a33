//! `end`: the totals. This end's totals are sums over the counted intervals; those of the remote end are as it reported them.

use bdp_model::flow::udp::UdpReport;
use bdp_model::measurement::{Direction, DirectionResult, Measurement};
use serde_json::{Map, Value, json};

use super::entry::{Streams, amount, named, on_socket, packets, with};
use super::intervals::{Piece, SenderReading, before, counted_streams, is_omitted, share};

pub(super) fn end(m: &Measurement, streams: &Streams, pieces: &[Piece]) -> Value {
    let mut all = Map::new();
    let ends: Vec<Ends> = m.directions.iter().map(|d| Ends::of(m, streams, pieces, d)).collect();
    let listed: Vec<Value> = ends
        .iter()
        .flat_map(|ends| (0..streams.per_direction).map(move |stream| (ends, stream)))
        .map(|(ends, stream)| match &ends.direction.udp {
            Some(udp) => ends.datagrams_of_stream(m, streams, udp, stream),
            None => ends.stream(m, streams, pieces, stream),
        })
        .collect();
    all.insert("streams".to_owned(), Value::Array(listed));
    for (index, ends) in ends.iter().enumerate() {
        let near_sends = json!(ends.near_sends());
        let mut put =
            |sum: &str, value: Map<String, Value>| drop(all.insert(named(sum, index), Value::Object(value)));
        match &ends.direction.udp {
            None => {
                let sent = with(ends.sent.amount(), &retransmits(ends.again(m, pieces)));
                put("sum_sent", with(sent, &[("sender", near_sends.clone())]));
                put("sum_received", with(ends.received.amount(), &[("sender", near_sends)]));
            }
            Some(udp) => {
                let lost = ends.lost(udp);
                let (sent, came) = (ends.sent_packets(udp), ends.received_packets(udp) + lost);
                let jitter = jitter_ms(udp);
                // As in iperf3, which shows what was sent.
                put("sum", with(ends.sent.amount(), &datagrams(jitter, lost, sent, &near_sends)));
                put("sum_sent", with(ends.sent.amount(), &datagrams(0.0, 0, sent, &json!(true))));
                put(
                    "sum_received",
                    with(ends.received.amount(), &datagrams(jitter, lost, came, &json!(false))),
                );
            }
        }
    }
    all.insert("cpu_utilization_percent".to_owned(), processors(m));
    if m.request.spec.udp.is_none() {
        let name = m.directions.first().map_or("", |d| d.congestion_control.as_str());
        all.insert("sender_tcp_congestion".to_owned(), json!(name));
        // A receiver's congestion control has no effect and is not queried.
        all.insert("receiver_tcp_congestion".to_owned(), json!(name));
    }
    Value::Object(all)
}

/// Data moved by one end of a direction in the counted time.
#[derive(Clone)]
struct Moved {
    ns: u64,
    bytes: u64,
    /// Bytes per stream; their sum is `bytes`.
    streams: Vec<u64>,
}

impl Moved {
    fn amount(&self) -> Map<String, Value> {
        amount(0, self.ns, self.bytes as f64)
    }

    fn amount_of(&self, stream: usize) -> Map<String, Value> {
        amount(0, self.ns, self.streams.get(stream).copied().unwrap_or(0) as f64)
    }
}

/// Both ends of a direction.
struct Ends<'a> {
    direction: &'a DirectionResult,
    sent: Moved,
    received: Moved,
}

impl<'a> Ends<'a> {
    fn of(m: &Measurement, streams: &Streams, pieces: &[Piece], d: &'a DirectionResult) -> Self {
        let seen = seen(m, streams, pieces, d);
        if d.direction == Direction::From {
            return Self { direction: d, sent: sent_there(&seen, d), received: seen };
        }
        let told = received(m, d);
        // The receiver does not attribute its first reads to streams: if everything arrived, this end knows.
        let streams = match (m.request.spec.omit.as_ns(), seen.bytes == told.bytes) {
            (0, true) => seen.streams.clone(),
            _ => told.streams,
        };
        Self { direction: d, sent: seen, received: Moved { streams, ..told } }
    }

    fn near_sends(&self) -> bool {
        self.direction.direction == Direction::To
    }

    fn received_packets(&self, udp: &UdpReport) -> u64 {
        packets(self.received.bytes as f64, udp)
    }

    fn sent_packets(&self, udp: &UdpReport) -> u64 {
        packets(self.sent.bytes as f64, udp)
    }

    fn lost(&self, udp: &UdpReport) -> u64 {
        lost_of(self.direction, self.received.bytes, udp)
    }

    /// Returns the segments retransmitted after omit, if the sender reports them.
    fn again(&self, m: &Measurement, pieces: &[Piece]) -> Option<u64> {
        let last_omitted = pieces.iter().rfind(|piece| is_omitted(m, piece));
        let omitted: u64 = last_omitted
            .into_iter()
            .flat_map(|piece| &piece.parts)
            .filter(|part| part.way == self.direction.direction)
            .flat_map(|part| &part.senders)
            .map(|reading| reading.retransmits)
            .sum();
        Some(self.direction.retransmits?.saturating_sub(omitted))
    }

    fn datagrams_of_stream(
        &self,
        m: &Measurement,
        streams: &Streams,
        udp: &UdpReport,
        stream: usize,
    ) -> Value {
        let near_sends = json!(self.near_sends());
        // A stream's share of the losses is known only if it is the only stream.
        let alone = streams.per_direction == 1;
        let seen = if alone || self.near_sends() { &self.sent } else { &self.received };
        let own = packets(seen.streams.get(stream).copied().unwrap_or(0) as f64, udp);
        let lost = if alone { self.lost(udp) } else { 0 };
        let entry = with(seen.amount_of(stream), &datagrams(jitter_ms(udp), lost, own, &near_sends));
        let entry =
            with(entry, &[("out_of_order", json!(if alone { udp.reordered.unwrap_or(0) } else { 0 }))]);
        json!({ "udp": on_socket(streams.socket(m, self.direction.direction, stream), entry) })
    }

    fn stream(&self, m: &Measurement, streams: &Streams, pieces: &[Piece], stream: usize) -> Value {
        let way = self.direction.direction;
        let socket = streams.socket(m, way, stream);
        let near_sends = json!(self.near_sends());
        let readings: Vec<SenderReading> = pieces
            .iter()
            .filter(|piece| !is_omitted(m, piece))
            .flat_map(|piece| &piece.parts)
            .filter(|part| part.way == way)
            .filter_map(|part| part.senders.get(stream).copied())
            .collect();
        let first = pieces
            .iter()
            .position(|piece| !is_omitted(m, piece))
            .map(|at| before(pieces, at, way, stream).retransmits);
        let again = match readings.last() {
            _ if streams.per_direction == 1 => self.again(m, pieces),
            Some(last) => Some(last.retransmits.saturating_sub(first.unwrap_or(0))),
            None => None,
        };
        let of = |figure: fn(&SenderReading) -> u64| readings.iter().map(figure);
        let rtt = |reading: &SenderReading| reading.rtt_ns / 1000;
        let sender = with(self.sent.amount_of(stream), &retransmits(again));
        let sender = with(
            sender,
            &[
                ("reorder", json!(of(|r| r.reorder_seen).max().unwrap_or(0))),
                ("max_snd_cwnd", json!(of(|r| r.cwnd_bytes).max().unwrap_or(0))),
                ("max_snd_wnd", json!(of(|r| r.window_bytes).max().unwrap_or(0))),
                ("max_rtt", json!(of(rtt).max().unwrap_or(0))),
                ("min_rtt", json!(of(rtt).min().unwrap_or(0))),
                ("mean_rtt", json!(of(rtt).sum::<u64>() / readings.len().max(1) as u64)),
                ("sender", near_sends.clone()),
            ],
        );
        let receiver = with(self.received.amount_of(stream), &[("sender", near_sends)]);
        json!({ "sender": on_socket(socket, sender), "receiver": on_socket(socket, receiver) })
    }
}

/// Returns the data moved by this end: the sum of the counted intervals.
fn seen(m: &Measurement, streams: &Streams, pieces: &[Piece], d: &DirectionResult) -> Moved {
    let counted: Vec<&Piece> = pieces.iter().filter(|piece| !is_omitted(m, piece)).collect();
    let parts = counted.iter().flat_map(|piece| &piece.parts).filter(|part| part.way == d.direction);
    let (mut bytes, mut each, mut are_told) = (0, vec![0; streams.per_direction], true);
    for part in parts {
        bytes += part.stream_bytes.iter().sum::<f64>().round() as u64;
        are_told &= part.stream_bytes.len() == each.len();
        each.iter_mut().zip(&part.stream_bytes).for_each(|(sum, more)| *sum += more.round() as u64);
    }
    let streams = if are_told { each } else { share(bytes, &d.stream_goodput_bps) };
    let begun = counted.first().map_or(0, |piece| piece.from_ns);
    let ns = match begun {
        // Time starts with the first byte.
        0 => d.duration_ns,
        _ => counted.last().map_or(0, |piece| piece.to_ns).saturating_sub(begun),
    };
    Moved { ns, bytes, streams }
}

/// Returns the data received according to the remote end.
fn received(m: &Measurement, d: &DirectionResult) -> Moved {
    let ns = d.duration_ns.saturating_sub(d.omit_ns);
    let each = counted_streams(d);
    if m.request.spec.omit.as_ns() > 0 {
        return Moved { ns, bytes: each.iter().sum(), streams: each };
    }
    Moved { ns, bytes: d.bytes, streams: share(d.bytes, &d.stream_goodput_bps) }
}

/// Returns the data sent by the remote end: for connections what was received, since data left in a send buffer was not sent; for datagrams
/// also those lost.
fn sent_there(received: &Moved, d: &DirectionResult) -> Moved {
    let Some(udp) = &d.udp else { return received.clone() };
    let bytes = received.bytes + lost_of(d, received.bytes, udp) * udp.datagram_bytes;
    let weights: Vec<f64> = received.streams.iter().map(|&bytes| bytes as f64).collect();
    Moved { bytes, streams: share(bytes, &weights), ..*received }
}

/// Returns the counted datagrams lost. The time of each loss is unknown: the loss ratio within an omit is taken as that after it.
fn lost_of(d: &DirectionResult, counted_bytes: u64, udp: &UdpReport) -> u64 {
    if d.bytes == 0 || counted_bytes >= d.bytes {
        return udp.lost;
    }
    (udp.lost as f64 * counted_bytes as f64 / d.bytes as f64).round() as u64
}

fn jitter_ms(udp: &UdpReport) -> f64 {
    udp.jitter_ns.unwrap_or(0) as f64 / 1e6
}

fn datagrams(jitter_ms: f64, lost: u64, packets: u64, sender: &Value) -> [(&'static str, Value); 5] {
    [
        ("jitter_ms", json!(jitter_ms)),
        ("lost_packets", json!(lost)),
        ("packets", json!(packets)),
        ("lost_percent", json!(if packets > 0 { lost as f64 * 100.0 / packets as f64 } else { 0.0 })),
        ("sender", sender.clone()),
    ]
}

fn retransmits(count: Option<u64>) -> Vec<(&'static str, Value)> {
    count.map(|count| ("retransmits", json!(count))).into_iter().collect()
}

/// Returns the CPU use of each end, all directions; user and system time are not known separately.
fn processors(m: &Measurement) -> Value {
    let most = |of: fn(&DirectionResult) -> f64| m.directions.iter().map(of).fold(0.0, f64::max) * 100.0;
    let near = most(|d| if d.direction == Direction::To { d.sender_cpu } else { d.receiver_cpu });
    let far = most(|d| if d.direction == Direction::To { d.receiver_cpu } else { d.sender_cpu });
    json!({
        "host_total": near, "host_user": 0, "host_system": 0,
        "remote_total": far, "remote_user": 0, "remote_system": 0,
    })
}
