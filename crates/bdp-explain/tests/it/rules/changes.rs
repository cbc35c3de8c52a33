//! What happens to the path and on its way back: steps, outages, one wire for both ways, packets that vanish.

use bdp_model::facts::{Facts, OneWay, ProbesLost};
use bdp_model::finding::fact;
use bdp_model::finding::{Action, At, Confidence, Fact, Limit};
use bdp_model::flow::udp::OneWayDelay;
use bdp_model::probes::{ProbeOutcome, ProbePoint, ProbeSeries};
use bdp_model::units::Nanos;

use crate::rules::shape::{MS, came, findings, found, limit, retransmit};

/// Probes every 50 ms: what became of each by when it was sent.
pub fn probes(outcome: impl Fn(u64) -> ProbeOutcome) -> ProbeSeries {
    let at = |i: u64| {
        let at_ns = i * 50 * MS;
        ProbePoint::plain(at_ns as i64, at_ns as i64, outcome(at_ns / MS))
    };
    ProbeSeries { counted_ns: None, points: (0..200).map(at).collect() }
}

/// Data at these rates in Mbit/s, by the tenth of a second.
pub fn rates(facts: &mut Facts, mbps: impl Fn(u64) -> u64) {
    let mut bytes = 0;
    facts.received = (0..=100)
        .map(|i| {
            bytes += if i > 0 { mbps(i) * 12_500 } else { 0 };
            came(i, bytes)
        })
        .collect();
}

/// Delay that load adds each way, in microseconds: that of the data, that of the acknowledgements.
pub fn added(facts: &mut Facts, own_us: i64, back_us: i64) {
    let delay = |us: i64| {
        let ns = 12_000_000 + us * 1000;
        Some(OneWayDelay { min: ns, p50: ns, p95: Some(ns), p99: Some(ns), max: ns, clock_error: 0 })
    };
    facts.one_way = Some(OneWay {
        idle: delay(0),
        loaded: delay(own_us),
        back_idle: delay(0),
        back_loaded: delay(back_us),
    });
    let more = u64::try_from(own_us + back_us).unwrap() * 1000;
    facts.sent.iter_mut().for_each(|s| s.srtt_ns = Some(24_200_000 + more));
    let loaded = facts.rtt_ns.loaded.as_mut().unwrap();
    (loaded.p50, loaded.p95) = (24_200_000 + more, Some(25_200_000 + more));
}

#[test]
fn rate_that_falls_is_a_path_that_changed_and_one_that_drifts_is_not() {
    let finding = found(|facts| rates(facts, |i| if i > 60 { 8 } else { 20 }));
    assert_eq!((finding.limit, finding.confidence), (Limit::PathChanged, Confidence::Medium), "{finding:#?}");
    let step = finding.observed(Fact::RateStep).unwrap();
    assert!((step.value - 0.4).abs() < 0.01, "{step:?}");
    let at = step.figures::<fact::RateStep>().unwrap().at;
    assert!((5_900_000_000..6_300_000_000).contains(&at.0), "{step:?}");
    assert_eq!(limit(|facts| rates(facts, |i| 20 - i * 12 / 100)), Limit::Unknown, "it falls evenly");
    assert_eq!(limit(|facts| rates(facts, |i| if i > 60 { 15 } else { 20 })), Limit::Unknown, "by a quarter");
    // A rate that was asked for has steps of its sender's own.
    assert_ne!(
        limit(|facts| {
            rates(facts, |i| if i > 60 { 8 } else { 20 });
            facts.paced_bps = Some(30_000_000);
        }),
        Limit::PathChanged
    );
}

#[test]
fn bursts_of_a_tiny_window_are_no_change_of_the_path() {
    // Less than a segment each 200 ms, as the persist timer sends it; readings between bring nothing, at times two of them.
    let finding = found(|facts| {
        let mut bytes = 0;
        facts.received = (0..=100)
            .map(|i: u64| {
                // It drifts against the readings.
                let is_due =
                    if i <= 50 { i % 2 == 1 && i % 14 != 5 } else { i.is_multiple_of(2) || i % 14 == 5 };
                bytes += if is_due { 576 } else { 0 };
                came(i, bytes)
            })
            .collect();
        (facts.goodput_bps, facts.stream_goodput_bps) = (23e3, vec![23e3]);
        for sample in &mut facts.sent {
            (sample.unacked, sample.cwnd, sample.snd_wnd_bytes) = (Some(0), Some(20), Some(576));
        }
    });
    assert_eq!(finding.limit, Limit::ReceiveWindow, "{finding:#?}");
    assert!(finding.observed(Fact::NoWholeSegment).is_some());
}

