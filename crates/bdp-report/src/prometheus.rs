//! `--prometheus`: the Prometheus text format 0.0.4, for the textfile collector of node_exporter. Specified in
//! `docs/metrics.md`.

use std::collections::BTreeMap;
use std::fmt::Write as _;

use bdp_model::facts::segments::Segments;
use bdp_model::measurement::expectation::Judgement;
use bdp_model::measurement::figure::{Figure, PingFigure, Quantile, figure};
use bdp_model::measurement::labels::Labels;
use bdp_model::measurement::{Direction, Measurement};
use bdp_model::probes::ping::Ping;
use bdp_model::record::{Record, RttSummary};
use bdp_model::statistics::median;
use bdp_model::sweep::points::{Ending, label, points, value_words};
use serde_json::Value;

const NS: f64 = 1e-9;

/// The remote end, whose labels distinguish several files in one directory.
#[derive(Debug, Clone, Copy)]
pub struct FarEnd<'a> {
    /// Name, as given.
    pub host: &'a str,
    /// Port; `None` if there is none, or if it differs every time.
    pub port: Option<u16>,
    /// Labels that the user gave the run.
    pub own: &'a Labels,
}

impl FarEnd<'_> {
    fn labels(self) -> String {
        let port = self.port.map_or_else(String::new, |port| format!(",port=\"{port}\""));
        format!("host=\"{}\"{port}{}", escaped(self.host), own(self.own))
    }
}

/// Returns `,site="ams"` for each of the user's labels.
fn own(labels: &Labels) -> String {
    labels.iter().map(|(name, value)| format!(",{name}=\"{}\"", escaped(value))).collect()
}

/// Returns the medians over the runs and the results of expectations; only the latter if every run failed.
/// `bdp` is the version that measured.
pub fn prometheus(measurements: &[Measurement], judged: &[Judgement], far: FarEnd<'_>, bdp: &str) -> String {
    let labels = far.labels();
    let mut page = Page::of("measure", [labels.clone()], bdp);
    page.measured(&[(labels.clone(), measurements.to_vec())]);
    page.judged(&labels, judged);
    page.0
}

/// Returns the metrics of each point of a sweep, named by the label `case`: `window=64K`.
pub fn prometheus_of_sweep(
    all: &[(&BTreeMap<String, Value>, &Measurement)],
    far: FarEnd<'_>,
    bdp: &str,
) -> String {
    let mut groups: Vec<(String, Vec<Measurement>)> = Vec::new();
    for (params, measurement) in all {
        let words: Vec<String> =
            params.iter().map(|(name, value)| format!("{name}={}", value_words(value))).collect();
        let labels = format!("{},case=\"{}\"", far.labels(), escaped(&words.join(" ")));
        match groups.iter_mut().find(|(known, _)| *known == labels) {
            Some((_, members)) => members.push((*measurement).clone()),
            None => groups.push((labels, vec![(*measurement).clone()])),
        }
    }
    let mut page = Page::of("sweep", [far.labels()], bdp);
    page.measured(&groups);
    page.0
}

