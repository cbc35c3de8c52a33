//! An agent's end of one flow: waits for its streams, for the request to begin, and for the outcome to be collected.

use std::net::{SocketAddr, TcpStream};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Condvar, Mutex, MutexGuard};
use std::time::{Duration, Instant};

use bdp_model::flow::method::EndReason;
use bdp_model::record::ReceiverSample;
use bdp_model::units::{Nanos, Rate};
use bdp_sys::socket::TcpOptions;
use bdp_sys::{clock, process};
use bdp_wire::control::{Answer, FlowOrder, Mark, Received, Role, Sent, StreamSource};
use bdp_wire::datagram::Opening;

use super::counters::Counters;
use super::datagrams;
use super::places::{MemoryHold, StreamPlaces};
use crate::answers::Answers;
use crate::streams::{self, Listening};
use bdp_flow::crew::{self, Crew};
use bdp_flow::datagram::{self, Layout, Stream};
use bdp_flow::error::{FlowError, Result};
use bdp_flow::lock::{self, lock};
use bdp_flow::meter::Meter;
use bdp_flow::pause::wait_until;
use bdp_flow::receive::{self, ReceivePlan};
use bdp_flow::send::{self, SendPlan};
use bdp_flow::session::options;
use bdp_flow::stall;
use bdp_flow::streams::Streams;

/// How long streams may take to arrive, and the client to ask to begin.
const ARRIVAL_DEADLINE: Duration = Duration::from_secs(30);
/// How long a receiver waits for the first byte, and a sender for the receiver to end the flow.
const PATIENCE: Nanos = Nanos::secs(15);
/// How long the outcome waits for the client, which asks for it as soon as the flow has begun.
const COLLECT_DEADLINE: Duration = Duration::from_secs(15);

/// Terms of a flow in addition to its order; none by default, as between hosts of one owner.
#[derive(Default)]
pub(crate) struct Terms {
    /// Highest send rate of this end, all streams together.
    pub(crate) rate: Option<Rate>,
    /// The counters that its bytes are added to.
    pub(crate) counters: Arc<Counters>,
    /// Released when the flow is over.
    pub(crate) places: Option<StreamPlaces>,
    /// Released when the client has the outcome.
    pub(crate) memory: Option<MemoryHold>,
}

/// One flow.
pub(crate) struct Flow {
    order: FlowOrder,
    rate: Option<Rate>,
    state: Mutex<State>,
    changed: Condvar,
    counters: Arc<Counters>,
    stop: AtomicBool,
    over: AtomicBool,
}

struct State {
    streams: Vec<Option<TcpStream>>,
    /// Streams of a flow of datagrams.
    datagrams: Vec<Option<Stream>>,
    missing: usize,
    /// Requests that wait for their answer.
    begin: Option<u64>,
    collect: Option<u64>,
    /// Why a stream could not be accepted.
    failure: Option<String>,
    /// The session is over: nobody will ask any more.
    abandoned: bool,
}

