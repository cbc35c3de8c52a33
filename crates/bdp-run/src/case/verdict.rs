//! The goodput that a case should have reached, and whether it did.

use bdp_model::case::route::Route;
use bdp_model::case::segment::{header_bytes, planned_mss};
use bdp_model::case::{CaseFlow, CaseSpec, Expect};
use bdp_model::path::udp::{self, Bound};
use bdp_model::path::window::{self, Congestion, Expectation as Expected, WindowOnWire};
use bdp_model::record::{Expectation, FlowRecord};
use bdp_model::units::format_bps;

use crate::case::pair::smallest;
use crate::case::probing::probe_bytes;
use crate::case::share::{self, Load, datagram_hops};
use crate::case::window::Means;

/// Returns the model's goodput of the case's flows except those in the background, and the terms that limited it.
/// Each flow is compared with its own route and round trip; flows that share a link share its capacity.
pub(crate) fn expected(case: &CaseSpec, means: &[Means], flows: &[FlowRecord]) -> Option<Expected> {
    let mut terms = Vec::new();
    let (mut loads, mut least) = (Vec::new(), Vec::new());
    for ((flow, means), record) in case.flows.iter().zip(means).zip(flows) {
        let route = Route::of(case, flow)?;
        let alone = of_flow(case, flow, &route, *means, record)?;
        let load = |bps| Load::new(case, flow, &route, segment_bytes(case, flow, record), bps);
        loads.push(load(alone.bps));
        least.push(load(alone.least_bps));
        if !flow.background {
            terms.push(alone.by);
        }
    }
    let (bps, shared) = share::total(&loads)?;
    let least_bps = share::total(&least).map_or(bps, |(least, _)| least.min(bps));
    terms.extend(shared.into_iter().map(|bps| format!("shared bottleneck: {}", format_bps(bps))));
    terms.dedup();
    (!terms.is_empty()).then(|| Expected { bps, least_bps, by: terms.join("; ") })
}

