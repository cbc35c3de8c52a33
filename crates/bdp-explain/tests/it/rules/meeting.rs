//! Where several limits meet: which of them binds, and that less is said where evidence does not tell them apart.

use bdp_explain::unweighed as explain;
use bdp_model::facts::{Facts, ProbesLost};
use bdp_model::finding::{Confidence, Fact, Finding, Limit};
use bdp_model::probes::ProbeOutcome;
use bdp_model::record::{CongestionState, EpisodeKind, LossEpisode};
use bdp_model::units::ByteCount;

use crate::rules::changes::{added, probes, rates};
use crate::rules::losses::{overshoot, repairing, twelve};
use crate::rules::shape::{MS, MSS, findings, limit, lost, plain, retransmit};

/// The finding that comes first.
fn first(change: impl FnOnce(&mut Facts)) -> Finding {
    findings(change).remove(0)
}

/// What was found, and how sure that is.
fn said(change: impl FnOnce(&mut Facts)) -> (Limit, Confidence) {
    let finding = first(change);
    (finding.limit, finding.confidence)
}

/// Has a counter of the sender grow to so much, evenly.
fn grows(facts: &mut Facts, most: u64, set: impl Fn(&mut bdp_model::record::SenderSample, u64)) {
    let of = facts.sent.len() as u64 - 1;
    facts.sent.iter_mut().enumerate().for_each(|(i, sample)| set(sample, i as u64 * most / of));
}

#[test]
fn nothing_of_full_size_comes_through_whatever_window_that_fills() {
    // Ten segments of jumbo frames are more than the receiver's first window.
    let vanished = |acked: u64| {
        said(|facts| {
            facts.mss_bytes = Some(8948);
            facts.goodput_bps = acked as f64;
            facts.stream_goodput_bps = vec![acked as f64];
            facts.bytes = acked;
            facts.received.clear();
            for sample in &mut facts.sent {
                (sample.acked_bytes, sample.unacked, sample.cwnd) = (Some(acked), Some(7), Some(10));
                (sample.snd_wnd_bytes, sample.delivered) = (Some(65_160), Some(0));
                sample.rwnd_limited_ns = sample.busy_ns;
            }
            retransmit(facts, 5);
        })
    };
    assert_eq!(vanished(1), (Limit::MtuBlackHole, Confidence::High));
    assert_ne!(vanished(100_000).0, Limit::MtuBlackHole, "some came through");
}

/// A queue of so many milliseconds beside a full receive window, which a probe in so many finds empty.
fn window_in_a_queue(facts: &mut Facts, ms: u64, empty: u64) {
    let trip = 24_200_000 + ms * MS;
    added(facts, ms as i64 * 1000, 0);
    facts.probes = Some(probes(|at| {
        let drained = empty > 0 && at / 50 % empty == 0;
        ProbeOutcome::Answered(if drained { 24_200_000 } else { trip })
    }));
    facts.rtt_ns.idle.as_mut().unwrap().p95 = Some(facts.rtt_ns.idle.unwrap().p50);
    for (i, sample) in facts.sent.iter_mut().enumerate() {
        sample.snd_wnd_bytes = Some(42 * MSS);
        sample.cwnd = Some(90);
        sample.rwnd_limited_ns = sample.busy_ns;
        sample.delivery_rate_bps = Some(7_400_000 + i as u64);
    }
    // What 42 segments carry in 64 ms.
    (facts.goodput_bps, facts.stream_goodput_bps) = (7.4e6, vec![7.4e6]);
    // Its reader waits for data all the time.
    for sample in &mut facts.received {
        sample.read_waited_ns = Some(sample.at_ns);
    }
}

