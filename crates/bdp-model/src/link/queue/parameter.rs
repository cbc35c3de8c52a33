//! What a kind of queue and its parameters declare, and the macros that declare them.

use std::ops::RangeInclusive;

use super::reading::QueueLimit;
use crate::units::{Nanos, Probability};

/// What all queues of a kind share.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct QueueKind {
    /// Its name in scenarios and `tc`.
    pub name: &'static str,
    /// What it is.
    pub about: &'static str,
    /// Whether it decides when a packet arrives, and not when its turn comes.
    pub on_arrival: bool,
    /// The default limit, that of Linux: packets, or IP bytes if it takes bytes, too.
    pub limit: QueueLimit,
    /// Whether its decisions are drawn at random.
    pub draws: bool,
    /// Whether the kernel's queue enforces a rate by itself.
    pub shapes: bool,
    /// Whether the kernel counts `tupdate` in jiffies.
    pub in_jiffies: bool,
    /// Whether its parameters have other words in `tc` than in a scenario.
    pub own_words: bool,
    /// The kernel's attribute of the limit, if it has one of its own.
    pub limit_attribute: Option<u16>,
    /// The kernel's attribute of its memory limit, with a value that never matters.
    pub memory: Option<(u16, u32)>,
    /// The first kernel that has it, if older ones are in use.
    pub since: Option<&'static str>,
}

/// A parameter of a queue.
#[derive(Debug)]
pub struct QueueParameter<'a> {
    /// Its name in scenarios and `tc`.
    pub key: &'static str,
    /// What it is, in a sentence.
    pub about: &'static str,
    /// A reference to its value, and the allowed values.
    pub value: QueueValue<'a>,
    /// The kernel's attribute (`TCA_*` of linux/pkt_sched.h), if it has one of its own.
    pub attribute: Option<u16>,
}

