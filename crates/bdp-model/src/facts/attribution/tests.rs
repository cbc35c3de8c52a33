//! Tests of each state with hand-made samples, and of the sum with arbitrary samples.

use proptest::prelude::*;

use super::*;
use crate::measurement::Ceiling;
use crate::record::{RttReport, RttSummary, Transfer};

const MS: u64 = 1_000_000;
const MSS: u64 = 1_000;
const WINDOW: u64 = 1_000_000;

/// A transfer with a round trip of 20 ms, idle processors and these samples.
fn facts(sent: Vec<SenderSample>) -> Facts {
    let idle =
        RttSummary { sent: 9, received: 9, min: 20 * MS, p50: 20 * MS, max: 20 * MS, ..Default::default() };
    Facts {
        source: Source::Emulated,
        bytes: 1 << 20,
        transfer: Transfer {
            goodput_bps: 1e6,
            duration_ns: 1_000 * MS,
            stream_goodput_bps: vec![1e6],
            rtt_ns: RttReport { idle: Some(idle), ..RttReport::default() },
            congestion_control: "cubic".to_owned(),
            mss_bytes: Some(MSS),
            send_buffer_bytes: Some(4 << 20),
            sent,
            ..Transfer::default()
        },
        ..Facts::default()
    }
}

/// A sample of a connection limited by its congestion window of 100 segments, in congestion avoidance.
fn reading(at_ms: u64) -> SenderSample {
    SenderSample {
        at_ns: at_ms * MS,
        acked_bytes: Some(at_ms * 100),
        unacked: Some(100),
        cwnd: Some(100),
        ssthresh: Some(50),
        snd_wnd_bytes: Some(WINDOW),
        srtt_ns: Some(20 * MS),
        busy_ns: Some(at_ms * MS),
        rwnd_limited_ns: Some(0),
        sndbuf_limited_ns: Some(0),
        congestion_state: Some(CongestionState::Open),
        not_sent_bytes: Some(1 << 20),
        app_limited: Some(false),
        ..SenderSample::default()
    }
}

/// Nothing is left to send, and all windows have room.
fn dry(at_ms: u64) -> SenderSample {
    SenderSample { unacked: Some(20), not_sent_bytes: Some(0), app_limited: Some(true), ..reading(at_ms) }
}

/// Two samples 100 ms apart, from 100 ms on.
fn pair(of: impl Fn(u64) -> SenderSample) -> Vec<SenderSample> {
    vec![of(100), of(200)]
}

/// The states of the time between the last two samples, in ms.
fn last(facts: &Facts) -> Vec<(TimeState, u64)> {
    let spent = facts.time_spent().unwrap();
    let states = spent.stretches.last().unwrap().states.clone();
    states.into_iter().map(|(state, ns)| (state, ns / MS)).collect()
}

/// The state that took all of the time between two samples.
fn only(facts: &Facts) -> TimeState {
    match last(facts)[..] {
        [(state, 100)] => state,
        ref other => panic!("{other:?}"),
    }
}

#[test]
fn growth_of_the_congestion_window_is_told_apart_by_the_slow_start_threshold() {
    assert_eq!(only(&facts(pair(reading))), TimeState::CongestionAvoidance);
    let grows = |ssthresh| facts(pair(|at| SenderSample { ssthresh, ..reading(at) }));
    assert_eq!(only(&grows(None)), TimeState::SlowStart);
    assert_eq!(only(&grows(Some(101))), TimeState::SlowStart);
    assert_eq!(only(&grows(Some(100))), TimeState::CongestionAvoidance);
    let mut bbr = grows(None);
    bbr.congestion_control = "bbr".to_owned();
    assert_eq!(only(&bbr), TimeState::Probing);
}

#[test]
fn queue_or_ceiling_makes_the_path_full() {
    let queued = |ms| facts(pair(|at| SenderSample { srtt_ns: Some(ms * MS), ..reading(at) }));
    assert_eq!(only(&queued(25)), TimeState::FullPath);
    assert_eq!(only(&queued(24)), TimeState::CongestionAvoidance);
    // With three segments, the acknowledgement of one waits for the next window: the round trip is not a queue's.
    let few = |ms: u64| {
        facts(pair(|at| SenderSample {
            unacked: Some(3),
            cwnd: Some(3),
            ssthresh: Some(2),
            srtt_ns: Some(ms * MS),
            ..reading(at)
        }))
    };
    assert_eq!(only(&few(28)), TimeState::CongestionAvoidance);
    assert_eq!(only(&few(40)), TimeState::FullPath);
    // 100 bytes a ms are 800 kbit/s.
    let under = |goodput_bps| {
        let ceiling = Some(Ceiling { goodput_bps, by: "the link".to_owned() });
        Facts { ceiling, ..facts(pair(reading)) }
    };
    assert_eq!(only(&under(850_000.0)), TimeState::FullPath);
    assert_eq!(only(&under(860_000.0)), TimeState::CongestionAvoidance);
}

