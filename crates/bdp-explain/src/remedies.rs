//! Checks remedies against the facts before they are printed: nothing is advised that is set already, does not affect the socket, exceeds the path's
//! capacity, or would be left alone by the plan of a fix for a reason known here.

use bdp_model::facts::{End, Facts};
use bdp_model::finding::{Action, Finding, Limit, Quantity, Remedy};
use bdp_model::tuning::setting::Setting;
use bdp_model::units::Nanos;

use crate::buffer::{self, Buffer, Fit};
use crate::capacity;
use crate::scaling::Unscaled;
use crate::setting::{SOCKET_BUFFER, TestSetting, name_of, value_of};

/// A congestion control driven by rate and round trip, which neither reacts to losses nor fills queues.
pub const BY_RATE: &str = "bbr";

/// Goodput / highest delivery rate from which a bottleneck counts as busy all the time.
const BUSY: f64 = 0.97;

/// Returns the finding with a remedy that fits the facts.
pub fn check(facts: &Facts, mut finding: Finding) -> Finding {
    finding.remedy = finding.remedy.take().and_then(|remedy| checked(facts, finding.limit, remedy));
    finding
}

fn checked(facts: &Facts, limit: Limit, mut remedy: Remedy) -> Option<Remedy> {
    let is_idle = limit != Limit::PathRate && is_idle_at_times(facts);
    // Without selective acknowledgements each lost segment takes a round trip, and a model-based sender lacks data.
    if remedy.action == Action::FindErrors && facts.connection.is_some_and(|used| used.sack == Some(false)) {
        return Some(remedy.also(with_host(facts, Remedy::new(Action::EnableSack))));
    }
    if remedy.action == Action::EnableSack && remedy.host.is_none() {
        remedy = with_host(facts, remedy);
    }
    let by_losses = match remedy.action {
        Action::FindErrors | Action::DeepenQueue => true,
        // A bottleneck that is busy all the time carries no more with any congestion control.
        Action::AddCapacity => is_idle,
        _ => false,
    };
    if by_losses && remedy.setting.is_none() && can_go_by_rate(facts) {
        remedy.setting = Some(name_of(facts, TestSetting::Congestion).to_owned());
    }
    if remedy.action == Action::DeepenQueue || remedy.action == Action::AddCapacity && is_idle {
        remedy = remedy.value(longer_queue(facts).map(Quantity::bytes));
    }
    let buffer = match (remedy.action, remedy.setting.as_deref().and_then(Setting::named)) {
        (Action::RaiseMaximum, Some(Setting::TcpRmem)) => Some(Buffer::Receive),
        (Action::RaiseMaximum, Some(Setting::TcpWmem)) => Some(Buffer::Send),
        _ => None,
    };
    match buffer {
        Some(buffer) => raised(facts, remedy, buffer),
        None => Some(remedy),
    }
}

/// Adds the host that has selective acknowledgements off, if known.
fn with_host(facts: &Facts, remedy: Remedy) -> Remedy {
    let is_off = |end: &&End| value_of(end, Setting::TcpSack) == Some("0");
    match [&facts.sender, &facts.receiver].into_iter().find(is_off) {
        Some(end) => remedy.host(&end.name),
        None => remedy,
    }
}

/// Whether the bottleneck is idle at times, as far as is known: the sender's window reductions take it below its highest rate.
fn is_idle_at_times(facts: &Facts) -> bool {
    !facts.sends_by_model() && facts.of_peak().is_none_or(|reached| reached < BUSY)
}

/// Rate x round trip in bytes, the queue that keeps a bottleneck busy after a loss-based sender halves its window; `None` if a queue that long stood.
fn longer_queue(facts: &Facts) -> Option<f64> {
    let rate = capacity::known(facts).map(|known| known.goodput_bps);
    let rate = rate.or_else(|| Some(facts.delivery_peak_bps()? * f64::from(facts.streams())))?;
    let idle = facts.rtt_idle()?;
    let stood =
        facts.loss_picture().map_or(Nanos::ZERO, |picture| picture.queue.max(picture.overshoot_queue));
    let bytes = rate / 8.0 * idle.as_secs_f64();
    (stood < idle && bytes > 0.0 && !facts.sends_by_model()).then_some(bytes)
}

/// Whether the sender could use a rate-based congestion control: it does not yet, and its kernel has one, as far as it reports.
fn can_go_by_rate(facts: &Facts) -> bool {
    !facts.sends_by_model() && has_by_rate(&facts.sender) != Some(false)
}

fn has_by_rate(end: &End) -> Option<bool> {
    let all = value_of(end, Setting::TcpAvailableCongestionControl)?;
    Some(all.split_whitespace().any(|known| known == BY_RATE))
}

/// Raises a buffer's maximum: instead, the program's own call if that fixed the size, or window scaling if no larger window fits without; no more
/// than the path needs and the host has.
fn raised(facts: &Facts, remedy: Remedy, buffer: Buffer) -> Option<Remedy> {
    if let Some(locked) = locked(facts, buffer) {
        return Some(locked);
    }
    if let (Buffer::Receive, Some(unscaled)) = (buffer, Unscaled::of(facts)) {
        return Some(unscaled.remedy());
    }
    let (Some(path), Some(rtt)) = (capacity::known(facts), facts.rtt_idle()) else { return Some(remedy) };
    let in_flight = buffer::in_flight(path.goodput_bps, rtt.as_secs_f64(), facts.streams());
    let needed = buffer::size(in_flight, buffer::payload_share(facts, buffer));
    let host = match buffer {
        Buffer::Receive => &facts.receiver.host,
        Buffer::Send => &facts.sender.host,
    };
    match buffer::fit(host, buffer, needed, facts.streams()) {
        Some(Fit::Enough | Fit::Memory { .. }) => None,
        Some(Fit::Raise(_)) | None => Some(remedy.value(Quantity::bytes(needed as f64))),
    }
}

/// What fixed the size of a buffer, so that the host's setting has no effect: an option of bdp, or another program's call.
pub fn locked(facts: &Facts, buffer: Buffer) -> Option<Remedy> {
    let (end, by_program) = match buffer {
        Buffer::Receive => {
            (&facts.receiver, facts.receiver.socket.and_then(|socket| socket.receive_buffer_asked))
        }
        Buffer::Send => (&facts.sender, facts.sender.socket.and_then(|socket| socket.send_buffer_asked)),
    };
    if buffer == Buffer::Receive && facts.asked.window.is_some() {
        return Some(Remedy::new(Action::AskWindow).setting(name_of(facts, TestSetting::Window)));
    }
    if facts.asked.socket_buffer.is_some() {
        return Some(Remedy::new(Action::AskSocketBuffer).setting(SOCKET_BUFFER));
    }
    (by_program == Some(true))
        .then(|| Remedy::new(Action::AskSocketBuffer).setting(buffer.call()).host(&end.name))
}
