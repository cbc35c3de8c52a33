//! Sweeps of the window: the curve, and the knee beyond which more window gives no more.

use bdp_model::record::Record;
use bdp_model::units::format_bps;
use bdp_model::{Nanos, Rate};

use crate::chart::Chart;
use crate::grid::wrap;
use crate::number::{asked_size, percent, size};
use crate::style::{Style, Tint};
use crate::summary::Point;
use crate::varied::{name, window};

/// A curve needs this many windows.
const LEAST_POINTS: usize = 4;
/// The knee is the smallest measured window whose goodput is at least this share of the best of the sweep.
const KNEE_SHARE: f64 = 0.95;

/// For each curve of goodput against window among `points`: a heading, the chart, the knee.
pub(crate) fn sweeps(points: &[Point<'_>], style: &Style) -> String {
    let texts: Vec<String> = curves(points).iter().map(|curve| text(curve, style)).collect();
    texts.join("\n")
}

/// One scenario's points that differ in the window alone, in ascending order of it.
struct Curve<'a> {
    name: String,
    windows: Vec<Window>,
    /// Whether `Window::bytes` is the window on the wire, or, where that is not known everywhere, the one asked for.
    on_the_wire: bool,
    rtt_idle_min_ns: Option<u64>,
    record: &'a Record,
}

#[derive(Debug, Clone, Copy, PartialEq)]
struct Window {
    asked_bytes: u64,
    bytes: f64,
    goodput_bps: f64,
    expected_bps: Option<f64>,
}

fn curves<'a>(points: &[Point<'a>]) -> Vec<Curve<'a>> {
    let mut groups: Vec<(String, Vec<(u64, &Point<'a>)>)> = Vec::new();
    for point in points {
        let swept = point.params.iter().find_map(|(path, value)| Some((path, window(path, value)?)));
        let Some((path, asked)) = swept else { continue };
        let name = name(point, Some(path));
        match groups.iter_mut().find(|(n, _)| *n == name) {
            Some((_, members)) => members.push((asked, point)),
            None => groups.push((name, vec![(asked, point)])),
        }
    }
    groups.into_iter().filter_map(|(name, members)| curve(name, &members)).collect()
}

fn curve<'a>(name: String, members: &[(u64, &Point<'a>)]) -> Option<Curve<'a>> {
    let measured: Vec<_> = members
        .iter()
        .filter_map(|(asked, p)| Some((*asked, p, p.goodput_bps()?.median)))
        .filter(|(asked, _, goodput)| *asked > 0 && *goodput > 0.0)
        .collect();
    if measured.len() < LEAST_POINTS {
        return None;
    }
    let on_the_wire = measured.iter().all(|(_, p, _)| p.on_the_wire_bytes().is_some_and(|w| w.median > 0.0));
    let mut windows: Vec<Window> = measured
        .iter()
        .map(|&(asked_bytes, p, goodput_bps)| Window {
            asked_bytes,
            bytes: p.on_the_wire_bytes().filter(|_| on_the_wire).map_or(asked_bytes as f64, |w| w.median),
            goodput_bps,
            expected_bps: p.expected_bps().map(|e| e.median).filter(|&e| e > 0.0),
        })
        .collect();
    windows.sort_by(|a, b| a.bytes.total_cmp(&b.bytes).then(a.asked_bytes.cmp(&b.asked_bytes)));
    Some(Curve {
        name,
        windows,
        on_the_wire,
        rtt_idle_min_ns: measured.iter().filter_map(|(_, p, _)| p.rtt_idle_min_ns()).min(),
        record: measured.first().and_then(|(_, p, _)| p.valid().next())?,
    })
}

fn text(curve: &Curve<'_>, style: &Style) -> String {
    let axis = if curve.on_the_wire { "window on the wire" } else { "window asked" };
    let times = if style.unicode { "×" } else { "x" };
    let knee = knee(&curve.windows);
    let product = product(curve);
    let here: Vec<(f64, f64)> = curve.windows.iter().map(|w| (w.bytes, w.goodput_bps)).collect();
    let model: Vec<(f64, f64)> =
        curve.windows.iter().filter_map(|w| Some((w.bytes, w.expected_bps?))).collect();
    let chart = Chart {
        here: &here,
        model: &model,
        knee: match knee {
            Knee::At(index) => Some(curve.windows[index].bytes),
            _ => None,
        },
        product: product.as_ref().map(|p| p.bytes),
    };

    let heading = format!("{}: goodput against {axis}", curve.name);
    let mut text = wrap("", Tint::None, &heading, style);
    for line in chart.render(style) {
        text.push_str(&line);
        text.push('\n');
    }
    let mut line = knee.words(&curve.windows, if curve.on_the_wire { " on the wire" } else { "" });
    if let Some(product) = product {
        line.push_str("; ");
        line.push_str(&product.words(times));
    }
    text.push_str(&wrap("knee  ", Tint::Strong, &line, style));
    text
}

