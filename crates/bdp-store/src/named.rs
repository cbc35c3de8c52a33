//! Kinds that are stored by name.

/// Defines the names of a kind: the list of all, the name of each, and the lookup by name.
macro_rules! named {
    ($kind:ident: $($variant:ident = $name:literal),+) => {
        impl $kind {
            /// Every kind.
            pub const ALL: [Self; [$($name),+].len()] = [$(Self::$variant),+];

            /// Returns the name used in the store and in output.
            pub const fn name(self) -> &'static str {
                match self {
                    $(Self::$variant => $name),+
                }
            }

            /// Returns the kind with this name.
            pub fn named(name: &str) -> Option<Self> {
                Self::ALL.into_iter().find(|kind| kind.name() == name)
            }
        }
    };
}

pub(crate) use named;
