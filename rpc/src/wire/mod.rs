//! The wire protocol of RPC: the messages that clients and servers exchange as Active Messages.
//!
//! | message | sent by | what it carries |
//! |---|---|---|
//! | `HELLO` | the client | version, the client's number; answered by `WELCOME`: the session, limits |
//! | `CALL` | the client | a [`CallHead`], metadata and body; answered by `ANSWER`: [`Flags`], metadata and body |
//! | `CANCEL` | the client | the session and the number of a call that the client has given up, or that is over while its request still streams |
//! | `RESPONSE` | the server | the answer to a call that the server has accepted before, with the content of an `ANSWER` |
//! | `PIECE` | both | one or several pieces of a stream, the end of a stream, or that its reader wants no more: a [`PieceKind`] |
//! | `LEND`, `WRITTEN` | both | the memory into which to write a long body, and that nothing is written there any more |
//! | `LEAVE` | the server | that it shuts down: calls that it gets later do not run |
//! | `LEFT` | the client | that it sends no more calls over a connection whose server leaves |
//! | `GRANT`, `GRANTED` | both | how many more bytes of a stream may be sent, by a message or in reply to a `PIECE` |
//!
//! `head` has the words of hellos, calls and answers, `content` the payloads of calls and answers,
//! and `piece` those of streams. The folder encodes and decodes, and sends nothing.

#![deny(clippy::indexing_slicing, clippy::cast_possible_truncation)]

mod content;
mod head;
pub mod piece;

use doorbell_am::{ReplyId, RequestId};

pub use content::{Content, Received, split};
pub use head::{CallHead, CallKey, CallWords, Flags, Hello, HelloWords, Welcome, WelcomeWords};
pub use piece::PieceKind;

/// The version of the protocol. Ends of different versions refuse each other.
pub const VERSION: u64 = 4;

/// The first message on a connection. Its words are a [`Hello`]; it has no payload.
pub const HELLO: RequestId<HelloWords> = RequestId::new(0, "rpc hello");
/// A call. Its words are a [`CallHead`]; its payload is metadata and body.
pub const CALL: RequestId<CallWords> = RequestId::new(1, "rpc call");
/// The end of a call that the client has given up. Its words are the session and the number of the
/// call.
pub const CANCEL: RequestId<[u64; 2]> = RequestId::new(2, "rpc cancel");

/// The answer to a call that was accepted before. Its words are the session and the number of the
/// call, and flags; its payload is metadata and body.
pub const RESPONSE: RequestId<[u64; 3]> = RequestId::new(3, "rpc response");
/// A message about a stream. Its words are the session and the number of the call, and a
/// [`PieceKind`]; its payload is pieces, or a fragment of one.
pub const PIECE: RequestId<[u64; 3]> = RequestId::new(4, "rpc piece");
/// A grant of a stream's reader. Its words are the session and the number of the call, and how many
/// more bytes may be sent.
pub const GRANT: RequestId<[u64; 3]> = RequestId::new(5, "rpc grant");

/// A loan of memory for a long body. Its words are the session and the number of the call; its
/// payload is the remote memory.
pub const LEND: RequestId<[u64; 2]> = RequestId::new(6, "rpc lend");
/// The end of the writes into lent memory. Its words are the session and the number of the call,
/// and one if all of the body was written. Each [`LEND`] is followed by this message, even if the
/// body is not wanted any more.
pub const WRITTEN: RequestId<[u64; 3]> = RequestId::new(7, "rpc written");

/// The word of a server that shuts down: it refuses calls that it gets from now on, and finishes
/// those that it has. Its word is the session of the client.
pub const LEAVE: RequestId<[u64; 1]> = RequestId::new(8, "rpc leave");

/// The word of a client to a server that has said [`LEAVE`]: no call follows over this connection.
/// Its word is the session.
pub const LEFT: RequestId<[u64; 1]> = RequestId::new(9, "rpc left");

/// The answer to a [`HELLO`]. Its words are a [`Welcome`].
pub const WELCOME: ReplyId<WelcomeWords> = ReplyId::new(0, "rpc welcome");
/// The answer to a call, in reply to its request. Its words are the number of the call, and flags;
/// its payload is metadata and body.
pub const ANSWER: ReplyId<[u64; 2]> = ReplyId::new(1, "rpc answer");
/// The words of a [`GRANT`], in reply to a piece.
pub const GRANTED: ReplyId<[u64; 3]> = ReplyId::new(2, "rpc granted");

/// The beginning of the status message with which a server refuses a call of a method that it does
/// not have. The client adds the path of the method, because the server knows only its number.
pub const NO_METHOD: &str = "the server has no method of that path";
