//! The options by which the kernel's queues are made like the emulator's.

use bdp_model::queue::{Codel, FqCodel, Isolation, Queue, Red, Tins};
use bdp_model::units::{Nanos, Rate};
use bdp_sys::qdisc_managed::{Options, cake, codel, dual_pi2, fq_codel, pie, red};

use serde::{Deserialize, Serialize};

/// A queue of the kernel's that manages itself, before a rate.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
pub struct KernelQueue {
    /// The queue.
    pub queue: Queue,
    /// Packets that may wait; of RED IP bytes.
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
        Queue::Pie(config) => Options::new("pie")
            .with(pie::TARGET, micros(config.target))
            .with(pie::LIMIT, kernel.limit_packets)
            .with(pie::TUPDATE, micros(config.tupdate))
            .with(pie::ALPHA, config.alpha)
            .with(pie::BETA, config.beta)
            .with(pie::ECN, u32::from(config.ecn)),
        Queue::Red(config) => red_options(config, kernel),
        Queue::Cake(config) => {
            let tins = match config.diffserv {
                Tins::Diffserv3 => 0,
                Tins::Diffserv4 => 1,
                Tins::Besteffort => 3,
            };
            let isolation = match config.isolation {
                Isolation::Flows => 4,
                Isolation::TripleIsolate => 7,
            };
            Options::new("cake")
                .with_bytes(cake::BASE_RATE64, &(kernel.rate.as_bps() / 8).to_ne_bytes())
                .with(cake::DIFFSERV_MODE, tins)
                .with(cake::FLOW_MODE, isolation)
                .with(cake::OVERHEAD, kernel.overhead_bytes)
                .with(cake::RTT, micros(config.rtt))
                .with(cake::TARGET, micros(config.rtt) / 20)
                .with(cake::MEMORY, 1 << 30)
        }
        Queue::DualPi2(config) => Options::new("dualpi2")
            .with(dual_pi2::LIMIT, kernel.limit_packets)
            .with(dual_pi2::MEMORY_LIMIT, 1 << 30)
            .with(dual_pi2::TARGET, micros(config.target))
            .with(dual_pi2::TUPDATE, micros(config.tupdate))
            .with(dual_pi2::ALPHA, config.alpha)
            .with(dual_pi2::BETA, config.beta)
            .with(dual_pi2::STEP_THRESH, micros(config.step_thresh))
            .with_bytes(dual_pi2::COUPLING, &[config.coupling_factor as u8])
            .with_bytes(dual_pi2::DROP_OVERLOAD, &[u8::from(config.drop_on_overload)])
            .with_bytes(dual_pi2::C_PROTECTION, &[config.c_protection_percent as u8]),
    }
}

impl KernelQueue {
    /// Whether it keeps to its rate by itself.
    pub(crate) fn shapes(&self) -> bool {
        matches!(self.queue, Queue::Cake(_))
    }
}

/// RED's parameters as tc(8) derives them.
fn red_options(config: &Red, kernel: &KernelQueue) -> Options {
    let flags = if config.ecn { red::ECN } else { 0 } | if config.harddrop { red::HARDDROP } else { 0 };
    let weight = config.weight_log().unwrap_or(9);
    // The probability over the distance of the thresholds, as a power of two.
    let mut share = config.probability.fraction() / f64::from(config.max_bytes - config.min_bytes);
    let mut power = 0u8;
    while power < 31 && share <= 1.0 {
        share *= 2.0;
        power += 1;
    }
    // The shift of an average by idle time, in units of 2^log microseconds.
    let packet_us = f64::from(config.avpkt_bytes) * 8e6 / kernel.rate.as_bps() as f64;
    let decay = -(1.0 - 1.0 / f64::from(1u32 << weight)).log2() / packet_us;
    let longest = 31.0 / decay;
    let log = (0..31u8).find(|&log| longest / f64::from(1u32 << log) < 512.0).unwrap_or(31);
    let mut table = [0u8; 256];
    for (unit, shift) in (0u32..).zip(&mut table).skip(1) {
        *shift = (f64::from(unit) * f64::from(1u32 << log) * decay).min(31.0) as u8;
    }
    table[255] = 31;
    let mut parameters = Vec::new();
    for word in [kernel.limit_packets, config.min_bytes, config.max_bytes] {
        parameters.extend_from_slice(&word.to_ne_bytes());
    }
    parameters.extend_from_slice(&[weight, power, log, flags]);
    Options::new("red")
        .with_bytes(red::PARAMETERS, &parameters)
        .with_bytes(red::IDLE, &table)
        .with(red::MAX_P, (config.probability.fraction() * 4_294_967_296.0) as u32)
}

fn micros(time: Nanos) -> u32 {
    u32::try_from(time.as_ns() / 1_000).unwrap_or(u32::MAX)
}
