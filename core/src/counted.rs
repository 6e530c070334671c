//! Structures of counters, which name their fields.

/// Declares a structure of public counters, all of them integers of up to 64 bits, whose method
/// `each` lists them.
#[doc(hidden)]
#[macro_export]
macro_rules! counted {
    (
        $(#[$about:meta])*
        pub struct $Name:ident {
            $($(#[$what:meta])* pub $counter:ident: $kind:ty,)+
        }
    ) => {
        $(#[$about])*
        pub struct $Name {
            $($(#[$what])* pub $counter: $kind,)+
        }

        impl $Name {
            /// Returns each counter with its name, in the order of the fields.
            pub fn each(&self) -> impl Iterator<Item = (&'static str, u64)> {
                [$((stringify!($counter), self.$counter as u64)),+].into_iter()
            }
        }
    };
}
