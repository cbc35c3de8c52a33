//! A download from any server of the web, measured at the receiving end: no bdp is there, so what the sender did is not
//! known, and round trips are those of TCP's handshake.

mod chunks;
mod http;
mod url;

use std::io::Read;
use std::net::{SocketAddr, TcpStream};
use std::ops::Range;
use std::sync::atomic::{AtomicBool, AtomicU32, AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

use bdp_model::caveat::Caveat;
use bdp_model::measurement::{HostFacts, MeasureRequest, Measurement, PathFacts, Way};
use bdp_model::method::{EndReason, ReceiveMethod};
use bdp_model::record::{ReceiverSample, RttReport};
use bdp_model::threshold::LONG_ENOUGH;
use bdp_model::units::{ByteCount, Nanos};
use bdp_sys::socket::{self, TcpOptions};
use bdp_sys::{clock, process, tcp_info};
use bdp_wire::control::{Mark, ProbeSample, Probed, Received, Sent};

use bdp_flow::background::Passed;
use bdp_flow::disturbance::{self, Moved};
use bdp_flow::handshakes::{self, Handshakes};
use bdp_flow::host::Baseline;
use bdp_flow::session::error::SessionError;
use bdp_flow::session::progress::{Progress, Stage};
use bdp_flow::session::reporter::{self, Goodput};
use bdp_flow::session::{dial, outcome};
use chunks::Chunks;
use http::{Connection, Head, Tls, is_wait};
pub use url::Url;

/// Most redirections that are followed.
const MOST_REDIRECTIONS: u32 = 5;
/// A file that is shorter is fetched once: asking for it again and again would measure the asking.
const WORTH_REPEATING: u64 = 1 << 20;
/// Bytes of one read.
const READ_BYTES: usize = 256 << 10;
/// From one look at the counts to the next.
const LOOK: Duration = Duration::from_millis(5);
/// From one handshake that measures the round trip to the next: a stranger's server is not to be bothered.
const HANDSHAKE_INTERVAL: Nanos = Nanos::millis(250);
/// How long a handshake may take: time for two more SYNs, which Linux sends after one second and after three.
const HANDSHAKE_PATIENCE: Nanos = Nanos::secs(5);
/// How long late answers are awaited at the end, at least.
const LATE: Duration = Duration::from_secs(1);
/// Shortest time from one report of progress to the next.
const SHORTEST_TICK: Duration = Duration::from_millis(100);
/// How long the first byte of a body may take.
const FIRST_BYTE: Duration = Duration::from_secs(15);

/// Downloads `request.url` for as long as is asked, over so many connections at once. As [`super::measure`], with one
/// direction, and little known of the far end.
pub fn measure(
    request: &MeasureRequest,
    progress: &mut dyn FnMut(&Progress),
    cancel: &AtomicBool,
) -> Result<Measurement, SessionError> {
    let text = request.url.as_deref().unwrap_or_default();
    let url = Url::parse(text).map_err(SessionError::Request)?;
    let started_unix_ms = clock::unix_ms();
    let started = Instant::now();
    let mut tell = Teller {
        progress,
        cancel,
        tick: request.interval.to_duration().max(SHORTEST_TICK),
        concludes: false,
    };
    tell.tell(Stage::Connecting, started, Nanos::ZERO, None)?;
    let tls = Tls::default();
    if url.secure {
        // Before anybody is bothered.
        tls.config().map_err(|what| failed(&url, what))?;
    }
    let options = TcpOptions {
        window_bytes: request.window.map(|w| u32::try_from(w.as_bytes()).unwrap_or(u32::MAX)),
        receive_buffer: request.socket_buffer.map(|b| b.as_bytes() as usize),
        mss: request.mss,
        dscp: request.dscp,
        device: request.bind_device.clone(),
        ..TcpOptions::default()
    };
    let (url, address) = settle(url, request, &options, &tls, cancel)?;
    let local = Connecting { url: &url, address, request, options: &options, tls: &tls, cancel };
    let mut connections = local.open(request.streams)?;
    let local_ip = connections[0].socket().local_addr().map_or(address.ip(), |a| a.ip());
    let baseline = Baseline::take(local_ip);
    let prober = Prober::start(address)?;
    let idle_from = clock::monotonic_ns();
    let since = Instant::now();
    while since.elapsed() < request.idle.to_duration() {
        std::thread::sleep(tell.tick.min(request.idle.to_duration().saturating_sub(since.elapsed())));
        tell.tell(Stage::Idle, since, request.idle, prober.last())?;
    }
    let loaded_from = clock::monotonic_ns();
    let flow = Flow::start(connections.drain(..), &url)?;
    let received = flow.attend(request, &url, &prober, &mut tell)?;
    let is_whole = received.ended == EndReason::Bytes;
    if is_whole && received.duration_ns < LONG_ENOUGH.as_ns() {
        return Err(failed(
            &url,
            format!(
                "{} came whole within {}, too short a time to tell a rate by; give the URL of a larger file",
                ByteCount::bytes(received.bytes),
                Nanos(received.duration_ns)
            ),
        ));
    }
    let loaded = received.counted_within().unwrap_or_default();
    prober.await_answers(loaded.end, cancel);
    let rtt = prober.round_trips(&(idle_from..loaded_from), &loaded);
    let idle = rtt.idle;
    let mut path = PathFacts { rtt_min_ns: prober.smallest(), ..PathFacts::default() };
    path.mtu_from = received.path_mtu;
    let mut moved = Moved::default();
    // TLS adds 22 bytes to each record, of 16 KiB mostly.
    moved.add(Way::From, received.bytes + received.bytes / 200, 0, flow.mss());
    let sent = Sent { mss: flow.mss(), ..Sent::default() };
    path.mss_bytes = sent.mss;
    let result = outcome::result(request, Way::From, received, sent, rtt)?;
    let mut caveats =
        vec![Caveat::WebServer { host: url.host.clone(), handshake_interval_ns: HANDSHAKE_INTERVAL.as_ns() }];
    let directions = vec![result];
    outcome::add_caveats(request, &directions, &mut caveats);
    if is_whole {
        caveats.push(Caveat::FileTooShort {
            after_ns: directions[0].duration_ns,
            repeated_from_bytes: WORTH_REPEATING,
        });
    }
    if tell.concludes {
        caveats.insert(0, reporter::caveat(request, &directions));
    }
    let mut near = baseline.facts();
    let mut far = HostFacts {
        name: url.host.clone(),
        address: address.ip().to_canonical().to_string(),
        ..HostFacts::default()
    };
    disturbance::note(&mut near, &mut far, &moved, &mut caveats);
    Ok(Measurement {
        started_unix_ms,
        took_ms: u64::try_from(started.elapsed().as_millis()).unwrap_or(u64::MAX),
        near,
        far,
        path,
        rtt_idle_ns: idle,
        directions,
        caveats,
        ..Measurement::of(request)
    })
}

fn failed(url: &Url, what: impl Into<String>) -> SessionError {
    SessionError::Download { url: url.to_string(), what: what.into() }
}

/// Why there is no connection: what helps is not what helps with a bdp.
fn unconnected(url: &Url, error: SessionError) -> SessionError {
    match error {
        SessionError::Refused { address } => failed(
            url,
            format!(
                "connect to {address}: refused, the host is there and nothing listens on the port; check the URL's \
                 host and port"
            ),
        ),
        other => other,
    }
}

/// Follows redirections to where the file is.
fn settle(
    mut url: Url,
    request: &MeasureRequest,
    options: &TcpOptions,
    tls: &Tls,
    cancel: &AtomicBool,
) -> Result<(Url, SocketAddr), SessionError> {
    for _ in 0..=MOST_REDIRECTIONS {
        let there = MeasureRequest { host: url.host.clone(), port: url.port, ..request.clone() };
        let addresses = dial::resolve(&there, cancel)?;
        let (stream, address) =
            dial::connect_any(&addresses, &there, options, cancel).map_err(|e| unconnected(&url, e))?;
        let mut connection = Connection::open(stream, &url, tls).map_err(|what| failed(&url, what))?;
        connection.ask(&url).map_err(|e| failed(&url, e.to_string()))?;
        let (head, _) = connection.read_head().map_err(|what| failed(&url, what))?;
        match (head.status, &head.location) {
            (200..=299, _) => return Ok((url, address)),
            (301 | 302 | 303 | 307 | 308, Some(location)) => {
                let next = url.join(location).map_err(|what| failed(&url, what))?;
                if url.secure && !next.secure {
                    return Err(failed(
                        &url,
                        format!("it leads from https to {next}; give that, if you mean it"),
                    ));
                }
                url = next;
            }
            (status, _) => {
                return Err(failed(&url, format!("the server answers {status}; check the path")));
            }
        }
    }
    Err(failed(&url, format!("more than {MOST_REDIRECTIONS} redirections; give the URL of the file itself")))
}

/// What connections are made with.
struct Connecting<'a> {
    url: &'a Url,
    address: SocketAddr,
    request: &'a MeasureRequest,
    options: &'a TcpOptions,
    tls: &'a Tls,
    cancel: &'a AtomicBool,
}