/// Returns the medians of each case over its valid attempts.
pub fn prometheus_of_cases(records: &[Record], labels: &Labels, bdp: &str) -> String {
    let own = own(labels);
    let all: Vec<_> = points(records)
        .into_iter()
        .map(|point| {
            let words: Vec<String> = point
                .params
                .iter()
                .map(|(path, value)| format!("{}={}", label(path, &point), value_words(value)))
                .collect();
            let labels = format!(
                "scenario=\"{}\",case=\"{}\"{own}",
                escaped(point.scenario),
                escaped(&words.join(" "))
            );
            (labels, point)
        })
        .collect();
    let each = |of: &dyn Fn(&Record) -> Option<f64>| -> Vec<(String, f64)> {
        let middle = |(labels, point): &(String, bdp_model::sweep::points::SweepPoint<'_>)| {
            let mut values: Vec<f64> = point.valid().filter_map(of).collect();
            Some((labels.clone(), median(&mut values)?))
        };
        all.iter().filter_map(middle).collect()
    };
    let round_trips = |of: &dyn Fn(&Record) -> Option<RttSummary>| -> Vec<(String, f64)> {
        let quantiles = [(Quantile::Min, 0), (Quantile::P50, 1), (Quantile::P95, 2)];
        let one = |(name, which): (Quantile, usize)| {
            let value = |record: &Record| {
                let rtt = of(record)?;
                [Some(rtt.min), Some(rtt.p50), rtt.p95][which].map(|ns| ns as f64 * NS)
            };
            each(&value).into_iter().map(move |(labels, value)| (labels + &quantile(name), value))
        };
        quantiles.into_iter().flat_map(one).collect()
    };
    let mut scenarios: Vec<String> =
        records.iter().map(|record| format!("scenario=\"{}\"{own}", escaped(&record.scenario))).collect();
    scenarios.dedup();
    let mut page = Page::of("lab", scenarios, bdp);
    let outcomes = [(Ending::Valid, "valid"), (Ending::Invalid, "invalid"), (Ending::Failed, "failed")];
    let counted = all.iter().flat_map(|(labels, point)| {
        outcomes.map(|(how, name)| (format!("{labels},outcome=\"{name}\""), point.count(how) as f64))
    });
    page.family("bdp_case_attempts", "Attempts at a case, by outcome.", counted);
    let missed = all.iter().map(|(labels, point)| (labels.clone(), point.missed().count() as f64));
    page.family("bdp_case_missed", "Attempts that missed an expectation.", missed);
    page.family(
        "bdp_case_goodput_bits_per_second",
        "Payload that the receivers read.",
        each(&|r| r.goodput_bps),
    );
    page.family("bdp_case_expected_bits_per_second", "Goodput by the model.", each(&|r| r.expected_bps));
    page.family(
        "bdp_case_rtt_idle_seconds",
        "Round trip before the load, by quantile.",
        round_trips(&|r| r.rtt_ns.idle),
    );
    page.family(
        "bdp_case_rtt_loaded_seconds",
        "Round trip under load, by quantile.",
        round_trips(&|r| r.rtt_ns.loaded),
    );
    page.family(
        "bdp_case_retransmits",
        "TCP segments retransmitted.",
        each(&|r| Some(r.flows.iter().map(|f| f.retransmits).sum::<Option<u64>>()? as f64)),
    );
    page.family(
        "bdp_case_retransmit_ratio",
        "TCP segments retransmitted, as a share of those sent.",
        each(&|r| {
            let tcp = r.flows.iter().filter(|flow| flow.udp.is_none());
            Segments::together(tcp.map(|flow| Segments::of(flow, flow.received_bytes)))
                .map(Segments::retransmit_ratio)
        }),
    );
    page.family(
        "bdp_case_loss_ratio",
        "Datagrams or TCP segments lost, as a share of those sent.",
        each(&Record::loss_ratio),
    );
    let limited = all.iter().flat_map(|(labels, point)| {
        let found = point.valid().flat_map(|record| &record.flows).filter_map(|flow| flow.findings.first());
        limits(found.map(|finding| finding.limit.name()))
            .map(move |(limit, share)| (labels.clone() + &limit, share))
    });
    page.family("bdp_case_limit", "Share of the flows that this limits.", limited);
    page.family(
        "bdp_case_window_bytes",
        "Receive window on the wire.",
        each(&|r| r.window.on_the_wire_bytes.map(|bytes| bytes as f64)),
    );
    page.0
}

