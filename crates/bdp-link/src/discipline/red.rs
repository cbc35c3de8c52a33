//! RED (Floyd and Jacobson, 1993; RFC 2309): drops or marks on arrival, by the average length of the queue.
//!
//! As in Linux it is not gentle: above the upper threshold everything is dropped or marked.

use bdp_model::link::queue::Red as RedConfig;
use bdp_model::units::{Nanos, Rate};

use super::fifo::Fifo;
use super::managed::{Effects, Managed, OnWire, Rolls};
use super::waiting::Waiting;
use crate::ecn;
use crate::verdict::DropCause;

/// Idle time, in packets, after which an average has decayed completely.
const FORGOTTEN: u64 = 10_000;

/// One queue with RED.
#[derive(Debug, Clone)]
pub(crate) struct Red {
    config: RedConfig,
    limit_packets: u64,
    limit_bytes: u64,
    queue: Fifo,
    rolls: Rolls,
    /// Weight of each new length in the average.
    weight: f64,
    /// Time of a packet of average length on the wire, nanoseconds.
    packet_ns: u64,
    /// Average queue length, IP bytes.
    average: f64,
    /// Packets since the last drop or mark; `None` below the lower threshold.
    count: Option<u64>,
    /// Random number, drawn again after each drop or mark.
    drawn: f64,
    idle_since: Option<Nanos>,
}

impl Red {
    pub(super) fn new(config: RedConfig, limit: (u64, u64), rate: Option<Rate>, rolls: Rolls) -> Self {
        let rate = rate.map_or(u64::MAX, |rate| rate.as_bps()).max(1);
        let bits = u128::from(config.avpkt_bytes) * 8 * 1_000_000_000;
        Self {
            config,
            limit_packets: limit.0,
            limit_bytes: limit.1,
            queue: Fifo::default(),
            rolls,
            weight: config.weight(),
            packet_ns: ((bits / u128::from(rate)) as u64).max(1),
            average: 0.0,
            count: None,
            drawn: 0.0,
            idle_since: Some(Nanos::ZERO),
        }
    }

    /// Updates the average with the length on arrival; after an idle time as if that many small packets had met an
    /// empty queue (Floyd and Jacobson, section 11).
    fn average_in(&mut self, backlog: u64, now: Nanos) {
        if let Some(since) = self.idle_since.take() {
            let packets = now.saturating_sub(since).as_ns() / self.packet_ns;
            for _ in 0..packets.min(FORGOTTEN) {
                self.average *= 1.0 - self.weight;
            }
            if packets >= FORGOTTEN {
                self.average = 0.0;
            }
        } else {
            self.average += (backlog as f64 - self.average) * self.weight;
        }
    }

    /// Whether the packet is to be dropped or marked, and if so whether it must (Floyd and Jacobson, section 4, method 2).
    fn signals(&mut self, waiting: &Waiting) -> Option<bool> {
        let [low, high] = [self.config.min_bytes, self.config.max_bytes].map(f64::from);
        if self.average < low {
            self.count = None;
            return None;
        }
        if self.average >= high {
            self.count = None;
            return Some(true);
        }
        let Some(count) = self.count.map(|count| count + 1) else {
            self.count = Some(0);
            self.drawn = self.rolls.roll(&waiting.ticket, 0);
            return None;
        };
        let probability = self.config.probability.fraction() * (self.average - low) / (high - low);
        if count as f64 * probability < self.drawn {
            self.count = Some(count);
            return None;
        }
        self.count = Some(0);
        self.drawn = self.rolls.roll(&waiting.ticket, 0);
        Some(false)
    }
}

impl Managed for Red {
    fn offer(&mut self, mut waiting: Waiting, on_wire: OnWire, _: &mut Effects) -> Result<bool, DropCause> {
        let backlog = self.queue.bytes() + on_wire.bytes;
        self.average_in(backlog, waiting.ticket.arrived);
        let mut marked = false;
        if let Some(forced) = self.signals(&waiting) {
            let drops = forced && self.config.harddrop;
            marked = self.config.ecn && !drops && ecn::congest(&mut waiting.packet);
            if !marked {
                return Err(DropCause::Aqm);
            }
        }
        let packets = self.queue.len() + on_wire.packets;
        if packets >= self.limit_packets || backlog + waiting.packet.len_bytes() > self.limit_bytes {
            return Err(DropCause::Queue);
        }
        self.queue.push(waiting);
        Ok(marked)
    }

    fn take(&mut self, _: Nanos, _: &mut Effects) -> Option<Waiting> {
        self.queue.pop()
    }

    /// Notes that the wire has been free since then.
    fn went_idle(&mut self, at: Nanos) {
        self.idle_since.get_or_insert(at);
    }
}
