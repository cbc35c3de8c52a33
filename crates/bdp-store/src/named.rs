//! Kinds that are stored by their names.

/// Gives a kind its names: all of it, the name of each, and each by its name.
macro_rules! named {
    ($kind:ident: $($variant:ident = $name:literal),+) => {
        impl $kind {
            /// Every kind.
            pub const ALL: [Self; [$($name),+].len()] = [$(Self::$variant),+];

            /// As it is stored and printed.
            pub const fn name(self) -> &'static str {
                match self {
                    $(Self::$variant => $name),+
                }
            }

            /// The kind of this name.
            pub fn named(name: &str) -> Option<Self> {
                Self::ALL.into_iter().find(|kind| kind.name() == name)
            }
        }
    };
}

pub(crate) use named;
