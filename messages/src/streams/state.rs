//! The state of an endpoint: its connections, and the handlers that run.

use std::collections::HashMap;
use std::sync::atomic::Ordering;
use std::sync::{Arc, Mutex};

use bytes::Bytes;
use doorbell_am as am;
use doorbell_verbs::floor::{Awaits, Prober, locked};

use super::hub::Hub;
use super::limits::Limits;
use super::link::Link;
use super::pacer::{Arrived, Pacer};
use super::runner::{Handlers, Runner};
use super::wire::{Packet, Reason};

/// The state that the handles to an endpoint, its task and its handlers of Active Messages share.
pub struct Shared {
    pub hub: Arc<Hub>,
    pub limits: Limits,
    pub runner: Runner,
    pub pacer: Option<Pacer>,
    prober: Prober,
    links: Mutex<Links>,
}

#[derive(Default)]
struct Links {
    all: HashMap<am::Peer, Arc<Link>>,
    /// The connection that was looked for last, which is most often the next, too.
    last: Option<(am::Peer, Arc<Link>)>,
    is_closed: bool,
}

impl am::Runner for Shared {
    fn run(&self) -> bool {
        Self::run(self)
    }
}

/// A stream that goes on waits for what a peer's program does next.
impl Awaits for Shared {
    fn prober(&self) -> &Prober {
        &self.prober
    }

    /// Returns that something may be awaited for as long as the endpoint is open, since what is
    /// awaited changes all the time.
    fn is_waiting(&self) -> bool {
        true
    }

    fn probe(&self) {
        let links = locked(&self.links);
        let awaited = links.all.values().filter(|link| link.is_awaited());
        awaited.for_each(|link| link.peer().probe());
    }
}

impl Shared {
    pub fn new(handlers: Handlers, limits: Limits, is_paced: bool) -> Arc<Self> {
        let hub = Arc::new(Hub::default());
        let runner = Runner::new(handlers, &hub.work);
        let pacer = is_paced.then(Pacer::default);
        Arc::new(Self {
            hub,
            limits,
            runner,
            pacer,
            prober: Prober::default(),
            links: Mutex::default(),
        })
    }

    /// Returns the connection to a peer, which becomes known if it was not. Returns `None` if the
    /// endpoint has ended.
    pub fn link(&self, peer: &am::Peer) -> Option<Arc<Link>> {
        let mut links = locked(&self.links);
        if let Some((last, link)) = &links.last
            && last == peer
        {
            return Some(link.clone());
        }
        if links.is_closed {
            return None;
        }
        let make = || Link::new(peer, &self.hub, self.limits);
        let link = links.all.entry(peer.clone()).or_insert_with(make).clone();
        links.last = Some((peer.clone(), link.clone()));
        Some(link)
    }

    /// Takes in the first packet of a message.
    pub fn begins(&self, peer: &am::Peer, word: u64, stream: u64, bytes: Bytes) {
        let Some(link) = self.link(peer) else { return };
        let Some(packet) = Packet::from_word(word) else {
            return self.hub.reject(peer, "a word that is no packet");
        };
        let Some(inbox) = link.begins(packet, stream, bytes.len()) else {
            return self.hub.reject(peer, "a message in a slot that is none, or is taken");
        };
        self.hub.counters.begun.fetch_add(1, Ordering::Relaxed);
        if !self.runner.knows(stream) {
            inbox.refuse(Reason::NoHandler);
        }
        self.arrived(Arrived { link, inbox, packet, bytes });
    }

    /// Takes in a further packet of a message.
    pub fn goes_on(&self, peer: &am::Peer, word: u64, bytes: Bytes) {
        let Some(link) = self.link(peer) else { return };
        let Some(packet) = Packet::from_word(word) else {
            return self.hub.reject(peer, "a word that is no packet");
        };
        let Some(inbox) = link.goes_on(packet, bytes.len()) else {
            return self
                .hub
                .reject(peer, "a packet of no message, or beyond its end or its window");
        };
        self.arrived(Arrived { link, inbox, packet, bytes });
    }

    fn arrived(&self, arrived: Arrived) {
        match &self.pacer {
            Some(pacer) => pacer.put(arrived),
            None => self.deliver(arrived),
        }
    }

    /// Hands a packet on to the handler of its message, which begins by that if it has not.
    fn deliver(&self, Arrived { link, inbox, packet, bytes }: Arrived) {
        if link.deliver(&inbox, packet, bytes) {
            self.runner.begin(&inbox, &link);
            self.hub.work.signal();
        }
    }

    /// Hands on packets that wait, until they have `limit` bytes. Returns how many bytes they have.
    pub fn extract(&self, limit: usize) -> usize {
        let Some(pacer) = &self.pacer else { return 0 };
        let mut extracted = 0;
        while extracted < limit
            && let Some(arrived) = pacer.take()
        {
            extracted += arrived.bytes.len();
            self.deliver(arrived);
        }
        self.runner.run();
        extracted
    }

    /// Runs the handlers that can go on, if there are any, and sends what connections have to tell.
    /// Returns whether something was done, and no packet of a message was sent, so that it may have
    /// been for other tasks.
    pub fn run(&self) -> bool {
        if !self.hub.work.take() {
            return false;
        }
        let sent = &self.hub.counters.sent;
        let before = sent.load(Ordering::Relaxed);
        self.runner.run();
        self.hub.flush();
        sent.load(Ordering::Relaxed) == before
    }

    /// Ends the messages from and to a peer that has gone.
    pub fn gone(&self, peer: &am::Peer) {
        let mut links = locked(&self.links);
        links.last = None;
        let link = links.all.remove(peer);
        drop(links);
        if let Some(link) = link {
            self.end(&link);
        }
    }

    fn end(&self, link: &Link) {
        link.gone();
        if let Some(pacer) = &self.pacer {
            pacer.drop_of(Some(link));
        }
    }

    /// Ends the messages of peers whose ends were missed.
    pub fn look_for_gone(&self) {
        let peers: Vec<_> = locked(&self.links).all.keys().cloned().collect();
        peers.iter().filter(|peer| peer.departed().is_some()).for_each(|peer| self.gone(peer));
    }

    /// Ends all messages and drops all handlers, because the endpoint has ended.
    pub fn close(&self) {
        let mut links = locked(&self.links);
        links.is_closed = true;
        links.last = None;
        let all: Vec<_> = links.all.drain().map(|(_, link)| link).collect();
        drop(links);
        all.iter().for_each(|link| self.end(link));
        self.runner.close();
        self.hub.flush();
    }
}
