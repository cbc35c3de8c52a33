//! Enumerations whose variants have a name in JSON and in the documentation.

/// Declares an enumeration with a list of its variants (`ALL`), and a JSON name and a description for each: the tables of the
/// documentation and the schemas are made from these.
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
            /// All variants, in the order of the documentation.
            pub const ALL: &'static [Self] = &[ $( Self::$variant, )+ ];

            /// The name in JSON and in the documentation.
            pub const fn name(self) -> &'static str {
                match self { $( Self::$variant => $name, )+ }
            }

            /// The description in the documentation.
            pub const fn about(self) -> &'static str {
                match self { $( Self::$variant => concat!($($doc),+), )+ }.trim_ascii()
            }
        }
    };
}

/// Declares such an enumeration grouped by kind: each variant is also a variant of its kind's type, so that a `match` by kind is exhaustive.
macro_rules! named_kinds {
    (
        $(#[$about:meta])*
        pub enum $type:ident { $(
            $(#[doc = $of:literal])+
            $kind:ident { $( $(#[doc = $doc:literal])+ $variant:ident = $name:literal, )+ }
        )+ }
    ) => {
        named! {
            $(#[$about])*
            pub enum $type { $($( $(#[doc = $doc])+ $variant = $name, )+)+ }
        }

        $(
            $(#[doc = $of])+
            #[derive(Debug, Clone, Copy, PartialEq, Eq)]
            pub enum $kind { $( $(#[doc = $doc])+ $variant, )+ }
        )+

        /// A variant by its kind.
        #[derive(Debug, Clone, Copy, PartialEq, Eq)]
        pub enum Kind { $( $(#[doc = $of])+ $kind($kind), )+ }

        impl $type {
            /// Returns the kind, with the variant of that kind.
            pub const fn kind(self) -> Kind {
                match self { $($( Self::$variant => Kind::$kind($kind::$variant), )+)+ }
            }
        }
    };
}

pub(crate) use named;
pub(super) use named_kinds;
