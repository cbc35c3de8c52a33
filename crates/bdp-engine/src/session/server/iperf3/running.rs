//! A test that runs: what it is granted, its flows, and what they come to.

use std::net::TcpStream;
use std::time::{Duration, Instant};

use bdp_model::units::{Nanos, Rate, format_bps};
use bdp_sys::socket;
use bdp_wire::iperf3::exchange::{Word, hear};
use bdp_wire::iperf3::{CpuUse, Direction, Failure, Parameters, Protocol, Results, ServerOutput};

use super::super::Shared;
use super::{Ending, output};
use crate::EngineError;
use crate::datagram::{DatagramReceivePlan, DatagramSendPlan, Stream};
use crate::iperf3::control::Control;
use crate::iperf3::flow::{self, Flow, INTERVAL, Outcome};
use crate::iperf3::{tcp, udp};

/// How much longer than asked for a test may take: paths are slow to end.
const GRACE: Nanos = Nanos::secs(15);
/// How often it is looked whether a test that ends by its volume is through.
const LOOK: Duration = Duration::from_millis(10);
/// How long what is under way at the end of such a test may take.
const STRAGGLERS: Duration = Duration::from_millis(500);

/// The streams of a test, in the client's order.
pub(super) enum Streams {
    /// Of TCP.
    Connections(Vec<TcpStream>),
    /// Of UDP.
    Datagrams(Vec<Stream>),
}

/// Holds a test against what the server grants; the longest that it may take.
pub(super) fn granted(shared: &Shared, parameters: &Parameters) -> Result<Nanos, Ending> {
    let limits = shared.options.limits;
    let asked = Nanos::secs(parameters.seconds + parameters.omit_seconds);
    if asked > limits.duration {
        let why = format!("{asked} were asked for, and {} are granted (--max-duration)", limits.duration);
        return Err(Ending::refused(Failure::DURATION, why));
    }
    if parameters.parallel > limits.streams {
        let why = format!(
            "{} streams were asked for, and {} are granted (--max-streams)",
            parameters.parallel, limits.streams
        );
        return Err(Ending::refused(Failure::STREAMS, why));
    }
    if parameters.protocol == Protocol::Udp {
        check_rate(parameters, limits.rate)?;
    }
    if let Some(name) = &parameters.congestion {
        socket::check_congestion(name).map_err(|e| Ending::refused(Failure::CONGESTION, e.to_string()))?;
    }
    Ok(if parameters.seconds > 0 { asked } else { limits.duration })
}

/// Holds the rate of datagrams against what the server grants: a client that sends more can't be held back, only refused.
fn check_rate(parameters: &Parameters, granted: Option<Rate>) -> Result<(), Ending> {
    let Some(granted) = granted else { return Ok(()) };
    let asked = parameters.rate_bps.saturating_mul(u64::from(parameters.parallel));
    let unbounded = parameters.rate_bps == 0 && parameters.direction != Direction::Reverse;
    if asked <= granted.as_bps() && !unbounded {
        return Ok(());
    }
    let asked = if unbounded { "no bound on the rate".to_owned() } else { format_bps(asked as f64) };
    let why = format!("of datagrams {asked} was asked for, and {granted} is granted (--max-rate)");
    Err(Ending::refused(Failure::RATE, why))
}

/// The flows of a test.
pub(super) struct Running {
    flows: Vec<Flow>,
    began: Instant,
    cpu_before_ns: u64,
}

impl Running {
    pub(super) fn start(
        streams: Streams,
        parameters: &Parameters,
        longest: Nanos,
        most: Option<Rate>,
    ) -> Result<Self, Ending> {
        let failed = |e: EngineError| Ending::refused(Failure::ACCEPT, e.to_string());
        let cpu_before_ns = bdp_sys::process::cpu_time_ns();
        let flows = match streams {
            Streams::Connections(streams) => connections(streams, parameters, longest + GRACE, most),
            Streams::Datagrams(streams) => datagrams(streams, parameters, longest + GRACE, most),
        };
        Ok(Self { flows: flows.map_err(failed)?, began: Instant::now(), cpu_before_ns })
    }

    /// How many there are.
    pub(super) fn flows(&self) -> u32 {
        self.flows.len() as u32
    }

