//! Clients whose first bytes match no protocol of the port: counted by protocol, and logged with what to do about it.

use std::net::SocketAddr;

use bdp_wire::stranger::Stranger;

use super::counters::Reason;
use super::state::ServerState;

impl ServerState {
    /// Counts and logs a client whose first bytes match no protocol of this port. `way_in` says where such a client
    /// would be served.
    pub fn refuse_stranger(
        &self,
        peer: SocketAddr,
        arrived: &[u8],
        way_in: impl FnOnce(Stranger) -> Option<String>,
    ) {
        let stranger = Stranger::of(arrived);
        let seen = legible(arrived);
        let why = match (stranger.protocol(), way_in(stranger)) {
            (Some(protocol), Some(way)) => format!("it uses {protocol} ({seen}); {way}"),
            (Some(protocol), None) => {
                format!("it uses {protocol} ({seen}), which this server does not serve")
            }
            (None, _) => format!("its first bytes match no protocol served on this port ({seen})"),
        };
        self.count_and_report(stranger, peer, why);
    }

    /// Counts and logs a client that did not show its purpose in time.
    pub fn drop_stranger(&self, peer: SocketAddr, arrived: &[u8]) {
        let why = match arrived {
            [] => "it connected and sent nothing".to_owned(),
            _ => format!("it sent only {}", begin(arrived)),
        };
        self.count_and_report(Stranger::of(arrived), peer, why);
    }

    /// Counts a connection that ended before its purpose was known, and logs it if it sent any byte: others are port
    /// checks, `bdp ping` among them.
    pub fn note_stranger_left(&self, peer: SocketAddr, arrived: &[u8]) {
        if arrived.is_empty() {
            return self.counters.note_stranger(Stranger::Closed);
        }
        let why = format!("it sent {} and disconnected", begin(arrived));
        self.count_and_report(Stranger::of(arrived), peer, why);
    }

    fn count_and_report(&self, stranger: Stranger, peer: SocketAddr, why: String) {
        self.counters.note_stranger(stranger);
        self.counters.give_reason(Reason::Protocol);
        self.turn_away(peer, why);
    }

    /// Returns where a client is served that came to the port of another protocol.
    pub fn way_to_own_port(&self, stranger: Stranger) -> Option<String> {
        matches!(stranger, Stranger::Bdp | Stranger::Iperf3)
            .then(|| format!("it is served on port {}", self.port))
    }
}

/// Returns how many bytes arrived, and the first of them.
fn begin(arrived: &[u8]) -> String {
    let bytes = if arrived.len() == 1 { "byte" } else { "bytes" };
    format!("{} {bytes} ({})", arrived.len(), legible(arrived))
}

/// The first bytes of another protocol as a reader can take them.
fn legible(bytes: &[u8]) -> String {
    let text: String =
        bytes.iter().take(8).map(|&b| if b.is_ascii_graphic() { b as char } else { '.' }).collect();
    format!("'{text}'")
}
