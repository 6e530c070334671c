//! The adapter over a device of one type: what a turn does, step by step.

use std::os::fd::OwnedFd;
use std::time::Duration;

use doorbell_core::encap::PathId;
use doorbell_core::nic::{Copied, SendQueue, Way};
use doorbell_core::time::Time;
use doorbell_transports::{
    Address, Capabilities, Device, GrantError, PeerProcess, ReachError, SharedMemory, Statistics,
    Trouble,
};

use super::closed::Closed;
use super::interface::{Adapter, Turned};
use super::traffic::Traffic;
use crate::control::Control;
use crate::error::OpenError;

/// How many turns pass between looks at the clock while nothing arrives.
const TURNS_A_LOOK: u32 = 64;
/// How many turns pass between looks at the clock while something arrives in every turn.
const BUSY_TURNS: u32 = 16;

/// The most bursts that are received before a connection ends, since a peer may never stop sending.
const MOST_BURSTS: u32 = 256;

/// The most grants that are taken in at a time.
const MOST_GRANTS: usize = 64;
/// The most times that grants are taken in for a task that asks for one.
const MOST_LOOKS: u32 = 16;

/// How many turns pass between looks at deliveries, while something arrives in every turn.
const TURNS_TO_COLLECT: u32 = 4;

/// A software NIC with its control plane, attached to a device of the type `D`.
pub(crate) struct DeviceAdapter<D> {
    control: Control,
    device: D,
    /// The recent traffic, which decides whether waiting tasks spin.
    traffic: Traffic,
    lossless: bool,
    /// How many turns have passed since something was found last.
    idle: u32,
    /// How many turns in a row have found something.
    busy: u32,
    now: Time,
    armed: Armed,
    /// Whether nothing was received since the clock was read, while the device is armed. If so, no
    /// state of the NIC carries an outdated time.
    asleep: bool,
    /// Whether the device may have more grants than the last look has taken in.
    more_grants: bool,
}

/// Whether the device is armed, that is, wakes the program when something arrives, and until when
/// the program sleeps then.
#[derive(Clone, Copy)]
enum Armed {
    No,
    Until(Time),
    /// Nothing that the NIC waits for has a time-out.
    ForEver,
}

impl Armed {
    #[inline]
    fn is_armed(self) -> bool {
        !matches!(self, Self::No)
    }
}

impl<D: Device> DeviceAdapter<D> {
    pub fn new(control: Control, device: D) -> Self {
        let lossless = device.capabilities().lossless;
        Self {
            control,
            device,
            traffic: Traffic::default(),
            lossless,
            idle: 0,
            busy: 0,
            now: Time::ZERO,
            armed: Armed::No,
            asleep: false,
            more_grants: false,
        }
    }

    /// Reads the clock after the device was armed. Time-outs wait until all that has arrived is
    /// received: an answer that the time-out is about may be among it, if this process had no
    /// processor, or was stopped, for a while.
    fn awake(&mut self) {
        self.now = self.device.now();
        match self.asleep {
            true => self.control.nic.set_time(self.now),
            false => self.control.nic.skip_time(self.now),
        }
        self.asleep = true;
        self.control.tell_time(self.now);
        // A grant may have ended the sleep, and no event tells of grants.
        self.take_grants();
        // The first turn that finds nothing reads the clock.
        self.idle = 0;
    }

    /// Reads the clock, and tells the NIC and the connection manager the time. A program may have
    /// posted at any moment since the last tick.
    fn tick(&mut self) {
        self.now = self.device.now();
        self.control.nic.skip_time(self.now);
        self.control.advance(self.now);
        self.take_grants();
    }

    /// Takes in memory that peers have granted, if a task waits for that, since each look takes a
    /// system call. Peers may grant without end, so some are left for the next look.
    fn take_grants(&mut self) {
        self.more_grants = false;
        for _ in 0..MOST_GRANTS {
            if !self.control.grants.are_awaited() {
                return;
            }
            let Some(granted) = self.device.granted() else { return };
            self.control.granted(granted);
        }
        self.more_grants = true;
    }

    /// Tells peers what was received so far, before one of them hears that a connection ends. The
    /// device does so when it looks and finds nothing. Refusals are sent first, since a device
    /// tells nothing to a peer that is still owed one. Returns whether anything arrived.
    #[cold]
    fn tell_delivered(&mut self) -> bool {
        self.control.nic.answer(&mut self.device);
        self.device.settle(self.control.nic.unsent_responses());
        self.hear_delivered()
    }

