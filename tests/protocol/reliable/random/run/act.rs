//! What programs do, and what they hear of it.

use std::time::Duration;

use doorbell_core::nic::{
    Change, Completion, Data, Inline, PostError, ReceiveRequest, State, WorkRequest,
};

use super::super::message::Kind;
use super::super::model::{Check, ensure};
use super::super::program::{Op, Revoked};
use super::Run;

impl Run<'_> {
    pub(super) fn op(&mut self, op: Op) -> Check {
        match op {
            Op::Send { pair, end, count } => {
                let flow = &mut self.flows[pair][end];
                flow.wanted = (flow.wanted + count).min(flow.stream.messages.len());
                self.post_sends(pair, end)?;
            }
            Op::Receive { pair, end, count } => {
                let flow = &mut self.flows[pair][1 - end];
                flow.receives_wanted = (flow.receives_wanted + count).min(flow.receives());
                self.post_receives(pair, end)?;
            }
            Op::Poll { queue, most } => {
                self.poll(queue, most)?;
            }
            Op::Wait { nanos } => {
                let until = self.fabric.now() + Duration::from_nanos(nanos);
                while self.step(until)? {}
            }
            Op::Arm { queue, solicited } => self.arm(queue, solicited)?,
            Op::Drain { pair, end } => self.drain(pair, end)?,
            Op::Resume { pair, end } => self.resume(pair, end)?,
            Op::Revoke { pair, end, what } => self.revoke(pair, end, what)?,
            Op::Stop { pair, end } => {
                self.tell_to_stop(pair, end)?;
                self.turn(self.end(pair, end).node)?;
            }
            Op::TakeDown { pair, end } => {
                let side = &mut self.sides[pair][end];
                side.told |= side.broken.is_none();
                self.take_down(pair, end)?;
                self.turn(self.end(pair, end).node)?;
            }
        }
        self.remap_some()?;
        self.prove_some()?;
        self.post_all()
    }

    /// Posts what is wanted, as far as there is room.
    pub(super) fn post_all(&mut self) -> Check {
        for (pair, end) in self.every_end() {
            self.post_receives(pair, end)?;
            self.post_sends(pair, end)?;
        }
        Ok(())
    }

    fn post_sends(&mut self, pair: usize, end: usize) -> Check {
        let before = self.flows[pair][end].posted;
        while self.flows[pair][end].posted < self.flows[pair][end].wanted {
            let index = self.flows[pair][end].posted;
            let Some(ends) = &self.sides[pair][end].ends else { return Ok(()) };
            let room = ends.send.room();
            if room == 0 && !self.dice.percent(10) {
                break;
            }
            let request = self.request(pair, end, index);
            let id = request.id;
            match self.ends(pair, end).send.post(request) {
                Ok(()) => {
                    ensure!(room > 0, "posted to a full queue");
                    self.flows[pair][end].posted += 1;
                }
                Err(refused) => {
                    let depth = self.end(pair, end).send_depth;
                    let full =
                        matches!(refused.why, PostError::Full { depth: d, .. } if d == depth);
                    ensure!(room == 0 && full, "with room for {room}: {}", refused.why);
                    ensure!(refused.request.id == id, "another request came back");
                    self.coverage.refused(&refused.why);
                    break;
                }
            }
        }
        if self.flows[pair][end].posted > before {
            self.ends(pair, end).send.ring();
            self.turn(self.end(pair, end).node)?;
        }
        Ok(())
    }

    fn request(&self, pair: usize, end: usize, index: usize) -> WorkRequest {
        let flow = &self.flows[pair][end];
        let message = flow.message(index);
        let data = match message.source {
            Kind::None if !message.asks() => {
                let inline = Inline::new(flow.content(index)).expect("few bytes");
                Data::Inline(inline)
            }
            _ => Data::Memory(self.source(pair, end, index)),
        };
        WorkRequest {
            id: (index as u64) << 1 ^ flow.salt,
            operation: self.operation(pair, end, index),
            data,
            attached: self.attachment(pair, end, index),
            signalled: message.signalled,
            awaited: message.awaited,
            solicited: message.solicited,
            fenced: message.fenced,
        }
    }

    /// Posts the receives of an end, for what its peer sends.
    pub(super) fn post_receives(&mut self, pair: usize, end: usize) -> Check {
        let before = self.flows[pair][1 - end].receives_posted;
        while self.flows[pair][1 - end].receives_posted < self.flows[pair][1 - end].receives_wanted
        {
            let Some(ends) = &self.sides[pair][end].ends else { return Ok(()) };
            let room = ends.receive.room();
            if room == 0 && !self.dice.percent(10) {
                break;
            }
            let flow = &self.flows[pair][1 - end];
            let receive = flow.receives_posted;
            let id = ((receive as u64) << 1 | 1) ^ flow.salt;
            let memory = self.landing(pair, 1 - end, receive);
            match self.ends(pair, end).receive.post(ReceiveRequest { id, memory }) {
                Ok(()) => {
                    ensure!(room > 0, "posted to a full queue");
                    self.flows[pair][1 - end].receives_posted += 1;
                }
                Err(refused) => {
                    ensure!(room == 0, "with room for {room}: {}", refused.why);
                    self.coverage.refused(&refused.why);
                    break;
                }
            }
        }
        // No doorbell is needed, but a NIC that sleeps is to see it in a turn.
        if self.flows[pair][1 - end].receives_posted > before {
            self.turn(self.end(pair, end).node)?;
        }
        Ok(())
    }

    /// Polls a completion queue. Whether anything was there.
    pub(super) fn poll(&mut self, queue: usize, most: usize) -> Result<bool, String> {
        let mut count = 0;
        while count < most {
            let Some(completion) = self.queues[queue].ends.poll() else { break };
            count += 1;
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
        let (pair, end) = self.find(node, completion.qpn)?;
        let sent = completion.id ^ self.flows[pair][end].salt;
        let received = completion.id ^ self.flows[pair][1 - end].salt;
        let failed = completion.outcome.is_err();
        if sent & 1 == 0 && sent >> 1 < self.flows[pair][end].posted as u64 {
            self.coverage.outcome(completion.outcome, false);
            ensure!(queue == self.end(pair, end).send_queue, "in the wrong queue");
            self.queues[queue].notable(failed);
            let memory = self.sides[pair][end].memory.as_mut().expect("memory during a round");
            let flow = &mut self.flows[pair][end];
            let arrived = flow.sent((sent >> 1) as usize, completion, &mut memory.fetched)?;
            return self.prove(pair, end, arrived);
        }
        self.coverage.outcome(completion.outcome, true);
        self.coverage.attached(&completion.attached);
        ensure!(received & 1 == 1, "of an unknown request");
        ensure!(queue == self.end(pair, end).receive_queue, "in the wrong queue");
        let receive = (received >> 1) as usize;
        let flow = &mut self.flows[pair][1 - end];
        let solicited = flow.takers.get(receive).is_some_and(|&i| flow.message(i).solicited);
        let memory = self.sides[pair][end].memory.as_mut().expect("memory during a round");
        let arrived = flow.receive_completed(receive, completion, &mut memory.landing)?;
        self.queues[queue].notable(failed || solicited);
        self.prove(pair, 1 - end, arrived)
    }

    pub(super) fn prove(&mut self, pair: usize, end: usize, arrived: usize) -> Check {
        let memory = self.sides[pair][1 - end].memory.as_ref().expect("memory during a round");
        self.flows[pair][end].prove(arrived, &memory.target)
    }

    /// Arms a queue that has just been emptied.
    fn arm(&mut self, queue: usize, solicited: bool) -> Check {
        while self.poll(queue, usize::MAX)? {}
        self.queues[queue].arm(&mut self.fabric, solicited)
    }

    fn drain(&mut self, pair: usize, end: usize) -> Check {
        if self.sides[pair][end].state != State::ReadyToSend {
            return Ok(());
        }
        self.sides[pair][end].drained = None;
        self.change(pair, end, Change::Drain)?;
        self.enter(pair, end, State::Draining)?;
        self.turn(self.end(pair, end).node)
    }

    pub(super) fn resume(&mut self, pair: usize, end: usize) -> Check {
        if self.sides[pair][end].state != State::Draining {
            return Ok(());
        }
        if let Some(taken) = self.sides[pair][end].drained {
            let now = self.taken(pair, end);
            ensure!(now == taken, "{} messages were sent after draining", now - taken);
        }
        self.change(pair, end, Change::Resume)?;
        self.enter(pair, end, State::ReadyToSend)?;
        self.turn(self.end(pair, end).node)
    }

    fn revoke(&mut self, pair: usize, end: usize, what: Revoked) -> Check {
        let memory = self.memory(pair, end);
        let (image, registrations) = (memory.image(what), memory.registrations(what));
        let now = image.now(0, image.region.len());
        for registration in registrations {
            let nic = self.fabric.nic(self.end(pair, end).node);
            nic.deregister(registration.lkey).map_err(|why| why.to_string())?;
        }
        self.sides[pair][end].revoked = Some((what, now));
        match what {
            Revoked::Target => self.unmap(pair, 1 - end),
            _ => Ok(()),
        }
    }

    fn tell_to_stop(&mut self, pair: usize, end: usize) -> Check {
        if self.sides[pair][end].state != State::Error {
            self.sides[pair][end].told = true;
            self.change(pair, end, Change::Error)?;
        }
        Ok(())
    }
}
