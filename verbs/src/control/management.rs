//! The dialogue with the connection manager: datagrams to and from peers, and its events.

use doorbell_core::cm;
use doorbell_core::connect::Route;
use doorbell_core::encap::PathId;
use doorbell_core::nic::Change;

use super::connecting::{established, replied};
use super::listeners::ConnectionRequest;
use super::state::Control;
use crate::dispatch::AsyncEvent;
use crate::link::{Ending, Link, Way};

impl Control {
    /// Carries datagrams between the connection manager and the NIC, and handles the manager's
    /// events.
    #[inline]
    pub fn run_manager(&mut self) {
        self.hear_managers();
        if !self.gone.is_empty() {
            self.fail_gone();
        }
        while let Some(event) = self.manager.event() {
            self.handle_manager_event(event);
        }
        self.answer_waiting();
        while let Some(datagram) = self.unsent.take().or_else(|| self.manager.transmit()) {
            let path = self.paths.alone(&datagram.way);
            if self.nic.manage(path, datagram.bytes).is_err() {
                self.unsent = Some(datagram);
                break;
            }
        }
    }

    /// Hands datagrams of peers to the connection manager.
    #[inline]
    pub(super) fn hear_managers(&mut self) {
        while let Some(received) = self.nic.management() {
            let way = self.way(Route::back(&received));
            self.manager.receive(&way, &received.bytes);
        }
    }

    #[cold]
    fn handle_manager_event(&mut self, event: cm::Event<Way>) {
        match event {
            cm::Event::Asked { id, way, request, extensions, private } => {
                let (private, session) = (private.into(), None);
                self.asked(ConnectionRequest { id, way, request, extensions, private, session });
            }
            cm::Event::Shaken { id, extensions, message } => self.shaken(id, extensions, &message),
            cm::Event::Identified { id, message } => self.identified(id, &message),
            cm::Event::Replied { id, reply, extensions, private } => {
                replied(self, (id, &reply, extensions), private);
            }
            cm::Event::Established { id, private } => {
                established(self, id, private);
            }
            cm::Event::Failed { id, why } => {
                self.listeners.forget(id);
                self.handshakes.forget(id);
                self.connections.failed(id, why);
            }
            cm::Event::Ended { id, why } => {
                if let Some(link) = self.connections.link(id) {
                    let ending = Ending::of(why);
                    tracing::debug!(qpn = %link.qpn, why = %ending, "ended");
                    self.end(&link, ending);
                    let _ = self.nic.change(link.qpn, Change::Error);
                }
            }
            cm::Event::Claimed { id } => {
                if let Some(link) = self.connections.link(id) {
                    self.nic.probe(link.qpn);
                }
            }
            cm::Event::Newcomer { way, qpn } => self.nic.suspect(&way.path(PathId(0)), qpn),
            cm::Event::Released { id, .. } => {
                self.listeners.forget(id);
                self.handshakes.forget(id);
                self.released(id);
                self.remove_dropped();
            }
        }
    }

    /// Marks a connection as ended, and wakes the tasks that wait for its messages.
    pub fn end(&mut self, link: &Link, ending: Ending) {
        if link.end(ending) {
            self.tell(AsyncEvent::Ended(link.qpn));
        }
        self.end_messages(link);
    }

    pub(super) fn end_messages(&mut self, link: &Link) {
        if let Some(pair) = self.dispatchers.get(&link.qpn) {
            pair.end();
        }
        self.woke = true;
    }
}
