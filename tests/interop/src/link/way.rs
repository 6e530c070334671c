//! The directions of the link.

/// A direction of the link.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Way {
    /// From the namespace to the guest.
    ToGuest,
    /// From the guest to the namespace.
    FromGuest,
}

impl Way {
    /// Both directions of the link.
    pub const ALL: [Self; 2] = [Self::ToGuest, Self::FromGuest];
}
