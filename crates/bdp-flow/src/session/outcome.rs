//! Combines what both ends report of a flow.

use bdp_model::finding::caveat::{Caveat, WindowShortfall, to_percent};
use bdp_model::finding::threshold::{BUSY_THREAD, LONG_ENOUGH};
use bdp_model::flow::method::{EndReason, WindowMechanism};
use bdp_model::flow::udp::UdpReport;
use bdp_model::measurement::ends::Task;
use bdp_model::measurement::{Direction, DirectionResult, IntervalSpread, MeasureRequest, PathFacts};
use bdp_model::probes::latency_parts::LatencyParts;
use bdp_model::record::{RttReport, WindowReport};
use bdp_model::statistics::comparison::Values;
use bdp_model::statistics::median;
use bdp_model::units::{ByteCount, Nanos, Rate};
use bdp_wire::control::{Received, Sent};

use crate::error::{FlowError, Result};
use crate::transfer;

/// Returns one direction's result; findings are added elsewhere.
pub fn result(
    request: &MeasureRequest,
    way: Direction,
    received: Received,
    sent: Sent,
    rtt_ns: RttReport,
    udp: Option<UdpReport>,
) -> Result<DirectionResult> {
    let spec = &request.spec;
    check(request, way, &received, &sent)?;
    // Some datagrams may be lost, which does not change when it ends.
    let moved = sent.datagrams.as_ref().map_or(received.bytes, |d| d.sent * d.payload_bytes);
    let all_sent = spec.bytes.is_some_and(|b| moved >= b.as_bytes());
    let is_complete = all_sent && (received.ended == EndReason::Closed || sent.datagrams.is_some());
    let window = match spec.udp {
        // Datagrams have no window.
        Some(_) => WindowReport::default(),
        None => window(request, &received, &sent),
    };
    Ok(DirectionResult {
        direction: way,
        bytes: received.bytes,
        settled: None,
        spread: spread(&received),
        responsiveness_rpm: None,
        each_way_ns: None,
        responsiveness: None,
        latency_parts_ns: None,
        probes: None,
        send_method: sent.method.clone(),
        send_methods_tried: sent.tried.clone(),
        receive_method: received.method.clone(),
        sender_threads: sent.threads,
        receiver_threads: received.threads,
        payload_check: received.check,
        ended: if is_complete { EndReason::Bytes } else { received.ended.clone() },
        pacing: None,
        transfer: transfer::transfer(received, sent, window, rtt_ns, udp),
    })
}

/// Refuses reports from which no figures can be made, and deviations of the remote end from the request.
fn check(request: &MeasureRequest, way: Direction, received: &Received, sent: &Sent) -> Result<()> {
    let spec = &request.spec;
    if received.counted_ns() == 0 {
        return Err(FlowError::Refused(format!(
            "direction '{}' ended after {}, within the omitted {}, so nothing was measured; set a smaller \
             omit, or more bytes",
            way.name(),
            Nanos(received.duration_ns),
            spec.omit
        )));
    }
    // Counting begins with the first read, which has nothing to be counted by.
    let is_single = received.datagrams.as_ref().is_some_and(|d| d.counts.received < 2);
    // That nothing arrived is the result then.
    let is_silent = received.ended == EndReason::Silence;
    if spec.bytes.is_some() && !is_silent && (received.counted_bytes() == 0 || is_single) {
        return Err(FlowError::Refused(format!(
            "direction '{}': its {} arrived in one read, too short to compute a rate; give more bytes, or a time instead",
            way.name(),
            ByteCount::bytes(received.bytes),
        )));
    }
    if spec.check_payload && !(sent.patterned && received.check.is_some()) {
        return Err(FlowError::Refused(
            "the remote bdp is an older version without --check-payload; install the same version at both \
             ends, or omit --check-payload"
                .to_owned(),
        ));
    }
    if spec.pacing_bps.is_some() && sent.pacing_bps.is_none() {
        return Err(FlowError::Refused(
            "the remote bdp is an older version without TCP pacing; install the same version at both ends, or omit -b"
                .to_owned(),
        ));
    }
    Ok(())
}

