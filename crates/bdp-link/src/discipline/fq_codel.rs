//! FQ-CoDel (RFC 8290): flows hashed into queues, served by deficit round robin with new flows first, CoDel in each.

use bdp_model::link::queue::{Codel as CodelConfig, FqCodel as FqCodelConfig};
use bdp_model::units::Nanos;

use super::codel::Control;
use super::fair::Flows;
use super::flow_hash::FlowHash;
use super::managed::{Effects, Managed, OnWire};
use super::waiting::Waiting;
use crate::verdict::DropCause;

/// Packets dropped at once from the longest queue if the limit is exceeded.
const DROP_BATCH: usize = 64;

/// Flows with CoDel.
#[derive(Debug, Clone)]
pub(crate) struct FqCodel {
    codel: CodelConfig,
    limit: u64,
    flows: Flows<Control>,
    packets: u64,
    bytes: u64,
}

impl FqCodel {
    pub(super) fn new(config: FqCodelConfig, limit: u64, hash: FlowHash) -> Self {
        let flows = Flows::new(config.flows, config.quantum_bytes, hash, Control::default());
        Self { codel: config.codel, limit, flows, packets: 0, bytes: 0 }
    }

    /// Drops half of the flow with the most bytes, from its head, and notes the overflow in its CoDel.
    fn drop_from_longest(&mut self, now: Nanos, effects: &mut Effects) {
        let longest = self
            .flows
            .iter_mut()
            .reduce(|longest, flow| if flow.queue.bytes() > longest.queue.bytes() { flow } else { longest });
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
        self.packets += 1;
        self.bytes += waiting.packet.len_bytes();
        self.flows.push(waiting, |_, _| Ok(false))?;
        if self.packets + on_wire.packets > self.limit {
            self.drop_from_longest(now, effects);
        }
        Ok(false)
    }

    fn take(&mut self, now: Nanos, effects: &mut Effects) -> Option<Waiting> {
        let Self { codel, flows, packets, bytes, .. } = self;
        flows.take(|flow| {
            let before = flow.queue.len();
            let taken = flow.control.take(codel, now, bytes, &mut flow.queue, effects);
            *packets -= before - flow.queue.len();
            taken
        })
    }
}
