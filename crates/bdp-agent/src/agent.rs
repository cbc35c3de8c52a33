//! The answering end of a control stream, on a server and on a host of the lab: carries out each request, long ones
//! on a thread of their own.

use std::collections::{BTreeMap, HashMap};
use std::io::Read;
use std::net::{IpAddr, Ipv4Addr, SocketAddr, UdpSocket};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex};

use bdp_model::case::ProbeKind;
use bdp_model::units::Nanos;
use bdp_sys::{netlink, sysctl};
use bdp_wire::control::{Answer, FlowOrder, Numbered, ProbeOrder, Request};
use bdp_wire::frame;

use crate::answers::Answers;
use crate::remote::ControlStream;
use crate::server::flow::{Flow, Terms};
use bdp_flow::error::{FlowError, Result};
use bdp_flow::exchange;
use bdp_flow::host::Baseline;
use bdp_flow::lock::lock;
use bdp_flow::probe;
use bdp_flow::worker::start;

/// Serves this host's owner until the other end closes the stream. Never returns before that, whatever the requests.
pub fn serve(mut reader: impl Read, writer: impl ControlStream + 'static) {
    let agent = Agent::new(Rights::Owner, Answers::new(writer), IpAddr::V4(Ipv4Addr::UNSPECIFIED));
    while let Ok(Numbered { id, body }) = frame::read::<Numbered<Request>>(&mut reader) {
        agent.carry_out(id, body);
    }
}

/// The requests that the other end may make.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Rights {
    /// Flows of a session, and facts about this machine.
    Session,
    /// All requests: listen and connect, read and change settings. A host of the lab has its own namespace for that.
    Owner,
}

/// The flows and probes of one control stream.
pub(crate) struct Agent {
    rights: Rights,
    answers: Arc<Answers>,
    baseline: Baseline,
    flows: Mutex<HashMap<u32, Arc<Flow>>>,
    /// Flags that stop probes, by their number.
    probes: Mutex<HashMap<u32, Arc<AtomicBool>>>,
}

impl Agent {
    /// Creates an agent whose facts are those of the device with `address`.
    pub(crate) fn new(rights: Rights, answers: Answers, address: IpAddr) -> Self {
        Self {
            rights,
            answers: Arc::new(answers),
            baseline: Baseline::take(address),
            flows: Mutex::default(),
            probes: Mutex::default(),
        }
    }

    pub(crate) fn answers(&self) -> &Answers {
        &self.answers
    }

    /// Carries out a request, and answers it now or later. A flow is prepared without terms other than its order.
    pub(crate) fn carry_out(&self, id: u64, request: Request) {
        if self.rights != Rights::Owner
            && matches!(
                request,
                Request::Echo { .. }
                    | Request::Probe(_)
                    | Request::Respond { .. }
                    | Request::Exchange(_)
                    | Request::HostCounters
                    | Request::Tune(_)
                    | Request::ReadSysctls { .. }
                    | Request::ReadCounters { .. }
            )
        {
            return self.answers.give(id, Err(owner_alone()));
        }
        match request {
            Request::Facts => self.answers.give(id, Ok(Answer::Facts(Box::new(self.baseline.facts())))),
            Request::Prepare(order) => {
                let answer = self.prepare(*order, Terms::default());
                self.answers.give(id, answer);
            }
            Request::Begin { flow } => self.with_flow(id, flow, |flow| flow.begin(id)),
            Request::Collect { flow } => self.with_flow(id, flow, |flow| flow.collect(id)),
            Request::Stop { flow } => self.stop(id, flow),
            Request::Echo { address, kind } => self.answers.give(id, start_echo(address, kind)),
            Request::Probe(order) => self.probe(id, order),
            Request::Respond { address, congestion } => {
                self.answers.give(id, start_responding(address, congestion));
            }
            Request::Exchange(order) => {
                let answers = Arc::clone(&self.answers);
                let started = start(move || answers.give(id, exchange::run(&order).map(Answer::Exchanged)));
                if let Err(error) = started {
                    self.answers.give(id, Err(error));
                }
            }
            Request::ReadSysctls { names } => {
                let values: BTreeMap<_, _> = names
                    .into_iter()
                    .filter_map(|name| sysctl::read(&name).ok().map(|value| (name, value)))
                    .collect();
                self.answers.give(id, Ok(Answer::Sysctls(values)));
            }
            // The owner of a host of the lab has other means.
            Request::Tune(_) => self.answers.give(id, Err(owner_alone())),
            Request::HostCounters => {
                self.answers.give(id, Ok(Answer::HostCounters(Box::new(self.baseline.counters()))));
            }
            Request::ReadCounters { device } => self.answers.give(id, read_counters(&device)),
        }
    }

    /// Prepares a flow, whose number must not be used by another running one.
    pub(crate) fn prepare(&self, order: FlowOrder, terms: Terms) -> Result<Answer> {
        let is_owners = !order.source.is_session() || !order.spec.application.is_greedy();
        if is_owners && self.rights != Rights::Owner {
            return Err(owner_alone());
        }
        let mut flows = lock(&self.flows);
        flows.retain(|_, flow| !flow.is_over());
        if flows.contains_key(&order.flow) {
            return Err(FlowError::Refused(format!("flow {} already exists", order.flow)));
        }
        let number = order.flow;
        let (flow, answer) = Flow::prepare(order, Arc::clone(&self.answers), terms)?;
        flows.insert(number, flow);
        Ok(answer)
    }

