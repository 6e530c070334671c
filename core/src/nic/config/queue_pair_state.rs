//! The states of a queue pair, and the transitions between them.

/// The state of a queue pair.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
#[repr(u8)]
pub enum State {
    /// The queue pair was made, and is of no use yet.
    Reset,
    /// The queue pair takes receives, and no packets.
    Init,
    /// The queue pair receives packets, and does not send.
    ReadyToReceive,
    /// The queue pair receives and sends.
    ReadyToSend,
    /// The queue pair receives, finishes what was begun, and begins nothing more.
    Draining,
    /// The queue pair broke, or was told to stop: everything posted is flushed.
    Error,
}

impl State {
    /// Every state, in the order of their codes.
    pub const ALL: [Self; 6] = [
        Self::Reset,
        Self::Init,
        Self::ReadyToReceive,
        Self::ReadyToSend,
        Self::Draining,
        Self::Error,
    ];

    /// The first of the states in which [sends](Self::takes_sends) may be posted. All states behind
    /// it are others of that kind, so that one comparison tells.
    pub(crate) const TAKING_SENDS: Self = Self::ReadyToSend;

    /// The first of the states in which [receives](Self::takes_receives) may be posted. All states
    /// behind it are others of that kind, so that one comparison tells.
    pub(crate) const TAKING_RECEIVES: Self = Self::Init;

    /// Returns the state of a code, or the error state if the code is unknown.
    #[inline]
    pub(crate) fn from_code(code: u8) -> Self {
        Self::ALL.get(usize::from(code)).copied().unwrap_or(Self::Error)
    }

    /// Whether requests may be posted in this state.
    #[inline]
    pub const fn takes_sends(self) -> bool {
        matches!(self, Self::ReadyToSend | Self::Draining | Self::Error)
    }

    /// Whether receives may be posted in this state.
    #[inline]
    pub const fn takes_receives(self) -> bool {
        !matches!(self, Self::Reset)
    }

    /// Whether requests of the peer are accepted in this state.
    #[inline]
    pub(crate) const fn responds(self) -> bool {
        matches!(self, Self::ReadyToReceive | Self::ReadyToSend | Self::Draining)
    }

    /// Whether requests are sent, and their responses accepted, in this state.
    #[inline]
    pub(crate) const fn requests(self) -> bool {
        matches!(self, Self::ReadyToSend | Self::Draining)
    }

    /// Whether a queue pair may go from this state to `next`: the whole state diagram.
    pub const fn may_become(self, next: Self) -> bool {
        use State::{Draining, Error, Init, ReadyToReceive, ReadyToSend, Reset};
        match next {
            Reset | Error => !matches!((self, next), (Reset, Error)),
            Init => matches!(self, Reset | Init),
            ReadyToReceive => matches!(self, Init),
            ReadyToSend => matches!(self, ReadyToReceive | Draining),
            Draining => matches!(self, ReadyToSend),
        }
    }
}

const _: () = {
    let mut code = 0;
    while code < State::ALL.len() {
        let state = State::ALL[code];
        assert!(state as usize == code);
        assert!(state.takes_sends() == (code >= State::TAKING_SENDS as usize));
        assert!(state.takes_receives() == (code >= State::TAKING_RECEIVES as usize));
        code += 1;
    }
};
