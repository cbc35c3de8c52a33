//! Round trips from the spin bit (RFC 9000, section 17.4): a server reflects the client's bit, a client inverts the server's, so that edges
//! alternate. The packet order is encrypted, and an end may send constant or random bits instead: only alternating edges
//! count, and a bit that often changes out of turn is not spinning.

use bdp_model::capture::{CapturedSpin, SpinState};

use crate::rtt::RoundTrips;

/// Fewest edges; fewer may be chance.
const LEAST_EDGES: u64 = 8;
/// Fewest packets per direction that say something about a bit that does not change.
const LEAST_PACKETS: u64 = 16;
/// Share of packets that may change the bit out of turn, by reordering: one in this many.
const OUT_OF_TURN: u64 = 20;
/// Smallest time between edges, as a fraction of a round trip (RFC 9312, section 3.8.2).
const SOON: u64 = 8;
/// Random bits change with every second packet. Spinning bits change with each if a round trip has one packet, and seldom if it has many;
/// between these values it may be either.
const LIKE_RANDOM: std::ops::RangeInclusive<f64> = 0.25..=0.9;

/// Spin bits of a connection.
#[derive(Debug, Default)]
pub(super) struct Spin {
    packets: [u64; 2],
    changes: [u64; 2],
    latest: [Option<bool>; 2],
    /// Current value of each direction, by the edges that alternated.
    value: [Option<bool>; 2],
    /// An edge not yet confirmed by another packet.
    pending: Option<Edge>,
    /// Previous edge of each direction.
    last: [Option<Edge>; 2],
    /// Whether a packet in between showed reordering.
    is_disturbed: bool,
    edges: u64,
    out_of_turn: u64,
    rtt: [RoundTrips; 2],
    to_ends: [RoundTrips; 2],
}

#[derive(Debug, Clone, Copy)]
struct Edge {
    side: usize,
    value: bool,
    at: Option<u64>,
    is_clean: bool,
}

impl Spin {
    /// Heap memory in use, bytes.
    pub(super) fn held_bytes(&self) -> usize {
        self.rtt.iter().chain(&self.to_ends).map(RoundTrips::held_bytes).sum()
    }

    /// Adds a packet from this side: `0` is the end that began, and `client` is the client's side.
    pub(super) fn note(&mut self, side: usize, client: usize, value: bool, at: Option<u64>) {
        self.packets[side] += 1;
        if self.latest[side].replace(value).is_some_and(|latest| latest != value) {
            self.changes[side] += 1;
        }
        if let Some(edge) = self.pending {
            if side != edge.side {
                // Confirmed by its answer.
                if self.value[side].is_some_and(|known| known != value) {
                    self.commit(edge);
                }
            } else if value == edge.value {
                self.commit(edge);
            } else {
                // One of the two overtook the other.
                self.pending = None;
                self.value[side] = Some(value);
                self.is_disturbed = true;
                self.out_of_turn += 1;
                return;
            }
        }
        let Some(known) = self.value[side] else {
            self.value[side] = Some(value);
            return;
        };
        if known == value {
            return;
        }
        let [Some(a), Some(b)] = self.value else {
            // The first packet of the other end was not yet seen: the time of the edge is unknown.
            self.is_disturbed = true;
            return;
        };
        if self.is_too_soon(side, at) {
            self.is_disturbed = true;
            self.out_of_turn += 1;
            return;
        }
        // If both are equal, the client is next.
        if (a == b) == (side == client) {
            self.value[side] = Some(value);
            let is_clean = !std::mem::take(&mut self.is_disturbed);
            self.pending = Some(Edge { side, value, at, is_clean });
        } else {
            self.out_of_turn += 1;
        }
    }

    /// Whether an edge follows so soon that reordering must have caused it.
    fn is_too_soon(&self, side: usize, at: Option<u64>) -> bool {
        let since = self.last[side].and_then(|last| Some(at?.saturating_sub(last.at?)));
        since.zip(self.rtt[side].smoothed()).is_some_and(|(since, smoothed)| since < smoothed / SOON)
    }