#[test]
fn window_that_stands_in_a_queue_is_the_paths() {
    // What others sent, or the sender itself: a larger window would only make it longer.
    assert_eq!(said(|facts| window_in_a_queue(facts, 40, 0)), (Limit::PathRate, Confidence::Medium));
    assert_eq!(limit(|facts| window_in_a_queue(facts, 40, 4)), Limit::ReceiveWindow, "it drains");
    let jitter = |facts: &mut Facts| {
        window_in_a_queue(facts, 40, 0);
        facts.rtt_ns.idle.as_mut().unwrap().p95 = Some(80 * MS);
    };
    assert_eq!(limit(jitter), Limit::ReceiveWindow, "round trips differed by as much before");
    // An end that takes the window for a fraction of what it is fills nothing.
    let misread = |facts: &mut Facts| {
        window_in_a_queue(facts, 40, 0);
        (facts.sender.window_scaling, facts.receiver.window_scaling) = (Some(true), Some(false));
    };
    assert_eq!(said(misread), (Limit::ReceiveWindow, Confidence::High));
}

#[test]
fn send_buffer_that_stands_in_a_queue_is_the_paths() {
    let buffered = |facts: &mut Facts, empty: u64| {
        window_in_a_queue(facts, 40, empty);
        facts.send_buffer_bytes = Some(128 * 1024);
        for sample in &mut facts.sent {
            (sample.snd_wnd_bytes, sample.rwnd_limited_ns) = (Some(8 << 20), Some(0));
            sample.sndbuf_limited_ns = sample.busy_ns;
        }
    };
    assert_eq!(said(|facts| buffered(facts, 0)), (Limit::PathRate, Confidence::Medium));
    assert_eq!(limit(|facts| buffered(facts, 4)), Limit::SendBuffer);
}

#[test]
fn window_that_fits_a_longer_round_trip_alone_is_not_sure() {
    // What is in flight always comes through in the round trip that it has.
    let of = |loaded_us: u64| {
        said(|facts| {
            let trip = loaded_us * 1000;
            let idle = facts.rtt_ns.idle.as_mut().unwrap();
            (idle.min, idle.p50, idle.p95) = (200_000, 200_000, Some(200_000));
            let loaded = facts.rtt_ns.loaded.as_mut().unwrap();
            (loaded.min, loaded.p50, loaded.p95) = (trip, trip, Some(trip));
            for sample in &mut facts.sent {
                (sample.snd_wnd_bytes, sample.cwnd) = (Some(42 * MSS), Some(90));
                (sample.srtt_ns, sample.min_rtt_ns) = (Some(trip), Some(200_000));
                sample.rwnd_limited_ns = sample.busy_ns;
            }
            facts.goodput_bps = 0.95 * 42.0 * MSS as f64 * 8e9 / trip as f64;
            facts.stream_goodput_bps = vec![facts.goodput_bps];
        })
    };
    assert_eq!(of(220), (Limit::ReceiveWindow, Confidence::High));
    assert_eq!(of(900), (Limit::ReceiveWindow, Confidence::Medium));
}

#[test]
fn window_of_a_segment_beside_losses_proves_little() {
    // A round trip of 0.6 ms, and acknowledgements that may wait for 40: anything lies between what the two make of it.
    let of = |lost: u64| {
        said(|facts| {
            let idle = facts.rtt_ns.idle.as_mut().unwrap();
            (idle.min, idle.p50, idle.p95) = (600_000, 600_000, Some(600_000));
            let loaded = facts.rtt_ns.loaded.as_mut().unwrap();
            (loaded.min, loaded.p50, loaded.p95) = (600_000, 600_000, Some(600_000));
            for sample in &mut facts.sent {
                (sample.snd_wnd_bytes, sample.unacked, sample.cwnd) = (Some(1500), Some(1), Some(10));
                (sample.srtt_ns, sample.min_rtt_ns) = (Some(600_000), Some(600_000));
                sample.rwnd_limited_ns = sample.busy_ns;
            }
            facts.goodput_bps = 1.9e6;
            facts.stream_goodput_bps = vec![1.9e6];
            retransmit(facts, lost);
        })
    };
    assert_eq!(of(0), (Limit::ReceiveWindow, Confidence::Medium));
    assert_eq!(of(2000), (Limit::ReceiveWindow, Confidence::Low));
}

