//! What must come of a stream of messages, from one end of a connection to the other.

mod answers;
mod effects;
mod receives;

use doorbell_core::nic::{Attachment, Cause, Completion, Done, Failure, KeyError, Memory};
use doorbell_core::wire::PathMtu;

use super::dice;
use super::memory::{Image, Pieces};
use super::message::{Kind, Message, Stream, What};
use super::spoil::BadKey;
use answers::Peer;

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
    /// Whether that is only found out by its answer, when those behind it may have arrived.
    pub late: bool,
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
    /// Where what is sent lies, or what is read comes to lie, and where it is received.
    pub sources: Vec<Pieces>,
    pub landings: Vec<Pieces>,
    peer: Peer,

    /// How many sends are wanted of the program, and how many were posted.
    pub wanted: usize,
    pub posted: usize,
    /// The next that a success may be told of.
    told: usize,
    /// The first that failed, and the next whose failure is to be told.
    pub failed: Option<(usize, Failure)>,
    next_failed: usize,
    /// The one that was told that it broke the connection.
    pub broke: Option<usize>,

    pub receives_wanted: usize,
    pub receives_posted: usize,
    pub received: usize,
    pub receive_failed: Option<Failure>,
    receives_failed: usize,

    /// How many messages are known to have arrived.
    pub proven: usize,
    /// Whether what it writes was mapped.
    pub mapped: bool,
    /// Whether answers may come in any order.
    pub selective: bool,
}

pub fn key_error(bad: BadKey, key: u32) -> KeyError {
    match bad {
        BadKey::Unknown | BadKey::Revoked | BadKey::Replaced | BadKey::Invalidated => {
            KeyError::Unknown(key)
        }
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
        let contents = messages.clone().map(|message| match message.reads() {
            true => Vec::new(),
            false => dice::bytes(message.number, message.len),
        });
        let takers = messages.enumerate().filter(|(_, message)| message.takes_receive());
        Self {
            salt,
            mtu,
            takers: takers.map(|(index, _)| index).collect(),
            wrong: None,
            contents: contents.collect(),
            sources: Vec::new(),
            landings: Vec::new(),
            peer: Peer::default(),
            wanted: 0,
            posted: 0,
            told: 0,
            failed: None,
            next_failed: 0,
            broke: None,
            receives_wanted: 0,
            receives_posted: 0,
            received: 0,
            receive_failed: None,
            receives_failed: 0,
            proven: 0,
            mapped: false,
            selective: false,
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

    pub fn is_wrong(&self, index: usize) -> bool {
        self.wrong.is_some_and(|wrong| wrong.index == index)
    }

    /// Takes messages as complete up to `until`, of which none was to be told.
    pub fn complete(&mut self, until: usize, fetched: &mut Image) -> Check {
        ensure!(
            (self.told..=self.posted).contains(&until),
            "message {until} completed, while {} is next and {} are posted",
            self.told,
            self.posted
        );
        for index in self.told..until {
            ensure!(!self.message(index).signalled, "no completion of message {index}");
            ensure!(!self.is_wrong(index), "message {index} succeeded, which is wrong");
            self.bring(index, fetched)?;
        }
        self.told = until;
        Ok(())
    }

    /// A completion of a send. How many messages are known to have arrived by it.
    pub fn sent(
        &mut self,
        index: usize,
        completion: &Completion,
        fetched: &mut Image,
    ) -> Result<usize, String> {
        ensure!(index < self.posted, "message {index} completed, which was not posted");
        ensure!(completion.attached == Attachment::Nothing, "a send with {completion:?}");
        self.same_source(index, completion)?;
        match (completion.outcome, self.failed) {
            (Ok(_), Some(failed)) => Err(format!("message {index} succeeded behind {failed:?}")),
            (Ok(done), None) => {
                self.complete(index, fetched)?;
                let message = self.message(index);
                ensure!(message.signalled, "message {index} is unsignalled: {completion:?}");
                let expected = self.done(index);
                ensure!(done == expected, "message {index} was {done:?}, not {expected:?}");
                ensure!(!self.is_wrong(index), "{message:?} succeeded, which is wrong");
                self.bring(index, fetched)?;
                self.told = index + 1;
                Ok(index + 1)
            }
            (Err(failure), None) => {
                self.complete(index, fetched)?;
                self.failed = Some((index, failure));
                self.failed_by(index, failure);
                Ok(index)
            }
            (Err(failure), Some((first, why))) => {
                ensure!(
                    index == self.next_failed,
                    "message {index} failed, while {} is next",
                    self.next_failed
                );
                // One whose answer was lost is flushed because of another behind it.
                let unanswered = self.broke.is_none() && self.message(first).asks();
                let cause = cause_of(why);
                ensure!(
                    failure == Failure::Flushed(cause)
                        || unanswered && failure == Failure::Broke(cause),
                    "message {index} behind {why:?}: {failure:?}"
                );
                self.failed_by(index, failure);
                Ok(0)
            }
        }
    }

    fn failed_by(&mut self, index: usize, failure: Failure) {
        self.next_failed = index + 1;
        if let Failure::Broke(_) = failure {
            self.broke = Some(index);
        }
    }

    fn done(&self, index: usize) -> Done {
        match self.message(index).what {
            What::Send => Done::Sent,
            What::Write { .. } => Done::Written,
            What::Read { .. } => Done::Read,
            What::Add { .. } | What::Swap { .. } => {
                Done::Atomic { before: self.before(index).unwrap_or_default() }
            }
        }
    }

    /// The memory that came back must be what went, and what was read be in it.
    fn same_source(&self, index: usize, completion: &Completion) -> Check {
        let (message, memory) = (self.message(index), &completion.memory);
        let kind = message.source;
        ensure!(same_kind(kind, memory), "message {index} from {kind:?} came back as {memory:?}");
        let read = message.reads() && completion.outcome.is_ok();
        let len = if read { message.len } else { 0 };
        ensure!(completion.len as usize == len, "message {index} of {len} bytes: {completion:?}");
        match memory {
            Memory::Buf(buf) if read => {
                ensure!(buf.len() == len, "read {index} brought {} bytes of {len}", buf.len());
                self.may_bring(index, buf)
            }
            Memory::Buf(buf) if message.reads() => {
                let old = OLD.len().min(message.len);
                ensure!(buf.len() == old, "{completion:?} should have {old} bytes");
                Ok(())
            }
            Memory::Buf(buf) => {
                ensure!(**buf == *self.content(index), "the buffer of message {index} was changed");
                Ok(())
            }
            _ => Ok(()),
        }
    }

    /// Notes that so many messages have arrived, and looks whether the writes among them have.
    pub fn prove(&mut self, arrived: usize, target: &Image) -> Check {
        for index in self.proven..arrived {
            let message = self.message(index);
            let Some(at) = message.writes_to() else { continue };
            let overlaps = |other: &Message| {
                other.writes_to().is_some_and(|to| to < at + message.len && at < to + other.len)
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
}

pub fn cause_of(failure: Failure) -> Cause {
    match failure {
        Failure::Broke(cause) | Failure::Flushed(cause) => cause,
    }
}

pub fn same_kind(kind: Kind, memory: &Memory) -> bool {
    match memory {
        Memory::None => kind == Kind::None,
        Memory::Buf(_) => kind == Kind::Buf,
        Memory::Segment(_) => kind == Kind::Segment,
        Memory::List(_) => kind == Kind::List,
    }
}
