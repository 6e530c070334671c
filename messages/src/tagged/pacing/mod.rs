//! How much may come unexpectedly, without a message that is lost or waits for ever.
//!
//! Each sender has a *window* at each receiver: the memory that its messages may take there before
//! receives take them. A message that the window has no room for is *held* at its sender, and so is
//! every message behind it, since messages of one sender must not overtake each other. As receives
//! take messages, the window has room again, and held messages are sent in order.
//!
//! That alone could wait for ever: a program that receives the second message first would wait for
//! a message which is held behind one that takes all of the window. So a receive that finds no
//! message *searches* the senders that hold some. A sender *offers* the first message that it holds
//! of those that the receive takes; the receiver *takes* the offer if a receive still waits for the
//! message, and then the message is sent in spite of the window, or *leaves* it where it is.
//!
//! An offered message that was sent at once, without the question, would be wrong: the receive may
//! have met another sender's message meanwhile, and the message would wait at the receiver while an
//! earlier one of the same sender is still held, which a later receive that takes both must get
//! first.
//!
//! A receive that was dropped may have taken an offer, and so have got a message that was sent
//! ahead of others which are still held. That message stays at the receiver, and the sender has its
//! *place* among those that are held: it is offered and taken as they are, and comes back into the
//! order of arrival when all before it have been sent.
//!
//! | message | by | what it says |
//! |---|---|---|
//! | `FREED` | the receiver | receives have taken messages, which took so much of the window |
//! | `HOLDS` | the sender | a message is held, and none was before |
//! | `SEARCH` | the receiver | the pattern of a receive that waits, to senders which hold messages |
//! | `GIVEN_UP` | the receiver | a search whose receive waits no more |
//! | `OFFER` | the sender | the envelope of the first held message that a search found |
//! | `TAKE`, `LEAVE` | the receiver | whether the offered message is sent |
//! | `PASSED` | the sender | all messages before one were sent or cancelled, where the receiver could not count them |
//! | `BACK` | the receiver | a message that came ahead of held ones has no receive any more, and is held again in its place |
//! | `AGAIN` | the sender | the offered message is one that is `BACK` |
//! | `BROWSE` | the receiver | held messages are to be offered one after the other, whatever their bits |
//! | `SEEN` | the sender | a browse has come to its end |
//!
//! A probe that finds no message searches, too, and sees what is offered. It leaves every offer
//! where it is.
//!
//! A sender keeps so many searches of a receiver, and no more. If more receives wait, those that
//! were posted first search, and for all others together the receiver *browses* through what is
//! held, which takes a round trip for each message.
//!
//! # Alternatives
//!
//! * Without a window, as in MX, a flood of messages takes all memory of its receiver.
//! * If messages beyond the window are dropped and sent again, as EMP does, the network carries them
//!   in vain until their receives are posted.
//! * If the receiver pulls every message beyond the window, each of them costs a round trip.
//!
//! # Contents of this folder
//!
//! The folder is bookkeeping: [`Outgoing`] for one sender and one receiver, [`Incoming`] for a
//! receiver and all of its senders. Whoever uses it sends what it says. Messages between
//! the two arrive in the order in which they were sent.

mod probes;
mod receiver;
mod sender;
#[cfg(test)]
mod tests;

pub use receiver::{Arrival, Incoming, Posting, Reaction, Receive, Seen};
pub use sender::{Answer, Offer, Outgoing, Release, Submitted, Take};

/// Names a search among those of a receiver.
pub type SearchId = u64;

/// Names a message among those of a sender: the first has zero, and each has one more than the one
/// before.
pub type Order = u64;
