//! Tests how data is transferred: complete, damaged, lost, out of order, duplicated.

use bdp_model::units::Nanos;

use super::bench::Bench;
use super::segment::{ACK, FIN, Options, RST};
use super::subject::{Miss, Verdict, differs, seconds};
use crate::SocketOptions;

pub(super) fn content_sent(bench: &mut Bench<'_>) -> Verdict {
    const BYTES: u64 = 1 << 20;
    bench.open_from_it(SocketOptions::default(), Options::usual())?;
    bench.send_data(BYTES)?;
    bench.finish()?;
    bench.take(BYTES, Nanos::secs(300))?;
    let end = bench.data_begins.wrapping_add(BYTES as u32);
    if bench.expected != end {
        // It arrived with the last of the data.
        return Ok(String::new());
    }
    match bench.await_within(Nanos::secs(60), |s| s.has(FIN))? {
        Some((_, fin)) if fin.end() == end.wrapping_add(1) => Ok(String::new()),
        Some(_) => differs("its FIN has a sequence number that does not follow the data"),
        None => differs("no FIN after the data"),
    }
}

pub(super) fn content_received(bench: &mut Bench<'_>) -> Verdict {
    const BYTES: u64 = 1 << 20;
    bench.open_to_it(Options::usual())?;
    bench.read(None)?;
    let first = bench.next;
    let (mut sent, mut acked, mut allowed) = (0u64, 0u64, 14_600u64);
    let until = bench.now() + Nanos::secs(300);
    while acked < BYTES {
        while sent < BYTES && sent < acked + allowed {
            let bytes = 1400.min(BYTES - sent).min(acked + allowed - sent) as usize;
            let segment = bench.data(first, sent, bytes);
            bench.say(&segment)?;
            sent += bytes as u64;
        }
        let Some((_, segment)) = bench.next_within(until.saturating_sub(bench.now()))? else {
            return differs(format!("it acknowledged {acked} of {BYTES} bytes"));
        };
        if segment.has(RST) {
            return differs(format!("a reset after {acked} bytes"));
        }
        let now = u64::from(segment.acknowledgement.wrapping_sub(first));
        if now > sent {
            return differs("it acknowledges data that was not sent");
        }
        acked = acked.max(now);
        // Bounded, so that the peer sends little at once.
        allowed = (u64::from(segment.window) << bench.scale).min(60_000);
    }
    bench.settle()?;
    bench.has_read(BYTES)?;
    Ok(String::new())
}

pub(super) fn damage(bench: &mut Bench<'_>) -> Verdict {
    bench.open_to_it(Options::usual())?;
    bench.read(None)?;
    bench.settle()?;
    let first = bench.next;
    let segment = bench.data(first, 0, 100);
    bench.say_damaged(&segment)?;
    let all = bench.all_within(Nanos::secs(1))?;
    if all.iter().any(|(_, s)| s.acknowledgement == first.wrapping_add(100)) {
        return differs("it acknowledges a damaged segment");
    }
    bench.say(&segment)?;
    bench.settle()?;
    bench.has_read(100)?;
    Ok(String::new())
}

pub(super) fn loss_fast(bench: &mut Bench<'_>) -> Verdict {
    warm_up(bench)?;
    let lost = bench.expected;
    let flight: Vec<_> = bench
        .all_within(Nanos::millis(50))?
        .into_iter()
        .filter(|(_, s)| !s.payload.is_empty() && s.sequence.wrapping_sub(lost) < 1 << 30)
        .collect();
    let behind: Vec<(u32, u32)> =
        flight.iter().filter(|(_, s)| s.sequence != lost).map(|(_, s)| (s.sequence, s.end())).collect();
    if behind.len() < 4 {
        return differs(format!("only {} segments are in flight", behind.len()));
    }
    let began = bench.now();
    let sack = bench.offered.sack_permitted;
    for count in 1..=4 {
        let mut ack = bench.segment(ACK);
        if sack {
            ack.options.sack = vec![(behind[0].0, behind[count - 1].1)];
        }
        bench.say(&ack)?;
    }
    let again = bench.await_within(Nanos::secs(60), |s| s.sequence == lost && !s.payload.is_empty())?;
    let Some((at, segment)) = again else { return differs("the lost segment was not retransmitted") };
    bench.look(&segment)?;
    let took = at.saturating_sub(began);
    if took > Nanos::millis(10) {
        return differs(format!("it was retransmitted after {}, by a timeout", seconds(took)));
    }
    Ok(String::new())
}

