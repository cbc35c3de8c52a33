//! What stands in the comments of an exported plan: where it is from, what each line is for, and why.

use bdp_model::ends::End;
use bdp_model::tuning::{Plan, Reason};
use bdp_model::units::Nanos;

use super::meaning::{Meaning, Meant};
use super::quote::comment;
use crate::finding::{rate, size, time};
use crate::number::percent;

/// Lines for the top of a file: the host, the path, the run.
pub(super) fn origin(plan: &Plan, end: End, form: &str) -> Vec<String> {
    let name = plan.host(end).map(|host| host.name.as_str()).filter(|name| !name.is_empty());
    let host =
        name.map_or_else(|| format!("the {} end", end.name()), |name| format!("{name} ({} end)", end.name()));
    let rate = plan.path.rate_bps.map_or_else(String::new, |bps| format!("{} and ", rate(bps)));
    let run = plan.run.as_ref().map_or_else(String::new, |run| format!(", by run {run}"));
    let path = format!("a path of {rate}{} round trip{run}", time(Nanos(plan.path.rtt_ns)));
    vec![comment(&format!("Written by 'bdp tune export --as {form}' for {host}: {path}."))]
}

/// What a change is for, why, and what it gives, in sentences.
pub(super) fn purpose(meant: &Meant<'_>) -> String {
    let mut text =
        format!("{}. {}", aim(&meant.meaning, &meant.change.target.to_string()), why(&meant.change.reason));
    if let Some(from) = &meant.change.from {
        text.push_str(&format!(" Measured: {from}."));
    }
    if let Some(gain) = meant.change.gain {
        text.push_str(&format!(
            " Model: {} to {} in direction '{}'.",
            rate(gain.before_bps),
            rate(gain.after_bps),
            gain.direction.name()
        ));
    }
    comment(&text)
}

/// What a change sets, without Linux' name for it.
pub(super) fn aim(meaning: &Meaning, target: &str) -> String {
    let switched = |what: &str, on: bool| format!("{what} {}", if on { "on" } else { "off" });
    match meaning {
        Meaning::ReceiveBuffer { bytes } => {
            format!("Largest receive buffer of autotuning: {}", size(*bytes as f64))
        }
        Meaning::SendBuffer { bytes } => {
            format!("Largest send buffer of autotuning: {}", size(*bytes as f64))
        }
        Meaning::AskedReceiveBuffer { bytes } => {
            format!("Largest receive buffer that a program may set: {}", size(*bytes as f64))
        }
        Meaning::AskedSendBuffer { bytes } => {
            format!("Largest send buffer that a program may set: {}", size(*bytes as f64))
        }
        Meaning::CongestionControl { name, to: None } => {
            format!("Congestion control of all connections: {name}")
        }
        Meaning::CongestionControl { name, to: Some(to) } => {
            format!("Congestion control of connections to {to}: {name}")
        }
        Meaning::WindowScaling { on } => switched("Window scaling", *on),
        Meaning::Sack { on } => switched("Selective acknowledgements", *on),
        Meaning::Timestamps { on } => switched("Timestamps", *on),
        Meaning::RestartAfterIdle { on } => switched("Slow start after idle", *on),
        Meaning::InitialWindow { segments, to } => {
            format!("Initial congestion window to {to}: {segments} segments")
        }
        Meaning::InitialReceiveWindow { segments, to } => {
            format!("Initial receive window from {to}: {segments} segments")
        }
        Meaning::LeastTimeout { ms, to } => format!("Minimum retransmission timeout to {to}: {ms} ms"),
        Meaning::Pacing { device, rate_bps: Some(bps) } => {
            format!("Pacing by fq on {device}, each connection at most {}", rate(*bps as f64))
        }
        Meaning::Pacing { device, rate_bps: None } => format!("Pacing by fq on {device}"),
        Meaning::Queue { device, discipline } => format!("Queueing discipline of {device}: {discipline}"),
        Meaning::DefaultQueue { discipline } => format!("Default queueing discipline: {discipline}"),
        Meaning::MtuProbing { on } => switched("MTU probing", *on),
        Meaning::Backlog { packets } => format!("Backlog of received packets: {packets}"),
        Meaning::Linux => format!("Setting of Linux: {target}"),
    }
}

fn why(reason: &Reason) -> String {
    match reason {
        Reason::Buffer { needed_bytes, in_flight_bytes } => format!(
            "The path needs {}, for {} in flight (rate x round trip).",
            size(*needed_bytes as f64),
            size(*in_flight_bytes as f64)
        ),
        Reason::Off => "It is off, and the path needs it.".to_owned(),
        Reason::RandomLoss { loss, congestion_control } => format!(
            "{} of segments are lost whatever the load, and {congestion_control} answers each loss by a smaller window.",
            percent(*loss)
        ),
        Reason::StandingQueue { added_ns } => format!(
            "The sender keeps a queue at the bottleneck, which adds {} to the median round trip.",
            time(Nanos(*added_ns))
        ),
        Reason::ShallowQueue => "Bursts overflow a short queue on the path.".to_owned(),
        Reason::Policer { rate_bps } => format!("A policer drops what exceeds {}.", rate(*rate_bps)),
        Reason::SlowStart { round_trips } => {
            format!("Transfers end within slow start, which takes {round_trips:.1} round trips.")
        }
        Reason::MtuBlackHole => "Packets of full size vanish on the path.".to_owned(),
        Reason::HostDrops { packets } => format!("The kernel dropped {packets} received packets."),
    }
}