#[test]
fn way_back_that_makes_the_round_trip_long_is_the_limit_beside_bursts_on_the_way_there() {
    // At the median nothing waits on the data's own way, and at times it does.
    let bursts = |facts: &mut Facts, back_us: i64| {
        added(facts, 500, back_us);
        facts.one_way.as_mut().unwrap().loaded.as_mut().unwrap().p95 = Some(12_000_000 + 8_000_000);
    };
    assert_eq!(limit(|facts| bursts(facts, 26_000)), Limit::ReversePath);
    let limits = findings(|facts| bursts(facts, 10_000));
    assert_ne!(limits[0].limit, Limit::ReversePath, "as long as the bursts");
    // Data that runs the other way makes that queue as anything else does.
    let both = first(|facts| {
        added(facts, 0, 64_000);
        facts.both_directions = true;
    });
    assert_eq!(both.limit, Limit::ReversePath, "{both:#?}");
    // Marks of a queue of three packets beside that.
    let marked = first(|facts| {
        added(facts, 0, 64_000);
        grows(facts, 4000, |sample, marks| sample.delivered_ce = Some(marks));
        facts.loss_episodes =
            (1..7).map(|i| LossEpisode { kind: EpisodeKind::Reduced, ..lost(i * 15, 5) }).collect();
    });
    assert_eq!(marked.limit, Limit::ReversePath, "{marked:#?}");
}

#[test]
fn way_back_that_probes_alone_fill_has_the_delay_of_its_shortest() {
    let filled = |idle_ms: u64| {
        limit(|facts| {
            added(facts, 0, 0);
            let ways = facts.one_way.as_mut().unwrap();
            let back = ways.back_idle.as_mut().unwrap();
            back.p50 = (idle_ms as i64 - 12) * MS as i64;
            ways.back_loaded.as_mut().unwrap().p50 = 52 * MS as i64;
            let idle = facts.rtt_ns.idle.as_mut().unwrap();
            (idle.min, idle.p50, idle.p95) = (24 * MS, idle_ms * MS, Some(2 * idle_ms * MS));
            let loaded = facts.rtt_ns.loaded.as_mut().unwrap();
            (loaded.min, loaded.p50, loaded.p95) = (30 * MS, 64 * MS, Some(90 * MS));
        })
    };
    assert_eq!(filled(130), Limit::ReversePath, "longer before the load than under it");
    assert_ne!(filled(66), Limit::ReversePath, "as long");
}

#[test]
fn acknowledgements_that_are_lost_time_out_small_windows() {
    let lost_back = |facts: &mut Facts, segments: u32| {
        added(facts, 6_000, 0);
        facts.probes_lost = Some(ProbesLost { known: 200, own_way: 0, way_back: 120, unknown: 0 });
        let loaded = facts.rtt_ns.loaded.as_mut().unwrap();
        (loaded.sent, loaded.received) = (200, 80);
        for sample in &mut facts.sent {
            (sample.unacked, sample.cwnd) = (Some(segments), Some(segments));
            sample.congestion_state = Some(CongestionState::Loss);
        }
        retransmit(facts, 5000);
    };
    assert_eq!(limit(|facts| lost_back(facts, 4)), Limit::ReversePath);
    assert_ne!(limit(|facts| lost_back(facts, 40)), Limit::ReversePath, "one of twenty comes always");
}

#[test]
fn losses_beside_reordering_are_the_limit_where_they_were_lost_indeed() {
    let both = |facts: &mut Facts, needless: u64| {
        repairing(facts, true, 20);
        retransmit(facts, 400);
        grows(facts, 200, |sample, times| sample.reorder_seen = Some(times));
        grows(facts, needless, |sample, times| sample.needless_retransmits = Some(times));
    };
    assert_eq!(limit(|facts| both(facts, 10)), Limit::RandomLoss);
    assert_eq!(limit(|facts| both(facts, 380)), Limit::Reordering, "nearly all had arrived");
    // Copies that nobody sent again are the network's own.
    let copies = |facts: &mut Facts, again: u64| {
        retransmit(facts, again);
        grows(facts, 450, |sample, times| sample.needless_retransmits = Some(times));
    };
    assert_eq!(limit(|facts| copies(facts, 14)), Limit::Unknown);
    assert_eq!(limit(|facts| copies(facts, 450)), Limit::Reordering);
}

