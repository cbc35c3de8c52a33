//! A receive window that is full most of the time, with the goodput that it allows per round trip.

use bdp_model::facts::{Facts, WindowBound, WindowUse};
use bdp_model::finding::fact::{self, Bps, Bytes};
use bdp_model::finding::threshold::{WINDOW_FULL, WINDOW_REACHED, WORTH_A_WORD};
use bdp_model::finding::{
    Action, Cause, Confidence, Evidence, Finding, Lack, Limit, Missing, Place, Quantity, Remedy,
};
use bdp_model::tuning::setting::Setting;

use crate::buffer::AT_MAXIMUM;
use crate::scaling::{LARGEST_UNSCALED, Unscaled};
use crate::setting::{SOCKET_BUFFER, TestSetting, maximum, name_of, value_of};
use crate::{capacity, next, observed};

/// Full less often than this, the goodput must match the window exactly, and doubt remains.
const FULL_AT_TIMES: f64 = 0.4;
/// Full all the time except in slow start.
const FULL_ALWAYS: f64 = 0.8;
/// Window and round trip explain the goodput.
const REACHED_WELL: f64 = 0.85;
/// Ratio above which the goodput was not limited by that window.
const ABOVE: f64 = 1.25;
/// Share of the busy time that the kernel counts as limited by the window: it under-reports, so that half is most.
const COUNTED: f64 = 0.5;
/// With few segments in flight, losses are repaired by a timer: above this share they take time that counts as the window's.
const LOST: f64 = 0.01;

/// Claims the limit if window and goodput agree; the kernel's own count corroborates, and replaces the samples if it is high: since
/// it under-reports, a low one proves little.
pub fn judge(facts: &Facts) -> Option<Finding> {
    let counted = facts.rwnd_limited().is_some_and(|share| share >= COUNTED);
    let window = facts.window_use().filter(|w| w.receive_full >= FULL_AT_TIMES || counted)?;
    let bound = facts.window_bound()?;
    let reached = facts.stream_bps() / bound.stream_bps;
    // With few segments the rate is less than window / round trip: their losses are not another limit.
    let of_least = (facts.stream_bps() / bound.stream_least_bps).min(1.0).max(reached);
    if !(WINDOW_REACHED..=ABOVE).contains(&of_least) && !holds_no_segment(facts, window, reached) {
        return None;
    }
    let at_times = window.receive_full < WINDOW_FULL;
    if at_times && !counted && !(REACHED_WELL..=ABOVE).contains(&of_least) {
        return None;
    }
    // Several streams with more than this allows have larger windows.
    if facts.goodput_bps > ABOVE * bound.bps {
        return None;
    }
    let kernel_denies = facts.rwnd_limited().is_some_and(|share| share < WORTH_A_WORD);
    let explained = !(WINDOW_REACHED..REACHED_WELL).contains(&of_least);
    // With few segments the rate may be anywhere between those with and without delayed acknowledgements: that is no proof.
    let anywhere = reached < WINDOW_REACHED
        && facts.stream_bps() > ABOVE * bound.stream_least_bps
        && !holds_no_segment(facts, window, reached);
    // What is in flight always arrives in its own round trip. The window sets the rate only if it would with the idle round trip, too: what load adds
    // is a queue, whoever fills it.
    let is_inflated = reached >= WINDOW_REACHED
        && facts.queue_of_the_other_way().is_none()
        && facts.rtt_idle().is_some_and(|idle| WINDOW_REACHED * bound.rtt.0 as f64 > idle.0 as f64);
    let confidence = match (window.receive_full >= FULL_ALWAYS || counted) && explained {
        _ if anywhere && facts.retransmitted_share().is_some_and(|share| share > LOST) => Confidence::Low,
        _ if anywhere || is_inflated => Confidence::Medium,
        true if kernel_denies => Confidence::Medium,
        true => Confidence::High,
        false if kernel_denies || at_times => Confidence::Low,
        false => Confidence::Medium,
    };
    let origin = origin(facts);
    let cause = cause(facts, &origin);
    let least_full = if at_times { FULL_AT_TIMES } else { WINDOW_FULL };
    let elsewhere = matches!(origin, Origin::Elsewhere { .. });
    let finding = Finding::new(Limit::ReceiveWindow, Place::receiver(&facts.receiver.name), confidence)
        .cause(cause)
        .evidence(evidence(facts, window, bound, reached, least_full))
        .evidence(bounds(facts, &Unscaled::of(facts).map_or(origin, Origin::Unscaled)))
        .evidence(facts.asked.window.map(|asked| {
            let evidence = Evidence::bytes(fact::WindowAsked, asked.as_bytes() as f64);
            evidence.named(name_of(facts, TestSetting::Window))
        }))
        .evidence(observed::kernel_counts_window(facts))
        .next(next::after_window(facts, window.receive_bytes, next::send_buffer(facts)))
        .remedy(remedy(facts, bound))
        .missing(elsewhere.then(|| Missing::new(Lack::WindowBound)));
    Some(finding)
}

