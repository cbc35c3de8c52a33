//! Losses, marks and what is taken for a loss.

use bdp_model::facts::{Facts, ProbesLost};
use bdp_model::finding::fact::{self, Bps};
use bdp_model::finding::{Action, Confidence, Fact, Limit};
use bdp_model::flow::connection::Connection;
use bdp_model::record::{CongestionState, EpisodeKind, LossEpisode};
use bdp_model::units::Nanos;

use crate::rules::shape::{MS, found, limit, lost, plain, retransmit};

/// Twelve losses with these numbers of segments in flight by turns.
pub fn twelve(facts: &mut Facts, unacked: [u32; 4]) {
    facts.loss_episodes = (0..12).map(|i| lost(8 * i + 6, unacked[i as usize % 4])).collect();
    retransmit(facts, 60);
}

/// Losses whose repairs take so many hundredths of the time, with SACK or without.
pub fn repairing(facts: &mut Facts, sack: bool, hundredths: usize) {
    facts.connection = Some(Connection { sack: Some(sack), ..Default::default() });
    twelve(facts, [12, 40, 20, 33]);
    let every = facts.sent.len() / hundredths;
    facts.sent.iter_mut().step_by(every).for_each(|s| s.congestion_state = Some(CongestionState::Recovery));
    let each = 10_000 * MS * hundredths as u64 / 100 / facts.loss_episodes.len() as u64;
    facts.loss_episodes.iter_mut().for_each(|e| e.took_ns = each);
}

/// The end of slow start, which lost so many of 60 segments.
pub fn overshoot(retransmits: u64) -> LossEpisode {
    LossEpisode { slow_start: true, retransmits, ..lost(1, 60) }
}

#[test]
fn plain_flow_has_no_limit_that_is_known() {
    assert_eq!(limit(|_| {}), Limit::Unknown);
}

#[test]
fn losses_at_any_rate_are_random() {
    let random = |facts: &mut Facts| twelve(facts, [12, 40, 20, 33]);
    let finding = found(random);
    assert_eq!((finding.limit, finding.confidence), (Limit::RandomLoss, Confidence::High), "{finding:#?}");
    let varied = finding.observed(Fact::LossesAtAnyRate).unwrap();
    assert_eq!(varied.name.as_deref(), Some("cubic"));
    assert_eq!(varied.figures(), Some(fact::LossesAtAnyRate { losses: 12 }));
    assert_eq!(finding.remedy.unwrap().action, Action::FindErrors);
    // Three have no spread to go by.
    assert_ne!(
        limit(|facts| {
            random(facts);
            facts.loss_episodes.truncate(3);
        }),
        Limit::RandomLoss
    );
    // A queue of 20 ms before each is what they came of, at whatever rate.
    let queued = found(|facts| {
        random(facts);
        facts.loss_episodes.iter_mut().for_each(|e| e.srtt_ns = 44 * MS);
    });
    assert_eq!(queued.limit, Limit::CongestionLoss, "{queued:#?}");
    // One of 7 ms that probes beside it don't meet is the delayed acknowledgements of a small window.
    let small = |facts: &mut Facts, probes_ms: u64| {
        random(facts);
        facts.loss_episodes.iter_mut().for_each(|e| e.srtt_ns = 31 * MS);
        facts.rtt_ns.loaded.as_mut().unwrap().p95 = Some(probes_ms * MS);
    };
    assert_eq!(limit(|facts| small(facts, 25)), Limit::RandomLoss);
    assert_eq!(limit(|facts| small(facts, 31)), Limit::CongestionLoss);
    // A pacer by a model does not go by losses.
    assert_ne!(
        limit(|facts| {
            random(facts);
            facts.congestion_control = "bbr".to_owned();
        }),
        Limit::RandomLoss
    );
    // What Reno carries with such losses is stated where Reno was used.
    let reno = found(|facts| {
        random(facts);
        facts.congestion_control = "reno".to_owned();
    });
    // 1.31 segments of 1448 B / sqrt(12 reductions / 17,028 segments) in 24.2 ms, however many segments each cost.
    let model = reno.observed(Fact::MathisRate).unwrap();
    let carries = model.value;
    assert!((23.4e6..23.8e6).contains(&carries), "{reno:#?}");
    let fact::MathisRate { loss, goodput } = model.figures().unwrap();
    assert_eq!(((loss.0 * 1e5).round(), goodput), (70.0, Bps(20e6)));
    // CUBIC at so short a round trip follows its estimate of Reno's window.
    let cubic = found(random);
    let of_cubic = cubic.observed(Fact::CubicRate).unwrap().value;
    assert!((0.9..1.0).contains(&(of_cubic / carries)), "{cubic:#?}");
}

