//! A queue like CAKE (Høiland-Jørgensen, Täht, Morton: "Piece of CAKE", 2018): tins by DSCP, flows in an 8-way
//! set-associative hash, hosts with equal shares, COBALT in each flow. Its shaper is the direction's rate.

use std::collections::{BTreeMap, VecDeque};

use bdp_model::link::queue::{Cake as CakeConfig, Isolation, Tins};
use bdp_model::units::{Nanos, Rate};

use super::cobalt::{Cobalt, Parameters, Signal};
use super::fifo::Fifo;
use super::flow_hash::FlowHash;
use super::managed::{Effects, Managed, OnWire, Rolls};
use super::waiting::Waiting;
use crate::verdict::DropCause;

const FLOWS: usize = 1024;
const WAYS: usize = 8;
const FULL_PACKET: u64 = 1500;

/// All tins of one wire.
#[derive(Debug, Clone)]
pub(crate) struct Cake {
    config: CakeConfig,
    limit_packets: u64,
    limit_bytes: u64,
    hash: FlowHash,
    rolls: Rolls,
    tins: Vec<Tin>,
    packets: u64,
    bytes: u64,
}

#[derive(Debug, Clone)]
struct Tin {
    parameters: Parameters,
    /// Wire bytes that a flow may send per turn.
    quantum: i64,
    rate_bps: u64,
    /// When it may next send without taking from the others.
    next_at: u128,
    packets: u64,
    bytes: u64,
    flows: Vec<Option<Box<Flow>>>,
    new: VecDeque<usize>,
    old: VecDeque<usize>,
    decaying: VecDeque<usize>,
    /// Number of sparse or bulk flows.
    active: usize,
    /// Bulk flows of each sending host, and of each receiving one.
    bulk_of: [BTreeMap<u64, i64>; 2],
}

#[derive(Debug, Clone, Default)]
struct Flow {
    tag: u64,
    hosts: [u64; 2],
    queue: Fifo,
    cobalt: Cobalt,
    deficit: i64,
    set: Set,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
enum Set {
    #[default]
    None,
    Sparse,
    /// Counts as sparse, but is listed among the bulk ones.
    SparseWait,
    Bulk,
    Decaying,
}

impl Cake {
    pub(super) fn new(
        config: CakeConfig,
        limit: (u64, u64),
        rate: Option<Rate>,
        hash: FlowHash,
        rolls: Rolls,
    ) -> Self {
        let rate = rate.map_or(u64::MAX, |rate| rate.as_bps());
        let shares: &[u32] = match config.diffserv {
            Tins::Besteffort => &[0],
            Tins::Diffserv3 => &[0, 4, 2],
            Tins::Diffserv4 => &[0, 4, 1, 2],
        };
        let tins = shares.iter().map(|shift| Tin::new(&config, rate >> shift)).collect();
        Self { config, limit_packets: limit.0, limit_bytes: limit.1, hash, rolls, tins, packets: 0, bytes: 0 }
    }

    /// Drops the head of the flow with the most bytes; `false` if nothing waits.
    fn drop_from_longest(&mut self, now: Nanos, effects: &mut Effects) -> bool {
        let flows = self.tins.iter().enumerate().flat_map(|(tin, of)| {
            of.flows
                .iter()
                .enumerate()
                .filter_map(move |(at, flow)| Some((flow.as_ref()?.queue.bytes(), tin, at)))
        });
        let longest = flows.reduce(|longest, flow| if flow.0 > longest.0 { flow } else { longest });
        let Some((_, tin, at)) = longest else { return false };
        let tin = &mut self.tins[tin];
        let Some(flow) = &mut tin.flows[at] else { return false };
        let Some(waiting) = flow.queue.pop() else { return false };
        flow.cobalt.note_overflow(&tin.parameters, now);
        let bytes = waiting.packet.len_bytes();
        tin.packets -= 1;
        tin.bytes -= bytes;
        self.packets -= 1;
        self.bytes -= bytes;
        effects.drop(waiting, now, DropCause::Queue);
        true
    }
}

impl Managed for Cake {
    fn offer(&mut self, waiting: Waiting, on_wire: OnWire, effects: &mut Effects) -> Result<bool, DropCause> {
        let now = waiting.ticket.arrived;
        let index = tin_of(self.config.diffserv, waiting.packet.dscp()).min(self.tins.len() - 1);
        let tin = &mut self.tins[index];
        if tin.bytes == 0 {
            tin.next_at = tin.next_at.max(u128::from(now.as_ns()));
        }
        let at = tin.find(self.hash.of(&waiting.packet), self.hash.hosts(&waiting.packet));
        let bytes = waiting.packet.len_bytes();
        self.packets += 1;
        self.bytes += bytes;
        tin.packets += 1;
        tin.bytes += bytes;
        tin.add(at, waiting, self.config.isolation);
        while self.packets + on_wire.packets > self.limit_packets
            || self.bytes + on_wire.bytes > self.limit_bytes
        {
            if !self.drop_from_longest(now, effects) {
                break;
            }
        }
        Ok(false)
    }

