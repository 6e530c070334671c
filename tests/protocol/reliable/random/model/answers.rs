//! What a flow's reads may bring, and what its atomic operations find.

use doorbell_core::nic::{Attachment, Operation};
use doorbell_core::wire::{Imm, RemoteAddr, Rkey};

use super::super::memory::{Image, Images};
use super::super::message::{Extra, Kind, Message, Store, What};
use super::super::spoil::{BadKey, Wrong};
use super::{Check, Flow, ensure};

/// The peer's memory, as it was before anything was done to it.
#[derive(Default)]
pub struct Peer {
    library: Vec<u8>,
    target: Vec<u8>,
    words: Vec<u64>,
    lent: Option<Rkey>,
    atomics: Vec<Option<Atomic>>,
}

/// What an atomic operation does, carried out once and in its order.
#[derive(Clone, Copy)]
struct Atomic {
    word: usize,
    before: u64,
    after: u64,
    operation: Operation,
}

impl Atomic {
    fn new(message: &Message, words: &[u64]) -> Option<Self> {
        let number = message.number;
        // Where it is, and by which key, is for others to say.
        let (address, rkey) = (RemoteAddr(0), Rkey(0));
        match message.what {
            What::Add { word } => {
                let operation = Operation::FetchAdd { address, rkey, add: number };
                let before = words[word];
                Some(Self { word, before, after: before.wrapping_add(number), operation })
            }
            What::Swap { word, hits } => {
                let (before, swap) = (words[word], number);
                let compare = if hits { before } else { before ^ (number | 1) };
                let operation = Operation::CompareSwap { address, rkey, compare, swap };
                let after = if hits { swap } else { before };
                Some(Self { word, before, after, operation })
            }
            _ => None,
        }
    }
}

impl Flow {
    /// Takes note of what the receiver has registered.
    pub fn meet(&mut self, images: &Images) {
        let mut words = images.words.words();
        self.peer = Peer {
            library: images.library.expected.clone(),
            target: images.target.expected.clone(),
            words: words.clone(),
            lent: Some(images.lent.rkey),
            atomics: Vec::new(),
        };
        for message in &self.stream.messages {
            let atomic = Atomic::new(message, &words);
            if let Some(Atomic { word, after, .. }) = atomic {
                words[word] = after;
            }
            self.peer.atomics.push(atomic);
        }
    }

    /// What an atomic operation does, but for where it does it.
    pub fn atomic(&self, index: usize) -> Option<Operation> {
        self.peer.atomics[index].map(|atomic| atomic.operation)
    }

    /// What an atomic operation must find.
    pub fn before(&self, index: usize) -> Option<u64> {
        self.peer.atomics[index].map(|atomic| atomic.before)
    }

    /// The words as so many messages leave them.
    pub fn words_after(&self, count: usize) -> Vec<u64> {
        let mut words = self.peer.words.clone();
        (0..count).for_each(|index| self.change_word(index, &mut words));
        words
    }

    /// What a message does to the words.
    pub fn change_word(&self, index: usize, words: &mut [u64]) {
        if let Some(Atomic { word, after, .. }) = self.peer.atomics[index] {
            words[word] = after;
        }
    }

    /// What goes with a message that nothing is wrong with.
    pub fn attachment(&self, index: usize) -> Attachment {
        let message = self.message(index);
        match message.extra {
            Extra::Nothing => Attachment::Nothing,
            Extra::Imm(imm) => Attachment::Imm(Imm(imm)),
            Extra::Invalidate => self.peer.lent.map_or(Attachment::Nothing, Attachment::Invalidate),
            Extra::Metadata(_) => {
                message.metadata().map_or(Attachment::Nothing, Attachment::Metadata)
            }
        }
    }

    /// Whether these bytes may be the first that a read brought.
    ///
    /// Of what its flow writes, all that was posted before it is there. What was posted behind may
    /// be, too, up to the first request that waits for it.
    pub fn may_bring(&self, index: usize, bytes: &[u8]) -> Check {
        self.may_bring_at(index, 0, bytes)
    }

