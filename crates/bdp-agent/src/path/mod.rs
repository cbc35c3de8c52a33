//! The hops of a path: probes whose hop limit expires on the way, and the answers of routers.
//!
//! [`PathProber`] has one method for each part of a run: the hops, their round trips and losses, the sizes that pass,
//! the branches. It draws no conclusions: it returns every probe, [`PathProber::probes`].

mod branches;
mod engine;
mod icmp;
mod names;
mod prober;
mod sizes;
mod tcp;
mod udp;

use std::io::ErrorKind;
use std::net::SocketAddr;
use std::sync::atomic::AtomicBool;

use bdp_flow::error::FlowError;
use bdp_flow::session::dial;
use bdp_flow::session::error::{Result, SessionError};
use bdp_model::measurement::MeasureRequest;
use bdp_model::probes::hops::{AnswerKind, HopProbe, PathRequest, Phase, ProbeMethod, ProbeProtocol};
use bdp_model::units::Nanos;
use bdp_sys::{SysError, clock};

use engine::{Aim, Engine};
use icmp::IcmpProber;
use prober::Prober;
use tcp::TcpProber;
use udp::UdpProber;

pub use names::look_up;

/// Interval of probes in the search for hops.
const DISCOVERY_STEP_NS: u64 = 20_000_000;
/// First flow of the search, after those of branches.
const DISCOVERY_FLOWS: u16 = 1000;
/// Hops that are searched at once.
const AT_ONCE: u8 = 8;
/// How often a hop is asked at first before it counts as silent.
const TRIES: u32 = 3;
/// Hops in turn without an answer after which no further one is expected.
const SILENT: u8 = 8;
/// Shortest time between two probes, whichever hop they are for.
pub const LEAST_GAP: Nanos = Nanos::millis(5);

/// Probes to one destination.
pub struct PathProber {
    request: PathRequest,
    to: SocketAddr,
    main: Engine,
    /// Engine for flows, if the main one has none.
    flows: Option<Engine>,
    /// Engine for sizes, if the main one has none.
    sizes: Option<Engine>,
}

impl PathProber {
    /// Resolves the address and opens the sockets.
    pub fn open(request: &PathRequest, cancel: &AtomicBool) -> Result<Self> {
        let dialling = dialling(request);
        let addresses = dial::resolve(&dialling, cancel)?;
        let to = addresses.first().copied().ok_or_else(|| SessionError::no_address(&request.host))?;
        let from = dial::local_address(&dialling)?.map(|ip| SocketAddr::new(ip, 0));
        let device = request.bind_device.as_deref();
        let start_ns = clock::monotonic_ns();
        let failed = |error: SysError| dial::failure(to, error);
        let engine = |prober: Box<dyn Prober>| {
            Engine::over(prober, to, request.octet(), request.patience.as_ns(), start_ns)
        };
        let icmp = || IcmpProber::open(to, from, device);
        let udp = |fallback| UdpProber::open(to, from, device, fallback);
        let main: Box<dyn Prober> = match request.protocol {
            Some(ProbeProtocol::Udp) => Box::new(udp(false).map_err(failed)?),
            Some(ProbeProtocol::Tcp) => Box::new(TcpProber::open(to, from, device).map_err(failed)?),
            Some(ProbeProtocol::Icmp) => Box::new(icmp().map_err(|error| not_allowed(error, to))?),
            None => match icmp() {
                Ok(icmp) => Box::new(icmp),
                Err(error) if is_denied(&error) => Box::new(udp(true).map_err(failed)?),
                Err(error) => return Err(failed(error)),
            },
        };
        let flows = match !main.has_flows() && request.flows > 1 {
            true => Some(engine(Box::new(udp(false).map_err(failed)?))),
            false => None,
        };
        let sizes = match !main.has_sizes() && request.sizes {
            true => Some(match icmp() {
                Ok(icmp) => engine(Box::new(icmp)),
                Err(_) => engine(Box::new(udp(false).map_err(failed)?)),
            }),
            false => None,
        };
        Ok(Self { request: request.clone(), to, main: engine(main), flows, sizes })
    }

    /// Returns the destination of probes, with the port of TCP probes.
    pub fn destination(&self) -> SocketAddr {
        self.to
    }

    /// Returns how round trips and losses are measured.
    pub fn method(&self) -> ProbeMethod {
        self.main.prober().method()
    }

    /// Returns how branches are measured, if differently.
    pub fn flows_method(&self) -> Option<ProbeMethod> {
        self.flows.as_ref().map(|engine| engine.prober().method())
    }

    /// Whether quoted IP headers can be read.
    pub fn has_quotes(&self) -> bool {
        self.main.has_quotes()
    }

    /// Whether the destination has answered.
    pub fn has_arrived(&self) -> bool {
        let arrived = |p: &HopProbe| p.answer.is_some_and(|answer| answer.kind == AnswerKind::Arrived);
        self.main.probes().any(arrived)
    }

    /// Returns every probe of the run.
    pub fn probes(&self) -> Vec<HopProbe> {
        let others = self.flows.iter().chain(&self.sizes);
        self.main.probes().chain(others.flat_map(Engine::probes)).copied().collect()
    }

