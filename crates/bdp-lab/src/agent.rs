//! The agent's side of a host: how a fresh process becomes a host.

use std::net::IpAddr;
use std::os::fd::OwnedFd;
use std::os::unix::net::UnixStream;

use bdp_model::flow::method::Privilege;
use bdp_model::link::netem::Netem;
use bdp_model::tuning::setting::Setting;
use bdp_model::units::Probability;
use bdp_sys::namespace;
use bdp_sys::netlink::{DeviceSettings, HostRoute, Netlink};
use bdp_sys::qdisc::NetemSettings;
use bdp_sys::tun::Tun;
use bdp_sys::{SysError, passing, process, sysctl};
use bdp_wire::frame::{self, FrameError};
use bdp_wire::setup::{HostSetup, SetupAnswer};

use crate::offload;

/// Makes a host of the calling process, which must have a single thread, or as root of the calling thread: reads
/// its setup from `control`, moves to its own namespace, creates the devices and sends their descriptors back.
/// `parent` is the process that must outlive it. Afterwards `control` carries the engine's protocol. A failure is
/// reported to the lab.
pub fn enter(control: &UnixStream, parent: Option<u32>) -> Result<(), FrameError> {
    parent.inspect(|&parent| process::die_with_parent(parent));
    let setup: HostSetup = frame::read(&mut &*control)?;
    match build(&setup, parent) {
        Ok((privilege, devices)) => {
            let privilege = match privilege {
                namespace::Privilege::Root => Privilege::Root,
                namespace::Privilege::UserNamespace => Privilege::UserNamespace,
            };
            frame::write(&mut &*control, &SetupAnswer::Ready { privilege })?;
            let devices: Vec<&OwnedFd> = devices.iter().collect();
            passing::send_descriptors(control, &devices).map_err(|e| FrameError::Io(e.source))
        }
        Err(error) => {
            // An unwritable sysctl is a mistake of the scenario, and concerns no other case.
            let permission = match error.operation {
                "open" | "unshare" | "create TUN device" => true,
                "write sysctl" => false,
                _ => error.source.kind() == std::io::ErrorKind::PermissionDenied,
            };
            frame::write(&mut &*control, &SetupAnswer::Failed { error: error.to_string(), permission })?;
            Err(FrameError::Closed)
        }
    }
}

fn build(setup: &HostSetup, parent: Option<u32>) -> Result<(namespace::Privilege, Vec<OwnedFd>), SysError> {
    let privilege = namespace::enter_own_network()?;
    // A change of credentials clears the parent-death signal.
    parent.inspect(|&parent| process::die_with_parent(parent));
    let ipv6 = setup.devices.iter().any(|d| d.address.is_ipv6());
    for (name, value) in routing_sysctls(setup.forwarding, ipv6).into_iter().chain(quiet_sysctls(ipv6)) {
        sysctl::write(name, value)?;
    }
    let mut netlink = Netlink::open()?;
    netlink.bring_up("lo", &DeviceSettings::default())?;
    let mut devices = Vec::new();
    for device in &setup.devices {
        let tun = Tun::create(&device.name, offload::framing(device))?;
        netlink.bring_up(
            &device.name,
            &DeviceSettings {
                mtu: Some(device.mtu),
                transmit_queue: Some(device.transmit_queue),
                // One packet is one wire segment: a super-packet on a slow link would be a burst.
                gso_max_segments: if device.super_packets { None } else { Some(1) },
            },
        )?;
        if let Some(netem) = &device.netem {
            netlink.set_netem(&device.name, &settings_of(netem))?;
        }
        netlink.add_address(&device.name, device.address, device.prefix)?;
        devices.push(tun.into_descriptor());
    }
    for route in &setup.routes {
        netlink.add_route(&HostRoute {
            to: route.to,
            via: route.via,
            device: &route.device,
            initial_window: route.initial_window,
        })?;
    }
    for (name, value) in &setup.sysctls {
        sysctl::write(name, value)?;
    }
    if setup.routes_change {
        devices.push(netlink.into_descriptor());
    }
    Ok((privilege, devices))
}

