//! The smoltcp stack in this process: a stack for small devices, with its Reno and CUBIC.

use std::cell::Cell;
use std::collections::{BTreeMap, VecDeque};
use std::net::{IpAddr, SocketAddr};

use bdp_model::units::Nanos;
use smoltcp::iface::{Config, Interface, SocketHandle, SocketSet};
use smoltcp::phy::{Checksum, Device, DeviceCapabilities, Medium};
use smoltcp::socket::tcp::{CongestionControl, Socket, SocketBuffer, State};
use smoltcp::time::Instant;
use smoltcp::wire::{HardwareAddress, IpCidr};

use crate::agenda::Agenda;
use crate::pattern::{Crc, PIECE, bytes_from};
use crate::segment::{ends, intact, seal};
use crate::socket::{Command, SocketId, SocketOptions, SocketReport, SocketState};
use crate::{Done, Settings, Stack, StackError, Step};

const NAME: &str = "smoltcp";
/// Version pinned by the lock file.
const VERSION: &str = "smoltcp 0.14.0";
/// Default receive buffer: the size that Linux's autotuning reaches in the lab.
const RECEIVE_BYTES: u64 = 3 << 20;
/// Default send buffer: the size that Linux's autotuning reaches in the lab.
const SEND_BYTES: u64 = 4 << 20;
/// Largest buffer that smoltcp accepts.
const BUFFER_MAX: u64 = 1 << 30;
/// Maximum rounds between sockets and interface at one moment; more counts as an endless loop.
const ROUNDS: u32 = 1_000_000;

thread_local! {
    /// Current time in milliseconds for timestamps, as smoltcp calls a function without arguments.
    static NOW_MS: Cell<u32> = const { Cell::new(0) };
}

/// smoltcp on one host. Each socket has its own interface, as smoltcp scans all sockets of an interface for each packet, which would be
/// a thousand times slower with a thousand sockets.
pub struct Smoltcp {
    settings: Settings,
    lanes: Vec<Lane>,
    by_id: BTreeMap<SocketId, usize>,
    /// Lanes by local port and remote end; listening lanes by local port alone.
    connected: BTreeMap<(u16, SocketAddr), usize>,
    listening: BTreeMap<u16, usize>,
    /// Deadlines of the lanes.
    timers: Agenda,
    /// Lanes with work to do in this step.
    touched: Vec<usize>,
    /// For packets to no known socket, which are answered with a reset.
    rest: (Interface, SocketSet<'static>, Wire),
}

/// A socket and its own interface.
struct Lane {
    interface: Interface,
    sockets: SocketSet<'static>,
    wire: Wire,
    held: Held,
    /// Port on which it listens or listened.
    port: Option<u16>,
    touched: bool,
}

/// A socket and its pending work.
struct Held {
    handle: SocketHandle,
    report: SocketReport,
    /// Bytes still to be passed to the stack; `None` for no limit.
    to_send: Option<u64>,
    /// Bytes that may still be read.
    to_receive: Option<u64>,
    finish: bool,
    finished: bool,
    crc: Crc,
}

impl Smoltcp {
    /// Creates a stack with these settings.
    pub fn new(settings: Settings) -> Result<Self, StackError> {
        let refused = |what: &str| StackError::Unsupported { stack: NAME.to_owned(), what: what.to_owned() };
        let tcp = &settings.tcp;
        if tcp.sack == Some(false) {
            return Err(refused("disabling SACK"));
        }
        if tcp.window_scaling == Some(false) {
            return Err(refused("disabling window scaling"));
        }
        if tcp.initial_window.is_some() {
            return Err(refused("an initial window setting"));
        }
        if tcp.ecn.is_some_and(|ecn| ecn != bdp_model::case::tcp_settings::Ecn::Off) {
            return Err(refused("ECN"));
        }
        let (interface, wire) = interface(&settings, 0)?;
        let rest = (interface, SocketSet::new(Vec::new()), wire);
        Ok(Self {
            settings,
            lanes: Vec::new(),
            by_id: BTreeMap::new(),
            connected: BTreeMap::new(),
            listening: BTreeMap::new(),
            timers: Agenda::default(),
            touched: Vec::new(),
            rest,
        })
    }

