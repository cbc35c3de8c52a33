//! What is said of datagrams: where they were lost, or what kept more from being sent.

use bdp_explain::{ceiling, explain};
use bdp_model::facts::Facts;
use bdp_model::finding::fact::{self, Bps, Share};
use bdp_model::finding::{Action, At, Cause, Confidence, Fact, Finding, Lack, Limit, Remedy};
use bdp_model::flow::udp::{Distribution, RateSearch, SearchEnd, Trial, UdpReport, UdpRequest};
use bdp_model::measurement::host_counters::{DeviceCounters, HostCounters};
use bdp_model::measurement::{Direction, Measurement};
use bdp_model::units::Nanos;

/// 100 Mbit/s for 10 s from fra1, of which `lost` datagrams did not come.
fn measurement(sent_mbps: f64, lost: u64, dropped: Option<u64>) -> Measurement {
    let text = include_str!("../../../bdp-store/tests/it/measurement.json");
    let mut m: Measurement = serde_json::from_str(text).unwrap();
    m.request.spec.udp = Some(UdpRequest {
        rate_bps: Some(100_000_000),
        search: None,
        datagram_bytes: None,
        dont_fragment: false,
    });
    let sent = (sent_mbps * 1e6 * 10.0 / (1472.0 * 8.0)) as u64;
    let direction = &mut m.directions[0];
    direction.sent.clear();
    direction.goodput_bps = (sent - lost) as f64 * 1472.0 * 8.0 / 10.0;
    direction.udp = Some(UdpReport {
        asked_bps: Some(100e6),
        sent_bps: sent_mbps * 1e6,
        datagram_bytes: 1472,
        sent,
        received: sent - lost,
        lost,
        loss_ratio: lost as f64 / sent as f64,
        dropped_by_receiver: dropped,
        ..Default::default()
    });
    m
}

fn finding(mut m: Measurement) -> Finding {
    m.ceiling = ceiling(&m);
    let mut findings = explain(&Facts::measured(&m, Direction::To).unwrap());
    assert_eq!(findings.len(), 1, "{findings:?}");
    findings.remove(0)
}

/// What it says to do, in order.
fn actions(finding: &Finding) -> Vec<Action> {
    let first = finding.remedy.as_ref();
    std::iter::successors(first, |remedy: &&Remedy| remedy.also.as_deref()).map(|r| r.action).collect()
}

fn udp(m: &mut Measurement) -> &mut UdpReport {
    m.directions[0].udp.as_mut().unwrap()
}

#[test]
fn all_that_was_asked_for_is_no_limit_of_the_path() {
    let said = finding(measurement(100.0, 0, Some(0)));
    assert_eq!(said.limit, Limit::AskedRate);
    assert_eq!(actions(&said), [Action::SearchRate]);
    // The NIC of the sample has 1 Gbit/s: 957 Mbit/s of such datagrams.
    let mut m = measurement(100.0, 0, Some(0));
    m.directions[0].goodput_bps = 950e6;
    let said = finding(m);
    assert_eq!(said.limit, Limit::Ceiling);
    let of_ceiling = said.observed(Fact::OfCeilingInDatagrams).unwrap();
    let figures: fact::OfCeilingInDatagrams = of_ceiling.figures().unwrap();
    assert_eq!(((figures.ceiling.0 / 1e6).round(), of_ceiling.at_least), (957.0, Some(0.94)));
}

