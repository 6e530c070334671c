//! The connection managers of several processes, each of which hears every datagram.

use doorbell_core::cm::{Config, ConnectionManager, Request};
use doorbell_core::nic::Seed;
use doorbell_core::wire::cm::{Mad, Message};
use doorbell_core::wire::{CaGuid, Gid, Psn, Qpn, ServiceId};

use crate::sharing::process::*;

const SERVED: u64 = 7;
const NOBODYS: u64 = 8;

/// A peer asks for a service: how often it is refused, by all processes together. Nothing is
/// decided, so it is never accepted; who hears it again asks for patience.
fn refusals(processes: &mut [Process], service: u64) -> usize {
    let mut peer = ConnectionManager::<u8>::new(Config::new(CaGuid(2)), Seed::from_number(service))
        .expect("a manager");
    // A queue pair for each: one that is asked for twice has begun anew.
    let (qpn, from, to) = (Qpn::new(service as u32), Gid([1; 16]), Gid([2; 16]));
    let request = Request::new(ServiceId(service), qpn, Psn::new(3), from, to);
    peer.connect(1, &request, b"").expect("a connection");
    let datagram = peer.transmit().expect("a request");
    let answers = processes.iter_mut().flat_map(|process| process.datagram(&datagram.bytes));
    let refuses = |answer: &Vec<u8>| match Mad::parse(answer).expect("a message").message {
        Message::Rej(_) => true,
        Message::Mra(_) => false,
        other => panic!("{other:?}"),
    };
    answers.filter(refuses).count()
}

#[test]
fn what_nobody_serves_is_refused_once_and_what_another_process_serves_never() {
    let key = key();
    let mut processes: Vec<_> = (0..4).map(|_| Process::start(&key)).collect();
    let killed = owner(&mut processes);
    processes[0].is_granted(SERVED);
    processes.push(killed);
    assert_eq!(refusals(&mut processes, NOBODYS), 1);
    assert_eq!(refusals(&mut processes, SERVED), 0);

    processes.pop().expect("the owner").kill();
    // While there is no owner, or it doesn't know all, it must not be refused either.
    let mut refused = 0;
    while refused == 0 {
        assert_eq!(refusals(&mut processes, SERVED), 0);
        refused = refusals(&mut processes, NOBODYS);
    }
    assert_eq!(refused, 1);
    assert_eq!(refusals(&mut processes, SERVED), 0);
    assert_eq!(refusals(&mut processes, NOBODYS), 1);

    // Its listener is killed: from when the owner knows, nobody serves it.
    processes.remove(0).kill();
    for process in &mut processes {
        process.until(|state| state.others.is_empty());
    }
    assert_eq!(refusals(&mut processes, SERVED), 1);
}
