//! The connection to one peer: the messages to it, those from it, and what is told about both.

use std::sync::atomic::Ordering;
use std::sync::{Arc, Mutex};

use bytes::Bytes;
use doorbell_am as am;
use doorbell_verbs::floor::locked;
use tokio::sync::Semaphore;

use super::control::Control;
use super::held::Outgoing;
use super::hub::Hub;
use super::inbox::{Inbox, Outcome};
use super::limits::Limits;
use super::receiving::ReceiveSlots;
use super::sending::{Forged, SendSlots, Stopped};
use super::wire::{BEGIN, OVERHEAD, PIECE, Packet, Reason};

/// The connection to one peer.
pub struct Link {
    pub control: Arc<Control>,
    limits: Limits,
    /// The free slots for messages to the peer: none before it has told how many there are.
    free: Semaphore,
    sending: Mutex<Sending>,
    receiving: Mutex<ReceiveSlots>,
}

struct Sending {
    slots: SendSlots,
    /// A buffer of a message that is over, for the next.
    spare: Vec<u8>,
}

/// A slot for a message to the peer, and how long packets may be.
pub struct Begun {
    pub slot: usize,
    pub longest: usize,
    /// An empty buffer for bytes that are held back.
    pub buffer: Vec<u8>,
}

impl Link {
    pub fn new(peer: &am::Peer, hub: &Arc<Hub>, limits: Limits) -> Arc<Self> {
        // Waits for credits last for as long as the peer is there.
        let peer = peer.within(std::time::Duration::MAX);
        Arc::new(Self {
            control: Control::new(peer, hub.clone()),
            limits,
            free: Semaphore::new(0),
            sending: Mutex::new(Sending { slots: SendSlots::new(), spare: Vec::new() }),
            receiving: Mutex::new(ReceiveSlots::new(limits)),
        })
    }

    pub fn peer(&self) -> &am::Peer {
        &self.control.peer
    }

    /// Notes the limits that the peer has told.
    pub fn learn(&self, limits: Limits) {
        let slots = locked(&self.sending).slots.learn(limits);
        self.free.add_permits(slots.unwrap_or(0));
    }

    /// Waits for a free slot, and takes it for a message.
    pub async fn begin(&self) -> Result<Begun, Stopped> {
        loop {
            let permit = match self.free.try_acquire() {
                Ok(permit) => permit,
                Err(_) => self.free.acquire().await.map_err(|_| Stopped::Gone)?,
            };
            permit.forget();
            let mut sending = locked(&self.sending);
            if sending.slots.is_gone() {
                return Err(Stopped::Gone);
            }
            if let (Some(slot), Some(limits)) = (sending.slots.take(), sending.slots.limits()) {
                // Two packets fit into a window, so that one is under way while the other is taken.
                let longest = self.peer().part_of(usize::MAX, 1).min(limits.window / 2 - OVERHEAD);
                let buffer = std::mem::take(&mut sending.spare);
                return Ok(Begun { slot, longest, buffer });
            }
        }
    }

    /// Sends a packet of a message, which is the first if there is a stream's number, once there is
    /// room in the message's window, and a credit.
    pub async fn send(
        &self,
        packet: Packet,
        begins: Option<u64>,
        bytes: Outgoing<'_>,
    ) -> Result<(), Stopped> {
        let cost = bytes.len() + OVERHEAD;
        loop {
            std::future::poll_fn(|context| {
                locked(&self.sending).slots.poll_room(packet.slot, cost, context)
            })
            .await?;
            let credit = match self.peer().try_credit() {
                Ok(Some(credit)) => credit,
                _ => self.peer().credit().await.map_err(|_| Stopped::Gone)?,
            };
            let mut sending = locked(&self.sending);
            if !sending.slots.take_room(packet.slot, cost)? {
                continue;
            }
            let sent = match begins {
                Some(stream) => bytes.leave(credit, BEGIN, [packet.word(), stream]),
                None => bytes.leave(credit, PIECE, packet.word()),
            };
            if sent.is_err() {
                return Err(Stopped::Gone);
            }
            self.control.hub.counters.sent.fetch_add(1, Ordering::Relaxed);
            if packet.ends {
                sending.slots.ended(packet);
            }
            return Ok(());
        }
    }

