//! A program that has a NIC and a connection manager, and moves queue pairs as events say.

use std::collections::{BTreeMap, BTreeSet};
use std::time::Duration;

use doorbell_core::cm::{ConnectionId, ConnectionState, Event, Extensions, Reply, Request, Why};
use doorbell_core::connect::Route;
use doorbell_core::encap::Path;
use doorbell_core::memory::{Buf, Region};
use doorbell_core::nic::{self, *};
use doorbell_core::time::Time;
use doorbell_core::wire::cm::{
    CmRetries, CmTimeout, InitiatorDepth, RejectReason, ResponderResources,
};
use doorbell_core::wire::{Gid, Pkey, Qpn};
use doorbell_simulation::{Fabric, NodeId};

use super::link::{Card, Link, MEMORY, Pair, Posted, ROOM};
use super::meeting::{READS, SERVICE};
use super::seen;
use super::splitmix::Luck;
use crate::reliable::common::inline;
use crate::reliable::random::coverage::Coverage;

/// After this a program has no more patience with a connection, whatever its state.
const PATIENCE: Duration = Duration::from_secs(3);
/// The patience that a program asks for: longer than it ever needs.
const LONG: CmTimeout = CmTimeout::new(16);
/// The most queue pairs that it keeps to use again.
const SPARE: usize = 20;

pub struct Program {
    pub node: NodeId,
    domain: Domain,
    queue_id: CompletionQueueId,
    queue: CompletionQueue,
    pub links: BTreeMap<ConnectionId, Link>,
    pub past: Vec<Past>,
    pub seen: Coverage,
    /// How often the node had begun anew before.
    pub starts: u64,
    /// Connections whose other end began anew before they were heard of.
    excused: BTreeSet<u64>,
    names: BTreeMap<Qpn, ConnectionId>,
    posted: BTreeMap<u64, (ConnectionId, Posted)>,
    next: u64,
    spare: Vec<Pair>,
    /// When patience ends.
    limits: BTreeSet<(Time, ConnectionId)>,
    /// What is to be decided, and when.
    undecided: BTreeMap<(Time, ConnectionId), Event<Route>>,
}

/// What became of a connection, at one end.
#[derive(Clone, Copy)]
pub struct Past {
    pub number: u64,
    pub active: bool,
    pub stood: bool,
    pub excused: bool,
    given_up: bool,
}

impl Past {
    pub fn outcome(&self) -> &'static str {
        match (self.active, self) {
            (true, Self { excused: true, .. }) => "asked, one end began anew",
            (true, Self { stood: true, .. }) => "asked, used",
            (true, Self { given_up: true, .. }) => "asked, given up",
            (true, _) => "asked, refused",
            (false, Self { excused: true, .. }) => "was asked, one end began anew",
            (false, Self { stood: true, .. }) => "was asked, used",
            (false, _) => "was asked, not used",
        }
    }
}

impl Program {
    /// A program that listens, on a node that has just begun.
    pub fn new(fabric: &mut Fabric, node: NodeId, starts: u64) -> Self {
        fabric.manager(node).listen(SERVICE, 64).unwrap();
        let nic = fabric.nic(node);
        let domain = nic.domain();
        let (queue_id, queue) = nic.completion_queue(1 << 13).unwrap();
        Self {
            node,
            domain,
            queue_id,
            queue,
            links: BTreeMap::new(),
            past: Vec::new(),
            seen: Coverage::default(),
            starts,
            excused: BTreeSet::new(),
            names: BTreeMap::new(),
            posted: BTreeMap::new(),
            next: 0,
            spare: Vec::new(),
            limits: BTreeSet::new(),
            undecided: BTreeMap::new(),
        }
    }

    /// A node has begun anew, and had asked for these.
    pub fn excuse(&mut self, node: NodeId, asked: &BTreeSet<u64>) {
        self.excused.extend(asked);
        for link in self.links.values_mut() {
            link.excused |= link.peer == node;
        }
    }

    /// When patience with some connection ends, or something is to be decided.
    pub fn next_time(&self) -> Option<Time> {
        let times = [self.undecided.keys().next(), self.limits.first()];
        times.into_iter().flatten().map(|(at, _)| *at).min()
    }

    pub fn is_idle(&self) -> bool {
        self.links.is_empty() && self.undecided.is_empty()
    }

    /// A queue pair that takes receives, if there is one.
    fn pair(&mut self, fabric: &mut Fabric) -> Option<Pair> {
        let nic = fabric.nic(self.node);
        let made = || {
            let config = QueuePairConfig {
                send_depth: 8,
                receive_depth: 4,
                ..QueuePairConfig::new(self.domain, self.queue_id)
            };
            let QueuePairEnds { qpn, send, receive } = nic.queue_pair(&config).ok()?;
            Some(Pair { qpn, send, receive })
        };
        let pair = self.spare.pop().or_else(made)?;
        let init = Change::Init { rights: Rights::REMOTE, pkey: Pkey::DEFAULT };
        fabric.nic(self.node).change(pair.qpn, init).expect("it is new, or as new");
        Some(pair)
    }

