//! Keys for Doorbell's connections: who the peer is, and ciphers for the packets that both
//! exchange.
//!
//! A connection is made in three messages. Within these, the two sides run a Noise handshake: each
//! proves who it is by a private key, by a secret that all processes of a job share, or by both.
//! What follows is the keys of the session, for the packets of the connection and for the messages
//! that manage it. This crate has no socket and no clock: its caller carries the bytes.
//!
//! ```
//! use doorbell_secure::{Acceptor, PrivateKey, Requester, Security, Suite, Trust};
//!
//! let (client, server) = (PrivateKey::generate()?, PrivateKey::generate()?);
//! let allow = |key: &PrivateKey| Trust::Allowed([key.public()].into_iter().collect());
//! let (trust_server, trust_client) = (allow(&server), allow(&client));
//! let client = Security::by_key(client, trust_server);
//! let server = Security::by_key(server, trust_client);
//!
//! // What the request and the reply have in clear: both sides give the same bytes.
//! let (request, reply) = (b"request: a queue pair", b"reply: AES-256-GCM");
//! let (requester, first) = Requester::begin(&client, request)?;
//! let (acceptor, second) = Acceptor::answer(&server, request, &first, reply)?;
//! let confirming = requester.second(&second, reply, "192.0.2.7")?;
//! let (third, client_keys) = confirming.third(b"hello")?;
//! let mut established = acceptor.third(&third, "192.0.2.8")?;
//! assert_eq!(established.private, b"hello");
//!
//! // The acceptor's answer, of a kind that the caller chooses, shows that it has accepted.
//! let answer = established.keys.control().seal(1, b"welcome");
//! let (client_keys, control) = client_keys.into_keys(Suite::ChaCha20Poly1305);
//! assert_eq!(control.open(1, &answer).as_deref(), Some(&b"welcome"[..]));
//! # let _ = client_keys;
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```
//!
//! | module | what it has |
//! |---|---|
//! | `aead` | the [`Suite`]s, and the [`cipher`] of packets |
//! | `identity` | [`PrivateKey`], [`PublicKey`], [`Secret`], [`Allowed`], [`FirstUse`] |
//! | `session` | the [`SessionKeys`], and the sealed messages of [`Control`] |
//! | `pattern` | the [`Pattern`]s of Noise, and the lengths of messages |
//! | `error` | why a handshake fails: [`HandshakeError`] |
//! | `policy` | [`Security`]: what a process demands, and whom it trusts |
//! | `handshake` | the two sides of a handshake, [`Requester`] and [`Acceptor`] |
//! | `encrypt` | [`Security`] as the encryption of a NIC's connections |
//!
//! The implementations of AES-GCM, ChaCha20-Poly1305 for packets, HKDF and SHA-256 are those of
//! AWS-LC, and the implementation of Noise is that of the crate `snow`.

#![forbid(unsafe_code)]

mod aead;
mod encrypt;
mod error;
mod handshake;
mod identity;
mod pattern;
mod policy;
mod session;

pub use aead::{Suite, cipher};
pub use error::{HandshakeError, Message, Refused};
pub use handshake::{Acceptor, Confirming, Established, Requester};
pub use identity::{Allowed, FirstUse, IdentityError, PrivateKey, PublicKey, Secret};
pub use pattern::{MOST_PRIVATE, Pattern};
pub use policy::{Policy, Security, Trust};
pub use session::{Control, PeerIdentity, SessionKeys};

#[cfg(doctest)]
#[doc = include_str!("../README.md")]
struct Readme;
