//! The next limit once one is gone: the smallest other known bound of the connection.

use bdp_model::facts::Facts;
use bdp_model::finding::limit::Consequence;
use bdp_model::finding::{Finding, Limit, Next};
use bdp_model::tuning::setting::Setting;

use crate::capacity::{self, Capacity};
use crate::setting::maximum;

/// A smaller gain over the goodput is not worth naming.
const WORTH: f64 = 1.1;

/// Adds the next limit, if the rule has not given it and a bound is known.
pub fn known(facts: &Facts, finding: Finding) -> Finding {
    // The path's rate is fixed; a window or a buffer names its own next limit.
    let can_go = finding.limit.has(Consequence::Next);
    if !can_go || finding.next.is_some() || facts.udp.is_some() {
        return finding;
    }
    let next = least(facts).filter(|next| next.goodput_bps >= WORTH * facts.goodput_bps);
    finding.next(next)
}

/// The next limit once a window of this many bytes is gone: another window, which holds at most `other` in flight, or the path. `None` if the path's
/// capacity, and so the smaller of the two, is unknown.
pub fn after_window(facts: &Facts, bytes: f64, other: Option<Window>) -> Option<Next> {
    let path = of_path(facts).filter(|next| next.needed_bytes.is_some())?;
    let window = other.and_then(|window| of_window(facts, window));
    first(window.into_iter().chain([path]))
        .filter(|next| next.needed_bytes.is_some_and(|needed| needed > bytes))
        // A rate already reached is not a limit still to come.
        .filter(|next| next.goodput_bps >= facts.goodput_bps)
}

fn least(facts: &Facts) -> Option<Next> {
    // If the path's capacity is unknown, a window larger than that shows nothing.
    let path = of_path(facts)?;
    let windows = [receive_window(facts), send_buffer(facts)];
    let windows = windows.into_iter().flatten().filter_map(|window| of_window(facts, window));
    first(windows.chain([path])).map(|next| Next { needed_bytes: None, ..next })
}

/// A window or a buffer, and the most that it holds in flight.
type Window = (Limit, f64);

fn of_window(facts: &Facts, (limit, most): Window) -> Option<Next> {
    let rtt = facts.rtt_idle().filter(|rtt| rtt.0 > 0)?;
    let goodput_bps = most * 8.0 * f64::from(facts.streams()) / rtt.as_secs_f64();
    Some(Next { limit, goodput_bps, needed_bytes: Some(most) })
}

fn of_path(facts: &Facts) -> Option<Next> {
    let Capacity { limit, goodput_bps } = capacity::known(facts)?;
    Some(Next { limit, goodput_bps, needed_bytes: capacity::bytes_at(facts, goodput_bps) })
}

fn first(all: impl Iterator<Item = Next>) -> Option<Next> {
    all.min_by(|a, b| a.goodput_bps.total_cmp(&b.goodput_bps))
}

/// The largest possible receive window: the requested one, or what the largest buffer holds, by the share of a buffer that was window.
pub fn receive_window(facts: &Facts) -> Option<Window> {
    /// Smallest share of a buffer that is window, unless the host is set otherwise.
    const HALF: f64 = 0.5;
    let most = || {
        let window = facts.window_use()?.receive_largest_bytes;
        if facts.asked.socket_buffer.is_some() {
            return Some(window);
        }
        let buffer = facts.window.socket_buffer_bytes.filter(|&bytes| bytes > 0)? as f64;
        let most = maximum(&facts.receiver, Setting::TcpRmem)? as f64;
        Some((most * (window / buffer).clamp(HALF, 1.0)).max(window))
    };
    let asked = facts.asked.window.map(|asked| asked.as_bytes() as f64);
    Some((Limit::ReceiveWindow, asked.or_else(most)?))
}

/// The most that the sender's buffer holds in flight: half of its maximum memory.
pub fn send_buffer(facts: &Facts) -> Option<Window> {
    let most = maximum(&facts.sender, Setting::TcpWmem).filter(|_| facts.asked.socket_buffer.is_none())?;
    Some((Limit::SendBuffer, most as f64 / 2.0))
}
