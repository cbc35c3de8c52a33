//! Text on a twin: the learned path, its result next to the measurement, and what was not observed.

use bdp_model::measurement::ends::{Direction, End};
use bdp_model::tuning::setting::Setting;
use bdp_model::twin::{
    Bottleneck, Compared, DirectionFigures, Discipline, Fidelity, Figure, Learned, Parameter, Source, Twin,
    TwinJitter, TwinLoss, TwinReport, TwinWay, Unseen,
};
use bdp_model::units::{Nanos, format_bps};

use crate::finding::rate;
use crate::grid::{Align, Cell, Column, render, tame, wrap};
use crate::measurement::arrow;
use crate::number::percent;
use crate::style::{Style, Tint};

/// Returns the complete report. Ends with a newline.
pub fn twin_text(report: &TwinReport, style: &Style) -> String {
    let mut text = String::new();
    for (index, compared) in report.twins.iter().enumerate() {
        if index > 0 {
            text.push('\n');
        }
        text.push_str(&one(compared, report.run.as_deref(), style));
    }
    text
}

fn one(compared: &Compared, run: Option<&str>, style: &Style) -> String {
    let twin = &compared.twin;
    let way = if twin.both_directions { "both ways" } else { arrow(twin.direction, style) };
    let run = run.map_or_else(String::new, |run| format!(" of run {}", tame(run)));
    let kernel = match &compared.kernel {
        Some(kernel) => format!(", Linux {}, {}", tame(kernel), times(compared.runs)),
        None => ", not run".to_owned(),
    };
    let heading = format!("{way} {} - {}{run}{kernel}", tame(&twin.near.name), tame(&twin.far.name));
    let mut text = wrap("twin  ", Tint::Strong, &heading, style);
    text.push('\n');
    text.push_str(&learned(twin, style));
    if !compared.figures.is_empty() {
        text.push('\n');
        text.push_str(&comparison(compared, style));
    }
    if !twin.unseen.is_empty() {
        text.push('\n');
        for unseen in &twin.unseen {
            text.push_str(&wrap("not seen  ", Tint::Faint, &unseen_words(unseen, style), style));
        }
    }
    text
}

/// Formats a time in nanoseconds.
fn time(ns: f64) -> String {
    crate::finding::time(Nanos(ns.max(0.0) as u64))
}

fn times(runs: u32) -> String {
    if runs == 1 { "1 run".to_owned() } else { format!("{runs} runs") }
}

/// Returns the learned path, a row for each parameter with its source.
fn learned(twin: &Twin, style: &Style) -> String {
    let mut rows: Vec<[String; 4]> = Vec::new();
    for learned in &twin.learned {
        let ways = match learned.way {
            Some(way) => vec![way],
            None => vec![Direction::To],
        };
        for way in ways {
            let sign = learned.way.map_or("", |way| arrow(way, style));
            if let Some(value) = value(twin, way, learned) {
                rows.push([
                    sign.to_owned(),
                    name(learned.what).to_owned(),
                    value,
                    source(learned.how).to_owned(),
                ]);
            }
        }
    }
    let flow = &twin.flow;
    rows.push([
        String::new(),
        "congestion".to_owned(),
        tame(&flow.congestion),
        "the sender's socket".to_owned(),
    ]);
    if flow.streams > 1 {
        rows.push([String::new(), "streams".to_owned(), flow.streams.to_string(), "as asked for".to_owned()]);
    }
    for end in [End::Near, End::Far] {
        let host = twin.host(end);
        for setting in [Setting::TcpRmem, Setting::TcpWmem] {
            if let Some(value) = host.sysctls.get(setting.name) {
                rows.push([
                    String::new(),
                    setting.short.to_owned(),
                    tame(value),
                    format!("sysctl of {}", tame(&host.name)),
                ]);
            }
        }
    }
    table(["", "path", "value", "learned by"], &rows, style)
}

/// Returns rows of text below their headings.
fn table(heads: [&'static str; 4], rows: &[[String; 4]], style: &Style) -> String {
    let column = |(i, head)| {
        Column::new(["", head], Align::Left, rows.iter().map(|row| Cell::plain(&row[i])).collect())
    };
    let columns: Vec<Column> = heads.into_iter().enumerate().map(column).collect();
    render(&columns, &[], style)
}

const fn name(what: Parameter) -> &'static str {
    match what {
        Parameter::Delay => "delay",
        Parameter::Jitter => "jitter",
        Parameter::Rate => "rate",
        Parameter::RateSteps => "rate steps",
        Parameter::Queue => "queue",
        Parameter::Discipline => "queue",
        Parameter::Loss => "loss",
        Parameter::Policer => "policer",
        Parameter::Outage => "outage",
        Parameter::Reordering => "reordering",
        Parameter::WindowScaling => "window scaling",
    }
}

