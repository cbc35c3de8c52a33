//! smoltcp in this process: the stack of small devices, with Reno and CUBIC as it has them.

use std::cell::Cell;
use std::collections::VecDeque;
use std::net::IpAddr;

use bdp_model::units::Nanos;
use smoltcp::iface::{Config, Interface, PollResult, SocketHandle, SocketSet};
use smoltcp::phy::{Device, DeviceCapabilities, Medium};
use smoltcp::socket::tcp::{CongestionControl, Socket, SocketBuffer, State};
use smoltcp::time::Instant;
use smoltcp::wire::{HardwareAddress, IpCidr};

use crate::pattern::{PIECE, bytes_from};
use crate::socket::{Command, SocketId, SocketOptions, SocketReport, SocketState};
use crate::{Done, Settings, Stack, StackError, Step};

const NAME: &str = "smoltcp";
/// As the lock file pins it.
const VERSION: &str = "smoltcp 0.14.0";
/// Receive buffer where nothing is asked for: what Linux's autotuning comes to in the lab.
const RECEIVE_BYTES: u64 = 3 << 20;
/// Send buffer likewise.
const SEND_BYTES: u64 = 4 << 20;
/// The most of either that smoltcp takes.
const BUFFER_MAX: u64 = 1 << 30;
/// Rounds between sockets and interface at one moment: more is a loop without end.
const ROUNDS: u32 = 1_000_000;

thread_local! {
    /// The moment in milliseconds, for timestamps: smoltcp asks a function without arguments.
    static NOW_MS: Cell<u32> = const { Cell::new(0) };
}

/// smoltcp on one host.
pub struct Smoltcp {
    interface: Interface,
    sockets: SocketSet<'static>,
    wire: Wire,
    held: Vec<Held>,
    settings: Settings,
}

/// A socket, and what is wanted of it.
struct Held {
    handle: SocketHandle,
    report: SocketReport,
    /// Bytes yet to be given to the stack; `None`: without end.
    to_send: Option<u64>,
    /// Bytes that may yet be read.
    to_receive: Option<u64>,
    finish: bool,
    finished: bool,
    crc: crc32fast::Hasher,
}

impl Smoltcp {
    /// With these settings.
    pub fn new(settings: Settings) -> Result<Self, StackError> {
        let refused = |what: &str| StackError::Unsupported { stack: NAME.to_owned(), what: what.to_owned() };
        let tcp = &settings.tcp;
        if tcp.sack == Some(false) {
            return Err(refused("SACK switched off"));
        }
        if tcp.window_scaling == Some(false) {
            return Err(refused("window scaling switched off"));
        }
        if tcp.initial_window.is_some() {
            return Err(refused("an initial window of one's own"));
        }
        if tcp.ecn.is_some_and(|ecn| ecn != bdp_model::tcp_settings::Ecn::Off) {
            return Err(refused("ECN"));
        }
        let mut wire = Wire { mtu: settings.mtu as usize, ..Wire::default() };
        let mut config = Config::new(HardwareAddress::Ip);
        config.random_seed = settings.seed;
        let mut interface = Interface::new(config, &mut wire, Instant::ZERO);
        let mut full = false;
        interface.update_ip_addrs(|addresses| {
            for (address, prefix) in &settings.addresses {
                full |= addresses.push(IpCidr::new((*address).into(), *prefix)).is_err();
            }
        });
        if full {
            return Err(refused(&format!("{} addresses", settings.addresses.len())));
        }
        // On a medium without neighbours a gateway only says that there is a way.
        let routed = settings.addresses.iter().try_for_each(|(address, _)| match address {
            IpAddr::V4(own) => interface.routes_mut().add_default_ipv4_route(*own).map(drop),
            IpAddr::V6(own) => interface.routes_mut().add_default_ipv6_route(*own).map(drop),
        });
        routed.map_err(|e| StackError::Failed(format!("smoltcp takes no route: {e}")))?;
        Ok(Self { interface, sockets: SocketSet::new(Vec::new()), wire, held: Vec::new(), settings })
    }

