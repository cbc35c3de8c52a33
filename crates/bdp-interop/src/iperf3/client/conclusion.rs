//! Combines what both ends report of a test.

use bdp_model::finding::caveat::Caveat;
use bdp_model::flow::method::EndReason;
use bdp_model::measurement::{Direction, MeasureRequest};
use bdp_model::record::ReceiverSample;
use bdp_model::statistics::arrivals::ArrivalCounts;
use bdp_wire::control::{DatagramsReceived, DatagramsSent, Mark, Received, Sent};
use bdp_wire::iperf3::{CpuUse, Results, StreamResults};

use crate::iperf3::outcome::{self, End, Outcome};
use bdp_flow::session::peer;

/// Combines what both ends report of each direction.
pub(super) fn conclude(
    request: &MeasureRequest,
    ways: &[Direction],
    outcomes: Vec<Outcome>,
    far: &Results,
    length_bytes: u64,
) -> Vec<peer::Outcome> {
    let mut left = far.streams.as_slice();
    let mut concluded = Vec::new();
    for (&way, outcome) in ways.iter().zip(outcomes) {
        let count = outcome.streams.len().min(left.len());
        let (theirs, rest) = left.split_at(count);
        left = rest;
        let mut caveats = Vec::new();
        let (received, sent) = match outcome.end {
            End::Sent(sent) => match sent.datagrams.clone() {
                None => (received_there(request, &sent, theirs, far), sent),
                Some(gave) => {
                    let received = datagrams_received_there(request, &gave, theirs, far);
                    caveats.extend(unread(way, &gave, &received));
                    (received, sent)
                }
            },
            End::Received(received) => {
                // It was this end that stopped it, for one of these two.
                let sent = match &received.datagrams {
                    None => sent_there(theirs, far),
                    Some(_) => datagrams_sent_there(request, length_bytes, theirs, far),
                };
                (Received { ended: ended(request), ..received }, sent)
            }
        };
        let omit_ns = request.spec.omit.as_ns();
        let counted = sent.samples.iter().filter(|s| s.at_ns >= omit_ns);
        let loaded_rtts_ns = counted.filter_map(|s| s.srtt_ns).collect();
        // It was paced here, or the server was asked to pace.
        let sent = Sent { pacing_bps: request.spec.pacing_bps, ..sent };
        concluded.push(peer::Outcome { loaded_rtts_ns, caveats, ..peer::Outcome::of(way, received, sent) });
    }
    concluded
}

/// Returns this end's results in iperf3's format.
pub(super) fn near_results(outcomes: &[Outcome], cpu: f64) -> Results {
    let sends = outcomes.iter().any(|outcome| matches!(outcome.end, End::Sent(_)));
    Results {
        cpu: CpuUse { total: cpu, user: 0.0, system: 0.0 },
        // Datagrams are never retransmitted.
        has_retransmits: sends.then_some(outcomes.iter().any(|outcome| outcome.congestion.is_some())),
        congestion: outcomes.iter().find_map(|outcome| outcome.congestion.clone()),
        server_output: None,
        streams: outcome::results(outcomes),
    }
}

/// Returns what the server received: its own sums, and what this end's kernel saw acknowledged.
fn received_there(
    request: &MeasureRequest,
    sent: &Sent,
    theirs: &[StreamResults],
    far: &Results,
) -> Received {
    let omit_ns = request.spec.omit.as_ns();
    let samples: Vec<ReceiverSample> = sent
        .samples
        .iter()
        .filter_map(|s| Some(ReceiverSample { at_ns: s.at_ns, bytes: s.acked_bytes?, ..Default::default() }))
        .collect();
    let before = samples.iter().take_while(|s| s.at_ns <= omit_ns).last().map_or(0, |s| s.bytes);
    let before = if omit_ns == 0 { 0 } else { before };
    let seconds = theirs.iter().map(StreamResults::seconds).fold(0.0, f64::max);
    Received {
        bytes: before + theirs.iter().map(|s| s.bytes).sum::<u64>(),
        duration_ns: omit_ns + (seconds * 1e9) as u64,
        counted_from: Mark { at_ns: omit_ns, bytes: before },
        stream_bytes: theirs.iter().map(|s| s.bytes).collect(),
        samples,
        cpu: far.cpu.total / 100.0,
        ended: ended(request),
        ..Default::default()
    }
}