    /// Searches for the hops; returns how many there are to the destination, or to the last one that answers; 0 if
    /// none does.
    pub fn discover(&mut self, cancel: &AtomicBool) -> Result<u8> {
        // Each probe would wait for the previous one, and a silent hop for all, so each has its own flow: only the
        // number of hops matters.
        let flow =
            |hop: u8, one_at_a_time: bool| if one_at_a_time { DISCOVERY_FLOWS + u16::from(hop) } else { 0 };
        let one_at_a_time = self.main.prober().is_one_at_a_time();
        let mut first = 1;
        let (mut last_answered, mut end) = (0, None);
        while first <= self.request.hops && end.is_none() && first - last_answered <= SILENT {
            let last = self.request.hops.min(first.saturating_add(AT_ONCE - 1));
            let mut numbers = vec![None::<u32>; usize::from(last - first) + 1];
            for _ in 0..TRIES {
                for hop in first..=last {
                    let at = usize::from(hop - first);
                    let is_settled = numbers[at].is_some_and(|n| self.main.answer(n).is_some());
                    if is_settled || end.is_some_and(|end| hop > end) {
                        continue;
                    }
                    let flow = flow(hop, one_at_a_time);
                    let aim = Aim { phase: Phase::Discovery, hop, flow, bytes: 0 };
                    numbers[at] = Some(self.main.send(aim, cancel)?);
                    self.main.run_until(self.main.now_ns() + DISCOVERY_STEP_NS, cancel)?;
                }
                self.main.settle(cancel)?;
                for (number, hop) in numbers.iter().zip(first..=last) {
                    let Some(number) = *number else { continue };
                    if self.main.answer(number).is_some() {
                        last_answered = last_answered.max(hop);
                    }
                    if self.main.has_arrived(number) {
                        end = Some(end.map_or(hop, |end: u8| end.min(hop)));
                    }
                }
            }
            if last_answered == 0
                && let Some(refused) = self.main.refusal()
            {
                return Err(refused);
            }
            first = last.saturating_add(1);
        }
        Ok(end.unwrap_or(last_answered))
    }

    /// Probes each of these hops this many times, `interval` apart, and waits for the answers. `stop` ends it early.
    /// Hops are probed one after the other within an interval, which is extended if needed to keep [`LEAST_GAP`]
    /// between probes.
    pub fn rounds(
        &mut self,
        phase: Phase,
        hops: &[u8],
        rounds: u32,
        interval: Nanos,
        stop: &dyn Fn() -> bool,
        cancel: &AtomicBool,
    ) -> Result<()> {
        let count = hops.len().max(1) as u64;
        let gap_ns = (interval.as_ns() / count).max(LEAST_GAP.as_ns());
        let start_ns = self.main.now_ns();
        for turn in 0..u64::from(rounds) {
            for (at, &hop) in (0..).zip(hops) {
                self.main.run_until(start_ns + (turn * count + at) * gap_ns, cancel)?;
                if stop() {
                    return self.main.settle(cancel);
                }
                self.main.send(Aim { phase, hop, flow: 0, bytes: 0 }, cancel)?;
            }
        }
        self.main.settle(cancel)
    }

    /// Receives late answers for this long.
    pub fn rest(&mut self, time: Nanos, cancel: &AtomicBool) -> Result<()> {
        self.main.run_until(self.main.now_ns() + time.as_ns(), cancel)
    }

    /// Searches for branches at each of these hops.
    pub fn branches(&mut self, hops: &[u8], cancel: &AtomicBool) -> Result<()> {
        branches::search(self.flows.as_mut().unwrap_or(&mut self.main), hops, self.request.flows, cancel)
    }

    /// Finds which sizes reach these hops, the destination last; `slow` are those that rate-limit their answers.
    pub fn sizes(&mut self, hops: &[u8], slow: &[u8], cancel: &AtomicBool) -> Result<()> {
        let largest = self.largest()?;
        sizes::search(self.sizes.as_mut().unwrap_or(&mut self.main), hops, slow, largest, cancel)
    }

    /// The longest packet that leaves this machine towards the destination.
    fn largest(&self) -> Result<u32> {
        let from = dial::local_address(&dialling(&self.request))?.map(|ip| SocketAddr::new(ip, 0));
        let mut to = self.to;
        to.set_port(udp::PORT);
        let device_mtu = bdp_sys::hop_socket::device_mtu(to, from, self.request.bind_device.as_deref());
        device_mtu.map_err(|error| dial::failure(to, error))
    }
}

/// Returns the request that resolves the address.
fn dialling(request: &PathRequest) -> MeasureRequest {
    MeasureRequest {
        port: request.port,
        family: request.family,
        bind_address: request.bind_address.clone(),
        bind_device: request.bind_device.clone(),
        ..MeasureRequest::to(request.host.clone())
    }
}

fn is_denied(error: &SysError) -> bool {
    error.operation == "open ICMP socket to" && error.source.kind() == ErrorKind::PermissionDenied
}

/// Returns the error if ICMP was requested but is not permitted.
fn not_allowed(error: SysError, to: SocketAddr) -> SessionError {
    match is_denied(&error) {
        true => SessionError::Near(FlowError::Refused(format!(
            "{error}; run as root, or permit your group: sysctl -w 'net.ipv4.ping_group_range=0 \
             2147483647'; --udp and --tcp need no privilege"
        ))),
        false => dial::failure(to, error),
    }
}
