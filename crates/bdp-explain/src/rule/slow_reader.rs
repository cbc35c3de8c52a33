//! The receiver's program leaves data in its socket: the receive window shrinks, and closes, until it reads again.

use bdp_model::ends::Task;
use bdp_model::facts::{Facts, WindowUse};
use bdp_model::finding::{Confidence, Finding, Limit};
use bdp_model::threshold::{WINDOW_FREE, WORTH_A_WORD};

use crate::text::{Setting, name_of, percent, size, thread_used, time};

/// The window is below half of its largest in at least this share of the samples.
const SHRUNK: f64 = 0.15;

/// Claims the limit where a window that had been open shrinks again and again, and holds the sender back.
pub fn judge(facts: &Facts) -> Option<Finding> {
    let window = facts.window_use().filter(|w| w.receive_shrunk >= SHRUNK)?;
    let counted = facts.rwnd_limited().is_some_and(|share| share >= WINDOW_FREE);
    if !counted && window.receive_full < WINDOW_FREE {
        return None;
    }
    let name = &facts.receiver.name;
    let busy = facts.busy_thread().filter(|&(task, _)| task == Task::Receiving);
    let paused = facts.receiver_paused();
    Some(Finding {
        limit: Limit::ReceivingHost,
        subject: format!("reader on {name}"),
        confidence: match (counted, busy.is_some() || paused.is_some()) {
            (true, true) => Confidence::High,
            (true, false) | (false, true) => Confidence::Medium,
            (false, false) => Confidence::Low,
        },
        summary: format!(
            "limited by the reader on {name}: it leaves data in its socket, and its receive window is below half of {} \
             in {} of the samples",
            size(window.receive_largest_bytes),
            percent(window.receive_shrunk)
        ),
        evidence: evidence(facts, window),
        remedy: Some(match busy {
            Some(_) => {
                let streams = name_of(facts, Setting::Streams);
                format!("more streams ({streams}), or a faster processor on {name}")
            }
            None => format!(
                "find what keeps the receiving process on {name} from reading: a processor quota, other load, a stop; \
                 a larger tcp_rmem only bridges pauses"
            ),
        }),
        missing: Vec::new(),
    })
}

fn evidence(facts: &Facts, window: WindowUse) -> Vec<String> {
    let name = &facts.receiver.name;
    let mut all = vec![format!(
        "{name} leaves data in its socket: its receive window is below half of {} in {} of the samples, {} at least, and \
         full {} of the time",
        size(window.receive_largest_bytes),
        percent(window.receive_shrunk),
        size(window.receive_smallest_bytes),
        percent(window.receive_full)
    )];
    if let Some(share) = facts.rwnd_limited().filter(|&share| share >= WORTH_A_WORD) {
        all.push(format!("the kernel counts {} of the busy time as limited by it, at least", percent(share)));
    }
    if let Some(paused) = facts.receiver_paused() {
        let interval = time(facts.asked.interval);
        all.push(format!(
            "the receiving process took no sample for {}, at an interval of {interval}: it did not run",
            time(paused)
        ));
    }
    if let Some((task, cpu)) = facts.busy_thread().filter(|&(task, _)| task == Task::Receiving) {
        all.push(format!("{} {} of a processor", thread_used(task), percent(cpu)));
    }
    all
}