#[test]
fn congestion_events_take_what_they_took_and_no_more() {
    let mut lossy = facts(pair(reading));
    let episode = |at_ms, took_ms, kind| LossEpisode {
        at_ns: at_ms * MS,
        took_ns: took_ms * MS,
        kind,
        cwnd: 100,
        unacked: 100,
        srtt_ns: 20 * MS,
        delivered: 1,
        delivery_rate_bps: None,
        slow_start: false,
        retransmits: 1,
    };
    lossy.loss_episodes = vec![
        episode(90, 20, EpisodeKind::Reduced),
        episode(120, 30, EpisodeKind::Recovery),
        episode(160, 5, EpisodeKind::Timeout),
        episode(170, 0, EpisodeKind::Recovery),
    ];
    let wanted = vec![
        (TimeState::EcnReduction, 10),
        (TimeState::Recovery, 30),
        (TimeState::Timeout, 5),
        (TimeState::CongestionAvoidance, 55),
    ];
    assert_eq!(last(&lossy), wanted);
    // An episode that had not ended lasts until the end.
    lossy.sent[1].congestion_state = Some(CongestionState::Recovery);
    assert_eq!(last(&lossy)[1], (TimeState::Recovery, 60));
}

#[test]
fn without_events_the_state_at_the_end_of_an_interval_is_that_of_all_of_it() {
    for (state, wanted) in [
        (CongestionState::Reduced, TimeState::EcnReduction),
        (CongestionState::Recovery, TimeState::Recovery),
        (CongestionState::Loss, TimeState::Timeout),
        (CongestionState::Disorder, TimeState::CongestionAvoidance),
    ] {
        let sent = pair(|at| SenderSample { congestion_state: Some(state), ..reading(at) });
        assert_eq!(only(&facts(sent)), wanted);
    }
}

/// As much is in flight as the receive window allows, though the kernel counts less than half of the time.
fn window_full(at_ms: u64) -> SenderSample {
    SenderSample {
        unacked: Some(80),
        snd_wnd_bytes: Some(80_500),
        rwnd_limited_ns: Some(at_ms * MS * 4 / 10),
        ..reading(at_ms)
    }
}

#[test]
fn window_without_room_for_a_segment_has_all_of_the_time() {
    assert_eq!(only(&facts(pair(window_full))), TimeState::ReceiveWindow);
    // Another segment would have fitted: the kernel's own count applies.
    let roomy = facts(pair(|at| SenderSample { snd_wnd_bytes: Some(81_000), ..window_full(at) }));
    assert_eq!(last(&roomy), [(TimeState::ReceiveWindow, 40), (TimeState::CongestionAvoidance, 60)]);
    // Without room in either window, the time is the congestion window's.
    let both = facts(pair(|at| SenderSample { cwnd: Some(80), rwnd_limited_ns: Some(0), ..window_full(at) }));
    assert_eq!(only(&both), TimeState::CongestionAvoidance);
}

/// Receiver samples from 0 to 300 ms, one every 50 ms.
fn receiving(of: impl Fn(u64) -> ReceiverSample) -> Vec<ReceiverSample> {
    (0..=6).map(|i| ReceiverSample { at_ns: 50 * i * MS, bytes: i, ..of(50 * i * MS) }).collect()
}

#[test]
fn full_receive_window_is_the_readers_where_it_does_not_read() {
    let by = |of: &dyn Fn(u64) -> ReceiverSample| {
        let mut read = facts(pair(window_full));
        read.received = receiving(of);
        only(&read)
    };
    let waits = |ns| ReceiverSample { read_waited_ns: Some(ns), ..Default::default() };
    assert_eq!(by(&waits), TimeState::ReceiveWindow);
    assert_eq!(
        by(&|ns| ReceiverSample { read_paused_ns: Some(ns * 6 / 10), ..Default::default() }),
        TimeState::ReceiverApplication
    );
    let unread = |bytes| move |_| ReceiverSample { unread_bytes: Some(bytes), ..Default::default() };
    assert_eq!(by(&unread(50_000)), TimeState::ReceiverApplication);
    assert_eq!(by(&unread(40_000)), TimeState::ReceiveWindow);
    let busy = |ns| ReceiverSample { thread_cpu_ns: Some(ns * 95 / 100), ..Default::default() };
    assert_eq!(by(&busy), TimeState::ReceiverProcessor);
    // Without the receiver's samples the window itself shows it: it had been larger.
    let mut shrunk = facts(vec![reading(50), window_full(100), window_full(200)]);
    assert_eq!(only(&shrunk), TimeState::ReceiverApplication);
    shrunk.received = receiving(waits);
    assert_eq!(only(&shrunk), TimeState::ReceiveWindow);
}

