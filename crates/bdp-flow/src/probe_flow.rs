//! Runs a probe flow by the monotonic clock, over any kind of probe.

use std::sync::atomic::{AtomicBool, Ordering};

use bdp_model::probes::flight::{ProbeFlow, Step};
use bdp_sys::clock;
use bdp_wire::control::ProbeSample;

use crate::error::Result;
use crate::pause::stop_check_ns;

/// A kind of probe.
pub trait Carrier {
    /// Sends a probe; returns when, and whether it never left.
    fn send(&mut self, number: u64, now_ns: u64) -> Result<(u64, bool)>;

    /// Waits for answers, at most this long, and returns the time just after they arrived.
    fn receive(&mut self, wait_ns: u64, arrivals: &mut Vec<Arrival>) -> Result<u64>;

    /// Keeps a probe: when it is sent, and again when it is answered.
    fn note(&mut self, number: u64, sample: ProbeSample);

    /// Notes that a probe is no longer awaited.
    fn give_up(&mut self, _number: u64) {}

    /// Returns the time; `known_ns` is the last reading.
    fn now_ns(&self, _known_ns: u64) -> u64 {
        clock::monotonic_ns()
    }
}

/// An answer.
#[derive(Debug, Clone, Copy, Default)]
pub struct Arrival {
    /// Number of the probe.
    pub number: u64,
    /// When the probe was sent, if the answer names it.
    pub sent_at_ns: Option<u64>,
    /// Whether it is a refusal.
    pub refused: bool,
    /// One-way delay of the probe, if known.
    pub there_ns: Option<u64>,
    /// Number of probes that the echo has received, modulo 256, if it counts them.
    pub echoed: Option<u8>,
}

/// Sends each probe when it is due, and waits for the last answer or its deadline. Returns when the wait ended.
pub fn run(carrier: &mut dyn Carrier, mut flow: ProbeFlow, start_ns: u64, stop: &AtomicBool) -> Result<u64> {
    let (mut now, mut arrivals) = (start_ns, Vec::new());
    loop {
        now = carrier.now_ns(now);
        while let Some(number) = flow.give_up(now) {
            carrier.give_up(number);
        }
        match flow.step(now, stop.load(Ordering::Relaxed)) {
            Step::End => return Ok(now),
            Step::Send(number, due) => {
                let (sent, failed) = carrier.send(number, now)?;
                flow.send(due, sent, failed);
                carrier.note(number, ProbeSample { failed, ..ProbeSample::sent(due, sent) });
            }
            Step::Wait(until) => {
                // Bounded, so that a stop is seen.
                now = carrier.receive(until.saturating_sub(now).min(stop_check_ns()), &mut arrivals)?;
                for Arrival { number, sent_at_ns, refused, there_ns, echoed } in arrivals.drain(..) {
                    let Some(sent) = flow.answer(number, sent_at_ns, now, refused) else { continue };
                    let took = now.saturating_sub(sent.sent_ns);
                    let sample = ProbeSample {
                        rtt_ns: (!refused).then_some(took),
                        there_ns: there_ns.filter(|&there| there <= took),
                        echoed,
                        failed: refused,
                        ..ProbeSample::sent(sent.due_ns, sent.sent_ns)
                    };
                    carrier.note(number, sample);
                }
            }
        }
    }
}

/// Enters what [`Carrier::note`] is given into a list by number.
pub fn enter(probes: &mut Vec<ProbeSample>, number: u64, sample: ProbeSample) {
    match probes.get_mut(number as usize) {
        Some(known) => *known = sample,
        None => probes.push(sample),
    }
}
