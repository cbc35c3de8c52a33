//! A published figure as it is written.

use super::error::Result;
use super::tree::{Node, Value};
use crate::case::Published;
use crate::units::Rate;

/// `"2.77M"`, `"5.57M..5.60M"` or a bare number, in bit/s.
pub(super) fn figure(node: &Node, at: &str) -> Result<Published> {
    const EXPECTED: &str = "a bit rate such as \"2.77M\", or two such as \"5.57M..5.60M\"";
    let part = |text: &str| -> Result<f64> {
        let end = Node { origin: node.origin.clone(), value: Value::Text(text.trim().to_owned()) };
        end.as_quantity::<Rate>(at, EXPECTED).map(|r| r.as_bps() as f64)
    };
    if let Value::Text(text) = &node.value
        && let Some((low, high)) = text.split_once("..")
    {
        let (low, high) = (part(low)?, part(high)?);
        return if low <= high {
            Ok(Published::Range([low, high]))
        } else {
            Err(node.unexpected(at, EXPECTED))
        };
    }
    node.as_quantity::<Rate>(at, EXPECTED).map(|r| Published::Number(r.as_bps() as f64))
}
