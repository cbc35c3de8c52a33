//! The sending end of bulk TCP: each thread of the crew serves its share of the streams in one poll loop, and the
//! leader reads `TCP_INFO` of all streams.

mod leading;
mod plan;
mod share;

use std::net::TcpStream;
use std::sync::atomic::{AtomicBool, AtomicU64, AtomicUsize, Ordering};

use bdp_model::flow::USUAL_LENGTH;
use bdp_model::flow::payload::Zerocopy;
use bdp_sys::payload::{self, Method, Payload};
use bdp_sys::poll::Waker;
use bdp_sys::{clock, socket};
use bdp_wire::control::Sent;

use crate::effort::Busiest;
use crate::error::Result;
use crate::gate::Gate;
use crate::meter::Meter;
use crate::pace::Pace;
use crate::pause::{looks_seldom, stop_check_ns};
use crate::ways;
use leading::Leading;
pub use plan::SendPlan;
use share::{Flow, Share};

/// Largest buffer for one write.
const LONGEST_WRITE: u64 = 64 << 20;

/// Writes to connected streams until the receiver ends the flow, until the planned bytes are sent, or until `stop`.
/// The meter shows bytes acknowledged at the last sample.
pub fn over(streams: Vec<TcpStream>, plan: &SendPlan, stop: &AtomicBool, meter: &Meter) -> Result<Sent> {
    let length = plan.length_bytes.clamp(1, LONGEST_WRITE) as usize;
    let pace = plan
        .rate_bps
        .and_then(|rate_bps| Pace::of(rate_bps, clock::monotonic_ns(), length, plan.whole_writes));
    let alone = plan.whole_writes && pace.is_some_and(|pace| pace.is_coarse());
    if let Some(rate_bps) = plan.rate_bps.filter(|_| !alone) {
        streams.iter().try_for_each(|stream| socket::pace(stream, rate_bps))?;
    }
    let program = Gate::writer(&plan.application, clock::monotonic_ns(), length);
    let gate = program.or(pace.map(Gate::Rate));
    let is_free = gate.is_none() && !plan.patterned && !looks_seldom();
    let methods = methods(plan, length, is_free);
    let payload = Payload::new(length, methods[0])?;
    // If the requested method is unavailable, the payload has another.
    let methods = if let [_] = methods[..] { vec![payload.method()] } else { methods };
    let gathers = is_free && plan.length_bytes == USUAL_LENGTH.as_bytes();
    let flow = Flow {
        plan,
        meter,
        ways: ways::candidates(&methods, payload.length(), gathers, streams.len()),
        mss: AtomicU64::new(0),
        way: AtomicUsize::new(0),
        yields: is_free,
        refuses: AtomicBool::new(false),
        payload,
        gate,
        left: plan.bytes.map(AtomicU64::new),
        written: AtomicU64::new(0),
        open: AtomicUsize::new(streams.len()),
        completed: AtomicU64::new(0),
        copied: AtomicU64::new(0),
        over: AtomicBool::new(false),
        busiest: Busiest::default(),
        wake: Waker::new()?,
        streams,
    };
    let busiest = &flow.busiest;
    let lead = |share| busiest.watch(|| Leading::new(&flow, Share::new(&flow, share)?).run(stop));
    let follow = |share| {
        let mut share = Share::new(&flow, share)?;
        while !flow.over.load(Ordering::Relaxed) && share.open > 0 {
            share.turn(stop_check_ns())?;
        }
        share.leave();
        Ok(())
    };
    let follow = |share| busiest.watch(|| follow(share));
    let mut sent = plan.crew.run(flow.streams.len(), &flow.over, lead, follow)?;
    sent.thread_cpu = Some(busiest.share());
    sent.bytes = flow.written.load(Ordering::Relaxed);
    sent.method = flow.method();
    Ok(sent)
}

/// Returns the ways to give bytes to the kernel that fit the plan: the first to begin with, and more if the fastest
/// is to be found.
fn methods(plan: &SendPlan, length: usize, is_free: bool) -> Vec<Method> {
    match plan.zerocopy {
        _ if plan.patterned => vec![Method::Write],
        // Copying a few bytes is faster than handing them over; in a guest nothing takes time.
        Zerocopy::Auto if is_free && payload::can_splice(length) => vec![Method::Write, Method::Splice],
        Zerocopy::Auto | Zerocopy::Off => vec![Method::Write],
        Zerocopy::Sendfile => vec![Method::Sendfile],
        Zerocopy::Splice => vec![Method::Splice],
        Zerocopy::Msg => vec![Method::ZeroCopy],
    }
}
