//! Options of a flow's sockets that are one number, each declared once: JSON, protocol, command line, scenarios, sweeps, comparison
//! and system call use this table. The kernel's constant is in `bdp-sys/src/socket_option.rs`.

use std::fmt;

use serde::de::{IgnoredAny, MapAccess, Visitor};
use serde::ser::SerializeMap;
use serde::{Deserialize, Deserializer, Serialize, Serializer};

use crate::units::{ByteCount, typed_size};

/// A socket option.
#[derive(Debug, PartialEq, Eq)]
pub struct SocketOption {
    /// Member in JSON, and key of a scenario's flow.
    pub member: &'static str,
    /// Description of the member.
    pub about: &'static str,
    /// Member in the protocol.
    pub in_protocol: &'static str,
    /// The kernel's name.
    pub kernel: &'static str,
    /// Flag on the command line.
    pub flag: &'static str,
    /// Help of the flag.
    pub help: &'static str,
    /// Notation of its value.
    pub notation: Notation,
    /// Largest value.
    pub most: u64,
    /// Whether only the sender's sockets have it.
    pub is_of_sender: bool,
    /// Whether it applies only to TCP.
    pub is_of_tcp: bool,
}

/// Notation of a value.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Notation {
    /// Bytes, for example `64K`.
    Size,
    /// A whole number.
    Number,
}

/// The table.
static TABLE: [SocketOption; COUNT] = [
    SocketOption {
        member: "unsent_limit",
        about: "`TCP_NOTSENT_LOWAT` of the sender: the limit of unsent bytes in its socket.",
        in_protocol: "unsent_limit_bytes",
        kernel: "TCP_NOTSENT_LOWAT",
        flag: "--notsent-lowat",
        help: "Unsent data that a socket takes (TCP_NOTSENT_LOWAT), as 128K; small values keep latency low",
        notation: Notation::Size,
        most: u64::MAX,
        is_of_sender: true,
        is_of_tcp: true,
    },
    // A larger value takes CAP_NET_ADMIN (socket(7)), which no server has to give to a client.
    SocketOption {
        member: "priority",
        about: "`SO_PRIORITY` of the sender: which band or class of its queue disciplines takes the packets.",
        in_protocol: "priority",
        kernel: "SO_PRIORITY",
        flag: "--priority",
        help: "Priority of packets in the sender's queue disciplines (SO_PRIORITY), 0 to 6; --dscp marks them for the path",
        notation: Notation::Number,
        most: 6,
        is_of_sender: true,
        is_of_tcp: false,
    },
];

/// How many there are.
const COUNT: usize = 2;

impl SocketOption {
    /// Returns all of them, in the order of help and documents.
    pub fn all() -> &'static [Self] {
        &TABLE
    }

    /// Parses a value as typed.
    pub fn parse(&self, text: &str) -> Result<u64, String> {
        let value = match self.notation {
            Notation::Size => text.parse::<ByteCount>().map(ByteCount::as_bytes).map_err(|e| e.to_string()),
            Notation::Number => text.parse().map_err(|_| format!("'{text}' is not {}", self.range())),
        }?;
        match value {
            value if value <= self.most => Ok(value),
            _ => Err(format!("{text} is more than {}", self.typed(self.most))),
        }
    }

    /// Returns a value as it is typed.
    pub fn typed(&self, value: u64) -> String {
        match self.notation {
            Notation::Size => typed_size(ByteCount::bytes(value)),
            Notation::Number => value.to_string(),
        }
    }

    /// Returns the values that it takes, for a person who typed another.
    pub fn range(&self) -> String {
        match (self.notation, self.most) {
            (Notation::Size, u64::MAX) => "bytes, such as \"128K\"".to_owned(),
            (Notation::Size, most) => format!("bytes up to {}, such as \"128K\"", self.typed(most)),
            (Notation::Number, most) => format!("a number from 0 to {most}"),
        }
    }

    /// Returns what the value is called in help.
    pub fn value_name(&self) -> &'static str {
        match self.notation {
            Notation::Size => "SIZE",
            Notation::Number => "N",
        }
    }
}

/// The socket options of a flow that are set. Its own JSON form is that of a measurement request.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct SocketNumbers([Option<u64>; COUNT]);

