//! The report on measurements between two machines: one, several alike, or a sweep.

use std::collections::BTreeMap;

use bdp_model::measurement::{DirectionResult, HostFacts, Measurement, Way};
use bdp_model::record::{RttReport, RttSummary};
use bdp_model::units::{format_bps, significant};
use serde_json::Value;

use super::curve;
use super::datagrams;
use super::distribution;
use super::lab::charts;
use super::page::{About, facts, head, numbers, page, words};
use super::plain_language::{self, Described};
use super::repetitions::{self, Row};
use super::sentence::lower_first;
use super::transfer::Transfer;
use super::verdict::{self, Verdict};
use crate::caveat;
use crate::markup::Markup;
use crate::measurement::{against, in_store, latency, pacing_words};
use crate::number::{RateUnit, asked_size, percent, size};
use crate::summary::Spread;
use bdp_model::measured_curves::{measured_curves, toward};

/// A measurement, and what was varied for it.
pub type Varied<'a> = (&'a BTreeMap<String, Value>, &'a Measurement);

/// A page about measurements, whole in itself: HTML with style and drawings in it.
pub fn html_of_measurements(measurements: &[Varied<'_>], about: &About<'_>) -> String {
    let mut m = Markup::default();
    let Some((_, first)) = measurements.first() else {
        let title = about.begin(&mut m, about.label.unwrap_or("No measurement").to_owned(), []);
        Verdict { headline: "No measurement has ended yet.".to_owned(), why: String::new() }.write(&mut m);
        return page(&title, m);
    };
    let path = format!("{} – {}", name(&first.near, "near"), name(&first.far, &first.request.host));
    let own = about.label.or(first.label.as_deref()).map_or(path.clone(), |l| format!("{l}: {path}"));
    let title = about.begin(&mut m, own, line(first));
    let groups = groups(measurements);
    match groups.as_slice() {
        [(_, runs)] => alike(&mut m, runs),
        _ => sweep(&mut m, measurements, &groups),
    }
    conditions(&mut m, measurements, about);
    page(&title, m)
}

fn name(host: &HostFacts, otherwise: &str) -> String {
    [host.name.as_str(), host.address.as_str()]
        .into_iter()
        .find(|n| !n.is_empty())
        .unwrap_or(otherwise)
        .to_owned()
}

fn line(m: &Measurement) -> Vec<String> {
    let ms = |ns: u64| significant(ns as f64 / 1e6);
    let both = |a: Option<u32>, b: Option<u32>| {
        let text = |mtu: Option<u32>| mtu.map_or_else(|| "unknown".to_owned(), |v| v.to_string());
        if a == b { text(a) } else { format!("{} out, {} back", text(a), text(b)) }
    };
    let mut line = Vec::new();
    line.extend(m.path.rtt_min_ns.map(|ns| format!("smallest round trip {} ms", ms(ns))));
    line.push(format!("path MTU {}", both(m.path.mtu_to, m.path.mtu_from)));
    line.extend(
        m.path
            .mtu_black_hole
            .map(|hole| format!("a black hole for packets from there to {} B", hole.known_mtu)),
    );
    line.extend(m.path.mss_bytes.map(|mss| format!("MSS {mss}")));
    line
}

/// Measurements by what was varied, in the order in which they came.
fn groups<'a>(measurements: &[Varied<'a>]) -> Vec<(&'a BTreeMap<String, Value>, Vec<&'a Measurement>)> {
    let mut groups: Vec<(&BTreeMap<String, Value>, Vec<&Measurement>)> = Vec::new();
    for &(params, measurement) in measurements {
        match groups.iter_mut().find(|(p, _)| *p == params) {
            Some((_, members)) => members.push(measurement),
            None => groups.push((params, vec![measurement])),
        }
    }
    groups
}

fn ways(runs: &[&Measurement]) -> Vec<Way> {
    let mut ways = Vec::new();
    for direction in runs.iter().flat_map(|m| &m.directions) {
        if !ways.contains(&direction.direction) {
            ways.push(direction.direction);
        }
    }
    ways
}

