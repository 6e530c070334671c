//! Messages that have come, and the receives that they belong to.

use std::sync::{Arc, Mutex};

use bytes::Bytes;
use doorbell_verbs::floor::locked;

use super::places::ReceiveId;
use crate::matching::{Source, Taken};
use crate::tagged::pull::{Pulled, Target};
use crate::tagged::wire::Description;

/// A message that has come, before a program has it.
#[derive(Debug)]
pub struct Arrived {
    pub len: usize,
    pub content: Content,
    /// The number by which the sender waits for the message's end; zero if it does not wait, or was
    /// told of it.
    pub number: u64,
}

/// The body of a message that has come.
#[derive(Debug)]
pub enum Content {
    Here(Bytes),
    /// A long body that was pulled into the memory of the receive.
    InPlace,
    /// A long body, to be pulled from its sender.
    There(Box<Description>),
    /// A long body that is being pulled.
    Coming(Arc<Pull>),
    /// A long body that can't be pulled, and why.
    Lost(Box<str>),
}

impl Arrived {
    /// A short message, whose sender does not wait for its end.
    pub fn short(body: Bytes) -> Self {
        Self { len: body.len(), content: Content::Here(body), number: 0 }
    }

    /// Returns the message as it is kept until a receive takes it: a short body that holds much
    /// more memory than its bytes is copied.
    pub fn kept(mut self) -> Self {
        if let Content::Here(body) = &mut self.content {
            *body = Bytes::copy_from_slice(body);
        }
        self
    }
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

/// A long body that is being pulled, and the receive that waits for it. If the receive is dropped,
/// the message waits for another with its body under way.
#[derive(Default, Debug)]
pub struct Pull(Mutex<Pulling>);

#[derive(Default, Debug)]
struct Pulling {
    wanted: Option<(ReceiveId, Met)>,
    /// The body, or why there is none, if no receive waited for it when it was known.
    outcome: Option<Result<Pulled, String>>,
}

impl Pull {
    /// Has a receive wait for the body.
    ///
    /// # Errors
    /// Returns the message if it is there already, or known to be lost.
    pub fn is_wanted(&self, by: ReceiveId, mut met: Met) -> Result<(), Met> {
        let mut pulling = locked(&self.0);
        if let Some(outcome) = pulling.outcome.take() {
            met.message.content = Content::of(outcome);
            return Err(met);
        }
        pulling.wanted = Some((by, met));
        Ok(())
    }

    /// Takes in the body, or why there is none. Returns the receive that waits for the message,
    /// with the message.
    pub fn ends(&self, outcome: Result<Pulled, String>) -> Option<(ReceiveId, Met)> {
        let mut pulling = locked(&self.0);
        let Some((receive, mut met)) = pulling.wanted.take() else {
            pulling.outcome = Some(outcome);
            return None;
        };
        met.message.content = Content::of(outcome);
        Some((receive, met))
    }

    /// Ends the pull because the endpoint has ended. Returns the receive that waits for it.
    pub fn is_given_up(&self) -> Option<ReceiveId> {
        locked(&self.0).wanted.take().map(|(receive, _)| receive)
    }

    /// Takes back the message from a receive that waits for the body no more.
    pub fn take_back(&self) -> Option<Met> {
        locked(&self.0).wanted.take().map(|(_, met)| met)
    }
}

impl Content {
    fn of(outcome: Result<Pulled, String>) -> Self {
        match outcome {
            Ok(Pulled::Body(body)) => Self::Here(body),
            Ok(Pulled::InPlace) => Self::InPlace,
            Err(why) => Self::Lost(why.into()),
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
    /// The memory of the receive, if the receive has some.
    pub target: Option<Arc<Target>>,
}
