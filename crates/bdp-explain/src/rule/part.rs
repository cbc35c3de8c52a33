//! The parts of the account of time, and what may be said of each: the rules that name its cause, in an order in which an earlier answer makes later ones
//! meaningless, and the plain finding where none of them does.

use bdp_model::facts::{Facts, Source, TimeState, Waits};
use bdp_model::finding::fact::{self, Bps};
use bdp_model::finding::{Action, Cause, Confidence, Evidence, Finding, Limit, Place, Remedy};
use bdp_model::threshold::SAMPLES_MIN;

use crate::rule;
use crate::rule::beside::Rule;
use crate::rule::captured;

/// From these shares of the time on it is most of it, and nearly all.
pub const MOST: f64 = 0.5;
const NEARLY_ALL: f64 = 0.8;

/// Of a program that pauses, where the cause of what takes more of the time is not known.
pub const PAUSES: f64 = 0.2;

/// What is true of a path that is busy all the time, or that changed: whatever else is full is full because of it.
const BUSY_PATH: [Rule; 8] = [
    rule::at_ceiling::judge,
    rule::outage::judge,
    rule::tokens::judge,
    rule::path_step::judge,
    rule::reverse_path::judge,
    rule::half_duplex::judge,
    rule::cross_traffic::judge,
    rule::path_rate::judge,
];

/// What keeps a congestion window below what the path holds: segments that overtake each other, taken for lost;
pub const OVERTAKEN: [Rule; 1] = [rule::reordering::judge];
/// a queue that is short, or that losses don't empty;
const SHORT_QUEUE: [Rule; 4] = [
    rule::path_rate::judge_shallow,
    rule::plateau::judge,
    captured::full_since_the_start,
    captured::full_mostly,
];
/// losses, or what stands for them.
pub const LOSSES: [Rule; 5] = [
    rule::ecn_marks::judge,
    // What a host dropped is no loss of the path.
    rule::host_drops::judge,
    rule::random_loss::judge,
    rule::threshold::judge,
    // It makes the repair of losses slow, whatever they are of.
    rule::sack_missing::judge,
];
/// A path of which no more is known.
const PLAIN_PATH: [Rule; 2] = [rule::slow_start::outlasted, captured::plain_path];

const RECEIVE_WINDOW: [Rule; 2] = [rule::receive_window::half_scaled, rule::receive_window::judge];
const SEND_BUFFER: [Rule; 3] = [rule::send_buffer::runs_dry, rule::send_buffer::judge, captured::judge];

/// Without an account: a program that pauses closes windows and fills queues in bursts, so that what later rules make of those would be wrong.
const WITHOUT: [&[Rule]; 13] = [
    &[rule::receive_window::half_scaled],
    &[rule::asked_rate::judge],
    &[rule::cpu::judge],
    &[rule::nagle::judge],
    &[rule::slow_reader::judge, rule::send_buffer::runs_dry, rule::slow_start::judge],
    &BUSY_PATH,
    &RECEIVE_WINDOW,
    &SEND_BUFFER,
    &[rule::slow_writer::judge],
    &OVERTAKEN,
    &SHORT_QUEUE,
    &LOSSES,
    &PLAIN_PATH,
];

/// The rules that name the cause of a part.
const fn rules(waits: Waits) -> &'static [&'static [Rule]] {
    match waits {
        Waits::Path => &[&BUSY_PATH, &OVERTAKEN, &SHORT_QUEUE, &LOSSES, &PLAIN_PATH],
        Waits::SlowStart => &[&[rule::slow_start::judge, rule::slow_start::outlasted]],
        Waits::ReceiveWindow => &[&RECEIVE_WINDOW],
        Waits::SendBuffer => &[&SEND_BUFFER],
        Waits::Reader => &[&[rule::slow_reader::judge]],
        Waits::Writer => &[&[rule::slow_writer::judge]],
        Waits::Nagle => &[&[rule::nagle::judge]],
        Waits::Pacing => &[&[rule::asked_rate::judge]],
        Waits::Processor => &[&[rule::cpu::judge]],
        Waits::Unknown => &WITHOUT,
        Waits::Connection
        | Waits::Client
        | Waits::Server
        | Waits::RoundTrips
        | Waits::OtherWay
        | Waits::ProgramWindow
        | Waits::Uncaptured
        | Waits::Nothing => &[],
    }
}

/// The cause of a part, by the first of its rules that claims it.
pub fn cause(facts: &Facts, waits: Waits) -> Option<Finding> {
    rules(waits).iter().copied().flatten().find_map(|rule| rule(facts))
}

/// Every cause that a rule of the part claims, in their order.
pub fn causes(facts: &Facts, waits: Waits) -> impl Iterator<Item = Finding> {
    rules(waits).iter().copied().flatten().filter_map(|rule| rule(facts))
}

/// What took most of the time, and for how much of it; `None` of too few readings.
pub fn largest(facts: &Facts) -> Option<(Waits, f64)> {
    let spent = facts.time_counted()?;
    let is_seen = facts.conversation.is_some() || spent.stretches.len() >= SAMPLES_MIN;
    spent.waited_for().filter(|_| is_seen)
}

/// Whether the path may be what took most of the time: the account says so, or names nothing else.
pub fn may_be_path(facts: &Facts) -> bool {
    matches!(largest(facts).map(|part| part.0), None | Some(Waits::Path | Waits::Unknown))
}

