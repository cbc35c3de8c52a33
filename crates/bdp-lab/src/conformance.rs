//! A kernel as the subject of the suite of stacks: the same commands by sockets of its own, the same packets by a device that no other
//! host is behind. For the first process of a guest, whose clock stands still while anything runs.

use std::io::{ErrorKind, Read, Write};
use std::net::{SocketAddr, TcpListener, TcpStream};

use bdp_model::units::Nanos;
use bdp_stack::conformance::{MTU, Outcome, PREFIX, SUBJECT, Subject, run};
use bdp_stack::{Command, SocketOptions, SocketReport, SocketState, StackError};
use bdp_sys::netlink::{DeviceSettings, Netlink};
use bdp_sys::poll::{Interest, Poll};
use bdp_sys::socket::{self, TcpOptions};
use bdp_sys::tun::{Framing, Tun, VirtioHeader};
use bdp_sys::{clock, namespace, sysctl, tcp_info};

use crate::agent::quiet_sysctls;

const DEVICE: &str = "link0";
const TRANSMIT_QUEUE: u32 = 16_384;
/// Bytes of one read or write.
const PIECE: usize = 1 << 16;
/// States of `TCP_INFO` (`include/net/tcp_states.h`).
const SYN_SENT: u8 = 2;
const SYN_RECEIVED: u8 = 3;
const TIME_WAIT: u8 = 6;
const CLOSED: u8 = 7;

/// Holds this kernel against the suite, each point in a namespace of its own.
pub fn of_this_kernel() -> Vec<Outcome> {
    // Namespaces are the thread's.
    let all = || run(|| Kernel::in_own_network().map(|kernel| Box::new(kernel) as Box<dyn Subject>));
    std::thread::scope(|scope| scope.spawn(all).join().unwrap_or_default())
}

/// The kernel, as far as this namespace shows it.
struct Kernel {
    device: Tun,
    poll: Poll,
    sockets: Vec<Held>,
}

/// A socket, and what is wanted of it.
struct Held {
    end: End,
    report: SocketReport,
    to_send: Option<u64>,
    to_receive: Option<u64>,
    finish: bool,
    finished: bool,
    received: Vec<u8>,
}

enum End {
    Listening(TcpListener),
    Connection(TcpStream),
    Gone,
}

fn failed(error: impl std::fmt::Display) -> StackError {
    StackError::Failed(error.to_string())
}

impl Kernel {
    fn in_own_network() -> Result<Self, StackError> {
        namespace::enter_own_network().map_err(failed)?;
        for (name, value) in quiet_sysctls(false) {
            sysctl::write(name, value).map_err(failed)?;
        }
        let device = Tun::create(DEVICE, Framing::Segments).map_err(failed)?;
        let mut netlink = Netlink::open().map_err(failed)?;
        let settings = DeviceSettings {
            mtu: Some(MTU),
            transmit_queue: Some(TRANSMIT_QUEUE),
            gso_max_segments: Some(1),
        };
        netlink.bring_up(DEVICE, &settings).map_err(failed)?;
        netlink.add_address(DEVICE, SUBJECT.into(), PREFIX).map_err(failed)?;
        let poll = Poll::new().map_err(failed)?;
        poll.add(&device, 0, Interest::Read).map_err(failed)?;
        Ok(Self { device, poll, sockets: Vec::new() })
    }

    fn add(&mut self, socket: u32, end: End, state: SocketState) {
        self.sockets.push(Held {
            end,
            report: SocketReport { socket, state, ..SocketReport::default() },
            to_send: Some(0),
            to_receive: Some(0),
            finish: false,
            finished: false,
            received: Vec::new(),
        });
    }

    fn serve(&mut self) {
        self.sockets.iter_mut().for_each(Held::serve);
    }
}

fn options_of(options: &SocketOptions) -> TcpOptions {
    TcpOptions {
        congestion: options.congestion.clone(),
        mss: options.mss_bytes,
        nodelay: options.nodelay,
        ..TcpOptions::default()
    }
}

impl Subject for Kernel {
    fn now(&self) -> Nanos {
        Nanos(clock::monotonic_ns())
    }