    /// Returns the number of flows that have not ended.
    pub(crate) fn flows_under_way(&self) -> usize {
        lock(&self.flows).values().filter(|flow| !flow.is_over()).count()
    }

    /// Returns the longest duration granted to a running flow.
    pub(crate) fn longest_flow(&self) -> Nanos {
        lock(&self.flows).values().filter(|f| !f.is_over()).map(|f| f.duration()).max().unwrap_or_default()
    }

    /// Returns the flow of this number.
    pub(crate) fn flow(&self, number: u32) -> Option<Arc<Flow>> {
        lock(&self.flows).get(&number).cloned()
    }

    /// Stops all flows and discards their outcomes.
    pub(crate) fn abandon(&self) {
        for (_, flow) in lock(&self.flows).drain() {
            flow.abandon();
        }
    }

    fn with_flow(&self, id: u64, number: u32, work: impl FnOnce(&Flow)) {
        match self.flow(number) {
            Some(flow) => work(&flow),
            None => self.answers.give(id, Err(FlowError::Refused(format!("flow {number} does not exist")))),
        }
    }

    fn stop(&self, id: u64, number: u32) {
        if let Some(stop) = lock(&self.probes).get(&number) {
            stop.store(true, Ordering::Relaxed);
            return self.answers.give(id, Ok(Answer::Done));
        }
        self.with_flow(id, number, |flow| {
            flow.stop();
            self.answers.give(id, Ok(Answer::Done));
        });
    }

    fn probe(&self, id: u64, order: ProbeOrder) {
        let stop = Arc::new(AtomicBool::new(false));
        lock(&self.probes).insert(order.flow, Arc::clone(&stop));
        let answers = Arc::clone(&self.answers);
        let started = start(move || answers.give(id, probe::run(&order, &stop).map(Answer::Probed)));
        if let Err(error) = started {
            self.answers.give(id, Err(error));
        }
    }
}

fn owner_alone() -> FlowError {
    FlowError::Refused("only the owner of the host may do this, not clients of a session".to_owned())
}

fn start_echo(address: SocketAddr, kind: ProbeKind) -> Result<Answer> {
    let port = match kind {
        ProbeKind::Udp => {
            let socket = UdpSocket::bind(address).map_err(FlowError::io("bind echo"))?;
            let port = socket.local_addr().map_err(FlowError::io("bind echo"))?.port();
            start(move || probe::echo(&socket))?;
            port
        }
        ProbeKind::TcpConnect => {
            let listener = probe::listen(address)?;
            let port = listener.local_addr().map_err(FlowError::io("bind echo"))?.port();
            start(move || probe::take(&listener))?;
            port
        }
    };
    Ok(Answer::Listening { port })
}

fn start_responding(address: SocketAddr, congestion: Option<String>) -> Result<Answer> {
    let listener = exchange::listen(address, congestion)?;
    let port = listener.local_addr().map_err(FlowError::io("listen for requests"))?.port();
    start(move || exchange::respond(&listener))?;
    Ok(Answer::Listening { port })
}

fn read_counters(device: &str) -> Result<Answer> {
    let c = netlink::Netlink::open()?.counters(device)?;
    Ok(Answer::Counters {
        rx_packets: c.rx_packets,
        tx_packets: c.tx_packets,
        rx_dropped: c.rx_dropped,
        tx_dropped: c.tx_dropped,
    })
}

#[cfg(test)]
mod tests {
    use std::os::unix::net::UnixStream;

    use bdp_model::flow::FlowSpec;
    use bdp_wire::control::{Role, StreamSource};

    use super::*;

    fn order(source: StreamSource) -> FlowOrder {
        FlowOrder::of(1, Role::Receive, source, &FlowSpec::default())
    }

    #[test]
    fn a_client_of_a_session_gets_nothing_that_is_the_owners() {
        let (mut asking, answering) = UnixStream::pair().unwrap();
        let agent = Agent::new(Rights::Session, Answers::new(answering), Ipv4Addr::LOCALHOST.into());
        let address = SocketAddr::from((Ipv4Addr::LOCALHOST, 0));
        let patience = Nanos::secs(1);
        let probe = ProbeOrder {
            flow: 1,
            kind: ProbeKind::TcpConnect,
            to: address,
            offset: Nanos::ZERO,
            interval: Nanos::secs(1),
            jitter: Nanos::ZERO,
            seed: 1,
            duration: Nanos::secs(1),
            patience,
        };
        let listen = StreamSource::Listen { address, patience, tcp_rmem_bytes: Some(4096) };
        let connect = StreamSource::Connect { to: address, start: Nanos::ZERO, patience };
        let requests = [
            Request::Echo { address, kind: ProbeKind::Udp },
            Request::Probe(probe),
            Request::HostCounters,
            Request::ReadSysctls { names: vec!["kernel.hostname".to_owned()] },
            Request::ReadCounters { device: "lo".to_owned() },
            Request::Prepare(Box::new(order(listen))),
            Request::Prepare(Box::new(order(connect))),
        ];
        for (request, id) in requests.into_iter().zip(0..) {
            agent.carry_out(id, request.clone());
            let answer: Numbered<Answer> = frame::read(&mut asking).unwrap();
            let is_refused = matches!(&answer.body, Answer::Failed { error } if error.contains("owner"));
            assert!(is_refused && answer.id == id, "{request:?}: {answer:?}");
        }
        assert_eq!(agent.flows_under_way(), 0);
        agent.carry_out(9, Request::Facts);
        assert!(matches!(frame::read(&mut asking), Ok(Numbered { id: 9, body: Answer::Facts(_) })));
    }
}
