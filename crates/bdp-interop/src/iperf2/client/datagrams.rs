//! The datagrams of a round, each direction over its own sockets. Sent datagrams carry the header of the test; a
//! negated number ends them, repeated until the server has reported what it received. Received ones are requested
//! with one datagram with that header.

use std::io::ErrorKind;
use std::net::{SocketAddr, UdpSocket};
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

use bdp_model::flow::method::{EndReason, ReceiveMethod};
use bdp_model::flow::udp::UdpRequest;
use bdp_model::measurement::{Direction, MeasureRequest};
use bdp_model::record::ReceiverSample;
use bdp_model::statistics::arrivals::ArrivalCounts;
use bdp_model::units::Nanos;
use bdp_sys::clock;
use bdp_sys::poll::{Interest, Poll};
use bdp_wire::control::{DatagramsReceived, DatagramsSent, Received, Sent};
use bdp_wire::iperf2::{self, Amount, STAMP_BYTES, ServerReport, Stamp, TestHeader};

use bdp_flow::datagram::{
    DatagramReceivePlan, DatagramSendPlan, Layout, ReportSlot, Stream, payload_bytes, receive, send,
};
use bdp_flow::error::FlowError;
use bdp_flow::meter::Meter;
use bdp_flow::session::datagrams;
use bdp_flow::session::error::{Result, SessionError};
use bdp_flow::stall;

/// Interval of retries without an answer.
const AGAIN: Duration = Duration::from_millis(100);
/// How long the server may take to send a first datagram, and to report at the end.
const PATIENCE: Duration = Duration::from_secs(10);
/// Time limit after an interruption, when a second signal would end it at once.
const CONCLUSION: Duration = Duration::from_secs(3);
/// How long refusals count as passing: the server has no socket for others while it takes one in.
const REFUSALS: Duration = Duration::from_secs(1);
/// How long the server may have no socket for others after it has accepted one, and how soon a refusal arrives.
const LISTENER: Duration = Duration::from_secs(3);
const ANSWER: Duration = Duration::from_millis(50);
/// Longest wait before answers and the stop flag are looked at.
const LOOK_NS: u64 = 20_000_000;
/// Delay between the starts of streams: the server counts first datagrams that wait together as one flow.
const STAGGER: Duration = Duration::from_millis(20);
/// Payload that fits a packet of 1500 bytes, over IPv4 and IPv6, as in iperf2; its server reads no more of a datagram
/// unless it was started with a larger length.
const PAYLOAD_V4: u32 = 1470;
const PAYLOAD_V6: u32 = 1450;

/// Refuses options that iperf2's protocol cannot express.
pub(super) fn check(request: &MeasureRequest, udp: &UdpRequest) -> Result<()> {
    let wrong = |text: &str| Err(SessionError::Request(text.to_owned()));
    let to = request.bidirectional || request.directions.contains(&Direction::To);
    let from = request.bidirectional || request.directions.contains(&Direction::From);
    if to && request.spec.omit > Nanos::ZERO {
        return wrong("an iperf2 server counts all datagrams that it receives; omit -O, or measure only -R");
    }
    if from && request.spec.bytes.is_some_and(|b| b.as_bytes() >= 1 << 31) {
        return wrong("iperf2 sends less than 2 GiB if a number of bytes is given; give a duration, -t");
    }
    if from && udp.datagram_bytes.is_some_and(|bytes| bytes > PAYLOAD_V4) {
        return wrong(
            "an iperf2 server may crash when it sends datagrams of more than 1470 bytes; set a smaller \
             -l, or measure only --forward",
        );
    }
    Ok(())
}

/// The sockets of one direction, and their messages.
pub(super) struct Flow {
    address: SocketAddr,
    way: Direction,
    request: MeasureRequest,
    sockets: Vec<(UdpSocket, ReportSlot)>,
    payload_bytes: usize,
    /// The header that announces the test, which each datagram carries.
    header: Vec<u8>,
    borne: Vec<u8>,
}

