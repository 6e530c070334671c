//! Messages that have come, and the receives that they belong to.

use std::sync::{Arc, Mutex, Weak};

use bytes::{Bytes, BytesMut};
use doorbell_verbs::floor::locked;

use crate::matching::{Source, Taken};
use crate::slot::Slot;
use crate::tagged::error::ReceiveError;
use crate::tagged::wire::Description;

/// A message that has come, before a program has it.
#[derive(Debug)]
pub struct Arrived {
    pub bits: u64,
    pub len: usize,
    pub content: Content,
    pub from: Sender,
    /// The number by which the sender waits for the message's end; zero if it does not wait, or was
    /// told of it.
    pub number: u64,
}

/// The body of a message that has come.
#[derive(Debug)]
pub enum Content {
    Here(Bytes),
    /// A long body, to be pulled from its sender.
    There(Description),
    /// A long body that is being pulled.
    Coming(Arc<Pull>),
    /// A long body that can't be pulled, and why.
    Lost(String),
}

impl Arrived {
    /// Returns the message as it is kept until a receive takes it: a short body that holds much
    /// more memory than its bytes is copied.
    pub fn kept(mut self) -> Self {
        if let Content::Here(body) = &mut self.content {
            *body = Bytes::copy_from_slice(body);
        }
        self
    }
}

/// The sender of a message.
#[derive(Clone, Debug)]
pub struct Sender {
    pub source: Source,
    /// The name by which others connect to the sender, as far as it is known.
    pub name: Option<Arc<str>>,
}

/// How a message begins that comes.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Begins {
    /// The message was sent within its sender's window.
    Sent { bits: u64 },
    /// The message was held, offered and taken.
    Taken { order: u64 },
}

/// A message that a receive has met. It is the program's when the program takes it, and waits for
/// another receive if this one is dropped before.
pub type Met = Taken<Arrived>;

/// The place of a receive's outcome, and the room that the receive has.
#[derive(Debug)]
pub struct ReceiveSlot {
    pub outcome: Slot<Result<Met, ReceiveError>>,
    pub room: usize,
    /// The pieces into which the body is scattered, until the program takes the message.
    pieces: Mutex<Vec<BytesMut>>,
    /// The pull of the receive's message, if it has met a long one.
    pull: Mutex<Weak<Pull>>,
}

impl ReceiveSlot {
    /// The slot of a receive that takes at most `room` bytes.
    pub fn of(room: usize) -> Self {
        let (outcome, pieces, pull) = Default::default();
        Self { outcome, room, pieces, pull }
    }

    /// The slot of a receive that scatters the body into pieces with this much room.
    pub fn into_pieces(pieces: Vec<BytesMut>) -> Self {
        let room = pieces.iter().map(|piece| piece.capacity() - piece.len()).sum();
        Self { pieces: pieces.into(), ..Self::of(room) }
    }

    /// Scatters a body into the pieces of the receive. Returns the pieces, and what none of them
    /// had room for.
    pub fn scatter(&self, mut body: Bytes) -> (Vec<BytesMut>, Bytes) {
        let mut pieces = std::mem::take(&mut *locked(&self.pieces));
        for piece in &mut pieces {
            let part = body.split_to(body.len().min(piece.capacity() - piece.len()));
            piece.extend_from_slice(&part);
        }
        (pieces, body)
    }

    /// Takes back the message whose body is being pulled for the receive, if one is. The receive
    /// gets it no more.
    pub fn take_back(&self) -> Option<Met> {
        let pull = locked(&self.pull).upgrade()?;
        locked(&pull.0).take_back()
    }
}

/// A long body that is being pulled, and the receive that waits for it. If the receive is dropped,
/// the message waits for another with its body under way.
#[derive(Default, Debug)]
pub struct Pull(Mutex<Pulling>);

#[derive(Default, Debug)]
struct Pulling {
    wanted: Option<(Arc<ReceiveSlot>, Met)>,
    /// The body, or why there is none, if no receive waited for it when it was known.
    outcome: Option<Result<Bytes, String>>,
}

impl Pull {
    /// Has a receive wait for the body.
    ///
    /// # Errors
    /// Returns the message if it is there already, or known to be lost.
    pub fn is_wanted(self: &Arc<Self>, by: &Arc<ReceiveSlot>, mut met: Met) -> Result<(), Met> {
        let mut pulling = locked(&self.0);
        if let Some(outcome) = pulling.outcome.take() {
            met.message.content = Content::of(outcome);
            return Err(met);
        }
        *locked(&by.pull) = Arc::downgrade(self);
        pulling.wanted = Some((by.clone(), met));
        Ok(())
    }

    /// Takes in the body, or why there is none. Returns the receive that waits for the message,
    /// with the message.
    pub fn ends(&self, outcome: Result<Bytes, String>) -> Option<(Arc<ReceiveSlot>, Met)> {
        let mut pulling = locked(&self.0);
        let Some((slot, mut met)) = pulling.wanted.take() else {
            pulling.outcome = Some(outcome);
            return None;
        };
        met.message.content = Content::of(outcome);
        Some((slot, met))
    }

    /// Ends the pull because the endpoint has ended. Returns the receive that waits for it.
    pub fn is_given_up(&self) -> Option<Arc<ReceiveSlot>> {
        locked(&self.0).wanted.take().map(|(slot, _)| slot)
    }
}

impl Pulling {
    fn take_back(&mut self) -> Option<Met> {
        self.wanted.take().map(|(_, met)| met)
    }
}

impl Content {
    fn of(outcome: Result<Bytes, String>) -> Self {
        match outcome {
            Ok(body) => Self::Here(body),
            Err(why) => Self::Lost(why),
        }
    }
}

/// A long body that is to be pulled from its sender.
#[derive(Debug)]
pub struct PullJob {
    pub pull: Arc<Pull>,
    pub source: Source,
    /// The number by which the sender waits for the message's end.
    pub number: u64,
    pub len: usize,
    pub description: Description,
}
