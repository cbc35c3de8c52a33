//! What short flows after a test tell of it, and which of them are chosen.

use bdp_explain::{experiment, unweighed};
use bdp_model::facts::Facts;
use bdp_model::finding::fact::{self, Bps};
use bdp_model::finding::{Confidence, Fact, Limit};
use bdp_model::measurement::Direction;
use bdp_model::measurement::experiment::{Burst, Change, Experiment, Order};
use bdp_model::units::{ByteCount, Nanos};

use crate::rules::changes::rates;
use crate::rules::losses::twelve;
use crate::rules::shape::{MS, findings, plain};

/// The experiment for what the rules say.
fn choose(direction: Direction, facts: &Facts, datagrams_pass: bool) -> Option<Order> {
    experiment::choose(direction, facts, &unweighed(facts)[0], datagrams_pass)
}

/// Four connections that reach so many Mbit/s, where the test reached 20, lose such a share and add so many microseconds to the round trip of 24 ms.
fn more(goodput_mbps: f64, lost: f64, added_us: u64) -> Experiment {
    let bytes = (goodput_mbps * 1e6 * 2.0 / 8.0) as u64;
    Experiment {
        direction: Direction::To,
        change: Change::Streams { streams: 4 },
        between: vec![Limit::PathRate],
        duration_ns: 2_000 * MS,
        omit_ns: 500 * MS,
        bytes,
        goodput_bps: goodput_mbps * 1e6,
        retransmits: Some((bytes as f64 / 1448.0 * lost) as u64),
        loss_events: 1,
        rtt_added_ns: Some(added_us * 1_000),
        own_rtt_added_ns: Some(added_us.min(500) * 1_000),
        host_paused_ns: None,
        burst: None,
    }
}

/// A flow of 2.5 s at 16 Mbit/s that lost so often.
fn paced(loss_events: u64) -> Experiment {
    Experiment {
        change: Change::Paced { rate_bps: 16e6 },
        bytes: 5_000_000,
        goodput_bps: 16e6,
        retransmits: Some(loss_events),
        loss_events,
        rtt_added_ns: Some(20_000),
        ..more(16.0, 0.0, 0)
    }
}

/// A burst of 94 datagrams that lost so many, and whose queue delayed by so much.
fn burst(lost: u64, delay_added_ns: u64) -> Experiment {
    Experiment {
        change: Change::Burst { datagrams: 94, rate_bps: 480e6 },
        burst: Some(Burst { sent: 94, lost, sent_bps: 480e6, delay_added_ns }),
        ..paced(0)
    }
}

/// Losses that say little by themselves: two, after slow start.
fn few_losses(facts: &mut Facts) {
    twelve(facts, [40, 42, 41, 43]);
    facts.loss_episodes.truncate(2);
}

/// What is found first of a test with these experiments.
fn first(change: impl FnOnce(&mut Facts), experiments: Vec<Experiment>) -> (Limit, Confidence) {
    let all = findings(|facts| {
        change(facts);
        facts.experiments = experiments;
    });
    (all[0].limit, all[0].confidence)
}

#[test]
fn what_more_connections_do_not_pass_is_a_full_path_or_a_policer_by_the_queue() {
    // No rule claims the test alone.
    assert_eq!(first(few_losses, vec![]).0, Limit::Unknown);
    // Their queue adds 12 ms; none, though they lose much.
    assert_eq!(first(few_losses, vec![more(20.5, 0.02, 12_000)]).0, Limit::PathRate);
    assert_eq!(first(few_losses, vec![more(20.5, 0.02, 200)]).0, Limit::Policer);
    // A few packets' worth is neither, nor is a limit without losses a policer.
    assert_eq!(first(few_losses, vec![more(20.5, 0.02, 1_500)]).0, Limit::Unknown);
    assert_eq!(first(few_losses, vec![more(20.5, 0.0, 200)]).0, Limit::Unknown);
    // Where each flow has a queue of its own probes meet none.
    let fair = Experiment { own_rtt_added_ns: Some(5 * MS), ..more(20.5, 0.02, 200) };
    assert_eq!(first(few_losses, vec![fair]).0, Limit::Unknown);
    // Less than the test had is of a path that changed meanwhile; and a host that paused makes all void.
    assert_eq!(first(few_losses, vec![more(12.0, 0.02, 12_000)]).0, Limit::Unknown);
    let paused = Experiment { host_paused_ns: Some(200 * MS), ..more(20.5, 0.02, 12_000) };
    assert_eq!(first(few_losses, vec![paused]).0, Limit::Unknown);
}

