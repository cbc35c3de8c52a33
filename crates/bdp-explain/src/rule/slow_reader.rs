//! The receiver's program leaves data in its socket: the receive window shrinks, and closes, until it reads again.

use bdp_model::finding::{Confidence, Finding, Limit};

use crate::seen::{Seen, WindowUse, percent, size, time};

/// The window is below half of its largest in at least this share of the samples.
const SHRUNK: f64 = 0.15;
/// Share of the time in which the receive window holds the sender back, by samples or by the kernel's count.
const HELD_BACK: f64 = 0.2;

/// Claims the limit where a window that had been open shrinks again and again, and holds the sender back.
pub fn judge(seen: &Seen<'_>) -> Option<Finding> {
    let window = seen.window.as_ref().filter(|w| w.receive_shrunk >= SHRUNK)?;
    let counted = seen.rwnd_limited.is_some_and(|share| share >= HELD_BACK);
    if !counted && window.receive_full < HELD_BACK {
        return None;
    }
    let name = &seen.receiver_name;
    let busy = seen.busy_thread().filter(|&(end, _)| end == "receiving");
    let paused = seen.receiver_paused();
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
        evidence: evidence(seen, window),
        remedy: Some(match busy {
            Some(_) => format!("more streams (-P), or a faster processor on {name}"),
            None => format!(
                "find what keeps the receiving process on {name} from reading: a processor quota, other load, a stop; \
                 a larger tcp_rmem only bridges pauses"
            ),
        }),
        missing: Vec::new(),
    })
}

fn evidence(seen: &Seen<'_>, window: &WindowUse) -> Vec<String> {
    let name = &seen.receiver_name;
    let mut all = vec![format!(
        "{name} leaves data in its socket: its receive window is below half of {} in {} of the samples, {} at least, and \
         full {} of the time",
        size(window.receive_largest_bytes),
        percent(window.receive_shrunk),
        size(window.receive_smallest_bytes),
        percent(window.receive_full)
    )];
    if let Some(share) = seen.rwnd_limited.filter(|&share| share >= 0.05) {
        all.push(format!("the kernel counts {} of the busy time as limited by it, at least", percent(share)));
    }
    if let Some(paused) = seen.receiver_paused() {
        let interval = time(seen.measurement.request.interval);
        all.push(format!(
            "the receiving process took no sample for {}, at an interval of {interval}: it did not run",
            time(paused)
        ));
    }
    if let Some((_, cpu)) = seen.busy_thread().filter(|&(end, _)| end == "receiving") {
        all.push(format!("a receiving thread used {} of a processor", percent(cpu)));
    }
    all
}
