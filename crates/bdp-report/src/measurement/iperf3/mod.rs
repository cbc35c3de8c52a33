//! JSON in the format of `iperf3 -J`, for programs that read it: members, names and units of iperf3 for a measurement
//! with any server. Specified by iperf3 itself; differences are listed in `docs/interop.md`.

mod end;
mod entry;
mod intervals;

use bdp_model::flow::udp::UdpReport;
use bdp_model::measurement::{Direction, DirectionResult, MeasureRequest, Measurement};
use serde_json::{Map, Value, json};

use crate::date::http_date;
use entry::{Streams, amount, named, on_socket, packets, seconds, with};
use intervals::{before, is_omitted};

pub use intervals::{Intervals, Part, Piece, ReceiverReading, SenderReading};

/// Returns the document of a measurement and its intervals.
pub fn iperf3_json(m: &Measurement, intervals: Intervals) -> Value {
    let streams = Streams::of(m);
    let length_ns = intervals.length_ns();
    let pieces = intervals.complete(m);
    let mut document = Map::new();
    document.insert("start".to_owned(), start(m, &streams, length_ns));
    let listed: Vec<Value> = (0..pieces.len()).map(|at| interval(m, &streams, &pieces, at)).collect();
    document.insert("intervals".to_owned(), Value::Array(listed));
    document.insert("end".to_owned(), end::end(m, &streams, &pieces));
    // With one direction, or both at once, there is one test to describe.
    match m.server_output.first() {
        Some(Value::String(text)) => drop(document.insert("server_output_text".to_owned(), json!(text))),
        Some(output) => drop(document.insert("server_output_json".to_owned(), output.clone())),
        None => {}
    }
    if let Some(error) = &m.error {
        document.insert("error".to_owned(), json!(error));
    }
    Value::Object(document)
}

/// Returns the document of a failed measurement. `system` is this machine's name for itself.
pub fn iperf3_error(system: &str, error: &str) -> Value {
    json!({
        "start": { "connected": [], "version": version(), "system_info": system },
        "intervals": [],
        "end": {},
        "error": error,
    })
}

fn version() -> String {
    format!("bdp {}", env!("CARGO_PKG_VERSION"))
}

fn start(m: &Measurement, streams: &Streams, interval_ns: u64) -> Value {
    let r = &m.request;
    let connected: Vec<Value> = m
        .directions
        .iter()
        .flat_map(|d| (0..streams.per_direction).map(move |i| (d.direction, i)))
        .enumerate()
        .map(|(index, (way, stream))| {
            json!({
                "socket": streams.socket(m, way, stream),
                "local_host": m.near.address,
                "local_port": r.client_port.map_or(0, |port| u64::from(port) + index as u64),
                "remote_host": m.far.address,
                "remote_port": r.port,
            })
        })
        .collect();
    let first = m.directions.first();
    let mut all = Map::new();
    let mut put = |member: &str, value: Value| drop(all.insert(member.to_owned(), value));
    put("connected", json!(connected));
    put("version", json!(version()));
    put("system_info", json!(format!("{} {} {} {}", m.near.system, m.near.name, m.near.kernel, m.near.arch)));
    let unix_s = m.started_unix_ms / 1000;
    let timestamp =
        json!({ "time": http_date(unix_s), "timesecs": unix_s, "timemillisecs": m.started_unix_ms });
    put("timestamp", timestamp);
    put("connecting_to", json!({ "host": r.host, "port": r.port }));
    // The cookie would let others join a running test; this one is over.
    put("cookie", json!(""));
    if r.spec.udp.is_none() {
        let mss = m.path.mss_bytes.or(first.and_then(|d| d.mss_bytes));
        put("tcp_mss_default", json!(mss.unwrap_or(0)));
    }
    put("target_bitrate", json!(rate(r)));
    // Value of `--fq-rate`, which is a different option.
    put("fq_rate", json!(0));
    put("sock_bufsize", json!(r.spec.socket_buffer.map_or(0, |b| b.as_bytes())));
    let of = |way| m.directions.iter().find(|d| d.direction == way);
    put("sndbuf_actual", json!(of(Direction::To).and_then(|d| d.send_buffer_bytes).unwrap_or(0)));
    put("rcvbuf_actual", json!(of(Direction::From).and_then(receive_buffer).unwrap_or(0)));
    put("test_start", test_start(m, interval_ns));
    Value::Object(all)
}

