//! A NIC, its programs, its peers and its device.

use std::time::Duration;

use doorbell_core::encap::{Opener, Path};
use doorbell_core::memory::Buf;
use doorbell_core::nic::*;
use doorbell_core::time::Time;
use doorbell_core::wire::{
    Extensions, Headers, Imm, Operation as WireOperation, Packet, Pkey, Psn, Qpn, RnrTimer, Service,
};

use super::super::input::Input;
use super::ledger::{Ledger, Side};
use super::memory::Memory as Memories;
use super::packets::{self, MTU, PAIRS, Target, path_from, path_to, peer};
use super::port::Port;

/// The largest window that is asked for.
const WINDOW: usize = 8;

pub struct World {
    nic: Nic,
    lossless: bool,
    pairs: [Pair; PAIRS],
    queues: Vec<(CompletionQueueId, CompletionQueue)>,
    pub memory: Memories,
    ledger: Ledger,
    port: Port,
    opener: Opener,
    domains: [Domain; 2],
    now: Time,
}

struct Pair {
    /// None once the program has dropped them.
    ends: Option<QueuePairEnds>,
    /// None while it is taken down.
    qpn: Option<Qpn>,
    /// The sequence number of the peer's next request.
    expected: Psn,
    back: Path,
}

impl Pair {
    /// The number that packets for it bear: while it is taken down, one that nobody has.
    fn number(&self) -> Qpn {
        self.qpn.unwrap_or(Qpn::new(0))
    }
}

/// Which of the counters say that a request was not simply taken.
fn refused(counters: &Counters) -> u64 {
    let c = counters;
    c.malformed
        + c.no_such_queue_pair
        + c.strangers
        + c.other_partition
        + c.wrong_service
        + c.wrong_state
        + c.duplicates
        + c.out_of_sequence
        + c.rnr_naks_sent
        + c.fatal_naks_sent
}

impl World {
    pub fn new(kind: u8) -> Self {
        let lossless = kind & 1 != 0;
        let config = Config { queue_pairs: 8, registrations: 16, lossless, ..Config::default() };
        let mut nic = Nic::new(config, Seed::from_number(kind.into())).expect("a numbering");
        let domains = [nic.domain(), nic.domain()];
        // The first is small, so that queue pairs wait for it.
        let queues = [9 + usize::from(kind >> 1 & 3), 64, 512]
            .map(|capacity| nic.completion_queue(capacity).expect("a capacity"));
        let memory = Memories::new(&mut nic, domains[0], domains[1]);
        let pairs = std::array::from_fn(|index| Pair {
            ends: None,
            qpn: None,
            expected: Psn::new(0),
            back: path_from(index),
        });
        let mut world = Self {
            nic,
            lossless,
            pairs,
            queues: queues.into(),
            memory,
            ledger: Ledger::default(),
            port: Port::new(),
            opener: Opener::default(),
            domains,
            now: Time::ZERO,
        };
        (0..PAIRS).for_each(|index| world.make(index));
        world.begin();
        world
    }

    /// Queue pairs in every state, the middle ones with messages half sent and half received.
    fn begin(&mut self) {
        let no_more = &mut Input(&[]);
        for (index, steps) in [1, 2, 3, 3, 3, 3].into_iter().enumerate() {
            (0..steps).for_each(|step| self.change(index, step, no_more));
        }
        for index in [2, 3, 4] {
            for byte in 0..3 {
                self.post_receive(index, &mut Input(&[byte, 2, 2]));
            }
        }
        for index in [3, 4] {
            self.post_send(index, &mut Input(&[0xFF, 0x40, 3]));
            self.post_send(index, &mut Input(&[0xFF, 0x41, 3]));
        }
        self.transmit(3);
        for (index, first) in [(2, 10), (3, 4), (4, 10)] {
            self.receive(index, &mut Input(&[first, 0, 0, 0]));
        }
    }

    /// Puts a queue pair in its place. The last is of a domain of its own.
    fn make(&mut self, index: usize) {
        let config = QueuePairConfig {
            receive_completions: self.queues[index / 2].0,
            send_depth: 4 + index,
            receive_depth: 4,
            ..QueuePairConfig::new(
                self.domains[usize::from(index == PAIRS - 1)],
                self.queues[index % 3].0,
            )
        };
        let ends = self.nic.queue_pair(&config).expect("there is room");
        self.pairs[index].qpn = Some(ends.qpn);
        self.pairs[index].ends = Some(ends);
    }