impl Connecting<'_> {
    fn open(&self, count: u32) -> Result<Vec<Connection>, SessionError> {
        let port = self.request.client_port.map(u32::from);
        let streams = dial::connect_all(
            self.address,
            count,
            self.request,
            port,
            self.options,
            |_, _| Ok(()),
            self.cancel,
        )
        .map_err(|e| unconnected(self.url, e))?;
        streams
            .into_iter()
            .map(|stream| Connection::open(stream, self.url, self.tls).map_err(|what| failed(self.url, what)))
            .collect()
    }
}

/// Progress and cancellation.
struct Teller<'a> {
    progress: &'a mut dyn FnMut(&Progress),
    cancel: &'a AtomicBool,
    tick: Duration,
    /// The cancel flag was raised while the file came, and what had come is the result.
    concludes: bool,
}

impl Teller<'_> {
    /// Of a stage in which nothing flows.
    fn tell(
        &mut self,
        stage: Stage,
        since: Instant,
        total: Nanos,
        rtt_ns: Option<u64>,
    ) -> Result<(), SessionError> {
        (self.progress)(&Goodput::default().progress(stage, since, total, rtt_ns));
        self.check()
    }

    fn check(&self) -> Result<(), SessionError> {
        if self.cancel.load(Ordering::Relaxed) { Err(SessionError::Cancelled) } else { Ok(()) }
    }
}

