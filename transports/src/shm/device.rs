//! The device as a NIC and its driver see it.

use std::io;
use std::iter::once;
use std::os::fd::BorrowedFd;
use std::time::Duration;

use doorbell_core::encap::{Full, Path, PathId};
use doorbell_core::nic::{Inbox, Outbox, Way};
use doorbell_core::payload::Payload;
use doorbell_core::time::Time;
use doorbell_core::wire::Headers;

use super::link::{Link, PeerState};
use super::links;
use super::message::Message;
use super::receiving::MOST_GRANTS;
use super::sleep::{self, Shared};
use super::state::{Shm, wake};
use crate::address::{Address, ReachError};
use crate::burst::Burst;
use crate::device::{Capabilities, Device, Statistics, Trouble};
use crate::grant::{Grant, GrantError, SharedMemory};
use crate::sys::unix::PeerProcess;

/// How many looks in a row may find something before peers are told what was settled. Otherwise
/// they are told when a look finds nothing.
const MOST_BUSY: u32 = 4;

/// How long a sleep lasts at most while a call is to be made again, or no callers are taken in.
const AGAIN: Duration = Duration::from_millis(10);

impl Drop for Shm {
    fn drop(&mut self) {
        // Peers that wait for what was settled are told before the links end.
        self.tell();
    }
}

impl Outbox for Shm {
    // Inlined into each caller: otherwise a frame's way takes 530 instructions instead of 420.
    #[inline(always)]
    fn push(&mut self, path: &Path, headers: Headers, payload: impl Payload) -> Result<u64, Full> {
        let id = path.id();
        let Some(link) = self.links.get(id) else { return self.stray(id) };
        match link.writer.push(&headers, payload) {
            Ok((end, bytes)) => {
                self.unflushed.insert(links::slot(id));
                self.statistics.frames_sent += 1;
                self.statistics.packets_sent += 1;
                self.statistics.bytes_sent += bytes as u64;
                Ok(end)
            }
            Err(full) => {
                if link.writer.nonsense() {
                    self.break_link(links::slot(id));
                }
                Err(full)
            }
        }
    }

    #[inline]
    fn prepare(&mut self, path: PathId) {
        if let Some(link) = self.links.get(path) {
            link.writer.claim_early();
        }
    }

    #[inline]
    fn flush(&mut self) {
        if !self.unflushed.is_empty() {
            wake(&mut self.links, &mut self.unflushed);
        }
    }

    #[inline]
    fn delivered(&mut self, path: PathId) -> u64 {
        let Some(link) = self.links.get(path) else { return self.last_delivered(path) };
        let delivered = link.writer.delivered(link.reader.read());
        if link.writer.nonsense() {
            self.break_link(links::slot(path));
        }
        delivered
    }
}

impl Device for Shm {
    fn capabilities(&self) -> &Capabilities {
        &self.capabilities
    }

    #[inline]
    fn receive(&mut self, inbox: &mut impl Inbox) -> usize {
        let mut burst = self.burst;
        let mut found = burst.take(|| self.take(inbox));
        self.burst = burst;
        if !self.leaving.is_empty() || !self.strays.is_empty() {
            found += self.take_down(inbox);
        }
        self.turns += 1;
        if found == 0 {
            self.tell();
            self.busy = 0;
            if self.turns >= self.turns_to_attend[0] {
                self.attend();
            }
        } else {
            self.busy += 1;
            if self.busy == MOST_BUSY {
                // Otherwise a peer of which little is read would wait without end.
                self.tell();
                self.busy = 0;
            }
            if found == Burst::MOST {
                // After so many records of one link, the next link has its turn.
                self.at += 1;
            }
            if self.turns >= self.turns_to_attend[1] {
                self.attend();
            }
        }
        found
    }

    #[inline]
    fn settle(&mut self, owes: impl Fn(PathId) -> bool) {
        if self.unsettled.is_empty() {
            return;
        }
        let Self { woken: urgent, .. } = self;
        self.unsettled.retain(|slot| {
            let Some(link) = self.links.slot(slot) else { return false };
            if owes(link.id) {
                return true;
            }
            // Before a sleep there may be no idle turn in which the peer would be told.
            match link.reader.settle() || self.armed {
                true => {
                    link.tell();
                    urgent.insert(slot);
                }
                false => self.untold.insert(slot),
            }
            false
        });
        if !urgent.is_empty() {
            wake(&mut self.links, urgent);
        }
    }

    #[inline]
    fn now(&self) -> Time {
        self.clock.now()
    }

    fn address(&self) -> &Address {
        &self.address
    }

    fn reach(&mut self, peer: &Address) -> Result<Option<Way>, ReachError> {
        self.way_to(peer)
    }

    fn readiness(&self) -> BorrowedFd<'_> {
        self.timer.readiness()
    }

    fn arm(&mut self, until: Option<Time>) -> io::Result<()> {
        self.statistics.sleeps += 1;
        let after = until.map(|until| until.since(self.now()));
        let again = std::mem::take(&mut self.handshakes.busy) || self.handshakes.shut;
        let again = again.then_some(AGAIN);
        // The driver may arm anew after the timer was set to wake it at once.
        let called = self.called_back.then_some(Duration::ZERO);
        let after = after.into_iter().chain(again).chain(called).min();
        self.timer.arm(once(&self.watch), after)?;
        self.armed = true;
        sleep::fall_asleep::<Shared>(self.links.all_awake().map(|link| link.reader.sleeping()));
        Ok(())
    }

    fn disarm(&mut self) {
        self.timer.disarm(once(&self.watch));
        (self.armed, self.called_back) = (false, false);
        sleep::wake_up::<Shared>(self.links.all_awake().map(|link| link.reader.sleeping()));
        self.attend();
    }

    fn trouble(&mut self) -> Option<Trouble> {
        self.accept_trouble()
    }

    fn statistics(&mut self) -> Statistics {
        self.statistics
    }

    fn grant(&mut self, to: PathId, tag: u128, memory: &SharedMemory) -> Result<(), GrantError> {
        let descriptor = memory.descriptor().ok_or(GrantError::Piece)?;
        // Grants that the peer has taken make room. This may take a message that was to wake a
        // driver that sleeps, so the driver is woken otherwise.
        self.listen_to(to);
        self.call_back();
        let up = |link: &&mut Link| link.state == PeerState::Up;
        let link = self.links.get(to).filter(up).ok_or(GrantError::NoLink(to))?;
        let grant = Message::Grant { tag, len: memory.len() as u64 };
        let waiting = GrantError::Waiting { most: MOST_GRANTS };
        if link.granted == MOST_GRANTS {
            return Err(waiting);
        }
        match link.say(grant, Some(descriptor)) {
            Ok(()) => {
                link.granted += 1;
                Ok(())
            }
            Err(error) if error.kind() == io::ErrorKind::WouldBlock => Err(waiting),
            Err(error) if error.kind() == io::ErrorKind::BrokenPipe => Err(GrantError::NoLink(to)),
            Err(error) => Err(error.into()),
        }
    }

    fn peer_process(&mut self, link: PathId) -> Option<PeerProcess> {
        PeerProcess::behind(&self.links.get(link)?.socket)
    }

    fn granted(&mut self) -> Option<Grant> {
        if self.grants.is_empty() {
            self.attend();
        }
        let grant = self.grants.take()?;
        if let Some(link) = self.links.get(grant.from) {
            link.waiting -= 1;
            // If there is no room for the message, only a peer that reads nothing is harmed.
            let _ = link.say(Message::GrantTaken, None);
        }
        Some(grant)
    }
}