    /// Does what the input says next.
    pub fn act(&mut self, input: &mut Input<'_>) {
        let action = input.u8();
        let index = usize::from(input.u8()) % PAIRS;
        match action {
            0..112 => self.receive(index, input),
            112..118 => self.receive_by_link(index, input),
            118..120 => self.receive_notice(input),
            120..124 => self.receive_noise(index, input),
            124..144 => self.transmit(usize::from(input.u8() & 31)),
            144..168 => self.post_send(index, input),
            168..192 => self.post_receive(index, input),
            192..208 => self.poll(usize::from(input.u8()) % 3, usize::from(input.u8() & 7)),
            208..224 => self.wait(input),
            224..230 => self.change(index, usize::from(input.u8()), input),
            230..238 => self.recover(index, input),
            238..240 => self.memory.revoke(&mut self.nic, self.domains[0]),
            240..248 => self.collect(index, input),
            248..252 => self.arm(index, input),
            _ => self.drop_or_make(index, input),
        }
    }

    fn receive(&mut self, index: usize, input: &mut Input<'_>) {
        let pair = &self.pairs[index];
        let sent = self.port.sent[index];
        let target = Target { qpn: pair.number(), expected: pair.expected, sent };
        let (headers, payload) = packets::packet(input, &target, &self.memory);
        let strange = input.u8();
        let from = if strange < 250 { index } else { usize::from(strange) % PAIRS };
        let mut frame = packets::frame(&self.pairs[from].back, headers, &payload);
        if strange == 249 {
            let at = usize::from(input.u16()) % frame.len();
            frame[at] ^= 1 << (input.u8() & 7);
        }
        let before = refused(self.nic.counters());
        self.nic.frame(&mut self.opener, &frame, None);
        let simply = refused(self.nic.counters()) == before;
        self.judge(index, &headers, simply && from == index && strange != 249);
        assert!(from == index || !simply || strange == 249, "from another peer");
    }

    /// Takes note of a request that was simply taken: it must be the one that was expected, and
    /// what it did allowed.
    fn judge(&mut self, index: usize, headers: &Headers, simply: bool) {
        let pair = &mut self.pairs[index];
        if simply && !headers.bth.opcode().info().is_response() {
            assert_eq!(headers.bth.psn(), pair.expected, "out of its turn");
            pair.expected = pair.expected.add(1);
            if let Extensions::Reth(reth) | Extensions::RethImm(reth, _) = headers.extensions {
                self.memory.check_write(reth);
            }
            let info = headers.bth.opcode().info();
            if info.begins() && info.operation == WireOperation::Send {
                let receives = self.ledger.outstanding(index, Side::Receives);
                assert!(receives > 0, "a message that there was no receive for");
            }
        }
    }

    /// A packet without outer headers, whatever its pad count says.
    fn receive_by_link(&mut self, index: usize, input: &mut Input<'_>) {
        let pair = &self.pairs[index];
        let sent = self.port.sent[index];
        let target = Target { qpn: pair.number(), expected: pair.expected, sent };
        let (headers, payload) = packets::packet(input, &target, &self.memory);
        let flow = Flow::Link(path_to(usize::from(input.u8()) % PAIRS).id());
        let packet = Packet { headers, payload: &payload[..] };
        let before = *self.nic.counters();
        self.nic.packet(flow, &packet);
        let after = *self.nic.counters();
        let simply = refused(&after) == refused(&before);
        self.judge(index, &headers, simply);
        // What is not taken must not pass for done. Only what came behind a refused packet is not
        // refused, too.
        let info = headers.bth.opcode().info();
        let request = info.service == Service::Rc && !info.is_response();
        let behind = after.out_of_sequence > before.out_of_sequence;
        let told = simply || behind || self.nic.owes();
        assert!(told || !request || !self.lossless, "nobody hears of {headers:?}");
    }

    /// A link says that packets were not taken over there.
    fn receive_notice(&mut self, input: &mut Input<'_>) {
        let path = usize::from(input.u8()) % PAIRS;
        let headers = packets::notice(input, path, self.port.sent[path]);
        let flow = Flow::Link(path_to(usize::from(input.u8()) % PAIRS).id());
        self.nic.packet(flow, &Packet { headers, payload: &[][..] });
    }

