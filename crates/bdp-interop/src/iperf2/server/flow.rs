//! One iperf2 flow of datagrams, on a thread of its own: received, and reported at its end; or sent.

use std::io::ErrorKind;
use std::net::UdpSocket;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

use bdp_model::units::Nanos;
use bdp_sys::udp::{Train, TrainReceiver};
use bdp_sys::{clock, process};
use bdp_wire::iperf2::{Amount, REPORT_BYTES, STAMP_BYTES, Stamp, Tally, TestHeader, datagram_header};

use bdp_agent::server::places::Watched;

use super::shared::{Membership, Shared, VERSION};
use bdp_flow::datagram::{CHECK, DatagramSendPlan, Layout, ReportSlot, Stream, send};
use bdp_flow::error::{FlowError, Result};
use bdp_flow::meter::Meter;
use bdp_flow::stall;

/// How long a flow of a single datagram may be silent before it is dropped; others, as long as any flow.
const SILENCE_OF_ONE: Duration = Duration::from_secs(3);
/// How long the client's socket may seem to be none: it is being opened.
const REFUSALS: Duration = Duration::from_secs(1);
/// How long its report is given again, once it has ended.
const FAREWELL: Duration = Duration::from_secs(3);
/// How much longer than is granted a client may send.
const SLACK: Nanos = Nanos::secs(15);
/// Default rate of a sender, bit/s, and its payload: iperf2's defaults.
const RATE_BPS: u64 = 1 << 20;
const PAYLOAD_BYTES: u32 = 1470;
/// How often the end of a flow that the server sends is announced, and how far apart.
const ENDS: i64 = 3;
const END_GAP: Duration = Duration::from_millis(20);

/// A datagram as received.
pub(super) struct Arrivals {
    pub(super) stamp: Stamp,
    bytes: usize,
    arrived_us: u64,
}

impl Arrivals {
    /// Reads a datagram's number; `None` if it is too short.
    pub(super) fn read(datagram: &[u8], wide: bool, arrived_unix_ns: Option<u64>) -> Option<Self> {
        // Versions with 32-bit numbers have the same stamp without the last word.
        let stamp = Stamp::decode(datagram, wide)?;
        let arrived_us = arrived_unix_ns.unwrap_or_else(clock::unix_ns) / 1000;
        (datagram.len() >= STAMP_BYTES).then_some(Self { stamp, bytes: datagram.len(), arrived_us })
    }
}

/// Receives from one client's socket.
pub(super) struct Flow {
    pub(super) wide: bool,
    shared: Arc<Shared>,
    socket: UdpSocket,
    wants_report: bool,
    /// How long it may be silent.
    patience: Duration,
    tally: Tally,
    began: Instant,
    last: Instant,
    heard_bytes: u64,
    told_bytes: u64,
    member: Option<Membership>,
    /// Its meter.
    watched: Watched,
    /// Stops sending over the same socket: this half notices that the client has gone.
    sender: Option<Arc<AtomicBool>>,
}

impl Flow {
    pub(super) fn new(
        shared: Arc<Shared>,
        socket: UdpSocket,
        member: Membership,
        header: Option<&TestHeader>,
        sender: Option<Arc<AtomicBool>>,
    ) -> Self {
        let bytes = header.and_then(|header| header.length).unwrap_or(PAYLOAD_BYTES);
        let patience = stall::patience_between(bytes.into(), header.and_then(|header| header.rate_bps));
        Self {
            wide: header.is_some_and(|header| header.wide_numbers),
            shared,
            socket,
            wants_report: header.is_none_or(|header| !header.no_report),
            patience: patience.to_duration(),
            tally: Tally::default(),
            began: Instant::now(),
            last: Instant::now(),
            heard_bytes: 0,
            told_bytes: 0,
            watched: member.activity.watch(),
            member: Some(member),
            sender,
        }
    }

    /// Receives on a thread, beginning with datagrams that arrived before; the returned flag is set when it is over.
    pub(super) fn start(mut self: Box<Self>, came: Vec<Arrivals>) -> Arc<AtomicBool> {
        let over = Arc::new(AtomicBool::new(false));
        let on_thread = Arc::clone(&over);
        let started = bdp_flow::worker::start(move || {
            if let (Err(error), Some(member)) = (self.run(came), &self.member) {
                member.note(error.to_string());
            }
            self.shared.server.counters.add_received(self.tally.bytes());
            // Whose client has ended its half may still be sent the other.
            if !self.tally.has_ended() {
                self.end_sender();
            }
            on_thread.store(true, Ordering::Relaxed);
        });
        // Without a thread the flow is dropped, and with it its place.
        if started.is_err() {
            over.store(true, Ordering::Relaxed);
        }
        over
    }

    fn run(&mut self, came: Vec<Arrivals>) -> Result<()> {
        process::sharpen_timers();
        let socket = self.socket.try_clone().map_err(FlowError::io("serve an iperf2 client"))?;
        let mut receiver = TrainReceiver::new(socket, CHECK)?;
        came.iter().for_each(|came| self.take(came));
        let longest = (self.shared.server.options.limits.duration + SLACK).to_duration();
        let activity = self.member.as_ref().map(|member| Arc::clone(&member.activity));
        while !self.shared.server.is_ending()
            && !activity.as_ref().is_some_and(|activity| activity.is_evicted())
        {
            match receiver.receive(|train| self.take_train(&train)) {
                Ok(()) => {}
                Err(e) if matches!(e.kind(), ErrorKind::WouldBlock | ErrorKind::Interrupted) => {}
                // An error about an earlier report says nothing about what the client will send; sending to it fails
                // the same way.
                Err(e) if e.kind() == ErrorKind::ConnectionRefused => {
                    if self.began.elapsed() > REFUSALS {
                        self.end_sender();
                    }
                }
                Err(e) => return Err(FlowError::io("receive a datagram")(e)),
            }
            let patience = match &self.tally {
                tally if tally.has_ended() => FAREWELL,
                tally if tally.datagrams() <= 1 => SILENCE_OF_ONE,
                _ => self.patience,
            };
            if self.last.elapsed() >= patience {
                if let Some(member) = &self.member {
                    member.note(format!("silent for {}", Nanos::from(patience)));
                }
                return Ok(());
            }
            // Its place is taken for as long as it continues: nobody gets another by it.
            if let Some(member) = self.member.as_ref().filter(|_| self.began.elapsed() > longest) {
                member.note("it sent for longer than allowed (--max-duration)");
                self.wants_report = false;
            }
        }
        Ok(())
    }

