//! The two halves of a connection, and what its handshake and timestamps tell.

use std::collections::VecDeque;

use bdp_model::capture::{CapturedData, CapturedTcp, CongestionGuess, CongestionLike, Ended, Offer, Vantage};
use bdp_model::stats::median;

use super::half::{HERE_NS, HalfConnection};
use super::multipath::Subflow;
use super::trace;
use crate::decode::{Packet, Segment};

use crate::notes::Notes;

/// Timestamps that may still come back.
const STAMPS: usize = 64;
/// An end that takes less of the whole round trip is where the capture was taken.
const NEAR: f64 = 0.1;
/// Losses that tell a congestion control.
const LOSSES_MIN: usize = 3;
/// Of the times that a sender goes on by itself, the part from which it is one that paces.
const PACED: f64 = 0.5;

/// A connection.
#[derive(Debug, Clone, Default)]
pub(crate) struct Connection {
    pub(super) halves: [HalfConnection; 2],
    pub(super) offers: [Option<Offer>; 2],
    /// When each end's SYN passed last, and how often.
    pub(super) syn_at: [Option<u64>; 2],
    pub(super) syns: [u32; 2],
    pub(super) syn_number: [u32; 2],
    pub(super) handshake_ns: Option<u64>,
    /// Timestamps of each end, with when they passed first.
    pub(super) stamps: [VecDeque<(u32, u64)>; 2],
    /// The timestamp that each end echoed last.
    pub(super) echoes: [u32; 2],
    pub(super) fins: [bool; 2],
    pub(super) is_reset: bool,
    pub(super) seen: [bool; 2],
    pub(super) is_super: bool,
    pub(super) subflow: Subflow,
}

impl Connection {
    /// Whether this SYN begins another connection between the same ports.
    pub fn is_another(&self, from_b: bool, segment: &Segment) -> bool {
        let side = usize::from(from_b);
        segment.flags.syn()
            && !segment.flags.ack()
            && self.seen[side]
            && (self.syns[side] == 0 || self.syn_number[side] != segment.seq)
            && (self.halves.iter().any(HalfConnection::has_data)
                || self.fins.iter().any(|&fin| fin)
                || self.is_reset
                || self.syns[side] > 0)
    }

    /// A segment passes.
    pub fn segment(&mut self, now: u64, from_b: bool, packet: &Packet, segment: &Segment) -> Notes {
        let (own, other) = (usize::from(from_b), usize::from(!from_b));
        self.seen[own] = true;
        self.times(now, own, segment);
        if segment.flags.syn() {
            self.halves[own].on_syn(segment);
            self.halves[other].mss_offer = segment.options.mss.map(u32::from).or(Some(536));
        }
        self.fins[own] |= segment.flags.fin();
        self.is_reset |= segment.flags.rst();
        self.subflow.segment(own, segment);
        self.is_super |= self.halves[own].mss_offer.is_some_and(|mss| segment.payload > mss.max(536));
        let notes = self.halves[own].on_segment(now, packet, segment, self.has_sack());
        let shift = self.shift_of(own);
        notes.and(self.halves[other].on_ack(now, segment, shift))
    }

    /// By how many bits the windows of an end are shifted; `None` where a SYN is missing.
    pub(super) fn shift_of(&self, side: usize) -> Option<u8> {
        let [a, b] = self.offers;
        let (a, b) = (a?, b?);
        let both = a.window_scale.zip(b.window_scale);
        Some(both.map_or(0, |(a, b)| if side == 0 { a } else { b }))
    }

    /// Both ends take selective acknowledgements; taken for granted where a SYN is missing.
    fn has_sack(&self) -> bool {
        self.offers.iter().flatten().all(|offer| offer.sack)
    }

    /// What times tell: the handshake, and timestamps that come back.
    fn times(&mut self, now: u64, own: usize, segment: &Segment) {
        let other = 1 - own;
        let flags = segment.flags;
        if flags.syn() {
            let is_first = self.syns[own] == 0;
            (self.syns[own], self.syn_number[own]) = (self.syns[own] + 1, segment.seq);
            self.syn_at[own] = Some(now);
            self.offers[own] = Some(Offer {
                mss: segment.options.mss,
                window_scale: segment.options.window_scale,
                sack: segment.options.sack_permitted,
                timestamps: segment.options.timestamps.is_some(),
                // RFC 3168, section 6.1.1: the SYN has both flags, its answer one.
                ecn: flags.ece() && (flags.ack() || flags.cwr()),
                window: segment.window,
            });
            // Which of several SYNs was answered nobody knows.
            if flags.ack() && is_first && self.syns[other] == 1 {
                self.note_own_side(own, now, self.syn_at[other], None);
            }
        } else if flags.ack() && self.handshake_ns.is_none() && self.syns == [1, 1] {
            // The first acknowledgement of the end that began.
            let began = if self.syn_at[0] <= self.syn_at[1] { 0 } else { 1 };
            if own == began {
                self.note_own_side(own, now, self.syn_at[other], None);
                self.handshake_ns = self.syn_at[own].map(|at| now.saturating_sub(at));
            }
        }
        let Some((stamp, echo)) = segment.options.timestamps else { return };
        let ring = &mut self.stamps[own];
        if ring.back().is_none_or(|&(last, _)| stamp.wrapping_sub(last).wrapping_sub(1) < 1 << 31) {
            if ring.len() >= STAMPS {
                ring.pop_front();
            }
            ring.push_back((stamp, now));
        }
        // Only what is sent at once: the first segment with a new echo, while others are in flight.
        let is_news = self.echoes[own] != echo;
        self.echoes[own] = echo;
        if !is_news || !flags.ack() || self.halves[own].own_side.is_some_and(|ns| ns < HERE_NS) {
            return;
        }
        if self.halves[own].has_data() && (segment.payload == 0 || self.halves[own].is_idle(now)) {
            return;
        }
        let ring = &mut self.stamps[other];
        while ring.front().is_some_and(|&(first, _)| first != echo && echo.wrapping_sub(first) < 1 << 31) {
            ring.pop_front();
        }
        let at = ring.front().filter(|&&(first, _)| first == echo).map(|&(_, at)| at);
        self.note_own_side(own, now, at, Some(stamp));
    }