/// Kernel settings of an emulation by netem.
pub(crate) fn settings_of(netem: &Netem) -> NetemSettings {
    // In parts of 2^32; the largest stands for all.
    let parts = |p: Probability| (p.fraction() * f64::from(u32::MAX)).round() as u32;
    NetemSettings {
        delay_ns: netem.delay.as_ns(),
        jitter_ns: netem.jitter.as_ns(),
        loss: parts(netem.loss),
        loss_in_states: netem
            .loss_in_states
            .map(|states| [states.to_bad, states.to_good, states.loss_bad, states.loss_good].map(parts)),
        duplicate: parts(netem.duplicate),
        at_once: parts(netem.at_once),
        rate_bytes_per_second: netem.rate.map(|rate| rate.as_bps() / 8),
        overhead_bytes: netem.overhead_bytes,
        limit_packets: netem.limit_packets,
    }
}

/// Sysctls for forwarding, and for packets to take the scenario's route: sources are not checked against routes,
/// since the way back may differ, and no redirects are sent. Forwarding comes first, because the kernel resets
/// others of these with it.
pub(crate) fn routing_sysctls(forwarding: bool, ipv6: bool) -> Vec<(&'static str, &'static str)> {
    let mut settings = Vec::new();
    if forwarding {
        settings.push(("net.ipv4.ip_forward", "1"));
    }
    settings.extend([
        ("net.ipv4.conf.all.rp_filter", "0"),
        ("net.ipv4.conf.default.rp_filter", "0"),
        ("net.ipv4.conf.all.send_redirects", "0"),
        ("net.ipv4.conf.default.send_redirects", "0"),
        ("net.ipv4.conf.all.accept_redirects", "0"),
        ("net.ipv4.conf.default.accept_redirects", "0"),
    ]);
    if ipv6 {
        if forwarding {
            settings.push(("net.ipv6.conf.all.forwarding", "1"));
        }
        settings.extend([
            ("net.ipv6.conf.all.accept_redirects", "0"),
            ("net.ipv6.conf.default.accept_redirects", "0"),
        ]);
    }
    settings
}

/// Sysctls that keep a host from sending packets of no flow, and from remembering earlier connections.
pub(crate) fn quiet_sysctls(ipv6: bool) -> Vec<(&'static str, &'static str)> {
    let mut settings = vec![(Setting::TcpNoMetricsSave.name, "1")];
    if std::path::Path::new("/proc/sys/net/ipv6").exists() {
        if ipv6 {
            settings.extend([
                ("net.ipv6.conf.default.addr_gen_mode", "1"),
                ("net.ipv6.conf.default.accept_ra", "0"),
                ("net.ipv6.conf.default.router_solicitations", "0"),
                ("net.ipv6.conf.default.accept_dad", "0"),
            ]);
        } else {
            settings.extend([
                ("net.ipv6.conf.default.disable_ipv6", "1"),
                ("net.ipv6.conf.all.disable_ipv6", "1"),
            ]);
        }
    }
    settings
}

/// Whether a packet belongs to a flow. Group membership and router discovery, which some kernels send unasked, do
/// not: they would shift the index that keys random draws.
pub(crate) fn is_unicast(packet: &[u8]) -> bool {
    match packet.first().map(|b| b >> 4) {
        Some(4) => packet.get(16).is_some_and(|&b| b < 224),
        Some(6) => packet.get(24).is_some_and(|&b| b != 0xff),
        _ => false,
    }
}

/// The two addresses of link number `index`, from the ranges reserved for benchmarks (RFC 2544, RFC 5180).
pub(crate) fn addresses(index: u8, ipv6: bool) -> [IpAddr; 2] {
    [1, 2].map(|host| {
        if ipv6 {
            IpAddr::from([0x2001, 0x2, 0, u16::from(index), 0, 0, 0, host])
        } else {
            IpAddr::from([198, 18, index, host as u8])
        }
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_unicast_packets_are_carried() {
        let mut v4 = [0u8; 20];
        v4[0] = 0x45;
        v4[16] = 198;
        assert!(is_unicast(&v4));
        v4[16] = 224;
        assert!(!is_unicast(&v4));
        let mut v6 = [0u8; 40];
        v6[0] = 0x60;
        v6[24] = 0x20;
        assert!(is_unicast(&v6));
        v6[24] = 0xff;
        assert!(!is_unicast(&v6));
        assert!(!is_unicast(&[]));
        assert!(!is_unicast(&[0x45]));
    }
}