/// The connections that download, a thread each. Dropped, they end.
struct Flow {
    sockets: Vec<TcpStream>,
    counts: Arc<Vec<AtomicU64>>,
    /// When the first byte of any body came; `u64::MAX` before.
    first_byte_ns: Arc<AtomicU64>,
    open: Arc<AtomicU32>,
    /// Connections that have read to the end of the file, and ask for it no more.
    whole: Arc<AtomicU32>,
    stop: Arc<AtomicBool>,
    failure: Arc<Mutex<Option<String>>>,
    threads: Vec<JoinHandle<()>>,
}

impl Flow {
    fn start(
        connections: impl ExactSizeIterator<Item = Connection>,
        url: &Url,
    ) -> Result<Self, SessionError> {
        let count = connections.len();
        let mut flow = Self {
            sockets: Vec::new(),
            counts: Arc::new((0..count).map(|_| AtomicU64::new(0)).collect()),
            first_byte_ns: Arc::new(AtomicU64::new(u64::MAX)),
            open: Arc::new(AtomicU32::new(u32::try_from(count).unwrap_or(u32::MAX))),
            whole: Arc::default(),
            stop: Arc::default(),
            failure: Arc::default(),
            threads: Vec::new(),
        };
        for (index, mut connection) in connections.enumerate() {
            let clone = connection.socket().try_clone().map_err(|e| failed(url, e.to_string()))?;
            flow.sockets.push(clone);
            let (counts, open, stop) =
                (Arc::clone(&flow.counts), Arc::clone(&flow.open), Arc::clone(&flow.stop));
            let (failure, whole, url) = (Arc::clone(&flow.failure), Arc::clone(&flow.whole), url.clone());
            let first_byte_ns = Arc::clone(&flow.first_byte_ns);
            flow.threads.push(bdp_flow::worker::start(move || {
                match fetch(&mut connection, &url, &counts[index], &first_byte_ns, &stop) {
                    Ok(is_whole) => drop(whole.fetch_add(u32::from(is_whole), Ordering::Relaxed)),
                    Err(why) => *failure.lock().unwrap_or_else(PoisonError::into_inner) = Some(why),
                }
                open.fetch_sub(1, Ordering::Release);
            })?);
        }
        Ok(flow)
    }