    /// Bytes that are no packet, as a frame or in one whose ICRC holds.
    fn receive_noise(&mut self, index: usize, input: &mut Input<'_>) {
        let len = usize::from(input.u8());
        let segment = Some(input.u16()).filter(|&segment| segment & 1 == 0);
        let bytes = input.bytes(len);
        self.nic.frame(&mut self.opener, bytes, segment);
        let frame = packets::sealed(&self.pairs[index].back, bytes);
        let mut packets = Opener::default();
        let arrival = packets.open(&frame, None);
        let found = arrival.ok().and_then(|mut arrival| arrival.next()?.ok());
        let before = refused(self.nic.counters());
        self.nic.frame(&mut self.opener, &frame, None);
        let simply = refused(self.nic.counters()) == before;
        if let Some(packet) = found
            && Some(packet.headers.bth.destination()) == self.pairs[index].qpn
        {
            self.judge(index, &packet.headers, simply);
        }
    }

    fn transmit(&mut self, room: usize) {
        (self.port.room, self.port.pushed) = (room, 0);
        let before = self.nic.counters().notices_sent;
        self.nic.transmit(&mut self.port);
        let notices = (self.nic.counters().notices_sent - before) as usize;
        let pushed = self.port.pushed - notices;
        assert!(pushed <= PAIRS * (WINDOW + 1), "{pushed} packets");
        assert!(notices == 0 || self.lossless);
    }

    fn collect(&mut self, index: usize, input: &mut Input<'_>) {
        self.port.deliver(index, u64::from(input.u8() & 3));
        self.nic.look(&mut self.port);
        self.nic.collect();
    }

    fn post_send(&mut self, index: usize, input: &mut Input<'_>) {
        let (flags, shape) = (input.u8(), input.u8());
        let id = self.ledger.id(index, Side::Sends);
        let len = match shape >> 6 {
            0 => u32::from(input.u8() & 63),
            _ => u32::from(input.u16()) % 1000,
        };
        let data = match shape & 3 {
            0 => Data::Memory(Memory::Buf(Buf::from(vec![index as u8; len as usize]))),
            1 => Data::Memory(Memory::Segment(self.memory.to_send(input, len))),
            2 => {
                let (one, two) = (len / 3, len - len / 3);
                let list = [self.memory.to_send(input, one), self.memory.to_send(input, two)];
                Data::Memory(Memory::List(list.into()))
            }
            _ => Inline::new(&vec![index as u8; len as usize % 65]).expect("short").into(),
        };
        let (address, rkey) = (self.memory.open().address, self.memory.open().rkey);
        let operation = match flags & 1 {
            0 => Operation::Send,
            _ => Operation::Write { address, rkey },
        };
        let request = WorkRequest {
            id,
            operation,
            data,
            attached: if flags & 2 == 0 { Attachment::Imm(Imm(7)) } else { Attachment::Nothing },
            signalled: flags & 4 != 0,
            awaited: flags & 8 != 0,
            solicited: flags & 16 != 0,
            fenced: flags & 0xE0 == 0,
        };
        let signalled = request.signalled;
        let Some(ends) = &mut self.pairs[index].ends else { return };
        if ends.send.post(request).is_ok() {
            self.ledger.post(id, signalled);
        }
        if shape & 4 == 0 {
            ends.send.ring();
        }
    }

    fn post_receive(&mut self, index: usize, input: &mut Input<'_>) {
        let id = self.ledger.id(index, Side::Receives);
        let memory = match input.u8() & 3 {
            0 => Memory::Buf(Buf::with_capacity(usize::from(input.u16()) % 1200)),
            1 => Memory::Segment(self.memory.to_receive(input)),
            2 => {
                let list = [self.memory.to_receive(input), self.memory.to_receive(input)];
                Memory::List(list.into())
            }
            _ => Memory::Buf(Buf::with_capacity(1024)),
        };
        let Some(ends) = &mut self.pairs[index].ends else { return };
        if ends.receive.post(ReceiveRequest { id, memory }).is_ok() {
            self.ledger.post(id, true);
        }
    }

    fn poll(&mut self, queue: usize, most: usize) {
        for _ in 0..=most {
            let Some(completion) = self.queues[queue].1.poll() else { break };
            self.ledger.complete(&completion);
        }
        while self.nic.event().is_some() {}
    }

    /// Lets time pass: any stretch of it, or until the NIC wants to be woken.
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