/// A part as it is: the state that took its time is all that is known.
pub fn plain(facts: &Facts, waits: Waits, share: f64) -> Finding {
    let (sender, receiver) = (&facts.sender.name, &facts.receiver.name);
    let of = |limit, place, state: TimeState| {
        Finding::new(limit, place, sure(share)).evidence([Evidence::share(
            fact::TimeShare { time: None },
            share,
        )
        .named(state.name())])
    };
    match waits {
        Waits::SlowStart => of(Limit::SlowStart, Place::sender(sender), TimeState::SlowStart)
            .evidence(window_grew(facts))
            .remedy(Remedy::new(Action::KeepConnection)),
        Waits::ReceiveWindow => of(Limit::ReceiveWindow, Place::receiver(receiver), TimeState::ReceiveWindow),
        Waits::SendBuffer => of(Limit::SendBuffer, Place::sender(sender), TimeState::SendBuffer),
        Waits::Reader => of(Limit::SlowReader, Place::receiver(receiver), TimeState::ReceiverApplication)
            .remedy(Remedy::new(Action::FreeReader).host(receiver)),
        Waits::Writer => of(Limit::SlowWriter, Place::sender(sender), TimeState::SenderApplication)
            .remedy(Remedy::new(Action::FreeWriter).host(sender)),
        Waits::Nagle => of(Limit::Nagle, Place::sender(sender), TimeState::Nagle)
            .remedy(Remedy::new(Action::DisableNagle).host(sender)),
        Waits::ProgramWindow => of(Limit::ProgramWindow, Place::sender(sender), TimeState::ProgramWindow)
            .remedy(Remedy::new(Action::LargerProgramWindow)),
        Waits::Processor => {
            let of_sender = facts.time_counted().is_some_and(|spent| {
                spent.share(TimeState::SenderProcessor) >= spent.share(TimeState::ReceiverProcessor)
            });
            let (place, state) = match of_sender {
                true => (Place::sender(sender), TimeState::SenderProcessor),
                false => (Place::receiver(receiver), TimeState::ReceiverProcessor),
            };
            let finding = of(Limit::Cpu, place, state);
            Finding { confidence: finding.confidence.min(Confidence::Medium), ..finding }
        }
        // Its kernel had data and room in both windows, or the data leaves evenly whenever acknowledgements come.
        Waits::Pacing if matches!(facts.source, Source::Watched | Source::Captured) => {
            of(Limit::AskedRate, Place::sender(sender), TimeState::Pacing).cause(Cause::KeptByHost).evidence(
                facts
                    .steadiness()
                    .map(|steady| Evidence::share(fact::Steady { goodput: Bps(facts.goodput_bps) }, steady)),
            )
        }
        _ => rule::unknown::judge(facts),
    }
}

/// From how many segments the congestion window grew, and to how many.
fn window_grew(facts: &Facts) -> Option<Evidence> {
    let windows = facts.sent.iter().filter_map(|s| s.cwnd);
    let (first, most) = windows.clone().next().zip(windows.max()).filter(|(first, most)| most > first)?;
    Some(Evidence::count(fact::WindowGrew { from: u64::from(first) }, u64::from(most)))
}

/// How sure a part of the time is that has this share.
pub fn sure(share: f64) -> Confidence {
    match share {
        share if share >= NEARLY_ALL => Confidence::High,
        share if share >= MOST => Confidence::Medium,
        _ => Confidence::Low,
    }
}

/// Whether a limit is a name for what is waited for in a part.
pub const fn names(limit: Limit, waits: Waits) -> bool {
    match limit {
        // A transfer that is over before its window has grown has its time in slow start, though the path may have been full since its first window.
        Limit::PathRate => matches!(waits, Waits::Path | Waits::SlowStart),
        Limit::Ceiling
        | Limit::ShallowQueue
        | Limit::HalfDuplex
        | Limit::CrossTraffic
        | Limit::EcnMarks
        | Limit::CongestionLoss
        | Limit::RandomLoss
        | Limit::SackMissing
        | Limit::Policer
        | Limit::Reordering
        | Limit::ReversePath
        | Limit::PathChanged
        | Limit::HostDrops
        | Limit::PeerGone => matches!(waits, Waits::Path),
        Limit::MtuBlackHole => {
            matches!(waits, Waits::Path | Waits::SlowStart | Waits::ReceiveWindow | Waits::SendBuffer)
        }
        Limit::SlowStart => matches!(waits, Waits::SlowStart),
        Limit::ReceiveWindow => matches!(waits, Waits::ReceiveWindow),
        Limit::SendBuffer => matches!(waits, Waits::SendBuffer),
        Limit::ProgramWindow => matches!(waits, Waits::ProgramWindow),
        Limit::AskedRate => matches!(waits, Waits::Pacing),
        Limit::Nagle => matches!(waits, Waits::Nagle),
        Limit::SlowReader => matches!(waits, Waits::Reader),
        Limit::SlowWriter => matches!(waits, Waits::Writer | Waits::Server),
        Limit::ClientIdle => matches!(waits, Waits::Client | Waits::Server | Waits::Nothing),
        Limit::RoundTrips => matches!(waits, Waits::RoundTrips | Waits::Connection),
        Limit::NotEstablished => matches!(waits, Waits::Connection | Waits::RoundTrips),
        Limit::Cpu => matches!(waits, Waits::Processor),
        Limit::Unknown => true,
        Limit::TimestampsMissing | Limit::PathLoss | Limit::ReceivingHost | Limit::SendingHost => false,
    }
}
