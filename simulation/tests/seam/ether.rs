//! The fabric as a device: NICs that sleep on it, in virtual time.

use std::sync::atomic::{AtomicUsize, Ordering};
use std::thread;
use std::time::Duration;

use doorbell_core::encap::{PathId, Version};
use doorbell_core::memory::Buf;
use doorbell_core::nic::{
    CompletionQueue, Config, Connection, Inline, Nic, QueuePairConfig, QueuePairEnds,
    ReceiveRequest, Seed, Sending, WorkRequest,
};
use doorbell_core::time::Time;
use doorbell_core::wire::{PathMtu, Psn};
use doorbell_kit::{sleep, turn};
use doorbell_simulation::{
    Ether, Faults, LinkConfig, Network, Pace, Station, StationId, Still, ready,
};
use doorbell_transports::Device;

/// The number of messages that each of the two programs sends.
const MESSAGES: usize = 200;
const DEPTH: usize = 8;

/// A program that sends and receives, with its NIC and its device.
struct Node {
    nic: Nic,
    device: Station,
    ends: QueuePairEnds,
    queue: CompletionQueue,
    /// The numbers of sends and of receives that were posted.
    posted: [usize; 2],
    /// The numbers of sends and of receives that are complete.
    complete: [usize; 2],
}

impl Node {
    fn new(ether: &Ether, station: StationId, lossless: bool) -> Self {
        let config = Config { lossless, ..Config::default() };
        let mut nic = Nic::new(config, Seed::from_number(station.index() as u64)).unwrap();
        let device = ether.station(station).unwrap();
        let (domain, (id, queue)) = (nic.domain(), nic.completion_queue(4 * DEPTH).unwrap());
        let config = QueuePairConfig {
            send_depth: DEPTH,
            receive_depth: DEPTH,
            ..QueuePairConfig::new(domain, id)
        };
        let ends = nic.queue_pair(&config).unwrap();
        Self { nic, device, ends, queue, posted: [0; 2], complete: [0; 2] }
    }

    fn connect(&mut self, peer: &Self) {
        let way = self.device.reach(peer.device.address()).unwrap().unwrap();
        let (path, first) = (way.path(PathId(0)), Psn::new(7));
        let connection = Connection::new(peer.ends.qpn, path, PathMtu::Mtu1024, first);
        ready(&mut self.nic, self.ends.qpn, connection, Sending::new(first));
    }

    fn is_done(&self) -> bool {
        self.complete == [MESSAGES; 2]
    }

    /// Keeps the program's queues full until everything is posted.
    fn program(&mut self) {
        while let Some(completion) = self.queue.poll() {
            completion.outcome.expect("everything succeeds");
            self.complete[completion.id as usize] += 1;
        }
        while self.posted[1] < MESSAGES && self.ends.receive.room() > 0 {
            let memory = Buf::with_capacity(64).into();
            self.ends.receive.post(ReceiveRequest { id: 1, memory }).unwrap();
            self.posted[1] += 1;
        }
        while self.posted[0] < MESSAGES && self.ends.send.room() > 0 {
            let request = WorkRequest::send(0, Inline::new(b"hello").unwrap());
            self.ends.send.post(request).unwrap();
            self.posted[0] += 1;
        }
        self.ends.send.ring();
    }

    /// A turn of the NIC. Whether anything came or went.
    fn turn(&mut self) -> bool {
        turn(&mut self.nic, &mut self.device)
    }

    /// Does all that is to be done at this moment, and goes to sleep.
    fn run(&mut self) {
        self.device.disarm();
        loop {
            while self.turn() {}
            self.program();
            // Now and then it looks whether the others are done.
            let look = self.device.now() + Duration::from_secs(1);
            let until = self.nic.next_timeout().map_or(look, |until| until.min(look));
            self.device.arm(Some(until)).unwrap();
            // Once more, for what came before it was armed.
            if !self.turn() && !self.nic.has_work() && !self.queue_has_news() {
                break;
            }
            self.device.disarm();
        }
    }

    fn queue_has_news(&mut self) -> bool {
        let before = self.complete;
        self.program();
        self.complete != before
    }
}

/// Two nodes on a cable.
fn two(seed: u64, lossless: bool) -> (Ether, [Node; 2]) {
    let mut network = Network::new(seed);
    let stations = [network.station(), network.station()];
    let loss = if lossless { 0.0 } else { 0.1 };
    let cable = LinkConfig { mtu: 4200, ..LinkConfig::default() };
    network.link(stations[0], stations[1], cable.with_faults(Faults { loss, ..Faults::NONE }));
    let ether = Ether::new(network, Version::V2Ipv4, lossless);
    let [mut a, mut b] = stations.map(|station| Node::new(&ether, station, lossless));
    a.connect(&b);
    b.connect(&a);
    (ether, [a, b])
}

/// Runs two nodes on one thread. When they are done, and what was seen of it.
fn run_on_one_thread(seed: u64, lossless: bool) -> (Time, u64) {
    let (ether, mut nodes) = two(seed, lossless);
    let end = Time::ZERO + Duration::from_secs(10);
    loop {
        nodes.iter_mut().for_each(Node::run);
        if nodes.iter().all(Node::is_done) {
            return (ether.now(), ether.with(|network| network.trace_hash()));
        }
        ether.step(Pace::Asleep, end).expect("something is to come");
    }
}

#[test]
fn the_same_seed_gives_the_same_run() {
    for lossless in [false, true] {
        let runs = [1, 1, 2].map(|seed| run_on_one_thread(seed, lossless));
        assert_eq!(runs[0], runs[1]);
        // Of what can't go wrong, nothing is left to chance.
        assert_eq!(runs[0] == runs[2], lossless);
    }
}

/// A thread that sleeps is blocked by the system, and no virtual time passes while a thread is
/// awake.
#[test]
fn time_passes_for_threads_when_all_of_them_sleep() {
    for lossless in [false, true] {
        let ((ether, nodes), done) = (two(1, lossless), AtomicUsize::new(0));
        thread::scope(|scope| {
            for mut node in nodes {
                let done = &done;
                scope.spawn(move || {
                    node.run();
                    let mut told = false;
                    // The other may need answers for as long as it is not done.
                    while done.load(Ordering::SeqCst) < 2 {
                        sleep(&node.device);
                        node.run();
                        if node.is_done() && !std::mem::replace(&mut told, true) {
                            done.fetch_add(1, Ordering::SeqCst);
                        }
                    }
                });
            }
            ether.drive(Pace::Asleep);
        });
        assert_eq!(done.into_inner(), 2);
    }
}

#[test]
fn time_stands_still_while_somebody_is_awake() {
    let (ether, [mut a, b]) = two(1, true);
    let end = Time::ZERO + Duration::from_secs(1);
    a.run();
    assert_eq!(ether.step(Pace::Asleep, end), Err(Still::Awake));
    assert_eq!(ether.now(), Time::ZERO);
    drop((a, b));
    assert_eq!(ether.step(Pace::Asleep, end), Err(Still::Deserted));
}
