//! Network devices: their addresses, speed and drops.

use std::ffi::{CStr, CString};
use std::net::{IpAddr, UdpSocket};
use std::os::fd::{AsRawFd, OwnedFd};

use crate::netlink::{DeviceCounters, Netlink};
use crate::{Result, SysError, check};

/// The device that has this address; `None` if there is none.
pub fn with_address(address: IpAddr) -> Result<Option<String>> {
    Ok(addresses()?.into_iter().find(|(_, own)| *own == address).map(|(device, _)| device))
}

/// The addresses of this machine, each with its device, in the kernel's order.
pub fn addresses() -> Result<Vec<(String, IpAddr)>> {
    let mut first: *mut libc::ifaddrs = std::ptr::null_mut();
    // SAFETY: the call stores a list, which is freed below.
    check(unsafe { libc::getifaddrs(&raw mut first) }, "list", "addresses")?;
    let mut found = Vec::new();
    let mut entry = first;
    while !entry.is_null() {
        // SAFETY: entries of the list are valid until it is freed, and so are the name and the address that they
        // point to; an address is as long as its family says.
        unsafe {
            if let Some(address) = socket_address((*entry).ifa_addr) {
                let name = CStr::from_ptr((*entry).ifa_name).to_string_lossy();
                // Labels of IPv4 addresses name the device before a colon.
                found.push((name.split(':').next().unwrap_or_default().to_owned(), address));
            }
            entry = (*entry).ifa_next;
        }
    }
    // SAFETY: the list came from getifaddrs and is not used any more.
    unsafe { libc::freeifaddrs(first) };
    Ok(found)
}

/// # Safety
///
/// `address` is null or points to a socket address as long as its family says.
unsafe fn socket_address(address: *const libc::sockaddr) -> Option<IpAddr> {
    if address.is_null() {
        return None;
    }
    // SAFETY: by the caller's promise.
    unsafe {
        match libc::c_int::from((*address).sa_family) {
            libc::AF_INET => {
                let v4 = address.cast::<libc::sockaddr_in>();
                Some(IpAddr::from((*v4).sin_addr.s_addr.to_ne_bytes()))
            }
            libc::AF_INET6 => {
                let v6 = address.cast::<libc::sockaddr_in6>();
                Some(IpAddr::from((*v6).sin6_addr.s6_addr))
            }
            _ => None,
        }
    }
}

/// `ETHTOOL_GSET` and `ETHTOOL_GDRVINFO` of linux/ethtool.h.
const GET_SETTINGS: u32 = 1;
const GET_DRIVER: u32 = 3;
/// `ETHTOOL_GRINGPARAM`, `ETHTOOL_GTSO`, `ETHTOOL_GGSO`, `ETHTOOL_GGRO`.
const GET_RINGS: u32 = 0x10;
const GET_TSO: u32 = 0x1e;
const GET_GSO: u32 = 0x23;
const GET_GRO: u32 = 0x2b;
/// Drivers that report an invented speed.
const VIRTUAL: [&str; 6] = ["veth", "tun", "bridge", "dummy", "vxlan", "netkit"];

/// Link speed in bit/s as the driver reports it; `None` if it does not, and for virtual devices, whose figure means nothing.
pub fn speed_bps(device: &str) -> Option<u64> {
    if VIRTUAL.contains(&driver(device)?.as_str()) {
        return None;
    }
    // struct ethtool_cmd: the lower half of the speed at 12, the upper at 28.
    let settings = ethtool::<44>(device, GET_SETTINGS)?;
    let half = |at: usize| u16::from_ne_bytes([settings[at], settings[at + 1]]);
    match u32::from(half(28)) << 16 | u32::from(half(12)) {
        // SPEED_UNKNOWN, also as 16 bits of it.
        0 | 0xffff | 0xffff_ffff => None,
        mbps => Some(u64::from(mbps) * 1_000_000),
    }
}

/// Name of the device's driver; `None` if it has none, as loopback.
pub fn driver(device: &str) -> Option<String> {
    // struct ethtool_drvinfo: cmd, then 32 bytes of driver name.
    let answer = ethtool::<196>(device, GET_DRIVER)?;
    let name = answer.get(4..36)?.split(|&b| b == 0).next()?;
    Some(String::from_utf8_lossy(name).into_owned())
}

/// Offloads of a device; each is `None` if the driver does not report it.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Offloads {
    /// Coalesces received segments.
    pub gro: Option<bool>,
    /// Accepts large packets, which are segmented just before the driver.
    pub gso: Option<bool>,
    /// Segments large packets itself.
    pub tso: Option<bool>,
}

