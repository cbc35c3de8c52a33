//! What holds back one of several streams, where that is of its own. The flow's finding is of all of them; the kernel's chronographs of each say which of them
//! lack data or a window.

use bdp_model::finding::Limit;
use bdp_model::record::StreamReport;

/// Share of the time from which on one thing holds a stream back.
const MOSTLY: f64 = 0.5;

/// The limit of a stream's own; `None` of one that the congestion window held back, and so the path.
pub fn judge(stream: &StreamReport) -> Option<Limit> {
    let time = stream.time()?;
    let own = [
        (Limit::SlowWriter, time.idle),
        (Limit::ReceiveWindow, time.receive_window),
        (Limit::SendBuffer, time.send_buffer),
    ];
    own.into_iter().find(|&(_, share)| share >= MOSTLY).map(|(limit, _)| limit)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_stream_has_a_limit_of_its_own_for_half_of_the_time() {
        let of = |busy, rwnd, sndbuf| {
            let ms = |ms: u64| Some(ms * 1_000_000);
            judge(&StreamReport {
                took_ns: 1_000_000_000,
                busy_ns: ms(busy),
                rwnd_limited_ns: ms(rwnd),
                sndbuf_limited_ns: ms(sndbuf),
                ..StreamReport::default()
            })
        };
        assert_eq!(of(1000, 0, 0), None);
        assert_eq!(of(1000, 960, 0), Some(Limit::ReceiveWindow));
        assert_eq!(of(1000, 100, 600), Some(Limit::SendBuffer));
        assert_eq!(of(300, 100, 0), Some(Limit::SlowWriter));
        assert_eq!(of(1000, 400, 400), None, "neither for half of the time");
        assert_eq!(
            judge(&StreamReport { took_ns: 1, ..StreamReport::default() }),
            None,
            "nothing is counted"
        );
    }
}
