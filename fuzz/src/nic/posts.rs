//! Requests that programs post.

use doorbell_core::memory::Buf;
use doorbell_core::nic::{
    Attachment, Data, Inline, Memory, Operation, PostError, ReceiveRequest, Segment, Transport,
    WorkRequest,
};
use doorbell_core::wire::{Imm, Metadata, Qkey, Qpn};

use super::super::input::Input;
use super::ledger::{RequestKind, Side};
use super::lines::place_of;
use super::paths::transport;
use super::world::World;

/// The segments of registered memory that a request may fill.
fn segments(memory: &Memory) -> Vec<Segment> {
    match memory {
        Memory::Segment(segment) => vec![*segment],
        Memory::List(list) => list.to_vec(),
        Memory::None | Memory::Buf(_) => Vec::new(),
    }
}

/// The kind of a request, and the segments of registered memory that it may fill.
fn kind_of(request: &WorkRequest) -> (RequestKind, Vec<Segment>) {
    match (&request.operation, &request.data) {
        (Operation::Write { .. }, _) => (RequestKind::Write, Vec::new()),
        (Operation::Read { .. }, Data::Memory(memory)) => {
            (RequestKind::Read { len: memory.room() as u32 }, segments(memory))
        }
        (Operation::CompareSwap { .. } | Operation::FetchAdd { .. }, _) => {
            (RequestKind::Atomic, Vec::new())
        }
        _ => (RequestKind::Send, Vec::new()),
    }
}

impl World {
    pub(super) fn post_send(&mut self, index: usize, input: &mut Input<'_>) {
        let (flags, id) = (input.u8(), self.ledger.id(index, Side::Sends));
        let (request, fits) = self.request(index, id, flags, input);
        let (kind, lent) = kind_of(&request);
        let (signalled, fenced) = (request.signalled, request.fenced);
        let pair = &mut self.pairs[index];
        let Some(ends) = &mut pair.ends else { return };
        // The device may get the request before `post` returns.
        if fenced {
            self.port.fenced.insert(id);
        }
        let posted = match flags & 3 {
            0 => {
                self.port.room = 4;
                self.nic.post(&mut ends.send, request, &mut self.port)
            }
            _ => ends.send.post(request),
        };
        if flags & 3 != 1 {
            ends.send.ring();
        }
        match posted {
            Ok(()) => {
                assert!(fits, "it can't be carried out");
                self.ledger.post(id, kind, signalled, ends.qpn);
                self.port.memory.lend(id, pair.domain, &lent);
            }
            Err(refused) => {
                // The number of the refused request goes to the next one.
                self.port.fenced.remove(&id);
                let unfit = matches!(refused.why, PostError::Unfit { .. });
                assert!(!unfit || !fits, "{refused}");
            }
        }
        self.check_managing();
    }

    /// Draws a request, and tells whether the queue pair's transport can carry it out.
    fn request(
        &self,
        index: usize,
        id: u64,
        flags: u8,
        input: &mut Input<'_>,
    ) -> (WorkRequest, bool) {
        let (shape, which) = (input.u8(), input.u8());
        let (operation, fits) = self.operation(index, id, which, input);
        let data = match operation {
            Operation::Read { .. } => Data::Memory(self.place(index, shape, input)),
            Operation::CompareSwap { .. } | Operation::FetchAdd { .. } => {
                Data::Memory(Memory::None)
            }
            _ => self.data(index, shape, input),
        };
        let request = WorkRequest {
            id,
            operation,
            data,
            attached: self.attached(index, &operation, which >> 4),
            signalled: flags & 4 != 0,
            awaited: flags & 8 != 0,
            solicited: flags & 16 != 0,
            fenced: flags & 0xE0 == 0,
        };
        (request, fits)
    }

