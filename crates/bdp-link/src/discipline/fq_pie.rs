//! FQ-PIE, as in Linux: flows hashed into queues, served by deficit round robin with new flows first, PIE in each.

use bdp_model::link::queue::FqPie as FqPieConfig;
use bdp_model::units::Nanos;

use super::fair::{Flow, Flows};
use super::flow_hash::FlowHash;
use super::managed::{Effects, Managed, OnWire, Rolls};
use super::pie::{Backlog, Controller};
use super::waiting::Waiting;
use crate::verdict::DropCause;

/// Flows with PIE.
#[derive(Debug, Clone)]
pub(crate) struct FqPie {
    limit: u64,
    flows: Flows<Controller>,
    /// One draw per offered packet.
    rolls: Rolls,
    packets: u64,
}

impl FqPie {
    pub(super) fn new(config: FqPieConfig, limit: u64, hash: FlowHash, rolls: Rolls) -> Self {
        let marked_up_to = f64::from(config.ecn_prob_percent) / 100.0;
        let controller = Controller::new(config.pie, marked_up_to, config.bytemode);
        let flows = Flows::new(config.flows, config.quantum_bytes, hash, controller);
        Self { limit, flows, rolls, packets: 0 }
    }
}

/// Brings a flow's controller up to date. The packet on the wire counts for no flow.
fn update(flow: &mut Flow<Controller>, now: Nanos) {
    let backlog = Backlog { packets: flow.queue.len(), bytes: flow.queue.bytes() };
    flow.control.update(now, backlog);
}

impl Managed for FqPie {
    fn offer(&mut self, waiting: Waiting, on_wire: OnWire, _: &mut Effects) -> Result<bool, DropCause> {
        let Self { limit, flows, rolls, packets } = self;
        let marked = flows.push(waiting, |flow, waiting| {
            update(flow, waiting.ticket.arrived);
            if *packets + on_wire.packets >= *limit {
                return Err(flow.control.refuse(DropCause::Queue));
            }
            flow.control.admit(waiting, flow.queue.bytes(), rolls)
        })?;
        *packets += 1;
        Ok(marked)
    }

    fn take(&mut self, now: Nanos, _: &mut Effects) -> Option<Waiting> {
        let waiting = self.flows.take(|flow| {
            update(flow, now);
            let waiting = flow.queue.pop()?;
            flow.control.serve(&waiting, flow.queue.bytes() > 0, now);
            Some(waiting)
        })?;
        self.packets -= 1;
        Some(waiting)
    }
}

#[cfg(test)]
mod tests {
    use bdp_model::link::queue::{Pie, Queue};
    use bdp_model::link::{DirectionConfig, LinkConfig, QueueLimit};
    use bdp_model::units::Rate;

    use super::*;
    use crate::{Counters, End, Link, Packet};

    const MARKING: Pie =
        Pie { target: Nanos::millis(15), tupdate: Nanos::millis(15), alpha: 2, beta: 20, ecn: true };

    /// A UDP datagram of a flow, which carries its time of arrival behind its headers.
    fn datagram(at: Nanos, flow: u16, bytes: u16, ecn: u8) -> Packet {
        let mut data = vec![0; usize::from(bytes)];
        data[0] = 0x45;
        data[1] = ecn;
        data[2..4].copy_from_slice(&bytes.to_be_bytes());
        data[9] = 17;
        data[20..22].copy_from_slice(&flow.to_be_bytes());
        data[28..36].copy_from_slice(&at.as_ns().to_be_bytes());
        data.into()
    }

    /// What left: the flow, and its time inside in milliseconds.
    type Left = Vec<(u16, f64)>;

    /// Offers two packets a millisecond for 20 s, of which 8 Mbit/s carry one of 1000 bytes; `of` is the flow, length and ECN field of
    /// each. Returns what left after 5 s.
    fn overload(config: FqPieConfig, limit: u64, of: impl Fn(u64) -> (u16, u16, u8)) -> (Left, Counters) {
        let direction = DirectionConfig {
            rate: Some(Rate::bps(8_000_000)),
            limit: QueueLimit::Packets(limit),
            queue: Some(Queue::FqPie(config)),
            ..DirectionConfig::default()
        };
        let mut link = Link::new(&LinkConfig { forward: direction, ..LinkConfig::default() }, 1);
        let mut left = Vec::new();
        for n in 0..40_000 {
            let now = Nanos(n * 500_000);
            while let Some(departure) = link.pop(now) {
                let data = &departure.packet.data;
                let came = u64::from_be_bytes(data[28..36].try_into().unwrap());
                if came > 5_000_000_000 {
                    let flow = u16::from_be_bytes([data[20], data[21]]);
                    left.push((flow, (departure.due.as_ns() - came) as f64 / 1e6));
                }
            }
            let (flow, bytes, ecn) = of(n);
            link.enqueue(End::A, datagram(now, flow, bytes, ecn), now);
        }
        (left, link.counters(End::A).clone())
    }

    /// RFC 8290, section 1.2, and RFC 8033, section 4.2: a sparse flow does not wait behind another, which settles at its target.
    #[test]
    fn a_sparse_flow_neither_waits_nor_loses() {
        let (left, counters) =
            overload(FqPieConfig::default(), 10_240, |n| (u16::from(n % 20 == 0), 1000, 0));
        let times = |flow: u16| -> Vec<f64> { left.iter().filter(|l| l.0 == flow).map(|l| l.1).collect() };
        let (bulk, sparse) = (times(0), times(1));
        assert!((1_499..=1_500).contains(&sparse.len()), "{}", sparse.len());
        assert!(sparse.iter().all(|&ms| ms < 3.5), "{sparse:?}");
        let mean = bulk.iter().sum::<f64>() / bulk.len() as f64;
        assert!((10.0..25.0).contains(&mean), "{mean} ms");
        assert_eq!(counters.queue_dropped, 0);
        assert!(counters.aqm_dropped > 17_000, "{counters:?}");
    }

    #[test]
    fn ecn_prob_bounds_what_is_marked() {
        let with =
            |ecn_prob_percent| FqPieConfig { pie: MARKING, ecn_prob_percent, ..FqPieConfig::default() };
        let (_, tenth) = overload(with(10), 10_240, |_| (1, 1000, 2));
        assert!(tenth.marked > 0 && tenth.aqm_dropped > 10_000, "{tenth:?}");
        // All are marked, so that only the limit ends the queue.
        let (_, all) = overload(with(100), 500, |_| (1, 1000, 2));
        assert!(all.aqm_dropped == 0 && all.queue_dropped > 10_000 && all.marked > 10_000, "{all:?}");
    }

    #[test]
    fn bytemode_spares_small_packets() {
        let share = |bytemode| {
            let config = FqPieConfig { bytemode, ..FqPieConfig::default() };
            // Of 1500 and 400 bytes, both of one flow.
            let (_, counters) = overload(config, 10_240, |n| (1, if n % 2 == 0 { 1500 } else { 400 }, 0));
            counters.aqm_dropped
        };
        let [plain, by_size] = [false, true].map(share);
        assert!(by_size < plain * 9 / 10, "{by_size} of {plain}");
    }
}
