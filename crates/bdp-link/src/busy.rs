//! The rate that a direction achieved while its wire was never idle.

use bdp_model::units::Nanos;

/// Shorter stretches tell more of the driver's jitter than of the rate.
const SHORTEST: Nanos = Nanos::millis(100);

/// Follows the stretches in which each packet's serialisation began the moment the previous one ended.
///
/// Measured between releases: the first packet of a stretch only marks its beginning. Propagation is the same for
/// all packets, so it cancels out.
#[derive(Debug, Clone, Default)]
pub(crate) struct BusyMeter {
    current: Option<Stretch>,
    longest: Span,
}

#[derive(Debug, Clone)]
struct Stretch {
    first_release: Nanos,
    bits: u64,
}

#[derive(Debug, Clone, Default)]
struct Span {
    length: Nanos,
    bits: u64,
}

impl BusyMeter {
    /// Notes a packet's release; `continues` says that the wire was not idle before it.
    pub(crate) fn release(&mut self, wire_bits: u64, continues: bool, now: Nanos) {
        match &mut self.current {
            Some(stretch) if continues => {
                stretch.bits = stretch.bits.saturating_add(wire_bits);
                let length = now.saturating_sub(stretch.first_release);
                if length >= self.longest.length {
                    self.longest = Span { length, bits: stretch.bits };
                }
            }
            current => *current = Some(Stretch { first_release: now, bits: 0 }),
        }
    }

    /// Over the longest stretch, bit/s; `None` where none lasted 100 ms.
    pub(crate) fn rate_bps(&self) -> Option<f64> {
        let Span { length, bits } = self.longest;
        (length >= SHORTEST).then(|| bits as f64 / length.as_secs_f64())
    }
}