    fn mss(&self) -> Option<u64> {
        // What this end would send in a segment; the server's is the same but for its options.
        self.sockets.first().and_then(|s| tcp_info::read(s).ok()?.snd_mss).map(u64::from)
    }

    /// Takes samples until the time is over, so many bytes have come, or nothing more comes.
    fn attend(
        &self,
        request: &MeasureRequest,
        url: &Url,
        prober: &Prober,
        tell: &mut Teller<'_>,
    ) -> Result<Received, SessionError> {
        let (since, cpu_before) = (Instant::now(), process::cpu_time_ns());
        let read = || -> Vec<u64> { self.counts.iter().map(|c| c.load(Ordering::Relaxed)).collect() };
        while read().iter().all(|&bytes| bytes == 0) {
            if self.open.load(Ordering::Relaxed) == 0 || since.elapsed() > FIRST_BYTE {
                return Err(failed(url, self.why("not a byte of the file came")));
            }
            tell.check()?;
            std::thread::sleep(Duration::from_millis(1));
        }
        let first = self.first_byte_ns.load(Ordering::Relaxed).min(clock::monotonic_ns());
        let (mut told, mut told_bytes) = (Instant::now(), vec![0; self.counts.len()]);
        let (mut samples, mut next_sample) = (Vec::new(), 0);
        let mut counted: Option<(Mark, Vec<u64>)> = None;
        let (last, streams, ended) = loop {
            let (at_ns, streams) = (clock::monotonic_ns() - first, read());
            let mark = Mark { at_ns, bytes: streams.iter().sum() };
            if counted.is_none() && at_ns >= request.omit.as_ns() {
                // Without omit it is the first byte that counting begins with.
                counted = Some(match request.omit {
                    Nanos::ZERO => (Mark::default(), vec![0; streams.len()]),
                    _ => (mark, streams.clone()),
                });
            }
            let all = request.bytes.is_some_and(|wanted| mark.bytes >= wanted.as_bytes());
            let silent = self.open.load(Ordering::Acquire) == 0;
            let over = at_ns >= request.duration.as_ns();
            if at_ns >= next_sample || over || all || silent {
                samples.push(self.sample(mark));
                let interval = request.interval.as_ns().max(1_000_000);
                next_sample = at_ns - at_ns % interval + interval;
            }
            if over || all || silent {
                let is_whole = self.whole.load(Ordering::Relaxed) as usize == self.counts.len();
                break (
                    mark,
                    streams,
                    match (over, all || !is_whole) {
                        (true, _) => EndReason::Duration,
                        (_, true) => EndReason::Closed,
                        (_, false) => EndReason::Bytes,
                    },
                );
            }
            if let Err(cancelled) = tell.check() {
                // Within the omit there is nothing yet to conclude.
                if counted.as_ref().is_none_or(|(from, _)| from.at_ns >= at_ns) {
                    return Err(cancelled);
                }
                tell.concludes = true;
                samples.push(self.sample(mark));
                break (mark, streams, EndReason::Stopped);
            }
            if told.elapsed() >= tell.tick {
                let span = told.elapsed();
                let moved: Vec<u64> =
                    streams.iter().zip(&told_bytes).map(|(now, before)| now - before).collect();
                (told, told_bytes) = (Instant::now(), streams);
                let (way, moved) =
                    (Way::From, Passed { bytes: moved.iter().sum(), streams: moved, ..Passed::default() });
                let goodput = Goodput::of(span, vec![(way, moved)], Vec::new());
                let stage = Stage::Direction(way);
                (tell.progress)(&goodput.progress(stage, since, request.duration, prober.last()));
            }
            std::thread::sleep(LOOK);
        };
        self.stop.store(true, Ordering::Relaxed);
        let (counted_from, before) = counted.unwrap_or((last, streams.clone()));
        let elapsed = u64::try_from(since.elapsed().as_nanos()).unwrap_or(u64::MAX).max(1);
        let first_socket = self.sockets.first();
        Ok(Received {
            first_byte_at_ns: Some(first),
            bytes: last.bytes,
            duration_ns: last.at_ns,
            counted_from,
            stream_bytes: streams.iter().zip(&before).map(|(now, before)| now - before).collect(),
            samples,
            receive_buffer_bytes: first_socket.and_then(|s| socket::receive_buffer(s).ok()).map(|b| b as u64),
            cpu: (process::cpu_time_ns() - cpu_before) as f64 / elapsed as f64,
            method: if url.secure { ReceiveMethod::ReadTls } else { ReceiveMethod::Read },
            threads: u32::try_from(self.counts.len()).ok(),
            ended,
            path_mtu: first_socket.and_then(|s| tcp_info::read(s).ok()?.pmtu),
            ..Received::default()
        })
    }

