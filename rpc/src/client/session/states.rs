//! The states of a session and of its calls, and every transition between them.
//!
//! A [`Standing`] is the state of a session. Its methods are the transitions, under one lock:
//!
//! ```text
//!            begins                opened
//!     Idle ──────────► Connecting ─────────► Up
//!      ▲                │       ▲             │ ▲
//!      │         failed │       │ begins      │ │
//!      │                ▼       └─────────────┤ │
//!      │               Gone ──────────────────┼─┘ opened
//!      │                                      │
//!      └──────────────────────────────────────┘ breaks, left_by
//!
//!     any state ──────► Over
//!                ends
//! ```
//!
//! A call that finds no connection has the session begin to connect, also when there is a
//! connection that has ended. Attempts that fail leave the session connecting while the server may
//! be there, and the server counts as gone when it was silent for too long or refuses. A connection
//! breaks when sending over it fails, and is left by its server when that says that it shuts down.
//!
//! A [`Progress`] is at the [`Stage`] of one call, which tells what the call waits for:
//!
//! ```text
//!     Queued ─► Connection ─► Bulk ─► MemoryThere ─► Written ─► Answer ─► MemoryHere ─► Received
//!                    ▲        ╰─── of a long request ────╯         │      ╰─ of a long response ╯
//!                    └──────────── lost, and sent again ───────────┘
//! ```
//!
//! An attempt without a response ends with a [`Failure`], of which
//! [`History::lost`](super::history::History::lost) decides whether the call is sent again.
//!
//! The wait for a credit, before the request is sent, is no stage: Active Messages bound that wait,
//! and their error tells which requests have the credits.

use std::sync::Arc;
use std::sync::atomic::{AtomicU8, AtomicUsize, Ordering};

use doorbell_am::{Name, Peer};

use super::connection::Connection;
use crate::status::{Code, Status};

/// How a session stands with its server.
enum State {
    /// No connection is there or being made. The next call begins to make one.
    Idle,
    /// A task makes attempts to connect, and the server may be there: calls wait. The status is
    /// that of the latest attempt that has failed, if one has.
    Connecting(Option<Status>),
    /// The server is gone for the reason in the status. Calls that do not wait for the server fail,
    /// while the task goes on making attempts.
    Gone(Status),
    /// A connection is there, or has ended since. Then the next call begins to make another.
    Up(Arc<Connection>),
    /// The channel has been dropped, or the runtime has ended that served the channel.
    Over,
}

/// The state of a session, with what the session keeps from one connection to the next.
pub struct Standing {
    state: State,
    /// The server's number of the session, to go on with; zero before the first connection.
    number: u64,
    /// The connection whose server has said that it shuts down. Calls may still wait for answers.
    left: Option<Peer>,
}

impl Standing {
    /// The state of a session that has not begun to connect.
    pub fn idle() -> Self {
        Self { state: State::Idle, number: 0, left: None }
    }

    /// The connection, if there is one that has not ended.
    pub fn connection(&self) -> Option<&Arc<Connection>> {
        match &self.state {
            State::Up(connection) if connection.is_up() => Some(connection),
            _ => None,
        }
    }

    /// The connection, whether or not it has ended.
    pub fn latest(&self) -> Option<Arc<Connection>> {
        match &self.state {
            State::Up(connection) => Some(connection.clone()),
            _ => None,
        }
    }

    /// Whether a balancer need not wait: there is a connection, or there will never be one.
    pub fn is_settled(&self) -> bool {
        matches!(self.state, State::Up(_) | State::Over)
    }

    /// Whether the session has ended for good.
    pub fn is_over(&self) -> bool {
        matches!(self.state, State::Over)
    }

    /// The outcome for a call to the server `name` that looks for a connection; `None` if the call
    /// is to wait for the next state. With `waits`, calls wait while the server is gone, unless the
    /// server refuses this client.
    pub fn outcome(&self, waits: bool, name: &Name) -> Option<Result<Arc<Connection>, Status>> {
        Some(match &self.state {
            State::Up(connection) => Ok(connection.clone()),
            State::Gone(why) if why.code() != Code::Unavailable => Err(why.clone()),
            State::Gone(why) if !waits => {
                let why = why.message();
                Err(Status::unavailable(format!("there is no connection to {name}: {why}")))
            }
            State::Over => Err(runtime_ended(name)),
            State::Idle | State::Connecting(_) | State::Gone(_) => return None,
        })
    }

    /// The status of the latest attempt to connect that has failed, if no other has succeeded.
    pub fn last_failure(&self) -> Option<&Status> {
        match &self.state {
            State::Connecting(last) => last.as_ref(),
            State::Gone(why) => Some(why),
            State::Idle | State::Up(_) | State::Over => None,
        }
    }

    /// The number of the session that the next connection goes on with, and the connection that the
    /// server has left.
    pub fn before(&self) -> (u64, Option<Peer>) {
        (self.number, self.left.clone())
    }

    /// Begins to make a connection, unless there is one or one is being made. Returns whether the
    /// caller has to start the task that makes attempts.
    pub fn begins(&mut self) -> bool {
        let begins = match &self.state {
            State::Idle => true,
            State::Up(connection) => !connection.is_up(),
            State::Connecting(_) | State::Gone(_) | State::Over => false,
        };
        if begins {
            self.state = State::Connecting(None);
        }
        begins
    }

    /// Notes that an attempt to connect has failed, and whether the server counts as gone. Returns
    /// whether it does.
    pub fn failed(&mut self, why: Status, is_gone: bool) -> bool {
        if !self.is_over() {
            self.state = if is_gone { State::Gone(why) } else { State::Connecting(Some(why)) };
        }
        is_gone
    }

