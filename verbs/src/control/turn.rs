//! The control plane's part of each turn: completions, events of the NIC, and operations of
//! programs.

use std::time::Duration;

use doorbell_core::nic::{self, Cause, CompletionQueueId, Event};
use doorbell_core::time::Time;
use doorbell_core::wire::Qpn;
use doorbell_core::wire::cm::RejectReason;
use doorbell_transports::Grant;

use super::operations::ControlOp;
use super::state::Control;
use crate::dispatch::AsyncEvent;
use crate::link::{ConnectionState, Ending, Way};
use crate::sync::contained;

/// The time between looks at messages from other processes of the interface, while turns are taken:
/// a look takes a system call. A process that sleeps is woken by them.
const SHARES_EVERY: Duration = Duration::from_millis(1);

impl Control {
    /// Tells the connection manager the time, and notes the time for what begins now.
    pub fn tell_time(&mut self, now: Time) {
        self.now = now;
        self.manager.advance(now);
    }

    /// Tells the NIC and the connection manager the time, and does what has become due.
    pub fn advance(&mut self, now: Time) {
        self.nic.advance(now);
        self.tell_time(now);
        self.grants.advance(now);
        if self.sharing.is_some() && now >= self.sharing_due {
            self.sharing_due = now + SHARES_EVERY;
            self.poll_sharing();
        }
        if !self.has_removed_all() {
            self.remove_dropped();
        }
    }

    /// Makes the next look at the clock look at messages from other processes of the interface,
    /// too.
    pub fn poll_sharing_soon(&mut self) {
        self.sharing_due = Time::ZERO;
    }

    /// Returns the time of the next time-out of the NIC, of its connection manager, of a task that
    /// waits for a grant, or of a send queue that lingers.
    pub fn next_timeout(&self) -> Option<Time> {
        let Self { nic, manager, grants, lingering, .. } = self;
        let tables = [grants.next_timeout(), lingering.next_timeout()];
        let all = [nic.next_timeout(), manager.next_timeout()].into_iter().chain(tables);
        all.flatten().min()
    }

    /// Hands completions of futures' requests to the futures, and returns whether a task was woken.
    #[inline]
    pub fn dispatch(&mut self) -> bool {
        let mut woke = false;
        while let Some(done) = self.completions.1.poll_in_place() {
            // A queue pair that was dropped has no dispatcher any more.
            if let Some(dispatcher) = self.dispatchers.get(&done.qpn) {
                woke |= dispatcher.complete(done);
            }
        }
        woke
    }

    /// Runs the operations of programs, and handles the events of the NIC, of the connection
    /// manager, and of other processes.
    #[inline]
    pub fn process(&mut self) {
        if self.operations.any() {
            self.run_operations();
        }
        if !self.broken_pairs.is_empty() {
            self.disconnect_broken();
        }
        if !self.lingering.is_empty() {
            self.look_at_lingering();
        }
        while let Some(event) = self.nic.event() {
            self.handle_event(event);
        }
        self.run_manager();
    }

    /// Takes in memory that a peer has granted.
    pub fn granted(&mut self, grant: Grant) {
        self.grants.arrive(grant);
    }

    /// Forgets what peers have granted whose links have ended since the last burst, and notes these
    /// links for the connection manager.
    #[cold]
    pub fn forget_gone(&mut self) {
        let links = self.nic.links_gone();
        links.iter().for_each(|&link| self.grants.forget(link));
        self.gone.extend_from_slice(links);
    }

    /// Fails the connections that were asked for along links that have ended. The manager has heard
    /// the last words of the peers by now: a refusal among them says more.
    #[cold]
    pub(super) fn fail_gone(&mut self) {
        let links = std::mem::take(&mut self.gone);
        let is_gone = |way: &Way| match way.way() {
            nic::Way::Link(link) => links.contains(link),
            nic::Way::Network(_) => false,
        };
        self.manager.links_gone(is_gone);
    }

