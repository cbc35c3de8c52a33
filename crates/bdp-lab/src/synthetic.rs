//! Frames without a stack: the emulator's own capacity, when TCP takes no processor time.
//!
//! A thread offers super-packets to a link at an even rate and counts those that arrive. The link, its driver,
//! its clock and the system calls are those of any case; in place of the two TUN devices there are Unix sockets,
//! which copy a packet as a device does and deliver it to nobody.

use std::os::fd::OwnedFd;
use std::os::unix::net::UnixDatagram;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use bdp_link::{End, Offload, Packet, PartialChecksum, Segmentation, Transport};
use bdp_model::link::LinkConfig;
use bdp_model::record::{DirectionFidelity, Fidelity};
use bdp_model::statistics::histogram::Histogram;
use bdp_model::units::{Nanos, Rate};
use bdp_sys::poll::{Interest, Poll};
use bdp_sys::process::{self, HostCpu};
use bdp_sys::tun::{Framing, Tun, VirtioHeader};
use bdp_sys::{clock, socket};

use crate::driver::{Driver, Pace};
use crate::fidelity::{self, Bounds, FlowSeen, Loop, Observation};
use crate::offload;
use crate::testbed::direction;
use crate::{LabError, Result};

/// Payload bytes of a segment: those of Ethernet with TCP timestamps.
const SEGMENT: u16 = 1448;
/// Segments of a super-packet, as many as 64 KiB hold.
const SEGMENTS: usize = 45;
const IP_BYTES: usize = 20;
const TCP_BYTES: usize = 32;
/// Socket buffer between driver and generator: some milliseconds, if the system allows it.
const BUFFER: usize = 4 << 20;

/// Maximum lateness of offering a frame.
const LATEST_NS: u64 = 500_000;

/// Load offered to the link.
#[derive(Debug, Clone, Copy)]
pub struct Offered {
    /// Payload of the segments, per second.
    pub rate: Rate,
    /// Duration.
    pub time: Duration,
}

/// Result of the load.
#[derive(Debug)]
pub struct Carried {
    /// Payload rate, from the first packet received to the last.
    pub bps: f64,
    /// Figures of its direction of the link.
    pub direction: DirectionFidelity,
    /// Fidelity, judged like that of a case.
    pub fidelity: Fidelity,
}

/// Offers super-packets to the forward direction of a link and waits until they are through.
pub fn carry(config: &LinkConfig, offered: Offered, seed: u64) -> Result<Carried> {
    let driver = Driver::start(Pace::Spin)?;
    let (near, first) = pair()?;
    let (far, second) = pair()?;
    let before = HostCpu::read();
    let link = driver.add(0, config, seed, [first, second], [None, None])?;
    let over = Arc::new(AtomicBool::new(false));
    let threads = std::thread::scope(|scope| {
        let start = |name: &str| std::thread::Builder::new().name(name.to_owned());
        let cpus = driver.host_cpus();
        let stop = Arc::clone(&over);
        let sink = start("bdp-sink").spawn_scoped(scope, move || {
            keep_to(cpus);
            receive(&far, &stop)
        })?;
        let source = start("bdp-source").spawn_scoped(scope, move || {
            keep_to(cpus);
            send(&near, offered)
        })?;
        let sent = source.join();
        // What is in the link arrives within its delay; a queue that remains then is counted as such.
        std::thread::sleep(Duration::from_nanos(config.forward.delay.as_ns()) + Duration::from_millis(50));
        over.store(true, Ordering::Relaxed);
        Ok::<_, std::io::Error>((sent, sink.join()))
    });
    let steal = HostCpu::read().since(before);
    let mut driven = link.finish()?;
    let (sent, received) = threads.map_err(broken)?;
    sent.map_err(|_| broken("the source panicked"))??;
    let received = received.map_err(|_| broken("the sink panicked"))??;
    let direction = direction("near->far".to_owned(), &config.forward, &mut driven, 0, End::A);
    let mut lateness = Histogram::new();
    lateness.merge(&driven.meters[0].lateness);
    let rtt = config.forward.delay + config.reverse.delay;
    let seen = Observation {
        lateness,
        directions: vec![direction.clone()],
        // There is no stack that a probe could reach.
        loops: vec![Loop {
            ends: "near and far".to_owned(),
            links: 1,
            rtt_configured: rtt,
            rtt_least: rtt,
            ..Default::default()
        }],
        flows: vec![FlowSeen { name: "near->far".to_owned(), way: vec![0], ..Default::default() }],
        cpus: process::online_cpus(),
        host_cpu: steal,
        faults: driven.fault.into_iter().collect(),
        ..Default::default()
    };
    Ok(Carried { bps: received.bps(), direction, fidelity: fidelity::judge(seen, &Bounds::default()) })
}

fn broken(cause: impl std::fmt::Display) -> LabError {
    LabError::Driver(format!("synthetic frames: {cause}"))
}

fn keep_to(cpus: Option<&[usize]>) {
    if let Some(cpus) = cpus {
        // Without it the fidelity shows the effect of sharing.
        let _ = process::pin(0, cpus);
    }
}

/// Two ends of a socket that preserves packet boundaries: ours, and the driver's in place of a device.
fn pair() -> Result<(Tun, Tun)> {
    let made = UnixDatagram::pair().and_then(|(a, b)| {
        a.set_nonblocking(true)?;
        b.set_nonblocking(true)?;
        Ok((a, b))
    });
    let (ours, drivers) = made.map_err(broken)?;
    let device = |end: UnixDatagram| -> Result<Tun> {
        socket::enlarge_send_buffer(&end, BUFFER)?;
        Ok(Tun::from_descriptor(OwnedFd::from(end), Framing::SuperPackets))
    };
    Ok((device(ours)?, device(drivers)?))
}

