//! The beginning of a round, and what is taken down after it.

use doorbell_core::memory::Buf;
use doorbell_core::nic::{
    Change, Data, LONGEST_MESSAGE, Lkey, Memory, PostError, ReceiveRequest, Rights, Segment, State,
    WorkRequest,
};
use doorbell_core::wire::{Imm, Metadata, Pkey, Psn, RemoteAddr, Rkey};

use super::super::dice;
use super::super::memory::{Image, Images, Plan};
use super::super::message::{Stream, WORDS};
use super::super::model::{Check, Flow, OLD, ensure};
use super::super::program::{Revoked, Round};
use super::Run;

impl Run<'_> {
    /// Lays out memory for all messages, and registers it.
    pub(super) fn prepare(&mut self, round: &Round) -> Check {
        self.flows.clear();
        for (pair, streams) in round.streams.iter().enumerate() {
            let salts = [self.dice.u64(), self.dice.u64()];
            let flow = |end: usize| {
                let own = self.end(pair, end);
                let mut flow = Flow::new(&streams[end], own.mtu, salts[end]);
                flow.selective = own.selective;
                flow
            };
            let mut flows = [flow(0), flow(1)];
            for end in [0, 1] {
                let node = self.end(pair, end).node;
                let [ours, theirs] = [end, 1 - end];
                let mut source = Plan::new(self.dice.u64());
                let mut fetched = Plan::new(self.dice.u64());
                for index in 0..flows[ours].stream.messages.len() {
                    let (content, message) =
                        (flows[ours].content(index), flows[ours].message(index));
                    let pieces = if message.reads() {
                        fetched.place(message.source, message.len)
                    } else {
                        let pieces = source.place(message.source, message.len);
                        source.put(&pieces, content);
                        pieces
                    };
                    flows[ours].sources.push(pieces);
                }
                let mut landing = Plan::new(self.dice.u64());
                for receive in 0..flows[theirs].receives() {
                    let (kind, room) = flows[theirs].landing(receive);
                    flows[theirs].landings.push(landing.place(kind, room));
                }
                let Stream { target, library, .. } = flows[theirs].stream;
                let lens = [target.max(1), library.max(1), (WORDS + 1) * 8];
                let [target, library, words] = lens.map(|len| dice::bytes(self.dice.u64(), len));
                let (nic, domain) = (self.fabric.nic(node), self.domains[node]);
                let both = Rights::REMOTE_WRITE | Rights::REMOTE_READ;
                let target = Image::new(nic, domain, both, target);
                let lent = both | Rights::REMOTE_INVALIDATE;
                let lent = nic.register(domain, target.region.clone(), lent);
                let images = Images {
                    source: source.register(nic, domain, Rights::NONE),
                    fetched: fetched.register(nic, domain, Rights::LOCAL_WRITE),
                    landing: landing.register(nic, domain, Rights::LOCAL_WRITE),
                    target,
                    lent: lent.expect("a large table"),
                    library: Image::new(nic, domain, Rights::REMOTE_READ, library),
                    words: Image::new(nic, domain, Rights::REMOTE_ATOMIC, words),
                };
                flows[theirs].meet(&images);
                self.sides[pair][end].memory = Some(images);
            }
            self.flows.push(flows);
        }
        for (pair, end) in self.every_end() {
            self.expect_wrong(pair, end);
        }
        self.map_all()
    }

    /// Takes every queue pair to sending, and looks whether it refuses what it must on the way.
    pub(super) fn connect(&mut self, round: usize) -> Check {
        let spacing = 0x80_0000 * round as u32;
        for (pair, end) in self.every_end() {
            let (own, peer) = (self.end(pair, end), self.end(pair, 1 - end));
            self.enter(pair, end, State::Reset)?;
            self.refuses(pair, end)?;
            let init = Change::Init { rights: own.rights, pkey: Pkey::DEFAULT };
            self.change(pair, end, init)?;
            self.enter(pair, end, State::Init)?;
            let into = &mut self.flows[pair][1 - end];
            into.receives_wanted = into.stream.early.min(into.receives());
            self.post_receives(pair, end)?;
            let (path, qpn) =
                (self.fabric.path(own.node, peer.node), self.sides[pair][1 - end].qpn);
            let connection = own.connection(peer, qpn, path, Psn::new(peer.first + spacing));
            self.change(pair, end, Change::ReadyToReceive(Box::new(connection)))?;
            self.enter(pair, end, State::ReadyToReceive)?;
            let sending = own.sending(peer, Psn::new(own.first + spacing));
            self.change(pair, end, Change::ReadyToSend(sending))?;
            self.enter(pair, end, State::ReadyToSend)?;
            self.refuses_bad(pair, end)?;
        }
        Ok(())
    }

    /// In the reset state nothing can be posted, and never a message that is too long.
    fn refuses(&mut self, pair: usize, end: usize) -> Check {
        let ends = self.ends(pair, end);
        let send = ends.send.post(WorkRequest::send(7, Memory::None));
        let receive = ends.receive.post(ReceiveRequest { id: 7, memory: Memory::None });
        let (Err(send), Err(receive)) = (send, receive) else {
            return Err("posted in the reset state".into());
        };
        for why in [send.why, receive.why] {
            ensure!(matches!(why, PostError::State { .. }), "refused with {why}");
            self.coverage.refused(&why);
        }
        Ok(())
    }

    /// A message that is too long is not posted, nor one whose parts do not go together.
    fn refuses_bad(&mut self, pair: usize, end: usize) -> Check {
        let len = LONGEST_MESSAGE + 1;
        let long = Memory::Segment(Segment { address: 0, len, lkey: Lkey(0) });
        let mut swap = WorkRequest::compare_swap(7, RemoteAddr(0), Rkey(0), 0, 0);
        swap.data = Data::Memory(Memory::Buf(Buf::from(OLD)));
        let read = || WorkRequest::read(7, RemoteAddr(0), Rkey(0), Memory::None);
        let write = || WorkRequest::write(7, RemoteAddr(0), Rkey(0), Memory::None);
        let too_long = |request| (request, PostError::TooLong { len: u64::from(len) });
        let qpn = self.sides[pair][end].qpn;
        let unfit = |request, operation| (request, PostError::Unfit { qpn, operation });
        let metadata = Metadata::new(&[]).expect("no bytes are few enough");
        let refused = [
            too_long(WorkRequest::send(7, long)),
            unfit(write().with_invalidate(Rkey(0)), "a write"),
            unfit(WorkRequest::send(7, Memory::None).with_metadata(metadata), "a send"),
            unfit(read().with_imm(Imm(0)), "a read"),
            unfit(swap, "a compare-and-swap"),
        ];
        for (request, expected) in refused {
            let refused = self.ends(pair, end).send.post(request).err();
            let why = refused.map(|refused| refused.why);
            ensure!(why == Some(expected), "refused with {why:?}, not {expected:?}");
            self.coverage.refused(&expected);
        }
        Ok(())
    }

    /// Takes down what a round made.
    pub(super) fn forget(&mut self, dropped: bool) -> Check {
        for (pair, end) in self.every_end() {
            self.unmap(pair, end)?;
            let node = self.end(pair, end).node;
            let memory = self.sides[pair][end].memory.take().expect("memory during a round");
            let revoked = self.sides[pair][end].revoked.take().map(|(what, _)| what);
            for what in Revoked::ALL {
                for registration in memory.registrations(what) {
                    let taken = self.fabric.nic(node).deregister(registration.lkey).err();
                    ensure!(taken.is_some() == (revoked == Some(what)), "{what:?}: {taken:?}");
                }
            }
            let side = &mut self.sides[pair][end];
            (side.broken, side.told, side.drained) = (None, false, None);
            if !dropped {
                self.reset(pair, end)?;
                self.enter(pair, end, State::Reset)?;
            }
        }
        Ok(())
    }

    /// Resets a queue pair, or makes another for one that was taken down.
    fn reset(&mut self, pair: usize, end: usize) -> Check {
        let own = self.end(pair, end);
        let Some(ends) = &mut self.sides[pair][end].ends else {
            self.sides[pair][end] = self.side(own);
            return Ok(());
        };
        let reset = self.fabric.nic(own.node).reset(&mut ends.send, &mut ends.receive);
        reset.map_err(|why| format!("end {end} of pair {pair}: {why}"))
    }
}
