//! For what each moment of a conversation was waited, by its packets.

use std::iter::once;

use bdp_capture::{Analysis, Frame};
use bdp_model::facts::{Facts, TimeState};

use crate::wrapped::join;

const SYN: u8 = 2;
const PSH: u8 = 8;
const ACK: u8 = 16;
/// The round trip of all of them, captured at the client.
const RTT_MS: u64 = 50;

/// A conversation as it passes at one of its ends.
struct Talk {
    at_ms: u64,
    said: [u32; 2],
    numbers: [u16; 2],
    /// By how much earlier a packet was sent than it passes.
    held_ms: u64,
    packets: Vec<(u64, Vec<u8>, u32)>,
    /// Bytes of a packet that are kept.
    kept: usize,
    /// Packets that the capture lacks: what is said now.
    is_lacking: bool,
}

impl Talk {
    /// The connection is made, and captured at the client.
    fn new(kept: usize) -> Self {
        Self::made(kept, [RTT_MS, 0])
    }

    /// The same at the server.
    fn at_server() -> Self {
        Self::made(usize::MAX, [0, RTT_MS])
    }

    fn made(kept: usize, [answered, acknowledged]: [u64; 2]) -> Self {
        let (packets, numbers) = (Vec::new(), [100, 900]);
        let mut talk = Self { at_ms: 0, said: [0, 0], numbers, held_ms: 0, packets, kept, is_lacking: false };
        talk.packet(false, SYN, &[]);
        talk.said[0] += 1;
        talk.after(answered).packet(true, SYN | ACK, &[]);
        talk.said[1] += 1;
        talk.after(acknowledged).packet(false, ACK, &[]);
        talk
    }

    fn after(&mut self, ms: u64) -> &mut Self {
        self.at_ms += ms;
        self
    }

    fn packet(&mut self, is_back: bool, flags: u8, payload: &[u8]) {
        let (own, other) = (usize::from(is_back), usize::from(!is_back));
        let stamp = (5_000 + self.at_ms - self.held_ms) as u32;
        let times = join(&[&[1, 1, 8, 10], &stamp.to_be_bytes(), &stamp.to_be_bytes()]);
        let options = if flags & SYN == 0 { times } else { join(&[&[2, 4, 5, 0xb4], &times]) };
        let header = 20 + options.len();
        let length = (20 + header + payload.len()) as u32;
        let mut data = join(&[
            &[0x45, 0],
            &(length as u16).to_be_bytes(),
            &self.numbers[own].to_be_bytes(),
            &[0x40, 0, 64, 6, 0, 0, 192, 0, 2, 1 + own as u8, 192, 0, 2, 1 + other as u8],
            &[[40_000_u16, 443], [443, 40_000]][own].map(u16::to_be_bytes).concat(),
            &[self.said[own], if flags & ACK == 0 { 0 } else { self.said[other] }]
                .map(u32::to_be_bytes)
                .concat(),
            &[(header as u8 / 4) << 4, flags, 0xff, 0xff, 0, 0, 0, 0],
            &options,
            payload,
        ]);
        data.truncate(self.kept);
        self.numbers[own] += 1;
        if !self.is_lacking {
            self.packets.push((1_700_000_000_000_000_000 + self.at_ms * 1_000_000, data, length));
        }
    }

    /// Data of an end; the other one has it.
    fn says(&mut self, is_back: bool, payload: &[u8]) -> &mut Self {
        self.packet(is_back, ACK | PSH, payload);
        self.said[usize::from(is_back)] += payload.len() as u32;
        self
    }

    /// An end acknowledges what it has, and says nothing.
    fn acknowledges(&mut self, is_back: bool) -> &mut Self {
        self.packet(is_back, ACK, &[]);
        self
    }

    /// What is known of both ways.
    fn facts(&self) -> [Facts; 2] {
        self.ways().map(|facts| facts.unwrap())
    }

