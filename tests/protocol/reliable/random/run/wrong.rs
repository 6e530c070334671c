//! What the wrong message of a stream must lead to, and what requests name: rightly, or wrongly.

use doorbell_core::memory::Buf;
use doorbell_core::nic::{Attachment, Cause, KeyError, Memory, Operation};
use doorbell_core::wire::{RemoteAddr, Rkey};

use super::super::memory::old_buf;
use super::super::message::{Kind, Message, Store, What};
use super::super::model::{Expected, key_error};
use super::super::spoil::{BadKey, Wrong, right_for};
use super::super::traps::{Own, complaint};
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
                let (segment, why) = complaint(bad, &self.source(pair, end, index));
                (Cause::LocalProtection { segment, why }, None)
            }
            Wrong::Landing(bad) => {
                let receive = flow.takers.iter().position(|taker| *taker == index);
                let memory = self.landing(pair, end, receive.expect("it takes a receive"));
                let (segment, why) = complaint(bad, &memory);
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

    /// What a message sends, or where it puts what it reads, as its request names it.
    pub(super) fn source(&self, pair: usize, end: usize, index: usize) -> Memory {
        let (flow, own) = (&self.flows[pair][end], self.memory(pair, end));
        let message = flow.message(index);
        let image = if message.reads() { &own.fetched } else { &own.source };
        let mut memory = image.memory(message.source, &flow.sources[index]);
        if let Some(Wrong::Source(bad)) = message.wrong {
            self.traps[self.end(pair, end).node].spoil(bad, image.registration, &mut memory);
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
            let node = self.end(pair, 1 - end).node;
            self.traps[node].spoil(bad, image.registration, &mut memory);
        }
        memory
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
