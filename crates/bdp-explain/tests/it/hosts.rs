//! What the two hosts themselves hold back or drop, on hand-made facts.

use bdp_explain::unweighed as explain;
use bdp_model::facts::Facts;
use bdp_model::finding::{Action, Cause, Confidence, Fact, Finding, Limit, Place};
use bdp_model::measurement::host_counters::{DeviceCounters, HostCounters, StackCounters};
use bdp_model::measurement::{Direction, Measurement};
use bdp_model::record::{CongestionState, ReceiverSample, SenderSample};

const MSS: u64 = 1448;
const MS: u64 = 1_000_000;
const SAMPLES: u64 = 100;

/// Ten seconds towards ams1, of whose machines nothing is told but what a test adds. In flight is far less than either window allows.
fn facts() -> Facts {
    let text = include_str!("../../../bdp-store/tests/it/measurement.json");
    let m: Measurement = serde_json::from_str(text).unwrap();
    let mut facts = Facts::measured(&m, Direction::To).unwrap();
    facts.ceiling = None;
    facts.one_way = None;
    facts.loss_episodes.clear();
    facts.congestion_control = "cubic".to_owned();
    facts.retransmits = Some(0);
    for end in [&mut facts.sender, &mut facts.receiver] {
        (end.cpu, end.thread_cpu, end.threads) = (0.1, Some(0.1), Some(1));
        end.host.cpu_steal = Some(0.0);
        end.host.counters = Some(HostCounters { over_ns: 10_000 * MS, ..Default::default() });
    }
    facts.sent = (0..=SAMPLES)
        .map(|i| SenderSample {
            at_ns: i * 100 * MS,
            acked_bytes: Some(facts.bytes * i / SAMPLES),
            unacked: Some(20),
            cwnd: Some(400),
            snd_wnd_bytes: Some(4000 * MSS),
            srtt_ns: Some(24 * MS),
            busy_ns: Some(i * 100 * MS),
            rwnd_limited_ns: Some(0),
            sndbuf_limited_ns: Some(0),
            ..SenderSample::default()
        })
        .collect();
    facts.received = (0..=SAMPLES)
        .map(|i| ReceiverSample {
            at_ns: i * 100 * MS,
            bytes: facts.bytes * i / SAMPLES,
            ..Default::default()
        })
        .collect();
    facts
}

/// The same, of a sender that was ready to run for this share of the time.
fn sender_that_waits(share: f64) -> Facts {
    let mut facts = facts();
    for sample in &mut facts.sent {
        sample.run_wait_ns = Some((sample.at_ns as f64 * share) as u64);
    }
    facts
}

fn receiver_that_waits(share: f64) -> Facts {
    let mut facts = facts();
    for sample in &mut facts.received {
        sample.run_wait_ns = Some((sample.at_ns as f64 * share) as u64);
    }
    facts
}

fn counters(facts: &mut Facts) -> [&mut HostCounters; 2] {
    [&mut facts.sender, &mut facts.receiver].map(|end| end.host.counters.as_mut().unwrap())
}

fn finding(facts: &Facts) -> Finding {
    explain(facts).remove(0)
}

#[test]
fn thread_that_never_waits_for_its_socket_is_limited_by_the_processor() {
    let found = finding(&sender_that_waits(0.85));
    assert_eq!((found.limit, found.cause), (Limit::Cpu, Some(Cause::ProcessorShared)));
    assert_eq!((found.place, found.confidence), (Place::sender("fra1"), Confidence::High));
    assert_eq!(found.remedy.unwrap().action, Action::QuieterHost);
    let found = finding(&receiver_that_waits(0.75));
    assert_eq!((found.place, found.confidence), (Place::receiver("ams1"), Confidence::Medium));
    assert!(
        (found.evidence[0].value - 0.85).abs() < 1e-9 && found.evidence[0].fact == Fact::ReceivingThreadReady
    );
    // One that waits for its socket for a good part of the time is not.
    assert_ne!(finding(&sender_that_waits(0.6)).limit, Limit::Cpu);
    assert_ne!(finding(&facts()).limit, Limit::Cpu);
}

#[test]
fn thread_that_waits_for_its_processor_and_keeps_a_queue_standing_is_not_the_limit() {
    let queued = |srtt_ms: u64, in_flight: u32| {
        let mut facts = receiver_that_waits(0.75);
        let loaded = facts.rtt_ns.loaded.as_mut().unwrap();
        (loaded.p50, loaded.p95) = (srtt_ms * MS, Some((srtt_ms + 1) * MS));
        for (i, sample) in facts.sent.iter_mut().enumerate() {
            (sample.srtt_ns, sample.busy_ns) = (Some(srtt_ms * MS), Some(i as u64 * 100 * MS));
            (sample.unacked, sample.congestion_state) = (Some(in_flight), Some(CongestionState::Open));
        }
        finding(&facts).limit
    };
    assert_eq!(queued(60, 400), Limit::PathRate);
    assert_eq!(queued(24, 20), Limit::Cpu);
}

