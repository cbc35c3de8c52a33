//! Heading of a measurement: both ends and the path.

use bdp_model::measurement::responsiveness::MOST_CONNECTIONS;
use bdp_model::measurement::{Direction, HostFacts, Measurement};
use bdp_model::units::format_bps;

use super::arrow;
use crate::grid::{tame, wrap};
use crate::number::{percent, three_digits};
use crate::style::{Style, Tint};

/// Share of time from which a busy CPU is mentioned.
const BUSY: f64 = 0.8;
/// Share of time taken by the hypervisor from which it is mentioned.
const STOLEN: f64 = 0.02;

/// Returns both ends, the congestion control, and the name under which the measurement is stored.
pub(super) fn ends(m: &Measurement, run: Option<&str>, style: &Style) -> String {
    let to = arrow(Direction::To, style);
    let far = format!("{}:{}", bracketed(&m.far.address), m.request.port);
    let mut parts =
        vec![format!("{} {} {to} {} {far}", tame(&m.near.name), tame(&m.near.address), far_name(m))];
    parts.extend(congestion(m, style));
    if m.request.responsiveness {
        parts.push(format!("up to {MOST_CONNECTIONS} connections"));
    } else if m.request.spec.streams > 1 {
        parts.push(streams(m));
    }
    parts.extend(systems(m));
    parts.push(versions(m));
    parts.extend(m.label.as_deref().map(|label| format!("label {}", tame(label))));
    let words = parts.join(", ");
    match run {
        Some(run) => wrap("run      ", Tint::Faint, &format!("{run}: {words}"), style),
        None => wrap("path     ", Tint::Faint, &words, style),
    }
}

/// Returns the congestion control of each sender, as reported by its kernel.
fn congestion(m: &Measurement, style: &Style) -> Option<String> {
    let used: Vec<(Direction, String)> = m
        .directions
        .iter()
        .filter(|d| d.udp.is_none() && !d.congestion_control.is_empty())
        .map(|d| (d.direction, tame(&d.congestion_control)))
        .collect();
    let (_, first) = used.first()?;
    if used.iter().all(|(_, name)| name == first) {
        return Some(first.clone());
    }
    let each = used.iter().map(|(way, name)| format!("{} {name}", arrow(*way, style)));
    Some(each.collect::<Vec<_>>().join(" "))
}

fn systems(m: &Measurement) -> Option<String> {
    let of = |host: &HostFacts| tame(&format!("{} {}", host.system, host.kernel)).trim().to_owned();
    match (of(&m.near), of(&m.far)) {
        (near, far) if near == far || far.is_empty() => Some(near),
        (near, far) if near.is_empty() => Some(format!("{far} there")),
        (near, far) => Some(match far.strip_prefix(&format!("{} ", tame(&m.near.system))) {
            Some(kernel) => format!("{near} / {kernel}"),
            None => format!("{near} / {far}"),
        }),
    }
    .filter(|system| !system.is_empty())
}

/// Returns a line for each end and one for the path.
pub(super) fn hosts(m: &Measurement, style: &Style) -> String {
    let mut text = near(m, style);
    text.push_str(&far(m, style));
    text.push_str(&path_line(m, style));
    text
}

/// Returns only those lines that show a problem: drops, a busy CPU, hypervisor steal, a black hole.
pub(super) fn troubled_hosts(m: &Measurement, style: &Style) -> String {
    let troubled = |host: &HostFacts| {
        host.device.as_ref().and_then(|d| d.drops).is_some_and(|drops| drops > 0)
            || host.cpu_busy.is_some_and(|busy| busy > BUSY)
            || host.cpu_steal.is_some_and(|steal| steal > STOLEN)
    };
    let mut text = String::new();
    if troubled(&m.near) {
        text.push_str(&near(m, style));
    }
    if troubled(&m.far) {
        text.push_str(&far(m, style));
    }
    if m.path.mtu_black_hole.is_some() {
        text.push_str(&path_line(m, style));
    }
    text
}

fn near(m: &Measurement, style: &Style) -> String {
    wrap("near     ", Tint::Faint, &host(m, &m.near, Direction::To), style)
}

