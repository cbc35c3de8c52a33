//! The points of the suite.

use bdp_model::units::Nanos;

use super::bench::Bench;
use super::segment::{ACK, FIN, Options, RST, SYN, Segment};
use super::subject::{Miss, Verdict};
use crate::{SocketOptions, SocketState};

/// A point of the suite.
pub struct Point {
    /// In a word or two.
    pub name: &'static str,
    /// What is held against it.
    pub what: &'static str,
    /// Where it is asked.
    pub source: &'static str,
    /// Tries it.
    pub(super) check: fn(&mut Bench<'_>) -> Verdict,
}

/// Every point, in the order of a connection's life.
pub const POINTS: &[Point] = &[
    Point {
        name: "options, asked",
        what: "it answers a SYN only with options that were in the SYN, and with MSS",
        source: "RFC 7323, 1.3; RFC 2018, 2; RFC 9293, 3.7.1",
        check: options_asked,
    },
    Point {
        name: "options, asking",
        what: "it sends MSS in its SYN, and uses no option that the SYN-ACK does not have",
        source: "RFC 9293, 3.7.1; RFC 7323, 2.5 and 3.2",
        check: options_asking,
    },
    Point {
        name: "segment size",
        what: "it sends no segment longer than the other end's MSS, or 536 bytes if none was given",
        source: "RFC 9293, 3.7.1",
        check: segment_size,
    },
    Point {
        name: "content, sent",
        what: "a megabyte that it sends arrives completely, and ends with FIN",
        source: "RFC 9293, 3.10",
        check: content_sent,
    },
    Point {
        name: "content, received",
        what: "a megabyte that it receives is read completely, and its window is respected",
        source: "RFC 9293, 3.10",
        check: content_received,
    },
    Point {
        name: "damage",
        what: "a segment whose checksum is wrong is neither read nor acknowledged",
        source: "RFC 9293, 3.1",
        check: damage,
    },
    Point {
        name: "loss, fast",
        what: "after three duplicate acknowledgements it sends the missing segment at once",
        source: "RFC 5681, 3.2",
        check: loss_fast,
    },
    Point {
        name: "loss, timeout",
        what: "unacknowledged segments are retransmitted with doubling timeouts, not within 200 ms",
        source: "RFC 6298, 5",
        check: loss_timeout,
    },
    Point {
        name: "reordering",
        what: "segments out of order are kept, acknowledged at once, and read in order",
        source: "RFC 5681, 4.2",
        check: reordering,
    },
    Point {
        name: "duplicates",
        what: "duplicate data is acknowledged and not read again, and data beyond the window is not read",
        source: "RFC 9293, 3.10.7.4",
        check: duplicates,
    },
    Point {
        name: "zero window",
        what: "it closes its window if nothing is read, and sends an update when it opens again",
        source: "RFC 9293, 3.8.6",
        check: zero_window,
    },
    Point {
        name: "persist",
        what: "it probes a window that stays closed for minutes, at growing intervals, and continues when it opens",
        source: "RFC 9293, 3.8.6.1",
        check: persist,
    },
    Point {
        name: "half close, other end",
        what: "after the other end's FIN it still sends, until it closes its own direction",
        source: "RFC 9293, 3.6",
        check: half_close_of_other,
    },
    Point {
        name: "half close, its own",
        what: "after its own FIN it still reads, until the other end's",
        source: "RFC 9293, 3.6",
        check: half_close_of_own,
    },
    Point {
        name: "reset, received",
        what: "a reset at the expected number ends the connection; one elsewhere in the window does not",
        source: "RFC 9293, 3.10.7.4; RFC 5961, 3",
        check: reset_received,
    },
    Point {
        name: "reset, sent",
        what: "it resets a connection that is aborted, and answers a SYN to a closed port with a reset",
        source: "RFC 9293, 3.10.5 and 3.10.7.1",
        check: reset_sent,
    },
    Point {
        name: "simultaneous open",
        what: "two SYNs that cross open one connection",
        source: "RFC 9293, 3.5",
        check: simultaneous_open,
    },
    Point {
        name: "wrapped numbers",
        what: "sequence numbers wrap at 2^32 while it reads",
        source: "RFC 9293, 3.4",
        check: wrapped_numbers,
    },
];

/// Options that a stack of today offers.
fn usual() -> Options {
    Options {
        mss: Some(1460),
        scale: Some(7),
        sack_permitted: true,
        timestamps: Some((1, 0)),
        sack: Vec::new(),
    }
}

fn plain() -> Options {
    Options { mss: Some(1460), ..Options::default() }
}

fn differs<T>(text: impl Into<String>) -> Result<T, Miss> {
    Err(Miss::Differs(text.into()))
}

fn seconds(time: Nanos) -> String {
    let seconds = time.as_secs_f64();
    if seconds < 10.0 { format!("{seconds:.2} s") } else { format!("{seconds:.0} s") }
}

/// What a SYN has, in words.
fn named(options: &Options) -> String {
    let mut names = Vec::new();
    if let Some(mss) = options.mss {
        names.push(format!("MSS {mss}"));
    }
    if let Some(scale) = options.scale {
        names.push(format!("scale {scale}"));
    }
    if options.sack_permitted {
        names.push("SACK".to_owned());
    }
    if options.timestamps.is_some() {
        names.push("timestamps".to_owned());
    }
    names.join(", ")
}

fn options_asked(bench: &mut Bench<'_>) -> Verdict {
    let answer = bench.open_to_it(plain())?;
    let got = &answer.options;
    if got.scale.is_some() || got.sack_permitted || got.timestamps.is_some() {
        return differs(format!("it answers a SYN that has only MSS by {}", named(got)));
    }
    if got.mss.is_none() {
        return differs("it sends no MSS");
    }
    Ok(named(got))
}

fn options_asking(bench: &mut Bench<'_>) -> Verdict {
    let syn = bench.open_from_it(SocketOptions::default(), plain())?;
    let asked = named(&syn.options);
    if syn.options.mss.is_none() {
        return differs(format!("its SYN has no MSS ({asked})"));
    }
    bench.send_data(1)?;
    let data = bench.expect("data", |s| !s.payload.is_empty())?;
    if data.options.timestamps.is_some() {
        return differs("it sends timestamps that were not negotiated");
    }
    Ok(asked)
}

fn segment_size(bench: &mut Bench<'_>) -> Verdict {
    bench.open_to_it(Options { mss: Some(700), ..Options::default() })?;
    bench.send_data(3_000)?;
    let longest = |all: &[(Nanos, Segment)]| all.iter().map(|(_, s)| s.payload.len()).max().unwrap_or(0);
    let all = bench.all_within(Nanos::millis(100))?;
    let with = longest(&all);
    if with > 700 || with == 0 {
        return differs(format!("segments of {with} bytes with an MSS of 700"));
    }
    Ok(format!("{with} of 700"))
}

fn content_sent(bench: &mut Bench<'_>) -> Verdict {
    const BYTES: u64 = 1 << 20;
    bench.open_from_it(SocketOptions::default(), usual())?;
    bench.send_data(BYTES)?;
    bench.finish()?;
    bench.take(BYTES, Nanos::secs(300))?;
    let end = bench.data_begins.wrapping_add(BYTES as u32);
    if bench.expected != end {
        // It came with the last of the data.
        return Ok(String::new());
    }
    match bench.await_within(Nanos::secs(60), |s| s.has(FIN))? {
        Some((_, fin)) if fin.end() == end.wrapping_add(1) => Ok(String::new()),
        Some(_) => differs("its FIN has a sequence number that does not follow the data"),
        None => differs("no FIN after the data"),
    }
}

fn content_received(bench: &mut Bench<'_>) -> Verdict {
    const BYTES: u64 = 1 << 20;
    bench.open_to_it(usual())?;
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
        // Bounded, so that what the counterpart says in one go stays small.
        allowed = (u64::from(segment.window) << bench.scale).min(60_000);
    }
    bench.settle()?;
    bench.has_read(BYTES)?;
    Ok(String::new())
}

