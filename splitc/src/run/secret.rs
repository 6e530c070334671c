//! The key by which the processes of one job know each other.

/// A random number that other processes can't guess.
pub(super) fn secret() -> u64 {
    getrandom::u64().expect("Linux has random numbers once it has started")
}
