//! Reads the settings of this host.

use std::io::ErrorKind;

use bdp_model::tuning::host::{DeviceQueues, HostSetting, HostSettings, Rings, Unreadable};
use bdp_model::tuning::setting::{Release, Setting, all};
use bdp_sys::netlink::Netlink;
use bdp_sys::{SysError, device, process, sysctl};

/// Reads all settings of the catalogue, and the queues of a device, by default that of the default route.
pub fn read(device_name: Option<&str>) -> HostSettings {
    let kernel = process::kernel_release();
    let release = Release::of_kernel(&kernel);
    // Exists only in the machine's first namespace, whatever the kernel's release.
    let is_first_namespace = sysctl::read(Setting::NetdevMaxBacklog.name).is_ok();
    let settings = all().map(|setting| HostSetting {
        setting,
        value: sysctl::read(setting.name)
            .map_err(|error| why_unreadable(setting, release, is_first_namespace, &error)),
    });
    HostSettings {
        host: device::host_name(),
        kernel,
        memory_bytes: process::machine_memory_bytes(),
        is_first_namespace,
        settings: settings.collect(),
        device: device_name.map(str::to_owned).or_else(device::of_default_route).map(|name| queues(&name)),
    }
}

fn why_unreadable(
    setting: Setting,
    kernel: Option<Release>,
    is_first_namespace: bool,
    error: &SysError,
) -> Unreadable {
    match error.source.kind() {
        ErrorKind::NotFound if is_first_namespace => Unreadable::NotOfKernel,
        ErrorKind::NotFound => match kernel {
            Some(kernel) if !setting.exists_in(kernel) || setting.is_seen_in_namespace(kernel) => {
                Unreadable::NotOfKernel
            }
            _ => Unreadable::NotOfNamespace,
        },
        ErrorKind::PermissionDenied => Unreadable::NoPermission,
        _ => Unreadable::Failed { error: error.source.to_string() },
    }
}

/// Returns what a device's driver and the kernel report of its queues.
fn queues(name: &str) -> DeviceQueues {
    let counts = Netlink::open().and_then(|mut netlink| netlink.queues(name)).unwrap_or_default();
    let offloads = device::offloads(name);
    DeviceQueues {
        name: name.to_owned(),
        mtu_bytes: device::mtu(name),
        speed_bps: device::speed_bps(name),
        driver: device::driver(name),
        qdisc: device::queueing_discipline(name),
        txqueuelen: counts.length,
        tx_queues: counts.tx,
        rx_queues: counts.rx,
        gro: offloads.gro,
        gso: offloads.gso,
        tso: offloads.tso,
        rings: device::rings(name).map(|rings| Rings {
            rx: rings.rx.0,
            rx_most: rings.rx.1,
            tx: rings.tx.0,
            tx_most: rings.tx.1,
        }),
    }
}

#[cfg(test)]
mod tests {
    use bdp_model::tuning::setting::find;

    use super::*;

    fn missing(name: &str, kernel: &str, is_first_namespace: bool, kind: ErrorKind) -> Unreadable {
        let error = SysError { operation: "read sysctl", operand: name.to_owned(), source: kind.into() };
        why_unreadable(find(name).unwrap(), Release::of_kernel(kernel), is_first_namespace, &error)
    }

    #[test]
    fn what_is_missing_is_missing_for_a_reason() {
        use Unreadable::{NoPermission, NotOfKernel, NotOfNamespace};
        for (name, kernel, is_first, why) in [
            ("tcp_tw_recycle", "6.1", true, NotOfKernel),
            ("tcp_tw_recycle", "6.1", false, NotOfKernel),
            ("tcp_rto_min_us", "6.1", false, NotOfKernel),
            ("rmem_max", "6.1", false, NotOfNamespace),
            ("rmem_max", "6.18", false, NotOfKernel),
            ("tcp_mem", "6.18", false, NotOfNamespace),
        ] {
            assert_eq!(missing(name, kernel, is_first, ErrorKind::NotFound), why, "{name} on {kernel}");
        }
        assert_eq!(missing("tcp_rmem", "6.1", true, ErrorKind::PermissionDenied), NoPermission);
    }

    #[test]
    fn this_host_is_read() {
        let host = read(Some("lo"));
        assert_eq!(host.settings.len(), all().count());
        assert!(host.memory_bytes > 64 << 20 && host.release().is_some());
        assert!(host.value(Setting::TcpRmem).is_some_and(|value| value.split(' ').count() == 3));
        assert_eq!(host.device.unwrap().tx_queues, Some(1));
    }
}
