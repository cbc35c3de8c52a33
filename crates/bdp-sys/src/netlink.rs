//! Devices and addresses of the network namespace that the process is in (rtnetlink).

use std::io;
use std::net::IpAddr;
use std::os::fd::OwnedFd;

use rustix::io::retry_on_intr;
use rustix::net::netdevice::name_to_index;
use rustix::net::{self, AddressFamily, RecvFlags, SendFlags, SocketFlags, SocketType, socket_with};

use crate::{Result, SysError};

/// `IFLA_*` numbers of linux/if_link.h.
mod attribute {
    pub(super) const MTU: u16 = 4;
    pub(super) const TXQLEN: u16 = 13;
    pub(super) const GSO_MAX_SEGS: u16 = 40;
    pub(super) const STATS64: u16 = 23;
    pub(super) const NUM_TX_QUEUES: u16 = 31;
    pub(super) const NUM_RX_QUEUES: u16 = 32;
    /// `IFA_*` of linux/if_addr.h.
    pub(super) const ADDRESS: u16 = 1;
    pub(super) const LOCAL: u16 = 2;
    pub(super) const ADDRESS_FLAGS: u16 = 8;
    /// `RTA_*` of linux/rtnetlink.h.
    pub(super) const DESTINATION: u16 = 1;
    pub(super) const OUT_DEVICE: u16 = 4;
    pub(super) const GATEWAY: u16 = 5;
    pub(super) const METRICS: u16 = 8;
    /// `RTAX_*` of linux/rtnetlink.h.
    pub(super) const INITIAL_WINDOW: u16 = 11;
}

/// Settings of a device.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct DeviceSettings {
    /// Largest IP packet.
    pub mtu: Option<u32>,
    /// Packets that may wait between the stack and the program that reads the device.
    pub transmit_queue: Option<u32>,
    /// Wire segments in one packet that TCP builds: 1 makes every packet a segment.
    pub gso_max_segments: Option<u32>,
}

/// A route to one address.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct HostRoute<'a> {
    /// Destination address.
    pub to: IpAddr,
    /// Next hop; `None` if `to` is a neighbour.
    pub via: Option<IpAddr>,
    /// Outgoing device.
    pub device: &'a str,
    /// Initial congestion window of TCP connections over it, segments; `None` is the kernel's default.
    pub initial_window: Option<u32>,
}

/// Queues of a device; `None` for each that it does not report.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct DeviceQueueCounts {
    /// Packets that may wait in queueing disciplines without a limit of their own.
    pub length: Option<u32>,
    /// Transmit queues.
    pub tx: Option<u32>,
    /// Receive queues.
    pub rx: Option<u32>,
}

/// Counters of a device.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct DeviceCounters {
    /// Packets received by the stack.
    pub rx_packets: u64,
    /// Packets sent by the stack.
    pub tx_packets: u64,
    /// Received packets that the device dropped.
    pub rx_dropped: u64,
    /// Sent packets that the device dropped.
    pub tx_dropped: u64,
    /// Bytes received by the stack, including link headers.
    pub rx_bytes: u64,
    /// Bytes sent by the stack, including link headers.
    pub tx_bytes: u64,
    /// Received packets lost because the device had no buffer left: the host was too slow.
    pub rx_missed: u64,
    /// Received packets lost to a full device FIFO.
    pub rx_fifo: u64,
    /// Sent packets lost in the device's FIFO.
    pub tx_fifo: u64,
}

/// An rtnetlink socket.
#[derive(Debug)]
pub struct Netlink {
    socket: OwnedFd,
    sequence: u32,
}

impl Netlink {
    /// Opens one in the current namespace.
    pub fn open() -> Result<Self> {
        let socket = socket_with(AddressFamily::NETLINK, SocketType::RAW, SocketFlags::CLOEXEC, None);
        let socket = socket.map_err(|e| SysError::new("open", "netlink socket", e.into()))?;
        Ok(Self { socket, sequence: 0 })
    }

    /// Turns it into a descriptor that another process can use, for the namespace in which it was opened.
    pub fn into_descriptor(self) -> OwnedFd {
        self.socket
    }

    /// Uses a descriptor that another process opened.
    pub fn from_descriptor(socket: OwnedFd) -> Self {
        Self { socket, sequence: 0 }
    }

