//! Network devices as they are: which one has an address, how fast it is, what it dropped.

use std::ffi::{CStr, CString};
use std::net::{IpAddr, UdpSocket};
use std::os::fd::{AsRawFd, OwnedFd};

use crate::netlink::{DeviceCounters, Netlink};
use crate::{Result, SysError, check};

/// The device that has this address; `None` where none has.
pub fn with_address(address: IpAddr) -> Result<Option<String>> {
    let mut first: *mut libc::ifaddrs = std::ptr::null_mut();
    // SAFETY: the call stores a list, which is freed below.
    check(unsafe { libc::getifaddrs(&raw mut first) }, "list", "addresses")?;
    let mut found = None;
    let mut entry = first;
    while !entry.is_null() {
        // SAFETY: entries of the list are valid until it is freed, and so are the name and the address that they
        // point to; an address is as long as its family says.
        unsafe {
            if socket_address((*entry).ifa_addr) == Some(address) {
                found = Some(CStr::from_ptr((*entry).ifa_name).to_string_lossy().into_owned());
                break;
            }
            entry = (*entry).ifa_next;
        }
    }
    // SAFETY: the list came from getifaddrs and is not used any more.
    unsafe { libc::freeifaddrs(first) };
    // Labels of IPv4 addresses name the device before a colon.
    Ok(found.map(|name| name.split(':').next().unwrap_or_default().to_owned()))
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
/// Drivers whose speed is made up.
const VIRTUAL: [&str; 6] = ["veth", "tun", "bridge", "dummy", "vxlan", "netkit"];

/// Its speed in bit/s as its driver reports it; `None` where it does not, and for virtual devices, which report a figure
/// that nothing keeps.
pub fn speed_bps(device: &str) -> Option<u64> {
    // struct ethtool_drvinfo: cmd, then 32 bytes of driver name.
    let driver = ethtool::<196>(device, GET_DRIVER)?;
    let name = driver.get(4..36)?.split(|&b| b == 0).next()?;
    if VIRTUAL.iter().any(|v| v.as_bytes() == name) {
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

/// Whether both ends may send at the same time, as its driver reports it; `None` where it does not.
pub fn is_full_duplex(device: &str) -> Option<bool> {
    // struct ethtool_cmd: duplex at 14, DUPLEX_HALF 0, DUPLEX_FULL 1, DUPLEX_UNKNOWN 0xff. A virtual device has none.
    speed_bps(device)?;
    match ethtool::<44>(device, GET_SETTINGS)?[14] {
        0 => Some(false),
        1 => Some(true),
        _ => None,
    }
}

/// One ethtool request: the command's structure, `N` bytes of it, as the driver fills it.
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

/// Its MTU.
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

/// What its link layer is, as `ARPHRD_*` of linux/if_arp.h, asked of any socket.
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

/// Its queueing discipline, as `fq`; `None` where it is not reported.
pub fn queueing_discipline(device: &str) -> Option<String> {
    Netlink::open().ok()?.queueing_discipline(device).ok().flatten()
}

/// What it counted since it is there.
pub fn counters(device: &str) -> Result<DeviceCounters> {
    Netlink::open()?.counters(device)
}

/// The machine's name.
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
    }
}
