//! The manager's inputs and outputs: datagrams and time go in, and are handed to whoever processes
//! them; datagrams, the next time-out and events come out.

use std::hash::Hash;

use crate::time::Time;
use crate::wire::cm::{Mad, Message};

use super::context::Datagram;
use super::event::Event;
use super::manager::ConnectionManager;

/// The manager's inputs and outputs.
impl<W: Clone + Eq + Hash> ConnectionManager<W> {
    /// Tells the manager the time, and does what is due by then. Time-outs of messages that are sent
    /// and received count from the time that was last told.
    pub fn advance(&mut self, now: Time) {
        self.context.now = self.context.now.max(now);
        let mut fired = std::mem::take(&mut self.fired);
        self.context.timers.expire(self.context.now, &mut fired);
        for place in fired.drain(..) {
            self.expire(place);
        }
        self.fired = fired;
    }

    /// Returns the time at which to [advance](Self::advance) next, if nothing happens before.
    pub fn next_timeout(&self) -> Option<Time> {
        self.context.timers.next()
    }

    /// Takes a datagram that came to queue pair 1, and the way by which to answer it.
    pub fn receive(&mut self, way: &W, datagram: &[u8]) {
        let Mad { transaction, message } = match Mad::parse(datagram) {
            Ok(mad) => mad,
            Err(why) => {
                tracing::trace!(%why, "malformed");
                return self.context.counters.malformed += 1;
            }
        };
        self.context.counters.received += 1;
        match message {
            Message::Req(req) => self.req(way, transaction, &req),
            Message::Mra(mra) => self.mra(way, &mra),
            Message::Rej(rej) => self.rej(way, transaction, &rej),
            Message::Rep(rep) => self.rep(way, transaction, &rep),
            Message::Rtu(rtu) => self.rtu(way, &rtu),
            Message::Dreq(dreq) => self.dreq(way, transaction, &dreq),
            Message::Drep(drep) => self.drep(way, &drep),
            // Service ID resolution, which datagram services use, is not supported.
            Message::SidrReq(_) | Message::SidrRep(_) => self.context.counters.stray += 1,
        }
    }

    /// Returns the next datagram to send, if there is one.
    pub fn transmit(&mut self) -> Option<Datagram<W>> {
        let datagram = self.context.outgoing.pop_front()?;
        self.context.counters.sent += 1;
        Some(datagram)
    }

    /// Returns the next event, if there is one.
    pub fn event(&mut self) -> Option<Event<W>> {
        let event = self.context.events.pop_front()?;
        match &event {
            Event::Released { id, .. } => self.table.free_place(*id),
            Event::Claimed { id } => {
                if let Some(connection) = self.table.find(id.comm_id()) {
                    connection.claim_untaken = false;
                }
            }
            Event::Newcomer { way, qpn } => self.established.newcomer_taken(way, *qpn),
            _ => {}
        }
        Some(event)
    }
}
