//! The parts of the time, and the plain finding of each, which is used if no rule names a cause.

use bdp_model::facts::{Facts, Source, TimeState, Waits};
use bdp_model::finding::fact::{self, Bps};
use bdp_model::finding::threshold::SAMPLES_MIN;
use bdp_model::finding::{Action, Cause, Confidence, Evidence, Finding, Limit, Place, Remedy};

use crate::rule::unknown;

/// Shares of the time from which it is most of it, and nearly all.
pub const MOST: f64 = 0.5;
const NEARLY_ALL: f64 = 0.8;

/// Share of a program's pauses, if the cause of the larger part is unknown.
pub const PAUSES: f64 = 0.2;

/// What took most of the time, with its share; `None` with too few samples.
pub fn largest(facts: &Facts) -> Option<(Waits, f64)> {
    let spent = facts.time_counted()?;
    let is_seen = facts.conversation.is_some() || spent.stretches.len() >= SAMPLES_MIN;
    spent.waited_for().filter(|_| is_seen)
}

/// Whether the path may have taken most of the time: the account says so, or names nothing else.
pub fn may_be_path(facts: &Facts) -> bool {
    matches!(largest(facts).map(|part| part.0), None | Some(Waits::Path | Waits::Unknown))
}

/// The plain finding of a part: only the state that took its time is known.
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
        // The kernel had data and room in both windows, or the data leaves evenly whenever acknowledgements arrive.
        Waits::Pacing if matches!(facts.source, Source::Watched | Source::Captured) => {
            of(Limit::AskedRate, Place::sender(sender), TimeState::Pacing).cause(Cause::KeptByHost).evidence(
                facts
                    .steadiness()
                    .map(|steady| Evidence::share(fact::Steady { goodput: Bps(facts.goodput_bps) }, steady)),
            )
        }
        _ => unknown::judge(facts),
    }
}

/// Growth of the congestion window, in segments.
fn window_grew(facts: &Facts) -> Option<Evidence> {
    let windows = facts.sent.iter().filter_map(|s| s.cwnd);
    let (first, most) = windows.clone().next().zip(windows.max()).filter(|(first, most)| most > first)?;
    Some(Evidence::count(fact::WindowGrew { from: u64::from(first) }, u64::from(most)))
}

/// The confidence of a part of the time with this share.
pub fn sure(share: f64) -> Confidence {
    match share {
        share if share >= NEARLY_ALL => Confidence::High,
        share if share >= MOST => Confidence::Medium,
        _ => Confidence::Low,
    }
}
