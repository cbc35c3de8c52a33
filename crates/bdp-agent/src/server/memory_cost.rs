//! Upper bound of a flow's memory on a server: from its order, before anything is allocated.

use bdp_flow::crew::Crew;
use bdp_flow::datagram::receive::remembered_bytes;
use bdp_model::record::{ReceiverSample, SenderSample};
use bdp_wire::control::{FlowOrder, Role};

/// A list of samples that grows has room for twice as many.
const GROWTH: u64 = 2;
/// Per TCP stream: the kernel's report of it, several times.
const CONNECTION_BYTES: u64 = 2 << 10;
/// Per stream of datagrams: its thread, and its histograms.
const DATAGRAMS_BYTES: u64 = 24 << 10;
/// Per sent stream of datagrams: what one call sends.
const TRAIN_BYTES: u64 = 128 << 10;
/// Largest default payload of a datagram.
const LONGEST_BY_PATH: u64 = 9 << 10;
/// Per thread that makes or checks bytes of the pattern.
const PATTERN_BYTES: u64 = 256 << 10;
/// Per flow.
const FLOW_BYTES: u64 = 64 << 10;

/// Returns the memory of a flow of bdp's own protocol.
pub(super) fn of_order(order: &FlowOrder) -> u64 {
    let spec = &order.spec;
    let samples = spec.duration.as_ns() / spec.interval.as_ns().max(1) + 2;
    let sample = match order.role {
        Role::Send => size_of::<SenderSample>(),
        Role::Receive => size_of::<ReceiverSample>(),
    };
    let streams = match &order.datagrams {
        Some(datagrams) => {
            let datagram = datagrams.payload_bytes.map_or(LONGEST_BY_PATH, u64::from);
            of_datagrams(order.role == Role::Send, spec.streams, datagrams.rate_bps, datagram)
        }
        None => u64::from(spec.streams) * CONNECTION_BYTES,
    };
    let threads = Crew::listed(spec.streams as usize, order.cpus.as_ref()).threads() as u64;
    let pattern = if spec.check_payload { threads * PATTERN_BYTES } else { 0 };
    (samples * GROWTH)
        .saturating_mul(sample as u64)
        .saturating_add(streams)
        .saturating_add(pattern)
        .saturating_add(FLOW_BYTES)
}

/// Returns the memory of streams of datagrams of this length, each limited to this rate.
fn of_datagrams(sends: bool, streams: u32, rate_bps: Option<u64>, datagram: u64) -> u64 {
    let each = match sends {
        // As much as a tenth of a millisecond of the rate, at least one datagram.
        true => rate_bps.map_or(TRAIN_BYTES, |rate| (rate / 80_000 + 2 * datagram).min(TRAIN_BYTES)),
        false => remembered_bytes(streams as usize),
    };
    u64::from(streams) * (each + DATAGRAMS_BYTES)
}

/// Returns the memory of the streams of another protocol's test, whose samples are few.
pub fn of_streams(streams: u32, datagrams: bool) -> u64 {
    let streams = match datagrams {
        true => of_datagrams(true, streams, None, 0).max(of_datagrams(false, streams, None, 0)),
        false => u64::from(streams) * CONNECTION_BYTES,
    };
    streams + FLOW_BYTES
}
