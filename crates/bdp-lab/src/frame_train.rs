//! Frames at given moments, carried in a guest by the emulator or by the kernel's own: which came out, and when. Nothing is judged here.
//!
//! The frames are IPv4 datagrams without a stack behind them. A thread sends each at its moment, another notes
//! when it came out. By a clock that stands still while anything runs, both are exact; it is read without asking
//! the kernel, which costs the machine half as much as the emulator's work on a frame.

use std::os::fd::OwnedFd;
use std::os::unix::net::UnixDatagram;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use bdp_model::link::LinkConfig;
use bdp_model::link::netem::Netem;
use bdp_sys::netlink::{DeviceSettings, Netlink};
use bdp_sys::poll::{Interest, Poll};
use bdp_sys::qdisc_managed::Parent;
use bdp_sys::still_clock::StillClock;
use bdp_sys::tun::{Framing, Tun, VirtioHeader};
use bdp_sys::{clock, namespace, process, socket, sysctl};
use serde::{Deserialize, Serialize};

use crate::agent::{addresses, quiet_sysctls, routing_sysctls, settings_of};
use crate::driver::{Driver, Pace};
pub use crate::kernel_queue::KernelQueue;
use crate::{LabError, Result, kernel_queue};

/// The smallest frame: IPv4 header, UDP header, its number.
pub const SMALLEST_FRAME: u32 = 32;
/// The longest frame, and the burst that a kernel's wire may send.
const LONGEST_FRAME: u32 = 1500;
const IP_BYTES: usize = 20;
const UDP: u8 = 17;
/// Congestion Experienced, of the ECN field.
const CE: u8 = 3;
const FIRST_PORT: u16 = 20_000;
/// Offset of a frame's number.
const NUMBER_AT: usize = 28;
/// Time from a train being ready to its first frame.
const HEADWAY_NS: u64 = 10_000_000;
/// Trains start at a multiple of this, so that a clock rounded to powers of two is rounded equally in every guest.
const BEGINS_AT_NS: u64 = 1 << 32;
/// Silence after which no more frames are expected.
const SILENCE_NS: u64 = 60_000_000_000;
/// Frames that may wait to be read from a router.
const TRANSMIT_QUEUE: u32 = 16_384;
/// Frames that may wait between the driver and our thread.
const WAITING: &str = "100000";

/// Frames, and their carrier.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct FrameTrain {
    /// The carrier.
    pub by: Carrier,
    /// Seed of the emulator's draws.
    pub seed: u64,
    /// Frames in order of their moments.
    pub frames: Vec<Frame>,
}

/// Carrier of frames.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Carrier {
    /// The forward direction of an emulated link.
    Link(Box<LinkConfig>),
    /// Routers of the guest's kernel, each with its own netem.
    Netem(Vec<Netem>),
    /// A router of the guest's kernel, which sends at a rate through an AQM queue.
    Queue(KernelQueue),
}

/// A frame.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
pub struct Frame {
    /// Sending time since the train's start.
    pub at_ns: u64,
    /// Length as an IP packet, at least [`SMALLEST_FRAME`].
    pub ip_bytes: u32,
    /// Flow of the frame: its UDP source port.
    #[serde(default)]
    pub flow: u16,
    /// Its ECN field.
    #[serde(default)]
    pub ecn: u8,
}

/// Result of a train. Times are since its start.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
pub struct CarriedTrain {
    /// When each frame was sent.
    pub sent_ns: Vec<u64>,
    /// Received frames in order of arrival: number and time.
    pub came: Vec<(u32, u64)>,
    /// Frames received with a Congestion Experienced mark.
    #[serde(default)]
    pub marked: Vec<u32>,
}