    /// Sets MTU, queue and segment limit of a device, and brings it up.
    pub fn bring_up(&mut self, device: &str, settings: &DeviceSettings) -> Result<()> {
        let mut body = interface_message(self.index(device)?, libc::IFF_UP as u32);
        for (kind, value) in [
            (attribute::MTU, settings.mtu),
            (attribute::TXQLEN, settings.transmit_queue),
            (attribute::GSO_MAX_SEGS, settings.gso_max_segments),
        ] {
            if let Some(value) = value {
                push_attribute(&mut body, kind, &value.to_ne_bytes());
            }
        }
        self.request(libc::RTM_NEWLINK, 0, &body)
            .map(drop)
            .map_err(|e| SysError::new("bring up device", device, e))
    }

    /// Adds an address to a device; IPv6 without duplicate address detection, so that it is usable at once.
    pub fn add_address(&mut self, device: &str, address: IpAddr, prefix: u8) -> Result<()> {
        let family = if address.is_ipv4() { libc::AF_INET } else { libc::AF_INET6 };
        let mut body = vec![family as u8, prefix, 0, 0];
        body.extend_from_slice(&self.index(device)?.to_ne_bytes());
        let bytes = octets(address);
        push_attribute(&mut body, attribute::LOCAL, &bytes);
        push_attribute(&mut body, attribute::ADDRESS, &bytes);
        if address.is_ipv6() {
            push_attribute(&mut body, attribute::ADDRESS_FLAGS, &libc::IFA_F_NODAD.to_ne_bytes());
        }
        let flags = (libc::NLM_F_CREATE | libc::NLM_F_EXCL) as u16;
        self.request(libc::RTM_NEWADDR, flags, &body)
            .map(drop)
            .map_err(|e| SysError::new("add address", format!("{address}/{prefix} to {device}"), e))
    }

    /// Adds a route.
    pub fn add_route(&mut self, route: &HostRoute<'_>) -> Result<()> {
        self.new_route(route, libc::NLM_F_EXCL)
    }

    /// Adds a route, replacing any to that address.
    pub fn replace_route(&mut self, route: &HostRoute<'_>) -> Result<()> {
        self.new_route(route, libc::NLM_F_REPLACE)
    }

    /// Removes the route to an address.
    pub fn remove_route(&mut self, to: IpAddr) -> Result<()> {
        let (family, bits) = if to.is_ipv4() { (libc::AF_INET, 32) } else { (libc::AF_INET6, 128) };
        // As above; unspecified scope and protocol match any.
        let mut body =
            vec![family as u8, bits, 0, 0, libc::RT_TABLE_MAIN, 0, libc::RT_SCOPE_NOWHERE, libc::RTN_UNICAST];
        body.extend_from_slice(&0u32.to_ne_bytes());
        push_attribute(&mut body, attribute::DESTINATION, &octets(to));
        let removed = self.request(libc::RTM_DELROUTE, 0, &body).map(drop);
        removed.map_err(|e| SysError::new("remove route", format!("to {to}"), e))
    }

    fn new_route(&mut self, route: &HostRoute<'_>, how: i32) -> Result<()> {
        let HostRoute { to, via, device, initial_window } = *route;
        let (family, bits) = if to.is_ipv4() { (libc::AF_INET, 32) } else { (libc::AF_INET6, 128) };
        // rtmsg: family, lengths of destination and source prefix, tos, table, protocol, scope, type, flags.
        let mut body = vec![
            family as u8,
            bits,
            0,
            0,
            libc::RT_TABLE_MAIN,
            libc::RTPROT_STATIC,
            if via.is_some() { libc::RT_SCOPE_UNIVERSE } else { libc::RT_SCOPE_LINK },
            libc::RTN_UNICAST,
        ];
        body.extend_from_slice(&0u32.to_ne_bytes());
        push_attribute(&mut body, attribute::DESTINATION, &octets(to));
        if let Some(via) = via {
            push_attribute(&mut body, attribute::GATEWAY, &octets(via));
        }
        if let Some(segments) = initial_window {
            let mut metrics = Vec::new();
            push_attribute(&mut metrics, attribute::INITIAL_WINDOW, &segments.to_ne_bytes());
            push_attribute(&mut body, attribute::METRICS, &metrics);
        }
        push_attribute(&mut body, attribute::OUT_DEVICE, &self.index(device)?.to_ne_bytes());
        let flags = (libc::NLM_F_CREATE | how) as u16;
        self.request(libc::RTM_NEWROUTE, flags, &body).map(drop).map_err(|e| {
            let via = via.map_or_else(String::new, |via| format!(" via {via}"));
            SysError::new("add route", format!("to {to}{via} on {device}"), e)
        })
    }

