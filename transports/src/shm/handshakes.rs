//! Handshakes, by which links come about.
//!
//! A device that has joined listens by its name. Another device that wants a link calls: it
//! connects, and says hello. The device that is called looks who the caller is, makes the memory,
//! and sends the memory with its answer. The caller uses the memory only after it has seen the
//! seals. The socket stays open, and its end tells each side that the other is gone, even if that
//! was killed.
//!
//! There is one link between two names. If both devices call each other at once, the call of the
//! lesser name goes on: the other device accepts that call and forgets its own.

use std::collections::VecDeque;
use std::io;
use std::time::Duration;

use doorbell_core::nic::Way;
use doorbell_core::time::Time;

use crate::holder::Holder;
use crate::sys::unix::{Listener, Reserve, Socket};

/// How long a peer may take to answer a call.
pub(super) const PATIENCE: Duration = Duration::from_secs(5);

/// The first number by which a socket is watched that belongs to no link. A link's socket is
/// watched by the number of the link.
pub(super) const OTHERS: u64 = 1 << 32;
/// The number by which the listener is watched.
pub(super) const LISTENER: u64 = OTHERS;

/// The handshakes of a device that are under way.
pub(super) struct Handshakes {
    pub name: Box<str>,
    pub listener: Option<Listener>,
    /// A descriptor that is closed for a moment, when no other is left, to accept a caller and tell
    /// it so.
    pub reserve: Option<Reserve>,
    /// True while no callers are accepted, since too many descriptors that strangers have passed
    /// wait to be closed.
    pub shut: bool,
    /// The user and the process of the stranger who called last.
    pub stranger: Option<Holder>,
    /// The most lines of each ring.
    pub lines: u32,
    /// Callers that have not said hello yet, by the numbers by which their sockets are watched.
    pub callers: VecDeque<(u64, Socket)>,
    pub calls: Vec<Call>,
    /// The number of the last socket that belonged to neither a link nor the listener.
    last: u64,
    /// True if a peer is to be called again, since too many callers were waiting there.
    pub busy: bool,
}

/// Why a call could not be made.
pub(super) enum NotCalled {
    /// No process listens by the name that was called.
    Nobody,
    /// A process of another user listens by the name that was called.
    Stranger(Holder),
    /// Too many callers have been waiting at the device that was called, for too long.
    Busy,
    System(io::Error),
}

/// A call that is not answered yet.
pub(super) struct Call {
    /// The number by which the socket is watched.
    pub number: u64,
    pub name: Box<str>,
    pub since: Time,
    /// The socket, while its answer is awaited. `None` of a call that has crossed the peer's own
    /// call, which goes on instead.
    pub socket: Option<Socket>,
    /// True if the call is to be made again, since too many callers were waiting at the peer.
    pub again: bool,
    pub failed: Option<CallError>,
}

/// Why a call led to no link.
pub(super) enum CallError {
    /// The peer has not answered, or its answer makes no sense.
    There(&'static str),
    /// The peer has refused a link.
    Refused(&'static str),
    /// The peer has refused a link, since this process is another user's.
    Stranger(Holder),
    /// An error on this side.
    Here(io::Error),
}

impl Handshakes {
    pub fn new(name: &str, lines: u32) -> Self {
        Self {
            name: name.into(),
            listener: None,
            reserve: None,
            shut: false,
            stranger: None,
            lines,
            callers: VecDeque::new(),
            calls: Vec::new(),
            last: LISTENER,
            busy: false,
        }
    }

    /// Returns a number by which to watch a socket that belongs to no link.
    pub fn next_number(&mut self) -> u64 {
        self.last += 1;
        self.last
    }

    /// Records a call whose answer is awaited or, without a socket, one that is to be made again.
    pub fn await_answer(&mut self, number: u64, name: &str, since: Time, socket: Option<Socket>) {
        let (name, again) = (name.into(), socket.is_none());
        self.calls.push(Call { number, name, since, socket, again, failed: None });
    }

    /// Returns the error of a call that has failed, and forgets the call; `None` while the call
    /// goes on.
    pub fn outcome(&mut self, at: usize, now: Time) -> Result<Option<Way>, CallError> {
        let call = &mut self.calls[at];
        let late = now.since(call.since) > PATIENCE;
        let silent = CallError::There("it is there, but has not answered for 5 s");
        let failed = call.failed.take().or(late.then_some(silent));
        let Some(failed) = failed else { return Ok(None) };
        self.calls.remove(at);
        Err(failed)
    }
}

/// Returns the abstract name by which a device listens.
pub(super) fn listening(name: &str) -> Vec<u8> {
    ["doorbell/", name].concat().into_bytes()
}
