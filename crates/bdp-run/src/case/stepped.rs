//! A case on stacks that run in steps: its probes, flows and samples, by a virtual clock that is a number.

use std::collections::BTreeMap;
use std::path::Path;

use bdp_flow::counting::{Cadence, Counting};
use bdp_lab::simulation::{Reached, Simulation, Time};
use bdp_lab::{Captures, KernelStack, LinkOutcome};
use bdp_model::case::{CaseFlow, CaseSpec, HostSpec, LinkSpec};
use bdp_model::flow::method::EndReason;
use bdp_model::probes::ProbeTimes;
use bdp_model::record::{ReceiverSample, SenderSample};
use bdp_model::units::Nanos;
use bdp_stack::{Command, SocketId, SocketOptions, SocketState};
use bdp_wire::control::{Probed, Received, Sent};

use crate::case::pair::{Ends, Pair};
use crate::case::probing::{
    IDLE_PROBE_INTERVAL, PairProbed, PairTimes, loaded_probe_interval, probe_patience,
};
use crate::case::window::Means;
use crate::{Result, RunError};

/// How long connections and first bytes are awaited, in addition to what the path needs.
const PATIENCE: Nanos = Nanos::secs(120);
/// Ports of the receiving streams of a case, and behind it of the others.
const LISTENING: u16 = 5_001;
/// Ports of the sending ones.
const CONNECTING: u16 = 40_000;

/// The results of a case.
pub(crate) struct Stepped {
    pub(crate) probed: Vec<PairProbed>,
    /// When the flows could start.
    pub(crate) begun_at_ns: u64,
    pub(crate) flows: Vec<Ends>,
    pub(crate) outcomes: Vec<LinkOutcome>,
    pub(crate) emulated_ns: u64,
    /// Versions of the stacks, by host.
    pub(crate) versions: BTreeMap<String, String>,
}

/// What a case runs on.
pub(crate) struct Grounds<'a> {
    /// The case's hosts, with the sysctls of those that run a kernel.
    pub(crate) hosts: &'a [HostSpec],
    pub(crate) links: &'a [LinkSpec],
    pub(crate) seed: u64,
    pub(crate) captures: Option<&'a Captures>,
    /// Mount point of the machine's root for the programs of stacks, in a guest.
    pub(crate) root: Option<&'a Path>,
}

/// Runs a case. In a guest, hosts may run its kernel.
pub(crate) fn measure(case: &CaseSpec, means: &[Means], grounds: &Grounds<'_>) -> Result<Stepped> {
    // A host that only forwards packets needs no stack.
    let is_end =
        |host: &HostSpec| case.flows.iter().any(|flow| flow.from == host.name || flow.to == host.name);
    let time = match case.needs_guest() {
        true => Time::of_guest()?,
        false => Time::Number,
    };
    let Grounds { hosts, links, seed, captures, root } = *grounds;
    let mut simulation =
        Simulation::build(case.family, hosts, links, seed, captures, time, |host, settings| {
            let stack = host.stack.as_ref().filter(|_| is_end(host))?;
            Some(match stack.in_steps() {
                Some(stack) => bdp_stack::open_in(stack, settings, root),
                None => KernelStack::new(&settings, &host.sysctls).map(|kernel| Box::new(kernel) as _),
            })
        })?;
    let pairs = Pair::all(case);
    let idle_end = simulation.now() + case.idle;
    let idle = probe(case, &mut simulation, &pairs, (IDLE_PROBE_INTERVAL, PairTimes::idle), idle_end)?;
    if case.idle > Nanos::ZERO {
        rest(&mut simulation, idle_end + probe_patience(case))?;
    }
    let idle: Vec<Probed> = idle.into_iter().map(|probe| simulation.probed(probe)).collect();
    let begun = simulation.now();
    simulation.start_clock();
    let mut running = begin(case, means, &mut simulation)?;
    let last_end = case.flows.iter().map(|flow| flow.span().end).max().unwrap_or_default();
    let times: Timed = (loaded_probe_interval(case), PairTimes::loaded);
    let probing = probe(case, &mut simulation, &pairs, times, begun + last_end + PATIENCE)?;
    while running.iter().any(|flow| !flow.over) {
        let due = running.iter().filter(|flow| !flow.over).map(Running::due).min().unwrap_or(u64::MAX);
        simulation.advance(Nanos(due))?;
        for flow in running.iter_mut().filter(|flow| !flow.over) {
            flow.go_on(&mut simulation, begun)?;
        }
    }
    for &probe in &probing {
        simulation.stop_probe(probe);
    }
    let quiet = simulation.now() + probe_patience(case);
    rest(&mut simulation, quiet)?;
    let loaded = probing.into_iter().map(|probe| simulation.probed(probe));
    let probed = pairs.into_iter().zip(idle).zip(loaded);
    let probed = probed.map(|((pair, idle), loaded)| PairProbed { pair, idle, loaded }).collect();
    let flows = running.into_iter().map(|flow| flow.ends(&simulation)).collect();
    let (emulated_ns, versions) = (simulation.now().as_ns(), simulation.versions());
    let outcomes = simulation.finish();
    Ok(Stepped { probed, begun_at_ns: begun.as_ns(), flows, outcomes, emulated_ns, versions })
}