impl Flow {
    /// Starts the flow's thread; returns the answer.
    pub(crate) fn prepare(
        order: FlowOrder,
        answers: Arc<Answers>,
        terms: Terms,
    ) -> Result<(Arc<Self>, Answer)> {
        let Terms { rate, counters, places, memory } = terms;
        let meter = places.as_ref().map_or_else(Arc::default, |places| Arc::clone(places.meter()));
        let listening = match order.source {
            StreamSource::Listen { address, patience, tcp_rmem_bytes } => {
                Some(Listening::open(&order, address, patience, tcp_rmem_bytes)?)
            }
            _ => None,
        };
        let answer = listening.as_ref().map_or(Answer::Done, |at| Answer::Listening { port: at.port() });
        let count = order.spec.streams as usize;
        let state = State {
            streams: std::iter::repeat_with(|| None).take(count).collect(),
            datagrams: std::iter::repeat_with(|| None).take(count).collect(),
            missing: count,
            begin: None,
            collect: None,
            failure: None,
            abandoned: false,
        };
        let flow = Arc::new(Self {
            order,
            rate,
            state: Mutex::new(state),
            changed: Condvar::new(),
            counters,
            stop: AtomicBool::new(false),
            over: AtomicBool::new(false),
        });
        let on_thread = Arc::clone(&flow);
        bdp_flow::worker::start(move || {
            let outcome = on_thread.live(listening, &answers, &meter);
            // Before the client has the outcome and leaves: that is no flight from a running flow.
            on_thread.over.store(true, Ordering::Relaxed);
            lock(&on_thread.state).streams.clear();
            drop(places);
            lock(&on_thread.state).datagrams.clear();
            if let Some((id, outcome)) = outcome {
                let stalled = outcome.as_ref().err().filter(|e| matches!(e, FlowError::Stalled { .. }));
                let why = stalled.map(ToString::to_string);
                answers.give(id, outcome);
                drop(memory);
                // Nobody is left to be served.
                if let Some(why) = why {
                    answers.give_up(why);
                }
            }
        })?;
        Ok((flow, answer))
    }

    pub(crate) fn duration(&self) -> Nanos {
        self.order.spec.duration
    }

    pub(crate) fn is_over(&self) -> bool {
        self.over.load(Ordering::Relaxed)
    }

    /// Adds a stream at its index, with the flow's options.
    pub(crate) fn take_stream(&self, index: u32, stream: TcpStream) -> Result<(), String> {
        let (spec, receives) = (&self.order.spec, self.order.role == Role::Receive);
        // A connection that is open has its segment size.
        let options = TcpOptions { mss: None, ..options::of_flow(spec, !receives) };
        let mut state = lock(&self.state);
        match state.streams.get_mut(index as usize) {
            Some(place @ None) if self.order.datagrams.is_none() => {
                let applied = options.apply_to(&stream).map_err(|e| e.to_string());
                match &applied {
                    Ok(()) => {
                        *place = Some(stream);
                        state.missing -= 1;
                    }
                    Err(why) => state.failure = Some(why.clone()),
                }
                self.changed.notify_all();
                applied
            }
            _ => Err(format!("flow {} has no stream {index}", self.order.flow)),
        }
    }

    /// Adds a stream of datagrams at its index; keeps an existing one.
    pub(crate) fn take_datagrams(
        &self,
        opening: &Opening,
        local: SocketAddr,
        peer: SocketAddr,
    ) -> Result<(), String> {
        let mut state = lock(&self.state);
        match state.datagrams.get_mut(opening.stream as usize) {
            Some(place @ None) => match datagrams::connect(&self.order, opening, local, peer) {
                Ok(stream) => {
                    *place = Some(stream);
                    state.missing -= 1;
                    self.changed.notify_all();
                    Ok(())
                }
                Err(why) => {
                    state.failure = Some(why.clone());
                    self.changed.notify_all();
                    Err(why)
                }
            },
            Some(Some(stream)) if stream.layout == (Layout::Bdp { tag: opening.tag() }) => Ok(()),
            _ => Err(format!("flow {} has no stream {}", self.order.flow, opening.stream)),
        }
    }

    /// Answers `id` when the flow has begun.
    pub(crate) fn begin(&self, id: u64) {
        lock(&self.state).begin = Some(id);
        self.changed.notify_all();
    }

    /// Answers `id` with the outcome.
    pub(crate) fn collect(&self, id: u64) {
        lock(&self.state).collect = Some(id);
        self.changed.notify_all();
    }

    /// Stops the flow now.
    pub(crate) fn stop(&self) {
        self.stop.store(true, Ordering::Relaxed);
    }

    /// Stops the flow and discards its outcome.
    pub(crate) fn abandon(&self) {
        self.stop();
        lock(&self.state).abandoned = true;
        self.changed.notify_all();
    }

