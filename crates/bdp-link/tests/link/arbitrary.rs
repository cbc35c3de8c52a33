//! Random configurations and arrivals for the properties.

use bdp_link::End;
use bdp_model::link::{DirectionConfig, Loss, QueueLimit};
use bdp_model::units::{ByteCount, Nanos, Rate};
use proptest::prelude::*;

use crate::independent;

/// A packet on its way in, `gap` after the one before.
#[derive(Debug, Clone)]
pub struct Arrival {
    pub from: End,
    pub bytes: usize,
    pub gap: Nanos,
}

pub fn arrival() -> impl Strategy<Value = Arrival> {
    let gap = prop_oneof![3 => Just(0), 4 => 0..200_000u64, 1 => 0..20_000_000u64];
    let bytes = prop_oneof![8..1501usize, Just(1500), Just(40)];
    (end(), bytes, gap).prop_map(|(from, bytes, gap)| Arrival { from, bytes, gap: Nanos(gap) })
}

pub fn end() -> impl Strategy<Value = End> {
    prop_oneof![Just(End::A), Just(End::B)]
}

pub fn direction() -> impl Strategy<Value = DirectionConfig> {
    let rate = prop_oneof![
        1 => Just(None),
        6 => prop_oneof![1_000_000..1_000_000_000u64, 1..1000u64].prop_map(|r| Some(Rate::bps(r))),
    ];
    let delay = prop_oneof![Just(0), 0..50_000_000u64].prop_map(Nanos);
    let loss = prop_oneof![
        Just(Loss::None),
        (0.0..=1.0f64).prop_map(independent),
        (0..20u64).prop_map(Loss::Periodic),
    ];
    let limit = prop_oneof![
        (0..60u64).prop_map(QueueLimit::Packets),
        (0..60_000u64).prop_map(|b| QueueLimit::Bytes(ByteCount::bytes(b))),
        Just(QueueLimit::Unlimited),
    ];
    (rate, 0..100u32, delay, loss, limit).prop_map(|(rate, overhead_bytes, delay, loss, limit)| {
        DirectionConfig { rate, overhead_bytes, delay, loss, limit, ..DirectionConfig::default() }
    })
}
