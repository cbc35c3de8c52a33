//! FQ-CoDel (RFC 8290): flows hashed into queues, served by deficit round robin with new flows first, CoDel in each.

use std::collections::VecDeque;

use bdp_model::link::queue::FqCodel as FqCodelConfig;
use bdp_model::units::Nanos;

use super::codel::Control;
use super::fifo::Fifo;
use super::flow_hash::FlowHash;
use super::managed::{Effects, Managed, OnWire};
use super::waiting::Waiting;
use crate::verdict::DropCause;

/// Packets dropped at once from the longest queue if the limit is exceeded.
const DROP_BATCH: usize = 64;

/// Queues of the flows on one wire.
#[derive(Debug, Clone)]
pub(crate) struct FqCodel {
    config: FqCodelConfig,
    limit: u64,
    hash: FlowHash,
    /// Flows that ever had a packet: a flow's control state outlasts its packets.
    flows: Vec<Option<Box<Flow>>>,
    new: VecDeque<usize>,
    old: VecDeque<usize>,
    packets: u64,
    bytes: u64,
}

#[derive(Debug, Clone, Default)]
struct Flow {
    queue: Fifo,
    control: Control,
    deficit: i64,
    /// Whether it is in one of the lists.
    listed: bool,
}

impl FqCodel {
    pub(super) fn new(config: FqCodelConfig, limit: u64, hash: FlowHash) -> Self {
        Self {
            config,
            limit,
            hash,
            flows: vec![None; config.flows.max(1) as usize],
            new: VecDeque::new(),
            old: VecDeque::new(),
            packets: 0,
            bytes: 0,
        }
    }

    /// Drops half of the flow with the most bytes, from its head, and notes the overflow in its CoDel.
    fn drop_from_longest(&mut self, now: Nanos, effects: &mut Effects) {
        let longest =
            self.flows.iter_mut().flatten().reduce(|longest, flow| {
                if flow.queue.bytes() > longest.queue.bytes() { flow } else { longest }
            });
        let Some(flow) = longest else { return };
        let half = flow.queue.bytes() / 2;
        let mut dropped = 0;
        for _ in 0..DROP_BATCH {
            let Some(waiting) = flow.queue.pop() else { break };
            self.packets -= 1;
            self.bytes -= waiting.packet.len_bytes();
            dropped += waiting.packet.len_bytes();
            flow.control.note_overflow();
            effects.drop(waiting, now, DropCause::Queue);
            if dropped >= half {
                break;
            }
        }
    }
}

impl Managed for FqCodel {
    fn offer(&mut self, waiting: Waiting, on_wire: OnWire, effects: &mut Effects) -> Result<bool, DropCause> {
        let now = waiting.ticket.arrived;
        let index = self.hash.bucket(&waiting.packet, self.flows.len());
        let flow = self.flows[index].get_or_insert_default();
        self.packets += 1;
        self.bytes += waiting.packet.len_bytes();
        flow.queue.push(waiting);
        if !flow.listed {
            flow.listed = true;
            flow.deficit = i64::from(self.config.quantum_bytes);
            self.new.push_back(index);
        }
        if self.packets + on_wire.packets > self.limit {
            self.drop_from_longest(now, effects);
        }
        Ok(false)
    }

    fn take(&mut self, now: Nanos, effects: &mut Effects) -> Option<Waiting> {
        loop {
            let (index, is_new) = match (self.new.front(), self.old.front()) {
                (Some(&index), _) => (index, true),
                (None, Some(&index)) => (index, false),
                (None, None) => return None,
            };
            let flow = self.flows[index].get_or_insert_default();
            let list = if is_new { &mut self.new } else { &mut self.old };
            if flow.deficit <= 0 {
                flow.deficit += i64::from(self.config.quantum_bytes);
                list.pop_front();
                self.old.push_back(index);
                continue;
            }
            let before = (flow.queue.len(), self.bytes);
            let taken = flow.control.take(&self.config.codel, now, &mut self.bytes, &mut flow.queue, effects);
            self.packets -= before.0 - flow.queue.len();
            if let Some(waiting) = taken {
                flow.deficit -= waiting.packet.len_bytes() as i64;
                return Some(waiting);
            }
            list.pop_front();
            // A new flow passes through the old ones once, so that it can't be new again at once (RFC 8290, section 4.2).
            if is_new && !self.old.is_empty() {
                self.old.push_back(index);
            } else {
                flow.listed = false;
            }
        }
    }
}
