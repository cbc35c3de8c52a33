//! `--prometheus`: the Prometheus text format 0.0.4, for the textfile collector of node_exporter. Specified in
//! `docs/metrics.md`.

use std::collections::BTreeMap;
use std::fmt::Write as _;

use bdp_model::facts::segments::Segments;
use bdp_model::measurement::expectation::Judgement;
use bdp_model::measurement::figure::{Figure, Figures, PingFigure, Quantile, Unit, figure};
use bdp_model::measurement::labels::Labels;
use bdp_model::measurement::{Direction, Measurement};
use bdp_model::probes::ping::Ping;
use bdp_model::record::{Record, RttSummary};
use bdp_model::statistics::median;
use bdp_model::sweep::points::{Ending, SweepPoint, label, points, value_words};
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
    let name = |point: &SweepPoint<'_>| {
        let each =
            |(path, value): (&String, &Value)| format!("{}={}", label(path, point), value_words(value));
        let case = point.params.iter().map(each).collect::<Vec<_>>().join(" ");
        format!("scenario=\"{}\",case=\"{}\"{own}", escaped(point.scenario), escaped(&case))
    };
    let all: Vec<_> = points(records).into_iter().map(|point| (name(&point), point)).collect();
    let mut scenarios: Vec<String> =
        records.iter().map(|record| format!("scenario=\"{}\"{own}", escaped(&record.scenario))).collect();
    scenarios.dedup();
    let mut page = Page::of("lab", scenarios, bdp);
    let outcomes = [(Ending::Valid, "valid"), (Ending::Invalid, "invalid"), (Ending::Failed, "failed")];
    let counted = all.iter().flat_map(|(labels, point)| {
        outcomes.map(|(how, name)| (format!("{labels},outcome=\"{name}\""), point.count(how) as f64))
    });
    page.family("bdp_case_attempts", "Attempts at a case, by outcome.", counted);
    page.metrics(
        &all,
        &[
            ("bdp_case_missed", "Attempts that missed an expectation.", |p| one(p.missed().count() as f64)),
            ("bdp_case_goodput_bits_per_second", "Payload that the receivers read.", |p| {
                one(middle(p, |r| r.goodput_bps))
            }),
            ("bdp_case_expected_bits_per_second", "Goodput by the model.", |p| {
                one(middle(p, |r| r.expected_bps))
            }),
            ("bdp_case_rtt_idle_seconds", RTT_IDLE, |p| round_trips(p, |r| r.rtt_ns.idle)),
            ("bdp_case_rtt_loaded_seconds", RTT_LOADED, |p| round_trips(p, |r| r.rtt_ns.loaded)),
            ("bdp_case_retransmits", RETRANSMITS, |p| one(middle(p, retransmits))),
            ("bdp_case_retransmit_ratio", RETRANSMIT_RATIO, |p| one(middle(p, retransmit_ratio))),
            ("bdp_case_loss_ratio", LOSS, |p| one(middle(p, Record::loss_ratio))),
        ],
    );
    let limited = all.iter().flat_map(|(labels, point)| {
        let found = point.valid().flat_map(|record| &record.flows).filter_map(|flow| flow.findings.first());
        limits(found.map(|finding| finding.limit.name()))
            .map(move |(limit, share)| (labels.clone() + &limit, share))
    });
    page.family("bdp_case_limit", "Share of the flows that this limits.", limited);
    page.metrics(
        &all,
        &[("bdp_case_window_bytes", WINDOW, |p| {
            one(middle(p, |r| r.window.on_the_wire_bytes.map(|bytes| bytes as f64)))
        })],
    );
    page.0
}

/// Returns the median over the valid attempts at a case.
fn middle(point: &SweepPoint<'_>, of: impl Fn(&Record) -> Option<f64>) -> Option<f64> {
    median(&mut point.valid().filter_map(of).collect::<Vec<_>>())
}

