//! A host's settings, as a plan reads them.

use bdp_model::measurement::HostFacts;
use bdp_model::tuning::setting::Setting;

use crate::buffer::{self, Buffer, Fit};
use crate::setting::numbers;

/// The settings of a host.
#[derive(Debug, Clone, Copy)]
pub(super) struct Host<'a> {
    facts: &'a HostFacts,
}

impl<'a> Host<'a> {
    pub(super) const fn new(facts: &'a HostFacts) -> Self {
        Self { facts }
    }

    /// Its address on the path.
    pub(super) fn address(&self) -> Option<std::net::IpAddr> {
        self.facts.address.parse().ok()
    }

    /// The value of a sysctl.
    pub(super) fn value(&self, setting: Setting) -> Option<&'a str> {
        self.facts.sysctls.get(setting.name).map(|value| value.trim())
    }

    /// A sysctl of three values.
    pub(super) fn triple(&self, setting: Setting) -> Option<[u64; 3]> {
        numbers(self.facts, setting)
    }

    /// Compares a buffer's setting with the need of each stream.
    pub(super) fn fit(&self, buffer: Buffer, needed: u64, streams: u32) -> Option<Fit> {
        buffer::fit(self.facts, buffer, needed, streams)
    }

    /// Whether the kernel has this congestion control; `None` if it does not report it.
    pub(super) fn has_congestion_control(&self, name: &str) -> Option<bool> {
        let all = self.value(Setting::TcpAvailableCongestionControl)?;
        Some(all.split_whitespace().any(|known| known == name))
    }

    /// The device that carries the path, and its queueing discipline.
    pub(super) fn device(&self) -> Option<(&'a str, Option<&'a str>)> {
        let device = self.facts.device.as_ref()?;
        Some((&device.name, device.qdisc.as_deref()))
    }

    /// Packets that the kernel dropped from its backlog.
    pub(super) fn dropped_backlog(&self) -> u64 {
        self.facts.counters.as_ref().and_then(|counters| counters.softnet_dropped).unwrap_or(0)
    }
}
