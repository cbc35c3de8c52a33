//! Whether the machine can run the lab.

use std::collections::BTreeMap;

use bdp_wire::setup::{DeviceSetup, HostSetup};

use crate::LabError;
use crate::agent::addresses;
use crate::host::{AgentCommand, Host};

/// Prepares the process for many hosts at once. A limit that can't be raised shows later, as an error of the operation that hits it.
pub fn prepare() {
    let _ = bdp_sys::process::raise_descriptor_limit();
}

/// Why no lab can be built here; `None` if one can. Tested with a host that ends at once.
pub fn obstacle(command: &AgentCommand) -> Option<LabError> {
    let device = DeviceSetup {
        name: "link0".to_owned(),
        address: addresses(0, false)[0],
        prefix: 24,
        mtu: 1500,
        transmit_queue: 16,
        super_packets: true,
        netem: None,
    };
    let setup = HostSetup {
        name: "probe".to_owned(),
        sysctls: BTreeMap::new(),
        devices: vec![device],
        forwarding: false,
        routes: Vec::new(),
        routes_change: false,
    };
    Host::start(command, &setup).err()
}
