//! Changes, reasons and refusals in words.

use bdp_model::measurement::ends::End;
use bdp_model::tuning::advice::{Verdict, VerdictKind};
use bdp_model::tuning::setting::Setting;
use bdp_model::tuning::{Change, Gain, Plan, Reason, Target, Why};
use bdp_model::units::Nanos;

use crate::finding::{rate, size, time};
use crate::grid::tame;
use crate::measurement::arrow;
use crate::number::percent;
use crate::style::Style;

/// Returns a machine of the plan: its name, or which end it is if both have the same name.
pub(super) fn host(plan: &Plan, end: End) -> String {
    let name = plan.host(end).map(|host| tame(&host.name)).unwrap_or_default();
    let is_told_apart = plan.far.as_ref().is_none_or(|far| far.name != plan.near.name);
    match end {
        _ if !name.is_empty() && is_told_apart => name,
        End::Near => "the near end".to_owned(),
        End::Far => "the far end".to_owned(),
    }
}

/// Returns what is set: `net.ipv4.tcp_rmem`, `route to 192.0.2.7 congctl`.
pub(super) fn target(target: &Target) -> String {
    tame(&target.to_string())
}

/// `4096 131072 524288 -> 4096 131072 1245184`.
pub(super) fn step(change: &Change) -> String {
    let from = change.from.as_deref().map_or_else(|| "not set".to_owned(), tame);
    format!("{from} -> {}", tame(&change.to))
}

/// Returns the reason in a sentence.
pub(super) fn reason(plan: &Plan, change: &Change) -> String {
    match &change.reason {
        Reason::Buffer { needed_bytes, in_flight_bytes } => format!(
            "the path needs {} in flight; the kernel keeps that in a buffer of {}",
            size(*in_flight_bytes as f64),
            size(*needed_bytes as f64)
        ),
        Reason::Off => "it is off, and this path needs it".to_owned(),
        Reason::RandomLoss { loss, congestion_control } => format!(
            "{} of the segments are lost whatever the rate, and {} makes its window smaller after each loss",
            percent(*loss),
            tame(congestion_control)
        ),
        Reason::StandingQueue { added_ns } => format!(
            "the sender keeps a queue standing that adds {} to the median round trip",
            time(Nanos(*added_ns))
        ),
        Reason::ShallowQueue => "its bursts overflow a short queue on the path".to_owned(),
        Reason::Policer { rate_bps } => {
            format!("the path drops what exceeds {}; a sender that goes by rate loses less", rate(*rate_bps))
        }
        Reason::SlowStart { round_trips } => format!(
            "the transfer was over after {round_trips:.0} round trips, in slow start; a larger first window saves some"
        ),
        Reason::Timeouts { timeouts } => format!(
            "{timeouts} retransmission timeouts, of which each waits for 200 ms at the least, many round trips of this path"
        ),
        Reason::MtuBlackHole => {
            format!(
                "packets of full size vanish; with it {} finds the size that passes",
                host(plan, change.end)
            )
        }
        Reason::HostDrops { packets } => {
            format!("the kernel dropped {packets} packets of its receive backlog")
        }
    }
}

/// Returns the expected gain by the model.
pub(super) fn gain(gain: &Gain, style: &Style) -> String {
    let way = arrow(gain.direction, style);
    match gain.loaded_rtt_less_ns {
        Some(less) => format!("by the model {way} up to {} less round trip under load", time(Nanos(less))),
        None => {
            let next =
                gain.next.map_or_else(String::new, |next| format!("; then {} is the limit", next.noun()));
            format!("by the model {way} {} -> {}{next}", rate(gain.before_bps), rate(gain.after_bps))
        }
    }
}

/// Returns why something is left alone.
pub(super) fn why(why: &Why, style: &Style) -> String {
    match why {
        Why::Enough { value, needed } => {
            let needed = needed.parse().map_or_else(
                |_| tame(needed),
                |bytes: f64| match bytes >= 4096.0 {
                    true => size(bytes),
                    false => needed.clone(),
                },
            );
            format!("{} is enough; the path needs {needed}", tame(value))
        }
        Why::NotRead => "this kernel does not read it".to_owned(),
        Why::Memory { needed_bytes, available_bytes } => format!(
            "it takes {}, and TCP on this host may take {} before it saves memory ({})",
            size(*needed_bytes as f64),
            size(*available_bytes as f64),
            Setting::TcpMem.short
        ),
        Why::NotAvailable { name } => {
            format!("its kernel has no {}; 'modprobe tcp_{}' may load it", tame(name), tame(name))
        }
        Why::Unknown => "its value there is not known; measure with this bdp at both ends".to_owned(),
        Why::NotOurs { value } => {
            format!("somebody set it to '{}', and bdp could not put that back", tame(value))
        }
        Why::NotOfHosts { direction, limit } => {
            format!("{} {}: no setting of a host changes that", arrow(*direction, style), limit.noun())
        }
        Why::Asked { option } => format!("{} was asked for, and binds; leave it out", tame(option)),
    }
}

/// Returns the verdict on a piece of advice: `stale since Linux 4.14: has no effect`.
pub(super) fn verdict(of: &Verdict) -> String {
    let kind = match of.kind {
        VerdictKind::Current => "current",
        VerdictKind::Default => "default already",
        VerdictKind::Stale => "stale",
        VerdictKind::Harmful => "harmful",
    };
    let since = of.since.map_or_else(String::new, |since| format!(" since Linux {since}"));
    format!("{kind}{since}: {}", of.why)
}