/// Carries a train. For the first process of a guest, whose clock is virtual.
pub fn carry(train: &FrameTrain) -> Result<CarriedTrain> {
    sysctl::write("net.unix.max_dgram_qlen", WAITING)?;
    let driver = Driver::start(Pace::Virtual)?;
    let (near, far, links) = match &train.by {
        Carrier::Link(config) => {
            let ((near, first), (far, second)) = (pair()?, pair()?);
            let link = driver.add(0, config, train.seed, [first, second], [None, None])?;
            (near, far, vec![link])
        }
        Carrier::Netem(hops) => {
            let mut links = Vec::new();
            let mut ends: Option<(Tun, Tun)> = None;
            for (hop, key) in hops.iter().zip(0..) {
                let (enter, leave) = router(|netlink| netlink.set_netem("leave", &settings_of(hop)))?;
                ends = Some(match ends {
                    None => (enter, leave),
                    Some((near, before)) => {
                        // Frames pass from one router to the next at once.
                        links.push(driver.add(
                            key,
                            &LinkConfig::default(),
                            0,
                            [before, enter],
                            [None, None],
                        )?);
                        (near, leave)
                    }
                });
            }
            let (near, far) = ends.ok_or_else(|| broken("no routers were named"))?;
            (near, far, links)
        }
        Carrier::Queue(queue) => {
            let (near, far) = router(|netlink| install(netlink, queue))?;
            (near, far, Vec::new())
        }
    };
    let begun_ns = (clock::monotonic_ns() + HEADWAY_NS).next_multiple_of(BEGINS_AT_NS);
    let sent_all = AtomicBool::new(false);
    let (sent, came) = std::thread::scope(|scope| {
        let start = |name: &str| std::thread::Builder::new().name(name.to_owned());
        let sink = start("bdp-sink").spawn_scoped(scope, || receive(&far, begun_ns, &sent_all))?;
        let source = start("bdp-source").spawn_scoped(scope, || {
            let sent = send(&near, &train.frames, begun_ns);
            sent_all.store(true, Ordering::Relaxed);
            sent
        })?;
        Ok::<_, std::io::Error>((source.join(), sink.join()))
    })
    .map_err(broken)?;
    for link in links {
        if let Some(fault) = link.finish()?.fault {
            return Err(broken(fault));
        }
    }
    let sent_ns = sent.map_err(|_| broken("the source panicked"))??;
    let came = came.map_err(|_| broken("the sink panicked"))??;
    Ok(CarriedTrain { sent_ns, ..came })
}

fn broken(cause: impl std::fmt::Display) -> LabError {
    LabError::Driver(format!("frames: {cause}"))
}

/// Two ends of a socket that preserves packet boundaries: ours, and the driver's in place of a device.
fn pair() -> Result<(Tun, Tun)> {
    let (ours, drivers) = UnixDatagram::pair().map_err(broken)?;
    let device = |end: UnixDatagram| -> Result<Tun> {
        end.set_nonblocking(true).map_err(broken)?;
        socket::enlarge_send_buffer(&end, 64 << 20)?;
        Ok(Tun::from_descriptor(OwnedFd::from(end), Framing::Segments))
    };
    Ok((device(ours)?, device(drivers)?))
}

/// Creates a router in its own namespace: the devices by which frames enter and leave it, the latter through what `install` sets up.
fn router(install: impl FnOnce(&mut Netlink) -> bdp_sys::Result<()> + Send) -> Result<(Tun, Tun)> {
    let make = move || -> Result<(Tun, Tun)> {
        namespace::enter_own_network()?;
        for (name, value) in routing_sysctls(true, false).into_iter().chain(quiet_sysctls(false)) {
            sysctl::write(name, value)?;
        }
        let mut netlink = Netlink::open()?;
        let mut device = |name: &str, link: u8, end: usize| -> Result<Tun> {
            let tun = Tun::create(name, Framing::Segments)?;
            let queue = DeviceSettings {
                mtu: Some(1500),
                transmit_queue: Some(TRANSMIT_QUEUE),
                gso_max_segments: Some(1),
            };
            netlink.bring_up(name, &queue)?;
            netlink.add_address(name, addresses(link, false)[end], 24)?;
            Ok(tun)
        };
        let (enter, leave) = (device("enter", 0, 1)?, device("leave", 1, 0)?);
        install(&mut netlink)?;
        Ok((enter, leave))
    };
    // The namespace is that of the thread, and stays with the devices.
    let made = std::thread::scope(|scope| scope.spawn(make).join());
    made.map_err(|_| broken("a router panicked"))?
}

