//! Captures as one document of JSON: `docs/pcap.schema.json`.

use bdp_model::capture::{ExplainedFlow, ReadCapture};
use bdp_model::capture_pair::CapturePair;
use serde_json::{Value, json as value};

use super::words::caveats;
use crate::finding;
use crate::time_spent;

/// The form of the document.
pub const CAPTURE_SCHEMA: &str = "bdp.pcap/1";

/// All captures with all of their flows, and what those of one path say together.
pub fn captures_json(captures: &[ReadCapture], pairs: &[CapturePair]) -> Value {
    let all: Vec<Value> = captures.iter().map(capture_json).collect();
    value!({"schema": CAPTURE_SCHEMA, "captures": all, "pairs": pairs})
}

fn capture_json(capture: &ReadCapture) -> Value {
    let mut all = value!(capture.summary);
    all["name"] = capture.name.as_str().into();
    all["broke"] = capture.broke.as_deref().into();
    all["caveats"] = caveats(capture).into();
    all["flows"] = capture.flows.iter().map(flow_json).collect();
    all
}

fn flow_json(found: &ExplainedFlow) -> Value {
    let mut all = value!(found.flow);
    for way in 0..2 {
        all["directions"][way]["findings"] = finding::all_json(&found.findings[way]);
        all["directions"][way]["time_spent"] = time_spent::json(found.facts[way].as_deref());
    }
    all
}
