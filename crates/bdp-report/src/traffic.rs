//! Cases with traffic: transfer times, and the use of the path by concurrent flows.

use bdp_model::case::traffic::TrafficRecord;
use bdp_model::record::Record;
use bdp_model::sweep::repeated::Repeated;

use crate::grid::{Align, Cell, Column, columns_of, render, tame, wrap};
use crate::number::{RateUnit, loss, three_digits};
use crate::style::{Style, Tint};
use crate::summary::{Point, Spread};
use crate::varied::varied;

/// Returns two tables of medians over the valid repetitions, and the seeds of points with enough repetitions for an interval; empty if no
/// case has traffic.
pub(crate) fn traffic(points: &[Point<'_>], unit: RateUnit, style: &Style) -> String {
    let Some([paths, transfers]) = tables(points, unit, style) else { return String::new() };
    let mut text = render(&paths, &[], style);
    text.push('\n');
    text.push_str(&render(&transfers, &[], style));
    let seeds = seeds(points, style);
    if !seeds.is_empty() {
        text.push('\n');
    }
    for line in seeds {
        text.push_str(&wrap("seeds  ", Tint::Strong, &line, style));
    }
    text
}

/// Returns the tables of paths and of transfers; `None` if no case has traffic.
pub(crate) fn tables(points: &[Point<'_>], unit: RateUnit, style: &Style) -> Option<[Vec<Column>; 2]> {
    let with = with_traffic(points);
    (!with.is_empty()).then(|| [of_paths(&with, unit, style), of_transfers(&with, style)])
}

fn with_traffic<'p, 'a>(points: &'p [Point<'a>]) -> Vec<&'p Point<'a>> {
    points.iter().filter(|point| point.valid().any(|record| !record.traffic.is_empty())).collect()
}

/// Returns the seeds of the valid repetitions, in order, for each point with an interval.
pub(crate) fn seeds(points: &[Point<'_>], style: &Style) -> Vec<String> {
    let with = with_traffic(points).into_iter().filter(|point| interval(point).is_some());
    let line = |point: &Point<'_>| {
        let seeds: Vec<String> = point.valid().map(|record| record.seed.to_string()).collect();
        format!("{}: {}", name(point, style).text, seeds.join(" "))
    };
    with.map(line).collect()
}

/// Returns the 95 % confidence interval of the mean goodput.
fn interval(point: &Point<'_>) -> Option<[f64; 2]> {
    Repeated::of(point)?.mean_interval
}

/// Returns the fairness index of Jain, Chiu and Hawe (DEC-TR-301, 1984): 1 if all shares are equal, 1/n if one has everything.
pub fn fairness(shares: &[f64]) -> Option<f64> {
    let sum: f64 = shares.iter().sum();
    let squares: f64 = shares.iter().map(|share| share * share).sum();
    (shares.len() > 1 && squares > 0.0).then(|| sum * sum / (shares.len() as f64 * squares))
}

/// Returns the fairness of the flows, without background flows.
fn fairness_of(record: &Record) -> Option<f64> {
    let counted = record.case.flows.iter().zip(&record.flows).filter(|(asked, _)| !asked.background);
    fairness(&counted.map(|(_, flow)| flow.goodput_bps).collect::<Vec<_>>())
}

/// Returns the largest share of packets dropped by the queue of a direction, from overflow or by its own decision.
fn dropped(record: &Record) -> Option<f64> {
    let share = |d: &bdp_model::record::DirectionFidelity| {
        let by = |cause: &str| d.dropped.get(cause).copied().unwrap_or(0);
        (d.packets_in > 0).then(|| (by("queue") + by("aqm")) as f64 / d.packets_in as f64)
    };
    record.fidelity.directions.iter().filter_map(share).reduce(f64::max)
}

fn middle(point: &Point<'_>, of: impl Fn(&Record) -> Option<f64>) -> Option<f64> {
    Spread::of(point.valid().filter_map(of)).map(|spread| spread.median)
}

fn cell(value: Option<f64>, format: impl Fn(f64) -> String) -> Cell {
    Cell::plain(value.map_or_else(|| "-".to_owned(), format))
}

fn name(point: &Point<'_>, style: &Style) -> Cell {
    let varied = varied(point, style, None);
    Cell::tinted(if varied.is_empty() { tame(point.scenario) } else { varied }, Tint::Strong)
}

fn of_paths(points: &[&Point<'_>], unit: RateUnit, style: &Style) -> Vec<Column> {
    let column = |head, align, of: &dyn Fn(&Point<'_>) -> Cell| {
        Column::new(head, align, points.iter().map(|point| of(point)).collect())
    };
    let ms = |ns: f64| three_digits(ns / 1e6);
    let loaded = |record: &Record| record.rtt_ns.loaded;
    let queue = |record: &Record, at: Option<u64>| {
        let idle = record.rtt_ns.idle.map(|idle| idle.min)?;
        Some(at?.saturating_sub(idle) as f64)
    };
    let columns = vec![
        column(["", "traffic on"], Align::Left, &|p| name(p, style)),
        column(["goodput", unit.name], Align::Point, &|p| {
            cell(middle(p, |r| r.goodput_bps), |bps| unit.format(bps))
        }),
        column(["", "mean"], Align::Point, &|p| {
            let mean = interval(p).and_then(|_| Repeated::of(p)).map(|repeated| repeated.moments.mean);
            cell(mean, |bps| unit.format(bps))
        }),
        column(["95 %:", "mean lies in"], Align::Point, &|p| {
            Cell::plain(
                interval(p).map_or_else(|| "-".to_owned(), |ends| crate::repeated::interval(ends, unit)),
            )
        }),
        column(["Jain's", "index"], Align::Point, &|p| {
            cell(middle(p, fairness_of), |index| format!("{index:.3}"))
        }),
        column(["RTT ms", "idle"], Align::Point, &|p| {
            cell(middle(p, |r| r.rtt_ns.idle.map(|rtt| rtt.min as f64)), ms)
        }),
        column(["queue ms", "p50"], Align::Point, &|p| {
            cell(middle(p, |r| queue(r, loaded(r).map(|rtt| rtt.p50))), ms)
        }),
        column(["queue ms", "p95"], Align::Point, &|p| {
            cell(middle(p, |r| queue(r, loaded(r).and_then(|rtt| rtt.p95))), ms)
        }),
        column(["queue", "drops"], Align::Point, &|p| cell(middle(p, dropped), loss)),
        column(["", "n"], Align::Point, &|p| Cell::plain(p.valid().count().to_string())),
    ];
    columns.into_iter().filter(|column| !column.is_blank()).collect()
}

fn of_transfers(points: &[&Point<'_>], style: &Style) -> Vec<Column> {
    let mut rows: Vec<[Cell; 9]> = Vec::new();
    for point in points {
        let entries = point.valid().map(|record| record.traffic.len()).max().unwrap_or(0);
        for index in 0..entries {
            let Some(entry) = point.valid().find_map(|record| record.traffic.get(index)) else { continue };
            let of = |figure: &dyn Fn(&TrafficRecord) -> Option<f64>| {
                middle(point, |record| figure(record.traffic.get(index)?))
            };
            let whole = |n: f64| format!("{n:.0}");
            let at = |percent: usize| of(&|t| t.completion_ns.get(percent).map(|&ns| ns as f64));
            let ms = |ns: f64| three_digits(ns / 1e6);
            rows.push([
                if index == 0 { name(point, style) } else { Cell::default() },
                Cell::plain(tame(&entry.name)),
                cell(of(&|t| Some(t.transfers as f64)), whole),
                cell(of(&|t| t.completion_mean_ns.map(|ns| ns as f64)), ms),
                cell(at(50), ms),
                cell(at(95), ms),
                cell(at(99), ms),
                of(&|t| t.late.map(|n| n as f64)).map_or_else(Cell::default, |n| Cell::plain(whole(n))),
                cell(of(&|t| Some(t.unfinished as f64)), whole),
            ]);
        }
    }
    const HEADS: [[&str; 2]; 9] = [
        ["", "transfers of"],
        ["", "traffic"],
        ["", "transfers"],
        ["completion", "mean ms"],
        ["", "p50 ms"],
        ["", "p95 ms"],
        ["", "p99 ms"],
        ["", "late"],
        ["un-", "finished"],
    ];
    columns_of(HEADS, &rows, 2)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn jains_index_is_one_for_the_same_and_a_part_for_one_of_many() {
        assert_eq!(fairness(&[5.0, 5.0, 5.0]), Some(1.0));
        assert_eq!(fairness(&[8.0, 0.0, 0.0, 0.0]), Some(0.25));
        // (1 + 3)^2 / (2 x 10)
        assert_eq!(fairness(&[1.0, 3.0]), Some(0.8));
        assert_eq!(fairness(&[1.0]), None);
        assert_eq!(fairness(&[0.0, 0.0]), None);
    }
}