#[test]
fn loss_of_the_path_is_told_from_drops_of_the_receiving_host() {
    // Without a queue it may be random loss, or a policer: what came is not what the path carries.
    let path = finding(measurement(100.0, 40_000, Some(0)));
    assert_eq!((path.limit, path.confidence), (Limit::PathLoss, Confidence::Medium));
    assert!(path.observed(Fact::DatagramQueue).is_none() && path.remedy.clone().unwrap().value.is_none());
    assert_eq!(actions(&path), [Action::LowerRate, Action::SearchRate]);
    let dropped = path.observed(Fact::DroppedBySocket).unwrap();
    assert_eq!((dropped.value, dropped.host.as_deref()), (0.0, Some("ams1")));
    assert_eq!(dropped.figures(), Some(fact::DroppedBySocket { lost: 40_000 }));
    let mut queued = measurement(100.0, 40_000, Some(0));
    udp(&mut queued).delay_variation_ns =
        Some(Distribution { p50: 19_000_000, p95: Some(20_000_000), ..Default::default() });
    let queued = finding(queued);
    let received = queued.observed(Fact::Received).unwrap();
    assert_eq!((received.value / 1e5).round(), 529.0);
    assert_eq!(received.figures::<fact::Received>().unwrap().sent, Bps(100e6));
    assert_eq!(queued.remedy.as_ref().unwrap().value, Some(received.value));
    assert_eq!((queued.limit, queued.confidence), (Limit::PathLoss, Confidence::High));
    let queue = queued.observed(Fact::DatagramQueue).unwrap();
    assert_eq!((queue.value, queue.at_least), (19e6, Some(2e6)));
    // Some that were held up, or overtaken, tell of no queue.
    let mut held_up = measurement(100.0, 40_000, Some(0));
    udp(&mut held_up).delay_variation_ns =
        Some(Distribution { p50: 80_000, p95: Some(4_000_000), ..Default::default() });
    let held_up = finding(held_up);
    assert_eq!((held_up.limit, held_up.confidence), (Limit::PathLoss, Confidence::Medium));
    assert_eq!(held_up.observed(Fact::DatagramDelay).unwrap().value, 4e6);
    assert!(held_up.observed(Fact::DatagramQueue).is_none());
    let host = finding(measurement(100.0, 40_000, Some(39_000)));
    assert_eq!((host.limit, host.confidence), (Limit::ReceivingHost, Confidence::High));
    assert_eq!((host.cause, host.place.at), (Some(Cause::SocketDrops), At::Receiver));
    assert_eq!(actions(&host), [Action::LargerSocketBuffer, Action::LargerDatagrams, Action::LowerRate]);
    // A kernel that does not tell its drops leaves the answer unsure.
    let unknown = finding(measurement(100.0, 40_000, None));
    assert_eq!((unknown.limit, unknown.confidence), (Limit::PathLoss, Confidence::Medium));
    assert!(unknown.missing[0].what == Lack::SocketDrops);
    // A few are no overload.
    let few = finding(measurement(100.0, 85, Some(0)));
    assert!(few.limit == Limit::PathLoss && few.observed(Fact::DatagramsLost).unwrap().value == 85.0);
}

#[test]
fn a_sender_that_is_late_or_drops_its_own_is_named() {
    let mut late = measurement(60.0, 0, Some(0));
    udp(&mut late).left_out = 33_000;
    let late = finding(late);
    assert_eq!((late.limit, late.confidence), (Limit::SendingHost, Confidence::High));
    let sent = late.observed(Fact::SentOfAsked).unwrap();
    assert_eq!((sent.value, sent.at_most), (0.6, Some(0.98)));
    assert_eq!(sent.figures(), Some(fact::SentOfAsked { sent: Bps(60e6), asked: Bps(100e6) }));
    assert_eq!(late.observed(Fact::Skipped).unwrap().value, 33_000.0);
    let mut own = measurement(100.0, 10_000, Some(0));
    let device = Some(DeviceCounters { tx_dropped: 9_900, ..Default::default() });
    own.near.counters = Some(HostCounters { device, ..Default::default() });
    let said = finding(own.clone());
    assert_eq!(said.limit, Limit::SendingHost);
    assert_eq!(said.cause, Some(Cause::DeviceDrops));
    let dropped = said.observed(Fact::DroppedByDevice).unwrap();
    assert_eq!(
        (dropped.value, dropped.at_least, dropped.name.as_deref()),
        (9_900.0, Some(5_000.0), Some("eth0"))
    );
    // Less than half of what was lost: the path lost the rest, and the drops are named.
    let mut some = own.clone();
    some.near.counters.as_mut().unwrap().device.as_mut().unwrap().tx_dropped = 4_000;
    udp(&mut some).delay_variation_ns = Some(Distribution { p50: 19_000_000, ..Default::default() });
    let some = finding(some);
    assert_eq!((some.limit, some.confidence), (Limit::PathLoss, Confidence::Medium));
    assert_eq!(some.observed(Fact::DroppedByDevice).unwrap().value, 4_000.0);
    // The counter is of the whole measurement: of one trial among others, and of more than was sent, it tells nothing.
    let mut searched = own.clone();
    udp(&mut searched).trials = vec![trial(100.0, 10, false)];
    assert_eq!(finding(searched).limit, Limit::PathLoss);
    own.near.counters.as_mut().unwrap().device.as_mut().unwrap().tx_dropped = 336_377;
    assert_eq!(finding(own).limit, Limit::PathLoss);
}

