//! What the wrong message of a stream must lead to, and what requests name: rightly, or wrongly.

use doorbell::memory::Buf;
use doorbell::nic::{Attachment, Cause, KeyError, Memory, Operation, Registration, Segment};
use doorbell::wire::{RemoteAddr, Rkey};

use super::super::memory::Own;
use super::super::message::{Kind, Message, Store, What};
use super::super::model::{Expected, OLD, key_error};
use super::super::spoil::{BadKey, Wrong, right_for};
use super::Run;

/// What names a word, and how long that is.
const WORD: usize = 8;

impl Run<'_> {
    /// Finds out what the wrong message of a stream, if there is one, must lead to.
    pub(super) fn expect_wrong(&mut self, pair: usize, end: usize) {
        let flow = &self.flows[pair][end];
        let found = flow.stream.messages.iter().position(|message| message.wrong.is_some());
        let Some(index) = found else { return };
        let message = flow.message(index);
        let refused = |why: KeyError| (Cause::PeerAccess, Some(Cause::Access(why)));
        let (_, rkey) = self.remote(pair, end, message);
        let (mut packets, mut late) = (0, false);
        let (sender, receiver) = match message.wrong.expect("it was found") {
            Wrong::Source(bad) => {
                late = message.reads();
                let (segment, lkey) = self.spoilt(&self.source(pair, end, index));
                let why = key_error(bad, lkey);
                (Cause::LocalProtection { segment, why }, None)
            }
            Wrong::Landing(bad) => {
                let receive = flow.takers.iter().position(|taker| *taker == index);
                let memory = self.landing(pair, end, receive.expect("it takes a receive"));
                let (segment, lkey) = self.spoilt(&memory);
                let why = key_error(bad, lkey);
                (Cause::PeerOperation, Some(Cause::LocalProtection { segment, why }))
            }
            Wrong::TooSmall => {
                packets = message.room / flow.mtu.bytes();
                (Cause::PeerInvalidRequest, Some(Cause::TooLong { room: message.room as u32 }))
            }
            // The message that took it back may have been taken away.
            Wrong::Remote(BadKey::Invalidated) | Wrong::TakenBack(BadKey::Invalidated)
                if flow.stream.invalidator().is_none_or(|other| other > index) =>
            {
                return;
            }
            Wrong::Remote(bad) => refused(key_error(bad, rkey.0)),
            Wrong::TakenBack(bad) => {
                // It is named by the last packet.
                packets = message.packets(flow.mtu) - 1;
                let Attachment::Invalidate(rkey) = self.attachment(pair, end, index) else {
                    return;
                };
                refused(key_error(bad, rkey.0))
            }
            Wrong::Misaligned(_) => (Cause::PeerInvalidRequest, Some(Cause::InvalidRequest)),
            Wrong::NotGranted => (Cause::PeerInvalidRequest, Some(Cause::NotGranted)),
            Wrong::NoReads => (Cause::NoReads, None),
            Wrong::NoMetadata => (Cause::NoMetadata, None),
            Wrong::Mtu if message.reads() => {
                late = true;
                let (own, peer) = (flow.mtu.bytes(), self.end(pair, 1 - end).mtu.bytes());
                (Cause::AnswerLength { found: peer as u16, expected: own as u16 }, None)
            }
            Wrong::Mtu => (Cause::PeerInvalidRequest, Some(Cause::InvalidRequest)),
        };
        let wrong = Expected { index, sender, receiver, packets, late };
        self.flows[pair][end].wrong = Some(wrong);
    }

    /// Which segment of a request is wrong, and its key: the one that does not lie in own memory.
    fn spoilt(&self, memory: &Memory) -> (u16, u32) {
        let segments = match memory {
            Memory::Segment(segment) => std::slice::from_ref(segment),
            Memory::List(list) => list,
            other => panic!("{other:?} has no segments"),
        };
        let own = |segment: &Segment| {
            self.sides.iter().flatten().filter_map(|side| side.memory.as_ref()).any(|memory| {
                [&memory.source, &memory.fetched, &memory.landing].iter().any(|image| {
                    let Segment { lkey, address, len } = *segment;
                    let own = image.registration;
                    let end = address.checked_add(u64::from(len));
                    lkey == own.lkey
                        && address >= own.address.0
                        && end.is_some_and(|end| end <= own.address.0 + own.len)
                })
            })
        };
        let index = segments.iter().position(|segment| !own(segment)).expect("one was spoilt");
        (index as u16, segments[index].lkey.0)
    }

    /// What a message sends, or where it puts what it reads, as its request names it.
    pub(super) fn source(&self, pair: usize, end: usize, index: usize) -> Memory {
        let (flow, own) = (&self.flows[pair][end], self.memory(pair, end));
        let message = flow.message(index);
        let image = if message.reads() { &own.fetched } else { &own.source };
        let mut memory = image.memory(message.source, &flow.sources[index]);
        if let Some(Wrong::Source(bad)) = message.wrong {
            self.spoil(&mut memory, bad, self.end(pair, end).node, image.registration);
        }
        match message.source {
            Kind::Buf if message.reads() => old_buf(message.len),
            Kind::Buf => Memory::Buf(Buf::from(flow.content(index))),
            _ => memory,
        }
    }

    /// Where a message is received: the memory of the end that `end` sends to.
    pub(super) fn landing(&self, pair: usize, end: usize, receive: usize) -> Memory {
        let (flow, image) = (&self.flows[pair][end], &self.memory(pair, 1 - end).landing);
        let (kind, room) = flow.landing(receive);
        if kind == Kind::Buf {
            return old_buf(room);
        }
        let mut memory = image.memory(kind, &flow.landings[receive]);
        let message = flow.takers.get(receive).map(|&index| flow.message(index));
        if let Some(Wrong::Landing(bad)) = message.and_then(|message| message.wrong) {
            self.spoil(&mut memory, bad, self.end(pair, 1 - end).node, image.registration);
        }
        memory
    }

    fn spoil(&self, memory: &mut Memory, bad: BadKey, node: usize, own: Registration) {
        let segments = match memory {
            Memory::Segment(segment) => std::slice::from_mut(segment),
            Memory::List(list) => &mut **list,
            Memory::None | Memory::Buf(_) => return,
        };
        // The last that has bytes: those before it are good, and not to be touched all the same.
        if let Some(segment) = segments.iter_mut().rev().find(|segment| segment.len > 0) {
            self.traps[node].segment(bad, own, segment);
        }
    }

    /// What a message does, with the peer's addresses and keys.
    pub(super) fn operation(&self, pair: usize, end: usize, index: usize) -> Operation {
        let flow = &self.flows[pair][end];
        let message = flow.message(index);
        let (address, rkey) = self.remote(pair, end, message);
        match (message.what, flow.atomic(index)) {
            (_, Some(Operation::FetchAdd { add, .. })) => {
                Operation::FetchAdd { address, rkey, add }
            }
            (_, Some(Operation::CompareSwap { compare, swap, .. })) => {
                Operation::CompareSwap { address, rkey, compare, swap }
            }
            (What::Write { .. }, _) => Operation::Write { address, rkey },
            (What::Read { .. }, _) => Operation::Read { address, rkey },
            _ => Operation::Send,
        }
    }

    /// What goes with a message.
    pub(super) fn attachment(&self, pair: usize, end: usize, index: usize) -> Attachment {
        let flow = &self.flows[pair][end];
        match flow.message(index).wrong {
            Some(Wrong::TakenBack(_)) => {
                let (_, rkey) = self.remote(pair, end, flow.message(index));
                Attachment::Invalidate(rkey)
            }
            _ => flow.attachment(index),
        }
    }

    /// Which memory of the peer's a message is about, and by which key.
    fn remote(&self, pair: usize, end: usize, message: &Message) -> (RemoteAddr, Rkey) {
        let (node, peer) = (self.end(pair, 1 - end).node, self.memory(pair, 1 - end));
        let (target, library) = (peer.target.registration, peer.library.registration);
        let words = peer.words.registration;
        let (registration, at, len) = match message.what {
            What::Send => (peer.lent, 0, 0),
            What::Write { to, lent } => (if lent { peer.lent } else { target }, to, message.len),
            What::Read { from: Store::Library, at } => (library, at, message.len),
            What::Read { from: Store::Target, at } => (target, at, message.len),
            What::Read { from: Store::Lent, at } => (peer.lent, at, message.len),
            What::Add { word } | What::Swap { word, .. } => (words, word * WORD, WORD),
        };
        let at = match message.wrong {
            Some(Wrong::Remote(bad) | Wrong::TakenBack(bad)) => {
                let own = Own { registration, len, needed: right_for(message.what) };
                let (rkey, address) = self.traps[node].remote(bad, &own);
                return (address, rkey);
            }
            Some(Wrong::Misaligned(by)) => at + by,
            _ => at,
        };
        (RemoteAddr(registration.address.0 + at as u64), registration.rkey)
    }
}

/// A buffer that something is in already.
fn old_buf(room: usize) -> Memory {
    let mut buf = Buf::with_capacity(room);
    buf.extend_from_slice(&OLD[..OLD.len().min(room)]).expect("there is room");
    Memory::Buf(buf)
}
