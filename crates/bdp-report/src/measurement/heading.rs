//! Who measured whom, over what.

use bdp_model::measurement::{HostFacts, Measurement};
use bdp_model::responsiveness::MOST_CONNECTIONS;
use bdp_model::units::format_bps;

use super::arrow;
use crate::grid::{tame, width, wrap};
use crate::number::{percent, three_digits};
use crate::style::{Style, Tint};

/// The line of both ends, a line for each, and one for the path.
pub(super) fn heading(m: &Measurement, run: Option<&str>, style: &Style) -> String {
    let arrow = arrow(bdp_model::measurement::Direction::To, style);
    let far = format!("{}:{}", bracketed(&m.far.address), m.request.port);
    let mut parts = vec![
        format!("{} {} {arrow} {} {far}", tame(&m.near.name), tame(&m.near.address), far_name(m)),
        versions(m),
    ];
    parts.extend(m.label.as_deref().map(|label| format!("label {}", tame(label))));
    parts.extend(run.map(|run| format!("run {run}")));
    let mut text = flow(&parts, style);
    text.push_str(&wrap("near  ", Tint::Faint, &host(&m.near), style));
    text.push_str(&wrap("far   ", Tint::Faint, &host(&m.far), style));
    text.push_str(&wrap("path  ", Tint::Faint, &path(m), style));
    text
}

/// The far end's name, or what it was called.
pub(super) fn far_name(m: &Measurement) -> String {
    let name = tame(&m.far.name);
    if name.is_empty() { tame(&m.request.host) } else { name }
}

/// Parts with wide gaps in as few lines as they fit.
fn flow(parts: &[String], style: &Style) -> String {
    const GAP: &str = "    ";
    let mut lines: Vec<String> = Vec::new();
    for part in parts {
        match lines.last_mut() {
            Some(line) if width(line) + GAP.len() + width(part) <= style.columns() => {
                line.push_str(GAP);
                line.push_str(part);
            }
            _ => lines.push(part.clone()),
        }
    }
    lines
        .iter()
        .map(|line| wrap("", Tint::None, line, style))
        .zip(&lines)
        .map(|(wrapped, line)| {
            // Wrapping would close the gaps of a line that needs none.
            if width(line) <= style.columns() { format!("{line}\n") } else { wrapped }
        })
        .collect()
}

fn bracketed(address: &str) -> String {
    let address = tame(address);
    if address.contains(':') { format!("[{address}]") } else { address }
}

fn versions(m: &Measurement) -> String {
    let (near, far) = (tame(&m.near.bdp), tame(&m.far.bdp));
    if let Some(peer) = m.request.peer {
        return format!("bdp {near} near, {} far", peer.name());
    }
    if far.is_empty() {
        return format!("bdp {near} near alone");
    }
    if near == far { format!("bdp {near} both ends") } else { format!("bdp {near} near, {far} far") }
}

fn host(host: &HostFacts) -> String {
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
    // A server that is not bdp reports nothing of its machine.
    if host.system.is_empty() && host.kernel.is_empty() && host.cpus == 0 && host.device.is_none() {
        return "unknown".to_owned();
    }
    if !host.system.is_empty() {
        parts.push(tame(&format!("{} {}", host.system, host.kernel)));
    }
    parts.extend(host.congestion_control.as_deref().map(tame));
    parts.extend(host.device.as_ref().and_then(|d| d.drops).map(|drops| match drops {
        0 => "no NIC drops".to_owned(),
        n => format!("{n} NIC DROPS"),
    }));
    parts.extend(host.cpu_busy.filter(|&busy| busy > 0.8).map(|busy| format!("CPU {} BUSY", percent(busy))));
    parts.extend(
        host.cpu_steal
            .filter(|&steal| steal > 0.02)
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
    if m.request.responsiveness {
        parts.push(format!("up to {MOST_CONNECTIONS} connections"));
    } else if m.request.spec.streams > 1 {
        let each_way = if m.request.directions.len() > 1 { " each way" } else { "" };
        parts.push(format!("{} streams{each_way}", m.request.spec.streams));
    }
    parts.join(", ")
}
