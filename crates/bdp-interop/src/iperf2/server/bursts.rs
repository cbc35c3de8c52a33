//! Sends to a client with `--trip-times`, which measures by the send time in each burst.

use std::io::{ErrorKind, Write};
use std::net::{Shutdown, TcpStream};
use std::sync::atomic::AtomicBool;

use bdp_model::units::{Nanos, Rate};
use bdp_sys::clock;
use bdp_wire::iperf2::{BURST_BYTES, Burst, TestHeader, opening};

use super::shared::VERSION;
use bdp_flow::error::FlowError;
use bdp_flow::meter::Meter;
use bdp_flow::pause::wait_until;
use bdp_flow::stall::STALL;

/// Longest burst: what one write should send before its deadline.
const LONGEST_BYTES: u64 = 4 << 20;
/// Bytes per write, whole rows of digits: a burst consists of these.
const PIECE_BYTES: usize = 64_000;

/// How much to send, and how fast.
#[derive(Debug, Clone, Copy)]
pub(super) struct Plan {
    /// Bytes per burst.
    pub(super) burst_bytes: u64,
    /// Time limit; the last burst is completed.
    pub(super) longest: Nanos,
    /// Ends after this many bytes.
    pub(super) bytes: Option<u64>,
    /// Rate of the bursts, bit/s.
    pub(super) rate_bps: Option<u64>,
}

/// Sends over a connection whose writes have a deadline, until the plan is complete, the client ends it, or `stop`.
/// The meter shows bytes of whole bursts.
pub(super) fn send(
    stream: TcpStream,
    client: &TestHeader,
    plan: &Plan,
    stop: &AtomicBool,
    meter: &Meter,
) -> Result<(), FlowError> {
    let sent = write(&stream, client, plan, stop, meter);
    // The other half of the connection may still be read.
    let _ = stream.shutdown(Shutdown::Write);
    match sent {
        // The client has what it wants.
        Err(e) if matches!(e.kind(), ErrorKind::BrokenPipe | ErrorKind::ConnectionReset) => Ok(()),
        // A client that reads at all does so within the deadline of a write.
        Err(e) if e.kind() == ErrorKind::WouldBlock => Err(FlowError::Stalled { within: STALL }),
        other => other.map_err(FlowError::io("send to an iperf2 client")),
    }
}

fn write(
    mut stream: &TcpStream,
    client: &TestHeader,
    plan: &Plan,
    stop: &AtomicBool,
    meter: &Meter,
) -> std::io::Result<()> {
    let us = || clock::unix_ns() / 1000;
    let least = BURST_BYTES as u64;
    let length = plan.burst_bytes.clamp(least, LONGEST_BYTES);
    let digit = |at: usize| b'0' + (at % 10) as u8;
    let mut room: Vec<u8> = (0..length.min(PIECE_BYTES as u64) as usize).map(digit).collect();
    let (began_ns, began_us) = (clock::monotonic_ns(), us());
    stream.write_all(&opening(client, VERSION, began_us))?;
    let mut total_bytes: u64 = 0;
    for number in 1.. {
        let due_ns = plan.rate_bps.map_or(0, |rate| Rate::bps(rate).serialisation(total_bytes).as_ns());
        let left = plan.bytes.map_or(length, |bytes| bytes.saturating_sub(total_bytes));
        let is_over = due_ns >= plan.longest.as_ns()
            || clock::monotonic_ns() - began_ns >= plan.longest.as_ns()
            || left == 0;
        if is_over || !wait_until(began_ns + due_ns, stop) {
            break;
        }
        let bytes = left.clamp(least, length);
        total_bytes += bytes;
        let burst = Burst { number, bytes: bytes as u32, total_bytes, began_us, sent_us: us() };
        let mut left = bytes as usize;
        room[..BURST_BYTES].copy_from_slice(&burst.encode());
        while left > 0 {
            let piece = left.min(room.len());
            stream.write_all(&room[..piece])?;
            left -= piece;
            // Only digits follow the header.
            (0..BURST_BYTES).for_each(|at| room[at] = digit(at));
        }
        meter.set(total_bytes);
    }
    Ok(())
}
