//! The facts known about one setting.

use serde::{Deserialize, Serialize};

use crate::measurement::ends::Task;

use super::default::{DefaultValue, Defaults};
use super::harm::{Harm, When};
use super::relation::numbers;
use super::release::Release;

/// What is known about one setting.
#[derive(Debug, Clone, Copy)]
pub struct Row {
    /// Its dotted name.
    pub name: &'static str,
    /// The last part of the name, which is unique too.
    pub short: &'static str,
    /// What it does: one sentence without a full stop.
    pub meaning: &'static str,
    /// The form of its value.
    pub kind: Kind,
    /// The unit of its numbers.
    pub unit: Unit,
    /// Whether it can limit one connection's goodput, latency or recovery.
    pub shapes_path: bool,
    /// The end of a transfer at which it matters; None if at both.
    pub matters_for: Option<Task>,
    /// Whether a measurement records it with the facts of each host.
    pub is_measured: bool,
    /// Whether a host of a twin can have its own value.
    pub is_twinned: bool,
    /// First kernel that has it; None if [`Release::OLDEST`] has it.
    pub since: Option<Release>,
    /// First kernel with a value per network namespace; None if the value is machine-wide.
    pub own_since: Option<Release>,
    /// First kernel that shows the machine-wide value in other namespaces than the initial one; None if none does.
    pub seen_since: Option<Release>,
    /// Whether a new namespace inherits the value of the initial namespace instead of the default.
    pub is_inherited: bool,
    /// If later kernels ignore or remove it: since when and why.
    pub end: Option<EndOfLife>,
    /// Meanings of individual values, for flags and modes.
    pub values: &'static [(&'static str, &'static str)],
    /// Values that a client with the tune token may set; None if it may set none.
    pub bounds: Option<Bounds>,
    /// Release of Kubernetes since which any Pod may set it.
    pub pods_since: Option<&'static str>,
    pub(super) defaults: Defaults,
    pub(super) harm: Harm,
}

/// Values that a client may set.
#[derive(Debug, Clone, Copy)]
pub enum Bounds {
    /// Three sizes of a buffer: minimum, default, maximum.
    Buffers,
    /// A number from the first to the second.
    Number(u64, u64),
    /// One of the catalogue's values.
    Modes,
    /// One of these names.
    OneOf(&'static [&'static str]),
    /// A name; the kernel decides whether it exists.
    Name,
}

impl Bounds {
    /// No buffer may be larger: 1 GiB, more than any path of today needs.
    pub const LARGEST_BUFFER: u64 = 1 << 30;
    /// Linux takes no less.
    pub const SMALLEST_BUFFER: u64 = 2048;
}

/// The form of a value.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "snake_case")]
pub enum Kind {
    /// Three numbers: minimum, default and maximum.
    Triple,
    /// A number.
    Number,
    /// A small number, each value of which is a mode.
    Flag,
    /// A name.
    Name,
    /// Several names.
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

/// When and why a setting lost its effect.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct EndOfLife {
    /// First kernel that does not read it.
    pub since: Release,
    /// Whether that kernel removed it; otherwise it accepts any value and ignores it.
    pub is_gone: bool,
    /// Why: one sentence without a full stop.
    pub why: &'static str,
}

impl Row {
    /// Whether a kernel of this release has the setting and uses it. Stable kernels may have a setting earlier than
    /// `since` says: if it can be read on a host, it exists.
    pub fn is_read_by(&self, kernel: Release) -> bool {
        self.since.is_none_or(|since| kernel >= since) && self.end.is_none_or(|end| kernel < end.since)
    }

    /// Whether a kernel of this release has a file for it, even if it has no effect.
    pub fn exists_in(&self, kernel: Release) -> bool {
        self.since.is_none_or(|since| kernel >= since)
            && self.end.is_none_or(|end| !end.is_gone || kernel < end.since)
    }

    /// Whether each network namespace of a kernel of this release has its own value.
    pub fn is_of_namespace(&self, kernel: Release) -> bool {
        self.own_since.is_some_and(|since| kernel >= since)
    }

    /// Whether it is visible in a network namespace other than the initial one.
    pub fn is_seen_in_namespace(&self, kernel: Release) -> bool {
        self.is_of_namespace(kernel) || self.seen_since.is_some_and(|since| kernel >= since)
    }

    /// Returns the value at boot for a kernel release and memory size. None if it depends on the kernel's
    /// build options, or if the kernel lacks the setting.
    pub fn default_on(&self, kernel: Release, memory_bytes: u64) -> Option<DefaultValue> {
        if self.exists_in(kernel) { self.defaults.on(kernel, memory_bytes) } else { None }
    }

    /// Returns the harm that a value does on any host, as a clause; `None` if it is plausible. `memory_bytes` is the
    /// machine's memory.
    pub fn harm_of(&self, value: &str, memory_bytes: u64) -> Option<String> {
        let all = numbers(value);
        let malformed = match (self.kind, all.as_deref()) {
            (Kind::Name | Kind::Names, _) => return None,
            (Kind::Triple, Some(&[least, first, most])) if least > first || first > most => {
                "its three numbers do not ascend"
            }
            (Kind::Triple, Some(all @ [_, _, _])) | (Kind::Number | Kind::Flag, Some(all @ [_])) => {
                return self.harm.of(all, memory_bytes);
            }
            (Kind::Triple, _) => "not a value of this setting: expected three numbers",
            (Kind::Number | Kind::Flag, _) => "not a value of this setting: expected a number",
        };
        Some(malformed.to_owned())
    }

