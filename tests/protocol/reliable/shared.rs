//! Shared receive queues.

use doorbell_core::memory::Buf;
use doorbell_core::nic::*;
use doorbell_core::wire::{Imm, PathMtu};
use doorbell_simulation::{Fabric, LinkConfig};

use crate::reliable::common::{End, Setup, bytes, outcomes, short};

/// A node whose queue pairs share their receives, and as many clients.
struct Server {
    fabric: Fabric,
    clients: Vec<End>,
    pairs: Vec<QueuePairEnds>,
    id: SharedReceiveQueueId,
    receives: SharedReceiveQueue,
    queue: CompletionQueue,
    domain: Domain,
    queue_id: CompletionQueueId,
}

impl Server {
    fn new(count: usize, depth: usize) -> Self {
        let setup = Setup::default();
        let mut fabric = Fabric::new(3, setup.version, setup.config);
        let nodes = [fabric.node(), fabric.node()];
        let stations = nodes.map(|node| fabric.station(node));
        fabric.network.link(stations[0], stations[1], LinkConfig::default());
        let nic = fabric.nic(nodes[1]);
        let domain = nic.domain();
        let (queue_id, queue) = nic.completion_queue(100).unwrap();
        let (id, receives) = nic.shared_receive_queue(domain, queue_id, depth).unwrap();
        let config =
            QueuePairConfig { shared_receives: Some(id), ..QueuePairConfig::new(domain, queue_id) };
        let (mut pairs, mut clients) = (Vec::new(), Vec::new());
        for _ in 0..count {
            let pair = fabric.nic(nodes[1]).queue_pair(&config).unwrap();
            let client = End::new(&mut fabric, nodes[0], 64, 64);
            let (ours, theirs) = ((nodes[0], client.qpn), (nodes[1], pair.qpn));
            fabric.connect(ours, theirs, PathMtu::Mtu1024, |_, _| {});
            pairs.push(pair);
            clients.push(client);
        }
        Self { fabric, clients, pairs, id, receives, queue, domain, queue_id }
    }

    fn nic(&mut self) -> &mut Nic {
        self.fabric.nic(1)
    }

    fn post(&mut self, ids: std::ops::Range<u64>) {
        for id in ids {
            let memory = Memory::Buf(Buf::with_capacity(4000));
            self.receives.post(ReceiveRequest { id, memory }).unwrap();
        }
    }

    /// Runs until so many receives are complete.
    fn run(&mut self, count: usize) -> Vec<Completion> {
        let Self { fabric, queue, .. } = self;
        let mut found = Vec::new();
        let done = fabric.run_until(std::time::Duration::from_secs(1), |_| {
            found.extend(std::iter::from_fn(|| queue.poll()));
            found.len() >= count
        });
        assert!(done, "{found:?}");
        found
    }
}

#[test]
fn queue_pairs_draw_from_one_queue_as_messages_come() {
    let mut server = Server::new(3, 40);
    server.post(0..30);
    for (index, client) in server.clients.iter_mut().enumerate() {
        for round in 0..10u64 {
            let len = [8, 3000][round as usize % 2];
            let data = Memory::Buf(Buf::from(vec![index as u8; len]));
            client.post(WorkRequest::send(round, data).with_imm(Imm(round as u32)));
        }
    }
    let received = server.run(30);
    let mut ids: Vec<u64> = received.iter().map(|completion| completion.id).collect();
    ids.sort_unstable();
    assert_eq!(ids, (0..30).collect::<Vec<_>>());
    for (index, pair) in server.pairs.iter().enumerate() {
        let of_pair = received.iter().filter(|completion| completion.qpn == pair.qpn);
        let rounds: Vec<u32> = of_pair
            .inspect(|completion| {
                assert!(bytes(completion).iter().all(|&byte| byte == index as u8));
            })
            .map(|completion| completion.attached.imm().expect("an immediate").0)
            .collect();
        assert_eq!(rounds, (0..10).collect::<Vec<_>>());
    }
}

#[test]
fn one_is_told_once_when_receives_run_low() {
    let mut server = Server::new(2, 40);
    server.post(0..10);
    let id = server.id;
    server.nic().tell_low(id, 7).unwrap();
    for round in 0..5 {
        server.clients[round % 2].post(short(round as u64));
        server.run(1);
        // It is the fourth message that leaves six.
        let expected = (round == 3).then_some(Event::ReceivesLow(id));
        assert_eq!(server.nic().event(), expected, "message {round}");
    }
}

#[test]
fn a_sender_waits_for_whoever_posts_and_the_queue_has_a_bound() {
    let mut server = Server::new(1, 4);
    server.clients[0].post(short(1));
    server.fabric.run_until(std::time::Duration::from_millis(2), |_| false);
    assert!(server.fabric.nic(1).counters().rnr_naks_sent > 0);
    server.post(0..4);
    let memory = Memory::None;
    let refused = server.receives.post(ReceiveRequest { id: 9, memory }).expect_err("full");
    assert_eq!(refused.why, PostError::SharedFull { depth: 4 });
    assert_eq!(server.run(1)[0].id, 0);
    assert_eq!(server.receives.room(), 1);
}

