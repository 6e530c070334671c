//! What programs do, and what they hear of it.

use std::time::Duration;

use doorbell::memory::Buf;
use doorbell::nic::{
    Attachment, Change, Completion, Data, Done, Failure, Inline, Memory, Operation, PostError,
    ReceiveRequest, Rights, Segment, State, WorkRequest,
};
use doorbell::wire::{Imm, Qkey, Qpn, RemoteAddr};

use super::super::super::memory::Own;
use super::super::super::message::Kind;
use super::super::super::model::{Check, ensure};
use super::super::message::{Place, What, Wrong};
use super::super::program::Op;
use super::super::supply::Receive;
use super::{Posted, Run};

/// The segments of a request's memory.
pub(super) fn segments(memory: &Memory) -> &[Segment] {
    match memory {
        Memory::Segment(segment) => std::slice::from_ref(segment),
        Memory::List(list) => list,
        Memory::None | Memory::Buf(_) => &[],
    }
}

impl Run<'_> {
    pub(super) fn op(&mut self, op: Op) -> Check {
        match op {
            Op::Send { pair, end, count } => {
                let flow = self.flow((pair, end));
                flow.wanted = (flow.wanted + count).min(flow.messages.len());
            }
            Op::Receive { supply, count } => self.supplies[supply].want(count),
            Op::Poll { queue, most } => {
                self.poll(queue, most)?;
            }
            Op::Wait { nanos } => self.pass(Duration::from_nanos(nanos))?,
            Op::Arm { queue, solicited } => {
                while self.poll(queue, usize::MAX)? {}
                self.queues[queue].arm(&mut self.fabric, solicited)?;
            }
            Op::Limit { supply, limit } => self.limit(supply, limit)?,
            Op::Speak { pair, end } => self.speak((pair, end))?,
            Op::Drain { pair, end } => self.drain((pair, end))?,
            Op::Resume { pair, end } => self.resume((pair, end))?,
            Op::Stop { pair, end } => self.tell_to_stop((pair, end))?,
            Op::Silence { node } => {
                let station = self.fabric.station(node);
                self.fabric.network.partition(&[station]);
                self.silent = Some(node);
            }
        }
        self.post_all()
    }

    /// Lets time pass.
    pub(super) fn pass(&mut self, time: Duration) -> Check {
        let until = self.fabric.now() + time;
        while self.step(until)? {}
        Ok(())
    }

    /// Posts what is wanted, as far as there is room.
    pub(super) fn post_all(&mut self) -> Check {
        for supply in 0..self.supplies.len() {
            self.post_receives(supply)?;
        }
        for place in self.every_end() {
            self.post_sends(place)?;
        }
        Ok(())
    }

    fn number(&mut self, posted: Posted) -> u64 {
        self.next += 1;
        self.posted.insert(self.next, posted);
        self.next
    }

    fn post_sends(&mut self, place: Place) -> Check {
        let before = self.flow(place).posted;
        while self.flow(place).posted < self.flow(place).wanted {
            let index = self.flow(place).posted;
            let speaks = self.on(place).state.takes_sends();
            let room = self.on(place).ends.send.room();
            if !speaks || room == 0 && !self.dice.percent(10) {
                break;
            }
            let id = self.number(Posted::Send(place, index));
            let request = self.request(place, index, id);
            match self.on(place).ends.send.post(request) {
                Ok(()) => {
                    ensure!(room > 0, "posted to a full queue");
                    let wrong = self.flow(place).messages[index].wrong;
                    wrong.iter().for_each(|wrong| self.coverage.wrong(wrong));
                    self.flow(place).posted += 1;
                }
                Err(refused) => {
                    let full = matches!(refused.why, PostError::Full { .. });
                    ensure!(room == 0 && full, "with room for {room}: {}", refused.why);
                    self.coverage.refused(&refused.why);
                    self.posted.remove(&id);
                    break;
                }
            }
        }
        if self.flow(place).posted > before {
            self.on(place).ends.send.ring();
            self.turn(self.node(place))?;
        }
        Ok(())
    }

    fn request(&mut self, place: Place, index: usize, id: u64) -> WorkRequest {
        let operation = self.operation(place, index);
        let flow = self.flow(place);
        let message = &flow.messages[index];
        let data = match message.source {
            Kind::None => Data::Inline(Inline::new(flow.content(index)).expect("few bytes")),
            _ => Data::Memory(self.source(place, index)),
        };
        let message = &self.flow(place).messages[index];
        WorkRequest {
            id,
            operation,
            data,
            attached: message.imm.map_or(Attachment::Nothing, |imm| Attachment::Imm(Imm(imm))),
            signalled: message.signalled,
            awaited: message.awaited,
            solicited: message.solicited,
            fenced: false,
        }
    }

    /// What a message sends, as its request names it.
    pub(super) fn source(&self, place @ (pair, end): Place, index: usize) -> Memory {
        let flow = &self.flows[pair][end];
        let message = &flow.messages[index];
        if message.source == Kind::Buf {
            return Memory::Buf(Buf::from(flow.content(index)));
        }
        let memory = self.sides[pair][end].memory.as_ref().expect("memory during a round");
        let image = &memory.source;
        let mut memory = image.memory(message.source, &flow.sources[index]);
        if let Some(Wrong::Source(bad)) = message.wrong {
            let segments = match &mut memory {
                Memory::Segment(segment) => std::slice::from_mut(segment),
                Memory::List(list) => &mut **list,
                Memory::None | Memory::Buf(_) => &mut [],
            };
            let last = segments.iter_mut().rev().find(|segment| segment.len > 0);
            let trap = &self.traps[self.node(place)];
            last.into_iter().for_each(|segment| trap.segment(bad, image.registration, segment));
        }
        memory
    }

    /// What a message does, with its receiver's address and keys.
    fn operation(&mut self, place @ (pair, end): Place, index: usize) -> Operation {
        let message = &self.flows[pair][end].messages[index];
        let (wrong, len) = (message.wrong, message.len);
        match message.what {
            What::Send => Operation::Send,
            What::Write => {
                let peer = (pair, 1 - end);
                let memory = self.sides[peer.0][peer.1].memory.as_ref();
                let registration = memory.expect("memory during a round").target.registration;
                if let Some(Wrong::Remote(bad)) = wrong {
                    let own = Own { registration, len, needed: Rights::REMOTE_WRITE };
                    let (rkey, address) = self.traps[self.node(peer)].remote(bad, &own);
                    return Operation::Write { address, rkey };
                }
                let (at, _) = self.flows[pair][end].targets[index][0];
                let address = RemoteAddr(registration.address.0 + at as u64);
                Operation::Write { address, rkey: registration.rkey }
            }
            What::Datagram(to) => self.datagram(place, to, wrong),
        }
    }

    fn datagram(&mut self, from: Place, named: Place, wrong: Option<Wrong>) -> Operation {
        let (node, there) = (self.node(from), self.node(named));
        let (qpn, Qkey(qkey)) = (self.on(named).qpn, self.end(named).qkey);
        let to = match wrong {
            Some(Wrong::NoAddress) => self.dropped[node],
            _ => self.addresses[&(node, there)],
        };
        let free = |&number: &Qpn| number.get() > 1 && self.find(there, number).is_err();
        let qpn = match wrong {
            Some(Wrong::Nobody) => {
                let others = (1..).map(|by| Qpn::new(qpn.get() ^ by << 8));
                others.into_iter().find(free).expect("few numbers are taken")
            }
            _ => qpn,
        };
        let other = wrong == Some(Wrong::Qkey);
        Operation::Datagram { to, qpn, qkey: Qkey(qkey ^ u32::from(other)) }
    }

    fn post_receives(&mut self, supply: usize) -> Check {
        let owner = self.owner(supply);
        let node = self.program.supplies[supply].node;
        let before = self.supplies[supply].posted;
        while self.supplies[supply].posted < self.supplies[supply].wanted {
            let shared = self.supplies[supply].shared.as_ref().map(|(_, queue)| queue.room());
            let own = owner.map(|place| self.on(place).ends.receive.room());
            // A queue of one's own has nobody left if that one was taken away.
            let Some(room) = shared.or(own) else { break };
            if room == 0 && !self.dice.percent(10) {
                break;
            }
            let posted = self.post_receive(supply, owner)?;
            ensure!(posted == (room > 0), "posted, or not, with room for {room}");
            if !posted {
                break;
            }
        }
        // No doorbell is needed, but a NIC that sleeps is to see it in a turn.
        if self.supplies[supply].posted > before {
            self.turn(node)?;
        }
        Ok(())
    }

    /// Posts a receive. Whether there was room.
    fn post_receive(&mut self, supply: usize, owner: Option<Place>) -> Result<bool, String> {
        let (receive, memory) = self.supplies[supply].draw(supply, &mut self.dice);
        let id = self.number(Posted::Receive(receive.clone()));
        let request = ReceiveRequest { id, memory };
        let refused = match (&mut self.supplies[supply].shared, owner) {
            (Some((_, queue)), _) => queue.post(request).err(),
            (None, Some(place)) => self.on(place).ends.receive.post(request).err(),
            (None, None) => return Ok(false),
        };
        let Some(refused) = refused else {
            self.supplies[supply].entered(&receive);
            return Ok(true);
        };
        let full = matches!(refused.why, PostError::Full { .. } | PostError::SharedFull { .. });
        ensure!(full && refused.request.id == id, "refused with {}", refused.why);
        self.coverage.refused(&refused.why);
        self.posted.remove(&id);
        Ok(false)
    }

    /// The queue pair that a queue belongs to, unless it is shared.
    pub(super) fn owner(&self, supply: usize) -> Option<Place> {
        let shared = self.program.supplies[supply].shared;
        self.every_end().find(|&place| !shared && self.end(place).supply == supply)
    }

    /// Polls a completion queue. Whether anything was there.
    pub(super) fn poll(&mut self, queue: usize, most: usize) -> Result<bool, String> {
        let mut count = 0;
        while count < most {
            let Some(completion) = self.queues[queue].ends.poll() else { break };
            count += 1;
            self.polled[queue] += 1;
            let context = format!("{completion:?}");
            self.completed(queue, &completion).map_err(|why| format!("{why}; by {context}"))?;
        }
        if count < most {
            self.queues[queue].check_events()?;
        }
        if count > 0 {
            // There is room again, which a request may have waited for.
            self.turn(self.queues[queue].node)?;
        }
        Ok(count > 0)
    }

    fn completed(&mut self, queue: usize, completion: &Completion) -> Check {
        let node = self.queues[queue].node;
        let place = self.find(node, completion.qpn)?;
        let failed = completion.outcome.is_err();
        match self.posted.remove(&completion.id).ok_or("of no request that is outstanding")? {
            Posted::Send(from, index) => {
                self.coverage.outcome(completion.outcome, false);
                ensure!(from == place, "posted to {from:?}");
                ensure!(queue == self.end(place).own.send_queue, "in the wrong queue");
                self.queues[queue].notable(failed);
                self.flow(place).sent(index, completion)
            }
            Posted::Receive(receive) => {
                self.coverage.outcome(completion.outcome, true);
                self.coverage.attached(&completion.attached);
                let solicited = self.received(place, queue, &receive, completion)?;
                self.queues[queue].notable(failed || solicited);
                Ok(())
            }
        }
    }

    /// A completion of a receive. Whether its sender asked for an event.
    fn received(
        &mut self,
        place: Place,
        queue: usize,
        receive: &Receive,
        completion: &Completion,
    ) -> Result<bool, String> {
        let end = self.end(place);
        ensure!(receive.supply == end.supply, "from another receive queue");
        ensure!(queue == end.own.receive_queue, "in the wrong queue");
        let (polled, shared) = (self.polled[queue], self.program.supplies[end.supply].shared);
        let side = self.on(place);
        let last = side.last.is_none_or(|last| polled <= last);
        ensure!(last, "though {place:?} was said to have taken its last");
        let before = side.receive.replace(receive.number);
        ensure!(before.is_none_or(|before| before < receive.number), "after receive {before:?}");
        let supply = &mut self.supplies[receive.supply];
        ensure!(shared || receive.number == supply.completed, "of {} of one's own", receive.number);
        let filled =
            matches!(completion.outcome, Ok(Done::Received | Done::ReceivedDatagram { .. }));
        let brought = supply.brought(receive, completion);
        supply.completed(receive, completion, filled)?;
        match completion.outcome {
            Ok(done) => self.arrived(place, done, completion, brought),
            Err(failure) => {
                let broken = self.on(place).broken;
                ensure!(Some(failure) == broken.map(Failure::Flushed), "broken by {broken:?}");
                let plain = completion.len == 0 && completion.attached == Attachment::Nothing;
                ensure!(plain, "flushed with something");
                Ok(false)
            }
        }
    }

    fn limit(&mut self, supply: usize, limit: usize) -> Check {
        let node = self.program.supplies[supply].node;
        if let Some((id, _)) = &self.supplies[supply].shared {
            self.fabric.nic(node).tell_low(*id, limit).map_err(|why| why.to_string())?;
            self.supplies[supply].limited(limit);
        }
        Ok(())
    }

    fn drain(&mut self, place: Place) -> Check {
        if self.on(place).state != State::ReadyToSend {
            return Ok(());
        }
        self.on(place).drained = None;
        self.change(place, Change::Drain)?;
        self.enter(place, State::Draining)?;
        self.turn(self.node(place))
    }

    pub(super) fn resume(&mut self, place: Place) -> Check {
        if self.on(place).state != State::Draining {
            return Ok(());
        }
        if let Some(begun) = self.on(place).drained {
            let now = self.begun(place);
            ensure!(now == begun, "{} messages were sent after draining", now - begun);
        }
        self.change(place, Change::Resume)?;
        self.enter(place, State::ReadyToSend)?;
        self.turn(self.node(place))
    }

    pub(super) fn tell_to_stop(&mut self, place: Place) -> Check {
        if self.on(place).state != State::Error {
            self.on(place).told = true;
            self.change(place, Change::Error)?;
            // What was said by then is looked at before anything is flushed.
            self.hear(self.node(place))?;
        }
        self.turn(self.node(place))
    }
}