    fn command(&mut self, command: Command) -> Result<(), StackError> {
        let id = command.socket();
        match command {
            Command::Listen { port, options, .. } => {
                let address = SocketAddr::from((SUBJECT, port));
                let listener = socket::listen(address, &options_of(&options), 1).map_err(failed)?;
                listener.set_nonblocking(true).map_err(failed)?;
                self.add(id, End::Listening(listener), SocketState::Listening);
            }
            Command::Connect { from, to, options, .. } => {
                let stream = socket::start_connect(to, Some(from), &options_of(&options)).map_err(failed)?;
                self.add(id, End::Connection(stream), SocketState::Connecting);
            }
            other => {
                let more = |left: &mut Option<u64>, bytes: Option<u64>| {
                    *left = left.zip(bytes).map(|(left, bytes)| left.saturating_add(bytes));
                };
                let held = self.sockets.iter_mut().find(|held| held.report.socket == id);
                let held = held.ok_or_else(|| failed(format!("there is no socket {id}")))?;
                match other {
                    Command::Send { bytes, .. } => more(&mut held.to_send, bytes),
                    Command::Receive { bytes, .. } => more(&mut held.to_receive, bytes),
                    Command::Finish { .. } => held.finish = true,
                    _ => {
                        if let End::Connection(stream) = std::mem::replace(&mut held.end, End::Gone) {
                            socket::close_hard(stream);
                        }
                        held.report.state = SocketState::Lost;
                    }
                }
            }
        }
        self.serve();
        Ok(())
    }

    fn arrive(&mut self, packet: Vec<u8>) -> Result<(), StackError> {
        self.device.send(&packet, VirtioHeader::default()).map_err(failed)?;
        self.serve();
        Ok(())
    }

    fn advance(&mut self, until: Nanos) -> Result<Vec<(Nanos, Vec<u8>)>, StackError> {
        let mut room = vec![0; PIECE];
        let mut ready = Vec::new();
        loop {
            self.serve();
            let now = self.now();
            let mut sent = Vec::new();
            while let Some((length, _)) = self.device.receive(&mut room).map_err(failed)? {
                sent.push((now, room[..length].to_vec()));
            }
            if !sent.is_empty() || now >= until {
                return Ok(sent);
            }
            self.poll.wait(&mut ready, Some(until.saturating_sub(now).as_ns())).map_err(failed)?;
        }
    }

    fn socket(&mut self, id: u32) -> Result<SocketReport, StackError> {
        self.serve();
        let held = self.sockets.iter().find(|held| held.report.socket == id);
        let Some(held) = held else { return Ok(SocketReport { socket: id, ..SocketReport::default() }) };
        let received_crc = bdp_stack::crc(&held.received);
        Ok(SocketReport { received_crc, ..held.report.clone() })
    }
}

impl Held {
    /// Gives the kernel what it takes, takes what it has, and looks where the connection stands.
    fn serve(&mut self) {
        if let End::Listening(listener) = &self.end {
            let Ok((stream, _)) = listener.accept() else { return };
            let _ = stream.set_nonblocking(true);
            self.end = End::Connection(stream);
        }
        let End::Connection(stream) = &mut self.end else { return };
        let state = tcp_info::read(&*stream).ok().and_then(|info| info.state);
        if matches!(state, Some(SYN_SENT | SYN_RECEIVED)) {
            self.report.state = SocketState::Connecting;
            return;
        }
        let mut lost = false;
        while self.to_send != Some(0) {
            let most = self.to_send.map_or(PIECE, |left| left.min(PIECE as u64) as usize);
            let begin = self.report.sent_bytes;
            let piece: Vec<u8> = (begin..begin + most as u64).map(bdp_stack::byte_at).collect();
            match stream.write(&piece) {
                Ok(taken) => {
                    self.report.sent_bytes += taken as u64;
                    self.to_send = self.to_send.map(|left| left - taken as u64);
                }
                Err(e) => {
                    lost |= e.kind() != ErrorKind::WouldBlock;
                    break;
                }
            }
        }
        if self.finish && !self.finished && self.to_send == Some(0) {
            self.finished = stream.shutdown(std::net::Shutdown::Write).is_ok();
        }
        let mut room = [0; PIECE];
        while self.to_receive != Some(0) && !self.report.ended {
            let most = self.to_receive.map_or(PIECE, |left| left.min(PIECE as u64) as usize);
            match stream.read(&mut room[..most]) {
                Ok(0) => self.report.ended = true,
                Ok(read) => {
                    self.received.extend(&room[..read]);
                    self.report.received_bytes += read as u64;
                    self.to_receive = self.to_receive.map(|left| left - read as u64);
                }
                Err(e) => {
                    lost |= e.kind() != ErrorKind::WouldBlock;
                    break;
                }
            }
        }
        lost |= stream.take_error().ok().flatten().is_some();
        let over =
            matches!(tcp_info::read(&*stream).ok().and_then(|info| info.state), Some(TIME_WAIT | CLOSED));
        let orderly = self.finished && self.report.ended;
        self.report.state = match (lost, over) {
            (false, false) => SocketState::Open,
            (false, true) if orderly => SocketState::Closed,
            _ => SocketState::Lost,
        };
        if self.report.state == SocketState::Lost {
            self.end = End::Gone;
        }
    }
}