/// Returns the device's offloads.
pub fn offloads(device: &str) -> Offloads {
    // struct ethtool_value: cmd, data.
    let is_on = |command| ethtool::<8>(device, command).map(|answer| answer[4..] != [0; 4]);
    Offloads { gro: is_on(GET_GRO), gso: is_on(GET_GSO), tso: is_on(GET_TSO) }
}

/// Sizes of the rings between driver and card, entries.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Rings {
    /// Current and largest receive ring.
    pub rx: (u32, u32),
    /// Current and largest transmit ring.
    pub tx: (u32, u32),
}

/// The device's rings; `None` if the driver does not report them.
pub fn rings(device: &str) -> Option<Rings> {
    // struct ethtool_ringparam: cmd, the maximum of rx, rx mini, rx jumbo and tx, then the current sizes.
    let answer = ethtool::<36>(device, GET_RINGS)?;
    let number =
        |place: usize| answer[place * 4..].first_chunk().map_or(0, |bytes| u32::from_ne_bytes(*bytes));
    let rings = Rings { rx: (number(5), number(1)), tx: (number(8), number(4)) };
    (rings.rx.1 > 0 || rings.tx.1 > 0).then_some(rings)
}

/// The device of the IPv4 default route, else of the IPv6 one; `None` if there is neither.
pub fn of_default_route() -> Option<String> {
    let read = |path| std::fs::read_to_string(path).unwrap_or_default();
    default_of_ipv4(&read("/proc/thread-self/net/route"))
        .or_else(|| default_of_ipv6(&read("/proc/thread-self/net/ipv6_route")))
}

/// The device of the default route with the smallest metric in `/proc/net/route`.
fn default_of_ipv4(table: &str) -> Option<String> {
    let routes = table.lines().skip(1).filter_map(|line| {
        // Iface, Destination, Gateway, Flags, RefCnt, Use, Metric, Mask.
        let fields: Vec<&str> = line.split_whitespace().collect();
        let (device, metric) = (fields.first()?, fields.get(6)?.parse::<u32>().ok()?);
        (fields.get(1) == Some(&"00000000") && fields.get(7) == Some(&"00000000"))
            .then_some((metric, *device))
    });
    routes.min().map(|(_, device)| device.to_owned())
}

/// The device of the default route with the smallest metric in `/proc/net/ipv6_route`, which also has rejecting routes on loopback.
fn default_of_ipv6(table: &str) -> Option<String> {
    let routes = table.lines().filter_map(|line| {
        // Destination, its bits, source, its bits, next hop, metric, references, use, flags, device.
        let fields: Vec<&str> = line.split_whitespace().collect();
        let (device, metric) = (fields.get(9)?, u32::from_str_radix(fields.get(5)?, 16).ok()?);
        let is_default = fields[0].bytes().all(|b| b == b'0') && fields[1] == "00" && *device != "lo";
        is_default.then_some((metric, *device))
    });
    routes.min().map(|(_, device)| device.to_owned())
}

/// Whether a device of this name exists.
pub fn exists(device: &str) -> bool {
    mtu(device).is_some()
}

/// Whether the link is full duplex, as the driver reports it; `None` if it does not.
pub fn is_full_duplex(device: &str) -> Option<bool> {
    // struct ethtool_cmd: duplex at 14, DUPLEX_HALF 0, DUPLEX_FULL 1, DUPLEX_UNKNOWN 0xff. A virtual device has none.
    speed_bps(device)?;
    match ethtool::<44>(device, GET_SETTINGS)?[14] {
        0 => Some(false),
        1 => Some(true),
        _ => None,
    }
}

/// Makes one ethtool request; returns the `N` bytes of the command's structure as the driver fills them.
fn ethtool<const N: usize>(device: &str, command: u32) -> Option<[u8; N]> {
    let socket = UdpSocket::bind("127.0.0.1:0").or_else(|_| UdpSocket::bind("[::1]:0")).ok()?;
    let mut data = [0u8; N];
    data[..4].copy_from_slice(&command.to_ne_bytes());
    let mut request = interface_request(device)?;
    request.ifr_ifru.ifru_data = data.as_mut_ptr().cast();
    // SAFETY: the request names a device and points to a live structure of the command's size.
    let done = unsafe { libc::ioctl(socket.as_raw_fd(), SIOCETHTOOL, &raw mut request) };
    (done >= 0).then_some(data)
}

const SIOCETHTOOL: libc::c_ulong = 0x8946;

