//! The server's end of one flow: waits for its streams, for the word to begin, and for somebody to take the outcome.

use std::net::{SocketAddr, TcpStream};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use bdp_model::units::{Nanos, Rate};
use bdp_sys::socket::TcpOptions;
use bdp_wire::control::Sent;
use bdp_wire::datagram::Opening;
use bdp_wire::session::{Answer, FlowOrder, Role};

use super::counters::Counters;
use super::datagrams;
use super::places::StreamPlaces;
use super::session::Answers;
use bdp_flow::crew::{self, Crew};
use bdp_flow::datagram::{self, Layout, Stream};
use bdp_flow::error::EngineError;
use bdp_flow::meter::Meter;
use bdp_flow::receive::{self, ReceivePlan};
use bdp_flow::send::{self, SendPlan};
use bdp_flow::stall;

/// How long streams may take to come, and the client to say the word.
const ARRIVAL_DEADLINE: Duration = Duration::from_secs(30);
/// How long a receiver waits for the first byte, and a sender for the receiver to end the flow.
const PATIENCE: Nanos = Nanos::secs(15);
/// How long the outcome waits for the client, which asks for it as soon as the flow has begun.
const COLLECT_DEADLINE: Duration = Duration::from_secs(15);

/// One flow.
pub(super) struct Flow {
    order: FlowOrder,
    /// The most that the server sends, all streams together.
    rate: Option<Rate>,
    state: Mutex<State>,
    changed: Condvar,
    counters: Arc<Counters>,
    stop: AtomicBool,
    over: AtomicBool,
}

struct State {
    streams: Vec<Option<TcpStream>>,
    /// Of a flow of datagrams instead.
    datagrams: Vec<Option<Stream>>,
    missing: usize,
    /// Requests that wait for their answer.
    begin: Option<u64>,
    collect: Option<u64>,
    /// Why a stream could not be taken in.
    failure: Option<String>,
    /// The session is over: nobody will ask any more.
    abandoned: bool,
}

