//! Several processes on one interface: each sees every datagram, and one answers for all.

use doorbell_core::cm::{Config, ConnectionId, Event, ListenError};
use doorbell_core::wire::ServiceId;
use doorbell_core::wire::cm::{Drep, Dreq, Mad, Message};

use crate::connections::common::*;

const OTHER: ServiceId = ServiceId(0x5678);

/// A peer at address 0, and two processes at address 1, of which the first is the owner.
struct Interface {
    peer: Manager,
    processes: [Manager; 2],
}

impl Interface {
    fn new() -> Self {
        let process = |tag| Config { tag, owner: tag == 1, ..config(1) };
        let processes = [manager(process(1), 2), manager(process(2), 3)];
        Self { peer: manager(config(0), 1), processes }
    }

    /// Carries everything, and tells how many datagrams came from the interface.
    fn carry(&mut self) -> usize {
        let mut answers = 0;
        loop {
            let mut quiet = true;
            while let Some(datagram) = self.peer.transmit() {
                quiet = false;
                self.processes.iter_mut().for_each(|own| own.receive(&0, &datagram.bytes));
            }
            for process in &mut self.processes {
                while let Some(datagram) = process.transmit() {
                    quiet = false;
                    answers += 1;
                    self.peer.receive(&1, &datagram.bytes);
                }
            }
            if quiet {
                return answers;
            }
        }
    }

    /// Connects the peer with a process that listens to a service.
    fn connect(&mut self, process: usize, service: ServiceId, qpn: u32) -> [ConnectionId; 2] {
        let asked = doorbell_core::cm::Request { service, ..request(qpn) };
        let asking = self.peer.connect(1, &asked, b"").unwrap();
        self.carry();
        let Some(Event::Asked { id, .. }) = self.processes[process].event() else { panic!() };
        self.processes[process].accept(id, &reply(10 + qpn), b"").unwrap();
        self.carry();
        assert!(matches!(self.peer.event(), Some(Event::Replied { .. })));
        self.peer.ready(asking, b"").unwrap();
        self.carry();
        assert!(matches!(self.processes[process].event(), Some(Event::Established { .. })));
        [asking, id]
    }
}

#[test]
fn each_process_hears_of_its_own_connections_only() {
    let mut interface = Interface::new();
    for (process, service) in [(0, SERVICE), (1, OTHER)] {
        interface.processes[process].listen(service, 4).unwrap();
        interface.processes[1 - process].others_listen(service, true).unwrap();
    }
    let [one, _] = interface.connect(0, SERVICE, 5);
    let [other, _] = interface.connect(1, OTHER, 6);
    for id in [one, other] {
        interface.peer.disconnect(id, b"").unwrap();
        assert_eq!(interface.carry(), 1, "one process answers");
        assert!(matches!(interface.peer.event(), Some(Event::Ended { .. })));
    }
    for process in &mut interface.processes {
        assert!(matches!(process.event(), Some(Event::Ended { .. })));
        assert_eq!(process.event(), None);
        assert!(process.counters().of_others >= 3, "{:?}", process.counters());
        assert_eq!(process.counters().unknown, 0);
    }
}

#[test]
fn the_owner_refuses_what_nobody_on_the_interface_serves_and_nothing_else() {
    let mut interface = Interface::new();
    // Of this service the owner was not told, so it takes it for nobody's.
    interface.peer.connect(1, &request(5), b"").unwrap();
    assert_eq!(interface.carry(), 1);
    assert!(matches!(interface.peer.event(), Some(Event::Failed { .. })));
    // Told, it leaves the answer to the other process, even if that takes its time.
    interface.processes[0].others_listen(SERVICE, true).unwrap();
    interface.peer.connect(1, &request(6), b"").unwrap();
    assert_eq!(interface.carry(), 0);
    // That process is no more, and it was told so.
    interface.processes[0].others_listen(SERVICE, false).unwrap();
    interface.peer.connect(1, &request(7), b"").unwrap();
    assert_eq!(interface.carry(), 1);
}

#[test]
fn whoever_is_made_the_owner_answers_and_who_was_does_not() {
    let mut interface = Interface::new();
    interface.processes[0].set_owner(false);
    interface.peer.connect(1, &request(5), b"").unwrap();
    assert_eq!(interface.carry(), 0, "nobody is the owner");
    interface.processes[1].set_owner(true);
    interface.peer.connect(1, &request(6), b"").unwrap();
    assert_eq!(interface.carry(), 1);
    assert_eq!(interface.processes[1].counters().no_such_service, 1);
}

/// A message that ends a connection of the process with this tag, which nobody knows.
fn dreq(interface: &mut Interface, tag: u32) -> Option<Drep<'static>> {
    let remote = doorbell_core::wire::CommId(tag << 26 | 0x12345);
    let local = doorbell_core::wire::CommId(77);
    let message = Dreq { local, remote, ..Dreq::default() }.into();
    let mut datagram = [0; Mad::LEN];
    Mad { transaction: doorbell_core::wire::TransactionId(9), message }.emit(&mut datagram);
    interface.processes.iter_mut().for_each(|own| own.receive(&0, &datagram));
    let mut answers = interface.processes.iter_mut().filter_map(Manager::transmit);
    let answer = answers.next()?;
    assert!(answers.next().is_none(), "two answer");
    let Message::Drep(drep) = Mad::parse(&answer.bytes).unwrap().message else { panic!() };
    assert_eq!((drep.local, drep.remote), (remote, local));
    Some(Drep { private: Default::default(), ..drep })
}

#[test]
fn the_end_of_a_connection_that_nobody_knows_is_agreed_to_by_whose_it_was() {
    let mut interface = Interface::new();
    assert!(dreq(&mut interface, 1).is_some());
    assert!(dreq(&mut interface, 2).is_some(), "by a process that is not the owner");
    // Of a third process nothing is known: it may be there, and answer itself.
    assert!(dreq(&mut interface, 3).is_none());
    for process in &mut interface.processes {
        process.set_vacant(3, true).unwrap();
    }
    assert!(dreq(&mut interface, 3).is_some(), "by the owner, for a process that is gone");
    for process in &mut interface.processes {
        process.set_vacant(3, false).unwrap();
    }
    assert!(dreq(&mut interface, 3).is_none(), "it is there again");
}

#[test]
fn a_tag_that_is_not_another_processs_is_refused() {
    let mut owner = manager(config(0), 1);
    for tag in [1, 64] {
        let error = owner.set_vacant(tag, true).unwrap_err();
        assert_eq!(error, ListenError::Tag { tag, tag_bits: 6, own: 1 });
    }
}
