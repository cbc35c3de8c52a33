//! A reading of `TCP_INFO` at the sender: figures of a single connection, not sums of several.

use bdp_model::record::{CongestionState, SenderSample, StreamReport};
use bdp_sys::tcp_info::TcpInfo;

/// The kernel's least round trip before there is one: all ones, in microseconds.
const NO_RTT_NS: u64 = u32::MAX as u64 * 1_000;

/// Records windows, round trips, clocks and states of a connection.
pub fn note_connection(sample: &mut SenderSample, info: &TcpInfo) {
    sample.unacked = info.unacked_segments;
    sample.cwnd = info.cwnd_segments;
    sample.snd_wnd_bytes = info.snd_wnd.map(u64::from);
    sample.srtt_ns = info.rtt_ns;
    sample.busy_ns = info.busy_ns;
    sample.rwnd_limited_ns = info.rwnd_limited_ns;
    sample.sndbuf_limited_ns = info.sndbuf_limited_ns;
    sample.congestion_state = info.congestion_state.and_then(CongestionState::of_linux);
    sample.ssthresh = info.ssthresh_segments;
    sample.lost = info.lost_segments;
    sample.reordering = info.reordering;
    sample.min_rtt_ns = info.min_rtt_ns.filter(|&ns| ns < NO_RTT_NS);
    sample.delivery_rate_bps = info.delivery_rate_bps;
    sample.app_limited = info.app_limited;
    sample.pacing_bps = info.pacing_rate_bps;
    sample.not_sent_bytes = info.notsent_bytes;
}

/// Returns the report of one of several streams at this time.
pub fn stream_report(at_ns: u64, info: &TcpInfo) -> StreamReport {
    StreamReport {
        took_ns: at_ns,
        acked_bytes: info.bytes_acked,
        retransmits: info.total_retrans.map(u64::from),
        srtt_ns: info.rtt_ns,
        cwnd: info.cwnd_segments,
        busy_ns: info.busy_ns,
        rwnd_limited_ns: info.rwnd_limited_ns,
        sndbuf_limited_ns: info.sndbuf_limited_ns,
        limit: None,
    }
}
