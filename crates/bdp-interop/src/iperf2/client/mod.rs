//! Drives an iperf2 server. For connections, that server reports only its version: what it received is what it
//! acknowledged, what it sent is what arrived. For datagrams it reports what it received.

mod datagrams;
mod streams;

use std::net::SocketAddr;
use std::sync::Arc;
use std::sync::atomic::AtomicBool;
use std::time::Duration;

use bdp_flow::background::{Background, Passed};
use bdp_flow::crew;
use bdp_flow::error::FlowError;
use bdp_flow::meter::Meter;
use bdp_flow::session::dial;
use bdp_flow::session::error::{Result, SessionError};
use bdp_flow::session::peer::{Context, Outcome, Peer, Polled, rounds};
use bdp_model::finding::caveat::{Caveat, NotMeasured};
use bdp_model::flow::method::EndReason;
use bdp_model::measurement::ends::PeerProtocol;
use bdp_model::measurement::{Direction, HostFacts, MeasureRequest, options};
use bdp_sys::tcp_info::TcpInfo;
use bdp_wire::control::{Received, Sent};

/// How often a running test is checked.
const LOOK: Duration = Duration::from_millis(20);

/// Measures with iperf2's protocol.
#[derive(Default)]
pub struct Iperf2Peer {
    /// The addresses of the host, and those of them left to try in a round.
    addresses: Vec<SocketAddr>,
    untried: Vec<SocketAddr>,
    /// The address of the last round or attempt.
    address: Option<SocketAddr>,
    directions: Vec<OneDirection>,
    /// Results of the directions, once all are over.
    done: Vec<(Direction, Done)>,
    /// Whether the address has served a round.
    has_served: bool,
    is_cut_short: bool,
    smallest_rtt_ns: Option<u64>,
}

/// The outcome of one direction.
type Done = Result<(Received, Sent)>;

/// One direction of a round.
struct OneDirection {
    way: Direction,
    work: Background<Done>,
}

impl OneDirection {
    fn start(
        way: Direction,
        request: &MeasureRequest,
        work: impl FnOnce(&AtomicBool, &Meter) -> Done + Send + 'static,
    ) -> Result<Self, FlowError> {
        let (mut background, cpus) = (Background::default(), request.near_cpus.clone());
        background.start(move |stop, meter| {
            crew::keep_to_listed(cpus.as_ref())?;
            Ok(work(stop, meter))
        })?;
        Ok(Self { way, work: background })
    }

    fn finish(&mut self) -> Done {
        self.work.finish()?
    }
}

impl Peer for Iperf2Peer {
    fn open(&mut self, request: &MeasureRequest, context: &mut Context<'_>) -> Result<MeasureRequest> {
        check(request)?;
        self.addresses = dial::resolve(request, context.reporter.cancel)?;
        let datagrams = request.spec.udp.is_some();
        context.caveats.push(Caveat::ForeignServer { protocol: PeerProtocol::Iperf2, datagrams });
        Ok(request.clone())
    }

    fn rounds(&self, request: &MeasureRequest) -> Vec<Vec<Direction>> {
        let mut rounds = rounds(request);
        if request.spec.udp.is_some() {
            // Its server sends no datagrams to a client from which it has just received some: receiving goes first.
            rounds.sort_by_key(|round| round.contains(&Direction::To));
        }
        rounds
    }

    fn begin(
        &mut self,
        request: &MeasureRequest,
        ways: &[Direction],
        context: &mut Context<'_>,
    ) -> Result<()> {
        (self.directions, self.done) = (Vec::new(), Vec::new());
        self.untried = match self.address.filter(|_| self.has_served) {
            Some(address) => vec![address],
            None => self.addresses.clone(),
        };
        if request.spec.udp.is_some() {
            return self.begin_datagrams(request, ways, context);
        }
        let (address, streams) = streams::open(&self.untried, ways, request, context.reporter.cancel)?;
        (self.address, self.has_served) = (Some(address), true);
        if let Some(local) = streams.first().and_then(|stream| stream.local_addr().ok()) {
            context.note_local(local.ip());
        }
        for &way in ways {
            let cloned: std::io::Result<Vec<_>> = streams.iter().map(|stream| stream.try_clone()).collect();
            let (streams, plan) = (cloned.map_err(FlowError::io("open the streams"))?, request.clone());
            let work = move |stop: &AtomicBool, meter: &Meter| {
                streams::carry_out(way, streams, address, &plan, stop, meter)
            };
            self.directions.push(OneDirection::start(way, request, work)?);
        }
        Ok(())
    }

    fn poll(&mut self, request: &MeasureRequest, context: &mut Context<'_>) -> Result<Polled> {
        if !self.directions.iter().all(|direction| direction.work.is_finished()) {
            std::thread::sleep(LOOK);
            return Ok(Polled::Running);
        }
        self.done = self.directions.iter_mut().map(|direction| (direction.way, direction.finish())).collect();
        let is_refused = |(_, done): &(Direction, Done)| matches!(done, Err(SessionError::Refused { .. }));
        if self.done.iter().any(is_refused) && !self.untried.is_empty() && !self.is_cut_short {
            let ways: Vec<Direction> = self.directions.iter().map(|direction| direction.way).collect();
            self.begin_datagrams(request, &ways, context)?;
            return Ok(Polled::Running);
        }
        Ok(Polled::Over)
    }

