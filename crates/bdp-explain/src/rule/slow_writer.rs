//! A sending program that writes less than the connection could carry, or nothing for a while.

use bdp_model::facts::{Facts, TimeState};
use bdp_model::finding::fact;
use bdp_model::finding::threshold::BUFFER_PAYLOAD;
use bdp_model::finding::{Action, Confidence, Evidence, Finding, Limit, Place, Remedy};

/// Share of the time in which the sender had nothing to send.
const DRY: f64 = 0.2;
/// The share that is most of the time.
const MOSTLY: f64 = 0.5;
/// Pauses of a program cost nothing if the kernel had sent everything for less of the time, and the goodput is this close to its peak: the send
/// buffer bridged them.
const BRIDGED: (f64, f64) = (0.05, 0.94);

/// Claims the limit if the sending kernel had nothing to send though both windows had room.
pub fn judge(facts: &Facts) -> Option<Finding> {
    let spent = facts.time_counted()?;
    let ran_dry = spent.share(TimeState::SenderApplication);
    let dry = ran_dry.max(facts.sender_idle().unwrap_or(0.0));
    // Once a requested amount is sent, nothing is left.
    if dry < DRY
        || ran_dry < BRIDGED.0 && facts.of_peak().is_some_and(|reached| reached >= BRIDGED.1)
        || facts.asked.bytes.is_some()
        || facts.held_bps().is_some()
        || facts.busy_thread().is_some()
    {
        return None;
    }
    // A write that exactly fits the room of a full buffer looks the same, unless the program is known to have waited by its own choice.
    let by_itself = facts.sender_idle().is_some_and(|idle| idle >= MOSTLY);
    if !by_itself
        && facts
            .window_use()
            .zip(facts.send_buffer_bytes)
            .is_some_and(|(w, b)| w.in_flight_bytes >= BUFFER_PAYLOAD * b as f64)
    {
        return None;
    }
    let name = &facts.sender.name;
    let confidence = if dry >= MOSTLY { Confidence::High } else { Confidence::Medium };
    let finding = Finding::new(Limit::SlowWriter, Place::sender(name), confidence)
        .evidence([Evidence::share(fact::NothingToSend, dry).at_least(DRY).on(name)])
        .remedy(Remedy::new(Action::FreeWriter).host(name));
    Some(finding)
}