    /// The same, where one has no data.
    fn ways(&self) -> [Option<Facts>; 2] {
        let mut analysis = Analysis::default();
        for (at, data, length) in &self.packets {
            analysis.frame(&Frame { at_ns: Some(*at), link_type: 101, length: *length, data });
        }
        let (_, found) = analysis.finish();
        assert_eq!(found.len(), 1);
        found[0].facts.clone().map(|facts| facts.map(|facts| *facts))
    }
}

/// Milliseconds of a state.
fn spent(facts: &Facts, state: TimeState) -> u64 {
    let spent = &facts.conversation.as_ref().unwrap().spent;
    let ns = spent.share(state) * spent.total_ns() as f64;
    (ns / 1e6).round() as u64
}

/// A record, and the first byte of what it carries.
fn record(kind: u8, of: u8, length: u16) -> Vec<u8> {
    let [high, low] = length.to_be_bytes();
    let [a, b] = (length - 4).to_be_bytes();
    let mut all = vec![kind, 3, 3, high, low, of, 0, a, b];
    all.resize(5 + usize::from(length), 7);
    all
}

const CHANGE: [u8; 6] = [20, 3, 3, 0, 1, 1];

/// TLS 1.2, TLS 1.3, and TLS 1.2 with an answer that takes long, whole and by the first bytes of each packet alone: the setup is what its messages take
/// from the client's first to the last one, and no question of the programs.
#[test]
fn setup_of_tls_is_told_by_the_headers_of_its_records() {
    let hello = || record(22, 1, 200);
    let answer = || record(22, 2, 90);
    let key = || [record(22, 16, 33), CHANGE.to_vec(), record(22, 9, 40)].concat();
    let finished = || [CHANGE.to_vec(), record(22, 9, 40)].concat();
    let data = || record(23, 9, 300);
    for kept in [usize::MAX, 52 + 11] {
        // Captured at the client: its question follows at once.
        let mut old = Talk::new(kept);
        old.after(1).says(false, &hello()).after(RTT_MS).says(true, &answer());
        old.after(2).says(false, &key()).after(RTT_MS).says(true, &finished());
        old.after(3).says(false, &data()).after(RTT_MS + 20).says(true, &data());
        let mut new = Talk::new(kept);
        new.after(1)
            .says(false, &hello())
            .after(RTT_MS)
            .says(true, &[answer(), CHANGE.to_vec(), data()].concat());
        new.after(2).says(false, &[CHANGE.to_vec(), data(), data()].concat());
        new.after(RTT_MS + 20).says(true, &data());
        for (talk, setup, trips) in [(&old, 2 * RTT_MS + 2, RTT_MS), (&new, RTT_MS + 2, RTT_MS)] {
            let [asks, answers] = talk.facts();
            for facts in [&asks, &answers] {
                assert_eq!(spent(facts, TimeState::TlsSetup), setup, "{kept}");
            }
            assert_eq!(spent(&asks, TimeState::Handshake), RTT_MS);
            assert_eq!(spent(&asks, TimeState::RoundTrips), trips);
            assert_eq!(spent(&asks, TimeState::Answering), 20);
        }
        // A server that thinks for a second is waited for, and not the setup.
        let mut slow = Talk::new(kept);
        slow.says(false, &hello()).after(RTT_MS + 1_000).says(true, &answer());
        slow.says(false, &key()).after(RTT_MS).says(true, &finished());
        let [asks, _] = slow.facts();
        assert_eq!(
            (spent(&asks, TimeState::TlsSetup), spent(&asks, TimeState::Answering)),
            (2 * RTT_MS, 1_000)
        );
        // Another protocol has none.
        let mut other = Talk::new(kept);
        other.says(false, b"GET / HTTP/1.1\r\n\r\n").after(RTT_MS).says(true, b"HTTP/1.1 200 OK\r\n\r\n");
        assert_eq!(spent(&other.facts()[0], TimeState::TlsSetup), 0);
    }
}

