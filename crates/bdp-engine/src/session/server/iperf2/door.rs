//! Lets iperf2's connections in, each with the header that it begins with or none.

use std::net::{SocketAddr, TcpListener};
use std::sync::Arc;
use std::time::Duration;

use bdp_wire::iperf2::TestHeader;

use super::super::waiting::{self, Arrived, Doorkeeper};
use super::super::{Event, Shared};
use super::stream;

/// Keeps the door until the server ends.
pub(super) fn keep(listener: &TcpListener, shared: &Arc<Shared>) {
    // What could fail is its poll, without which nobody can be let in; bdp's own door tells of that.
    let _ = waiting::keep(listener, &Door(shared), shared);
}

struct Door<'a>(&'a Arc<Shared>);

impl Doorkeeper for Door<'_> {
    const PATIENCE: Duration = Duration::from_secs(5);
    const MOST: usize = 256;

    fn wanted(&self, arrived: &[u8]) -> Option<usize> {
        let wanted = TestHeader::length_of(arrived).unwrap_or(4).max(4);
        Some(wanted).filter(|&wanted| arrived.len() < wanted)
    }

    fn take(&self, connection: Arrived, _: u64) {
        let Arrived { stream, peer, bytes } = connection;
        if TestHeader::is_bounceback(&bytes) {
            let why =
                "it asked for iperf2's --bounceback, which is not served; 'bdp ping' measures round trips"
                    .to_owned();
            self.0.tell(&Event::TurnedAway { peer, why });
            return;
        }
        stream::serve(self.0, stream, peer, TestHeader::decode(&bytes));
    }

    fn drop_silent(&self, peer: SocketAddr) {
        let why = "it connected to iperf2's port and said nothing".to_owned();
        self.0.tell(&Event::TurnedAway { peer, why });
    }

    fn note_waiting(&self, _: usize) {}
}