    fn commit(&mut self, edge: Edge) {
        self.pending = None;
        self.edges += 1;
        let (own, other) = (self.last[edge.side], self.last[1 - edge.side]);
        if let Some(other) = other
            && edge.is_clean
            && other.is_clean
        {
            let since = |before: Edge| Some(edge.at?.saturating_sub(before.at?));
            if let Some(ns) = since(other) {
                self.to_ends[edge.side].add(ns);
            }
            if let Some(ns) = own.filter(|own| own.is_clean).and_then(since) {
                self.rtt[edge.side].add(ns);
            }
        }
        self.last[edge.side] = Some(edge);
    }

    pub(super) fn report(&self) -> CapturedSpin {
        let state = self.state();
        let spins = state == SpinState::Spins;
        let [a, b] = [0, 1].map(|side| self.rtt[side].report().filter(|_| spins));
        let [to_a, to_b] = [0, 1].map(|side| self.to_ends[side].report().filter(|_| spins));
        CapturedSpin {
            state,
            packets: self.packets,
            edges: self.edges,
            out_of_turn: self.out_of_turn,
            rtt: [a, b],
            to_ends: [to_a, to_b],
        }
    }

    fn state(&self) -> SpinState {
        let [a, b] = self.packets;
        let all = a + b;
        if (a == 0) != (b == 0) {
            SpinState::OneWay
        } else if a.min(b) < LEAST_PACKETS {
            SpinState::TooFew
        } else if self.is_like_random() || (self.out_of_turn > 1 && self.out_of_turn > all / OUT_OF_TURN) {
            SpinState::Erratic
        } else if self.changes.contains(&0) {
            SpinState::Constant
        } else if self.edges < LEAST_EDGES {
            SpinState::TooFew
        } else {
            SpinState::Spins
        }
    }

