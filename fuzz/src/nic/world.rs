//! A NIC, its programs, its peers and its device.

use std::time::Duration;

use doorbell_core::encap::Opener;
use doorbell_core::nic::*;
use doorbell_core::time::Time;

use super::super::input::Input;
use super::event_record::EventRecord;
use super::ledger::Ledger;
use super::management_queues::ManagementQueues;
use super::memory::Memory as Memories;
use super::packets::{byte_of, word_of};
use super::pair::{MOST_HELD, Pair, WINDOW};
use super::paths::{MTU, PAIRS, address};
use super::port::{Port, Pushed};

/// The number of addresses for datagrams.
const ADDRESSES: usize = 4;

/// The most answers to reads that a queue pair gives in a turn: it may have two.
const ANSWERS: usize = 64;

/// The most packets without an answer that leave in a turn: a full send queue of four packets each.
const UNANSWERED: usize = 4 * 16;

pub struct World {
    pub(super) nic: Nic,
    pub(super) lossless: bool,
    /// Whether connections share selective repeat, and whether they control congestion.
    pub(super) selective: bool,
    pub(super) controlled: bool,
    pub(super) pairs: [Pair; PAIRS],
    pub(super) queues: Vec<(CompletionQueueId, CompletionQueue)>,
    pub(super) shared: Shared,
    pub(super) addresses: Vec<AddressId>,
    pub(super) ledger: Ledger,
    pub(super) managers: ManagementQueues,
    pub(super) heard: EventRecord,
    pub(super) port: Port,
    pub(super) opener: Opener,
    pub(super) domains: [Domain; 2],
    now: Time,
}

/// The receive queue from which several queue pairs draw.
pub struct Shared {
    pub id: SharedReceiveQueueId,
    pub queue: SharedReceiveQueue,
    pub completions: CompletionQueueId,
}

/// The receives that the shared queue holds.
const SHARED_DEPTH: usize = 6;

impl World {
    pub fn new(kind: u8) -> Self {
        let lossless = kind & 1 != 0;
        let keep_alive = match kind & 0x20 {
            0 => KeepAlive::default(),
            _ => KeepAlive { idle: Duration::from_millis(8), busy: Duration::from_millis(2) },
        };
        let config = Config {
            queue_pairs: PAIRS + 1,
            registrations: 16,
            addresses: ADDRESSES,
            keep_alive,
            lossless,
            held_packets: MOST_HELD,
            ..Config::default()
        };
        let mut nic = Nic::new(config, Seed::from_number(kind.into())).expect("a numbering");
        let domains = [nic.domain(), nic.domain()];
        // The first completion queue is small, so that queue pairs wait for room in it.
        let queues = [9 + usize::from(kind >> 1 & 3), 64, 512]
            .map(|capacity| nic.completion_queue(capacity).expect("a capacity"));
        let completions = queues[usize::from(kind >> 4 & 1)].0;
        let (id, queue) = nic
            .shared_receive_queue(domains[0], completions, SHARED_DEPTH)
            .expect("a completion queue");
        let memory = Memories::new(&mut nic, domains[0], domains[1]);
        let addresses = (0..ADDRESSES).map(|to| nic.address(address(to)).expect("there is room"));
        let mut world = Self {
            addresses: addresses.collect(),
            nic,
            lossless,
            selective: kind & 0x40 != 0,
            controlled: kind & 0x80 != 0,
            pairs: std::array::from_fn(|index| Pair::new(index, domains)),
            queues: queues.into(),
            shared: Shared { id, queue, completions },
            ledger: Ledger::default(),
            managers: ManagementQueues::default(),
            heard: EventRecord::default(),
            port: Port::new(memory),
            opener: Opener::default(),
            domains,
            now: Time::ZERO,
        };
        let share = kind & 8 != 0;
        (0..PAIRS).for_each(|index| world.make(index, index == 6 || share && index > 6));
        world.begin();
        world
    }

