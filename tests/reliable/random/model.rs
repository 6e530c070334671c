//! What must come of a stream of messages, from one end of a connection to the other.

use doorbell::nic::{Attachment, Cause, Completion, Done, Failure, KeyError, Memory};
use doorbell::wire::{Imm, PathMtu};

use super::dice;
use super::memory::{Image, Pieces};
use super::program::{BadKey, Kind, Message, Stream};

pub type Check = Result<(), String>;

/// Fails with a formatted reason unless something holds.
macro_rules! ensure {
    ($holds:expr, $($why:tt)+) => {
        if !$holds {
            return Err(format!($($why)+));
        }
    };
}
pub(super) use ensure;

/// A message that must break its connection, and how.
#[derive(Clone, Copy, Debug)]
pub struct Expected {
    pub index: usize,
    /// What the sender is told.
    pub sender: Cause,
    /// What the receiver notes, unless it never hears of the message.
    pub receiver: Option<Cause>,
    /// How many of its packets may be taken.
    pub packets: usize,
}

/// Messages in one direction of a connection, and what became of them so far.
pub struct Flow {
    pub stream: Stream,
    /// Tells this flow's requests from others.
    pub salt: u64,
    /// The sender's.
    pub mtu: PathMtu,
    /// Which messages take a receive.
    pub takers: Vec<usize>,
    pub wrong: Option<Expected>,
    /// The bytes of each message.
    contents: Vec<Vec<u8>>,
    /// Where what is sent lies, and where it is received.
    pub sources: Vec<Pieces>,
    pub landings: Vec<Pieces>,

    /// How many sends are wanted of the program, and how many were posted.
    pub wanted: usize,
    pub posted: usize,
    /// The next that a success may be told of.
    told: usize,
    /// The first that failed, and the next whose failure is to be told.
    pub failed: Option<(usize, Failure)>,
    next_failed: usize,

    pub receives_wanted: usize,
    pub receives_posted: usize,
    pub received: usize,
    pub receive_failed: Option<Failure>,
    receives_failed: usize,

    /// How many messages are known to have arrived.
    pub proven: usize,
}

pub fn key_error(bad: BadKey, key: u32) -> KeyError {
    match bad {
        BadKey::Unknown | BadKey::Revoked | BadKey::Replaced => KeyError::Unknown(key),
        BadKey::Domain => KeyError::Domain(key),
        BadKey::Rights => KeyError::Rights(key),
        BadKey::Beyond(_) | BadKey::Before | BadKey::Wraps => KeyError::Bounds(key),
    }
}

/// What a receive's buffer holds before.
pub const OLD: &[u8] = b"old";

/// The room of a receive that nothing comes for.
pub const SPARE: usize = 40;

impl Flow {
    pub fn new(stream: &Stream, mtu: PathMtu, salt: u64) -> Self {
        let messages = stream.messages.iter();
        let contents = messages.clone().map(|message| dice::bytes(message.number, message.len));
        let takers = messages.enumerate().filter(|(_, message)| message.takes_receive());
        Self {
            salt,
            mtu,
            takers: takers.map(|(index, _)| index).collect(),
            wrong: None,
            contents: contents.collect(),
            sources: Vec::new(),
            landings: Vec::new(),
            wanted: 0,
            posted: 0,
            told: 0,
            failed: None,
            next_failed: 0,
            receives_wanted: 0,
            receives_posted: 0,
            received: 0,
            receive_failed: None,
            receives_failed: 0,
            proven: 0,
            stream: stream.clone(),
        }
    }

    pub fn message(&self, index: usize) -> &Message {
        &self.stream.messages[index]
    }

    pub fn content(&self, index: usize) -> &[u8] {
        &self.contents[index]
    }

    /// How many receives there are for this flow.
    pub fn receives(&self) -> usize {
        self.takers.len() + self.stream.spare
    }

    /// The memory and the room of a receive.
    pub fn landing(&self, receive: usize) -> (Kind, usize) {
        match self.takers.get(receive) {
            Some(&index) => (self.message(index).landing, self.message(index).room),
            None => ([Kind::Buf, Kind::Segment][receive % 2], SPARE),
        }
    }

