//! What programs do, and what they hear of it.

use std::time::Duration;

use doorbell_core::nic::{Attachment, Change, Completion, Done, Failure, State};

use super::super::super::model::{Check, ensure};
use super::super::message::Place;
use super::super::program::Op;
use super::super::supply::Receive;
use super::{Posted, Run};

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
