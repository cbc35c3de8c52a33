//! The messages between bdp and a stack program, `bdp.stack/1` (`docs/stack-contract.md`). Standard input is a socket for these messages,
//! standard output one for IP packets; both preserve message boundaries (`SOCK_SEQPACKET`).

use std::net::IpAddr;

use bdp_model::case::tcp_settings::TcpSettings;
use serde::{Deserialize, Serialize};

use crate::socket::{Command, SocketReport};

/// Version of the contract.
pub const CONTRACT: &str = "bdp.stack/1";
/// Maximum length of a message, bytes.
pub(crate) const MESSAGE_BYTES: usize = 1 << 16;

/// Configuration of a host's stack.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Settings {
    /// Name in the scenario.
    pub host: String,
    /// Addresses, each with the prefix length of its network. Packets to any other address also leave through the packet socket.
    pub addresses: Vec<(IpAddr, u8)>,
    /// MTU, bytes.
    pub mtu: u32,
    /// Seed of all random numbers: equal seeds produce equal packets.
    pub seed: u64,
    /// TCP settings; the stack decides those that are absent.
    pub tcp: TcpSettings,
}

/// A message from bdp.
#[derive(Debug, Serialize)]
#[serde(rename_all = "snake_case")]
pub(crate) enum Order<'a> {
    /// The first message.
    Start {
        contract: &'a str,
        #[serde(flatten)]
        settings: &'a Settings,
    },
    /// Carry out a step at one moment. `packets` packets arrive on the other socket, before or after this message.
    Step { now_ns: u64, commands: &'a [Command], packets: usize },
    /// The last message; the sockets are closed after it.
    End,
}

/// A message from the program.
#[derive(Debug, Deserialize)]
#[serde(rename_all = "snake_case")]
pub(crate) enum Answer {
    /// Reply to the start: the stack is ready.
    Ready {
        /// Name and version.
        version: String,
    },
    /// Reply to the start, or to a step with commands: names a setting that it does not support.
    Unsupported(String),
    /// Reply to a step; `packets` packets are sent on the other socket.
    Done {
        packets: usize,
        next_ns: Option<u64>,
        #[serde(default)]
        sockets: Vec<SocketReport>,
    },
    /// A fatal error, with its cause.
    Failed(String),
}
