//! A registration of memory, and why memory may not be registered or used.

use thiserror::Error;

use crate::nic::protection::segment::{Lkey, Segment};
use crate::wire::{RemoteAddr, Rkey};

/// The keys and the addresses by which registered memory is named.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub struct Registration {
    /// The local key, for the program's own requests.
    pub lkey: Lkey,
    /// The remote key, which peers are told with the address.
    pub rkey: Rkey,
    /// The address of the first byte, by both keys.
    pub address: RemoteAddr,
    /// How many bytes are registered.
    pub len: u64,
}

impl Registration {
    /// Returns a part of the registered memory, for the program's own requests. Whether the part
    /// lies within the memory is checked when a request uses it.
    #[inline]
    pub fn segment(&self, offset: u64, len: u32) -> Segment {
        Segment { address: self.address.0.wrapping_add(offset), len, lkey: self.lkey }
    }
}

/// Why memory may not be used as a request wants to. The number is the request's key.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Error)]
pub enum KeyError {
    /// The key names no registration: it was never given, or was revoked.
    #[error("key {0:#010x} is unknown: never given, or revoked")]
    Unknown(u32),
    /// The key belongs to another protection domain than the queue pair.
    #[error("key {0:#010x} belongs to another protection domain than the queue pair")]
    Domain(u32),
    /// The request's bytes do not all lie within the memory that the key was given for.
    #[error("not all of the bytes lie within what key {0:#010x} was given for")]
    Bounds(u32),
    /// The registration does not grant the right that the request needs.
    #[error("key {0:#010x} was registered without the right for this")]
    Rights(u32),
}

/// Every entry of the table is taken.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Error)]
#[error(
    "all {0} registrations of this NIC are taken: deregister some, or configure more \
     (`Config::registrations`)"
)]
pub struct TableFull(pub usize);