/// Returns the round-trip times of a ping and the results of expectations; `None` for a ping that sent nothing.
pub fn prometheus_of_ping(ping: Option<&Ping>, judged: &[Judgement], far: FarEnd<'_>, bdp: &str) -> String {
    let host = far.labels();
    let mut page = Page::of("ping", [host.clone()], bdp);
    let success = f64::from(u8::from(ping.is_some_and(|ping| ping.probes.received > 0)));
    page.family("bdp_ping_success", "1 where a probe was answered, or else 0.", [(host.clone(), success)]);
    let Some(ping) = ping else { return page.0 };
    let figure = |of: PingFigure, scale: f64, labels: String| Some((labels, of.of(ping)? * scale));
    let round_trips =
        Quantile::ALL.iter().filter_map(|&q| figure(PingFigure::Rtt(q), NS, host.clone() + &quantile(q)));
    page.family("bdp_ping_rtt_seconds", "Round trip, by quantile.", round_trips);
    let loss = figure(PingFigure::Loss, 1.0, host.clone());
    page.family("bdp_ping_loss_ratio", "Probes without an answer, as a share of those sent.", loss);
    let jitter = figure(PingFigure::Jitter, NS, host.clone());
    page.family("bdp_ping_jitter_seconds", "Mean difference of one round trip and the next.", jitter);
    let probes = &ping.probes;
    let counts = [
        ("answered", probes.received),
        ("lost", probes.lost),
        ("refused", probes.refused),
        ("unreachable", probes.unreachable),
    ];
    let counts = counts.map(|(name, count)| (format!("{host},outcome=\"{name}\""), count as f64));
    page.family("bdp_ping_probes", "Probes, by outcome.", counts);
    page.judged(&host, judged);
    page.0
}

/// The text written so far.
pub(crate) struct Page(String);

impl Page {
    /// Starts the page with the bdp version, what it measured, and the command.
    fn of(command: &str, subjects: impl IntoIterator<Item = String>, bdp: &str) -> Self {
        let mut page = Self(String::new());
        let version = escaped(bdp);
        let each = |subject| (format!("{subject},command=\"{command}\",version=\"{version}\""), 1.0);
        page.family("bdp_info", "Version of bdp that measured.", subjects.into_iter().map(each));
        page
    }

    /// Starts the page with the bdp version that watches sockets on this host.
    pub(crate) fn of_watch(bdp: &str) -> Self {
        let mut page = Self(String::new());
        let labels = format!("command=\"watch\",version=\"{}\"", escaped(bdp));
        page.family("bdp_info", "Version of bdp that measured.", [(labels, 1.0)]);
        page
    }

    /// Returns the complete text.
    pub(crate) fn into_text(self) -> String {
        self.0
    }

    /// Writes a metric if it has samples, each given as labels and value.
    pub(crate) fn family(
        &mut self,
        name: &str,
        help: &str,
        samples: impl IntoIterator<Item = (String, f64)>,
    ) {
        for (index, (labels, value)) in samples.into_iter().enumerate() {
            if index == 0 {
                let _ = writeln!(self.0, "# HELP {name} {help}\n# TYPE {name} gauge");
            }
            let _ = writeln!(self.0, "{name}{{{labels}}} {value}");
        }
    }

    /// Writes groups of measurements, each with its labels.
    fn measured(&mut self, groups: &[(String, Vec<Measurement>)]) {
        let made = |all: &[Measurement]| all.iter().filter(|m| m.error.is_none()).count();
        let each = |of: &dyn Fn(&[Measurement]) -> Option<f64>| -> Vec<(String, f64)> {
            groups.iter().filter_map(|(labels, all)| Some((labels.clone(), of(all)?))).collect()
        };
        self.family(
            "bdp_measurement_success",
            "1 where something was measured, or else 0.",
            each(&|all| Some(f64::from(u8::from(made(all) > 0)))),
        );
        self.family("bdp_measurement_runs", "Runs that did not fail.", each(&|all| Some(made(all) as f64)));
        self.family(
            "bdp_measurement_end_timestamp_seconds",
            "When the last run ended.",
            each(&|all| all.iter().map(|m| m.started_unix_ms + m.took_ms).max().map(|ms| ms as f64 / 1e3)),
        );
        for metric in metrics() {
            let series = metric.series.iter().flat_map(|(of, labels)| {
                each(&|all| figure(*of, all).map(|value| value * metric.scale))
                    .into_iter()
                    .map(move |(group, value)| (group + labels, value))
            });
            self.family(metric.name, metric.help, series);
        }
        let limited = groups.iter().flat_map(|(labels, all)| {
            WAYS.into_iter().flat_map(move |way| {
                let whole = all.iter().filter(|m| m.error.is_none()).flat_map(|m| &m.directions);
                let found = whole.filter(move |d| d.direction == way).filter_map(|d| d.findings.first());
                limits(found.map(|finding| finding.limit.name())).map(move |(limit, share)| {
                    (format!("{labels},direction=\"{}\"{limit}", way.name()), share)
                })
            })
        });
        self.family("bdp_limit", "Share of the runs that this limits.", limited);
    }

