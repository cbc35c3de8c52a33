//! One iperf2 connection: received, sent, or both, as its header says; without a header it is received.

use std::io::{ErrorKind, Write};
use std::net::{Shutdown, SocketAddr, TcpStream};
use std::sync::Arc;
use std::time::{Duration, Instant};

use bdp_model::flow::application::Application;
use bdp_model::flow::payload::Zerocopy;
use bdp_model::units::Nanos;
use bdp_sys::socket::{self, TcpOptions};
use bdp_wire::iperf2::{Amount, Back, TestHeader, acknowledgement};

use super::shared::{Membership, Shared, VERSION, check_rate};
use super::{bursts, shared};
use bdp_agent::server::places::Activity;
use bdp_flow::crew::Crew;
use bdp_flow::error::{FlowError, Result};
use bdp_flow::receive::{self, ReceivePlan};
use bdp_flow::send::{self, SendPlan};
use bdp_flow::stall::{self, RARE_LOOK};

/// How long the kernel may take for what is written at once: the time limit of a stalled flow.
const WRITE_DEADLINE: Duration = Duration::from_secs(10);
/// How long a client may be gone before its stream ends.
const PEER_PATIENCE: Duration = Duration::from_secs(10);
/// How long a receiver waits for a first byte, and how much longer than announced a client may send.
const SLACK: Nanos = Nanos::secs(15);
/// How long a client's listener may take to appear, if the server connects back.
const BACK_DEADLINE: Duration = Duration::from_secs(3);
/// Default bytes per write: iperf2's.
const WRITE_BYTES: u64 = 128 << 10;
/// Samples are of no use to this client: it keeps its own.
const INTERVAL: Nanos = Nanos::secs(1);

/// Serves a connection on a thread of its own.
pub(super) fn serve(shared: &Arc<Shared>, stream: TcpStream, peer: SocketAddr, header: Option<TestHeader>) {
    let announced = header.map_or(Ok(()), |header| check_rate(shared, peer, &header));
    shared::serve(shared, stream, peer, announced, move |shared, stream, member| {
        let test = Stream { shared, peer, header: header.unwrap_or_default(), activity: &member.activity };
        let done = test.begin(&stream, header.is_some()).and_then(|()| test.run(stream, member));
        done.map_err(explained)
    });
}

/// Explains that the kernel reports a peer which takes nothing as gone.
fn explained(error: FlowError) -> FlowError {
    match error {
        FlowError::Io { source, .. } if source.kind() == ErrorKind::TimedOut => {
            FlowError::Stalled { within: PEER_PATIENCE.into() }
        }
        other => other,
    }
}

struct Stream<'a> {
    shared: &'a Arc<Shared>,
    peer: SocketAddr,
    header: TestHeader,
    activity: &'a Arc<Activity>,
}