#[test]
fn kernel_without_data_waits_for_the_sending_program() {
    let idle = |at| SenderSample { busy_ns: Some(at * MS * 3 / 10), ..reading(at) };
    let without_word = facts(pair(idle));
    let wanted = [(TimeState::SenderApplication, 70), (TimeState::CongestionAvoidance, 30)];
    assert_eq!(last(&without_word), wanted);
    let has_nothing = facts(pair(|at| SenderSample { write_idle_ns: Some(at * MS * 8 / 10), ..idle(at) }));
    assert_eq!(last(&has_nothing), wanted);
    // The program was about to write, but its thread used all of its processor.
    let computes = facts(pair(|at| SenderSample {
        write_idle_ns: Some(at * MS / 10),
        thread_cpu_ns: Some(at * MS / 2),
        run_wait_ns: Some(at * MS * 4 / 10),
        ..idle(at)
    }));
    let wanted = [
        (TimeState::SenderApplication, 10),
        (TimeState::SenderProcessor, 60),
        (TimeState::CongestionAvoidance, 30),
    ];
    assert_eq!(last(&computes), wanted);
    // A program that waits for room in its socket never leaves the kernel without data for a jiffy.
    let jiffy = facts(pair(|at| SenderSample {
        busy_ns: Some(at * MS * 96 / 100),
        write_idle_ns: Some(0),
        write_blocked_ns: Some(at * MS),
        ..reading(at)
    }));
    assert_eq!(only(&jiffy), TimeState::CongestionAvoidance);
    // One that is stopped while it waits for room still waits, by its own clock, long after there has been room.
    let stopped = facts(pair(|at| SenderSample {
        busy_ns: Some(at * MS * 6 / 10),
        write_idle_ns: Some(0),
        write_blocked_ns: Some(at * MS),
        ..reading(at)
    }));
    let wanted = [(TimeState::SenderApplication, 40), (TimeState::CongestionAvoidance, 60)];
    assert_eq!(last(&stopped), wanted);
}

#[test]
fn send_buffer_full_of_data_in_flight_is_not_the_programs() {
    let counted = facts(pair(|at| SenderSample { sndbuf_limited_ns: Some(at * MS * 7 / 10), ..reading(at) }));
    assert_eq!(last(&counted), [(TimeState::SendBuffer, 70), (TimeState::CongestionAvoidance, 30)]);
    // The kernel does not count a write that fits the room exactly. The program knows that it waited for room,
    let blocked = facts(pair(|at| SenderSample {
        write_idle_ns: Some(at * MS / 10),
        write_blocked_ns: Some(at * MS * 9 / 10),
        ..dry(at)
    }));
    assert_eq!(last(&blocked), [(TimeState::SenderApplication, 10), (TimeState::SendBuffer, 90)]);
    // otherwise the data in flight shows it.
    let mut full = facts(pair(dry));
    assert_eq!(only(&full), TimeState::SenderApplication);
    full.send_buffer_bytes = Some(50_000);
    assert_eq!(only(&full), TimeState::SendBuffer);
}

#[test]
fn program_that_writes_less_than_the_connection_carries_is_the_limit_though_data_are_in_flight() {
    let idle =
        facts(pair(|at| SenderSample { write_idle_ns: Some(at * MS), write_blocked_ns: Some(0), ..dry(at) }));
    assert_eq!(only(&idle), TimeState::SenderApplication);
    // Part of a segment waits for the previous acknowledgement.
    let message = |at| SenderSample { not_sent_bytes: Some(4), app_limited: Some(false), ..dry(at) };
    let held = facts(pair(|at| SenderSample {
        write_idle_ns: Some(at * MS),
        write_blocked_ns: Some(0),
        ..message(at)
    }));
    assert_eq!(only(&held), TimeState::SenderApplication);
    // Idle with data left to send: the time is congestion control's.
    let ahead = facts(pair(|at| SenderSample { write_idle_ns: Some(at * MS), ..reading(at) }));
    assert_eq!(only(&ahead), TimeState::CongestionAvoidance);
}

