//! The beginning of a round, and what is taken down after it.

use doorbell::memory::Buf;
use doorbell::nic::{
    Cause, Change, Connection, KeyError, LONGEST_MESSAGE, Lkey, Memory, PostError, ReceiveRequest,
    Rights, Segment, Sending, State, WorkRequest,
};
use doorbell::wire::{Pkey, Psn, RemoteAddr, Rkey};

use super::super::dice;
use super::super::memory::{Image, Plan};
use super::super::model::{Check, Expected, Flow, OLD, ensure, key_error};
use super::super::program::{BadKey, Kind, Message, Revoked, Round, Wrong};
use super::{Images, Run};

impl Run<'_> {
    /// Lays out memory for all messages, and registers it.
    pub(super) fn prepare(&mut self, round: &Round) -> Check {
        self.flows.clear();
        for (pair, streams) in round.streams.iter().enumerate() {
            let salts = [self.dice.u64(), self.dice.u64()];
            let flow = |end: usize| Flow::new(&streams[end], self.end(pair, end).mtu, salts[end]);
            let mut flows = [flow(0), flow(1)];
            for end in [0, 1] {
                let node = self.end(pair, end).node;
                let mut source = Plan::new(self.dice.u64());
                let [ours, theirs] = [end, 1 - end];
                for index in 0..flows[ours].stream.messages.len() {
                    let (content, message) =
                        (flows[ours].content(index), flows[ours].message(index));
                    let pieces = source.place(message.source, message.len);
                    source.put(&pieces, &content);
                    flows[ours].sources.push(pieces);
                }
                let mut landing = Plan::new(self.dice.u64());
                for receive in 0..flows[theirs].receives() {
                    let (kind, room) = flows[theirs].landing(receive);
                    flows[theirs].landings.push(landing.place(kind, room));
                }
                let target = dice::bytes(self.dice.u64(), flows[theirs].stream.target.max(1));
                let (nic, domain) = (self.fabric.nic(node), self.domains[node]);
                let source = source.register(nic, domain, Rights::NONE);
                let landing = landing.register(nic, domain, Rights::LOCAL_WRITE);
                let rights = Rights::REMOTE_WRITE;
                let target = Image::new(nic, domain, rights, target);
                self.sides[pair][end].memory = Some(Images { source, target, landing });
            }
            self.flows.push(flows);
        }
        for (pair, end) in self.every_end() {
            self.expect_wrong(pair, end);
        }
        Ok(())
    }

    /// Finds out what the wrong message of a stream, if there is one, must lead to.
    fn expect_wrong(&mut self, pair: usize, end: usize) {
        let flow = &self.flows[pair][end];
        let found = flow.stream.messages.iter().position(|message| message.wrong.is_some());
        let Some(index) = found else { return };
        let message = flow.message(index);
        let (sender, receiver, packets) = match message.wrong.expect("it was found") {
            Wrong::Source(bad) => {
                let (segment, lkey) = self.spoilt(&self.source(pair, end, index));
                let why = key_error(bad, lkey);
                (Cause::LocalProtection { segment, why }, None, 0)
            }
            Wrong::Landing(bad) => {
                let receive = flow.takers.iter().position(|taker| *taker == index);
                let memory = self.landing(pair, end, receive.expect("it takes a receive"));
                let (segment, lkey) = self.spoilt(&memory);
                let why = key_error(bad, lkey);
                (Cause::PeerOperation, Some(Cause::LocalProtection { segment, why }), 0)
            }
            Wrong::TooSmall => {
                let receiver = Cause::TooLong { room: message.room as u32 };
                (Cause::PeerInvalidRequest, Some(receiver), message.room / flow.mtu.bytes())
            }
            Wrong::Remote(bad) => {
                let (_, rkey) = self.remote(pair, end, message);
                (Cause::PeerAccess, Some(Cause::Access(key_error(bad, rkey.0))), 0)
            }
            Wrong::NoWrites => {
                let (_, rkey) = self.remote(pair, end, message);
                (Cause::PeerAccess, Some(Cause::Access(KeyError::Rights(rkey.0))), 0)
            }
            Wrong::Mtu => (Cause::PeerInvalidRequest, Some(Cause::InvalidRequest), 0),
        };
        self.flows[pair][end].wrong = Some(Expected { index, sender, receiver, packets });
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
                [&memory.source, &memory.landing].iter().any(|image| {
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

    /// What a message sends, as its request names it.
    pub(super) fn source(&self, pair: usize, end: usize, index: usize) -> Memory {
        let (flow, image) = (&self.flows[pair][end], &self.memory(pair, end).source);
        let message = flow.message(index);
        let mut memory = image.memory(message.source, &flow.sources[index]);
        if let Some(Wrong::Source(bad)) = message.wrong {
            self.spoil(&mut memory, bad, self.end(pair, end).node, image);
        }
        match message.source {
            Kind::Buf => Memory::Buf(Buf::from(flow.content(index))),
            _ => memory,
        }
    }

    /// Where a message is received: the memory of the end that `end` sends to.
    pub(super) fn landing(&self, pair: usize, end: usize, receive: usize) -> Memory {
        let (flow, image) = (&self.flows[pair][end], &self.memory(pair, 1 - end).landing);
        let (kind, room) = flow.landing(receive);
        if kind == Kind::Buf {
            let mut buf = Buf::with_capacity(room);
            buf.extend_from_slice(&OLD[..OLD.len().min(room)]).expect("there is room");
            return Memory::Buf(buf);
        }
        let mut memory = image.memory(kind, &flow.landings[receive]);
        let message = flow.takers.get(receive).map(|&index| flow.message(index));
        if let Some(Wrong::Landing(bad)) = message.and_then(|message| message.wrong) {
            self.spoil(&mut memory, bad, self.end(pair, 1 - end).node, image);
        }
        memory
    }

    fn spoil(&self, memory: &mut Memory, bad: BadKey, node: usize, own: &Image) {
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

    /// Where a write goes, and by which key.
    pub(super) fn remote(&self, pair: usize, end: usize, message: &Message) -> (RemoteAddr, Rkey) {
        let (peer, own) = (self.end(pair, 1 - end), &self.memory(pair, 1 - end).target);
        if let Some(Wrong::Remote(bad)) = message.wrong {
            let (rkey, address) = self.traps[peer.node].remote(bad, own, message.len);
            return (RemoteAddr(address), Rkey(rkey));
        }
        let to = own.registration;
        (RemoteAddr(to.address.0 + message.write.unwrap_or(0) as u64), to.rkey)
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
            let connection = Connection {
                peer: self.sides[pair][1 - end].qpn,
                path: self.fabric.path(own.node, peer.node),
                mtu: own.mtu,
                expected: Psn::new(peer.first + spacing),
                not_ready: own.not_ready,
                ack_every: own.ack_every,
                ack_delay: own.ack_delay,
                credits: own.credits,
            };
            self.change(pair, end, Change::ReadyToReceive(Box::new(connection)))?;
            self.enter(pair, end, State::ReadyToReceive)?;
            let sending = Sending {
                first: Psn::new(own.first + spacing),
                window: own.window,
                timeout: own.timeout,
                retries: own.retries,
                rnr_retries: own.rnr_retries,
                ask_each: own.ask_each,
                peer_delay: peer.ack_delay,
            };
            self.change(pair, end, Change::ReadyToSend(sending))?;
            self.enter(pair, end, State::ReadyToSend)?;
            self.refuses_long(pair, end)?;
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

    /// A message that is too long is not posted.
    fn refuses_long(&mut self, pair: usize, end: usize) -> Check {
        let len = LONGEST_MESSAGE + 1;
        let segment = Segment { address: 0, len, lkey: Lkey(0) };
        let request = WorkRequest::send(7, Memory::Segment(segment));
        let why = self.ends(pair, end).send.post(request).err().map(|refused| refused.why);
        ensure!(why == Some(PostError::TooLong { len: u64::from(len) }), "refused with {why:?}");
        self.coverage.refused(&PostError::TooLong { len: u64::from(len) });
        Ok(())
    }

    /// Takes down what a round made.
    pub(super) fn forget(&mut self, dropped: bool) -> Check {
        for (pair, end) in self.every_end() {
            let node = self.end(pair, end).node;
            let memory = self.sides[pair][end].memory.take().expect("memory during a round");
            let revoked = self.sides[pair][end].revoked.take().map(|(what, _)| what);
            for what in [Revoked::Source, Revoked::Target, Revoked::Landing] {
                let lkey = memory.image(what).registration.lkey;
                let taken = self.fabric.nic(node).deregister(lkey);
                ensure!(taken.is_err() == (revoked == Some(what)), "{what:?}: {:?}", taken.err());
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
