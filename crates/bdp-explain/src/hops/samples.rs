//! Hand-made probes for tests.

use std::net::{IpAddr, Ipv4Addr};

use bdp_model::probes::hops::{Answer, AnswerKind, HopProbe, Marks, PathReport, PathRequest, Phase};

pub const fn ms(n: u64) -> u64 {
    n * 1_000_000
}

pub fn address(hop: u8) -> IpAddr {
    Ipv4Addr::new(10, 0, hop, 1).into()
}

/// Probes of a path with this many hops, the last one the destination.
pub struct Samples {
    pub hops: u8,
    pub probes: Vec<HopProbe>,
    pub request: PathRequest,
    pub interval_ns: u64,
}

impl Samples {
    pub fn of_hops(hops: u8) -> Self {
        Self { hops, probes: Vec::new(), request: PathRequest::default(), interval_ns: ms(250) }
    }

    pub fn idle(&mut self, rounds: u64, rtt: impl Fn(u8, u64) -> Option<u64>) {
        self.rounds(Phase::Idle, rounds, rtt);
    }

    pub fn loaded(&mut self, rounds: u64, rtt: impl Fn(u8, u64) -> Option<u64>) {
        self.rounds(Phase::Loaded, rounds, rtt);
    }

    pub fn rounds(&mut self, phase: Phase, rounds: u64, rtt: impl Fn(u8, u64) -> Option<u64>) {
        for n in 0..rounds {
            for hop in 1..=self.hops {
                let answer = rtt(hop, n).map(|rtt_ns| self.answer(hop, rtt_ns));
                self.probes.push(HopProbe {
                    phase,
                    hop,
                    flow: 0,
                    bytes: 44,
                    sent_ns: n * self.interval_ns,
                    answer,
                });
            }
        }
    }

    pub fn answer(&self, hop: u8, rtt_ns: u64) -> Answer {
        let kind = if hop == self.hops { AnswerKind::Arrived } else { AnswerKind::Exceeded };
        Answer { from: Some(address(hop)), rtt_ns, kind, marks: None }
    }

    /// Adds a probe of a size, with its answer.
    pub fn size(&mut self, hop: u8, bytes: u32, kind: Option<AnswerKind>, from: u8) {
        let answer = kind.map(|kind| Answer { from: Some(address(from)), kind, ..self.answer(hop, ms(1)) });
        self.probes.push(HopProbe { phase: Phase::Sizes, hop, flow: 0, bytes, sent_ns: 0, answer });
    }

    /// Adds a probe of a flow, with the address that answered.
    pub fn flow(&mut self, hop: u8, flow: u16, from: IpAddr) {
        let answer = Some(Answer { from: Some(from), ..self.answer(hop, ms(1)) });
        self.probes.push(HopProbe { phase: Phase::Branches, hop, flow, bytes: 44, sent_ns: 0, answer });
    }

    /// Sets the marks that a hop quotes.
    pub fn quote(&mut self, marks: impl Fn(u8, usize) -> Option<Marks>) {
        for (n, probe) in self.probes.iter_mut().enumerate() {
            if let Some(answer) = &mut probe.answer {
                answer.marks = marks(probe.hop, n);
            }
        }
    }

    pub fn report(&self, load: bool) -> PathReport {
        let mut report = PathReport {
            request: PathRequest { load, ..self.request.clone() },
            quotes: true,
            ..PathReport::default()
        };
        super::conclude(&mut report, &self.probes);
        report
    }
}
