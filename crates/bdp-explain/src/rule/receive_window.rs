//! The receiver's window is full most of the time, and the goodput is what that window carries in a round trip.

use bdp_model::facts::{End, Facts, WindowBound, WindowUse};
use bdp_model::finding::{Confidence, Finding, Limit};
use bdp_model::threshold::{WINDOW_FULL, WINDOW_REACHED, WORTH_A_WORD};

use crate::text::{Setting, maximum, name_of, percent, rate, size, time};

/// Full less often, the goodput has to be just what it carries, and doubt remains.
const FULL_AT_TIMES: f64 = 0.4;
/// It is full all the time but for slow start.
const FULL_ALWAYS: f64 = 0.8;
/// Window and round trip explain the goodput.
const REACHED_WELL: f64 = 0.85;
/// What is above by more than this was not limited by that window.
const ABOVE: f64 = 1.25;
/// Share of the busy time that the kernel counts as limited by the window: it under-reports, so that half of it is most.
const COUNTED: f64 = 0.5;
/// A buffer of this part of the largest that autotuning may make is bounded by it.
const AT_MAXIMUM: f64 = 0.9;

/// Claims the limit where both agree; the kernel's own count corroborates, and stands in for the samples where it is high: as
/// it is known to under-report, a low one denies little.
pub fn judge(facts: &Facts) -> Option<Finding> {
    let counted = facts.rwnd_limited().is_some_and(|share| share >= COUNTED);
    let window = facts.window_use().filter(|w| w.receive_full >= FULL_AT_TIMES || counted)?;
    let bound = facts.window_bound()?;
    let reached = facts.stream_bps() / bound.stream_bps;
    // Of few segments less comes through than window / round trip: what they lose is no other limit.
    let of_least = (facts.stream_bps() / bound.stream_least_bps).min(1.0).max(reached);
    if !(WINDOW_REACHED..=ABOVE).contains(&of_least) && !holds_no_segment(facts, window, reached) {
        return None;
    }
    let at_times = window.receive_full < WINDOW_FULL;
    if at_times && !counted && !(REACHED_WELL..=ABOVE).contains(&of_least) {
        return None;
    }
    let kernel_denies = facts.rwnd_limited().is_some_and(|share| share < WORTH_A_WORD);
    let explained = !(WINDOW_REACHED..REACHED_WELL).contains(&of_least);
    let confidence = match (window.receive_full >= FULL_ALWAYS || counted) && explained {
        true if kernel_denies => Confidence::Medium,
        true => Confidence::High,
        false if kernel_denies || at_times => Confidence::Low,
        false => Confidence::Medium,
    };
    let receiver = &facts.receiver.name;
    let asked = match facts.asked.window {
        Some(asked) => format!(", which {} {asked} asks for", name_of(facts, Setting::Window)),
        None => String::new(),
    };
    Some(Finding {
        limit: Limit::ReceiveWindow,
        subject: format!("receive window of {receiver}"),
        confidence,
        summary: format!(
            "limited by the receive window of {receiver}{asked}: {} / {} RTT = {} ({} reached)",
            size(bound.bytes),
            time(bound.rtt),
            rate(bound.stream_bps),
            percent(reached)
        ),
        evidence: evidence(facts, window, bound, reached),
        remedy: remedy(facts, bound),
        missing: match origin(facts) {
            Origin::Elsewhere { .. } => vec![
                "what keeps the window below what tcp_rmem allows: autotuning that was still growing, or a middlebox that \
                 rewrites it"
                    .to_owned(),
            ],
            _ => Vec::new(),
        },
    })
}

const PASS_THE_OPTION: &str = "find the firewall, proxy or load balancer that removes the window scale option from SYN segments, \
                               and have it pass";

/// Claims that the two ends read windows differently, where one uses window scaling and the other does not: then the option
/// was removed from one of the handshake's two segments (RFC 7323, section 2.2).
pub fn half_scaled(facts: &Facts) -> Option<Finding> {
    let (using, without) = match (facts.sender.window_scaling?, facts.receiver.window_scaling?) {
        (true, false) => (&facts.sender.name, &facts.receiver.name),
        (false, true) => (&facts.receiver.name, &facts.sender.name),
        _ => return None,
    };
    let mut evidence = vec![format!("{using} uses window scaling on this connection, {without} does not")];
    evidence.push(
        "a middlebox removed the window scale option from one segment of the handshake (RFC 7323, section 2.2)".to_owned(),
    );
    evidence.extend(facts.window_use().map(|window| {
        format!("{} takes the receive window for {}", facts.sender.name, size(window.receive_bytes))
    }));
    Some(Finding {
        limit: Limit::ReceiveWindow,
        subject: "window scaling on the path".to_owned(),
        confidence: Confidence::High,
        summary: format!(
            "limited by a receive window that {using} scales and {without} does not: a middlebox removed the window scale \
             option from one segment of the handshake"
        ),
        evidence,
        remedy: Some(PASS_THE_OPTION.to_owned()),
        missing: Vec::new(),
    })
}

