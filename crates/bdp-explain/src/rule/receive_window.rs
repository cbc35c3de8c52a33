//! The receiver's window is full most of the time, and the goodput is what that window carries in a round trip.

use bdp_model::finding::{Confidence, Finding, Limit};

use crate::seen::{Seen, WindowUse, maximum, percent, rate, size, time};

/// The window is full in at least this share of the samples.
const FULL: f64 = 0.5;
/// Full less often, the goodput has to be just what it carries, and doubt remains.
const FULL_AT_TIMES: f64 = 0.4;
/// It is full all the time but for slow start.
const FULL_ALWAYS: f64 = 0.8;
/// Goodput / (window / round trip): below it something else takes its share.
const REACHED: f64 = 0.7;
/// Window and round trip explain the goodput.
const REACHED_WELL: f64 = 0.85;
/// What is above by more than this was not limited by that window.
const ABOVE: f64 = 1.25;

/// Claims the limit where both agree; the kernel's own count only corroborates, as it is known to under-report.
pub fn judge(seen: &Seen<'_>) -> Option<Finding> {
    let window = seen.window.as_ref().filter(|w| w.receive_full >= FULL_AT_TIMES)?;
    let carried = seen.rate_bps(window.receive_bytes)?;
    let reached = seen.stream_bps / carried;
    if !(REACHED..=ABOVE).contains(&reached) && !holds_no_segment(seen, window, reached) {
        return None;
    }
    let at_times = window.receive_full < FULL;
    if at_times && !(REACHED_WELL..=ABOVE).contains(&reached) {
        return None;
    }
    let kernel_denies = seen.rwnd_limited.is_some_and(|share| share < 0.05);
    let explained = !(REACHED..REACHED_WELL).contains(&reached);
    let confidence = match window.receive_full >= FULL_ALWAYS && explained {
        true if kernel_denies => Confidence::Medium,
        true => Confidence::High,
        false if kernel_denies || at_times => Confidence::Low,
        false => Confidence::Medium,
    };
    Some(Finding {
        limit: Limit::ReceiveWindow,
        subject: format!("receive window of {}", seen.receiver_name),
        confidence,
        summary: format!(
            "the receive window of {} limits it: {} is what {} carry in {}",
            seen.receiver_name,
            rate(seen.stream_bps),
            size(window.receive_bytes),
            time(seen.rtt_loaded?)
        ),
        evidence: evidence(seen, window, carried, reached),
        remedy: remedy(seen, window),
        missing: Vec::new(),
    })
}

/// Whether the window is smaller than a segment. Then the sender waits before it sends part of one, until its persist
/// timer ends (RFC 9293, sections 3.8.6.1 and 3.8.6.2.1), and goodput is far below window / round trip.
fn holds_no_segment(seen: &Seen<'_>, window: &WindowUse, reached: f64) -> bool {
    window.receive_full >= FULL_ALWAYS
        && reached < REACHED
        && seen.direction.mss_bytes.is_some_and(|mss| window.receive_bytes < mss as f64)
}

fn evidence(seen: &Seen<'_>, window: &WindowUse, carried_bps: f64, reached: f64) -> Vec<String> {
    let streams = if seen.measurement.request.streams > 1 { ", each stream" } else { "" };
    let mut all = Vec::new();
    if let Some(rtt) = seen.rtt_loaded {
        all.push(format!(
            "{} / {} = {}, {} of it reached, window full {} of the time{streams}",
            size(window.receive_bytes),
            time(rtt),
            rate(carried_bps),
            percent(reached),
            percent(window.receive_full),
        ));
    }
    if holds_no_segment(seen, window, reached) {
        let mss = seen.direction.mss_bytes.map_or(0.0, |mss| mss as f64);
        all.push(format!(
            "the window holds no whole segment of {}: the sender waits for its persist timer before it sends less",
            size(mss)
        ));
    }
    let (name, request) = (&seen.receiver_name, &seen.measurement.request);
    // Where the window was asked for, the system's largest has no part in it.
    let ends_at = maximum(seen.receiver, RMEM)
        .filter(|_| request.window.is_none() && request.socket_buffer.is_none())
        .map(|max| format!("tcp_rmem max on {name} is {}", size(max as f64)));
    let needs = seen.needed_bytes().filter(|&needed| needed > window.receive_bytes).map(|needed| {
        let ceiling = seen.measurement.ceiling.as_ref().map_or(0.0, |c| c.goodput_bps);
        format!("{} needs {} on the wire", rate(ceiling), size(needed))
    });
    all.extend(match (needs, ends_at) {
        (Some(needs), Some(ends_at)) => Some(format!("{needs}; {ends_at}")),
        (needs, ends_at) => needs.or(ends_at),
    });
    if scaling_off(seen) {
        all.push("without window scaling no window is larger than 64 KiB".to_owned());
    }
    if let Some(share) = seen.rwnd_limited.filter(|&share| share >= 0.05) {
        all.push(format!("the kernel counts {} of the busy time as limited by it, at least", percent(share)));
    }
    all
}

/// What to change at the receiver; by how much, where the ceiling tells.
fn remedy(seen: &Seen<'_>, window: &WindowUse) -> Option<String> {
    let (request, name) = (&seen.measurement.request, &seen.receiver_name);
    let needed = seen.needed_bytes().filter(|&needed| needed > window.receive_bytes);
    let at_least = needed.map_or_else(String::new, |needed| format!(", {} or more", size(needed)));
    if request.window.is_some() {
        return Some(format!("ask for a larger window (-w{at_least}), or for none"));
    }
    if request.socket_buffer.is_some() {
        return Some("ask for a larger socket buffer (--sockbuf), or for none".to_owned());
    }
    if scaling_off(seen) {
        return Some(format!("set net.ipv4.tcp_window_scaling = 1 on {name}"));
    }
    // The buffer holds more than the window: as much more as it did here.
    let buffer = seen.direction.window.socket_buffer_bytes.map(|b| b as f64);
    let ratio = buffer.map_or(2.0, |b| b / window.receive_bytes).clamp(1.0, 8.0);
    let to = needed.map_or_else(String::new, |needed| format!(" to {} or more", size(needed * ratio)));
    Some(format!("raise the last number of {RMEM} on {name}{to}"))
}

/// Whether the receiver's kernel offers no window scaling, and the window shows it.
fn scaling_off(seen: &Seen<'_>) -> bool {
    let ends = [seen.receiver, seen.sender];
    let off = |sysctls: &std::collections::BTreeMap<String, String>| {
        sysctls.get("net.ipv4.tcp_window_scaling").is_some_and(|v| v.trim() == "0")
    };
    ends.iter().any(|host| off(&host.sysctls))
        && seen.window.as_ref().is_some_and(|w| w.receive_bytes <= 65_535.0)
}

const RMEM: &str = "net.ipv4.tcp_rmem";
