//! The states of a connection, and the transitions between them that are legal.

/// The state of a connection, named as the InfiniBand specification's state diagrams for
/// communication establishment and release do.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub enum ConnectionState {
    /// A REQ was sent, and the peer has not replied.
    ReqSent,
    /// A REQ was received, and the program has neither accepted nor rejected it.
    ReqReceived,
    /// The program accepted, a REP was sent, and the peer has not confirmed it.
    RepSent,
    /// A REP was received, and the program has not made its queue pair ready.
    RepReceived,
    /// The connection may be used by both sides.
    Established,
    /// A DREQ was sent, and the peer has not confirmed it.
    DreqSent,
    /// The connection is over, and its identifiers must not be used again yet.
    TimeWait,
}

impl ConnectionState {
    /// The list of all states.
    pub const ALL: [Self; 7] = [
        Self::ReqSent,
        Self::ReqReceived,
        Self::RepSent,
        Self::RepReceived,
        Self::Established,
        Self::DreqSent,
        Self::TimeWait,
    ];

    /// Whether a connection may go from this state to `next`: the whole state diagram.
    pub const fn may_become(self, next: Self) -> bool {
        match next {
            // Where packets are to be encrypted, the handshake comes first, and then the terms.
            Self::ReqSent => matches!(self, Self::RepReceived),
            Self::ReqReceived => matches!(self, Self::RepSent),
            Self::RepSent => matches!(self, Self::ReqReceived),
            Self::RepReceived => matches!(self, Self::ReqSent),
            Self::Established => matches!(self, Self::RepSent | Self::RepReceived),
            Self::DreqSent => matches!(self, Self::Established),
            Self::TimeWait => !matches!(self, Self::TimeWait),
        }
    }

    /// Whether the program was told that the connection is established, and not yet that it ended.
    pub(super) const fn was_established(self) -> bool {
        matches!(self, Self::Established | Self::DreqSent)
    }
}
