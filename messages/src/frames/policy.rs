//! Policies: what the two protocols decide, apart from how it is carried out.
//!
//! The [engine](super::engine) asks two questions. Where a message goes, its
//! [`Receives`](super::engine::Receives) answer: the receives that the program has posted. How much
//! of a message may come now, and how its arrival is confirmed, a [`Policy`] answers.

use std::ops::RangeInclusive;

/// The most frames that a receiver clears at a time: those that fit into a clear to send twice,
/// since one window may be requested before the other is over.
const WINDOWS: RangeInclusive<u16> = 1..=32;

/// How the messages of an endpoint are sent and cleared.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub enum Policy {
    /// Everything may come at once.
    Emp(Emp),
    /// The receiver clears windows of frames.
    Rmpp(Rmpp),
}

/// The policy of EMP (Shivam, Wyckoff, Panda 2001): all frames of a message may come at once. A
/// frame of a message without a posted receive is dropped, and sent again after a time-out. Frames
/// are acknowledged by collections.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub struct Emp {
    collection: u8,
}

/// The policy of RMPP (Maccabe, Zhu, Otto, Riesen 2002): a request to send brings the first data,
/// and the receiver clears the next frames, window by window.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub struct Rmpp {
    window: u16,
    early: u16,
    buffer: usize,
    offload: Offload,
}

/// The part of RMPP's work that is left to the NICs, which are the steps of its authors.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Default, Debug)]
pub enum Offload {
    /// Frames are datagrams, which the hosts on both sides copy: step 0.
    #[default]
    None,
    /// The receiver's NIC places frames: the sender's host posts an RDMA write for each: step 1.
    Receive,
    /// The sender's NIC also cuts what is cleared into frames: its host posts one RDMA write for
    /// all of them: step 2.
    Both,
}

impl Default for Emp {
    /// Collections of three frames, as in the paper.
    fn default() -> Self {
        Self { collection: 3 }
    }
}

impl Emp {
    /// Acknowledges collections of this many frames, from 1 to 255.
    #[must_use]
    pub fn collection(self, frames: u8) -> Self {
        Self { collection: frames.max(1) }
    }
}

impl Default for Rmpp {
    /// Windows of 16 frames, the request for more with the last frame, and nothing offloaded.
    fn default() -> Self {
        Self { window: 16, early: 0, buffer: usize::MAX, offload: Offload::None }
    }
}

impl Rmpp {
    /// Clears at most this many frames at a time, from 1 to 32.
    #[must_use]
    pub fn window(self, frames: u16) -> Self {
        Self { window: frames.clamp(*WINDOWS.start(), *WINDOWS.end()), ..self }
    }

    /// Requests more this many frames before the end of a window. The paper tried 0 to 15.
    #[must_use]
    pub fn early(self, frames: u16) -> Self {
        Self { early: frames, ..self }
    }

    /// Clears at most as many frames as this many bytes hold, and one at least.
    #[must_use]
    pub fn buffer(self, bytes: usize) -> Self {
        Self { buffer: bytes, ..self }
    }

    /// Leaves a part of the work to the NICs.
    #[must_use]
    pub fn offload(self, offload: Offload) -> Self {
        Self { offload, ..self }
    }
}

impl From<Emp> for Policy {
    fn from(emp: Emp) -> Self {
        Self::Emp(emp)
    }
}

impl From<Rmpp> for Policy {
    fn from(rmpp: Rmpp) -> Self {
        Self::Rmpp(rmpp)
    }
}

impl Policy {
    /// Whether messages are sent in windows that the receiver clears.
    pub(crate) fn is_windowed(&self) -> bool {
        matches!(self, Self::Rmpp(_))
    }

    /// How many frames of a message are acknowledged together.
    pub(crate) fn collection(&self) -> u8 {
        match self {
            Self::Emp(emp) => emp.collection,
            Self::Rmpp(_) => 1,
        }
    }

    /// How many frames before the end of a window its sender requests more.
    pub(crate) fn early(&self) -> u32 {
        self.rmpp().early.into()
    }

    /// How many frames a receiver clears, of those that are still to come and that the receive has
    /// room for.
    pub(crate) fn cleared(&self, to_come: u32, stride: u16) -> u32 {
        let rmpp = self.rmpp();
        let buffered = rmpp.buffer / usize::from(stride).max(1);
        let buffered = u32::try_from(buffered).unwrap_or(u32::MAX).max(1);
        to_come.min(rmpp.window.into()).min(buffered)
    }

    /// Returns the part of the protocol's work that is left to the NICs.
    pub(crate) fn offload(&self) -> Offload {
        self.rmpp().offload
    }

    /// The choices for messages in windows. An endpoint with EMP's policy clears the windows of
    /// peers that have RMPP's by the defaults.
    fn rmpp(&self) -> Rmpp {
        match self {
            Self::Rmpp(rmpp) => *rmpp,
            Self::Emp(_) => Rmpp::default(),
        }
    }
}