    fn moved(&mut self) -> Vec<(Direction, Passed)> {
        let directions = self.directions.iter_mut();
        directions.map(|direction| (direction.way, direction.work.moved_since())).collect()
    }

    fn sender_infos(&self) -> Vec<(Direction, Vec<TcpInfo>)> {
        let directions = self.directions.iter();
        directions.map(|direction| (direction.way, direction.work.sender_infos())).collect()
    }

    fn has_begun(&self) -> bool {
        self.directions.iter().any(|direction| direction.work.bytes() > 0)
    }

    fn interrupt(&mut self, _: &mut Context<'_>) -> Result<()> {
        self.is_cut_short = true;
        self.directions.iter().for_each(|direction| direction.work.stop());
        Ok(())
    }

    fn abandon(&mut self) {
        // Stopped, and waited for.
        self.directions.clear();
    }

    fn finish(&mut self, request: &MeasureRequest, _: &mut Context<'_>) -> Result<Vec<Outcome>> {
        let mut outcomes = Vec::new();
        for ((way, done), direction) in self.done.drain(..).zip(&self.directions) {
            match done {
                Ok((received, sent)) => {
                    let rtt = sent.samples.iter().filter_map(|s| s.srtt_ns).min();
                    self.smallest_rtt_ns = self.smallest_rtt_ns.into_iter().chain(rtt).min();
                    let received = close_in_order(request, way, received);
                    let sender_infos = direction.work.sender_infos();
                    outcomes.push(Outcome { sender_infos, ..Outcome::of(way, received, sent) });
                }
                // A direction that had not begun must not cost the results of the other.
                Err(SessionError::Cancelled) if self.is_cut_short => {}
                Err(error) => return Err(error),
            }
        }
        self.has_served = true;
        if outcomes.is_empty() { Err(SessionError::Cancelled) } else { Ok(outcomes) }
    }

    fn smallest_rtt_ns(&self) -> Option<u64> {
        self.smallest_rtt_ns
    }

    fn unmeasured(&self, error: &SessionError) -> Option<NotMeasured> {
        match *error {
            SessionError::NoDatagrams { address, waited } => {
                Some(NotMeasured::NoAnswer { address, waited_ns: waited.as_ns() })
            }
            SessionError::NoReverse { address, waited } => {
                Some(NotMeasured::NoDatagrams { address, waited_ns: waited.as_ns() })
            }
            _ => None,
        }
    }

    fn knows_pacing(&self, way: Direction) -> bool {
        // The server does not report how it paces.
        way == Direction::To
    }

    fn remote_facts(&mut self, request: &MeasureRequest) -> Result<HostFacts> {
        let address = self.address.map_or_else(String::new, |a| a.ip().to_canonical().to_string());
        Ok(HostFacts { name: request.host.clone(), address, ..Default::default() })
    }
}

impl Iperf2Peer {
    /// Begins a round of datagrams at the next of the addresses.
    fn begin_datagrams(
        &mut self,
        request: &MeasureRequest,
        ways: &[Direction],
        context: &mut Context<'_>,
    ) -> Result<()> {
        if self.untried.is_empty() {
            return Err(SessionError::no_address(&request.host));
        }
        let address = self.untried.remove(0);
        let flows = ways.iter().map(|&way| datagrams::Flow::open(address, way, request));
        let flows = flows.collect::<Result<Vec<_>, _>>()?;
        if let Some(local) = flows.first().and_then(datagrams::Flow::local_address) {
            context.note_local(local.ip());
        }
        // The server distinguishes clients only one after the other: flows to be received are opened before anything
        // is sent.
        let has_taken_one = self.has_served || ways.contains(&Direction::From);
        let asked = Arc::new(AtomicBool::new(!ways.contains(&Direction::From)));
        self.address = Some(address);
        self.directions.clear();
        for flow in flows {
            let (way, asked) = (flow.way(), Arc::clone(&asked));
            let work =
                move |stop: &AtomicBool, meter: &Meter| flow.carry_out(has_taken_one, &asked, stop, meter);
            self.directions.push(OneDirection::start(way, request, work)?);
        }
        Ok(())
    }
}

/// Refuses options that iperf2's protocol cannot express.
fn check(request: &MeasureRequest) -> Result<()> {
    let from = request.bidirectional || request.directions.contains(&Direction::From);
    let wrong = |text: &str| Err(SessionError::Request(text.to_owned()));
    if let Some(why) = options::refusal(request, PeerProtocol::Iperf2) {
        return wrong(&why);
    }
    if let Some(udp) = &request.spec.udp {
        return datagrams::check(request, udp);
    }
    if from && request.spec.congestion.is_some() {
        return wrong("an iperf2 server accepts no congestion control for its end; measure only --forward");
    }
    if from && request.spec.bytes.is_some_and(|b| b.as_bytes() >= 1 << 31) {
        return wrong("iperf2 sends less than 2 GiB if a number of bytes is given; give a duration, -t");
    }
    Ok(())
}

/// Corrects the result of a server that stopped sending when its time was over, as requested.
fn close_in_order(request: &MeasureRequest, way: Direction, received: Received) -> Received {
    let is_whole = request.spec.bytes.is_some_and(|asked| received.bytes >= asked.as_bytes());
    if way == Direction::From && received.ended == EndReason::Closed && !is_whole {
        return Received { ended: EndReason::Duration, ..received };
    }
    received
}
