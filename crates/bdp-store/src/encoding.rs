//! Encodes records and measurements as text and decodes them exactly, or fails.

use bdp_model::measurement::{MEASUREMENT_SCHEMA, Measurement};
use bdp_model::plain::of_json;
use bdp_model::record::{RECORD_SCHEMA, Record};
use serde::Serialize;
use serde::de::DeserializeOwned;

/// A type that can be stored.
pub trait Entry: Serialize + DeserializeOwned + PartialEq {
    /// Newest schema known to this version, such as `bdp.record/1`.
    const SCHEMA: &'static str;
}

impl Entry for Record {
    const SCHEMA: &'static str = RECORD_SCHEMA;
}

impl Entry for Measurement {
    const SCHEMA: &'static str = MEASUREMENT_SCHEMA;
}

/// An entry's JSON and its checksum.
#[derive(Debug)]
pub struct Encoded {
    /// The entry.
    pub json: String,
    /// [`checksum`] of it.
    pub checksum: i64,
}

/// Why text cannot be read as an entry.
#[derive(Debug, PartialEq, Eq)]
pub enum DecodeError {
    /// It was written by a newer bdp, with this schema.
    Newer(String),
    /// It differs from what was stored; describes how.
    Damaged(String),
}

/// Encodes an entry as JSON and verifies that it decodes to an equal one; the error names what does not.
pub fn encode<T: Entry>(entry: &T) -> Result<Encoded, String> {
    let json = serde_json::to_string(entry).map_err(|e| e.to_string())?;
    // JSON has no NaN or infinity: they would become null and make the whole run unreadable.
    match serde_json::from_str::<T>(&json) {
        Ok(back) if back == *entry => Ok(Encoded { checksum: checksum(json.as_bytes()), json }),
        Ok(_) => Err("its JSON differs after reading it back (possibly a number that is not finite)".into()),
        Err(e) => Err(format!(
            "its JSON cannot be read back (possibly a number that is not finite): {}",
            of_json(&e)
        )),
    }
}

/// Decodes what [`encode`] wrote.
pub fn decode<T: Entry>(json: &str, stored_checksum: i64, schema: &str) -> Result<T, DecodeError> {
    if checksum(json.as_bytes()) != stored_checksum {
        return Err(DecodeError::Damaged("its checksum does not match".into()));
    }
    check_schema::<T>(schema)?;
    serde_json::from_str(json).map_err(|e| DecodeError::Damaged(of_json(&e)))
}

/// Checks that an entry of this schema can be read.
pub fn check_schema<T: Entry>(schema: &str) -> Result<(), DecodeError> {
    match (major(schema, T::SCHEMA), major(T::SCHEMA, T::SCHEMA)) {
        (Some(theirs), Some(ours)) if theirs > ours => Err(DecodeError::Newer(schema.to_owned())),
        (Some(_), _) => Ok(()),
        (None, _) => Err(DecodeError::Damaged(format!("unknown schema '{schema}'"))),
    }
}

/// Returns the major version of a schema in the same family as `ours`: 1 for `bdp.record/1` and `bdp.record/1.3`.
pub fn major(schema: &str, ours: &str) -> Option<u32> {
    let (family, number) = schema.split_once('/')?;
    if ours.split_once('/')?.0 != family {
        return None;
    }
    number.split('.').next()?.parse().ok()
}

/// FNV-1a, 64 bits (draft-eastlake-fnv, section 2): SQLite checks its structure, but not the bytes of a text.
pub fn checksum(bytes: &[u8]) -> i64 {
    let hash = bytes.iter().fold(0xcbf2_9ce4_8422_2325_u64, |hash, &b| {
        (hash ^ u64::from(b)).wrapping_mul(0x0000_0100_0000_01b3)
    });
    hash.cast_signed()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn checksum_is_fnv1a() {
        // Test vectors of draft-eastlake-fnv, appendix C.
        assert_eq!(checksum(b"").cast_unsigned(), 0xcbf2_9ce4_8422_2325);
        assert_eq!(checksum(b"a").cast_unsigned(), 0xaf63_dc4c_8601_ec8c);
        assert_eq!(checksum(b"foobar").cast_unsigned(), 0x8594_4171_f739_67e8);
    }

    #[test]
    fn major_number_alone_decides() {
        let record = |schema| major(schema, RECORD_SCHEMA);
        assert_eq!(record("bdp.record/1"), Some(1));
        assert_eq!(record("bdp.record/12.3"), Some(12));
        assert_eq!(record("bdp.record/"), None);
        assert_eq!(record("bdp.measurement/1"), None);
        assert_eq!(record("iperf/1"), None);
        let newer = "{}";
        assert_eq!(
            decode::<Record>(newer, checksum(newer.as_bytes()), "bdp.record/2").unwrap_err(),
            DecodeError::Newer("bdp.record/2".into())
        );
        assert!(matches!(
            decode::<Record>(newer, checksum(newer.as_bytes()), "bdp.record/1"),
            Err(DecodeError::Damaged(_))
        ));
    }
}
