//! Programs that hold back, and what was asked for.

use bdp_model::facts::Facts;
use bdp_model::finding::fact::{self, Bps, Bytes};
use bdp_model::finding::{Cause, Confidence, Fact, Limit, Place, Samples};
use bdp_model::flow::window::WindowBytes;
use bdp_model::measurement::Direction;
use bdp_model::record::ReceiverSample;
use bdp_model::units::ByteCount;

use crate::rules::shape::{MIB, MS, Shape, WINDOW_BOUND, came, each_way, explain, found, limit};

#[test]
fn asked_rate_that_is_reached_is_the_limit() {
    let paced = |goodput_mbps| {
        let mut m = Shape { goodput_mbps, share: 0.0, ..WINDOW_BOUND }.measurement();
        m.request.spec.pacing_bps = Some(200_000_000);
        m
    };
    let finding = explain(Direction::To, &paced(198.0)).remove(0);
    assert_eq!((finding.limit, finding.confidence), (Limit::AskedRate, Confidence::High), "{finding:#?}");
    let of_asked = finding.observed(Fact::OfAskedRate).unwrap();
    assert_eq!(of_asked.name.as_deref(), Some("-b"));
    assert_eq!(of_asked.figures(), Some(fact::OfAskedRate { goodput: Bps(198e6), asked: Bps(200e6) }));
    assert_eq!((of_asked.at_least, of_asked.at_most), (Some(0.95), Some(1.05)));
    assert_eq!(explain(Direction::To, &paced(150.0)).remove(0).limit, Limit::Unknown);
    assert_eq!(explain(Direction::To, &paced(300.0)).remove(0).limit, Limit::Unknown);
    // Each of two streams has the rate.
    let mut two = paced(396.0);
    two.request.spec.streams = 2;
    assert_eq!(explain(Direction::To, &two).remove(0).limit, Limit::AskedRate);
    two.directions[0].goodput_bps = 198e6;
    two.directions[0].spread = None;
    assert_eq!(explain(Direction::To, &two).remove(0).limit, Limit::Unknown);
}

#[test]
fn bound_of_the_server_holds_as_a_request_does() {
    let bounded = |bps: Option<u64>| {
        let mut m = Shape { goodput_mbps: 198.0, share: 0.0, ..WINDOW_BOUND }.measurement();
        m.directions[0].sent.iter_mut().for_each(|sample| sample.pacing_bps = bps);
        explain(Direction::To, &m).remove(0)
    };
    let finding = bounded(Some(200_000_000));
    assert_eq!(finding.limit, Limit::AskedRate, "{finding:#?}");
    assert_eq!(finding.observed(Fact::OfAskedRate).unwrap().name.as_deref(), Some("--max-rate"));
    assert_eq!(finding.remedy.unwrap().setting.as_deref(), Some("--max-rate"));
    assert_ne!(bounded(Some(400_000_000)).limit, Limit::AskedRate, "it is not reached");
    assert_ne!(bounded(None).limit, Limit::AskedRate);
}

#[test]
fn rate_that_a_full_path_all_but_reaches_is_the_paths() {
    let queued = |goodput_mbps| {
        let shape = Shape { goodput_mbps, share: 0.0, rtt_loaded: 88 * MS, ..WINDOW_BOUND };
        let mut m = shape.measurement();
        m.request.spec.pacing_bps = Some(200_000_000);
        explain(Direction::To, &m).remove(0)
    };
    let full = queued(196.0);
    assert_eq!((full.limit, &full.place), (Limit::PathRate, &Place::path()), "{full:#?}");
    let reached = queued(200.0);
    assert_eq!(reached.limit, Limit::AskedRate);
    assert!(reached.observed(Fact::QueueRoundTrip).is_some(), "{reached:#?}");
}

