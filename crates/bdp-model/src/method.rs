//! How a flow ended, and by which means its bytes moved and its window was set.

use std::fmt;

use serde::{Deserialize, Serialize};

/// An enum whose variants have one name each, the same in JSON and on screen. The variant after `or` keeps what a peer of
/// another version calls by a name that is not known here.
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
            /// As it is recorded.
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
        /// Its time was over.
        #[default]
        Duration = "duration",
        /// All bytes that were asked for have been moved.
        Bytes = "bytes",
        /// Its goodput had settled.
        Settled = "settled",
        /// The sender closed its connections.
        Closed = "closed",
        /// A connection was reset.
        Reset = "reset",
        /// It was interrupted.
        Stopped = "stopped",
        /// No byte came.
        Silence = "silence",
    } or Other
}

impl EndReason {
    /// Whether it went on for as long as was asked.
    pub fn is_complete(&self) -> bool {
        matches!(self, Self::Duration | Self::Bytes | Self::Settled)
    }
}

named! {
    /// How a receiver reads.
    ReceiveMethod {
        /// It does not say.
        #[default]
        Unknown = "",
        /// The kernel counts bytes without copying them to the process.
        Truncate = "MSG_TRUNC",
        /// Copied to the process.
        Read = "read",
        /// The same, and deciphered.
        ReadTls = "read, TLS",
        /// Many datagrams by one call.
        Recvmmsg = "recvmmsg",
        /// The same, joined by the kernel.
        RecvmmsgGro = "recvmmsg+gro",
        /// What the receiver's kernel acknowledged to the sender.
        Acknowledged = "acknowledged",
        /// What the receiver reported at the end.
        Reported = "reported",
    } or Other
}

named! {
    /// How a window is set.
    #[derive(Copy)]
    WindowMechanism {
        /// The case failed before that, or datagrams were measured, which have none.
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
        /// Datagrams have none.
        None = "none",
    }
}

named! {
    /// By which right the hosts of a case were made.
    Privilege {
        /// The case failed before that.
        #[default]
        Unknown = "",
        /// As root.
        Root = "root",
        /// In a user namespace.
        UserNamespace = "user namespace",
    } or Other
}

named! {
    /// What the round trips of a floor are made by.
    #[derive(Copy)]
    FloorProtocol {
        /// Datagrams.
        #[default]
        Udp = "UDP",
        /// A connection.
        Tcp = "TCP",
    }
}

named! {
    /// Where a receiver's times of arrival come from.
    #[derive(Copy)]
    TimestampSource {
        /// It does not say.
        #[default]
        Unknown = "",
        /// The kernel, by `SO_TIMESTAMPNS`.
        Kernel = "kernel",
        /// The process, when it read.
        Read = "read",
    }
}

/// How a sender gives bytes to its kernel.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(from = "String", into = "String")]
pub enum SendMethod {
    /// It does not say.
    #[default]
    Unknown,
    /// Copied from the process.
    Write,
    /// From a file in memory, whose pages the socket refers to.
    Sendfile,
    /// Pages of the process, spliced through a pipe.
    Splice,
    /// `MSG_ZEROCOPY`; the kernel may copy after all, as for what is delivered on the same machine.
    ZeroCopy {
        /// Whether it did of most.
        copied: bool,
    },
    /// So many datagrams by one call.
    Sendmmsg {
        /// At most.
        datagrams: u64,
    },
    /// The same, in buffers of so many that the kernel cuts (GSO).
    SendmmsgGso {
        /// Datagrams of one buffer.
        segments: u64,
    },
    /// Of a peer of another version.
    Other(String),
}

/// A way of giving bytes to the kernel that a sender tried in its first moments.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct TriedWay {
    /// By which call.
    pub method: SendMethod,
    /// Bytes of one call, at most.
    pub write_bytes: u64,
    /// What the kernel took of it meanwhile, bit/s.
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
        // Nothing is lost of a name that says more, or otherwise.
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