    fn end_sender(&self) {
        if let Some(sender) = &self.sender {
            sender.store(true, Ordering::Relaxed);
        }
    }

    fn take_train(&mut self, train: &Train<'_>) {
        for datagram in train.bytes.chunks(train.datagram_bytes) {
            if let Some(came) = Arrivals::read(datagram, self.wide, train.arrived_unix_ns) {
                self.take(&came);
            }
        }
    }

    fn take(&mut self, came: &Arrivals) {
        // A client's answer to the end of a flow that it received has no number.
        if came.stamp.number == 0 && came.bytes == REPORT_BYTES {
            return;
        }
        // One datagram may be forged, and the last. From the second on, its stream keeps the place.
        if let Some(member) = self.member.as_ref().filter(|_| self.tally.datagrams() == 1) {
            member.activity.note_heard();
        }
        self.last = Instant::now();
        self.watched.meter().set(self.heard_bytes);
        self.heard_bytes += came.bytes as u64;
        self.tally.take(&came.stamp, came.bytes, came.arrived_us);
        if came.stamp.number >= 0 {
            return;
        }
        self.member = None;
        // The address may be forged: no more bytes are sent to it than came from it.
        let affordable = self.told_bytes + REPORT_BYTES as u64 <= self.heard_bytes;
        if self.wants_report && affordable {
            // Without a number, so that a client that receives too takes it for no datagram of the flow.
            let report = self.tally.report().encode(&[0; STAMP_BYTES]);
            if self.socket.send(&report).is_ok() {
                self.told_bytes += REPORT_BYTES as u64;
            }
        }
    }

    /// Sends on a thread, as the header says, until done, the server stops or `stop` is set; the returned flag is set
    /// when it is over.
    pub(super) fn start_sending(
        shared: &Arc<Shared>,
        socket: &UdpSocket,
        header: TestHeader,
        member: Membership,
        stop: Option<Arc<AtomicBool>>,
    ) -> Arc<AtomicBool> {
        let over = Arc::new(AtomicBool::new(false));
        let (shared, on_thread) = (Arc::clone(shared), Arc::clone(&over));
        let started =
            socket.try_clone().map_err(FlowError::io("serve an iperf2 client")).and_then(|socket| {
                bdp_flow::worker::start(move || {
                    let stop = stop.as_deref().unwrap_or(shared.server.ending());
                    if let Err(error) = send(&socket, &shared, &header, stop) {
                        member.note(error.to_string());
                    }
                    drop(member);
                    on_thread.store(true, Ordering::Relaxed);
                })
            });
        if started.is_err() {
            over.store(true, Ordering::Relaxed);
        }
        over
    }
}

/// Sends datagrams at the rate that the client named, for as long.
fn send(socket: &UdpSocket, shared: &Shared, header: &TestHeader, stop: &AtomicBool) -> Result<()> {
    let limits = shared.server.options.limits;
    let default_rate = (header.version.is_none()).then_some(RATE_BPS);
    let most = limits.rate.map(|rate| header.share_of(Some(rate)));
    let asked = header.rate_bps.or(default_rate);
    let (duration, bytes) = match header.amount {
        Amount::Time(time) => (time.min(limits.duration), None),
        Amount::Bytes(bytes) => (limits.duration, Some(bytes)),
    };
    let plan = DatagramSendPlan {
        payload_bytes: Some(header.length.unwrap_or(PAYLOAD_BYTES)),
        rate_bps: asked.map_or(most, |asked| Some(most.map_or(asked, |most| asked.min(most)).max(1))),
        duration,
        omit: Nanos::ZERO,
        bytes,
    };
    // Nobody else reads the bytes after the stamp.
    let announced = header.trip_times.then(|| datagram_header(header, VERSION, clock::unix_ns() / 1000));
    let announced = announced.unwrap_or_default();
    let layout = Layout::Iperf2 { header: announced, delay: Duration::ZERO, report: ReportSlot::default() };
    let cloned = socket.try_clone().map_err(FlowError::io("serve an iperf2 client"))?;
    let streams = vec![Stream { socket: cloned, layout }];
    let (sent, tallies) = send::each_over(streams, &plan, stop, &Meter::default())?;
    shared.server.counters.add_sent(sent.bytes);
    let length = sent.datagrams.map_or(STAMP_BYTES as u64, |datagrams| datagrams.payload_bytes);
    let mut last = vec![0; (length as usize).max(STAMP_BYTES)];
    for end in 0..ENDS {
        let number = -(tallies.iter().map(|t| t.datagrams).sum::<u64>() as i64 + 1 + end);
        let stamp = Stamp { number, sent_us: clock::unix_ns() / 1000 };
        last[..STAMP_BYTES].copy_from_slice(&stamp.encode());
        // Lost as any datagram may be.
        let _ = socket.send(&last);
        std::thread::sleep(END_GAP);
    }
    Ok(())
}