#[test]
fn rate_of_a_full_window_changes_with_the_round_trip() {
    // The acknowledgements of a small window begin to be delayed: the rate falls, and the path is as it was.
    let of = |after_ms: u64| {
        let found = findings(|facts| {
            rates(facts, |i| if i > 60 { 8 } else { 20 });
            facts.probes =
                Some(probes(|ms| ProbeOutcome::Answered(if ms > 6000 { after_ms } else { 24 } * MS)));
            let window = 42 * crate::rules::shape::MSS;
            facts.sent.iter_mut().for_each(|s| (s.cwnd, s.snd_wnd_bytes) = (Some(90), Some(window)));
        });
        found.iter().map(|finding| finding.limit).collect::<Vec<_>>()
    };
    assert_eq!(of(24), [Limit::ReceiveWindow], "probes saw no change");
    assert_eq!(of(60), [Limit::ReceiveWindow, Limit::PathChanged]);
}

/// Round trips that are longer from 6 s on.
fn longer(ms: u64) -> ProbeOutcome {
    ProbeOutcome::Answered(if ms > 6000 { 60 * MS } else { 24 * MS })
}

#[test]
fn path_that_becomes_longer_takes_from_the_rate_and_a_queue_does_not() {
    let finding = found(|facts| {
        facts.probes = Some(probes(longer));
        rates(facts, |i| if i > 60 { 8 } else { 20 });
    });
    assert_eq!(finding.limit, Limit::PathChanged, "{finding:#?}");
    let fact::RoundTripStep { before, after, .. } = finding.figures().unwrap();
    assert_eq!((before, after), (Nanos(24_000_000), Nanos(60_000_000)));
    let queue = limit(|facts| facts.probes = Some(probes(longer)));
    assert_eq!(queue, Limit::Unknown, "the goodput is what it was");
}

#[test]
fn program_that_stops_has_round_trips_of_its_own() {
    // The far end answers late while it is stopped, and its sender has nothing to send.
    let stopped = |busy_percent: u64| {
        limit(|facts| {
            facts.probes = Some(probes(longer));
            rates(facts, |i| if i > 60 { 8 } else { 20 });
            for sample in &mut facts.sent {
                sample.busy_ns = Some(sample.at_ns * busy_percent / 100);
            }
        })
    };
    assert_eq!(stopped(100), Limit::PathChanged);
    assert_eq!(stopped(60), Limit::SlowWriter);
}

#[test]
fn jump_of_the_round_trip_behind_a_queue_is_of_the_path_where_it_costs_goodput() {
    // A sawtooth of 12 ms above 30 ms, and from 6 s on a longer path.
    let sawtooth = |ms: u64| (30 + ms / 100 % 12) * MS;
    let behind = |jump_ms: u64, after: u64| {
        limit(|facts| {
            facts.probes = Some(probes(|ms| {
                ProbeOutcome::Answered(sawtooth(ms) + if ms >= 6000 { jump_ms * MS } else { 0 })
            }));
            rates(facts, |i| if i > 60 { after } else { 20 });
        })
    };
    assert_eq!(behind(25, 17), Limit::PathChanged);
    assert_ne!(behind(25, 20), Limit::PathChanged, "it costs nothing");
    assert_ne!(behind(3, 17), Limit::PathChanged, "the sawtooth alone");
}

