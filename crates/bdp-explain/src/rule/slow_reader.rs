//! A receiving program that leaves data in its socket: the receive window shrinks and closes until it reads again.

use bdp_model::facts::{Facts, TimeState};
use bdp_model::finding::fact::{self, Bytes};
use bdp_model::finding::threshold::{UNREAD, UNREAD_MIN_BYTES, WINDOW_FREE, WINDOW_SHRUNK};
use bdp_model::finding::{Action, Cause, Confidence, Evidence, Finding, Limit, Place, Remedy};
use bdp_model::measurement::ends::Task;

use crate::observed;
use crate::setting::{TestSetting, name_of};

/// Share of the time in which the program deliberately did not read, and in which data waited for it.
const PAUSED: (f64, f64) = (0.2, 0.05);
/// From this share of the time on, a program never waits for data: it takes all that arrives, and more is held back for it.
const PAUSED_MOSTLY: f64 = 0.9;
/// Pauses cost nothing if the goodput is this close to its peak and data waited for less of the time: the receive buffer bridged them.
const BRIDGED: (f64, f64) = (0.93, 0.15);
/// Steady goodput: lower / upper quartile. A pausing program's is not.
const STEADY: f64 = 0.8;

/// The share of the time in which the program paused, if that costs goodput.
fn paused_by_itself(facts: &Facts) -> Option<f64> {
    let paused = facts.receiver_held_back().filter(|&share| share >= PAUSED.0)?;
    let waited = facts.time_counted()?.share(TimeState::ReceiverApplication);
    if paused >= PAUSED_MOSTLY {
        return Some(paused);
    }
    let bursts = facts.steadiness().is_none_or(|steady| steady < STEADY);
    let bridged = bursts && facts.of_peak().is_some_and(|reached| reached >= BRIDGED.0) && waited < BRIDGED.1;
    (waited >= PAUSED.1 && !bridged).then_some(paused)
}

/// Claims the limit if a window that had been open shrinks repeatedly and holds the sender back.
pub fn judge(facts: &Facts) -> Option<Finding> {
    let window = facts.window_use()?;
    // Unread data as reported by the receiving end itself, which makes the window small.
    let unread = facts
        .unread_bytes()
        .filter(|&bytes| bytes >= UNREAD * window.receive_bytes && bytes >= UNREAD_MIN_BYTES as f64);
    // A bdp program reports its own pauses.
    let by_itself = paused_by_itself(facts);
    if window.receive_shrunk < WINDOW_SHRUNK && unread.is_none() && by_itself.is_none() {
        return None;
    }
    let counted = facts.rwnd_limited().is_some_and(|share| share >= WINDOW_FREE);
    if !counted && by_itself.is_none() && window.receive_full < WINDOW_FREE {
        return None;
    }
    let name = &facts.receiver.name;
    let busy = facts.busy_thread().filter(|&(task, _)| task == Task::Receiving);
    let paused = facts.receiver_paused();
    let confidence = match (counted, busy.is_some() || paused.is_some() || unread.is_some()) {
        (true, true) => Confidence::High,
        (true, false) | (false, true) => Confidence::Medium,
        (false, false) => Confidence::Low,
    };
    let cause = match (busy, paused) {
        (Some(_), _) => Some(Cause::ThreadFull),
        (None, Some(_)) => Some(Cause::Paused),
        (None, None) => None,
    };
    let remedy = match busy {
        Some(_) => Remedy::new(Action::MoreStreams).setting(name_of(facts, TestSetting::Streams)),
        None => Remedy::new(Action::FreeReader),
    };
    let finding = Finding::new(Limit::SlowReader, Place::receiver(name), confidence)
        .cause(cause)
        .evidence(unread.map(|bytes| {
            Evidence::bytes(fact::Unread { window: Bytes(window.receive_bytes) }, bytes)
                .at_least(UNREAD * window.receive_bytes)
                .on(name)
        }))
        .evidence((window.receive_shrunk >= WINDOW_SHRUNK).then(|| {
            Evidence::share(
                fact::WindowShrunk {
                    largest: Bytes(window.receive_largest_bytes),
                    smallest: Bytes(window.receive_smallest_bytes),
                },
                window.receive_shrunk,
            )
            .at_least(WINDOW_SHRUNK)
            .share_of(window.samples)
            .on(name)
        }))
        .evidence(
            by_itself.map(|share| Evidence::share(fact::ReadingPaused, share).at_least(PAUSED.0).on(name)),
        )
        .evidence([Evidence::share(fact::WindowFull::ALONE, window.receive_full).share_of(window.samples)])
        .evidence(observed::kernel_counts_window(facts))
        .evidence(paused.map(|paused| {
            Evidence::time(fact::ReceiverPaused { interval: facts.asked.interval }, paused).on(name)
        }))
        .evidence(busy.map(observed::busy_thread))
        .remedy(remedy.host(name));
    Some(finding)
}
