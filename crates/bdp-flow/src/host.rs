//! Facts about this machine.

use std::net::IpAddr;

use bdp_model::measurement::host_counters::{DeviceCounters, HostCounters, StackCounters};
use bdp_model::measurement::{DeviceFacts, HostFacts};
use bdp_model::tuning::setting::{self, Setting};
use bdp_sys::cgroup::Throttling;
use bdp_sys::netstat::StackCounts;
use bdp_sys::process::HostCpu;
use bdp_sys::softnet::Softnet;
use bdp_sys::{cgroup, clock, device, netlink, process, sysctl};

/// A moment that later facts are compared with.
#[derive(Debug, Clone)]
pub struct Baseline {
    address: IpAddr,
    device: Option<String>,
    counted: Option<netlink::DeviceCounters>,
    softnet: Option<Softnet>,
    stack: StackCounts,
    throttling: Option<Throttling>,
    cpu: HostCpu,
    at_ns: u64,
}

impl Baseline {
    /// Takes the baseline now, for the path that leaves from `address`.
    pub fn take(address: IpAddr) -> Self {
        let address = address.to_canonical();
        let device = device::with_address(address).ok().flatten();
        Self {
            address,
            counted: device.as_deref().and_then(|d| device::counters(d).ok()),
            device,
            softnet: Softnet::read(),
            stack: StackCounts::read(),
            throttling: cgroup::throttling(),
            cpu: HostCpu::read(),
            at_ns: clock::monotonic_ns(),
        }
    }

    /// Returns facts about the machine and its activity since the baseline.
    pub fn facts(&self) -> HostFacts {
        let (busy, steal) = HostCpu::read().since(self.cpu);
        let sysctls: std::collections::BTreeMap<String, String> = setting::all()
            .filter(|setting| setting.is_measured)
            .filter_map(|setting| Some((setting.into(), sysctl::read(setting.name).ok()?)))
            .collect();
        let counters = self.counters();
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
                drops: counters.device.as_ref().map(|d| d.rx_dropped + d.tx_dropped),
                full_duplex: device::is_full_duplex(name),
                qdisc: device::queueing_discipline(name),
            }),
            congestion_control: sysctls.get(Setting::TcpCongestionControl.name).cloned(),
            sysctls,
            cpu_busy: Some(busy),
            cpu_steal: Some(steal),
            counters: Some(counters),
        }
    }

    /// Returns the counters since the baseline; attribution to traffic is done elsewhere
    /// ([`HostCounters::attribute`]).
    pub fn counters(&self) -> HostCounters {
        let now = self.device.as_deref().and_then(|d| device::counters(d).ok());
        let softnet = self.softnet.zip(Softnet::read());
        let throttled = self.throttling.zip(cgroup::throttling());
        let since = |now: u64, before: u64| now.saturating_sub(before);
        HostCounters {
            over_ns: since(clock::monotonic_ns(), self.at_ns),
            device: self.counted.zip(now).map(|(before, now)| DeviceCounters {
                rx_bytes: since(now.rx_bytes, before.rx_bytes),
                tx_bytes: since(now.tx_bytes, before.tx_bytes),
                rx_packets: since(now.rx_packets, before.rx_packets),
                tx_packets: since(now.tx_packets, before.tx_packets),
                rx_dropped: since(now.rx_dropped, before.rx_dropped),
                tx_dropped: since(now.tx_dropped, before.tx_dropped),
                rx_missed: since(now.rx_missed, before.rx_missed),
                rx_fifo: since(now.rx_fifo, before.rx_fifo),
                tx_fifo: since(now.tx_fifo, before.tx_fifo),
                rx_cross_bytes: None,
                tx_cross_bytes: None,
            }),
            softnet_dropped: softnet.map(|(before, now)| since(now.dropped, before.dropped)),
            softnet_squeezed: softnet.map(|(before, now)| since(now.squeezed, before.squeezed)),
            throttled_periods: throttled.map(|(before, now)| since(now.periods, before.periods)),
            throttled_ns: throttled.map(|(before, now)| since(now.time_ns, before.time_ns)),
            stack: Some(stack_counters(&self.stack, &StackCounts::read())),
        }
    }
}

fn stack_counters(before: &StackCounts, now: &StackCounts) -> StackCounters {
    let tcp = |name: &str| now.since(before, "TcpExt", name);
    StackCounters {
        prune_called: tcp("PruneCalled"),
        rcv_pruned: tcp("RcvPruned"),
        ofo_pruned: tcp("OfoPruned"),
        backlog_drop: tcp("TCPBacklogDrop"),
        rcvq_drop: tcp("TCPRcvQDrop"),
        zero_window_drop: tcp("TCPZeroWindowDrop"),
        ofo_drop: tcp("TCPOFODrop"),
        to_zero_window: tcp("TCPToZeroWindowAdv"),
        rcv_collapsed: tcp("TCPRcvCollapsed"),
        memory_pressures: tcp("TCPMemoryPressures"),
        timeouts: tcp("TCPTimeouts"),
        spurious_timeouts: tcp("TCPSpuriousRTOs"),
        loss_probes: tcp("TCPLossProbes"),
        sack_reneging: tcp("TCPSACKReneging"),
        dsack_received: tcp("TCPDSACKRecv"),
        tcp_checksum_errors: now.since(before, "Tcp", "InCsumErrors"),
        udp_receive_buffer_errors: now.since(before, "Udp", "RcvbufErrors"),
        udp_send_buffer_errors: now.since(before, "Udp", "SndbufErrors"),
        udp_checksum_errors: now.since(before, "Udp", "InCsumErrors"),
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
        let counters = facts.counters.unwrap();
        assert!(counters.over_ns > 0 && counters.softnet_dropped.is_some() && counters.device.is_some());
        assert!(counters.stack.is_some_and(|stack| stack.prune_called.is_some() && stack.timeouts.is_some()));
        assert!(facts.sysctls.contains_key("net.ipv4.tcp_congestion_control") && facts.cpus >= 1);
    }
}