    /// Waits until the peer has handled a message that has ended and that is waited for.
    pub async fn handled(&self, slot: usize) -> Result<(), Stopped> {
        /// Ends the wait also if the future is dropped.
        struct Wait<'l>(&'l Link, usize);
        impl Drop for Wait<'_> {
            fn drop(&mut self) {
                let Self(link, slot) = self;
                let is_free = locked(&link.sending).slots.leave(*slot);
                link.free.add_permits(usize::from(is_free));
            }
        }
        let wait = Wait(self, slot);
        let handled = std::future::poll_fn(|context| {
            locked(&wait.0.sending).slots.poll_handled(slot, context)
        });
        handled.await
    }

    /// Gives a message up that has not ended, of which something was `sent` or nothing.
    pub fn abandon(&self, slot: usize, sent: bool) {
        let mut sending = locked(&self.sending);
        if sent {
            sending.slots.abandoned(slot);
            drop(sending);
            self.control.abandon(slot);
        } else if sending.slots.give_back(slot) {
            self.free.add_permits(1);
        }
    }

    /// Returns whether a message goes on in either direction, or waits for a free slot.
    pub fn is_awaited(&self) -> bool {
        locked(&self.sending).slots.any_awaited() || locked(&self.receiving).any_taken()
    }

    /// Takes the buffer of a message that is over.
    pub fn put_spare(&self, mut buffer: Vec<u8>) {
        buffer.clear();
        locked(&self.sending).spare = buffer;
    }

    /// Takes in the first packet of a message. Returns the message, unless the packet breaks the
    /// rules.
    pub fn begins(&self, packet: Packet, stream: u64, len: usize) -> Option<Arc<Inbox>> {
        let mut receiving = locked(&self.receiving);
        let slot = packet.slot;
        let inbox = receiving
            .begin(slot, || Inbox::new(&self.control, stream, slot, self.limits.window))?
            .clone();
        drop(receiving);
        self.admits(packet, len, inbox)
    }

    /// Takes in a further packet of a message.
    pub fn goes_on(&self, packet: Packet, len: usize) -> Option<Arc<Inbox>> {
        let inbox = locked(&self.receiving).get(packet.slot)?.clone();
        self.admits(packet, len, inbox)
    }

    fn admits(&self, packet: Packet, len: usize, inbox: Arc<Inbox>) -> Option<Arc<Inbox>> {
        if inbox.admit(packet, len) {
            return Some(inbox);
        }
        inbox.refuse(Reason::Violation);
        None
    }

    /// Hands on a packet that was taken in. Returns whether the message's handler is to be run.
    pub fn deliver(&self, inbox: &Inbox, packet: Packet, bytes: Bytes) -> bool {
        let outcome = inbox.deliver(packet, bytes);
        self.settle(inbox.slot(), outcome);
        outcome == Outcome::Begins
    }

    /// Frees a slot and tells the peer, if a message is over.
    pub fn settle(&self, slot: usize, outcome: Outcome) {
        match outcome {
            Outcome::GoesOn | Outcome::Begins => {}
            Outcome::Over => locked(&self.receiving).over(slot),
            Outcome::Done { at_once } => {
                let told = locked(&self.receiving).done(slot, at_once);
                if told != 0 {
                    self.control.done(told);
                }
            }
        }
    }

    /// Takes in that the peer has taken a part of a message.
    pub fn taken(&self, slot: u64, cost: u64) -> Result<(), Forged> {
        locked(&self.sending).slots.taken(slot, cost)
    }

    /// Takes in that the peer has handled messages.
    pub fn done(&self, slots: u64) -> Result<(), Forged> {
        let (freed, forged) = locked(&self.sending).slots.done(slots);
        self.free.add_permits(freed);
        forged.map_or(Ok(()), Err)
    }

    /// Takes in that the peer takes no more of a message.
    pub fn failed(&self, slot: u64, reason: u64, text: &[u8]) -> Result<(), Forged> {
        let reason = Reason::from_word(reason).ok_or(Forged("no reason"))?;
        let text = String::from_utf8_lossy(text).into_owned();
        let is_free = locked(&self.sending).slots.failed(slot, reason, text)?;
        self.free.add_permits(usize::from(is_free));
        Ok(())
    }

    /// Ends all messages in both directions, because the peer has gone.
    pub fn gone(&self) {
        locked(&self.sending).slots.gone();
        self.free.close();
        let inboxes = locked(&self.receiving).drain();
        inboxes.iter().for_each(|inbox| inbox.gone());
        self.control.close();
    }
}

impl std::fmt::Debug for Link {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_tuple("Link").field(self.peer()).finish()
    }
}