    /// What passed at a moment on its way to an end is answered now, by what has this timestamp.
    fn note_own_side(&mut self, side: usize, now: u64, passed: Option<u64>, stamp: Option<u32>) {
        if let Some(passed) = passed {
            self.halves[side].on_own_side_rtt(now, now.saturating_sub(passed), stamp);
        }
    }

    /// Memory that it has beside its own place.
    pub fn held_bytes(&self) -> usize {
        let stamps = self.stamps.iter().map(|stamps| stamps.capacity() * size_of::<(u32, u64)>());
        self.halves.iter().map(HalfConnection::held_bytes).chain(stamps).sum()
    }

    /// Whether this side sent data.
    pub fn has_data(&self, side: usize) -> bool {
        self.halves[side].has_data()
    }

    /// The end of the capture.
    pub fn finish(&mut self) {
        self.halves.iter_mut().for_each(HalfConnection::finish);
    }

    /// What was seen of the connection.
    pub fn report(&self) -> CapturedTcp {
        let to_ends_ns = [self.halves[0].own_side, self.halves[1].own_side];
        CapturedTcp {
            offers: self.offers,
            handshake_rtt_ns: self.handshake_ns,
            to_ends_ns,
            vantage: vantage(to_ends_ns),
            ended: match (self.is_reset, self.fins) {
                (true, _) => Ended::Reset,
                (_, [true, true]) => Ended::Closed,
                (_, [false, false]) => Ended::Open,
                _ => Ended::HalfClosed,
            },
            one_way: self.seen != [true, true],
            super_packets: self.is_super,
            multipath_subflow: self.subflow.report(),
        }
    }

    /// What the data of a way met; `None` without data.
    pub fn data(&self, side: usize) -> Option<CapturedData> {
        let way = &self.halves[side];
        if !way.has_data() {
            return None;
        }
        let rtt = way.rtt.report();
        Some(CapturedData {
            segments: way.segments,
            mss_bytes: way.mss(),
            acked_bytes: way.acked(),
            retransmissions: way.retransmissions,
            lost_before_here: way.lost_before,
            reordered: way.reordered,
            reordered_most: way.reordered_most,
            duplicates: way.duplicates,
            duplicated_by_network: way.duplicated_by_network,
            missing_bytes: way.missing,
            rtt_to_receiver: rtt,
            rtt_min_ns: rtt.map(|rtt| rtt.min.as_ns() + way.own_side.unwrap_or(0)),
            in_flight_most_bytes: way.in_flight_most,
            initial_flight_bytes: way.initial_flight,
            window_most_bytes: way.window_most,
            window_least_bytes: way.window_least,
            window_full: way.window_full,
            window_waits: way.waits.report(),
            window_stalls: way.stalls.report(),
            zero_windows: way.zero_windows,
            zero_window_ns: way.zero_window_ns,
            probes: way.probes,
            keep_alives: way.keep_alives,
            duplicate_acks: way.duplicate_acks,
            largest_payload: way.largest,
            marked: way.marked,
            echoes: way.echoes,
            held: way.held,
            unprompted: way.paced_share(),
            episodes: way.episodes.len() as u64,
            congestion_control: congestion_control(way),
            trace: trace::of(way),
            retransmitted_at: trace::retransmissions(way),
            closed_windows: trace::closed_windows(way),
        })
    }

    /// Bytes of payload, each once, and bytes acknowledged / time.
    pub fn goodput(&self, side: usize) -> (u64, Option<f64>) {
        let way = &self.halves[side];
        let took = way.first_data_at.map(|from| way.data_until().saturating_sub(from)).filter(|&ns| ns > 0);
        (way.payload, took.map(|ns| way.acked() as f64 * 8e9 / ns as f64))
    }
}

fn vantage([a, b]: [Option<u64>; 2]) -> Option<Vantage> {
    let (a, b) = (a? as f64, b? as f64);
    let whole = a + b;
    Some(match () {
        () if a <= NEAR * whole => Vantage::NearA,
        () if b <= NEAR * whole => Vantage::NearB,
        () => Vantage::Between,
    })
}

pub(super) fn congestion_control(way: &HalfConnection) -> Option<CongestionGuess> {
    // One that goes by the rate sends by the clock, and not as acknowledgements come.
    if way.paced_share().is_some_and(|share| share >= PACED) {
        let is_program = way.sends_by_its_own_clock();
        return (!is_program).then_some(CongestionGuess { like: CongestionLike::Bbr, kept: None, losses: 0 });
    }
    // Elsewhere than at the sender, what is in flight is not known well enough.
    if way.shares_kept.len() < LOSSES_MIN || way.own_side.is_none_or(|ns| ns >= HERE_NS) {
        return None;
    }
    let kept = median(&mut way.shares_kept.clone())?;
    let like = match kept {
        0.42..0.60 => CongestionLike::Reno,
        0.60..0.77 => CongestionLike::Cubic,
        0.9.. => CongestionLike::Bbr,
        _ => return None,
    };
    Some(CongestionGuess { like, kept: Some(kept), losses: way.shares_kept.len() as u64 })
}