/// The capture lacks most of the bytes: of pauses in which nothing can have passed it is known for whom was waited, of all else it is not.
#[test]
fn pauses_are_known_where_a_capture_lacks_most_of_the_bytes() {
    let mut talk = Talk::new(usize::MAX);
    for _ in 0..4 {
        talk.after(2_000).says(false, &[1; 40]).after(RTT_MS);
        talk.is_lacking = true;
        for _ in 0..20 {
            talk.says(true, &[2; 1_460]).after(10);
        }
        talk.is_lacking = false;
        talk.acknowledges(false);
    }
    talk.says(false, &[1; 40]);
    let asks = talk.ways()[0].clone().unwrap();
    let conversation = asks.conversation.as_ref().unwrap();
    assert!(conversation.missing > 0.9, "{}", conversation.missing);
    // The first and three others, from when all that was missed was acknowledged.
    assert_eq!(spent(&asks, TimeState::NotAsked), 4 * 2_000);
    assert_eq!(spent(&asks, TimeState::NotCaptured), 4 * (RTT_MS + 200));
    let of_states: u64 = conversation.spent.stretches.iter().flat_map(|s| &s.states).map(|s| s.1).sum();
    assert_eq!(of_states, conversation.spent.total_ns());
}

/// A client that sends full segments, a round trip's worth at a time, captured at the server, and then nothing for two seconds. What comes next was sent late,
/// or sent before and held, or sent again by a timer after others that never came: by its number, or by the one behind it that waits for its acknowledgement.
#[test]
fn outage_is_told_from_a_program_that_pauses_at_the_receiver() {
    const FULL: [u8; 1_448] = [1; 1_448];
    const PAUSE_MS: u64 = 2_000;
    /// Packets that never came, since when the next one was on its way, and the times between those after the pause.
    struct Case {
        lost: u16,
        is_numbered: bool,
        held_ms: u64,
        then: &'static [u64],
        is_outage: bool,
    }
    let plain = Case { lost: 0, is_numbered: true, held_ms: 0, then: &[0, 0, 0, 0], is_outage: false };
    let cases = [
        Case { ..plain },
        Case { held_ms: PAUSE_MS - 1, is_outage: true, ..plain },
        Case { lost: 12, then: &[RTT_MS, 0, RTT_MS], is_outage: true, ..plain },
        Case { is_numbered: false, then: &[RTT_MS, 0, RTT_MS], is_outage: true, ..plain },
        Case { is_numbered: false, ..plain },
    ];
    for (place, case) in cases.iter().enumerate() {
        let mut talk = Talk::at_server();
        let send = |talk: &mut Talk| {
            talk.packet(false, ACK, &FULL);
            talk.said[0] += FULL.len() as u32;
            talk.acknowledges(true);
            if !case.is_numbered {
                talk.numbers[0] = 0;
            }
        };
        for _ in 0..20 {
            talk.after(RTT_MS);
            (0..10).for_each(|_| send(&mut talk));
        }
        talk.numbers[0] += case.lost;
        talk.after(PAUSE_MS).held_ms = case.held_ms;
        send(&mut talk);
        talk.held_ms = 0;
        for &ms in case.then.iter().chain(once(&RTT_MS)) {
            talk.after(ms);
            send(&mut talk);
        }
        let facts = talk.ways()[0].clone().unwrap();
        let told = [TimeState::Timeout, TimeState::SenderApplication].map(|state| spent(&facts, state));
        let about = |ms: u64| ms.abs_diff(PAUSE_MS) <= RTT_MS;
        assert!(about(told[usize::from(!case.is_outage)]), "case {place}: {told:?}");
        assert!(told[usize::from(case.is_outage)] < RTT_MS, "case {place}: {told:?}");
    }
}