/// What lies in a shared queue is promised to nobody: acknowledgements count no receives, and who
/// sends does not wait for any to be counted.
#[test]
fn who_sends_to_a_shared_queue_is_told_of_no_receives_and_does_not_wait() {
    let mut server = Server::new(1, 40);
    server.post(0..20);
    server.clients[0].post(short(0).awaited());
    server.run(1);
    server.fabric.run_until(std::time::Duration::from_millis(1), |_| false);
    assert_eq!(server.clients[0].poll().len(), 1, "it was acknowledged");
    let sent = server.fabric.nic(0).counters().sent;
    (1..=8).for_each(|id| server.clients[0].post(short(id)));
    server.fabric.turn(0);
    assert_eq!(server.fabric.nic(0).counters().sent - sent, 8);
    assert_eq!(server.run(8).len(), 8);
}

#[test]
fn a_broken_queue_pair_says_when_it_has_taken_its_last() {
    let mut server = Server::new(2, 8);
    server.post(0..4);
    // A message of which the rest does not come.
    server.fabric.room = 1;
    let long = Memory::Buf(Buf::from(vec![1; 4000]));
    server.clients[0].post(WorkRequest::send(1, long));
    server.fabric.turn(0);
    server.fabric.run_until(std::time::Duration::from_nanos(1500), |_| false);
    let (broken, other) = (server.pairs[0].qpn, server.pairs[1].qpn);
    server.nic().change(broken, Change::Error).unwrap();
    let flushed = server.run(1);
    assert_eq!(outcomes(&flushed), [(0, Err(Failure::Flushed(Cause::Told)))]);
    assert_eq!(server.nic().event(), Some(Event::Broken(broken, Cause::Told)));
    assert_eq!(server.nic().event(), Some(Event::LastReceive(broken)));
    assert_eq!(server.nic().event(), None);
    // What is left is for the other.
    server.clients[1].post(short(2));
    let received = server.run(1);
    assert_eq!((received[0].id, received[0].qpn), (1, other));
}

#[test]
fn who_shares_posts_there_and_a_queue_in_use_stays() {
    let mut server = Server::new(2, 8);
    let (id, domain, queue_id) = (server.id, server.domain, server.queue_id);
    let request = ReceiveRequest { id: 1, memory: Memory::None };
    let qpn = server.pairs[0].qpn;
    let refused = server.pairs[0].receive.post(request).expect_err("not its own");
    assert_eq!(refused.why, PostError::Shared { qpn });
    let nic = server.nic();
    let in_use = nic.drop_shared_receive_queue(id);
    assert_eq!(in_use, Err(ResourceError::SharedInUse { queue: id, users: 2 }));
    let other = nic.domain();
    let config =
        QueuePairConfig { shared_receives: Some(id), ..QueuePairConfig::new(other, queue_id) };
    assert_eq!(nic.queue_pair(&config).err(), Some(ResourceError::OtherShared(id)));
    let (another, _queue) = nic.completion_queue(10).unwrap();
    let config =
        QueuePairConfig { shared_receives: Some(id), ..QueuePairConfig::new(domain, another) };
    assert_eq!(nic.queue_pair(&config).err(), Some(ResourceError::OtherShared(id)));
    for pair in server.pairs.drain(..).collect::<Vec<_>>() {
        let qpn = pair.qpn;
        drop(pair);
        server.fabric.nic(1).drop_queue_pair(qpn).unwrap();
    }
    let nic = server.nic();
    let in_use = nic.drop_completion_queue(queue_id);
    assert_eq!(in_use, Err(ResourceError::InUse { queue: queue_id, users: 1 }));
    assert_eq!(nic.drop_shared_receive_queue(id), Ok(()));
    assert_eq!(nic.drop_completion_queue(queue_id), Ok(()));
    let gone = nic.tell_low(id, 1);
    assert_eq!(gone, Err(ResourceError::NoSuchSharedQueue(id)));
}

/// A queue has the number of one that was taken down before it, and was told what nobody had heard
/// of that one.
#[test]
fn what_nobody_heard_of_a_queue_that_is_taken_down_is_not_told_of_the_next() {
    let mut server = Server::new(1, 8);
    let (id, domain, queue_id) = (server.id, server.domain, server.queue_id);
    server.post(0..2);
    server.nic().tell_low(id, 2).unwrap();
    server.nic().arm(queue_id, Notify::Any).unwrap();
    server.clients[0].post(short(1));
    server.run(1);
    let pair = server.pairs.remove(0);
    let (qpn, nic) = (pair.qpn, server.fabric.nic(1));
    drop(pair);
    nic.drop_queue_pair(qpn).unwrap();
    nic.drop_shared_receive_queue(id).unwrap();
    nic.drop_completion_queue(queue_id).unwrap();
    let (next, _completions) = nic.completion_queue(100).unwrap();
    let (next_shared, _receives) = nic.shared_receive_queue(domain, next, 8).unwrap();
    assert_eq!((next, next_shared), (queue_id, id), "places are used again");
    assert_eq!(nic.event(), None);
}