fn of(m: &Measurement, way: Way) -> Option<&DirectionResult> {
    m.directions.iter().find(|d| d.direction == way)
}

/// `→ ams1`, `← ams1`.
fn arrow(m: &Measurement, way: Way) -> String {
    let far = name(&m.far, &m.request.host);
    match way {
        Way::To => format!("→ {far}"),
        Way::From => format!("← {far}"),
    }
}

/// The run whose goodput is the (lower) median.
fn typical<'a>(runs: &[&'a Measurement], way: Way) -> Option<(&'a Measurement, &'a DirectionResult)> {
    let mut all: Vec<(&Measurement, &DirectionResult)> =
        runs.iter().filter_map(|m| Some((*m, of(m, way)?))).collect();
    all.sort_by(|a, b| a.1.goodput_bps.total_cmp(&b.1.goodput_bps));
    let middle = all.len().checked_sub(1)? / 2;
    all.get(middle).copied()
}

/// Runs of one request: the verdict on each direction, the figures, the charts.
fn alike(m: &mut Markup, runs: &[&Measurement]) {
    let ways = ways(runs);
    for error in runs.iter().filter_map(|r| r.error.as_deref()) {
        Verdict { headline: "A measurement failed.".to_owned(), why: error.to_owned() }.write(m);
    }
    for &way in &ways {
        let Some((measurement, direction)) = typical(runs, way) else { continue };
        verdict_on(measurement, direction).write(m);
        let transfer = transfer(measurement, direction);
        m.append(verdict::bar(&transfer, None));
        if let Some(finding) = direction.findings.first() {
            verdict::further(m, finding);
        }
    }
    in_plain_language(m, runs, &ways);
    figures(m, runs, &ways);
    let rows = ways.iter().map(|&way| Row {
        name: runs.first().map(|r| arrow(r, way)).unwrap_or_default(),
        values_bps: runs.iter().filter_map(|r| Some((of(r, way)?.goodput_bps, true))).collect(),
        model_bps: None,
    });
    if let Some(figure) = repetitions::draw(rows.collect(), "goodput") {
        figure.write(m);
    }
    for &way in &ways {
        let Some((measurement, direction)) = typical(runs, way) else { continue };
        let title = arrow(measurement, way);
        m.leaf("h2", &[("id", way.name())], &title);
        if runs.len() > 1 {
            let text = format!(
                "Run {} of {}, the one whose goodput is the median of this direction.",
                measurement.repetition,
                runs.len()
            );
            m.leaf("p", &[("class", "note")], &text);
        }
        datagrams::of_direction(m, measurement, direction, &title);
        let idle = direction.rtt_ns.idle.or(measurement.rtt_idle_ns);
        let round_trips = distribution::figure(&RttReport { idle, ..direction.rtt_ns.clone() }, &title);
        charts(m, &transfer(measurement, direction), &title, round_trips);
    }
}

fn transfer<'a>(m: &'a Measurement, d: &'a DirectionResult) -> Transfer<'a> {
    let far = if m.far.name.is_empty() { m.request.host.as_str() } else { m.far.name.as_str() };
    let near = if m.near.name.is_empty() { "near" } else { m.near.name.as_str() };
    let (from, to) = match d.direction {
        Way::To => (near, far),
        Way::From => (far, near),
    };
    let idle = d.rtt_ns.idle.as_ref().or(m.rtt_idle_ns.as_ref()).map(|s| s.min);
    Transfer {
        from,
        to,
        goodput_bps: d.goodput_bps,
        omit_ns: d.omit_ns,
        streams: d.stream_goodput_bps.len().max(1),
        mss_bytes: d.mss_bytes.or(m.path.mss_bytes),
        retransmits: d.retransmits,
        window: &d.window,
        received: &d.received,
        sent: &d.sent,
        rtt_min_ns: idle.or(m.path.rtt_min_ns),
        ceiling: m.ceiling.as_ref().map(|c| (c.goodput_bps, c.by.clone())),
        rate_bps: m.ceiling.as_ref().map(|c| c.goodput_bps),
    }
}

