//! Socket buffers: what autotuning may reach, compared with what the path needs in flight.

use bdp_model::finding::limit::Consequence;
use bdp_model::finding::{Action, Cause, Finding, Limit};
use bdp_model::measurement::ends::End;
use bdp_model::tuning::{Change, Gain, Reason, Target, Why};

use super::draft::Draft;
use super::host::Host;
use super::path::{Described, Way};
use crate::buffer::{self, Buffer, Fit, PAYLOAD};
use crate::remedies;

/// If the path's capacity is unknown, a plan goes no further than this factor of the measured goodput.
const FURTHEST: f64 = 4.0;

/// A direction's need of a buffer.
struct Need {
    end: End,
    buffer: Buffer,
    in_flight: f64,
    /// Share of the buffer that holds payload.
    share: f64,
    streams: u32,
    gain: Option<Gain>,
}

/// Plans the buffers of a direction. The next limit is the rate, as far as it is known.
pub(super) fn add(draft: &mut Draft, way: &Way, near: &Host<'_>, far: &Host<'_>) {
    let facts = &way.facts;
    let (Some(rtt), Some(first)) = (facts.rtt_idle(), way.findings.first()) else { return };
    let by_window = matches!(first.limit, Limit::ReceiveWindow | Limit::SendBuffer);
    let mut buffers = [(Buffer::Receive, way.receiver()), (Buffer::Send, way.sender())];
    if by_window {
        if first.limit == Limit::SendBuffer {
            buffers.reverse();
        }
        let binding = buffers[0].0;
        if let Some(option) = remedies::locked(facts, binding).and_then(|locked| locked.setting) {
            return draft.refuse(None, None, Why::Asked { option });
        }
    }
    // A larger maximum does not help if something else keeps the buffer small: the remedy names it, or says that it is unknown.
    let by_switch = first.remedy.as_ref().is_some_and(|remedy| remedy.action == Action::Set);
    let mut is_elsewhere = by_window && !is_of_settings(first);
    // A larger buffer only holds more of what a program has not read or written.
    if first.limit.has(Consequence::OfPrograms) {
        return;
    }
    let Some(rate) = way.rate_bps.or_else(|| by_window.then(|| furthest(way)).flatten()) else { return };
    let streams = facts.streams();
    let in_flight = buffer::in_flight(rate, rtt.as_secs_f64(), streams);
    let gain = way.rate_bps.filter(|&rate| by_window && rate > facts.goodput_bps).map(|rate| Gain {
        direction: way.direction,
        before_bps: facts.goodput_bps,
        after_bps: rate,
        next: None,
        loaded_rtt_less_ns: None,
    });
    for (buffer, end) in buffers {
        // The setting does not affect a socket with a requested size, and the buffers in use sufficed for what got through.
        let is_left = is_elsewhere
            || remedies::locked(facts, buffer).is_some()
            || !by_window && rate <= facts.goodput_bps;
        let share = buffer::payload_share(facts, buffer);
        let need = Need { end, buffer, in_flight, share, streams, gain };
        let is_raised = fit(draft, if end == End::Near { near } else { far }, &need, is_left);
        // Other buffers matter only after the one that limits.
        is_elsewhere |= by_window && !is_raised && !by_switch;
    }
}

/// Whether a host setting widens a window or a buffer.
fn is_of_settings(finding: &Finding) -> bool {
    match &finding.remedy {
        Some(remedy) => matches!(remedy.action, Action::RaiseMaximum | Action::Set),
        // The maximum is enough for the path, or the host lacks the memory: either is reported.
        None => matches!(finding.cause, Some(Cause::RmemMaximum | Cause::WmemMaximum | Cause::BufferRunsDry)),
    }
}

/// Plans both buffers of a host that sends and receives on a path described by figures.
pub(super) fn for_both_roles(draft: &mut Draft, host: &Host<'_>, path: &Described) {
    let streams = path.streams.max(1);
    let in_flight = buffer::in_flight(path.rate_bps, path.rtt_ns as f64 / 1e9, streams);
    for buffer in [Buffer::Receive, Buffer::Send] {
        let need = Need { end: End::Near, buffer, in_flight, share: PAYLOAD, streams, gain: None };
        fit(draft, host, &need, false);
    }
}

/// Plans or refuses one buffer, and returns which; for one to be left alone it only reports that it is enough.
fn fit(draft: &mut Draft, host: &Host<'_>, need: &Need, is_left: bool) -> bool {
    let setting = need.buffer.setting();
    let target = Target::sysctl(setting);
    let needed = buffer::size(need.in_flight, need.share);
    let refused = match host.triple(setting).zip(host.fit(need.buffer, needed, need.streams)) {
        None => Why::Unknown,
        Some((_, Fit::Enough)) => {
            let value = host.value(setting).unwrap_or_default().to_owned();
            Why::Enough { value, needed: needed.to_string() }
        }
        Some((_, Fit::Memory { needed_bytes, available_bytes })) => {
            Why::Memory { needed_bytes, available_bytes }
        }
        Some(([least, first, most], Fit::Raise(to))) if !is_left => {
            raise(draft, need, &target, [least, first, most], to);
            return true;
        }
        Some(_) => return false,
    };
    if !is_left || matches!(refused, Why::Enough { .. }) {
        draft.refuse(need.end, target, refused);
    }
    false
}

fn raise(draft: &mut Draft, need: &Need, target: &Target, [least, first, most]: [u64; 3], to: u64) {
    draft.program(need.end, format!("setsockopt({}, {})", need.buffer.call(), to / 2), target.clone());
    draft.change(Change {
        end: need.end,
        target: target.clone(),
        from: Some(format!("{least} {first} {most}")),
        to: format!("{least} {first} {to}"),
        reason: Reason::Buffer { needed_bytes: to, in_flight_bytes: need.in_flight as u64 },
        gain: need.gain,
    });
}

/// How far to go if the path's capacity is unknown: to the next known limit, within bounds.
fn furthest(way: &Way) -> Option<f64> {
    let most = FURTHEST * way.facts.goodput_bps;
    let next = way.findings.first()?.next.map(|next| next.goodput_bps);
    Some(next.map_or(most, |next| next.min(most)))
}
