//! What this machine says of itself.

use std::net::IpAddr;

use bdp_model::measurement::{DeviceFacts, HostFacts};
use bdp_sys::process::HostCpu;
use bdp_sys::{device, process, sysctl};

/// Settings that matter to TCP between machines.
const SYSCTLS: [&str; 16] = [
    "net.core.default_qdisc",
    "net.core.rmem_max",
    "net.core.wmem_max",
    "net.ipv4.tcp_adv_win_scale",
    "net.ipv4.tcp_congestion_control",
    "net.ipv4.tcp_ecn",
    "net.ipv4.tcp_mem",
    "net.ipv4.tcp_moderate_rcvbuf",
    "net.ipv4.tcp_mtu_probing",
    "net.ipv4.tcp_no_metrics_save",
    "net.ipv4.tcp_rmem",
    "net.ipv4.tcp_sack",
    "net.ipv4.tcp_slow_start_after_idle",
    "net.ipv4.tcp_timestamps",
    "net.ipv4.tcp_window_scaling",
    "net.ipv4.tcp_wmem",
];

/// A moment that later facts are compared with.
#[derive(Debug, Clone)]
pub struct Baseline {
    address: IpAddr,
    device: Option<String>,
    drops: Option<u64>,
    cpu: HostCpu,
}

impl Baseline {
    /// Now, on the path that leaves from `address`.
    pub fn take(address: IpAddr) -> Self {
        let address = address.to_canonical();
        let device = device::with_address(address).ok().flatten();
        let drops = device.as_deref().and_then(|d| device::drops(d).ok());
        Self { address, device, drops, cpu: HostCpu::read() }
    }

    /// What the machine is, and what it did since.
    pub fn facts(&self) -> HostFacts {
        let (busy, steal) = HostCpu::read().since(self.cpu);
        let sysctls: std::collections::BTreeMap<String, String> = SYSCTLS
            .iter()
            .filter_map(|&name| sysctl::read(name).ok().map(|v| (name.to_owned(), v)))
            .collect();
        HostFacts {
            name: device::host_name(),
            address: self.address.to_string(),
            bdp: env!("CARGO_PKG_VERSION").to_owned(),
            system: "Linux".to_owned(),
            kernel: process::kernel_release(),
            arch: std::env::consts::ARCH.to_owned(),
            cpus: process::online_cpus(),
            device: self.device.as_ref().map(|name| DeviceFacts {
                name: name.clone(),
                speed_bps: device::speed_bps(name),
                mtu: device::mtu(name),
                drops: self
                    .drops
                    .zip(device::drops(name).ok())
                    .map(|(before, now)| now.saturating_sub(before)),
            }),
            congestion_control: sysctls.get("net.ipv4.tcp_congestion_control").cloned(),
            sysctls,
            cpu_busy: Some(busy),
            cpu_steal: Some(steal),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn this_machine_tells_what_it_is() {
        let facts = Baseline::take("::ffff:127.0.0.1".parse().unwrap()).facts();
        assert_eq!(facts.address, "127.0.0.1");
        assert_eq!(facts.device.unwrap().name, "lo");
        assert!(facts.sysctls.contains_key("net.ipv4.tcp_congestion_control") && facts.cpus >= 1);
    }
}
