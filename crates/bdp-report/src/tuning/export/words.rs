//! Comments of an exported plan: its origin, the purpose of each line, and the reasons.

use bdp_model::measurement::ends::End;
use bdp_model::tuning::Plan;
use bdp_model::units::Nanos;

use super::meaning::{Meaning, Meant};
use super::quote::comment;
use crate::finding::{rate, size, time};
use crate::tuning::words::reason;

/// Returns lines for the top of a file: host, path, run.
pub(super) fn origin(plan: &Plan, end: End, form: &str) -> Vec<String> {
    let name = plan.host(end).map(|host| host.name.as_str()).filter(|name| !name.is_empty());
    let host =
        name.map_or_else(|| format!("the {} end", end.name()), |name| format!("{name} ({} end)", end.name()));
    let most = plan.path.directions.iter().filter_map(|one| one.rate_bps).reduce(f64::max);
    let rate = most.map_or_else(String::new, |bps| format!("{} and ", rate(bps)));
    let run = plan.run.as_ref().map_or_else(String::new, |run| format!(", by run {run}"));
    let path = format!("a path of {rate}{} round trip{run}", time(Nanos(plan.path.rtt_ns)));
    vec![comment(&format!("Written by 'bdp tune export --as {form}' for {host}: {path}."))]
}

/// Returns the purpose, reason and expected gain of a change in a line.
pub(super) fn purpose(plan: &Plan, meant: &Meant<'_>) -> String {
    let change = meant.change;
    let mut text = format!("{}: {}.", aim(&meant.meaning, &change.target.to_string()), reason(plan, change));
    if let Some(from) = &change.from {
        text.push_str(&format!(" Measured: {from}."));
    }
    if let Some(gain) = change.gain.filter(|gain| gain.loaded_rtt_less_ns.is_none()) {
        text.push_str(&format!(" By the model {} become {}.", rate(gain.before_bps), rate(gain.after_bps)));
    }
    comment(&text)
}

/// Returns what a change sets, without Linux's name for it.
pub(super) fn aim(meaning: &Meaning, target: &str) -> String {
    let switched = |what: &str, on: bool| format!("{what} {}", if on { "on" } else { "off" });
    match meaning {
        Meaning::ReceiveBuffer { bytes } => {
            format!("Largest receive buffer of autotuning {}", size(*bytes as f64))
        }
        Meaning::SendBuffer { bytes } => {
            format!("Largest send buffer of autotuning {}", size(*bytes as f64))
        }
        Meaning::AskedReceiveBuffer { bytes } => {
            format!("Largest receive buffer that a program may set {}", size(*bytes as f64))
        }
        Meaning::AskedSendBuffer { bytes } => {
            format!("Largest send buffer that a program may set {}", size(*bytes as f64))
        }
        Meaning::CongestionControl { name, to: None } => {
            format!("Congestion control of all connections {name}")
        }
        Meaning::CongestionControl { name, to: Some(to) } => {
            format!("Congestion control of connections to {to} {name}")
        }
        Meaning::WindowScaling { on } => switched("Window scaling", *on),
        Meaning::Sack { on } => switched("Selective acknowledgements", *on),
        Meaning::Timestamps { on } => switched("Timestamps", *on),
        Meaning::RestartAfterIdle { on } => switched("Slow start after idle", *on),
        Meaning::InitialWindow { segments, to } => {
            format!("Initial congestion window to {to} {segments} segments")
        }
        Meaning::InitialReceiveWindow { segments, to } => {
            format!("Initial receive window from {to} {segments} segments")
        }
        Meaning::LeastTimeout { ms, to } => format!("Minimum retransmission timeout to {to} {ms} ms"),
        Meaning::Pacing { device, rate_bps: Some(bps) } => {
            format!("Pacing by fq on {device}, each connection at most {}", rate(*bps as f64))
        }
        Meaning::Pacing { device, rate_bps: None } => format!("Pacing by fq on {device}"),
        Meaning::Queue { device, discipline } => format!("Queueing discipline of {device} {discipline}"),
        Meaning::DefaultQueue { discipline } => format!("Default queueing discipline {discipline}"),
        Meaning::Ecn { asks } => switched("ECN on connections that this host opens", *asks),
        Meaning::MtuProbing { on } => switched("MTU probing", *on),
        Meaning::Backlog { packets } => format!("Backlog of received packets {packets}"),
        Meaning::Linux => format!("Setting of Linux {target}"),
    }
}
