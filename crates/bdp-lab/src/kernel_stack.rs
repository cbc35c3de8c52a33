//! This kernel as a stack that runs in steps, beside stacks that are no kernels: its sockets follow the commands,
//! in their own namespace, and its packets pass through a device without another host behind it. For a guest,
//! whose clock stands still while anything runs.

use std::collections::{BTreeMap, BTreeSet};
use std::io::{ErrorKind, Read, Write};
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr, TcpListener, TcpStream};
use std::os::fd::{AsFd, BorrowedFd};

use bdp_stack::{
    Command, Crc, Done, PIECE, Settings, SocketId, SocketOptions, SocketReport, SocketState, Stack,
    StackError, Step,
};
use bdp_sys::isolate::Network;
use bdp_sys::netlink::{DeviceSettings, HostRoute, Netlink};
use bdp_sys::socket::{self, TcpOptions};
use bdp_sys::tun::{Framing, Tun, VirtioHeader};
use bdp_sys::{namespace, process, sysctl, tcp_info};

use crate::agent::{quiet_sysctls, routing_sysctls};

const DEVICE: &str = "link0";
const TRANSMIT_QUEUE: u32 = 16_384;
/// Largest packet.
const PACKET_BYTES: usize = 1 << 16;
/// States of `TCP_INFO` (`include/net/tcp_states.h`).
const SYN_SENT: u8 = 2;
const SYN_RECEIVED: u8 = 3;
const TIME_WAIT: u8 = 6;
const CLOSED: u8 = 7;

/// The kernel, as seen in its own namespace.
pub struct KernelStack {
    version: String,
    network: Network,
    netlink: Netlink,
    device: Tun,
    /// Address that it listens on: any.
    any: IpAddr,
    /// Other hosts that it has a route to.
    known: BTreeSet<IpAddr>,
    initial_window: Option<u32>,
    sockets: BTreeMap<SocketId, Held>,
    room: Vec<u8>,
}

/// A socket and its pending commands.
struct Held {
    end: End,
    report: SocketReport,
    to_send: Option<u64>,
    to_receive: Option<u64>,
    finish: bool,
    finished: bool,
    crc: Crc,
}

enum End {
    Listening(TcpListener),
    Connection(TcpStream),
    Gone,
}

fn failed(error: impl std::fmt::Display) -> StackError {
    StackError::Failed(error.to_string())
}

impl KernelStack {
    /// Creates it with these settings, and sysctls of its namespace, which the calling thread enters.
    pub fn new(settings: &Settings, sysctls: &BTreeMap<String, String>) -> Result<Self, StackError> {
        namespace::enter_own_network().map_err(failed)?;
        let network = Network::of_this_thread().map_err(failed)?;
        let ipv6 = settings.addresses.iter().any(|(address, _)| address.is_ipv6());
        for (name, value) in routing_sysctls(false, ipv6).into_iter().chain(quiet_sysctls(ipv6)) {
            sysctl::write(name, value).map_err(failed)?;
        }
        let device = Tun::create(DEVICE, Framing::Segments).map_err(failed)?;
        let mut netlink = Netlink::open().map_err(failed)?;
        let of_device = DeviceSettings {
            mtu: Some(settings.mtu),
            transmit_queue: Some(TRANSMIT_QUEUE),
            gso_max_segments: Some(1),
        };
        netlink.bring_up(DEVICE, &of_device).map_err(failed)?;
        for &(address, prefix) in &settings.addresses {
            netlink.add_address(DEVICE, address, prefix).map_err(failed)?;
        }
        for (name, value) in sysctls {
            sysctl::write(name, value).map_err(failed)?;
        }
        Ok(Self {
            version: format!("Linux {}", process::kernel_release()),
            network,
            netlink,
            device,
            any: if ipv6 { Ipv6Addr::UNSPECIFIED.into() } else { Ipv4Addr::UNSPECIFIED.into() },
            known: BTreeSet::new(),
            initial_window: settings.tcp.initial_window,
            sockets: BTreeMap::new(),
            room: vec![0; PACKET_BYTES],
        })
    }

    fn add(&mut self, socket: SocketId, end: End, state: SocketState) {
        let held = Held {
            end,
            report: SocketReport { socket, state, ..SocketReport::default() },
            to_send: Some(0),
            to_receive: Some(0),
            finish: false,
            finished: false,
            crc: Crc::default(),
        };
        self.sockets.insert(socket, held);
    }

    /// Makes sure of a route to a host.
    fn route(&mut self, to: IpAddr) -> Result<(), StackError> {
        if self.known.insert(to) {
            let route = HostRoute { to, via: None, device: DEVICE, initial_window: self.initial_window };
            self.netlink.add_route(&route).map_err(failed)?;
        }
        Ok(())
    }

