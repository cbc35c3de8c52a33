//! A way of a connection as facts: what the sender's kernel would have reported, as far as its packets tell.

use std::net::SocketAddr;

use bdp_model::capture::CapturedRtt;
use bdp_model::connection;
use bdp_model::facts::{End, Facts, Source};
use bdp_model::flow::FlowSpec;
use bdp_model::record::{
    LossEpisode, ReceiverSample, RttReport, RttSummary, SenderSample, WindowReport,
};

use super::Connection;
use super::way::{Reading, Way};

/// Of fewer segments there is nothing to explain.
const SEGMENTS_MIN: u64 = 10;

pub(super) fn of(connection: &Connection, side: usize, ends: [SocketAddr; 2]) -> Option<Facts> {
    let way = &connection.ways[side];
    let from = way.first_data_at?;
    let took_ns = way.data_until().checked_sub(from).filter(|&ns| ns > 0)?;
    if way.segments < SEGMENTS_MIN || connection.seen != [true, true] {
        return None;
    }
    let mss = way.mss().max(1);
    let goodput_bps = way.acked() as f64 * 8e9 / took_ns as f64;
    let readings: Vec<(u64, Reading)> =
        way.series.iter().filter(|(at, _)| *at >= from).map(|&(at, reading)| (at - from, reading)).collect();
    let sent: Vec<SenderSample> = readings.iter().map(|(at, reading)| sample(*at, reading, mss)).collect();
    let own_side = way.own_side.unwrap_or(0);
    let name = |end: SocketAddr| End { name: end.to_string(), ..End::default() };
    Some(Facts {
        source: Source::Captured,
        asked: FlowSpec::default(),
        sender: name(ends[side]),
        receiver: name(ends[1 - side]),
        goodput_bps,
        bytes: way.acked(),
        duration_ns: took_ns,
        omit_ns: 0,
        spread: None,
        stream_goodput_bps: vec![goodput_bps],
        window: WindowReport { on_the_wire_bytes: way.window_most, ..WindowReport::default() },
        rtt: RttReport {
            idle: connection.handshake_ns.map(once),
            loaded: way.rtt.report().map(|rtt| summary(&rtt, own_side)),
            ..RttReport::default()
        },
        one_way: None,
        probes: None,
        probes_lost: None,
        retransmits: Some(way.retransmissions.segments),
        needless_retransmits: Some(way.retransmissions.needless_reported),
        congestion_control: super::congestion_control(way).map_or_else(String::new, |guess| guess.like.name().to_owned()),
        mss_bytes: Some(mss),
        connection: agreed(connection, side),
        send_buffer_bytes: None,
        paced_bps: None,
        received: readings.iter().map(|(at, reading)| received(*at, reading)).collect(),
        sent,
        loss_episodes: episodes(way, from),
        udp: None,
        ceiling: None,
        both_directions: false,
        through_tunnel: false,
    })
}

/// What both SYNs agreed on; `None` where one is missing.
fn agreed(connection: &Connection, side: usize) -> Option<connection::Connection> {
    let [a, b] = connection.offers;
    let (a, b) = (a?, b?);
    let scaled = a.window_scale.is_some() && b.window_scale.is_some();
    let shift = |offer: bdp_model::capture::Offer| Some(offer.window_scale.filter(|_| scaled).unwrap_or(0));
    let (own, other) = if side == 0 { (a, b) } else { (b, a) };
    Some(connection::Connection {
        sack: Some(a.sack && b.sack),
        timestamps: Some(a.timestamps && b.timestamps),
        ecn: Some(a.ecn && b.ecn),
        sender_window_shift: shift(own),
        receiver_window_shift: shift(other),
    })
}

fn once(ns: u64) -> RttSummary {
    RttSummary { sent: 1, received: 1, min: ns, p50: ns, max: ns, ..RttSummary::default() }
}

fn summary(rtt: &CapturedRtt, own_side: u64) -> RttSummary {
    RttSummary {
        sent: rtt.samples,
        received: rtt.samples,
        min: rtt.min.as_ns() + own_side,
        p50: rtt.p50.as_ns() + own_side,
        p95: (rtt.samples >= 20).then_some(rtt.p95.as_ns() + own_side),
        max: rtt.max.as_ns() + own_side,
        ..RttSummary::default()
    }
}

fn episodes(way: &Way, from: u64) -> Vec<LossEpisode> {
    let since = |e: &LossEpisode| LossEpisode { at_ns: e.at_ns.saturating_sub(from), ..*e };
    way.episodes.iter().map(since).collect()
}

fn received(at_ns: u64, reading: &Reading) -> ReceiverSample {
    ReceiverSample { at_ns, bytes: reading.acked, rcv_wnd_bytes: reading.window, ..ReceiverSample::default() }
}

fn sample(at_ns: u64, reading: &Reading, mss: u64) -> SenderSample {
    let segments = |bytes: u64| (bytes / mss) as u32;
    let unacked = reading.in_flight.div_ceil(mss) as u32;
    let is_window_full = reading.window.is_some_and(|window| (u64::from(unacked) + 1) * mss > window);
    let least = segments(reading.congestion_window).max(unacked);
    SenderSample {
        at_ns,
        acked_bytes: Some(reading.acked),
        unacked: Some(unacked),
        // A sender that another window stops has room in this one.
        cwnd: Some(if is_window_full { least + 1 } else { least }),
        snd_wnd_bytes: reading.window,
        srtt_ns: reading.srtt,
        min_rtt_ns: reading.min_rtt,
        retransmits: Some(reading.retransmitted),
        reorder_seen: Some(reading.reordered),
        needless_retransmits: Some(reading.needless),
        delivered: Some(u64::from(segments(reading.acked))),
        delivered_ce: Some(reading.marks),
        timeouts: Some(reading.timeouts),
        busy_ns: Some(reading.busy),
        rwnd_limited_ns: Some(reading.window_limited),
        sndbuf_limited_ns: Some(0),
        congestion_state: reading.state,
        ssthresh: reading.threshold.map(segments),
        delivery_rate_bps: reading.rate_bps,
        app_limited: Some(reading.is_starved),
        not_sent_bytes: reading.is_starved.then_some(0),
        ..SenderSample::default()
    }
}