/// Lets time pass.
fn rest(simulation: &mut Simulation, until: Nanos) -> Result<()> {
    while simulation.advance(until)? == Reached::Change {}
    Ok(())
}

/// An interval, and when within it the probes of a pair are due.
type Timed = (Nanos, fn(&CaseSpec, usize, usize) -> PairTimes);

fn probe(
    case: &CaseSpec,
    simulation: &mut Simulation,
    pairs: &[Pair],
    (interval, times): Timed,
    until: Nanos,
) -> Result<Vec<usize>> {
    let mut probes = Vec::new();
    for (i, pair) in pairs.iter().enumerate() {
        let (from, to) = (host(simulation, &pair.from)?, host(simulation, &pair.to)?);
        let PairTimes { offset, jitter, seed } = times(case, i, pairs.len());
        let times = ProbeTimes::within(seed, interval.as_ns().max(1), jitter.as_ns());
        let probe = simulation.probe(from, to, offset, times, until);
        probes.push(probe.ok_or_else(|| no_way(&pair.from, &pair.to))?);
    }
    Ok(probes)
}

fn host(simulation: &Simulation, name: &str) -> Result<usize> {
    simulation.host(name).ok_or_else(|| RunError::Case(format!("host '{name}' does not exist")))
}

fn no_way(from: &str, to: &str) -> RunError {
    RunError::Case(format!("no path from host '{from}' to host '{to}'"))
}

/// A running flow.
struct Running<'a> {
    flow: &'a CaseFlow,
    sender: usize,
    receiver: usize,
    streams: Vec<Stream>,
    starts_ns: u64,
    started: bool,
    connected_ns: Option<u64>,
    first_ns: Option<u64>,
    counting: Counting,
    reading: Cadence,
    sending: Cadence,
    received: Vec<ReceiverSample>,
    sent: Vec<SenderSample>,
    ended: EndReason,
    over: bool,
}

struct Stream {
    socket: SocketId,
    from: std::net::SocketAddr,
    to: std::net::SocketAddr,
    bytes: Option<u64>,
}

