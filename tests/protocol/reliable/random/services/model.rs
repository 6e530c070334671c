//! What must come of the messages of one end, and what may.

use doorbell_core::nic::{Attachment, Cause, Completion, Done, Failure, Memory, Transport};
use doorbell_core::wire::PathMtu;

use super::super::coverage::Coverage;
use super::super::dice;
use super::super::memory::{Image, Pieces};
use super::super::model::{Check, cause_of, ensure, same_kind};
use super::message::{Message, What};

/// The messages of one end, and what became of them so far.
pub struct Flow {
    pub messages: Vec<Message>,
    pub transport: Transport,
    mtu: PathMtu,
    contents: Vec<Vec<u8>>,
    /// Where what is sent lies, and where in the peer's memory writes go.
    pub sources: Vec<Pieces>,
    pub targets: Vec<Pieces>,
    /// The first message that breaks its sender, and how.
    pub breaks: Option<(usize, Cause)>,

    /// How many are wanted of the program, and how many were posted.
    pub wanted: usize,
    pub posted: usize,
    /// The next that a success may be told of.
    told: usize,
    /// The first that failed, and the next whose failure is to be told.
    pub failed: Option<(usize, Failure)>,
    next_failed: usize,

    /// Of a connection, the first message that may still arrive.
    next: usize,
    /// How often each has arrived.
    copies: Vec<u8>,
}

/// What a receive's completion says of its message.
#[derive(Debug)]
pub struct Arrival {
    pub written: bool,
    pub len: usize,
    pub imm: Option<u32>,
    /// Unless it was written.
    pub bytes: Vec<u8>,
}

impl Flow {
    pub fn new(messages: &[Message], transport: Transport, mtu: PathMtu) -> Self {
        let contents = messages.iter().map(|message| dice::bytes(message.number, message.len));
        Self {
            messages: messages.to_vec(),
            transport,
            mtu,
            contents: contents.collect(),
            sources: Vec::new(),
            targets: Vec::new(),
            breaks: None,
            wanted: 0,
            posted: 0,
            told: 0,
            failed: None,
            next_failed: 0,
            next: 0,
            copies: vec![0; messages.len()],
        }
    }

    pub fn content(&self, index: usize) -> &[u8] {
        &self.contents[index]
    }

    /// Takes messages as complete up to `until`, of which none was to be told.
    pub fn complete(&mut self, until: usize) -> Check {
        ensure!(
            (self.told..=self.posted).contains(&until),
            "message {until} completed, while {} is next and {} are posted",
            self.told,
            self.posted
        );
        let untold = self.messages[self.told..until].iter().position(|message| message.signalled);
        ensure!(untold.is_none(), "no completion of message {}", self.told + untold.unwrap_or(0));
        let broke = self.breaks.filter(|&(index, _)| (self.told..until).contains(&index));
        ensure!(broke.is_none(), "{broke:?} succeeded, which is wrong");
        self.told = until;
        Ok(())
    }

    /// A completion of a send.
    pub fn sent(&mut self, index: usize, completion: &Completion) -> Check {
        self.same_source(index, completion)?;
        match (completion.outcome, self.failed) {
            (Ok(_), Some(failed)) => Err(format!("message {index} succeeded behind {failed:?}")),
            (Ok(done), None) => {
                self.complete(index)?;
                ensure!(self.messages[index].signalled, "message {index} is unsignalled");
                let written = self.messages[index].what == What::Write;
                let expected = if written { Done::Written } else { Done::Sent };
                ensure!(done == expected, "message {index} was {done:?}, not {expected:?}");
                ensure!(self.breaks.is_none_or(|(at, _)| at != index), "it is wrong");
                self.told = index + 1;
                Ok(())
            }
            (Err(failure), None) => {
                self.complete(index)?;
                self.failed = Some((index, failure));
                self.next_failed = index + 1;
                Ok(())
            }
            (Err(failure), Some((_, why))) => {
                let next = self.next_failed;
                ensure!(index == next, "message {index} failed, while {next} is next");
                let flushed = Failure::Flushed(cause_of(why));
                ensure!(failure == flushed, "message {index} behind {why:?}: {failure:?}");
                self.next_failed = index + 1;
                Ok(())
            }
        }
    }

