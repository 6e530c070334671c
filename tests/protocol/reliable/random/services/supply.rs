//! Receives: of one queue pair, or of several, and the memory that they are into.

use doorbell_core::nic::{
    Completion, Domain, Memory, Nic, Rights, SharedReceiveQueue, SharedReceiveQueueId,
};

use super::super::dice::{self, Dice};
use super::super::memory::{Image, Pieces, old_buf};
use super::super::message::Kind;
use super::super::model::{Check, OLD, ensure, same_kind};
use super::program;

/// What lies between two receives' memory.
const GAP: usize = 8;

/// A receive queue, and what its program knows of it.
pub struct Supply {
    /// Unless it belongs to one queue pair.
    pub shared: Option<(SharedReceiveQueueId, SharedReceiveQueue)>,
    depth: usize,
    least: usize,
    most: usize,
    /// As much registered memory as there may be receives, a slot for each.
    image: Image,
    free: Vec<usize>,
    /// How many receives are wanted of the program, how many were posted, and how many completed.
    pub wanted: usize,
    pub posted: usize,
    pub completed: usize,
    /// Below how many receives to be told, and how many there were when it was last looked.
    limit: Option<usize>,
    seen: usize,
    /// How often that was told since.
    pub told: usize,
}

/// A receive that was posted.
#[derive(Clone, Debug)]
pub struct Receive {
    pub supply: usize,
    /// The how manieth of its queue it is.
    pub number: usize,
    kind: Kind,
    slot: usize,
    pieces: Pieces,
    room: usize,
}

impl Supply {
    pub fn new(
        drawn: &program::Supply,
        nic: &mut Nic,
        domain: Domain,
        shared: Option<(SharedReceiveQueueId, SharedReceiveQueue)>,
        number: u64,
    ) -> Self {
        let &program::Supply { depth, least, most, .. } = drawn;
        // Those that are being received into are in the queue no more. Few are, or none is left.
        let slots = depth + 8;
        let bytes = dice::bytes(number, slots * (most + GAP));
        Self {
            shared,
            depth,
            least,
            most,
            image: Image::new(nic, domain, Rights::LOCAL_WRITE, bytes),
            free: (0..slots).collect(),
            wanted: 0,
            posted: 0,
            completed: 0,
            limit: None,
            seen: 0,
            told: 0,
        }
    }

    /// Wants more receives posted, as many as the queue holds at most.
    pub fn want(&mut self, count: usize) {
        self.wanted = (self.wanted + count).min(self.posted + self.depth);
    }

    /// Draws a receive, and the memory that it is posted with.
    pub fn draw(&self, supply: usize, dice: &mut Dice) -> (Receive, Memory) {
        let room = dice.between(self.least, self.most);
        let kinds = [Kind::Buf, Kind::Buf, Kind::Segment, Kind::List];
        // A slot may be wanting while completions wait to be polled.
        let slot = self.free.last().copied();
        let kind = if slot.is_some() { dice.pick(&kinds) } else { Kind::Buf };
        let slot = slot.unwrap_or(0);
        let at = slot * (self.most + GAP);
        let split = dice.below(room + 1);
        let pieces = match kind {
            Kind::None | Kind::Buf => Vec::new(),
            Kind::Segment => vec![(at, room)],
            Kind::List => vec![(at, split), (at + split, room - split)],
        };
        let memory = match kind {
            Kind::Buf => old_buf(room),
            _ => self.image.memory(kind, &pieces),
        };
        (Receive { supply, number: self.posted, kind, slot, pieces, room }, memory)
    }

    /// Notes that it was posted.
    pub fn entered(&mut self, receive: &Receive) {
        self.posted += 1;
        if !receive.pieces.is_empty() {
            self.free.pop();
        }
        self.seen = self.waiting();
    }

    /// How many receives are in a shared queue.
    pub fn waiting(&self) -> usize {
        self.shared.as_ref().map_or(0, |(_, queue)| self.depth - queue.room())
    }

    /// Notes the limit that was set.
    pub fn limited(&mut self, limit: usize) {
        self.limit = Some(limit);
    }

    /// That fewer are left was told once if a message has left so few, and not otherwise. To be
    /// called whenever a message may have come, and before more are posted.
    pub fn look(&mut self) -> Check {
        let (now, told) = (self.waiting(), std::mem::take(&mut self.told));
        let low = self.limit.filter(|&limit| now < self.seen && now < limit);
        ensure!(
            told == usize::from(low.is_some()),
            "of {} receives {now} are left, with {:?} to be told at: told {told} times",
            self.seen,
            self.limit
        );
        if low.is_some() {
            self.limit = None;
        }
        self.seen = now;
        Ok(())
    }

    /// The first bytes that a receive brought.
    pub fn brought(&self, receive: &Receive, completion: &Completion) -> Vec<u8> {
        match &completion.memory {
            Memory::Buf(buf) => buf.to_vec(),
            _ => {
                let (mut now, _) = self.image.gather(&receive.pieces);
                now.truncate(completion.len as usize);
                now
            }
        }
    }

    /// A receive is complete: what came with it went there, and may have left something of messages
    /// before that did not come whole, but nowhere else.
    pub fn completed(&mut self, receive: &Receive, completion: &Completion, filled: bool) -> Check {
        let Receive { kind, room, ref pieces, slot, .. } = *receive;
        let memory = &completion.memory;
        ensure!(same_kind(kind, memory), "a receive into {kind:?} came back with {memory:?}");
        if let Memory::Buf(buf) = memory {
            let len = if filled { completion.len as usize } else { OLD.len().min(room) };
            ensure!(buf.capacity() == room, "a buffer of {room} came back as {buf:?}");
            ensure!(buf.len() == len, "a buffer with {len} bytes came back with {}", buf.len());
        }
        self.completed += 1;
        if !pieces.is_empty() {
            let (now, _) = self.image.gather(pieces);
            self.image.expect(pieces, &now);
            self.free.push(slot);
        }
        Ok(())
    }

    /// Memory of receives that are not complete is not touched, nor that between them.
    pub fn check(&self) -> Check {
        self.image.check("memory to receive into")
    }

    /// Forgets all about it, but for its ends.
    pub fn leave(self, nic: &mut Nic) -> Option<SharedReceiveQueueId> {
        nic.deregister(self.image.registration.lkey).expect("it was registered");
        self.shared.map(|(id, _)| id)
    }
}