/// Has the receivers listen; the senders connect when their flows start.
fn begin<'a>(case: &'a CaseSpec, means: &[Means], simulation: &mut Simulation) -> Result<Vec<Running<'a>>> {
    let begun = simulation.now();
    let mut running = Vec::new();
    let mut number = 0u16;
    for (flow, means) in case.flows.iter().zip(means) {
        let (sender, receiver) = (host(simulation, &flow.from)?, host(simulation, &flow.to)?);
        let (own, other) = simulation.route(sender, receiver).ok_or_else(|| no_way(&flow.from, &flow.to))?;
        let window_bytes = match means {
            Means::Receiver { target_bytes } => Some(*target_bytes),
            _ => None,
        };
        let count = flow.spec.streams;
        let mut streams = Vec::new();
        for i in 0..count {
            let more = || {
                RunError::Case("stacks other than Linux support at most 20000 streams per case".to_owned())
            };
            number = number.checked_add(1).filter(|&number| number <= 20_000).ok_or_else(more)?;
            let (from, to) = ((own, CONNECTING + number), (other, LISTENING + number));
            let share =
                |bytes: u64| bytes / u64::from(count) + u64::from(u64::from(i) < bytes % u64::from(count));
            let stream = Stream {
                socket: u32::from(number),
                from: from.into(),
                to: to.into(),
                bytes: flow.spec.bytes.map(|bytes| share(bytes.as_bytes())),
            };
            let options =
                SocketOptions { window_bytes, mss_bytes: flow.spec.mss, ..SocketOptions::default() };
            simulation.command(receiver, Command::Listen { socket: stream.socket, port: to.1, options });
            simulation.command(receiver, Command::Receive { socket: stream.socket, bytes: None });
            streams.push(stream);
        }
        running.push(Running {
            flow,
            sender,
            receiver,
            starts_ns: (begun + flow.start).as_ns(),
            started: false,
            connected_ns: None,
            first_ns: None,
            counting: Counting::new(flow.spec.omit, streams.len()),
            reading: Cadence::every(flow.spec.interval),
            sending: Cadence::every(flow.spec.interval),
            received: Vec::new(),
            sent: Vec::new(),
            ended: EndReason::default(),
            over: false,
            streams,
        });
    }
    Ok(running)
}

