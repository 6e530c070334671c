//! What the [NIC](crate::nic) and the [connection manager](crate::cm) have in common, which
//! otherwise know nothing of each other.
//!
//! | file | idea |
//! |---|---|
//! | `random` | seeded randomness for numbers that strangers must not guess |
//! | `timers` | a timing wheel: one timer for each queue pair or connection |
//! | `tag` | the process tag, which queue pair numbers carry |
//! | `xorshift` | numbers without a pattern, which anybody may guess |

pub(crate) mod random;
pub(crate) mod tag;
pub(crate) mod timers;
pub(crate) mod xorshift;

pub use random::Seed;