    /// Reads the counters of a device.
    pub fn counters(&mut self, device: &str) -> Result<DeviceCounters> {
        let failed = |e| SysError::new("read counters of", device, e);
        let answer = self
            .request(libc::RTM_GETLINK, 0, &interface_message(self.index(device)?, 0))
            .map_err(failed)?
            .ok_or_else(|| failed(io::ErrorKind::UnexpectedEof.into()))?;
        // After the 16 bytes of ifinfomsg come the attributes.
        let stats = find_attribute(answer.get(16..).unwrap_or(&[]), attribute::STATS64)
            .ok_or_else(|| failed(io::Error::other("the kernel sent no statistics")))?;
        let long = |i: usize| {
            stats.get(i * 8..i * 8 + 8).and_then(|b| b.try_into().ok()).map_or(0, u64::from_ne_bytes)
        };
        Ok(DeviceCounters {
            rx_packets: long(0),
            tx_packets: long(1),
            rx_dropped: long(6),
            tx_dropped: long(7),
            // struct rtnl_link_stats64 of linux/if_link.h.
            rx_bytes: long(2),
            tx_bytes: long(3),
            rx_fifo: long(14),
            rx_missed: long(15),
            tx_fifo: long(18),
        })
    }

    /// Reads the number of a device's queues, and their length.
    pub fn queues(&mut self, device: &str) -> Result<DeviceQueueCounts> {
        let failed = |e| SysError::new("read the queues of", device, e);
        let answer = self
            .request(libc::RTM_GETLINK, 0, &interface_message(self.index(device)?, 0))
            .map_err(failed)?
            .ok_or_else(|| failed(io::ErrorKind::UnexpectedEof.into()))?;
        let number = |kind| {
            let bytes = find_attribute(answer.get(16..)?, kind)?;
            bytes.try_into().ok().map(u32::from_ne_bytes)
        };
        Ok(DeviceQueueCounts {
            length: number(attribute::TXQLEN),
            tx: number(attribute::NUM_TX_QUEUES),
            rx: number(attribute::NUM_RX_QUEUES),
        })
    }

    /// The queueing discipline of a device; for one with many queues that of the queues, or all if they differ. `None` if it reports none.
    pub fn queueing_discipline(&mut self, device: &str) -> Result<Option<String>> {
        let failed = |e| SysError::new("read the queueing discipline of", device, e);
        let index = self.index(device)?;
        let mut disciplines = Vec::new();
        self.dump(RTM_GETQDISC, &[0; TCMSG_BYTES], |body| disciplines.extend(Discipline::read(body, index)))
            .map_err(failed)?;
        Ok(root_kind(&disciplines))
    }

    /// Sends one request and reads the answers up to its acknowledgement; returns the body of the one before it.
    pub(crate) fn request(&mut self, kind: u16, flags: u16, body: &[u8]) -> io::Result<Option<Vec<u8>>> {
        let mut answer = None;
        self.send(kind, flags | (libc::NLM_F_REQUEST | libc::NLM_F_ACK) as u16, body)?;
        self.read(|payload| answer = Some(payload.to_vec()))?;
        Ok(answer)
    }

    pub(crate) fn index(&self, device: &str) -> Result<u32> {
        name_to_index(&self.socket, device).map_err(|e| SysError::new("find device", device, e.into()))
    }

    /// Requests everything of a kind, and passes on the body of each answer.
    pub(crate) fn dump(&mut self, kind: u16, body: &[u8], each: impl FnMut(&[u8])) -> io::Result<()> {
        self.send(kind, (libc::NLM_F_REQUEST | libc::NLM_F_DUMP) as u16, body)?;
        self.read(each)
    }