#[test]
fn what_slow_start_overshot_by_is_no_part_of_the_losses_that_a_model_is_fed() {
    let of = |overshot: u64| {
        let finding = found(|facts| {
            twelve(facts, [12, 40, 20, 33]);
            // Eight more losses: the end of slow start outweighs none of them.
            facts.loss_episodes.insert(0, LossEpisode { delivered: 120, ..overshoot(overshot) });
            let more = overshot;
            facts.retransmits = facts.retransmits.map(|count| count + more);
            facts
                .sent
                .iter_mut()
                .skip(3)
                .for_each(|s| s.retransmits = s.retransmits.map(|count| count + more));
        });
        assert_eq!(finding.limit, Limit::RandomLoss, "{finding:#?}");
        let share = finding.observed(Fact::RetransmittedShare).unwrap().value;
        (finding.observed(Fact::CubicRate).unwrap().value, share)
    };
    let ((few, few_share), (many, many_share)) = (of(1), of(600));
    assert!((many / few - 1.0).abs() < 0.05, "{few} {many}");
    assert!((many_share / few_share - 1.0).abs() < 0.05, "{few_share} {many_share}");
}

#[test]
fn losses_at_one_rate_are_of_a_threshold_and_the_queue_names_it() {
    let threshold = |facts: &mut Facts| twelve(facts, [30, 31, 30, 32]);
    let policer = found(threshold);
    assert_eq!((policer.limit, policer.confidence), (Limit::Policer, Confidence::Medium), "{policer:#?}");
    assert_eq!(policer.figures::<fact::LossesAtOneRate>().unwrap().losses, 12);
    let remedy = policer.remedy.unwrap();
    assert_eq!((remedy.action, remedy.value), (Action::ShapeToRate, Some(20e6)));
    // An overshoot agrees with it.
    let surer = found(|facts| {
        threshold(facts);
        facts.loss_episodes.insert(0, overshoot(20));
    });
    assert_eq!((surer.limit, surer.confidence), (Limit::Policer, Confidence::High), "{surer:#?}");
    // Probes that wait 2 ms see a queue, and so do probes that are lost.
    let short = found(|facts| {
        threshold(facts);
        facts.rtt_ns.loaded.as_mut().unwrap().p95 = Some(26_800_000);
    });
    assert_eq!(short.limit, Limit::ShallowQueue, "{short:#?}");
    let probes = found(|facts| {
        threshold(facts);
        facts.probes_lost = Some(ProbesLost { known: 200, own_way: 3, way_back: 0, unknown: 0 });
    });
    assert_eq!(probes.limit, Limit::ShallowQueue, "{probes:#?}");
    assert!(probes.observed(Fact::ProbesLost).is_some());
    // Two losses are none's.
    assert_eq!(
        limit(|facts| {
            threshold(facts);
            facts.loss_episodes.truncate(2);
        }),
        Limit::Unknown
    );
    // One of a sender that has no processor left says nothing of the path.
    assert_eq!(
        limit(|facts| {
            threshold(facts);
            facts.sender.thread_cpu = Some(0.97);
        }),
        Limit::Cpu
    );
}