/// Returns the goodput of intervals after the omitted beginning. An interval much shorter than the others is skipped:
/// the last, or the remainder after a late sample.
fn spread(received: &Received) -> Option<IntervalSpread> {
    let counted: Vec<_> =
        received.samples.iter().filter(|s| s.at_ns >= received.counted_from.at_ns).collect();
    let intervals: Vec<(u64, u64)> = counted
        .windows(2)
        .map(|w| (w[1].at_ns - w[0].at_ns, w[1].bytes.saturating_sub(w[0].bytes)))
        .collect();
    // Not the longest: a single one during which an end did not run would leave out all the others.
    let usual = median(&mut intervals.iter().map(|&(ns, _)| ns as f64).collect::<Vec<_>>())?;
    let goodput: Vec<f64> = intervals
        .iter()
        .filter(|&&(ns, _)| ns as f64 * 2.0 > usual)
        .map(|&(ns, bytes)| bytes as f64 * 8e9 / ns as f64)
        .collect();
    let values = Values::of(&goodput)?;
    Some(IntervalSpread {
        intervals: values.n as u64,
        min: Some(values.min),
        p5: values.p5,
        p50: values.p50,
        p95: values.p95,
        max: Some(values.max),
    })
}

fn window(request: &MeasureRequest, received: &Received, sent: &Sent) -> WindowReport {
    let sizes = transfer::window(&request.spec, received, sent);
    // The scale shifts every window to the left by this many bits (RFC 7323, section 2.3).
    let seen = sent.windows_seen(request.spec.omit);
    let unit = 1 << seen.iter().map(|&w| (w as u64).trailing_zeros()).min().unwrap_or(0);
    let mss = sent.mss.unwrap_or(1448);
    let reached =
        sizes.asked_bytes.map(|asked| sizes.on_the_wire_bytes.is_some_and(|seen| fits(seen, asked, mss)));
    let note =
        sizes.asked_bytes.filter(|_| reached == Some(false)).map(|asked| match sizes.on_the_wire_bytes {
            None => WindowShortfall::Unreported,
            Some(seen) => why_not(seen, asked, unit, received.receive_buffer_bytes),
        });
    let method = match (request.spec.window, request.spec.socket_buffer) {
        (Some(_), _) => WindowMechanism::SocketClamp,
        (None, Some(_)) => WindowMechanism::ReceiveBuffer,
        (None, None) => WindowMechanism::Autotuned,
    };
    WindowReport { method, reached, note, ..sizes }
}

/// Returns what keeps a window from the requested size, as far as known.
fn why_not(seen_bytes: u64, asked: u64, unit_bytes: u64, buffer_bytes: Option<u64>) -> WindowShortfall {
    if seen_bytes > asked && seen_bytes - asked <= 2 * unit_bytes {
        return WindowShortfall::ScaleRounding { seen_bytes, unit_bytes };
    }
    if seen_bytes > asked {
        return WindowShortfall::NotShrunk { seen_bytes };
    }
    match buffer_bytes {
        // At least half of a buffer is window.
        Some(buffer_bytes) if buffer_bytes >= 2 * asked => {
            WindowShortfall::NotOffered { seen_bytes, buffer_bytes }
        }
        buffer_bytes => WindowShortfall::BufferTooSmall { seen_bytes, buffer_bytes },
    }
}

/// Whether a window holds as many whole segments as were asked for, within half a per cent; below one segment, and for
/// the window's scale, a bound on the bytes.
fn fits(seen: u64, asked: u64, mss: u64) -> bool {
    let mss = mss.max(1);
    if asked < mss {
        return seen.abs_diff(asked) * 50 <= asked;
    }
    (seen / mss).abs_diff(asked / mss) * 200 <= asked / mss
}

