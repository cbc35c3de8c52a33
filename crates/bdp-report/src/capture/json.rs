//! Captures as one JSON document: `docs/pcap.schema.json`.

use bdp_model::capture::pair::CapturePair;
use bdp_model::capture::{ExplainedFlow, ReadCapture};
use serde::ser::{SerializeMap, SerializeSeq};
use serde::{Serialize, Serializer};
use serde_json::{Value, json as value};

use super::words::caveats;
use crate::finding;
use crate::time_spent;

/// Name and version of the schema.
pub const CAPTURE_SCHEMA: &str = "bdp.pcap/1";

/// All captures with all of their flows, and the comparison of captures of one path. Flows are serialised
/// one by one, because the document of a million flows does not fit in memory.
#[derive(Debug, Clone, Copy)]
pub struct CapturesDocument<'a> {
    captures: &'a [ReadCapture],
    pairs: &'a [CapturePair],
}

/// Returns the document of these captures.
pub const fn captures_json<'a>(
    captures: &'a [ReadCapture],
    pairs: &'a [CapturePair],
) -> CapturesDocument<'a> {
    CapturesDocument { captures, pairs }
}

impl Serialize for CapturesDocument<'_> {
    fn serialize<S: Serializer>(&self, to: S) -> Result<S::Ok, S::Error> {
        let mut map = to.serialize_map(Some(3))?;
        map.serialize_entry("schema", CAPTURE_SCHEMA)?;
        map.serialize_entry("captures", &Captures(self.captures))?;
        map.serialize_entry("pairs", self.pairs)?;
        map.end()
    }
}

struct Captures<'a>(&'a [ReadCapture]);

impl Serialize for Captures<'_> {
    fn serialize<S: Serializer>(&self, to: S) -> Result<S::Ok, S::Error> {
        to.collect_seq(self.0.iter().map(Capture))
    }
}

struct Capture<'a>(&'a ReadCapture);

impl Serialize for Capture<'_> {
    fn serialize<S: Serializer>(&self, to: S) -> Result<S::Ok, S::Error> {
        let Self(capture) = self;
        let mut all = value!(capture.summary);
        all["name"] = capture.name.as_str().into();
        all["broke"] = capture.broke.as_deref().into();
        all["caveats"] = caveats(capture).into();
        // Placeholder that keeps the member's position.
        all["flows"] = Value::Null;
        let members = all.as_object().into_iter().flatten();
        let mut map = to.serialize_map(None)?;
        for (name, member) in members {
            match name.as_str() {
                "flows" => map.serialize_entry(name, &Flows(&capture.flows))?,
                _ => map.serialize_entry(name, member)?,
            }
        }
        map.end()
    }
}

struct Flows<'a>(&'a [ExplainedFlow]);

impl Serialize for Flows<'_> {
    fn serialize<S: Serializer>(&self, to: S) -> Result<S::Ok, S::Error> {
        let mut flows = to.serialize_seq(Some(self.0.len()))?;
        self.0.iter().try_for_each(|found| flows.serialize_element(&flow_json(found)))?;
        flows.end()
    }
}

fn flow_json(found: &ExplainedFlow) -> Value {
    let mut all = value!(found.flow);
    for way in 0..2 {
        all["directions"][way]["findings"] = finding::all_json(&found.findings[way]);
        all["directions"][way]["time_spent"] = time_spent::json(found.facts[way].as_deref());
    }
    all
}
