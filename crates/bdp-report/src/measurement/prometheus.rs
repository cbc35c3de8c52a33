//! What `bdp measure --prometheus` writes: the text format 0.0.4 of Prometheus, for the textfile collector of its node
//! exporter. Specified in `docs/metrics.md`.

use std::fmt::Write as _;

use bdp_model::expectation::Judgement;
use bdp_model::figure::{Figure, Quantile, figure};
use bdp_model::measurement::{Measurement, Way};

/// How a figure is called there.
struct Metric {
    name: &'static str,
    help: &'static str,
    /// What turns a value of the figure into one of the metric.
    scale: f64,
    /// The figures, each with its labels beside the host's.
    series: Vec<(Figure, String)>,
}

/// The medians over the runs, and what became of what was expected; of a measurement that came to nothing that alone.
/// `host` is the far machine's name, as given, and `bdp` the version that measured.
pub fn prometheus(measurements: &[Measurement], judged: &[Judgement], host: &str, bdp: &str) -> String {
    let host = escaped(host);
    let made = measurements.iter().filter(|m| m.error.is_none()).count();
    let mut text = String::new();
    head(&mut text, "bdp_info", "Version of bdp that measured.");
    let _ = writeln!(text, "bdp_info{{version=\"{}\"}} 1", escaped(bdp));
    head(&mut text, "bdp_measurement_success", "1 where something was measured, or else 0.");
    let _ = writeln!(text, "bdp_measurement_success{{host=\"{host}\"}} {}", u8::from(made > 0));
    head(&mut text, "bdp_measurement_runs", "Runs that did not fail.");
    let _ = writeln!(text, "bdp_measurement_runs{{host=\"{host}\"}} {made}");
    if let Some(last) = measurements.iter().map(|m| m.started_unix_ms + m.took_ms).max() {
        head(&mut text, "bdp_measurement_end_timestamp_seconds", "When the last run ended.");
        let _ =
            writeln!(text, "bdp_measurement_end_timestamp_seconds{{host=\"{host}\"}} {}", last as f64 / 1e3);
    }
    for metric in metrics() {
        let known: Vec<(f64, &String)> = metric
            .series
            .iter()
            .filter_map(|(of, labels)| Some((figure(*of, measurements)? * metric.scale, labels)))
            .collect();
        if known.is_empty() {
            continue;
        }
        head(&mut text, metric.name, metric.help);
        for (value, labels) in known {
            let _ = writeln!(text, "{}{{host=\"{host}\"{labels}}} {value}", metric.name);
        }
    }
    if !judged.is_empty() {
        head(&mut text, "bdp_expectation_met", "1 where what was expected was found, or else 0.");
    }
    for judgement in judged {
        let expectation = escaped(&judgement.expectation);
        let met = u8::from(judgement.met);
        let _ = writeln!(text, "bdp_expectation_met{{host=\"{host}\",expectation=\"{expectation}\"}} {met}");
    }
    text
}

fn head(text: &mut String, name: &str, help: &str) {
    let _ = writeln!(text, "# HELP {name} {help}\n# TYPE {name} gauge");
}

fn metrics() -> Vec<Metric> {
    const WAYS: [Way; 2] = [Way::To, Way::From];
    const NS: f64 = 1e-9;
    let each = |of: fn(Way) -> Figure| {
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
        metric("bdp_window_bytes", "Receive window on the wire.", 1.0, each(Figure::Window)),
        metric("bdp_loss_ratio", "Datagrams lost, as a share of those sent.", 1.0, each(Figure::Loss)),
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

/// The value of a label.
fn escaped(text: &str) -> String {
    text.replace('\\', "\\\\").replace('"', "\\\"").replace('\n', "\\n")
}
