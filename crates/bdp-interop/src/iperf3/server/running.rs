//! A running test: what it is granted, its flows, and their results.

use std::net::TcpStream;
use std::time::{Duration, Instant};

use bdp_model::units::{Nanos, Rate, format_bps};
use bdp_sys::socket;
use bdp_wire::iperf3::exchange::{Word, hear};
use bdp_wire::iperf3::{CpuUse, Directions, Failure, Parameters, Protocol, Results, ServerOutput};
use bdp_wire::session::Limits;

use super::ending::Ending;
use super::output;
use super::silence::Silence;
use crate::iperf3::control::Control;
use crate::iperf3::flow::Flow;
use crate::iperf3::outcome::{self, End, Outcome};
use crate::iperf3::{tcp, udp};
use bdp_agent::server::counters::Counters;
use bdp_agent::server::places::Activity;
use bdp_flow::datagram::{DatagramReceivePlan, DatagramSendPlan, Stream};
use bdp_flow::error::{FlowError, Result};
use bdp_flow::stall::RARE_LOOK;
use bdp_flow::streams::Streams;

/// Interval of readings: the client gets lines of one second.
const SAMPLES: Nanos = Nanos::secs(1);
/// How much longer than asked for a test may take: paths are slow to end.
const GRACE: Nanos = Nanos::secs(15);
/// How often the server checks whether a test with a volume is complete.
const LOOK: Duration = Duration::from_millis(10);
/// How long data in flight at the end of such a test may take.
const STRAGGLERS: Duration = Duration::from_millis(500);

/// Checks a test against the server's limits; returns the longest time that it may take.
pub(super) fn granted(limits: &Limits, parameters: &Parameters) -> Result<Nanos, Ending> {
    let asked = Nanos::secs(parameters.seconds + parameters.omit_seconds);
    if asked > limits.duration {
        let why = format!("{asked} requested, at most {} allowed (--max-duration)", limits.duration);
        return Err(Ending::refused(Failure::DURATION_LIMIT, why));
    }
    if parameters.parallel > limits.streams {
        let why = format!(
            "{} streams requested, at most {} allowed (--max-streams)",
            parameters.parallel, limits.streams
        );
        return Err(Ending::refused(Failure::STREAM_LIMIT, why));
    }
    check_rate(parameters, limits.rate)?;
    if let Some(name) = &parameters.congestion {
        socket::check_congestion(name).map_err(|e| Ending::refused(Failure::CONGESTION, e.to_string()))?;
    }
    Ok(if parameters.seconds > 0 { asked } else { limits.duration })
}

/// Checks the client's intended rate against the server's limit: a client that sends more cannot be slowed down, only
/// refused. TCP without a rate is governed by its congestion control, and what the server sends over it is limited to
/// the granted rate.
fn check_rate(parameters: &Parameters, granted: Option<Rate>) -> Result<(), Ending> {
    let Some(granted) = granted else { return Ok(()) };
    let client_sends = parameters.direction != Directions::Reverse;
    let (asked, is_held) = match parameters.protocol {
        Protocol::Udp => (Some(parameters.rate_bps).filter(|&rate| rate > 0), true),
        Protocol::Tcp => (parameters.asked_rate_bps(), client_sends),
    };
    let asked = asked.map(|rate| rate.saturating_mul(u64::from(parameters.parallel)));
    let unbounded = parameters.protocol == Protocol::Udp && asked.is_none() && client_sends;
    if !unbounded && (!is_held || asked.is_none_or(|asked| asked <= granted.as_bps())) {
        return Ok(());
    }
    let asked = asked.map_or("an unlimited rate".to_owned(), |asked| format_bps(asked as f64));
    let what = if parameters.protocol == Protocol::Udp { "datagrams" } else { "TCP" };
    let why = format!("{what} at {asked} requested, at most {granted} allowed (--max-rate)");
    Err(Ending::refused(Failure::RATE, why))
}

