//! What programs post: rightly, or wrongly.

use doorbell_core::memory::Buf;
use doorbell_core::nic::{
    Attachment, Data, Inline, Memory, Operation, PostError, ReceiveRequest, Rights, WorkRequest,
};
use doorbell_core::wire::{Imm, Qkey, Qpn, RemoteAddr};

use super::super::super::message::Kind;
use super::super::super::model::{Check, ensure};
use super::super::super::traps::Own;
use super::super::message::{Place, What, Wrong};
use super::{Posted, Run};

impl Run<'_> {
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
            self.traps[self.node(place)].spoil(bad, image.registration, &mut memory);
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
}
