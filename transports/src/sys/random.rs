//! Random numbers of the system.

use std::io;

use rustix::rand::{GetRandomFlags, getrandom};

use super::error::Context;

/// Returns bytes that nobody can guess. The kernel gives up to 256 at once, without being
/// interrupted by a signal.
///
/// # Errors
/// When the kernel has no random numbers to give.
pub fn random<const N: usize>() -> io::Result<[u8; N]> {
    let mut bytes = [0; N];
    getrandom(&mut bytes, GetRandomFlags::empty()).context("getrandom")?;
    Ok(bytes)
}