    /// Receives all that peers had sent when they last told what they have received, and completes
    /// the requests that they tell of. A peer's word counts only when all that it had sent before
    /// has come, since a refusal may be among that. Returns whether anything arrived.
    #[cold]
    fn hear_delivered(&mut self) -> bool {
        let mut heard = false;
        for _ in 0..MOST_BURSTS {
            let found = self.device.receive(&mut self.control.nic) > 0;
            if self.control.nic.has_gone() {
                self.control.forget_gone();
            }
            self.control.nic.collect(&mut self.device);
            heard |= found;
            if !found {
                break;
            }
        }
        heard
    }
}

impl<D: Device> Adapter for DeviceAdapter<D> {
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
        if gone {
            self.control.forget_gone();
        }
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
                // A message of the connection manager may end a connection, and delivered requests
                // must not be flushed then.
                heard |= self.hear_delivered();
                // A peer announces that it leaves before its NIC refuses later packets.
                self.control.run_manager();
            }
            self.control.process();
            if self.lossless && std::mem::take(&mut self.control.disconnects) {
                heard |= self.tell_delivered();
            }
            self.control.nic.transmit(&mut self.device);
            if self.lossless {
                self.device.settle(self.control.nic.unsent_responses());
            }
            // Requests that could not be sent have completed by now.
            woke |= self.control.dispatch() | std::mem::take(&mut self.control.woke);
            if !self.control.has_more() {
                let found = heard || self.control.nic.counters().sent != before;
                return Turned { found, woke, heard };
            }
        }
    }

    #[inline]
    fn refresh_clock(&mut self) {
        if self.armed.is_armed() {
            self.awake();
        }
    }

    fn posted(&mut self, queue: &SendQueue) {
        self.refresh_clock();
        self.control.nic.posted(queue, &mut self.device);
    }

    fn send_copied(&mut self, queue: &mut SendQueue, message: &Copied<'_>) -> bool {
        self.refresh_clock();
        let sent = self.control.nic.send_copied(queue, message, &mut self.device);
        if sent {
            self.device.settle(self.control.nic.unsent_responses());
        }
        sent
    }

    fn acknowledged_by_program(&mut self, queue: &SendQueue, count: u32) {
        self.control.nic.acknowledged_by_program(queue, count);
    }

    #[inline]
    fn has_work(&self) -> bool {
        // After the device was armed, a look at the clock may have caused work that nobody else
        // would see to.
        self.armed.is_armed()
            || self.control.nic.has_work()
            || self.control.has_more()
            || self.control.operations.any()
    }

    fn now(&self) -> Time {
        self.now
    }

    #[inline]
    fn is_sparse(&self) -> bool {
        self.traffic.is_sparse()
    }

    fn about_to_sleep(&mut self, spin: Duration) {
        self.traffic.sleeps(self.now, self.control.nic.counters(), spin);
        if self.is_sparse() {
            self.control.nic.acknowledge();
        }
    }

    #[inline]
    fn is_armed(&self) -> bool {
        self.armed.is_armed()
    }

    fn arm(&mut self) -> std::io::Result<()> {
        // With more to take in, the sleep is to end at once.
        let until = if self.more_grants { Some(self.now) } else { self.control.next_timeout() };
        self.device.arm(until)?;
        self.asleep |= !self.armed.is_armed();
        self.armed = until.map_or(Armed::ForEver, Armed::Until);
        // Messages of other processes that came before arming wake nobody.
        self.control.poll_sharing();
        Ok(())
    }

    fn disarm(&mut self) -> bool {
        let was = self.armed.is_armed();
        if was {
            self.armed = Armed::No;
            self.device.disarm();
            self.control.poll_sharing_soon();
            self.awake();
        }
        was
    }

    fn rearm_earlier(&mut self) {
        let earlier = match (self.armed, self.control.next_timeout()) {
            (Armed::No, _) | (_, None) => false,
            (Armed::ForEver, Some(_)) => true,
            (Armed::Until(until), Some(next)) => next < until,
        };
        if earlier {
            // A device that is armed already can always be armed for a shorter time.
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

    #[cold]
    fn look_for_grants(&mut self) {
        for _ in 0..MOST_LOOKS {
            self.take_grants();
            if !self.more_grants {
                return;
            }
        }
    }

    fn peer_process(&mut self, link: PathId) -> Option<PeerProcess> {
        self.device.peer_process(link)
    }

    fn close(&mut self) -> Result<Box<dyn Adapter>, OpenError> {
        let opening = |source| OpenError::System { what: "closing the device", source };
        let closed = Closed::in_place_of(&mut self.device).map_err(opening)?;
        let nobodys = Control::without_connections(self.control.mtu)?;
        let mut control = std::mem::replace(&mut self.control, nobodys);
        // Grants from other processes of the interface end with the device.
        self.control.sharing = control.sharing.take();
        Ok(Box::new(DeviceAdapter::new(control, closed)))
    }
}
