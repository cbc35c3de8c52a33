//! Enumerations of which every variant has a name in JSON and in the documentation.

/// An enumeration with all of its variants as `ALL`, the name of each, which is its form in JSON, and what it is: the pages of the
/// documentation and the schemas have tables of these.
macro_rules! named {
    (
        $(#[$about:meta])*
        pub enum $type:ident { $( $(#[doc = $doc:literal])+ $variant:ident = $name:literal, )+ }
    ) => {
        $(#[$about])*
        #[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, serde::Serialize, serde::Deserialize)]
        #[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
        #[serde(rename_all = "snake_case")]
        pub enum $type { $( $(#[doc = $doc])+ $variant, )+ }

        impl $type {
            /// Every one, in the order of the documentation.
            pub const ALL: &'static [Self] = &[ $( Self::$variant, )+ ];

            /// As JSON and the documentation have it.
            pub const fn name(self) -> &'static str {
                match self { $( Self::$variant => $name, )+ }
            }

            /// What it is, in the words of the documentation.
            pub const fn about(self) -> &'static str {
                match self { $( Self::$variant => concat!($($doc),+), )+ }.trim_ascii()
            }
        }
    };
}

pub(crate) use named;