fn interface_request(device: &str) -> Option<libc::ifreq> {
    let name = CString::new(device).ok()?;
    // SAFETY: ifreq is plain data for which all-zero is valid.
    let mut request: libc::ifreq = unsafe { std::mem::zeroed() };
    let bytes = name.as_bytes();
    if bytes.len() >= request.ifr_name.len() {
        return None;
    }
    for (to, &from) in request.ifr_name.iter_mut().zip(bytes) {
        *to = from as libc::c_char;
    }
    Some(request)
}

/// Returns the device's MTU.
pub fn mtu(device: &str) -> Option<u32> {
    let socket = UdpSocket::bind("127.0.0.1:0").or_else(|_| UdpSocket::bind("[::1]:0")).ok()?;
    let mut request = interface_request(device)?;
    // SAFETY: the request names a device; the kernel stores the MTU in it.
    let mtu = unsafe {
        if libc::ioctl(socket.as_raw_fd(), libc::SIOCGIFMTU as libc::c_ulong, &raw mut request) < 0 {
            return None;
        }
        request.ifr_ifru.ifru_mtu
    };
    u32::try_from(mtu).ok()
}

/// Link-layer type of a device, an `ARPHRD_*` of linux/if_arp.h; any socket may ask.
pub(crate) fn hardware_type(socket: &OwnedFd, device: &str) -> Option<u16> {
    let mut request = interface_request(device)?;
    // SAFETY: the request names a device; the kernel stores its address in it, whose family is the type.
    unsafe {
        if libc::ioctl(socket.as_raw_fd(), libc::SIOCGIFHWADDR as libc::c_ulong, &raw mut request) < 0 {
            return None;
        }
        Some(request.ifr_ifru.ifru_hwaddr.sa_family)
    }
}

/// Name of the device's queueing discipline, such as `fq`; `None` if it is not reported.
pub fn queueing_discipline(device: &str) -> Option<String> {
    Netlink::open().ok()?.queueing_discipline(device).ok().flatten()
}

/// Counters of the device since it exists.
pub fn counters(device: &str) -> Result<DeviceCounters> {
    Netlink::open()?.counters(device)
}

/// Host name of the machine.
pub fn host_name() -> String {
    std::fs::read_to_string("/proc/sys/kernel/hostname")
        .map_err(|e| SysError::new("read", "host name", e))
        .map_or_else(|_| "unknown".to_owned(), |name| name.trim().to_owned())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_loopback_device_has_its_address_and_no_speed() {
        assert_eq!(with_address("127.0.0.1".parse().unwrap()).unwrap().as_deref(), Some("lo"));
        assert_eq!(with_address("192.0.2.77".parse().unwrap()).unwrap(), None);
        assert_eq!(speed_bps("lo"), None);
        assert!(mtu("lo").unwrap() >= 1500);
        assert_eq!(mtu("no-such-device-with-a-long-name"), None);
        assert!(counters("lo").is_ok());
        assert_eq!(is_full_duplex("lo"), None);
        assert!(exists("lo") && !exists("no-such-device"));
    }

    #[test]
    fn the_loopback_device_has_offloads_and_no_rings() {
        let offloads = offloads("lo");
        assert!(offloads.gso.is_some() && offloads.gro.is_some() && offloads.tso.is_some(), "{offloads:?}");
        assert_eq!(rings("lo"), None);
        let queues = Netlink::open().unwrap().queues("lo").unwrap();
        assert_eq!((queues.tx, queues.rx), (Some(1), Some(1)));
        assert!(queues.length.is_some());
    }

    #[test]
    fn the_default_route_of_least_metric_leads_to_the_network() {
        let table = "Iface Destination Gateway Flags RefCnt Use Metric Mask MTU Window IRTT\n\
            wlan0\t00000000\t0102A8C0\t0003\t0\t0\t600\t00000000\t0\t0\t0\n\
            eth1\t000200C0\t00000000\t0001\t0\t0\t0\t00FFFFFF\t0\t0\t0\n\
            eth0\t00000000\t010200C0\t0003\t0\t0\t100\t00000000\t0\t0\t0\n";
        assert_eq!(default_of_ipv4(table).as_deref(), Some("eth0"));
        assert_eq!(default_of_ipv4("Iface\nnonsense\n"), None);
        let zero = "0".repeat(32);
        let table = format!(
            "{zero} 00 {zero} 00 {zero} ffffffff 00000001 00000000 00200200 lo\n\
             {zero} 00 {zero} 00 fe800000000000000000000000000001 00000400 00000001 00000000 00450003 eth0\n\
             {zero} 60 {zero} 00 {zero} 00000001 00000001 00000000 00450003 eth9\n"
        );
        assert_eq!(default_of_ipv6(&table).as_deref(), Some("eth0"));
        assert_eq!(default_of_ipv6(""), None);
    }
}
