//! Conditions of a measurement, and the command that repeats it.

use bdp_model::measurement::{HostFacts, Measurement};
use bdp_model::units::format_bps;
use maud::{Markup, html};

use super::glossary::on_demand;
use super::measured_table::{Varied, arrow};
use super::page::{About, facts, note};
use crate::caveat;
use crate::measurement::{against, in_store, pacing_words, typed};
use crate::number::percent;

/// Returns both machines, the request, the caveats, and the command that repeats the measurement.
pub(super) fn section(measurements: &[Varied<'_>], about: &About<'_>) -> Markup {
    let Some((_, first)) = measurements.first() else { return Markup::default() };
    let all: Vec<&Measurement> = measurements.iter().map(|(_, m)| *m).collect();
    let caveats = caveat::said(&all, |caveat| caveat::is_detail(&all, caveat));
    let mut lines: Vec<String> = about.command.map(str::to_owned).into_iter().collect();
    let swept = measurements.iter().any(|(params, _)| *params != measurements[0].0);
    lines.extend(about.run.map(|run| match swept {
        // A sweep can't be the baseline of a measurement.
        true => in_store(&format!("bdp compare {run} OTHER"), about.store),
        false => against(first, run, about.store),
    }));
    let content = html! {
        @if !lines.is_empty() {
            (note("To repeat it, and to compare another run with it:"))
            pre { code { (lines.join("\n")) } } "\n"
        }
        (facts("What was asked for", &request(first)))
        (facts("Near end", &host(&first.near)))
        (facts("Far end", &host(&first.far)))
    };
    html! {
        @if !caveats.is_empty() {
            p { "To know before relying on the figures:" }
            ul { @for caveat in caveats { li { (caveat) } } } "\n"
        }
        (on_demand("conditions", "Conditions", &content))
    }
}

fn request(m: &Measurement) -> Vec<(String, String)> {
    let (r, spec) = (&m.request, &m.request.spec);
    let mut flow = vec![format!("{}, the first {} not counted", spec.duration, spec.omit)];
    flow.push(match spec.streams {
        1 => "one stream".to_owned(),
        n => format!("{n} streams"),
    });
    flow.push(match &spec.udp {
        None => format!("writes of {}", spec.length),
        Some(udp) => {
            let size = udp
                .datagram_bytes
                .map_or_else(|| "what the path's MTU holds".to_owned(), |b| format!("{b} B"));
            let rate = match (udp.search, udp.rate_bps) {
                (Some(_), _) => "highest rate without loss (search)".to_owned(),
                (None, Some(bps)) => format!("{} each", format_bps(bps as f64)),
                (None, None) => "as fast as possible".to_owned(),
            };
            format!("UDP datagrams of {size}, {rate}")
        }
    });
    let used: Vec<String> =
        m.directions.iter().map(|d| format!("{} {}", arrow(m, d.direction), d.congestion_control)).collect();
    let paced: Vec<String> = m
        .directions
        .iter()
        .filter_map(|d| {
            let words = pacing_words(m, d, d.pacing.as_ref()?);
            Some(format!("{} {words}", arrow(m, d.direction)))
        })
        .collect();
    vec![
        ("peer".to_owned(), format!("{} port {}", r.host, r.port)),
        ("flow".to_owned(), flow.join(", ")),
        ("options".to_owned(), typed(r).collect::<Vec<_>>().join(" ")),
        (
            "congestion control in use".to_owned(),
            if spec.udp.is_some() { String::new() } else { used.join(", ") },
        ),
        ("pacing".to_owned(), paced.join("; ")),
        ("idle before it".to_owned(), r.idle.to_string()),
        ("samples".to_owned(), format!("every {}", spec.interval)),
    ]
}

fn host(host: &HostFacts) -> Vec<(String, String)> {
    let device = host.device.as_ref().map(|d| {
        let mut parts = vec![d.name.clone()];
        parts.push(d.speed_bps.map_or_else(|| "speed unknown".to_owned(), |s| format_bps(s as f64)));
        parts.extend(d.mtu.map(|mtu| format!("MTU {mtu}")));
        parts.extend(d.drops.map(|n| format!("{n} packets dropped meanwhile")));
        parts.join(", ")
    });
    let cpu = host.cpu_busy.map(|busy| {
        let steal =
            host.cpu_steal.map(|s| format!(", {} taken by a hypervisor", percent(s))).unwrap_or_default();
        format!("{} processors, {} busy{steal}", host.cpus, percent(busy))
    });
    let sysctls = host.sysctls.iter().map(|(k, v)| {
        format!(
            "{} = {}",
            k.strip_prefix("net.ipv4.").unwrap_or(k),
            v.split_whitespace().collect::<Vec<_>>().join(" ")
        )
    });
    vec![
        ("host".to_owned(), format!("{} {}", host.name, host.address)),
        ("system".to_owned(), format!("{} {} {}, bdp {}", host.system, host.kernel, host.arch, host.bdp)),
        ("device".to_owned(), device.unwrap_or_default()),
        ("processors".to_owned(), cpu.unwrap_or_else(|| host.cpus.to_string())),
        ("default congestion control".to_owned(), host.congestion_control.clone().unwrap_or_default()),
        ("sysctls".to_owned(), sysctls.collect::<Vec<_>>().join("; ")),
    ]
}