    fn send(&mut self, kind: u16, flags: u16, body: &[u8]) -> io::Result<()> {
        self.sequence += 1;
        let mut message = Vec::with_capacity(16 + body.len());
        message.extend_from_slice(&(16 + body.len() as u32).to_ne_bytes());
        message.extend_from_slice(&kind.to_ne_bytes());
        message.extend_from_slice(&flags.to_ne_bytes());
        message.extend_from_slice(&self.sequence.to_ne_bytes());
        message.extend_from_slice(&0u32.to_ne_bytes());
        message.extend_from_slice(body);
        net::send(&self.socket, &message, SendFlags::empty())?;
        Ok(())
    }

    /// Reads answers up to the acknowledgement, or to the end of a dump.
    fn read(&self, mut each: impl FnMut(&[u8])) -> io::Result<()> {
        let mut room = vec![0u8; 32 * 1024];
        loop {
            let (got, _) =
                retry_on_intr(|| net::recv(&self.socket, room.as_mut_slice(), RecvFlags::empty()))?;
            let mut rest = &room[..got];
            while let Some((length, kind)) = header(rest) {
                let payload = &rest[16..length];
                if kind == libc::NLMSG_ERROR as u16 {
                    let code = payload.get(..4).and_then(|b| b.try_into().ok()).map_or(0, i32::from_ne_bytes);
                    return if code == 0 { Ok(()) } else { Err(io::Error::from_raw_os_error(-code)) };
                }
                if kind == libc::NLMSG_DONE as u16 {
                    return Ok(());
                }
                each(payload);
                rest = rest.get(length.next_multiple_of(4)..).unwrap_or(&[]);
            }
        }
    }
}

/// `RTM_GETQDISC` of linux/rtnetlink.h.
const RTM_GETQDISC: u16 = 38;
/// Bytes of its `struct tcmsg`.
pub(crate) const TCMSG_BYTES: usize = 20;
/// `TC_H_ROOT` of linux/pkt_sched.h.
pub(crate) const ROOT: u32 = u32::MAX;
/// `TCA_KIND`.
pub(crate) const KIND: u16 = 1;
/// Multi-queue disciplines, which only hold those of a device's queues.
const OF_MANY_QUEUES: [&str; 2] = ["mq", "mqprio"];

/// One queueing discipline of a device.
#[derive(Debug, Clone, PartialEq, Eq)]
struct Discipline {
    handle: u32,
    parent: u32,
    kind: String,
}

impl Discipline {
    /// Parses the body of an answer, if it belongs to this device.
    fn read(body: &[u8], device: u32) -> Option<Self> {
        let word = |at: usize| body.get(at..at + 4)?.try_into().ok().map(u32::from_ne_bytes);
        if word(4)? != device {
            return None;
        }
        let kind = find_attribute(body.get(TCMSG_BYTES..)?, KIND)?;
        let kind = kind.split(|&b| b == 0).next()?;
        Some(Self { handle: word(8)?, parent: word(12)?, kind: String::from_utf8_lossy(kind).into_owned() })
    }
}

fn root_kind(disciplines: &[Discipline]) -> Option<String> {
    let root = disciplines.iter().find(|d| d.parent == ROOT)?;
    if !OF_MANY_QUEUES.contains(&root.kind.as_str()) {
        return Some(root.kind.clone());
    }
    // The upper half of a handle names the discipline, the lower its classes.
    let of_root = |d: &&Discipline| d.parent != ROOT && d.parent >> 16 == root.handle >> 16;
    let mut kinds: Vec<&str> = disciplines.iter().filter(of_root).map(|d| d.kind.as_str()).collect();
    kinds.sort_unstable();
    kinds.dedup();
    Some(if kinds.is_empty() { root.kind.clone() } else { kinds.join("/") })
}

/// Length and type of the netlink message that `bytes` begin with, if it is complete.
fn header(bytes: &[u8]) -> Option<(usize, u16)> {
    let length = u32::from_ne_bytes(bytes.get(..4)?.try_into().ok()?) as usize;
    let kind = u16::from_ne_bytes(bytes.get(4..6)?.try_into().ok()?);
    (16..=bytes.len()).contains(&length).then_some((length, kind))
}