    /// Brings queue pairs into every state, the middle ones with messages half sent and half
    /// received.
    fn begin(&mut self) {
        let no_more = &mut Input(&[]);
        for (index, steps) in [1, 2, 3, 3, 3, 3, 3, 3, 3].into_iter().enumerate() {
            (0..steps).for_each(|step| self.change(index, step, no_more));
        }
        for index in [2, 3, 4, 6, 7, 8] {
            for byte in 0..3 {
                self.post_receive(index, &mut Input(&[byte, 2, 2]));
            }
        }
        for index in [3, 4, 6] {
            for which in [0, 4, 8, 11] {
                self.post_send(index, &mut Input(&[0xFF, 0x40, which, 3, 3]));
            }
        }
        self.transmit(5);
        // The first packets of a send or of a write.
        for (index, first) in [(2, 49), (3, 48), (4, 49), (6, 48)] {
            self.receive(index, &mut Input(&[first, 0, 0, 0]));
        }
    }

    /// Carries out the next action of the input.
    pub fn act(&mut self, input: &mut Input<'_>) {
        let action = input.u8();
        let index = usize::from(input.u8()) % PAIRS;
        match action {
            0..88 => self.receive(index, input),
            88..106 => self.receive_answer(index, input),
            106..114 => self.receive_by_link(index, input),
            114..116 => self.receive_notice(input),
            116..118 => self.receive_managing(index, input),
            118..120 => self.manage(index, input),
            120..123 => self.receive_noise(index, input),
            123..143 => self.transmit(usize::from(input.u8() & 31)),
            143..165 => self.post_send(index, input),
            165..183 => self.post_receive(index, input),
            183..197 => self.poll(usize::from(input.u8()) % 3, usize::from(input.u8() & 7)),
            197..208 => self.wait(input),
            208..212 => self.change(index, usize::from(input.u8()), input),
            212..233 => self.recover(index, input),
            233..235 => self.port.memory.revoke(&mut self.nic),
            235..238 => self.port.memory.renew(&mut self.nic, input.u8().into()),
            238..245 => self.collect(index, input),
            245..248 => self.arm(index, input),
            248 => self.ask_for_low(input),
            249 => self.move_address(input),
            250..252 => self.redirect(index, input),
            _ => self.drop_or_make(index, input),
        }
    }

    /// Asserts what holds after each action.
    pub fn check(&self) {
        self.port.memory.check();
        let objects = self.nic.objects();
        assert!(objects.hosts <= objects.queue_pairs && objects.queue_pairs <= PAIRS);
        assert_eq!(objects.registrations, self.port.memory.registered());
    }

    pub(super) fn transmit(&mut self, room: usize) {
        (self.port.room, self.port.pushed) = (room, Pushed::default());
        let before = *self.nic.counters();
        self.nic.transmit(&mut self.port);
        let after = self.nic.counters();
        let Pushed { requests, unanswered, answers, .. } = self.port.pushed;
        let brought = (after.answers_sent - before.answers_sent) as usize;
        // A probe of the peer comes on top of the window, and so does what is sent again beside it.
        let windows = if self.selective { 2 } else { 1 };
        assert!(requests <= PAIRS * windows * (WINDOW + 1), "{requests} requests");
        assert!(unanswered <= PAIRS * UNANSWERED, "{unanswered} unanswered");
        assert!(brought <= PAIRS * ANSWERS, "{brought} answers");
        // A peer may be told of a read before what it reads comes.
        let most = if self.selective { 2 * PAIRS } else { PAIRS };
        assert!(answers - brought <= most, "{answers} acknowledgements beside {brought} answers");
        assert!(after.notices_sent == before.notices_sent || self.lossless);
        self.check_silent();
        self.check_managing();
    }

    fn collect(&mut self, index: usize, input: &mut Input<'_>) {
        self.port.deliver(index, u64::from(input.u8() & 3));
        self.nic.collect(&mut self.port);
    }

    pub(super) fn poll(&mut self, queue: usize, most: usize) {
        for _ in 0..=most {
            let Some(completion) = self.queues[queue].1.poll() else { break };
            for id in self.ledger.complete(&completion) {
                self.port.memory.take_back(id);
            }
            self.check_answered(&completion);
            let (pair, _) = Ledger::queue(completion.id);
            let early = completion.outcome == Ok(Done::Written)
                && self.port.lines[pair].is_unacknowledged(completion.id);
            assert!(!early || self.lossless, "a write that nobody has acknowledged");
        }
        self.hear();
    }