#[test]
fn end_of_slow_start_shows_a_threshold_where_it_costs_much() {
    let ended = |segments| {
        found(|facts| {
            facts.loss_episodes = vec![overshoot(segments)];
            retransmit(facts, segments);
        })
    };
    let queue = ended(25);
    assert_eq!(queue.limit, Limit::ShallowQueue, "{queue:#?}");
    assert_eq!(queue.figures(), Some(fact::Overshoot { segments: 25 }));
    // More than half of what was in flight is more than a queue drops while slow start doubles.
    assert_eq!(ended(45).limit, Limit::Policer);
    assert_eq!(ended(3).limit, Limit::Unknown);
}

#[test]
fn sender_that_probes_by_a_model_loses_a_fifth_to_a_queue_and_more_to_a_policer() {
    let bbr = |each: u64| {
        limit(|facts| {
            facts.congestion_control = "bbr".to_owned();
            twelve(facts, [40, 40, 40, 40]);
            facts.loss_episodes.iter_mut().for_each(|episode| episode.retransmits = each);
            retransmit(facts, 12 * each);
        })
    };
    assert_eq!(bbr(8), Limit::ShallowQueue);
    assert_eq!(bbr(40), Limit::Policer);
}

#[test]
fn overshoot_between_a_queues_and_a_policers_is_either() {
    let ended = |segments| {
        limit(|facts| {
            facts.loss_episodes = vec![overshoot(segments)];
            retransmit(facts, segments);
        })
    };
    let in_flight = u64::from(overshoot(1).unacked);
    assert_eq!(ended(in_flight * 60 / 100), Limit::Unknown);
    assert_eq!(ended(in_flight * 40 / 100), Limit::ShallowQueue);
    assert_eq!(ended(in_flight * 80 / 100), Limit::Policer);
}

#[test]
fn marks_are_the_limit_where_the_window_is_reduced_for_them() {
    let marked = |facts: &mut Facts, marks: u64| {
        let of = facts.sent.len() as u64 - 1;
        for (i, sample) in facts.sent.iter_mut().enumerate() {
            sample.delivered_ce = Some(marks * i as u64 / of);
        }
        facts.loss_episodes =
            (1..7).map(|i| LossEpisode { kind: EpisodeKind::Reduced, ..lost(i * 15, 40) }).collect();
    };
    let finding = found(|facts| marked(facts, 80));
    assert_eq!((finding.limit, finding.confidence), (Limit::EcnMarks, Confidence::High), "{finding:#?}");
    assert_eq!(finding.figures::<fact::Marked>().unwrap().marked, 80);
    let reductions = finding.observed(Fact::WindowReductions).unwrap();
    assert_eq!(reductions.value, 6.0);
    assert_eq!(reductions.figures(), Some(fact::WindowReductions { for_losses: 0 }));
    assert_eq!(limit(|facts| marked(facts, 5)), Limit::Unknown, "too few");
    // More losses than marks: these are what the sender answers to.
    assert_ne!(
        limit(|facts| {
            marked(facts, 80);
            facts.loss_episodes.extend((1..9).map(|i| lost(i * 11, 30)));
        }),
        Limit::EcnMarks
    );
}

#[test]
fn later_losses_of_a_segment_each_are_of_a_queue_whatever_slow_start_lost() {
    // 50 of 60 in flight lost at once, and later one or two, behind a queue of 2 ms.
    let later = |each: u64| {
        found(|facts| {
            let one = |tenth| LossEpisode { retransmits: each, srtt_ns: 26_200_000, ..lost(tenth, 100) };
            facts.loss_episodes = vec![overshoot(50), one(40), one(80)];
            retransmit(facts, 50 + 2 * each);
        })
    };
    assert_eq!(later(1).limit, Limit::ShallowQueue);
    assert_eq!(later(6).limit, Limit::Policer);
}