/// Claims that the ends interpret windows differently, if only one of them uses window scaling: a middlebox removed the option
/// from one of the handshake's two segments (RFC 7323, section 2.2).
pub fn half_scaled(facts: &Facts) -> Option<Finding> {
    let (using, without) = match (facts.sender.window_scaling?, facts.receiver.window_scaling?) {
        (true, false) => (&facts.sender.name, &facts.receiver.name),
        (false, true) => (&facts.receiver.name, &facts.sender.name),
        _ => return None,
    };
    let uses = |name: &str, uses| Evidence::flag(fact::ScalingUsed, uses).on(name);
    let finding =
        Finding::new(Limit::ReceiveWindow, Place::path(), Confidence::High)
            .cause(Cause::ScalingHalfStripped)
            .evidence([uses(using, true), uses(without, false)])
            .evidence(facts.window_use().map(|window| {
                Evidence::bytes(fact::WindowAsRead, window.receive_bytes).on(&facts.sender.name)
            }))
            .remedy(Remedy::new(Action::PassWindowScaling));
    Some(finding)
}

/// What limits the window's size.
enum Origin {
    /// The connection has no window scaling.
    Unscaled(Unscaled),
    /// Autotuning is off: the buffer keeps its initial size.
    AutotuningOff,
    /// The maximum of `tcp_rmem`; also if unknown.
    Maximum,
    /// The buffer is below its maximum.
    Elsewhere { buffer: f64, maximum: f64 },
    /// The window or the buffer was requested.
    Asked,
}

fn origin(facts: &Facts) -> Origin {
    let is_asked = facts.asked.window.is_some() || facts.asked.socket_buffer.is_some();
    match Unscaled::of(facts) {
        // Window scaling does not enlarge a smaller requested window.
        unscaled if is_asked && (unscaled.is_none() || asks_for_less(facts)) => return Origin::Asked,
        Some(unscaled) => return Origin::Unscaled(unscaled),
        None => {}
    }
    let (Some(buffer), Some(maximum)) =
        (facts.window.socket_buffer_bytes, maximum(&facts.receiver, Setting::TcpRmem))
    else {
        return Origin::Maximum;
    };
    let (buffer, maximum) = (buffer as f64, maximum as f64);
    if buffer >= AT_MAXIMUM * maximum {
        return Origin::Maximum;
    }
    match value_of(&facts.receiver, Setting::TcpModerateRcvbuf) {
        Some("0") => Origin::AutotuningOff,
        _ => Origin::Elsewhere { buffer, maximum },
    }
}

/// Whether the request keeps the window below the limit without window scaling. Nobody means 64 KiB - 1 by 64K.
fn asks_for_less(facts: &Facts) -> bool {
    let asked = facts.asked.window.is_some_and(|window| window.as_bytes() as f64 <= LARGEST_UNSCALED + 1.0);
    asked || facts.window_bound().is_some_and(|bound| bound.bytes < AT_MAXIMUM * LARGEST_UNSCALED)
}

/// The named cause of what limits the window's size.
fn cause(facts: &Facts, origin: &Origin) -> Option<Cause> {
    Some(match origin {
        Origin::Unscaled(Unscaled::Off(_)) => Cause::ScalingOff,
        Origin::Unscaled(Unscaled::Removed) => Cause::ScalingStripped,
        Origin::Unscaled(Unscaled::Unknown) => Cause::ScalingMissing,
        Origin::AutotuningOff => Cause::AutotuningOff,
        // Unknown without the setting.
        Origin::Maximum => return maximum(&facts.receiver, Setting::TcpRmem).map(|_| Cause::RmemMaximum),
        Origin::Elsewhere { .. } => Cause::BelowMaximum,
        Origin::Asked if facts.asked.window.is_some() => Cause::WindowAsked,
        Origin::Asked => Cause::SocketBufferAsked,
    })
}

/// Whether the window is smaller than a segment. The sender then sends part of a segment only when its persist
/// timer expires (RFC 9293, sections 3.8.6.1 and 3.8.6.2.1), and goodput is far below window / round trip.
fn holds_no_segment(facts: &Facts, window: WindowUse, reached: f64) -> bool {
    window.receive_full >= FULL_ALWAYS
        && reached < WINDOW_REACHED
        && facts.mss_bytes.is_some_and(|mss| window.receive_bytes < mss as f64)
}