    fn link(
        &mut self,
        fabric: &mut Fabric,
        active: bool,
        peer: NodeId,
        request: Request,
    ) -> Option<Link> {
        let pair = self.pair(fabric)?;
        let region = Region::new(MEMORY);
        let rights = Rights::LOCAL_WRITE | Rights::REMOTE;
        let nic = fabric.nic(self.node);
        let memory = nic.register(self.domain, region.clone(), rights).expect("room");
        Some(Link {
            active,
            peer,
            request,
            reply: None,
            extensions: Extensions::NONE,
            pair,
            region,
            memory,
            number: 0,
            theirs: None,
            stood: false,
            closing: false,
            given_up: false,
            failed: None,
            ended: None,
            outstanding: 0,
            done: Vec::new(),
            received: 0,
            excused: false,
        })
    }

    /// Enters a link under its name, and posts its receives.
    fn enter(&mut self, id: ConnectionId, mut link: Link, now: Time) {
        link.prepare();
        for which in 0..3 {
            let memory = Buf::with_capacity(ROOM).into();
            link.pair.receive.post(ReceiveRequest { id: self.next, memory }).expect("room");
            self.posted.insert(self.next, (id, Posted::Receive(which)));
            self.next += 1;
            link.outstanding += 1;
        }
        self.names.insert(link.pair.qpn, id);
        self.limits.insert((now + PATIENCE, id));
        assert!(self.links.insert(id, link).is_none(), "a name of its own");
    }

    /// Asks a peer for a connection, if there is a queue pair for it. Whether it did.
    pub fn open(
        &mut self,
        fabric: &mut Fabric,
        peer: NodeId,
        number: u64,
        retries: CmRetries,
    ) -> bool {
        let [from, to] = [self.node, peer].map(|node| Gid([node as u8; 16]));
        let (psn, timeout) = (fabric.nic(self.node).first_psn(), CmTimeout::new(13));
        let request = Request {
            responder_resources: ResponderResources(READS),
            initiator_depth: InitiatorDepth(READS),
            remote_timeout: timeout,
            local_timeout: timeout,
            retries,
            flow_control: true,
            ..Request::new(SERVICE, Qpn::new(0), psn, from, to)
        };
        let Some(mut link) = self.link(fabric, true, peer, request) else { return false };
        (link.number, link.request.qpn) = (number, link.pair.qpn);
        let (route, card) = (fabric.route(self.node, peer), link.card().to_bytes());
        let id = fabric.manager(self.node).connect(route, &link.request, &card).expect("room");
        self.enter(id, link, fabric.now());
        true
    }

    /// Sees to everything that has come. Whether there was anything.
    pub fn look(&mut self, fabric: &mut Fabric, luck: &mut Luck) -> bool {
        let mut looked = false;
        let node = self.node;
        loop {
            let mut quiet = true;
            while let Some(completion) = self.queue.poll() {
                quiet = false;
                self.completed(fabric, &completion);
            }
            while let Some(event) = fabric.nic(node).event() {
                quiet = false;
                self.hear_nic(fabric, event);
            }
            while let Some(event) = fabric.manager(node).event() {
                quiet = false;
                self.hear(fabric, event, luck);
            }
            while let Some(&(at, id)) = self.limits.first()
                && at <= fabric.now()
            {
                quiet = false;
                self.limits.remove(&(at, id));
                self.give_up(fabric, id);
            }
            while let Some(event) = self.due(fabric.now()) {
                quiet = false;
                self.act(fabric, event, luck);
            }
            if quiet {
                return looked;
            }
            looked = true;
        }
    }

    fn completed(&mut self, fabric: &mut Fabric, completion: &Completion) {
        let (id, what) = self.posted.remove(&completion.id).expect("completed once");
        let link = self.links.get_mut(&id).expect("released when everything is complete");
        assert_eq!(completion.qpn, link.pair.qpn);
        link.complete(what, completion);
        let said = completion.outcome.is_ok() && what == Posted::Add;
        if said && !link.closing {
            let bye = WorkRequest::send(0, inline(&link.number.to_ne_bytes()));
            self.post(id, vec![(Posted::Bye, bye)]);
        } else if link.is_done() && !link.closing {
            self.close(fabric, id);
        }
    }

    fn post(&mut self, id: ConnectionId, requests: Vec<(Posted, WorkRequest)>) {
        let link = self.links.get_mut(&id).expect("it stands");
        for (what, request) in requests {
            link.pair.send.post(WorkRequest { id: self.next, ..request }).expect("room");
            self.posted.insert(self.next, (id, what));
            self.next += 1;
            link.outstanding += 1;
        }
        link.pair.send.ring();
    }