    /// Draws the operation of a request, and tells whether the queue pair's transport can carry it
    /// out.
    fn operation(
        &self,
        index: usize,
        id: u64,
        which: u8,
        input: &mut Input<'_>,
    ) -> (Operation, bool) {
        let (address, rkey) = (place_of(id), self.port.memory.open().rkey);
        let connected = transport(index) != Transport::Datagram;
        let reliable = transport(index) == Transport::Reliable;
        let datagram = |input: &mut Input<'_>| {
            let to = input.choose(&self.addresses);
            Operation::Datagram { to, qpn: Qpn::new(id as u32), qkey: Qkey(id as u32) }
        };
        let numbers = [1, u64::MAX, 0];
        match (which & 15, transport(index)) {
            (0..15, Transport::Datagram) => (datagram(input), true),
            (15, _) => (datagram(input), !connected),
            (0..4, _) => (Operation::Send, true),
            (4..8, _) => (Operation::Write { address, rkey }, true),
            (8..11, Transport::Unreliable) => (Operation::Send, true),
            (8..11, _) => (Operation::Read { address, rkey }, true),
            (11 | 12, _) => {
                let (compare, swap) = (input.choose(&numbers), input.choose(&numbers));
                (Operation::CompareSwap { address, rkey, compare, swap }, reliable)
            }
            (_, _) => {
                (Operation::FetchAdd { address, rkey, add: input.choose(&numbers) }, reliable)
            }
        }
    }

    /// Chooses an attachment that the operation may have.
    fn attached(&self, index: usize, operation: &Operation, which: u8) -> Attachment {
        let reliable = transport(index) == Transport::Reliable;
        let metadata = Metadata::new(b"metadata").map(Attachment::Metadata);
        match (operation, which) {
            (_, 0..8) => Attachment::Nothing,
            (Operation::Send, 8..11) if reliable => {
                Attachment::Invalidate(self.port.memory.open().rkey)
            }
            (Operation::Write { .. }, 8..11) if reliable => metadata.expect("short"),
            (Operation::Send | Operation::Write { .. } | Operation::Datagram { .. }, _) => {
                Attachment::Imm(Imm(7))
            }
            _ => Attachment::Nothing,
        }
    }

    /// Draws the data of a send or a write.
    fn data(&self, index: usize, shape: u8, input: &mut Input<'_>) -> Data {
        let memory = &self.port.memory;
        let most = if transport(index) == Transport::Datagram { 280 } else { 1000 };
        let len = match shape >> 6 {
            0 => u32::from(input.u8() & 63),
            _ => u32::from(input.u16()) % most,
        };
        match shape & 3 {
            0 => Data::Memory(Memory::Buf(Buf::from(vec![index as u8; len as usize]))),
            1 => Data::Memory(Memory::Segment(memory.to_send(input, len))),
            2 => {
                let (one, two) = (len / 3, len - len / 3);
                let list = [memory.to_send(input, one), memory.to_send(input, two)];
                Data::Memory(Memory::List(list.into()))
            }
            _ => Inline::new(&vec![index as u8; len as usize % 65]).expect("short").into(),
        }
    }

    /// Draws the memory that a receive or a read fills.
    fn place(&self, index: usize, shape: u8, input: &mut Input<'_>) -> Memory {
        let (memory, domain) = (&self.port.memory, self.pairs[index].domain);
        match shape & 3 {
            0 => Memory::Buf(Buf::with_capacity(usize::from(input.u16()) % 1200)),
            1 => Memory::Segment(memory.to_fill(input, domain)),
            2 => {
                let list = [memory.to_fill(input, domain), memory.to_fill(input, domain)];
                Memory::List(list.into())
            }
            _ => Memory::Buf(Buf::with_capacity(1024)),
        }
    }

    pub(super) fn post_receive(&mut self, index: usize, input: &mut Input<'_>) {
        if self.pairs[index].shares {
            self.post_shared(input);
        }
        let Some(qpn) = self.pairs[index].qpn else { return };
        let id = self.ledger.id(index, Side::Receives);
        let shape = input.u8();
        let memory = self.place(index, shape, input);
        let lent = segments(&memory);
        let (shares, domain) = (self.pairs[index].shares, self.pairs[index].domain);
        let Some(ends) = &mut self.pairs[index].ends else { return };
        match ends.receive.post(ReceiveRequest { id, memory }) {
            Ok(()) => {
                assert!(!shares, "it has no receives of its own");
                self.ledger.post(id, RequestKind::Receive, true, qpn);
                self.port.memory.lend(id, domain, &lent);
            }
            Err(refused) => assert_eq!(shares, matches!(refused.why, PostError::Shared { .. })),
        }
    }

    fn post_shared(&mut self, input: &mut Input<'_>) {
        let id = self.ledger.shared_id();
        let shape = input.u8();
        let memory = self.place(0, shape, input);
        let lent = segments(&memory);
        let room = self.shared.queue.room();
        let posted = self.shared.queue.post(ReceiveRequest { id, memory }).is_ok();
        assert!(posted || room == 0, "there was room");
        if posted {
            self.ledger.post_shared(id);
            self.port.memory.lend(id, self.domains[0], &lent);
        }
    }
}