    /// The flow from its streams' arrival to its outcome, with the request that waits for that.
    fn live(
        &self,
        listening: Option<Listening>,
        answers: &Answers,
        meter: &Meter,
    ) -> Option<(u64, Result<Answer>)> {
        let streams = match (listening, &self.order.source) {
            // It begins by itself once they have arrived.
            (Some(listening), _) => listening.streams(&self.order, &self.stop).map(Some),
            (None, &StreamSource::Connect { to, start, patience }) => {
                let begin = self.wait(patience.to_duration(), |state| state.begin.is_some()).begin?;
                answers.give(begin, Ok(Answer::Done));
                self.connect(to, start, patience)
            }
            _ => Ok(Some(self.streams_of_session(answers)?)),
        };
        let outcome = streams.and_then(|streams| match streams {
            Some(streams) => self.run(streams, meter),
            None => Ok(Answer::Sent(Sent::default())),
        });
        match (&outcome, self.order.role) {
            (Ok(Answer::Received(received)), _) => self.counters.add_received(received.bytes),
            (Ok(Answer::Sent(sent)), _) => self.counters.add_sent(sent.bytes),
            // The bytes shown before it failed.
            (_, Role::Receive) => self.counters.add_received(meter.bytes()),
            (_, Role::Send) => self.counters.add_sent(meter.bytes()),
        }
        let collect = self.wait(COLLECT_DEADLINE, |state| state.collect.is_some()).collect?;
        Some((collect, outcome))
    }

    /// Returns the streams that the client has opened, once it has asked to begin, which is answered.
    fn streams_of_session(&self, answers: &Answers) -> Option<Streams> {
        let mut state = self.wait(ARRIVAL_DEADLINE, |state| {
            (state.missing == 0 || state.failure.is_some()) && state.begin.is_some()
        });
        let (begin, missing, failure) = (state.begin?, state.missing, state.failure.take());
        if missing > 0 {
            drop(state);
            let why = failure.map_or_else(|| self.incomplete(missing), FlowError::Refused);
            answers.give(begin, Err(why));
            return None;
        }
        let streams = match self.order.datagrams {
            Some(_) => Streams::Datagrams(state.datagrams.drain(..).flatten().collect()),
            None => Streams::Connections(state.streams.drain(..).flatten().collect()),
        };
        drop(state);
        answers.give(begin, Ok(Answer::Done));
        Some(streams)
    }

    /// Returns streams connected at the start time; `None` if the flow was stopped before.
    fn connect(&self, to: SocketAddr, start: Nanos, patience: Nanos) -> Result<Option<Streams>> {
        process::sharpen_timers();
        match wait_until(clock::monotonic_ns() + start.as_ns(), &self.stop) {
            true => streams::connect(&self.order, to, patience).map(Some),
            false => Ok(None),
        }
    }

    fn incomplete(&self, missing: usize) -> FlowError {
        let count = self.order.spec.streams as usize;
        FlowError::Deadline(format!(
            "only {} of {count} connections arrived within {}; a NAT or firewall may limit them",
            count - missing,
            Nanos::from(ARRIVAL_DEADLINE)
        ))
    }

