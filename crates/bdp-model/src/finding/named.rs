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

/// Such an enumeration in kinds: each variant is one of the type of its kind, too, so that whoever goes by kinds has to know it.
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

        /// One of them by its kind.
        #[derive(Debug, Clone, Copy, PartialEq, Eq)]
        pub enum Kind { $( $(#[doc = $of])+ $kind($kind), )+ }

        impl $type {
            /// Its kind, and which one of that it is.
            pub const fn kind(self) -> Kind {
                match self { $($( Self::$variant => Kind::$kind($kind::$variant), )+)+ }
            }
        }
    };
}

pub(crate) use named;
pub(super) use named_kinds;