/// How connections end that end as asked.
fn ended(request: &MeasureRequest) -> EndReason {
    if request.spec.bytes.is_some() { EndReason::Closed } else { EndReason::Duration }
}

/// Returns what the server sent, as far as it reports.
fn sent_there(theirs: &[StreamResults], far: &Results) -> Sent {
    let retransmits: Vec<u64> = theirs.iter().filter_map(|s| s.retransmits).collect();
    Sent {
        bytes: theirs.iter().map(|s| s.bytes).sum(),
        congestion: far.congestion.clone().unwrap_or_default(),
        retransmits: (!retransmits.is_empty()).then(|| retransmits.iter().sum()),
        cpu: far.cpu.total / 100.0,
        ..Default::default()
    }
}

/// Returns the fate at the server of datagrams that this end sent. The server takes the highest number that arrived
/// for the last; for the others, this end's count of sent datagrams is used.
fn datagrams_received_there(
    request: &MeasureRequest,
    gave: &DatagramsSent,
    theirs: &[StreamResults],
    far: &Results,
) -> Received {
    let omit_ns = request.spec.omit.as_ns();
    let highest: u64 = theirs.iter().map(|s| s.packets).sum();
    let received = theirs.iter().map(|s| s.packets.saturating_sub(s.errors)).sum::<u64>();
    // Its bytes include copies, its packets do not. The packets include what its bytes omit for -O.
    let different = |s: &StreamResults| s.bytes.min(s.packets.saturating_sub(s.errors) * gave.payload_bytes);
    let stream_bytes: Vec<u64> = theirs.iter().map(different).collect();
    let counted: u64 = stream_bytes.iter().sum();
    let all = (received * gave.payload_bytes).max(counted);
    let before = if omit_ns == 0 { 0 } else { all - counted };
    let jitter_s = theirs.iter().map(|s| s.jitter_s).fold(0.0, f64::max);
    // Some of the sent datagrams may be lost: that does not end it sooner.
    let all_sent = request.spec.bytes.is_some_and(|bytes| gave.sent * gave.payload_bytes >= bytes.as_bytes());
    Received {
        bytes: before + counted,
        // It continues to count for a while after the last one.
        duration_ns: gave.duration_ns,
        counted_from: Mark { at_ns: omit_ns, bytes: before },
        stream_bytes,
        cpu: far.cpu.total / 100.0,
        ended: if all_sent { EndReason::Bytes } else { EndReason::Duration },
        datagrams: Some(DatagramsReceived {
            counts: ArrivalCounts { received, highest: highest.checked_sub(1), ..Default::default() },
            dropped: None,
            open_end: None,
            jitter_ns: Some((jitter_s * 1e9) as u64),
            transits: None,
            stamped: false,
        }),
        ..Default::default()
    }
}

/// That the last datagrams may have arrived when the server counted no more.
fn unread(direction: Direction, gave: &DatagramsSent, received: &Received) -> Option<Caveat> {
    let highest = received.datagrams.as_ref()?.counts.highest?;
    let datagrams = gave.sent.saturating_sub(highest + 1);
    (datagrams > 0).then_some(Caveat::LastUncounted { direction, datagrams })
}

/// Returns the datagrams that the server sent, as far as it reports.
fn datagrams_sent_there(
    request: &MeasureRequest,
    payload_bytes: u64,
    theirs: &[StreamResults],
    far: &Results,
) -> Sent {
    let sent: u64 = theirs.iter().map(|s| s.packets).sum();
    let seconds = theirs.iter().map(StreamResults::seconds).fold(0.0, f64::max);
    Sent {
        bytes: sent * payload_bytes,
        cpu: far.cpu.total / 100.0,
        datagrams: Some(DatagramsSent {
            payload_bytes,
            sent,
            duration_ns: request.spec.omit.as_ns() + (seconds * 1e9) as u64,
            ..Default::default()
        }),
        ..Default::default()
    }
}
