//! What both directions of a link need: the connection, the peer's window, and how the link ends.

use std::io;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, OnceLock};

use doorbell_verbs::{Connection, ConnectionState};

use super::question::Question;
use super::window::Window;
use crate::error::Over;
use crate::shared::Shared;

/// The state of a link that both of its directions use.
pub(crate) struct Common {
    pub shared: Arc<Shared>,
    pub connection: Connection,
    /// The peer's name, for errors. Set when the connection is established.
    peer: OnceLock<String>,
    /// How many bytes the peer may still send.
    pub window: Window,
    /// For how long this end has waited for an answer of the peer, if it waits for one.
    pub question: Question,
    /// Whether the connection is over and all its completions were handled.
    drained: AtomicBool,
}

impl Common {
    pub fn new(shared: &Arc<Shared>, connection: Connection) -> Self {
        Self {
            shared: shared.clone(),
            connection,
            peer: OnceLock::new(),
            window: Window::new(shared.config.window()),
            question: Question::default(),
            drained: AtomicBool::new(false),
        }
    }

    /// Sets the peer's name, once the connection is established.
    pub fn set_peer(&self, name: String) {
        let _ = self.peer.set(name);
    }

    /// Returns whether the connection has been established.
    pub fn is_open(&self) -> bool {
        self.peer.get().is_some()
    }

    /// Returns the peer's name.
    pub fn peer(&self) -> &str {
        self.peer.get().map_or("a peer that is just being connected", String::as_str)
    }

    /// Notes that bytes were sent, which the peer may answer.
    pub fn note_sent(&self) {
        if self.is_probed() {
            self.question.ask();
        }
    }

    /// Returns whether the peer is probed while this end waits for an answer. A device that loses
    /// nothing reports the end of a peer by itself, so its peers are not probed.
    pub fn is_probed(&self) -> bool {
        !self.shared.nic.capabilities().lossless
    }

    /// Returns the error of a request that the connection has refused because it is over.
    pub fn connection_error(&self, writes: bool) -> io::Error {
        self.over().error(self.peer(), writes)
    }

    /// Returns why the connection is over.
    pub fn over(&self) -> Over {
        match self.connection.state() {
            ConnectionState::Ended(ending) => ending.into(),
            _ => Over::Left,
        }
    }

    /// Notes that the connection is over and all its completions were handled.
    pub fn set_drained(&self) {
        self.drained.store(true, Ordering::Release);
    }

    /// Returns whether the connection is over and all its completions were handled.
    pub fn is_drained(&self) -> bool {
        self.drained.load(Ordering::Acquire)
    }
}
