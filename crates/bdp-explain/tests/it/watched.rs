//! What is found of a socket that is watched from one end.

use bdp_explain::explain;
use bdp_model::facts::{Conversation, End, Facts, Role, Source, Stretch, TimeSpent, TimeState};
use bdp_model::finding::fact;
use bdp_model::finding::{Confidence, Fact, Finding, Lack, Limit};
use bdp_model::record::{ReceiverSample, SenderSample, Transfer};

const MS: u64 = 1_000_000;

/// Five seconds, 40 ms of round trip, 10 Mbit/s, whose time went to one state.
fn facts(sent: Vec<SenderSample>, received: Vec<ReceiverSample>, state: TimeState) -> Facts {
    let took = 5000 * MS;
    let spent =
        TimeSpent { stretches: vec![Stretch { from_ns: 0, to_ns: took, states: vec![(state, took)] }] };
    let end = |name: &str| End { name: name.to_owned(), ..End::default() };
    let (sender, receiver) = match sent.is_empty() {
        true => (end("192.0.2.1"), end("this host")),
        false => (end("this host"), end("192.0.2.1")),
    };
    Facts {
        source: Source::Watched,
        sender,
        receiver,
        bytes: 6_250_000,
        conversation: Some(conversation(spent)),
        transfer: Transfer {
            goodput_bps: 10e6,
            duration_ns: 5000 * MS,
            stream_goodput_bps: vec![10e6],
            retransmits: Some(0),
            needless_retransmits: Some(0),
            congestion_control: "cubic".to_owned(),
            mss_bytes: (!sent.is_empty()).then_some(1448),
            received,
            sent,
            ..Transfer::default()
        },
        ..Facts::default()
    }
}

fn conversation(spent: TimeSpent) -> Conversation {
    Conversation {
        sender: Role::Client,
        refused: None,
        syns: 1,
        is_minor: false,
        open_silence: 0.0,
        broken_off_ns: 0,
        spent,
        turns: 0,
        own_waits: 0,
        other_waits: 0,
        bulk_gaps: 0,
        stops_at_amount: 0,
        amount_bytes: 0,
        gives_room: Role::Server,
        missing: 0.0,
        sent_in_vain: 0,
        in_vain_ns: 0,
        oversized: None,
        outage_ns: 0,
    }
}

fn sending(state: TimeState, of: impl Fn(u64) -> SenderSample) -> Finding {
    let at = |i: u64| ReceiverSample { at_ns: i * 100 * MS, bytes: i * 125_000, ..Default::default() };
    let sent = (0..=50).map(|i| SenderSample { at_ns: i * 100 * MS, ..of(i) }).collect();
    explain(&facts(sent, (0..=50).map(at).collect(), state)).remove(0)
}

fn receiving(state: TimeState, of: impl Fn(u64) -> ReceiverSample) -> Finding {
    let received = (0..=50).map(|i| {
        let sample = of(i);
        ReceiverSample { at_ns: i * 100 * MS, bytes: i * 125_000, ..sample }
    });
    explain(&facts(Vec::new(), received.collect(), state)).remove(0)
}

/// A sender whose congestion window is full all the time.
fn congested(i: u64, rtt_ms: u64, ssthresh: Option<u32>) -> SenderSample {
    SenderSample {
        acked_bytes: Some(i * 125_000),
        unacked: Some(40),
        cwnd: Some(40 + i as u32 % 2),
        snd_wnd_bytes: Some(1 << 20),
        srtt_ns: Some(rtt_ms * MS),
        min_rtt_ns: Some(40 * MS),
        ssthresh,
        retransmits: Some(0),
        delivered: Some(i * 86),
        busy_ns: Some(i * 100 * MS),
        rwnd_limited_ns: Some(0),
        sndbuf_limited_ns: Some(0),
        app_limited: Some(false),
        not_sent_bytes: Some(50_000),
        ..SenderSample::default()
    }
}

/// The same of a capture.
fn captured(state: TimeState, change: impl FnOnce(&mut Conversation)) -> Vec<Finding> {
    let at = |i: u64| ReceiverSample { at_ns: i * 100 * MS, bytes: i * 125_000, ..Default::default() };
    let sent = (0..=50).map(|i| SenderSample { at_ns: i * 100 * MS, ..congested(i, 41, None) }).collect();
    let mut facts = facts(sent, (0..=50).map(at).collect(), state);
    facts.source = Source::Captured;
    change(facts.conversation.as_mut().unwrap());
    explain(&facts)
}

