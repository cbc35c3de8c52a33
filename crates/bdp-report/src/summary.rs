//! Points of a scenario's sweep, as used by reports.

use std::collections::{BTreeMap, BTreeSet};

use bdp_model::record::Record;
pub(crate) use bdp_model::statistics::Spread;
pub(crate) use bdp_model::sweep::points::{Ending, SweepPoint as Point, ending, in_order, points};

use crate::number::three_digits;

/// Returns the user-space stacks by name and version; `None` if kernels ran.
pub(crate) fn stacks(records: &[Record]) -> Option<String> {
    let names: BTreeSet<&str> =
        records.iter().flat_map(|r| r.environment.stacks.values()).map(String::as_str).collect();
    (!names.is_empty()).then(|| names.into_iter().collect::<Vec<_>>().join(", "))
}

/// Returns the smallest idle round trip of any valid record in milliseconds; for several paths, from shortest to longest:
/// `24.3..42.0`.
pub(crate) fn rtt_idle_text(point: &Point<'_>) -> Option<String> {
    let mut paths: BTreeMap<[&str; 2], u64> = BTreeMap::new();
    for flow in point.valid().flat_map(|r| &r.flows) {
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
        (Some(&low), _) if !point.has_one_path() => Some(text(low)),
        _ => point.rtt_idle_min_ns().map(text),
    }
}
