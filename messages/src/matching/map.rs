//! Maps with a quick hash function.

use std::collections::HashMap;

/// A map whose hash function is quick, and whose seed peers don't know.
pub type Map<K, V> = HashMap<K, V, foldhash::fast::RandomState>;
