//! Which rule is asked first, and which of two that both could claim has the word.

use bdp_model::facts::Facts;
use bdp_model::finding::{Confidence, Limit};
use bdp_model::measurement::Ceiling;

use crate::rules::shape::{MIB, MS, MSS, Shape, WINDOW_BOUND, found, limit, lost, retransmit};

#[test]
fn each_shape_has_its_limit() {
    use Confidence::{High, Low, Medium};
    use Limit::{Ceiling, Cpu, PathRate, ReceiveWindow, SendBuffer, Unknown};
    let window = WINDOW_BOUND;
    // A large receive window, and 512 KiB of payload in a send buffer of 1 MiB.
    let buffer = Shape {
        goodput_mbps: 170.0,
        in_flight: MIB / 2,
        receive_window: 8 * MIB,
        rwnd_limited: Some(0.0),
        sndbuf_limited: Some(0.9),
        send_buffer: MIB,
        ..WINDOW_BOUND
    };
    // Half a congestion window after each loss.
    let lossy = Shape {
        goodput_mbps: 60.0,
        in_flight: 180 * 1024,
        cwnd: 180 * 1024,
        receive_window: 8 * MIB,
        rwnd_limited: Some(0.0),
        steady: 0.6,
        retransmits: 240,
        ..WINDOW_BOUND
    };
    // A buffer of tcp_wmem's largest, of which writes take exactly what is free.
    let used_up = Shape {
        goodput_mbps: 728.0,
        in_flight: 21 * MIB / 10,
        cwnd: 4 * MIB,
        sndbuf_limited: Some(0.01),
        send_buffer: 4 * MIB,
        ..buffer.clone()
    };
    let tiny = Shape { goodput_mbps: 0.1, in_flight: 0, receive_window: 1152, ..WINDOW_BOUND };
    let full = Shape { goodput_mbps: 934.0, rtt_loaded: 72 * MS, ..window.clone() };
    let queue = Shape { goodput_mbps: 95.0, rtt_loaded: 88 * MS, receive_window: MIB, ..window.clone() };
    let cases: &[(&str, Shape, Limit, Confidence)] = &[
        ("window", window.clone(), ReceiveWindow, High),
        (
            "window, half of the time",
            Shape { share: 0.6, goodput_mbps: 260.0, ..window.clone() },
            ReceiveWindow,
            Medium,
        ),
        (
            "window, the kernel denies it",
            Shape { rwnd_limited: Some(0.0), ..window.clone() },
            ReceiveWindow,
            Medium,
        ),
        ("window, the kernel is silent", Shape { rwnd_limited: None, ..window.clone() }, ReceiveWindow, High),
        ("window full by and by", Shape { share: 0.45, ..window.clone() }, ReceiveWindow, Low),
        ("window seldom full", Shape { share: 0.3, rwnd_limited: Some(0.1), ..window.clone() }, Unknown, Low),
        ("window full, a third reached", Shape { goodput_mbps: 110.0, ..window.clone() }, ReceiveWindow, Low),
        ("congestion window as full", Shape { cwnd: MIB / MSS * MSS, ..window.clone() }, Unknown, Low),
        ("buffer", buffer.clone(), SendBuffer, High),
        ("buffer, the kernel is silent", Shape { sndbuf_limited: None, ..buffer.clone() }, SendBuffer, Low),
        ("buffer, the kernel denies it", Shape { sndbuf_limited: Some(0.0), ..buffer.clone() }, Unknown, Low),
        ("buffer used up, the kernel denies it", used_up.clone(), SendBuffer, Low),
        ("buffer that grows, the kernel denies it", Shape { send_buffer: 3 * MIB, ..used_up }, Unknown, Low),
        ("window under a segment", tiny.clone(), ReceiveWindow, High),
        (
            "window under a segment, seldom full",
            Shape { share: 0.5, receive_window: 8192, ..tiny },
            ReceiveWindow,
            Low,
        ),
        ("buffer of unknown room", Shape { send_buffer: 64 * MIB, ..buffer.clone() }, SendBuffer, Medium),
        (
            "buffer full beside the congestion window",
            Shape { cwnd: MIB / 2, ..buffer.clone() },
            SendBuffer,
            Low,
        ),
        ("buffer, goodput elsewhere", Shape { goodput_mbps: 50.0, ..buffer.clone() }, SendBuffer, Low),
        ("ceiling", full.clone(), Ceiling, High),
        (
            "just below the ceiling",
            Shape { goodput_mbps: 880.0, rtt_loaded: 25 * MS, ..full.clone() },
            Unknown,
            Low,
        ),
        ("above the ceiling", Shape { goodput_mbps: 2000.0, ..full.clone() }, Ceiling, Low),
        ("no NIC is known", Shape { nics: [None; 2], share: 0.2, rtt_loaded: 25 * MS, ..full }, Unknown, Low),
        ("a queue on the path", queue.clone(), PathRate, Medium),
        ("a queue, but a process is busy", Shape { cpu: 0.99, share: 0.2, ..queue.clone() }, Cpu, High),
        (
            "a queue all the time, though the goodput jumps",
            Shape { steady: 0.5, share: 0.2, ..queue },
            PathRate,
            Medium,
        ),
        ("loss", lossy, Unknown, Low),
    ];
    for (name, shape, limit, confidence) in cases {
        let finding = shape.finding();
        assert_eq!((finding.limit, finding.confidence), (*limit, *confidence), "{name}: {finding:#?}");
        assert!(!finding.evidence.is_empty(), "{name}: {finding:#?}");
    }
}