    /// Whether all that was posted is told of.
    pub fn all_told(&self) -> bool {
        let sends = match self.failed {
            Some(_) => self.next_failed == self.posted,
            None => self.stream.messages[self.told..self.posted].iter().all(|m| !m.signalled),
        };
        sends && self.received + self.receives_failed == self.receives_posted
    }

    fn silent(&self, until: usize) -> Check {
        ensure!(
            (self.told..=self.posted).contains(&until),
            "message {until} completed, while {} is next and {} are posted",
            self.told,
            self.posted
        );
        let told = self.stream.messages[self.told..until].iter().position(|m| m.signalled);
        ensure!(told.is_none(), "no completion of message {}", self.told + told.unwrap_or(0));
        let wrong = self.wrong.map(|wrong| wrong.index);
        ensure!(
            wrong.is_none_or(|wrong| wrong < self.told || wrong >= until),
            "message {wrong:?} succeeded, which is wrong"
        );
        Ok(())
    }

    /// A completion of a send. How many messages are known to have arrived by it.
    pub fn sent(&mut self, index: usize, completion: &Completion) -> Result<usize, String> {
        ensure!(index < self.posted, "message {index} completed, which was not posted");
        ensure!(
            completion.len == 0 && completion.attached == Attachment::Nothing,
            "a send with {completion:?}"
        );
        self.same_source(index, &completion.memory)?;
        match (completion.outcome, self.failed) {
            (Ok(_), Some(failed)) => Err(format!("message {index} succeeded behind {failed:?}")),
            (Ok(done), None) => {
                self.silent(index)?;
                self.told = index;
                let message = self.message(index);
                ensure!(message.signalled, "message {index} is unsignalled: {completion:?}");
                let expected = if message.write.is_some() { Done::Written } else { Done::Sent };
                ensure!(done == expected, "message {index} was {done:?}");
                ensure!(message.wrong.is_none(), "{message:?} succeeded, which is wrong");
                self.told = index + 1;
                Ok(index + 1)
            }
            (Err(failure), None) => {
                self.silent(index)?;
                self.failed = Some((index, failure));
                self.next_failed = index + 1;
                Ok(index)
            }
            (Err(failure), Some((_, first))) => {
                ensure!(
                    index == self.next_failed,
                    "message {index} failed, while {} is next",
                    self.next_failed
                );
                ensure!(
                    failure == Failure::Flushed(cause_of(first)),
                    "message {index} behind {first:?}: {failure:?}"
                );
                self.next_failed = index + 1;
                Ok(0)
            }
        }
    }

    fn same_source(&self, index: usize, memory: &Memory) -> Check {
        let kind = self.message(index).source;
        ensure!(same_kind(kind, memory), "message {index} from {kind:?} came back as {memory:?}");
        if let Memory::Buf(buf) = memory {
            ensure!(**buf == *self.content(index), "the buffer of message {index} was changed");
        }
        Ok(())
    }

    /// A completion of a receive. How many messages are known to have arrived by it.
    pub fn receive_completed(
        &mut self,
        receive: usize,
        completion: &Completion,
        landing: &mut Image,
    ) -> Result<usize, String> {
        let next = self.received + self.receives_failed;
        ensure!(
            receive == next && receive < self.receives_posted,
            "receive {receive} completed, while {next} is next of {}",
            self.receives_posted
        );
        let (kind, room) = self.landing(receive);
        ensure!(
            same_kind(kind, &completion.memory),
            "receive {receive} into {kind:?} came back as {completion:?}"
        );
        let capacity = match &completion.memory {
            Memory::Buf(buf) => buf.capacity(),
            _ => room,
        };
        ensure!(capacity == room, "a buffer of {room} came back with {capacity}");
        match (completion.outcome, self.receive_failed) {
            (Ok(_), Some(failed)) => Err(format!("receive {receive} succeeded behind {failed:?}")),
            (Ok(done), None) => self.received(receive, done, completion, landing),
            (Err(failure), first) => {
                ensure!(
                    first.is_none_or(|first| failure == Failure::Flushed(cause_of(first))),
                    "receive {receive} behind {first:?}: {failure:?}"
                );
                if let Memory::Buf(buf) = &completion.memory {
                    let old = OLD.len().min(room);
                    ensure!(buf.len() == old, "{completion:?} should have {old} bytes");
                }
                ensure!(
                    completion.len == 0 && completion.attached == Attachment::Nothing,
                    "{completion:?}"
                );
                self.receive_failed.get_or_insert(failure);
                self.receives_failed += 1;
                Ok(0)
            }
        }
    }