fn far(m: &Measurement, style: &Style) -> String {
    wrap("far      ", Tint::Faint, &host(m, &m.far, Direction::From), style)
}

fn path_line(m: &Measurement, style: &Style) -> String {
    wrap("path     ", Tint::Faint, &path(m), style)
}

/// Returns the remote end's name, or the name by which it was addressed.
pub(super) fn far_name(m: &Measurement) -> String {
    let name = tame(&m.far.name);
    if name.is_empty() { tame(&m.request.host) } else { name }
}

fn bracketed(address: &str) -> String {
    let address = tame(address);
    if address.contains(':') { format!("[{address}]") } else { address }
}

fn versions(m: &Measurement) -> String {
    let (near, far) = (tame(&m.near.bdp), tame(&m.far.bdp));
    if let Some(peer) = m.request.peer {
        return format!("bdp {near} and {}", peer.name());
    }
    if far.is_empty() {
        return format!("bdp {near} near alone");
    }
    if near == far { format!("bdp {near}") } else { format!("bdp {near} near, {far} far") }
}

/// Returns an end, and the congestion control with which it sends in this direction.
fn host(m: &Measurement, host: &HostFacts, sends: Direction) -> String {
    let mut parts = Vec::new();
    match &host.device {
        Some(device) => {
            parts.push(match device.speed_bps {
                Some(speed) => format!("{} {}", tame(&device.name), format_bps(speed as f64)),
                None => format!("{} (speed unknown)", tame(&device.name)),
            });
            parts.extend(device.mtu.map(|mtu| format!("MTU {mtu}")));
        }
        None => parts.push("device unknown".to_owned()),
    }
    // A server other than bdp reports nothing about its machine.
    if host.system.is_empty() && host.kernel.is_empty() && host.cpus == 0 && host.device.is_none() {
        return "unknown".to_owned();
    }
    if !host.system.is_empty() {
        parts.push(tame(&format!("{} {}", host.system, host.kernel)));
    }
    let sent = m.directions.iter().find(|d| d.direction == sends && d.udp.is_none());
    let used = sent.map(|d| tame(&d.congestion_control)).filter(|name| !name.is_empty());
    parts.extend(match (used, host.congestion_control.as_deref().map(tame)) {
        (Some(used), Some(default)) if used != default => Some(format!("{used} (default {default})")),
        (Some(used), _) => Some(used),
        (None, default) => default.map(|default| format!("default {default}")),
    });
    parts.extend(host.device.as_ref().and_then(|d| d.drops).map(|drops| match drops {
        0 => "no NIC drops".to_owned(),
        n => format!("{n} NIC DROPS"),
    }));
    parts.extend(host.cpu_busy.filter(|&busy| busy > BUSY).map(|busy| format!("CPU {} BUSY", percent(busy))));
    parts.extend(
        host.cpu_steal
            .filter(|&steal| steal > STOLEN)
            .map(|steal| format!("{} STOLEN by its hypervisor", percent(steal))),
    );
    parts.join(", ")
}

fn path(m: &Measurement) -> String {
    let known = |value: Option<u32>| value.map_or_else(|| "?".to_owned(), |v| v.to_string());
    let mut parts = Vec::new();
    parts.push(match m.path.rtt_min_ns {
        Some(ns) => format!("RTT min {} ms", three_digits(ns as f64 / 1e6)),
        None => "RTT unknown".to_owned(),
    });
    parts.push(match (m.path.mtu_to, m.path.mtu_from) {
        (None, None) => "path MTU unknown".to_owned(),
        (to, from) => format!("path MTU {}/{}", known(to), known(from)),
    });
    parts.extend(m.path.mtu_black_hole.map(|hole| format!("BLACK HOLE from there to {}", hole.known_mtu)));
    parts.extend(m.path.mss_bytes.map(|mss| format!("MSS {mss}")));
    parts.join(", ")
}

fn streams(m: &Measurement) -> String {
    let each_way = if m.request.directions.len() > 1 { " each way" } else { "" };
    format!("{} streams{each_way}", m.request.spec.streams)
}
