//! The machine as an instrument: its clock, timers, processors and stack, each tested for about a second.

use std::io::{self, ErrorKind, Read};
use std::net::{TcpListener, TcpStream, UdpSocket};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::time::Duration;

use bdp_model::finding::caveat::{Caveat, to_percent};
use bdp_model::flow::method::FloorProtocol;
use bdp_model::measurement::instrument::{ClockFacts, Floor, INSTRUMENT_SCHEMA, Instrument, StallFacts};
use bdp_model::probes::ping::Distribution;
use bdp_model::statistics::histogram::Histogram;
use bdp_sys::{clock, poll, process};

use crate::error::{FlowError, Result};
use crate::worker::start;

/// Duration of each trial.
const TRIAL_NS: u64 = 800_000_000;
/// Clock readings whose cost is measured together.
const READINGS: u64 = 500_000;
/// The requested sleep.
const SLEEP: Duration = Duration::from_micros(200);
/// Gaps longer than this are stalls.
const STALL_NS: u64 = 10_000;
/// Most processors watched at once.
const MOST_WATCHED: usize = 16;
/// Bytes of a message sent back and forth.
const MESSAGE_BYTES: usize = 48;

/// Tests everything; takes about five seconds.
pub fn examine() -> Result<Instrument> {
    let cpus = process::allowed_cpus();
    let may_spin = cpus.len() > 1;
    let mut caveats = Vec::new();
    if !may_spin {
        caveats.push(Caveat::OneProcessor);
    }
    let clock = examine_clock(&cpus)?;
    let sleep_overshoot_ns = Distribution::of(&start(overshoot)?.join().unwrap_or_default());
    let stalls = watch(&cpus)?;
    let udp =
        UdpPair::open(may_spin).and_then(UdpPair::time).map_err(FlowError::io("time UDP over loopback"))?;
    let tcp = time_tcp(may_spin).map_err(FlowError::io("time TCP over loopback"))?;
    let floor = |protocol, rtt: &Histogram| Floor { protocol, rtt_ns: Distribution::of(rtt) };
    if clock.backwards > 0 {
        caveats.push(Caveat::ClockWentBack { by_ns: clock.backwards_max_ns });
    }
    if stalls.sum_ns * 20 > stalls.watched_ns {
        let share = to_percent(stalls.sum_ns as f64 / stalls.watched_ns as f64);
        caveats.push(Caveat::ProcessorsTaken { share });
    }
    Ok(Instrument {
        schema: INSTRUMENT_SCHEMA.to_owned(),
        bdp: env!("CARGO_PKG_VERSION").to_owned(),
        kernel: process::kernel_release(),
        cpus: cpus.len() as u32,
        clock,
        sleep_overshoot_ns,
        stalls,
        floors: vec![floor(FloorProtocol::Udp, &udp), floor(FloorProtocol::Tcp, &tcp)],
        caveats,
    })
}

fn examine_clock(cpus: &[usize]) -> Result<ClockFacts> {
    let mut step_ns = u64::MAX;
    let began = clock::monotonic_ns();
    let mut last = began;
    for _ in 0..READINGS {
        let now = clock::monotonic_ns();
        if now > last {
            step_ns = step_ns.min(now - last);
        }
        last = now;
    }
    let cost_ps = (last - began) * 1000 / READINGS;
    let [compared, backwards, backwards_max_ns] = match cpus {
        [first, .., second] => compare(*first, *second)?,
        _ => [0; 3],
    };
    let source = std::fs::read_to_string("/sys/devices/system/clocksource/clocksource0/current_clocksource");
    let source = source.ok().map(|name| name.trim().to_owned()).filter(|name| !name.is_empty());
    Ok(ClockFacts { source, step_ns, cost_ps, compared, backwards, backwards_max_ns })
}

/// Compares the clocks of two processors that show each other their readings: how often, how often it went back, and
/// by how much at most.
fn compare(one: usize, other: usize) -> Result<[u64; 3]> {
    let latest = Arc::new(AtomicU64::new(0));
    let until = clock::monotonic_ns() + TRIAL_NS / 2;
    let mut threads = Vec::new();
    for cpu in [one, other] {
        let latest = Arc::clone(&latest);
        threads.push(start(move || {
            // If it cannot be pinned, the kernel moves it, which compares as well.
            let _ = process::pin(0, &[cpu]);
            let (mut compared, mut backwards, mut most) = (0, 0, 0);
            loop {
                let seen = latest.load(Ordering::SeqCst);
                let now = clock::monotonic_ns();
                compared += 1;
                if now < seen {
                    backwards += 1;
                    most = most.max(seen - now);
                }
                latest.fetch_max(now, Ordering::SeqCst);
                if now >= until {
                    return [compared, backwards, most];
                }
            }
        })?);
    }
    let found = threads.into_iter().map(|thread| thread.join().unwrap_or_default());
    Ok(found.fold([0; 3], |sum, one| [sum[0] + one[0], sum[1] + one[1], sum[2].max(one[2])]))
}