    fn add(&mut self, id: SocketId, options: &SocketOptions) -> Result<usize, StackError> {
        let refused = |what: String| StackError::Unsupported { stack: NAME.to_owned(), what };
        let tcp = &self.settings.tcp;
        let bytes = |asked: Option<u64>, usual: u64| {
            usize::try_from(asked.unwrap_or(usual).clamp(1, BUFFER_MAX)).unwrap_or(usize::MAX)
        };
        // Of the buffer that Linux is given, half becomes window; here all of it does.
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
            return Err(refused("a segment size of one's own".to_owned()));
        }
        socket.set_nagle_enabled(!options.nodelay);
        if tcp.timestamps == Some(true) {
            socket.set_tsval_generator(Some(|| NOW_MS.get()));
        }
        let handle = self.sockets.add(socket);
        self.held.push(Held {
            handle,
            report: SocketReport { socket: id, ..SocketReport::default() },
            to_send: Some(0),
            to_receive: Some(0),
            finish: false,
            finished: false,
            crc: crc32fast::Hasher::new(),
        });
        Ok(self.held.len() - 1)
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
                let socket = self.sockets.get_mut::<Socket<'_>>(self.held[index].handle);
                socket.listen(port).map_err(|e| failed("listen", &e))
            }
            Command::Connect { socket, from, to, options } => {
                let index = self.add(socket, &options)?;
                self.held[index].report.state = SocketState::Connecting;
                let socket = self.sockets.get_mut::<Socket<'_>>(self.held[index].handle);
                socket.connect(self.interface.context(), to, from).map_err(|e| failed("connect", &e))
            }
            other => {
                let id = other.socket();
                let held = self.held.iter_mut().find(|held| held.report.socket == id);
                let held = held.ok_or_else(|| StackError::Failed(format!("there is no socket {id}")))?;
                match other {
                    Command::Send { bytes, .. } => more(&mut held.to_send, bytes),
                    Command::Receive { bytes, .. } => more(&mut held.to_receive, bytes),
                    Command::Finish { .. } => held.finish = true,
                    _ => self.sockets.get_mut::<Socket<'_>>(held.handle).abort(),
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
        let before: Vec<SocketReport> = self.held.iter().map(|held| held.report.clone()).collect();
        self.wire.arrived.extend(step.packets);
        let mut rounds = 0;
        loop {
            let mut moved = false;
            for held in &mut self.held {
                moved |= held.exchange(self.sockets.get_mut(held.handle));
            }
            let polled = self.interface.poll(now, &mut self.wire, &mut self.sockets);
            if !moved && polled == PollResult::None {
                break;
            }
            rounds += 1;
            if rounds > ROUNDS {
                return Err(StackError::Failed("smoltcp does not come to rest".to_owned()));
            }
        }
        done.packets.append(&mut self.wire.sent);
        // Its clock has microseconds: what is due within this one is done in the next.
        let at = self
            .interface
            .poll_at(now, &self.sockets)
            .map(|at| Nanos(at.total_micros().max(0) as u64 * 1_000));
        done.next = at.map(|at| at.max(Nanos((step.now.as_ns() / 1_000 + 1) * 1_000)));
        let changed = self.held.iter_mut().zip(before).filter_map(|(held, before)| {
            held.look(self.sockets.get(held.handle));
            (held.report != before).then(|| held.report.clone())
        });
        done.sockets.extend(changed);
        Ok(())
    }
}

impl Held {
    /// Gives the stack what it takes, and takes what it has; whether there was any.
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
        self.report.received_crc = self.crc.clone().finalize();
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

/// The packets on their way into the stack and out of it.
#[derive(Debug, Default)]
struct Wire {
    mtu: usize,
    arrived: VecDeque<Vec<u8>>,
    sent: Vec<Vec<u8>>,
}

/// A packet that arrives.
struct Arrived(Vec<u8>);

/// Room for one that leaves.
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
        self.0.push(packet);
        result
    }
}