/// Bursts of an end that sends much, each until the other one has given room: amid them, as the windows of HTTP/2 and requests ahead of SFTP do, or when it has
/// all of one, which is an answer to the question before unless it is a buffer's round amount each time.
#[test]
fn window_of_a_program_is_told_from_questions_and_answers() {
    for (is_amid, last, is_window) in [(false, 1_448, false), (true, 1_448, true), (false, 424, true)] {
        let mut talk = Talk::new(usize::MAX);
        talk.says(false, &[9; 60]);
        for _ in 0..10 {
            talk.after(RTT_MS);
            let before = talk.said[1];
            // 64 KiB and 48 bytes, or something else.
            (0..45).for_each(|_| {
                talk.says(true, &[1; 1_448]);
            });
            talk.says(true, &vec![1; last]);
            let all = std::mem::replace(&mut talk.said[1], before + 10 * 1_448);
            if is_amid {
                talk.says(false, &[9; 60]);
                talk.said[1] = all;
                talk.acknowledges(false);
            } else {
                talk.said[1] = all;
                talk.says(false, &[9; 60]);
            }
        }
        talk.after(RTT_MS).says(true, &[1; 1_448]);
        for facts in talk.facts() {
            let told = [TimeState::RoundTrips, TimeState::ProgramWindow].map(|state| spent(&facts, state));
            assert!(told[usize::from(is_window)] >= 8 * RTT_MS, "{is_amid} {last}: {told:?}");
            assert_eq!(told[usize::from(!is_window)], 0, "{is_amid} {last}");
        }
    }
}

/// A server that sends much until its client has given room, which it does late: over SSH, where that is the window of a channel, its client's program does not
/// read what came; elsewhere nobody knows why the client has not asked. A person at a shell, who is answered in a few bytes, has not asked in either.
#[test]
fn channel_of_ssh_that_is_not_read_is_told_from_a_client_that_does_not_ask() {
    const LATE_MS: u64 = 300;
    for (greeting, answer, of_reader) in [
        (b"SSH-2.0-OpenSSH_9.2", 1_448, true),
        (b"220 ready, go ahead", 1_448, false),
        (b"SSH-2.0-OpenSSH_9.2", 40, false),
    ] {
        let mut talk = Talk::new(usize::MAX);
        talk.says(false, greeting).after(RTT_MS).says(true, greeting);
        talk.says(false, &[9; 44]).after(RTT_MS);
        for _ in 0..10 {
            (0..40).for_each(|_| {
                talk.says(true, &vec![1; answer]);
            });
            talk.acknowledges(false);
            talk.after(LATE_MS).says(false, &[9; 44]).after(RTT_MS);
        }
        talk.says(true, &vec![1; answer]);
        let [_, answers] = talk.facts();
        let told = [TimeState::NotAsked, TimeState::ReceiverApplication].map(|state| spent(&answers, state));
        assert!(told[usize::from(of_reader)] >= 9 * LATE_MS, "{answer}: {told:?}");
        assert!(told[usize::from(!of_reader)] < LATE_MS, "{answer}: {told:?}");
        let on_the_way =
            [TimeState::RoundTrips, TimeState::ProgramWindow].map(|state| spent(&answers, state));
        assert!(on_the_way[usize::from(of_reader)] >= 10 * RTT_MS, "{answer}: {on_the_way:?}");
    }
}