impl Running<'_> {
    /// When there is something to do next, unless a socket changes before.
    fn due(&self) -> u64 {
        if !self.started {
            return self.starts_ns;
        }
        let sampled = self.connected_ns.map(|at| at + self.sending.next_ns());
        let read = match self.first_ns {
            Some(first) => {
                let next = self.reading.next_ns().min(self.counting.due_ns());
                first.saturating_add(next.min(self.flow.spec.duration.as_ns()))
            }
            None => self.starts_ns + PATIENCE.as_ns(),
        };
        sampled.map_or(read, |sampled| sampled.min(read))
    }

    fn go_on(&mut self, simulation: &mut Simulation, begun: Nanos) -> Result<()> {
        let now = simulation.now().as_ns();
        if !self.started && now >= self.starts_ns {
            self.start(simulation);
            return Ok(());
        }
        self.check(simulation, begun)?;
        if self.connected_ns.is_none()
            && self.streams.iter().all(|stream| self.state(simulation, stream) == Some(SocketState::Open))
        {
            self.connected_ns = Some(now);
        }
        if let Some(connected) = self.connected_ns
            && self.sending.take(now - connected)
        {
            self.sent.push(self.sender_sample(simulation, now - connected));
        }
        let read = self.read(simulation);
        if self.first_ns.is_none() && read.iter().any(|&bytes| bytes > 0) {
            self.first_ns = Some(now);
        }
        let Some(first) = self.first_ns else { return Ok(()) };
        let at = now - first;
        let ended = self
            .streams
            .iter()
            .all(|stream| simulation.socket(self.receiver, stream.socket).is_some_and(|socket| socket.ended));
        let over = ended || at >= self.flow.spec.duration.as_ns();
        let due = self.reading.take(at);
        if over || due || self.counting.begins(at) {
            self.counting.note_after_first_read(at, read);
            let bytes = self.counting.last().mark().bytes;
            self.received.push(ReceiverSample { at_ns: at, bytes, ..ReceiverSample::default() });
        }
        if over {
            self.over = true;
            self.ended = if ended { EndReason::Bytes } else { EndReason::Duration };
            for stream in &self.streams {
                for host in [self.sender, self.receiver] {
                    if simulation.socket(host, stream.socket).is_some_and(|socket| {
                        !matches!(socket.state, SocketState::Closed | SocketState::Lost)
                    }) {
                        simulation.command(host, Command::Abort { socket: stream.socket });
                    }
                }
            }
        }
        Ok(())
    }

    fn start(&mut self, simulation: &mut Simulation) {
        self.started = true;
        for stream in &self.streams {
            let spec = &self.flow.spec;
            let options = SocketOptions {
                congestion: spec.congestion.clone(),
                window_bytes: None,
                mss_bytes: spec.mss,
                nodelay: spec.nodelay,
            };
            let Stream { socket, from, to, bytes } = *stream;
            simulation.command(self.sender, Command::Connect { socket, from, to, options });
            simulation.command(self.sender, Command::Send { socket, bytes });
            if bytes.is_some() {
                simulation.command(self.sender, Command::Finish { socket });
            }
        }
    }

    fn state(&self, simulation: &Simulation, stream: &Stream) -> Option<SocketState> {
        simulation.socket(self.sender, stream.socket).map(|socket| socket.state)
    }

    /// A connection that is lost, or not made in time, is the end of the case.
    fn check(&self, simulation: &Simulation, begun: Nanos) -> Result<()> {
        let (from, to) = (&self.flow.from, &self.flow.to);
        let since = simulation.now().as_ns().saturating_sub(begun.as_ns());
        for host in [self.sender, self.receiver] {
            let lost = self.streams.iter().any(|stream| {
                simulation.socket(host, stream.socket).is_some_and(|socket| socket.state == SocketState::Lost)
            });
            if lost {
                let seconds = since as f64 / 1e9;
                return Err(RunError::Case(format!(
                    "the connection from '{from}' to '{to}' was lost after {seconds:.3} s"
                )));
            }
        }
        if self.first_ns.is_none() && since >= (self.flow.start + PATIENCE).as_ns() {
            return Err(RunError::Case(format!(
                "no byte arrived from '{from}' to '{to}' within {} s",
                PATIENCE.as_secs_f64()
            )));
        }
        Ok(())
    }

    /// Bytes that were read of each stream.
    fn read(&self, simulation: &Simulation) -> Vec<u64> {
        let read = |stream: &Stream| {
            simulation.socket(self.receiver, stream.socket).map_or(0, |socket| socket.received_bytes)
        };
        self.streams.iter().map(read).collect()
    }

    fn sender_sample(&self, simulation: &Simulation, at_ns: u64) -> SenderSample {
        let seen = simulation.seen(self.sender);
        let all = || self.streams.iter().filter_map(|stream| seen.of(stream.from.port()));
        let Some(first) =
            self.streams.first().and_then(|stream| Some((stream, seen.of(stream.from.port())?)))
        else {
            return SenderSample { at_ns, ..SenderSample::default() };
        };
        let mss = first.1.largest.max(1);
        let report = simulation.socket(self.sender, first.0.socket);
        let in_segments = |bytes: u64| u32::try_from(bytes.div_ceil(mss)).unwrap_or(u32::MAX);
        SenderSample {
            at_ns,
            acked_bytes: Some(all().map(|one| one.acked_bytes).sum()),
            unacked: Some(in_segments(first.1.in_flight())),
            cwnd: report.and_then(|report| report.cwnd_bytes).map(in_segments),
            snd_wnd_bytes: first.1.window_bytes,
            srtt_ns: report.and_then(|report| report.srtt_ns),
            retransmits: Some(all().map(|one| one.retransmits).sum()),
            ..SenderSample::default()
        }
    }

    fn ends(self, simulation: &Simulation) -> Ends {
        let seen = simulation.seen(self.sender);
        let all: Vec<_> = self.streams.iter().filter_map(|stream| seen.of(stream.from.port())).collect();
        let scaling = all.first().and_then(|one| one.window_scaling());
        let (last, (counted_from, stream_bytes)) = (self.counting.last().mark(), self.counting.counted());
        let given = self.streams.iter().filter_map(|stream| simulation.socket(self.sender, stream.socket));
        let received = Received {
            first_byte_at_ns: self.first_ns,
            bytes: last.bytes,
            duration_ns: last.at_ns,
            counted_from,
            stream_bytes,
            samples: self.received,
            window_scaling: scaling,
            ended: self.ended,
            ..Received::default()
        };
        let sent = Sent {
            bytes: given.map(|socket| socket.sent_bytes).sum(),
            congestion: self.flow.spec.congestion.clone().unwrap_or_default(),
            mss: all.iter().map(|one| one.largest).max().filter(|&mss| mss > 0),
            samples: self.sent,
            retransmits: Some(all.iter().map(|one| one.retransmits).sum()),
            window_scaling: scaling,
            ..Sent::default()
        };
        (received, sent)
    }
}
