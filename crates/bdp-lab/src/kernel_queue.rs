//! The options by which the kernel's queues are made like the emulator's.

use bdp_model::queue::{Codel, FqCodel, Queue};
use bdp_model::units::{Nanos, Rate};
use bdp_sys::qdisc_managed::{Options, codel, fq_codel};

use serde::{Deserialize, Serialize};

/// A queue of the kernel's that manages itself, before a rate.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
pub struct KernelQueue {
    /// The queue.
    pub queue: Queue,
    /// Packets that may wait.
    pub limit_packets: u32,
    /// Of the wire.
    pub rate: Rate,
    /// Bytes beside each IP packet that take time at that rate.
    pub overhead_bytes: u32,
}

pub(crate) fn options(kernel: &KernelQueue) -> Options {
    match &kernel.queue {
        Queue::Codel(config) => {
            let Codel { target, interval, ecn, ce_threshold } = *config;
            let options = Options::new("codel")
                .with(codel::TARGET, micros(target))
                .with(codel::LIMIT, kernel.limit_packets)
                .with(codel::INTERVAL, micros(interval))
                .with(codel::ECN, u32::from(ecn));
            match ce_threshold {
                Some(threshold) => options.with(codel::CE_THRESHOLD, micros(threshold)),
                None => options,
            }
        }
        Queue::FqCodel(config) => {
            let FqCodel { codel: Codel { target, interval, ecn, ce_threshold }, flows, quantum_bytes } =
                *config;
            let options = Options::new("fq_codel")
                .with(fq_codel::TARGET, micros(target))
                .with(fq_codel::LIMIT, kernel.limit_packets)
                .with(fq_codel::INTERVAL, micros(interval))
                .with(fq_codel::ECN, u32::from(ecn))
                .with(fq_codel::FLOWS, flows)
                .with(fq_codel::QUANTUM, quantum_bytes)
                .with(fq_codel::MEMORY_LIMIT, u32::MAX);
            match ce_threshold {
                Some(threshold) => options.with(fq_codel::CE_THRESHOLD, micros(threshold)),
                None => options,
            }
        }
    }
}

fn micros(time: Nanos) -> u32 {
    u32::try_from(time.as_ns() / 1_000).unwrap_or(u32::MAX)
}
