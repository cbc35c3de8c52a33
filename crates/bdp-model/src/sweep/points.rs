//! Groups records by scenario and parameters. Only valid records enter statistics.

use std::cmp::Ordering;
use std::collections::BTreeMap;

use serde_json::Value;

use crate::case::Published;
use crate::plain::one_line;
use crate::record::Record;
use crate::statistics::Spread;
use crate::sweep::parameter::{Kind, Parameter, Quantity};
use crate::units::asked_size;

/// All attempts at one point of a scenario's sweep.
pub struct SweepPoint<'a> {
    /// Name of the scenario.
    pub scenario: &'a str,
    /// The swept parameters.
    pub params: &'a BTreeMap<String, Value>,
    /// Attempts in order of repetition and attempt.
    pub records: Vec<&'a Record>,
}

/// How an attempt ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Ending {
    /// It is valid.
    Valid,
    /// It ran, but the emulator exceeded a bound.
    Invalid,
    /// It did not run to its end.
    Failed,
    /// It was not run: something it needs is missing or does not exist.
    Skipped,
}

/// Returns how `record` ended.
pub fn ending(record: &Record) -> Ending {
    match (record.valid, &record.error, &record.skipped) {
        (true, ..) => Ending::Valid,
        (false, Some(_), _) => Ending::Failed,
        (false, None, Some(_)) => Ending::Skipped,
        (false, None, None) => Ending::Invalid,
    }
}

impl<'a> SweepPoint<'a> {
    /// Returns the valid attempts.
    pub fn valid(&self) -> impl Iterator<Item = &'a Record> {
        self.records.iter().copied().filter(|r| r.valid)
    }

    /// Returns the number of attempts that ended this way.
    pub fn count(&self, how: Ending) -> usize {
        self.records.iter().filter(|r| ending(r) == how).count()
    }

    /// Returns the spread of the goodput, bit/s.
    pub fn goodput_bps(&self) -> Option<Spread> {
        Spread::of(self.valid().filter_map(|r| r.goodput_bps))
    }

    /// Returns the valid record whose goodput is nearest to the median.
    pub fn representative(&self) -> Option<&'a Record> {
        let median = self.goodput_bps()?.median;
        let distance = |r: &&Record| r.goodput_bps.map_or(f64::INFINITY, |g| (g - median).abs());
        self.valid().min_by(|a, b| distance(a).total_cmp(&distance(b)))
    }

    /// Returns the spread of the model's goodput, bit/s.
    pub fn expected_bps(&self) -> Option<Spread> {
        Spread::of(self.valid().filter_map(|r| r.expected_bps))
    }

    /// Returns the spread of goodput / the model's goodput of the same record.
    pub fn model_ratio(&self) -> Option<Spread> {
        Spread::of(self.valid().filter_map(|r| {
            let expected = r.expected_bps.filter(|&e| e > 0.0)?;
            Some(r.goodput_bps? / expected)
        }))
    }

    /// Returns the smallest idle round trip of the valid records; `None` if flows between other hosts had their own.
    pub fn rtt_idle_min_ns(&self) -> Option<u64> {
        self.valid().filter_map(|r| r.rtt_idle_ns).min().filter(|_| self.has_one_path())
    }

    /// Whether all flows ran between the same two hosts, so that one round trip applies to all.
    pub fn has_one_path(&self) -> bool {
        self.valid().all(|record| {
            let mut ends =
                record.flows.iter().map(|f| if f.from < f.to { [&f.from, &f.to] } else { [&f.to, &f.from] });
            let first = ends.next();
            ends.all(|other| Some(other) == first)
        })
    }

    /// Returns the spread of the window on the wire, bytes.
    pub fn on_the_wire_bytes(&self) -> Option<Spread> {
        Spread::of(self.valid().filter_map(|r| r.window.on_the_wire_bytes).map(|b| b as f64))
    }

    /// Returns the figure that the experiment's source published.
    pub fn published_bps(&self) -> Option<Published> {
        self.records.iter().find_map(|r| r.published_bps)
    }

    /// Returns the valid records that did not meet their expectation.
    pub fn missed(&self) -> impl Iterator<Item = &'a Record> {
        self.valid().filter(|r| r.expectation.as_ref().is_some_and(|e| e.met == Some(false)))
    }
}

/// Returns the scenario and its swept parameters, without the one at `except`.
pub fn name(point: &SweepPoint<'_>, except: Option<&str>) -> String {
    let mut name = one_line(point.scenario);
    for (path, value) in point.params.iter().filter(|(path, _)| Some(path.as_str()) != except) {
        let value = window(path, value).map_or_else(|| value_words(value), asked_size);
        name.push_str(&format!(" {} {value}", label(path, point)));
    }
    name
}

/// Returns the size if the parameter is a window.
pub fn window(path: &str, value: &Value) -> Option<u64> {
    let parameter = Parameter::at(path);
    parameter.axis.filter(|axis| axis.is_window())?;
    parameter.read(&value_words(value)).map(|size| size.value as u64)
}

