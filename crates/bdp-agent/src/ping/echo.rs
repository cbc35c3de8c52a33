//! Messages echoed by `bdp serve`, in a session of its protocol (`docs/protocol.md`).

use std::io::{self, ErrorKind, Read, Write};
use std::net::{SocketAddr, TcpStream};
use std::os::fd::AsFd;
use std::sync::atomic::AtomicBool;
use std::time::{Duration, Instant};

use bdp_model::probes::ping::PingRequest;
use bdp_sys::poll;
use bdp_sys::socket::{self, TcpOptions};
use bdp_sys::stamp::{Stamp, StampedSocket};
use bdp_wire::control::Request;
use bdp_wire::echo::{ECHO_BYTES, Echo, LONGEST_ECHO};
use bdp_wire::session::{Key, Kind, Ticket};

use super::exchange::{Arrival, Carrier, Took};
use super::route::dialling;
use crate::client::control::{Control, GREETING_DEADLINE, Pending};
use bdp_flow::error::FlowError;
use bdp_flow::session::dial;
use bdp_flow::session::error::{Result, SessionError};

/// How long a message may stand before a full connection takes it.
const WRITE_PATIENCE_NS: u64 = 1_000_000_000;
/// How often the server is asked something, so that it does not take the session for a silent one.
const KEEP_ALIVE: Duration = Duration::from_secs(20);

/// A session in which messages are echoed.
pub(super) struct EchoSession {
    control: Control,
    asked: Option<Pending>,
    asked_at: Instant,
}

impl EchoSession {
    /// Opens a session at the first address that answers.
    pub(super) fn open(
        request: &PingRequest,
        token: Option<&str>,
        addresses: &[SocketAddr],
        options: &TcpOptions,
        cancel: &AtomicBool,
    ) -> Result<Self> {
        let options = TcpOptions { mss: Some(dial::CONTROL_MSS), ..options.clone() };
        let (stream, address) = dial::connect_any(addresses, &dialling(request), &options, cancel)?;
        let control = Control::greet(stream, address, token, GREETING_DEADLINE)?;
        Ok(Self { control, asked: None, asked_at: Instant::now() })
    }

    /// Returns the server's address.
    pub(super) fn address(&self) -> SocketAddr {
        self.control.address
    }

    /// Sends the server a periodic request.
    pub(super) fn keep_alive(&mut self) -> Result<()> {
        if self.asked_at.elapsed() < KEEP_ALIVE {
            return Ok(());
        }
        self.asked_at = Instant::now();
        if let Some(asked) = self.asked.take() {
            self.control.poll(asked, Duration::ZERO)?;
        }
        self.asked = Some(self.control.ask(Request::Facts)?);
        Ok(())
    }

    /// Returns datagrams from the address of this session.
    pub(super) fn datagrams(&self, request: &PingRequest) -> Result<Datagrams> {
        let message = message(request)?;
        let from = self.control.local_address().map(|local| (local.ip(), 0).into());
        let device = request.bind_device.as_deref();
        let socket = socket::connect_udp(from, self.control.address, device, request.dscp)?;
        let mut socket = StampedSocket::over(socket)?;
        if request.stamps {
            socket.ask_stamps()?;
        }
        Ok(Datagrams { socket, key: self.control.key, room: vec![0; message.len() + 1], message })
    }

    /// Returns a connection.
    pub(super) fn connection(
        &self,
        request: &PingRequest,
        options: &TcpOptions,
        cancel: &AtomicBool,
    ) -> Result<Connection> {
        let message = message(request)?;
        let options = TcpOptions { nodelay: true, ..options.clone() };
        let (mut stream, _) =
            dial::connect_any(&[self.control.address], &dialling(request), &options, cancel)?;
        // A connection of its kind says by its stream's number how long its messages are.
        let ticket = Ticket { key: self.control.key, flow: 0, stream: message.len() as u32 };
        stream.write_all(&ticket.encode(Kind::Echo)).map_err(FlowError::io("open an echo connection"))?;
        Ok(Connection { stream, key: self.control.key, room: vec![0; message.len()], arrived: 0, message })
    }
}

fn message(request: &PingRequest) -> Result<Vec<u8>> {
    let length = request.payload.map_or(ECHO_BYTES, |p| p.as_bytes() as usize);
    if !(ECHO_BYTES..=LONGEST_ECHO).contains(&length) {
        return Err(SessionError::Request(format!(
            "an echo message must have {ECHO_BYTES} to {LONGEST_ECHO} bytes: it starts with the session, \
             a number and the server's timestamps"
        )));
    }
    Ok(vec![0; length])
}

/// Messages as datagrams.
pub(super) struct Datagrams {
    socket: StampedSocket,
    key: Key,
    message: Vec<u8>,
    room: Vec<u8>,
}

impl Carrier for Datagrams {
    fn send(&mut self, number: u64) -> io::Result<()> {
        Echo { key: self.key, number, far: None }.put(&mut self.message);
        self.socket.send(&self.message)
    }

    fn receive(&mut self) -> io::Result<Took> {
        match self.socket.receive(&mut self.room) {
            Ok((length, stamp)) => Ok(took(&self.room[..length], self.key, stamp)),
            Err(e) if matches!(e.kind(), ErrorKind::WouldBlock | ErrorKind::Interrupted) => Ok(Took::Nothing),
            Err(e) => Err(e),
        }
    }

    fn stamped(&self) -> Option<&StampedSocket> {
        Some(&self.socket)
    }
}

/// Messages on a connection.
pub(super) struct Connection {
    stream: TcpStream,
    key: Key,
    message: Vec<u8>,
    room: Vec<u8>,
    /// Bytes of the incomplete message that have arrived.
    arrived: usize,
}

impl Carrier for Connection {
    fn send(&mut self, number: u64) -> io::Result<()> {
        Echo { key: self.key, number, far: None }.put(&mut self.message);
        poll::write_whole(&self.stream, &self.message, WRITE_PATIENCE_NS)
    }

    fn receive(&mut self) -> io::Result<Took> {
        match (&self.stream).read(&mut self.room[self.arrived..]) {
            Ok(0) => return Err(ErrorKind::UnexpectedEof.into()),
            Ok(length) => self.arrived += length,
            Err(e) if matches!(e.kind(), ErrorKind::WouldBlock | ErrorKind::Interrupted) => {
                return Ok(Took::Nothing);
            }
            Err(e) => return Err(e),
        }
        if self.arrived < self.room.len() {
            return Ok(Took::Other);
        }
        self.arrived = 0;
        Ok(took(&self.room, self.key, Stamp::default()))
    }

    fn wait(&self, wait_ns: u64) {
        // If waiting fails, the caller asks again.
        let _ = poll::wait_readable(self.stream.as_fd(), wait_ns);
    }
}

fn took(message: &[u8], key: Key, stamp: Stamp) -> Took {
    match Echo::read(message).filter(|echo| echo.key == key) {
        Some(echo) => Took::Answer(Arrival { number: echo.number, stamp, far: echo.far }),
        None => Took::Other,
    }
}