#[test]
fn silence_that_probes_meet_too_is_an_outage() {
    let silent = |facts: &mut Facts, answered: bool| {
        rates(facts, |i| if (41..=55).contains(&i) { 0 } else { 20 });
        retransmit(facts, 40);
        facts.probes = Some(probes(|ms| match (4000..5600).contains(&ms) && !answered {
            true => ProbeOutcome::Lost { waited_ns: 1000 * MS },
            false => ProbeOutcome::Answered(24 * MS),
        }));
    };
    let finding = found(|facts| silent(facts, false));
    assert_eq!((finding.limit, finding.confidence), (Limit::PathChanged, Confidence::Medium), "{finding:#?}");
    // The last reading before it had the last byte.
    assert!((1.4e9..=1.7e9).contains(&finding.observed(Fact::Gap).unwrap().value), "{finding:#?}");
    assert!(finding.observed(Fact::ProbesMeanwhile).is_some());
    assert_eq!(finding.remedy.unwrap().action, Action::FindOutage);
    // One that left just before the path came back was answered.
    let one = found(|facts| {
        silent(facts, false);
        facts.probes = Some(probes(|ms| match (4000..5600).contains(&ms) && ms != 5000 {
            true => ProbeOutcome::Lost { waited_ns: 1000 * MS },
            false => ProbeOutcome::Answered(24 * MS),
        }));
    });
    assert_eq!(one.observed(Fact::ProbesMeanwhile).map(|e| e.value), Some(1.0), "{one:#?}");
    // The connection tries again long after the path is back, and probes are answered from then on.
    let back_early = |lost_elsewhere: u64| {
        found(|facts| {
            silent(facts, false);
            facts.probes =
                Some(probes(|ms| match (4000..5000).contains(&ms) || ms % 1000 < lost_elsewhere {
                    true => ProbeOutcome::Lost { waited_ns: 1000 * MS },
                    false => ProbeOutcome::Answered(24 * MS),
                }));
        })
    };
    let early = back_early(0);
    assert_eq!(early.limit, Limit::PathChanged, "{early:#?}");
    assert!((0.8e9..1e9).contains(&early.observed(Fact::ProbesSilent).unwrap().value), "{early:#?}");
    assert!(back_early(300).observed(Fact::Gap).is_none(), "it loses probes all the time");
    let timeout = found(|facts| silent(facts, true));
    assert!(timeout.observed(Fact::Gap).is_none(), "a timeout of the connection alone: {timeout:#?}");
    let nothing = found(|facts| {
        silent(facts, false);
        retransmit(facts, 0);
    });
    assert!(nothing.observed(Fact::Gap).is_none(), "nothing was under way: {nothing:#?}");
}

#[test]
fn one_wire_for_both_ways_delays_both() {
    let finding = found(|facts| added(facts, 6_000, 3_000));
    assert_eq!((finding.limit, finding.confidence), (Limit::HalfDuplex, Confidence::High), "{finding:#?}");
    assert_eq!(finding.observed(Fact::QueueWayBack).unwrap().value, 3e6);
    assert_eq!(limit(|facts| added(facts, 6_000, 100)), Limit::PathRate, "a queue on one way");
    assert_ne!(limit(|facts| added(facts, 2_000, 4_000)), Limit::HalfDuplex, "the way back has more");
    let both = limit(|facts| {
        added(facts, 6_000, 3_000);
        facts.both_directions = true;
    });
    assert_ne!(both, Limit::HalfDuplex, "data runs both ways");
    let slow = limit(|facts| {
        added(facts, 60_000, 1_500);
        facts.goodput_bps = 1e6;
    });
    assert_ne!(slow, Limit::HalfDuplex, "a segment takes 11.6 ms there");
}

#[test]
fn queue_that_never_ends_beside_a_goodput_that_changes_is_others_traffic() {
    // A full queue of 12 ms all the time, and a share of the link that goes up and down every second.
    let shared = |facts: &mut Facts| {
        added(facts, 12_000, 0);
        facts.probes = Some(probes(|_| ProbeOutcome::Answered(36 * MS)));
        facts.rtt_ns.idle.as_mut().unwrap().p95 = Some(facts.rtt_ns.idle.unwrap().min);
        rates(facts, |i| 17 + 5 * (i / 10 % 2));
    };
    let finding = found(shared);
    assert_eq!(
        (finding.limit, finding.confidence),
        (Limit::CrossTraffic, Confidence::Medium),
        "{finding:#?}"
    );
    assert_eq!(finding.observed(Fact::ProbesQueued).unwrap().value, 1.0);
    let differently = |change: &dyn Fn(&mut Facts)| {
        limit(|facts| {
            shared(facts);
            change(facts);
        })
    };
    // Alone on its link it would be steady; a link that idles at times gives what its sender asks for.
    assert_eq!(differently(&|facts| rates(facts, |_| 20)), Limit::PathRate);
    let drains = |ms| ProbeOutcome::Answered(if ms % 1000 < 100 { 24 * MS } else { 36 * MS });
    assert_ne!(differently(&|facts| facts.probes = Some(probes(drains))), Limit::CrossTraffic);
    // A path that was not steady before the load, either: jitter.
    assert_ne!(
        differently(&|facts| facts.rtt_ns.idle.as_mut().unwrap().p95 = Some(40 * MS)),
        Limit::CrossTraffic
    );
    let waits = |facts: &mut Facts| {
        facts.one_way.as_mut().unwrap().back_loaded.as_mut().unwrap().p95 = Some(40_000_000);
    };
    let both = findings(|facts| {
        shared(facts);
        waits(facts);
    });
    assert_ne!(both[0].limit, Limit::CrossTraffic, "the way back has a queue at times");
    let level =
        |facts: &mut Facts| facts.sent.iter_mut().for_each(|s| s.delivery_rate_bps = Some(20_000_000));
    assert_ne!(differently(&level), Limit::CrossTraffic, "it never had more");
}

