//! The result of a visit as JSON, with its findings in words.

use bdp_model::visit::Visit;
use serde_json::{Value, json as value};

use crate::{finding, time_spent};

/// Returns the result of a visit with its findings in words and the time spent: `docs/visitors.md`.
pub fn visit_json(visit: &Visit) -> Value {
    let mut value = value!(visit);
    for (i, direction) in visit.directions.iter().enumerate() {
        let of = &mut value["directions"][i];
        of["finding"] = direction.finding.as_ref().map_or(Value::Null, finding::json);
        of["time_spent"] = time_spent::json(direction.facts.as_deref());
    }
    value
}