#[test]
fn asked_rate_is_pacing_where_it_is_reached_or_the_windows_have_room() {
    let paced =
        |of: &dyn Fn(u64) -> SenderSample, bps| only(&Facts { paced_bps: Some(bps), ..facts(pair(of)) });
    let roomy = |at| SenderSample { unacked: Some(20), ..reading(at) };
    assert_eq!(paced(&roomy, 5_000_000), TimeState::Pacing);
    assert_eq!(paced(&dry, 5_000_000), TimeState::Pacing);
    assert_eq!(paced(&reading, 800_000), TimeState::Pacing);
    assert_eq!(paced(&reading, 5_000_000), TimeState::CongestionAvoidance);
}

#[test]
fn bound_that_the_sender_paces_by_is_seen_in_its_readings() {
    // As bbr writes it, in bursts, with room in its window.
    let held = |pacing: &dyn Fn(u64) -> u64| {
        let of = |i| SenderSample {
            unacked: Some(0),
            ssthresh: None,
            pacing_bps: Some(pacing(i)),
            ..reading(100 * i)
        };
        let mut held = facts((1..8).map(of).collect());
        held.congestion_control = "bbr".to_owned();
        held
    };
    assert_eq!(
        (held(&|_| 1_000_000).held_bps(), only(&held(&|_| 1_000_000))),
        (Some(1e6), TimeState::Pacing)
    );
    assert_eq!((held(&|i| 1_000_000 + i).held_bps(), only(&held(&|i| i))), (None, TimeState::Probing));
    // A single sample differs: the start, or the estimate.
    assert_eq!(held(&|i| 1_000_000 + i / 7).held_bps(), None);
    // A steady window is paced alike, too, and carries less.
    let mut steady = held(&|_| 1_000_000);
    steady.stream_goodput_bps = vec![0.83e6];
    assert_eq!(steady.held_bps(), None);
    let asked = Facts { paced_bps: Some(7), ..held(&|_| 1_000_000) };
    assert_eq!(asked.held_bps(), Some(7.0));
}

#[test]
fn processors_are_judged_interval_by_interval() {
    // The thread is idle over the whole transfer, but busy in its last interval.
    let roomy = |at_ms: u64, cpu_ms: u64| SenderSample {
        unacked: Some(20),
        thread_cpu_ns: Some(cpu_ms * MS),
        ..reading(at_ms)
    };
    let sender = facts(vec![roomy(100, 0), roomy(900, 0), roomy(1_000, 95)]);
    assert_eq!(only(&sender), TimeState::SenderProcessor);
    let calm = facts(vec![roomy(100, 0), roomy(900, 700), roomy(1_000, 750)]);
    assert_eq!(only(&calm), TimeState::Unknown);
    // Without its samples the share of the whole transfer applies.
    let mut whole = facts(pair(|at| SenderSample { unacked: Some(20), ..reading(at) }));
    whole.sender.thread_cpu = Some(0.95);
    assert_eq!(only(&whole), TimeState::SenderProcessor);
    whole.duration_ns = 50 * MS;
    assert_eq!(only(&whole), TimeState::Unknown);
    whole.received = receiving(|ns| ReceiverSample {
        thread_cpu_ns: Some(ns),
        run_wait_ns: Some(0),
        ..Default::default()
    });
    assert_eq!(only(&whole), TimeState::ReceiverProcessor);
}

#[test]
fn what_nobody_reports_is_unknown_and_not_invented() {
    let bare = facts(pair(|at| SenderSample { cwnd: None, unacked: None, ..reading(at) }));
    assert_eq!(only(&bare), TimeState::Unknown);
    let older = facts(pair(|at| SenderSample { congestion_state: None, ssthresh: None, ..reading(at) }));
    assert_eq!(only(&older), TimeState::Unknown);
    assert_eq!(facts(pair(|at| SenderSample { busy_ns: None, ..reading(at) })).time_spent(), None);
    assert_eq!(Facts { through_tunnel: true, ..facts(pair(reading)) }.time_spent(), None);
}

#[test]
fn time_begins_with_the_connection_and_counts_after_omit() {
    let mut all = facts(pair(reading));
    let spent = all.time_spent().unwrap();
    assert_eq!((spent.stretches[0].from_ns, spent.total_ns()), (0, 200 * MS));
    all.omit_ns = 100 * MS;
    let counted = all.time_counted().unwrap();
    assert_eq!((counted.stretches.len(), counted.total_ns()), (1, 100 * MS));
    all.omit_ns = 150 * MS;
    assert_eq!(all.time_counted(), None);
    // The beginning of a watched connection was not seen.
    let watched = Facts { source: Source::Watched, ..all }.time_spent().unwrap();
    assert_eq!(watched.stretches[0].from_ns, 100 * MS);
}

