//! The hops of a path: probed idle and, on request, under the load of a transfer to a `bdp serve` at the destination.

use std::sync::atomic::{AtomicBool, AtomicU8, Ordering};
use std::time::{Duration, Instant};

use bdp_agent::path::{LEAST_GAP, PathProber, look_up};
use bdp_explain::hops::{conclude, suspects};
use bdp_flow::session::error::SessionError;
use bdp_flow::session::progress::{Progress, Stage};
use bdp_model::flow::FlowSpec;
use bdp_model::measurement::{Direction, MeasureRequest, Measurement};
use bdp_model::probes::hops::{HopLoss, HopProbe, Load, PATH_SCHEMA, PathReport, PathRequest, Phase};
use bdp_model::units::Nanos;
use bdp_sys::clock;
use serde::{Deserialize, Serialize};

use crate::measure::session::{self, Credentials};
use crate::{Event, Result, RunError};

/// Time from the start of the transfer to the first probe under load: slow start fills the queue meanwhile.
const RAMP: Nanos = Nanos::secs(1);
/// Time from the last probe under load to the end of the transfer, so that probes still in flight meet the same
/// queue.
const BEHIND: Nanos = Nanos::millis(500);
/// Interval of probes to hops that are probed again slowly: a little more than the one second of Linux's rate limit.
const SLOW: Nanos = Nanos::millis(1100);
/// Slow probes per hop.
const SLOW_PROBES: u32 = 6;
/// Loss above which a hop is assumed to rate-limit its answers when sizes are tried.
const LIMITED: f64 = 0.3;
/// How long to wait for the transfer.
const LOAD_PATIENCE: Duration = Duration::from_secs(20);
/// Interval at which the transfer is checked.
const LOOK_NS: u64 = 20_000_000;

/// A plan to probe a path.
#[derive(Debug, Clone, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct PathPlan {
    /// The probes to send.
    pub request: PathRequest,
    /// Credentials for the server of the load; never stored.
    #[serde(skip)]
    pub credentials: Credentials,
    /// Whether to keep each probe.
    #[serde(default)]
    pub keep: bool,
}

/// The result of a path plan.
#[derive(Debug)]
pub struct Traced {
    /// The hops; `None` if no probe could be sent.
    pub report: Option<PathReport>,
    /// Whether it completed; being cancelled is not an error.
    pub result: Result<()>,
}