    fn run(&self, streams: Streams, meter: &Meter) -> Result<Answer> {
        match (streams, self.order.role) {
            (Streams::Connections(streams), Role::Receive) => {
                let plan = self.receive_plan(streams.len());
                let patience = stall::patience(plan.interval, self.order.spec.pacing_bps);
                let received = self.guard(meter, patience, |stop| receive::over(streams, &plan, stop, meter));
                match received {
                    // A path that carries the handshake but no segment, such as a black hole, has still been
                    // measured.
                    Err(FlowError::Silence { within }) if !self.is_session() => {
                        Ok(Answer::Received(nothing_within(within, &self.order)))
                    }
                    received => received.map(Answer::Received),
                }
            }
            (Streams::Connections(streams), Role::Send) => {
                let plan = self.send_plan(streams.len());
                let pacing_bps = plan.rate_bps.filter(|_| self.order.spec.pacing_bps.is_some());
                let patience = stall::patience(plan.interval, pacing_bps);
                let sent = self.guard(meter, patience, |stop| send::over(streams, &plan, stop, meter))?;
                Ok(Answer::Sent(Sent { pacing_bps, ..sent }))
            }
            (Streams::Datagrams(streams), Role::Receive) => {
                crew::keep_to_listed(self.order.cpus.as_ref())?;
                let first = match self.order.source {
                    StreamSource::Listen { patience, .. } => patience,
                    _ => PATIENCE,
                };
                let plan = datagrams::receive_plan(&self.order, first);
                let rate_bps = self.order.datagrams.as_ref().and_then(|datagrams| datagrams.rate_bps);
                let patience = stall::patience(plan.interval, rate_bps);
                let received =
                    self.guard(meter, patience, |stop| datagram::receive::over(streams, &plan, stop, meter));
                received.map(Answer::Received)
            }
            (Streams::Datagrams(streams), Role::Send) => {
                crew::keep_to_listed(self.order.cpus.as_ref())?;
                let plan = datagrams::send_plan(&self.order, &streams);
                datagram::send::over(streams, &plan, &self.stop, meter).map(Answer::Sent)
            }
        }
    }

    /// Ends the work of a client's flow that stands still. Between hosts of one owner a path may be as bad as it likes.
    fn guard<T>(
        &self,
        meter: &Meter,
        longest: Nanos,
        work: impl FnOnce(&AtomicBool) -> Result<T>,
    ) -> Result<T> {
        match self.is_session() {
            true => stall::guard(meter, &self.stop, longest, work),
            false => work(&self.stop),
        }
    }

    fn is_session(&self) -> bool {
        self.order.source.is_session()
    }

    fn receive_plan(&self, streams: usize) -> ReceivePlan {
        let patience = if self.is_session() { PATIENCE } else { self.order.spec.duration };
        let plan = ReceivePlan::of(&self.order.spec, patience, self.crew(streams));
        ReceivePlan { coalesce: self.is_session() && plan.coalesce, ..plan }
    }

    fn send_plan(&self, streams: usize) -> SendPlan {
        let patience = match self.order.source {
            StreamSource::Connect { patience, .. } => patience,
            _ => PATIENCE,
        };
        let plan = SendPlan::of(&self.order.spec, patience, self.crew(streams));
        SendPlan { rate_bps: self.stream_rate(streams), ..plan }
    }

    /// Returns a thread for each stream of a client; one thread if hosts share the machine.
    fn crew(&self, streams: usize) -> Crew {
        match self.is_session() {
            true => Crew::listed(streams, self.order.cpus.as_ref()),
            false => Crew::alone(),
        }
    }

    /// Returns each stream's rate limit: as requested, but no more than its share of the server's limit.
    fn stream_rate(&self, streams: usize) -> Option<u64> {
        let granted = self.rate.map(|rate| rate.as_bps() / streams.max(1) as u64);
        self.order.spec.pacing_bps.into_iter().chain(granted).min()
    }

    /// Waits for a condition, the deadline, or the session's end, whichever is first.
    fn wait(&self, deadline: Duration, done: impl Fn(&State) -> bool) -> MutexGuard<'_, State> {
        let until = Instant::now() + deadline;
        let mut state = lock(&self.state);
        while !done(&state) && !state.abandoned {
            let left = until.saturating_duration_since(Instant::now());
            if left.is_zero() {
                break;
            }
            state = lock::wait(&self.changed, state, left);
        }
        state
    }
}

/// Returns the outcome of a flow without a single byte.
fn nothing_within(duration: Nanos, order: &FlowOrder) -> Received {
    let ends = |at_ns| ReceiverSample { at_ns, ..Default::default() };
    Received {
        duration_ns: duration.as_ns(),
        counted_from: Mark { at_ns: order.spec.omit.as_ns(), bytes: 0 },
        stream_bytes: vec![0; order.spec.streams as usize],
        samples: vec![ends(0), ends(duration.as_ns())],
        ended: EndReason::Silence,
        ..Default::default()
    }
}