    /// Lets the test run until the client says that it is over.
    pub(super) fn attend(
        &mut self,
        control: &Control,
        parameters: &Parameters,
        longest: Nanos,
    ) -> Result<(), Ending> {
        let mut omit = Some(Duration::from_secs(parameters.omit_seconds)).filter(|omit| !omit.is_zero());
        let deadline = (longest + GRACE).to_duration();
        loop {
            let until = omit.unwrap_or(deadline);
            let heard = control
                .hear(until.saturating_sub(self.began.elapsed()))
                .map_err(|e| Ending::of(&e, "the test ran"))?;
            if let Some(byte) = heard {
                let word = hear(byte, true).map_err(|e| Ending::refused(e.failure(), e.to_string()))?;
                if word == Word::Terminated {
                    return Err(Ending::silent("the client ended the test"));
                }
                break;
            }
            if omit.is_some_and(|omit| self.began.elapsed() >= omit) {
                self.flows.iter_mut().for_each(Flow::begin_counting);
                omit = None;
            } else if self.began.elapsed() >= deadline {
                let why = format!("the test did not end within {}", Nanos::from(deadline));
                return Err(Ending::refused(Failure::MESSAGE, why));
            }
        }
        self.flows.iter_mut().for_each(Flow::note_end);
        if let (Some(volume), Protocol::Tcp) = (parameters.volume_bytes(), parameters.protocol) {
            self.await_stragglers(volume);
        }
        Ok(())
    }

    /// Waits a moment for what a client has sent of a volume and is still under way.
    fn await_stragglers(&self, volume_bytes: u64) {
        let until = Instant::now() + STRAGGLERS;
        let receiving = || self.flows.iter().filter(|flow| !flow.sends());
        while receiving().any(|flow| flow.bytes() < volume_bytes && !flow.is_finished())
            && Instant::now() < until
        {
            std::thread::sleep(LOOK);
        }
    }

    /// Ends the flows, and says what came of them.
    pub(super) fn finish(&mut self, parameters: &Parameters) -> Result<Results, Ending> {
        self.flows.iter_mut().for_each(Flow::wind_down);
        self.flows.iter().for_each(Flow::settle);
        let wall = self.began.elapsed().as_nanos().max(1) as f64;
        let cpu = (bdp_sys::process::cpu_time_ns() - self.cpu_before_ns) as f64 / wall * 100.0;
        let mut outcomes = Vec::new();
        for flow in &mut self.flows {
            let failed = |e: EngineError| Ending::refused(Failure::MESSAGE, e.to_string());
            outcomes.push(flow.finish().map_err(failed)?);
            flow.close();
        }
        Ok(Results {
            cpu: CpuUse { total: cpu, user: 0.0, system: 0.0 },
            has_retransmits: (parameters.direction != Direction::Forward)
                .then_some(parameters.protocol == Protocol::Tcp),
            congestion: outcomes.iter().find_map(|outcome: &Outcome| outcome.congestion.clone()),
            server_output: parameters.server_output.then(|| ServerOutput::Text(output::text(&outcomes))),
            streams: flow::results(&outcomes),
        })
    }
}

/// The flows of streams, the client's first, received, then the server's, sent.
fn by_direction<S>(
    mut streams: Vec<S>,
    parameters: &Parameters,
    receive: impl Fn(Vec<S>) -> Result<Flow, EngineError>,
    send: impl Fn(Vec<S>) -> Result<Flow, EngineError>,
) -> Result<Vec<Flow>, EngineError> {
    Ok(match parameters.direction {
        Direction::Forward => vec![receive(streams)?],
        Direction::Reverse => vec![send(streams)?],
        Direction::Both => {
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
) -> Result<Vec<Flow>, EngineError> {
    if parameters.kernel_rate_bps > 0 {
        streams.iter().try_for_each(|stream| socket::pace(stream, parameters.kernel_rate_bps))?;
    }
    let plan = tcp::Plan::of(parameters, longest, stream_rate(parameters, most));
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
) -> Result<Vec<Flow>, EngineError> {
    let omit = Nanos::secs(parameters.omit_seconds);
    let receiving = DatagramReceivePlan { duration: longest, omit, interval: INTERVAL, patience: longest };
    let sending = DatagramSendPlan {
        payload_bytes: u32::try_from(parameters.length_bytes).ok(),
        rate_bps: stream_rate(parameters, most),
        duration: longest,
        omit,
        // Of a volume some may be lost: it is for the client to say when it has enough.
        bytes: None,
    };
    by_direction(
        streams,
        parameters,
        |streams| udp::Flow::receive(streams, receiving.clone(), None).map(Flow::Datagrams),
        |streams| udp::Flow::send(streams, sending.clone(), None).map(Flow::Datagrams),
    )
}

/// The rate of each stream: what was asked for, and no more than its share of what is granted.
fn stream_rate(parameters: &Parameters, most: Option<Rate>) -> Option<u64> {
    let share = most.map(|most| (most.as_bps() / u64::from(parameters.parallel)).max(1));
    let asked = [parameters.rate_bps, parameters.kernel_rate_bps].into_iter().filter(|&rate| rate > 0).min();
    asked.into_iter().chain(share).min()
}
