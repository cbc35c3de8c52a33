//! Drives a server of iperf2. Of connections that server tells only its version: what it received is what it
//! acknowledged, what it sent is what came. Of datagrams it reports what it received.

mod datagrams;

use std::io::{Read, Write};
use std::net::{Shutdown, SocketAddr, TcpStream};
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;
use std::time::{Duration, Instant};

use bdp_model::caveat::{Caveat, NotMeasured};
use bdp_model::ends::PeerProtocol;
use bdp_model::measurement::{DirectionResult, HostFacts, MeasureRequest, Measurement, PathFacts, Way};
use bdp_model::method::{EndReason, ReceiveMethod};
use bdp_model::record::{ReceiverSample, RttReport};
use bdp_model::units::Nanos;
use bdp_sys::tcp_info;
use bdp_sys::tcp_info::TcpInfo;
use bdp_wire::control::{Mark, Received, Sent};
use bdp_wire::iperf2::{Amount, TestHeader, read_acknowledgement};

use bdp_flow::crew::{self, Crew};
use bdp_flow::error::EngineError;
use bdp_flow::host::Baseline;
use bdp_flow::meter::Meter;
use bdp_flow::receive::{self, ReceivePlan};
use bdp_flow::send::{self, SendPlan};
use bdp_flow::session::deadline::Until;
use bdp_flow::session::dial;
use bdp_flow::session::error::SessionError;
use bdp_flow::session::options::options;
use bdp_flow::session::progress::Stage;
use bdp_flow::session::reporter::{Goodput, Reporter};
use bdp_flow::session::{datagrams as near_datagrams, outcome};
use bdp_flow::stall;

/// How long the server may take to say its version.
const GREETING_DEADLINE: Duration = Duration::from_secs(5);
/// How long it may take to send a first byte, and how much longer than asked it may send.
const SLACK: Nanos = Nanos::secs(5);
/// How long what was sent of a volume may take to be acknowledged.
const STRAGGLERS: Duration = Duration::from_secs(10);
/// How often a running test is looked at.
const LOOK: Duration = Duration::from_millis(20);

