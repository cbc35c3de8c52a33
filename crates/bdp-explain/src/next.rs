//! What binds once a limit is gone: the least of what is known to bound the connection besides.

use bdp_model::facts::Facts;
use bdp_model::finding::{Finding, Limit, Next};

use crate::setting::{RMEM, WMEM, maximum};

/// Less than this above the goodput is no gain to name.
const WORTH: f64 = 1.1;

/// Adds what binds next, where the rule has not said it and a bound is known.
pub fn known(facts: &Facts, finding: Finding) -> Finding {
    // A path has the rate that it has; a window or a buffer names its own next limit.
    let can_go = matches!(
        finding.limit,
        Limit::SlowWriter
            | Limit::SlowReader
            | Limit::Nagle
            | Limit::AskedRate
            | Limit::Cpu
            | Limit::RandomLoss
            | Limit::SackMissing
            | Limit::Reordering
            | Limit::HostDrops
    );
    if !can_go || finding.next.is_some() || facts.udp.is_some() {
        return finding;
    }
    let next = least(facts).filter(|next| next.goodput_bps >= WORTH * facts.goodput_bps);
    finding.next(next)
}

fn least(facts: &Facts) -> Option<Next> {
    let bound = |limit, goodput_bps| Next { limit, goodput_bps, needed_bytes: None };
    // Where nobody knows what the path carries, a window that is larger than that says nothing.
    let ceiling = bound(Limit::Ceiling, facts.ceiling.as_ref()?.goodput_bps);
    let rtt = facts.rtt_idle().filter(|rtt| rtt.0 > 0);
    let windows = [(Limit::ReceiveWindow, receive_window(facts)), (Limit::SendBuffer, send_buffer(facts))];
    let windows = windows.into_iter().filter_map(|(limit, most)| {
        let streams = f64::from(facts.asked.streams.max(1));
        Some(bound(limit, most? * 8.0 * streams / rtt?.as_secs_f64()))
    });
    windows.chain([ceiling]).min_by(|a, b| a.goodput_bps.total_cmp(&b.goodput_bps))
}

/// The largest window that the receiver can give: what was asked for, or what the largest buffer holds, by the part of a buffer that was window.
pub fn receive_window(facts: &Facts) -> Option<f64> {
    /// Of a buffer so much is window at the least, unless the host is set otherwise.
    const HALF: f64 = 0.5;
    if let Some(asked) = facts.asked.window {
        return Some(asked.as_bytes() as f64);
    }
    let window = facts.window_use()?.receive_largest_bytes;
    if facts.asked.socket_buffer.is_some() {
        return Some(window);
    }
    let buffer = facts.window.socket_buffer_bytes.filter(|&bytes| bytes > 0)? as f64;
    let most = maximum(&facts.receiver, RMEM)? as f64;
    Some((most * (window / buffer).clamp(HALF, 1.0)).max(window))
}

/// What the sender's buffer holds in flight at the most, half of the memory that it may take.
pub fn send_buffer(facts: &Facts) -> Option<f64> {
    let most = maximum(&facts.sender, WMEM).filter(|_| facts.asked.socket_buffer.is_none())?;
    Some(most as f64 / 2.0)
}
