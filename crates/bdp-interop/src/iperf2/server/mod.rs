//! iperf2's clients, on a port of their own: a thread for each connection and each flow of datagrams.
//!
//! A client does not say which streams belong together: those of one address at one time are one session.

mod bounceback;
mod bursts;
mod datagrams;
mod flow;
mod shared;
mod stream;
mod tcp_port;

use std::net::{SocketAddr, TcpListener};
use std::sync::{Arc, Mutex};
use std::thread::JoinHandle;

use bdp_agent::server::foreign::ForeignProtocol;
use bdp_agent::server::{ECHO_CHECK, ServerState};
use bdp_flow::error::{FlowError, Result};
use bdp_flow::lock::lock;
use bdp_sys::echo::EchoSocket;
use bdp_wire::stranger::Stranger;

use shared::{Shared, Tests};

/// Serves iperf2's clients, on a port of their own if one is given.
pub struct Iperf2 {
    options: Options,
    sockets: Mutex<Option<Sockets>>,
    address: Option<SocketAddr>,
    tests: Arc<Tests>,
}

/// How to serve them.
#[derive(Debug, Clone, Copy, Default)]
pub struct Options {
    /// The port, TCP and UDP, at the server's address.
    pub port: Option<u16>,
    /// Send datagrams to clients that [`AccessRules::allow`] lists, trusting a source address that nothing proves;
    /// clients on this machine get them without this option.
    ///
    /// [`AccessRules::allow`]: bdp_agent::server::access::AccessRules::allow
    pub udp_reverse: bool,
}

struct Sockets {
    listener: TcpListener,
    datagrams: EchoSocket,
}

impl Iperf2 {
    /// Creates it without clients.
    pub fn new(options: Options) -> Self {
        Self { options, sockets: Mutex::default(), address: None, tests: Arc::default() }
    }
}

impl ForeignProtocol for Iperf2 {
    fn bind(&mut self, mut address: SocketAddr) -> Result<()> {
        let Some(port) = self.options.port else { return Ok(()) };
        address.set_port(port);
        let listener = bdp_agent::server::listen(address)?;
        listener.set_nonblocking(true).map_err(FlowError::io("listen"))?;
        let address = listener.local_addr().map_err(FlowError::io("listen"))?;
        let datagrams = EchoSocket::bind(address, ECHO_CHECK)?;
        self.address = Some(address);
        self.sockets = Mutex::new(Some(Sockets { listener, datagrams }));
        Ok(())
    }

    fn start(&self, server: &Arc<ServerState>) -> Result<Vec<JoinHandle<()>>> {
        let sockets = lock(&self.sockets).take();
        let Some(Sockets { listener, datagrams: socket }) = sockets else { return Ok(Vec::new()) };
        let (udp_reverse, tests) = (self.options.udp_reverse, Arc::clone(&self.tests));
        let of_streams = Arc::new(Shared { server: Arc::clone(server), udp_reverse, tests });
        let of_datagrams = Arc::clone(&of_streams);
        Ok(vec![
            bdp_flow::worker::start(move || tcp_port::serve(&listener, &of_streams))?,
            bdp_flow::worker::start(move || datagrams::serve(&socket, &of_datagrams))?,
        ])
    }

    fn way_in(&self, stranger: Stranger) -> Option<String> {
        (stranger == Stranger::Iperf2).then(|| match self.options.port {
            Some(port) => format!("it is served on port {port}: iperf -p {port}"),
            None => "start bdp serve with --iperf2-port to serve it".to_owned(),
        })
    }

    fn address(&self) -> Option<SocketAddr> {
        self.address
    }

    fn is_idle(&self) -> bool {
        self.tests.is_empty()
    }
}
