//! Successive TCP handshakes, which any listener answers. The listener's kernel does so by itself; its program sees a
//! connection that is reset at once.

use std::io::{self, ErrorKind};
use std::net::SocketAddr;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use bdp_model::probes::ping::{Fate, PingRequest};
use bdp_sys::handshake::{Handshake, Tried};
use bdp_sys::socket::TcpOptions;
use bdp_sys::{clock, process};

use super::ledger::Ledger;
use super::schedule::{SPIN_AFTER_NS, may_spin, schedule, wait_exactly};
use bdp_flow::session::dial::failure;
use bdp_flow::session::error::Result;

/// Destination and source of handshakes.
#[derive(Debug, Clone)]
pub(super) struct Connector {
    pub(super) to: SocketAddr,
    pub(super) from: Option<SocketAddr>,
    pub(super) options: TcpOptions,
    pub(super) patience: Duration,
}

impl Connector {
    /// Makes one handshake.
    pub(super) fn try_once(&self, spin_ns: u64, stop: &AtomicBool) -> Result<Tried> {
        let prepared = Handshake::prepare(self.to, self.from, &self.options);
        Ok(prepared.map_err(|e| failure(self.to, e))?.carry_out(self.patience, spin_ns, stop))
    }

    /// Makes a handshake at every turn, one at a time. Turns during a handshake are skipped: nothing is sent.
    pub(super) fn run(&self, request: &PingRequest, ledger: &mut Ledger, stop: &AtomicBool) -> Result<()> {
        process::sharpen_timers();
        let spin_ns = if may_spin() { SPIN_AFTER_NS } else { 0 };
        let schedule = schedule(request, clock::monotonic_ns());
        let closed = schedule.times.is_none();
        let (mut turn, mut sent) = (0, 0);
        while let Some(due) = schedule.due(turn, sent, clock::monotonic_ns()) {
            // Made before its turn, so that only the handshake is timed.
            let prepared = Handshake::prepare(self.to, self.from, &self.options);
            let prepared = prepared.map_err(|e| failure(self.to, e))?;
            if !wait_exactly(due, stop) {
                break;
            }
            let tried = prepared.carry_out(self.patience, spin_ns, stop);
            if tried.outcome.is_err() && stop.load(Ordering::Relaxed) {
                break;
            }
            let counts = sent >= request.warm_up;
            if counts {
                if sent == request.warm_up {
                    ledger.begin(if closed { tried.started_ns } else { due });
                }
                note(sent - request.warm_up, due, &tried, ledger)?;
            }
            (turn, sent) = (turn + 1, sent + 1);
            while !closed
                && let Some(missed) = schedule.due(turn, sent, tried.ended_ns)
                && missed < tried.ended_ns
            {
                if counts {
                    ledger.leave_out(missed, tried.outcome.is_ok().then_some(tried.ended_ns));
                }
                turn += 1;
            }
            if closed && tried.outcome.is_err() {
                // A refusal arrives at once, and a closed loop of them would be a flood.
                std::thread::sleep(Duration::from_millis(10));
            }
        }
        Ok(())
    }
}

fn note(number: u64, due_ns: u64, tried: &Tried, ledger: &mut Ledger) -> Result<()> {
    let fate = match &tried.outcome {
        Ok(()) => Fate::Answered(tried.ended_ns - tried.started_ns),
        Err(error) => fate_of(error),
    };
    ledger.send(due_ns, tried.started_ns);
    ledger.settle(number, due_ns, tried.started_ns, fate, tried.ended_ns);
    if tried.retransmitted {
        ledger.retransmit();
    }
    Ok(())
}

/// Returns the fate of a probe with this kernel error.
pub(super) fn fate_of(error: &io::Error) -> Fate {
    match error.kind() {
        ErrorKind::ConnectionRefused => Fate::Refused,
        ErrorKind::TimedOut => Fate::Lost,
        _ => Fate::Unreachable,
    }
}
