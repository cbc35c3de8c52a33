//! Flows hashed into queues, served by deficit round robin with new flows first (RFC 8290, section 4).

use std::collections::VecDeque;

use super::fifo::Fifo;
use super::flow_hash::FlowHash;
use super::waiting::Waiting;

/// Queues of the flows on one wire, each with its own control of the queue.
#[derive(Debug, Clone)]
pub(super) struct Flows<C> {
    hash: FlowHash,
    /// IP bytes that a flow may send per round.
    quantum: i64,
    /// Flows that ever had a packet: a flow's control outlasts its packets.
    all: Vec<Option<Box<Flow<C>>>>,
    new: VecDeque<usize>,
    old: VecDeque<usize>,
    /// The control of a new flow.
    control: C,
}

#[derive(Debug, Clone)]
pub(super) struct Flow<C> {
    pub queue: Fifo,
    pub control: C,
    deficit: i64,
    /// Whether it is in one of the lists.
    listed: bool,
}

impl<C: Clone> Flows<C> {
    pub(super) fn new(count: u32, quantum_bytes: u32, hash: FlowHash, control: C) -> Self {
        let all = vec![None; count.max(1) as usize];
        let quantum = i64::from(quantum_bytes);
        Self { hash, quantum, all, new: VecDeque::new(), old: VecDeque::new(), control }
    }

    /// Returns the flows that ever had a packet.
    pub(super) fn iter_mut(&mut self) -> impl Iterator<Item = &mut Flow<C>> {
        self.all.iter_mut().flatten().map(|flow| &mut **flow)
    }

    /// Queues a packet in its flow, if `admit` lets it in.
    pub(super) fn push<E>(
        &mut self,
        mut waiting: Waiting,
        admit: impl FnOnce(&mut Flow<C>, &mut Waiting) -> Result<bool, E>,
    ) -> Result<bool, E> {
        let index = self.hash.bucket(&waiting.packet, self.all.len());
        let flow = self.all[index].get_or_insert_with(|| {
            let control = self.control.clone();
            Box::new(Flow { queue: Fifo::default(), control, deficit: 0, listed: false })
        });
        let marked = admit(flow, &mut waiting)?;
        flow.queue.push(waiting);
        if !flow.listed {
            flow.listed = true;
            flow.deficit = self.quantum;
            self.new.push_back(index);
        }
        Ok(marked)
    }

    /// Takes the next packet; `next` takes it from its flow, after dropping those before it.
    pub(super) fn take(&mut self, mut next: impl FnMut(&mut Flow<C>) -> Option<Waiting>) -> Option<Waiting> {
        loop {
            let is_new = !self.new.is_empty();
            let list = if is_new { &mut self.new } else { &mut self.old };
            let index = *list.front()?;
            let flow = self.all[index].as_mut()?;
            if flow.deficit <= 0 {
                flow.deficit += self.quantum;
                list.pop_front();
                self.old.push_back(index);
                continue;
            }
            if let Some(waiting) = next(flow) {
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
