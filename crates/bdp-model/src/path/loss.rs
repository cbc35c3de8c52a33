//! Patterns of segment loss that the models of a rate with loss distinguish.

use crate::link::{DirectionConfig, Loss};

/// The loss pattern of data segments on a path.
#[derive(Debug, Clone, Copy, PartialEq, Default)]
pub enum SegmentLoss {
    /// No loss.
    #[default]
    None,
    /// Independent loss of each segment with this probability.
    Independent(f64),
    /// Periodic loss: one of every so many segments, as a share.
    Periodic(f64),
    /// A pattern without a model: bursts (Gilbert-Elliott), lists, or periodic loss combined with another.
    Unmodelled,
}

impl SegmentLoss {
    /// Combines the directions that a flow's segments cross. A corrupted segment counts as lost: its checksum is wrong.
    pub fn of<'a>(directions: impl IntoIterator<Item = &'a DirectionConfig>) -> Self {
        directions.into_iter().fold(Self::None, |so_far, direction| {
            let corrupt = match direction.corrupt.fraction() {
                0.0 => Self::None,
                p => Self::Independent(p),
            };
            so_far.and(Self::by(&direction.loss)).and(corrupt)
        })
    }

    /// The pattern that each of several senders sees when they share the path: periodic loss of all packets is not periodic for one sender.
    pub fn shared(self) -> Self {
        match self {
            Self::Periodic(_) => Self::Unmodelled,
            other => other,
        }
    }

    fn by(loss: &Loss) -> Self {
        match loss {
            Loss::None | Loss::Periodic(0) => Self::None,
            Loss::List(packets) if packets.is_empty() => Self::None,
            Loss::List(_) | Loss::OverTime(_) | Loss::States { .. } => Self::Unmodelled,
            Loss::Periodic(_) => Self::Periodic(loss.probability()),
            Loss::Independent(_) if loss.probability() == 0.0 => Self::None,
            Loss::Independent(_) => Self::Independent(loss.probability()),
            &Loss::GilbertElliott { to_bad, to_good, loss_good, loss_bad } => {
                let forgets = to_bad.fraction() + to_good.fraction() == 1.0 || loss_good == loss_bad;
                match loss.probability() {
                    // A lossy bad state may be reached only later, but it still counts.
                    0.0 if to_bad.fraction() == 0.0 || loss_bad.fraction() == 0.0 => Self::None,
                    p if forgets => Self::Independent(p),
                    _ => Self::Unmodelled,
                }
            }
        }
    }

    fn and(self, other: Self) -> Self {
        match (self, other) {
            (Self::None, one) | (one, Self::None) => one,
            (Self::Independent(p), Self::Independent(q)) => Self::Independent(1.0 - (1.0 - p) * (1.0 - q)),
            _ => Self::Unmodelled,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::units::Probability;

    fn of(losses: impl IntoIterator<Item = Loss>) -> SegmentLoss {
        let directions: Vec<DirectionConfig> =
            losses.into_iter().map(|loss| DirectionConfig { loss, ..DirectionConfig::default() }).collect();
        SegmentLoss::of(&directions)
    }

    fn p(fraction: f64) -> Probability {
        Probability::new(fraction).unwrap()
    }

    #[test]
    fn patterns_are_told_apart() {
        assert_eq!(of([]), SegmentLoss::None);
        assert_eq!(of([Loss::None, Loss::Periodic(0), Loss::List(vec![])]), SegmentLoss::None);
        assert_eq!(of([Loss::Independent(p(0.0)), Loss::Periodic(1000)]), SegmentLoss::Periodic(0.001));
        assert_eq!(of([Loss::Periodic(1000)]).shared(), SegmentLoss::Unmodelled);
        let SegmentLoss::Independent(twice) = of([Loss::Independent(p(0.1)), Loss::Independent(p(0.1))])
        else {
            panic!()
        };
        assert!((twice - 0.19).abs() < 1e-12, "{twice}");
        for unmodelled in [
            vec![Loss::List(vec![3])],
            vec![Loss::Periodic(1000), Loss::Periodic(500)],
            vec![Loss::Independent(p(0.1)), Loss::Periodic(1000)],
        ] {
            assert_eq!(of(unmodelled), SegmentLoss::Unmodelled);
        }
        let corrupt = DirectionConfig { corrupt: p(0.25), ..DirectionConfig::default() };
        assert_eq!(SegmentLoss::of([&corrupt]), SegmentLoss::Independent(0.25));
    }

    #[test]
    fn gilbert_and_elliott_is_independent_only_where_it_has_no_memory() {
        let ge = |to_bad, to_good, good, bad| {
            of([Loss::GilbertElliott {
                to_bad: p(to_bad),
                to_good: p(to_good),
                loss_good: p(good),
                loss_bad: p(bad),
            }])
        };
        assert_eq!(ge(0.001, 0.1, 0.0, 0.5), SegmentLoss::Unmodelled);
        assert_eq!(ge(0.25, 0.75, 0.0, 0.5), SegmentLoss::Independent(0.125));
        assert_eq!(ge(0.01, 0.1, 0.25, 0.25), SegmentLoss::Independent(0.25));
        assert_eq!(ge(0.0, 0.1, 0.0, 1.0), SegmentLoss::None);
        assert_eq!(ge(0.1, 0.1, 0.0, 0.0), SegmentLoss::None);
    }
}
