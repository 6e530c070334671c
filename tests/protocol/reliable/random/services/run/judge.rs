//! What has arrived, and what a round has left, held against the model.

use doorbell_core::encap::Version;
use doorbell_core::nic::{
    Attachment, Cause, Completion, DATAGRAM_HEADER, Done, Failure, State, Transport,
};
use doorbell_core::wire::Qpn;

use super::super::super::model::{Check, cause_of, ensure};
use super::super::message::{Place, What};
use super::super::model::Arrival;
use super::Run;

impl Run<'_> {
    /// A message has arrived. Whether its sender asked for an event.
    pub(super) fn arrived(
        &mut self,
        place @ (pair, end): Place,
        done: Done,
        completion: &Completion,
        mut bytes: Vec<u8>,
    ) -> Result<bool, String> {
        let imm = match completion.attached {
            Attachment::Nothing => None,
            Attachment::Imm(imm) => Some(imm.0),
            other => return Err(format!("nobody sends {other:?}")),
        };
        let datagram = self.transport(place) == Transport::Datagram;
        let (written, mut len) = (done == Done::ReceivedWrite, completion.len as usize);
        let from = match done {
            Done::ReceivedDatagram { source } if datagram => {
                let header: Vec<u8> = bytes.drain(..DATAGRAM_HEADER).collect();
                len -= DATAGRAM_HEADER;
                self.senders(place, source, &header)
            }
            Done::Received | Done::ReceivedWrite if !datagram => vec![(pair, 1 - end)],
            _ => return Err("which is nothing that can arrive there".into()),
        };
        let silent = self.on(place).state == State::ReadyToReceive && !self.on(place).met;
        ensure!(datagram || !silent, "and {place:?} was not told that the connection stands");
        let arrival = Arrival { written, len, imm, bytes };
        let copies = if self.program.net.faults.duplication > 0.0 { 4 } else { 1 };
        let found = from.into_iter().find_map(|from| {
            let all = self.all_arrives(from);
            let to = What::Datagram(place);
            Some((from, self.flow(from).arrived(&arrival, to, all, copies)?))
        });
        let (from, index) = found.ok_or_else(|| format!("none such is to arrive at {place:?}"))?;
        if written {
            let memory = self.sides[pair][end].memory.as_ref().expect("memory during a round");
            let whole = self.flows[from.0][from.1].is_written(index, &memory.target);
            ensure!(whole, "write {index} has arrived, and not all of it is there");
        }
        Ok(self.flow(from).messages[index].solicited)
    }

    /// Who may have sent a datagram, by the number and the header that came with it.
    fn senders(&self, to: Place, source: Qpn, header: &[u8]) -> Vec<Place> {
        let is = |&from: &Place| {
            self.transport(from) == Transport::Datagram
                && self.sides[from.0][from.1].qpn == source
                && self.node(from) != self.node(to)
                && self.names(self.node(from), self.node(to), header)
        };
        self.every_end().filter(is).collect()
    }

    /// Whether a header is that of packets from one node to another.
    fn names(&self, from: usize, to: usize, header: &[u8]) -> bool {
        if self.program.net.lossless {
            return header.iter().all(|&byte| byte == 0);
        }
        let path = self.fabric.path(from, to);
        let (source, destination) = path.outer().gids();
        match self.program.net.version {
            Version::V2Ipv4 => {
                let [source, destination] = [&source.0[12..], &destination.0[12..]];
                header[..20] == [0; 20] && header[32..36] == *source && header[36..] == *destination
            }
            Version::V1 | Version::V2Ipv6 => {
                header[8..24] == source.0 && header[24..] == destination.0
            }
        }
    }

    pub(super) fn check_round(&mut self) -> Check {
        for place in self.every_end() {
            self.judge(place).map_err(|why| format!("{place:?}: {why}"))?;
        }
        for (pair, end) in self.every_end() {
            let all = self.all_arrives((pair, end));
            let memory = self.sides[pair][1 - end].memory.as_mut().expect("during a round");
            let left = self.flows[pair][end].left(all, &mut memory.target, &mut self.coverage);
            left.map_err(|why| format!("from end {end} of pair {pair}: {why}"))?;
        }
        for (pair, end) in self.every_end() {
            let memory = self.sides[pair][end].memory.as_ref().expect("memory during a round");
            memory.source.check("memory to send from")?;
            memory.target.check("memory that may be written")?;
        }
        for supply in &self.supplies {
            supply.check()?;
        }
        for node in 0..self.program.nodes {
            self.traps[node].check(node)?;
        }
        self.check_receives()
    }

    /// No receive is lost: what is not complete is still in a queue that is shared.
    fn check_receives(&self) -> Check {
        for (number, supply) in self.supplies.iter().enumerate() {
            let (outstanding, waiting) = (supply.posted - supply.completed, supply.waiting());
            ensure!(
                outstanding == waiting,
                "{outstanding} receives of queue {number} are not complete, and {waiting} in it"
            );
        }
        Ok(())
    }

    /// Whether what broke an end may have, and its completions say so.
    fn judge(&mut self, place: Place) -> Check {
        let broken = self.on(place).broken.ok_or("it did not break, though told to")?;
        let shared = self.program.supplies[self.end(place).supply].shared;
        ensure!(self.on(place).last.is_some() == shared, "it was not said to have taken its last");
        let flow = self.flow(place);
        ensure!(flow.all_told(), "not every request has completed");
        if flow.failed.is_none() {
            flow.complete(flow.posted)?;
        }
        let flow = self.flow(place);
        let blamed = flow.failed.filter(|(_, why)| matches!(why, Failure::Broke(_)));
        ensure!(
            flow.failed.is_none_or(|(_, failure)| cause_of(failure) == broken),
            "{:?}, and the queue pair by {broken:?}",
            flow.failed
        );
        let blamed = blamed.map(|(index, _)| index);
        let reason = self.permitted(place, broken, blamed);
        ensure!(reason, "{broken:?} for no reason, and message {blamed:?} was to blame");
        Ok(())
    }

    /// Whether there was a reason for an end to break so, and that message was to blame, if any.
    fn permitted(&self, place @ (pair, end): Place, cause: Cause, blamed: Option<usize>) -> bool {
        let (program, side) = (self.program, &self.sides[pair][end]);
        let peer = (pair, 1 - end);
        let (other, silent) = (&self.sides[pair][1 - end], self.is_silent(place, peer));
        let gone = other.early || silent;
        // That each took the other for silent excuses neither.
        let left = other.early && !matches!(other.broken, Some(Cause::PeerSilent { .. }));
        let reliable = self.transport(place) == Transport::Reliable;
        let lossless = program.net.lossless;
        match (cause, self.flows[pair][end].breaks) {
            (Cause::Told, _) => side.told && blamed.is_none(),
            (cause, Some((index, breaks))) if cause == breaks => blamed == Some(index),
            (Cause::NoAnswer { tries } | Cause::NoProgress { tries }, _) => {
                let all = if lossless { 1 } else { self.end(place).own.retries + 1 };
                reliable && gone && tries == all && blamed.is_some()
            }
            // So many questions in a row may be lost, or answers.
            (Cause::PeerSilent { .. }, _) => {
                let watched = program.keep_alive.is_some();
                reliable && watched && (left || silent || !program.net.is_faithful())
            }
            // A device that can't lose has a broken queue pair refuse what comes.
            (Cause::PeerOperation, _) => reliable && lossless && gone && blamed.is_some(),
            _ => false,
        }
    }

    /// Whether one of two was cut off from the other.
    pub(super) fn is_silent(&self, a: Place, b: Place) -> bool {
        self.silent.is_some_and(|node| [a, b].iter().any(|&place| self.node(place) == node))
    }
}
