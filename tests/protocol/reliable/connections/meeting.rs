//! Two nodes with a manager and a queue pair each, led through a connection step by step.

use std::time::Duration;

use doorbell_core::cm::{ConnectionId, Event, Extensions, Reply, Request, Usage};
use doorbell_core::connect::{Agreement, Route};
use doorbell_core::encap::Version;
use doorbell_core::nic::{self, *};
use doorbell_core::wire::cm::{InitiatorDepth, ResponderResources};
use doorbell_core::wire::{Gid, Psn, ServiceId};
use doorbell_simulation::{Fabric, LinkConfig, LinkId, NodeId};

use crate::reliable::common::End;

pub const SERVICE: ServiceId = ServiceId(0xD00B);
pub const METADATA: Extensions = Extensions::WRITE_WITH_METADATA;
/// As many reads at a time as either side takes.
pub const READS: u8 = 4;

/// The first node asks, and the second listens.
pub struct Meeting {
    pub fabric: Fabric,
    pub link: LinkId,
    pub ends: [End; 2],
    pub names: [Option<ConnectionId>; 2],
    terms: Option<(Request, Reply)>,
    /// The extensions that the second node hears that both speak.
    speak: Extensions,
}

/// How the nodes are.
pub struct Setup {
    pub config: Config,
    pub version: Version,
    pub speak: [Extensions; 2],
}

impl Default for Setup {
    fn default() -> Self {
        let config = Config { queue_pairs: 16, registrations: 16, ..Config::default() };
        Self { config, version: Version::V2Ipv4, speak: [METADATA; 2] }
    }
}

/// Longer than anybody waits for anything.
const LONG: Duration = Duration::from_secs(200);

impl Meeting {
    pub fn new() -> Self {
        Self::of(&Setup::default())
    }

    pub fn of(setup: &Setup) -> Self {
        let mut fabric = Fabric::new(1, setup.version, setup.config);
        let nodes = setup.speak.map(|speak| fabric.managed_node(|own| own.extensions = speak));
        let stations = nodes.map(|node| fabric.station(node));
        let link = fabric.network.link(stations[0], stations[1], LinkConfig::default());
        fabric.manager(1).listen(SERVICE, 4).unwrap();
        let ends = nodes.map(|node| End::new(&mut fabric, node, 16, 64));
        Self { fabric, link, ends, names: [None; 2], terms: None, speak: Extensions::NONE }
    }

    /// What the first node proposes.
    pub fn request(&mut self) -> Request {
        let [from, to] = [1, 2].map(|n| Gid([n; 16]));
        let psn = self.fabric.nic(0).first_psn();
        Request {
            responder_resources: ResponderResources(READS),
            initiator_depth: InitiatorDepth(READS),
            flow_control: true,
            ..Request::new(SERVICE, self.ends[0].qpn, psn, from, to)
        }
    }

    /// Has the first node ask.
    pub fn ask(&mut self, private: &[u8]) -> ConnectionId {
        let request = self.request();
        let route = self.fabric.route(0, 1);
        let name = self.fabric.manager(0).connect(route, &request, private).unwrap();
        self.terms = Some((request, Reply::new(self.ends[1].qpn, Psn::new(0))));
        self.names[0] = Some(name);
        name
    }

    /// The next event of a node's manager.
    pub fn hear(&mut self, node: NodeId) -> Event<Route> {
        let mut heard = None;
        self.fabric.run_until(LONG, |fabric| {
            heard = fabric.manager(node).event();
            heard.is_some()
        });
        heard.unwrap_or_else(|| panic!("nothing is heard at {node}"))
    }

    /// The next event of a node's NIC.
    pub fn hear_nic(&mut self, node: NodeId) -> nic::Event {
        let mut heard = None;
        self.fabric.run_until(LONG, |fabric| {
            heard = fabric.nic(node).event();
            heard.is_some()
        });
        heard.unwrap_or_else(|| panic!("nothing is heard at {node}"))
    }

    /// Has the second node hear of it: its name there, and the private data.
    pub fn asked(&mut self) -> (ConnectionId, Vec<u8>) {
        let Event::Asked { id, request, extensions, private, .. } = self.hear(1) else { panic!() };
        assert_eq!(Some(*request), self.terms.map(|(request, _)| request));
        (self.names[1], self.speak) = (Some(id), extensions);
        (id, private)
    }