    fn command(&mut self, command: Command) -> Result<(), StackError> {
        let id = command.socket();
        match command {
            Command::Listen { port, options, .. } => {
                self.network.enter().map_err(failed)?;
                let address = SocketAddr::new(self.any, port);
                let listener = socket::listen(address, &options_of(&options), 1).map_err(failed)?;
                listener.set_nonblocking(true).map_err(failed)?;
                self.add(id, End::Listening(listener), SocketState::Listening);
            }
            Command::Connect { from, to, options, .. } => {
                self.network.enter().map_err(failed)?;
                self.route(to.ip())?;
                let stream = socket::start_connect(to, Some(from), &options_of(&options)).map_err(failed)?;
                self.add(id, End::Connection(stream), SocketState::Connecting);
            }
            other => {
                let more = |left: &mut Option<u64>, bytes: Option<u64>| {
                    *left = left.zip(bytes).map(|(left, bytes)| left.saturating_add(bytes));
                };
                let held = self.sockets.get_mut(&id);
                let held = held.ok_or_else(|| failed(format!("socket {id} does not exist")))?;
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
        Ok(())
    }
}

fn options_of(options: &SocketOptions) -> TcpOptions {
    TcpOptions {
        congestion: options.congestion.clone(),
        mss: options.mss_bytes,
        nodelay: options.nodelay,
        window_bytes: options.window_bytes.map(|bytes| u32::try_from(bytes).unwrap_or(u32::MAX)),
        ..TcpOptions::default()
    }
}

/// Source address of a packet.
fn source(packet: &[u8]) -> Option<IpAddr> {
    match packet.first()? >> 4 {
        4 => Some((*packet.get(12..)?.first_chunk::<4>()?).into()),
        6 => Some((*packet.get(8..)?.first_chunk::<16>()?).into()),
        _ => None,
    }
}

impl Stack for KernelStack {
    fn version(&self) -> &str {
        &self.version
    }

    fn step(&mut self, step: Step, done: &mut Done) -> Result<(), StackError> {
        let before: Vec<SocketReport> = self.sockets.values().map(|held| held.report.clone()).collect();
        for command in step.commands {
            self.command(command)?;
        }
        for packet in step.packets {
            if let Some(from) = source(&packet) {
                self.route(from)?;
            }
            self.device.send(&packet, VirtioHeader::default()).map_err(failed)?;
        }
        // Received packets may free room for more, and reads may open a window.
        self.sockets.values_mut().for_each(Held::serve);
        while let Some((length, _)) = self.device.receive(&mut self.room).map_err(failed)? {
            done.packets.push(self.room[..length].to_vec());
        }
        let mut before = before.into_iter().peekable();
        for held in self.sockets.values() {
            let was = before.next_if(|report| report.socket == held.report.socket);
            if was.as_ref() != Some(&held.report) {
                done.sockets.push(held.report.clone());
            }
        }
        Ok(())
    }

    fn wakes(&self) -> Option<BorrowedFd<'_>> {
        Some(self.device.as_fd())
    }
}

impl Held {
    /// Writes what the kernel accepts, reads what it has, and updates the connection's state.
    fn serve(&mut self) {
        if let End::Listening(listener) = &self.end {
            let Ok((stream, _)) = listener.accept() else { return };
            let _ = stream.set_nonblocking(true);
            self.end = End::Connection(stream);
        }
        let End::Connection(stream) = &mut self.end else { return };
        let info = tcp_info::read(&*stream).unwrap_or_default();
        if matches!(info.state, Some(SYN_SENT | SYN_RECEIVED)) {
            self.report.state = SocketState::Connecting;
            return;
        }
        let mut lost = false;
        while self.to_send != Some(0) {
            let most = self.to_send.map_or(PIECE, |left| left.min(PIECE as u64) as usize);
            match stream.write(bdp_stack::bytes_from(self.report.sent_bytes, most)) {
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
                    self.crc.update(&room[..read]);
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
        let info = tcp_info::read(&*stream).unwrap_or_default();
        let orderly = self.finished && self.report.ended;
        self.report.state = match (lost, matches!(info.state, Some(TIME_WAIT | CLOSED))) {
            (false, false) => SocketState::Open,
            (false, true) if orderly => SocketState::Closed,
            _ => SocketState::Lost,
        };
        let in_bytes = |segments: u32| Some(u64::from(segments) * u64::from(info.snd_mss?));
        self.report.received_crc = self.crc.value();
        self.report.cwnd_bytes = info.cwnd_segments.and_then(in_bytes);
        self.report.srtt_ns = info.rtt_ns;
        if self.report.state == SocketState::Lost {
            self.end = End::Gone;
        }
    }
}
