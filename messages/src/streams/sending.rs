//! The slots of messages to one peer: which are free, and how much may be sent.

use std::task::{Context, Poll, Waker};

use super::control::bits;
use super::limits::Limits;
use super::wire::{Packet, Reason};

/// Why the peer takes no more of a message.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum Stopped {
    /// The connection to the peer has ended.
    Gone,
    /// The peer has said so, with a text.
    Failed(Reason, String),
}

/// A word of the peer that breaks the rules, with what is wrong.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Forged(pub &'static str);

/// The slots of messages to one peer.
#[derive(Debug)]
pub struct SendSlots {
    /// The limits that the peer has told, once it has.
    limits: Option<Limits>,
    slots: Vec<Slot>,
    /// A bit for each free slot.
    free: u64,
    is_gone: bool,
}

#[derive(Debug, Default)]
struct Slot {
    state: State,
    /// The room that the window has left.
    room: usize,
    stopped: Option<Stopped>,
    waker: Option<Waker>,
}

#[derive(Clone, Copy, PartialEq, Eq, Default, Debug)]
enum State {
    #[default]
    Free,
    /// The program sends the message.
    Open,
    /// The message was sent to its end, and nobody waits until the peer has handled it.
    Ended,
    /// The message was sent to its end, and its sender waits until the peer has handled it.
    Awaited,
    /// The peer has handled the message whose sender waits.
    Handled,
    /// The message is given up, and the peer is told or will be.
    Abandoned,
}

impl SendSlots {
    pub fn new() -> Self {
        Self { limits: None, slots: Vec::new(), free: 0, is_gone: false }
    }

    /// Notes the limits that the peer has told. Returns how many slots there are now, the first
    /// time.
    pub fn learn(&mut self, limits: Limits) -> Option<usize> {
        if self.limits.is_some() {
            return None;
        }
        self.limits = Some(limits);
        self.slots.resize_with(limits.messages, Slot::default);
        self.free = u64::MAX >> (64 - limits.messages);
        Some(limits.messages)
    }

    /// Returns the limits of the peer, once it has told them.
    pub fn limits(&self) -> Option<Limits> {
        self.limits
    }

    /// Returns whether somebody may wait for the peer: a message is being sent, its end is awaited,
    /// or no slot is free for another.
    pub fn any_awaited(&self) -> bool {
        let rests = |slot: &Slot| matches!(slot.state, State::Free | State::Ended);
        !self.slots.iter().all(rests) || self.free == 0 && !self.slots.is_empty()
    }

    /// Takes a free slot for a message.
    pub fn take(&mut self) -> Option<usize> {
        let limits = self.limits.filter(|_| self.free != 0 && !self.is_gone)?;
        let slot = self.free.trailing_zeros() as usize;
        self.free &= self.free - 1;
        self.slots[slot] = Slot { state: State::Open, room: limits.window, ..Slot::default() };
        Some(slot)
    }

    /// Takes room in the window of a message for a packet. Returns whether there was enough.
    pub fn take_room(&mut self, slot: usize, cost: usize) -> Result<bool, Stopped> {
        let slot = &mut self.slots[slot];
        if let Some(stopped) = &slot.stopped {
            return Err(stopped.clone());
        }
        let fits = cost <= slot.room;
        if fits {
            slot.room -= cost;
        }
        Ok(fits)
    }

    /// Waits until a message's window has room.
    pub fn poll_room(
        &mut self,
        slot: usize,
        cost: usize,
        context: &mut Context<'_>,
    ) -> Poll<Result<(), Stopped>> {
        let slot = &mut self.slots[slot];
        match &slot.stopped {
            Some(stopped) => Poll::Ready(Err(stopped.clone())),
            None if cost <= slot.room => Poll::Ready(Ok(())),
            None => {
                slot.wait(context);
                Poll::Pending
            }
        }
    }

    /// Notes that a packet that ends a message was sent.
    pub fn ended(&mut self, packet: Packet) {
        self.slots[packet.slot].state = if packet.waits { State::Awaited } else { State::Ended };
    }

    /// Notes that a message is given up. The peer says so when it has heard of it.
    pub fn abandoned(&mut self, slot: usize) {
        self.slots[slot].state = State::Abandoned;
    }

