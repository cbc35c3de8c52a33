//! Settings of a host as read, without judgement.

use serde::{Deserialize, Serialize};

use super::setting::{Release, Setting};

/// Settings read from a host.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct HostSettings {
    /// Host name.
    pub host: String,
    /// Output of `uname -r`.
    pub kernel: String,
    /// Memory of the machine, regardless of a container's limit.
    pub memory_bytes: u64,
    /// Whether they were read in the machine's initial network namespace; others show less.
    pub is_first_namespace: bool,
    /// The settings, in the order requested.
    pub settings: Vec<HostSetting>,
    /// The device that leads to the network; None if there is none.
    pub device: Option<DeviceQueues>,
}

impl HostSettings {
    /// Returns the kernel's release; None if it is not Linux.
    pub fn release(&self) -> Option<Release> {
        Release::of_kernel(&self.kernel)
    }

    /// Returns the value of a setting, if it was read.
    pub fn value(&self, setting: Setting) -> Option<&str> {
        let read = self.settings.iter().find(|read| read.setting == setting)?;
        read.value.as_deref().ok()
    }
}

/// One setting of a host.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct HostSetting {
    /// The setting.
    pub setting: Setting,
    /// Value, or why it cannot be read.
    pub value: Result<String, Unreadable>,
}

/// Why a setting cannot be read.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(tag = "kind", rename_all = "snake_case")]
pub enum Unreadable {
    /// The kernel does not have it.
    NotOfKernel,
    /// It is machine-wide and visible in the initial network namespace alone.
    NotOfNamespace,
    /// The user lacks permission.
    NoPermission,
    /// Another error.
    Failed {
        /// The system's error message.
        error: String,
    },
}

/// Queues and offloads of a network device.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct DeviceQueues {
    /// Name of the device.
    pub name: String,
    /// Maximum IP packet (MTU), bytes.
    pub mtu_bytes: Option<u32>,
    /// Speed reported by the driver, bit/s; null for virtual devices.
    pub speed_bps: Option<u64>,
    /// Name of the driver.
    pub driver: Option<String>,
    /// Queueing discipline; for a multi-queue device, that of its queues.
    pub qdisc: Option<String>,
    /// Queue length in packets for queueing disciplines without a limit of their own.
    pub txqueuelen: Option<u32>,
    /// Number of transmit queues.
    pub tx_queues: Option<u32>,
    /// Number of receive queues.
    pub rx_queues: Option<u32>,
    /// Whether received segments are merged (GRO).
    pub gro: Option<bool>,
    /// Whether large packets are split just before the driver (GSO).
    pub gso: Option<bool>,
    /// Whether the card splits large packets (TSO).
    pub tso: Option<bool>,
    /// The rings between driver and card.
    pub rings: Option<Rings>,
}

/// Sizes of a network card's rings.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct Rings {
    /// Receive ring, entries.
    pub rx: u32,
    /// Maximum size of the receive ring.
    pub rx_most: u32,
    /// Transmit ring, entries.
    pub tx: u32,
    /// Maximum size of the transmit ring.
    pub tx_most: u32,
}
