//! What is known of one setting.

use serde::{Deserialize, Serialize};

use super::default::{DefaultValue, Defaults};
use super::release::Release;

/// One sysctl of the catalogue.
#[derive(Debug, Clone, Copy)]
pub struct Setting {
    /// Its dotted name.
    pub name: &'static str,
    /// What it does, in one sentence without its full stop.
    pub meaning: &'static str,
    /// The form of its value.
    pub kind: Kind,
    /// The unit of its numbers.
    pub unit: Unit,
    /// Whether it can limit one connection's goodput, latency or recovery.
    pub shapes_path: bool,
    /// The kernel that brought it; None where [`Release::OLDEST`] has it.
    pub since: Option<Release>,
    /// The kernel since which each network namespace has its own; None where it is the whole machine's.
    pub own_since: Option<Release>,
    /// The kernel since which a namespace other than the machine's first sees a value that is the whole machine's; None where
    /// it does not see it.
    pub seen_since: Option<Release>,
    /// Whether a new namespace begins with the value of the machine's first one, and not with the default.
    pub is_inherited: bool,
    /// Where later kernels ignore it, or have it no more.
    pub end: Option<EndOfLife>,
    /// What single values stand for, as flags and modes.
    pub values: &'static [(&'static str, &'static str)],
    pub(super) defaults: Defaults,
}

/// The form of a value.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "snake_case")]
pub enum Kind {
    /// Three numbers, as minimum, default and maximum.
    Triple,
    /// A number.
    Number,
    /// A small number each of whose values is a mode.
    Flag,
    /// A name.
    Name,
    /// Names.
    Names,
}

/// The unit of a setting's numbers.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "snake_case")]
pub enum Unit {
    /// Bytes.
    Bytes,
    /// Pages of memory, 4096 bytes on most machines.
    Pages,
    /// Segments.
    Segments,
    /// Packets.
    Packets,
    /// Connections.
    Connections,
    /// Microseconds.
    Microseconds,
    /// Seconds.
    Seconds,
    /// Percent.
    Percent,
    /// A count of something else, or a mode.
    None,
}

/// The end of a setting's life.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct EndOfLife {
    /// The first kernel that does not read it.
    pub since: Release,
    /// Whether that kernel has it no more; otherwise it takes any value and does nothing.
    pub is_gone: bool,
    /// Why, in one sentence without its full stop.
    pub why: &'static str,
}

impl Setting {
    /// Whether a kernel of this release has it and acts by it. Stable kernels may have a setting earlier than
    /// `since` says: one that can be read on a host is there.
    pub fn is_read_by(&self, kernel: Release) -> bool {
        self.since.is_none_or(|since| kernel >= since) && self.end.is_none_or(|end| kernel < end.since)
    }

    /// Whether a kernel of this release has a file for it, be it without effect.
    pub fn exists_in(&self, kernel: Release) -> bool {
        self.since.is_none_or(|since| kernel >= since)
            && self.end.is_none_or(|end| !end.is_gone || kernel < end.since)
    }

    /// Whether each network namespace of a kernel of this release has its own value.
    pub fn is_of_namespace(&self, kernel: Release) -> bool {
        self.own_since.is_some_and(|since| kernel >= since)
    }

    /// Whether a network namespace that is not the machine's first shows it.
    pub fn is_seen_in_namespace(&self, kernel: Release) -> bool {
        self.is_of_namespace(kernel) || self.seen_since.is_some_and(|since| kernel >= since)
    }

    /// The value with which a kernel of this release starts on a machine with so much memory. None where it depends on
    /// how the kernel was built, or the kernel does not have it.
    pub fn default_on(&self, kernel: Release, memory_bytes: u64) -> Option<DefaultValue> {
        if self.exists_in(kernel) { self.defaults.on(kernel, memory_bytes) } else { None }
    }

    /// What this value stands for, where each value is a mode.
    pub fn mode(&self, value: &str) -> Option<&'static str> {
        self.values.iter().find(|(of, _)| *of == value).map(|(_, text)| *text)
    }

    pub(super) const fn new(name: &'static str, kind: Kind, unit: Unit, meaning: &'static str) -> Self {
        Self {
            name,
            meaning,
            kind,
            unit,
            shapes_path: false,
            since: None,
            own_since: None,
            seen_since: None,
            is_inherited: false,
            end: None,
            values: &[],
            defaults: Defaults::Unknown,
        }
    }

    pub(super) const fn flag(
        name: &'static str,
        meaning: &'static str,
        values: &'static [(&'static str, &'static str)],
    ) -> Self {
        let mut setting = Self::new(name, Kind::Flag, Unit::None, meaning);
        setting.values = values;
        setting
    }

    /// It is shown even where it is as the kernel had it.
    pub(super) const fn on_path(mut self) -> Self {
        self.shapes_path = true;
        self
    }

    pub(super) const fn since(mut self, major: u16, minor: u16) -> Self {
        self.since = Some(Release::new(major, minor));
        self
    }

    /// Of each network namespace since this kernel.
    pub(super) const fn own(mut self, major: u16, minor: u16) -> Self {
        self.own_since = Some(Release::new(major, minor));
        self
    }

    /// The machine's, shown in every network namespace since this kernel.
    pub(super) const fn seen(mut self, major: u16, minor: u16) -> Self {
        self.seen_since = Some(Release::new(major, minor));
        self
    }

    pub(super) const fn inherited(mut self) -> Self {
        self.is_inherited = true;
        self
    }

    /// Without effect since this kernel.
    pub(super) const fn ignored(mut self, major: u16, minor: u16, why: &'static str) -> Self {
        self.end = Some(EndOfLife { since: Release::new(major, minor), is_gone: false, why });
        self
    }

    /// Gone since this kernel.
    pub(super) const fn gone(mut self, major: u16, minor: u16, why: &'static str) -> Self {
        self.end = Some(EndOfLife { since: Release::new(major, minor), is_gone: true, why });
        self
    }

    /// The same default in each kernel.
    pub(super) const fn always(mut self, value: &'static str) -> Self {
        self.defaults = Defaults::Always(value);
        self
    }

    /// A default that kernels changed: the first kernel of each, the oldest first.
    pub(super) const fn changed(mut self, values: &'static [(Release, &'static str)]) -> Self {
        self.defaults = Defaults::Changed(values);
        self
    }

    /// A default that depends on memory.
    pub(super) const fn computed(mut self, from: fn(Release, u64) -> DefaultValue) -> Self {
        self.defaults = Defaults::Computed(from);
        self
    }

    /// A default that most kernels are built with.
    pub(super) const fn usually(mut self, value: &'static str) -> Self {
        self.defaults = Defaults::Usually(value);
        self
    }
}
