//! Readings over time in bounded memory: if there are too many, every second one is dropped.

/// Most readings kept.
const MOST: usize = 1024;

/// Readings at least a step apart; the step doubles when there are too many.
#[derive(Debug, Clone)]
pub(super) struct Series<T> {
    kept: Vec<(u64, T)>,
    step_ns: u64,
}

impl<T> Default for Series<T> {
    fn default() -> Self {
        Self { kept: Vec::new(), step_ns: 1_000_000 }
    }
}

impl<T> Series<T> {
    /// Heap memory in use, bytes.
    pub fn held_bytes(&self) -> usize {
        self.kept.capacity() * size_of::<(u64, T)>()
    }

    /// Whether a reading at this moment would be kept.
    pub fn wants(&self, at_ns: u64) -> bool {
        self.kept.last().is_none_or(|(last, _)| at_ns >= last + self.step_ns)
    }

    /// Whether the last reading is from this moment, as with an acknowledgement and the data it triggers; the later one replaces it.
    pub fn has_at(&self, at_ns: u64) -> bool {
        const MOMENT_NS: u64 = 20_000;
        self.kept.last().is_some_and(|(last, _)| at_ns.saturating_sub(*last) <= MOMENT_NS)
    }

    /// Adds a reading.
    pub fn push(&mut self, at_ns: u64, reading: T) {
        if self.has_at(at_ns) {
            if let Some(last) = self.kept.last_mut() {
                last.1 = reading;
            }
            return;
        }
        if self.kept.is_empty() {
            // Most connections of a large capture have only one.
            self.kept.reserve_exact(1);
        }
        self.kept.push((at_ns, reading));
        if self.kept.len() >= MOST {
            self.step_ns *= 2;
            let step_ns = self.step_ns;
            let mut last = None::<u64>;
            self.kept.retain(|&(at, _)| {
                let stays = last.is_none_or(|last| at >= last + step_ns);
                if stays {
                    last = Some(at);
                }
                stays
            });
        }
    }

    /// Modifies the readings since a moment, latest first.
    pub fn change_since(&mut self, from_ns: u64, mut change: impl FnMut(&mut T)) {
        for (at, reading) in self.kept.iter_mut().rev() {
            if *at < from_ns {
                return;
            }
            change(reading);
        }
    }

    /// Returns the readings in order of time.
    pub fn iter(&self) -> impl Iterator<Item = &(u64, T)> {
        self.kept.iter()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_long_series_keeps_its_span_and_no_more_than_so_many() {
        let mut series = Series::default();
        for at in (0..3_600_000_000_000_u64).step_by(700_000) {
            if series.wants(at) {
                series.push(at, ());
            }
        }
        let kept: Vec<u64> = series.iter().map(|&(at, ())| at).collect();
        assert!((MOST / 4..=MOST).contains(&kept.len()), "{}", kept.len());
        assert_eq!(kept[0], 0);
        assert!(*kept.last().unwrap() > 3_500_000_000_000);
        assert!(kept.windows(2).all(|pair| pair[1] > pair[0]));
    }
}
