//! The states of a queue pair, and the transitions between them.

/// The state of a queue pair.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
#[repr(u8)]
pub enum State {
    /// Made, and of no use yet.
    Reset,
    /// Takes receives, and no packets.
    Init,
    /// Receives.
    ReadyToReceive,
    /// Receives and sends.
    ReadyToSend,
    /// Receives, finishes what was begun, and begins nothing.
    Draining,
    /// Broken, or told to stop: everything posted is flushed.
    Error,
}

impl State {
    /// Every state.
    pub const ALL: [Self; 6] = [
        Self::Reset,
        Self::Init,
        Self::ReadyToReceive,
        Self::ReadyToSend,
        Self::Draining,
        Self::Error,
    ];

    /// The first of those in which [sends](Self::takes_sends) and [receives](Self::takes_receives)
    /// may be posted; all behind it are others. So to look takes one comparison.
    pub(crate) const TAKING_SENDS: Self = Self::ReadyToSend;

    pub(crate) const TAKING_RECEIVES: Self = Self::Init;

    #[inline]
    pub(crate) fn from_code(code: u8) -> Self {
        Self::ALL.get(usize::from(code)).copied().unwrap_or(Self::Error)
    }

    /// Whether sends may be posted.
    #[inline]
    pub const fn takes_sends(self) -> bool {
        matches!(self, Self::ReadyToSend | Self::Draining | Self::Error)
    }

    /// Whether receives may be posted.
    #[inline]
    pub const fn takes_receives(self) -> bool {
        !matches!(self, Self::Reset)
    }

    /// Whether requests of the peer are taken.
    #[inline]
    pub(crate) const fn responds(self) -> bool {
        matches!(self, Self::ReadyToReceive | Self::ReadyToSend | Self::Draining)
    }

    /// Whether requests are sent, and their answers taken.
    #[inline]
    pub(crate) const fn requests(self) -> bool {
        matches!(self, Self::ReadyToSend | Self::Draining)
    }

    /// Whether a queue pair may go from here to there: the whole diagram.
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