/// Returns the last part of the path, or as many as distinguish it from the point's other parameters.
pub fn label(path: &str, point: &SweepPoint<'_>) -> String {
    let parts: Vec<&str> = path.split('.').collect();
    let suffix = |n: usize| parts[parts.len() - n..].join(".");
    let unique = |text: &str| {
        point.params.keys().filter(|p| *p == text || p.ends_with(&format!(".{text}"))).count() <= 1
    };
    let n = (1..parts.len()).find(|&n| unique(&suffix(n))).unwrap_or(parts.len());
    one_line(&suffix(n))
}

/// Returns a parameter's value in one line: words without quotes.
pub fn value_words(value: &Value) -> String {
    match value {
        Value::String(text) => one_line(text),
        other => one_line(&other.to_string()),
    }
}

/// Returns the points of `records`: scenarios in order of first appearance, and the parameters of each in ascending order if
/// they are quantities of one kind, otherwise in order of first appearance.
pub fn points(records: &[Record]) -> Vec<SweepPoint<'_>> {
    let mut points: Vec<SweepPoint<'_>> = Vec::new();
    let mut found: BTreeMap<(&str, String), usize> = BTreeMap::new();
    for record in records {
        let key = (record.scenario.as_str(), Value::from_iter(record.params.clone()).to_string());
        let index = *found.entry(key).or_insert_with(|| {
            points.push(SweepPoint {
                scenario: &record.scenario,
                params: &record.params,
                records: Vec::new(),
            });
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

/// Returns all records, in the natural order of their points and attempts.
pub fn in_order(records: &[Record]) -> Vec<&Record> {
    points(records).into_iter().flat_map(|point| point.records).collect()
}

/// Returns the natural order of parameters and repetitions, as indices: by each parameter in turn, quantities by size and words
/// alphabetically, because the random order of measurement gives no other.
pub fn natural_order(all: &[(&BTreeMap<String, Value>, u32)]) -> Vec<usize> {
    let paths: std::collections::BTreeSet<&String> =
        all.iter().flat_map(|(params, _)| params.keys()).collect();
    let columns: Vec<Vec<f64>> = paths
        .iter()
        .map(|path| {
            let values: Vec<_> = all.iter().map(|(params, _)| params.get(*path)).collect();
            ranks(&Parameter::at(path), &values)
        })
        .collect();
    let mut order: Vec<usize> = (0..all.len()).collect();
    order.sort_by(|&a, &b| {
        let by_params = columns.iter().map(|c| c[a].total_cmp(&c[b])).find(|o| o.is_ne());
        by_params.unwrap_or(Ordering::Equal).then(all[a].1.cmp(&all[b].1))
    });
    order
}

fn sort_by_params(points: &mut Vec<SweepPoint<'_>>) {
    let order = natural_order(&points.iter().map(|p| (p.params, 0)).collect::<Vec<_>>());
    let mut taken: Vec<Option<SweepPoint<'_>>> = points.drain(..).map(Some).collect();
    points.extend(order.into_iter().filter_map(|i| taken[i].take()));
}

/// Returns a sort key for each value: the quantity if all have the same unit, otherwise its alphabetical place.
fn ranks(parameter: &Parameter, values: &[Option<&Value>]) -> Vec<f64> {
    let quantities: Option<Vec<Quantity>> = values
        .iter()
        .map(|value| match value {
            Some(Value::Number(n)) if parameter.kind == Kind::Word => {
                Some(Quantity { value: n.as_f64()?, unit: parameter.unit })
            }
            Some(value @ (Value::Number(_) | Value::String(_))) => parameter.read(&value_words(value)),
            _ => None,
        })
        .collect();
    if let Some(quantities) = quantities.filter(|all| all.iter().all(|q| q.unit == all[0].unit)) {
        return quantities.iter().map(|quantity| quantity.value).collect();
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
        let sorted = |path: &str, texts: &[&str]| {
            let values: Vec<Value> = texts.iter().map(|&t| t.into()).collect();
            let ranks = ranks(&Parameter::at(path), &values.iter().map(Some).collect::<Vec<_>>());
            let mut order: Vec<usize> = (0..texts.len()).collect();
            order.sort_by(|&a, &b| ranks[a].total_cmp(&ranks[b]));
            order.into_iter().map(|i| texts[i].to_owned()).collect::<Vec<_>>()
        };
        assert_eq!(sorted("window", &["1M", "512", "64K"]), ["512", "64K", "1M"]);
        assert_eq!(sorted("link.delay", &["1s", "300us", "2ms"]), ["300us", "2ms", "1s"]);
        assert_eq!(sorted("link.rate", &["1Gbit", "900Mbit"]), ["900Mbit", "1Gbit"]);
        assert_eq!(sorted("link.limit", &["100p", "9", "20p"]), ["9", "20p", "100p"]);
        assert_eq!(sorted("hosts.far.sysctls.net.ipv4.tcp_sack", &["10", "9"]), ["9", "10"]);
        assert_eq!(sorted("link.loss", &["5%", "0.1%"]), ["0.1%", "5%"]);
        assert_eq!(sorted("congestion", &["reno", "bbr", "cubic"]), ["bbr", "cubic", "reno"]);
    }
}