/// How much longer than asked sleeps take.
fn overshoot() -> Histogram {
    process::sharpen_timers();
    let mut histogram = Histogram::new();
    let until = clock::monotonic_ns() + TRIAL_NS;
    loop {
        let began = clock::monotonic_ns();
        if began >= until {
            return histogram;
        }
        std::thread::sleep(SLEEP);
        let took = clock::monotonic_ns() - began;
        histogram.record(took.saturating_sub(SLEEP.as_nanos() as u64));
    }
}

/// Returns the stalls of threads that only read the clock, one on each processor at the same time.
fn watch(cpus: &[usize]) -> Result<StallFacts> {
    let mut threads = Vec::new();
    for &cpu in cpus.iter().take(MOST_WATCHED) {
        threads.push(start(move || {
            let _ = process::pin(0, &[cpu]);
            let began = clock::monotonic_ns();
            let (mut facts, mut last) = (StallFacts::default(), began);
            while last < began + TRIAL_NS {
                let now = clock::monotonic_ns();
                let gap = now - last;
                if gap > STALL_NS {
                    facts.count += 1;
                    facts.sum_ns += gap;
                    facts.max_ns = facts.max_ns.max(gap);
                }
                last = now;
            }
            StallFacts { watched_ns: last - began, ..facts }
        })?);
    }
    let found = threads.into_iter().map(|thread| thread.join().unwrap_or_default());
    Ok(found.fold(StallFacts::default(), |sum, one| StallFacts {
        watched_ns: sum.watched_ns + one.watched_ns,
        count: sum.count + one.count,
        sum_ns: sum.sum_ns + one.sum_ns,
        max_ns: sum.max_ns.max(one.max_ns),
    }))
}

/// Two sockets, each connected to the other.
struct UdpPair {
    near: UdpSocket,
    far: UdpSocket,
}

impl UdpPair {
    fn open(may_spin: bool) -> io::Result<Self> {
        let (near, far) = (UdpSocket::bind("127.0.0.1:0")?, UdpSocket::bind("127.0.0.1:0")?);
        near.connect(far.local_addr()?)?;
        far.connect(near.local_addr()?)?;
        for socket in [&near, &far] {
            // A lost datagram must not block the test forever.
            socket.set_read_timeout(Some(Duration::from_millis(100)))?;
            socket.set_nonblocking(may_spin)?;
        }
        Ok(Self { near, far })
    }

    fn time(self) -> io::Result<Histogram> {
        let Self { near, far } = self;
        let ended = Arc::new(AtomicBool::new(false));
        let stop = Arc::clone(&ended);
        let echo = start(move || {
            let mut room = [0; MESSAGE_BYTES];
            while !stop.load(Ordering::Relaxed) {
                if let Ok(length) = far.recv(&mut room) {
                    let _ = far.send(&room[..length]);
                }
            }
        })
        .map_err(|e| io::Error::other(e.to_string()))?;
        let histogram = exchanges(|room, sent_ns| {
            near.send(room)?;
            while clock::monotonic_ns() < sent_ns + TRIAL_NS {
                match near.recv(room) {
                    Ok(_) => return Ok(true),
                    Err(e) if poll::is_wait(&e) => {}
                    Err(e) => return Err(e),
                }
            }
            Ok(false)
        })?;
        ended.store(true, Ordering::Relaxed);
        let _ = echo.join();
        Ok(histogram)
    }
}

fn time_tcp(may_spin: bool) -> io::Result<Histogram> {
    let listener = TcpListener::bind("127.0.0.1:0")?;
    let near = TcpStream::connect(listener.local_addr()?)?;
    let (far, _) = listener.accept()?;
    for stream in [&near, &far] {
        stream.set_nodelay(true)?;
        stream.set_nonblocking(may_spin)?;
    }
    let echo = start(move || {
        let mut room = [0; MESSAGE_BYTES];
        // Ends when the other end has closed.
        while read_whole(&far, &mut room).is_ok() {
            if poll::write_whole(&far, &room, TRIAL_NS).is_err() {
                break;
            }
        }
    })
    .map_err(|e| io::Error::other(e.to_string()))?;
    let histogram = exchanges(|room, _| {
        poll::write_whole(&near, room, TRIAL_NS)?;
        read_whole(&near, room).map(|()| true)
    })?;
    drop(near);
    let _ = echo.join();
    Ok(histogram)
}

/// Returns how long exchanges of a message take, one after the other for the time of a trial; `one` returns whether
/// an answer arrived.
fn exchanges(mut one: impl FnMut(&mut [u8], u64) -> io::Result<bool>) -> io::Result<Histogram> {
    let mut histogram = Histogram::new();
    let until = clock::monotonic_ns() + TRIAL_NS;
    let mut room = [0; MESSAGE_BYTES];
    while clock::monotonic_ns() < until {
        let sent_ns = clock::monotonic_ns();
        if one(&mut room, sent_ns)? {
            histogram.record(clock::monotonic_ns() - sent_ns);
        }
    }
    Ok(histogram)
}

fn read_whole(mut stream: &TcpStream, room: &mut [u8]) -> io::Result<()> {
    let mut arrived = 0;
    while arrived < room.len() {
        match stream.read(&mut room[arrived..]) {
            Ok(0) => return Err(ErrorKind::UnexpectedEof.into()),
            Ok(more) => arrived += more,
            Err(e) if poll::is_wait(&e) => {}
            Err(e) => return Err(e),
        }
    }
    Ok(())
}
