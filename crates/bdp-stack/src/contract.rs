//! The messages between bdp and the program of a stack, `bdp.stack/1` (`docs/stack-contract.md`). Standard input is a socket that carries
//! these, standard output one that carries IP packets; both keep the bounds of what is sent at once (`SOCK_SEQPACKET`).

use std::net::IpAddr;

use bdp_model::tcp_settings::TcpSettings;
use serde::{Deserialize, Serialize};

use crate::socket::{Command, SocketReport};

/// The contract that this is.
pub const CONTRACT: &str = "bdp.stack/1";
/// The longest message.
pub(crate) const MESSAGE_BYTES: usize = 1 << 16;

/// A host, as its stack is to be.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Settings {
    /// Its name in the scenario.
    pub host: String,
    /// Its addresses, each with the length of its network's prefix. What goes to any other address leaves by the packet socket too.
    pub addresses: Vec<(IpAddr, u8)>,
    /// Longest IP packet.
    pub mtu: u32,
    /// Where all that it draws follows from: the same seed, the same packets.
    pub seed: u64,
    /// Settings of TCP; what is absent is the stack's own.
    pub tcp: TcpSettings,
}

/// What bdp says.
#[derive(Debug, Serialize)]
#[serde(rename_all = "snake_case")]
pub(crate) enum Order<'a> {
    /// The first.
    Start {
        contract: &'a str,
        #[serde(flatten)]
        settings: &'a Settings,
    },
    /// Do all this at one moment. As many packets come on the other socket, behind this or before.
    Step { now_ns: u64, commands: &'a [Command], packets: usize },
    /// The last; the sockets close behind it.
    End,
}

/// What the program answers.
#[derive(Debug, Deserialize)]
#[serde(rename_all = "snake_case")]
pub(crate) enum Answer {
    /// To the start: it is there.
    Ready {
        /// Name and version.
        version: String,
    },
    /// To the start, or to a step with commands: it has no such setting, which it names.
    Unsupported(String),
    /// To a step. As many packets are on the other socket.
    Done {
        packets: usize,
        next_ns: Option<u64>,
        #[serde(default)]
        sockets: Vec<SocketReport>,
    },
    /// It can't go on, and says why.
    Failed(String),
}