    fn take(&mut self, now: Nanos, effects: &mut Effects) -> Option<Waiting> {
        let mut decay = true;
        while self.packets > 0 {
            let next = next_tin(&self.tins, now)?;
            let tin = &mut self.tins[next];
            let before = (tin.packets, tin.bytes);
            let taken = tin.take(now, &mut decay, self.config.isolation, &mut self.rolls, effects);
            self.packets -= before.0 - tin.packets;
            self.bytes -= before.1 - tin.bytes;
            if let Some(waiting) = taken {
                return Some(waiting);
            }
        }
        None
    }
}

/// The last tin with something to send that is within its rate, or else the one that will be soonest.
fn next_tin(tins: &[Tin], now: Nanos) -> Option<usize> {
    let mut best: Option<(i128, usize)> = None;
    for (index, tin) in tins.iter().enumerate().filter(|(_, tin)| tin.active > 0) {
        let wait = tin.next_at as i128 - i128::from(now.as_ns());
        if wait <= 0 || best.is_none_or(|(least, _)| wait <= least) {
            best = Some((wait, index));
        }
    }
    best.map(|(_, index)| index)
}

impl Tin {
    fn new(config: &CakeConfig, rate_bps: u64) -> Self {
        let rate_bps = rate_bps.max(8);
        let packet = Nanos((u128::from(FULL_PACKET) * 8_000_000_000 / u128::from(rate_bps)) as u64);
        // tc's target is a twentieth of the round trip.
        let asked = Nanos(config.rtt.as_ns() / 20);
        let target = asked.max(Nanos(packet.as_ns() * 3 / 2));
        let interval = (config.rtt + target).saturating_sub(asked).max(target + target);
        Self {
            parameters: Parameters { target, interval, packet },
            quantum: (rate_bps / 8 / 4096).clamp(300, 1514) as i64,
            rate_bps,
            next_at: 0,
            packets: 0,
            bytes: 0,
            flows: vec![None; FLOWS],
            new: VecDeque::new(),
            old: VecDeque::new(),
            decaying: VecDeque::new(),
            active: 0,
            bulk_of: [BTreeMap::new(), BTreeMap::new()],
        }
    }

    fn flow(&self, at: usize) -> Option<&Flow> {
        self.flows[at].as_deref()
    }

    /// The queue of a flow: its own, else a free one of its set, else a shared one.
    fn find(&mut self, tag: u64, hosts: [u64; 2]) -> usize {
        let direct = (tag % FLOWS as u64) as usize;
        let set = direct / WAYS * WAYS;
        let ways = || (0..WAYS).map(|way| set + (direct + way) % WAYS);
        let own = ways().find(|&at| self.flow(at).is_some_and(|flow| flow.tag == tag));
        let free = || ways().find(|&at| self.flow(at).is_none_or(|flow| flow.set == Set::None));
        let at = own.or_else(free).unwrap_or(direct);
        let flow = self.flows[at].get_or_insert_default();
        flow.tag = tag;
        if flow.set == Set::None || flow.set == Set::Decaying {
            flow.hosts = hosts;
        }
        at
    }

    fn add(&mut self, at: usize, waiting: Waiting, isolation: Isolation) {
        let Some(flow) = &mut self.flows[at] else { return };
        flow.queue.push(waiting);
        match flow.set {
            Set::None | Set::Decaying => {
                if flow.set == Set::Decaying {
                    self.decaying.retain(|&other| other != at);
                }
                flow.set = Set::Sparse;
                flow.deficit = quantum(self.quantum, &self.bulk_of, flow.hosts, isolation);
                self.new.push_back(at);
                self.active += 1;
            }
            Set::SparseWait => {
                flow.set = Set::Bulk;
                count(&mut self.bulk_of, flow.hosts, 1);
            }
            Set::Sparse | Set::Bulk => {}
        }
    }