/// Full segments all the time, and then nothing more until the client gives up: the server's kernel had more to send, unless its last segment was all that it
/// had, or it closed the connection itself.
#[test]
fn transfer_that_stops_in_its_midst_is_told_from_one_that_is_over_at_the_receiver() {
    const FIN: u8 = 1;
    const SILENT_MS: u64 = 3_000;
    for (last, closes, is_broken) in [(1_448, false, true), (700, false, false), (1_448, true, false)] {
        let mut talk = Talk::new(usize::MAX);
        talk.says(false, &[9; 100]);
        for _ in 0..20 {
            talk.after(RTT_MS);
            (0..9).for_each(|_| {
                talk.says(true, &[1; 1_448]);
            });
            talk.says(true, &vec![1; last]).acknowledges(false);
        }
        talk.packet(closes, FIN | ACK, &[]);
        if !closes {
            talk.packets.pop();
            talk.after(SILENT_MS).packet(false, FIN | ACK, &[]);
        }
        let facts = talk.ways()[1].clone().unwrap();
        let broken_off_ms = facts.conversation.unwrap().broken_off_ns / 1_000_000;
        assert_eq!(broken_off_ms, if is_broken { SILENT_MS } else { 0 }, "{last} {closes}");
    }
}

/// A program that writes the same whenever its socket takes them, and never has more on the way: slow start would double that, and congestion avoidance add to it.
#[test]
fn buffer_that_is_filled_anew_each_round_trip_is_no_slow_start() {
    for grows in [false, true] {
        let mut talk = Talk::new(usize::MAX);
        for round in 0..40 {
            let before = talk.said[0];
            let more = if grows { round } else { 0 };
            for _ in 0..20 + more / 2 {
                talk.packet(false, ACK, &[1; 1_448]);
                talk.said[0] += 1_448;
            }
            talk.says(false, &[1; 376]);
            talk.after(RTT_MS);
            // By four acknowledgements, the last of them of all.
            let all = talk.said[0];
            for part in 1..=4 {
                talk.said[0] =
                    before + (all - before) / 4 * part + if part == 4 { (all - before) % 4 } else { 0 };
                talk.acknowledges(true);
            }
            talk.said[0] = all;
        }
        let facts = talk.ways()[0].clone().unwrap();
        let told = spent(&facts, TimeState::SendBuffer);
        assert_eq!(told >= 25 * RTT_MS, !grows, "{grows}: {told}");
    }
}

/// What carries nearly all the data is what the connection is for.
#[test]
fn end_that_says_a_tenth_of_the_other_is_the_minor_one() {
    for (answers, is_minor) in [(20, true), (1, false)] {
        let mut talk = Talk::new(usize::MAX);
        for _ in 0..3 {
            talk.says(false, &[9; 700]).after(RTT_MS);
            (0..answers).for_each(|_| {
                talk.says(true, &[1; 1_448]);
            });
        }
        let found = talk.facts().map(|facts| facts.conversation.unwrap().is_minor);
        assert_eq!(found, [is_minor, false], "{answers}");
    }
}

/// Two segments every 7 ms, whatever is acknowledged in between: a rate that the host keeps, unless each write ends there, or the times vary as those of a model do
/// that probes.
#[test]
fn data_that_leaves_evenly_by_itself_is_at_a_rate_that_its_host_keeps() {
    for (size, early_ms, state) in [
        (1_448, 0, TimeState::Pacing),
        (700, 0, TimeState::SenderApplication),
        (1_448, 3, TimeState::SenderApplication),
    ] {
        let mut talk = Talk::new(usize::MAX);
        let begun = talk.said[0];
        let mut sent: Vec<(u64, u32)> = Vec::new();
        for ms in 0..2_000_u64 {
            talk.after(1);
            // What left a round trip ago, acknowledged as it arrives.
            if let Some(&(_, end)) = sent.iter().find(|&&(at, _)| at + RTT_MS == ms) {
                let all = std::mem::replace(&mut talk.said[0], end);
                talk.acknowledges(true);
                talk.said[0] = all;
            }
            let early = if ms / 7 % 2 == 1 { early_ms } else { 0 };
            if ms % 7 + early == 6 {
                for _ in 0..2 {
                    talk.packet(false, if size < 1_448 { ACK | PSH } else { ACK }, &vec![1; size]);
                    talk.said[0] += size as u32;
                }
                sent.push((ms, talk.said[0]));
            }
        }
        assert!(talk.said[0] > begun);
        let facts = talk.ways()[0].clone().unwrap();
        let told = spent(&facts, state);
        assert!(
            told >= 1_500,
            "{size} {early_ms}: {told} of {:?}",
            facts.conversation.unwrap().spent.parts()
        );
    }
}

