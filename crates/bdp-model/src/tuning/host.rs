//! Settings of a host as they were read, without what is to be thought of them.

use serde::{Deserialize, Serialize};

use super::setting::Release;

/// What was read of a host.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct HostSettings {
    /// Its host name.
    pub host: String,
    /// `uname -r`.
    pub kernel: String,
    /// Memory of the machine, whatever of it a container may use.
    pub memory_bytes: u64,
    /// Whether the process that read is in the first network namespace of the machine; others show less.
    pub is_first_namespace: bool,
    /// The settings, in the order in which they were asked for.
    pub settings: Vec<HostSetting>,
    /// The device that leads to the network; None where there is none.
    pub device: Option<DeviceQueues>,
}

impl HostSettings {
    /// The kernel's release; None where it is none of Linux.
    pub fn release(&self) -> Option<Release> {
        Release::of_kernel(&self.kernel)
    }

    /// The value of the setting of this full name, where it was read.
    pub fn value(&self, name: &str) -> Option<&str> {
        let setting = self.settings.iter().find(|setting| setting.name == name)?;
        setting.value.as_deref().ok()
    }
}

/// One setting of a host.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct HostSetting {
    /// Its full name.
    pub name: &'static str,
    /// Its value, or why it can't be read.
    pub value: Result<String, Unreadable>,
}

/// Why a setting can't be read.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(tag = "kind", rename_all = "snake_case")]
pub enum Unreadable {
    /// The kernel does not have it.
    NotOfKernel,
    /// It is the machine's, and network namespaces other than its first do not show it.
    NotOfNamespace,
    /// The user may not.
    NoPermission,
    /// Something else.
    Failed {
        /// The system's answer.
        error: String,
    },
}

/// Queues of a network device.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct DeviceQueues {
    /// Its name.
    pub name: String,
    /// Largest IP packet, bytes.
    pub mtu_bytes: Option<u32>,
    /// Speed as its driver reports it, bit/s; null of virtual devices.
    pub speed_bps: Option<u64>,
    /// Name of its driver.
    pub driver: Option<String>,
    /// Its queueing discipline; of a device with several queues that of these.
    pub qdisc: Option<String>,
    /// Packets that may wait in queueing disciplines without a limit of their own.
    pub txqueuelen: Option<u32>,
    /// Queues for sending.
    pub tx_queues: Option<u32>,
    /// Queues for receiving.
    pub rx_queues: Option<u32>,
    /// Whether received segments are put together (GRO).
    pub gro: Option<bool>,
    /// Whether large packets are cut just before the driver (GSO).
    pub gso: Option<bool>,
    /// Whether the card cuts large packets (TSO).
    pub tso: Option<bool>,
    /// The rings between driver and card.
    pub rings: Option<Rings>,
}

/// Entries of the rings of a network card.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct Rings {
    /// For receiving.
    pub rx: u32,
    /// The most that it can be.
    pub rx_most: u32,
    /// For sending.
    pub tx: u32,
    /// The most that it can be.
    pub tx_most: u32,
}