impl PathPlan {
    /// Probes the path. `cancel` ends it; the result then covers the probes so far.
    pub fn run(&self, watch: &mut dyn FnMut(Event<'_>), cancel: &AtomicBool) -> Traced {
        let started = (clock::unix_ms(), Instant::now());
        let mut prober = match PathProber::open(&self.request, cancel) {
            Ok(prober) => prober,
            Err(error) => return Traced { report: None, result: Err(error.into()) },
        };
        let mut load = None;
        let result = self.probe(&mut prober, &mut load, watch, cancel);
        let probes = prober.probes();
        if !probes.iter().any(HopProbe::is_answered) {
            let nothing = || RunError::Unanswered(self.silent(&prober));
            return Traced { report: None, result: result.and_then(|()| Err(nothing())) };
        }
        let to = prober.destination();
        let by_port = prober.method().protocol == bdp_model::probes::hops::ProbeProtocol::Tcp;
        let mut report = PathReport {
            schema: PATH_SCHEMA.to_owned(),
            bdp: env!("CARGO_PKG_VERSION").to_owned(),
            request: self.request.clone(),
            address: if by_port { to.to_string() } else { to.ip().to_string() },
            method: prober.method(),
            flows_method: prober.flows_method(),
            quotes: prober.has_quotes(),
            started_unix_ms: started.0,
            load,
            ..PathReport::default()
        };
        conclude(&mut report, &probes);
        let mut result = match result {
            Err(RunError::Session(SessionError::Cancelled)) => Ok(()),
            other => other,
        };
        if self.request.names {
            result = result.and(name(&mut report));
        }
        if self.keep {
            report.samples = probes;
        }
        report.took_ms = started.1.elapsed().as_millis() as u64;
        Traced { report: Some(report), result }
    }

    fn probe(
        &self,
        prober: &mut PathProber,
        load: &mut Option<Load>,
        watch: &mut dyn FnMut(Event<'_>),
        cancel: &AtomicBool,
    ) -> Result<()> {
        let mut tell = |phase, hops| watch(Event::Hops { phase, hops });
        tell(Phase::Discovery, 0);
        let end = prober.discover(cancel)?;
        if end == 0 {
            return Ok(());
        }
        let hops = answering(prober, end);
        if self.request.load {
            *load = Some(self.probe_under_load(prober, &hops, &mut tell, cancel)?);
        } else {
            tell(Phase::Idle, end);
            self.rounds(prober, Phase::Idle, &hops, &|| false, cancel)?;
        }
        let suspects = suspects(&prober.probes());
        if !suspects.is_empty() {
            tell(Phase::Slow, end);
            // The burst allowance of the rate limit was used up.
            prober.rest(SLOW, cancel)?;
            prober.rounds(Phase::Slow, &suspects, SLOW_PROBES, SLOW, &|| false, cancel)?;
        }
        if self.request.sizes {
            tell(Phase::Sizes, end);
            let slow = self.limited(&prober.probes());
            prober.sizes(&hops, &slow, cancel)?;
        }
        if self.request.flows > 1 {
            tell(Phase::Branches, end);
            // The destination has one address, whichever route leads there.
            let routers: Vec<u8> =
                hops.into_iter().filter(|&hop| hop < end || !prober.has_arrived()).collect();
            prober.branches(&routers, cancel)?;
        }
        Ok(())
    }

    fn rounds(
        &self,
        prober: &mut PathProber,
        phase: Phase,
        hops: &[u8],
        stop: &dyn Fn() -> bool,
        cancel: &AtomicBool,
    ) -> Result<()> {
        Ok(prober.rounds(phase, hops, self.request.probes, self.request.interval, stop, cancel)?)
    }

    /// Probes during a measurement: in its idle stage, and during its transfer.
    fn probe_under_load(
        &self,
        prober: &mut PathProber,
        hops: &[u8],
        tell: &mut dyn FnMut(Phase, u8),
        cancel: &AtomicBool,
    ) -> Result<Load> {
        let request = self.load_request(hops.len(), prober);
        let stage = AtomicU8::new(Transfer::Connecting as u8);
        let end_load = AtomicBool::new(false);
        let is_at = |least: Transfer| stage.load(Ordering::Relaxed) >= least as u8;
        std::thread::scope(|scope| {
            let transfer = scope.spawn(|| {
                let mut note = |progress: &Progress| {
                    let at = match progress.stage {
                        Stage::Connecting => Transfer::Connecting,
                        Stage::Idle => Transfer::Idle,
                        _ => Transfer::Loading,
                    };
                    stage.fetch_max(at as u8, Ordering::Relaxed);
                };
                let measured = session::measure(&request, &self.credentials, &mut note, &end_load);
                stage.store(Transfer::Ended as u8, Ordering::Relaxed);
                measured
            });
            let mut go_on = || {
                wait_for(prober, LOAD_PATIENCE, &|| is_at(Transfer::Idle), cancel)?;
                if !is_at(Transfer::Ended) {
                    let end = hops.last().copied().unwrap_or(0);
                    tell(Phase::Idle, end);
                    self.rounds(prober, Phase::Idle, hops, &|| is_at(Transfer::Loading), cancel)?;
                    let patience = request.idle.to_duration() + LOAD_PATIENCE;
                    wait_for(prober, patience, &|| is_at(Transfer::Loading), cancel)?;
                    tell(Phase::Loaded, end);
                    wait_for(prober, RAMP.to_duration(), &|| is_at(Transfer::Ended), cancel)?;
                    self.rounds(prober, Phase::Loaded, hops, &|| is_at(Transfer::Ended), cancel)?;
                }
                Ok::<(), RunError>(())
            };
            let probed = go_on();
            if probed.is_err() {
                end_load.store(true, Ordering::Relaxed);
            }
            let measured = match transfer.join() {
                Ok(measured) => measured,
                Err(panic) => std::panic::resume_unwind(panic),
            };
            probed?;
            Ok(loaded(&measured?))
        })
    }

    /// The transfer that makes the load: long enough for all rounds of both phases.
    fn load_request(&self, hops: usize, prober: &PathProber) -> MeasureRequest {
        let round = self.request.interval.as_ns().max(LEAST_GAP.as_ns() * hops as u64);
        let rounds = Nanos(round * u64::from(self.request.probes));
        MeasureRequest {
            port: self.request.port,
            family: self.request.family,
            directions: vec![Direction::To],
            no_experiments: true,
            idle: rounds + self.request.patience,
            spec: FlowSpec { duration: RAMP + rounds + BEHIND, ..FlowSpec::default() },
            bind_address: self.request.bind_address.clone(),
            bind_device: self.request.bind_device.clone(),
            // If the name has several addresses, the probed one.
            ..MeasureRequest::to(prober.destination().ip().to_string())
        }
    }

    /// Returns the hops with so much loss that they may rate-limit their answers.
    fn limited(&self, probes: &[HopProbe]) -> Vec<u8> {
        let mut report = PathReport { request: self.request.clone(), ..PathReport::default() };
        conclude(&mut report, probes);
        let is_limited = |loss: &HopLoss| matches!(loss, HopLoss::RateLimit { .. });
        let loses = |figures: Option<bdp_model::probes::hops::Figures>| {
            figures.is_some_and(|f| f.loss.value > LIMITED)
        };
        let hops = report.hops.iter().filter(|hop| is_limited(&hop.loss) || loses(hop.idle));
        hops.map(|hop| hop.number).collect()
    }

    /// Returns why there is nothing to show, and what to do about it.
    fn silent(&self, prober: &PathProber) -> String {
        let (to, hops, patience) = (prober.destination(), self.request.hops, self.request.patience);
        let other = match prober.method().protocol {
            bdp_model::probes::hops::ProbeProtocol::Tcp => "--icmp or --udp",
            _ => "--tcp",
        };
        format!(
            "path to {}: none of the first {} hops answered within {patience}; check that this machine's \
             firewall allows incoming ICMP, or probe with {other}",
            to.ip(),
            hops.min(9)
        )
    }
}

/// The transfer's progress.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Transfer {
    Connecting,
    Idle,
    Loading,
    Ended,
}

/// Returns the hops up to the last one, without silent hops, whose answers would be waited for in vain.
fn answering(prober: &PathProber, end: u8) -> Vec<u8> {
    let probes = prober.probes();
    (1..=end).filter(|&hop| probes.iter().any(|p| p.hop == hop && p.is_answered())).collect()
}

/// Receives messages until the condition is met or the time is up.
fn wait_for(
    prober: &mut PathProber,
    most: Duration,
    is_enough: &dyn Fn() -> bool,
    cancel: &AtomicBool,
) -> Result<()> {
    let until = Instant::now() + most;
    while !is_enough() && Instant::now() < until {
        prober.rest(Nanos(LOOK_NS), cancel)?;
    }
    Ok(())
}

fn loaded(measurement: &Measurement) -> Load {
    let transfer = measurement.directions.first();
    Load {
        goodput_bps: transfer.map(|transfer| transfer.goodput_bps).filter(|bps| bps.is_finite()),
        ran_ms: transfer.map_or(0, |transfer| transfer.duration_ns / 1_000_000),
    }
}

/// Looks up the names of the addresses that answered.
fn name(report: &mut PathReport) -> Result<()> {
    let addresses = || report.hops.iter().flat_map(|hop| &hop.addresses).map(|known| known.address);
    let mut all: Vec<_> = addresses().collect();
    all.sort_unstable();
    all.dedup();
    let names = look_up(&all)?;
    for known in report.hops.iter_mut().flat_map(|hop| &mut hop.addresses) {
        known.name =
            names.iter().find(|(address, _)| *address == known.address).map(|(_, name)| name.clone());
    }
    Ok(())
}
