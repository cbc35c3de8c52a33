//! The parts of a case's record.

use std::collections::BTreeMap;

use bdp_flow::transfer::{transfer, window};
use bdp_lab::LabError;
use bdp_model::case::{CaseFlow, CaseSpec, segment};
use bdp_model::finding::caveat::WindowShortfall;
use bdp_model::flow::method::WindowMechanism;
use bdp_model::plain::in_words;
use bdp_model::record::{Environment, Fidelity, FlowRecord, RECORD_SCHEMA, Record, RttReport, WindowReport};
use bdp_sys::socket::NO_CONGESTION;
use bdp_wire::control::{Received, Sent};

use crate::RunError;
use crate::case::calibrate::{Calibration, fits};
use crate::case::verdict;
use crate::case::window::Means;

/// Returns the record of one flow.
pub(crate) fn flow_record(
    case: &CaseSpec,
    flow: &CaseFlow,
    means: Means,
    calibration: Option<Calibration>,
    (received, sent): (Received, Sent),
    (start_ns, rtt_ns): (u64, RttReport),
) -> FlowRecord {
    let window = match flow.spec.udp {
        // Datagrams have no window.
        Some(_) => WindowReport { method: WindowMechanism::None, ..Default::default() },
        None => window_report(case, flow, means, calibration, &received, &sent),
    };
    // All hosts of the lab have one clock.
    let udp = bdp_flow::datagram::outcome::report(flow.spec.offered_bps(), &received, &sent, Some((0, 0)));
    FlowRecord {
        from: flow.from.clone(),
        to: flow.to.clone(),
        start_ns,
        received_bytes: received.bytes,
        transfer: transfer(received, sent, window, rtt_ns, udp),
    }
}

fn window_report(
    case: &CaseSpec,
    flow: &CaseFlow,
    means: Means,
    calibration: Option<Calibration>,
    received: &Received,
    sent: &Sent,
) -> WindowReport {
    let sizes = window(&flow.spec, received, sent);
    // The MSS of a full segment: senders shrink theirs if the window is smaller.
    let mss = segment::planned_mss(case, flow);
    let (method, target) = match means {
        Means::Autotuned => (WindowMechanism::Autotuned, None),
        Means::Receiver { target_bytes } => (WindowMechanism::TcpRmem, Some(target_bytes)),
        Means::Path { clamp_bytes } => (WindowMechanism::PathClamp, Some(u64::from(clamp_bytes))),
    };
    let reached = target.map(|target| sizes.on_the_wire_bytes.is_some_and(|seen| fits(seen, target, mss)));
    let note = (reached == Some(false)).then(|| match (sizes.on_the_wire_bytes, calibration) {
        (None, _) => WindowShortfall::NoneSeen,
        (Some(seen_bytes), Some(c)) if !fits(c.window_bytes, target.unwrap_or(0), mss) => {
            let (best_bytes, buffer_bytes) = (c.window_bytes, c.buffer_bytes);
            WindowShortfall::NotCalibrated { seen_bytes, best_bytes, buffer_bytes }
        }
        (Some(seen_bytes), Some(c)) => WindowShortfall::BelowTwin { seen_bytes, twin_bytes: c.window_bytes },
        (Some(seen_bytes), None) => WindowShortfall::BesideClamp { seen_bytes },
    });
    WindowReport { method, reached, note, ..sizes }
}

/// Returns the record of a case that could not run.
pub(crate) fn failed(case: &CaseSpec, attempt: u32, error: &RunError, environment: Environment) -> Record {
    let expectation = verdict::judge(&case.expect, None, None).map(|mut e| {
        e.met = None;
        e
    });
    let mut text = in_words(&error.to_string());
    if let RunError::Lab(LabError::Stack { error, .. }) = error
        && error.skips()
    {
        return Record { skipped: Some(text), expectation, ..blank(case, attempt, environment) };
    }
    if case.clock.is_real() && text.contains(NO_CONGESTION) {
        text.push_str("; guest kernels ('--clock virtual') have all of them");
    }
    Record { error: Some(text), expectation, ..blank(case, attempt, environment) }
}

pub(crate) fn blank(case: &CaseSpec, attempt: u32, environment: Environment) -> Record {
    Record {
        schema: RECORD_SCHEMA.to_owned(),
        ceiling_unknown: false,
        scenario: case.scenario.clone(),
        title: case.title.clone(),
        params: case.params.clone(),
        repetition: case.repetition,
        attempt,
        seed: case.seed,
        valid: false,
        fidelity: Fidelity::default(),
        goodput_bps: None,
        expected_bps: None,
        expected_least_bps: None,
        expected_by: None,
        published_bps: case.published_bps,
        expectation: None,
        rtt_idle_ns: None,
        rtt_ns: RttReport::default(),
        window: WindowReport {
            asked_bytes: case.flows.first().and_then(|f| f.spec.window).map(|w| w.as_bytes()),
            ..Default::default()
        },
        flows: Vec::new(),
        captures: Vec::new(),
        programs: Vec::new(),
        traffic: Vec::new(),
        counters: BTreeMap::new(),
        error: None,
        probes: Vec::new(),
        skipped: None,
        environment,
        case: case.clone(),
    }
}