fn receive_buffer(d: &DirectionResult) -> Option<u64> {
    d.window.socket_buffer_bytes.or(d.udp.as_ref().and_then(|udp| udp.receive_buffer_bytes))
}

fn rate(r: &MeasureRequest) -> u64 {
    r.spec.udp.as_ref().and_then(|udp| udp.rate_bps).or(r.spec.pacing_bps).unwrap_or(0)
}

fn test_start(m: &Measurement, interval_ns: u64) -> Value {
    let (r, spec) = (&m.request, &m.request.spec);
    let datagram = m.directions.first().and_then(|d| d.udp.as_ref()).map(|udp| udp.datagram_bytes);
    let counted = spec.duration.saturating_sub(spec.omit).as_ns();
    json!({
        "protocol": if spec.udp.is_some() { "UDP" } else { "TCP" },
        "num_streams": spec.streams,
        "blksize": datagram.unwrap_or(spec.length.as_bytes()),
        "omit": seconds(spec.omit.as_ns()),
        "duration": if spec.bytes.is_some() { json!(0) } else { seconds(counted) },
        "bytes": spec.bytes.map_or(0, |b| b.as_bytes()),
        "blocks": 0,
        "reverse": u8::from(!r.bidirectional && r.directions == [Direction::From]),
        "tos": spec.dscp.map_or(0, |dscp| dscp << 2),
        "target_bitrate": rate(r),
        "bidir": u8::from(r.bidirectional),
        "fqrate": 0,
        "interval": seconds(interval_ns),
        // iperf3's own options for passing datagrams to the kernel.
        "gso": 0,
        "gro": 0,
    })
}

fn interval(m: &Measurement, streams: &Streams, pieces: &[Piece], at: usize) -> Value {
    let piece = &pieces[at];
    let omitted = is_omitted(m, piece);
    // Counters restart after the omitted time.
    let zero =
        if omitted { 0 } else { pieces.iter().find(|p| !is_omitted(m, p)).map_or(0, |first| first.from_ns) };
    let (from, to) = (piece.from_ns - zero, piece.to_ns - zero);
    let mut listed = Vec::new();
    let mut sums = Map::new();
    for (index, d) in m.directions.iter().enumerate() {
        let Some(part) = piece.parts.iter().find(|part| part.way == d.direction) else { continue };
        let sender = d.direction == Direction::To;
        let mut again = 0;
        let told = part.stream_bytes.len() == streams.per_direction;
        for (stream, &bytes) in part.stream_bytes.iter().enumerate() {
            let mut entry = amount(from, to, bytes);
            if let Some(reading) = part.senders.get(stream) {
                let since = reading.retransmits
                    - before(pieces, at, d.direction, stream).retransmits.min(reading.retransmits);
                again += since;
                entry = with(
                    entry,
                    &[
                        ("retransmits", json!(since)),
                        ("snd_cwnd", json!(reading.cwnd_bytes)),
                        ("snd_wnd", json!(reading.window_bytes)),
                        ("rtt", json!(reading.rtt_ns / 1000)),
                        ("rttvar", json!(reading.rtt_variation_ns / 1000)),
                        ("pmtu", json!(reading.path_mtu)),
                        ("reorder", json!(reading.reorder_seen)),
                    ],
                );
            }
            entry = datagrams_of(entry, d.udp.as_ref(), bytes);
            if told {
                let entry = with(entry, &[("omitted", json!(omitted)), ("sender", json!(sender))]);
                listed.push(on_socket(streams.socket(m, d.direction, stream), entry));
            }
        }
        let bytes: f64 = part.stream_bytes.iter().sum();
        let mut sum = amount(from, to, bytes);
        if !part.senders.is_empty() {
            sum = with(sum, &[("retransmits", json!(again))]);
        }
        let sum = with(
            datagrams_of(sum, d.udp.as_ref(), bytes),
            &[("omitted", json!(omitted)), ("sender", json!(sender))],
        );
        sums.insert(named("sum", index), Value::Object(sum));
    }
    let mut all = Map::from_iter([("streams".to_owned(), Value::Array(listed))]);
    all.extend(sums);
    Value::Object(all)
}

/// Returns the number of datagrams for a number of bytes. Losses are known only at the end.
fn datagrams_of(entry: Map<String, Value>, udp: Option<&UdpReport>, bytes: f64) -> Map<String, Value> {
    match udp {
        Some(udp) => with(entry, &[("packets", json!(packets(bytes, udp)))]),
        None => entry,
    }
}