#[test]
fn first_loss_that_stands_out_is_the_end_of_slow_start() {
    // HyStart had left slow start, and the link took twice the rate until the tokens were gone.
    let policed = |others: usize| {
        found(|facts| {
            let first = LossEpisode { retransmits: 80, ..lost(4, 120) };
            let later = (0..others)
                .map(|i| LossEpisode { retransmits: 5, ..lost(12 + 8 * i as u64, 25 + i as u32 % 3) });
            facts.loss_episodes = std::iter::once(first).chain(later).collect();
            retransmit(facts, 130);
        })
    };
    let finding = policed(10);
    assert_eq!(finding.limit, Limit::Policer, "{finding:#?}");
    assert_eq!(finding.figures::<fact::LossesAtOneRate>().unwrap().losses, 10);
    assert_eq!(finding.figures(), Some(fact::Overshoot { segments: 80 }));
    assert!(policed(2).observed(Fact::Overshoot).is_none(), "of three none stands out");
}

#[test]
fn repairs_without_sack_are_the_limit_where_nothing_says_what_the_losses_are_of() {
    // Two losses have no spread to go by.
    let two = |facts: &mut Facts, sack: bool, hundredths: usize| {
        repairing(facts, sack, hundredths);
        facts.loss_episodes.truncate(2);
        let each = 100 * MS * hundredths as u64 / 2;
        facts.loss_episodes.iter_mut().for_each(|e| e.took_ns = each);
    };
    let finding = found(|facts| two(facts, false, 12));
    assert_eq!((finding.limit, finding.confidence), (Limit::SackMissing, Confidence::Medium), "{finding:#?}");
    let took = finding.observed(Fact::Repairing).unwrap();
    assert!((0.15..0.25).contains(&took.value), "{took:?}");
    assert_eq!(finding.remedy.unwrap().action, Action::EnableSack);
    assert_ne!(limit(|facts| two(facts, true, 12)), Limit::SackMissing, "it has SACK");
    assert_eq!(limit(|facts| repairing(facts, true, 20)), Limit::RandomLoss, "it has SACK");
}

#[test]
fn reordering_that_the_kernel_sees_is_the_limit() {
    let overtaken = |facts: &mut Facts, times: u64| {
        let of = facts.sent.len() as u64 - 1;
        for (i, sample) in facts.sent.iter_mut().enumerate() {
            sample.reorder_seen = Some(times * i as u64 / of);
            sample.needless_retransmits = Some(times * i as u64 / of);
        }
        retransmit(facts, times);
    };
    let finding = found(|facts| overtaken(facts, 100));
    assert_eq!(finding.limit, Limit::Reordering, "{finding:#?}");
    assert_eq!(finding.figures(), Some(fact::Reordered { times: 100 }));
    assert_eq!(finding.observed(Fact::NeedlessRetransmits).unwrap().value, 100.0);
    assert_eq!(limit(|facts| overtaken(facts, 20)), Limit::Unknown, "once in a thousand segments");
    // Without SACK the kernel can't know.
    assert_eq!(
        limit(|facts| {
            overtaken(facts, 100);
            facts.connection = Some(Connection { sack: Some(false), ..Default::default() });
        }),
        Limit::Unknown
    );
}

#[test]
fn segments_that_come_later_than_a_round_trip_are_not_lost() {
    let late = |facts: &mut Facts, needless: u64| {
        twelve(facts, [12, 40, 20, 33]);
        retransmit(facts, 60);
        let of = facts.sent.len() as u64 - 1;
        for (i, sample) in facts.sent.iter_mut().enumerate() {
            sample.needless_retransmits = Some(i as u64 * needless / of);
        }
    };
    let finding = found(|facts| late(facts, 60));
    assert_eq!(finding.limit, Limit::Reordering, "{finding:#?}");
    assert_eq!(finding.observed(Fact::NeedlessRetransmits).unwrap().value, 60.0);
    assert_eq!(limit(|facts| late(facts, 10)), Limit::RandomLoss, "most of it was lost");
}

#[test]
fn picture_of_losses_is_of_those_after_slow_start() {
    let mut facts = plain();
    facts.loss_episodes = vec![overshoot(20), lost(30, 40), lost(60, 20)];
    let picture = facts.loss_picture().unwrap();
    assert_eq!((picture.events, picture.settled, picture.timeouts), (3, 2, 0));
    assert_eq!(picture.queue, Nanos(700_000));
}