/// What keeps a window from being larger.
enum Origin {
    /// No window scaling, since it is off at this host.
    ScalingOff(String),
    /// No window scaling, though both hosts offer it.
    ScalingRemoved,
    /// No window scaling, and one host does not report whether it offers it.
    ScalingUnknown,
    /// Autotuning is off: the buffer stays at its first size.
    AutotuningOff,
    /// The largest buffer of `tcp_rmem`, or it is not known.
    Maximum,
    /// The buffer could still grow.
    Elsewhere { buffer: f64, maximum: f64 },
    /// The window or the buffer was asked for.
    Asked,
}

fn origin(facts: &Facts) -> Origin {
    let is_asked = facts.asked.window.is_some() || facts.asked.socket_buffer.is_some();
    match unscaled(facts) {
        // Window scaling alone adds nothing to a smaller window that was asked for.
        unscaled if is_asked && (unscaled.is_none() || asks_for_less(facts)) => return Origin::Asked,
        Some(unscaled) => return unscaled,
        None => {}
    }
    let (Some(buffer), Some(maximum)) = (facts.window.socket_buffer_bytes, maximum(&facts.receiver, RMEM))
    else {
        return Origin::Maximum;
    };
    let (buffer, maximum) = (buffer as f64, maximum as f64);
    if buffer >= AT_MAXIMUM * maximum {
        return Origin::Maximum;
    }
    match setting(&facts.receiver, "net.ipv4.tcp_moderate_rcvbuf") {
        Some("0") => Origin::AutotuningOff,
        _ => Origin::Elsewhere { buffer, maximum },
    }
}

/// Without window scaling no window is larger (RFC 7323, section 2.2).
const LARGEST_UNSCALED: f64 = 65_535.0;

/// Whether what was asked for keeps the window below what it may be without window scaling. Nobody means 64 KiB - 1 by 64K.
fn asks_for_less(facts: &Facts) -> bool {
    let asked = facts.asked.window.is_some_and(|window| window.as_bytes() as f64 <= LARGEST_UNSCALED + 1.0);
    asked || facts.window_bound().is_some_and(|bound| bound.bytes < AT_MAXIMUM * LARGEST_UNSCALED)
}

/// Why the connection has no window scaling, where it has none. Both ends know whether it was agreed on; a kernel that does
/// not say shows it by its setting and the window.
fn unscaled(facts: &Facts) -> Option<Origin> {
    let ends = [&facts.receiver, &facts.sender];
    let refused = ends.iter().any(|end| end.window_scaling == Some(false));
    let unknown = ends.iter().all(|end| end.window_scaling.is_none());
    let fits = facts.window_use().is_some_and(|w| w.receive_bytes <= LARGEST_UNSCALED);
    let off = ends.iter().find(|end| setting(end, SCALING) == Some("0"));
    match off {
        Some(end) if refused || (unknown && fits) => Some(Origin::ScalingOff(end.name.clone())),
        None if refused && ends.iter().all(|end| setting(end, SCALING).is_some()) => {
            Some(Origin::ScalingRemoved)
        }
        None if refused => Some(Origin::ScalingUnknown),
        _ => None,
    }
}

fn setting<'a>(end: &'a End, name: &str) -> Option<&'a str> {
    end.host.sysctls.get(name).map(|value| value.trim())
}

/// Whether the window is smaller than a segment. Then the sender waits before it sends part of one, until its persist
/// timer ends (RFC 9293, sections 3.8.6.1 and 3.8.6.2.1), and goodput is far below window / round trip.
fn holds_no_segment(facts: &Facts, window: WindowUse, reached: f64) -> bool {
    window.receive_full >= FULL_ALWAYS
        && reached < WINDOW_REACHED
        && facts.mss_bytes.is_some_and(|mss| window.receive_bytes < mss as f64)
}