#[test]
fn thread_that_fills_its_processor_is_named_even_where_no_waiting_is_counted() {
    let mut facts = facts();
    facts.receiver.thread_cpu = Some(0.97);
    let found = finding(&facts);
    assert_eq!((found.limit, found.cause), (Limit::Cpu, Some(Cause::ThreadFull)));
    assert_eq!(found.place, Place::receiver("ams1"));
    assert_eq!(found.observed(Fact::ReceivingThread).unwrap().value, 0.97);
    facts.receiver.thread_cpu = Some(0.85);
    assert_ne!(finding(&facts).limit, Limit::Cpu);
}

#[test]
fn quota_is_the_cause_where_it_held_the_waiting_thread_back() {
    let mut facts = sender_that_waits(0.8);
    counters(&mut facts)[0].throttled_ns = Some(4_000 * MS);
    let found = finding(&facts);
    assert_eq!((found.limit, found.cause), (Limit::Cpu, Some(Cause::Throttled)));
    assert_eq!(found.observed(Fact::Throttled).unwrap().value, 0.4);
    assert_eq!(found.remedy.unwrap().action, Action::RaiseQuota);
    // A quota that was used up once is not what it waits for.
    counters(&mut facts)[0].throttled_ns = Some(100 * MS);
    assert_eq!(finding(&facts).cause, Some(Cause::ProcessorShared));
    // The receiver's quota outweighs a sender that waits as well, on a machine that both share.
    counters(&mut facts)[1].throttled_ns = Some(4_000 * MS);
    for sample in &mut facts.received {
        sample.run_wait_ns = Some(sample.at_ns * 3 / 4);
    }
    assert_eq!(finding(&facts).place, Place::receiver("ams1"));
}

#[test]
fn quota_alone_is_believed_only_where_the_kernel_counts_no_waiting() {
    let mut waits_not = facts();
    counters(&mut waits_not)[0].throttled_ns = Some(4_000 * MS);
    let found = finding(&waits_not);
    assert_eq!((found.cause, found.confidence), (Some(Cause::Throttled), Confidence::Low));
    let mut counted = sender_that_waits(0.1);
    counters(&mut counted)[0].throttled_ns = Some(4_000 * MS);
    assert_ne!(finding(&counted).limit, Limit::Cpu);
}

#[test]
fn hypervisor_is_the_cause_where_it_took_what_the_thread_waited_for() {
    let mut facts = sender_that_waits(0.8);
    facts.sender.host.cpu_steal = Some(0.4);
    let found = finding(&facts);
    assert_eq!((found.limit, found.cause), (Limit::Cpu, Some(Cause::Stolen)));
    assert_eq!(found.remedy.unwrap().action, Action::MoveMachine);
    facts.sender.host.cpu_steal = Some(0.06);
    assert_eq!(finding(&facts).cause, Some(Cause::ProcessorShared));
}

/// A window that is full and small because of losses.
fn lossy() -> Facts {
    let mut facts = facts();
    facts.retransmits = Some(200);
    for (i, sample) in (0u64..).zip(&mut facts.sent) {
        (sample.unacked, sample.cwnd, sample.ssthresh) = (Some(40), Some(40), Some(20));
        sample.busy_ns = Some(sample.at_ns);
        sample.retransmits = Some(2 * i);
        sample.congestion_state = Some(CongestionState::Open);
    }
    facts
}

#[test]
fn drops_that_a_host_counts_itself_are_no_losses_of_the_path() {
    let mut facts = lossy();
    assert_ne!(finding(&facts).limit, Limit::HostDrops);
    counters(&mut facts)[1].softnet_dropped = Some(190);
    let found = finding(&facts);
    assert_eq!((found.limit, found.cause), (Limit::HostDrops, Some(Cause::BacklogDrops)));
    assert_eq!((found.place, found.confidence), (Place::receiver("ams1"), Confidence::High));
    assert_eq!(found.remedy.unwrap().setting.unwrap(), "net.core.netdev_max_backlog");
    // Too few of them.
    counters(&mut facts)[1].softnet_dropped = Some(80);
    assert_ne!(finding(&facts).limit, Limit::HostDrops);
    let device = DeviceCounters { rx_missed: 70, rx_fifo: 60, ..Default::default() };
    counters(&mut facts)[1].device = Some(device);
    let found = finding(&facts);
    assert_eq!((found.cause, found.confidence), (Some(Cause::DeviceDrops), Confidence::Medium));
    assert_eq!(found.observed(Fact::DroppedByDevice).unwrap().value, 130.0);
    // Sockets, and the sender's own device.
    counters(&mut facts)[1].stack = Some(StackCounters { backlog_drop: Some(195), ..Default::default() });
    assert!(finding(&facts).observed(Fact::DroppedByStack).is_some());
    counters(&mut facts)[0].device = Some(DeviceCounters { tx_dropped: 199, ..Default::default() });
    assert_eq!(finding(&facts).place, Place::sender("fra1"));
}

#[test]
fn drops_are_no_limit_where_losses_did_not_hold_the_window_back() {
    let mut facts = lossy();
    counters(&mut facts)[1].softnet_dropped = Some(190);
    for sample in &mut facts.sent {
        sample.busy_ns = Some(sample.at_ns / 5);
    }
    assert_ne!(finding(&facts).limit, Limit::HostDrops);
}
