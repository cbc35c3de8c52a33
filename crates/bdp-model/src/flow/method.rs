//! How a flow ended, how its bytes were moved and how its window was set.

use std::fmt;

use serde::{Deserialize, Serialize};

/// Declares an enum whose variants each have one name, the same in JSON and on screen. The variant after `or` keeps names from a
/// peer of another version that are unknown here.
macro_rules! named {
    ($(#[$meta:meta])* $name:ident {
        $($(#[$doc:meta])* $variant:ident = $text:literal,)+
    } $(or $other:ident)?) => {
        $(#[$meta])*
        #[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
        #[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
        pub enum $name {
            $($(#[$doc])* #[serde(rename = $text)] $variant,)+
            $(/// Of a peer of another version.
            #[serde(untagged)] $other(String),)?
        }

        impl $name {
            /// Returns the recorded name.
            pub fn name(&self) -> &str {
                match self {
                    $(Self::$variant => $text,)+
                    $(Self::$other(name) => name,)?
                }
            }
        }

        impl fmt::Display for $name {
            fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.pad(self.name())
            }
        }
    };
}

named! {
    /// Why a flow ended.
    EndReason {
        /// Its time was up.
        #[default]
        Duration = "duration",
        /// All requested bytes were transferred.
        Bytes = "bytes",
        /// Its goodput was steady.
        Settled = "settled",
        /// The sender closed its connections.
        Closed = "closed",
        /// A connection was reset.
        Reset = "reset",
        /// It was interrupted (Ctrl-C, SIGTERM).
        Stopped = "stopped",
        /// No data arrived.
        Silence = "silence",
    } or Other
}

impl EndReason {
    /// Whether it ran as long as requested.
    pub fn is_complete(&self) -> bool {
        matches!(self, Self::Duration | Self::Bytes | Self::Settled)
    }
}

named! {
    /// How a receiver reads.
    ReceiveMethod {
        /// Unknown.
        #[default]
        Unknown = "",
        /// The kernel counts bytes without copying them to the process.
        Truncate = "MSG_TRUNC",
        /// The kernel copies the bytes to the process.
        Read = "read",
        /// Copied to the process and decrypted.
        ReadTls = "read, TLS",
        /// Many datagrams per call.
        Recvmmsg = "recvmmsg",
        /// Many datagrams per call, coalesced by the kernel.
        RecvmmsgGro = "recvmmsg+gro",
        /// Bytes that the receiver's kernel acknowledged to the sender.
        Acknowledged = "acknowledged",
        /// Bytes that the receiver reported at the end.
        Reported = "reported",
    } or Other
}

named! {
    /// How a window is set.
    #[derive(Copy)]
    WindowMechanism {
        /// Unknown: the case failed before, or the flow is UDP, which has no window.
        #[default]
        Unknown = "",
        /// By the kernel's autotuning.
        Autotuned = "autotuned",
        /// By `TCP_WINDOW_CLAMP` on the receiving socket.
        SocketClamp = "socket clamp",
        /// By `SO_RCVBUF` of the receiving socket.
        ReceiveBuffer = "SO_RCVBUF",
        /// By `net.ipv4.tcp_rmem` of the receiving host.
        TcpRmem = "tcp_rmem",
        /// By the emulated link, which bounds the window field.
        PathClamp = "path clamp",
        /// No window: the flow is UDP.
        None = "none",
    }
}

named! {
    /// Privilege that created the hosts of a case.
    Privilege {
        /// Unknown: the case failed before.
        #[default]
        Unknown = "",
        /// As root.
        Root = "root",
        /// In a user namespace.
        UserNamespace = "user namespace",
    } or Other
}

named! {
    /// Protocol of a floor's round trips.
    #[derive(Copy)]
    FloorProtocol {
        /// Datagrams.
        #[default]
        Udp = "UDP",
        /// A TCP connection.
        Tcp = "TCP",
    }
}

named! {
    /// Source of a receiver's arrival times.
    #[derive(Copy)]
    TimestampSource {
        /// Unknown.
        #[default]
        Unknown = "",
        /// The kernel, by `SO_TIMESTAMPNS`.
        Kernel = "kernel",
        /// The process, at the time of reading.
        Read = "read",
    }
}

/// How a sender passes bytes to its kernel.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(from = "String", into = "String")]
pub enum SendMethod {
    /// Unknown.
    #[default]
    Unknown,
    /// Copied from the process.
    Write,
    /// From a memory file, whose pages the socket references.
    Sendfile,
    /// Pages of the process, spliced through a pipe.
    Splice,
    /// `MSG_ZEROCOPY`; the kernel may still copy, for example for local delivery.
    ZeroCopy {
        /// Whether it copied most of the data.
        copied: bool,
    },
    /// Several datagrams per call.
    Sendmmsg {
        /// Most datagrams per call.
        datagrams: u64,
    },
    /// Several datagrams per call, in buffers that the kernel segments (GSO).
    SendmmsgGso {
        /// Datagrams per buffer.
        segments: u64,
    },
    /// A method that only a peer of another version knows.
    Other(String),
}

/// A method of passing bytes to the kernel that a sender tried at the start.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct TriedWay {
    /// The method.
    pub method: SendMethod,
    /// Most bytes per call.
    pub write_bytes: u64,
    /// Rate that the kernel accepted during the trial, bit/s.
    pub sent_bps: f64,
}

impl fmt::Display for SendMethod {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Unknown => Ok(()),
            Self::Write => f.write_str("write"),
            Self::Sendfile => f.write_str("sendfile"),
            Self::Splice => f.write_str("splice"),
            Self::ZeroCopy { copied: false } => f.write_str("MSG_ZEROCOPY"),
            Self::ZeroCopy { copied: true } => f.write_str("MSG_ZEROCOPY, copied by the kernel"),
            Self::Sendmmsg { datagrams: 1 } => f.write_str("sendmmsg"),
            Self::Sendmmsg { datagrams } => write!(f, "sendmmsg {datagrams}"),
            Self::SendmmsgGso { segments } => write!(f, "sendmmsg+gso {segments}"),
            Self::Other(name) => f.write_str(name),
        }
    }
}

impl From<SendMethod> for String {
    fn from(method: SendMethod) -> Self {
        method.to_string()
    }
}

impl From<String> for SendMethod {
    fn from(name: String) -> Self {
        let (word, count) = name.split_once(' ').unwrap_or((&name, "1"));
        let count = count.parse().ok();
        let known = match (word, count) {
            ("", _) => Self::Unknown,
            ("write", _) => Self::Write,
            ("sendfile", _) => Self::Sendfile,
            ("splice", _) => Self::Splice,
            ("MSG_ZEROCOPY", _) => Self::ZeroCopy { copied: false },
            ("MSG_ZEROCOPY,", _) => Self::ZeroCopy { copied: true },
            ("sendmmsg", Some(datagrams)) => Self::Sendmmsg { datagrams },
            ("sendmmsg+gso", Some(segments)) => Self::SendmmsgGso { segments },
            _ => Self::Unknown,
        };
        // A name that has more detail, or differs, is kept in full.
        if known.to_string() == name { known } else { Self::Other(name) }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_survive_the_wire_and_the_store() {
        for name in [
            "",
            "write",
            "sendfile",
            "splice",
            "MSG_ZEROCOPY",
            "MSG_ZEROCOPY, copied by the kernel",
            "sendmmsg",
            "sendmmsg 32",
            "sendmmsg+gso 45",
        ] {
            let json = serde_json::to_string(name).unwrap();
            let method: SendMethod = serde_json::from_str(&json).unwrap();
            assert!(!matches!(method, SendMethod::Other(_)), "{name}");
            assert_eq!(serde_json::to_string(&method).unwrap(), json);
        }
        for (json, reason) in [
            ("\"closed\"", EndReason::Closed),
            ("\"silence\"", EndReason::Silence),
            ("\"path clamp\"", EndReason::Other("path clamp".to_owned())),
        ] {
            assert_eq!(serde_json::from_str::<EndReason>(json).unwrap(), reason);
            assert_eq!(serde_json::to_string(&reason).unwrap(), json);
        }
        assert_eq!(serde_json::to_string(&ReceiveMethod::ReadTls).unwrap(), "\"read, TLS\"");
        assert_eq!(serde_json::from_str::<WindowMechanism>("\"\"").unwrap(), WindowMechanism::Unknown);
    }

    #[test]
    fn a_name_of_another_version_is_kept_as_it_came() {
        for name in ["io_uring", "sendmmsg 1", "sendmmsg+gso 07", "write ", "MSG_ZEROCOPY, mostly"] {
            let json = serde_json::to_string(name).unwrap();
            let method: SendMethod = serde_json::from_str(&json).unwrap();
            assert_eq!(method, SendMethod::Other(name.to_owned()));
            assert_eq!(serde_json::to_string(&method).unwrap(), json);
        }
        assert_eq!(
            serde_json::from_str::<ReceiveMethod>("\"io_uring\"").unwrap(),
            ReceiveMethod::Other("io_uring".to_owned())
        );
    }
}