#[test]
fn reader_that_pauses_is_not_a_full_path() {
    // A window that had been 8 MiB and closes in every third sample; bursts fill a queue meanwhile.
    let mut m = Shape { goodput_mbps: 92.0, rtt_loaded: 88 * MS, rwnd_limited: Some(0.6), ..WINDOW_BOUND }
        .measurement();
    m.directions[0].each_way_ns = Some(each_way([12, 12], [70, 12]));
    for (i, sample) in m.directions[0].sent.iter_mut().enumerate() {
        sample.snd_wnd_bytes = Some(if i % 3 == 2 { 0 } else { 8 * MIB });
    }
    let finding = explain(Direction::To, &m).remove(0);
    assert_eq!((finding.limit, finding.confidence), (Limit::SlowReader, Confidence::Medium), "{finding:#?}");
    assert_eq!(finding.place, Place::receiver("ams1"));
    let shrunk = finding.observed(Fact::WindowShrunk).unwrap();
    assert_eq!(shrunk.figures::<fact::WindowShrunk>().unwrap().largest, Bytes(8.0 * MIB as f64));
    assert_eq!(shrunk.at_least, Some(0.15));
    assert_eq!(shrunk.samples, Some(Samples { met: 33, of: 100 }));
    // Its process did not run: the samples of the receiver say so as well.
    let at = |i: u64| ReceiverSample { at_ns: i * 100 * MS, bytes: i * 1_150_000, ..Default::default() };
    m.directions[0].received = (0..100).filter(|i| i % 20 < 10).map(at).collect();
    let finding = explain(Direction::To, &m).remove(0);
    assert_eq!((finding.limit, finding.confidence), (Limit::SlowReader, Confidence::High), "{finding:#?}");
    assert_eq!(finding.cause, Some(Cause::Paused));
    assert_eq!(finding.observed(Fact::ReceiverPaused).unwrap().value, 1.1e9);
    // A window that grows, and is full, is read by someone.
    m.directions[0].received.clear();
    for (i, sample) in m.directions[0].sent.iter_mut().enumerate() {
        sample.snd_wnd_bytes = Some((i as u64 + 1) * 80 * 1024);
    }
    assert_eq!(explain(Direction::To, &m).remove(0).limit, Limit::PathRate);
}

#[test]
fn window_that_comes_down_to_the_one_asked_for_is_no_slow_reader() {
    const ASKED: u64 = 20 * 1024;
    let claimed = |asked: Option<u64>| {
        let mut m = Shape { goodput_mbps: 6.5, rwnd_limited: Some(0.9), rtt_loaded: 24 * MS, ..WINDOW_BOUND }
            .measurement();
        m.request.spec.window = asked.and_then(WindowBytes::new);
        for (i, sample) in m.directions[0].sent.iter_mut().enumerate() {
            sample.snd_wnd_bytes = Some(if i < 2 { 64 * 1024 } else { ASKED });
            sample.unacked = Some((ASKED / 1448) as u32);
        }
        explain(Direction::To, &m).remove(0).limit
    };
    assert_eq!(claimed(Some(ASKED)), Limit::ReceiveWindow);
    // Nobody asked for it: then it shrank by itself.
    assert_eq!(claimed(None), Limit::SlowReader);
    assert_eq!(claimed(Some(64 * 1024)), Limit::SlowReader);
}

#[test]
fn data_that_waits_unread_is_the_readers() {
    let unread = |facts: &mut Facts, bytes: u64, limited: u64| {
        facts.received.iter_mut().for_each(|s| s.unread_bytes = Some(bytes));
        for sample in &mut facts.sent {
            sample.snd_wnd_bytes = Some(64 * 1024);
            sample.rwnd_limited_ns = sample.busy_ns.map(|busy| busy * limited / 100);
        }
    };
    let finding = found(|facts| unread(facts, 200_000, 90));
    assert_eq!((finding.limit, finding.confidence), (Limit::SlowReader, Confidence::High), "{finding:#?}");
    assert_eq!(finding.observed(Fact::Unread).unwrap().value, 200_000.0);
    assert_ne!(limit(|facts| unread(facts, 2_000, 90)), Limit::SlowReader, "it reads all but a segment");
    assert_ne!(limit(|facts| unread(facts, 200_000, 1)), Limit::SlowReader, "the window holds nothing back");
}

#[test]
fn sender_without_data_is_a_slow_writer() {
    let busy = |facts: &mut Facts, percent: u64| {
        for sample in &mut facts.sent {
            sample.busy_ns = Some(sample.at_ns * percent / 100);
            (sample.unacked, sample.not_sent_bytes) = (Some(12), Some(0));
        }
    };
    let finding = found(|facts| busy(facts, 60));
    assert_eq!((finding.limit, finding.confidence), (Limit::SlowWriter, Confidence::Medium), "{finding:#?}");
    assert!((finding.observed(Fact::NothingToSend).unwrap().value - 0.4).abs() < 0.01, "{finding:#?}");
    assert_eq!(finding.place, Place::sender("fra1"));
    assert_eq!(found(|facts| busy(facts, 30)).confidence, Confidence::High);
    assert_ne!(limit(|facts| busy(facts, 95)), Limit::SlowWriter, "it has data nearly all the time");
    // What was asked for is through, or is held to a rate.
    for held in
        [(|facts: &mut Facts| facts.asked.bytes = Some(ByteCount::kib(24_000))) as fn(&mut Facts), |facts| {
            facts.paced_bps = Some(100_000_000)
        }]
    {
        let other = limit(|facts| {
            busy(facts, 60);
            held(facts);
        });
        assert_ne!(other, Limit::SlowWriter);
    }
}