#[test]
fn shares_add_up_and_are_sorted() {
    let idle = |at| SenderSample { busy_ns: Some(at * MS * 3 / 10), ..reading(at) };
    let spent = Facts { ..facts(pair(idle)) }.time_spent().unwrap();
    let shares = spent.shares();
    assert_eq!(shares[0], (TimeState::SenderApplication, 0.7));
    assert!((shares.iter().map(|s| s.1).sum::<f64>() - 1.0).abs() < 1e-12);
}

#[test]
fn every_state_has_a_name_of_its_own() {
    for (i, state) in TimeState::ALL.iter().enumerate() {
        assert_eq!(TimeState::ALL.iter().position(|other| other.name() == state.name()), Some(i));
        assert_eq!(serde_json::to_value(state).unwrap(), state.name());
        assert!(!state.about().is_empty());
    }
}

/// Arbitrary samples: clocks that jump, missing members.
fn any_reading() -> impl Strategy<Value = SenderSample> {
    let some = || proptest::option::of(0u64..2_000_000_000);
    let small = || proptest::option::of(0u32..200);
    let clocks = (0u64..1_000 * MS, some(), some(), some(), some(), some(), some(), some());
    let windows = (small(), small(), small(), proptest::option::of(0u64..200_000), some(), any::<bool>());
    (clocks, windows, 0u8..6).prop_map(|(clocks, windows, state)| {
        let (at_ns, busy_ns, rwnd_limited_ns, sndbuf_limited_ns, idle, blocked, cpu, srtt_ns) = clocks;
        let (unacked, cwnd, ssthresh, snd_wnd_bytes, not_sent_bytes, app_limited) = windows;
        SenderSample {
            at_ns,
            busy_ns,
            rwnd_limited_ns,
            sndbuf_limited_ns,
            write_idle_ns: idle,
            write_blocked_ns: blocked,
            thread_cpu_ns: cpu,
            srtt_ns,
            unacked,
            cwnd,
            ssthresh,
            snd_wnd_bytes,
            not_sent_bytes,
            app_limited: Some(app_limited),
            congestion_state: CongestionState::of_linux(state),
            ..SenderSample::default()
        }
    })
}

proptest! {
    #[test]
    fn stretches_have_no_gaps_and_their_states_add_up(
        mut sent in proptest::collection::vec(any_reading(), 0..12),
        read in proptest::collection::vec((0u64..1_000 * MS, 0u64..2_000 * MS, 0u64..100_000), 0..8),
        (episode_at, episode_took) in (0u64..1_000 * MS, 0u64..500 * MS),
        paced_bps in proptest::option::of(1u64..10_000_000),
        bbr in any::<bool>(),
    ) {
        sent.sort_by_key(|s| s.at_ns);
        let mut all = facts(sent);
        all.received = read.into_iter().map(|(at_ns, ns, bytes)| ReceiverSample {
            at_ns,
            read_paused_ns: Some(ns),
            thread_cpu_ns: Some(ns / 2),
            unread_bytes: Some(bytes),
            ..Default::default()
        }).collect();
        all.received.sort_by_key(|s| s.at_ns);
        all.paced_bps = paced_bps;
        all.congestion_control = if bbr { "bbr" } else { "cubic" }.to_owned();
        all.loss_episodes = vec![LossEpisode {
            at_ns: episode_at,
            took_ns: episode_took,
            kind: EpisodeKind::Recovery,
            cwnd: 1,
            unacked: 1,
            srtt_ns: 1,
            delivered: 0,
            delivery_rate_bps: None,
            slow_start: false,
            retransmits: 1,
        }];
        if let Some(spent) = all.time_spent() {
            let read = all.sent.iter().filter(|s| s.busy_ns.is_some());
            prop_assert_eq!(Some(spent.stretches.last().unwrap().to_ns), read.map(|s| s.at_ns).max());
            let first = spent.stretches[0].from_ns;
            prop_assert!(first <= MS);
            prop_assert_eq!(spent.total_ns(), spent.stretches.last().unwrap().to_ns - first);
            for pair in spent.stretches.windows(2) {
                prop_assert_eq!(pair[0].to_ns, pair[1].from_ns);
            }
            for stretch in &spent.stretches {
                let sum: u64 = stretch.states.iter().map(|s| s.1).sum();
                prop_assert_eq!(sum, stretch.to_ns - stretch.from_ns);
                prop_assert!(stretch.states.iter().all(|s| s.1 > 0));
            }
        }
    }
}
