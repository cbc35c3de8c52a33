//! How a stream used its windows, from its samples.

use crate::finding::threshold::SAMPLES_MIN;
use crate::record::SenderSample;
use crate::statistics::median;

/// How the first stream used its windows.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct WindowUse {
    /// Number of samples behind the shares below.
    pub samples: u64,
    /// Receive window as seen by the sender, median.
    pub receive_bytes: f64,
    /// Bytes in flight, median.
    pub in_flight_bytes: f64,
    /// Share of samples in which no further segment fits the receive window while the congestion window has room.
    pub receive_full: f64,
    /// Share of samples in which the congestion window is full and the receive window has room.
    pub congestion_full: f64,
    /// Share of samples in which both windows have much room: the sender's kernel has nothing to send.
    pub starved: f64,
    /// The largest receive window.
    pub receive_largest_bytes: f64,
    /// The smallest receive window.
    pub receive_smallest_bytes: f64,
    /// Share of samples in which the receive window is less than half of the largest so far. The window never shrinks
    /// while the receiver reads what arrives.
    pub receive_shrunk: f64,
}

impl WindowUse {
    /// Evaluates these samples; `None` without a segment size, or if fewer than [`SAMPLES_MIN`] have segments in flight,
    /// congestion window and receive window. A requested window counts as the largest: the handshake's may be larger
    /// and shrinks to it.
    pub fn of<'a>(
        samples: impl IntoIterator<Item = &'a SenderSample>,
        mss_bytes: Option<u64>,
        asked_bytes: Option<u64>,
    ) -> Option<Self> {
        let mss = mss_bytes.filter(|&mss| mss > 0)?;
        let whole: Vec<(u64, u64, u64)> = samples
            .into_iter()
            .filter_map(|s| Some((u64::from(s.unacked?), u64::from(s.cwnd?), s.snd_wnd_bytes?)))
            .collect();
        if whole.len() < SAMPLES_MIN {
            return None;
        }
        let share = |full: &dyn Fn(u64, u64, u64) -> bool| {
            whole.iter().filter(|&&(unacked, cwnd, window)| full(unacked, cwnd, window)).count() as f64
                / whole.len() as f64
        };
        let (mut largest, mut smallest, mut shrunk) = (0, u64::MAX, 0);
        for &(_, _, window) in &whole {
            largest = largest.max(asked_bytes.map_or(window, |asked| window.min(asked)));
            smallest = smallest.min(window);
            shrunk += u64::from(window < largest / 2);
        }
        let mut windows: Vec<f64> = whole.iter().map(|w| w.2 as f64).collect();
        let mut in_flight: Vec<f64> = whole.iter().map(|w| (w.0 * mss) as f64).collect();
        Some(Self {
            samples: whole.len() as u64,
            receive_bytes: median(&mut windows)?,
            in_flight_bytes: median(&mut in_flight)?,
            receive_full: share(&|unacked, cwnd, window| unacked * mss + mss > window && cwnd > unacked),
            congestion_full: share(&|unacked, cwnd, window| {
                unacked + 1 >= cwnd && unacked * mss + mss <= window
            }),
            starved: share(&|unacked, cwnd, window| {
                unacked * 5 < cwnd * 4 && unacked * mss * 5 < window * 4 && unacked * mss + mss <= window
            }),
            receive_largest_bytes: largest as f64,
            receive_smallest_bytes: smallest as f64,
            receive_shrunk: shrunk as f64 / whole.len() as f64,
        })
    }
}