    fn handle_event(&mut self, event: Event) {
        match event {
            Event::Completion(queue) => {
                if let Some(reader) = self.readers.get(&queue) {
                    self.woke |= reader.wake();
                }
            }
            Event::Broken(qpn, cause) => self.note_broken(qpn, cause),
            Event::Established(qpn) => {
                if let Some(id) =
                    self.links.get(&qpn).and_then(|link| link.nic_side(|side| side.id))
                {
                    // An established connection is not changed by this.
                    let _ = self.manager.arrived(id);
                }
            }
            // No queue pair is told to drain.
            Event::Drained(_) => {}
            Event::ReceivesLow(queue) => self.tell(AsyncEvent::ReceivesLow(queue)),
            Event::RequestBounced(request) => self.manager.port_closed(request),
            Event::PathChanged(qpn) => self.tell(AsyncEvent::PathChanged(qpn)),
            Event::LastReceive(qpn) => {
                if self.links.get(&qpn).is_none_or(|link| link.now_had_last_receive()) {
                    self.tell(AsyncEvent::LastReceive(qpn));
                }
            }
        }
    }

    /// Returns whether there is more to do once the NIC has sent what it owes.
    #[inline]
    pub fn has_more(&self) -> bool {
        self.nic.has_events() || !self.broken_pairs.is_empty()
    }

    /// Notes that a queue pair broke. The peer may not know, and will be told; but only after the
    /// NIC's own refusal was sent, by which the peer learns the cause.
    fn note_broken(&mut self, qpn: Qpn, cause: Cause) {
        let Some(link) = self.links.get(&qpn).cloned() else { return };
        if cause != Cause::Told {
            tracing::debug!(%qpn, %cause, "broke");
            let ends = link.end(Ending::Broken(cause));
            self.tell(AsyncEvent::Broken(qpn, cause));
            if ends {
                self.tell(AsyncEvent::Ended(qpn));
            }
        }
        self.broken_pairs.push(link);
    }

    #[cold]
    fn disconnect_broken(&mut self) {
        for link in std::mem::take(&mut self.broken_pairs) {
            // The receive over which the queue pair broke, if any, has been completed by now.
            if let ConnectionState::Ended(_) = link.state() {
                self.end_messages(&link);
            }
            self.connections.give_up(&link, &[], &mut self.manager);
        }
    }
}

/// Operations that programs have queued.
impl Control {
    /// Runs the operations that are queued by now. Other threads may queue more all the time.
    #[cold]
    fn run_operations(&mut self) {
        for _ in 0..self.operations.len() {
            let Some(operation) = self.operations.next() else { break };
            match operation {
                ControlOp::ArmCompletions(queue) => self.arm(queue),
                ControlOp::Deregister(lkey) => {
                    let nic = &mut self.nic;
                    contained("the drop of memory", || drop(nic.deregister(lkey)));
                }
                ControlOp::Probe(link) => {
                    link.probe_begins();
                    self.nic.probe(link.qpn);
                }
                ControlOp::Unmap(id) => drop(self.nic.unmap(id)),
                ControlOp::Linger(left) => self.lingering.add(left, self.now),
                ControlOp::DropQueuePair(dropped) => {
                    if let Some(dropped) = self.lingering.keep(dropped) {
                        self.drop_queue_pair(dropped, &[]);
                    }
                }
                ControlOp::DropCompletionQueue(queue, end) => {
                    self.readers.remove(&queue);
                    self.dropped_queues.push((queue, end));
                }
                ControlOp::DropSharedReceiveQueue(queue) => {
                    self.dropped_shared_receives.push(queue);
                }
                ControlOp::DropAddress(address, way) => {
                    let _ = self.nic.drop_address(address);
                    self.paths.give_back(&way);
                }
                ControlOp::Reject(id) => {
                    let _ = self.manager.reject(id, RejectReason::CONSUMER, &[]);
                }
                ControlOp::StopListening(listening) => self.stop(&listening),
            }
        }
        self.remove_dropped();
    }

    /// Arms a completion queue, so that its reader is woken by the next completion. If one came
    /// since the reader looked, wakes the reader at once, since it may sleep by now.
    fn arm(&mut self, queue: CompletionQueueId) {
        if self.nic.arm(queue, nic::Notify::Any) == Ok(true)
            && let Some(reader) = self.readers.get(&queue)
        {
            reader.wake();
        }
    }
}
