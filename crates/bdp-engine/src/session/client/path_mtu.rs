//! The path's MTU before datagrams flow: echoes as long as the path is known to hold, which nobody may fragment
//! (RFC 1191, RFC 8201). What a router refuses it tells the kernel of the end that sent it, and the next echo is shorter; what it
//! refuses on the way back it tells the server's kernel, whose next answer goes as fragments.

use std::io::ErrorKind;
use std::net::{SocketAddr, UdpSocket};
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

use bdp_model::measurement::MeasureRequest;
use bdp_sys::{socket, udp};
use bdp_wire::echo::{ECHO_BYTES, Echo};
use bdp_wire::session::Key;

use super::super::SessionError;
use super::datagrams;
use crate::EngineError;
use crate::datagram::payload_by_path;

/// How long the first echo is waited for, and each further one twice as long: a slow path must not be flooded.
const FIRST_WAIT: Duration = Duration::from_millis(100);

/// What there is to know.
pub(super) struct Found {
    /// As this end's kernel knows it.
    pub(super) mtu: Option<u32>,
    /// Payload of the echo that was sent last.
    payload: usize,
    is_answered: bool,
}

impl Found {
    /// Where nothing so long came back.
    pub(super) fn caveat(&self) -> Option<String> {
        let Self { mtu, payload, is_answered } = self;
        let mtu = mtu.filter(|_| !is_answered)?;
        Some(format!(
            "no datagram of {payload} B came back, and no router said why: the path may not hold the MTU of {mtu} that is \
             known of it; -l sets smaller datagrams"
        ))
    }
}

/// Sends echoes until one of full length comes back, or for as long as `patience`.
pub(super) fn discover(
    request: &MeasureRequest,
    address: SocketAddr,
    key: Key,
    patience: Duration,
    cancel: &AtomicBool,
) -> Result<Found, SessionError> {
    let socket = datagrams::whole(request, address)?;
    let since = Instant::now();
    let (mut wait, mut number) = (FIRST_WAIT, 0);
    loop {
        let mtu = udp::path_mtu(&socket);
        let payload = (payload_by_path(&socket, mtu) as usize).max(ECHO_BYTES);
        let mut message = vec![0; payload];
        Echo { key, number, far: None }.put(&mut message);
        number += 1;
        let until = Instant::now() + wait;
        let heard = match socket.send(&message) {
            Ok(_) => await_echo(&socket, &mut message, key, until)?,
            // The kernel has just learned of less, or the device has no room.
            Err(_) => Heard::Failed,
        };
        let found = Found { mtu, payload, is_answered: heard == Heard::Echo };
        if found.is_answered || since.elapsed() >= patience {
            return Ok(found);
        }
        if cancel.load(Ordering::Relaxed) {
            return Err(SessionError::Cancelled);
        }
        if heard == Heard::Nothing || udp::path_mtu(&socket) == mtu {
            // What failed at once fails again at once.
            std::thread::sleep(until.saturating_duration_since(Instant::now()));
            wait = (2 * wait).min(patience);
        }
    }
}

/// What became of an echo.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Heard {
    Echo,
    Failed,
    Nothing,
}

/// Waits for an answer as long as the message.
fn await_echo(
    socket: &UdpSocket,
    message: &mut [u8],
    key: Key,
    until: Instant,
) -> Result<Heard, EngineError> {
    loop {
        let left = until.saturating_duration_since(Instant::now());
        if left.is_zero() {
            return Ok(Heard::Nothing);
        }
        socket::set_receive_deadline(socket, left)?;
        match socket.recv(message) {
            Ok(length) if length == message.len() => {
                if Echo::read(message).is_some_and(|echo| echo.key == key && echo.far.is_some()) {
                    return Ok(Heard::Echo);
                }
            }
            Ok(_) => {}
            Err(e) if matches!(e.kind(), ErrorKind::WouldBlock | ErrorKind::TimedOut) => {}
            Err(e) if e.kind() == ErrorKind::Interrupted => {}
            Err(_) => return Ok(Heard::Failed),
        }
    }
}
