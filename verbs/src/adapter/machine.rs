//! A NIC with its device: what a turn is.

use std::os::fd::OwnedFd;
use std::time::Duration;

use doorbell_core::encap::PathId;
use doorbell_core::nic::{Copied, SendQueue, Way};
use doorbell_core::time::Time;
use doorbell_transports::{
    Address, Capabilities, Device, GrantError, ReachError, SharedMemory, Statistics, Trouble,
};

use super::closed::Closed;
use crate::control::Control;
use crate::error::NicError;

/// Turns between looks at the clock while nothing arrives, and while there is no end of it.
const TURNS_A_LOOK: u32 = 64;
const BUSY_TURNS: u32 = 16;

/// The most bursts that are received before a connection ends, of peers that never stop sending.
const MOST_BURSTS: u32 = 256;

/// Turns between looks at what was delivered, while there is no end of what arrives.
const TURNS_TO_COLLECT: u32 = 4;

/// What came of a turn.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub(crate) struct Turned {
    /// Whether anything arrived.
    pub found: bool,
    /// Whether somebody was woken, who should have this thread, perhaps.
    pub woke: bool,
    /// Whether anything arrived while it was only to be sent.
    pub heard: bool,
}

/// A NIC over a device of some kind. That it is hidden which one costs a call through a table in
/// each turn, and spares every type above a parameter.
pub(crate) trait Machine: Send {
    fn control(&mut self) -> &mut Control;

    /// Receives a burst, or else does what nobody waits for. What the burst calls for is owed until
    /// [`settle`](Self::settle): the answer of whoever waited for it goes first.
    fn turn(&mut self) -> Turned;

    /// Sends what was posted, and what bursts called for. What it found is whether anything went.
    fn settle(&mut self) -> Turned;

    /// Reads the clock if the device is watched, so that nobody has read it for long: what is begun
    /// then is timed from now.
    fn catch_up(&mut self);

    /// Sends what was posted to a queue last, before anything else.
    fn posted(&mut self, queue: &SendQueue);

    /// Sends a message of which nothing is kept, if it can be sent now, and nothing of it lost.
    /// Whether it was.
    fn send_copied(&mut self, queue: &mut SendQueue, message: &Copied<'_>) -> bool;

    /// The peer's program has received so many of all that was posted to a queue since it was
    /// connected.
    fn proved(&mut self, queue: &SendQueue, count: u32);

    /// Whether there is anything to [settle](Self::settle) that is not the last turn's.
    fn has_work(&self) -> bool;

    /// The time when the clock was last looked at.
    fn now(&self) -> Time;

    /// Whether whoever waits had better sleep as soon as nothing comes.
    fn is_sparse(&self) -> bool;

    /// Somebody who spins for `spin` at the most is about to sleep. Where little comes, peers are
    /// told now what they were to be told later, for which nobody is to be woken.
    fn rests(&mut self, spin: Duration);

    /// Whether the device is watched.
    fn is_armed(&self) -> bool;

    /// Watches the device, or goes on to, until something comes or is to be done.
    fn arm(&mut self) -> std::io::Result<()>;

    /// Watches it no more. Whether it was watched.
    fn disarm(&mut self) -> bool;

    /// Watches it anew if what was posted since has an earlier time-out.
    fn hasten(&mut self);

    /// The descriptors that tell when to wake.
    fn watched(&self) -> std::io::Result<Vec<OwnedFd>>;

    fn address(&self) -> &Address;
    fn capabilities(&self) -> &Capabilities;
    fn reach(&mut self, peer: &Address) -> Result<Option<Way>, ReachError>;
    fn statistics(&mut self) -> Statistics;
    fn trouble(&mut self) -> Option<Trouble>;
    fn grant(&mut self, to: PathId, tag: u128, memory: &SharedMemory) -> Result<(), GrantError>;

    /// Gives the NIC to a device that is closed. To drop what is left closes this one.
    fn close(&mut self) -> Result<Box<dyn Machine>, NicError>;
}

pub(crate) struct Engine<D> {
    control: Control,
    device: D,
    lossless: bool,
    /// Turns since something was last found, and before that, without a pause.
    idle: u32,
    busy: u32,
    now: Time,
    /// Whether the device is watched, and until when.
    armed: Option<Option<Time>>,
    /// While it is watched, whether nothing was received since the clock was read, and so nothing
    /// bears a time that was long past.
    asleep: bool,
}

impl<D: Device> Engine<D> {
    pub fn new(control: Control, device: D) -> Self {
        let lossless = device.capabilities().lossless;
        Self {
            control,
            device,
            lossless,
            idle: 0,
            busy: 0,
            now: Time::ZERO,
            armed: None,
            asleep: false,
        }
    }