    fn sample(&self, mark: Mark) -> ReceiverSample {
        let mut sample = ReceiverSample { at_ns: mark.at_ns, bytes: mark.bytes, ..ReceiverSample::default() };
        for (i, socket) in self.sockets.iter().enumerate() {
            let Ok(info) = tcp_info::read(socket) else { continue };
            if let Some(count) = info.rcv_out_of_order {
                *sample.out_of_order.get_or_insert(0) += u64::from(count);
            }
            if i == 0 {
                sample.rcv_wnd_bytes = info.rcv_wnd.map(u64::from);
            }
        }
        sample
    }

    fn why(&self, otherwise: &str) -> String {
        let failure = self.failure.lock().unwrap_or_else(PoisonError::into_inner);
        failure.clone().unwrap_or_else(|| otherwise.to_owned())
    }
}

impl Drop for Flow {
    fn drop(&mut self) {
        self.stop.store(true, Ordering::Relaxed);
        for thread in self.threads.drain(..) {
            // It looks at the flag at each glance.
            let _ = thread.join();
        }
    }
}

/// Asks for the file, again as long as it is worth that, and counts what comes of its body. Whether it ended with a body that
/// was whole.
fn fetch(
    connection: &mut Connection,
    url: &Url,
    count: &AtomicU64,
    first_byte_ns: &AtomicU64,
    stop: &AtomicBool,
) -> Result<bool, String> {
    let mut room = vec![0; READ_BYTES];
    while !stop.load(Ordering::Relaxed) {
        connection.ask(url).map_err(|e| e.to_string())?;
        let (head, body) = connection.read_head()?;
        first_byte_ns.fetch_min(clock::monotonic_ns(), Ordering::Relaxed);
        if !(200..300).contains(&head.status) {
            return Err(format!("the server answers {} to one connection of several", head.status));
        }
        connection.set_glances().map_err(|e| e.to_string())?;
        let ended = read_body(connection, &head, &body, &mut room, count, stop)?;
        if !ended {
            // Without a length it is the end of the connection that ends it (RFC 9112, section 6.3).
            return Ok(head.length.is_none() && !head.chunked && !stop.load(Ordering::Relaxed));
        }
        if head.closes || head.length.is_none_or(|length| length < WORTH_REPEATING) {
            return Ok(true);
        }
    }
    Ok(false)
}

