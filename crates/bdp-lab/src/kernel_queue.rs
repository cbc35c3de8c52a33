//! Options that make the kernel's queues like the emulator's.

use bdp_model::link::queue::{Queue, QueueParameter, QueueValue, Red};
use bdp_model::units::{Nanos, Rate};
use bdp_sys::qdisc_managed::{Options, cake, red};

use serde::{Deserialize, Serialize};

/// An actively managed kernel queue, before a rate.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
pub struct KernelQueue {
    /// The queue.
    pub queue: Queue,
    /// Packets that may wait; for RED, IP bytes.
    pub limit_packets: u32,
    /// Rate of the wire.
    pub rate: Rate,
    /// Additional wire bytes per IP packet.
    pub overhead_bytes: u32,
}

/// More than any queue uses of the kernel's memory: the limit decides.
const MEMORY: u32 = 1 << 30;

pub(crate) fn options(kernel: &KernelQueue) -> Options {
    let kind = kernel.queue.kind();
    let mut options = match &kernel.queue {
        Queue::Red(config) => red_options(config, kernel),
        Queue::Cake(config) => Options::new(kind.name)
            .with_bytes(cake::BASE_RATE64, &(kernel.rate.as_bps() / 8).to_ne_bytes())
            .with(cake::OVERHEAD, kernel.overhead_bytes)
            .with(cake::TARGET, micros(config.rtt) / 20)
            .with(cake::MEMORY, MEMORY),
        _ => Options::new(kind.name),
    };
    if let Some(number) = kind.limit_attribute {
        options = options.with(number, kernel.limit_packets);
    }
    if let Some((number, bytes)) = kind.memory {
        options = options.with(number, bytes);
    }
    let mut queue = kernel.queue;
    queue.parameters().into_iter().fold(options, |options, QueueParameter { value, attribute, .. }| {
        let Some(number) = attribute else { return options };
        match value {
            QueueValue::Time(time, _) => options.with(number, micros(*time)),
            QueueValue::OptionalTime(None) => options,
            QueueValue::OptionalTime(Some(time)) => options.with(number, micros(*time)),
            QueueValue::Count(count, _) | QueueValue::Bytes(count, _) => options.with(number, *count),
            QueueValue::SmallCount(count, _) => options.with_bytes(number, &[*count as u8]),
            QueueValue::Flag(flag) => options.with(number, u32::from(*flag)),
            QueueValue::SmallFlag(flag) => options.with_bytes(number, &[u8::from(*flag)]),
            QueueValue::Fraction(share) => options.with(number, of_two_to_32(share.fraction())),
            QueueValue::Choice(choice) => options.with(number, choice.words()[choice.index()].1),
        }
    })
}

/// A fraction as parts of 2^32.
fn of_two_to_32(share: f64) -> u32 {
    (share * 4_294_967_296.0) as u32
}

/// RED's parameters as tc(8) derives them.
fn red_options(config: &Red, kernel: &KernelQueue) -> Options {
    let flags = if config.ecn { red::ECN } else { 0 } | if config.harddrop { red::HARDDROP } else { 0 };
    let weight = config.weight_log().unwrap_or(9);
    // The probability divided by the distance of the thresholds, as a power of two.
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
        .with(red::MAX_P, of_two_to_32(config.probability.fraction()))
}

fn micros(time: Nanos) -> u32 {
    u32::try_from(time.as_ns() / 1_000).unwrap_or(u32::MAX)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The kernel's queues get the same attributes in every version.
    #[test]
    fn the_options_of_each_queue_are_pinned() {
        let pinned: [(&str, u64); 6] = [
            ("codel", 0xc89d_956d_986e_2767),
            ("fq_codel", 0x6f8d_5914_29f9_eec6),
            ("pie", 0xa6ef_6811_81f0_d901),
            ("red", 0x9ef4_2c8e_510c_e777),
            ("cake", 0xe6a2_d27a_a1f9_eff0),
            ("dualpi2", 0xe5f4_c346_d529_d298),
        ];
        for (kind, wanted) in pinned {
            let queue = Queue::of_kind(kind).unwrap();
            let kernel =
                KernelQueue { queue, limit_packets: 77, rate: Rate::bps(10_000_000), overhead_bytes: 38 };
            let hash =
                format!("{:?}", options(&kernel)).bytes().fold(0xcbf2_9ce4_8422_2325, |hash: u64, byte| {
                    (hash ^ u64::from(byte)).wrapping_mul(0x0100_0000_01b3)
                });
            assert_eq!(hash, wanted, "{kind}");
        }
    }
}