    /// Reads the clock where the device was watched. What the time has come for waits until what
    /// has arrived is received: it may be what was waited for, if this process had no processor, or
    /// was stopped, for longer than that.
    fn awake(&mut self) {
        self.now = self.device.now();
        match self.asleep {
            true => self.control.nic.tell(self.now),
            false => self.control.nic.leap(self.now),
        }
        self.asleep = true;
        self.control.manager.advance(self.now);
        // A grant may be what has ended the sleep, and nothing else tells of it.
        self.take_grants();
        // The first turn that finds nothing reads the clock.
        self.idle = 0;
    }

    /// Tells the time to all that go by it. A program may have posted at any moment since that was
    /// done last.
    fn tick(&mut self) {
        self.now = self.device.now();
        self.control.nic.leap(self.now);
        self.control.advance(self.now);
        self.take_grants();
    }

    /// Takes in what peers have granted, if somebody waits for that: to look for it takes a system
    /// call.
    fn take_grants(&mut self) {
        while self.control.grants.are_awaited()
            && let Some(granted) = self.device.granted()
        {
            self.control.granted(granted);
        }
    }

    /// Tells peers what was taken so far, before one of them hears that a connection is over: a
    /// device does so when it looks and finds nothing. Refusals go first, since a device tells
    /// nothing to a peer that is still owed one. Returns whether anything arrived.
    #[cold]
    fn tell_delivered(&mut self) -> bool {
        self.control.nic.answer(&mut self.device);
        self.device.settle(self.control.nic.owes());
        self.hear_delivered()
    }

    /// Receives as much as peers had sent when they last told what they have taken, and completes
    /// what they have taken: what a peer tells counts when all that it had sent before has come,
    /// since a refusal may be among that. Returns whether anything arrived.
    #[cold]
    fn hear_delivered(&mut self) -> bool {
        let mut heard = false;
        for _ in 0..MOST_BURSTS {
            let found = self.device.receive(&mut self.control.nic) > 0;
            self.control.nic.collect(&mut self.device);
            heard |= found;
            if !found {
                break;
            }
        }
        heard
    }
}

impl<D: Device> Machine for Engine<D> {
    fn control(&mut self) -> &mut Control {
        &mut self.control
    }

    fn turn(&mut self) -> Turned {
        let found = self.device.receive(&mut self.control.nic) > 0;
        if found {
            self.idle = 0;
            self.busy += 1;
            self.asleep = false;
        }
        let gone = self.control.nic.has_gone();
        if self.lossless && (!found || gone || self.busy.is_multiple_of(TURNS_TO_COLLECT)) {
            self.control.nic.collect(&mut self.device);
        }
        if !found || gone || self.busy >= BUSY_TURNS {
            self.busy = 0;
            if self.idle.is_multiple_of(TURNS_A_LOOK) {
                self.tick();
            }
            self.idle = self.idle.wrapping_add(1);
        }
        let woke = self.control.dispatch();
        Turned { found, woke, heard: false }
    }

    fn settle(&mut self) -> Turned {
        let (before, mut woke) = (self.control.nic.counters().sent, false);
        let mut heard = false;
        loop {
            if self.lossless && self.control.nic.has_management() {
                // If it ends a connection, what was delivered before is not to be flushed.
                heard |= self.hear_delivered();
                // A peer that says that it leaves does so before its NIC refuses what comes later.
                self.control.manage();
            }
            self.control.attend();
            if self.lossless && std::mem::take(&mut self.control.parts) {
                heard |= self.tell_delivered();
            }
            self.control.nic.transmit(&mut self.device);
            if self.lossless {
                self.device.settle(self.control.nic.owes());
            }
            // What could not be sent is complete by now, and told of.
            woke |= self.control.dispatch() | std::mem::take(&mut self.control.woke);
            if !self.control.has_more() {
                let found = heard || self.control.nic.counters().sent != before;
                return Turned { found, woke, heard };
            }
        }
    }