/// Where a curve stops to rise.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Knee {
    /// At the window with this index.
    At(usize),
    /// The smallest measured window is large enough.
    Below,
    /// Only the largest measured window gets there, so a larger one may give more.
    Above,
}

/// The knee of windows in ascending order: the first whose goodput is at least [`KNEE_SHARE`] of the best.
fn knee(windows: &[Window]) -> Knee {
    let best = best(windows);
    match windows.iter().position(|w| w.goodput_bps >= KNEE_SHARE * best) {
        Some(0) => Knee::Below,
        Some(index) if index + 1 == windows.len() => Knee::Above,
        Some(index) => Knee::At(index),
        None => Knee::Above,
    }
}

fn best(windows: &[Window]) -> f64 {
    windows.iter().map(|w| w.goodput_bps).fold(0.0, f64::max)
}

impl Knee {
    fn words(self, windows: &[Window], kind: &str) -> String {
        let best = best(windows);
        let share = |w: &Window| percent(w.goodput_bps / best);
        let (Some(first), Some(last)) = (windows.first(), windows.last()) else { return String::new() };
        match self {
            Knee::Below => format!(
                "not in the sweep: the smallest window, {}{kind}, already gives {} of the best, {}",
                size(first.bytes),
                share(first),
                format_bps(best)
            ),
            Knee::Above => format!(
                "not in the sweep: goodput still rises at the largest window, {}{kind}, {}",
                size(last.bytes),
                format_bps(last.goodput_bps)
            ),
            Knee::At(index) => {
                let (at, before) = (&windows[index], &windows[index - 1]);
                let asked = if kind.is_empty() {
                    String::new()
                } else {
                    format!(" (asked {})", asked_size(at.asked_bytes))
                };
                let gain = if at.goodput_bps < best {
                    format!(
                        "{}, more window gains {} at most",
                        format_bps(at.goodput_bps),
                        percent(best / at.goodput_bps - 1.0)
                    )
                } else {
                    format!("{}, more window gains nothing", format_bps(best))
                };
                let mut text = format!(
                    "{}{kind}{asked}: {gain}; {} gives {} of the best",
                    size(at.bytes),
                    size(before.bytes),
                    share(before)
                );
                if last.goodput_bps < KNEE_SHARE * best {
                    text.push_str(&format!(", {} falls back to {}", size(last.bytes), share(last)));
                }
                text
            }
        }
    }
}

/// The product of rate and idle round trip: the window that the path itself asks for.
struct Product {
    bytes: f64,
    rate: String,
    rtt: Nanos,
}

/// From the configured rate of the direction that the flow takes, or where the link has none from the best goodput.
fn product(curve: &Curve<'_>) -> Option<Product> {
    let rtt = Nanos(curve.rtt_idle_min_ns?);
    let (bps, rate) = match configured_rate(curve.record) {
        Some(rate) => (rate.as_bps() as f64, rate.to_string()),
        None => {
            let best = best(&curve.windows);
            (best, format!("best goodput {}", format_bps(best)))
        }
    };
    Some(Product { bytes: bps * rtt.as_secs_f64() / 8.0, rate, rtt })
}

fn configured_rate(record: &Record) -> Option<Rate> {
    let flow = record.case.flows.first()?;
    record.case.links.iter().find_map(|link| {
        let [a, b] = &link.between;
        if (a, b) == (&flow.from, &flow.to) {
            link.config.forward.rate
        } else if (b, a) == (&flow.from, &flow.to) {
            link.config.reverse.rate
        } else {
            None
        }
    })
}

impl Product {
    fn words(&self, times: &str) -> String {
        format!("rate {times} RTT = {} {times} {} = {}", self.rate, self.rtt, size(self.bytes))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn windows(goodputs: &[f64]) -> Vec<Window> {
        goodputs
            .iter()
            .enumerate()
            .map(|(i, &goodput_bps)| {
                let asked_bytes = 1024 << i;
                Window { asked_bytes, bytes: asked_bytes as f64, goodput_bps, expected_bps: None }
            })
            .collect()
    }

    #[test]
    fn the_knee_is_the_smallest_window_within_five_percent_of_the_best() {
        assert_eq!(knee(&windows(&[25e6, 50e6, 94.9e6, 95e6, 100e6])), Knee::At(3));
        assert_eq!(knee(&windows(&[25e6, 100e6, 60e6, 100e6])), Knee::At(1));
        assert_eq!(knee(&windows(&[99e6, 100e6, 98e6])), Knee::Below);
        assert_eq!(knee(&windows(&[1e6, 2e6, 4e6, 8e6])), Knee::Above);
    }

    #[test]
    fn the_knee_tells_what_less_and_more_window_give() {
        let w = windows(&[25e6, 50e6, 96e6, 100e6, 70e6]);
        assert_eq!(
            knee(&w).words(&w, ""),
            "4.00 KiB: 96 Mbit/s, more window gains 4.2 % at most; 2.00 KiB gives 50 % of the best, \
             16.0 KiB falls back to 70 %"
        );
    }
}