/// Adds what a flow revealed about the path.
pub fn note_path(path: &mut PathFacts, way: Direction, received: &Received, sent: &Sent) {
    let (to, from) = match way {
        Direction::To => (sent.path_mtu, received.path_mtu),
        Direction::From => (received.path_mtu, sent.path_mtu),
    };
    // A sender has tried its figure, a receiver hardly.
    let (tried_to, tried_from) = (way == Direction::To, way == Direction::From);
    path.mtu_to = if tried_to { to.or(path.mtu_to) } else { path.mtu_to.or(to) };
    path.mtu_from = if tried_from { from.or(path.mtu_from) } else { path.mtu_from.or(from) };
    path.mss_bytes = path.mss_bytes.or(sent.mss);
}

/// Adds caveats about the results.
pub fn add_caveats(request: &MeasureRequest, directions: &[DirectionResult], caveats: &mut Vec<Caveat>) {
    for result in directions {
        let direction = result.direction;
        if let Some(parts) = result.latency_parts_ns.filter(LatencyParts::hosts_matter) {
            let usual = || (parts.host.p95.unwrap_or(parts.host.p50), parts.host.p50 + parts.path.p50);
            let of_series = result.probes.as_ref().and_then(LatencyParts::of_usual_round_trips);
            let (host_ns, rtt_ns) = of_series.unwrap_or_else(usual);
            caveats.push(Caveat::HostLatency { direction, host_ns, rtt_ns });
        }
        caveats.extend(cut_buffers(request, result));
        // An end that reports its process alone has presumably a thread for each stream.
        let each = |process: f64| process / f64::from(request.spec.streams.max(1));
        let ends = [
            (Task::Sending, result.sender_thread_cpu.unwrap_or_else(|| each(result.sender_cpu))),
            (Task::Receiving, result.receiver_thread_cpu.unwrap_or_else(|| each(result.receiver_cpu))),
        ];
        for (task, cpu) in ends {
            if cpu >= BUSY_THREAD && result.duration_ns >= LONG_ENOUGH.as_ns() {
                caveats.push(Caveat::BusyThread { direction, task, share: to_percent(cpu.min(1.0)) });
            }
        }
        if let (EndReason::Duration, Some(asked)) = (&result.ended, request.spec.bytes) {
            caveats.push(Caveat::TimeRanOut {
                direction,
                bytes: result.bytes,
                asked_bytes: asked.as_bytes(),
                after_ns: result.duration_ns,
            });
        }
        if matches!(
            result.ended,
            EndReason::Reset | EndReason::Stopped | EndReason::Closed | EndReason::Silence
        ) {
            caveats.push(Caveat::EndedEarly { direction, reason: result.ended.clone() });
        }
        if let Some(udp) = &result.udp {
            caveats.extend(super::datagrams::caveats(request, direction, udp));
        }
        let shortfall = result.window.note.clone();
        caveats.extend(shortfall.map(|reason| Caveat::WindowNotReached { direction, reason }));
    }
}

/// Returns socket buffers that a kernel made smaller than requested: it takes no more than its `rmem_max` or
/// `wmem_max`, without an error, and reads twice what it took (socket(7)).
fn cut_buffers(request: &MeasureRequest, result: &DirectionResult) -> impl Iterator<Item = Caveat> {
    let asked = request.spec.socket_buffer.map(ByteCount::as_bytes);
    let received = result.window.socket_buffer_bytes;
    let received = received.or(result.udp.as_ref().and_then(|udp| udp.receive_buffer_bytes));
    let ends = [(Task::Sending, result.send_buffer_bytes), (Task::Receiving, received)];
    let direction = result.direction;
    ends.into_iter().filter_map(move |(task, reads)| {
        let (asked_bytes, granted_bytes) = (asked?, reads? / 2);
        (granted_bytes < asked_bytes).then_some(Caveat::SocketBufferCut {
            direction,
            task,
            asked_bytes,
            granted_bytes,
        })
    })
}

/// Returns a caveat if the server limits the rate itself.
pub fn rate_caveat(directions: &[DirectionResult], rate: Option<Rate>) -> Option<Caveat> {
    let rate = rate?;
    let near = |result: &&DirectionResult| result.goodput_bps >= 0.8 * rate.as_bps() as f64;
    let mut from = directions.iter().filter(|result| result.direction == Direction::From);
    from.any(|result| near(&result)).then(|| Caveat::ServerRateLimit { rate_bps: rate.as_bps() })
}

