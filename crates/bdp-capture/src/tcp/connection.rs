//! The two halves of a connection, with the information from its handshake and timestamps.

use std::collections::VecDeque;

use bdp_model::capture::{CapturedData, CapturedTcp, CongestionGuess, CongestionLike, Ended, Offer, Vantage};
use bdp_model::facts::{Conversation, Refusal, Role, TimeState};
use bdp_model::finding::threshold::CAPTURE_LACKS;
use bdp_model::statistics::median;

use super::account::End;
use super::half::HalfConnection;
use super::multipath::Subflow;
use super::tls::{Change, Setup};
use super::trace;
use crate::decode::{Packet, Record, Segment};

use crate::notes::Notes;

/// Most timestamps kept until they are echoed.
const STAMPS: usize = 64;
/// Share of the round trip below which the capture was taken at that end.
const NEAR: f64 = 0.1;
/// Fewest losses from which a congestion control is recognised.
const LOSSES_MIN: usize = 3;
/// Share of self-timed sends from which a sender paces.
const PACED: f64 = 0.5;

/// Ratio of data, and number of segments, from which one end's data is the purpose of the connection.
const MINOR: (u64, u64) = (10, 8);
/// Packets without data kept for recognising copies.
const PRINTS: usize = 4;
/// Time within which a copy arrives; without an identification, the shorter one.
const COPY_NS: u64 = 50_000_000;
const COPY_UNNUMBERED_NS: u64 = 10_000;

/// What two copies of a packet without data have in common.
#[derive(Debug, Clone, Copy, Default)]
struct Print {
    at: u64,
    identification: u32,
    segment: Option<Segment>,
}

/// A connection.
#[derive(Debug, Clone, Default)]
pub(crate) struct Connection {
    pub(super) halves: [HalfConnection; 2],
    pub(super) offers: [Option<Offer>; 2],
    /// Time of each end's last SYN, and number of SYNs.
    pub(super) syn_at: [Option<u64>; 2],
    pub(super) syns: [u32; 2],
    pub(super) syn_number: [u32; 2],
    pub(super) handshake_ns: Option<u64>,
    /// Timestamps of each end, with the time of their first appearance.
    pub(super) stamps: [VecDeque<(u32, u64)>; 2],
    /// Timestamp that each end echoed last.
    pub(super) echoes: [u32; 2],
    pub(super) fins: [bool; 2],
    pub(super) is_reset: bool,
    pub(super) seen: [bool; 2],
    pub(super) is_super: bool,
    /// Side that opened the connection.
    client: Option<usize>,
    prints: [[Print; PRINTS]; 2],
    /// Time of the first packet.
    began_at: Option<u64>,
    /// Whether ICMP reported that the connection could not be made.
    is_unreachable: bool,
    /// Time of the last packet.
    last_at: u64,
    pub(super) subflow: Subflow,
    tls: Setup,
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