fn damage(bench: &mut Bench<'_>) -> Verdict {
    bench.open_to_it(usual())?;
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

/// Has the subject fill a window, some round trips after it began.
fn warm_up(bench: &mut Bench<'_>) -> Result<(), Miss> {
    bench.open_from_it(SocketOptions::default(), Options { timestamps: None, ..usual() })?;
    bench.send_data(10 << 20)?;
    bench.take(100_000, Nanos::secs(60))
}

fn loss_fast(bench: &mut Bench<'_>) -> Verdict {
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

fn loss_timeout(bench: &mut Bench<'_>) -> Verdict {
    bench.open_from_it(SocketOptions::default(), usual())?;
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
    // A probe of the tail may come first (RFC 8985).
    let doubles = |short: Nanos, long: Nanos| long.as_ns() as f64 >= 1.5 * short.as_ns() as f64;
    if one < Nanos::millis(10) {
        return differs(format!("after {text}"));
    }
    if !doubles(two, three) && !doubles(one, two) {
        return differs(format!("no longer each time: {text}"));
    }
    Ok(text)
}

fn reordering(bench: &mut Bench<'_>) -> Verdict {
    bench.open_to_it(usual())?;
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

fn duplicates(bench: &mut Bench<'_>) -> Verdict {
    let answer = bench.open_to_it(plain())?;
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
    // Half of it is new.
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

fn zero_window(bench: &mut Bench<'_>) -> Verdict {
    let answer = bench.open_to_it(plain())?;
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
            // Linux drops what exceeds its memory though the window had room: it is sent once more.
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

fn persist(bench: &mut Bench<'_>) -> Verdict {
    bench.window = 2_000;
    bench.open_from_it(SocketOptions::default(), plain())?;
    bench.send_data(50_000)?;
    for (_, segment) in bench.all_within(Nanos::millis(100))? {
        if segment.sequence == bench.expected && !segment.payload.is_empty() {
            bench.look(&segment)?;
            bench.expected = segment.end();
        }
    }
    // All that is in flight came, and no more is wanted.
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

fn half_close_of_other(bench: &mut Bench<'_>) -> Verdict {
    bench.open_to_it(usual())?;
    bench.read(None)?;
    let mut fin = bench.data(bench.next, 0, 100);
    fin.flags |= FIN;
    bench.say(&fin)?;
    bench.next = bench.next.wrapping_add(101);
    let next = bench.next;
    bench.expect("acknowledgement of the FIN", |s| s.acknowledgement == next)?;
    bench.has_read(100)?;
    if !bench.state()?.ended {
        return differs("its socket does not report the end");
    }
    bench.send_data(20_000)?;
    bench.take(20_000, Nanos::secs(30))?;
    bench.finish()?;
    let fin = bench.expect("FIN", |s| s.has(FIN))?;
    bench.expected = fin.end();
    bench.acknowledge()?;
    bench.settle()?;
    match bench.state()?.state {
        SocketState::Closed => Ok(String::new()),
        other => differs(format!("at the end its socket is {other:?}").to_lowercase()),
    }
}

fn half_close_of_own(bench: &mut Bench<'_>) -> Verdict {
    bench.open_to_it(usual())?;
    bench.read(None)?;
    bench.send_data(100)?;
    bench.finish()?;
    bench.take(100, Nanos::secs(5))?;
    let fin = match bench.await_within(Nanos::secs(5), |s| s.has(FIN))? {
        Some((_, fin)) => fin,
        None => return differs("no FIN arrived"),
    };
    bench.expected = fin.end();
    bench.acknowledge()?;
    bench.settle()?;
    let first = bench.next;
    for part in 0..10 {
        let segment = bench.data(first, part * 1000, 1000);
        bench.say(&segment)?;
    }
    bench.settle()?;
    bench.has_read(10_000)?;
    bench.next = first.wrapping_add(10_000);
    let end = bench.segment(FIN | ACK);
    bench.say(&end)?;
    let next = bench.next.wrapping_add(1);
    bench.expect("acknowledgement of the FIN", |s| s.acknowledgement == next)?;
    match bench.state()?.state {
        SocketState::Closed => Ok(String::new()),
        other => differs(format!("at the end its socket is {other:?}").to_lowercase()),
    }
}

fn reset_received(bench: &mut Bench<'_>) -> Verdict {
    bench.open_to_it(plain())?;
    bench.read(None)?;
    bench.settle()?;
    let mut reset = bench.segment(RST);
    reset.sequence = bench.next.wrapping_add(1000);
    bench.say(&reset)?;
    let challenge = bench.all_within(Nanos::millis(100))?;
    let survived = bench.state()?.state == SocketState::Open;
    let reset = bench.segment(RST);
    bench.say(&reset)?;
    bench.settle()?;
    let lost = bench.state()?.state == SocketState::Lost;
    match (survived, lost) {
        (true, true) if challenge.is_empty() => Ok("no challenge of the other one".to_owned()),
        (true, true) => Ok(String::new()),
        (false, _) => differs("a reset anywhere in the window ends the connection"),
        (true, false) => differs("a reset at the expected number does not end the connection"),
    }
}

fn reset_sent(bench: &mut Bench<'_>) -> Verdict {
    let syn = Segment { to_port: 4_999, options: plain(), ..bench.segment(SYN) };
    bench.say(&syn)?;
    let refused = bench.await_within(Nanos::secs(1), |s| s.from_port == 4_999 && s.has(RST))?;
    bench.open_to_it(plain())?;
    bench.settle()?;
    bench.abort()?;
    let reset = bench.await_within(Nanos::secs(1), |s| s.has(RST))?;
    match (refused, reset) {
        (Some((_, refused)), Some((_, reset))) => {
            let right = refused.acknowledgement == syn.end() && reset.sequence == bench.expected;
            if right { Ok(String::new()) } else { differs("its reset has another number") }
        }
        (None, _) => differs("it does not refuse a SYN to a closed port"),
        (_, None) => differs("it sends no reset when it aborts"),
    }
}

fn simultaneous_open(bench: &mut Bench<'_>) -> Verdict {
    bench.connect(SocketOptions::default())?;
    let syn = bench.expect("SYN", |s| s.has(SYN))?;
    let crossing = Segment { options: plain(), ..bench.segment(SYN) };
    bench.say(&crossing)?;
    let answer = bench.await_within(Nanos::secs(1), |s| s.has(SYN | ACK))?;
    let Some((_, answer)) = answer else { return differs("it answers a crossing SYN by no SYN-ACK") };
    if answer.sequence != syn.sequence || answer.acknowledgement != crossing.end() {
        return differs("its SYN-ACK has another number than its SYN");
    }
    bench.next = bench.next.wrapping_add(1);
    bench.agree(&syn, &plain());
    bench.acknowledge()?;
    bench.is_open()?;
    bench.send_data(1_000)?;
    bench.take(1_000, Nanos::secs(5))?;
    Ok(String::new())
}

fn wrapped_numbers(bench: &mut Bench<'_>) -> Verdict {
    bench.next = 0u32.wrapping_sub(5_000);
    bench.open_to_it(usual())?;
    bench.read(None)?;
    bench.settle()?;
    let first = bench.next;
    // One of those on either side, and one across, come late.
    for part in [0u64, 1, 2, 3, 5, 4, 6, 7, 9, 8] {
        let segment = bench.data(first, part * 1_000, 1_000);
        bench.say(&segment)?;
        bench.all_within(Nanos::millis(1))?;
    }
    bench.settle()?;
    bench.has_read(10_000)?;
    Ok(String::new())
}