    fn received(
        &mut self,
        receive: usize,
        done: Done,
        completion: &Completion,
        landing: &mut Image,
    ) -> Result<usize, String> {
        let index = self.takers.get(receive).copied();
        let index = index.filter(|&index| index < self.posted);
        let Some(index) = index else {
            return Err(format!("receive {receive} completed, and nothing was sent"));
        };
        let message = self.message(index);
        let (len, imm) = (message.len, message.imm.map(Imm));
        let whole = message.wrong.is_none();
        ensure!(whole, "{message:?} was received, which is wrong");
        ensure!(
            completion.len as usize == len && completion.attached.imm() == imm,
            "message {index} of {len} bytes with {imm:?} came as {completion:?}"
        );
        let write = message.write.is_some();
        let expected = if write { Done::ReceivedWrite } else { Done::Received };
        ensure!(done == expected, "message {index} was {done:?}");
        let content = if write { &[] } else { self.content(index) };
        match &completion.memory {
            Memory::Buf(buf) if write => {
                let old = &OLD[..OLD.len().min(buf.capacity())];
                ensure!(**buf == *old, "the receive of write {index} was changed");
            }
            Memory::Buf(buf) => {
                ensure!(**buf == *content, "message {index} arrived with other bytes");
            }
            _ if write => {}
            _ => self.land(receive, content, landing, "message", index)?,
        }
        self.received += 1;
        Ok(index + 1)
    }

    /// A message must lie where its receive says.
    fn land(
        &self,
        receive: usize,
        mut content: &[u8],
        landing: &mut Image,
        what: &str,
        index: usize,
    ) -> Check {
        for &(at, len) in &self.landings[receive] {
            let (now, rest) = content.split_at(len.min(content.len()));
            ensure!(
                landing.now(at, now.len()) == now,
                "{what} {index} arrived with other bytes at {at} of its segments"
            );
            landing.expected[at..at + now.len()].copy_from_slice(now);
            content = rest;
        }
        Ok(())
    }

    /// Notes that so many messages have arrived, and looks whether the writes among them have.
    pub fn prove(&mut self, arrived: usize, target: &Image) -> Check {
        for index in self.proven..arrived {
            let message = self.message(index);
            let Some(at) = message.write else { continue };
            let overlaps = |other: &Message| {
                other.write.is_some_and(|to| to < at + message.len && at < to + other.len)
            };
            let later = &self.stream.messages[index + 1..self.posted];
            if later.iter().any(overlaps) {
                continue;
            }
            ensure!(
                target.now(at, message.len) == self.content(index),
                "write {index} is complete, and not all of it is there"
            );
        }
        self.proven = self.proven.max(arrived);
        Ok(())
    }

    /// At the end: the receiver's memory must be as some number of whole messages left it, and some
    /// packets of the next, in agreement with all that was told.
    pub fn effects(&self, target: &mut Image, landing: &mut Image) -> Check {
        let next = self.takers.get(self.received).copied();
        let wrong = self.wrong.map_or(usize::MAX, |wrong| wrong.index);
        let most = self.posted.min(next.unwrap_or(usize::MAX)).min(wrong);
        ensure!(
            self.proven <= most,
            "{} messages arrived, and no more than {most} can have",
            self.proven
        );
        let now = target.now(0, target.region.len());
        let mut memory = Difference::new(&target.expected, &now);
        for index in 0..self.proven {
            self.apply(index, 0..self.message(index).packets(self.mtu), &mut memory);
        }
        let landed = self.landed(landing);
        for index in self.proven..=most {
            let mut packets = 0;
            let partial = self.partial(index);
            loop {
                let there = landed.iter().any(|&(taker, count)| match taker {
                    Some(taker) if taker == index => count == packets,
                    _ => count == 0,
                });
                if memory.count == 0 && there {
                    target.expected = now;
                    self.adopt(index, packets, landing);
                    return Ok(());
                }
                if packets == partial {
                    break;
                }
                self.apply(index, packets..packets + 1, &mut memory);
                packets += 1;
            }
            if index < most {
                let rest = packets..self.message(index).packets(self.mtu);
                self.apply(index, rest, &mut memory);
            }
        }
        let at = now.iter().zip(&memory.expected).position(|(now, expected)| now != expected);
        Err(format!(
            "memory is as no number of messages from {} to {most} leaves it: {} bytes differ, the \
             first at {at:?}, and of the receive {:?}",
            self.proven, memory.count, landed
        ))
    }