impl SocketNumbers {
    /// Sets each option to what this returns for it.
    pub fn of(value: impl FnMut(&'static SocketOption) -> Option<u64>) -> Self {
        let mut values = TABLE.iter().map(value);
        Self(std::array::from_fn(|_| values.next().flatten()))
    }

    /// Sets each option to what this returns for it, unless one fails.
    pub fn try_of<E>(
        mut value: impl FnMut(&'static SocketOption) -> Result<Option<u64>, E>,
    ) -> Result<Self, E> {
        let mut numbers = Self::default();
        for (number, option) in numbers.0.iter_mut().zip(&TABLE) {
            *number = value(option)?;
        }
        Ok(numbers)
    }

    /// Returns every option with its value, if it is set.
    pub fn iter(&self) -> impl Iterator<Item = (&'static SocketOption, Option<u64>)> + use<> {
        TABLE.iter().zip(self.0)
    }

    /// Returns the kernel's names and values for the sockets of one end.
    pub fn of_end(&self, sends: bool, is_tcp: bool) -> Vec<(&'static str, i32)> {
        let applies =
            |option: &SocketOption| (sends || !option.is_of_sender) && (is_tcp || !option.is_of_tcp);
        let set = self.iter().filter(|(option, _)| applies(option));
        set.filter_map(|(option, value)| Some((option.kernel, i32::try_from(value?).unwrap_or(i32::MAX))))
            .collect()
    }

    /// Returns the first option whose value is too large.
    pub fn too_large(&self) -> Option<&'static SocketOption> {
        self.iter().find(|(option, value)| value.is_some_and(|value| value > option.most)).map(|(o, _)| o)
    }

    fn write<S: Serializer>(
        &self,
        to: S,
        name: impl Fn(&SocketOption) -> &'static str,
    ) -> Result<S::Ok, S::Error> {
        let mut map = to.serialize_map(None)?;
        for (option, value) in self.iter() {
            if let Some(value) = value {
                map.serialize_entry(name(option), &value)?;
            }
        }
        map.end()
    }

    fn read<'de, D: Deserializer<'de>>(
        from: D,
        name: impl Fn(&SocketOption) -> &'static str,
    ) -> Result<Self, D::Error> {
        from.deserialize_map(Members(name))
    }
}

impl Serialize for SocketNumbers {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        self.write(serializer, |option| option.member)
    }
}

impl<'de> Deserialize<'de> for SocketNumbers {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        Self::read(deserializer, |option| option.member)
    }
}

/// The options in the protocol.
pub mod in_protocol {
    use serde::{Deserializer, Serializer};

    use crate::flow::socket::SocketNumbers;

    /// Writes those that are set.
    pub fn serialize<S: Serializer>(numbers: &SocketNumbers, serializer: S) -> Result<S::Ok, S::Error> {
        numbers.write(serializer, |option| option.in_protocol)
    }

    /// Reads those that it knows.
    pub fn deserialize<'de, D: Deserializer<'de>>(deserializer: D) -> Result<SocketNumbers, D::Error> {
        SocketNumbers::read(deserializer, |option| option.in_protocol)
    }
}

/// Reads the members of an object that are socket options by these names.
struct Members<F>(F);

impl<'de, F: Fn(&SocketOption) -> &'static str> Visitor<'de> for Members<F> {
    type Value = SocketNumbers;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("an object")
    }

    fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<SocketNumbers, A::Error> {
        let mut numbers = SocketNumbers::default();
        while let Some(key) = map.next_key::<String>()? {
            match TABLE.iter().position(|option| self.0(option) == key) {
                Some(index) => {
                    numbers.0[index] = map.next_value::<Option<ByteCount>>()?.map(ByteCount::as_bytes);
                }
                None => drop(map.next_value::<IgnoredAny>()?),
            }
        }
        Ok(numbers)
    }
}

#[cfg(feature = "schema")]
impl schemars::JsonSchema for SocketNumbers {
    fn inline_schema() -> bool {
        true
    }

    fn schema_name() -> std::borrow::Cow<'static, str> {
        "SocketNumbers".into()
    }

    fn json_schema(_: &mut schemars::SchemaGenerator) -> schemars::Schema {
        let member = |option: &SocketOption| {
            let most = (option.most < u64::MAX).then_some(option.most);
            let mut schema = serde_json::json!({ "type": "integer", "minimum": 0 });
            if let Some(most) = most {
                schema["maximum"] = most.into();
            }
            schema["description"] = option.about.into();
            (option.member.to_owned(), schema)
        };
        let members: serde_json::Map<_, _> = TABLE.iter().map(member).collect();
        schemars::json_schema!({ "type": "object", "properties": members })
    }
}
