//! Collectives under way at one member: their messages, rounds and results.
//!
//! The folder is told which collective a member begins. It sends the messages that the algorithms
//! have for other members, takes those of others out of the mailbox, and returns the result, or the
//! failure that all members get. The algorithms are those of [`doorbell_collectives`].

mod arrival;
mod messages;
mod place;
pub(in crate::group) mod run;
mod waiting;
