//! What a case should have reached, and whether it did.

use bdp_model::path::window::{self, Congestion, WindowOnWire};
use bdp_model::record::{Expectation, FlowRecord};
use bdp_model::scenario::{CaseSpec, Expect, FlowSpec};
use bdp_model::units::format_bps;

use crate::conduct::probe_bytes;
use crate::share::{self, Load};
use crate::way::{Way, smallest};
use crate::window::{Means, header_bytes, planned_mss};

/// The model's goodput of the case's flows but those in the background, and the terms that ruled. Each flow is held against its own way and its own round
/// trip; flows that share a link share what it carries.
pub(crate) fn expected(case: &CaseSpec, means: &[Means], flows: &[FlowRecord]) -> Option<(f64, String)> {
    let mut terms = Vec::new();
    let mut loads = Vec::new();
    for ((flow, means), record) in case.flows.iter().zip(means).zip(flows) {
        let way = Way::of(case, flow)?;
        let (bps, by) = of_flow(case, flow, &way, *means, record)?;
        loads.push(Load::new(case, flow, &way, segment_bytes(case, flow, record), bps));
        if !flow.background {
            terms.push(by);
        }
    }
    let (total, shared) = share::total(&loads)?;
    terms.extend(shared.into_iter().map(|bps| format!("shared ceiling: {}", format_bps(bps))));
    terms.dedup();
    (!terms.is_empty()).then(|| (total, terms.join("; ")))
}

/// What one flow must reach by itself.
fn of_flow(
    case: &CaseSpec,
    flow: &FlowSpec,
    way: &Way<'_>,
    means: Means,
    record: &FlowRecord,
) -> Option<(f64, String)> {
    let (mss, headers) = segment_bytes(case, flow, record);
    if let Some((hop, most)) = way.black_hole(mss + headers) {
        let by =
            format!("black hole: {} lets {most} B through, a segment has {}", way.name(hop), mss + headers);
        return Some((0.0, by));
    }
    if let Some(udp) = flow.udp {
        let offered = udp.rate.as_bps() as f64 * f64::from(flow.streams);
        let rooms = way.rooms(mss, headers).map(|(_, bps, _)| bps);
        return Some(match bdp_model::path::udp::goodput(offered, way.loss(), rooms) {
            (bps, true) => (bps, format!("ceiling: {}", format_bps(bps))),
            (bps, false) => (bps, "what is offered, less loss".to_owned()),
        });
    }
    let rtt = smallest(record.rtt_ns.idle)?;
    let slowest = way.slowest(mss + headers);
    let path = window::Path {
        rate: slowest.map(|(_, rate)| rate),
        overhead_bytes: slowest.map_or(0, |(hop, _)| u64::from(hop.direction(&case.links).overhead_bytes)),
        mss_bytes: mss,
        header_bytes: headers,
        rtt: rtt + way.store_and_forward(mss + headers, probe_bytes(case, flow).0),
        loss: way.loss(),
        congestion: Congestion::from_name(&record.congestion_control),
    };
    let seen = record.window.on_the_wire_bytes;
    let window = match (means, seen) {
        (Means::Path { .. }, Some(bytes)) => WindowOnWire::PathClamp(bytes),
        (Means::Receiver { .. }, Some(bytes)) => WindowOnWire::Receiver(bytes),
        (Means::Autotuned, _) => {
            record.window.on_the_wire_max_bytes.map_or(WindowOnWire::Autotuned, WindowOnWire::Receiver)
        }
        (_, None) => return None,
    };
    let rooms = way.rooms(mss, headers).map(|(_, bps, by)| (bps, format!("{by}: {}", format_bps(bps))));
    // Of equals the first: a plain ceiling is the model's own.
    window::expect_goodput(&path, &window, flow.streams)
        .map(|e| (e.bps, e.by))
        .into_iter()
        .chain(rooms)
        .min_by(|a, b| a.0.total_cmp(&b.0))
}

/// Payload and headers of a full segment.
fn segment_bytes(case: &CaseSpec, flow: &FlowSpec, record: &FlowRecord) -> (u64, u64) {
    (record.mss_bytes.unwrap_or_else(|| planned_mss(case, flow)), header_bytes(case, flow))
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
            // Of nothing there is no fraction.
            (Some(got), Some(0.0)) => got == 0.0,
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

    fn expect_nothing() -> Expect {
        Expect { model_within: Probability::new(0.05), ..Default::default() }
    }

    #[test]
    fn an_expectation_is_met_or_missed() {
        let expect =
            Expect { model_within: Probability::new(0.05), goodput_min_bps: Some(90), goodput_max_bps: None };
        assert_eq!(judge(&expect, Some(96.0), Some(100.0)).unwrap().met, Some(true));
        assert_eq!(judge(&expect, Some(94.0), Some(100.0)).unwrap().met, Some(false));
        assert_eq!(judge(&expect, Some(89.0), Some(90.0)).unwrap().met, Some(false));
        assert_eq!(judge(&expect, None, Some(90.0)).unwrap().met, Some(false));
        assert_eq!(judge(&expect_nothing(), Some(0.0), Some(0.0)).unwrap().met, Some(true));
        assert_eq!(judge(&expect_nothing(), Some(1.0), Some(0.0)).unwrap().met, Some(false));
        assert_eq!(judge(&Expect::default(), Some(1.0), None), None);
    }
}