    /// Adds a segment.
    pub fn segment(&mut self, now: u64, from_b: bool, packet: &Packet, segment: &Segment) -> Notes {
        let (own, other) = (usize::from(from_b), usize::from(!from_b));
        self.seen[own] = true;
        if segment.payload == 0 && self.is_copy(now, own, packet, segment) {
            self.halves[own].duplicates += 1;
            return Notes::DUPLICATE;
        }
        self.roles(now, own, segment);
        self.times(now, own, segment);
        if segment.flags.syn() {
            self.halves[own].on_syn(segment);
            self.halves[other].mss_offer = segment.options.mss.map(u32::from).or(Some(536));
        }
        self.fins[own] |= segment.flags.fin();
        self.is_reset |= segment.flags.rst();
        self.subflow.segment(own, segment);
        self.is_super |= self.halves[own].mss_offer.is_some_and(|mss| segment.payload > mss.max(536));
        for side in 0..2 {
            let other = &self.halves[1 - side];
            self.halves[side].other_way = [other.own_side, other.rtt.min()];
        }
        if self.halves[own].is_ahead(segment) || self.halves[other].is_answered_ahead(segment) {
            self.halves.iter_mut().for_each(|half| half.account.lacks(now));
        }
        let before = self.halves[own].sent();
        let notes = self.halves[own].on_segment(now, packet, segment, self.has_sack());
        // A retransmission may be what the other end still lacks.
        let is_again = notes.has(Notes::RETRANSMISSION) && !notes.has(Notes::NEEDLESS);
        let has_news = segment.payload > 0 && (self.halves[own].sent() > before || is_again);
        let shift = self.shift_of(own);
        let notes = notes.and(self.halves[other].on_ack(now, segment, shift, has_news));
        if has_news && !is_again && !self.tls.is_over() {
            self.tls(now, own, segment.record);
        }
        if has_news && before == self.halves[own].first_sent() && segment.record == Record::Ssh {
            self.halves.iter_mut().for_each(|half| half.account.channels_begin());
        }
        if segment.flags.fin() || segment.flags.rst() {
            for (side, half) in self.halves.iter_mut().enumerate() {
                half.account.over(now, side == own);
            }
        }
        notes
    }

    /// Records new data that may belong to the TLS handshake.
    fn tls(&mut self, now: u64, own: usize, record: Record) {
        let Some(change) = self.tls.data(own, record) else { return };
        for half in &mut self.halves {
            match change {
                Change::Begins => half.account.setup_begins(now),
                Change::Ends => half.account.setup_ends(now),
            }
        }
    }

    /// Records an ICMP message that the connection can't be made.
    pub const fn unreachable(&mut self) {
        self.is_unreachable = true;
    }

    /// Returns the time of the first packet.
    pub fn began_at(&self) -> u64 {
        self.began_at.unwrap_or(0)
    }

    /// Returns why the connection was not made, if there was nothing but a SYN.
    pub fn refused(&self) -> Option<Refusal> {
        let client = self.client?;
        let is_alone = self.syns[client] > 0 && self.syns[1 - client] == 0;
        if !is_alone || self.halves.iter().any(HalfConnection::has_data) {
            return None;
        }
        match () {
            () if self.is_unreachable => Some(Refusal::Unreachable),
            () if self.is_reset && self.seen[1 - client] => Some(Refusal::Reset),
            () if self.seen[1 - client] => None,
            () => Some(Refusal::NoAnswer),
        }
    }

    /// Whether this packet without data is a copy, from a mirror port or another interface.
    fn is_copy(&mut self, now: u64, own: usize, packet: &Packet, segment: &Segment) -> bool {
        let identification = packet.identification.unwrap_or(0);
        let within = if identification == 0 { COPY_UNNUMBERED_NS } else { COPY_NS };
        let is_same = |print: &Print| {
            print.segment.as_ref() == Some(segment)
                && print.identification == identification
                && now.saturating_sub(print.at) < within
        };
        let prints = &mut self.prints[own];
        if prints.iter().any(is_same) {
            return true;
        }
        prints.rotate_right(1);
        prints[0] = Print { at: now, identification, segment: Some(*segment) };
        false
    }

    /// Determines client and server, by the SYN or else by the ports, and the state of the handshake.
    fn roles(&mut self, now: u64, own: usize, segment: &Segment) {
        self.last_at = now;
        self.began_at.get_or_insert(now);
        let (is_syn, is_answer) = (segment.flags.syn(), segment.flags.ack());
        let is_first = self.client.is_none();
        if is_first || is_syn && !is_answer && self.syns[own] == 0 {
            let is_client = if is_syn { !is_answer } else { segment.source > segment.destination };
            let client = if is_client { own } else { 1 - own };
            self.client = Some(client);
            self.halves[client].role = Some(Role::Client);
            self.halves[1 - client].role = Some(Role::Server);
        }
        let again = is_syn && self.syns[own] > 0;
        for half in &mut self.halves {
            match is_syn {
                true => half.account.syn(now, again),
                false if self.syns != [0, 0] => half.account.established(now),
                false => half.account.begin(now),
            }
        }
    }

