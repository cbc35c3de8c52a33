//! Round trips to one address: TCP handshakes, ICMP, or messages that `bdp serve` echoes.
//!
//! Probes are sent on a thread of their own, on a schedule kept to the microsecond: it sleeps, then spins for the
//! last part of the wait. The thread does nothing else; the caller's thread reports progress.

mod connect;
mod echo;
mod exchange;
mod icmp;
mod ledger;
mod route;
mod schedule;

use std::net::SocketAddr;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::time::{Duration, Instant};

use bdp_model::finding::caveat::Caveat;
use bdp_model::probes::ping::{PING_SCHEMA, Ping, PingMethod, PingMode, PingRequest, Sample, Tally};
use bdp_model::units::Nanos;
use bdp_sys::clock;
use serde::{Deserialize, Serialize};

use bdp_flow::session::dial;
use bdp_flow::session::error::{Result, SessionError};
use bdp_flow::worker::Stoppable;
use connect::Connector;
use echo::EchoSession;
use exchange::Carrier;
use icmp::Icmp;
use ledger::{Ledger, Live};
use route::{dialling, local_end, options};

/// Interval of progress reports.
const TICK: Duration = Duration::from_millis(100);
/// Shortest interval other than a closed loop.
pub const SHORTEST_INTERVAL: Nanos = Nanos::micros(1);

/// Shortest interval at which probes are shown one by one: more could not be read.
pub const SHORTEST_SHOWN: Nanos = Nanos::millis(1);

/// Progress of a ping.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct PingProgress {
    /// Probes sent that count.
    pub sent: u64,
    /// Answers to these probes.
    pub received: u64,
    /// The latest round trip.
    pub rtt_ns: Option<u64>,
    /// Time since the first probe.
    #[serde(rename = "elapsed_ns", with = "bdp_model::units::nanoseconds")]
    #[cfg_attr(feature = "schema", schemars(with = "u64"))]
    pub elapsed: Nanos,
    /// Results of probes since the last report, in the order in which they were settled; empty if they are sent more
    /// often than once per millisecond.
    pub settled: Vec<Sample>,
}

/// Sends probes as requested, and returns their results, even if none was answered. `keep` keeps each probe.
///
/// Blocks until the end; `progress` is called from this thread, ten times a second and at the end. `cancel` ends it;
/// the result then covers the probes so far.
pub fn ping(
    request: &PingRequest,
    token: Option<&str>,
    keep: bool,
    progress: &mut dyn FnMut(&PingProgress),
    cancel: &AtomicBool,
) -> Result<Ping> {
    check(request)?;
    let addresses = dial::resolve(&dialling(request), cancel)?;
    let started_unix_ms = clock::unix_ms();
    let live = Arc::new(Live::showing(request.interval >= SHORTEST_SHOWN));
    let ledger = Ledger::new(Arc::clone(&live), request.interval > Nanos::ZERO, keep, request.count);
    let mut session = None;
    let (address, method, run) = match request.mode {
        PingMode::Connect => {
            let connector = connector(request, &addresses, cancel)?;
            let (to, request) = (connector.to, request.clone());
            let work: Work = Box::new(move |ledger, stop| connector.run(&request, ledger, stop));
            (to.to_string(), PingMethod::Handshakes, work)
        }
        PingMode::Icmp => {
            let to = addresses.first().copied().ok_or_else(|| SessionError::no_address(&request.host))?;
            let icmp =
                Icmp::open(request, to, dial::local_address(&dialling(request))?.map(|ip| (ip, 0).into()))?;
            (to.ip().to_string(), icmp.method(), exchanging(icmp, to, request))
        }
        PingMode::Tcp | PingMode::Udp => {
            let options = options(request);
            let open = session.insert(EchoSession::open(request, token, &addresses, &options, cancel)?);
            let to = open.address();
            let work = match request.mode {
                PingMode::Udp => exchanging(open.datagrams(request)?, to, request),
                _ => exchanging(open.connection(request, &options, cancel)?, to, request),
            };
            let is_udp = request.mode == PingMode::Udp;
            (to.to_string(), if is_udp { PingMethod::Datagrams } else { PingMethod::Messages }, work)
        }
    };
    let mut keep_alive = || session.as_mut().map_or(Ok(()), EchoSession::keep_alive);
    let run = Stoppable::start(move |stop| {
        let mut ledger = ledger;
        run(&mut ledger, stop).map(|()| ledger)
    })?;
    let ledger = wait(run, &live, progress, &mut keep_alive, cancel)?;
    let mut ping = Ping {
        schema: PING_SCHEMA.to_owned(),
        bdp: env!("CARGO_PKG_VERSION").to_owned(),
        request: request.clone(),
        address,
        method,
        started_unix_ms,
        ..Ping::default()
    };
    ledger.enter(&mut ping);
    add_caveats(&mut ping, keep);
    Ok(ping)
}