    /// Takes the next packet, or none if a flow was found empty: then the tins are examined again.
    fn take(
        &mut self,
        now: Nanos,
        decay: &mut bool,
        isolation: Isolation,
        rolls: &mut Rolls,
        effects: &mut Effects,
    ) -> Option<Waiting> {
        loop {
            let first = std::mem::take(decay);
            let lists = [&self.decaying, &self.new, &self.old];
            let order = if first { [0, 1, 2] } else { [1, 2, 0] };
            let list = order.into_iter().find(|&list| !lists[list].is_empty())?;
            let at = *lists[list].front()?;
            let flow = self.flows[at].get_or_insert_default();
            if flow.deficit <= 0 {
                if flow.set == Set::Sparse {
                    if flow.queue.len() > 0 {
                        flow.set = Set::Bulk;
                        count(&mut self.bulk_of, flow.hosts, 1);
                    } else {
                        flow.set = Set::SparseWait;
                    }
                }
                flow.deficit += quantum(self.quantum, &self.bulk_of, flow.hosts, isolation);
                self.unlist(list);
                self.old.push_back(at);
                continue;
            }
            while let Some(mut waiting) = flow.queue.pop() {
                self.packets -= 1;
                self.bytes -= waiting.packet.len_bytes();
                let ticket = waiting.ticket;
                let roll = || rolls.roll(&ticket, 0);
                let signal =
                    flow.cobalt.signal(&self.parameters, now, ticket.arrived, &mut waiting.packet, roll);
                // The last packet of a queue is never dropped.
                if signal == Signal::Drop && flow.queue.len() > 0 {
                    effects.drop(waiting, now, DropCause::Aqm);
                    continue;
                }
                effects.marked += u64::from(signal == Signal::Mark);
                let wire_bytes = waiting.last_wire_bits / 8;
                flow.deficit -= wire_bytes as i64;
                self.charge(wire_bytes, now);
                return Some(waiting);
            }
            flow.cobalt.note_empty(&self.parameters, now);
            match flow.set {
                Set::Bulk => {
                    count(&mut self.bulk_of, flow.hosts, -1);
                    self.active -= 1;
                }
                Set::Sparse | Set::SparseWait => self.active -= 1,
                Set::None | Set::Decaying => {}
            }
            let rests = flow.cobalt.is_at_rest(now);
            flow.set = if rests { Set::None } else { Set::Decaying };
            self.unlist(list);
            if !rests {
                self.decaying.push_back(at);
            }
            return None;
        }
    }

    fn unlist(&mut self, list: usize) {
        match list {
            0 => self.decaying.pop_front(),
            1 => self.new.pop_front(),
            _ => self.old.pop_front(),
        };
    }

    /// Charges sent bytes to the tin's own rate, which decides its precedence.
    fn charge(&mut self, wire_bytes: u64, now: Nanos) {
        let took = u128::from(wire_bytes) * 8_000_000_000 / u128::from(self.rate_bps);
        let now = u128::from(now.as_ns());
        if self.next_at < now {
            self.next_at += took;
        } else if self.next_at < now + took {
            self.next_at = now + took;
        }
    }
}

/// Quantum of a flow: smaller if its hosts have more bulk flows.
fn quantum(of_tin: i64, bulk_of: &[BTreeMap<u64, i64>; 2], hosts: [u64; 2], isolation: Isolation) -> i64 {
    let load = match isolation {
        Isolation::Flows => 1,
        Isolation::TripleIsolate => {
            let of = |side: usize| bulk_of[side].get(&hosts[side]).copied().unwrap_or(0);
            of(0).max(of(1)).max(1)
        }
    };
    (of_tin / load).max(1)
}

fn count(bulk_of: &mut [BTreeMap<u64, i64>; 2], hosts: [u64; 2], by: i64) {
    for (flows, host) in bulk_of.iter_mut().zip(hosts) {
        let flows_of = flows.entry(host).or_default();
        *flows_of += by;
        if *flows_of <= 0 {
            flows.remove(&host);
        }
    }
}

/// The tin of a DSCP: best effort first, then bulk, then those above best effort.
fn tin_of(tins: Tins, dscp: u8) -> usize {
    const BULK: [u8; 2] = [1, 8];
    match tins {
        Tins::Besteffort => 0,
        _ if BULK.contains(&dscp) => 1,
        Tins::Diffserv3 => match dscp {
            // TOS 4, voice-admit, EF, CS6, CS7.
            4 | 44 | 46 | 48 | 56 => 2,
            _ => 0,
        },
        Tins::Diffserv4 => match dscp {
            // CS4, CS5, voice-admit, EF, CS6, CS7.
            32 | 40 | 44 | 46 | 48 | 56 => 3,
            // TOS 4, CS2, AF2x, CS3, AF3x, AF4x.
            4 | 16 | 18 | 20 | 22 | 24 | 26 | 28 | 30 | 34 | 36 | 38 => 2,
            _ => 0,
        },
    }
}