impl Flow {
    pub(super) fn open(address: SocketAddr, way: Direction, request: &MeasureRequest) -> Result<Self> {
        let spec = &request.spec;
        let udp = spec.udp.as_ref();
        // Each direction has its own ports, so that nothing late is mistaken for what is next.
        let behind = if way == Direction::From { spec.streams } else { 0 };
        let first_port = request.client_port.map(|port| u32::from(port) + behind);
        let sockets = datagrams::sockets(request, address, way, spec.streams, first_port)?;
        let bare =
            Layout::Iperf2 { header: Vec::new(), delay: Duration::ZERO, report: ReportSlot::default() };
        let usual = if address.is_ipv4() { PAYLOAD_V4 } else { PAYLOAD_V6 } as usize;
        let payload_bytes = match (udp.and_then(|udp| udp.datagram_bytes), sockets.first()) {
            (asked @ Some(_), Some(socket)) => payload_bytes(asked, &bare, socket),
            (None, Some(socket)) => payload_bytes(None, &bare, socket).min(usual),
            (_, None) => usual,
        };
        let header = TestHeader {
            reverse: way == Direction::From,
            streams: spec.streams,
            port: request.port,
            length: u32::try_from(payload_bytes).ok(),
            amount: match spec.bytes {
                Some(bytes) => Amount::Bytes(bytes.as_bytes() / u64::from(spec.streams.max(1))),
                None => Amount::Time(spec.duration),
            },
            rate_bps: udp.and_then(|udp| udp.rate_bps),
            type_of_service: spec.dscp.unwrap_or(0) << 2,
            version: Some([2, 1, 8]),
            ..Default::default()
        }
        .encode(true);
        let has_room = payload_bytes >= STAMP_BYTES + header.len();
        Ok(Self {
            address,
            way,
            request: request.clone(),
            sockets: sockets.into_iter().map(|socket| (socket, ReportSlot::default())).collect(),
            payload_bytes,
            borne: if has_room { header.clone() } else { iperf2::bare().to_vec() },
            header,
        })
    }

    pub(super) fn way(&self) -> Direction {
        self.way
    }

    /// Returns the local address of the first socket.
    pub(super) fn local_address(&self) -> Option<SocketAddr> {
        self.sockets.first().and_then(|(socket, _)| socket.local_addr().ok())
    }

    /// Sends or receives, depending on its direction. `asked` is raised when the server has been asked to send; if it
    /// has served a client before, it may not listen yet.
    pub(super) fn carry_out(
        &self,
        has_taken_one: bool,
        asked: &AtomicBool,
        stop: &AtomicBool,
        meter: &Meter,
    ) -> Result<(Received, Sent)> {
        match self.way {
            Direction::To => {
                while !asked.load(Ordering::Relaxed) && !stop.load(Ordering::Relaxed) {
                    std::thread::sleep(Duration::from_millis(1));
                }
                if has_taken_one {
                    self.await_listener(stop)?;
                }
                self.send(stop, meter)
            }
            Direction::From => {
                let opened = self.ask_all(stop);
                asked.store(true, Ordering::Relaxed);
                opened.and_then(|()| self.receive(stop, meter))
            }
        }
    }

    fn streams(&self) -> Result<Vec<Stream>, FlowError> {
        let streams = self.sockets.iter().zip(0..).map(|((socket, report), place)| {
            Ok(Stream { socket: socket.try_clone()?, layout: self.layout(report, place) })
        });
        streams.collect::<std::io::Result<_>>().map_err(FlowError::io("open the streams"))
    }

    fn layout(&self, report: &ReportSlot, place: u32) -> Layout {
        Layout::Iperf2 { header: self.borne.clone(), delay: STAGGER * place, report: report.clone() }
    }

    /// Waits until the server listens again, which version 2.2 does a second after it has accepted a client. It sends
    /// a datagram that ends a flow, from a port of its own: this begins no flow, and is refused if nobody listens.
    fn await_listener(&self, stop: &AtomicBool) -> Result<()> {
        let sockets = datagrams::sockets(&self.request, self.address, Direction::To, 1, None)?;
        let Some(socket) = sockets.first() else { return Ok(()) };
        socket.set_read_timeout(Some(ANSWER)).map_err(FlowError::io("ask for a listener"))?;
        let since = Instant::now();
        while since.elapsed() < LISTENER && !stop.load(Ordering::Relaxed) {
            let stamp = Stamp { number: -1, sent_us: clock::unix_ns() / 1000 };
            let asked = socket.send(&[stamp.encode().as_slice(), &self.header].concat());
            let answer = asked.and_then(|_| socket.recv(&mut [0; 1]));
            if answer.is_ok() || answer.is_err_and(|e| e.kind() != ErrorKind::ConnectionRefused) {
                return Ok(());
            }
            std::thread::sleep(ANSWER);
        }
        Ok(())
    }

    fn send(&self, stop: &AtomicBool, meter: &Meter) -> Result<(Received, Sent)> {
        let plan = DatagramSendPlan {
            payload_bytes: u32::try_from(self.payload_bytes).ok(),
            ..datagrams::send_plan(&self.request)
        };
        let (mut sent, tallies) = send::each_over(self.streams()?, &plan, stop, meter)?;
        let counts: Vec<u64> = tallies.iter().map(|tally| tally.datagrams).collect();
        let reports = self.finish(&counts, stop)?;
        // The end mark of a stream is as long as other datagrams, and the server counts it.
        if let Some(datagrams) = &mut sent.datagrams {
            datagrams.sent += reports.len() as u64;
            sent.bytes = datagrams.sent * datagrams.payload_bytes;
        }
        Ok((received(&reports, self.payload_bytes as u64, &self.request), sent))
    }