/// Sends probes until the schedule ends or the flag is raised.
type Work = Box<dyn FnOnce(&mut Ledger, &AtomicBool) -> Result<()> + Send>;

/// Prepares probes of a carrier to an address, as requested.
fn exchanging(mut carrier: impl Carrier + Send + 'static, to: SocketAddr, request: &PingRequest) -> Work {
    let request = request.clone();
    Box::new(move |ledger, stop| match exchange::run(&mut carrier, &request, ledger, stop) {
        Err(_) if stop.load(Ordering::Relaxed) => Ok(()),
        Err(_) => Err(SessionError::Lost { address: to, doing: "the echo of messages" }),
        Ok(()) => Ok(()),
    })
}

/// Waits for the thread that sends probes.
fn wait(
    mut run: Stoppable<Result<Ledger>>,
    live: &Live,
    progress: &mut dyn FnMut(&PingProgress),
    keep_alive: &mut dyn FnMut() -> Result<()>,
    cancel: &AtomicBool,
) -> Result<Ledger> {
    let began = Instant::now();
    let mut reported = began;
    let report = || {
        let read = |number: &AtomicU64| number.load(Ordering::Relaxed);
        PingProgress {
            sent: read(&live.sent),
            received: read(&live.received),
            rtt_ns: Some(read(&live.rtt_ns)).filter(|&rtt| rtt > 0),
            elapsed: Nanos::from(began.elapsed()),
            settled: live.take_settled(),
        }
    };
    while !run.is_finished() {
        std::thread::sleep(Duration::from_millis(10));
        if cancel.load(Ordering::Relaxed) {
            run.stop();
        }
        if reported.elapsed() >= TICK {
            reported = Instant::now();
            keep_alive()?;
            progress(&report());
        }
    }
    progress(&report());
    run.join().unwrap_or(Err(SessionError::Cancelled))
}

/// Refuses impossible requests.
fn check(request: &PingRequest) -> Result<()> {
    let wrong = |text: &str| Err(SessionError::Request(text.to_owned()));
    if request.interval > Nanos::ZERO && request.interval < SHORTEST_INTERVAL {
        return wrong(
            "the interval must be at least 1 us, or 0 to send each probe when the last is answered",
        );
    }
    if request.count == Some(0) {
        return wrong("a count of 0 sends nothing");
    }
    if request.mode == PingMode::Connect && request.payload.is_some() {
        return wrong(
            "a TCP handshake carries no payload; omit the length (-l), or use --icmp, --udp or --tcp",
        );
    }
    if request.dscp.is_some_and(|dscp| dscp > 63) {
        return wrong("DSCP must be 0 to 63");
    }
    Ok(())
}

/// Returns a connector to the first address that answers, or to the first of all if none does.
fn connector(request: &PingRequest, addresses: &[SocketAddr], cancel: &AtomicBool) -> Result<Connector> {
    let mut found = None;
    for &to in addresses {
        let connector = Connector {
            to,
            from: local_end(request, to)?,
            options: options(request),
            patience: request.patience.to_duration(),
        };
        // With one address there is nothing to choose, and no answer is a result too.
        if addresses.len() == 1 || connector.try_once(0, cancel)?.outcome.is_ok() {
            return Ok(connector);
        }
        found.get_or_insert(connector);
    }
    found.ok_or_else(|| SessionError::no_address(&request.host))
}

fn add_caveats(ping: &mut Ping, keep: bool) {
    let Tally { retransmitted, left_out, sent, lost, dropped_by_receiver, .. } = ping.probes;
    if let Some(dropped @ 1..) = dropped_by_receiver {
        ping.caveats.push(Caveat::AnswersDropped { dropped, lost });
    }
    if retransmitted > 0 {
        ping.caveats.push(Caveat::SynRetransmitted { handshakes: retransmitted });
    }
    if left_out > sent / 100 {
        ping.caveats.push(Caveat::ProbesLeftOut { probes: left_out });
    }
    if keep && ping.samples.len() == ledger::MOST_SAMPLES {
        ping.caveats.push(Caveat::SamplesCapped { kept: ledger::MOST_SAMPLES as u64 });
    }
}
