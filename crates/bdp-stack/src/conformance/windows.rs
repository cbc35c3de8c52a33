//! Tests how windows close and open again.

use bdp_model::units::Nanos;

use super::bench::Bench;
use super::segment::{ACK, FIN, Options, RST};
use super::subject::{Verdict, differs, seconds};
use crate::SocketOptions;

pub(super) fn zero_window(bench: &mut Bench<'_>) -> Verdict {
    let answer = bench.open_to_it(Options::plain())?;
    let first = bench.next;
    let (mut sent, mut acked, mut window) = (0u64, 0u64, u64::from(answer.window));
    let most = 8 << 20;
    for _ in 0..20_000 {
        if acked == sent && window == 0 || sent >= most {
            break;
        }
        while sent < acked + window && sent < most {
            let bytes = 1400.min(acked + window - sent) as usize;
            let segment = bench.data(first, sent, bytes);
            bench.say(&segment)?;
            sent += bytes as u64;
        }
        let all = bench.all_within(Nanos::millis(300))?;
        if all.is_empty() && acked < sent {
            // Linux drops what exceeds its memory although the window had space, so it is retransmitted.
            sent = acked;
        }
        for (_, segment) in all {
            acked = acked.max(u64::from(segment.acknowledgement.wrapping_sub(first)));
            window = u64::from(segment.window);
        }
    }
    if window != 0 {
        return differs(format!("its window is still {window} bytes after {acked} unread bytes"));
    }
    bench.settle()?;
    bench.read(None)?;
    let update = bench.await_within(Nanos::secs(5), |s| s.window > 0)?;
    bench.settle()?;
    bench.has_read(acked)?;
    match update {
        Some(_) => Ok(format!("closed after {acked} bytes")),
        None => differs("no window update after the data was read"),
    }
}

pub(super) fn persist(bench: &mut Bench<'_>) -> Verdict {
    bench.window = 2_000;
    bench.open_from_it(SocketOptions::default(), Options::plain())?;
    bench.send_data(50_000)?;
    for (_, segment) in bench.all_within(Nanos::millis(100))? {
        if segment.sequence == bench.expected && !segment.payload.is_empty() {
            bench.look(&segment)?;
            bench.expected = segment.end();
        }
    }
    // Everything in flight has arrived, and no more is wanted.
    bench.window = 0;
    bench.acknowledge()?;
    let mut probes = Vec::new();
    let until = bench.now() + Nanos::secs(400);
    while bench.now() < until {
        let Some((at, segment)) = bench.next_within(until.saturating_sub(bench.now()))? else { break };
        if segment.has(RST) || segment.has(FIN) {
            return differs("it drops the connection");
        }
        probes.push(at);
        let closed = bench.segment(ACK);
        bench.say(&closed)?;
    }
    if probes.len() < 3 {
        return differs(format!("{} probes in 400 s", probes.len()));
    }
    let gap = |pair: &[Nanos]| pair[1].saturating_sub(pair[0]);
    let gaps: Vec<Nanos> = probes.windows(2).map(gap).collect();
    let (begin, end) = (gaps[0], gaps[gaps.len() - 1]);
    if end <= begin {
        return differs(format!("{} probes, always after {}", probes.len(), seconds(end)));
    }
    bench.window = 65_535;
    bench.acknowledge()?;
    bench.take(50_000, Nanos::secs(200))?;
    Ok(format!("{} probes in 400 s, the last after {}", probes.len(), seconds(end)))
}
