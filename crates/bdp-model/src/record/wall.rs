//! Members of a record that differ between two runs of one case under the virtual clock.

use serde_json::Value;

use crate::record::Record;

/// Members that depend on the machine's time, as JSON pointers: the only ones that differ between two runs of a case with the same seed,
/// bdp and kernel under the virtual clock. `docs/record.md` lists them too.
pub const WALL_MEMBERS: [&str; 3] =
    ["/environment/started_unix_ms", "/environment/took_ms", "/environment/guest/wall"];

/// Returns the record as JSON, without the members that depend on the machine's time.
pub fn without_wall(record: &Record) -> Value {
    // A record is plain data that JSON can always represent.
    let mut document = serde_json::to_value(record).unwrap_or_default();
    for pointer in WALL_MEMBERS {
        let Some((parent, member)) = pointer.rsplit_once('/') else { continue };
        if let Some(Value::Object(members)) = document.pointer_mut(parent) {
            members.remove(member);
        }
    }
    document
}

/// Returns a digest of the record without the machine's time: FNV-1a, 64 bits, over the JSON of [`without_wall`].
pub fn digest(record: &Record) -> String {
    let hash = without_wall(record)
        .to_string()
        .bytes()
        .fold(0xcbf2_9ce4_8422_2325u64, |hash, byte| (hash ^ u64::from(byte)).wrapping_mul(0x0100_0000_01b3));
    format!("{hash:016x}")
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::record::{GuestReport, GuestWall};

    fn record() -> Record {
        let text = include_str!("../../../bdp-store/tests/it/record.json");
        let mut record: Record = serde_json::from_str(text).unwrap();
        record.environment.guest = Some(GuestReport::default());
        record
    }

    #[test]
    fn only_the_machines_time_makes_no_difference() {
        let one = record();
        let mut other = one.clone();
        other.environment.started_unix_ms += 1;
        other.environment.took_ms += 1;
        other.environment.guest.as_mut().unwrap().wall = GuestWall { boot_ns: 1, total_ns: 2 };
        assert_ne!(one, other);
        assert_eq!(digest(&one), digest(&other));
        other.environment.guest.as_mut().unwrap().emulated_ns = 1;
        assert_ne!(digest(&one), digest(&other));
    }

    #[test]
    fn each_member_is_there_and_documented() {
        let document = serde_json::to_value(record()).unwrap();
        let text = include_str!("../../../../docs/record.md");
        for pointer in WALL_MEMBERS {
            assert!(document.pointer(pointer).is_some(), "{pointer}");
            let path = pointer.trim_start_matches('/').replace('/', ".");
            assert!(text.contains(&format!("`{path}`")), "docs/record.md does not list {path}");
        }
    }
}