/// Reads to the end of the body; whether that was reached with the connection still open.
fn read_body(
    connection: &mut Connection,
    head: &Head,
    begun: &[u8],
    room: &mut [u8],
    count: &AtomicU64,
    stop: &AtomicBool,
) -> Result<bool, String> {
    let mut bytes = 0;
    let mut chunks = head.chunked.then(Chunks::default);
    let mut take = |came: &[u8]| {
        let content = match &mut chunks {
            Some(chunks) => chunks.take(came)?,
            None => came.len() as u64,
        };
        bytes += content;
        count.fetch_add(content, Ordering::Relaxed);
        Ok::<bool, String>(match &chunks {
            Some(chunks) => chunks.is_over(),
            None => head.length.is_some_and(|length| bytes >= length),
        })
    };
    let mut is_over = take(begun)?;
    loop {
        if is_over {
            return Ok(true);
        }
        if stop.load(Ordering::Relaxed) {
            return Ok(false);
        }
        match connection.read(room) {
            Ok(0) => return Ok(false),
            Ok(length) => is_over = take(&room[..length])?,
            Err(e) if is_wait(&e) => {}
            Err(e) => return Err(e.to_string()),
        }
    }
}

/// Measures round trips by handshakes of its own, all the time. Dropped, it ends.
struct Prober {
    probes: Arc<Mutex<Vec<ProbeSample>>>,
    stop: Arc<AtomicBool>,
}

impl Prober {
    fn start(address: SocketAddr) -> Result<Self, SessionError> {
        let (probes, stop) = (Arc::<Mutex<Vec<ProbeSample>>>::default(), Arc::<AtomicBool>::default());
        let (on_thread, stopped) = (Arc::clone(&probes), Arc::clone(&stop));
        let all_the_time = Nanos(u64::MAX);
        let plan = Handshakes::new(
            address,
            clock::monotonic_ns(),
            HANDSHAKE_INTERVAL,
            all_the_time,
            HANDSHAKE_PATIENCE,
        );
        // Nobody waits for it: a handshake may take as long as its patience.
        drop(bdp_flow::worker::start(move || {
            process::sharpen_timers();
            // Where there is no descriptor left for them, there are no round trips.
            let _ = plan.run(&stopped, &mut |number, sample| {
                let mut probes = on_thread.lock().unwrap_or_else(PoisonError::into_inner);
                handshakes::enter(&mut probes, number, sample);
            });
        })?);
        Ok(Self { probes, stop })
    }

    fn probes(&self) -> MutexGuard<'_, Vec<ProbeSample>> {
        self.probes.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn last(&self) -> Option<u64> {
        self.probes().iter().rev().find_map(|probe| probe.rtt_ns)
    }

    fn smallest(&self) -> Option<u64> {
        self.probes().iter().filter_map(|probe| probe.rtt_ns).min()
    }

    /// Lets late answers come in to what was sent until a moment: a second, or twice the longest round trip so far.
    fn await_answers(&self, until_ns: u64, cancel: &AtomicBool) {
        let since = Instant::now();
        let longest = || self.probes().iter().filter_map(|probe| probe.rtt_ns).max().unwrap_or(0);
        let patience = || HANDSHAKE_PATIENCE.to_duration().min(LATE.max(Duration::from_nanos(2 * longest())));
        let is_open = |probe: &ProbeSample| probe.rtt_ns.is_none() && !probe.failed;
        while self.probes().iter().any(|probe| probe.sent_at_ns < until_ns && is_open(probe))
            && since.elapsed() < patience()
            && !cancel.load(Ordering::Relaxed)
        {
            std::thread::sleep(LOOK);
        }
    }

    fn round_trips(&self, idle: &Range<u64>, loaded: &Range<u64>) -> RttReport {
        let probed = Probed { probes: self.probes().clone(), awaited_until_ns: clock::monotonic_ns() };
        RttReport::of_probes(
            probed.outcomes(idle, HANDSHAKE_PATIENCE),
            probed.outcomes(loaded, HANDSHAKE_PATIENCE),
        )
    }
}

impl Drop for Prober {
    fn drop(&mut self) {
        self.stop.store(true, Ordering::Relaxed);
    }
}