/// The flows of a test.
pub(super) struct Running {
    flows: Vec<Flow>,
    began: Instant,
    cpu_before_ns: u64,
    /// Processor use in per cent, once it is over.
    cpu: f64,
}

impl Running {
    pub(super) fn start(
        streams: Streams,
        parameters: &Parameters,
        longest: Nanos,
        most: Option<Rate>,
    ) -> Result<Self, Ending> {
        let failed = |e: FlowError| Ending::refused(Failure::STREAM_SETUP, e.to_string());
        let cpu_before_ns = bdp_sys::process::cpu_time_ns();
        let flows = match streams {
            Streams::Connections(streams) => connections(streams, parameters, longest + GRACE, most),
            Streams::Datagrams(streams) => datagrams(streams, parameters, longest + GRACE, most),
        };
        Ok(Self { flows: flows.map_err(failed)?, began: Instant::now(), cpu_before_ns, cpu: 0.0 })
    }

    /// Returns the number of flows.
    pub(super) fn flows(&self) -> u32 {
        self.flows.len() as u32
    }

    /// Lets the test run until the client says that it is over, as long as there is progress.
    pub(super) fn wait(
        &mut self,
        control: &Control,
        parameters: &Parameters,
        longest: Nanos,
        activity: &Activity,
    ) -> Result<(), Ending> {
        let mut omit = Some(Duration::from_secs(parameters.omit_seconds)).filter(|omit| !omit.is_zero());
        // Whom nothing else ends is ended when the time is over that is granted.
        let slack = if parameters.is_endless() { Nanos::ZERO } else { GRACE };
        let deadline = (longest + slack).to_duration();
        let mut silence = Silence::of(parameters);
        loop {
            let until = omit.unwrap_or(deadline);
            let heard = control
                .hear(until.saturating_sub(self.began.elapsed()).min(RARE_LOOK))
                .map_err(|e| Ending::of(&e, "the test"))?;
            if let Some(byte) = heard {
                let word = hear(byte, true).map_err(|e| Ending::refused(e.failure(), e.to_string()))?;
                if word == Word::Terminated {
                    return Err(Ending::silent("the client ended the test"));
                }
                break;
            }
            silence.look(&self.flows, activity)?;
            if omit.is_some_and(|omit| self.began.elapsed() >= omit) {
                self.flows.iter_mut().for_each(Flow::begin_counting);
                omit = None;
            } else if self.began.elapsed() >= deadline {
                return Err(if parameters.is_endless() {
                    let why = format!("it reached the maximum duration of {longest} (--max-duration)");
                    Ending::refused(Failure::EXPIRED, why)
                } else {
                    let why = format!("the test did not end within {}", Nanos::from(deadline));
                    Ending::refused(Failure::EXPIRED, why)
                });
            }
        }
        self.flows.iter_mut().for_each(Flow::note_end);
        if let (Some(volume), Protocol::Tcp) = (parameters.volume_bytes(), parameters.protocol) {
            self.await_stragglers(volume);
        }
        Ok(())
    }

    /// Waits a moment for data of a volume that is still in flight from the client.
    fn await_stragglers(&self, volume_bytes: u64) {
        let until = Instant::now() + STRAGGLERS;
        let receiving = || self.flows.iter().filter(|flow| !flow.sends());
        while receiving().any(|flow| flow.bytes() < volume_bytes && !flow.is_finished())
            && Instant::now() < until
        {
            std::thread::sleep(LOOK);
        }
    }

