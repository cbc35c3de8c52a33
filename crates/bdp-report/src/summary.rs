//! Records of the same scenario and parameters brought together. Only valid records enter a statistic.

use std::cmp::Ordering;
use std::collections::BTreeMap;

use bdp_model::record::{Published, Record};
use bdp_model::stats;
use bdp_model::{ByteCount, Nanos, Probability, Rate};
use serde_json::Value;

use crate::number::three_digits;

/// Every attempt at one point of a scenario's sweep.
pub(crate) struct Point<'a> {
    /// Name of the scenario.
    pub scenario: &'a str,
    /// The swept parameters.
    pub params: &'a BTreeMap<String, Value>,
    /// Attempts in order of repetition and attempt.
    pub records: Vec<&'a Record>,
}

/// Median, smallest and largest of a number of values.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(crate) struct Spread {
    pub median: f64,
    pub min: f64,
    pub max: f64,
}

impl Spread {
    /// Of the values that are finite; `None` where there is none.
    pub fn of(values: impl IntoIterator<Item = f64>) -> Option<Self> {
        let mut values: Vec<f64> = values.into_iter().filter(|v| v.is_finite()).collect();
        let median = stats::median(&mut values)?;
        Some(Self { median, min: *values.first()?, max: *values.last()? })
    }
}

/// How an attempt ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Ending {
    /// It counts.
    Valid,
    /// It ran, but the emulator did not keep its promise.
    Invalid,
    /// It did not run to its end.
    Failed,
}

/// How `record` ended.
pub(crate) fn ending(record: &Record) -> Ending {
    match (record.valid, &record.error) {
        (true, _) => Ending::Valid,
        (false, None) => Ending::Invalid,
        (false, Some(_)) => Ending::Failed,
    }
}

impl<'a> Point<'a> {
    /// The attempts that count.
    pub fn valid(&self) -> impl Iterator<Item = &'a Record> {
        self.records.iter().copied().filter(|r| r.valid)
    }

    /// How many attempts ended so.
    pub fn count(&self, how: Ending) -> usize {
        self.records.iter().filter(|r| ending(r) == how).count()
    }

    /// Goodput, bit/s.
    pub fn goodput_bps(&self) -> Option<Spread> {
        Spread::of(self.valid().filter_map(|r| r.goodput_bps))
    }

    /// The valid record whose goodput is nearest to the median.
    pub fn representative(&self) -> Option<&'a Record> {
        let median = self.goodput_bps()?.median;
        let distance = |r: &&Record| r.goodput_bps.map_or(f64::INFINITY, |g| (g - median).abs());
        self.valid().min_by(|a, b| distance(a).total_cmp(&distance(b)))
    }

    /// The model's goodput, bit/s.
    pub fn expected_bps(&self) -> Option<Spread> {
        Spread::of(self.valid().filter_map(|r| r.expected_bps))
    }

    /// Goodput / the model's goodput of the same record.
    pub fn model_ratio(&self) -> Option<Spread> {
        Spread::of(self.valid().filter_map(|r| {
            let expected = r.expected_bps.filter(|&e| e > 0.0)?;
            Some(r.goodput_bps? / expected)
        }))
    }

    /// Smallest idle round trip of any valid record; `None` where flows between other hosts had one of their own.
    pub fn rtt_idle_min_ns(&self) -> Option<u64> {
        self.valid().filter_map(|r| r.rtt_idle_ns).min().filter(|_| self.has_one_path())
    }

    /// Whether all flows went between the same two hosts, so that one round trip is that of all.
    pub fn has_one_path(&self) -> bool {
        self.valid().all(|record| {
            let mut ends =
                record.flows.iter().map(|f| if f.from < f.to { [&f.from, &f.to] } else { [&f.to, &f.from] });
            let first = ends.next();
            ends.all(|other| Some(other) == first)
        })
    }

    /// Smallest idle round trip of any valid record in milliseconds as text; of several paths from the shortest to the longest:
    /// `24.3..42.0`.
    pub fn rtt_idle_text(&self) -> Option<String> {
        let mut paths: BTreeMap<[&str; 2], u64> = BTreeMap::new();
        for flow in self.valid().flat_map(|r| &r.flows) {
            let ends = [flow.from.as_str().min(&flow.to), flow.from.as_str().max(&flow.to)];
            if let Some(idle) = &flow.rtt_ns.idle {
                let least = paths.entry(ends).or_insert(idle.min);
                *least = idle.min.min(*least);
            }
        }
        let text = |ns: u64| three_digits(ns as f64 / 1e6);
        match (paths.values().min(), paths.values().max()) {
            (Some(&low), Some(&high)) if text(low) != text(high) => {
                Some(format!("{}..{}", text(low), text(high)))
            }
            (Some(&low), _) if !self.has_one_path() => Some(text(low)),
            _ => self.rtt_idle_min_ns().map(text),
        }
    }

    /// Window on the wire, bytes.
    pub fn on_the_wire_bytes(&self) -> Option<Spread> {
        Spread::of(self.valid().filter_map(|r| r.window.on_the_wire_bytes).map(|b| b as f64))
    }

    /// What the source of the experiment printed.
    pub fn published_bps(&self) -> Option<Published> {
        self.records.iter().find_map(|r| r.published_bps)
    }

    /// Valid records that did not meet their expectation.
    pub fn missed(&self) -> impl Iterator<Item = &'a Record> {
        self.valid().filter(|r| r.expectation.as_ref().is_some_and(|e| e.met == Some(false)))
    }
}