    fn judged(&mut self, host: &str, judged: &[Judgement]) {
        let samples = judged.iter().map(|judgement| {
            let expectation = escaped(&judgement.expectation);
            (format!("{host},expectation=\"{expectation}\""), f64::from(u8::from(judgement.met)))
        });
        self.family("bdp_expectation_met", "1 where what was expected was found, or else 0.", samples);
    }
}

/// Name and scale of a figure as a metric.
struct Metric {
    name: &'static str,
    help: &'static str,
    /// Factor from the figure's unit to the metric's.
    scale: f64,
    /// The figures, each with labels in addition to the group's.
    series: Vec<(Figure, String)>,
}

const WAYS: [Direction; 2] = [Direction::To, Direction::From];

/// Returns each limit as a label with its share of the findings.
fn limits<'a>(found: impl Iterator<Item = &'a str>) -> impl Iterator<Item = (String, f64)> {
    let mut counts: BTreeMap<&str, f64> = BTreeMap::new();
    found.for_each(|limit| *counts.entry(limit).or_default() += 1.0);
    let all: f64 = counts.values().sum();
    counts
        .into_iter()
        .map(move |(limit, n)| (format!(",limit=\"{limit}\""), n / all))
        .collect::<Vec<_>>()
        .into_iter()
}

fn metrics() -> Vec<Metric> {
    let each = |of: fn(Direction) -> Figure| {
        WAYS.into_iter().map(|way| (of(way), format!(",direction=\"{}\"", way.name()))).collect::<Vec<_>>()
    };
    let metric = |name, help, scale, series| Metric { name, help, scale, series };
    let idle = Quantile::ALL.map(|q| (Figure::RttIdle(q), quantile(q)));
    let loaded = WAYS.into_iter().flat_map(|way| {
        let labels = move |q| format!(",direction=\"{}\"{}", way.name(), quantile(q));
        Quantile::ALL.map(|q| (Figure::RttLoaded(way, q), labels(q)))
    });
    vec![
        metric("bdp_goodput_bits_per_second", "Payload that the receiver read.", 1.0, each(Figure::Goodput)),
        metric("bdp_rtt_idle_seconds", "Round trip before the load, by quantile.", NS, idle.into()),
        metric("bdp_rtt_loaded_seconds", "Round trip under load, by quantile.", NS, loaded.collect()),
        metric("bdp_responsiveness_rpm", "Round trips a minute under load.", 1.0, each(Figure::Rpm)),
        metric("bdp_retransmits", "TCP segments retransmitted.", 1.0, each(Figure::Retransmits)),
        metric(
            "bdp_retransmit_ratio",
            "TCP segments retransmitted, as a share of those sent.",
            1.0,
            each(Figure::RetransmitRatio),
        ),
        metric("bdp_window_bytes", "Receive window on the wire.", 1.0, each(Figure::Window)),
        metric(
            "bdp_loss_ratio",
            "Datagrams or TCP segments lost, as a share of those sent.",
            1.0,
            each(Figure::Loss),
        ),
        metric(
            "bdp_jitter_seconds",
            "Interarrival jitter of datagrams (RFC 3550).",
            NS,
            each(Figure::Jitter),
        ),
    ]
}

fn quantile(quantile: Quantile) -> String {
    let value = match quantile {
        Quantile::Min => "0",
        Quantile::P50 => "0.5",
        Quantile::P95 => "0.95",
        Quantile::P99 => "0.99",
        Quantile::Max => "1",
    };
    format!(",quantile=\"{value}\"")
}

/// Returns an escaped label value.
pub(crate) fn escaped(text: &str) -> String {
    text.replace('\\', "\\\\").replace('"', "\\\"").replace('\n', "\\n")
}
