//! The journal of one apply: the value before each change, in a form that reveals damage.

use std::net::IpAddr;
use std::path::PathBuf;

use bdp_model::tuning::{SettingBack, Target};
use serde::{Deserialize, Serialize};

use crate::value::is_plausible;
use crate::world::Undo;

/// Version of the journal schema.
pub const JOURNAL_SCHEMA: &str = "bdp.tune-journal/1";

/// Progress of an apply.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "snake_case")]
pub enum Progress {
    /// Settings are being written; if no process is doing so any more, it was interrupted.
    Writing,
    /// All settings were written and read back.
    Applied,
}

/// When changes are reverted automatically.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(deny_unknown_fields)]
pub struct Until {
    /// Deadline as time since the boot that the journal names; this one is authoritative.
    pub uptime_ns: u64,
    /// The deadline by the wall clock, for display.
    pub unix_ms: u64,
}

/// One changed setting.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(deny_unknown_fields)]
pub struct Entry {
    /// The setting.
    pub target: Target,
    /// Value before the change; null if it was not set.
    pub before: Option<String>,
    /// Value after the change.
    pub after: String,
    /// How the change is undone.
    pub undo: Undo,
}

impl Entry {
    /// Returns it as it was put back, or left with the value that it has now.
    pub fn back(&self, now: Option<String>) -> SettingBack {
        SettingBack {
            target: self.target.clone(),
            before: self.before.clone(),
            wrote: self.after.clone(),
            now,
        }
    }
}

/// The changes of one apply.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(deny_unknown_fields)]
pub struct Journal {
    /// Name and version of this document's schema.
    #[cfg_attr(feature = "schema", schemars(extend("const" = JOURNAL_SCHEMA)))]
    pub schema: String,
    /// CRC-32 of the document as compact JSON, members in this order, with an empty checksum.
    #[cfg_attr(feature = "schema", schemars(regex(pattern = "^[0-9a-f]{8}$")))]
    pub checksum: String,
    /// Number of the journal, used in its file name; later journals have larger numbers.
    #[cfg_attr(feature = "schema", schemars(range(min = 1)))]
    pub id: u32,
    /// Progress of the apply.
    pub progress: Progress,
    /// Boot to which the settings belong: `/proc/sys/kernel/random/boot_id`.
    pub boot_id: String,
    /// Network namespace to which they belong: the inode of `/proc/self/ns/net`.
    pub network_namespace: u64,
    /// Output of `uname -r`.
    pub kernel: String,
    /// Start, milliseconds since 1970.
    pub started_unix_ms: u64,
    /// When the changes are reverted automatically; null if they stay.
    pub until: Option<Until>,
    /// The client that requested the changes from another machine; absent if they were applied on this host.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub client: Option<IpAddr>,
    /// The file that sets the sysctls at boot, if requested. It is written once no change is due to be reverted automatically.
    pub persistent_file: Option<PathBuf>,
    /// The settings, in the order of writing.
    #[cfg_attr(feature = "schema", schemars(length(min = 1)))]
    pub entries: Vec<Entry>,
}

impl Journal {
    /// Encodes the journal as a file, with its checksum.
    pub fn encode(&self) -> Vec<u8> {
        let sealed = Self { checksum: self.compute_checksum(), ..self.clone() };
        let mut text = serde_json::to_vec_pretty(&sealed).unwrap_or_default();
        text.push(b'\n');
        text
    }

    /// Decodes a file; the error says why it is damaged.
    pub fn decode(bytes: &[u8]) -> Result<Self, String> {
        let journal: Self = serde_json::from_slice(bytes).map_err(|e| e.to_string())?;
        if journal.schema != JOURNAL_SCHEMA {
            return Err(format!("its schema is '{}', and this bdp reads {JOURNAL_SCHEMA}", journal.schema));
        }
        if journal.checksum != journal.compute_checksum() {
            return Err("its checksum does not match".to_owned());
        }
        // It can set nothing else, whoever wrote it.
        let values = |entry: &Entry| [Some(entry.after.clone()), entry.before.clone()].into_iter().flatten();
        let is_good = |entry: &Entry| values(entry).all(|value| is_plausible(&entry.target, &value));
        match journal.entries.iter().find(|entry| !is_good(entry)) {
            Some(entry) => Err(format!("{} cannot have been set by bdp", entry.target)),
            None => Ok(journal),
        }
    }

    /// Whether this is a later state of the same apply.
    pub(crate) fn is_of_same_apply(&self, other: &Self) -> bool {
        self.id == other.id
            && self.boot_id == other.boot_id
            && self.network_namespace == other.network_namespace
            && self.started_unix_ms == other.started_unix_ms
    }

    fn compute_checksum(&self) -> String {
        let plain = Self { checksum: String::new(), ..self.clone() };
        format!("{:08x}", crc32fast::hash(&serde_json::to_vec(&plain).unwrap_or_default()))
    }
}

/// Whether the kernel reads two values as equal: whitespace between numbers is ignored.
pub(crate) fn same(one: Option<&str>, other: Option<&str>) -> bool {
    match (one, other) {
        (Some(one), Some(other)) => one.split_whitespace().eq(other.split_whitespace()),
        (None, None) => true,
        _ => false,
    }
}

#[cfg(test)]
pub(crate) mod tests {
    use super::*;

    pub(crate) fn journal() -> Journal {
        Journal {
            schema: JOURNAL_SCHEMA.to_owned(),
            checksum: String::new(),
            id: 1,
            progress: Progress::Applied,
            boot_id: "boot".to_owned(),
            network_namespace: 7,
            kernel: "6.1".to_owned(),
            started_unix_ms: 1,
            until: Some(Until { uptime_ns: 5, unix_ms: 6 }),
            client: Some([192, 0, 2, 1].into()),
            persistent_file: Some("/etc/sysctl.d/90-bdp.conf".into()),
            entries: vec![Entry {
                target: Target::sysctl("net.ipv4.tcp_rmem"),
                before: Some("1 2 3".to_owned()),
                after: "1 2 4".to_owned(),
                undo: Undo::Write,
            }],
        }
    }

    #[test]
    fn every_changed_byte_is_seen_or_changes_nothing() {
        let bytes = journal().encode();
        let read = Journal::decode(&bytes).unwrap();
        assert_eq!(Journal { checksum: String::new(), ..read.clone() }, journal());
        for at in 0..bytes.len() {
            for flip in [1, 0x20] {
                let mut damaged = bytes.clone();
                damaged[at] ^= flip;
                if let Ok(other) = Journal::decode(&damaged) {
                    assert_eq!(other, read, "byte {at}: {}", String::from_utf8_lossy(&damaged));
                }
            }
        }
        for cut in 0..bytes.len() - 1 {
            assert!(Journal::decode(&bytes[..cut]).is_err(), "{cut}");
        }
    }

    #[test]
    fn a_journal_of_anything_but_networking_is_damaged() {
        let mut forged = journal();
        forged.entries[0].target = Target::sysctl("kernel.core_pattern");
        let cause = Journal::decode(&forged.encode()).unwrap_err();
        assert_eq!(cause, "kernel.core_pattern cannot have been set by bdp");
    }

    #[test]
    fn blanks_between_numbers_do_not_count() {
        assert!(same(Some("4096\t131072  6291456"), Some("4096 131072 6291456")));
        assert!(!same(Some("4096"), Some("4097")) && !same(None, Some("")) && same(None, None));
    }
}
