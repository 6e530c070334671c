//! Encryption of connections, as a driver of the connection manager and of the NIC needs it: who
//! answers a handshake's messages, and what follows from them.
//!
//! The cipher and the handshake are another crate's: it implements these traits. A driver carries the
//! messages:
//!
//! | message | by | made by | taken by |
//! |---|---|---|---|
//! | first | REQ | [`Encrypt::request`] | [`Encrypt::answer`] |
//! | second | REP | [`Encrypt::answer`] | [`Requesting::confirm`] |
//! | third, with the requester's private data | RTU | [`Requesting::confirm`] | [`Answering::identify`] |
//! | the acceptor's private data | second REP | [`Session::seal_reply`] | [`Session::open_reply`] |
//!
//! Both sides give a handshake the same bytes of what is in the clear: the request with all its terms
//! and offers, and what was agreed upon. So nobody can change these on their way.

use std::fmt;
use std::sync::{Arc, Mutex, PoisonError};

use crate::cipher::Keys;
use crate::cm::{Ending, Extensions, Guard, Reply, Request};
use crate::wire::cm::{Mad, Rej, Rep, Req};
use crate::wire::{CaGuid, CommId, TransactionId};

/// Why a handshake came to nothing. The text says what was tried, what was found, and what to do.
pub type EncryptionError = Box<dyn std::error::Error + Send + Sync>;

/// The encryption that a program has configured: its keys, and whom it trusts.
pub trait Encrypt: fmt::Debug + Send + Sync {
    /// Returns what is offered: one of [`Extensions::ENCRYPTED`], and ciphers.
    fn offers(&self) -> Extensions;

    /// Whether a connection that is not encrypted is to be refused.
    fn is_required(&self) -> bool;

    /// Begins the handshake of a request, given what of it is in the clear, and the address that it
    /// is sent to. Returns the handshake's first message.
    ///
    /// # Errors
    /// When there are no random numbers.
    fn request(
        &self,
        clear: &[u8],
        to: &str,
    ) -> Result<(Box<dyn Requesting>, Vec<u8>), EncryptionError>;

    /// Answers the handshake of a request. `offered` is what both sides can use.
    ///
    /// # Errors
    /// When the message is none, or the peer does not know the secret.
    fn answer(
        &self,
        clear: &[u8],
        first: &[u8],
        offered: Extensions,
        from: &str,
    ) -> Result<Answered, EncryptionError>;
}

/// An answer to the first message of a handshake.
pub struct Answered {
    /// The handshake, which goes on with the peer's next message.
    pub answering: Box<dyn Answering>,
    /// The extensions that both sides will use.
    pub agreed: Extensions,
    /// The handshake's second message.
    pub message: Vec<u8>,
}

impl fmt::Debug for Answered {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Answered").field("agreed", &self.agreed).finish_non_exhaustive()
    }
}

/// A handshake whose first message was sent.
pub trait Requesting: Send {
    /// Takes the second message, and what was agreed upon. Returns the third message, which has the
    /// private data of the program, and the session.
    ///
    /// # Errors
    /// When the peer is not who it must be, or something was changed on its way.
    fn confirm(
        self: Box<Self>,
        second: &[u8],
        agreed: Extensions,
        private: &[u8],
    ) -> Result<(Vec<u8>, Session), EncryptionError>;
}

/// A handshake whose second message was sent.
pub trait Answering: Send {
    /// Takes the third message. Returns the session, and the private data of the peer's program.
    ///
    /// # Errors
    /// When the peer is not one that may connect, or something was changed on its way.
    fn identify(self: Box<Self>, third: &[u8]) -> Result<(Session, Vec<u8>), NotIdentified>;
}

/// Why a peer was refused at the end of a handshake.
pub struct NotIdentified {
    /// The reason, for this side's operator.
    pub why: EncryptionError,
    /// Seals what the peer is told, if it has keys by now.
    pub control: Option<Box<dyn Seal>>,
}

impl fmt::Debug for NotIdentified {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("NotIdentified").field("why", &self.why).finish_non_exhaustive()
    }
}

/// Seals and opens messages of the connection manager, by keys that the two sides of a connection
/// alone have.
pub trait Seal: fmt::Debug + Send {
    /// Seals a message of a kind, which the receiver must expect.
    fn seal(&mut self, kind: u8, bytes: &[u8]) -> Vec<u8>;

    /// Opens a message of a kind, behind which there may be zeros.
    fn open(&self, kind: u8, sealed: &[u8]) -> Option<Vec<u8>>;

    /// Notes that the peer has shown that it has the keys, too.
    fn proved(&mut self) {}
}

/// The kinds of sealed messages.
mod kind {
    pub const REPLY: u8 = 1;
    pub const REFUSAL: u8 = 2;
    pub const LEAVES: u8 = 3;
    pub const CONFIRMS: u8 = 4;
}

/// The bytes by which a sealed message is longer than what is in it.
const SEALED: usize = 26;

/// The bytes of a reply's terms in a sealed message.
const TERMS: usize = 16;

/// The outcome of a handshake: the keys of a connection, and what its peer has proved.
pub struct Session {
    /// The keys of its packets, until the queue pair has them.
    keys: Option<Keys>,
    control: Control,
    peer: Arc<str>,
}