/// A window that goes out at once: acknowledged bit by bit as it arrives, or at a stroke when its program reads.
#[test]
fn window_that_is_acknowledged_late_and_at_a_stroke_is_a_readers() {
    for late_ms in [0, 40] {
        let mut talk = Talk::new(usize::MAX);
        for _ in 0..30 {
            let before = talk.said[0];
            (0..45).for_each(|_| {
                talk.packet(false, ACK, &[1; 1_448]);
                talk.said[0] += 1_448;
            });
            talk.after(RTT_MS);
            let all = talk.said[0];
            if late_ms == 0 {
                for part in 1..15 {
                    talk.said[0] = before + part * 3 * 1_448;
                    talk.acknowledges(true);
                }
            } else {
                talk.said[0] = before + 2 * 1_448;
                talk.acknowledges(true);
            }
            talk.said[0] = all;
            talk.after(late_ms).acknowledges(true);
        }
        let facts = talk.ways()[0].clone().unwrap();
        let told =
            [TimeState::ReceiveWindow, TimeState::ReceiverApplication].map(|state| spent(&facts, state));
        let (reader, window) = (told[1], told[0]);
        let is_reader = late_ms > 0;
        assert_eq!(reader > 20 * RTT_MS, is_reader, "{late_ms}: {told:?}");
        assert_eq!(window > 20 * RTT_MS, !is_reader, "{late_ms}: {told:?}");
    }
}

/// A segment that is sent again and again: larger than all that came through, while the other end speaks or not, or as small as those.
#[test]
fn segment_that_never_comes_through_is_held_against_those_that_did() {
    const FIN: u8 = 1;
    for (size, is_heard) in [(1_200, false), (1_200, true), (90, true)] {
        let mut talk = Talk::new(usize::MAX);
        talk.says(false, &[9; 100]).after(RTT_MS).says(true, &[9; 60]).after(1).says(false, &vec![1; size]);
        for wait in [250, 500, 1_000] {
            talk.said[0] -= size as u32;
            talk.after(wait).says(false, &vec![1; size]);
        }
        talk.after(100);
        if is_heard {
            talk.said[0] -= size as u32;
            talk.packet(true, FIN | ACK, &[]);
        }
        let conversation = talk.facts()[0].conversation.clone().unwrap();
        assert!(conversation.sent_in_vain >= 2, "{size} {is_heard}");
        let found = conversation.oversized.map(|found| (found.bytes, found.passed_bytes, found.is_heard));
        assert_eq!(found, (size > 536).then_some((size as u64, 100, is_heard)), "{size} {is_heard}");
    }
}

/// Questions whose answers take now more, now less: on a path that holds some of them up, each carries an old timestamp; a server that makes them late stamps them late.
#[test]
fn delay_of_a_path_is_told_from_a_servers_by_the_timestamps_of_what_comes() {
    for of_path in [true, false] {
        let mut talk = Talk::new(usize::MAX);
        for turn in 0..40_u64 {
            let (there, back) = (turn * 7 % 31, turn * 11 % 31);
            talk.says(false, &[9; 60]).after(RTT_MS + there + back);
            talk.held_ms = if of_path { back } else { 0 };
            talk.says(true, &[9; 60]);
            talk.held_ms = 0;
        }
        let facts = talk.facts()[0].clone();
        let told = [TimeState::RoundTrips, TimeState::Answering].map(|state| spent(&facts, state));
        // 40 turns of 50 ms, and 30 more of the delays on the average.
        let [on_the_way, server] = told;
        assert_eq!(server < 500, of_path, "{told:?}");
        assert_eq!(on_the_way > 2_500, of_path, "{told:?}");
    }
}