    fn add(&mut self, id: SocketId, options: &SocketOptions) -> Result<usize, StackError> {
        let refused = |what: String| StackError::Unsupported { stack: NAME.to_owned(), what };
        let tcp = &self.settings.tcp;
        let bytes = |asked: Option<u64>, usual: u64| {
            usize::try_from(asked.unwrap_or(usual).clamp(1, BUFFER_MAX)).unwrap_or(usize::MAX)
        };
        // Linux uses half of its buffer as window; smoltcp uses all of it.
        let receive = options.window_bytes.or(tcp.receive_buffer.map(|buffer| buffer.as_bytes() / 2));
        let send = tcp.send_buffer.map(|buffer| buffer.as_bytes());
        let buffer = |bytes| SocketBuffer::new(vec![0; bytes]);
        let mut socket = Socket::new(buffer(bytes(receive, RECEIVE_BYTES)), buffer(bytes(send, SEND_BYTES)));
        socket.set_congestion_control(match options.congestion.as_deref().or(tcp.congestion.as_deref()) {
            Some("reno") => CongestionControl::Reno,
            None | Some("cubic") => CongestionControl::Cubic,
            Some("none") => CongestionControl::None,
            Some(other) => {
                return Err(refused(format!(
                    "the congestion control '{other}' (it has reno, cubic and none)"
                )));
            }
        });
        if options.mss_bytes.is_some() {
            return Err(refused("a segment size setting".to_owned()));
        }
        socket.set_nagle_enabled(!options.nodelay);
        if tcp.timestamps == Some(true) {
            socket.set_tsval_generator(Some(|| NOW_MS.get()));
        }
        let lane = self.lanes.len();
        let (interface, wire) = interface(&self.settings, lane as u64 + 1)?;
        let mut sockets = SocketSet::new(Vec::new());
        let held = Held {
            handle: sockets.add(socket),
            report: SocketReport { socket: id, ..SocketReport::default() },
            to_send: Some(0),
            to_receive: Some(0),
            finish: false,
            finished: false,
            crc: Crc::default(),
        };
        self.lanes.push(Lane { interface, sockets, wire, held, port: None, touched: false });
        self.by_id.insert(id, lane);
        Ok(lane)
    }

    fn touch(&mut self, lane: usize) {
        if !std::mem::replace(&mut self.lanes[lane].touched, true) {
            self.touched.push(lane);
        }
    }

    /// Passes a packet to its socket.
    fn arrived(&mut self, packet: Vec<u8>) {
        if !intact(&packet) {
            return;
        }
        let lane = ends(&packet).and_then(|(port, peer, opens)| {
            let connected = self.connected.get(&(port, peer)).copied();
            let over = |&lane: &usize| {
                matches!(self.lanes[lane].held.report.state, SocketState::Closed | SocketState::Lost)
            };
            if !opens || connected.is_some_and(|lane| !over(&lane)) {
                return connected;
            }
            // A listening socket becomes the first connection.
            let Some(lane) = self.listening.remove(&port) else { return connected };
            self.connected.insert((port, peer), lane);
            Some(lane)
        });
        let Some(lane) = lane else { return self.rest.2.arrived.push_back(packet) };
        self.lanes[lane].wire.arrived.push_back(packet);
        self.touch(lane);
    }

    fn command(&mut self, command: Command) -> Result<(), StackError> {
        let failed =
            |what: &str, e: &dyn std::fmt::Display| StackError::Failed(format!("smoltcp can't {what}: {e}"));
        let more = |left: &mut Option<u64>, bytes: Option<u64>| {
            *left = left.zip(bytes).map(|(left, bytes)| left.saturating_add(bytes));
        };
        match command {
            Command::Listen { socket, port, options } => {
                let index = self.add(socket, &options)?;
                self.listening.insert(port, index);
                self.lanes[index].port = Some(port);
                self.touch(index);
                self.lanes[index].socket().listen(port).map_err(|e| failed("listen", &e))
            }
            Command::Connect { socket, from, to, options } => {
                let index = self.add(socket, &options)?;
                self.connected.insert((from.port(), to), index);
                self.touch(index);
                let lane = &mut self.lanes[index];
                lane.held.report.state = SocketState::Connecting;
                let socket = lane.sockets.get_mut::<Socket<'_>>(lane.held.handle);
                socket.connect(lane.interface.context(), to, from).map_err(|e| failed("connect", &e))
            }
            other => {
                let id = other.socket();
                let index = self.by_id.get(&id).copied();
                let index = index.ok_or_else(|| StackError::Failed(format!("socket {id} does not exist")))?;
                self.touch(index);
                let lane = &mut self.lanes[index];
                match other {
                    Command::Send { bytes, .. } => more(&mut lane.held.to_send, bytes),
                    Command::Receive { bytes, .. } => more(&mut lane.held.to_receive, bytes),
                    Command::Finish { .. } => lane.held.finish = true,
                    _ => lane.socket().abort(),
                }
                Ok(())
            }
        }
    }
}

impl Stack for Smoltcp {
    fn version(&self) -> &str {
        VERSION
    }