/// A super-packet of TCP over IPv4, its checksum left to the device.
fn super_packet() -> (Vec<u8>, VirtioHeader) {
    let length = IP_BYTES + TCP_BYTES + SEGMENTS * usize::from(SEGMENT);
    let mut data = vec![0; length];
    data[0] = 0x45;
    data[2..4].copy_from_slice(&u16::try_from(length).unwrap_or(u16::MAX).to_be_bytes());
    data[8] = 64;
    data[9] = 6;
    // Addresses of the range for benchmarks (RFC 2544).
    data[12..16].copy_from_slice(&[198, 18, 0, 1]);
    data[16..20].copy_from_slice(&[198, 18, 0, 2]);
    data[IP_BYTES + 12] = (TCP_BYTES as u8 / 4) << 4;
    let packet = Packet {
        offload: Offload {
            segmentation: Some(Segmentation { transport: Transport::Tcp, size: SEGMENT }),
            checksum: Some(PartialChecksum { start: IP_BYTES as u16, offset: 16 }),
        },
        data,
    };
    let header = offload::encode(&packet);
    (packet.data, header)
}

/// Offers a super-packet whenever the next is due. Packets late by more than [`LATEST_NS`] are skipped: sent in a
/// burst they would fill the queue of a link with a rate.
fn send(to: &Tun, offered: Offered) -> Result<()> {
    process::sharpen_timers();
    let (packet, header) = super_packet();
    let payload_bits = 8e9 * f64::from(SEGMENT) * SEGMENTS as f64;
    let interval = payload_bits / offered.rate.as_bps().max(1) as f64;
    let poll = Poll::new()?;
    poll.add(to, 0, Interest::Write)?;
    let mut ready = Vec::new();
    let start = clock::monotonic_ns();
    let mut sent = 0u64;
    let mut missed_ns = 0;
    loop {
        let elapsed = clock::monotonic_ns().saturating_sub(start);
        if u128::from(elapsed) >= offered.time.as_nanos() {
            return Ok(());
        }
        let due = (sent as f64 * interval) as u64 + missed_ns;
        missed_ns += elapsed.saturating_sub(due + LATEST_NS);
        if elapsed < due {
            std::thread::sleep(Duration::from_nanos(due - elapsed));
        } else if to.send(&packet, header).map_err(broken)? {
            sent += 1;
        } else {
            poll.wait(&mut ready, Some(1_000_000))?;
        }
    }
}

#[derive(Debug, Default)]
struct Received {
    payload_bytes: u64,
    first: Option<u64>,
    last: u64,
}

impl Received {
    fn bps(&self) -> f64 {
        match self.first {
            Some(first) if self.last > first => self.payload_bytes as f64 * 8e9 / (self.last - first) as f64,
            _ => 0.0,
        }
    }
}

fn receive(from: &Tun, over: &AtomicBool) -> Result<Received> {
    let poll = Poll::new()?;
    poll.add(from, 0, Interest::Read)?;
    let mut ready = Vec::new();
    let mut room = vec![0; 1 << 16];
    let mut received = Received::default();
    while !over.load(Ordering::Relaxed) {
        poll.wait(&mut ready, Some(Nanos::millis(10).as_ns()))?;
        while let Some((length, _)) = from.receive(&mut room).map_err(broken)? {
            received.last = clock::monotonic_ns();
            // The first one starts the clock and is not counted.
            match received.first {
                None => received.first = Some(received.last),
                Some(_) => received.payload_bytes += length.saturating_sub(IP_BYTES + TCP_BYTES) as u64,
            }
        }
    }
    Ok(received)
}

#[cfg(test)]
mod tests {
    use bdp_link::Segments;
    use bdp_model::link::{Delivery, DirectionConfig, Loss, QueueLimit};
    use bdp_model::units::Probability;

    use super::*;

    #[test]
    fn a_synthetic_frame_is_a_super_packet_of_whole_segments() {
        let (data, header) = super_packet();
        let packet = Packet { data, offload: offload::decode(header) };
        assert_eq!(Segments::of(&packet).count() as usize, SEGMENTS);
        assert_eq!(header.headers_bytes, 52);
        let last = offload::wire_segments(&packet).last().unwrap();
        assert_eq!(last.len(), 1500);
    }

    /// Losses here are the model's, however busy the machine: the rate is a hundredth of its capacity.
    #[test]
    fn frames_come_out_cut_and_counted() {
        let config = LinkConfig {
            forward: DirectionConfig {
                rate: Some(Rate::mbps(1_000)),
                delay: Nanos::millis(5),
                loss: Loss::Independent(Probability::new(0.01).unwrap()),
                limit: QueueLimit::Unlimited,
                ..Default::default()
            },
            delivery: Delivery::Super,
            ..Default::default()
        };
        let offered = Offered { rate: Rate::mbps(200), time: Duration::from_millis(400) };
        let carried = carry(&config, offered, 1).unwrap();
        let direction = carried.direction;
        assert!(direction.conserved, "{direction:?}");
        assert!(direction.packets_in >= 45 && direction.packets_in.is_multiple_of(45), "{direction:?}");
        assert_eq!(direction.dropped["queue"], 0);
        assert!(carried.bps > 0.0 && carried.bps < 220e6, "{}", carried.bps);
    }
}
