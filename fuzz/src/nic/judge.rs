//! What a packet may do, and what it has done.

use doorbell_core::nic::{Attachment, Counters, Done, Rights, State};
use doorbell_core::wire::{
    AtomicEth, Extensions, Headers, Ipv6, OpcodeInfo, Operation, RemoteAddr, Reth, Service,
};

use super::ledger::Message;
use super::lines::Sought;
use super::memory::Word;
use super::packets::Within;
use super::paths::MTU;
use super::world::World;

/// A packet that arrived, with the network header that a datagram's receive must hold.
pub struct Arrived<'a> {
    pub headers: Headers,
    pub payload: &'a [u8],
    pub network: [u8; Ipv6::LEN],
}

/// The state before a packet came: the NIC's counters, and the word that the packet changes.
pub struct Before {
    pub counters: Counters,
    pub state: Option<State>,
    /// The word that an atomic operation of the packet names.
    pub word: Option<Word>,
    /// Whether packets were kept that may be carried out behind the packet.
    pub held: bool,
}

/// The number of packets that the NIC has dropped or refused.
pub fn refused(c: &Counters) -> u64 {
    passed_over(c) + c.out_of_sequence + c.rnr_naks_sent + c.fatal_naks_sent
}

/// The number of packets that the NIC has dropped, but for those that an unreliable connection may
/// have taken: of a message that began after a gap.
fn passed_over(c: &Counters) -> u64 {
    c.malformed
        + c.no_such_queue_pair
        + c.strangers
        + c.other_partition
        + c.wrong_service
        + c.wrong_state
        + c.duplicates
        + c.passed_over
        + c.wrong_qkey
        + c.management
        + c.management_dropped
        + c.notifications_received
}

impl World {
    /// Notes a packet that is about to be given to the NIC, for a queue pair.
    pub(super) fn expect(&mut self, index: usize, arrived: &Arrived<'_>) -> Before {
        let (domain, psn) = (self.pairs[index].domain, arrived.headers.bth.psn());
        if arrived.headers.bth.opcode().info().is_response() {
            self.port.lines[index].answered(psn);
        }
        let mut word = None;
        match arrived.headers.extensions {
            // A read that comes again is answered again, with what the memory holds then.
            Extensions::Reth(reth)
                if arrived.headers.bth.opcode().info().operation == Operation::ReadRequest =>
            {
                self.port.lines[index].sought.push(Sought { psn, domain, reth });
            }
            Extensions::Atomic(AtomicEth { address, rkey, .. }) => {
                word = self.port.memory.word(domain, (rkey, address)).map(Word::Known);
            }
            _ => {}
        }
        self.forget_held();
        let held = !self.port.lines[index].held.is_empty();
        let state = self.pairs[index].qpn.and_then(|qpn| self.nic.state(qpn));
        Before { counters: *self.nic.counters(), state, word, held }
    }

    /// Returns whether the NIC has taken a request. If so, asserts that the request was the
    /// expected one, and that its effect was allowed.
    pub(super) fn judge(&mut self, index: usize, arrived: &Arrived<'_>, before: &Before) -> bool {
        let (bth, after) = (&arrived.headers.bth, *self.nic.counters());
        let info = bth.opcode().info();
        if info.is_response() {
            return false;
        }
        if self.port.lines[index].selective {
            return self.judge_selective(index, arrived, before);
        }
        let (pair, line) = (&mut self.pairs[index], &mut self.port.lines[index]);
        let gap = after.out_of_sequence > before.counters.out_of_sequence;
        let taken = match pair.service {
            Service::Uc if gap && !info.begins() => {
                pair.within = Within::Nothing;
                false
            }
            Service::Uc => passed_over(&after) == passed_over(&before.counters),
            _ => refused(&after) == refused(&before.counters),
        };
        match pair.service {
            Service::Ud => {}
            Service::Uc if gap && info.begins() => {
                // A sequence number from further behind counts as one ahead, after a long gap.
                let ahead = bth.psn().distance_from(line.expected);
                assert!(!(-4096..=0).contains(&ahead), "a late copy was taken");
                (line.expected, pair.within) = (bth.psn(), Within::Nothing);
            }
            _ => assert!(!taken || bth.psn() == line.expected, "out of its turn"),
        }
        // A message that was begun is dropped along with the packet.
        if after.passed_over > before.counters.passed_over && pair.service == Service::Uc {
            line.expected = bth.psn().add(1);
            pair.within = Within::Nothing;
        }
        let missed = after.sequence_naks_sent > before.counters.sequence_naks_sent;
        assert!(!missed || !pair.refused, "a gap was refused before");
        pair.refused |= missed || after.rnr_naks_sent > before.counters.rnr_naks_sent;
        if taken {
            pair.refused = false;
            assert_eq!(info.service, pair.service);
            self.took(index, arrived, before);
        }
        taken
    }