#[cfg(test)]
mod tests {
    use bdp_model::record::ReceiverSample;
    use bdp_wire::control::Mark;

    use super::*;

    #[test]
    fn a_window_is_reached_by_whole_segments() {
        assert!(fits(30_720, 30_408, 1448));
        assert!(!fits(53_576, 30_408, 1448));
        assert!(fits(66_560, 65_536, 32_741));
        assert!(fits(576, 570, 1448) && !fits(1024, 576, 1448));
    }

    #[test]
    fn the_spread_leaves_out_omit_and_a_short_end() {
        let sample = |ms: u64, bytes| ReceiverSample { at_ns: ms * 1_000_000, bytes, ..Default::default() };
        let received = Received {
            samples: vec![
                sample(0, 0),
                sample(100, 1),
                sample(200, 1_001),
                sample(300, 3_001),
                sample(310, 3_001),
            ],
            counted_from: Mark { at_ns: 100_000_000, bytes: 1 },
            ..Default::default()
        };
        let spread = spread(&received).unwrap();
        assert_eq!((spread.intervals, spread.p50), (2, 120_000.0));
    }

    #[test]
    fn one_long_interval_leaves_the_others_in_the_spread() {
        let at = [0, 100, 200, 300, 650, 700, 800, 900];
        let received = Received {
            samples: at
                .map(|ms| ReceiverSample { at_ns: ms * 1_000_000, bytes: ms * 1000, ..Default::default() })
                .to_vec(),
            ..Default::default()
        };
        let spread = spread(&received).unwrap();
        assert_eq!((spread.intervals, spread.min, spread.max, spread.p5), (6, Some(8e6), Some(8e6), None));
    }

    #[test]
    fn socket_buffer_that_a_kernel_cut_is_a_caveat() {
        let mut request = MeasureRequest::to("ams1");
        request.spec.socket_buffer = Some(ByteCount::kib(4096));
        let received = |reads| Received {
            bytes: 1_000_000,
            duration_ns: 1_000_000_000,
            receive_buffer_bytes: Some(reads),
            ..Default::default()
        };
        let sent = Sent { send_buffer_bytes: Some(8 << 20), ..Default::default() };
        let of = |request: &MeasureRequest, reads| {
            let rtt = RttReport::default();
            let found = result(request, Direction::To, received(reads), sent.clone(), rtt, None).unwrap();
            cut_buffers(request, &found).collect::<Vec<_>>()
        };
        // The kernel reads twice what it took: 208 KiB of net.core.rmem_max.
        let cut = Caveat::SocketBufferCut {
            direction: Direction::To,
            task: Task::Receiving,
            asked_bytes: 4 << 20,
            granted_bytes: 212_992,
        };
        assert_eq!(of(&request, 425_984), [cut]);
        assert_eq!(of(&request, 8 << 20), []);
        request.spec.socket_buffer = None;
        assert_eq!(of(&request, 425_984), []);
    }

    #[test]
    fn a_window_that_is_not_reached_has_a_reason() {
        use WindowShortfall::{BufferTooSmall, NotOffered, NotShrunk, ScaleRounding};
        let buffer = Some(425_984);
        for (seen, asked, unit, buffer_bytes, reason) in [
            (1152, 1024, 128, 262_144, ScaleRounding { seen_bytes: 1152, unit_bytes: 128 }),
            (2048, 1000, 1024, 262_144, ScaleRounding { seen_bytes: 2048, unit_bytes: 1024 }),
            (131_072, 65_536, 1024, 524_288, NotShrunk { seen_bytes: 131_072 }),
            (212_992, 1 << 20, 1024, 425_984, BufferTooSmall { seen_bytes: 212_992, buffer_bytes: buffer }),
            (1024, 65_536, 1024, 524_288, NotOffered { seen_bytes: 1024, buffer_bytes: 524_288 }),
        ] {
            assert_eq!(why_not(seen, asked, unit, Some(buffer_bytes)), reason);
        }
    }
}
