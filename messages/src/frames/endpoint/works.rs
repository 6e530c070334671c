//! What comes from the NIC: completions of datagrams, and of lanes.

use doorbell_verbs::{Buf, CompletionQueue, DATAGRAM_HEADER, Done, Memory, ReceiveQueue};

use super::lane::Accepted;
use super::name::Name;
use super::state::State;
use crate::frames::engine::Time;
use crate::frames::wire::{Frame, Kind};

/// The most completions that are handled before others get to run.
const MOST_AT_ONCE: usize = 64;

/// The completion queue of an endpoint, and the receives of its datagrams.
#[derive(Debug)]
pub struct Works {
    pub completions: CompletionQueue,
    receives: ReceiveQueue,
}

impl Works {
    pub fn new(completions: CompletionQueue, receives: ReceiveQueue) -> Self {
        Self { completions, receives }
    }

    /// Posts as many receives of datagrams as there is room for.
    pub fn fill(&mut self, bytes: usize) {
        while self.receives.room() > 0 {
            let posted = self.receives.post(0, Buf::with_capacity(DATAGRAM_HEADER + bytes));
            if posted.is_err() {
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
                take_of_lane(state, qpn.get(), memory, now);
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

/// Handles a completion of a lane: of this side's, which has room again; or of a peer's, by which a
/// notice has come.
fn take_of_lane(state: &mut State, qpn: u32, memory: Memory, now: Time) {
    if let Some(&identity) = state.lanes.get(&qpn) {
        return state.activate(identity);
    }
    let Some(accepted) = state.accepted.get_mut(&qpn) else { return };
    let Memory::Buf(buf) = memory else { return };
    let identity = accepted.identity;
    let is_sound = |frame: &Frame<'_>| {
        frame.sender == identity && matches!(frame.head.kind, Kind::Placed { .. })
    };
    match Frame::parse(&buf).filter(is_sound) {
        Some(frame) => state.handle_of(&frame, now),
        None => state.count_malformed(),
    }
    state.accepted.get_mut(&qpn).into_iter().for_each(Accepted::fill);
}