#[test]
fn way_back_is_the_limit_where_it_alone_delays_or_loses() {
    let finding = found(|facts| added(facts, 0, 64_000));
    assert_eq!((finding.limit, finding.place.at), (Limit::ReversePath, At::WayBack), "{finding:#?}");
    assert_eq!(finding.observed(Fact::QueueWayBack).unwrap().value, 64e6);
    // Nothing waits that long for its turn on a wire.
    let both = findings(|facts| added(facts, 64_000, 64_000));
    let limits: Vec<Limit> = both.iter().map(|finding| finding.limit).collect();
    assert_eq!(limits, [Limit::PathRate, Limit::ReversePath], "{both:#?}");
    assert_eq!(both[1].observed(Fact::QueueWayBackP95).unwrap().value, 64e6);
    let lost_back = |facts: &mut Facts, segments: u64| {
        facts.probes_lost = Some(ProbesLost { known: 200, own_way: 0, way_back: 60, unknown: 0 });
        let loaded = facts.rtt_ns.loaded.as_mut().unwrap();
        loaded.received = 140;
        retransmit(facts, segments);
    };
    let finding = found(|facts| lost_back(facts, 10));
    assert_eq!((finding.limit, finding.confidence), (Limit::ReversePath, Confidence::Medium), "{finding:#?}");
    assert_eq!(finding.observed(Fact::ProbesLost).unwrap().value, 0.3);
    assert_ne!(limit(|facts| lost_back(facts, 4000)), Limit::ReversePath, "the data fares as badly");
    // A sender that goes by the rate has all of it, however long acknowledgements take.
    let unhindered = limit(|facts| {
        added(facts, 0, 64_000);
        facts.congestion_control = "bbr".to_owned();
        for sample in &mut facts.sent {
            (sample.delivery_rate_bps, sample.unacked) = (Some(20_200_000), Some(150));
        }
    });
    assert_ne!(unhindered, Limit::ReversePath);
}

#[test]
fn full_segments_that_vanish_where_probes_arrive_are_a_black_hole() {
    let stuck = |facts: &mut Facts, again: u64| {
        (facts.bytes, facts.goodput_bps, facts.retransmits) = (0, 0.0, Some(again));
        facts.received.clear();
        for sample in &mut facts.sent {
            (sample.acked_bytes, sample.unacked, sample.cwnd) = (Some(0), Some(10), Some(1));
            (sample.delivered, sample.retransmits) = (Some(0), Some(again));
        }
    };
    let finding = found(|facts| stuck(facts, 4));
    assert_eq!((finding.limit, finding.confidence), (Limit::MtuBlackHole, Confidence::High), "{finding:#?}");
    assert_eq!(finding.observed(Fact::FullSegmentsLost).unwrap().value, 4.0);
    assert_ne!(limit(|facts| stuck(facts, 1)), Limit::MtuBlackHole, "one retransmission proves nothing");
    let all = limit(|facts| {
        stuck(facts, 4);
        facts.rtt_ns.loaded.as_mut().unwrap().received = 0;
    });
    assert_ne!(all, Limit::MtuBlackHole, "small ones vanish too");
    let some = limit(|facts| {
        stuck(facts, 4);
        facts.sent.iter_mut().for_each(|s| s.acked_bytes = Some(2896));
    });
    assert_ne!(some, Limit::MtuBlackHole, "two segments came through");
}

#[test]
fn pause_of_a_host_caps_what_it_may_have_caused() {
    // Nothing for 700 ms, no probe answered, and the answer to one waited 650 ms in a host.
    let of = |host_ms: u64| {
        found(|facts| {
            let silent = |ms: u64| (4000..4700).contains(&ms);
            rates(facts, |i| if silent(i * 100) { 0 } else { 20 });
            let mut series = probes(|ms| match silent(ms) {
                true => ProbeOutcome::Lost { waited_ns: 1000 * MS },
                false => ProbeOutcome::Answered(24 * MS),
            });
            series.points[120].host_ns = Some(host_ms * MS);
            facts.probes = Some(series);
            retransmit(facts, 10);
        })
    };
    let sound = of(1);
    assert_eq!((sound.limit, sound.confidence), (Limit::PathChanged, Confidence::Medium), "{sound:#?}");
    let doubtful = of(650);
    assert_eq!((doubtful.limit, doubtful.confidence), (Limit::PathChanged, Confidence::Low), "{doubtful:#?}");
    assert_eq!(doubtful.observed(Fact::HostPaused).unwrap().value, 650e6);
    // A pause that is far shorter explains nothing of it.
    assert_eq!(of(100).confidence, Confidence::Medium);
}
