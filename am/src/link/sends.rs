//! Sending a message at once, or together with others that leave soon.

use std::sync::Arc;
use std::sync::atomic::Ordering;

use doorbell_verbs::Memory;
use doorbell_verbs::floor::HeldNic;

use super::outbox::Outbox;
use super::{Link, SendSide};
use crate::config::Policy;
use crate::costs::{Cost, span};
use crate::wire::{Content, Header, Size, Taken};

impl Link {
    /// Returns whether messages may share a send.
    #[inline]
    pub(super) fn packs(&self) -> bool {
        self.endpoint.config.policy == Policy::Together && self.size == Size::Any
    }

    /// Sends a message, or holds it for a moment. With `at_once`, and if nothing is held, the
    /// message leaves now, posted through what `at_once` holds. Otherwise it is held to share a
    /// send with others. Held messages leave when a task waits for something of the bundle and makes
    /// progress itself, when the messages are handled that they answer, when they are many, and at
    /// the latest when their sender lets other tasks run.
    #[inline]
    pub(super) fn send(
        self: &Arc<Self>,
        out: &mut SendSide,
        header: Header,
        content: Content<'_>,
        at_once: Option<HeldNic<'_>>,
    ) {
        let _semantics = span(Cost::Semantics);
        let granted = out.credits + out.under_way;
        let Some(outbox) = self.outbox(out) else { return };
        let alone = at_once.is_some() && !outbox.holds();
        if alone || !self.packs() {
            let nic = at_once.unwrap_or(HeldNic::none());
            return outbox.send(header, content, &self.buffers, nic);
        }
        // A quarter of what either side may have under way, so that both sides keep busy.
        let packed = (self.grants().max(granted.into()) / 4).max(2);
        if outbox.hold(header, content, (&self.buffers, packed)) {
            self.hold();
        }
    }

    /// Has the progress engine send what the link holds.
    pub(super) fn hold(self: &Arc<Self>) {
        self.endpoint.signals.hold(self.clone());
    }

    /// Sends the messages that the link holds.
    #[inline]
    pub fn flush(&self) {
        if let Some(outbox) = &mut self.send_side().outbox {
            outbox.flush();
        }
    }

    /// Returns the open send queue, whose messages acknowledge from here on all messages that have
    /// come so far.
    #[inline]
    pub(super) fn outbox<'o>(&self, out: &'o mut SendSide) -> Option<&'o mut Outbox> {
        let outbox = out.outbox.as_mut()?;
        outbox.taken = Taken::of(self.messages.load(Ordering::Relaxed));
        Some(outbox)
    }

    /// Counts a message that has come. An acknowledgement that was heard before and not used is
    /// dropped: its count may have come round since, and would mean something else.
    #[inline]
    pub fn count_message(&self) {
        self.messages
            .store(self.messages.load(Ordering::Relaxed).wrapping_add(1), Ordering::Relaxed);
        self.ack_heard.store(self.ack_used.load(Ordering::Relaxed), Ordering::Relaxed);
    }

    /// Notes the acknowledgement that a message of the peer carries.
    #[inline]
    pub fn hear_ack(&self, taken: Taken) {
        self.ack_heard.store(taken.0, Ordering::Relaxed);
    }

    /// Returns whether the acknowledgement heard last is far enough ahead of the one used last.
    /// That is so before this side has so much under way that the NIC asks for acknowledgements.
    #[inline]
    pub fn has_useful_ack(&self) -> bool {
        let [heard, used] =
            [&self.ack_heard, &self.ack_used].map(|count| Taken::of(count.load(Ordering::Relaxed)));
        self.ack_step.is_some_and(|step| heard.beyond(used) >= step.get())
    }

    /// Tells the NIC what the peer has acknowledged by its messages, if that is worth it.
    pub fn use_ack(&self, mut nic: HeldNic<'_>) {
        if !self.has_useful_ack() {
            return;
        }
        let heard = self.ack_heard.load(Ordering::Relaxed);
        self.ack_used.store(heard, Ordering::Relaxed);
        if let Some(outbox) = &mut self.send_side().outbox {
            outbox.acknowledged(Taken::of(heard), &mut nic);
        }
    }

    /// Takes in the completion of a send, with the number of a placement or 0, and the memory that
    /// it gives back. A send that failed says no more than that the link is over, which others
    /// notice. Returns whether a task was woken.
    #[inline]
    pub fn sent(&self, placement: u64, memory: Memory, failed: bool) -> bool {
        let mut out = self.send_side();
        if let Some(outbox) = &mut out.outbox {
            outbox.sent();
        }
        match (memory, placement) {
            (Memory::Buf(buffer), 0) => self.buffers.give(buffer),
            (memory, 1..) if !failed => {
                let placements = out.placements.as_mut();
                let woke = placements.and_then(|all| all.complete(placement as u16, memory));
                self.changed(&mut out);
                return woke.unwrap_or(false);
            }
            _ => {}
        }
        false
    }
}