    /// Notes the effect of a request that the NIC has taken, and asserts that it was allowed.
    pub(super) fn took(&mut self, index: usize, arrived: &Arrived<'_>, before: &Before) {
        let opcode = arrived.headers.bth.opcode();
        let info = opcode.info();
        let pair = &mut self.pairs[index];
        let line = &mut self.port.lines[index];
        line.expected = line.expected.add(1);
        match info.operation {
            Operation::Send => self.took_send(index, arrived, info),
            Operation::Write => self.took_write(index, arrived, info),
            Operation::ReadRequest => {
                let Extensions::Reth(reth) = arrived.headers.extensions else { panic!("no read") };
                let Reth { address, rkey, length } = reth;
                let (domain, len) = (pair.domain, length.0 as usize);
                assert!(pair.rights.include(Rights::REMOTE_READ) && pair.reads > 0);
                let place = (rkey, address);
                let allowed = self.port.memory.allows(domain, Rights::REMOTE_READ, place, len);
                assert!(len == 0 || allowed, "a read that nobody allowed");
                line.expected = line.expected.add(MTU.packets(length.0) - 1);
            }
            Operation::CompareSwap | Operation::FetchAdd => {
                let Extensions::Atomic(atomic) = arrived.headers.extensions else {
                    panic!("no operation")
                };
                assert!(pair.rights.include(Rights::REMOTE_ATOMIC) && pair.reads > 0);
                let word = before.word.expect("a whole word that was allowed");
                self.port.memory.replace(pair.domain, opcode, atomic, word, !before.held);
                let psn = arrived.headers.bth.psn();
                self.port.lines[index].found.push((psn, word));
            }
            _ => panic!("{opcode:?} was taken"),
        }
    }

    fn took_send(&mut self, index: usize, arrived: &Arrived<'_>, info: &OpcodeInfo) {
        let pair = &mut self.pairs[index];
        let (mut done, mut attached) = (Done::Received, Attachment::Nothing);
        match arrived.headers.extensions {
            Extensions::Imm(imm) => attached = Attachment::Imm(imm),
            Extensions::Ieth(rkey) => attached = Attachment::Invalidate(rkey),
            Extensions::Deth(deth) => done = Done::ReceivedDatagram { source: deth.source },
            Extensions::DethImm(deth, imm) => {
                done = Done::ReceivedDatagram { source: deth.source };
                attached = Attachment::Imm(imm);
            }
            _ => {}
        }
        if info.begins() {
            assert!(matches!(pair.within, Within::Nothing), "a message within another");
            let receives = self.ledger.receives(index, pair.shares);
            assert!(receives > 0, "a message that there was no receive for");
            pair.message.clear();
            if pair.service == Service::Ud {
                pair.message.extend(arrived.network);
            }
        } else {
            assert!(matches!(pair.within, Within::Send), "what was not begun goes on");
        }
        pair.within = if info.ends() { Within::Nothing } else { Within::Send };
        pair.message.extend(arrived.payload);
        if let Attachment::Invalidate(rkey) = attached {
            self.port.memory.invalidate(pair.domain, rkey);
        }
        if info.ends() {
            let bytes = std::mem::take(&mut pair.message);
            let len = bytes.len() as u32;
            let message = Message { done, attached, len, bytes };
            self.ledger.arrived(index, pair.shares, pair.number(), message);
        }
    }

    fn took_write(&mut self, index: usize, arrived: &Arrived<'_>, info: &OpcodeInfo) {
        let pair = &mut self.pairs[index];
        let extensions = arrived.headers.extensions;
        let attached = match extensions {
            Extensions::RethImm(_, imm) | Extensions::Imm(imm) => Attachment::Imm(imm),
            Extensions::RethMetadata(_, data) | Extensions::Metadata(data) => {
                assert!(pair.metadata, "metadata that was not offered");
                Attachment::Metadata(data)
            }
            _ => Attachment::Nothing,
        };
        let (memory, len) = (&mut self.port.memory, arrived.payload.len() as u32);
        let write = match extensions {
            Extensions::Reth(reth)
            | Extensions::RethImm(reth, _)
            | Extensions::RethMetadata(reth, _) => {
                let Reth { address, rkey, length } = reth;
                assert!(matches!(pair.within, Within::Nothing), "a message within another");
                assert!(pair.rights.include(Rights::REMOTE_WRITE));
                let (right, whole) = (Rights::REMOTE_WRITE, length.0 as usize);
                let allowed = memory.allows(pair.domain, right, (rkey, address), whole);
                assert!(whole == 0 || allowed, "a write that nobody allowed");
                (address, rkey, length.0, length.0)
            }
            _ => match pair.within {
                Within::Write { address, rkey, left, total } => (address, rkey, left, total),
                _ => panic!("what was not begun goes on"),
            },
        };
        let (address, rkey, left, total) = write;
        assert!(if info.ends() { len == left } else { len < left }, "another length");
        if len > 0 {
            memory.write(pair.domain, (rkey, address), arrived.payload);
        }
        let address = RemoteAddr(address.0.wrapping_add(len.into()));
        pair.within = match info.ends() {
            true => Within::Nothing,
            false => Within::Write { address, rkey, left: left - len, total },
        };
        if attached != Attachment::Nothing {
            let (done, bytes) = (Done::ReceivedWrite, Vec::new());
            let message = Message { done, attached, len: total, bytes };
            self.ledger.arrived(index, pair.shares, pair.number(), message);
        }
    }
}