/// A reference to a parameter's value, with the allowed values.
#[derive(Debug)]
pub enum QueueValue<'a> {
    /// A time with a minimum; the kernel takes microseconds.
    Time(&'a mut Nanos, Nanos),
    /// An optional time.
    OptionalTime(&'a mut Option<Nanos>),
    /// A whole number.
    Count(&'a mut u32, RangeInclusive<u64>),
    /// A whole number that the kernel takes as a byte.
    SmallCount(&'a mut u32, RangeInclusive<u64>),
    /// IP bytes.
    Bytes(&'a mut u32, RangeInclusive<u64>),
    /// A switch.
    Flag(&'a mut bool),
    /// A switch that the kernel takes as a byte.
    SmallFlag(&'a mut bool),
    /// A fraction.
    Fraction(&'a mut Probability),
    /// One of several words.
    Choice(&'a mut dyn QueueChoice),
}

/// A parameter that is one of several words.
pub trait QueueChoice: std::fmt::Debug {
    /// Returns the words, each with the kernel's value.
    fn words(&self) -> &'static [(&'static str, u32)];
    /// Returns the index of the current word.
    fn index(&self) -> usize;
    /// Sets the word with this index.
    fn choose(&mut self, index: usize);
}

/// Returns the first line of a doc comment.
macro_rules! first_line {
    (#[doc = $line:literal] $($rest:tt)*) => {
        $line
    };
}

/// Declares the parameters of a queue, as a structure: each with its doc comment and serde attributes, then
/// `member: type = default => key, kind of value (allowed values), attribute;`. Parameters of a queue within it come first, as
/// `member: type = default, [attributes]` in parentheses.
macro_rules! parameters {
    (
        $(#[$($of:tt)*])*
        $name:ident $((
            $(#[$($inner_of:tt)*])*
            $inner:ident: $inner_type:ty = $inner_default:expr, $numbers:expr
        ))? {
            $(
                $(#[$($meta:tt)*])*
                $member:ident: $type:ty = $default:expr => $key:literal, $value:ident $(($allowed:expr))? $(, $number:literal)?;
            )*
        }
    ) => {
        $(#[$($of)*])*
        #[derive(Debug, Clone, Copy, PartialEq, serde::Serialize, serde::Deserialize)]
        #[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
        pub struct $name {
            $($(#[$($inner_of)*])* pub $inner: $inner_type,)?
            $($(#[$($meta)*])* pub $member: $type,)*
        }

        impl Default for $name {
            fn default() -> Self {
                Self { $($inner: $inner_default,)? $($member: $default,)* }
            }
        }

        impl $name {
            fn parameters(&mut self) -> Vec<QueueParameter<'_>> {
                let mut all = Vec::new();
                $(
                    let inner = self.$inner.parameters().into_iter().zip($numbers);
                    all.extend(inner.map(|(of, number)| QueueParameter { attribute: Some(number), ..of }));
                )?
                all.extend([$(QueueParameter {
                    key: $key,
                    about: first_line!($(#[$($meta)*])*).trim_start(),
                    value: QueueValue::$value(&mut self.$member $(, $allowed)?),
                    attribute: None$(.or(Some($number)))?,
                },)*]);
                all
            }
        }
    };
}

/// Declares the kinds of queues, as an enumeration: each with its doc comment, then `Variant = name { members of QueueKind }`.
macro_rules! kinds {
    (
        $(#[$($of:tt)*])*
        $queue:ident { $($(#[$($meta:tt)*])* $variant:ident = $name:tt { $($fact:ident: $value:expr),* $(,)? })* }
    ) => {
        $(#[$($of)*])*
        #[derive(Debug, Clone, Copy, PartialEq, serde::Serialize, serde::Deserialize)]
        #[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
        #[serde(tag = "kind")]
        pub enum $queue {
            $($(#[$($meta)*])* #[serde(rename = $name)] $variant($variant),)*
        }

        impl $queue {
            /// Names of the kinds in scenarios.
            pub const KINDS: &[&str] = &[$($name),*];

            /// Returns a queue of each kind with the defaults of Linux.
            pub fn all() -> Vec<Self> {
                vec![$(Self::$variant($variant::default())),*]
            }

            /// Returns what all queues of its kind share.
            pub fn kind(&self) -> QueueKind {
                match self {
                    $(Self::$variant(_) => QueueKind {
                        name: $name,
                        about: first_line!($(#[$($meta)*])*).trim_start(),
                        $($fact: $value,)*
                        ..QueueKind::PLAIN
                    },)*
                }
            }

            /// Returns its parameters in the kernel's order.
            pub fn parameters(&mut self) -> Vec<QueueParameter<'_>> {
                match self {
                    $(Self::$variant(queue) => queue.parameters(),)*
                }
            }
        }
    };
}

/// Declares a parameter that is one of several words: each with its doc comment, then `Variant = word, the kernel's value;`.
macro_rules! choices {
    (
        $(#[$($of:tt)*])*
        $name:ident { $($(#[$($meta:tt)*])* $variant:ident = $word:tt, $number:literal;)* }
    ) => {
        $(#[$($of)*])*
        #[derive(Debug, Clone, Copy, PartialEq, Eq, serde::Serialize, serde::Deserialize)]
        #[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
        pub enum $name {
            $($(#[$($meta)*])* #[serde(rename = $word)] $variant,)*
        }

        impl QueueChoice for $name {
            fn words(&self) -> &'static [(&'static str, u32)] {
                &[$(($word, $number)),*]
            }

            fn index(&self) -> usize {
                *self as usize
            }

            fn choose(&mut self, index: usize) {
                *self = [$(Self::$variant),*][index];
            }
        }
    };
}

pub(super) use {choices, first_line, kinds, parameters};

impl QueueKind {
    /// What applies unless a kind declares otherwise.
    pub(super) const PLAIN: Self = Self {
        name: "",
        about: "",
        on_arrival: false,
        limit: QueueLimit::Packets(1000),
        draws: false,
        shapes: false,
        in_jiffies: false,
        own_words: false,
        limit_attribute: None,
        memory: None,
        since: None,
    };

    /// Whether its limit can be in bytes.
    pub const fn takes_bytes(&self) -> bool {
        matches!(self.limit, QueueLimit::Bytes(_))
    }
}

impl QueueValue<'_> {
    /// Returns the value in the words of a scenario, without quotes.
    pub fn shown(&self) -> String {
        match self {
            Self::Time(time, _) => time.to_string(),
            Self::OptionalTime(time) => time.map_or("none".to_owned(), |time| time.to_string()),
            Self::Count(count, _) | Self::SmallCount(count, _) | Self::Bytes(count, _) => count.to_string(),
            Self::Flag(flag) | Self::SmallFlag(flag) => flag.to_string(),
            Self::Fraction(share) => format!("{} %", share.fraction() * 100.0),
            Self::Choice(choice) => choice.words()[choice.index()].0.to_owned(),
        }
    }

    /// Returns the allowed values in words.
    pub fn allowed(&self) -> String {
        match self {
            Self::Time(_, least) => format!("from {least}"),
            Self::OptionalTime(_) => "a time or none".to_owned(),
            Self::Count(_, range) | Self::SmallCount(_, range) => {
                format!("{} to {}", range.start(), range.end())
            }
            Self::Bytes(_, range) => format!("{} to {} bytes", range.start(), range.end()),
            Self::Flag(_) | Self::SmallFlag(_) => "true or false".to_owned(),
            Self::Fraction(_) => "0 to 100 %".to_owned(),
            Self::Choice(choice) => choice.words().iter().map(|word| word.0).collect::<Vec<_>>().join(", "),
        }
    }
}
