//! Random configurations and arrivals for the properties.

use bdp_link::End;
use bdp_model::link::{
    DirectionConfig, Jitter, JitterDistribution, LinkConfig, Loss, Medium, Policer, QueueLimit, Reorder,
    Turns,
};
use bdp_model::units::{ByteCount, Nanos, Offset, Probability, Rate};
use proptest::prelude::*;

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

/// A direction without chance: what the oracle knows.
pub fn certain() -> impl Strategy<Value = DirectionConfig> {
    let rate = prop_oneof![
        1 => Just(None),
        6 => prop_oneof![1_000_000..1_000_000_000u64, 1..1000u64].prop_map(|r| Some(Rate::bps(r))),
    ];
    let delay = prop_oneof![Just(0), 0..50_000_000u64].prop_map(Nanos);
    let loss = prop_oneof![
        Just(Loss::None),
        (0..20u64).prop_map(Loss::Periodic),
        prop::collection::vec(0..300u64, 0..30).prop_map(Loss::List),
    ];
    let limit = prop_oneof![
        (0..60u64).prop_map(QueueLimit::Packets),
        (0..60_000u64).prop_map(|b| QueueLimit::Bytes(ByteCount::bytes(b))),
        Just(QueueLimit::Unlimited),
    ];
    let policer = (1..100_000_000u64, 0..5_000u64)
        .prop_map(|(rate, burst)| Policer { rate: Rate::bps(rate), burst: ByteCount::bytes(burst) });
    let drop_above = prop_oneof![3 => Just(None), 1 => (8..1500u32).prop_map(Some)];
    (rate, 0..100u32, delay, loss, limit, seldom(policer), drop_above).prop_map(
        |(rate, overhead_bytes, delay, loss, limit, policer, drop_above)| DirectionConfig {
            rate,
            overhead_bytes,
            delay,
            loss,
            limit,
            policer,
            drop_above,
            ..DirectionConfig::default()
        },
    )
}

/// A direction with everything that there is.
pub fn direction() -> impl Strategy<Value = DirectionConfig> {
    let loss = prop_oneof![
        2 => Just(None),
        1 => share().prop_map(|p| Some(Loss::Independent(p))),
        1 => (share(), share(), share(), share()).prop_map(|(to_bad, to_good, loss_good, loss_bad)| {
            Some(Loss::GilbertElliott { to_bad, to_good, loss_good, loss_bad })
        }),
    ];
    let offsets = prop::collection::vec(-5_000_000..5_000_000i64, 1..6);
    let distribution = prop_oneof![
        (0..5_000_000u64).prop_map(|ns| JitterDistribution::Uniform { spread: Nanos(ns) }),
        (0..5_000_000u64).prop_map(|ns| JitterDistribution::Normal { deviation: Nanos(ns) }),
        offsets.prop_map(|all| JitterDistribution::Table(all.into_iter().map(Offset::ns).collect())),
    ];
    let jitter = (distribution, any::<bool>()).prop_map(|(distribution, reorder)| Jitter {
        distribution,
        reorder,
        correlation_time: None,
    });
    let reorder =
        (share(), 0..5_000_000u64).prop_map(|(probability, by)| Reorder { probability, by: Nanos(by) });
    let threshold = prop_oneof![
        (0..20u64).prop_map(QueueLimit::Packets),
        (0..20_000u64).prop_map(|b| QueueLimit::Bytes(ByteCount::bytes(b))),
    ];
    let rest = (seldom(jitter), seldom(reorder), seldom(threshold), seldom(share()), seldom(share()));
    (certain(), loss, rest).prop_map(
        |(certain, loss, (jitter, reorder, ecn_threshold, corrupt, duplicate))| DirectionConfig {
            loss: loss.unwrap_or(certain.loss),
            jitter,
            reorder,
            ecn_threshold,
            corrupt: corrupt.unwrap_or_default(),
            duplicate: duplicate.unwrap_or_default(),
            ..certain
        },
    )
}

/// A link of two such directions on a medium of either kind.
pub fn link() -> impl Strategy<Value = LinkConfig> {
    let turns = (0..1_000_000u64, 0..5_000_000u64)
        .prop_map(|(guard, turn)| Medium::HalfDuplex(Turns { guard: Nanos(guard), turn: Nanos(turn) }));
    let medium = prop_oneof![Just(Medium::FullDuplex), turns];
    (direction(), direction(), medium).prop_map(|(forward, reverse, medium)| LinkConfig {
        forward,
        reverse,
        medium,
        ..LinkConfig::default()
    })
}

fn share() -> impl Strategy<Value = Probability> {
    prop_oneof![Just(0.0), Just(1.0), 0.0..=1.0f64].prop_map(|p| Probability::new(p).expect("a fraction"))
}

fn seldom<T: Clone + std::fmt::Debug>(value: impl Strategy<Value = T>) -> impl Strategy<Value = Option<T>> {
    prop::option::weighted(0.3, value)
}