/// The keys that seal the messages of a connection, shared by those that send some.
#[derive(Clone, Debug)]
struct Control(Arc<Mutex<Box<dyn Seal>>>);

impl Control {
    fn with<R>(&self, act: impl FnOnce(&mut dyn Seal) -> R) -> R {
        act(self.0.lock().unwrap_or_else(PoisonError::into_inner).as_mut())
    }
}

impl Guard for Control {
    fn seal(&mut self, message: Ending, private: &[u8]) -> Vec<u8> {
        self.with(|seal| seal.seal(kind_of(message), private))
    }

    fn open(&self, message: Ending, sealed: &[u8]) -> Option<Vec<u8>> {
        self.with(|seal| seal.open(kind_of(message), sealed))
    }
}

fn kind_of(message: Ending) -> u8 {
    match message {
        Ending::Request => kind::LEAVES,
        Ending::Confirmation => kind::CONFIRMS,
    }
}

impl fmt::Debug for Session {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Session").field("peer", &self.peer).finish_non_exhaustive()
    }
}

impl Session {
    /// The most private data of a program's in a reply that is sealed.
    pub const MOST_IN_REPLY: usize = Rep::PRIVATE_DATA - SEALED - TERMS;
    /// The most private data of a program's in a refusal that is sealed.
    pub const MOST_IN_REFUSAL: usize = Rej::PRIVATE_DATA - SEALED;

    /// Makes a session of its keys, and of what the peer has proved.
    pub fn new(keys: Keys, control: Box<dyn Seal>, peer: impl Into<Arc<str>>) -> Self {
        let control = Control(Arc::new(Mutex::new(control)));
        Self { keys: Some(keys), control, peer: peer.into() }
    }

    /// Returns what the peer has proved: its key, or that it knows the secret.
    pub fn peer(&self) -> &Arc<str> {
        &self.peer
    }

    /// Takes the keys of the connection's packets, once.
    pub fn take_keys(&mut self) -> Option<Keys> {
        self.keys.take()
    }

    /// Returns what keeps others from ending the connection.
    pub fn guard(&self) -> Box<dyn Guard> {
        Box::new(self.control.clone())
    }

    /// Seals the terms of a reply, and the private data of the program that accepts.
    pub fn seal_reply(&self, reply: &Reply, private: &[u8]) -> Vec<u8> {
        let bytes = [&terms_of_reply(reply)[..], private].concat();
        self.control.with(|seal| seal.seal(kind::REPLY, &bytes))
    }

    /// Opens a sealed reply. Returns the private data of the peer's program, if the reply has these terms, and the peer
    /// has sealed it.
    pub fn open_reply(&self, reply: &Reply, sealed: &[u8]) -> Option<Vec<u8>> {
        let bytes = self.control.with(|seal| seal.open(kind::REPLY, sealed))?;
        let (terms, private) = bytes.split_first_chunk()?;
        if *terms != terms_of_reply(reply) {
            return None;
        }
        self.control.with(|seal| seal.proved());
        Some(private.to_vec())
    }

    /// Seals the private data of a refusal.
    pub fn seal_refusal(&self, private: &[u8]) -> Vec<u8> {
        self.control.with(|seal| seal_refusal(seal, private))
    }

    /// Opens the private data of a refusal, if the peer has sealed it.
    pub fn open_refusal(&self, sealed: &[u8]) -> Option<Vec<u8>> {
        self.control.with(|seal| seal.open(kind::REFUSAL, sealed))
    }
}

/// Seals the private data of a refusal.
pub fn seal_refusal(seal: &mut dyn Seal, private: &[u8]) -> Vec<u8> {
    seal.seal(kind::REFUSAL, private)
}

/// Returns what of a request is in the clear, for the handshake: its REQ with nothing but its terms
/// and its IP addressing, and what is offered.
pub fn clear_of(request: &Request, offered: Extensions) -> Vec<u8> {
    // Without a program's private data, there is room for the addressing.
    let addressing = request.private(&[], Extensions::NONE);
    let (private, _) = addressing.unwrap_or(([0; Req::PRIVATE_DATA], Extensions::NONE));
    let message = request.message(CommId(0), CaGuid(0), &private);
    let mut bytes = [0; Mad::LEN];
    Mad { transaction: TransactionId(0), message: message.into() }.emit(&mut bytes);
    [&b"Doorbell encryption 1"[..], &bytes, &offered.bits().to_be_bytes()].concat()
}

/// Returns the terms of a reply as bytes.
fn terms_of_reply(reply: &Reply) -> [u8; TERMS] {
    let mut terms = [0; TERMS];
    let flags = u8::from(reply.flow_control) | u8::from(reply.srq) << 1;
    let parts: [&[u8]; 4] = [
        &reply.qpn.get().to_be_bytes(),
        &reply.psn.get().to_be_bytes(),
        &[reply.responder_resources.0, reply.initiator_depth.0],
        &[reply.ack_delay.get(), reply.rnr_retry_count.get(), flags],
    ];
    for (byte, part) in terms.iter_mut().zip(parts.concat()) {
        *byte = part;
    }
    terms
}