/// Makes the subject fill a window some round trips after its start.
fn warm_up(bench: &mut Bench<'_>) -> Result<(), Miss> {
    bench.open_from_it(SocketOptions::default(), Options { timestamps: None, ..Options::usual() })?;
    bench.send_data(10 << 20)?;
    bench.take(100_000, Nanos::secs(60))
}

pub(super) fn loss_timeout(bench: &mut Bench<'_>) -> Verdict {
    bench.open_from_it(SocketOptions::default(), Options::usual())?;
    bench.send_data(1000)?;
    let first = bench.data_begins;
    let mut times = Vec::new();
    while times.len() < 4 {
        let next = bench.await_within(Nanos::secs(200), |s| s.sequence == first && !s.payload.is_empty())?;
        let Some((at, segment)) = next else { break };
        bench.look(&segment)?;
        times.push(at);
    }
    let gaps: Vec<Nanos> = times.windows(2).map(|pair| pair[1].saturating_sub(pair[0])).collect();
    let text = gaps.iter().map(|&gap| seconds(gap)).collect::<Vec<_>>().join(", ");
    let [one, two, three] = gaps[..] else {
        return differs(format!("it was retransmitted {} times", gaps.len()));
    };
    // A tail loss probe may come first (RFC 8985).
    let doubles = |short: Nanos, long: Nanos| long.as_ns() as f64 >= 1.5 * short.as_ns() as f64;
    if one < Nanos::millis(10) {
        return differs(format!("after {text}"));
    }
    if !doubles(two, three) && !doubles(one, two) {
        return differs(format!("no longer each time: {text}"));
    }
    Ok(text)
}

pub(super) fn reordering(bench: &mut Bench<'_>) -> Verdict {
    bench.open_to_it(Options::usual())?;
    bench.read(None)?;
    bench.settle()?;
    let first = bench.next;
    let mut at_once = 0;
    let mut sacked = 0;
    for part in [3u64, 1, 2] {
        let segment = bench.data(first, part * 100, 100);
        bench.say(&segment)?;
        let all = bench.all_within(Nanos::millis(5))?;
        at_once += usize::from(all.iter().any(|(_, s)| s.acknowledgement == first));
        sacked = sacked.max(all.iter().map(|(_, s)| s.options.sack.len()).max().unwrap_or(0));
    }
    let segment = bench.data(first, 0, 100);
    bench.say(&segment)?;
    bench.settle()?;
    bench.has_read(400)?;
    if at_once < 3 {
        return differs(format!("{at_once} of 3 segments out of order were acknowledged at once"));
    }
    Ok(match (bench.offered.sack_permitted, sacked) {
        (true, 0) => "SACK was negotiated, but is not used".to_owned(),
        (true, blocks) => format!("SACK, {blocks} blocks"),
        (false, _) => "no SACK".to_owned(),
    })
}

pub(super) fn duplicates(bench: &mut Bench<'_>) -> Verdict {
    let answer = bench.open_to_it(Options::plain())?;
    bench.read(None)?;
    bench.settle()?;
    let first = bench.next;
    let segment = bench.data(first, 0, 200);
    bench.say(&segment)?;
    bench.settle()?;
    bench.say(&segment)?;
    let all = bench.all_within(Nanos::secs(1))?;
    if !all.iter().any(|(_, s)| s.has(ACK) && s.acknowledgement == first.wrapping_add(200)) {
        return differs("a duplicate is not acknowledged");
    }
    // Half of its data is new.
    let segment = bench.data(first, 100, 200);
    bench.say(&segment)?;
    bench.settle()?;
    bench.has_read(300)?;
    let beyond = bench.data(first, 300 + u64::from(answer.window) + 100_000, 100);
    bench.say(&beyond)?;
    bench.settle()?;
    bench.has_read(300)?;
    Ok(String::new())
}

pub(super) fn wrapped_numbers(bench: &mut Bench<'_>) -> Verdict {
    bench.next = 0u32.wrapping_sub(5_000);
    bench.open_to_it(Options::usual())?;
    bench.read(None)?;
    bench.settle()?;
    let first = bench.next;
    // One segment on either side of the wrap, and one across it, arrive late.
    for part in [0u64, 1, 2, 3, 5, 4, 6, 7, 9, 8] {
        let segment = bench.data(first, part * 1_000, 1_000);
        bench.say(&segment)?;
        bench.all_within(Nanos::millis(1))?;
    }
    bench.settle()?;
    bench.has_read(10_000)?;
    Ok(String::new())
}
