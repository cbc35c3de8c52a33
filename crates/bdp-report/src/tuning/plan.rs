//! `bdp tune plan`: a plan in words.

use bdp_model::measurement::ends::{Direction, End};
use bdp_model::tuning::{Change, Plan, PlanDirection};
use bdp_model::units::Nanos;

use super::words;
use crate::finding::{rate, time};
use crate::grid::{tame, wrap};
use crate::measurement::arrow;
use crate::style::{Style, Tint};

/// Returns the plan: the path, the changes with reasons, alternatives, and what is left alone.
pub fn plan(plan: &Plan, style: &Style) -> String {
    let mut text = heading(plan, style);
    if plan.changes.is_empty() {
        text.push_str(&wrap("change      ", Tint::Good, "nothing", style));
    }
    text.push_str(&changes("change", plan, &plan.changes, style));
    for other in &plan.alternatives {
        text.push_str(&changes(&format!("or {}", tame(&other.name)), plan, &other.changes, style));
    }
    for advice in &plan.programs {
        let line = format!(
            "{} in a program on {}, for its own connections, in place of {}",
            tame(&advice.call),
            words::host(plan, advice.end),
            words::target(&advice.instead_of)
        );
        text.push_str(&wrap("program     ", Tint::Faint, &line, style));
    }
    for refused in &plan.refused {
        let what = match (&refused.target, refused.end) {
            (Some(target), Some(end)) => {
                format!("{} on {}: ", words::target(target), words::host(plan, end))
            }
            (Some(target), None) => format!("{}: ", words::target(target)),
            _ => String::new(),
        };
        let line = format!("{what}{}", words::why(&refused.why, style));
        text.push_str(&wrap("left alone  ", Tint::Faint, &line, style));
    }
    text
}

/// Returns a change in a line: `net.ipv4.tcp_rmem on ams1: 4096 131072 524288 -> 4096 131072 1179648`.
pub fn change_line(plan: &Plan, change: &Change) -> String {
    let (target, host) = (words::target(&change.target), words::host(plan, change.end));
    format!("{target} on {host}: {}", words::step(change))
}

fn heading(plan: &Plan, style: &Style) -> String {
    let host =
        |end| plan.host(end).map(|host| format!("{} (Linux {})", words::host(plan, end), tame(&host.kernel)));
    let ends = match (host(End::Near), host(End::Far)) {
        (Some(near), Some(far)) => format!("{near} {} {far}", arrow(Direction::To, style)),
        (near, far) => near.or(far).unwrap_or_default(),
    };
    let run = plan.run.as_deref().map_or_else(String::new, |run| format!("run {}, ", tame(run)));
    let streams = match plan.path.streams {
        0 | 1 => String::new(),
        streams => format!(", {streams} streams"),
    };
    let line = format!("{run}{ends}, round trip {}{streams}", time(Nanos(plan.path.rtt_ns)));
    let mut text = wrap("plan        ", Tint::Faint, &line, style);
    for direction in &plan.path.directions {
        text.push_str(&wrap("", Tint::None, &direction_line(direction, style), style));
    }
    text
}

fn direction_line(of: &PlanDirection, style: &Style) -> String {
    let mut parts = Vec::new();
    parts.extend(of.goodput_bps.map(|bps| format!("measured {}", rate(bps))));
    parts.extend(of.limit.map(|limit| format!("limited by {}", limit.noun())));
    parts.push(match of.rate_bps {
        Some(bps) => format!("planned for {}", rate(bps)),
        None => "what it can carry is not known".to_owned(),
    });
    format!("{}           {}", arrow(of.direction, style), parts.join(", "))
}

/// Returns numbered changes, each with its reason and expected gain.
fn changes(label: &str, plan: &Plan, changes: &[Change], style: &Style) -> String {
    let mut text = String::new();
    for (i, change) in changes.iter().enumerate() {
        let label = if i == 0 { label } else { "" };
        let line = format!("{}. {}", i + 1, change_line(plan, change));
        text.push_str(&wrap(&format!("{label:<12}"), Tint::Strong, &line, style));
        let mut why = words::reason(plan, change);
        if let Some(gain) = &change.gain {
            why.push_str(&format!("; {}", words::gain(gain, style)));
        }
        text.push_str(&wrap(&" ".repeat(15), Tint::None, &why, style));
    }
    text
}