    /// Asks for a change, of which many are refused.
    fn change(&mut self, index: usize, change: usize, input: &mut Input<'_>) {
        let expected = Psn::new([0, 0xFF_FFFE, 0x7F_FFFF][usize::from(input.u8()) % 3]);
        let first = Psn::new([0xFF_FFFD, 0, 0x80_0000][usize::from(input.u8()) % 3]);
        let change = match change % 7 {
            0 => {
                let foreign = index == PAIRS - 1;
                let rights = if foreign { Rights::NONE } else { Rights::REMOTE_WRITE };
                Change::Init { rights, pkey: Pkey::DEFAULT }
            }
            1 => {
                let mut connection = Connection::new(peer(index), path_to(index), MTU, expected);
                connection.not_ready = RnrTimer::from_code(input.u8() & 31);
                connection.ack_every = u32::from(input.u8() & 3);
                connection.credits = input.u8() & 1 == 0;
                Change::ReadyToReceive(Box::new(connection))
            }
            2 => {
                let mut sending = Sending::new(first);
                sending.window = 1 + u32::from(input.u8()) % WINDOW as u32;
                sending.retries = input.u8();
                sending.rnr_retries = input.u8() & 7;
                sending.ask_each = input.u8() & 1 == 0;
                Change::ReadyToSend(sending)
            }
            3 => Change::Drain,
            4 => Change::Resume,
            5 => Change::Error,
            _ => return self.reset(index),
        };
        let Some(qpn) = self.pairs[index].qpn else { return };
        let (receives, sends) =
            (matches!(change, Change::ReadyToReceive(_)), matches!(change, Change::ReadyToSend(_)));
        if self.nic.change(qpn, change).is_ok() {
            if receives {
                self.pairs[index].expected = expected;
            }
            if sends {
                self.port.sent[index] = first;
            }
        }
    }

    fn reset(&mut self, index: usize) {
        let Some(ends) = &mut self.pairs[index].ends else { return };
        match self.nic.reset(&mut ends.send, &mut ends.receive) {
            Ok(()) => {}
            Err(ChangeError::Outstanding { outstanding, .. }) => assert!(outstanding > 0),
            Err(error) => panic!("{error}"),
        }
    }

    /// Connects a queue pair anew, whatever has become of it, if all of it can be flushed.
    fn recover(&mut self, index: usize, input: &mut Input<'_>) {
        self.change(index, 5, input);
        let turns = input.u8();
        for queue in 0..3 {
            self.poll(queue, 64);
        }
        if turns & 1 == 0 {
            self.transmit(0);
        }
        self.poll(usize::from(turns >> 1) % 3, 64);
        for step in [6, 0, 1, 2] {
            self.change(index, step, input);
        }
    }

    fn arm(&mut self, index: usize, input: &mut Input<'_>) {
        let notify = input.choose(&[Notify::Any, Notify::Solicited]);
        self.nic.arm(self.queues[index % 3].0, notify).expect("it is there");
    }

    /// Drops the ends of a queue pair, takes it down, or makes another.
    fn drop_or_make(&mut self, index: usize, input: &mut Input<'_>) {
        let pair = &mut self.pairs[index];
        let Some(qpn) = pair.qpn else { return self.make(index) };
        if pair.ends.is_some() {
            let state = self.nic.state(qpn);
            assert_eq!(self.nic.drop_queue_pair(qpn), Err(ResourceError::HasEnds(qpn)));
            assert_eq!(self.nic.state(qpn), state);
            pair.ends = None;
            if input.u8() & 1 == 0 {
                return;
            }
        }
        match self.nic.drop_queue_pair(qpn) {
            // Another may get the number.
            Ok(()) => pair.qpn = None,
            Err(ResourceError::Outstanding { outstanding, .. }) => assert!(outstanding > 0),
            Err(error) => panic!("{error}"),
        }
    }

    /// Stops everything: each request comes to its end, and the tables become empty.
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
        for index in 0..PAIRS {
            self.pairs[index].ends = None;
            // What was posted without a ring before its end was dropped is found only now.
            while let Some(qpn) = self.pairs[index].qpn
                && let Err(why) = self.nic.drop_queue_pair(qpn)
            {
                assert!(matches!(why, ResourceError::Outstanding { .. }), "{why}");
                (0..3).for_each(|queue| self.poll(queue, 1024));
            }
            (0..3).for_each(|queue| self.poll(queue, 1024));
        }
        self.ledger.close();
        let counters = self.nic.counters();
        assert_eq!(counters.completed + counters.failed, self.ledger.posted());
        for (queue, _) in &self.queues {
            self.nic.drop_completion_queue(*queue).expect("nobody uses it");
        }
        self.memory.check();
    }
}