    /// How many packets of a message may be there without all of it.
    fn partial(&self, index: usize) -> usize {
        match (self.wrong, self.stream.messages.get(index)) {
            (Some(wrong), _) if wrong.index == index => wrong.packets,
            (_, Some(message)) if index < self.posted => message.packets(self.mtu) - 1,
            _ => 0,
        }
    }

    fn apply(&self, index: usize, packets: std::ops::Range<usize>, memory: &mut Difference<'_>) {
        let message = self.message(index);
        let (Some(to), mtu) = (message.write, self.mtu.bytes()) else { return };
        let range = packets.start * mtu..(packets.end * mtu).min(message.len);
        if !range.is_empty() {
            memory.write(to + range.start, &self.content(index)[range]);
        }
    }

    /// Which message's packets may lie in the receive that is next, and how many: every number that
    /// agrees with what is there.
    fn landed(&self, landing: &Image) -> Vec<(Option<usize>, usize)> {
        let posted = self.received < self.receives_posted;
        let taker = self.takers.get(self.received).copied();
        let taker = taker.filter(|&taker| posted && self.message(taker).write.is_none());
        let Some(taker) = taker else { return vec![(None, 0)] };
        let counts = 0..=self.partial(taker);
        if matches!(self.message(taker).landing, Kind::None | Kind::Buf) {
            return counts.map(|count| (Some(taker), count)).collect();
        }
        let content = self.content(taker);
        let pieces = &self.landings[self.received];
        let now: Vec<u8> = pieces.iter().flat_map(|&(at, len)| landing.now(at, len)).collect();
        let old = pieces.iter().flat_map(|&(at, len)| &landing.expected[at..at + len]);
        let old: Vec<u8> = old.copied().collect();
        let agrees = |&count: &usize| {
            let filled = (count * self.mtu.bytes()).min(content.len()).min(now.len());
            now[..filled] == content[..filled] && now[filled..] == old[filled..]
        };
        counts.filter(agrees).map(|count| (Some(taker), count)).collect()
    }

    /// Takes packets of a message that was not received whole for expected.
    fn adopt(&self, index: usize, packets: usize, landing: &mut Image) {
        let here = self.takers.get(self.received) == Some(&index);
        if !here || packets == 0 || self.message(index).write.is_some() {
            return;
        }
        let mut content = self.content(index);
        content = &content[..content.len().min(packets * self.mtu.bytes())];
        for &(at, len) in &self.landings[self.received] {
            let (now, rest) = content.split_at(len.min(content.len()));
            landing.expected[at..at + now.len()].copy_from_slice(now);
            content = rest;
        }
    }
}

pub fn cause_of(failure: Failure) -> Cause {
    match failure {
        Failure::Broke(cause) | Failure::Flushed(cause) => cause,
    }
}

fn same_kind(kind: Kind, memory: &Memory) -> bool {
    match memory {
        Memory::None => kind == Kind::None,
        Memory::Buf(_) => kind == Kind::Buf,
        Memory::Segment(_) => kind == Kind::Segment,
        Memory::List(_) => kind == Kind::List,
    }
}

/// What memory should be, and in how many bytes it is not.
struct Difference<'a> {
    expected: Vec<u8>,
    now: &'a [u8],
    count: usize,
}

fn differing(a: &[u8], b: &[u8]) -> usize {
    a.iter().zip(b).filter(|(a, b)| a != b).count()
}

impl<'a> Difference<'a> {
    fn new(expected: &[u8], now: &'a [u8]) -> Self {
        Self { expected: expected.to_vec(), now, count: differing(expected, now) }
    }

    fn write(&mut self, at: usize, bytes: &[u8]) {
        let range = at..at + bytes.len();
        let now = &self.now[range.clone()];
        self.count -= differing(&self.expected[range.clone()], now);
        self.expected[range].copy_from_slice(bytes);
        self.count += differing(bytes, now);
    }
}
