//! The order in which a transfer's members are written.

use bdp_model::record::{EpisodeKind, LossEpisode, StreamReport, Transfer};
use serde::Serialize;

use crate::samples::{measured, record};

const FLOW: &str = "from to start_ns rtt_ns goodput_bps received_bytes duration_ns omit_ns stream_goodput_bps \
    retransmits congestion_control mss_bytes window sender_cpu receiver_cpu received sent loss_episodes streams udp \
    needless_retransmits send_buffer_bytes sender_thread_cpu receiver_thread_cpu sender_window_scaling \
    receiver_window_scaling connection findings";
const DIRECTION: &str = "direction goodput_bps bytes duration_ns omit_ns spread stream_goodput_bps window rtt_ns \
    responsiveness_rpm responsiveness each_way_ns latency_parts_ns probes retransmits needless_retransmits \
    congestion_control mss_bytes send_buffer_bytes sender_cpu receiver_cpu sender_thread_cpu receiver_thread_cpu \
    sender_window_scaling receiver_window_scaling connection send_method receive_method sender_threads \
    receiver_threads payload_check ended received sent loss_episodes streams findings pacing udp";

/// Optional members of a transfer.
const OPTIONAL: [&str; 3] = ["loss_episodes", "streams", "connection"];

fn fill(transfer: &mut Transfer) {
    transfer.loss_episodes = vec![LossEpisode {
        at_ns: 1,
        took_ns: 2,
        kind: EpisodeKind::Timeout,
        cwnd: 3,
        unacked: 4,
        srtt_ns: 5,
        delivered: 6,
        delivery_rate_bps: None,
        slow_start: false,
        retransmits: 7,
    }];
    transfer.streams = vec![StreamReport::default()];
    transfer.connection = Some(Default::default());
}

fn members(of: &impl Serialize) -> Vec<String> {
    serde_json::to_value(of).unwrap().as_object().unwrap().keys().cloned().collect()
}

fn without_optional(all: &str) -> Vec<&str> {
    all.split(' ').filter(|name| !OPTIONAL.contains(name)).collect()
}

#[test]
fn flow_keeps_its_members_and_their_order() {
    let mut flow = record().flows.remove(0);
    assert_eq!(members(&flow), without_optional(FLOW));
    fill(&mut flow);
    assert_eq!(members(&flow), FLOW.split(' ').collect::<Vec<_>>());
}

#[test]
fn direction_keeps_its_members_and_their_order() {
    let mut direction = measured("#1").measurement.directions.remove(0);
    assert_eq!(members(&direction), without_optional(DIRECTION));
    fill(&mut direction);
    assert_eq!(members(&direction), DIRECTION.split(' ').collect::<Vec<_>>());
}