#[test]
fn what_more_connections_pass_by_far_is_held_back_by_losses_that_no_queue_makes() {
    assert_eq!(first(few_losses, vec![more(60.0, 0.02, 12_000)]), (Limit::RandomLoss, Confidence::Medium));
    // One loss may be slow start's own; without a queue it may be a short one.
    let single = |facts: &mut Facts| {
        few_losses(facts);
        facts.loss_episodes.truncate(1);
    };
    assert_eq!(first(single, vec![more(60.0, 0.02, 12_000)]).0, Limit::Unknown);
    assert_eq!(first(few_losses, vec![more(60.0, 0.02, 200)]).0, Limit::Unknown);
}

#[test]
fn a_rate_that_seemed_to_fall_at_a_loss_is_what_four_connections_still_have() {
    // 28 Mbit/s, and 8 from 4.5 s on.
    let fallen = |facts: &mut Facts| {
        few_losses(facts);
        facts.loss_episodes.truncate(1);
        rates(facts, |i| if i > 45 { 8 } else { 28 });
    };
    assert_eq!(first(fallen, vec![]).0, Limit::PathChanged);
    assert_eq!(first(fallen, vec![more(60.0, 0.02, 12_000)]), (Limit::RandomLoss, Confidence::Medium));
    // Without a queue of theirs the path may be another one.
    assert_eq!(first(fallen, vec![more(60.0, 0.02, 200)]).0, Limit::PathChanged);
}

#[test]
fn losses_below_the_rate_are_of_no_load_and_their_end_denies_that() {
    let random = |facts: &mut Facts| {
        twelve(facts, [12, 40, 20, 33]);
        facts.loss_episodes.truncate(7);
    };
    assert_eq!(first(random, vec![]), (Limit::RandomLoss, Confidence::Medium));
    let gain = || more(60.0, 0.02, 12_000);
    assert_eq!(first(random, vec![gain(), paced(3)]), (Limit::RandomLoss, Confidence::High));
    let all = findings(|facts| {
        random(facts);
        facts.experiments = vec![gain(), paced(3)];
    });
    let lost = all[0].observed(Fact::LossesWhilePaced).unwrap();
    assert_eq!(lost.value, 3.0);
    assert_eq!(lost.figures::<fact::LossesWhilePaced>().unwrap().rate, Bps(16e6));
    assert!(all[0].observed(Fact::MoreStreams).is_some());
}

#[test]
fn a_burst_shows_how_deep_the_queue_is_and_what_a_bucket_lets_pass() {
    // Four connections have more than one, and make no queue. Of 24 ms 2 are a short queue, and 8 are none.
    let gain = || more(40.0, 0.02, 2_000);
    assert_eq!(first(few_losses, vec![gain(), burst(40, 2 * MS)]).0, Limit::ShallowQueue);
    assert_eq!(first(few_losses, vec![gain(), burst(40, 8 * MS)]).0, Limit::Unknown);
    // Nothing was lost: how much more fits is not known.
    assert_eq!(first(few_losses, vec![gain(), burst(0, 2 * MS)]).0, Limit::Unknown);
    // As slow as the connections it makes no queue.
    let slow = || {
        let burst = burst(40, 2 * MS);
        Experiment { burst: burst.burst.map(|of| Burst { sent_bps: 70e6, ..of }), ..burst }
    };
    assert_eq!(first(few_losses, vec![gain(), slow()]).0, Limit::Unknown);
    // Without more goodput of more connections it may be a policer as well.
    assert_eq!(first(few_losses, vec![more(22.0, 0.02, 2_000), burst(40, 2 * MS)]).0, Limit::Unknown);
    // It arrives at 150 Mbit/s, where four connections have 22 and lose much.
    let own = |added_ns| Experiment { own_rtt_added_ns: Some(added_ns), ..more(22.0, 0.02, 200) };
    assert_eq!(first(few_losses, vec![own(3 * MS), burst(0, 5 * MS)]), (Limit::Policer, Confidence::Medium));
    assert_eq!(first(few_losses, vec![own(3 * MS), burst(0, 40 * MS)]).0, Limit::Unknown);
    // What overflows a short queue arrives as fast.
    assert_eq!(first(few_losses, vec![own(3 * MS), burst(40, 2 * MS)]).0, Limit::Unknown);
}

