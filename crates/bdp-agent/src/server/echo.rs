//! Connections on which messages are echoed, with the times of their arrival and return, or unchanged.

use std::io::{self, ErrorKind, Read, Write};
use std::net::{Shutdown, TcpStream};
use std::os::fd::AsFd;

use bdp_sys::{clock, poll, process};
use bdp_wire::echo::{Echo, FarStamps};
use bdp_wire::session::{Key, PROBE_BYTES, Probe};

use super::places::Activity;
use bdp_flow::spin::Spin;

/// How long a thread that has just answered spins for the next message: a client that asks as fast as answers come
/// then finds it awake.
pub(super) const SPIN_NS: u64 = 50_000;
/// How long a client may take to receive its echo.
const WRITE_PATIENCE_NS: u64 = 5_000_000_000;
/// Longest wait before the connection is looked at again.
const CHECK_NS: u64 = 500_000_000;

/// Echoes each message of this length, until the connection ends.
pub(super) fn answer_on(stream: &TcpStream, key: Key, length: usize, activity: &Activity) {
    // However it ends, the client sees that it has.
    let _ = answer_until_end(stream, key, length, activity);
    let _ = stream.shutdown(Shutdown::Both);
}

fn answer_until_end(mut stream: &TcpStream, key: Key, length: usize, activity: &Activity) -> io::Result<()> {
    process::sharpen_timers();
    stream.set_nonblocking(true)?;
    let (mut room, mut arrived) = (vec![0; length], 0);
    let mut spin = Spin::new(SPIN_NS);
    loop {
        match stream.read(&mut room[arrived..]) {
            Ok(0) => return Ok(()),
            Ok(more) => {
                spin.end();
                arrived += more;
            }
            Err(e) if e.kind() == ErrorKind::WouldBlock => {
                if !spin.goes_on(clock::monotonic_ns()) {
                    poll::wait_readable(stream.as_fd(), CHECK_NS)?;
                }
                continue;
            }
            Err(e) if e.kind() == ErrorKind::Interrupted => continue,
            Err(e) => return Err(e),
        }
        if arrived < length {
            continue;
        }
        arrived = 0;
        let arrived_ns = clock::unix_ns();
        let Some(mut echo) = Echo::read(&room).filter(|echo| echo.key == key) else { return Ok(()) };
        echo.far = Some(FarStamps { arrived_ns, by_kernel: false, returned_ns: clock::unix_ns() });
        echo.put(&mut room);
        poll::write_whole(stream, &room, WRITE_PATIENCE_NS)?;
        activity.note_heard();
        spin.begin(clock::monotonic_ns());
    }
}

/// Echoes each probe of this session, until the connection ends.
pub(super) fn answer_probes_on(mut stream: &TcpStream, key: Key, activity: &Activity) {
    let mut room = [0; PROBE_BYTES];
    while stream.read_exact(&mut room).is_ok() {
        activity.note_heard();
        if Probe::decode(&room).is_none_or(|probe| probe.key != key) || stream.write_all(&room).is_err() {
            break;
        }
    }
    let _ = stream.shutdown(Shutdown::Both);
}
