//! Common parts of all calculations: input quantities, and an answer in text and JSON.

use std::str::FromStr;

use bdp_model::{ByteCount, UnitError};
use serde_json::{Value, json};

use crate::exit::Outcome;
use crate::output;

/// The answer to a question, for people and for programs.
pub(super) struct Answer {
    pub(super) text: String,
    pub(super) json: Value,
}

impl Answer {
    pub(super) fn print(self, json: bool) -> Outcome {
        if !json {
            return output::print(&self.text);
        }
        let mut document = json!({ "schema": SCHEMA, "bdp": env!("CARGO_PKG_VERSION"), "run": null });
        if let (Some(document), Value::Object(answer)) = (document.as_object_mut(), self.json) {
            document.extend(answer);
        }
        output::print(&format!("{document:#}\n"))
    }
}

/// Schema version of `--json`.
const SCHEMA: &str = "bdp.calc/1";

/// Payload of a segment on a path with an MTU of 1500 bytes, IPv4 and timestamps.
pub(super) const MSS_BYTES: &str = "1448";

/// Parses the payload bytes of a segment: what fits in an IPv4 packet besides 40 bytes of headers.
pub(super) fn mss(text: &str) -> Result<u64, String> {
    const LARGEST_BYTES: u64 = 65_495;
    let bytes = positive::<ByteCount>(text)?.as_bytes();
    if bytes > LARGEST_BYTES {
        return Err(format!("a segment can carry at most {LARGEST_BYTES} bytes"));
    }
    Ok(bytes)
}

/// Parses a quantity above zero.
pub(super) fn positive<T: FromStr<Err = UnitError> + Default + PartialEq>(text: &str) -> Result<T, String> {
    let quantity = text.parse::<T>().map_err(|error| error.to_string())?;
    if quantity == T::default() {
        return Err("it must be more than 0".to_owned());
    }
    Ok(quantity)
}