/// Installs a queue and its wire on the device by which frames leave.
fn install(netlink: &mut Netlink, queue: &KernelQueue) -> bdp_sys::Result<()> {
    let bytes_per_second = queue.rate.as_bps() / 8;
    let options = kernel_queue::options(queue);
    if queue.queue.kind().shapes {
        return netlink.set_queue("leave", Parent::Root, &options);
    }
    netlink.set_rate("leave", bytes_per_second, queue.overhead_bytes, LONGEST_FRAME)?;
    netlink.set_queue("leave", Parent::OfRate, &options)
}

/// A frame without its number.
fn frame(Frame { ip_bytes, flow, ecn, .. }: Frame) -> Vec<u8> {
    let length = ip_bytes.clamp(SMALLEST_FRAME, u32::from(u16::MAX)) as u16;
    let mut data = vec![0; usize::from(length)];
    data[0] = 0x45;
    data[2..4].copy_from_slice(&length.to_be_bytes());
    data[1] = ecn;
    data[8] = 64;
    data[9] = UDP;
    data[20..22].copy_from_slice(&(FIRST_PORT + flow).to_be_bytes());
    data[22..24].copy_from_slice(&FIRST_PORT.to_be_bytes());
    data[24..26].copy_from_slice(&(length - IP_BYTES as u16).to_be_bytes());
    let octets = |address: std::net::IpAddr| match address {
        std::net::IpAddr::V4(v4) => v4.octets(),
        std::net::IpAddr::V6(_) => [0; 4],
    };
    data[12..16].copy_from_slice(&octets(addresses(0, false)[0]));
    data[16..20].copy_from_slice(&octets(addresses(1, false)[1]));
    let sum: u32 =
        data[..IP_BYTES].chunks_exact(2).map(|w| u32::from(u16::from_be_bytes([w[0], w[1]]))).sum();
    let folded = (sum & 0xffff) + (sum >> 16);
    data[10..12].copy_from_slice(&(!(folded as u16)).to_be_bytes());
    data
}

fn send(to: &Tun, frames: &[Frame], begun_ns: u64) -> Result<Vec<u64>> {
    process::sharpen_timers();
    let clock = StillClock::find();
    let poll = Poll::new()?;
    poll.add(to, 0, Interest::Write)?;
    let mut ready = Vec::new();
    let mut sent = Vec::new();
    for (one, number) in frames.iter().zip(0u32..) {
        let mut data = frame(*one);
        data[NUMBER_AT..NUMBER_AT + 4].copy_from_slice(&number.to_be_bytes());
        let due = begun_ns + one.at_ns;
        let mut now = clock.now_ns();
        while now < due {
            std::thread::sleep(Duration::from_nanos(due - now));
            now = clock.now_ns();
        }
        while !to.send(&data, VirtioHeader::default()).map_err(broken)? {
            poll.wait(&mut ready, None)?;
            now = clock.now_ns();
        }
        sent.push(now.saturating_sub(begun_ns));
    }
    Ok(sent)
}

fn receive(from: &Tun, begun_ns: u64, sent_all: &AtomicBool) -> Result<CarriedTrain> {
    let clock = StillClock::find();
    let poll = Poll::new()?;
    poll.add(from, 0, Interest::Read)?;
    let mut ready = Vec::new();
    let mut room = vec![0; 1 << 16];
    let mut carried = CarriedTrain::default();
    loop {
        poll.wait(&mut ready, Some(SILENCE_NS))?;
        if ready.is_empty() && sent_all.load(Ordering::Relaxed) {
            return Ok(carried);
        }
        let now = clock.now_ns().saturating_sub(begun_ns);
        while let Some((length, _)) = from.receive(&mut room).map_err(broken)? {
            let number = room[..length].get(NUMBER_AT..NUMBER_AT + 4).and_then(|n| n.try_into().ok());
            let Some(number) = number.map(u32::from_be_bytes) else { continue };
            carried.came.push((number, now));
            if room[1] & CE == CE {
                carried.marked.push(number);
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_frame_has_a_right_checksum() {
        for bytes in [32, 576, 1500] {
            let frame = frame(Frame { ip_bytes: bytes, ecn: 1, ..Frame::default() });
            assert_eq!(frame.len(), bytes as usize);
            let sum: u32 = frame[..20].chunks(2).map(|w| u32::from(w[0]) << 8 | u32::from(w[1])).sum();
            assert_eq!((sum & 0xffff) + (sum >> 16), 0xffff);
        }
    }
}
