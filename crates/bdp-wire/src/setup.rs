//! What the lab says to a fresh process to make a host of it.

use std::collections::BTreeMap;
use std::net::IpAddr;

use bdp_model::method::Privilege;
use bdp_model::netem::Netem;
use serde::{Deserialize, Serialize};

/// The first message on the stream, from the lab to the process.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct HostSetup {
    /// The host's name, for messages.
    pub name: String,
    /// Sysctls, in the host's own network namespace.
    pub sysctls: BTreeMap<String, String>,
    /// Its devices; their descriptors follow the answer, in this order.
    pub devices: Vec<DeviceSetup>,
    /// Whether it forwards packets of others.
    pub forwarding: bool,
    /// Where it sends what none of its devices leads to by its prefix.
    pub routes: Vec<RouteSetup>,
    /// Whether they change: behind its devices' descriptors follows that of a netlink socket, by which they are changed.
    #[serde(default)]
    pub routes_change: bool,
}

/// One route to one address.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct RouteSetup {
    /// The address that it leads to.
    pub to: IpAddr,
    /// The next hop's address on the device's link; `None` where `to` is on that link itself.
    pub via: Option<IpAddr>,
    /// The device.
    pub device: String,
    /// Congestion window of TCP connections that begin over it, segments.
    #[serde(default)]
    pub initial_window: Option<u32>,
}

/// One TUN device.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct DeviceSetup {
    /// Its name.
    pub name: String,
    /// Its address.
    pub address: IpAddr,
    /// Length of its network prefix.
    pub prefix: u8,
    /// Its MTU.
    pub mtu: u32,
    /// Packets that may wait for the emulator to read them.
    pub transmit_queue: u32,
    /// Whether super-packets cross it, with what is left to be done for each; segments alone if not.
    #[serde(default)]
    pub super_packets: bool,
    /// The discipline through which the host sends, in place of the kernel's usual one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub netem: Option<Netem>,
}

/// The process's answer. After `Ready` the descriptors follow, then the control protocol.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum SetupAnswer {
    /// The host is there.
    Ready {
        /// By which right.
        privilege: Privilege,
    },
    /// It can't be made.
    Failed {
        /// The operation, its operand and the system's answer.
        error: String,
        /// Whether the system refused for lack of permission.
        permission: bool,
    },
}
