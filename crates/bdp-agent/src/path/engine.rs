//! Sends probes on time, and matches answers to them.

use std::net::SocketAddr;
use std::os::fd::AsFd;
use std::sync::atomic::{AtomicBool, Ordering};

use bdp_flow::error::FlowError;
use bdp_flow::pause::stop_check_ns;
use bdp_flow::session::error::{Result, SessionError};
use bdp_model::probes::flight::{Flight, State};
use bdp_model::probes::hops::{Answer, AnswerKind, HopProbe, Marks, Phase};
use bdp_sys::clock;
use bdp_sys::hop_socket::QuoteSocket;
use bdp_sys::poll::{Interest, wait_any};
use bdp_wire::icmp::Quote;

use super::prober::{Outgoing, Prober, ROOM, Reply, Which};

/// Probes among which the one is sought that a short quote means.
const LOOK_BACK: usize = 256;

/// The destination of a probe.
#[derive(Debug, Clone, Copy)]
pub(super) struct Aim {
    pub(super) phase: Phase,
    pub(super) hop: u8,
    pub(super) flow: u16,
    /// Bytes of its IP packet; 0 for the prober's own size.
    pub(super) bytes: u32,
}

struct OfHop {
    probe: HopProbe,
    /// When it was sent, since 1970.
    sent_unix_ns: u64,
    /// Its marks, if its answer has not been processed.
    early: Option<Marks>,
}

/// A prober, and all probes that it has sent.
pub(super) struct Engine {
    prober: Box<dyn Prober>,
    to: SocketAddr,
    octet: u8,
    patience_ns: u64,
    /// Start of the run, by the monotonic clock.
    start_ns: u64,
    quotes: Option<QuoteSocket>,
    flight: Flight<OfHop>,
    /// Why the last probe could not be sent.
    refused: Option<bdp_sys::SysError>,
    room: Vec<u8>,
}

impl Engine {
    /// Creates an engine over a prober, which sends with this octet. Without the privilege to read quoted headers it
    /// has none.
    pub(super) fn over(
        prober: Box<dyn Prober>,
        to: SocketAddr,
        octet: u8,
        patience_ns: u64,
        start_ns: u64,
    ) -> Self {
        Self {
            prober,
            to,
            octet,
            patience_ns,
            start_ns,
            quotes: QuoteSocket::open(to.ip()).ok(),
            flight: Flight::default(),
            refused: None,
            room: vec![0; ROOM],
        }
    }

    pub(super) fn prober(&self) -> &dyn Prober {
        self.prober.as_ref()
    }

    pub(super) fn has_quotes(&self) -> bool {
        self.quotes.is_some()
    }

    /// Returns all probes, in the order in which they were sent.
    pub(super) fn probes(&self) -> impl Iterator<Item = &HopProbe> {
        self.flight.iter().map(|(_, sent)| &sent.of_kind.probe)
    }

    /// Returns the nanoseconds since the run began.
    pub(super) fn now_ns(&self) -> u64 {
        clock::monotonic_ns().saturating_sub(self.start_ns)
    }

    /// Sets how long answers are awaited from now on.
    pub(super) fn set_patience(&mut self, patience_ns: u64) -> u64 {
        std::mem::replace(&mut self.patience_ns, patience_ns)
    }

    /// Returns the bytes of the smallest possible probe packet.
    pub(super) fn smallest(&self) -> u32 {
        self.prober.method().bytes
    }

    /// Returns the longest round trip so far.
    pub(super) fn longest_rtt_ns(&self) -> Option<u64> {
        self.probes().filter_map(HopProbe::rtt_ns).max()
    }

    /// Sends a probe, after the one that it must wait for; returns its number.
    pub(super) fn send(&mut self, aim: Aim, cancel: &AtomicBool) -> Result<u32> {
        while self.prober.is_busy(aim.flow) {
            self.pass(self.now_ns() + stop_check_ns(), cancel, |engine| !engine.prober.is_busy(aim.flow))?;
        }
        let bytes = if aim.bytes == 0 { self.smallest() } else { aim.bytes };
        let Aim { phase, hop, flow, .. } = aim;
        let sent_ns = self.now_ns();
        let probe = HopProbe { phase, hop, flow, bytes, sent_ns, answer: None };
        let of_hop = OfHop { probe, sent_unix_ns: clock::unix_ns(), early: None };
        let number = self.flight.send(sent_ns, sent_ns, sent_ns + self.patience_ns, of_hop) as u32;
        match self.prober.send(&Outgoing { number, flow, hop, octet: self.octet, bytes }) {
            Ok(()) => self.refused = None,
            // A probe that this machine cannot send is counted as lost on the path, unless none can be sent.
            Err(error) => {
                self.flight.settle(number.into(), State::Closed);
                self.refused = Some(error);
            }
        }
        Ok(number)
    }

    /// Returns why nothing can be sent, if the last probe failed.
    pub(super) fn refusal(&mut self) -> Option<SessionError> {
        let error = self.refused.take()?;
        Some(match error.source.kind() {
            std::io::ErrorKind::HostUnreachable
            | std::io::ErrorKind::NetworkUnreachable
            | std::io::ErrorKind::NetworkDown
            | std::io::ErrorKind::PermissionDenied => {
                SessionError::NoRoute { address: self.to, cause: error.source.to_string() }
            }
            _ => error.into(),
        })
    }

    /// Returns the answer to a probe; `None` if there is none yet.
    pub(super) fn answer(&self, number: u32) -> Option<Answer> {
        self.flight.get(number.into())?.of_kind.probe.answer
    }

    /// Receives answers until a moment of the run.
    pub(super) fn run_until(&mut self, moment_ns: u64, cancel: &AtomicBool) -> Result<()> {
        self.pass(moment_ns, cancel, |_| false)
    }