/// What was measured, what limits each direction and what to do, for readers who are no network engineers.
fn in_plain_language(m: &mut Markup, runs: &[&Measurement], ways: &[Way]) {
    let all: Vec<_> = ways.iter().filter_map(|&way| typical(runs, way)).collect();
    let transfers: Vec<Transfer<'_>> = all.iter().map(|(run, direction)| transfer(run, direction)).collect();
    let [first, ..] = transfers.as_slice() else { return };
    let described: Vec<Described<'_>> = (all.iter().zip(&transfers))
        .map(|((_, direction), transfer)| Described {
            from: transfer.from,
            to: transfer.to,
            goodput_bps: direction.goodput_bps,
            finding: direction.findings.first(),
            rtt: &direction.rtt_ns,
        })
        .collect();
    let mut sentences = vec![format!(
        "This test sent data {} {} and {} and measured how fast it arrived.",
        if ways.len() > 1 { "both ways between" } else { "between" },
        first.from,
        first.to
    )];
    if runs.len() > 1 {
        sentences.push(format!("It ran {} times; the figures are medians.", runs.len()));
    }
    sentences.extend(plain_language::sentences(&described));
    plain_language::write(m, &sentences);
}

/// What bdp found to limit a direction, in its own words; the figures alone where it found nothing.
fn verdict_on(m: &Measurement, d: &DirectionResult) -> Verdict {
    let here = format!("{} {}", arrow(m, d.direction), format_bps(d.goodput_bps));
    let Some(finding) = d.findings.first() else {
        let inferred = verdict::of_transfer(&transfer(m, d), None);
        return Verdict { headline: format!("{} {}", arrow(m, d.direction), inferred.headline), ..inferred };
    };
    verdict::of_finding(&here, finding)
}

/// The table of the terminal: the idle path, and each direction of each run.
fn figures(m: &mut Markup, runs: &[&Measurement], ways: &[Way]) {
    let unit = RateUnit::fitting(runs.iter().flat_map(|r| &r.directions).map(|d| d.goodput_bps));
    m.element("div", &[("class", "scroll")], |m| {
        m.element("table", &[], |m| {
            head(m, &headings(unit, false));
            m.element("tbody", &[], |m| {
                if let Some(idle) = runs.iter().find_map(|r| r.rtt_idle_ns.as_ref()) {
                    m.element("tr", &[], |m| {
                        m.leaf("td", &[], "idle");
                        for text in ["", "", "", ""] {
                            m.leaf("td", &[("class", "n")], text);
                        }
                        m.leaf("td", &[("class", "n")], &quantiles(idle));
                        m.leaf("td", &[], "");
                        m.leaf("td", &[], "");
                    });
                }
                for &way in ways {
                    for run in runs {
                        let Some(direction) = of(run, way) else { continue };
                        let number =
                            if runs.len() > 1 { format!(" #{}", run.repetition) } else { String::new() };
                        row(m, &format!("{}{number}", arrow(run, way)), None, run, direction, unit);
                    }
                }
            });
        });
    });
    for &way in ways {
        let Some((run, direction)) = typical(runs, way) else { continue };
        if let Some(words) = latency::in_words(direction) {
            m.leaf("p", &[("class", "note")], &format!("{}: {words}.", arrow(run, way)));
        }
    }
    if let Some(ceiling) = runs.iter().find_map(|r| r.ceiling.as_ref()) {
        let text = format!(
            "Ceiling {} from {}; the path may allow less.",
            format_bps(ceiling.goodput_bps),
            ceiling.by
        );
        m.leaf("p", &[("class", "note")], &text);
    }
    m.line();
}

fn headings(unit: RateUnit, varied: bool) -> Vec<super::page::Heading> {
    let mut all = vec![words("")];
    if varied {
        all.push(words("varied"));
    }
    all.extend([
        numbers(format!("goodput, {}", unit.name)),
        numbers("p5 to p95 of intervals"),
        numbers("of ceiling"),
        numbers("retransmits"),
        numbers("RTT p50 / p95 / p99, ms"),
        numbers("window on the wire"),
        words("window asked"),
    ]);
    all
}