    /// Returns the window scale of an end; `None` if a SYN is missing.
    pub(super) fn shift_of(&self, side: usize) -> Option<u8> {
        let [a, b] = self.offers;
        let (a, b) = (a?, b?);
        let both = a.window_scale.zip(b.window_scale);
        Some(both.map_or(0, |(a, b)| if side == 0 { a } else { b }))
    }

    /// Whether both ends permit selective acknowledgements; assumed if a SYN is missing.
    fn has_sack(&self) -> bool {
        self.offers.iter().flatten().all(|offer| offer.sack)
    }

    /// Evaluates times: of the handshake, and of echoed timestamps.
    fn times(&mut self, now: u64, own: usize, segment: &Segment) {
        let other = 1 - own;
        let flags = segment.flags;
        if flags.syn() {
            let is_first = self.syns[own] == 0;
            // A retransmitted SYN may have fewer options, but the other end answers the first one received.
            let before = self.offers[own].filter(|_| !is_first && self.syn_number[own] == segment.seq);
            self.offers[own] = Some(Offer {
                mss: segment.options.mss.or(before.and_then(|offer| offer.mss)),
                window_scale: segment.options.window_scale.or(before.and_then(|offer| offer.window_scale)),
                sack: segment.options.sack_permitted || before.is_some_and(|offer| offer.sack),
                timestamps: segment.options.timestamps.is_some()
                    || before.is_some_and(|offer| offer.timestamps),
                // RFC 3168, section 6.1.1: the SYN has both flags, its answer one.
                ecn: flags.ece() && (flags.ack() || flags.cwr()),
                window: segment.window,
            });
            (self.syns[own], self.syn_number[own], self.syn_at[own]) =
                (self.syns[own] + 1, segment.seq, Some(now));
            // With several SYNs, it is unknown which one was answered.
            if flags.ack() && is_first && self.syns[other] == 1 {
                self.note_own_side(own, now, self.syn_at[other], None);
            }
        } else if flags.ack() && self.handshake_ns.is_none() && self.syns == [1, 1] {
            // First acknowledgement of the end that began.
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
        if segment.payload > 0 && flags.ack() {
            let latest = self.stamps[other].back().copied();
            self.halves[own].note_echo(latest.map(|(latest, at)| (latest != echo, now.saturating_sub(at))));
        }
        // Only immediate replies: the first segment with a new echo, while others are in flight.
        let is_news = self.echoes[own] != echo;
        self.echoes[own] = echo;
        if !is_news || !flags.ack() || self.halves[own].is_at_sender() {
            return;
        }
        let ring = &mut self.stamps[other];
        while ring.front().is_some_and(|&(first, _)| first != echo && echo.wrapping_sub(first) < 1 << 31) {
            ring.pop_front();
        }
        let at = ring.front().filter(|&&(first, _)| first == echo).map(|&(_, at)| at);
        // An end that sends data may have waited for something other than what it echoes, unless it was sending continuously.
        let is_prompt = |at: u64| self.halves[own].went_on(now, now.saturating_sub(at), segment.payload);
        let at = at.filter(|&at| is_prompt(at));
        self.note_own_side(own, now, at, Some(stamp));
    }

    /// Records a round trip to an end: what passed at a moment is answered by a segment with this timestamp.
    fn note_own_side(&mut self, side: usize, now: u64, passed: Option<u64>, stamp: Option<u32>) {
        if let Some(passed) = passed {
            self.halves[side].on_own_side_rtt(now, now.saturating_sub(passed), stamp);
        }
    }

    /// Heap memory in use, bytes.
    pub fn held_bytes(&self) -> usize {
        let stamps = self.stamps.iter().map(|stamps| stamps.capacity() * size_of::<(u32, u64)>());
        self.halves.iter().map(HalfConnection::held_bytes).chain(stamps).sum()
    }

    /// Whether this side sent data.
    pub fn has_data(&self, side: usize) -> bool {
        self.halves[side].has_data()
    }

    /// Ends the analysis with the capture.
    pub fn finish(&mut self) {
        self.halves.iter_mut().for_each(HalfConnection::finish);
        let in_vain = [0, 1].map(|side| {
            let half = &self.halves[side];
            half.outstanding() > 0 && half.account.is_in_vain()
        });
        let is_lacking = self.missing_share() >= CAPTURE_LACKS;
        for (side, half) in self.halves.iter_mut().enumerate() {
            let spaced = match () {
                () if half.keeps_a_rate() => TimeState::Pacing,
                () if half.sends_by_its_own_clock() => TimeState::SenderApplication,
                () if half.paced_share().is_some_and(|share| share >= PACED) => TimeState::Probing,
                () => TimeState::CongestionAvoidance,
            };
            let end = End {
                role: half.role.unwrap_or(Role::Client),
                outstanding: half.outstanding(),
                is_closed: half.is_closed(),
                spaced,
                other_in_vain: in_vain[1 - side],
                is_lacking,
                is_blind: !half.is_at_sender(),
                has_hole: half.has_hole(),
            };
            half.account.finish(self.last_at, end);
        }
        if self.halves.iter().any(|half| half.account.has_window()) {
            self.halves.iter_mut().for_each(|half| half.account.of_window());
        }
    }

    /// Whether the other side's data is the purpose of the connection.
    fn is_minor(&self, side: usize) -> bool {
        let [own, other] = [&self.halves[side], &self.halves[1 - side]];
        other.payload >= MINOR.0 * own.payload && other.payload >= MINOR.1 * other.mss()
    }

    /// Returns the share of acknowledged bytes that the capture lacks.
    fn missing_share(&self) -> f64 {
        let missing: u64 = self.halves.iter().map(|half| half.missing).sum();
        let passed: u64 = self.halves.iter().map(|half| half.payload).sum();
        missing as f64 / (missing + passed).max(1) as f64
    }

    /// Returns what the data of a side waited for at each moment; `None` if only one direction was captured.
    pub fn conversation(&self, side: usize) -> Option<Conversation> {
        let half = &self.halves[side];
        let refused = self.refused();
        if refused.is_some() && self.client != Some(side) {
            return None;
        }
        (self.seen == [true, true] || refused.is_some()).then(|| {
            let role = half.role.unwrap_or(Role::Client);
            let syns = self.syns.iter().map(|&syns| u64::from(syns)).sum();
            Conversation {
                missing: self.missing_share(),
                is_minor: self.is_minor(side),
                outage_ns: half.outage,
                oversized: half.oversized(),
                refused,
                syns,
                ..half.account.report(self.last_at, half.outstanding(), role)
            }
        })
    }

    /// Returns the report of the connection.
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

    /// Returns the report of a direction's data; `None` without data.
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
            rtt_min_ns: rtt.and(way.least_rtt()),
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
            held: way.account.held,
            unprompted: way.paced_share(),
            episodes: way.episodes.len() as u64,
            congestion_control: congestion_control(way),
            trace: trace::of(way),
            retransmitted_at: trace::retransmissions(way),
            closed_windows: trace::closed_windows(way),
        })
    }

    /// Returns the payload bytes, each counted once, and the acknowledged bytes per time.
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
    // A rate-based sender sends by its clock, not by acknowledgements.
    if way.paced_share().is_some_and(|share| share >= PACED) {
        let is_program = way.sends_by_its_own_clock();
        return (!is_program).then_some(CongestionGuess { like: CongestionLike::Bbr, kept: None, losses: 0 });
    }
    // Elsewhere than at the sender, the bytes in flight are not known well enough.
    if way.shares_kept.len() < LOSSES_MIN || !way.is_at_sender() {
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