    /// Returns the meaning of a value, if each value is a mode.
    pub fn mode(&self, value: &str) -> Option<&'static str> {
        self.values.iter().find(|(of, _)| *of == value).map(|(_, text)| *text)
    }

    pub(super) const fn named(
        mut self,
        name: &'static str,
        short: &'static str,
        meaning: &'static str,
    ) -> Self {
        self.name = name;
        self.short = short;
        self.meaning = meaning;
        self
    }

    /// Marks it as shown even at its default.
    pub(super) const fn on_path(mut self) -> Self {
        self.shapes_path = true;
        self
    }

    pub(super) const fn receiving(mut self) -> Self {
        self.matters_for = Some(Task::Receiving);
        self
    }

    pub(super) const fn sending(mut self) -> Self {
        self.matters_for = Some(Task::Sending);
        self
    }

    /// Marks it as recorded with each measurement.
    pub(super) const fn measured(mut self) -> Self {
        self.is_measured = true;
        self
    }

    /// Marks it as one of a network namespace that does not depend on the machine's memory.
    pub(super) const fn on_twins(mut self) -> Self {
        self.is_twinned = true;
        self
    }

    pub(super) const fn client(mut self, bounds: Bounds) -> Self {
        self.bounds = Some(bounds);
        self
    }

    pub(super) const fn in_pods(mut self, since: &'static str) -> Self {
        self.pods_since = Some(since);
        self
    }

    /// Sets the values that do harm, with their effects.
    pub(super) const fn harmful(mut self, harms: &'static [(When, &'static str)]) -> Self {
        self.harm = Harm::Of(harms);
        self
    }

    pub(super) const fn harm_computed(mut self, from: fn(&[i64], u64) -> Option<String>) -> Self {
        self.harm = Harm::Computed(from);
        self
    }

    pub(super) const fn since(mut self, major: u16, minor: u16) -> Self {
        self.since = Some(Release::new(major, minor));
        self
    }

    /// Marks it as per network namespace since this kernel.
    pub(super) const fn own(mut self, major: u16, minor: u16) -> Self {
        self.own_since = Some(Release::new(major, minor));
        self
    }

    /// Marks it as machine-wide but visible in every network namespace since this kernel.
    pub(super) const fn seen(mut self, major: u16, minor: u16) -> Self {
        self.seen_since = Some(Release::new(major, minor));
        self
    }

    pub(super) const fn inherited(mut self) -> Self {
        self.is_inherited = true;
        self
    }

    /// Marks it as without effect since this kernel.
    pub(super) const fn ignored(mut self, major: u16, minor: u16, why: &'static str) -> Self {
        self.end = Some(EndOfLife { since: Release::new(major, minor), is_gone: false, why });
        self
    }

    /// Marks it as removed in this kernel.
    pub(super) const fn gone(mut self, major: u16, minor: u16, why: &'static str) -> Self {
        self.end = Some(EndOfLife { since: Release::new(major, minor), is_gone: true, why });
        self
    }

    /// Sets one default for all kernels.
    pub(super) const fn always(mut self, value: &'static str) -> Self {
        self.defaults = Defaults::Always(value);
        self
    }

    /// Sets defaults that changed between kernels: the first kernel of each, oldest first.
    pub(super) const fn changed(mut self, values: &'static [(Release, &'static str)]) -> Self {
        self.defaults = Defaults::Changed(values);
        self
    }

    /// Sets a default that depends on memory.
    pub(super) const fn computed(mut self, from: fn(Release, u64) -> DefaultValue) -> Self {
        self.defaults = Defaults::Computed(from);
        self
    }

    /// Sets the default that most kernels are built with.
    pub(super) const fn usually(mut self, value: &'static str) -> Self {
        self.defaults = Defaults::Usually(value);
        self
    }
}

pub(super) const fn triple(unit: Unit) -> Row {
    of_kind(Kind::Triple, unit)
}

pub(super) const fn number(unit: Unit) -> Row {
    of_kind(Kind::Number, unit)
}

pub(super) const fn flag(values: &'static [(&'static str, &'static str)]) -> Row {
    let mut row = of_kind(Kind::Flag, Unit::None);
    row.values = values;
    row
}

pub(super) const fn name() -> Row {
    of_kind(Kind::Name, Unit::None)
}

pub(super) const fn names() -> Row {
    of_kind(Kind::Names, Unit::None)
}

const fn of_kind(kind: Kind, unit: Unit) -> Row {
    Row {
        name: "",
        short: "",
        meaning: "",
        kind,
        unit,
        shapes_path: false,
        matters_for: None,
        is_measured: false,
        is_twinned: false,
        since: None,
        own_since: None,
        seen_since: None,
        is_inherited: false,
        end: None,
        values: &[],
        bounds: None,
        pods_since: None,
        defaults: Defaults::Unknown,
        harm: Harm::Of(&[]),
    }
}
