//! Accepts iperf2's connections, each with its header, if it has one.

use std::net::{SocketAddr, TcpListener};
use std::sync::Arc;
use std::time::Duration;

use bdp_sys::socket;
use bdp_wire::iperf2::{Bounceback, TestHeader};
use bdp_wire::iperf3::{COOKIE_BYTES, Cookie};
use bdp_wire::stranger::Stranger;

use super::shared::{Shared, turn_away_unserved};
use super::{bounceback, stream};
use bdp_agent::server::accept::{self, Arrived, Classifier};

/// Serves the port until the server stops.
pub(super) fn serve(listener: &TcpListener, shared: &Arc<Shared>) {
    // Only its poll could fail, without which nobody can be accepted; bdp's own port reports that.
    let _ = accept::run(listener, &TcpPort(shared), &shared.server);
}

struct TcpPort<'a>(&'a Arc<Shared>);

impl Classifier for TcpPort<'_> {
    const MOST: usize = 256;

    fn patience(&self) -> Duration {
        Duration::from_secs(5)
    }

    fn wanted(&self, arrived: &[u8]) -> Option<usize> {
        let wanted = match Stranger::of(arrived) {
            _ if arrived.len() < Stranger::WANTED_BYTES => Stranger::WANTED_BYTES,
            Stranger::Http | Stranger::Tls | Stranger::Ssh | Stranger::Bdp | Stranger::Iperf3 => return None,
            _ if Bounceback::begins(arrived) => Bounceback::WANTED_BYTES,
            // Whole, it is known for what it is.
            Stranger::Unknown if matches!(Cookie::decode(arrived), Ok(None)) && !is_payload(arrived) => {
                COOKIE_BYTES
            }
            _ => TestHeader::length_of(arrived).unwrap_or(0),
        };
        Some(wanted).filter(|&wanted| arrived.len() < wanted)
    }

    fn take(&self, connection: Arrived, _: u64) {
        let Arrived { stream, peer, bytes } = connection;
        if Bounceback::begins(&bytes) {
            return bounceback::serve(self.0, stream, peer, &bytes);
        }
        let is_stranger =
            matches!(Stranger::of(&bytes), Stranger::Http | Stranger::Tls | Stranger::Ssh | Stranger::Bdp);
        let header = TestHeader::decode(&bytes).filter(|_| !is_stranger);
        if header.is_none() && !is_payload(&bytes) {
            let server = &self.0.server;
            server.refuse_stranger(peer, &bytes, |stranger| server.way_to_own_port(stranger));
            return socket::close_hard(stream);
        }
        if let Some(option) = header.and_then(|header| header.unserved) {
            turn_away_unserved(self.0, peer, option);
            return socket::close_hard(stream);
        }
        stream::serve(self.0, stream, peer, header);
    }

    fn drop_silent(&self, peer: SocketAddr, arrived: &[u8]) {
        self.0.server.drop_stranger(peer, arrived);
    }

    fn note_end(&self, peer: SocketAddr, arrived: &[u8]) {
        self.0.server.note_stranger_left(peer, arrived);
    }

    fn note_waiting(&self, _: usize) {}
}

/// Whether these bytes begin the payload of releases that send no header: zeros, or the digits that fill every write.
fn is_payload(arrived: &[u8]) -> bool {
    let first = &arrived[..arrived.len().min(Stranger::WANTED_BYTES)];
    first.iter().all(|&byte| byte == 0) || first.iter().all(u8::is_ascii_digit)
}