fn row(
    m: &mut Markup,
    name: &str,
    varied: Option<&str>,
    run: &Measurement,
    direction: &DirectionResult,
    unit: RateUnit,
) {
    let dash = || "–".to_owned();
    let bytes = |b: Option<u64>| b.map_or_else(dash, |b| size(b as f64));
    let spread = direction.spread.filter(|s| s.intervals > 1);
    let cells = [
        spread
            .and_then(|s| s.range())
            .map_or_else(dash, |(low, high, _)| format!("{} to {}", unit.format(low), unit.format(high))),
        run.ceiling.as_ref().map_or_else(dash, |c| percent(direction.goodput_bps / c.goodput_bps)),
        direction.retransmits.map_or_else(dash, |n| n.to_string()),
        direction.rtt_ns.loaded.as_ref().map_or_else(dash, quantiles),
        bytes(direction.window.on_the_wire_bytes),
    ];
    m.element("tr", &[], |m| {
        m.leaf("td", &[], name);
        if let Some(varied) = varied {
            m.leaf("td", &[], varied);
        }
        m.leaf("td", &[("class", "n strong")], &unit.format(direction.goodput_bps));
        for cell in &cells {
            m.leaf("td", &[("class", "n")], cell);
        }
        let otherwise = || if direction.udp.is_some() { dash() } else { "autotuned".to_owned() };
        m.leaf("td", &[], &direction.window.asked_bytes.map_or_else(otherwise, asked_size));
    });
    m.line();
}

fn quantiles(summary: &RttSummary) -> String {
    let ms = |ns: Option<u64>| ns.map_or_else(|| "–".to_owned(), |ns| significant(ns as f64 / 1e6));
    format!("{} / {} / {}", ms(Some(summary.p50)), ms(summary.p95), ms(summary.p99))
}