    fn step(&mut self, step: Step, done: &mut Done) -> Result<(), StackError> {
        let now = Instant::from_micros((step.now.as_ns() / 1_000) as i64);
        NOW_MS.set((step.now.as_ns() / 1_000_000) as u32);
        for command in step.commands {
            self.command(command)?;
        }
        step.packets.into_iter().for_each(|packet| self.arrived(packet));
        let mut due = 0;
        while let Some(lane) = self.timers.due(step.now.as_ns(), due) {
            self.touch(lane);
            due = lane + 1;
        }
        let (interface, sockets, wire) = &mut self.rest;
        if !wire.arrived.is_empty() {
            interface.poll(now, wire, sockets);
            done.packets.append(&mut wire.sent);
        }
        for index in std::mem::take(&mut self.touched) {
            let lane = &mut self.lanes[index];
            lane.touched = false;
            let next = lane.run(now, done)?;
            // It listened, or listens again after a failed handshake.
            if let Some(port) = lane.port.filter(|_| lane.held.report.state == SocketState::Listening) {
                self.listening.insert(port, index);
            }
            // Its clock has microseconds: what is due within the current one is done in the next.
            let next = next.map(|at| (at * 1_000).max((step.now.as_ns() / 1_000 + 1) * 1_000));
            self.timers.set(index, next);
        }
        done.next = self.timers.earliest().map(Nanos);
        Ok(())
    }
}

/// Creates the interface of a host, with its own random numbers.
fn interface(settings: &Settings, number: u64) -> Result<(Interface, Wire), StackError> {
    let mut wire = Wire { mtu: settings.mtu as usize, ..Wire::default() };
    let mut config = Config::new(HardwareAddress::Ip);
    config.random_seed = settings.seed.wrapping_add(number.wrapping_mul(0x9e37_79b9_7f4a_7c15));
    let mut interface = Interface::new(config, &mut wire, Instant::ZERO);
    let mut full = false;
    interface.update_ip_addrs(|addresses| {
        for (address, prefix) in &settings.addresses {
            full |= addresses.push(IpCidr::new((*address).into(), *prefix)).is_err();
        }
    });
    if full {
        let what = format!("{} addresses", settings.addresses.len());
        return Err(StackError::Unsupported { stack: NAME.to_owned(), what });
    }
    // On a medium without neighbours a gateway only states that a route exists.
    let routed = settings.addresses.iter().try_for_each(|(address, _)| match address {
        IpAddr::V4(own) => interface.routes_mut().add_default_ipv4_route(*own).map(drop),
        IpAddr::V6(own) => interface.routes_mut().add_default_ipv6_route(*own).map(drop),
    });
    routed.map_err(|e| StackError::Failed(format!("smoltcp rejects the route: {e}")))?;
    Ok((interface, wire))
}

impl Lane {
    fn socket(&mut self) -> &mut Socket<'static> {
        self.sockets.get_mut(self.held.handle)
    }

    /// Runs the socket as far as possible at this moment; returns when it must run again, in microseconds.
    fn run(&mut self, now: Instant, done: &mut Done) -> Result<Option<u64>, StackError> {
        let before = self.held.report.clone();
        let mut rounds = 0;
        loop {
            // It receives and sends all it can, and again if that freed space or gave data to read.
            self.interface.poll(now, &mut self.wire, &mut self.sockets);
            if !self.held.exchange(self.sockets.get_mut(self.held.handle)) {
                break;
            }
            rounds += 1;
            if rounds > ROUNDS {
                return Err(StackError::Failed("smoltcp does not become idle".to_owned()));
            }
        }
        done.packets.append(&mut self.wire.sent);
        self.held.look(self.sockets.get(self.held.handle));
        if self.held.report != before {
            done.sockets.push(self.held.report.clone());
        }
        let next = self.interface.poll_at(now, &self.sockets);
        Ok(next.map(|at| at.total_micros().max(0) as u64))
    }
}