/// What an earlier answer makes meaningless is not asked: each pair has both, and the first of them has the word.
#[test]
fn of_two_that_both_are_there_the_one_that_explains_the_other_is_named() {
    let queue = |facts: &mut Facts| {
        facts.sent.iter_mut().for_each(|s| s.srtt_ns = Some(70 * MS));
        let loaded = facts.rtt_ns.loaded.as_mut().unwrap();
        (loaded.p50, loaded.p95) = (70 * MS, Some(72 * MS));
    };
    let full_window = |facts: &mut Facts| {
        for sample in &mut facts.sent {
            (sample.snd_wnd_bytes, sample.cwnd) = (Some(42 * MSS), Some(80));
            sample.rwnd_limited_ns = sample.busy_ns.map(|busy| busy / 2);
        }
    };
    let losses = |facts: &mut Facts| {
        facts.loss_episodes = (0..12).map(|i| lost(8 * i + 2, [12, 40, 20, 33][i as usize % 4])).collect();
        retransmit(facts, 60);
    };
    let unread = |facts: &mut Facts| facts.received.iter_mut().for_each(|s| s.unread_bytes = Some(200_000));
    let reordered = |facts: &mut Facts| {
        (0..).zip(&mut facts.sent).for_each(|(i, sample)| sample.reorder_seen = Some(i));
    };
    type Change<'a> = &'a dyn Fn(&mut Facts);
    let cases: [(&str, [Change; 2], Limit); 6] = [
        ("full window behind a queue", [&full_window, &queue], Limit::PathRate),
        ("losses beside a full window", [&full_window, &losses], Limit::ReceiveWindow),
        ("reader that fills its window, and a queue", [&full_window, &unread], Limit::SlowReader),
        ("losses of a queue that stands", [&queue, &losses], Limit::PathRate),
        ("reordering that looks like losses", [&reordered, &losses], Limit::Reordering),
        ("reordering beside a full window", [&reordered, &full_window], Limit::ReceiveWindow),
    ];
    for (name, changes, expected) in cases {
        let finding = found(|facts| changes.iter().for_each(|change| change(facts)));
        assert_eq!(finding.limit, expected, "{name}: {finding:#?}");
    }
    let all = limit(|facts| {
        full_window(facts);
        unread(facts);
        queue(facts);
    });
    assert_eq!(all, Limit::SlowReader, "bursts of a reader fill the queue");
    // A ceiling that is reached leaves nothing to find.
    let at_ceiling = limit(|facts| {
        full_window(facts);
        queue(facts);
        facts.ceiling = Some(Ceiling { goodput_bps: 20.5e6, by: "the near NIC".to_owned() });
    });
    assert_eq!(at_ceiling, Limit::Ceiling);
}
