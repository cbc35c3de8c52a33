//! The server: one port, TCP and UDP, one thread that accepts connections, a thread for each session and for each end
//! of a flow.
//!
//! It never opens connections, and answers a datagram only if that holds the key of a session, with the same bytes;
//! other protocols are added by [`foreign`].

pub mod accept;
pub mod access;
pub mod activity;
mod admission;
pub mod counters;
mod datagrams;
mod echo;
mod event;
pub mod eviction;
pub mod failures;
pub(crate) mod flow;
pub mod foreign;
mod log_limiter;
mod log_queue;
pub mod memory_cost;
mod memory_ledger;
pub mod own_address;
pub mod pending_handshakes;
pub mod places;
mod session;
mod session_log;
mod sessions;
mod state;
mod strangers;
mod tcp_port;
mod tuning;
mod udp_port;
mod waiting_line;

use std::net::{SocketAddr, TcpListener};
use std::sync::Arc;
use std::thread;
use std::time::{Duration, Instant};

use bdp_sys::echo::EchoSocket;
use bdp_sys::{process, socket};

use bdp_flow::error::{FlowError, Result};
pub use bdp_wire::stranger::Stranger;
use counters::Counters;
pub use counters::{Counted, Reason};
pub use event::Event;
use foreign::ForeignProtocol;
use sessions::Sessions;
pub use state::{ServerOptions, ServerState};
pub use tuning::TuneOptions;

/// Connections that the kernel holds until they are let in.
const BACKLOG: i32 = 4096;
/// Buffer of the echo's socket, by the kernel's count: some thousand small datagrams.
const ECHO_BUFFER: usize = 4 << 20;
/// How long the echo waits for a datagram before it checks whether the server stops.
pub const ECHO_CHECK: Duration = Duration::from_millis(500);
/// How long sessions may take to end with the server.
const FAREWELL: Duration = Duration::from_secs(2);
/// How long the last lines of the log may take to be written.
const LAST_LINES: Duration = Duration::from_secs(1);

/// A server that listens but does not answer yet.
pub struct Server {
    listener: TcpListener,
    datagrams: EchoSocket,
    address: SocketAddr,
    /// The protocols that it speaks besides its own.
    foreign: Arc<[Box<dyn ForeignProtocol>]>,
    sessions: Arc<Sessions>,
}

/// Stops a server from another thread.
#[derive(Clone)]
pub struct Stopper(Arc<ServerState>);

/// Reads a server's counters from another thread.
#[derive(Clone)]
pub struct Watcher(Arc<Counters>);

impl Watcher {
    /// Returns the current counts.
    pub fn counted(&self) -> Counted {
        self.0.counted()
    }
}

impl Server {
    /// Binds the port, TCP and UDP, and those of the other protocols. `log` is called by a thread of its own: if it
    /// blocks, events are dropped and counted, and nothing else waits.
    pub fn bind(
        options: ServerOptions,
        mut foreign: Vec<Box<dyn ForeignProtocol>>,
        log: impl Fn(&Event) + Send + Sync + 'static,
    ) -> Result<Self> {
        // A stream is a descriptor; if the limit cannot be raised, this shows when it is reached.
        let _ = process::raise_descriptor_limit();
        let listener = listen(options.listen)?;
        listener.set_nonblocking(true).map_err(FlowError::io("listen"))?;
        let address = listener.local_addr().map_err(FlowError::io("listen"))?;
        let datagrams = EchoSocket::bind(address, ECHO_CHECK)?;
        // With a smaller buffer, more messages of fast clients are lost while the answering thread does not run.
        let _ = datagrams.enlarge_receive_buffer(ECHO_BUFFER);
        for protocol in &mut foreign {
            protocol.bind(options.listen)?;
        }
        let server = Arc::new(ServerState::new(options, address.port(), log)?);
        let sessions = Arc::new(Sessions::new(server)?);
        Ok(Self { listener, datagrams, address, foreign: foreign.into(), sessions })
    }

    /// Returns the further addresses for clients of other protocols.
    pub fn foreign_addresses(&self) -> impl Iterator<Item = SocketAddr> {
        self.foreign.iter().filter_map(|protocol| protocol.address())
    }

    /// Returns the address on which it listens.
    pub fn address(&self) -> SocketAddr {
        self.address
    }

    /// Returns a reader of its counters.
    pub fn watcher(&self) -> Watcher {
        Watcher(Arc::clone(&self.sessions.server.counters))
    }

    /// Returns a handle that stops it.
    pub fn stopper(&self) -> Stopper {
        Stopper(Arc::clone(&self.sessions.server))
    }

    /// Serves until stopped, or, with `once`, until one session has ended.
    pub fn run(self) -> Result<()> {
        process::share_allocator();
        let Self { listener, datagrams, foreign, sessions, .. } = self;
        let server = &sessions.server;
        let mut others = Vec::new();
        for protocol in foreign.iter() {
            others.extend(protocol.start(server)?);
        }
        let (of_datagrams, foreign_too) = (Arc::clone(&sessions), Arc::clone(&foreign));
        let answering = bdp_flow::worker::start(move || {
            udp_port::serve(&datagrams, &of_datagrams, &foreign_too);
        })?;
        let outcome = tcp_port::serve(&listener, &sessions, &foreign);
        server.report_rest();
        drop(listener);
        server.end();
        sessions.hang_up();
        foreign.iter().for_each(|protocol| protocol.hang_up());
        let until = Instant::now() + FAREWELL;
        while !(sessions.is_empty() && foreign.iter().all(|other| other.is_idle())) && Instant::now() < until
        {
            thread::sleep(Duration::from_millis(5));
        }
        // The thread checks the flag at least twice a second.
        let _ = answering.join();
        for thread in others {
            let _ = thread.join();
        }
        server.finish_log(LAST_LINES);
        outcome
    }
}

impl Stopper {
    /// Stops the server and its sessions.
    pub fn stop(&self) {
        self.0.end();
    }

    /// Stops the server and its sessions, and logs the cause.
    pub fn stop_by(&self, what: &str) {
        self.0.report(&Event::Ending { by: what.to_owned() });
        self.0.end();
    }
}

/// Returns a listener; IPv4 only if any address is meant and there is no IPv6.
pub fn listen(address: SocketAddr) -> Result<TcpListener> {
    match socket::listen_dual(address, BACKLOG) {
        Err(_) if address.ip().is_unspecified() && address.is_ipv6() && !has_ipv6() => {
            let v4 = SocketAddr::from(([0, 0, 0, 0], address.port()));
            Ok(socket::listen_dual(v4, BACKLOG)?)
        }
        other => Ok(other?),
    }
}

fn has_ipv6() -> bool {
    TcpListener::bind("[::]:0").is_ok()
}