/// Measurements that differ in what was varied: a curve for each direction, and the table of all.
fn sweep(m: &mut Markup, all: &[Varied<'_>], groups: &[(&BTreeMap<String, Value>, Vec<&Measurement>)]) {
    let curves: Vec<curve::Curve<'_, '_>> =
        measured_curves(all).into_iter().filter_map(curve::of_known).collect();
    let failed = all.iter().filter(|(_, m)| m.error.is_some()).count();
    // Names of curves begin with their path, which reads better as an arrow to or from the far end.
    let pointed = |name: &str| {
        let of = |way| Some(arrow(all.first()?.1, way) + name.strip_prefix(&toward(way, all.first()?.1))?);
        of(Way::To).or_else(|| of(Way::From)).unwrap_or_else(|| name.to_owned())
    };
    let mut headline: Vec<String> = curves
        .iter()
        .filter_map(|drawn| Some(format!("{}: {}", pointed(&drawn.name), lower_first(&drawn.headline()?))))
        .take(2)
        .collect();
    if headline.is_empty() {
        let goodputs = all.iter().flat_map(|(_, m)| &m.directions).map(|d| d.goodput_bps);
        headline.push(match Spread::of(goodputs) {
            Some(s) => format!("{} points, {} to {}.", groups.len(), format_bps(s.min), format_bps(s.max)),
            None => format!("None of {} points gave a figure.", groups.len()),
        });
    }
    let why = if failed > 0 { format!("{failed} measurements failed.") } else { String::new() };
    Verdict { headline: headline.join(" "), why }.write(m);
    let mut sentences = vec![format!(
        "This test repeated a measurement with {} different settings, to find the smallest that reaches nearly all of the speed.",
        groups.len()
    )];
    sentences.extend(
        curves
            .iter()
            .filter_map(|c| Some(format!("{}: {}", pointed(&c.name), lower_first(&c.knee_words()?)))),
    );
    plain_language::write(m, &sentences);
    for drawn in &curves {
        if curves.len() > 1 {
            m.leaf("h3", &[], &pointed(&drawn.name));
        }
        drawn.goodput_figure().write(m);
        if let Some(figure) = drawn.delay_figure() {
            figure.write(m);
        }
    }
    let known: Vec<bdp_model::curve::Curve> = curves.iter().filter_map(|c| c.known.clone()).collect();
    for (path, memory) in bdp_model::curve::Memory::by_path(&known) {
        let words = crate::sweep_report::memory_words(&memory, &super::overview::TEXT);
        m.leaf("p", &[("class", "note")], &format!("{}: memory {words}.", pointed(&path)));
    }
    let unit = RateUnit::fitting(all.iter().flat_map(|(_, m)| &m.directions).map(|d| d.goodput_bps));
    m.element("div", &[("class", "scroll")], |m| {
        m.element("table", &[], |m| {
            head(m, &headings(unit, true));
            m.element("tbody", &[], |m| {
                for (params, runs) in groups {
                    let params: Vec<String> =
                        params.iter().map(|(k, v)| format!("{k} {}", plain(v))).collect();
                    for run in runs {
                        for direction in &run.directions {
                            let name = arrow(run, direction.direction);
                            row(m, &name, Some(&params.join(", ")), run, direction, unit);
                        }
                    }
                }
            });
        });
    });
    m.line();
}

fn plain(value: &Value) -> String {
    value.as_str().map_or_else(|| value.to_string(), str::to_owned)
}

/// Both machines, the request, the caveats, the command that repeats it.
fn conditions(m: &mut Markup, measurements: &[Varied<'_>], about: &About<'_>) {
    let Some((_, first)) = measurements.first() else { return };
    m.leaf("h2", &[("id", "conditions")], "Conditions");
    let mut lines: Vec<String> = about.command.map(str::to_owned).into_iter().collect();
    let swept = measurements.iter().any(|(params, _)| *params != measurements[0].0);
    lines.extend(about.run.map(|run| match swept {
        // A sweep is no baseline of a measurement.
        true => in_store(&format!("bdp compare {run} OTHER"), about.store),
        false => against(first, run, about.store),
    }));
    if !lines.is_empty() {
        m.leaf("p", &[("class", "note")], "To repeat it, and to compare another run with it:");
        m.element("pre", &[], |m| m.leaf("code", &[], &lines.join("\n")));
    }
    m.line();
    let caveats = caveat::distinct(measurements.iter().flat_map(|(_, m)| &m.caveats));
    if !caveats.is_empty() {
        m.leaf("p", &[], "To know before relying on the figures:");
        m.element("ul", &[], |m| {
            for caveat in caveats {
                m.leaf("li", &[], &caveat::text(caveat));
            }
        });
    }
    facts(m, "What was asked for", &request(first));
    facts(m, "Near end", &host(&first.near));
    facts(m, "Far end", &host(&first.far));
}

fn request(m: &Measurement) -> Vec<(String, String)> {
    let (r, spec) = (&m.request, &m.request.spec);
    let mut flow = vec![format!("{} of which the first {} do not count", spec.duration, spec.omit)];
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
    if r.bidirectional {
        flow.push("both directions at once".to_owned());
    }
    let options = [
        spec.bytes.map(|b| format!("ends after {b}")),
        spec.window.map(|w| format!("window {} on the wire", asked_size(w.as_bytes()))),
        spec.socket_buffer.map(|b| format!("socket buffers of {b}")),
        spec.mss.map(|m| format!("MSS {m}")),
        spec.congestion.as_ref().map(|c| format!("congestion control {c}")),
        spec.nodelay.then(|| "no Nagle".to_owned()),
        spec.pacing_bps.map(|bps| format!("each paced at {}", format_bps(bps as f64))),
        spec.dscp.map(|d| format!("DSCP {d}")),
        r.bind_address.as_ref().map(|a| format!("from {a}")),
        r.bind_device.as_ref().map(|d| format!("through {d}")),
    ];
    flow.extend(options.into_iter().flatten());
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