impl Held {
    /// Exchanges data with the stack; returns whether there was any.
    fn exchange(&mut self, socket: &mut Socket<'_>) -> bool {
        let mut moved = false;
        while socket.can_send() && self.to_send != Some(0) {
            let most = self.to_send.map_or(PIECE, |left| usize::try_from(left).unwrap_or(PIECE));
            let taken = socket.send_slice(bytes_from(self.report.sent_bytes, most)).unwrap_or(0);
            if taken == 0 {
                break;
            }
            self.report.sent_bytes += taken as u64;
            self.to_send = self.to_send.map(|left| left - taken as u64);
            moved = true;
        }
        while socket.can_recv() && self.to_receive != Some(0) {
            let most = self.to_receive.map_or(usize::MAX, |left| usize::try_from(left).unwrap_or(usize::MAX));
            let read = socket.recv(|bytes| {
                let bytes = &bytes[..bytes.len().min(most)];
                self.crc.update(bytes);
                (bytes.len(), bytes.len())
            });
            let Ok(read @ 1..) = read else { break };
            self.report.received_bytes += read as u64;
            self.to_receive = self.to_receive.map(|left| left - read as u64);
            moved = true;
        }
        if self.finish && !self.finished && self.to_send == Some(0) && socket.may_send() {
            socket.close();
            self.finished = true;
            moved = true;
        }
        moved
    }

    fn look(&mut self, socket: &Socket<'_>) {
        let was = self.report.state;
        let state = socket.state();
        let received_end =
            matches!(state, State::CloseWait | State::LastAck | State::Closing | State::TimeWait);
        if received_end && socket.recv_queue() == 0 && was != SocketState::Listening {
            self.report.ended = true;
        }
        self.report.received_crc = self.crc.value();
        self.report.state = match state {
            State::Listen => SocketState::Listening,
            State::SynSent | State::SynReceived => SocketState::Connecting,
            State::TimeWait => SocketState::Closed,
            State::Closed if self.finished && self.report.ended => SocketState::Closed,
            State::Closed => SocketState::Lost,
            _ => SocketState::Open,
        };
    }
}

/// Packets on their way into and out of the stack.
#[derive(Debug, Default)]
struct Wire {
    mtu: usize,
    arrived: VecDeque<Vec<u8>>,
    sent: Vec<Vec<u8>>,
}

/// An arriving packet.
struct Arrived(Vec<u8>);

/// Buffer for a departing packet.
struct Leaving<'a>(&'a mut Vec<Vec<u8>>);

impl Device for Wire {
    type RxToken<'a> = Arrived;
    type TxToken<'a> = Leaving<'a>;

    fn receive(&mut self, _: Instant) -> Option<(Arrived, Leaving<'_>)> {
        Some((Arrived(self.arrived.pop_front()?), Leaving(&mut self.sent)))
    }

    fn transmit(&mut self, _: Instant) -> Option<Leaving<'_>> {
        Some(Leaving(&mut self.sent))
    }

    fn capabilities(&self) -> DeviceCapabilities {
        let mut capabilities = DeviceCapabilities::default();
        capabilities.medium = Medium::Ip;
        capabilities.max_transmission_unit = self.mtu;
        // Checksums of segments are verified and written by this crate.
        (capabilities.checksum.ipv4, capabilities.checksum.tcp) = (Checksum::None, Checksum::None);
        capabilities
    }
}

impl smoltcp::phy::RxToken for Arrived {
    fn consume<R, F: FnOnce(&[u8]) -> R>(self, take: F) -> R {
        take(&self.0)
    }
}

impl smoltcp::phy::TxToken for Leaving<'_> {
    fn consume<R, F: FnOnce(&mut [u8]) -> R>(self, length: usize, fill: F) -> R {
        let mut packet = vec![0; length];
        let result = fill(&mut packet);
        seal(&mut packet);
        self.0.push(packet);
        result
    }
}