    /// Whether these bytes may be what a read brought from a place on.
    fn may_bring_at(&self, index: usize, offset: usize, bytes: &[u8]) -> Check {
        let What::Read { from, at } = self.message(index).what else { return Ok(()) };
        let at = at + offset;
        let range = at..at + bytes.len();
        if from == Store::Library {
            let good = bytes == &self.peer.library[range];
            ensure!(good, "read {index} brought other bytes than it was to read");
            return Ok(());
        }
        let mut old = self.peer.target[range].to_vec();
        for before in 0..index {
            self.overlay(before, at, &mut old);
        }
        let behind = index + 1..self.posted;
        let fence = behind.clone().find(|&other| self.message(other).fenced);
        let mut explained: Vec<bool> = old.iter().zip(bytes).map(|(old, new)| old == new).collect();
        for other in behind.start..fence.unwrap_or(behind.end) {
            if explained.iter().all(|&explained| explained) {
                break;
            }
            let mut new = old.clone();
            self.overlay(other, at, &mut new);
            for (explained, (new, now)) in explained.iter_mut().zip(new.iter().zip(bytes)) {
                *explained |= new == now;
            }
        }
        match explained.iter().position(|explained| !explained) {
            None => Ok(()),
            Some(offset) => Err(format!(
                "read {index} brought {:#04x} at {offset}, where {:#04x} was written before, and \
                 nothing else behind that it may see",
                bytes[offset], old[offset]
            )),
        }
    }

    /// What a message writes to some bytes of the target, from `at` on.
    fn overlay(&self, index: usize, at: usize, bytes: &mut [u8]) {
        let message = self.message(index);
        let Some(to) = message.writes_to() else { return };
        let (start, end) = (to.max(at), (to + message.len).min(at + bytes.len()));
        if start < end {
            bytes[start - at..end - at].copy_from_slice(&self.content(index)[start - to..end - to]);
        }
    }

    /// Looks whether what a read brought is in the memory that it named.
    pub fn bring(&self, index: usize, fetched: &mut Image) -> Check {
        if !self.message(index).reads() {
            return Ok(());
        }
        let pieces = &self.sources[index];
        let (now, _) = fetched.gather(pieces);
        if now.len() < self.message(index).len {
            // A buffer came back with the completion, if one came.
            return Ok(());
        }
        self.may_bring(index, &now)?;
        fetched.expect(pieces, &now);
        Ok(())
    }

    /// At the end: of a read that did not complete, any packets may have come, where each may come
    /// before another.
    fn bring_packets(&self, index: usize, fetched: &mut Image) -> Check {
        let message = self.message(index);
        if !message.reads() || matches!(message.source, Kind::None | Kind::Buf) {
            return Ok(());
        }
        let pieces = &self.sources[index];
        let (now, old) = fetched.gather(pieces);
        for at in (0..now.len()).step_by(self.mtu.bytes()) {
            let packet = at..(at + self.mtu.bytes()).min(now.len());
            let brought = now[packet.clone()] == old[packet.clone()]
                || message.wrong.is_some()
                || self.may_bring_at(index, at, &now[packet]).is_ok();
            ensure!(brought, "read {index} failed, and left something else than packets at {at}");
        }
        fetched.expect(pieces, &now);
        Ok(())
    }

    /// At the end: of a read that did not complete, whole packets may have come, and nothing else.
    /// Answers come in order, so it can only be the first that failed.
    pub fn bring_part(&self, fetched: &mut Image) -> Check {
        let Some((first, _)) = self.failed else { return Ok(()) };
        if self.selective {
            return (first..self.posted).try_for_each(|index| self.bring_packets(index, fetched));
        }
        let (index, message) = (first, self.message(first));
        if !message.reads() || matches!(message.source, Kind::None | Kind::Buf) {
            return Ok(());
        }
        let pieces = &self.sources[index];
        let (now, old) = fetched.gather(pieces);
        // It is asked for in parts, of which the first may lie within what the key was given for.
        if let Some(Wrong::Remote(BadKey::Beyond(_))) = message.wrong {
            fetched.expect(pieces, &now);
            return Ok(());
        }
        let mtu = self.mtu.bytes();
        let part = (0..message.packets(self.mtu))
            .map(|packets| packets * mtu)
            .find(|&len| now[len..] == old[len..] && self.may_bring(index, &now[..len]).is_ok());
        ensure!(part.is_some(), "read {index} failed, and left something else than whole packets");
        fetched.expect(pieces, &now);
        Ok(())
    }
}