    #[inline]
    fn catch_up(&mut self) {
        if self.armed.is_some() {
            self.awake();
        }
    }

    fn posted(&mut self, queue: &SendQueue) {
        self.catch_up();
        self.control.nic.posted(queue, &mut self.device);
    }

    fn send_copied(&mut self, queue: &mut SendQueue, message: &Copied<'_>) -> bool {
        self.catch_up();
        let sent = self.control.nic.send_copied(queue, message, &mut self.device);
        if sent {
            self.device.settle(self.control.nic.owes());
        }
        sent
    }

    fn proved(&mut self, queue: &SendQueue, count: u32) {
        self.control.nic.proved(queue, count);
    }

    #[inline]
    fn has_work(&self) -> bool {
        // What a look at the clock called for, when the device was armed, nobody else would see to.
        self.armed.is_some()
            || self.control.nic.has_work()
            || self.control.has_more()
            || self.control.errands.any()
    }

    fn now(&self) -> Time {
        self.now
    }

    #[inline]
    fn is_sparse(&self) -> bool {
        self.control.traffic.is_sparse()
    }

    fn rests(&mut self, spin: Duration) {
        self.control.traffic.sleeps(self.now, self.control.nic.counters(), spin);
        if self.is_sparse() {
            self.control.nic.acknowledge();
        }
    }

    #[inline]
    fn is_armed(&self) -> bool {
        self.armed.is_some()
    }

    fn arm(&mut self) -> std::io::Result<()> {
        let until = self.control.next_timeout();
        self.device.arm(until)?;
        self.asleep |= self.armed.is_none();
        self.armed = Some(until);
        // What came of theirs before wakes nobody.
        self.control.hear_others();
        Ok(())
    }

    fn disarm(&mut self) -> bool {
        let was = self.armed.take().is_some();
        if was {
            self.device.disarm();
            self.control.share_soon();
            self.awake();
        }
        was
    }

    fn hasten(&mut self) {
        let Some(until) = self.armed else { return };
        let next = self.control.next_timeout();
        if next.is_some_and(|next| until.is_none_or(|until| next < until)) {
            // What is watched already can be watched for a shorter time.
            let _ = self.arm();
        }
    }

    fn watched(&self) -> std::io::Result<Vec<OwnedFd>> {
        let device = self.device.readiness().try_clone_to_owned()?;
        let sharing = self.control.sharing.as_ref();
        let sharing = sharing.map(|sharing| sharing.readiness().try_clone_to_owned());
        Ok(std::iter::once(device).chain(sharing.transpose()?).collect())
    }

    fn address(&self) -> &Address {
        self.device.address()
    }

    fn capabilities(&self) -> &Capabilities {
        self.device.capabilities()
    }

    fn reach(&mut self, peer: &Address) -> Result<Option<Way>, ReachError> {
        self.device.reach(peer)
    }

    fn statistics(&mut self) -> Statistics {
        self.device.statistics()
    }

    fn trouble(&mut self) -> Option<Trouble> {
        self.device.trouble().or_else(|| self.control.sharing.as_ref()?.trouble())
    }

    fn grant(&mut self, to: PathId, tag: u128, memory: &SharedMemory) -> Result<(), GrantError> {
        self.device.grant(to, tag, memory)
    }

    fn close(&mut self) -> Result<Box<dyn Machine>, NicError> {
        let opening = |source| NicError::System { what: "closing the device", source };
        let closed = Closed::in_place_of(&mut self.device).map_err(opening)?;
        let nobodys = Control::without_connections(self.control.mtu)?;
        let mut control = std::mem::replace(&mut self.control, nobodys);
        // What the other processes of the interface have granted ends with the device.
        self.control.sharing = control.sharing.take();
        Ok(Box::new(Engine::new(control, closed)))
    }
}