#[test]
fn model_that_has_what_it_ever_had_is_at_the_paths_rate_whatever_a_queue_drops() {
    let of = |peak: u64, each: u64| {
        said(|facts| {
            facts.congestion_control = "bbr".to_owned();
            facts.sent.iter_mut().for_each(|s| s.delivery_rate_bps = Some(peak));
            twelve(facts, [40, 40, 40, 40]);
            facts.loss_episodes.iter_mut().for_each(|episode| episode.retransmits = each);
            retransmit(facts, 12 * each);
        })
    };
    assert_eq!(of(20_400_000, 8), (Limit::PathRate, Confidence::Medium));
    assert_eq!(of(36_000_000, 8), (Limit::ShallowQueue, Confidence::Medium), "it had more at times");
    // Without a queue that is a policer's rate as well.
    assert_eq!(of(20_400_000, 40), (Limit::Policer, Confidence::Medium));
}

#[test]
fn queue_that_all_see_at_each_loss_is_no_policer() {
    let of = |probes_us: u64, queue_us: u64, each: u64| {
        said(|facts| {
            twelve(facts, [30, 31, 30, 32]);
            facts.loss_episodes.insert(0, LossEpisode { retransmits: 58, ..overshoot(58) });
            for episode in &mut facts.loss_episodes {
                episode.srtt_ns = 24_000_000 + queue_us * 1000;
                episode.retransmits = episode.retransmits.max(each);
            }
            facts.rtt_ns.loaded.as_mut().unwrap().p95 = Some(24_500_000 + probes_us * 1000);
        })
    };
    assert_eq!(of(3_000, 3_000, 1), (Limit::ShallowQueue, Confidence::High));
    assert_eq!(of(0, 0, 1).0, Limit::Policer, "none sees one");
    // It takes more than a queue of its own adds each round trip, and a policer has none: it is either.
    assert_eq!(of(3_000, 3_000, 8).0, Limit::Unknown);
}

#[test]
fn few_losses_are_no_certain_policer() {
    // A single one beside the end of slow start.
    let of = |change: &dyn Fn(&mut Facts)| {
        said(|facts| {
            facts.loss_episodes = vec![overshoot(45), LossEpisode { retransmits: 30, ..lost(60, 100) }];
            retransmit(facts, 75);
            change(facts);
        })
    };
    assert_eq!(of(&|_| {}), (Limit::Policer, Confidence::Medium));
    // The whole window is one burst in so short a round trip.
    let lan = |facts: &mut Facts| {
        facts.sent.iter_mut().for_each(|s| s.min_rtt_ns = Some(MS));
        facts.loss_episodes.iter_mut().for_each(|e| e.srtt_ns = MS + 100_000);
        (facts.goodput_bps, facts.stream_goodput_bps) = (5e8, vec![5e8]);
    };
    assert_eq!(of(&lan).0, Limit::Unknown);
    // Repairs begin before there is a loss, or each acknowledgement that comes releases a burst.
    let ended = |change: &dyn Fn(&mut Facts)| {
        limit(|facts| {
            facts.loss_episodes = vec![overshoot(55)];
            retransmit(facts, 55);
            change(facts);
        })
    };
    assert_eq!(ended(&|_| {}), Limit::Policer);
    let overtaken = |facts: &mut Facts| grows(facts, 400, |sample, times| sample.reorder_seen = Some(times));
    assert_ne!(ended(&overtaken), Limit::Policer);
    let thinned = |facts: &mut Facts| {
        facts.probes_lost = Some(ProbesLost { known: 200, own_way: 0, way_back: 40, unknown: 0 });
        let loaded = facts.rtt_ns.loaded.as_mut().unwrap();
        (loaded.sent, loaded.received) = (200, 160);
        facts.sent.iter_mut().for_each(|s| s.delivery_rate_bps = Some(20_500_000));
    };
    assert_eq!(ended(&thinned), Limit::Unknown);
}