#[test]
fn silence_that_nobody_has_ended_makes_no_sure_finding() {
    for (open_silence, confidence) in [(0.0, Confidence::High), (0.9, Confidence::Medium)] {
        let found = captured(TimeState::Answering, |all| {
            (all.sender, all.open_silence) = (Role::Server, open_silence);
        });
        assert_eq!((found[0].limit, found[0].confidence), (Limit::SlowWriter, confidence), "{found:?}");
    }
}

#[test]
fn way_of_little_data_is_left_to_the_other() {
    assert!(captured(TimeState::NotAsked, |all| all.is_minor = true).is_empty());
    assert!(!captured(TimeState::NotAsked, |_| {}).is_empty());
}

#[test]
fn transfer_that_stops_in_its_midst_met_a_path_that_changed() {
    let found = captured(TimeState::Timeout, |all| all.broken_off_ns = 4000 * MS);
    assert_eq!((found[0].limit, found[0].confidence), (Limit::PathChanged, Confidence::Medium), "{found:?}");
    assert_eq!(found[0].observed(Fact::Gap).unwrap().value, 4e9);
    assert_ne!(
        captured(TimeState::Timeout, |all| all.broken_off_ns = 1000 * MS)[0].limit,
        Limit::PathChanged
    );
}

#[test]
fn queue_above_the_least_round_trip_is_the_bottlenecks_and_never_for_sure() {
    let finding = sending(TimeState::FullPath, |i| congested(i, 70, Some(30)));
    assert_eq!((finding.limit, finding.confidence), (Limit::PathRate, Confidence::Medium), "{finding:?}");
    let queue = finding.observed(Fact::RoundTripAboveLeast).unwrap();
    assert_eq!(queue.value, 30e6);
    assert_eq!(queue.figures::<fact::RoundTripAboveLeast>().unwrap().least.0, 40_000_000);
    assert_eq!(finding.missing[0].what, Lack::ProbeBeside);
}

#[test]
fn full_congestion_window_without_a_queue_is_no_bottleneck() {
    let finding = sending(TimeState::CongestionAvoidance, |i| congested(i, 41, Some(30)));
    assert_eq!(finding.limit, Limit::Unknown, "{finding:?}");
    assert!(finding.missing.iter().any(|missing| missing.what == Lack::IdleRoundTrip));
}

#[test]
fn unread_data_is_the_readers_and_little_of_it_is_not() {
    let sample = |unread: u64| {
        move |_| ReceiverSample {
            unread_bytes: Some(unread),
            rcv_wnd_bytes: Some(100_000 - unread),
            ..ReceiverSample::default()
        }
    };
    for (state, unread, limit, confidence) in [
        (TimeState::ReceiverApplication, 90_000, Limit::SlowReader, Confidence::High),
        (TimeState::ReceiverApplication, 30_000, Limit::SlowReader, Confidence::Medium),
        (TimeState::Unknown, 10_000, Limit::Unknown, Confidence::Low),
    ] {
        let finding = receiving(state, sample(unread));
        assert_eq!((finding.limit, finding.confidence), (limit, confidence), "{unread}: {finding:?}");
    }
}

#[test]
fn window_of_this_end_limits_where_it_is_what_arrives_in_a_round_trip() {
    let sample = |window: u64| {
        move |_| ReceiverSample {
            unread_bytes: Some(0),
            rcv_wnd_bytes: Some(window),
            rtt_ns: Some(40 * MS),
            ..ReceiverSample::default()
        }
    };
    // 10 Mbit/s x 40 ms are 50 kB.
    let finding = receiving(TimeState::ReceiveWindow, sample(52_000));
    assert_eq!(
        (finding.limit, finding.confidence),
        (Limit::ReceiveWindow, Confidence::Medium),
        "{finding:?}"
    );
    let finding = receiving(TimeState::ReceiveWindow, sample(500_000));
    assert_eq!(finding.limit, Limit::Unknown);
    assert!((finding.observed(Fact::WindowHasRoom).unwrap().value - 0.1).abs() < 0.01);
    assert_eq!(finding.missing[0].what, Lack::SenderFigures);
}
