//! The end of a round: everything is posted, waited for, and flushed.

use super::super::model::{Check, ensure};
use super::{LIMIT, Run};
use doorbell_core::nic::{Cause, Change, ResourceError, State};

impl Run<'_> {
    /// Posts all that is left, and goes on until every send is complete.
    pub(super) fn finish(&mut self) -> Check {
        for flow in self.flows.iter_mut().flatten() {
            flow.wanted = flow.stream.messages.len();
            flow.receives_wanted = flow.receives();
        }
        let until = self.fabric.now() + LIMIT;
        loop {
            self.post_all()?;
            // What is written at once leaves room for more, and nothing else to be seen.
            let mut news = self.every_end().any(|(pair, end)| self.has_room(pair, end));
            for queue in 0..self.queues.len() {
                let most = self.dice.pick(&[1, 2, 10, 1000]);
                news |= self.poll(queue, most)?;
            }
            for (pair, end) in self.every_end() {
                if self.sides[pair][end].ends.is_none() {
                    self.take_down(pair, end)?;
                }
                if self.sides[pair][end].drained.is_some() {
                    self.resume(pair, end)?;
                    self.sides[pair][end].drained = None;
                    news = true;
                }
            }
            if !news && self.every_end().all(|(pair, end)| self.finished(pair, end)) {
                return Ok(());
            }
            for step in 0..self.dice.between(1, 20) {
                // Where nothing happens, time is not to pass: programs may do something yet. And
                // some of what happens in a network reaches nobody.
                match self.fabric.next_at().filter(|at| *at <= until) {
                    Some(at) => drop(self.step(at)?),
                    None if step == 0 && !news => return Err(self.stuck()),
                    None => break,
                }
            }
        }
    }

    /// Whether an end can post more of what is wanted.
    fn has_room(&self, pair: usize, end: usize) -> bool {
        let flow = &self.flows[pair][end];
        let ends = self.sides[pair][end].ends.as_ref();
        flow.posted < flow.wanted && ends.is_some_and(|ends| ends.send.room() > 0)
    }

    /// Whether an end has nothing to wait for.
    fn finished(&self, pair: usize, end: usize) -> bool {
        let (side, own) = (&self.sides[pair][end], self.end(pair, end));
        let [out, into] = [&self.flows[pair][end], &self.flows[pair][1 - end]];
        let Some(ends) = &side.ends else { return side.down };
        let sent = out.posted == out.wanted && ends.send.room() == own.send_depth;
        let flushed = side.broken.is_none()
            || into.receives_posted == into.receives_wanted
                && ends.receive.room() == own.receive_depth;
        sent && flushed && side.state != State::Draining
    }

    fn stuck(&mut self) -> String {
        let mut why = String::from("nothing happens any more:");
        for (pair, end) in self.every_end() {
            if self.finished(pair, end) {
                continue;
            }
            let (side, flow) = (&self.sides[pair][end], &self.flows[pair][end]);
            let back = &self.flows[pair][1 - end];
            why += &format!(
                "\n  end {end} of pair {pair} is {:?}: of {} messages {} are posted and {} \
                 arrived; of {} receives {} are posted and {} complete",
                side.state,
                flow.stream.messages.len(),
                flow.posted,
                flow.proven,
                back.receives(),
                back.receives_posted,
                back.received,
            );
        }
        why
    }

    /// Has every queue pair flush the receives that are left.
    pub(super) fn stop(&mut self, dropped: bool) -> Check {
        for (pair, end) in self.every_end() {
            let idle = self.sides[pair][end].broken.is_none();
            if idle {
                self.judge_alive(pair, end)?;
                self.sides[pair][end].told = true;
            }
            if dropped {
                self.take_down(pair, end)?;
                ensure!(self.sides[pair][end].down, "not taken down, with room in its queues");
            } else if idle {
                self.change(pair, end, Change::Error)?;
            }
            self.turn(self.end(pair, end).node)?;
        }
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

    /// Drops a queue pair's ends, and takes it down if what is to be flushed finds room. It may not
    /// at once: what others have under way may hold the slots of its completion queues.
    pub(super) fn take_down(&mut self, pair: usize, end: usize) -> Check {
        let (qpn, node) = (self.sides[pair][end].qpn, self.end(pair, end).node);
        if let Some(ends) = self.sides[pair][end].ends.take() {
            let refused = self.fabric.nic(node).drop_queue_pair(qpn);
            ensure!(refused == Err(ResourceError::HasEnds(qpn)), "with its ends: {refused:?}");
            drop(ends);
        }
        let mut news = true;
        self.hear(node)?;
        while news && !self.sides[pair][end].down {
            news = false;
            match self.fabric.nic(node).drop_queue_pair(qpn) {
                Ok(()) => {
                    let side = &mut self.sides[pair][end];
                    // Nothing is told of what is not there any more.
                    (side.down, side.broken) = (true, side.broken.or(Some(Cause::Told)));
                }
                Err(ResourceError::Outstanding { .. }) => {
                    self.hear(node)?;
                    for queue in 0..self.queues.len() {
                        news |= self.poll(queue, usize::MAX)?;
                    }
                }
                Err(why) => return Err(why.to_string()),
            }
        }
        self.hear(node)?;
        self.sides[pair][end].state = State::Error;
        Ok(())
    }

    /// Lets the network fall silent: nobody may keep on sending.
    pub(super) fn settle(&mut self) -> Check {
        let until = self.fabric.now() + LIMIT;
        while self.step(until)? {}
        ensure!(self.fabric.in_flight() == 0, "frames are still on their way");
        ensure!(self.fabric.next_at().is_none(), "a timer is still set");
        Ok(())
    }
}
