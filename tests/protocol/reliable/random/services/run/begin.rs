//! The beginning of a round.

use doorbell_core::nic::{
    Cause, Change, Memory, Operation, PostError, ReceiveRequest, Rights, State, Transport,
    WorkRequest,
};
use doorbell_core::wire::{Pkey, Psn, Qkey, RemoteAddr, Rkey};

use super::super::super::memory::Plan;
use super::super::super::message::Kind;
use super::super::super::model::{Check, ensure};
use super::super::super::traps::complaint;
use super::super::message::{Place, What, Wrong};
use super::super::model::Flow;
use super::super::program::Round;
use super::{Images, Run};

impl Run<'_> {
    /// Lays out memory for all messages, and registers it.
    pub(super) fn prepare(&mut self, round: &Round) {
        let ends = round.streams.iter().zip(&self.program.pairs);
        let flows = ends.map(|(streams, pair)| {
            [0, 1].map(|end| Flow::new(&streams[end], pair.transport, pair.ends[end].own.mtu))
        });
        self.flows = flows.collect();
        for (pair, end) in self.every_end() {
            let [mut source, mut target] = [0; 2].map(|_| Plan::new(self.dice.u64()));
            let [a, b] = &mut self.flows[pair];
            let (ours, theirs) = if end == 0 { (a, b) } else { (b, a) };
            for index in 0..ours.messages.len() {
                let message = &ours.messages[index];
                let pieces = source.place(message.source, message.len);
                source.put(&pieces, ours.content(index));
                ours.sources.push(pieces);
            }
            for message in &theirs.messages {
                let kind = if message.what == What::Write { Kind::Segment } else { Kind::None };
                theirs.targets.push(target.place(kind, message.len));
            }
            let node = self.node((pair, end));
            let (nic, domain) = (self.fabric.nic(node), self.domains[node]);
            self.sides[pair][end].memory = Some(Images {
                source: source.register(nic, domain, Rights::NONE),
                target: target.register(nic, domain, Rights::REMOTE_WRITE),
            });
        }
        for place in self.every_end() {
            let count = self.flow(place).messages.len();
            let breaks = (0..count).find_map(|index| Some((index, self.breaks(place, index)?)));
            self.flow(place).breaks = breaks;
        }
    }

    /// How a message breaks its sender, if it is to.
    fn breaks(&mut self, place: Place, index: usize) -> Option<Cause> {
        let message = &self.flow(place).messages[index];
        let len = message.len as u32;
        match message.wrong? {
            Wrong::Source(bad) => {
                let (segment, why) = complaint(bad, &self.source(place, index));
                Some(Cause::LocalProtection { segment, why })
            }
            Wrong::Long => {
                let most = self.end(place).own.mtu.bytes() as u16;
                Some(Cause::LongDatagram { len, most })
            }
            Wrong::NoAddress => Some(Cause::NoAddress),
            Wrong::Remote(_) | Wrong::NotGranted | Wrong::Qkey | Wrong::Nobody => None,
        }
    }

    /// Takes every queue pair to receiving, and those that are not late to sending.
    pub(super) fn connect(&mut self, round: usize) -> Check {
        self.round = round;
        for (supply, drawn) in self.supplies.iter_mut().zip(&self.program.supplies) {
            supply.wanted = supply.posted;
            if self.program.ample {
                // What is left of a shared queue from before is good still.
                supply.want(drawn.depth - supply.waiting());
            }
        }
        for place in self.every_end() {
            self.enter(place, State::Reset)?;
            let init = Change::Init { rights: self.end(place).own.rights, pkey: Pkey::DEFAULT };
            self.change(place, init)?;
            self.enter(place, State::Init)?;
            let change = self.receiving(place);
            self.change(place, change)?;
            self.enter(place, State::ReadyToReceive)?;
        }
        self.post_all()?;
        for place in self.every_end() {
            if !self.end(place).late {
                self.speak(place)?;
            }
        }
        Ok(())
    }

    /// The numbers of a round's packets are far from those of the one before.
    fn first(&self, place: Place) -> Psn {
        Psn::new(self.end(place).own.first + 0x80_0000 * self.round as u32)
    }

    fn receiving(&self, place @ (pair, end): Place) -> Change {
        let (own, peer) = (self.end(place), (pair, 1 - end));
        if self.transport(place) == Transport::Datagram {
            return Change::ReadyForDatagrams { qkey: own.qkey, mtu: own.own.mtu };
        }
        let path = self.fabric.path(own.own.node, self.node(peer));
        let qpn = self.sides[pair][1 - end].qpn;
        Change::ReadyToReceive(Box::new(own.own.connection(
            &self.end(peer).own,
            qpn,
            path,
            self.first(peer),
        )))
    }

    /// Makes an end ready to send, if it is not.
    pub(super) fn speak(&mut self, place @ (pair, end): Place) -> Check {
        if self.on(place).state != State::ReadyToReceive {
            return Ok(());
        }
        let (own, peer) = (self.end(place), self.end((pair, 1 - end)));
        let sending = own.own.sending(&peer.own, self.first(place));
        self.change(place, Change::ReadyToSend(sending))?;
        self.enter(place, State::ReadyToSend)?;
        self.refuses_unfit(place)?;
        self.turn(own.own.node)
    }

    /// What a service does not have is not posted, nor a receive to one that shares its queue.
    fn refuses_unfit(&mut self, place: Place) -> Check {
        let (qpn, transport) = (self.on(place).qpn, self.transport(place));
        let (address, rkey) = (RemoteAddr(0), Rkey(0));
        let send = || WorkRequest::send(7, Memory::None);
        let datagram = Operation::Datagram { to: self.dropped[0], qpn, qkey: Qkey(0) };
        let unfit = match transport {
            Transport::Reliable => vec![WorkRequest { operation: datagram, ..send() }],
            Transport::Unreliable => vec![
                WorkRequest::read(7, address, rkey, Memory::None),
                WorkRequest::fetch_add(7, address, rkey, 1),
                send().with_invalidate(rkey),
            ],
            Transport::Datagram => vec![send(), WorkRequest::write(7, address, rkey, Memory::None)],
        };
        let ends = &mut self.on(place).ends;
        let unfit = unfit.into_iter().map(|request| ends.send.post(request).err());
        let mut refused: Vec<_> = unfit.map(|found| found.map(|found| found.why)).collect();
        ensure!(
            refused.iter().all(|why| matches!(why, Some(PostError::Unfit { .. }))),
            "what {transport:?} has not: {refused:?}"
        );
        if self.program.supplies[self.end(place).supply].shared {
            let receive = ReceiveRequest { id: 7, memory: Memory::None };
            let why = self.on(place).ends.receive.post(receive).err().map(|found| found.why);
            ensure!(why == Some(PostError::Shared { qpn }), "a receive of its own: {why:?}");
            refused.push(why);
        }
        refused.iter().flatten().for_each(|why| self.coverage.refused(why));
        Ok(())
    }
}