#[test]
fn slow_start_that_met_a_threshold_leaves_random_losses_unsure() {
    let of = |slow_start: Option<u64>| {
        said(|facts| {
            twelve(facts, [12, 40, 20, 33]);
            facts.loss_episodes.splice(0..0, slow_start.map(overshoot));
        })
    };
    assert_eq!(of(None), (Limit::RandomLoss, Confidence::High));
    assert_eq!(of(Some(30)), (Limit::RandomLoss, Confidence::Medium));
}

#[test]
fn marks_that_leave_room_for_more_are_no_certain_limit() {
    let of = |unacked: u32, losses: u64| {
        said(|facts| {
            grows(facts, 80, |sample, marks| sample.delivered_ce = Some(marks));
            facts.loss_episodes =
                (1..7).map(|i| LossEpisode { kind: EpisodeKind::Reduced, ..lost(i * 15, 40) }).collect();
            facts.loss_episodes.extend((0..losses).map(|i| lost(i * 11, 30)));
            facts.sent.iter_mut().for_each(|s| (s.unacked, s.cwnd) = (Some(unacked), Some(unacked)));
            facts.goodput_bps = f64::from(unacked) / 42.0 * 20e6;
            facts.stream_goodput_bps = vec![facts.goodput_bps];
        })
    };
    assert_eq!(of(42, 0), (Limit::EcnMarks, Confidence::High));
    assert_eq!(of(8, 0), (Limit::EcnMarks, Confidence::Medium), "six reductions in 17,000 segments allow 60");
    assert_eq!(of(42, 5), (Limit::EcnMarks, Confidence::Medium), "nearly as many for losses");
}

#[test]
fn rate_that_falls_as_its_queue_goes_is_a_policer_whose_tokens_are_used_up() {
    let of = |before_ms: u64, after_us: u64, losses: u64| {
        first(|facts| {
            rates(facts, |i| if i > 60 { 8 } else { 20 });
            let trip = |at: u64| if at > 6000 { 24_200 + after_us } else { 24_200 + before_ms * 1000 };
            facts.probes = Some(probes(|at| ProbeOutcome::Answered(trip(at) * 1000)));
            facts.loss_episodes = (0..losses).map(|i| lost(65 + 5 * i, 20)).collect();
            retransmit(facts, losses);
        })
    };
    let finding = of(3, 0, 5);
    assert_eq!((finding.limit, finding.confidence), (Limit::Policer, Confidence::Medium), "{finding:#?}");
    assert!(finding.observed(Fact::RateStep).is_some());
    assert_eq!(finding.remedy.unwrap().value.map(f64::round), Some(8e6));
    assert_eq!(of(3, 6_000, 5).limit, Limit::PathChanged, "a slower link has a longer queue");
    assert_eq!(of(3, 0, 0).limit, Limit::PathChanged, "nothing is lost");
}

#[test]
fn stall_that_ends_is_no_step_of_the_rate() {
    assert_ne!(limit(|facts| rates(facts, |i| if i > 60 { 20 } else { 0 })), Limit::PathChanged);
}

#[test]
fn short_transfer_that_outlasts_the_growth_of_its_window_is_at_the_paths_rate() {
    let of = |kib: u64, ms: u64, buffered: bool| {
        said(|facts| {
            facts.asked.bytes = Some(ByteCount::kib(kib));
            facts.duration_ns = ms * MS;
            facts.goodput_bps = (kib << 13) as f64 / ms as f64 * 1e3;
            facts.stream_goodput_bps = vec![facts.goodput_bps];
            facts.congestion_control = "bbr".to_owned();
            facts.sent.truncate(3);
            for (i, sample) in facts.sent.iter_mut().enumerate() {
                sample.at_ns = ms * MS * (i as u64 + 1) / 3;
                (sample.ssthresh, sample.cwnd, sample.unacked) = (None, Some(10 + 2 * i as u32), Some(10));
                sample.busy_ns = Some(sample.at_ns);
                sample.sndbuf_limited_ns = buffered.then_some(sample.at_ns);
            }
            facts.received.clear();
        })
    };
    // 54 KiB are carried in three round trips of a window that doubles.
    assert_eq!(of(54, 100, false), (Limit::SlowStart, Confidence::High));
    assert_eq!(
        of(54, 230, false),
        (Limit::PathRate, Confidence::Low),
        "the first window is more than it carries"
    );
    assert_ne!(of(54, 100, true).0, Limit::SlowStart, "a full buffer keeps the window from growing");
}