    /// Receives answers until every probe is answered or given up.
    pub(super) fn settle(&mut self, cancel: &AtomicBool) -> Result<()> {
        let Some(until) = self.flight.open().map(|(_, sent)| sent.until_ns).max() else { return Ok(()) };
        self.pass(until, cancel, |engine| engine.flight.open_count() == 0)?;
        self.expire(until);
        Ok(())
    }

    /// Receives answers until a moment, or until the condition is met.
    pub(super) fn pass(
        &mut self,
        moment_ns: u64,
        cancel: &AtomicBool,
        is_enough: impl Fn(&Self) -> bool,
    ) -> Result<()> {
        loop {
            self.take()?;
            let now = self.now_ns();
            self.expire(now);
            if now >= moment_ns || is_enough(self) {
                return Ok(());
            }
            if cancel.load(Ordering::Relaxed) {
                return Err(SessionError::Cancelled);
            }
            let next = self.flight.oldest().map_or(moment_ns, |(_, until)| until.min(moment_ns));
            let wait_ns = next.saturating_sub(now).clamp(1, stop_check_ns());
            let mut descriptors = Vec::new();
            self.prober.descriptors(&mut descriptors);
            descriptors.extend(self.quotes.iter().map(|quotes| (quotes.as_fd(), Interest::Read)));
            wait_any(&descriptors, wait_ns);
        }
    }

    fn expire(&mut self, now: u64) {
        while let Some(number) = self.flight.expired(now) {
            self.flight.settle(number, State::Closed);
            self.prober.give_up(number as u32);
        }
    }

    fn take(&mut self) -> Result<()> {
        let mut replies = Vec::new();
        let failed = FlowError::io("read what came back of probes");
        self.prober.receive(&mut |reply| replies.push(reply)).map_err(failed)?;
        for reply in replies {
            self.note_reply(&reply);
        }
        self.take_quotes();
        Ok(())
    }

    fn note_reply(&mut self, reply: &Reply) {
        let Some(number) = self.meant(reply) else { return };
        let now = self.now_ns();
        let Some(sent) = self.flight.settle(number, State::Answered) else { return };
        let by_reading = now.saturating_sub(sent.sent_ns);
        let of_hop = &mut sent.of_kind;
        // The kernel's stamp leaves out how long this thread took to wake up, unless the clock was set meanwhile.
        let by_stamp = reply
            .arrived_unix_ns
            .and_then(|arrived| arrived.checked_sub(of_hop.sent_unix_ns))
            .filter(|&rtt| rtt > 0 && rtt <= by_reading);
        let rtt_ns = reply.rtt_ns.or(by_stamp).unwrap_or(by_reading);
        let marks = of_hop.early.take();
        of_hop.probe.answer = Some(Answer { from: reply.from, rtt_ns, kind: reply.kind, marks });
    }

    /// The number of the probe that is meant.
    fn meant(&self, reply: &Reply) -> Option<u64> {
        let open = self.flight.open().map(|(number, sent)| (number, &sent.of_kind.probe));
        match reply.which {
            Which::Number(number) => Some(number.into()),
            Which::Ending(end) => open.rev().map(|(number, _)| number).find(|&number| number as u16 == end),
            Which::OfFlow(flow) => {
                let mut those = open.filter(|(_, probe)| probe.flow == flow);
                let (number, first) = those.clone().next()?;
                if those.clone().all(|(_, probe)| probe.hop == first.hop) {
                    return Some(number);
                }
                // Probes in flight to a hop that this address answered for before.
                let from = |p: &HopProbe| p.answer.and_then(|answer| answer.from);
                let is_there = |hop: u8| {
                    reply.from.is_some() && self.probes().any(|p| p.hop == hop && from(p) == reply.from)
                };
                those.find(|(_, probe)| is_there(probe.hop)).map(|(number, _)| number)
            }
        }
    }

    /// Takes the headers that routers quoted.
    fn take_quotes(&mut self) {
        let Some(quotes) = &self.quotes else { return };
        let mut found = Vec::new();
        while let Ok(Some(received)) = quotes.receive(&mut self.room) {
            let packet = &self.room[..received.bytes];
            let quote = if self.to.is_ipv4() { Quote::of_ipv4(packet) } else { Quote::of_ipv6(packet) };
            let Some(quote) = quote else { continue };
            if let Some(which) = self.prober.number_of(&quote) {
                found.push((which, received.from, Marks::of(quote.octet)));
            }
        }
        for (which, from, marks) in found {
            let is_it = |number: u64, probe: &HopProbe| {
                let same = match which {
                    Which::Number(meant) => number == u64::from(meant),
                    Which::Ending(end) => number as u16 == end,
                    Which::OfFlow(flow) => probe.flow == flow,
                };
                same && probe.answer.is_none_or(|answer| answer.marks.is_none() && answer.from == from)
            };
            let last = self.flight.iter().rev().take(LOOK_BACK);
            let mut meant = last.filter(|&(number, sent)| is_it(number, &sent.of_kind.probe));
            let Some(number) = meant.next().map(|(number, _)| number) else { continue };
            drop(meant);
            let Some(sent) = self.flight.get_mut(number) else { continue };
            match &mut sent.of_kind.probe.answer {
                Some(answer) => answer.marks = Some(marks),
                None => sent.of_kind.early = Some(marks),
            }
        }
    }

    /// Whether an answer came from the destination.
    pub(super) fn has_arrived(&self, number: u32) -> bool {
        self.answer(number).is_some_and(|answer| answer.kind == AnswerKind::Arrived)
    }
}

#[cfg(test)]
mod tests;
