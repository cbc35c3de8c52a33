//! Names of the variants of enumerations.

/// Gives each variant of an enumeration its name: `names!(End: Near = "near", Far = "far");`.
#[macro_export]
macro_rules! names {
    ($type:ident: $($variant:ident = $name:literal),+ $(,)?) => {
        impl $type {
            /// Returns its name, as in JSON and on screen.
            pub const fn name(self) -> &'static str {
                match self {
                    $(Self::$variant => $name,)+
                }
            }
        }
    };
}
