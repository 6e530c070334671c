//! What comes from the NIC: completions of datagrams, and of lanes.

use doorbell_verbs::{
    Buf, CompletionQueue, DATAGRAM_HEADER, Done, Memory, Name, ReceiveQueue, SharedReceiveQueue,
};

use super::state::State;
use crate::frames::engine::Time;
use crate::frames::wire::{FRAME_HEADER, Frame, Kind};

/// The most completions that are handled before others get to run.
const MOST_AT_ONCE: usize = 64;

/// The receives for notices of placed frames, which the lanes of all peers share. A peer's notice
/// that finds none is sent again by the peer's NIC.
pub const NOTICES: usize = 512;

/// The completion queue of an endpoint, and the receives of its datagrams and of its lanes. Whoever
/// handles what has come posts new receives, so that they last whether or not tasks get to run.
#[derive(Debug)]
pub struct Works {
    pub completions: CompletionQueue,
    receives: ReceiveQueue,
    notices: SharedReceiveQueue,
}

impl Works {
    pub fn new(
        completions: CompletionQueue,
        receives: ReceiveQueue,
        notices: SharedReceiveQueue,
    ) -> Self {
        Self { completions, receives, notices }
    }

    /// Posts as many receives of notices as there is room for, and of datagrams of `bytes` bytes.
    pub fn fill(&mut self, bytes: usize) {
        self.fill_notices();
        while self.receives.room() > 0 {
            let posted = self.receives.post(0, Buf::with_capacity(DATAGRAM_HEADER + bytes));
            if posted.is_err() {
                return;
            }
        }
    }

    fn fill_notices(&mut self) {
        while self.notices.room() > 0 {
            if self.notices.post(0, Buf::with_capacity(2 * FRAME_HEADER)).is_err() {
                return;
            }
        }
    }

    /// Handles what has come. Returns whether more may be there, and appends the names of peers to
    /// which the way has to be found.
    pub fn take(&mut self, state: &mut State, now: Time, finds: &mut Vec<Name>) -> bool {
        let mut taken = 0;
        while taken < MOST_AT_ONCE {
            let Some(mut done) = self.completions.look() else { return false };
            taken += 1;
            let (qpn, outcome, len) = (done.qpn, done.outcome, done.len as usize);
            let memory = std::mem::take(&mut done.memory);
            drop(done);
            if qpn != self.receives.qpn() {
                take_of_lane(state, qpn.get(), outcome.is_ok(), memory, now);
                self.fill_notices();
                continue;
            }
            let (Ok(Done::ReceivedDatagram { source }), Memory::Buf(buf)) = (outcome, memory)
            else {
                continue;
            };
            let frame = buf.get(DATAGRAM_HEADER..len.max(DATAGRAM_HEADER)).unwrap_or_default();
            finds.extend(state.handle(frame, source.get(), now));
            let posted = self.receives.post(0, buf);
            debug_assert!(posted.is_ok(), "there was room for the receive before");
        }
        true
    }
}

/// Handles a completion of a lane: of this side's, which has room again or has ended; or of a peer's,
/// by which a notice has come.
fn take_of_lane(state: &mut State, qpn: u32, is_good: bool, memory: Memory, now: Time) {
    if let Some(&identity) = state.lanes.get(&qpn) {
        // The task that watches the lane may not get to run.
        return if is_good { state.activate(identity) } else { state.lane_ended(qpn) };
    }
    if !is_good {
        return;
    }
    let Some(accepted) = state.accepted.get(&qpn) else { return };
    let Memory::Buf(buf) = memory else { return };
    let identity = accepted.identity;
    let is_sound = |frame: &Frame<'_>| {
        frame.sender == identity && matches!(frame.head.kind, Kind::Placed { .. })
    };
    match Frame::parse(&buf).filter(is_sound) {
        Some(frame) => state.handle_of(&frame, now),
        None => state.count_malformed(),
    }
}