    /// Notes that there is a connection. Returns whether calls may use it: not if the server has
    /// said meanwhile that it shuts down, or the session is over.
    pub fn opened(&mut self, connection: &Arc<Connection>) -> bool {
        if self.left.as_ref() == Some(&connection.peer) {
            connection.leave();
            return false;
        }
        if self.is_over() {
            return false;
        }
        self.number = connection.welcome.session;
        self.state = State::Up(connection.clone());
        true
    }

    /// Notes that sending over a connection has failed, so that the next call needs another one.
    /// Returns whether the session had this connection.
    pub fn breaks(&mut self, broken: &Arc<Connection>) -> bool {
        let had = matches!(&self.state, State::Up(connection) if Arc::ptr_eq(connection, broken));
        if had {
            self.state = State::Idle;
        }
        had
    }

    /// Notes that the server of a connection shuts down, so that no further call may get this
    /// connection. Returns whether the session had this connection.
    pub fn left_by(&mut self, server: &Peer) -> bool {
        // An attempt that is about to end finds the peer here, or has ended.
        self.left = Some(server.clone());
        match &self.state {
            State::Up(connection) if connection.peer == *server => {
                connection.leave();
                self.state = State::Idle;
                true
            }
            _ => false,
        }
    }

    /// Ends the session for good. Returns true: whoever waits is to learn of that.
    pub fn ends(&mut self) -> bool {
        self.state = State::Over;
        true
    }
}

/// The status of calls of a channel whose runtime has ended, or whose NIC was closed.
#[cold]
pub fn runtime_ended(name: &Name) -> Status {
    Status::unavailable(format!(
        "the runtime has ended in which the channel to {name} was made, or its NIC was closed, and the \
         channel with it: make channels in a runtime that lasts for as long as they are used"
    ))
}

/// A stage of a call: the thing that the call is waiting for.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
#[repr(u8)]
pub enum Stage {
    /// A permit to be one of so many calls in flight.
    Queued,
    /// The connection to the server.
    Connection,
    /// The bulk connection for the long body of the request.
    Bulk,
    /// Memory of the server for the long body of the request.
    MemoryThere,
    /// The end of writing the long body of the request.
    Written,
    /// The answer of the server.
    Answer,
    /// Memory of the channel for the long body of the response.
    MemoryHere,
    /// The long body of the response.
    Received,
}

impl Stage {
    const ALL: [Self; 8] = [
        Self::Queued,
        Self::Connection,
        Self::Bulk,
        Self::MemoryThere,
        Self::Written,
        Self::Answer,
        Self::MemoryHere,
        Self::Received,
    ];

    /// Whether the call has got as far as the long body of its response.
    pub fn is_receiving(self) -> bool {
        matches!(self, Self::MemoryHere | Self::Received)
    }
}

/// The stage that a call has reached, and the number that the stage is about: the permits of the
/// channel, or the bytes of a body.
pub struct Progress {
    stage: AtomicU8,
    count: AtomicUsize,
}

impl Progress {
    /// The progress of a call that waits for one of so many permits.
    pub fn queued(permits: usize) -> Self {
        Self { stage: AtomicU8::new(Stage::Queued as u8), count: AtomicUsize::new(permits) }
    }

    /// Notes that the call has reached a stage, which is about so many bytes.
    pub fn reaches(&self, stage: Stage, bytes: usize) {
        self.count.store(bytes, Ordering::Relaxed);
        self.stage.store(stage as u8, Ordering::Relaxed);
    }

    /// The stage that the call has reached.
    pub fn stage(&self) -> Stage {
        Stage::ALL[usize::from(self.stage.load(Ordering::Relaxed))]
    }

    /// The status of a call to the server `name` whose deadline has passed at this stage.
    /// `unconnected` tells why there is no connection.
    #[cold]
    pub fn too_late(&self, name: &Name, unconnected: impl FnOnce() -> String) -> Status {
        let (stage, count) = (self.stage(), self.count.load(Ordering::Relaxed));
        let late = "before the call's time was over";
        let status = Status::deadline_exceeded(match stage {
            Stage::Queued => format!(
                "the call waited for one of the {count} that may be in flight to {name} until its time was \
                 over"
            ),
            Stage::Connection => unconnected(),
            Stage::Bulk => format!(
                "there was no connection to {name} for bodies that are too long for messages {late}"
            ),
            Stage::MemoryThere => format!(
                "the server has lent no memory for the {count} bytes of the request {late}: other bodies use \
                 up its `body_memory`, or it is overloaded"
            ),
            Stage::Written => format!("the {count} bytes of the request were not all sent {late}"),
            Stage::Answer => format!("the server has not answered {late}"),
            Stage::MemoryHere => format!(
                "there was no memory for the {count} bytes of the response {late}: other responses that are \
                 on their way, and messages of streams that the program has not read, use up the channel's \
                 `body_memory`"
            ),
            Stage::Received => format!("the {count} bytes of the response had not all come {late}"),
        });
        match stage {
            Stage::Queued | Stage::Connection | Stage::Bulk => status.not_run(),
            _ => status,
        }
    }
}

/// An attempt of a call that has ended without a response, and whether the call may be sent again
/// over another connection.
pub enum Failure {
    /// The request was never sent, or the server has refused it since it shuts down, so the call
    /// may be sent again.
    NotBegun(Status),
    /// The connection ended after the request was sent. The server may or may not have handled the
    /// call, so only an idempotent call, or one that the same session remembers, may be sent again.
    OutcomeUnknown(Status),
    /// The call has its outcome, and is not sent again.
    Final(Status),
}