    /// The memory that came back must be what went.
    fn same_source(&self, index: usize, completion: &Completion) -> Check {
        let (kind, memory) = (self.messages[index].source, &completion.memory);
        ensure!(same_kind(kind, memory), "message {index} from {kind:?} came back as {memory:?}");
        let plain = completion.len == 0 && completion.attached == Attachment::Nothing;
        ensure!(plain, "a send with {completion:?}");
        match memory {
            Memory::Buf(buf) => {
                ensure!(**buf == *self.content(index), "the buffer of message {index} was changed");
                Ok(())
            }
            _ => Ok(()),
        }
    }

    /// Whether all that was posted is told of.
    pub fn all_told(&self) -> bool {
        match self.failed {
            Some(_) => self.next_failed == self.posted,
            None => self.messages[self.told..self.posted].iter().all(|m| !m.signalled),
        }
    }

    /// How many are told of, or need not be: those that failed are not among them.
    fn succeeded(&self) -> usize {
        self.failed.map_or(self.posted, |(index, _)| index)
    }

    fn is(&self, index: usize, arrival: &Arrival) -> bool {
        let message = &self.messages[index];
        let Arrival { written, len, imm, bytes } = arrival;
        message.takes_receive()
            && message.wrong.is_none()
            && (message.what == What::Write) == *written
            && (message.len, message.imm) == (*len, *imm)
            && (*written || self.contents[index] == *bytes)
    }

    /// Takes what has arrived at `to` for one of the messages: which.
    ///
    /// All that take a receive come once and in order, if `all` must arrive. Otherwise, on a
    /// connection, some don't; that the first of several alike is taken leaves room for most behind
    /// it. Datagrams come as they like, and as often as the network has copies of them.
    pub fn arrived(&mut self, arrival: &Arrival, to: What, all: bool, copies: u8) -> Option<usize> {
        let index = match self.transport {
            Transport::Datagram => {
                let named = (0..self.posted).filter(|&index| self.messages[index].what == to);
                let alike = named.filter(|&index| self.is(index, arrival));
                let least = alike.min_by_key(|&index| self.copies[index])?;
                Some(least).filter(|&index| self.copies[index] < copies)?
            }
            _ => {
                let rest = self.next..self.posted;
                let arrives = |&index: &usize| {
                    let message = &self.messages[index];
                    message.takes_receive() && message.wrong.is_none()
                };
                let mut may = rest.filter(arrives).take(if all { 1 } else { usize::MAX });
                may.find(|&index| self.is(index, arrival))?
            }
        };
        self.next = index + 1;
        self.copies[index] += 1;
        Some(index)
    }

    /// What is written by a message, in its receiver's memory: now, and before.
    fn written(&self, index: usize, target: &Image) -> (Vec<u8>, Vec<u8>) {
        target.gather(&self.targets[index])
    }

    /// Whether all that a message writes is there.
    pub fn is_written(&self, index: usize, target: &Image) -> bool {
        self.written(index, target).0 == self.contents[index]
    }

    /// At the end: of each write, so many whole packets must be there, in their order, and nothing
    /// else: all of one that has arrived or had to. Whatever had to arrive has.
    pub fn left(&self, all: bool, target: &mut Image, coverage: &mut Coverage) -> Check {
        let succeeded = self.succeeded();
        for (index, message) in self.messages.iter().enumerate() {
            let must = all && index < succeeded && message.wrong.is_none();
            let lost = must && message.takes_receive() && self.copies[index] == 0;
            ensure!(!lost, "message {index} of {succeeded} has not arrived");
            if index < succeeded && message.takes_receive() && message.wrong.is_none() {
                let fates = ["lost", "received", "received more than once"];
                let fate = fates[usize::from(self.copies[index]).min(2)];
                coverage.note(format!("{:?} message {fate}", self.transport), 1);
            }
            if message.what != What::Write || message.wrong.is_some() {
                continue;
            }
            let (now, before) = self.written(index, target);
            let content = self.content(index);
            let most = if index < self.posted { message.packets(self.mtu) } else { 0 };
            let whole = must || self.copies[index] > 0;
            let least = if whole { most } else { 0 };
            let some = (least..=most).map(|packets| content.len().min(packets * self.mtu.bytes()));
            let explained = some
                .into_iter()
                .any(|len| now[..len] == content[..len] && now[len..] == before[len..]);
            if now[..] != content[..] && now != before {
                coverage.note(format!("{:?} write in part", self.transport), 1);
            }
            ensure!(explained, "write {index} left something else than {least} to {most} packets");
            target.expect(&self.targets[index], &now);
        }
        Ok(())
    }
}