    /// Waits until the peer has handled a message that has ended.
    pub fn poll_handled(
        &mut self,
        slot: usize,
        context: &mut Context<'_>,
    ) -> Poll<Result<(), Stopped>> {
        let slot = &mut self.slots[slot];
        match (&slot.stopped, slot.state) {
            (Some(stopped), _) => Poll::Ready(Err(stopped.clone())),
            (None, State::Handled) => Poll::Ready(Ok(())),
            _ => {
                slot.wait(context);
                Poll::Pending
            }
        }
    }

    /// Ends the wait for a message to be handled. Returns whether its slot is free by that.
    pub fn leave(&mut self, slot: usize) -> bool {
        let there = &mut self.slots[slot];
        if there.state == State::Handled || there.stopped.is_some() {
            return self.set_free(slot);
        }
        there.state = State::Ended;
        false
    }

    /// Gives the slot of a message back of which nothing was sent.
    pub fn give_back(&mut self, slot: usize) -> bool {
        self.set_free(slot)
    }

    /// Notes that the peer has taken a part of a message.
    pub fn taken(&mut self, slot: u64, cost: u64) -> Result<(), Forged> {
        let window = self.limits.map_or(0, |limits| limits.window);
        let slot = usize::try_from(slot).ok().and_then(|slot| self.slots.get_mut(slot));
        let slot = slot.ok_or(Forged("a slot that does not exist"))?;
        match slot.state {
            State::Open => {}
            // The words crossed.
            State::Ended | State::Awaited | State::Abandoned => return Ok(()),
            State::Free | State::Handled => return Err(Forged("room for a message that is over")),
        }
        let room = usize::try_from(cost).ok().and_then(|cost| slot.room.checked_add(cost));
        slot.room = room.filter(|room| *room <= window).ok_or(Forged("more room than a window"))?;
        slot.waker.take().into_iter().for_each(Waker::wake);
        Ok(())
    }

    /// Notes that the peer has handled messages. Returns how many slots are free by that, and what
    /// was wrong about others.
    pub fn done(&mut self, done: u64) -> (usize, Option<Forged>) {
        let (mut freed, mut forged) = (0, None);
        for slot in bits(done) {
            let there = self.slots.get_mut(slot).map(|there| (there.state, there.waker.take()));
            match there {
                Some((State::Ended | State::Abandoned, _)) => {
                    freed += usize::from(self.set_free(slot));
                }
                Some((State::Awaited, waker)) => {
                    self.slots[slot].state = State::Handled;
                    waker.into_iter().for_each(Waker::wake);
                }
                Some((_, waker)) => {
                    self.slots[slot].waker = waker;
                    forged = Some(Forged("the end of a message that has not ended"));
                }
                None => forged = Some(Forged("the end of a message in no slot")),
            }
        }
        (freed, forged)
    }

    /// Notes that the peer takes no more of a message. Returns whether its slot is free by that.
    pub fn failed(&mut self, slot: u64, reason: Reason, text: String) -> Result<bool, Forged> {
        let number = usize::try_from(slot).unwrap_or(usize::MAX);
        let slot = self.slots.get_mut(number).ok_or(Forged("a slot that does not exist"))?;
        match slot.state {
            State::Open | State::Awaited if slot.stopped.is_none() => {
                slot.stopped = Some(Stopped::Failed(reason, text));
                slot.waker.take().into_iter().for_each(Waker::wake);
                Ok(false)
            }
            State::Ended => Ok(self.set_free(number)),
            // The words crossed.
            State::Abandoned => Ok(false),
            _ => Err(Forged("the failure of a message that is over")),
        }
    }

    /// Stops all messages, because the peer has gone.
    pub fn gone(&mut self) {
        self.is_gone = true;
        for slot in &mut self.slots {
            if slot.state != State::Handled {
                slot.stopped = Some(Stopped::Gone);
            }
            slot.waker.take().into_iter().for_each(Waker::wake);
        }
    }

    pub fn is_gone(&self) -> bool {
        self.is_gone
    }

    fn set_free(&mut self, slot: usize) -> bool {
        self.slots[slot] = Slot::default();
        self.free |= 1 << slot;
        !self.is_gone
    }
}

impl Slot {
    fn wait(&mut self, context: &Context<'_>) {
        match &mut self.waker {
            Some(waker) => waker.clone_from(context.waker()),
            none => *none = Some(context.waker().clone()),
        }
    }
}