#[test]
fn pauses_that_the_send_buffer_bridges_cost_nothing() {
    let pauses = |facts: &mut Facts, peak_mbps: u64| {
        for sample in &mut facts.sent {
            sample.write_idle_ns = Some(sample.at_ns * 45 / 100);
            (sample.unacked, sample.busy_ns) = (Some(40), Some(sample.at_ns));
            sample.delivery_rate_bps = Some(peak_mbps * 1_000_000);
        }
    };
    assert_eq!(limit(|facts| pauses(facts, 36)), Limit::SlowWriter);
    assert_ne!(limit(|facts| pauses(facts, 21)), Limit::SlowWriter, "it has all that the path ever gave");
}

#[test]
fn program_that_reads_at_a_rate_of_its_own_says_so() {
    let reads = |facts: &mut Facts, percent: u64| {
        for sample in &mut facts.received {
            sample.read_paused_ns = Some(sample.at_ns * percent / 100);
        }
    };
    let finding = found(|facts| reads(facts, 97));
    assert_eq!(finding.limit, Limit::SlowReader, "{finding:#?}");
    assert!((finding.observed(Fact::ReadingPaused).unwrap().value - 0.97).abs() < 0.01, "{finding:#?}");
    assert_ne!(limit(|facts| reads(facts, 10)), Limit::SlowReader, "it reads nearly all the time");
}

#[test]
fn small_write_that_both_windows_have_room_for_waits_for_nagle() {
    let waits = |facts: &mut Facts, unsent: u64, unacked: u32, tenths: usize| {
        for (i, sample) in facts.sent.iter_mut().enumerate() {
            let held = i % 10 < tenths;
            (sample.unacked, sample.cwnd) = (Some(if held { unacked } else { 0 }), Some(10));
            sample.not_sent_bytes = Some(if held { unsent } else { 0 });
        }
    };
    let finding = found(|facts| waits(facts, 900, 1, 6));
    assert_eq!((finding.limit, finding.confidence), (Limit::Nagle, Confidence::High), "{finding:#?}");
    let held = finding.observed(Fact::SmallWriteHeld).unwrap();
    assert_eq!(held.value, 0.6);
    assert_eq!(held.figures(), Some(fact::SmallWriteHeld { held: Bytes(900.0), segment: Bytes(1448.0) }));
    assert_eq!(held.samples, Some(Samples { met: 60, of: 100 }));
    assert_ne!(limit(|facts| waits(facts, 3000, 1, 6)), Limit::Nagle, "more than a segment waits");
    assert_ne!(limit(|facts| waits(facts, 900, 9, 6)), Limit::Nagle, "the window is full");
    assert_ne!(limit(|facts| waits(facts, 900, 1, 1)), Limit::Nagle, "in a tenth of the samples");
    let nodelay = limit(|facts| {
        waits(facts, 900, 1, 6);
        facts.asked.nodelay = true;
    });
    assert_ne!(nodelay, Limit::Nagle);
}

#[test]
fn transfer_that_ends_in_slow_start_is_limited_by_it() {
    let short = |facts: &mut Facts, trips: u64| {
        facts.asked.bytes = Some(ByteCount::kib(200));
        (facts.bytes, facts.duration_ns, facts.goodput_bps) = (204_800, trips * 24_200_000, 17e6);
        (facts.received, facts.spread) = (vec![came(0, 0), came(1, 204_800)], None);
        facts.sent.truncate(8);
        for (i, sample) in facts.sent.iter_mut().enumerate() {
            (sample.ssthresh, sample.cwnd) = (None, Some(10 << (i / 2)));
        }
    };
    let finding = found(|facts| short(facts, 4));
    assert_eq!((finding.limit, finding.confidence), (Limit::SlowStart, Confidence::High), "{finding:#?}");
    assert_eq!(finding.observed(Fact::TookRoundTrips).unwrap().value, 4.0);
    let grew = finding.observed(Fact::WindowGrew).unwrap();
    assert_eq!((grew.figures(), grew.value), (Some(fact::WindowGrew { from: 10 }), 80.0));
    assert_ne!(limit(|facts| short(facts, 40)), Limit::SlowStart, "forty round trips fill any path");
    let left = limit(|facts| {
        short(facts, 4);
        facts.sent.last_mut().unwrap().ssthresh = Some(40);
    });
    assert_ne!(left, Limit::SlowStart, "it had left slow start");
    let endless = limit(|facts| {
        short(facts, 4);
        facts.asked.bytes = None;
    });
    assert_ne!(endless, Limit::SlowStart, "no size was asked for");
}
