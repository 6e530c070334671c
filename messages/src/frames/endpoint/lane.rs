//! Lanes: connections by which frames are placed in the receives of peers, by RDMA writes.

use std::sync::Arc;

use doorbell_verbs::work::{Send, Write};
use doorbell_verbs::{Queues, RemoteMemory};
use tokio::sync::Notify;

use super::handle::LaneState;
use crate::frames::policy::Offload;
use crate::frames::wire::{FRAME_HEADER, Head};

/// The writes and notices that may wait in a lane.
pub const DEPTH: usize = 256;
/// As many as a burst can have: two windows of frames, and a notice.
const BURST: usize = 2 * 32 + 1;
/// The lane to a peer.
#[derive(Debug, Default)]
pub struct Lane {
    state: Made,
    /// Tells when the lane is made, or can't be.
    changed: Arc<Notify>,
}

#[derive(Debug, Default)]
enum Made {
    #[default]
    Not,
    UnderWay,
    Done {
        queues: Box<Queues>,
        identity: u64,
    },
    Failed,
}

/// A peer's lane to this side. Its notices take receives that all lanes share, so notices may come
/// before this side knows that the connection is made.
#[derive(Debug)]
pub struct Accepted {
    /// The identity of the peer.
    pub identity: u64,
    /// The end of the connection on this side, which lasts as long as this is kept. `None` until
    /// this side knows that the connection is made.
    pub queues: Option<Queues>,
}

impl Lane {
    /// Whether the lane has to be made: it is asked for, and was not tried. It counts as being made
    /// from here on.
    pub fn is_wanted(&mut self) -> bool {
        let is_wanted = matches!(self.state, Made::Not);
        if is_wanted {
            self.state = Made::UnderWay;
        }
        is_wanted
    }

    /// Tells how making the lane stands.
    pub fn state(&self) -> LaneState {
        match &self.state {
            Made::Done { .. } => LaneState::Made,
            Made::Failed => LaneState::Not,
            _ => LaneState::UnderWay(self.changed.clone().notified_owned()),
        }
    }

    /// Puts the lane in its place, by which the endpoint of this identity writes.
    pub fn made(&mut self, queues: Queues, identity: u64) {
        self.state = Made::Done { queues: Box::new(queues), identity };
        self.changed.notify_waiters();
    }

    /// Notes that the lane can't be made.
    pub fn failed(&mut self) {
        self.state = Made::Failed;
        self.changed.notify_waiters();
    }

    /// Notes that the lane has ended. It is made anew for the next message.
    pub fn ended(&mut self) {
        self.state = Made::Not;
    }

    /// Whether a burst has room.
    pub fn has_room(&self) -> bool {
        match &self.state {
            Made::Done { queues, .. } => queues.send.room() >= BURST,
            _ => true,
        }
    }

    /// Places frames, and tells the peer behind them. Once the lane has ended, a completion or the
    /// lane's watch tells that, and the peer asks for the frames again.
    pub fn place(
        &mut self,
        (memory, data, stride): (RemoteMemory, &[u8], u16),
        notice: &Head,
        offload: Offload,
    ) {
        let Made::Done { queues, identity } = &mut self.state else { return };
        let stride = match offload {
            Offload::Both => data.len(),
            _ => stride.into(),
        };
        let mut at = 0;
        for part in data.chunks(stride.max(1)) {
            let place = memory.at(at, part.len() as u64);
            let write = place.ok().and_then(|place| Write::new(part.to_vec(), place).ok());
            let Some(write) = write else { return };
            if queues.send.put(write.unsignalled()).is_err() {
                return;
            }
            at += part.len() as u64;
        }
        let mut bytes = Vec::with_capacity(FRAME_HEADER);
        notice.encode(*identity, None, &mut bytes);
        if let Ok(send) = Send::inline(&bytes) {
            let _ = queues.send.post(send);
        }
    }
}