impl Flow {
    /// Starts the flow's thread.
    pub(super) fn prepare(
        order: FlowOrder,
        answers: Arc<Answers>,
        rate: Option<Rate>,
        places: StreamPlaces,
        counters: Arc<Counters>,
    ) -> Result<Arc<Self>, EngineError> {
        let count = order.streams as usize;
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
            let outcome = on_thread.live(&answers);
            // Before the client has the outcome and leaves: that is no flight from a running flow.
            on_thread.over.store(true, Ordering::Relaxed);
            on_thread.state().streams.clear();
            drop(places);
            on_thread.state().datagrams.clear();
            if let Some((id, outcome)) = outcome {
                let stalled = outcome.as_ref().err().filter(|e| matches!(e, EngineError::Stalled { .. }));
                let why = stalled.map(ToString::to_string);
                answers.give(id, outcome);
                // Nobody is there to be served any longer.
                if let Some(why) = why {
                    answers.give_up(why);
                }
            }
        })?;
        Ok(flow)
    }

    pub(super) fn duration(&self) -> Nanos {
        self.order.duration
    }

    pub(super) fn is_over(&self) -> bool {
        self.over.load(Ordering::Relaxed)
    }

    /// Puts a stream in its place, with the flow's options.
    pub(super) fn take_stream(&self, index: u32, stream: TcpStream) -> Result<(), String> {
        let options = TcpOptions {
            congestion: self.order.congestion.clone().filter(|_| self.order.role == Role::Send),
            nodelay: self.order.nodelay,
            receive_buffer: self.order.socket_buffer_bytes.map(|b| b as usize),
            send_buffer: self.order.socket_buffer_bytes.map(|b| b as usize),
            window_bytes: self.window(),
            dscp: self.order.dscp,
            ..Default::default()
        };
        let mut state = self.state();
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
            _ => Err(format!("flow {} has no place for stream {index}", self.order.flow)),
        }
    }

    /// Puts a stream of datagrams in its place; one that has it already keeps it.
    pub(super) fn take_datagrams(
        &self,
        opening: &Opening,
        local: SocketAddr,
        peer: SocketAddr,
    ) -> Result<(), String> {
        let mut state = self.state();
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
            _ => Err(format!("flow {} has no place for stream {}", self.order.flow, opening.stream)),
        }
    }

    /// Answers `id` when the flow has begun.
    pub(super) fn begin(&self, id: u64) {
        self.state().begin = Some(id);
        self.changed.notify_all();
    }

    /// Answers `id` with the outcome.
    pub(super) fn collect(&self, id: u64) {
        self.state().collect = Some(id);
        self.changed.notify_all();
    }

    /// Ends the flow now.
    pub(super) fn stop(&self) {
        self.stop.store(true, Ordering::Relaxed);
    }

    /// Ends the flow and lets its outcome go.
    pub(super) fn abandon(&self) {
        self.stop();
        self.state().abandoned = true;
        self.changed.notify_all();
    }

    fn window(&self) -> Option<u32> {
        let window = self.order.window_bytes.filter(|_| self.order.role == Role::Receive)?;
        Some(u32::try_from(window).unwrap_or(u32::MAX))
    }

    /// The flow from its streams' arrival to its outcome, with the request that waits for that.
    fn live(&self, answers: &Answers) -> Option<(u64, Result<Answer, EngineError>)> {
        let mut state = self.wait(ARRIVAL_DEADLINE, |state| {
            (state.missing == 0 || state.failure.is_some()) && state.begin.is_some()
        });
        let (begin, missing, failure) = (state.begin, state.missing, state.failure.take());
        drop(state);
        if missing > 0 || begin.is_none() {
            if let Some(id) = begin {
                let why = failure.map_or_else(|| self.incomplete(missing), EngineError::Refused);
                answers.give(id, Err(why));
            }
            return None;
        }
        let streams: Vec<TcpStream> = self.state().streams.drain(..).flatten().collect();
        if let Some(id) = begin {
            answers.give(id, Ok(Answer::Done));
        }
        let meter = Meter::default();
        let outcome = match self.order.datagrams {
            Some(_) => self.run_datagrams(&meter),
            None => self.run(streams, &meter),
        };
        match (&outcome, self.order.role) {
            (Ok(Answer::Received(received)), _) => self.counters.add_received(received.bytes),
            (Ok(Answer::Sent(sent)), _) => self.counters.add_sent(sent.bytes),
            // What was shown before it failed.
            (_, Role::Receive) => self.counters.add_received(meter.bytes()),
            (_, Role::Send) => self.counters.add_sent(meter.bytes()),
        }
        let collect = self.wait(COLLECT_DEADLINE, |state| state.collect.is_some()).collect?;
        Some((collect, outcome))
    }

    fn incomplete(&self, missing: usize) -> EngineError {
        let count = self.order.streams as usize;
        EngineError::Deadline(format!(
            "{} of {count} connections came within {}; a NAT or firewall may hold so many back",
            count - missing,
            Nanos::from(ARRIVAL_DEADLINE)
        ))
    }

    fn run(&self, streams: Vec<TcpStream>, meter: &Meter) -> Result<Answer, EngineError> {
        let crew = Crew::listed(streams.len(), self.order.cpus.as_ref());
        match self.order.role {
            Role::Receive => {
                let plan = ReceivePlan {
                    duration: self.order.duration,
                    omit: self.order.omit,
                    interval: self.order.interval,
                    patience: PATIENCE,
                    window_bytes: self.window(),
                    coalesce: self.order.window_bytes.is_none() && self.order.socket_buffer_bytes.is_none(),
                    check: self.order.check_payload,
                    crew,
                };
                let patience = stall::patience(plan.interval, self.order.pacing_bps);
                stall::guard(meter, &self.stop, patience, |stop| receive::over(streams, &plan, stop, meter))
                    .map(Answer::Received)
            }
            Role::Send => {
                let rate_bps = self.stream_rate(streams.len());
                let pacing_bps = rate_bps.filter(|_| self.order.pacing_bps.is_some());
                let plan = SendPlan {
                    length_bytes: self.order.length_bytes,
                    longest: self.order.duration + PATIENCE,
                    bytes: self.order.bytes,
                    rate_bps,
                    whole_writes: false,
                    interval: self.order.interval,
                    zerocopy: self.order.zerocopy,
                    patterned: self.order.check_payload,
                    crew,
                };
                let patience = stall::patience(plan.interval, pacing_bps);
                let sent = stall::guard(meter, &self.stop, patience, |stop| {
                    send::over(streams, &plan, stop, meter)
                })?;
                Ok(Answer::Sent(Sent { pacing_bps, ..sent }))
            }
        }
    }

    /// What each of so many streams is held to: what was asked for, and no more than its share of what the server may send.
    fn stream_rate(&self, streams: usize) -> Option<u64> {
        let granted = self.rate.map(|rate| rate.as_bps() / streams.max(1) as u64);
        self.order.pacing_bps.into_iter().chain(granted).min()
    }

    fn run_datagrams(&self, meter: &Meter) -> Result<Answer, EngineError> {
        crew::keep_to_listed(self.order.cpus.as_ref())?;
        let streams: Vec<Stream> = self.state().datagrams.drain(..).flatten().collect();
        match self.order.role {
            Role::Receive => {
                let plan = datagrams::receive_plan(&self.order, PATIENCE);
                let rate_bps = self.order.datagrams.as_ref().and_then(|datagrams| datagrams.rate_bps);
                let patience = stall::patience(plan.interval, rate_bps);
                stall::guard(meter, &self.stop, patience, |stop| {
                    datagram::receive::over(streams, &plan, stop, meter)
                })
                .map(Answer::Received)
            }
            Role::Send => {
                let plan = datagrams::send_plan(&self.order, &streams);
                datagram::send::over(streams, &plan, &self.stop, meter).map(Answer::Sent)
            }
        }
    }

    /// Waits for a condition, the deadline, or the session's end, whichever is first.
    fn wait(&self, deadline: Duration, done: impl Fn(&State) -> bool) -> MutexGuard<'_, State> {
        let until = Instant::now() + deadline;
        let mut state = self.state();
        while !done(&state) && !state.abandoned {
            let left = until.saturating_duration_since(Instant::now());
            if left.is_zero() {
                break;
            }
            state = self.changed.wait_timeout(state, left).unwrap_or_else(PoisonError::into_inner).0;
        }
        state
    }

    fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
