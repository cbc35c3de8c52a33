//! Foreign probes: separate connections during flows, each for one message that the server echoes.

use std::io::{self, Read, Write};
use std::net::{SocketAddr, TcpStream};
use std::sync::atomic::AtomicBool;
use std::time::Duration;

use bdp_flow::session::dial;
use bdp_flow::session::peer::ForeignProber;
use bdp_model::measurement::MeasureRequest;
use bdp_sys::clock;
use bdp_sys::socket::{self, TcpOptions};
use bdp_wire::echo::{ECHO_BYTES, Echo};
use bdp_wire::session::{Key, Kind, Ticket};

/// What each foreign probe needs.
pub(super) struct Foreign {
    request: MeasureRequest,
    address: SocketAddr,
    key: Key,
}

impl Foreign {
    pub(super) fn new(request: &MeasureRequest, address: SocketAddr, key: Key) -> Self {
        Self { request: request.clone(), address, key }
    }

    fn exchange(&self, mut stream: &TcpStream, patience: Duration) -> io::Result<()> {
        stream.set_nonblocking(false)?;
        stream.set_read_timeout(Some(patience))?;
        let ticket = Ticket { key: self.key, flow: 0, stream: ECHO_BYTES as u32 }.encode(Kind::Echo);
        let mut message = [0; ECHO_BYTES];
        Echo { key: self.key, number: 0, far: None }.put(&mut message);
        // One segment, as a request is.
        stream.write_all(&[ticket.as_slice(), &message].concat())?;
        stream.read_exact(&mut message)
    }
}

impl ForeignProber for Foreign {
    fn probe(&self, patience: Duration, stop: &AtomicBool) -> (Option<u64>, Option<u64>) {
        let options = TcpOptions {
            nodelay: true,
            dscp: self.request.spec.dscp,
            device: self.request.bind_device.clone(),
            ..TcpOptions::default()
        };
        let began = clock::monotonic_ns();
        let Ok((stream, _)) = dial::connect_any(&[self.address], &self.request, &options, stop) else {
            return (None, None);
        };
        let connected = clock::monotonic_ns();
        let exchanged = self.exchange(&stream, patience).is_ok();
        let ended = clock::monotonic_ns();
        // Nobody needs its state any longer.
        let _ = socket::reset_on_close(&stream);
        (Some(connected - began), exchanged.then_some(ended - connected))
    }
}