/// Measures by iperf2's protocol; for a request that has been checked.
pub fn measure(request: &MeasureRequest, mut reporter: Reporter<'_>) -> Result<Measurement, SessionError> {
    check(request)?;
    let addresses = dial::resolve(request, reporter.cancel)?;
    let mut server = Server { address: None, version: None };
    let mut near = None;
    let (mut directions, mut caveats) = (Vec::new(), Vec::new());
    let mut path = PathFacts::default();
    let mut rounds: Vec<Vec<Way>> = match request.bidirectional {
        true => vec![vec![Way::To, Way::From]],
        false => request.directions.iter().map(|&way| vec![way]).collect(),
    };
    if request.udp.is_some() {
        // Its server sends no datagrams to whom it has just received some from: what it is to send comes first.
        rounds.sort_by_key(|round| round.contains(&Way::To));
    }
    for round in rounds {
        let mut note_local = |local: Option<SocketAddr>| {
            if let (None, Some(local)) = (&near, local) {
                near = Some(Baseline::take(local.ip()));
            }
        };
        let outcomes = match request.udp {
            Some(_) => {
                let done = datagrams::measure(
                    &mut server,
                    &addresses,
                    &round,
                    request,
                    &mut note_local,
                    &mut reporter,
                );
                match done {
                    // What was measured stands.
                    Err(error @ (SessionError::NoDatagrams { .. } | SessionError::NoReverse { .. }))
                        if !directions.is_empty() =>
                    {
                        let not_measured = |reason| Caveat::NotMeasured { directions: round.clone(), reason };
                        caveats.extend(why_not_measured(&error).map(not_measured));
                        continue;
                    }
                    done => done,
                }
            }
            None => server.open(&addresses, &round, request, &mut reporter).and_then(|streams| {
                note_local(streams.first().and_then(|s| s.local_addr().ok()));
                let address =
                    server.address.unwrap_or_else(|| (std::net::Ipv4Addr::UNSPECIFIED, request.port).into());
                carry_out(connections(&streams, address, &round, request)?, request, &mut reporter)
            }),
        };
        let outcomes = match outcomes {
            // What was measured before stands.
            Err(SessionError::Cancelled) if !directions.is_empty() => {
                reporter.concludes = true;
                break;
            }
            outcomes => outcomes?,
        };
        for (way, received, sent) in outcomes {
            outcome::note_path(&mut path, way, &received, &sent);
            let rtt = sent.samples.iter().filter_map(|s| s.srtt_ns).min();
            path.rtt_min_ns = path.rtt_min_ns.min(rtt).or(path.rtt_min_ns).or(rtt);
            let udp = near_datagrams::report(request, way, &received, &sent, None);
            let result = outcome::result(request, way, received, sent, RttReport::default());
            let mut result = reporter.unless_cut_short(result)?;
            if reporter.concludes {
                result.ended = EndReason::Stopped;
            }
            directions.push(DirectionResult { udp, ..result });
        }
        if reporter.concludes {
            break;
        }
    }
    let datagrams = request.udp.is_some();
    caveats.insert(0, Caveat::ForeignServer { protocol: PeerProtocol::Iperf2, datagrams });
    directions.sort_by_key(|result| request.directions.iter().position(|&way| way == result.direction));
    outcome::add_caveats(request, &directions, &mut caveats);
    reporter.add_caveat(request, &directions, &mut caveats);
    Ok(Measurement {
        near: near.map_or_else(HostFacts::default, |baseline| baseline.facts()),
        far: HostFacts {
            name: request.host.clone(),
            address: server.address.map_or_else(String::new, |a| a.ip().to_canonical().to_string()),
            ..Default::default()
        },
        path,
        directions: {
            directions.iter_mut().for_each(close_in_order);
            directions
        },
        caveats,
        ..Measurement::of(request)
    })
}

/// Refuses what iperf2's protocol has no word for.
fn check(request: &MeasureRequest) -> Result<(), SessionError> {
    let from = request.bidirectional || request.directions.contains(&Way::From);
    let wrong = |text: &str| Err(SessionError::Request(text.to_owned()));
    if request.far_cpus.is_some() {
        return wrong("an iperf2 server is told no processors; name those of this end alone, --cpu 0,2-3");
    }
    if request.check_payload {
        return wrong(
            "an iperf2 server sends no bytes that could be checked; --check-payload needs 'bdp serve'",
        );
    }
    if let Some(udp) = &request.udp {
        return datagrams::check(request, udp);
    }
    if from && request.congestion.is_some() {
        return wrong(
            "iperf2 takes no congestion control for its end; --forward measures what this one sends alone",
        );
    }
    if from && request.bytes.is_some_and(|b| b.as_bytes() >= 1 << 31) {
        return wrong("iperf2 sends less than 2 GiB by number of bytes; give a time, -t");
    }
    Ok(())
}

/// A server that ended its sending when its time was over did as it was asked.
fn close_in_order(result: &mut DirectionResult) {
    if result.direction == Way::From && result.ended == EndReason::Closed {
        result.ended = EndReason::Duration;
    }
}

