//! The numbers of stations, switches and cables, and of what belongs to them.

/// Declares the numbers of parts of a network. A number means nothing in another network.
macro_rules! names {
    ($($(#[$doc:meta])* $name:ident;)+) => {$(
        $(#[$doc])*
        #[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
        pub struct $name(pub(crate) u32);

        impl $name {
            /// The number as an index: parts count up from zero in the order in which they were
            /// made.
            pub const fn index(self) -> usize {
                self.0 as usize
            }
        }
    )+};
}

names! {
    /// A station of a [`Network`](crate::Network): an end with one interface and one timer.
    StationId;
    /// A switch of a [`Network`](crate::Network).
    SwitchId;
    /// A cable of a [`Network`](crate::Network).
    LinkId;
}

/// The number of a lane. Each link has two lanes.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) struct LaneId(pub(crate) u32);

impl LaneId {
    pub(crate) const fn both(link: LinkId) -> [Self; 2] {
        [Self(2 * link.0), Self(2 * link.0 + 1)]
    }

    pub(crate) const fn opposite(self) -> Self {
        Self(self.0 ^ 1)
    }

    pub(crate) const fn index(self) -> usize {
        self.0 as usize
    }
}

/// The number of a port of a switch.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) struct SwitchPort(pub(crate) u32);
