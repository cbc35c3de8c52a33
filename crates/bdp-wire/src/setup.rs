//! Messages between the lab and a fresh process that becomes a host of the lab.

use std::collections::BTreeMap;
use std::net::IpAddr;

use bdp_model::flow::method::Privilege;
use bdp_model::link::netem::Netem;
use serde::{Deserialize, Serialize};

/// First message on the stream, from the lab to the process.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct HostSetup {
    /// Name of the host, for messages.
    pub name: String,
    /// Sysctls in the host's own network namespace, by name.
    pub sysctls: BTreeMap<String, String>,
    /// Devices of the host; their descriptors follow the answer, in this order.
    pub devices: Vec<DeviceSetup>,
    /// Whether the host forwards packets.
    pub forwarding: bool,
    /// Routes to destinations outside the prefixes of its devices.
    pub routes: Vec<RouteSetup>,
    /// Whether routes change during the run: then a netlink socket's descriptor, for changing them, follows those of the devices.
    #[serde(default)]
    pub routes_change: bool,
}

/// A route to one address.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct RouteSetup {
    /// Destination address.
    pub to: IpAddr,
    /// Address of the next hop on the device's link; `None` if `to` is on the link itself.
    pub via: Option<IpAddr>,
    /// Device name.
    pub device: String,
    /// Initial congestion window of TCP connections over the route, segments.
    #[serde(default)]
    pub initial_window: Option<u32>,
}

/// A TUN device.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct DeviceSetup {
    /// Device name.
    pub name: String,
    /// Address of the device.
    pub address: IpAddr,
    /// Length of the network prefix.
    pub prefix: u8,
    /// MTU.
    pub mtu: u32,
    /// Length of the queue of packets that the emulator has yet to read.
    pub transmit_queue: u32,
    /// Whether the device passes super-packets with their offload metadata (checksum, segmentation), rather than only single segments.
    #[serde(default)]
    pub super_packets: bool,
    /// Queueing discipline for sending; `None` keeps the kernel's default.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub netem: Option<Netem>,
}

/// The process's answer. After `Ready` the descriptors follow, then the control protocol.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum SetupAnswer {
    /// The host is ready.
    Ready {
        /// Privilege used to create it.
        privilege: Privilege,
    },
    /// The host can't be created.
    Failed {
        /// Operation, operand and system error.
        error: String,
        /// Whether the system denied permission.
        permission: bool,
    },
}