impl Stream<'_> {
    fn begin(&self, stream: &TcpStream, announced: bool) -> Result<()> {
        let failed = || FlowError::io("serve an iperf2 client");
        stream.set_nonblocking(false).map_err(failed())?;
        stream.set_write_timeout(Some(WRITE_DEADLINE)).map_err(failed())?;
        socket::watch_peer(stream, PEER_PATIENCE)?;
        if announced && self.header.acknowledge {
            (&mut &*stream).write_all(&acknowledgement(VERSION)).map_err(failed())?;
        }
        Ok(())
    }

    fn run(&self, stream: TcpStream, member: &Membership) -> Result<()> {
        if self.header.reverse {
            member.activity.note_heard();
            return self.send(stream);
        }
        if self.header.full_duplex {
            member.activity.note_heard();
            let both = FlowError::io("send to an iperf2 client");
            let other = stream.try_clone().map_err(both)?;
            return std::thread::scope(|scope| {
                let sending = std::thread::Builder::new()
                    .spawn_scoped(scope, || self.send(other))
                    .map_err(FlowError::io("start a thread"))?;
                let received = self.receive(stream);
                received.and(sending.join().unwrap_or_else(|_| {
                    Err(FlowError::Ended("the sending half of a test ended unexpectedly".to_owned()))
                }))
            });
        }
        let failed = || FlowError::io("serve an iperf2 client");
        stream.set_read_timeout(Some(SLACK.to_duration())).map_err(failed())?;
        // A client that connects and sends nothing has begun no work.
        match stream.peek(&mut [0]) {
            Ok(0) => {}
            Ok(_) => member.activity.note_heard(),
            Err(e) if e.kind() == ErrorKind::WouldBlock => {
                return Err(FlowError::Silence { within: SLACK });
            }
            Err(e) => return Err(FlowError::io("serve an iperf2 client")(e)),
        }
        match self.header.connect_back {
            None => self.receive(stream),
            Some(_) if !self.shared.server.options.access.is_trusted(self.peer.ip()) => {
                member.note(
                    "it requests a connection back (-d, -r), which is made only to addresses in --allow",
                );
                self.receive(stream)
            }
            Some(Back::Afterwards) => self.receive(stream).and_then(|()| self.send_back()),
            Some(Back::AtOnce) => std::thread::scope(|scope| {
                let back = std::thread::Builder::new()
                    .spawn_scoped(scope, || self.send_back())
                    .map_err(FlowError::io("start a thread"))?;
                let received = self.receive(stream);
                received.and(back.join().unwrap_or(Ok(())))
            }),
        }
    }

    fn receive(&self, stream: TcpStream) -> Result<()> {
        let longest = self.shared.server.options.limits.duration;
        let plan = ReceivePlan {
            // A client that named no time may take all that is granted.
            duration: match self.header.amount {
                Amount::Time(time) if self.header.version.is_some() => (time + SLACK).min(longest),
                _ => longest,
            },
            omit: Nanos::ZERO,
            interval: INTERVAL,
            patience: SLACK,
            window_bytes: None,
            coalesce: true,
            check: false,
            application: Application::default(),
            crew: Crew::alone(),
        };
        let watched = self.activity.watch();
        let meter = watched.meter();
        let patience = self.patience(self.header.rate_bps);
        let received = stall::guard_by(RARE_LOOK, meter, self.shared.server.ending(), patience, |stop| {
            receive::over(vec![stream], &plan, stop, meter)
        });
        let bytes = received.as_ref().map_or_else(|_| meter.bytes(), |received| received.bytes);
        self.shared.server.counters.add_received(bytes);
        received.map(drop)
    }

    /// How long nothing may move, in writes of the client's length at this rate.
    fn patience(&self, rate_bps: Option<u64>) -> Nanos {
        stall::patience_between(self.length_bytes().max(WRITE_BYTES), rate_bps)
    }

    fn length_bytes(&self) -> u64 {
        self.header.length.map_or(WRITE_BYTES, u64::from)
    }

    fn send(&self, stream: TcpStream) -> Result<()> {
        let limits = self.shared.server.options.limits;
        let end = stream.try_clone().map_err(FlowError::io("send"))?;
        let asked = self.header.rate_bps.unwrap_or(u64::MAX);
        let rate = Some(asked.min(self.header.share_of(limits.rate))).filter(|&rate| rate < u64::MAX);
        let (longest, bytes) = match self.header.amount {
            Amount::Time(time) => (time.min(limits.duration), None),
            Amount::Bytes(bytes) => (limits.duration, Some(bytes)),
        };
        let length_bytes = self.length_bytes();
        let watched = self.activity.watch();
        let meter = watched.meter();
        if self.header.trip_times {
            let plan = bursts::Plan { burst_bytes: length_bytes, longest, bytes, rate_bps: rate };
            let sent = bursts::send(stream, &self.header, &plan, self.shared.server.ending(), meter);
            self.shared.server.counters.add_sent(meter.bytes());
            return sent;
        }
        let plan = SendPlan {
            length_bytes,
            longest,
            bytes,
            rate_bps: rate,
            whole_writes: false,
            interval: INTERVAL,
            zerocopy: Zerocopy::Auto,
            patterned: false,
            application: Application::default(),
            crew: Crew::alone(),
        };
        let sent =
            stall::guard_by(RARE_LOOK, meter, self.shared.server.ending(), self.patience(rate), |stop| {
                send::over(vec![stream], &plan, stop, meter)
            });
        self.shared.server.counters.add_sent(sent.as_ref().map_or_else(|_| meter.bytes(), |sent| sent.bytes));
        // The other half of the connection may still be read.
        let _ = end.shutdown(Shutdown::Write);
        sent.map(drop)
    }

    /// Connects to the client's listener, at its own address, and sends.
    fn send_back(&self) -> Result<()> {
        let mut to = self.peer;
        to.set_port(self.header.port);
        let until = Instant::now() + BACK_DEADLINE;
        let stream = loop {
            match socket::connect(to, &TcpOptions::default(), BACK_DEADLINE) {
                Ok(stream) => break stream,
                Err(error) if Instant::now() >= until || self.shared.server.is_ending() => {
                    return Err(error.into());
                }
                Err(_) => std::thread::sleep(Duration::from_millis(100)),
            }
        };
        self.send(stream)
    }
}