#[test]
fn goodput_that_repairs_interrupt_says_nothing_of_others() {
    let of = |hundredths: usize| {
        limit(|facts| {
            added(facts, 12_000, 0);
            facts.probes = Some(probes(|_| ProbeOutcome::Answered(36 * MS)));
            facts.rtt_ns.idle.as_mut().unwrap().p95 = Some(facts.rtt_ns.idle.unwrap().min);
            rates(facts, |i| 17 + 5 * (i / 10 % 2));
            if hundredths > 0 {
                repairing(facts, true, hundredths);
            }
        })
    };
    assert_eq!(of(0), Limit::CrossTraffic);
    assert_ne!(of(30), Limit::CrossTraffic);
}

#[test]
fn acknowledgement_that_waits_for_less_than_a_segment_is_no_certain_medium() {
    let of = |goodput: f64| {
        said(|facts| {
            added(facts, 30_000, 1_500);
            (facts.goodput_bps, facts.stream_goodput_bps) = (goodput, vec![goodput]);
        })
    };
    assert_eq!(of(20e6), (Limit::HalfDuplex, Confidence::High), "a segment takes 0.6 ms");
    assert_eq!(of(5e6), (Limit::HalfDuplex, Confidence::Medium), "2.3 ms");
}

#[test]
fn program_that_pauses_is_named_where_nobody_knows_the_rest() {
    let of = |paused: u64| {
        let mut facts = plain();
        // Its congestion window is full in between.
        for sample in &mut facts.sent {
            sample.congestion_state = Some(CongestionState::Open);
            sample.write_idle_ns = Some(sample.at_ns * paused / 100);
            sample.write_blocked_ns = Some(0);
            sample.busy_ns = Some(sample.at_ns * (100 - paused) / 100);
        }
        let finding = explain(&facts).remove(0);
        (finding.limit, finding.confidence)
    };
    assert_eq!(of(30), (Limit::SlowWriter, Confidence::Low));
    assert_eq!(of(15).0, Limit::Unknown);
}

#[test]
fn nothing_is_beyond_doubt_beside_what_may_hold_back_as_well() {
    let window = |change: &dyn Fn(&mut Facts)| {
        said(|facts| {
            for sample in &mut facts.sent {
                (sample.snd_wnd_bytes, sample.cwnd) = (Some(42 * MSS), Some(90));
                sample.rwnd_limited_ns = sample.busy_ns;
            }
            change(facts);
        })
    };
    assert_eq!(window(&|_| {}), (Limit::ReceiveWindow, Confidence::High));
    assert_eq!(window(&|facts| retransmit(facts, 100)), (Limit::ReceiveWindow, Confidence::High));
    assert_eq!(window(&|facts| retransmit(facts, 400)), (Limit::ReceiveWindow, Confidence::Medium));
    let back = |facts: &mut Facts| {
        facts.probes_lost = Some(ProbesLost { known: 200, own_way: 0, way_back: 40, unknown: 0 });
    };
    assert_eq!(window(&back), (Limit::ReceiveWindow, Confidence::Medium));
    // Losses, and a program that pauses for a part of the time.
    let random = |paused: u64| {
        said(|facts| {
            twelve(facts, [12, 40, 20, 33]);
            for sample in &mut facts.sent {
                sample.congestion_state = Some(CongestionState::Open);
                (sample.write_idle_ns, sample.write_blocked_ns) =
                    (Some(sample.at_ns * paused / 100), Some(0));
                sample.busy_ns = Some(sample.at_ns * (100 - paused) / 100);
            }
        })
    };
    assert_eq!(random(2), (Limit::RandomLoss, Confidence::High));
    assert_eq!(random(15), (Limit::RandomLoss, Confidence::Medium));
}
