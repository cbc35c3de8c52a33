//! What holds back a single one of several streams. The flow's finding is about all of them; the kernel's chronographs show which of them
//! lack data or a window.

use bdp_model::finding::Limit;
use bdp_model::record::StreamReport;

/// Share of the time from which one limit holds a stream back.
const MOSTLY: f64 = 0.5;

/// The stream's own limit, if it differs from that of the flow; `None` if nothing of its own held it back for half of the time.
pub fn judge(stream: &StreamReport, flow: Option<Limit>) -> Option<Limit> {
    let time = stream.time()?;
    let window = match flow {
        // A standing queue fills the window, too.
        Some(Limit::PathRate | Limit::Ceiling | Limit::CrossTraffic | Limit::AskedRate) => None,
        // A program that does not read closes it.
        Some(Limit::SlowReader) => Some(Limit::SlowReader),
        _ => Some(Limit::ReceiveWindow),
    };
    let own = [
        (Some(Limit::SlowWriter), time.idle),
        (window, time.receive_window),
        (Some(Limit::SendBuffer), time.send_buffer),
    ];
    own.into_iter().find(|&(_, share)| share >= MOSTLY).and_then(|(limit, _)| limit)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_stream_has_a_limit_of_its_own_for_half_of_the_time() {
        let beside = |flow: Option<Limit>, busy, rwnd, sndbuf| {
            let ms = |ms: u64| Some(ms * 1_000_000);
            let stream = StreamReport {
                took_ns: 1_000_000_000,
                busy_ns: ms(busy),
                rwnd_limited_ns: ms(rwnd),
                sndbuf_limited_ns: ms(sndbuf),
                ..StreamReport::default()
            };
            judge(&stream, flow)
        };
        let of = |busy, rwnd, sndbuf| beside(None, busy, rwnd, sndbuf);
        assert_eq!(of(1000, 0, 0), None);
        assert_eq!(of(1000, 960, 0), Some(Limit::ReceiveWindow));
        assert_eq!(of(1000, 100, 600), Some(Limit::SendBuffer));
        assert_eq!(of(300, 100, 0), Some(Limit::SlowWriter));
        assert_eq!(of(1000, 400, 400), None, "neither for half of the time");
        assert_eq!(beside(Some(Limit::SlowReader), 1000, 960, 0), Some(Limit::SlowReader));
        assert_eq!(beside(Some(Limit::PathRate), 1000, 960, 0), None, "a queue fills the window");
        let nothing = StreamReport { took_ns: 1, ..StreamReport::default() };
        assert_eq!(judge(&nothing, None), None, "nothing is counted");
    }
}