fn trial(mbps: f64, lost: u64, held: bool) -> Trial {
    let udp = UdpReport {
        asked_bps: Some(mbps * 1e6),
        sent_bps: mbps * 1e6,
        sent: 8_000,
        lost,
        loss_ratio: lost as f64 / 8_000.0,
        dropped_by_receiver: Some(0),
        ..Default::default()
    };
    Trial::of(&RateSearch { loss_ratio: 0.0, trial: Nanos::secs(1) }, &udp, mbps * 1e6, held)
}

#[test]
fn what_was_allowed_to_be_lost_is_not_called_whole() {
    let mut m = measurement(100.0, 2_760, Some(0));
    m.request.spec.udp.as_mut().unwrap().search =
        Some(RateSearch { loss_ratio: 0.05, trial: Nanos::secs(1) });
    let said = finding(m.clone());
    let lost = said.observed(Fact::LostAsAllowed).unwrap();
    assert_eq!(lost.figures::<fact::LostAsAllowed>().unwrap().lost, 2_760);
    assert_eq!(lost.at_most, Some(0.05));
    assert!(said.observed(Fact::AllArrived).is_none());
    udp(&mut m).trials = vec![trial(200.0, 4_000, false), trial(100.0, 0, true)];
    udp(&mut m).search = Some(SearchEnd::Held);
    let said = finding(m);
    let held = said.observed(Fact::RateHeld).unwrap();
    let fact::RateHeld { lost, allowed, .. } = held.figures().unwrap();
    assert_eq!((held.value, lost, allowed), (100e6, 2_760, Share(0.05)));
}

#[test]
fn a_queue_that_grows_is_a_full_path_though_nothing_is_lost_yet() {
    let mut m = measurement(100.0, 0, Some(0));
    m.directions[0].goodput_bps = 98.5e6;
    let slow = Some(Distribution { p50: 36_000_000, p95: Some(70_000_000), ..Default::default() });
    udp(&mut m).delay_variation_ns = slow;
    let said = finding(m.clone());
    assert_eq!((said.limit, said.confidence), (Limit::PathRate, Confidence::Medium), "{said:?}");
    let received = said.observed(Fact::Received).unwrap();
    assert_eq!((received.value, received.at_most), (98.5e6, Some(99e6)));
    assert_eq!(received.figures::<fact::Received>().unwrap().sent, Bps(100e6));
    // All of it came: the rate was reached, and the queue is evidence.
    m.directions[0].goodput_bps = 100e6;
    let said = finding(m);
    assert_eq!(said.limit, Limit::AskedRate);
    assert_eq!(said.observed(Fact::DatagramQueue).unwrap().value, 36e6);
}

#[test]
fn a_search_is_explained_by_what_the_next_rate_lost() {
    let searched = |dropped: u64| {
        let mut m = measurement(100.0, 0, Some(0));
        let search = RateSearch { loss_ratio: 0.0, trial: Nanos::secs(1) };
        m.request.spec.udp.as_mut().unwrap().search = Some(search);
        let trial = |mbps, lost, held| Trial {
            dropped_by_receiver: Some(dropped.min(lost)),
            ..trial(mbps, lost, held)
        };
        let report = udp(&mut m);
        report.trials = vec![
            trial(200.0, 4_000, false),
            trial(98.0, 0, false),
            trial(102.0, 160, false),
            trial(100.0, 0, true),
        ];
        report.search = Some(SearchEnd::Held);
        finding(m)
    };
    let path = searched(0);
    assert_eq!((path.limit, path.confidence), (Limit::PathLoss, Confidence::High));
    assert_eq!(path.observed(Fact::RateHeld).unwrap().value, 100e6);
    let next = path.observed(Fact::LostAtRate).unwrap();
    let fact::LostAtRate { lost, sent, .. } = next.figures().unwrap();
    assert_eq!((next.value, lost, sent), (102e6, 160, 8_000));
    let host = searched(160);
    assert_eq!(host.limit, Limit::ReceivingHost);
    assert_eq!(host.cause, Some(Cause::SocketDrops));
}