/// Returns what one flow must reach by itself.
fn of_flow(
    case: &CaseSpec,
    flow: &CaseFlow,
    route: &Route<'_>,
    means: Means,
    record: &FlowRecord,
) -> Option<Expected> {
    let (mss, headers) = segment_bytes(case, flow, record);
    let application = flow.spec.application;
    if route.changes() || !application.is_modelled() {
        return None;
    }
    if let Some((hop, most)) = route.black_hole(mss + headers) {
        let by = format!(
            "MTU black hole: {} passes packets of up to {most} B, full ones have {}",
            route.name(hop),
            mss + headers
        );
        return Some(Expected::exactly(0.0, by));
    }
    if let Some(offered) = flow.spec.offered_bps() {
        let bits = (8 * mss) as f64;
        let hops = datagram_hops(flow, route, (mss, headers));
        let (pps, bound) = udp::arriving_pps(offered / bits, &hops)?;
        let by = match bound {
            Bound::Offered => "offered rate, less loss".to_owned(),
            Bound::Wire(hop) | Bound::Policer(hop) => {
                let what = if matches!(bound, Bound::Wire(_)) { "ceiling" } else { "policer" };
                let room = match bound {
                    Bound::Wire(_) => hops[hop].wire_pps,
                    _ => hops[hop].policer_pps,
                };
                let room = room.unwrap_or(pps);
                let less = if pps < room * 0.999_999 { ", less loss and corruption" } else { "" };
                format!("{what}: {}{less}", format_bps(room * bits))
            }
        };
        return Some(Expected::exactly(pps * bits, by));
    }
    let rtt = smallest(record.rtt_ns.idle)?;
    let slowest = route.slowest(mss + headers);
    let path = window::Path {
        rate: slowest.map(|(_, rate)| rate),
        overhead_bytes: slowest.map_or(0, |(hop, _)| u64::from(hop.direction(&case.links).overhead_bytes)),
        mss_bytes: mss,
        header_bytes: headers,
        rtt: rtt + route.store_and_forward(mss + headers, probe_bytes(case, flow).0),
        // Packets of other flows come in between.
        loss: if case.flows.len() > 1 { route.segment_loss().shared() } else { route.segment_loss() },
        congestion: Congestion::from_name(&record.congestion_control),
        sends_for: Some(flow.spec.duration),
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
    if !window::loss_is_modelled(&path, &window, flow.spec.streams) {
        return None;
    }
    let rooms = route
        .rooms(mss, headers)
        .map(|(_, bps, by)| Expected::exactly(bps, format!("{by}: {}", format_bps(bps))));
    let programs = application.rate_bps().map(|rate| {
        let bps = rate as f64 * f64::from(flow.spec.streams);
        Expected::exactly(bps, format!("application: {}", format_bps(bps)))
    });
    // A reader that is slower than the path closes its window: that is no bound of its own.
    let window =
        application.reader.is_none().then(|| window::expect_goodput(&path, &window, flow.spec.streams));
    // Of equal limits the first counts: a plain ceiling is the model's own.
    let bounds = window.flatten().into_iter().chain(rooms).chain(programs);
    bounds.reduce(Expected::and)
}

/// Payload and headers of a full segment.
fn segment_bytes(case: &CaseSpec, flow: &CaseFlow, record: &FlowRecord) -> (u64, u64) {
    (record.mss_bytes.unwrap_or_else(|| planned_mss(case, flow)), header_bytes(case, flow))
}

/// Compares a goodput with the expectation written before the run; `None` if there was none.
pub(crate) fn judge(
    expect: &Expect,
    goodput_bps: Option<f64>,
    model: Option<&Expected>,
) -> Option<Expectation> {
    let mut texts = Vec::new();
    let mut met = goodput_bps.is_some();
    if let Some(within) = expect.model_within {
        let note = match (goodput_bps, model) {
            (Some(_), None) => ", of which there is none here".to_owned(),
            (Some(_), Some(model)) => model.range_from_bps().map_or_else(String::new, |least| {
                format!(" ({} to {})", format_bps(least), format_bps(model.bps))
            }),
            _ => String::new(),
        };
        texts.push(format!("goodput within {within} of the model{note}"));
        met &= match (goodput_bps, model) {
            // A fraction of zero is undefined.
            (Some(got), Some(model)) if model.bps == 0.0 => got == 0.0,
            (Some(got), Some(model)) => {
                let least = model.least_bps * (1.0 - within.fraction());
                (least..=model.bps * (1.0 + within.fraction())).contains(&got)
            }
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
    use bdp_model::record::{RttReport, RttSummary, Transfer};
    use bdp_model::units::Probability;
    use bdp_scenario::Scenario;

    use super::*;

    /// Returns the expectation for the first flow of a scenario with these links.
    fn of_links(links: &str, flow: &str) -> Option<(f64, String)> {
        let text = format!("title = 't'\n{links}\n[[flow]]\nfrom = 'a'\nto = 'c'\n{flow}\n");
        let case = Scenario::parse("t.toml", &text).unwrap().plan(&Default::default()).unwrap().remove(0);
        let route = Route::of(&case, &case.flows[0]).unwrap();
        let rtt = RttSummary { min: 40_000_000, ..RttSummary::default() };
        let transfer = Transfer {
            congestion_control: "reno".into(),
            mss_bytes: case.flows[0].spec.udp.is_none().then_some(1448),
            rtt_ns: RttReport { idle: Some(rtt), ..RttReport::default() },
            ..Transfer::default()
        };
        let record = FlowRecord { transfer, ..FlowRecord::default() };
        let means = Means::Autotuned;
        of_flow(&case, &case.flows[0], &route, means, &record).map(|e| ((e.bps / 1e4).round() / 100.0, e.by))
    }

    fn of_two_links(first: &str, second: &str, flow: &str) -> Option<(f64, String)> {
        let routed = format!(
            "[hosts.b]\nrouter = true\n[[link]]\nbetween = ['a', 'b']\n{first}\n[[link]]\nbetween = ['b', 'c']\n{second}"
        );
        of_links(&routed, flow)
    }

    #[test]
    fn loss_of_datagrams_counts_where_it_happens() {
        let udp = "protocol = 'udp'\nrate = '30M'";
        // 20 Mbit/s of 1538 bytes each, of which 1472 are payload: 19.14.
        assert_eq!(of_two_links("rate = '20M'", "", udp), Some((19.14, "ceiling: 19.14 Mbit/s".into())));
        let behind = of_two_links("rate = '20M'", "loss = '10%'", udp);
        assert_eq!(behind, Some((17.23, "ceiling: 19.14 Mbit/s, less loss and corruption".into())));
        let before = of_two_links("loss = '10%'", "rate = '20M'", udp);
        assert_eq!(before, Some((19.14, "ceiling: 19.14 Mbit/s".into())));
        let corrupted = of_two_links("rate = '20M'\ncorrupt = '10%'", "", udp);
        assert_eq!(corrupted, Some((17.23, "ceiling: 19.14 Mbit/s, less loss and corruption".into())));
        assert_eq!(of_two_links("rate = '20M'\nduplicate = '10%'", "", udp), None);
    }

    /// Datagrams are not acknowledged: nothing takes turns with them.
    #[test]
    fn a_half_duplex_medium_is_the_datagrams_own() {
        let medium =
            "[[link]]\nbetween = ['a', 'c']\nrate = '20M'\nhalf_duplex = { guard = '500us', turn = '2ms' }";
        let udp = of_links(medium, "protocol = 'udp'\nrate = '30M'");
        assert_eq!(udp, Some((19.14, "ceiling: 19.14 Mbit/s".into())));
        assert_eq!(of_links(medium, "").unwrap().1, "half-duplex ceiling: 13.12 Mbit/s");
    }

    #[test]
    fn loss_in_bursts_or_lists_leaves_nothing_to_expect_of_tcp() {
        let lossy = |loss: &str| {
            of_links(&format!("[[link]]\nbetween = ['a', 'c']\nrate = '100M'\nloss = {loss}"), "")
        };
        assert_eq!(lossy("'0.1%'").unwrap().1, "loss: Mathis, C = 1.31, p = 0.001, 1448 B / 40 ms");
        assert_eq!(lossy("{ every = 1000 }").unwrap().1, "loss: Mathis, C = 1.22, p = 0.001, 1448 B / 40 ms");
        for unknown in
            ["{ to_bad = '0.1%', to_good = '10%', loss_bad = 0.5 }", "{ packets = [3, 17] }", "'5%'"]
        {
            assert_eq!(lossy(unknown), None, "{unknown}");
        }
    }

    fn model(bps: f64) -> Expected {
        Expected::exactly(bps, String::new())
    }

    #[test]
    fn within_a_range_nothing_is_missed() {
        let few = Expected { least_bps: 80.0, ..model(100.0) };
        let met = |got| judge(&expect_nothing(), Some(got), Some(&few)).unwrap().met;
        assert_eq!([75.0, 77.0, 90.0, 104.0, 106.0].map(met), [false, true, true, true, false].map(Some));
        let text = judge(&expect_nothing(), Some(90.0), Some(&few)).unwrap().text;
        assert_eq!(text, "goodput within 5% of the model (80 bit/s to 100 bit/s)");
    }

    fn expect_nothing() -> Expect {
        Expect { model_within: Probability::new(0.05), ..Default::default() }
    }

    #[test]
    fn an_expectation_is_met_or_missed() {
        let expect =
            Expect { model_within: Probability::new(0.05), goodput_min_bps: Some(90), goodput_max_bps: None };
        assert_eq!(judge(&expect, Some(96.0), Some(&model(100.0))).unwrap().met, Some(true));
        assert_eq!(judge(&expect, Some(94.0), Some(&model(100.0))).unwrap().met, Some(false));
        assert_eq!(judge(&expect, Some(89.0), Some(&model(90.0))).unwrap().met, Some(false));
        assert_eq!(judge(&expect, None, Some(&model(90.0))).unwrap().met, Some(false));
        let unknown = judge(&expect_nothing(), Some(90.0), None).unwrap();
        assert_eq!(
            (unknown.text.as_str(), unknown.met),
            ("goodput within 5% of the model, of which there is none here", Some(false))
        );
        assert_eq!(judge(&expect_nothing(), Some(0.0), Some(&model(0.0))).unwrap().met, Some(true));
        assert_eq!(judge(&expect_nothing(), Some(1.0), Some(&model(0.0))).unwrap().met, Some(false));
        assert_eq!(judge(&Expect::default(), Some(1.0), None), None);
    }
}