fn evidence(facts: &Facts, window: WindowUse, bound: WindowBound, reached: f64) -> Vec<String> {
    let streams = if facts.asked.streams > 1 { ", each stream" } else { "" };
    let mut all = vec![format!(
        "{} / {} = {}, {} of it reached, window full {} of the time{streams}",
        size(bound.bytes),
        time(bound.rtt),
        rate(bound.stream_bps),
        percent(reached),
        percent(window.receive_full),
    )];
    if let Some(added) = facts.queue_of_the_other_way() {
        all.push(format!("{} of this round trip is the queue of the other direction", time(added)));
    }
    if reached < REACHED_WELL && bound.stream_least_bps < REACHED_WELL * bound.stream_bps {
        all.push(format!(
            "the window holds few segments, and the acknowledgement of one may wait for the next (RFC 9293, section 3.8.6.3): {} \
             and more are what they carry",
            rate(bound.stream_least_bps)
        ));
    }
    if holds_no_segment(facts, window, reached) {
        let mss = facts.mss_bytes.map_or(0.0, |mss| mss as f64);
        all.push(format!(
            "the window holds no whole segment of {}: the sender waits for its persist timer before it sends less",
            size(mss)
        ));
    }
    let name = &facts.receiver.name;
    let origin = origin(facts);
    let ends_at = maximum(&facts.receiver, RMEM)
        .filter(|_| matches!(origin, Origin::Maximum))
        .map(|max| format!("tcp_rmem max on {name} is {}", size(max as f64)));
    let needs = facts.needed_bytes().filter(|&needed| needed > window.receive_bytes).map(|needed| {
        let ceiling = facts.ceiling.as_ref().map_or(0.0, |c| c.goodput_bps);
        format!("{} needs {} on the wire", rate(ceiling), size(needed))
    });
    all.extend(match (needs, ends_at) {
        (Some(needs), Some(ends_at)) => Some(format!("{needs}; {ends_at}")),
        (needs, ends_at) => needs.or(ends_at),
    });
    let at_most = "no window is larger than 64 KiB without window scaling (RFC 7323)";
    all.extend(match unscaled(facts).unwrap_or(origin) {
        Origin::ScalingOff(host) => Some(format!("tcp_window_scaling is 0 on {host}: {at_most}")),
        Origin::ScalingRemoved => Some(format!(
            "tcp_window_scaling is 1 at both ends, and the connection has none: a middlebox removed the option from the \
             handshake; {at_most}"
        )),
        Origin::ScalingUnknown => Some(format!("the connection has no window scaling: {at_most}")),
        Origin::AutotuningOff => Some(format!(
            "tcp_moderate_rcvbuf is 0 on {name}: the receive buffer stays at its first size, the middle number of tcp_rmem"
        )),
        Origin::Elsewhere { buffer, maximum } => Some(format!(
            "tcp_rmem is not what bounds it: the receive buffer of {name} is {}, and may grow to {}",
            size(buffer),
            size(maximum)
        )),
        Origin::Maximum | Origin::Asked => None,
    });
    if let Some(share) = facts.rwnd_limited().filter(|&share| share >= WORTH_A_WORD) {
        all.push(format!("the kernel counts {} of the busy time as limited by it, at least", percent(share)));
    }
    all
}

/// What to change at the receiver; by how much, where a ceiling is known.
fn remedy(facts: &Facts, bound: WindowBound) -> Option<String> {
    let (request, name) = (&facts.asked, &facts.receiver.name);
    let needed = facts.needed_bytes().filter(|&needed| needed > bound.bytes);
    match origin(facts) {
        Origin::Elsewhere { .. } => return None,
        Origin::AutotuningOff => return Some(format!("set net.ipv4.tcp_moderate_rcvbuf = 1 on {name}")),
        Origin::Maximum | Origin::Asked => {}
        unscaled => return scale(&unscaled),
    }
    // A larger window than 64 KiB takes both.
    let scaling = unscaled(facts).filter(|_| needed.is_none_or(|needed| needed > LARGEST_UNSCALED));
    let scaling = scaling.as_ref().and_then(scale);
    let scaling = scaling.map_or_else(String::new, |scale| format!("; for more than 64 KiB also {scale}"));
    if request.window.is_some() {
        let twice = rate(bound.stream_bps * 2.0);
        let at_least = needed.map_or_else(String::new, |needed| format!(", {} or more", size(needed)));
        return Some(format!(
            "ask for a larger window ({}{at_least}), or for none{scaling}; twice the window would carry {twice}, if the path \
             does",
            name_of(facts, Setting::Window)
        ));
    }
    if request.socket_buffer.is_some() {
        return Some(format!("ask for a larger socket buffer (--sockbuf), or for none{scaling}"));
    }
    // The buffer holds more than the window: as much more as it did here.
    let buffer = facts.window.socket_buffer_bytes.map(|b| b as f64);
    let ratio = buffer.map_or(2.0, |b| b / bound.bytes).clamp(1.0, 8.0);
    let to = needed.map_or_else(String::new, |needed| format!(" to {} or more", size(needed * ratio)));
    Some(format!("raise the last number of {RMEM} on {name}{to}"))
}

/// How to get window scaling, where that is what is missing.
fn scale(origin: &Origin) -> Option<String> {
    Some(match origin {
        Origin::ScalingOff(host) => format!("set {SCALING} = 1 on {host}"),
        Origin::ScalingRemoved => format!("{PASS_THE_OPTION}; a larger tcp_rmem does not help"),
        Origin::ScalingUnknown => {
            "turn window scaling on at the other end, or find the middlebox that removes the option from SYN segments"
                .to_owned()
        }
        _ => return None,
    })
}

const RMEM: &str = "net.ipv4.tcp_rmem";
const SCALING: &str = "net.ipv4.tcp_window_scaling";
