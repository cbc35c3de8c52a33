//! The answering end of a control stream: reads requests and carries each out, long ones on a thread of their own.

use std::collections::{BTreeMap, HashMap};
use std::io::{Read, Write};
use std::net::UdpSocket;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::thread::JoinHandle;

use bdp_model::scenario::ProbeKind;
use bdp_sys::{netlink, sysctl};
use bdp_wire::control::{Answer, ListenOrder, Numbered, Received, Request};
use bdp_wire::frame;

use bdp_flow::datagram::lab::DatagramReceiver;
use bdp_flow::error::EngineError;
use bdp_flow::receive::Receiver;
use bdp_flow::worker::start;
use bdp_flow::{datagram, probe, send};

/// Serves the stream until its other end closes it. Never returns before that, whatever is asked.
pub fn serve(mut reader: impl Read, writer: impl Write + Send + 'static) {
    let mut agent = Agent {
        answers: Arc::new(Mutex::new(Box::new(writer))),
        receiving: HashMap::new(),
        stop: Arc::new(AtomicBool::new(false)),
    };
    while let Ok(request) = frame::read::<Numbered<Request>>(&mut reader) {
        agent.carry_out(request);
    }
}

type Answers = Arc<Mutex<Box<dyn Write + Send>>>;

struct Agent {
    answers: Answers,
    receiving: HashMap<u16, JoinHandle<Result<Received, EngineError>>>,
    stop: Arc<AtomicBool>,
}

impl Agent {
    fn carry_out(&mut self, Numbered { id, body }: Numbered<Request>) {
        match body {
            Request::Echo { address, kind } => self.answer(id, start_echo(address, kind)),
            Request::Listen(order) => {
                let answer = self.start_receiving(order);
                self.answer(id, answer);
            }
            Request::Collect { port } => match self.receiving.remove(&port) {
                Some(thread) => self.spawn(id, move || {
                    thread
                        .join()
                        .unwrap_or_else(|_| {
                            Err(EngineError::Refused("the receiving thread panicked".to_owned()))
                        })
                        .map(Answer::Received)
                }),
                None => self.answer(id, Err(EngineError::Refused(format!("no flow on port {port}")))),
            },
            Request::Send(order) => {
                let stop = self.fresh_stop();
                self.spawn(id, move || {
                    let sent = match &order.datagrams {
                        Some(flow) => datagram::lab::run(&order, flow, &stop),
                        None => send::run(&order, &stop),
                    };
                    sent.map(Answer::Sent)
                });
            }
            Request::Probe(order) => {
                let stop = self.fresh_stop();
                self.spawn(id, move || probe::run(&order, &stop).map(Answer::Probed));
            }
            Request::Stop => {
                self.stop.store(true, Ordering::Relaxed);
                self.answer(id, Ok(Answer::Done));
            }
            Request::ReadSysctls { names } => {
                let values: BTreeMap<_, _> = names
                    .into_iter()
                    .filter_map(|name| sysctl::read(&name).ok().map(|value| (name, value)))
                    .collect();
                self.answer(id, Ok(Answer::Sysctls(values)));
            }
            Request::ReadCounters { device } => self.answer(id, read_counters(&device)),
        }
    }

    /// The flag that ends current work; once it was raised, later work gets a new one.
    fn fresh_stop(&mut self) -> Arc<AtomicBool> {
        if self.stop.load(Ordering::Relaxed) {
            self.stop = Arc::new(AtomicBool::new(false));
        }
        Arc::clone(&self.stop)
    }

    fn start_receiving(&mut self, order: ListenOrder) -> Result<Answer, EngineError> {
        if let Some(bytes) = order.tcp_rmem_bytes {
            sysctl::write("net.ipv4.tcp_moderate_rcvbuf", "0")?;
            sysctl::write("net.ipv4.tcp_rmem", &format!("{} {bytes} {bytes}", bytes.min(4096)))?;
        }
        if order.datagrams {
            let receiver = DatagramReceiver::bind(order)?;
            let port = receiver.port();
            let stop = self.fresh_stop();
            self.receiving.insert(port, start(move || receiver.run(&stop))?);
            return Ok(Answer::Listening { port });
        }
        let receiver = Receiver::listen(order)?;
        let port = receiver.port();
        let stop = self.fresh_stop();
        self.receiving.insert(port, start(move || receiver.run(&stop))?);
        Ok(Answer::Listening { port })
    }

    fn spawn(&self, id: u64, work: impl FnOnce() -> Result<Answer, EngineError> + Send + 'static) {
        let answers = Arc::clone(&self.answers);
        if let Err(error) = start(move || write_answer(&answers, id, work())) {
            self.answer(id, Err(error));
        }
    }

    fn answer(&self, id: u64, answer: Result<Answer, EngineError>) {
        write_answer(&self.answers, id, answer);
    }
}

fn write_answer(answers: &Answers, id: u64, answer: Result<Answer, EngineError>) {
    let body = answer.unwrap_or_else(|e| Answer::Failed { error: e.to_string() });
    let mut writer = answers.lock().unwrap_or_else(PoisonError::into_inner);
    // Nobody to answer means that the other end has gone, which the reading side notices by itself.
    let _ = frame::write(&mut *writer, &Numbered { id, body });
}

fn start_echo(address: std::net::SocketAddr, kind: ProbeKind) -> Result<Answer, EngineError> {
    let port = match kind {
        ProbeKind::Udp => {
            let socket = UdpSocket::bind(address).map_err(EngineError::io("bind echo"))?;
            let port = socket.local_addr().map_err(EngineError::io("bind echo"))?.port();
            start(move || probe::echo(&socket))?;
            port
        }
        ProbeKind::TcpConnect => {
            let listener = probe::listen(address)?;
            let port = listener.local_addr().map_err(EngineError::io("bind echo"))?.port();
            start(move || probe::take(&listener))?;
            port
        }
    };
    Ok(Answer::Listening { port })
}

fn read_counters(device: &str) -> Result<Answer, EngineError> {
    let c = netlink::Netlink::open()?.counters(device)?;
    Ok(Answer::Counters {
        rx_packets: c.rx_packets,
        tx_packets: c.tx_packets,
        rx_dropped: c.rx_dropped,
        tx_dropped: c.tx_dropped,
    })
}