    /// Ends the flows and returns their outcomes; in any case, the bytes they moved are counted.
    pub(super) fn finish(&mut self, in_order: bool, counters: &Counters) -> Result<Vec<Outcome>, Ending> {
        self.flows.iter_mut().for_each(Flow::wind_down);
        if in_order {
            self.flows.iter().for_each(Flow::settle);
        }
        let wall = self.began.elapsed().as_nanos().max(1) as f64;
        self.cpu = (bdp_sys::process::cpu_time_ns() - self.cpu_before_ns) as f64 / wall * 100.0;
        let mut outcomes = Vec::new();
        let mut failed = None;
        for flow in &mut self.flows {
            let moved = flow.bytes();
            match flow.finish() {
                Ok(outcome) => {
                    match &outcome.end {
                        End::Received(received) => counters.add_received(received.bytes),
                        End::Sent(sent) => counters.add_sent(sent.bytes),
                    }
                    outcomes.push(outcome);
                }
                Err(error) => {
                    let failure = if flow.sends() {
                        counters.add_sent(moved);
                        Failure::STREAM_WRITE
                    } else {
                        counters.add_received(moved);
                        Failure::STREAM_READ
                    };
                    failed.get_or_insert(Ending::refused(failure, error.to_string()));
                }
            }
            flow.close();
        }
        failed.map_or(Ok(outcomes), Err)
    }

    /// Returns the results for the client.
    pub(super) fn results(&self, outcomes: &[Outcome], parameters: &Parameters) -> Results {
        Results {
            cpu: CpuUse { total: self.cpu, user: 0.0, system: 0.0 },
            has_retransmits: (parameters.direction != Directions::Forward)
                .then_some(parameters.protocol == Protocol::Tcp),
            congestion: outcomes.iter().find_map(|outcome: &Outcome| outcome.congestion.clone()),
            server_output: parameters.server_output.then(|| ServerOutput::Text(output::text(outcomes))),
            streams: outcome::results(outcomes),
        }
    }
}

/// The flows of streams, the client's first, received, then the server's, sent.
fn by_direction<S>(
    mut streams: Vec<S>,
    parameters: &Parameters,
    receive: impl Fn(Vec<S>) -> Result<Flow>,
    send: impl Fn(Vec<S>) -> Result<Flow>,
) -> Result<Vec<Flow>> {
    Ok(match parameters.direction {
        Directions::Forward => vec![receive(streams)?],
        Directions::Reverse => vec![send(streams)?],
        Directions::Both => {
            let back = streams.split_off(parameters.parallel as usize);
            vec![receive(streams)?, send(back)?]
        }
    })
}

fn connections(
    streams: Vec<TcpStream>,
    parameters: &Parameters,
    longest: Nanos,
    most: Option<Rate>,
) -> Result<Vec<Flow>> {
    if parameters.kernel_rate_bps > 0 {
        streams.iter().try_for_each(|stream| socket::pace(stream, parameters.kernel_rate_bps))?;
    }
    let plan =
        tcp::Plan { interval: SAMPLES, ..tcp::Plan::of(parameters, longest, stream_rate(parameters, most)) };
    by_direction(
        streams,
        parameters,
        |streams| tcp::Flow::receive(streams, &plan).map(Flow::Connections),
        |streams| tcp::Flow::send(streams, &plan).map(Flow::Connections),
    )
}

fn datagrams(
    streams: Vec<Stream>,
    parameters: &Parameters,
    longest: Nanos,
    most: Option<Rate>,
) -> Result<Vec<Flow>> {
    let omit = Nanos::secs(parameters.omit_seconds);
    let receiving = DatagramReceivePlan { duration: longest, omit, interval: SAMPLES, patience: longest };
    let sending = DatagramSendPlan {
        payload_bytes: u32::try_from(parameters.length_bytes).ok(),
        rate_bps: stream_rate(parameters, most),
        duration: longest,
        omit,
        // Some of a volume may be lost: the client decides when it has enough.
        bytes: None,
    };
    by_direction(
        streams,
        parameters,
        |streams| udp::Flow::receive(streams, receiving.clone(), None).map(Flow::Datagrams),
        |streams| udp::Flow::send(streams, sending.clone(), None).map(Flow::Datagrams),
    )
}

/// Returns each stream's rate: as requested, but no more than its share of the limit.
fn stream_rate(parameters: &Parameters, most: Option<Rate>) -> Option<u64> {
    let share = most.map(|most| (most.as_bps() / u64::from(parameters.parallel)).max(1));
    parameters.asked_rate_bps().into_iter().chain(share).min()
}