/// Why a round came to nothing, where those before it stand all the same.
fn why_not_measured(error: &SessionError) -> Option<NotMeasured> {
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

struct Server {
    address: Option<SocketAddr>,
    version: Option<[u16; 3]>,
}

impl Server {
    /// Makes the connections of a round, and has the server take each as it is meant.
    fn open(
        &mut self,
        addresses: &[SocketAddr],
        ways: &[Way],
        request: &MeasureRequest,
        reporter: &mut Reporter<'_>,
    ) -> Result<Vec<TcpStream>, SessionError> {
        let (reverse, both) = (ways == [Way::From], ways.len() == 2);
        let options = options(request, if reverse { Way::From } else { Way::To });
        let connect = |address| {
            dial::connect_all(
                address,
                request.streams,
                request,
                None,
                &options,
                |_, _| Ok(()),
                reporter.cancel,
            )
        };
        let mut streams = Err(SessionError::NoSuchHost {
            host: request.host.clone(),
            cause: "it has no address".to_owned(),
        });
        let tried: Vec<SocketAddr> = self.address.map_or_else(|| addresses.to_vec(), |a| vec![a]);
        for address in tried {
            streams = connect(address);
            if streams.is_ok() {
                self.address = Some(address);
                break;
            }
        }
        let streams = streams?;
        let Some(address) = self.address else { return Ok(streams) };
        let header = TestHeader {
            reverse,
            full_duplex: both,
            acknowledge: true,
            streams: request.streams,
            port: request.port,
            length: u32::try_from(request.length.as_bytes()).ok(),
            amount: match request.bytes {
                Some(bytes) => Amount::Bytes(bytes.as_bytes() / u64::from(request.streams.max(1))),
                None => Amount::Time(request.duration),
            },
            rate_bps: request.pacing_bps,
            type_of_service: request.dscp.unwrap_or(0) << 2,
            version: Some([2, 1, 8]),
            ..Default::default()
        }
        .encode(false);
        for stream in &streams {
            self.version = Some(greet(stream, &header, address)?);
        }
        Ok(streams)
    }
}

/// Sends the header, and reads the server's word on its version.
fn greet(stream: &TcpStream, header: &[u8], address: SocketAddr) -> Result<[u16; 3], SessionError> {
    let doing = "it is greeted";
    let lost = |_| SessionError::Lost { address, doing };
    stream.set_nonblocking(false).map_err(lost)?;
    (&mut &*stream).write_all(header).map_err(lost)?;
    let mut reader = Until::new(stream, GREETING_DEADLINE);
    let mut arrived = Vec::new();
    let mut byte = [0];
    loop {
        let told = read_acknowledgement(&arrived);
        match told
            .map_err(|e| SessionError::Request(format!("{address} does not speak iperf2's protocol: {e}")))?
        {
            Some(version) => return Ok(version),
            // Byte by byte, since payload follows at once.
            None => match reader.read(&mut byte) {
                Ok(0) => return Err(SessionError::Lost { address, doing }),
                Ok(_) => arrived.push(byte[0]),
                Err(e)
                    if matches!(e.kind(), std::io::ErrorKind::WouldBlock | std::io::ErrorKind::TimedOut) =>
                {
                    return Err(SessionError::Silent { address, doing });
                }
                Err(e) => return Err(lost(e)),
            },
        }
    }
}

/// What one direction is carried out by.
type Work<'a> = Box<dyn FnOnce(&AtomicBool, &Meter) -> Result<(Received, Sent), SessionError> + Send + 'a>;

/// What the directions of a round do with its connections.
fn connections<'a>(
    streams: &[TcpStream],
    address: SocketAddr,
    ways: &[Way],
    request: &'a MeasureRequest,
) -> Result<Vec<(Way, Work<'a>)>, SessionError> {
    let mut works: Vec<(Way, Work<'a>)> = Vec::new();
    let patience = stall::patience(request.interval, request.pacing_bps);
    for &way in ways {
        let cloned: std::io::Result<Vec<_>> = streams.iter().map(TcpStream::try_clone).collect();
        let streams = cloned.map_err(EngineError::io("open the streams"))?;
        works.push((
            way,
            Box::new(move |stop, meter| match way {
                Way::To => {
                    stall::guard(meter, stop, patience, |stop| send_all(streams, request, stop, meter))
                        .map_err(|error| SessionError::of_flow(error, address))
                }
                Way::From => {
                    stall::guard(meter, stop, patience, |stop| receive_all(streams, request, stop, meter))
                        .map_err(|error| SessionError::of_flow(error, address))
                }
            }),
        ));
    }
    Ok(works)
}

/// Runs a round to its end.
fn carry_out(
    works: Vec<(Way, Work<'_>)>,
    request: &MeasureRequest,
    reporter: &mut Reporter<'_>,
) -> Result<Vec<(Way, Received, Sent)>, SessionError> {
    let stop = AtomicBool::new(false);
    let stage = match works.as_slice() {
        [(way, _)] => Stage::Direction(*way),
        _ => Stage::Both,
    };
    let meters: Vec<(Way, Meter)> = works.iter().map(|(way, _)| (*way, Meter::default())).collect();
    thread::scope(|scope| {
        let running: Vec<_> = works
            .into_iter()
            .zip(&meters)
            .map(|((way, work), (_, meter))| {
                let stop = &stop;
                let kept = move || -> Result<_, SessionError> {
                    crew::keep_to_listed(request.near_cpus.as_ref())?;
                    work(stop, meter)
                };
                (way, scope.spawn(kept))
            })
            .collect();
        let (since, mut told, mut shown) = (Instant::now(), Instant::now(), vec![0; meters.len()]);
        let mut watched = Ok(());
        while running.iter().any(|(_, work)| !work.is_finished()) {
            thread::sleep(LOOK);
            let elapsed = told.elapsed();
            if elapsed >= reporter.tick && watched.is_ok() {
                told = Instant::now();
                let ways = meters.iter().zip(&mut shown).map(|((way, meter), shown)| {
                    let more = meter.bytes().saturating_sub(std::mem::replace(shown, meter.bytes()));
                    (*way, more as f64 * 8.0 / elapsed.as_secs_f64())
                });
                let goodput =
                    Goodput { ways: ways.collect(), senders: senders(&meters), ..Default::default() };
                reporter.show(stage, since, request.duration, goodput, None);
            }
            if watched.is_ok() {
                let any = meters.iter().any(|(_, meter)| meter.bytes() > 0);
                watched = reporter.begins_to_conclude(any).map(drop);
            }
            if watched.is_err() || reporter.concludes {
                stop.store(true, Ordering::Relaxed);
            }
        }
        reporter.show(stage, since, request.duration, Goodput::last(senders(&meters)), None);
        let mut outcomes = Vec::new();
        for (way, work) in running {
            let done = work.join().unwrap_or_else(|_| {
                Err(EngineError::Ended("the work of a direction ended unexpectedly".to_owned()).into())
            });
            match done {
                Ok((received, sent)) => outcomes.push((way, received, sent)),
                // A way that had not begun is no reason to lose the other.
                Err(SessionError::Cancelled) if reporter.concludes => {}
                Err(error) => return Err(error),
            }
        }
        watched?;
        if outcomes.is_empty() { Err(SessionError::Cancelled) } else { Ok(outcomes) }
    })
}

/// What the kernel tells of what is sent, where it is one stream: of several the bytes are not told apart.
fn senders(meters: &[(Way, Meter)]) -> Vec<(Way, Vec<TcpInfo>)> {
    meters.iter().map(|(way, meter)| (*way, meter.infos())).filter(|(_, infos)| infos.len() == 1).collect()
}

fn send_all(
    streams: Vec<TcpStream>,
    request: &MeasureRequest,
    stop: &AtomicBool,
    meter: &Meter,
) -> Result<(Received, Sent), EngineError> {
    let count = streams.len();
    let kept: std::io::Result<Vec<TcpStream>> = streams.iter().map(TcpStream::try_clone).collect();
    let kept = kept.map_err(EngineError::io("send"))?;
    let plan = SendPlan {
        length_bytes: request.length.as_bytes(),
        longest: request.duration,
        bytes: request.bytes.map(|b| b.as_bytes()),
        rate_bps: request.pacing_bps,
        whole_writes: false,
        interval: request.interval,
        zerocopy: request.zerocopy,
        patterned: false,
        crew: Crew::listed(count, request.near_cpus.as_ref()),
    };
    let began = Instant::now();
    let mut sent = send::over(streams, &plan, stop, meter)?;
    sent.pacing_bps = request.pacing_bps;
    let until = Instant::now() + STRAGGLERS;
    let acked = || kept.iter().filter_map(|s| tcp_info::read(s).ok()?.bytes_acked).sum::<u64>();
    if request.bytes.is_some() {
        let all = acked_at_first(&sent) + sent.bytes;
        while acked() < all && Instant::now() < until && !stop.load(Ordering::Relaxed) {
            thread::sleep(Duration::from_millis(1));
        }
        if let Some(mut last) = sent.samples.last().copied() {
            last.at_ns = began.elapsed().as_nanos() as u64;
            last.acked_bytes = Some(acked());
            sent.samples.push(last);
        }
    }
    for stream in &kept {
        let _ = stream.shutdown(Shutdown::Write);
    }
    Ok((acknowledged(&sent, request, count), sent))
}

/// What was acknowledged before any payload was sent.
fn acked_at_first(sent: &Sent) -> u64 {
    sent.samples.first().and_then(|s| s.acked_bytes).unwrap_or(0)
}

/// What the far end received, as far as the near kernel was told.
fn acknowledged(sent: &Sent, request: &MeasureRequest, streams: usize) -> Received {
    let first = acked_at_first(sent);
    let samples: Vec<ReceiverSample> = sent
        .samples
        .iter()
        .filter_map(|s| Some((s.at_ns, s.acked_bytes?)))
        .map(|(at_ns, acked)| ReceiverSample {
            at_ns,
            // An acknowledged end of a connection is to the kernel a byte more.
            bytes: acked.saturating_sub(first).min(sent.bytes),
            ..Default::default()
        })
        .collect();
    let last = samples.last().copied().unwrap_or_default();
    let from = samples.iter().find(|s| s.at_ns >= request.omit.as_ns()).copied().unwrap_or_default();
    Received {
        bytes: last.bytes,
        duration_ns: last.at_ns,
        counted_from: Mark { at_ns: from.at_ns, bytes: from.bytes },
        stream_bytes: if streams == 1 { vec![last.bytes - from.bytes] } else { Vec::new() },
        samples,
        method: ReceiveMethod::Acknowledged,
        ended: if request.bytes.is_some() { EndReason::Closed } else { EndReason::Duration },
        ..Default::default()
    }
}

fn receive_all(
    streams: Vec<TcpStream>,
    request: &MeasureRequest,
    stop: &AtomicBool,
    meter: &Meter,
) -> Result<(Received, Sent), EngineError> {
    let count = streams.len();
    let plan = ReceivePlan {
        // The server ends it.
        duration: request.duration + SLACK,
        omit: request.omit,
        interval: request.interval,
        patience: SLACK,
        window_bytes: None,
        coalesce: request.window.is_none() && request.socket_buffer.is_none(),
        check: false,
        crew: Crew::listed(count, request.near_cpus.as_ref()),
    };
    let received = receive::over(streams, &plan, stop, meter)?;
    // The server was told the rate with the header.
    Ok((received, Sent { pacing_bps: request.pacing_bps, ..Default::default() }))
}

#[cfg(test)]
mod tests {
    use bdp_model::record::SenderSample;

    use super::*;

    #[test]
    fn the_ends_of_connections_are_no_bytes() {
        let sample = |at_ns, acked| SenderSample { at_ns, acked_bytes: Some(acked), ..Default::default() };
        let volume = 5 << 20;
        // Of two connections, the beginnings of which are acknowledged before the first reading, and one end by the last.
        let samples = vec![sample(0, 2), sample(1_000, 2 + volume / 2), sample(2_000, 3 + volume)];
        let sent = Sent { bytes: volume, samples, ..Default::default() };
        let received = acknowledged(&sent, &MeasureRequest::to("ams1"), 2);
        assert_eq!((received.bytes, received.duration_ns), (volume, 2_000));
        assert_eq!(received.samples[1].bytes, volume / 2);
    }
}
