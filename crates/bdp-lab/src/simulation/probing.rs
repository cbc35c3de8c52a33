//! Probes between hosts that run in steps: sent and answered beside their stacks, so that a round trip is the links' alone.

use std::net::IpAddr;

use bdp_model::link::checksum;
use bdp_model::probes::flight::Schedule;
use bdp_stack::Agenda;
use bdp_wire::control::{ProbeSample, Probed};
use bdp_wire::probe::{EchoCount, PROBE_BYTES, Probe};

/// First port of the probes of one pair of hosts; the others follow.
const FIRST_PORT: u16 = 1_024;
/// Port where they are answered (echo, RFC 862).
const ECHO_PORT: u16 = 7;
const UDP: u8 = 17;
const UDP_HEADER_BYTES: usize = 8;

/// All probes of a case.
#[derive(Debug, Default)]
pub(super) struct Probing {
    flows: Vec<ProbeFlow>,
    due: Agenda,
}

#[derive(Debug)]
struct ProbeFlow {
    host: usize,
    /// Own address and the other's.
    route: (IpAddr, IpAddr),
    schedule: Schedule,
    probes: Vec<ProbeSample>,
    /// Probes that reached the other host.
    echoed: EchoCount,
}

impl ProbeFlow {
    /// When the next one is sent.
    fn next(&self) -> Option<u64> {
        let next = self.probes.len() as u64;
        self.schedule.due(next, next, 0)
    }
}

impl Probing {
    pub(super) fn add(&mut self, host: usize, route: (IpAddr, IpAddr), schedule: Schedule) -> usize {
        self.flows.push(ProbeFlow {
            host,
            route,
            schedule,
            probes: Vec::new(),
            echoed: EchoCount::default(),
        });
        let flow = self.flows.len() - 1;
        self.due.set(flow, self.flows[flow].next());
        flow
    }

    pub(super) fn stop(&mut self, probe: usize) {
        self.flows[probe].schedule.end_ns = 0;
        self.due.set(probe, None);
    }

    /// When the next one is sent.
    pub(super) fn next(&self) -> Option<u64> {
        self.due.earliest()
    }

    /// Probes to send now, each with its host.
    pub(super) fn due(&mut self, now: u64) -> Vec<(usize, Vec<u8>)> {
        let mut packets = Vec::new();
        let mut first = 0;
        while let Some(i) = self.due.due(now, first) {
            let flow = &mut self.flows[i];
            while let Some(due_ns) = flow.next().filter(|&due| due <= now) {
                let probe = Probe { number: flow.probes.len() as u64, sent_at_ns: now };
                packets.push((
                    flow.host,
                    datagram(flow.route, (FIRST_PORT + i as u16, ECHO_PORT), probe.encode()),
                ));
                flow.probes.push(ProbeSample::sent(due_ns, now));
            }
            self.due.set(i, flow.next());
            first = i + 1;
        }
        packets
    }

    /// Takes a packet that reached a host, if it is a probe; returns the answer to send, empty if it was an answer itself.
    pub(super) fn arrived(&mut self, packet: &[u8], now: u64) -> Option<Vec<u8>> {
        let probe = Probe::of_packet(packet)?;
        let (from, to) = addresses(packet)?;
        let header = packet.len().checked_sub(UDP_HEADER_BYTES + PROBE_BYTES)?;
        let port = |at: usize| u16::from_be_bytes([packet[header + at], packet[header + at + 1]]);
        let ports = (port(0), port(2));
        let mut payload: [u8; PROBE_BYTES] = *packet.last_chunk()?;
        if ports.1 == ECHO_PORT {
            let flow = self.flows.get_mut(usize::from(ports.0.checked_sub(FIRST_PORT)?))?;
            Probe::note_arrival(&mut payload, now, flow.echoed.note(probe.number));
            return Some(datagram((to, from), (ECHO_PORT, ports.0), payload));
        }
        let flow = self.flows.get_mut(usize::from(ports.1.checked_sub(FIRST_PORT)?))?;
        if let Some(sample @ ProbeSample { rtt_ns: None, .. }) =
            flow.probes.get_mut(usize::try_from(probe.number).ok()?)
        {
            let took = now - sample.sent_at_ns;
            sample.rtt_ns = Some(took);
            sample.there_ns = Probe::there_ns(&payload).filter(|&there| there <= took);
            sample.echoed = Probe::echoed(&payload);
        }
        Some(Vec::new())
    }

    pub(super) fn outcome(&self, probe: usize, now: u64) -> Probed {
        Probed { probes: self.flows[probe].probes.clone(), awaited_until_ns: now }
    }
}

fn addresses(packet: &[u8]) -> Option<(IpAddr, IpAddr)> {
    match packet.first()? >> 4 {
        4 => {
            let address = |at: usize| Some(IpAddr::from(*packet.get(at..)?.first_chunk::<4>()?));
            Some((address(12)?, address(16)?))
        }
        _ => {
            let address = |at: usize| Some(IpAddr::from(*packet.get(at..)?.first_chunk::<16>()?));
            Some((address(8)?, address(24)?))
        }
    }
}

/// Builds an IP packet with a probe.
fn datagram(
    (from, to): (IpAddr, IpAddr),
    (from_port, to_port): (u16, u16),
    payload: [u8; PROBE_BYTES],
) -> Vec<u8> {
    const LENGTH: u16 = (UDP_HEADER_BYTES + PROBE_BYTES) as u16;
    let mut udp = Vec::with_capacity(usize::from(LENGTH));
    for word in [from_port, to_port, LENGTH, 0] {
        udp.extend(word.to_be_bytes());
    }
    udp.extend(payload);
    let mut pseudo: Vec<u8> = Vec::new();
    let mut packet: Vec<u8> = match (from, to) {
        (IpAddr::V4(from), IpAddr::V4(to)) => {
            let mut header = vec![0x45, 0, 0, 0, 0, 0, 0x40, 0, 64, UDP, 0, 0];
            header[2..4].copy_from_slice(&(20 + LENGTH).to_be_bytes());
            pseudo.extend(from.octets().iter().chain(&to.octets()));
            header.extend(&pseudo);
            let sum = checksum::of(&header).to_be_bytes();
            header[10..12].copy_from_slice(&sum);
            header
        }
        (from, to) => {
            let octets = |address: IpAddr| match address {
                IpAddr::V6(address) => address.octets(),
                IpAddr::V4(address) => address.to_ipv6_mapped().octets(),
            };
            let mut header = vec![0x60, 0, 0, 0, 0, 0, UDP, 64];
            header[4..6].copy_from_slice(&LENGTH.to_be_bytes());
            pseudo.extend(octets(from).iter().chain(&octets(to)));
            header.extend(&pseudo);
            header
        }
    };
    pseudo.extend([0, UDP]);
    pseudo.extend(LENGTH.to_be_bytes());
    pseudo.extend(&udp);
    // Zero would mean no checksum.
    let sum = Some(checksum::of(&pseudo)).filter(|&sum| sum != 0).unwrap_or(0xffff);
    udp[6..8].copy_from_slice(&sum.to_be_bytes());
    packet.extend(udp);
    packet
}
