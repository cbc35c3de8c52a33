//! Typed access to the members of a JSON object.

use serde_json::{Map, Value};

use super::Iperf3Error;

/// A JSON object to read from.
pub(super) struct Members<'a>(&'a Map<String, Value>);

impl<'a> Members<'a> {
    /// Returns the members of a value, which must be an object.
    pub(super) fn of(value: &'a Value, name: &'static str) -> Result<Self, Iperf3Error> {
        value.as_object().map(Self).ok_or_else(|| wrong(name, value, "an object"))
    }

    fn get(&self, member: &'static str) -> Option<&'a Value> {
        self.0.get(member)
    }

    /// Returns an integer within a range; `None` if absent.
    pub(super) fn number(
        &self,
        member: &'static str,
        least: u64,
        most: u64,
    ) -> Result<Option<u64>, Iperf3Error> {
        let Some(value) = self.get(member) else { return Ok(None) };
        let out_of_range = || Iperf3Error::Range { member, found: value.to_string(), least, most };
        let number = match value {
            Value::Number(number) if number.as_u64().is_some() => number.as_u64(),
            // Large numbers are written in floating-point notation.
            Value::Number(number) => match number.as_f64() {
                Some(float) if float >= 0.0 && float.fract() == 0.0 && float < u64::MAX as f64 => {
                    Some(float as u64)
                }
                _ => return Err(out_of_range()),
            },
            _ => return Err(wrong(member, value, "a number")),
        };
        number.filter(|n| (least..=most).contains(n)).ok_or_else(out_of_range).map(Some)
    }

    /// Returns a real number; 0 if absent or not finite.
    pub(super) fn real(&self, member: &'static str) -> Result<f64, Iperf3Error> {
        match self.get(member) {
            None => Ok(0.0),
            Some(Value::Number(number)) => Ok(number.as_f64().filter(|n| n.is_finite()).unwrap_or(0.0)),
            // A number that is not finite is written as null.
            Some(Value::Null) => Ok(0.0),
            Some(value) => Err(wrong(member, value, "a number")),
        }
    }

    /// Returns a count; `None` if the other end does not know it and sends -1, or before 3.14 the unsigned form of -1.
    pub(super) fn count(&self, member: &'static str) -> Result<Option<u64>, Iperf3Error> {
        match self.get(member) {
            None => Ok(None),
            Some(Value::Number(number)) => Ok(match (number.as_u64(), number.as_f64()) {
                (Some(u64::MAX), _) => None,
                (Some(count), _) => Some(count),
                (None, Some(count)) if (0.0..1.8e19).contains(&count) => Some(count as u64),
                _ => None,
            }),
            Some(value) => Err(wrong(member, value, "a number")),
        }
    }

    /// Returns a boolean: `true`, or a number other than 0 as in the oldest releases.
    pub(super) fn flag(&self, member: &'static str) -> Result<bool, Iperf3Error> {
        match self.get(member) {
            None => Ok(false),
            Some(Value::Bool(flag)) => Ok(*flag),
            Some(Value::Number(number)) => Ok(number.as_f64() != Some(0.0)),
            Some(value) => Err(wrong(member, value, "true")),
        }
    }

    /// Returns a text of at most `most` bytes.
    pub(super) fn text(&self, member: &'static str, most: usize) -> Result<Option<String>, Iperf3Error> {
        match self.get(member) {
            None => Ok(None),
            Some(Value::String(text)) if text.len() <= most => Ok(Some(text.clone())),
            Some(Value::String(text)) => Err(Iperf3Error::Range {
                member,
                found: format!("of {} bytes", text.len()),
                least: 0,
                most: most as u64,
            }),
            Some(value) => Err(wrong(member, value, "a text")),
        }
    }

    /// Returns a list.
    pub(super) fn list(&self, member: &'static str) -> Result<&'a [Value], Iperf3Error> {
        match self.get(member) {
            Some(Value::Array(list)) => Ok(list),
            Some(value) => Err(wrong(member, value, "a list")),
            None => Err(Iperf3Error::Missing { member }),
        }
    }

    /// Returns the value, of any type.
    pub(super) fn value(&self, member: &'static str) -> Option<&'a Value> {
        self.get(member)
    }
}

fn wrong(member: &'static str, value: &Value, expected: &'static str) -> Iperf3Error {
    let found = match value {
        Value::Null => "null",
        Value::Bool(_) => "true or false",
        Value::Number(_) => "a number",
        Value::String(_) => "a text",
        Value::Array(_) => "a list",
        Value::Object(_) => "an object",
    };
    Iperf3Error::Type { member, found: found.to_owned(), expected }
}
