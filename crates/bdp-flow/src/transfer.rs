//! What both ends report of a flow, joined.

use bdp_model::flow::FlowSpec;
use bdp_model::flow::udp::UdpReport;
use bdp_model::record::{RttReport, Transfer, WindowReport};
use bdp_model::statistics::median;
use bdp_wire::control::{Received, Sent};

/// Returns the transfer of which the two ends report so; findings are added elsewhere.
pub fn transfer(
    received: Received,
    sent: Sent,
    window: WindowReport,
    rtt_ns: RttReport,
    udp: Option<UdpReport>,
) -> Transfer {
    Transfer {
        goodput_bps: received.goodput_bps(),
        duration_ns: received.duration_ns,
        omit_ns: received.counted_from.at_ns,
        stream_goodput_bps: received.stream_goodput_bps(),
        window,
        rtt_ns,
        retransmits: sent.retransmits,
        needless_retransmits: sent.needless_retransmits,
        congestion_control: sent.congestion,
        mss_bytes: sent.mss,
        send_buffer_bytes: sent.send_buffer_bytes,
        sender_cpu: sent.cpu,
        receiver_cpu: received.cpu,
        sender_thread_cpu: sent.thread_cpu,
        receiver_thread_cpu: received.thread_cpu,
        sender_window_scaling: sent.window_scaling,
        receiver_window_scaling: received.window_scaling,
        connection: sent.connection.or(received.connection),
        received: received.samples,
        sent: sent.samples,
        loss_episodes: sent.loss_episodes,
        streams: sent.streams,
        findings: Vec::new(),
        udp,
    }
}

/// Returns the sizes of a TCP flow's window, without how it was set and whether it is what was requested.
pub fn window(spec: &FlowSpec, received: &Received, sent: &Sent) -> WindowReport {
    let mut seen = sent.windows_seen(spec.omit);
    WindowReport {
        asked_bytes: spec.window.map(|w| w.as_bytes()),
        socket_buffer_bytes: received.receive_buffer_bytes,
        on_the_wire_bytes: median(&mut seen).map(|w| w as u64),
        on_the_wire_max_bytes: seen.last().map(|&w| w as u64),
        ..WindowReport::default()
    }
}
