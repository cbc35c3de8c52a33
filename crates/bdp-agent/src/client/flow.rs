//! The local end of one flow.

use std::net::TcpStream;
use std::sync::atomic::AtomicBool;

use bdp_model::flow::FlowSpec;
use bdp_model::flow::method::EndReason;
use bdp_model::measurement::{Direction, MeasureRequest};
use bdp_model::probes::one_way::ClockOffset;
use bdp_model::units::Nanos;
use bdp_sys::clock;
use bdp_wire::control::{Answer, FlowOrder, Received, Role, Sent, StreamSource};

use bdp_flow::background::Background;
use bdp_flow::crew::{self, Crew};
use bdp_flow::datagram::{self, DatagramSendPlan, Stream, payload_by_found};
use bdp_flow::error::Result;
use bdp_flow::meter::Meter;
use bdp_flow::receive::{self, ReceivePlan};
use bdp_flow::send::{self, SendPlan};
use bdp_flow::session::datagrams;
use bdp_flow::session::options::PATIENCE;
use bdp_flow::session::peer::Outcome;
use bdp_flow::session::salvage;
use bdp_flow::stall;

/// A flow with established connections.
pub(super) struct Flow {
    pub(super) way: Direction,
    pub(super) number: u32,
    streams: Vec<TcpStream>,
    /// Streams of a flow of datagrams.
    datagrams: Vec<Stream>,
    /// Offset of the two ends' clocks, if they were compared.
    clocks: Option<ClockOffset>,
    /// When the local end began to write, monotonic; `None` if it reads.
    sending_since_ns: Option<u64>,
    /// The running work, once it has begun.
    pub(super) work: Background<End>,
}

/// One end's report of a flow.
pub(super) enum End {
    Received(Received),
    Sent(Sent),
}

/// Returns the order for the server in a direction.
pub(super) fn order(request: &MeasureRequest, way: Direction, flow: u32) -> FlowOrder {
    let role = match way {
        Direction::To => Role::Receive,
        Direction::From => Role::Send,
    };
    // The client makes the connections, and has set the MSS.
    let spec = FlowSpec { mss: None, ..request.spec.clone() };
    FlowOrder { cpus: request.far_cpus.clone(), ..FlowOrder::of(flow, role, StreamSource::Session, &spec) }
}

impl Flow {
    pub(super) fn new(way: Direction, number: u32, streams: Vec<TcpStream>) -> Self {
        Self {
            way,
            number,
            streams,
            datagrams: Vec::new(),
            clocks: None,
            sending_since_ns: None,
            work: Background::default(),
        }
    }

    /// Creates a flow whose streams are datagrams, and open.
    pub(super) fn of_datagrams(
        way: Direction,
        number: u32,
        streams: Vec<Stream>,
        clocks: Option<ClockOffset>,
    ) -> Self {
        let mut flow = Self::new(way, number, Vec::new());
        (flow.datagrams, flow.clocks) = (streams, clocks);
        flow
    }

    /// Combines both ends' reports; `None` if either report does not fit its role.
    pub(super) fn outcome(&self, near: End, far: Answer) -> Option<Outcome> {
        let (outcome, begun_at_ns) = match (near, far) {
            (End::Received(received), Answer::Sent(sent)) => {
                let first = received.first_byte_at_ns;
                (Outcome::of(self.way, received, sent), first)
            }
            (End::Sent(sent), Answer::Received(received)) => {
                (Outcome::of(self.way, received, sent), self.sending_since_ns)
            }
            _ => return None,
        };
        Some(Outcome { clocks: self.clocks, begun_at_ns, ..outcome })
    }

    /// Returns what the local end alone knows of interrupted connections; `None` if nothing.
    pub(super) fn near_alone(mut self, request: &MeasureRequest) -> Option<Outcome> {
        let streams = request.spec.streams as usize;
        let (outcome, begun_at_ns) = match self.work.finish().ok()? {
            End::Received(received) => {
                let (first, ended) = (received.first_byte_at_ns, EndReason::Reset);
                let received = Received { ended, ..received };
                (Outcome::of(self.way, received, Sent::default()), first)
            }
            End::Sent(sent) => {
                let received = salvage::acknowledged(&sent, request.spec.omit, streams);
                (Outcome::of(self.way, received, sent), self.sending_since_ns)
            }
        };
        Some(Outcome { clocks: self.clocks, begun_at_ns, ..outcome })
    }

    /// Starts reading, if the local end receives.
    pub(super) fn start_receiving(&mut self, request: &MeasureRequest) -> Result<()> {
        let spec = &request.spec;
        if self.way != Direction::From {
            return Ok(());
        }
        if spec.udp.is_some() {
            let (streams, plan) = (std::mem::take(&mut self.datagrams), datagrams::receive_plan(request));
            let (patience, cpus) = (datagrams::patience(request), request.near_cpus.clone());
            return self.start(move |_, stop, meter| {
                crew::keep_to_listed(cpus.as_ref())?;
                stall::guard(meter, stop, patience, |stop| {
                    datagram::receive::over(streams, &plan, stop, meter).map(End::Received)
                })
            });
        }
        // The server may wait for streams first, and then the first byte must travel.
        let plan = ReceivePlan::of(spec, Nanos::from(3 * PATIENCE), self.crew(request));
        let patience = stall::patience(plan.interval, spec.pacing_bps);
        self.start(move |streams, stop, meter| {
            stall::guard(meter, stop, patience, |stop| {
                receive::over(streams, &plan, stop, meter).map(End::Received)
            })
        })
    }

    /// Starts writing, if the local end sends; datagrams are limited to the discovered path MTU, if there is one.
    pub(super) fn start_sending(&mut self, request: &MeasureRequest, path_mtu: Option<u32>) -> Result<()> {
        let spec = &request.spec;
        if self.way != Direction::To {
            return Ok(());
        }
        self.sending_since_ns = Some(clock::monotonic_ns());
        if spec.udp.is_some() {
            let streams = std::mem::take(&mut self.datagrams);
            let plan = datagrams::send_plan(request);
            let payload_bytes = plan.payload_bytes.or_else(|| payload_by_found(&streams, path_mtu));
            let plan = DatagramSendPlan { payload_bytes, ..plan };
            let cpus = request.near_cpus.clone();
            return self.start(move |_, stop, meter| {
                crew::keep_to_listed(cpus.as_ref())?;
                datagram::send::over(streams, &plan, stop, meter).map(End::Sent)
            });
        }
        let plan = SendPlan::of(spec, Nanos::from(PATIENCE), self.crew(request));
        let pacing_bps = spec.pacing_bps;
        self.start(move |streams, stop, meter| {
            let patience = stall::patience(plan.interval, pacing_bps);
            let sent = stall::guard(meter, stop, patience, |stop| send::over(streams, &plan, stop, meter))?;
            Ok(End::Sent(Sent { pacing_bps, ..sent }))
        })
    }

    fn crew(&self, request: &MeasureRequest) -> Crew {
        Crew::listed(self.streams.len(), request.near_cpus.as_ref())
    }

    fn start(
        &mut self,
        work: impl FnOnce(Vec<TcpStream>, &AtomicBool, &Meter) -> Result<End> + Send + 'static,
    ) -> Result<()> {
        let streams = std::mem::take(&mut self.streams);
        self.work.start(move |stop, meter| work(streams, stop, meter))
    }
}