    /// Ends each stream until the server has reported on it; one that was interrupted before it began has nothing to report.
    fn finish(&self, counts: &[u64], stop: &AtomicBool) -> Result<Vec<ServerReport>> {
        let poll = self.poll()?;
        let (since, mut said, mut stopped) = (Instant::now(), None::<Instant>, None::<Instant>);
        let mut ready = Vec::new();
        loop {
            if stop.load(Ordering::Relaxed) {
                stopped.get_or_insert_with(Instant::now);
            }
            let missing = self.sockets.iter().zip(counts).filter(|((_, report), count)| {
                let is_awaited = stopped.is_none() || **count > 0;
                is_awaited && report.report().is_none()
            });
            let missing: Vec<_> = missing.collect();
            if missing.is_empty() {
                let reports: Vec<_> = self.sockets.iter().filter_map(|(_, report)| report.report()).collect();
                return if reports.is_empty() { Err(SessionError::Cancelled) } else { Ok(reports) };
            }
            if stopped.is_some_and(|stopped| stopped.elapsed() > CONCLUSION) {
                return Err(SessionError::Cancelled);
            }
            if since.elapsed() > PATIENCE {
                let waited = since.elapsed().into();
                return Err(SessionError::NoDatagrams { address: self.address, waited });
            }
            if said.is_none_or(|said| said.elapsed() >= AGAIN) {
                said = Some(Instant::now());
                for ((socket, report), &count) in missing {
                    // Lost or not sent: it is said again.
                    let _ = socket.send(&self.last_datagram(&self.layout(report, 0), count));
                }
            }
            poll.wait(&mut ready, Some(LOOK_NS))?;
            for &index in &ready {
                self.take_report(index as usize, since)?;
            }
        }
    }

    fn last_datagram(&self, layout: &Layout, count: u64) -> Vec<u8> {
        let mut datagram = vec![0; self.payload_bytes];
        layout.write_header(&mut datagram);
        let stamp = Stamp { number: -(count as i64 + 1), sent_us: clock::unix_ns() / 1000 };
        datagram[..STAMP_BYTES].copy_from_slice(&stamp.encode());
        datagram
    }

    /// Reads a socket in search of the server's report.
    fn take_report(&self, index: usize, since: Instant) -> Result<()> {
        let Some((socket, report)) = self.sockets.get(index) else { return Ok(()) };
        let mut room = vec![0; 65_536];
        loop {
            match socket.recv(&mut room) {
                Ok(length) => report.keep(&room[..length]),
                Err(e) if e.kind() == ErrorKind::ConnectionRefused => self.refused(since)?,
                Err(_) => return Ok(()),
            }
        }
    }

    /// Handles a refusal, which is ignored unless it is the last of many.
    fn refused(&self, since: Instant) -> Result<()> {
        if since.elapsed() < REFUSALS { Ok(()) } else { Err(SessionError::Refused { address: self.address }) }
    }

    /// Has the server begin to send, one stream after the other.
    fn ask_all(&self, stop: &AtomicBool) -> Result<()> {
        self.sockets.iter().try_for_each(|(socket, _)| self.ask(socket, stop))
    }

    fn receive(&self, stop: &AtomicBool, meter: &Meter) -> Result<(Received, Sent)> {
        let plan =
            DatagramReceivePlan { patience: Nanos::from(PATIENCE), ..datagrams::receive_plan(&self.request) };
        let streams = self.streams()?;
        let done = stall::guard(meter, stop, datagrams::patience(&self.request), |stop| {
            receive::each_over(streams, &plan, stop, meter)
        });
        let (received, tallies) = done.map_err(|error| SessionError::of_flow(error, self.address))?;
        let came = received.datagrams.as_ref().map_or(0, |datagrams| datagrams.counts.received);
        let datagrams = DatagramsSent {
            payload_bytes: received.bytes / came.max(1),
            sent: tallies.iter().map(|tally| tally.datagrams).sum(),
            duration_ns: received.duration_ns,
            ..Default::default()
        };
        let sent = Sent {
            bytes: datagrams.sent * datagrams.payload_bytes,
            datagrams: Some(datagrams),
            ..Default::default()
        };
        Ok((received, sent))
    }

