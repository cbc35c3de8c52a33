//! Data between two progress reports, of which intervals are made.

use bdp_flow::session::progress::{ArrivalReading, Progress, Stage};
use bdp_model::measurement::Direction;
use bdp_model::units::Nanos;
use bdp_report::{Part, Piece, ReceiverReading, SenderReading};
use bdp_sys::tcp_info::TcpInfo;

/// The consecutive pieces of a stage.
#[derive(Debug, Default)]
pub struct Pieces {
    /// End of the last piece.
    at_ns: u64,
}

impl Pieces {
    /// The piece since the previous report; `None` if no flow runs. The last one ends with the time of the test, without the waiting after it.
    pub fn next(&mut self, progress: &Progress) -> Option<Piece> {
        let (from_ns, mut to_ns) = (self.at_ns, progress.elapsed.as_ns());
        if progress.is_last && progress.total > Nanos::ZERO {
            to_ns = to_ns.min(progress.total.as_ns());
        }
        let is_flow = matches!(progress.stage, Stage::Direction(_) | Stage::Both);
        if !is_flow || to_ns <= from_ns {
            return None;
        }
        self.at_ns = to_ns;
        let span_ns = progress.span.map_or(to_ns - from_ns, Nanos::as_ns);
        Some(Piece { from_ns, to_ns, parts: parts(progress, span_ns as f64 / 1e9) })
    }
}

/// Data of each direction in this many seconds.
fn parts(progress: &Progress, seconds: f64) -> Vec<Part> {
    let directions = progress.goodput_bps.iter();
    let part = |&(way, bps): &(_, f64)| {
        let streams =
            progress.stream_goodput_bps.iter().find(|(of, streams)| *of == way && !streams.is_empty());
        let senders = progress.sender_infos.iter().find(|(of, _)| *of == way);
        let receivers = progress.arrivals.iter().find(|(of, _)| *of == way);
        let bytes = |bps: f64| (bps * seconds / 8.0).round();
        Part {
            way,
            stream_bytes: match streams {
                Some((_, streams)) => streams.iter().copied().map(bytes).collect(),
                None => vec![bytes(bps)],
            },
            senders: senders.map_or_else(Vec::new, |(_, infos)| infos.iter().map(reading).collect()),
            receivers: receivers.map_or_else(Vec::new, |(_, all)| all.iter().map(arrived).collect()),
            datagram_bytes: progress.datagram_bytes.filter(|_| way == Direction::To),
        }
    };
    directions.map(part).collect()
}

fn arrived(reading: &ArrivalReading) -> ReceiverReading {
    let ArrivalReading { sent, received, jitter_ns } = *reading;
    ReceiverReading { sent, received, jitter_ns }
}

/// A kernel's report of a stream, in the form of intervals.
pub fn reading(info: &TcpInfo) -> SenderReading {
    SenderReading {
        retransmits: info.total_retrans.map_or(0, u64::from),
        cwnd_bytes: u64::from(info.cwnd_segments.unwrap_or(0)) * u64::from(info.snd_mss.unwrap_or(0)),
        window_bytes: info.snd_wnd.map_or(0, u64::from),
        rtt_ns: info.rtt_ns.unwrap_or(0),
        rtt_variation_ns: info.rtt_variation_ns.unwrap_or(0),
        path_mtu: info.pmtu.map_or(0, u64::from),
        reorder_seen: info.reorder_seen.map_or(0, u64::from),
    }
}