    /// Whether the bit of either direction changes as often as a random one.
    fn is_like_random(&self) -> bool {
        let share = |side: usize| self.changes[side] as f64 / (self.packets[side] - 1).max(1) as f64;
        [0, 1].into_iter().any(|side| LIKE_RANDOM.contains(&share(side)))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::datagrams::random::Random;

    const MS: u64 = 1_000_000;

    /// Packets of both directions every `apart` ms; `to_client` and `to_server` are the one-way delays from the capture, ms.
    struct Path {
        apart: u64,
        to_client: u64,
        to_server: u64,
    }

    #[derive(Clone, Copy, PartialEq)]
    enum End {
        Spins,
        Constant,
        Random,
    }

    /// Returns (time at the capture, side, bit) as sent by the two ends; the share `late` of the packets is delayed by 3 ms.
    fn packets(path: &Path, [client, server]: [End; 2], late: f64, seed: u64) -> Vec<(u64, usize, bool)> {
        let mut random = Random(seed);
        let (mut seen, mut flying): (Vec<_>, Vec<(u64, usize, u64, bool)>) = (Vec::new(), Vec::new());
        // Highest number received by each end, and its bit.
        let mut highest = [(0, false); 2];
        let mut number = 0;
        for now in 0..4000 {
            flying.sort_by_key(|packet| packet.0);
            while flying.first().is_some_and(|packet| packet.0 <= now) {
                let (_, side, number, bit) = flying.remove(0);
                if number >= highest[1 - side].0 {
                    highest[1 - side] = (number, bit);
                }
            }
            if now % path.apart == 0 {
                for (side, end) in [client, server].into_iter().enumerate() {
                    number += 1;
                    let bit = match end {
                        End::Spins => highest[side].1 ^ (side == 0),
                        End::Constant => true,
                        End::Random => random.next().is_multiple_of(2),
                    };
                    let extra = if (random.next() % 10_000) as f64 / 1e4 < late { 3 } else { 0 };
                    let here = [path.to_client, path.to_server][side] + extra;
                    flying.push((now + path.to_client + path.to_server + extra, side, number, bit));
                    seen.push((now + here, side, bit));
                }
            }
        }
        seen.sort_by_key(|packet| packet.0);
        seen
    }

    fn of(all: &[(u64, usize, bool)]) -> CapturedSpin {
        let mut spin = Spin::default();
        all.iter().for_each(|&(at, side, bit)| spin.note(side, 0, bit, Some(at * MS)));
        spin.report()
    }

    #[test]
    fn edges_give_the_round_trip_and_its_two_parts_wherever_it_is_captured() {
        for (to_client, to_server) in [(0, 40), (10, 30), (40, 0)] {
            for apart in [1, 5] {
                let path = Path { apart, to_client, to_server };
                let spin = of(&packets(&path, [End::Spins; 2], 0.0, 1));
                assert_eq!((spin.state, spin.out_of_turn), (SpinState::Spins, 0), "{spin:?}");
                // An end answers with its next packet.
                let whole = 80 + 2 * apart;
                for rtt in spin.rtt {
                    let rtt = rtt.unwrap();
                    assert!(rtt.samples > 30, "{rtt:?}");
                    assert!((80..=whole).contains(&(rtt.p50.as_ns() / MS)), "{rtt:?}");
                }
                for (far, part) in [to_client, to_server].into_iter().zip(spin.to_ends) {
                    let part = part.unwrap().p50.as_ns();
                    assert!((2 * far * MS..=(2 * far + apart + 1) * MS).contains(&part), "{far}: {part}");
                }
            }
        }
    }

    #[test]
    fn reordering_gives_no_short_round_trips() {
        for (to_client, to_server) in [(0, 40), (10, 30), (40, 0)] {
            for late in [0.02, 0.2] {
                let path = Path { apart: 1, to_client, to_server };
                let spin = of(&packets(&path, [End::Spins; 2], late, 7));
                assert_eq!(spin.state, SpinState::Spins, "{spin:?}");
                for rtt in spin.rtt {
                    let rtt = rtt.unwrap();
                    assert!(rtt.samples > 5 && rtt.min.as_ns() >= 76 * MS, "{late} {rtt:?}");
                    assert!((80..=88).contains(&(rtt.p50.as_ns() / MS)), "{rtt:?}");
                }
            }
        }
    }

    #[test]
    fn a_bit_that_is_constant_or_random_gives_none() {
        let path = Path { apart: 1, to_client: 10, to_server: 30 };
        let mut wrong = 0;
        for (ends, expected) in [
            ([End::Constant, End::Spins], SpinState::Constant),
            ([End::Spins, End::Constant], SpinState::Constant),
            ([End::Random, End::Spins], SpinState::Erratic),
            ([End::Spins, End::Random], SpinState::Erratic),
            ([End::Random, End::Random], SpinState::Erratic),
        ] {
            for apart in [1, 7, 80] {
                let ends_of = packets(&Path { apart, ..path }, ends, 0.0, apart);
                let spin = of(&ends_of);
                // The first packets of a spinning end may arrive before those of the other.
                let is_none = spin.rtt == [None; 2] && spin.to_ends == [None; 2];
                assert!(is_none, "{apart} {spin:?}");
                wrong += u32::from(spin.state != expected);
            }
        }
        assert!(wrong <= 3, "{wrong} by another name");
    }

    /// With as few packets as make a round trip, chance has the largest effect.
    #[test]
    fn random_bits_of_few_packets_are_seldom_taken_for_spinning() {
        let mut random = Random(3);
        let (mut taken, all) = (0, 20_000);
        for i in 0..all {
            let mut spin = Spin::default();
            for packet in 0..2 * (8 + i % 60) {
                spin.note(packet as usize % 2, 0, random.next().is_multiple_of(2), Some(packet * 20 * MS));
            }
            taken += u32::from(spin.state() == SpinState::Spins);
        }
        println!("{taken} of {all} connections with random spin bits were taken for spinning");
        assert!(taken <= 20, "{taken}");
    }

    /// The client's first edge may pass before any packet of the server.
    #[test]
    fn the_first_edge_gives_no_short_round_trip() {
        let path = Path { apart: 1, to_client: 10, to_server: 30 };
        let mut all = packets(&path, [End::Spins; 2], 0.0, 1);
        // The last handshake packet has the initial bit of both.
        all.insert(0, (0, 0, false));
        let rtts = of(&all).rtt.map(|rtt| rtt.unwrap().min.as_ns() / MS);
        assert!(rtts.iter().all(|&rtt| rtt >= 80), "{rtts:?}");
    }

    #[test]
    fn one_way_and_too_few_packets_say_nothing() {
        let path = Path { apart: 1, to_client: 10, to_server: 30 };
        let all = packets(&path, [End::Spins; 2], 0.0, 1);
        let one_way: Vec<_> = all.iter().copied().filter(|packet| packet.1 == 0).collect();
        assert_eq!(of(&one_way).state, SpinState::OneWay);
        assert_eq!(of(&all[..200]).state, SpinState::TooFew);
        assert_eq!(of(&[]).state, SpinState::TooFew);
    }
}
