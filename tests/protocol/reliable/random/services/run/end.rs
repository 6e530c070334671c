//! The end of a round: everything is posted, waited for, and flushed.

use std::time::Duration;

use doorbell_core::nic::{Counters, Objects, State, Transport};

use super::super::super::model::{Check, ensure};
use super::super::message::Place;
use super::{LIMIT, Run};

/// Longer than any frame is on its way.
const LONG: Duration = Duration::from_millis(200);

impl Run<'_> {
    /// Posts all that is left, and goes on until every send is complete and whatever comes has
    /// come.
    pub(super) fn finish(&mut self) -> Check {
        for place in self.every_end() {
            self.speak(place)?;
            let flow = self.flow(place);
            flow.wanted = flow.messages.len();
        }
        let until = self.fabric.now() + LIMIT;
        loop {
            self.want_receives();
            // What is complete when it is sent, and not signalled, is heard of by nothing else.
            let before = self.all_posted();
            self.post_all()?;
            let mut news = self.all_posted() > before;
            for queue in 0..self.queues.len() {
                let most = self.dice.pick(&[1, 2, 10, 1000]);
                news |= self.poll(queue, most)?;
            }
            for place in self.every_end() {
                if self.on(place).drained.is_some() {
                    self.resume(place)?;
                    self.on(place).drained = None;
                }
            }
            if !news && self.every_end().all(|place| self.finished(place)) {
                break;
            }
            for step in 0..self.dice.between(1, 20) {
                // Where nothing happens, time is not to pass: programs may do something yet. And
                // some of what happens in a network reaches nobody.
                match self.fabric.network.next_at().filter(|at| *at <= until) {
                    Some(at) => drop(self.step(at)?),
                    None if step == 0 && !news => return Err(self.stuck()),
                    None => break,
                }
            }
        }
        // Long enough for silence to be noticed.
        self.pass(LONG)?;
        self.poll_all()
    }

    fn all_posted(&self) -> usize {
        self.flows.iter().flatten().map(|flow| flow.posted).sum()
    }

    /// Wants as many receives as there is room for: somebody may wait for one, and others take
    /// them. A queue pair that is broken only flushes them.
    fn want_receives(&mut self) {
        for supply in 0..self.supplies.len() {
            let broken = self.owner(supply).is_some_and(|place| self.on(place).broken.is_some());
            if !broken {
                let depth = self.program.supplies[supply].depth;
                self.supplies[supply].want(depth);
            }
        }
    }

    /// Whether an end has nothing to wait for.
    fn finished(&mut self, place: Place) -> bool {
        let depth = self.end(place).own.send_depth;
        let (room, state) = (self.on(place).ends.send.room(), self.on(place).state);
        let flow = self.flow(place);
        flow.posted == flow.wanted && room == depth && state != State::Draining
    }

    fn stuck(&mut self) -> String {
        let mut why = String::from("nothing happens any more:");
        for place in self.every_end() {
            if self.finished(place) {
                continue;
            }
            let (state, room) = (self.on(place).state, self.on(place).ends.send.room());
            let flow = self.flow(place);
            let (all, posted) = (flow.messages.len(), flow.posted);
            why += &format!(
                "\n  {place:?} is {state:?}: of {all} messages {posted} are posted, and there is \
                 room for {room} more"
            );
        }
        why
    }

    /// Has every queue pair flush the receives that are left.
    pub(super) fn stop(&mut self) -> Check {
        for place @ (pair, end) in self.every_end() {
            let peer = (pair, 1 - end);
            let broken = self.on(place).broken.is_some();
            let silent =
                self.is_silent(place, peer) && self.transport(place) == Transport::Reliable;
            ensure!(broken || !silent, "{place:?} has not noticed that {peer:?} is silent");
            self.on(place).early = broken;
        }
        for place in self.every_end() {
            self.tell_to_stop(place)?;
        }
        self.poll_all()
    }

    /// Polls all that there is to poll.
    fn poll_all(&mut self) -> Check {
        loop {
            let mut news = false;
            for queue in 0..self.queues.len() {
                news |= self.poll(queue, usize::MAX)?;
            }
            if !news {
                return Ok(());
            }
        }
    }

    /// Lets the network fall silent: nobody may keep on sending.
    pub(super) fn settle(&mut self) -> Check {
        self.pass(LIMIT)?;
        ensure!(self.fabric.network.in_flight() == 0, "frames are still on their way");
        ensure!(self.fabric.network.next_at().is_none(), "a timer is still set");
        Ok(())
    }

    /// Takes down what a round made.
    pub(super) fn forget(&mut self) -> Check {
        if self.silent.take().is_some() {
            self.fabric.network.heal_partitions();
        }
        for place @ (pair, end) in self.every_end() {
            let node = self.node(place);
            let memory = self.on(place).memory.take().expect("memory during a round");
            for image in [memory.source, memory.target] {
                let taken = self.fabric.nic(node).deregister(image.registration.lkey);
                taken.map_err(|why| why.to_string())?;
            }
            let side = &mut self.sides[pair][end];
            let reset = self.fabric.nic(node).reset(&mut side.ends.send, &mut side.ends.receive);
            reset.map_err(|why| format!("{place:?}: {why}"))?;
            (side.broken, side.told, side.early) = (None, false, false);
            (side.drained, side.met, side.last) = (None, false, None);
            self.enter(place, State::Reset)?;
        }
        Ok(())
    }

    /// Takes everything down: nothing is left then.
    pub(super) fn leave(&mut self) -> Check {
        let program = self.program;
        let places: Vec<Place> = self.every_end().collect();
        for (place, side) in places.into_iter().zip(self.sides.drain(..).flatten()) {
            let (node, qpn) = (program.pairs[place.0].ends[place.1].own.node, side.qpn);
            drop(side.ends);
            self.fabric.nic(node).drop_queue_pair(qpn).map_err(|why| why.to_string())?;
        }
        for (supply, drawn) in self.supplies.drain(..).zip(&program.supplies) {
            let nic = self.fabric.nic(drawn.node);
            if let Some(id) = supply.leave(nic) {
                nic.drop_shared_receive_queue(id).map_err(|why| why.to_string())?;
            }
        }
        for queue in self.queues.drain(..) {
            let dropped = self.fabric.nic(queue.node).drop_completion_queue(queue.id);
            dropped.map_err(|why| why.to_string())?;
        }
        for ((from, _), address) in std::mem::take(&mut self.addresses) {
            let dropped = self.fabric.nic(from).drop_address(address);
            dropped.map_err(|why| why.to_string())?;
        }
        for node in 0..program.nodes {
            let Counters { passed_over, wrong_qkey, no_such_queue_pair, questions_sent, .. } =
                *self.fabric.nic(node).counters();
            for (count, what) in [
                (passed_over, "passed over"),
                (wrong_qkey, "of another key"),
                (no_such_queue_pair, "to nobody"),
                (questions_sent, "to a silent host"),
            ] {
                self.coverage.note(format!("packet {what}"), count);
            }
            let left = self.fabric.nic(node).objects();
            let traps = Objects { registrations: left.registrations, ..Objects::default() };
            ensure!(left == traps, "node {node} has {left:?} left");
        }
        Ok(())
    }
}