    /// Announces the test, until something arrives.
    fn ask(&self, socket: &UdpSocket, stop: &AtomicBool) -> Result<()> {
        let failed = || FlowError::io("wait for datagrams");
        socket.set_read_timeout(Some(AGAIN)).map_err(failed())?;
        let since = Instant::now();
        loop {
            self.check_patience(since, stop)?;
            let stamp = Stamp { number: 1, sent_us: clock::unix_ns() / 1000 };
            let _ = socket.send(&[stamp.encode().as_slice(), &self.header].concat());
            match socket.peek(&mut [0]) {
                Ok(_) => return Ok(()),
                Err(e) if e.kind() == ErrorKind::ConnectionRefused => {
                    self.refused(since)?;
                    std::thread::sleep(Duration::from_millis(10));
                }
                Err(_) => {}
            }
        }
    }

    fn check_patience(&self, since: Instant, stop: &AtomicBool) -> Result<()> {
        if stop.load(Ordering::Relaxed) {
            return Err(SessionError::Cancelled);
        }
        if since.elapsed() > PATIENCE {
            return Err(SessionError::NoReverse { address: self.address, waited: since.elapsed().into() });
        }
        Ok(())
    }

    /// Returns a poll over all sockets, which become nonblocking.
    fn poll(&self) -> Result<Poll> {
        let poll = Poll::new()?;
        for ((socket, _), index) in self.sockets.iter().zip(0..) {
            socket.set_nonblocking(true).map_err(FlowError::io("wait for datagrams"))?;
            poll.add(socket, index, Interest::Read)?;
        }
        Ok(poll)
    }
}

/// Returns the reports, corrected for datagrams that a busy server counted for another stream. First datagrams of
/// several streams that wait on its one socket while it accepts the first are read as that one's (2.1.8): one too
/// many there, in bytes and out of order, and missing where they belong.
fn with_strays(reports: &[ServerReport], payload_bytes: u64) -> Vec<ServerReport> {
    let mut reports = reports.to_vec();
    let mut strays = 0;
    for report in &mut reports {
        let counted = report.datagrams.saturating_sub(report.lost);
        let surplus = (report.bytes / payload_bytes.max(1)).saturating_sub(counted).min(report.out_of_order);
        strays += surplus;
        report.out_of_order -= surplus;
    }
    for report in &mut reports {
        let own = strays.min(report.lost);
        report.lost -= own;
        strays -= own;
    }
    reports
}

/// Combines the server's reports. They count the bytes that it read, which may be fewer than a datagram has.
fn received(reports: &[ServerReport], payload_bytes: u64, request: &MeasureRequest) -> Received {
    let reports = &with_strays(reports, payload_bytes);
    let received = |report: &ServerReport| report.datagrams.saturating_sub(report.lost);
    let stream_bytes: Vec<u64> = reports.iter().map(|r| received(r) * payload_bytes).collect();
    let bytes = stream_bytes.iter().sum();
    let at_ns = reports.iter().map(|r| r.took_us.saturating_mul(1000)).max().unwrap_or(0);
    let sample = |at_ns, bytes| ReceiverSample { at_ns, bytes, ..Default::default() };
    let counts = ArrivalCounts {
        received: reports.iter().map(received).sum(),
        reordered: reports.iter().map(|r| r.out_of_order).sum(),
        ..Default::default()
    };
    let all = request.spec.bytes.is_some_and(|asked| bytes >= asked.as_bytes());
    Received {
        bytes,
        duration_ns: at_ns,
        stream_bytes,
        samples: vec![sample(0, 0), sample(at_ns, bytes)],
        method: ReceiveMethod::Reported,
        ended: if all { EndReason::Closed } else { EndReason::Duration },
        datagrams: Some(DatagramsReceived {
            counts,
            jitter_ns: reports.iter().map(|r| r.jitter_us.saturating_mul(1000)).max(),
            ..Default::default()
        }),
        ..Default::default()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn datagram_that_the_server_counts_for_another_stream_is_not_lost() {
        let report = |datagrams, lost, out_of_order, read: u64| ServerReport {
            bytes: read * 1000,
            lost,
            out_of_order,
            datagrams,
            ..ServerReport::default()
        };
        // As iperf 2.1.8 reports two streams whose first datagrams waited together.
        let together = with_strays(&[report(11, 0, 1, 12), report(11, 1, 0, 10)], 1000);
        assert_eq!(together.iter().map(|r| (r.lost, r.out_of_order)).collect::<Vec<_>>(), [(0, 0), (0, 0)]);
        // A late datagram of one, and a lost one of another, remain as reported.
        let real = [report(11, 0, 1, 11), report(11, 1, 0, 10)];
        assert_eq!(with_strays(&real, 1000), real);
        // A copy of a stream alone is none of another's.
        assert_eq!(with_strays(&[report(11, 2, 1, 9)], 1000)[0].lost, 2);
    }
}