    /// Has the second node hear of it and take it up. What is agreed upon, and the private data.
    pub fn accept(&mut self, private: &[u8]) -> (Extensions, Vec<u8>) {
        let (id, heard) = self.asked();
        let Self { fabric, ends: [_, end], speak, .. } = self;
        let (request, _) = self.terms.unwrap();
        let psn = fabric.nic(1).first_psn();
        let reply = Reply { flow_control: true, ..Reply::to(&request, end.qpn, psn, READS) };
        self.terms = Some((request, reply));
        let agreement = Agreement::responders(&request, &reply);
        let connection = agreement.connection(fabric.path_along(&fabric.route(1, 0)), *speak);
        let changes =
            [agreement.init(Rights::REMOTE), Change::ReadyToReceive(Box::new(connection))];
        changes.into_iter().for_each(|change| fabric.nic(1).change(end.qpn, change).unwrap());
        (fabric.manager(1).accept(id, &reply, private).unwrap(), heard)
    }

    /// Has the first node hear of that and make ready. What is agreed upon, and the private data.
    pub fn ready(&mut self, private: &[u8]) -> (Extensions, Vec<u8>) {
        let Event::Replied { id, reply, extensions, private: heard } = self.hear(0) else {
            panic!()
        };
        let (request, said) = self.terms.unwrap();
        assert_eq!((Some(id), *reply), (self.names[0], said));
        let Self { fabric, ends: [end, _], .. } = self;
        let agreement = Agreement::requesters(&request, &reply);
        let connection = agreement.connection(fabric.path(0, 1), extensions);
        let changes = [
            agreement.init(Rights::REMOTE),
            Change::ReadyToReceive(Box::new(connection)),
            Change::ReadyToSend(agreement.sending(extensions)),
        ];
        changes.into_iter().for_each(|change| fabric.nic(0).change(end.qpn, change).unwrap());
        fabric.manager(0).ready(id, private).unwrap();
        (extensions, heard)
    }

    /// Has the second node hear that it stands, and send from then on. The private data.
    pub fn stand(&mut self, extensions: Extensions) -> Vec<u8> {
        let Event::Established { id, private } = self.hear(1) else { panic!() };
        assert_eq!(Some(id), self.names[1]);
        let (request, reply) = self.terms.unwrap();
        let sending = Agreement::responders(&request, &reply).sending(extensions);
        let change = Change::ReadyToSend(sending);
        self.fabric.nic(1).change(self.ends[1].qpn, change).unwrap();
        private
    }

    /// All of it.
    pub fn connect(&mut self) -> Extensions {
        self.ask(b"");
        let (extensions, _) = self.accept(b"");
        assert_eq!(self.ready(b"").0, extensions);
        self.stand(extensions);
        extensions
    }

    /// Runs until an end has so many completions.
    pub fn completions(&mut self, node: NodeId, count: usize) -> Vec<Completion> {
        let Self { fabric, ends, .. } = self;
        let mut found = Vec::new();
        fabric.run_until(LONG, |_| {
            found.extend(ends[node].poll());
            found.len() >= count
        });
        assert_eq!(found.len(), count, "{found:#?}");
        found
    }

    pub fn disconnect(&mut self, node: NodeId, private: &[u8]) {
        let (name, qpn) = (self.names[node].unwrap(), self.ends[node].qpn);
        self.fabric.nic(node).change(qpn, Change::Error).unwrap();
        self.fabric.manager(node).disconnect(name, private).unwrap();
    }

    /// Takes down what the nodes have, once their connections are released: nothing is left then.
    pub fn leave_nothing(mut self, nodes: impl IntoIterator<Item = NodeId>) {
        let nodes: Vec<NodeId> = nodes.into_iter().collect();
        for &node in &nodes {
            if let Some(name) = self.names[node].take() {
                let Event::Released { id, .. } = self.hear(node) else { panic!() };
                assert_eq!(id, name);
            }
        }
        let Self { mut fabric, ends, .. } = self;
        for (node, end) in ends.into_iter().enumerate().filter(|(node, _)| nodes.contains(node)) {
            let (qpn, queue_id) = (end.qpn, end.queue_id);
            drop(end);
            let nic = fabric.nic(node);
            nic.drop_queue_pair(qpn).unwrap();
            nic.drop_completion_queue(queue_id).unwrap();
            assert_eq!(nic.objects(), Objects::default());
            let usage = Usage { services: 0, ..fabric.manager(node).usage() };
            assert_eq!(usage, Usage::default());
            // A wheel may turn once more for a timer that was taken back.
            fabric.run_until(LONG, |_| false);
            assert_eq!(fabric.nic(node).next_timeout(), None);
            assert_eq!(fabric.manager(node).next_timeout(), None);
        }
    }
}
