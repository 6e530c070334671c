//! Glob imports of the parts of Doorbell, beside which the standard names keep their meaning.

/// In a module of its own each, what is imported whole, and standard names that must be the
/// standard's: an import of the same name would hide them.
macro_rules! imported {
    ($($module:ident)+) => {$(
        mod $module {
            #[allow(unused_imports)]
            use super::parts::$module::*;

            pub fn with<T>(value: T) -> Option<Result<Box<T>, String>>
            where
                T: Send + Sync + Unpin + Clone + Copy + Default + AsRef<T> + Into<T> + Eq + Ord,
            {
                let values: Vec<T> = [value].into_iter().collect();
                drop(values.clone());
                values.first().copied().map(|value| match value == T::default() {
                    true => Err("nothing".to_string()),
                    false => Ok(Box::new(value)),
                })
            }
        }
    )+

        /// Whether each of them does what its standard names say.
        fn all<T>(value: T) -> Vec<Option<Result<Box<T>, String>>>
        where
            T: Send + Sync + Unpin + Copy + Default + AsRef<T> + Ord,
        {
            vec![$($module::with(value)),+]
        }
    };
}

/// The parts, wherever the facade has them.
mod parts {
    pub use doorbell::protocol::{
        cm, connect, encap, memory, nic, payload, pcap, pcapng, time, wire,
    };
    pub use doorbell::{am, transports, verbs};
}

imported! { am cm connect encap memory nic payload pcap pcapng time transports verbs wire }

#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Default, Debug)]
struct One(u8);

impl AsRef<One> for One {
    fn as_ref(&self) -> &One {
        self
    }
}

#[test]
fn no_glob_import_hides_a_standard_name() {
    for found in all(One(1)) {
        assert_eq!(found, Some(Ok(Box::new(One(1)))));
    }
}
