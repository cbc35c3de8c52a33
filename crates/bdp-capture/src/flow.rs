//! A followed flow, with everything its report needs.

use std::net::{IpAddr, SocketAddr};

use bdp_model::capture::{CapturedData, CapturedDirection, CapturedFlow, FlowProtocol};
use bdp_model::facts::Facts;

use crate::between::SegmentLog;
use crate::datagrams::Datagrams;
use crate::decode::{Carries, Packet, Segment};
use crate::notes::Notes;
use crate::tcp::{self, Connection};

/// Address and port; the port is 0 if there is none.
pub(crate) type End = (IpAddr, u16);

/// Time at which a packet passed.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Moment {
    /// Time since the first packet of the capture.
    pub now_ns: u64,
    /// Whether the capture has times.
    pub is_known: bool,
}

impl Moment {
    fn at(self) -> Option<u64> {
        self.is_known.then_some(self.now_ns)
    }
}

/// Identity of a flow.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Identity {
    pub protocol: FlowProtocol,
    /// IP protocol number.
    pub number: u8,
    /// Number of the flow among those of its protocol.
    pub stream: u32,
    /// The end that began, as far as observed, and the other one.
    pub ends: [End; 2],
}

/// A flow in progress.
#[derive(Debug)]
pub(crate) struct Flow {
    pub identity: Identity,
    from_ns: u64,
    to_ns: u64,
    packets: [u64; 2],
    bytes: [u64; 2],
    payload: [u64; 2],
    times: [(u64, u64); 2],
    tcp: Option<Box<Connection>>,
    log: Option<Box<SegmentLog>>,
    /// Datagram analysis, for UDP and ICMP.
    datagrams: Option<Box<Datagrams>>,
    /// Whether packets and bytes are only counted from now on.
    pub is_counted_alone: bool,
    /// Memory last accounted for the flow, bytes.
    pub counted_bytes: u64,
}

/// Packets, bytes, start and end of a flow.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Counts {
    pub packets: u64,
    pub bytes: u64,
    pub from_ns: u64,
    pub to_ns: u64,
}

/// Result of analysing a flow.
#[derive(Debug)]
pub struct Found {
    /// Report of the flow.
    pub flow: CapturedFlow,
    /// Facts for the rules, for each direction that carried enough data.
    pub facts: [Option<Box<Facts>>; 2],
    /// Segments of a TCP flow, if they are kept (`Analysis::logged`).
    pub log: Option<Box<SegmentLog>>,
}

/// Returns 1 for the second end, otherwise 0.
fn side_of(ends: &[End; 2], from: End) -> usize {
    usize::from(ends[0] != from)
}

impl Flow {
    /// Returns a flow without packets; `logged` keeps its segments.
    pub fn new(identity: Identity, logged: bool, now_ns: u64) -> Self {
        let protocol = identity.protocol;
        let is_tcp = protocol == FlowProtocol::Tcp;
        Self {
            identity,
            from_ns: now_ns,
            to_ns: now_ns,
            packets: [0; 2],
            bytes: [0; 2],
            payload: [0; 2],
            times: [(0, 0); 2],
            tcp: is_tcp.then(Box::default),
            log: (is_tcp && logged).then(Box::default),
            datagrams: matches!(protocol, FlowProtocol::Udp | FlowProtocol::Icmp).then(Box::default),
            is_counted_alone: false,
            counted_bytes: 0,
        }
    }

    /// Whether this SYN begins another connection between the same ports.
    pub fn is_another(&self, from: End, segment: &Segment) -> bool {
        self.tcp.as_ref().is_some_and(|tcp| tcp.is_another(side_of(&self.identity.ends, from) == 1, segment))
    }