fn interface_message(index: u32, up: u32) -> Vec<u8> {
    let mut body = vec![0u8; 4];
    body.extend_from_slice(&index.to_ne_bytes());
    body.extend_from_slice(&up.to_ne_bytes());
    body.extend_from_slice(&up.to_ne_bytes());
    body
}

pub(crate) fn octets(address: IpAddr) -> Vec<u8> {
    match address {
        IpAddr::V4(a) => a.octets().to_vec(),
        IpAddr::V6(a) => a.octets().to_vec(),
    }
}

pub(crate) fn push_attribute(body: &mut Vec<u8>, kind: u16, value: &[u8]) {
    body.extend_from_slice(&(4 + value.len() as u16).to_ne_bytes());
    body.extend_from_slice(&kind.to_ne_bytes());
    body.extend_from_slice(value);
    body.resize(body.len().next_multiple_of(4), 0);
}

/// The attributes of a message, each with its type and its content, which is `None` if cut short; ends at the first invalid one.
pub(crate) fn attributes(mut bytes: &[u8]) -> impl Iterator<Item = (u16, Option<&[u8]>)> {
    std::iter::from_fn(move || {
        let length = usize::from(u16::from_ne_bytes(bytes.get(..2)?.try_into().ok()?));
        let kind = u16::from_ne_bytes(bytes.get(2..4)?.try_into().ok()?);
        if length < 4 {
            return None;
        }
        let content = bytes.get(4..length);
        bytes = bytes.get(length.next_multiple_of(4)..).unwrap_or(&[]);
        Some((kind, content))
    })
}

/// Mask of an attribute's type without the encoding flags.
pub(crate) const TYPE_MASK: u16 = 0x3fff;

pub(crate) fn find_attribute(bytes: &[u8], wanted: u16) -> Option<&[u8]> {
    attributes(bytes).find(|(kind, _)| kind & TYPE_MASK == wanted)?.1
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_loopback_device_has_counters() {
        let counters = Netlink::open().unwrap().counters("lo").unwrap();
        assert_eq!(counters.rx_packets, counters.tx_packets);
        assert_eq!(counters.rx_bytes, counters.tx_bytes);
        assert!(Netlink::open().unwrap().counters("no-such-dev").is_err());
    }

    #[test]
    fn the_loopback_device_tells_its_queueing_discipline() {
        let of = |device| Netlink::open().unwrap().queueing_discipline(device);
        let kind = of("lo").unwrap();
        assert!(kind.is_none_or(|kind| !kind.is_empty() && kind.is_ascii()));
        assert!(of("no-such-dev").is_err());
    }

    #[test]
    fn of_many_queues_theirs_is_told() {
        let discipline = |handle, parent, kind: &str| Discipline { handle, parent, kind: kind.to_owned() };
        let ingress = discipline(0xffff_0000, 0xffff_fff1, "clsact");
        assert_eq!(root_kind(std::slice::from_ref(&ingress)), None);
        assert_eq!(root_kind(&[ingress.clone(), discipline(0x10000, ROOT, "fq")]).as_deref(), Some("fq"));
        let queues = [discipline(0, ROOT, "mq"), discipline(0, 1, "fq"), discipline(0, 2, "fq"), ingress];
        assert_eq!(root_kind(&queues).as_deref(), Some("fq"));
        let unlike = [
            discipline(0x80_0000, ROOT, "mq"),
            discipline(0, 0x80_0001, "fq"),
            discipline(1, 0x80_0002, "tbf"),
        ];
        assert_eq!(root_kind(&unlike).as_deref(), Some("fq/tbf"));
        assert_eq!(root_kind(&unlike[..1]).as_deref(), Some("mq"));
        assert_eq!(Discipline::read(&[0; 19], 0), None);
    }

    #[test]
    fn attributes_are_found_behind_others_and_never_past_the_end() {
        let mut body = Vec::new();
        push_attribute(&mut body, 1, &[9; 5]);
        push_attribute(&mut body, 2, &[7; 4]);
        assert_eq!(find_attribute(&body, 2), Some(&[7u8; 4][..]));
        assert_eq!(find_attribute(&body, 3), None);
        for cut in 0..body.len() {
            let _ = find_attribute(&body[..cut], 2);
        }
    }
}
