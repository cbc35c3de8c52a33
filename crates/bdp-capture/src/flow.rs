//! A flow that is followed: all that its report needs.

use std::net::{IpAddr, SocketAddr};

use bdp_model::capture::{CapturedData, CapturedDirection, CapturedFlow, FlowProtocol};
use bdp_model::facts::Facts;

use crate::between::SegmentLog;
use crate::datagrams::Datagrams;
use crate::decode::{Carries, Packet, Segment};
use crate::notes::Notes;
use crate::tcp::{self, Connection};

/// Address and port; the port is 0 where there are none.
pub(crate) type End = (IpAddr, u16);

/// When a packet passed.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Moment {
    /// Since the first packet of the capture.
    pub now_ns: u64,
    /// Whether the capture has times.
    pub is_known: bool,
}

impl Moment {
    fn at(self) -> Option<u64> {
        self.is_known.then_some(self.now_ns)
    }
}

/// Which flow it is.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Identity {
    pub protocol: FlowProtocol,
    /// The protocol's number.
    pub number: u8,
    /// The flow's number among those of the protocol.
    pub stream: u32,
    /// Who began, as far as was seen, and the other one.
    pub ends: [End; 2],
}

/// A flow that goes on.
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
    /// Of UDP and ICMP.
    datagrams: Option<Box<Datagrams>>,
    /// From now on packets and bytes are counted, and no more.
    pub is_counted_alone: bool,
    /// Bytes of memory that were last counted for it.
    pub counted_bytes: u64,
}

/// Packets of a flow, their bytes, and when it began and ended.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Counts {
    pub packets: u64,
    pub bytes: u64,
    pub from_ns: u64,
    pub to_ns: u64,
}

/// What was found out about a flow.
#[derive(Debug)]
pub struct Found {
    /// What was seen of it.
    pub flow: CapturedFlow,
    /// For the rules, the facts of each way that carried enough.
    pub facts: [Option<Box<Facts>>; 2],
    /// Of TCP its segments one by one, where they are kept (`Analysis::logged`).
    pub log: Option<Box<SegmentLog>>,
}

/// 1 of what comes from the second end.
fn side_of(ends: &[End; 2], from: End) -> usize {
    usize::from(ends[0] != from)
}

impl Flow {
    /// A flow of which no packet was counted yet; `logged` keeps its segments.
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

    /// A packet passes; `room` is for how many further segments logs have room.
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
            // A moment of 0 is one that has not been.
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

    /// A message says that what its first end sent could not be delivered.
    pub fn unreachable(&mut self) {
        if let Some(tcp) = &mut self.tcp {
            tcp.unreachable();
        }
    }

    /// Whether it is time to count its memory again: seldom, but before it has become much more.
    pub fn is_to_be_counted(&self) -> bool {
        let packets = self.packets[0] + self.packets[1];
        packets.is_power_of_two() || packets.is_multiple_of(256)
    }

    /// Memory that it takes, about, with what its report will take.
    pub fn held_bytes(&self) -> u64 {
        // Of what is in a connection the report has as much again: facts, traces.
        let tcp = self.tcp.as_ref().map_or(0, |tcp| {
            let ways = (0..2).filter(|&side| tcp.has_data(side)).count();
            size_of::<Connection>() + 2 * tcp.held_bytes() + ways * size_of::<CapturedData>()
        });
        let datagrams = self.datagrams.as_ref().map_or(0, |all| size_of::<Datagrams>() + all.held_bytes());
        let log = self.log.as_ref().map_or(0, |log| size_of::<SegmentLog>() + log.held_bytes());
        (size_of::<Self>() + size_of::<Found>() + tcp + datagrams + log) as u64
    }

    /// Memory that a flow takes at the least, about.
    pub const fn least_bytes() -> u64 {
        (size_of::<Self>() + size_of::<Connection>() + size_of::<Found>()) as u64
    }

    /// Whether it is none of TCP, with packets of one way alone, and few of them.
    pub fn is_one_way(&self) -> bool {
        const FEW: u64 = 3;
        self.tcp.is_none() && self.packets[1] == 0 && self.packets[0] <= FEW
    }

    /// What was counted.
    pub fn counts(&self) -> Counts {
        Counts {
            packets: self.packets.iter().sum(),
            bytes: self.bytes.iter().sum(),
            from_ns: self.from_ns,
            to_ns: self.to_ns,
        }
    }

    /// What all of it comes to.
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