fn evidence(
    facts: &Facts,
    window: WindowUse,
    bound: WindowBound,
    reached: f64,
    least_full: f64,
) -> Vec<Evidence> {
    let of_all = facts.goodput_bps / bound.bps;
    let of_rate = Evidence::share(
        fact::OfWindowRate {
            window: Bytes(bound.bytes),
            round_trip: bound.rtt,
            carries: Bps(bound.bps),
            streams: observed::several_streams(facts),
        },
        of_all,
    );
    let full = Evidence::share(fact::WindowFull::ALONE, window.receive_full).share_of(window.samples);
    let mut all = vec![
        if of_all >= WINDOW_REACHED { of_rate.at_least(WINDOW_REACHED) } else { of_rate },
        if window.receive_full >= least_full { full.at_least(least_full) } else { full },
    ];
    all.extend(facts.queue_of_the_other_way().map(|added| Evidence::time(fact::OtherWayQueue, added)));
    if reached < REACHED_WELL && bound.stream_least_bps < REACHED_WELL * bound.stream_bps {
        let streams = f64::from(facts.streams());
        all.push(Evidence::rate(fact::DelayedAckRate, streams * bound.stream_least_bps));
    }
    if holds_no_segment(facts, window, reached) {
        let mss = facts.mss_bytes.map_or(0.0, |mss| mss as f64);
        let evidence = Evidence::bytes(fact::NoWholeSegment { segment: Bytes(mss) }, window.receive_bytes);
        all.push(evidence.at_most(mss));
    }
    all
}

/// Evidence of what limits the window's size.
fn bounds(facts: &Facts, origin: &Origin) -> Option<Evidence> {
    let name = &facts.receiver.name;
    Some(match origin {
        Origin::Unscaled(Unscaled::Off(host)) => {
            Evidence::flag(fact::ScalingSetting, false).named(Setting::TcpWindowScaling).on(host)
        }
        Origin::Unscaled(Unscaled::Removed) => Evidence::flag(fact::ScalingRemoved, false),
        Origin::Unscaled(Unscaled::Unknown) => Evidence::flag(fact::ScalingAgreed, false),
        Origin::AutotuningOff => {
            Evidence::flag(fact::AutotuningSetting, false).named(Setting::TcpModerateRcvbuf).on(name)
        }
        Origin::Elsewhere { buffer, maximum } => {
            Evidence::bytes(fact::BufferBelowMaximum { maximum: Bytes(*maximum) }, *buffer)
                .at_most(AT_MAXIMUM * maximum)
                .on(name)
        }
        Origin::Maximum => {
            let most = maximum(&facts.receiver, Setting::TcpRmem)?;
            Evidence::bytes(fact::SettingMaximum, most as f64).named(Setting::TcpRmem).on(name)
        }
        Origin::Asked => return None,
    })
}

/// What to change at the receiver, with a value if the path's capacity is known.
fn remedy(facts: &Facts, bound: WindowBound) -> Option<Remedy> {
    let (request, name) = (&facts.asked, &facts.receiver.name);
    // A request that was not reached does not help by being repeated.
    let asked = request.window.map_or(0.0, |asked| asked.as_bytes() as f64);
    let needed = capacity::needed_bytes(facts).filter(|&needed| needed > bound.bytes.max(asked));
    match origin(facts) {
        Origin::Elsewhere { .. } => return None,
        Origin::AutotuningOff => return Some(turn_on(Setting::TcpModerateRcvbuf, name)),
        Origin::Unscaled(unscaled) => return Some(unscaled.remedy()),
        Origin::Maximum | Origin::Asked => {}
    }
    // What the path carries fits this window.
    if capacity::needed_bytes(facts).is_some_and(|needed| needed <= bound.bytes) {
        return None;
    }
    // A window above 64 KiB needs both.
    let scaling = Unscaled::of(facts).filter(|_| needed.is_none_or(|needed| needed > LARGEST_UNSCALED));
    let scaling = scaling.map(|unscaled| unscaled.remedy());
    if request.window.is_some() {
        let larger = Remedy::new(Action::AskWindow).setting(name_of(facts, TestSetting::Window));
        return Some(larger.value(needed.map(Quantity::bytes)).also(scaling));
    }
    if request.socket_buffer.is_some() {
        return Some(Remedy::new(Action::AskSocketBuffer).setting(SOCKET_BUFFER).also(scaling));
    }
    Some(Remedy::new(Action::RaiseMaximum).setting(Setting::TcpRmem).host(name))
}

fn turn_on(setting: Setting, host: &str) -> Remedy {
    Remedy::new(Action::Set).setting(setting).value(Quantity::count(1)).host(host)
}