    /// Asserts that a completed read or atomic operation has the bytes that the peer has answered.
    fn check_answered(&self, completion: &Completion) {
        let Ok(done @ (Done::Read | Done::Atomic { .. })) = completion.outcome else { return };
        let first = self.port.first.get(&(completion.id)).expect("it was asked for");
        if let Done::Atomic { before } = done {
            assert_eq!(before, word_of(*first), "what was found");
        }
        if let Memory::Buf(buf) = &completion.memory {
            assert_eq!(buf.len(), completion.len as usize);
            for (part, bytes) in buf.chunks(MTU.bytes()).enumerate() {
                let byte = byte_of(first.add(part as u32));
                assert!(bytes.iter().all(|&other| other == byte), "what was read");
            }
        }
    }

    /// Lets time pass for any duration, or until the NIC wants to be woken.
    fn wait(&mut self, input: &mut Input<'_>) {
        let stretch = input.u8();
        self.now = match self.nic.next_timeout() {
            Some(next) if stretch & 1 == 0 => self.now.max(next),
            _ => self.now + Duration::from_nanos(1 << (stretch >> 1 & 31)),
        };
        self.nic.advance(self.now);
        let next = self.nic.next_timeout();
        assert!(next.is_none_or(|next| next > self.now), "asked to wait, but not to wait");
    }

    fn arm(&mut self, index: usize, input: &mut Input<'_>) {
        let notify = input.choose(&[Notify::Any, Notify::Solicited]);
        self.nic.arm(self.queues[index % 3].0, notify).expect("it is there");
    }

    /// Drops an address, and mostly makes another; otherwise datagrams to the address find none.
    fn move_address(&mut self, input: &mut Input<'_>) {
        let which = usize::from(input.u8()) % ADDRESSES;
        let dropped = self.nic.drop_address(self.addresses[which]);
        if dropped.is_ok() && input.u8() & 1 == 0 {
            return;
        }
        let again = self.nic.address(address(usize::from(input.u8()) % PAIRS));
        self.addresses[which] = again.expect("one was dropped");
        let full = self.nic.objects().addresses == ADDRESSES;
        match self.nic.address(address(0)) {
            Ok(more) => assert!(!full && self.nic.drop_address(more).is_ok()),
            Err(_) => assert!(full),
        }
    }

    /// Ends all queue pairs: each request completes, and the tables become empty.
    pub fn end(mut self) {
        for index in 0..PAIRS {
            self.change(index, 5, &mut Input(&[]));
            if let Some(ends) = &self.pairs[index].ends {
                ends.send.ring();
            }
        }
        // The smallest completion queue takes one at a time.
        for _ in 0..100 {
            self.transmit(usize::MAX);
            (0..3).for_each(|queue| self.poll(queue, 1024));
        }
        self.nic.advance(self.now + Duration::from_secs(1));
        self.transmit(usize::MAX);
        assert_eq!(self.nic.next_timeout(), None);
        self.check_last();
        self.close_managing();
        for index in 0..PAIRS {
            self.pairs[index].ends = None;
            // Requests that were posted without a doorbell before the ends were dropped are found
            // only now.
            while let Some(qpn) = self.pairs[index].qpn
                && let Err(why) = self.nic.drop_queue_pair(qpn)
            {
                assert!(matches!(why, ResourceError::Outstanding { .. }), "{why}");
                (0..3).for_each(|queue| self.poll(queue, 1024));
            }
            self.pairs[index].qpn = None;
            (0..3).for_each(|queue| self.poll(queue, 1024));
        }
        self.close();
    }

    /// Asserts that no request and no object is left.
    fn close(mut self) {
        let waiting = SHARED_DEPTH - self.shared.queue.room();
        self.ledger.close(waiting);
        let counters = self.nic.counters();
        let over = counters.completed + counters.failed;
        assert_eq!(over + waiting as u64, self.ledger.posted());
        self.nic.drop_shared_receive_queue(self.shared.id).expect("nobody uses it");
        for (queue, _) in &self.queues {
            self.nic.drop_completion_queue(*queue).expect("nobody uses it");
        }
        let Objects { queue_pairs, completion_queues, shared_receive_queues, hosts, .. } =
            self.nic.objects();
        assert_eq!((queue_pairs, completion_queues, shared_receive_queues, hosts), (0, 0, 0, 0));
        self.port.memory.check();
    }
}