    /// Ends a connection, whatever its state: flushes the queue pair, and tells the manager.
    fn close(&mut self, fabric: &mut Fabric, id: ConnectionId) {
        self.flush(fabric, id);
        let link = self.links.get_mut(&id).expect("it is there");
        let manager = fabric.manager(self.node);
        match manager.state(id).expect("not released") {
            ConnectionState::ReqSent => manager.cancel(id).unwrap(),
            ConnectionState::ReqReceived
            | ConnectionState::RepReceived
            | ConnectionState::RepSent => {
                manager.reject(id, RejectReason::CONSUMER, b"").unwrap();
            }
            ConnectionState::Established => return manager.disconnect(id, b"").unwrap(),
            ConnectionState::DreqSent | ConnectionState::TimeWait => return,
        }
        link.given_up = true;
    }

    fn flush(&mut self, fabric: &mut Fabric, id: ConnectionId) {
        let link = self.links.get_mut(&id).expect("it is there");
        if !std::mem::replace(&mut link.closing, true) {
            fabric.nic(self.node).change(link.pair.qpn, Change::Error).expect("it was connected");
        }
    }

    fn give_up(&mut self, fabric: &mut Fabric, id: ConnectionId) {
        let Some(link) = self.links.get_mut(&id).filter(|link| !link.closing) else { return };
        assert!(link.excused, "{} took so long at {}", link.number, self.node);
        self.close(fabric, id);
    }

    fn hear_nic(&mut self, fabric: &mut Fabric, event: nic::Event) {
        match event {
            nic::Event::Established(qpn) => {
                let (id, manager) = (self.names[&qpn], fabric.manager(self.node));
                let first = manager.state(id) == Some(ConnectionState::RepSent);
                self.seen.note("data came first", first.into());
                manager.arrived(id).unwrap();
            }
            nic::Event::Broken(qpn, _) => {
                let id = self.names[&qpn];
                let link = self.links.get_mut(&id).expect("not released");
                if !std::mem::replace(&mut link.closing, true) {
                    self.close(fabric, id);
                }
            }
            other => panic!("{other:?}"),
        }
    }

    fn hear(&mut self, fabric: &mut Fabric, event: Event<Route>, luck: &mut Luck) {
        seen::event(&event, &mut self.seen);
        match event {
            Event::Asked { id, .. } | Event::Replied { id, .. } if luck.chance(50) => {
                self.put_off(fabric, id, event, luck);
            }
            event => self.act(fabric, event, luck),
        }
    }

    /// Leaves something to be decided later, longer than it takes a peer to ask again; and perhaps
    /// asks it for patience.
    fn put_off(
        &mut self,
        fabric: &mut Fabric,
        id: ConnectionId,
        event: Event<Route>,
        luck: &mut Luck,
    ) {
        let time = Duration::from_millis(20 + luck.below(150) as u64);
        if luck.chance(500) {
            fabric.manager(self.node).delay(id, LONG).unwrap();
        }
        self.undecided.insert((fabric.now() + time, id), event);
    }

    /// Something to be decided now.
    fn due(&mut self, now: Time) -> Option<Event<Route>> {
        let first = self.undecided.first_entry().filter(|entry| entry.key().0 <= now)?;
        Some(first.remove())
    }

    fn act(&mut self, fabric: &mut Fabric, event: Event<Route>, luck: &mut Luck) {
        match event {
            Event::Asked { id, way, request, extensions, private } => {
                self.asked(fabric, id, way, (*request, extensions), &private, luck);
            }
            Event::Replied { id, reply, extensions, private } => {
                let link = self.links.get_mut(&id).expect("asked for");
                assert!(!link.closing);
                let theirs = Card::read(&private);
                assert_eq!(theirs.number, link.number);
                (link.reply, link.extensions, link.theirs) =
                    (Some(*reply), extensions, Some(theirs));
                if luck.chance(20) {
                    return self.close(fabric, id);
                }
                let path = fabric.path(self.node, link.peer);
                self.receives(fabric, id, path);
                self.sends(fabric, id);
                fabric.manager(self.node).ready(id, b"").unwrap();
            }
            Event::Established { id, .. } => {
                assert!(!self.links[&id].closing);
                self.sends(fabric, id);
            }
            Event::Failed { id, why } => {
                let count = self.undecided.len();
                self.undecided.retain(|(_, other), _| *other != id);
                // What was asked, and nothing done about it, has no queue pair.
                if self.undecided.len() == count || self.links.contains_key(&id) {
                    self.flush(fabric, id);
                    self.links.get_mut(&id).expect("asked").failed = Some(why);
                }
            }
            Event::Ended { id, why } => {
                let crossed = self.links[&id].closing && matches!(why, Why::PeerLeft { .. });
                self.seen.note("both ended it", crossed.into());
                self.flush(fabric, id);
                self.links.get_mut(&id).expect("it stood").ended = Some(why);
            }
            Event::Claimed { id } => {
                let qpn = self.links[&id].pair.qpn;
                fabric.nic(self.node).probe(qpn);
            }
            Event::Shaken { .. } | Event::Identified { .. } => panic!("nobody encrypts"),
            Event::Newcomer { way, qpn } => {
                let path = fabric.path_along(&way);
                fabric.nic(self.node).suspect(&path, qpn);
            }
            Event::Released { id, qpn } => self.released(fabric, id, qpn, luck),
        }
    }