fn value(twin: &Twin, way: Direction, learned: &Learned) -> Option<String> {
    let of = twin.way(way);
    Some(match learned.what {
        Parameter::Delay => {
            format!("{} there, {} back", time(twin.to.delay_ns as f64), time(twin.from.delay_ns as f64))
        }
        Parameter::Jitter => jitter(of.jitter.as_ref()?),
        Parameter::Rate => format!("{} on the wire", format_bps(of.bottleneck.as_ref()?.rate_bps)),
        Parameter::RateSteps => steps(of.bottleneck.as_ref()?),
        Parameter::Queue | Parameter::Discipline => queue(of.bottleneck.as_ref()?, twin.wire_bytes()),
        Parameter::Loss => match of.loss? {
            TwinLoss::Random { share } => format!("{} of packets, each alone", percent(share)),
            loss @ TwinLoss::Bursts { packets, .. } => {
                format!("{} of packets, in bursts of {packets:.1}", percent(loss.share()))
            }
        },
        Parameter::Policer => {
            let policer = of.policer?;
            format!("{} of IP packets, burst {}", format_bps(policer.rate_bps), bytes(policer.burst_bytes))
        }
        Parameter::Outage => outages(of),
        Parameter::Reordering => {
            let reorder = of.reorder?;
            format!("{} of packets late by {}", percent(reorder.share), time(reorder.by_ns as f64))
        }
        Parameter::WindowScaling => "stripped from the handshake".to_owned(),
    })
}

fn bytes(bytes: u64) -> String {
    crate::finding::size(bytes as f64)
}

fn jitter(jitter: &TwinJitter) -> String {
    match jitter {
        TwinJitter::Uniform { spread_ns } => format!("{} to both sides, evenly", time(*spread_ns as f64)),
        TwinJitter::Normal { deviation_ns, correlation_ns: None } => {
            format!("standard deviation {}", time(*deviation_ns as f64))
        }
        TwinJitter::Normal { deviation_ns, correlation_ns: Some(within) } => {
            format!(
                "standard deviation {}, changing within {}",
                time(*deviation_ns as f64),
                time(*within as f64)
            )
        }
        TwinJitter::Table { quantiles_ns } => {
            let (least, most) = (quantiles_ns.first().unwrap_or(&0), quantiles_ns.last().unwrap_or(&0));
            format!("up to {}, by quantiles", time((most - least) as f64))
        }
    }
}

fn steps(bottleneck: &Bottleneck) -> String {
    let one =
        |&(at, bps): &(u64, f64)| format!("{} from {:.2} s on", format_bps(bps), Nanos(at).as_secs_f64());
    bottleneck.steps.iter().map(one).collect::<Vec<_>>().join(", ")
}

fn queue(bottleneck: &Bottleneck, wire_bytes: u64) -> String {
    let wait = bottleneck.limit_packets as f64 * wire_bytes as f64 * 8e9 / bottleneck.rate_bps;
    let managed = |kind: &str, target: u64| format!("{kind}, target {}", time(target as f64));
    match bottleneck.discipline {
        Discipline::DropTail => format!("{} packets ({}), drop-tail", bottleneck.limit_packets, time(wait)),
        Discipline::Codel { target_ns, .. } => managed("CoDel", target_ns),
        Discipline::FqCodel { target_ns, .. } => managed("FQ-CoDel", target_ns),
    }
}

fn outages(way: &TwinWay) -> String {
    let one = |o: &bdp_model::twin::TwinOutage| {
        format!("{} at {:.2} s", time(o.for_ns as f64), Nanos(o.at_ns).as_secs_f64())
    };
    way.outages.iter().map(one).collect::<Vec<_>>().join(", ")
}

const fn source(how: Source) -> &'static str {
    match how {
        Source::IdleProbes => "probes before the load",
        Source::HalfRoundTrip => "half of the round trip",
        Source::DeliveryBehindQueue => "delivery while a queue stood",
        Source::DeliveryAtLosses => "highest rates of delivery",
        Source::Delivery => "delivery over the transfer",
        Source::ProbesUnderLoad => "probes under load",
        Source::RttBeforeLosses => "the sender's RTT before losses",
        Source::RttUnderLoad => "the sender's RTT under load",
        Source::Retransmits => "retransmits",
        Source::LossEpisodes => "losses one by one",
        Source::SlowStart => "slow start",
        Source::KernelCounters => "the sender's kernel",
        Source::Handshake => "the handshake",
        Source::Asked => "--rate",
        Source::AlsoRun => "--also",
        Source::OwnBursts => "how the flow's own bursts waited",
        Source::Nic => "the NIC's speed",
        Source::OtherDirection => "the other direction",
        Source::Assumed => "assumed: nothing was lost",
    }
}

