//! Default values by kernel release and memory size.

use serde::{Deserialize, Serialize};

use super::release::Release;

/// A default value.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct DefaultValue {
    /// The value as the sysctl prints it.
    pub value: String,
    /// How certain it is.
    pub basis: Basis,
}

/// How certain a default is.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "snake_case")]
pub enum Basis {
    /// Taken from the kernel's source.
    Source,
    /// Computed from memory as the kernel does. Approximate: the amount that the kernel counts at boot is not available later.
    Memory,
    /// The usual build option; a few kernels are built with another.
    Build,
}

#[derive(Debug, Clone, Copy)]
pub(super) enum Defaults {
    Unknown,
    Always(&'static str),
    Changed(&'static [(Release, &'static str)]),
    Computed(fn(Release, u64) -> DefaultValue),
    Usually(&'static str),
}

impl Defaults {
    pub(super) fn on(&self, kernel: Release, memory_bytes: u64) -> Option<DefaultValue> {
        match self {
            Self::Unknown => None,
            Self::Always(value) => Some(DefaultValue::source(*value)),
            Self::Usually(value) => Some(DefaultValue { value: (*value).to_owned(), basis: Basis::Build }),
            Self::Changed(values) => {
                let (_, value) = values.iter().rev().find(|(since, _)| kernel >= *since)?;
                Some(DefaultValue::source(*value))
            }
            Self::Computed(from) => Some(from(kernel, memory_bytes)),
        }
    }
}

impl DefaultValue {
    fn source(value: impl Into<String>) -> Self {
        Self { value: value.into(), basis: Basis::Source }
    }

    fn memory(value: impl Into<String>) -> Self {
        Self { value: value.into(), basis: Basis::Memory }
    }
}

const PAGE: u64 = 4096;
const MIB: u64 = 1 << 20;

/// Returns the maximum buffer of a socket: `most`, but at most 1/128 of memory (`tcp_init`).
fn largest_buffer(most: u64, memory_bytes: u64) -> (u64, bool) {
    let limit = memory_bytes / PAGE * PAGE / 128;
    (most.min(limit), limit < most)
}

fn triple(least: u64, start: u64, (most, is_of_memory): (u64, bool)) -> DefaultValue {
    let value = format!("{least} {start} {}", most.max(start));
    if is_of_memory { DefaultValue::memory(value) } else { DefaultValue::source(value) }
}

pub(super) fn tcp_rmem(kernel: Release, memory_bytes: u64) -> DefaultValue {
    let start = if kernel >= Release::new(4, 20) { 131_072 } else { 87_380 };
    let most = if kernel >= Release::new(6, 16) { 32 * MIB } else { 6 * MIB };
    triple(PAGE, start, largest_buffer(most, memory_bytes))
}

pub(super) fn tcp_wmem(_: Release, memory_bytes: u64) -> DefaultValue {
    let (most, is_of_memory) = largest_buffer(4 * MIB, memory_bytes);
    triple(PAGE, 16_384, (most.max(65_536), is_of_memory))
}

/// Computes `tcp_mem` as `tcp_init_mem` does: shares of the pages available for buffers.
pub(super) fn tcp_mem(kernel: Release, memory_bytes: u64) -> DefaultValue {
    let share = if kernel >= Release::new(4, 2) { 16 } else { 8 };
    let limit = (memory_bytes / PAGE / share).max(128);
    let least = limit / 4 * 3;
    DefaultValue::memory(format!("{least} {limit} {}", least * 2))
}

/// Computed from the size of the connection table: one slot per 128 KiB of memory, a power of two, at most 524288.
pub(super) fn max_syn_backlog(kernel: Release, memory_bytes: u64) -> DefaultValue {
    let slots = (memory_bytes >> 17).max(1).next_power_of_two().min(524_288);
    let share = if kernel >= Release::new(5, 4) { 128 } else { 256 };
    DefaultValue::memory((slots / share).max(128).to_string())
}