    fn asked(
        &mut self,
        fabric: &mut Fabric,
        id: ConnectionId,
        way: Route,
        (request, extensions): (Request, Extensions),
        private: &[u8],
        luck: &mut Luck,
    ) {
        let path = fabric.path_along(&way);
        let (node, peer) = (self.node, path.id().0 as NodeId);
        if luck.chance(30) {
            return fabric.manager(node).reject(id, RejectReason::CONSUMER, b"").unwrap();
        }
        let Some(mut link) = self.link(fabric, false, peer, request) else {
            return fabric.manager(node).reject(id, RejectReason::NO_QP, b"").unwrap();
        };
        let theirs = Card::read(private);
        let psn = fabric.nic(node).first_psn();
        let reply = Reply { flow_control: true, ..Reply::to(&request, link.pair.qpn, psn, READS) };
        (link.number, link.theirs, link.reply) = (theirs.number, Some(theirs), Some(reply));
        link.extensions = extensions;
        link.excused = self.excused.contains(&theirs.number);
        let card = link.card().to_bytes();
        self.enter(id, link, fabric.now());
        self.receives(fabric, id, path);
        let agreed = fabric.manager(node).accept(id, &reply, &card).unwrap();
        self.links.get_mut(&id).expect("entered").extensions = agreed;
    }

    /// Makes a queue pair ready to receive.
    fn receives(&mut self, fabric: &mut Fabric, id: ConnectionId, path: Path) {
        let link = &self.links[&id];
        let peer_guid = fabric.manager(self.node).peer(id);
        let agreed = link.agreement().connection(path, link.extensions);
        let connection = Box::new(Connection { peer_guid, ..agreed });
        let change = Change::ReadyToReceive(connection);
        fabric.nic(self.node).change(link.pair.qpn, change).expect("it was init");
    }

    /// Makes it ready to send, and sends.
    fn sends(&mut self, fabric: &mut Fabric, id: ConnectionId) {
        let link = self.links.get_mut(&id).expect("it stands");
        let change = Change::ReadyToSend(link.agreement().sending(link.extensions));
        fabric.nic(self.node).change(link.pair.qpn, change).expect("it was ready to receive");
        assert!(!std::mem::replace(&mut link.stood, true), "told once");
        let requests = link.requests();
        self.post(id, requests);
    }

    fn released(
        &mut self,
        fabric: &mut Fabric,
        id: ConnectionId,
        qpn: Option<Qpn>,
        luck: &mut Luck,
    ) {
        // One that was refused at once never had any.
        let Some(link) = self.links.remove(&id) else { return assert_eq!(qpn, None) };
        assert_eq!(qpn, Some(link.pair.qpn));
        link.check();
        self.names.remove(&link.pair.qpn);
        let Link { number, active, stood, excused, given_up, .. } = link;
        self.past.push(Past { number, active, stood, excused, given_up });
        let nic = fabric.nic(self.node);
        nic.deregister(link.memory.lkey).expect("its own");
        let Link { mut pair, .. } = link;
        if luck.chance(500) && self.spare.len() < SPARE {
            nic.reset(&mut pair.send, &mut pair.receive).expect("everything was flushed");
            self.spare.push(pair);
        } else {
            drop((pair.send, pair.receive));
            nic.drop_queue_pair(pair.qpn).expect("its own");
        }
    }

    /// Takes everything down that is left.
    pub fn leave(mut self, fabric: &mut Fabric) {
        assert!(self.links.is_empty() && self.posted.is_empty() && self.names.is_empty());
        assert!(self.queue.poll().is_none());
        let nic = fabric.nic(self.node);
        for pair in self.spare {
            drop((pair.send, pair.receive));
            nic.drop_queue_pair(pair.qpn).unwrap();
        }
        nic.drop_completion_queue(self.queue_id).unwrap();
        assert_eq!(nic.objects(), Objects::default());
        fabric.manager(self.node).stop(SERVICE).unwrap();
    }
}