/// Returns measurement and twin side by side, with the verdict for each direction.
fn comparison(compared: &Compared, style: &Style) -> String {
    let mut rows: Vec<[String; 4]> = Vec::new();
    for figures in &compared.figures {
        let sign = arrow(figures.direction, style);
        let mut row = |name: &str, figure: Option<&Figure>, word: &dyn Fn(f64) -> String| {
            let Some(figure) = figure else { return };
            let twin = match figure.interval {
                Some([low, high]) => {
                    format!("{} ({}..{})", word(figure.twin), word(low.max(0.0)), word(high))
                }
                None => word(figure.twin),
            };
            let ratio = figure.ratio().map_or_else(|| "-".to_owned(), |ratio| format!("{ratio:.2}"));
            rows.push([format!("{sign} {name}"), word(figure.measured), twin, ratio]);
        };
        row("goodput", Some(&figures.goodput_bps), &rate);
        row("loaded RTT p50", figures.loaded_p50_ns.as_ref(), &time);
        row("loaded RTT p95", figures.loaded_p95_ns.as_ref(), &time);
        row("retransmits", figures.retransmits.as_ref(), &|n| format!("{n:.0}"));
    }
    let mut text = table(["", "measured", "twin (95 %)", "ratio"], &rows, style);
    for figures in &compared.figures {
        text.push_str(&verdict(figures, style));
    }
    for change in &compared.adjusted {
        let sign = arrow(change.way, style);
        let word = |value: f64| match change.what {
            Parameter::Rate | Parameter::Policer => format_bps(value),
            Parameter::Loss => percent(value),
            _ => format!("{value:.0} packets"),
        };
        if change.what == Parameter::Rate && change.from == 0.0 {
            let (rate, round) = (format_bps(change.to), change.round);
            let line = format!(
                "{sign} rate {rate}, by how the flow's own bursts waited, after pass {round}, which missed"
            );
            text.push_str(&wrap("adjusted  ", Tint::Faint, &line, style));
            continue;
        }
        let line = format!(
            "{sign} {} from {} to {} after pass {}, which missed",
            name(change.what),
            word(change.from),
            word(change.to),
            change.round
        );
        text.push_str(&wrap("adjusted  ", Tint::Faint, &line, style));
    }
    text
}

fn verdict(figures: &DirectionFigures, style: &Style) -> String {
    let sign = arrow(figures.direction, style);
    let (tint, words) = match figures.fidelity {
        Fidelity::Repeats => {
            (Tint::Good, "repeats the measurement: goodput within 10 %, loaded RTT p50 within 20 %")
        }
        Fidelity::GoodputDiffers => (Tint::Bad, "differs: goodput is off by more than 10 %"),
        Fidelity::DelayDiffers => (Tint::Bad, "differs: loaded RTT p50 is off by more than 20 %"),
        Fidelity::Differs => {
            (Tint::Bad, "differs: goodput is off by more than 10 %, loaded RTT p50 by more than 20 %")
        }
    };
    wrap(&format!("{sign} twin  "), tint, words, style)
}

fn unseen_words(unseen: &Unseen, style: &Style) -> String {
    match unseen {
        Unseen::Rate { way, at_least_bps, .. } => format!(
            "{} the path's rate: at least {} on the wire; --rate RATE or --also RUN gives it",
            arrow(*way, style),
            format_bps(*at_least_bps)
        ),
        Unseen::QueueDepth { way, at_least_packets } => format!(
            "{} the queue's depth: nothing was lost; it holds at least {at_least_packets} packets",
            arrow(*way, style)
        ),
        Unseen::WayBack { way } => {
            format!("{} this direction carried no data; the twin has its delay alone", arrow(*way, style))
        }
        Unseen::Asymmetry => {
            "how the RTT divides into its two ways: clocks are not compared so closely; half each".to_owned()
        }
        Unseen::CrossTraffic { way } => {
            format!("{} traffic of others: it is in the rate", arrow(*way, style))
        }
        Unseen::Kernel { end, measured, twin } => {
            let measured = if measured.is_empty() { "unknown".to_owned() } else { tame(measured) };
            format!("the kernel of the {} host: {measured} measured, {} in the twin", end.name(), tame(twin))
        }
        Unseen::Settings { end } => {
            format!("settings of the {} host: it reports none; the twin has defaults", end.name())
        }
        Unseen::FastJitter => "jitter faster than the probes".to_owned(),
        Unseen::Datagrams => "datagrams: the twin carries TCP".to_owned(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_verdict_names_what_is_off() {
        let figures = |goodput: f64, delay: f64| {
            let goodput_bps = Figure { measured: 1e7, twin: goodput * 1e7, interval: None };
            let p50 = Figure { measured: 4e7, twin: delay * 4e7, interval: None };
            let fidelity = Fidelity::of(&goodput_bps, Some(&p50));
            DirectionFigures {
                direction: Direction::To,
                goodput_bps,
                loaded_p50_ns: Some(p50),
                loaded_p95_ns: None,
                retransmits: None,
                fidelity,
            }
        };
        let style = Style::plain();
        assert!(verdict(&figures(0.92, 1.19), &style).contains("repeats"));
        assert!(verdict(&figures(0.88, 1.0), &style).contains("goodput is off by more than 10 %"));
        assert!(verdict(&figures(1.0, 0.7), &style).contains("loaded RTT p50 is off by more than 20 %"));
    }
}