    /// Adds a packet; `room` is the number of segments that logs may still keep.
    pub fn packet(
        &mut self,
        moment: Moment,
        from: End,
        packet: &Packet,
        frame: &[u8],
        room: &mut Option<u64>,
    ) -> Notes {
        let (now, at) = (moment.now_ns, moment.at());
        let side = side_of(&self.identity.ends, from);
        let is_back = side == 1;
        self.to_ns = now;
        if self.packets[side] == 0 {
            self.times[side].0 = now;
        }
        self.times[side].1 = now;
        self.packets[side] += 1;
        self.bytes[side] += u64::from(packet.length);
        if let Carries::Udp { payload, .. } = packet.carries {
            self.payload[side] += u64::from(payload);
        }
        if self.is_counted_alone {
            return Notes::default();
        }
        if let (Some(log), Some(room), Carries::Tcp(segment)) = (&mut self.log, room, &packet.carries) {
            log.note(room, now, is_back, packet, segment);
        }
        match (&mut self.tcp, &mut self.datagrams, &packet.carries) {
            // A time of 0 means never.
            (Some(tcp), _, Carries::Tcp(segment)) => {
                return tcp.segment(now + 1, is_back, packet, segment);
            }
            (_, Some(datagrams), Carries::Udp { payload, kept, .. }) => {
                datagrams.udp(at, side, kept.of(frame), *payload);
            }
            (_, Some(datagrams), Carries::Icmp { echo: Some(echo), .. }) => datagrams.icmp(at, side, echo),
            _ => {}
        }
        Notes::default()
    }

    /// Records an ICMP message that a packet from the flow's first end could not be delivered.
    pub fn unreachable(&mut self) {
        if let Some(tcp) = &mut self.tcp {
            tcp.unreachable();
        }
    }

    /// Whether its memory should be counted again: seldom, but before it has grown much.
    pub fn is_to_be_counted(&self) -> bool {
        let packets = self.packets[0] + self.packets[1];
        packets.is_power_of_two() || packets.is_multiple_of(256)
    }

    /// Approximate memory in use, including that of its report, bytes.
    pub fn held_bytes(&self) -> u64 {
        // The report needs as much again for facts and traces.
        let tcp = self.tcp.as_ref().map_or(0, |tcp| {
            let ways = (0..2).filter(|&side| tcp.has_data(side)).count();
            size_of::<Connection>() + 2 * tcp.held_bytes() + ways * size_of::<CapturedData>()
        });
        let datagrams = self.datagrams.as_ref().map_or(0, |all| size_of::<Datagrams>() + all.held_bytes());
        let log = self.log.as_ref().map_or(0, |log| size_of::<SegmentLog>() + log.held_bytes());
        (size_of::<Self>() + size_of::<Found>() + tcp + datagrams + log) as u64
    }

    /// Approximate minimum memory of a flow, bytes.
    pub const fn least_bytes() -> u64 {
        (size_of::<Self>() + size_of::<Connection>() + size_of::<Found>()) as u64
    }

    /// Whether the flow is not TCP and has only a few packets in one direction.
    pub fn is_one_way(&self) -> bool {
        const FEW: u64 = 3;
        self.tcp.is_none() && self.packets[1] == 0 && self.packets[0] <= FEW
    }

    /// Returns the counts.
    pub fn counts(&self) -> Counts {
        Counts {
            packets: self.packets.iter().sum(),
            bytes: self.bytes.iter().sum(),
            from_ns: self.from_ns,
            to_ns: self.to_ns,
        }
    }

    /// Finishes the flow and returns its report.
    pub fn finish(mut self) -> Found {
        if let Some(tcp) = &mut self.tcp {
            tcp.finish();
        }
        let direction = |side: usize| {
            let (from, to) = self.times[side];
            let (payload_bytes, goodput_bps) = match &self.tcp {
                Some(tcp) => tcp.goodput(side),
                None => {
                    let took = to.saturating_sub(from);
                    let payload = self.payload[side];
                    (payload, (took > 0 && payload > 0).then(|| payload as f64 * 8e9 / took as f64))
                }
            };
            CapturedDirection {
                packets: self.packets[side],
                bytes: self.bytes[side],
                payload_bytes,
                goodput_bps,
                tcp: self.tcp.as_ref().and_then(|tcp| tcp.data(side)).map(Box::new),
                datagrams: self.datagrams.as_ref().map(|datagrams| Box::new(datagrams.report(side))),
            }
        };
        let ends = self.identity.ends.map(|(address, port)| SocketAddr::new(address, port));
        let facts = |side| {
            let connection = self.tcp.as_ref()?;
            tcp::facts(connection, side, ends).map(Box::new)
        };
        Found {
            facts: [facts(0), facts(1)],
            log: self.log.take(),
            flow: CapturedFlow {
                protocol: self.identity.protocol,
                a: ends[0],
                b: ends[1],
                from_ns: self.from_ns,
                to_ns: self.to_ns,
                directions: [direction(0), direction(1)],
                tcp: self.tcp.as_ref().map(|tcp| tcp.report()),
                quic: self.datagrams.as_ref().and_then(|all| all.quic_report()).map(Box::new),
            },
        }
    }
}
