//! What a case should have reached, and whether it did.

use std::collections::BTreeMap;

use bdp_model::path::window::{self, Congestion, WindowOnWire};
use bdp_model::record::{Expectation, FlowRecord};
use bdp_model::scenario::{CaseSpec, Expect};
use bdp_model::units::{Nanos, format_bps};

use crate::window::{Means, header_bytes, link_of, planned_mss};

/// The model's goodput of the whole case and the terms that ruled.
pub(crate) fn expected(
    case: &CaseSpec,
    means: &[Means],
    flows: &[FlowRecord],
    rtt: Option<Nanos>,
) -> Option<(f64, String)> {
    // The round trip was measured on the first flow's link: of another link it says nothing.
    let probed = case.flows.first().and_then(|flow| link_of(case, flow));
    let mut terms = Vec::new();
    // What the flows of each direction must reach by themselves, and the ceiling that they share.
    let mut directions: BTreeMap<(&str, &str), (f64, Option<f64>)> = BTreeMap::new();
    for ((flow, means), record) in case.flows.iter().zip(means).zip(flows) {
        if link_of(case, flow) != probed {
            return None;
        }
        let path = path(case, flow, record, rtt?)?;
        let seen = record.window.on_the_wire_bytes;
        let window = match (means, seen) {
            (Means::Path { .. }, Some(bytes)) => WindowOnWire::PathClamp(bytes),
            (Means::Receiver { .. }, Some(bytes)) => WindowOnWire::Receiver(bytes),
            (Means::Autotuned, _) => {
                record.window.on_the_wire_max_bytes.map_or(WindowOnWire::Autotuned, WindowOnWire::Receiver)
            }
            (_, None) => return None,
        };
        let expectation = window::expect_goodput(&path, &window, flow.streams)?;
        let direction = directions.entry((&flow.from, &flow.to)).or_default();
        direction.0 += expectation.bps;
        direction.1 =
            window::expect_goodput(&window::Path { loss: 0.0, ..path }, &WindowOnWire::Autotuned, 1)
                .map(|ceiling| ceiling.bps);
        terms.push(expectation.by);
    }
    let mut total = 0.0;
    for (sum, ceiling) in directions.into_values() {
        match ceiling {
            Some(ceiling) if sum > ceiling * 1.000_001 => {
                total += ceiling;
                terms.push(format!("shared ceiling: {}", format_bps(ceiling)));
            }
            _ => total += sum,
        }
    }
    terms.dedup();
    (!terms.is_empty()).then(|| (total, terms.join("; ")))
}

fn path(
    case: &CaseSpec,
    flow: &bdp_model::scenario::FlowSpec,
    record: &FlowRecord,
    rtt: Nanos,
) -> Option<window::Path> {
    let link = link_of(case, flow)?;
    let direction = if link.between[0] == flow.from { &link.config.forward } else { &link.config.reverse };
    Some(window::Path {
        rate: direction.rate,
        overhead_bytes: u64::from(direction.overhead_bytes),
        mss_bytes: record.mss_bytes.unwrap_or_else(|| planned_mss(case, flow)),
        header_bytes: header_bytes(case),
        rtt,
        loss: direction.loss.probability(),
        congestion: Congestion::from_name(&record.congestion_control),
    })
}

/// Holds a goodput against what was written down before the run; `None` where nothing was.
pub(crate) fn judge(
    expect: &Expect,
    goodput_bps: Option<f64>,
    model_bps: Option<f64>,
) -> Option<Expectation> {
    let mut texts = Vec::new();
    let mut met = goodput_bps.is_some();
    if let Some(within) = expect.model_within {
        texts.push(format!("goodput within {within} of the model"));
        met &= match (goodput_bps, model_bps) {
            (Some(got), Some(model)) => (got / model - 1.0).abs() <= within.fraction(),
            _ => false,
        };
    }
    if let Some(least) = expect.goodput_min_bps {
        texts.push(format!("goodput at least {}", format_bps(least as f64)));
        met &= goodput_bps.is_some_and(|got| got >= least as f64);
    }
    if let Some(most) = expect.goodput_max_bps {
        texts.push(format!("goodput at most {}", format_bps(most as f64)));
        met &= goodput_bps.is_some_and(|got| got <= most as f64);
    }
    (!texts.is_empty()).then(|| Expectation { text: texts.join(", "), met: Some(met) })
}

#[cfg(test)]
mod tests {
    use bdp_model::units::Probability;

    use super::*;

    #[test]
    fn an_expectation_is_met_or_missed() {
        let expect =
            Expect { model_within: Probability::new(0.05), goodput_min_bps: Some(90), goodput_max_bps: None };
        assert_eq!(judge(&expect, Some(96.0), Some(100.0)).unwrap().met, Some(true));
        assert_eq!(judge(&expect, Some(94.0), Some(100.0)).unwrap().met, Some(false));
        assert_eq!(judge(&expect, Some(89.0), Some(90.0)).unwrap().met, Some(false));
        assert_eq!(judge(&expect, None, Some(90.0)).unwrap().met, Some(false));
        assert_eq!(judge(&Expect::default(), Some(1.0), None), None);
    }
}