fn round_trips(point: &SweepPoint<'_>, of: fn(&Record) -> Option<RttSummary>) -> Series {
    let at = |q: Quantile| middle(point, |record| q.of(&of(record)?).map(|ns| ns as f64 * NS));
    [Quantile::Min, Quantile::P50, Quantile::P95].map(|q| (quantile(q), at(q))).into()
}

fn retransmits(record: &Record) -> Option<f64> {
    Some(record.flows.iter().map(|flow| flow.retransmits).sum::<Option<u64>>()? as f64)
}

fn retransmit_ratio(record: &Record) -> Option<f64> {
    let tcp = record.flows.iter().filter(|flow| flow.udp.is_none());
    let segments = Segments::together(tcp.map(|flow| Segments::of(flow, flow.received_bytes)));
    segments.map(Segments::retransmit_ratio)
}

/// Returns the round-trip times of a ping and the results of expectations; `None` for a ping that sent nothing.
pub fn prometheus_of_ping(ping: Option<&Ping>, judged: &[Judgement], far: FarEnd<'_>, bdp: &str) -> String {
    let host = far.labels();
    let mut page = Page::of("ping", [host.clone()], bdp);
    let success = flag(ping.is_some_and(|ping| ping.probes.received > 0));
    page.family("bdp_ping_success", "1 where a probe was answered, or else 0.", [(host.clone(), success)]);
    let Some(ping) = ping else { return page.0 };
    page.metrics(
        &[(host.clone(), ping)],
        &[
            ("bdp_ping_rtt_seconds", "Round trip, by quantile.", |ping| {
                quantiles(|q| in_seconds(PingFigure::Rtt(q), PingFigure::Rtt(q).of(ping)))
            }),
            ("bdp_ping_loss_ratio", "Probes without an answer, as a share of those sent.", |ping| {
                one(PingFigure::Loss.of(ping))
            }),
            ("bdp_ping_jitter_seconds", "Mean difference of one round trip and the next.", |ping| {
                one(in_seconds(PingFigure::Jitter, PingFigure::Jitter.of(ping)))
            }),
        ],
    );
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
    pub(crate) fn of(command: &str, subjects: impl IntoIterator<Item = String>, bdp: &str) -> Self {
        let mut page = Self(String::new());
        let version = escaped(bdp);
        let each = |subject: String| {
            let comma = if subject.is_empty() { "" } else { "," };
            (format!("{subject}{comma}command=\"{command}\",version=\"{version}\""), 1.0)
        };
        page.family("bdp_info", "Version of bdp that measured.", subjects.into_iter().map(each));
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

    /// Writes metrics of several groups, each with its labels: series by series, for each group that has a value.
    pub(crate) fn metrics<T>(&mut self, groups: &[(String, T)], metrics: &[Metric<T>]) {
        for (name, help, read) in metrics {
            let mut samples: Vec<(usize, String, f64)> = Vec::new();
            for (labels, of) in groups {
                let known = read(of).into_iter().enumerate();
                samples.extend(
                    known.filter_map(|(at, (more, value))| Some((at, format!("{labels}{more}"), value?))),
                );
            }
            samples.sort_by_key(|(at, ..)| *at);
            self.family(name, help, samples.into_iter().map(|(_, labels, value)| (labels, value)));
        }
    }

    /// Writes groups of measurements, each with its labels.
    fn measured(&mut self, groups: &[(String, Vec<Measurement>)]) {
        self.metrics(groups, &MEASURED);
        let limited = groups.iter().flat_map(|(labels, all)| {
            WAYS.into_iter().flat_map(move |way| {
                let whole = all.iter().filter(|m| m.error.is_none()).flat_map(|m| &m.directions);
                let found = whole.filter(move |d| d.direction == way).filter_map(|d| d.findings.first());
                limits(found.map(|finding| finding.limit.name()))
                    .map(move |(limit, share)| (format!("{labels}{}{limit}", direction(way)), share))
            })
        });
        self.family("bdp_limit", "Share of the runs that this limits.", limited);
    }

    fn judged(&mut self, host: &str, judged: &[Judgement]) {
        let samples = judged.iter().map(|judgement| {
            let expectation = escaped(&judgement.expectation);
            (format!("{host},expectation=\"{expectation}\""), flag(judgement.met))
        });
        self.family("bdp_expectation_met", "1 where what was expected was found, or else 0.", samples);
    }
}

/// A metric: its name, its help, and how its series are read.
pub(crate) type Metric<T> = (&'static str, &'static str, fn(&T) -> Series);

/// The series of a metric, each with labels in addition to the group's; `None` if it was not measured. The same number for each group.
pub(crate) type Series = Vec<(String, Option<f64>)>;

/// Returns the only series of a metric.
pub(crate) fn one(value: impl Into<Option<f64>>) -> Series {
    vec![(String::new(), value.into())]
}

const RTT_IDLE: &str = "Round trip before the load, by quantile.";
const RTT_LOADED: &str = "Round trip under load, by quantile.";
const RETRANSMITS: &str = "TCP segments retransmitted.";
const RETRANSMIT_RATIO: &str = "TCP segments retransmitted, as a share of those sent.";
const LOSS: &str = "Datagrams or TCP segments lost, as a share of those sent.";
const WINDOW: &str = "Receive window on the wire.";

/// Medians over measurements.
const MEASURED: [Metric<Vec<Measurement>>; 12] = [
    ("bdp_measurement_success", "1 where something was measured, or else 0.", |all| one(flag(made(all) > 0))),
    ("bdp_measurement_runs", "Runs that did not fail.", |all| one(made(all) as f64)),
    ("bdp_measurement_end_timestamp_seconds", "When the last run ended.", |all| {
        one(all.iter().map(|m| m.started_unix_ms + m.took_ms).max().map(|ms| ms as f64 / 1e3))
    }),
    ("bdp_goodput_bits_per_second", "Payload that the receiver read.", |all| both_ways(all, Figure::Goodput)),
    ("bdp_rtt_idle_seconds", RTT_IDLE, |all| quantiles(|q| value(all, Figure::RttIdle(q)))),
    ("bdp_rtt_loaded_seconds", RTT_LOADED, |all| {
        let each = |way| quantiles(|q| value(all, Figure::RttLoaded(way, q)));
        WAYS.iter()
            .flat_map(|&way| each(way).into_iter().map(move |(q, value)| (direction(way) + &q, value)))
            .collect()
    }),
    ("bdp_responsiveness_rpm", "Round trips a minute under load.", |all| both_ways(all, Figure::Rpm)),
    ("bdp_retransmits", RETRANSMITS, |all| both_ways(all, Figure::Retransmits)),
    ("bdp_retransmit_ratio", RETRANSMIT_RATIO, |all| both_ways(all, Figure::RetransmitRatio)),
    ("bdp_window_bytes", WINDOW, |all| both_ways(all, Figure::Window)),
    ("bdp_loss_ratio", LOSS, |all| both_ways(all, Figure::Loss)),
    ("bdp_jitter_seconds", "Interarrival jitter of datagrams (RFC 3550).", |all| {
        both_ways(all, Figure::Jitter)
    }),
];

/// Returns the number of measurements that did not fail.
fn made(all: &[Measurement]) -> usize {
    all.iter().filter(|m| m.error.is_none()).count()
}

fn both_ways(all: &[Measurement], of: fn(Direction) -> Figure) -> Series {
    WAYS.map(|way| (direction(way), value(all, of(way)))).into()
}

fn quantiles(of: impl Fn(Quantile) -> Option<f64>) -> Series {
    Quantile::ALL.map(|q| (quantile(q), of(q))).into()
}

fn value(all: &[Measurement], of: Figure) -> Option<f64> {
    in_seconds(of, figure(of, all))
}

/// Returns a figure's value in the unit of metrics: a time in seconds.
fn in_seconds(figure: impl Figures, value: Option<f64>) -> Option<f64> {
    value.map(|value| if figure.unit() == Unit::Ns { value * NS } else { value })
}

fn flag(is_so: bool) -> f64 {
    f64::from(u8::from(is_so))
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

fn direction(way: Direction) -> String {
    format!(",direction=\"{}\"", way.name())
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
