//! Hash tables whose keys strangers choose.

use std::hash::{BuildHasher, DefaultHasher, Hasher};

/// A hash function keyed by a secret, so that strangers can't choose keys that collide in a table.
#[derive(Clone, Copy)]
pub(super) struct KeyedHash(pub u64);

impl BuildHasher for KeyedHash {
    type Hasher = DefaultHasher;

    fn build_hasher(&self) -> DefaultHasher {
        let mut hasher = DefaultHasher::new();
        hasher.write_u64(self.0);
        hasher
    }
}