/// The points of `records`: scenarios as they first appear, and within each its parameters in ascending order where
/// they are quantities of one kind, as they first appear where they are not.
pub(crate) fn points(records: &[Record]) -> Vec<Point<'_>> {
    let mut points: Vec<Point<'_>> = Vec::new();
    let mut found: BTreeMap<(&str, String), usize> = BTreeMap::new();
    for record in records {
        let key = (record.scenario.as_str(), Value::from_iter(record.params.clone()).to_string());
        let index = *found.entry(key).or_insert_with(|| {
            points.push(Point { scenario: &record.scenario, params: &record.params, records: Vec::new() });
            points.len() - 1
        });
        points[index].records.push(record);
    }
    for point in &mut points {
        point.records.sort_by_key(|r| (r.repetition, r.attempt));
    }
    let mut order: Vec<&str> = Vec::new();
    for point in &points {
        if !order.contains(&point.scenario) {
            order.push(point.scenario);
        }
    }
    let mut sorted = Vec::with_capacity(points.len());
    for scenario in order {
        let (mut same, rest): (Vec<_>, Vec<_>) = points.into_iter().partition(|p| p.scenario == scenario);
        sort_by_params(&mut same);
        sorted.extend(same);
        points = rest;
    }
    sorted
}

/// Every record, in the natural order of their points and of the attempts at each.
pub fn in_order(records: &[Record]) -> Vec<&Record> {
    points(records).into_iter().flat_map(|point| point.records).collect()
}

/// The natural order of parameters and repetitions, as indices: by each parameter in turn, quantities by size and words by their
/// letters, since what is measured in random order tells no other.
pub fn natural_order(all: &[(&BTreeMap<String, Value>, u32)]) -> Vec<usize> {
    let paths: std::collections::BTreeSet<&String> =
        all.iter().flat_map(|(params, _)| params.keys()).collect();
    let columns: Vec<Vec<f64>> = paths
        .iter()
        .map(|path| ranks(&all.iter().map(|(params, _)| params.get(*path)).collect::<Vec<_>>()))
        .collect();
    let mut order: Vec<usize> = (0..all.len()).collect();
    order.sort_by(|&a, &b| {
        let by_params = columns.iter().map(|c| c[a].total_cmp(&c[b])).find(|o| o.is_ne());
        by_params.unwrap_or(Ordering::Equal).then(all[a].1.cmp(&all[b].1))
    });
    order
}

fn sort_by_params(points: &mut Vec<Point<'_>>) {
    let order = natural_order(&points.iter().map(|p| (p.params, 0)).collect::<Vec<_>>());
    let mut taken: Vec<Option<Point<'_>>> = points.drain(..).map(Some).collect();
    points.extend(order.into_iter().filter_map(|i| taken[i].take()));
}

/// A sort key for each value: its quantity where all are quantities of one kind, else its place in the alphabet.
fn ranks(values: &[Option<&Value>]) -> Vec<f64> {
    let kinds: [fn(&str) -> Option<f64>; 4] = [
        |t| t.parse::<ByteCount>().ok().map(|q| q.as_bytes() as f64),
        |t| t.parse::<Nanos>().ok().map(|q| q.as_ns() as f64),
        |t| t.parse::<Rate>().ok().map(|q| q.as_bps() as f64),
        |t| t.parse::<Probability>().ok().map(Probability::fraction),
    ];
    for kind in kinds {
        let quantities: Option<Vec<f64>> = values
            .iter()
            .map(|value| match value {
                Some(Value::Number(n)) => n.as_f64(),
                Some(Value::String(s)) => kind(s),
                _ => None,
            })
            .collect();
        if let Some(quantities) = quantities {
            return quantities;
        }
    }
    let texts: Vec<String> = values.iter().map(|v| v.map_or_else(String::new, Value::to_string)).collect();
    let mut alphabet: Vec<&String> = texts.iter().collect();
    alphabet.sort_unstable();
    alphabet.dedup();
    texts.iter().map(|text| alphabet.binary_search(&text).unwrap_or(0) as f64).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn quantities_sort_by_size_and_words_by_their_letters() {
        let sorted = |texts: &[&str]| {
            let values: Vec<Value> = texts.iter().map(|&t| t.into()).collect();
            let ranks = ranks(&values.iter().map(Some).collect::<Vec<_>>());
            let mut order: Vec<usize> = (0..texts.len()).collect();
            order.sort_by(|&a, &b| ranks[a].total_cmp(&ranks[b]));
            order.into_iter().map(|i| texts[i].to_owned()).collect::<Vec<_>>()
        };
        assert_eq!(sorted(&["1M", "512", "64K"]), ["512", "64K", "1M"]);
        assert_eq!(sorted(&["1s", "300us", "2ms"]), ["300us", "2ms", "1s"]);
        assert_eq!(sorted(&["1Gbit", "900Mbit"]), ["900Mbit", "1Gbit"]);
        assert_eq!(sorted(&["5%", "0.1%"]), ["0.1%", "5%"]);
        assert_eq!(sorted(&["reno", "bbr", "cubic"]), ["bbr", "cubic", "reno"]);
    }

    #[test]
    fn spread_leaves_out_what_is_not_a_number() {
        let spread = Spread::of([3.0, f64::NAN, 1.0, 2.0, 10.0]).unwrap();
        assert_eq!((spread.median, spread.min, spread.max), (2.5, 1.0, 10.0));
        assert_eq!(Spread::of([f64::INFINITY]), None);
    }
}