#[test]
fn losses_at_one_rate_are_random_if_the_queue_is_deep_and_more_connections_have_more() {
    // Probes that wait 2 ms see a queue.
    let at_one_rate = |facts: &mut Facts| {
        twelve(facts, [40, 42, 41, 43]);
        facts.rtt_ns.loaded.as_mut().unwrap().p95 = Some(26_800_000);
    };
    assert_eq!(first(at_one_rate, vec![]).0, Limit::ShallowQueue);
    let gain = || more(40.0, 0.02, 2_000);
    assert_eq!(first(at_one_rate, vec![gain(), burst(0, 8 * MS)]), (Limit::RandomLoss, Confidence::Medium));
    assert_eq!(first(at_one_rate, vec![gain(), burst(50, 2 * MS)]), (Limit::ShallowQueue, Confidence::High));
    assert_eq!(first(at_one_rate, vec![more(22.0, 0.02, 2_000), burst(0, 8 * MS)]).0, Limit::ShallowQueue);
}

#[test]
fn an_experiment_is_chosen_for_what_is_open_and_sends_no_more_than_the_test() {
    let mut facts = plain();
    few_losses(&mut facts);
    let order = choose(Direction::To, &facts, true).unwrap();
    assert_eq!((order.change, order.duration), (Change::Streams { streams: 4 }, Nanos::secs(2)));
    assert_eq!((order.bytes, order.omit), (ByteCount::bytes(facts.bytes), Nanos::millis(500)));
    // Two losses in ten seconds lead to expect none of three, and a burst needs none. It fills three quarters of 60 Mbit/s x the least round trip.
    facts.experiments = vec![more(60.0, 0.02, 200)];
    assert_eq!(choose(Direction::To, &facts, false), None);
    // A queue that they fill has shown how deep it is.
    let queued = Facts { experiments: vec![more(60.0, 0.02, 8_000)], ..facts.clone() };
    assert_eq!(choose(Direction::To, &queued, true), None);
    let order = choose(Direction::To, &facts, true).unwrap();
    assert_eq!(order.change, Change::Burst { datagrams: 93, rate_bps: 480e6 });
    assert_eq!((order.bytes, order.omit), (ByteCount::bytes(93 * 1448), Nanos::ZERO));
    facts.experiments.push(burst(0, 10 * MS));
    assert_eq!(choose(Direction::To, &facts, true), None);
    twelve(&mut facts, [40, 12, 20, 33]);
    facts.loss_episodes.truncate(7);
    facts.experiments = vec![more(30.0, 0.02, 200)];
    assert_eq!(choose(Direction::To, &facts, false), None);
    // Seven in four seconds lead to expect three.
    facts.duration_ns = 4_000 * MS;
    let Some(Order { change: Change::Paced { rate_bps }, .. }) = choose(Direction::To, &facts, false) else {
        panic!("{:?}", choose(Direction::To, &facts, false));
    };
    assert!((rate_bps - 16e6).abs() < 1.0, "{rate_bps}");
}

#[test]
fn what_is_clear_or_too_far_for_an_experiment_has_none() {
    // High confidence.
    let mut clear = plain();
    twelve(&mut clear, [12, 40, 20, 33]);
    assert_eq!(choose(Direction::To, &clear, true), None);
    // A round trip of 200 ms needs 5 s.
    let mut far = plain();
    few_losses(&mut far);
    far.sent.iter_mut().for_each(|s| s.min_rtt_ns = Some(200 * MS));
    far.rtt_ns.idle = None;
    assert_eq!(choose(Direction::To, &far, true), None);
    // A test of a second is shorter than the experiment.
    let mut short = plain();
    few_losses(&mut short);
    short.duration_ns = 1_000 * MS;
    assert_eq!(choose(Direction::To, &short, true), None);
    // Sixteen connections are not held back by being few.
    let mut many = plain();
    few_losses(&mut many);
    many.asked.streams = 16;
    many.stream_goodput_bps = vec![1.25e6; 16];
    assert_eq!(choose(Direction::To, &many, true), None);
}
